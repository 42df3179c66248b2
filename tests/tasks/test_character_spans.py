"""Entities as character spans beside texts, the form that annotation tools write."""

import json

import numpy as np
import pytest

from keras_bert.data import AnnotatedTexts, read_entities
from tests.tasks.test_token_classifier import model_for

# The subject is labels; test_token_classifier.py trains in graphs.
pytestmark = pytest.mark.usefixtures("eager")

TEXTS = ["Ada met Grace Hopper.", "in Paris", "unaffable", "人 met 京."]
SPANS = [[(8, 20, "PER"), (0, 3, "PER")], [(3, 8, "LOC")], [], [(0, 1, "PER"), (6, 7, "LOC")]]
TAGS = [
    ["B-PER", "O", "B-PER", "I-PER", "O"],
    ["O", "B-LOC"],
    ["O"],
    ["B-PER", "O", "B-LOC", "O"],
]


def rows(model, *data):
    ids, labels, weights = model.make_rows(*data)
    return [*ids.values(), labels, weights]


FORMS = {
    "tuples": (TEXTS, SPANS),
    "lists": (TEXTS, [[[*span] for span in spans] for spans in SPANS]),
    "objects": ([{"text": t, "entities": s} for t, s in zip(TEXTS, SPANS, strict=True)],),
    "spacy": ([(t, {"entities": s}) for t, s in zip(TEXTS, SPANS, strict=True)],),
    "doccano": ([{"id": 7, "text": t, "label": s} for t, s in zip(TEXTS, SPANS, strict=True)],),
    "prodigy": (
        [
            {"text": t, "spans": [{"start": a, "end": b, "label": k} for a, b, k in s], "meta": {}}
            for t, s in zip(TEXTS, SPANS, strict=True)
        ],
    ),
    "offsets": (
        [
            {
                "text": t,
                "entities": [{"start_offset": a, "end_offset": b, "label": k} for a, b, k in s],
            }
            for t, s in zip(TEXTS, SPANS, strict=True)
        ],
    ),
    "numpy": (np.array(TEXTS), [[(np.int64(a), np.int64(b), k) for a, b, k in s] for s in SPANS]),
}


@pytest.mark.one_quick
@pytest.mark.parametrize("form", FORMS)
def test_spans_become_the_tags_of_words(form):
    model = model_for()
    for found, right in zip(rows(model, *FORMS[form]), rows(model, TEXTS, TAGS), strict=True):
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize(
    "labels, right",
    [
        ("O B-PER I-PER E-PER S-PER", "S-PER O B-PER I-PER E-PER O"),
        ("O B-PER I-PER L-PER U-PER", "U-PER O B-PER I-PER L-PER O"),
        ("O B-PER M-PER E-PER S-PER", "S-PER O B-PER M-PER E-PER O"),
        ("O I-PER", "I-PER O I-PER I-PER I-PER O"),
    ],
)
def test_spans_are_written_in_the_scheme_of_the_labels(labels, right):
    model = model_for(labels.split())
    data = (["Ada met Grace London Hopper."], [[(0, 3, "PER"), (8, 27, "PER")]])
    for found, tags in zip(rows(model, *data), rows(model, data[0], [right.split()]), strict=True):
        np.testing.assert_array_equal(found, tags)


@pytest.mark.thorough
def test_training_on_spans_is_training_on_tags():
    histories, models = [], []
    for data in ((TEXTS, SPANS), FORMS["prodigy"], (TEXTS, TAGS)):
        model = model_for(None, num_classes=5)
        if data[-1] is TAGS:
            model.labels = ["O", "B-LOC", "B-PER", "I-LOC", "I-PER"]
        valid = data[0] if len(data) == 1 else data
        history = model.fit(*data, epochs=2, validation_data=valid, verbose=0)
        histories.append(history.history)
        models.append(model)
        assert model.labels == ["O", "B-LOC", "B-PER", "I-LOC", "I-PER"]
    for history in histories[:2]:
        assert history == histories[2]
    assert models[0].evaluate(TEXTS, SPANS, verbose=0) == models[2].evaluate(TEXTS, TAGS, verbose=0)
    rows(models[0], TEXTS, models[0].tag(TEXTS))  # answers are labels of the same form


