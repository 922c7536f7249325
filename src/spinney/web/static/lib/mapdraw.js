// Draws the cluster map: boxes of domains, a cell for each GPU, outlines of gangs, and names where there is room for them.

import { cssColour, inkOn } from "./colours.js";
import { percent } from "./format.js";
import { owner } from "./mapcolours.js";
import { CELL, GAP, HEADER, PITCH } from "./maplayout.js";

const FONT = "Inter, system-ui, sans-serif";
// Sizes of a cell in pixels from which it is drawn by itself, gangs are outlined, and sharers are named in it.
const CELLS_FROM = 2;
const OUTLINES_FROM = 6;
const NAMES_FROM = 64;
const NODE_NAMES_FROM = 11;

/** Draw everything in sight. */
export function drawMap(map) {
  map.context.setTransform(1, 0, 0, 1, 0, 0);
  drawRegion(map, readColours(), { left: 0, top: 0, right: map.canvas.width, bottom: map.canvas.height });
}

/** Draw some nodes anew, with what lies around them, until the time is over; takes those it drew out of the set. */
export function drawNodes(map, names, milliseconds) {
  const colours = readColours();
  const end = performance.now() + milliseconds;
  for (const name of names) {
    names.delete(name);
    const strip = map.places.get(name);
    if (strip && map.isInSight(strip)) drawRegion(map, colours, regionOf(map, strip));
    if (performance.now() > end) return;
  }
}

// The whole pixels that a change of a node can touch: its cells, the seams to its neighbours, and outlines.
function regionOf({ view, ratio }, strip) {
  const margin = PITCH - CELL + 3 + 3 / view.scale;
  const across = (at) => (at * view.scale + view.x) * ratio;
  const down = (at) => (at * view.scale + view.y) * ratio;
  const names = (PITCH - CELL) * view.scale >= NODE_NAMES_FROM ? 16 * ratio : 0;
  return {
    left: Math.floor(across(strip.x - margin)), top: Math.floor(down(strip.y - margin) - names),
    right: Math.ceil(across(strip.x + strip.gpus * (CELL + GAP) + margin)), bottom: Math.ceil(down(strip.y + CELL + margin)),
  };
}

/** Draw a region of the canvas, in whole pixels of it: what it shows is the same as if all were drawn. */
function drawRegion(map, colours, region) {
  const { context, view, ratio } = map;
  context.save();
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.beginPath();
  context.rect(region.left, region.top, region.right - region.left, region.bottom - region.top);
  context.clip();
  context.fillStyle = colours.surface;
  context.fillRect(region.left, region.top, region.right - region.left, region.bottom - region.top);
  const plane = {
    left: (region.left / ratio - view.x) / view.scale, right: (region.right / ratio - view.x) / view.scale,
    top: (region.top / ratio - view.y) / view.scale, bottom: (region.bottom / ratio - view.y) / view.scale,
  };
  drawPlane(map, colours, {
    boxes: map.plane.boxes.filter((box) => touches(plane, box.x, box.y, box.width, box.height)),
    strips: map.plane.strips.filter((strip) => touches(plane, strip.x, strip.y - PITCH, strip.gpus * (CELL + GAP), CELL + 2 * PITCH)),
  });
  context.restore();
}

function touches(plane, x, y, width, height) {
  return x < plane.right && x + width > plane.left && y < plane.bottom && y + height > plane.top;
}

function drawPlane(map, colours, { boxes, strips }) {
  const { context, view, ratio } = map;
  context.setTransform(view.scale * ratio, 0, 0, view.scale * ratio, view.x * ratio, view.y * ratio);
  drawBoxes(map, colours, boxes);
  const size = CELL * view.scale;
  if (size >= CELLS_FROM) drawCells(map, colours, strips);
  else drawStrips(map, colours, strips);
  drawProblems(map, colours, strips);
  if (size >= OUTLINES_FROM) outline(map, strips, () => true, colours.gang, 1);
  const chosen = map.chosenOwner();
  if (chosen) outline(map, strips, (key) => key === chosen, colours.ink, 2.5);
  drawSelected(map, colours);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  drawDomainNames(map, colours, boxes);
  if ((PITCH - CELL) * view.scale >= NODE_NAMES_FROM) drawNodeNames(map, colours, strips);
  if (size >= NAMES_FROM) drawSharerNames(map, colours, strips);
}

