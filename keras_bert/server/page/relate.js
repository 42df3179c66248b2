// Relations: two entities picked in the text by mouse or keyboard, and the relation between them.

import { ranked } from "./classify.js";
import { field, h, inCharacters, wellFormed } from "./dom.js";

const EXAMPLES = [
  { text: "The storm sank a ship off the northern coast.", picks: ["storm", "ship"] },
  { text: "The baker keeps the bread in a wooden box.", picks: ["bread", "box"] },
];
const MARKS = /<e1>(.*?)<\/e1>|<e2>(.*?)<\/e2>/gs;

/** The page of a relation classifier. */
export function relate(model) {
  const text = field("text", { label: "Text", rows: 2, placeholder: "A sentence with two things in it" });
  const stage = h("div.words", { role: "group", "aria-label": "Words of the text: pick two entities" });
  const picked = h("p.picked", { "aria-live": "polite" });
  const said = h("p.problem", { role: "alert" });
  const picker = h("div.field", { "data-input": "spans", hidden: true },
    h("p.label", {}, "Entities"), stage,
    h("p.hint", {}, "Click a word, or drag over several. With the keyboard: arrows move, Shift and arrows extend, Enter picks."), picked, said);
  picker.problem = (message) => (said.textContent = message);
  let words = []; // {start, end} in UTF-16 units, and a button
  let picks = []; // up to two {start, end}
  let anchor = null; // number of the word where a selection began
  let reach = null;

  function segments(value) {
    const inside = new Intl.Segmenter(undefined, { granularity: "word" }).segment(value);
    const all = [];
    for (const { segment, index, isWordLike } of inside) {
      const last = all.at(-1);
      // "A-380" and "don't" are one word here: what a hyphen or apostrophe joins stays together.
      if (isWordLike && last?.joins) {
        last.end = index + segment.length;
        last.joins = false;
      } else if (isWordLike) all.push({ start: index, end: index + segment.length });
      else if (last && last.end === index && /^[-'’.]$/.test(segment) && /[\p{L}\p{N}]/u.test(value[index + 1] ?? "")) {
        last.end = index + 1;
        last.joins = true;
      }
    }
    return all;
  }

  function lay() {
    const value = text.control.value;
    words = segments(value);
    picks = [];
    anchor = reach = null;
    const parts = [];
    let done = 0;
    words.forEach((word, i) => {
      parts.push(value.slice(done, word.start));
      word.button = h("button.word", {
        type: "button", tabindex: i ? "-1" : "0", "aria-pressed": "false",
        onpointerdown: (event) => {
          event.preventDefault();
          word.button.focus();
          anchor = reach = i;
          paint();
        },
        onpointerenter: (event) => {
          if (event.buttons && anchor !== null) {
            reach = i;
            paint();
          }
        },
        onkeydown: (event) => move(event, i),
        onclick: (event) => {
          if (event.detail === 0 && anchor === null) pick(i, i); // from a screen reader
        },
      }, value.slice(word.start, word.end));
      parts.push(word.button);
      done = word.end;
    });
    stage.replaceChildren(...parts, value.slice(done));
    picker.hidden = !words.length;
    paint();
  }
  stage.addEventListener("pointermove", (event) => {
    // A finger keeps its events on the word where it began.
    if (anchor === null || !event.buttons) return;
    const under = document.elementFromPoint(event.clientX, event.clientY);
    const i = words.findIndex((word) => word.button === under);
    if (i >= 0 && i !== reach) {
      reach = i;
      paint();
    }
  });
  addEventListener("pointerup", () => {
    if (anchor !== null && picker.isConnected) pick(anchor, reach);
  });

  function move(event, i) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      const next = Math.max(0, Math.min(words.length - 1, i + step));
      if (event.shiftKey) {
        anchor ??= i;
        reach = next;
      } else anchor = reach = null;
      words.forEach((word, j) => word.button.setAttribute("tabindex", j === next ? "0" : "-1"));
      words[next].button.focus();
      paint();
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pick(anchor ?? i, reach ?? i);
    } else if (event.key === "Escape") {
      anchor = reach = null;
      paint();
    }
  }

  function pick(from, to) {
    const [a, b] = from < to ? [from, to] : [to, from];
    const span = { start: words[a].start, end: words[b].end };
    anchor = reach = null;
    const same = picks.findIndex((other) => other.start === span.start && other.end === span.end);
    if (same >= 0) picks.splice(same, 1);
    else {
      picks = picks.filter((other) => other.end <= span.start || other.start >= span.end);
      if (picks.length === 2) picks.pop(); // the second is picked anew
      picks.push(span);
    }
    paint();
    stage.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function paint() {
    const value = text.control.value;
    const [low, high] = anchor === null ? [1, 0] : [Math.min(anchor, reach), Math.max(anchor, reach)];
    words.forEach((word, i) => {
      const which = picks.findIndex((span) => span.start <= word.start && word.end <= span.end);
      word.button.className = `word${which >= 0 ? ` pick-${which + 1}` : ""}${low <= i && i <= high ? " reached" : ""}`;
      word.button.setAttribute("aria-pressed", String(which >= 0));
    });
    const names = picks.map((span) => value.slice(span.start, span.end));
    const missing = ["Pick the first entity.", "Pick the second entity."][picks.length];
    picked.replaceChildren(
      ...names.map((name, i) => h(`span.chip.pick-${i + 1}`, {}, `${i + 1}  ${name}`)),
      missing ?? h("button.link", { type: "button", onclick: () => {
        picks.reverse();
        paint();
        stage.dispatchEvent(new Event("input", { bubbles: true }));
      } }, "Swap"),
    );
  }

  text.control.addEventListener("input", lay);
  const ask = (texts, spans) => ({ signature: "serving_default", inputs: { text: texts, spans } });
  return {
    heading: "How are they related?",
    lead: "Pick two entities in a sentence. The model says the relation between the first and the second.",
    form: [text, picker],
    examples: EXAMPLES.map((example) => ({
      name: example.text,
      use() {
        text.control.value = example.text;
        lay();
        picks = example.picks.map((name) => {
          const start = example.text.indexOf(name);
          return { start, end: start + name.length };
        });
        paint();
        return {};
      },
    })),
    requests() {
      const value = text.control.value;
      if (picks.length < 2) return [];
      const spans = picks.map(({ start, end }) => [inCharacters(value, start), inCharacters(value, end)]);
      return [ask([wellFormed(value)], [spans])];
    },
    show: ([reply]) => ranked(model, reply),
    file: {
      columns: [{ name: "text", label: "Text with <e1>…</e1> and <e2>…</e2>" }],
      problem: (record) => (unmarked(record.text) ? "" : "expected one <e1>…</e1> and one <e2>…</e2>"),
      ask(records) {
        const all = records.map((record) => unmarked(record.text));
        return ask(all.map((one) => one.text), all.map((one) => one.spans));
      },
      answer: (reply, row) => ({ label: reply.label[row], probability: reply.probability[row] }),
    },
  };
}

/** A text without its marks, and the spans of the two entities in characters; or null. */
function unmarked(text) {
  const spans = [null, null];
  let plain = "";
  let done = 0;
  for (const match of text.matchAll(MARKS)) {
    plain += text.slice(done, match.index);
    const which = match[1] === undefined ? 1 : 0;
    const name = match[which + 1];
    if (spans[which] || !name) return null;
    const start = Array.from(plain).length;
    plain += name;
    spans[which] = [start, Array.from(plain).length];
    done = match.index + match[0].length;
  }
  plain += text.slice(done);
  return spans[0] && spans[1] ? { text: plain, spans } : null;
}
