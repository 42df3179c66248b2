import gzip
import json
import math
import random

import pytest

from keras_bert.metrics.squad_scores import normalize_answer, squad_v1_scores, squad_v2_scores

REFERENCES = {
    "q1": ["the Norman dukes", "Normans"],
    "q2": ["10th century"],
    "q3": ["Rollo"],
}


def load(shared_dir, name):
    path = shared_dir / "data" / "squad" / f"{name}.json.gz"
    return json.loads(gzip.decompress(path.read_bytes()))


def gold_texts(squad):
    return {
        question["id"]: [answer["text"] for answer in question["answers"]] or [""]
        for article in squad["data"]
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    }


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("The Cat, a dog  and\tAN ox.", "cat dog and ox"),
        ("theatre another a-level", "theatre another alevel"),  # whole words; after punctuation
        ("“10th”  century", "“10th” century"),  # punctuation of ASCII alone
        ("the", ""),
        ("U.S.", "us"),
    ],
)
def test_normalize_answer(text, right):
    assert normalize_answer(text) == right


def test_v1_by_hand():
    answers = {"q1": "Norman dukes", "q2": "the 10th", "q3": "Charles"}
    scores = squad_v1_scores(REFERENCES, answers)
    # q1 whole; q2 one of two gold words and nothing else, F1 2/3; q3 nothing
    assert scores == {
        "exact_match": pytest.approx(100 / 3),
        "f1": pytest.approx(100 * (1 + 2 / 3) / 3),
        "total": 3,
    }


def test_v1_repeated_words_count_as_often_as_both_have_them():
    # shared: "b" once and "c" twice, of 4 and 5 words
    scores = squad_v1_scores({"q": ["b c c d"]}, {"q": "c c c b e"})
    assert scores["f1"] == pytest.approx(100 * 2 * 3 / 9) and scores["exact_match"] == 0


def test_an_unanswered_question_counts_0_and_is_named():
    answers = {"q1": "Normans", "q3": "Rollo"}
    for function, exact in ((squad_v1_scores, "exact_match"), (squad_v2_scores, "exact")):
        with pytest.warns(UserWarning, match="1 questions without an answer.*: q2") as caught:
            scores = function(REFERENCES, answers)
        assert caught[0].filename == __file__
        assert scores[exact] == scores["f1"] == pytest.approx(200 / 3)


def test_answers_to_no_question_are_named():
    answers = dict.fromkeys(REFERENCES, "x") | {f"stray{i}": "x" for i in range(22)}
    with pytest.warns(UserWarning, match="22 answers without a question.*: stray0, .*and 2 more"):
        assert squad_v1_scores(REFERENCES, answers)["total"] == 3


def test_where_nothing_is_left_of_a_text_the_versions_differ():
    """evaluate-v1.1 finds no shared word, F1 0; evaluate-v2.0 finds two equal empty answers."""
    references, answers = {"q": ["The"]}, {"q": "a"}
    assert squad_v1_scores(references, answers) == {"exact_match": 100, "f1": 0, "total": 1}
    scores = squad_v2_scores(references, answers)
    assert scores["exact"] == scores["f1"] == 100
    assert scores["HasAns_total"] == 1 and "NoAns_total" not in scores


def test_v2_by_hand():
    references = REFERENCES | {"n1": [""], "n2": []}
    answers = {"q1": "Normans", "q2": "", "q3": "Rollo the duke", "n1": "", "n2": "Rollo"}
    # q3: one shared word, of 1 and 2
    assert squad_v2_scores(references, answers) == {
        "exact": pytest.approx(40),
        "f1": pytest.approx(100 * (1 + 2 / 3 + 1) / 5),
        "total": 5,
        "HasAns_exact": pytest.approx(100 / 3),
        "HasAns_f1": pytest.approx(100 * (1 + 2 / 3) / 3),
        "HasAns_total": 3,
        "NoAns_exact": 50,
        "NoAns_f1": 50,
        "NoAns_total": 2,
    }


def test_v2_threshold_makes_answers_none():
    references = {"q": ["cat"], "n": [""]}
    answers, odds = {"q": "cat", "n": "dog"}, {"q": 1.0, "n": 3.0}
    exact = [
        squad_v2_scores(references, answers, odds, threshold)["exact"]
        for threshold in (None, 3.0, 2.0, 1.0, 0.5)
    ]
    assert exact == [50, 50, 100, 100, 50]  # odds above the threshold, not at it


def test_v2_best_thresholds_by_hand():
    references = {"a": ["cat"], "b": ["cat sat"], "c": ["mat"], "n": [""], "m": [""]}
    answers = {"a": "cat", "b": "cat", "c": "dog", "n": "dog", "m": "ox"}
    odds = {"a": -2.0, "b": 0.5, "c": 1.0, "n": 0.0, "m": 2.0}
    scores = squad_v2_scores(references, answers, odds)
    # exact: none anywhere 2; after a 3, n 2, b 2, c 2, m 1. F1: 2, 3, 2, 2 2/3, 2 2/3, 1 2/3
    assert scores["best_exact"] == 60 and scores["best_exact_thresh"] == -2.0
    assert scores["best_f1"] == 60 and scores["best_f1_thresh"] == -2.0
    odds["n"] = 0.75
    scores = squad_v2_scores(references, answers, odds)
    assert scores["best_exact"] == 60 and scores["best_exact_thresh"] == -2.0
    assert scores["best_f1"] == pytest.approx(100 * (3 + 2 / 3) / 5)
    assert scores["best_f1_thresh"] == 0.5


