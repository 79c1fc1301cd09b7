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
  const weight = el(
    "select",
    { "aria-label": "Weight of lines", onchange: (event) => state.go({ measure: event.target.value }) },
    [...heat.keys()].map((nth) =>
      el("option", { value: String(nth), text: measureTitle(recording.measures[nth]), selected: nth === measure }),
    ),
  );
  const bar = el(
    "div",
    { class: "toolbar" },
    el("label", {}, el("span", { text: "File" }), chooser),
    el("label", {}, el("span", { text: "Weight" }), weight),
  );
  if (chosen.text === null) {
    return [
      bar,
      el("p", { class: "note", text: "There was no room for the text of this file in the page; the viewers show it." }),
    ];
  }
  return [bar, listing(chosen.text.split(/\r\n|\n|\r/), heat.get(measure), recording.measures[measure].unit, line)];
}

/** The lines as a table; of a long file those around the chosen or the hottest line first. */
function listing(lines, rows, unit, line) {
  const heat = new Map(rows.map(([at, self, total]) => [at, { self, total }]));
  const hottest = rows.reduce((best, row) => (row[1] > best[1] ? row : best), rows[0]);
  const most = hottest[1] || 1;
  const centre = line > 0 ? line : hottest[0];
  let first = lines.length > 2 * LINES_AROUND ? Math.max(1, centre - LINES_AROUND) : 1;
  let last = lines.length > 2 * LINES_AROUND ? Math.min(lines.length, centre + LINES_AROUND) : lines.length;
  const body = el("tbody");
  const row = (at) => {
    const { self, total } = heat.get(at) ?? { self: 0, total: 0 };
    const made = el(
      "tr",
      { class: at === centre ? "centre" : null },
      el("td", { class: "number", text: self > 0 ? formatAmount(self, unit) : "" }),
      el("td", { class: "number", text: total > 0 ? formatAmount(total, unit) : "" }),
      el("td", { class: "line", text: String(at) }),
      el("td", { class: "code", text: lines[at - 1] }),
    );
    if (self > 0) {
      made.style.setProperty("--heat", (0.12 + 0.6 * (self / most)).toFixed(3));
      made.classList.add("hot");
    }
    return made;
  };
  const earlier = button("Earlier lines", () => extend(-1), { class: "quiet" });
  const later = button("Later lines", () => extend(1), { class: "quiet" });
  const fill = () => {
    body.replaceChildren(...Array.from({ length: last - first + 1 }, (_, i) => row(first + i)));
    earlier.hidden = first === 1;
    later.hidden = last >= lines.length;
  };
  const extend = (direction) => {
    first = direction < 0 ? Math.max(1, first - 2 * LINES_AROUND) : first;
    last = direction > 0 ? Math.min(lines.length, last + 2 * LINES_AROUND) : last;
    fill();
  };
  fill();
  requestAnimationFrame(() => body.querySelector(".centre")?.scrollIntoView({ block: "center" }));
  const heads = ["Self", "Total", "Line", "Source"].map((text) => el("th", { scope: "col", text }));
  return el(
    "div",
    { class: "scroll source", tabindex: "0", role: "region", "aria-label": "Source" },
    earlier,
    el("table", {}, el("thead", {}, el("tr", {}, heads)), body),
    later,
  );
}
