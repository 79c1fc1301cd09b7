"""Trees of call paths, and sums over them."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np

from traceferry.native.call_flags cimport LEAVE
from traceferry.native.nodes cimport NodeTable
from traceferry.native.saturating cimport minus, plus

from traceferry.native.arrays import doubled, longer


def fold_stacks(
    const int32_t[::1] prefix not None, const int32_t[::1] key_of_stack not None, Py_ssize_t first,
    NodeTable nodes not None, int32_t[::1] node_of_stack not None
):
    """Adds the call paths of stacks to the nodes, and writes the node of each stack from `first` on, which must have
    been found for those before."""
    cdef Py_ssize_t n = prefix.shape[0]
    if not 0 <= first <= n or key_of_stack.shape[0] != n or node_of_stack.shape[0] != n:
        raise ValueError("fold_stacks: an array has the wrong length")
    nodes.reserve(nodes.n + n - first)
    cdef Py_ssize_t i
    cdef int32_t parent
    cdef bint bad = False
    with nogil:
        for i in range(first, n):
            if not -1 <= prefix[i] < i:
                bad = True
                break
            parent = node_of_stack[prefix[i]] if prefix[i] >= 0 else -1
            node_of_stack[i] = nodes.intern(parent, key_of_stack[i])
    if bad:
        raise ValueError("fold_stacks: a stack with an invalid prefix")


@cython.final
cdef class CallAmounts:
    """Adds up a balanced stream of calls: for each bucket of time, the ns that each node was on top of the stack, and
    how often it was entered.

    ends: where the buckets end, rising; what is after the last one counts for it; nodes: the call paths.
    """

    cdef NodeTable _nodes
    cdef const int64_t[::1] _ends
    # The nodes on the stack, and those of which the bucket has anything; what it has of each node, -1 in _calls is
    # nothing.
    cdef list _arrays
    cdef int32_t[::1] _path, _touched
    cdef int64_t[::1] _ns, _calls
    cdef Py_ssize_t _depth, _bucket, _n_touched
    cdef int64_t _now

    def __cinit__(self, const int64_t[::1] ends not None, NodeTable nodes not None):
        self._nodes, self.ends = nodes, ends
        self._arrays = [np.empty(1 << 8, np.int32), *(np.empty(0, dtype) for dtype in (np.int32, np.int64, np.int64))]
        self._grow()

    @property
    def ends(self):
        return np.asarray(self._ends)

    @ends.setter
    def ends(self, const int64_t[::1] ends not None):
        """Sets where the buckets of the next stream end."""
        if ends.shape[0] < 1 or self._depth or self._n_touched:
            raise ValueError("CallAmounts: there are no buckets, or a stream is not at its end")
        self._ends = ends

    def add(
        self, const int64_t[::1] ts not None, const int32_t[::1] frame not None, const uint8_t[::1] flags not None,
        const int32_t[::1] key_of_frame not None, const int64_t[::1] counts=None
    ):
        """Adds rows of the stream. counts: how many calls each enter stands for, None is one. Returns (bucket, node,
        ns, calls) of the buckets that end before the last row."""
        cdef Py_ssize_t n = ts.shape[0]
        cdef Py_ssize_t last = self._ends.shape[0] - 1
        cdef Py_ssize_t i = 0
        cdef Py_ssize_t m = 0
        cdef int32_t node
        cdef NodeTable table = self._nodes
        cdef bint bad = False
        cdef bint counted = counts is not None
        if frame.shape[0] != n or flags.shape[0] != n or counted and counts.shape[0] != n:
            raise ValueError("CallAmounts: columns of several lengths")
        # Each row touches two nodes at most, each bucket that begins the one that goes on.
        n_out = self._n_touched + 2 * n + last + 1
        found = [np.empty(n_out, dtype) for dtype in (np.int32, np.int32, np.int64, np.int64)]
        cdef int32_t[::1] out_bucket = found[0]
        cdef int32_t[::1] out_node = found[1]
        cdef int64_t[::1] out_ns = found[2]
        cdef int64_t[::1] out_calls = found[3]
        while i < n and not bad:
            self._grow()
            with nogil:
                while i < n and table.n_nodes < self._calls.shape[0] and self._depth < self._path.shape[0]:
                    while self._bucket < last and ts[i] >= self._ends[self._bucket]:
                        self._go_on(self._ends[self._bucket])
                        m = self._write(out_bucket, out_node, out_ns, out_calls, m)
                    self._go_on(ts[i])
                    if flags[i] & LEAVE:
                        if self._depth == 0:
                            bad = True
                            break
                        self._depth -= 1
                    else:
                        if not 0 <= frame[i] < key_of_frame.shape[0]:
                            bad = True
                            break
                        node = self._path[self._depth - 1] if self._depth > 0 else -1
                        node = table.intern(node, key_of_frame[frame[i]])
                        self._touch(node)
                        self._calls[node] = plus(self._calls[node], counts[i] if counted else 1)
                        self._path[self._depth] = node
                        self._depth += 1
                    i += 1
        if bad:
            raise ValueError("CallAmounts: the stream is not balanced, or has no such frame")
        return tuple([column[:m].copy() for column in found])

    def rest(self):
        """Returns (bucket, node, ns, calls) of the bucket in which the stream ends. Another stream may follow."""
        _, touched, ns, calls = self._arrays
        node = touched[:self._n_touched].copy()
        found = np.full(len(node), self._bucket, np.int32), node, ns[node], calls[node]
        calls[node] = -1
        self._n_touched = self._depth = self._bucket = self._now = 0
        return found

    cdef _grow(self):
        """Makes space for a node and a call."""
        self._nodes.reserve(self._nodes.n + 1)
        path, touched, ns, calls = self._arrays
        n = self._nodes.capacity
        if n > len(calls):
            touched, ns = longer(touched, n), longer(ns, n)
            calls = np.concatenate((calls, np.full(n - len(calls), -1)))
        if self._depth == len(path):
            path = doubled(path)
        self._arrays = [path, touched, ns, calls]
        self._path, self._touched, self._ns, self._calls = self._arrays

    cdef inline void _touch(self, int32_t node) noexcept nogil:
        """Makes a node one of the bucket's."""
        if self._calls[node] < 0:
            self._calls[node] = 0
            self._ns[node] = 0
            self._touched[self._n_touched] = node
            self._n_touched += 1

    cdef inline void _go_on(self, int64_t until) noexcept nogil:
        """Counts the time that the top of the stack goes on."""
        cdef int32_t top
        if self._depth > 0 and until > self._now:
            top = self._path[self._depth - 1]
            self._touch(top)
            self._ns[top] = plus(self._ns[top], minus(until, self._now))
        if until > self._now or self._depth == 0:
            self._now = until

    cdef inline Py_ssize_t _write(
        self, int32_t[::1] bucket, int32_t[::1] node, int64_t[::1] ns, int64_t[::1] calls, Py_ssize_t m
    ) noexcept nogil:
        """Ends a bucket: writes what it has from row m on. Returns the row behind."""
        cdef Py_ssize_t k
        cdef int32_t touched
        for k in range(self._n_touched):
            touched = self._touched[k]
            bucket[m] = self._bucket
            node[m] = touched
            ns[m] = self._ns[touched]
            calls[m] = self._calls[touched]
            self._calls[touched] = -1
            m += 1
        self._n_touched = 0
        self._bucket += 1
        return m


