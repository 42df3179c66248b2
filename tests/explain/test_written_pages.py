"""The pages that results write, in Chromium: pointer, keys, narrow screens, both schemes."""

import numpy as np
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

import keras_bert
from keras_bert.explain import attention, attributions, errors, project
from tests.browsing import Page, chromium, needs_chromium
from tests.tasks.tiny import backbone_settings, made

pytestmark = needs_chromium
PAIR = ("the cats sat", "a dog slept on the mat")
TEXTS = ["the cat sat", "a dog slept", "the dog sat on a mat", "a cat on the mat", "the mat"] * 3
DRAWN = """
const context = new OffscreenCanvas(999, 999).getContext("2d", {willReadFrequently: true});
context.drawImage(arguments[0], 0, 0);
return context.getImageData(0, 0, 999, 999).data.some((x) => x);
"""
SHARES = """
const words = [...document.querySelectorAll(".flow button")];
return words.map((word) => Number(word.style.getPropertyValue("--share")));
"""
SCREENS = [(1280, "light"), (390, "dark")]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("downloads")) as found:
        yield Page(*found)


@pytest.fixture
def page(browser):
    """A browser; at the end there is no error in its console, and no other file was asked for."""
    yield browser
    assert browser.problems() == []


@pytest.fixture(scope="module")
def task():
    backbone = keras_bert.BertBackbone(**backbone_settings() | {"num_layers": 2})
    return keras_bert.BertClassifier(**made(keras_bert.BertClassifier, backbone=backbone))


@pytest.mark.parametrize("width, scheme", SCREENS)
def test_attention(width, scheme, page, task, tmp_path):
    found = attention(task, PAIR)
    page.open_file(found.to_html(tmp_path / "attention.html"), width, scheme)
    layers, heads = found.maps.shape[:2]
    assert len(page.all(".grid button")) == layers * heads and page.readable() == []
    # A click on a small map shows its lines.
    page.all(".grid button")[heads + 1].click()
    assert page.one("[data-layer]").get_attribute("value") == "1"
    assert [b.get_attribute("aria-pressed") for b in page.all(".chips button")] == ["false", "true"]
    assert page.texts(".lines div:last-child button") == [*found.tokens]
    canvas = page.one(".lines canvas")
    assert page.driver.execute_script(DRAWN, canvas)
    # The pointer on a word on the right names those that attend to it; off it, none.
    hovered = page.all(".lines div:last-child button")[3]
    ActionChains(page.driver).move_to_element(hovered).perform()
    column = np.rint(found.maps[1, 1, :, 3] * 255)
    best = found.tokens[int(np.argmax(column))]
    said = page.one("[data-page=lines] .say").text
    assert said.startswith(
        f"Head 2 of layer 2: \u201c##s\u201d is attended to most by \u201c{best}\u201d"
    )
    assert page.readable() == []
    ActionChains(page.driver).move_to_element(page.one("h1")).perform()
    assert page.one("[data-page=lines] .say").text.startswith("Left: the word")
    # Lines of one text to the other; none if no head is left.
    Select(page.one("[data-part]")).select_by_value("01")
    assert page.driver.execute_script(DRAWN, canvas)
    page.all(".chips button")[1].send_keys(Keys.ENTER)
    assert page.one("[data-page=lines] .say").text == "No head is chosen."
    assert not page.driver.execute_script(DRAWN, canvas)
    # By keys alone to the flow into the fourth word.
    page.button("Flow").send_keys(Keys.ENTER)
    words = page.all(".flow button")
    words[1].send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    row = found.rollout()[3]
    shares = page.driver.execute_script(SHARES)
    others = np.delete(row, 3)
    np.testing.assert_allclose(np.delete(shares, 3), others / others.max(), atol=0.02)
    Select(page.one("[data-way]")).select_by_value("all")
    shares = page.driver.execute_script(SHARES)
    others = np.delete(found.maps.mean(axis=(0, 1))[3], 3)
    np.testing.assert_allclose(np.delete(shares, 3), others / others.max(), atol=0.02)
    assert page.readable() == []


@pytest.mark.parametrize("width, scheme", SCREENS)
def test_a_map_of_texts(width, scheme, page, task, tmp_path):
    texts = [*TEXTS[:5], "</script><b>x"]
    labels = ["one", "two", "one", "two", "one", "<i>"]
    found = project(task, texts, labels)
    page.open_file(found.to_html(tmp_path / "map.html"), width, scheme)
    assert page.one("[role=status]").text.startswith("6 texts, PCA of")
    points = page.all("circle")
    for number in (0, 5):
        ActionChains(page.driver).move_to_element(points[number]).perform()
        assert page.one("[role=status]").text == f"{labels[number]}: {texts[number]}"
    ActionChains(page.driver).move_to_element(page.one("h1")).perform()
    # Keys go from left to right.
    order = np.argsort(found.points[:, 0], kind="stable").tolist()
    page.driver.execute_script("document.querySelector('circle[tabindex=\"0\"]').focus()")
    for number in order:
        assert page.one("[role=status]").text == f"{labels[number]}: {texts[number]}"
        ActionChains(page.driver).send_keys(Keys.ARROW_RIGHT).perform()
    assert page.readable() == []


@pytest.fixture(scope="module")
def report(task):
    return errors(task, TEXTS, [i % 2 for i in range(len(TEXTS))], explained=2)


@pytest.mark.one_quick
@pytest.mark.parametrize("width, scheme", SCREENS)
def test_errors_and_attributions(width, scheme, page, task, report, tmp_path):
    page.open_file(report.to_html(tmp_path / "errors.html"), width, scheme)
    assert page.readable() == []
    assert page.texts("h1") == ["Errors"] and "Calibration" in page.texts("h2")
    (why,) = attributions(task, [TEXTS[2]])
    page.open_file(why.to_html(tmp_path / "why.html"), width, scheme)
    assert page.texts(".text mark") == why.words.words
    titles = [mark.get_attribute("title") for mark in page.all(".text mark")]
    assert [float(title) for title in titles] == pytest.approx(why.words.scores.tolist(), abs=6e-5)
    assert page.readable() == []
