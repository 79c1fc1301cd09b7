# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Decodes the events of Mono log profiler recordings. Cython's pure-Python mode: also runs interpreted.

`step` knows every event of every version and is the only place that does. The kernels go through buffers with it; where
an enter or leave is short enough to lie in eight bytes, which is nearly always, they take it apart at once instead.

A kernel carries its position in `s`, an array of N_STATE unsigned numbers, from call to call. It returns why it
stopped; called again, with more room or the answer to what it asked, it goes on where it was.
"""

import sys

import cython

LITTLE_ENDIAN = cython.declare(cython.bint, sys.byteorder == "little")

# ---------------------------------------------------------------- the state

# Where it is: in bytes of the file, and the values that later ones of the buffer are differences from.
AT = cython.declare(cython.int, 0)
END = cython.declare(cython.int, 1)
TS = cython.declare(cython.int, 2)
METHOD = cython.declare(cython.int, 3)
PTR_BASE = cython.declare(cython.int, 4)
OBJ_BASE = cython.declare(cython.int, 5)
# What the file is: its data version; the one that tells how counters are laid out; which bits a pointer has.
VERSION = cython.declare(cython.int, 6)
COUNTERS_VERSION = cython.declare(cython.int, 7)
PTR_MASK = cython.declare(cython.int, 8)
# The event that `step` has read: its first byte, time, fields, the place of its (first) text, how many items it has.
KIND = cython.declare(cython.int, 9)
EVENT_TS = cython.declare(cython.int, 10)
A = cython.declare(cython.int, 11)
B = cython.declare(cython.int, 12)
C = cython.declare(cython.int, 13)
D = cython.declare(cython.int, 14)
TEXT = cython.declare(cython.int, 15)
N_ITEMS = cython.declare(cython.int, 16)
BAD = cython.declare(cython.int, 17)
# Where it began, and what the differences were from then: to read it again.
EVENT_AT = cython.declare(cython.int, 18)
TS_BEFORE = cython.declare(cython.int, 19)
METHOD_BEFORE = cython.declare(cython.int, 20)
# Which buffer, and whether it is begun.
BUFFER = cython.declare(cython.int, 21)
BEGUN = cython.declare(cython.int, 22)
# What a kernel has written, and the pointer that it asks about.
N_ROWS = cython.declare(cython.int, 23)
N_POOL = cython.declare(cython.int, 24)
ASKED = cython.declare(cython.int, 25)
# Of calls: open ones, the latest time, leaves without an enter, calls closed by a leave below them, enters.
DEPTH = cython.declare(cython.int, 26)
NOW = cython.declare(cython.int, 27)
N_IGNORED = cython.declare(cython.int, 28)
N_UNWOUND = cython.declare(cython.int, 29)
N_BACKWARDS = cython.declare(cython.int, 30)
SEARCHED = cython.declare(cython.int, 31)
N_STACKS = cython.declare(cython.int, 32)
N_SECOND = cython.declare(cython.int, 33)
# Times of calls are lowered to this one.
MAX_TS = cython.declare(cython.int, 34)
# The lengths of the table of names when it was last looked through.
CHECKED = cython.declare(cython.int, 36)
N_STATE = cython.declare(cython.int, 40)

# Values of s[BAD].
CUT = cython.declare(cython.int, 1)
ENDLESS = cython.declare(cython.int, 2)
UNKNOWN_EVENT = cython.declare(cython.int, 3)
BAD_COUNT = cython.declare(cython.int, 4)
NO_ROOM = cython.declare(cython.int, 5)
UNKNOWN_VALUE = cython.declare(cython.int, 6)

# Why a kernel stopped.
DONE = cython.declare(cython.int, 0)
ROWS_FULL = cython.declare(cython.int, 1)
ITEMS_FULL = cython.declare(cython.int, 2)
POOL_FULL = cython.declare(cython.int, 3)
STACKS_FULL = cython.declare(cython.int, 4)
ASKS_METHOD = cython.declare(cython.int, 5)
DEPTH_FULL = cython.declare(cython.int, 6)
SECOND_FULL = cython.declare(cython.int, 7)

# A row of `buffers`: where its events begin and end, and the bases of its header.
B_AT = cython.declare(cython.int, 0)
B_END = cython.declare(cython.int, 1)
B_TIME = cython.declare(cython.int, 2)
B_PTR = cython.declare(cython.int, 3)
B_OBJ = cython.declare(cython.int, 4)
B_METHOD = cython.declare(cython.int, 5)
B_WIDTH = cython.declare(cython.int, 6)

# A row of `stats`: what `scan` says of a buffer.
S_FIRST_TS = cython.declare(cython.int, 0)
S_LAST_TS = cython.declare(cython.int, 1)
S_EVENTS = cython.declare(cython.int, 2)
S_ENTER = cython.declare(cython.int, 3)
S_LEAVE = cython.declare(cython.int, 4)
S_EXC_LEAVE = cython.declare(cython.int, 5)
S_ALLOC = cython.declare(cython.int, 6)
S_MOVES = cython.declare(cython.int, 7)
S_OBJECTS = cython.declare(cython.int, 8)
S_ROOTS = cython.declare(cython.int, 9)
S_HITS = cython.declare(cython.int, 10)
S_BAD = cython.declare(cython.int, 11)
S_BAD_AT = cython.declare(cython.int, 12)
S_WIDTH = cython.declare(cython.int, 13)

# A row of `records`: an event that is rare enough to be kept.
R_KIND = cython.declare(cython.int, 0)
R_BUFFER = cython.declare(cython.int, 1)
R_AT = cython.declare(cython.int, 2)
R_TS = cython.declare(cython.int, 3)
R_A = cython.declare(cython.int, 4)
R_TEXT = cython.declare(cython.int, 8)
R_ITEMS_AT = cython.declare(cython.int, 9)
R_N_ITEMS = cython.declare(cython.int, 10)
R_WIDTH = cython.declare(cython.int, 11)

ALL = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
TOP = cython.declare(cython.ulonglong, 0x8000000000000000)
LOW32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
FOURTH_ENDS = cython.declare(cython.ulonglong, 0x80000000)
GOLDEN = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
PRIME = cython.declare(cython.ulonglong, 0x100000001B3)

LEAVES = cython.declare(cython.uint, 1)
UNWOUND = cython.declare(cython.uint, 4)

# ---------------------------------------------------------------- numbers


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def wrapped(value: cython.ulonglong) -> cython.ulonglong:
    """Modulo 2^64, as C counts anyway."""
    return value if cython.compiled else value & ALL


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def hashed(key: cython.ulonglong) -> cython.Py_ssize_t:
    golden: cython.ulonglong = GOLDEN
    return wrapped(key * golden) >> 32


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def load8(d: cython.const[cython.uchar][::1], p: cython.Py_ssize_t) -> cython.ulonglong:
    """Eight bytes, the first one lowest."""
    w: cython.ulonglong = 0
    i: cython.int
    if cython.compiled and LITTLE_ENDIAN:
        # One load. Put together from bytes, the C compiler would take it apart again.
        memcpy(cython.address(w), cython.address(d[p]), 8)  # noqa: F821
        return w
    for i in range(7, -1, -1):
        w = w << 8 | d[p + i]
    return w


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.ulonglong, cython.ulonglong, cython.Py_ssize_t))
def decode_packed(w: cython.ulonglong):
    """Of eight bytes that begin with an enter or leave: the differences of time and method, and its length; 0 where it
    is longer than that, or the numbers than usual.

    The branches are what makes it quick: processors guess them right, and go on without waiting for the length.
    """
    delta: cython.ulonglong
    difference: cython.ulonglong
    length: cython.Py_ssize_t
    if not w & 0x8000:
        delta = (w >> 8) & 0x7F
        w = w >> 16
        length = 2
    elif not w & 0x800000:
        delta = (w >> 8) & 0x7F | (w >> 9) & 0x3F80
        w = w >> 24
        length = 3
    elif not w & FOURTH_ENDS:
        delta = (w >> 8) & 0x7F | (w >> 9) & 0x3F80 | (w >> 10) & 0x1FC000
        w = w >> 32
        length = 4
    else:
        return 0, 0, 0
    if not w & 0x80:
        difference = (w & 0x7F ^ 0x40) - 0x40
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


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def uleb(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1]) -> cython.ulonglong:
    p: cython.Py_ssize_t = s[AT]
    end: cython.Py_ssize_t = s[END]
    value: cython.ulonglong = 0
    shift: cython.int = 0
    b: cython.ulonglong
    while p < end:
        b = d[p]
        p += 1
        value |= (b & 0x7F) << shift
        shift += 7
        if b < 128:
            s[AT] = p
            return wrapped(value)
        if shift > 63:
            s[BAD] = ENDLESS
            return 0
    s[BAD] = CUT
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def sleb(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1]) -> cython.ulonglong:
    """In two's complement."""
    p: cython.Py_ssize_t = s[AT]
    end: cython.Py_ssize_t = s[END]
    value: cython.ulonglong = 0
    shift: cython.int = 0
    b: cython.ulonglong
    while p < end:
        b = d[p]
        p += 1
        value |= (b & 0x7F) << shift
        shift += 7
        if b < 128:
            s[AT] = p
            if b & 0x40 and shift < 64:
                value |= ALL << shift
            return wrapped(value)
        if shift > 63:
            s[BAD] = ENDLESS
            return 0
    s[BAD] = CUT
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def byte(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1]) -> cython.ulonglong:
    p: cython.Py_ssize_t = s[AT]
    if p >= cython.cast(cython.Py_ssize_t, s[END]):
        s[BAD] = CUT
        return 0
    s[AT] = p + 1
    return d[p]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def size32(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1]) -> cython.ulonglong:
    """A size, which the writer passes through an int: from 2 GiB on it comes with its sign."""
    value: cython.ulonglong = uleb(d, s)
    return value & LOW32 if value >= TOP else value


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def count(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], least: cython.int) -> cython.Py_ssize_t:
    """How many things follow, of at least so many bytes each."""
    n: cython.ulonglong = size32(d, s)
    if n > (s[END] - s[AT]) // least:
        if s[BAD] == 0:
            s[BAD] = BAD_COUNT
        return 0
    return n


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def small(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1]) -> cython.ulonglong:
    """What is a byte from version 13 on."""
    return byte(d, s) if s[VERSION] >= 13 else uleb(d, s)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def pointer(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1]) -> cython.ulonglong:
    return (s[PTR_BASE] + sleb(d, s)) & s[PTR_MASK]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def object_at(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1]) -> cython.ulonglong:
    return ((s[OBJ_BASE] + sleb(d, s)) << 3) & s[PTR_MASK]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def method(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1]) -> cython.ulonglong:
    s[METHOD] = (s[METHOD] + sleb(d, s)) & s[PTR_MASK]
    return s[METHOD]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def text(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1]) -> cython.ulonglong:
    """Where a text begins."""
    begin: cython.Py_ssize_t = s[AT]
    end: cython.Py_ssize_t = s[END]
    p: cython.Py_ssize_t = begin
    while p < end and d[p] != 0:
        p += 1
    if p >= end:
        s[BAD] = CUT
        return begin
    s[AT] = p + 1
    return begin


