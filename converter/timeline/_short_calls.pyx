"""Sums short calls in place: how long calls are, how many rows a limit leaves, and those rows.

Short calls of one path between two rows of long calls become one call, as long as they are together. A rank is a class
of durations: the larger the longer, four for each power of two, so that one byte holds it.
"""

cimport cython
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free

from traceferry.native.arrays import grown
from traceferry.native.call_flags cimport LEAVE
from traceferry.native.memory cimport resized
from traceferry.native.nodes cimport NodeTable
from traceferry.native.saturating cimport minus, plus

cdef enum:
    NO_NODE = -1
    N_RANKS_MOST = 256
    MOST_LIMITS = 32


cdef inline uint8_t rank_of(int64_t dur) noexcept nogil:
    """Of a duration that is not negative."""
    cdef int bits = 0
    cdef int64_t left = dur
    if dur < 4:
        return <uint8_t>dur
    while left >= 8:
        left >>= 1
        bits += 1
    return <uint8_t>(4 * (bits + 1) + (left & 3))


cdef struct OpenCall:
    int64_t ts
    int64_t row
    int32_t node
    int32_t place  # among the short calls of its gap, NO_NODE of a long call


@cython.final
cdef class CallRanks:
    """The ranks of a balanced stream of calls, whose pieces are added one after the other."""

    cdef OpenCall* calls
    cdef Py_ssize_t room
    cdef Py_ssize_t depth
    cdef Py_ssize_t n
    cdef uint8_t[::1] all_ranks
    cdef int64_t[::1] n_calls

    def __cinit__(self):
        self.all_ranks = np.empty(0, np.uint8)
        self.n_calls = np.zeros(N_RANKS_MOST, np.int64)

    def __dealloc__(self):
        free(self.calls)

    def add(self, const int64_t[::1] ts, const uint8_t[::1] flags):
        """Adds a piece. Raises ValueError if the stream is not balanced."""
        cdef Py_ssize_t n = ts.shape[0]
        cdef Py_ssize_t depth = self.depth
        cdef Py_ssize_t row = self.n
        cdef Py_ssize_t i
        cdef uint8_t rank
        cdef uint8_t[::1] ranks
        cdef bint is_bad = False
        if flags.shape[0] != n:
            raise ValueError("CallRanks: columns of several lengths")
        if depth + n > self.room:
            self.room = max(depth + n, 2 * self.room)
            self.calls = <OpenCall*>resized(self.calls, self.room * sizeof(OpenCall))
        self.all_ranks = grown(np.asarray(self.all_ranks), row + n)
        ranks = self.all_ranks
        with nogil:
            for i in range(n):
                if not flags[i] & LEAVE:
                    self.calls[depth].ts = ts[i]
                    self.calls[depth].row = row + i
                    depth += 1
                elif depth == 0:
                    is_bad = True
                    break
                else:
                    depth -= 1
                    rank = rank_of(minus(ts[i], self.calls[depth].ts))
                    ranks[self.calls[depth].row] = rank
                    ranks[row + i] = rank
                    self.n_calls[rank] += 1
        self.depth = depth
        self.n = row + n
        if is_bad:
            raise ValueError("the stream of calls is not balanced")

    def done(self):
        """Returns the rank of each row, uint8: an enter has that of its leave. Raises ValueError if calls are open."""
        if self.depth:
            raise ValueError("the stream of calls is not balanced")
        return np.asarray(self.all_ranks)[:self.n]

    @property
    def of_calls(self):
        """How many calls there are of each rank, int64."""
        return np.asarray(self.n_calls)


