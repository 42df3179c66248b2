"""Reports: calibration by hand, the files as they are."""

import html.parser

import numpy as np
import pytest

from keras_bert.reports import write_report
from keras_bert.reports.classification_report import calibration
from keras_bert.reports.mistakes import mistakes_page


@pytest.fixture
def example():
    rng = np.random.default_rng(0)
    return rng.integers(0, 5, 83), rng.normal(size=(83, 5)) * 2


def test_calibration_by_hand():
    probabilities = np.array([[0.95, 0.05], [0.91, 0.09], [0.4, 0.6], [1.0, 0.0]])
    found = calibration(np.array([0, 1, 1, 0]), probabilities)
    assert found.count.tolist() == [0] * 6 + [1, 0, 0, 3]
    assert found.confidence[6] == pytest.approx(0.6) and found.accuracy[6] == 1
    assert found.confidence[9] == pytest.approx((0.95 + 0.91 + 1.0) / 3)
    assert found.accuracy[9] == pytest.approx(2 / 3)
    assert found.expected_error == pytest.approx(0.25 * 0.4 + 0.75 * abs(2.86 / 3 - 2 / 3))


class Cells(html.parser.HTMLParser):
    """The table's cells, as a browser would show them, and the tags that are open."""

    def __init__(self):
        super().__init__()
        self.tags, self.rows = set(), []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.strip()


def test_the_worst_mistakes_come_first_and_texts_are_escaped():
    probabilities = np.array([[0.6, 0.4], [0.9, 0.1], [0.2, 0.8], [0.7, 0.3]])
    texts = ["mild", "<script>alert(1)</script> & so", "right", "worse"]
    page = mistakes_page([texts], np.array([1, 1, 1, 1]), probabilities, ["no", "yes"], worst=2)
    cells = Cells()
    cells.feed(page)
    assert [row[0] for row in cells.rows[1:]] == ["1", "3"]
    assert cells.rows[1][1:] == [texts[1], "yes", "no", "0.900", "0.100"]
    assert "script" not in cells.tags
    assert "3 of 4 predictions are wrong; 2 are shown" in page


@pytest.mark.parametrize("pair", [False, True])
def test_a_report_has_its_files(tmp_path, example, pair):
    pytest.importorskip("matplotlib")
    labels, logits = example
    texts = [f"text {i}" for i in range(len(labels))]
    columns = (texts, texts[::-1]) if pair else texts
    files = write_report(tmp_path / "r", columns, labels.tolist(), logits, list("abcde"))
    assert {file.name for file in (tmp_path / "r").iterdir()} == {file.name for file in files}
    for file in files[:3]:
        assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and file.stat().st_size > 5_000
    wrong = int((logits.argmax(axis=1) != labels).sum())
    assert files[3].read_text("utf-8").count("<tr>") == wrong + 1


def test_what_does_not_fit(tmp_path):
    with pytest.raises(ValueError, match="2 rows of 2 logits, with texts and labels of"):
        write_report(tmp_path, ["a"], [0], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="label 'c' in row 1 is unknown; expected a, b"):
        write_report(tmp_path, ["x", "y"], ["a", "c"], np.zeros((2, 2)), ["a", "b"])
