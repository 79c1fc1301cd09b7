// The page of a comparison.

const SECTIONS = [
  ["flame", "Flame graph"],
  ["changes", "Changes"],
  ["runs", "Runs"],
];

class ComparisonPage {
  constructor(data) {
    this.data = data;
    this.state = new State(() => this.render());
    this.measures = distinct(data.measured.map(({ name, unit }) => ({ name, unit })));
    this.threads = distinct(data.measured.map(({ process, thread }) => ({ process, thread })));
    this.graph = new FlameGraph({
      zoom: (node) => this.state.go({ zoom: node < 0 ? "" : pathTo(this.tree, node).join(".") }),
      hover: (node, event) => this.#hover(node, event),
      select: (node) => this.#describe(node),
    });
    this.tooltip = el("div", { class: "tooltip", hidden: true });
    this.detail = el("div", { class: "detail", "aria-live": "polite" });
    this.links = SECTIONS.map(([name, title]) => el("a", { text: title, "data-tab": name }));
    this.panels = new Map(SECTIONS.map(([name]) => [name, el("section", { class: "panel", id: name })]));
    this.panels.get("flame").append(this.#toolbar(), this.graph.element, this.detail, this.#legend(), this.tooltip);
    this.panels
      .get("changes")
      .append(
        ...data.tables.slice(1).map((table) => changesTable(table, data)),
        data.tiers.length > 0 ? tiersTable(data.tiers) : "",
      );
    this.panels.get("runs").append(runsTable(data), changesTable(data.tables[0], data));
    this.#head();
    document
      .getElementById("main")
      .replaceChildren(
        el("nav", { class: "tabs", "aria-label": "Sections" }, this.links),
        ...this.panels.values(),
        el(
          "footer",
          {},
          el("p", { text: `Made by ${data.made_by}. This page is complete: it loads nothing and sends nothing.` }),
        ),
      );
    new ResizeObserver(() => this.tree && this.graph.element.clientWidth > 0 && this.graph.layOut()).observe(
      this.panels.get("flame"),
    );
    window.addEventListener("themechange", () => this.render());
    this.render();
  }

  #head() {
    const { data } = this;
    const names = [...new Set(data.measured.map((one) => one.process).filter((name) => name !== ""))];
    // The verdict alone is the title: what changed may be long.
    const [, verdict, what] = /^([^:;]*)[:;]?\s*(.*)$/s.exec(data.headline);
    const title = `${names.slice(0, 3).join(", ") || "Comparison"}: ${verdict}`;
    document.title = `${title} – traceferry`;
    const facts = [data.model, data.graph && data.graph_level ? `The graph is ${data.graph_level}.` : ""];
    const whole = data.tables[0].rows.map((row) => [
      row.name.charAt(0).toUpperCase() + row.name.slice(1),
      `${row.change === null ? "" : percentText(row.change)} ${verdictText(row)}`,
    ]);
    const changed = data.tables
      .slice(1)
      .reduce((n, table) => n + table.rows.filter((row) => !["same", "unknown"].includes(row.verdict)).length, 0);
    const cards = [
      ["Runs", `${nCompared(data.base)} + ${nCompared(data.new)}`],
      ["Rows that changed", formatCount(changed)],
      ...whole,
      ...(data.graph ? [["In the graph", data.graph]] : []),
    ];
    document.getElementById("head").replaceChildren(
      el(
        "div",
        { class: "head-line" },
        el(
          "div",
          { class: "titles" },
          el("h1", { text: title }),
          what === "" ? null : el("p", { class: "what", text: what }),
          el("p", { class: "facts", text: facts.filter((fact) => fact !== "").join(" ") }),
        ),
        el("div", { class: "viewers" }, themeButton()),
      ),
      el(
        "dl",
        { class: "cards" },
        cards.map(([label, value]) => el("div", {}, el("dt", { text: label }), el("dd", { text: value }))),
      ),
    );
  }

  // ---------------------------------------------------------------- the flame graph

