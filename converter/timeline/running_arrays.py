"""Running totals: the calls of a recording added up while it is read, for consumers that need no more of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceferry.model import Array
from traceferry.timeline import calls_kernel
from traceferry.timeline.running_inlined import OPEN_WIDTH, SLOT_WIDTH, SPAN_WIDTH, THREAD_COLUMNS

# So many threads, open calls of each, and pairs of thread and method are added up; what goes beyond is decoded again.
MOST_THREADS, DEEPEST, MOST_SLOTS, MOST_SPANS = 1 << 12, 256, 1 << 14, 1 << 16
LOSSES = {
    "open_at_end": "depth", "leave_without_enter": "ignored", "unwound": "unwound", "clock_backwards": "backwards",
}  # fmt: skip
N_ENTERS, IN_OUTERMOST_NS, ON_TOP_NS, N_OUTERMOST = 0, 1, 2, 4


@dataclass(frozen=True)
class ThreadSums:
    """methods: uint64 pointers; losses: by kind, as a `Balancer` reports them."""

    methods: Array
    losses: dict[str, int]
    _sums: Array
    _spans: Array
    _n_spans: Array

    def by_func(self, func: Array) -> Array | None:
        """int64 [n, 4]: func, enters, ns in outermost calls, ns on top. func: of each method. None: not known, as
        several methods that are one function were called too often."""
        funcs, of_method, n_methods = np.unique(func, return_inverse=True, return_counts=True)
        sums = np.zeros((len(funcs), 3), np.int64)
        np.add.at(sums, of_method, self._sums[:, :3])
        is_shared = n_methods[of_method] > 1
        if np.any(self._n_spans[is_shared] < self._sums[is_shared, N_OUTERMOST]):
            return None
        for nth in np.flatnonzero(n_methods > 1).tolist():
            sums[nth, IN_OUTERMOST_NS] = _covered(self._spans[of_method[self._spans[:, 0]] == nth, 1:])
        return np.column_stack((funcs, sums))


def _covered(spans: Array) -> int:
    """How long one or more of them last; rows of begin and end."""
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    ends = np.maximum.accumulate(spans[:, 1])
    begins = np.maximum(spans[1:, 0], ends[:-1])
    return int((ends[1:] - begins).clip(0).sum() + spans[0, 1] - spans[0, 0])


class RunningTotals:
    """tids: uint64, of the buffers; without any nothing is added up."""

    def __init__(self, tids: Array) -> None:
        self._tids, thread_of = np.unique(tids, return_inverse=True)
        thread_of = np.where(thread_of < MOST_THREADS, thread_of, -1).astype(np.int32)
        n, room = min(len(self._tids), MOST_THREADS), MOST_SLOTS if len(tids) else 0
        self._threads = np.zeros((n, THREAD_COLUMNS["width"]), np.int64)
        self._owner, self._method = np.empty(room, np.int32), np.empty(room, np.uint64)
        self._sums = np.zeros((room, SLOT_WIDTH), np.int64)
        self._spans = np.empty((MOST_SPANS if len(tids) else 0, SPAN_WIDTH), np.int64)
        self._counts = np.zeros(2, np.int64)
        # As the kernels take them.
        self.arrays = (
            thread_of, self._threads.ravel(), np.empty(n * DEEPEST * OPEN_WIDTH, np.int64), self._owner, self._method,
            self._sums.ravel(), np.full(2 * room or 1, -1, np.int32), self._spans.ravel(), self._counts,
        )  # fmt: skip
        self._closed: dict[int, ThreadSums] = {}

    def closed(self, tid: int, end_ts: int) -> ThreadSums | None:
        """A thread, its open calls ended at a time on the event clock. None: some of its calls were left out."""
        nth = int(np.searchsorted(self._tids, np.uint64(tid)))
        if nth >= len(self._threads) or self._tids[nth] != tid or self._threads[nth, THREAD_COLUMNS["left_out"]]:
            return None
        if tid not in self._closed:
            losses = {kind: int(self._threads[nth, THREAD_COLUMNS[name]]) for kind, name in LOSSES.items()}
            calls_kernel.end_running(nth, end_ts, self.arrays)
            n_slots, n_spans = self._counts.tolist()
            slots = np.flatnonzero(self._owner[:n_slots] == nth)
            slots = slots[self._sums[slots, N_ENTERS] > 0]
            rank = np.full(n_slots, -1, np.int64)
            rank[slots] = np.arange(len(slots))
            spans = self._spans[:n_spans]
            spans = np.column_stack((rank[spans[:, 0]], spans[:, 1:]))[rank[spans[:, 0]] >= 0]
            kept = np.bincount(spans[:, 0], minlength=len(slots))
            self._closed[tid] = ThreadSums(self._method[slots], losses, self._sums[slots], spans, kept)
        return self._closed[tid]
