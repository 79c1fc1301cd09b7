// The recording: what recording.py wrote, as columns.

/** Sums of differences. */
function undone(differences) {
  const values = new Int32Array(differences.length);
  let value = 0;
  for (let i = 0; i < differences.length; i++) {
    value += differences[i];
    values[i] = value;
  }
  return values;
}

class Recording {
  /** served: what answers questions, null on a page from disk. */
  constructor(data, served = null) {
    this.served = served;
    this.info = data.info;
    this.madeBy = data.made_by;
    this.embedded = data.embedded;
    this.joined = data.joined;
    this.sources = data.sources;
    this.nBuckets = data.time.buckets;
    this.bucketNs = data.time.width_ns;
    // What a column of the heatmap is: a round time, of a whole number of buckets.
    this.columnNs = data.time.column_ns;
    this.durationNs = data.info.time.duration_ns;
    this.funcs = data.funcs;
    this.files = data.files;
    this.libs = data.libs;
    this.frames = data.frames;
    this.categories = data.categories;
    this.tiers = data.tiers;
    this.measures = data.measures;
    this.ratios = data.ratios;
    this.tracepoints = data.tracepoints;
    this.waits = data.waits;
    if (this.measures.some(({ kind }) => kind === "off-cpu")) {
      this.categories = this.categories.map((c) => ({ ...c, color: OFF_CPU.get(c.name) ?? c.color }));
    }
    this.parent = Int32Array.from(data.nodes.parent, (back, node) => (back === 0 ? -1 : node - back));
    this.frame = Int32Array.from(data.nodes.frame);
    this.nNodes = this.frame.length;
    this.series = data.series.map((series) => ({
      ...series,
      bucket: undone(series.bucket),
      node: undone(series.node),
      amount: Float64Array.from(series.amount),
    }));
    this.threadOf = this.#threads();
    this.threads = [...this.threadOf.values()];
  }