@cython.final
cdef class SummedCounts:
    """How many calls a stream of calls has once those below a limit are summed, for several limits at once.

    limits: uint8, ranks that rise, at most 32: calls of a smaller rank are short.
    """

    cdef NodeTable tree
    cdef uint8_t[::1] limits
    cdef int64_t[::1] counts
    cdef uint32_t gap[MOST_LIMITS]
    cdef uint32_t* last_gap  # of each node, for each limit: the gap in which it was last
    cdef Py_ssize_t n_nodes
    cdef int32_t* path
    cdef Py_ssize_t room
    cdef Py_ssize_t depth

    def __cinit__(self, limits):
        cdef Py_ssize_t k
        if len(limits) > MOST_LIMITS:
            raise ValueError("SummedCounts: too many limits")
        self.tree = NodeTable()
        self.limits = np.array(limits, np.uint8)
        self.counts = np.zeros(len(limits), np.int64)
        for k in range(MOST_LIMITS):
            self.gap[k] = 1

    def __dealloc__(self):
        free(self.last_gap)
        free(self.path)

    cdef int reserve(self) except -1:
        """Makes room for one more node, and for what is known of each."""
        cdef Py_ssize_t n_limits = self.limits.shape[0]
        cdef Py_ssize_t i
        self.tree.reserve(self.tree.n_nodes + 1)
        if self.tree.parents.shape[0] > self.n_nodes:
            self.last_gap = <uint32_t*>resized(
                self.last_gap, self.tree.parents.shape[0] * n_limits * sizeof(uint32_t)
            )
            for i in range(self.n_nodes * n_limits, self.tree.parents.shape[0] * n_limits):
                self.last_gap[i] = 0
            self.n_nodes = self.tree.parents.shape[0]
        return 0

    def add(self, const int32_t[::1] frame, const uint8_t[::1] flags, const uint8_t[::1] ranks):
        """Adds a piece of a balanced stream. ranks: as those of `CallRanks`."""
        cdef Py_ssize_t n = flags.shape[0]
        cdef Py_ssize_t n_limits = self.limits.shape[0]
        cdef Py_ssize_t depth = self.depth
        cdef Py_ssize_t i = 0
        cdef Py_ssize_t k, n_long
        cdef int32_t node
        cdef uint32_t* seen
        if frame.shape[0] != n or ranks.shape[0] != n:
            raise ValueError("SummedCounts: columns of several lengths")
        if depth + n > self.room:
            self.room = max(depth + n, 2 * self.room)
            self.path = <int32_t*>resized(self.path, self.room * sizeof(int32_t))
        while i < n:
            self.reserve()
            with nogil:
                while i < n:
                    n_long = 0
                    while n_long < n_limits and self.limits[n_long] <= ranks[i]:
                        self.gap[n_long] += 1
                        n_long += 1
                    if flags[i] & LEAVE:
                        depth -= depth > 0
                        i += 1
                        continue
                    node = self.tree.intern_next(self.path[depth - 1] if depth else NO_NODE, frame[i])
                    self.path[depth] = node
                    depth += 1
                    seen = &self.last_gap[node * n_limits]
                    for k in range(n_long):
                        self.counts[k] += 1
                    for k in range(n_long, n_limits):
                        if seen[k] != self.gap[k]:
                            seen[k] = self.gap[k]
                            self.counts[k] += 1
                    i += 1
                    if self.tree.n_nodes >= self.tree.parents.shape[0]:
                        break
        self.depth = depth

    @property
    def of_limits(self):
        """How many calls each limit leaves, int64."""
        return np.asarray(self.counts)


# The short calls of one path in a gap: between two rows of long calls.
cdef struct ShortCalls:
    int64_t first_ts
    int64_t dur
    int64_t count
    int64_t row  # of the first
    int32_t frame
    int32_t first_inside
    int32_t last_inside
    int32_t next
    uint8_t enter_flags
    uint8_t leave_flags


# A path whose calls are written. end: of its call; shift: what is added to the times of those beside it, where is_one
# says that what they are in stands for one call.
cdef struct Writing:
    int32_t place
    int64_t end
    int64_t shift
    bint is_one


