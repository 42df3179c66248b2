"""Extractive question answering (Devlin et al. 2019, sections 4.2 and 4.3)."""

import logging
import math
import numbers
from collections.abc import Sequence
from functools import partial

import keras
import numpy as np

from keras_bert.arguments import check_count
from keras_bert.data.examples import Examples
from keras_bert.data.sources import ArraySource
from keras_bert.data.squad import SquadExample
from keras_bert.data.table_rows import ANY, Cell, Table
from keras_bert.data.texts import is_text
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.heads import dense_head
from keras_bert.metrics import best_answer_temperature, squad_v1_scores, squad_v2_scores
from keras_bert.models.backbone import BertBackbone
from keras_bert.serving.signatures import TEXT
from keras_bert.tasks.calibrated import Calibrated
from keras_bert.tasks.spans import (
    Prediction,
    answer_spans,
    as_examples,
    first_answer,
    graded,
    predictions,
    question_columns,
    row_labels,
)
from keras_bert.tasks.task import Answer, Rows
from keras_bert.text.best_answers import NO_TOKEN, choose, decode
from keras_bert.text.question_answering_preprocessor import (
    BertQuestionAnswererPreprocessor,
    span_labels,
)
from keras_bert.training.task_metrics import CHOICES

N_BEST = 20  # as in run_squad.py
logger = logging.getLogger("keras_bert")


