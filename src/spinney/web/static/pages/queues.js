// Queues: the tree with quota, fair share, use, loans and what waits, and their course over the last hour.

import { assign } from "../lib/colours.js";
import { StackedChart } from "../lib/chart.js";
import { h } from "../lib/dom.js";
import { savePng } from "../lib/export.js";
import { bytes, gpus, limit, number } from "../lib/format.js";
import { broken, cardWith, empty, link, loading, partial, segments } from "../lib/parts.js";
import { table } from "../lib/table.js";
import { gauge, gaugeKey, gaugeScale } from "./gauge.js";

const URL = "/api/v1/history/queues";
const UNITS = { gpu: gpus, cpu: number, memory: bytes };

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
  const visit = (name) => (children.get(name) || []).sort((a, b) => (a.name < b.name ? -1 : 1)).flatMap((row) => [row, ...visit(row.name)]);
  return visit("");
}

function content(app, rows, resource) {
  const unit = UNITS[resource];
  const scaled = rows.map((row) => as(row, resource));
  const scale = gaugeScale(scaled);
  const amount = (id, title, value, extra = "") => ({ id, title, class: `right ${extra}`, cell: (row) => value(row), value: (row) => row[id]?.[resource] ?? "unlimited" });
  return h("div", { class: "stack wide" },
    table(app, {
      id: "queues",
      title: "Queues",
      rows,
      key: (row) => row.name,
      empty: empty("No queues", "Queues share the cluster among teams: ", h("code", null, "kubectl get queues.scheduling.run.ai")),
      columns: [
        { id: "name", title: "Queue", cell: (row) => h("span", { style: { "padding-left": `${row.depth * 16}px` } }, link(app, app.path(`/workloads?queue=${encodeURIComponent(row.name)}`), row.name), row.problem && h("span", { class: "tag bad", title: row.problem }, h("i", null), row.problem)), value: (row) => row.name },
        { id: "gauge", title: "Use", class: "hide-small", cell: (row) => gauge(as(row, resource), scale) },
        amount("allocated", "Used", (row) => unit(row.allocated[resource])),
        amount("quota", "Quota", (row) => limit(row.quota[resource], unit), "hide-small"),
        amount("fairShare", "Fair share", (row) => unit(row.fairShare[resource])),
        amount("limit", "Limit", (row) => limit(row.limit[resource], unit), "hide-small"),
        amount("borrowed", "Borrowed", (row) => unit(row.borrowed[resource]), "hide-small"),
        amount("requested", "Asked for", (row) => unit(row.requested[resource])),
        { id: "running", title: "Running", class: "right hide-small", cell: (row) => number(row.running), value: (row) => row.running },
        { id: "waiting", title: "Waiting", class: "right", cell: (row) => number(row.waiting), value: (row) => row.waiting },
      ],
    }),
    gaugeKey(),
    course(app, rows));
}

// The gauge shows GPUs; of another resource it is given the amounts as if they were.
function as(row, resource) {
  const pick = (amounts) => ({ gpu: amounts[resource] });
  return { ...row, allocated: pick(row.allocated), borrowed: pick(row.borrowed), requested: pick(row.requested), quota: pick(row.quota), limit: pick(row.limit), fairShare: pick(row.fairShare) };
}

function course(app, rows) {
  const answer = app.store.answers.get(URL) || { state: "loading" };
  const leaves = rows.filter((row) => !rows.some((other) => other.parent === row.name)).map((row) => row.name);
  const shown = app.query.get("queue") ? leaves.filter((name) => name === app.query.get("queue")) : leaves;
  const colours = assign(leaves);
  const what = app.query.get("course") || "allocated";
  const samples = answer.state === "ready" ? answer.data.samples : [];
  return cardWith("GPUs over the last hour",
    [segments("Amount", [["allocated", "Used"], ["requested", "Asked for"], ["share", "Fair share"]], what, (value) => app.setQuery({ course: value === "allocated" ? "" : value })),
      h("button", { class: "button quiet", onClick: () => app.state.chart && savePng("queues", app.state.chart.canvas) }, "Save as PNG")],
    answer.state === "loading" ? loading("the course") : answer.state === "broken" ? broken(app, answer.error) :
      samples.length < 2 ? empty("Not enough seen yet", "The course begins when the dashboard starts.") :
        h("div", { class: "stack" },
          h("div", { class: "chart" }, h("canvas", {
            unmanaged: true, role: "img", "aria-label": `GPUs of ${shown.length} queues over time`,
            mounted: (canvas) => { app.state.chart = new StackedChart(canvas); },
            updated: () => app.state.chart.update(samples, shown, colours, { allocated: 0, requested: 1, share: 2 }[what]),
            unmounted: () => { app.state.chart.destroy(); app.state.chart = null; },
          })),
          h("div", { class: "legend" }, leaves.map((name) => h("span", null, h("button", { type: "button", "aria-pressed": String(app.query.get("queue") === name), onClick: () => app.setQuery({ queue: app.query.get("queue") === name ? "" : name }) }, h("span", { class: "swatch", style: { background: colours.get(name) } }), name))))));
}
