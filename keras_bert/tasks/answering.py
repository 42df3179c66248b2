"""How a question answerer reads and answers: questions to rows, logits to answers."""

import numpy as np

from keras_bert.data.ragged import joined_rows, without_padding
from keras_bert.tasks.spans import Prediction, answer_spans, predictions, question_columns
from keras_bert.text.answers import NO_TOKEN, choose, decode
from keras_bert.text.question_answering_preprocessor import QuestionRows, span_labels

_CHUNK = 1000  # questions encoded at once
_DECODED = 250  # questions decoded at once: each has some hundred spans, each with its context


def rows_of_questions(preprocessor, x, y=None, sample_weight=None) -> tuple:
    """Does the work of `BertQuestionAnswerer.ragged_rows`; see `RowTask.ragged_rows`.

    Args:
        preprocessor: a `BertQuestionAnswererPreprocessor`.
        x: (questions, contexts), N each.
        y: N answers, as `answer_spans` takes them, or None.
        sample_weight: N weights of the questions, or None.
    """
    questions, contexts = question_columns(x)
    parts, labels = [], []
    spans = None if y is None else answer_spans(contexts, y)  # [N, 2]
    for begin in range(0, len(questions), _CHUNK):
        chunk = slice(begin, begin + _CHUNK)
        rows = preprocessor.encode(questions[chunk], contexts[chunk], padding="full")
        ids, mask = rows.ids(), rows.padding_mask
        ids = {name: without_padding(value, mask) for name, value in ids.items()}
        parts.append((begin + rows.example.numpy(), ids))
        if spans is None:
            continue
        found, has_pieces = span_labels(rows, *spans[chunk].T)
        lost = np.flatnonzero((spans[chunk, 1] > spans[chunk, 0]) & ~has_pieces.numpy())
        if lost.size:
            row = begin + int(lost[0])
            raise ValueError(
                f"row {row}: no piece of the context is in the answer {y[row]!r:.80}, which "
                "the tokenizer drops"
            )
        labels.append(found.numpy())
    if not parts:
        raise ValueError("there are no questions")
    example = np.concatenate([numbers for numbers, _ in parts])
    ids = joined_rows([part for _, part in parts])
    weights = sample_weight
    if weights is not None:
        weights = np.asarray(weights, "float32")
        if len(weights) != len(questions):
            raise ValueError(f"{len(questions)} questions but {len(weights)} sample weights")
        weights = weights[example]
    return ids, np.concatenate(labels) if labels else None, weights


def logits_of_rows(model, ids: dict, batch_size: int, **kwargs) -> dict[str, np.ndarray]:
    """The logits of starts and ends of rows of ids, [R, T] each."""
    outputs = model.predict_rows(ids, batch_size, **kwargs)
    # Rows were cut to predict them: what was filled up has logits of zero.
    real = np.asarray(ids["padding_mask"]) != 0
    return {name: np.where(real, value, np.float32(NO_TOKEN)) for name, value in outputs.items()}


def answers_to(
    model,
    questions,
    contexts,
    top_k: int,
    max_answer_length: int,
    null_threshold: float | None,
    n_best: int,
    batch_size: int,
    **kwargs,
) -> list[Prediction]:
    """Does the work of `BertQuestionAnswerer.answer` for lists of questions and contexts."""
    questions, contexts = question_columns((questions, contexts))
    found = []
    for begin in range(0, len(questions), _CHUNK):
        chunk = slice(begin, begin + _CHUNK)
        rows = model.preprocessor.encode(questions[chunk], contexts[chunk], padding="full")
        rows = QuestionRows(*(part.numpy() for part in rows))
        logits = logits_of_rows(model, rows.ids(), batch_size, **kwargs)
        for first in range(0, len(questions[chunk]), _DECODED):
            part = slice(first, first + _DECODED)
            mine = slice(*np.searchsorted(rows.example, (first, first + _DECODED)))
            taken = QuestionRows(*(value[mine] for value in rows))
            taken = taken._replace(example=taken.example - first)
            best = decode(
                logits["start"][mine],
                logits["end"][mine],
                taken,
                contexts[chunk][part],
                null_threshold is not None,
                n_best,
                max_answer_length,
            )
            found += predictions(best, choose(best, null_threshold), top_k)
    return found
