"""The tokenizer's behaviour, on a toy vocabulary: every case is a trouble that users have met."""

import json
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_bert.text
from keras_bert.text.lines import line_tokenizer
from keras_bert.text.tokenizer import SPECIAL_TOKENS, BertTokenizer
from keras_bert.text.vocabulary import read_vocabulary, write_vocabulary

from . import reference_tokenizer as reference
from .toy_vocab import TOY_VOCAB


@pytest.fixture(scope="module")
def uncased():
    return BertTokenizer(TOY_VOCAB)


@pytest.fixture(scope="module")
def cased():
    return BertTokenizer(TOY_VOCAB, lowercase=False)


@pytest.fixture(scope="module")
def prompts():
    return BertTokenizer(TOY_VOCAB, special_tokens_in_text=True)


def ids(tokenizer, text):
    return tokenizer(text).numpy().tolist()


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


# Text.


@pytest.mark.thorough
def test_mask_in_text_is_text_unless_asked(uncased, prompts):
    assert ids(uncased, "The cat sat [MASK] mat.") == [5, 7, 8, 21, 23, 22, 10, 17]
    assert ids(prompts, "The cat sat [MASK] mat.") == [5, 7, 8, 4, 10, 17]


def test_only_the_exact_spelling_is_special(prompts):
    assert ids(prompts, "The CAT [MASK]") == [5, 7, 4]
    assert ids(prompts, "the cat [mask]") == [5, 7, 21, 23, 22]


def test_special_tokens_touch_their_neighbours(prompts):
    text = "é[SEP]The[MASK][MASK]s[PAD [CLS"
    token_ids, starts, ends = prompts.tokenize_with_offsets(text, unit="char")
    assert token_ids.numpy().tolist()[:5] == [58, 3, 5, 4, 4]
    pieces = [text[a:b] for a, b in zip(starts.numpy(), ends.numpy(), strict=True)]
    assert pieces == ["é", "[SEP]", "The", "[MASK]", "[MASK]", "s", "[", "PAD", "[", "CLS"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("note\x97book", [42]),
        ("note\x00book", [42]),
        ("note\ufffdbook", [42]),
        ("note\u200bbook", [42]),
        ("run\u00adning", [13, 14, 12]),
    ],
)
def test_control_characters_vanish(uncased, text, expected):
    assert ids(uncased, text) == expected


def test_ascii_symbols_stand_alone(uncased):
    assert ids(uncased, "cats$12#") == [7, 11, 26, 55, 25]
    assert ids(uncased, "un-run_cat") == [48, 27, 13, 46, 7]


def test_emoji_is_no_punctuation(uncased):
    assert ids(uncased, "hello😀") == [1]
    assert ids(uncased, "hello 😀") == [34, 45]


@pytest.mark.thorough
def test_accents_are_stripped_apart_from_case(uncased, cased):
    keeps = BertTokenizer(TOY_VOCAB, lowercase=True, strip_accents=False)
    assert ids(uncased, "한국") == [1]
    assert ids(keeps, "한국") == [32, 33]
    assert ids(cased, "한국") == [32, 33]
    assert ids(keeps, "CAFÉ straße") == [16, 39]
    assert ids(BertTokenizer(TOY_VOCAB, lowercase=False, strip_accents=True), "café Cat") == [
        15,
        43,
    ]


def test_cased_text_is_left_as_it_is(uncased, cased):
    assert ids(cased, "café") == [16]
    assert ids(uncased, "café") == [15]
    assert ids(cased, "The") == [1]


def test_word_limit_counts_characters(uncased):
    assert ids(uncased, "\u0e01" * 40) == [61] + [62] * 39
    assert ids(uncased, "\u0e01" * 200) == [61] + [62] * 199
    text = "a " + "\u0e01" * 201 + " cat"
    token_ids, starts, ends = uncased.tokenize_with_offsets(text, unit="char")
    assert token_ids.numpy().tolist() == [6, 1, 7]
    assert (starts.numpy().tolist(), ends.numpy().tolist()) == ([0, 2, 204], [1, 203, 207])


@pytest.mark.parametrize("limit", [1, pytest.param(65, marks=pytest.mark.slow), 300])
def test_any_word_limit(limit):
    tokenizer = BertTokenizer([*TOY_VOCAB, "x", "##x"], max_word_length=limit)
    assert ids(tokenizer, "x" * limit) == [63] + [64] * (limit - 1)
    assert ids(tokenizer, "x" * (limit + 1)) == [1]


