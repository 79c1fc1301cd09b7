"""Trees of numbered nodes, to which loops add."""

from libc.stdint cimport int32_t, int64_t

from traceferry.native.interning cimport intern_pair


cdef class NodeTable:
    """Pairs of a parent, which may be a node, and a key. count: how many nodes there are, at most the length of the
    columns."""

    cdef int32_t[::1] parent
    cdef int32_t[::1] key
    cdef int32_t[::1] slots
    cdef int64_t[::1] count

    cdef inline int32_t intern(self, int32_t parent, int32_t key) noexcept nogil:
        """Returns the row of a pair, which is new if it has to be; -1 where the table is full."""
        cdef int32_t n = self.count[0]
        cdef int32_t node
        if n >= self.parent.shape[0]:
            return -1
        node = intern_pair(self.parent, self.key, self.slots, n, parent, key)
        self.count[0] = n + (node == n)
        return node