# ---------------------------------------------------------------- lists


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def add(s: cython.ulonglong[::1], items: cython.ulonglong[::1], value: cython.ulonglong) -> cython.void:
    """Counts the items that have no room, too."""
    n: cython.Py_ssize_t = s[N_ITEMS]
    if n < items.shape[0]:
        items[n] = value
    s[N_ITEMS] = n + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def backtrace(
    d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], items: cython.ulonglong[::1]
) -> cython.void:
    """The outermost caller first."""
    i: cython.Py_ssize_t
    if s[VERSION] < 13:
        uleb(d, s)
        for i in range(count(d, s, 1)):
            add(s, items, pointer(d, s))
    else:
        for i in range(count(d, s, 1)):
            add(s, items, method(d, s))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def addresses(
    d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], items: cython.ulonglong[::1]
) -> cython.void:
    """Of a sample: C is their number, D that of the methods after them. Both begin with the leaf."""
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = count(d, s, 1)
    s[C] = n
    for i in range(n):
        add(s, items, pointer(d, s))
    if s[VERSION] < 6 or s[BAD] != 0:
        return
    n = count(d, s, 1)
    s[D] = n
    for i in range(n):
        add(s, items, method(d, s))
        if s[VERSION] < 13:
            sleb(d, s)
            sleb(d, s)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def roots(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], items: cython.ulonglong[::1]) -> cython.void:
    """From version 15 on: the root's address and its object. Before: the object, its kind, and something more."""
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = count(d, s, 2)
    if s[VERSION] >= 15:
        for i in range(n):
            add(s, items, pointer(d, s))
            add(s, items, object_at(d, s))
        return
    s[A] = uleb(d, s)
    for i in range(n):
        add(s, items, object_at(d, s))
        add(s, items, byte(d, s) if s[VERSION] == 13 else uleb(d, s))
        add(s, items, uleb(d, s))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def described(
    d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], items: cython.ulonglong[::1]
) -> cython.void:
    """Counters: section, where its name is or 0, where the name is, type, unit, variance, index."""
    i: cython.Py_ssize_t
    j: cython.int
    section: cython.ulonglong
    bytes_: cython.bint = 13 <= s[COUNTERS_VERSION] < 15
    for i in range(count(d, s, 6)):
        section = uleb(d, s)
        add(s, items, section)
        add(s, items, text(d, s) if section == 0x8000 else 0)
        add(s, items, text(d, s))
        for j in range(3):
            add(s, items, byte(d, s) if bytes_ else uleb(d, s))
        add(s, items, uleb(d, s))
        if s[BAD] != 0:
            return


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def counted(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], items: cython.ulonglong[::1]) -> cython.void:
    """Values of counters: index, type, value: of a text its place, or 0."""
    index: cython.ulonglong
    type_: cython.ulonglong
    value: cython.ulonglong
    bytes_: cython.bint = 13 <= s[COUNTERS_VERSION] < 15
    while s[BAD] == 0:
        index = uleb(d, s)
        if index == 0:
            return
        type_ = byte(d, s) if bytes_ else uleb(d, s)
        value = 0
        if type_ == 1 or type_ == 4:
            value = uleb(d, s)
        elif type_ == 5:
            if s[END] - s[AT] < 8:
                s[BAD] = CUT
                return
            value = load8(d, s[AT])
            s[AT] += 8
        elif type_ == 6:
            if byte(d, s) != 0:
                value = text(d, s)
        elif type_ == 0 or type_ == 2 or type_ == 3 or type_ == 7:
            value = sleb(d, s)
        else:
            s[BAD] = UNKNOWN_VALUE
            return
        add(s, items, index)
        add(s, items, type_)
        add(s, items, value)


