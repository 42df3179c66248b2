// Files of rows: CSV, TSV, JSON lines, JSON and lines of text in; CSV out.

const NAMES = /\.(csv|tsv|tab|jsonl|ndjson|json|txt|text)$/i;

/**
 * @typedef {object} Table
 * @property {string[]} columns names, each once
 * @property {Array[]} rows cells: strings, or of JSON any values; every row has all columns
 * @property {string[]} notes what a user should know about how the file was read
 * @property {Map<number, string>} problems of rows that could not be read, by row
 */

/**
 * Reads a file.
 * @param {File} file plain or gzipped
 * @returns {Promise<Table>}
 * @throws {Error} in words, if the file holds no rows or is of another kind
 */
export async function readTable(file, header = true) {
  let name = file.name;
  let data = new Uint8Array(await file.arrayBuffer());
  if (data[0] === 0x1f && data[1] === 0x8b) {
    try {
      const stream = new Blob([data]).stream().pipeThrough(new DecompressionStream("gzip"));
      data = new Uint8Array(await new Response(stream).arrayBuffer());
    } catch {
      throw new Error(`${file.name} is damaged: its gzip data ends too early or is wrong.`);
    }
    name = name.replace(/\.gz$/i, "");
  }
  if (!NAMES.test(name)) {
    throw new Error(`${file.name} is of another kind: expected CSV, TSV, JSON lines (.jsonl) or lines of text (.txt).`);
  }
  const notes = [];
  const text = decoded(data, notes);
  const kind = name.match(NAMES)[1].toLowerCase();
  const table = { csv: () => ofCsv(text, delimiterOf(text), header), tsv: () => ofCsv(text, "\t", header) }[
    kind === "tab" ? "tsv" : kind
  ]?.() ?? (kind.startsWith("t") ? ofLines(text) : ofJson(text));
  table.notes.unshift(...notes);
  if (!table.rows.length) throw new Error(`${file.name} holds no rows${header && /sv|tab/.test(kind) ? " below its header" : ""}.`);
  return table;
}

function decoded(data, notes) {
  if (data.includes(0) && !((data[0] === 0xff && data[1] === 0xfe) || (data[0] === 0xfe && data[1] === 0xff))) {
    throw new Error("This is no text: the file holds zero bytes.");
  }
  if (data[0] === 0xff && data[1] === 0xfe) return new TextDecoder("utf-16le").decode(data);
  if (data[0] === 0xfe && data[1] === 0xff) return new TextDecoder("utf-16be").decode(data);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(data); // without the mark at its start
  } catch {
    notes.push("The file is not UTF-8, and was read as Windows-1252.");
    return new TextDecoder("windows-1252").decode(data);
  }
}

/** Records of CSV, RFC 4180: quotes, quotes in quotes, line ends in quotes. */
export function parseCsv(text, delimiter) {
  const records = [];
  let record = [];
  let cell = "";
  let i = 0;
  let quoted = false;
  let fresh = true; // no character of the cell was read
  const end = () => {
    record.push(cell);
    cell = "";
    fresh = true;
  };
  while (i < text.length) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[i + 1] === '"') {
        cell += '"';
        i += 1;
      } else quoted = false;
    } else if (c === '"' && fresh) {
      quoted = true;
      fresh = false;
    } else if (c === delimiter) end();
    else if (c === "\n" || c === "\r") {
      if (c === "\r" && text[i + 1] === "\n") i += 1;
      end();
      records.push(record);
      record = [];
    } else {
      cell += c;
      fresh = false;
    }
    i += 1;
  }
  if (!fresh || cell || record.length) {
    end();
    records.push(record);
  }
  return { records, open: quoted };
}

/** The delimiter of a CSV file: that which its first line has most of. */
function delimiterOf(text) {
  const counts = [",", ";", "\t", "|"].map((mark) => [parseCsv(text.slice(0, 10000), mark).records[0]?.length ?? 0, mark]);
  return counts.reduce((best, next) => (next[0] > best[0] ? next : best))[1];
}

function ofCsv(text, delimiter, header) {
  const { records, open } = parseCsv(text, delimiter);
  const notes = [];
  if (open) notes.push("A quotation mark is never closed: the last row runs to the end of the file.");
  const width = records.reduce((most, record) => Math.max(most, record.length), 0);
  const kept = width > 1 ? records.filter((record) => record.length > 1 || record[0] !== "") : records;
  if (kept.length < records.length) notes.push(`Blank lines left out: ${records.length - kept.length}.`);
  const first = header ? (kept.shift() ?? []) : [];
  const columns = unique(Array.from({ length: width }, (_, i) => first[i]?.trim() || (header || width > 1 ? `column ${i + 1}` : "text")));
  const uneven = kept.filter((record) => record.length !== (header ? first.length : width)).length;
  if (uneven) notes.push(`Rows with more or fewer cells than the ${header ? "header" : "widest row"}: ${uneven}. What is missing is empty.`);
  const rows = kept.map((record) => [...record, ...Array(width - record.length).fill("")]);
  return { columns, rows, notes, problems: new Map() };
}

function ofLines(text) {
  const lines = text.split(/\r\n|\n|\r/);
  if (lines.at(-1) === "") lines.pop();
  return { columns: ["text"], rows: lines.map((line) => [line]), notes: [], problems: new Map() };
}

function ofJson(text) {
  let values;
  const problems = new Map();
  if (text.trimStart().startsWith("[")) {
    try {
      values = parsed(text);
    } catch {
      values = null; // lines that are lists
    }
  }
  if (!values) {
    values = text.split(/\r\n|\n/).map((line, i) => [line, i + 1]).filter(([line]) => line.trim()).map(([line, number], row) => {
      try {
        return parsed(line);
      } catch {
        problems.set(row, `line ${number} is not valid JSON`);
        return { text: line };
      }
    });
  }
  const objects = values.map((value) => (value && typeof value === "object" && !Array.isArray(value) ? value : { text: value }));
  const columns = [...new Set(objects.flatMap((object) => Object.keys(object)))];
  return { columns, rows: objects.map((object) => columns.map((name) => (Object.hasOwn(object, name) ? object[name] ?? "" : ""))), notes: [], problems };
}

/** Parses JSON; whole numbers that JavaScript would round, such as ids of 19 digits, stay as they are written. */
function parsed(text) {
  const parts = /"(?:\\.|[^"\\])*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
  return JSON.parse(text.replace(parts, (part) => (/^-?\d{16,}$/.test(part) ? `"${part}"` : part)));
}

function unique(names) {
  const seen = new Set();
  return names.map((name) => {
    let other = name;
    for (let i = 2; seen.has(other); i += 1) other = `${name} (${i})`;
    seen.add(other);
    return other;
  });
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** A cell of CSV. What a spreadsheet would run as a formula begins with an apostrophe. */
export function csvCell(value) {
  if (value === null || value === undefined) return "";
  let text = typeof value === "object" ? JSON.stringify(value) : String(value);
  if (/^\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|^[\t\r\n]/.test(text) && !NUMBER.test(text)) text = `'${text}`;
  return /[",;\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A table as CSV, RFC 4180, with the mark that makes spreadsheets read UTF-8. */
export function toCsv(columns, rows) {
  return `\uFEFF${[columns, ...rows].map((row) => `${row.map(csvCell).join(",")}\r\n`).join("")}`;
}