@cython.final
cdef class ShortCallsSummed:
    """Makes the rows that are left of a balanced stream: calls of at least the rank `limit` as they are, and one call
    for the short ones of each path in each gap.

    Those begin in the order of their first calls, each when its first call did, or when the one before it ends: all end
    before the gap does, since calls of one caller do not overlap. What stands for one call keeps its flags, and its
    times if nothing before it was summed.
    """

    cdef NodeTable tree
    cdef uint8_t limit
    cdef uint32_t* gap_of  # of each node: the gap in which it was last
    cdef int32_t* place_of  # and its place there
    cdef Py_ssize_t n_nodes
    cdef uint32_t gap
    cdef OpenCall* calls
    cdef Py_ssize_t room
    cdef Py_ssize_t depth
    cdef ShortCalls* short_calls
    cdef Py_ssize_t short_room
    cdef int32_t n_short
    cdef int32_t first_short
    cdef int32_t last_short
    cdef Writing* writing
    cdef Py_ssize_t writing_room
    cdef int64_t n_read
    cdef int64_t[::1] ts
    cdef int32_t[::1] frame
    cdef uint8_t[::1] flags
    cdef int64_t[::1] count
    cdef int64_t[::1] row
    cdef Py_ssize_t n

    def __cinit__(self, uint8_t limit):
        self.tree = NodeTable()
        self.limit = limit
        self.gap = 1
        self.first_short = self.last_short = NO_NODE
        self.ts = self.count = self.row = np.empty(0, np.int64)
        self.frame = np.empty(0, np.int32)
        self.flags = np.empty(0, np.uint8)

    def __dealloc__(self):
        free(self.gap_of)
        free(self.place_of)
        free(self.calls)
        free(self.short_calls)
        free(self.writing)

    def add(
        self, const int64_t[::1] ts, const int32_t[::1] frame, const uint8_t[::1] flags, const int64_t[::1] counts,
        const uint8_t[::1] ranks
    ):
        """Adds a piece. counts: how many calls each enter stands for; ranks: as those of `CallRanks`."""
        cdef Py_ssize_t n = ts.shape[0]
        cdef Py_ssize_t i = 0
        cdef bint is_bad = False
        if frame.shape[0] != n or flags.shape[0] != n or counts.shape[0] != n or ranks.shape[0] != n:
            raise ValueError("ShortCallsSummed: columns of several lengths")
        if self.depth + n > self.room:
            self.room = max(self.depth + n, 2 * self.room)
            self.calls = <OpenCall*>resized(self.calls, self.room * sizeof(OpenCall))
        while i < n:
            self.reserve()
            with nogil:
                while i < n and self.has_room():
                    if flags[i] & LEAVE and self.depth == 0:
                        is_bad = True
                        break
                    if ranks[i] >= self.limit:
                        self.add_long(ts[i], frame[i], flags[i], counts[i], self.n_read + i)
                    elif flags[i] & LEAVE:
                        self.leave_short(ts[i], flags[i])
                    else:
                        self.enter_short(ts[i], frame[i], flags[i], counts[i], self.n_read + i)
                    i += 1
            if is_bad:
                raise ValueError("the stream of calls is not balanced")
        self.n_read += n

    def done(self):
        """Returns the columns ts, frame and flags of the rows; how many calls each enter stands for, int64; and the row
        of the stream that it was, int64; -1 where it stands for several, -2 where it does inside such a call, and of
        leaves. Raises ValueError if calls are open."""
        if self.depth:
            raise ValueError("the stream of calls is not balanced")
        self.reserve()
        self.write_gap()
        n = self.n
        times, frames, flags = np.asarray(self.ts)[:n], np.asarray(self.frame)[:n], np.asarray(self.flags)[:n]
        return times, frames, flags, np.asarray(self.count)[:n], np.asarray(self.row)[:n]

    cdef inline bint has_room(self) noexcept nogil:
        """Whether any row can be added: a node, a path, and the rows that are written where the gap ends."""
        return (
            self.tree.n_nodes < self.n_nodes and self.n_short < self.short_room
            and self.n + 2 * self.n_short + 1 < self.ts.shape[0]
        )

    cdef int reserve(self) except -1:
        cdef Py_ssize_t i
        self.tree.reserve(self.tree.n_nodes + 1)
        if self.tree.parents.shape[0] > self.n_nodes:
            self.gap_of = <uint32_t*>resized(self.gap_of, self.tree.parents.shape[0] * sizeof(uint32_t))
            self.place_of = <int32_t*>resized(self.place_of, self.tree.parents.shape[0] * sizeof(int32_t))
            for i in range(self.n_nodes, self.tree.parents.shape[0]):
                self.gap_of[i] = 0
            self.n_nodes = self.tree.parents.shape[0]
        if self.n_short >= self.short_room:
            self.short_room = max(1 << 10, 2 * self.short_room)
            self.short_calls = <ShortCalls*>resized(self.short_calls, self.short_room * sizeof(ShortCalls))
            self.writing_room = self.short_room
            self.writing = <Writing*>resized(self.writing, self.writing_room * sizeof(Writing))
        if self.n + 2 * self.n_short + 2 >= self.ts.shape[0]:
            size = max(1 << 12, self.n + 2 * self.n_short + 3)
            self.ts = grown(np.asarray(self.ts), size)
            self.frame = grown(np.asarray(self.frame), size)
            self.flags = grown(np.asarray(self.flags), size)
            self.count = grown(np.asarray(self.count), size)
            self.row = grown(np.asarray(self.row), size)
        return 0

    cdef inline void write(
        self, int64_t ts, int32_t frame, uint8_t flags, int64_t count, int64_t row
    ) noexcept nogil:
        self.ts[self.n] = ts
        self.frame[self.n] = frame
        self.flags[self.n] = flags
        self.count[self.n] = count
        self.row[self.n] = row
        self.n += 1

    cdef void add_long(self, int64_t ts, int32_t frame, uint8_t flags, int64_t count, int64_t row) noexcept nogil:
        self.write_gap()
        if flags & LEAVE:
            self.depth -= 1
            self.write(ts, frame, flags, 0, -2)
            return
        self.calls[self.depth].node = self.tree.intern_next(self.node_above(), frame)
        self.calls[self.depth].place = NO_NODE
        self.depth += 1
        self.write(ts, frame, flags, count, row)

    cdef inline int32_t node_above(self) noexcept nogil:
        return self.calls[self.depth - 1].node if self.depth else NO_NODE

    cdef void enter_short(self, int64_t ts, int32_t frame, uint8_t flags, int64_t count, int64_t row) noexcept nogil:
        cdef int32_t node = self.tree.intern_next(self.node_above(), frame)
        cdef int32_t above = self.calls[self.depth - 1].place if self.depth else NO_NODE
        cdef int32_t place
        if self.gap_of[node] == self.gap:
            place = self.place_of[node]
            self.short_calls[place].count = plus(self.short_calls[place].count, count)
            self.short_calls[place].row = -1
        else:
            place = self.n_short
            self.n_short += 1
            self.gap_of[node] = self.gap
            self.place_of[node] = place
            self.short_calls[place] = ShortCalls(ts, 0, count, row, frame, NO_NODE, NO_NODE, NO_NODE, flags, 0)
            self.append(above, place)
        self.calls[self.depth].ts = ts
        self.calls[self.depth].node = node
        self.calls[self.depth].place = place
        self.depth += 1

    cdef inline void append(self, int32_t above, int32_t place) noexcept nogil:
        """Adds a path below another one, or to those of the gap."""
        cdef int32_t last = self.short_calls[above].last_inside if above >= 0 else self.last_short
        if last >= 0:
            self.short_calls[last].next = place
        elif above >= 0:
            self.short_calls[above].first_inside = place
        else:
            self.first_short = place
        if above >= 0:
            self.short_calls[above].last_inside = place
        else:
            self.last_short = place

    cdef inline void leave_short(self, int64_t ts, uint8_t flags) noexcept nogil:
        cdef ShortCalls* of_path
        self.depth -= 1
        of_path = &self.short_calls[self.calls[self.depth].place]
        of_path.dur = plus(of_path.dur, minus(ts, self.calls[self.depth].ts))
        of_path.leave_flags = flags

    cdef void write_gap(self) noexcept nogil:
        """Writes the calls of a gap that ends, and begins the next."""
        cdef Py_ssize_t depth = 0
        cdef int32_t place = self.first_short
        cdef int64_t begin, now = 0
        cdef int64_t shift = 0
        cdef bint is_one = True
        cdef ShortCalls* of_path
        cdef Writing* above
        cdef bint has_now = False
        while place >= 0 or depth > 0:
            if place < 0:
                # All that is inside the innermost path is written.
                depth -= 1
                above = &self.writing[depth]
                of_path = &self.short_calls[above.place]
                self.write(
                    above.end, of_path.frame, of_path.leave_flags if of_path.row >= 0 else LEAVE, 0, -2
                )
                now, shift, is_one, has_now = above.end, above.shift, above.is_one, True
                place = of_path.next
                continue
            of_path = &self.short_calls[place]
            begin = of_path.first_ts + shift if is_one else now
            if has_now and begin < now:
                begin = now
            self.write(
                begin, of_path.frame, of_path.enter_flags if of_path.row >= 0 else 0, of_path.count,
                of_path.row if of_path.row >= 0 or is_one else -2
            )
            self.writing[depth] = Writing(place, begin + of_path.dur, shift, is_one)
            depth += 1
            # Inside one call times are those of the recording, moved as the call is; inside several, one after another.
            is_one = of_path.row >= 0
            shift = begin - of_path.first_ts
            now, has_now = begin, True
            place = of_path.first_inside
        self.n_short = 0
        self.first_short = self.last_short = NO_NODE
        self.gap += 1
