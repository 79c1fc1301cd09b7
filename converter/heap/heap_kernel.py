# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Dominator trees of graphs. Cython's pure-Python mode: also runs interpreted.

A graph has n nodes; those that node i refers to are references[offsets[i]:offsets[i + 1]], offsets rising from 0.

Dominators are found with the Semi-NCA algorithm: L. Georgiadis, Linear-Time Algorithms for Dominators and Related
Problems (2005), section 2.3. Its nodes are *numbers*: 1, 2... in the order in which a depth-first search comes to them;
0 is a node above all entries.
"""

import cython

from traceferry.kernels.allocations import ALLOCATED, FREED, N_ALLOCATED, N_FREED
from traceferry.kernels.functions import c_function
from traceferry.kernels.interning import intern_pair
from traceferry.kernels.saturating import minus, plus

# Indices into the `state` of `merge_classes`.
N_TREE = cython.declare(cython.int, 0)
N_CUT = cython.declare(cython.int, 1)


@c_function
def is_graph(offsets: cython.const[cython.longlong][::1], references: cython.const[cython.int][::1]) -> cython.bint:
    n: cython.Py_ssize_t = offsets.shape[0] - 1
    if n < 0 or offsets[0] != 0 or offsets[n] != references.shape[0]:
        return False
    i: cython.Py_ssize_t
    for i in range(n):
        if offsets[i + 1] < offsets[i]:
            return False
    for i in range(references.shape[0]):
        if references[i] < 0 or references[i] >= n:
            return False
    return True


def cover(
    offsets: cython.const[cython.longlong][::1],
    references: cython.const[cython.int][::1],
    candidates: cython.const[cython.int][::1],
    visited: cython.uchar[::1],
    path: cython.int[::1],
    chosen: cython.int[::1],
) -> cython.Py_ssize_t:
    """Marks what the candidates lead to in `visited`, and writes those to `chosen` to which the ones before and what
    was visited already did not lead; returns how many. Lengths: visited and path one for each node."""
    n: cython.Py_ssize_t = offsets.shape[0] - 1
    if not is_graph(offsets, references):
        raise ValueError("cover: not a graph")
    if visited.shape[0] != n or path.shape[0] < n or chosen.shape[0] < candidates.shape[0]:
        raise ValueError("cover: an array has the wrong length")
    i: cython.Py_ssize_t
    for i in range(candidates.shape[0]):
        if candidates[i] < 0 or candidates[i] >= n:
            raise ValueError("cover: a candidate that is not a node")
    n_chosen: cython.Py_ssize_t = 0
    k: cython.longlong
    with cython.nogil:
        for i in range(candidates.shape[0]):
            node: cython.int = candidates[i]
            if visited[node]:
                continue
            chosen[n_chosen] = node
            n_chosen += 1
            visited[node] = 1
            path[0] = node
            depth: cython.Py_ssize_t = 1
            while depth > 0:
                depth -= 1
                node = path[depth]
                for k in range(offsets[node], offsets[node + 1]):
                    other: cython.int = references[k]
                    if not visited[other]:
                        visited[other] = 1
                        path[depth] = other
                        depth += 1
    return n_chosen


def preorder(
    offsets: cython.const[cython.longlong][::1],
    references: cython.const[cython.int][::1],
    entries: cython.const[cython.int][::1],
    number: cython.int[::1],
    order: cython.int[::1],
    parent: cython.int[::1],
    cursor: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Numbers the nodes to which the entries lead, from 1; returns how many. Nothing may refer to an entry.

    number: of each node, zeros at the start; order: the node of each number; parent: the number from which the search
    came to it. Capacity: order, parent and cursor one more than nodes.
    """
    n: cython.Py_ssize_t = offsets.shape[0] - 1
    if not is_graph(offsets, references):
        raise ValueError("preorder: not a graph")
    if number.shape[0] != n or order.shape[0] <= n or parent.shape[0] <= n or cursor.shape[0] <= n:
        raise ValueError("preorder: an array has the wrong length")
    i: cython.Py_ssize_t
    for i in range(entries.shape[0]):
        if entries[i] < 0 or entries[i] >= n:
            raise ValueError("preorder: an entry that is not a node")
    count: cython.int = 0
    with cython.nogil:
        for i in range(entries.shape[0]):
            node: cython.int = entries[i]
            if number[node] != 0:
                continue
            count += 1
            number[node] = count
            order[count] = node
            parent[count] = 0
            cursor[count] = offsets[node]
            current: cython.int = count
            while current > 0:
                k: cython.longlong = cursor[current]
                if k == offsets[order[current] + 1]:
                    current = parent[current]
                    continue
                cursor[current] = k + 1
                node = references[k]
                if number[node] == 0:
                    count += 1
                    number[node] = count
                    order[count] = node
                    parent[count] = current
                    cursor[count] = offsets[node]
                    current = count
    return count


