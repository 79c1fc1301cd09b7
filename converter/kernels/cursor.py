"""A place in bytes that may be damaged: numbers are read there, up to an end."""

import cython

from traceferry.kernels.functions import c_inline
from traceferry.kernels.integers import ALL, wrapped
from traceferry.kernels.leb128 import CUT
from traceferry.kernels.position import Position


@c_inline
def number(
    d: cython.const[cython.uchar][::1], at: cython.ulonglong, size: cython.ulonglong, big: cython.bint
) -> cython.ulonglong:
    """Of `size` bytes. The caller has checked that they are there."""
    value: cython.ulonglong = 0
    i: cython.ulonglong
    if big:
        for i in range(size):
            value = value << 8 | d[at + i]
    else:
        for i in range(size):
            value = value << 8 | d[at + size - 1 - i]
    return value


@cython.final
@cython.cclass
class Cursor(Position):
    """Reads numbers of either byte order, too."""

    big: cython.bint

    def __init__(self, data: cython.const[cython.uchar][::1], big: cython.bint):
        self.data = data
        self.big = big
        self.begin(0, 0)

    @c_inline
    def begin(self, at: cython.ulonglong, end: cython.ulonglong) -> cython.void:
        """end: no further than the data."""
        self.at = at
        self.end = end
        self.damage = 0

    @c_inline
    def skip(self, size: cython.ulonglong) -> cython.void:
        at: cython.ulonglong = self.at
        if at > self.end or self.end - at < size:
            self.damage = CUT
        else:
            self.at = at + size

    @c_inline
    def fixed(self, size: cython.ulonglong) -> cython.ulonglong:
        """The number of so many bytes."""
        at: cython.ulonglong = self.at
        if at > self.end or self.end - at < size:
            self.damage = CUT
            return 0
        self.at = at + size
        return number(self.data, at, size, self.big)

    @c_inline
    def fixed_signed(self, size: cython.ulonglong) -> cython.ulonglong:
        """The same, a negative number in two's complement of 64 bits."""
        value: cython.ulonglong = self.fixed(size)
        if 0 < size < 8 and value >> 8 * size - 1:
            value |= ALL << 8 * size
        return wrapped(value)

    @c_inline
    def uleb(self) -> cython.ulonglong:
        return self.leb(False)

    @c_inline
    def sleb(self) -> cython.ulonglong:
        return self.leb(True)
