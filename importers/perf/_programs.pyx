"""Which program a process ran at many times."""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from traceferry.native.search cimport last_at


def numbers(
    const int32_t[::1] pid not None, const int64_t[::1] ts not None, const int64_t[::1] pids not None,
    const int64_t[::1] first not None, const int64_t[::1] starts not None
):
    """Returns the programs that processes ran at these times (int32): the last that had started, or the first one.

    pids: rising, with all of `pid`; first: of each the first of its programs, and at the end how many there are;
    starts: when each program started, rising within a process.
    """
    cdef Py_ssize_t n = pid.shape[0]
    cdef Py_ssize_t i, begin, end
    cdef Py_ssize_t place = 0
    cdef Py_ssize_t found = 0
    cdef bint is_known = True
    if ts.shape[0] != n or first.shape[0] != pids.shape[0] + 1 or first[pids.shape[0]] != starts.shape[0]:
        raise ValueError("numbers: columns of several lengths")
    for i in range(pids.shape[0]):
        if not 0 <= first[i] < first[i + 1] <= starts.shape[0]:
            raise ValueError("numbers: a process without a program")
    numbers_array = np.empty(n, np.int32)
    cdef int32_t[::1] number = numbers_array
    with nogil:
        for i in range(n):
            # Samples that follow one another are mostly of one program.
            if i == 0 or pid[i] != pid[i - 1]:
                place = last_at(pids, 0, pids.shape[0], <int64_t>pid[i])
                if place < 0 or pids[place] != pid[i]:
                    is_known = False
                    break
                found = first[place]
            begin, end = first[place], first[place + 1]
            if starts[found] > ts[i]:
                found = max(last_at(starts, begin, end, ts[i]), begin)
            elif found + 1 < end and starts[found + 1] <= ts[i]:
                found = last_at(starts, found + 1, end, ts[i])
            number[i] = found
    if not is_known:
        raise ValueError("numbers: a process that there is not")
    return numbers_array
