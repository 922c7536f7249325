// What the colours of a cluster map stand for, in words.

import { h } from "./dom.js";
import { number } from "./format.js";

const MOST = 12;

export function legend(painter) {
  const entry = (text, style) => h("span", { key: text }, h("span", { class: "swatch", style }), text);
  const more = painter.legend.length - MOST;
  return h("div", { class: "legend" },
    painter.legend.slice(0, MOST).map(([text, colour]) => entry(text, { background: colour })),
    painter.note && h("span", { key: "note" }, painter.note),
    more > 0 && h("span", null, `and ${number(more)} more`),
    entry("free", { background: "var(--cell)", border: "1px solid var(--line-strong)" }),
    entry("not ready", { background: "none", border: "2px solid var(--bad)" }),
    entry("cordoned", { background: "none", border: "2px solid var(--muted)" }));
}
