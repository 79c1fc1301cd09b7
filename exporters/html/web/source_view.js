// Sources with what each line has.

const LINES_AROUND = 400;

function sourceView(recording, state) {
  const [number, line] = (state.values.source ?? "0:0").split(":").map(Number);
  const chosen = recording.sources[number] ?? recording.sources[0];
  const chooser = el(
    "select",
    { "aria-label": "Source file", onchange: (event) => state.go({ source: `${event.target.value}:0` }) },
    recording.sources.map((source, nth) =>
      el("option", { value: String(nth), text: source.path, selected: source === chosen }),
    ),
  );
  const heat = new Map(chosen.heat);
  const wanted = recording.measureAt(state.values.measure);
  const measure = heat.has(wanted) ? wanted : chosen.heat[0][0];
  const bar = el(
    "div",
    { class: "toolbar" },
    el("label", {}, el("span", { text: "File" }), chooser),
    weightChoice(recording, state, [...heat.keys()], measure),
  );
  const rows = heat.get(measure);
  const { unit } = recording.measures[measure];
  const linesOf = (text) => listing(text.split(/\r\n|\n|\r/), rows, unit, line);
  if (chosen.text !== null) {
    return [bar, linesOf(chosen.text)];
  }
  if (recording.served === null) {
    const text = "There was no room for the text of this file in the page; the viewers show it.";
    return [bar, el("p", { class: "note", text })];
  }
  const func = recording.funcs.file.findIndex((file) => file >= 0 && recording.files[file] === chosen.path);
  return [
    bar,
    whenThere(recording.served.textOf(chosen.path, func), linesOf, () =>
      lineTable(
        rows.map(([at]) => [at, ""]),
        rows,
        unit,
        0,
      ),
    ),
  ];
}

/** A choice of the weight of lines or instructions. */
function weightChoice(recording, state, measures, chosen) {
  const weight = el(
    "select",
    { "aria-label": "Weight of lines", onchange: (event) => state.go({ measure: event.target.value }) },
    measures.map((nth) =>
      el("option", { value: String(nth), text: measureTitle(recording.measures[nth]), selected: nth === chosen }),
    ),
  );
  return el("label", {}, el("span", { text: "Weight" }), weight);
}

/** Each line of a text as a table, around the chosen line or else the hottest. */
function listing(lines, rows, unit, line) {
  return lineTable(
    lines.map((text, nth) => [nth + 1, text]),
    rows,
    unit,
    line,
  );
}

/** lines: [number, text]; rows: [number, self, total] of some. */
function lineTable(lines, rows, unit, line) {
  const heat = new Map(rows.map(([at, self, total]) => [at, { self, total }]));
  const hottest = rows.reduce((best, row) => (row[1] > best[1] ? row : best), rows[0]);
  const most = hottest[1] || 1;
  const chosen = line > 0 ? line : hottest[0];
  return longTable({
    label: "Source",
    heads: ["Self", "Total", "Line", "Source"],
    n: lines.length,
    centre: lines.findIndex(([number]) => number === chosen) + 1,
    rowOf: (at) => {
      const [number, text] = lines[at - 1];
      const { self, total } = heat.get(number) ?? { self: 0, total: 0 };
      return hotRow(self / most, [
        el("td", { class: "number", text: self > 0 ? formatAmount(self, unit) : "" }),
        el("td", { class: "number", text: total > 0 ? formatAmount(total, unit) : "" }),
        el("td", { class: "line", text: String(number) }),
        el("td", { class: "code", text }),
      ]);
    },
  });
}

/** A row that is the warmer, the larger its share is. */
function hotRow(share, cells) {
  const made = el("tr", {}, cells);
  if (share > 0) {
    made.style.setProperty("--heat", (0.12 + 0.6 * share).toFixed(3));
    made.classList.add("hot");
  }
  return made;
}

/** Rows as a table; of many those around one first. rowOf: the row of a number, from 1; centre: one of them, 0 is none. */
function longTable({ label, heads, n, centre, rowOf }) {
  let first = n > 2 * LINES_AROUND ? Math.max(1, centre - LINES_AROUND) : 1;
  let last = n > 2 * LINES_AROUND ? Math.min(n, Math.max(centre, 1) + LINES_AROUND) : n;
  const body = el("tbody");
  const row = (at) => {
    const made = rowOf(at);
    made.classList.toggle("centre", at === centre);
    return made;
  };
  const earlier = button("Earlier lines", () => extend(-1), { class: "quiet" });
  const later = button("Later lines", () => extend(1), { class: "quiet" });
  const fill = () => {
    body.replaceChildren(...Array.from({ length: last - first + 1 }, (_, i) => row(first + i)));
    earlier.hidden = first === 1;
    later.hidden = last >= n;
  };
  const extend = (direction) => {
    first = direction < 0 ? Math.max(1, first - 2 * LINES_AROUND) : first;
    last = direction > 0 ? Math.min(n, last + 2 * LINES_AROUND) : last;
    const focused = document.activeElement;
    fill();
    if (focused.hidden) {
      scroller.focus({ preventScroll: true });
    }
  };
  fill();
  requestAnimationFrame(() => body.querySelector(".centre")?.scrollIntoView({ block: "center" }));
  const scroller = el(
    "div",
    { class: "scroll source", tabindex: "0", role: "region", "aria-label": label },
    earlier,
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          heads.map((text) => el("th", { scope: "col", text })),
        ),
      ),
      body,
    ),
    later,
  );
  return scroller;
}
