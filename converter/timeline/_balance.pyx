"""Balances the recorded enters and leaves of one thread, piece by piece.

An enter that was lost is known only when its leave comes, and where it belongs only later. So a pass over a thread can
note the leaves without an enter, and a second pass takes the enters that are missing: see `Balancer.note_orphan`.
"""

cimport cython
import numpy as np

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from traceferry.native.call_flags cimport LEAVE, OPEN_AT_END, UNWOUND
from traceferry.native.memory cimport resized

from traceferry.model import CALLS, Table

cdef enum:
    FIRST_DEPTH = 256
    # Searching the whole stack in vain costs its depth each time: beyond this many steps, calls are counted by key.
    PATIENCE = 65536


cdef struct OpenCall:
    int32_t key
    int32_t frame
    int64_t row  # of the stream
    # The leaves without an enter that came while it was the innermost call, a list; -1: none.
    int64_t first_orphan
    int64_t last_orphan


cdef struct Orphan:
    int64_t key
    int64_t frame
    int64_t row  # before which the missing enter belongs
    int64_t inside  # 0: nothing outlives it
    int64_t following


cdef struct MissingEnter:
    int64_t row
    int64_t key
    int64_t frame
    int64_t flags


_NO_ROWS = [np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0, np.int64)]

cdef Orphan an_orphan
cdef MissingEnter a_missing_enter
ORPHAN = np.asarray(<Orphan[:1]>&an_orphan).dtype
MISSING_ENTER = np.asarray(<MissingEnter[:1]>&a_missing_enter).dtype


@cython.final
cdef class _Piece:
    """Rows of a stream, and the calls that they become. i: the next row; n: how many calls there are."""

    cdef const int64_t[::1] ts
    cdef const int32_t[::1] key
    cdef const int32_t[::1] frame
    cdef const uint8_t[::1] flags
    cdef const int64_t[::1] marks
    cdef int64_t[::1] out_ts
    cdef int32_t[::1] out_frame
    cdef uint8_t[::1] out_flags
    cdef int64_t[::1] out_marks
    cdef Py_ssize_t i
    cdef Py_ssize_t n
    cdef Py_ssize_t n_marked

    def __cinit__(self, raw, Py_ssize_t capacity):
        cdef Py_ssize_t n = len(raw[0])
        self.ts, self.key, self.frame, self.flags, self.marks = raw
        if self.key.shape[0] != n or self.frame.shape[0] != n or self.flags.shape[0] != n:
            raise ValueError("Balancer: columns of several lengths")
        self.out_ts = np.empty(capacity, np.int64)
        self.out_frame = np.empty(capacity, np.int32)
        self.out_flags = np.empty(capacity, np.uint8)
        self.out_marks = np.empty(self.marks.shape[0], np.int64)

    cdef inline void write(self, int64_t ts, int32_t frame, int flags) noexcept nogil:
        self.out_ts[self.n] = ts
        self.out_frame[self.n] = frame
        self.out_flags[self.n] = flags
        self.n += 1

    cdef inline Py_ssize_t next_mark(self) noexcept nogil:
        """Returns the next row that is marked; the number of rows if none is."""
        return self.marks[self.n_marked] if self.n_marked < self.marks.shape[0] else self.ts.shape[0]

    cdef inline void mark(self, Py_ssize_t row, int64_t out_row) noexcept nogil:
        """Notes what the marks of a row become."""
        while self.n_marked < self.marks.shape[0] and self.marks[self.n_marked] == row:
            self.out_marks[self.n_marked] = out_row
            self.n_marked += 1

    cdef calls(self):
        ts, frame, flags = np.asarray(self.out_ts), np.asarray(self.out_frame), np.asarray(self.out_flags)
        return Table(CALLS, {"ts": ts[:self.n], "frame": frame[:self.n], "flags": flags[:self.n]})


