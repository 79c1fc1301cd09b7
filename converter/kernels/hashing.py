"""Hashes for open addressing: 64 bits of which the low ones are well mixed. Slots are a power of two."""

import cython

from traceferry.kernels.functions import c_inline

GOLDEN = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
ALL_BITS = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


# What the second part of a key may be.
KeyPart = cython.fused_type(cython.int, cython.ulonglong)


@c_inline
def mix_pair(first: cython.int, second: KeyPart) -> cython.ulonglong:
    """Of an index and an index or address, as a prefix and a frame. first: -1 or more."""
    a: cython.ulonglong = first + 1
    b: cython.ulonglong = second
    x: cython.ulonglong = (b ^ a << 32 ^ a << 48) * GOLDEN & ALL_BITS
    return x ^ x >> 29


@c_inline
def mix_triple(first: cython.int, second: cython.int, third: cython.int) -> cython.ulonglong:
    """Of two indices, -1 or more, and a number, 0 or more."""
    a: cython.uint = first + 1
    b: cython.uint = second + 1
    c: cython.uint = third
    x: cython.ulonglong = a
    y: cython.ulonglong = b
    x = (x << 32 | c) * GOLDEN & ALL_BITS
    x = (x ^ x >> 29 ^ y) * GOLDEN & ALL_BITS
    return x ^ x >> 31
