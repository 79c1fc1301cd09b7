// The tables of a comparison, with the runs side by side as dots.

const SVG = "http://www.w3.org/2000/svg";
const WORSE = new Set(["slower", "more", "new"]);

function shape(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/** Each run as a dot: the base's above, as circles, the new side's below, as squares; at the level of the base. */
function dotsOf(row, table, nBase) {
  const values = row.amounts.map((amount, run) => amount / (table.factors[run] || 1));
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const at = (value) => 6 + (most > least ? (108 * (value - least)) / (most - least) : 54);
  const label = `base ${values.slice(0, nBase).map(threeDigits).join(", ")}; new ${values.slice(nBase).map(threeDigits).join(", ")}`;
  const marks = values.map((value, run) =>
    run < nBase
      ? shape("circle", { cx: at(value), cy: 6, r: 3.5, class: "dot-base" })
      : shape("rect", { x: at(value) - 3.2, y: 13, width: 6.4, height: 6.4, class: "dot-new" }),
  );
  return shape(
    "svg",
    { width: 120, height: 22, viewBox: "0 0 120 22", role: "img", "aria-label": label, class: "dots" },
    ...marks,
  );
}

function amountText(value, row, table, data) {
  const unit = row.unit ?? table.unit;
  if (unit === "samples") {
    return data.sample_ns ? formatTime(value * data.sample_ns) : formatCount(value);
  }
  return formatAmount(value, unit);
}

function intervalText(row) {
  return row.low === null || row.high === null
    ? row.exact
      ? "exact"
      : ""
    : `${percentText(row.low)} to ${percentText(row.high)}`;
}

function verdictText(row) {
  if (row.verdict === "same" && row.within > 0) {
    return `same within ${Number((100 * row.within).toPrecision(2))}%`;
  }
  const word = row.verdict === "unknown" && row.exact ? "differs" : row.verdict;
  return row.verdict === "unknown" && row.runs_needed !== null
    ? `${word}: ${formatCount(row.runs_needed)} runs each would do`
    : word;
}

function verdictCell(row) {
  const isChange = !["same", "unknown"].includes(row.verdict);
  const kind = !isChange ? "plain" : WORSE.has(row.verdict) ? "worse" : "better";
  return el("span", { class: `verdict ${kind}`, text: verdictText(row) });
}

function changesTable(table, data) {
  const columns = [
    {
      title: "Change",
      value: (row) => row.change ?? (row.new > 0 ? Infinity : 0),
      show: (row) => (row.change === null ? "" : percentText(row.change)),
    },
    { title: "Interval of 95 %", value: (row) => row.low ?? 0, show: intervalText, isRare: true },
    {
      title: "Difference",
      value: (row) => Math.abs(row.new - row.base),
      show: (row) =>
        (row.new > row.base ? "+" : row.new < row.base ? "\u2212" : "") +
        amountText(Math.abs(row.new - row.base), row, table, data),
    },
    { title: "Base", value: (row) => row.base, show: (row) => amountText(row.base, row, table, data) },
    { title: "New", value: (row) => row.new, show: (row) => amountText(row.new, row, table, data) },
    {
      title: "Runs",
      value: (row) => row.amounts.length,
      show: (row) => dotsOf(row, table, nCompared(data.base)),
      isRare: true,
    },
    { title: "Verdict", value: verdictText, show: verdictCell, isText: true },
    { title: "Name", value: (row) => row.name || "(anonymous)", show: (row) => nameCell(row), isText: true },
  ];
  const more =
    table.n_rows > table.rows.length
      ? `, the first ${formatCount(table.rows.length)} of ${formatCount(table.n_rows)}`
      : "";
  const caption = `${table.title.charAt(0).toUpperCase()}${table.title.slice(1)}${more}`;
  return el(
    "div",
    {},
    sortedTable({ caption, columns, rows: table.rows, sortBy: 2, filterLabel: "Filter" }),
    el("p", { class: "note", text: table.level }),
  );
}

function nameCell(row) {
  return el(
    "span",
    { title: row.file ?? "" },
    row.name || "(anonymous)",
    row.file ? el("span", { class: "note", text: ` ${fileName(row.file)}` }) : null,
  );
}

function nCompared(runs) {
  return runs.filter((run) => !run.left_out).length;
}

function runsTable(data) {
  const rows = [
    ...data.base.map((run) => ({ ...run, side: "base" })),
    ...data.new.map((run) => ({ ...run, side: "new" })),
  ];
  const columns = [
    { title: "Side", value: (run) => run.side, isText: true },
    { title: "Lasted", value: (run) => run.duration_ns, show: (run) => formatTime(run.duration_ns) },
    { title: "Times the base", value: (run) => run.factor, show: (run) => run.factor.toFixed(3) },
    { title: "Losses", value: (run) => run.lost },
    { title: "Disturbed", value: (run) => (run.disturbed ?? "") + (run.left_out ? " (left out)" : ""), isText: true },
    { title: "Recording", value: (run) => run.path, isText: true },
  ];
  return sortedTable({ caption: "Runs", columns, rows });
}

function tiersTable(tiers) {
  const columns = [
    { title: "Base", value: (t) => t.base[0], isText: true },
    { title: "New", value: (t) => t.new[0], isText: true },
    { title: "Function", value: (t) => t.function.name, isText: true },
  ];
  return sortedTable({ caption: "Functions that ended in another tier", columns, rows: tiers });
}
