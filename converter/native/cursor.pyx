"""The classes of cursor.pxd, whose methods are inlined where they are used."""

cimport cython
from libc.stdint cimport uint8_t


cdef class Position:
    pass


@cython.final
cdef class Cursor(Position):
    def __cinit__(self, const uint8_t[::1] data, bint big):
        self.data = data
        self.big = big
        self.begin(0, 0)
