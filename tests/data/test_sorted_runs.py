import numpy as np
import pytest

from keras_bert.data import sorted_runs
from keras_bert.data.sorted_runs import RunWriter, merge_runs, read_entries, shuffle_key


def write_runs(folder, count, rng):
    """Some documents of random bytes; returns the runs, and (entry, bytes) in order."""
    rows = []
    for place in range(count):
        example = rng.bytes(rng.integers(1, 50))
        key = shuffle_key(5, 0, place // 3, place % 3)
        rows.append(((key, 0, place // 3, place % 3, len(example), place, place + 1), example))
    runs = []
    for half in (rows[: count // 3], rows[count // 3 :]):
        writer = RunWriter(str(folder / f"block-{len(runs)}"))
        for entry, example in half:
            writer.add(entry, example)
        writer.flush()
        runs += writer.runs
    return runs, sorted(rows)


@pytest.mark.parametrize("run_bytes", [1, 200, 1 << 20])
@pytest.mark.parametrize("merge_bytes", [1, 1 << 20])
def test_merged_runs_are_sorted(tmp_path, monkeypatch, run_bytes, merge_bytes):
    monkeypatch.setattr(sorted_runs, "RUN_BYTES", run_bytes)
    monkeypatch.setattr(sorted_runs, "MERGE_BYTES", merge_bytes)
    monkeypatch.setattr(sorted_runs, "LEAST_READ", 1)
    runs, rows = write_runs(tmp_path, 97, np.random.default_rng(0))
    assert (len(runs) == 97) == (run_bytes == 1) and (len(runs) == 2) == (run_bytes == 1 << 20)
    assert not list(tmp_path.glob("*.new"))
    for run in runs:
        assert (np.diff(read_entries(run)["key"]) > 0).all()
    bounds = [0, rows[10][0][0], rows[11][0][0], rows[60][0][0], None]
    sizes = []
    for lower, upper in zip(bounds, bounds[1:], strict=False):
        wanted = [r for r in rows if r[0][0] >= lower and (upper is None or r[0][0] < upper)]
        entries, examples = merge_runs(runs, lower, upper)
        assert list(examples) == [example for _, example in wanted]
        assert entries.tolist() == [entry for entry, _ in wanted]
        sizes.append(len(wanted))
    assert sizes == [10, 1, 49, 37]


def test_equal_keys_keep_the_order_of_the_text(tmp_path):
    writer = RunWriter(str(tmp_path / "a"))
    places = [(1, 2, 0), (0, 7, 0), (0, 3, 1), (0, 3, 0), (1, 0, 0)]
    for place in places:
        writer.add((9, *place, 4, 1, 1), b"%d%d%d." % place)
        writer.flush()
    _, examples = merge_runs(writer.runs, 0, None)
    assert list(examples) == [b"%d%d%d." % place for place in sorted(places)]


def test_a_run_that_is_cut_short(tmp_path):
    runs, _ = write_runs(tmp_path, 9, np.random.default_rng(0))
    path = tmp_path / (runs[1].rsplit("/", 1)[1] + ".examples")
    path.write_bytes(path.read_bytes()[:-1])
    _, examples = merge_runs(runs, 0, None)
    with pytest.raises(ValueError, match=f"{path.name} is truncated"):
        list(examples)


def test_keys_look_random_and_depend_on_everything():
    keys = [shuffle_key(0, 0, place, 0) for place in range(5000)]
    assert keys == [shuffle_key(0, 0, place, 0) for place in range(5000)]
    assert 0 <= min(keys) and max(keys) < 2**63
    assert abs(np.mean(keys) / 2**62 - 1) < 0.03 and len(set(keys)) == 5000
    assert abs(np.corrcoef(keys[1:], keys[:-1])[0, 1]) < 0.05
    others = [
        shuffle_key(*args) for args in [(1, 0, 0, 0), (-1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 0, 1)]
    ]
    assert len({keys[0], *others}) == 5
