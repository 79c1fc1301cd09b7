// The trees that the flame graph draws. Both kinds offer the same: whole, childrenOf, totalOf, selfOf, frameOf, parentOf,
// nameOf; node -1 is above all roots. A frame of -1 belongs to a group: a process or a thread.

/** Adds what the series have, in buckets from range[0] to range[1], to each node. */
function addOwn(series, isTimed, range, own) {
  const { bucket, node, amount } = series;
  for (let i = 0; i < amount.length; i++) {
    if (!isTimed || range === null || (bucket[i] >= range[0] && bucket[i] <= range[1])) {
      own[node[i]] += amount[i];
    }
  }
}

/** Call paths from the roots. parent: of each node, a smaller one; frame: -1 is the group of that number in groups. */
class PathTree {
  constructor(recording, parent, frame, own, groups = new Map()) {
    this.recording = recording;
    this.parent = parent;
    this.frame = frame;
    this.own = own;
    this.groups = groups;
    // The titles of nodes that stand for folded frames.
    this.folds = new Map();
    // What costsOf finds, once that was asked for.
    this.costs = null;
    this.total = Float64Array.from(own);
    this.whole = 0;
    for (let node = parent.length - 1; node >= 0; node--) {
      if (parent[node] >= 0) {
        this.total[parent[node]] += this.total[node];
      } else {
        this.whole += this.total[node];
      }
    }
    this.#link();
  }

  /** The children of each node that have anything: this.children from this.first[node + 1] on. */
  #link() {
    const n = this.parent.length;
    this.first = new Int32Array(n + 2);
    for (let node = 0; node < n; node++) {
      if (this.total[node] > 0) {
        this.first[this.parent[node] + 2]++;
      }
    }
    for (let i = 1; i < n + 2; i++) {
      this.first[i] += this.first[i - 1];
    }
    this.children = new Int32Array(this.first[n + 1]);
    const next = this.first.slice();
    for (let node = 0; node < n; node++) {
      if (this.total[node] > 0) {
        this.children[next[this.parent[node] + 1]++] = node;
      }
    }
    this.sorted = new Uint8Array(n + 1);
  }

  /** The largest first. */
  childrenOf(node) {
    const found = this.children.subarray(this.first[node + 1], this.first[node + 2]);
    if (!this.sorted[node + 1]) {
      found.sort((a, b) => this.total[b] - this.total[a] || a - b);
      this.sorted[node + 1] = 1;
    }
    return found;
  }

  totalOf(node) {
    return node < 0 ? this.whole : this.total[node];
  }

  selfOf(node) {
    return node < 0 ? 0 : this.own[node];
  }

  frameOf(node) {
    return this.frame[node];
  }

  parentOf(node) {
    return this.parent[node];
  }

  nameOf(node) {
    return this.frame[node] < 0
      ? (this.folds.get(node) ?? this.groups.get(node))
      : this.recording.nameOf(this.frame[node]);
  }

  keyOf(node) {
    return this.frame[node] >= 0
      ? String(this.frame[node])
      : this.folds.has(node)
        ? FOLD_KEY
        : `~${this.groups.get(node)}`;
  }

  /** What all outermost nodes have whose frame is in the set of frames, given as bytes. */
  shareOf(isChosen) {
    const covered = new Uint8Array(this.parent.length);
    let found = 0;
    for (let node = 0; node < this.parent.length; node++) {
      const above = this.parent[node] >= 0 && covered[this.parent[node]];
      const chosen = this.frame[node] >= 0 && isChosen[this.frame[node]];
      if (chosen && !above) {
        found += this.total[node];
      }
      covered[node] = chosen || above ? 1 : 0;
    }
    return found;
  }

  /** self and total of each function; a recursive function's total is that of its outermost calls. */
  byFunction(groupOf = null) {
    const { func } = this.recording.frames;
    const n = this.recording.funcs.name.length;
    const self = new Float64Array(n);
    const total = new Float64Array(n);
    const open = new Int32Array(n);
    const path = [];
    const entered = [this.childrenOf(-1)];
    const places = [0];
    while (entered.length > 0) {
      const depth = entered.length - 1;
      if (places[depth] === entered[depth].length) {
        entered.pop();
        places.pop();
        const left = path.pop();
        if (left !== undefined && left >= 0) {
          open[left]--;
        }
        continue;
      }
      const node = entered[depth][places[depth]++];
      const own = this.frame[node] < 0 ? -1 : func[this.frame[node]];
      const f = own < 0 || groupOf === null ? own : groupOf[own];
      if (f >= 0) {
        self[f] += this.own[node];
        if (open[f]++ === 0) {
          total[f] += this.total[node];
        }
      }
      path.push(f);
      entered.push(this.childrenOf(node));
      places.push(0);
    }
    return { self, total };
  }
}

