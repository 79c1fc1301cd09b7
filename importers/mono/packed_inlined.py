"""Numbers of an event that stand in the next eight bytes, as those of most enters and leaves do."""

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
@cython.returns((cython.ulonglong, cython.ulonglong, cython.Py_ssize_t))
def decode_packed(w: cython.ulonglong):
    """Of eight bytes that begin with an enter or leave: the differences of time and method, and its length; 0 where it
    is longer than that, or the numbers than usual.

    The branches are what makes it quick: processors guess them right, and go on without waiting for the length.
    """
    delta: cython.ulonglong
    difference: cython.ulonglong
    length: cython.Py_ssize_t
    if not w & 0x8000:
        delta = (w >> 8) & 0x7F
        w = w >> 16
        length = 2
    elif not w & 0x800000:
        delta = (w >> 8) & 0x7F | (w >> 9) & 0x3F80
        w = w >> 24
        length = 3
    elif not w & FOURTH_ENDS:
        delta = (w >> 8) & 0x7F | (w >> 9) & 0x3F80 | (w >> 10) & 0x1FC000
        w = w >> 32
        length = 4
    else:
        return 0, 0, 0
    if not w & 0x80:
        difference = (w & 0x7F ^ 0x40) - 0x40
        return delta, difference, length + 1
    if not w & 0x8000:
        difference = ((w & 0x7F | (w >> 1) & 0x3F80) ^ 0x2000) - 0x2000
        return delta, difference, length + 2
    if not w & 0x800000:
        difference = ((w & 0x7F | (w >> 1) & 0x3F80 | (w >> 2) & 0x1FC000) ^ 0x100000) - 0x100000
        return delta, difference, length + 3
    if length < 4 and not w & FOURTH_ENDS:
        w = w & 0x7F | (w >> 1) & 0x3F80 | (w >> 2) & 0x1FC000 | (w >> 3) & 0xFE00000
        return delta, (w ^ 0x8000000) - 0x8000000, length + 4
    return 0, 0, 0


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
