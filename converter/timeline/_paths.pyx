"""Follows calls as stacks, and packs the times of samples."""

cimport cython
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t
from libc.stdlib cimport free

from traceferry.native.call_flags cimport LEAVE
from traceferry.native.interning cimport intern_pair
from traceferry.native.memory cimport resized
from traceferry.native.nodes cimport NodeTable

cdef enum:
    # Of packed times: more ns than fit beside a bit.
    LONG = 0xFFFE


cdef enum Row:
    NO_ROW
    ENTER_ROW
    LEAVE_ROW


@cython.final
cdef class PathWalk:
    """Follows a balanced stream of calls, and makes samples of each path that lasts, -1 when no call is open, with the
    time from which it does.

    A state of no duration is left out, but for a call that begins and ends at once, which would not be seen at all. One
    that lasts for more than `longest` ns is repeated where it ends. The state after the last row of a piece is not a
    sample yet: the next piece shows whether it lasts.
    """

    cdef NodeTable tree
    cdef int64_t longest
    cdef int32_t* path
    cdef Py_ssize_t depth
    cdef Py_ssize_t deepest
    # What the row before was, and when.
    cdef Row last
    cdef int64_t last_ts
    cdef bint has_sample
    cdef int64_t sample_ts
    cdef int32_t sample

    def __cinit__(self, NodeTable tree not None, int64_t longest):
        self.tree = tree
        self.longest = longest

    def __dealloc__(self):
        free(self.path)

    def add(self, const int64_t[::1] ts, const int32_t[::1] frame, const uint8_t[::1] flags):
        """Returns the times and paths of the samples of a piece."""
        cdef Py_ssize_t n = ts.shape[0]
        cdef Py_ssize_t m = 0
        cdef Py_ssize_t i = 0
        cdef int64_t[::1] out_ts = np.empty(2 * n, np.int64)
        cdef int32_t[::1] out_path = np.empty(2 * n, np.int32)
        cdef int32_t top = self.path[self.depth - 1] if self.depth else -1
        cdef Py_ssize_t depth = self.depth
        cdef int64_t last_ts = self.last_ts
        cdef int32_t* path
        cdef int32_t[::1] prefixes, frames, slots
        cdef int32_t n_paths
        cdef bint leaves
        cdef bint is_bad = False
        if frame.shape[0] != n or flags.shape[0] != n:
            raise ValueError("PathWalk: columns of several lengths")
        if self.depth + n > self.deepest:
            self.deepest = max(self.depth + n, 2 * self.deepest)
            self.path = <int32_t*>resized(self.path, self.deepest * sizeof(int32_t))
        path = self.path
        while i < n and not is_bad:
            self.tree.reserve(self.tree.n_nodes + 1)
            prefixes, frames, slots, n_paths = self.tree.parents, self.tree.keys, self.tree.slots, self.tree.n_nodes
            with nogil:
                while i < n and n_paths < prefixes.shape[0]:
                    leaves = flags[i] & LEAVE
                    if self.last != NO_ROW and (ts[i] != last_ts or (leaves and self.last == ENTER_ROW)):
                        if self.repeats(last_ts):
                            out_ts[m] = last_ts
                            out_path[m] = self.sample
                            m += 1
                        out_ts[m] = last_ts
                        out_path[m] = top
                        m += 1
                        self.has_sample = True
                        self.sample_ts = last_ts
                        self.sample = top
                    last_ts = ts[i]
                    if leaves:
                        if depth == 0:
                            is_bad = True
                            break
                        self.last = LEAVE_ROW
                        depth -= 1
                        top = path[depth - 1] if depth > 0 else -1
                    else:
                        self.last = ENTER_ROW
                        top = intern_pair(prefixes, frames, slots, n_paths, top, frame[i])
                        n_paths += top == n_paths
                        path[depth] = top
                        depth += 1
                    i += 1
            self.tree.n_nodes = n_paths
        self.depth = depth
        self.last_ts = last_ts
        if is_bad:
            raise ValueError("the stream of calls is not balanced")
        return np.asarray(out_ts)[:m], np.asarray(out_path)[:m]

    def end(self):
        """Returns the samples where the last call ends."""
        if self.last == NO_ROW:
            return np.empty(0, np.int64), np.empty(0, np.int32)
        paths = np.array([self.sample, -1] if self.repeats(self.last_ts) else [-1], np.int32)
        return np.full(len(paths), self.last_ts), paths

    cdef inline bint repeats(self, int64_t ts) noexcept nogil:
        """Whether the last sample has lasted so long that it is repeated."""
        return self.has_sample and ts - self.sample_ts > self.longest


