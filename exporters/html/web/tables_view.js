// The tables: functions from the tree that is shown, and the sections of `traceferry info`.

const CLASS_CATEGORIES = ["Objects", "Roots"];

/** The tree without the classes of objects, and without the wrappers of allocations that the graph leaves out: what they
 * have is that of the functions that allocated. The tree as it is where there are no functions. */
function withoutClasses(paths, measure) {
  const { recording, parent, frame, own } = paths;
  const leftOut = hidesWrappers(measure) ? [...CLASS_CATEGORIES, "Wrapper"] : CLASS_CATEGORIES;
  const isClass = (node) => {
    const category = frame[node] < 0 ? -1 : recording.frames.category[frame[node]];
    return category >= 0 && leftOut.includes(recording.categories[category].name);
  };
  const ofFunctions = own.slice();
  let nFunctions = 0;
  let nMoved = 0;
  for (let node = parent.length - 1; node >= 0; node--) {
    if (isClass(node) && parent[node] >= 0) {
      ofFunctions[parent[node]] += ofFunctions[node];
      ofFunctions[node] = 0;
      nMoved++;
    } else if (!isClass(node) && paths.total[node] > 0) {
      nFunctions++;
    }
  }
  return nFunctions === 0 || nMoved === 0 ? paths : new PathTree(recording, parent, frame, ofFunctions);
}

/** Each function that has anything, of those without a name one for each library: {func, self, total}. */
function functionRows(paths, groups) {
  const { self, total } = paths.byFunction(groups);
  return Array.from(total, (all, func) => ({ func, self: self[func], total: all })).filter((row) => row.total > 0);
}

/** How many functions there are among the rows: what joins the smaller call paths is none. */
function countOfFunctions(recording, rows) {
  return rows.filter(({ func }) => !recording.isJoined(func)).length;
}

function functionsView(recording, flame, state) {
  const { measureIndex, threads, range } = flame;
  const { name, unit } = recording.measures[measureIndex];
  const groups = recording.addressGroups();
  const merged = withoutClasses(flame.merged, recording.measures[measureIndex]);
  const inGroup = countsOfGroups(groups, merged.byFunction().total);
  const nameOf = (func) =>
    inGroup[func] > 1 && recording.isAddress(func)
      ? `${recording.libOf(func)} (${inGroup[func]} addresses without a name)`
      : recording.fullNameOf(func);
  const shortOf = (func) => (inGroup[func] > 1 ? nameOf(func) : recording.shortNameOf(func));
  const searched = (func) => (inGroup[func] > 1 ? `${recording.libOf(func)}+0x` : recording.shortNameOf(func));
  const counted = recording.measures.findIndex(({ name, unit }) => name === "calls" && unit === "count");
  const withCalls = counted >= 0 && name === "time of calls";
  const calls = withCalls ? mergedTree(recording, counted, threads, range).byFunction().self : null;
  const ratios = ratiosOf(recording, groups, threads, range);
  const all = functionRows(merged, groups).map((row) => ({ ...row, calls: calls === null ? 0 : calls[row.func] }));
  const isOfClasses = all.length > 0 && all.every(({ func }) => recording.isClass(func));
  const rows = all.filter(({ func }) => isOfClasses || !recording.isClass(func));
  const kinds = kindsOfFunctions(merged, groups);
  const placeOf = (func) => recording.placeOf(func) || recording.libOf(func);
  const columns = [
    { ...amountColumn("Self", (row) => row.self, unit, 0), isRare: true },
    shareColumn("Self %", (row) => row.self, merged.whole),
    { ...amountColumn("Total", (row) => row.total, unit, 0), isRare: true },
    shareColumn("Total %", (row) => row.total, merged.whole),
    ...ratios.map(({ title, of }) => ({
      title,
      value: (row) => of[row.func],
      show: (row) => (Number.isNaN(of[row.func]) ? "" : threeDigits(of[row.func])),
    })),
    withCalls ? { title: "Calls", value: (row) => row.calls, show: (row) => formatCount(row.calls) } : null,
    textColumn(
      isOfClasses ? "Class" : "Function",
      (row) => nameOf(row.func),
      (row) =>
        el(
          "button",
          {
            type: "button",
            class: "link name",
            title: `${nameOf(row.func)}\nShow in the flame graph`,
            onclick: () => state.go({ tab: "flame", find: searched(row.func) }),
          },
          el("span", { class: "clamped" }, ...breakable(shortOf(row.func))),
        ),
    ),
    {
      ...textColumn(
        "Kind",
        (row) => kinds.get(row.func).join(", "),
        (row) => firstOf(kinds.get(row.func)),
      ),
      isNarrow: true,
    },
    rows.some(({ func }) => placeOf(func) !== "")
      ? {
          ...textColumn(
            "Place",
            (row) => placeOf(row.func),
            (row) => {
              const place = recording.sourceOf(row.func);
              const text = placeOf(row.func);
              const go = () => state.go({ tab: "source", source: `${place.source}:${place.line}` });
              return place === null ? text : button(text, go, { class: "link" });
            },
          ),
          isNarrow: true,
        }
      : null,
  ].filter((column) => column !== null);
  const sorted = columns.findIndex((column) => column.title === (state.values.sort ?? "Self"));
  return sortedTable({
    caption: `${plural(countOfFunctions(recording, rows), isOfClasses ? "class" : "function", isOfClasses ? "classes" : "functions")}, by ${recording.titleOf(recording.measures[measureIndex])}`,
    columns,
    rows,
    sortBy: Math.max(0, sorted),
    filterLabel: "Filter functions",
    onsort: (nth) => state.replace({ sort: columns[nth].title }),
  });
}

