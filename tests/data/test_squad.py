import gzip
import json
import logging
from collections import Counter

import numpy as np
import pytest

from keras_bert.data.squad import (
    Answer,
    SquadExample,
    read_predictions,
    read_squad,
    write_predictions,
)

CONTEXT = "Ada met Grace in Paris. Paris was cold 😀, Grace said."


def qa(key, *answers, **more):
    answers = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": key, "question": f"What of {key}?", "answers": answers, **more}


def write(path, *qas, context=CONTEXT, title="Ada"):
    article = {"title": title, "paragraphs": [{"context": context, "qas": list(qas)}]}
    data = json.dumps({"version": "v2.0", "data": [article]}).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["dev.json", "dev.json.gz"])
def test_answers_and_impossible_questions(tmp_path, name):
    answers = [("Paris", 17), ("Paris", 24), ("😀, Grace", 39)]
    path = write(
        tmp_path / name,
        qa("a", *answers),
        qa("b", is_impossible=True, plausible_answers=[{"text": "Ada", "answer_start": 0}]),
        {"id": "c", "question": "Where?"},  # a file to answer has no answers
    )
    first, second, third = read_squad(path)
    assert first == SquadExample("a", "Ada", "What of a?", CONTEXT, tuple(answers), False)
    for answer in first.answers:
        assert CONTEXT[answer.start : answer.start + len(answer.text)] == answer.text
    assert second.is_impossible and second.answers == ()
    assert not third.is_impossible and third.answers == ()


def test_spaces_of_the_context_stay(tmp_path):
    context = "  where  is the cat"
    (example,) = read_squad(write(tmp_path / "a.json", qa("a", ("cat", 16)), context=context))
    assert example.context == context and example.answers == (Answer("cat", 16),)


def test_a_title_is_not_needed_and_a_byte_order_mark_is_dropped(tmp_path):
    path = write(tmp_path / "a.json", qa("a", ("Ada", 0)))
    data = json.loads(path.read_text())
    del data["data"][0]["title"]
    path.write_text("\ufeff" + json.dumps(data), encoding="utf-8")
    assert read_squad(path)[0].title == ""


MISMATCHED = [
    qa("right", ("Grace", 8)),
    qa("near", ("Paris", 23), ("Grace", 8)),  # 17 and 24: 24 is nearer
    qa("spaces", (" cold \n", 2)),
    qa("nowhere", ("London", 3), ("Ada", 0)),
    qa("no place", ("Grace", -1)),
    qa("all wrong", ("", 3), ("Rome", 999)),
]


def test_mismatches_are_one_error(tmp_path):
    path = write(tmp_path / "a.json", *MISMATCHED)
    with pytest.raises(ValueError) as caught:
        read_squad(path)
    message = str(caught.value)
    assert f"{path}, article 0 'Ada', id 'near': the answer 'Paris' starts at 23" in message
    assert "the context has ' Pari'" in message and "6 such answers" in message
    assert "on_mismatch='repair'" in message


def test_mismatches_repaired(tmp_path, caplog):
    path = write(tmp_path / "a.json", *MISMATCHED)
    with caplog.at_level(logging.WARNING, logger="keras_bert"):
        examples = read_squad(path, on_mismatch="repair")
    assert {example.id: example.answers for example in examples} == {
        "right": (("Grace", 8),),
        "near": (("Paris", 24), ("Grace", 8)),
        "spaces": (("cold", 34),),
        "nowhere": (("London", None), ("Ada", 0)),
        "no place": (("Grace", 8),),
        "all wrong": (("", None), ("Rome", None)),
    }
    (record,) = caplog.records
    assert "6 answers are not at the given position: " in record.getMessage()
    assert "3 moved, 3 not found in the context" in record.getMessage()


def test_mismatches_skipped(tmp_path, caplog):
    path = write(tmp_path / "a.json", *MISMATCHED, qa("impossible", is_impossible=True))
    with caplog.at_level(logging.WARNING, logger="keras_bert"):
        examples = read_squad(path, on_mismatch="skip")
    assert {example.id: example.answers for example in examples} == {
        "right": (("Grace", 8),),
        "near": (("Grace", 8),),
        "nowhere": (("Ada", 0),),
        "impossible": (),
    }
    assert "6 left out, 3 questions skipped" in caplog.text


