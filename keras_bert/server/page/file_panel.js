// A file on the page: read, answered row by row in batches, and given back as CSV.

import { count, h, newId, short, wellFormed } from "./dom.js";
import { readTable, toCsv } from "./rows_file.js";
import { blamed, predict, ServerError } from "./server.js";

const BATCH = 32; // rows of a request
const WORKERS = 2; // requests at a time
const TRIES = 5; // of a request that the server does not answer, with growing pauses
const SHOWN = 5; // rows of the preview
const LARGEST = 200e6; // bytes; a browser holds the file and its answers in memory
// Names of columns by which a guess begins.
const LIKELY = {
  text: /^(text|review|sentence1?|content|body|comment|message|tweet|document|premise|input|title|text1)$/i,
  text_pair: /^(text_?pair|text_?2|sentence_?2|second|hypothesis)$/i,
  question: /^(question|query)$/i,
  context: /^(context|passage|paragraph|ctx|sent1|startphrase|premise)$/i,
  choices: /^(choices?|endings?|options?)[ _-]?\w*$/i,
};

/**
 * The section for files.
 * @param {object} model
 * @param {object} spec of the page:
 *   columns  {name, label, optional, several}: inputs to be filled from columns of the file
 *   ask(records)  the request for records {name: text, or a list if several}
 *   answer(reply, row, record)  columns of the answer to a row, by name
 *   group(record), if any: only records of equal groups are asked together
 *   problem(record), if any: why a record cannot be asked, or ""
 * @param {AbortSignal} closed
 */
