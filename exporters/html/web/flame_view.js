// The view around the flame graph: what is weighed, of which threads, when, and what is looked for.

const SHOWN_IN_LEGEND = 12;

/** How many samples a measure has of which each stands for several events; Infinity of what is exact. */
function samplesOf({ samples, exact }) {
  return samples === undefined || exact ? Number.POSITIVE_INFINITY : samples;
}

class FlameView {
  constructor(recording, state) {
    this.recording = recording;
    this.state = state;
    this.trees = new Map();
    this.graph = new FlameGraph({
      zoom: (node) => this.#zoom(node),
      hover: (node, event) => this.#hover(node, event),
      select: (node) => {
        this.state.replace({ sel: this.#pathOf(node) });
        this.#describe(node);
      },
      range: (range) => this.state.go({ range: range.join("-"), zoom: "", sel: "" }),
    });
    const chooseRange = (range, isMade) => {
      const changes = { range: range === null ? "" : range.join("-") };
      if (isMade) {
        this.state.go(changes);
      } else {
        this.state.replace(changes);
      }
    };
    this.strip = new ActivityStrip(recording, chooseRange);
    this.heatmap = new Heatmap(recording, chooseRange);
    this.inOrder = new ThreadChoice(recording, state);
    this.tooltip = el("div", { class: "tooltip", hidden: true });
    this.detail = el("div", { class: "detail", "aria-live": "polite" });
    this.legend = el("div", { class: "legend", role: "group", "aria-label": "Legend" });
    this.costs = el("div");
    this.nothing = el("p", { class: "nothing", role: "status", hidden: true });
    this.path = el("nav", { class: "path", "aria-label": "Zoomed path" });
    this.matches = el("output", { class: "matches" });
    this.element = el(
      "section",
      { class: "panel", id: "flame" },
      this.#toolbar(),
      this.costs,
      el("div", { class: "activities" }, this.activity, this.strip.element, this.heatmap.element),
      this.inOrder.element,
      this.legend,
      this.path,
      this.nothing,
      this.graph.element,
      this.detail,
      recording.joined > 0
        ? el("p", {
            class: "note",
            text: `${plural(recording.joined, "small call path")} ${recording.joined === 1 ? "is" : "are"} joined under “(smaller call paths)”; the viewers show them all.`,
          })
        : null,
      this.tooltip,
    );
    new ResizeObserver(() => this.#resized()).observe(this.element);
    document.addEventListener("scroll", () => this.#hover(null), { capture: true, passive: true });
  }

  #pathOf(node) {
    return node < 0 ? "" : pathTo(this.tree, node).join(".");
  }

  /** A click on folded frames unfolds them. */
  #zoom(node) {
    const isFold = node >= 0 && this.tree.folds.has(node);
    this.state.go(isFold ? { fold: "0", zoom: "", sel: "" } : { zoom: this.#pathOf(node) });
  }

  // ---------------------------------------------------------------- controls

  #toolbar() {
    const { recording } = this;
    this.measure = el(
      "select",
      { "aria-label": "Weight", onchange: () => this.state.go({ measure: this.measure.value, zoom: "", sel: "" }) },
      recording.weightOptions(0),
    );
    this.shot = el("select", {
      "aria-label": "Heap shot",
      onchange: () => this.state.go({ measure: this.shot.value, zoom: "", sel: "" }),
    });
    this.ofShot = el("label", {}, el("span", { text: "Heap shot" }), this.shot);
    this.find = el("input", {
      type: "search",
      placeholder: "Search functions",
      "aria-label": "Search functions; /…/ is a regular expression",
      oninput: () => this.state.replace({ find: this.find.value }),
    });
    this.from = this.#choice("Direction", "from", [
      ["roots", "Callees"],
      ["leaves", "Callers"],
      ["time", "Time order"],
    ]);
    this.activity = this.#choice("Activity", "activity", [
      ["", "Strip"],
      ["heatmap", "Heatmap"],
    ]);
    this.by = this.#choice("Grouping", "by", [
      ["all", "Merged"],
      ["thread", "By thread"],
    ]);
    this.up = this.#choice("Growth", "up", [
      ["", "Down"],
      ["1", "Up"],
    ]);
    this.threadsMenu = new ThreadsMenu(recording, this.state);
    this.fold = button("Fold runtime", () => this.state.go({ fold: this.isFolding ? "0" : "", zoom: "", sel: "" }), {
      title: "Frames of the runtime before your code are one frame",
    });
    return el(
      "div",
      { class: "toolbar" },
      el("label", {}, el("span", { text: "Weight" }), this.measure),
      this.ofShot,
      recording.threads.length > 1 ? this.threadsMenu.element : null,
      this.from,
      recording.threads.length > 1 ? this.by : null,
      this.up,
      this.fold,
      el("span", { class: "search" }, this.find, this.matches),
    );
  }

  /** Buttons of which one is pressed. */
  #choice(label, key, options) {
    return el(
      "div",
      { class: "choice", role: "group", "aria-label": label, "data-key": key },
      options.map(([value, text]) =>
        button(text, () => this.state.go({ [key]: value, zoom: "", sel: "" }), { "data-value": value }),
      ),
    );
  }

  // ---------------------------------------------------------------- what is shown

  /** Reads the state; what the other views show, too: this.measureIndex, this.threads, this.range, this.merged. */
  read(values) {
    const { recording } = this;
    this.measureIndex = recording.measureAt(values.measure);
    const { timed } = recording.measures[this.measureIndex];
    this.threads =
      values.threads === "" ? null : new Set(values.threads.split(",").filter((id) => recording.threadOf.has(id)));
    const range = /^(\d+)-(\d+)$/.exec(values.range);
    const last = recording.nBuckets - 1;
    this.range = timed && range ? [Math.min(Number(range[1]), last), Math.min(Number(range[2]), last)] : null;
    this.merged = this.#cached("merged", mergedTree);
  }

  #cached(kind, make) {
    const key = JSON.stringify([kind, this.measureIndex, this.threads && [...this.threads], this.range]);
    if (!this.trees.has(key)) {
      if (this.trees.size > 8) {
        this.trees.delete(this.trees.keys().next().value);
      }
      this.trees.set(key, make(this.recording, this.measureIndex, this.threads, this.range));
    }
    return this.trees.get(key);
  }

  show(values) {
    const { recording } = this;
    const measure = recording.measures[this.measureIndex];
    this.unit = measure.unit;
    this.measure.replaceChildren(...recording.weightOptions(this.measureIndex));
    this.ofShot.hidden = recording.shotAt(this.measureIndex) === null || recording.nShots < 2;
    if (!this.ofShot.hidden) {
      this.shot.replaceChildren(...recording.shotOptions(this.measureIndex));
    }
    for (const group of [this.from, this.by, this.up, this.activity]) {
      for (const option of group.children) {
        option.setAttribute("aria-pressed", String(values[group.dataset.key] === option.dataset.value));
      }
    }
    this.threadsMenu.show(this.threads, this.measureIndex);
    this.isFolding = values.fold !== "0";
    if (this.find.value !== values.find) {
      this.find.value = values.find;
    }
    const from = measure.timed || values.from !== "time" ? values.from : "roots";
    this.from.querySelector("[data-value=time]").hidden = !measure.timed || recording.durationNs <= 0;
    this.by.hidden = from !== "roots";
    this.fold.hidden = from === "leaves"; // else #paths tells
    this.inOrder.element.hidden = from !== "time";
    this.tree =
      from === "leaves"
        ? this.#cached("callers", () => new CallersTree(this.merged))
        : from === "time"
          ? this.#inTime()
          : this.#paths(values);
    this.#showActivity(values, measure);
    this.chosen = this.#search(values.find);
    const zoomed = values.zoom === "" ? -1 : nodeAt(this.tree, values.zoom.split("."));
    this.#sayNothing();
    this.graph.show(this.tree, {
      zoomed,
      selected: values.sel === "" ? -1 : nodeAt(this.tree, values.sel.split(".")),
      isChosen: this.chosen,
      upward: values.up === "1",
      colorOf: (frame) => recording.kindOf(frame).color,
      isInlined: (frame) => recording.isInlined(frame),
    });
    this.#showPath(zoomed);
    this.#showLegend();
    keepingFocus(this.costs, () => this.costs.replaceChildren(costsElement(this.merged, measure, this.state)));
    this.#describe(this.graph.selected >= 0 ? this.graph.selected : zoomed);
  }

  #showActivity(values, measure) {
    const { recording } = this;
    const isThere = measure.timed && recording.durationNs > 0;
    const isHeatmap = isThere && values.activity === "heatmap";
    this.activity.hidden = !isThere;
    this.strip.element.hidden = !isThere || isHeatmap;
    this.heatmap.element.hidden = !isHeatmap;
    if (isThere) {
      const shown = isHeatmap ? this.heatmap : this.strip;
      shown.show(recording.activity(this.measureIndex, this.threads), this.unit, this.range, samplesOf(measure));
    }
  }

  /** The busiest of the chosen threads in the order of time. */
  #inTime() {
    const thread = this.inOrder.show(this.threads, this.measureIndex);
    const paths = this.#paths({ by: "all" });
    return this.#cached(
      `time ${thread} ${paths === this.merged}`,
      () => new TimeTree(this.recording, paths, this.measureIndex, thread, this.range),
    );
  }

  /** The call paths from the roots, folded where that is wanted and there is something to fold. */
  #paths({ by }) {
    const [name, paths] =
      by === "thread" ? ["threads", this.#cached("threads", treeByThread)] : ["merged", this.merged];
    const measure = this.recording.measures[this.measureIndex];
    const folded = this.#cached(`folded ${name}`, () => foldedTree(paths, measure));
    this.fold.hidden = folded === null;
    this.fold.setAttribute("aria-pressed", String(this.isFolding));
    return this.isFolding && folded !== null ? folded : paths;
  }

  /** Bytes: which frames match; null where nothing is looked for. Shows their share. */
  #search(text) {
    if (text === "") {
      this.matches.textContent = "";
      return null;
    }
    const matches = matcher(text);
    if (matches === null) {
      this.matches.textContent = "not a regular expression";
      return null;
    }
    const { recording } = this;
    const isChosen = Uint8Array.from(recording.frames.func, (func) => (recording.isNamed(func, matches) ? 1 : 0));
    const share = this.merged.shareOf(isChosen);
    this.matches.textContent = `${formatShare(share, this.merged.whole) || "0%"} · ${formatAmount(share, this.unit)}`;
    return isChosen;
  }

  /** Why there is no graph. */
  #sayNothing() {
    const isNone = this.threads !== null && this.threads.size === 0;
    const isEmpty = !(this.merged.whole > 0);
    this.nothing.hidden = !isEmpty;
    this.graph.element.hidden = isEmpty;
    this.nothing.replaceChildren(
      isNone ? "No thread is chosen. " : "Nothing of this weight is in the chosen threads and time. ",
      button(isNone ? "All threads" : "Everything", () =>
        this.state.go(isNone ? { threads: "" } : { threads: "", range: "" }),
      ),
    );
  }

  #showPath(zoomed) {
    const nodes = [];
    for (let node = zoomed; node >= 0; node = this.tree.parentOf(node)) {
      nodes.push(node);
    }
    const shown = nodes.reverse().slice(-4);
    this.path.hidden = zoomed < 0;
    this.path.replaceChildren(
      button("all", () => this.graph.on.zoom(-1)),
      nodes.length > shown.length ? "›…" : "",
      ...shown.flatMap((node) => ["›", button(this.tree.nameOf(node), () => this.graph.on.zoom(node))]),
    );
  }

  /** The kinds of what is on top of the stack, the largest first. */
  #showLegend() {
    const found = new Map();
    const { own, frame, whole } = this.merged;
    let hasInlined = false;
    for (let node = 0; node < own.length; node++) {
      if (this.merged.total[node] > 0 && frame[node] >= 0) {
        const kind = this.recording.kindOf(frame[node]);
        // Tiers of one family have one colour.
        const key = `${kind.family ?? kind.name} ${kind.color}`;
        const entry = found.get(key) ?? { names: new Set(), family: kind.family, color: kind.color, self: 0 };
        entry.self += own[node];
        entry.names.add(kind.name);
        found.set(key, entry);
        hasInlined ||= this.recording.isInlined(frame[node]);
      }
    }
    const sorted = [...found.values()].sort((a, b) => b.self - a.self);
    const labelOf = ({ names, family }) => (names.size > 1 ? family : [...names][0]) || "Other";
    const labels = sorted.map(labelOf);
    // Two families may have a tier of the same name.
    const label = (nth) =>
      labels.indexOf(labels[nth]) === labels.lastIndexOf(labels[nth])
        ? labels[nth]
        : (sorted[nth].family ?? labels[nth]);
    this.legend.replaceChildren(
      ...sorted.slice(0, SHOWN_IN_LEGEND).map(({ names, color, self }, nth) => {
        const swatch = el("span", { class: isOffCpuColor(color) ? "swatch striped" : "swatch" });
        swatch.style.backgroundColor = shade(color, "", isDark());
        return el(
          "span",
          { class: "entry", title: [...names].join(", ") },
          swatch,
          label(nth),
          el("span", { class: "share", text: self > 0 ? formatShare(self, whole) : "" }),
        );
      }),
      sorted.length > SHOWN_IN_LEGEND
        ? el("span", { class: "entry", text: `and ${sorted.length - SHOWN_IN_LEGEND} more` })
        : "",
      hasInlined ? el("span", { class: "entry" }, el("span", { class: "swatch inlined" }), "inlined") : "",
    );
  }

  // ---------------------------------------------------------------- one frame

  #facts(node) {
    const { tree, recording, unit } = this;
    const total = tree.totalOf(node);
    const self = tree.selfOf(node);
    const facts = [`total ${formatAmount(total, unit)} (${formatShare(total, tree.whole) || "0%"})`];
    facts.push(`self ${formatAmount(self, unit)} (${formatShare(self, tree.whole) || "0%"})`);
    const frame = node < 0 ? -1 : tree.frameOf(node);
    if (frame >= 0) {
      const func = recording.funcOf(frame);
      facts.push(recording.kindOf(frame).name + (recording.isInlined(frame) ? ", inlined" : ""));
      facts.push(recording.placeOf(func, true), recording.libOf(func));
    }
    return facts.filter((fact) => fact !== "");
  }

  #fullName(node) {
    const frame = node < 0 ? -1 : this.tree.frameOf(node);
    return frame < 0 ? this.tree.nameOf(node) : this.recording.fullNameOf(this.recording.funcOf(frame));
  }

  #describe(node) {
    const name = node < 0 ? "all" : this.#fullName(node);
    const frame = node < 0 ? -1 : this.tree.frameOf(node);
    const actions = [];
    if (frame >= 0) {
      const func = this.recording.funcOf(frame);
      const place = this.recording.sourceOf(func);
      actions.push(button("Search for it", () => this.state.go({ find: this.recording.nameOf(frame) })));
      if (place !== null) {
        actions.push(
          button("Show source", () => this.state.go({ tab: "source", source: `${place.source}:${place.line}` })),
        );
      }
    }
    const code = frame < 0 ? -1 : this.recording.codeOf(this.recording.funcOf(frame));
    if (code >= 0) {
      actions.push(button("Show instructions", () => this.state.go({ tab: "instructions", code: String(code) })));
    }
    this.detail.replaceChildren(
      el("strong", { text: name }),
      el("span", { text: this.#facts(node).join(" · ") }),
      el("span", { class: "row" }, actions),
    );
  }

  #hover(node, event) {
    this.tooltip.hidden = node === null || event.pointerType === "touch";
    if (this.tooltip.hidden) {
      return;
    }
    this.tooltip.replaceChildren(
      el("strong", { text: this.#fullName(node) }),
      ...this.#facts(node).map((fact) => el("div", { text: fact })),
    );
    const { offsetWidth, offsetHeight } = this.tooltip;
    const x = Math.min(event.clientX + 14, window.innerWidth - offsetWidth - 8);
    const below = event.clientY + 18;
    const y = below + offsetHeight > window.innerHeight ? event.clientY - offsetHeight - 10 : below;
    this.tooltip.style.transform = `translate(${Math.max(4, x)}px, ${Math.max(4, y)}px)`;
  }

  #resized() {
    if (this.tree && this.element.clientWidth > 0) {
      this.graph.layOut();
      for (const activity of [this.strip, this.heatmap]) {
        if (!activity.element.hidden) {
          activity.draw();
        }
      }
    }
  }

  redraw() {
    if (this.tree) {
      this.#showLegend();
      this.#resized();
    }
  }
}
