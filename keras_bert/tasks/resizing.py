"""Resizing of a model's vocabulary and position table."""

import copy
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

import keras
import numpy as np

from keras_bert.arguments import check_choice, check_count
from keras_bert.checkpoints import LoadingReport
from keras_bert.checkpoints.names import weights_by_name
from keras_bert.data.texts import is_text
from keras_bert.models.backbone import BertBackbone
from keras_bert.tasks.from_checkpoint import on_backbone
from keras_bert.text.vocabulary import check_vocabulary

POSITION_METHODS = ("cut", "new", "tile", "interpolate")
TOKEN_METHODS = ("mean", "new")
_WORDS, _BIAS = "embeddings/word/embeddings", "masked_lm_head/output_bias"
_CHUNK = 1000  # texts tokenized at once
_POSITIONS = "embeddings/position_table"


def resize(
    model: keras.Model,
    *,
    max_sequence_length: int | None = None,
    positions: str | None = None,
    corpus: Iterable[str] | None = None,
    keep_tokens: Sequence[str] = (),
    new_tokens: Sequence[str] = (),
    tokens: str = "mean",
    seed: int = 0,
) -> keras.Model:
    """Makes a copy of a model with tables of another size; all other weights are equal.

    Args:
        model: a task, or a `BertBackbone`; it is not changed. The copy has to be compiled again.
        max_sequence_length: positions of the copy.
        positions: how the new table is made; required if the number changes. "cut" keeps the first
            rows. "new" keeps all rows and draws further ones from the initializer's distribution;
            "tile" repeats the table from its beginning (Beltagy et al. 2020, section 5);
            "interpolate" stretches the table by linear interpolation.
        corpus: texts, any iterable of strings. For a task with a preprocessor. The vocabulary of
            the copy is reduced to the tokens of these texts, special and added tokens and the
            preprocessor's markers, in the same order. Outputs for texts of the corpus are
            unchanged; other texts may be tokenized differently.
        keep_tokens: further tokens to keep, in addition to those of `corpus`.
        new_tokens: tokens to append to the vocabulary of a task with a preprocessor. Words and `##`
            pieces take part in WordPiece. Tokens that BERT's pre-tokenization would split or
            change, such as "[E1]", "covid-19" or in uncased models "@USER", become the tokenizer's
            `added_tokens` and are matched whole in the text.
        tokens: rows of new tokens: "mean", the mean of all rows of the table and of the masked
            language model's bias; or "new", drawn from the initializer's distribution, with bias 0.
        seed: seed of the random rows.

    Returns:
        A model of the same class. If the model has a `loading_report`, the copy's `reshaped` lists
        the changes.

    Raises:
        ValueError: if a method is unknown or does not apply, no change is requested, a token is
            already in the vocabulary, repeated among the new ones or can never occur in a text, or
            there is no preprocessor.
    """
    backbone = getattr(model, "backbone", model)
    old = backbone.max_sequence_length
    length = old if max_sequence_length is None else max_sequence_length
    _check(model, old, length, positions, tokens, bool(new_tokens) or corpus is not None)
    kept = None if corpus is None else _kept_ids(model, corpus, keep_tokens)
    vocabulary = _new_vocabulary(model, kept, new_tokens)
    rng = np.random.default_rng(seed)
    table = {name: _values(weight) for name, weight in weights_by_name(model).items()}
    done = []
    if length != old:
        done.append(f"{_POSITIONS}: {old} to {length} rows by positions={positions!r}")
        table[_POSITIONS] = _positions(
            table[_POSITIONS], length, positions, rng, backbone.initializer_range
        )
    rows = backbone.vocabulary_size
    if kept is not None:
        done.append(f"{_WORDS}: {rows} to {len(kept)} rows, the tokens that a corpus uses")
        rows = len(kept)
        table |= {name: table[name][kept] for name in (_WORDS, _BIAS) if name in table}
    # The table may be longer than the vocabulary: new tokens use its free rows first.
    more = max(rows, len(vocabulary or ())) - rows
    if new_tokens:
        start = len(vocabulary) - len(new_tokens)
        done.append(f"{_WORDS}: {rows} to {rows + more} rows by tokens={tokens!r}, from {start} on")
        for name in (_WORDS, _BIAS):
            if name in table:
                known, rest = table[name][:start], table[name][len(vocabulary) :]
                new = _rows(known, len(new_tokens), tokens, rng, backbone.initializer_range)
                table[name] = np.concatenate([known, new, rest])
    config = backbone.get_config() | {
        "max_sequence_length": length,
        "vocabulary_size": rows + more,
        "dtype": backbone.dtype_policy,
    }
    copied = BertBackbone.from_config(config)
    if model is not backbone:
        copied = _task(model, copied, vocabulary, new_tokens)
    for name, weight in weights_by_name(copied).items():
        weight.assign(table[name])
    report = copy.deepcopy(getattr(model, "loading_report", LoadingReport(model.name, "model")))
    report.reshaped += done
    copied.loading_report = report
    return copied


