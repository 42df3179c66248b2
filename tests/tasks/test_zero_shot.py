"""Zero-shot classification with an inference model whose logits are known."""

import numpy as np
import pytest

from keras_bert import BertBackbone, BertClassifier, BertClassifierPreprocessor, BertTokenizer
from keras_bert.tasks.zero_shot import zero_shot

# The subject is pairs and how their logits become answers.
pytestmark = pytest.mark.usefixtures("eager")

VOCAB = "[PAD] [UNK] [CLS] [SEP] [MASK] this example is . sport music war a goal song".split()
TEXTS = ["a goal", "a song", "a"]
CANDIDATES = ["sport", "music", "war"]
# By text and candidate: contradiction, neutral, entailment.
LOGITS = {
    ("a goal", "sport"): (-2.0, 1.0, 3.0),
    ("a goal", "music"): (2.0, 0.5, 1.0),
    ("a goal", "war"): (0.5, 7.0, 0.0),
    ("a song", "sport"): (1.0, 1.0, -1.0),
    ("a song", "music"): (-1.0, 0.0, 2.0),
    ("a song", "war"): (-1.0, 0.0, 2.5),
    ("a", "sport"): (0.0, 0.0, 0.0),
    ("a", "music"): (0.0, 0.0, 0.0),
    ("a", "war"): (3.0, 0.0, 0.0),
}


class KnownLogits:
    """Stands for a `BertClassifier`, with logits by what it is asked."""

    problem, num_classes = "single_label", 3

    def __init__(self, labels=("contradiction", "neutral", "Entailment"), template="This is {}!"):
        self.labels, self.template, self.columns = list(labels), template, None
        self.num_classes = len(self.labels)

    def predict(self, pairs, batch_size=None, verbose=None):
        hypotheses = {self.template.format(name): name for name in CANDIDATES}
        logits = [LOGITS[text, hypotheses[said]] for text, said in zip(*pairs, strict=True)]
        logits = np.array(logits, "float32")
        return logits if self.columns is None else logits[:, self.columns]


def softmax(values):
    exponents = [np.exp(v) for v in values]
    return [e / sum(exponents) for e in exponents]


def test_one_candidate_is_true():
    labels, found = zero_shot(KnownLogits(), TEXTS, CANDIDATES, "This is {}!")
    expected = [softmax([LOGITS[text, name][2] for name in CANDIDATES]) for text in TEXTS]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert labels == ["sport", "war", "sport"] and found.dtype == np.float32
    label, one = zero_shot(KnownLogits(), TEXTS[1], CANDIDATES, "This is {}!")
    assert label == "war"
    np.testing.assert_array_equal(one, found[1])


def test_any_number_of_candidates_is_true():
    labels, found = zero_shot(KnownLogits(), TEXTS, CANDIDATES, "This is {}!", several=True)
    expected = [
        [softmax([LOGITS[text, name][i] for i in (0, 2)])[1] for name in CANDIDATES]
        for text in TEXTS
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert labels == [["sport"], ["war", "music"], ["sport", "music"]]
    label, alone = zero_shot(KnownLogits(), "a goal", ["music"], "This is {}!")
    assert label == []
    np.testing.assert_allclose(alone, [expected[0][1]], rtol=1e-5)  # not the softmax of one, 1


def test_other_orders_and_two_labels():
    model = KnownLogits(["ENTAILMENT", "neutral", "Contradiction"])
    model.columns = [2, 1, 0]
    expected = zero_shot(KnownLogits(), TEXTS, CANDIDATES, "This is {}!", several=True)[1]
    found = zero_shot(model, TEXTS, CANDIDATES, "This is {}!", several=True)[1]
    np.testing.assert_array_equal(found, expected)
    model = KnownLogits(["entailment", "not_entailment"])
    model.columns = [2, 0]
    found = zero_shot(model, TEXTS, CANDIDATES, "This is {}!", several=True)[1]
    np.testing.assert_array_equal(found, expected)


def test_a_classifier_of_ours_reads_text_and_hypothesis():
    backbone = BertBackbone(len(VOCAB), 1, 2, 16, 24, 32, initializer_range=0.5)
    preprocessor = BertClassifierPreprocessor(BertTokenizer(VOCAB), 16)
    model = BertClassifier(
        backbone, labels=["entailment", "neutral", "contradiction"], preprocessor=preprocessor
    )
    labels, found = zero_shot(model, TEXTS, CANDIDATES)
    for text, label, row in zip(TEXTS, labels, found, strict=True):
        pairs = [text] * 3, [f"This example is {name}." for name in CANDIDATES]
        expected = softmax(model.predict(pairs, verbose=0)[:, 0])
        np.testing.assert_allclose(row, expected, rtol=1e-4)
        assert label == CANDIDATES[int(np.argmax(expected))]


@pytest.mark.parametrize(
    ("labels", "kwargs", "match"),
    [
        (["0", "1"], {}, r"labels are \['0', '1'\]: expected those of an inference model"),
        ([], {}, "expected those of an inference model"),
        (["entailment", "a", "b"], {"several": True}, 'several=True needs "contradiction"'),
        (["entailment", "a"], {"template": "sport"}, "template='sport': expected {}"),
        (["entailment", "a"], {"candidates": []}, "expected one or more"),
        (["entailment", "a"], {"candidates": ["x", "x"]}, "each once"),
    ],
)
def test_errors(labels, kwargs, match):
    with pytest.raises(ValueError, match=match):
        zero_shot(KnownLogits(labels), TEXTS, **{"candidates": CANDIDATES, **kwargs})
    with pytest.raises(TypeError, match=r"candidates\[1\]=3"):
        zero_shot(KnownLogits(), TEXTS, ["a", 3])
