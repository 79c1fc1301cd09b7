"""LEB128. `at[0]` is the place, moved past the number; a number that does not end before `end` sets it to `end` + 1."""

import cython

LEB_ALL_BITS = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
LEB_BITS_63 = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFF)
LEB_HALF = cython.declare(cython.longlong, 0x4000000000000000)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def uleb(d: cython.const[cython.uchar][::1], at: cython.longlong[::1], end: cython.longlong) -> cython.ulonglong:
    """Modulo 2^64."""
    p: cython.longlong = at[0]
    value: cython.ulonglong = 0
    shift: cython.int = 0
    b: cython.ulonglong
    while p < end:
        b = d[p]
        p += 1
        if shift < 64:
            value |= ((b & 0x7F) << shift) & LEB_ALL_BITS
        shift += 7
        if b < 128:
            at[0] = p
            return value
        if shift > 700:
            break
    at[0] = end + 1
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def sleb(d: cython.const[cython.uchar][::1], at: cython.longlong[::1], end: cython.longlong) -> cython.ulonglong:
    """In two's complement, modulo 2^64."""
    p: cython.longlong = at[0]
    value: cython.ulonglong = 0
    shift: cython.int = 0
    b: cython.ulonglong
    while p < end:
        b = d[p]
        p += 1
        if shift < 64:
            value |= ((b & 0x7F) << shift) & LEB_ALL_BITS
        shift += 7
        if b < 128:
            at[0] = p
            if b & 0x40 and shift < 64:
                value |= (LEB_ALL_BITS << shift) & LEB_ALL_BITS
            return value
        if shift > 700:
            break
    at[0] = end + 1
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def as_signed(value: cython.ulonglong) -> cython.longlong:
    low: cython.longlong = value & LEB_BITS_63
    # -2^63 in two steps, since interpreted integers do not wrap around.
    return low - LEB_HALF - LEB_HALF if value >> 63 else low
