// What if: changes that are tried on a copy of the cluster, and what would be different.

import { h } from "../lib/dom.js";
import { saveCsv } from "../lib/export.js";
import { count, gpus, number, refName } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { card, cardWith, empty, loading, select, workloadLink } from "../lib/parts.js";
import { send } from "../lib/store.js";

// Fields are [name, label, how to ask]; `queue`, `node` and `workload` offer the names that there are.
const KINDS = {
  create: ["Create workloads", [["manifest", "Manifest: a Job, a PodCliqueSet, any workload, as YAML", "manifest"]], { manifest: "" }],
  addNodes: ["Add nodes", [["count", "How many", "number"], ["gpus", "GPUs of each", "number"]], { count: 1, gpus: 8 }],
  removeNode: ["Remove a node", [["node", "Node", "node"]], { node: "" }],
  drainNode: ["Drain a node", [["node", "Node", "node"]], { node: "" }],
  setQuota: ["Change a quota", [["queue", "Queue", "queue"], ["gpus", "GPUs", "amount"]], { queue: "", gpus: 0 }],
  setLimit: ["Change a limit", [["queue", "Queue", "queue"], ["gpus", "GPUs", "amount"]], { queue: "", gpus: 0 }],
  setPriority: ["Change a priority", [["workload", "Workload", "workload"], ["priority", "Priority or class", "text"]], { workload: "", namespace: "default", priority: "" }],
};
const MOST_NAMES = 2000;
const MOST_SHOWN = 40;
// Servers and proxies refuse longer addresses: a long manifest stays on the page only.
const LONGEST_ADDRESS = 4000;
const EXAMPLE = `apiVersion: batch/v1
kind: Job
metadata: {name: new-training}
spec:
  parallelism: 4
  …`;

export const whatIf = {
  title: "What if",
  needs: () => ({ tables: ["nodes", "queues", "workloads"] }),
  view(app) {
    const state = stateOf(app);
    return [
      h("div", { class: "head" }, h("div", null, h("h1", null, "What if"), h("p", { class: "sub" }, "Changes are tried on a copy of the cluster as it is now. Nothing is touched."))),
      h("div", { class: "grid" },
        h("div", { class: "col-4" }, form(app, state)),
        h("div", { class: "col-8" }, answer(app, state))),
    ];
  },
};

/** The changes are in the address, so that a question can be sent to somebody; it is asked when it arrives. */
function stateOf(app) {
  const asked = app.query.get("changes") || "";
  const state = (app.state.whatIf ||= { asked: null, changes: [], answer: { state: "none" } });
  if (state.asked === asked) return state;
  state.asked = asked;
  try {
    const changes = JSON.parse(asked || "[]");
    state.changes = Array.isArray(changes) ? changes.filter((change) => change && change.type in KINDS) : [];
  } catch {
    state.changes = [];
  }
  if (!state.changes.length) state.changes = [blank("addNodes")];
  else ask(app, state);
  return state;
}

function blank(type) {
  return { type, ...KINDS[type][2] };
}

async function ask(app, state) {
  const question = (state.question = {});
  state.answer = { state: "loading" };
  app.redraw();
  try {
    const { data } = await send("POST", "/api/v1/what-if", { changes: state.changes });
    if (state.question === question) state.answer = { state: "ready", data };
  } catch (error) {
    if (state.question === question) state.answer = { state: "broken", text: error.message };
  }
  app.redraw();
}

