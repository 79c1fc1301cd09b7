// The heatmap of activity: a column for each second, or another round time, and its fractions from the bottom up. A
// range goes from a cell to a cell.

const HEATMAP_HIGHEST = 168;
const HEATMAP_AXIS = 16;
const MOST_FRACTIONS = 64;
const FEWEST_FRACTIONS = 5;
// Of few samples, cells are larger than this many in a column.
const FEWEST_OF_FEW = 8;

class Heatmap {
  /** chosen: as of ActivityStrip. */
  constructor(recording, chosen) {
    this.recording = recording;
    this.chosen = chosen;
    this.range = null;
    this.canvas = el("canvas", {
      tabindex: "0",
      role: "slider",
      class: "heatmap",
      "aria-label": "Range of time, from cell to cell",
      "aria-valuemin": "0",
    });
    this.readout = el("span", { class: "readout" });
    this.clear = button("Whole time", () => this.#choose(null, true), { class: "quiet" });
    this.element = el("div", { class: "activity" }, el("div", { class: "row" }, this.readout, this.clear), this.canvas);
    this.#measure();
    this.#listen();
  }

  /** How many parts of time are a cell, and how many cells a column. */
  #measure() {
    const { columnNs, bucketNs, nBuckets } = this.recording;
    let perColumn = Math.max(1, Math.round(columnNs / bucketNs));
    while (perColumn < FEWEST_FRACTIONS && perColumn * 10 <= nBuckets) {
      perColumn *= 10;
    }
    this.inCell = 1;
    const nSamples = this.recording.samplesInAll();
    const isFine = () =>
      perColumn / this.inCell > MOST_FRACTIONS ||
      (perColumn / this.inCell > FEWEST_OF_FEW && nBuckets / this.inCell > nSamples);
    while (isFine() && perColumn % (2 * this.inCell) === 0) {
      this.inCell *= 2;
    }
    this.nRows = Math.max(1, Math.round(perColumn / this.inCell));
    this.nCells = Math.ceil(nBuckets / this.inCell);
    this.nColumns = Math.ceil(this.nCells / this.nRows);
    this.canvas.setAttribute("aria-valuemax", String(this.nCells - 1));
  }

  show(values, unit, range) {
    this.values = new Float64Array(this.nCells);
    values.forEach((value, part) => {
      this.values[Math.floor(part / this.inCell)] += value;
    });
    this.unit = unit;
    this.range = range;
    this.draw();
  }

