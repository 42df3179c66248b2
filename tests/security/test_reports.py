"""What is shown to people: pages in a browser, errors and reports in a terminal, files written."""

import json
import shutil
from html.parser import HTMLParser
from pathlib import Path

import h5py
import numpy as np
import pytest
from safetensors.numpy import load_file, save, save_file

from keras_bert import BertClassifier
from keras_bert.atomic import write_file
from keras_bert.checkpoints import open_checkpoint
from keras_bert.checkpoints.part_file import read_part
from keras_bert.explain import attention, attributions, errors, project
from keras_bert_cli.terminal import terminal
from tools.batch_view import rows_to_html

TINY = Path(__file__).parents[1] / "golden" / "tiny_hf"
STEERING = "\x1b]0;owned\x07\x1b[2J\x9b31m"
HTML = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'--><svg/onload=alert(1)>",
    "</td></table><h1>",
    "&lt;script&gt;",
    "javascript:alert(1)",
    STEERING,
    "\0\ud800",
]


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found, self.attributes = set(), set()

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.fixture(scope="module")
def classifier():
    return BertClassifier.from_preset(TINY)


def renamed(classifier, *names):
    """The classifier with labels of strangers."""
    classifier.labels = [*names, *"cd"][: classifier.num_classes]
    return classifier


@pytest.mark.thorough
def test_texts_and_labels_are_no_html(classifier, tmp_path):
    texts = [text for text in HTML if text != "\0\ud800"]
    model = renamed(classifier, *HTML[:2])
    pair = (texts, [f"rain {text}" for text in texts])
    found = errors(model, pair, [HTML[1]] * len(texts), explained=2)
    pages = [
        found.to_html(tmp_path / "errors.html"),
        project(model, pair[1], texts).to_html(tmp_path / "map.html"),
    ]
    for number, (why, both) in enumerate(
        zip(attributions(model, pair), zip(*pair, strict=True), strict=True)
    ):
        pages.append(why.to_html(tmp_path / f"why{number}.html"))
        pages.append(attention(model, both).to_html(tmp_path / f"attention{number}.html"))
    known = {"html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "p", "div"}
    known |= {"table", "thead", "tbody", "tr", "th", "td", "mark", "span", "b", "br", "svg", "text"}
    known |= {"polyline", "rect", "circle", "section", "button", "label", "select", "option"}
    known |= {"canvas", "script"}
    for page in pages:
        page = page.read_text("utf-8")
        tags = Tags()
        tags.feed(page)
        assert tags.found <= known, tags.found - known
        assert not any(name.startswith("on") or name in ("src", "href") for name in tags.attributes)
        assert page.count("<h1>") == 1 and not {"\x1b", "\x9b", "\0", "\ud800"} & set(page)
        assert page.count("<script") == page.count("</script") <= 1


def test_a_title_and_names_of_labels_are_no_html():
    page = rows_to_html([], HTML[0], HTML[:2])
    assert "<script>" not in page and "&lt;script&gt;" in page


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "name", [STEERING, "../../x", "$\\frac{1}{0}$", "\\$x$", "x" * 100_000, *HTML[:2]]
)
def test_labels_in_pictures(classifier, tmp_path, name):
    """Labels name no files, are no formulas, and warn of nothing."""
    pytest.importorskip("matplotlib")
    model = renamed(classifier, name, "b")
    files = errors(model, ["rain", "wind"], [name, "b"], explained=0).write(tmp_path / "r")
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(files)


def test_a_report_is_not_written_through_links(classifier, tmp_path):
    pytest.importorskip("matplotlib")
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "r").mkdir()
    for name in ("errors.html", "classes.png", "calibration.png", "confusion_matrix.png"):
        (tmp_path / "r" / name).symlink_to(victim)
    model = renamed(classifier, "a", "b")
    files = errors(model, ["rain", "wind"], ["a", "b"], explained=0).write(tmp_path / "r")
    assert victim.read_text() == "mine" and not any(file.is_symlink() for file in files)


# The terminal.


def steers(text):
    return any(not c.isprintable() and c not in "\n\t" for c in text)


