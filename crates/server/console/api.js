// Talks to the server that served this page. The credential lives in this module and nowhere else: not in a URL, not in
// storage. Closing or reloading the page forgets it.

let credential = "";

/// What the server refused, with its reason.
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `the server answered ${status}`);
    this.status = status;
    this.code = body.code;
  }
}

/// The server did not answer.
export class Unreachable extends Error {}

export function signIn(secret) {
  credential = secret;
}

export function isSignedIn() {
  return credential !== "";
}

async function ask(path, options = {}) {
  const headers = { accept: "application/json", ...options.headers };
  if (credential) headers.authorization = `Bearer ${credential}`;
  let answer;
  try {
    answer = await fetch(path, { ...options, headers, credentials: "omit", cache: "no-store", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable("the server does not answer");
  }
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => ({}));
  throw new Problem(answer.status, body);
}

/// A path with a query; parameters that are empty are left out.
export function withQuery(path, parameters) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined));
  return query.size ? `${path}?${query}` : path;
}

export async function get(path, parameters = {}, signal) {
  return (await ask(withQuery(path, parameters), { signal })).json();
}

export async function text(path, signal) {
  return (await ask(path, { signal, headers: { accept: "text/plain" } })).text();
}

export async function post(path, body) {
  const headers = { "content-type": "application/json" };
  return (await ask(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

/// Calls `heard(event, data)` for each event of a stream until it ends or `signal` stops it. An EventSource could not
/// carry the credential.
export async function listen(path, heard, signal) {
  const answer = await ask(path, { signal, headers: { accept: "text/event-stream" } });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const pieces = (rest + value).split("\n\n");
    rest = pieces.pop();
    for (const piece of pieces) {
      const event = { name: "", data: "" };
      for (const line of piece.split("\n")) {
        if (line.startsWith("event:")) event.name = line.slice(6).trim();
        if (line.startsWith("data:")) event.data += line.slice(5).trim();
      }
      if (event.name) heard(event.name, event.data ? JSON.parse(event.data) : null);
    }
  }
}
