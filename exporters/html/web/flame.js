// The flame graph: a tree drawn on a canvas. Only what is wide enough to be seen is laid out, and only the rows on the
// screen are drawn, so that the size of the tree does not matter.

const ROW = 20;
const NARROWEST = 0.6; // pixels
const TEXT_FROM = 28; // pixels
const SLIDE_MS = 160;
const HIGHEST = 0.62; // of the window
const PRINTED_ROWS = 44;

class FlameGraph {
  /** on: {zoom(node), hover(node, event), select(node), range([first, last])}; node -1 is the whole. range: parts of
   * time, of trees whose nodes have places in time, in which one drags to choose some. */
  constructor(on) {
    this.on = on;
    this.tree = null;
    this.zoomed = -1;
    this.selected = -1;
    this.hovered = -1;
    this.dragged = null;
    this.isChosen = null;
    this.upward = false;
    this.window = [0, 1];
    this.canvas = el("canvas", { class: "flame-canvas" });
    this.spacer = el("div", { class: "flame-spacer" }, this.canvas);
    this.element = el(
      "div",
      {
        class: "flame",
        tabindex: "0",
        role: "application",
        "aria-label": "Flame graph. Arrow keys go from frame to frame, Enter zooms, Escape zooms out.",
      },
      this.spacer,
    );
    this.#listen();
  }

  /** zoomed: a node of the tree; isChosen: bytes, which frames match the search, or null; colorOf: the name of a
   * frame's colour; fillOf: a node's CSS colour, in place of that. */
  show(tree, { zoomed, selected = -1, isChosen, upward, colorOf, isInlined, fillOf = null }) {
    const isOther = tree !== this.tree;
    const isTurned = upward !== this.upward;
    Object.assign(this, { tree, isChosen, upward, colorOf, isInlined, fillOf });
    if (isOther) {
      this.hovered = -1;
    }
    this.selected = selected;
    const isMoved = zoomed !== this.zoomed || isOther;
    this.zoomed = zoomed;
    const target = this.extentOf(zoomed);
    if (!isMoved) {
      this.layOut();
      if (isTurned) {
        this.#scrollToStart();
      }
    } else if (isOther || matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.window = target;
      this.layOut();
      this.#scrollToStart();
    } else {
      this.#slideTo(target);
      this.#scrollToStart();
    }
  }

  /** [start, end] of a node, as parts of the whole. */
  extentOf(node) {
    if (node < 0 || !(this.tree.whole > 0)) {
      return [0, 1];
    }
    if (this.tree.spanOf !== undefined) {
      return this.tree.spanOf(node);
    }
    let start = 0;
    for (let at = node; at >= 0; at = this.tree.parentOf(at)) {
      for (const child of this.tree.childrenOf(this.tree.parentOf(at))) {
        if (child === at) {
          break;
        }
        start += this.tree.totalOf(child) / this.tree.whole;
      }
    }
    return [start, start + this.tree.totalOf(node) / this.tree.whole];
  }

