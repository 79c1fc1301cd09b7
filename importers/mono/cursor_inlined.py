"""A place in the buffers of a log, which reads their events one after the other, as `events` declares them."""

import cython

from traceferry.kernels.functions import c_function, c_inline
from traceferry.kernels.integers import LOW_32, wrapped
from traceferry.kernels.known_lists import KnownLists
from traceferry.kernels.leb128 import CUT
from traceferry.kernels.position import Position
from traceferry.kernels.words import FOURTH_ENDS, load8, short_leb

# ---------------------------------------------------------------- encodings: steps of a declaration

# FAIL: an unknown event. DELTA: the time, as a difference modulo 2^64. TIME: the time. SIGNED: a pointer that is no
# difference. TEXT: its offset in the file; parameter: if this is the event's first value; 0: always. COUNT: of groups
# of at least `parameter` bytes. REPEAT: the next `parameter` steps as often as was counted. SECTION: of a counter, and
# its name's offset; 0 where it has no name. VALUES: of counters: index, type, value; a text as its offset, or 0.
# SELECT: a byte that chooses among the starts from `parameter` on.
(
    END, FAIL, DELTA, TIME, BYTE, ULEB, SLEB, SIZE, POINTER, SIGNED, OBJECT, METHOD, TEXT, CONSTANT, COUNT, REPEAT,
    SECTION, VALUES, SELECT,
) = range(19)  # fmt: skip
N_SELECTED = cython.declare(cython.int, 9)
STEP = cython.declare(cython.int, 3)  # a step's encoding, parameter and whether its value is kept
ENCODINGS = {
    "time": TIME, "byte": BYTE, "uleb": ULEB, "sleb": SLEB, "size": SIZE, "pointer": POINTER, "signed": SIGNED,
    "object": OBJECT, "method": METHOD, "text": TEXT, "constant": CONSTANT, "count": COUNT, "section": SECTION,
    "values": VALUES,
}  # fmt: skip

# ---------------------------------------------------------------- state of a cursor and of what goes through a log

# ROW: of the next buffer. MASK: of a pointer's bits. MAX_TS: times of calls are lowered to this one. N_IGNORED: leaves
# of methods that nothing enters.
(
    AT, STOP, TS, BASE_METHOD, BASE_POINTER, BASE_OBJECT, ROW, MASK, MAX_TS, N_ROWS, N_POOL, N_OTHERS, N_IGNORED,
    DEPTH, N_STATE,
) = range(15)  # fmt: skip

# A row of `buffers`: where its events begin and end, and the bases of its header.
B_AT, B_END, B_TIME, B_POINTER, B_OBJECT, B_METHOD, B_WIDTH = range(7)

# Why an event could not be read, besides CUT and ENDLESS of leb128.
UNKNOWN_EVENT = cython.declare(cython.int, 3)
BAD_COUNT = cython.declare(cython.int, 4)
UNKNOWN_VALUE = cython.declare(cython.int, 5)

# Why a kernel stopped: it is done, or what is full; NAMES: or new, and wants frames.
DONE, ROWS, POOL, NAMES, NODES, CALLS, PAIRS = range(7)

# First bytes.
ALLOC = cython.declare(cython.uint, 0x00)
ALLOC_BT = cython.declare(cython.uint, 0x10)
LEAVE = cython.declare(cython.uint, 0x13)
ENTER = cython.declare(cython.uint, 0x23)
EXC_LEAVE = cython.declare(cython.uint, 0x33)

BIT_63 = cython.declare(cython.ulonglong, 0x8000000000000000)
# An allocation has no more bytes than this where its numbers take at most ten, and the list is one that is found.
LONGEST_KNOWN = cython.declare(cython.longlong, 128)
# No clock gets there: see decode.MAX_TS.
LATEST_TS = cython.declare(cython.ulonglong, 1 << 62)

# ---------------------------------------------------------------- events


