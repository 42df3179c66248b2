// Classifiers: one label, several labels with thresholds, and numbers.

import { bars, count, field, h, percent, short, wellFormed } from "./dom.js";

const TEXTS = [
  "Two hours I won't get back.",
  "A quiet film that stays with you for days.",
  "The harbour froze in the night.",
];
const PAIRS = [
  ["A man is playing a guitar.", "Someone is making music."],
  ["The shop opens at nine.", "The shop is closed in the morning."],
];

/** The page of a classifier; its kind follows from the outputs of its signature. */
export function classify(model) {
  const outputs = model.signatures.serving_default.outputs;
  const kind = outputs.values ? numbers : outputs.given ? severalLabels : oneLabel;
  const { heading, lead, show, answer } = kind(model);
  const text = field("text", { label: "Text", placeholder: "Type or paste a text" });
  const second = model.signatures.pair
    ? field("text_pair", { label: "Second text", rows: 2, placeholder: "For models of pairs" })
    : null;
  const toggle = second && h("button.link", { type: "button", onclick: () => pair(second.hidden) });

  function pair(wanted) {
    if (!second) return;
    second.hidden = !wanted;
    toggle.textContent = wanted ? "Remove the second text" : "Add a second text";
    if (!wanted) second.control.value = "";
  }
  const pairs = Boolean(second && model.scores?.pairs); // what the run was trained on
  pair(pairs);

  const request = (texts, others, paired = others.some((other) => other)) =>
    paired
      ? { signature: "pair", inputs: { text: texts, text_pair: others } }
      : { signature: "serving_default", inputs: { text: texts } };

  // Of a model of pairs, a row whose second text is empty is a pair too.
  const isPair = (record) => pairs || Boolean(record.text_pair);

  return {
    heading, lead,
    form: [text, second],
    tools: [toggle],
    examples: pairs ? PAIRS.map(([a, b]) => ({ name: a, use: () => (pair(true), { text: a, text_pair: b }) })) : [
      ...TEXTS.map((example) => ({ name: example, use: () => (pair(false), { text: example }) })),
      ...(second
        ? PAIRS.slice(0, 1).map(([a, b]) => ({
            name: "A pair of texts", use: () => (pair(true), { text: a, text_pair: b }),
          }))
        : []),
    ],
    requests() {
      const value = wellFormed(text.control.value);
      if (!value.trim() || (pairs && !second.hidden && !second.control.value.trim())) return [];
      return [request([value], [second && !second.hidden ? wellFormed(second.control.value) : ""])];
    },
    show: ([reply]) => show(reply),
    file: {
      columns: [
        { name: "text", label: "Text" },
        ...(second ? [{ name: "text_pair", label: "Second text", optional: true }] : []),
      ],
      ask: (records) =>
        request(records.map((r) => r.text), records.map((r) => r.text_pair ?? ""), isPair(records[0])),
      // Rows with and without a second text are asked of different signatures.
      group: (record) => (isPair(record) ? "pair" : "one"),
      answer,
    },
  };
}

