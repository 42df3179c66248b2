"""Pages in Chromium: what the tests of the served page and of written pages share."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE = 120  # seconds, on a busy machine
CHROMIUM, CHROMEDRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_chromium = pytest.mark.skipif(
    not (CHROMIUM and CHROMEDRIVER),
    reason="no chromium with chromedriver; on Debian: apt install chromium chromium-driver",
)
# Texts whose contrast with the ground below them is under 4.5, or 3 for large ones (WCAG 2.1 AA).
CONTRAST = """
const context = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
function parts(colours) {
  context.clearRect(0, 0, 1, 1);
  for (const colour of colours) {
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
  }
  return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
}
const light = (rgb) => rgb.map((x) => x / 255)
  .map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4))
  .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
const low = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
  if (element.closest(".unseen, .skip, option")) continue;
  const grounds = [];
  for (let one = element; one; one = one.parentElement) {
    grounds.unshift(getComputedStyle(one).backgroundColor);
  }
  const style = getComputedStyle(element);
  const [a, b] = [light(parts(grounds)), light(parts([...grounds, style.color]))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const large = parseFloat(style.fontSize) >= 24;
  if (ratio < (large ? 3 : 4.5)) low.push([walker.currentNode.data, ratio, style.color, grounds]);
}
return low;
"""
# What can be used without a name, and fields that are reached by no key.
NAMELESS = """
return [...document.querySelectorAll("button, input, select, textarea, progress")]
  .filter((one) => one.checkVisibility() && one.disabled === false)
  .map((one) => one.outerHTML.slice(0, 200) + "@" + (one.getAttribute("aria-label")
    ?? one.textContent.trim() + [...(one.labels ?? [])].map((label) => label.textContent).join("")))
  .filter((said) => said.endsWith("@"));
"""


class Page:
    """A page in a browser.

    Attributes:
        base: beginning of the addresses that it may ask.
    """

    def __init__(self, driver, downloads: Path):
        self.driver, self.downloads = driver, downloads
        self.base = ""

    def look(self, width: int = 1280, scheme: str = "light") -> None:
        """Sets the size of the window, and light or dark."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": scheme}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, still]})

    def open_file(self, path: Path, width: int = 1280, scheme: str = "light") -> None:
        self.look(width, scheme)
        self.base = path.parent.as_uri()
        self.driver.get(path.as_uri())

    def all(self, css: str) -> list:
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def one(self, css: str):
        """The first element that is shown, as soon as there is one."""
        return self.until(lambda: next((e for e in self.all(css) if e.is_displayed()), None), css)

    def until(self, condition, message: str = ""):
        stale = [StaleElementReferenceException]  # replaced between two steps of a condition
        wait = WebDriverWait(self.driver, PATIENCE, 0.05, stale)
        return wait.until(lambda _: condition(), message)

    def button(self, words: str):
        return self.until(
            lambda: next((e for e in self.all("button") if e.text == words), None), words
        )

    def texts(self, css: str) -> list[str]:
        """The texts of all elements, at one moment."""
        return self.driver.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText.trim())",
            css,
        )

    def readable(self) -> list:
        """Texts of low contrast, controls without a name, and a page wider than the window."""
        width = self.driver.execute_script(
            "return document.documentElement.scrollWidth - innerWidth"
        )
        found = self.driver.execute_script(CONTRAST) + self.driver.execute_script(NAMELESS)
        return found + ([f"{width} pixels too wide"] if width > 0 else [])

    def problems(self) -> list[str]:
        """Errors in the console since the last call, and requests to other hosts."""
        found = [f"{e['level']}: {e['message']}" for e in self.driver.get_log("browser")]
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith((self.base, f"blob:{self.base}", "about:", "data:")):
                    found.append(f"asked {url}")
        return found


@contextlib.contextmanager
def chromium(downloads: Path) -> Iterator[tuple]:
    """A browser that is driven; gives the driver, and the folder of its downloads."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{argument}")
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(CHROMEDRIVER))
    try:
        driver.set_script_timeout(PATIENCE)
        yield driver, downloads
    finally:
        driver.quit()
