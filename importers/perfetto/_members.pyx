"""Members of JSON objects, wherever they stand."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

import numpy as np

cdef enum:
    WORD = 5  # "tid" with its quotes, and "pid"
    QUOTE = 0x22
    # What numbers of threads have at most, so that they are below 1 << 31 for certain, and what an int64 has.
    FEW_DIGITS = 9
    MOST_DIGITS = 18
    # Objects of events are in a list.
    IN_EVENT = 2
    ZERO = 0x30
    NINE = 0x39
    COLON = 0x3A
    MINUS = 0x2D


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


def places_of(const uint8_t[::1] data, const uint8_t[::1] word):
    """Returns a list of the offsets, rising, at which a word stands, which has a byte or more."""
    cdef Py_ssize_t size = word.shape[0]
    cdef Py_ssize_t last = data.shape[0] - size
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t nth
    # How far the word moves at least, by the byte that is at its end (Horspool).
    cdef Py_ssize_t[256] moves
    for nth in range(256):
        moves[nth] = size
    for nth in range(size - 1):
        moves[word[nth]] = size - 1 - nth
    found = []
    with nogil:
        while at <= last:
            if data[at + size - 1] == word[size - 1]:
                nth = 0
                while nth < size - 1 and data[at + nth] == word[nth]:
                    nth += 1
                if nth == size - 1:
                    with gil:
                        found.append(at)
            at += moves[data[at + size - 1]]
    return found


def has_number_apart(const uint8_t[::1] data):
    """Whether a member `tid` or `pid` somewhere may be below 0, above 9 digits or no whole number."""
    cdef Py_ssize_t n = data.shape[0]
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t place, end
    cdef uint8_t last
    cdef bint is_apart = False
    with nogil:
        while at + WORD < n and not is_apart:
            last = data[at + WORD - 1]
            if last != QUOTE:
                at += 1 if last == c"d" else 2 if last == c"i" else 3 if last == c"t" or last == c"p" else WORD
                continue
            if not is_number_of(data, at + 1) or data[at] != QUOTE:
                at += WORD - 1
                continue
            place = value_after(data, at + WORD)
            end = end_of_number(data, place)
            is_apart = end > place and not is_small(data, place, end)
            at += WORD - 1
    return bool(is_apart)


cdef class EventNumbers:
    """The numbers of processes and threads that events have, one after the other: those of members `pid` and `tid` of
    the objects in a list."""

    cdef const uint8_t[::1] _data
    cdef Py_ssize_t _at, _depth

    def __init__(self, const uint8_t[::1] data, Py_ssize_t begin):
        """begin: where the list begins."""
        self._data, self._at = data, max(begin, 0)

    def more(self, Py_ssize_t n_most):
        """Returns, int64, (where the next numbers begin, n_most of them at most; where they end; what they are, and
        the lowest int64 where they are no whole number of 18 digits at most). After the last one there are none."""
        cdef const uint8_t[::1] data = self._data
        cdef Py_ssize_t n = data.shape[0]
        cdef Py_ssize_t at = self._at
        cdef Py_ssize_t depth = self._depth
        cdef Py_ssize_t n_found = 0
        cdef Py_ssize_t start
        begins, ends, values = (np.empty(n_most, np.int64) for _ in range(3))
        cdef int64_t[::1] begin = begins
        cdef int64_t[::1] end = ends
        cdef int64_t[::1] value = values
        with nogil:
            while at < n and n_found < n_most:
                if data[at] == c"{" or data[at] == c"[":
                    depth += 1
                elif data[at] == c"}" or data[at] == c"]":
                    depth -= 1
                    if depth <= 0:
                        at = n
                        break
                elif data[at] == QUOTE:
                    start = at + 1
                    at = end_of_string(data, start)
                    if depth == IN_EVENT and at == start + 3 and is_number_of(data, start):
                        start = value_after(data, at + 1)
                        at = end_of_number(data, start)
                        if at > start:
                            begin[n_found], end[n_found], value[n_found] = start, at, whole(data, start, at)
                            n_found += 1
                        at -= 1
                at += 1
        self._at, self._depth = at, depth
        return begins[:n_found], ends[:n_found], values[:n_found]


cdef inline bint is_number_of(const uint8_t[::1] data, Py_ssize_t at) noexcept nogil:
    """Whether a key is the name of a number, of which three characters are there."""
    return (data[at] == c"t" or data[at] == c"p") and data[at + 1] == c"i" and data[at + 2] == c"d"


cdef inline Py_ssize_t end_of_string(const uint8_t[::1] data, Py_ssize_t at) noexcept nogil:
    while at < data.shape[0] and data[at] != QUOTE:
        at += 2 if data[at] == c"\\" else 1
    return min(at, data.shape[0])


cdef inline Py_ssize_t value_after(const uint8_t[::1] data, Py_ssize_t at) noexcept nogil:
    """Returns where the value of a key begins, or its end where there is none."""
    cdef Py_ssize_t colon = skip_blanks(data, at)
    return skip_blanks(data, colon + 1) if colon < data.shape[0] and data[colon] == COLON else at


cdef inline Py_ssize_t end_of_number(const uint8_t[::1] data, Py_ssize_t at) noexcept nogil:
    while at < data.shape[0] and (
        ZERO <= data[at] <= NINE or data[at] in (c"-", c"+", c".", c"e", c"E")
    ):
        at += 1
    return at


cdef inline bint is_small(const uint8_t[::1] data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    if end - at > FEW_DIGITS:
        return False
    while at < end and ZERO <= data[at] <= NINE:
        at += 1
    return at == end


cdef inline int64_t whole(const uint8_t[::1] data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    cdef bint is_negative = data[at] == MINUS
    cdef int64_t number = 0
    at += is_negative
    if at == end or end - at > MOST_DIGITS:
        return <int64_t> (<uint64_t> 1 << 63)
    while at < end:
        if data[at] < ZERO or data[at] > NINE:
            return <int64_t> (<uint64_t> 1 << 63)
        number = number * 10 + data[at] - ZERO
        at += 1
    return -number if is_negative else number


cdef inline Py_ssize_t skip_blanks(const uint8_t[::1] data, Py_ssize_t at) noexcept nogil:
    while at < data.shape[0] and data[at] in (c" ", c"\n", c"\t", c"\r"):
        at += 1
    return at
