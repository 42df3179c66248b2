"""`keras-bert pretrain` from text to a preset, on a corpus of a few sentences."""

import json

import numpy as np
import pytest

import keras_bert
from keras_bert.data import read_index
from keras_bert_cli import pretrain, pretrain_flags

pytest.importorskip("apache_beam")


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


@pytest.mark.thorough
def test_longer_rows_begin_with_repeated_positions(corpus, tmp_path):
    pretrain.main([*flags(corpus, tmp_path, "2"), "--shares", "0.5", "0.5", "--learning_rate", "0"])
    backbone = keras_bert.BertBackbone.from_preset(str(tmp_path / "preset"))
    table = np.asarray(backbone.get_layer("embeddings").position_table)
    np.testing.assert_array_equal(table[16:24], table[:8])
    assert np.std(table[:16]) > 0.01 and not np.allclose(table[:8], table[8:16])


@pytest.mark.slow
def test_positions_of_a_preset_stay(corpus, tmp_path):
    first, more = str(tmp_path / "first"), str(tmp_path / "more")
    still = ["--shares", "0.5", "0.5", "--learning_rate", "0"]
    pretrain.main([*flags(corpus, first, "2"), *still, "--lengths", "24", "24"])
    given = flags(corpus, more, "2")
    del given[given.index("--size") : given.index("--size") + 2]
    pretrain.main([*given, *still, "--preset", f"{first}/preset"])
    before, after = (
        keras_bert.BertBackbone.from_preset(f"{folder}/preset").get_layer("embeddings")
        for folder in (first, more)
    )
    np.testing.assert_array_equal(before.position_table, after.position_table)


def test_phases_that_do_not_fit_are_refused(corpus, tmp_path, capsys):
    for more, message in (
        (["--shares", "1"], "--lengths has 2, --shares has 1"),
        (["--shares", "0.5", "0.4"], "add up to 0.9"),
        (["--mask_rate", "0.4", "0.2", "0.1"], "--mask_rate has 3 values"),
        (["--rate_steps", "5"], "--rate_steps needs two values of --mask_rate"),
        (["--preset", "p"], "--size L1_H64: --preset has a size of its own"),
    ):
        with pytest.raises(SystemExit):
            pretrain.main([*flags(corpus, tmp_path, "8"), *more])
        assert message in capsys.readouterr().err
    flags_of_time = [*flags(corpus, tmp_path, "8")[:6], "--minutes", "1"]
    for flags_given, message in (
        (flags_of_time[:-2], "--steps and --minutes is required"),
        ([*flags_of_time, "--mask_rate", "0.4", "0.2"], "pass --rate_steps as well"),
    ):
        with pytest.raises(SystemExit):
            pretrain.main(flags_given)
        assert message in capsys.readouterr().err


def test_masking_rate_of_each_phase(corpus, tmp_path):
    args = pretrain_flags.parse([*flags(corpus, tmp_path, "8"), "--mask_rate", "0.4", "0.2"])
    first, second = (pretrain.masking(args, n, [6, 2], heldout=False) for n in (0, 1))
    same = {"unit": "piece", "mask_share": 0.8, "random_share": 0.1}
    assert first == {
        **same,
        "rate": 0.4,
        "final_rate": pytest.approx(0.25),
        "rate_steps": 6,
    }
    assert second["rate"] == pytest.approx(0.25) and second["final_rate"] == pytest.approx(0.2)
    assert pretrain.masking(args, 0, [6, 2], heldout=True) == {**same, "rate": 0.2}
    args.rate_steps = 4
    assert pretrain.masking(args, 0, [0, 0], heldout=False)["rate_steps"] == 4
    assert pretrain.masking(args, 1, [0, 0], heldout=False) == {**same, "rate": 0.2}


def test_optimizers_by_name():
    for name in pretrain_flags.OPTIMIZERS:
        optimizer = pretrain.make_optimizer(name, 1e-3, 0.02)
        assert type(optimizer).__name__.lower() == name


@pytest.mark.slow
def test_minutes_end_a_run_with_a_falling_rate(corpus, tmp_path):
    command = [*flags(corpus, tmp_path, "8")[:6], "--minutes", "0.2", "--size", "L1_H64"]
    command += ["--lengths", "16", "--predictions", "6", "--shares", "1", "--batch_sizes", "8"]
    command += ["--mask_rate", "0.4", "0.2", "--rate_steps", "20", "--objective", "mlm"]
    results = pretrain.main([*command, "--strategy", "one", "--hold", "0.5", "--report_every", "9"])
    assert results["phase1"]["steps"] >= 1 and results["phase1"]["heldout"]["mlm_perplexity"] > 1
    curve = json.loads((tmp_path / "heldout.json").read_text())
    assert curve[-1]["step"] == results["phase1"]["steps"]


def test_flags_change_a_preset(corpus, tmp_path):
    tokenizer = read_index(corpus).make_tokenizer()
    backbone = keras_bert.BertBackbone.from_size(
        "L1_H64", vocabulary_size=tokenizer.vocabulary_size(), max_sequence_length=16
    )
    preprocessor = keras_bert.BertMaskedLMPreprocessor(tokenizer, 16)
    keras_bert.BertPretrainer(backbone, True, preprocessor).save_to_preset(str(tmp_path / "p"))
    common = ["--corpus", corpus, "--preset", str(tmp_path / "p"), "--steps", "1"]
    for more, dropout, causal in (
        ([], 0.1, False),
        (["--dropout", "0", "--objective", "lm"], 0, True),
    ):
        model = pretrain.make_model(pretrain_flags.parse([*common, *more]), tokenizer, not causal)
        found = model.backbone
        assert (found.hidden_dropout, found.attention_dropout) == (dropout, dropout)
        assert found.causal is causal
