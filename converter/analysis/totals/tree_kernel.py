# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Trees of call paths, and sums over them. Cython's pure-Python mode: also runs interpreted."""

import cython

from traceferry.kernels.calls import LEAVE
from traceferry.kernels.functions import c_function
from traceferry.kernels.interning import intern_pair
from traceferry.kernels.saturating import minus, plus

# Indices into the `state` of add_calls.
ROW = cython.declare(cython.int, 0)
N_NODES = cython.declare(cython.int, 1)
DEPTH = cython.declare(cython.int, 2)
BUCKET = cython.declare(cython.int, 3)
LAST_TS = cython.declare(cython.int, 4)
N_TOUCHED = cython.declare(cython.int, 5)
N_OUT = cython.declare(cython.int, 6)


def fold_stacks(
    prefix: cython.const[cython.int][::1],
    key_of_stack: cython.const[cython.int][::1],
    first: cython.Py_ssize_t,
    n_nodes: cython.Py_ssize_t,
    node_parent: cython.int[::1],
    node_key: cython.int[::1],
    slots: cython.int[::1],
    node_of_stack: cython.int[::1],
) -> cython.Py_ssize_t:
    """The node of each stack from `first` on, which must have been found for those before. Returns the number of nodes.

    Capacity needed: in the nodes one more for each stack, in slots, a power of two, twice the nodes' capacity.
    """
    n: cython.Py_ssize_t = prefix.shape[0]
    capacity: cython.Py_ssize_t = node_parent.shape[0]
    n_slots: cython.Py_ssize_t = slots.shape[0]
    if (
        first < 0
        or first > n
        or key_of_stack.shape[0] != n
        or node_of_stack.shape[0] != n
        or n_nodes < 0
        or capacity < n_nodes + n - first
        or node_key.shape[0] != capacity
        or n_slots & (n_slots - 1)
        or n_slots < 2 * capacity
    ):
        raise ValueError("fold_stacks: an array has the wrong length")
    i: cython.Py_ssize_t
    bad: cython.bint = False
    with cython.nogil:
        for i in range(first, n):
            if prefix[i] < -1 or prefix[i] >= i:
                bad = True
                break
            parent: cython.int = node_of_stack[prefix[i]] if prefix[i] >= 0 else -1
            node: cython.int = intern_pair(node_parent, node_key, slots, n_nodes, parent, key_of_stack[i])
            if node == n_nodes:
                n_nodes += 1
            node_of_stack[i] = node
    if bad:
        raise ValueError("fold_stacks: a stack with an invalid prefix")
    return n_nodes


