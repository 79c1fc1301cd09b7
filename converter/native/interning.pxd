"""Rows that are numbered, each key once, by open addressing: `slots` holds row numbers, -1 where it is free, and is a
power of two longer than the table. A key is looked for near the place of its first part, then where its hash says, and
behind that: what continues a long path so lies in memory beside what is above it.

Each function returns the row of a key. It is `n`, and then entered, if the key is new: the caller has checked that the
columns and slots have space for it, and counts it.
"""

from libc.stdint cimport int32_t, uint64_t

from traceferry.native.bytes cimport prefetch
from traceferry.native.hashing cimport KeyPart, mix_pair

cdef enum:
    AHEAD = 12  # rows, which take as long as memory needs to answer


cdef inline uint64_t near_slot(int32_t first, uint64_t mixed) noexcept nogil:
    """Returns one of four slots, two of which are those of the next first part, too."""
    return (<uint64_t>(first + 1) << 1) + (mixed >> 62)


cdef inline Py_ssize_t slot_of_pair(
    int32_t[::1] first, KeyPart[::1] second, int32_t[::1] slots, int32_t a, KeyPart b
) noexcept nogil:
    """Returns where the row of a pair stands, or the free slot where it belongs."""
    cdef uint64_t mask = slots.shape[0] - 1
    cdef uint64_t mixed = mix_pair(a, b)
    cdef uint64_t h = near_slot(a, mixed) & mask
    cdef int32_t row = slots[h]
    if row < 0 or (first[row] == a and second[row] == b):
        return h
    h = mixed & mask
    row = slots[h]
    while row >= 0 and not (first[row] == a and second[row] == b):
        h = (h + 1) & mask
        row = slots[h]
    return h


cdef inline int32_t intern_pair(
    int32_t[::1] first, KeyPart[::1] second, int32_t[::1] slots, int32_t n, int32_t a, KeyPart b
) noexcept nogil:
    """Returns the row of an index and an index or address, as of a prefix and a frame."""
    cdef Py_ssize_t h = slot_of_pair(first, second, slots, a, b)
    if slots[h] < 0:
        slots[h] = n
        first[n] = a
        second[n] = b
    return slots[h]


cdef inline void enter_pairs(
    const int32_t[::1] first, KeyPart[::1] second, int32_t[::1] slots, int32_t begin, int32_t end
) noexcept nogil:
    """Enters rows of pairs, no two of which are the same, and none of which is entered."""
    cdef uint64_t mask = slots.shape[0] - 1
    cdef uint64_t h, mixed
    cdef int32_t row
    for row in range(begin, end):
        if row + AHEAD < end:
            prefetch(&slots[mix_pair(first[row + AHEAD], second[row + AHEAD]) & mask])
        mixed = mix_pair(first[row], second[row])
        h = near_slot(first[row], mixed) & mask
        if slots[h] >= 0:
            h = mixed & mask
        while slots[h] >= 0:
            h = (h + 1) & mask
        slots[h] = row


cdef inline int32_t intern_next(
    int32_t[::1] first, KeyPart[::1] second, int32_t[::1] slots, int32_t n, int32_t a, KeyPart b
) noexcept nogil:
    """Returns what `intern_pair` returns, where the first part is a row, or -1: what is entered next mostly refers to
    the row before. So the row behind it often is the one, and slots, which lie far from each other in memory, need not
    be looked at."""
    cdef int32_t row = a + 1
    if row < n and first[row] == a and second[row] == b:
        return row
    return intern_pair(first, second, slots, n, a, b)
