"""When threads ran and waited, as `traceferry info` shows it."""

from __future__ import annotations

from typing import Any

import numpy as np

from traceferry.analysis.totals.waits import WaitTotals
from traceferry.model import Trace, sums
from traceferry.model.categories import KERNEL, OTHER, RUNTIME, SYSTEM
from traceferry.timeline.off_cpu import why

Json = dict[str, Any]
# What a program did not write itself, and what nothing is known of.
MACHINE = (KERNEL, SYSTEM, RUNTIME, OTHER)


def waits_json(trace: Trace, totals: WaitTotals, top: int) -> Json | None:
    """Returns how long each thread ran, could have run, and waited, the longest waits, and the stacks with most time
    off the processors; None where the recording does not tell."""
    if not totals.threads:
        return None
    names = {thread.tid: thread.name for _, thread in trace.threads}
    return {
        "threads": [
            {"pid": one.pid, "tid": one.tid, "name": one.name}
            | {f"{state}_ns": value for state, value in one.times._asdict().items()}
            for one in totals.threads
        ],
        "longest": [
            {
                "duration_ns": wait.duration_ns,
                "runnable_ns": wait.runnable_ns,
                "start_ns": wait.ts - trace.start_ts,
                "why": why(wait.state, trace.strings[wait.reason]),
                "pid": wait.pid,
                "tid": wait.tid,
                "thread": names.get(wait.tid, ""),
                "waker_tid": wait.waker if wait.waker >= 0 else None,
                "waker": names.get(wait.waker),
                **_functions(trace, wait.stack),
            }
            for wait in totals.longest[:top]
        ],
        "stacks": _stacks(trace, totals, top),
    }


def _stacks(trace: Trace, totals: WaitTotals, top: int) -> list[Json]:
    """Returns the paths of functions with most time; a path has many stacks, of other lines and tiers."""
    frame, category = trace.stacks["frame"], trace.frames["category"]
    ns, times = totals.by_stack[:, 0].tolist(), totals.by_stack[:, 1].tolist()
    path_of = _Paths(trace)
    sums_of: dict[tuple[int, int], list[int]] = {}
    for row in np.flatnonzero(totals.by_stack[:, 1]).tolist():
        found = sums_of.setdefault((path_of(row), int(category[frame[row]])), [0, 0, row])
        found[0], found[1] = found[0] + ns[row], found[1] + times[row]
    ranked = sorted(sums_of.items(), key=lambda item: (-item[1][0], item[1][2]))[:top]
    return [
        {
            "duration_ns": sums.limited(duration),
            "count": count,
            "category": trace.strings[int(trace.categories["name"][nth])],
            **_functions(trace, row),
        }
        for (_, nth), (duration, count, row) in ranked
    ]


class _Paths:
    """Numbers paths of functions: stacks of the same functions have the same number."""

    def __init__(self, trace: Trace) -> None:
        self._prefix = trace.stacks["prefix"]
        self._func = trace.frames["func"][trace.stacks["frame"]]
        self._number: dict[int, int] = {-1: -1}
        self._paths: dict[tuple[int, int], int] = {}

    def __call__(self, stack: int) -> int:
        way = []
        while stack not in self._number:
            way.append(stack)
            stack = int(self._prefix[stack])
        number = self._number[stack]
        for one in reversed(way):
            number = self._paths.setdefault((number, int(self._func[one])), len(self._paths))
            self._number[one] = number
        return number


def _functions(trace: Trace, stack: int) -> Json:
    """Returns the functions of a stack, the leaf first; how many of them are the kernel's; and how many stand in front
    of the first one of the program's own, not of the kernel, a library of the system or a runtime."""
    prefix, frame = trace.stacks["prefix"], trace.stacks["frame"]
    func, category = trace.frames["func"], trace.frames["category"]
    names: list[str] = []
    n_kernel, n_machine = 0, None
    while stack >= 0:
        leaf = int(frame[stack])
        known = trace.strings[int(trace.categories["name"][category[leaf]])] if category[leaf] >= 0 else OTHER
        # The leaf's category may be why the thread was off.
        if names and known not in MACHINE and n_machine is None:
            n_machine = len(names)
        names.append(trace.func_name(int(func[leaf])))
        if known == KERNEL:
            n_kernel = len(names)
        stack = int(prefix[stack])
    return {"stack": names, "kernel_frames": n_kernel, "machine_frames": len(names) if n_machine is None else n_machine}
