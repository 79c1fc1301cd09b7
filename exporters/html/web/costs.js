// The largest costs in words: what the user's functions have themselves, with what they call of runtimes and libraries.

const MOST_COSTS = 3;
// Less than this is no cost that anybody would name.
const LEAST_COST = 0.01;
// What stands for frames that nobody could name or read explains nothing.
const PLACEHOLDERS = ["[unknown]", "(truncated stack)"];

/**
 * The costs, the largest first: {func, amount, self, callee, ofCallee}. Each node counts for the innermost function of
 * the user's at or above it; func -1 is what is in none. callee: the first function outside of the user's code that has
 * most, -1 is none. Where nothing is the user's, what the kernel does counts for the function that called it.
 */
function costsOf(paths) {
  const { frames, categories } = paths.recording;
  const kernel = categories.findIndex(({ name }) => name === "Kernel");
  const ofUser = costsBy(paths, (frame) => frames.own[frame] === 1);
  const isOfUser = [...ofUser.keys()].some((func) => func >= 0);
  const found = isOfUser
    ? ofUser
    : costsBy(paths, (frame, isBelowOwner) => !isBelowOwner || frames.category[frame] !== kernel);
  return [...found.values()]
    .sort((a, b) => b.amount - a.amount || (a.func < 0) - (b.func < 0) || a.func - b.func)
    .slice(0, MOST_COSTS);
}

/** Adds up what counts for each function. isOwner: of a frame, and whether one above it is an owner already. */
function costsBy(paths, isOwner) {
  const { parent, frame, own, recording } = paths;
  const { func: funcOf } = recording.frames;
  const n = parent.length;
  const owner = new Int32Array(n).fill(-1);
  const callee = new Int32Array(n).fill(-1);
  const found = new Map();
  const ofCallee = new Map();
  for (let node = 0; node < n; node++) {
    const above = parent[node];
    const func = frame[node] < 0 ? -1 : funcOf[frame[node]];
    if (func >= 0 && isOwner(frame[node], above >= 0 && owner[above] >= 0)) {
      owner[node] = func;
    } else if (above >= 0) {
      owner[node] = owner[above];
      callee[node] = callee[above] < 0 || owner[node] < 0 ? func : callee[above];
    } else {
      callee[node] = func;
    }
    if (own[node] > 0) {
      const cost = found.get(owner[node]) ?? { func: owner[node], amount: 0, self: 0, callee: -1, ofCallee: 0 };
      cost.amount += own[node];
      cost.self += callee[node] < 0 ? own[node] : 0;
      found.set(owner[node], cost);
      const key = `${owner[node]}.${callee[node]}`;
      ofCallee.set(key, (ofCallee.get(key) ?? 0) + own[node]);
    }
  }
  for (const [key, amount] of ofCallee) {
    const [func, called] = key.split(".").map(Number);
    const cost = found.get(func);
    const isNamed = called >= 0 && !PLACEHOLDERS.includes(recording.shortNameOf(called));
    if (isNamed && amount > cost.ofCallee) {
      [cost.callee, cost.ofCallee] = [called, amount];
    }
  }
  if (found.has(-1)) {
    Object.assign(
      found.get(-1),
      mainPart(paths, (node) => owner[node] < 0, found.get(-1).amount),
    );
  }
  return found;
}

/** The innermost function that has half of what is outside of the user's code, with what it calls. */
function mainPart({ parent, frame, own, recording }, isOutside, whole) {
  const total = Float64Array.from(own, (amount, node) => (isOutside(node) ? amount : 0));
  let [callee, ofCallee] = [-1, 0];
  for (let node = parent.length - 1; node >= 0; node--) {
    if (parent[node] >= 0) {
      total[parent[node]] += total[node];
    }
    // Parents come before their children, so the last ones that are seen are the outermost.
    const isNamed = frame[node] >= 0 && !PLACEHOLDERS.includes(recording.nameOf(frame[node]));
    if (isNamed && 2 * total[node] >= whole && (callee < 0 || total[node] < ofCallee)) {
      [callee, ofCallee] = [recording.frames.func[frame[node]], total[node]];
    }
  }
  return { callee, ofCallee };
}

/** The costs as a list of sentences with links, which look for the function in the graph. */
function costsElement(paths, unit, state) {
  const { recording, whole } = paths;
  paths.costs ??= costsOf(paths);
  const costs = whole > 0 ? paths.costs.filter(({ amount }) => amount >= LEAST_COST * whole) : [];
  const link = (func) =>
    el("a", {
      class: "name",
      href: state.hashWith({ tab: "flame", find: recording.shortNameOf(func), zoom: "" }),
      text: recording.shortNameOf(func),
      title: recording.fullNameOf(func),
    });
  const share = (amount) => el("strong", { text: formatShare(amount, whole) });
  return el(
    "ol",
    { class: "costs", "aria-label": "The largest costs", hidden: costs.length === 0 },
    costs.map((cost) =>
      el(
        "li",
        { title: formatAmount(cost.amount, unit) },
        share(cost.amount),
        " ",
        cost.func < 0 ? "outside of your code" : link(cost.func),
        placeElement(recording, cost.func),
        ...wordsOf(cost, whole, link),
      ),
    ),
  );
}

/** Where a function stands, after its name; null where that is not known. */
function placeElement(recording, func) {
  const place = func < 0 ? "" : recording.placeOf(func);
  return place === "" ? null : el("span", { class: "share", text: ` ${place}` });
}

function wordsOf({ func, amount, self, callee, ofCallee }, whole, link) {
  const place = [];
  if (callee < 0 || self >= 0.9 * amount) {
    return func < 0 || self < 0.5 * amount ? place : [" itself"];
  }
  const parts = func >= 0 && self >= 0.1 * amount ? [`: ${formatShare(self, whole)} itself, `] : [": "];
  const isMost = ofCallee >= 0.5 * (amount - self);
  const where = func < 0 ? "most under " : isMost ? "most in " : "the largest part in ";
  return [...parts, where, link(callee), ` (${formatShare(ofCallee, whole)})`];
}
