"""Looks up the frames of pointers: in a hash table, and by the time where a pointer was defined several times."""

import cython

from traceferry.importers.mono.state_inlined import CHECKED, wrapped

GOLDEN = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
PRIME = cython.declare(cython.ulonglong, 0x100000001B3)


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