def invert(
    offsets: cython.const[cython.longlong][::1],
    references: cython.const[cython.int][::1],
    number: cython.const[cython.int][::1],
    order: cython.const[cython.int][::1],
    n_reached: cython.Py_ssize_t,
    first: cython.longlong[::1],
    referrer: cython.int[::1],
):
    """The references the other way round, between numbers: what refers to w is referrer[first[w]:first[w + 1]].
    Arguments as `preorder` leaves them. first: n_reached + 3 zeros; referrer: one for each reference."""
    n: cython.Py_ssize_t = offsets.shape[0] - 1
    if not is_graph(offsets, references):
        raise ValueError("invert: not a graph")
    if (
        number.shape[0] != n
        or n_reached < 0
        or order.shape[0] <= n_reached
        or first.shape[0] < n_reached + 3
        or referrer.shape[0] < references.shape[0]
    ):
        raise ValueError("invert: an array has the wrong length")
    w: cython.Py_ssize_t
    for w in range(1, n_reached + 1):
        if order[w] < 0 or order[w] >= n:
            raise ValueError("invert: not a node number")
    for w in range(n):
        if number[w] < 0 or number[w] > n_reached:
            raise ValueError("invert: invalid node number")
    k: cython.longlong
    with cython.nogil:
        for w in range(1, n_reached + 1):
            for k in range(offsets[order[w]], offsets[order[w] + 1]):
                first[number[references[k]] + 2] += 1
        for w in range(2, n_reached + 3):
            first[w] += first[w - 1]
        # first[w + 1] is where the next referrer of w goes; at the end that is where those of w + 1 begin.
        for w in range(1, n_reached + 1):
            for k in range(offsets[order[w]], offsets[order[w] + 1]):
                target: cython.int = number[references[k]]
                referrer[first[target + 1]] = w
                first[target + 1] += 1


def dominate(
    parent: cython.const[cython.int][::1],
    first: cython.const[cython.longlong][::1],
    referrer: cython.const[cython.int][::1],
    n_reached: cython.Py_ssize_t,
    semi: cython.int[::1],
    label: cython.int[::1],
    ancestor: cython.int[::1],
    path: cython.int[::1],
    dominator: cython.int[::1],
):
    """The number that dominates each number, 0 for none. Arguments as `preorder` and `invert` leave them; lengths of
    the others: n_reached + 1."""
    if (
        n_reached < 0
        or parent.shape[0] <= n_reached
        or first.shape[0] < n_reached + 2
        or semi.shape[0] <= n_reached
        or label.shape[0] <= n_reached
        or ancestor.shape[0] <= n_reached
        or path.shape[0] <= n_reached
        or dominator.shape[0] <= n_reached
    ):
        raise ValueError("dominate: an array has the wrong length")
    w: cython.Py_ssize_t
    k: cython.longlong
    for w in range(1, n_reached + 1):
        if parent[w] < 0 or parent[w] >= w:
            raise ValueError("dominate: a parent that comes later")
        if first[w] < 0 or first[w + 1] < first[w] or first[w + 1] > referrer.shape[0]:
            raise ValueError("dominate: referrers outside the array")
        for k in range(first[w], first[w + 1]):
            if referrer[k] < 1 or referrer[k] > n_reached:
                raise ValueError("dominate: a referrer that was not reached")
    with cython.nogil:
        for w in range(n_reached + 1):
            semi[w] = w
            label[w] = w
            ancestor[w] = parent[w] if w > 0 else 0
            dominator[w] = ancestor[w]
        # Numbers above w are linked to their ancestors; paths through them are compressed as they are walked.
        for w in range(n_reached, 0, -1):
            semi[w] = parent[w]
            for k in range(first[w], first[w + 1]):
                v: cython.int = referrer[k]
                depth: cython.Py_ssize_t = 0
                above: cython.int = v
                while ancestor[above] > w:
                    path[depth] = above
                    depth += 1
                    above = ancestor[above]
                best: cython.int = label[above]
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


def bottom_up(
    dominator: cython.const[cython.int][::1],
    pending: cython.int[::1],
    order: cython.int[::1],
) -> cython.Py_ssize_t:
    """Writes the nodes of a forest to `order`, each before its dominator (below 0: none); returns how many: nodes in a
    circle are left out. pending: as long, zeros at the start."""
    n: cython.Py_ssize_t = dominator.shape[0]
    if pending.shape[0] != n or order.shape[0] != n:
        raise ValueError("bottom_up: an array has the wrong length")
    i: cython.Py_ssize_t
    for i in range(n):
        if dominator[i] >= n:
            raise ValueError("bottom_up: a dominator that is not a node")
    m: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(n):
            if dominator[i] >= 0:
                pending[dominator[i]] += 1
        for i in range(n):
            node: cython.int = i
            while node >= 0 and pending[node] == 0:
                pending[node] = -1
                order[m] = node
                m += 1
                node = dominator[node]
                if node >= 0:
                    pending[node] -= 1
    return m


