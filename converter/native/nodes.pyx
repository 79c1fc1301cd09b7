"""See nodes.pxd."""

cimport cython
from libc.stdint cimport int32_t, int64_t


@cython.final
cdef class NodeTable:
    def __cinit__(self, int32_t[::1] parent, int32_t[::1] key, int32_t[::1] slots, int64_t[::1] count):
        """slots: the hash table of the nodes that are there."""
        cdef Py_ssize_t room = parent.shape[0]
        cdef Py_ssize_t size = slots.shape[0]
        if (
            key.shape[0] != room
            or count.shape[0] != 1
            or not 0 <= count[0] <= room
            or size < 2 * room
            or size == 0
            or size & (size - 1)
        ):
            raise ValueError("NodeTable: an array has the wrong length")
        self.parent, self.key, self.slots, self.count = parent, key, slots, count
