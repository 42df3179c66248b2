"""Attention maps of one or two texts: arrays, views to look around in, and rollout."""

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keras_bert.explain.pages import drawn, figure, fragment, shown, write_page, write_png
from keras_bert.explain.reading import read_pair, run_layers

# Lines of the head view are drawn on a canvas; those that are hardly visible are left out.
_STYLE = """<style>
.kb .tools { display: flex; flex-wrap: wrap; gap: .5rem .75rem; align-items: center; margin: 1rem 0; }
.kb .chips { display: flex; flex-wrap: wrap; gap: .3rem; }
.kb .chips button { width: 1.75rem; height: 1.75rem; padding: 0; font-size: .75rem; border: 0;
  border-radius: 6px; background: var(--c); color: #fff; opacity: .25; cursor: pointer; }
.kb .chips button[aria-pressed=true] { opacity: 1; color: #fff; }
.kb .heads { display: grid; grid-template-columns: minmax(3.5rem, max-content) minmax(5rem, 1fr)
  minmax(3.5rem, max-content); max-width: 34rem; }
.kb .heads div { font-size: .875rem; height: 22px; line-height: 22px; padding: 0 .4rem;
  white-space: nowrap; overflow: hidden; text-overflow: ellipsis; border-radius: 4px; cursor: default; }
.kb .heads > section:first-child div { text-align: right; }
.kb .heads canvas { width: 100%; display: block; }
.kb .heads .on { background: var(--card); font-weight: 600; }
.kb .model { display: grid; gap: 3px; max-width: 60rem; }
.kb .model button { padding: 0; border: 1px solid var(--line); border-radius: 4px; aspect-ratio: 3/4;
  background: var(--ground); min-width: 0; cursor: pointer; }
.kb .model canvas { width: 100%; height: 100%; display: block; }
.kb .model span { font-size: .7rem; color: var(--soft); align-self: center; text-align: center; }
</style>"""
_BODY = """<div id="ID"><div class="tools">
<button data-view="head" aria-pressed="true">Head view</button>
<button data-view="model" aria-pressed="false">Model view</button>
<button data-view="rollout" aria-pressed="false">Rollout</button></div>
<section data-page="head"><div class="tools"><label>Layer <select data-layer></select></label>
<label data-of-pair>From <select data-part><option value="">all tokens</option>
<option value="01">first to second text</option><option value="10">second to first text</option>
<option value="00">first to first text</option><option value="11">second to second text</option>
</select></label><button data-all>All heads</button><div class="chips" data-chips></div></div>
<p class="soft">Left: the token that attends. Right: the tokens it attends to. Point at a token for
its lines alone; click a number to switch a head.</p>
<div class="heads"><section data-left></section><canvas></canvas><section data-right></section></div>
</section>
<section data-page="model" hidden><p class="soft">A row for each layer, a column for each head.
Click one to see it in the head view.</p><div class="scroll"><div class="model"></div></div></section>
<section data-page="rollout" hidden><p class="soft">The flow of attention through all layers, from
the token below to each token of the input.</p><div class="tools"><label>From
<select data-from></select></label></div><div data-bars></div></section></div>"""
_SCRIPT = r"""<script>(() => {
const box = document.getElementById("ID"), data = DATA;
const {tokens, sides, layers, heads} = data, T = tokens.length, H = 22;
const bytes = Uint8Array.from(atob(data.maps), c => c.charCodeAt(0));
const flow = Uint8Array.from(atob(data.rollout), c => c.charCodeAt(0));
const at = (l, h, i, j) => bytes[((l * heads + h) * T + i) * T + j] / 255;
const one = q => box.querySelector(q), color = h => `hsl(${Math.round(h * 360 / heads)} 65% 45%)`;
const make = (tag, parent, text) => { const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text; parent.append(e); return e; };
let layer = 0, on = new Set([...Array(heads).keys()]), over = null;
const part = one("[data-part]"), canvas = one(".heads canvas");
one("[data-of-pair]").hidden = !sides.includes(1);
for (let l = 0; l < layers; l++) { const o = make("option", one("[data-layer]"), l + 1); o.value = l; }
for (let h = 0; h < heads; h++) { const b = make("button", one("[data-chips]"), h + 1);
  b.style.setProperty("--c", color(h)); b.title = `head ${h + 1}`;
  b.onclick = () => { on.has(h) ? on.delete(h) : on.add(h); draw(); }; }
for (const side of ["left", "right"]) tokens.forEach((t, i) => {
  const e = make("div", one(`[data-${side}]`), t); e.tabIndex = 0;
  e.onmouseenter = e.onfocus = () => { over = [side, i]; draw(); };
  e.onmouseleave = e.onblur = () => { over = null; draw(); }; });
const lines = (c, l, shownHeads, width, height, least, seen) => {
  const step = height / T; c.clearRect(0, 0, width, height);
  for (const h of shownHeads) { c.strokeStyle = color(h);
    for (let i = 0; i < T; i++) for (let j = 0; j < T; j++) { const a = at(l, h, i, j);
      if (a < least || !seen(i, j)) continue;
      c.globalAlpha = a; c.beginPath(); c.moveTo(0, (i + .5) * step);
      c.lineTo(width, (j + .5) * step); c.stroke(); } } };
const draw = () => {
  [...one("[data-chips]").children].forEach((b, h) => b.setAttribute("aria-pressed", on.has(h)));
  const width = canvas.parentElement.clientWidth ? canvas.clientWidth || 200 : 200;
  const scale = devicePixelRatio || 1;
  canvas.width = width * scale; canvas.height = T * H * scale; canvas.style.height = T * H + "px";
  const c = canvas.getContext("2d"); c.scale(scale, scale);
  c.lineWidth = on.size > 3 && !over ? 1.2 : 2.2;
  const pair = part.value, seen = (i, j) => (!pair || (sides[i] == pair[0] && sides[j] == pair[1]))
    && (!over || (over[0] == "left" ? i : j) == over[1]);
  lines(c, layer, on, width, T * H, .02, seen);
  for (const side of ["left", "right"]) [...one(`[data-${side}]`).children].forEach((e, i) => {
    let most = 0; if (over && side != over[0]) for (const h of on)
      most = Math.max(most, over[0] == "left" ? at(layer, h, over[1], i) : at(layer, h, i, over[1]));
    e.classList.toggle("on", !!over && ((side == over[0] && i == over[1]) || most > .2)); }); };
let modelMade = false;
const model = () => { if (modelMade) return; modelMade = true;
  const grid = one(".model");
  grid.style.gridTemplateColumns = `1.5rem repeat(${heads}, minmax(2.2rem, 1fr))`;
  make("span", grid, ""); for (let h = 0; h < heads; h++) make("span", grid, h + 1);
  for (let l = 0; l < layers; l++) { make("span", grid, l + 1);
    for (let h = 0; h < heads; h++) { const b = make("button", grid); b.title = `layer ${l + 1}, head ${h + 1}`;
      b.setAttribute("aria-label", b.title);
      b.onclick = () => { layer = l; one("[data-layer]").value = l; on = new Set([h]); show("head"); };
      const k = make("canvas", b); k.width = 90; k.height = 120;
      lines(k.getContext("2d"), l, [h], 90, 120, .05, () => true); } } };
const bars = () => { const i = +one("[data-from]").value, place = one("[data-bars]");
  place.textContent = ""; const row = [...flow.subarray(i * T, (i + 1) * T)], most = Math.max(...row, 1);
  const t = make("table", place), b = make("tbody", t);
  tokens.forEach((token, j) => { const r = make("tr", b); make("td", r, token);
    const bar = make("span", make("td", r)); bar.className = "bar";
    bar.style.width = `${(row[j] / most * 12).toFixed(2)}rem`; }); };
tokens.forEach((t, i) => { make("option", one("[data-from]"), t).value = i; });
one("[data-from]").onchange = bars;
const show = view => { box.querySelectorAll("[data-page]").forEach(e => e.hidden = e.dataset.page != view);
  box.querySelectorAll("[data-view]").forEach(e => e.setAttribute("aria-pressed", e.dataset.view == view));
  if (view == "model") model(); if (view == "head") draw(); if (view == "rollout") bars(); };
box.querySelectorAll("[data-view]").forEach(e => e.onclick = () => show(e.dataset.view));
one("[data-layer]").onchange = e => { layer = +e.target.value; draw(); };
one("[data-all]").onclick = () => { on = new Set(on.size == heads ? [] : [...Array(heads).keys()]); draw(); };
part.onchange = draw; addEventListener("resize", draw); draw();
})()</script>"""


