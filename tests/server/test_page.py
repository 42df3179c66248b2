"""The page at / in Chromium: each task, files, programs, errors, narrow screens, both schemes."""

import contextlib
import csv
import gzip
import json
import math
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from keras_bert import BertClassifier
from keras_bert.explain import attention, attributions
from keras_bert.server import served_model
from keras_bert.serving.export import signatures_of
from keras_bert.serving.export_contract import (
    described,
    read_contract,
    settings_of,
    write_contract,
)
from keras_bert.serving.network import Network
from keras_bert.serving.signatures import Signature
from tests.browsing import CONTRAST, NAMELESS, Page, chromium, needs_chromium
from tests.server.half_model import write_model
from tests.server.live import PATIENCE, live
from tests.serving.made import TINY, make

MODELS = (
    "classifier tagger answerer chooser relator embedder pretrainer multi_label regression".split()
)
TEXT = "😀 The HARBOUR froze, a red boat Straße rain"
EXPORT = served_model.Export
pytestmark = needs_chromium
LONGEST = 300  # characters of a text
DROP = """
const transfer = new DataTransfer();
transfer.items.add(new File([arguments[1]], arguments[0]));
for (const name of ["dragenter", "dragover", "drop"]) {
  document.body.dispatchEvent(new DragEvent(name, {dataTransfer: transfer, bubbles: true}));
}
"""


class TaskExport:
    """A task in the place of its loaded export: the same signatures, run without tracing them.

    Tracing, saving and loading would take five seconds of a processor for each task; the tests of
    exports compare these with the tasks.
    """

    answers: dict[Path, dict[str, Signature]] = {}  # by folder and name
    gate = threading.Event()  # calls wait while it is not set
    entered = threading.Semaphore(0)  # released by each call

    def __init__(self, folder: Path):
        self.contract, self.signature_defs = read_contract(folder), {}
        self._signatures = self.answers[folder]

    @classmethod
    def write(cls, folder: Path, task) -> None:
        """Writes the files by which a server knows an export."""
        folder.mkdir()
        (folder / "saved_model.pb").touch()
        found = signatures_of(task, Network(task), True, {})
        names = {}
        for name, signature in found.items():
            inputs = {spec.name: signature.example[spec.name] for spec in signature.inputs}
            reply = signature.function(*tensors(signature, inputs))
            specs = described({spec.name: spec for spec in signature.inputs})
            names[name] = {"inputs": specs, "outputs": described(reply)}
        request = {"signature_name": "serving_default", "inputs": found["serving_default"].example}
        contract = {
            "task": type(task).__name__,
            "settings": settings_of(task),
            "versions": {"keras_bert": "0.1.0"},
            "weights": {"policy": "float32", "stored": "float32", "bytes": 45804},
            "signatures": names,
            "examples": [{"request": request, "reply": None}],
        }
        write_contract(folder, contract)
        cls.answers[folder] = found

    def __call__(self, signature: str, inputs: dict) -> dict:
        self.entered.release()
        assert self.gate.wait(PATIENCE)
        chosen = self._signatures[signature]
        reply = chosen.function(*tensors(chosen, inputs))
        return {name: value.numpy() for name, value in reply.items()}


def tensors(signature, inputs: dict) -> list:
    import tensorflow as tf

    return [tf.constant(inputs[spec.name], spec.dtype) for spec in signature.inputs]


@pytest.fixture(scope="module", autouse=True)
def open_gate():
    TaskExport.gate.set()


@pytest.fixture(scope="module")
def server(tmp_path_factory, exported):
    """All tasks, tiny, behind one server; `exported` is made before functions run eagerly."""
    import tensorflow as tf

    root, models = tmp_path_factory.mktemp("exports"), {}
    tf.config.run_functions_eagerly(True)  # these answer too few questions to be traced
    try:
        for kind in MODELS:
            models[kind] = root / kind
            TaskExport.write(models[kind], tiny(kind))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(served_model, "Export", TaskExport)
            with live(models, max_text_length=LONGEST) as found:
                yield found
    finally:
        tf.config.run_functions_eagerly(False)


def tiny(kind: str):
    """A task on the tiny checkpoint."""
    if kind == "multi_label":
        model = BertClassifier.from_preset(TINY, problem=kind, num_classes=3, skip_mismatch=True)
        model.labels, model.thresholds = ["a", "b", "c"], [0.5, 0.49, 0.1]
        return model
    if kind == "regression":
        return BertClassifier.from_preset(TINY, problem=kind, num_classes=1, skip_mismatch=True)
    return make(kind)


