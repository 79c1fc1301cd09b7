"""See `_cursor.pxd`."""

from libc.stdint cimport INT64_MAX, UINT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

import numpy as np

from traceferry.native.bytes cimport load8
from traceferry.native.hashing cimport GOLDEN
from traceferry.native.leb128 cimport CUT, ENDLESS, short_leb

# Encodings, by which steps say what comes next in an event. FAIL: an unknown event. DELTA: the time, as a difference
# modulo 2^64. TIME: the time. SIGNED: a pointer that is no difference. TEXT: its offset in the file; parameter: if this
# is the event's first value; 0: always. COUNT: of groups of at least `parameter` bytes. REPEAT: the next `parameter`
# steps as often as was counted. SECTION: of a counter, and its name's offset; 0 where it has no name. VALUES: of
# counters: index, type, value; a text as its offset, or 0; parameter: whether types are bytes. SELECT: a byte that
# chooses among the starts from `parameter` on. END: parameter: the declaration's number.
cdef enum:
    END
    FAIL
    DELTA
    TIME
    BYTE
    ULEB
    SLEB
    SIZE
    POINTER
    SIGNED
    OBJECT
    METHOD
    TEXT
    CONSTANT
    COUNT
    REPEAT
    SECTION
    VALUES
    SELECT

ENCODINGS = {
    "end": END, "fail": FAIL, "delta": DELTA, "time": TIME, "byte": BYTE, "uleb": ULEB, "sleb": SLEB, "size": SIZE,
    "pointer": POINTER, "signed": SIGNED, "object": OBJECT, "method": METHOD, "text": TEXT, "constant": CONSTANT,
    "count": COUNT, "repeat": REPEAT, "section": SECTION, "values": VALUES, "select": SELECT,
}

# Why an event could not be read, besides CUT and ENDLESS of leb128.
cdef enum:
    UNKNOWN_EVENT = 3
    BAD_COUNT
    UNKNOWN_VALUE

DAMAGE = {
    CUT: "the event is truncated",
    ENDLESS: "a number of more than ten bytes",
    UNKNOWN_EVENT: "an unknown event",
    BAD_COUNT: "a count larger than the buffer",
    UNKNOWN_VALUE: "a value of unknown type",
}
# What the end of the file, which cuts an event, is found as.
CUT_OFF = CUT, BAD_COUNT

cdef enum:
    SELECTED = 9  # starts that one SELECT chooses among
    PERFORMANCE_SECTION = 0x8000
    # An allocation has no more bytes than this where its numbers take at most ten, and the list is one that is found.
    LONGEST_KNOWN = 128

N_SELECTED = SELECTED

# Types of counters' values.
cdef enum:
    INT
    UINT
    WORD
    LONG
    ULONG
    DOUBLE
    STRING
    TIME_INTERVAL

cdef Buffer a_buffer
cdef Step a_step
BUFFER = np.asarray(<Buffer[:1]>&a_buffer).dtype
STEP = np.asarray(<Step[:1]>&a_step).dtype

# The highest bit of each of eight bytes, and the lowest.
cdef enum:
    HIGHEST = 0x8080808080808080
    LOWEST = 0x0101010101010101


