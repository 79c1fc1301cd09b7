"""Reads events. `step` knows every event of every version and is the only place that does."""

import cython

from traceferry.importers.mono.fields_inlined import (
    add,
    addresses,
    backtrace,
    byte,
    count,
    counted,
    described,
    method,
    object_at,
    pointer,
    roots,
    size32,
    sleb,
    small,
    text,
    uleb,
)
from traceferry.importers.mono.state_inlined import (
    AT,
    B_AT,
    B_END,
    B_METHOD,
    B_OBJ,
    B_PTR,
    B_TIME,
    B_WIDTH,
    BAD,
    BEGUN,
    END,
    EVENT_AT,
    EVENT_TS,
    KIND,
    METHOD,
    METHOD_BEFORE,
    N_ITEMS,
    NO_ROOM,
    OBJ_BASE,
    PTR_BASE,
    PTR_MASK,
    TEXT,
    TS,
    TS_BEFORE,
    UNKNOWN_EVENT,
    VERSION,
    A,
    B,
    C,
    D,
    wrapped,
)


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


# ---------------------------------------------------------------- the events


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


# ---------------------------------------------------------------- buffers


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