def test_a_negative_start_does_not_count_from_the_end(tmp_path):
    assert CONTEXT[-5 : -5 + 4] == "said"
    path = write(tmp_path / "a.json", qa("a", ("said", -5)))
    with pytest.raises(ValueError, match="'said' starts at -5, but there the context has ''"):
        read_squad(path)
    (example,) = read_squad(path, on_mismatch="repair")
    assert example.answers == (("said", CONTEXT.index("said")),)


def test_nothing_is_logged_where_all_answers_match(tmp_path, caplog):
    for mode in ("repair", "skip"):
        read_squad(write(tmp_path / "a.json", qa("a", ("Ada", 0))), on_mismatch=mode)
    assert not caplog.records


ERRORS = {
    "not JSON": ('{"data": [\n{"title"\n', r"line 3: not JSON"),
    "another layout": ('[{"context_text": "a"}]', "list 'data' of articles.*squad-style-data"),
    "no paragraphs": ('{"data": [{"title": "T"}]}', r"article 0 'T': 'paragraphs': expected list"),
    "no context": ('{"data": [{"paragraphs": [{"qas": []}]}]}', r"paragraph 0: 'context': .*'qas'"),
    "no object": ('{"data": [3]}', "article 0: expected an object with 'title', got 3"),
    "no questions": ('{"data": []}', "no questions"),
    "not UTF-8": (b'{"data":\n "\xff"}', "line 2: byte 0xff at position 2"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_of_files(tmp_path, case):
    content, message = ERRORS[case]
    path = tmp_path / "a.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=f"a.json.*{message}"):
        read_squad(path)


QUESTION_ERRORS = {
    "id twice": ([qa("a", ("Ada", 0)), qa("a")], "id 'a': a second question with this id"),
    "id a number": ([{"id": 7, "question": "?"}], "'id': expected str, got 7"),
    "no question": ([{"id": "a"}], r"id 'a': 'question': expected str, got the keys \['id'\]"),
    "start a fraction": ([qa("a", ("Ada", 0.0))], "id 'a': 'answer_start': expected int"),
    "impossible": ([qa("a", ("Ada", 0), is_impossible=True)], "is_impossible, but it has answers"),
    "one answer": ([{"id": "a", "answers": {"text": ["Ada"]}}], "'answers': expected list"),
}


@pytest.mark.parametrize("case", QUESTION_ERRORS)
def test_errors_of_questions(tmp_path, case):
    qas, message = QUESTION_ERRORS[case]
    with pytest.raises(ValueError, match=f"a.json, article 0 'Ada'.*{message}"):
        read_squad(write(tmp_path / "a.json", *qas), on_mismatch="repair")


def test_unknown_mode(tmp_path):
    with pytest.raises(ValueError, match="on_mismatch='ignore': expected one of error"):
        read_squad(tmp_path / "a.json", on_mismatch="ignore")


def candidate(text, probability):
    logits = {"start_logit": np.float32(1.5), "end_logit": 2.0}
    return {"text": text, "probability": probability, **logits}


def test_predictions_in_the_official_form(tmp_path):
    paths = write_predictions(
        tmp_path / "out",
        {"b": "Zürich", "a": ""},
        nbest={"a": [candidate("", 1.0)], "b": [candidate("Zürich", 0.75), candidate("x", 0.25)]},
        null_odds={"a": np.float32(0.5), "b": -3},
    )
    names = [path.name for path in paths]
    assert names == ["predictions.json", "nbest_predictions.json", "null_odds.json"]
    # As `json.dumps(..., indent=4) + "\n"` of an OrderedDict in run_squad.py.
    assert paths[0].read_text() == '{\n    "b": "Z\\u00fcrich",\n    "a": ""\n}\n'
    nbest, odds = (json.loads(path.read_text()) for path in paths[1:])
    assert list(nbest) == ["b", "a"] and odds == {"b": -3.0, "a": 0.5}
    assert list(nbest["b"][0].items()) == [
        ("text", "Zürich"),
        ("probability", 0.75),
        ("start_logit", 1.5),
        ("end_logit", 2.0),
    ]
    assert read_predictions(paths[0]) == {"b": "Zürich", "a": ""}


def test_predictions_alone_make_one_file(tmp_path):
    examples = read_squad(write(tmp_path / "a.json", qa("a", ("Ada", 0))))
    (path,) = write_predictions(tmp_path / "out", {"a": "Ada"}, examples=examples)
    assert [*(tmp_path / "out").iterdir()] == [path]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"examples": [SquadExample("c", "", "?", "")]}, r"1 of 1 .* missing \['c'\], 1 ids"),
        ({"null_odds": {}}, r"null_odds.json: 1 of 1 questions are missing \['a'\]"),
        (
            {"null_odds": {"a": float("nan")}},
            "null_odds.json, id 'a': expected a finite number, got nan",
        ),
        ({"nbest": {"a": []}}, "id 'a': expected at least one candidate"),
        ({"nbest": {"a": [{"text": "x"}]}}, r"id 'a': expected the keys .*got \['text'\]"),
        ({"nbest": {"a": [candidate("x", np.inf)]}}, "id 'a': expected a finite number, got inf"),
    ],
)
def test_incomplete_predictions_are_not_written(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        write_predictions(tmp_path / "out", {"a": "x"}, **arguments)
    assert not (tmp_path / "out").exists()


def test_predictions_that_are_no_texts(tmp_path):
    with pytest.raises(ValueError, match="id 'a': expected a string, got None"):
        write_predictions(tmp_path, {"a": None})
    for content, message in (('["a"]', "expected an object"), ('{"a": 3}', "id 'a'.* got 3")):
        (tmp_path / "p.json").write_text(content)
        with pytest.raises(ValueError, match=f"p.json.*{message}"):
            read_predictions(tmp_path / "p.json")


@pytest.mark.parametrize(
    ("name", "questions", "answers", "impossible"),
    [
        ("dev-v1.1", 10_570, 34_726, 0),
        ("dev-v2.0-reconstructed", 11_873, 20_302, 5_945),
        ("xquad.en", 1_190, 1_190, 0),
        ("xquad.zh", 1_190, 1_190, 0),
    ],
)
def test_public_files(shared_dir, name, questions, answers, impossible):
    examples = read_squad(shared_dir / "data" / "squad" / f"{name}.json.gz")
    assert len(examples) == questions
    assert sum(len(example.answers) for example in examples) == answers
    assert sum(example.is_impossible for example in examples) == impossible


@pytest.mark.parametrize(
    ("name", "questions", "moved", "nowhere", "left"),
    [("cmrc2018_dev", 3_219, 7, 193, 3_216), ("cmrc2018_trial", 1_002, 5, 0, 997)],
)
def test_cmrc_2018(shared_dir, caplog, name, questions, moved, nowhere, left):
    path = shared_dir / "data" / "squad" / f"{name}.json.gz"
    with pytest.raises(ValueError, match=rf"id '\w+': .*\({moved + nowhere} such answers"):
        read_squad(path)
    repaired = read_squad(path, on_mismatch="repair")
    assert len(repaired) == questions
    places = Counter(answer.start is None for example in repaired for answer in example.answers)
    assert places[True] == nowhere and f"{moved} moved" in caplog.text
    for example in repaired:
        for text, start in example.answers:
            assert start is None or example.context[start : start + len(text)] == text
    skipped = read_squad(path, on_mismatch="skip")
    assert len(skipped) == left and f"{moved + nowhere} left out" in caplog.text


@pytest.mark.parametrize("name", ["v1.1-bert-ensemble", "v2.0-bert-single"])
def test_published_predictions(shared_dir, name):
    folder = shared_dir / "data" / "squad"
    predictions = read_predictions(folder / f"predictions-{name}.json.gz")
    data = "dev-v1.1" if "v1.1" in name else "dev-v2.0-reconstructed"
    assert set(predictions) == {example.id for example in read_squad(folder / f"{data}.json.gz")}
