// What is inside a model for an answer: the words that made it so, shaded, and attention.

import { attentionView } from "./attention.js";
import { h, marked } from "./dom.js";
import { look, ServerError } from "./server.js";

const FEWEST = 0.04; // share of the strongest word, below which a word is not shaded

/**
 * Buttons that look into a model, each with its view in its place.
 * @param {object} model
 * @param {object} request of the answer; of several rows, there is nothing
 * @param {AbortSignal} signal ends when another answer is asked for
 * @returns {HTMLElement|null}
 */
export function inside(model, request, signal) {
  const rows = Object.values(request.inputs).map((column) => column.length);
  if (!model.explains || Math.max(...rows) > 1) return null;
  const view = (kind, name, words, waiting, draw) => {
    const button = h("button.quiet", { type: "button", onclick: show }, words);
    const box = h(`div.${kind}`, {}, button);
    async function show() {
      button.disabled = true;
      button.textContent = waiting;
      try {
        const parts = draw(await look(name, model, request, signal));
        parts[0].tabIndex = -1;
        box.replaceChildren(...parts);
        box.classList.add("open");
        parts[0].focus();
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof ServerError)) throw error;
        box.replaceChildren(h("p.problem", { role: "alert" }, error.message));
      }
    }
    return box;
  };
  return h("div.inside", {},
    view("why", "explain", "Why?", "Looking at the words \u2026", shown),
    view("maps", "attention", "Attention", "Looking at the heads \u2026", (data) => {
      const place = h("div");
      // Drawn when it is on the page, where it has its size and colours.
      requestAnimationFrame(() => attentionView(place, data));
      return [h("h3", {}, "Attention"), place];
    }));
}

function shown({ meaning, texts, words }) {
  const most = Math.max(...words.map(({ score }) => Math.abs(score)), 1e-12);
  const shade = (score) => (part) => {
    const mark = h(score > 0 ? "mark.raises" : "mark.lowers", { title: score.toFixed(3) }, part);
    mark.style.setProperty("--share", Math.abs(score) / most);
    return mark;
  };
  const passages = texts.map((text, index) =>
    marked(text, words
      .filter((word) => word.text === index && Math.abs(word.score) >= FEWEST * most)
      .map(({ start, end, score }) => ({ start, end, mark: shade(score) }))));
  const legend = (kind, word) => {
    const mark = h(`mark.${kind}`, {}, word);
    mark.style.setProperty("--share", 0.7);
    return mark;
  };
  return [
    h("h3", {}, "Why"),
    ...passages,
    h("p.note", {}, legend("raises", "These words"), " raise the ", meaning, "; ",
      legend("lowers", "these"), " lower it."),
  ];
}
