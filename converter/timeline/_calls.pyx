"""Goes through balanced streams of calls, piece by piece: sums, counts and parts of them."""

cimport cython
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free

from traceferry.native.call_flags cimport LEAVE, OPEN_AT_END, OPEN_AT_START
from traceferry.native.memory cimport resized
from traceferry.native.saturating cimport minus, plus


cdef struct OpenCall:
    int64_t ts
    int64_t in_callees  # what its caller had spent in callees before
    int64_t row
    int32_t frame
    uint8_t flags


cdef struct FuncSums:
    int64_t n_calls
    int64_t total_ns
    int64_t self_ns
    int64_t n_active  # how often it is open now


cdef FuncSums some_sums
FUNC_SUMS = np.asarray(<FuncSums[:1]>&some_sums).dtype


@cython.final
cdef class _Part:
    """Some rows of a stream, and which rows these were."""

    cdef int64_t[::1] ts
    cdef int32_t[::1] frame
    cdef uint8_t[::1] flags
    cdef int64_t[::1] row
    cdef Py_ssize_t n

    def __cinit__(self, Py_ssize_t capacity):
        self.ts = np.empty(capacity, np.int64)
        self.frame = np.empty(capacity, np.int32)
        self.flags = np.empty(capacity, np.uint8)
        self.row = np.empty(capacity, np.int64)

    cdef inline void write(self, int64_t ts, int32_t frame, uint8_t flags, int64_t row) noexcept nogil:
        self.ts[self.n] = ts
        self.frame[self.n] = frame
        self.flags[self.n] = flags
        self.row[self.n] = row
        self.n += 1

    cdef columns(self):
        n = self.n
        return np.asarray(self.ts)[:n], np.asarray(self.frame)[:n], np.asarray(self.flags)[:n], np.asarray(self.row)[:n]


