"""Walks the records of a jitdump and the entries of its DEBUG_INFO records: layout.py has their fields."""

import numpy as np

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from traceferry.native.bytes cimport u32, u64

cdef enum:
    RECORD_HEADER = 16
    LOAD = 40
    ENTRY = 16
    # Instead of a name: that of the entry before.
    SAME_FILE = 0xFF


def scan(const uint8_t[::1] data, Py_ssize_t start, bint big, Py_ssize_t most):
    """Returns id (uint32), offset (int64), total size (uint32) and time stamp (uint64) of at most so many whole records
    from `start` on. They end at a record that ends beyond the data, and at one that is smaller than its header."""
    ids, at = np.empty(most, np.uint32), np.empty(most, np.int64)
    sizes, timestamps = np.empty(most, np.uint32), np.empty(most, np.uint64)
    cdef uint32_t[::1] id_of = ids
    cdef int64_t[::1] at_of = at
    cdef uint32_t[::1] size_of = sizes
    cdef uint64_t[::1] timestamp_of = timestamps
    cdef Py_ssize_t end = data.shape[0]
    cdef Py_ssize_t p = start
    cdef Py_ssize_t n = 0
    cdef uint64_t size
    if p < 0:
        raise ValueError("scan: invalid start")
    with nogil:
        while n < most and p <= end - RECORD_HEADER:
            size = u32(data, p + 4, big)
            if size < RECORD_HEADER or size > <uint64_t>(end - p):
                break
            id_of[n] = u32(data, p, big)
            at_of[n] = p
            size_of[n] = size
            timestamp_of[n] = u64(data, p + 8, big)
            n += 1
            p += size
    return ids[:n], at[:n], sizes[:n], timestamps[:n]


def loads(const uint8_t[::1] data, bint big, const int64_t[::1] begins, const int64_t[::1] ends):
    """Returns the fields of LOAD records, whole ones at [begins, ends): process, thread, address, size of the code,
    index, size of the name, and where the code is. The name follows the fixed part; its size is -1 for a record that is
    too short. The code is the record's last bytes; -1 where they are fewer than its size."""
    cdef Py_ssize_t n = begins.shape[0]
    cdef Py_ssize_t i, p, q, end
    cdef uint64_t size
    check_records(data, begins, ends)
    signed, unsigned = np.zeros((4, n), np.int64), np.zeros((3, n), np.uint64)
    # pid, tid, size of the name, offset of the code; address, size, index.
    cdef int64_t[:, ::1] numbers = signed
    cdef uint64_t[:, ::1] fields = unsigned
    with nogil:
        for i in range(n):
            p = begins[i] + RECORD_HEADER
            end = ends[i]
            numbers[2, i] = -1
            numbers[3, i] = -1
            if end - p < LOAD:
                continue
            numbers[0, i] = u32(data, p, big)
            numbers[1, i] = u32(data, p + 4, big)
            size = u64(data, p + 24, big)
            fields[0, i] = u64(data, p + 16, big)
            fields[1, i] = size
            fields[2, i] = u64(data, p + 32, big)
            p += LOAD
            if size <= <uint64_t>(end - p):
                end -= <Py_ssize_t>size
                numbers[3, i] = end
            q = p
            while q < end and data[q] != 0:
                q += 1
            numbers[2, i] = q - p
    return (signed[0], signed[1], *unsigned, signed[2], signed[3])


cdef check_records(const uint8_t[::1] data, const int64_t[::1] begins, const int64_t[::1] ends):
    cdef Py_ssize_t i
    if ends.shape[0] != begins.shape[0]:
        raise ValueError("an array of records has the wrong length")
    for i in range(begins.shape[0]):
        if begins[i] < 0 or ends[i] < begins[i] or ends[i] > data.shape[0]:
            raise ValueError("a record outside the data")


