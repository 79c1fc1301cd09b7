"""Numbers at many places of a recording, and the ends of many callchains."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

import numpy as np

from traceferry.native.bytes cimport prefetch, u16, u32, u64

cdef enum:
    # Places that are asked for before they are read: they lie so far from each other that none is in the cache.
    AHEAD = 16
    # PERF_CONTEXT_USER_DEFERRED, and a cookie behind it.
    N_DEFERRED = 2

cdef uint64_t USER_DEFERRED = <uint64_t>-640


def numbers(const uint8_t[::1] data not None, const int64_t[::1] at not None, int size, bint big):
    """Returns the unsigned number of 1, 2, 4 or 8 bytes at each of these places."""
    cdef Py_ssize_t n = at.shape[0]
    cdef Py_ssize_t i
    cdef uint8_t[::1] of_1
    cdef uint16_t[::1] of_2
    cdef uint32_t[::1] of_4
    cdef uint64_t[::1] of_8
    if size not in (1, 2, 4, 8):
        raise ValueError("numbers: no such size")
    for i in range(n):
        if not 0 <= at[i] <= data.shape[0] - size:
            raise ValueError("numbers: a place outside the data")
    found = np.empty(n, f"u{size}")
    if size == 1:
        of_1 = found
        with nogil:
            for i in range(n):
                prefetch(&data[at[min(i + AHEAD, n - 1)]])
                of_1[i] = data[at[i]]
    elif size == 2:
        of_2 = found
        with nogil:
            for i in range(n):
                prefetch(&data[at[min(i + AHEAD, n - 1)]])
                of_2[i] = u16(data, at[i], big)
    elif size == 4:
        of_4 = found
        with nogil:
            for i in range(n):
                prefetch(&data[at[min(i + AHEAD, n - 1)]])
                of_4[i] = u32(data, at[i], big)
    else:
        of_8 = found
        with nogil:
            for i in range(n):
                prefetch(&data[at[min(i + AHEAD, n - 1)]])
                of_8[i] = u64(data, at[i], big)
    return found


def fields(
    const uint8_t[::1] data not None, const int64_t[::1] at not None, const int64_t[::1] offsets not None,
    const int64_t[::1] sizes not None, bint big
):
    """Returns the unsigned numbers of 1, 2, 4 or 8 bytes at some offsets from each of these places, uint64: a row for
    each offset. Each place is read once, which is what takes the time."""
    cdef Py_ssize_t n = at.shape[0]
    cdef Py_ssize_t i, k, here
    cdef int64_t most = 0
    if offsets.shape[0] != sizes.shape[0]:
        raise ValueError("fields: columns of several lengths")
    for k in range(offsets.shape[0]):
        if sizes[k] not in (1, 2, 4, 8) or not 0 <= offsets[k] <= 1 << 32:
            raise ValueError("fields: no such size, or no such offset")
        most = max(most, offsets[k] + sizes[k])
    for i in range(n):
        if not 0 <= at[i] <= data.shape[0] - most:
            raise ValueError("fields: a place outside the data")
    found_array = np.empty((offsets.shape[0], n), np.uint64)
    cdef uint64_t[:, ::1] found = found_array
    with nogil:
        for i in range(n):
            prefetch(&data[at[min(i + AHEAD, n - 1)]])
            for k in range(offsets.shape[0]):
                here = at[i] + offsets[k]
                if sizes[k] == 4:
                    found[k, i] = u32(data, here, big)
                elif sizes[k] == 8:
                    found[k, i] = u64(data, here, big)
                elif sizes[k] == 2:
                    found[k, i] = u16(data, here, big)
                else:
                    found[k, i] = data[here]
    return found_array


def deferred(const uint64_t[::1] chain not None, const int64_t[::1] start not None, const int32_t[::1] length not None):
    """Returns the rows of the callchains that end with USER_DEFERRED and a cookie, int64. start, length: where each
    one is in `chain`."""
    cdef Py_ssize_t n = start.shape[0]
    cdef Py_ssize_t i, ahead
    cdef list found = []
    if length.shape[0] != n:
        raise ValueError("deferred: columns of several lengths")
    for i in range(n):
        if not 0 <= length[i] <= chain.shape[0] or not 0 <= start[i] <= chain.shape[0] - length[i]:
            raise ValueError("deferred: a callchain outside the data")
    with nogil:
        for i in range(n):
            ahead = min(i + AHEAD, n - 1)
            if length[ahead] >= N_DEFERRED:
                prefetch(&chain[start[ahead] + length[ahead] - N_DEFERRED])
            if length[i] >= N_DEFERRED and chain[start[i] + length[i] - N_DEFERRED] == USER_DEFERRED:
                with gil:
                    found.append(i)
    return np.array(found, np.int64)
