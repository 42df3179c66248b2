"""Training of a WordPiece vocabulary, the same one every time, by the `tokenizers` library."""

import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from keras_bert.data.text_files import find_files, read_lines
from keras_bert.text.tokenizer import SPECIAL_TOKENS

LINES_AT_ONCE = 4096
TEXT_AT_ONCE = 1 << 20
MAX_WORD_LENGTH = 200  # a longer word is [UNK] to the tokenizer
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
    """Trains a vocabulary on text: single characters, and the pieces that byte-pair merges give.

    Words are cut and counted by the splitter of `BertTokenizer`, so the text is normalised as it
    will be. The library merges the most frequent pair first, and of equally frequent ones that of
    the lower ids. It numbers characters as it meets them in a hash table, which is another order
    in each process; therefore all characters are handed to it in one order, beforehand.

    Args:
        files: names or globs of UTF-8 text, plain or `.gz`. All of it is read; words and their
            counts are kept in memory, not the text. A sample of a gigabyte is enough.
        size: tokens of the vocabulary.
        lowercase: whether text is lower-cased, as in `BertTokenizer`.
        strip_accents: whether accents are stripped; None does as `lowercase` says.
        unused: how many tokens `[unused0]`, `[unused1]`, ... to set aside, for words added later.
        min_frequency: characters met less often are left out, and pairs of pieces not merged.
        alphabet_size: characters to keep, the most frequent first; a word with any other one will
            be [UNK].
        verbose: whether to show progress on the standard error.

    Returns:
        The tokens: [PAD], [UNK], [CLS], [SEP], [MASK], the unused ones, the characters in the order
        of code points, as they start words and then as they go on (`##`), then merged pieces in the
        order of merging. `keras_bert.text.vocabulary.write_vocabulary` writes them.

    Raises:
        FileNotFoundError: a file is not there, or a glob matches nothing.
        ValueError: there are no words in the text, it is not UTF-8, or `size` is less than what
            special tokens and characters take.
        ImportError: the library is missing.
    """
    for name, value, least in (
        ("size", size, 1),
        ("unused", unused, 0),
        ("min_frequency", min_frequency, 1),
        ("alphabet_size", alphabet_size, 1),
    ):
        if value < least:
            raise ValueError(f"expected {name} of {least} or more, got {value}")
    try:
        import tokenizers
    except ImportError as error:
        raise ImportError(
            "build_vocabulary needs the tokenizers library: `pip install keras3-bert[corpus]`"
        ) from error

    paths = find_files(files)
    accents = lowercase if strip_accents is None else strip_accents
    words = _count_words(paths, lowercase, accents, verbose)
    if not words:
        raise ValueError(f"there are no words in {', '.join(paths)}")
    fixed = [*SPECIAL_TOKENS.values(), *(f"[unused{number}]" for number in range(unused))]
    alphabet, continuing = _alphabet(words, alphabet_size, min_frequency)
    fixed += alphabet
    fixed += [f"##{character}" for character in continuing]
    if len(fixed) > size:
        raise ValueError(
            f"a vocabulary of {size} tokens is too small: special tokens, {unused} unused ones and "
            f"{len(alphabet)} characters (and {len(continuing)} with ##) are {len(fixed)}; choose "
            "a larger size or a smaller alphabet_size"
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
            f"tokenizers {tokenizers.__version__} ordered the vocabulary in another way than this "
            "function knows"
        )
    if len(tokens) < size:
        warnings.warn(
            f"the text gives {len(tokens)} tokens, fewer than the {size} that were asked for: no "
            f"more pairs are met {min_frequency} times",
            stacklevel=2,
        )
    return tokens


def _count_words(
    paths: Iterable[str], lowercase: bool, strip_accents: bool, verbose: bool
) -> dict[str, int]:
    """Counts the words of all files, as `BertTokenizer` cuts them."""
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
    """The most frequent characters, and those of them that go on a word, in code point order."""
    characters: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            characters[character] += count
    ranked = sorted((-count, character) for character, count in characters.items())
    kept = {character for count, character in ranked[:size] if -count >= min_frequency}
    inner = {c for word in words if kept.issuperset(word) for c in word[1:]}
    return sorted(kept), sorted(inner)


def _as_text(words: dict[str, int]) -> Iterator[str]:
    """Text with the words as often as they were counted: the library takes no counts."""
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
