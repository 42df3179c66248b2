// Multiple choice: choices ranked.

import { bars, field, h, newId, percent, wellFormed } from "./dom.js";

const EXAMPLES = [
  { context: "The harbour froze in the night.", choices: ["The ships lay still in the morning.", "It was the hottest day of the year.", "The shop sold bread."] },
  { context: "She put the kettle on the stove.", choices: ["The kettle began to sing.", "The kettle flew away.", "She went to sleep in the garden."] },
];

/** The page of a multiple-choice model. */
export function choose() {
  const context = field("context", { label: "What comes before", rows: 2, placeholder: "The beginning, or a question" });
  const list = h("ol.choices");
  const box = h("fieldset.field", { "data-input": "choices" }, h("legend", {}, "Choices"), list,
    h("button.link", { type: "button", onclick: () => add("").focus() }, "Add a choice"));
  const said = h("p.problem", { role: "alert", id: newId("choices") });
  box.append(said);
  box.problem = (message) => (said.textContent = message);

  function add(value) {
    const control = h("textarea", {
      name: "choices", rows: 1, value, autocomplete: "off", spellcheck: "false", dir: "auto",
      onkeydown(event) {
        if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.isComposing) return;
        event.preventDefault(); // a choice has one line: the next one begins
        (item.nextElementSibling?.querySelector("textarea") ?? add("")).focus();
      },
    });
    const remove = h("button.icon", { type: "button" }, "×");
    const item = h("li", {}, control, remove);
    remove.addEventListener("click", () => {
      const next = item.nextElementSibling ?? item.previousElementSibling;
      item.remove();
      number();
      next?.querySelector("textarea").focus();
      list.dispatchEvent(new Event("input", { bubbles: true }));
    });
    list.append(item);
    number();
    return control;
  }
  function number() {
    [...list.children].forEach((item, i) => {
      item.querySelector("textarea").setAttribute("aria-label", `Choice ${i + 1}`);
      item.querySelector("button").setAttribute("aria-label", `Remove choice ${i + 1}`);
      item.querySelector("button").hidden = list.children.length < 3;
    });
  }
  const values = () => [...list.querySelectorAll("textarea")].map(({ value }) => wellFormed(value)).filter((value) => value.trim());
  const ask = (contexts, choices) => ({ signature: "serving_default", inputs: { context: contexts, choices } });
  add("");
  add("");

  return {
    heading: "Which fits best?",
    lead: "The model ranks the choices by how well each goes with what comes before.",
    form: [context, box],
    examples: EXAMPLES.map((example) => ({
      name: example.context,
      use() {
        list.replaceChildren();
        example.choices.forEach(add);
        return { context: example.context };
      },
    })),
    requests() {
      const [text, choices] = [wellFormed(context.control.value), values()];
      box.problem(text.trim() && choices.length === 1 ? "Two choices or more are needed." : "");
      return text.trim() && choices.length > 1 ? [ask([text], [choices])] : [];
    },
    show([reply], [request]) {
      const choices = request.inputs.choices[0];
      const order = choices.map((_, i) => i).sort((a, b) => reply.probabilities[0][b] - reply.probabilities[0][a] || a - b);
      return [
        h("p.headline", {}, h("strong", { dir: "auto" }, reply.text[0])),
        bars(order.map((i) => ({ name: choices[i], share: reply.probabilities[0][i], text: percent(reply.probabilities[0][i]), strong: i === reply.choice[0] })), 20),
      ];
    },
    file: {
      columns: [{ name: "context", label: "What comes before" }, { name: "choices", label: "Choices", several: true }],
      problem: (record) => (record.choices.filter((choice) => choice).length < 2 ? "fewer than two choices" : ""),
      ask(records) {
        const most = Math.max(...records.map((r) => r.choices.length));
        return ask(records.map((r) => r.context), records.map((r) => [...r.choices, ...Array(most - r.choices.length).fill("")]));
      },
      answer: (reply, row) => ({
        choice: reply.choice[row] + 1, "choice text": reply.text[row], probability: reply.probabilities[row][reply.choice[row]],
      }),
    },
  };
}
