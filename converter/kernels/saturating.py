"""Arithmetic of int64 that ends at 2^63 - 1 instead of wrapping: damaged times and sizes add up to anything."""

import cython

from traceferry.kernels.functions import c_inline

LARGEST = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)


@c_inline
def plus(a: cython.longlong, b: cython.longlong) -> cython.longlong:
    """The sum of two numbers, neither negative."""
    return LARGEST if a > LARGEST - b else a + b


@c_inline
def minus(a: cython.longlong, b: cython.longlong) -> cython.longlong:
    """The difference a - b, 0 if b is larger."""
    if a <= b:
        return 0
    return LARGEST if b < 0 and a > LARGEST + b else a - b
