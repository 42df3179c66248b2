"""Tokenizer files of Hugging Face directories, in and out."""

import json
from pathlib import Path

import pytest

from keras_bert import BertTokenizer
from keras_bert.checkpoints.contents import Contents
from keras_bert.checkpoints.huggingface_tokenizer import read_tokenizer, write_tokenizer
from keras_bert.checkpoints.source import Source

from .huggingface_folders import WORDS

TEXTS = [
    "The cats sat in the rain, raining!",
    "THE CAT's é É éÉ e\u0301 abc xabc",
    "人a人 cat.cat ##s [ MASK ] a\u200bb a\x07b\u00a0the\tc",
    "a" * 101 + " x " + "abc" * 30 + " A" + "b" * 99,
    "İstanbul ΣΑΣ Ａ ½ ﬁ ß",
    "",
]


def contents(**arguments) -> Contents:
    arguments = {
        "lowercase": True,
        "strip_accents": None,
        "max_word_length": 100,
        "splitting": "bert",
        "special_tokens_in_text": False,
        **arguments,
    }
    config = {"max_sequence_length": 13}
    return Contents("made up", config, tokenizer=arguments, vocabulary=list(WORDS))


def read(folder: Path):
    return read_tokenizer(Source(folder))


def edit(path: Path, **changes) -> None:
    """Changes keys of a JSON file; None takes one out."""
    values = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    values = {key: value for key, value in (values | changes).items() if value is not None}
    path.write_text(json.dumps(values), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    """What we write for an uncased vocabulary."""
    assert write_tokenizer(contents(), tmp_path) == []
    return tmp_path


# Out.


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"lowercase": False},
        {"lowercase": False, "strip_accents": True},
        {"strip_accents": False},
        {"max_word_length": 7},
        {"splitting": "whole_ideographs"},
        {"lowercase": False, "strip_accents": False, "splitting": "spaces"},
        {"splitting": "whole_ideographs", "added_tokens": ["."], "exact_tokens": ["b"]},
        {
            "lowercase": False,
            "strip_accents": False,
            "splitting": "spaces",
            "added_tokens": ["."],
            "exact_tokens": ["b"],
        },
    ],
)
def test_tokenizers_gives_our_ids(arguments, tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    written = contents(**arguments)
    notes = write_tokenizer(written, tmp_path)
    assert len(notes) == ("max_word_length" in arguments)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    ours = BertTokenizer(WORDS, **written.tokenizer)
    for text, ids in zip(TEXTS, ours(TEXTS).to_list(), strict=True):
        assert theirs.encode(text, add_special_tokens=False).ids == ids, text
        assert theirs.encode(text).ids == [2, *ids, 3]
    pair = theirs.encode("the cat", "a cat")
    assert pair.ids == [2, 5, 7, 3, 6, 7, 3] and pair.type_ids == [0, 0, 0, 0, 1, 1, 1]
    assert theirs.encode("the [MASK]").ids == [2, 5, 4, 3]
    assert theirs.decode([5, 7, 8]) == "the cats"
    assert read(tmp_path) == (written.tokenizer, WORDS)


def test_files_that_transformers_looks_for(folder):
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    assert settings["tokenizer_class"] == "BertTokenizer" and settings["do_lower_case"] is True
    assert settings["strip_accents"] is None and settings["tokenize_chinese_chars"] is True
    assert settings["model_max_length"] == 13 and settings["mask_token"] == "[MASK]"
    special = json.loads((folder / "special_tokens_map.json").read_text())
    assert special == {f"{t.lower()[1:-1]}_token": t for t in WORDS[:5]}


def test_a_vocabulary_with_gaps_and_doubles(tmp_path):
    """Of doubles the last counts, and a special token that is not there stays away."""
    written = contents()
    written.vocabulary = ["the", "[PAD]", "[CLS]", "[UNK]", "the", "[SEP]", "", "cat"]
    write_tokenizer(written, tmp_path)
    assert read(tmp_path) == (written.tokenizer, written.vocabulary)
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["mask_token"] is None
    tokenizers = pytest.importorskip("tokenizers")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert theirs.encode("the cat x").ids == [2, 4, 7, 3, 5]


def test_without_a_text_side(tmp_path):
    written = contents()
    written.vocabulary = written.tokenizer = None
    assert write_tokenizer(written, tmp_path) == [] and list(tmp_path.iterdir()) == []
    assert read(tmp_path) == (None, None)
    edit(tmp_path / "tokenizer_config.json", do_lower_case=True)
    with pytest.raises(FileNotFoundError, match="neither vocab.txt nor tokenizer.json"):
        read(tmp_path)


# In.


@pytest.mark.parametrize("missing", ["vocab.txt", "tokenizer.json", "tokenizer_config.json"])
def test_one_file_may_be_missing(missing, tmp_path):
    written = contents(lowercase=False, strip_accents=True)
    write_tokenizer(written, tmp_path)
    (tmp_path / missing).unlink()
    assert read(tmp_path) == (written.tokenizer, WORDS)


def test_settings_go_before_the_normalizer_but_not_in_a_general_tokenizer(folder):
    edit(folder / "tokenizer_config.json", do_lower_case=False, strip_accents=True)
    found, _ = read(folder)
    assert (found["lowercase"], found["strip_accents"]) == (False, True)
    for name in ("PreTrainedTokenizerFast", "TokenizersBackend"):
        edit(folder / "tokenizer_config.json", tokenizer_class=name)
        found, _ = read(folder)
        assert (found["lowercase"], found["strip_accents"]) == (True, None)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match="a TokenizersBackend lies in tokenizer.json, .* missing"):
        read(folder)


