"""Damaged checkpoints of every form end in an error of ours, soon and without much memory."""

import json
import resource
import shutil
import sys

import numpy as np
import pytest

from keras_bert.checkpoints import open_checkpoint, save_checkpoint
from tests.checkpoints.test_conversion import make


def mutate(content: bytes, rng: np.random.Generator) -> bytes:
    """Changes bits, bytes, or a stretch of a file."""
    data = bytearray(content)
    kind = rng.integers(7)
    at = int(rng.integers(len(data)))
    stretch = int(rng.integers(1, 64))
    if kind == 0:
        data[at] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        data[at] = int(rng.integers(256))
    elif kind == 2:
        del data[at:]
    elif kind == 3:
        del data[at : at + stretch]
    elif kind == 4:
        data[at:at] = rng.bytes(stretch)
    elif kind == 5:
        data[at : at + stretch] = bytes(len(data[at : at + stretch]))
    else:  # numbers that ask for much: in text, and as integers
        data[at : at + 8] = [b"99999999", b"\xff" * 8, b"-1000000"][int(rng.integers(3))]
    return bytes(data)


@pytest.mark.one_quick
@pytest.mark.parametrize("form", ["google", "huggingface", "kerashub"])
@pytest.mark.parametrize("count", [150, pytest.param(3500, marks=pytest.mark.slow)])
def test_mutated_files(form, count, tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    save_checkpoint(make("pretrainer"), whole, form)
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    contents = {name: (whole / name).read_bytes() for name in files}
    shutil.copytree(whole, broken)
    rng, refused = np.random.default_rng(0), 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for i in range(count):
        name = files[i % len(files)]
        (broken / name).write_bytes(mutate(contents[name], rng))
        try:
            open_checkpoint(broken)
        except (ValueError, FileNotFoundError) as error:
            assert str(error)
            refused += 1
        (broken / name).write_bytes(contents[name])
    open_checkpoint(broken)  # whole again
    # Many changes harm nothing: a bit of a weight, a letter of a label.
    assert refused > count / 20
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # KB
    assert grown < 300_000


@pytest.mark.slow
@pytest.mark.parametrize("form", ["google", "huggingface", "kerashub"])
def test_json_nested_to_just_below_the_limit(form, tmp_path):
    """What the parser still takes may be too deep for whoever shows it in an error."""
    save_checkpoint(make("classifier"), tmp_path / "whole", form)
    limit = sys.getrecursionlimit()
    depths = range(limit - 160, limit, 2)
    for path in (tmp_path / "whole").rglob("*.json"):
        content = path.read_text()
        values = json.loads(content)
        inner = values["config"] if isinstance(values.get("config"), dict) else {}
        for place in (values, inner):
            for key in list(place):
                old, place[key] = place[key], "here"
                text = json.dumps(values)
                place[key] = old
                for depth in depths:
                    path.write_text(text.replace('"here"', "[" * depth + "]" * depth))
                    try:
                        open_checkpoint(tmp_path / "whole", load_weights=False)
                    except (ValueError, FileNotFoundError) as error:
                        assert str(error)
        path.write_text(content)
