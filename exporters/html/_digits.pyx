"""Bytes as characters: 13 bits are two of them."""

from libc.stdint cimport uint8_t, uint16_t, uint64_t

from traceferry.native.bytes cimport u64

import numpy as np

cdef enum:
    BITS = 13
    GROUP = 13  # bytes that are 8 times 13 bits


def pairs_of(const uint8_t[::1] data not None, const uint16_t[::1] pairs not None):
    """Returns the 2 characters that `pairs` has for each 13 bits, the first of the data being the highest; bytes.

    data: a multiple of 13 bytes; pairs: for each of the 8,192 values two characters, as they are in memory. Raises
    ValueError for other lengths.
    """
    cdef Py_ssize_t n = data.shape[0]
    cdef Py_ssize_t k
    cdef Py_ssize_t i = 0
    cdef Py_ssize_t n_written = 0
    cdef uint64_t first, last
    if n % GROUP or pairs.shape[0] != 1 << BITS:
        raise ValueError("pairs_of: data that is no multiple of 13 bytes, or not 8,192 pairs")
    text_array = np.empty(n // GROUP * 8, np.uint16)
    cdef uint16_t[::1] text = text_array
    with nogil:
        while i < n:
            # The highest and the lowest 64 of 104 bits.
            first = u64(data, i, True)
            last = u64(data, i + GROUP - 8, True)
            for k in range(4):
                text[n_written + k] = pairs[first >> (64 - BITS - BITS * k) & 0x1FFF]
                text[n_written + 4 + k] = pairs[last >> (3 * BITS - BITS * k) & 0x1FFF]
            n_written += 8
            i += GROUP
    return text_array.tobytes()
