"""Rows of whole numbers, each once."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcmp, memcpy

import numpy as np

from traceferry.native.hashing cimport GOLDEN, fill_slots

from traceferry.native.arrays import doubled

cdef enum:
    FIRST_ROWS = 1 << 8


cdef class RowTable:
    """Rows of `width` whole numbers, numbered as they are met."""

    cdef int64_t[:, ::1] held
    cdef uint64_t[::1] hashes
    cdef int32_t[::1] slots
    cdef int32_t n_rows

    def __cinit__(self, Py_ssize_t width):
        if width < 1:
            raise ValueError("RowTable: rows without columns")
        self.held, self.hashes = np.empty((FIRST_ROWS, width), np.int64), np.empty(FIRST_ROWS, np.uint64)
        self.slots = np.full(2 * FIRST_ROWS, -1, np.int32)

    def __len__(self):
        return self.n_rows

    @property
    def rows(self):
        """int64, in the order in which they were met."""
        return np.asarray(self.held)[:self.n_rows]

    def intern(self, const int64_t[:, ::1] rows not None):
        """Returns the number of each row, int32."""
        cdef Py_ssize_t n = rows.shape[0]
        cdef Py_ssize_t i = 0
        if rows.shape[1] != self.held.shape[1]:
            raise ValueError("RowTable: rows of another width")
        found = np.empty(n, np.int32)
        cdef int32_t[::1] numbers = found
        while i < n:
            with nogil:
                while i < n and self.n_rows < self.held.shape[0]:
                    numbers[i] = self.number(&rows[i, 0])
                    i += 1
            if i < n:
                self.grow()
        return found

    cdef int32_t number(self, const int64_t* values) noexcept nogil:
        cdef Py_ssize_t width = self.held.shape[1]
        cdef Py_ssize_t column
        cdef uint64_t mask = self.slots.shape[0] - 1
        cdef uint64_t h = 0
        cdef uint64_t at
        cdef int32_t row
        for column in range(width):
            h = (h ^ <uint64_t> values[column]) * <uint64_t> GOLDEN
            h ^= h >> 32
        at = h & mask
        row = self.slots[at]
        while row >= 0:
            if self.hashes[row] == h and memcmp(&self.held[row, 0], values, 8 * width) == 0:
                return row
            at = (at + 1) & mask
            row = self.slots[at]
        row = self.n_rows
        memcpy(&self.held[row, 0], values, 8 * width)
        self.hashes[row], self.slots[at] = h, row
        self.n_rows = row + 1
        return row

    cdef int grow(self) except -1:
        self.held, self.hashes = doubled(np.asarray(self.held)), doubled(np.asarray(self.hashes))
        self.slots = np.full(2 * self.held.shape[0], -1, np.int32)
        fill_slots(self.hashes, self.slots, self.n_rows)
        return 0