def test_blank_text_gives_nothing(uncased):
    assert ids(uncased, "") == ids(uncased, " \t\n") == []
    batch = uncased(["", "the cat", " \t\n"])
    assert batch.to_list() == [[], [5, 7], []]
    mapped = tf.data.Dataset.from_tensor_slices(["", "the cat", " \t\n"]).batch(3).map(uncased)
    assert next(iter(mapped)).to_list() == batch.to_list()
    assert uncased(tf.constant([], tf.string)).to_list() == []


def test_offsets_point_into_the_original(uncased):
    text = "  The CAFE\u0301s, İSTANBUL\u200b straße\u3000中国!"
    token_ids, starts, ends = uncased.tokenize_with_offsets([text], unit="char")
    pieces = [text[a:b] for a, b in zip(starts[0].numpy(), ends[0].numpy(), strict=True)]
    # An accent that is stripped belongs to its letter.
    assert pieces == ["The", "CAFE\u0301", "s", ",", "İSTANBUL", "straße", "中", "国", "!"]
    assert token_ids.to_list() == [[5, 15, 11, 18, 37, 39, 28, 29, 20]]
    data = text.encode()
    _, starts, ends = uncased.tokenize_with_offsets([text])
    assert [
        data[a:b].decode() for a, b in zip(starts[0].numpy(), ends[0].numpy(), strict=True)
    ] == pieces
    assert starts.dtype == ends.dtype == tf.int32
    with pytest.raises(ValueError, match="unit='word': expected one of byte, char"):
        uncased.tokenize_with_offsets(text, unit="word")


def test_offsets_skip_invalid_bytes(uncased):
    data = b"\xff\xc3the \xe4\xb8cat\xed\xa0\x80s"
    token_ids, starts, ends = uncased.tokenize_with_offsets([data])
    assert token_ids.to_list() == [[5, 7, 11]]
    assert [data[a:b] for a, b in zip(starts[0].numpy(), ends[0].numpy(), strict=True)] == [
        b"the",
        b"cat",
        b"s",
    ]
    _, starts, ends = uncased.tokenize_with_offsets([data], unit="char")
    text = data.decode("utf-8", "ignore")
    assert [text[a:b] for a, b in zip(starts[0].numpy(), ends[0].numpy(), strict=True)] == [
        "the",
        "cat",
        "s",
    ]


# Forms of input and output.


def test_every_form_of_text(uncased):
    rows = [[5, 7], [6, 10]]
    texts = ["the cat", "a mat"]
    forms = [
        texts,
        tuple(texts),
        [text.encode() for text in texts],
        np.array(texts),
        np.array(texts, object),
        tf.constant(texts),
    ]
    for form in forms:
        result = uncased(form)
        assert isinstance(result, tf.RaggedTensor), form
        assert result.dtype == tf.int32
        assert result.to_list() == uncased.tokenize(form).to_list() == rows, form
    for form in ["the cat", b"the cat", np.array("the cat"), tf.constant("the cat")]:
        result = uncased(form)
        assert isinstance(result, tf.Tensor) and result.shape == (2,), form
        assert result.numpy().tolist() == [5, 7]


def test_text_of_higher_rank(uncased):
    nested = uncased([["the cat"], ["a", "mat"]])
    assert nested.to_list() == [[[5, 7]], [[6], [10]]]
    assert uncased([["the cat", "a"]]).to_list() == [[[5, 7], [6]]]


def test_in_a_graph_as_eagerly(uncased):
    texts = ["The cat", "a café ΣΑΣ", "\u0e01\u0e01 hello😀"]
    expected = [part.to_list() for part in uncased.tokenize_with_offsets(texts)]
    traced = tf.function(lambda x: uncased.tokenize_with_offsets(x))
    assert [part.to_list() for part in traced(tf.constant(texts))] == expected
    one = tf.data.Dataset.from_tensor_slices(texts).map(uncased)
    assert [row.numpy().tolist() for row in one] == expected[0]


def test_what_is_not_text_is_refused(uncased):
    with pytest.raises(TypeError, match="expected text"):
        uncased.tokenize([1, 2])
    with pytest.raises(TypeError, match="expected text"):
        uncased.tokenize(["the", None])


def test_dtype():
    assert BertTokenizer(TOY_VOCAB, dtype="int64")(["the"]).dtype == tf.int64
    with pytest.raises(ValueError, match="dtype='float32': expected one of int32, int64"):
        BertTokenizer(TOY_VOCAB, dtype="float32")