class ServedPage(Page):
    """The page of a server."""

    def open(self, port: int, model: str = "", width: int = 1280, scheme: str = "light") -> None:
        self.look(width, scheme)
        self.base = f"http://127.0.0.1:{port}/"
        self.driver.get("about:blank")
        self.driver.get(f"{self.base}#{model}")
        self.one("h1")

    def write(self, name: str, text: str) -> None:
        """Types into a field; what no key gives, such as emoji, is pasted."""
        control = self.one(f"[data-input={name}] :is(input, textarea)")
        control.clear()
        if text.isascii():
            control.send_keys(text)
        else:
            control.click()
            self.driver.execute_cdp_cmd("Input.insertText", {"text": text})

    def answer(self) -> str:
        """The answer that is there when no question waits."""
        self.one(".answer:not([aria-busy])")
        return self.one(".answer").text

    def headline(self) -> str:
        self.answer()
        return self.one(".headline").text

    def bars(self) -> dict[str, str]:
        """Figures by name."""
        return dict(
            self.driver.execute_script(
                "return [...document.querySelectorAll('.answer .bar')].map((bar) =>"
                " ['.name', '.figure'].map((css) => bar.querySelector(css).innerText.trim()))"
            )
        )


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("downloads")) as (driver, downloads):
        yield ServedPage(driver, downloads)


@pytest.fixture
def page(browser):
    """The page, which at the end has no error in its console and has asked no other host."""
    yield browser
    assert browser.problems() == []


def shares(logits: list[float]) -> list[float]:
    powers = [math.exp(logit) for logit in logits]
    return [power / sum(powers) for power in powers]


def shown(share: float) -> str:
    return f"{100 * share:.1f}%"


def outputs(server, model: str, inputs: dict, signature: str = "serving_default"):
    status, reply = server.predict({"signature_name": signature, "inputs": inputs}, model)
    assert status == 200, reply
    return reply["outputs"]


def test_classes_as_bars_while_one_types(server, page):
    page.open(server.port, "classifier")
    assert "BertClassifier" not in page.one(".card").text  # people's words
    assert page.texts(".card .chip") == ["calm", "storm", "thaw"]
    page.write("text", "The harbour froze")
    expected = outputs(server, "classifier", {"text": ["The harbour froze"]})
    assert page.headline() == expected["label"][0]
    ranked = sorted(zip(shares(expected["logits"][0]), ["calm", "storm", "thaw"], strict=True))
    assert page.bars() == {name: shown(share) for share, name in ranked[::-1]}
    assert page.one(".bar.strong .name").text == expected["label"][0]
    (spoken,) = page.texts(".try > [role=status]")
    assert expected["label"][0] in spoken and shown(expected["probability"][0]) in spoken

    # A pair is asked by its own signature.
    page.button("Add a second text").click()
    page.write("text_pair", "rain")
    pair = outputs(
        server, "classifier", {"text": ["The harbour froze"], "text_pair": ["rain"]}, "pair"
    )
    page.until(lambda: page.bars().get(pair["label"][0]) == shown(max(shares(pair["logits"][0]))))

    # An example by its button, and the keyboard in place of the pause.
    page.one(".example").click()
    page.until(lambda: page.one("textarea").get_attribute("value") == page.one(".example").text)
    control = page.one("textarea")
    control.clear()
    control.send_keys("a red boat", Keys.CONTROL, Keys.ENTER)
    last = outputs(server, "classifier", {"text": ["a red boat"]})
    page.until(lambda: page.bars().get(last["label"][0]) == shown(last["probability"][0]))


def test_a_model_of_pairs_has_two_boxes(server, page, monkeypatch):
    monkeypatch.setattr(server.server.models["classifier"].place, "metrics", {"pairs": True})
    page.open(server.port, "classifier")
    page.write("text", "The harbour froze")
    page.write("text_pair", "rain")
    inputs = {"text": ["The harbour froze"], "text_pair": ["rain"]}
    assert page.headline() == outputs(server, "classifier", inputs, "pair")["label"][0]
    page.one(".example").click()
    page.until(lambda: page.one("[data-input=text_pair] textarea").get_attribute("value"))
    # In a file too, whatever the second text, as `keras-bert predict` answers it.
    content = "text,text_pair\nThe harbour froze,rain\nThe harbour froze,\n"
    page.driver.execute_script(DROP, "pairs.csv", content)
    page.button("Answer 2 rows").click()
    page.button("Download CSV").click()
    inputs = {"text": ["The harbour froze"] * 2, "text_pair": ["rain", ""]}
    expected = outputs(server, "classifier", inputs, "pair")
    found = [float(row["probability"]) for row in rows_of(page, "pairs-answers.csv")]
    assert found == pytest.approx(expected["probability"], abs=1e-6)


