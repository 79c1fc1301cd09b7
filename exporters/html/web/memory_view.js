// Memory: what lives over time by class, what grew from one heap shot to another, and who allocated.

const CHART_POINTS = 120;
const MEMORY_ROWS = 25;
const MEMORY_TABLES = [
  ["growth", "Growth by class"],
  ["classes", "Allocated by class"],
  ["sites", "Allocated by site"],
];

function memoryView(recording, state) {
  const { allocations, processes } = recording.info;
  const withShots = processes.filter(({ heap_snapshots: shots }) => shots.length > 0);
  const process = numbered(withShots, state.values.process) ?? withShots[0];
  const tables = MEMORY_TABLES.filter(([name]) => (name === "growth" ? process !== undefined : allocations.count > 0));
  const shown = (tables.find(([name]) => name === state.values.table) ?? tables[0])[0];
  const chooser = el(
    "div",
    { class: "choice", role: "group", "aria-label": "Table" },
    tables.map(([name, title]) =>
      button(title, () => state.go({ table: name }), { "aria-pressed": String(name === shown), "data-value": name }),
    ),
  );
  const parts = process === undefined ? [allocatedOverTime(recording)] : shotsOverTime(recording, process, state);
  const several = withShots.length > 1 ? processChoice(withShots, process, state) : null;
  const table = {
    growth: () => growthTable(recording, process, state),
    classes: () =>
      allocationTable(
        recording,
        allocations.classes,
        textColumn("Class", (row) => row.name),
        "by class",
      ),
    sites: () => allocationTable(recording, allocations.sites, siteColumn(), "by site"),
  }[shown]();
  return [several, ...parts, tables.length > 1 ? el("div", { class: "toolbar" }, chooser) : null, table];
}

function processChoice(processes, chosen, state) {
  return el(
    "label",
    { class: "toolbar" },
    el("span", { text: "Process" }),
    el(
      "select",
      { "aria-label": "Process", onchange: (event) => state.go({ process: event.target.value, shots: "" }) },
      processes.map((process, nth) =>
        el("option", { value: String(nth), text: `${process.name} ${process.pid}`, selected: process === chosen }),
      ),
    ),
  );
}

// ---------------------------------------------------------------- over time

function card(caption, ...children) {
  return el(
    "section",
    { class: "table" },
    el("div", { class: "table-head" }, el("h2", { text: caption })),
    ...children,
  );
}

/** A chart that is drawn as wide as there is room for, once it is in the document. */
function fittingChart(options) {
  const place = el("div", { class: "chart-place" });
  const fill = () =>
    place.clientWidth > 0 && place.replaceChildren(stackedChart({ ...options, width: place.clientWidth }));
  new ResizeObserver(fill).observe(place);
  window.addEventListener("themechange", fill);
  return place;
}

/** [from, to] of the heap shots that are compared, from 0 on: the first and the last, unless the state says others. */
function shotsOf(process, state) {
  const last = process.heap_snapshots.length - 1;
  const given = /^(\d+)-(\d+)$/.exec(state.values.shots);
  const within = (text) => Math.max(0, Math.min(last, Number(text) - 1));
  return given === null ? [0, last] : [within(given[1]), within(given[2])];
}

function shotsOverTime(recording, process, state) {
  const shots = process.heap_snapshots;
  const [from, to] = shotsOf(process, state);
  const go = (a, b) => state.go({ shots: `${a + 1}-${b + 1}` });
  const named = new Map();
  shots.forEach((shot, nth) => {
    for (const { name, bytes } of shot.classes) {
      if (!named.has(name)) {
        named.set(name, new Array(shots.length).fill(0));
      }
      named.get(name)[nth] += bytes;
    }
  });
  const select = (label, chosen, pick) =>
    el(
      "select",
      { "aria-label": label, onchange: (event) => pick(Number(event.target.value)) },
      shots.map((shot, nth) =>
        el("option", {
          value: String(nth),
          text: `${nth + 1}: ${formatTime(shot.at_ns)}, ${formatBytes(shot.bytes)}`,
          selected: nth === chosen,
        }),
      ),
    );
  const title = "Live bytes by class";
  const series = stackedSeries(
    named,
    shots.map(({ bytes }) => bytes),
  );
  const chart = fittingChart({
    title,
    times: shots.map(({ at_ns: at }) => at),
    series,
    marked: [...new Set([from, to])],
    onpick: (nth) => go(Math.min(from, nth), nth),
  });
  return [
    card(
      `${title}, in ${plural(shots.length, "heap shot")} of ${process.name || "process"} ${process.pid}`,
      shots.length > 1 ? chart : null,
      el(
        "div",
        { class: "toolbar shots" },
        el(
          "label",
          {},
          el("span", { text: "From heap shot" }),
          select("From heap shot", from, (nth) => go(nth, to)),
        ),
        el(
          "label",
          {},
          el("span", { text: "to" }),
          select("To heap shot", to, (nth) => go(from, nth)),
        ),
        el("span", { class: "row" }, viewsOfShot(recording, to, state)),
      ),
    ),
  ];
}

/** Ways into the graph: the dominator tree of a heap shot, and the stacks that allocated what lives. */
function viewsOfShot(recording, nth, state) {
  const link = (text, name) => {
    const measure = recording.measures.findIndex((m) => m.name === name);
    const values = { tab: "flame", measure: String(measure), find: "", zoom: "", sel: "", from: "roots" };
    return measure < 0 ? null : button(text, () => state.go(values), { class: "quiet" });
  };
  return [
    link(`What keeps heap shot ${nth + 1} alive`, `heap shot ${nth + 1}`),
    link("Who allocated it", `heap shot ${nth + 1} by allocation site`),
  ];
}