def _check(model, old: int, length: int, positions: str | None, tokens: str, texts: bool) -> None:
    check_choice("tokens", tokens, TOKEN_METHODS)
    check_count("max_sequence_length", length)
    if texts and getattr(model, "preprocessor", None) is None:
        raise ValueError("corpus and new_tokens are for a task with a preprocessor")
    if length == old and not texts:
        raise ValueError("nothing to do: give a max_sequence_length, corpus or new_tokens")
    suits = ("cut",) if length < old else tuple(m for m in POSITION_METHODS if m != "cut")
    if length != old and positions not in suits:
        raise ValueError(
            f"positions={positions!r}: from {old} to {length} positions, expected one of "
            f"{', '.join(suits)}"
        )


def _kept_ids(model, corpus: Iterable[str], keep_tokens: Sequence[str]) -> list[int]:
    """The ids of a vocabulary that a corpus needs, ascending."""
    if is_text(corpus):
        raise TypeError("corpus is one string: expected an iterable of strings")
    tokenizer = model.preprocessor.tokenizer
    tokens = tokenizer.get_vocabulary()
    added = (getattr(tokenizer, name, ()) for name in ("added_tokens", "exact_tokens"))
    if missing := sorted({*keep_tokens} - {*tokens}):
        raise ValueError(f"keep_tokens: {missing[0]!r} is not in the vocabulary")
    named = {token for some in (keep_tokens, *added) for token in some}
    kept = {*tokenizer.special_token_ids, *map(tokenizer.token_to_id, named)}
    if hasattr(model.preprocessor, "marker_ids"):  # of relations
        kept |= {*model.preprocessor.marker_ids()}
    texts = (_text(i, text) for i, text in enumerate(corpus))
    count = 0
    while chunk := list(islice(texts, _CHUNK)):
        count += len(chunk)
        kept |= _used_ids(tokenizer, tokens, chunk)
    if not count:
        raise ValueError("corpus holds no texts")
    return sorted(kept)


def _used_ids(tokenizer, tokens: list[str], texts: list[str]) -> set[int]:
    """The ids of all pieces of the tokenized texts.

    A word becomes [UNK] if no piece matches at some place. With fewer pieces another segmentation
    could succeed, so the pieces before that place are needed too. They are found by tokenizing the
    word with a vocabulary that also has every character as a piece.
    """
    found = tokenizer.tokenize(texts)
    used = {*np.unique(found.flat_values.numpy()).tolist()}
    if tokenizer.unk_token_id in used:
        unknown = np.asarray((found == tokenizer.unk_token_id).to_tensor(False)).any(axis=1)
        texts = [text for text, one in zip(texts, unknown, strict=True) if one]
        characters = set("".join(texts))
        for form in (str.lower, lambda text: unicodedata.normalize("NFD", text)):
            characters |= {c for text in [*characters] for c in form(text)}
        pieces = {p for c in characters if c.strip() for p in (c, f"##{c}")} - {*tokens}
        tokenizer = _changed(tokenizer, vocabulary=[*tokens, *sorted(pieces)])
        ids = tokenizer.tokenize(texts).flat_values.numpy()
        used |= {*np.unique(ids[ids < len(tokens)]).tolist()}
    return used


def _text(row: int, text) -> str:
    text = text.numpy() if hasattr(text, "numpy") else text
    text = text.decode("utf-8", "ignore") if isinstance(text, bytes) else text
    if not isinstance(text, str):
        raise TypeError(f"corpus: text {row} is {text!r:.80}; expected a str")
    return text


