"""Loops over columns of numbers, and over stacks of a profile: what a frame inherits from its caller, and the calls
between exact samples."""

from libc.math cimport rint
from libc.stdint cimport INT16_MAX, INT16_MIN, INT32_MAX, INT32_MIN, int16_t, int32_t, int64_t, uint8_t

import numpy as np

from traceferry.native.call_flags cimport LEAVE
from traceferry.native.interning cimport AHEAD
from traceferry.native.nodes cimport NodeTable


def whole_numbers(const double[::1] values not None, int64_t default, double most):
    """Returns (int64: the numbers without their fractions, int: how many are out of range). NaN, and what is not below
    `most` and above -`most`, is the default; only the latter is counted."""
    cdef Py_ssize_t n = values.shape[0]
    cdef Py_ssize_t i
    cdef Py_ssize_t n_out = 0
    found = np.empty(n, np.int64)
    cdef int64_t[::1] out = found
    for i in range(n):
        if -most < values[i] < most:
            out[i] = <int64_t> values[i]
        else:
            out[i] = default
            n_out += values[i] == values[i]
    return found, n_out


def rounded(const double[::1] values not None, double scale, double most):
    """Returns values * scale, rounded to whole numbers, int64; what is beyond `most` or -`most` is that. No value is
    NaN."""
    cdef Py_ssize_t i
    found = np.empty(values.shape[0], np.int64)
    cdef int64_t[::1] out = found
    for i in range(values.shape[0]):
        out[i] = <int64_t>min(max(rint(values[i] * scale), -most), most)
    return found


ctypedef fused narrow:
    int16_t
    int32_t
    int64_t


cdef void copy_into(const int64_t[:] values, narrow[::1] out) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(values.shape[0]):
        out[i] = <narrow> values[i]


def narrowed(const int64_t[:] values not None):
    """Returns a copy in the smallest type that holds the values, int16, int32 or int64; of values that are all the same,
    only the first one."""
    cdef Py_ssize_t n = values.shape[0]
    cdef Py_ssize_t i
    cdef int64_t low = 0
    cdef int64_t high = 0
    if n:
        low = high = values[0]
    for i in range(n):
        low, high = min(low, values[i]), max(high, values[i])
    if low == high:
        values = values[:1]
    if INT16_MIN <= low and high <= INT16_MAX:
        found = np.empty(values.shape[0], np.int16)
        copy_into[int16_t](values, found)
    elif INT32_MIN <= low and high <= INT32_MAX:
        found = np.empty(values.shape[0], np.int32)
        copy_into[int32_t](values, found)
    else:
        found = np.empty(values.shape[0], np.int64)
        copy_into[int64_t](values, found)
    return found


def counts_of(const int64_t[::1] rows not None, const int64_t[::1] weight not None, Py_ssize_t n):
    """Returns (how often each row occurs, its weight), int64, of n rows. rows: others than these have none."""
    cdef Py_ssize_t i
    counts, weights = np.zeros(n, np.int64), np.zeros(n, np.int64)
    cdef int64_t[::1] count = counts
    cdef int64_t[::1] sum_of = weights
    if rows.shape[0] != weight.shape[0]:
        raise ValueError("counts_of: rows and weights of different lengths")
    for i in range(rows.shape[0]):
        if 0 <= rows[i] < n:
            count[rows[i]] += 1
            sum_of[rows[i]] += weight[i]
    return counts, weights


def cpu_times(const double[::1] values not None, double scale):
    """Returns the ns of values with so many each, int64; -1 of what is none, negative or out of range."""
    cdef Py_ssize_t i
    cdef double most = (<double>(1 << 61)) / scale
    found = np.empty(values.shape[0], np.int64)
    cdef int64_t[::1] out = found
    for i in range(values.shape[0]):
        out[i] = <int64_t>rint(values[i] * scale) if 0 <= values[i] < most else -1
    return found


def count_outside(const int64_t[::1] indices not None, int64_t size):
    """Returns how many are neither -1, which is none, nor rows of a table of that size."""
    cdef Py_ssize_t i
    cdef Py_ssize_t n = 0
    for i in range(indices.shape[0]):
        n += indices[i] >= size or indices[i] < -1
    return n


def resolve(
    int64_t[::1] prefix, const int64_t[::1] frame, const int64_t[::1] category, const int64_t[::1] depth,
    const int64_t[:, ::1] place, bint counts, int64_t default,
):
    """Returns (category, inline depth) of each stack, int64, and how many prefixes and inlined frames were not good.

    prefix: of each stack, is made -1 where it is not smaller; frame: of each stack, -1 is none; category, depth: of
    each frame, -1 is the caller's; place: library and address of each frame; counts: whether a depth only says that
    the frame is inlined; default: the category of a root that has none.
    """
    cdef Py_ssize_t n = prefix.shape[0]
    cdef Py_ssize_t i
    cdef int64_t p, f, c, d, above
    cdef int64_t n_prefixes = 0
    cdef int64_t n_inlined = 0
    categories, depths = np.zeros(n, np.int64), np.zeros(n, np.int64)
    cdef int64_t[::1] c_of = categories
    cdef int64_t[::1] d_of = depths
    for i in range(n):
        p, f = prefix[i], frame[i]
        if p >= i or p < -1:
            prefix[i] = p = -1
            n_prefixes += 1
        c = category[f] if f >= 0 else -1
        c_of[i] = c if c >= 0 else c_of[p] if p >= 0 else default
        d = depth[f] if f >= 0 else 0
        if d > 0:
            above = frame[p] if p >= 0 else -1
            if counts:
                d = d_of[p] + 1 if p >= 0 else 0
            if above < 0 or d != d_of[p] + 1 or place[above, 0] != place[f, 0] or place[above, 1] != place[f, 1]:
                d = 0
                n_inlined += 1
            d_of[i] = d
    return categories, depths, n_prefixes, n_inlined


