// Queues: the tree with quota, fair share, use, loans and what waits, and their course over the last hour.

import { assign } from "../lib/colours.js";
import { StackedChart } from "../lib/chart.js";
import { h } from "../lib/dom.js";
import { saveCsv, savePng } from "../lib/export.js";
import { bytes, clock, gpus, limit, number } from "../lib/format.js";
import { broken, cardWith, empty, link, loading, partial, segments } from "../lib/parts.js";
import { table } from "../lib/table.js";
import { amount, gauge, gaugeKey, gaugeScale, leavesOf } from "./gauge.js";

const URL = "/api/v1/history/queues";
const UNITS = { gpu: gpus, cpu: number, memory: bytes };
const COURSES = [["allocated", "Used"], ["requested", "Asked for"], ["share", "Fair share"]];

export const queues = {
  title: "Queues",
  needs: () => ({ tables: ["queues"], answers: [URL] }),
  view(app) {
    const { state, rows, partial: unread, error } = app.store.tables.queues;
    const resource = app.query.get("resource") || "gpu";
    return [
      h("div", { class: "head" },
        h("div", null, h("h1", null, "Queues"), h("p", { class: "sub" }, "How the cluster is shared")),
        h("div", { class: "tools" }, segments("Resource", [["gpu", "GPUs"], ["cpu", "CPU cores"], ["memory", "Memory"]], resource, (value) => app.setQuery({ resource: value === "gpu" ? "" : value })))),
      partial(unread),
      state === "loading" ? loading("queues") : state === "broken" ? broken(app, error) : content(app, inTree([...rows.values()]), resource),
    ];
  },
};

/** Parents before their children, siblings by name. */
export function inTree(rows) {
  const children = new Map();
  const names = new Set(rows.map((row) => row.name));
  for (const row of rows) {
    const parent = names.has(row.parent) ? row.parent : "";
    children.set(parent, [...(children.get(parent) || []), row]);
  }
  const visit = (name) => (children.get(name) || []).sort((a, b) => (a.name < b.name ? -1 : 1)).flatMap((row) => [{ ...row, children: (children.get(row.name) || []).length }, ...visit(row.name)]);
  return visit("");
}

function content(app, rows, resource) {
  const unit = UNITS[resource];
  const scale = gaugeScale(rows.map((row) => as(row, resource)));
  const column = (id, title, cell, extra = "") => ({ id, title, class: `right ${extra}`, cell, value: (row) => row[id]?.[resource] ?? "unlimited" });
  const plain = (id) => (row) => amount(row[id][resource], unit);
  const bounded = (id) => (row) => (row[id][resource] === null ? h("span", { class: "zero" }, "unlimited") : limit(row[id][resource], unit));
  return h("div", { class: "stack wide" },
    table(app, {
      id: "queues",
      title: "Queues",
      noun: "queue",
      rows,
      key: (row) => row.name,
      chosen: (row) => row.name === app.query.get("queue"),
      foot: gaugeKey(),
      empty: empty("No queues", "Queues share the cluster among teams: ", h("code", null, "kubectl get queues.scheduling.run.ai")),
      columns: [
        { id: "name", title: "Queue", class: "name", cell: (row) => name(app, row), value: (row) => row.name },
        { id: "gauge", title: resource === "gpu" ? "GPUs" : "Use", class: "gauge-cell hide-small", cell: (row) => gauge(as(row, resource), scale) },
        column("allocated", "Used", plain("allocated")),
        column("quota", "Quota", bounded("quota"), "hide-small"),
        column("fairShare", "Fair share", plain("fairShare")),
        column("limit", "Limit", bounded("limit"), "hide-small"),
        column("borrowed", "Borrowed", plain("borrowed"), "hide-small"),
        column("requested", "Asked for", plain("requested")),
        ...["Running", "Waiting"].map((phase) => ({ id: phase.toLowerCase(), title: phase, class: "right hide-small", cell: (row) => inPhase(app, row, phase), value: (row) => row[phase.toLowerCase()] })),
      ],
    }),
    course(app, rows));
}

function name(app, row) {
  const chosen = app.query.get("queue") === row.name;
  return h("span", { class: "row", style: { "padding-left": `${row.depth * 16}px` } },
    link(app, app.path(chosen ? "/queues" : `/queues?queue=${encodeURIComponent(row.name)}`), row.name),
    row.problem && h("span", { class: "tag bad", title: row.problem }, h("i", { "aria-hidden": "true" }), row.problem));
}

/** How many workloads of a queue are in a phase; those of queues below it are not in the queue itself. */
function inPhase(app, row, phase) {
  const many = row[phase.toLowerCase()];
  if (!many || row.children > 0) return amount(many, number);
  return link(app, app.path(`/workloads?queue=${encodeURIComponent(row.name)}&phase=${phase}`), number(many));
}

