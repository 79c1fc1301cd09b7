"""Trees that kernels enter: see `tables.Nodes`."""

import cython

from traceferry.kernels.functions import c_inline
from traceferry.kernels.interning import intern_pair


@cython.final
@cython.cclass
class NodeTable:
    """Pairs of a parent, which may be a node, and a number. slots: their hash table; n_nodes: how many there are, at
    most the length of the columns."""

    parent: cython.int[::1]
    number: cython.int[::1]
    slots: cython.int[::1]
    n_nodes: cython.longlong[::1]

    def __init__(self, arrays: tuple):
        """Of the arrays in that order. Raises ValueError where their lengths do not fit together."""
        self.parent, self.number, self.slots, self.n_nodes = arrays
        room: cython.Py_ssize_t = self.parent.shape[0]
        size: cython.Py_ssize_t = self.slots.shape[0]
        if (
            self.number.shape[0] != room
            or self.n_nodes.shape[0] != 1
            or not 0 <= self.n_nodes[0] <= room
            or size < 2 * room
            or size == 0
            or size & (size - 1)
        ):
            raise ValueError("nodes: an array has the wrong length")

    @c_inline
    def of(self, parent: cython.int, number: cython.int) -> cython.int:
        """The row of a pair, which is new if it has to be; -1 where the table is full."""
        n: cython.int = self.n_nodes[0]
        if n >= self.parent.shape[0]:
            return -1
        node: cython.int = intern_pair(self.parent, self.number, self.slots, n, parent, number)
        self.n_nodes[0] = n + (node == n)
        return node
