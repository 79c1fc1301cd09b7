"""Members of JSON objects, wherever they stand."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

import numpy as np

cdef enum:
    WORD = 5  # "tid" with its quotes
    QUOTE = 0x22
    ZERO = 0x30
    NINE = 0x39
    COLON = 0x3A


def places_of_thread(const uint8_t[::1] data, int64_t tid, Py_ssize_t n_most):
    """Returns int64: the offsets, rising, at which a member `tid` has this number, n_most of them at most. tid: 0 or
    more."""
    cdef Py_ssize_t n = data.shape[0]
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t place
    cdef Py_ssize_t n_found = 0
    cdef uint8_t last
    cdef uint64_t number
    cdef Py_ssize_t n_digits
    found = np.empty(n_most, np.int64)
    cdef int64_t[::1] places = found
    with nogil:
        while at + WORD < n and n_found < n_most:
            # By the last character of what may be the word, as Boyer and Moore do it.
            last = data[at + WORD - 1]
            if last != QUOTE:
                at += 1 if last == c"d" else 2 if last == c"i" else 3 if last == c"t" else WORD
                continue
            if data[at + 3] != c"d" or data[at + 2] != c"i" or data[at + 1] != c"t" or data[at] != QUOTE:
                at += WORD - 1
                continue
            place = skip_blanks(data, at + WORD)
            if place >= n or data[place] != COLON:
                at += WORD - 1
                continue
            place = skip_blanks(data, place + 1)
            number, n_digits = 0, 0
            # Longer numbers are no threads'.
            while place < n and n_digits < 19 and ZERO <= data[place] <= NINE:
                number = number * 10 + data[place] - ZERO
                place, n_digits = place + 1, n_digits + 1
            if n_digits and number == <uint64_t> tid:
                places[n_found] = at
                n_found += 1
            at = place
    return found[:n_found]


cdef inline Py_ssize_t skip_blanks(const uint8_t[::1] data, Py_ssize_t at) noexcept nogil:
    while at < data.shape[0] and data[at] in (c" ", c"\n", c"\t", c"\r"):
        at += 1
    return at