// The gauge shows GPUs; of another resource it is given the amounts as if they were.
function as(row, resource) {
  const pick = (amounts) => ({ gpu: amounts[resource] });
  return { ...row, allocated: pick(row.allocated), borrowed: pick(row.borrowed), requested: pick(row.requested), quota: pick(row.quota), limit: pick(row.limit), fairShare: pick(row.fairShare) };
}

function course(app, rows) {
  const answer = app.store.answers.get(URL) || { state: "loading" };
  const leaves = leavesOf(rows);
  const only = rows.find((row) => row.name === app.query.get("queue"));
  // A queue with queues below it is drawn as the sum of those: only what is drawn has its own colour.
  const shown = only ? leaves.filter((leaf) => leaf === only.name || isBelow(rows, leaf, only.name)) : leaves;
  const colours = assign(leaves);
  const what = app.query.get("course") || "allocated";
  const index = COURSES.findIndex(([id]) => id === what);
  const samples = answer.state === "ready" ? answer.data.samples : [];
  const data = { samples, names: shown, colours, index, from: since(samples, app.now), until: app.now, marks: only && what === "allocated" ? marksOf(only) : [] };
  const state = (app.state.course ||= { tip: null });
  return cardWith(only ? `GPUs of ${only.name} over the last hour` : "GPUs over the last hour",
    [segments("Amount", COURSES, what, (value) => app.setQuery({ course: value === "allocated" ? "" : value })),
      samples.length > 0 && h("button", { class: "button quiet", onClick: () => saveCsv("queues-over-time", [["at", (sample) => sample.at], ...shown.map((leaf) => [leaf, (sample) => sample.gpus[leaf]?.[index] ?? 0])], samples) }, "Save as CSV"),
      samples.length > 0 && h("button", { class: "button quiet", onClick: () => state.chart && savePng("queues", state.chart.canvas) }, "Save as PNG")],
    answer.state === "loading" ? loading("the course") : answer.state === "broken" ? broken(app, answer.error) :
      samples.length < 1 ? empty("Nothing recorded yet", "The record begins when the dashboard starts.") :
        h("div", { class: "stack" },
          h("div", { class: "chart" },
            h("canvas", {
              unmanaged: true, role: "img", "aria-label": inWords(samples, shown, index, what),
              mounted: (canvas) => { state.chart = new StackedChart(canvas, (sample, x) => { state.tip = sample && { sample, x }; app.redraw(); }); },
              updated: () => state.chart.update(data),
              unmounted: () => { state.chart.destroy(); state.chart = null; state.tip = null; },
            }),
            state.tip && chartTip(state.tip, shown, colours, index)),
          h("div", { class: "legend" }, leaves.map((leaf) => h("span", { key: leaf }, h("button", { type: "button", "aria-pressed": String(app.query.get("queue") === leaf), title: "Show only this queue, with its quota, fair share and limit", onClick: () => app.setQuery({ queue: app.query.get("queue") === leaf ? "" : leaf }) }, h("span", { class: "swatch", style: { background: colours.get(leaf) } }), leaf))),
            only && h("button", { type: "button", onClick: () => app.setQuery({ queue: "" }) }, "Show all queues"))));
}

// At least a minute: the first seconds of a record would fill the chart.
function since(samples, now) {
  return Math.min(samples.length ? Date.parse(samples[0].at) : now, now - 60000);
}

function isBelow(rows, queue, above) {
  const row = rows.find((each) => each.name === queue);
  return Boolean(row && row.parent) && (row.parent === above || isBelow(rows, row.parent, above));
}

function marksOf(queue) {
  const marks = [["quota", queue.quota.gpu, "--ink"], ["fair share", queue.fairShare.gpu, "--busy"], ["limit", queue.limit.gpu, "--bad"]];
  return marks.filter(([, value]) => value !== null && value > 0);
}

function inWords(samples, names, index, what) {
  const last = samples[samples.length - 1];
  const title = COURSES.find(([id]) => id === what)[1].toLowerCase();
  return `GPUs ${title} by queue over time; at ${clock(last.at)}: ${names.map((each) => `${each} ${gpus(last.gpus[each]?.[index] ?? 0)}`).join(", ")}`;
}

function chartTip({ sample, x }, names, colours, index) {
  const rows = names.map((each) => [each, sample.gpus[each]?.[index] ?? 0]).filter(([, value]) => value > 0).reverse();
  const flip = x > 300;
  return h("div", { class: "tip", style: { top: "12px", left: flip ? "auto" : `${x + 14}px`, right: flip ? `calc(100% - ${x - 14}px)` : "auto" } },
    h("strong", null, clock(sample.at)),
    h("table", null, h("tbody", null, rows.map(([each, value]) => h("tr", { key: each }, h("td", null, h("span", { class: "row" }, h("span", { class: "swatch", style: { background: colours.get(each) } }), each)), h("td", { class: "right" }, gpus(value)))))));
}
