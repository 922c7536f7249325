// The cluster map: what is shown where. Drawing is in mapdraw.js, mouse, fingers and keys in mapinput.js.

import { cssColour } from "./colours.js";
import { drawMap, drawNodes } from "./mapdraw.js";
import { listen } from "./mapinput.js";
import { CELL, GAP, layout } from "./maplayout.js";
import { owner } from "./mapcolours.js";

const MARGIN = 16;
const BUTTONS = 56;
const SMALLEST = 0.02;
// A GPU then fills a good part of the screen, and each of its sharers is named in it.
const LARGEST = 30;
// Above this many nodes a moving map shows the last picture, scaled, and is drawn sharply once it rests.
const MANY_NODES = 1500;
// What nodes that changed may take of a frame, in milliseconds; the others wait for the next one.
const FRAME_SHARE = 5;

export class ClusterMap {
  constructor(canvas, { select, hover, open }) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.events = { select, hover, open };
    this.nodes = new Map();
    this.levels = [];
    this.plane = { width: 1, height: 1, boxes: [], strips: [] };
    this.places = new Map();
    this.view = { scale: 1, x: 0, y: 0 };
    this.fitted = true;
    this.selected = null;
    this.hovered = null;
    this.search = "";
    this.picture = null;
    // The rows that were drawn, the nodes that changed since, and whether everything has to be drawn.
    this.shown = new Map();
    this.changed = new Set();
    this.whole = true;
    this.frame = 0;
    this.rest = 0;
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(canvas);
    listen(this);
    this.resize();
  }

  destroy() {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.rest);
  }

  /** Show other rows; the layout is made anew only if nodes came, went or moved, and only what changed is drawn. */
  update({ nodes, levels, painter, search, selected, version }) {
    const look = `${painter.look} ${search} ${selected ? `${selected.node} ${selected.gpu}` : ""}`;
    if (look === this.look && version === this.version) return;
    const same = look === this.look;
    Object.assign(this, { look, version, nodes, painter, selected });
    this.search = search.toLowerCase();
    if (!this.hasShape(nodes, levels)) {
      this.levels = levels;
      this.arrange();
      this.draw();
    } else if (same) this.drawChanged();
    else this.draw();
  }

  drawChanged() {
    for (const [name, node] of this.nodes) if (this.shown.get(name) !== node) this.changed.add(name);
    if (this.changed.size > this.nodes.size / 2) this.draw();
    else if (this.changed.size) {
      for (const name of this.changed) this.shown.set(name, this.nodes.get(name));
      this.schedule();
    }
  }

  hasShape(nodes, levels) {
    if (levels.join() !== this.levels.join() || nodes.size !== this.places.size) return false;
    for (const node of nodes.values()) {
      const strip = this.places.get(node.name);
      if (!strip || strip.gpus !== node.gpus.length || levels.some((level) => strip.domain[level] !== node.domain[level])) return false;
    }
    return true;
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth;
    const height = this.canvas.clientHeight;
    if (!width || !height || (width === this.width && height === this.height && ratio === this.ratio)) return;
    Object.assign(this, { ratio, width, height });
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.arrange();
    this.draw();
  }

  arrange() {
    if (!this.width) return;
    this.plane = layout(this.nodes.values(), this.levels, this);
    this.places = new Map(this.plane.strips.map((strip) => [strip.name, strip]));
    if (this.fitted) this.fit();
  }

  /** Show everything. */
  fit() {
    const { width, height } = this.plane;
    // Where there is room, nothing lies below the buttons.
    const left = this.width > 600 ? BUTTONS : MARGIN;
    const room = this.width - left - MARGIN;
    const scale = Math.min(room / width, (this.height - 2 * MARGIN) / height, 4);
    this.view = { scale, x: left + (room - width * scale) / 2, y: (this.height - height * scale) / 2 };
    this.fitted = true;
    this.draw();
  }

  zoom(factor, atX = this.width / 2, atY = this.height / 2) {
    const scale = Math.min(Math.max(this.view.scale * factor, SMALLEST), LARGEST);
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
    this.whole = true;
    this.schedule();
  }

  schedule() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (!this.width || !this.painter) return;
      if (!this.whole) {
        drawNodes(this, this.changed, FRAME_SHARE);
        if (this.changed.size) this.schedule();
      } else if (this.rough) this.drawRough();
      else this.drawWhole();
    });
  }

  drawWhole() {
    drawMap(this);
    this.whole = false;
    this.changed.clear();
    this.shown = new Map(this.nodes);
    if (this.plane.strips.length > MANY_NODES) this.keepPicture();
  }

  drawRough() {
    const { context, picture, view, ratio } = this;
    const change = view.scale / picture.view.scale;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = cssColour("--surface");
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(picture.image, (view.x - picture.view.x * change) * ratio, (view.y - picture.view.y * change) * ratio, picture.image.width * change, picture.image.height * change);
  }

  keepPicture() {
    const image = this.picture?.image || document.createElement("canvas");
    image.width = this.canvas.width;
    image.height = this.canvas.height;
    image.getContext("2d").drawImage(this.canvas, 0, 0);
    this.picture = { image, view: this.view };
  }

  /** The workload that the mouse or the keys point at. */
  chosenOwner() {
    const cell = this.hovered || this.selected;
    const gpu = cell && this.nodes.get(cell.node)?.gpus[cell.gpu];
    return gpu && gpu.sharers.length ? owner(gpu.sharers[0]) : "";
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

  isInSight(strip) {
    const { scale, x, y } = this.view;
    const left = strip.x * scale + x;
    const top = strip.y * scale + y;
    return left < this.width && top < this.height && left + strip.gpus * (CELL + GAP) * scale > 0 && top + CELL * scale > 0;
  }

  /** Whether a node is where a panel on the right would cover it. */
  isOnTheRight(name) {
    const strip = this.places.get(name);
    return Boolean(strip) && strip.x * this.view.scale + this.view.x > this.width / 2;
  }

  /** Bring a node into sight. */
  reveal(name) {
    const strip = this.places.get(name);
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

  hover(cell, x, y) {
    const before = this.chosenOwner();
    this.hovered = cell;
    this.events.hover(cell, x, y);
    if (before !== this.chosenOwner()) this.draw();
  }
}
