"""Numbers that stand in the next eight bytes, as most do. A kernel that uses this has `memcpy` in its .pxd file."""

import sys

import cython

from traceferry.kernels.functions import c_inline
from traceferry.kernels.leb128 import leb

FOURTH_ENDS = cython.declare(cython.ulonglong, 0x80000000)
LITTLE_ENDIAN = cython.declare(cython.bint, sys.byteorder == "little")


@c_inline
def load8(d: cython.const[cython.uchar][::1], p: cython.Py_ssize_t) -> cython.ulonglong:
    """Eight bytes, the first one lowest."""
    w: cython.ulonglong = 0
    i: cython.int
    if cython.compiled and LITTLE_ENDIAN:
        # One load. Put together from bytes, the C compiler would take it apart again.
        memcpy(cython.address(w), cython.address(d[p]), 8)  # noqa: F821
        return w
    for i in range(7, -1, -1):
        w = w << 8 | d[p + i]
    return w


@c_inline
@cython.returns((cython.ulonglong, cython.longlong))
def short_leb(d: cython.const[cython.uchar][::1], p: cython.longlong, end: cython.longlong, signed: cython.bint):
    """As `leb`, where there are eight bytes from p on."""
    w: cython.ulonglong = load8(d, p)
    if not w & 0x80:
        w = w & 0x7F
        return (w ^ 0x40) - 0x40 if signed else w, p + 1
    if not w & 0x8000:
        w = w & 0x7F | (w >> 1) & 0x3F80
        return (w ^ 0x2000) - 0x2000 if signed else w, p + 2
    if not w & 0x800000:
        w = w & 0x7F | (w >> 1) & 0x3F80 | (w >> 2) & 0x1FC000
        return (w ^ 0x100000) - 0x100000 if signed else w, p + 3
    return leb(d, p, end, signed)