@pytest.mark.thorough
def test_a_split_for_validation_is_made_of_spans_too():
    history = model_for().fit(TEXTS, SPANS, validation_split=0.25, verbose=0).history
    assert history == model_for().fit(TEXTS, TAGS, validation_split=0.25, verbose=0).history


def test_json_lines_of_annotation_tools_are_read(tmp_path):
    path = tmp_path / "names.jsonl"
    path.write_text("\n\n".join(map(json.dumps, FORMS["prodigy"][0])))
    found = read_entities(path)
    assert found == AnnotatedTexts(TEXTS, [sorted(spans) for spans in SPANS], [1, 3, 5, 7])
    model = model_for()
    for one, other in zip(rows(model, found), rows(model, TEXTS, TAGS), strict=True):
        np.testing.assert_array_equal(one, other)
    assert model.fit(found, validation_data=found, verbose=0).history["val_loss"]


def test_errors_of_a_file_name_its_lines(tmp_path):
    path = tmp_path / "names.jsonl"
    path.write_text(
        '{"text": "Ada", "entities": []}\n{"text": "Ada met", "entities": [[0, 5, "PER"]]}'
    )
    with pytest.raises(ValueError, match=r"row 1 \(line 2\).*splits the word from 4 to 7"):
        model_for().fit(read_entities(path), verbose=0)
    path.write_text('{"text": "Ada", "entities": [[0, 4, "PER"]]}')
    with pytest.raises(ValueError, match=r"names.jsonl, line 1: the span \[0, 4, 'PER'\].* <= 3"):
        read_entities(path)
    path.write_text('{"text": "Ada"}')
    with pytest.raises(ValueError, match="line 1 has the keys .'text'.: expected text and one of"):
        read_entities(path)


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "spans, message",
    [
        ([(0, 5, "PER")], r"row 1: the span \(0, 5, 'PER'\) splits the word from 4 to 7"),
        ([(0, 2, "PER")], "splits the word from 0 to 3"),
        ([(0, 7, "PER"), (4, 7, "LOC")], "row 1: the spans .* overlap"),
        ([(0, 3, "PER"), (0, 3, "PER")], "overlap"),
        ([(3, 4, "PER")], "contains no word"),
        ([(4, 8, "PER")], "0 <= start < end <= 7"),
        ([(-3, 0, "PER")], "0 <= start"),
        ([(3, 3, "PER")], "0 <= start"),
        ([(0, 3, "ORG")], r"row 1: the span .* needs the label 'B-ORG'.* entities LOC, PER"),
        ([(0, 3)], "expected .start, end, label."),
        ([(0, "3", "PER")], "expected .start, end, label."),
        ([{"start": 0, "end": 3}], "expected .start, end, label."),
    ],
)
def test_a_wrong_span_is_named(spans, message):
    with pytest.raises(ValueError, match=message):
        model_for().fit(["Ada", "Ada met"], [[(0, 3, "PER")], spans], verbose=0)


def test_spans_go_with_texts():
    with pytest.raises(TypeError, match="text of row 0 of type list"):
        model_for().fit([["Ada", "met"]], [[(0, 3, "PER")]], verbose=0)
    with pytest.raises(ValueError, match="contain their labels"):
        model_for().fit(*FORMS["objects"], TAGS, verbose=0)
    with pytest.raises(ValueError, match="got 2 texts and spans of 1"):
        model_for().fit(["Ada", "met"], [[(0, 3, "PER")]], verbose=0)
    with pytest.raises(ValueError, match="expected O, B-TYPE"):
        model_for(["NOUN", "VERB"]).fit(["Ada"], [[(0, 3, "NOUN")]], verbose=0)


@pytest.mark.parametrize("spans", [[[], []], ([], [])])
def test_texts_without_an_entity_are_all_outside(spans):
    model = model_for()
    found = rows(model, TEXTS[:2], spans)
    right = rows(model, TEXTS[:2], [["O"] * 5, ["O"] * 2])
    for one, other in zip(found, right, strict=True):
        np.testing.assert_array_equal(one, other)
