// Requests to the server that the page came from.

const KEY = "keras_bert.key";

/** An answer that is none: `status` of HTTP, 0 if there was no answer at all. */
export class ServerError extends Error {
  constructor(status, message, wait = 0) {
    super(message);
    this.status = status;
    this.wait = wait; // seconds after which to try again
  }
}

/** The key that the server asks for; kept for as long as the tab is open. */
export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => sessionStorage.setItem(KEY, value.trim()),
};

/** The address of the server, without a slash at the end. */
export const address = () => new URL(".", document.baseURI).href.replace(/\/$/, "");

/** The address of a model's predictions. */
export const predictAddress = (model) =>
  `${address()}/v1/models/${encodeURIComponent(model.name)}:predict`;

async function ask(url, options) {
  const headers = key.get() ? { Authorization: `Bearer ${key.get()}` } : {};
  if (options.body) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(url, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(0, "The server does not answer. Is it still running?");
  }
  const text = await response.text();
  let content;
  try {
    content = JSON.parse(text);
  } catch {
    content = parseWithNaN(text);
  }
  if (response.ok && content !== undefined) return content;
  const wait = Number(response.headers.get("Retry-After")) || 0;
  const said = content?.error;
  if (response.status === 503) throw new ServerError(503, "The server is busy. Try again in a moment.", wait || 1);
  if (response.status === 413) throw new ServerError(413, `This is too much at once: ${said ?? "the body is too large"}.`);
  throw new ServerError(response.status, said ?? `The server answered with status ${response.status}.`);
}

/** Parses JSON with NaN and Infinity, which become null; undefined if it is none. */
function parseWithNaN(text) {
  const parts = /"(?:\\.|[^"\\])*"|NaN|-?Infinity/g;
  try {
    return JSON.parse(text.replace(parts, (part) => (part[0] === '"' ? part : "null")));
  } catch {
    return undefined;
  }
}

/** The models, as `describe` of the server's app.py tells them. */
export const listModels = () => ask(`${address()}/v1/keras_bert/models`, { method: "GET" });

/**
 * Asks a signature of a model.
 * @returns {Promise<object>} its outputs by name, each with a value per row
 */
export async function predict(model, { signature, inputs }, signal) {
  const body = JSON.stringify({ signature_name: signature, inputs });
  const { outputs } = await ask(predictAddress(model), { method: "POST", body, signal });
  const names = Object.keys(model.signatures[signature].outputs);
  return names.length === 1 ? { [names[0]]: outputs } : outputs; // a single output has no name
}

/**
 * Asks what is inside a model for a request of one row.
 * @param {"explain"|"attention"} what as `explanation` and `attention` of the server's app.py
 */
export const look = (what, model, { signature, inputs }, signal) =>
  ask(`${address()}/v1/keras_bert/${what}/${encodeURIComponent(model.name)}`, {
    method: "POST", body: JSON.stringify({ signature_name: signature, inputs }), signal,
  });

/**
 * The words of a server's message that a person needs, and the input that it is about.
 * @param {string} message such as "inputs: 'text'[0]: 9 characters; expected at most 5"
 * @param {string[]} names inputs of the signature
 */
export function blamed(message, names) {
  const found = message.match(/^(?:inputs|instances): '([^']*)'((?:\[\d+\])*): (.*)$/s);
  if (found && names.includes(found[1])) return { input: found[1], message: sentence(found[3]) };
  const named = names.find((name) => message.includes(`'${name}'`));
  return { input: named, message: sentence(message) };
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
