"""Call trees without times become calls: each call path is one, as long as all its calls together, so that the time
axis is a flame graph."""

from __future__ import annotations

import numpy as np

from traceferry.model import CALLS, LEAVE, Array, CountedTable

LARGEST_NS = 1 << 62


def summed_calls(parent: Array, frame: Array, own_ns: Array, counts: Array, flags: Array) -> CountedTable:
    """Returns the calls of a thread from time 0 on. A call has first its callees, in the order of their rows, then its
    own time.

    parent: of each call path its caller's, a smaller one; -1 is none; frame: int32; own_ns: int64, not negative, the
    time that its calls took without their callees; counts: int64, how many calls it stands for; flags: uint8, of the
    row that leaves, beside LEAVE. What would end after 2^62 ns ends there.
    """
    n = len(parent)
    total: list[int] = np.maximum(own_ns, 0).tolist()
    children: list[list[int]] = [[] for _ in range(n + 1)]
    parents = parent.tolist()
    for node in range(n - 1, -1, -1):
        children[parents[node]].append(node)
        if parents[node] >= 0:
            total[parents[node]] += total[node]
    rows, ts = list[int](), list[int]()
    now, ends = 0, list[int]()
    waiting = children[-1]
    # A node waits until those before it are written; ~node leaves it. Each list of children falls, and is used up.
    while waiting:
        node = waiting.pop()
        if node >= 0:
            ends.append(min(now + total[node], LARGEST_NS))
            waiting.append(~node)
            waiting += children[node]
        else:
            now = ends.pop()
        rows.append(node)
        ts.append(now)
    row = np.array(rows, np.int64)
    leaves = row < 0
    path = np.where(leaves, ~row, row)
    return CountedTable(
        CALLS,
        {
            "ts": np.array(ts, np.int64),
            "frame": frame[path].astype(np.int32),
            "flags": np.where(leaves, flags[path] | np.uint8(LEAVE), 0).astype(np.uint8),
        },
        np.where(leaves, 0, counts[path]).astype(np.int64),
    )
