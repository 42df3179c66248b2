"""The pre-training recipe from text to a preset, on a corpus of a few sentences."""

import json

import numpy as np
import pytest

import keras_bert
from keras_bert.data import prepare_corpus
from recipes import pretrain

pytest.importorskip("apache_beam")

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on a mat dog ran home and slept . it was late"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """24 documents of 6 sentences each, as records."""
    folder = tmp_path_factory.mktemp("corpus")
    rng = np.random.default_rng(0)
    words = WORDS.split()[5:]
    documents = (
        "\n".join(" ".join(rng.choice(words, rng.integers(3, 9))) for _ in range(6))
        for _ in range(24)
    )
    text = folder / "text.txt"
    text.write_text("\n\n".join(documents) + "\n")
    tokenizer = keras_bert.BertTokenizer(WORDS.split(), lowercase=True)
    prepare_corpus([str(text)], str(folder / "records"), tokenizer, shards=2)
    return str(folder / "records")


def flags(corpus, output, steps):
    return [
        *("--corpus", corpus, "--heldout", corpus, "--output_dir", str(output), "--steps", steps),
        *("--size", "L1_H64", "--lengths", "16", "24", "--predictions", "3", "4"),
        *("--shares", "0.75", "0.25", "--batch_sizes", "8", "4", "--report_every", "3"),
        *("--learning_rate", "1e-3", "--strategy", "one", "--resume"),
    ]


@pytest.mark.slow
def test_two_phases_make_a_preset_that_answers(corpus, tmp_path):
    results = pretrain.main(flags(corpus, tmp_path, "8"))
    assert results["phase1"]["steps"] == 6 and results["phase2"]["steps"] == 2
    assert results == json.loads((tmp_path / "metrics.json").read_text())
    for number in (1, 2):
        heldout = results[f"phase{number}"]["heldout"]
        assert 0 <= heldout["nsp_accuracy"] <= 1 and heldout["mlm_perplexity"] > 1
        log = (tmp_path / f"phase{number}" / "log.jsonl").read_text().splitlines()
        assert "val_loss" in json.loads(log[-1])

    preset = str(tmp_path / "preset")
    model = keras_bert.BertMaskedLM.from_preset(preset)
    (candidates,) = model.fill("the [MASK] sat", top_k=3)
    assert len(candidates) == 3 and candidates[0].score >= candidates[1].score > 0
    whole = keras_bert.BertPretrainer.from_preset(preset)
    assert 0 < whole.next_sentence("the cat sat", "it slept") < 1
    assert whole.backbone.max_sequence_length == 24


@pytest.mark.slow
def test_the_same_command_again_finds_both_phases_done(corpus, tmp_path):
    results = pretrain.main(flags(corpus, tmp_path, "8"))
    again = pretrain.main(flags(corpus, tmp_path, "8"))
    for number in (1, 2):
        assert again[f"phase{number}"]["heldout"] == results[f"phase{number}"]["heldout"]
        assert again[f"phase{number}"]["steps"] == results[f"phase{number}"]["steps"]


def test_phases_that_do_not_fit_are_refused(corpus, tmp_path, capsys):
    for more, message in (
        (["--shares", "1"], "--lengths has 2, --shares has 1"),
        (["--shares", "0.5", "0.4"], "add up to 0.9"),
        (["--minutes", "1"], "not allowed with"),
    ):
        with pytest.raises(SystemExit):
            pretrain.main([*flags(corpus, tmp_path, "8"), *more])
        assert message in capsys.readouterr().err