function form(app, state) {
  const submit = (event) => {
    event.preventDefault();
    const text = JSON.stringify(state.changes);
    state.asked = encodeURIComponent(text).length > LONGEST_ADDRESS ? "" : text;
    app.setQuery({ changes: state.asked }, false);
    ask(app, state);
  };
  const change = (act) => () => {
    act();
    app.redraw();
  };
  return card("Changes",
    h("form", { class: "stack", onSubmit: submit },
      state.changes.map((each, index) => h("fieldset", { class: "change stack tight", key: index },
        h("legend", { class: "sr" }, `Change ${index + 1}`),
        h("div", { class: "row between nowrap-row" },
          select(`Kind of change ${index + 1}`, Object.entries(KINDS).map(([type, [text]]) => [type, text]), each.type, (type) => change(() => { state.changes[index] = blank(type); })()),
          state.changes.length > 1 && h("button", { type: "button", class: "button quiet", "aria-label": `Remove change ${index + 1}`, onClick: change(() => state.changes.splice(index, 1)) }, icon("close"))),
        h("div", { class: "form" }, KINDS[each.type][1].map(([name, label, way]) => field(app, each, index, name, label, way))))),
      names(app),
      h("div", { class: "row between" },
        h("button", { type: "button", class: "button", onClick: change(() => state.changes.push(blank("addNodes"))) }, icon("plus"), "Another change"),
        h("button", { class: "button primary", disabled: state.answer.state === "loading" }, state.answer.state === "loading" ? "Trying…" : "Ask"))));
}

function field(app, change, index, name, label, way) {
  const set = (event) => {
    const text = event.currentTarget.value.trim();
    if (way === "number") change[name] = Number(text || 0);
    else if (way === "amount") change[name] = text === "" ? null : Number(text);
    else if (way === "workload") {
      // As `namespace/kind/name`, which is how the list offers it.
      const parts = text.split("/");
      if (parts.length === 3) Object.assign(change, { namespace: parts[0], workload: `${parts[1]}/${parts[2]}` });
      else change.workload = text;
    } else change[name] = text;
  };
  if (way === "manifest") return manifest(change, index, label);
  const isNumber = way === "number" || way === "amount";
  const value = way === "workload" && change.workload.includes("/") ? `${change.namespace}/${change.workload}` : change[name];
  return h("label", { key: `${change.type} ${name}` }, label,
    h("input", {
      class: "field", type: isNumber ? "number" : "text", min: isNumber ? "0" : undefined, step: way === "amount" ? "any" : undefined,
      required: way !== "amount", placeholder: way === "amount" ? "unlimited" : undefined, list: ["queue", "node", "workload"].includes(way) ? `known-${way}` : undefined, autocomplete: "off",
      "aria-label": `${label}, change ${index + 1}`, value: value === null ? "" : String(value), onInput: set,
    }));
}

function manifest(change, index, label) {
  return h("label", { key: "manifest", class: "whole" }, label,
    h("textarea", {
      class: "field manifest", rows: "12", required: true, spellcheck: "false", autocomplete: "off", placeholder: EXAMPLE, "aria-label": `Manifest, change ${index + 1}`,
      value: change.manifest, onInput: (event) => { change.manifest = event.currentTarget.value; },
    }));
}

function names(app) {
  const { nodes, queues, workloads } = app.store.tables;
  const list = (id, values) => h("datalist", { id: `known-${id}`, key: id }, values.slice(0, MOST_NAMES).map((value) => h("option", { value, key: value })));
  return [
    list("queue", [...queues.rows.keys()].sort()),
    list("node", [...nodes.rows.keys()].sort()),
    list("workload", [...workloads.rows.values()].map((row) => `${row.ref.namespace}/${refName(row.ref)}`).sort()),
  ];
}

function answer(app, state) {
  const result = state.answer;
  if (result.state === "none") return h("div", { class: "card" }, empty("Ask about a change", "A new workload, more nodes, a drained node, another quota, limit or priority: the scheduler's own plans say who would start, who would have to go, and who would still wait."));
  if (result.state === "loading") return h("div", { class: "card" }, loading("what would happen"));
  if (result.state === "broken") return h("div", { class: "card" }, h("div", { class: "state", role: "alert" }, h("strong", null, "This cannot be answered"), h("p", null, result.text)));
  const data = result.data;
  return h("div", { class: "stack wide", role: "region", "aria-label": "What would be different" },
    h("section", { class: "card" },
      h("div", { class: "row between nowrap-row" },
        h("p", { class: "muted small" }, `If you ${data.changes.join(", and ")}:`),
        h("button", { class: "button quiet", onClick: () => save(data) }, "Save as CSV")),
      h("p", { class: "verdict", role: "status" }, data.text),
      data.assumed.length > 0 && h("ul", { class: "assumed muted small" }, data.assumed.map((text) => h("li", { key: text }, `Assumed: ${text}`)))),
    difference("Would start", data.starts, (each) => started(app, each)),
    difference("Would be evicted", data.evicted, (each) => displaced(app, each, "minus", "−")),
    difference("Would move", data.moved, (each) => displaced(app, each, "move", "→")),
    shares(app, data.shares),
    difference("Would wait", [...data.stillWaiting].sort((a, b) => b.worse - a.worse), (each) => waits(app, each)));
}