def test_detokenize(uncased):
    assert uncased.detokenize([5, 7, 11]).numpy() == b"the cats"
    text = uncased.detokenize([[48, 49, 50], [2, 7, 3]])
    assert text.numpy().tolist() == [b"unaffable", b"[CLS] cat [SEP]"]
    assert uncased.detokenize(uncased(["The café!", ""])).numpy().tolist() == [b"the cafe !", b""]


def test_vocabulary_queries(uncased):
    assert uncased.get_vocabulary() == TOY_VOCAB
    assert uncased.vocabulary_size() == len(TOY_VOCAB) == 63
    assert uncased.id_to_token(42) == "notebook"
    assert uncased.token_to_id("notebook") == 42
    assert [getattr(uncased, name) for name in SPECIAL_TOKENS] == TOY_VOCAB[:5]
    assert [getattr(uncased, f"{name}_id") for name in SPECIAL_TOKENS] == [0, 1, 2, 3, 4]
    assert uncased.special_token_ids == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="id=63: expected 0 to 62"):
        uncased.id_to_token(63)
    with pytest.raises(ValueError, match="'dog'"):
        uncased.token_to_id("dog")


# The vocabulary file.


def test_only_line_feeds_end_a_line(tmp_path):
    path = write(tmp_path / "vocab.txt", "[PAD]\n[UNK]\n\u2028\ncat\n")
    assert read_vocabulary(path) == ["[PAD]", "[UNK]", "\u2028", "cat"]
    more = write(tmp_path / "more.txt", "[PAD]\n[UNK]\n\u2028\n\x85\n\x0c\n[CLS]\n[SEP]\ncat\n")
    tokenizer = BertTokenizer(more)
    assert tokenizer.vocabulary_size() == 8
    assert ids(tokenizer, "a\u2028cat") == [1, 7]


def test_doubles_keep_their_rows(tmp_path):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "sat", "cat", "mat"]
    tokenizer = BertTokenizer(write(tmp_path / "vocab.txt", "\n".join(tokens)))
    tokenizer.save_assets(tmp_path / "saved")
    loaded = BertTokenizer()
    loaded.load_assets(tmp_path / "saved")
    for each in (tokenizer, loaded):
        assert each.vocabulary_size() == 9
        assert ids(each, "sat mat cat") == [6, 8, 7]
        assert each.token_to_id("cat") == 7
        assert each.get_vocabulary() == tokens


def test_vocabulary_without_mask(tmp_path):
    tokenizer = BertTokenizer([token for token in TOY_VOCAB if token != "[MASK]"])
    assert tokenizer.mask_token_id is None
    assert tokenizer.mask_token == "[MASK]"
    assert ids(tokenizer, "the cat") == [4, 6]


@pytest.mark.parametrize("missing", ["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
def test_missing_special_token_is_named(tmp_path, missing):
    tokens = [token for token in TOY_VOCAB if token != missing]
    path = write(tmp_path / "vocab.txt", "\n".join(tokens))
    with pytest.raises(ValueError) as error:
        BertTokenizer(path)
    assert str(path) in str(error.value) and f"{missing} is on none of" in str(error.value)
    with pytest.raises(ValueError, match="the vocabulary list"):
        BertTokenizer(tokens)


@pytest.mark.parametrize(
    ("prefix", "end", "suffix"), [("", "\r\n", ""), ("", "\n", "\n"), ("\ufeff", "\n", "")]
)
def test_line_ends_and_marks_do_not_matter(tmp_path, prefix, end, suffix):
    text = prefix + "".join(token + end for token in TOY_VOCAB) + suffix
    tokenizer = BertTokenizer(write(tmp_path / "vocab.txt", text))
    assert tokenizer.get_vocabulary() == TOY_VOCAB
    assert tokenizer.pad_token_id == 0


def test_blank_line_inside_keeps_its_id(tmp_path):
    tokens = ["[PAD]", "[UNK]", "", "[CLS]", "[SEP]", "cat"]
    tokenizer = BertTokenizer(write(tmp_path / "vocab.txt", "\n".join(tokens)))
    assert ids(tokenizer, "cat") == [5]
    write_vocabulary(tmp_path / "again.txt", tokenizer.get_vocabulary())
    assert read_vocabulary(tmp_path / "again.txt") == tokens


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "one token per line, but it is empty"),
        (b"[PAD]\n[UNK]\n\xff\xfe\n", "line 3: expected UTF-8 text.* byte 0xff"),
        (b"[PAD]\n[UNK]\na\0b\n", "token 2: expected a string without .*NUL.*, got 'a.x00b'"),
        (b'{"model": {"type": "WordPiece"}}', "line 1 is '{\"model.*This looks like JSON"),
        (b"the\ncat\n", r"\[UNK\] is on none of its 2 lines; line 1 is 'the'"),
    ],
)
def test_what_is_no_vocabulary_is_refused(tmp_path, data, message):
    path = write(tmp_path / "file.bin", data)
    with pytest.raises(ValueError, match=message) as error:
        BertTokenizer(path)
    assert str(path) in str(error.value)


