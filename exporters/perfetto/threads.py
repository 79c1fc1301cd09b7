"""Numbers of processes and threads.

trace_processor knows a process by its number. Of several with one number, as a process has that executes one program
after the other, all but the first get another; the recorded one stands in their names.

It knows a thread by its process and its number, and of a stack sample's thread (StackSample.TaskContext) it reads 32
bits. So a thread whose number is longer, or is another thread's of the process, gets one of its own. A recorded number
of another thread stands in its name then; one that is longer is a pointer, and makes names that the viewer cuts: it
stands in the track's description.

When a thread ran it is told by the thread's number alone. No program has process 0, so there threads that are not idle
processors have no number of another process's thread, nor 0, whose name is swapper in trace_processor.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from itertools import count

from traceferry.model import Process, Thread, Trace

MAX_TID = (1 << 32) - 1
IDLE = 0  # the number of what runs where nothing else does, and of its process
IDLE_NAMES = ("swapper", "<idle>", "Idle")


def renumbered(trace: Trace) -> Trace:
    """Returns the trace with processes and threads that trace_processor can tell apart; the first of a number keeps
    it."""
    taken = {process.pid for process in trace.processes} | {thread.tid for _, thread in trace.threads}
    pids = list(_pids(trace.processes, taken))
    of_programs = {thread.tid for process, thread in trace.threads if process.pid != IDLE}
    keeps = [list(_keeps(process, pid, of_programs)) for process, pid in zip(trace.processes, pids, strict=True)]
    has_own_pid = all(process.pid == pid for process, pid in zip(trace.processes, pids, strict=True))
    if has_own_pid and all(all(of_process) for of_process in keeps):
        return trace
    changed = copy.copy(trace)
    changed.processes = [
        replace(
            process, pid=pid, name=process.name if pid == process.pid else f"{process.name} ({process.pid})",
            threads=list(_threads(process.threads, pid, of_process, taken)),
        )
        for process, pid, of_process in zip(trace.processes, pids, keeps, strict=True)
    ]  # fmt: skip
    return changed


def _pids(processes: Sequence[Process], taken: set[int]) -> Iterator[int]:
    """Yields a number for each process."""
    seen: set[int] = set()
    free: Iterator[int] | None = None
    for process in processes:
        pid = process.pid
        if pid in seen:
            free = free or (number for number in count(max(pid, 0) + 1) if number not in taken)
            pid = next(free)
            taken.add(pid)
        seen.add(pid)
        yield pid


def _keeps(process: Process, pid: int, of_programs: Set[int]) -> Iterator[bool]:
    """Yields whether each thread keeps its number. pid: the number of its process; of_programs: the numbers of threads
    of processes but 0."""
    seen: set[int] = set()
    for thread in process.threads:
        is_free = thread.tid not in seen and not (thread.is_main and pid != process.pid)
        if process.pid == IDLE:
            is_free &= _is_idle(thread) if thread.tid == IDLE else thread.tid not in of_programs
        yield is_free and 0 <= thread.tid <= MAX_TID
        seen.add(thread.tid)


def _is_idle(thread: Thread) -> bool:
    return thread.name.partition("/")[0] in IDLE_NAMES


def _threads(threads: Sequence[Thread], pid: int, keeps: list[bool], taken: set[int]) -> Iterator[Thread]:
    """Yields the threads with their numbers: the main thread has the process's, as on Linux, others the next free
    one."""
    is_free = pid != IDLE and not any(thread.tid == pid for thread in threads)
    free = (number for number in count(pid + 1) if number not in taken)
    for thread, keep in zip(threads, keeps, strict=True):
        if keep:
            yield thread
            continue
        number = pid if thread.is_main and is_free else next(free)
        is_free = is_free and number != pid
        taken.add(number)
        yield replace(thread, tid=number, name=_name(thread, number))


def _name(thread: Thread, number: int) -> str:
    if thread.name == f"thread {thread.tid:#x}":
        return f"thread {number}"
    if thread.tid > MAX_TID:
        return thread.name.replace(f" ({thread.tid:#x})", "")
    recorded = f"{thread.tid}"
    return thread.name if thread.tid == IDLE or recorded in thread.name else f"{thread.name} ({recorded})".lstrip()