def test_labels_texts_and_files_are_no_html(server, page, monkeypatch):
    odd = '"><img src=x onerror="document.title=1"><script>document.title = 2</script>'
    model = server.server.models["classifier"]
    settings = model.available()[0].export.contract["settings"]
    monkeypatch.setitem(settings, "labels", [odd, "b", "c"])
    monkeypatch.setattr(model.place, "metrics", {"scores": {odd: 1.0}})
    page.open(server.port, "classifier")
    title = page.driver.title
    page.write("text", odd)
    page.answer()
    assert odd in page.bars() and odd in page.one(".card").get_attribute("textContent")
    cell = '"' + odd.replace('"', '""') + '"'
    page.driver.execute_script(DROP, f"{odd}.csv", f"text,{cell}\na,{cell}\n")
    page.button("Answer 1 row").click()
    page.until(lambda: odd in page.one(".preview").get_attribute("textContent"))
    assert page.driver.title == title
    assert not page.all("#work img, #work script")


def test_labels_with_thresholds(server, page):
    page.open(server.port, "multi_label")
    page.write("text", "rain wind")
    expected = outputs(server, "multi_label", {"text": ["rain wind"]})
    page.answer()
    given = {n for n, yes in zip("abc", expected["given"][0], strict=True) if yes}

    def named():
        said = page.one(".headline").text
        return set() if said.startswith("No label") else set(said.split(", "))

    assert named() == given
    figures = zip("abc", map(shown, expected["probabilities"][0]), strict=True)
    assert page.bars() == dict(figures)
    # The first bar's threshold is moved to the other side of its probability.
    first = page.one(".bar .name").text
    page.one(".threshold").send_keys(Keys.END if first in given else Keys.HOME)
    assert named() == given ^ {first}
    page.button("Back to the model's thresholds").click()
    assert named() == given


def test_a_number_on_its_range(server, page):
    page.open(server.port, "regression")
    page.write("text", "rain wind")
    (value,) = outputs(server, "regression", {"text": ["rain wind"]})[0]
    page.answer()
    said = page.one(".headline").text.replace("\u2212", "-")
    assert float(said) == pytest.approx(value, rel=1e-3)
    low, high = (float(page.texts(".ends span")[i].replace("\u2212", "-")) for i in (0, 2))
    assert low <= value <= high and low < high
    written = page.driver.execute_async_script(
        "const done = arguments[1]; import('/page/dom.js').then(({short}) =>"
        " done(arguments[0].map((value) => short(value))));",
        [0.123456, 1987.26, 254318.7, 12, 1e6],
    )
    assert written == ["0.1235", "1987", "254,319", "12", "1,000,000"]


def test_entities_marked_in_their_text(server, page):
    page.open(server.port, "tagger")
    page.write("text", TEXT)
    page.answer()
    expected = outputs(server, "tagger", {"text": [TEXT]})
    count = expected["count"][0]
    assert count > 0
    # Offsets of the server are characters; in a browser an emoji is two units.
    labels = page.texts("mark .tag")
    marks = [m.removesuffix(t).strip() for m, t in zip(page.texts("mark"), labels, strict=True)]
    assert marks == expected["entity"][0][:count]
    assert labels == expected["label"][0][:count]
    assert page.texts(".found .figure") == [shown(s) for s in expected["score"][0][:count]]
    assert page.texts(".card .chip") == ["A", "B"]  # kinds, not tags


@pytest.mark.thorough
def test_the_answer_marked_in_its_context(server, page):
    page.open(server.port, "answerer")
    for question in ("rain wind", "the boat", "froze", "red"):
        inputs = {"question": [question], "context": [TEXT]}
        page.write("context", TEXT)
        page.write("question", question)
        expected = outputs(server, "answerer", inputs)
        others = outputs(server, "answerer", inputs, "candidates")
        best = shown(expected["score"][0])
        page.until(lambda best=best: page.texts(".headline .figure") == [best])
        if expected["answer"][0]:
            assert page.one(".answer mark").text == expected["answer"][0]
        else:
            assert page.one(".headline em").text == "No answer in this text"
            assert page.all(".answer mark") == []
        names = [text or "No answer" for text in others["answer"][0][: others["count"][0]]]
        assert page.texts(".bar .name") == names
        page.driver.refresh()