  #cellAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * this.nColumns);
    const row = this.nRows - 1 - Math.floor(((event.clientY - box.top) / (box.height - HEATMAP_AXIS)) * this.nRows);
    const within = (n, most) => Math.max(0, Math.min(most - 1, n));
    return within(within(column, this.nColumns) * this.nRows + within(row, this.nRows), this.nCells);
  }

  /** The parts of time from a cell to a cell. */
  #between(a, b) {
    const last = (Math.max(a, b) + 1) * this.inCell - 1;
    return [Math.min(a, b) * this.inCell, Math.min(last, this.recording.nBuckets - 1)];
  }

  #cells() {
    return this.range === null ? null : this.range.map((part) => Math.floor(part / this.inCell));
  }

  #choose(range, isMade) {
    const isAll = range !== null && range[0] === 0 && range[1] === this.recording.nBuckets - 1;
    this.range = isAll ? null : range;
    this.draw();
    this.chosen(this.range, isMade);
  }

  #listen() {
    onDrag(
      this.canvas,
      (event) => this.#cellAt(event),
      (from, to, isMade) => this.#choose(this.#between(from, to), isMade),
    );
    this.canvas.addEventListener("pointermove", (event) => {
      if (event.buttons === 0) {
        this.#say(this.#cellAt(event));
      }
    });
    this.canvas.addEventListener("pointerleave", () => this.#say());
    this.canvas.addEventListener("dblclick", () => this.#choose(null, true));
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Left and right move the range by a column, up and down by a cell; with Shift its end. Escape takes it back. */
  #key(event) {
    const step = { ArrowLeft: -this.nRows, ArrowRight: this.nRows, ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (event.key === "Escape") {
      this.#choose(null, true);
    } else if (step !== undefined) {
      const [first, last] = this.#cells() ?? [0, 0];
      const within = (cell) => Math.max(0, Math.min(this.nCells - 1, cell));
      if (this.range === null) {
        this.#choose(this.#between(0, this.nRows - 1), true);
      } else if (event.shiftKey) {
        this.#choose(this.#between(first, Math.max(first, within(last + step))), true);
      } else {
        const moved = Math.max(-first, Math.min(this.nCells - 1 - last, step));
        this.#choose(this.#between(first + moved, last + moved), true);
      }
    } else {
      return;
    }
    event.preventDefault();
  }

  draw() {
    const width = this.canvas.parentElement.clientWidth;
    if (width === 0) {
      return;
    }
    const high = Math.max(2, Math.min(12, Math.floor(HEATMAP_HIGHEST / this.nRows)));
    const bottom = high * this.nRows;
    const context = sharpContext(this.canvas, width, bottom + HEATMAP_AXIS);
    const wide = width / this.nColumns;
    const largest = this.values.reduce((a, b) => Math.max(a, b), 0);
    const cells = this.#cells();
    context.fillStyle = cssColor("--strip");
    context.fillRect(0, 0, width, bottom);
    context.fillStyle = cssColor("--hot");
    for (let cell = 0; cell < this.nCells; cell++) {
      const x = Math.floor(cell / this.nRows) * wide;
      const y = bottom - ((cell % this.nRows) + 1) * high;
      const isChosen = cells === null || (cell >= cells[0] && cell <= cells[1]);
      if (this.values[cell] > 0) {
        context.globalAlpha = (isChosen ? 1 : 0.35) * (0.12 + 0.88 * Math.sqrt(this.values[cell] / largest));
        context.fillRect(x, y, Math.max(wide - 0.5, 0.5), high - 0.5);
      }
    }
    context.globalAlpha = 1;
    if (cells !== null) {
      this.#outline(context, cells, wide, high, bottom);
    }
    this.#axis(context, width, wide, bottom);
    this.#say();
  }

  #outline(context, [first, last], wide, high, bottom) {
    context.fillStyle = cssColor("--accent");
    for (let column = Math.floor(first / this.nRows); column <= Math.floor(last / this.nRows); column++) {
      const from = Math.max(0, first - column * this.nRows);
      const to = Math.min(this.nRows, last + 1 - column * this.nRows);
      context.globalAlpha = 0.14;
      context.fillRect(column * wide, bottom - to * high, wide, (to - from) * high);
      context.globalAlpha = 1;
      context.fillRect(column * wide, bottom - from * high - 1, wide, 1.5);
      context.fillRect(column * wide, bottom - to * high, wide, 1.5);
    }
  }

  #axis(context, width, wide, bottom) {
    const columnNs = this.nRows * this.inCell * this.recording.bucketNs;
    const every = [1, 2, 5, 10, 20, 50, 100].find((n) => n * wide >= 70) ?? 100;
    context.fillStyle = cssColor("--muted");
    context.font = "11px system-ui, sans-serif";
    for (let column = 0; column < this.nColumns; column += every) {
      const x = column * wide;
      context.fillRect(x, bottom, 1, 4);
      if (x < width - 40) {
        context.fillText(formatTime(column * columnNs), x + 3, bottom + HEATMAP_AXIS - 3);
      }
    }
  }

  /** cell: over which the pointer is. */
  #say(cell = null) {
    const { bucketNs, durationNs } = this.recording;
    const at = (part) => formatTime(Math.min(part * bucketNs, durationNs));
    const cellNs = this.inCell * bucketNs;
    const what = `each column is ${formatTime(this.nRows * cellNs)}, each cell ${formatTime(cellNs)}`;
    const text =
      this.range === null
        ? `Whole time, ${formatTime(durationNs)}: ${what}`
        : `${at(this.range[0])} to ${at(this.range[1] + 1)}, ${formatTime((this.range[1] + 1 - this.range[0]) * bucketNs)} long: ${what}`;
    this.readout.textContent =
      cell === null ? text : `${at(cell * this.inCell)}: ${formatAmount(this.values[cell], this.unit)}. ${what}`;
    this.clear.hidden = this.range === null;
    this.canvas.setAttribute("aria-valuenow", String(this.#cells()?.[0] ?? 0));
    this.canvas.setAttribute("aria-valuetext", text);
  }
}
