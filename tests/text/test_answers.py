"""Answers from logits, against the original's rule walked in plain Python."""

import functools
import math

import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertQuestionAnswererPreprocessor, BertTokenizer
from keras_bert.data import read_squad
from keras_bert.metrics import squad_v1_scores
from keras_bert.text.best_answers import NO_TOKEN, choose, decode
from keras_bert.text.question_answering_preprocessor import QuestionRows, span_labels

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] where is the cat mat on . a b c d é 中 国 😀 dog".split()


@functools.cache
def tokenizer():
    return BertTokenizer(WORDS)


def encode(questions, contexts, length=16, stride=3, question=4):
    preprocessor = BertQuestionAnswererPreprocessor(
        tokenizer(), length, stride=stride, max_question_length=question
    )
    rows = preprocessor.encode(questions, contexts)
    return QuestionRows(*(part.numpy() for part in rows))


def best_indices(logits, count):
    return sorted(range(len(logits)), key=lambda i: -logits[i])[:count]


def walk(start, end, rows, contexts, with_null, n_best=20, longest=30):
    """run_squad.py's `write_predictions`, one candidate at a time.

    Returns:
        By question [(text, start character, start logit, end logit), ...] best first, and the
        null score.
    """
    answers, odds = [], []
    for number, context in enumerate(contexts):
        found, null = [], (math.inf, 0.0, 0.0)
        for row in np.flatnonzero(rows.example == number):
            used = int(rows.padding_mask[row].sum())
            starts, ends = start[row][:used].tolist(), end[row][:used].tolist()
            if starts[0] + ends[0] < null[0]:
                null = (starts[0] + ends[0], starts[0], ends[0])
            for first in best_indices(starts, n_best):
                for last in best_indices(ends, n_best):
                    begins, stops = rows.starts[row, first], rows.ends[row, last]
                    if begins < 0 or stops < 0 or not rows.most_context[row, first]:
                        continue
                    if last < first or last - first + 1 > longest:
                        continue
                    found.append((context[begins:stops], begins, starts[first], ends[last]))
        if with_null or not found:
            found.append(("", 0, *null[1:]))
        found.sort(key=lambda one: -(one[2] + one[3]))
        kept, seen = [], set()
        for one in found:
            if len(kept) < n_best and one[0] not in seen:
                kept.append(one)
                seen.add(one[0])
        if with_null and "" not in seen:
            kept.append(("", 0, *null[1:]))
        best = next((one[2] + one[3] for one in kept if one[0]), 2 * NO_TOKEN)
        answers.append(kept)
        odds.append(null[0] - best)
    return answers, odds


def by_question(found):
    texts = [text.decode() for text in found.text.numpy()]
    columns = found.start, found.start_logit, found.end_logit
    rows = list(zip(texts, *(c.numpy().tolist() for c in columns), strict=True))
    splits = found.row_splits.numpy()
    return [rows[a:b] for a, b in zip(splits[:-1], splits[1:], strict=True)]


def random_case(seed, whole_numbers=False):
    rng = np.random.default_rng(seed)
    alphabet = [
        "the",
        "cat",
        " cat",
        "mat",
        "a",
        "b",
        "c",
        "é",
        "e\u0301",
        "中国",
        "😀",
        " .",
        "dog",
    ]
    contexts = [" ".join(rng.choice(alphabet, n)) for n in (0, 1, 2, 5, 17, 40)]
    questions = [" ".join(rng.choice(["where", "is", "the"], n)) for n in (3, 0, 1, 4, 5, 2)]
    rows = encode(questions, contexts)
    shape = rows.token_ids.shape
    if whole_numbers:  # with many equal sums
        logits = [rng.integers(-2, 3, shape).astype("float32") for _ in range(2)]
    else:
        logits = [rng.normal(size=shape).astype("float32") * 3 for _ in range(2)]
    return *logits, rows, contexts


@pytest.mark.one_quick
@pytest.mark.parametrize("with_null", [False, True])
@pytest.mark.parametrize(("n_best", "longest"), [(20, 30), (3, 2), (5, 7)])
def test_as_the_original(with_null, n_best, longest):
    for seed in range(4):
        case = random_case(seed, whole_numbers=seed % 2)
        found = decode(*case, with_null, n_best, longest)
        expected, odds = walk(*case, with_null, n_best, longest)
        assert by_question(found) == expected  # to the bit
        np.testing.assert_array_equal(found.null_score, odds)
        for question, begin, end in zip(
            expected, found.row_splits[:-1].numpy(), found.row_splits[1:].numpy(), strict=True
        ):
            sums = np.array([one[2] + one[3] for one in question])
            powers = np.exp(sums - sums.max())
            np.testing.assert_allclose(
                found.probability[begin:end], powers / powers.sum(), rtol=1e-12
            )
        texts = found.text.numpy()
        for place, start, end, number in zip(
            texts, found.start.numpy(), found.end.numpy(), _questions(found), strict=True
        ):
            assert case[3][number][start:end] == place.decode()
        for number, (best, null) in enumerate(
            zip(found.best.numpy(), found.null.numpy(), strict=True)
        ):
            spans = [one for one in expected[number] if one[0]]
            assert texts[best].decode() == (spans[0][0] if spans else "")
            assert null == -1 or texts[null] == b""
            assert (null >= 0) == (with_null or not spans)