def test_choices_ranked(server, page):
    page.open(server.port, "chooser")
    page.write("context", "The harbour froze")
    fields = page.all("[data-input=choices] textarea")
    fields[0].send_keys("rain", Keys.ENTER, "a red boat", Keys.ENTER, "wind")
    expected = outputs(
        server,
        "chooser",
        {"context": ["The harbour froze"], "choices": [["rain", "a red boat", "wind"]]},
    )
    page.until(lambda: len(page.bars()) == 3)
    assert page.one(".headline").text == expected["text"][0]
    found = dict(zip(["rain", "a red boat", "wind"], expected["probabilities"][0], strict=True))
    assert page.bars() == {name: shown(share) for name, share in found.items()}
    ranked = sorted(found, key=found.get, reverse=True)
    assert page.texts(".bar .name") == ranked


@pytest.mark.parametrize("device", ["mouse", "keyboard"])
def test_entities_picked(device, server, page):
    page.open(server.port, "relator")
    page.write("text", TEXT)
    words = {word.text: word for word in page.all(".word")}
    actions = ActionChains(page.driver)
    if device == "mouse":
        actions.click(words["froze"])
        actions.move_to_element(words["red"]).click_and_hold().move_to_element(words["boat"])
        actions.release().perform()
    else:
        words["The"].send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ENTER)
        keys = [Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.SHIFT, Keys.ARROW_RIGHT, Keys.NULL]
        for key in keys[:2]:
            page.driver.switch_to.active_element.send_keys(key)
        actions.key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT).key_up(Keys.SHIFT)
        actions.send_keys(Keys.ENTER).perform()
    assert page.texts(".picked .chip") == ["1  froze", "2  red boat"]
    spans = [[TEXT.index(name), TEXT.index(name) + len(name)] for name in ("froze", "red boat")]
    expected = outputs(server, "relator", {"text": [TEXT], "spans": [spans]})
    assert page.headline() == expected["label"][0]
    assert page.bars()[expected["label"][0]] == shown(expected["probability"][0])
    page.button("Swap").click()
    turned = outputs(server, "relator", {"text": [TEXT], "spans": [spans[::-1]]})
    page.until(lambda: page.bars().get(turned["label"][0]) == shown(turned["probability"][0]))


def test_search_and_similarity(server, page):
    page.open(server.port, "embedder")
    sentences = ["rain wind", "the harbour froze", "a red boat"]
    page.write("text", "\n".join(sentences))
    page.write("query", "a boat")
    page.until(lambda: "a boat" in page.answer())

    def cosine(text, other):
        return outputs(server, "embedder", {"text": [text], "text_pair": [other]}, "similarity")[0]

    expected = {text: cosine(text, "a boat") for text in sentences}
    found = {name: float(figure) for name, figure in page.bars().items()}
    assert found == pytest.approx(expected, abs=6e-4)
    assert page.texts(".bar .name") == sorted(expected, key=expected.get, reverse=True)
    cells = [float(cell) for cell in page.texts(".heat tbody td")]
    assert cells == pytest.approx([cosine(a, b) for a in sentences for b in sentences], abs=6e-3)


def test_gaps_filled(server, page):
    page.open(server.port, "pretrainer")
    page.write("text", "the [MASK] froze a ")
    page.button("Insert [MASK]").click()
    text = "the [MASK] froze a [MASK]"
    expected = outputs(server, "pretrainer", {"text": [text]})
    page.until(lambda: len(page.texts(".gaps h3")) == 2)
    tokens = expected["token"][0]
    assert page.texts(".passage mark") == [gap[0] for gap in tokens]
    assert page.texts(".bar .name") == [token for gap in tokens for token in gap]
    assert page.texts(".bar .figure") == [shown(s) for gap in expected["score"][0] for s in gap]
    page.all(".bar .name button")[1].click()
    assert page.texts(".passage mark") == [tokens[0][1], tokens[1][0]]
    page.write("text_pair", "rain")
    pair = {"text": [text], "text_pair": ["rain"]}
    share = outputs(server, "pretrainer", pair, "next_sentence")["probability"][0]
    page.until(lambda: page.bars().get("It follows the text") == shown(share))