def test_tokens_that_no_line_can_hold_are_refused():
    with pytest.raises(ValueError, match="token 63: expected a string"):
        BertTokenizer([*TOY_VOCAB, "a\nb"])
    with pytest.raises(ValueError, match="token 63: expected a string"):
        BertTokenizer([*TOY_VOCAB, 5])


def test_failed_write_leaves_the_old_file(tmp_path):
    path = write(tmp_path / "vocab.txt", "old\n")
    with pytest.raises(UnicodeEncodeError):
        write_vocabulary(path, ["\ud800"])
    assert path.read_text() == "old\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["vocab.txt"]


def test_use_before_a_vocabulary_is_set():
    tokenizer = BertTokenizer()
    with pytest.raises(ValueError, match="no vocabulary yet"):
        tokenizer("the cat")
    tokenizer.set_vocabulary(TOY_VOCAB)
    assert ids(tokenizer, "the cat") == [5, 7]


# Saving.

SETTINGS = {
    "lowercase": False,
    "strip_accents": True,
    "special_tokens_in_text": True,
    "max_word_length": 3,
}


def test_settings_travel(tmp_path):
    tokenizer = BertTokenizer(TOY_VOCAB, **SETTINGS)
    config = json.loads(json.dumps(tokenizer.get_config()))
    assert config.items() >= SETTINGS.items()
    assert "vocabulary" not in config
    tokenizer.save_assets(tmp_path)
    loaded = BertTokenizer.from_config(config)
    loaded.load_assets(tmp_path)
    text = "Cat café cat ab [MASK]"
    assert ids(loaded, text) == ids(tokenizer, text) == [43, 1, 7, 60, 4]


@pytest.mark.slow
def test_a_saved_model_keeps_everything_in_a_new_process(tmp_path):
    code = """
import sys, keras, keras_bert.text.tokenizer, tensorflow as tf
model = keras.models.load_model(sys.argv[1])
print(tf.constant(model.layers[-1]("Cat cat caf\\u00e9 [MASK]")).numpy().tolist())
"""
    tokenizer = BertTokenizer(TOY_VOCAB, lowercase=False, max_word_length=3)
    text = keras.Input((), dtype="string")
    model = keras.Model(text, tokenizer(text))
    model.save(tmp_path / "model.keras")
    run = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "model.keras"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout.splitlines()[-1]) == [43, 7, 1, 21, 1, 22]


def test_a_saved_graph_needs_no_vocabulary_file(tmp_path, uncased):
    class Server(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def serve(self, text):
            return uncased(text).to_tensor(shape=[None, 4])

    tf.saved_model.save(Server(), tmp_path / "saved")
    loaded = tf.saved_model.load(tmp_path / "saved")
    texts = ["The cat", "hello😀 ΣΑΣ", "naïve"]
    expected = uncased(texts).to_tensor(shape=[None, 4]).numpy().tolist()
    assert loaded.serve(tf.constant(texts)).numpy().tolist() == expected


def test_missing_tensorflow_text_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)
    for name in ("lines", "wordpiece"):  # forget that they were imported
        monkeypatch.delitem(sys.modules, f"keras_bert.text.{name}", raising=False)
        monkeypatch.delattr(keras_bert.text, name, raising=False)
    tokenizer = BertTokenizer(TOY_VOCAB)  # ids and settings need no text ops
    assert tokenizer.vocabulary_size() == len(TOY_VOCAB)
    with pytest.raises(ImportError, match="pip install tensorflow-text"):
        tokenizer.tokenize(["the cat"])


