// Overview: how many GPUs work, wait or stand idle, and why; queues at a glance; what happened lately.

import { palette } from "../lib/colours.js";
import { h } from "../lib/dom.js";
import { count, gpus, number, percent, refName } from "../lib/format.js";
import { PHASES, bar, broken, card, cardWith, empty, figure, grouped, link, loading, partial, when, workloadLink } from "../lib/parts.js";
import { amount, gauge, gaugeKey, gaugeScale } from "./gauge.js";

const URL = "/api/v1/overview";
const MOST_QUEUES = 14;
const MOST_NEWS = 9;
// Evictions are listed with their workloads: their events, one for each pod, would repeat them.
const EVICTION_REASONS = new Set(["Evict", "Evicted", "Preempted"]);

export const overview = {
  title: "Overview",
  needs: () => ({ answers: [URL] }),
  view(app) {
    const answer = app.store.answers.get(URL) || { state: "loading" };
    return [
      h("div", { class: "head" }, h("div", null, h("h1", null, "Overview"), h("p", { class: "sub" }, "The cluster at a glance"))),
      answer.state === "loading" ? loading("the overview") : answer.state === "broken" ? broken(app, answer.error) : content(app, answer.data),
    ];
  },
};

function content(app, data) {
  const { gpus: totals, capacity } = data;
  return [
    partial(data.partial),
    h("div", { class: "grid" },
      h("div", { class: "card col-3" }, figure("GPUs in use", gpus(totals.used), totals.total ? `${percent(totals.used, totals.total)} of ${number(totals.total)}` : "no GPUs yet")),
      h("div", { class: "card col-3" }, figure("GPUs idle", gpus(totals.idle), idleNote(capacity))),
      h("div", { class: "card col-3" }, figure("GPUs asked for", gpus(totals.waiting), totals.waiting ? ["by pods that wait; ", link(app, app.path("/waiting"), "why they wait")] : "nothing waits for a place")),
      h("div", { class: "card col-3" }, figure("Workloads", number(PHASES.reduce((sum, phase) => sum + (data.workloads[phase] || 0), 0)), phases(app, data.workloads))),
      h("div", { class: "col-8 stack wide" }, stranded(app, capacity), queuesCard(app, data.queues)),
      h("div", { class: "col-4" }, latestNews(app, data))),
  ];
}

function idleNote(capacity) {
  const parts = capacity.byReason.filter((part) => part.gpus > 0).sort((a, b) => b.gpus - a.gpus);
  if (!parts.length) return capacity.total ? "every GPU works" : "no GPUs yet";
  return parts.length === 1 ? `all: ${inWords(parts[0].reason)}` : `most of them: ${inWords(parts[0].reason)}`;
}

function phases(app, counts) {
  const shown = PHASES.filter((phase) => counts[phase]);
  return shown.length ? shown.map((phase, index) => [index ? ", " : "", link(app, app.path(`/workloads?phase=${phase}`), `${number(counts[phase])} ${phase.toLowerCase()}`)]) : "none yet";
}

function stranded(app, capacity) {
  const colours = palette();
  const parts = capacity.byReason.filter((part) => part.gpus > 0);
  return card("Where the GPUs are",
    capacity.total === 0 ? empty("No GPUs yet", "Nodes that offer ", h("code", null, "nvidia.com/gpu"), " appear here once they join the cluster.") : h("div", { class: "stack wide" },
      bar([["in use", capacity.used, "var(--accent)"], ...parts.map((part, index) => [inWords(part.reason), part.gpus, colours[index % colours.length]])], capacity.total, `${number(capacity.used)} of ${number(capacity.total)} GPUs in use`, true),
      h("table", { class: "list loose" },
        h("thead", null, h("tr", null, h("th", { scope: "col" }, "State"), h("th", { scope: "col", class: "right" }, "GPUs"), h("th", { scope: "col", class: "right hide-small" }, "Nodes"), h("th", { scope: "col" }, "Meaning"))),
        h("tbody", null,
          row("var(--accent)", "in use", capacity.used, null, "pods run on them"),
          parts.map((part, index) => row(colours[index % colours.length], inWords(part.reason), part.gpus, part.nodes, meaning(part)))))));
}

