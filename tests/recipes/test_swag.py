"""The recipe from end to end on a few rows: files in, metrics out, saved and read back."""

import csv
import json
import random
from pathlib import Path

import numpy as np
import pytest

from keras_bert.tasks.multiple_choice import BertMultipleChoice
from recipes import swag

TINY = Path(__file__).parents[1] / "golden" / "tiny_one_block"


def write(path, size):
    rng = random.Random(0)
    words = "rain wind the a harbour froze boat red".split()
    header = ["sent1", "sent2", "ending0", "ending1", "ending2", "ending3", "label"]
    rows = [[" ".join(rng.choices(words, k=3)) for _ in range(6)] for _ in range(size)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *([*row, rng.randrange(4)] for row in rows)])


@pytest.mark.slow
def test_recipe_writes_what_it_promises(tmp_path):
    write(tmp_path / "train.csv", 19)
    flags = (
        f"--preset {TINY} --data_dir {tmp_path} --dev_share 0.42 --output_dir {tmp_path / 'runs'}"
    )
    flags += " --seed 3 --epochs 1 --batch_size 5 --sequence_length 12"
    summary = swag.main(flags.split())
    values = [run["accuracy"] for run in summary["by_seed"]]
    assert summary["runs"] == 1 and summary["accuracy"]["mean"] == pytest.approx(np.mean(values))
    examples = swag.read_choices(tmp_path / "train.csv")
    dev = type(examples)(*(column[11:] for column in examples))
    output = tmp_path / "runs" / "seed3"
    metrics = json.loads((output / "metrics.json").read_text())
    assert metrics["train_rows"] == 11 and metrics["seed"] == 3
    assert (output / "best.weights.h5").is_file()
    model = BertMultipleChoice.from_preset(output / "preset")
    accuracy = np.mean(np.equal(model.choose(dev)[0], dev.labels))
    assert metrics["accuracy"] == pytest.approx(accuracy)
    assert metrics["val_accuracy_by_epoch"][-1] == pytest.approx(accuracy)


def test_a_row_with_three_endings_is_named(tmp_path):
    write(tmp_path / "train.csv", 3)
    lines = (tmp_path / "train.csv").read_text().splitlines()
    lines[2] = ",".join(lines[2].split(",")[:5] + ["2"])
    (tmp_path / "val.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match="val.csv, line 3: 6 columns"):
        swag.main(["--preset", str(TINY), "--data_dir", str(tmp_path)])