  #slideTo(target) {
    const from = this.window;
    const began = performance.now();
    const step = (now) => {
      const done = Math.min(1, Math.max(0, (now - began) / SLIDE_MS));
      const eased = 1 - (1 - done) ** 3;
      this.window = from.map((x, i) => x + (target[i] - x) * eased);
      this.layOut();
      if (this.upward) {
        this.#scrollToStart();
      }
      if (done < 1 && this.sliding === began) {
        requestAnimationFrame(step);
      }
    };
    this.sliding = began;
    step(began);
    requestAnimationFrame(step);
  }

  #scrollToStart() {
    this.element.scrollTop = this.upward ? this.element.scrollHeight : 0;
  }

  // ---------------------------------------------------------------- layout

  /** Rectangles of what is in the window: rows of {node, x, width}, from the root on. */
  layOut() {
    this.sizeOf = Math.max(1, this.element.clientWidth);
    const [from, to] = this.window;
    const scale = this.sizeOf / Math.max(to - from, 1e-15);
    this.rows = [[{ node: -1, x: -from * scale, width: scale }]];
    const childrenIn = this.tree.spanOf === undefined ? this.#bySize(scale) : this.#byTime(from, scale);
    for (let depth = 0; depth < this.rows.length; depth++) {
      const next = this.rows[depth].flatMap((rectangle) => (rectangle.width < NARROWEST ? [] : childrenIn(rectangle)));
      if (next.length > 0) {
        this.rows.push(next);
      }
    }
    this.spacer.style.height = `${this.rows.length * ROW}px`;
    this.element.style.height = `${Math.min(this.rows.length * ROW, Math.max(220, window.innerHeight * HIGHEST))}px`;
    this.draw();
  }

  /** The children of a rectangle that can be seen, the largest first. */
  #bySize(scale) {
    const part = 1 / (this.tree.whole || 1);
    return ({ node, x }) => {
      const found = [];
      let at = x;
      for (const child of this.tree.childrenOf(node)) {
        const width = this.tree.totalOf(child) * part * scale;
        if (at > this.sizeOf || width < NARROWEST) {
          break; // those that follow are no larger
        }
        if (at + width >= 0) {
          found.push({ node: child, x: at, width });
        }
        at += width;
      }
      return found;
    };
  }

  /** Those that can be seen, at their places in time. Of several that are too narrow, one is drawn. */
  #byTime(from, scale) {
    return ({ node }) => {
      const found = [];
      let shownTo = Number.NEGATIVE_INFINITY;
      for (const child of this.tree.childrenOf(node)) {
        const [start, end] = this.tree.spanOf(child);
        const x = (start - from) * scale;
        if (x > this.sizeOf) {
          break;
        }
        const width = (end - start) * scale;
        if (x + width >= 0 && (width >= NARROWEST || x >= shownTo)) {
          found.push({ node: child, x, width: Math.max(width, NARROWEST) });
          shownTo = x + Math.max(width, 1);
        }
      }
      return found;
    };
  }

  #topOf(depth) {
    return this.upward ? (this.rows.length - 1 - depth) * ROW : depth * ROW;
  }

  // ---------------------------------------------------------------- drawing

  draw(printed = false) {
    const rows = this.rows.length;
    const height = printed ? Math.min(rows, PRINTED_ROWS) * ROW : this.element.clientHeight;
    const scrolled = printed ? (this.upward ? Math.max(0, rows * ROW - height) : 0) : this.element.scrollTop;
    const context = sharpContext(this.canvas, this.sizeOf, height);
    context.clearRect(0, 0, this.sizeOf, height);
    context.textBaseline = "middle";
    this.look = { dark: isDark(), text: cssColor("--ink"), found: cssColor("--found"), ring: cssColor("--ring") };
    for (let depth = 0; depth < rows; depth++) {
      const top = this.#topOf(depth) - scrolled;
      if (top > -ROW && top < height) {
        for (const rectangle of this.rows[depth]) {
          this.#drawFrame(context, rectangle, top);
        }
      }
    }
    if (this.dragged !== null) {
      this.#drawDragged(context, height);
    }
  }

  /** The range of time that is being dragged, as parts of the width. */
  #drawDragged(context, height) {
    const [from, to] = this.dragged.map((x) => x * this.sizeOf);
    context.fillStyle = cssColor("--accent");
    context.globalAlpha = 0.2;
    context.fillRect(Math.min(from, to), 0, Math.abs(to - from), height);
    context.globalAlpha = 1;
  }

  #drawFrame(context, { node, x, width }, top) {
    const left = Math.max(0, x);
    const right = Math.min(this.sizeOf, x + width);
    const wide = right - left - (right - left > 3 ? 1 : 0);
    const frame = node < 0 ? -1 : this.tree.frameOf(node);
    const isFound = frame >= 0 && this.isChosen !== null && this.isChosen[frame];
    context.globalAlpha = this.isChosen !== null && !isFound && frame >= 0 ? 0.38 : 1;
    context.fillStyle = isFound
      ? this.look.found
      : this.fillOf !== null
        ? this.fillOf(node, this.look.dark)
        : frame < 0
          ? shade(this.tree.folds?.has(node) ? "brown" : "grey", "", this.look.dark)
          : shade(this.colorOf(frame), this.tree.nameOf(node), this.look.dark);
    context.fillRect(left, top, Math.max(wide, 0.5), ROW - 1);
    if (frame >= 0 && wide > 4 && !isFound && isOffCpuColor(this.colorOf(frame))) {
      drawStripes(context, left, top, wide, ROW - 1, this.look.text);
    }
    const isInlined = frame >= 0 && this.isInlined(frame);
    if (isInlined && wide > 4) {
      context.fillStyle = this.look.text;
      for (let dot = left + 1; dot < right - 2; dot += 6) {
        context.fillRect(dot, top + ROW - 3, 3, 1);
      }
    }
    if (node >= 0 && (node === this.selected || node === this.hovered)) {
      context.globalAlpha = 1;
      context.strokeStyle = this.look.ring;
      context.lineWidth = node === this.selected ? 2 : 1;
      context.strokeRect(left + 1, top + 1, Math.max(wide - 2, 1), ROW - 3);
    }
    if (wide >= TEXT_FROM) {
      context.fillStyle = this.look.text;
      context.font = `${isInlined ? "italic " : ""}12px system-ui, sans-serif`;
      const text =
        node < 0 ? "all" : this.tree.folds?.has(node) ? `+ ${this.tree.nameOf(node)}` : this.tree.nameOf(node);
      context.fillText(fitting(text, wide - 8, context), left + 4, top + ROW / 2);
    }
    context.globalAlpha = 1;
  }

  // ---------------------------------------------------------------- pointer and keys

  nodeAtPoint(event) {
    const box = this.element.getBoundingClientRect();
    const y = event.clientY - box.top + this.element.scrollTop;
    const row = Math.floor(y / ROW);
    const depth = this.upward ? this.rows.length - 1 - row : row;
    const x = event.clientX - box.left;
    const found = (this.rows[depth] ?? []).find((rectangle) => x >= rectangle.x && x < rectangle.x + rectangle.width);
    return found === undefined ? null : found.node;
  }

  #listen() {
    let drag = null;
    this.element.addEventListener("scroll", () => {
      this.draw();
      this.on.hover(null, null);
    });
    this.element.addEventListener("pointermove", (event) => {
      if (drag !== null && event.buttons) {
        drag.moved ||= Math.abs(event.clientX - drag.x) > 4;
        if (drag.moved && this.tree.spanOf !== undefined) {
          this.dragged = [this.#placeOf(drag.x), this.#placeOf(event.clientX)];
          this.draw();
          this.on.hover(null, event);
          return;
        }
        if (drag.moved) {
          this.#moveTo(drag.window[0] - ((event.clientX - drag.x) / this.sizeOf) * (drag.window[1] - drag.window[0]));
          this.on.hover(null, event);
          return;
        }
      }
      const node = this.nodeAtPoint(event);
      if (node !== this.hovered) {
        this.hovered = node ?? -1;
        this.draw();
      }
      this.on.hover(node !== null && node >= 0 ? node : null, event);
    });
    this.element.addEventListener("pointerleave", (event) => {
      this.hovered = -1;
      this.draw();
      this.on.hover(null, event);
    });
    this.element.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, window: this.window, moved: false };
      if (this.tree.spanOf !== undefined) {
        this.element.setPointerCapture(event.pointerId);
      }
    });
    this.element.addEventListener("pointerup", () => {
      if (this.dragged !== null) {
        const [from, to] = this.window;
        const chosen = this.dragged.map((place) => from + place * (to - from)).sort((a, b) => a - b);
        this.dragged = null;
        this.on.range(chosen.map((place) => this.tree.partAt(place)));
      }
    });
    this.element.addEventListener("click", (event) => {
      const node = this.nodeAtPoint(event);
      if (node !== null && !drag?.moved) {
        this.#select(node);
        this.on.zoom(node);
      }
      drag = null;
    });
    this.element.addEventListener(
      "wheel",
      (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) {
          const box = this.element.getBoundingClientRect();
          this.#scale(Math.exp(event.deltaY / 300), (event.clientX - box.left) / this.sizeOf);
        } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          this.#moveTo(this.window[0] + (event.deltaX / this.sizeOf) * (this.window[1] - this.window[0]));
        } else {
          return;
        }
        event.preventDefault();
      },
      { passive: false },
    );
    this.element.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Where a point is, as a part of the width. */
  #placeOf(clientX) {
    const box = this.element.getBoundingClientRect();
    return Math.max(0, Math.min(1, (clientX - box.left) / this.sizeOf));
  }

  #moveTo(start) {
    const wide = this.window[1] - this.window[0];
    const from = Math.max(0, Math.min(1 - wide, start));
    this.window = [from, from + wide];
    this.layOut();
  }

  /** factor below 1 shows less, around the point at that part of the width. */
  #scale(factor, at) {
    const [from, to] = this.window;
    const wide = Math.min(1, Math.max(1e-12, (to - from) * factor));
    const start = Math.max(0, Math.min(1 - wide, from + at * (to - from - wide)));
    this.window = [start, start + wide];
    this.layOut();
  }

  #select(node) {
    this.selected = node;
    this.on.select(node);
    this.draw();
  }

  #key(event) {
    const { tree } = this;
    const node = this.selected >= 0 ? this.selected : this.zoomed;
    const siblings = node < 0 ? NONE : tree.childrenOf(tree.parentOf(node));
    const place = siblings.indexOf(node);
    const [toCaller, toCallee] = this.upward ? ["ArrowDown", "ArrowUp"] : ["ArrowUp", "ArrowDown"];
    const step = (this.window[1] - this.window[0]) / 8;
    const actions = {
      [toCaller]: () => node >= 0 && this.#select(tree.parentOf(node)),
      [toCallee]: () => tree.childrenOf(node).length > 0 && this.#select(tree.childrenOf(node)[0]),
      ArrowLeft: () => place > 0 && this.#select(siblings[place - 1]),
      ArrowRight: () => place >= 0 && place + 1 < siblings.length && this.#select(siblings[place + 1]),
      Enter: () => this.on.zoom(this.selected),
      Escape: () => this.on.zoom(this.zoomed < 0 ? -1 : tree.parentOf(this.zoomed)),
      Home: () => this.on.zoom(-1),
      a: () => this.#moveTo(this.window[0] - step),
      d: () => this.#moveTo(this.window[0] + step),
      w: () => this.#scale(0.7, 0.5),
      s: () => this.#scale(1 / 0.7, 0.5),
    };
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.key];
    if (action !== undefined) {
      event.preventDefault();
      action();
      this.#scrollTo(this.selected);
    }
  }

  #scrollTo(node) {
    const depth = this.rows.findIndex((row) => row.some((rectangle) => rectangle.node === node));
    if (depth >= 0) {
      const top = this.#topOf(depth);
      const { scrollTop, clientHeight } = this.element;
      if (top < scrollTop || top + ROW > scrollTop + clientHeight) {
        this.element.scrollTop = top - clientHeight / 2;
      }
    }
  }
}

/** Stripes from the lower left to the upper right, faint enough for text. */
function drawStripes(context, left, top, wide, high, color) {
  context.save();
  context.beginPath();
  context.rect(left, top, wide, high);
  context.clip();
  context.globalAlpha *= 0.16;
  context.strokeStyle = color;
  context.lineWidth = 2;
  context.beginPath();
  for (let x = left - high; x < left + wide; x += 9) {
    context.moveTo(x, top + high);
    context.lineTo(x + high, top);
  }
  context.stroke();
  context.restore();
}

/** The text, cut so that it is at most so wide. */
function fitting(text, width, context) {
  const most = Math.floor(width / 4);
  const candidate = text.length > most ? text.slice(0, most) : text;
  if (candidate.length === text.length && context.measureText(text).width <= width) {
    return text;
  }
  let low = 0;
  let high = candidate.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${candidate.slice(0, middle)}…`).width <= width) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low > 1 ? `${candidate.slice(0, low)}…` : "";
}