@c_inline
@cython.returns((cython.ulonglong, cython.ulonglong, cython.Py_ssize_t))
def decode_packed(w: cython.ulonglong):
    """Of eight bytes that begin with an enter or leave: the differences of time and method, and its length; 0 where it
    is longer than that, or the numbers than usual.

    The branches are what makes it quick: processors guess them right, and go on without waiting for the length.
    """
    # Whether a time takes one byte or two is not easy to guess.
    two: cython.ulonglong = (w >> 15) & 1
    if w & 0x808000 != 0x808000:
        delta: cython.ulonglong = (w >> 8) & 0x7F | ((w >> 9) & 0x3F80) & (0 - two)
        w = w >> (16 + 8 * two)
        length: cython.Py_ssize_t = 2 + two
    elif not w & FOURTH_ENDS:
        delta = (w >> 8) & 0x7F | (w >> 9) & 0x3F80 | (w >> 10) & 0x1FC000
        w = w >> 32
        length = 4
    else:
        return 0, 0, 0
    if not w & 0x80:
        difference: cython.ulonglong = (w & 0x7F ^ 0x40) - 0x40
        return delta, difference, length + 1
    if not w & 0x8000:
        difference = ((w & 0x7F | (w >> 1) & 0x3F80) ^ 0x2000) - 0x2000
        return delta, difference, length + 2
    if not w & 0x800000:
        difference = ((w & 0x7F | (w >> 1) & 0x3F80 | (w >> 2) & 0x1FC000) ^ 0x100000) - 0x100000
        return delta, difference, length + 3
    if length < 4 and not w & FOURTH_ENDS:
        w = w & 0x7F | (w >> 1) & 0x3F80 | (w >> 2) & 0x1FC000 | (w >> 3) & 0xFE00000
        return delta, (w ^ 0x8000000) - 0x8000000, length + 4
    return 0, 0, 0