def _questions(found):
    return np.repeat(np.arange(len(found.row_splits) - 1), np.diff(found.row_splits.numpy()))


@pytest.mark.thorough
def test_in_a_graph_of_any_size():
    case = random_case(7)

    @tf.function
    def answer(start, end, parts, contexts):
        found = decode(start, end, QuestionRows(*parts), contexts, with_null=True)
        return found, choose(found, 0.5)

    specs = [tf.TensorSpec([None] * part.ndim, part.dtype) for part in case[2]]
    logits = tf.TensorSpec([None, None], tf.float32)
    graph = answer.get_concrete_function(logits, logits, specs, tf.TensorSpec([None], tf.string))
    for seed in (7, 8):
        case = random_case(seed)
        start, end, rows, contexts = case
        found, chosen = graph(
            tf.constant(start), tf.constant(end), [*map(tf.constant, rows)], tf.constant(contexts)
        )
        expected = decode(*case, with_null=True)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(chosen, choose(expected, 0.5))


def peaked(rows, *peaks, low=-9.0):
    """Logits that are low but for (row, start column, end column, start logit, end logit)."""
    start, end = (np.full(rows.token_ids.shape, low, "float32") for _ in range(2))
    for row, first, last, *values in peaks:
        start[row, first], end[row, last] = values
    return start, end


def test_null_is_the_least_over_windows():
    contexts = ["a b c d the cat on"]
    rows = encode(["where is"], contexts, length=10, stride=2)
    assert len(rows.example) == 2
    first = rows.context_begin[0]
    logits = peaked(rows, (0, 0, 0, 1.0, 2.0), (1, 0, 0, 0.5, 0.5))
    logits[0][0, first], logits[1][0, first + 1] = 1.5, 0.5
    found = decode(*logits, rows, contexts, with_null=True)
    assert found.null_score.numpy().tolist() == [1.0 - 2.0]
    place = int(choose(found, 0.0)[0])
    assert found.text[place].numpy() == b"a b"
    null = int(found.null[0])
    assert (float(found.start_logit[null]), float(found.end_logit[null])) == (0.5, 0.5)
    assert found.text[int(choose(found, -1.5)[0])].numpy() == b""
    assert found.text[int(choose(found, -1.0)[0])].numpy() == b"a b"  # not above the threshold


def test_each_text_once():
    contexts = ["the cat on a mat . the cat on a mat . the cat"]
    rows = encode(["where"], contexts, length=12, stride=4)
    assert len(rows.example) >= 2
    rng = np.random.default_rng(1)
    start, end = (rng.normal(size=rows.token_ids.shape) for _ in range(2))
    cats = rows.token_ids == WORDS.index("cat")
    start[cats], end[cats] = 5.0, 5.0  # "cat" is best wherever it stands
    found = decode(start, end, rows, contexts)
    texts = found.text.numpy().tolist()
    assert texts[0] == b"cat" and len(set(texts)) == len(texts) == 20
    assert int(found.start[0]) == contexts[0].index("cat")  # the first of equals
    assert float(tf.reduce_sum(found.probability)) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("with_null", [False, True])
def test_peaks_outside_of_the_context(with_null):
    contexts = ["the cat on a mat"]
    rows = encode(["where is the"], contexts)
    question, separator, last = 2, 4, int(rows.padding_mask.sum()) - 1
    start, end = peaked(rows)
    for column in (question, separator, last, 15):  # 15 is padding
        start[0, column] = end[0, column] = 8.0
    start[0, 6], end[0, 9] = 2.0, 1.0
    start[0, 8], end[0, 7] = 3.0, 3.0  # an end before its start
    found = decode(start, end, rows, contexts, with_null, max_answer_length=4)
    best = int(found.best[0])
    assert found.text[best].numpy() == b"cat on"  # 6 to 7
    found = decode(start, end, rows, contexts, with_null, n_best=2)
    assert found.text.numpy().tolist() == [b""]  # both places of the best went to the others
    start[0, 8] = end[0, 7] = -9.0
    found = decode(start, end, rows, contexts, with_null, max_answer_length=4)
    assert found.text[int(found.best[0])].numpy() == b"cat on a mat"
    found = decode(start, end, rows, contexts, with_null, max_answer_length=3)
    assert found.text[int(found.best[0])].numpy() != b"cat on a mat"
    assert all(len(text.split()) <= 3 for text in found.text.numpy())


