"""The recipe from end to end on a few sentences: files in, metrics out, saved and read back."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from keras_bert import BertTokenClassifier
from keras_bert.data import read_tagged
from keras_bert.metrics import entity_scores
from recipes import ner

from experiment import read_tagged_parts

TINY = Path(__file__).parents[1] / "golden" / "tiny_one_block"


@pytest.fixture
def data(tmp_path):
    """Files with the names, the columns and the scheme of CoNLL-2003."""
    rng = random.Random(0)
    folder = tmp_path / "conll"
    folder.mkdir()
    for name, size in (("eng.train", 19), ("eng.testa", 7), ("eng.testb", 5)):
        lines = ["-DOCSTART- -X- O O", ""]
        for _ in range(size):
            for word in rng.choices("rain wind the a harbour froze boat red".split(), k=5):
                tag = {"harbour": "I-LOC", "boat": "I-MISC"}.get(word, "O")
                lines.append(f"{word} NN I-NP {tag}")
            lines.append("")
        (folder / name).write_text("\n".join(lines))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("crf", ["", " --crf"])
def test_recipe_writes_what_it_promises(data, tmp_path, crf):
    flags = f"--preset {TINY} --data_dir {data} --scheme iob1 --output_dir {tmp_path / 'runs'}"
    flags += f" --seed 0 1 --epochs 1 --batch_size 8 --sequence_length 12{crf}"
    summary = ner.main(flags.split())
    assert summary["runs"] == 2
    values = [run["test_f1"] for run in summary["by_seed"]]
    assert summary["test_f1"]["mean"] == pytest.approx(np.mean(values))
    for seed in (0, 1):
        output = tmp_path / "runs" / f"seed{seed}"
        metrics = json.loads((output / "metrics.json").read_text())
        assert metrics["train_rows"] == 19 and metrics["seed"] == seed
        assert (output / "best.weights.h5").is_file()
    model = BertTokenClassifier.from_preset(output / "preset")
    assert model.crf == bool(crf) and {*model.labels} >= {"O", "B-LOC", "B-MISC"}
    dev = read_tagged(data / "eng.testa", scheme="iob1")
    found = model.predict_tags(dev.words)
    assert metrics["dev_f1"] == entity_scores(dev.tags, found, mode="conlleval")["f1"]
    right = np.concatenate([np.equal(a, b) for a, b in zip(dev.tags, found, strict=True)])
    assert metrics["dev_accuracy"] == pytest.approx(right.mean())
    if not crf:
        assert metrics["val_accuracy_by_epoch"][-1] == pytest.approx(right.mean())


def test_files_and_columns(data, capsys):
    flags = f"--preset {TINY} --data_dir {data} --tag_column 1 --scheme none".split()
    found = read_tagged_parts(ner.parse(flags))
    assert [len(part.words) for part in found.values()] == [19, 7, 5]
    assert {tag for tags in found["test"].tags for tag in tags} == {"NN"}
    (data / "eng.testb").unlink()
    assert list(read_tagged_parts(ner.parse(flags))) == ["train", "dev"]
    with pytest.raises(ValueError, match="eng.train, line .*, word .*scheme='iob1'"):
        read_tagged_parts(ner.parse(flags[:4]))  # IOB2 is expected
    (data / "eng.testa").unlink()
    with pytest.raises(FileNotFoundError, match="no dev file"):
        read_tagged_parts(ner.parse([*flags, "--train", str(data / "eng.train")]))
    with pytest.raises(SystemExit):
        ner.parse([*flags, "--learning_rat", "1"])
    assert "unrecognized arguments: --learning_rat" in capsys.readouterr().err
