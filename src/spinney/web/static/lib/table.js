// A table that sorts, exports, and draws only the rows that are in sight.

import { h } from "./dom.js";
import { saveCsv } from "./export.js";
import { count } from "./format.js";

const ROW = 36;
const MARGIN = 12;
const positions = new Map();

/**
 * @param {object} app
 * @param {{id: string, title: string, columns: object[], rows: object[], key: (row: any) => string, empty: any, noun?: string, chosen?: (row: any) => boolean, foot?: any, loose?: boolean}} table
 *   A column has id, title, cell(row), and may have sort(row), value(row) for CSV, and a class.
 */
export function table(app, { id, title, noun = "row", columns, rows, key, empty, chosen = () => false, foot = null, loose = false, sortBy = "" }) {
  const wanted = app.query.get("sort") || sortBy;
  const descending = wanted.startsWith("-");
  const column = columns.find((each) => each.id === wanted.replace(/^-/, ""));
  const sorted = column && column.sort ? [...rows].sort(by(column.sort, descending)) : rows;
  if (!rows.length) return h("div", { class: "card flush" }, empty);
  const place = positions.get(id) || { top: 0, height: 900 };
  const windowed = !loose && sorted.length > 120;
  const first = windowed ? Math.max(0, Math.floor(place.top / ROW) - MARGIN) : 0;
  const last = windowed ? Math.min(sorted.length, Math.ceil((place.top + place.height) / ROW) + MARGIN) : sorted.length;
  const watch = (element) => {
    positions.set(id, { top: element.scrollTop, height: element.clientHeight });
    app.redraw();
  };
  return h("div", { class: "card flush" },
    h("header", null,
      h("span", { class: "muted small", role: "status" }, count(rows.length, noun)),
      h("button", { class: "button quiet", onClick: () => saveCsv(id, columns.filter((each) => each.value).map((each) => [each.title, each.value]), sorted) }, "Save as CSV")),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title, onScroll: (event) => watch(event.currentTarget), mounted: (element) => positions.set(id, { top: 0, height: element.clientHeight || 900 }) },
      h("table", { class: loose ? "list loose" : "list", "aria-rowcount": sorted.length + 1 },
        h("caption", { class: "sr" }, title),
        h("thead", null, h("tr", null, columns.map((each) => heading(app, each, wanted)))),
        h("tbody", null,
          first > 0 && spacer("before", first, columns.length),
          sorted.slice(first, last).map((row, index) =>
            h("tr", { key: key(row), class: chosen(row) ? "chosen" : undefined, "aria-rowindex": windowed ? first + index + 2 : undefined }, columns.map((each) => h("td", { class: each.class }, each.cell(row))))),
          last < sorted.length && spacer("after", sorted.length - last, columns.length)))),
    foot && h("footer", null, foot));
}

function spacer(key, rows, columns) {
  return h("tr", { key: `:${key}`, class: "spacer", "aria-hidden": "true" }, h("td", { colspan: columns, style: { height: `${rows * ROW}px` } }));
}

function heading(app, column, sort) {
  const name = sort.replace(/^-/, "");
  const direction = name === column.id ? (sort.startsWith("-") ? "descending" : "ascending") : undefined;
  const mark = direction === "ascending" ? "↑" : direction === "descending" ? "↓" : null;
  const next = direction === "ascending" ? `-${column.id}` : column.id;
  return h("th", { scope: "col", class: column.class, "aria-sort": direction },
    column.sort
      ? h("button", { type: "button", onClick: () => app.setQuery({ sort: next }) }, column.title, mark && h("span", { "aria-hidden": "true" }, mark))
      : column.title);
}

function by(value, descending) {
  const sign = descending ? -1 : 1;
  return (a, b) => {
    const left = value(a);
    const right = value(b);
    if (left === right) return 0;
    // What is not known comes last in either direction.
    if (left === null || left === undefined) return 1;
    if (right === null || right === undefined) return -1;
    return (left < right ? -1 : 1) * sign;
  };
}
