// Waiting: all that is pending, by reason, with the smallest fix.

import { h } from "../lib/dom.js";
import { count, gpus, number, refKey, words } from "../lib/format.js";
import { broken, empty, loading, partial, when, workloadLink } from "../lib/parts.js";
import { saveCsv } from "../lib/export.js";

const URL = "/api/v1/waiting";
// Of each reason, unless all of them are asked for: thousands of rows of sentences make a page slow.
const MOST_SHOWN = 100;

export const waiting = {
  title: "Waiting",
  needs: () => ({ answers: [URL] }),
  view(app) {
    const answer = app.store.answers.get(URL) || { state: "loading" };
    const rows = answer.state === "ready" ? answer.data.items : [];
    return [
      h("div", { class: "head" },
        h("div", null, h("h1", null, "Waiting"), h("p", { class: "sub" }, rows.length ? `${count(rows.length, "workload")} for ${gpus(rows.reduce((sum, row) => sum + row.gpus, 0))} GPUs, by reason` : "What is pending, and the smallest change that helps")),
        rows.length > 0 && h("div", { class: "tools" }, h("button", { class: "button", onClick: () => save(rows) }, "Save as CSV"))),
      answer.state === "loading" ? loading("what waits") : answer.state === "broken" ? broken(app, answer.error) : [partial(answer.data.partial), groups(app, rows)],
    ];
  },
};

function groups(app, rows) {
  if (!rows.length) return h("div", { class: "card" }, empty("Nothing waits", "Every workload has its place."));
  const byReason = new Map();
  for (const row of rows) {
    const code = row.why ? row.why.code : "not looked at yet";
    byReason.set(code, [...(byReason.get(code) || []), row]);
  }
  const sorted = [...byReason].sort((a, b) => b[1].length - a[1].length);
  return h("div", { class: "stack wide" }, sorted.map(([code, members]) =>
    h("section", { class: "card flush", key: code },
      h("header", null, h("h2", { title: code }, words(code)), h("span", { class: "muted small end" }, `${count(members.length, "workload")}, ${gpus(members.reduce((sum, row) => sum + row.gpus, 0))} GPUs`)),
      h("table", { class: "list loose fixed cards" },
        h("thead", null, h("tr", null, heading("Workload", "w-name"), heading("Why, and what helps", ""), heading("GPUs", "right w-small"), heading("Queue", "w-queue"), heading("In line", "right w-small"), heading("Expected start", "w-start"), heading("Since", "w-since"))),
        h("tbody", null, (app.query.get("all") === code ? members : members.slice(0, MOST_SHOWN)).map((row) => line(app, row)))),
      more(app, code, members))));
}

function more(app, code, members) {
  if (members.length <= MOST_SHOWN || app.query.get("all") === code) return null;
  return h("footer", null, h("button", { class: "button", onClick: () => app.setQuery({ all: code }, false) }, `Show all ${number(members.length)}`));
}

function heading(text, name) {
  return h("th", { scope: "col", class: name }, text);
}

function line(app, row) {
  return h("tr", { key: refKey(row.ref) },
    h("td", { class: "name" }, workloadLink(app, row.ref), h("div", { class: "muted tiny" }, row.ref.namespace)),
    h("td", { class: "reason" }, row.why
      ? [h("div", null, row.why.text), row.why.advice.map((text) => h("div", { class: "muted advice" }, text))]
      : h("span", { class: "muted" }, "The scheduler has not given a reason yet.")),
    h("td", { class: "right", "data-label": "GPUs" }, gpus(row.gpus)),
    h("td", { "data-label": "Queue" }, row.queue || "–"),
    h("td", { class: "right", "data-label": "In line" }, row.line === null ? "–" : number(row.line)),
    h("td", { "data-label": "Expected start:" }, row.expectedStart ? row.expectedStart.text : "–"),
    h("td", { class: "nowrap", "data-label": "Since" }, when(app, row.created)));
}

function save(rows) {
  saveCsv("waiting", [["workload", (row) => refKey(row.ref)], ["queue", (row) => row.queue], ["gpus", (row) => row.gpus], ["line", (row) => row.line], ["since", (row) => row.created], ["reason", (row) => row.why?.code], ["why", (row) => row.why?.text], ["advice", (row) => row.why?.advice.join("; ")]], rows);
}
