"""Reads the text of a Breakpad symbol file.

A record is a line. Its fields stand between spaces; the last one, a name, can hold spaces itself.
"""

import numpy as np

cimport cython
from libc.stdint cimport UINT64_MAX, uint8_t, uint64_t

cdef enum:
    HEX = 16
    DECIMAL = 10
    # 16 hex digits are 64 bits; no decimal number of a file needs as many.
    MAX_DIGITS = 16
    # Nest levels count from 0.
    MAX_LEVELS = 128

# The words that records begin with, as numbers of their last eight letters.
cdef enum:
    WORD_FILE = 0x46494C45
    WORD_INLINE_ORIGIN = 0x455F4F524947494E
    WORD_FUNC = 0x46554E43
    WORD_PUBLIC = 0x5055424C4943
    WORD_INLINE = 0x494E4C494E45
    WORD_INFO = 0x494E464F
    WORD_MODULE = 0x4D4F44554C45
    WORD_STACK = 0x535441434B

# Kinds of lines.
cdef enum:
    SKIPPED
    FILE
    INLINE_ORIGIN
    FUNC
    PUBLIC
    LINE
    INLINE
    UNKNOWN


@cython.final
cdef class _Rows:
    """A table of numbers, which grows. fields: their names; addresses and sizes are unsigned."""

    cdef object dtype
    cdef object table
    cdef uint64_t[:, ::1] cells
    cdef Py_ssize_t n

    def __cinit__(self, fields):
        self.dtype = np.dtype([(name, "u8" if name in ("address", "size") else "i8") for name in fields.split()])
        self.table = np.empty((0, len(self.dtype)), np.uint64)
        self.cells = self.table

    cdef int add(self, const uint64_t* row) except -1:
        cdef Py_ssize_t column
        if self.n == self.cells.shape[0]:
            longer = np.empty((max(1 << 10, 2 * self.n), self.cells.shape[1]), np.uint64)
            longer[: self.n] = self.table
            self.cells = self.table = longer
        for column in range(self.cells.shape[1]):
            self.cells[self.n, column] = row[column]
        self.n += 1
        return 0

    cdef void cut(self, Py_ssize_t n) noexcept:
        self.n = n

    cdef rows(self):
        return self.table[: self.n].view(self.dtype)[:, 0]


