"""A position in bytes that may be damaged: what all cursors have."""

import cython

from traceferry.kernels.functions import c_inline
from traceferry.kernels.leb128 import leb


@cython.cclass
class Position:
    """Reads from `at` on, nothing from `end` on. damage: 0, CUT or ENDLESS: a number could not be read; it is then 0,
    and `at` stays before it."""

    data: cython.const[cython.uchar][::1]
    at: cython.ulonglong
    end: cython.ulonglong
    damage: cython.int

    @cython.final
    @c_inline
    def leb(self, signed: cython.bint) -> cython.ulonglong:
        value: cython.ulonglong
        following: cython.longlong
        value, following = leb(self.data, self.at, self.end, signed)
        if following < 0:
            self.damage = -following
        else:
            self.at = following
        return value