@cython.final
@cython.cclass
class Cursor(Position):
    """Reads the events of buffers.

    log: the file, buffers as rows of B_WIDTH, steps and starts as `events.Program` makes them, state; items: gets the
    values.

    After `next`: kind, the event's first byte; event_at; ts; method, the latest one of the buffer; event_ts; declared,
    the number of its declaration; timed, whether it has a time; items[first:n_items], its values, of which the first
    n_single are of single fields, those of lists follow. damage: why not. known: of an allocation whose backtrace is
    known the number that it has, and then its list is not among the values; -1 of others.
    """

    buffers: cython.const[cython.ulonglong][::1]
    steps: cython.const[cython.int][::1]
    starts: cython.const[cython.int][::1]
    state: cython.ulonglong[::1]
    items: cython.ulonglong[::1]
    n_buffers: cython.Py_ssize_t
    row: cython.Py_ssize_t
    # Apart from each other: the C compiler would keep neighbours in one vector register, and wait for both.
    ts: cython.ulonglong
    mask: cython.ulonglong
    method: cython.ulonglong
    base_pointer: cython.ulonglong
    base_object: cython.ulonglong
    kind: cython.uint
    declared: cython.int
    n_single: cython.Py_ssize_t
    timed: cython.bint
    event_at: cython.longlong
    event_ts: cython.ulonglong
    ts_before: cython.ulonglong
    method_before: cython.ulonglong
    first: cython.Py_ssize_t
    n_items: cython.Py_ssize_t
    n_room: cython.Py_ssize_t
    lists: KnownLists
    known: cython.longlong

    def __init__(self, log: tuple, items: cython.ulonglong[::1]):
        """Where the state says. Raises ValueError for arrays that cannot be right."""
        self.data, self.buffers, self.steps, self.starts, self.state = log
        buffers: cython.const[cython.ulonglong][::1] = self.buffers
        steps: cython.const[cython.int][::1] = self.steps
        starts: cython.const[cython.int][::1] = self.starts
        s: cython.ulonglong[::1] = self.state
        size: cython.ulonglong = self.data.shape[0]
        i: cython.Py_ssize_t
        if s.shape[0] < N_STATE or starts.shape[0] != 256 + 3 * N_SELECTED or steps.shape[0] % STEP:
            raise ValueError("an array has the wrong length")
        self.n_buffers = buffers.shape[0] // B_WIDTH
        for i in range(self.n_buffers):
            if buffers[i * B_WIDTH + B_AT] > buffers[i * B_WIDTH + B_END] or buffers[i * B_WIDTH + B_END] > size:
                raise ValueError("a buffer lies outside the file")
        for i in range(starts.shape[0]):
            if starts[i] < 0 or starts[i] * STEP >= steps.shape[0]:
                raise ValueError("a declaration without steps")
        if steps[steps.shape[0] - STEP] > FAIL or s[STOP] > size or s[AT] > s[STOP]:
            raise ValueError("an array has the wrong length")
        self.items = items
        self.n_room = items.shape[0]
        self.damage = 0
        i = STEP * starts[ALLOC_BT]
        has_lists: cython.bint = i + 7 * STEP < steps.shape[0] and steps[i + 6 * STEP] == METHOD
        self.lists = KnownLists(s[N_STATE:] if has_lists else s[:0])
        self.row = s[ROW]
        self.at = s[AT]
        self.end = s[STOP]
        self.ts = s[TS]
        self.method = s[BASE_METHOD]
        self.base_pointer = s[BASE_POINTER]
        self.base_object = s[BASE_OBJECT]
        self.mask = s[MASK]

    @c_function
    def save(self) -> cython.void:
        """The place, to go on from."""
        s: cython.ulonglong[::1] = self.state
        s[ROW] = self.row
        s[AT] = self.at
        s[STOP] = self.end
        s[TS] = self.ts
        s[BASE_METHOD] = self.method
        s[BASE_POINTER] = self.base_pointer
        s[BASE_OBJECT] = self.base_object

    @c_function
    def begin(self) -> cython.bint:
        """At the end of a buffer, goes to the next that is not empty. False: there is none."""
        while self.at >= self.end:
            if self.row >= self.n_buffers:
                return False
            at: cython.Py_ssize_t = self.row * B_WIDTH
            self.row += 1
            self.at = self.buffers[at + B_AT]
            self.end = self.buffers[at + B_END]
            self.ts = self.buffers[at + B_TIME]
            self.method = self.buffers[at + B_METHOD]
            self.base_pointer = self.buffers[at + B_POINTER]
            self.base_object = self.buffers[at + B_OBJECT]
        return True

    @c_inline
    def rewind(self) -> cython.void:
        """Back to before the event."""
        self.at = self.event_at
        self.ts = self.ts_before
        self.method = self.method_before
        self.n_items = self.first

    @c_function
    def byte(self) -> cython.ulonglong:
        if self.at >= self.end:
            self.damage = CUT
            return 0
        self.at += 1
        return self.data[self.at - 1]

    @c_inline
    def size32(self) -> cython.ulonglong:
        """A size, which the writer passes through an int: from 2 GiB on it comes with its sign."""
        value: cython.ulonglong = self.leb(False)
        return value & LOW_32 if value >= BIT_63 else value

    @c_inline
    def count(self, least: cython.longlong) -> cython.longlong:
        """How many things follow, of at least so many bytes each."""
        n: cython.ulonglong = self.size32()
        left: cython.ulonglong = (self.end - self.at) // least
        if n > left:
            self.damage = BAD_COUNT
            return 0
        return n

    @c_function
    def text(self) -> cython.ulonglong:
        """Where a text begins."""
        begin: cython.longlong = self.at
        p: cython.longlong = begin
        while p < self.end and self.data[p] != 0:
            p += 1
        if p >= self.end:
            self.damage = CUT
        else:
            self.at = p + 1
        return begin

    @c_inline
    def keep(self, value: cython.ulonglong) -> cython.void:
        """Values beyond the capacity of items are counted, not stored."""
        if self.n_items < self.n_room:
            self.items[self.n_items] = value
        self.n_items += 1

    @c_function
    def next(self, first: cython.Py_ssize_t) -> cython.bint:
        """Reads the event at `at`, and its values to items[first] and on. False: `damage` says why not."""
        delta: cython.ulonglong
        difference: cython.ulonglong
        length: cython.Py_ssize_t
        self.event_at = self.at
        self.ts_before = self.ts
        self.method_before = self.method
        self.first = first
        self.n_items = first
        self.known = -1
        self.lists.n_wanted = 0
        if self.at + 8 <= self.end:
            w: cython.ulonglong = load8(self.data, self.at)
            if w & 0xCF == 3 and w & 0x30 != 0:
                delta, difference, length = decode_packed(w)
                if length != 0:
                    self.kind = w & 0xFF
                    self.at += length
                    self.ts = wrapped(self.ts + delta)
                    self.method = (self.method + difference) & self.mask
                    self.event_ts = self.ts
                    self.timed = True
                    self.declared = self.steps[STEP * self.starts[self.kind] + 7]
                    self.keep(self.method)
                    return True
            if w & 0xEF == ALLOC and self.allocation():
                return True
        return self.interpret()

    @c_inline
    def short(self, signed: cython.bint) -> cython.ulonglong:
        """As `leb`, where there are eight bytes."""
        value: cython.ulonglong
        following: cython.longlong
        value, following = short_leb(self.data, self.at, self.end, signed)
        if following < 0:
            self.damage = -following
        else:
            self.at = following
        return value

    @c_function
    def allocation(self) -> cython.bint:
        """Reads an allocation that has no backtrace, or one that is known. False: it has to be interpreted."""
        kind: cython.uint = self.data[self.at]
        method: cython.ulonglong = self.method
        row: cython.Py_ssize_t = 0
        p: cython.longlong
        if self.end - self.at <= LONGEST_KNOWN or (kind == ALLOC_BT and self.lists.n_rows == 0):
            return False
        self.damage = 0
        self.at += 1
        delta: cython.ulonglong = self.short(False)
        pointer: cython.ulonglong = self.short(True)
        place: cython.ulonglong = self.short(True)
        size: cython.ulonglong = self.short(False)
        n: cython.longlong = self.byte() if kind == ALLOC_BT else 0
        if n >= 0x80 or self.damage != 0:
            row = -1
        elif n > 0:
            method = (method + self.short(True)) & self.mask
            row, p = self.lists.find(self.data, self.at, n, method)
            if row >= 0:
                self.at = p
                method = self.lists.last(row)
                self.known = self.lists.number(row)
        if row < 0 or self.damage != 0:
            self.at = self.event_at
            return False
        self.ts = wrapped(self.ts + delta)
        self.method = method
        self.kind = kind
        self.event_ts = self.ts
        self.timed = True
        self.declared = self.steps[STEP * (self.starts[kind] + (7 if kind == ALLOC_BT else 4)) + 1]
        self.n_single = 3
        self.keep((self.base_pointer + pointer) & self.mask)
        self.keep(((self.base_object + place) << 3) & self.mask)
        self.keep(size & LOW_32 if size >= BIT_63 else size)
        return True

    @c_function
    def interpret(self) -> cython.bint:
        """Follows the steps of the event's declaration."""
        group_at: cython.Py_ssize_t = 0
        group_end: cython.Py_ssize_t = -1
        left: cython.longlong = 0
        value: cython.ulonglong = 0
        head: cython.longlong = 0
        self.damage = 0
        self.timed = False
        self.event_ts = self.ts
        self.kind = self.byte()
        step: cython.Py_ssize_t = STEP * self.starts[self.kind]
        while self.damage == 0:
            if step == group_end:
                left -= 1
                step = group_at if left > 0 else step
                group_end = group_end if left > 0 else -1
            encoding: cython.int = self.steps[step]
            parameter: cython.int = self.steps[step + 1]
            step += STEP
            if encoding == METHOD:
                self.method = (self.method + self.leb(True)) & self.mask
                value = self.method
            elif encoding == DELTA:
                self.ts = wrapped(self.ts + self.leb(False))
                self.event_ts = self.ts
                self.timed = True
            elif encoding == POINTER:
                value = (self.base_pointer + self.leb(True)) & self.mask
            elif encoding == OBJECT:
                value = ((self.base_object + self.leb(True)) << 3) & self.mask
            elif encoding == SIZE:
                value = self.size32()
            elif encoding == END:
                self.declared = parameter
                self.n_single = self.steps[step - 1]
                return True
            elif encoding == COUNT:
                left = self.count(parameter if parameter > 0 else 1)
                value = left
            elif encoding == REPEAT:
                group_at = step
                step += STEP * parameter
                if parameter == 1 and self.steps[group_at] == METHOD:
                    self.methods(left)
                elif left > 0:
                    group_end = step
                    left += 1
                continue
            elif encoding == ULEB:
                value = self.leb(False)
            elif encoding == BYTE:
                value = self.byte()
            elif encoding == TEXT:
                value = self.text() if parameter == 0 or parameter == head else 0
            elif encoding == SLEB:
                value = self.leb(True)
            elif encoding == SIGNED:
                value = self.leb(True) & self.mask
            elif encoding == TIME:
                self.event_ts = self.leb(False)
                self.timed = True
            elif encoding == CONSTANT:
                value = parameter
            elif encoding == SELECT:
                value = self.byte()
                step = STEP * self.starts[parameter + (value if value < N_SELECTED else N_SELECTED - 1)]
                if self.damage == 0:
                    self.keep(value)
                continue
            elif encoding == SECTION:
                value = self.leb(False)
                self.keep(value)
                value = self.text() if value == 0x8000 else 0
            elif encoding == VALUES:
                self.values(parameter != 0)
                continue
            else:
                self.damage = UNKNOWN_EVENT
            if self.steps[step - 1]:
                if self.n_items == self.first:
                    head = value & LOW_32
                self.keep(value)
        self.rewind()
        return False

    @c_function
    def methods(self, n: cython.longlong) -> cython.void:
        """A list of methods, as most backtraces are, the outermost first."""
        i: cython.longlong
        for i in range(n):
            difference: cython.ulonglong = self.short(True) if self.at + 8 <= self.end else self.leb(True)
            if self.damage != 0:
                return
            self.method = (self.method + difference) & self.mask
            self.keep(self.method)

    @c_function
    def values(self, in_bytes: cython.bint) -> cython.void:
        """Of counters, until an index is 0. in_bytes: whether types are bytes, not uleb."""
        while self.damage == 0:
            index: cython.ulonglong = self.leb(False)
            if index == 0:
                return
            of_type: cython.ulonglong = self.byte() if in_bytes else self.leb(False)
            value: cython.ulonglong = 0
            if of_type == 1 or of_type == 4:
                value = self.leb(False)
            elif of_type == 5:
                if self.end - self.at < 8:
                    self.damage = CUT
                    return
                value = load8(self.data, self.at)
                self.at += 8
            elif of_type == 6:
                value = self.text() if self.byte() != 0 else 0
            elif of_type == 0 or of_type == 2 or of_type == 3 or of_type == 7:
                value = self.leb(True)
            else:
                self.damage = UNKNOWN_VALUE
                return
            self.keep(index)
            self.keep(of_type)
            self.keep(value)
