// Where every node lies on the cluster map: zones, blocks and racks as nested boxes, nodes as strips of GPUs.

export const CELL = 10;
export const GAP = 1;
export const PITCH = CELL + 3;
const PAD = 5;
export const HEADER = 13;
const SPACE = 8;
// Names of the outer domains can be read from far away too: so many pixels, for at most so many domains of a level.
const READABLE = 15;
const MOST_READABLE = 60;

/** Levels that group nodes: all but the one that names each node itself. */
function groupLevels(levels, nodes) {
  return levels.filter((level) => {
    const values = new Set();
    let labelled = 0;
    for (const node of nodes) {
      if (!(level in node.domain)) continue;
      labelled += 1;
      values.add(node.domain[level]);
    }
    return labelled > 0 && (values.size < labelled || labelled === 1) && !level.endsWith("/hostname");
  });
}

/** Boxes and strips in a plane of their own units, shaped to suit a canvas of so many pixels. */
export function layout(nodes, levels, pixels) {
  const sorted = [...nodes].sort((a, b) => collate(a.name, b.name));
  const root = group(sorted, groupLevels(levels, sorted), 0, "");
  const { fit } = arranged(root, pixels);
  // What is small on the canvas gets larger headers, and is arranged again.
  if (fit * HEADER < READABLE && enlarge([root], READABLE / fit)) arranged(root, pixels);
  const boxes = [];
  const strips = [];
  collect(root, 0, 0, boxes, strips);
  return { width: root.size.width, height: root.size.height, boxes, strips };
}

/** Place everything in the width that shows it largest; returns how large that is. */
function arranged(root, pixels) {
  let best = null;
  const widest = leaves(root).reduce((sum, leaf) => sum + leaf.size.width + SPACE, 8 * PAD);
  for (let tries = 0, width = widest; tries < 40; tries += 1, width *= 0.88) {
    const size = place(root, width);
    const fit = Math.min(pixels.width / size.width, pixels.height / size.height);
    if (best === null || fit > best.fit) best = { fit, width };
  }
  place(root, best.width);
  return best;
}

/** Larger headers for the levels whose domains are few and hold others; tells whether there are any. */
function enlarge(parts, header) {
  const inside = parts.flatMap((part) => part.children || []).filter((part) => part.children);
  if (!inside.length || inside.length > MOST_READABLE) return false;
  for (const part of inside) part.header = header;
  enlarge(inside, header);
  return true;
}

function collate(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

function group(nodes, levels, depth, name) {
  if (depth === levels.length) return leaf(nodes, levels[depth - 1] || "", name);
  const parts = new Map();
  for (const node of nodes) {
    const value = node.domain[levels[depth]] || "";
    if (!parts.has(value)) parts.set(value, []);
    parts.get(value).push(node);
  }
  const children = [...parts].sort((a, b) => a[0].localeCompare(b[0], "en", { numeric: true })).map(([value, members]) => group(members, levels, depth + 1, value));
  // A level with a single domain says nothing: its content stands for it.
  if (children.length === 1 && depth > 0 && !children[0].nodes) return { ...children[0], name };
  return { level: depth ? levels[depth - 1] : "", name, children, header: HEADER };
}

function leaf(nodes, level, name) {
  const most = nodes.reduce((gpus, node) => Math.max(gpus, node.gpus.length), 1);
  const width = most * (CELL + GAP);
  const columns = Math.max(1, Math.round(Math.sqrt((nodes.length * PITCH) / width / 1.1)));
  const rows = Math.max(1, Math.ceil(nodes.length / columns));
  const size = { width: 2 * PAD + columns * (width + PAD) - PAD, height: HEADER + rows * PITCH + PAD };
  return { level, name, nodes, rows, stripWidth: width, size };
}

function leaves(part) {
  return part.nodes ? [part] : part.children.flatMap(leaves);
}

// Boxes flow from left to right and wrap at a width, as words do.
function place(part, width) {
  if (part.nodes) return part.size;
  const inner = Math.max(width - 2 * PAD, 1);
  let x = 0;
  let y = 0;
  let tallest = 0;
  let reached = 0;
  for (const child of part.children) {
    const size = place(child, inner);
    if (x > 0 && x + size.width > inner) {
      x = 0;
      y += tallest + SPACE;
      tallest = 0;
    }
    child.x = PAD + x;
    child.y = part.header + y;
    x += size.width + SPACE;
    reached = Math.max(reached, x - SPACE);
    tallest = Math.max(tallest, size.height);
  }
  part.size = { width: reached + 2 * PAD, height: part.header + y + tallest + PAD };
  return part.size;
}

function collect(part, x, y, boxes, strips) {
  if (part.name || part.level) boxes.push({ level: part.level, name: part.name, x, y, width: part.size.width, height: part.size.height, header: part.header || HEADER, leaf: Boolean(part.nodes) });
  if (!part.nodes) {
    for (const child of part.children) collect(child, x + child.x, y + child.y, boxes, strips);
    return;
  }
  part.nodes.forEach((node, index) => {
    const column = Math.floor(index / part.rows);
    const row = index % part.rows;
    const strip = { name: node.name, gpus: node.gpus.length, domain: node.domain, x: x + PAD + column * (part.stripWidth + PAD), y: y + HEADER + row * PITCH, above: null, below: null };
    if (row > 0) {
      strip.above = strips[strips.length - 1];
      strip.above.below = strip;
    }
    strips.push(strip);
  });
}