const MOST_RATIOS = 4;

/** The ratios of events: their titles, and those of what each function has itself, NaN where there is nothing to divide
 * by. */
function ratiosOf(recording, groups, threads, range) {
  const own = (measure) => mergedTree(recording, measure, threads, range).byFunction(groups).self;
  return recording.ratios.slice(0, MOST_RATIOS).map(({ name, factor, numerator, denominator }) => {
    const [above, below] = [own(numerator), own(denominator)];
    return {
      title: titled(name),
      of: above.map((n, func) => (below[func] > 0 ? (factor * n) / below[func] : Number.NaN)),
    };
  });
}

/** How many functions of each group there are, of those that have anything. */
function countsOfGroups(groups, total) {
  const counts = new Int32Array(groups.length);
  groups.forEach((group, func) => {
    counts[group] += total[func] > 0 ? 1 : 0;
  });
  return counts;
}

/** The names of the kinds of code that each function, or group of them, is: the one with the most of its own first. */
function kindsOfFunctions(paths, groups) {
  const { recording, frame, own } = paths;
  const amounts = new Map();
  own.forEach((amount, node) => {
    if (paths.total[node] > 0 && frame[node] >= 0) {
      const func = groups[recording.funcOf(frame[node])];
      const { name } = recording.kindOf(frame[node]);
      const ofFunc = amounts.get(func) ?? new Map();
      amounts.set(func, ofFunc.set(name, (ofFunc.get(name) ?? 0) + amount));
    }
  });
  const ranked = (ofFunc) => [...ofFunc].sort(([, a], [, b]) => b - a).map(([name]) => name);
  return new Map([...amounts].map(([func, ofFunc]) => [func, ranked(ofFunc)]));
}

/** The first of some names, and how many there are besides. */
function firstOf(names) {
  return names.length > 2 ? `${names[0]}, ${names.length - 1} more` : names.join(", ");
}

// ---------------------------------------------------------------- waits

