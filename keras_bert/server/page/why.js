// Why a model answered so: the words of a text, shaded by their share in the answer.

import { h, marked } from "./dom.js";
import { explain, ServerError } from "./server.js";

const FEWEST = 0.04; // share of the strongest word, below which a word is not shaded

/**
 * A button that asks for an explanation, and the explanation in its place.
 * @param {object} model
 * @param {object[]} requests of the answer; of several, or of several rows, there is none
 * @param {AbortSignal} signal ends when another answer is asked for
 * @returns {HTMLElement|null}
 */
export function why(model, requests, signal) {
  const rows = Object.values(requests[0].inputs).map((column) => column.length);
  if (!model.explains || requests.length > 1 || Math.max(...rows) > 1) return null;
  const box = h("div.why", { "aria-live": "polite" });
  const button = h("button.quiet", { type: "button", onclick: show }, "Why?");

  async function show() {
    button.disabled = true;
    button.textContent = "Looking at the words \u2026";
    try {
      box.replaceChildren(...shown(await explain(model, requests[0], signal)));
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ServerError)) throw error;
      box.replaceChildren(h("p.problem", { role: "alert" }, error.message));
    }
  }
  box.append(button);
  return box;
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
