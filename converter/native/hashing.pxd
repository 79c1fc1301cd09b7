"""Hashes for open addressing: 64 bits of which the low ones are well mixed. Slots are a power of two."""

from libc.stdint cimport int32_t, uint64_t

cdef enum:
    GOLDEN = 0x9E3779B97F4A7C15


# The second part of a key.
ctypedef fused KeyPart:
    int32_t
    uint64_t


cdef inline void fill_slots(const uint64_t[::1] hashes, int32_t[::1] slots, int32_t n) noexcept nogil:
    """Enters the first n rows into slots that are all free, -1. hashes: of the rows."""
    cdef uint64_t mask = slots.shape[0] - 1
    cdef uint64_t at
    cdef int32_t row
    for row in range(n):
        at = hashes[row] & mask
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = row


cdef inline uint64_t mix_pair(int32_t first, KeyPart second) noexcept nogil:
    """Returns the hash of an index, -1 or more, and an index or address, as of a prefix and a frame."""
    cdef uint64_t a = <uint64_t>(first + 1)
    cdef uint64_t b = <uint64_t>second
    cdef uint64_t x = (b ^ a << 32 ^ a << 48) * <uint64_t>GOLDEN
    return x ^ x >> 29
