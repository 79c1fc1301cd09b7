// The calls or samples of one thread in the order of time: a frame is as wide as it lasted.

// A sample stands for the time until the next one, unless that is so many times later than usual: then nothing ran.
const LONGEST_GAP = 10;

/**
 * A tree whose nodes have a place in time, spanOf; otherwise as PathTree. Times are in parts of the recording's time.
 *
 * paths: the PathTree, maybe folded, of which the nodes are; thread: an id; range: [first, last] part or null.
 */
class TimeTree {
  constructor(recording, paths, measure, thread, range) {
    this.recording = recording;
    this.paths = paths;
    this.folds = new Map();
    [this.first, this.end] = range === null ? [0, recording.nBuckets] : [range[0], range[1] + 1];
    this.whole = 0;
    // Of each node: that of the paths, the one above, start, end, amount with and without what is below.
    this.base = [];
    this.parent = [];
    this.start = [];
    this.until = [];
    this.total = [];
    this.own = [];
    this.below = new Map([[-1, []]]);
    this.#build(segmentsOf(recording, measure, thread, [this.first, this.end - 1]));
    for (let node = 0; node < this.base.length; node++) {
      if (paths.folds.has(this.base[node])) {
        this.folds.set(node, paths.folds.get(this.base[node]));
      }
    }
  }

  #build(segments) {
    const { paths } = this;
    const { placeOf } = paths;
    let open = [];
    let at = Number.NaN;
    for (const { start, end, node, amount } of segments) {
      const path = [];
      for (let on = placeOf === undefined ? node : placeOf[node]; on >= 0; on = paths.parent[on]) {
        path.push(on);
      }
      path.reverse();
      let same = 0;
      while (start - at < 1e-6 && same < open.length && same < path.length && this.base[open[same]] === path[same]) {
        same++;
      }
      open = open.slice(0, same);
      for (const on of path.slice(same)) {
        open.push(this.#add(on, open.length > 0 ? open[open.length - 1] : -1, start));
      }
      for (const on of open) {
        this.until[on] = end;
        this.total[on] += amount;
      }
      this.own[open[open.length - 1]] += amount;
      this.whole += amount;
      at = end;
    }
  }

  #add(on, above, start) {
    const node = this.base.push(on) - 1;
    this.parent.push(above);
    this.start.push(start);
    this.until.push(start);
    this.total.push(0);
    this.own.push(0);
    this.below.set(node, []);
    this.below.get(above).push(node);
    return node;
  }

  /** [start, end] of a node, as parts of what is shown. */
  spanOf(node) {
    const long = this.end - this.first;
    return node < 0 ? [0, 1] : [(this.start[node] - this.first) / long, (this.until[node] - this.first) / long];
  }

  /** The part of time at a place of what is shown. */
  partAt(place) {
    const part = Math.floor(this.first + place * (this.end - this.first));
    return Math.max(this.first, Math.min(this.end - 1, part));
  }

  /** In the order of time. */
  childrenOf(node) {
    return this.below.get(node);
  }

  totalOf(node) {
    return node < 0 ? this.whole : this.total[node];
  }

  selfOf(node) {
    return node < 0 ? 0 : this.own[node];
  }

  frameOf(node) {
    return this.paths.frameOf(this.base[node]);
  }

  parentOf(node) {
    return this.parent[node];
  }

  nameOf(node) {
    return this.paths.nameOf(this.base[node]);
  }

  keyOf(node) {
    return String(node);
  }
}

/** What ran when: {start, end, node, amount}, in the order of time. */
function segmentsOf(recording, measure, thread, range) {
  const { bucketNs } = recording;
  const { unit, name, kind } = recording.measures[measure];
  const isDuration = unit === "ns" && (name === "time of calls" || kind === "off-cpu");
  const parts = partsOf(recording, measure, thread, range);
  const usual = usualGap(parts);
  const found = [];
  let last = -1;
  parts.forEach(({ part, nodes, amounts }, nth) => {
    const sum = amounts.reduce((a, b) => a + b, 0);
    const next = parts[nth + 1]?.part ?? part + usual;
    const wide = isDuration
      ? Math.min(1, sum / bucketNs)
      : next - part <= LONGEST_GAP * usual
        ? next - part
        : Math.min(usual, next - part);
    let at = part;
    // What ran last goes on; of the others the order within a part of time is not known.
    const order = [...nodes.keys()].sort((a, b) => (nodes[b] === last) - (nodes[a] === last) || nodes[a] - nodes[b]);
    for (const i of order) {
      const end = Math.min(at + (amounts[i] / sum) * wide, range[1] + 1);
      found.push({ start: at, end, node: nodes[i], amount: amounts[i] });
      at = end;
    }
    // A part that is all in use meets the next one exactly.
    if (isDuration && sum >= 0.98 * bucketNs) {
      found[found.length - 1].end = part + 1;
    }
    last = nodes[order[order.length - 1]];
  });
  return found;
}

/** What a thread has in each part of time that has anything: {part, nodes, amounts}. */
function partsOf(recording, measure, thread, range) {
  const found = new Map();
  for (const { bucket, node, amount, thread: of } of recording.seriesOf(measure, new Set([thread]))) {
    for (let i = 0; of >= 0 && i < amount.length; i++) {
      if (bucket[i] >= range[0] && bucket[i] <= range[1]) {
        if (!found.has(bucket[i])) {
          found.set(bucket[i], { part: bucket[i], nodes: [], amounts: [] });
        }
        found.get(bucket[i]).nodes.push(node[i]);
        found.get(bucket[i]).amounts.push(amount[i]);
      }
    }
  }
  return [...found.values()].sort((a, b) => a.part - b.part);
}

/** The median of the distances between parts of time that have anything. */
function usualGap(parts) {
  const gaps = Float64Array.from(parts.slice(1), ({ part }, nth) => part - parts[nth].part).sort();
  return gaps.length > 0 ? Math.max(1, gaps[gaps.length >> 1]) : 1;
}

/** The choice of the thread whose time is shown, with the words around it. */
class ThreadChoice {
  constructor(recording, state) {
    this.recording = recording;
    this.select = el("select", {
      "aria-label": "Thread in the order of time",
      onchange: () => state.go({ threads: this.select.value, zoom: "", sel: "" }),
    });
    this.note = el("span");
    this.element = el(
      "div",
      { class: "row in-order", hidden: true },
      el("span", { text: "In the order of time:" }),
      this.select,
      this.note,
    );
  }

  /** The busiest of the chosen threads: its id, "" where none is chosen. */
  show(chosen, measure) {
    const { recording } = this;
    const amounts = amountsOfThreads(recording, measure);
    const sorted = recording.threads.slice().sort((a, b) => amounts.get(b.id) - amounts.get(a.id));
    const shown = sorted.find(({ id }) => chosen === null || chosen.has(id))?.id ?? "";
    this.select.replaceChildren(
      ...sorted
        .filter(({ id }, nth) => nth < MOST_THREADS_LISTED || id === shown)
        .map(({ id, name }) => el("option", { value: id, text: name, selected: id === shown })),
    );
    this.note.textContent = `parts of ${formatTime(recording.bucketNs)}; drag to choose a range`;
    return shown;
  }
}
