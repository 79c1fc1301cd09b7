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
    if not w & 0x80:
        w = w & 0x7F
        return (w ^ 0x40) - 0x40 if signed else w, p + 1
    if not w & 0x8000:
        w = w & 0x7F | (w >> 1) & 0x3F80
        return (w ^ 0x2000) - 0x2000 if signed else w, p + 2
    if not w & 0x800000:
        w = w & 0x7F | (w >> 1) & 0x3F80 | (w >> 2) & 0x1FC000
        return (w ^ 0x100000) - 0x100000 if signed else w, p + 3
    return leb(d, p, end, signed)
