// What the page knows: live tables that follow the server's changes, and answers that are asked again when something changed.

import { refKey } from "./format.js";

const AGAIN_AFTER = 1500;
const LONGEST_WAIT = 15000;

const KEYS = {
  workloads: (row) => refKey(row.ref),
  nodes: (row) => row.name,
  queues: (row) => row.name,
  evictions: (row) => `${row.at} ${row.pod}`,
  events: (row) => `${row.at} ${row.namespace}/${row.object} ${row.reason}`,
};

/** Raised for an answer that is no success; carries the status. */
class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** Ask the server; the body is JSON or one line of text. */
export async function ask(path, options = {}) {
  const response = await fetch(path, { headers: { Accept: "application/json" }, ...options });
  if (response.ok) return { data: await response.json(), seq: response.headers.get("Spinney-Seq") || "" };
  const text = await response.text();
  let message = text.trim();
  try {
    message = JSON.parse(text).text || message;
  } catch {
    // A plain line.
  }
  throw new Refused(response.status, message || `the server answered ${response.status}`);
}

/** Send JSON. */
export function send(method, path, body) {
  return ask(path, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

export class Store {
  constructor(changed, loggedOut) {
    this.changed = changed;
    this.loggedOut = loggedOut;
    /** connecting, live, lost, or past. */
    this.connection = "connecting";
    this.since = Date.now();
    this.tables = {};
    this.answers = new Map();
    this.version = 0;
    this.past = "";
    this.wanted = { tables: [], answers: [] };
    this.source = null;
    this.retry = 0;
    this.generation = 0;
    this.skew = 0;
  }

  /** The server's time now, in milliseconds. */
  get now() {
    return this.past ? Date.parse(this.past) : Date.now() + this.skew;
  }

  /** Load and follow what a page shows, at a moment of the past or now. */
  need(tables, answers, past) {
    const same =
      past === this.past && tables.join() === this.wanted.tables.join() && answers.join() === this.wanted.answers.join();
    if (same && this.generation) return;
    const moved = past !== this.past;
    this.past = past;
    this.wanted = { tables, answers };
    // Of another moment an answer stays until the new one is here: a slider that blinks cannot be used.
    for (const url of [...this.answers.keys()]) if (!answers.includes(url)) this.answers.delete(url);
    for (const url of answers) if (!this.answers.has(url)) this.answers.set(url, { state: "loading" });
    for (const name of Object.keys(this.tables)) if (moved || !tables.includes(name)) delete this.tables[name];
    for (const name of tables) if (!this.tables[name]) this.tables[name] = emptyTable();
    this.start();
  }

  /** Everything anew: after the connection was lost, or the server started over. */
  async start() {
    const generation = ++this.generation;
    this.close();
    const { tables, answers } = this.wanted;
    const results = await Promise.all([...tables.map((name) => this.loadTable(name, generation)), ...answers.map((url) => this.loadAnswer(url, generation))]);
    if (generation !== this.generation) return;
    if (results.some((result) => result === "failed")) {
      this.lost();
      return;
    }
    if (this.past) {
      this.setConnection("past");
      return;
    }
    this.open(results.filter((seq) => seq).sort(bySeq)[0] || "");
  }

  query(path) {
    if (!this.past) return path;
    return `${path}${path.includes("?") ? "&" : "?"}at=${encodeURIComponent(this.past)}`;
  }

  async loadTable(name, generation) {
    try {
      const { data, seq } = await ask(this.query(`/api/v1/${name}`));
      if (generation !== this.generation) return "";
      const rows = new Map(data.items.map((row) => [KEYS[name](row), row]));
      this.tables[name] = { state: "ready", rows, partial: data.partial, version: ++this.version };
      this.changed();
      return seq;
    } catch (error) {
      return this.failed(error, generation, (broken) => {
        const before = this.tables[name];
        if (before.state !== "ready") this.tables[name] = { ...emptyTable(), ...broken };
      });
    }
  }

  async loadAnswer(url, generation) {
    try {
      const { data, seq } = await ask(this.query(url));
      if (generation !== this.generation || !this.answers.has(url)) return "";
      this.answers.set(url, { state: "ready", data, asked: performance.now() });
      this.changed();
      return seq;
    } catch (error) {
      return this.failed(error, generation, (broken) => {
        const before = this.answers.get(url);
        if (before && (before.state !== "ready" || broken.status === 404)) this.answers.set(url, broken);
      });
    }
  }

  failed(error, generation, keep) {
    if (generation !== this.generation) return "";
    if (error.status === 401) {
      this.loggedOut();
      return "";
    }
    keep({ state: "broken", status: error.status || 0, error: error.status ? error.message : "The server does not answer. The page goes on asking." });
    this.changed();
    return error.status === 404 || error.status === 403 ? "" : "failed";
  }

  open(seq) {
    const kinds = this.wanted.tables.join(",");
    const source = new EventSource(`/api/v1/stream?kinds=${kinds}&since=${encodeURIComponent(seq)}`);
    this.source = source;
    source.onopen = () => {
      this.retry = 0;
      this.setConnection("live");
    };
    source.onmessage = (message) => this.apply(JSON.parse(message.data));
    source.addEventListener("reset", () => {
      if (this.source !== source) return;
      // At once the first time; a server that says so again and again is given time.
      if (this.lastReset && performance.now() - this.lastReset < 5000) this.lost();
      else this.start();
      this.lastReset = performance.now();
    });
    source.onerror = () => {
      if (this.source === source) this.lost();
    };
  }

  apply(delta) {
    this.version += 1;
    for (const [name, rows] of Object.entries(delta.changed)) {
      const table = this.tables[name];
      if (!table) continue;
      for (const row of rows) table.rows.set(KEYS[name](row), row);
      table.version = this.version;
    }
    for (const [name, keys] of Object.entries(delta.removed)) {
      const table = this.tables[name];
      if (!table) continue;
      for (const key of keys) table.rows.delete(key);
      table.version = this.version;
    }
    for (const url of this.wanted.answers) this.refresh(url);
    this.changed();
  }

  /** Ask again, but not more often than every second and a half. */
  refresh(url) {
    const answer = this.answers.get(url);
    if (!answer || answer.state === "loading" || answer.pending) return;
    answer.pending = true;
    const wait = Math.max(0, AGAIN_AFTER - (performance.now() - (answer.asked || 0)));
    const generation = this.generation;
    setTimeout(() => {
      answer.pending = false;
      if (generation === this.generation) this.loadAnswer(url, generation);
    }, wait);
  }

  lost() {
    this.close();
    this.setConnection("lost");
    const wait = Math.min(LONGEST_WAIT, 500 * 2 ** this.retry);
    this.retry += 1;
    const generation = this.generation;
    setTimeout(() => {
      if (generation === this.generation) this.start();
    }, wait);
  }

  close() {
    if (this.source) this.source.close();
    this.source = null;
  }

  setConnection(state) {
    if (state !== this.connection) this.since = Date.now();
    this.connection = state;
    this.changed();
  }
}

function emptyTable() {
  return { state: "loading", rows: new Map(), partial: [], version: 0 };
}

// `epoch-seq`: the oldest first, so that no change is missed.
function bySeq(a, b) {
  return Number(a.slice(a.lastIndexOf("-") + 1)) - Number(b.slice(b.lastIndexOf("-") + 1));
}
