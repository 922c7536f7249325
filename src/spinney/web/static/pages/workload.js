// One workload: what it waits for and why, its parts in their order, and how far they got.

import { h } from "../lib/dom.js";
import { bytes, count, exact, gpus, level, number, span, words } from "../lib/format.js";
import { broken, card, empty, figure, link, loading, grouped, phaseTag, when } from "../lib/parts.js";

const STEPS = ["created", "gated", "released", "decided", "bound", "ready"];
// A step without a time that later steps have left behind: pods of a Job, for example, have no gate.
const PASSED = { gated: "without a gate", released: "without a gate" };
const MOST_PODS = 60;

function address(app) {
  return `/api/v1/workloads/${app.parts.slice(1).map(encodeURIComponent).join("/")}`;
}

export const workload = {
  title: (app) => app.parts[3],
  needs: (app) => ({ answers: [address(app)] }),
  view(app) {
    const answer = app.store.answers.get(address(app)) || { state: "loading" };
    const [, namespace, kind, name] = app.parts;
    return [
      h("div", { class: "head" },
        h("div", null, h("p", { class: "sub" }, link(app, app.path("/workloads"), "Workloads"), ` / ${namespace} / ${kind}`), h("h1", null, name)),
        h("div", { class: "tools" }, answer.state === "ready" && phaseTag(answer.data.workload.phase), h("a", { class: "button", href: app.path(`/map?q=${encodeURIComponent(name)}`), onClick: (event) => app.follow(event, app.path(`/map?q=${encodeURIComponent(name)}`)) }, "On the map"))),
      answer.state === "loading" ? loading("the workload") :
        answer.state === "broken" ? (answer.status === 404 ? h("div", { class: "card" }, empty("No such workload", "It was deleted, or you may not see it.")) : broken(app, answer.error)) :
          content(app, answer.data),
    ];
  },
};

function content(app, data) {
  const row = data.workload;
  return h("div", { class: "grid" },
    h("div", { class: "card col-3" }, figure("Pods ready", `${number(row.ready)}/${number(row.total)}`, `${number(row.placed)} placed, at least ${number(row.minimum)} needed`)),
    h("div", { class: "card col-3" }, figure("GPUs", gpus(row.gpus), ["queue ", link(app, app.path(`/queues?queue=${encodeURIComponent(row.queue)}`), row.queue || "none")])),
    h("div", { class: "card col-3" }, figure("Priority", number(row.priority), row.priorityClass || "no class")),
    h("div", { class: "card col-3" }, startFigure(app, row)),
    row.why && h("div", { class: "col-12" }, why(row)),
    app.past ? h("p", { class: "muted small col-12" }, "Parts, steps and events of a workload are not recorded: ", link(app, app.present(), "see them now"), ".") : now(app, data));
}

/** What only the present has. */
function now(app, data) {
  const row = data.workload;
  return [
    h("div", { class: "col-12" }, card("How far it got", timeline(app, data.timeline, row))),
    h("div", { class: "col-7" }, card("Parts", h("div", { class: "tree" }, data.groups.length ? h("ul", null, data.groups.map((group) => branch(app, group))) : empty("No parts yet")))),
    h("div", { class: "col-5" }, card("Events", data.events.length === 0 ? empty("No events", "The cluster forgets them after an hour.") : feed(app, data.events))),
  ];
}

function feed(app, events) {
  const latest = [...events].sort((a, b) => (a.at < b.at ? 1 : -1));
  return h("ol", { class: "feed" }, grouped(latest).map(({ first, more }) =>
    h("li", { key: `${first.reason} ${first.text}` }, when(app, first.at),
      h("div", { class: "what" }, h("strong", null, first.reason), h("div", null, `${first.object}${more ? ` and ${number(more)} more` : ""}`), h("div", { class: "muted clamp", title: first.text }, first.text)))));
}

function startFigure(app, row) {
  if (row.phase !== "Waiting") return figure("Started", when(app, row.started), [`placed by ${row.scheduler}, created `, when(app, row.created)]);
  const text = row.expectedStart ? row.expectedStart.text : "start not known";
  return figure("Place in line", row.line === null ? "–" : number(row.line), h("span", { title: row.expectedStart?.at ? exact(row.expectedStart.at) : undefined }, text));
}

