"""LEB128 numbers (DWARF 5, section 7.6) in bytes that may be damaged."""

from libc.stdint cimport UINT64_MAX, int64_t, uint8_t, uint64_t

from traceferry.native.bytes cimport load8

# Why a number could not be read: the bytes end within it; it is longer than 64 bits need.
cdef enum:
    CUT = 1
    ENDLESS = 2


cdef inline (uint64_t, int64_t) leb(const uint8_t[::1] d, int64_t p, int64_t end, bint signed) noexcept nogil:
    """Returns the ULEB128 or SLEB128 at d[p], and the offset behind it: -CUT or -ENDLESS where it cannot be read, and
    the number is 0. No byte from `end` on is read. A negative number is in two's complement; bits beyond the 64th are
    dropped."""
    cdef uint64_t value = 0
    cdef uint64_t b
    cdef int shift = 0
    while p < end:
        b = d[p]
        p += 1
        value |= (b & 0x7F) << shift
        shift += 7
        if b < 128:
            if signed and b & 0x40 and shift < 64:
                value |= UINT64_MAX << shift
            return value, p
        if shift > 63:
            return 0, -ENDLESS
    return 0, -CUT


cdef inline (uint64_t, int64_t) short_leb(const uint8_t[::1] d, int64_t p, int64_t end, bint signed) noexcept nogil:
    """Returns what `leb` returns, faster; there are eight bytes from p on."""
    cdef uint64_t w = load8(d, p)
    cdef uint64_t last, sign
    cdef int64_t n
    if not w & 0x80:
        w &= 0x7F
        return (w ^ 0x40) - 0x40 if signed else w, p + 1
    # The highest bit of the last byte.
    last = ~w & <uint64_t> 0x8080808080808080
    last &= 0 - last
    if not last:
        return leb(d, p, end, signed)
    # A bit of each byte up to it, added up in the highest byte.
    n = ((last - 1) & <uint64_t> 0x0101010101010101) * <uint64_t> 0x0101010101010101 >> 56
    w &= (last - 1) & <uint64_t> 0x7F7F7F7F7F7F7F7F
    # 7 bits of each byte become 14 of each two, 28 of each four, 56.
    w = w & <uint64_t> 0x007F007F007F007F | (w & <uint64_t> 0x7F007F007F007F00) >> 1
    w = w & <uint64_t> 0x00003FFF00003FFF | (w & <uint64_t> 0x3FFF00003FFF0000) >> 2
    w = w & 0x0FFFFFFF | (w & <uint64_t> 0x0FFFFFFF00000000) >> 4
    sign = <uint64_t> 1 << (7 * n - 1)
    return (w ^ sign) - sign if signed else w, p + n
