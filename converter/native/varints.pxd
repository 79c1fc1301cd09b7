"""Unsigned integers as varints (LEB128), and how many bytes they take. The caller has checked the array's length."""

from libc.stdint cimport uint8_t, uint64_t


cdef inline Py_ssize_t varint(uint8_t[::1] o, Py_ssize_t p, uint64_t v) noexcept nogil:
    """Writes v at o[p] and returns the offset behind it."""
    while v > 127:
        o[p] = v & 127 | 128
        v >>= 7
        p += 1
    o[p] = v
    return p + 1


cdef inline Py_ssize_t length4(uint8_t[::1] o, Py_ssize_t p, Py_ssize_t n) noexcept nogil:
    """Writes n at o[p] in always four bytes, for a length that is known only afterwards, and returns the offset behind
    it."""
    o[p] = n & 127 | 128
    o[p + 1] = n >> 7 & 127 | 128
    o[p + 2] = n >> 14 & 127 | 128
    o[p + 3] = n >> 21 & 127
    return p + 4


cdef inline Py_ssize_t size_of(int v) noexcept nogil:
    """Returns how many bytes the varint of a number takes that is not negative."""
    return 1 + (v > 0x7F) + (v > 0x3FFF) + (v > 0x1FFFFF) + (v > 0xFFFFFFF)


cdef inline Py_ssize_t size_of_long(uint64_t v) noexcept nogil:
    """Returns how many bytes the varint of any number takes."""
    cdef Py_ssize_t n = 1
    while v > 127:
        v >>= 7
        n += 1
    return n