def intern_stacks(
    NodeTable table, const int64_t[::1] prefix, const int32_t[::1] group, const int64_t[::1] first,
    const int32_t[::1] keys,
):
    """Returns the node of each stack, int32. prefix: rows of these stacks, smaller than the own one, -1 is none; group:
    which keys it adds to those of its prefix: keys[first[group]:first[group + 1]], the outermost first."""
    cdef Py_ssize_t n = prefix.shape[0]
    cdef Py_ssize_t i, ahead
    cdef int64_t k
    cdef int64_t n_new = 0
    cdef int32_t parent
    for i in range(n):
        n_new += first[group[i] + 1] - first[group[i]]
    table.reserve(table.n_nodes + n_new)
    found = np.empty(n, np.int32)
    cdef int32_t[::1] node = found
    for i in range(n):
        ahead = i + AHEAD
        if ahead < n and 0 <= prefix[ahead] < i and first[group[ahead]] < first[group[ahead] + 1]:
            table.prefetch(node[prefix[ahead]], keys[first[group[ahead]]])
        parent = node[prefix[i]] if prefix[i] >= 0 else -1
        for k in range(first[group[i]], first[group[i] + 1]):
            parent = table.intern(parent, keys[k])
        node[i] = parent
    return found


def intern_leaves(
    NodeTable table, const int32_t[::1] above, const int32_t[::1] group, const int64_t[::1] first,
    const int32_t[::1] keys,
):
    """Returns the nodes of such keys, int32, below other nodes."""
    cdef Py_ssize_t n = above.shape[0]
    cdef Py_ssize_t i
    cdef int64_t k
    cdef int64_t n_new = 0
    for i in range(n):
        n_new += first[group[i] + 1] - first[group[i]]
    table.reserve(table.n_nodes + n_new)
    found = np.empty(n, np.int32)
    cdef int32_t[::1] node = found
    for i in range(n):
        node[i] = above[i]
        for k in range(first[group[i]], first[group[i] + 1]):
            node[i] = table.intern(node[i], keys[k])
    return found


cdef int64_t follow(
    const int32_t[::1] parent, const int32_t[::1] depth, int32_t before, int32_t after, int32_t[::1] left,
    int32_t[::1] entered, int64_t* n_left,
) noexcept nogil:
    """Fills in the stacks that are left and, the innermost first, entered between two; returns how many are entered."""
    cdef int64_t n_entered = 0
    n_left[0] = 0
    while before != after:
        if before >= 0 and (after < 0 or depth[before] >= depth[after]):
            left[n_left[0]] = before
            n_left[0] += 1
            before = parent[before]
        else:
            entered[n_entered] = after
            n_entered += 1
            after = parent[after]
    return n_entered


def calls_between(
    const int32_t[::1] parent, const int32_t[::1] frame, const int32_t[::1] stacks, const int64_t[::1] ts
):
    """Returns (ts, frame, flags) of the calls that lead from each stack to the next, from none and, at the end, to
    none: what both have in common goes on. int64, int32, uint8. parent, frame: the trace's stacks."""
    cdef Py_ssize_t n = parent.shape[0]
    cdef Py_ssize_t i, at
    cdef int32_t deepest = 0
    cdef int32_t before = -1
    cdef int64_t k, n_entered, n_left
    cdef int64_t total = 0
    depths = np.zeros(n, np.int32)
    cdef int32_t[::1] depth = depths
    for i in range(n):
        depth[i] = depth[parent[i]] + 1 if parent[i] >= 0 else 1
        deepest = max(deepest, depth[i])
    cdef int32_t[::1] left = np.empty(deepest + 1, np.int32)
    cdef int32_t[::1] entered = np.empty(deepest + 1, np.int32)
    for i in range(stacks.shape[0]):
        total += follow(parent, depth, before, stacks[i], left, entered, &n_left) + n_left
        before = stacks[i]
    out_ts, out_frame, out_flags = np.empty(total, np.int64), np.empty(total, np.int32), np.zeros(total, np.uint8)
    cdef int64_t[::1] t = out_ts
    cdef int32_t[::1] f = out_frame
    cdef uint8_t[::1] flags = out_flags
    before, at = -1, 0
    for i in range(stacks.shape[0]):
        n_entered = follow(parent, depth, before, stacks[i], left, entered, &n_left)
        for k in range(n_left):
            t[at], f[at], flags[at] = ts[i], frame[left[k]], LEAVE
            at += 1
        for k in range(n_entered - 1, -1, -1):
            t[at], f[at] = ts[i], frame[entered[k]]
            at += 1
        before = stacks[i]
    return out_ts, out_frame, out_flags