@pytest.mark.parametrize("file", ["added_tokens.json", "tokenizer.json", "tokenizer_config.json"])
def test_added_tokens_extend_the_vocabulary(file, folder):
    n = len(WORDS)
    special = [{"id": 4, "content": "[MASK]"}]
    values = {
        "added_tokens.json": {"<e2>": n + 1, "<e1>": n},
        "tokenizer.json": {
            "added_tokens": [{"id": n + 1, "content": "<e2>"}, {"id": n, "content": "<e1>"}]
            + special
        },
        "tokenizer_config.json": {
            "added_tokens_decoder": {
                str(n): {"content": "<e1>"},
                str(n + 1): {"content": "<e2>"},
                "4": {"content": "[MASK]"},
            }
        },
    }
    edit(folder / file, **values[file])
    assert read(folder)[1] == [*WORDS, "<e1>", "<e2>"]
    edit(folder / "added_tokens.json", **{"<e1>": n, "<e2>": n + 1, "<e4>": n + 3})
    with pytest.raises(ValueError, match=f"expected those from {n} on without a gap"):
        read(folder)
    edit(folder / "added_tokens.json", **{"<e4>": n})
    with pytest.raises(ValueError, match=f"'<e.>' with the id {n}, which is that of '<e.>'"):
        read(folder)


