"""Callchains become stacks.

A callchain lists instruction pointers, innermost first, and markers that say whose they are. The first pointer after a
marker is exact; the others are return addresses, and what was called from is the byte before. A *key* is an address to
look up and the space it is in: 0 is the kernel, 1 a hypervisor, 2 a guest, each process has one of its own.

Most of a callchain, or all of it, is that of an earlier one: what is known is looked for from its innermost address
outwards, and the rest is added to a tree. What a key stands for can change with time; the stack of a node is found
once, and again when that has changed.
"""

cimport cython
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint64_t

import numpy as np

from traceferry.importers.perf._chains cimport ChainTree, Hash, Node, hash_in, hash_with
from traceferry.native.bytes cimport prefetch
from traceferry.native.nodes cimport NodeTable
from traceferry.native.search cimport last_at

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

# Of so many samples at once, memory is asked for before it is needed: of the callchain as a whole, and of so many of the
# next addresses where it is not known.
cdef enum:
    BLOCK = 32
    OUTWARDS = 3

# A callchain from its innermost address on, which is in a space. n_words: 0 is none; own: the space of its process.
cdef struct Way:
    const uint64_t* words
    int32_t n_words
    int32_t own
    int32_t space

# A key in a callchain, and the hash of its node.
cdef struct Entry:
    Hash hashed
    uint64_t address
    int32_t space

# What a node was composed to: its stack; how many frames, unknown keys and such of late code it has, with those of the
# nodes above; and until when this holds. Where there are more frames than a stack may have, they are that many and one.
cdef struct Composed:
    int64_t until
    int32_t stack
    int32_t frames
    int32_t unknown
    int32_t late

# A node on the way to a sample's own, and what its key stands for: version is a row of the versions, or of a single
# frame -1 - its row.
cdef struct Step:
    int32_t node
    int32_t version
    Composed composed


@cython.final
cdef class Paths:
    """The keys of samples, as nodes of a tree.

    node: of each sample, int32, -1 for none; ts: of each sample; spaces, addresses: of each key; first_ts, last_ts: when
    it was met first and last; longest: no sample has more keys.
    """

    cdef readonly object node, ts, spaces, addresses, first_ts, last_ts
    cdef readonly Py_ssize_t longest
    cdef ChainTree tree


cdef inline int32_t space_behind(uint64_t marker, int32_t own) noexcept nogil:
    """Returns the space of the addresses behind a marker, in a process whose space is its `own`."""
    if marker == <uint64_t>KERNEL:
        return KERNEL_SPACE
    if marker == <uint64_t>USER:
        return own
    if marker in (<uint64_t>GUEST, <uint64_t>GUEST_KERNEL, <uint64_t>GUEST_USER):
        return GUEST_SPACE
    return OTHER_SPACE


cdef inline Way way_of(const uint64_t* words, Py_ssize_t n, int32_t own) noexcept nogil:
    """Returns a callchain from its first address on."""
    cdef int32_t space = own
    cdef Py_ssize_t w = 0
    while w < n and (words[w] == 0 or words[w] >= <uint64_t>MARKERS):
        if words[w]:
            space = space_behind(words[w], own)
        w += 1
    return Way(words + w, n - w, own, space)


cdef inline void hash_words(const Way* way, Hash* hashes) noexcept nogil:
    """Writes the hash of each word and those outside of it."""
    cdef Hash hashed = Hash(0, 0)
    cdef Py_ssize_t w
    for w in range(way.n_words - 1, -1, -1):
        hashed = hash_with(hashed, way.words[w])
        hashes[w] = hashed


cdef inline Hash hash_at(const Way* way, const Hash* hashes, int32_t w) noexcept nogil:
    """Returns the hash of a word's node, if it is in the space of the first word."""
    return hash_in(hashes[w], way.own, way.space << 1 | (w == 0))


cdef inline int32_t entered(
    ChainTree tree, const Way* way, const Hash* hashes, Entry* entries, int32_t sample
) noexcept nogil:
    """Returns the node of a sample's callchain, for which there must be room in the tree. entries: memory for each
    word."""
    cdef int32_t w
    cdef int32_t n_new = 0
    cdef int32_t space = way.space
    cdef int32_t node = -1
    cdef bint exact = True
    cdef Entry* entry
    for w in range(way.n_words):
        # The first one is an address, whatever it is.
        if w and (way.words[w] == 0 or way.words[w] >= <uint64_t>MARKERS):
            if way.words[w]:
                space = space_behind(way.words[w], way.own)
                exact = True
            continue
        entry = &entries[n_new]
        entry[0] = Entry(hash_in(hashes[w], way.own, space << 1 | exact), way.words[w] - (not exact), space)
        node = tree.find(entry.hashed)
        if node >= 0:
            break
        n_new += 1
        exact = False
    while n_new:
        n_new -= 1
        entry = &entries[n_new]
        node = tree.add(entry.hashed, node, tree.keys.of(entry.space, entry.address, sample), sample)
    return node


