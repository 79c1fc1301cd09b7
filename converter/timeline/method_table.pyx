"""See `method_table.pxd`."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t

from traceferry.native.arrays import longer

from traceferry.native.interning cimport enter_pairs


cdef class MethodTable:
    def __cinit__(self, pointers, ts, frames, nameless):
        """pointers: uint64; ts: int64, when each was defined; frames: int32. A definition counts from its time on, the
        first one also before: definitions may follow their first use. nameless: makes the frame of a pointer that is
        not defined."""
        cdef int32_t n = len(pointers)
        order = np.lexsort((ts, pointers))
        _, first, n_times = np.unique(pointers[order], return_index=True, return_counts=True)
        self.nth = (np.arange(n) - np.repeat(first, n_times)).astype(np.int32)
        self.pointer = pointers[order]
        self.frame = frames[order]
        self.last = np.repeat(first + n_times - 1, n_times).astype(np.int32)
        self.defined_ts = ts[order]
        self.n = self.n_defined = self.n_named = n
        self.nameless = nameless
        self.resize(2 * n + 16)

    @property
    def frames(self):
        """int32, by number; longer than there are numbers."""
        return np.asarray(self.frame)

    @property
    def n_unnamed(self):
        """How many pointers were not defined."""
        return self.n_named - self.n_defined

    def name(self):
        """Makes frames for the pointers that kernels have added, in their order, and room for more."""
        cdef int32_t i
        if self.n == self.last.shape[0]:
            self.resize(2 * self.last.shape[0])
        for i in range(self.n_named, self.n):
            self.frame[i] = self.nameless(self.pointer[i])
        self.n_named = self.n

    def at(self, pointers, ts):
        """Returns the frames of pointers (uint64) at times (int64); those of unknown ones are made."""
        numbers = self.numbers(pointers, ts)
        return self.frames[numbers]

    def lasting(self, pointers):
        """Returns the frames of pointers (uint64), None if any of them was defined several times."""
        numbers = self.numbers(pointers, np.zeros(len(pointers), np.int64))
        return self.frames[numbers] if np.array_equal(np.asarray(self.last)[numbers], numbers) else None

    def numbers(self, pointers, ts):
        """Returns the numbers of the definitions of pointers (uint64) that count at times (int64)."""
        cdef const uint64_t[::1] wanted = np.ascontiguousarray(pointers, np.uint64)
        cdef const int64_t[::1] times = np.ascontiguousarray(ts, np.int64)
        cdef int32_t[::1] found = np.empty(wanted.shape[0], np.int32)
        cdef int32_t number
        cdef Py_ssize_t i
        if times.shape[0] != wanted.shape[0]:
            raise ValueError("numbers: an array has the wrong length")
        for i in range(wanted.shape[0]):
            if self.n == self.last.shape[0]:
                self.resize(2 * self.last.shape[0])
            number = self.add(wanted[i])
            found[i] = self.definition_at(number, times[i])
        self.name()
        return np.asarray(found)

    def continued(self, nameless):
        """Returns a copy, in which pointers that are not defined get their frames from another function."""
        none = [column[:0] for column in self.columns()]
        cdef MethodTable other = MethodTable(none[1], none[4], none[2], nameless)
        other.nth, other.pointer, other.frame, other.last, other.defined_ts = [c.copy() for c in self.columns()]
        other.slots = np.array(self.slots)
        other.n, other.n_defined, other.n_named = self.n, self.n_defined, self.n_named
        return other

    cdef list columns(self):
        return [
            np.asarray(self.nth), np.asarray(self.pointer), np.asarray(self.frame), np.asarray(self.last),
            np.asarray(self.defined_ts),
        ]

    cdef resize(self, Py_ssize_t size):
        """Makes room for so many numbers."""
        columns = [longer(column, size) for column in self.columns()]
        self.nth, self.pointer, self.frame, self.last, self.defined_ts = columns
        self.slots = np.full(1 << (2 * size - 1).bit_length(), -1, np.int32)
        enter_pairs(self.nth, self.pointer, self.slots, 0, self.n)