def halved(const int32_t[::1] bucket not None, const int32_t[::1] node not None, const int64_t[::1] amount not None):
    """Returns (bucket, node, amount) with one bucket of time in place of each two, and the sums, up to 2^63 - 1, of what
    has the same node there. Rows, given and returned: by bucket, then node, each pair once; amount: not negative."""
    cdef Py_ssize_t n = bucket.shape[0]
    cdef Py_ssize_t m = 0
    cdef Py_ssize_t first = 0
    cdef Py_ssize_t second, begin, end
    cdef bint has_first, has_second
    if node.shape[0] != n or amount.shape[0] != n:
        raise ValueError("halved: columns of different lengths")
    found = [np.empty(n, dtype) for dtype in (np.int32, np.int32, np.int64)]
    cdef int32_t[::1] out_bucket = found[0]
    cdef int32_t[::1] out_node = found[1]
    cdef int64_t[::1] out_amount = found[2]
    with nogil:
        while first < n:
            begin = first
            while begin < n and bucket[begin] == bucket[first]:
                begin += 1
            end = begin
            while end < n and bucket[end] >> 1 == bucket[first] >> 1:
                end += 1
            second = begin
            while first < begin or second < end:
                has_first = first < begin and (second == end or node[first] <= node[second])
                has_second = second < end and (first == begin or node[second] <= node[first])
                out_bucket[m] = bucket[first if has_first else second] >> 1
                out_node[m] = node[first if has_first else second]
                out_amount[m] = plus(amount[first] if has_first else 0, amount[second] if has_second else 0)
                first += has_first
                second += has_second
                m += 1
            first = end
    return tuple([column[:m].copy() for column in found])


cdef bint come_after_parents(const int32_t[::1] parent) noexcept nogil:
    """Returns whether each node's parent is a smaller node, or -1."""
    cdef Py_ssize_t i
    for i in range(parent.shape[0]):
        if not -1 <= parent[i] < i:
            return False
    return True


ctypedef fused Amount:
    int64_t
    double


def add_to_ancestors(const int32_t[::1] parent not None, Amount[::1] amount not None):
    """Adds to each node's amount those of all nodes below it; integers, which are not negative, up to 2^63 - 1. parent:
    always a smaller node; amount: changed in place."""
    cdef Py_ssize_t i
    if amount.shape[0] != parent.shape[0] or not come_after_parents(parent):
        raise ValueError("add_to_ancestors: an array has the wrong length, or a node an invalid parent")
    with nogil:
        for i in range(parent.shape[0] - 1, -1, -1):
            if parent[i] >= 0:
                if Amount is int64_t:
                    amount[parent[i]] = plus(amount[parent[i]], amount[i])
                else:
                    amount[parent[i]] += amount[i]


