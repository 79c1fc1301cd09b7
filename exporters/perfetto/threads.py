"""Numbers of threads.

trace_processor knows a thread by its process and its number, and of a stack sample's thread (StackSample.TaskContext)
it reads 32 bits. So a thread whose number is longer, or is another thread's of the process, gets one of its own. A
recorded number of another thread stands in its name then; one that is longer is a pointer, and makes names that the
viewer cuts: it stands in the track's description.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from traceferry.model import Process, Thread, Trace

MAX_TID = (1 << 32) - 1


def renumbered(trace: Trace) -> Trace:
    """The trace with threads that trace_processor can tell apart; the first thread of a number keeps it."""
    keeps = [list(_keeps(process)) for process in trace.processes]
    if all(all(of_process) for of_process in keeps):
        return trace
    taken = {process.pid for process in trace.processes} | {thread.tid for _, thread in trace.threads}
    changed = copy.copy(trace)
    changed.processes = [
        replace(process, threads=list(_threads(process, of_process, taken)))
        for process, of_process in zip(trace.processes, keeps, strict=True)
    ]
    return changed


def _keeps(process: Process) -> Iterator[bool]:
    """Whether each thread keeps its number."""
    seen: set[int] = set()
    for thread in process.threads:
        yield 0 <= thread.tid <= MAX_TID and thread.tid not in seen
        seen.add(thread.tid)


def _threads(process: Process, keeps: list[bool], taken: set[int]) -> Iterator[Thread]:
    """The main thread's number is the process's, as on Linux; the others' are the next free ones."""
    is_free = process.pid not in {thread.tid for thread in process.threads}
    free = (number for number in count(process.pid + 1) if number not in taken)
    for thread, keep in zip(process.threads, keeps, strict=True):
        if keep:
            yield thread
            continue
        number = process.pid if thread.is_main and is_free else next(free)
        is_free = is_free and number != process.pid
        taken.add(number)
        yield replace(thread, tid=number, name=_name(thread, number))


def _name(thread: Thread, number: int) -> str:
    if thread.name == f"thread {thread.tid:#x}":
        return f"thread {number}"
    if thread.tid > MAX_TID:
        return thread.name.replace(f" ({thread.tid:#x})", "")
    recorded = f"{thread.tid}"
    return thread.name if recorded in thread.name else f"{thread.name} ({recorded})".lstrip()
