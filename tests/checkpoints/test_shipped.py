"""The preset in the package: there, small, described, and as good as its card says."""

import gzip
import json
import re

import numpy as np
import pytest

import keras_bert
from keras_bert.checkpoints.source import SHIPPED, shipped

pytestmark = pytest.mark.optimized

NAME = "bert_mini_en_public_domain"


@pytest.fixture(scope="module")
def model():
    return keras_bert.BertPretrainer.from_preset(NAME)


def test_it_is_at_most_twenty_megabytes_with_a_card():
    assert shipped() == [NAME]
    files = [path for path in (SHIPPED / NAME).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 20e6
    card = (SHIPPED / NAME / "README.md").read_text(encoding="utf-8")
    for word in ("## Data", "## Training", "H200", "held-out", "curves.png"):
        assert word in card
    assert (SHIPPED / NAME / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_all_weights_come_from_it_and_compute_in_float32(model):
    assert not model.loading_report.new
    assert model.backbone.dtype_policy.name == "float32"
    assert model.backbone.hidden_dropout == 0.1
    count = f"{model.count_params():,}"
    assert count in (SHIPPED / NAME / "README.md").read_text(encoding="utf-8")


@pytest.mark.thorough
def test_it_fills_in_and_knows_what_follows(model):
    fills = model.fill(["She opened the [MASK] and walked out.", "He drank a cup of [MASK]."])
    assert fills[0][0][0].token == "door"
    assert {"tea", "wine", "water"} <= {fill.token for fill in fills[1][0]}
    first = "He opened the door and went in."
    follows = model.next_sentence(first, "There was nobody in the room.")
    assert follows > 0.5 > model.next_sentence(first, "Congress shall have power to declare war.")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("every", "masked_within", "sentence_within"),
    [(12, 0.03, 0.1), (1, 0.001, 0.001)],
)
def test_held_out_scores_are_those_of_the_card(
    model, shared_dir, tmp_path, every, masked_within, sentence_within
):
    with gzip.open(
        shared_dir / "data/text/en/public_domain_heldout.txt.gz", "rt", encoding="utf-8"
    ) as file:
        documents = file.read().split("\n\n")[::every]
    (tmp_path / "part.txt").write_text("\n\n".join(documents), encoding="utf-8")
    records = tmp_path / "records"
    tokenizer = model.preprocessor.tokenizer
    keras_bert.data.prepare_corpus(tmp_path / "part.txt", records, tokenizer, 1, verbose=False)
    batches = keras_bert.data.pretraining_dataset(records, repeat=False, batch_size=64)
    scores = model.evaluate(batches, return_dict=True, verbose=0)
    card = (SHIPPED / NAME / "README.md").read_text(encoding="utf-8")
    told = re.search(r"shipped: accuracy ([\d.]+), perplexity ([\d.]+) and accuracy ([\d.]+)", card)
    masked, _, sentence = map(float, told.groups())
    assert abs(scores["mlm_accuracy"] - masked) < masked_within
    assert abs(scores["nsp_accuracy"] - sentence) < sentence_within


@pytest.mark.thorough
def test_its_texts_make_a_classifier_at_once():
    model = keras_bert.BertClassifier.from_preset(NAME, num_classes=3)
    assert model.predict(["It was a dark night."], verbose=0).shape == (1, 3)
    assert [name.split("/")[0] for name in model.loading_report.new] == ["head", "head"]
    config = json.loads((SHIPPED / NAME / "config.json").read_text())["config"]
    assert model.backbone.max_sequence_length == config["max_sequence_length"] == 512
    assert all(np.isfinite(weight).all() for weight in model.get_weights())