def _new_vocabulary(model, kept: list[int] | None, new_tokens: Sequence[str]) -> list[str] | None:
    if getattr(model, "preprocessor", None) is None:
        return None
    vocabulary = model.preprocessor.tokenizer.get_vocabulary()
    if kept is not None:
        vocabulary = [vocabulary[i] for i in kept]
    counts = Counter([*vocabulary, *new_tokens])
    if twice := sorted(token for token in {*new_tokens} if counts[token] > 1):
        raise ValueError(f"new_tokens: {', '.join(map(repr, twice[:5]))} are there already")
    check_vocabulary([*vocabulary, *new_tokens])
    return [*vocabulary, *new_tokens]


def _changed(tokenizer, **settings):
    config = tokenizer.get_config() | settings
    config.pop("config_file", None)
    return type(tokenizer)(**config)


def _positions(table, length: int, method: str, rng, deviation: float):  # [P, H] -> [length, H]
    if method == "cut":
        return table[:length]
    if method == "tile":
        return table[np.arange(length) % len(table)]
    if method == "new":
        shape = (length - len(table), table.shape[1])
        return np.concatenate([table, _drawn(rng, shape, deviation)])
    places = np.linspace(0, len(table) - 1, length)
    below = np.minimum(places.astype(int), max(len(table) - 2, 0))
    above = np.minimum(below + 1, len(table) - 1)
    share = (places - below)[:, None]
    return ((1 - share) * table[below] + share * table[above]).astype("float32")


def _rows(table, number: int, method: str, rng, deviation: float):
    """Rows for new tokens, for a table [V, H] or a bias [V]."""
    shape = (number, *table.shape[1:])
    if method == "mean":
        return np.broadcast_to(table.mean(axis=0, dtype="float64"), shape).astype("float32")
    return _drawn(rng, shape, deviation) if table.ndim == 2 else np.zeros(shape, "float32")


def _drawn(rng, shape, deviation: float):
    """Draws from the initializer's distribution, a truncated normal with stddev `deviation`."""
    values = rng.normal(size=shape)
    while (far := np.abs(values) > 2).any():
        values[far] = rng.normal(size=int(far.sum()))
    return (deviation * values).astype("float32")


def _cut_by_rule(tokenizer, new_tokens: Sequence[str]) -> list[str]:
    """The new tokens that pre-tokenization splits or changes, so WordPiece never produces them."""
    words = [t[2:] if t.startswith("##") and len(t) > 2 else t for t in new_tokens]
    specials = tokenizer.special_tokens
    vocabulary = [*specials, *dict.fromkeys(w for w in words if w not in specials)]
    alone = _changed(tokenizer, added_tokens=(), exact_tokens=(), vocabulary=vocabulary)
    found = alone(words).to_list()
    cut = [
        token
        for token, word, ids in zip(new_tokens, words, found, strict=True)
        if ids != [alone.token_to_id(word)] or word in specials
    ]
    if pieces := [token for token in cut if token.startswith("##") and len(token) > 2]:
        raise ValueError(
            f"new_tokens: {', '.join(map(repr, pieces[:5]))} could never be found: expected the "
            "rest of one word after ##, as the tokenizer normalises it"
        )
    return cut


def _task(
    model, backbone: BertBackbone, vocabulary: list[str] | None, new_tokens: Sequence[str]
) -> keras.Model:
    """The same task on another backbone."""
    preprocessor = model.preprocessor
    if preprocessor is not None:
        cut = _cut_by_rule(preprocessor.tokenizer, new_tokens)
        added = [*preprocessor.tokenizer.added_tokens, *cut]
        tokenizer = _changed(preprocessor.tokenizer, vocabulary=vocabulary, added_tokens=added)
        found = zip(cut, tokenizer(cut).to_list() if cut else (), strict=True)
        if lost := [token for token, ids in found if ids != [tokenizer.token_to_id(token)]]:
            raise ValueError(
                f"new_tokens: {', '.join(map(repr, lost[:5]))} could never be found: another "
                "added token is found in their place"
            )
        length = preprocessor.sequence_length
        if length == model.backbone.max_sequence_length:
            length = backbone.max_sequence_length  # still all positions
        settings = {name: getattr(preprocessor, name) for name in preprocessor.settings}
        settings["sequence_length"] = min(length, backbone.max_sequence_length)
        preprocessor = type(preprocessor)(tokenizer, **settings)
    return on_backbone(model, backbone, preprocessor)


def _values(weight) -> np.ndarray:
    return np.asarray(keras.ops.convert_to_numpy(weight), "float32")
