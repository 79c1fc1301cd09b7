"""Decodes the records of FDR buffers into columns."""

cimport cython
import numpy as np

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from traceferry.native.bytes cimport u16, u32, u64

# Kinds of metadata records.
cdef enum:
    NEW_BUFFER = 0
    END_OF_BUFFER_RECORD = 1
    NEW_CPU_ID = 2
    TSC_WRAP = 3
    WALLTIME = 4
    CUSTOM_EVENT = 5
    CALL_ARGUMENT = 6
    BUFFER_EXTENTS = 7
    TYPED_EVENT = 8
    PID = 9

# Why decoding stopped. After those from ROWS_FULL on it goes on.
cdef enum Status:
    WHOLE
    CUT
    UNKNOWN_KIND
    BAD_SIZE
    END_OF_BUFFER
    ROWS_FULL
    AUX_FULL
    NEW_ID
    METADATA

STATUS_NAMES = ["whole", "cut", "unknown_kind", "bad_size", "end_of_buffer", "rows_full", "aux_full"]

# A key of no id: ids have 28 bits.
cdef uint32_t FREE = 0xFFFFFFFF
cdef uint32_t GOLDEN = 2654435769
# No counter gets to bit 62. Without the bits above, ticks fit int64 and do not wrap, whatever the bytes are.
cdef uint64_t TICK_BITS = 0x3FFFFFFFFFFFFFFF
# So near is an event's own time to those around it, if its writer stores it.
cdef uint64_t NEAR = 0x10000000000


@cython.final
cdef class Ids:
    """Numbers the function ids of a log. After the scan, `assign` says what decoding writes for each id and each kind of
    function record."""

    # Open addressing, a power of two long.
    cdef uint32_t[::1] keys
    cdef int32_t[::1] values
    cdef uint8_t[::1] kind_values
    cdef int shift
    cdef int32_t n

    def __cinit__(self):
        self.kind_values = np.arange(4, dtype=np.uint8)
        self.make_slots(10)

    @property
    def kinds(self):
        """uint8: what stands in the columns for each kind of function record."""
        return np.asarray(self.kind_values)

    def in_order(self):
        """Returns the ids in the order of their first appearance."""
        keys, values = np.asarray(self.keys), np.asarray(self.values)
        used = np.flatnonzero(keys != FREE)
        return keys[used[np.argsort(values[used])]].tolist()

    def assign(self, value_of_nth, kind_values):
        """Says what the columns hold. value_of_nth: int32, for each id in the order of `in_order`; kind_values: uint8,
        for each kind."""
        if len(value_of_nth) < self.n or len(kind_values) < 4:
            raise ValueError("assign: an array has the wrong length")
        used = np.asarray(self.keys) != FREE
        values = np.asarray(self.values)
        values[used] = value_of_nth[values[used]]
        self.kind_values = kind_values

    cdef Py_ssize_t slot_of(self, uint32_t key) noexcept nogil:
        """Returns where a key is, or belongs."""
        cdef Py_ssize_t mask = self.keys.shape[0] - 1
        cdef Py_ssize_t h = (key * GOLDEN) >> self.shift
        while self.keys[h] != key and self.keys[h] != FREE:
            h = (h + 1) & mask
        return h

    cdef add(self, uint32_t key):
        """Gives an id that is new the next number."""
        cdef uint32_t[::1] keys = self.keys
        cdef int32_t[::1] values = self.values
        cdef Py_ssize_t i
        if 2 * self.n >= keys.shape[0]:
            self.make_slots(33 - self.shift)
            for i in range(keys.shape[0]):
                if keys[i] != FREE:
                    self.enter(keys[i], values[i])
        self.enter(key, self.n)
        self.n += 1

    cdef void enter(self, uint32_t key, int32_t value) noexcept nogil:
        cdef Py_ssize_t h = self.slot_of(key)
        self.keys[h] = key
        self.values[h] = value

    cdef make_slots(self, int bits):
        self.shift = 32 - bits
        self.keys = np.full(1 << bits, FREE, np.uint32)
        self.values = np.zeros(1 << bits, np.int32)


