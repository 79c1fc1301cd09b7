"""Integers of either byte order. The caller has checked that the bytes are there."""

import cython

from traceferry.kernels.functions import c_inline


@c_inline
def u16(d: cython.const[cython.uchar][::1], p: cython.Py_ssize_t, big: cython.bint) -> cython.uint:
    a: cython.uint = d[p]
    b: cython.uint = d[p + 1]
    return a << 8 | b if big else b << 8 | a


@c_inline
def bytes_at(d: cython.const[cython.uchar][::1], p: cython.Py_ssize_t, n: cython.Py_ssize_t) -> cython.pointer(
    cython.const[cython.uchar]
):
    """The n bytes from p on. Loads from one pointer are joined by the C compiler, those of d[p], d[p + 1] are not."""
    if not cython.compiled:
        return d[p : p + n]
    # The index checks of a sanitized build see the first byte and this one; other builds do not load it.
    d[p + n - 1]
    return cython.address(d[p])


@c_inline
def u32(d: cython.const[cython.uchar][::1], p: cython.Py_ssize_t, big: cython.bint) -> cython.uint:
    q: cython.pointer(cython.const[cython.uchar]) = bytes_at(d, p, 4)
    w: cython.uint = q[0]
    b: cython.uint = q[1]
    w |= b << 8
    b = q[2]
    w |= b << 16
    b = q[3]
    w |= b << 24
    if big:
        octets: cython.uint = 0x00FF00FF
        w = w >> 16 | (w & 0xFFFF) << 16
        w = w >> 8 & octets | (w & octets) << 8
    return w


@c_inline
def u64(d: cython.const[cython.uchar][::1], p: cython.Py_ssize_t, big: cython.bint) -> cython.ulonglong:
    # The C compiler makes one load of both halves, and one instruction of their order.
    first: cython.ulonglong = u32(d, p, big)
    second: cython.ulonglong = u32(d, p + 4, big)
    return first << 32 | second if big else second << 32 | first
