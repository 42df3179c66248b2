// The last question as a program in curl, Python and JavaScript.

import { h, newId } from "./dom.js";
import { key, predictAddress } from "./server.js";

const VARIABLE = "KERAS_BERT_KEY";
const MOST = 2000; // characters of a reply that are shown

const shell = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

function python(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${python(one)}`).join(", ")}}`;
  }
  return JSON.stringify(value);
}

/** The programs for a request, by name. They take the key from the environment, not from the page. */
export function programsFor(url, request, withKey) {
  const said = request.signature_name === "serving_default" ? { inputs: request.inputs } : request;
  return {
    curl: [
      `curl ${shell(url)}`,
      ...(withKey ? [`  -H "Authorization: Bearer $${VARIABLE}"`] : []),
      "  -H 'Content-Type: application/json'",
      `  -d ${shell(JSON.stringify(said))}`,
    ].join(" \\\n"),
    Python: [
      "import json",
      ...(withKey ? ["import os"] : []),
      "import urllib.request",
      "",
      `request = ${python(said)}`,
      'headers = {"Content-Type": "application/json"}',
      ...(withKey ? [`headers["Authorization"] = "Bearer " + os.environ["${VARIABLE}"]`] : []),
      `url = ${JSON.stringify(url)}`,
      "call = urllib.request.Request(url, json.dumps(request).encode(), headers)",
      "answer = json.load(urllib.request.urlopen(call))",
      'print(answer["outputs"])',
    ].join("\n"),
    JavaScript: [
      `const response = await fetch(${JSON.stringify(url)}, {`,
      '  method: "POST",',
      withKey
        ? `  headers: { "Content-Type": "application/json", Authorization: \`Bearer \${process.env.${VARIABLE}}\` },`
        : '  headers: { "Content-Type": "application/json" },',
      `  body: JSON.stringify(${JSON.stringify(said)}),`,
      "});",
      "const { outputs, error } = await response.json();",
      "console.log(error ?? outputs);",
    ].join("\n"),
  };
}

/**
 * The section "Use it from a program".
 * @returns {{element, show: Function, reply: Function}} `show` takes a request of the page, `reply`
 *   the outputs; until then the section has the example of the model's contract
 */
export function programs(model) {
  const id = newId("programs");
  const names = ["curl", "Python", "JavaScript"];
  const code = h("code");
  const panel = h("pre", { id, role: "tabpanel", tabindex: "0" }, code);
  const told = h("span.hint", { role: "status" });
  let texts = {};
  let chosen = names[0];
  const tabs = names.map((name) => h("button.tab", {
    type: "button", role: "tab", id: `${id}-${name}`, "aria-controls": id,
    onclick: () => choose(name),
    onkeydown(event) {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      choose(names[(names.indexOf(name) + step + names.length) % names.length]);
      tabs[names.indexOf(chosen)].focus();
    },
  }, name));
  const copy = h("button.quiet", {
    type: "button",
    async onclick() {
      try {
        await navigator.clipboard.writeText(texts[chosen]);
        told.textContent = "Copied";
      } catch { // without HTTPS the clipboard is closed to pages of other machines
        getSelection().selectAllChildren(code);
        told.textContent = "Selected: press Ctrl C";
      }
      setTimeout(() => (told.textContent = ""), 3000);
    },
  }, "Copy");
  const replied = h("code");
  const replyBox = h("details.reply", { hidden: true }, h("summary", {}, "The reply"), h("pre", { tabindex: "0" }, replied));

  function choose(name) {
    chosen = name;
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(names[i] === name));
      tab.setAttribute("tabindex", names[i] === name ? "0" : "-1");
    });
    panel.setAttribute("aria-labelledby", `${id}-${name}`);
    code.textContent = texts[name] ?? "";
  }
  function write(request) {
    texts = programsFor(predictAddress(model), request, Boolean(key.get()));
    choose(chosen);
  }
  if (model.example) write(model.example);
  else choose(chosen);
  const element = h("section.panel", { "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, "Use it from a program"),
    h("p.lead", {}, "The question above as a program, ready to paste. The server speaks TensorFlow Serving's REST API; lists hold one value per row.",
      key.get() ? ` Set ${VARIABLE} to your key first.` : ""),
    h("div.code", {}, h("div.tabs", {}, h("div", { role: "tablist", "aria-label": "Language" }, tabs), h("p", {}, told, copy)), panel),
    replyBox);
  return {
    element,
    show: ({ signature, inputs }) => write({ signature_name: signature, inputs }),
    reply(outputs) {
      const names = Object.keys(outputs);
      const text = JSON.stringify({ outputs: names.length === 1 ? outputs[names[0]] : outputs }, null, 1);
      replied.textContent = text.length > MOST ? `${text.slice(0, MOST)} …` : text;
      replyBox.hidden = false;
    },
  };
}
