// What a GPU's colour on the map means: five ways to look at the same cells.

import { assign, hashed, ramp, rampSteps } from "./colours.js";
import { refKey } from "./format.js";

export const MODES = [
  ["queue", "Queue"],
  ["gang", "Workload"],
  ["priority", "Priority"],
  ["fragmentation", "Fragmentation"],
  ["utilisation", "Utilisation"],
];

/** A painter has colour(node, gpu, sharer) for taken cells, free(node) for empty ones, and a legend. */
export function painter(mode, nodes, workloads) {
  if (mode === "gang") return { colour: (node, gpu, sharer) => hashed(owner(sharer)), legend: [] };
  if (mode === "priority") return byPriority(workloads);
  if (mode === "fragmentation") return byFragmentation();
  if (mode === "utilisation") {
    const steps = rampSteps();
    const legend = steps.map((colour, index) => [index === 0 ? "idle" : index === steps.length - 1 ? "full" : "", colour]);
    return { colour: (node, gpu) => ramp(Math.min(1, gpu.used)), whole: true, legend: legend.filter(([text], index) => text || index % 2 === 0) };
  }
  return byQueue(nodes);
}

export function owner(sharer) {
  return sharer.workload ? refKey(sharer.workload) : `${sharer.namespace}/pod/${sharer.pod}`;
}

function byQueue(nodes) {
  const names = new Set();
  for (const node of nodes) for (const gpu of node.gpus) for (const sharer of gpu.sharers) names.add(sharer.queue || "no queue");
  const colours = assign(names);
  return { colour: (node, gpu, sharer) => colours.get(sharer.queue || "no queue"), legend: [...colours] };
}

function byPriority(workloads) {
  const values = [...new Set([...workloads.values()].map((row) => row.priority))].sort((a, b) => a - b);
  const shares = new Map(values.map((value, index) => [value, (index + 1) / values.length]));
  const colour = (node, gpu, sharer) => {
    const row = sharer.workload && workloads.get(refKey(sharer.workload));
    return ramp(row ? shares.get(row.priority) : 0.5);
  };
  return { colour, legend: values.map((value) => [String(value), ramp(shares.get(value))]) };
}

// A node that is partly taken cannot take a pod that wants a whole one: its free GPUs stand out.
function byFragmentation() {
  const free = (node) => {
    const idle = node.gpus.filter((gpu) => gpu.used < 1).length;
    return idle === node.gpus.length ? null : ramp(0.45 + 0.55 * (1 - idle / node.gpus.length));
  };
  return {
    colour: (node, gpu) => (gpu.used < 1 ? free(node) || ramp(0.15) : ramp(0.12)),
    free,
    whole: true,
    legend: [["full", ramp(0.12)], ["free on a partly used node", ramp(0.8)]],
  };
}