def test_an_error_stands_at_the_field_that_caused_it(server, page):
    page.open(server.port, "answerer")
    page.write("question", "rain")
    page.write("context", "a " * LONGEST)
    page.one("[data-input=context] .problem")
    said = f"{2 * LONGEST} characters; expected at most {LONGEST}."
    assert page.texts("[data-input=context] .problem") == [said]
    assert page.one("[data-input=context] textarea").get_attribute("aria-invalid") == "true"
    assert not [e for e in page.all("[data-input=question] .problem") if e.is_displayed()]
    assert all("status of 400" in problem for problem in page.problems())  # the refusal itself
    page.write("context", "a boat")
    page.until(lambda: not page.all("[aria-invalid]"))
    page.answer()


def rows_of(page, name: str) -> list[dict]:
    path = page.downloads / name
    page.until(path.exists)
    with open(path, newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file, strict=True))


def test_a_file_comes_back_as_csv(server, page, tmp_path):
    texts = ["rain wind", 'a "red", boat', "two\nlines", "", "=1+1", "Straße 😀", "a " * LONGEST]
    texts += [f"boat {number}" for number in range(100)]
    with open(tmp_path / "in.csv", "w", newline="", encoding="utf-8") as file:
        rows = [(i, text, "x") for i, text in enumerate(texts)]
        csv.writer(file).writerows([("id", "review", "label"), *rows])
    page.open(server.port, "classifier")
    content = (tmp_path / "in.csv").read_text("utf-8")
    page.driver.execute_script(DROP, "in.csv", content)
    page.button("Answer 107 rows").click()
    page.button("Download CSV").click()
    (said,) = page.texts(".progress [role=status]")
    assert said.startswith("All 107 rows done. 1 row could not be answered")
    found = rows_of(page, "in-answers.csv")
    assert [int(row["id"]) for row in found] == list(range(107))
    assert [row["review"].removeprefix("'") for row in found] == texts
    assert found[4]["review"] == "'=1+1"  # no formula
    assert [bool(row["error"]) for row in found] == [len(text) > LONGEST for text in texts]
    assert str(LONGEST) in found[6]["error"] and found[6]["label (answer)"] == ""
    right = [i for i in range(107) if i != 6]
    expected = outputs(server, "classifier", {"text": [texts[i] for i in right]})
    assert [found[i]["label (answer)"] for i in right] == expected["label"]
    assert [float(found[i]["probability"]) for i in right] == pytest.approx(
        expected["probability"], abs=1e-6
    )
    assert all("status of 400" in problem for problem in page.problems())


def test_files_of_other_kinds(server, page, tmp_path):
    page.open(server.port, "chooser")
    lines = [
        {"ctx": "The harbour froze", "endings": ["rain", "a red boat", "wind"]},
        {"ctx": "rain", "endings": ["wind"]},
    ]
    content = "\n".join(map(json.dumps, lines)) + "\nno json\n"
    page.driver.execute_script(DROP, "choices.jsonl", content)
    page.button("Answer 3 rows").click()
    page.button("Download CSV").click()
    found = rows_of(page, "choices-answers.csv")
    expected = outputs(
        server, "chooser", {"context": ["The harbour froze"], "choices": [lines[0]["endings"]]}
    )
    assert found[0]["choice text"] == expected["text"][0]
    assert found[1]["error"] == "fewer than two choices"
    assert found[2]["error"] == "line 3 is not valid JSON" and found[2]["text"] == "no json"

    page.open(server.port, "relator")
    page.driver.execute_script(
        DROP, "relations.txt", "a <e1>red</e1> 😀 <e2>boat</e2>\n\n<e1>rain</e1> alone"
    )
    page.button("Answer 3 rows").click()
    page.button("Download CSV").click()
    found = rows_of(page, "relations-answers.csv")
    relation = outputs(server, "relator", {"text": ["a red 😀 boat"], "spans": [[[2, 5], [8, 12]]]})
    assert found[0]["label"] == relation["label"][0]
    assert [bool(row["error"]) for row in found] == [False, True, True]

    # A file that is chosen, not dropped; of an older code page, and packed.
    page.open(server.port, "classifier")
    packed = tmp_path / "old.csv.gz"
    packed.write_bytes(gzip.compress("nr;Satz\r\n1;Straße\r\n\r\n2;Öl; ja\r\n".encode("cp1252")))
    page.all("input[type=file]")[0].send_keys(str(packed))
    page.button("Answer 2 rows").click()
    notes = page.texts(".notes li")
    assert len(notes) == 3 and notes[0] == "The file is not UTF-8, and was read as Windows-1252."
    page.button("Download CSV").click()
    found = rows_of(page, "old-answers.csv")
    answers = outputs(server, "classifier", {"text": ["Straße", "Öl"]})
    assert [(row["Satz"], row["column 3"], row["label"]) for row in found] == [
        ("Straße", "", answers["label"][0]),
        ("Öl", " ja", answers["label"][1]),
    ]

    # Numbers that JavaScript would round, and a column that its objects have by themselves.
    page.open(server.port, "classifier")
    lines = ['{"id": 1234567890123456789, "text": "rain 1234567890123456789", "x": 0.123456789}']
    lines.append('{"id": -9007199254740993, "text": "wind", "constructor": "me"}')
    page.driver.execute_script(DROP, "ids.jsonl", "\n".join(lines))
    page.button("Answer 2 rows").click()
    page.button("Download CSV").click()
    found = rows_of(page, "ids-answers.csv")
    assert [row["id"] for row in found] == ["1234567890123456789", "-9007199254740993"]
    assert found[0]["text"] == "rain 1234567890123456789" and found[0]["x"] == "0.123456789"
    assert [row["constructor"] for row in found] == ["", "me"]

    page.driver.execute_script(DROP, "picture.png", "x")
    assert "picture.png is of another kind" in page.one(".panel > .problem").text


