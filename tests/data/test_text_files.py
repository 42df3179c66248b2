import gzip

import pytest

from keras_bert.data import text_files
from keras_bert.data.text_files import find_files, read_lines


def write(path, data):
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def all_lines(path, start=0):
    found = list(read_lines(path, start))
    starts = [int(place) for part in found for place in part.starts]
    return starts, [line for part in found for line in part.lines]


def test_find_files(tmp_path, monkeypatch):
    names = ["b.txt", "a.txt.gz", "c[1].txt", "d.md"]
    b, a, c, d = (write(tmp_path / name, b"x\n") for name in names)
    (tmp_path / "folder.txt").mkdir()
    assert find_files([tmp_path / "*.txt*"]) == [a, b, c]
    assert find_files(tmp_path / "c[1].txt") == [c]  # a name that looks like a glob
    assert find_files([d, tmp_path / "b.t?t"]) == [b, d]
    with pytest.raises(FileNotFoundError, match=r"e\.txt is not there"):
        find_files([b, tmp_path / "e.txt"])
    with pytest.raises(FileNotFoundError, match=r"\*\.csv is not there"):
        find_files(tmp_path / "*.csv")
    with pytest.raises(ValueError, match=r"b\.txt is named twice$"):
        find_files([tmp_path / "b.*", f"{tmp_path}/./b.txt"])
    (tmp_path / "link.txt").symlink_to(b)
    with pytest.raises(ValueError, match=r"b\.txt is named twice, also as .*link\.txt"):
        find_files([b, tmp_path / "link.txt"])
    with pytest.raises(IsADirectoryError, match="is a folder: expected files"):
        find_files(tmp_path)
    with pytest.raises(ValueError, match="no files were given"):
        find_files([])
    monkeypatch.chdir(tmp_path)  # whose files an empty name, as of an unset variable, is not
    with pytest.raises(FileNotFoundError, match="^'' is not there"):
        find_files("")


def test_find_files_of_tensorflows_file_systems(tmp_path):
    address = f"file://{tmp_path}"
    for name in ("a.txt", "b[1].txt"):
        write(tmp_path / name, b"x\n")
    (tmp_path / "c.txt").mkdir()
    assert find_files(f"{address}/*.txt") == [f"{address}/a.txt", f"{address}/b[1].txt"]
    assert find_files(f"{address}/b[1].txt") == [f"{address}/b[1].txt"]
    with pytest.raises(FileNotFoundError, match=r"/c\*: no files, only folders"):
        find_files(f"{address}/c*")
    with pytest.raises(FileNotFoundError, match=r"/d\.txt is not there"):
        find_files(f"{address}/d.txt")


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("chunk", [1, 3, 1 << 20])
def test_lines_and_their_places(tmp_path, monkeypatch, name, chunk):
    monkeypatch.setattr(text_files, "CHUNK_BYTES", chunk)
    data = "\ufeffé\r\n\n x\u2028y\x85z \n\nlast".encode()
    path = write(tmp_path / name, data)
    expected = ["é\r", "", " x\u2028y\x85z ", "", "last"]
    places = [0, 7, 8, 19, 20]
    assert all_lines(path) == (places, expected)
    assert all(
        data[place:].removeprefix("\ufeff".encode()).startswith(line.encode())
        for place, line in zip(*all_lines(path), strict=True)
    )
    # From any byte: the lines that begin there or later.
    for start in range(1, len(data) + 1):
        later = [(p, line) for p, line in zip(places, expected, strict=True) if p >= start]
        assert list(zip(*all_lines(path, start), strict=True)) == later, start


@pytest.mark.parametrize("data", [b"", "\ufeff".encode()])
def test_empty_files(tmp_path, data):
    assert all_lines(write(tmp_path / "a.txt", data)) == ([], [])


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("chunk", [2, 1 << 20])
@pytest.mark.parametrize("start", [0, 3])
def test_bytes_that_are_not_utf8_are_named(tmp_path, monkeypatch, name, chunk, start):
    monkeypatch.setattr(text_files, "CHUNK_BYTES", chunk)
    path = write(tmp_path / name, b"a\nb\nc\xc3\xa9\xe9d\ne\n")
    message = r"a\.txt.*, line 3: byte 0xe9 at position 3 of the line is not UTF-8"
    with pytest.raises(ValueError, match=message):
        list(read_lines(path, start))


def test_gzip_that_is_broken_or_not_named_so(tmp_path):
    packed = gzip.compress(b"a line\n" * 1000)
    path = write(tmp_path / "a.txt", packed)
    with pytest.raises(
        ValueError, match="line 1: byte 0x8b.*it looks gzipped, without .gz in its name$"
    ):
        list(read_lines(path))
    for data in (packed[:-20], b"plain"):
        (tmp_path / "b.gz").write_bytes(data)
        with pytest.raises(ValueError, match=r"b\.gz, after byte \d+: damaged gzip file"):
            list(read_lines(str(tmp_path / "b.gz")))


def test_a_line_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "LINE_BYTES", 100)
    monkeypatch.setattr(text_files, "CHUNK_BYTES", 7)
    path = write(tmp_path / "a.txt", b"x\n" * 3 + b"y" * 99 + b"\n" + b"z" * 200)
    with pytest.raises(ValueError, match="line 5: more than .* without a line feed"):
        list(read_lines(path))
