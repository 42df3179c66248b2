// Taggers: entities, or a tag for each word, in the text that they were found in.

import { field, h, marked, percent, wellFormed } from "./dom.js";

const TEXTS = [
  "Ada Lovelace met Charles Babbage in London in 1833.",
  "The Rhine rises in Switzerland and reaches the North Sea near Rotterdam.",
  "Grace Hopper worked on the Harvard Mark I for the US Navy.",
];
const HUES = 8; // in style.css

/** The page of a tagger. */
export function tag(model) {
  const entities = "entity" in model.signatures.serving_default.outputs;
  const hues = new Map();
  for (const label of model.labels ?? []) {
    const name = entities ? String(label).replace(/^[A-Z][-_]/, "") : String(label);
    if (name !== "O" && !hues.has(name)) hues.set(name, hues.size % HUES);
  }
  const hue = (name) => `hue-${hues.get(name) ?? 0}`;
  const text = field("text", { label: "Text", placeholder: "Type or paste a text" });

  /** The entities of a row, or its words as if they were some. */
  function found(reply, row = 0) {
    const texts = entities ? reply.entity : reply.word;
    const [labels, scores] = entities ? [reply.label, reply.score] : [reply.tag, reply.probability];
    return Array.from({ length: reply.count[row] }, (_, i) => ({
      text: texts[row][i], label: labels[row][i], start: reply.start[row][i], end: reply.end[row][i], score: scores[row][i],
    }));
  }

  function show([reply], [request]) {
    const all = found(reply);
    const value = request.inputs.text[0];
    const shown = marked(value, all.map((one, i) => ({
      start: one.start, end: one.end,
      mark: (part) => h(`mark.entity.${hue(one.label)}`, { "data-number": i, title: `${one.label}, ${percent(one.score)}` }, part, h("span.tag", {}, one.label)),
    })));
    if (!all.length) return [h("p.headline", {}, h("em", {}, "No entity found")), shown];
    if (!entities) return [shown];
    const point = (i, on) => shown.querySelector(`[data-number="${i}"]`)?.classList.toggle("pointed", on);
    const rows = all.map((one, i) => h("tr", { onmouseenter: () => point(i, true), onmouseleave: () => point(i, false) },
      h("th", { scope: "row", dir: "auto" }, one.text), h("td", {}, h(`span.chip.${hue(one.label)}`, {}, one.label)), h("td.figure", {}, percent(one.score))));
    return [
      shown,
      h("table.found", {},
        h("caption", {}, all.length === 1 ? "1 entity" : `${all.length} entities`),
        h("thead.unseen", {}, h("tr", {}, ["Entity", "Label", "Score"].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, rows)),
    ];
  }

  return {
    heading: entities ? "What is named here?" : "A tag for each word",
    lead: entities ? "The model marks names in the text and says their kind." : "The model says the tag of each word in the text.",
    form: [text],
    labels: [...hues.keys()],
    examples: TEXTS.map((example) => ({ name: example, use: () => ({ text: example }) })),
    requests() {
      const value = wellFormed(text.control.value);
      return value.trim() ? [{ signature: "serving_default", inputs: { text: [value] } }] : [];
    },
    show,
    file: {
      columns: [{ name: "text", label: "Text" }],
      ask: (records) => ({ signature: "serving_default", inputs: { text: records.map((r) => r.text) } }),
      answer(reply, row) {
        const all = found(reply, row);
        return { [entities ? "entities" : "tags"]: JSON.stringify(all), count: all.length };
      },
    },
  };
}