def by_the_script(references, answers, odds):
    """find_best_thresh of evaluate-v2.0.py, told anew: (score, threshold) of exact match and F1.

    Questions are taken by rising odds. Each with gold texts adds its raw score; each without
    takes a point away if anything at all was predicted for it.
    """
    found = {}
    for name in ("exact", "f1"):
        raw = {q: squad_v2_scores({q: references[q]}, {q: answers[q]})[name] for q in references}
        running = [(sum(100.0 for gold in references.values() if not any(gold)), 0.0)]
        for q, value in sorted(odds.items(), key=lambda pair: pair[1]):
            change = raw[q] if any(references[q]) else -100.0 * (answers[q] != "")
            running.append((running[-1][0] + change, value))
        score, at = max(running, key=lambda pair: pair[0])  # of equal ones the first
        found |= {f"best_{name}": score / len(references), f"best_{name}_thresh": at}
    return found


def test_v2_the_raw_prediction_counts_as_an_answer():
    """Of "the" normalization leaves nothing, yet it is an answer to a question without one."""
    scores = squad_v2_scores({"a": [], "b": ["cat"]}, {"a": "the", "b": "cat"}, {"a": -1, "b": 1})
    assert scores["best_exact"] == 50 and scores["best_exact_thresh"] == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_v2_best_thresholds_are_those_of_the_script(seed):
    """Equal odds, answers of articles and punctuation alone, and none that is best."""
    rng = random.Random(seed)
    golds = ([""], [], ["cat"], ["the cat sat", "dog"], ["The"], ["!", "ox"])
    texts = ["", "cat", "the", "a dog", "!", "the cat sat", "ox cat"]
    references = {f"q{i}": rng.choice(golds) for i in range(rng.randint(1, 15))}
    answers = {q: rng.choice(texts) for q in references}
    odds = {q: rng.choice([-2.5, -1.0, 0.0, rng.random(), 3.0]) for q in references}
    scores = squad_v2_scores(references, answers, odds)
    for name, value in by_the_script(references, answers, odds).items():
        assert scores[name] == pytest.approx(value), name


@pytest.mark.parametrize(
    ("references", "answers", "message"),
    [
        ({}, {}, "no questions"),
        ({"q": "cat"}, {}, "'q': expected a list of texts, got 'cat'"),
        ({"q": [None]}, {}, r"'q': expected a list of texts, got \[None\]"),
        ({"q": ["cat"]}, {"q": 3}, "'q': expected the answer's text, got 3"),
        ({"q": ["cat"]}, {"q": None}, "got None"),
    ],
)
def test_what_cannot_be_scored(references, answers, message):
    for function in (squad_v1_scores, squad_v2_scores):
        with pytest.raises(ValueError, match=message):
            function(references, answers)


@pytest.mark.parametrize("texts", [[], [""]])
def test_v1_knows_no_questions_without_an_answer(texts):
    with pytest.raises(ValueError, match="'q' has no gold answer.*use squad_v2_scores"):
        squad_v1_scores({"q": texts}, {"q": ""})


@pytest.mark.parametrize(
    ("odds", "message"),
    [
        (None, "threshold=0.0: expected null_odds"),
        ({"q": 1.0}, "null_odds of 1 of the 2 answered questions: .*; the first is None of 'n'"),
        (
            {"q": 1.0, "n": math.nan},
            "1 of the 2 .*expected finite numbers; the first is nan of 'n'",
        ),
        ({"q": 1.0, "n": -math.inf}, "the first is -inf of 'n'"),
    ],
)
def test_v2_odds_that_cannot_be_compared(odds, message):
    with pytest.raises(ValueError, match=message):
        squad_v2_scores({"q": ["cat"], "n": [""]}, {"q": "cat", "n": ""}, odds, threshold=0.0)


def test_the_bert_ensemble_on_v1_dev(shared_dir):
    """The BERT paper (arXiv:1810.04805, table 2) gives 86.2 / 92.2."""
    scores = squad_v1_scores(
        gold_texts(load(shared_dir, "dev-v1.1")), load(shared_dir, "predictions-v1.1-bert-ensemble")
    )
    assert {k: round(v, 4) for k, v in scores.items()} == {
        "exact_match": 86.2062,
        "f1": 92.1956,
        "total": 10570,
    }


def test_logistic_regression_on_v1_dev(shared_dir):
    """13 questions are unanswered, and 28 answers are to questions that are not in dev."""
    references = gold_texts(load(shared_dir, "dev-v1.1"))
    answers = load(shared_dir, "predictions-v1.1-logistic-regression")
    with pytest.warns(UserWarning) as caught:
        scores = squad_v1_scores(references, answers)
    assert [str(w.message).split()[0] for w in caught] == ["13", "28"]
    assert round(scores["exact_match"], 4) == 40.1419 and round(scores["f1"], 4) == 50.9815


def test_bert_on_v2_dev(shared_dir):
    scores = squad_v2_scores(
        gold_texts(load(shared_dir, "dev-v2.0-reconstructed")),
        load(shared_dir, "predictions-v2.0-bert-single"),
    )
    assert {k: round(v, 4) for k, v in scores.items()} == {
        "exact": 78.7417,
        "f1": 81.7753,
        "total": 11873,
        "HasAns_exact": 74.1059,
        "HasAns_f1": 80.1818,
        "HasAns_total": 5928,
        "NoAns_exact": 83.3642,
        "NoAns_f1": 83.3642,
        "NoAns_total": 5945,
    }
