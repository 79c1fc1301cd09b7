"""See _chains.pxd."""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free

import numpy as np

from traceferry.native.interning cimport intern_pair
from traceferry.native.memory cimport resized

from traceferry.native.arrays import longer


cdef class KeyTable:
    def __cinit__(self, Py_ssize_t size):
        self.arrays = [np.empty(0, dtype) for dtype in (np.int32, np.uint64, np.int32, np.int32)]
        self.grow(size)

    cdef grow(self, Py_ssize_t size):
        cdef Py_ssize_t i
        self.arrays = [longer(array, size) for array in self.arrays]
        self.spaces, self.addresses, self.first, self.last = self.arrays
        self.slots = np.full(1 << (2 * size - 1).bit_length(), -1, np.int32)
        self.size = size
        for i in range(self.n):
            intern_pair(self.spaces, self.addresses, self.slots, i, self.spaces[i], self.addresses[i])


cdef class ChainTree:
    def __cinit__(self, Py_ssize_t size):
        self.keys = KeyTable(size)
        self.slots = np.zeros(1, np.uint64)
        self.reserve(size)

    def __dealloc__(self):
        free(self.nodes)

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Makes room for n more nodes."""
        cdef uint64_t[::1] before = self.slots
        cdef uint64_t mask, h
        cdef Py_ssize_t i
        if self.keys.n + n > self.keys.size:
            self.keys.grow(max(4 * self.keys.size, self.keys.n + n))
        if self.n + n <= self.size:
            return 0
        self.size = 1 << (max(2 * self.size, self.n + n) - 1).bit_length()
        self.nodes = <Node*>resized(self.nodes, self.size * sizeof(Node))
        self.slots = np.zeros(2 * self.size, np.uint64)
        mask = self.slots.shape[0] - 1
        for i in range(before.shape[0]):
            if before[i]:
                h = self.nodes[<uint32_t>before[i] - 1].hashed & mask
                while self.slots[h]:
                    h = (h + 1) & mask
                self.slots[h] = before[i]
        return 0

    cdef void spread_samples(self) noexcept nogil:
        """Gives each node and each key the latest sample that has it."""
        cdef Py_ssize_t row
        cdef Node* node
        cdef Node* outer
        for row in range(self.n - 1, -1, -1):
            node = &self.nodes[row]
            if node.parent >= 0:
                outer = &self.nodes[node.parent]
                outer.last = max(outer.last, node.last)
            self.keys.last[node.key] = max(self.keys.last[node.key], node.last)
