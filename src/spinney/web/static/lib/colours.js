// Colours that people with any colour vision can tell apart, for both themes (hues after Paul Tol's muted scheme).

const LIGHT = ["#4477aa", "#44aa99", "#ddaa33", "#aa4499", "#88ccee", "#999933", "#cc6677", "#117733", "#6b5fb5", "#b08968"];
const DARK = ["#6699cc", "#55bbaa", "#eecc66", "#c26bb3", "#99ddff", "#bbbb55", "#e08a98", "#4fae68", "#9a8fe0", "#c9a78a"];
// Light to dark, one hue: more is stronger.
const LIGHT_RAMP = ["#e3ebf3", "#c2d5e8", "#97b8d8", "#6797c4", "#3f76ab", "#255789", "#143a61"];
const DARK_RAMP = ["#1c2a38", "#22405c", "#2b5a83", "#3c77a8", "#5a97c9", "#86b8e2", "#bcdcf6"];

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** A CSS variable's value now: canvases do not know variables. */
export function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function palette() {
  return isDark() ? DARK : LIGHT;
}

/** Colours for names, in the order of the names, so that they stay when others come. */
export function assign(names) {
  const colours = palette();
  return new Map([...names].sort().map((name, index) => [name, colours[index % colours.length]]));
}

/** A colour of its own for one of very many names. */
export function hashed(name) {
  let hash = 2166136261;
  for (let index = 0; index < name.length; index += 1) hash = Math.imul(hash ^ name.charCodeAt(index), 16777619);
  const colours = palette();
  return colours[(hash >>> 0) % colours.length];
}

/** A step of the ramp for a share from 0 to 1. */
export function ramp(share) {
  const steps = isDark() ? DARK_RAMP : LIGHT_RAMP;
  return steps[Math.max(0, Math.min(steps.length - 1, Math.round(share * (steps.length - 1))))];
}

export function rampSteps() {
  return isDark() ? DARK_RAMP : LIGHT_RAMP;
}