# ---------------------------------------------------------------- events


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_timed(kind: cython.uint, version: cython.ulonglong) -> cython.bint:
    """Whether the time follows the first byte."""
    if version >= 13:
        return True
    low: cython.uint = kind & 15
    return not (kind == 0x26 or kind == 0x36 or low == 9 or (low == 7 and kind != 0x27))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def step(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], items: cython.ulonglong[::1]) -> cython.bint:
    """Reads the event at s[AT] into s and items. False: s[BAD] says why not, and s[EVENT_AT] where."""
    version: cython.ulonglong = s[VERSION]
    s[EVENT_AT] = s[AT]
    s[TS_BEFORE] = s[TS]
    s[METHOD_BEFORE] = s[METHOD]
    s[BAD] = 0
    s[N_ITEMS] = 0
    s[TEXT] = 0
    s[A] = 0
    s[B] = 0
    s[C] = 0
    s[D] = 0
    kind: cython.uint = byte(d, s)
    s[KIND] = kind
    if is_timed(kind, version):
        s[TS] = wrapped(s[TS] + uleb(d, s))
    s[EVENT_TS] = s[TS]
    low: cython.uint = kind & 15
    high: cython.uint = kind >> 4
    if low == 0:
        allocation(d, s, items, high)
    elif low == 1:
        collection(d, s, items, high)
    elif low == 2:
        metadata(d, s, high)
    elif low == 3:
        method_event(d, s, high)
    elif low == 4:
        exception(d, s, items, high)
    elif low == 5:
        monitor(d, s, items, high)
    elif low == 6:
        heap_event(d, s, items, high)
    elif low == 7:
        sample(d, s, items, high)
    elif low == 8 and version >= 8 and high == 1:
        s[A] = small(d, s)
        s[B] = pointer(d, s)
        s[C] = size32(d, s)
        if s[A] == (5 if version >= 14 else 6):
            s[TEXT] = text(d, s)
    elif low == 9 and 10 <= version <= 15:
        coverage(d, s, items, high)
    elif low == 10 and version >= 13 and high == 0:
        s[A] = byte(d, s)
    elif low == 10 and version >= 16 and high == 1:
        s[TEXT] = text(d, s)
    else:
        s[BAD] = UNKNOWN_EVENT
    if s[BAD] == 0 and s[N_ITEMS] > cython.cast(cython.ulonglong, items.shape[0]):
        s[BAD] = NO_ROOM
    if s[BAD] != 0:
        again(s)
        return False
    return True


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def again(s: cython.ulonglong[::1]) -> cython.void:
    """Back to before the event."""
    s[AT] = s[EVENT_AT]
    s[TS] = s[TS_BEFORE]
    s[METHOD] = s[METHOD_BEFORE]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def allocation(
    d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], items: cython.ulonglong[::1], high: cython.uint
) -> cython.void:
    """A: class, from version 15 on vtable; B: object; C: size."""
    if high > 1:
        s[BAD] = UNKNOWN_EVENT
        return
    s[A] = pointer(d, s)
    s[B] = object_at(d, s)
    s[C] = size32(d, s)
    if high == 1:
        backtrace(d, s, items)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def collection(
    d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], items: cython.ulonglong[::1], high: cython.uint
) -> cython.void:
    """EVENT: A kind, B generation. RESIZE: A size. MOVE: items. HANDLE: A type, B handle, C object. FINALIZE: A
    object."""
    i: cython.Py_ssize_t
    if high == 1:
        s[A] = small(d, s)
        s[B] = small(d, s)
    elif high == 2:
        s[A] = size32(d, s)
    elif high == 3:
        for i in range(count(d, s, 1)):
            add(s, items, object_at(d, s))
    elif 4 <= high <= 7:
        s[A] = uleb(d, s)
        s[B] = uleb(d, s)
        if high == 4 or high == 6:
            s[C] = object_at(d, s)
        if high >= 6:
            backtrace(d, s, items)
    elif s[VERSION] >= 13 and 8 <= high <= 11:
        if high >= 10:
            s[A] = object_at(d, s)
    else:
        s[BAD] = UNKNOWN_EVENT


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def metadata(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], high: cython.uint) -> cython.void:
    """A: what it is; B: its pointer; C: a class's image, an assembly's image, a context's or vtable's domain; D: a
    vtable's class, the place of an image's version id."""
    version: cython.ulonglong = s[VERSION]
    if high != 0 and high != 2 and high != 4:
        s[BAD] = UNKNOWN_EVENT
        return
    what: cython.ulonglong = byte(d, s)
    s[A] = what
    s[B] = pointer(d, s)
    if s[BAD] != 0:
        return
    if what == 1 or (what == 3 and version >= 14):
        s[C] = pointer(d, s)
    if what == 7 and version >= 15:
        s[C] = pointer(d, s)
        s[D] = pointer(d, s)
        return
    if what < 1 or what > 6:
        s[BAD] = UNKNOWN_EVENT
        return
    if version < 13:
        uleb(d, s)
    if what == 6:
        s[C] = pointer(d, s)
    if what <= 3 or (what <= 5 and high == 0):
        s[TEXT] = text(d, s)
    if what == 2 and high == 2 and version >= 16:
        s[D] = text(d, s)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def method_event(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], high: cython.uint) -> cython.void:
    """A: method; JIT: B: its code, C: the code's size."""
    if high < 1 or high > 4:
        s[BAD] = UNKNOWN_EVENT
        return
    s[A] = method(d, s)
    if high == 4:
        s[B] = pointer(d, s)
        s[C] = uleb(d, s)
        s[TEXT] = text(d, s)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def exception(
    d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], items: cython.ulonglong[::1], high: cython.uint
) -> cython.void:
    """THROW: A object. CLAUSE: A type, B index, C method, D object from version 14 on."""
    if high & 7 == 0:
        s[A] = object_at(d, s)
        if high & 8:
            backtrace(d, s, items)
    elif high == 1:
        s[A] = small(d, s)
        s[B] = uleb(d, s)
        s[C] = method(d, s)
        if s[VERSION] >= 14:
            s[D] = object_at(d, s)
    else:
        s[BAD] = UNKNOWN_EVENT


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def monitor(
    d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], items: cython.ulonglong[::1], high: cython.uint
) -> cython.void:
    """A: contention 1, done 2, fail 3; B: object."""
    if high & (7 if s[VERSION] >= 14 else 4):
        s[BAD] = UNKNOWN_EVENT
        return
    s[A] = byte(d, s) if s[VERSION] >= 14 else high & 3
    s[B] = object_at(d, s)
    if high & 8 and (s[VERSION] >= 14 or s[A] == 1):
        backtrace(d, s, items)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def heap_event(
    d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], items: cython.ulonglong[::1], high: cython.uint
) -> cython.void:
    """OBJECT: A object, B class or vtable, C size, D generation, items: what it refers to. ROOT: items.
    ROOT_REGISTER: A start, B size, C source, D key. ROOT_UNREGISTER: A start."""
    version: cython.ulonglong = s[VERSION]
    i: cython.Py_ssize_t
    if high <= 1:
        return
    if high == 2:
        s[A] = object_at(d, s)
        s[B] = pointer(d, s)
        s[C] = size32(d, s)
        if version >= 16:
            s[D] = byte(d, s)
        for i in range(count(d, s, 2 if version >= 2 else 1)):
            if version >= 2:
                uleb(d, s)
            add(s, items, object_at(d, s))
    elif high == 3 and version >= 3:
        roots(d, s, items)
    elif high == 4 and version >= 15:
        s[A] = pointer(d, s)
        s[B] = uleb(d, s)
        s[C] = byte(d, s)
        s[D] = pointer(d, s)
        s[TEXT] = text(d, s)
    elif high == 5 and version >= 15:
        s[A] = pointer(d, s)
    else:
        s[BAD] = UNKNOWN_EVENT


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def sample(
    d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], items: cython.ulonglong[::1], high: cython.uint
) -> cython.void:
    """HIT: A type, B thread, C and D as `addresses` says. USYM: A address, B size. UBIN: A address, B offset in the
    file, C size. COUNTERS: A ms since the first ones, before version 13."""
    version: cython.ulonglong = s[VERSION]
    if high == 0 and version >= 4:
        if version <= 12:
            s[A] = uleb(d, s)
            s[EVENT_TS] = uleb(d, s)
        elif version == 13:
            s[A] = byte(d, s)
        if version >= 11:
            s[B] = pointer(d, s)
        addresses(d, s, items)
    elif high == 1 and version >= 4:
        s[A] = pointer(d, s)
        s[B] = uleb(d, s)
        s[TEXT] = text(d, s)
    elif high == 2 and 4 <= version <= 15:
        s[A] = pointer(d, s) if version >= 14 else sleb(d, s) & s[PTR_MASK]
        s[B] = uleb(d, s)
        s[C] = uleb(d, s)
        s[TEXT] = text(d, s)
    elif high == 3 and version >= 5:
        described(d, s, items)
    elif high == 4 and version >= 5:
        if version <= 12:
            s[A] = uleb(d, s)
        counted(d, s, items)
    else:
        s[BAD] = UNKNOWN_EVENT


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def coverage(
    d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], items: cython.ulonglong[::1], high: cython.uint
) -> cython.void:
    """Items: where the texts are, then the numbers."""
    n_texts: cython.int
    n_numbers: cython.int = 3
    i: cython.int
    if high == 0:
        n_texts = 3
    elif high == 1:
        n_texts = 5
    elif high == 2:
        n_texts = 0
        n_numbers = 5
    elif high == 3:
        n_texts = 2
    else:
        s[BAD] = UNKNOWN_EVENT
        return
    for i in range(n_texts):
        add(s, items, text(d, s))
    for i in range(n_numbers):
        add(s, items, uleb(d, s))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def begin(
    s: cython.ulonglong[::1], buffers: cython.const[cython.ulonglong][::1], row: cython.Py_ssize_t
) -> cython.void:
    at: cython.Py_ssize_t = row * B_WIDTH
    s[AT] = buffers[at + B_AT]
    s[END] = buffers[at + B_END]
    s[TS] = buffers[at + B_TIME]
    s[METHOD] = buffers[at + B_METHOD]
    s[PTR_BASE] = buffers[at + B_PTR]
    s[OBJ_BASE] = buffers[at + B_OBJ]
    s[BEGUN] = 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def are_inside(
    buffers: cython.const[cython.ulonglong][::1], n: cython.Py_ssize_t, size: cython.Py_ssize_t
) -> cython.bint:
    """Whether the buffers lie in the file."""
    i: cython.Py_ssize_t
    limit: cython.ulonglong = size
    for i in range(n):
        if buffers[i * B_WIDTH + B_END] > limit or buffers[i * B_WIDTH + B_AT] > buffers[i * B_WIDTH + B_END]:
            return False
    return True


