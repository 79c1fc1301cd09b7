"""Reads the fields of events: numbers, pointers, texts, lists of them. `s` is the state, see `state_inlined`."""

import sys

import cython

from traceferry.importers.mono.state_inlined import (
    ALL,
    AT,
    BAD,
    BAD_COUNT,
    COUNTERS_VERSION,
    CUT,
    END,
    ENDLESS,
    LOW32,
    METHOD,
    N_ITEMS,
    OBJ_BASE,
    PTR_BASE,
    PTR_MASK,
    UNKNOWN_VALUE,
    VERSION,
    A,
    C,
    D,
    wrapped,
)

LITTLE_ENDIAN = cython.declare(cython.bint, sys.byteorder == "little")
TOP = cython.declare(cython.ulonglong, 0x8000000000000000)
FOURTH_ENDS = cython.declare(cython.ulonglong, 0x80000000)

# ---------------------------------------------------------------- numbers


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
