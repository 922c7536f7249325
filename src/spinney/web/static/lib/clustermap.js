// The cluster map: draws every GPU on a canvas, and lets mouse, fingers and keys move over it.

import { cssColour } from "./colours.js";
import { CELL, GAP, layout } from "./maplayout.js";
import { owner, painter } from "./mapcolours.js";

const MARGIN = 12;
const LARGEST = 8;
// Above this many nodes a moving map shows the last picture, scaled, and is drawn sharply once it rests.
const MANY_NODES = 1500;

export class ClusterMap {
  constructor(canvas, { select, hover, open }) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.events = { select, hover, open };
    this.nodes = new Map();
    this.workloads = new Map();
    this.plane = { width: 1, height: 1, boxes: [], strips: [] };
    this.view = { scale: 1, x: 0, y: 0 };
    this.fitted = true;
    this.selected = null;
    this.hovered = null;
    this.search = "";
    this.picture = null;
    this.frame = 0;
    this.rest = 0;
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(canvas);
    this.listen();
    this.resize();
  }

  destroy() {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.rest);
  }

  /** Show other rows; the layout is made anew only if nodes came, went or moved. */
  update({ nodes, levels, workloads, mode, search, selected, version }) {
    const look = `${version} ${mode} ${search} ${selected ? `${selected.node} ${selected.gpu}` : ""} ${document.documentElement.dataset.theme}`;
    if (look === this.look) return;
    this.look = look;
    const shape = shapeOf(nodes, levels);
    this.nodes = nodes;
    this.levels = levels;
    this.workloads = workloads;
    this.mode = mode;
    this.search = search.toLowerCase();
    this.selected = selected;
    this.painter = painter(mode, nodes.values(), workloads);
    if (shape !== this.shape) {
      this.shape = shape;
      this.arrange();
    }
    this.draw();
  }

  get legend() {
    return this.painter ? this.painter.legend : [];
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth;
    const height = this.canvas.clientHeight;
    if (!width || !height || (width === this.width && height === this.height && ratio === this.ratio)) return;
    this.ratio = ratio;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.arrange();
    this.draw();
  }

  arrange() {
    if (!this.width) return;
    this.plane = layout(this.nodes.values(), this.levels || [], this.width / this.height);
    this.places = new Map(this.plane.strips.map((strip) => [strip.name, strip]));
    if (this.fitted) this.fit();
  }

  fit() {
    const { width, height } = this.plane;
    const scale = Math.min((this.width - 2 * MARGIN) / width, (this.height - 2 * MARGIN) / height, 3);
    this.view = { scale, x: (this.width - width * scale) / 2, y: (this.height - height * scale) / 2 };
    this.fitted = true;
    this.draw();
  }

  zoom(factor, atX = this.width / 2, atY = this.height / 2) {
    const scale = Math.min(Math.max(this.view.scale * factor, 0.02), LARGEST);
    const change = scale / this.view.scale;
    this.view = { scale, x: atX - (atX - this.view.x) * change, y: atY - (atY - this.view.y) * change };
    this.moved();
  }

  pan(x, y) {
    this.view = { ...this.view, x: this.view.x + x, y: this.view.y + y };
    this.moved();
  }

  moved() {
    this.fitted = false;
    clearTimeout(this.rest);
    if (this.plane.strips.length > MANY_NODES && this.picture) {
      this.draw(true);
      this.rest = setTimeout(() => this.draw(), 120);
    } else this.draw();
  }

  /** Draw before the next frame, however often it is asked for. */
  draw(rough = false) {
    this.rough = rough;
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (!this.width || !this.painter) return;
      if (this.rough) this.drawRough();
      else this.drawSharp();
    });
  }

  drawRough() {
    const { context, picture, view, ratio } = this;
    const change = view.scale / picture.view.scale;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = cssColour("--surface");
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(picture.image, (view.x - picture.view.x * change) * ratio, (view.y - picture.view.y * change) * ratio, picture.image.width * change, picture.image.height * change);
  }

  drawSharp() {
    const { context, view, ratio } = this;
    this.colours = { free: cssColour("--cell"), line: cssColour("--line"), strong: cssColour("--line-strong"), ink: cssColour("--ink"), muted: cssColour("--muted"), bad: cssColour("--bad"), surface: cssColour("--surface"), accent: cssColour("--accent") };
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = this.colours.surface;
    context.fillRect(0, 0, this.width, this.height);
    context.setTransform(view.scale * ratio, 0, 0, view.scale * ratio, view.x * ratio, view.y * ratio);
    this.drawBoxes();
    const inSight = this.plane.strips.filter((strip) => this.isInSight(strip));
    if (CELL * view.scale >= 2) this.drawCells(inSight);
    else this.drawStrips(inSight);
    this.drawProblems(inSight);
    this.drawOutlines(inSight);
    this.drawLabels();
    if (this.plane.strips.length > MANY_NODES) this.keepPicture();
  }

  isInSight(strip) {
    const { scale, x, y } = this.view;
    const left = strip.x * scale + x;
    const top = strip.y * scale + y;
    return left < this.width && top < this.height && left + strip.gpus * (CELL + GAP) * scale > 0 && top + CELL * scale > 0;
  }

  drawBoxes() {
    const { context, colours, view } = this;
    for (const box of this.plane.boxes) {
      context.strokeStyle = box.leaf ? colours.line : colours.strong;
      context.lineWidth = 1 / view.scale;
      context.strokeRect(box.x, box.y, box.width, box.height);
    }
  }

  drawLabels() {
    const { context, colours, view, ratio } = this;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colours.muted;
    context.textBaseline = "middle";
    for (const box of this.plane.boxes) {
      const left = box.x * view.scale + view.x;
      const width = box.width * view.scale;
      const size = Math.min(12, 9 * view.scale);
      if (size < 7 || left > this.width || left + width < 0) continue;
      context.font = `${size}px system-ui, sans-serif`;
      const text = shorten(context, box.name, width - 8);
      if (text) context.fillText(text, left + 5 * view.scale, box.y * view.scale + view.y + 6.5 * view.scale);
    }
  }

  // Cells of one colour together: changing the colour costs more than drawing.
  drawCells(strips) {
    const batches = new Map();
    const add = (colour, x, y, width, height) => {
      const batch = batches.get(colour);
      if (batch) batch.push(x, y, width, height);
      else batches.set(colour, [x, y, width, height]);
    };
    for (const strip of strips) {
      const node = this.nodes.get(strip.name);
      if (!node) continue;
      const dim = this.search && !matches(node, this.search);
      const free = (this.painter.free && this.painter.free(node)) || this.colours.free;
      node.gpus.forEach((gpu, index) => {
        const x = strip.x + index * (CELL + GAP);
        if (!gpu.sharers.length) {
          add(dim ? this.colours.free : free, x, strip.y, CELL, CELL);
          return;
        }
        if (gpu.used < 1 || gpu.sharers.length > 1) add(this.colours.free, x, strip.y, CELL, CELL);
        if (this.painter.whole) {
          add(dim ? this.colours.line : this.painter.colour(node, gpu, gpu.sharers[0]), x, strip.y, CELL, CELL);
          return;
        }
        let top = strip.y + CELL;
        for (const sharer of gpu.sharers) {
          const height = CELL * Math.min(1, sharer.fraction);
          top -= height;
          add(dim ? this.colours.line : this.painter.colour(node, gpu, sharer), x, Math.max(top, strip.y), CELL, height);
        }
      });
    }
    for (const [colour, cells] of batches) {
      this.context.fillStyle = colour;
      for (let at = 0; at < cells.length; at += 4) this.context.fillRect(cells[at], cells[at + 1], cells[at + 2], cells[at + 3]);
    }
  }

  // From far away a node is one strip, filled as far as it is taken.
  drawStrips(strips) {
    for (const strip of strips) {
      const node = this.nodes.get(strip.name);
      if (!node) continue;
      const width = strip.gpus * (CELL + GAP);
      this.context.fillStyle = this.colours.free;
      this.context.fillRect(strip.x, strip.y, width, CELL + 2);
      const taken = node.gpus.filter((gpu) => gpu.sharers.length);
      if (!taken.length) continue;
      this.context.fillStyle = this.painter.colour(node, taken[0], taken[0].sharers[0]);
      this.context.fillRect(strip.x, strip.y, (width * taken.length) / node.gpus.length, CELL + 2);
    }
  }

  drawProblems(strips) {
    const { context, colours, view } = this;
    context.lineWidth = Math.max(1 / view.scale, 1.2);
    for (const strip of strips) {
      const node = this.nodes.get(strip.name);
      if (!node || (node.ready && !node.cordoned)) continue;
      const width = strip.gpus * (CELL + GAP) - GAP;
      context.strokeStyle = node.ready ? colours.muted : colours.bad;
      context.beginPath();
      for (let x = 0; x < width; x += CELL) {
        context.moveTo(strip.x + x, strip.y + CELL);
        context.lineTo(strip.x + Math.min(x + CELL, width), strip.y);
      }
      context.rect(strip.x, strip.y, width, CELL);
      context.stroke();
    }
  }

  // Neighbouring cells of one workload share an outline; all cells of the chosen one get a strong one.
  drawOutlines(strips) {
    const { context, colours, view } = this;
    const chosen = this.chosenOwner();
    const fine = CELL * view.scale >= 7;
    if (!fine && !chosen && !this.selected) return;
    for (const strip of strips) {
      const node = this.nodes.get(strip.name);
      if (!node) continue;
      for (let index = 0; index < node.gpus.length; ) {
        const gpu = node.gpus[index];
        const who = gpu.sharers.length === 1 ? owner(gpu.sharers[0]) : "";
        const isChosen = chosen && gpu.sharers.some((sharer) => owner(sharer) === chosen);
        let next = index + 1;
        while (who && next < node.gpus.length && node.gpus[next].sharers.length === 1 && owner(node.gpus[next].sharers[0]) === who) next += 1;
        if ((who && fine) || isChosen) {
          context.strokeStyle = isChosen ? colours.ink : colours.strong;
          context.lineWidth = (isChosen ? 2 : 1) / view.scale;
          context.strokeRect(strip.x + index * (CELL + GAP), strip.y, (next - index) * (CELL + GAP) - GAP, CELL);
        }
        index = next;
      }
    }
    const place = this.selected && this.places.get(this.selected.node);
    if (place) {
      context.strokeStyle = colours.accent;
      context.lineWidth = 3 / view.scale;
      context.strokeRect(place.x + this.selected.gpu * (CELL + GAP) - 1, place.y - 1, CELL + 2, CELL + 2);
    }
  }

  chosenOwner() {
    const cell = this.hovered || this.selected;
    const gpu = cell && this.nodes.get(cell.node)?.gpus[cell.gpu];
    return gpu && gpu.sharers.length ? owner(gpu.sharers[0]) : "";
  }

  keepPicture() {
    const image = this.picture?.image || document.createElement("canvas");
    image.width = this.canvas.width;
    image.height = this.canvas.height;
    image.getContext("2d").drawImage(this.canvas, 0, 0);
    this.picture = { image, view: this.view };
  }

  /** The node and GPU at a point of the canvas. */
  cellAt(x, y) {
    const planeX = (x - this.view.x) / this.view.scale;
    const planeY = (y - this.view.y) / this.view.scale;
    for (const strip of this.plane.strips) {
      if (planeY < strip.y || planeY > strip.y + CELL + 2 || planeX < strip.x) continue;
      const gpu = Math.floor((planeX - strip.x) / (CELL + GAP));
      if (gpu < Math.max(strip.gpus, 1)) return { node: strip.name, gpu };
    }
    return null;
  }

  /** Bring a node into sight. */
  reveal(name) {
    const strip = this.places?.get(name);
    if (!strip || this.isWhollyInSight(strip)) return;
    const scale = Math.max(this.view.scale, 1);
    this.view = { scale, x: this.width / 2 - strip.x * scale, y: this.height / 2 - strip.y * scale };
    this.moved();
  }

  isWhollyInSight(strip) {
    const { scale, x, y } = this.view;
    const left = strip.x * scale + x;
    const top = strip.y * scale + y;
    return left >= 0 && top >= 0 && left + strip.gpus * (CELL + GAP) * scale <= this.width && top + CELL * scale <= this.height;
  }

  listen() {
    const { canvas } = this;
    const fingers = new Map();
    let pressed = null;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), ...at(event));
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
        this.zoom(Math.hypot(x - other[0], y - other[1]) / Math.max(distance, 1), other[0], other[1]);
        pressed.moved = true;
      } else if (before) {
        if (Math.hypot(x - pressed.at[0], y - pressed.at[1]) > 4) pressed.moved = true;
        if (pressed.moved) this.pan(x - before[0], y - before[1]);
      } else this.hover(this.cellAt(x, y), x, y);
      if (before) fingers.set(event.pointerId, [x, y]);
    });
    const release = (event) => {
      fingers.delete(event.pointerId);
      if (pressed && !pressed.moved && event.type === "pointerup") this.events.select(this.cellAt(...at(event)));
      if (!fingers.size) pressed = null;
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => this.hover(null, 0, 0));
    canvas.addEventListener("dblclick", (event) => this.zoom(2, ...at(event)));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  hover(cell, x, y) {
    const same = cell?.node === this.hovered?.node && cell?.gpu === this.hovered?.gpu;
    this.hovered = cell;
    this.events.hover(cell, x, y);
    if (!same) this.draw();
  }

  key(event) {
    const zooms = { "+": 1.25, "=": 1.25, "-": 0.8 };
    if (event.key in zooms) this.zoom(zooms[event.key]);
    else if (event.key === "0") this.fit();
    else if (event.key === "Enter" && this.selected) this.events.open(this.selected);
    else if (event.key === "Escape") this.events.select(null);
    else if (event.key.startsWith("Arrow")) this.step(event.key);
    else return;
    event.preventDefault();
  }

  // Arrow keys go from GPU to GPU, and from node to node as they lie.
  step(key) {
    const strips = this.plane.strips;
    if (!strips.length) return;
    const place = this.selected && this.places.get(this.selected.node);
    if (!place) {
      this.events.select({ node: strips[0].name, gpu: 0 });
      return;
    }
    const across = key === "ArrowLeft" ? -1 : key === "ArrowRight" ? 1 : 0;
    const gpu = this.selected.gpu + across;
    if (across && gpu >= 0 && gpu < place.gpus) {
      this.events.select({ node: place.name, gpu });
      return;
    }
    const next = across ? nearest(strips, place, across, 0) : nearest(strips, place, 0, key === "ArrowUp" ? -1 : 1);
    if (next) this.events.select({ node: next.name, gpu: across < 0 ? next.gpus - 1 : across > 0 ? 0 : Math.min(this.selected.gpu, next.gpus - 1) });
  }
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

function matches(node, text) {
  if (node.name.toLowerCase().includes(text)) return true;
  return node.gpus.some((gpu) => gpu.sharers.some((sharer) => `${sharer.namespace}/${sharer.pod} ${sharer.queue} ${sharer.workload ? sharer.workload.name : ""}`.toLowerCase().includes(text)));
}

// What the layout depends on, and nothing else.
function shapeOf(nodes, levels) {
  const parts = [levels.join()];
  for (const node of nodes.values()) parts.push(`${node.name}:${node.gpus.length}:${levels.map((level) => node.domain[level]).join("/")}`);
  return parts.join();
}

function shorten(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  for (let length = text.length - 1; length > 2; length -= 1) {
    const shorter = `${text.slice(0, length)}…`;
    if (context.measureText(shorter).width <= width) return shorter;
  }
  return "";
}