cdef class LineEntries:
    """The entries of DEBUG_INFO records that lie in [begins, ends), at most `counts` of each.

    starts, stops: the rows of each record, int64; is_sorted: whether its offsets never fall. A row: offset (the address
    relative to the record's `bases`, where the code was loaded), line, column and run, int32. Entries that follow one
    another and have the same file name share a run; run_at, run_size: where its name lies.

    A record ends early at an entry that is not whole, or that points further than `reach` from the base, either way.
    """

    cdef readonly object starts
    cdef readonly object stops
    cdef readonly object is_sorted
    cdef readonly object offsets
    cdef readonly object lines
    cdef readonly object columns
    cdef readonly object runs
    cdef readonly object run_at
    cdef readonly object run_size
    cdef const uint8_t[::1] data
    cdef bint big
    cdef int64_t reach
    cdef int32_t[::1] offset
    cdef int32_t[::1] line
    cdef int32_t[::1] column
    cdef int32_t[::1] run
    cdef int64_t[::1] name_at
    cdef int32_t[::1] name_size
    # How many rows and runs there are, and the last run's name; its length is -1 where none is.
    cdef Py_ssize_t n
    cdef Py_ssize_t n_runs
    cdef Py_ssize_t name
    cdef Py_ssize_t length

    def __init__(
        self, const uint8_t[::1] data, bint big, const int64_t[::1] begins, const int64_t[::1] ends,
        const int64_t[::1] counts, const uint64_t[::1] bases, int64_t reach
    ):
        cdef Py_ssize_t n_records = begins.shape[0]
        cdef Py_ssize_t r
        cdef int64_t most = 0
        check_records(data, begins, ends)
        if counts.shape[0] != n_records or bases.shape[0] != n_records or not 0 <= reach <= INT32_MAX:
            raise ValueError("LineEntries: an array has the wrong length")
        for r in range(n_records):
            if not 0 <= counts[r] <= (ends[r] - begins[r]) // ENTRY:
                raise ValueError("LineEntries: more entries than the record can hold")
            most += counts[r]
        self.data, self.big, self.reach = data, big, reach
        self.n = self.n_runs = self.name = 0
        self.length = -1
        self.offset = self.offsets = np.empty(most, np.int32)
        self.line = self.lines = np.empty(most, np.int32)
        self.column = self.columns = np.empty(most, np.int32)
        self.run = self.runs = np.empty(most, np.int32)
        self.name_at = self.run_at = np.empty(most, np.int64)
        self.name_size = self.run_size = np.empty(most, np.int32)
        self.starts, self.stops = np.empty(n_records, np.int64), np.empty(n_records, np.int64)
        self.is_sorted = np.empty(n_records, np.uint8)
        cdef int64_t[::1] starts = self.starts
        cdef int64_t[::1] stops = self.stops
        cdef uint8_t[::1] is_sorted = self.is_sorted
        with nogil:
            for r in range(n_records):
                starts[r] = self.n
                is_sorted[r] = self.read(begins[r], ends[r], counts[r], bases[r])
                stops[r] = self.n
        self.cut()

    cdef cut(self):
        """Leaves the rows that are filled."""
        rows, runs = slice(self.n), slice(self.n_runs)
        self.offsets, self.lines = self.offsets[rows], self.lines[rows]
        self.columns, self.runs = self.columns[rows], self.runs[rows]
        self.run_at, self.run_size = self.run_at[runs], self.run_size[runs]

    cdef bint read(self, Py_ssize_t p, Py_ssize_t end, int64_t count, uint64_t base) noexcept nogil:
        """Appends the rows of the record at [p, end). Returns whether its offsets never fall."""
        cdef bint rising = True
        cdef int64_t last = -self.reach - 1
        cdef int64_t far
        cdef Py_ssize_t begin = self.n
        cdef Py_ssize_t following
        cdef uint64_t address
        while self.n - begin < count and p + ENTRY < end:
            address = u64(self.data, p, self.big)
            # 2^63 and more below or above would be near in 64 bits.
            far = <int64_t>(address - base)
            if not -self.reach <= far <= self.reach or (address >= base) != (far >= 0):
                break
            following = self.read_name(p + ENTRY, end, self.n > begin)
            if following < 0:
                break
            if far < last:
                rising = False
            last = far
            self.offset[self.n] = <int32_t>far
            self.line[self.n] = number(u32(self.data, p + 8, self.big))
            self.column[self.n] = number(u32(self.data, p + 12, self.big))
            self.run[self.n] = <int32_t>(self.n_runs - 1)
            self.n += 1
            p = following
        return rising

    cdef inline Py_ssize_t read_name(self, Py_ssize_t q, Py_ssize_t end, bint has_before) noexcept nogil:
        """Begins a run where the name at q is not the last one's. Returns where the next entry begins; -1: the name
        does not end."""
        cdef Py_ssize_t i = 0
        if has_before and self.data[q] == SAME_FILE and q + 1 < end and self.data[q + 1] == 0:
            return q + 2
        if self.length >= 0 and q + self.length < end:
            while i < self.length and self.data[q + i] == self.data[self.name + i]:
                i += 1
            if i == self.length and self.data[q + i] == 0:
                return q + i + 1
        i = 0
        while q + i < end and self.data[q + i] != 0:
            i += 1
        if q + i >= end:
            return -1
        self.name, self.length = q, i
        self.name_at[self.n_runs] = q
        self.name_size[self.n_runs] = <int32_t>i
        self.n_runs += 1
        return q + i + 1


cdef inline int32_t number(uint32_t value) noexcept nogil:
    """Returns 0, which is unknown, for what a signed number cannot hold."""
    return <int32_t>value if value <= INT32_MAX else 0