@cython.final
cdef class Decoder:
    """Decodes the records of buffers into columns.

    Attributes: at, the offset of the next record; tick, the time there; min_tick and max_tick, the bounds of the
    buffer's times; n_rows and n_aux, how many rows the columns have.
    """

    cdef const uint8_t[::1] data
    cdef bint big
    cdef int version
    cdef Ids ids
    cdef Py_ssize_t end
    cdef Status stopped
    cdef uint32_t new_id
    # Between two absolute time stamps ticks do not fall: the first and the last row of a run are its bounds.
    cdef Py_ssize_t run
    cdef int64_t[::1] ticks
    cdef int32_t[::1] value
    cdef uint8_t[::1] kind
    cdef uint8_t[::1] aux_kind
    cdef int64_t[::1] aux_row
    cdef int64_t[::1] aux_ticks
    cdef uint64_t[::1] aux_value
    cdef readonly Py_ssize_t at
    cdef readonly uint64_t tick
    cdef readonly uint64_t min_tick
    cdef readonly uint64_t max_tick
    cdef public Py_ssize_t n_rows
    cdef public Py_ssize_t n_aux

    def __cinit__(self, const uint8_t[::1] data, bint big, int version, Ids ids not None):
        self.data = data
        self.big = big
        self.version = version
        self.ids = ids

    @property
    def status(self):
        """How the decoding of the buffer ended: whole; cut, the rest is shorter than its record (an event whose payload
        is cut is still an aux row); unknown_kind; bad_size; end_of_buffer; rows_full or aux_full, it has not ended."""
        return STATUS_NAMES[self.stopped]

    def begin(self, Py_ssize_t begin, Py_ssize_t end, uint64_t tick):
        """Goes to the records of a buffer. tick: what its first delta adds to."""
        if not 0 <= begin <= self.data.shape[0] or end > self.data.shape[0]:
            raise ValueError("Decoder: a buffer outside the data")
        self.at = begin
        self.end = end
        self.tick = tick
        self.min_tick = INT64_MAX
        self.max_tick = 0

    def decode(self, columns):
        """Appends to the columns, and returns whether they are full: then it wants others, or n_rows and n_aux set back.

        A function record is one row: ticks; value, what `Ids` hold for its id; kind, what they hold for its kind. A
        metadata record that is not about time is one aux row: kind; row, the number of function rows before it; ticks;
        value: the argument, the CPU, the tid, the pid, or the offset of an event or wall time.
        """
        self.ticks, self.value, self.kind, self.aux_kind, self.aux_row, self.aux_ticks, self.aux_value = columns
        if (
            self.ticks.shape[0] == 0
            or not 0 <= self.n_rows <= self.ticks.shape[0] == self.value.shape[0] == self.kind.shape[0]
            or not 0 <= self.n_aux <= self.aux_kind.shape[0] == self.aux_row.shape[0]
            or not self.aux_kind.shape[0] == self.aux_ticks.shape[0] == self.aux_value.shape[0]
        ):
            raise ValueError("Decoder: an array has the wrong length")
        self.run = self.n_rows
        self.stopped = NEW_ID
        while self.stopped == NEW_ID:
            with nogil:
                self.add_functions()
                while self.stopped == METADATA:
                    self.add_metadata()
                    if self.stopped == METADATA:
                        self.add_functions()
                self.end_run()
            if self.stopped == NEW_ID:
                self.ids.add(self.new_id)
        return self.stopped == ROWS_FULL or self.stopped == AUX_FULL

    cdef void end_run(self) noexcept nogil:
        """Takes the times of the function records up to here into the bounds."""
        if self.n_rows > self.run:
            self.min_tick = min(self.min_tick, <uint64_t>self.ticks[self.run])
            self.max_tick = max(self.max_tick, <uint64_t>self.ticks[self.n_rows - 1])
        self.run = self.n_rows

    cdef void add_functions(self) noexcept nogil:
        """Adds function records up to one of metadata, or one that cannot be added."""
        cdef const uint8_t[::1] d = self.data
        cdef int64_t* ticks = &self.ticks[0]
        cdef int32_t* value = &self.value[0]
        cdef uint8_t* kind = &self.kind[0]
        cdef const uint32_t* keys = &self.ids.keys[0]
        cdef const int32_t* values = &self.ids.values[0]
        cdef const uint8_t* kind_values = &self.ids.kind_values[0]
        cdef bint big = self.big
        cdef uint32_t shift = self.ids.shift
        cdef uint32_t mask = self.ids.keys.shape[0] - 1
        cdef Py_ssize_t p = self.at
        cdef Py_ssize_t end = self.end
        cdef Py_ssize_t n = self.n_rows
        cdef Py_ssize_t room = self.ticks.shape[0]
        cdef uint64_t tick = self.tick
        cdef Status stopped = WHOLE
        cdef uint32_t w, k, f, h
        while p < end:
            if (d[p] & 0x80) if big else (d[p] & 1):
                stopped = METADATA
                break
            if p + 8 > end:
                stopped = CUT
                break
            if n >= room:
                stopped = ROWS_FULL
                break
            w = u32(d, p, big)
            if big:
                k = w >> 28
                f = w & 0x0FFFFFFF
            else:
                k = w >> 1 & 7
                f = w >> 4
            if k > 3:
                stopped = UNKNOWN_KIND
                break
            h = (f * GOLDEN) >> shift
            while keys[h] != f and keys[h] != FREE:
                h = (h + 1) & mask
            if keys[h] == FREE:
                self.new_id = f
                stopped = NEW_ID
                break
            tick += u32(d, p + 4, big)
            ticks[n] = tick
            value[n] = values[h]
            kind[n] = kind_values[k]
            n += 1
            p += 8
        self.at = p
        self.tick = tick
        self.n_rows = n
        self.stopped = stopped

    cdef void add_metadata(self) noexcept nogil:
        """Adds one record of metadata."""
        cdef Py_ssize_t p = self.at
        cdef Py_ssize_t following = p + 16
        cdef Py_ssize_t m = self.n_aux
        cdef bint big = self.big
        cdef uint64_t stamp
        cdef uint32_t k, size
        if following > self.end:
            self.stopped = CUT
            return
        k = self.data[p] & 0x7F if big else self.data[p] >> 1
        if k == NEW_CPU_ID or k == TSC_WRAP:
            self.end_run()
        if k == TSC_WRAP:
            self.tick = u64(self.data, p + 1, big) & TICK_BITS
            self.at = following
            return
        if k == END_OF_BUFFER_RECORD or k > PID or k == BUFFER_EXTENTS:
            self.stopped = END_OF_BUFFER if k == END_OF_BUFFER_RECORD else UNKNOWN_KIND
            return
        if m >= self.aux_kind.shape[0]:
            self.stopped = AUX_FULL
            return
        stamp = self.tick
        self.aux_value[m] = p
        if k == NEW_BUFFER or k == PID:
            self.aux_value[m] = u32(self.data, p + 1, big)
        elif k == NEW_CPU_ID:
            stamp = self.tick = u64(self.data, p + 3, big) & TICK_BITS
            self.aux_value[m] = u16(self.data, p + 1, big)
        elif k == CALL_ARGUMENT:
            self.aux_value[m] = u64(self.data, p + 1, big)
        elif k == CUSTOM_EVENT or k == TYPED_EVENT:
            size = u32(self.data, p + 1, big)
            if size > 0x7FFFFFFF:
                self.stopped = BAD_SIZE
                return
            following += size
            stamp = self.time_of_event(p)
        self.aux_kind[m] = k
        self.aux_row[m] = self.n_rows
        self.aux_ticks[m] = stamp
        self.n_aux += 1
        if following > self.end:
            following = self.end
            self.stopped = CUT
        self.at = following

    cdef uint64_t time_of_event(self, Py_ssize_t p) noexcept nogil:
        """Returns the time of an event, and goes to it where that is a difference: from version 5 on."""
        cdef uint64_t stamp, delta
        if self.version >= 5:
            delta = u32(self.data, p + 5, self.big)
            if delta > 0x7FFFFFFF:
                # Back in time: no writer does it, but the bytes may.
                self.end_run()
                self.tick -= min(self.tick, (<uint64_t>1 << 32) - delta)
            else:
                self.tick += delta
            stamp = self.tick
        else:
            # Its own time counts for the bounds where it is near: some writers never store it.
            stamp = u64(self.data, p + 5, self.big) & TICK_BITS
            if stamp > self.max_tick and stamp > self.tick and stamp - self.tick < NEAR:
                self.max_tick = stamp
        self.min_tick = min(self.min_tick, self.tick)
        self.max_tick = max(self.max_tick, self.tick)
        return stamp