/** Without heap shots: what was allocated so far, by class. */
function allocatedOverTime(recording) {
  const measure = recording.measures.findIndex(({ name }) => name === "allocated bytes");
  if (measure < 0 || !(recording.durationNs > 0)) {
    return null;
  }
  const n = Math.min(CHART_POINTS, recording.nBuckets);
  const named = new Map();
  const whole = new Array(n).fill(0);
  for (const { bucket, node, amount } of recording.seriesOf(measure, null)) {
    for (let i = 0; i < amount.length; i++) {
      const at = Math.floor((bucket[i] * n) / recording.nBuckets);
      const name = recording.nameOf(recording.frame[node[i]]);
      if (!named.has(name)) {
        named.set(name, new Array(n).fill(0));
      }
      named.get(name)[at] += amount[i];
      whole[at] += amount[i];
    }
  }
  const summed = (amounts) => {
    let sum = 0;
    return amounts.map((amount) => {
      sum += amount;
      return sum;
    });
  };
  for (const [name, amounts] of named) {
    named.set(name, summed(amounts));
  }
  const title = "Allocated so far, by class";
  const times = whole.map((_, i) =>
    Math.min(((i + 1) * recording.nBuckets * recording.bucketNs) / n, recording.durationNs),
  );
  return card(title, fittingChart({ title, times, series: stackedSeries(named, summed(whole)), marked: [] }));
}

// ---------------------------------------------------------------- tables

/** Of every class in either heap shot. A class that is not among the listed ones of a shot counts as none there. */
function growthTable(recording, process, state) {
  const [from, to] = shotsOf(process, state);
  const [before, after] = [from, to].map((nth) => process.heap_snapshots[nth]);
  const rows = new Map();
  const add = (classes, bytes, objects) => {
    for (const one of classes) {
      const row = rows.get(one.name) ?? {
        name: one.name,
        bytesBefore: 0,
        objectsBefore: 0,
        bytesAfter: 0,
        objectsAfter: 0,
      };
      row[bytes] += one.bytes;
      row[objects] += one.objects;
      rows.set(one.name, row);
    }
  };
  add(before.classes, "bytesBefore", "objectsBefore");
  add(after.classes, "bytesAfter", "objectsAfter");
  const signed = (title, value, show) => ({
    title,
    value,
    show: (row) => (value(row) > 0 ? "+" : "") + show(value(row)),
  });
  const count = (title, value) => ({ title, value, show: (row) => formatCount(value(row)) });
  const measure = recording.measures.findIndex(({ name }) => name === `heap shot ${to + 1}`);
  const inGraph = (row) =>
    button(row.name, () => state.go({ tab: "flame", measure: String(measure), find: row.name, zoom: "", sel: "" }), {
      class: "link name",
      title: `${row.name}\nWhat keeps it alive`,
    });
  return sortedTable({
    caption: `From heap shot ${from + 1} to ${to + 1}: ${signedBytes(after.bytes - before.bytes)}, by class`,
    columns: [
      signed("Growth", (row) => row.bytesAfter - row.bytesBefore, formatBytes),
      amountColumn("Live", (row) => row.bytesAfter, "bytes", after.bytes),
      { ...amountColumn("Before", (row) => row.bytesBefore, "bytes", 0), isRare: true },
      signed("Objects grown", (row) => row.objectsAfter - row.objectsBefore, formatCount),
      count("Objects", (row) => row.objectsAfter),
      textColumn("Class", (row) => row.name, measure < 0 ? undefined : inGraph),
    ],
    rows: [...rows.values()],
    filterLabel: "Filter classes",
    rowsAtFirst: MEMORY_ROWS,
  });
}

function signedBytes(change) {
  return change > 0 ? `+${formatBytes(change)}` : formatBytes(change);
}

function allocationTable(recording, rows, column, by) {
  const { allocations } = recording.info;
  const hasFreed = allocations.freed_count > 0;
  const left = (row) => row.count - row.freed_count;
  return sortedTable({
    caption: `${formatBytes(allocations.bytes)} in ${plural(allocations.count, "allocation")}, ${by}`,
    columns: [
      amountColumn("Allocated", (row) => row.bytes, "bytes", allocations.bytes),
      { title: "Objects", value: (row) => row.count, show: (row) => formatCount(row.count) },
      hasFreed ? amountColumn("Not freed", (row) => row.bytes - row.freed_bytes, "bytes", 0) : null,
      hasFreed ? { title: "Objects left", value: left, show: (row) => formatCount(left(row)) } : null,
      column,
    ].filter((each) => each !== null),
    rows,
    filterLabel: by === "by class" ? "Filter classes" : "Filter sites",
    rowsAtFirst: MEMORY_ROWS,
  });
}

function siteColumn() {
  return textColumn(
    "Site, and who called it",
    (row) => withoutWrappers(row.stack).join(" ‹ ") || "unknown",
    (row) => pathElement(withoutWrappers(row.stack)),
  );
}

/** Without what the runtime generates around calls into it; all, where there is nothing else. */
function withoutWrappers(stack) {
  const found = stack.filter((name) => !name.startsWith("(wrapper "));
  return found.length > 0 ? found : stack;
}
