"""Integers of either byte order. The caller has checked that the bytes are there."""

import cython


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def u16(d: cython.const[cython.uchar][::1], p: cython.Py_ssize_t, big: cython.bint) -> cython.uint:
    a: cython.uint = d[p]
    b: cython.uint = d[p + 1]
    return a << 8 | b if big else b << 8 | a


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def u32(d: cython.const[cython.uchar][::1], p: cython.Py_ssize_t, big: cython.bint) -> cython.uint:
    # The loads stand in each branch, so that the C compiler makes one load of them.
    a: cython.uint
    b: cython.uint
    c: cython.uint
    e: cython.uint
    if big:
        a = d[p]
        b = d[p + 1]
        c = d[p + 2]
        e = d[p + 3]
        return a << 24 | b << 16 | c << 8 | e
    a = d[p]
    b = d[p + 1]
    c = d[p + 2]
    e = d[p + 3]
    return e << 24 | c << 16 | b << 8 | a


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def u64(d: cython.const[cython.uchar][::1], p: cython.Py_ssize_t, big: cython.bint) -> cython.ulonglong:
    # A word of all bytes, which the C compiler makes one load, and which is then reversed, one instruction.
    w: cython.ulonglong = d[p]
    b: cython.ulonglong
    b = d[p + 1]
    w |= b << 8
    b = d[p + 2]
    w |= b << 16
    b = d[p + 3]
    w |= b << 24
    b = d[p + 4]
    w |= b << 32
    b = d[p + 5]
    w |= b << 40
    b = d[p + 6]
    w |= b << 48
    b = d[p + 7]
    w |= b << 56
    if big:
        words: cython.ulonglong = 0x00000000FFFFFFFF
        pairs: cython.ulonglong = 0x0000FFFF0000FFFF
        octets: cython.ulonglong = 0x00FF00FF00FF00FF
        w = w >> 32 | (w & words) << 32
        w = w >> 16 & pairs | (w & pairs) << 16
        w = w >> 8 & octets | (w & octets) << 8
    return w
