"""Hashes for open addressing: 64 bits of which the low ones are well mixed. Slots are a power of two."""

from libc.stdint cimport int32_t, uint64_t

cdef enum:
    GOLDEN = 0x9E3779B97F4A7C15


# The second part of a key.
ctypedef fused KeyPart:
    int32_t
    uint64_t


cdef inline uint64_t mix_pair(int32_t first, KeyPart second) noexcept nogil:
    """Returns the hash of an index, -1 or more, and an index or address, as of a prefix and a frame."""
    cdef uint64_t a = <uint64_t>(first + 1)
    cdef uint64_t b = <uint64_t>second
    cdef uint64_t x = (b ^ a << 32 ^ a << 48) * <uint64_t>GOLDEN
    return x ^ x >> 29
