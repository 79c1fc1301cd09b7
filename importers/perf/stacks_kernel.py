# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Callchains become stacks. Cython's pure-Python mode: also runs interpreted.

A callchain lists instruction pointers, innermost first, and markers that say whose they are. The first pointer after a
marker is exact; the others are return addresses, and what was called from is the byte before. A *key* is an address to
look up and the space it is in: 0 is the kernel, 1 a guest or hypervisor, each process has one of its own.
"""

import cython

from traceferry.kernels.hashing import mix_address
from traceferry.kernels.interning import intern_address, intern_pair

# PERF_CONTEXT_*, as unsigned numbers below 2^12 from the top (include/uapi/linux/perf_event.h).
MARKERS = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFF001)
KERNEL = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFF80)
USER = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFE00)

# Of how many spaces `compose` knows the latest stack: a power of two.
CACHED = cython.declare(cython.int, 16)

# Indices into `state`.
SAMPLE = cython.declare(cython.int, 0)
N_KEYS = cython.declare(cython.int, 1)
N_STACKS = cython.declare(cython.int, 1)
N_CUT = cython.declare(cython.int, 2)


def collect(
    chain: cython.const[cython.ulonglong][::1],
    start: cython.const[cython.longlong][::1],
    length: cython.const[cython.int][::1],
    space: cython.const[cython.int][::1],
    ip: cython.const[cython.ulonglong][::1],
    ip_space: cython.const[cython.int][::1],
    ts: cython.const[cython.longlong][::1],
    state: cython.longlong[::1],
    spaces: cython.int[::1],
    addresses: cython.ulonglong[::1],
    first_ts: cython.longlong[::1],
    last_ts: cython.longlong[::1],
    slots: cython.int[::1],
):
    """Finds all keys of some samples. space: of each sample's process; ip, ip_space: what stands for a callchain that
    holds no address; ts: their times, rising; first_ts, last_ts: when each key was met first and last. Stops early when
    the keys are full (or slots half full): grow them and call again. state: the sample to go on at, the number of
    keys."""
    n: cython.Py_ssize_t = start.shape[0]
    size: cython.Py_ssize_t = spaces.shape[0]
    n_slots: cython.Py_ssize_t = slots.shape[0]
    if (
        length.shape[0] != n
        or space.shape[0] != n
        or ip.shape[0] != n
        or ip_space.shape[0] != n
        or ts.shape[0] != n
        or addresses.shape[0] != size
        or first_ts.shape[0] != size
        or last_ts.shape[0] != size
        or n_slots & (n_slots - 1)
        or n_slots < 2 * size
        or state.shape[0] < 2
    ):
        raise ValueError("collect: an array has the wrong length")
    i: cython.Py_ssize_t = int(state[SAMPLE])
    n_keys: cython.Py_ssize_t = int(state[N_KEYS])
    if i < 0 or n_keys < 0 or n_keys > size:
        raise ValueError("collect: invalid state")
    k: cython.Py_ssize_t
    end: cython.Py_ssize_t
    p: cython.Py_ssize_t
    value: cython.ulonglong
    now: cython.int
    s: cython.int
    exact: cython.bint
    some: cython.bint
    bad: cython.bint = False
    with cython.nogil:
        while i < n:
            if start[i] < 0 or length[i] < 0 or start[i] > chain.shape[0] - length[i]:
                bad = True
                break
            if n_keys + length[i] + 1 > size:
                break
            p = start[i]
            end = p + length[i]
            now = space[i]
            exact = True
            some = False
            for k in range(p, end + 1):
                if k < end:
                    value = chain[k]
                    if value >= MARKERS:
                        now = 0 if value == KERNEL else space[i] if value == USER else 1
                        exact = True
                        continue
                    if value == 0:
                        continue
                    if not exact:
                        value -= 1
                    exact = False
                    some = True
                else:
                    if some or ip[i] == 0:
                        break
                    value = ip[i]
                    now = ip_space[i]
                s = intern_address(spaces, addresses, slots, n_keys, now, value)
                if s == n_keys:
                    first_ts[s] = ts[i]
                    n_keys += 1
                last_ts[s] = ts[i]
            i += 1
    state[SAMPLE] = i
    state[N_KEYS] = n_keys
    if bad:
        raise ValueError("collect: a callchain outside the data")


def compose(
    chain: cython.const[cython.ulonglong][::1],
    start: cython.const[cython.longlong][::1],
    length: cython.const[cython.int][::1],
    space: cython.const[cython.int][::1],
    ip: cython.const[cython.ulonglong][::1],
    ip_space: cython.const[cython.int][::1],
    ts: cython.const[cython.longlong][::1],
    spaces: cython.const[cython.int][::1],
    addresses: cython.const[cython.ulonglong][::1],
    key_slots: cython.const[cython.int][::1],
    first_version: cython.const[cython.longlong][::1],
    version_from: cython.const[cython.longlong][::1],
    first_frame: cython.const[cython.longlong][::1],
    frames: cython.const[cython.int][::1],
    used: cython.longlong[::1],
    max_frames: cython.Py_ssize_t,
    state: cython.longlong[::1],
    path: cython.int[::1],
    known: cython.int[::1],
    prefix: cython.int[::1],
    frame: cython.int[::1],
    slots: cython.int[::1],
    out_stack: cython.int[::1],
):
    """The stack of each sample, -1 for none.

    What a key stands for can change: its versions are rows first_version[key] to first_version[key + 1], each from
    version_from on (rising within a key; the first holds before, too), with the frames first_frame[version] to
    first_frame[version + 1] of `frames`, outermost first and at most max_frames. used: counts how often each version
    was. Beyond max_frames, addresses at the root are cut, each with all its frames: what is inlined stays with what it
    is inlined into. path: one longer than the longest callchain. known: CACHED times twice as much and 2 more,
    all -1 at first: the versions of the latest sample of a space, the root's first, and the stacks that end with them.
    Stops early when the stacks are full (or slots half full): grow them and call again. state: the sample to go on at,
    how many stacks, and how many samples were cut.
    """
    n: cython.Py_ssize_t = start.shape[0]
    n_keys: cython.Py_ssize_t = spaces.shape[0]
    n_key_slots: cython.Py_ssize_t = key_slots.shape[0]
    n_versions: cython.Py_ssize_t = version_from.shape[0]
    n_slots: cython.Py_ssize_t = slots.shape[0]
    size: cython.Py_ssize_t = prefix.shape[0]
    if (
        length.shape[0] != n
        or space.shape[0] != n
        or ip.shape[0] != n
        or ip_space.shape[0] != n
        or ts.shape[0] != n
        or out_stack.shape[0] != n
        or addresses.shape[0] != n_keys
        or n_key_slots & (n_key_slots - 1)
        or n_key_slots <= n_keys
        or first_version.shape[0] != n_keys + 1
        or first_frame.shape[0] != n_versions + 1
        or used.shape[0] != n_versions
        or frame.shape[0] != size
        or n_slots & (n_slots - 1)
        or n_slots < 2 * size
        or state.shape[0] < 3
        or max_frames < 1
        or known.shape[0] != CACHED * (2 * path.shape[0] + 2)
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
    n_stacks: cython.Py_ssize_t = int(state[N_STACKS])
    n_cut: cython.longlong = int(state[N_CUT])
    if i < 0 or n_stacks < 0 or n_stacks > size:
        raise ValueError("compose: invalid state")
    end: cython.Py_ssize_t
    depth: cython.Py_ssize_t
    total: cython.Py_ssize_t
    j: cython.Py_ssize_t
    key_mask: cython.ulonglong = n_key_slots - 1
    h: cython.ulonglong
    value: cython.ulonglong
    now: cython.int
    s: cython.int
    top: cython.int
    v: cython.longlong
    last: cython.longlong
    middle: cython.longlong
    exact: cython.bint
    bad: cython.bint = False
    width: cython.Py_ssize_t = path.shape[0]
    at: cython.Py_ssize_t
    d: cython.Py_ssize_t
    same: cython.Py_ssize_t
    with cython.nogil:
        while i < n:
            if start[i] < 0 or length[i] < 0 or start[i] > chain.shape[0] - length[i] or length[i] >= path.shape[0]:
                bad = True
                break
            end = start[i] + length[i]
            now = space[i]
            exact = True
            depth = 0
            total = 0
            for k in range(start[i], end + 1):
                if k < end:
                    value = chain[k]
                    if value >= MARKERS:
                        now = 0 if value == KERNEL else space[i] if value == USER else 1
                        exact = True
                        continue
                    if value == 0:
                        continue
                    if not exact:
                        value -= 1
                    exact = False
                else:
                    if depth > 0 or ip[i] == 0:
                        break
                    value = ip[i]
                    now = ip_space[i]
                h = mix_address(now, value) & key_mask
                s = key_slots[h]
                while s >= 0 and not (s < n_keys and addresses[s] == value and spaces[s] == now):
                    h = (h + 1) & key_mask
                    s = key_slots[h]
                if s < 0:
                    bad = True
                    break
                v = first_version[s]
                last = first_version[s + 1] - 1
                while v < last:
                    middle = (v + last + 1) // 2
                    if version_from[middle] <= ts[i]:
                        v = middle
                    else:
                        last = middle - 1
                path[depth] = v
                depth += 1
                total += first_frame[v + 1] - first_frame[v]
            if bad:
                break
            if n_stacks + (total if total < max_frames else max_frames) > size:
                break
            n_cut += 1 if total > max_frames else 0
            # Samples that follow one another have much of their stacks in common, from the root on.
            at = (space[i] & (CACHED - 1)) * (2 * width + 2)
            same = 0
            if known[at] == space[i] and total <= max_frames:
                while same < depth and same < known[at + 1] and known[at + 2 + same] == path[depth - 1 - same]:
                    used[path[depth - 1 - same]] += 1
                    same += 1
            top = known[at + 1 + width + same] if same else -1
            known[at] = space[i]
            known[at + 1] = depth if total <= max_frames else 0
            for d in range(same, depth):
                v = path[depth - 1 - d]
                used[v] += 1
                if total > max_frames:
                    total -= first_frame[v + 1] - first_frame[v]
                    continue
                for j in range(first_frame[v], first_frame[v + 1]):
                    top = intern_pair(prefix, frame, slots, n_stacks, top, frames[j])
                    n_stacks += top == n_stacks
                known[at + 2 + d] = v
                known[at + 2 + width + d] = top
            out_stack[i] = top
            i += 1
    state[SAMPLE] = i
    state[N_STACKS] = n_stacks
    state[N_CUT] = n_cut
    if bad:
        raise ValueError("compose: a callchain outside the data, or an address that was not collected")


# For the Python side.
N_CACHED = CACHED + 0


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    collect = plain_integers(collect)
    compose = plain_integers(compose)
