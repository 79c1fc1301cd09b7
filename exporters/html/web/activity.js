// The strip of activity over time, in which a range is chosen: by dragging, or with the arrow keys.

const STRIP_HEIGHT = 64;
const STRIP_AXIS = 16;

const SAMPLES_IN_BAR = 4;
const MOST_BARS = 600;

/** The sums of so many values each; what is left over at the end is as much as if it were whole. */
function joinedBars(values, wide) {
  const found = new Float64Array(Math.ceil(values.length / wide));
  values.forEach((value, i) => {
    found[Math.floor(i / wide)] += value;
  });
  const rest = values.length % wide;
  if (rest > 0) {
    found[found.length - 1] *= wide / rest;
  }
  return found;
}

class ActivityStrip {
  /** chosen: called with [first, last] buckets or null, and whether the choice is made (else it is being dragged). */
  constructor(recording, chosen) {
    this.recording = recording;
    this.chosen = chosen;
    this.range = null;
    this.canvas = el("canvas", {
      tabindex: "0",
      role: "slider",
      class: "strip",
      "aria-label": "Range of time",
      "aria-valuemin": "0",
      "aria-valuemax": String(recording.nBuckets - 1),
    });
    this.readout = el("span", { class: "readout" });
    this.clear = button("Whole time", () => this.#choose(null, true), { class: "quiet" });
    this.element = el("div", { class: "activity" }, el("div", { class: "row" }, this.readout, this.clear), this.canvas);
    this.#listen();
  }

  /** nSamples: of which the values are, Infinity where they are exact. */
  show(values, unit, range, nSamples) {
    // Of few samples, narrow bars would say when events were that happened before or after.
    this.isOfFew = SAMPLES_IN_BAR * Math.min(values.length, MOST_BARS) > Math.max(nSamples, SAMPLES_IN_BAR);
    this.wide = Math.max(
      Math.ceil(values.length / MOST_BARS),
      Math.ceil((values.length * SAMPLES_IN_BAR) / Math.max(nSamples, SAMPLES_IN_BAR)),
    );
    this.nSamples = nSamples;
    this.values = joinedBars(values, this.wide);
    this.unit = unit;
    this.range = range;
    this.draw();
  }

  #bucketAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const n = this.recording.nBuckets;
    return Math.max(0, Math.min(n - 1, Math.floor(((event.clientX - box.left) / box.width) * n)));
  }

  #choose(range, isMade) {
    const n = this.recording.nBuckets;
    this.range = range !== null && range[0] <= 0 && range[1] >= n - 1 ? null : range;
    this.draw();
    this.chosen(this.range, isMade);
  }

  #listen() {
    onDrag(
      this.canvas,
      (event) => this.#bucketAt(event),
      (from, to, isMade) => {
        const isClick = isMade && from === to && this.range === null;
        this.#choose(isClick ? null : [Math.min(from, to), Math.max(from, to)], isMade);
      },
    );
    this.canvas.addEventListener("dblclick", () => this.#choose(null, true));
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Arrows move the range, with Shift its end; Escape takes it back. */
  #key(event) {
    const n = this.recording.nBuckets;
    const step = Math.max(1, Math.round(n / 50)) * (event.key === "ArrowLeft" ? -1 : 1);
    if (event.key === "Escape") {
      this.#choose(null, true);
    } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const [first, last] = this.range ?? [0, Math.max(0, Math.round(n / 10) - 1)];
      if (this.range === null) {
        this.#choose([first, last], true);
      } else if (event.shiftKey) {
        this.#choose([first, Math.max(first, Math.min(n - 1, last + step))], true);
      } else {
        const moved = Math.max(-first, Math.min(n - 1 - last, step));
        this.#choose([first + moved, last + moved], true);
      }
    } else {
      return;
    }
    event.preventDefault();
  }

  /** The times, in ns after the start, of the range. */
  bounds() {
    const { nBuckets, bucketNs, durationNs } = this.recording;
    const [first, last] = this.range ?? [0, nBuckets - 1];
    return [Math.min(first * bucketNs, durationNs), Math.min((last + 1) * bucketNs, durationNs)];
  }

  draw() {
    const width = this.canvas.parentElement.clientWidth;
    if (width === 0) {
      return;
    }
    const context = sharpContext(this.canvas, width, STRIP_HEIGHT);
    const n = this.recording.nBuckets;
    const { wide } = this;
    const largest = this.values.reduce((a, b) => Math.max(a, b), 0);
    const bottom = STRIP_HEIGHT - STRIP_AXIS;
    const [first, last] = this.range ?? [0, n - 1];
    context.fillStyle = cssColor("--strip");
    context.fillRect(0, 0, width, bottom);
    for (const isChosen of [false, true]) {
      context.fillStyle = cssColor(isChosen ? "--accent" : "--faint");
      context.beginPath();
      for (let i = 0; i < this.values.length; i++) {
        const end = Math.min((i + 1) * wide, n);
        if (this.values[i] > 0 && (end > first && i * wide <= last) === isChosen) {
          const height = Math.max(1, (this.values[i] / largest) * (bottom - 4));
          const shown = Math.max(1, ((end - i * wide) / n) * width + (wide > 1 ? -1 : 0.3));
          context.rect(((i * wide) / n) * width, bottom - height, shown, height);
        }
      }
      context.fill();
    }
    if (this.range !== null) {
      context.strokeStyle = cssColor("--accent");
      context.lineWidth = 1.5;
      context.strokeRect((first / n) * width + 0.75, 0.75, ((last - first + 1) / n) * width - 1.5, bottom - 1.5);
    }
    this.#axis(context, width, bottom);
    this.#say();
  }

  #axis(context, width, bottom) {
    const { nBuckets, bucketNs } = this.recording;
    const whole = nBuckets * bucketNs;
    const rough = whole / Math.max(2, Math.floor(width / 110));
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
    context.fillStyle = cssColor("--muted");
    context.font = "11px system-ui, sans-serif";
    for (let t = 0; t < whole; t += step) {
      const x = (t / whole) * width;
      context.fillRect(x, bottom, 1, 4);
      context.textAlign = t === 0 ? "left" : "center";
      if (x < width - 24) {
        context.fillText(formatTime(t), t === 0 ? 2 : x, STRIP_HEIGHT - 2);
      }
    }
  }

  #say() {
    const [start, end] = this.bounds();
    const text =
      this.range === null
        ? `Whole time, ${formatTime(this.recording.durationNs)}: drag to choose a range`
        : `${formatTime(start)} to ${formatTime(end)}, ${formatTime(end - start)} long`;
    this.readout.textContent = this.isOfFew
      ? `${text} · ${plural(this.nSamples, "sample")} only: each bar is of several`
      : text;
    this.clear.hidden = this.range === null;
    this.canvas.setAttribute("aria-valuenow", String((this.range ?? [0])[0]));
    this.canvas.setAttribute("aria-valuetext", text);
  }
}
