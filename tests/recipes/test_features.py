"""The recipe from end to end: features of a frozen BERT, a BiLSTM that learns on them."""

import json
import random
from pathlib import Path

import keras
import numpy as np
import pytest

from recipes import features

TINY = Path(__file__).parents[1] / "golden" / "tiny_one_block"


def write(path, size, seed):
    rng, lines = random.Random(seed), []
    for _ in range(size):
        for word in rng.choices("rain wind the a harbour froze boat red".split(), k=5):
            lines.append(f"{word} {'B-LOC' if word in ('rain', 'the') else 'O'}")
        lines.append("")
    path.write_text("\n".join(lines))


@pytest.mark.slow
def test_recipe_learns_and_writes_what_it_promises(tmp_path):
    # The tiny vocabulary has both of the names, but not all other words.
    for name, size in (("train", 120), ("dev", 7), ("test", 9)):
        write(tmp_path / f"{name}.txt", size, name)
    flags = f"--preset {TINY} --data_dir {tmp_path} --output_dir {tmp_path / 'runs'}"
    flags += " --layers 0 -1 --units 16 --num_layers 1 --epochs 10 --batch_size 8"
    flags += " --learning_rate 2e-2 --sequence_length 12"
    summary = features.main(flags.split())
    metrics = json.loads((tmp_path / "runs" / "seed0" / "metrics.json").read_text())
    assert summary["test_f1"]["mean"] == metrics["test_f1"] > 0.8
    assert len(metrics["train_seconds_by_epoch"]) == 10
    model = keras.saving.load_model(tmp_path / "runs" / "seed0" / "tagger.keras")
    assert model.settings["units"] == 16


@pytest.mark.slow
def test_choices_of_the_paper_one_by_one(tmp_path, capsys):
    for name, size in (("train", 40), ("dev", 7)):
        write(tmp_path / f"{name}.txt", size, name)
    flags = f"--preset {TINY} --data_dir {tmp_path} --output_dir {tmp_path / 'runs'} --table7"
    flags += " --units 5 --num_layers 1 --epochs 1 --batch_size 8 --sequence_length 12 --resume"
    found = features.main(flags.split())["by_layers"]
    assert set(found) == {"embeddings", "last", "weighted all"}  # of a single block
    assert "second to last: left out, the BERT has 1 layers" in capsys.readouterr().out
    assert found["weighted all"]["by_seed"][0]["dev_f1"] == found["weighted all"]["dev_f1"]["mean"]
    again = features.main(flags.split())["by_layers"]
    assert again == found and "Epoch 1" not in capsys.readouterr().out


def test_columns_of_each_choice():
    args = features.parse(["--preset", "p", "--table7"])
    read, combine, found = features.choices(args, num_layers=6, dim=10)
    assert read == [0, 1, 2, 3, 4, 5, 6] and combine == "concatenate"
    columns = {name: ([*range(70)[columns]], states) for name, (columns, states) in found.items()}
    assert columns["embeddings"] == ([*range(10)], 1)
    assert columns["second to last"] == ([*range(50, 60)], 1)
    assert columns["last"] == ([*range(60, 70)], 1)
    assert columns["concatenated last four"] == ([*range(30, 70)], 1)
    assert columns["weighted last four"] == ([*range(30, 70)], 4)
    assert columns["weighted all"] == ([*range(10, 70)], 6)
    args = features.parse(["--preset", "p", "--layers", "0", "-1", "--combine", "weighted"])
    assert features.choices(args, 6, 10) == ([0, -1], "concatenate", {"": (slice(None), 2)})


def test_batches_hold_every_sentence_once():
    lengths = [3, 1, 0, 20, 5]
    rows = [np.full((n, 2), i + 1.0, "float32") for i, n in enumerate(lengths)]
    labels = [[i] * n for i, n in enumerate(lengths)]
    batches = features.batches(rows, labels, 2, seed=1)
    assert batches.cardinality() == 3
    seen = []
    for x, y, weights in batches.as_numpy_iterator():
        assert x.shape[:2] == y.shape == weights.shape and x.shape[1] % 16 == 0
        np.testing.assert_array_equal(x[..., 0], y + 1)
        np.testing.assert_array_equal(weights, y >= 0)
        seen += y[y >= 0].tolist()
    assert sorted(seen) == sorted(i for row in labels for i in row)
