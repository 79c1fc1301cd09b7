"""Pointers as numbers: in a hash table, and by the time where a pointer was defined several times.

keys, ids: open addressing, a power of two of slots, at most half of them used: the number of each pointer; -1 is a free
slot. For each number: pointers; frames, -1 where it has none yet; last, the last definition of its pointer, which are
numbers one after the other; defined_ts, when it counts from. n_names: how many there are, at most the length of these
arrays.
"""

import cython

from traceferry.kernels.hashing import ALL_BITS, GOLDEN


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def slot_of(
    keys: cython.const[cython.ulonglong][::1], ids: cython.const[cython.int][::1], key: cython.ulonglong
) -> cython.Py_ssize_t:
    """Where a pointer stands, or the free slot where it belongs."""
    mask: cython.ulonglong = keys.shape[0] - 1
    h: cython.ulonglong = (key * GOLDEN & ALL_BITS) >> 32 & mask
    while ids[h] >= 0 and keys[h] != key:
        h = (h + 1) & mask
    return h


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def definition_at(
    last: cython.const[cython.int][::1],
    defined_ts: cython.const[cython.longlong][::1],
    number: cython.int,
    ts: cython.ulonglong,
) -> cython.int:
    """The definition of a pointer that counts at a time: the last one until then, or the first of all."""
    high: cython.int = last[number]
    middle: cython.int
    while number < high:
        middle = (number + high + 1) >> 1
        if cython.cast(cython.ulonglong, defined_ts[middle]) <= ts:
            number = middle
        else:
            high = middle - 1
    return number


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def added(
    keys: cython.ulonglong[::1],
    ids: cython.int[::1],
    pointers: cython.ulonglong[::1],
    last: cython.int[::1],
    n_names: cython.longlong[::1],
    key: cython.ulonglong,
) -> cython.int:
    """The number of a pointer, which is new if it has to be; -1 where the arrays are full."""
    h: cython.Py_ssize_t = slot_of(keys, ids, key)
    n: cython.int
    if ids[h] >= 0:
        return ids[h]
    n = n_names[0]
    if n >= last.shape[0]:
        return -1
    keys[h] = key
    ids[h] = n
    pointers[n] = key
    last[n] = n
    n_names[0] = n + 1
    return n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def is_table(
    keys: cython.const[cython.ulonglong][::1],
    ids: cython.const[cython.int][::1],
    pointers: cython.const[cython.ulonglong][::1],
    frames: cython.const[cython.int][::1],
    last: cython.const[cython.int][::1],
    defined_ts: cython.const[cython.longlong][::1],
    n_names: cython.const[cython.longlong][::1],
) -> cython.bint:
    """Whether the lengths fit together."""
    room: cython.Py_ssize_t = last.shape[0]
    size: cython.Py_ssize_t = keys.shape[0]
    return (
        n_names.shape[0] == 1
        and 0 <= n_names[0] <= room
        and size > room
        and size & (size - 1) == 0
        and ids.shape[0] == size
        and pointers.shape[0] == room
        and frames.shape[0] == room
        and defined_ts.shape[0] == room
    )
