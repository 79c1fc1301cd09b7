// The user's code first: the frames of runtimes and the system above it are one node, and wrappers of allocations none.

// Of what a frame has, so much must be in the user's code for it to be folded.
const LEAST_OWN = 0.1;
// Where nothing is the user's code, a frame is folded as long as one callee has so much of it, up to the kernel: what it
// was asked for tells why a thread waits.
const LEAST_OF_CHAIN = 0.9;
const FEWEST_FOLDED = 2;
const NAMED_IN_FOLD = 2;
const FOLD_KEY = "~f";

/**
 * How many folded frames there are from the top to each node of a tree, 0 of what is not folded, and the least and the
 * greatest number of them above the user's code.
 */
function prefixOf(paths, isTimed) {
  const { parent, frame, own, total, recording } = paths;
  const n = parent.length;
  const kernel = recording.categories.findIndex(({ name }) => name === "Kernel");
  const isOwn = (node) => frame[node] >= 0 && recording.frames.own[frame[node]] === 1;
  const ofUser = new Float64Array(n);
  let whole = 0;
  for (let node = n - 1; node >= 0; node--) {
    if (isOwn(node)) {
      ofUser[node] = total[node];
    }
    if (parent[node] >= 0) {
      ofUser[parent[node]] += ofUser[node];
    } else {
      whole += ofUser[node];
    }
  }
  const depth = new Int32Array(n);
  let [least, most] = [Number.POSITIVE_INFINITY, 0];
  for (let node = 0; node < n; node++) {
    const above = parent[node];
    const isTop = above < 0 || frame[above] < 0;
    if (!(total[node] > 0) || frame[node] < 0) {
      continue;
    }
    const before = isTop ? 0 : depth[above];
    if (isOwn(node) || (!isTop && before === 0)) {
      if (isOwn(node) && before > 0) {
        [least, most] = [Math.min(least, before), Math.max(most, before)];
      }
      continue;
    }
    const ofAbove = above < 0 ? paths.whole : total[above];
    const isChain =
      total[node] >= LEAST_OF_CHAIN * ofAbove &&
      own[node] <= (1 - LEAST_OF_CHAIN) * total[node] &&
      recording.frames.category[frame[node]] !== kernel;
    if (whole > 0 ? ofUser[node] >= LEAST_OWN * total[node] : isChain && isTimed) {
      depth[node] = before + 1;
      if (!(whole > 0)) {
        [least, most] = [depth[node], depth[node]];
      }
    }
  }
  return { depth, least, most };
}

const IN_MEMORY = "code in memory without names";
// How its functions begin, behind which is the name of the memory.
const CODE_IN_MEMORY = "[code in ";

function isCodeInMemory(recording, func) {
  return recording.fullNameOf(func).startsWith(CODE_IN_MEMORY);
}

/** Whose code a frame of a runtime is, in a word: "node", "V8", "libc"; "" where that is not known. */
function makerOf(recording, frame) {
  const func = recording.funcOf(frame);
  if (isCodeInMemory(recording, func)) {
    return IN_MEMORY;
  }
  const file = recording.funcs.file[func];
  const path = file < 0 ? "" : recording.files[file];
  if (path.startsWith("node:") || recording.fullNameOf(func).startsWith("node::")) {
    return "node";
  }
  if (recording.fullNameOf(func).startsWith("v8::")) {
    return "V8";
  }
  const lib = recording.libOf(func);
  return !["Runtime", "System library", "Kernel"].includes(recording.categoryOf(frame))
    ? ""
    : lib.startsWith("[kernel")
      ? "the kernel"
      : lib.replace(/(-[\d.]+)?\.so[\d.]*$/, "");
}

function foldTitle(recording, frames, least, most) {
  const counts = new Map();
  for (const frame of frames) {
    const maker = makerOf(recording, frame);
    counts.set(maker, (counts.get(maker) ?? 0) + 1);
  }
  counts.delete("");
  const makers = [...counts].sort((a, b) => b[1] - a[1]).slice(0, NAMED_IN_FOLD);
  const of = makers.map(([maker]) => maker).join(", ") || "the runtime";
  return `${least < most ? `${least} to ${most} frames` : plural(most, "frame")} of ${of}`;
}

/** Whether frames of wrappers are left out: those between the user's code and what it allocates. */
function hidesWrappers({ name, unit, kind }) {
  return kind === undefined && (unit === "bytes" || name === "allocated objects");
}

/** The tree with what is folded as nodes of their own, in its `folds`; null where there is nothing to fold. */
function foldedTree(paths, measure) {
  const { parent, frame, own, total, groups, recording } = paths;
  const { depth, least, most } = prefixOf(paths, measure.timed);
  const isFolding = most >= FEWEST_FOLDED;
  const wrapper = hidesWrappers(measure) ? recording.categories.findIndex(({ name }) => name === "Wrapper") : -1;
  const made = { parent: [], frame: [], own: [], groups: new Map() };
  const placeOf = new Int32Array(parent.length).fill(-1);
  const known = new Map();
  const folds = new Map();
  const nFrames = recording.frames.func.length;
  const add = (above, of) => {
    made.frame.push(of);
    made.own.push(0);
    return made.parent.push(above) - 1;
  };
  const foldBelow = (top) => {
    const there = [...folds].find(([, fold]) => fold.top === top);
    if (there !== undefined) {
      return there[0];
    }
    const fold = add(top, -1);
    folds.set(fold, { top, frames: new Set() });
    return fold;
  };
  const frameBelow = (above, of) => {
    const key = (above + 1) * nFrames + of;
    if (!known.has(key)) {
      known.set(key, add(above, of));
    }
    return known.get(key);
  };
  let isChanged = false;
  for (let node = 0; node < parent.length; node++) {
    if (!(total[node] > 0)) {
      continue;
    }
    const above = parent[node] < 0 ? -1 : placeOf[parent[node]];
    if (frame[node] < 0) {
      placeOf[node] = add(above, -1);
      made.groups.set(placeOf[node], groups.get(node));
    } else if (isFolding && depth[node] > 0) {
      const top = depth[node] === 1 ? above : folds.get(above).top;
      placeOf[node] = foldBelow(top);
      folds.get(placeOf[node]).frames.add(frame[node]);
      isChanged = true;
    } else if (
      wrapper >= 0 &&
      above >= 0 &&
      made.frame[above] >= 0 &&
      recording.frames.category[frame[node]] === wrapper
    ) {
      placeOf[node] = above;
      isChanged = true;
    } else {
      placeOf[node] = frameBelow(above, frame[node]);
    }
    made.own[placeOf[node]] += own[node];
  }
  if (!isChanged) {
    return null;
  }
  const tree = new PathTree(
    recording,
    Int32Array.from(made.parent),
    Int32Array.from(made.frame),
    Float64Array.from(made.own),
    made.groups,
  );
  tree.placeOf = placeOf;
  for (const [node, { frames }] of folds) {
    tree.folds.set(node, foldTitle(recording, frames, least, most));
  }
  return tree;
}
