"""Messages of protocol buffers in bytes that may be damaged, as columns. What is damaged is read as far as it is whole."""

from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t

import numpy as np

from traceferry.native.leb128 cimport leb
from traceferry.native.nodes cimport NodeTable

cdef enum:
    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    FIXED32 = 5
    COLUMNS = 5


cdef struct Field:
    uint64_t number
    int kind
    uint64_t value
    int64_t at
    int64_t end


cdef inline bint read_field(const uint8_t[::1] d, int64_t at, int64_t end, Field* field) noexcept nogil:
    """Reads a field; returns whether there is a whole one."""
    cdef uint64_t tag
    tag, at = leb(d, at, end, False)
    if at < 0 or tag >> 3 == 0:
        return False
    field.number, field.kind, field.value, field.at = tag >> 3, tag & 7, 0, at
    if field.kind == VARINT:
        field.value, field.end = leb(d, at, end, False)
        return field.end >= 0
    if field.kind == FIXED64 or field.kind == FIXED32:
        field.end = at + (8 if field.kind == FIXED64 else 4)
        return field.end <= end
    if field.kind != BYTES:
        return False
    field.value, field.at = leb(d, at, end, False)
    if field.at < 0 or field.value > <uint64_t> (end - field.at):
        return False
    field.end = field.at + <int64_t> field.value
    return True


def fields(const uint8_t[::1] data, int64_t begin, int64_t end):
    """Returns (number, kind, value, begin, end of what it holds) of each field of a message, int64; and where the first
    damage is, -1: nowhere."""
    check(data, begin, end)
    cdef Field field
    cdef int64_t at = begin
    cdef int64_t n = 0
    while at < end and read_field(data, at, end, &field):
        n += 1
        at = field.end
    found = np.empty((n, COLUMNS), np.int64)
    cdef int64_t[:, ::1] rows = found
    cdef int64_t nth
    at = begin
    for nth in range(n):
        read_field(data, at, end, &field)
        rows[nth, 0], rows[nth, 1], rows[nth, 2] = <int64_t> field.number, field.kind, <int64_t> field.value
        rows[nth, 3], rows[nth, 4] = field.at, field.end
        at = field.end
    return found, -1 if at >= end else at


def numbers(const uint8_t[::1] data, const int64_t[::1] begins, const int64_t[::1] ends, const int64_t[::1] wanted):
    """Returns int64, messages x wanted: what the last field of each number holds, 0 where there is none."""
    cdef Py_ssize_t n = check_all(data, begins, ends)
    cdef Py_ssize_t nth
    cdef Py_ssize_t column
    cdef int64_t at
    cdef Field field
    found = np.zeros((n, wanted.shape[0]), np.int64)
    cdef int64_t[:, ::1] rows = found
    with nogil:
        for nth in range(n):
            at = begins[nth]
            while at < ends[nth] and read_field(data, at, ends[nth], &field):
                at = field.end
                if field.kind != VARINT:
                    continue
                for column in range(wanted.shape[0]):
                    if field.number == <uint64_t> wanted[column]:
                        rows[nth, column] = <int64_t> field.value
    return found


def parts(const uint8_t[::1] data, const int64_t[::1] begins, const int64_t[::1] ends, uint64_t wanted):
    """Returns (the row of the message, begin, end) of each field of this number that holds bytes, int64."""
    cdef Py_ssize_t n = check_all(data, begins, ends)
    cdef Py_ssize_t nth
    cdef int64_t size = 0
    cdef int64_t at
    cdef bint fills
    cdef Field field
    cdef int64_t[::1] owner = None
    cdef int64_t[::1] begin = None
    cdef int64_t[::1] end = None
    for fills in (False, True):
        if fills:
            owner, begin, end = (np.empty(size, np.int64) for _ in range(3))
            size = 0
        with nogil:
            for nth in range(n):
                at = begins[nth]
                while at < ends[nth] and read_field(data, at, ends[nth], &field):
                    at = field.end
                    if field.number == wanted and field.kind == BYTES:
                        if fills:
                            owner[size], begin[size], end[size] = nth, field.at, field.end
                        size += 1
    return np.asarray(owner), np.asarray(begin), np.asarray(end)


