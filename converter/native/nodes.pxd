"""Trees of numbered nodes, to which loops add."""

from libc.stdint cimport int32_t

from traceferry.native.bytes cimport prefetch
from traceferry.native.hashing cimport mix_pair
from traceferry.native.interning cimport intern_next, intern_pair


cdef class NodeTable:
    """Pairs of a parent, which is a smaller node, -1 is none, and a key. n_nodes: how many there are, at most the
    length of the columns."""

    cdef int32_t[::1] parents
    cdef int32_t[::1] keys
    cdef int32_t[::1] slots
    cdef int32_t n_nodes

    cdef inline int32_t intern(self, int32_t parent, int32_t key) noexcept nogil:
        """Returns the row of a pair, which is new if it has to be; -1 where the table is full."""
        cdef int32_t node
        if self.n_nodes >= self.parents.shape[0]:
            return -1
        node = intern_pair(self.parents, self.keys, self.slots, self.n_nodes, parent, key)
        self.n_nodes += node == self.n_nodes
        return node

    cdef inline int32_t intern_next(self, int32_t parent, int32_t key) noexcept nogil:
        """Returns the row of a pair as `intern_next` of interning.pxd does. The table is not full."""
        cdef int32_t node = intern_next(self.parents, self.keys, self.slots, self.n_nodes, parent, key)
        self.n_nodes += node == self.n_nodes
        return node

    cdef inline void prefetch(self, int32_t parent, int32_t key) noexcept nogil:
        """Asks for where a pair stands, which is interned soon."""
        prefetch(&self.slots[mix_pair(parent, key) & (self.slots.shape[0] - 1)])

    cdef int resize(self, Py_ssize_t size) except -1
    cdef void enter(self, int32_t first) noexcept nogil
