// The page: chooses a model, asks it as the user types, and shows its answer.

import { answer } from "./answer.js";
import { card } from "./card.js";
import { choose } from "./choose.js";
import { classify } from "./classify.js";
import { field, h } from "./dom.js";
import { embed } from "./embed.js";
import { filePanel } from "./file_panel.js";
import { fill } from "./fill.js";
import { other } from "./other.js";
import { programs } from "./programs.js";
import { relate } from "./relate.js";
import { blamed, key, listModels, predict, ServerError } from "./server.js";
import { tag } from "./tag.js";
import { inside } from "./why.js";

const PAUSE = 450; // milliseconds without typing, after which the model is asked
const MODIFIER = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl";
const POLL = 1000; // milliseconds between two looks at models that are loading
const work = document.querySelector("#work");
const choice = document.querySelector("#choice");
const state = document.querySelector("#state");

/**
 * The page of a model, by the outputs of its signature; a user's own task has other names, but may
 * answer in the same way. A page is an object:
 *   heading, lead    words
 *   form             elements with the fields
 *   tools            buttons below the fields, if any
 *   labels           for the model's card, if they are not the classes
 *   examples         {name, use}: `use` prepares the form and returns values of fields by name
 *   requests()       the requests {signature, inputs} to ask; [] if something is missing
 *   show(replies, requests)  the elements of the answer
 *   inside(replies, requests)  the request of one row to look into, if it is not the first
 *   file             how rows of a file are asked, or null; see file_panel.js
 */
function pageOf(model) {
  const { inputs, outputs } = model.signatures.serving_default;
  const has = (names, kind) => names.split(" ").every((name) => name in kind);
  if (has("text spans", inputs) && has("label probability logits", outputs)) return relate(model);
  if (has("question context", inputs) && has("answer start end", outputs)) return answer(model);
  if (has("context choices", inputs) && has("choice probabilities", outputs)) return choose(model);
  if (Object.keys(inputs).join() !== "text") return other(model);
  if (has("label probability logits", outputs)) return classify(model);
  if (has("labels probabilities given", outputs) || has("values", outputs)) return classify(model);
  if (has("entity label start end score count", outputs)) return tag(model);
  if (has("word tag start end probability count", outputs)) return tag(model);
  if (has("token score count", outputs)) return fill(model);
  if (has("embedding", outputs)) return embed(model);
  return other(model);
}

async function start() {
  let models;
  try {
    models = await listModels();
  } catch (error) {
    if (error.status === 401) return askForKey();
    work.replaceChildren(notice(error.message, h("button.quiet", { type: "button", onclick: start }, "Try again")));
    return;
  }
  const ready = models.filter((model) => model.state === "ready");
  if (!ready.length) {
    say("loading");
    work.replaceChildren(notice(`Loading ${models.map((model) => model.name).join(", ")} …`));
    setTimeout(start, POLL);
    return;
  }
  const wanted = wantedName();
  const chosen = ready.find((model) => model.name === wanted) ?? ready[0];
  offer(ready, chosen);
  open(chosen);
  if (ready.length < models.length) setTimeout(() => waitForMore(models.length), POLL);
}

/** The name of a model in the page's address. */
function wantedName() {
  const name = location.hash.slice(1);
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // such as "100%"
  }
}

/** Adds models to the choice as they are loaded. */
async function waitForMore(total) {
  const models = await listModels().catch(() => []);
  const ready = models.filter((model) => model.state === "ready");
  const select = choice.querySelector("select");
  const current = select?.value ?? choice.textContent;
  const chosen = ready.find((model) => model.name === current);
  if (chosen && ready.length !== (select?.options.length ?? 1)) offer(ready, chosen);
  if (ready.length < total) setTimeout(() => waitForMore(total), POLL);
}

const notice = (...words) => h("section.notice", { role: "status" }, h("p", {}, words));
const say = (word) => {
  state.textContent = word;
  state.className = `state ${word === "loading" ? "waiting" : "ready"}`;
};

/** The choice of a model; of a single one, its name. */
function offer(models, chosen) {
  if (models.length === 1) {
    choice.replaceChildren(h("span.only", {}, chosen.name));
    return;
  }
  const select = h("select", {
    id: "model",
    onchange() {
      const model = models.find(({ name }) => name === select.value);
      history.replaceState(null, "", `#${encodeURIComponent(model.name)}`);
      open(model);
    },
  }, models.map(({ name }) => h("option", { value: name }, name)));
  select.value = chosen.name;
  choice.replaceChildren(h("label.unseen", { for: "model" }, "Model"), select);
}

