// Reads the data and shows the page.

const TABS = [
  ["flame", "Flame graph", (recording) => recording.series.length > 0],
  ["functions", "Functions", (recording) => recording.series.length > 0],
  [
    "memory",
    "Memory",
    ({ info }) => info.allocations.count > 0 || info.processes.some((p) => p.heap_snapshots.length > 0),
  ],
  [
    "events",
    "Events",
    ({ info }) => info.markers.length > 0 || info.processes.some((p) => p.counters.some((c) => c.values > 0)),
  ],
  ["waits", "Waits", (recording) => recording.waits.longest.length > 0],
  [
    "code",
    "Code",
    ({ info }) => info.tiers.length > 0 || info.coverage !== null || info.branches !== null || info.accesses.length > 0,
  ],
  ["source", "Source", (recording) => recording.sources.length > 0],
  ["instructions", "Instructions", ({ served }) => served !== null && served.code.codes.length > 0],
  ["threads", "Threads", ({ info }) => info.processes.some((p) => p.threads.length > 0)],
  ["report", "Report", () => true],
];

function whomItAsks({ served }) {
  return served === null
    ? "This page is complete: it loads nothing and sends nothing."
    : "This page asks traceferry view, which serves it, for sources and instructions, and nobody else for anything.";
}

class Page {
  constructor(recording) {
    this.recording = recording;
    this.state = new State(() => this.render());
    this.tabs = TABS.filter(([, , isThere]) => isThere(recording));
    this.flame = recording.series.length > 0 ? new FlameView(recording, this.state) : null;
    this.panels = new Map(
      this.tabs.map(([name]) => [
        name,
        name === "flame" ? this.flame.element : el("section", { class: "panel", id: name }),
      ]),
    );
    this.links = this.tabs.map(([name, title]) => el("a", { text: title, "data-tab": name }));
    this.help = new Help();
    document
      .getElementById("head")
      .replaceChildren(...headOf(recording, this.state, this.help).filter((part) => part !== null));
    document
      .getElementById("main")
      .replaceChildren(
        el("nav", { class: "tabs", "aria-label": "Sections" }, this.links),
        ...this.panels.values(),
        el("footer", {}, el("p", { text: `Made by ${recording.madeBy}. ${whomItAsks(recording)}` })),
      );
    this.#listen();
    this.render();
  }

  get tab() {
    return this.panels.has(this.state.values.tab) ? this.state.values.tab : this.tabs[0][0];
  }

  render() {
    const { tab } = this;
    const hadFocus = this.panels.get(this.shown)?.contains(document.activeElement);
    for (const link of this.links) {
      link.href = this.state.hashWith({ tab: link.dataset.tab });
      link.setAttribute("aria-current", link.dataset.tab === tab ? "page" : "false");
    }
    for (const [name, panel] of this.panels) {
      panel.hidden = name !== tab;
    }
    if (this.flame !== null) {
      this.flame.read(this.state.values);
    }
    this.#fill(tab);
    if (tab !== this.shown && this.shown !== undefined) {
      announce(this.tabs.find(([name]) => name === tab)[1]);
    }
    this.shown = tab;
    if (
      hadFocus &&
      (document.activeElement === document.body || document.activeElement.getClientRects().length === 0)
    ) {
      this.#focusOn(this.panels.get(tab));
    }
  }

  /** What had the focus is gone: the keys go on with what the panel shows. */
  #focusOn(panel) {
    const shown = [...panel.querySelectorAll(".flame, .scroll, button, select")];
    const isContent = (one) => one.matches(".flame, .scroll");
    const there = shown.filter((one) => one.getClientRects().length > 0);
    (there.find(isContent) ?? there[0])?.focus({ preventScroll: true });
  }

  /** Shows what the state asks for; tables stay as they are while what they show is the same. */
  #fill(tab) {
    if (tab === "flame") {
      this.flame.show(this.state.values);
      return;
    }
    const { measure, threads, range, source, code, process, shots, table } = this.state.values;
    const shownBy = {
      functions: [measure, threads, range],
      source: [source, measure],
      instructions: [code, measure],
      memory: [process, shots, table],
    };
    const key = JSON.stringify(shownBy[tab] ?? []);
    const panel = this.panels.get(tab);
    if (panel.dataset.shows === key) {
      return;
    }
    panel.dataset.shows = key;
    const made = {
      functions: () => [this.#scope(), functionsView(this.recording, this.flame, this.state)],
      memory: () => memoryView(this.recording, this.state),
      events: () => eventsView(this.recording),
      waits: () => waitsView(this.recording),
      code: () => codeView(this.recording),
      source: () => sourceView(this.recording, this.state),
      instructions: () => instructionsView(this.recording, this.state),
      threads: () => [threadsView(this.recording)],
      report: () => reportView(this.recording),
    }[tab]();
    keepingFocus(panel, () => panel.replaceChildren(...made.filter((part) => part !== null)));
  }

  /** What the functions are of, and the choice of the weight. */
  #scope() {
    const { recording, flame, state } = this;
    const parts = [];
    if (flame.range !== null) {
      const [start, end] = [flame.range[0] * recording.bucketNs, (flame.range[1] + 1) * recording.bucketNs];
      parts.push(`${formatTime(start)} to ${formatTime(Math.min(end, recording.durationNs))}`);
    }
    if (flame.threads !== null) {
      parts.push(plural(flame.threads.size, "thread"));
    }
    const weight = el(
      "select",
      { "aria-label": "Weight", onchange: (event) => state.go({ measure: event.target.value, zoom: "" }) },
      recording.weightOptions(flame.measureIndex),
    );
    return el(
      "div",
      { class: "toolbar" },
      el("label", {}, el("span", { text: "Weight" }), weight),
      parts.length > 0 ? el("span", { class: "note", text: `Only ${parts.join(", ")}` }) : null,
      parts.length > 0 ? button("Everything", () => state.go({ range: "", threads: "" }), { class: "quiet" }) : null,
    );
  }

  #listen() {
    const redraw = () => this.flame?.redraw();
    window.addEventListener("themechange", redraw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    document.addEventListener("keydown", (event) => {
      if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) {
        return;
      }
      if (event.key === "/") {
        this.#search(event);
      } else if (event.key === "?") {
        this.help.open();
      }
    });
    window.addEventListener("beforeprint", () => this.#print());
    window.addEventListener("afterprint", () => {
      delete document.documentElement.dataset.printing;
      this.render();
      redraw();
    });
  }

  /** Into the field of what is shown: the graph's search, or the filter of a table. */
  #search(event) {
    const field = this.panels.get(this.tab).querySelector("input[type=search]");
    if (field !== null) {
      event.preventDefault();
      field.focus();
    }
  }

  /** Every section, in light colours, the flame graph at once. */
  #print() {
    document.documentElement.dataset.printing = "";
    for (const [name] of this.tabs) {
      this.panels.get(name).hidden = false;
      if (!["source", "instructions"].includes(name)) {
        this.#fill(name);
      }
    }
    if (this.flame !== null) {
      this.flame.graph.layOut();
      this.flame.graph.draw(true);
    }
  }
}

async function start() {
  const bytes = embeddedPiece("data", 0);
  const data = JSON.parse(new TextDecoder().decode(await gunzipped(bytes)));
  const code = await servedCode();
  window.traceferryPage = new Page(new Recording(data, code === null ? null : new Served(code)));
  document.documentElement.dataset.ready = "";
}

start().catch((error) => {
  const text = `This page cannot be shown: ${error.message}. It needs a browser of 2023 or newer.`;
  document.getElementById("main").replaceChildren(el("p", { class: "message", text }));
});