# ---------------------------------------------------------------- the first pass


def scan(
    d: cython.const[cython.uchar][::1],
    buffers: cython.const[cython.ulonglong][::1],
    stats: cython.ulonglong[::1],
    records: cython.ulonglong[::1],
    pool: cython.ulonglong[::1],
    items: cython.ulonglong[::1],
    kinds: cython.longlong[::1],
    s: cython.ulonglong[::1],
):
    """Goes through all buffers: counts events for each buffer in `stats` and by first byte in `kinds` (256), and keeps
    those that are rare as rows of `records`, with their items in `pool`: all but enters, leaves, allocations, moves,
    objects and roots of heap shots, and samples.

    An event that is damaged ends its buffer. Returns why it stopped: ROWS_FULL, POOL_FULL, ITEMS_FULL (s[N_ITEMS] are
    needed) or DONE.
    """
    n_buffers: cython.Py_ssize_t = buffers.shape[0] // B_WIDTH
    if (
        s.shape[0] < N_STATE
        or kinds.shape[0] < 256
        or stats.shape[0] < n_buffers * S_WIDTH
        or not are_inside(buffers, n_buffers, d.shape[0])
    ):
        raise ValueError("scan: an array has the wrong length")
    result: cython.int = DONE
    of: cython.Py_ssize_t
    row: cython.Py_ssize_t = s[BUFFER]
    p: cython.Py_ssize_t
    safe: cython.Py_ssize_t
    w: cython.ulonglong
    kind: cython.uint
    ts: cython.ulonglong
    meth: cython.ulonglong
    mask: cython.ulonglong = s[PTR_MASK]
    first: cython.ulonglong
    last: cython.ulonglong
    n: cython.longlong
    n_enter: cython.longlong
    n_exc: cython.longlong
    delta: cython.ulonglong
    difference: cython.ulonglong
    length: cython.Py_ssize_t
    with cython.nogil:
        while row < n_buffers:
            of = row * S_WIDTH
            if s[BEGUN] == 0:
                begin(s, buffers, row)
                stats[of + S_FIRST_TS] = ALL
            while s[AT] < s[END]:
                p = s[AT]
                safe = s[END] - 8
                ts = s[TS]
                meth = s[METHOD]
                first = stats[of + S_FIRST_TS]
                last = stats[of + S_LAST_TS]
                n = 0
                n_enter = 0
                n_exc = 0
                while p <= safe:
                    w = load8(d, p)
                    kind = w & 0xFF
                    if kind & 0xCF != 3 or kind == 3:
                        break
                    delta, difference, length = decode_packed(w)
                    if length == 0:
                        break
                    p += length
                    ts += delta
                    meth += difference
                    if n == 0 and ts < first:
                        first = ts
                    n += 1
                    n_enter += kind == 0x23
                    n_exc += kind == 0x33
                if n > 0 and ts > last:
                    last = ts
                s[AT] = p
                s[TS] = wrapped(ts)
                s[METHOD] = meth & mask
                stats[of + S_FIRST_TS] = first
                stats[of + S_LAST_TS] = last
                stats[of + S_ENTER] += n_enter
                stats[of + S_LEAVE] += n - n_enter - n_exc
                stats[of + S_EXC_LEAVE] += n_exc
                stats[of + S_EVENTS] += n
                kinds[0x23] += n_enter
                kinds[0x13] += n - n_enter - n_exc
                kinds[0x33] += n_exc
                if s[AT] >= s[END]:
                    break
                if not step(d, s, items):
                    if s[BAD] == NO_ROOM:
                        result = ITEMS_FULL
                        break
                    stats[of + S_BAD] = s[BAD]
                    stats[of + S_BAD_AT] = s[EVENT_AT]
                    break
                result = keep(s, stats, of, row, records, pool, items)
                if result != DONE:
                    again(s)
                    break
                kinds[s[KIND]] += 1
            if result != DONE:
                break
            row += 1
            s[BEGUN] = 0
    s[BUFFER] = row
    return result


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def keep(
    s: cython.ulonglong[::1],
    stats: cython.ulonglong[::1],
    of: cython.Py_ssize_t,
    row: cython.Py_ssize_t,
    records: cython.ulonglong[::1],
    pool: cython.ulonglong[::1],
    items: cython.ulonglong[::1],
) -> cython.int:
    """Counts the event that was read, and keeps it if it is rare."""
    kind: cython.uint = s[KIND]
    n: cython.Py_ssize_t = s[N_ITEMS]
    at: cython.Py_ssize_t
    i: cython.Py_ssize_t
    bulk: cython.int = 0
    if kind == 0x23:
        bulk = S_ENTER
    elif kind == 0x13:
        bulk = S_LEAVE
    elif kind == 0x33:
        bulk = S_EXC_LEAVE
    elif kind == 0x00 or kind == 0x10:
        bulk = S_ALLOC
    elif kind == 0x31:
        bulk = S_MOVES
    elif kind == 0x26:
        bulk = S_OBJECTS
    elif kind == 0x36:
        bulk = S_ROOTS
    elif kind == 0x07:
        bulk = S_HITS
    if bulk:
        stats[of + bulk] += 1
    else:
        at = s[N_ROWS] * R_WIDTH
        if at + R_WIDTH > records.shape[0]:
            return ROWS_FULL
        if cython.cast(cython.Py_ssize_t, s[N_POOL]) + n > pool.shape[0]:
            return POOL_FULL
        records[at + R_KIND] = kind
        records[at + R_BUFFER] = row
        records[at + R_AT] = s[EVENT_AT]
        records[at + R_TS] = s[EVENT_TS]
        for i in range(4):
            records[at + R_A + i] = s[A + i]
        records[at + R_TEXT] = s[TEXT]
        records[at + R_ITEMS_AT] = s[N_POOL]
        records[at + R_N_ITEMS] = n
        for i in range(n):
            pool[s[N_POOL] + i] = items[i]
        s[N_POOL] += n
        s[N_ROWS] += 1
    stats[of + S_EVENTS] += 1
    # A heap shot's objects and the like have no time of their own before version 13.
    if is_timed(kind, s[VERSION]) or kind == 0x07:
        if s[EVENT_TS] < stats[of + S_FIRST_TS]:
            stats[of + S_FIRST_TS] = s[EVENT_TS]
        if s[EVENT_TS] > stats[of + S_LAST_TS]:
            stats[of + S_LAST_TS] = s[EVENT_TS]
    return DONE


