"""When threads ran, and on which processor: task states, of which TraceProcessor makes its tables of scheduling."""

from __future__ import annotations

from collections import Counter

import numpy as np

from traceferry.exporters.perfetto import fields as pb
from traceferry.exporters.perfetto._packets import write_task_states
from traceferry.exporters.perfetto.packets import MAX_CPUS, RELATIVE, Packets
from traceferry.model import PREEMPTED, RUNNABLE, RUNNING, UNKNOWN, WAITING, Array, Table, Thread, Trace, distinct

NAMES = {WAITING: "Waiting", RUNNING: "Running", PREEMPTED: "Preempted", RUNNABLE: "Runnable", UNKNOWN: "Unknown"}
# Perfetto's number for each state of the model. TraceProcessor knows no unknown state: STOPPED is the rarest one.
STATES = np.array(
    [
        {
            WAITING: pb.GenericKernelTaskStateEventTaskStateEnum.TASK_STATE_INTERRUPTIBLE_SLEEP,
            RUNNING: pb.GenericKernelTaskStateEventTaskStateEnum.TASK_STATE_RUNNING,
            PREEMPTED: pb.GenericKernelTaskStateEventTaskStateEnum.TASK_STATE_RUNNABLE,
            RUNNABLE: pb.GenericKernelTaskStateEventTaskStateEnum.TASK_STATE_RUNNABLE,
            UNKNOWN: pb.GenericKernelTaskStateEventTaskStateEnum.TASK_STATE_STOPPED,
        }[state]
        for state in range(5)
    ],
    np.uint8,
)
# Of what waits, by the kernel's letter.
WAITS = {
    "D": pb.GenericKernelTaskStateEventTaskStateEnum.TASK_STATE_UNINTERRUPTIBLE_SLEEP,
    "T": pb.GenericKernelTaskStateEventTaskStateEnum.TASK_STATE_STOPPED,
    "t": pb.GenericKernelTaskStateEventTaskStateEnum.TASK_STATE_STOPPED,
    "X": pb.GenericKernelTaskStateEventTaskStateEnum.TASK_STATE_DEAD,
    "Z": pb.GenericKernelTaskStateEventTaskStateEnum.TASK_STATE_DEAD,
}
IDLE = 0  # the thread id of what runs where nothing else does


class Scheduling:
    """All threads' rows stand on one sequence, thread after thread; TraceProcessor sorts them.

    trace: with the recorded numbers of threads.
    """

    def __init__(self, trace: Trace, packets: Packets) -> None:
        self._trace = trace
        self._packets = packets
        self._sequence = 0
        tids = [thread.tid for _, thread in trace.threads]
        n_threads_of = Counter(tids)
        self._number_is_reused = [n_threads_of[tid] > 1 for tid in tids]

    def write(self, thread: Thread, index: int, track: int, scheduling: Table) -> bool:
        """Writes the rows; returns whether as a track of states. index: of the thread in the trace."""
        runs = scheduling["cpu"][scheduling["state"] == RUNNING]
        # The idle thread runs on several processors at once: on those that are left free.
        if len(scheduling) == 0 or thread.tid == IDLE:
            return False
        if np.any((runs < 0) | (runs >= MAX_CPUS)):
            # TraceProcessor knows no scheduling without processors.
            names = [NAMES[state] for state in range(len(NAMES))]
            self._packets.write_states(thread, track, "Scheduling", scheduling["ts"], scheduling["state"], names)
            return True
        self._write_task_states(thread, index, scheduling)
        return False

    def _write_task_states(self, thread: Thread, index: int, scheduling: Table) -> None:
        packets = self._packets
        if not self._sequence:
            self._sequence = packets.sequence()
            packets.begin(self._sequence, RELATIVE, b"", [])
        ts, cpu, waker = (scheduling[name] for name in ("ts", "cpu", "waker"))
        states = self._states(scheduling)
        if self._number_is_reused[index] and scheduling["state"][-1] == RUNNING:
            # Another thread of this number has not started before this one has stopped.
            end = max(thread.end_ts, int(ts[-1]) + 1)
            ts, states = np.append(ts, end), np.append(states, STATES[WAITING])
            cpu, waker = np.append(cpu, cpu[-1]), np.append(waker, -1)
        write_task_states(packets, self._sequence, thread.tid, packets.start_ts, ts, states, cpu, waker)

    def _states(self, scheduling: Table) -> Array:
        """uint8: the rows' states as Perfetto has them."""
        states: Array = STATES[scheduling["state"]]
        waits = scheduling["state"] == WAITING
        for reason in distinct(scheduling["reason"][waits]).tolist():
            kind = WAITS.get(self._trace.strings[reason].partition("|")[0])
            if kind is not None:
                states[waits & (scheduling["reason"] == reason)] = kind
        return states
