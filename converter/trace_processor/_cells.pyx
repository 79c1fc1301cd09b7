"""The cells of an answer, which stand row by row, as columns."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memchr, memcpy

import numpy as np

from traceferry.native.leb128 cimport leb, short_leb

cdef enum:
    N_KINDS = 256
    LOADED = 8  # bytes, by short_leb


def integers(const uint8_t[::1] packed):
    """Returns the varints of a packed field, int64; those in front of the first that is damaged."""
    cdef int64_t end = packed.shape[0]
    cdef int64_t at = 0
    cdef Py_ssize_t n = 0
    cdef Py_ssize_t i
    for i in range(end):
        n += packed[i] < 0x80
    found = np.empty(n, np.int64)
    cdef int64_t[::1] numbers = found
    cdef uint64_t value
    with nogil:
        for i in range(n):
            value, at = short_leb(packed, at, end, False) if end - at >= LOADED else leb(packed, at, end, False)
            if at < 0:
                break
            numbers[i] = <int64_t> value
        else:
            i = n
    return found[:i]


def places(const uint8_t[::1] kinds):
    """Returns which of the values of its kind each cell has, int32."""
    cdef int32_t[N_KINDS] counts
    cdef Py_ssize_t i
    found = np.empty(kinds.shape[0], np.int32)
    cdef int32_t[::1] place = found
    for i in range(N_KINDS):
        counts[i] = 0
    with nogil:
        for i in range(kinds.shape[0]):
            place[i] = counts[kinds[i]]
            counts[kinds[i]] += 1
    return found


def column(
    const uint8_t[::1] kinds, const int32_t[::1] place, Py_ssize_t n_columns, Py_ssize_t nth, uint8_t kind,
    const int64_t[::1] values,
):
    """Returns the values of one kind in a column, of 64 bits, 0 for cells of other kinds, and which cells are of this
    kind, bool. place: of `places`."""
    cdef Py_ssize_t n = kinds.shape[0] // n_columns
    found, is_there = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    cdef int64_t[::1] numbers = found
    cdef uint8_t[::1] there = is_there.view(np.uint8)
    cdef Py_ssize_t row
    cdef Py_ssize_t cell = nth
    if place.shape[0] < n * n_columns:
        raise ValueError("a place is missing")
    with nogil:
        for row in range(n):
            if kinds[cell] == kind and place[cell] < values.shape[0]:
                numbers[row] = values[place[cell]]
                there[row] = 1
            cell += n_columns
    return found, is_there


def texts(const uint8_t[::1] data):
    """Returns texts that each end with a zero as Arrow has them: where they begin and the last ends, int32, and the
    bytes without zeros."""
    cdef Py_ssize_t size = data.shape[0]
    cdef Py_ssize_t n = 0
    cdef Py_ssize_t i
    for i in range(size):
        n += data[i] == 0
    offsets = np.zeros(n + 1, np.int32)
    cdef int32_t[::1] ends = offsets
    cdef Py_ssize_t n_bytes = 0
    if n == 0:
        return offsets, b""
    held = PyBytes_FromStringAndSize(NULL, size - n)
    cdef char* out = PyBytes_AS_STRING(held)
    cdef const char* at = <const char*> &data[0]
    cdef const char* zero
    for i in range(n):
        zero = <const char*> memchr(at, 0, size)
        memcpy(out + n_bytes, at, zero - at)
        n_bytes += zero - at
        ends[i + 1] = <int32_t> n_bytes
        size -= zero - at + 1
        at = zero + 1
    return offsets, held[:n_bytes] if n_bytes < len(held) else held