function why(row) {
  const missing = Object.entries(row.why.missing || {});
  return card("Why it waits", h("div", { class: "why-box stack tight" },
    h("p", null, row.why.text),
    missing.length > 0 && h("p", { class: "muted small" }, "Missing: ", missing.map(([resource, amount]) => amountOf(resource, amount)).join(", ")),
    row.why.advice.length > 0 && [h("h3", null, "What would help"), h("ul", null, row.why.advice.map((text) => h("li", { key: text }, text)))]));
}

function amountOf(resource, amount) {
  if (resource === "gpu") return `${gpus(amount)} ${amount === 1 ? "GPU" : "GPUs"}`;
  if (resource === "cpu") return count(amount, "CPU core");
  return resource === "memory" ? `${bytes(amount)} of memory` : `${number(amount)} ${resource}`;
}

function timeline(app, steps, row) {
  const byStep = new Map(steps.map((step) => [step.step, step]));
  const start = Date.parse(row.created);
  return h("ol", { class: "timeline" }, STEPS.map((name) => {
    const step = byStep.get(name);
    const passed = !step && STEPS.slice(STEPS.indexOf(name)).some((later) => byStep.has(later));
    const done = passed || (step && step.pods >= row.total);
    return h("li", { class: done ? "done" : "", key: name },
      h("div", { class: "step" }, name),
      step ? [h("div", { class: "muted" }, `${number(step.pods)} of ${number(row.total)} pods`), h("time", { class: "muted tiny", datetime: step.at, title: exact(step.at) }, `after ${span((Date.parse(step.at) - start) / 1000)}`)] : h("div", { class: "muted" }, passed ? PASSED[name] || "passed" : "–"));
  }));
}

function branch(app, group) {
  const short = group.ready < group.minimum;
  return h("li", { key: `${group.kind}/${group.name}` },
    h("div", { class: "line" },
      h("span", { class: "muted" }, group.kind), h("strong", null, group.name),
      h("span", { class: `tag ${short ? "wait" : "good"}` }, h("i", { "aria-hidden": "true" }), `${number(group.ready)}/${number(group.total)} ready, at least ${number(group.minimum)}`),
      group.phase && h("span", { class: "muted" }, group.phase),
      group.startsAfter.length > 0 && h("span", { class: "tag" }, `starts after ${group.startsAfter.join(", ")}`)),
    group.detail && h("p", { class: "muted clamp", title: group.detail }, group.detail),
    (group.groups.length > 0 || group.pods.length > 0) && h("ul", null,
      group.groups.map((child) => branch(app, child)),
      group.pods.slice(0, MOST_PODS).map((pod) => podLine(app, pod)),
      group.pods.length > MOST_PODS && h("li", { class: "muted" }, `and ${number(group.pods.length - MOST_PODS)} more pods`)));
}

function podLine(app, pod) {
  const domains = Object.entries(pod.domain).filter(([key]) => !key.endsWith("hostname"));
  const place = domains.map(([key, value]) => `${level(key)} ${value}`).join(", ");
  return h("li", { key: `pod/${pod.name}` }, h("div", { class: "pod" },
    h("span", null, phaseTag(pod.ready ? "Running" : pod.phase === "Running" ? "Starting" : pod.phase)),
    h("span", { title: pod.reason ? `${pod.name}: ${pod.reason.text}` : pod.name }, pod.name, pod.reason && h("span", { class: "muted" }, ` ${words(pod.reason.code).toLowerCase()}`)),
    pod.node ? link(app, app.path(`/map?node=${encodeURIComponent(pod.node)}&gpu=${pod.gpus.indices[0] ?? 0}`), pod.node) : h("span", { class: "muted" }, "–"),
    h("span", { class: "muted hide-small", title: place }, pod.node && place ? domains[domains.length - 1][1] : ""),
    h("span", { class: "muted right hide-small" }, pod.gpus.count > 0 ? count(pod.gpus.count, "GPU") : "")));
}
