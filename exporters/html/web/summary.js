// The head of the page: what was recorded, what was lost, and the ways into the viewers.

function headOf(recording, state, help) {
  const { info } = recording;
  const title = info.title || fileName(info.inputs[0]?.path ?? "recording");
  document.title = `${title} – traceferry`;
  const from = [
    ...new Set(
      info.inputs.map((input) =>
        [input.producer, `${input.format} ${input.version}`.trim()].filter(Boolean).join(", "),
      ),
    ),
  ]
    .slice(0, 3)
    .join("; ");
  const start = info.time.unix_start_ns;
  const facts = [
    from,
    start === null ? "" : `${new Date(start / 1e6).toISOString().replace("T", " ").slice(0, 19)} UTC`,
    info.inputs
      .map((input) => fileName(input.path))
      .slice(0, 3)
      .join(", "),
  ].filter((fact) => fact !== "");
  return [
    el(
      "div",
      { class: "head-line" },
      el("div", { class: "titles" }, el("h1", { text: title }), el("p", { class: "facts", text: facts.join(" · ") })),
      el(
        "div",
        { class: "viewers" },
        recording.embedded.map((file) => viewerButton(file, title)),
        help.opener,
        themeButton(),
      ),
    ),
    el("p", { class: "handing", role: "status", id: "handing" }),
    el(
      "dl",
      { class: "cards" },
      cardsOf(recording).map(([label, value]) => el("div", {}, el("dt", { text: label }), el("dd", { text: value }))),
    ),
    verdictElement(recording.info.verdict, state),
    help.dialog,
  ];
}

function cardsOf(recording) {
  const { info } = recording;
  const threads = info.processes.flatMap((process) => process.threads);
  const sum = (value) => threads.reduce((all, thread) => all + value(thread), 0);
  const [calls, samples] = [sum((thread) => thread.calls), sum((thread) => thread.samples)];
  const shots = info.processes.flatMap((process) => process.heap_snapshots);
  const cards = [["Recorded", formatTime(info.time.duration_ns)]];
  cards.push([
    info.processes.length > 1 ? `Threads of ${info.processes.length} processes` : "Threads",
    formatCount(threads.length),
  ]);
  const [what, nSamples, others] = sampledIn(recording, samples);
  const unit = sampleUnit(info);
  cards.push(["Calls", calls > 0 ? formatCount(calls) : ""], [what, nSamples > 0 ? formatAmount(nSamples, unit) : ""]);
  const shown = others.length > 3 ? [] : others;
  cards.push(
    ...shown.map((event) => [
      eventTitle(event),
      formatAmount(event.weight, ["ns", "bytes"].includes(event.unit) ? event.unit : "count"),
    ]),
  );
  cards.push(["Other events", shown.length < others.length ? formatCount(others.length) : ""]);
  cards.push(
    ...info.events.ratios
      .slice(0, 1)
      .map(({ name, value }) => [titled(name), value === null ? "" : threeDigits(value)]),
  );
  cards.push(["Functions", functionsIn(recording)]);
  cards.push(["Allocated", info.allocations.bytes > 0 ? formatBytes(info.allocations.bytes) : ""]);
  cards.push(["Live at the last heap shot", shots.length > 0 ? formatBytes(shots[shots.length - 1].bytes) : ""]);
  cards.push(["Code objects", info.code_objects > 0 ? formatCount(info.code_objects) : ""]);
  return cards.filter(([, value]) => value !== "");
}

/** As many as the table of functions has at first; "" of a recording without any. */
function functionsIn(recording) {
  if (recording.series.length === 0) {
    return "";
  }
  const rows = functionRows(
    withoutClasses(mergedTree(recording, 0, null, null), recording.measures[0]),
    recording.addressGroups(),
  );
  const functions = rows.filter(({ func }) => !recording.isClass(func));
  return functions.length > 0 ? formatCount(countOfFunctions(recording, functions)) : "";
}

/** [what the samples are of, how many there are, the other events that have any] */
function sampledIn(recording, samples) {
  const { recorded } = recording.info.events;
  const isPoint = (event) => event.kind === "tracepoint";
  if (recording.tracepoints > 0 && isPoint(recorded[0])) {
    const all = recorded.filter(isPoint).reduce((sum, event) => sum + event.samples, 0);
    const others = recorded.filter((event) => !isPoint(event) && event.samples > 0);
    return [`Samples of ${recording.tracepoints} tracepoints`, all, others];
  }
  const main = recording.mainEvent();
  if (sampleUnit(recording.info) !== "count") {
    return [amountTitle(recorded[0].name), samples, recorded.slice(1).filter((e) => e.samples > 0)];
  }
  return [main === "" ? "Samples" : `Samples of ${main}`, samples, recorded.slice(1).filter((e) => e.samples > 0)];
}

function eventTitle({ name, kind, is_scaled: isScaled }) {
  return kind === "off-cpu" ? "Time off the CPU" : isScaled ? `${name} (scaled)` : name;
}

const VERDICT_BADGES = { error: "damaged", good: "good" };

/** What the recording is worth, in a line, and the next commands. */
function verdictElement({ kind, severity, headline, advice, more }, state) {
  const level = kind === "good" ? "good" : severity;
  const told = advice.map(({ text, command }) =>
    el(
      "li",
      {},
      command ? `${text}: ` : text,
      command ? el("code", { text: command }) : null,
      command ? copyButton(command) : null,
    ),
  );
  return el(
    "div",
    { class: `verdict-line ${level}` },
    el("span", { class: "badge", text: VERDICT_BADGES[level] ?? "to improve" }),
    el("div", {}, el("strong", { text: headline }), told.length > 0 ? el("ul", {}, told) : null),
    more > 0 ? button(`${formatCount(more)} more`, () => state.go({ tab: "report" }), { class: "quiet" }) : null,
  );
}

function copyButton(text) {
  const made = button(
    "Copy",
    () =>
      // Pages that were opened from disk have no clipboard in some browsers: then the command is selected.
      (navigator.clipboard?.writeText(text) ?? Promise.reject()).then(
        () => {
          made.textContent = "Copied";
        },
        () => getSelection().selectAllChildren(made.previousSibling),
      ),
    { class: "quiet copy", "aria-label": `Copy the command: ${text}` },
  );
  return made;
}

function viewerButton(file, title) {
  const viewer = VIEWERS[file.name];
  if (file.size === null) {
    return el("p", { class: "command" }, `For ${viewer.title}: `, el("code", { text: file.command }));
  }
  const say = (text) => {
    document.getElementById("handing").textContent = text;
  };
  const open = () => {
    say(`Handing ${formatBytes(file.size)} to ${viewer.title}…`);
    handOver(viewer, embedded(file.name), title, say).then(
      () => say(`${viewer.title} has the recording.`),
      (error) => say(error.message),
    );
  };
  const save = async () => {
    const url = URL.createObjectURL(new Blob([await embedded(file.name)]));
    const name = file.file.endsWith(".gz") ? file.file : `${file.file}.gz`;
    el("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  };
  return el(
    "span",
    { class: "viewer" },
    button(`Open in ${viewer.title}`, open, {
      class: "primary",
      id: `open-${file.name}`,
      title: "In a new window of this browser; nothing is uploaded",
    }),
    button("Save", save, {
      class: "quiet",
      title: `Save the file for ${viewer.title}`,
      "aria-label": `Save the file for ${viewer.title}`,
    }),
  );
}