@keras.saving.register_keras_serializable(package="keras_bert")
class BertQuestionAnswerer(Calibrated):
    """A backbone and one dense layer on each token's output, for starts and ends of answers.

    A context longer than a row is read in windows, each a row of its own. The loss is the mean of
    the cross-entropies of start and end; the target of a window without the answer is [CLS].
    Reference: google-research/bert `run_squad.py`. In that script the softmax includes padding, so
    that an answer depends on the padded length; here the logits of padding are
    `keras_bert.text.best_answers.NO_TOKEN`.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertQuestionAnswererPreprocessor`, or None to work on ids alone.
        dropout: dropout rate of the tokens' outputs; the original has no dropout.
        null_threshold: a question has no answer if its `null_score` is above it, as in SQuAD 2.0;
            None (default) to always give an answer, as in SQuAD 1.1, until `fit` sees questions
            without an answer. See `tune_null_threshold`.
        temperature: divides the sums of two logits before probabilities are computed; see
            `calibrate`. `null_threshold` is compared with undivided ones.
        **kwargs: as `keras.Model`.

    `fit` takes a list of `keras_bert.data.SquadExample`, whose target is the first answer found in
    the context; or a tuple (questions, contexts) of two lists, with N answers, each (text, first
    character in the context) or None for no answer. A question becomes one row per window of its
    context, each with the question's weight; batches are of rows. For ids, labels are the columns
    of first and last piece, [R, 2].

    Call arguments:
        inputs: the backbone's.

    Returns:
        A dict of float32 logits [B, T], `start` and `end`.

    Raises:
        ValueError: if the preprocessor does not fit the backbone, or the threshold is not a number.

    Example:

    >>> model = BertQuestionAnswerer.from_preset(preset)
    >>> model.fit(read_squad("train-v1.1.json"), epochs=2)
    >>> model.answer("Where is the cat?", "The cat is on the mat.").text
    """

    preprocessor_cls = BertQuestionAnswererPreprocessor

    asks = {"question": TEXT, "context": TEXT}
    example = {
        "question": ["What froze?", ""],
        "context": ["The harbour froze in the night.", "Ships lay still."],
    }
    head_kind = "span"
    output_kind = {"start": CHOICES, "end": CHOICES}
    outputs_by_token = True
    fill_value = NO_TOKEN
    column_names = ("question", "context", "answers", "answer", "answer_start", "weight")
    _saw_none = False  # whether a question without an answer was among the last rows made
    at_once = 500  # each has about a hundred spans, each with its context

    def __init__(
        self,
        backbone: BertBackbone,
        preprocessor: BertQuestionAnswererPreprocessor | None = None,
        dropout: float = 0.0,
        null_threshold: float | None = None,
        temperature: float = 1.0,
        **kwargs,
    ):

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head_dropout = Dropout(dropout, name="head_dropout")
        self.head = dense_head(2, backbone.initializer_range)

        # === Functional model ===
        inputs = backbone.input
        tokens = self.encode(inputs)["sequence_output"]  # [B, T, H]
        logits = self.head(self.head_dropout(tokens))  # [B, T, 2]
        # Not [:, :, None]: LiteRT has no op for it.
        real = keras.ops.expand_dims(inputs["padding_mask"], -1) != 0
        logits = keras.ops.where(real, logits, NO_TOKEN)
        outputs = {"start": logits[:, :, 0], "end": logits[:, :, 1]}  # [B, T] each
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Configuration ===
        self.dropout = dropout
        self.null_threshold = null_threshold
        self.temperature = temperature

    @property
    def null_threshold(self) -> float | None:
        """The `null_score` above which there is no answer; None to always give an answer."""
        return self._null_threshold

    @null_threshold.setter
    def null_threshold(self, value: float | None) -> None:
        real = isinstance(value, numbers.Real)
        if value is not None and (not real or not math.isfinite(value)):
            raise ValueError(f"null_threshold={value!r}: expected a finite number or None")
        self._null_threshold = None if value is None else float(value)
        self._threshold_is_chosen = value is not None

    # === Training ===

    def compile(self, *args, **kwargs):
        """As `BertTask.compile`; the task's own loss is the mean of those of start and end."""
        if smoothing := kwargs.get("label_smoothing"):
            raise ValueError(
                f"label_smoothing={smoothing} is not supported by BertQuestionAnswerer: a share of "
                "each label would go to padding"
            )
        super().compile(*args, **kwargs)

    @property
    def default_loss_weights(self) -> dict[str, float]:
        return {"start": 0.5, "end": 0.5}

    # === Rows ===

    def brings_labels(self, x) -> bool:
        return isinstance(x, list) and len(x) > 0 and isinstance(x[0], SquadExample)

    def examples(self, x, y=None) -> Examples:
        if isinstance(x, Examples):
            return x
        if self.brings_labels(x):
            if y is not None:
                raise ValueError("got answers beside a list of SquadExample, which hold them")
            x, y = ([e.question for e in x], [e.context for e in x]), x
        columns = question_columns(x)
        if y is not None and not isinstance(y, list):
            y = row_labels(y)
        return Examples(columns, y)

    def table_cells(self, given, labelled):
        cells = {"question": Cell(), "context": Cell()}
        if not labelled:
            return cells
        apart = {"answer", "answer_start"} & {*given}
        return cells | {
            name: Cell(ANY) for name in (self.column_names[3:5] if apart else ["answers"])
        }

    def examples_of_table(self, columns):
        x = (columns["question"], columns["context"])
        if "answers" in columns:
            return x, [first_answer(value) for value in columns["answers"]]
        if "answer" not in columns:
            return x, None
        pairs = zip(columns["answer"], columns["answer_start"], strict=True)
        return x, [first_answer([pair]) for pair in pairs]

    def with_targets(self, data):
        """Finds answers in their contexts, as `BertTask.with_targets`: int32 [N, 2] characters.

        Raises:
            ValueError: if there are no questions, or an answer is not at its stated place.
        """
        if not len(data):
            raise ValueError("there are no questions")
        if data.labels is None:
            return data
        self._saw_none |= any(map(_has_no_answer, data.labels))
        return Examples(data.columns, answer_spans(data.columns[1], data.labels))  # [N, 2]

    def rows(self, question, context, **options) -> Rows:
        rows = self.preprocessor.encode(question, context)
        return Rows(rows.ids(), rows.example, rows)

    def labels_of_rows(self, rows, labels, weights, first):
        _, weights = super().labels_of_rows(rows, None, weights, first)
        if labels is None:
            return None, weights
        found, has_pieces = span_labels(rows.about, *labels.T)
        lost = np.flatnonzero((labels[:, 1] > labels[:, 0]) & ~has_pieces.numpy())
        if lost.size:
            start, end = labels[lost[0]].tolist()
            raise ValueError(
                f"row {first + int(lost[0])}: no piece of the context is in the answer, characters "
                f"{start} to {end}, which the tokenizer drops"
            )
        return found.numpy(), weights

    def encode_labels(self, y):
        """Checks labels of rows of ids, as `fit` takes them: columns of first and last piece.

        They are [R, 2] or a dict of `start` and `end`, [R] each, and become int32 [R, 2]; an error
        names the row.
        """
        return row_labels(y)

    def encode_labels_in_graph(self, y):
        """Splits labels [B, 2], as `BertTask.encode_labels_in_graph` gets them, by output."""
        return y if y is None or isinstance(y, dict) else {"start": y[:, 0], "end": y[:, 1]}

    def _checked_rows(self, x, y, sample_weight):
        if y is not None and "token_ids" in x:
            y = row_labels(y, np.shape(x["token_ids"])[1])
        return super()._checked_rows(x, y, sample_weight)

    def source(self, *args, **kwargs):
        source = super().source(*args, **kwargs)
        if isinstance(source, ArraySource):  # not on TensorFlow: no map
            source.labels = self.encode_labels_in_graph(source.labels)
        return source

    def step_inputs(self, x, y=None, sample_weight=None):
        return super().step_inputs(x, self.encode_labels_in_graph(y), sample_weight)

    # === Training ===

    def fit(
        self,
        x=None,
        y=None,
        batch_size: int | None = None,
        epochs: float | None = None,
        sample_weight=None,
        validation_data=None,
        **kwargs,
    ):
        """Trains the model, as `BertTask.fit`.

        If some questions have no answer and `null_threshold` is None, it is set to 0.0. After
        training it is set by `tune_null_threshold`, if validation data in memory has both kinds of
        questions; this is logged.

        Raises:
            TypeError: if a text is not a string.
            ValueError: if an answer is not at its stated place in the context, or a question has
                neither an answer nor is marked as having none; the error names the row.
        """
        x, y = self._labelled(self.as_table(x, kwargs, y), y, "fit")
        self._saw_none = isinstance(x, Examples) and any(map(_has_no_answer, y))
        x, y, sample_weight, validation_data = self._read_fit_data(
            x, y, sample_weight, validation_data, kwargs.pop("validation_split", 0.0)
        )
        tunes = self._saw_none and not self._threshold_is_chosen
        if tunes:
            self._give_no_answers()
        if tunes and validation_data is not None:
            validation_data = self._check_validation(validation_data)
        history = super().fit(x, y, batch_size, epochs, sample_weight, validation_data, **kwargs)
        if isinstance(x, Table) and self._saw_none and not self._threshold_is_chosen:
            self._give_no_answers()
        if tunes and validation_data is not None and isinstance(validation_data[0], Examples):
            examples = as_examples(validation_data[0].columns, validation_data[0].labels)
            if len({example.is_impossible for example in examples}) == 2:
                self._null_threshold = self._best_null_threshold(examples)
                logger.warning(
                    "null_threshold=%g, tuned on %d questions of the validation data",
                    self.null_threshold,
                    len(examples),
                )
        return history

    def _give_no_answers(self) -> None:
        self._null_threshold = 0.0
        logger.warning("null_threshold=0.0, since some of the questions have no answer")

    # === Answers ===

    def _best(self, outputs, rows, context, n_best, max_answer_length, with_null):
        limits = (with_null, n_best, max_answer_length, self.temperature)
        return decode(outputs["start"], outputs["end"], rows.about, context, *limits)

    def answers(
        self, outputs, rows, question, context, n_best=N_BEST, max_answer_length=30, top_k=5
    ):
        """The best answer to each question.

        `answer`, string [B], characters of the context, "" for no answer; `start` and `end`, int32
        [B], its first character in the context and the one after its last, 0 for no answer;
        `score`, float32 [B], its probability among the `n_best`; and `null_score`, float32 [B], the
        score of no answer minus that of the best answer. No answer is given only if the task's
        `null_threshold` is set and exceeded.
        """
        import tensorflow as tf

        threshold = self.null_threshold
        found = self._best(outputs, rows, context, n_best, max_answer_length, threshold is not None)
        columns = {"answer": found.text, "start": found.start, "end": found.end}
        columns["score"] = tf.cast(found.probability, tf.float32)
        place = choose(found, threshold)
        answers = {name: tf.gather(value, place) for name, value in columns.items()}
        return answers | {"null_score": tf.cast(found.null_score, tf.float32)}

    def _candidates(
        self, outputs, rows, question, context, n_best=N_BEST, max_answer_length=30, top_k=5
    ):
        """The `top_k` best, best first: `answer`, `start`, `end` and `score` [B, K], filled up
        with "", -1 and 0, and `count`, int32 [B]."""
        import tensorflow as tf

        with_null = self.null_threshold is not None
        found = self._best(outputs, rows, context, n_best, max_answer_length, with_null)

        def dense(values, default):
            rows = tf.RaggedTensor.from_row_splits(values, found.row_splits, validate=False)
            return rows[:, :top_k].to_tensor(default, shape=[None, top_k])

        counts = found.row_splits[1:] - found.row_splits[:-1]
        return {
            "answer": dense(found.text, ""),
            "start": dense(found.start, -1),
            "end": dense(found.end, -1),
            "score": dense(tf.cast(found.probability, tf.float32), 0.0),
            "count": tf.cast(tf.minimum(counts, top_k), tf.int32),
        }

    def signatures(
        self, n_best: int = N_BEST, max_answer_length: int = 30, top_k: int | None = None
    ):
        """Lists `serving_default`, one answer, and `candidates`, the best; arguments, as `answer`.

        There are `top_k` candidates, 5 by default, or `n_best` if that is smaller.

        Raises:
            ValueError: if a number is out of range, such as `top_k` above `n_best`.
        """
        top_k = _checked_top_k(top_k, n_best, max_answer_length)
        options = {"n_best": n_best, "max_answer_length": max_answer_length, "top_k": top_k}
        one = super().signatures(**options)["serving_default"]
        return {
            "serving_default": one,
            "candidates": one._replace(answers=partial(self._candidates, **options)),
        }

    def answer(
        self,
        questions: str | Sequence[str],
        contexts: str | Sequence[str],
        top_k: int = 1,
        max_answer_length: int = 30,
        null_threshold: float | None = None,
        n_best: int = N_BEST,
        batch_size: int = 32,
        **kwargs,
    ) -> Prediction | list[Prediction]:
        """Answers questions with spans of their contexts.

        See `keras_bert.text.best_answers.decode` for the decoding.

        Args:
            questions: a question, or a list of N.
            contexts: the texts to find answers in; a single context for a list of questions is used
                for all of them.
            top_k: number of candidates to return with each answer; 1 to `n_best`, which gives all
                of them, and with a threshold "no answer" beyond these.
            max_answer_length: maximum number of pieces in an answer.
            null_threshold: overrides the task's; `math.inf` always gives an answer.
            n_best: number of starts and ends to try in each window, and of candidates that
                probabilities are computed over.
            batch_size: rows of a batch.
            **kwargs: as `keras.Model.predict`, without a progress bar by default.

        Returns:
            A `Prediction`; for a list of questions a list of N. If no span is valid, as in a
            context without pieces, the answer is "".

        Raises:
            TypeError: if a text is not a string.
            ValueError: if the numbers of contexts and questions differ, or a number is out of
                range.
        """
        if is_text(questions):
            columns = ([questions], [contexts])
        elif is_text(contexts):
            columns = (questions, [contexts] * len(questions))
        else:
            columns = (questions, contexts)
        _checked_top_k(top_k, n_best, max_answer_length)
        threshold = self.null_threshold if null_threshold is None else null_threshold
        real = isinstance(threshold, numbers.Real)
        if threshold is not None and (not real or math.isnan(threshold)):
            raise ValueError(f"null_threshold={threshold!r}: expected a number or None")

        def best(outputs, rows, question, context):
            with_null = threshold is not None
            found = self._best(outputs, rows, context, n_best, max_answer_length, with_null)
            return found._asdict() | {"chosen": choose(found, threshold)}

        key = ("best", n_best, max_answer_length, threshold)
        asked = Answer(self.asks, self.example, self.rows, best, None, key)
        given, found = self.examples(columns), []
        for _, parts in self.respond(asked, given, batch_size, kwargs) if len(given) else ():
            found += predictions(parts, top_k if top_k < n_best else None)
        return found[0] if is_text(questions) else found

    def answer_examples(
        self, examples: Sequence[SquadExample], top_k: int = 1, **kwargs
    ) -> dict[str, Prediction]:
        """Answers the questions of a data set.

        Args:
            examples: of `keras_bert.data.read_squad`.
            top_k: as `answer`.
            **kwargs: as `answer`.

        Returns:
            `Prediction` by the question's id. `keras_bert.data.write_predictions` takes their
            `text`, and their `null_score` as `null_odds`.
        """
        columns = [e.question for e in examples], [e.context for e in examples]
        answers = self.answer(*columns, top_k, **kwargs)
        return {e.id: found for e, found in zip(examples, answers, strict=True)}

    def scores(self, x, y=None, **kwargs) -> dict[str, float]:
        """Scores answers as SQuAD's scripts do, `keras_bert.metrics.squad_v1_scores` and v2.

        Args:
            x: a list of `SquadExample`, or (questions, contexts).
            y: for (questions, contexts), N answers, (text, first character) or None.
            **kwargs: as `answer`.

        Returns:
            "exact_match" and "f1", in percent; by the rules of SQuAD 2.0 if a question has no
            answer.
        """
        data = self.examples(x, y)
        examples = as_examples(data.columns, data.labels)
        golds = [[answer.text for answer in e.answers] for e in examples]
        found = self.answer(*data.columns, **kwargs)
        texts = {str(i): prediction.text for i, prediction in enumerate(found)}
        references = {str(i): gold for i, gold in enumerate(golds)}
        if all(golds):
            scores = squad_v1_scores(references, texts)
            return {"exact_match": scores["exact_match"], "f1": scores["f1"]}
        scores = squad_v2_scores(references, texts)
        return {"exact_match": scores["exact"], "f1": scores["f1"]}

    def tune_null_threshold(self, examples: Sequence[SquadExample], **kwargs) -> float:
        """Sets `null_threshold` to the value that maximizes F1, on held-out questions.

        Reference: evaluate-v2.0.py of SQuAD, `best_f1_thresh`.

        Args:
            examples: questions with their answers, some of which have none.
            **kwargs: as `answer`.

        Returns:
            The threshold.
        """
        self.null_threshold = self._best_null_threshold(examples, **kwargs)
        return self.null_threshold

    def _best_null_threshold(self, examples: Sequence[SquadExample], **kwargs) -> float:
        found = self.answer_examples(examples, **(kwargs | {"null_threshold": math.inf}))
        scores = squad_v2_scores(
            {e.id: [answer.text for answer in e.answers] for e in examples},
            {key: prediction.text for key, prediction in found.items()},
            {key: prediction.null_score for key, prediction in found.items()},
        )
        return scores["best_f1_thresh"]

    def best_temperature(self, x, y, batch_size, **kwargs):
        data = self._labelled(x, y, "calibrate")[0]
        kwargs |= {"top_k": N_BEST, "batch_size": batch_size or 32}
        found = self.answer(*data.columns, **kwargs)
        examples = as_examples(data.columns, data.labels)
        rights = [[answer.text for answer in e.answers] for e in examples]
        return best_answer_temperature(*graded(found, rights))


def _checked_top_k(top_k: int | None, n_best: int, max_answer_length: int) -> int:
    """Checks the numbers of an answer; returns `top_k`, 5 at most if it is None."""
    check_count("n_best", n_best, 2)
    check_count("max_answer_length", max_answer_length)
    top_k = min(5, n_best) if top_k is None else check_count("top_k", top_k)
    if top_k > n_best:
        raise ValueError(f"top_k={top_k}: expected 1 to n_best={n_best}")
    return top_k


def _has_no_answer(answer) -> bool:
    return answer is None or getattr(answer, "is_impossible", False)
