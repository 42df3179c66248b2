"""The recipe from end to end on a few rows: files in, metrics out, saved and read back."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from keras_bert import BertBackbone, BertClassifier
from keras_bert.tasks import BertTask
from recipes import glue

TINY = Path(__file__).parents[1] / "golden" / "tiny_one_block"


@pytest.fixture
def data(tmp_path):
    rng = random.Random(0)
    words = "rain wind the a harbour froze boat red".split()
    for task, header in (("SST-2", ["sentence", "label"]), ("CoLA", None)):
        folder = tmp_path / "glue" / task
        folder.mkdir(parents=True)
        for name, size in (("train", 19), ("dev", 11)):
            rows = [header] if header else []
            for _ in range(size):
                text, label = " ".join(rng.choices(words, k=5)), str(rng.randint(0, 1))
                rows.append([text, label] if header else ["gj04", label, "", text])
            lines = "".join("\t".join(row) + "\n" for row in rows)
            (folder / f"{name}.tsv").write_text(lines)
    return tmp_path / "glue"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("task", "metric"),
    [("sst2", "accuracy"), pytest.param("cola", "matthews", marks=pytest.mark.slow)],
)
def test_recipe_writes_what_it_promises(data, tmp_path, task, metric):
    flags = f"--task {task} --preset {TINY} --data_dir {data} --output_dir {tmp_path / 'runs'}"
    flags += " --seed 0 1 --epochs 1 --batch_size 8 --sequence_length 12"
    summary = glue.main(flags.split())
    assert summary["runs"] == 2
    values = [run[metric] for run in summary["by_seed"]]
    assert summary[metric]["mean"] == pytest.approx(np.mean(values))
    for seed in (0, 1):
        output = tmp_path / "runs" / f"{task}-seed{seed}"
        metrics = json.loads((output / "metrics.json").read_text())
        assert metrics["train_rows"] == 19 and metrics["seed"] == seed
        assert (output / "best.weights.h5").is_file()
        assert any((output / "tensorboard").rglob("events.out.*"))
        model = BertClassifier.from_preset(output / "preset")
        dev = glue.glue.read(task, data, "dev")
        accuracy = np.mean(model.predict(dev.texts, verbose=0).argmax(1) == dev.labels)
        assert metrics["accuracy"] == pytest.approx(accuracy)
        assert metrics["val_accuracy_by_epoch"][-1] == pytest.approx(accuracy)


@pytest.mark.slow
def test_lstms_on_a_frozen_bert(data, tmp_path):
    flags = f"--task sst2 --preset {TINY} --data_dir {data} --output_dir {tmp_path / 'runs'}"
    flags += " --epochs 1 --batch_size 8 --sequence_length 12 --seed 0 1 --bilstm --frozen"
    assert glue.main(flags.split())["runs"] == 2
    before = BertBackbone.from_preset(str(TINY)).get_weights()
    heads = []
    for seed in (0, 1):
        task = BertTask.from_preset(tmp_path / "runs" / f"sst2-seed{seed}" / "preset")
        assert type(task).__name__ == "BiLSTMClassifier"
        for one, other in zip(before, task.backbone.get_weights(), strict=True):
            np.testing.assert_array_equal(one, other)
        heads.append(task.get_layer("bilstm").get_weights()[0])
    assert np.abs(heads[0] - heads[1]).max() > 1e-3


@pytest.mark.slow
def test_all_tasks_in_one_go(data, tmp_path, monkeypatch):
    """Three of the nine, one of numbers; the slice is taken where the whole is not there."""
    folder = data / "STS-B"
    folder.mkdir()
    row = "rain wind\tthe boat\t"
    for name in ("train_slice", "dev"):
        rows = [f"{row}{score / 2}" for score in range(11)]
        (folder / f"{name}.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *rows]))
    three = {name: glue.glue.TASKS[name] for name in ("sst2", "cola", "stsb")}
    monkeypatch.setattr(glue.glue, "TASKS", three)
    flags = f"--task all --preset {TINY} --data_dir {data} --output_dir {tmp_path / 'runs'}"
    flags += " --train_split train train_slice --epochs 1 --batch_size 8 --sequence_length 12"
    found = glue.main([*flags.split(), "--report"])
    means = [found["by_task"][name][task.headline]["mean"] for name, task in three.items()]
    assert found["mean"] == pytest.approx(np.mean(means))
    splits = {name: found["by_task"][name]["by_seed"][0]["train_split"] for name in three}
    assert splits == {"sst2": "train", "cola": "train", "stsb": "train_slice"}
    assert (tmp_path / "runs" / "cola-seed0" / "report" / "classes.png").is_file()


def test_unknown_flags_are_refused(data, capsys):
    with pytest.raises(SystemExit):
        glue.parse(f"--task sst2 --preset {TINY} --learning_rat 1".split())
    assert "unrecognized arguments: --learning_rat" in capsys.readouterr().err
