"""Hashes for open addressing: 64 bits of which the low ones are well mixed. Slots are a power of two."""

import cython

GOLDEN = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
ALL_BITS = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def mix_pair(first: cython.int, second: cython.int) -> cython.ulonglong:
    """Of two indices, -1 or more: of a prefix and a frame."""
    a: cython.uint = first + 1
    b: cython.uint = second + 1
    x: cython.ulonglong = a
    x = (x << 32 | b) * GOLDEN & ALL_BITS
    return x ^ x >> 29


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def mix_address(space: cython.uint, address: cython.ulonglong) -> cython.ulonglong:
    """Of an address in one of several address spaces."""
    s: cython.ulonglong = space
    x: cython.ulonglong = (address ^ s << 48) * GOLDEN & ALL_BITS
    return x ^ x >> 32


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
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
