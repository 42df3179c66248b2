"""Deterministic training of a WordPiece vocabulary with the `tokenizers` library."""

import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from keras_bert.arguments import check_count, needed
from keras_bert.data.text_files import find_files, read_lines
from keras_bert.text.tokenizer import SPECIAL_TOKENS

LINES_AT_ONCE = 4096
TEXT_AT_ONCE = 1 << 20
MAX_WORD_LENGTH = 200  # a longer word is [UNK] for the tokenizer
PROGRESS_SECONDS = 5.0


def build_vocabulary(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    size: int,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    *,
    unused: int = 0,
    min_frequency: int = 2,
    alphabet_size: int = 1000,
    verbose: bool = True,
) -> list[str]:
    """Trains a vocabulary on text: single characters, and the pieces from byte-pair merges.

    Words are split and counted by `BertTokenizer`'s splitter, so normalization is the same as in
    tokenization. The library merges the most frequent pair first, and in ties that with the lower
    ids. It numbers characters in the order of a hash table, which differs between processes;
    therefore all characters are passed to it in advance, in a fixed order.

    Args:
        files: names or globs of UTF-8 text, plain or `.gz`. All of it is read; words and their
            counts are kept in memory, not the text. A sample of a gigabyte is enough.
        size: number of tokens of the vocabulary.
        lowercase: whether text is lower-cased, as in `BertTokenizer`.
        strip_accents: whether accents are stripped; None follows `lowercase`.
        unused: number of tokens `[unused0]`, `[unused1]`, ... to reserve for words added later.
        min_frequency: less frequent characters are dropped, and less frequent pairs not merged.
        alphabet_size: number of characters to keep, the most frequent first; a word with any other
            becomes [UNK].
        verbose: whether to show progress on the standard error.

    Returns:
        The tokens: [PAD], [UNK], [CLS], [SEP], [MASK], the unused ones, the characters in the order
        of code points, first at the start of words and then as continuations (`##`), then the
        merged pieces in the order of merging. `keras_bert.text.vocabulary.write_vocabulary` writes
        them.

    Raises:
        FileNotFoundError: if a file does not exist, or a glob matches nothing.
        ValueError: if the text has no words or is not UTF-8, or `size` is too small for special
            tokens and characters.
        ImportError: if the library is missing.
    """
    for name, value, least in (
        ("size", size, 1),
        ("unused", unused, 0),
        ("min_frequency", min_frequency, 1),
        ("alphabet_size", alphabet_size, 1),
    ):
        check_count(name, value, least)
    with needed("build_vocabulary", "the tokenizers library", "'keras3-bert[corpus]'"):
        import tokenizers

    paths = find_files(files)
    accents = lowercase if strip_accents is None else strip_accents
    words = _count_words(paths, lowercase, accents, verbose)
    if not words:
        raise ValueError(f"no words in {', '.join(paths)}")
    fixed = [*SPECIAL_TOKENS.values(), *(f"[unused{number}]" for number in range(unused))]
    alphabet, continuing = _alphabet(words, alphabet_size, min_frequency)
    fixed += alphabet
    fixed += [f"##{character}" for character in continuing]
    if len(fixed) > size:
        raise ValueError(
            f"size={size}: expected at least {len(fixed)}, for special tokens, {unused} unused "
            f"ones and {len(alphabet)} characters (and {len(continuing)} with ##); choose a larger "
            "size or a smaller alphabet_size"
        )
    known = set(alphabet)
    words = {word: count for word, count in words.items() if known.issuperset(word)}
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        special_tokens=fixed,
        show_progress=verbose,
    )
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(_as_text(words), trainer)
    ids = tokenizer.get_vocab()
    tokens = sorted(ids, key=ids.__getitem__)
    if tokens[: len(fixed)] != fixed or len(tokens) > size:
        raise RuntimeError(
            f"tokenizers {tokenizers.__version__} ordered the vocabulary in a way that this "
            "function does not support"
        )
    if len(tokens) < size:
        warnings.warn(
            f"the text gives {len(tokens)} tokens, fewer than size={size}: no other pair occurs "
            f"{min_frequency} times",
            stacklevel=2,
        )
    return tokens


def _count_words(
    paths: Iterable[str], lowercase: bool, strip_accents: bool, verbose: bool
) -> dict[str, int]:
    """Counts the words of all files, split as by `BertTokenizer`."""
    import tensorflow as tf

    from keras_bert.text.words import WordSplitter

    split = WordSplitter(lowercase, strip_accents)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def count(lines):
        characters, splits = split(lines, offsets=False)
        letters = tf.RaggedTensor.from_row_splits(characters.code, splits, validate=False)
        letters = tf.ragged.boolean_mask(letters, letters.row_lengths() <= MAX_WORD_LENGTH)
        return tf.unique_with_counts(tf.strings.unicode_encode(letters, "UTF-8"))

    words: Counter[bytes] = Counter()
    size, said = 0, time.monotonic()
    for path in paths:
        for _, lines in read_lines(path):
            for first in range(0, len(lines), LINES_AT_ONCE):
                found, _, counts = count(lines[first : first + LINES_AT_ONCE])
                for word, number in zip(
                    found.numpy().tolist(), counts.numpy().tolist(), strict=True
                ):
                    words[word] += number
            size += sum(map(len, lines))
            if verbose and time.monotonic() - said > PROGRESS_SECONDS:
                said = time.monotonic()
                progress = f"{size / 1e6:,.0f} million characters, {len(words):,} different words"
                print(f"counting words: {progress}", file=sys.stderr, flush=True)
    return {word.decode(): number for word, number in words.items()}


def _alphabet(words: dict[str, int], size: int, min_frequency: int) -> tuple[list[str], list[str]]:
    """The most frequent characters, and those of them inside words, in code point order."""
    characters: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            characters[character] += count
    ranked = sorted((-count, character) for character, count in characters.items())
    kept = {character for count, character in ranked[:size] if -count >= min_frequency}
    inner = {c for word in words if kept.issuperset(word) for c in word[1:]}
    return sorted(kept), sorted(inner)


def _as_text(words: dict[str, int]) -> Iterator[str]:
    """Repeats each word as often as it was counted, because the library takes no counts."""
    parts: list[str] = []
    size = 0
    for word, count in sorted(words.items()):
        while count:
            taken = min(count, max(1, TEXT_AT_ONCE // len(word)))
            parts.append(f"{word} " * taken)
            size += len(parts[-1])
            count -= taken
            if size >= TEXT_AT_ONCE:
                yield "".join(parts)
                parts, size = [], 0
    yield "".join(parts)
