// Evictions: who had to go for whom, by which right, and what it cost.

import { h } from "../lib/dom.js";
import { count, gpus, refName } from "../lib/format.js";
import { broken, empty, loading, partial, select, when, workloadLink } from "../lib/parts.js";
import { table } from "../lib/table.js";

export const evictions = {
  title: "Evictions",
  needs: () => ({ tables: ["evictions"] }),
  view(app) {
    const { state, rows, partial: unread, error } = app.store.tables.evictions;
    const all = [...rows.values()];
    const rights = [...new Set(all.map((row) => row.right))].sort();
    const right = app.query.get("right") || "";
    const lost = all.reduce((sum, row) => sum + (row.gpuHoursLost || 0), 0);
    return [
      h("div", { class: "head" },
        h("div", null, h("h1", null, "Evictions"), h("p", { class: "sub" }, all.length ? `${count(all.length, "pod")} evicted, ${gpus(lost)} GPU hours lost` : "Who was evicted for whom, and by which right")),
        all.length > 0 && h("div", { class: "tools" }, select("By right", [["", "Any right"], ...rights.map((each) => [each, each])], right, (value) => app.setQuery({ right: value })))),
      partial(unread),
      state === "loading" ? loading("evictions") : state === "broken" ? broken(app, error) : list(app, all.filter((row) => !right || row.right === right)),
    ];
  },
};

function list(app, rows) {
  return table(app, {
    id: "evictions",
    title: "Evictions",
    noun: "eviction",
    rows,
    key: (row) => `${row.at} ${row.pod}`,
    sortBy: "-at",
    empty: empty("Nothing was evicted", "Pods that are reclaimed, preempted or moved appear here, as long as their events are kept."),
    columns: [
      { id: "at", title: "When", cell: (row) => when(app, row.at), sort: (row) => row.at, value: (row) => row.at },
      { id: "pod", title: "Pod", class: "hide-small hide-medium", cell: (row) => row.pod, sort: (row) => row.pod, value: (row) => row.pod },
      { id: "workload", title: "Evicted", class: "name", cell: (row) => workloadLink(app, row.workload), sort: (row) => refName(row.workload), value: (row) => refName(row.workload) },
      { id: "queue", title: "Queue", class: "hide-small", cell: (row) => row.queue || "–", sort: (row) => row.queue, value: (row) => row.queue },
      { id: "right", title: "By right of", cell: (row) => h("span", { class: "tag" }, row.right), sort: (row) => row.right, value: (row) => row.right },
      { id: "by", title: "For", class: "hide-small", cell: (row) => (row.byWorkload ? workloadLink(app, row.byWorkload) : row.byQueue || "–"), value: (row) => (row.byWorkload ? refName(row.byWorkload) : row.byQueue) },
      { id: "gpus", title: "GPUs", class: "right", cell: (row) => gpus(row.gpus), sort: (row) => row.gpus, value: (row) => row.gpus },
      { id: "lost", title: "GPU hours lost", class: "right hide-small", cell: (row) => gpus(row.gpuHoursLost), sort: (row) => row.gpuHoursLost, value: (row) => row.gpuHoursLost },
      { id: "text", title: "Message", class: "why hide-small", cell: (row) => h("span", { title: row.text }, row.text), value: (row) => row.text },
    ],
  });
}
