// What a GPU's colour on the map means: five ways to look at the same cells.

import { assign, hashed, isDark, ramp, rampSteps } from "./colours.js";
import { number, refKey } from "./format.js";

export const MODES = [
  ["queue", "Queue"],
  ["gang", "Workload"],
  ["priority", "Priority"],
  ["fragmentation", "Fragmentation"],
  ["utilisation", "Utilisation"],
];
const NO_QUEUE = "no queue";

/**
 * A painter has colour(node, gpu, sharer) for taken cells, free(node) for empty ones, a legend, and a look: what paints
 * nodes that did not change in other colours has another one.
 * @param {string[]} queues all queues that are known, so that each has the same colour on every page
 */
export function painter(mode, nodes, workloads, queues) {
  const made = painterOf(mode, nodes, workloads, queues);
  return { ...made, look: `${mode} ${isDark()} ${made.look || ""}` };
}

function painterOf(mode, nodes, workloads, queues) {
  if (mode === "gang") return { colour: (node, gpu, sharer) => hashed(owner(sharer)), legend: [], note: "Each workload has one colour; where two share it, outlines tell them apart." };
  if (mode === "priority") return byPriority(workloads);
  if (mode === "fragmentation") return byFragmentation();
  if (mode === "utilisation") {
    const steps = rampSteps();
    const legend = [["a little of the GPU is taken", steps[1]], ["half", steps[3]], ["all", steps[steps.length - 1]]];
    return { colour: (node, gpu) => ramp(Math.min(1, gpu.used)), whole: true, legend };
  }
  return byQueue(nodes, queues);
}

export function owner(sharer) {
  return sharer.workload ? refKey(sharer.workload) : `${sharer.namespace}/pod/${sharer.pod}`;
}

const queuesOfNodes = new WeakMap();

/** The queues on a node; a row is a new object whenever it changes, so this is computed once for each. */
function queuesOn(node) {
  let names = queuesOfNodes.get(node);
  if (!names) {
    names = [...new Set(node.gpus.flatMap((gpu) => gpu.sharers.map((sharer) => sharer.queue || NO_QUEUE)))];
    queuesOfNodes.set(node, names);
  }
  return names;
}

function byQueue(nodes, queues) {
  const present = new Set();
  for (const node of nodes) for (const name of queuesOn(node)) present.add(name);
  const colours = assign(new Set([...queues, ...present]));
  return { colour: (node, gpu, sharer) => colours.get(sharer.queue || NO_QUEUE), legend: [...colours].filter(([name]) => present.has(name)), look: [...colours.keys()].join() };
}

function byPriority(workloads) {
  const values = [...new Set([...workloads.values()].map((row) => row.priority))].sort((a, b) => a - b);
  const shares = new Map(values.map((value, index) => [value, values.length === 1 ? 0.6 : 0.25 + (0.75 * index) / (values.length - 1)]));
  const colour = (node, gpu, sharer) => {
    const row = sharer.workload && workloads.get(refKey(sharer.workload));
    return ramp(row ? shares.get(row.priority) : 0.1);
  };
  let sum = 0;
  // A workload that gets another priority changes the look: which one does not matter.
  for (const row of workloads.values()) sum = (sum * 31 + row.priority) | 0;
  return { colour, look: `${values.join()} ${sum}`, legend: values.map((value) => [`priority ${number(value)}`, ramp(shares.get(value))]) };
}

// A node that is partly taken cannot take a pod that wants a whole one: its free GPUs stand out.
function byFragmentation() {
  const free = (node) => {
    const idle = node.gpus.filter((gpu) => gpu.used < 1).length;
    return idle === node.gpus.length ? null : ramp(0.5 + 0.5 * (1 - idle / node.gpus.length));
  };
  return {
    colour: (node, gpu) => (gpu.used < 1 ? free(node) || ramp(0.15) : ramp(0.1)),
    free,
    whole: true,
    legend: [["taken", ramp(0.1)], ["free on a node that is partly taken", ramp(0.85)]],
  };
}
