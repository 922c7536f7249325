// Small parts that several pages use: tags, times, links, states, bars.

import { h } from "./dom.js";
import { ago, exact, number, refName, refPath } from "./format.js";

/** Phases of workloads, in the order in which they are listed. */
export const PHASES = ["Waiting", "Starting", "Running", "Suspended", "Succeeded", "Failed", "Terminating"];
const TONES = { Running: "good", Waiting: "wait", Starting: "busy", Suspended: "", Succeeded: "", Failed: "bad", Terminating: "", Pending: "wait", Unknown: "bad" };

export function phaseTag(phase) {
  return h("span", { class: `tag ${TONES[phase] ?? ""}` }, h("i", { "aria-hidden": "true" }), phase);
}

/** A relative time with the exact one on hover. */
export function when(app, time) {
  return time ? h("time", { datetime: time, title: exact(time) }, ago(time, app.now)) : h("span", { class: "muted" }, "–");
}

export function link(app, path, ...children) {
  return h("a", { href: path, onClick: (event) => app.follow(event, path) }, children);
}

export function workloadLink(app, ref) {
  return ref ? link(app, app.path(refPath(ref)), refName(ref)) : h("span", { class: "muted" }, "–");
}

export function card(title, ...children) {
  return h("section", { class: "card" }, h("header", null, h("h2", null, title)), children);
}

export function cardWith(title, tools, ...children) {
  return h("section", { class: "card" }, h("header", null, h("h2", null, title), h("div", { class: "row" }, tools)), children);
}

export function empty(title, ...hint) {
  return h("div", { class: "state" }, h("strong", null, title), hint.length ? h("p", null, hint) : null);
}

export function loading(what) {
  return h("div", { class: "state", role: "status", "aria-busy": "true" },
    h("div", { class: "skeleton", style: { width: "40%" } }), h("div", { class: "skeleton", style: { width: "60%" } }), h("span", { class: "sr" }, `Loading ${what}…`));
}

export function broken(app, error, retry = true) {
  return h("div", { class: "state", role: "alert" },
    h("strong", null, "This cannot be shown"),
    h("p", null, error),
    retry && h("button", { class: "button", onClick: () => app.store.start() }, "Try again"));
}

/** What of a list could not be read, if anything. */
export function partial(unread) {
  if (!unread || !unread.length) return null;
  return h("div", { class: "notice", role: "note" }, unread.map((part) => h("p", null, part.text)));
}

/** Shares of a whole, side by side. Parts are [label, value, colour]. */
export function bar(parts, total, label, tall = false) {
  return h("div", { class: tall ? "bar tall" : "bar", role: "img", "aria-label": label },
    parts.map(([name, value, colour]) => h("span", { title: `${name}: ${number(value)}`, style: { width: `${total > 0 ? Math.min(100, (100 * value) / total) : 0}%`, background: colour } })));
}

export function segments(label, options, value, choose) {
  return h("div", { class: "segments", role: "group", "aria-label": label },
    options.map(([id, text]) => h("button", { type: "button", "aria-pressed": String(id === value), onClick: () => choose(id) }, text)));
}

export function select(label, options, value, choose) {
  return h("select", { class: "field", "aria-label": label, value, onChange: (event) => choose(event.currentTarget.value) },
    options.map(([id, text]) => h("option", { value: id, selected: id === value }, text)));
}

export function search(app, label) {
  return h("input", { type: "search", class: "field", placeholder: label, "aria-label": label, value: app.query.get("q") || "", onInput: (event) => app.setQuery({ q: event.currentTarget.value }, true) });
}

export function figure(label, value, note, unit) {
  return h("div", { class: "figure" }, h("div", { class: "label" }, label), h("div", { class: "value" }, value, unit ? h("small", null, ` ${unit}`) : null), note ? h("div", { class: "note" }, note) : null);
}

/** Events that differ only in the object's name and in numbers, as one with the number of further objects. */
export function grouped(events) {
  const groups = new Map();
  for (const event of events) {
    const name = event.object.slice(event.object.indexOf("/") + 1);
    const key = `${event.reason} ${event.text.replaceAll(name, "…").replace(/\d+/g, "#")}`;
    const group = groups.get(key) || { first: event, objects: new Set() };
    group.objects.add(event.object);
    groups.set(key, group);
  }
  return [...groups.values()].map(({ first, objects }) => ({ first, more: objects.size - 1 }));
}
