// Mouse, fingers and keys on the cluster map.

import { CELL, GAP } from "./maplayout.js";

// Up to this width the panel lies below the map.
const PANEL_BELOW = 800;
const ZOOM_KEYS = { "+": 1.25, "=": 1.25, "-": 0.8 };

export function listen(map) {
  const { canvas } = map;
  const fingers = new Map();
  let pressed = null;
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    map.zoom(Math.exp(-event.deltaY / 400), ...at(event));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, at(event));
    pressed = { at: at(event), moved: false };
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    const before = fingers.get(event.pointerId);
    if (before && fingers.size === 2) {
      const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
      const distance = Math.hypot(before[0] - other[0], before[1] - other[1]);
      map.zoom(Math.hypot(x - other[0], y - other[1]) / Math.max(distance, 1), other[0], other[1]);
      pressed.moved = true;
    } else if (before) {
      if (Math.hypot(x - pressed.at[0], y - pressed.at[1]) > 4) pressed.moved = true;
      if (pressed.moved) map.pan(x - before[0], y - before[1]);
    } else map.hover(map.cellAt(x, y), x, y);
    if (before) fingers.set(event.pointerId, [x, y]);
  });
  const release = (event) => {
    fingers.delete(event.pointerId);
    if (pressed && !pressed.moved && event.type === "pointerup") map.events.select(map.cellAt(...at(event)));
    if (!fingers.size) pressed = null;
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => map.hover(null, 0, 0));
  canvas.addEventListener("dblclick", (event) => map.zoom(2, ...at(event)));
  canvas.addEventListener("keydown", (event) => press(map, event));
}

function press(map, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key in ZOOM_KEYS) zoom(map, ZOOM_KEYS[event.key]);
  else if (event.key === "0") map.fit();
  else if (event.key === "Enter" && map.selected) map.events.open(map.selected);
  else if (event.key === "Escape") map.events.select(null);
  else if (event.key.startsWith("Arrow")) step(map, event.key);
  else return;
  event.preventDefault();
}

// Keys zoom to the chosen GPU, as the wheel zooms to the mouse, and bring it to the middle of what its panel leaves free.
function zoom(map, factor) {
  const place = map.selected && map.places.get(map.selected.node);
  map.zoom(factor);
  if (!place) return;
  const { scale, x, y } = map.view;
  const middle = map.width > PANEL_BELOW ? 0.36 * map.width : map.width / 2;
  map.pan(middle - ((place.x + map.selected.gpu * (CELL + GAP) + CELL / 2) * scale + x), map.height / 2 - ((place.y + CELL / 2) * scale + y));
}

// Arrow keys go from GPU to GPU, and from node to node as they lie.
function step(map, key) {
  const strips = map.plane.strips;
  if (!strips.length) return;
  const place = map.selected && map.places.get(map.selected.node);
  if (!place) {
    map.events.select({ node: strips[0].name, gpu: 0 });
    return;
  }
  const across = key === "ArrowLeft" ? -1 : key === "ArrowRight" ? 1 : 0;
  const gpu = map.selected.gpu + across;
  if (across && gpu >= 0 && gpu < place.gpus) {
    map.events.select({ node: place.name, gpu });
    return;
  }
  const next = across ? nearest(strips, place, across, 0) : nearest(strips, place, 0, key === "ArrowUp" ? -1 : 1);
  if (next) map.events.select({ node: next.name, gpu: across < 0 ? next.gpus - 1 : across > 0 ? 0 : Math.min(map.selected.gpu, next.gpus - 1) });
}

function nearest(strips, from, across, down) {
  let best = null;
  for (const strip of strips) {
    const x = (strip.x - from.x) * (across || 1);
    const y = (strip.y - from.y) * (down || 1);
    if (across ? x <= 0 : y <= 0) continue;
    const distance = across ? x + Math.abs(y) * 4 : y + Math.abs(x) * 4;
    if (best === null || distance < best.distance) best = { distance, strip };
  }
  return best && best.strip;
}
