"""BERT's WordPiece tokenizer as a KerasHub tokenizer layer."""

import os
from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
from keras.src.saving import serialization_lib
from keras.src.utils.backend_utils import in_grain_data_pipeline as in_grain

from keras_bert.arguments import check_choice, check_count, needed
from keras_bert.text.vocabulary import check_vocabulary, read_vocabulary, write_vocabulary

VOCABULARY_FILE = "vocab.txt"
SPECIAL_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
SPLITTINGS = ("bert", "whole_ideographs", "spaces")
SETTINGS = (
    "lowercase",
    "strip_accents",
    "special_tokens_in_text",
    "max_word_length",
    "splitting",
    "added_tokens",
    "exact_tokens",
)
REQUIRED = tuple(token for name, token in SPECIAL_TOKENS.items() if name != "mask_token")


@keras.saving.register_keras_serializable(package="keras_bert")
class BertTokenizer(keras_hub.tokenizers.Tokenizer):
    """Tokenizes text into WordPiece ids, identical to google-research/bert's FullTokenizer.

    The algorithm (tokenization.py): drop invalid UTF-8, U+0000, U+FFFD, and control and format
    characters; separate CJK ideographs; split at white space; lower-case as `str.lower` does;
    decompose (NFD) and drop accents; split off punctuation; then split each word greedily from the
    left into the longest pieces of the vocabulary, all but the first prefixed with `##`. A word
    that cannot be split, or is too long, becomes one [UNK]. Unicode data is always version 14.0.

    All of it runs in the TensorFlow graph: eagerly, in `tf.data`, and in a SavedModel.

    Args:
        vocabulary: path of a vocabulary file (one token per line, ids are line numbers), or the
            list of tokens. None defers it to `set_vocabulary` or `load_assets`.
        lowercase: whether to lower-case the text.
        strip_accents: whether to strip accents; None follows `lowercase`.
        special_tokens_in_text: whether the literal `[MASK]`, `[SEP]`, ... in the text become the
            special ids, for prompts to fill in. If False, `[MASK]` is ordinary text and becomes the
            pieces of a bracket, a word and a bracket: use this for any text you did not write.
        max_word_length: a word of more characters (code points, normalized) becomes [UNK].
        splitting: "bert" for the algorithm above; "whole_ideographs" does not separate CJK
            ideographs, as transformers with `tokenize_chinese_chars=False`; "spaces" drops no
            characters and splits only at white space, as transformers' Python tokenizer with
            `do_basic_tokenize=False`, for text that is already split into words.
        added_tokens: tokens of the vocabulary that are matched in the normalized text before it is
            split into words, such as "[E1]" or "covid-19", also inside a word. Of overlapping
            matches the leftmost wins, then the longest. As transformers' `add_tokens`.
        exact_tokens: the same, but matched only in their exact spelling; transformers' added
            tokens with `normalized=False`, such as its special tokens.
        dtype: dtype of the ids, "int32" or "int64".
        **kwargs: arguments of `keras_hub.tokenizers.Tokenizer`.

    Call arguments:
        inputs: a str, a list of str, or an array or tensor of strings.

    Returns:
        For a batch [B], a `tf.RaggedTensor` of ids [B, None]; for one string, a tensor [None].
        No special tokens are added.

    Raises:
        ImportError: on the first text, if tensorflow or tensorflow_text is missing.
        ValueError: if a setting is out of range, or the vocabulary is invalid, or lacks an added
            token or a special token other than [MASK].

    A setting changed later, as in `tokenizer.lowercase = False`, applies to all following texts;
    graphs already traced, such as a dataset's, keep the old one.

    Example:

    >>> tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "##s"])
    >>> tokenizer(["The cats", "the dog"])
    <tf.RaggedTensor [[4, 5, 6], [4, 1]]>
    """

    def __init__(
        self,
        vocabulary: str | os.PathLike[str] | Sequence[str] | None = None,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        special_tokens_in_text: bool = False,
        max_word_length: int = 200,
        splitting: str = "bert",
        added_tokens: Sequence[str] = (),
        exact_tokens: Sequence[str] = (),
        dtype: str = "int32",
        **kwargs: Any,
    ):
        super().__init__(dtype=dtype, **kwargs)
        check_choice("dtype", self.compute_dtype, ("int32", "int64"))
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.special_tokens_in_text = special_tokens_in_text
        self.max_word_length = max_word_length
        self.splitting = splitting
        self.added_tokens = added_tokens
        self.exact_tokens = exact_tokens
        self.file_assets = [VOCABULARY_FILE]
        for name, token in SPECIAL_TOKENS.items():
            setattr(self, name, token)
        self.set_vocabulary(vocabulary)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in SETTINGS:
            value = _checked(name, value)
            known = self.__dict__.get("_tokens")
            if name in ("added_tokens", "exact_tokens") and known is not None:
                _check_added(value, (), known)
            # Bypasses Keras's tracking, which would search lists. The next text creates a new one.
            object.__setattr__(self, "_lines", None)
            object.__setattr__(self, name, value)
            return
        super().__setattr__(name, value)

    @classmethod
    def from_preset(cls, preset: str | os.PathLike[str], **settings: Any) -> "BertTokenizer":
        """Loads a tokenizer from a checkpoint.

        Args:
            preset: any checkpoint that a task's `from_preset` accepts, or a folder written by
                `save_to_preset` of a tokenizer or preprocessor.
            **settings: arguments of the class that override the checkpoint's.

        Returns:
            The tokenizer.

        Raises:
            FileNotFoundError: if `preset` does not exist or lacks a file.
            ValueError: if a file is damaged or there is no tokenizer.
        """
        if cls is not BertTokenizer:  # a user's class, which KerasHub finds by its registered name
            return super().from_preset(preset, **settings)
        from keras_bert.checkpoints import open_checkpoint  # which imports this class

        checkpoint = open_checkpoint(preset, load_weights=False)
        if not checkpoint.has_text_side():
            raise ValueError(f"{preset} has no tokenizer")
        return checkpoint.tokenizer(**settings)

    # Vocabulary.

    def set_vocabulary(self, vocabulary: str | os.PathLike[str] | Sequence[str] | None) -> None:
        """Sets the vocabulary.

        Args:
            vocabulary: a path of a `vocab.txt`, the list of tokens, or None for none yet.

        Raises:
            ValueError: if it is not a vocabulary, or lacks a special token other than [MASK]; the
                message names the token and the file.
        """
        path = vocabulary if isinstance(vocabulary, str | os.PathLike) else None
        tokens = vocabulary if path is None else read_vocabulary(path)
        if tokens is not None:
            tokens = list(tokens)
            check_vocabulary(tokens, path, REQUIRED)
            _check_added(self.added_tokens, self.exact_tokens, tokens)
        # Of duplicates the last counts, as in the original.
        ids = {token: index for index, token in enumerate(tokens or ())}
        # Bypasses Keras's tracking, which would search each token for variables.
        object.__setattr__(self, "_tokens", tokens)
        object.__setattr__(self, "_ids", ids)
        self._lines = None
        for name, token in SPECIAL_TOKENS.items():
            setattr(self, f"{name}_id", ids.get(token))

    def _line_tokenizer(self) -> Any:
        """The implementation, created on the first text: ids do not need TensorFlow Text."""
        tokens = self._needed(self._tokens)
        if self._lines is None:
            exact = [*(self.special_tokens if self.special_tokens_in_text else ())]
            exact += self.exact_tokens
            self._lines = _line_module().line_tokenizer(
                tuple(tokens),
                self.lowercase,
                self.lowercase if self.strip_accents is None else self.strip_accents,
                tuple((token, self._ids[token]) for token in exact),
                self.max_word_length,
                tuple((token, self._ids[token]) for token in self.added_tokens),
                self.splitting,
            )
        return self._lines

    def _needed(self, value: Any) -> Any:
        if value is None:
            raise ValueError(
                f"{type(self).__name__} has no vocabulary yet: pass `vocabulary`, or call "
                "`set_vocabulary` or `load_assets`"
            )
        return value

    @property
    def has_vocabulary(self) -> bool:
        """Whether the vocabulary has been set."""
        return self._tokens is not None

    def get_vocabulary(self) -> list[str]:
        """Returns the tokens; a token's index is its id."""
        return list(self._needed(self._tokens))

    def vocabulary_size(self) -> int:
        """Returns the number of ids."""
        return len(self._needed(self._tokens))

    def id_to_token(self, id: int) -> str:
        """Returns the token of an id.

        Args:
            id: from 0 to `vocabulary_size() - 1`.

        Returns:
            The token.

        Raises:
            ValueError: if `id` is out of range.
        """
        if not 0 <= id < self.vocabulary_size():
            raise ValueError(f"id={id}: expected 0 to {self.vocabulary_size() - 1}")
        return self._tokens[id]

    def token_to_id(self, token: str) -> int:
        """Returns the id of a token.

        Args:
            token: as in the vocabulary.

        Returns:
            Its id.

        Raises:
            ValueError: if it is not in the vocabulary.
        """
        self._needed(self._tokens)
        if token not in self._ids:
            raise ValueError(f"token={token!r}: expected a token of the vocabulary")
        return self._ids[token]

    @property
    def special_tokens(self) -> list[str]:
        """The special tokens of the vocabulary."""
        return [token for token in SPECIAL_TOKENS.values() if token in self._ids]

    @property
    def special_token_ids(self) -> list[int]:
        """The ids of `special_tokens`."""
        self._needed(self._tokens)
        return [self._ids[token] for token in self.special_tokens]

    # Tokenizing and detokenizing.

    def tokenize(self, inputs: Any) -> Any:
        """Converts text to ids; the same as calling the layer.

        Args:
            inputs: text, as in a call.

        Returns:
            Ids, as in a call.
        """
        lines = self._line_tokenizer()
        return self._cast(_line_module().map_lines(lines.ids, _line_module().to_strings(inputs)))

    def tokenize_with_offsets(self, inputs: Any, unit: str = "byte") -> tuple[Any, Any, Any]:
        """Converts text to ids with the offsets of each piece in the original text.

        Args:
            inputs: text, as in a call.
            unit: unit of the offsets: "byte" (of UTF-8) or "char" (code points, as in Python).

        Returns:
            `(ids, starts, ends)`, all of the same shape; offsets are int32, ends are exclusive. An
            [UNK] covers its whole word; a stripped accent belongs to the letter before it.

        Raises:
            ValueError: if `unit` is neither.
        """
        check_choice("unit", unit, ("byte", "char"))
        lines, module = self._line_tokenizer(), _line_module()
        function = lines.pieces if unit == "byte" else lines.pieces_by_character
        ids, starts, ends = module.map_lines(function, module.to_strings(inputs))
        return self._cast(ids), starts, ends

    def detokenize(self, inputs: Any) -> Any:
        """Joins the tokens of ids to text, with a space before all but `##` pieces.

        Args:
            inputs: ids [..., None], as (ragged) lists, an array or a tensor.

        Returns:
            A string tensor [...]. Case and spacing lost in tokenization are not restored.
        """
        return _line_module().join_pieces(inputs, self._line_tokenizer().tokens)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        # Keras inspects every string of a list, which takes longer than tokenizing them.
        if not hasattr(inputs, "dtype"):
            inputs = _line_module().to_strings(inputs)
        ids = super().__call__(inputs, *args, **kwargs)
        if not in_grain():
            return ids
        # Grain's workers exchange arrays and lists, not tensors.
        return ids.to_list() if hasattr(ids, "to_list") else ids.numpy()

    def call(self, inputs: Any, *args: Any, training: bool | None = None, **kwargs: Any) -> Any:
        # KerasHub's `call` converts ragged results to Python lists; here they stay tensors.
        return self.tokenize(inputs, *args, **kwargs)

    def compute_output_spec(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        return keras.KerasTensor(inputs.shape + (None,), dtype=self.compute_dtype)

    def _cast(self, ids: Any) -> Any:
        return ids if self.compute_dtype == "int32" else _line_module().tf.cast(ids, "int64")

    # Saving.

    def get_config(self) -> dict[str, Any]:
        """Returns all settings; the vocabulary is saved as a file by `save_assets`."""
        settings = {name: getattr(self, name) for name in SETTINGS}
        return super().get_config() | settings

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "BertTokenizer":
        """Creates a tokenizer from the result of `get_config`.

        Args:
            config: arguments of the constructor.

        Returns:
            The tokenizer.

        Raises:
            ValueError: if the config, which may come from a downloaded model, names a file to
                read, and Keras loads in safe mode.
        """
        path = config.get("vocabulary")
        if isinstance(path, str | os.PathLike) and serialization_lib.in_safe_mode():
            raise ValueError(
                f"vocabulary={str(path)!r}: expected no file outside the saved model; if you "
                "trust its source, load it with safe_mode=False"
            )
        return super().from_config(config)

    def save_assets(self, dir_path: str | os.PathLike[str]) -> None:
        """Writes `vocab.txt` into a directory.

        Args:
            dir_path: an existing directory.
        """
        write_vocabulary(os.path.join(dir_path, VOCABULARY_FILE), self.get_vocabulary())

    def load_assets(self, dir_path: str | os.PathLike[str]) -> None:
        """Reads `vocab.txt` from a directory.

        Args:
            dir_path: a directory with a `vocab.txt`.
        """
        self.set_vocabulary(os.path.join(dir_path, VOCABULARY_FILE))


def _checked(name: str, value: Any) -> Any:
    """A setting, validated and converted to the form in which it is stored."""
    if name in ("added_tokens", "exact_tokens"):
        if isinstance(value, str) or not all(isinstance(token, str) for token in value):
            raise ValueError(f"{name}={value!r:.200}: expected a list of tokens")
        return list(dict.fromkeys(value))
    if name == "max_word_length":
        return check_count(name, value)
    if name == "splitting":
        check_choice(name, value, SPLITTINGS)
    elif not isinstance(value, bool) and (name != "strip_accents" or value is not None):
        expected = "None, True or False" if name == "strip_accents" else "True or False"
        raise ValueError(f"{name}={value!r}: expected {expected}")
    return value


def _check_added(added: Sequence[str], exact: Sequence[str], tokens: Sequence[str]) -> None:
    """Raises a ValueError if the vocabulary lacks an added token."""
    known = set(tokens)
    if missing := [token for token in (*added, *exact) if token not in known]:
        raise ValueError(
            f"added_tokens, exact_tokens: {', '.join(map(repr, missing[:5]))} are not among the "
            f"{len(tokens)} tokens of the vocabulary: add them to it"
        )


def _line_module() -> Any:
    """Imports the part that needs TensorFlow, which importing the package does not."""
    with needed("BertTokenizer", "TensorFlow and TensorFlow Text", "tensorflow-text"):
        from keras_bert.text import lines
    return lines