def lists(const uint8_t[::1] data, const int64_t[::1] begins, const int64_t[::1] ends, uint64_t wanted):
    """Returns (int64: the numbers of the fields of this number, packed or not, message after message; int64: where each
    message's end; bool: whether the message is whole)."""
    cdef Py_ssize_t n = check_all(data, begins, ends)
    cdef Py_ssize_t nth
    cdef int64_t size = 0
    cdef int64_t at
    cdef bint fills
    cdef bint whole
    cdef Field field
    cdef int64_t[::1] flat = None
    stops, are_whole = np.empty(n, np.int64), np.empty(n, bool)
    cdef int64_t[::1] stop = stops
    cdef uint8_t[::1] is_whole = are_whole.view(np.uint8)
    for fills in (False, True):
        if fills:
            flat = np.empty(size, np.int64)
            size = 0
        with nogil:
            for nth in range(n):
                at, whole = begins[nth], True
                while whole and at < ends[nth]:
                    whole = read_field(data, at, ends[nth], &field)
                    if whole:
                        at = field.end
                        if field.number == wanted:
                            whole = add_numbers(data, &field, flat, fills, &size)
                stop[nth], is_whole[nth] = size, whole
    return np.asarray(flat), stops, are_whole


cdef bint add_numbers(
    const uint8_t[::1] d, const Field* field, int64_t[::1] flat, bint fills, int64_t* size
) noexcept nogil:
    """Counts the numbers of a field, and adds them if they are wanted; returns whether they are whole."""
    cdef int64_t at = field.at
    cdef uint64_t value = field.value
    if field.kind == VARINT:
        if fills:
            flat[size[0]] = <int64_t> value
        size[0] += 1
        return True
    if field.kind != BYTES:
        return False
    while at < field.end:
        value, at = leb(d, at, field.end, False)
        if at < 0:
            return False
        if fills:
            flat[size[0]] = <int64_t> value
        size[0] += 1
    return True


def intern_stacks(
    NodeTable table, const int64_t[::1] rows, const int64_t[::1] ends, const int32_t[::1] frames,
    const int64_t[::1] frame_ends, const int64_t[::1] cut
):
    """Returns int32: the stack of each sample, -1 is none. rows: of locations, the innermost first, -1 is unknown; ends:
    where each sample's end; frames: of the locations, the outermost first; frame_ends: where each location's end; cut:
    so many of its frames stay where a location before it, from outside, is not cut, and none within it; -1: all."""
    cdef Py_ssize_t n = ends.shape[0]
    cdef Py_ssize_t nth
    cdef int64_t begin = 0
    cdef int64_t i
    cdef int64_t row
    cdef int64_t at
    cdef int64_t stop
    cdef int64_t n_locations = frame_ends.shape[0]
    cdef int32_t stack
    cdef bint is_below
    found = np.empty(n, np.int32)
    cdef int32_t[::1] stacks = found
    if cut.shape[0] != n_locations or (n_locations and frame_ends[n_locations - 1] != frames.shape[0]):
        raise ValueError("columns of different lengths")
    for nth in range(n):
        if not begin <= ends[nth] <= rows.shape[0]:
            raise ValueError("a sample outside of the rows")
        stack, is_below = -1, False
        for i in range(ends[nth] - 1, begin - 1, -1):
            row = rows[i]
            if row < 0:
                continue
            if row >= n_locations:
                raise ValueError("no such location")
            at, stop = frame_ends[row - 1] if row else 0, frame_ends[row]
            if cut[row] < 0:
                is_below = True
            elif is_below:
                stop = min(at + cut[row], stop)
                begin = -1
            if table.n_nodes + stop - at > table.parents.shape[0]:
                table.reserve(table.n_nodes + stop - at)
            while at < stop:
                stack = table.intern_next(stack, frames[at])
                at += 1
            if begin < 0:
                break
        stacks[nth] = stack
        begin = ends[nth]
    return found


cdef int check(const uint8_t[::1] data, int64_t begin, int64_t end) except -1:
    if not 0 <= begin <= end <= data.shape[0]:
        raise ValueError("outside of the data")
    return 0


cdef Py_ssize_t check_all(const uint8_t[::1] data, const int64_t[::1] begins, const int64_t[::1] ends) except -1:
    """Returns how many messages there are."""
    cdef Py_ssize_t nth
    if ends.shape[0] != begins.shape[0]:
        raise ValueError("columns of different lengths")
    for nth in range(begins.shape[0]):
        check(data, begins[nth], ends[nth])
    return begins.shape[0]
