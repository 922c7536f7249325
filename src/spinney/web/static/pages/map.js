// The cluster map: zone → block → rack → node → GPU, each GPU a cell.

import { ClusterMap } from "../lib/clustermap.js";
import { h } from "../lib/dom.js";
import { savePng } from "../lib/export.js";
import { bytes, count, gpus, level, number, percent, refPath } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { MODES, painter } from "../lib/mapcolours.js";
import { legend } from "../lib/maplegend.js";
import { broken, empty, link, loading, partial, search, segments, workloadLink } from "../lib/parts.js";
import { leavesOf } from "./gauge.js";

const TOPOLOGY = "/api/v1/topology";

export const map = {
  title: "Cluster map",
  fill: true,
  needs: () => ({ tables: ["nodes", "workloads", "queues"], answers: [TOPOLOGY] }),
  view(app) {
    const nodes = app.store.tables.nodes;
    const mode = app.query.get("colour") || "queue";
    const state = (app.state.map ||= { tip: null });
    return [
      h("div", { class: "head" },
        h("div", null, h("h1", null, "Cluster map"), h("p", { class: "sub" }, nodes.rows.size ? remembered(state, "summary", nodes.version, () => summary([...nodes.rows.values()])) : "A cell for each GPU")),
        h("div", { class: "tools" },
          search(app, "Find a node, pod or workload"),
          nodes.rows.size > 0 && h("button", { class: "button", onClick: () => savePng("cluster-map", state.map.canvas) }, "Save as PNG"))),
      partial(nodes.partial),
      nodes.state === "loading" ? loading("the map") : nodes.state === "broken" ? broken(app, nodes.error) :
        nodes.rows.size === 0 ? h("div", { class: "card" }, empty("No nodes yet", "Nodes appear here once they join the cluster: ", h("code", null, "kubectl get nodes"))) :
          drawing(app, state, nodes, mode),
    ];
  },
};

/** A value of a version: computed anew only when the version is another. */
function remembered(state, name, version, compute) {
  const kept = (state[name] ||= {});
  if (kept.version !== version) state[name] = { version, value: compute() };
  return state[name].value;
}

function summary(nodes) {
  const cells = nodes.reduce((sum, node) => sum + node.gpus.length, 0);
  const taken = nodes.reduce((sum, node) => sum + (node.allocated.gpu || 0), 0);
  const off = nodes.filter((node) => !node.ready).length;
  const cordoned = nodes.filter((node) => node.cordoned).length;
  const notes = [`${count(nodes.length, "node")} · ${gpus(taken)} of ${count(cells, "GPU")} in use (${percent(taken, cells)})`];
  if (off) notes.push(`${number(off)} not ready`);
  if (cordoned) notes.push(`${number(cordoned)} cordoned`);
  return notes.join(" · ");
}

function chosen(app) {
  const node = app.query.get("node");
  return node ? { node, gpu: Number(app.query.get("gpu") || 0) } : null;
}

/** Levels of the topology, or of the nodes' own order where there is none. */
function levelsOf(app, rows) {
  const topology = app.store.answers.get(TOPOLOGY);
  if (topology?.state === "ready" && topology.data.levels.length) return topology.data.levels;
  const first = rows.values().next().value;
  return first ? Object.keys(first.domain) : [];
}

function drawing(app, state, nodes, mode) {
  const { workloads, queues } = app.store.tables;
  const selected = chosen(app);
  const node = selected && nodes.rows.get(selected.node);
  const version = `${nodes.version} ${workloads.version} ${queues.version} ${mode} ${document.documentElement.dataset.theme}`;
  const paint = remembered(state, "painter", version, () => painter(mode, nodes.rows.values(), workloads.rows, leavesOf([...queues.rows.values()])));
  const look = { nodes: nodes.rows, levels: levelsOf(app, nodes.rows), painter: paint, search: app.query.get("q") || "", selected, version };
  return [
    h("div", { class: "legend-row" }, segments("Colour by", MODES, mode, (value) => app.setQuery({ colour: value === "queue" ? "" : value })), legend(paint)),
    h("div", { class: "map" },
      h("canvas", {
        unmanaged: true, tabindex: "0", role: "application",
        "aria-label": "Cluster map. Arrow keys move between GPUs, plus and minus zoom, 0 shows everything, Enter opens the workload, Escape selects nothing.",
        "aria-describedby": "map-cell",
        mounted: (canvas) => { state.map = new ClusterMap(canvas, handlers(app, state)); if (selected) setTimeout(() => state.map?.reveal(selected.node), 60); },
        updated: () => state.map.update(look),
        unmounted: () => { state.map.destroy(); state.map = null; state.tip = null; },
      }),
      h("div", { class: "zoom" },
        h("button", { class: "button", "aria-label": "Zoom in", onClick: () => state.map.zoom(1.5) }, icon("plus")),
        h("button", { class: "button", "aria-label": "Zoom out", onClick: () => state.map.zoom(1 / 1.5) }, icon("minus")),
        h("button", { class: "button", "aria-label": "Show everything", onClick: () => state.map.fit() }, icon("fit"))),
      node && inspect(app, node, selected.gpu, state.map?.isOnTheRight(node.name)),
      state.tip && tip(state.tip, nodes.rows.get(state.tip.node))),
    h("p", { class: "sr", id: "map-cell", "aria-live": "polite" }, node ? inWords(node, selected.gpu) : "No GPU is selected."),
  ];
}

