"""The recipe for tables from end to end."""

import json
import random
from pathlib import Path

import pytest

from keras_bert import BertClassifier
from recipes import classify

TINY = Path(__file__).parents[1] / "golden" / "tiny_one_block"
SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize(
    "problem",
    [
        "multi_label",
        *(pytest.param(p, marks=pytest.mark.slow) for p in ("single_label", "regression")),
    ],
)
def test_recipe_writes_what_it_promises(tmp_path, problem):
    rng, words = random.Random(1), "rain wind the a harbour froze boat red".split()
    for name, size in (("train", 21), ("dev", 13)):
        rows = []
        for row in range(size):
            label = {
                "single_label": lambda: rng.choice(["calm", "storm"]),
                "multi_label": lambda: rng.sample(["calm", "storm", "thaw"], rng.randint(0, 2)),
                "regression": lambda: rng.random() * 5,
            }[problem]()
            if row < 2:
                label = {"single_label": ["calm", "storm"][row]}.get(problem, label)
                label = [["calm"], ["storm", "thaw"]][row] if problem == "multi_label" else label
            rows.append({"text": " ".join(rng.choices(words, k=5)), "label": label})
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(text)
    flags = f"--train {tmp_path}/train.jsonl --dev {tmp_path}/dev.jsonl --text_column text"
    flags += f" --label_column label --problem {problem} --preset {TINY} --report --epochs 1"
    flags += f" --output_dir {tmp_path}/runs --batch_size 8 --sequence_length 12"
    summary = classify.main(flags.split())
    output = tmp_path / "runs" / "seed0"
    metrics = json.loads((output / "metrics.json").read_text())
    for name in classify.METRICS[problem]:
        assert summary[name]["mean"] == metrics[name]
    model = BertClassifier.from_preset(output / "preset")
    assert model.problem == problem and model.num_classes == (
        1 if problem == "regression" else len(model.labels)
    )
    assert (output / "report" / "errors.html").is_file()


def test_a_label_that_training_did_not_see(tmp_path):
    (tmp_path / "train.csv").write_text("text,label\nrain,a\nwind,b\n")
    (tmp_path / "dev.csv").write_text("text,label\nrain,c\n")
    flags = f"--train {tmp_path}/train.csv --dev {tmp_path}/dev.csv --text_column text"
    flags += f" --label_column label --preset {TINY} --output_dir {tmp_path}/runs"
    flags += " --sequence_length 12"
    with pytest.raises(ValueError, match="label 'c' in row 0 is unknown; expected a, b"):
        classify.main(flags.split())
