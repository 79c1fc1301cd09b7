"""The counters of a process that viewers get."""

from __future__ import annotations

import numpy as np

from traceferry.model import Counter, Process, Trace

MANY = 32


def shown_counters(trace: Trace, process: Process) -> list[Counter]:
    """Returns all, or of more than MANY those that change: the viewers put all of them before the threads."""
    if len(process.counters) <= MANY:
        return process.counters
    changing = [c for c in process.counters if np.ptp(c.values["value"]) > 0]
    trace.report.note("counters_dropped", len(process.counters) - len(changing), where=str(process.pid))
    return changing
