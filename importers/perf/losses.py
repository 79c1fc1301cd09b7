"""Map: times in which the kernel lost records."""

from __future__ import annotations

import numpy as np

from traceferry.importers.perf.recording import Recording
from traceferry.model import RUNNING, Array, distinct


class Losses:
    """Times in which records of a processor were lost: from the last record there to the one that tells of the loss."""

    def __init__(self, recording: Recording) -> None:
        losses = recording.losses
        self._all = np.zeros((0, 2), np.int64)
        self._of_cpu: dict[int, Array] = {}
        if len(losses.ts) == 0:
            return
        samples, switches = recording.samples, recording.switches
        ts, cpu = (np.concatenate(columns) for columns in ((samples.ts, switches.ts), (samples.cpu, switches.cpu)))
        order = np.argsort(ts, kind="stable")
        ts, cpu = ts[order], cpu[order]
        windows = []
        for one in distinct(losses.cpu).tolist():
            ends = losses.ts[losses.cpu == one]
            mine = ts[cpu == one] if one >= 0 else ts
            before = np.searchsorted(mine, ends) - 1
            begins = np.where(before >= 0, np.append(mine, 0)[before], 0)
            self._of_cpu[one] = _united(np.stack((np.minimum(begins, ends), ends), axis=1))
            windows.append(self._of_cpu[one])
        self._all = _united(np.concatenate(windows))

    def __len__(self) -> int:
        return len(self._all)

    def edges(self, start: int, end: int) -> Array:
        """Returns the times between start and end at which a loss begins or ends."""
        windows = [self._all, *self._of_cpu.values()]
        edges = distinct(np.concatenate(windows).ravel())
        return edges[(edges > start) & (edges < end)]

    def holds(self, ts: Array, state: Array, cpu: Array) -> Array:
        """Returns whether what began at ts may have changed unseen: of what runs, by losses on its processor."""
        found = _in(self._all, ts)
        runs = state == RUNNING
        of_cpu = _in(self._of_cpu.get(-1, self._all[:0]), ts) | (cpu < 0)
        for one in distinct(cpu[runs]).tolist() if runs.any() else ():
            if one in self._of_cpu:
                of_cpu |= (cpu == one) & _in(self._of_cpu[one], ts)
        is_lost: Array = found & (~runs | of_cpu)
        return is_lost


def _united(windows: Array) -> Array:
    """Returns windows without overlaps, by time."""
    windows = windows[np.argsort(windows[:, 0], kind="stable")]
    ends = np.maximum.accumulate(windows[:, 1])
    is_first = np.ones(len(windows), bool)
    is_first[1:] = windows[1:, 0] > ends[:-1]
    last = np.append(np.flatnonzero(is_first)[1:] - 1, len(windows) - 1)
    return np.stack((windows[is_first, 0], ends[last]), axis=1)


def _in(windows: Array, ts: Array) -> Array:
    if len(windows) == 0:
        return np.zeros(len(ts), bool)
    nth = np.searchsorted(windows[:, 0], ts, "right") - 1
    found: Array = (nth >= 0) & (ts < windows[np.maximum(nth, 0), 1])
    return found
