"""A place in bytes that may be damaged: numbers are read there, up to an end."""

from libc.stdint cimport UINT64_MAX, int64_t, uint8_t, uint64_t

from traceferry.native.bytes cimport number
from traceferry.native.leb128 cimport CUT, leb


cdef class Position:
    """Reads from `at` on, nothing from `end` on. damage: 0, CUT or ENDLESS: a number could not be read; it is then 0,
    and `at` stays before it."""

    cdef const uint8_t[::1] data
    cdef uint64_t at
    cdef uint64_t end
    cdef int damage

    cdef inline uint64_t leb(self, bint signed) noexcept nogil:
        """Returns the number of an ULEB128 or SLEB128, a negative one in two's complement."""
        cdef uint64_t value
        cdef int64_t following
        value, following = leb(self.data, self.at, self.end, signed)
        if following < 0:
            self.damage = -following
        else:
            self.at = following
        return value


cdef class Cursor(Position):
    """Reads numbers of either byte order, too."""

    cdef bint big

    cdef inline void begin(self, uint64_t at, uint64_t end) noexcept nogil:
        """Goes to `at`. end: no further than the data."""
        self.at = at
        self.end = end
        self.damage = 0

    cdef inline void skip(self, uint64_t size) noexcept nogil:
        cdef uint64_t at = self.at
        if at > self.end or self.end - at < size:
            self.damage = CUT
        else:
            self.at = at + size

    cdef inline uint64_t fixed(self, uint64_t size) noexcept nogil:
        """Returns the number of so many bytes."""
        cdef uint64_t at = self.at
        if at > self.end or self.end - at < size:
            self.damage = CUT
            return 0
        self.at = at + size
        return number(self.data, at, size, self.big)

    cdef inline uint64_t fixed_signed(self, uint64_t size) noexcept nogil:
        """Returns the same, a negative number in two's complement of 64 bits."""
        cdef uint64_t value = self.fixed(size)
        if 0 < size < 8 and value >> (8 * size - 1):
            value |= UINT64_MAX << 8 * size
        return value

    cdef inline uint64_t uleb(self) noexcept nogil:
        return self.leb(False)

    cdef inline uint64_t sleb(self) noexcept nogil:
        return self.leb(True)