cdef class KnownLists:
    def __cinit__(self, Py_ssize_t n_rows):
        if n_rows < 0 or n_rows & (n_rows - 1):
            raise ValueError("KnownLists: not a power of two")
        self.rows = <KnownList*>calloc(n_rows + 1, sizeof(KnownList))
        if self.rows == NULL:
            raise MemoryError
        self.n_rows = n_rows

    def __dealloc__(self):
        free(self.rows)

    cdef (KnownList*, int64_t) find(self, const uint8_t[::1] d, int64_t p, int64_t n, uint64_t first) noexcept nogil:
        """Returns the row of a list of n values, of which the second begins at p, and where it ends. There are 64 bytes
        from p on. NULL: it is not known, and `remember` may be called when it has been read."""
        cdef uint64_t h = (first ^ <uint64_t>n) * <uint64_t>GOLDEN
        cdef int64_t left = n - 1
        cdef Py_ssize_t n_words = 0
        cdef Py_ssize_t k
        cdef uint64_t w, ends
        cdef int64_t count
        cdef KnownList* row
        # Each value ends with a byte below 0x80. So many words are whole, and have `left` ends less.
        while True:
            w = load8(d, p + 8 * n_words)
            ends = ~w & <uint64_t>HIGHEST
            count = ((ends >> 7) * <uint64_t>LOWEST) >> 56
            if count >= left:
                break
            left -= count
            h = (h ^ w) * <uint64_t>GOLDEN
            h = h ^ h >> 32
            n_words += 1
            if n_words == LIST_WORDS:
                return NULL, 0
        # Of the last word the bytes up to the last end.
        while left > 1:
            ends &= ends - 1
            left -= 1
        ends = ends & (~ends + 1)
        ends = ends | (ends - 1) if left > 0 else 0
        w &= ends
        h = (h ^ w) * <uint64_t>GOLDEN
        row = &self.rows[(h >> 32) & <uint64_t>(self.n_rows - 1)]
        if row.first == first and row.n == n and row.words[n_words] == w:
            k = n_words
            while k > 0 and row.words[k - 1] == load8(d, p + 8 * (k - 1)):
                k -= 1
            if k == 0:
                return row, p + 8 * n_words + <int64_t>(((ends & <uint64_t>LOWEST) * <uint64_t>LOWEST) >> 56)
        self.n_wanted = n
        self.row = row
        self.at = p
        self.first = first
        self.n_words = n_words
        self.end = w
        return NULL, 0

    cdef void remember(self, const uint8_t[::1] d, int64_t number, uint64_t last) noexcept nogil:
        """Keeps the list that was looked for, if it can be found again, with a number and its last value."""
        cdef Py_ssize_t k
        if self.n_wanted == 0:
            return
        self.row.first = self.first
        self.row.n = self.n_wanted
        self.row.last = last
        self.row.number = number
        for k in range(self.n_words):
            self.row.words[k] = load8(d, self.at + 8 * k)
        self.row.words[self.n_words] = self.end


