"""Pointers as numbers: in a hash table, and by the time where a pointer was defined several times."""

import cython

from traceferry.kernels.functions import c_function
from traceferry.kernels.interning import intern_pair, slot_of_pair


@cython.final
@cython.cclass
class NameTable:
    """For each number: nth, which definition of its pointer it is; pointers; frames, -1 where it has none yet; last,
    the last definition of its pointer: they follow one another; defined_ts, from when on it counts. slots: see
    interning.py; n_names: how many there are, at most the length of the columns."""

    nth: cython.int[::1]
    pointers: cython.ulonglong[::1]
    frames: cython.int[::1]
    last: cython.int[::1]
    defined_ts: cython.longlong[::1]
    slots: cython.int[::1]
    n_names: cython.longlong[::1]

    def __init__(self, arrays: tuple):
        """Of the arrays in that order. Raises ValueError where their lengths do not fit together."""
        self.nth, self.pointers, self.frames, self.last, self.defined_ts, self.slots, self.n_names = arrays
        room: cython.Py_ssize_t = self.last.shape[0]
        size: cython.Py_ssize_t = self.slots.shape[0]
        if (
            self.n_names.shape[0] != 1
            or not 0 <= self.n_names[0] <= room
            or size <= room
            or size & (size - 1)
            or self.nth.shape[0] != room
            or self.pointers.shape[0] != room
            or self.frames.shape[0] != room
            or self.defined_ts.shape[0] != room
        ):
            raise ValueError("names: an array has the wrong length")

    @c_function
    def find(self, pointer: cython.ulonglong) -> cython.int:
        """Its number, or -1."""
        return self.slots[slot_of_pair(self.nth, self.pointers, self.slots, 0, pointer)]

    @c_function
    def add(self, pointer: cython.ulonglong) -> cython.int:
        """Its number, which is new if it has to be; -1 where the table is full."""
        n: cython.int = self.n_names[0]
        if n == self.last.shape[0]:
            return -1
        number: cython.int = intern_pair(self.nth, self.pointers, self.slots, n, 0, pointer)
        if number == n:
            self.frames[n] = -1
            self.last[n] = n
            self.defined_ts[n] = 0
            self.n_names[0] = n + 1
        return number

    @c_function
    def definition_at(self, number: cython.int, ts: cython.ulonglong) -> cython.int:
        """The definition of a pointer that counts at a time: the last one until then, or the first of all."""
        high: cython.int = self.last[number]
        while number < high:
            middle: cython.int = (number + high + 1) >> 1
            if cython.cast(cython.ulonglong, self.defined_ts[middle]) <= ts:
                number = middle
            else:
                high = middle - 1
        return number

    @c_function
    def frame_at(self, number: cython.int, ts: cython.ulonglong) -> cython.int:
        """-1: it has none yet, or there is no number."""
        return self.frames[self.definition_at(number, ts)] if number >= 0 else -1
