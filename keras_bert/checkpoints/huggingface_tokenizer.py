"""Tokenizer files of Hugging Face directories: vocab.txt, tokenizer.json and their settings.

Three programs read them: `tokenizers` takes tokenizer.json alone; transformers' BertTokenizer makes
a tokenizer of its own from the vocabulary and tokenizer_config.json; its PreTrainedTokenizerFast
takes tokenizer.json, and the names of special tokens from tokenizer_config.json.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from keras_bert.checkpoints.checks import short
from keras_bert.checkpoints.contents import Contents
from keras_bert.checkpoints.source import Source
from keras_bert.text.tokenizer import SPECIAL_TOKENS
from keras_bert.text.vocabulary import check_vocabulary, read_vocabulary, write_vocabulary

VOCABULARY, FAST, SETTINGS = "vocab.txt", "tokenizer.json", "tokenizer_config.json"
_ADDED, _MAP = "added_tokens.json", "special_tokens_map.json"
_BERT_CLASSES = ("BertTokenizer", "BertTokenizerFast")
# Those that do what tokenizer.json says; the second is what transformers 5 calls the first.
_GENERAL_CLASSES = ("PreTrainedTokenizerFast", "TokenizersBackend")
_ONLY = "only BERT's own rule is supported"
_THEIR_WORD_LENGTH = 100  # half of the original's
# Settings of tokenizer.json's model: their defaults, and what they may be.
_MODEL: dict[str, tuple[Any, Callable[[Any], bool], str]] = {
    "vocab": (
        None,
        lambda value: (
            isinstance(value, dict) and all(type(i) is int and i >= 0 for i in value.values())
        ),
        "an object of tokens and their ids",
    ),
    "unk_token": ("[UNK]", lambda value: value == "[UNK]", "[UNK]"),
    "continuing_subword_prefix": ("##", lambda value: value == "##", "##"),
    "max_input_chars_per_word": (
        None,
        lambda value: value is None or (type(value) is int and 1 <= value < 2**31),
        "a number from 1 to less than 2^31",
    ),
}


def read_tokenizer(
    source: Source, class_name: Any = None
) -> tuple[dict[str, Any] | None, list[str] | None]:
    """Reads the tokenizer.

    Tokens that were added to a vocabulary extend it, since they have rows in the word table. All
    except the five special tokens are matched in the text before BERT's pre-tokenization, as in
    transformers.

    `class_name` is the tokenizer's class, if config.json defines it.

    Returns:
        (`BertTokenizer` arguments, tokens by id); (None, None) if there are no such files.

    Raises:
        FileNotFoundError: if there are settings but no vocabulary.
        ValueError: if a file is damaged, files disagree, or the tokenization is not BERT's.
    """
    settings = source.json(SETTINGS) if source.has(SETTINGS) else {}
    fast = source.json(FAST) if source.has(FAST) else {}
    if not fast and not source.has(VOCABULARY):
        if not settings:
            return None, None
        raise FileNotFoundError(
            f"{source.name} has a {SETTINGS}, but neither {VOCABULARY} nor {FAST}, which hold the "
            "tokens"
        )
    where = f"{source.name}/{SETTINGS}"
    general = _is_general(settings.get("tokenizer_class") or class_name, bool(fast), where)
    _check_special_tokens(settings, where)
    if source.has(_MAP):
        _check_special_tokens(source.json(_MAP), f"{source.name}/{_MAP}")
    model = _wordpiece(fast, f"{source.name}/{FAST}") if fast else {}
    told = {} if general else settings
    # By spaces alone, to which tokenizer.json says nothing.
    by_rule = fast and told.get("do_basic_tokenize") is not False
    normalizer = _normalizer(fast, general, f"{source.name}/{FAST}") if by_rule else {}
    arguments = _arguments(told, normalizer, source.name)
    arguments["special_tokens_in_text"] = False
    arguments["max_word_length"] = model.get("max_input_chars_per_word") or _THEIR_WORD_LENGTH
    tokens = _base_tokens(source, model)
    added = [*_added_tokens(source, settings, fast)]
    _extend(tokens, added, source.name)
    check_vocabulary(tokens, source.name)
    # Files with more details of a token take precedence.
    rules = {token: flags for _, token, flags in reversed(added)}
    for special in SPECIAL_TOKENS.values():
        rules.pop(special, None)
    if alone := [token for token, flags in rules.items() if flags.get("single_word")]:
        raise ValueError(
            f"{source.name}: the added tokens {short(alone)} are found as single words alone; "
            "expected single_word false"
        )
    for name, normalized in (("added_tokens", True), ("exact_tokens", False)):
        found = [
            token
            for token in tokens
            if token in rules
            and bool(rules[token].get("normalized", not rules[token].get("special"))) is normalized
        ]
        if found:
            arguments[name] = [*dict.fromkeys(found)]
    return arguments, tokens


def _is_general(class_name: Any, has_fast: bool, where: str) -> bool:
    """Whether tokenizer.json alone defines the tokenization."""
    if class_name is None or class_name in _BERT_CLASSES:
        return False
    if class_name in _GENERAL_CLASSES and has_fast:
        return True
    if class_name == "BertJapaneseTokenizer":
        problem = (
            "a BertJapaneseTokenizer cuts text into words with MeCab, Sudachi or Juman++ before "
            "WordPiece, which is not done here: cut texts with the same program (fugashi for "
            "MeCab), join their words with spaces, and say in a copy of the file "
            '"tokenizer_class": "BertTokenizer", "do_basic_tokenize": false'
        )
    elif class_name in _GENERAL_CLASSES:
        problem = f"a {class_name} lies in {FAST}, which is missing"
    else:
        problem = f"the tokenizer is a {short(class_name)}; {_ONLY}: expected tokenizer_class "
        problem += ", ".join(_BERT_CLASSES + _GENERAL_CLASSES)
    raise ValueError(f"{where}: {problem}")


def _check_special_tokens(values: dict[str, Any], where: str) -> None:
    for key, token in SPECIAL_TOKENS.items():
        found = values.get(key)
        if isinstance(found, dict):
            found = found.get("content")
        if found is not None and found != token:
            raise ValueError(
                f"{where}: {key} is {short(found)}; special tokens under other names are not "
                f"supported: expected {token}"
            )


def _wordpiece(fast: dict[str, Any], where: str) -> dict[str, Any]:
    """The model of tokenizer.json, checked."""
    model = fast.get("model")
    if not isinstance(model, dict) or model.get("type", "WordPiece") != "WordPiece":
        kind = model.get("type") if isinstance(model, dict) else model
        raise ValueError(f"{where} holds no WordPiece vocabulary, but a model {short(kind)}")
    for key, (default, is_right, expected) in _MODEL.items():
        if not is_right(model.get(key, default)):
            raise ValueError(f"{where}: {key} is {short(model.get(key))}; expected {expected}")
    return model


def _normalizer(fast: dict[str, Any], general: bool, where: str) -> dict[str, Any]:
    """The normalizer of tokenizer.json, after a look at what goes before and after the model."""
    for part, kinds in {
        "normalizer": ("BertNormalizer",),
        "pre_tokenizer": ("BertPreTokenizer",),
        "post_processor": ("TemplateProcessing", "BertProcessing"),
    }.items():
        found = fast.get(part)
        # BertTokenizer puts its own in the place of a missing one.
        missing = found is None and (part == "post_processor" or not general)
        if not missing and (
            not isinstance(found, dict) or found.get("type", kinds[0]) not in kinds
        ):
            kind = found.get("type") if isinstance(found, dict) else found
            raise ValueError(f"{where}: its {part} is {short(kind)}; {_ONLY}: {kinds[0]}")
    around = (fast.get("post_processor") or {}).get("special_tokens")
    if around is not None and (not isinstance(around, dict) or set(around) != {"[CLS]", "[SEP]"}):
        raise ValueError(f"{where}: texts get {short(around)} around them; {_ONLY}")
    return fast.get("normalizer") or {}


def _arguments(settings: dict[str, Any], normalizer: dict[str, Any], name: str) -> dict[str, Any]:
    """How text is cleaned; tokenizer_config.json overrides tokenizer.json, as in transformers."""

    def flag(key: str, fast_key: str, default: bool | None) -> bool | None:
        for values, found in ((settings, key), (normalizer, fast_key)):
            value = values.get(found)
            # null is an answer for accents alone.
            if value is None and (found not in values or default is not None):
                continue
            if value is not None and not isinstance(value, bool):
                raise ValueError(f"{name}: its tokenizer has {found} {short(value)}")
            return value
        return default

    chinese = flag("tokenize_chinese_chars", "handle_chinese_chars", True)
    basic = flag("do_basic_tokenize", "", True)
    if not flag("", "clean_text", True):
        raise ValueError(f"{name}: its tokenizer does not clean text; {_ONLY}")
    if not basic:
        return {"lowercase": False, "strip_accents": False, "splitting": "spaces"}
    return {
        "lowercase": flag("do_lower_case", "lowercase", True),
        "strip_accents": flag("strip_accents", "strip_accents", None),
        "splitting": "bert" if chinese else "whole_ideographs",
    }


def _base_tokens(source: Source, model: dict[str, Any]) -> list[str]:
    """The tokens that were not added later: vocab.txt, which tokenizer.json may not contradict."""
    vocabulary = model.get("vocab", {})
    if not source.has(VOCABULARY):
        by_id = sorted(vocabulary, key=vocabulary.__getitem__)
        if [vocabulary[token] for token in by_id] != list(range(len(by_id))):
            raise ValueError(f"{source.name}/{FAST}: its ids are not 0, 1, 2, ...")
        return by_id
    lines = read_vocabulary(source.path(VOCABULARY))
    for token, i in vocabulary.items():
        if i >= len(lines) or lines[i] != token.strip(" \t"):
            line = short(lines[i]) if i < len(lines) else "missing"
            raise ValueError(
                f"{source.name}: {FAST} gives {short(token)} the id {i}, and that line of "
                f"{VOCABULARY} is {line}; remove the one that is wrong"
            )
    return lines


def _added_tokens(
    source: Source, settings: dict[str, Any], fast: dict[str, Any]
) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
    """Gives (id, token, flags) of all that was added, as three files may tell it, unchecked."""
    listed = fast.get("added_tokens") or []
    decoder = settings.get("added_tokens_decoder") or {}
    if not isinstance(listed, list) or not isinstance(decoder, dict):
        raise ValueError(
            f"{source.name}: added_tokens {short(listed)}, added_tokens_decoder {short(decoder)}"
        )
    for entry in listed:
        flags = entry if isinstance(entry, dict) else {}
        yield flags.get("id"), flags.get("content", entry), flags
    for key, entry in decoder.items():
        is_id = key.isascii() and key.isdigit() and len(key) < 10
        flags = entry if isinstance(entry, dict) else {}
        yield int(key) if is_id else key, flags.get("content", entry), flags
    if source.has(_ADDED):
        for token, i in source.json(_ADDED).items():
            yield i, token, {}


def _extend(tokens: list[str], added: list[tuple[Any, Any, dict[str, Any]]], name: str) -> None:
    """Appends added tokens to the vocabulary, if they are not in it."""
    by_id: dict[int, str] = {}
    for i, token, _ in added:
        right, line = type(i) is int and i >= 0 and isinstance(token, str), None
        if right:
            line = tokens[i] if i < len(tokens) else by_id.setdefault(i, token)
        if not right or line not in (token, token.strip(" \t")):
            problem = f", which is that of {short(line)}" if right else ""
            raise ValueError(
                f"{name}: an added token is {short(token)} with the id {short(i)}"
                f"{problem or '; expected a string and a whole number'}"
            )
    expected = range(len(tokens), len(tokens) + len(by_id))
    if sorted(by_id) != list(expected):
        raise ValueError(
            f"{name}: added tokens have the ids {short(sorted(by_id))}; expected those from "
            f"{len(tokens)} on without a gap"
        )
    tokens += [by_id[i] for i in expected]


def write_tokenizer(contents: Contents, folder: Path) -> list[str]:
    """Writes the tokenizer, if any, for transformers 4 and 5 and for `tokenizers`.

    The five special tokens that stand in a text are found there by all of these, which is not our
    default; texts of others that hold "[SEP]" get other ids there.

    Returns:
        Sentences on the differences.
    """
    if contents.vocabulary is None:
        return []
    arguments = contents.tokenizer or {}
    ids = {token: i for i, token in enumerate(contents.vocabulary)}  # of doubles the last counts
    special = {key: token for key, token in SPECIAL_TOKENS.items() if token in ids}
    lowercase = arguments.get("lowercase", True)
    longest = arguments.get("max_word_length", 200)
    write_vocabulary(folder / VOCABULARY, contents.vocabulary)
    splitting = arguments.get("splitting", "bert")
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": splitting == "bert",
        "strip_accents": arguments.get("strip_accents"),
        "lowercase": lowercase,
    }
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
    added = {
        ids[token]: {"content": token, **flags, "normalized": normalized, "special": is_special}
        for found, normalized, is_special in (
            (special.values(), False, True),
            (arguments.get("added_tokens", ()), True, False),
            (arguments.get("exact_tokens", ()), False, False),
        )
        for token in found
    }
    fast = _fast(ids, added, normalizer, longest)
    if splitting == "spaces":
        fast |= {"normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"}}
    _write(folder / FAST, fast)
    _write(folder / _MAP, special)
    settings = {
        "tokenizer_class": _BERT_CLASSES[0],
        "do_lower_case": lowercase,
        "strip_accents": normalizer["strip_accents"],
        "tokenize_chinese_chars": splitting == "bert",
        **({"do_basic_tokenize": False} if splitting == "spaces" else {}),
        "model_max_length": int(contents.config["max_sequence_length"]),
        "clean_up_tokenization_spaces": True,
        "added_tokens_decoder": {str(i): entry for i, entry in sorted(added.items())},
        # null for one that the vocabulary lacks: transformers would add it under a new id.
        **{key: special.get(key) for key in SPECIAL_TOKENS},
    }
    _write(folder / SETTINGS, settings)
    if longest == _THEIR_WORD_LENGTH:
        return []
    return [
        f"words of more than {_THEIR_WORD_LENGTH} characters are [UNK] to transformers' "
        f"BertTokenizer, whatever {FAST} says; here those of more than {longest} are"
    ]


def _fast(
    ids: dict[str, int],
    added: dict[int, dict[str, Any]],
    normalizer: dict[str, Any],
    longest: int,
) -> dict[str, Any]:
    """tokenizer.json: what `tokenizers` makes of transformers' BertTokenizer."""
    around = {t: {"id": t, "ids": [ids[t]], "tokens": [t]} for t in ("[CLS]", "[SEP]") if t in ids}

    def mark(token: str, segment: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": token, "type_id": segment}}

    def text(name: str, segment: int) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": segment}}

    single = [mark("[CLS]", 0), text("A", 0), mark("[SEP]", 0)]
    template = {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, text("B", 1), mark("[SEP]", 1)],
        "special_tokens": around,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, **entry} for i, entry in sorted(added.items())],
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": template if len(around) == 2 else None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": longest,
            "vocab": ids,
        },
    }


def _write(path: Path, values: dict[str, Any]) -> None:
    text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
    path.write_bytes(text.encode("utf-8"))