function softmax(logits) {
  const most = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

/** Probabilities of all classes from a row of logits, as the graph computes that of the best. */
export function probabilities(model, logits) {
  const temperature = model.settings?.temperature ?? 1;
  return softmax(logits.map((logit) => logit / temperature));
}

/** The names of the classes; without labels their numbers. */
const names = (model, size) => model.labels ?? Array.from({ length: size }, (_, i) => i);

/** The answer of a classifier of one label: headline and bars. */
export function ranked(model, reply) {
  const logits = reply.logits[0];
  const labels = names(model, logits.length);
  const shares = probabilities(model, logits);
  const order = shares.map((share, i) => [share, i]).sort((a, b) => b[0] - a[0] || a[1] - b[1]);
  return [
    h("p.headline", {}, h("strong", {}, String(reply.label[0]))),
    bars(order.map(([share, i], place) => ({
      name: String(labels[i]), share, text: percent(share), strong: place === 0,
    }))),
  ];
}

function oneLabel(model) {
  return {
    heading: "Which label fits?",
    lead: "The model gives each label a probability. They add up to 100%.",
    show: (reply) => ranked(model, reply),
    answer: (reply, row) => ({ label: reply.label[row], probability: reply.probability[row] }),
  };
}

function severalLabels(model) {
  const given = model.settings?.thresholds;
  let thresholds;
  const reset = (size) => {
    thresholds = Array.isArray(given) && given.length === size ? [...given] : Array(size).fill(given ?? 0.5);
  };
  const chosen = (reply, row) => {
    const shares = reply.probabilities[row];
    if (!thresholds) reset(shares.length);
    return shares.map((share, i) => share >= thresholds[i]);
  };

  function show(reply) {
    const [labels, shares] = [reply.labels[0].map(String), reply.probabilities[0]];
    if (!thresholds) reset(shares.length);
    const headline = h("p.headline");
    const back = h("button.link", { type: "button", onclick: () => (reset(shares.length), draw()) }, "Back to the model's thresholds");
    const holder = h("div.thresholds");
    const items = () => shares.map((share, i) => {
      const slider = h("input.threshold", {
        type: "range", min: "0", max: "1", step: "0.01", value: String(thresholds[i]),
        "aria-label": `Threshold of ${labels[i]}`, title: `threshold ${thresholds[i].toFixed(2)}`,
        oninput: (event) => {
          thresholds[i] = Number(event.target.value);
          event.target.title = `threshold ${thresholds[i].toFixed(2)}`;
          tell();
        },
      });
      return { name: labels[i], share, text: percent(share), over: slider };
    });
    function tell() {
      const yes = chosen(reply, 0);
      const said = order.filter((i) => yes[i]).map((i) => labels[i]);
      headline.replaceChildren(said.length ? h("strong", {}, said.join(", ")) : h("em", {}, "No label reaches its threshold"));
      const places = holder.querySelectorAll(".bar");
      places.forEach((bar, place) => bar.classList.toggle("strong", yes[order[place]]));
      back.hidden = thresholds.every((t, i) => t === (Array.isArray(given) ? given[i] : (given ?? 0.5)));
    }
    const order = shares.map((_, i) => i).sort((a, b) => shares[b] - shares[a] || a - b);
    function draw() {
      const all = items();
      const list = bars(order.map((i) => all[i]), 20);
      holder.replaceChildren(list);
      list.addEventListener("click", tell); // "Show all" adds bars
      tell();
    }
    draw();
    return [headline, holder, h("p.note", {}, "Drag a mark, or move it with the arrow keys, to change the threshold of a label. ", back)];
  }
  return {
    heading: "Which labels fit?",
    lead: "Each label has a probability of its own. It is given from its threshold on.",
    show,
    answer(reply, row) {
      const yes = chosen(reply, row);
      const labels = reply.labels[row].map(String);
      return {
        labels: labels.filter((_, i) => yes[i]).join("; "),
        ...Object.fromEntries(labels.map((label, i) => [`probability of ${label}`, reply.probabilities[row][i]])),
      };
    },
  };
}

function numbers(model) {
  const range = model.scores?.label_range; // of the numbers that the model was trained on
  const seen = [];

  /** [low, high] of the scale, and how it came about. */
  function scale(i) {
    if (Array.isArray(range)) return [...range, "the numbers that the model was trained on"];
    const all = seen.map((values) => values[i]);
    const [low, high] = [Math.min(...all), Math.max(...all)];
    return [Math.min(0, Math.floor(low)), Math.max(1, Math.ceil(high)), `the ${count(seen.length, "answer")} so far`];
  }
  function show(reply) {
    const values = reply.values[0];
    seen.push(values);
    return values.map((value, i) => {
      const [low, high, from] = scale(i);
      const name = values.length > 1 ? String(names(model, values.length)[i]) : null;
      const mark = h("span.needle");
      mark.style.left = `${Math.max(0, Math.min(1, (value - low) / (high - low || 1))) * 100}%`;
      return h("div.number", {},
        h("p.headline", {}, name && h("span.name", {}, name), h("strong", {}, short(value))),
        h("div.scale", { "aria-hidden": "true" }, mark),
        h("p.ends", {}, h("span", {}, short(low)), h("span.note", {}, `Range of ${from}`), h("span", {}, short(high))));
    });
  }
  return {
    heading: "How much?",
    lead: "The model answers with a number.",
    show,
    answer: (reply, row) =>
      reply.values[row].length === 1
        ? { value: reply.values[row][0] }
        : Object.fromEntries(reply.values[row].map((value, i) => [`value ${names(model, reply.values[row].length)[i]}`, value])),
  };
}