/** The tree of one measure. threads: a Set of ids, null is all; range: [first, last] bucket, null is all. */
function mergedTree(recording, measure, threads, range) {
  const own = new Float64Array(recording.nNodes);
  for (const series of recording.seriesOf(measure, threads)) {
    addOwn(series, recording.measures[measure].timed, range, own);
  }
  return new PathTree(recording, recording.parent, recording.frame, own);
}

/** The same with a node for each process and each thread above the roots. */
function treeByThread(recording, measure, threads, range) {
  const parent = [];
  const frame = [];
  const own = [];
  const groups = new Map();
  const group = (above, name) => {
    groups.set(parent.length, name);
    frame.push(-1);
    own.push(0);
    return parent.push(above) - 1;
  };
  const processes = new Map();
  const inThread = new Float64Array(recording.nNodes);
  const placeOf = new Int32Array(recording.nNodes).fill(-1);
  for (const series of recording.seriesOf(measure, threads)) {
    if (!processes.has(series.process)) {
      processes.set(series.process, group(-1, recording.processName(series.process)));
    }
    const thread = recording.threadOf.get(threadId(series));
    const top = thread ? group(processes.get(series.process), thread.name) : processes.get(series.process);
    const used = new Set();
    addOwn(series, recording.measures[measure].timed, range, inThread);
    for (let node of series.node) {
      for (; node >= 0 && !used.has(node); node = recording.parent[node]) {
        used.add(node);
      }
    }
    for (const node of Int32Array.from(used).sort()) {
      const above = recording.parent[node];
      frame.push(recording.frame[node]);
      own.push(inThread[node]);
      placeOf[node] = parent.push(above < 0 ? top : placeOf[above]) - 1;
      inThread[node] = 0;
    }
  }
  return new PathTree(recording, Int32Array.from(parent), Int32Array.from(frame), Float64Array.from(own), groups);
}

/** The functions that have something themselves, and below them their callers; made as far as it is looked at. */
class CallersTree {
  constructor(paths) {
    this.recording = paths.recording;
    this.folds = new Map();
    this.whole = paths.whole;
    this.paths = paths;
    // Of each node: frame, parent, total, and the paths that it stands for with what each brings.
    this.nodes = [];
    const members = [];
    const weights = [];
    for (let node = 0; node < paths.own.length; node++) {
      if (paths.own[node] > 0) {
        members.push(node);
        weights.push(paths.own[node]);
      }
    }
    this.roots = this.#grouped(-1, members, weights);
  }

  #grouped(parent, members, weights) {
    const byFrame = new Map();
    members.forEach((member, i) => {
      const frame = this.paths.frame[member];
      let made = byFrame.get(frame);
      if (made === undefined) {
        made = { frame, parent, total: 0, members: [], weights: [], children: null };
        byFrame.set(frame, made);
      }
      made.total += weights[i];
      made.members.push(member);
      made.weights.push(weights[i]);
    });
    const sorted = [...byFrame.values()].sort((a, b) => b.total - a.total || a.frame - b.frame);
    return Int32Array.from(sorted, (made) => this.nodes.push(made) - 1);
  }

  childrenOf(node) {
    if (node < 0) {
      return this.roots;
    }
    const made = this.nodes[node];
    if (made.children === null) {
      const members = [];
      const weights = [];
      made.members.forEach((member, i) => {
        const caller = this.paths.parent[member];
        if (caller >= 0) {
          members.push(caller);
          weights.push(made.weights[i]);
        }
      });
      made.children = members.length > 0 ? this.#grouped(node, members, weights) : NONE;
    }
    return made.children;
  }

  totalOf(node) {
    return node < 0 ? this.whole : this.nodes[node].total;
  }

  selfOf(node) {
    return node < 0 || this.nodes[node].parent >= 0 ? 0 : this.nodes[node].total;
  }

  frameOf(node) {
    return this.nodes[node].frame;
  }

  parentOf(node) {
    return this.nodes[node].parent;
  }

  nameOf(node) {
    return this.recording.nameOf(this.nodes[node].frame);
  }

  keyOf(node) {
    return String(this.nodes[node].frame);
  }
}