cdef class Cursor(Position):
    def __cinit__(
        self, const uint8_t[::1] data, const Buffer[::1] buffers, const Step[::1] steps, const int32_t[::1] starts,
        uint64_t mask, Py_ssize_t n_lists=0
    ):
        """data: the file; steps, starts: of `events.Program`; mask: the bits of a pointer; n_lists: so many backtraces
        of allocations may be known by their bytes, a power of two. Raises ValueError for arrays that cannot be
        right."""
        cdef Py_ssize_t i
        cdef uint64_t size = data.shape[0]
        if starts.shape[0] != 256 + 3 * SELECTED or steps.shape[0] == 0:
            raise ValueError("Cursor: an array has the wrong length")
        for i in range(buffers.shape[0]):
            if not buffers[i].begin <= buffers[i].end <= size:
                raise ValueError("Cursor: a buffer lies outside the file")
        self.check_steps(steps, starts)
        self.data, self.buffers, self.steps, self.starts, self.mask = data, buffers, steps, starts, mask
        i = starts[ALLOC_BT]
        self.lists = KnownLists(n_lists if steps[i + 6].encoding == METHOD else 0)

    cdef int check_steps(self, const Step[::1] steps, const int32_t[::1] starts) except -1:
        """Raises ValueError where following the steps could lead out of them."""
        cdef Py_ssize_t i, kind
        cdef Py_ssize_t n = steps.shape[0]
        cdef bint is_valid = steps[n - 1].encoding == END or steps[n - 1].encoding == FAIL
        for i in range(n):
            if steps[i].encoding == REPEAT:
                is_valid &= 0 < steps[i].parameter < n - i - 1
            elif steps[i].encoding == SELECT:
                is_valid &= 256 <= steps[i].parameter <= 256 + 2 * SELECTED
        for i in range(starts.shape[0]):
            is_valid &= 0 <= starts[i] < n
        # What is read faster looks for its END there.
        for kind in (ALLOC, ALLOC_BT, LEAVE, ENTER, EXC_LEAVE):
            is_valid &= starts[kind] + 7 < n
        if not is_valid:
            raise ValueError("Cursor: steps that lead nowhere")
        return 0

    cdef int read_until(self, Py_ssize_t n_rows) except -1:
        """Buffers up to this one may be read."""
        if not self.n_rows <= n_rows <= self.buffers.shape[0]:
            raise ValueError("Cursor: buffers that are not there")
        self.n_rows = n_rows
        return 0

    cdef bint next_buffer(self) noexcept nogil:
        """Goes to the next buffer that is not empty. Returns whether there is one."""
        while self.at >= self.end:
            if self.row >= self.n_rows:
                return False
            self.at = self.buffers[self.row].begin
            self.end = self.buffers[self.row].end
            self.ts = self.buffers[self.row].time_base
            self.method = self.buffers[self.row].method_base
            self.base_pointer = self.buffers[self.row].pointer_base
            self.base_object = self.buffers[self.row].object_base
            self.row += 1
        return True

    cdef bint next(self, Py_ssize_t first) noexcept nogil:
        """Reads the event at `at`, which is before `end`, and its values to items[first] and on. False: `damage` says why not."""
        cdef Call call = Call(self.at, self.ts, self.method, 0)
        self.event_at = self.at
        self.ts_before = self.ts
        self.method_before = self.method
        self.first = first
        self.n_items = first
        self.known = -1
        self.lists.n_wanted = 0
        if next_short_call(self.data, self.end, self.mask, &call):
            self.at, self.ts, self.method, self.kind = call.at, call.ts, call.method, call.kind
            self.event_ts = self.ts
            self.timed = True
            self.declared = self.steps[self.starts[self.kind] + 2].parameter
            self.keep(self.method)
            return True
        if self.data[self.at] & 0xEF == ALLOC and self.allocation():
            return True
        return self.interpret()

    cdef inline uint64_t byte(self) noexcept nogil:
        if self.at >= self.end:
            self.damage = CUT
            return 0
        self.at += 1
        return self.data[self.at - 1]

    cdef inline uint64_t size32(self) noexcept nogil:
        """Returns a size, which the writer passes through an int: from 2 GiB on it comes with its sign."""
        cdef uint64_t value = self.leb(False)
        return value & UINT32_MAX if value > INT64_MAX else value

    cdef inline int64_t count(self, int64_t least) noexcept nogil:
        """Returns how many things follow, of at least so many bytes each."""
        cdef uint64_t n = self.size32()
        cdef uint64_t left = (self.end - self.at) // <uint64_t>least
        if n > left:
            self.damage = BAD_COUNT
            return 0
        return n

    cdef inline uint64_t short(self, bint signed) noexcept nogil:
        """Returns what `leb` returns, where there are eight bytes."""
        cdef uint64_t value
        cdef int64_t following
        value, following = short_leb(self.data, self.at, self.end, signed)
        if following < 0:
            self.damage = -following
        else:
            self.at = following
        return value

    cdef uint64_t text(self) noexcept nogil:
        """Returns where a text begins."""
        cdef uint64_t begin = self.at
        cdef uint64_t p = begin
        while p < self.end and self.data[p] != 0:
            p += 1
        if p >= self.end:
            self.damage = CUT
        else:
            self.at = p + 1
        return begin

    cdef bint allocation(self) noexcept nogil:
        """Reads an allocation that has no backtrace, or one that is known. False: it has to be interpreted."""
        cdef uint32_t kind = self.data[self.at]
        cdef uint64_t method = self.method
        cdef bint is_read = True
        cdef KnownList* row
        cdef int64_t following
        if self.end - self.at <= LONGEST_KNOWN or (kind == ALLOC_BT and self.lists.n_rows == 0):
            return False
        self.damage = 0
        self.at += 1
        cdef uint64_t delta = self.short(False)
        cdef uint64_t pointer = self.short(True)
        cdef uint64_t place = self.short(True)
        cdef uint64_t size = self.short(False)
        cdef int64_t n = self.byte() if kind == ALLOC_BT else 0
        if n >= 0x80 or self.damage != 0:
            is_read = False
        elif n > 0:
            method = (method + self.short(True)) & self.mask
            row, following = self.lists.find(self.data, self.at, n, method)
            is_read = row != NULL
            if is_read:
                self.at = following
                method = row.last
                self.known = row.number
        if not is_read or self.damage != 0:
            self.at = self.event_at
            return False
        self.ts += delta
        self.method = method
        self.kind = kind
        self.event_ts = self.ts
        self.timed = True
        self.declared = self.steps[self.starts[kind] + (7 if kind == ALLOC_BT else 4)].parameter
        self.n_single = 3
        self.keep((self.base_pointer + pointer) & self.mask)
        self.keep(((self.base_object + place) << 3) & self.mask)
        self.keep(size & UINT32_MAX if size > INT64_MAX else size)
        return True

    cdef bint interpret(self) noexcept nogil:
        """Follows the steps of the event's declaration."""
        cdef Py_ssize_t group_at = 0
        cdef Py_ssize_t group_end = -1
        cdef int64_t left = 0
        cdef uint64_t value = 0
        cdef uint32_t head = 0
        cdef Step step
        self.damage = 0
        self.timed = False
        self.event_ts = self.ts
        self.kind = self.byte()
        cdef Py_ssize_t nth = self.starts[self.kind]
        while self.damage == 0:
            if nth == group_end:
                left -= 1
                nth = group_at if left > 0 else nth
                group_end = group_end if left > 0 else -1
            step = self.steps[nth]
            nth += 1
            if step.encoding == METHOD:
                self.method = (self.method + self.leb(True)) & self.mask
                value = self.method
            elif step.encoding == DELTA:
                self.ts += self.leb(False)
                self.event_ts = self.ts
                self.timed = True
            elif step.encoding == POINTER:
                value = (self.base_pointer + self.leb(True)) & self.mask
            elif step.encoding == OBJECT:
                value = ((self.base_object + self.leb(True)) << 3) & self.mask
            elif step.encoding == SIZE:
                value = self.size32()
            elif step.encoding == END:
                self.declared = step.parameter
                self.n_single = step.keeps
                return True
            elif step.encoding == COUNT:
                left = self.count(step.parameter if step.parameter > 0 else 1)
                value = left
            elif step.encoding == REPEAT:
                group_at = nth
                nth += step.parameter
                if step.parameter == 1 and self.steps[group_at].encoding == METHOD:
                    self.methods(left)
                elif left > 0:
                    # The first group begins as the following ones do.
                    group_end = nth
                    left += 1
                continue
            elif step.encoding == ULEB:
                value = self.leb(False)
            elif step.encoding == BYTE:
                value = self.byte()
            elif step.encoding == TEXT:
                value = self.text() if step.parameter == 0 or <uint32_t>step.parameter == head else 0
            elif step.encoding == SLEB:
                value = self.leb(True)
            elif step.encoding == SIGNED:
                value = self.leb(True) & self.mask
            elif step.encoding == TIME:
                self.event_ts = self.leb(False)
                self.timed = True
            elif step.encoding == CONSTANT:
                value = step.parameter
            elif step.encoding == SELECT:
                value = self.byte()
                nth = self.starts[step.parameter + (value if value < SELECTED else SELECTED - 1)]
                if self.damage == 0:
                    self.keep(value)
                continue
            elif step.encoding == SECTION:
                value = self.leb(False)
                self.keep(value)
                value = self.text() if value == PERFORMANCE_SECTION else 0
            elif step.encoding == VALUES:
                self.values(step.parameter != 0)
                continue
            else:
                self.damage = UNKNOWN_EVENT
            if step.keeps:
                if self.n_items == self.first:
                    head = <uint32_t>value
                self.keep(value)
        self.rewind()
        return False

    cdef void methods(self, int64_t n) noexcept nogil:
        """Reads a list of methods, as most backtraces are, the outermost first."""
        cdef int64_t i
        cdef uint64_t difference
        for i in range(n):
            difference = self.short(True) if self.at + 8 <= self.end else self.leb(True)
            if self.damage != 0:
                return
            self.method = (self.method + difference) & self.mask
            self.keep(self.method)

    cdef void values(self, bint in_bytes) noexcept nogil:
        """Reads values of counters, until an index is 0. in_bytes: whether types are bytes, not uleb."""
        cdef uint64_t index, of_type, value
        while self.damage == 0:
            index = self.leb(False)
            if index == 0:
                return
            of_type = self.byte() if in_bytes else self.leb(False)
            value = 0
            if of_type == UINT or of_type == ULONG:
                value = self.leb(False)
            elif of_type == DOUBLE:
                if self.end - self.at < 8:
                    self.damage = CUT
                    return
                value = load8(self.data, self.at)
                self.at += 8
            elif of_type == STRING:
                value = self.text() if self.byte() != 0 else 0
            elif of_type <= TIME_INTERVAL:
                value = self.leb(True)
            else:
                self.damage = UNKNOWN_VALUE
                return
            self.keep(index)
            self.keep(of_type)
            self.keep(value)
