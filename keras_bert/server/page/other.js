// Models of other kinds: a field for each input, and the outputs in a table.

import { field, h, short, wellFormed } from "./dom.js";

/** The page of a model with a signature that no other page knows. */
export function other(model) {
  const inputs = model.signatures.serving_default.inputs;
  const example = model.example?.signature_name === "serving_default" ? model.example.inputs : {};
  const isText = (spec) => spec.dtype === "string" && spec.shape.length === 1;
  const fields = Object.entries(inputs).map(([name, spec]) =>
    field(name, {
      label: name, rows: isText(spec) ? 3 : 2,
      hint: isText(spec) ? null : `${spec.dtype}, one row as JSON${name in example ? `: ${JSON.stringify(example[name][0])}` : ""}`,
    }));
  const plain = Object.values(inputs).every(isText);
  return {
    heading: "Ask the model",
    lead: `${model.task} takes ${Object.keys(inputs).join(", ")}.`,
    form: fields,
    examples: Object.keys(example).length ? [{
      name: "An example",
      use: () => Object.fromEntries(Object.entries(inputs).map(([name, spec]) => {
        const value = example[name]?.[0];
        return [name, isText(spec) ? value : JSON.stringify(value)];
      })),
    }] : [],
    requests() {
      const values = {};
      for (const item of fields) {
        const name = item.dataset.input;
        const value = wellFormed(item.control.value);
        item.problem("");
        if (!value.trim()) return [];
        try {
          values[name] = [isText(inputs[name]) ? value : JSON.parse(value)];
        } catch {
          item.problem("This is not valid JSON.");
          return [];
        }
      }
      return [{ signature: "serving_default", inputs: values }];
    },
    show([reply]) {
      return [h("dl.outputs", {}, Object.entries(reply).map(([name, rows]) => [
        h("dt", {}, name), h("dd", {}, typeof rows[0] === "number" ? short(rows[0]) : typeof rows[0] === "string" ? rows[0] : h("code", {}, JSON.stringify(rows[0]))),
      ]))];
    },
    file: plain ? {
      columns: Object.keys(inputs).map((name) => ({ name, label: name })),
      ask: (records) => ({
        signature: "serving_default",
        inputs: Object.fromEntries(Object.keys(inputs).map((name) => [name, records.map((r) => r[name])])),
      }),
      answer: (reply, row) => Object.fromEntries(Object.entries(reply).map(([name, rows]) =>
        [name, typeof rows[row] === "object" ? JSON.stringify(rows[row]) : rows[row]])),
    } : null,
  };
}
