"""More labelled texts from few: words replaced by what a masked language model puts there."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from keras_bert.arguments import check_batch_size, check_count, check_number
from keras_bert.data.examples import Examples
from keras_bert.data.relations import RelationExamples, Span
from keras_bert.data.tagged import AnnotatedTexts, TaggedSentences, annotated_texts
from keras_bert.data.texts import as_strings, text_columns

MASK = "[MASK]"
OUTSIDE = "O"  # tag of a word that belongs to no entity
SILENT_SECONDS = 5
JOINED = " "  # between the parts of an example that the model reads together


class Augmented(NamedTuple):
    """New examples.

    Attributes:
        x: the new examples, in the form of those that they were made of; n for each of these, the
            copies of an example one after the other.
        rows: int64 [N * n], the index of the example that each is a copy of: `y[rows]` are the
            labels.
        changed: int64 [N * n], the number of words that were replaced in each; 0 for an example
            without a word that may be.
    """

    x: Any
    rows: np.ndarray
    changed: np.ndarray


class _Part(NamedTuple):
    """A text of an example, and its spans (start, end, ...) that stay."""

    text: str
    spans: Sequence[tuple]


def augment(
    texts: Any,
    masked_lm,
    share: float = 0.15,
    n: int = 4,
    *,
    labels: Sequence[str] | None = None,
    top_k: int = 10,
    seed: int = 0,
    batch_size: int = 256,
) -> Augmented:
    """Makes copies of texts in which a masked language model has replaced some words.

    Words are chosen at random, masked together, each by one [MASK], and replaced by words of the
    vocabulary, drawn from the model's `top_k` most probable ones by their probability; never by the
    same word. Only words of two or more letters are chosen, beside no apostrophe, and only single
    words of letters replace them. A new word is written with the old one's capitals.

    A model can read the label too, so that "a [MASK] film" of a bad review does not become "a great
    film": Wu et al. 2019 ("Conditional BERT contextual augmentation") put the label in the place of
    the segment and train the model further on the labelled texts. Here its name stands before the
    text, as in Kumar et al. 2020 ("Data augmentation using pre-trained transformer models"), which
    needs no new weights and serves pairs and any number of labels. First train the model on such
    texts: `masked_lm.fit(label_first(texts, labels), epochs=...)`.

    Args:
        texts: N texts; a tuple (firsts, seconds) of two lists, which the model reads one after the
            other; or N examples of a task that marks words, which stay: `AnnotatedTexts`,
            `RelationExamples` (their entities) or `TaggedSentences` (words with another tag than
            "O").
        masked_lm: a `BertMaskedLM` with a preprocessor. A text longer than its `sequence_length` is
            read in windows around the masked words; only the first window reads the label.
        share: of the words of a text that may be chosen, from 0 to 1; at least one is.
        n: copies of each text.
        labels: N names of labels, written before the texts; None for a model that was not trained
            with them.
        top_k: candidates for each word.
        seed: of the choice of words and of the draws.
        batch_size: rows of a batch.

    Returns:
        The `Augmented` examples.

    Raises:
        TypeError: if a text is not a string.
        ValueError: if an argument is out of range, columns differ in length, a span is not inside
            its text, a text holds [MASK], or a tagged word a blank.

    Example:

    >>> more = augment(texts, masked_lm, n=4)
    >>> classifier.fit(texts + more.x, y + [y[row] for row in more.rows])
    """
    check_number("share", share, 0, 1)
    check_count("n", n)
    check_count("top_k", top_k)
    check_count("seed", seed, 0)
    batch_size = check_batch_size(batch_size)
    texts = _read(texts)
    parts = _parts(texts)
    starts = _starts(labels, len(parts))
    tokenizer = masked_lm.preprocessor.tokenizer
    columns = [_words(column, tokenizer) for column in zip(*parts, strict=True)]
    words = [
        [
            (number, *word, row[number].text[slice(*word)])
            for number, found in enumerate(in_row)
            for word in found
        ]
        for row, in_row in zip(parts, zip(*columns, strict=True), strict=True)
    ]
    rng = np.random.default_rng(seed)
    masked, chosen = [], []  # by copy
    for row, start in enumerate(starts):
        for _ in range(n):
            count = min(len(words[row]), max(1, round(share * len(words[row]))))
            places = sorted(rng.permutation(len(words[row]))[:count].tolist())
            chosen.append([words[row][place] for place in places])
            masked.append(start + JOINED.join(_masked(parts[row], chosen[-1])))
    fills = _fills(masked, chosen, masked_lm, top_k, rng, batch_size)
    rows = np.repeat(np.arange(len(parts)), n)
    new = [
        _replaced(parts[row], places, found)
        for row, places, found in zip(rows, chosen, fills, strict=True)
    ]
    return Augmented(_like(texts, new, rows), rows, np.array([*map(len, fills)], "int64"))


def label_first(texts: Any, labels: Sequence[str]) -> list[str]:
    """Writes the name of its label before each text, as `augment` reads them.

    Args:
        texts: as `augment`.
        labels: N names, best words that the model knows, such as "positive".

    Returns:
        N texts, those of a pair one after the other, to train a `BertMaskedLM` on.

    Raises:
        TypeError: as `augment`.
        ValueError: as `augment`.
    """
    parts = _parts(_read(texts))
    starts = _starts(labels, len(parts))
    return [
        start + JOINED.join(part.text for part in row)
        for start, row in zip(starts, parts, strict=True)
    ]


def _starts(labels: Sequence[str] | None, count: int) -> list[str]:
    """What stands before each text."""
    if labels is None:
        return [""] * count
    if len(labels) != count:
        raise ValueError(f"labels: {len(labels)} names, expected {count}, as many as texts")
    if wrong := [i for i, name in enumerate(labels) if not isinstance(name, str)]:
        raise TypeError(f"labels[{wrong[0]}]={labels[wrong[0]]!r}: expected the label's name")
    return [f"{name}: " for name in labels]


def _read(x: Any) -> Any:
    """The examples, in one of four forms."""
    if isinstance(x, TaggedSentences | RelationExamples):
        return x
    found = annotated_texts(x)
    if found is not None:
        return found
    columns = tuple(as_strings(column, "ignore") for column in text_columns(x))
    return columns if isinstance(x, tuple) else columns[0]


def _parts(x: Any) -> list[list[_Part]]:
    """The texts of each example, with the spans that stay."""
    if isinstance(x, AnnotatedTexts | RelationExamples):
        rows = [[_Part(*row)] for row in zip(x.texts, x.entities, strict=True)]
    elif isinstance(x, TaggedSentences):
        rows = [[_sentence(*row)] for row in zip(x.words, x.tags, strict=True)]
    else:
        columns = x if isinstance(x, tuple) else (x,)
        rows = [[_Part(text, ()) for text in row] for row in zip(*columns, strict=True)]
    for i, row in enumerate(rows):
        if any(MASK in part.text for part in row):
            raise ValueError(f"texts[{i}] holds {MASK}: expected a text without it")
    return rows


def _sentence(words: Sequence[str], tags: Sequence[str]) -> _Part:
    """A sentence of words as a text, in which every tagged word is a span."""
    spans, start = [], 0
    for word, tag in zip(words, tags, strict=True):
        if " " in word:
            raise ValueError(f"word {word!r}: expected words without blanks")
        if tag != OUTSIDE:
            spans.append((start, start + len(word)))
        start += len(word) + 1
    return _Part(" ".join(words), spans)


def _words(parts: Sequence[_Part], tokenizer) -> list[list[tuple[int, int]]]:
    """The words (start, end) of each text that may be replaced."""
    if not parts:
        return []
    ids, starts, ends = tokenizer.tokenize_with_offsets([part.text for part in parts], "char")
    inside = np.array([token.startswith("##") for token in tokenizer.get_vocabulary()])
    found = []
    rows = zip(parts, *(ragged.to_list() for ragged in (ids, starts, ends)), strict=True)
    for part, row_ids, row_starts, row_ends in rows:
        words: list[tuple[int, int]] = []
        for i, start, end in zip(row_ids, row_starts, row_ends, strict=True):
            if inside[i] and words:
                words[-1] = (words[-1][0], end)
            else:
                words.append((start, end))
        found.append([word for word in words if _may_change(*word, part)])
    return found


def _may_change(start: int, end: int, part: _Part) -> bool:
    around = part.text[max(start - 1, 0) : start] + part.text[end : end + 1]
    return (
        end - start > 1
        and part.text[start:end].isalpha()
        and not set(around) & {"'", "’"}
        and not any(start < span[1] and span[0] < end for span in part.spans)
    )


def _masked(row: list[_Part], places: list[tuple[int, int, int, str]]) -> Iterator[str]:
    """The texts of an example, with [MASK] in the chosen places."""
    for number, part in enumerate(row):
        text = part.text
        for _, start, end, _ in reversed([place for place in places if place[0] == number]):
            text = text[:start] + MASK + text[end:]
        yield text


def _fills(masked, chosen, masked_lm, top_k, rng, batch_size) -> list[list[str]]:
    """A word for each chosen place; none for a copy without such a place."""
    vocabulary = masked_lm.preprocessor.tokenizer.get_vocabulary()
    targets = [token for token in vocabulary if token.isalpha() and len(token) > 1]
    if len(targets) <= top_k:
        raise ValueError(f"top_k={top_k}: expected less than the vocabulary's {len(targets)} words")
    fills: list[list[str]] = [[] for _ in masked]
    asked = [i for i, places in enumerate(chosen) if places]
    if not asked:
        return fills
    data = Examples(([masked[i] for i in asked],))
    answer = masked_lm.signatures(top_k + 1, targets)["serving_default"]  # one may be the old word
    # Shown if it takes longer.
    bar = tqdm(
        total=len(asked), desc="augmenting", unit=" texts", delay=SILENT_SECONDS, file=sys.stderr
    )
    done = 0
    for _, found in masked_lm.respond(answer, data, batch_size):
        for count, ids, scores in zip(found["count"], found["id"], found["score"], strict=True):
            copy = asked[done]
            if count != len(chosen[copy]):
                raise ValueError(
                    f"the model found {count} of {len(chosen[copy])} {MASK} in {masked[copy]!r}"
                )
            draws = rng.random(count)
            for (_, _, _, word), *drawn in zip(chosen[copy], ids, scores, draws, strict=False):
                fills[copy].append(
                    _drawn(word, [vocabulary[i] for i in drawn[0]], *drawn[1:], top_k)
                )
            done += 1
        bar.update(len(found["count"]))
    bar.close()
    return fills


def _drawn(word: str, candidates: list[str], scores: np.ndarray, draw: float, top_k: int) -> str:
    """One of the candidates but the word itself, by their probabilities, with its capitals."""
    others = [i for i, other in enumerate(candidates) if other.lower() != word.lower()][:top_k]
    sums = np.cumsum(scores[others].astype("float64"))
    place = min(int(np.searchsorted(sums, draw * sums[-1], side="right")), len(others) - 1)
    new = candidates[others[place]]
    if word.isupper():
        return new.upper()
    return new[:1].upper() + new[1:] if word[:1].isupper() else new


def _replaced(
    row: list[_Part], places: list[tuple[int, int, int, str]], words: list[str]
) -> list[_Part]:
    """The texts of a copy, with their spans moved."""
    new = []
    for number, part in enumerate(row):
        text, spans = part.text, [*part.spans]
        mine = [(p, word) for p, word in zip(places, words, strict=True) if p[0] == number]
        for (_, start, end, _), word in reversed(mine):
            text, moved = text[:start] + word + text[end:], len(word) - (end - start)
            # No span holds a part of a replaced word: it lies before or behind it.
            spans = [
                (span[0] + moved, span[1] + moved, *span[2:]) if span[0] >= end else span
                for span in spans
            ]
        new.append(_Part(text, spans))
    return new


def _like(x: Any, new: list[list[_Part]], rows: np.ndarray) -> Any:
    """The copies in the form of the examples."""
    texts = [[part.text for part in row] for row in new]
    if isinstance(x, TaggedSentences):
        # The only word of an empty text would be "".
        words = [
            text.split(" ") if x.words[row] else []
            for (text,), row in zip(texts, rows, strict=True)
        ]
        return TaggedSentences(words, *_taken(x[1:], rows))
    if isinstance(x, AnnotatedTexts):
        spans = [row[0].spans for row in new]
        return AnnotatedTexts([row[0] for row in texts], spans, *_taken(x[2:], rows))
    if isinstance(x, RelationExamples):
        first = [row[0] for row in texts]
        spans = [tuple(Span(*span) for span in row[0].spans) for row in new]
        marked = [_marked(*row) for row in zip(first, spans, strict=True)]
        return RelationExamples(*_taken(x, rows))._replace(
            texts=first, entities=spans, marked_texts=marked
        )
    if not isinstance(x, tuple):
        return [row[0] for row in texts]
    return tuple([row[number] for row in texts] for number in range(len(x)))


def _marked(text: str, spans: tuple[Span, ...]) -> str:
    """A text with the markers of SemEval-2010 around its two entities."""
    for number, (start, end) in reversed([*enumerate(spans, 1)]):
        text = f"{text[:start]}<e{number}>{text[start:end]}</e{number}>{text[end:]}"
    return text


def _taken(columns: Sequence, rows: np.ndarray) -> list:
    return [None if column is None else [column[row] for row in rows] for column in columns]