@pytest.mark.parametrize("with_null", [False, True])
def test_no_valid_span(with_null):
    contexts = ["the cat on a mat", ""]
    rows = encode(["where is the", "where"], contexts)
    start, end = peaked(rows)
    start[0, 8:10] = end[0, 5:7] = 4.0  # the two best ends lie before the two best starts
    start[:, 0], end[:, 0] = 1.0, 0.5
    found = decode(start, end, rows, contexts, with_null, n_best=2)
    assert found.text.numpy().tolist() == [b"", b""]
    assert found.row_splits.numpy().tolist() == [0, 1, 2]
    assert found.probability.numpy().tolist() == [1.0, 1.0]
    assert found.null_score.numpy().tolist() == [1.5 - 2 * NO_TOKEN] * 2
    assert np.isfinite(found.null_score).all()
    for threshold in (None, 0.0, 1e30):
        assert choose(found, threshold).numpy().tolist() == [0, 1]


def test_padding_has_no_part_in_it():
    start, end, rows, contexts = random_case(3)
    wide = QuestionRows(
        *(
            np.pad(p, [(0, 0), (0, 5)], constant_values=-1 if p is rows.starts else 0)
            if p.ndim == 2
            else p
            for p in rows
        )
    )
    wide = wide._replace(ends=np.where(wide.starts < 0, -1, wide.ends))
    noise = np.full((len(start), 5), 99.0, "float32")
    filled = [np.concatenate([side, noise], axis=1) for side in (start, end)]
    one, other = decode(start, end, rows, contexts), decode(*filled, wide, contexts)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_settings_that_are_wrong():
    case = random_case(0)
    with pytest.raises(ValueError, match="n_best=1"):
        decode(*case, n_best=1)
    with pytest.raises(ValueError, match="max_answer_length=0"):
        decode(*case, max_answer_length=0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="with_null=True"):
        choose(decode(*case), 0.0)


def decode_gold(examples, tokenizer, longest=30, **kwargs):
    """Labels of the gold spans, made into logits, and decoded.

    Returns:
        ({id: answer}, {id: the text of the pieces that hold the gold answer}).
    """
    preprocessor = BertQuestionAnswererPreprocessor(tokenizer, **kwargs)
    answers, pieces = {}, {}
    for begin in range(0, len(examples), 200):
        chunk = examples[begin : begin + 200]
        contexts = [e.context for e in chunk]
        rows = preprocessor.encode([e.question for e in chunk], contexts)
        gold = [next(a for a in e.answers if a.start is not None) for e in chunk]
        starts = np.array([a.start for a in gold])
        labels, found = span_labels(rows, starts, starts + [len(a.text) for a in gold])
        assert found.numpy().all()
        rng = np.random.default_rng(begin)
        start, end = (rng.normal(size=rows.token_ids.shape) for _ in range(2))
        places = np.arange(len(start))
        start[places, labels[:, 0]] += 20
        end[places, labels[:, 1]] += 20
        best = decode(start, end, rows, contexts, max_answer_length=longest)
        texts = best.text.numpy()[best.best]
        answers |= {e.id: t.decode() for e, t in zip(chunk, texts, strict=True)}
        for row in np.flatnonzero(labels[:, 0]):
            example = chunk[rows.example[row]]
            begin, end = rows.starts[row, labels[row, 0]], rows.ends[row, labels[row, 1]]
            pieces[example.id] = example.context[int(begin) : int(end)]
    return answers, pieces


def test_gold_spans_come_back():
    """Beside the public files below, for those who lack them."""
    from keras_bert.data import SquadExample
    from keras_bert.data.squad import Answer

    contexts = ["  the cat  on a é mat . 😀 中国 dog", "on the mat . e\u0301 is 国中 cat"]
    answers = ["cat  on", "é mat", "😀", "国", "中国 dog"], ["e\u0301", "mat .", "国中 cat"]
    examples = [
        SquadExample(f"{i} {text}", "", "where is", c, (Answer(text, c.index(text)),))
        for i, (c, texts) in enumerate(zip(contexts, answers, strict=True))
        for text in texts
    ]
    found, _ = decode_gold(
        examples, tokenizer(), sequence_length=13, stride=3, max_question_length=3
    )
    assert found == {e.id: e.answers[0].text for e in examples}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "vocabulary", "least"),
    [("dev-v1.1", "bert-base-uncased", 99.5), ("cmrc2018_dev", "bert-base-chinese", 99.5)],
)
def test_gold_spans_of_public_files_come_back(shared_dir, name, vocabulary, least):
    path = shared_dir / "data" / "squad" / f"{name}.json.gz"
    examples = read_squad(path, on_mismatch="repair")
    examples = [e for e in examples if any(a.start is not None for a in e.answers)]
    words = BertTokenizer(str(shared_dir / "data" / "vocab" / f"{vocabulary}-vocab.txt"))
    found, pieces = decode_gold(examples, words, longest=500)
    gold = {e.id: next(a.text for a in e.answers if a.start is not None) for e in examples}
    assert found.keys() == pieces.keys() == gold.keys()  # no answer is cut by every window
    assert found == pieces
    # Some annotators marked a part of a piece, "5" of "50", which no pieces can give.
    whole = [key for key in gold if pieces[key].strip() == gold[key].strip()]
    assert 100 * len(whole) / len(gold) > least
    references = {key: [gold[key]] for key in whole}
    scores = squad_v1_scores(references, {key: found[key] for key in whole})
    assert scores["exact_match"] == 100.0
