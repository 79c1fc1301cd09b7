"""The frames that pointers stand for. Addresses are reused over time."""

from libc.stdint cimport int32_t, int64_t, uint64_t

from traceferry.native.interning cimport intern_pair, slot_of_pair


cdef class MethodTable:
    """Numbers pointers, and holds the frames that they stand for.

    Columns, by number: nth, which definition of its pointer it is; pointer; frame, -1 where it has none yet; last, the
    last definition of its pointer: they follow one another; defined_ts, from when on it counts.
    """

    cdef int32_t[::1] nth
    cdef uint64_t[::1] pointer
    cdef int32_t[::1] frame
    cdef int32_t[::1] last
    cdef int64_t[::1] defined_ts
    cdef int32_t[::1] slots
    cdef int32_t n
    cdef int32_t n_defined
    cdef int32_t n_named
    cdef object nameless

    cdef inline int32_t find(self, uint64_t pointer) noexcept nogil:
        """Returns the number of a pointer; -1: it has none."""
        return self.slots[slot_of_pair(self.nth, self.pointer, self.slots, 0, pointer)]

    cdef inline int32_t add(self, uint64_t pointer) noexcept nogil:
        """Returns the number of a pointer, which is new if it has to be; -1: the table is full."""
        cdef int32_t n = self.n
        cdef int32_t number
        if n == self.last.shape[0]:
            return -1
        number = intern_pair(self.nth, self.pointer, self.slots, n, 0, pointer)
        if number == n:
            self.frame[n] = -1
            self.last[n] = n
            self.defined_ts[n] = 0
            self.n = n + 1
        return number

    cdef inline int32_t definition_at(self, int32_t number, uint64_t ts) noexcept nogil:
        """Returns the definition of a pointer that counts at a time: the last one until then, or the first of all."""
        cdef int32_t high = self.last[number]
        cdef int32_t middle
        while number < high:
            middle = (number + high + 1) >> 1
            if <uint64_t>self.defined_ts[middle] <= ts:
                number = middle
            else:
                high = middle - 1
        return number

    cdef inline int32_t frame_at(self, int32_t number, uint64_t ts) noexcept nogil:
        """Returns the frame of a number at a time; -1: it has none yet, or there is no number."""
        return self.frame[self.definition_at(number, ts)] if number >= 0 else -1

    cdef list columns(self)
    cdef resize(self, Py_ssize_t size)
