"""The recipe from end to end on a few pairs: files in, metrics out, saved and read back."""

import json
import random
from pathlib import Path

import pytest

from keras_bert.data import glue
from keras_bert.metrics import evaluate
from keras_bert.tasks.text_embedder import BertTextEmbedder
from recipes import embed

TINY = Path(__file__).parents[1] / "golden" / "tiny_one_block"


@pytest.fixture
def data(tmp_path):
    rng = random.Random(0)
    words = "rain wind the a harbour froze boat red".split()
    folder = tmp_path / "glue" / "STS-B"
    folder.mkdir(parents=True)
    for name, size in (("train", 13), ("dev", 11)):
        rows = [["index", "sentence1", "sentence2", "score"]]
        for i in range(size):
            texts = [" ".join(rng.choices(words, k=4)) for _ in range(2)]
            rows.append([str(i), *texts, f"{i % 6:.3f}"])
        (folder / f"{name}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    return tmp_path / "glue"


@pytest.mark.slow  # what recipes share is run by the test of swag.py
@pytest.mark.parametrize("loss", ["cosine", "contrastive"])
def test_recipe_writes_what_it_promises(data, tmp_path, loss):
    flags = f"--preset {TINY} --data_dir {data} --output_dir {tmp_path / 'runs'} --loss {loss}"
    flags += " --seed 2 --epochs 1 --batch_size 4 --sequence_length 12 --pooling max"
    summary = embed.main(flags.split())
    output = tmp_path / "runs" / "seed2"
    metrics = json.loads((output / "metrics.json").read_text())
    assert metrics["train_rows"] == (13 if loss == "cosine" else 4)
    model = BertTextEmbedder.from_preset(output / "preset")
    assert (model.pooling, model.pair_loss) == ("max", loss)
    dev = glue.read("stsb", data, "dev")
    scores = evaluate(["pearson", "spearman"], dev.labels, model.similarity(*dev.texts))
    for name, value in scores.items():
        assert metrics[name] == pytest.approx(value, abs=1e-4)
        assert summary[name]["mean"] == metrics[name]
    scored = embed.main([*flags.split(), "--score_only", "--preset", str(output / "preset")])
    assert scored == pytest.approx(scores, abs=1e-4)
