// Question answering: the answer marked in its text, other candidates, and "no answer".

import { bars, between, field, h, marked, percent, short, wellFormed } from "./dom.js";

const EXAMPLES = [
  {
    question: "Where did the ship lie?",
    context: "The harbour froze in the night. In the morning the ship lay still at the northern quay, and the crew walked ashore over the ice.",
  },
  {
    question: "When did the library open?",
    context: "The town library was built by the river. It opened in 1907 with four hundred books, most of them given by its first librarian.",
  },
  {
    question: "Who painted the bridge?",
    context: "The bridge was built of oak in 1840 and rebuilt of steel after the flood. Trams have crossed it ever since.",
  },
];

/** The page of a question answerer. */
export function answer(model) {
  const threshold = model.settings?.null_threshold ?? null;
  const question = field("question", { label: "Question", rows: 1, placeholder: "Ask something that the text may answer" });
  const context = field("context", { label: "Text to search", rows: 6, placeholder: "Paste the text here" });

  function show([reply, others], [request]) {
    const text = request.inputs.context[0];
    const [best, start, end] = [reply.answer[0], reply.start[0], reply.end[0]];
    const none = end <= start;
    const parts = [
      h("p.headline", {}, none ? h("em", {}, "No answer in this text") : h("strong", { dir: "auto" }, best), h("span.figure", {}, percent(reply.score[0]))),
      marked(text, none ? [] : [{ start, end, mark: (part) => h("mark", {}, part) }]),
    ];
    const size = others?.count[0] ?? 0;
    if (size > 1) {
      parts.push(h("h3", {}, "Candidates"));
      parts.push(bars(Array.from({ length: size }, (_, i) => {
        const [from, to] = [others.start[0][i], others.end[0][i]];
        const empty = to <= from;
        return {
          name: empty ? h("em", {}, "No answer") : between(text, from, to),
          share: others.score[0][i], text: percent(others.score[0][i]),
          strong: none ? empty : from === start && to === end,
        };
      })));
    }
    parts.push(h("p.note", {}, threshold === null
      ? "This model always gives an answer: it has no threshold for “no answer”."
      : `“No answer” needs a lead of more than ${short(threshold, 3)} over the best candidate; here it is ${short(reply.null_score[0], 3)}.`));
    return parts;
  }

  const ask = (signature, questions, contexts) => ({ signature, inputs: { question: questions, context: contexts } });
  return {
    heading: "Ask a text",
    lead: "The model finds the answer in the words of the text.",
    form: [question, context],
    examples: EXAMPLES.map((example) => ({ name: example.question, use: () => example })),
    requests() {
      const values = [wellFormed(question.control.value), wellFormed(context.control.value)];
      if (!values.every((value) => value.trim())) return [];
      const names = model.signatures.candidates ? ["serving_default", "candidates"] : ["serving_default"];
      return names.map((name) => ask(name, [values[0]], [values[1]]));
    },
    show,
    file: {
      columns: [{ name: "question", label: "Question" }, { name: "context", label: "Text to search" }],
      ask: (records) => ask("serving_default", records.map((r) => r.question), records.map((r) => r.context)),
      answer: (reply, row) => ({
        answer: reply.answer[row], start: reply.start[row], end: reply.end[row], score: reply.score[row], "no-answer score": reply.null_score[row],
      }),
    },
  };
}