def merge_classes(
    order: cython.const[cython.int][::1],
    dominator: cython.const[cython.int][::1],
    top: cython.const[cython.int][::1],
    class_name: cython.const[cython.int][::1],
    max_depth: cython.int,
    tree_parent: cython.int[::1],
    tree_class: cython.int[::1],
    tree_depth: cython.int[::1],
    slots: cython.int[::1],
    node_of: cython.int[::1],
    state: cython.longlong[::1],
):
    """Merges objects into a tree of classes: the children of one class under a node are one node, and a child of the
    node's own class is the node itself. Nodes of max_depth take what is below them.

    order: each object before its dominator, all of them; top: the tree node above an object that has no dominator,
    0 to state[N_TREE] - 1, which must be there; node_of: the tree node of each object. Capacity of tree_*: one for
    each top and each object; slots: a power of two, at least twice as many, all -1. state: the number of tree nodes,
    and of objects that are deeper.
    """
    n: cython.Py_ssize_t = dominator.shape[0]
    capacity: cython.Py_ssize_t = tree_parent.shape[0]
    n_slots: cython.Py_ssize_t = slots.shape[0]
    if (
        order.shape[0] != n
        or top.shape[0] != n
        or class_name.shape[0] != n
        or node_of.shape[0] != n
        or tree_class.shape[0] != capacity
        or tree_depth.shape[0] != capacity
        or n_slots < 2 * capacity
        or n_slots & (n_slots - 1)
        or state.shape[0] < 2
        or state[N_TREE] < 0
        or state[N_TREE] > capacity - n
    ):
        raise ValueError("merge_classes: an array has the wrong length")
    i: cython.Py_ssize_t
    for i in range(n):
        if order[i] < 0 or order[i] >= n or dominator[i] >= n or (dominator[i] < 0 and not 0 <= top[i] < state[N_TREE]):
            raise ValueError("merge_classes: not an object, or not a top")
        node_of[i] = -1
    n_tree: cython.int = int(state[N_TREE])
    n_cut: cython.longlong = 0
    bad: cython.bint = False
    with cython.nogil:
        for i in range(n - 1, -1, -1):
            node: cython.int = order[i]
            above: cython.int = node_of[dominator[node]] if dominator[node] >= 0 else top[node]
            if above < 0:
                bad = True
                break
            if (
                dominator[node] >= 0
                and class_name[dominator[node]] == class_name[node]
                and tree_class[above] == class_name[node]
            ):
                node_of[node] = above
                continue
            if tree_depth[above] >= max_depth:
                n_cut += 1
                node_of[node] = above
                continue
            s: cython.int = intern_pair(tree_parent, tree_class, slots, n_tree, above, class_name[node])
            if s == n_tree:
                tree_depth[s] = tree_depth[above] + 1
                n_tree += 1
            node_of[node] = s
    state[N_TREE] = n_tree
    state[N_CUT] = n_cut
    if bad:
        raise ValueError("merge_classes: an object before its dominator")


def tally(
    index: cython.const[cython.int][::1],
    size: cython.const[cython.longlong][::1],
    totals: cython.longlong[:, ::1],
) -> None:
    """Adds rows of `allocations` to the totals of an index column, as their stacks: ALLOCATED and FREED bytes,
    N_ALLOCATED and N_FREED objects. Rows without an index or a size are left out."""
    n: cython.Py_ssize_t = index.shape[0]
    n_rows: cython.Py_ssize_t = totals.shape[0]
    if size.shape[0] != n or totals.shape[1] != 4:
        raise ValueError("tally: an array has the wrong length")
    i: cython.Py_ssize_t
    bad: cython.bint = False
    with cython.nogil:
        for i in range(n):
            s: cython.Py_ssize_t = index[i]
            if s >= n_rows:
                bad = True
                break
            if s >= 0 and size[i] > 0:
                totals[s, ALLOCATED] = plus(totals[s, ALLOCATED], size[i])
                totals[s, N_ALLOCATED] += 1
            elif s >= 0 and size[i] < 0:
                totals[s, FREED] = plus(totals[s, FREED], minus(0, size[i]))
                totals[s, N_FREED] += 1
    if bad:
        raise ValueError("tally: invalid index")


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    cover = plain_integers(cover)
    preorder = plain_integers(preorder)
    invert = plain_integers(invert)
    dominate = plain_integers(dominate)
    bottom_up = plain_integers(bottom_up)
    merge_classes = plain_integers(merge_classes)
    tally = plain_integers(tally)
