"""Rows of questions and windows, and where answers stand in them (cases QA of the users' log)."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertQuestionAnswererPreprocessor, BertTokenizer
from keras_bert.data import read_squad
from keras_bert.text.question_answering_preprocessor import QuestionRows, span_labels

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] where is the cat mat ##s on . , ( ) a e é 中 国 人 😀 1854"
WORDS = [*WORDS.split(), *(f"w{i}" for i in range(40))]


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(WORDS)


def make(tokenizer, length=24, stride=128, question=5, **kwargs):
    return BertQuestionAnswererPreprocessor(
        tokenizer, length, stride=stride, max_question_length=question, **kwargs
    )


def words(count, first=0):
    return " ".join(f"w{i}" for i in range(first, first + count))


def encode(preprocessor, questions, contexts):
    return QuestionRows(*(part.numpy() for part in preprocessor.encode(questions, contexts)))


def span_of(context, answer):
    start = context.index(answer)
    return start, start + len(answer)


def labels_of(rows, *spans):
    labels, found = span_labels(rows, *np.array(spans).T)
    return labels.numpy().tolist(), found.numpy().tolist()


@pytest.mark.thorough
def test_a_row_is_question_and_window(tokenizer):
    rows = encode(make(tokenizer, 16), ["Where is the cat"], ["On the mat."])
    names = [WORDS[i] for i in rows.token_ids[0]]
    assert names[:11] == "[CLS] where is the cat [SEP] on the mat . [SEP]".split()
    assert rows.segment_ids[0].tolist() == [0] * 6 + [1] * 5 + [0] * 5
    assert rows.padding_mask[0].tolist() == [1] * 11 + [0] * 5
    assert rows.starts[0].tolist() == [-1] * 6 + [0, 3, 7, 10] + [-1] * 6
    assert rows.ends[0].tolist() == [-1] * 6 + [2, 6, 10, 11] + [-1] * 6
    assert rows.most_context[0].tolist() == [False] * 6 + [True] * 4 + [False] * 6
    ids = make(tokenizer, 16)((["Where is the cat"], ["On the mat."]))
    assert sorted(ids) == ["padding_mask", "segment_ids", "token_ids"]
    for name, value in ids.items():
        assert value.dtype == tf.int32
        np.testing.assert_array_equal(value, getattr(rows, name))


def test_an_answer_in_later_windows(tokenizer):
    preprocessor = make(tokenizer, length=20, stride=6)
    context = words(30)
    rows = encode(preprocessor, ["where is the cat mat"], [context])
    assert rows.window_start.tolist() == [0, 6, 12, 18]
    assert (rows.starts >= 0).sum(axis=1).tolist() == [12, 12, 12, 12]
    assert rows.context_begin.tolist() == [7] * 4 and rows.example.tolist() == [0] * 4
    labels, found = labels_of(rows, span_of(context, "w13 w14"))
    assert labels == [[0, 0], [14, 15], [8, 9], [0, 0]] and found == [True]
    # Reaching over the end of the second window, it is in the third alone.
    assert labels_of(rows, span_of(context, "w17 w18"))[0] == [[0, 0]] * 2 + [[12, 13], [0, 0]]
    # Longer than a window, it is in none.
    assert labels_of(rows, span_of(context, words(13, 8))) == ([[0, 0]] * 4, [True])


def test_spaces_of_the_context_stay(tokenizer):
    context = "  where  is the cat"
    assert context[16:19] == "cat"
    rows = encode(make(tokenizer), ["where"], [context])
    ((first, last),), _ = labels_of(rows, (16, 19))
    assert first == last and WORDS[rows.token_ids[0, first]] == "cat"
    assert (rows.starts[0, first], rows.ends[0, last]) == (16, 19)


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("context", "answer", "expected"),
    [
        ("the 中国人 cat", "国人", "国人"),
        ("😀 the cat 😀😀 mat", "😀😀", "😀😀"),  # one unknown word
        ("e\u0301 the cafe\u0301 cat", "cafe\u0301", "cafe\u0301"),  # accents of their own
        ("the é cat", "é", "é"),
        ("the  cat  on", "cat  on", "cat  on"),
        ("is 1854s the", "1854", "1854"),  # in the middle of a word
        ("is (1854) the", "1854", "1854"),
        ("the mats on", "ats", "mats"),  # in the middle of a piece: what holds it
        ("the 1854s", "54s", "1854s"),
        ("the cat ", "cat ", "cat"),
    ],
)
def test_characters_of_answers(tokenizer, context, answer, expected):
    rows = encode(make(tokenizer), ["where"], [context])
    ((first, last),), found = labels_of(rows, span_of(context, answer))
    assert found == [True] and first > 0
    assert context[rows.starts[0, first] : rows.ends[0, last]] == expected


def test_no_answer_and_answers_without_a_piece(tokenizer):
    rows = encode(make(tokenizer), ["where"] * 3, ["the cat", "the \u200b cat", ""])
    labels, found = labels_of(rows, (0, 0), (4, 5), (0, 0))
    assert labels == [[0, 0]] * 3 and found == [False] * 3
    assert [WORDS[i] for i in rows.token_ids[2][:4]] == "[CLS] where [SEP] [SEP]".split()


def test_questions_that_are_too_long(tokenizer):
    with pytest.raises(ValueError, match="sequence_length=64: expected .* room for .* a context"):
        make(tokenizer, length=64, question=61)
    rows = encode(make(tokenizer, length=64, question=60), ["cat " * 61], [words(10)])
    assert rows.window_start.tolist() == list(range(10))  # one piece a window, and an end
    assert (rows.token_ids[:, 1:61] == WORDS.index("cat")).all()
    assert rows.starts[:, 62].tolist() == [3 * i for i in range(10)]
    assert rows.padding_mask.sum(axis=1).tolist() == [64] * 10


def test_settings_that_are_wrong(tokenizer):
    with pytest.raises(ValueError, match="stride=0"):
        make(tokenizer, stride=0)
    with pytest.raises(ValueError, match="max_question_length=0"):
        make(tokenizer, question=0)
    with pytest.raises(ValueError, match=r"expected \(questions, contexts\), got list"):
        make(tokenizer)(["where"])
    with pytest.raises(ValueError, match="labels and weights"):
        make(tokenizer)((["where"], ["the cat"]), [3])
    again = BertQuestionAnswererPreprocessor.from_config(
        make(tokenizer, 21, 3, 7, padding="full").get_config()
    )
    settings = again.sequence_length, again.stride, again.max_question_length, again.padding
    assert settings == (21, 3, 7, "full")


def test_every_piece_of_a_batch_by_hand(tokenizer):
    """Questions and contexts of many lengths, against the original's loop, row by row."""
    rng = np.random.default_rng(5)
    questions = [" ".join(rng.choice(["cat", "mat", "is"], n)) for n in (1, 7, 3, 5, 0, 2)]
    contexts = [words(n, 1) for n in (0, 1, 3, 11, 12, 29)]
    preprocessor = make(tokenizer, length=17, stride=4, question=5)
    rows = encode(preprocessor, questions, contexts)
    number = 0
    for example, (question, context) in enumerate(zip(questions, contexts, strict=True)):
        asked, pieces, start = question.split()[:5], context.split(), 0
        room = 17 - 3 - len(asked)
        while True:
            window = pieces[start : start + room]
            tokens = ["[CLS]", *asked, "[SEP]", *window, "[SEP]"]
            assert [WORDS[i] for i in rows.token_ids[number]][: len(tokens)] == tokens
            assert rows.padding_mask[number].sum() == len(tokens)
            assert (rows.example[number], rows.window_start[number]) == (example, start)
            assert rows.context_begin[number] == len(asked) + 2
            spans = zip(rows.starts[number], rows.ends[number], strict=True)
            assert [context[a:b] for a, b in spans if a >= 0] == window
            number += 1
            if start + len(window) == len(pieces):
                break
            start += min(len(window), 4)
    assert number == len(rows.example) > len(questions)
    counts = np.bincount(rows.example, rows.most_context.sum(axis=1))
    assert counts.tolist() == [0, 1, 3, 11, 12, 29]  # each piece once