// Canvases do not know CSS variables.
function readColours() {
  const names = { free: "--cell", line: "--line", strong: "--line-strong", ink: "--ink", muted: "--muted", bad: "--bad", surface: "--surface", rack: "--bg" };
  const colours = {};
  for (const name in names) colours[name] = cssColour(names[name]);
  colours.gang = `${colours.ink}b0`;
  return colours;
}

function drawBoxes({ context, view }, colours, boxes) {
  context.lineWidth = 1 / view.scale;
  for (const box of boxes) {
    context.beginPath();
    context.roundRect(box.x, box.y, box.width, box.height, 3);
    if (box.leaf) {
      context.fillStyle = colours.rack;
      context.fill();
    }
    context.strokeStyle = box.leaf ? colours.line : colours.strong;
    context.stroke();
  }
}

// Rectangles of one colour together: changing the colour costs more than drawing.
class Batches {
  constructor() {
    this.byColour = new Map();
  }

  add(colour, x, y, width, height) {
    const batch = this.byColour.get(colour);
    if (batch) batch.push(x, y, width, height);
    else this.byColour.set(colour, [x, y, width, height]);
  }

  draw(context) {
    for (const [colour, cells] of this.byColour) {
      context.fillStyle = colour;
      for (let at = 0; at < cells.length; at += 4) context.fillRect(cells[at], cells[at + 1], cells[at + 2], cells[at + 3]);
    }
  }
}

function drawCells(map, colours, strips) {
  const grounds = new Batches();
  const cells = new Batches();
  const seams = new Batches();
  for (const strip of strips) {
    const node = map.nodes.get(strip.name);
    if (!node) continue;
    const below = strip.below && map.nodes.get(strip.below.name);
    const free = (map.painter.free && map.painter.free(node)) || colours.free;
    node.gpus.forEach((gpu, index) => {
      const x = strip.x + index * (CELL + GAP);
      if (!gpu.sharers.length || gpu.used < 1) grounds.add(map.search && !named(node, map.search) ? colours.free : free, x, strip.y, CELL, CELL);
      drawSharers(map, colours, cells, node, gpu, x, strip.y);
      // Cells of one gang grow together.
      const key = soleOwner(node, index);
      if (!key || map.painter.whole) return;
      const colour = isFound(map, node, gpu.sharers[0]) ? map.painter.colour(node, gpu, gpu.sharers[0]) : colours.line;
      if (soleOwner(node, index + 1) === key) seams.add(colour, x + CELL, strip.y, GAP, CELL);
      if (below && soleOwner(below, index) === key) seams.add(colour, x, strip.y + CELL, CELL, PITCH - CELL);
    });
  }
  grounds.draw(map.context);
  cells.draw(map.context);
  map.context.globalAlpha = 0.4;
  seams.draw(map.context);
  map.context.globalAlpha = 1;
}

function drawSharers(map, colours, cells, node, gpu, x, y) {
  if (!gpu.sharers.length) return;
  if (map.painter.whole) {
    cells.add(map.search && !gpu.sharers.some((sharer) => isFound(map, node, sharer)) ? colours.line : map.painter.colour(node, gpu, gpu.sharers[0]), x, y, CELL, CELL);
    return;
  }
  for (const [sharer, top, height] of slices(gpu)) {
    cells.add(isFound(map, node, sharer) ? map.painter.colour(node, gpu, sharer) : colours.line, x, y + top, CELL, height);
  }
}

