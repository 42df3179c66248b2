"""Sentences of words and their tags, checked and turned into tensors."""

from collections.abc import Sequence

import numpy as np

from keras_bert.data.examples import place_of
from keras_bert.data.tagged import tag_names
from keras_bert.data.texts import as_strings, check_texts, is_text
from keras_bert.text.token_classifier_preprocessor import IGNORED


def check_sentences(sentences) -> list[str] | list[list[str]]:
    """Converts sentences, texts or lists of words, to a list of str or of lists of str.

    Raises:
        TypeError: if a sentence is of neither type, or of another type than the first, or a word
            is not a string; the error names its place.
        ValueError: if there are no sentences.
    """
    if is_text(sentences):
        raise TypeError("sentences are one string: expected a list of texts or of lists of words")
    sentences = list(sentences)
    if not sentences:
        raise ValueError("there are no sentences")
    if is_text(sentences[0]):
        return as_strings(check_texts(sentences, "sentences"), "ignore")
    found = []
    for row, words in enumerate(sentences):
        if is_text(words) or not hasattr(words, "__iter__"):
            raise TypeError(
                f"sentences[{row}] is {words!r:.80} of type {type(words).__name__}; expected a "
                "list of words, as the first"
            )
        found.append(as_strings(check_texts(words, f"sentences[{row}]"), "ignore"))
    return found


def check_tags(
    sentences: Sequence,
    tags: Sequence,
    lines: Sequence[int] | None = None,
    first: int = 0,
    kind: str = "tags",
) -> None:
    """Checks that there is a tag for each word; an error names sentence and line.

    `lines` are those of a file where the sentences begin, `first` the index of the first sentence.
    """
    if len(sentences) != len(tags):
        raise ValueError(f"{len(sentences)} sentences but tags for {len(tags)}")
    for row, (words, given) in enumerate(zip(sentences, tags, strict=True)):
        _check_list(given, row + first, lines)
        if len(words) != len(given):
            where = place_of(row + first, lines, "sentence")
            raise ValueError(f"{where}: {len(words)} words, {len(given)} {kind}")


def names_of_tags(y) -> list[str]:
    """The names among tags, "O" first; ids and anything but lists of tags are ignored."""
    return tag_names(
        [tag for tag in tags if isinstance(tag, str)]
        for tags in y
        if hasattr(tags, "__iter__") and not is_text(tags)
    )


def ids_of_tags(y, num_classes: int, labels: list[str] | None, lines: Sequence[int] | None = None):
    """Turns tags into ids, -1 for no label; an error names sentence, line and word.

    Lists of names or ids, one per word, become a list of int32 arrays; ids by token stay [N, T].
    """
    if hasattr(y, "dtype") and y.dtype.kind in "iu":
        if y.ndim != 2:
            raise ValueError(f"labels of shape {y.shape}: expected one for each token, [N, T]")
        wrong = (y < IGNORED) | (y >= num_classes)
        if wrong.any():
            row, place = np.argwhere(wrong)[0].tolist()
            raise ValueError(
                f"label {y[row, place]} at position {place} of row {row} is unknown; expected ids "
                f"0 to {num_classes - 1}, or {IGNORED} where there is no label"
            )
        return np.asarray(y, "int32")
    ids = {name: i for i, name in enumerate(labels or ())} | {i: i for i in range(num_classes)}
    ids[IGNORED] = IGNORED
    found = []
    for row, tags in enumerate(y):
        _check_list(tags, row, lines)
        tags = tags.tolist() if hasattr(tags, "tolist") else list(tags)
        # Types are compared too: True and 1.0 would match the id 1.
        unknown = [i for i, t in enumerate(tags) if type(t) not in (str, int) or t not in ids]
        if unknown:
            place, where = unknown[0], place_of(row, lines, "sentence")
            expected = ", ".join(labels or ()) or f"ids 0 to {num_classes - 1}"
            raise ValueError(
                f"tag {tags[place]!r} of word {place} in {where} is unknown; expected {expected}"
            )
        found.append(np.array([ids[tag] for tag in tags], "int32"))
    return found


def _check_list(tags, row: int, lines: Sequence[int] | None) -> None:
    if is_text(tags) or not hasattr(tags, "__iter__"):
        where = place_of(row, lines, "sentence")
        raise ValueError(f"tags of {where} are {tags!r:.80}; expected a list, one a word")


def token_weights(labels: np.ndarray, sample_weight=None) -> np.ndarray:
    """Weights of tokens, float32 [R, T], from those of rows [R] or tokens; 0 without a label."""
    weights = (labels != IGNORED).astype("float32")
    if sample_weight is None:
        return weights
    sample_weight = np.asarray(sample_weight, "float32")
    return weights * (sample_weight[:, None] if sample_weight.ndim == 1 else sample_weight)


def token_weights_in_graph(labels, sample_weight=None):
    """As `token_weights`, of tensors inside `tf.data`."""
    import tensorflow as tf

    weights = tf.cast(labels != IGNORED, "float32")
    if sample_weight is None:
        return weights
    sample_weight = tf.cast(sample_weight, "float32")
    return weights * (sample_weight if sample_weight.shape.rank == 2 else sample_weight[:, None])


def to_tensor(rows: Sequence, dtype: str):
    """A string or int tensor [N] of scalars, or a ragged one [N, None] of sequences."""
    import tensorflow as tf

    if not len(rows) or isinstance(rows[0], str):
        return tf.constant(rows, dtype)
    if dtype == "string":
        flat = tf.constant([item for row in rows for item in row], tf.string)
    else:
        flat = tf.constant(np.concatenate([np.asarray(row, dtype) for row in rows]), dtype)
    return tf.RaggedTensor.from_row_lengths(flat, [len(row) for row in rows])
