// Colours that people with any colour vision can tell apart, for both themes; a test measures their distances.

const LIGHT = ["#4b5eab", "#aca34c", "#a8d1ef", "#a7414b", "#f8c19c", "#a396e8", "#6b650d", "#e384a2", "#94497a"];
const DARK = ["#7ab4f9", "#bf9449", "#ade4ba", "#b7534d", "#f1d58b", "#826a88", "#4c72b4", "#81a389", "#1eeef3"];
// Light to dark, one hue: more is stronger.
const LIGHT_RAMP = ["#e3ebf3", "#c2d5e8", "#97b8d8", "#6797c4", "#3f76ab", "#255789", "#143a61"];
const DARK_RAMP = ["#1c2a38", "#22405c", "#2b5a83", "#3c77a8", "#5a97c9", "#86b8e2", "#bcdcf6"];

export function isDark() {
  return document.documentElement.dataset.theme === "dark";
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

/** Black or white, whichever reads better on a colour. */
export function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.19 ? "#10150f" : "#ffffff";
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
