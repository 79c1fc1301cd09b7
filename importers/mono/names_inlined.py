"""Pointers as numbers: in a hash table, and by the time where a pointer was defined several times."""

import cython

from traceferry.kernels.functions import c_function, c_inline
from traceferry.kernels.hashing import ALL_BITS, GOLDEN


@cython.final
@cython.cclass
class NameTable:
    """keys, ids: open addressing, a power of two of slots, at most half of them used: the number of each pointer; -1 is
    a free slot. For each number: pointers; frames, -1 where it has none yet; last, the last definition of its pointer,
    which are numbers one after the other; defined_ts, when it counts from. n_names: how many there are, at most the
    length of these arrays."""

    keys: cython.ulonglong[::1]
    ids: cython.int[::1]
    pointers: cython.ulonglong[::1]
    frames: cython.const[cython.int][::1]
    last: cython.int[::1]
    defined_ts: cython.const[cython.longlong][::1]
    n_names: cython.longlong[::1]

    def __init__(self, arrays: tuple):
        """Of the arrays in that order. Raises ValueError where their lengths do not fit together."""
        self.keys, self.ids, self.pointers, self.frames, self.last, self.defined_ts, self.n_names = arrays
        room: cython.Py_ssize_t = self.last.shape[0]
        size: cython.Py_ssize_t = self.keys.shape[0]
        if (
            self.n_names.shape[0] != 1
            or not 0 <= self.n_names[0] <= room
            or size <= room
            or size & (size - 1)
            or self.ids.shape[0] != size
            or self.pointers.shape[0] != room
            or self.frames.shape[0] != room
            or self.defined_ts.shape[0] != room
        ):
            raise ValueError("names: an array has the wrong length")

    @c_function
    def find(self, key: cython.ulonglong) -> cython.int:
        """The number of a pointer, or -1."""
        return self.ids[slot_of(self.keys, self.ids, key)]

    @c_function
    def add(self, key: cython.ulonglong) -> cython.int:
        """The number of a pointer, which is new if it has to be; -1 where the arrays are full."""
        h: cython.Py_ssize_t = slot_of(self.keys, self.ids, key)
        n: cython.int = self.n_names[0]
        if self.ids[h] >= 0:
            return self.ids[h]
        if n >= self.last.shape[0]:
            return -1
        self.keys[h] = key
        self.ids[h] = n
        self.pointers[n] = key
        self.last[n] = n
        self.n_names[0] = n + 1
        return n

    @c_function
    def definition_at(self, number: cython.int, ts: cython.ulonglong) -> cython.int:
        """The definition of a pointer that counts at a time: the last one until then, or the first of all."""
        high: cython.int = self.last[number]
        middle: cython.int
        while number < high:
            middle = (number + high + 1) >> 1
            if cython.cast(cython.ulonglong, self.defined_ts[middle]) <= ts:
                number = middle
            else:
                high = middle - 1
        return number

    @c_function
    def frame_at(self, number: cython.int, ts: cython.ulonglong) -> cython.int:
        """-1: it has none yet, or there is no number."""
        return self.frames[self.definition_at(number, ts)] if number >= 0 else -1


@c_inline
def slot_of(
    keys: cython.const[cython.ulonglong][::1], ids: cython.const[cython.int][::1], key: cython.ulonglong
) -> cython.Py_ssize_t:
    """Where a pointer stands, or the free slot where it belongs."""
    mask: cython.ulonglong = keys.shape[0] - 1
    h: cython.ulonglong = (key * GOLDEN & ALL_BITS) >> 32 & mask
    while ids[h] >= 0 and keys[h] != key:
        h = (h + 1) & mask
    return h