def mark_ancestors(
    const int32_t[::1] parent not None, const int32_t[::1] node not None, uint8_t[::1] is_marked not None,
    int32_t[::1] out not None
):
    """Marks the nodes and all above them, and writes those that were not marked before. Returns their number. parent:
    always a smaller node; out: as many as there are nodes."""
    cdef Py_ssize_t n = parent.shape[0]
    cdef Py_ssize_t i
    cdef Py_ssize_t m = 0
    cdef int32_t at
    cdef bint bad = is_marked.shape[0] != n or out.shape[0] != n
    with nogil:
        for i in range(node.shape[0]):
            at = node[i]
            bad = bad or not 0 <= at < n
            while not bad and at >= 0 and not is_marked[at]:
                is_marked[at] = 1
                out[m] = at
                m += 1
                bad = not -1 <= parent[at] < at
                at = parent[at]
            if bad:
                break
    if bad:
        raise ValueError("mark_ancestors: an array of the wrong length, or a node with an invalid number or parent")
    return m


def count_above(const int32_t[::1] parent not None, const uint8_t[::1] is_counted not None):
    """Returns (int32) how many of each node and those above it are counted. parent: always a smaller node."""
    cdef Py_ssize_t n = parent.shape[0]
    cdef Py_ssize_t i
    if is_counted.shape[0] != n or not come_after_parents(parent):
        raise ValueError("count_above: an array has the wrong length, or a node an invalid parent")
    found = np.empty(n, np.int32)
    cdef int32_t[::1] count = found
    with nogil:
        for i in range(n):
            count[i] = (count[parent[i]] if parent[i] >= 0 else 0) + (is_counted[i] != 0)
    return found


def nearest_above(const int32_t[::1] parent not None, const int32_t[::1] own not None):
    """Returns (int32) each node's own value or, where that is negative, that of the nearest node above that has one;
    -1 where none has. parent: always a smaller node."""
    cdef Py_ssize_t n = parent.shape[0]
    cdef Py_ssize_t i
    if own.shape[0] != n or not come_after_parents(parent):
        raise ValueError("nearest_above: an array has the wrong length, or a node an invalid parent")
    found = np.empty(n, np.int32)
    cdef int32_t[::1] value = found
    with nogil:
        for i in range(n):
            value[i] = own[i] if own[i] >= 0 else value[parent[i]] if parent[i] >= 0 else -1
    return found


def roots(const int32_t[::1] parent not None):
    """Returns (int32) the outermost node above each. parent: always a smaller node."""
    cdef Py_ssize_t i
    if not come_after_parents(parent):
        raise ValueError("roots: a node with an invalid parent")
    found = np.empty(parent.shape[0], np.int32)
    cdef int32_t[::1] root = found
    with nogil:
        for i in range(parent.shape[0]):
            root[i] = root[parent[i]] if parent[i] >= 0 else i
    return found


def inclusive_by_row(
    const int32_t[::1] prefix not None, const int32_t[::1] func not None, const int32_t[::1] row not None,
    const int64_t[::1] own not None, Py_ssize_t n_rows
):
    """Returns for each row what its functions have with all that they call: the sum over the outermost stacks of each
    function, each of them with all stacks above it. Sums end at 2^63 - 1.

    prefix: of each stack, always a smaller one; func: its leaf; row: where its numbers are added; own: its own number.
    """
    cdef Py_ssize_t n = prefix.shape[0]
    cdef Py_ssize_t i, node
    cdef Py_ssize_t n_funcs = 0
    if not n == func.shape[0] == row.shape[0] == own.shape[0] or not come_after_parents(prefix):
        raise ValueError("inclusive_by_row: an array has the wrong length, or a stack an invalid prefix")
    for i in range(n):
        if func[i] < 0 or not 0 <= row[i] < n_rows:
            raise ValueError("inclusive_by_row: a stack with an invalid function or row")
        n_funcs = max(n_funcs, func[i] + 1)
    total = np.zeros(n_rows, np.int64)
    cdef int64_t[::1] of_row = total
    cdef int64_t[::1] of_stack = np.array(own)
    # The last stack above each, one more than its number, and the next one above the same; activations of each function.
    cdef int32_t[::1] child = np.full(n + 1, -1, np.int32)
    cdef int32_t[::1] sibling = np.empty(n, np.int32)
    cdef int32_t[::1] n_open = np.zeros(n_funcs, np.int32)
    with nogil:
        for i in range(n - 1, -1, -1):
            if prefix[i] >= 0:
                of_stack[prefix[i]] = plus(of_stack[prefix[i]], of_stack[i])
            sibling[i] = child[prefix[i] + 1]
            child[prefix[i] + 1] = i
        node = child[0]
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
    return total
