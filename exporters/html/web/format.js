// Numbers and titles for people, and what they search for.

const BYTE_UNITS = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
const TIME_UNITS = [
  [1, "ns"],
  [1e3, "µs"],
  [1e6, "ms"],
  [1e9, "s"],
];

/** Three significant digits. */
function threeDigits(value) {
  const magnitude = Math.abs(value);
  return value.toFixed(magnitude >= 100 || value === 0 ? 0 : magnitude >= 10 ? 1 : 2);
}

/** Grouped as the verdict and `traceferry info` have it. */
function formatCount(value) {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

function formatTime(ns) {
  if (Math.abs(ns) >= 120e9) {
    const seconds = Math.round(ns / 1e9);
    return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  }
  const [factor, unit] = TIME_UNITS.findLast(([f]) => Math.abs(ns) >= f) ?? TIME_UNITS[0];
  return unit === "ns" ? `${Math.round(ns)} ns` : `${threeDigits(ns / factor)} ${unit}`;
}

function formatBytes(bytes) {
  const step = Math.min(Math.floor(Math.log10(Math.max(Math.abs(bytes), 1)) / 3), BYTE_UNITS.length - 1);
  return step === 0 ? `${bytes} B` : `${threeDigits(bytes / 1000 ** step)} ${BYTE_UNITS[step]}`;
}

function formatAmount(value, unit) {
  switch (unit) {
    case "ns":
      return formatTime(value);
    case "bytes":
      return formatBytes(value);
    case "count":
      return formatCount(value);
    default:
      return `${formatCount(value)} ${unit}`;
  }
}

/** A value of a counter: whole ones as counts. */
function formatFigure(value, unit) {
  if (value === null) {
    return "";
  }
  if (unit === "bytes" || unit === "ns") {
    return formatAmount(value, unit);
  }
  return Number.isInteger(value) ? formatCount(value) : String(Number(value.toPrecision(6)));
}

function formatShare(part, whole) {
  if (!(whole > 0)) {
    return "";
  }
  const percent = (100 * part) / whole;
  return percent > 0 && percent < 0.01 ? "<0.01%" : `${percent.toFixed(percent >= 10 ? 1 : 2)}%`;
}

function plural(n, one, many = `${one}s`) {
  return `${formatCount(n)} ${n === 1 ? one : many}`;
}

/** Path without folders. */
function fileName(path) {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** The unit of what is counted as samples. */
function sampleUnit(info) {
  const unit = info.functions.sample_unit;
  return unit === "samples" ? "count" : unit;
}

/** What an event is called whose samples are bytes, or ns: its name says so. */
function amountTitle(name) {
  return name === "bytes" ? "Bytes" : name.replace(/ \((?:bytes|ns)\)$/, "");
}

function measureTitle({ name, unit, kind }) {
  if (kind === "off-cpu") {
    return "Time off the CPU";
  }
  if (kind !== undefined) {
    const of = unit === "ns" ? "time" : unit === "count" || name.includes(unit) ? "" : unit;
    return name === "tracepoints" ? "All tracepoints" : of === "" ? name : `${name} (${of})`;
  }
  if (name === "samples" && unit !== "count") {
    return unit === "bytes" ? "Bytes" : "Time";
  }
  const title = name.charAt(0).toUpperCase() + name.slice(1);
  return unit === "count" || unit === "bytes" || name === "time of calls"
    ? title
    : `${title} (${unit === "ns" ? "time" : unit})`;
}

/** A function that tells whether a name matches; null for a damaged expression. */
function matcher(text) {
  const expression = /^\/(.+)\/$/.exec(text);
  if (expression === null) {
    const wanted = text.toLowerCase();
    return (name) => name.toLowerCase().includes(wanted);
  }
  try {
    const made = new RegExp(expression[1], "i");
    return (name) => made.test(name);
  } catch {
    return null;
  }
}
