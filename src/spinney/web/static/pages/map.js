// The cluster map: zone → block → rack → node → GPU, each GPU a cell.

import { ClusterMap } from "../lib/clustermap.js";
import { h } from "../lib/dom.js";
import { savePng } from "../lib/export.js";
import { bytes, count, gpus, level, number, percent } from "../lib/format.js";
import { MODES, painter } from "../lib/mapcolours.js";
import { broken, empty, link, loading, partial, search, segments, workloadLink } from "../lib/parts.js";

const TOPOLOGY = "/api/v1/topology";

export const map = {
  title: "Cluster map",
  needs: () => ({ tables: ["nodes", "workloads"], answers: [TOPOLOGY] }),
  view(app) {
    const nodes = app.store.tables.nodes;
    const mode = app.query.get("colour") || "queue";
    return [
      h("div", { class: "head" },
        h("div", null, h("h1", null, "Cluster map"), h("p", { class: "sub" }, summary([...nodes.rows.values()]))),
        h("div", { class: "tools" },
          search(app, "Find a node, pod or workload"),
          segments("Colour by", MODES, mode, (value) => app.setQuery({ colour: value === "queue" ? "" : value })))),
      partial(nodes.partial),
      nodes.state === "loading" ? loading("the map") : nodes.state === "broken" ? broken(app, nodes.error) :
        nodes.rows.size === 0 ? h("div", { class: "card" }, empty("No nodes", "Nodes of the cluster appear here as cells, one for each GPU.")) :
          drawing(app, nodes, app.store.tables.workloads.rows, mode),
    ];
  },
};

function summary(nodes) {
  const cells = nodes.reduce((sum, node) => sum + node.gpus.length, 0);
  const taken = nodes.reduce((sum, node) => sum + node.gpus.reduce((used, gpu) => used + Math.min(1, gpu.used), 0), 0);
  const off = nodes.filter((node) => !node.ready).length;
  const cordoned = nodes.filter((node) => node.cordoned).length;
  const notes = [`${count(nodes.length, "node")}, ${gpus(taken)} of ${count(cells, "GPU")} in use (${percent(taken, cells)})`];
  if (off) notes.push(`${number(off)} not ready`);
  if (cordoned) notes.push(`${number(cordoned)} cordoned`);
  return notes.join(", ");
}

function chosen(app) {
  const node = app.query.get("node");
  return node ? { node, gpu: Number(app.query.get("gpu") || 0) } : null;
}

/** Levels of the topology, or of the nodes' own order where there is none. */
export function levelsOf(app, rows) {
  const topology = app.store.answers.get(TOPOLOGY);
  if (topology?.state === "ready" && topology.data.levels.length) return topology.data.levels;
  const first = rows.values().next().value;
  return first ? Object.keys(first.domain) : [];
}

function drawing(app, nodes, workloads, mode) {
  const state = (app.state.map ||= { tip: null });
  const selected = chosen(app);
  const node = selected && nodes.rows.get(selected.node);
  const look = { nodes: nodes.rows, levels: levelsOf(app, nodes.rows), workloads, mode, search: app.query.get("q") || "", selected, version: `${nodes.version} ${app.store.tables.workloads.version}` };
  const legend = painter(mode, nodes.rows.values(), workloads).legend;
  return [
    h("div", { class: "stack" },
      h("div", { class: "row between" },
        h("div", { class: "legend" },
          legend.slice(0, 12).map(([text, colour]) => h("span", { key: text + colour }, h("span", { class: "swatch", style: { background: colour } }), text)),
          h("span", null, h("span", { class: "swatch", style: { background: "var(--cell)", border: "1px solid var(--line-strong)" } }), "free"),
          h("span", null, h("span", { class: "swatch", style: { background: "none", border: "2px solid var(--bad)" } }), "not ready"),
          h("span", null, h("span", { class: "swatch", style: { background: "none", border: "2px solid var(--muted)" } }), "cordoned")),
        h("button", { class: "button quiet", onClick: () => savePng("cluster-map", state.map.canvas) }, "Save as PNG")),
      h("div", { class: node ? "map with-inspect" : "map" },
        h("canvas", {
          unmanaged: true, tabindex: "0", role: "application",
          "aria-label": "Cluster map. Arrow keys move between GPUs, plus and minus zoom, 0 shows everything, Enter opens the workload.",
          "aria-describedby": "map-cell",
          mounted: (canvas) => { state.map = new ClusterMap(canvas, handlers(app, state)); if (selected) setTimeout(() => state.map?.reveal(selected.node), 60); },
          updated: () => state.map.update(look),
          unmounted: () => { state.map.destroy(); state.map = null; state.tip = null; },
        }),
        h("div", { class: "zoom" },
          h("button", { class: "button", "aria-label": "Zoom in", onClick: () => state.map.zoom(1.5) }, "+"),
          h("button", { class: "button", "aria-label": "Zoom out", onClick: () => state.map.zoom(1 / 1.5) }, "−"),
          h("button", { class: "button", "aria-label": "Show everything", onClick: () => state.map.fit() }, "⤢")),
        state.tip && tip(state.tip, nodes.rows.get(state.tip.node), workloads)),
      h("p", { class: "sr", id: "map-cell", "aria-live": "polite" }, node ? inWords(node, selected.gpu) : "No GPU is selected."),
      node && inspect(app, node, selected.gpu)),
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
      if (sharer?.workload) app.go(app.path(workloadPath(sharer)));
    },
  };
}

function workloadPath(sharer) {
  return workloadLink({ path: (path) => path, follow() {} }, sharer.workload).props.href;
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

function inspect(app, node, index) {
  const gpu = node.gpus[index];
  return h("section", { class: "card inspect", "aria-label": "Selected node" },
    h("header", null, h("h2", null, node.name), h("button", { class: "button quiet", onClick: () => app.setQuery({ node: "", gpu: "" }) }, "Close")),
    h("div", { class: "grid" },
      h("dl", { class: "facts col-4" },
        Object.entries(node.domain).map(([key, value]) => [h("dt", null, level(key)), h("dd", null, value)]),
        h("dt", null, "State"), h("dd", null, node.problem || (node.ready ? (node.cordoned ? "cordoned" : "ready") : "not ready"))),
      h("dl", { class: "facts col-4" },
        h("dt", null, "GPUs"), h("dd", null, `${gpus(node.allocated.gpu)} of ${number(node.allocatable.gpu)}`),
        h("dt", null, "CPU cores"), h("dd", null, `${number(node.allocated.cpu)} of ${number(node.allocatable.cpu)}`),
        h("dt", null, "Memory"), h("dd", null, `${bytes(node.allocated.memory)} of ${bytes(node.allocatable.memory)}`),
        h("dt", null, "Pods"), h("dd", null, number(node.pods))),
      h("div", { class: "col-4 stack tight" },
        h("h3", null, gpu ? `GPU ${gpu.index}` : "No such GPU"),
        gpu && gpu.reservation && h("p", { class: "small muted" }, `shared, held by ${gpu.reservation}`),
        gpu && (gpu.sharers.length === 0 ? h("p", { class: "muted" }, "free") : gpu.sharers.map((sharer) =>
          h("div", { class: "row small", key: sharer.pod }, h("span", { class: "tag" }, percent(sharer.fraction, 1)), workloadLink(app, sharer.workload), h("span", { class: "muted" }, sharer.pod), link(app, app.path(`/queues?queue=${encodeURIComponent(sharer.queue)}`), sharer.queue)))))));
}