function waitsView(recording) {
  const { n, longest: waits } = recording.waits;
  const time = (title, value) => ({ title, value, show: (row) => (value(row) > 0 ? formatTime(value(row)) : "") });
  const several = recording.info.processes.length > 1;
  return [
    el("p", {
      class: "note",
      text: "Times in which threads did not run. All of them together are the weight “Time off the CPU” of the flame graph.",
    }),
    sortedTable({
      caption: waits.length < n ? `The ${waits.length} longest of ${formatCount(n)} waits` : plural(n, "wait"),
      columns: [
        amountColumn("Off the CPU", (row) => row.ns, "ns", waits[0].ns),
        waits.some((row) => row.runnable_ns > 0) ? time("Ready to run", (row) => row.runnable_ns) : null,
        { title: "At", value: (row) => row.at_ns, show: (row) => formatTime(row.at_ns) },
        textColumn("Why", (row) => row.why),
        textColumn("Thread", (row) => (several ? `${row.thread} · ${row.process}` : row.thread)),
        waits.some((row) => row.waker !== "") ? textColumn("Woken by", (row) => row.waker) : null,
        textColumn(
          "Where, and who called it",
          (row) => row.stack.join(" ‹ "),
          (row) => pathElement(row.stack),
        ),
        waits.some((row) => row.waker_stack.length > 0)
          ? {
              ...textColumn(
                "Where the waker was",
                (row) => row.waker_stack.join(" ‹ "),
                (row) => (row.waker_stack.length > 0 ? pathElement(row.waker_stack, 2) : ""),
              ),
              isRare: true,
            }
          : null,
      ].filter((column) => column !== null),
      rows: waits,
      filterLabel: "Filter waits",
    }),
  ];
}

// ---------------------------------------------------------------- stacks

/** The innermost function, and a few of its callers; the rest on demand. */
function pathElement(names, most = 4) {
  const shown = names.slice(0, most);
  const text = el("span", { class: "name clamped" }, ...breakable(shown.join(" ‹ ") || "unknown"));
  const more = button(
    `‹ ${names.length - shown.length} more`,
    () => {
      text.replaceChildren(...breakable(names.join(" ‹ ")));
      text.classList.remove("clamped");
      more.remove();
    },
    { class: "link" },
  );
  return el("div", { class: "stack" }, text, names.length > shown.length ? more : null);
}

// ---------------------------------------------------------------- events, code

function eventsView(recording) {
  const { markers, processes } = recording.info;
  const found = markers.map((kind) => {
    const sums = kind.top.length > 0 ? Object.keys(kind.top[0].sums) : [];
    const lasts = kind.top.some((row) => row.total_ns > 0);
    const longest = Math.max(...kind.top.map((row) => row.total_ns));
    const time = (title, value) => ({ title, value, show: (row) => formatTime(value(row)) });
    return sortedTable({
      caption: kind.type,
      columns: [
        lasts ? amountColumn("Total", (row) => row.total_ns, "ns", longest) : null,
        lasts ? time("Longest", (row) => row.longest_ns) : null,
        lasts ? time("Average", (row) => row.total_ns / row.count) : null,
        { title: "Count", value: (row) => row.count, show: (row) => formatCount(row.count) },
        ...sums.map((key) => amountColumn(titled(key), (row) => row.sums[key], "bytes", 0)),
        ...kind.group_by.map((key) => textColumn(titled(key), (row) => valueText(row.by[key]))),
      ].filter((column) => column !== null),
      rows: kind.top,
      filterLabel: "Filter",
    });
  });
  const counters = processes.flatMap((process) =>
    process.counters.filter((counter) => counter.values > 0).map((counter) => ({ ...counter, process: process.name })),
  );
  if (counters.length > 0) {
    const figure = (key) => ({
      title: titled(key),
      value: (row) => row[key],
      show: (row) => formatFigure(row[key], row.unit),
    });
    const totals = counters.some((row) => row.total !== null) ? ["total"] : [];
    found.push(
      sortedTable({
        caption: "Counters",
        columns: [
          textColumn("Counter", (row) => row.name),
          ...[...totals, "last", "first", "min", "max"].map(figure),
          { title: "Values", value: (row) => row.values, show: (row) => formatCount(row.values) },
        ],
        rows: counters,
        sortBy: 0,
        filterLabel: "Filter counters",
      }),
    );
  }
  return found;
}

