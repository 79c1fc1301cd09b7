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


ctypedef fused number:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


def read_raw(
    const uint8_t[::1] data not None, const int64_t[::1] at not None, const int32_t[::1] size not None,
    const int64_t[::1] rows not None, int64_t offset, bint big, number[::1] found not None
):
    """Writes to `found` the unsigned number at this offset in the raw data of some samples, 0 where these are too short
    for it. at, size: of every sample's raw data, in bytes, a size below 0 for none; rows: of the samples."""
    cdef Py_ssize_t n = rows.shape[0]
    cdef Py_ssize_t i, row, ahead
    cdef Py_ssize_t place = 0
    cdef int64_t end = offset + <int64_t>sizeof(number)
    cdef bint is_inside = True
    if found.shape[0] != n or size.shape[0] != at.shape[0]:
        raise ValueError("read_raw: columns of several lengths")
    if not 0 <= offset <= 1 << 32:
        raise ValueError("read_raw: no such offset")
    for i in range(n):
        if not 0 <= rows[i] < at.shape[0]:
            raise ValueError("read_raw: a sample that there is not")
    with nogil:
        for i in range(n):
            ahead = at[rows[min(i + AHEAD, n - 1)]] + offset
            prefetch(&data[min(max(ahead, 0), data.shape[0] - 1)])
            row = rows[i]
            if size[row] < end:
                found[i] = 0
                continue
            place = at[row] + offset
            if not 0 <= place <= data.shape[0] - <Py_ssize_t>sizeof(number):
                is_inside = False
                break
            if number is uint8_t:
                found[i] = data[place]
            elif number is uint16_t:
                found[i] = u16(data, place, big)
            elif number is uint32_t:
                found[i] = u32(data, place, big)
            else:
                found[i] = u64(data, place, big)
    if not is_inside:
        raise ValueError("read_raw: a place outside the data")


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
