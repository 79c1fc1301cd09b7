"""See nodes.pxd."""

from libc.stdint cimport int32_t, int64_t

from traceferry.native.interning cimport enter_pairs

import numpy as np

from traceferry.native.arrays import longer

cdef enum:
    FIRST_NODES = 1 << 10


cdef class NodeTable:
    def __cinit__(self, *arguments):
        self.parents = self.keys = np.empty(0, np.int32)
        self.resize(FIRST_NODES)

    @property
    def n(self):
        """How many nodes there are."""
        return self.n_nodes

    @property
    def capacity(self):
        return self.parents.shape[0]

    @property
    def parent(self):
        return np.asarray(self.parents)[:self.n_nodes]

    @property
    def key(self):
        return np.asarray(self.keys)[:self.n_nodes]

    def reserve(self, Py_ssize_t n):
        """Makes room for n nodes."""
        if n > self.parents.shape[0]:
            self.resize(1 << (n - 1).bit_length())

    def grow(self, Py_ssize_t size):
        """Makes a table of that size, if it is larger."""
        self.resize(max(size, self.parents.shape[0]))

    def append(self, const int32_t[::1] parent, const int32_t[::1] key):
        """Adds other pairs than there are, as they are."""
        cdef int32_t first = self.n_nodes
        cdef int32_t n = first + parent.shape[0]
        if key.shape[0] != parent.shape[0]:
            raise ValueError("NodeTable: columns of different lengths")
        self.reserve(n)
        self.parents[first:n] = parent
        self.keys[first:n] = key
        self.n_nodes = n
        self.enter(first)

    def intern_lists(self, const int32_t[::1] keys, const int64_t[::1] ends):
        """Returns the nodes of lists of keys, int32, one list after the other, the root's key last in each; -1 of an
        empty one."""
        cdef Py_ssize_t n = ends.shape[0]
        cdef Py_ssize_t nth
        cdef int64_t begin = 0
        cdef int64_t i
        cdef int32_t node
        found = np.empty(n, np.int32)
        cdef int32_t[::1] nodes = found
        for nth in range(n):
            if not begin <= ends[nth] <= keys.shape[0]:
                raise ValueError("NodeTable: a list outside the keys")
            self.reserve(self.n_nodes + ends[nth] - begin)
            node = -1
            for i in range(ends[nth] - 1, begin - 1, -1):
                node = self.intern(node, keys[i])
            nodes[nth] = node
            begin = ends[nth]
        return found

    def intern_tree(self, const int64_t[::1] parents, const int32_t[::1] keys):
        """Returns the nodes of the rows of a tree, int32. parents: the row above, which comes before, -1 is none; keys:
        -1 is a row that is no node of its own, but that of the row above."""
        cdef Py_ssize_t n = parents.shape[0]
        cdef Py_ssize_t row
        cdef int32_t above
        if keys.shape[0] != n:
            raise ValueError("NodeTable: columns of different lengths")
        self.reserve(self.n_nodes + n)
        found = np.empty(n, np.int32)
        cdef int32_t[::1] nodes = found
        for row in range(n):
            if not -1 <= parents[row] < row:
                raise ValueError("NodeTable: a row comes before the row above it")
            above = nodes[parents[row]] if parents[row] >= 0 else -1
            nodes[row] = self.intern(above, keys[row]) if keys[row] >= 0 else above
        return found

    def places(self):
        """Returns int64: the place of each node in a walk in which what continues a node follows it, and -1 behind
        them, for none."""
        cdef Py_ssize_t n = self.n_nodes
        cdef Py_ssize_t i
        cdef int32_t above
        found, sizes, free = np.empty(n + 1, np.int64), np.ones(n, np.int64), np.empty(n, np.int64)
        cdef int64_t[::1] place = found
        cdef int64_t[::1] size = sizes
        cdef int64_t[::1] next_place = free
        cdef int64_t of_roots = 0
        for i in range(n - 1, -1, -1):
            if self.parents[i] >= 0:
                size[self.parents[i]] += size[i]
        for i in range(n):
            above = self.parents[i]
            if above < 0:
                place[i] = of_roots
                of_roots += size[i]
            else:
                place[i] = next_place[above]
                next_place[above] += size[i]
            next_place[i] = place[i] + 1
        place[n] = -1
        return found

    cdef int resize(self, Py_ssize_t size) except -1:
        self.parents, self.keys = longer(np.asarray(self.parents), size), longer(np.asarray(self.keys), size)
        self.slots = np.full(1 << (2 * size - 1).bit_length(), -1, np.int32)
        self.enter(0)
        return 0

    cdef void enter(self, int32_t first) noexcept nogil:
        """Enters the rows from `first` on into the slots."""
        enter_pairs(self.parents, self.keys, self.slots, first, self.n_nodes)
