"""Callchains become stacks.

A callchain lists instruction pointers, innermost first, and markers that say whose they are. The first pointer after a
marker is exact; the others are return addresses, and what was called from is the byte before. A *key* is an address to
look up and the space it is in: 0 is the kernel, 1 a hypervisor, 2 a guest, each process has one of its own.

Many samples have the callchain of an earlier one: it is looked up as a whole. Of the others, those of a thread that
follow one another have much of their stacks in common, from the root on: both functions keep the latest stack of some
threads, and begin where a sample's differs.
"""

cimport cython
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint64_t

import numpy as np

from traceferry.importers.perf._chains cimport Chain, ChainTable, hash_of
from traceferry.native.bytes cimport prefetch
from traceferry.native.interning cimport intern_pair
from traceferry.native.nodes cimport NodeTable
from traceferry.native.search cimport last_at

from traceferry.native.arrays import longer

# PERF_CONTEXT_*, as unsigned numbers below 2^12 from the top (include/uapi/linux/perf_event.h).
cdef enum:
    MARKERS = 0xFFFFFFFFFFFFF001
    KERNEL = 0xFFFFFFFFFFFFFF80
    USER = 0xFFFFFFFFFFFFFE00
    GUEST = 0xFFFFFFFFFFFFF800
    GUEST_KERNEL = 0xFFFFFFFFFFFFF780
    GUEST_USER = 0xFFFFFFFFFFFFF600

# As `spaces` numbers them.
cdef enum:
    KERNEL_SPACE = 0
    OTHER_SPACE = 1
    GUEST_SPACE = 2

# What a mode has in the place of a space: that of the sample's process.
cpdef enum OfMode:
    OWN_SPACE = -1

# Of how many threads the latest stack is kept: a power of two. A thread's place is that of its number's low bits.
cdef enum:
    CACHED = 64

# So many samples ahead, memory is asked for.
cdef enum:
    AHEAD = 8

# The latest sample at a place, of those with a callchain that was met for the first time. end: of its callchain, of which n_words entries can be compared; depth: how many keys it
# has.
cdef struct Latest:
    int64_t ts
    Py_ssize_t end
    Py_ssize_t n_words
    Py_ssize_t depth
    int32_t thread
    int32_t space

# An entry of that callchain, the root's first: the space and whether the entry is exact; how many keys there are up to
# it; and, counted in keys, the key.
cdef struct Entry:
    int32_t mode
    int32_t up_to
    int32_t key

# A key of that sample, the root's first. version: what it stands for, a row of the versions, or of a single frame -1 -
# its row; frames, unknown, late: how many frames, unknown keys and such of late code there are up to it; stack: that
# ends with it; until: when one of the keys up to it stands for something else.
cdef struct Step:
    int64_t until
    int32_t key
    int32_t version
    int32_t frames
    int32_t unknown
    int32_t late
    int32_t stack


# What a callchain was composed to: its stack; how many unknown keys and such of late code it has; whether it was cut; and
# until when this holds.
cdef struct Composed:
    int64_t until
    int32_t stack
    int32_t unknown
    int32_t late
    bint is_cut


cdef slots_for(Py_ssize_t size):
    return np.full(1 << (2 * size - 1).bit_length(), -1, np.int32)


@cython.final
cdef class Paths:
    """The keys of each sample. Each has the row of its callchain, in the order in which they are met first, or -1 where
    it is not remembered. For samples of the latter, and the first one with each callchain, in their order: its first
    n_shared keys, from the root, are those of the one before at its thread's place, the other n_own follow in `own`,
    innermost first. A sample has fewer keys than `longest`.

    thread, ts, row: of each sample; spaces, addresses: of each key; first_ts, last_ts: when it was met first and last.
    """

    cdef readonly object thread, ts, row, n_shared, n_own, own, spaces, addresses, first_ts, last_ts
    cdef readonly Py_ssize_t longest
    cdef ChainTable chains