# ---------------------------------------------------------------- names


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def id_of(
    keys: cython.const[cython.ulonglong][::1], ids: cython.const[cython.int][::1], key: cython.ulonglong
) -> cython.int:
    """The number of a pointer in a hash table that is never full; -1 if it is not there."""
    mask: cython.Py_ssize_t = keys.shape[0] - 1
    h: cython.Py_ssize_t = hashed(key) & mask
    while ids[h] >= 0 and keys[h] != key:
        h = (h + 1) & mask
    return ids[h]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def frame_at(
    frames: cython.const[cython.int][::1],
    defined_at: cython.const[cython.int][::1],
    defined_ts: cython.const[cython.longlong][::1],
    defined: cython.const[cython.int][::1],
    number: cython.int,
    ts: cython.ulonglong,
) -> cython.int:
    """The frame of a pointer at a time. Where it was defined several times, the last definition until then counts, or
    the first of all: frames is -2 - n then, and defined[k] counts from defined_ts[k] on, which is never negative, for k
    in defined_at[n]:defined_at[n + 1]."""
    n: cython.Py_ssize_t = frames[number]
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    middle: cython.Py_ssize_t
    if n >= 0:
        return n
    n = -2 - n
    low = defined_at[n]
    high = defined_at[n + 1] - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if cython.cast(cython.ulonglong, defined_ts[middle]) <= ts:
            low = middle
        else:
            high = middle - 1
    return defined[low]


def enter_keys(
    new: cython.const[cython.ulonglong][::1],
    keys: cython.ulonglong[::1],
    ids: cython.int[::1],
):
    """Enters distinct pointers, numbered from 0 on, into an empty hash table: a power of two, more than them."""
    n: cython.Py_ssize_t = new.shape[0]
    size: cython.Py_ssize_t = keys.shape[0]
    if ids.shape[0] != size or size <= n or size & (size - 1):
        raise ValueError("enter_keys: an array has the wrong length")
    mask: cython.Py_ssize_t = size - 1
    h: cython.Py_ssize_t
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            h = hashed(new[i]) & mask
            while ids[h] >= 0:
                h = (h + 1) & mask
            keys[h] = new[i]
            ids[h] = i


def add_key(
    key: cython.ulonglong,
    number: cython.int,
    keys: cython.ulonglong[::1],
    ids: cython.int[::1],
):
    """Enters one more pointer, with its number, into a hash table that is not full."""
    size: cython.Py_ssize_t = keys.shape[0]
    if ids.shape[0] != size or size == 0 or size & (size - 1):
        raise ValueError("add_key: an array has the wrong length")
    h: cython.Py_ssize_t = hashed(key) & (size - 1)
    n: cython.Py_ssize_t = 0
    while ids[h] >= 0:
        h = (h + 1) & (size - 1)
        n += 1
        if n >= size - 1:
            raise ValueError("add_key: the table is full")
    keys[h] = key
    ids[h] = number


def frames_of(
    wanted: cython.const[cython.ulonglong][::1],
    ts: cython.const[cython.longlong][::1],
    keys: cython.const[cython.ulonglong][::1],
    ids: cython.const[cython.int][::1],
    frames: cython.const[cython.int][::1],
    defined_at: cython.const[cython.int][::1],
    defined_ts: cython.const[cython.longlong][::1],
    defined: cython.const[cython.int][::1],
    found: cython.int[::1],
    s: cython.ulonglong[::1],
):
    """The frames of pointers at times. Returns the row of the first pointer that is not in the table, or how many."""
    n: cython.Py_ssize_t = wanted.shape[0]
    i: cython.Py_ssize_t
    number: cython.int
    if (
        s.shape[0] < N_STATE
        or ts.shape[0] != n
        or found.shape[0] != n
        or not is_checked(s, keys, ids, frames, defined_at, defined_ts, defined)
    ):
        raise ValueError("frames_of: an array has the wrong length")
    for i in range(n):
        number = id_of(keys, ids, wanted[i])
        if number < 0:
            return i
        found[i] = frame_at(frames, defined_at, defined_ts, defined, number, ts[i])
    return n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def is_table(
    keys: cython.const[cython.ulonglong][::1],
    ids: cython.const[cython.int][::1],
    frames: cython.const[cython.int][::1],
    defined_at: cython.const[cython.int][::1],
    defined_ts: cython.const[cython.longlong][::1],
    defined: cython.const[cython.int][::1],
) -> cython.bint:
    """Whether nothing in a table of names leads outside it."""
    size: cython.Py_ssize_t = keys.shape[0]
    i: cython.Py_ssize_t
    n_empty: cython.Py_ssize_t = 0
    if size == 0 or ids.shape[0] != size or size & (size - 1) or defined_ts.shape[0] != defined.shape[0]:
        return False
    for i in range(size):
        n_empty += ids[i] < 0
        if ids[i] >= frames.shape[0]:
            return False
    for i in range(frames.shape[0]):
        if frames[i] == -1 or -2 - frames[i] >= defined_at.shape[0] - 1:
            return False
    for i in range(1, defined_at.shape[0]):
        if defined_at[i] <= defined_at[i - 1]:
            return False
    if defined_at.shape[0] > 0 and (defined_at[0] < 0 or defined_at[defined_at.shape[0] - 1] > defined.shape[0]):
        return False
    return n_empty > 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def is_checked(
    s: cython.ulonglong[::1],
    keys: cython.const[cython.ulonglong][::1],
    ids: cython.const[cython.int][::1],
    frames: cython.const[cython.int][::1],
    defined_at: cython.const[cython.int][::1],
    defined_ts: cython.const[cython.longlong][::1],
    defined: cython.const[cython.int][::1],
) -> cython.bint:
    """As `is_table`, which is asked again only where a length has changed: names are added one by one, and to look
    through all of them each time would take a time that grows with their square."""
    prime: cython.ulonglong = PRIME
    lengths: cython.ulonglong = keys.shape[0]
    lengths = wrapped(lengths * prime) + ids.shape[0]
    lengths = wrapped(lengths * prime) + frames.shape[0]
    lengths = wrapped(lengths * prime) + defined_at.shape[0]
    lengths = wrapped(lengths * prime) + defined_ts.shape[0]
    lengths = wrapped(wrapped(lengths * prime) + defined.shape[0])
    if s[CHECKED] == lengths:
        return True
    if not is_table(keys, ids, frames, defined_at, defined_ts, defined):
        return False
    s[CHECKED] = lengths
    return True


# ---------------------------------------------------------------- calls