@cython.final
cdef class Records:
    """The records of a file, a row each, in the file's order.

    name_at, name_end: the bytes of the name; file, call_file, origin: their numbers; function, inline: rows of these;
    at: the offset of the record. damaged: the offsets of lines that are none of these, and of those whose function is
    none.
    """

    cdef readonly object files
    cdef readonly object origins
    cdef readonly object functions
    cdef readonly object publics
    cdef readonly object lines
    cdef readonly object inlines
    cdef readonly object ranges
    cdef readonly object damaged
    cdef const uint8_t[::1] text
    # Where reading is in the text, and where its line ends.
    cdef Py_ssize_t at
    cdef Py_ssize_t end
    # The row of the FUNC record whose lines follow; -1: none.
    cdef Py_ssize_t function
    cdef uint64_t[6] fields
    cdef _Rows file_rows
    cdef _Rows origin_rows
    cdef _Rows function_rows
    cdef _Rows public_rows
    cdef _Rows line_rows
    cdef _Rows inline_rows
    cdef _Rows range_rows

    def __cinit__(self, const uint8_t[::1] text):
        self.text = text
        self.function = -1
        self.file_rows, self.origin_rows = _Rows("number name_at name_end"), _Rows("number name_at name_end")
        self.function_rows = _Rows("address size name_at name_end")
        self.public_rows = _Rows("address size name_at name_end")
        self.line_rows = _Rows("address size line file function at")
        self.inline_rows = _Rows("level call_line call_file origin function at")
        self.range_rows = _Rows("address size inline")
        cdef _Rows damaged = _Rows("at")
        cdef Py_ssize_t following
        cdef uint64_t begin
        while self.at < text.shape[0]:
            begin = self.at
            following = self.find_end()
            if not self.read():
                damaged.add(&begin)
            self.at = following
        self.files, self.origins = self.file_rows.rows(), self.origin_rows.rows()
        self.functions, self.publics = self.function_rows.rows(), self.public_rows.rows()
        self.lines, self.inlines, self.ranges = self.line_rows.rows(), self.inline_rows.rows(), self.range_rows.rows()
        self.damaged = damaged.rows()["at"]

    cdef Py_ssize_t find_end(self) noexcept:
        """Sets the end of the line. Returns where the next one begins."""
        cdef Py_ssize_t p = self.at
        while p < self.text.shape[0] and self.text[p] != c"\n":
            p += 1
        self.end = p - 1 if p > self.at and self.text[p - 1] == c"\r" else p
        return p + 1

    cdef bint read(self) except *:
        """Reads a line. Returns False where it is no record, or its function is none."""
        cdef int kind = self.kind()
        if kind == LINE:
            return self.function >= 0 and self.read_line()
        if kind == INLINE:
            return self.function >= 0 and self.read_inline()
        if kind == FUNC:
            self.function = -1
            if not self.read_code(self.function_rows, True):
                return False
            self.function = self.function_rows.n - 1
            return True
        if kind == PUBLIC:
            return self.read_code(self.public_rows, False)
        if kind == FILE:
            return self.read_named(self.file_rows)
        if kind == INLINE_ORIGIN:
            return self.read_named(self.origin_rows)
        return kind == SKIPPED

    cdef int kind(self) noexcept:
        """Returns which record the first word of the line begins; an empty line is skipped."""
        cdef uint64_t word = 0
        cdef Py_ssize_t p = self.at
        if p == self.end:
            return SKIPPED
        while p < self.end and self.text[p] != c" ":
            word = word << 8 | self.text[p]
            p += 1
        if word == WORD_FUNC:
            return FUNC
        if word == WORD_INLINE:
            return INLINE
        if word == WORD_FILE:
            return FILE
        if word == WORD_INLINE_ORIGIN:
            return INLINE_ORIGIN
        if word == WORD_PUBLIC:
            return PUBLIC
        if word == WORD_STACK or word == WORD_INFO or word == WORD_MODULE:
            return SKIPPED
        return LINE if digit_of(self.text[self.at]) < HEX else UNKNOWN

    cdef void skip_word(self) noexcept:
        """Goes past a record's first word, and the word `m` if it is next: several symbols are this code."""
        while self.at < self.end and self.text[self.at] != c" ":
            self.at += 1
        if self.at + 2 < self.end and self.text[self.at + 1] == c"m" and self.text[self.at + 2] == c" ":
            self.at += 2

    cdef bint read_numbers(self, uint64_t base, int first, int last) noexcept:
        """Reads the next words as numbers, into fields[first:last]. Returns False where they are none."""
        cdef int field
        cdef uint64_t value, digit
        cdef Py_ssize_t begin
        cdef Py_ssize_t p = self.at
        for field in range(first, last):
            while p < self.end and self.text[p] == c" ":
                p += 1
            begin = p
            value = 0
            while p < self.end and self.text[p] != c" ":
                digit = digit_of(self.text[p])
                if digit >= base or p - begin >= MAX_DIGITS:
                    return False
                value = value * base + digit
                p += 1
            if p == begin:
                return False
            self.fields[field] = value
        self.at = p
        return True

    cdef bint is_range(self) noexcept:
        """Whether the first fields are an address and a size that reaches no further than addresses do."""
        return self.fields[1] <= UINT64_MAX - self.fields[0]

    cdef bint read_named(self, _Rows rows) except *:
        """FILE and INLINE_ORIGIN: number name."""
        self.skip_word()
        if not self.read_numbers(DECIMAL, 0, 1):
            return False
        self.fields[1], self.fields[2] = min(self.at + 1, self.end), self.end
        rows.add(self.fields)
        return True

    cdef bint read_code(self, _Rows rows, bint has_size) except *:
        """FUNC: [m] address size parameter_size name. PUBLIC: the same without size."""
        self.skip_word()
        self.fields[1] = 0
        if (
            not self.read_numbers(HEX, 0, 1)
            or has_size and not self.read_numbers(HEX, 1, 2)
            or not self.read_numbers(HEX, 2, 3)
            or not self.is_range()
        ):
            return False
        self.fields[2], self.fields[3] = min(self.at + 1, self.end), self.end
        rows.add(self.fields)
        return True

    cdef bint read_line(self) except *:
        """address size line filenum"""
        self.fields[4], self.fields[5] = self.function, self.at
        if (
            not self.read_numbers(HEX, 0, 2)
            or not self.read_numbers(DECIMAL, 2, 4)
            or self.at != self.end
            or not self.is_range()
        ):
            return False
        self.line_rows.add(self.fields)
        return True

    cdef bint read_inline(self) except *:
        """INLINE: inline_nest_level call_site_line call_site_file_num origin_num [address size]+"""
        cdef Py_ssize_t n_ranges = self.range_rows.n
        self.fields[4], self.fields[5] = self.function, self.at
        self.skip_word()
        if not self.read_numbers(DECIMAL, 0, 4) or self.at == self.end or self.fields[0] >= MAX_LEVELS:
            return False
        self.inline_rows.add(self.fields)
        self.fields[2] = self.inline_rows.n - 1
        while self.at < self.end:
            if not self.read_numbers(HEX, 0, 2) or not self.is_range():
                self.inline_rows.cut(self.inline_rows.n - 1)
                self.range_rows.cut(n_ranges)
                return False
            self.range_rows.add(self.fields)
        return True


cdef inline uint64_t digit_of(uint8_t letter) noexcept nogil:
    """Returns what a hex digit counts; 16 for any other letter."""
    if c"0" <= letter <= c"9":
        return letter - c"0"
    if c"a" <= letter <= c"f":
        return letter - c"a" + 10
    if c"A" <= letter <= c"F":
        return letter - c"A" + 10
    return 16