@cython.final
cdef class KeyTable:
    """Keys, each once, with the times when they were met first and last."""

    cdef list arrays
    cdef int32_t[::1] spaces
    cdef uint64_t[::1] addresses
    cdef int64_t[::1] first_ts
    cdef int64_t[::1] last_ts
    cdef int32_t[::1] slots
    cdef Py_ssize_t n
    cdef Py_ssize_t size

    def __cinit__(self, Py_ssize_t size):
        self.arrays = [np.empty(0, dtype) for dtype in (np.int32, np.uint64, np.int64, np.int64)]
        self.grow(size)

    cdef grow(self, Py_ssize_t size):
        cdef Py_ssize_t i
        self.arrays = [longer(array, size) for array in self.arrays]
        self.spaces, self.addresses, self.first_ts, self.last_ts = self.arrays
        self.slots = slots_for(size)
        self.size = size
        for i in range(self.n):
            intern_pair(self.spaces, self.addresses, self.slots, i, self.spaces[i], self.addresses[i])

    cdef inline int32_t of(self, int32_t space, uint64_t address, int64_t ts) noexcept nogil:
        """Returns the number of a key. There must be space for it."""
        cdef int32_t key = intern_pair(self.spaces, self.addresses, self.slots, self.n, space, address)
        if key == self.n:
            self.first_ts[key] = self.last_ts[key] = ts
            self.n += 1
        return key