def test_a_label_in_an_error(classifier):
    with pytest.raises(ValueError, match="label") as found:
        errors(renamed(classifier, STEERING, "b"), ["a"], [f"{STEERING}?"])
    assert not steers(str(found.value))


@pytest.fixture
def copy(tmp_path):
    return shutil.copytree(TINY, tmp_path / "copy")


def refused(folder):
    with pytest.raises((ValueError, FileNotFoundError)) as found:
        open_checkpoint(folder).backbone()
    assert not steers(str(found.value))
    return str(found.value)


def test_labels_and_texts_on_a_terminal(capsys):
    """The command prints them; none moves its cursor, sets its title or fails."""
    odd = "a\x1b]0;title\x07\x9b2J\r\ud800é\n"
    terminal.table([("labels", odd)], odd)
    terminal.note(odd)
    terminal.error(ValueError(odd))
    said = "".join(capsys.readouterr())
    assert not set(said) & {"\x1b", "\x07", "\x9b", "\r", "\ud800"}
    assert said.count(r"a\x1b]0;title\x07\x9b2J") == 4 and "é" in said


def test_names_of_tensors(copy):
    path = copy / "model.safetensors"
    save_file(load_file(path) | {f"left{STEERING}": np.zeros(3, "f4")}, path)
    assert "a tensor is called" in refused(copy)


def test_names_of_files_and_keys(copy):
    (copy / f"a{STEERING}").write_text("")
    (copy / "model.safetensors").unlink()
    assert "found: a\\x1b]0;" in refused(copy)
    (copy / "config.json").write_text(json.dumps({STEERING: 1}))
    assert "found keys \\x1b]0;" in refused(copy)
    (copy / "config.json").rename(copy / "bert_config.json")
    assert "found: \\x1b]0;" in refused(copy)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("id2label", {STEERING: "a", "0": "b"}),
        ("architectures", [STEERING, 1]),
        ("hidden_act", STEERING),
        ("problem_type", STEERING),
        ("model_type", STEERING),
        ("num_labels", STEERING),
        ("vocab_size", STEERING),
    ],
)
def test_values_of_config_json(copy, key, value):
    config = json.loads((copy / "config.json").read_text())
    if key == "num_labels":
        config.pop("id2label", None)
    (copy / "config.json").write_text(json.dumps(config | {key: value}))
    refused(copy)


def test_names_in_hdf5(tmp_path):
    preset = tmp_path / "preset"
    BertClassifier.from_preset(TINY).save_to_preset(preset)
    with h5py.File(preset / "model.weights.h5", "r+") as file:
        file[f"layers/{STEERING}".encode()] = "text"
    refused(preset)


def test_names_in_a_tuned_part(tmp_path):
    (tmp_path / "part").write_bytes(save({STEERING: np.zeros(3, "f4")}))
    with pytest.raises(ValueError, match="a tensor is called") as found:
        read_part(tmp_path / "part")
    assert not steers(str(found.value))


# Writing.


def test_a_preset_with_links_is_replaced_and_not_written_through(tmp_path):
    """What a stranger's folder links to stays; the folder itself is made anew."""
    victims = tmp_path / "victims"
    (victims / "assets").mkdir(parents=True)
    preset = tmp_path / "preset"
    preset.mkdir()
    names = ["config.json", "model.weights.h5", "task.json", "tokenizer.json"]
    for name in names:
        (victims / name).write_text("mine")
        (preset / name).symlink_to(victims / name)
    (preset / "assets").symlink_to(victims / "assets")
    BertClassifier.from_preset(TINY).save_to_preset(preset)
    assert [(victims / name).read_text() for name in names] == ["mine"] * len(names)
    assert not [*(victims / "assets").iterdir()]
    assert not any(path.is_symlink() for path in preset.rglob("*"))


def test_scratch_names_cannot_be_guessed(tmp_path, monkeypatch):
    """Nothing can be laid ready where a new file is going to be written."""
    seen = []
    monkeypatch.setattr("os.fsync", lambda _: seen.append([*tmp_path.iterdir()]))
    for _ in range(2):
        write_file(tmp_path / "new", b"content")
    first, second = ({path.name for path in paths if path.name != "new"} for paths in seen)
    assert first and second and not first & second
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
