"""Values that occur again and again, each once."""

from libc.stdint cimport int32_t, int64_t, uint64_t

import numpy as np

from traceferry.native.interning cimport enter_pairs, intern_pair
from traceferry.native.places cimport are_places, begin_places

from traceferry.native.arrays import doubled


ctypedef fused whole:
    int32_t
    int64_t


def distinct_with_places(const whole[::1] values not None):
    """Returns the values that occur, rising (int64), and of each value its place among them (int32): np.unique with
    return_inverse, in a fraction of the time where few occur, as nothing but these is sorted."""
    cdef Py_ssize_t n = values.shape[0]
    cdef Py_ssize_t i = 0
    cdef int32_t n_found = 0
    cdef int32_t latest = -1
    known_array, slots_array = np.empty(512, np.uint64), np.full(1024, -1, np.int32)
    # The first part of each pair is the same.
    cdef int32_t[::1] nothing = np.zeros(512, np.int32)
    cdef uint64_t[::1] known = known_array
    cdef int32_t[::1] slots = slots_array
    places_array = np.empty(n, np.int32)
    cdef int32_t[::1] places = places_array
    while True:
        with nogil:
            while i < n:
                if latest < 0 or known[latest] != <uint64_t>values[i]:
                    if n_found == known.shape[0]:
                        break
                    latest = intern_pair(nothing, known, slots, n_found, 0, <uint64_t>values[i])
                    n_found += latest == n_found
                places[i] = latest
                i += 1
        if i == n:
            break
        known_array = doubled(known_array)
        known = known_array
        nothing = np.zeros(len(known_array), np.int32)
        slots = np.full(2 * len(known_array), -1, np.int32)
        enter_pairs(nothing, known, slots, 0, n_found)
        latest = -1
    found = known_array[:n_found].view(np.int64)
    order = np.argsort(found, kind="stable")
    rank_array = np.empty(n_found, np.int32)
    rank_array[order] = np.arange(n_found, dtype=np.int32)
    cdef int32_t[::1] rank = rank_array
    with nogil:
        for i in range(n):
            places[i] = rank[places[i]]
    return found[order], places_array


cdef enum:
    DIGIT_BITS = 11
    N_DIGITS = 1 << DIGIT_BITS


def distinct_pairs(const int32_t[::1] major not None, const int32_t[::1] minor not None):
    """Returns the pairs that occur, by major, then minor (int32 each), and of each row its place among them (int32):
    np.unique of rows with return_inverse, sorted digit by digit. Neither number is negative."""
    cdef Py_ssize_t n = major.shape[0]
    cdef Py_ssize_t i
    cdef int32_t largest = 0
    cdef int32_t largest_minor = 0
    cdef uint64_t latest = 0
    cdef uint64_t used
    cdef int32_t n_found = 0
    cdef int shift = 0
    cdef int minor_bits = 0
    if minor.shape[0] != n or n >= 1 << 31:
        raise ValueError("distinct_pairs: columns of different lengths, or too long")
    for i in range(n):
        if major[i] < 0 or minor[i] < 0:
            raise ValueError("distinct_pairs: a negative number")
        largest, largest_minor = max(largest, major[i]), max(largest_minor, minor[i])
    while largest_minor >> minor_bits:
        minor_bits += 1
    cdef uint64_t[::1] keys = np.empty(n, np.uint64)
    cdef uint64_t[::1] spare_keys = np.empty(n, np.uint64)
    cdef int32_t[::1] rows = np.arange(n, dtype=np.int32)
    cdef int32_t[::1] spare_rows = np.empty(n, np.int32)
    cdef bint is_sorted = True
    with nogil:
        for i in range(n):
            keys[i] = <uint64_t>major[i] << minor_bits | <uint64_t>minor[i]
            is_sorted = is_sorted and keys[i] >= latest
            latest = keys[i]
    used = <uint64_t>largest << minor_bits | <uint64_t>largest_minor
    while not is_sorted and shift < 64 and used >> shift:
        sort_by_digit(keys, rows, spare_keys, spare_rows, shift)
        keys, spare_keys, rows, spare_rows = spare_keys, keys, spare_rows, rows
        shift += DIGIT_BITS
    places_array = np.empty(n, np.int32)
    cdef int32_t[::1] places = places_array
    with nogil:
        for i in range(n):
            if i == 0 or keys[i] != keys[i - 1]:
                spare_keys[n_found] = keys[i]
                n_found += 1
            places[rows[i]] = n_found - 1
    found = np.asarray(spare_keys)[:n_found]
    mask = np.uint64((1 << minor_bits) - 1)
    return (found >> np.uint64(minor_bits)).astype(np.int32), (found & mask).astype(np.int32), places_array


