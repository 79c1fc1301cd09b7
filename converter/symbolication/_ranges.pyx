"""Sets of addresses: ranges of them that become more."""

cimport cython
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, qsort


cdef int by_begin(const void* one, const void* other) noexcept nogil:
    cdef const Range* a = <const Range*>one
    cdef const Range* b = <const Range*>other
    if a.begin != b.begin:
        return -1 if a.begin < b.begin else 1
    return 0 if a.end == b.end else -1 if a.end < b.end else 1


@cython.final
cdef class Ranges:
    """Ranges of addresses that become more."""

    def __dealloc__(self):
        free(self.held)

    cdef void merge_from(self, Py_ssize_t first) noexcept nogil:
        """Sorts those from `first` on; what touches becomes one; empty ones go."""
        cdef Py_ssize_t nth
        cdef Py_ssize_t last = first - 1
        if self.n - first > 1:
            qsort(&self.held[first], self.n - first, sizeof(Range), by_begin)
        for nth in range(first, self.n):
            if self.held[nth].begin >= self.held[nth].end:
                continue
            if last >= first and self.held[nth].begin <= self.held[last].end:
                if self.held[nth].end > self.held[last].end:
                    self.held[last].end = self.held[nth].end
            else:
                last += 1
                self.held[last] = self.held[nth]
        self.n = last + 1
