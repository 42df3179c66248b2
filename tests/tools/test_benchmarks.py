import gzip
import json

import pytest

from tools import benchmark, benchmark_fit, benchmark_run, benchmark_tokenizer

SMALL = ["--size", "tiny", "--sequence_length", "16", "--batch_size", "8", "--dtype", "float32"]


def test_tokenizers_are_compared_id_by_id(tmp_path, capsys):
    vocabulary = tmp_path / "vocab.txt"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "rain", "##s", "it", ".", "##ing"]
    vocabulary.write_text("\n".join(words) + "\n")
    text = tmp_path / "text.txt.gz"
    text.write_bytes(gzip.compress(b"It rains.\n\nRaining!\n  it  IT rained\nrain\n"))
    arguments = [str(text), "--vocabulary", str(vocabulary), "--lines", "3", "--rounds", "1"]
    found = benchmark_tokenizer.main(arguments)
    assert json.loads(capsys.readouterr().out) == found
    assert found["lines"] == 3  # blank ones are left out
    assert found["lines_with_other_ids"] == 0
    assert found["seconds"].keys() == {"keras_bert", "tokenizers"}
    assert all(len(times) == 1 and times[0] > 0 for times in found["seconds"].values())


@pytest.mark.slow
@pytest.mark.parametrize("task", ["classification", "pretraining"])
def test_training_is_timed(task, capsys):
    arguments = [*SMALL, "--task", task, "--steps", "12", "--warmup_steps", "9"]
    found = benchmark.main(arguments)
    assert json.loads(capsys.readouterr().out) == found
    timed = 3 * 8 / (3 * found["ms_per_step"] / 1000)
    assert found["rows_per_second"] == pytest.approx(timed, rel=0.02)
    assert found["first_step_seconds"] * 1000 > found["ms_per_step"]


@pytest.mark.slow
def test_prediction_is_timed():
    found = benchmark.main([*SMALL, "--work", "predict", "--rounds", "2", "--steps", "50"])
    assert len(found["seconds"]) == 2
    assert found["rows_per_second"] == pytest.approx(50 * 8 / min(found["seconds"]), rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["keras_bert", "keras_hub"])
def test_fits_are_timed(model, capsys):
    found = benchmark_fit.main([*SMALL, "--model", model, "--few", "2", "--many", "12"])
    assert json.loads(capsys.readouterr().out) == found
    assert found["model"] == model and found["first_fit_seconds"] > 0
    for step, rate in zip(found["ms_per_step"], found["rows_per_second"], strict=True):
        assert rate == pytest.approx(8e3 / step, rel=0.02)


@pytest.mark.slow
def test_whole_runs_are_timed(tmp_path, capsys):
    words = ["rain", "sun"]
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
    lines = [{"kind": "classes"}] + [{"texts": [w, w], "label": i} for i, w in enumerate(words)] * 4
    rows = tmp_path / "rows.jsonl"
    rows.write_text("\n".join(map(json.dumps, lines)))
    files = ["--train", str(rows), "--dev", str(rows), "--vocabulary", str(vocabulary)]
    found = benchmark_run.main([*files, "--epochs", "1", *SMALL])
    assert json.loads(capsys.readouterr().out) == found
    seconds = found["seconds"]
    parts = ("imports", "building", "to_first_step", "training_after_it", "prediction")
    assert seconds["whole"] == pytest.approx(sum(seconds[part] for part in parts), abs=0.1)
    assert min(seconds.values()) > 0 and found["examples"] == 8


@pytest.mark.parametrize("arguments", [["--warmup_steps", "60"], ["--texts", "x.txt"]])
def test_arguments_that_do_not_go_together(arguments):
    with pytest.raises(SystemExit):
        benchmark.parse(arguments)
