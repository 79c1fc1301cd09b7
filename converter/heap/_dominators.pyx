"""Dominator trees of graphs, and what they look like by class.

A graph has n nodes; those that node i refers to are references[offsets[i]:offsets[i + 1]], offsets rising from 0.

Dominators are found with the Semi-NCA algorithm: L. Georgiadis, Linear-Time Algorithms for Dominators and Related
Problems (2005), section 2.3. It knows nodes by their *numbers*: 1, 2... in the order in which a depth-first search comes
to them; 0 is a node above all entries.
"""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from traceferry.native.interning cimport intern_pair


cdef object _int32s(Py_ssize_t n, int32_t value):
    return np.full(n, value, np.int32)


cdef Py_ssize_t _n_nodes(
    const int64_t[::1] offsets, const int32_t[::1] references, const int32_t[::1] starts
) except -1:
    """Returns how many nodes a graph has. Raises ValueError where it is none, or `starts` are not nodes of it."""
    cdef Py_ssize_t i
    cdef Py_ssize_t n = offsets.shape[0] - 1
    cdef bint is_graph = n >= 0 and offsets[0] == 0 and offsets[n] == references.shape[0]
    if is_graph:
        for i in range(n):
            is_graph &= offsets[i] <= offsets[i + 1]
        for i in range(references.shape[0]):
            is_graph &= 0 <= references[i] < n
        for i in range(starts.shape[0]):
            is_graph &= 0 <= starts[i] < n
    if not is_graph:
        raise ValueError("not a graph")
    return n


cdef Py_ssize_t _preorder(
    const int64_t[::1] offsets, const int32_t[::1] references, const int32_t[::1] entries, int64_t[::1] next_reference,
    int32_t[::1] number, int32_t[::1] order, int32_t[::1] parent
) noexcept nogil:
    """Numbers the nodes to which the entries lead and that have no number, and returns how many. number: of each node,
    0 for none; order, parent: of each number its node, and the number from which the search came to it."""
    cdef Py_ssize_t i
    cdef int64_t k
    cdef int32_t node, current
    cdef int32_t count = 0
    for i in range(entries.shape[0]):
        node = entries[i]
        current = 0
        while True:
            if number[node] == 0:
                count += 1
                number[node] = count
                order[count] = node
                parent[count] = current
                next_reference[count] = offsets[node]
                current = count
            while current > 0 and next_reference[current] == offsets[order[current] + 1]:
                current = parent[current]
            if current == 0:
                break
            k = next_reference[current]
            next_reference[current] = k + 1
            node = references[k]
    return count


def reach(
    const int64_t[::1] offsets, const int32_t[::1] references, const int32_t[::1] candidates, int32_t[::1] number
):
    """Returns those of the candidates, int32, to which the ones before and what had a number already did not lead;
    gives a number above 0 to all that the candidates lead to. number: of each node; 0 is none."""
    cdef Py_ssize_t n = _n_nodes(offsets, references, candidates)
    if number.shape[0] != n:
        raise ValueError("reach: an array has the wrong length")
    order, parent = _int32s(n + 1, 0), _int32s(n + 1, 0)
    n_found = _preorder(offsets, references, candidates, np.empty(n + 1, np.int64), number, order, parent)
    return order[1:n_found + 1][parent[1:n_found + 1] == 0]


cdef void _invert(
    const int64_t[::1] offsets, const int32_t[::1] references, const int32_t[::1] number, const int32_t[::1] order,
    Py_ssize_t n_reached, int64_t[::1] first, int32_t[::1] referrer
) noexcept nogil:
    """Turns the references round, between numbers: what refers to w is referrer[first[w]:first[w + 1]]. first:
    n_reached + 3 zeros."""
    cdef Py_ssize_t w
    cdef int64_t k
    cdef int32_t target
    for w in range(1, n_reached + 1):
        for k in range(offsets[order[w]], offsets[order[w] + 1]):
            first[number[references[k]] + 2] += 1
    for w in range(2, n_reached + 3):
        first[w] += first[w - 1]
    # first[w + 1] is where the next referrer of w goes; at the end that is where those of w + 1 begin.
    for w in range(1, n_reached + 1):
        for k in range(offsets[order[w]], offsets[order[w] + 1]):
            target = number[references[k]]
            referrer[first[target + 1]] = w
            first[target + 1] += 1


cdef void _dominate(
    const int32_t[::1] parent, const int64_t[::1] first, const int32_t[::1] referrer, Py_ssize_t n_reached,
    int32_t[::1] semi, int32_t[::1] label, int32_t[::1] ancestor, int32_t[::1] path, int32_t[::1] dominator
) noexcept nogil:
    """Finds the number that dominates each number, 0 for none. Lengths from `semi` on: n_reached + 1."""
    cdef Py_ssize_t w, depth
    cdef int64_t k
    cdef int32_t v, above, best
    for w in range(n_reached + 1):
        semi[w] = w
        label[w] = w
        ancestor[w] = parent[w]
        dominator[w] = parent[w]
    # Numbers above w are linked to their ancestors; paths through them are compressed as they are walked.
    for w in range(n_reached, 0, -1):
        semi[w] = parent[w]
        for k in range(first[w], first[w + 1]):
            v = referrer[k]
            depth = 0
            above = v
            while ancestor[above] > w:
                path[depth] = above
                depth += 1
                above = ancestor[above]
            best = label[above]
            while depth > 0:
                depth -= 1
                v = path[depth]
                ancestor[v] = ancestor[above]
                if semi[best] < semi[label[v]]:
                    label[v] = best
                else:
                    best = label[v]
                above = v
            if semi[best] < semi[w]:
                semi[w] = semi[best]
    for w in range(1, n_reached + 1):
        while dominator[w] > semi[w]:
            dominator[w] = dominator[dominator[w]]