def add_calls(
    ts: cython.const[cython.longlong][::1],
    frame: cython.const[cython.int][::1],
    flags: cython.const[cython.uchar][::1],
    key_of_frame: cython.const[cython.int][::1],
    ends: cython.const[cython.longlong][::1],
    state: cython.longlong[::1],
    path: cython.int[::1],
    node_parent: cython.int[::1],
    node_key: cython.int[::1],
    slots: cython.int[::1],
    own_ns: cython.longlong[::1],
    own_calls: cython.longlong[::1],
    touched: cython.int[::1],
    out_bucket: cython.int[::1],
    out_node: cython.int[::1],
    out_ns: cython.longlong[::1],
    out_calls: cython.longlong[::1],
):
    """Adds up a piece of a balanced stream of calls: for each bucket of time, the ns that each node was on top of the
    stack, and how often it was entered. A bucket is written when the stream has passed its end.

    ends: where the buckets end, rising; what is after the last one counts for it. state: the row to go on at, the
    number of nodes, then, all 0 at a stream's start, the depth, the bucket, the time of the row before, the number of
    touched nodes; and how many were written. own_ns, own_calls: of the bucket, -1 in own_calls: untouched. touched:
    the nodes of the bucket.

    Stops early when the nodes, the path or the output is full: make them longer and call again. Capacity
    needed: in slots, a power of two, twice that of the nodes; in own_* and touched as many as nodes, in out_* one more.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    capacity: cython.Py_ssize_t = node_parent.shape[0]
    deepest: cython.Py_ssize_t = path.shape[0]
    out_capacity: cython.Py_ssize_t = out_bucket.shape[0]
    n_slots: cython.Py_ssize_t = slots.shape[0]
    if (
        frame.shape[0] != n
        or flags.shape[0] != n
        or node_key.shape[0] != capacity
        or own_ns.shape[0] != capacity
        or own_calls.shape[0] != capacity
        or touched.shape[0] != capacity
        or out_capacity <= capacity
        or out_node.shape[0] != out_capacity
        or out_ns.shape[0] != out_capacity
        or out_calls.shape[0] != out_capacity
        or n_slots & (n_slots - 1)
        or n_slots < 2 * capacity
        or ends.shape[0] < 1
        or state.shape[0] < 7
    ):
        raise ValueError("add_calls: an array has the wrong length")
    i: cython.Py_ssize_t = int(state[ROW])
    n_nodes: cython.Py_ssize_t = int(state[N_NODES])
    depth: cython.Py_ssize_t = int(state[DEPTH])
    bucket: cython.Py_ssize_t = int(state[BUCKET])
    now: cython.longlong = int(state[LAST_TS])
    n_touched: cython.Py_ssize_t = int(state[N_TOUCHED])
    m: cython.Py_ssize_t = int(state[N_OUT])
    n_buckets: cython.Py_ssize_t = ends.shape[0]
    n_keys: cython.Py_ssize_t = key_of_frame.shape[0]
    if (
        i < 0
        or n_nodes < 0
        or n_nodes > capacity
        or depth < 0
        or depth > deepest
        or bucket < 0
        or bucket >= n_buckets
        or n_touched < 0
        or n_touched > n_nodes
        or m < 0
        or m > out_capacity
    ):
        raise ValueError("add_calls: invalid state")
    k: cython.Py_ssize_t
    bad: cython.bint = False
    with cython.nogil:
        while i < n and n_nodes < capacity and depth < deepest:
            t: cython.longlong = ts[i]
            while True:
                until: cython.longlong = t
                if bucket + 1 < n_buckets and t >= ends[bucket]:
                    if m + n_touched + 1 > out_capacity:
                        break
                    until = ends[bucket]
                if depth > 0 and until > now:
                    top: cython.int = path[depth - 1]
                    if own_calls[top] < 0:
                        own_calls[top] = 0
                        own_ns[top] = 0
                        touched[n_touched] = top
                        n_touched += 1
                    own_ns[top] = plus(own_ns[top], minus(until, now))
                if until > now or depth == 0:
                    now = until
                if bucket + 1 < n_buckets and t >= ends[bucket]:
                    for k in range(n_touched):
                        node: cython.int = touched[k]
                        out_bucket[m] = bucket
                        out_node[m] = node
                        out_ns[m] = own_ns[node]
                        out_calls[m] = own_calls[node]
                        own_calls[node] = -1
                        m += 1
                    n_touched = 0
                    bucket += 1
                else:
                    break
            if bucket + 1 < n_buckets and t >= ends[bucket]:
                break
            if flags[i] & LEAVE:
                if depth == 0:
                    bad = True
                    break
                depth -= 1
            else:
                if frame[i] < 0 or frame[i] >= n_keys:
                    bad = True
                    break
                key: cython.int = key_of_frame[frame[i]]
                top = path[depth - 1] if depth > 0 else -1
                node = intern_pair(node_parent, node_key, slots, n_nodes, top, key)
                if node == n_nodes:
                    own_calls[node] = -1
                    n_nodes += 1
                if own_calls[node] < 0:
                    own_calls[node] = 0
                    own_ns[node] = 0
                    touched[n_touched] = node
                    n_touched += 1
                own_calls[node] += 1
                path[depth] = node
                depth += 1
            i += 1
    state[ROW] = i
    state[N_NODES] = n_nodes
    state[DEPTH] = depth
    state[BUCKET] = bucket
    state[LAST_TS] = now
    state[N_TOUCHED] = n_touched
    state[N_OUT] = m
    if bad:
        raise ValueError("add_calls: the stream is not balanced")


@c_function
def come_after_parents(parent: cython.const[cython.int][::1]) -> cython.bint:
    """Whether each node's parent is a smaller node, or -1."""
    i: cython.Py_ssize_t
    for i in range(parent.shape[0]):
        if parent[i] < -1 or parent[i] >= i:
            return False
    return True


def add_to_ancestors(
    parent: cython.const[cython.int][::1],
    amount: cython.longlong[::1],
) -> None:
    """Adds to each node's amount those of all nodes below it, at most 2^63 - 1. parent: always a smaller node; amount:
    not negative, changed in place."""
    if amount.shape[0] != parent.shape[0] or not come_after_parents(parent):
        raise ValueError("add_to_ancestors: an array has the wrong length, or a node an invalid parent")
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(parent.shape[0] - 1, -1, -1):
            if parent[i] >= 0:
                amount[parent[i]] = plus(amount[parent[i]], amount[i])