function difference(title, rows, line) {
  if (!rows.length) return null;
  const more = rows.length - MOST_SHOWN;
  return cardWith(title, h("span", { class: "muted small" }, number(rows.length)),
    h("ul", { class: "diff" }, rows.slice(0, MOST_SHOWN).map(line), more > 0 && h("li", null, h("span"), h("span", { class: "muted" }, `and ${number(more)} more`))));
}

function entry(key, kind, sign, ...content) {
  return h("li", { key }, h("span", { class: `sign ${kind}`, "aria-hidden": "true" }, sign), h("div", null, content));
}

function started(app, each) {
  const nodes = each.nodes.length > 4 ? `${each.nodes.slice(0, 4).join(", ")} and ${count(each.nodes.length - 4, "more node")}` : each.nodes.join(", ");
  const before = each.before ? `; without the change: ${each.before.text}` : "";
  return entry(refName(each.workload), "plus", "+", workloadLink(app, each.workload),
    h("div", { class: "muted" }, `${count(each.pods, "pod")}, ${count(each.gpus, "GPU")} on ${nodes}${each.expectedStart ? `, ${each.expectedStart.text}` : ""}${before}`));
}

function displaced(app, each, kind, sign) {
  return entry(each.pod, kind, sign, workloadLink(app, each.workload), h("span", { class: "muted" }, ` ${each.pod}`),
    h("div", { class: "muted" }, `${each.right}: ${each.text}`));
}

function waits(app, each) {
  return entry(refName(each.workload), each.worse ? "minus" : "wait", each.worse ? "−" : "…", workloadLink(app, each.workload),
    each.worse && [" ", h("span", { class: "tag bad" }, h("i", { "aria-hidden": "true" }), "it runs without the change")],
    h("div", { class: "muted" }, each.why.text, each.expectedStart ? ` Expected start: ${each.expectedStart.text}.` : ""));
}

function shares(app, rows) {
  if (!rows.length) return null;
  const change = (before, after) => (before === after ? h("span", { class: "zero" }, gpus(after)) : [h("span", { class: "muted" }, `${gpus(before)} → `), gpus(after)]);
  return h("section", { class: "card flush" },
    h("header", null, h("h2", null, "Queues, in GPUs")),
    h("table", { class: "list" },
      h("thead", null, h("tr", null, ["Queue", "Fair share", "Used"].map((text, index) => h("th", { scope: "col", class: index ? "right" : "" }, text)))),
      h("tbody", null, rows.map((each) => h("tr", { key: each.queue },
        h("td", { class: "name" }, each.queue),
        h("td", { class: "right" }, change(each.before.gpu, each.after.gpu)),
        h("td", { class: "right" }, change(each.allocatedBefore.gpu, each.allocatedAfter.gpu)))))));
}

function save(data) {
  const rows = [
    ...data.starts.map((each) => ["starts", refName(each.workload), each.gpus, each.nodes.join(" ")]),
    ...data.evicted.map((each) => ["evicted", each.pod, each.gpus, each.text]),
    ...data.moved.map((each) => ["moved", each.pod, each.gpus, each.text]),
    ...data.stillWaiting.map((each) => ["waits", refName(each.workload), "", each.why.text]),
    ...data.assumed.map((text) => ["assumed", "", "", text]),
  ];
  saveCsv("what-if", ["what", "who", "gpus", "how"].map((title, index) => [title, (row) => row[index]]), rows);
}