function askForKey() {
  const entry = field("key", { label: "API key", rows: 1 });
  entry.control.type = "password";
  if (key.get()) entry.problem("The server does not accept this key.");
  state.textContent = "";
  work.replaceChildren(h("section.notice", {},
    h("h1", {}, "This server asks for a key"),
    h("form", {
      onsubmit(event) {
        event.preventDefault();
        key.set(entry.control.value);
        start();
      },
    }, entry, h("button.primary", { type: "submit" }, "Open"))));
  entry.control.focus();
}

/** What a screen reader says of a new answer: its headline, or the text that it marks, and the first bar. */
function inShort(answer) {
  const parts = [".headline, .passage, h3, .note", ".bar.strong"].map((css) => answer.querySelector(css));
  const texts = parts.filter(Boolean).map((part) => [...part.childNodes].map((node) => node.textContent).filter(Boolean).join(" "));
  return [...new Set(texts)].join(": ");
}

let closing = new AbortController(); // ends what the page before has in work

function open(model) {
  closing.abort();
  closing = new AbortController();
  say(`version ${model.versions[0]}`);
  document.title = `${model.name} · keras_bert`;
  const page = pageOf(model);
  const code = programs(model);
  const answerBox = h("section.answer", { "aria-labelledby": "answer-title", hidden: true });
  const spoken = h("p.unseen", { role: "status", "aria-live": "polite" });
  const button = h("button.primary", { type: "submit" }, "Answer");
  const examples = page.examples.length > 0 && h("div.examples", {},
    h("p.label", { id: "examples" }, "Try"),
    h("ul", { "aria-labelledby": "examples" }, page.examples.map(({ name, use }) =>
      h("li", {}, h("button.example", { type: "button", onclick: () => take(use()) }, name)))));
  const form = h("form.composer", {
    novalidate: true,
    oninput: later,
    onsubmit: (event) => {
      event.preventDefault();
      now(true);
    },
    onkeydown: (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        now(true);
      }
    },
  }, page.form, h("div.actions", {}, page.tools, h("p.go", {}, h("span.hint", {}, `${MODIFIER} Enter`), button)));
  const fieldOf = (input) => [...form.querySelectorAll("[data-input]")].find((one) => one.dataset.input === input);

  let timer = 0;
  let asking = new AbortController();
  closing.signal.addEventListener("abort", () => {
    clearTimeout(timer);
    asking.abort();
  });

  function take(values) {
    for (const [name, value] of Object.entries(values)) {
      const control = fieldOf(name)?.control;
      if (control) control.value = value;
    }
    now(false);
  }
  function clear() {
    form.querySelectorAll("[data-input]").forEach((one) => one.problem?.(""));
  }
  function later() {
    clearTimeout(timer);
    timer = setTimeout(() => now(false), PAUSE);
  }

  /** Asks for what the form holds; an older question that still waits is given up. */
  async function now(insisted) {
    clearTimeout(timer);
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    clear();
    const requests = page.requests();
    if (!requests.length) {
      answerBox.hidden = true;
      answerBox.removeAttribute("aria-busy");
      if (insisted) firstEmpty()?.focus();
      return;
    }
    code.show(requests[0]);
    answerBox.setAttribute("aria-busy", "true");
    try {
      const replies = await Promise.all(requests.map((request) => predict(model, request, signal)));
      code.reply(replies[0]);
      const parts = [...page.show(replies, requests), inside(model, page.inside?.(replies, requests) ?? requests[0], signal)];
      answerBox.replaceChildren(h("h2.unseen", { id: "answer-title" }, "Answer"), ...parts.filter(Boolean));
      spoken.textContent = inShort(answerBox);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ServerError)) throw error;
      if (error.status === 401) return askForKey();
      const { input, message } = blamed(error.message, Object.keys(requests[0].inputs));
      const place = fieldOf(input);
      if (place?.problem) place.problem(message);
      answerBox.replaceChildren(h("h2.unseen", { id: "answer-title" }, "Answer"),
        place?.problem ? h("p.note", {}, "No answer: see the message above.") : h("p.problem", { role: "alert" }, message));
    }
    answerBox.hidden = false;
    answerBox.removeAttribute("aria-busy");
  }
  const firstEmpty = () => [...form.querySelectorAll("textarea, input[type=text]")].find((one) => !one.value.trim() && one.offsetParent);

  work.replaceChildren(
    h("div.main", {},
      h("section.try", { "aria-labelledby": "title" },
        h("h1", { id: "title" }, page.heading), h("p.lead", {}, page.lead), form, examples, answerBox, spoken),
      page.file && filePanel(model, page.file, closing.signal),
      code.element),
    card(model, page.labels ?? model.labels));
}

addEventListener("hashchange", start);
start();