def calls(
    d: cython.const[cython.uchar][::1],
    buffers: cython.const[cython.ulonglong][::1],
    keys: cython.const[cython.ulonglong][::1],
    ids: cython.const[cython.int][::1],
    frames: cython.const[cython.int][::1],
    defined_at: cython.const[cython.int][::1],
    defined_ts: cython.const[cython.longlong][::1],
    defined: cython.const[cython.int][::1],
    shift_ns: cython.longlong,
    out_ts: cython.longlong[::1],
    out_key: cython.int[::1],
    out_frame: cython.int[::1],
    out_flags: cython.uchar[::1],
    items: cython.ulonglong[::1],
    s: cython.ulonglong[::1],
):
    """The enters and leaves of the buffers of one thread, as recorded, a piece at a time: from row 0 on, s[N_ROWS] of
    them: time (at most s[MAX_TS], moved by shift_ns), the method's number, its frame at that time (of enters), flags.

    s[N_IGNORED] counts leaves of methods that are not in the table: nothing has entered them. The buffers are whole.
    Returns DONE, ROWS_FULL, ASKS_METHOD (s[ASKED] is entered and not in the table) or ITEMS_FULL.
    """
    n_buffers: cython.Py_ssize_t = buffers.shape[0] // B_WIDTH
    room: cython.Py_ssize_t = out_ts.shape[0]
    if (
        s.shape[0] < N_STATE
        or out_key.shape[0] != room
        or out_frame.shape[0] != room
        or out_flags.shape[0] != room
        or not are_inside(buffers, n_buffers, d.shape[0])
        or not is_checked(s, keys, ids, frames, defined_at, defined_ts, defined)
    ):
        raise ValueError("calls: an array has the wrong length")
    result: cython.int = DONE
    row: cython.Py_ssize_t = s[BUFFER]
    p: cython.Py_ssize_t = s[AT]
    end: cython.Py_ssize_t = s[END]
    after: cython.Py_ssize_t
    length: cython.Py_ssize_t
    n: cython.Py_ssize_t = 0
    w: cython.ulonglong
    delta: cython.ulonglong
    difference: cython.ulonglong
    kind: cython.uint
    ts: cython.ulonglong = s[TS]
    meth: cython.ulonglong = s[METHOD]
    new_ts: cython.ulonglong
    new_meth: cython.ulonglong
    mask: cython.ulonglong = s[PTR_MASK]
    max_ts: cython.ulonglong = s[MAX_TS]
    number: cython.int = -1
    known: cython.ulonglong = 0
    begun: cython.bint = s[BEGUN] != 0
    with cython.nogil:
        while True:
            length = 0
            if p + 8 <= end:
                w = load8(d, p)
                kind = w & 0xFF
                if kind & 0xCF == 3 and kind != 3:
                    delta, difference, length = decode_packed(w)
            if length != 0:
                after = p + length
                new_ts = wrapped(ts + delta)
                new_meth = (meth + difference) & mask
            elif p >= end:
                if begun:
                    row += 1
                    begun = False
                if row >= n_buffers:
                    break
                begin(s, buffers, row)
                begun = True
                p = s[AT]
                end = s[END]
                ts = s[TS]
                meth = s[METHOD]
                continue
            else:
                s[AT] = p
                s[TS] = ts
                s[METHOD] = meth
                if not step(d, s, items):
                    if s[BAD] == NO_ROOM:
                        result = ITEMS_FULL
                        break
                    p = end
                    continue
                kind = s[KIND]
                after = s[AT]
                new_ts = s[TS]
                new_meth = s[METHOD]
                if kind & 0xCF != 3 or kind == 3:
                    p = after
                    ts = new_ts
                    meth = new_meth
                    continue
            if n == room:
                result = ROWS_FULL
                break
            if number < 0 or known != new_meth:
                number = id_of(keys, ids, new_meth)
                known = new_meth
            if number >= 0:
                out_ts[n] = cython.cast(cython.longlong, new_ts if new_ts < max_ts else max_ts) + shift_ns
                out_key[n] = number
                if kind == 0x23:
                    out_frame[n] = frame_at(frames, defined_at, defined_ts, defined, number, new_ts)
                    out_flags[n] = 0
                else:
                    out_flags[n] = LEAVES if kind == 0x13 else LEAVES | UNWOUND
                n += 1
            elif kind == 0x23:
                s[ASKED] = new_meth
                result = ASKS_METHOD
                break
            else:
                s[N_IGNORED] += 1
            p = after
            ts = new_ts
            meth = new_meth
    s[BEGUN] = begun
    s[BUFFER] = row
    s[AT] = p
    s[END] = end
    s[TS] = ts
    s[METHOD] = meth
    s[N_ROWS] = n
    return result


# ---------------------------------------------------------------- stacks


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def stack_of(
    prefix: cython.int,
    frame: cython.int,
    stack_prefix: cython.int[::1],
    stack_frame: cython.int[::1],
    slots: cython.int[::1],
    s: cython.ulonglong[::1],
) -> cython.int:
    """The number of a stack, which is new if it has to be; -1 where there is no room."""
    key: cython.ulonglong = cython.cast(cython.uint, prefix) & LOW32
    mask: cython.Py_ssize_t = slots.shape[0] - 1
    n: cython.Py_ssize_t = s[N_STACKS]
    h: cython.Py_ssize_t
    found: cython.int
    key = (key << 32) | cython.cast(cython.uint, frame)
    h = hashed(key ^ (key >> 29)) & mask
    found = slots[h]
    while found >= 0 and not (stack_prefix[found] == prefix and stack_frame[found] == frame):
        h = (h + 1) & mask
        found = slots[h]
    if found >= 0:
        return found
    if n >= stack_prefix.shape[0]:
        return -1
    stack_prefix[n] = prefix
    stack_frame[n] = frame
    slots[h] = n
    s[N_STACKS] = n + 1
    return n


def enter_stacks(
    stack_prefix: cython.const[cython.int][::1],
    stack_frame: cython.const[cython.int][::1],
    n: cython.Py_ssize_t,
    slots: cython.int[::1],
):
    """Enters the first n stacks into an empty hash table: a power of two, at least twice as many as there is room
    for."""
    room: cython.Py_ssize_t = stack_prefix.shape[0]
    if stack_frame.shape[0] != room or n > room or slots.shape[0] < 2 * room or slots.shape[0] & (slots.shape[0] - 1):
        raise ValueError("enter_stacks: an array has the wrong length")
    mask: cython.Py_ssize_t = slots.shape[0] - 1
    h: cython.Py_ssize_t
    i: cython.Py_ssize_t
    key: cython.ulonglong
    with cython.nogil:
        for i in range(n):
            key = cython.cast(cython.uint, stack_prefix[i]) & LOW32
            key = (key << 32) | cython.cast(cython.uint, stack_frame[i])
            h = hashed(key ^ (key >> 29)) & mask
            while slots[h] >= 0:
                h = (h + 1) & mask
            slots[h] = i


