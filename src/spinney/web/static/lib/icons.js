// Icons of our own, as strokes on a grid of 16.

import { h } from "./dom.js";

const PATHS = {
  overview: "M2.5 2.5h4.5v6h-4.5zM9 2.5h4.5v3.5h-4.5zM9 8.5h4.5v5h-4.5zM2.5 11h4.5v2.5h-4.5z",
  map: "M2.5 2.5h3v3h-3zM6.5 2.5h3v3h-3zM10.5 2.5h3v3h-3zM2.5 6.5h3v3h-3zM6.5 6.5h3v3h-3zM10.5 6.5h3v3h-3zM2.5 10.5h3v3h-3zM6.5 10.5h3v3h-3zM10.5 10.5h3v3h-3z",
  workloads: "M8 2l5.5 3L8 8 2.5 5zM2.5 8L8 11l5.5-3M2.5 11L8 14l5.5-3",
  queues: "M3 3v10M3 5h7M3 8h10M3 11h5",
  waiting: "M4 2.5h8M4 13.5h8M5 2.5c0 3 6 4 6 5.5s-6 2.5-6 5.5M11 2.5c0 3-6 4-6 5.5s6 2.5 6 5.5",
  evictions: "M9.500 5V2.500h-7v11h7V11M6 8h7.500M11 5.500L13.500 8 11 10.500",
  "what-if": "M3 13V3M3 8h3.500c3 0 2.500-4 6.500-4M6.500 8c3 0 2.500 4 6.500 4M11 2l2 2-2 2M11 10l2 2-2 2",
  history: "M2.500 8a5.500 5.500 0 1 0 1.700-4M2.500 2.500V5H5M8 5v3.200l2.200 1.300",
  theme: "M8 2.500a5.500 5.500 0 1 0 0 11zM8 2.500a5.500 5.500 0 0 1 0 11",
  plus: "M8 3.500v9M3.500 8h9",
  minus: "M3.500 8h9",
  fit: "M2.500 6V2.500H6M10 2.500h3.500V6M13.500 10v3.500H10M6 13.500H2.500V10",
  close: "M4 4l8 8M12 4l-8 8",
  play: "M5 3l8 5-8 5z",
  pause: "M5.500 3v10M10.500 3v10",
};

export function icon(name) {
  return h("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true", focusable: "false" }, h("path", { d: PATHS[name] }));
}
