"""The manual's results on real data: the tool that makes them, and the sections that show them."""

import gzip
import json
import re
import struct
from pathlib import Path

import pytest

from tools import task_pictures

PAGES = sorted((Path(__file__).parents[2] / "docs" / "tasks").glob("*.md"))


def size(path: Path) -> tuple[int, int]:
    """Width and height of a PNG, from its header."""
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", content[16:24])


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    """A few rows in the layouts of SST-2 and CoNLL-2003."""
    folder = tmp_path_factory.mktemp("data")
    rows = ["a fine story .\t1", "a dull story .\t0"] * 6
    (folder / "glue" / "SST-2").mkdir(parents=True)
    for split in ("train", "dev"):
        text = "\n".join(["sentence\tlabel", *rows]) + "\n"
        (folder / "glue" / "SST-2" / f"{split}.tsv").write_text(text)
    words = ("Mary NNP I-NP I-PER", "lives VBZ I-VP O", "in IN I-PP O", "Paris NNP I-NP I-LOC")
    (folder / "ner" / "conll2003").mkdir(parents=True)
    for name in ("eng.train.gz", "eng.testa.gz"):
        content = gzip.compress("\n".join([*words, "", *words, ""]).encode())
        (folder / "ner" / "conll2003" / name).write_bytes(content)
    return folder


@pytest.mark.thorough
def test_a_task_is_measured_and_drawn(tables, tmp_path, capsys):
    places = ["--out", str(tmp_path / "images"), "--results", str(tmp_path / "results")]
    task_pictures.main(["--task", "features", "--data", str(tables), *places])
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert said["texts"] == [1.0] * 7, "embeddings and six layers"
    assert said["words"] == [1.0] * 7
    assert said["keras"] and said["cpu_s"] >= 0 and said["seed"] == 0
    picture = tmp_path / "images" / "features.png"
    assert said["pictures"] == [str(picture)]
    assert size(picture)[0] == round(task_pictures.WIDTH * 150)
    before = picture.read_bytes()
    picture.unlink()
    task_pictures.main(["--task", "features", "--draw_only", *places])
    assert picture.read_bytes() == before


def test_held_out_curves_of_runs(tmp_path, capsys):
    for variant, last in (("base", 0.3), ("masks_100_0_0", 0.2), ("causal", 0.1)):
        curve = [{"step": 400, "mlm_accuracy": 0.1}, {"step": 800, "mlm_accuracy": last}]
        run = {"variant": variant, "seed": 0, "steps": 800, "curve": curve}
        (tmp_path / f"{variant}-seed0").mkdir()
        (tmp_path / f"{variant}-seed0" / "result.json").write_text(json.dumps(run))
    places = ["--out", str(tmp_path / "images"), "--results", str(tmp_path / "results")]
    task_pictures.main(["--task", "pretraining", "--runs", str(tmp_path), *places])
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (said["base"], said["masks_100_0_0"]) == (0.3, 0.2)
    assert "causal" not in said, "its tokens are others"
    assert size(tmp_path / "images" / "pretraining_masks.png")[0] > 600


def test_an_interval():
    # Wilson 1927 by hand, n = 100, 80 right: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n).
    assert task_pictures.interval(80, 100) == pytest.approx([0.7112, 0.8666], abs=1e-4)


@pytest.mark.parametrize("flags", [["--task", "features"], ["--task", "pretraining"]])
def test_a_missing_folder_is_said_before_anything_is_loaded(flags, capsys):
    with pytest.raises(SystemExit):
        task_pictures.parse(flags)
    assert "expected --" in capsys.readouterr().err


def test_every_page_of_a_task_has_results():
    total, tasks = 0, set()
    assert len(PAGES) == 11
    for page in PAGES:
        (section,) = re.findall(
            r"^## On real data\n(.*?)(?=^## |\Z)", page.read_text("utf-8"), re.M | re.S
        )
        pictures = re.findall(r"!\[([^\]]+)\]\((\S+\.png)\)", section)
        assert pictures, page
        for alt, name in pictures:
            assert len(alt) > 40, (page, "the picture in words")
            bytes_ = (page.parent / name).stat().st_size
            assert bytes_ < 100_000, name
            total += bytes_
        tasks |= set(re.findall(r"task_pictures\.py --task (\w+)", section))
    assert tasks == set(task_pictures.TASKS)
    assert total < 800_000, "the source distribution carries them"