function handlers(app, state) {
  return {
    select: (cell) => {
      app.setQuery({ node: cell ? cell.node : "", gpu: cell && cell.gpu ? cell.gpu : "" });
      if (cell) state.map.reveal(cell.node);
    },
    hover: (cell, x, y) => {
      state.tip = cell && { ...cell, x, y };
      app.redraw();
    },
    open: (cell) => {
      const sharer = app.store.tables.nodes.rows.get(cell.node)?.gpus[cell.gpu]?.sharers[0];
      if (sharer?.workload) app.go(app.path(refPath(sharer.workload)));
    },
  };
}

function inWords(node, index) {
  const gpu = node.gpus[index];
  if (!gpu) return `${node.name} has no GPU ${index}.`;
  const users = gpu.sharers.map((sharer) => `${sharer.pod} of queue ${sharer.queue || "none"}${sharer.fraction < 1 ? `, ${percent(sharer.fraction, 1)}` : ""}`);
  return `${node.name}, GPU ${gpu.index}: ${users.join("; ") || "free"}.`;
}

function tip(place, node) {
  if (!node) return null;
  const gpu = node.gpus[place.gpu];
  const flip = place.x > 260;
  return h("div", { class: "tip", style: { left: flip ? "auto" : `${place.x + 14}px`, right: flip ? `calc(100% - ${place.x - 14}px)` : "auto", top: `${place.y + 14}px` } },
    h("strong", null, `${node.name}${gpu ? `, GPU ${gpu.index}` : ""}`),
    node.problem && h("p", { class: "small" }, node.problem),
    h("dl", null,
      gpu && !gpu.sharers.length && [h("dt", null, "State"), h("dd", null, "free")],
      gpu && gpu.sharers.map((sharer) => [
        h("dt", null, sharer.fraction < 1 ? percent(sharer.fraction, 1) : "Pod"), h("dd", null, `${sharer.namespace}/${sharer.pod}`),
        h("dt", null, "Queue"), h("dd", null, sharer.queue || "–")])));
}

function inspect(app, node, index, isOnTheRight) {
  const gpu = node.gpus[index];
  const state = node.problem || (node.ready ? (node.cordoned ? "cordoned" : "ready") : "not ready");
  const fact = (name, value) => [h("dt", null, name), h("dd", null, value)];
  const close = () => {
    app.setQuery({ node: "", gpu: "" });
    document.querySelector(".map canvas").focus();
  };
  return h("section", { class: `card panel inspect stack ${isOnTheRight ? "left" : ""}`, "aria-label": "Selected node", onKeydown: (event) => event.key === "Escape" && close() },
    h("div", { class: "row between" }, h("h2", null, node.name), h("button", { class: "button quiet", "aria-label": "Close", onClick: close }, icon("close"))),
    h("dl", { class: "facts small" },
      fact("State", state),
      Object.entries(node.domain).filter(([key]) => !key.endsWith("/hostname")).map(([key, value]) => fact(level(key), value)),
      fact("GPUs", `${gpus(node.allocated.gpu)} of ${number(node.allocatable.gpu)}`),
      fact("CPU cores", `${number(node.allocated.cpu)} of ${number(node.allocatable.cpu)}`),
      fact("Memory", `${bytes(node.allocated.memory)} of ${bytes(node.allocatable.memory)}`),
      fact("Pods", number(node.pods))),
    h("div", { class: "row between" }, h("h3", null, gpu ? `GPU ${gpu.index}` : "No such GPU"), gpu && h("span", { class: "muted small" }, gpu.sharers.length ? `${percent(gpu.used, 1)} taken` : "free")),
    gpu && gpu.sharers.map((sharer) => sharerOf(app, sharer)),
    gpu && gpu.reservation && h("p", { class: "tiny muted" }, `Held for its sharers by ${gpu.reservation}.`));
}

function sharerOf(app, sharer) {
  return h("div", { class: "sharer small stack tight", key: `${sharer.namespace}/${sharer.pod}` },
    h("div", { class: "row between" }, workloadLink(app, sharer.workload), h("span", { class: "tag" }, percent(sharer.fraction, 1))),
    h("div", { class: "muted" }, `${sharer.namespace}/${sharer.pod}`),
    sharer.queue && h("div", null, h("span", { class: "muted" }, "queue "), link(app, app.path(`/queues?queue=${encodeURIComponent(sharer.queue)}`), sharer.queue)));
}
