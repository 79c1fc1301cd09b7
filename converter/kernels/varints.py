"""Unsigned integers as varints (LEB128), and how many bytes they take. The caller has checked the array's length."""

import cython

from traceferry.kernels.functions import c_inline


@c_inline
def varint(o: cython.uchar[::1], p: cython.Py_ssize_t, v: cython.ulonglong) -> cython.Py_ssize_t:
    while v > 127:
        o[p] = v & 127 | 128
        v >>= 7
        p += 1
    o[p] = v
    return p + 1


@c_inline
def length4(o: cython.uchar[::1], p: cython.Py_ssize_t, n: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """A varint of always four bytes, for a length that is known only afterwards."""
    o[p] = n & 127 | 128
    o[p + 1] = n >> 7 & 127 | 128
    o[p + 2] = n >> 14 & 127 | 128
    o[p + 3] = n >> 21 & 127
    return p + 4


@c_inline
def size_of(v: cython.int) -> cython.Py_ssize_t:
    """Of the varint of a number that is not negative."""
    return 1 + (v > 0x7F) + (v > 0x3FFF) + (v > 0x1FFFFF) + (v > 0xFFFFFFF)


@c_inline
def size_of_long(v: cython.ulonglong) -> cython.Py_ssize_t:
    """Of the varint of any number."""
    n: cython.Py_ssize_t = 1
    while v > 127:
        v >>= 7
        n += 1
    return n
