"""Adds up branches by edge: from where to where, and where the run of code before it began."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np

from traceferry.model import schema
from traceferry.native.arrays import longer

from traceferry.native.nodes cimport NodeTable
from traceferry.native.saturating cimport plus

cdef enum:
    # As `Edges` has them: taken, mispredicted, predicted, cycles, timed.
    N_AMOUNTS = 5

cdef int MISPREDICTED = schema.BRANCH_MISPREDICTED
cdef int PREDICTED = schema.BRANCH_PREDICTED


@cython.final
cdef class EdgeTable:
    """Edges, each once, with what their branches have. An edge is a way and where the run before it began; a way is a
    pair of where it begins and ends."""

    cdef NodeTable ways
    cdef NodeTable edges
    cdef int64_t[:, ::1] sums

    def __cinit__(self):
        self.ways, self.edges = NodeTable(), NodeTable()
        self.sums = np.zeros((0, N_AMOUNTS), np.int64)

    @property
    def keys(self):
        """int32 [n, 3]: start, begin and end of each edge."""
        way = self.edges.parent
        return np.stack((self.edges.key, self.ways.parent[way], self.ways.key[way]), axis=1)

    @property
    def amounts(self):
        """int64 [n, 5]: of each edge."""
        return np.asarray(self.sums)[: self.edges.n]

    def add(
        self, const int32_t[::1] start not None, const int32_t[::1] begin not None, const int32_t[::1] end not None,
        const uint8_t[::1] outcome not None, const int64_t[::1] cycles not None
    ):
        """Adds branches: columns of `branches`, from and to of which are begin and end, -1 or more each."""
        cdef Py_ssize_t n = start.shape[0]
        cdef Py_ssize_t i
        cdef int32_t edge
        if begin.shape[0] != n or end.shape[0] != n or outcome.shape[0] != n or cycles.shape[0] != n:
            raise ValueError("EdgeTable: columns of different lengths")
        self.ways.reserve(self.ways.n_nodes + n)
        self.edges.reserve(self.edges.n_nodes + n)
        self.sums = longer(np.asarray(self.sums), self.edges.parents.shape[0])
        with nogil:
            for i in range(n):
                edge = self.edges.intern(self.ways.intern(begin[i], end[i]), start[i])
                self.sums[edge, 0] += 1
                self.sums[edge, 1] += outcome[i] == MISPREDICTED
                self.sums[edge, 2] += outcome[i] == PREDICTED
                self.sums[edge, 3] = plus(self.sums[edge, 3], cycles[i])
                self.sums[edge, 4] += cycles[i] > 0
