"""Sets of addresses, as ranges of compiled code. ranges.py has those of Python code."""

cimport cython
from libc.stdint cimport uint64_t

from traceferry.native.memory cimport resized


cdef struct Range:
    uint64_t begin
    uint64_t end


@cython.final
cdef class Ranges:
    cdef Range* held
    cdef Py_ssize_t n
    cdef Py_ssize_t n_room

    cdef inline int add(self, uint64_t begin, uint64_t end) except -1:
        if self.n == self.n_room:
            self.n_room = 2 * self.n_room + 16
            self.held = <Range*>resized(self.held, self.n_room * sizeof(Range))
        self.held[self.n].begin, self.held[self.n].end = begin, end
        self.n += 1
        return 0

    cdef void merge_from(self, Py_ssize_t first) noexcept nogil