def test_a_file_can_be_stopped_and_continued(server, page):
    page.open(server.port, "classifier")
    page.driver.execute_script(DROP, "lines.txt", "rain\n" * 70)
    while TaskExport.entered.acquire(blocking=False):
        pass
    TaskExport.gate.clear()
    try:
        page.button("Answer 70 rows").click()
        assert TaskExport.entered.acquire(timeout=PATIENCE)
        page.button("Stop").click()
        page.until(lambda: "Stopped after 0 of 70 rows" in page.one(".progress").text)
    finally:
        TaskExport.gate.set()
    page.button("Continue").click()
    page.until(lambda: "All 70 rows done" in page.one(".progress").text)
    assert page.one(".preview caption").text == "The first 5 of 70 rows"


def test_csv_is_read_as_pythons_reader_does(server, page):
    page.open(server.port, "classifier")
    texts = [
        "a,b\n1,2\n",
        'a\r\n"x ""y"" z"\r\n',
        'a,b\n"1\n2",3',
        "a,b\n,\n",
        'a\n5" wide\n',
    ]
    found = page.driver.execute_async_script(
        "const done = arguments[1]; import('/page/rows_file.js').then(({parseCsv}) =>"
        " done(arguments[0].map((text) => parseCsv(text, ',').records)));",
        texts,
    )
    assert found == [list(csv.reader(text.splitlines(keepends=True))) for text in texts]
    cells = ["=1", "+x", "-3.5", "-x", "@a", "\tx", " =1", "1e-5", "a,b", 'q"q', "", "＝1"]
    written = page.driver.execute_async_script(
        "const done = arguments[1]; import('/page/rows_file.js').then(({csvCell}) =>"
        " done(arguments[0].map(csvCell)));",
        cells,
    )
    (back,) = csv.reader([",".join(written)])
    changed = {"=1", "+x", "-x", "@a", "\tx", " =1", "＝1"}
    assert back == [f"'{cell}" if cell in changed else cell for cell in cells]


