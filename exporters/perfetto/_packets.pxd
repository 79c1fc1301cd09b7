"""Where packets are written: a buffer, and the integers of protobuf."""

from libc.stdint cimport uint8_t, uint64_t


cdef inline Py_ssize_t put_varint(uint8_t* o, Py_ssize_t p, uint64_t v) noexcept nogil:
    """Writes v at o[p] and returns the offset behind it."""
    while v > 127:
        o[p] = v & 127 | 128
        v >>= 7
        p += 1
    o[p] = v
    return p + 1


cdef inline Py_ssize_t put_integer(uint8_t* o, Py_ssize_t p, uint64_t tag, uint64_t v) noexcept nogil:
    """Writes a field of an integer type and returns the offset behind it."""
    return put_varint(o, put_varint(o, p, tag), v)


cdef inline Py_ssize_t length4(uint8_t* o, Py_ssize_t p, Py_ssize_t n) noexcept nogil:
    """Writes n at o[p] in always four bytes, for a length that is known only afterwards, and returns the offset behind
    it."""
    o[p] = n & 127 | 128
    o[p + 1] = n >> 7 & 127 | 128
    o[p + 2] = n >> 14 & 127 | 128
    o[p + 3] = n >> 21 & 127
    return p + 4


cdef inline Py_ssize_t size_of(uint64_t v) noexcept nogil:
    """Returns how many bytes the varint of v takes."""
    cdef Py_ssize_t n = 1
    while v > 127:
        v >>= 7
        n += 1
    return n


cdef class OutputBuffer:
    """Bytes that wait: once they are many, `write` takes them. n: how many wait, in `data`, which has `size` bytes."""

    cdef object sink
    cdef bytearray text
    cdef uint8_t* data
    cdef Py_ssize_t size
    cdef Py_ssize_t n

    cdef int make_room(self, Py_ssize_t n) except -1 nogil
    cdef inline int reserve(self, Py_ssize_t n) except -1 nogil:
        """Makes sure that n bytes more fit into `data`; what waits may be written for that."""
        if self.size - self.n < n:
            self.make_room(n)
        return 0