@pytest.mark.slow
@pytest.mark.parametrize("padding", ["bucket", "full"])
def test_in_a_graph_and_in_a_pipeline(tokenizer, padding):
    preprocessor = make(tokenizer, length=20, stride=6, padding=padding)
    data = (["where is the cat", "the mat"] * 3, [words(30), "on the mat ."] * 3)
    expected = preprocessor.encode(*data)
    assert expected.token_ids.shape[1] == 20
    signature = [tf.TensorSpec([None], tf.string)] * 2
    found = tf.function(preprocessor.encode, input_signature=signature)(*map(tf.constant, data))
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)
    pairs = tf.data.Dataset.from_tensor_slices(data).batch(2)
    (first, *_) = pairs.map(lambda *pair: preprocessor(pair))
    np.testing.assert_array_equal(first["token_ids"], expected.token_ids[: len(expected[0]) // 3])
    assert preprocessor.encode([], []).token_ids.shape[0] == 0


def test_one_pair_of_strings(tokenizer):
    rows = make(tokenizer).encode("where is 😀", "the cat")
    assert rows.token_ids.shape == (1, 16)
    assert rows.starts[0, 5:7].numpy().tolist() == [0, 4]


@pytest.mark.slow
def test_spans_of_a_public_file(shared_dir):
    """Each gold answer of SQuAD's dev set, first 500 questions, comes back from its labels."""
    examples = read_squad(shared_dir / "data" / "squad" / "dev-v1.1.json.gz")[:500]
    tokenizer = BertTokenizer(str(shared_dir / "data" / "vocab" / "bert-base-uncased-vocab.txt"))
    preprocessor = BertQuestionAnswererPreprocessor(tokenizer, 128, stride=64)
    columns = [e.question for e in examples], [e.context for e in examples]
    rows = preprocessor.encode(*columns)
    gold = [e.answers[0] for e in examples]
    spans = np.array([(a.start, a.start + len(a.text)) for a in gold])
    labels, found = (part.numpy() for part in span_labels(rows, *spans.T))
    assert found.all()
    same = 0
    for row, (first, last) in enumerate(labels):
        if first == 0:
            continue
        example = int(rows.example[row])
        (start, inner), (other, end) = (
            (int(rows.starts[row, piece]), int(rows.ends[row, piece])) for piece in (first, last)
        )
        assert start <= spans[example, 0] < inner and other < spans[example, 1] <= end
        same += (start, end) == tuple(spans[example])
    whole = np.unique(rows.example.numpy()[labels[:, 0] > 0])
    assert len(whole) == 500  # none is cut by every window
    # The first annotator of these marked a part of a word for a few, such as "5" of "50".
    assert same >= 0.97 * (labels[:, 0] > 0).sum()
