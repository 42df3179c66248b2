// Elements, and characters as the server counts them.

let numbered = 0;

/** An id that no other element of the page has. */
export const newId = (prefix) => `${prefix}-${++numbered}`;

/**
 * Builds an element.
 * @param {string} tag such as "p" or "p.note.wide", with classes
 * @param {object} attributes attributes; functions are listeners, as in {onclick}; null, undefined
 *   and false leave an attribute out
 * @param {...(Node|string|number|null)} children null, undefined and false are left out
 */
export function h(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (key === "value") element.value = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

/** A text that is valid Unicode: a lone surrogate, which no UTF-8 can hold, becomes U+FFFD. */
export const wellFormed = (text) =>
  text.replace(/[\uD800-\uDBFF][\uDC00-\uDFFF]|[\uD800-\uDFFF]/g, (c) => (c.length > 1 ? c : "\uFFFD"));

/** The part of a text between two offsets in characters (code points), as the server gives them. */
export function between(text, start, end) {
  return Array.from(text).slice(start, end).join("");
}

/** The offset in characters (code points) of an offset in UTF-16 units, as a browser gives it. */
export const inCharacters = (text, offset) => Array.from(text.slice(0, offset)).length;

/** A probability for people: "97.3%". */
export function percent(value) {
  if (typeof value !== "number") return "not a number";
  if (value > 0.9995 && value < 1) return "> 99.9%";
  if (value < 0.0005 && value > 0) return "< 0.1%";
  return `${(value * 100).toFixed(1)}%`;
}

/** A number for people, with at most so many significant digits; no digit before the point is rounded away. */
export function short(value, digits = 4) {
  if (typeof value !== "number") return "not a number";
  const whole = Math.abs(value) >= 10 ** digits ? Math.round(value) : value;
  const text = Number.isInteger(whole) ? whole.toLocaleString("en") : String(Number(value.toPrecision(digits)));
  return text.replace(/^-/, "\u2212");
}

/** "1 row", "3 rows". */
export const count = (number, noun) =>
  `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

/**
 * Horizontal bars in a list.
 * @param {{name: (string|Node), share: number, text: string, strong: boolean}[]} items share is the
 *   length of a bar, 0 to 1; the strong ones have the accent colour
 * @param {number} most how many to show at first
 */
export function bars(items, most = 8) {
  const rows = items.map((item) => {
    const fill = h("span.fill");
    fill.style.width = `${Math.max(0, Math.min(1, item.share || 0)) * 100}%`;
    return h(
      item.strong ? "li.bar.strong" : "li.bar",
      {},
      h("span.name", {}, item.name),
      h("span.figure", {}, item.text),
      h("span.track", { "aria-hidden": "true" }, fill, item.over),
    );
  });
  const list = h("ol.bars", {}, rows.slice(0, most));
  if (rows.length <= most) return list;
  const more = h("button.link", {
    type: "button",
    onclick: () => {
      list.append(...rows.slice(most));
      more.remove();
    },
  }, `Show all ${rows.length.toLocaleString("en")}`);
  return h("div", {}, list, more);
}

/**
 * A text in which some parts are marked.
 * @param {string} text
 * @param {{start: number, end: number, mark: Function}[]} spans in characters; mark takes the part
 *   of the text and returns an element. Spans that overlap one before are left out.
 */
export function marked(text, spans) {
  const characters = Array.from(text);
  const parts = [];
  let done = 0;
  for (const span of [...spans].sort((a, b) => a.start - b.start)) {
    if (span.start < done || span.end <= span.start) continue;
    parts.push(characters.slice(done, span.start).join(""));
    parts.push(span.mark(characters.slice(span.start, span.end).join("")));
    done = span.end;
  }
  parts.push(characters.slice(done).join(""));
  return h("p.passage", {}, parts);
}

/**
 * A labelled field of text.
 * @param {string} input the input of the model that it fills, by which errors find it
 * @param {object} options label; rows, 1 for a single line; hint; placeholder; value
 * @returns {HTMLElement} with `control`, the text field, and `problem(message)`, which shows an
 *   error below it or, with "", none
 */
export function field(input, { label, rows = 4, hint, placeholder, value = "", hidden = false }) {
  const id = newId(input);
  const shared = {
    id, name: input, placeholder, value, autocomplete: "off", spellcheck: "false", dir: "auto",
    "aria-describedby": `${id}-hint ${id}-problem`,
  };
  const control = rows > 1 ? h("textarea", { rows, ...shared }) : h("input", { type: "text", ...shared });
  const said = h("p.problem", { id: `${id}-problem`, role: "alert" });
  const element = h(
    "div.field",
    { "data-input": input },
    h("label", { for: id, class: hidden && "unseen" }, label),
    control,
    h("p.hint", { id: `${id}-hint` }, hint),
    said,
  );
  element.control = control;
  element.problem = (message) => {
    said.textContent = message;
    if (message) control.setAttribute("aria-invalid", "true");
    else control.removeAttribute("aria-invalid");
  };
  return element;
}