function codeView(recording) {
  const { tiers, coverage } = recording.info;
  const found = [...branchTables(recording.info), ...recording.info.accesses.flatMap(accessTables)];
  if (tiers.length > 0) {
    const whole = tiers.reduce((sum, tier) => sum + tier.bytes, 0);
    found.push(
      sortedTable({
        caption: `Jitted code by tier: ${formatBytes(whole)}`,
        columns: [
          amountColumn("Size", (row) => row.bytes, "bytes", 0),
          shareColumn("Share", (row) => row.bytes, whole),
          { title: "Code objects", value: (row) => row.objects, show: (row) => formatCount(row.objects) },
          textColumn("Tier", (row) => row.name),
        ],
        rows: tiers,
      }),
    );
  }
  if (coverage !== null) {
    const columns = (...names) => [
      {
        title: "Covered",
        value: (row) => row.covered / Math.max(row.statements, 1),
        show: (row) => formatShare(row.covered, row.statements),
        share: (row) => row.covered / Math.max(row.statements, 1),
      },
      { title: "Statements", value: (row) => row.statements, show: (row) => formatCount(row.statements) },
      ...names.map((key) => textColumn(titled(key), (row) => row[key] ?? "unknown")),
    ];
    found.push(
      sortedTable({
        caption: `Code coverage: ${formatShare(coverage.covered, coverage.statements)}, by assembly`,
        columns: columns("assembly"),
        rows: coverage.assemblies,
      }),
      sortedTable({
        caption: "Coverage by class",
        columns: columns("class", "assembly"),
        rows: coverage.classes,
        filterLabel: "Filter classes",
      }),
      sortedTable({
        caption: "Coverage by method",
        columns: columns("class", "method"),
        rows: coverage.methods,
        filterLabel: "Filter methods",
      }),
    );
  }
  return found;
}

function titled(key) {
  const text = key.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A number as large as an address is one. */
function valueText(value) {
  return typeof value === "number" && value >= 2 ** 32 ? `0x${value.toString(16)}` : String(value) || "unknown";
}

// ---------------------------------------------------------------- threads, report

function threadsView(recording) {
  const rows = recording.info.processes.flatMap((process) =>
    process.threads.map((thread) => ({ ...thread, process: `${process.name || "process"} ${process.pid}` })),
  );
  const count = (title, value) => ({ title, value, show: (row) => formatCount(value(row)) });
  const unit = sampleUnit(recording.info);
  const columns = [
    count("Calls", (row) => row.calls),
    {
      title: { bytes: "Bytes", ns: "Time" }[unit] ?? "Samples",
      value: (row) => row.samples,
      show: (row) => formatAmount(row.samples, unit),
    },
    count("Allocations", (row) => row.allocations.count),
    count("Events", (row) => Object.values(row.markers).reduce((a, b) => a + b, 0)),
  ].filter(({ value }) => rows.some((row) => value(row) > 0));
  return sortedTable({
    caption: plural(rows.length, "thread"),
    columns: [
      ...columns,
      textColumn("Thread", (row) => row.name || "(no name)"),
      { title: "Number", value: (row) => row.tid },
      textColumn("Process", (row) => row.process),
    ],
    rows,
    filterLabel: "Filter threads",
  });
}

function reportView(recording) {
  const { issues, inputs, time } = recording.info;
  const order = ["error", "loss", "info"];
  const sorted = issues.slice().sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
  const list = el(
    "ul",
    { class: "issues" },
    sorted.map((issue) =>
      el(
        "li",
        { class: issue.severity },
        el("span", { class: "badge", text: issue.severity }),
        el(
          "div",
          {},
          el("strong", { text: issue.title }),
          el("span", { class: "share", text: ` ${plural(issue.count, "time")}` }),
        ),
        issue.detail ? el("div", { class: "name", text: issue.detail }) : null,
        issue.advice ? el("div", { class: "advice", text: issue.advice }) : null,
      ),
    ),
  );
  const facts = inputs.map((input) =>
    el("li", { text: `${input.path}: ${input.producer}, ${input.format} ${input.version}` }),
  );
  return [
    el(
      "section",
      { class: "table" },
      el("h2", { text: issues.length > 0 ? "What was lost, repaired or guessed" : "Nothing was lost" }),
      list,
    ),
    el(
      "section",
      { class: "table" },
      el("h2", { text: "Inputs" }),
      el("ul", {}, facts, el("li", { text: `clock: ${time.clock ?? "unknown"}` })),
    ),
  ];
}
