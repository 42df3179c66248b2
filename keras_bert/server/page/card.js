// The model's card.

import { count, h, short } from "./dom.js";

const TASKS = {
  BertClassifier: "Text classification", BertTokenClassifier: "Tagging", BertQuestionAnswerer: "Question answering",
  BertMultipleChoice: "Multiple choice", BertRelationClassifier: "Relations", BertTextEmbedder: "Text embeddings",
  BertMaskedLM: "Masked language model", BertPretrainer: "Pre-trained BERT, with both heads",
};
const PROBLEMS = { multi_label: "Text classification, several labels", regression: "Text regression" };
const LABELS = 12; // shown at first

function bytes(size) {
  const units = ["bytes", "kB", "MB", "GB"];
  let i = 0;
  while (size >= 1000 && i < units.length - 1) {
    size /= 1000;
    i += 1;
  }
  return `${size < 10 && i ? size.toFixed(1) : Math.round(size)} ${units[i]}`;
}

/** Labels as chips, a few at first. */
function chips(labels) {
  const all = labels.map((label) => h("li.chip", {}, String(label)));
  const list = h("ul.chips", {}, all.slice(0, LABELS));
  if (all.length > LABELS) {
    list.append(h("li", {}, h("button.link", {
      type: "button",
      onclick: (event) => {
        event.target.parentElement.remove();
        list.append(...all.slice(LABELS));
      },
    }, `and ${all.length - LABELS} more`)));
  }
  return list;
}

/** The scores of a run: those of its own list, or all numbers that it kept. */
function scoresOf(found) {
  if (!found || typeof found !== "object") return [];
  const scores = found.scores && typeof found.scores === "object" ? found.scores : found;
  return Object.entries(scores).filter(([, value]) => typeof value === "number");
}

/** The card of a model, with the labels that its answers have: an aside. */
export function card(model, labels) {
  const settings = model.settings ?? {};
  const lines = [["Task", PROBLEMS[settings.problem] ?? TASKS[model.task] ?? model.task]];
  if (labels?.length) lines.push([count(labels.length, "label"), chips(labels)]);
  const scores = scoresOf(model.scores);
  if (scores.length) {
    lines.push(["Scores on held-out rows", h("table.scores", {}, h("tbody", {}, scores.map(([name, value]) =>
      h("tr", {}, h("th", { scope: "row" }, name.replaceAll("_", " ")), h("td.figure", {}, short(value))))))]);
  }
  if (model.scores?.rows?.train) lines.push(["Trained on", count(model.scores.rows.train, "row")]);
  if (settings.sequence_length) lines.push(["Reads", `${settings.sequence_length} tokens at a time${settings.lowercase ? ", lower-cased" : ""}`]);
  if (model.weights?.bytes) {
    const { stored, policy } = model.weights;
    lines.push(["Size", `${bytes(model.weights.bytes)}, ${stored ?? policy}`]);
  }
  const named = Object.entries(model.version_labels ?? {}).map(([label, number]) => `${label} = ${number}`);
  lines.push([model.versions.length > 1 ? "Versions" : "Version", [...model.versions, ...named].join(", ")]);
  const packages = Object.entries(model.packages ?? {});
  return h("aside.card", { "aria-labelledby": "card-title" },
    h("h2", { id: "card-title" }, "About this model"),
    h("p.name", {}, model.name),
    h("dl", {}, lines.map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value)))),
    packages.length > 0 && h("details", {}, h("summary", {}, "Made with"),
      h("table.scores", {}, h("tbody", {}, packages.map(([name, version]) =>
        h("tr", {}, h("th", { scope: "row" }, name), h("td.figure", {}, version)))))),
    h("details", {}, h("summary", {}, "Signatures"),
      Object.entries(model.signatures).map(([name, { inputs, outputs }]) => h("div.signature", {},
        h("code", {}, name), h("p", {}, `${Object.keys(inputs).join(", ")} → ${Object.keys(outputs).join(", ")}`)))));
}