@dataclass(frozen=True, eq=False)
class AttentionMaps:
    """Attention of L layers and N heads between T tokens.

    Attributes:
        texts: the texts that were read, one or two.
        tokens: T tokens of the vocabulary, with [CLS] and [SEP].
        sides: int32 [T], the index of each token's text; -1 for special tokens.
        spans: int32 [T, 2], the characters of each token in its text, start and end; -1 for
            special tokens.
        maps: float32 [L, N, T, T]; `maps[l, n, i, j]` is the probability with which token i
            attends to token j. Rows sum to 1.
    """

    texts: tuple[str, ...]
    tokens: tuple[str, ...]
    sides: np.ndarray
    spans: np.ndarray
    maps: np.ndarray

    def rollout(self, layers: int | None = None) -> np.ndarray:
        """Follows attention through the layers (Abnar and Zuidema 2020, arXiv:2005.00928).

        The mean over heads is averaged with the identity, for the residual connection, and
        multiplied from layer to layer.

        Args:
            layers: number of layers from the bottom; None for all.

        Returns:
            float32 [T, T], from a token of the output to tokens of the input; rows sum to 1.
        """
        found = np.eye(len(self.tokens))
        for heads in self.maps[:layers].astype("float64"):
            found = (heads.mean(axis=0) + np.eye(len(found))) / 2 @ found
        return found.astype("float32")

    def _body(self) -> str:
        flow = self.rollout()
        data = {
            "tokens": [shown(token) for token in self.tokens],
            "sides": self.sides.tolist(),
            "layers": self.maps.shape[0],
            "heads": self.maps.shape[1],
            "maps": _encoded(self.maps),
            "rollout": _encoded(flow / max(flow.max(), 1e-12)),
        }
        # "<" would end the script in a token such as "</script>".
        text = json.dumps(data).replace("<", "\\u003c")
        name = "kb" + hashlib.sha256(text.encode()).hexdigest()[:12]
        script = _SCRIPT.replace('"ID"', f'"{name}"').replace("DATA", text, 1)
        return _STYLE + _BODY.replace("ID", name, 1) + script

    def _repr_html_(self) -> str:
        return fragment(self._body())

    def to_html(self, path: str | Path) -> Path:
        """Writes a page with a head view, a model view (Vig 2019, arXiv:1906.05714) and rollout.

        The page is self-contained; probabilities are rounded to 1/255.

        Args:
            path: the file to create or replace.

        Returns:
            The path.
        """
        return write_page(path, "Attention", f"<h1>Attention</h1>{self._body()}")

    def to_png(self, path: str | Path, layer: int | None = None, head: int | None = None) -> Path:
        """Writes heat maps.

        Args:
            path: the file to create or replace.
            layer: index of a layer; None for the mean over layers.
            head: index of a head; None for the mean over heads.

        Returns:
            The path.

        Raises:
            ImportError: if matplotlib, from the extra "plots", is not installed.
            ValueError: if there is no such layer or head.
        """
        for name, value, count in zip(
            ("layer", "head"), (layer, head), self.maps.shape[:2], strict=True
        ):
            if value is not None and not -count <= value < count:
                raise ValueError(f"{name}={value}: expected 0 to {count - 1}")
        part = self.maps[slice(None) if layer is None else [layer]]
        part = part[:, slice(None) if head is None else [head]].mean(axis=(0, 1))
        size = 2 + 0.22 * len(self.tokens)
        made = figure(size, size)
        axes = made.subplots()
        axes.imshow(part, cmap="Blues", vmin=0)
        tokens = [drawn(token) for token in self.tokens]
        axes.set_xticks(range(len(tokens)), tokens, rotation=90)
        axes.set_yticks(range(len(tokens)), tokens)
        axes.set(xlabel="to", ylabel="from")
        return write_png(path, made)


def attention(task, text: str | tuple[str, str]) -> AttentionMaps:
    """Computes the attention maps of one or two texts.

    Texts are read as [CLS] first [SEP] second [SEP], truncated at `sequence_length`. For a masked
    language model the literal [MASK] in a single text is the special token.

    Args:
        task: a task with a preprocessor.
        text: a text, or a tuple of two.

    Returns:
        The `AttentionMaps`.

    Raises:
        TypeError: if a text is not a string.
        ValueError: if the task has no preprocessor.

    Example:

    >>> attention(classifier, ("The ice broke.", "It was warm.")).to_html("attention.html")
    """
    task.check_has_preprocessor()
    texts = text if isinstance(text, tuple) else (text,)
    if not 1 <= len(texts) <= 2 or not all(isinstance(one, str) for one in texts):
        raise TypeError(f"text={text!r:.80}: expected a str or a tuple of two")
    reading = read_pair(task, texts)
    _, maps = run_layers(task, reading)
    return AttentionMaps(reading.texts, reading.tokens, reading.sides, reading.spans, maps)


def _encoded(values: np.ndarray) -> str:
    """Numbers from 0 to 1 as bytes, in base64."""
    return base64.b64encode(np.rint(values * 255).astype("uint8").tobytes()).decode()
