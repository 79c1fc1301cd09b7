"""Physical frames and interned callstacks."""

import numpy as np

from traceferry.native.arrays import grown

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from traceferry.exporters.perfetto._packets cimport OutputBuffer, put_integer, size_of, put_varint
from traceferry.exporters.perfetto cimport fields as pb
from traceferry.native.interning cimport enter_pairs, intern_pair

cdef enum:
    # More than the tags, the number and the length of a callstack take.
    AROUND = 24
    # As many as a frame's number takes with its tag.
    LONGEST_NUMBER = 6


# Columns of PhysicalStacks.
cdef enum:
    FRAME
    CALLER
    DEPTH
    OUTER
    N_COLUMNS


cdef int32_t[::1] with_room(int32_t[::1] column, Py_ssize_t n):
    """Returns the column if it has n rows, else one that has, with the new ones 0."""
    return grown(np.asarray(column), n)


cdef class PhysicalStacks:
    """Stacks of physical frames: each is a frame with all that is inlined into it.

    A physical frame is the trace's frame that is innermost in it, and the physical frame that this one is inlined
    into, -1 where there is none. Of each stack: FRAME, its innermost physical frame; CALLER, the stack that called
    that, -1 is none; DEPTH, how many physical frames it has; OUTER, the stack of the outermost `kept` of them, it itself
    if it has no more.
    """

    cdef int kept
    cdef readonly Py_ssize_t n_stacks
    cdef readonly Py_ssize_t n_frames
    cdef int32_t[::1] inlined_into
    cdef int32_t[::1] innermost
    cdef int32_t[::1] slots
    cdef int32_t[:, ::1] stacks

    def __cinit__(self, int kept):
        self.kept = kept
        self.inlined_into = self.innermost = self.slots = np.empty(0, np.int32)
        self.stacks = np.empty((0, N_COLUMNS), np.int32)

    def append(self, const int32_t[::1] prefix, const int32_t[::1] frame, const int32_t[::1] inline_depth):
        """Adds stacks, each after its prefix. inline_depth: for each of the trace's frames, 0 is one of its own."""
        cdef Py_ssize_t n = frame.shape[0]
        cdef Py_ssize_t i, row, above
        cdef int32_t outside, number, depth
        if prefix.shape[0] != n:
            raise ValueError("append: columns of different lengths")
        self.stacks = grown(np.asarray(self.stacks), self.n_stacks + n)
        with nogil:
            for i in range(n):
                if 2 * self.n_frames == self.slots.shape[0]:
                    self.make_slots()
                row = self.n_stacks
                above = prefix[i]
                if above >= row or not 0 <= frame[i] < inline_depth.shape[0]:
                    with gil:
                        raise ValueError("append: an invalid frame, or a stack above a later one")
                outside = -1
                if above >= 0 and inline_depth[frame[i]] > 0:
                    outside = self.stacks[above, FRAME]
                    above = self.stacks[above, CALLER]
                number = intern_pair(
                    self.inlined_into, self.innermost, self.slots, self.n_frames, outside, frame[i]
                )
                self.n_frames += number == self.n_frames
                depth = self.stacks[above, DEPTH] + 1 if above >= 0 else 1
                self.stacks[row, FRAME] = number
                self.stacks[row, CALLER] = above
                self.stacks[row, DEPTH] = depth
                self.stacks[row, OUTER] = self.stacks[above, OUTER] if depth > self.kept else row
                self.n_stacks += 1

    cdef int make_slots(self) except -1 with gil:
        """Makes room for twice as many frames, and enters them again."""
        cdef Py_ssize_t n = max(2 * self.slots.shape[0], 1024)
        self.slots = np.full(n, -1, np.int32)
        self.inlined_into = with_room(self.inlined_into, n // 2)
        self.innermost = with_room(self.innermost, n // 2)
        enter_pairs(self.inlined_into, self.innermost, self.slots, 0, self.n_frames)
        return 0

    def chain(self, Py_ssize_t frame):
        """Returns the trace's frames of a physical frame, the outermost first."""
        if not 0 <= frame < self.n_frames:
            raise IndexError(frame)
        frames = []
        while frame >= 0:
            frames.append(self.innermost[frame])
            frame = self.inlined_into[frame]
        return tuple(frames[::-1])

    def single(self, const int32_t[::1] frames):
        """Returns the trace's frame of each of some physical frames, -1 where something is inlined into it (int32)."""
        cdef Py_ssize_t i
        cdef int32_t[::1] found = np.full(frames.shape[0], -1, np.int32)
        for i in range(frames.shape[0]):
            if not 0 <= frames[i] < self.n_frames:
                raise IndexError(frames[i])
            if self.inlined_into[frames[i]] < 0:
                found[i] = self.innermost[frames[i]]
        return np.asarray(found)

    def count_deeper(self, const int32_t[::1] stacks, int depth):
        """Returns how many of the stacks are deeper."""
        cdef Py_ssize_t i
        cdef Py_ssize_t n = 0
        for i in range(stacks.shape[0]):
            if not 0 <= stacks[i] < self.n_stacks:
                raise IndexError(stacks[i])
            n += self.stacks[stacks[i], DEPTH] > depth
        return n


cdef class CallstackWriter:
    """Numbers callstacks, and the physical frames in them, and writes them as interned data of one sequence.

    Of a stack deeper than max_depth only the innermost `inner` frames are written, then the frame `cut_iid`, then its
    OUTER ones. n_frames: the last number that a frame has.

    The latest stack that is not cut is kept: path has its stacks, the root's first, and `written` the numbers of its
    frames as they are written, those of each stack up to `ends`. What another has in common with it is copied.
    """

    cdef PhysicalStacks stacks
    cdef int max_depth
    cdef int inner
    cdef public int32_t n_frames
    cdef public int32_t cut_iid
    cdef int32_t n_callstacks
    cdef int32_t[::1] callstack_iid
    cdef int32_t[::1] frame_iid
    cdef int32_t[::1] new_frame
    cdef Py_ssize_t n_new
    cdef int32_t[::1] walked
    cdef int32_t[::1] path
    cdef int32_t[::1] ends
    cdef uint8_t[::1] written
    cdef int n_path

    def __cinit__(self, PhysicalStacks stacks not None, int max_depth, int inner):
        self.stacks = stacks
        self.max_depth = max_depth
        self.inner = inner
        self.callstack_iid = self.frame_iid = self.new_frame = np.empty(0, np.int32)
        # A stack that is cut has `inner` frames, one that says so, and the `kept` ones of PhysicalStacks.
        self.walked = np.empty(max(max_depth, inner + 1 + stacks.kept), np.int32)
        self.path, self.ends = np.empty((2, max_depth), np.int32)
        self.written = np.empty(len(self.walked) * LONGEST_NUMBER, np.uint8)

    @property
    def iids(self):
        """Returns the number of each stack's callstack, 0 is none (int32)."""
        self.callstack_iid = with_room(self.callstack_iid, self.stacks.n_stacks)
        return np.asarray(self.callstack_iid)[: self.stacks.n_stacks]

    def new_frames(self):
        """Returns the physical frames that have got the numbers up to n_frames since the last call (int32)."""
        new = np.array(self.new_frame[: self.n_new])
        self.n_new = 0
        return new

    def write(self, OutputBuffer out not None, const int32_t[::1] stacks):
        """Writes those of the stacks that have no callstack yet, in their order; -1 is none. `new_frames` has to be
        asked for with each piece that is written."""
        cdef int32_t[::1] iids = self.iids
        cdef Py_ssize_t i, node, size, p
        cdef uint8_t* o
        self.frame_iid = with_room(self.frame_iid, self.stacks.n_frames)
        self.new_frame = with_room(self.new_frame, self.stacks.n_frames)
        with nogil:
            for i in range(stacks.shape[0]):
                node = stacks[i]
                if node >= iids.shape[0]:
                    with gil:
                        raise ValueError("write: an invalid stack")
                if node < 0 or iids[node]:
                    continue
                self.n_callstacks += 1
                iids[node] = self.n_callstacks
                if self.stacks.stacks[node, DEPTH] > self.max_depth:
                    size = self.write_cut(self.stacks, node)
                else:
                    size = self.write_whole(self.stacks, node)
                out.reserve(size + AROUND)
                o = out.data
                p = put_varint(o, out.n, pb.InternedData_callstacks)
                p = put_varint(o, p, 1 + size_of(iids[node]) + size)
                p = put_integer(o, p, pb.Callstack_iid, iids[node])
                memcpy(o + p, &self.written[0], size)
                out.n = p + size
        out.flush()

    cdef inline Py_ssize_t write_whole(self, PhysicalStacks stacks, int32_t node) noexcept nogil:
        """Writes the numbers of a stack's frames; returns how many bytes they take. New frames are numbered from the
        leaf on."""
        cdef int depth = stacks.stacks[node, DEPTH]
        cdef int d = depth
        cdef Py_ssize_t p
        while d and not (d <= self.n_path and self.path[d - 1] == node):
            d -= 1
            self.path[d] = node
            self.walked[d] = self.number(stacks.stacks[node, FRAME])
            node = stacks.stacks[node, CALLER]
        self.n_path = depth
        p = self.ends[d - 1] if d else 0
        # The root comes first.
        for d in range(d, depth):
            p = put_integer(&self.written[0], p, pb.Callstack_frame_ids, self.walked[d])
            self.ends[d] = p
        return p

    cdef Py_ssize_t write_cut(self, PhysicalStacks stacks, Py_ssize_t node) noexcept nogil:
        """Writes the numbers of a stack's frames, of which there are too many, as `write_whole` does."""
        cdef int left = self.inner
        cdef Py_ssize_t n = 0
        cdef Py_ssize_t p = 0
        cdef Py_ssize_t k
        while node >= 0:
            if left == 0:
                self.walked[n] = self.cut_iid
                n += 1
                node = stacks.stacks[node, OUTER]
            self.walked[n] = self.number(stacks.stacks[node, FRAME])
            n += 1
            node = stacks.stacks[node, CALLER]
            left -= 1
        for k in range(n - 1, -1, -1):
            p = put_integer(&self.written[0], p, pb.Callstack_frame_ids, self.walked[k])
        # What is kept was written over.
        self.n_path = 0
        return p

    cdef inline int32_t number(self, int32_t frame) noexcept nogil:
        """Returns the number of a physical frame, which is new if it has to be."""
        if self.frame_iid[frame] == 0:
            self.n_frames += 1
            self.frame_iid[frame] = self.n_frames
            self.new_frame[self.n_new] = frame
            self.n_new += 1
        return self.frame_iid[frame]
