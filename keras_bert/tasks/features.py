"""Hidden states of texts as features (Devlin et al. 2019, section 5.3)."""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_bert.arguments import check_batch_size, check_choice
from keras_bert.data.texts import is_text
from keras_bert.models.backbone import BertBackbone
from keras_bert.tasks.ids import check_preprocessor
from keras_bert.tasks.run_rows import by_width
from keras_bert.tasks.sentences import check_sentences, to_tensor
from keras_bert.text.tag_paths import scores_of_words
from keras_bert.text.token_classifier_preprocessor import (
    IGNORED,
    BertTokenClassifierPreprocessor,
    TokenRows,
)
from keras_bert.text.tokenizer import BertTokenizer

COMBINATIONS = ("concatenate", "sum", "mean")
UNITS = ("token", "word", "text")
CHUNK = 500  # texts per chunk


def extract_features(
    model: keras.Model,
    texts: Sequence,
    layers: Sequence[int] = (-1,),
    combine: str = "concatenate",
    per: str = "token",
    tokenizer: BertTokenizer | None = None,
    sequence_length: int | None = None,
    batch_size: int = 32,
    verbose: int = 0,
) -> list[np.ndarray] | np.ndarray:
    """Computes the hidden states of some layers for texts, without training.

    A text that is too long is read in overlapping windows. A piece's vector is taken from the
    window in which it has the most context, as in `BertTokenClassifierPreprocessor`.

    Args:
        model: a task, or a `BertBackbone` together with `tokenizer`.
        texts: N texts, or N lists of words; or a tuple of two such lists, whose texts are read
            together, [CLS] first [SEP] second [SEP].
        layers: indices of hidden states: 0 is the embeddings' output, 1 that of the first block and
            so on; -1 is the last. The paper's best are (-4, -3, -2, -1), concatenated.
        combine: how several layers are combined into one vector of size D: "concatenate", "sum" or
            "mean".
        per: "token", one vector per piece, without [CLS] and [SEP]; "word", the vector of each
            word's first piece; or "text", the mean over its pieces. Plain texts are split into
            words as by `BertTokenClassifierPreprocessor`.
        tokenizer: by default the task's.
        sequence_length: maximum number of tokens in a row; by default the task's, or all positions.
        batch_size: rows of a batch.
        verbose: 1 for a progress bar over chunks of 500 texts, 2 for a line at the end, 0 for
            silent.

    Returns:
        For "token" and "word" a list of N float32 arrays [pieces or words, D]; for "text" float32
        [N, D], zeros for a text without pieces. For pairs a tuple of two of these.

    Raises:
        TypeError: if a text is neither a string nor a list of words.
        ValueError: if a layer does not exist, an option is unknown, there is no tokenizer, or a
            pair does not fit into a row.
    """
    for name, value, known in (("combine", combine, COMBINATIONS), ("per", per, UNITS)):
        check_choice(name, value, known)
    batch_size = check_batch_size(batch_size)
    backbone = getattr(model, "backbone", model)
    preprocessor = getattr(model, "preprocessor", None)
    if preprocessor is not None:
        tokenizer = tokenizer or preprocessor.tokenizer
        sequence_length = sequence_length or preprocessor.sequence_length
    if tokenizer is None:
        raise ValueError(f"{model.name} has no tokenizer: pass tokenizer=")
    sequence_length = sequence_length or backbone.max_sequence_length
    preprocessor = BertTokenClassifierPreprocessor(tokenizer, sequence_length)
    check_preprocessor(preprocessor, backbone)
    columns = [check_sentences(column) for column in (texts if _are_pairs(texts) else (texts,))]
    if len({*map(len, columns)}) > 1:
        raise ValueError(f"{len(columns[0])} first texts but {len(columns[1])} second texts")
    reader = hidden_states(backbone, layers, combine)
    found = [[] for _ in columns]
    count = len(columns[0])
    bar = keras.utils.Progbar(-(-count // CHUNK), verbose=verbose, unit_name="chunk")
    for first in range(0, count, CHUNK):
        parts = [
            preprocessor.rows(
                to_tensor(column[first : first + CHUNK], "string"),
                padding="bucket" if len(columns) == 1 else "full",
                by_piece=per != "word",
            )
            for column in columns
        ]
        if len(parts) > 1:
            parts = _joined(*parts, first)
        ids = {name: np.asarray(value) for name, value in parts[0].ids.items()}
        states = _states(reader, ids, batch_size)
        for rows, vectors_of_side in zip(parts, found, strict=True):
            vectors = scores_of_words(states, rows)
            if per == "text":
                # tf.reduce_mean of a ragged tensor gives NaN for empty rows.
                number = np.maximum(rows.counts.numpy(), 1)[:, None]
                vectors_of_side.append(ops.convert_to_numpy(_summed(vectors)) / number)
            else:
                splits = np.cumsum(rows.counts.numpy())[:-1]
                vectors_of_side += np.split(vectors.flat_values.numpy(), splits)
        bar.add(1)
    if per == "text":
        found = [np.concatenate(side).astype("float32") for side in found]
    return found[0] if len(found) == 1 else tuple(found)


def hidden_states(
    backbone: BertBackbone, layers: Sequence[int], combine: str = "concatenate"
) -> keras.Model:
    """A model from the three inputs, int32 [B, T], to hidden states, float32 [B, T, D].

    It shares the backbone's weights; `layers` and `combine` as `extract_features`.
    """
    total = backbone.num_layers + 1
    wrong = [i for i in layers if not -total <= i < total]
    if wrong or not len(layers):
        raise ValueError(f"layers={layers}: expected numbers from {-total} to {total - 1}")
    names = ("token_ids", "segment_ids", "padding_mask")
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
    places = [i % total for i in layers]
    x = backbone.embeddings(inputs["token_ids"], inputs["segment_ids"], None)
    mask = backbone.attention_mask(inputs["padding_mask"], None)
    states = [x]
    for block in backbone.blocks[: max(places)]:
        x, _ = block(x, mask)
        states.append(x)
    chosen = [ops.cast(states[i], "float32") for i in places]
    if combine == "concatenate":
        output = ops.concatenate(chosen, axis=-1)
    else:
        output = sum(chosen) / (len(chosen) if combine == "mean" else 1)
    return keras.Model(inputs, output)


def _are_pairs(texts) -> bool:
    """Whether texts are a tuple of two lists, as opposed to a tuple of texts."""
    return isinstance(texts, tuple) and len(texts) == 2 and not is_text(texts[0])


def _joined(firsts: TokenRows, seconds: TokenRows, start: int) -> list[TokenRows]:
    """Joins rows of first and second texts into rows of pairs: ids, and the words of each side.

    Both are untruncated; `start` is the index of the first pair, for errors.
    """
    sides = [
        {name: value.numpy() for name, value in rows.ids.items()} for rows in (firsts, seconds)
    ]
    length = sides[0]["token_ids"].shape[1]
    pieces = [np.zeros(len(rows.counts), "int64") for rows in (firsts, seconds)]
    for total, rows, side in zip(pieces, (firsts, seconds), sides, strict=True):
        np.add.at(total, rows.sentence.numpy(), side["padding_mask"].sum(axis=1))
    tokens = sum(pieces) - 1  # the second [CLS] is dropped
    if (tokens > length).any():
        raise ValueError(
            f"the pair in row {start + int(np.argmax(tokens > length))} has more than {length} "
            "tokens: pairs are not cut, pass a greater sequence_length or shorter texts"
        )
    shift = pieces[0][:, None] - 1  # offset of the second text, without its [CLS]
    place = np.arange(length)
    later = place > shift
    source = np.where(later, place - shift, place)

    def join(first, second):
        return np.where(later, np.take_along_axis(second, source, 1), first)

    ids = {name: join(sides[0][name], sides[1][name]) for name in ("token_ids", "padding_mask")}
    ids["segment_ids"] = (later & (ids["padding_mask"] != 0)).astype("int32")
    words = [rows.word.numpy() for rows in (firsts, seconds)]
    return [
        firsts._replace(ids=ids, word=np.where(later, IGNORED, words[0])),
        seconds._replace(ids=ids, word=join(np.full_like(words[0], IGNORED), words[1])),
    ]


def _states(reader: keras.Model, ids: dict[str, np.ndarray], batch_size: int) -> np.ndarray:
    """The reader's output [R, T, D] for rows, batched by similar length."""
    length = ids["padding_mask"].shape[1]
    widths, order = by_width(ids, length)
    parts = []
    for width in np.unique(widths).tolist():
        rows = order[widths == width]
        # Batches of one size, since XLA compiles once per size.
        rows = rows[np.arange(-(-len(rows) // batch_size) * batch_size) % len(rows)]
        part = {name: value[rows, :width] for name, value in ids.items()}
        states = reader.predict(part, batch_size=batch_size, verbose=0)[: (widths == width).sum()]
        parts.append(np.pad(states, [(0, 0), (0, length - width), (0, 0)]))
    return np.concatenate(parts)[np.argsort(order)]


def _summed(vectors):
    import tensorflow as tf

    return tf.reduce_sum(vectors, axis=1)