cdef void sort_by_digit(
    const uint64_t[::1] keys, const int32_t[::1] rows, uint64_t[::1] sorted_keys, int32_t[::1] sorted_rows, int shift
) noexcept nogil:
    """Sorts by the digit at `shift`; of those with the same one none overtakes another."""
    cdef Py_ssize_t[N_DIGITS] begins
    cdef Py_ssize_t i, count, at
    cdef Py_ssize_t following = 0
    for i in range(N_DIGITS):
        begins[i] = 0
    for i in range(keys.shape[0]):
        begins[keys[i] >> shift & (N_DIGITS - 1)] += 1
    for i in range(N_DIGITS):
        count = begins[i]
        begins[i] = following
        following += count
    for i in range(keys.shape[0]):
        at = begins[keys[i] >> shift & (N_DIGITS - 1)]
        begins[keys[i] >> shift & (N_DIGITS - 1)] = at + 1
        sorted_keys[at] = keys[i]
        sorted_rows[at] = rows[i]


def rows_of_places(const int32_t[::1] places not None, Py_ssize_t n_places):
    """Returns the rows of each place (int64), place by place and rising within it, and where the rows of each end
    (int64): np.argsort and the sums of np.bincount, in a fraction of the time. places: 0 to n_places - 1."""
    cdef Py_ssize_t n = places.shape[0]
    cdef Py_ssize_t i
    rows_array, ends_array = np.empty(n, np.int64), np.zeros(n_places, np.int64)
    cdef int64_t[::1] rows = rows_array
    cdef int64_t[::1] ends = ends_array
    if not are_places(places, n_places):
        raise ValueError("rows_of_places: a place that there is not")
    with nogil:
        begin_places(places, ends)
        for i in range(n):
            rows[ends[places[i]]] = i
            ends[places[i]] += 1
    return rows_array, ends_array


def edges_of_places(const int32_t[::1] places not None, Py_ssize_t n_places):
    """Returns the first and the last row of each place (int64), -1 where it has none. places: 0 to n_places - 1."""
    cdef Py_ssize_t n = places.shape[0]
    cdef Py_ssize_t i
    first_array, last_array = np.full(n_places, -1, np.int64), np.full(n_places, -1, np.int64)
    cdef int64_t[::1] first = first_array
    cdef int64_t[::1] last = last_array
    if not are_places(places, n_places):
        raise ValueError("edges_of_places: a place that there is not")
    with nogil:
        for i in range(n):
            if first[places[i]] < 0:
                first[places[i]] = i
            last[places[i]] = i
    return first_array, last_array


def at_places(const int32_t[:] values not None, const int32_t[::1] places not None):
    """Returns values[places], int32, without the copy of the places as numbers of 64 bits that numpy makes. Raises
    IndexError."""
    cdef Py_ssize_t n = places.shape[0]
    cdef Py_ssize_t n_values = values.shape[0]
    cdef Py_ssize_t i = 0
    cdef Py_ssize_t place
    found = np.empty(n, np.int32)
    cdef int32_t[::1] out = found
    with nogil:
        while i < n:
            place = places[i] + n_values if places[i] < 0 else places[i]
            if not 0 <= place < n_values:
                break
            out[i] = values[place]
            i += 1
    if i < n:
        raise IndexError(f"place {places[i]} of {n_values}")
    return found
