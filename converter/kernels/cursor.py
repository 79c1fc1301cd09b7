"""A place in bytes that may be damaged: numbers are read there up to an end, LEB128 ones (DWARF 5, section 7.6) too."""

import cython

# Values of Cursor.damage.
CUT = cython.declare(cython.int, 1)
ENDLESS = cython.declare(cython.int, 2)
ALL = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def wrapped(value: cython.ulonglong) -> cython.ulonglong:
    """Modulo 2^64, as C counts anyway."""
    return value if cython.compiled else value & ALL


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
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
class Cursor:
    """Reads from `at` on, nothing from `end` on. damage: 0, or why a number could not be read; it is then 0."""

    data: cython.const[cython.uchar][::1]
    big: cython.bint
    at: cython.ulonglong
    end: cython.ulonglong
    damage: cython.int

    def __init__(self, data: cython.const[cython.uchar][::1], big: cython.bint):
        self.data = data
        self.big = big
        self.begin(0, 0)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def begin(self, at: cython.ulonglong, end: cython.ulonglong) -> cython.void:
        """end: no further than the data."""
        self.at = at
        self.end = end
        self.damage = 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def fixed(self, size: cython.ulonglong) -> cython.ulonglong:
        """The number of so many bytes."""
        at: cython.ulonglong = self.at
        if at > self.end or self.end - at < size:
            self.damage = CUT
            return 0
        self.at = at + size
        return number(self.data, at, size, self.big)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def leb(self, signed: cython.bint) -> cython.ulonglong:
        """ULEB128 or SLEB128; a negative number in two's complement. Bits beyond the 64th are dropped."""
        at: cython.ulonglong = self.at
        end: cython.ulonglong = self.end
        value: cython.ulonglong = 0
        shift: cython.int = 0
        b: cython.ulonglong
        while at < end:
            b = self.data[at]
            at += 1
            value |= (b & 0x7F) << shift
            shift += 7
            if b < 128:
                self.at = at
                if signed and b & 0x40 and shift < 64:
                    value |= ALL << shift
                return wrapped(value)
            if shift > 63:
                self.damage = ENDLESS
                return 0
        self.damage = CUT
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def uleb(self) -> cython.ulonglong:
        return self.leb(False)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def sleb(self) -> cython.ulonglong:
        return self.leb(True)