export function filePanel(model, spec, closed) {
  const id = newId("file");
  const body = h("div.job");
  const problem = h("p.problem", { role: "alert" });
  const picker = h("input.unseen", {
    type: "file", id, accept: ".csv,.tsv,.tab,.jsonl,.ndjson,.json,.txt,.gz", "aria-describedby": `${id}-hint`,
    onchange: () => {
      if (picker.files[0]) load(picker.files[0]);
      picker.value = "";
    },
  });
  const zone = h("label.drop", { for: id }, h("strong", {}, "Drop a file here"), h("span", {}, " or ", h("u", {}, "choose one")),
    h("span.hint", { id: `${id}-hint` }, "CSV, TSV, JSON lines or lines of text. It goes to this server only."));
  const element = h("section.panel", { "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, "A whole file"),
    h("p.lead", {}, "Every row is answered, and comes back as CSV with the answer beside it."), picker, zone, problem, body);

  let running = null; // AbortController of the job at work
  closed.addEventListener("abort", () => running?.abort());

  // A file that misses the zone would otherwise replace the page.
  let depth = 0;
  const files = (event) => event.dataTransfer?.types.includes("Files");
  const listen = (name, act) => document.addEventListener(name, (event) => {
    if (files(event)) {
      event.preventDefault();
      act(event);
    }
  }, { signal: closed });
  const lit = (on) => zone.classList.toggle("lit", on);
  listen("dragenter", () => lit((depth += 1) > 0));
  listen("dragleave", () => lit((depth -= 1) > 0));
  listen("dragover", () => {});
  listen("drop", (event) => {
    depth = 0;
    lit(false);
    const found = event.dataTransfer.files;
    if (found.length > 1) problem.textContent = `${found.length} files: drop one at a time.`;
    else if (found.length) load(found[0]);
    element.scrollIntoView({ block: "nearest" });
  });

  async function load(file, header = true) {
    running?.abort();
    problem.textContent = "";
    body.replaceChildren();
    if (file.size > LARGEST) {
      problem.textContent = `${file.name} has ${Math.round(file.size / 1e6)} MB, too much for a browser: use “keras-bert predict”.`;
      return;
    }
    try {
      offer(file, await readTable(file, header), header);
    } catch (error) {
      problem.textContent = error.message;
    }
  }

  /** Shows a file that was read: which columns to use, and a button to begin. */
  function offer(file, table, header) {
    const isTable = /\.(csv|tsv|tab)(\.gz)?$/i.test(file.name);
    const guess = guessed(spec.columns, table);
    const choices = spec.columns.map((column) => {
      const name = newId("column");
      if (column.several) {
        const boxes = table.columns.map((title, i) => h("label.check", {},
          h("input", { type: "checkbox", value: String(i), checked: guess[column.name].includes(i) }), title));
        return { column, element: h("fieldset.pick", {}, h("legend", {}, column.label), boxes),
          get: () => boxes.map((box) => box.firstChild).filter((box) => box.checked).map((box) => Number(box.value)) };
      }
      const select = h("select", { id: name }, column.optional && h("option", { value: "-1" }, "none"),
        table.columns.map((title, i) => h("option", { value: String(i) }, title)));
      select.value = String(guess[column.name]);
      return { column, element: h("p.pick", {}, h("label", { for: name }, column.label), select), get: () => Number(select.value) };
    });
    const head = isTable && h("label.check", {}, h("input", {
      type: "checkbox", checked: header, onchange: (event) => load(file, event.target.checked),
    }), "The first row has the names of the columns");
    const status = h("div.progress");
    const preview = h("div.wide");
    const begin = h("button.primary", { type: "button" }, `Answer ${count(table.rows.length, "row")}`);
    const answers = Array(table.rows.length); // {columns} or {error}; empty: not answered
    begin.addEventListener("click", () => {
      const columns = Object.fromEntries(choices.map(({ column, get }) => [column.name, get()]));
      choices.forEach((one) => one.element.querySelectorAll("select, input").forEach((control) => (control.disabled = true)));
      if (head) head.firstChild.disabled = true;
      begin.remove();
      work(file, table, columns, answers, status, preview);
    });
    body.replaceChildren(
      h("p.file", {}, h("strong", {}, file.name), ` ${count(table.rows.length, "row")}, ${count(table.columns.length, "column")}`),
      h("ul.notes", {}, table.notes.map((note) => h("li", {}, note))),
      h("div.picks", {}, choices.map((one) => one.element)), head || "", h("p.go", {}, begin), status, preview);
  }

  /** Answers the rows that have no answer yet, and shows how far it is. */
  async function work(file, table, columns, answers, status, preview) {
    running = new AbortController();
    const { signal } = running;
    const total = table.rows.length;
    const bar = h("progress", { max: String(total), value: "0", "aria-label": "Rows answered" });
    const said = h("p", { role: "status" });
    const figures = h("p.figures");
    const stop = h("button.quiet", { type: "button", onclick: () => running.abort() }, "Stop");
    status.replaceChildren(bar, figures, said, stop);
    const records = table.rows.map((row) => recordOf(spec.columns, columns, row));
    records.forEach((record, i) => {
      const wrong = table.problems.get(i) ?? spec.problem?.(record);
      if (!answers[i] && wrong) answers[i] = { error: wrong };
    });
    const before = answers.filter(Boolean).length;
    let done = before;
    const began = performance.now();
    function tell() {
      bar.value = done;
      const left = ((performance.now() - began) / 1000 / (done - before)) * (total - done);
      figures.textContent = `${done.toLocaleString("en")} of ${count(total, "row")}${done > before && left > 1 ? `, about ${duration(left)} left` : ""}`;
    }
    tell();
    const queue = batches(records, answers, spec.group);
    let failure = null;
    async function worker() {
      for (let batch = queue.shift(); batch && !signal.aborted; batch = queue.shift()) {
        await askBatch(batch, records, answers, signal);
        done += batch.length;
        tell();
      }
    }
    try {
      await Promise.all(Array.from({ length: WORKERS }, worker));
    } catch (error) {
      if (error.name !== "AbortError") failure = error;
      running.abort(); // the other worker
    }
    if (closed.aborted) return;
    done = answers.filter(Boolean).length; // with rows of batches that were broken off
    const wrong = answers.filter((one) => one?.error).length;
    said.textContent = [
      done === total ? `All ${count(total, "row")} done.` : `Stopped after ${done.toLocaleString("en")} of ${count(total, "row")}.`,
      wrong ? `${count(wrong, "row")} could not be answered; the column “error” says why.` : "",
      failure ? (failure instanceof ServerError ? failure.message : String(failure)) : "",
    ].filter(Boolean).join(" ");
    figures.textContent = "";
    const out = output(table, answers);
    stop.replaceWith(h("p.go", {},
      h("button.primary", { type: "button", onclick: () => download(file, out) }, "Download CSV"),
      done < total && h("button.quiet", { type: "button", onclick: () => work(file, table, columns, answers, status, preview) }, "Continue")));
    show(out, preview);
  }

  /** Asks for some rows; a request that the server refuses is halved until the row is found. */
  async function askBatch(batch, records, answers, signal) {
    const chosen = batch.map((i) => records[i]);
    const request = spec.ask(chosen);
    for (let tries = 0; ; tries += 1) {
      try {
        const reply = await predict(model, request, signal);
        batch.forEach((i, row) => (answers[i] = { columns: spec.answer(reply, row, records[i]) }));
        return;
      } catch (error) {
        if (!(error instanceof ServerError)) throw error;
        const passing = error.status === 503 || (error.status === 0 && tries < TRIES);
        if (passing) await pause(Math.max(error.wait, Math.min(2 ** tries / 2, 10)), signal);
        else if (error.status !== 400 && error.status !== 413) throw error;
        else if (batch.length === 1) {
          answers[batch[0]] = { error: blamed(error.message, Object.keys(request.inputs)).message };
          return;
        } else {
          const half = Math.ceil(batch.length / 2);
          await askBatch(batch.slice(0, half), records, answers, signal);
          await askBatch(batch.slice(half), records, answers, signal);
          return;
        }
      }
    }
  }

  return element;
}

/** Numbers of the rows without an answer, in batches. */
function batches(records, answers, group) {
  const groups = new Map();
  records.forEach((record, i) => {
    if (answers[i]) return;
    const name = group?.(record) ?? "";
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(i);
  });
  const found = [];
  for (const rows of groups.values()) {
    for (let i = 0; i < rows.length; i += BATCH) found.push(rows.slice(i, i + BATCH));
  }
  return found;
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("stopped", "AbortError"));
    }, { once: true });
  });
}

