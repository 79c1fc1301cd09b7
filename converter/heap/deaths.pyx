"""In which event of the heap each of many objects died.

Most objects die in the first collection after their allocation. Where a log tells which, only the others are held, each
with 8 bytes: memory grows with the objects that outlive a collection, not with those that are allocated.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free

import numpy as np

from traceferry.native.memory cimport grown


@cython.final
cdef class Deaths:
    """Objects are numbered from 0 in the order of their allocation, events too. die_at_once: whether an object that is
    not added died in the event after its allocation, if there was one; else it did not die. n_others: how many are
    added."""

    def __cinit__(self, bint die_at_once):
        self.die_at_once = die_at_once
        self.firsts = <int32_t*>grown(NULL, 0, sizeof(int32_t))
        self.firsts[0] = 0

    def __dealloc__(self):
        free(self.firsts)
        free(self.others)

    def __len__(self):
        return self.n_objects

    cdef int add(self, int64_t number, int64_t event) except -1 nogil:
        """Says in which event an object died, -1: in none. The last one may not be over."""
        if not self.die_at_once:
            if event < 0:
                return 0
        elif 0 <= event <= self.n_events and self.firsts[event] <= number:
            if event == self.n_events or number < self.firsts[event + 1]:
                return 0
        return self.hold(number, event)

    cdef int hold(self, int64_t number, int64_t event) except -1 nogil:
        """Says so of an object of which something else was said, too: what is unknown goes before."""
        if self.n_others == 0 or self.n_others & (self.n_others - 1) == 0:
            with gil:
                self.others = <uint64_t*>grown(self.others, self.n_others, sizeof(uint64_t))
        self.others[self.n_others] = <uint64_t>number << 32 | <uint32_t>event
        self.n_others += 1
        return 0

    cdef int end_event(self, int64_t n_objects) except -1:
        """Ends an event. n_objects: how many there are by then."""
        self.firsts = <int32_t*>grown(self.firsts, self.n_events + 1, sizeof(int32_t))
        self.n_events += 1
        self.firsts[self.n_events] = <int32_t>n_objects
        return 0

    cdef int end(self, int64_t n_objects) except -1:
        """Nothing is added afterwards."""
        self.n_objects = n_objects
        if self.n_others:
            np.asarray(<uint64_t[: self.n_others]>self.others).sort()
        return 0

    def take(self, const int64_t[::1] numbers):
        """Returns for each object the event in which it died, int32; -1: it survived, or unknown. Numbers that rise by 1
        are the fastest. Raises IndexError for one that is not given."""
        cdef Py_ssize_t n = numbers.shape[0]
        cdef Py_ssize_t i = 0
        cdef Py_ssize_t event = 0
        cdef Py_ssize_t at = 0
        cdef int64_t last = -2
        cdef int64_t number, end
        found = np.empty(n, np.int32)
        cdef int32_t[::1] died = found
        with nogil:
            while i < n:
                number = numbers[i]
                if not 0 <= number < self.n_objects:
                    break
                if number != last + 1:
                    event, at = self.event_of(number), self.first_from(number)
                while event < self.n_events and self.firsts[event + 1] <= number:
                    event += 1
                last = number
                if at < self.n_others and self.number_of(at) == number:
                    # Of several the last: what is unknown is behind what is known.
                    while at < self.n_others and self.number_of(at) == number:
                        died[i] = <int32_t><uint32_t>self.others[at]
                        at += 1
                    died[i] = died[i] if died[i] < self.n_events else -1
                    i += 1
                    continue
                end = self.firsts[event + 1] if event < self.n_events else self.n_objects
                if at < self.n_others:
                    end = min(end, self.number_of(at))
                while i < n and number < end and numbers[i] == number:
                    died[i] = <int32_t>event if self.die_at_once and event < self.n_events else -1
                    i, number = i + 1, number + 1
                last = number - 1
        if i < n:
            raise IndexError(f"there is no object {numbers[i]}")
        return found

    cdef Py_ssize_t event_of(self, int64_t number) noexcept nogil:
        """Returns the event before which an object was allocated."""
        cdef Py_ssize_t low = 0
        cdef Py_ssize_t high = self.n_events
        cdef Py_ssize_t middle
        while low < high:
            middle = (low + high + 1) >> 1
            if self.firsts[middle] <= number:
                low = middle
            else:
                high = middle - 1
        return low

    cdef Py_ssize_t first_from(self, int64_t number) noexcept nogil:
        """Returns the row of `others` from which on the numbers are no lower."""
        cdef Py_ssize_t low = 0
        cdef Py_ssize_t high = self.n_others
        cdef Py_ssize_t middle
        while low < high:
            middle = (low + high) >> 1
            if self.number_of(middle) < number:
                low = middle + 1
            else:
                high = middle
        return low