@cython.final
cdef class OpenCalls:
    """The open calls of a balanced stream, whose pieces are gone through by one of the methods."""

    cdef OpenCall* calls
    cdef Py_ssize_t room
    cdef Py_ssize_t depth
    # How many of the open calls are written: those of the outermost.
    cdef Py_ssize_t n_written
    cdef int64_t n_read
    # ns that the innermost open call has spent in callees.
    cdef int64_t in_callees

    def __dealloc__(self):
        free(self.calls)

    def check_closed(self):
        """Raises ValueError if calls are open, as they may not be at a stream's end."""
        if self.depth:
            raise ValueError("the stream of calls is not balanced")

    def add_up(
        self, const int64_t[::1] ts, const int32_t[::1] frame, const uint8_t[::1] flags,
        const int32_t[::1] func_of_frame, FuncSums[::1] sums
    ):
        """Adds up a piece for each function: enters, time in outermost activations, time on top. Sums of times end at
        2^63 - 1."""
        cdef Py_ssize_t n = self.check(ts, frame, flags)
        cdef Py_ssize_t depth = self.depth
        cdef Py_ssize_t i = 0
        cdef int64_t in_callees = self.in_callees
        cdef int64_t dur
        cdef int32_t func
        cdef FuncSums* of_func
        cdef OpenCall* calls = self.calls
        cdef bint is_bad = False
        with nogil:
            while i < n:
                if not 0 <= frame[i] < func_of_frame.shape[0]:
                    is_bad = True
                    break
                func = func_of_frame[frame[i]]
                if not 0 <= func < sums.shape[0]:
                    is_bad = True
                    break
                of_func = &sums[func]
                if flags[i] & LEAVE:
                    if depth == 0:
                        is_bad = True
                        break
                    depth -= 1
                    dur = minus(ts[i], calls[depth].ts)
                    of_func.self_ns = plus(of_func.self_ns, minus(dur, in_callees))
                    in_callees = plus(calls[depth].in_callees, dur)
                    of_func.n_active -= 1
                    if of_func.n_active == 0:
                        of_func.total_ns = plus(of_func.total_ns, dur)
                    i += 1
                elif i + 1 < n and flags[i + 1] & LEAVE:
                    # Most calls call nothing: these need no place among the open ones.
                    dur = minus(ts[i + 1], ts[i])
                    of_func.n_calls += 1
                    of_func.self_ns = plus(of_func.self_ns, dur)
                    if of_func.n_active == 0:
                        of_func.total_ns = plus(of_func.total_ns, dur)
                    in_callees = plus(in_callees, dur)
                    i += 2
                else:
                    of_func.n_calls += 1
                    of_func.n_active += 1
                    calls[depth].ts = ts[i]
                    calls[depth].in_callees = in_callees
                    in_callees = 0
                    depth += 1
                    i += 1
        self.in_callees = in_callees
        self.go_on(depth, n, is_bad)

    def count_lasting(
        self, const int64_t[::1] ts, const uint8_t[::1] flags, const int64_t[::1] limits, int64_t[::1] counts
    ):
        """Increases counts[k] by the calls that last at least limits[k] ns, but not limits[k + 1]; limits rise."""
        cdef Py_ssize_t n = self.check(ts, None, flags)
        cdef Py_ssize_t depth = self.depth
        cdef Py_ssize_t n_limits = limits.shape[0]
        cdef Py_ssize_t i, k
        cdef int64_t dur
        cdef OpenCall* calls = self.calls
        cdef bint is_bad = False
        if counts.shape[0] < n_limits:
            raise ValueError("count_lasting: an array has the wrong length")
        with nogil:
            for i in range(n):
                if not flags[i] & LEAVE:
                    calls[depth].ts = ts[i]
                    depth += 1
                elif depth == 0:
                    is_bad = True
                    break
                else:
                    depth -= 1
                    dur = ts[i] - calls[depth].ts
                    k = 0
                    while k < n_limits and dur >= limits[k]:
                        k += 1
                    if k > 0:
                        counts[k - 1] += 1
        self.go_on(depth, n, is_bad)

    def within(
        self, const int64_t[::1] ts, const int32_t[::1] frame, const uint8_t[::1] flags, int64_t start_ts,
        int64_t stop_ts
    ):
        """Returns the columns of the calls of which some part lies in [start_ts, stop_ts), cut to it, and which row of
        the stream each was.

        An enter before the range is written when the range begins. A call that ends at start_ts is not in the range,
        unless one that it makes begins then.
        """
        cdef Py_ssize_t n = self.check(ts, frame, flags)
        cdef _Part out = _Part(self.depth + n)
        cdef Py_ssize_t depth = self.depth
        cdef Py_ssize_t n_written = self.n_written
        cdef Py_ssize_t i
        cdef int64_t t
        cdef uint8_t g
        cdef OpenCall* calls = self.calls
        cdef bint is_bad = False
        with nogil:
            for i in range(n):
                t = ts[i]
                g = flags[i]
                if t > start_ts or (t == start_ts and not g & LEAVE):
                    while n_written < depth and calls[n_written].ts < start_ts:
                        out.write(
                            start_ts, calls[n_written].frame, calls[n_written].flags | OPEN_AT_START,
                            calls[n_written].row
                        )
                        n_written += 1
                if not g & LEAVE:
                    calls[depth] = OpenCall(t, 0, self.n_read + i, frame[i], g)
                    depth += 1
                    if t < start_ts or t >= stop_ts:
                        continue
                    n_written = depth
                elif depth == 0:
                    is_bad = True
                    break
                else:
                    depth -= 1
                    if n_written <= depth:
                        continue
                    n_written = depth
                    if t > stop_ts:
                        t = stop_ts
                        g |= OPEN_AT_END
                out.write(t, frame[i], g, self.n_read + i)
        self.n_written = n_written
        self.go_on(depth, n, is_bad)
        return out.columns()

    def lasting(
        self, const int64_t[::1] ts, const int32_t[::1] frame, const uint8_t[::1] flags, int64_t min_ns
    ):
        """Returns the columns of the calls that last at least min_ns, and which row of the stream each was.

        An enter is written as soon as the call has lasted so long: its callers have been written then, and nothing that
        comes before it in the stream can follow.
        """
        cdef Py_ssize_t n = self.check(ts, frame, flags)
        cdef _Part out = _Part(self.depth + n)
        cdef Py_ssize_t depth = self.depth
        cdef Py_ssize_t n_written = self.n_written
        cdef Py_ssize_t i
        cdef OpenCall* calls = self.calls
        cdef bint is_bad = False
        with nogil:
            for i in range(n):
                if not flags[i] & LEAVE:
                    calls[depth] = OpenCall(ts[i], 0, self.n_read + i, frame[i], flags[i])
                    depth += 1
                elif depth == 0:
                    is_bad = True
                    break
                while n_written < depth and ts[i] - calls[n_written].ts >= min_ns:
                    out.write(
                        calls[n_written].ts, calls[n_written].frame, calls[n_written].flags, calls[n_written].row
                    )
                    n_written += 1
                if flags[i] & LEAVE:
                    depth -= 1
                    if n_written > depth:
                        n_written = depth
                        out.write(ts[i], frame[i], flags[i], self.n_read + i)
        self.n_written = n_written
        self.go_on(depth, n, is_bad)
        return out.columns()

    cdef Py_ssize_t check(self, const int64_t[::1] ts, const int32_t[::1] frame, const uint8_t[::1] flags) except -1:
        """Returns how many rows a piece has, and makes room for them."""
        cdef Py_ssize_t n = ts.shape[0]
        if flags.shape[0] != n or (frame is not None and frame.shape[0] != n):
            raise ValueError("OpenCalls: columns of several lengths")
        if self.depth + n > self.room:
            self.room = max(self.depth + n, 2 * self.room)
            self.calls = <OpenCall*>resized(self.calls, self.room * sizeof(OpenCall))
        return n

    cdef int go_on(self, Py_ssize_t depth, Py_ssize_t n, bint is_bad) except -1:
        """Ends a piece of n rows."""
        self.depth = depth
        self.n_read += n
        if is_bad:
            raise ValueError("the stream of calls is not balanced")
        return 0
