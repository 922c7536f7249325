// Numbers, amounts and times in words, the same everywhere.

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const fine = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** A number with at most one decimal; nothing known is a dash. */
export function number(value) {
  return value === null || value === undefined || Number.isNaN(value) ? "–" : plain.format(value);
}

/** A fraction of a GPU needs two decimals. */
export function gpus(value) {
  return value === null || value === undefined ? "–" : fine.format(value);
}

/** An amount that may be unlimited. */
export function limit(value, unit = number) {
  return value === null || value === undefined ? "unlimited" : unit(value);
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  let size = value;
  let unit = 0;
  while (size >= 1024 && unit < UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${plain.format(size)} ${UNITS[unit]}`;
}

export function percent(part, whole) {
  return whole > 0 ? `${Math.round((100 * part) / whole)} %` : "–";
}

export function count(value, noun, plural = `${noun}s`) {
  return `${plain.format(value)} ${value === 1 ? noun : plural}`;
}

const STEPS = [
  [60, "s", 1],
  [3600, "min", 60],
  [86400, "h", 3600],
  [Infinity, "d", 86400],
];

/** A span of time, in its largest unit. */
export function span(seconds) {
  const size = Math.abs(seconds);
  for (const [below, unit, divisor] of STEPS) if (size < below) return `${Math.floor(size / divisor)} ${unit}`;
  return "";
}

/** How long ago, or in how long. */
export function ago(time, now) {
  if (!time) return "–";
  const seconds = (now - Date.parse(time)) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  return seconds >= 0 ? `${span(seconds)} ago` : `in ${span(seconds)}`;
}

/** The exact time, for hovering. */
export function exact(time) {
  if (!time) return "";
  const moment = new Date(time);
  const local = moment.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
  return `${local} (${moment.toISOString()})`;
}

export function clock(time) {
  return new Date(time).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
}

export function minute(time) {
  return new Date(time).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
}

/** `kind/name` in lower case, as in the CLI. */
export function refName(ref) {
  return ref ? `${ref.kind.toLowerCase()}/${ref.name}` : "–";
}

/** The key of a workload, and the end of its page's address. */
export function refKey(ref) {
  const at = ref.apiVersion.lastIndexOf("/");
  const group = at < 0 ? "" : `.${ref.apiVersion.slice(0, at)}`;
  return `${ref.namespace}/${ref.kind.toLowerCase()}${group}/${ref.name}`;
}

export function refPath(ref) {
  return `/workloads/${refKey(ref).split("/").map(encodeURIComponent).join("/")}`;
}

/** The last part of a label key: `rack` of `kubernetes.io/rack`. */
export function level(key) {
  return key.slice(key.lastIndexOf("/") + 1);
}

/** A reason's code in words: `NoDomain` is "No domain". */
export function words(code) {
  const text = code.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return text.charAt(0).toUpperCase() + text.slice(1);
}