  /** Those with series, by id: {id, process, thread, name}. */
  #threads() {
    const found = new Map();
    for (const series of this.series) {
      if (series.thread >= 0 && !found.has(threadId(series))) {
        const process = this.info.processes[series.process];
        const counts = process.threads[series.thread];
        const name = counts ? `${counts.name || "thread"} ${counts.tid}` : `thread ${series.thread}`;
        found.set(threadId(series), { id: threadId(series), process: series.process, thread: series.thread, name });
      }
    }
    return found;
  }

  processName(process) {
    const { name, pid } = this.info.processes[process];
    return `${name || "process"} ${pid}`;
  }

  funcOf(frame) {
    return this.frames.func[frame];
  }

  /** The name of a frame's category, "" where it has none. */
  categoryOf(frame) {
    const category = this.frames.category[frame];
    return category < 0 ? "" : this.categories[category].name;
  }

  nameOf(frame) {
    return this.shortNameOf(this.funcOf(frame));
  }

  /** Without the arguments, where that is another name than all others. */
  shortNameOf(func) {
    return this.funcs.short[func] || this.fullNameOf(func);
  }

  fullNameOf(func) {
    return this.funcs.name[func] || "(no name)";
  }

  /** Whether a function has such a name, in either form. matches: from matcher(). */
  isNamed(func, matches) {
    return matches(this.funcs.name[func]) || (this.funcs.short[func] !== "" && matches(this.funcs.short[func]));
  }

  /** "pool.cpp:12", "" where it is unknown. */
  placeOf(func, whole = false) {
    const file = this.funcs.file[func];
    if (file < 0) {
      return "";
    }
    const line = this.funcs.line[func];
    const path = whole ? this.files[file] : fileName(this.files[file]);
    return line > 0 ? `${path}:${line}` : path;
  }

  libOf(func) {
    const lib = this.funcs.lib[func];
    return lib < 0 ? "" : this.libs[lib];
  }

  /** Whether a function is an address of its library, since nothing names what is there: libc.so.6+0x1234. */
  isAddress(func) {
    const lib = this.libOf(func);
    const name = this.funcs.name[func];
    return lib !== "" && name.startsWith(`${lib}+0x`) && /^[0-9a-f]+$/.test(name.slice(lib.length + 3));
  }

  /** Whether a function stands for the smaller call paths, which are joined. */
  isJoined(func) {
    return this.joined > 0 && func === this.funcs.name.length - 1;
  }

  /** Whether a function is a class of objects or a kind of roots, in all frames. */
  isClass(func) {
    this.codeFuncs ??= new Set(
      this.frames.func.filter((_, frame) => {
        const category = this.frames.category[frame];
        return category < 0 || !CLASS_CATEGORIES.includes(this.categories[category].name);
      }),
    );
    return !this.codeFuncs.has(func);
  }

  /** How many threads were recorded, with those that have nothing. */
  get nThreads() {
    return this.info.processes.reduce((sum, { threads }) => sum + threads.length, 0);
  }

  /** For each function the first that is such an address of the same library; for others the function. */
  addressGroups() {
    const first = new Map();
    return Int32Array.from(this.funcs.name, (_, func) => {
      if (!this.isAddress(func)) {
        return func;
      }
      const lib = this.libOf(func);
      if (!first.has(lib)) {
        first.set(lib, func);
      }
      return first.get(lib);
    });
  }

  /** {name, color} of a frame: its tier, which is more specific, or its category. */
  kindOf(frame) {
    const tier = this.frames.tier[frame];
    const category = this.frames.category[frame];
    return tier >= 0 ? this.tiers[tier] : category >= 0 ? this.categories[category] : { name: "Other", color: "grey" };
  }

  /** Whether a frame says why a thread was off the processors. */
  isOffCpu(frame) {
    return isOffCpuColor(this.kindOf(frame).color);
  }

  isInlined(frame) {
    return this.frames.inlined[frame] === 1;
  }

  /** The number of a measure from what the address says, which is the first where it says nothing of use. */
  measureAt(text) {
    return numbered(this.measures, text) === undefined ? 0 : Number(text);
  }

  /** The series of a measure in the chosen threads: a Set of their ids, null is all. */
  seriesOf(measure, threads) {
    return this.series.filter(
      (s) => s.measure === measure && (threads === null || s.thread < 0 || threads.has(threadId(s))),
    );
  }

  /** The name of the main event, "" where there is none or it is the only one. */
  mainEvent() {
    const { recorded } = this.info.events;
    return recorded.length > 1 ? recorded[0].name : "";
  }

  /** What a measure is called where one is chosen. */
  titleOf(measure) {
    const main = this.mainEvent();
    if (measure.name === "samples" && measure.unit !== "count") {
      return amountTitle(this.info.events.recorded[0].name);
    }
    return measure.name === "samples" && measure.kind === undefined && main !== ""
      ? `Samples of ${main}`
      : measureTitle(measure);
  }

  /** {number, of} of a measure of a heap shot: which one, and what of it; null of another measure. */
  shotAt(measure) {
    const found = /^heap shot (\d+)( by allocation site)?$/.exec(this.measures[measure].name);
    return found === null ? null : { number: Number(found[1]), of: found[2] ?? "" };
  }

  get nShots() {
    return this.measures.reduce((most, _, nth) => Math.max(most, this.shotAt(nth)?.number ?? 0), 0);
  }

  /** The options of a choice among the heap shots, of which the chosen measure is one. */
  shotOptions(chosen) {
    const { of } = this.shotAt(chosen);
    return [...this.measures.keys()]
      .filter((nth) => this.shotAt(nth)?.of === of)
      .map((nth) =>
        el("option", { value: String(nth), text: String(this.shotAt(nth).number), selected: nth === chosen }),
      );
  }

  /** The options of a choice of the weight: of heap shots one, since another choice is among them; tracepoints by themselves, where there are many. */
  weightOptions(chosen) {
    const shot = this.shotAt(chosen)?.number ?? this.nShots;
    const isShown = (nth) => (this.shotAt(nth)?.number ?? shot) === shot;
    const options = [...this.measures.entries()]
      .filter(([nth]) => isShown(nth))
      .map(([nth, measure]) => ({
        nth,
        isPoint: measure.kind === "tracepoint",
        option: el("option", { value: String(nth), text: this.titleOf(measure), selected: nth === chosen }),
      }));
    const points = options.filter(({ isPoint }) => isPoint).map(({ option }) => option);
    const label = this.tracepoints > 0 ? `Tracepoints: all ${this.tracepoints}, and the largest` : "Tracepoints";
    const grouped = points.length > 3 ? [el("optgroup", { label }, points)] : points;
    const before = options.filter(({ isPoint, nth }) => !isPoint && nth < this.#firstAfterEvents());
    const after = options.filter(({ isPoint, nth }) => !isPoint && nth >= this.#firstAfterEvents());
    return [...before.map(({ option }) => option), ...grouped, ...after.map(({ option }) => option)];
  }

  #firstAfterEvents() {
    const last = this.measures.findLastIndex(({ kind }) => kind !== undefined);
    return last < 0 ? this.measures.length : last + 1;
  }

  /** What each bucket of time has. */
  activity(measure, threads) {
    const found = new Float64Array(this.nBuckets);
    for (const { bucket, amount } of this.seriesOf(measure, threads)) {
      for (let i = 0; i < amount.length; i++) {
        found[bucket[i]] += amount[i];
      }
    }
    return found;
  }

  /** How many samples there are; Infinity of a recording of calls or allocations. */
  samplesInAll() {
    const n = this.info.processes.flatMap(({ threads }) => threads).reduce((all, { samples }) => all + samples, 0);
    return n > 0 ? n : Number.POSITIVE_INFINITY;
  }

  /** The number of the machine code in which a function has most; -1 where nobody has its instructions. */
  codeOf(func) {
    return this.served === null ? -1 : this.served.code.of_func[func];
  }

  /** The source in which a function stands and whose text can be had: its index and the function's line; null if there
   * is none. */
  sourceOf(func) {
    const file = this.funcs.file[func];
    const hasText = ({ text }) => text !== null || this.served !== null;
    const source = file < 0 ? -1 : this.sources.findIndex((s) => s.path === this.files[file] && hasText(s));
    return source < 0 ? null : { source, line: this.funcs.line[func] };
  }
}

function threadId({ process, thread }) {
  return `${process}.${thread}`;
}
