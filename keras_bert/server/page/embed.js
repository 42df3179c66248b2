// Embeddings: a search over pasted sentences, and how similar these are to each other.

import { bars, field, h, wellFormed } from "./dom.js";

const SENTENCES = [
  "The harbour froze in the night.",
  "Ice covered the water by morning.",
  "The bakery sells rye bread on Fridays.",
  "Fresh loaves come out of the oven at six.",
  "The train to the coast was late again.",
  "Passengers waited an hour on the platform.",
];
const MOST = 200; // sentences
const MAPPED = 24; // sentences of the heat map

function unit(vector) {
  const length = Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0)) || 1;
  return vector.map((x) => x / length);
}
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

/** The page of an embedder. */
export function embed(model) {
  const query = field("query", { label: "Search for", rows: 1, placeholder: "A question or a topic" });
  const list = field("text", { label: "Sentences, one per line", rows: 7, placeholder: "Paste sentences here" });
  const sentences = () => wellFormed(list.control.value).split(/\r?\n/).map((line) => line.trim()).filter(Boolean);
  const ask = (texts) => ({ signature: "serving_default", inputs: { text: texts } });

  function heatMap(texts, vectors) {
    const shown = texts.slice(0, MAPPED);
    const cell = (value) => {
      const td = h("td", {}, value.toFixed(2));
      td.style.setProperty("--heat", String(Math.max(0, Math.min(1, value))));
      return td;
    };
    return h("div.wide", { role: "region", "aria-label": "Similarity of the sentences", tabindex: "0" },
      h("table.heat", {},
        h("caption", {}, "Similarity of the sentences, by the cosine of their embeddings"),
        h("thead", {}, h("tr", {}, h("td"), shown.map((text, i) => h("th", { scope: "col", title: text }, String(i + 1))))),
        h("tbody", {}, shown.map((text, i) => h("tr", {},
          h("th", { scope: "row", title: text }, h("span.place", {}, String(i + 1)), h("span.cut", {}, text)),
          shown.map((_, j) => cell(dot(vectors[i], vectors[j]))))))));
  }

  return {
    heading: "Search by meaning",
    lead: "Sentences that mean alike have embeddings that lie close together.",
    form: [query, list],
    examples: ["frozen sea", "something to eat", "delays in public transport"].map((example) => ({
      name: example,
      use: () => (list.control.value.trim() ? { query: example } : { query: example, text: SENTENCES.join("\n") }),
    })),
    requests() {
      const texts = sentences();
      const wanted = wellFormed(query.control.value).trim();
      list.problem(texts.length > MOST ? `${texts.length} sentences: this page compares up to ${MOST}. A file may hold more.` : "");
      if (!texts.length || texts.length > MOST) return [];
      return [ask(wanted ? [...texts, wanted] : texts)];
    },
    show([reply]) {
      const texts = sentences();
      const wanted = wellFormed(query.control.value).trim();
      const vectors = reply.embedding.map(unit);
      const parts = [];
      if (wanted && vectors.length === texts.length + 1) {
        const target = vectors.at(-1);
        const found = texts.map((text, i) => ({ text, share: dot(vectors[i], target) })).sort((a, b) => b.share - a.share);
        parts.push(h("h3", {}, "Closest to “", wanted, "”"));
        parts.push(bars(found.map(({ text, share }, place) => ({ name: text, share, text: share.toFixed(3), strong: place === 0 })), 5));
      }
      if (texts.length > 1) parts.push(heatMap(texts, vectors));
      if (texts.length > MAPPED) parts.push(h("p.note", {}, `The table shows the first ${MAPPED} of ${texts.length} sentences.`));
      if (!parts.length) parts.push(h("p.note", {}, `An embedding of ${vectors[0].length} numbers. Add a second sentence to compare it with.`));
      return parts;
    },
    /** The query and the sentence closest to it. */
    inside([reply], [request]) {
      const texts = request.inputs.text;
      if (!model.signatures.similarity || texts.length < 2 || !wellFormed(query.control.value).trim()) return null;
      const vectors = reply.embedding.map(unit);
      const near = vectors.slice(0, -1).map((vector) => dot(vector, vectors.at(-1)));
      return { signature: "similarity", inputs: { text: [texts.at(-1)], text_pair: [texts[near.indexOf(Math.max(...near))]] } };
    },
    file: {
      columns: [{ name: "text", label: "Text" }],
      ask: (records) => ask(records.map((r) => r.text)),
      answer: (reply, row) => ({ embedding: JSON.stringify(reply.embedding[row]) }),
    },
  };
}
