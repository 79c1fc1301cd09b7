"""Integers of either byte order. The caller has checked that the bytes are there."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy


cdef extern from *:
    """
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    #define TRACEFERRY_BIG_ENDIAN 1
    #else
    #define TRACEFERRY_BIG_ENDIAN 0
    #endif
    #if defined(__GNUC__)
    #define TRACEFERRY_PREFETCH(address) __builtin_prefetch(address)
    #else
    #define TRACEFERRY_PREFETCH(address)
    #endif
    """
    const bint IS_BIG_ENDIAN "TRACEFERRY_BIG_ENDIAN"
    # Asks for the cache line of an address that is read soon. It never faults.
    void prefetch "TRACEFERRY_PREFETCH"(const void* address) noexcept nogil


cdef inline const uint8_t* bytes_at(const uint8_t[::1] d, Py_ssize_t p, Py_ssize_t n) noexcept nogil:
    """Returns where n bytes from p on are. Loads from one pointer are joined by the C compiler, those of d[p], d[p + 1]
    are not."""
    # The index checks of a sanitized build see the first byte and this one; other builds do not load it.
    d[p + n - 1]
    return &d[p]


cdef inline uint32_t u16(const uint8_t[::1] d, Py_ssize_t p, bint big) noexcept nogil:
    cdef uint32_t a = d[p]
    cdef uint32_t b = d[p + 1]
    return a << 8 | b if big else b << 8 | a


cdef inline uint32_t u32(const uint8_t[::1] d, Py_ssize_t p, bint big) noexcept nogil:
    cdef const uint8_t* q = bytes_at(d, p, 4)
    cdef uint32_t octets = 0x00FF00FF
    cdef uint32_t w = q[0]
    cdef uint32_t b = q[1]
    w |= b << 8
    b = q[2]
    w |= b << 16
    b = q[3]
    w |= b << 24
    if big:
        w = w >> 16 | (w & 0xFFFF) << 16
        w = w >> 8 & octets | (w & octets) << 8
    return w


cdef inline uint64_t u64(const uint8_t[::1] d, Py_ssize_t p, bint big) noexcept nogil:
    # The C compiler makes one load of both halves, and one instruction of their order.
    cdef uint64_t first = u32(d, p, big)
    cdef uint64_t second = u32(d, p + 4, big)
    return first << 32 | second if big else second << 32 | first


cdef inline uint64_t number(const uint8_t[::1] d, uint64_t at, uint64_t size, bint big) noexcept nogil:
    """Returns the integer of `size` bytes at d[at]."""
    cdef uint64_t i
    cdef uint64_t value = 0
    if big:
        for i in range(size):
            value = value << 8 | d[at + i]
    else:
        for i in range(size):
            value = value << 8 | d[at + size - 1 - i]
    return value


cdef inline uint64_t load8(const uint8_t[::1] d, Py_ssize_t p) noexcept nogil:
    """Returns eight bytes, the first one lowest."""
    cdef const uint8_t* q = bytes_at(d, p, 8)
    cdef int i
    cdef uint64_t w = 0
    if not IS_BIG_ENDIAN:
        # One load. Put together from bytes, the C compiler would take it apart again.
        memcpy(&w, q, 8)
        return w
    for i in range(7, -1, -1):
        w = w << 8 | q[i]
    return w
