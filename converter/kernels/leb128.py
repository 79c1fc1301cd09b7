"""LEB128 numbers (DWARF 5, section 7.6) in bytes that may be damaged."""

import cython

from traceferry.kernels.functions import c_inline
from traceferry.kernels.integers import ALL, wrapped

# Why a number could not be read: the bytes end within it; it is longer than 64 bits need.
CUT = cython.declare(cython.int, 1)
ENDLESS = cython.declare(cython.int, 2)


@c_inline
@cython.returns((cython.ulonglong, cython.longlong))
def leb(d: cython.const[cython.uchar][::1], p: cython.longlong, end: cython.longlong, signed: cython.bint):
    """The ULEB128 or SLEB128 at d[p], and the offset behind it: -CUT or -ENDLESS where it cannot be read, and the
    number is 0. No byte from `end` on is read. A negative number is in two's complement; bits beyond the 64th are
    dropped."""
    value: cython.ulonglong = 0
    shift: cython.int = 0
    while p < end:
        b: cython.ulonglong = d[p]
        p += 1
        value |= (b & 0x7F) << shift
        shift += 7
        if b < 128:
            if signed and b & 0x40 and shift < 64:
                value |= ALL << shift
            return wrapped(value), p
        if shift > 63:
            return 0, -ENDLESS
    return 0, -CUT
