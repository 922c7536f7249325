// The time machine: the cluster at any moment of the last hour.

import { StackedChart } from "../lib/chart.js";
import { ClusterMap } from "../lib/clustermap.js";
import { assign } from "../lib/colours.js";
import { h } from "../lib/dom.js";
import { clock, count, exact, gpus, number } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { painter } from "../lib/mapcolours.js";
import { legend } from "../lib/maplegend.js";
import { broken, card, empty, link, loading, phaseTag } from "../lib/parts.js";
import { gauge, gaugeKey, gaugeScale, leavesOf } from "./gauge.js";
import { inTree } from "./queues.js";

const MOMENT = "/api/v1/history";
const RANGE = "/api/v1/history/range";
const COURSE = "/api/v1/history/queues";
const STEPS = [[-300, "−5 min"], [-30, "−30 s"], [30, "+30 s"], [300, "+5 min"]];
// Playing goes through everything in about a minute.
const FRAMES = 90;
const FRAME_MS = 700;

export const history = {
  title: "Time machine",
  needs: (app) => ({ answers: app.past ? [RANGE, COURSE, MOMENT] : [RANGE, COURSE] }),
  view(app) {
    const range = app.store.answers.get(RANGE) || { state: "loading" };
    return [
      h("div", { class: "head" }, h("div", null, h("h1", null, "Time machine"), h("p", { class: "sub" }, "The cluster at any moment of the last hour"))),
      range.state === "loading" ? loading("the record") : range.state === "broken" ? broken(app, range.error) :
        !range.data.from || range.data.from === range.data.to ? h("div", { class: "card" }, empty("Nothing recorded yet", "The record begins when the dashboard starts.")) : content(app, range.data),
    ];
  },
};

function content(app, range) {
  // Whole seconds, as the slider steps.
  const from = Math.floor(Date.parse(range.from) / 1000) * 1000;
  const to = Math.ceil(Date.parse(range.to) / 1000) * 1000;
  const chosen = app.past ? Date.parse(app.past) : to;
  const choose = (time) => app.setQuery({ at: new Date(Math.min(Math.max(time, Date.parse(range.from)), Date.parse(range.to))).toISOString() });
  const state = (app.state.past ||= { timer: 0 });
  return h("div", { class: "stack wide", unmounted: () => stop(state) },
    h("section", { class: "card stack" },
      h("div", { class: "row between" },
        h("h2", { role: "status", title: exact(new Date(chosen).toISOString()) }, app.past ? clock(chosen) : "Choose a moment"),
        h("div", { class: "row" },
          h("button", { class: "button", "aria-pressed": String(Boolean(state.timer)), onClick: () => (state.timer ? stop(state) : play(app, state, from, to)) }, icon(state.timer ? "pause" : "play"), state.timer ? "Pause" : "Play"),
          STEPS.map(([seconds, text]) => h("button", { class: "button", onClick: () => choose(chosen + seconds * 1000) }, text)),
          app.past && h("a", { class: "button", href: "/history", onClick: (event) => app.follow(event, "/history") }, "Now"))),
      h("div", { class: "past-bar" },
        course(app, state, { from, to, chosen }),
        h("input", { type: "range", min: from, max: to, step: 1000, value: String(chosen), "aria-label": "Moment", "aria-valuetext": exact(new Date(chosen).toISOString()), onInput: (event) => later(state, () => choose(Number(event.target.value))) }))),
    app.past ? moment(app, state) : h("p", { class: "muted small" }, "Drag the slider, press an arrow key on it, or play. Every page then shows that moment."));
}

