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
    a: cython.ulonglong = u32(d, p, big)
    b: cython.ulonglong = u32(d, p + 4, big)
    return a << 32 | b if big else b << 32 | a
