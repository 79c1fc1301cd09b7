"""The cells of an answer, which stand row by row, as columns."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memchr, memcpy

import numpy as np

from traceferry.native.leb128 cimport leb, short_leb

cdef enum:
    INTEGER = 2
    FLOAT = 3
    STRING = 4
    BLOB = 5
    N_KINDS = 256
    LOADED = 8  # bytes, by short_leb


cdef inline (uint64_t, int64_t) next_integer(const uint8_t[::1] packed, int64_t at, int64_t end) noexcept nogil:
    """Returns what `leb` returns."""
    return short_leb(packed, at, end, False) if end - at >= LOADED else leb(packed, at, end, False)


def integers(const uint8_t[::1] packed, Py_ssize_t n):
    """Returns the n varints of a packed field, int64. Raises ValueError where its bytes are not so many."""
    cdef int64_t end = packed.shape[0]
    cdef int64_t at = 0
    cdef Py_ssize_t i = 0
    if n > end:
        raise ValueError("fewer numbers")
    found = np.empty(n, np.int64)
    cdef int64_t[::1] numbers = found
    cdef uint64_t value
    with nogil:
        while i < n and at >= 0:
            value, at = next_integer(packed, at, end)
            numbers[i] = <int64_t> value
            i += 1
    if at != end:
        raise ValueError("another number of numbers, or one that does not end")
    return found


def counts(const uint8_t[::1] kinds, Py_ssize_t n_columns):
    """Returns how many cells of each kind a column has: int64 [n_columns, 256]."""
    cdef Py_ssize_t n = kinds.shape[0]
    cdef Py_ssize_t cell = 0
    cdef Py_ssize_t column
    if n_columns < 1:
        raise ValueError("cells are of a column")
    found = np.zeros((n_columns, N_KINDS), np.int64)
    cdef int64_t[:, ::1] n_of = found
    with nogil:
        while cell < n:
            for column in range(min(n_columns, n - cell)):
                n_of[column, kinds[cell]] += 1
                cell += 1
    return found


def fill_columns(
    const uint8_t[::1] kinds, const uint8_t[::1] packed, const int64_t[::1] floats, uint8_t[:, ::1] out_kinds,
    int64_t[:, ::1] out_values, Py_ssize_t first_row, int64_t n_texts, int64_t n_blobs
):
    """Fills in the kinds of the cells and their values, a row for each column, from the element first_row on: an
    integer, a float's bits, which of the texts or blobs it is; 0 for NULL, and for what has no value. kinds: of whole
    rows; packed: the varints of the integers; n_texts, n_blobs: how many there are before these. Raises ValueError
    where a varint does not end."""
    cdef Py_ssize_t n_columns = out_kinds.shape[0]
    cdef Py_ssize_t n_rows = kinds.shape[0] // n_columns if n_columns else 0
    cdef Py_ssize_t row, column
    cdef Py_ssize_t cell = 0
    cdef int64_t end = packed.shape[0]
    cdef int64_t at = 0
    cdef Py_ssize_t n_floats = 0
    cdef uint8_t kind
    cdef int64_t value
    cdef uint64_t number
    if out_values.shape[0] != n_columns or out_values.shape[1] != out_kinds.shape[1]:
        raise ValueError("columns of different lengths")
    if not 0 <= first_row <= out_kinds.shape[1] - n_rows:
        raise ValueError("more rows than the columns have")
    with nogil:
        for row in range(first_row, first_row + n_rows):
            for column in range(n_columns):
                kind = kinds[cell]
                cell += 1
                value = 0
                if kind == INTEGER and 0 <= at < end:
                    number, at = next_integer(packed, at, end)
                    value = <int64_t> number
                elif kind == FLOAT and n_floats < floats.shape[0]:
                    value = floats[n_floats]
                    n_floats += 1
                elif kind == STRING:
                    value = n_texts
                    n_texts += 1
                elif kind == BLOB:
                    value = n_blobs
                    n_blobs += 1
                out_kinds[column, row] = kind
                out_values[column, row] = value
    if at < 0:
        raise ValueError("a number does not end")


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