def immediate_dominators(const int64_t[::1] offsets, const int32_t[::1] references, const int32_t[::1] entries):
    """Returns the node that dominates each node most closely, int32; -1 for none. Nothing refers to an entry."""
    cdef Py_ssize_t n = _n_nodes(offsets, references, entries)
    cdef Py_ssize_t w, n_reached
    found = _int32s(n, -1)
    cdef int32_t[::1] by_node = found
    cdef int32_t[::1] number = _int32s(n, 0), order = _int32s(n + 1, 0), parent = _int32s(n + 1, 0)
    cdef int64_t[::1] next_reference = np.empty(n + 1, np.int64)
    n_reached = _preorder(offsets, references, entries, next_reference, number, order, parent)
    cdef int64_t[::1] first = np.zeros(n_reached + 3, np.int64)
    cdef int32_t[::1] referrer = _int32s(references.shape[0], 0)
    cdef int32_t[::1] semi = _int32s(n_reached + 1, 0), label = _int32s(n_reached + 1, 0)
    cdef int32_t[::1] ancestor = _int32s(n_reached + 1, 0), path = _int32s(n_reached + 1, 0)
    cdef int32_t[::1] dominator = _int32s(n_reached + 1, 0)
    with nogil:
        _invert(offsets, references, number, order, n_reached, first, referrer)
        _dominate(parent, first, referrer, n_reached, semi, label, ancestor, path, dominator)
        for w in range(1, n_reached + 1):
            if dominator[w] > 0:
                by_node[order[w]] = order[dominator[w]]
    return found


def bottom_up(const int32_t[::1] dominator):
    """Returns the nodes of a forest, int32, each before its dominator (below 0: none); nodes in a circle are left
    out."""
    cdef Py_ssize_t n = dominator.shape[0]
    cdef Py_ssize_t m = 0
    cdef Py_ssize_t i
    cdef int32_t node
    cdef int32_t[::1] pending = _int32s(n, 0)
    made = _int32s(n, 0)
    cdef int32_t[::1] order = made
    for i in range(n):
        if dominator[i] >= n:
            raise ValueError("bottom_up: a dominator that is not a node")
    with nogil:
        for i in range(n):
            if dominator[i] >= 0:
                pending[dominator[i]] += 1
        for i in range(n):
            node = i
            while node >= 0 and pending[node] == 0:
                pending[node] = -1
                order[m] = node
                m += 1
                node = dominator[node]
                if node >= 0:
                    pending[node] -= 1
    return made[:m]


def merge_classes(
    const int32_t[::1] dominator, const int32_t[::1] top, const int32_t[::1] class_name, int32_t n_tops, int max_depth
):
    """Merges objects into a tree of classes: the children of one class under a node are one node, and a child of the
    node's own class is the node itself. Nodes of max_depth take what is below them.

    dominator: of each object, below 0 for none; top: the tree node, 0 to n_tops - 1, above an object that has none.
    Returns (parent, class) of each tree node, -1 and -2 for tops; the tree node of each object, all int32; and how many
    objects are deeper than the tree.
    """
    cdef Py_ssize_t n = dominator.shape[0]
    cdef Py_ssize_t capacity = n + n_tops
    cdef const int32_t[::1] order = bottom_up(dominator)
    if n_tops < 0 or order.shape[0] != n or top.shape[0] != n or class_name.shape[0] != n:
        raise ValueError("merge_classes: an array has the wrong length, or dominators form a circle")
    cdef Py_ssize_t i
    for i in range(n):
        if dominator[i] < 0 and not 0 <= top[i] < n_tops:
            raise ValueError("merge_classes: not a top")
    parents, classes, nodes = _int32s(capacity, -1), _int32s(capacity, -2), _int32s(n, -1)
    cdef int32_t[::1] parent = parents, class_of = classes, node_of = nodes
    cdef int32_t[::1] depth = _int32s(capacity, 1)
    cdef int32_t[::1] slots = _int32s(1 << (2 * capacity - 1).bit_length(), -1)
    cdef int32_t n_tree = n_tops
    cdef int64_t n_cut = 0
    cdef int32_t node, above, row
    with nogil:
        for i in range(n - 1, -1, -1):
            node = order[i]
            above = node_of[dominator[node]] if dominator[node] >= 0 else top[node]
            if (
                dominator[node] >= 0
                and class_name[dominator[node]] == class_name[node]
                and class_of[above] == class_name[node]
            ):
                node_of[node] = above
                continue
            if depth[above] >= max_depth:
                n_cut += 1
                node_of[node] = above
                continue
            row = intern_pair(parent, class_of, slots, n_tree, above, class_name[node])
            if row == n_tree:
                depth[row] = depth[above] + 1
                n_tree += 1
            node_of[node] = row
    return parents[:n_tree], classes[:n_tree], nodes, n_cut
