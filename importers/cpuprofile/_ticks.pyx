"""The lines of samples, of which a profile tells only how many a node had on each."""

from libc.stdint cimport int32_t, int64_t

import numpy as np


def stacks_in_turn(
    const int64_t[::1] rows not None, const int32_t[::1] stacks not None, const int64_t[::1] first not None,
    const int64_t[::1] n_ticks not None, const int32_t[::1] tick_stacks not None
):
    """Returns the stack of each sample, int32: of its node's ticks in turn, each as often as it says, then of the node.
    rows: nodes, -1 is none; stacks: of the nodes; first: where the ticks of each node begin, and the end of all; n_ticks:
    how often each tick was; tick_stacks: theirs."""
    cdef Py_ssize_t i
    cdef int64_t row
    cdef int64_t tick
    cdef int64_t n = stacks.shape[0]
    found = np.empty(rows.shape[0], np.int32)
    at_array, left_array = np.array(first), np.array(n_ticks)
    cdef int32_t[::1] stack = found
    cdef int64_t[::1] at = at_array
    cdef int64_t[::1] left = left_array
    if first.shape[0] != n + 1 or first[n] != n_ticks.shape[0] or tick_stacks.shape[0] != n_ticks.shape[0]:
        raise ValueError("columns of different lengths")
    if np.any(np.diff(first) < 0) or first[0] < 0:
        raise ValueError("ticks are not in the order of nodes")
    for i in range(rows.shape[0]):
        row = rows[i]
        if row < 0:
            stack[i] = -1
            continue
        if row >= n:
            raise ValueError("no such node")
        tick = at[row]
        while tick < first[row + 1] and left[tick] <= 0:
            tick += 1
        at[row] = tick
        if tick < first[row + 1]:
            left[tick] -= 1
            stack[i] = tick_stacks[tick]
        else:
            stack[i] = stacks[row]
    return found