@pytest.mark.parametrize("lowercase", [True, False])
def test_ideographs_may_stay_together_and_words_end_at_spaces_alone(lowercase):
    """Against transformers' rules in plain Python."""
    vocabulary = (
        "[PAD] [UNK] [CLS] [SEP] [MASK] 北京 ##大 北 ##京 the The , cafe café ##. a".split()
    )
    texts = [
        "北京大 the,",
        "The 北北 café.",
        "a\u3000the\u0000 a\u200bthe",
        "北京, 大",
        "  ",
        "a\x07 a",
    ]
    ids = {token: i for i, token in enumerate(vocabulary)}

    def pieces(word):
        found, begin = [], 0
        while begin < len(word):
            for end in range(len(word), begin, -1):
                piece = ("##" if begin else "") + word[begin:end]
                if piece in ids:
                    found.append(ids[piece])
                    begin = end
                    break
            else:
                return [1]
        return found

    def words(text, ideographs):
        """The basic tokenizer without its step for ideographs."""
        found = []
        for word in "".join(c for c in text if not reference.is_dropped(c)).split():
            word, part = reference.normalize_word(word, lowercase, lowercase), ""
            for c in word:
                if reference.is_punctuation(c):
                    found += [part, c]
                    part = ""
                else:
                    part += c
            found.append(part)
        return [word for word in found if word]

    whole = BertTokenizer(vocabulary, lowercase, splitting="whole_ideographs")
    expected = [[i for word in words(text, False) for i in pieces(word)] for text in texts]
    assert whole(texts).to_list() == expected
    assert expected[0][:2] == [5, 6]
    plain = BertTokenizer(vocabulary, lowercase=False, strip_accents=False, splitting="spaces")
    expected = [[i for word in text.split() for i in pieces(word)] for text in texts]
    assert plain(texts).to_list() == expected
    again = BertTokenizer.from_config(whole.get_config() | {"vocabulary": vocabulary})
    assert again.splitting == "whole_ideographs"
    with pytest.raises(ValueError, match="splitting='words': expected one of bert"):
        BertTokenizer(vocabulary, splitting="words")


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("splitting", "expected"),
    [
        ("bert", "a b ! [UNK] [E1] b ! 中 国 [E1] A [MASK] b !"),
        ("whole_ideographs", "a b ! [UNK] [E1] b ! 中国 [E1] A [MASK] b !"),
        ("spaces", "a b! [UNK] [E1] b! 中国 [E1] A [MASK] b!"),
    ],
)
def test_tokens_that_are_found_whole_under_each_splitting(splitting, expected):
    vocabulary = "[PAD] [UNK] [CLS] [SEP] [MASK] a b ! b! [E1] c[E1] 中国 中 国 A ##国".split()
    tokenizer = BertTokenizer(
        vocabulary, special_tokens_in_text=True, added_tokens=["[E1]"], exact_tokens=["A"]
    )
    tokenizer("a")
    tokenizer.splitting = splitting
    text = "a b! x[e1]b! 中国[E1] A [MASK]b!"
    ids, starts, ends = tokenizer.tokenize_with_offsets(text, unit="char")
    assert [vocabulary[i] for i in ids] == expected.split()
    for i, start, end in zip(ids, starts, ends, strict=True):
        if vocabulary[i] not in ("[UNK]", "[E1]"):
            assert text[int(start) : int(end)] == vocabulary[i]
    with pytest.raises(ValueError, match="splitting='words': expected one of bert"):
        tokenizer.splitting = "words"
    assert tokenizer.splitting == splitting


@pytest.mark.thorough
def test_tokenizers_alike_share_what_is_traced():
    first = BertTokenizer(TOY_VOCAB)
    expected = first("the quick fox").numpy()
    made = line_tokenizer.cache_info().misses
    alike = BertTokenizer(list(TOY_VOCAB))
    assert alike("the quick fox").numpy().tolist() == expected.tolist()
    assert line_tokenizer.cache_info().misses == made
    # Another setting or vocabulary is another tokenizer, also in one that has been used.
    alike.lowercase = False
    turned = BertTokenizer([*TOY_VOCAB[:5], *reversed(TOY_VOCAB[5:])])
    assert [TOY_VOCAB[i] for i in first("THE")] == ["the"]
    assert [TOY_VOCAB[i] for i in alike("THE")] == ["[UNK]"]
    words = [turned.get_vocabulary()[i] for i in turned("the quick fox")]
    assert words == [TOY_VOCAB[i] for i in expected]
    assert line_tokenizer.cache_info().misses == made + 2