def test_programs_work_when_pasted(server, page, tmp_path):
    page.open(server.port, "relator")  # strings and numbers
    text = 'It\'s a "red" boat\\ $HOME `rain` 😀 é'
    page.write("text", text)
    words = {word.text: word for word in page.all(".word")}
    ActionChains(page.driver).click(words["red"]).click(words["boat"]).perform()
    page.answer()
    spans = [[text.index(name), text.index(name) + len(name)] for name in ("red", "boat")]
    expected = outputs(server, "relator", {"text": [text], "spans": [spans]})
    programs = {}
    for tab in page.all("[role=tab]"):
        tab.click()
        programs[tab.text] = page.one("[role=tabpanel]").text
    if shutil.which("curl"):
        command = ["bash", "-c", programs["curl"].replace("curl ", "curl --silent ", 1)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)["outputs"] == expected
    (tmp_path / "ask.py").write_text(programs["Python"], "utf-8")
    command = [sys.executable, "-I", str(tmp_path / "ask.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(expected)
    script = programs["JavaScript"].replace("console.log(", "globalThis.said = (")
    page.driver.execute_cdp_cmd(
        "Runtime.evaluate", {"expression": script, "replMode": True, "awaitPromise": True}
    )
    assert page.driver.execute_script("return said") == expected


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_readable_on_a_telephone(scheme, server, page):
    for model in MODELS:
        page.open(server.port, model, 390, scheme)
        page.one(".example").click()
        page.until(lambda: page.all(".answer:not([hidden]):not([aria-busy]) > :nth-child(2)"))
        width = page.driver.execute_script("return document.documentElement.scrollWidth")
        assert width <= 390, model
        assert page.driver.execute_script(CONTRAST) == [], model
        assert page.driver.execute_script(NAMELESS) == [], model
    # Some of these models read too few tokens for the examples.
    assert all("status of 400" in problem for problem in page.problems())


def test_every_file_has_the_headers_of_security(server):
    with contextlib.closing(server.connection()) as connection:
        for path in ("/", "/page/main.js", "/page/style.css", "/page/icon.svg"):
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.status == 200 and answer.read()
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'self'" in policy and "unsafe" not in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert len(answer.headers.get_all("X-Content-Type-Options")) == 1
        connection.request("GET", "/page/../app.py")
        answer = connection.getresponse()
        assert answer.status == 404 and b"import" not in answer.read()


def test_keyboard_alone(server, page):
    page.open(server.port, "classifier")
    seen = []
    for _ in range(14):
        ActionChains(page.driver).send_keys(Keys.TAB).perform()
        element = page.driver.switch_to.active_element
        style = page.driver.execute_script(
            "const one = arguments[0], ring = one.type == 'file' ? one.nextElementSibling :"
            " one.matches('textarea') ? one.closest('.composer') : one;"
            "const style = getComputedStyle(ring);"
            "return [style.outlineStyle, parseFloat(style.outlineWidth)]",
            element,
        )
        assert style[0] != "none" and style[1] >= 2, element.get_attribute("outerHTML")
        seen.append(element.accessible_name)
    assert seen[:4] == ["Skip to the model", "Model", "Text", "Add a second text"]
    assert "Answer" in seen and any("Drop a file" in name for name in seen)


@pytest.fixture(scope="module")
def task():
    """What explains the served classifier, loaded once; of two blocks, to choose a layer."""
    return make("classifier", "tests/golden/tiny_hf")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_why(scheme, server, page, task, monkeypatch):
    monkeypatch.setattr(served_model.ServedModel, "explains", True)
    monkeypatch.setattr(served_model, "load_task", lambda preset: task)
    page.open(server.port, "classifier", 390, scheme)
    page.write("text", "The harbour froze")
    page.until(lambda: page.texts(".why button") == ["Why?"])
    page.button("Why?").click()
    page.until(lambda: page.texts(".why h3") == ["Why"])
    (expected,) = attributions(task, ["The harbour froze"])
    most = max(abs(score) for score in expected.words.scores)
    strong = {
        word: "raises" if score > 0 else "lowers"
        for word, score in zip(expected.words.words, expected.words.scores, strict=True)
        if abs(score) > 0.05 * most
    }
    marks = page.driver.find_elements(By.CSS_SELECTOR, ".why .passage mark")
    found = {mark.text: mark.get_attribute("class") for mark in marks}
    assert strong.items() <= found.items() and len(strong) > 1
    assert page.driver.execute_script(CONTRAST) == []
    # Another text has another answer, whose reasons are not there yet.
    page.write("text", "a red boat")
    page.until(lambda: page.texts(".why button") == ["Why?"])
    monkeypatch.undo()  # served from an export: nothing to explain it by
    page.open(server.port, "classifier")
    page.write("text", "a red boat")
    assert page.headline() and page.texts(".why button") == []


@pytest.mark.parametrize("width, scheme", [(1280, "light"), (390, "dark")])
def test_attention(width, scheme, server, page, task, monkeypatch):
    monkeypatch.setattr(served_model.ServedModel, "explains", True)
    monkeypatch.setattr(served_model, "load_task", lambda preset: task)
    page.open(server.port, "classifier", width, scheme)
    page.write("text", "The HARBOUR froze")
    page.button("Attention").click()
    maps = attention(task, "The HARBOUR froze").by_word()
    layers, heads = maps.maps.shape[:2]
    page.until(lambda: len(page.all(".maps .grid button")) == layers * heads)
    assert page.readable() == []
    # By keys to the last head of the second layer, and to a word that attends.
    grid = page.all(".maps .grid button")
    grid[0].send_keys(Keys.ARROW_DOWN, Keys.END, Keys.ENTER)
    chosen = page.driver.switch_to.active_element
    assert chosen.tag_name == "select" and chosen.get_attribute("value") == str(layers - 1)
    assert [chip.get_attribute("aria-pressed") for chip in page.all(".maps .chips button")] == [
        *["false"] * (heads - 1),
        "true",
    ]
    assert page.texts(".maps .lines div:first-child button") == [*maps.tokens]
    word = maps.tokens.index("HARBOUR")
    page.all(".maps .lines div:first-child button")[0].send_keys(*[Keys.ARROW_DOWN] * word)
    row = np.rint(maps.maps[-1, -1, word] * 255) / 255
    best = np.argsort(-row, kind="stable")[:3]
    said = ", ".join(f"“{maps.tokens[i]}” {math.floor(100 * row[i] + 0.5)}%" for i in best)
    expected = f"Head {heads} of layer {layers}: “HARBOUR” attends most to {said}."
    assert page.one(".maps [data-page=lines] .say").text == expected
    assert page.readable() == []
    page.button("Flow").click()
    flow = maps.rollout()[word]
    ActionChains(page.driver).move_to_element(page.all(".maps .flow button")[word]).perform()
    page.until(
        lambda: page.one(".maps [data-page=flow] .say").text.startswith(
            f"Into “HARBOUR” flows {math.floor(100 * flow[word] + 0.5)}% of itself"
        )
    )
    assert page.readable() == []
    # A text whose maps would be too large.
    monkeypatch.setattr(served_model, "MAPS", 9 * layers * heads)
    page.write("text", "a red boat")
    page.until(lambda: page.texts(".maps button") == ["Attention"])
    page.button("Attention").click()
    page.until(lambda: "expected at most 3" in " ".join(page.texts(".maps .problem")))
    assert all("status of 400" in problem for problem in page.problems())


ROWS = {
    "answerer": {"question": ["rain"], "context": ["the harbour froze a boat"]},
    "chooser": {"context": ["rain"], "choices": [["wind", "a boat", ""]]},
    "relator": {"text": ["a red boat"], "spans": [[[2, 5], [6, 10]]]},
    "pretrainer": {"text": ["the [MASK] froze"]},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_every_task_is_looked_into(kind, server, monkeypatch):
    model = tiny(kind)
    monkeypatch.setattr(served_model.ServedModel, "explains", True)
    monkeypatch.setattr(served_model, "load_task", lambda preset: model)
    inputs = ROWS.get(kind, {"text": ["rain wind"]})
    request = {"inputs": inputs}
    if kind == "embedder":
        request = {"inputs": inputs | {"text_pair": ["wind"]}, "signature_name": "similarity"}
    body = json.dumps(request)
    status, why = server.ask("POST", f"/v1/keras_bert/explain/{kind}", body)
    assert status == 200 and why["words"] and why["texts"][0] in str(inputs)
    assert why["error"] <= 0.01 * abs(why["output"] - why["baseline_output"]) + 1e-5
    status, view = server.ask("POST", f"/v1/keras_bert/attention/{kind}", body)
    assert status == 200 and view["tokens"][0] == "[CLS]" and view["tokens"][-1] == "[SEP]"


@pytest.mark.thorough
def test_a_key_is_asked_for(exported, page, tmp_path, monkeypatch):
    """Here the model is a real export."""
    monkeypatch.setattr(served_model, "Export", EXPORT)
    (tmp_path / "keys").write_text("open-sesame\n")
    with live({"classifier": exported}, api_key_file=tmp_path / "keys") as server:
        page.open(server.port)
        assert page.one("h1").text == "This server asks for a key"
        control = page.one("input[type=password]")
        control.send_keys("wrong", Keys.ENTER)
        assert "does not accept" in page.until(lambda: " ".join(page.texts(".problem")))
        page.one("input[type=password]").send_keys("open-sesame", Keys.ENTER)
        page.write("text", "rain")
        page.answer()
        assert "open-sesame" not in page.one("[role=tabpanel]").text
        assert "$KERAS_BERT_KEY" in page.one("[role=tabpanel]").text
        page.driver.execute_script("sessionStorage.clear()")
    assert all("status of 401" in problem for problem in page.problems())


@pytest.mark.thorough
def test_a_model_of_another_kind(page, tmp_path, monkeypatch):
    monkeypatch.setattr(served_model, "Export", EXPORT)
    write_model(tmp_path / "half" / "1", 2)
    with live({"half": tmp_path / "half"}) as server:
        page.open(server.port)
        page.write("x", "three")
        page.until(lambda: "This is not valid JSON." in page.texts("[data-input=x] .problem"))
        page.write("x", "3")
        page.until(lambda: page.texts(".outputs dd") == ["3.5"])
