// Attention, to look around in: all heads, the lines of some heads, and what flows into each word.
// One view for the pages that keras_bert.explain writes and for the page of the server.

const HEIGHT = 26; // of a word, as in attention.css
const FAINTEST = 0.03; // attention that has a line
const NAMED = 3; // words that a sentence names

/**
 * Builds the views.
 * @param {HTMLElement} box to fill
 * @param {object} data `AttentionMaps.view_data` of Python: "tokens"; "sides", -1 for special
 *   tokens; "layers", "heads"; "maps", the bytes [layers, heads, from, to] in base64, 255 for 1;
 *   "rollout", the same of [from, to], 255 for "rollout_most"
 */
export function attentionView(box, data) {
  const { tokens, sides, layers, heads } = data;
  const size = tokens.length;
  const unpack = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const [maps, rollout] = [unpack(data.maps), unpack(data.rollout)];
  const at = (layer, head, from, to) => maps[((layer * heads + head) * size + from) * size + to] / 255;
  const inside = sides.findIndex((side) => side >= 0);
  const state = { layer: 0, on: new Set([0]), part: "", lines: null, flow: Math.max(inside, 0), way: "rollout" };

  function make(tag, parent, text, attributes = {}) {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    parent.append(element);
    return element;
  }
  const style = (name) => getComputedStyle(box).getPropertyValue(name).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const color = (head) => state.on.size === 1 ? style("--view-accent")
    : `hsl(${Math.round((head * 360) / heads)} 65% ${dark.matches ? 65 : 42}%)`;
  const percent = (value) => `${Math.round(value * 100)}%`;
  const named = (pairs) => pairs.sort((a, b) => b[1] - a[1]).slice(0, NAMED)
    .map(([i, value]) => `\u201c${tokens[i]}\u201d ${percent(value)}`).join(", ");
  const each = [...tokens.keys()];

  /** Buttons of which one is reached by Tab, and the others by arrow keys; a row has `columns`. */
  function roving(buttons, columns) {
    const reach = (chosen) => buttons.forEach((b, i) => (b.tabIndex = i === chosen ? 0 : -1));
    buttons.forEach((button, i) => {
      button.addEventListener("focus", () => reach(i));
      button.addEventListener("keydown", (event) => {
        const steps = { ArrowDown: columns, ArrowUp: -columns, ArrowRight: 1, ArrowLeft: -1, Home: -i, End: buttons.length - 1 - i };
        const to = buttons[i + steps[event.key]];
        if (!to) return;
        event.preventDefault();
        to.focus();
      });
    });
    reach(0);
  }

  // === Frame ===

  box.classList.add("attention");
  const tools = make("div", box, undefined, { class: "tools" });
  const bar = make("div", tools, undefined, { class: "switch", role: "group", "aria-label": "View" });
  const pages = {};
  const titles = { heads: "All heads", lines: "Lines", flow: "Flow" };
  for (const [name, title] of Object.entries(titles)) {
    make("button", bar, title, { type: "button", "data-view": name }).addEventListener("click", () => open(name));
    pages[name] = make("section", box, undefined, { "data-page": name });
  }
  const drawn = new Set();
  function open(view) {
    for (const name of Object.keys(titles)) pages[name].hidden = name !== view;
    for (const button of bar.children) button.setAttribute("aria-pressed", button.dataset.view === view);
    if (!drawn.has(view)) views[view]();
    drawn.add(view);
    if (view === "lines") drawLines();
  }

  // === All heads: a small map for each ===

  function overview() {
    make("p", pages.heads, "A square for each head: layers from top to bottom, heads from left to right. In a square, a row is a word that attends, and a column a word that it attends to. Choose one to see its lines.", { class: "say" });
    const grid = make("div", pages.heads, undefined, { class: "grid", role: "group", "aria-label": "Heads" });
    grid.style.gridTemplateColumns = `1.25rem repeat(${heads}, minmax(0, 5rem))`;
    make("span", grid, "");
    for (let head = 0; head < heads; head++) make("span", grid, head + 1);
    const buttons = [];
    for (let layer = 0; layer < layers; layer++) {
      make("span", grid, layer + 1);
      for (let head = 0; head < heads; head++) {
        const title = `Layer ${layer + 1}, head ${head + 1}`;
        const button = make("button", grid, undefined, { type: "button", title, "aria-label": title });
        const canvas = make("canvas", button, undefined, { width: size, height: size });
        if (size < 60) canvas.style.imageRendering = "pixelated";
        button.addEventListener("click", () => {
          [state.layer, state.on] = [layer, new Set([head])];
          open("lines");
          pages.lines.querySelector("select").focus();
        });
        buttons.push([button, canvas, layer, head]);
      }
    }
    roving(buttons.map(([button]) => button), heads);
    function paint() {
      const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
      context.fillStyle = style("--view-accent");
      context.fillRect(0, 0, 1, 1);
      const ink = context.getImageData(0, 0, 1, 1).data;
      for (const [, canvas, layer, head] of buttons) {
        const begin = (layer * heads + head) * size * size;
        const image = new ImageData(size, size);
        for (let i = 0; i < size * size; i++) {
          image.data.set(ink.subarray(0, 3), 4 * i);
          image.data[4 * i + 3] = 255 * Math.sqrt(maps[begin + i] / 255); // so that weak ones are seen
        }
        canvas.getContext("2d").putImageData(image, 0, 0);
      }
    }
    paint();
    dark.addEventListener("change", paint);
  }

  // === Lines of the heads of a layer ===

  let canvas, sides2, saying, chips, layerChoice;
  function lines() {
    const page = pages.lines;
    const first = make("div", page, undefined, { class: "tools" });
    layerChoice = make("select", make("label", first, "Layer"), undefined, { "data-layer": "" });
    for (let layer = 0; layer < layers; layer++) make("option", layerChoice, layer + 1, { value: layer });
    layerChoice.addEventListener("change", () => { state.layer = Number(layerChoice.value); drawLines(); });
    if (sides.includes(1)) {
      const part = make("select", make("label", first, "From"), undefined, { "data-part": "" });
      const parts = { "": "all words", "01": "first to second text", 10: "second to first text", "00": "first to first text", 11: "second to second text" };
      for (const value of ["", "01", "10", "00", "11"]) make("option", part, parts[value], { value });
      part.addEventListener("change", () => { state.part = part.value; drawLines(); });
    }
    const second = make("div", page, undefined, { class: "tools" });
    chips = make("div", second, undefined, { class: "chips", role: "group", "aria-label": "Heads" });
    for (let head = 0; head < heads; head++) {
      make("button", chips, head + 1, { type: "button", "aria-label": `Head ${head + 1}` }).addEventListener("click", () => {
        if (!state.on.delete(head)) state.on.add(head);
        drawLines();
      });
    }
    roving([...chips.children], heads);
    make("button", second, "All heads", { type: "button", class: "link" }).addEventListener("click", () => {
      state.on = new Set(state.on.size === heads ? [] : [...Array(heads).keys()]);
      drawLines();
    });
    saying = make("p", page, "", { class: "say", role: "status" });
    const place = make("div", page, undefined, { class: "lines" });
    const columns = ["left", "right"].map(() => make("div", place));
    canvas = make("canvas", place);
    columns[0].after(canvas);
    sides2 = columns.map((column, side) => {
      column.setAttribute("role", "group");
      column.setAttribute("aria-label", side ? "Words attended to" : "Words that attend");
      const words = each.map((i) => {
        const word = make("button", column, tokens[i], { type: "button", title: tokens[i] });
        if (sides[i] < 0) word.className = "special";
        let kept = false; // by focus
        const show = (chosen) => { state.lines = chosen; drawLines(); };
        word.addEventListener("mouseenter", () => show([side, i]));
        word.addEventListener("focus", () => { kept = true; show([side, i]); });
        word.addEventListener("blur", () => { kept = false; show(null); });
        word.addEventListener("mouseleave", () => show(kept ? [side, i] : null));
        return word;
      });
      roving(words, 1);
      return words;
    });
    new ResizeObserver(drawLines).observe(place);
    dark.addEventListener("change", drawLines);
  }

  /** The mean of the chosen heads. */
  function mean(from, to) {
    let sum = 0;
    for (const head of state.on) sum += at(state.layer, head, from, to);
    return sum / Math.max(state.on.size, 1);
  }

  function drawLines() {
    if (!canvas || pages.lines.hidden) return;
    layerChoice.value = state.layer;
    [...chips.children].forEach((chip, head) => {
      chip.setAttribute("aria-pressed", state.on.has(head));
      chip.style.setProperty("--head", color(head));
    });
    const scale = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, size * HEIGHT];
    canvas.style.height = `${height}px`;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    context.lineWidth = state.on.size > 3 && !state.lines ? 1.2 : 2.2;
    const seen = (i, j) => (!state.part || (sides[i] === Number(state.part[0]) && sides[j] === Number(state.part[1])))
      && (!state.lines || (state.lines[0] ? j : i) === state.lines[1]);
    for (const head of state.on) {
      context.strokeStyle = color(head);
      for (const i of each) {
        for (const j of each) {
          const value = at(state.layer, head, i, j);
          if (value < FAINTEST || !seen(i, j)) continue;
          context.globalAlpha = value ** 0.7;
          context.beginPath();
          context.moveTo(2, (i + 0.5) * HEIGHT);
          context.bezierCurveTo(width * 0.4, (i + 0.5) * HEIGHT, width * 0.6, (j + 0.5) * HEIGHT, width - 2, (j + 0.5) * HEIGHT);
          context.stroke();
        }
      }
    }
    const [side, chosen] = state.lines ?? [];
    const weight = (i) => (side ? mean(i, chosen) : mean(chosen, i));
    sides2.forEach((words, number) => words.forEach((word, i) => {
      const shaded = state.lines && number !== side;
      word.classList.toggle("chosen", Boolean(state.lines) && number === side && i === chosen);
      word.classList.toggle("shaded", Boolean(shaded));
      if (shaded) word.style.setProperty("--share", weight(i));
    }));
    const which = state.on.size === 1 ? `Head ${[...state.on][0] + 1}` : `${state.on.size} heads on average`;
    if (!state.on.size) saying.textContent = "No head is chosen.";
    else if (!state.lines) saying.textContent = "Left: the word that attends. Right: the words that it attends to. Point at a word for its lines alone.";
    else saying.textContent = `${which} of layer ${state.layer + 1}: \u201c${tokens[chosen]}\u201d ${side ? "is attended to most by" : "attends most to"} ${named(each.map((i) => [i, weight(i)]))}.`;
  }

  // === Flow: through all layers, or on average ===

  function flow() {
    const page = pages.flow;
    const choice = make("select", make("label", make("div", page, undefined, { class: "tools" }), "How"), undefined, { "data-way": "" });
    make("option", choice, "rollout through all layers", { value: "rollout" });
    make("option", choice, "mean of all layers and heads", { value: "all" });
    for (let layer = 0; layer < layers; layer++) make("option", choice, `mean of layer ${layer + 1}`, { value: layer });
    const said = make("p", page, "", { class: "say", role: "status" });
    const text = make("p", page, undefined, { class: "flow", role: "group", "aria-label": "Words of the text" });
    const words = each.map((i) => {
      if (i && sides[i] > 0 && sides[i - 1] !== sides[i]) make("br", text);
      const word = make("button", text, tokens[i], { type: "button" });
      if (sides[i] < 0) word.className = "special";
      word.classList.add("shaded");
      word.addEventListener("focus", () => show(i));
      word.addEventListener("mouseenter", () => show(i));
      word.addEventListener("click", () => show(i)); // where a click gives no focus
      text.append(" ");
      return word;
    });
    roving(words, 1);
    words.forEach((word, i) => (word.tabIndex = i === state.flow ? 0 : -1));
    const row = () => {
      if (state.way === "rollout") return each.map((j) => (rollout[state.flow * size + j] / 255) * data.rollout_most);
      const chosen = state.way === "all" ? [...Array(layers).keys()] : [Number(state.way)];
      return each.map((j) => {
        let sum = 0;
        for (const layer of chosen) for (let head = 0; head < heads; head++) sum += at(layer, head, state.flow, j);
        return sum / (chosen.length * heads);
      });
    };
    function show(i) {
      state.flow = i;
      const values = row();
      const most = Math.max(...values.filter((_, j) => j !== i), 1e-9);
      words.forEach((word, j) => {
        word.style.setProperty("--share", Math.min(values[j] / most, 1));
        word.classList.toggle("chosen", j === i);
      });
      const others = each.filter((j) => j !== i).map((j) => [j, values[j]]);
      said.textContent = `Into \u201c${tokens[i]}\u201d flows ${percent(values[i])} of itself; of other words most from ${named(others)}. Point at another word for its own.`;
    }
    choice.addEventListener("change", () => { state.way = choice.value; show(state.flow); });
    show(state.flow);
  }

  const views = { heads: overview, lines, flow };
  open("heads");
}
