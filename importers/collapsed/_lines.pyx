"""The lines of collapsed stacks: where their names and numbers are."""

from libc.stdint cimport int64_t, uint8_t

import numpy as np

cdef enum:
    MOST_DIGITS = 15
    COLUMNS = 4


cdef struct Line:
    int64_t begin
    int64_t path
    int64_t path_end
    int64_t number
    int64_t number_end


cdef inline bint is_blank(uint8_t c) noexcept nogil:
    return c == 32 or 9 <= c <= 13


cdef int64_t next_line(const uint8_t[::1] d, int64_t at, Line* line) noexcept nogil:
    """Finds the next line that is no comment. line: its path is empty where it is no stack; returns where the line
    behind it begins, -1 where there is no line."""
    cdef int64_t n = d.shape[0]
    cdef int64_t end
    cdef int64_t stop
    cdef int64_t last
    while at < n:
        end = at
        while end < n and d[end] != 10:
            end += 1
        line.begin = at
        stop, last = end + 1, end
        while at < last and is_blank(d[at]):
            at += 1
        while at < last and is_blank(d[last - 1]):
            last -= 1
        if at == last or d[at] == 35 or (d[at] == 47 and at + 1 < last and d[at + 1] == 47):
            at = stop
            continue
        line.number_end = last
        while last > at and not is_blank(d[last - 1]):
            last -= 1
        line.number = last
        # Of several numbers between commas the first one counts.
        end = last
        while end < line.number_end and d[end] != 44:
            end += 1
        line.number_end = end
        # Names that are empty at either end are none.
        while last > at and (is_blank(d[last - 1]) or d[last - 1] == 59):
            last -= 1
        while at < last and (is_blank(d[at]) or d[at] == 59):
            at += 1
        line.path, line.path_end = at, last
        return stop
    return -1


cdef double value_of(const uint8_t[::1] d, const Line* line) noexcept nogil:
    """Returns the number, if it is of digits alone, else -1."""
    cdef int64_t value = 0
    cdef int64_t at
    if not 0 < line.number_end - line.number <= MOST_DIGITS:
        return -1
    for at in range(line.number, line.number_end):
        if not 48 <= d[at] <= 57:
            return -1
        value = value * 10 + d[at] - 48
    return value


def split_lines(const uint8_t[::1] data not None, int64_t begin, int64_t most):
    """Reads whole lines until `most` bytes are read, from `begin` on. Returns

    - where the next line begins, -1: nowhere;
    - of each line that is no comment, int64: where it begins, where its number begins and ends, and how many names there
      are up to its last; a line that is no stack adds none;
    - float64: the numbers, -1 where they are not of digits alone;
    - int64, two columns: where each name begins and ends.
    """
    cdef Line line
    cdef int64_t at = begin
    cdef int64_t next_at
    cdef int64_t i
    cdef int64_t n_lines = 0
    cdef int64_t n_names = 0
    cdef int64_t[:, ::1] of_line = None
    cdef int64_t[:, ::1] of_name = None
    cdef double[::1] value = None
    cdef bint fills
    if begin < 0:
        raise ValueError("outside of the data")
    for fills in (False, True):
        if fills:
            of_line, of_name = np.empty((n_lines, COLUMNS), np.int64), np.empty((n_names, 2), np.int64)
            value = np.empty(n_lines, np.float64)
            n_lines = n_names = 0
        with nogil:
            at = begin
            while at >= 0 and at - begin < most:
                next_at = next_line(data, at, &line)
                if next_at < 0:
                    at = -1
                    break
                if line.path < line.path_end:
                    if fills:
                        of_name[n_names, 0] = line.path
                    for i in range(line.path, line.path_end):
                        if data[i] == 59:
                            if fills:
                                of_name[n_names, 1], of_name[n_names + 1, 0] = i, i + 1
                            n_names += 1
                    if fills:
                        of_name[n_names, 1] = line.path_end
                    n_names += 1
                if fills:
                    of_line[n_lines, 0], of_line[n_lines, 1] = line.begin, line.number
                    of_line[n_lines, 2], of_line[n_lines, 3] = line.number_end, n_names
                    value[n_lines] = value_of(data, &line)
                n_lines += 1
                at = next_at
    return at, np.asarray(of_line), np.asarray(value), np.asarray(of_name)
