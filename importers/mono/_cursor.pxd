"""A place in the buffers of a log, which reads their events one after the other, as `events` declares them."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from traceferry.native.bytes cimport load8
from traceferry.native.cursor cimport Position

# First bytes of events.
cdef enum:
    ALLOC = 0x00
    ALLOC_BT = 0x10
    LEAVE = 0x13
    ENTER = 0x23
    EXC_LEAVE = 0x33

cdef enum:
    LATEST_TS = 0x4000000000000000  # no clock gets there
    FOURTH_ENDS = 0x80000000  # the highest bit of the fourth byte
    LIST_WORDS = 7


cdef struct Buffer:
    # Where its events begin and end, and the bases of its header.
    uint64_t begin
    uint64_t end
    uint64_t time_base
    uint64_t pointer_base
    uint64_t object_base
    uint64_t method_base


cdef struct Step:
    # What comes next in an event: see `Encoding`. keeps: whether its value is kept.
    int32_t encoding
    int32_t parameter
    int32_t keeps


cdef struct KnownList:
    uint64_t first
    int64_t n  # how many values; 0: the row is free
    uint64_t last
    int64_t number
    uint64_t[LIST_WORDS] words  # the bytes behind the first value


cdef class KnownLists:
    """Lists of SLEB128 differences that were read before, found again by their bytes: backtraces come again and again.

    n_rows: a power of two, or 0. n_wanted: how many values the list had that was looked for last and is not known, or
    0.
    """

    cdef KnownList* rows
    cdef Py_ssize_t n_rows
    cdef int64_t n_wanted
    # Of that list: its row, the offset of its second value, its first value, how many words it has, and the last one.
    cdef KnownList* row
    cdef int64_t at
    cdef uint64_t first
    cdef Py_ssize_t n_words
    cdef uint64_t end

    cdef (KnownList*, int64_t) find(self, const uint8_t[::1] d, int64_t p, int64_t n, uint64_t first) noexcept nogil
    cdef void remember(self, const uint8_t[::1] d, int64_t number, uint64_t last) noexcept nogil


cdef inline bint is_call(uint32_t kind) noexcept nogil:
    """Returns whether this is the first byte of an enter or leave."""
    return kind & 0xCF == 3 and kind != 3


cdef struct Call:
    # An enter or leave: where it ends, the time and method after it, its first byte.
    int64_t at
    uint64_t ts
    uint64_t method
    uint32_t kind


cdef inline bint next_short_call(const uint8_t[::1] d, int64_t end, uint64_t mask, Call* call) noexcept nogil:
    """Goes on to the enter or leave that follows, if there are eight bytes before `end`, and it and its numbers are not
    longer than usual. False: it has to be read otherwise.

    The branches are what makes it quick: processors guess them right, and go on without waiting for the length.
    """
    cdef uint64_t delta, difference
    cdef Py_ssize_t length
    if call.at + 8 > end:
        return False
    cdef uint64_t w = load8(d, call.at)
    cdef uint32_t kind = w & 0xFF
    if not is_call(kind):
        return False
    # Whether a time takes one byte or two is not easy to guess.
    cdef uint64_t two = (w >> 15) & 1
    if w & 0x808000 != 0x808000:
        delta = (w >> 8) & 0x7F | ((w >> 9) & 0x3F80) & (0 - two)
        w = w >> (16 + 8 * two)
        length = 2 + two
    elif not w & FOURTH_ENDS:
        delta = (w >> 8) & 0x7F | (w >> 9) & 0x3F80 | (w >> 10) & 0x1FC000
        w = w >> 32
        length = 4
    else:
        return False
    if not w & 0x80:
        difference = (w & 0x7F ^ 0x40) - 0x40
        length += 1
    elif not w & 0x8000:
        difference = ((w & 0x7F | (w >> 1) & 0x3F80) ^ 0x2000) - 0x2000
        length += 2
    elif not w & 0x800000:
        difference = ((w & 0x7F | (w >> 1) & 0x3F80 | (w >> 2) & 0x1FC000) ^ 0x100000) - 0x100000
        length += 3
    elif length < 4 and not w & FOURTH_ENDS:
        w = w & 0x7F | (w >> 1) & 0x3F80 | (w >> 2) & 0x1FC000 | (w >> 3) & 0xFE00000
        difference = (w ^ 0x8000000) - 0x8000000
        length += 4
    else:
        return False
    call.at += length
    call.ts += delta
    call.method = (call.method + difference) & mask
    call.kind = kind
    return True


cdef class Cursor(Position):
    """Reads the events of buffers, and goes on where it was.

    After `next`: kind, the event's first byte; event_at; ts; method, the latest one of the buffer; event_ts; declared,
    the number of its declaration; timed, whether it has a time; items[first:n_items], its values, of which those up to
    n_single are of single fields, those of lists follow. damage: why not. known: the number of an allocation's
    backtrace that was read before: then its list is not among the values; -1 for others.
    """

    cdef const Buffer[::1] buffers
    cdef const Step[::1] steps
    cdef const int32_t[::1] starts
    cdef uint64_t[::1] items
    cdef Py_ssize_t row  # the next buffer
    cdef Py_ssize_t n_rows  # buffers from here on are not read yet
    # Apart from each other: the C compiler would keep neighbours in one vector register, and wait for both.
    cdef uint64_t ts
    cdef uint64_t mask  # the bits of a pointer
    cdef uint64_t method
    cdef uint64_t base_pointer
    cdef uint64_t base_object
    cdef uint32_t kind
    cdef int32_t declared
    cdef Py_ssize_t n_single
    cdef bint timed
    cdef int64_t event_at
    cdef uint64_t event_ts
    cdef uint64_t ts_before
    cdef uint64_t method_before
    cdef Py_ssize_t first
    cdef Py_ssize_t n_items
    cdef Py_ssize_t n_room
    cdef KnownLists lists
    cdef int64_t known

    cdef int check_steps(self, const Step[::1] steps, const int32_t[::1] starts) except -1
    cdef int read_until(self, Py_ssize_t n_rows) except -1
    cdef bint next_buffer(self) noexcept nogil
    cdef bint next(self, Py_ssize_t first) noexcept nogil
    cdef bint allocation(self) noexcept nogil
    cdef bint interpret(self) noexcept nogil
    cdef void methods(self, int64_t n) noexcept nogil
    cdef void values(self, bint in_bytes) noexcept nogil
    cdef uint64_t text(self) noexcept nogil
    cdef uint64_t byte(self) noexcept nogil
    cdef uint64_t size32(self) noexcept nogil
    cdef int64_t count(self, int64_t least) noexcept nogil
    cdef uint64_t short(self, bint signed) noexcept nogil

    cdef inline bint begin(self) noexcept nogil:
        """Goes to the next buffer that is not empty, at the end of one. Returns whether there is one."""
        return self.at < self.end or self.next_buffer()

    cdef inline void use(self, uint64_t[::1] items):
        """Values of events are kept here."""
        self.items = items
        self.n_room = items.shape[0]

    cdef inline void keep(self, uint64_t value) noexcept nogil:
        """Keeps a value. Those beyond the capacity of items are only counted."""
        if self.n_items < self.n_room:
            self.items[self.n_items] = value
        self.n_items += 1

    cdef inline void rewind(self) noexcept nogil:
        """Goes back to before the event."""
        self.at = self.event_at
        self.ts = self.ts_before
        self.method = self.method_before
        self.n_items = self.first

    cdef inline void skip_buffer(self) noexcept nogil:
        self.at = self.end
