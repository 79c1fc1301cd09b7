"""When threads ran, and on which processor: task states, of which TraceProcessor makes its tables of scheduling."""

from __future__ import annotations

from collections import Counter

import numpy as np

from traceferry.exporters.perfetto import fields as pb
from traceferry.exporters.perfetto._packets import write_task_states
from traceferry.exporters.perfetto.packets import MAX_CPUS, RELATIVE, Packets
from traceferry.exporters.perfetto.threads import IDLE
from traceferry.model import (
    PREEMPTED,
    RUNNABLE,
    RUNNING,
    UNKNOWN,
    WAITING,
    Array,
    Process,
    Table,
    Thread,
    Trace,
    distinct,
)

NAMES = {WAITING: "Waiting", RUNNING: "Running", PREEMPTED: "Preempted", RUNNABLE: "Runnable", UNKNOWN: "Unknown"}
DEAD = pb.GenericKernelTaskStateEventTaskStateEnum.TASK_STATE_DEAD
STOPPED = pb.GenericKernelTaskStateEventTaskStateEnum.TASK_STATE_STOPPED
# Perfetto's number for each state of the model. TraceProcessor knows no unknown state: STOPPED is the rarest one.
STATES = np.array(
    [
        {
            WAITING: pb.GenericKernelTaskStateEventTaskStateEnum.TASK_STATE_INTERRUPTIBLE_SLEEP,
            RUNNING: pb.GenericKernelTaskStateEventTaskStateEnum.TASK_STATE_RUNNING,
            PREEMPTED: pb.GenericKernelTaskStateEventTaskStateEnum.TASK_STATE_RUNNABLE,
            RUNNABLE: pb.GenericKernelTaskStateEventTaskStateEnum.TASK_STATE_RUNNABLE,
            UNKNOWN: STOPPED,
        }[state]
        for state in range(5)
    ],
    np.uint8,
)
# Of what waits, by the kernel's letter.
WAITS = {
    "D": pb.GenericKernelTaskStateEventTaskStateEnum.TASK_STATE_UNINTERRUPTIBLE_SLEEP,
    "T": STOPPED,
    "t": STOPPED,
    "X": DEAD,
    "Z": DEAD,
}


class Scheduling:
    """All threads' rows stand on one sequence, thread after thread; TraceProcessor sorts them.

    trace: with the numbers of threads that are written. stopped: those of threads that were stopped, of which STOPPED
    is not what is unknown.
    """

    def __init__(self, trace: Trace, packets: Packets) -> None:
        self._trace, self._end_ts = trace, trace.end_ts
        self._packets = packets
        self._sequence = 0
        n_threads_of = Counter(thread.tid for _, thread in trace.threads)
        self._shared = {IDLE, *(tid for tid, n in n_threads_of.items() if n > 1)}
        self.stopped: set[int] = set()

    def write(self, process: Process, thread: Thread, track: int, scheduling: Table) -> bool:
        """Writes the rows; returns whether as a track of states."""
        # The idle thread runs on several processors at once: on those that are left free.
        if len(scheduling) == 0 or thread.tid == process.pid == IDLE:
            return False
        runs = scheduling["cpu"][scheduling["state"] == RUNNING]
        # TraceProcessor knows no scheduling without processors, and a thread by its number alone.
        if np.any((runs < 0) | (runs >= MAX_CPUS)) or thread.tid in self._shared:
            names = [NAMES[state] for state in range(len(NAMES))]
            self._packets.write_states(thread, track, "Scheduling", scheduling["ts"], scheduling["state"], names)
            return True
        self._write_task_states(thread, scheduling)
        return False

    def _write_task_states(self, thread: Thread, scheduling: Table) -> None:
        packets = self._packets
        if not self._sequence:
            self._sequence = packets.sequence()
            packets.begin(self._sequence, RELATIVE, b"", [])
        ts, cpu, waker = (scheduling[name] for name in ("ts", "cpu", "waker"))
        states = self._states(thread, scheduling)
        if thread.end_ts < self._end_ts and states[-1] != DEAD:
            # Else its last state lasts as long as the trace.
            end = max(thread.end_ts, int(ts[-1]))
            before = ts < end
            columns = ((ts, end), (states, DEAD), (cpu, cpu[-1]), (waker, -1))
            ts, states, cpu, waker = (np.append(column[before], last).astype(column.dtype) for column, last in columns)
        # TraceProcessor leaves out what a thread did after its death.
        states[:-1][states[:-1] == DEAD] = STOPPED
        write_task_states(packets, self._sequence, thread.tid, packets.start_ts, ts, states, cpu, waker)

    def _states(self, thread: Thread, scheduling: Table) -> Array:
        """uint8: the rows' states as Perfetto has them."""
        states: Array = STATES[scheduling["state"]]
        waits = scheduling["state"] == WAITING
        for reason in distinct(scheduling["reason"][waits]).tolist():
            kind = WAITS.get(self._trace.strings[reason].partition("|")[0])
            if kind is not None:
                states[waits & (scheduling["reason"] == reason)] = kind
            if kind == STOPPED:
                self.stopped.add(thread.tid)
        return states