def mark_ancestors(
    parent: cython.const[cython.int][::1],
    node: cython.const[cython.int][::1],
    is_marked: cython.uchar[::1],
    out: cython.int[::1],
) -> cython.Py_ssize_t:
    """Marks the nodes and all above them, and writes those that were not marked before. Returns their number. parent:
    always a smaller node; out: as many as there are nodes."""
    n: cython.Py_ssize_t = parent.shape[0]
    if is_marked.shape[0] != n or out.shape[0] != n:
        raise ValueError("mark_ancestors: an array has the wrong length")
    i: cython.Py_ssize_t
    m: cython.Py_ssize_t = 0
    bad: cython.bint = False
    with cython.nogil:
        for i in range(node.shape[0]):
            at: cython.int = node[i]
            if at < 0 or at >= n:
                bad = True
                break
            while at >= 0 and not is_marked[at]:
                is_marked[at] = 1
                out[m] = at
                m += 1
                if parent[at] < -1 or parent[at] >= at:
                    bad = True
                    break
                at = parent[at]
            if bad:
                break
    if bad:
        raise ValueError("mark_ancestors: a node with an invalid number or parent")
    return m


def add_parts_to_ancestors(
    parent: cython.const[cython.int][::1],
    amount: cython.double[::1],
) -> None:
    """Adds to each node's amount those of all nodes below it. parent: always a smaller node; amount: changed in
    place."""
    if amount.shape[0] != parent.shape[0] or not come_after_parents(parent):
        raise ValueError("add_parts_to_ancestors: an array has the wrong length, or a node an invalid parent")
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(parent.shape[0] - 1, -1, -1):
            if parent[i] >= 0:
                amount[parent[i]] += amount[i]


def add_to_callers(
    prefix: cython.const[cython.int][::1],
    func: cython.const[cython.int][::1],
    row: cython.const[cython.int][::1],
    of_stack: cython.longlong[::1],
    child: cython.int[::1],
    sibling: cython.int[::1],
    n_open: cython.int[::1],
    of_row: cython.longlong[::1],
) -> None:
    """Adds to each stack's number those of all stacks above it, and of each func the numbers of its outermost stacks to
    those stacks' rows.

    Sums end at 2^63 - 1. prefix: of each stack, always a smaller one; func: its leaf; row: where its numbers are added.
    of_stack: changed in place. child, sibling: a number for each stack, child one more; n_open: for each func, all 0.
    """
    n: cython.Py_ssize_t = prefix.shape[0]
    n_funcs: cython.Py_ssize_t = n_open.shape[0]
    n_rows: cython.Py_ssize_t = of_row.shape[0]
    if (
        func.shape[0] != n
        or row.shape[0] != n
        or of_stack.shape[0] != n
        or child.shape[0] != n + 1
        or sibling.shape[0] != n
    ):
        raise ValueError("add_to_callers: an array has the wrong length")
    i: cython.Py_ssize_t
    bad: cython.bint = False
    with cython.nogil:
        for i in range(n + 1):
            child[i] = -1
        for i in range(n - 1, -1, -1):
            if prefix[i] < -1 or prefix[i] >= i or func[i] < 0 or func[i] >= n_funcs or row[i] < 0 or row[i] >= n_rows:
                bad = True
                break
            if prefix[i] >= 0:
                of_stack[prefix[i]] = plus(of_stack[prefix[i]], of_stack[i])
            sibling[i] = child[prefix[i] + 1]
            child[prefix[i] + 1] = i
        if not bad:
            node: cython.Py_ssize_t = child[0]
            while node >= 0:
                if n_open[func[node]] == 0:
                    of_row[row[node]] = plus(of_row[row[node]], of_stack[node])
                n_open[func[node]] += 1
                if child[node + 1] >= 0:
                    node = child[node + 1]
                    continue
                while node >= 0:
                    n_open[func[node]] -= 1
                    if sibling[node] >= 0:
                        node = sibling[node]
                        break
                    node = prefix[node]
    if bad:
        raise ValueError("add_to_callers: a stack with an invalid prefix, function or row")


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    add_calls = plain_integers(add_calls)
    add_parts_to_ancestors = plain_integers(add_parts_to_ancestors)
    add_to_ancestors = plain_integers(add_to_ancestors)
    add_to_callers = plain_integers(add_to_callers)
    fold_stacks = plain_integers(fold_stacks)
    mark_ancestors = plain_integers(mark_ancestors)
