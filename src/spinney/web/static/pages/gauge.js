// A queue's GPUs in one line: what it uses and borrows, what waits, and its quota, fair share and limit.

import { h } from "../lib/dom.js";
import { gpus, limit } from "../lib/format.js";

/** The amount that the longest gauge stands for: what queues have and may have. Of what waits it shows the beginning. */
export function gaugeScale(queues) {
  const most = Math.max(1, ...queues.flatMap((queue) => [queue.allocated.gpu || 0, queue.fairShare.gpu || 0, queue.quota.gpu || 0]));
  return queues.some((queue) => queue.requested.gpu > 0) ? most * 1.2 : most;
}

/** Names of queues that have no queue below them: workloads are in these. */
export function leavesOf(queues) {
  const parents = new Set(queues.map((queue) => queue.parent));
  return queues.map((queue) => queue.name).filter((name) => !parents.has(name));
}

/** A number in a table; nothing is quiet. */
export function amount(value, unit = gpus) {
  return value === 0 ? h("span", { class: "zero" }, "0") : unit(value);
}

export function gauge(queue, scale) {
  const used = queue.allocated.gpu || 0;
  const borrowed = Math.min(queue.borrowed.gpu || 0, used);
  const asked = queue.requested.gpu || 0;
  const at = (amount) => `${Math.min(100, (100 * amount) / scale)}%`;
  const part = (name, from, size) => size > 0 && h("span", { class: name, style: { left: at(from), width: at(Math.min(size, scale - from)) } });
  const mark = (name, amount) => amount !== null && amount > 0 && amount <= scale * 1.001 && h("span", { class: `mark ${name}`, style: { left: `calc(${at(amount)} - 1px)` } });
  const label = `${queue.name}: ${gpus(used)} GPUs used, ${gpus(borrowed)} of them borrowed, ${gpus(asked)} asked for, quota ${limit(queue.quota.gpu)}, fair share ${gpus(queue.fairShare.gpu)}, limit ${limit(queue.limit.gpu)}`;
  return h("div", { class: "gauge", role: "img", "aria-label": label, title: label },
    part("fill", 0, used - borrowed), part("borrowed", used - borrowed, borrowed), part(used + asked > scale ? "pending cut-off" : "pending", used, asked),
    mark("quota", queue.quota.gpu), mark("share", queue.fairShare.gpu), mark("limit", queue.limit.gpu));
}

export function gaugeKey() {
  const entry = (name, text) => h("span", null, h("span", { class: `key ${name}`, "aria-hidden": "true" }), text);
  return h("div", { class: "legend" }, entry("used", "used"), entry("borrowed", "borrowed"), entry("pending", "asked for"), entry("mark", "quota"), entry("mark share", "fair share"), entry("mark limit", "limit"));
}
