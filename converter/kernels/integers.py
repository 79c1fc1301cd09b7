"""Integers of 64 bits, compiled and interpreted alike: interpreted ones do not wrap around."""

import cython

from traceferry.kernels.functions import c_inline

ALL = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
LOW_32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
BITS_63 = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFF)
HALF = cython.declare(cython.longlong, 0x4000000000000000)


@c_inline
def wrapped(value: cython.ulonglong) -> cython.ulonglong:
    """Modulo 2^64, as C counts anyway."""
    return value if cython.compiled else value & ALL


@c_inline
def as_signed(value: cython.ulonglong) -> cython.longlong:
    """A number in two's complement."""
    low: cython.longlong = value & BITS_63
    # -2^63 in two steps: C has no literal for it.
    return low - HALF - HALF if value >> 63 else low
