import gzip
import json

import pytest

from keras_bert.metrics.cmrc import cmrc_scores, tokenize


def test_by_hand_in_chinese():
    references = {"a": ["北京大学", "在北京大学"], "b": ["三月，五日"], "c": ["李白"]}
    answers = {"a": "北京的大学", "b": "三月五日。", "c": "杜甫"}
    # a: the longest run of both has 2 characters (北京), of 4 and 5 in the shorter gold text
    # (在北京大学 gives 4/10); b: the same but for punctuation
    f1 = 100 * (2 * 2 / 9 + 1 + 0) / 3
    assert cmrc_scores(references, answers) == {
        "exact_match": pytest.approx(100 / 3),
        "f1": pytest.approx(f1),
        "average": pytest.approx((100 / 3 + f1) / 2),
        "total": 3,
    }


def test_f1_counts_one_run_and_not_a_subsequence():
    # 天 and 地人 are shared; only the longer run counts: 2 of 4 and of 3
    assert cmrc_scores({"q": ["天黑地人"]}, {"q": "天地人"})["f1"] == pytest.approx(100 * 4 / 7)


def test_words_of_other_scripts_are_tokens():
    pytest.importorskip("nltk")
    assert tokenize(" 获得NBA 2019-20赛季，MVP…") == [*"获得", "nba", "201920", *"赛季", "mvp…"]
    # of the run "2 ghz": 1 of 2 tokens, and nothing else is shared
    assert cmrc_scores({"q": ["2 GHz"]}, {"q": "3 ghz"})["f1"] == 50


def test_unanswered_and_impossible():
    references = {"a": ["北京"], "b": ["上海"]}
    with pytest.warns(UserWarning, match="1 questions without an answer.*: b"):
        assert cmrc_scores(references, {"a": "北京"})["f1"] == 50
    with pytest.raises(ValueError, match="1 questions have no gold text, the first is 'b'"):
        cmrc_scores({"a": ["北京"], "b": []}, {"a": "北京", "b": ""})
    with pytest.raises(ValueError, match="no questions"):
        cmrc_scores({}, {})
    assert cmrc_scores({"a": ["北京"]}, {"a": ""})["average"] == 0


def test_gold_answers_of_cmrc_are_right(shared_dir):
    pytest.importorskip("nltk")
    path = shared_dir / "data" / "squad" / "cmrc2018_dev.json.gz"
    squad = json.loads(gzip.decompress(path.read_bytes()))
    references = {
        question["id"]: [answer["text"] for answer in question["answers"]]
        for article in squad["data"]
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    }
    scores = cmrc_scores(references, {q: texts[-1] for q, texts in references.items()})
    assert scores == {"exact_match": 100, "f1": 100, "average": 100, "total": 3219}
