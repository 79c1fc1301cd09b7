"""Goes through the buffers of Mono log profiler recordings.

A reader goes on where it was: `read` returns when the buffers that it may read are done, and before when it has found
as much as is handed on at once, or needs names of methods.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

import numpy as np

from traceferry.importers.mono._cursor cimport (
    ALLOC, ENTER, EXC_LEAVE, LATEST_TS, LEAVE, Call, Cursor, is_call, next_short_call,
)
from traceferry.native cimport call_flags
from traceferry.native.arrays import doubled
from traceferry.native.nodes cimport NodeTable
from traceferry.timeline._running cimport RunningSums, entered, left
from traceferry.timeline.method_table cimport MethodTable

# Columns of what is counted in each buffer; further ones count events.
cdef enum:
    FIRST_TS
    LAST_TS
    EVENTS
    BAD
    BAD_AT

STATISTICS = "first_ts", "last_ts", "events", "bad", "bad_at"

cdef enum:
    FIRST_ITEMS = 1 << 12
    FIRST_RECORDS = 1 << 14
    FIRST_DEPTH = 1 << 8
    N_KNOWN = 256  # methods whose frames are kept at hand, by the low bits of their pointers

# Why a loop stopped: it is done, or what is full; NAMES: or new, and wants frames.
cdef enum Stop:
    DONE
    ROWS
    POOL
    NAMES
    NODES
    CALLS
    PAIRS


cdef struct Record:
    int64_t at
    uint64_t ts
    uint64_t first_value  # in the pool
    uint32_t buffer
    uint16_t declared
    uint8_t kind


cdef struct OpenCall:
    int32_t method
    int32_t frame
    int32_t stack  # -1: not made yet


cdef Record a_record
cdef OpenCall a_call
OPEN_CALL = np.asarray(<OpenCall[:1]>&a_call).dtype
RECORD = np.asarray(<Record[:1]>&a_record).dtype


# ---------------------------------------------------------------- events


cdef class EventReader:
    """Keeps events with their values, counts others, and adds up calls."""

    cdef Cursor cursor
    cdef RunningSums sums
    cdef const int32_t[::1] columns
    cdef uint64_t[:, ::1] stats
    cdef Record[::1] records
    cdef uint64_t[::1] pool
    cdef Py_ssize_t n_records
    cdef Py_ssize_t n_pool
    cdef Py_ssize_t most

    def __cinit__(
        self, Cursor cursor not None, const int32_t[::1] columns, uint64_t[:, ::1] stats, RunningSums sums not None,
        Py_ssize_t most=0
    ):
        """columns: for each first byte the column of stats that counts it; 0: it is kept; -1: neither. stats: a
        row for each buffer, in which `first_ts` begins with the largest number; or none. most: rows and values that are
        handed on at once, if one event does not have more; 0: all."""
        cdef int i
        if columns.shape[0] != 256 or stats.shape[0] not in (0, cursor.buffers.shape[0]) or stats.shape[1] <= BAD_AT:
            raise ValueError("EventReader: an array has the wrong length")
        for i in range(256):
            if columns[i] >= stats.shape[1]:
                raise ValueError("EventReader: a column that stats do not have")
        self.cursor, self.columns, self.stats, self.sums, self.most = cursor, columns, stats, sums, most
        self.records = np.empty(most or FIRST_RECORDS, RECORD)
        self.pool = np.empty(most or FIRST_ITEMS, np.uint64)

    def read(self, Py_ssize_t n_buffers):
        """Goes on up to a buffer. Returns whether it came there: else `take` what there is. An event that is damaged
        ends its buffer."""
        self.cursor.read_until(n_buffers)
        while (stop := self.go_on(self.cursor, self.sums)) != DONE:
            if self.most and self.n_records:
                return False
            if stop == POOL:
                self.pool = doubled(np.asarray(self.pool))
            else:
                self.records = doubled(np.asarray(self.records))
        return True

    def take(self):
        """Returns the records, which are good until `read` goes on, and the pool of their values."""
        records, pool = np.asarray(self.records)[:self.n_records], np.asarray(self.pool)[:self.n_pool]
        self.pool = np.empty_like(self.pool)
        self.n_records = self.n_pool = 0
        return records, pool

    cdef Stop go_on(self, Cursor c, RunningSums sums):
        cdef const int32_t[::1] columns = self.columns
        cdef uint64_t[:, ::1] stats = self.stats
        cdef Record[::1] records = self.records
        cdef bint has_stats = stats.shape[0] > 0
        cdef bint skips_calls = columns[ENTER] != 0 and columns[LEAVE] < 0 and columns[EXC_LEAVE] < 0
        cdef Py_ssize_t n = self.n_records
        cdef Py_ssize_t n_pool = self.n_pool
        cdef Py_ssize_t room = self.pool.shape[0]
        cdef Py_ssize_t row
        cdef int32_t column
        cdef int64_t n_calls, n_enter
        cdef Stop stop = DONE
        c.use(self.pool)
        with nogil:
            while c.begin():
                row = c.row - 1
                sums.go_to_buffer(row)
                c.n_room = room if columns[c.data[c.at]] == 0 else 0  # values of other events are only counted
                if not c.next(n_pool):
                    if has_stats:
                        stats[row, BAD] = c.damage
                        stats[row, BAD_AT] = c.event_at
                    c.skip_buffer()
                    continue
                c.lists.remember(c.data, 0, c.method)
                column = columns[c.kind]
                if column == 0:
                    if n == records.shape[0] or c.n_items > c.n_room:
                        stop = ROWS if n == records.shape[0] else POOL
                        c.rewind()
                        break
                    records[n] = Record(c.event_at, c.event_ts, n_pool, row, c.declared, c.kind)
                    n += 1
                    n_pool = c.n_items
                if has_stats:
                    if column > 0:
                        stats[row, column] += 1
                    stats[row, EVENTS] += 1
                    if c.timed:
                        stats[row, FIRST_TS] = min(stats[row, FIRST_TS], c.event_ts)
                        stats[row, LAST_TS] = max(stats[row, LAST_TS], c.event_ts)
                if skips_calls and is_call(c.kind):
                    n_calls, n_enter = short_calls(c, sums)
                    if has_stats and n_calls > 0:
                        stats[row, LAST_TS] = max(stats[row, LAST_TS], c.ts)
                        stats[row, EVENTS] += n_calls
                        if columns[ENTER] > 0:
                            stats[row, columns[ENTER]] += n_enter
            sums.go_to(-1)
        self.n_records, self.n_pool = n, n_pool
        return stop


cdef (int64_t, int64_t) short_calls(Cursor c, RunningSums sums) noexcept nogil:
    """Goes over the enters and leaves that follow one, as far as they are short, and adds up it and them. Returns how
    many follow, and how many of these enter."""
    cdef Call call = Call(c.at, c.ts, c.method, c.kind)
    cdef int64_t end = c.end
    cdef uint64_t mask = c.mask
    cdef int64_t n = 0, n_enter = 0
    cdef bint adds = sums.thread >= 0
    cdef Py_ssize_t top = sums.top
    cdef int64_t now = sums.now, in_callees = sums.in_callees
    while True:
        if adds:
            if call.ts > <uint64_t>LATEST_TS:
                sums.leave_out()
            elif call.kind == ENTER:
                top, now, in_callees = entered(sums, call.ts, call.method, top, now, in_callees)
            else:
                top, now, in_callees = left(sums, call.ts, call.method, top, now, in_callees)
            adds = sums.thread >= 0
        if not next_short_call(c.data, end, mask, &call):
            break
        n += 1
        n_enter += call.kind == ENTER
    sums.top, sums.now, sums.in_callees = top, now, in_callees
    c.at, c.ts, c.method = call.at, call.ts, call.method
    return n, n_enter


# ---------------------------------------------------------------- calls


cdef class CallReader:
    """Reads the calls of the buffers of one thread as recorded, for a `Balancer`.

    n_ignored: leaves of methods that are not known: nothing has entered them.
    """

    cdef Cursor cursor
    cdef MethodTable methods
    cdef int64_t shift_ns
    cdef uint64_t max_ts
    cdef readonly int64_t n_ignored

    def __cinit__(self, Cursor cursor not None, MethodTable methods not None, int64_t shift_ns, uint64_t max_ts):
        """shift_ns: what times are moved by; max_ts: what they are lowered to before. The buffers are whole. Methods
        that are entered and not known are named."""
        self.cursor, self.methods, self.shift_ns, self.max_ts = cursor, methods, shift_ns, max_ts

    def read(self, Py_ssize_t n_buffers, int64_t[::1] out_ts, int32_t[::1] key, int32_t[::1] frame, uint8_t[::1] flags):
        """Goes on up to a buffer, and writes calls from row 0 on: time, the method's number, the frame of enters,
        flags. Returns how many, and whether it came there."""
        if key.shape[0] != out_ts.shape[0] or frame.shape[0] != key.shape[0] or flags.shape[0] != key.shape[0]:
            raise ValueError("CallReader: an array has the wrong length")
        cdef Cursor c = self.cursor
        cdef MethodTable table = self.methods
        table.name()
        c.read_until(n_buffers)
        # The latest methods that have one definition, and so one frame; at first, pointers that belong elsewhere.
        cdef uint64_t[N_KNOWN] known
        cdef int32_t[N_KNOWN] known_number
        cdef int32_t[N_KNOWN] known_frame
        cdef Py_ssize_t h
        for h in range(N_KNOWN):
            known[h] = (h + 1) << 3
        cdef Stop stop = ROWS
        cdef Py_ssize_t n = 0
        cdef Py_ssize_t room = out_ts.shape[0]
        cdef Call before, call = Call(c.at, c.ts, c.method, 0)
        cdef int64_t end = c.end
        cdef uint64_t mask = c.mask, max_ts = self.max_ts
        cdef int64_t shift_ns = self.shift_ns
        cdef int64_t n_ignored = 0
        cdef int32_t number, nth_frame
        with nogil:
            while n < room and stop == ROWS:
                before = call
                if not next_short_call(c.data, end, mask, &call):
                    c.at, c.ts, c.method, call.kind = call.at, call.ts, call.method, 0
                    if call.at >= end:
                        stop = ROWS if c.begin() else DONE
                    elif c.next(0):
                        call.kind = c.kind
                    else:
                        c.skip_buffer()
                    end, call.at, call.ts, call.method = c.end, c.at, c.ts, c.method
                    if not is_call(call.kind):
                        continue
                h = (call.method >> 3) & (N_KNOWN - 1)
                number, nth_frame = known_number[h], known_frame[h]
                if known[h] != call.method:
                    number = table.add(call.method) if call.kind == ENTER else table.find(call.method)
                    if number < 0:
                        n_ignored += 1
                        continue
                    nth_frame = table.frame_at(number, call.ts)
                    if nth_frame < 0:
                        stop, call = NAMES, before
                        continue
                    if table.last[number] == number:
                        known[h], known_number[h], known_frame[h] = call.method, number, nth_frame
                out_ts[n] = <int64_t>min(call.ts, max_ts) + shift_ns
                key[n] = number
                frame[n] = nth_frame
                flags[n] = (
                    0 if call.kind == ENTER else
                    call_flags.LEAVE if call.kind == LEAVE else
                    call_flags.LEAVE | call_flags.UNWOUND
                )
                n += 1
        c.at, c.ts, c.method = call.at, call.ts, call.method
        self.n_ignored += n_ignored
        return n, stop == DONE


# ---------------------------------------------------------------- sites


cdef class SiteReader:
    """Finds where things happened in the buffers of one thread: allocations and other events, each with its stack, which
    is its own backtrace, or else the calls that are open then; -1 where neither is known.

    wants_nodes: the table of stacks is full.
    """

    cdef Cursor cursor
    cdef MethodTable methods
    cdef MethodTable types
    cdef const uint8_t[::1] is_sited
    cdef uint64_t[::1] items
    cdef Stop stop
    cdef readonly bint wants_nodes
    # The calls that are open, and how many are of each method.
    cdef OpenCall[::1] calls
    cdef int32_t[::1] n_open
    cdef Py_ssize_t depth
    # A block of allocations, and other events. From `first` on, they are of the latest `read`.
    cdef list columns
    cdef int64_t[::1] ts, size, other_at
    cdef uint64_t[::1] address
    cdef int32_t[::1] pair, other_stack
    cdef Py_ssize_t n, n_others, first, first_other

    def __cinit__(
        self, Cursor cursor not None, MethodTable methods not None, MethodTable types not None,
        const uint8_t[::1] is_sited, Py_ssize_t room
    ):
        """is_sited: for each first byte whether the stacks of such events are wanted, besides allocations. room: rows
        of a block of allocations and others together."""
        if is_sited.shape[0] != 256 or room < 1:
            raise ValueError("SiteReader: an array has the wrong length")
        self.cursor, self.methods, self.types, self.is_sited = cursor, methods, types, is_sited
        self.items = np.empty(FIRST_ITEMS, np.uint64)
        self.calls = np.empty(FIRST_DEPTH, OPEN_CALL)
        self.n_open = np.zeros(0, np.int32)
        self.other_at = np.empty(room, np.int64)
        self.stop = ROWS

    def read(self, Py_ssize_t n_buffers, NodeTable stacks not None, NodeTable pairs not None):
        """Goes on up to a buffer, or until a block or table is full, or methods want names. Returns whether it came
        there.

        stacks: pairs of a stack and a frame; pairs: of a stack and the number of a type. Types and methods that are not
        known get numbers and names.
        """
        cdef Py_ssize_t room = self.other_at.shape[0]
        if self.stop in (ROWS, DONE):
            self.columns = [np.empty(room, dtype) for dtype in ("i8", "u8", "i8", "i4", "i8", "i4")]
            self.ts, self.address, self.size, self.pair, self.other_at, self.other_stack = self.columns
            self.n = self.n_others = 0
        self.first, self.first_other = self.n, self.n_others
        n_open = np.zeros(self.methods.last.shape[0], np.int32)
        n_open[:self.n_open.shape[0]] = self.n_open
        self.n_open = n_open
        self.cursor.read_until(n_buffers)
        self.cursor.use(self.items)
        self.stop = self.go_on(self.cursor, self.methods, self.types, stacks, pairs)
        if self.stop == NAMES:
            self.methods.name()
        elif self.stop == CALLS:
            self.calls = doubled(np.asarray(self.calls))
        elif self.stop == POOL:
            self.items = doubled(np.asarray(self.items))
        self.wants_nodes = self.stop == NODES
        self.types.name()
        return self.stop == DONE

    def found(self):
        """Returns the columns of the block's allocations: time, address, size, pair; those of the new other events:
        their offsets and stacks; from which allocation on they are new; whether the block is complete."""
        allocations = [column[:self.n] for column in self.columns[:4]]
        others = [column[self.first_other:self.n_others] for column in self.columns[4:]]
        return (*allocations, *others, self.first, self.n > 0 and self.stop in (ROWS, DONE))

    cdef Stop go_on(self, Cursor c, MethodTable methods, MethodTable types, NodeTable stacks, NodeTable pairs):
        cdef const uint8_t[::1] is_sited = self.is_sited
        cdef uint64_t[::1] items = self.items
        cdef Stop stop = DONE
        cdef int32_t stack = -1
        cdef int32_t pair, number
        cdef bint is_allocation
        with nogil:
            while stop == DONE and c.begin():
                if not c.next(0):
                    c.skip_buffer()
                    continue
                if c.kind == ENTER:
                    stop = self.enter(methods.add(c.method), c, methods)
                elif c.kind == LEAVE or c.kind == EXC_LEAVE:
                    self.leave(methods.find(c.method))
                else:
                    is_allocation = c.kind & 0xEF == ALLOC
                    if not is_allocation and not is_sited[c.kind]:
                        continue
                    pair = -1
                    if self.n + self.n_others == self.other_at.shape[0]:
                        stop = ROWS
                    elif c.n_items > c.n_room:
                        stop = POOL
                    elif c.known >= 0:
                        stack = c.known
                    elif c.n_items > c.n_single:
                        stop = self.backtrace(c, methods, stacks, &stack)
                    else:
                        stop = self.open_calls(stacks, &stack)
                    if stop == DONE and is_allocation:
                        number = types.add(items[0])
                        pair = pairs.intern(stack, types.definition_at(number, c.event_ts)) if number >= 0 else -1
                        if pair < 0:
                            stop = PAIRS
                    if stop == DONE and is_allocation:
                        self.ts[self.n] = min(c.event_ts, <uint64_t>LATEST_TS)
                        self.address[self.n] = items[1]
                        self.size[self.n] = items[2]
                        self.pair[self.n] = pair
                        self.n += 1
                    elif stop == DONE:
                        self.other_at[self.n_others] = c.event_at
                        self.other_stack[self.n_others] = stack
                        self.n_others += 1
                if stop != DONE:
                    c.rewind()
        return stop

    cdef inline Stop enter(self, int32_t number, Cursor c, MethodTable methods) noexcept nogil:
        cdef int32_t frame = methods.frame_at(number, c.ts)
        if frame < 0:
            return NAMES
        if self.depth == self.calls.shape[0]:
            return CALLS
        self.calls[self.depth] = OpenCall(number, frame, -1)
        self.n_open[number] += 1
        self.depth += 1
        return DONE

    cdef inline void leave(self, int32_t number) noexcept nogil:
        """Leaves the innermost call of a method, and those above it, if one is open."""
        cdef int32_t left = -1
        if number >= 0 and self.n_open[number] > 0:
            while self.depth > 0 and left != number:
                self.depth -= 1
                left = self.calls[self.depth].method
                self.n_open[left] -= 1

    cdef inline Stop backtrace(self, Cursor c, MethodTable methods, NodeTable stacks, int32_t* stack) noexcept nogil:
        """Finds the stack of an event's own list of methods."""
        cdef Py_ssize_t i
        cdef int32_t number, frame
        cdef bint is_lasting = True
        stack[0] = -1
        for i in range(c.n_single, c.n_items):
            number = methods.add(c.items[i])
            frame = methods.frame_at(number, c.ts)
            if frame < 0:
                return NAMES
            stack[0] = stacks.intern(stack[0], frame)
            if stack[0] < 0:
                return NODES
            is_lasting = is_lasting and methods.last[number] == number
        if is_lasting:
            c.lists.remember(c.data, stack[0], c.method)
        return DONE

    cdef inline Stop open_calls(self, NodeTable stacks, int32_t* stack) noexcept nogil:
        """Finds the stack of the calls that are open. Of those that were not wanted before, it is made."""
        cdef Py_ssize_t q = self.depth
        while q > 0 and self.calls[q - 1].stack < 0:
            q -= 1
        stack[0] = self.calls[q - 1].stack if q > 0 else -1
        while q < self.depth:
            stack[0] = stacks.intern(stack[0], self.calls[q].frame)
            if stack[0] < 0:
                return NODES
            self.calls[q].stack = stack[0]
            q += 1
        return DONE
