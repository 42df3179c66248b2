// Masked language models: candidates for each mask; for a pre-trained BERT also the next sentence.

import { bars, field, h, percent, wellFormed } from "./dom.js";

const MASK = "[MASK]";
const TEXTS = [
  "She opened the [MASK] and looked out.",
  "The [MASK] froze in the night, and the ships lay [MASK].",
  "He put the letter into his [MASK] without a word.",
];

/** The page of a masked language model. */
export function fill(model) {
  const text = field("text", { label: "Text", rows: 3, placeholder: `Write ${MASK} where a word is missing` });
  const second = model.signatures.next_sentence
    ? field("text_pair", { label: "Next sentence, if you like", rows: 1, placeholder: "How likely does it follow the text?" })
    : null;
  const insert = h("button.link", {
    type: "button",
    onclick() {
      const { control } = text;
      const [start, end] = [control.selectionStart, control.selectionEnd];
      control.setRangeText(MASK, start, end, "end");
      control.focus();
      control.dispatchEvent(new Event("input", { bubbles: true }));
    },
  }, `Insert ${MASK}`);

  function show(replies, requests) {
    const parts = [];
    requests.forEach((request, i) => {
      if (request.signature === "next_sentence") {
        const share = replies[i].probability[0];
        parts.push(h("h3", {}, "Next sentence"), bars([{ name: "It follows the text", share, text: percent(share), strong: share >= 0.5 }]));
      } else parts.push(...candidates(replies[i], request.inputs.text[0]));
    });
    return parts;
  }

  function candidates(reply, value) {
    const pieces = value.split(MASK);
    const size = reply.count[0];
    if (!size) return [h("p.note", {}, `There is no ${MASK} in the text.`)];
    const chosen = reply.token[0].slice(0, size).map((tokens) => tokens[0]);
    const line = h("p.passage");
    const draw = () => line.replaceChildren(...pieces.flatMap((piece, i) =>
      i < size && i < pieces.length - 1 ? [piece, h("mark", {}, chosen[i])] : i < pieces.length - 1 ? [piece, MASK] : [piece]));
    draw();
    const groups = Array.from({ length: size }, (_, i) => {
      const tokens = reply.token[0][i];
      const list = bars(tokens.map((token, k) => ({
        name: h("button.link", {
          type: "button", "aria-label": `Put ${token} into gap ${i + 1}`,
          onclick() {
            chosen[i] = token;
            list.querySelectorAll(".bar").forEach((bar, j) => bar.classList.toggle("strong", j === k));
            draw();
          },
        }, token),
        share: reply.score[0][i][k], text: percent(reply.score[0][i][k]), strong: k === 0,
      })));
      return h("div", {}, size > 1 && h("h3", {}, `Gap ${i + 1}`), list);
    });
    return [line, h("div.gaps", {}, groups)];
  }

  return {
    heading: "Which word is missing?",
    lead: `The model reads both sides of each ${MASK} and ranks the words for it.`,
    form: [text, second],
    tools: [insert],
    examples: TEXTS.map((example) => ({ name: example, use: () => ({ text: example }) })),
    requests() {
      const [value, next] = [wellFormed(text.control.value), second ? wellFormed(second.control.value) : ""];
      if (!value.trim()) return [];
      const asked = [];
      if (value.includes(MASK) || !next.trim()) asked.push({ signature: "serving_default", inputs: { text: [value] } });
      if (next.trim()) asked.push({ signature: "next_sentence", inputs: { text: [value], text_pair: [next] } });
      return asked;
    },
    show,
    file: {
      columns: [{ name: "text", label: `Text with ${MASK}` }],
      ask: (records) => ({ signature: "serving_default", inputs: { text: records.map((r) => r.text) } }),
      answer(reply, row, record) {
        const size = reply.count[row];
        const tokens = reply.token[row].slice(0, size);
        let i = 0;
        return {
          filled: record.text.replaceAll(MASK, (mask) => (i < size ? tokens[i++][0] : mask)),
          candidates: JSON.stringify(tokens.map((names, k) => names.map((token, n) => ({ token, score: reply.score[row][k][n] })))),
        };
      },
    },
  };
}
