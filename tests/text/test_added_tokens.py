"""Tokens that are found whole in the text, before BERT's rule cuts it."""

import json
import random

import keras
import pytest
import tensorflow as tf

from keras_bert import (
    BertBackbone,
    BertClassifier,
    BertClassifierPreprocessor,
    BertTokenizer,
    resize,
    save_checkpoint,
)
from keras_bert.checkpoints.huggingface_tokenizer import read_tokenizer
from keras_bert.checkpoints.source import Source

SPECIALS = "[PAD] [UNK] [CLS] [SEP] [MASK]".split()
WORDS = "the a cat ##s rain ##ing é e 人 . ! , b ##c x [ ] 1 - covid".split()
WORDS += "tele ##phone c + ##d 19 文".split()
ADDED = ["[E1]", "[/E1]", "covid-19", "covid", "c++", "@USER", "Telephone-Wire", "中文", "new york"]
ADDED += ["Éclair", "ab", "abc", "bcd", "c"]
EXACT = ["[E1]", "É", "new york", "abc"]
SETTINGS = [(True, None), (False, None), (True, False), (False, True)]


def vocabulary(*more):
    base = SPECIALS + WORDS
    return base + [token for token in dict.fromkeys(more) if token not in base]


def texts(count):
    rng = random.Random(0)
    parts = [*ADDED, "the cat", "cats", "C++", "Covid-19s", "COVID", "\u200b", "é", "E\u0301", "É"]
    parts += [" ", "\t", "  ", "-", ".", "cd", "[e1]", "[E1]x", "人", "中", "文", "new", "york"]
    parts += ["x", "\n", "\u00a0", "Ａ", "covid\u200b-19", "covid-", "19\u0301"]
    return [
        "".join(rng.choice(parts) + rng.choice(["", " "]) for _ in range(rng.randint(0, 8)))
        for _ in range(count)
    ]


@pytest.mark.one_quick
@pytest.mark.parametrize("exact", [[], EXACT], ids=["added", "exact"])
@pytest.mark.parametrize(("lowercase", "strip"), SETTINGS)
def test_ids_and_offsets_are_those_of_tokenizers(lowercase, strip, exact):
    library = pytest.importorskip("tokenizers")
    added = [token for token in ADDED if token not in exact]
    model = {token: i for i, token in enumerate(vocabulary())}
    theirs = library.Tokenizer(
        library.models.WordPiece(model, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    theirs.normalizer = library.normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip)
    theirs.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    theirs.add_tokens([library.AddedToken(token, normalized=True) for token in added])
    theirs.add_tokens([library.AddedToken(token, normalized=False) for token in exact])
    ours = BertTokenizer(
        vocabulary(*added, *exact),
        lowercase,
        strip,
        max_word_length=100,
        added_tokens=added,
        exact_tokens=exact,
    )
    lines = texts(300)
    found = ours.tokenize_with_offsets(lines, unit="char")
    assert ours(lines).to_list() == found[0].to_list()
    for text, ids, starts, ends in zip(lines, *(part.to_list() for part in found), strict=True):
        encoded = theirs.encode(text, add_special_tokens=False)
        assert ids == encoded.ids, text
        if "\u0301" not in text:  # here an accent that was stripped belongs to its letter
            assert [*zip(starts, ends, strict=True)] == encoded.offsets, text


@pytest.mark.thorough
def test_the_leftmost_token_counts_then_the_longest():
    tokens = ["ab", "abc", "bcd", "[E1]", "c++", "new york"]
    tokenizer = BertTokenizer(vocabulary(*tokens), added_tokens=tokens)
    lines = ["abcd", "xabx", "ab cd", "The [e1]cat", "C++c++", "new\tYork\n", "new", "york", "é[E1"]
    names = [[tokenizer.id_to_token(i) for i in row] for row in tokenizer(lines).to_list()]
    assert names[:6] == [
        ["abc", "[UNK]"],
        ["x", "ab", "x"],
        ["ab", "c", "##d"],
        ["the", "[E1]", "cat"],
        ["c++", "c++"],
        ["new york"],
    ]
    assert names[6:] == [["[UNK]"], ["[UNK]"], ["e", "[", "[UNK]"]]
    byte, _, ends = tokenizer.tokenize_with_offsets("é人[E1]x")
    assert byte.numpy().tolist()[2] == tokenizer.token_to_id("[E1]")
    assert ends.numpy().tolist() == [2, 5, 9, 10]


@pytest.mark.thorough
def test_a_fast_road_is_not_taken_by_a_line_that_may_hold_one():
    """Tokens of letters alone too, and lines in capitals and with accents."""
    tokenizer = BertTokenizer(vocabulary("covid", "ab c"), added_tokens=["covid", "ab c"])
    lines = ["xcovidx", "XCOVÍDX", "AB c", "áb\u00a0c", "a cat", "é a cat"]
    one_by_one = [tokenizer([line]).to_list()[0] for line in lines]
    assert one_by_one == tokenizer(lines).to_list()
    names = [[tokenizer.id_to_token(i) for i in row] for row in one_by_one]
    assert names[:2] == [["x", "covid", "x"]] * 2 and names[2:4] == [["ab c"]] * 2


def test_thousands_of_tokens():
    many = [f"[T{i}]" for i in range(6000)]
    tokenizer = BertTokenizer(vocabulary(*many), added_tokens=many)
    found = tokenizer(["the [t5999]cat", "[T17][T1]"]).to_list()
    assert [[tokenizer.id_to_token(i) for i in row] for row in found] == [
        ["the", "[T5999]", "cat"],
        ["[T17]", "[T1]"],
    ]


def test_added_tokens_are_in_the_vocabulary():
    with pytest.raises(ValueError, match=r"'\[E9\]' are not among the .* tokens of the vocabulary"):
        BertTokenizer(vocabulary(), added_tokens=["[E9]"])
    with pytest.raises(ValueError, match="added_tokens='the': expected a list"):
        BertTokenizer(vocabulary(), added_tokens="the")


# In tasks and files.

NEW = ["[E1]", "covid-19", "c++", "@USER", "telephone-wire", "dog", "##ly", "Éa"]
TEXT = "the [E1]dogs covid-19ly @user c++ telephone-wires catly ÉA"
PIECES = "the [E1] dog ##s covid-19 [UNK] @USER c++ telephone-wire [UNK] cat ##ly Éa".split()


def classifier():
    tokens = [*SPECIALS, "the", "cat", "##s"]
    backbone = BertBackbone(len(tokens), 1, 2, 8, 16, max_sequence_length=16)
    preprocessor = BertClassifierPreprocessor(BertTokenizer(tokens), 16)
    return BertClassifier(backbone, 2, preprocessor=preprocessor)


def pieces(tokenizer, text=TEXT):
    return [tokenizer.id_to_token(i) for i in tokenizer(text).numpy().tolist()]


@pytest.fixture(scope="module")
def grown():
    return resize(classifier(), new_tokens=NEW)


@pytest.mark.thorough
def test_new_tokens_that_the_rule_would_cut_are_found_whole(grown):
    tokenizer = grown.preprocessor.tokenizer
    assert tokenizer.added_tokens == [t for t in NEW if t not in ("dog", "##ly")]
    assert pieces(tokenizer) == PIECES


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("##c++", "could never be found"),
        (" x", "spaces or tabs around it"),
        ("\u200b", "not empty after normalization"),
        ("", "in the last place"),
        ("a\0", "expected a string without .* NUL"),
    ],
)
def test_new_tokens_that_could_never_be_found_are_refused(token, message):
    with pytest.raises(ValueError, match=message):
        resize(classifier(), new_tokens=[token])