/** Sharers of a GPU stand on each other, from the bottom up: [sharer, top, height] within a cell. */
function slices(gpu) {
  let top = CELL;
  return gpu.sharers.map((sharer) => {
    const height = CELL * Math.min(1, sharer.fraction);
    top -= height;
    const gap = gpu.sharers.length > 1 ? 0.25 : 0;
    return [sharer, Math.max(top, 0) + gap, height - gap];
  });
}

// From far away a node is one strip, filled by colour as far as it is taken.
function drawStrips(map, colours, strips) {
  const batches = new Batches();
  const taken = new Batches();
  for (const strip of strips) {
    const node = map.nodes.get(strip.name);
    if (!node) continue;
    batches.add(colours.free, strip.x, strip.y, strip.gpus * (CELL + GAP), CELL + 2);
    // GPUs of one colour side by side are one rectangle.
    for (let index = 0; index < node.gpus.length; ) {
      const colour = stripColour(map, colours, node, index);
      let next = index + 1;
      while (next < node.gpus.length && stripColour(map, colours, node, next) === colour) next += 1;
      if (colour) taken.add(colour, strip.x + index * (CELL + GAP), strip.y, (next - index) * (CELL + GAP), CELL + 2);
      index = next;
    }
  }
  batches.draw(map.context);
  taken.draw(map.context);
}

function stripColour(map, colours, node, index) {
  const gpu = node.gpus[index];
  if (!gpu.sharers.length) return "";
  return isFound(map, node, gpu.sharers[0]) ? map.painter.colour(node, gpu, gpu.sharers[0]) : colours.line;
}

function drawProblems({ context, nodes, view }, colours, strips) {
  const far = CELL * view.scale < OUTLINES_FROM;
  context.lineWidth = Math.max(1 / view.scale, 0.8);
  for (const strip of strips) {
    const node = nodes.get(strip.name);
    if (!node || (node.ready && !node.cordoned)) continue;
    const width = strip.gpus * (CELL + GAP) - GAP;
    const colour = node.ready ? colours.muted : colours.bad;
    if (far) {
      context.fillStyle = colour;
      context.fillRect(strip.x, strip.y, width, CELL);
      continue;
    }
    context.strokeStyle = colour;
    context.beginPath();
    for (let x = 0; x < width; x += CELL / 2) {
      context.moveTo(strip.x + x, strip.y + CELL);
      context.lineTo(strip.x + Math.min(x + CELL / 2, width), strip.y);
    }
    context.rect(strip.x, strip.y, width, CELL);
    context.stroke();
  }
}

/**
 * Outline each gang that is wanted: lines only where a neighbour is not of the same gang. Lines are thin rectangles,
 * since a path of thousands of pieces takes far longer to draw.
 */
function outline({ context, nodes, view }, strips, isWanted, colour, width) {
  const thick = width / view.scale;
  const half = thick / 2;
  context.fillStyle = colour;
  for (const strip of strips) {
    const node = nodes.get(strip.name);
    if (!node) continue;
    const above = strip.above && nodes.get(strip.above.name);
    const below = strip.below && nodes.get(strip.below.name);
    for (let index = 0; index < node.gpus.length; index += 1) {
      const key = soleOwner(node, index);
      if (!key || !isWanted(key)) continue;
      const x = strip.x + index * (CELL + GAP);
      const across = soleOwner(node, index + 1) === key ? CELL + GAP : CELL;
      const joined = below && soleOwner(below, index) === key;
      const down = joined ? PITCH : CELL;
      if (soleOwner(node, index - 1) !== key) context.fillRect(x - half, strip.y - half, thick, down + thick);
      if (soleOwner(node, index + 1) !== key) context.fillRect(x + CELL - half, strip.y - half, thick, down + thick);
      if (!above || soleOwner(above, index) !== key) context.fillRect(x - half, strip.y - half, across + thick, thick);
      if (!joined) context.fillRect(x - half, strip.y + CELL - half, across + thick, thick);
    }
  }
}

