"""The packets of a trace, one after the other."""

from libc.stdint cimport int64_t, uint64_t, uint8_t

from traceferry.native.leb128 cimport leb

cdef enum:
    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    FIXED32 = 5


def whole_until(const uint8_t[::1] data):
    """Returns the offset behind the last packet, or other field, that is whole: that of the first one that is not, or
    the number of bytes."""
    cdef int64_t n = data.shape[0]
    cdef int64_t at = 0
    cdef int64_t end
    cdef uint64_t tag, value
    with nogil:
        while at < n:
            tag, end = leb(data, at, n, False)
            if end < 0:
                break
            if tag & 7 == VARINT or tag & 7 == BYTES:
                value, end = leb(data, end, n, False)
                if end < 0 or (tag & 7 == BYTES and value > <uint64_t> (n - end)):
                    break
                end += <int64_t> value if tag & 7 == BYTES else 0
            elif tag & 7 == FIXED64 or tag & 7 == FIXED32:
                end += 8 if tag & 7 == FIXED64 else 4
                if end > n:
                    break
            else:
                break
            at = end
    return at