def sites(
    d: cython.const[cython.uchar][::1],
    buffers: cython.const[cython.ulonglong][::1],
    keys: cython.const[cython.ulonglong][::1],
    ids: cython.const[cython.int][::1],
    frames: cython.const[cython.int][::1],
    defined_at: cython.const[cython.int][::1],
    defined_ts: cython.const[cython.longlong][::1],
    defined: cython.const[cython.int][::1],
    open_ids: cython.int[::1],
    open_frames: cython.int[::1],
    open_stacks: cython.int[::1],
    n_open: cython.int[::1],
    stack_prefix: cython.int[::1],
    stack_frame: cython.int[::1],
    slots: cython.int[::1],
    out: cython.ulonglong[::1],
    out_stack: cython.int[::1],
    items: cython.ulonglong[::1],
    s: cython.ulonglong[::1],
):
    """Where things happened in the buffers of one thread: a row for each allocation, throw, clause, monitor and handle
    event: in `out` its offset, first byte, time, class (of an allocation), object and size; in `out_stack` the stack,
    which is the event's own backtrace, or else the calls that are open then; -1 where neither is known.

    A piece at a time, as `calls`; n_open as there. Also returns STACKS_FULL and, for items, ITEMS_FULL.
    """
    n_buffers: cython.Py_ssize_t = buffers.shape[0] // B_WIDTH
    room: cython.Py_ssize_t = out_stack.shape[0]
    deepest: cython.Py_ssize_t = open_ids.shape[0]
    depth: cython.Py_ssize_t = s[DEPTH] if s.shape[0] >= N_STATE else -1
    if (
        depth < 0
        or depth > deepest
        or open_frames.shape[0] != deepest
        or open_stacks.shape[0] != deepest
        or n_open.shape[0] < frames.shape[0]
        or out.shape[0] < 6 * room
        or stack_frame.shape[0] != stack_prefix.shape[0]
        or s[N_STACKS] > stack_prefix.shape[0]
        or slots.shape[0] < 2 * stack_prefix.shape[0]
        or slots.shape[0] & (slots.shape[0] - 1)
        or slots.shape[0] == 0
        or not are_inside(buffers, n_buffers, d.shape[0])
        or not is_checked(s, keys, ids, frames, defined_at, defined_ts, defined)
    ):
        raise ValueError("sites: an array has the wrong length")
    result: cython.int = DONE
    row: cython.Py_ssize_t = s[BUFFER]
    n: cython.Py_ssize_t = 0
    q: cython.Py_ssize_t
    i: cython.Py_ssize_t
    kind: cython.uint
    ts: cython.ulonglong
    number: cython.int
    stack: cython.int
    low: cython.uint
    with cython.nogil:
        while result == DONE:
            if s[BEGUN] == 0 or s[AT] >= s[END]:
                if s[BEGUN] != 0:
                    row += 1
                    s[BEGUN] = 0
                if row >= n_buffers:
                    break
                begin(s, buffers, row)
                continue
            if not step(d, s, items):
                if s[BAD] == NO_ROOM:
                    result = ITEMS_FULL
                    break
                s[AT] = s[END]
                continue
            ts = s[TS]
            kind = s[KIND]
            low = kind & 15
            if kind == 0x23:
                number = id_of(keys, ids, s[A])
                if number < 0:
                    s[ASKED] = s[A]
                    result = ASKS_METHOD
                elif depth == deepest:
                    result = DEPTH_FULL
                else:
                    open_ids[depth] = number
                    open_frames[depth] = frame_at(frames, defined_at, defined_ts, defined, number, ts)
                    open_stacks[depth] = -1
                    n_open[number] += 1
                    depth += 1
            elif kind == 0x13 or kind == 0x33:
                number = id_of(keys, ids, s[A])
                if number >= 0 and n_open[number] > 0:
                    q = -1
                    while depth > 0 and q != number:
                        depth -= 1
                        q = open_ids[depth]
                        n_open[q] -= 1
            elif low == 0 or (kind & 0x7F) == 0x04 or kind == 0x14 or low == 5 or (low == 1 and 0x41 <= kind <= 0x71):
                if n == room:
                    result = ROWS_FULL
                    again(s)
                    break
                stack = -1
                if s[N_ITEMS] > 0:
                    for i in range(s[N_ITEMS]):
                        number = id_of(keys, ids, items[i])
                        if number < 0:
                            s[ASKED] = items[i]
                            result = ASKS_METHOD
                            break
                        number = frame_at(frames, defined_at, defined_ts, defined, number, ts)
                        stack = stack_of(stack, number, stack_prefix, stack_frame, slots, s)
                        if stack < 0:
                            result = STACKS_FULL
                            break
                else:
                    q = depth
                    while q > 0 and open_stacks[q - 1] < 0:
                        q -= 1
                    stack = open_stacks[q - 1] if q > 0 else -1
                    while q < depth:
                        stack = stack_of(stack, open_frames[q], stack_prefix, stack_frame, slots, s)
                        if stack < 0:
                            result = STACKS_FULL
                            break
                        open_stacks[q] = stack
                        q += 1
                if result == DONE:
                    out[6 * n] = s[EVENT_AT]
                    out[6 * n + 1] = kind
                    out[6 * n + 2] = ts
                    out[6 * n + 3] = s[A]
                    out[6 * n + 4] = s[B]
                    out[6 * n + 5] = s[C]
                    out_stack[n] = stack
                    n += 1
            if result != DONE:
                again(s)
    s[BUFFER] = row
    s[DEPTH] = depth
    s[N_ROWS] = n
    return result


# ---------------------------------------------------------------- samples, moves, heap shots


def hits(
    d: cython.const[cython.uchar][::1],
    buffers: cython.const[cython.ulonglong][::1],
    keys: cython.const[cython.ulonglong][::1],
    ids: cython.const[cython.int][::1],
    frames: cython.const[cython.int][::1],
    defined_at: cython.const[cython.int][::1],
    defined_ts: cython.const[cython.longlong][::1],
    defined: cython.const[cython.int][::1],
    stack_prefix: cython.int[::1],
    stack_frame: cython.int[::1],
    slots: cython.int[::1],
    out: cython.ulonglong[::1],
    out_stack: cython.int[::1],
    pool: cython.ulonglong[::1],
    items: cython.ulonglong[::1],
    s: cython.ulonglong[::1],
):
    """The samples in the buffers: a row of time, thread, place and number of its addresses in `pool`, the leaf first;
    and in `out_stack` the stack of its managed frames, -1 where it has none. The first s[N_ROWS] rows and s[N_POOL]
    addresses of pool are set.

    Returns DONE, ROWS_FULL, POOL_FULL, STACKS_FULL, ASKS_METHOD or ITEMS_FULL.
    """
    n_buffers: cython.Py_ssize_t = buffers.shape[0] // B_WIDTH
    room: cython.Py_ssize_t = out_stack.shape[0]
    if (
        s.shape[0] < N_STATE
        or out.shape[0] < 4 * room
        or stack_frame.shape[0] != stack_prefix.shape[0]
        or s[N_STACKS] > stack_prefix.shape[0]
        or s[N_POOL] > pool.shape[0]
        or slots.shape[0] < 2 * stack_prefix.shape[0]
        or slots.shape[0] & (slots.shape[0] - 1)
        or slots.shape[0] == 0
        or not are_inside(buffers, n_buffers, d.shape[0])
        or not is_checked(s, keys, ids, frames, defined_at, defined_ts, defined)
    ):
        raise ValueError("hits: an array has the wrong length")
    result: cython.int = DONE
    row: cython.Py_ssize_t = s[BUFFER]
    n: cython.Py_ssize_t = s[N_ROWS]
    i: cython.Py_ssize_t
    n_addresses: cython.Py_ssize_t
    number: cython.int
    stack: cython.int
    with cython.nogil:
        while result == DONE:
            if s[BEGUN] == 0 or s[AT] >= s[END]:
                if s[BEGUN] != 0:
                    row += 1
                    s[BEGUN] = 0
                if row >= n_buffers:
                    break
                begin(s, buffers, row)
                continue
            if not step(d, s, items):
                if s[BAD] == NO_ROOM:
                    result = ITEMS_FULL
                    break
                s[AT] = s[END]
                continue
            if s[KIND] != 0x07:
                continue
            n_addresses = s[C]
            if n >= room:
                result = ROWS_FULL
            elif cython.cast(cython.Py_ssize_t, s[N_POOL]) + n_addresses > pool.shape[0]:
                result = POOL_FULL
            stack = -1
            i = s[N_ITEMS]
            while result == DONE and i > n_addresses:
                i -= 1
                number = id_of(keys, ids, items[i])
                if number < 0:
                    s[ASKED] = items[i]
                    result = ASKS_METHOD
                    break
                number = frame_at(frames, defined_at, defined_ts, defined, number, s[EVENT_TS])
                stack = stack_of(stack, number, stack_prefix, stack_frame, slots, s)
                if stack < 0:
                    result = STACKS_FULL
            if result != DONE:
                again(s)
                break
            out[4 * n] = s[EVENT_TS]
            out[4 * n + 1] = s[B]
            out[4 * n + 2] = s[N_POOL]
            out[4 * n + 3] = n_addresses
            for i in range(n_addresses):
                pool[s[N_POOL] + i] = items[i]
            s[N_POOL] += n_addresses
            out_stack[n] = stack
            n += 1
    s[BUFFER] = row
    s[N_ROWS] = n
    return result


