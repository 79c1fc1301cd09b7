"""Running totals: the calls of a recording added up while it is read, for consumers that need no more of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from traceferry.model import Array
from traceferry.timeline._running import RunningSums

# So many threads, open calls of each, pairs of thread and method, and spans of outermost calls are added up; what goes
# beyond is decoded again.
MOST_THREADS, DEEPEST, MOST_SLOTS, MOST_SPANS = 1 << 12, 256, 1 << 14, 1 << 16
# Names of losses in the report: what `RunningSums` calls them.
LOSSES = {
    "open_at_end": "depth", "leave_without_enter": "ignored", "unwound": "unwound", "clock_backwards": "backwards",
}  # fmt: skip


class ThreadSums(NamedTuple):
    """The sums of one thread.

    methods: uint64 pointers; losses: by kind, as a `Balancer` reports them; sums: of each method, its columns as
    `MethodSums` names them; spans: outermost calls, `slot` is the method's index.
    """

    methods: Array
    losses: dict[str, int]
    sums: Array
    spans: Array

    def by_func(self, func: Array) -> Array | None:
        """Returns int64 [n, 4]: func, enters, ns in outermost calls, ns on top. func: of each method. None: not known,
        as several methods that are one function were called too often."""
        funcs, of_method, n_methods = np.unique(func, return_inverse=True, return_counts=True)
        result = np.zeros((len(funcs), 4), np.int64)
        result[:, 0] = funcs
        for column, name in enumerate(("n_enters", "in_outermost_ns", "on_top_ns"), 1):
            np.add.at(result[:, column], of_method, self.sums[name])
        is_shared = n_methods[of_method] > 1
        n_kept = np.bincount(self.spans["slot"], minlength=len(func))
        if np.any((n_kept < self.sums["n_outermost"]) & is_shared):
            return None
        for nth in np.flatnonzero(n_methods > 1).tolist():
            result[nth, 2] = _covered(self.spans[of_method[self.spans["slot"]] == nth])
        return result


def _covered(spans: Array) -> int:
    """Returns how many ns lie in one or more of the spans."""
    spans = spans[np.argsort(spans["begin"], kind="stable")]
    begins, ends = spans["begin"], np.maximum.accumulate(spans["end"])
    return int((ends[1:] - np.maximum(begins[1:], ends[:-1])).clip(0).sum() + ends[0] - begins[0])


class RunningTotals:
    """The running sums of a recording's threads. tids: uint64, of the buffers; without any nothing is added up.

    sums: what a kernel adds calls to while it reads the buffers.
    """

    def __init__(self, tids: Array) -> None:
        self._tids, nth = np.unique(tids, return_inverse=True)
        self._tids = self._tids[:MOST_THREADS]
        thread_of = np.where(nth < MOST_THREADS, nth, -1).astype(np.int32)
        n_slots, n_spans = (MOST_SLOTS, MOST_SPANS) if len(tids) else (0, 0)
        self.sums = RunningSums(thread_of, len(self._tids), DEEPEST, n_slots, n_spans)
        self._closed: dict[int, ThreadSums] = {}

    def closed(self, tid: int, end_ts: int) -> ThreadSums | None:
        """Returns the sums of a thread, its open calls ended at a time on the event clock. None: some of its calls were
        left out."""
        nth = int(np.searchsorted(self._tids, np.uint64(tid)))
        if nth >= len(self._tids) or self._tids[nth] != tid:
            return None
        if tid not in self._closed:
            state = self.sums.losses(nth)
            if state["left_out"]:
                return None
            losses = {kind: state[name] for kind, name in LOSSES.items()}
            methods, sums, spans = self.sums.closed(nth, end_ts)
            self._closed[tid] = ThreadSums(methods, losses, sums, spans)
        return self._closed[tid]
