// The largest costs in words: what the user's functions have themselves, with what they call of runtimes and libraries.

const MOST_COSTS = 3;
// Less than this is no cost that anybody would name.
const LEAST_COST = 0.01;
// Less of a cost is no part of it that would explain it.
const LEAST_PART = 0.1;
// Letters of a name, whose arguments are left out beyond.
const LONGEST_COST_NAME = 60;
// Whose code a frame is, as in own_code.py: PASSING executes or calls the function above it; of NAMELESS nothing is
// known, of IN_MEMORY_CODE but that something compiled it; those from OF_KERNEL on are the kernel's: KERNEL_ENTRY leads
// from a system call to what it does, an INTERRUPT took the processor without having been called. IDLE: nothing was done.
const [OUTSIDE, OWN, PASSING, NAMELESS, IN_MEMORY_CODE, OF_KERNEL, KERNEL_ENTRY, INTERRUPT, IDLE] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8,
];
// What names of operators are made of, and stands around them.
const SIGNS = ':<>=!+-*/%^&|~()[], "';
// A function without a name that is known by where it begins only.
const BEGINS_AT = /function at 0x[0-9a-f]+$/;

/**
 * The costs, the largest first: {func, amount, self, callee, ofCallee}. Each node counts for the innermost function of
 * the user's at or above it; func -1 is what is in none. callee: the first function outside of the user's code that has
 * most, -1 is none. Code in memory without names is a cost as one, where no function of the user's calls it, or a native one
 * does by itself or through a trampoline. Where nothing is the user's, functions are what there is, and what the kernel does
 * counts for the one that called it.
 */
function costsOf(paths) {
  const { own: whose } = paths.recording.frames;
  const isIdle = (frame) => whose[frame] === IDLE;
  const isInMemory = (frame) => whose[frame] === IN_MEMORY_CODE;
  const ofUser = costsBy(
    paths,
    (frame, isBelowOwner, isEntered) =>
      whose[frame] === OWN || isIdle(frame) || (isInMemory(frame) && (!isBelowOwner || isEntered)),
  );
  const isOfUser = [...ofUser.values()].some((cost) => cost.func >= 0 && !cost.isIdle && !cost.isInMemory);
  const found = isOfUser
    ? ofUser
    : costsBy(
        paths,
        (frame, isBelowOwner) =>
          whose[frame] < NAMELESS || isInMemory(frame) || isIdle(frame) || (whose[frame] >= OF_KERNEL && !isBelowOwner),
      );
  const sorted = [...found.values()].sort(
    (a, b) => b.amount - a.amount || (a.func < 0) - (b.func < 0) || a.func - b.func,
  );
  return [...sorted.filter((cost) => !cost.isIdle).slice(0, MOST_COSTS), ...sorted.filter((cost) => cost.isIdle)];
}

/** For each function the one that stands for it: the first of those of a library that have no names. */
function namelessGroups(recording) {
  const first = new Map();
  return Int32Array.from(recording.funcs.name, (_, func) => {
    if (!isWithoutName(recording, func)) {
      return func;
    }
    const lib = recording.libOf(func);
    if (!first.has(lib)) {
      first.set(lib, func);
    }
    return first.get(lib);
  });
}

/** Adds up what counts for each function. isOwner: of a frame, whether one above it is an owner already, and whether that is
 * a native one which calls it by itself or through a trampoline. */
