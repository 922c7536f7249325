// The time machine: the cluster at any moment of the last hour.

import { ClusterMap } from "../lib/clustermap.js";
import { h } from "../lib/dom.js";
import { clock, count, exact, gpus, number } from "../lib/format.js";
import { broken, card, empty, link, loading, phaseTag } from "../lib/parts.js";
import { gauge, gaugeKey, gaugeScale } from "./gauge.js";
import { inTree } from "./queues.js";

const RANGE = "/api/v1/history";

export const history = {
  title: "Time machine",
  needs: (app) => ({ answers: app.past ? ["/api/v1/history/range", RANGE] : ["/api/v1/history/range"] }),
  view(app) {
    const range = app.store.answers.get("/api/v1/history/range") || { state: "loading" };
    return [
      h("div", { class: "head" }, h("div", null, h("h1", null, "Time machine"), h("p", { class: "sub" }, "The cluster at any moment of the last hour"))),
      range.state === "loading" ? loading("the record") : range.state === "broken" ? broken(app, range.error) :
        !range.data.from || range.data.from === range.data.to ? h("div", { class: "card" }, empty("Nothing recorded yet", "The record begins when the dashboard starts.")) : content(app, range.data),
    ];
  },
};

function content(app, range) {
  const from = Date.parse(range.from);
  const to = Date.parse(range.to);
  const chosen = app.past ? Date.parse(app.past) : to;
  const choose = (time) => app.setQuery({ at: new Date(Math.min(Math.max(time, from), to)).toISOString() });
  return h("div", { class: "stack wide" },
    h("section", { class: "card" },
      h("div", { class: "past-bar" },
        h("span", { class: "muted small nowrap" }, clock(from)),
        h("input", { type: "range", min: from, max: to, step: 1000, value: String(chosen), "aria-label": "Moment", "aria-valuetext": exact(new Date(chosen).toISOString()), onInput: (event) => later(app, () => choose(Number(event.target.value))) }),
        h("span", { class: "muted small nowrap" }, clock(to))),
      h("div", { class: "row between" },
        h("strong", { role: "status" }, app.past ? clock(chosen) : "Choose a moment"),
        h("div", { class: "row" },
          [[-300, "−5 min"], [-30, "−30 s"], [30, "+30 s"], [300, "+5 min"]].map(([seconds, text]) => h("button", { class: "button", onClick: () => choose(chosen + seconds * 1000) }, text)),
          app.past && link(app, "/history", "Now")))),
    app.past && moment(app));
}

// A slider that is dragged asks once it rests.
function later(app, act) {
  clearTimeout(app.state.slide);
  app.state.slide = setTimeout(act, 120);
}

function moment(app) {
  const answer = app.store.answers.get(RANGE) || { state: "loading" };
  if (answer.state === "loading") return loading("the moment");
  if (answer.state === "broken") return answer.status === 404 ? h("div", { class: "card" }, empty("Nothing is recorded of this moment")) : broken(app, answer.error);
  const { nodes, queues, workloads, evictions } = answer.data;
  const rows = new Map(nodes.items.map((node) => [node.name, node]));
  const byKey = new Map();
  const phases = new Map();
  for (const row of workloads.items) phases.set(row.phase, (phases.get(row.phase) || 0) + 1);
  const tree = inTree(queues.items);
  const scale = gaugeScale(tree);
  const state = (app.state.past ||= {});
  const look = { nodes: rows, levels: nodes.items.length ? Object.keys(nodes.items[0].domain) : [], workloads: byKey, mode: "queue", search: "", selected: null, version: answer.data.at };
  return h("div", { class: "grid" },
    h("div", { class: "col-8" }, h("div", { class: "map", style: { height: "420px" } }, h("canvas", {
      unmanaged: true, tabindex: "0", role: "img", "aria-label": `Cluster map at ${clock(answer.data.at)}`,
      mounted: (canvas) => { state.map = new ClusterMap(canvas, { select: () => {}, hover: () => {}, open: () => {} }); },
      updated: () => state.map.update(look),
      unmounted: () => { state.map.destroy(); state.map = null; },
    }))),
    h("div", { class: "col-4 stack wide" },
      card("Workloads", h("div", { class: "stack tight" }, phases.size ? [...phases].map(([phase, amount]) => h("div", { class: "row between", key: phase }, phaseTag(phase), h("span", null, number(amount)))) : h("p", { class: "muted" }, "none"),
        h("p", { class: "small" }, link(app, app.path("/workloads"), "All workloads then"), " · ", link(app, app.path("/map"), "Map then")))),
      card("Queues", h("div", { class: "stack" }, tree.map((queue) => h("div", { class: "stack tight", key: queue.name }, h("div", { class: "row between small" }, h("span", null, queue.name), h("span", { class: "muted" }, `${gpus(queue.allocated.gpu)} GPUs`)), gauge(queue, scale))), gaugeKey())),
      h("p", { class: "muted small" }, `${count(evictions.items.length, "eviction")} known by then`)));
}
