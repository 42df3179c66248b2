"""Names of classes that are numbers, such as ratings, keep their type everywhere."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertClassifier, BertRelationClassifier, BertTokenClassifier, save_checkpoint
from keras_bert.data.tagged import annotated_texts
from keras_bert.explain import errors
from keras_bert.tasks.spans import first_answer
from keras_bert.tasks.targets import found_names
from tests.serving.made import TINY

# The subject is labels and files, the same whatever computes the steps.
pytestmark = pytest.mark.usefixtures("eager")

TEXTS = ["rain wind", "ice", "boats the rain", "a wind"]
SPANS = [[[0, 4], [5, 9]], [[0, 1], [1, 3]], [[0, 5], [10, 14]], [[0, 1], [2, 6]]]
LABELS = {"ints": [1, 2, 5], "floats": [0.5, 1.0, 2.5], "bools": [False, True], "mixed": [1, "a"]}


def make(kind, labels, **kwargs):
    keras.utils.set_random_seed(1)
    if kind is BertRelationClassifier:
        kwargs["markers"] = ["the", "a", "red", "[MASK]"]
    return kind.from_preset(TINY, labels=labels, skip_mismatch=True, **kwargs)


def ask(model, x=None):
    if isinstance(model, BertRelationClassifier):
        return model.relate(TEXTS, SPANS)[0]
    return model.classify(TEXTS)[0]


def data(kind):
    return (TEXTS, SPANS) if kind is BertRelationClassifier else TEXTS


def same(found, expected):
    assert found == expected and [*map(type, found)] == [*map(type, expected)]


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "kind", [BertClassifier, pytest.param(BertRelationClassifier, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_names_keep_their_type(kind, labels, tmp_path):
    model = make(kind, labels)
    same(model.labels, labels)
    y = (labels * 4)[:4]
    assert model.encode_labels(y).tolist() == [labels.index(label) for label in y]
    model.fit(data(kind), y, epochs=1, verbose=0, class_weight={labels[-1]: 2.0})
    answers = ask(model)
    assert {*map(type, answers)} <= {*map(type, labels)} and {*answers} <= {*labels}

    model.save_to_preset(tmp_path / "p")
    model.save(tmp_path / "m.keras")
    for other in (kind.from_preset(tmp_path / "p"), keras.saving.load_model(tmp_path / "m.keras")):
        same(other.labels, labels)
        same(ask(other), answers)
    if kind is BertClassifier:
        for form in ("google", "huggingface", "kerashub"):
            save_checkpoint(model, tmp_path / form, form)
            same(kind.from_preset(tmp_path / form).labels, labels)
        config = json.loads((tmp_path / "huggingface" / "config.json").read_text())
        assert [*config["id2label"].values()] == [*map(str, labels)]


@pytest.mark.one_quick
@pytest.mark.parametrize("kind", [BertClassifier, BertRelationClassifier])
def test_a_server_gives_names_of_their_type(kind, tmp_path):
    model = make(kind, LABELS["ints"])
    model.export(tmp_path / "e")
    served = tf.saved_model.load(str(tmp_path / "e")).signatures["serving_default"]
    inputs = {"text": tf.constant(TEXTS)}
    if kind is BertRelationClassifier:
        inputs["spans"] = tf.constant(SPANS)
    found = served(**inputs)["label"]
    assert found.dtype == tf.int64 and found.numpy().tolist() == ask(model)


def test_several_labels_and_columns_of_arrays():
    model = make(BertClassifier, [10, 20, 30], problem="multi_label")
    expected = [[1, 0, 1], [0, 0, 0]]
    np.testing.assert_array_equal(model.encode_labels([[10, 30], []]), expected)
    model.thresholds = [0.0] * 3
    assert model.classify("rain")[0] == [10, 20, 30]
    single = make(BertClassifier, np.array([1, 2, 3]))
    assert single.encode_labels(np.array([[3], [1]])).tolist() == [2, 0]
    assert single.encode_labels([np.int64(2), 3]).tolist() == [1, 2]
    for wrong in ([1, 4], [0], ["1"], [1.5], [float("nan")]):
        with pytest.raises(ValueError, match="is unknown; expected 1, 2, 3"):
            single.encode_labels(wrong)


@pytest.mark.parametrize("kind", [BertClassifier, BertRelationClassifier])
def test_in_a_dataset(kind):
    model = make(kind, [1, 2, 5])
    assert model.encode_labels_in_graph(tf.constant([5, 1])).numpy().tolist() == [2, 0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="unknown label"):
        model.encode_labels_in_graph(tf.constant([0]))


def test_the_message_says_what_to_do():
    model = BertClassifier.from_preset(TINY, num_classes=5, skip_mismatch=True)
    with pytest.raises(ValueError, match=r"label 5 in row 1 is unknown.*ratings, pass labels=\["):
        model.fit(["rain", "ice"], [1, 5])
    model = make(BertClassifier, ["1", "2"])
    with pytest.raises(ValueError, match="label 1 in row 0 is a number, and labels=.* are strings"):
        model.fit(["rain", "ice"], [1, 1])
    assert make(BertClassifier, ["0", "1"]).encode_labels([1, 0]).tolist() == [1, 0]
    with pytest.raises(TypeError, match="type tuple: expected str or int or float; map others"):
        make(BertClassifier, [(1, 2), (3, 4)])
    with pytest.raises(ValueError, match="a name is there twice"):
        make(BertClassifier, [1, True])
    with pytest.raises(ValueError, match="expected finite"):
        make(BertClassifier, [1.0, float("inf")])
    with pytest.raises(TypeError, match="type int: expected str"):
        make(BertTokenClassifier, [1, 2])


def test_a_report_reads_them():
    found = errors(make(BertClassifier, [1, 2, 5]), TEXTS, [5, 1, 5, 2], explained=4)
    assert found.answers.right == ["5", "1", "5", "2"]
    assert {why.target for why in found.explained.values()} <= {1, 2, 5}


def test_numbers_of_numpy_are_numbers():
    """As an object column of pandas holds them, or arithmetic on arrays leaves them."""
    ids = np.empty(4, object)
    ids[:] = [np.int64(0), 1, np.int8(2), 0]
    model = make(BertClassifier, ["x", "y", "z"])
    assert model.encode_labels(ids).tolist() == [0, 1, 2, 0]
    model.fit(TEXTS, ids, epochs=1, verbose=0)
    assert found_names(ids) is None  # a model without names would not adopt these
    answer = {"text": "wind", "answer_start": np.int32(5)}
    assert [*map(type, first_answer([answer]))] == [str, int]
    assert first_answer([answer]) == first_answer([("wind", np.int64(5))]) == ("wind", 5)
    spans = [{"start": kind(0), "end": kind(4), "label": "W"} for kind in (int, np.int64)]
    assert len({repr(annotated_texts(TEXTS[:1], [[span]])) for span in spans}) == 1
