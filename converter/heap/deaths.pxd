cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t


@cython.final
cdef class Deaths:
    # The number of the first object of each event, and behind them of what comes after the last one.
    cdef int32_t* firsts
    cdef Py_ssize_t n_events
    # Of each object that did not die as its like: its number, and in the lower half the event, -1 for none.
    cdef uint64_t* others
    cdef readonly Py_ssize_t n_others
    cdef int64_t n_objects
    cdef bint die_at_once

    cdef int add(self, int64_t number, int64_t event) except -1 nogil
    cdef int hold(self, int64_t number, int64_t event) except -1 nogil
    cdef int end_event(self, int64_t n_objects) except -1
    cdef int end(self, int64_t n_objects) except -1
    cdef Py_ssize_t event_of(self, int64_t number) noexcept nogil
    cdef Py_ssize_t first_from(self, int64_t number) noexcept nogil
    cdef inline int64_t number_of(self, Py_ssize_t other) noexcept nogil:
        return <int64_t>(self.others[other] >> 32)

    cdef inline bint is_last(self, int64_t number) noexcept nogil:
        """Whether the object was allocated after the last event."""
        return number >= self.firsts[self.n_events]
