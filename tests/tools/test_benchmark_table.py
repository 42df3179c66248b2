"""The tool that measures tables read in pieces: a table ten times as long takes the same memory."""

import pytest

from tools import benchmark_table


@pytest.mark.slow
@pytest.mark.parametrize("extension", [".jsonl", ".csv.gz", ".parquet"])
def test_memory_does_not_grow_with_the_table(tmp_path, extension):
    (tmp_path / "seed.csv").write_text("text,label\nA fine film.,1\nA dull film with rain.,0\n")
    flags = [str(tmp_path / "seed.csv"), "--extension", extension, "--read", "200000"]
    small, large = benchmark_table.main([*flags, "--rows", "100000", "1000000"])
    assert (small["rows"], large["rows"]) == (100_000, 1_000_000)
    assert large["bytes"] > 6 * small["bytes"]
    # In megabytes; the longer table itself would take a hundred as a list of strings.
    assert large["checked_mb"] - small["checked_mb"] < 40
    assert large["resident_mb"] - small["resident_mb"] < 80
