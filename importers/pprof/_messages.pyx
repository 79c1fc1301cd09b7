"""Messages of protocol buffers in bytes that may be damaged."""

from libc.stdint cimport int64_t, uint64_t, uint8_t

from traceferry.native.leb128 cimport leb

cdef enum:
    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    FIXED32 = 5
    LOCATION = 1
    VALUE = 2
    LABEL = 3


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
    cdef list found = []
    cdef Field field
    if not 0 <= begin <= end <= data.shape[0]:
        raise ValueError("outside of the data")
    while begin < end:
        if not read_field(data, begin, end, &field):
            return found, begin
        found.append((field.number, field.kind, <int64_t> field.value, field.at, field.end))
        begin = field.end
    return found, -1


cdef bint add_numbers(const uint8_t[::1] d, Field* field, list into) except -1:
    """Adds a number, or packed ones; returns whether all are whole."""
    cdef int64_t at = field.at
    cdef uint64_t value
    if field.kind == VARINT:
        into.append(<int64_t> field.value)
        return True
    if field.kind != BYTES:
        return False
    while at < field.end:
        value, at = leb(d, at, field.end, False)
        if at < 0:
            return False
        into.append(<int64_t> value)
    return True


def packed_numbers(const uint8_t[::1] data, int64_t begin, int64_t end):
    cdef list found = []
    cdef Field field
    if not 0 <= begin <= end <= data.shape[0]:
        raise ValueError("outside of the data")
    field.kind, field.at, field.end = BYTES, begin, end
    add_numbers(data, &field, found)
    return found


def sample(const uint8_t[::1] data, int64_t begin, int64_t end):
    cdef list locations = [], values = [], labels = []
    cdef Field field
    cdef bint is_whole = True
    if not 0 <= begin <= end <= data.shape[0]:
        raise ValueError("outside of the data")
    while begin < end:
        if not read_field(data, begin, end, &field):
            return locations, values, labels, False
        if field.number == LOCATION:
            is_whole &= add_numbers(data, &field, locations)
        elif field.number == VALUE:
            is_whole &= add_numbers(data, &field, values)
        elif field.number == LABEL and field.kind == BYTES:
            labels.append((field.at, field.end))
        begin = field.end
    return locations, values, labels, is_whole
