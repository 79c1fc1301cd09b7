"""Rows that are numbered, each key once, by open addressing: `slots` holds row numbers, -1 where it is free, and is a
power of two longer than the table.

Each function gives the row of a key. It is `n`, and then entered, if the key is new: the caller has checked that the
columns and slots have space for it, and counts it.
"""

import cython

from traceferry.kernels.functions import c_inline
from traceferry.kernels.hashing import KeyPart, mix_pair, mix_triple


@c_inline
def slot_of_pair(
    first: cython.int[::1], second: KeyPart[::1], slots: cython.int[::1], a: cython.int, b: KeyPart
) -> cython.Py_ssize_t:
    """Where the row of a pair stands, or the free slot where it belongs."""
    mask: cython.ulonglong = slots.shape[0] - 1
    h: cython.ulonglong = mix_pair(a, b) & mask
    row: cython.int = slots[h]
    while row >= 0 and not (first[row] == a and second[row] == b):
        h = (h + 1) & mask
        row = slots[h]
    return h


@c_inline
def intern_pair(
    first: cython.int[::1],
    second: KeyPart[::1],
    slots: cython.int[::1],
    n: cython.int,
    a: cython.int,
    b: KeyPart,
) -> cython.int:
    """Of an index and an index or address, as a prefix and a frame."""
    h: cython.Py_ssize_t = slot_of_pair(first, second, slots, a, b)
    if slots[h] < 0:
        slots[h] = n
        first[n] = a
        second[n] = b
    return slots[h]


@c_inline
def intern_next(
    first: cython.int[::1], second: KeyPart[::1], slots: cython.int[::1], n: cython.int, a: cython.int, b: KeyPart
) -> cython.int:
    """As `intern_pair`, where the first part is a row, or -1: what is entered next mostly refers to the row before. So
    the row behind it often is the one, and slots, which lie far from each other in memory, need not be looked at."""
    row: cython.int = a + 1
    if row < n and first[row] == a and second[row] == b:
        return row
    return intern_pair(first, second, slots, n, a, b)


@c_inline
def intern_triple(
    first: cython.int[::1],
    second: cython.int[::1],
    third: cython.int[::1],
    slots: cython.int[::1],
    n: cython.int,
    a: cython.int,
    b: cython.int,
    c: cython.int,
) -> cython.int:
    """Of two indices and a number, as a name, a file and a line."""
    mask: cython.ulonglong = slots.shape[0] - 1
    h: cython.ulonglong = mix_triple(a, b, c) & mask
    row: cython.int = slots[h]
    while row >= 0 and not (first[row] == a and second[row] == b and third[row] == c):
        h = (h + 1) & mask
        row = slots[h]
    if row < 0:
        row = n
        slots[h] = n
        first[n] = a
        second[n] = b
        third[n] = c
    return row
