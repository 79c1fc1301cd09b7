# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Callchains become stacks. Cython's pure-Python mode: also runs interpreted.

A callchain lists instruction pointers, innermost first, and markers that say whose they are. The first pointer after a
marker is exact; the others are return addresses, and what was called from is the byte before. A *key* is an address to
look up and the space it is in: 0 is the kernel, 1 a guest or hypervisor, each process has one of its own.

Samples of a thread that follow one another have much of their stacks in common, from the root on: both functions keep
the latest stack of some threads, and begin where a sample's differs.
"""

import cython

from traceferry.kernels.interning import intern_next, intern_pair
from traceferry.kernels.search import last_at

# PERF_CONTEXT_*, as unsigned numbers below 2^12 from the top (include/uapi/linux/perf_event.h).
MARKERS = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFF001)
KERNEL = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFF80)
USER = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFE00)
NEVER = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)

# Of how many threads the latest stack is kept: a power of two. A thread's place is that of its number's low bits.
CACHED = cython.declare(cython.int, 64)

# Indices into `state`.
SAMPLE = cython.declare(cython.int, 0)
N_OWN = cython.declare(cython.int, 1)
N_KEYS = cython.declare(cython.int, 2)
N_STACKS = cython.declare(cython.int, 2)
N_CUT = cython.declare(cython.int, 3)
N_UNKNOWN = cython.declare(cython.int, 4)
N_LATE = cython.declare(cython.int, 5)

# Indices into `latest`: the latest sample at a place. END: of its callchain, of which N_WORDS entries can be compared;
# DEPTH: how many keys it has.
THREAD = cython.declare(cython.int, 0)
SPACE = cython.declare(cython.int, 1)
END = cython.declare(cython.int, 2)
N_WORDS = cython.declare(cython.int, 3)
DEPTH = cython.declare(cython.int, 4)
TS = cython.declare(cython.int, 5)
LATEST_WIDTH = cython.declare(cython.int, 6)

# Indices into `words`, for each entry of that callchain, the root's first: the space and whether the entry is exact;
# how many keys there are up to it; and, counted in keys, the key.
MODE = cython.declare(cython.int, 0)
UP_TO = cython.declare(cython.int, 1)
KEY = cython.declare(cython.int, 2)
WORDS_WIDTH = cython.declare(cython.int, 3)

# Indices into `path`, for each key of that sample, the root's first: besides KEY what it stands for, how many frames,
# unknown keys and such of late code there are up to it, and the stack that ends with it. VERSION: a row of the
# versions, or of a single frame -1 - its row.
VERSION = cython.declare(cython.int, 0)
FRAMES = cython.declare(cython.int, 1)
UNKNOWN = cython.declare(cython.int, 3)
LATE = cython.declare(cython.int, 4)
STACK = cython.declare(cython.int, 5)
PATH_WIDTH = cython.declare(cython.int, 6)


def collect(
    chain: cython.const[cython.ulonglong][::1],
    start: cython.const[cython.longlong][::1],
    length: cython.const[cython.int][::1],
    space: cython.const[cython.int][::1],
    ip: cython.const[cython.ulonglong][::1],
    ip_space: cython.const[cython.int][::1],
    thread: cython.const[cython.int][::1],
    ts: cython.const[cython.longlong][::1],
    state: cython.longlong[::1],
    latest: cython.longlong[:, ::1],
    words: cython.int[:, :, ::1],
    spaces: cython.int[::1],
    addresses: cython.ulonglong[::1],
    first_ts: cython.longlong[::1],
    last_ts: cython.longlong[::1],
    slots: cython.int[::1],
    n_shared: cython.int[::1],
    n_own: cython.int[::1],
    own: cython.int[::1],
):
    """Finds all keys of some samples, and the keys of each sample: its first n_shared, from the root, are those of the
    latest sample at its thread's place, the other n_own follow in `own`, innermost first.

    space: of each sample's process; ip, ip_space: what stands for a callchain that holds no address; ts: their times,
    rising; first_ts, last_ts: when each key was met first and last. own: as long as all callchains, and an entry more
    for each sample. latest, words: all 0 at first; words: longer than the longest callchain. Stops early when the keys
    are full (or slots half full): grow them and call again. state: the sample to go on at, the number of keys in own,
    the number of keys.
    """
    n: cython.Py_ssize_t = start.shape[0]
    size: cython.Py_ssize_t = spaces.shape[0]
    n_slots: cython.Py_ssize_t = slots.shape[0]
    width: cython.Py_ssize_t = words.shape[1]
    if (
        length.shape[0] != n
        or space.shape[0] != n
        or ip.shape[0] != n
        or ip_space.shape[0] != n
        or thread.shape[0] != n
        or ts.shape[0] != n
        or n_shared.shape[0] != n
        or n_own.shape[0] != n
        or addresses.shape[0] != size
        or first_ts.shape[0] != size
        or last_ts.shape[0] != size
        or n_slots & (n_slots - 1)
        or n_slots < 2 * size
        or state.shape[0] < 3
        or latest.shape[0] != CACHED
        or latest.shape[1] != LATEST_WIDTH
        or words.shape[0] != CACHED
        or words.shape[2] != WORDS_WIDTH
    ):
        raise ValueError("collect: an array has the wrong length")
    i: cython.Py_ssize_t = int(state[SAMPLE])
    n_all: cython.Py_ssize_t = int(state[N_OWN])
    n_keys: cython.Py_ssize_t = int(state[N_KEYS])
    if i < 0 or n_all < 0 or n_keys < 0 or n_keys > size:
        raise ValueError("collect: invalid state")
    d: cython.Py_ssize_t
    bad: cython.bint = False
    with cython.nogil:
        while i < n:
            if (
                start[i] < 0
                or length[i] < 0
                or start[i] > chain.shape[0] - length[i]
                or length[i] >= width
                or n_all + length[i] >= own.shape[0]
            ):
                bad = True
                break
            if n_keys + length[i] + 1 > size:
                break
            t: cython.int = thread[i] & (CACHED - 1)
            end: cython.Py_ssize_t = start[i] + length[i]
            same: cython.Py_ssize_t = 0
            if latest[t, THREAD] == thread[i] and latest[t, SPACE] == space[i]:
                before: cython.Py_ssize_t = latest[t, END]
                most: cython.Py_ssize_t = min(latest[t, N_WORDS], length[i])
                while same < most and chain[end - 1 - same] == chain[before - 1 - same]:
                    same += 1
            now: cython.int = space[i]
            exact: cython.bint = True
            n_new: cython.Py_ssize_t = 0
            w: cython.Py_ssize_t = length[i] - 1
            while w >= 0:
                mode: cython.int = now << 1 | exact
                if w < same and words[t, w, MODE] == mode:
                    break
                words[t, w, MODE] = mode
                words[t, w, UP_TO] = -n_new
                value: cython.ulonglong = chain[end - 1 - w]
                w -= 1
                if value >= MARKERS:
                    now = 0 if value == KERNEL else space[i] if value == USER else 1
                    exact = True
                    continue
                if value == 0:
                    continue
                if not exact:
                    value -= 1
                exact = False
                s: cython.int = intern_pair(spaces, addresses, slots, n_keys, now, value)
                if s == n_keys:
                    first_ts[s] = last_ts[s] = ts[i]
                    n_keys += 1
                own[n_all + n_new] = s
                n_new += 1
            base: cython.Py_ssize_t = words[t, w, UP_TO] if w >= 0 else 0
            for d in range(w + 1, length[i]):
                words[t, d, UP_TO] += base + n_new
            same = length[i]
            if base + n_new == 0 and ip[i]:
                s = intern_pair(spaces, addresses, slots, n_keys, ip_space[i], ip[i])
                if s == n_keys:
                    first_ts[s] = last_ts[s] = ts[i]
                    n_keys += 1
                own[n_all] = s
                n_new = 1
                same = 0
            for d in range(base, latest[t, DEPTH]):
                last_ts[words[t, d, KEY]] = max(last_ts[words[t, d, KEY]], latest[t, TS])
            for d in range(n_new):
                words[t, base + d, KEY] = own[n_all + n_new - 1 - d]
            latest[t, THREAD] = thread[i]
            latest[t, SPACE] = space[i]
            latest[t, END] = end
            latest[t, N_WORDS] = same
            latest[t, DEPTH] = base + n_new
            latest[t, TS] = ts[i]
            n_shared[i] = base
            n_own[i] = n_new
            n_all += n_new
            i += 1
        if not bad:
            for t in range(CACHED):
                for d in range(latest[t, DEPTH]):
                    last_ts[words[t, d, KEY]] = max(last_ts[words[t, d, KEY]], latest[t, TS])
    state[SAMPLE] = i
    state[N_OWN] = n_all
    state[N_KEYS] = n_keys
    if bad:
        raise ValueError("collect: a callchain outside the data")


def compose(
    thread: cython.const[cython.int][::1],
    ts: cython.const[cython.longlong][::1],
    n_shared: cython.const[cython.int][::1],
    n_own: cython.const[cython.int][::1],
    own: cython.const[cython.int][::1],
    single: cython.const[cython.int][:, ::1],
    first_version: cython.const[cython.longlong][::1],
    version_from: cython.const[cython.longlong][::1],
    first_frame: cython.const[cython.longlong][::1],
    frames: cython.const[cython.int][::1],
    is_unknown: cython.const[cython.uchar][::1],
    is_late: cython.const[cython.uchar][::1],
    max_frames: cython.Py_ssize_t,
    state: cython.longlong[::1],
    path: cython.int[:, :, ::1],
    until: cython.longlong[:, ::1],
    n_composed: cython.int[::1],
    prefix: cython.int[::1],
    frame: cython.int[::1],
    slots: cython.int[::1],
    out_stack: cython.int[::1],
):
    """The stack of each sample, -1 for none. thread, ts, n_shared, n_own, own: as in `collect`.

    What a key stands for can change: its versions are rows first_version[key] to first_version[key + 1], each from
    version_from on (rising within a key; the first holds before, too), with the frames first_frame[version] to
    first_frame[version + 1] of `frames`, outermost first and at most max_frames. Beyond max_frames, addresses at the
    root are cut, each with all its frames: what is inlined stays with what it is inlined into.

    single: most keys have one version of one frame; then the frame and that version's is_unknown | is_late << 1, so
    that nothing else of the key need be looked at, else -1 and 0.

    path, until: longer than the longest callchain; until: when one of the keys up to each stands for something else;
    n_composed: up to which key the stacks in path are right, 0 at first. Stops early when the stacks are full (or slots
    half full): grow them and call again. state: the sample to go on at, the number of keys of own that were used, how
    many stacks, samples that were cut, and keys of is_unknown and is_late.
    """
    n: cython.Py_ssize_t = thread.shape[0]
    n_keys: cython.Py_ssize_t = first_version.shape[0] - 1
    n_versions: cython.Py_ssize_t = version_from.shape[0]
    n_slots: cython.Py_ssize_t = slots.shape[0]
    size: cython.Py_ssize_t = prefix.shape[0]
    width: cython.Py_ssize_t = path.shape[1]
    if (
        ts.shape[0] != n
        or n_shared.shape[0] != n
        or n_own.shape[0] != n
        or out_stack.shape[0] != n
        or n_keys < 0
        or single.shape[0] != n_keys
        or single.shape[1] != 2
        or first_frame.shape[0] != n_versions + 1
        or is_unknown.shape[0] != n_versions
        or is_late.shape[0] != n_versions
        or frame.shape[0] != size
        or n_slots & (n_slots - 1)
        or n_slots < 2 * size
        or state.shape[0] < 6
        or max_frames < 1
        or path.shape[0] != CACHED
        or path.shape[2] != PATH_WIDTH
        or until.shape[0] != CACHED
        or until.shape[1] != width
        or n_composed.shape[0] != CACHED
    ):
        raise ValueError("compose: an array has the wrong length")
    k: cython.Py_ssize_t
    for k in range(n_keys):
        if first_version[k] < 0 or first_version[k + 1] <= first_version[k] or first_version[k + 1] > n_versions:
            raise ValueError("compose: a key without a version")
    for k in range(n_versions):
        if first_frame[k] < 0 or first_frame[k + 1] < first_frame[k] or first_frame[k + 1] > frames.shape[0]:
            raise ValueError("compose: a version outside the frames")
        if first_frame[k + 1] - first_frame[k] > max_frames:
            raise ValueError("compose: a version of more frames than a stack may have")
    i: cython.Py_ssize_t = int(state[SAMPLE])
    used: cython.Py_ssize_t = int(state[N_OWN])
    n_stacks: cython.Py_ssize_t = int(state[N_STACKS])
    n_cut: cython.longlong = int(state[N_CUT])
    n_unknown: cython.longlong = int(state[N_UNKNOWN])
    n_late: cython.longlong = int(state[N_LATE])
    if i < 0 or used < 0 or n_stacks < 0 or n_stacks > size:
        raise ValueError("compose: invalid state")
    d: cython.Py_ssize_t
    j: cython.Py_ssize_t
    bad: cython.bint = False
    with cython.nogil:
        while i < n:
            depth: cython.Py_ssize_t = n_shared[i] + n_own[i]
            if n_shared[i] < 0 or n_own[i] < 0 or depth > width or n_own[i] > own.shape[0] - used:
                bad = True
                break
            t: cython.int = thread[i] & (CACHED - 1)
            for j in range(n_own[i]):
                path[t, depth - 1 - j, KEY] = own[used + j]
            k = n_shared[i]
            while k > 0 and until[t, k - 1] <= ts[i]:
                k -= 1
            for d in range(k, depth):
                s: cython.int = path[t, d, KEY]
                if s < 0 or s >= n_keys:
                    bad = True
                    break
                f: cython.int = single[s, 0]
                if f >= 0:
                    change: cython.longlong = NEVER
                    known: cython.int = single[s, 1]
                    path[t, d, VERSION] = -1 - f
                    path[t, d, FRAMES] = 1
                    path[t, d, UNKNOWN] = known & 1
                    path[t, d, LATE] = known >> 1
                else:
                    v: cython.longlong = max(
                        first_version[s], last_at(version_from, first_version[s], first_version[s + 1], ts[i])
                    )
                    change = version_from[v + 1] if v + 1 < first_version[s + 1] else NEVER
                    path[t, d, VERSION] = v
                    path[t, d, FRAMES] = first_frame[v + 1] - first_frame[v]
                    path[t, d, UNKNOWN] = is_unknown[v]
                    path[t, d, LATE] = is_late[v]
                if d > 0:
                    change = min(change, until[t, d - 1])
                    path[t, d, FRAMES] += path[t, d - 1, FRAMES]
                    path[t, d, UNKNOWN] += path[t, d - 1, UNKNOWN]
                    path[t, d, LATE] += path[t, d - 1, LATE]
                until[t, d] = change
            if bad:
                break
            n_composed[t] = min(n_composed[t], k)
            total: cython.Py_ssize_t = path[t, depth - 1, FRAMES] if depth else 0
            if n_stacks + min(total, max_frames) > size:
                break
            k = n_composed[t]
            top: cython.int = path[t, k - 1, STACK] if k else -1
            n_composed[t] = depth
            if total > max_frames:
                k = 0
                while path[t, k, FRAMES] < total - max_frames:
                    k += 1
                k += 1
                top = -1
                n_cut += 1
                n_composed[t] = 0
            for d in range(k, depth):
                v = path[t, d, VERSION]
                if v < 0:
                    top = intern_next(prefix, frame, slots, n_stacks, top, -1 - v)
                    n_stacks += top == n_stacks
                else:
                    for j in range(first_frame[v], first_frame[v + 1]):
                        top = intern_next(prefix, frame, slots, n_stacks, top, frames[j])
                        n_stacks += top == n_stacks
                path[t, d, STACK] = top
            if depth:
                n_unknown += path[t, depth - 1, UNKNOWN]
                n_late += path[t, depth - 1, LATE]
            out_stack[i] = top
            used += n_own[i]
            i += 1
    state[SAMPLE] = i
    state[N_OWN] = used
    state[N_STACKS] = n_stacks
    state[N_CUT] = n_cut
    state[N_UNKNOWN] = n_unknown
    state[N_LATE] = n_late
    if bad:
        raise ValueError("compose: keys that were not collected")


# For the Python side.
LATEST_SHAPE = (CACHED + 0, LATEST_WIDTH + 0)
WORDS_SHAPE = (CACHED + 0, WORDS_WIDTH + 0)
PATH_SHAPE = (CACHED + 0, PATH_WIDTH + 0)


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    collect = plain_integers(collect)
    compose = plain_integers(compose)