@cython.final
cdef class Balancer:
    """Balances the recorded calls of one thread in one pass, in memory that does not grow with their number.

    A leave closes the innermost open call of its key, with the frame of its enter, and the calls above that as UNWOUND.
    Time stamps that fall are raised. A leave without an open call of its key is left out, or noted for a second pass.

    Attributes: depth, how many calls are open; n_written, rows so far; n_unwound; n_backwards, rows whose time falls,
    and max_backwards, by how many ns at most; n_orphans, leaves without an enter.
    """

    # open_calls[0] is the thread itself; the innermost call is open_calls[depth].
    cdef OpenCall* open_calls
    cdef Py_ssize_t deepest
    cdef Orphan* noted
    cdef Py_ssize_t most_noted
    cdef MissingEnter[::1] missing
    # By key, how many calls are open, once they are counted.
    cdef int32_t* n_open
    cdef Py_ssize_t n_keys
    cdef list mark_lists
    cdef bint has_start
    cdef bint notes_orphans
    cdef bint counting
    cdef Py_ssize_t n_inserted
    cdef int64_t now
    cdef int64_t n_read
    cdef int64_t last_row
    cdef int64_t searched
    cdef readonly Py_ssize_t depth
    cdef readonly int64_t n_written
    cdef readonly int64_t n_unwound
    cdef readonly int64_t n_backwards
    cdef readonly int64_t max_backwards
    cdef readonly Py_ssize_t n_orphans

    def __cinit__(self, start_ts=None, missing=None, bint notes_orphans=False):
        """start_ts: the earliest time of any call; None: the first time stamp. missing: enters to insert, as
        `missing_enters` makes them, by row. notes_orphans: whether leaves without an enter are noted, for a second pass
        that is given their enters; else they are left out and counted."""
        self.missing = np.empty(0, MISSING_ENTER) if missing is None else missing
        if notes_orphans and self.missing.shape[0]:
            raise ValueError("Balancer: a pass notes orphans, or is given their enters")
        if self.missing.shape[0]:
            if missing["key"].min() < 0 or missing["key"].max() > INT32_MAX:
                raise ValueError("Balancer: a key that is negative, or too large")
        self.reserve(FIRST_DEPTH, missing["key"].max() + 1 if self.missing.shape[0] else 0)
        self.open_calls[0] = OpenCall(-1, -1, -1, -1, -1)
        self.mark_lists = [np.empty(0, np.int64)]
        self.has_start = start_ts is not None
        self.now = start_ts or 0
        self.last_row = -1
        self.notes_orphans = notes_orphans

    def __dealloc__(self):
        free(self.open_calls)
        free(self.noted)
        free(self.n_open)

    @property
    def marks(self):
        """int64: the rows of all marks so far."""
        return np.concatenate(self.mark_lists)

    @property
    def orphans(self):
        """After `close`, the leaves without an enter, if they are noted."""
        cdef Orphan[::1] orphans = np.empty(self.n_orphans if self.notes_orphans else 0, ORPHAN)
        cdef Py_ssize_t i
        for i in range(orphans.shape[0]):
            orphans[i] = self.noted[i]
        return np.asarray(orphans)

    def add(self, raw, Py_ssize_t n_keys):
        """Returns the CALLS that the rows of a `Raw` become. n_keys: one more than the largest key so far."""
        cdef Py_ssize_t n = len(raw[0])
        cdef _Piece p = _Piece(raw, 2 * (n + self.missing.shape[0] - self.n_inserted) + self.depth)
        if n and not self.has_start:
            self.now = p.ts[0]
            self.has_start = True
        self.reserve(n, n_keys)
        with nogil:
            if not self.has_keys(p.key):
                raise ValueError("Balancer: a key that is negative or not below n_keys")
            p.mark(-1, self.last_row)
            while p.i < n:
                self.add_regular(p)
                if p.i < n:
                    self.add_irregular(p)
        self.n_read += n
        self.n_written += p.n
        if p.marks.shape[0]:
            self.mark_lists.append(np.asarray(p.out_marks))
        return p.calls()

    def close(self, int64_t end_ts):
        """Returns CALLS that leave at end_ts what is open, the innermost first. `depth` stays."""
        cdef _Piece p = _Piece(_NO_ROWS, self.depth)
        cdef Py_ssize_t nth
        end_ts = max(end_ts, self.now)
        for nth in range(self.depth, 0, -1):
            self.hand_down_orphans(nth)
            p.write(end_ts, self.open_calls[nth].frame, LEAVE | OPEN_AT_END)
        self.n_written += p.n
        return p.calls()

    cdef int reserve(self, Py_ssize_t n, Py_ssize_t n_keys) except -1:
        """Makes room for n more rows, and for keys."""
        cdef Py_ssize_t deepest = self.depth + n + self.missing.shape[0] - self.n_inserted + 2
        if deepest > self.deepest:
            self.deepest = max(deepest, 2 * self.deepest)
            self.open_calls = <OpenCall*>resized(self.open_calls, self.deepest * sizeof(OpenCall))
        if n_keys > self.n_keys:
            self.n_open = <int32_t*>resized(self.n_open, n_keys * sizeof(int32_t))
            memset(self.n_open + self.n_keys, 0, (n_keys - self.n_keys) * sizeof(int32_t))
            self.n_keys = n_keys
        if self.notes_orphans and self.n_orphans + n > self.most_noted:
            self.most_noted = max(self.n_orphans + n, 2 * self.most_noted)
            self.noted = <Orphan*>resized(self.noted, self.most_noted * sizeof(Orphan))
        return 0

    cdef bint has_keys(self, const int32_t[::1] key) noexcept nogil:
        """Whether the calls of all these keys can be counted."""
        # The highest bit of a key, or of last - key, says that it is not there: without a branch.
        cdef uint32_t last = min(self.n_keys, INT32_MAX) - 1
        cdef uint32_t outside = 0
        cdef Py_ssize_t i
        for i in range(key.shape[0]):
            outside |= <uint32_t>key[i] | (last - <uint32_t>key[i])
        return outside >> 31 == 0

    def add_in_place(
        self, const int64_t[::1] ts, const int32_t[::1] key, int32_t[::1] frame, const uint8_t[::1] flags,
        Py_ssize_t n_keys
    ):
        """Adds rows up to the first that is not regular, and returns how many rows that are: `frame` becomes that of
        the calls. For a balancer that has a start and notes and misses nothing.

        Regular rows enter, or leave the innermost open call, at times that do not fall: only frames of leaves are
        missing.
        """
        cdef Py_ssize_t n = ts.shape[0]
        cdef Py_ssize_t depth = self.depth
        cdef Py_ssize_t i = 0
        cdef Py_ssize_t q
        cdef int64_t now = self.now
        cdef int leaves
        self.reserve(n, n_keys)
        cdef OpenCall* calls = self.open_calls
        if key.shape[0] != n or frame.shape[0] != n or flags.shape[0] != n:
            raise ValueError("Balancer: columns of several lengths")
        if self.notes_orphans or self.missing.shape[0] or not self.has_start:
            raise ValueError("Balancer: calls are balanced in place where there is a start, and nothing is missing")
        if not self.has_keys(key):
            raise ValueError("Balancer: a key that is negative or not below n_keys")
        with nogil:
            while i < n and not self.counting:
                # LEAVE is 1. The same for enters and leaves: a branch between them would often be guessed wrong.
                leaves = flags[i] & LEAVE
                q = depth + 1 - leaves
                calls[depth + 1].key = key[i]
                calls[depth + 1].frame = frame[i]
                if calls[q].key != key[i] or ts[i] < now:
                    break
                now = ts[i]
                frame[i] = calls[q].frame
                depth = q - leaves
                i += 1
        self.depth = depth
        self.now = now
        self.n_read += i
        self.n_written += i
        self.last_row = self.n_written - 1 if i else self.last_row
        return i

    cdef void add_regular(self, _Piece p) noexcept nogil:
        """Adds rows as long as they enter, or leave the innermost open call, at times that do not fall, and nothing
        else is to be done. There is no branch between enters and leaves."""
        cdef OpenCall* calls = self.open_calls
        # Pointers, as the counters of memoryviews would be changed for each irregular row.
        cdef const int64_t* ts = &p.ts[0]
        cdef const int32_t* key = &p.key[0]
        cdef const int32_t* frame = &p.frame[0]
        cdef const uint8_t* flags = &p.flags[0]
        cdef int64_t* out_ts = &p.out_ts[0]
        cdef int32_t* out_frame = &p.out_frame[0]
        cdef uint8_t* out_flags = &p.out_flags[0]
        cdef bint noting = self.notes_orphans
        cdef bint counting = self.counting
        cdef Py_ssize_t depth = self.depth
        cdef Py_ssize_t i = p.i
        cdef Py_ssize_t m = p.n
        cdef Py_ssize_t stop = p.next_mark()
        cdef Py_ssize_t q
        cdef int64_t now = self.now
        cdef int leaves
        if self.n_inserted < self.missing.shape[0]:
            stop = min(stop, self.missing[self.n_inserted].row - self.n_read)
        while i < stop and ts[i] >= now:
            leaves = flags[i] & LEAVE
            q = depth + 1 - leaves
            calls[depth + 1].key = key[i]
            calls[depth + 1].frame = frame[i]
            if calls[q].key != key[i]:
                break
            if noting or counting:
                calls[depth + 1].row = self.n_read + i
                calls[depth + 1].first_orphan = -1
                if noting and calls[q].first_orphan >= 0:
                    break
                self.n_open[key[i]] += counting * (1 - 2 * leaves)
            now = ts[i]
            out_ts[m] = now
            out_frame[m] = calls[q].frame
            out_flags[m] = flags[i]
            depth = q - leaves
            m += 1
            i += 1
        if m > p.n:
            self.last_row = self.n_written + m - 1
        self.depth = depth
        self.now = now
        p.i = i
        p.n = m

    cdef void add_irregular(self, _Piece p) noexcept nogil:
        """Adds one row, whatever it is."""
        cdef Py_ssize_t i = p.i
        cdef int64_t row = self.n_read + i
        cdef bint leaves = p.flags[i] & LEAVE
        cdef Py_ssize_t nth
        p.i += 1
        while self.n_inserted < self.missing.shape[0] and self.missing[self.n_inserted].row == row:
            self.insert(p, self.now if leaves else max(self.now, p.ts[i]))
        if leaves:
            nth = self.open_call(p.key[i])
            if nth == 0:
                self.add_orphan(row, p.key[i], p.frame[i])
                if not self.notes_orphans:
                    return
        else:
            nth = self.push(p.key[i], p.frame[i], row)
        if p.ts[i] < self.now:
            self.n_backwards += 1
            self.max_backwards = max(self.max_backwards, self.now - p.ts[i])
        else:
            self.now = p.ts[i]
        if nth == 0:
            return
        if leaves:
            while self.depth > nth:
                self.hand_down_orphans(self.depth)
                p.write(self.now, self.pop(), LEAVE | UNWOUND)
                self.n_unwound += 1
            self.outlive_orphans(nth)
            self.pop()
        self.last_row = self.n_written + p.n
        p.mark(i, self.last_row)
        p.write(self.now, self.open_calls[nth].frame, p.flags[i])

    cdef void insert(self, _Piece p, int64_t ts) noexcept nogil:
        """Enters the next call whose enter was lost: it begins with the call that it encloses, or ends as soon as it
        began."""
        cdef MissingEnter* lost = &self.missing[self.n_inserted]
        self.now = ts
        self.push(lost.key, lost.frame, lost.row)
        p.write(ts, lost.frame, lost.flags)
        self.n_inserted += 1

    cdef Py_ssize_t push(self, int32_t key, int32_t frame, int64_t row) noexcept nogil:
        """Opens a call; returns its place in open_calls."""
        self.depth += 1
        self.open_calls[self.depth] = OpenCall(key, frame, row, -1, -1)
        self.n_open[key] += self.counting
        return self.depth

    cdef int32_t pop(self) noexcept nogil:
        """Closes the innermost open call; returns its frame."""
        cdef OpenCall* call = &self.open_calls[self.depth]
        self.n_open[call.key] -= self.counting
        self.depth -= 1
        return call.frame

    cdef Py_ssize_t open_call(self, int32_t key) noexcept nogil:
        """Returns where the innermost open call of a key is in open_calls; 0: there is none."""
        cdef Py_ssize_t nth = self.depth
        if self.open_calls[nth].key == key:
            return nth
        if self.counting and self.n_open[key] == 0:
            return 0
        while self.open_calls[nth].key != key and nth > 0:
            nth -= 1
        return nth

    cdef void add_orphan(self, int64_t row, int32_t key, int32_t frame) noexcept nogil:
        """Counts a leave without an enter, and notes it if it is to be."""
        cdef Py_ssize_t nth
        self.searched += self.depth
        if self.searched > PATIENCE and not self.counting:
            self.counting = True
            for nth in range(1, self.depth + 1):
                self.n_open[self.open_calls[nth].key] += 1
        if self.notes_orphans:
            self.note_orphan(Orphan(key, frame, row, 0, -1))
        self.n_orphans += 1

    cdef void note_orphan(self, Orphan orphan) noexcept nogil:
        """Adds a leave without an enter to the list of the innermost open call.

        A call that is left later by a record of its own outlives the orphan, so the orphan lies inside it; calls above
        that are unwound by the orphan's leave. The missing enter belongs before the orphan's own row, or before the
        enter of the outermost call that it unwinds. Where nothing outlives the orphan it was open since the start.
        """
        cdef OpenCall* call = &self.open_calls[self.depth]
        self.noted[self.n_orphans] = orphan
        if call.first_orphan < 0:
            call.first_orphan = self.n_orphans
        else:
            self.noted[call.last_orphan].following = self.n_orphans
        call.last_orphan = self.n_orphans

    cdef void outlive_orphans(self, Py_ssize_t nth) noexcept nogil:
        """Notes that the nth open call ends by a record of its own."""
        cdef int64_t orphan = self.open_calls[nth].first_orphan if self.notes_orphans else -1
        while orphan >= 0:
            self.noted[orphan].inside = 1
            orphan = self.noted[orphan].following

    cdef void hand_down_orphans(self, Py_ssize_t nth) noexcept nogil:
        """Notes that the nth open call never ends by itself: its first orphan unwinds it, and all of its orphans are
        its caller's."""
        cdef OpenCall* call = &self.open_calls[nth]
        cdef OpenCall* caller = &self.open_calls[nth - 1]
        if not self.notes_orphans or call.first_orphan < 0:
            return
        self.noted[call.first_orphan].row = call.row
        if caller.first_orphan < 0:
            caller.first_orphan = call.first_orphan
        else:
            self.noted[caller.last_orphan].following = call.first_orphan
        caller.last_orphan = call.last_orphan