const asText = (value) => wellFormed(typeof value === "object" ? JSON.stringify(value) : String(value));

function recordOf(wanted, columns, row) {
  return Object.fromEntries(wanted.map(({ name, several }) => {
    const place = columns[name];
    if (!several) return [name, place < 0 ? "" : asText(row[place])];
    const cells = place.map((i) => row[i]);
    return [name, cells.flat().map(asText)]; // of JSON, one column may hold the whole list
  }));
}

/** Which columns of a table fill the inputs: by their names, or the one with the longest texts. */
export function guessed(wanted, table) {
  const lengths = table.columns.map((_, i) =>
    table.rows.slice(0, 100).reduce((sum, row) => sum + asText(row[i]).length, 0));
  const taken = new Set();
  const found = {};
  for (const { name, several, optional } of wanted) {
    const named = table.columns.map((title, i) => i).filter((i) => (LIKELY[name] ?? new RegExp(`^${name}$`, "i")).test(table.columns[i]));
    if (several) found[name] = named.length ? named : table.columns.map((_, i) => i).filter((i) => !taken.has(i));
    else {
      const free = lengths.map((_, i) => i).filter((i) => !taken.has(i)).sort((a, b) => lengths[b] - lengths[a]);
      found[name] = named[0] ?? (optional ? -1 : (free[0] ?? 0));
      taken.add(found[name]);
    }
  }
  return found;
}

/** {columns, rows} of the file to download: all rows of the table, in order. */
function output(table, answers) {
  const names = [...new Set(answers.flatMap((one) => Object.keys(one?.columns ?? {})))];
  const own = new Set(table.columns);
  const complete = !answers.includes(undefined) && answers.every((one) => !one.error);
  const titles = (complete ? names : [...names, "error"]).map((name) => {
    let title = name;
    while (own.has(title)) title = `${title} (answer)`;
    return title;
  });
  const rows = table.rows.map((row, i) => {
    const one = answers[i] ?? { error: "not answered" };
    const cells = [...row, ...names.map((name) => one.columns?.[name] ?? "")];
    return complete ? cells : [...cells, one.error ?? ""];
  });
  return { columns: [...table.columns, ...titles], rows };
}

function download(file, { columns, rows }) {
  const url = URL.createObjectURL(new Blob([toCsv(columns, rows)], { type: "text/csv;charset=utf-8" }));
  const name = file.name.replace(/(\.[a-z]+)(\.gz)?$/i, "");
  const link = h("a", { href: url, download: `${name}-answers.csv` });
  document.body.append(link); // Firefox follows links of the document only
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

function show({ columns, rows }, place) {
  const cell = (value) => {
    const text = typeof value === "number" ? short(value) : asText(value);
    return h("td", { dir: "auto" }, text.length > 80 ? `${text.slice(0, 80)}…` : text);
  };
  place.setAttribute("role", "region");
  place.setAttribute("aria-label", "First rows of the answer");
  place.setAttribute("tabindex", "0");
  place.replaceChildren(h("table.preview", {},
    h("caption", {}, rows.length > SHOWN ? `The first ${SHOWN} of ${count(rows.length, "row")}` : count(rows.length, "row")),
    h("thead", {}, h("tr", {}, columns.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows.slice(0, SHOWN).map((row) => h("tr", {}, row.map(cell))))));
}

function duration(seconds) {
  if (seconds < 90) return count(Math.round(seconds), "second");
  if (seconds < 5400) return count(Math.round(seconds / 60), "minute");
  return count(Math.round(seconds / 3600), "hour");
}