def test_an_added_token_in_anothers_place(folder):
    edit(folder / "added_tokens.json", **{"<e1>": 7})
    with pytest.raises(ValueError, match="'<e1>' with the id 7, which is that of 'cat'"):
        read(folder)
    edit(folder / "tokenizer.json", added_tokens=[{"id": 7, "content": None}])
    with pytest.raises(ValueError, match="is None with the id 7; expected a string and a whole nu"):
        read(folder)


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        ("tokenizer_config.json", {"tokenizer_class": ["x"]}, r"tokenizer is a \['x'\]"),
        ("tokenizer_config.json", {"cls_token": "<s>"}, "cls_token is '<s>'; .* expected .CLS"),
        ("tokenizer_config.json", {"sep_token": {"content": "</s>"}}, "sep_token is '</s>'"),
        ("special_tokens_map.json", {"pad_token": "<pad>"}, "_map.json: pad_token is '<pad>'"),
        ("tokenizer.json", {"normalizer": {"clean_text": False}}, "does not clean text; only"),
        ("tokenizer_config.json", {"do_lower_case": "yes"}, "has do_lower_case 'yes'"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"x": "y"}}, "'y' with the id 'x'"),
        ("tokenizer.json", {"added_tokens": 3}, "added_tokens 3"),
        (
            "tokenizer.json",
            {"model": {"type": "BPE"}},
            "no WordPiece vocabulary, but a model 'BPE'",
        ),
        ("tokenizer.json", {"model": {"vocab": {"[UNK]": "x"}}}, "of tokens and their ids"),
        (
            "tokenizer.json",
            {"model": {"vocab": {"[UNK]": 0}, "unk_token": "<unk>"}},
            "unk_token is '<unk>'",
        ),
        (
            "tokenizer.json",
            {"model": {"vocab": {}, "max_input_chars_per_word": 0}},
            "max_input_chars_per_word is 0",
        ),
        ("tokenizer.json", {"normalizer": {"type": "NFKC"}}, "its normalizer is 'NFKC'; only"),
        ("tokenizer.json", {"pre_tokenizer": {"type": "Metaspace"}}, "pre_tokenizer is 'Metaspa"),
        (
            "tokenizer.json",
            {"post_processor": {"type": "TemplateProcessing", "special_tokens": {"<s>": {}}}},
            "texts get {'<s>': {}} around them",
        ),
        (
            "tokenizer.json",
            {"model": {"vocab": {"[UNK]": 0, "the": 5}}},
            r"gives '\[UNK\]' the id 0, and that line of vocab.txt is '\[PAD\]'",
        ),
        ("tokenizer.json", {"model": {"vocab": {"x": 99}}}, "line of vocab.txt is missing"),
        (
            "tokenizer_config.json",
            {"tokenizer_class": "BertJapaneseTokenizer"},
            "cuts text into words with MeCab.*join their words with spaces.*do_basic_tokenize",
        ),
    ],
)
def test_what_is_not_berts(file, changes, message, folder):
    edit(folder / file, **changes)
    with pytest.raises(ValueError, match=message) as error:
        read(folder)
    assert str(folder) in str(error.value)


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [
        ({"[UNK]": 0, "a": 2}, "its ids are not 0, 1, 2"),
        ({"[UNK]": 0, "\ud800": 1}, "token 1: expected .*unpaired surrogate"),
        ({"a": 0}, "with .UNK., one token per line"),
        ({"[UNK]": 0, "a\n": 1}, "token 1: expected a string without a line end"),
    ],
)
def test_vocabularies_that_are_none(vocabulary, message, tmp_path):
    edit(tmp_path / "tokenizer.json", model={"type": "WordPiece", "vocab": vocabulary})
    with pytest.raises(ValueError, match=message):
        read(tmp_path)


@pytest.mark.parametrize("file", ["tokenizer_config.json", "tokenizer.json"])
def test_settings_of_where_words_end(file, folder):
    """`tokenize_chinese_chars` in either file, `do_basic_tokenize` in the settings."""
    if file == "tokenizer.json":
        fast = json.loads((folder / file).read_text(encoding="utf-8"))
        edit(folder / file, normalizer=fast["normalizer"] | {"handle_chinese_chars": False})
        edit(folder / "tokenizer_config.json", tokenize_chinese_chars=None)
    else:
        edit(folder / file, tokenize_chinese_chars=False)
    arguments, tokens = read(folder)
    assert arguments["splitting"] == "whole_ideographs" and arguments["lowercase"]
    edit(folder / "tokenizer_config.json", do_basic_tokenize=False)
    arguments, tokens = read(folder)
    assert arguments["splitting"] == "spaces" and not arguments["lowercase"]
    assert BertTokenizer(tokens, **arguments)(["the cat", "The cat."]).to_list() == [[5, 7], [1, 1]]