@pytest.mark.one_quick
@pytest.mark.parametrize("form", ["preset", "keras", "google", "huggingface", "kerashub"])
def test_every_file_keeps_added_tokens(form, grown, tmp_path):
    grown.preprocessor.tokenizer.exact_tokens = ["cat"]
    try:
        if form == "preset":
            grown.save_to_preset(tmp_path / "p")
            back = BertClassifier.from_preset(tmp_path / "p")
        elif form == "keras":
            grown.save(tmp_path / "m.keras")
            back = keras.saving.load_model(tmp_path / "m.keras")
        else:
            save_checkpoint(grown, tmp_path / "c", form)
            back = BertClassifier.from_preset(tmp_path / "c", num_classes=2)
        tokenizer = back.preprocessor.tokenizer
        assert tokenizer.exact_tokens == ["cat"]
        assert pieces(tokenizer, "CATs cats") == pieces(grown.preprocessor.tokenizer, "CATs cats")
    finally:
        grown.preprocessor.tokenizer.exact_tokens = []
    tokenizer.exact_tokens = []
    assert pieces(tokenizer) == PIECES


def test_exports_find_added_tokens(grown, tmp_path):
    module = tf.Module()
    spec = [tf.TensorSpec([None], tf.string)]
    module.ids = tf.function(
        lambda text: grown.preprocessor(text)["token_ids"], spec, autograph=False
    )
    module.parts = grown.preprocessor.tokenizer._line_tokenizer()  # its tables
    tf.saved_model.save(module, str(tmp_path / "e"))
    loaded = tf.saved_model.load(str(tmp_path / "e"))
    expected = grown.preprocessor([TEXT, "c++"])["token_ids"].numpy().tolist()
    assert loaded.ids(tf.constant([TEXT, "c++"])).numpy().tolist() == expected


@pytest.mark.thorough
def test_hugging_face_added_tokens(grown, tmp_path):
    """Flags of tokenizer.json, as the tokenizers library reads them."""
    save_checkpoint(grown, tmp_path / "c", "huggingface")
    path = tmp_path / "c" / "tokenizer.json"
    fast = json.loads(path.read_text())
    size = len(fast["model"]["vocab"])
    flags = {"single_word": False, "lstrip": False, "rstrip": False}
    fast["added_tokens"] += [
        {"id": size, "content": "<e>", **flags, "normalized": False, "special": True},
        {"id": size + 1, "content": "Cat-Dog", **flags, "normalized": True, "special": False},
    ]
    path.write_text(json.dumps(fast))
    arguments, tokens = read_tokenizer(Source(tmp_path / "c"))
    assert arguments["exact_tokens"] == ["<e>"] and arguments["added_tokens"][-1] == "Cat-Dog"
    ours = BertTokenizer(tokens, **arguments)
    lines = [TEXT, "a <e>cat-dogs <E> CAT-DOG", "<e>c++"]
    library = pytest.importorskip("tokenizers")
    theirs = library.Tokenizer.from_file(str(path))
    for line, ids in zip(lines, ours(lines).to_list(), strict=True):
        assert theirs.encode(line, add_special_tokens=False).ids == ids

    fast["added_tokens"][-1]["single_word"] = True
    path.write_text(json.dumps(fast))
    with pytest.raises(ValueError, match="Cat-Dog.*single_word"):
        read_tokenizer(Source(tmp_path / "c"))
