// A stacked area chart over time, drawn on a canvas.

import { cssColour } from "./colours.js";
import { clock, number } from "./format.js";

const LEFT = 44;
const BOTTOM = 24;
const TOP = 8;

export class StackedChart {
  constructor(canvas) {
    this.canvas = canvas;
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(canvas);
    this.samples = [];
  }

  destroy() {
    this.observer.disconnect();
  }

  /** Samples have a time and, by name, a list of amounts of which `index` is drawn. */
  update(samples, names, colours, index) {
    this.samples = samples;
    this.names = names;
    this.colours = colours;
    this.index = index;
    this.draw();
  }

  draw() {
    const { canvas, samples } = this;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (!width || samples.length < 2) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.fillStyle = cssColour("--surface");
    context.fillRect(0, 0, width, height);
    const times = samples.map((sample) => Date.parse(sample.at));
    const from = times[0];
    const to = times[times.length - 1];
    const amount = (sample, name) => sample.gpus[name]?.[this.index] ?? 0;
    const highest = Math.max(1, ...samples.map((sample) => this.names.reduce((sum, name) => sum + amount(sample, name), 0)));
    const step = niceStep(highest / 4);
    const top = Math.ceil(highest / step) * step;
    const x = (time) => LEFT + ((time - from) / Math.max(1, to - from)) * (width - LEFT - 8);
    const y = (value) => height - BOTTOM - (value / top) * (height - BOTTOM - TOP);
    this.axes(context, { width, height, step, top, from, to, x, y });
    let below = samples.map(() => 0);
    for (const name of this.names) {
      const above = samples.map((sample, index) => below[index] + amount(sample, name));
      context.beginPath();
      // Amounts hold until the next sample: steps, not slopes.
      times.forEach((time, index) => {
        if (index) context.lineTo(x(time), y(above[index - 1]));
        context.lineTo(x(time), y(above[index]));
      });
      for (let index = times.length - 1; index >= 0; index -= 1) {
        context.lineTo(x(times[index]), y(below[index]));
        if (index) context.lineTo(x(times[index]), y(below[index - 1]));
      }
      context.closePath();
      context.fillStyle = this.colours.get(name);
      context.fill();
      below = above;
    }
  }

  axes(context, { width, height, step, top, from, to, x, y }) {
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = cssColour("--muted");
    context.strokeStyle = cssColour("--line");
    context.lineWidth = 1;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (let value = 0; value <= top + step / 2; value += step) {
      context.fillText(number(value), LEFT - 8, y(value));
      context.beginPath();
      context.moveTo(LEFT, Math.round(y(value)) + 0.5);
      context.lineTo(width - 8, Math.round(y(value)) + 0.5);
      context.stroke();
    }
    const ticks = Math.max(2, Math.min(6, Math.floor(width / 140)));
    for (let tick = 0; tick < ticks; tick += 1) {
      const time = from + ((to - from) * tick) / (ticks - 1);
      context.textAlign = tick === 0 ? "left" : tick === ticks - 1 ? "right" : "center";
      context.fillText(clock(time), x(time), height - BOTTOM / 2);
    }
  }
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
}