def moves(
    d: cython.const[cython.uchar][::1],
    buffers: cython.const[cython.ulonglong][::1],
    out: cython.ulonglong[::1],
    items: cython.ulonglong[::1],
    s: cython.ulonglong[::1],
):
    """The moved objects in the buffers, a piece at a time: s[N_ROWS] rows of time, old and new address.

    Returns DONE, ROWS_FULL or ITEMS_FULL; there must be room for the largest event.
    """
    n_buffers: cython.Py_ssize_t = buffers.shape[0] // B_WIDTH
    room: cython.Py_ssize_t = out.shape[0] // 3
    if s.shape[0] < N_STATE or not are_inside(buffers, n_buffers, d.shape[0]):
        raise ValueError("moves: an array has the wrong length")
    result: cython.int = DONE
    row: cython.Py_ssize_t = s[BUFFER]
    n: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    n_pairs: cython.Py_ssize_t
    with cython.nogil:
        while result == DONE:
            if s[BEGUN] == 0 or s[AT] >= s[END]:
                if s[BEGUN] != 0:
                    row += 1
                    s[BEGUN] = 0
                if row >= n_buffers:
                    break
                begin(s, buffers, row)
                continue
            if not step(d, s, items):
                if s[BAD] == NO_ROOM:
                    result = ITEMS_FULL
                    break
                s[AT] = s[END]
                continue
            if s[KIND] != 0x31:
                continue
            n_pairs = s[N_ITEMS] >> 1
            if n + n_pairs > room:
                result = ROWS_FULL
                again(s)
                break
            for i in range(n_pairs):
                out[3 * n] = s[EVENT_TS]
                out[3 * n + 1] = items[2 * i]
                out[3 * n + 2] = items[2 * i + 1]
                n += 1
    s[BUFFER] = row
    s[N_ROWS] = n
    return result


def heap(
    d: cython.const[cython.uchar][::1],
    buffers: cython.const[cython.ulonglong][::1],
    objects: cython.ulonglong[::1],
    references: cython.ulonglong[::1],
    held: cython.ulonglong[::1],
    items: cython.ulonglong[::1],
    s: cython.ulonglong[::1],
):
    """What heap shots list in parts of buffers: s[N_ROWS] rows of `objects`: time, address, class, size, how many
    references; those one after the other in `references`, s[N_POOL]; and s[N_SECOND] rows of `held`, the roots:
    time, and address of the root, object, 0 (from version 15 on) or object, kind, something more.

    Returns DONE, ROWS_FULL, POOL_FULL (of references), SECOND_FULL (of roots) or ITEMS_FULL.
    """
    n_buffers: cython.Py_ssize_t = buffers.shape[0] // B_WIDTH
    if s.shape[0] < N_STATE or s[N_POOL] > references.shape[0] or not are_inside(buffers, n_buffers, d.shape[0]):
        raise ValueError("heap: an array has the wrong length")
    result: cython.int = DONE
    row: cython.Py_ssize_t = s[BUFFER]
    n: cython.Py_ssize_t = s[N_ROWS]
    n_held: cython.Py_ssize_t = s[N_SECOND]
    i: cython.Py_ssize_t
    width: cython.Py_ssize_t = 2 if s[VERSION] >= 15 else 3
    n_items: cython.Py_ssize_t
    with cython.nogil:
        while result == DONE:
            if s[BEGUN] == 0 or s[AT] >= s[END]:
                if s[BEGUN] != 0:
                    row += 1
                    s[BEGUN] = 0
                if row >= n_buffers:
                    break
                begin(s, buffers, row)
                continue
            if not step(d, s, items):
                if s[BAD] == NO_ROOM:
                    result = ITEMS_FULL
                    break
                s[AT] = s[END]
                continue
            n_items = s[N_ITEMS]
            if s[KIND] == 0x26:
                if 5 * (n + 1) > objects.shape[0]:
                    result = ROWS_FULL
                elif cython.cast(cython.Py_ssize_t, s[N_POOL]) + n_items > references.shape[0]:
                    result = POOL_FULL
                else:
                    objects[5 * n] = s[EVENT_TS]
                    objects[5 * n + 1] = s[A]
                    objects[5 * n + 2] = s[B]
                    objects[5 * n + 3] = s[C]
                    objects[5 * n + 4] = n_items
                    for i in range(n_items):
                        references[s[N_POOL] + i] = items[i]
                    s[N_POOL] += n_items
                    n += 1
            elif s[KIND] == 0x36:
                if 4 * (n_held + n_items // width) > held.shape[0]:
                    result = SECOND_FULL
                else:
                    for i in range(n_items // width):
                        held[4 * n_held] = s[EVENT_TS]
                        held[4 * n_held + 1] = items[width * i]
                        held[4 * n_held + 2] = items[width * i + 1]
                        held[4 * n_held + 3] = items[width * i + 2] if width == 3 else 0
                        n_held += 1
            if result != DONE:
                again(s)
    s[BUFFER] = row
    s[N_ROWS] = n
    s[N_SECOND] = n_held
    return result


def events(
    d: cython.const[cython.uchar][::1],
    buffers: cython.const[cython.ulonglong][::1],
    out: cython.ulonglong[::1],
    items: cython.ulonglong[::1],
    s: cython.ulonglong[::1],
):
    """The next event of the buffers, for those who print them: `out` (8) gets its offset, first byte, time, A to D
    and the place of its text, s[N_ITEMS] items are in `items`. Returns DONE where there is none left, ROWS_FULL for an
    event, ITEMS_FULL, or POOL_FULL for one that is damaged, which ends its buffer: s[BAD] says how."""
    n_buffers: cython.Py_ssize_t = buffers.shape[0] // B_WIDTH
    if s.shape[0] < N_STATE or out.shape[0] < 8 or not are_inside(buffers, n_buffers, d.shape[0]):
        raise ValueError("events: an array has the wrong length")
    i: cython.int
    while s[BEGUN] == 0 or s[AT] >= s[END]:
        if s[BEGUN] != 0:
            s[BUFFER] += 1
            s[BEGUN] = 0
        if s[BUFFER] >= n_buffers:
            return DONE
        begin(s, buffers, s[BUFFER])
    if step(d, s, items):
        out[0] = s[EVENT_AT]
        out[1] = s[KIND]
        out[2] = s[EVENT_TS]
        for i in range(4):
            out[3 + i] = s[A + i]
        out[7] = s[TEXT]
        return ROWS_FULL
    if s[BAD] == NO_ROOM:
        return ITEMS_FULL
    s[AT] = s[END]
    return POOL_FULL


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    scan = plain_integers(scan)
    enter_keys = plain_integers(enter_keys)
    add_key = plain_integers(add_key)
    frames_of = plain_integers(frames_of)
    calls = plain_integers(calls)
    enter_stacks = plain_integers(enter_stacks)
    sites = plain_integers(sites)
    hits = plain_integers(hits)
    moves = plain_integers(moves)
    heap = plain_integers(heap)
    events = plain_integers(events)
