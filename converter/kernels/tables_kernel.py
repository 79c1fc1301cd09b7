# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Enters rows of a table, whose keys are distinct, into slots: see interning.py. `first`, n: from where to where.

Cython's pure-Python mode: also runs interpreted. ValueError: an array has the wrong length.
"""

import cython

from traceferry.kernels.interning import intern_pair
from traceferry.kernels.nodes import NodeTable


@cython.cfunc
@cython.exceptval(check=False)
def fits(
    n_column: cython.Py_ssize_t, first: cython.Py_ssize_t, n: cython.Py_ssize_t, n_slots: cython.Py_ssize_t
) -> cython.bint:
    return 0 <= first and n <= n_column and n < n_slots and n_slots & (n_slots - 1) == 0


def enter_pairs(
    one: cython.int[::1], other: cython.int[::1], first: cython.Py_ssize_t, n: cython.Py_ssize_t, slots: cython.int[::1]
):
    if other.shape[0] != one.shape[0] or not fits(one.shape[0], first, n, slots.shape[0]):
        raise ValueError("enter_pairs: an array has the wrong length")
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(first, n):
            intern_pair(one, other, slots, i, one[i], other[i])


def enter_lists(
    numbers: cython.const[cython.int][::1],
    ends: cython.const[cython.longlong][::1],
    nodes: tuple,
    found: cython.int[::1],
    nth: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """The nodes of lists of numbers, one list after the other, the root's number last in each; -1 of an empty one. From
    the nth list on; returns the one for which the nodes are full, or how many lists there are."""
    table: NodeTable = NodeTable(nodes)
    n: cython.Py_ssize_t = ends.shape[0]
    i: cython.longlong
    begin: cython.longlong = ends[nth - 1] if 0 < nth <= n else 0
    if found.shape[0] != n or nth < 0:
        raise ValueError("enter_lists: an array has the wrong length")
    for i in range(n):
        if not (ends[i - 1] if i > 0 else 0) <= ends[i] <= numbers.shape[0]:
            raise ValueError("enter_lists: a list outside the numbers")
    with cython.nogil:
        while nth < n:
            node: cython.int = -1
            for i in range(ends[nth] - 1, begin - 1, -1):
                node = table.of(node, numbers[i])
                if node < 0:
                    break
            if node < 0 and begin < ends[nth]:
                break
            found[nth] = node
            begin = ends[nth]
            nth += 1
    return nth


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    enter_pairs = plain_integers(enter_pairs)
    enter_lists = plain_integers(enter_lists)