@cython.final
cdef class TimePacker:
    """Packs the times of samples: for each the time until the next in two bytes. n: how many samples there were;
    first_ts."""

    cdef readonly int64_t n
    cdef readonly int64_t first_ts
    cdef int64_t last_ts
    cdef bint is_open

    def add(self, const int64_t[::1] ts, const int32_t[::1] path):
        """Returns for each sample (ns << 1) + 1 while calls are open, else ns << 1; or LONG and 1 or 0, and the ns in
        the second array. What a sample takes is known, and packed, with the next."""
        cdef Py_ssize_t n = ts.shape[0]
        cdef uint16_t[::1] packed = np.empty(n, np.uint16)
        cdef int64_t[::1] long_ns = np.empty(n, np.int64)
        cdef Py_ssize_t m = 0
        cdef Py_ssize_t n_long = 0
        cdef Py_ssize_t first = 0
        cdef Py_ssize_t i
        cdef int64_t ns, last_ts
        cdef bint is_open
        if path.shape[0] != n:
            raise ValueError("TimePacker: columns of several lengths")
        if self.n == 0 and n > 0:
            self.first_ts = self.last_ts = ts[0]
            self.is_open = path[0] >= 0
            first = 1
        last_ts = self.last_ts
        is_open = self.is_open
        with nogil:
            for i in range(first, n):
                ns = ts[i] - last_ts
                if ns >= LONG >> 1:
                    long_ns[n_long] = ns
                    n_long += 1
                    packed[m] = LONG | is_open
                else:
                    packed[m] = ns << 1 | is_open
                m += 1
                last_ts = ts[i]
                is_open = path[i] >= 0
        self.last_ts = last_ts
        self.is_open = is_open
        self.n += n
        return np.asarray(packed)[:m].copy(), np.asarray(long_ns)[:n_long].copy()


def unpack_differences(const uint16_t[::1] packed, const int64_t[::1] long_ns):
    """Returns the ns from each sample to the next."""
    cdef Py_ssize_t n = packed.shape[0]
    cdef Py_ssize_t n_long = 0
    cdef Py_ssize_t i
    cdef int64_t[::1] out = np.empty(n, np.int64)
    check_long(packed, long_ns)
    with nogil:
        for i in range(n):
            if packed[i] >= LONG:
                out[i] = long_ns[n_long]
                n_long += 1
            else:
                out[i] = packed[i] >> 1
    return np.asarray(out)


def unpack_durations(const uint16_t[::1] packed, const int64_t[::1] long_ns):
    """Returns for how long a call is open from each sample on, 0 where none is."""
    cdef Py_ssize_t n = packed.shape[0]
    cdef Py_ssize_t n_long = 0
    cdef Py_ssize_t i
    cdef int64_t[::1] out = np.empty(n, np.int64)
    check_long(packed, long_ns)
    with nogil:
        for i in range(n):
            if packed[i] >= LONG:
                out[i] = long_ns[n_long] if packed[i] & 1 else 0
                n_long += 1
            else:
                out[i] = packed[i] >> 1 if packed[i] & 1 else 0
    return np.asarray(out)


cdef int check_long(const uint16_t[::1] packed, const int64_t[::1] long_ns) except -1:
    """Raises ValueError if there are not as many long times as packed ones say."""
    cdef Py_ssize_t n_long = 0
    cdef Py_ssize_t i
    for i in range(packed.shape[0]):
        n_long += packed[i] >= LONG
    if long_ns.shape[0] != n_long:
        raise ValueError("packed times: an array has the wrong length")
    return 0
