// Workloads of all kinds: filter, sort, search.

import { h } from "../lib/dom.js";
import { gpus, number, refKey } from "../lib/format.js";
import { PHASES, broken, empty, loading, partial, phaseTag, search, select, when, workloadLink } from "../lib/parts.js";
import { table } from "../lib/table.js";

export const workloads = {
  title: "Workloads",
  needs: () => ({ tables: ["workloads"] }),
  view(app) {
    const { state, rows, partial: unread, error } = app.store.tables.workloads;
    const all = [...rows.values()];
    return [
      h("div", { class: "head" },
        h("div", null, h("h1", null, "Workloads"), h("p", { class: "sub" }, "What users created, of every kind")),
        h("div", { class: "tools" },
          search(app, "Search by name"),
          filter(app, "phase", "Any phase", PHASES),
          filter(app, "queue", "Any queue", names(all, (row) => row.queue)),
          filter(app, "namespace", "Any namespace", names(all, (row) => row.ref.namespace)),
          filter(app, "kind", "Any kind", names(all, (row) => row.ref.kind)))),
      partial(unread),
      state === "loading" ? loading("workloads") : state === "broken" ? broken(app, error) : list(app, all),
    ];
  },
};

function filter(app, name, any, values) {
  return select(any.replace("Any", "By"), [["", any], ...values.map((value) => [value, value])], app.query.get(name) || "", (value) => app.setQuery({ [name]: value }));
}

function names(rows, value) {
  return [...new Set(rows.map(value))].filter(Boolean).sort();
}

/** Whether a workload passes the search and the filters in the address. */
function matches(app, row) {
  const query = app.query;
  const text = (query.get("q") || "").toLowerCase();
  return (
    (!text || `${row.ref.namespace}/${row.ref.kind}/${row.ref.name} ${row.gangs.join(" ")}`.toLowerCase().includes(text)) &&
    (!query.get("phase") || row.phase === query.get("phase")) &&
    (!query.get("queue") || row.queue === query.get("queue")) &&
    (!query.get("namespace") || row.ref.namespace === query.get("namespace")) &&
    (!query.get("kind") || row.ref.kind === query.get("kind"))
  );
}

function list(app, all) {
  const rows = all.filter((row) => matches(app, row));
  return table(app, {
    id: "workloads",
    title: "Workloads",
    noun: "workload",
    rows,
    key: (row) => refKey(row.ref),
    sortBy: "name",
    empty: all.length ? empty("Nothing matches", "Change the search or the filters.") : empty("No workloads yet", "Create one: ", h("code", null, "kubectl apply -f examples/demo/1-inference.yaml")),
    columns: [
      { id: "name", title: "Workload", class: "name", cell: (row) => workloadLink(app, row.ref), sort: (row) => `${row.ref.name} ${row.ref.kind}`, value: (row) => `${row.ref.kind.toLowerCase()}/${row.ref.name}` },
      { id: "namespace", title: "Namespace", class: "hide-small", cell: (row) => row.ref.namespace, sort: (row) => row.ref.namespace, value: (row) => row.ref.namespace },
      { id: "phase", title: "Phase", cell: (row) => phaseTag(row.phase), sort: (row) => PHASES.indexOf(row.phase), value: (row) => row.phase },
      { id: "ready", title: "Ready", class: "right", cell: (row) => h("span", { title: `${row.placed} placed, at least ${row.minimum} needed` }, `${row.ready}/${row.total}`), sort: (row) => row.ready / Math.max(1, row.total), value: (row) => `${row.ready}/${row.total}` },
      { id: "gpus", title: "GPUs", class: "right", cell: (row) => gpus(row.gpus), sort: (row) => row.gpus, value: (row) => row.gpus },
      { id: "queue", title: "Queue", class: "hide-small", cell: (row) => row.queue || "–", sort: (row) => row.queue, value: (row) => row.queue },
      { id: "priority", title: "Priority", class: "right hide-small", cell: (row) => h("span", { title: row.priorityClass }, number(row.priority)), sort: (row) => row.priority, value: (row) => row.priority },
      { id: "scheduler", title: "Placed by", class: "hide-small hide-medium", cell: (row) => row.scheduler, sort: (row) => row.scheduler, value: (row) => row.scheduler },
      { id: "created", title: "Created", class: "right hide-small", cell: (row) => when(app, row.created), sort: (row) => -Date.parse(row.created), value: (row) => row.created },
      { id: "why", title: "Why it waits", class: "why hide-small", cell: (row) => h("span", { title: row.why ? row.why.text : undefined }, row.why ? row.why.text : ""), value: (row) => (row.why ? row.why.text : "") },
    ],
  });
}