function costsBy(paths, isOwner) {
  const { parent, frame, own, recording } = paths;
  const { func: funcOf, own: whose } = recording.frames;
  const groupOf = namelessGroups(recording);
  const n = parent.length;
  const owner = new Int32Array(n).fill(-1);
  const ownerFrame = new Int32Array(n).fill(-1);
  const callee = new Int32Array(n).fill(-1);
  // Whether something below the owner counts as no part of it.
  const isBelow = new Uint8Array(n);
  const isInterrupt = new Uint8Array(n);
  // All functions where nothing is done are one, as is all code in memory; what interrupts the first is nobody's.
  const [idle, inMemory] = [IDLE, IN_MEMORY_CODE].map((kind) => whose.indexOf(kind));
  const isNobodys = new Uint8Array(n);
  const found = new Map();
  const ofCallee = new Map();
  for (let node = 0; node < n; node++) {
    const above = parent[node];
    const kind = frame[node] < 0 ? PASSING : whose[frame[node]];
    const joined = kind === IDLE ? idle : kind === IN_MEMORY_CODE ? inMemory : -1;
    const func = frame[node] < 0 ? -1 : joined >= 0 ? funcOf[joined] : groupOf[funcOf[frame[node]]];
    const isBelowOwner = above >= 0 && (owner[above] >= 0 || isNobodys[above] === 1);
    const isEntered =
      isBelowOwner &&
      ownerFrame[above] >= 0 &&
      recording.categoryOf(ownerFrame[above]) === "Native" &&
      frame[above] >= 0 &&
      [OWN, PASSING].includes(whose[frame[above]]);
    if (func >= 0 && isOwner(frame[node], isBelowOwner, isEntered)) {
      owner[node] = func;
      ownerFrame[node] = frame[node];
    } else if (above >= 0) {
      isNobodys[node] = isNobodys[above] || (kind === INTERRUPT && idle >= 0 && owner[above] === funcOf[idle]) ? 1 : 0;
      owner[node] = isNobodys[node] ? -1 : owner[above];
      ownerFrame[node] = isNobodys[node] ? -1 : ownerFrame[above];
      callee[node] = callee[above];
      isBelow[node] = isBelow[above];
    }
    isInterrupt[node] =
      kind === INTERRUPT || (kind >= OF_KERNEL && kind !== IDLE && above >= 0 && isInterrupt[above]) ? 1 : 0;
    if (owner[node] !== func && kind !== PASSING && kind !== KERNEL_ENTRY && !isInterrupt[node]) {
      isBelow[node] = 1;
      if (callee[node] < 0 && (kind === OUTSIDE || kind === OF_KERNEL)) {
        callee[node] = func;
      }
    }
    if (own[node] > 0) {
      const cost = found.get(owner[node]) ?? {
        func: owner[node],
        isIdle: idle >= 0 && owner[node] === funcOf[idle],
        isInMemory: inMemory >= 0 && owner[node] === funcOf[inMemory],
        amount: 0,
        self: 0,
        callee: -1,
        ofCallee: 0,
      };
      cost.amount += own[node];
      cost.self += isBelow[node] ? 0 : own[node];
      found.set(owner[node], cost);
      const key = `${owner[node]}.${callee[node]}`;
      ofCallee.set(key, (ofCallee.get(key) ?? 0) + own[node]);
    }
  }
  for (const [key, amount] of ofCallee) {
    const [func, called] = key.split(".").map(Number);
    const cost = found.get(func);
    if (called >= 0 && amount > cost.ofCallee) {
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

/**
 * The innermost function that has half of what is outside of the user's code, with what it calls; and who made most of
 * this code, in words. What the kernel does counts for who called it.
 */
function mainPart({ parent, frame, own, recording }, isOutside, whole) {
  const { own: whose, func: funcOf } = recording.frames;
  const total = Float64Array.from(own, (amount, node) => (isOutside(node) ? amount : 0));
  const isKernel = (node) => frame[node] >= 0 && whose[frame[node]] >= OF_KERNEL;
  const caller = Int32Array.from(parent, (_, node) => node);
  const byMaker = new Map();
  for (let node = 0; node < parent.length; node++) {
    const above = parent[node];
    if (isKernel(node) && above >= 0 && frame[above] >= 0) {
      caller[node] = caller[above];
    }
    if (total[node] > 0 && frame[caller[node]] >= 0) {
      const maker = makerOf(recording, frame[caller[node]]);
      byMaker.set(maker, (byMaker.get(maker) ?? 0) + total[node]);
    }
  }
  let [callee, ofCallee] = [-1, 0];
  for (let node = parent.length - 1; node >= 0; node--) {
    if (parent[node] >= 0) {
      total[parent[node]] += total[node];
    }
    // Parents come before their children, so the last ones that are seen are the outermost.
    const isNamed = frame[node] >= 0 && whose[frame[node]] === OUTSIDE;
    if (isNamed && 2 * total[node] >= whole && (callee < 0 || total[node] < ofCallee)) {
      [callee, ofCallee] = [funcOf[frame[node]], total[node]];
    }
  }
  byMaker.delete("");
  const [maker, ofMaker] = [...byMaker].sort((a, b) => b[1] - a[1])[0] ?? ["", 0];
  return { callee, ofCallee, maker, ofMaker };
}

/** The costs as a list of sentences with links, which look for the function in the graph. measure: of the tree. */
function costsElement(paths, measure, state) {
  const { recording, whole } = paths;
  paths.costs ??= costsOf(paths);
  const busy = paths.costs.reduce((left, { amount, isIdle }) => left - (isIdle ? amount : 0), whole);
  const costs = whole > 0 ? paths.costs.filter((cost) => cost.amount >= LEAST_COST * (cost.isIdle ? whole : busy)) : [];
  const link = (func) => {
    const isNamed = !isWithoutName(recording, func);
    return el("a", {
      class: "name",
      href: state.hashWith({
        tab: "flame",
        find: isCodeInMemory(recording, func)
          ? CODE_IN_MEMORY
          : isNamed
            ? recording.shortNameOf(func)
            : recording.libOf(func),
        zoom: "",
      }),
      text: costName(recording, func),
      title: isNamed ? recording.fullNameOf(func) : null,
    });
  };
  const share = (amount) => el("strong", { text: formatShare(amount, whole) });
  return el(
    "ol",
    { class: "costs", "aria-label": "The largest costs", hidden: costs.length === 0 },
    costs.map((cost) =>
      el(
        "li",
        { title: formatAmount(cost.amount, measure.unit) },
        share(cost.amount),
        " ",
        cost.isIdle ? "idle" : cost.func >= 0 ? link(cost.func) : "outside of your code",
        placeElement(recording, cost.isIdle ? -1 : cost.func),
        ...wordsOf(
          cost,
          whole,
          link,
          measure.kind === "off-cpu",
          cost.func >= 0 && (cost.isInMemory || isWithoutName(recording, cost.func)),
        ),
      ),
    ),
  );
}

/** Whether a function is one of its library's that have no names, for all of which it stands. */
function isWithoutName(recording, func) {
  return recording.libOf(func) !== "" && (recording.isAddress(func) || BEGINS_AT.test(recording.fullNameOf(func)));
}

/** What would fill the line is in its tooltip. */
function costName(recording, func) {
  if (isCodeInMemory(recording, func)) {
    return IN_MEMORY;
  }
  if (isWithoutName(recording, func)) {
    return `functions of ${recording.libOf(func)} without names`;
  }
  // As glibc calls its functions for itself, and Mono its ways to native code.
  return briefName(recording.shortNameOf(func).replace(/^__GI_+|^\(wrapper managed-to-native\) /, ""));
}

/** A name in at most LONGEST_COST_NAME letters, as brief_name of short_names.py makes it. */
function briefName(whole) {
  let name = whole.length > LONGEST_COST_NAME ? withoutTemplateArguments(whole) : whole;
  const open = name.replaceAll("operator()", "operator__").indexOf("(");
  const before = name.slice(0, Math.max(open, 0));
  if (name.length > LONGEST_COST_NAME && endsAsName(before) && before.split("<").length <= before.split(">").length) {
    name = `${before}(…)`;
  }
  return name.length > LONGEST_COST_NAME ? `${name.slice(0, LONGEST_COST_NAME - 1)}…` : name;
}

/** Whether what is in front of a bracket can be the name of a function with arguments. */
function endsAsName(before) {
  const at = before.lastIndexOf("operator");
  return /[\p{L}\p{N}_>\]}'$]$/u.test(before) || (at >= 0 && isOperator(before, at));
}

/** Whether the name of an operator begins here. */
function isOperator(name, at) {
  const [before, after] = [at > 0 ? name[at - 1] : ":", name[at + "operator".length] ?? ":"];
  return name.startsWith("operator", at) && SIGNS.includes(before) && SIGNS.includes(after);
}

/** A name with <…> for the arguments of templates; from an operator on as it is. What begins a part of it is none. */
function withoutTemplateArguments(name) {
  const kept = [];
  const areArguments = [];
  let depth = 0;
  for (let at = 0; at < name.length; at++) {
    if (depth === 0 && isOperator(name, at)) {
      return kept.join("") + name.slice(at);
    }
    if (name[at] === ">" && areArguments.length > 0 && !"-=".includes(name[at - 1])) {
      depth -= areArguments.pop();
      if (depth === 0 && kept.at(-1) === "<") {
        kept.push("…");
      }
    }
    if (depth === 0) {
      kept.push(name[at]);
    }
    if (name[at] === "<") {
      areArguments.push(depth > 0 || (at > 0 && /[\p{L}\p{N}_]/u.test(name[at - 1])) ? 1 : 0);
      depth += areArguments.at(-1);
    }
  }
  return areArguments.length > 0 ? name : kept.join("");
}

/** Where a function stands, after its name; null where that is not known. */
function placeElement(recording, func) {
  const place = func < 0 || isWithoutName(recording, func) ? "" : recording.placeOf(func);
  return place === "" ? null : el("span", { class: "share", text: ` ${place}` });
}

/** isWaiting: the amounts are times off the processors; isGroup: it stands for all functions without names. */
function wordsOf(cost, whole, link, isWaiting, isGroup) {
  const { func, isIdle, isInMemory, amount, self, callee, ofCallee, maker, ofMaker } = cost;
  const waits = isWaiting ? "waits, " : "";
  const part = (one, of) => (one >= 0.5 * of ? "most" : "the largest part");
  if (isIdle) {
    return [];
  }
  if (func < 0) {
    return callee >= 0
      ? [`: ${waits}most under `, link(callee), ` (${formatShare(ofCallee, whole)})`]
      : maker !== ""
        ? [`: ${waits}${part(ofMaker, amount)} in ${maker} (${formatShare(ofMaker, whole)})`]
        : [];
  }
  if (callee < 0 || self >= 0.9 * amount) {
    return self < 0.5 * amount || isGroup ? [] : [" itself"];
  }
  const itself =
    self >= LEAST_PART * amount
      ? `${formatShare(self, whole)} ${isGroup && !isInMemory ? "themselves" : "itself"}`
      : "";
  if (ofCallee < LEAST_PART * (amount - self)) {
    // Most is in code that nobody could name, or in many functions.
    return itself === "" ? [] : [`: ${itself}`];
  }
  const words = `: ${itself}${itself === "" ? "" : ", "}${waits}${part(ofCallee, amount - self)} in `;
  return [words, link(callee), ` (${formatShare(ofCallee, whole)})`];
}