const soleOwners = new WeakMap();

/** The workload that has a GPU for itself; empty for a GPU that is free, shared or not there. */
function soleOwner(node, index) {
  let byGpu = soleOwners.get(node);
  if (!byGpu) {
    byGpu = node.gpus.map((gpu) => (gpu.sharers.length === 1 ? owner(gpu.sharers[0]) : ""));
    soleOwners.set(node, byGpu);
  }
  return byGpu[index] || "";
}

function drawSelected({ context, selected, places, view }, colours) {
  const place = selected && places.get(selected.node);
  if (!place) return;
  // Dark on light on dark: it stands out on any colour.
  for (const [colour, width] of [[colours.ink, 5], [colours.surface, 2]]) {
    context.strokeStyle = colour;
    context.lineWidth = width / view.scale;
    context.strokeRect(place.x + selected.gpu * (CELL + GAP), place.y, CELL, CELL);
  }
}

function drawDomainNames({ context, view, width: canvasWidth }, colours, boxes) {
  context.fillStyle = colours.muted;
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (const box of boxes) {
    const size = Math.min(12, (9 / HEADER) * box.header * view.scale);
    if (size < 7) continue;
    context.font = `${size}px ${FONT}`;
    const left = box.x * view.scale + view.x;
    const width = box.width * view.scale;
    if (left > canvasWidth || left + width < 0) continue;
    const text = shorten(context, box.name, width - 8);
    if (text) context.fillText(text, left + 5 * view.scale, (box.y + box.header / 2) * view.scale + view.y);
  }
}

function drawNodeNames({ context, view, nodes }, colours, strips) {
  context.font = `11px ${FONT}`;
  context.textBaseline = "bottom";
  for (const strip of strips) {
    const node = nodes.get(strip.name);
    if (!node) continue;
    context.fillStyle = node.ready ? colours.muted : colours.bad;
    const text = node.problem ? `${node.name}: ${node.problem}` : node.name;
    context.fillText(shorten(context, text, strip.gpus * (CELL + GAP) * view.scale), strip.x * view.scale + view.x, strip.y * view.scale + view.y - 1);
  }
}

function drawSharerNames(map, colours, strips) {
  const { context, view } = map;
  const width = CELL * view.scale - 12;
  context.textBaseline = "top";
  for (const strip of strips) {
    const node = map.nodes.get(strip.name);
    if (!node) continue;
    node.gpus.forEach((gpu, index) => {
      const x = (strip.x + index * (CELL + GAP)) * view.scale + view.x + 6;
      for (const [sharer, top, height] of slices(gpu)) {
        const colour = map.painter.colour(node, gpu, sharer);
        context.fillStyle = inkOn(colour.startsWith("#") ? colour : colours.ink);
        const lines = [sharer.workload ? sharer.workload.name : sharer.pod, sharer.pod, sharer.queue, sharer.fraction < 1 ? percent(sharer.fraction, 1) : ""].filter(Boolean);
        lines.slice(0, Math.floor((height * view.scale - 6) / 15)).forEach((text, row) => {
          context.font = `${row === 0 ? "600 " : ""}12px ${FONT}`;
          context.fillText(shorten(context, text, width), x, (strip.y + top) * view.scale + view.y + 5 + row * 15);
        });
      }
    });
  }
}

function isFound(map, node, sharer) {
  if (!map.search || named(node, map.search)) return true;
  return `${sharer.namespace}/${sharer.pod} ${sharer.queue} ${sharer.workload ? sharer.workload.name : ""}`.toLowerCase().includes(map.search);
}

function named(node, text) {
  return node.name.toLowerCase().includes(text) || Object.values(node.domain).includes(text);
}

function shorten(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  for (let length = Math.min(text.length - 1, Math.floor(width / 4)); length > 2; length -= 1) {
    const shorter = `${text.slice(0, length)}…`;
    if (context.measureText(shorter).width <= width) return shorter;
  }
  return "";
}
