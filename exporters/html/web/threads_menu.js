// The menu of threads: which ones the graph and the functions are of.

const MOST_THREADS_LISTED = 200;

class ThreadsMenu {
  constructor(recording, state) {
    this.recording = recording;
    this.state = state;
    this.chosen = null;
    this.title = el("summary");
    this.list = el("div", { class: "thread-list" });
    this.element = el("details", { class: "threads menu" }, this.title, this.list);
    this.element.addEventListener("toggle", () => this.element.open && this.#fill());
    closesAsMenu(this.element);
  }

  /** chosen: a Set of ids, null is all; measure: whose amounts are listed. */
  show(chosen, measure) {
    this.chosen = chosen;
    this.measure = measure;
    const n = this.recording.nThreads;
    this.title.textContent =
      chosen === null
        ? `All ${plural(n, "thread")}`
        : chosen.size === 0
          ? "No thread"
          : `${chosen.size} of ${plural(n, "thread")}`;
    for (const box of this.list.querySelectorAll("input[type=checkbox]")) {
      box.checked = chosen === null || chosen.has(box.value);
    }
  }

  #fill() {
    const { recording, chosen } = this;
    const amounts = amountsOfThreads(recording, this.measure);
    const whole = [...amounts.values()].reduce((a, b) => a + b, 0);
    const sorted = recording.threads.slice().sort((a, b) => amounts.get(b.id) - amounts.get(a.id));
    const several = recording.info.processes.length > 1;
    const rows = el("div", { class: "thread-rows", role: "group", "aria-label": "Threads" });
    const row = (thread) => {
      const name = several ? `${thread.name} · ${recording.processName(thread.process)}` : thread.name;
      const box = el("input", {
        type: "checkbox",
        value: thread.id,
        checked: chosen === null || chosen.has(thread.id),
        onchange: (event) => this.#choose(thread.id, event.target.checked),
      });
      return el(
        "div",
        { class: "thread-row" },
        el(
          "label",
          {},
          box,
          el("span", { text: name }),
          el("span", { class: "share", text: formatShare(amounts.get(thread.id), whole) }),
        ),
        button("only", () => this.#go(thread.id), { class: "quiet", "aria-label": `Only this thread: ${name}` }),
      );
    };
    const fill = (wanted) =>
      rows.replaceChildren(
        ...sorted
          .filter((t) => t.name.toLowerCase().includes(wanted))
          .slice(0, MOST_THREADS_LISTED)
          .map(row),
      );
    this.list.replaceChildren(
      ...[
        el(
          "div",
          { class: "row" },
          button("All", () => this.#go("")),
          button("Busiest", () => this.#go(sorted[0].id)),
          sorted.length > 12
            ? el("input", {
                type: "search",
                placeholder: "Filter threads",
                "aria-label": "Filter threads",
                oninput: (event) => fill(event.target.value.toLowerCase()),
              })
            : null,
        ),
        rows,
        this.#idle(),
      ].filter((part) => part !== null),
    );
    fill("");
  }

  #idle() {
    const n = this.recording.nThreads - this.recording.threads.length;
    return n > 0
      ? el("p", { class: "note", text: `${plural(n, "thread")} more ${n === 1 ? "has" : "have"} nothing.` })
      : null;
  }

  #go(threads) {
    this.state.go({ threads, zoom: "", sel: "" });
  }

  #choose(id, isChosen) {
    const chosen = new Set(this.chosen ?? this.recording.threads.map((t) => t.id));
    if (isChosen) {
      chosen.add(id);
    } else {
      chosen.delete(id);
    }
    const isAll = chosen.size === this.recording.threads.length;
    this.state.replace({ threads: isAll ? "" : [...chosen].join(",") || "-", zoom: "", sel: "" });
  }
}

/** What each thread has of a measure, by its id. */
function amountsOfThreads(recording, measure) {
  const found = new Map(recording.threads.map(({ id }) => [id, 0]));
  for (const series of recording.seriesOf(measure, null)) {
    if (series.thread >= 0) {
      const id = threadId(series);
      found.set(id, found.get(id) + series.amount.reduce((a, b) => a + b, 0));
    }
  }
  return found;
}

/** A menu closes when something else is clicked, and with Escape, which goes back to its title. */
function closesAsMenu(menu) {
  document.addEventListener("click", (event) => {
    if (!menu.contains(event.target)) {
      menu.open = false;
    }
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && menu.open) {
      event.stopPropagation();
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });
}
