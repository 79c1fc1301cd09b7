"""Shares the bytes of code among the lines of its tables."""

import numpy as np

from libc.stdint cimport int32_t, int64_t

from traceferry.native.interning cimport intern_triple


cdef class LineSizes:
    """The bytes of code objects by line. The i-th has size[i] bytes; rows begins[i] to ends[i] of offsets (rising
    within an object), files and lines are its line table, before whose first row the file is -1 and the line 0.
    bases: what lines are told apart by besides file and line: the function.

    key_base, key_file, key_line: the distinct lines, int32. record, key (int32), n_bytes (int64): each object and line
    that are together, once.
    """

    cdef readonly object key_base
    cdef readonly object key_file
    cdef readonly object key_line
    cdef readonly object record
    cdef readonly object key
    cdef readonly object n_bytes
    # The distinct lines: the key, and the object and the output row that a line was in last.
    cdef object columns
    cdef int32_t[::1] base
    cdef int32_t[::1] file
    cdef int32_t[::1] line
    cdef int32_t[::1] seen_in
    cdef int32_t[::1] seen_row
    cdef int32_t[::1] slots
    cdef int32_t n_keys
    # The output.
    cdef int32_t[::1] record_of
    cdef int32_t[::1] key_of
    cdef int64_t[::1] bytes_of
    cdef Py_ssize_t n_rows

    def __init__(
        self, const int64_t[::1] begins, const int64_t[::1] ends, const int64_t[::1] size, const int32_t[::1] bases,
        const int32_t[::1] offsets, const int32_t[::1] files, const int32_t[::1] lines
    ):
        cdef Py_ssize_t n = begins.shape[0]
        cdef Py_ssize_t n_lines = offsets.shape[0]
        cdef Py_ssize_t total = n
        cdef Py_ssize_t r
        if (
            ends.shape[0] != n
            or size.shape[0] != n
            or bases.shape[0] != n
            or files.shape[0] != n_lines
            or lines.shape[0] != n_lines
        ):
            raise ValueError("LineSizes: an array has the wrong length")
        for r in range(n):
            if begins[r] < 0 or ends[r] < begins[r] or ends[r] > n_lines:
                raise ValueError("LineSizes: rows outside the table")
            total += ends[r] - begins[r]
        self.n_keys = self.n_rows = 0
        self.columns = np.empty((5, 0), np.int32)
        self.grow(1 << 12)
        record, key, n_bytes = np.empty(total, np.int32), np.empty(total, np.int32), np.empty(total, np.int64)
        self.record_of, self.key_of, self.bytes_of = record, key, n_bytes
        for r in range(n):
            if self.n_keys + ends[r] - begins[r] + 1 > self.base.shape[0]:
                self.grow(max(4 * self.base.shape[0], 2 * (self.n_keys + ends[r] - begins[r] + 1)))
            with nogil:
                self.share(r, size[r], bases[r], offsets[begins[r] : ends[r]], files[begins[r] : ends[r]],
                           lines[begins[r] : ends[r]])
        self.key_base, self.key_file, self.key_line = self.columns[:3, : self.n_keys]
        self.record, self.key, self.n_bytes = record[: self.n_rows], key[: self.n_rows], n_bytes[: self.n_rows]

    cdef grow(self, Py_ssize_t size):
        """Makes space for so many lines."""
        cdef int32_t row
        columns = np.empty((5, size), np.int32)
        columns[:, : self.n_keys] = self.columns[:, : self.n_keys]
        self.columns = columns
        self.base, self.file, self.line, self.seen_in, self.seen_row = columns
        self.slots = np.full(1 << (2 * size - 1).bit_length(), -1, np.int32)
        for row in range(self.n_keys):
            intern_triple(
                self.base, self.file, self.line, self.slots, row, self.base[row], self.file[row], self.line[row]
            )

    cdef void share(
        self, Py_ssize_t record, int64_t size, int32_t base, const int32_t[::1] offsets, const int32_t[::1] files,
        const int32_t[::1] lines
    ) noexcept nogil:
        """Adds the bytes of a code object."""
        cdef Py_ssize_t i = 0
        cdef int32_t file = -1
        cdef int32_t line = 0
        cdef int64_t done = 0
        cdef int64_t upto
        while done < size:
            upto = size
            if i < offsets.shape[0] and offsets[i] < size:
                upto = offsets[i]
            if upto > done:
                self.add(record, base, file, line, upto - done)
                done = upto
            if i < offsets.shape[0]:
                file = files[i]
                line = lines[i]
                i += 1

    cdef inline void add(
        self, Py_ssize_t record, int32_t base, int32_t file, int32_t line, int64_t n_bytes
    ) noexcept nogil:
        cdef int32_t key = intern_triple(self.base, self.file, self.line, self.slots, self.n_keys, base, file, line)
        if key == self.n_keys:
            self.seen_in[key] = -1
            self.n_keys += 1
        if self.seen_in[key] != record:
            self.seen_in[key] = <int32_t>record
            self.seen_row[key] = <int32_t>self.n_rows
            self.record_of[self.n_rows] = <int32_t>record
            self.key_of[self.n_rows] = key
            self.bytes_of[self.n_rows] = 0
            self.n_rows += 1
        self.bytes_of[self.seen_row[key]] += n_bytes