def collect(
    const uint64_t[::1] chain not None, const int64_t[::1] start not None, const int32_t[::1] length not None,
    const int32_t[::1] space not None, const uint64_t[::1] ip not None, const uint8_t[::1] mode not None,
    const int32_t[::1] space_of_mode not None, ts, Py_ssize_t n_expected=1 << 14
):
    """Returns the keys of some samples, as Paths.

    start, length: where each sample's callchain is in `chain`; space: of its process; ip, mode: what stands for a
    callchain that holds no address, in the space that space_of_mode has, OWN_SPACE for that of the process; ts: their
    times, rising. n_expected: for how many keys there is memory at first.
    """
    cdef Py_ssize_t n = start.shape[0]
    cdef Py_ssize_t width = 1
    cdef Py_ssize_t begin = 0
    cdef Py_ssize_t i, k, d, n_block, n_missing
    cdef int32_t now, w
    cdef Way[BLOCK] ways
    cdef Hash[BLOCK] leaves
    cdef Py_ssize_t[BLOCK] missing
    cdef Way* way
    if {n} != {len(length), len(space), len(ip), len(mode), len(ts)}:
        raise ValueError("collect: columns of several lengths")
    if n and int(np.max(mode)) >= len(space_of_mode):
        raise ValueError("collect: a mode without a space")
    for i in range(n):
        if not 0 <= length[i] <= chain.shape[0] or not 0 <= start[i] <= chain.shape[0] - length[i]:
            raise ValueError("collect: a callchain outside the data")
        width = max(width, length[i] + 1)
    node_array = np.empty(n, np.int32)
    cdef int32_t[::1] nodes = node_array
    cdef ChainTree tree = ChainTree(max(n_expected, width))
    cdef uint8_t[:, ::1] hash_buffer = np.empty((BLOCK, width * sizeof(Hash)), np.uint8)
    cdef uint8_t[::1] buffer = np.empty(width * sizeof(Entry), np.uint8)
    cdef Hash* hashes
    while begin < n:
        tree.reserve(width)
        n_block = min(BLOCK, n - begin)
        with nogil:
            for k in range(n_block):
                i = begin + k
                way = &ways[k]
                way[0] = way_of(&chain[start[i]] if length[i] else NULL, length[i], space[i])
                if way.n_words == 0 and ip[i]:
                    now = space_of_mode[mode[i]]
                    way[0] = Way(&ip[i], 1, space[i], space[i] if now == OWN_SPACE else now)
                if way.n_words:
                    hashes = <Hash*>&hash_buffer[k, 0]
                    hash_words(way, hashes)
                    leaves[k] = hash_at(way, hashes, 0)
                    tree.prefetch_slot(leaves[k])
            for k in range(n_block):
                if ways[k].n_words:
                    tree.prefetch_node(leaves[k])
            n_missing = 0
            for k in range(n_block):
                way = &ways[k]
                nodes[begin + k] = tree.find(leaves[k]) if way.n_words else -1
                if way.n_words and nodes[begin + k] < 0:
                    missing[n_missing] = k
                    n_missing += 1
                    for w in range(1, min(OUTWARDS + 1, way.n_words)):
                        tree.prefetch_slot(hash_at(way, <Hash*>&hash_buffer[k, 0], w))
            for d in range(n_missing):
                k = missing[d]
                for w in range(1, min(OUTWARDS + 1, ways[k].n_words)):
                    if tree.prefetch_node(hash_at(&ways[k], <Hash*>&hash_buffer[k, 0], w)):
                        break
            for d in range(n_missing):
                k = missing[d]
                if not tree.has_room(ways[k].n_words):
                    with gil:
                        tree.reserve(width)
                nodes[begin + k] = entered(
                    tree, &ways[k], <Hash*>&hash_buffer[k, 0], <Entry*>&buffer[0], begin + k
                )
            for i in range(begin, begin + n_block):
                if nodes[i] >= 0:
                    tree.nodes[nodes[i]].last = i
        begin += n_block
    tree.spread_samples()
    cdef Paths paths = Paths()
    paths.node, paths.ts, paths.longest, paths.tree = node_array, ts, width, tree
    paths.spaces, paths.addresses, first, last = [array[:tree.keys.n] for array in tree.keys.arrays]
    paths.first_ts, paths.last_ts = ts[first], ts[last]
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
        cdef const int64_t[::1] times = paths.ts
        cdef const int32_t[::1] nodes = paths.node
        cdef ChainTree tree = paths.tree
        cdef Py_ssize_t n = nodes.shape[0]
        cdef Py_ssize_t i = 0
        cdef Py_ssize_t k
        cdef bint bad = tree.keys.n >= self._first_version.shape[0] or times.shape[0] != n
        stack_array = np.empty(n, np.int32)
        cdef int32_t[::1] stack = stack_array
        cdef uint8_t[::1] buffer = np.empty(paths.longest * sizeof(Step), np.uint8)
        cdef uint8_t[::1] held = np.empty((tree.n + 1) * sizeof(Composed), np.uint8)
        cdef Composed* all_composed = <Composed*>&held[0]
        cdef Composed* composed
        # No time is before this: it is composed when a sample has it.
        for k in range(tree.n):
            all_composed[k].until = INT64_MIN
        self.n_cut = self.n_unknown = self.n_late = 0
        stacks.reserve(stacks.n_nodes + tree.n)
        while i < n and not bad:
            stacks.reserve(stacks.n_nodes + self._max_frames + 1)
            with nogil:
                while i < n:
                    if nodes[i] < 0:
                        stack[i] = -1
                        i += 1
                        continue
                    if nodes[i] >= tree.n:
                        bad = True
                        break
                    composed = &all_composed[nodes[i]]
                    if composed.until <= times[i] and not self._compose(
                        stacks, tree.nodes, all_composed, <Step*>&buffer[0], nodes[i], times[i]
                    ):
                        break
                    stack[i] = composed.stack
                    self.n_cut += composed.frames > self._max_frames
                    self.n_unknown += composed.unknown
                    self.n_late += composed.late
                    i += 1
        if bad:
            raise ValueError("compose: keys that were not collected")
        return stack_array

    cdef inline bint _compose(
        self, NodeTable stacks, const Node* nodes, Composed* all_composed, Step* steps, int32_t node, int64_t ts
    ) noexcept nogil:
        """Composes a node at a time, and those above it of which something has changed since. steps: memory for as many
        as it has keys. Returns whether there was space in `stacks`."""
        cdef Py_ssize_t n = 0
        cdef Py_ssize_t d
        cdef int32_t at = node
        cdef Composed above = Composed(INT64_MAX, -1, 0, 0, 0)
        while at >= 0 and all_composed[at].until <= ts:
            steps[n].node = at
            n += 1
            at = nodes[at].parent
        if at >= 0:
            above = all_composed[at]
        cdef int32_t top = above.stack
        for d in range(n - 1, -1, -1):
            self._resolve(&steps[d], nodes[steps[d].node].key, &above, ts)
            above = steps[d].composed
        if stacks.n_nodes + min(<Py_ssize_t>above.frames, self._max_frames) + 1 > stacks.parents.shape[0]:
            return False
        if above.frames > self._max_frames:
            all_composed[node] = above
            all_composed[node].stack = self._cut(stacks, nodes, steps, node, ts)
            return True
        for d in range(n - 1, -1, -1):
            top = self._enter(stacks, steps[d].version, top)
            steps[d].composed.stack = top
            all_composed[steps[d].node] = steps[d].composed
        return True

    cdef inline int32_t _cut(
        self, NodeTable stacks, const Node* nodes, Step* steps, int32_t node, int64_t ts
    ) noexcept nogil:
        """Returns the stack of a node at a time, without those keys at the root with which it had too many frames."""
        cdef Composed inside = Composed(INT64_MAX, -1, 0, 0, 0)
        cdef Py_ssize_t n = 0
        cdef Py_ssize_t d
        cdef int32_t top = stacks.intern_next(-1, self._cut_frame) if self._cut_frame >= 0 else -1
        while node >= 0:
            self._resolve(&steps[n], nodes[node].key, &inside, ts)
            inside = steps[n].composed
            if inside.frames > self._max_frames:
                break
            n += 1
            node = nodes[node].parent
        for d in range(n - 1, -1, -1):
            top = self._enter(stacks, steps[d].version, top)
        return top

    cdef inline void _resolve(self, Step* step, int32_t key, const Composed* others, int64_t ts) noexcept nogil:
        """Finds what a key stands for at a time, and adds it to what the others on its way are composed to."""
        cdef Single single = (<Single*>&self._single[0])[key]
        cdef int64_t v, end
        step.composed = others[0]
        if single.frame >= 0:
            step.version = -1 - single.frame
            step.composed.frames = min(<Py_ssize_t>others.frames, self._max_frames) + 1
            step.composed.unknown += single.flags & 1
            step.composed.late += single.flags >> 1
            return
        v, end = self._first_version[key], self._first_version[key + 1]
        v = max(v, last_at(self._version_from, v, end, ts))
        if v + 1 < end:
            step.composed.until = min(others.until, self._version_from[v + 1])
        step.version = v
        step.composed.frames = min(
            others.frames + (self._first_frame[v + 1] - self._first_frame[v]), self._max_frames + 1
        )
        step.composed.unknown += self._is_unknown[v]
        step.composed.late += self._is_late[v]

    cdef inline int32_t _enter(self, NodeTable stacks, int32_t version, int32_t top) noexcept nogil:
        """Returns the stack of a key above the stack `top`. There must be space for it. version: as `Step` has it."""
        cdef Py_ssize_t j
        if version < 0:
            return stacks.intern_next(top, -1 - version)
        for j in range(self._first_frame[version], self._first_frame[version + 1]):
            top = stacks.intern_next(top, self._frames[j])
        return top