function inWords(reason) {
  return reason.replaceAll("-", " ");
}

// `11 GPUs are idle: their nodes are cordoned`; the amount has a column of its own.
function meaning(part) {
  return part.text.slice(part.text.indexOf(": ") + 2);
}

function row(colour, name, amount, nodes, text) {
  return h("tr", { key: name },
    h("td", { class: "nowrap" }, h("span", { class: "row" }, h("span", { class: "swatch", style: { background: colour } }), name)),
    h("td", { class: "right" }, gpus(amount)), h("td", { class: "right hide-small" }, nodes === null ? "" : number(nodes)), h("td", { class: "muted" }, text));
}

function queuesCard(app, rows) {
  const scale = gaugeScale(rows);
  return cardWith("Queues", link(app, app.path("/queues"), "All about queues"),
    rows.length === 0 ? empty("No queues", "Queues share the cluster among teams.") : h("div", { class: "stack" },
      h("table", { class: "list" },
        h("thead", null, h("tr", null, h("th", { scope: "col" }, "Queue"), h("th", { scope: "col", class: "hide-small" }, "GPUs"), h("th", { scope: "col", class: "right" }, "Used"), h("th", { scope: "col", class: "right" }, "Fair share"), h("th", { scope: "col", class: "right" }, "Asked for"))),
        h("tbody", null, rows.slice(0, MOST_QUEUES).map((queue) => h("tr", { key: queue.name },
          h("td", null, h("span", { style: { "padding-left": `${queue.depth * 16}px` } }, link(app, app.path(`/queues?queue=${encodeURIComponent(queue.name)}`), queue.name))),
          h("td", { class: "hide-small gauge-cell" }, gauge(queue, scale)),
          h("td", { class: "right" }, amount(queue.allocated.gpu)), h("td", { class: "right" }, amount(queue.fairShare.gpu)), h("td", { class: "right" }, amount(queue.requested.gpu)))))),
      rows.length > MOST_QUEUES && h("p", { class: "muted small" }, `and ${count(rows.length - MOST_QUEUES, "more queue")}`),
      gaugeKey()));
}

function latestNews(app, data) {
  const news = [
    ...evicted(data.evictions).map((each) => evictionNews(app, each)),
    ...grouped(data.events.filter((event) => !EVICTION_REASONS.has(event.reason))).map(({ first, more }) => ({
      at: first.at,
      key: `v${first.reason}${first.text}`,
      what: [h("strong", null, first.reason), h("div", { class: "cut", title: first.object }, `${first.object}${more ? ` and ${more} more` : ""}`), h("div", { class: "muted clamp", title: first.text }, first.text)],
    })),
  ].sort((a, b) => (a.at < b.at ? 1 : -1)).slice(0, MOST_NEWS);
  return card("Lately", news.length === 0 ? empty("Nothing happened yet") : h("ol", { class: "feed" }, news.map((each) => h("li", { key: each.key }, when(app, each.at), h("div", { class: "what" }, each.what)))));
}

/** Evictions of one workload for another, by the same right, together. */
function evicted(rows) {
  const groups = new Map();
  for (const row of rows) {
    const key = `${row.right} ${refName(row.workload)} ${refName(row.byWorkload)}`;
    const group = groups.get(key) || { ...row, key, pods: 0, gpus: 0 };
    group.pods += 1;
    group.gpus += row.gpus;
    groups.set(key, group);
  }
  return [...groups.values()];
}

function evictionNews(app, each) {
  return {
    at: each.at,
    key: `e${each.key}`,
    what: [h("strong", null, "Evicted"), h("div", null, workloadLink(app, each.workload)),
      h("div", { class: "muted" }, `${count(each.pods, "pod")}, ${count(each.gpus, "GPU")}, by ${each.right}`, each.byWorkload && [" for ", workloadLink(app, each.byWorkload)])],
  };
}
