// A stacked area chart over time, drawn on a canvas: amounts by name, marks such as a limit, and a moment.

import { cssColour } from "./colours.js";
import { clock, minute, number } from "./format.js";

const LEFT = 44;
const RIGHT = 8;
const BOTTOM = 22;
const TOP = 10;
const TICK_SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];
const FONT = "11px Inter, system-ui, sans-serif";

export class StackedChart {
  constructor(canvas, hover = () => {}) {
    this.canvas = canvas;
    this.data = null;
    this.pointer = null;
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(canvas);
    canvas.addEventListener("pointermove", (event) => {
      const x = event.clientX - canvas.getBoundingClientRect().left;
      this.pointer = x;
      hover(this.sampleAt(x), x);
      this.draw();
    });
    canvas.addEventListener("pointerleave", () => {
      this.pointer = null;
      hover(null, 0);
      this.draw();
    });
  }

  destroy() {
    this.observer.disconnect();
  }

  /**
   * Samples have a time `at` and, by name, a list of amounts of which `index` is drawn.
   * @param {{samples: object[], names: string[], colours: Map, index: number, from: number, until: number, marks?: [string, number, string][], moment?: number}} data
   */
  update(data) {
    this.data = data;
    this.draw();
  }

  /** The sample that counts at a place. */
  sampleAt(x) {
    if (!this.scale) return null;
    const { from, until, width } = this.scale;
    const time = from + ((x - LEFT) / (width - LEFT - RIGHT)) * (until - from);
    return this.data.samples.findLast((sample) => Date.parse(sample.at) <= time) || null;
  }

  draw() {
    const { canvas, data } = this;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (!width || !data || !data.samples.length) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.fillStyle = cssColour("--surface");
    context.fillRect(0, 0, width, height);
    const scale = (this.scale = this.measure(width, height));
    axes(context, scale);
    this.areas(context, scale);
    // One beside the other: marks may lie close together.
    (data.marks || []).forEach(([text, value, colour], place) => mark(context, scale, text, value, cssColour(colour), width - RIGHT - 110 * place));
    if (data.moment) upright(context, scale, scale.x(data.moment), cssColour("--ink"), 2);
    if (this.pointer !== null && this.pointer >= LEFT) upright(context, scale, this.pointer, cssColour("--muted"), 1);
  }

  measure(width, height) {
    const { samples, names, index, marks = [], from, until } = this.data;
    const total = (sample) => names.reduce((sum, name) => sum + (sample.gpus[name]?.[index] ?? 0), 0);
    const highest = Math.max(1, ...samples.map(total), ...marks.map(([, value]) => value));
    const step = niceStep(highest / (height < 160 ? 2 : 4));
    const top = Math.ceil(highest / step) * step;
    const x = (time) => LEFT + ((time - from) / Math.max(1, until - from)) * (width - LEFT - RIGHT);
    const y = (value) => height - BOTTOM - (value / top) * (height - BOTTOM - TOP);
    return { width, height, from, until, step, top, x, y };
  }

  areas(context, { x, y, until }) {
    const { samples, names, colours, index } = this.data;
    const times = [...samples.map((sample) => Date.parse(sample.at)), until];
    let below = samples.map(() => 0);
    for (const name of names) {
      const above = samples.map((sample, at) => below[at] + (sample.gpus[name]?.[index] ?? 0));
      context.beginPath();
      // Amounts hold until the next sample: steps, not slopes.
      samples.forEach((_, at) => {
        context.lineTo(x(times[at]), y(above[at]));
        context.lineTo(x(times[at + 1]), y(above[at]));
      });
      for (let at = samples.length - 1; at >= 0; at -= 1) {
        context.lineTo(x(times[at + 1]), y(below[at]));
        context.lineTo(x(times[at]), y(below[at]));
      }
      context.closePath();
      context.fillStyle = colours.get(name);
      context.globalAlpha = 0.85;
      context.fill();
      context.globalAlpha = 1;
      below = above;
    }
  }
}

function axes(context, { width, height, step, top, from, until, x, y }) {
  context.font = FONT;
  context.fillStyle = cssColour("--muted");
  context.strokeStyle = cssColour("--line");
  context.lineWidth = 1;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (let value = 0; value <= top + step / 2; value += step) {
    context.fillText(number(value), LEFT - 8, y(value));
    context.beginPath();
    context.moveTo(LEFT, Math.round(y(value)) + 0.5);
    context.lineTo(width - RIGHT, Math.round(y(value)) + 0.5);
    context.stroke();
  }
  const apart = tickSeconds((until - from) / 1000 / Math.max(2, Math.floor(width / 110))) * 1000;
  for (let time = Math.ceil(from / apart) * apart; time <= until; time += apart) {
    const text = apart < 60000 ? clock(time) : minute(time);
    const half = context.measureText(text).width / 2;
    context.textAlign = "center";
    // Whole at both ends.
    context.fillText(text, Math.min(Math.max(x(time), LEFT + half), width - RIGHT - half), height - BOTTOM / 2 + 2);
  }
}

function mark(context, { width, y }, text, value, colour, right) {
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.setLineDash([5, 4]);
  context.beginPath();
  context.moveTo(LEFT, Math.round(y(value)) + 0.5);
  context.lineTo(width - RIGHT, Math.round(y(value)) + 0.5);
  context.stroke();
  context.setLineDash([]);
  const label = `${text} ${number(value)}`;
  context.textAlign = "right";
  context.textBaseline = "middle";
  // The words stand on a ground of their own: areas of any colour may lie below them.
  const size = context.measureText(label).width;
  context.fillStyle = cssColour("--surface");
  context.fillRect(right - size - 8, y(value) - 7, size + 8, 14);
  context.fillStyle = colour;
  context.fillText(label, right - 4, y(value));
}

function upright(context, { height }, x, colour, width) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.moveTo(Math.round(x) + 0.5, TOP);
  context.lineTo(Math.round(x) + 0.5, height - BOTTOM);
  context.stroke();
}

/** The smallest round span of time that is no shorter. */
function tickSeconds(rough) {
  return TICK_SECONDS.find((seconds) => seconds >= rough) || TICK_SECONDS[TICK_SECONDS.length - 1];
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
}