function course(app, state, { from, to, chosen }) {
  const answer = app.store.answers.get(COURSE);
  const samples = answer?.state === "ready" ? answer.data.samples : [];
  if (!samples.length) return null;
  const { leaves } = answer.data;
  const data = { samples: samples.filter((sample) => Date.parse(sample.at) <= to), names: leaves, colours: assign(leaves), index: 0, from, until: to, moment: app.past ? Math.round(chosen / 1000) * 1000 : 0 };
  return h("div", { class: "chart short" }, h("canvas", {
    unmanaged: true, role: "img", "aria-label": "GPUs in use by queue over the last hour",
    mounted: (canvas) => { state.chart = new StackedChart(canvas); },
    updated: () => state.chart.update(data),
    unmounted: () => { state.chart.destroy(); state.chart = null; },
  }));
}

// A slider that is dragged asks once it rests.
function later(state, act) {
  clearTimeout(state.slide);
  state.slide = setTimeout(act, 120);
}

function play(app, state, from, to) {
  const step = Math.max(2000, (to - from) / FRAMES);
  // From the chosen moment, or from the beginning where that is the end.
  const start = app.past && Date.parse(app.past) + step < to ? Date.parse(app.past) : from;
  let time = start;
  state.timer = setInterval(() => {
    app.setQuery({ at: new Date(time).toISOString() });
    time += step;
    if (time > to) {
      stop(state);
      app.redraw();
    }
  }, FRAME_MS);
  app.setQuery({ at: new Date(start).toISOString() });
}

function stop(state) {
  clearInterval(state.timer);
  state.timer = 0;
}

function moment(app, state) {
  const answer = app.store.answers.get(MOMENT) || { state: "loading" };
  if (answer.state === "broken") return answer.status === 404 ? h("div", { class: "card" }, empty("Nothing is recorded of this moment")) : broken(app, answer.error);
  if (answer.state === "loading") return loading("the moment");
  const { at, nodes, queues, workloads, evictions } = answer.data;
  const rows = new Map(nodes.items.map((node) => [node.name, node]));
  const tree = inTree(queues.items);
  const phases = new Map();
  for (const row of workloads.items) phases.set(row.phase, (phases.get(row.phase) || 0) + 1);
  const version = `${at} ${document.documentElement.dataset.theme}`;
  if (state.version !== version) Object.assign(state, { version, painter: painter("queue", rows.values(), new Map(), leavesOf(tree)) });
  const look = { nodes: rows, levels: nodes.items.length ? Object.keys(nodes.items[0].domain) : [], painter: state.painter, search: "", selected: null, version };
  return h("div", { class: "grid" },
    h("div", { class: "col-8 stack" },
      h("div", { class: "map past" }, h("canvas", {
        unmanaged: true, tabindex: "0", role: "img", "aria-label": `Cluster map at ${clock(at)}: ${count(nodes.items.length, "node")}`,
        mounted: (canvas) => { state.map = new ClusterMap(canvas, { select: (cell) => cell && app.go(app.path(`/map?node=${encodeURIComponent(cell.node)}&gpu=${cell.gpu}`)), hover: () => {}, open: () => {} }); },
        updated: () => state.map.update(look),
        unmounted: () => { state.map.destroy(); state.map = null; },
      })),
      legend(state.painter)),
    h("div", { class: "col-4 stack wide" },
      card("Workloads", h("div", { class: "stack tight" }, phases.size ? [...phases].map(([phase, amount]) => h("div", { class: "row between", key: phase }, phaseTag(phase), h("span", null, number(amount)))) : h("p", { class: "muted" }, "none"),
        h("p", { class: "small" }, link(app, app.path("/workloads"), "All workloads then"), " · ", link(app, app.path("/map"), "Map then")))),
      card("Queues", h("div", { class: "stack" }, tree.map((queue) => h("div", { class: "stack tight", key: queue.name }, h("div", { class: "row between small" }, h("span", null, queue.name), h("span", { class: "muted" }, `${gpus(queue.allocated.gpu)} GPUs`)), gauge(queue, gaugeScale(tree)))), gaugeKey())),
      h("p", { class: "muted small" }, `${count(evictions.items.length, "eviction")} known by then`)));
}