  #toolbar() {
    const choose = (label, key, options) =>
      el(
        "select",
        { "aria-label": label, onchange: (event) => this.state.go({ [key]: event.target.value, zoom: "" }) },
        options.map(([value, text]) => el("option", { value, text })),
      );
    this.measure = choose(
      "Weight",
      "measure",
      this.measures.map((measure, nth) => [String(nth), measureTitle(measure)]),
    );
    this.thread = choose("Thread", "threads", [
      ["", "All threads"],
      ...this.threads.map(({ process, thread }, nth) => [String(nth), `${process} / ${thread}`]),
    ]);
    this.modes = el(
      "div",
      { class: "choice", role: "group", "aria-label": "Widths" },
      MODES.map(([value, text, title]) =>
        button(text, () => this.state.go({ mode: value, zoom: "" }), { "data-value": value, title }),
      ),
    );
    this.sure = el("input", {
      type: "checkbox",
      onchange: () => this.state.go({ sure: this.sure.checked ? "1" : "" }),
    });
    this.find = el("input", {
      type: "search",
      placeholder: "Search functions",
      "aria-label": "Search functions",
      oninput: () => this.state.replace({ find: this.find.value }),
    });
    return el(
      "div",
      { class: "toolbar" },
      el("label", {}, el("span", { text: "Weight" }), this.measure),
      this.threads.length > 1 ? this.thread : null,
      this.modes,
      el("label", {}, this.sure, "colour significant changes only"),
      this.find,
    );
  }

  #legend() {
    const steps = [
      ["gone", 1, 0],
      ["\u221225%", 1, 0.75],
      ["0%", 1, 1],
      ["+2%", 1, 1.02],
      ["+25%", 1, 1.25],
      ["doubled, or new", 1, 2],
    ];
    this.swatches = steps.map(([text, base, fresh]) => ({
      base,
      fresh,
      swatch: el("span", { class: "swatch" }),
      text,
    }));
    return el(
      "div",
      { class: "legend", "aria-label": "Legend" },
      this.swatches.map(({ swatch, text }) => el("span", { class: "entry" }, swatch, text)),
      el("span", { class: "entry", text: "red: the new side has more; blue: less" }),
    );
  }

  render() {
    const { values } = this.state;
    const tab = this.panels.has(values.tab) ? values.tab : "flame";
    for (const link of this.links) {
      link.href = this.state.hashWith({ tab: link.dataset.tab });
      link.setAttribute("aria-current", link.dataset.tab === tab ? "page" : "false");
    }
    for (const [name, panel] of this.panels) {
      panel.hidden = name !== tab;
    }
    if (tab === "flame" && this.measures.length > 0) {
      this.#showGraph(values);
    }
  }

  #showGraph(values) {
    const { data } = this;
    const measure = numbered(this.measures, values.measure) ?? this.measures[0];
    const thread = numbered(this.threads, values.threads);
    const mode = MODES.some(([name]) => name === values.mode) ? values.mode : "new";
    const key = JSON.stringify([measure, thread, mode]);
    if (key !== this.shown) {
      this.shown = key;
      const chosen = data.measured.filter((one) => isOf(measure, one) && (thread === undefined || isOf(thread, one)));
      this.tree = new DiffTree(data, chosen, mode);
      this.unit = measure.unit;
    }
    this.measure.value = String(this.measures.indexOf(measure));
    this.thread.value = thread === undefined ? "" : String(this.threads.indexOf(thread));
    this.sure.checked = values.sure !== "";
    this.find.value = values.find;
    for (const choice of this.modes.children) {
      choice.setAttribute("aria-pressed", String(choice.dataset.value === mode));
    }
    for (const { base, fresh, swatch } of this.swatches) {
      swatch.style.background = diffColor(base, fresh, isDark());
    }
    const matches = values.find === "" ? null : matcher(values.find);
    this.graph.show(this.tree, {
      zoomed: values.zoom === "" ? -1 : nodeAt(this.tree, values.zoom.split(".")),
      isChosen:
        matches === null
          ? null
          : Uint8Array.from(data.frames.name, (name, nth) => matches(name) || matches(data.frames.short[nth] || name)),
      upward: false,
      colorOf: () => "grey",
      isInlined: () => false,
      fillOf: (node, dark) => this.#fill(node, dark, values.sure !== ""),
    });
    this.#describe(-1);
  }

  #fill(node, dark, onlySure) {
    const [base, fresh] = this.tree.amountsOf(node);
    return onlySure && (node < 0 || this.#verdicts(node).length === 0)
      ? diffColor(1, 1, dark)
      : diffColor(base, fresh, dark);
  }

  #verdicts(node) {
    return this.data.frames.verdicts[this.tree.frameOf(node)];
  }

  #facts(node) {
    const [base, fresh] = this.tree.amountsOf(node);
    const amount = (value) =>
      this.unit === "count" && this.data.sample_ns
        ? formatTime(value * this.data.sample_ns)
        : formatAmount(value, this.unit);
    const facts = [`${amount(base)} → ${amount(fresh)} (${changeText(base, fresh) || "0%"})`];
    if (node >= 0) {
      const [self, selfNew] = [this.tree.self.base[node], this.tree.self.new[node]];
      facts.push(`self ${amount(self)} → ${amount(selfNew)}`);
      facts.push(
        `share ${formatShare(base, this.tree.sums.base) || "0%"} → ${formatShare(fresh, this.tree.sums.new) || "0%"}`,
      );
      const verdicts = this.#verdicts(node);
      facts.push(
        verdicts.length > 0
          ? `the function, in all: ${verdicts.join(", ")}`
          : "no significant change of the function in all",
      );
      facts.push(this.data.frames.place[this.tree.frameOf(node)]);
    }
    return facts.filter((fact) => fact !== "");
  }

  #describe(node) {
    this.detail.replaceChildren(
      el("strong", { text: node < 0 ? "all" : this.tree.functionOf(node) }),
      el("span", { text: this.#facts(node).join(" · ") }),
    );
  }

  #hover(node, event) {
    this.tooltip.hidden = node === null || event.pointerType === "touch";
    if (this.tooltip.hidden) {
      return;
    }
    this.tooltip.replaceChildren(
      el("strong", { text: this.tree.functionOf(node) }),
      ...this.#facts(node).map((fact) => el("div", { text: fact })),
    );
    const x = Math.min(event.clientX + 14, window.innerWidth - this.tooltip.offsetWidth - 8);
    this.tooltip.style.transform = `translate(${Math.max(4, x)}px, ${event.clientY + 18}px)`;
  }
}

/** Those of the objects that differ in any value, as they first come. */
function distinct(objects) {
  return [...new Map(objects.map((one) => [JSON.stringify(one), one])).values()];
}

/** Whether the object has all values of the kind. */
function isOf(kind, one) {
  return Object.entries(kind).every(([key, value]) => one[key] === value);
}

async function startComparison() {
  const data = JSON.parse(new TextDecoder().decode(await gunzipped(embeddedPiece("data", 0))));
  window.traceferryPage = new ComparisonPage(data);
  document.documentElement.dataset.ready = "";
}

startComparison().catch((error) => {
  const text = `This page cannot be shown: ${error.message}. It needs a browser of 2023 or newer.`;
  document.getElementById("main").replaceChildren(el("p", { class: "message", text }));
});
