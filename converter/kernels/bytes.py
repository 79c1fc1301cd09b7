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
def bytes_at(
    d: cython.const[cython.uchar][::1], p: cython.Py_ssize_t, n: cython.Py_ssize_t
) -> cython.pointer(cython.const[cython.uchar]):
    """The n bytes from p on. Loads from one pointer are joined by the C compiler, those of d[p], d[p + 1] are not."""
    if not cython.compiled:
        return d[p : p + n]
    # The index checks of a sanitized build see the first byte and this one; other builds do not load it.
    d[p + n - 1]
    return cython.address(d[p])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def u32(d: cython.const[cython.uchar][::1], p: cython.Py_ssize_t, big: cython.bint) -> cython.uint:
    q: cython.pointer(cython.const[cython.uchar]) = bytes_at(d, p, 4)
    w: cython.uint = q[0]
    b: cython.uint
    b = q[1]
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


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def u64(d: cython.const[cython.uchar][::1], p: cython.Py_ssize_t, big: cython.bint) -> cython.ulonglong:
    # A word of all bytes is one load; a word reversed is one instruction.
    q: cython.pointer(cython.const[cython.uchar]) = bytes_at(d, p, 8)
    w: cython.ulonglong = q[0]
    b: cython.ulonglong
    b = q[1]
    w |= b << 8
    b = q[2]
    w |= b << 16
    b = q[3]
    w |= b << 24
    b = q[4]
    w |= b << 32
    b = q[5]
    w |= b << 40
    b = q[6]
    w |= b << 48
    b = q[7]
    w |= b << 56
    if big:
        words: cython.ulonglong = 0x00000000FFFFFFFF
        pairs: cython.ulonglong = 0x0000FFFF0000FFFF
        octets: cython.ulonglong = 0x00FF00FF00FF00FF
        w = w >> 32 | (w & words) << 32
        w = w >> 16 & pairs | (w & pairs) << 16
        w = w >> 8 & octets | (w & octets) << 8
    return w
