// The differential tree: what each call path has in the base and in the new side. It offers what FlameGraph asks for:
// whole, childrenOf, totalOf, frameOf, parentOf, nameOf, keyOf; node -1 is above all roots.

const MODES = [
  ["new", "New", "Widths are those of the new side."],
  ["base", "Base", "Widths are those of the base."],
  ["difference", "Difference", "Widths are the differences, whichever way they go."],
];

class DiffTree {
  /** measured: those of the threads that are shown, of one measure. */
  constructor(data, measured, mode) {
    this.data = data;
    this.parent = data.nodes.parent;
    this.frame = data.nodes.frame;
    const n = this.parent.length;
    const [base, fresh] = [new Float64Array(n), new Float64Array(n)];
    for (const one of measured) {
      one.node.forEach((node, i) => {
        base[node] += one.base[i];
        fresh[node] += one.new[i];
      });
    }
    this.self = { base: base.slice(), new: fresh.slice() };
    const widths = { base, new: fresh, difference: base.map((amount, i) => Math.abs(fresh[i] - amount)) };
    this.sums = { base: 0, new: 0, difference: 0 };
    for (const [key, amounts] of Object.entries(widths)) {
      for (let node = n - 1; node >= 0; node--) {
        if (this.parent[node] >= 0) {
          amounts[this.parent[node]] += amounts[node];
        } else {
          this.sums[key] += amounts[node];
        }
      }
    }
    this.base = base;
    this.new = fresh;
    this.width = widths[mode];
    this.whole = this.sums[mode];
    this.children = new Map();
    for (let node = 0; node < n; node++) {
      if (this.width[node] > 0) {
        const above = this.parent[node];
        if (!this.children.has(above)) {
          this.children.set(above, []);
        }
        this.children.get(above).push(node);
      }
    }
    for (const nodes of this.children.values()) {
      nodes.sort((a, b) => this.width[b] - this.width[a] || a - b);
    }
  }

  childrenOf(node) {
    return this.children.get(node) ?? NONE;
  }

  totalOf(node) {
    return node < 0 ? this.whole : this.width[node];
  }

  frameOf(node) {
    return this.frame[node];
  }

  parentOf(node) {
    return this.parent[node];
  }

  functionOf(node) {
    return this.data.frames.name[this.frame[node]] || "(anonymous)";
  }

  /** The change stands in the frame, too: colour alone is not read by everybody. */
  nameOf(node) {
    const text = changeText(...this.amountsOf(node));
    const name = this.data.frames.short[this.frame[node]] || this.functionOf(node);
    return text === "" ? name : `${name}  ${text}`;
  }

  keyOf(node) {
    return String(this.frame[node]);
  }

  /** [base, new] with all below. */
  amountsOf(node) {
    return node < 0 ? [this.sums.base, this.sums.new] : [this.base[node], this.new[node]];
  }
}

/** "+2.1%", "new", "gone"; "" where nothing changed that the figure would show. */
function changeText(base, fresh) {
  if (!(base > 0)) {
    return fresh > 0 ? "new" : "";
  }
  if (!(fresh > 0)) {
    return "gone";
  }
  return percentText(fresh / base - 1);
}

function percentText(part) {
  const percent = 100 * part;
  const text = percent.toFixed(Math.abs(percent) >= 100 ? 0 : 1);
  return Number(text) === 0 ? "0%" : `${percent > 0 ? "+" : "\u2212"}${text.replace("-", "")}%`;
}

/** Red is more, blue is less: told apart with every kind of colour blindness. A doubling is as strong as it gets. */
function diffColor(base, fresh, dark) {
  const ratio = base > 0 && fresh > 0 ? Math.log2(fresh / base) : fresh > 0 ? 1 : -1;
  const strength = base === fresh ? 0 : Math.sqrt(Math.min(1, Math.abs(ratio)));
  const [hue, saturation] = ratio > 0 ? [12, 88] : [214, 80];
  const lightness = dark ? 27 + 21 * strength : 91 - 27 * strength;
  return `hsl(${hue} ${(8 + (saturation - 8) * strength).toFixed(0)}% ${lightness.toFixed(1)}%)`;
}