def collect(
    const uint64_t[::1] chain not None, const int64_t[::1] start not None, const int32_t[::1] length not None,
    const int32_t[::1] space not None, const uint64_t[::1] ip not None, const uint8_t[::1] mode not None,
    const int32_t[::1] space_of_mode not None, thread, ts, Py_ssize_t n_expected=1 << 14
):
    """Returns the keys of some samples, as Paths.

    start, length: where each sample's callchain is in `chain`; space: of its process; ip, mode: what stands for a
    callchain that holds no address, in the space that space_of_mode has, OWN_SPACE for that of the process; ts: their
    times, rising. n_expected: for how many keys there is memory at first.
    """
    cdef const int32_t[::1] threads = thread
    cdef const int64_t[::1] times = ts
    cdef Py_ssize_t n = start.shape[0]
    cdef Py_ssize_t width = 1
    cdef Py_ssize_t n_all = n
    cdef Py_ssize_t i = 0
    cdef Py_ssize_t n_used = 0
    cdef Py_ssize_t n_met = 0
    cdef Py_ssize_t d, t, end, same, before, most, n_new, w, base, slot
    cdef int32_t now, word_mode, key
    cdef uint64_t value
    cdef uint64_t hashed = 0
    cdef bint exact, is_remembered
    cdef Chain* known
    if {n} != {len(length), len(space), len(ip), len(mode), len(threads), len(times)}:
        raise ValueError("collect: columns of several lengths")
    if n and int(np.max(mode)) >= len(space_of_mode):
        raise ValueError("collect: a mode without a space")
    for i in range(n):
        if not 0 <= length[i] <= chain.shape[0] or not 0 <= start[i] <= chain.shape[0] - length[i]:
            raise ValueError("collect: a callchain outside the data")
        n_all += length[i]
        width = max(width, length[i] + 1)
    own_array, n_shared_array, n_own_array = np.empty(n_all, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    row_array = np.empty(n, np.int32)
    cdef int32_t[::1] rows = row_array
    cdef ChainTable chains = ChainTable(chain)
    cdef int32_t[::1] own = own_array
    cdef int32_t[::1] n_shared = n_shared_array
    cdef int32_t[::1] n_own = n_own_array
    cdef KeyTable keys = KeyTable(max(n_expected, 2 * width))
    cdef Latest[CACHED] all_latest
    cdef Latest* latest
    cdef uint8_t[:, ::1] buffer = np.zeros((CACHED, width * sizeof(Entry)), np.uint8)
    cdef Entry* words
    cdef const uint64_t* ahead
    for t in range(CACHED):
        all_latest[t] = Latest(0, 0, 0, 0, 0, 0)
    i = 0
    while i < n:
        if keys.n + length[i] + 1 > keys.size:
            keys.grow(4 * keys.size)
        if not chains.has_room(length[i]) and not chains.is_full(length[i]):
            chains.grow(length[i])
        with nogil:
            while i < n and keys.n + length[i] + 1 <= keys.size:
                # Callchains are far from each other, where they stand in the recording.
                if i + AHEAD < n and length[i + AHEAD]:
                    ahead = &chain[start[i + AHEAD]]
                    prefetch(<const uint8_t*>ahead)
                    prefetch(<const uint8_t*>(ahead + length[i + AHEAD] - 1))
                slot = -1
                if length[i]:
                    hashed = hash_of(&chain[start[i]], length[i], space[i])
                    slot = chains.slot_of(start[i], length[i], space[i], hashed)
                    rows[i] = chains.slots[slot]
                    if rows[i] >= 0:
                        chains.chains[rows[i]].last_ts = times[i]
                        i += 1
                        continue
                    if not chains.has_room(length[i]) and not chains.is_full(length[i]):
                        break
                t = threads[i] & (CACHED - 1)
                latest = &all_latest[t]
                words = <Entry*>&buffer[t, 0]
                end = start[i] + length[i]
                same = 0
                if latest.thread == threads[i] and latest.space == space[i]:
                    before = latest.end
                    most = min(latest.n_words, length[i])
                    while same < most and chain[end - 1 - same] == chain[before - 1 - same]:
                        same += 1
                now = space[i]
                exact = True
                n_new = 0
                w = length[i] - 1
                while w >= 0:
                    word_mode = now << 1 | exact
                    if w < same and words[w].mode == word_mode:
                        break
                    words[w].mode = word_mode
                    words[w].up_to = -n_new
                    value = chain[end - 1 - w]
                    w -= 1
                    if value >= <uint64_t>MARKERS:
                        if value == <uint64_t>KERNEL:
                            now = KERNEL_SPACE
                        elif value == <uint64_t>USER:
                            now = space[i]
                        elif value in (<uint64_t>GUEST, <uint64_t>GUEST_KERNEL, <uint64_t>GUEST_USER):
                            now = GUEST_SPACE
                        else:
                            now = OTHER_SPACE
                        exact = True
                        continue
                    if value == 0:
                        continue
                    if not exact:
                        value -= 1
                    exact = False
                    own[n_used + n_new] = keys.of(now, value, times[i])
                    n_new += 1
                base = words[w].up_to if w >= 0 else 0
                for d in range(w + 1, length[i]):
                    words[d].up_to += base + n_new
                same = length[i]
                is_remembered = slot >= 0 and base + n_new > 0 and not chains.is_full(length[i])
                if base + n_new == 0 and ip[i]:
                    now = space_of_mode[mode[i]]
                    own[n_used] = keys.of(space[i] if now == OWN_SPACE else now, ip[i], times[i])
                    n_new = 1
                    same = 0
                for d in range(base, latest.depth):
                    key = words[d].key
                    keys.last_ts[key] = max(keys.last_ts[key], latest.ts)
                for d in range(n_new):
                    words[base + d].key = own[n_used + n_new - 1 - d]
                latest[0] = Latest(times[i], end, same, base + n_new, threads[i], space[i])
                rows[i] = -1
                if is_remembered:
                    for d in range(base + n_new):
                        chains.keys[chains.n_keys + d] = words[d].key
                    rows[i] = chains.add(
                        slot, hashed, Chain(start[i], chains.n_keys, -1, length[i], space[i], base + n_new)
                    )
                n_shared[n_met] = base
                n_own[n_met] = n_new
                n_met += 1
                n_used += n_new
                i += 1
    for t in range(CACHED):
        words = <Entry*>&buffer[t, 0]
        for d in range(all_latest[t].depth):
            key = words[d].key
            keys.last_ts[key] = max(keys.last_ts[key], all_latest[t].ts)
    for t in range(chains.n):
        known = &chains.chains[t]
        for d in range(known.n_keys if known.last_ts >= 0 else 0):
            key = chains.keys[known.first_key + d]
            keys.last_ts[key] = max(keys.last_ts[key], known.last_ts)
    cdef Paths paths = Paths()
    paths.thread, paths.ts, paths.row, paths.longest, paths.chains = thread, ts, row_array, width, chains
    paths.n_shared, paths.n_own, paths.own = n_shared_array[:n_met], n_own_array[:n_met], own_array[:n_used]
    paths.spaces, paths.addresses, paths.first_ts, paths.last_ts = [array[:keys.n] for array in keys.arrays]
    return paths


# Most keys always stand for one frame: then this one, so that nothing else of the key need be looked at; else -1. flags:
# of its version, 1 if it is unknown, 2 if it is late.
cdef struct Single:
    int32_t frame
    int32_t flags


@cython.final
cdef class StackComposer:
    """Makes stacks of what keys stand for.

    What a key stands for can change: its versions are rows first_version[key] to first_version[key + 1], each from
    version_from on (rising within a key; the first holds before, too), with the frames first_frame[version] to
    first_frame[version + 1] of `frames`, outermost first and at most max_frames. Beyond max_frames, addresses at the
    root are cut, each with all its frames: what is inlined stays with what it is inlined into. Such stacks stand under
    the frame cut_frame, unless it is -1.

    n_cut: how many samples were cut; n_unknown, n_late: how many of their keys are of
    is_unknown and is_late.
    """

    cdef const int64_t[::1] _first_version, _version_from, _first_frame
    cdef const int32_t[::1] _frames
    cdef const uint8_t[::1] _is_unknown, _is_late
    cdef Py_ssize_t _max_frames
    cdef int32_t _cut_frame
    cdef uint8_t[::1] _single
    cdef readonly int64_t n_cut, n_unknown, n_late

    def __cinit__(
        self, const int64_t[::1] first_version not None, const int64_t[::1] version_from not None,
        const int64_t[::1] first_frame not None, const int32_t[::1] frames not None,
        const uint8_t[::1] is_unknown not None, const uint8_t[::1] is_late not None, Py_ssize_t max_frames,
        int32_t cut_frame=-1
    ):
        cdef Py_ssize_t n_versions = version_from.shape[0]
        cdef Py_ssize_t k
        cdef int64_t v
        cdef Single* single
        if (
            not len(first_version) or len(first_frame) != n_versions + 1 or len(is_unknown) != n_versions
            or len(is_late) != n_versions or max_frames < 1
        ):
            raise ValueError("StackComposer: an array has the wrong length")
        for k in range(n_versions):
            if not 0 <= first_frame[k] <= first_frame[k + 1] <= frames.shape[0]:
                raise ValueError("StackComposer: a version outside the frames")
            if first_frame[k + 1] - first_frame[k] > max_frames:
                raise ValueError("StackComposer: a version of more frames than a stack may have")
        self._first_version, self._version_from, self._first_frame = first_version, version_from, first_frame
        self._frames, self._is_unknown, self._is_late = frames, is_unknown, is_late
        self._max_frames, self._cut_frame = max_frames, cut_frame
        self._single = np.empty(len(first_version) * sizeof(Single), np.uint8)
        single = <Single*>&self._single[0]
        for k in range(first_version.shape[0] - 1):
            v = first_version[k]
            if not 0 <= v < first_version[k + 1] <= n_versions:
                raise ValueError("StackComposer: a key without a version")
            if first_version[k + 1] == v + 1 and first_frame[v + 1] == first_frame[v] + 1:
                single[k] = Single(frames[first_frame[v]], (is_unknown[v] != 0) | (is_late[v] != 0) << 1)
            else:
                single[k] = Single(-1, 0)

    def compose(self, Paths paths not None, NodeTable stacks not None):
        """Returns the stack of each sample, -1 for none. stacks: those that there are, as prefix and frame, to which
        others are added."""
        cdef const int32_t[::1] threads = paths.thread
        cdef const int64_t[::1] times = paths.ts
        cdef const int32_t[::1] rows = paths.row
        cdef const int32_t[::1] n_shared = paths.n_shared
        cdef const int32_t[::1] n_own = paths.n_own
        cdef const int32_t[::1] own = paths.own
        cdef ChainTable chains = paths.chains
        cdef Py_ssize_t n = threads.shape[0]
        cdef Py_ssize_t width = paths.longest
        cdef Py_ssize_t n_keys = self._first_version.shape[0] - 1
        cdef bint bad = False
        stack_array = np.empty(n, np.int32)
        cdef int32_t[::1] stack = stack_array
        # The last row is that of a callchain that is composed again.
        cdef uint8_t[:, ::1] buffer = np.zeros((CACHED + 1, width * sizeof(Step)), np.uint8)
        cdef int32_t[CACHED + 1] n_composed
        cdef uint8_t[::1] held = np.empty((chains.n + 1) * sizeof(Composed), np.uint8)
        cdef Composed* all_composed = <Composed*>&held[0]
        cdef Composed* composed
        cdef Composed other
        cdef Chain* known
        cdef Py_ssize_t i = 0
        cdef Py_ssize_t used = 0
        cdef Py_ssize_t n_met = 0
        cdef int32_t n_rows = 0
        cdef Py_ssize_t t, d, j, k, depth
        cdef Step* path
        if {n} != {len(times), len(rows)} or len(n_shared) != len(n_own):
            raise ValueError("compose: columns of several lengths")
        for t in range(CACHED + 1):
            n_composed[t] = 0
        self.n_cut = self.n_unknown = self.n_late = 0
        while True:
            stacks.reserve(stacks.n_nodes + self._max_frames + 1)
            with nogil:
                while i < n:
                    composed = &other if rows[i] < 0 else &all_composed[rows[i]]
                    if rows[i] < 0 or rows[i] >= n_rows:
                        if rows[i] > n_rows or rows[i] >= chains.n or n_met >= n_shared.shape[0]:
                            bad = True
                            break
                        t = threads[i] & (CACHED - 1)
                        path = <Step*>&buffer[t, 0]
                        k = n_shared[n_met]
                        depth = k + n_own[n_met]
                        if k < 0 or depth < k or depth > width or n_own[n_met] > own.shape[0] - used:
                            bad = True
                            break
                        for j in range(n_own[n_met]):
                            path[depth - 1 - j].key = own[used + j]
                        while k > 0 and path[k - 1].until <= times[i]:
                            k -= 1
                        if not self._resolve(path, k, depth, times[i], n_keys):
                            bad = True
                            break
                        if not self._compose(stacks, path, min(n_composed[t], k), depth, &n_composed[t], composed):
                            break
                        used += n_own[n_met]
                        n_met += 1
                        n_rows += rows[i] >= 0
                    elif composed.until <= times[i]:
                        known = &chains.chains[rows[i]]
                        path = <Step*>&buffer[CACHED, 0]
                        for d in range(known.n_keys):
                            path[d].key = chains.keys[known.first_key + d]
                        if not self._resolve(path, 0, known.n_keys, times[i], n_keys):
                            bad = True
                            break
                        if not self._compose(stacks, path, 0, known.n_keys, &n_composed[CACHED], composed):
                            break
                    stack[i] = composed.stack
                    self.n_cut += composed.is_cut
                    self.n_unknown += composed.unknown
                    self.n_late += composed.late
                    i += 1
            if bad:
                raise ValueError("compose: keys that were not collected")
            if i == n:
                return stack_array

    cdef inline bint _resolve(
        self, Step* path, Py_ssize_t k, Py_ssize_t depth, int64_t ts, Py_ssize_t n_keys
    ) noexcept nogil:
        """Finds what the keys k to depth of a path stand for at a time. Returns whether there are such keys."""
        cdef Py_ssize_t d
        for d in range(k, depth):
            if not 0 <= path[d].key < n_keys:
                return False
            self._resolve_key(&path[d], ts)
            if d > 0:
                path[d].until = min(path[d].until, path[d - 1].until)
                path[d].frames += path[d - 1].frames
                path[d].unknown += path[d - 1].unknown
                path[d].late += path[d - 1].late
        return True

    cdef inline bint _compose(
        self, NodeTable stacks, Step* path, Py_ssize_t k, Py_ssize_t depth, int32_t* n_composed, Composed* composed
    ) noexcept nogil:
        """Makes the stack of a path of which the first k keys have stacks. n_composed: of how many they can be used
        later. Returns whether there was space for it."""
        cdef Py_ssize_t total = path[depth - 1].frames if depth else 0
        cdef int32_t top
        n_composed[0] = k
        if stacks.n_nodes + min(total, self._max_frames + 1) > stacks.parents.shape[0]:
            return False
        composed.is_cut = total > self._max_frames
        if composed.is_cut:
            k = 0
            while path[k].frames < total - self._max_frames:
                k += 1
            k += 1
            n_composed[0] = 0
            top = stacks.intern_next(-1, self._cut_frame) if self._cut_frame >= 0 else -1
        else:
            n_composed[0] = depth
            top = path[k - 1].stack if k else -1
        composed.stack = self._enter(stacks, path, k, depth, top)
        composed.until = path[depth - 1].until if depth else INT64_MAX
        composed.unknown = path[depth - 1].unknown if depth else 0
        composed.late = path[depth - 1].late if depth else 0
        return True

    cdef inline void _resolve_key(self, Step* step, int64_t ts) noexcept nogil:
        """Finds what a key stands for at a time, and until when."""
        cdef Single single = (<Single*>&self._single[0])[step.key]
        cdef int64_t v, end
        step.until = INT64_MAX
        if single.frame >= 0:
            step.version = -1 - single.frame
            step.frames = 1
            step.unknown = single.flags & 1
            step.late = single.flags >> 1
            return
        v, end = self._first_version[step.key], self._first_version[step.key + 1]
        v = max(v, last_at(self._version_from, v, end, ts))
        if v + 1 < end:
            step.until = self._version_from[v + 1]
        step.version = v
        step.frames = self._first_frame[v + 1] - self._first_frame[v]
        step.unknown = self._is_unknown[v]
        step.late = self._is_late[v]

    cdef inline int32_t _enter(
        self, NodeTable stacks, Step* path, Py_ssize_t k, Py_ssize_t depth, int32_t top
    ) noexcept nogil:
        """Returns the stack of the keys k to depth above the stack `top`. There must be space for them."""
        cdef int32_t version
        cdef Py_ssize_t d, j
        for d in range(k, depth):
            version = path[d].version
            if version < 0:
                top = stacks.intern_next(top, -1 - version)
            else:
                for j in range(self._first_frame[version], self._first_frame[version + 1]):
                    top = stacks.intern_next(top, self._frames[j])
            path[d].stack = top
        return top
