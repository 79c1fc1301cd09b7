"""Options that make a recording small enough for a viewer."""

from __future__ import annotations

import numpy as np

from traceferry.common.units import format_duration
from traceferry.model import Array, Table, ThreadData, Trace
from traceferry.timeline.balance import count_lasting

CANDIDATES_NS = [round(10 ** (n / 2)) for n in range(2, 21)]  # 10 ns to 10 s
MARGIN = 0.9
# Of each table: enough to advise, and little beside what was written.
ROWS_LOOKED_AT = 1 << 22
SLICES = 4096  # of the recording's time


def what_would_fit(trace: Trace, size: int, limit: int) -> str:
    """Returns the options that bring an output of `size` bytes below `limit`, as text. Loads each thread again.

    Assumes that the output's size is proportional to the number of calls, or of all rows with a time."""
    share = limit * MARGIN / size
    limits = np.array([0, *CANDIDATES_NS], np.int64)
    counts, rows = np.zeros(len(limits), np.int64), np.zeros(SLICES)
    for _, thread in trace.threads:
        data = thread.load(trace)
        counts += count_lasting(data.calls, limits, ROWS_LOOKED_AT)
        rows += _rows_by_slice(trace, data)
    by_range = f"--range 0,{format_duration(_end_of_share(trace, rows, share))}"
    total, *kept = counts.tolist()
    fitting = [ns for ns, n in zip(CANDIDATES_NS, kept, strict=True) if n <= total * share]
    if not fitting or total == 0:
        return f"{by_range} would fit"
    events = f"--max-events {_short_count(int(total * share))}"
    return f"{events}, which sums short calls, --min-duration {format_duration(fitting[0])} or {by_range} would fit"


def _short_count(n: int) -> str:
    """Returns about so many, not more, as the command line takes it: 1250K."""
    for digits, unit in ((6, "M"), (3, "K")):
        if n >= 10 ** (digits + 1):
            return f"{n // 10**digits}{unit}"
    return str(n)


def _rows_by_slice(trace: Trace, data: ThreadData) -> Array:
    """Returns float64[SLICES]: how many rows there are in each slice of the recording's time."""
    duration = max(trace.end_ts - trace.start_ts, 1)
    rows = np.zeros(SLICES)
    for table in (data.calls, data.samples, data.allocations):
        seen, last = 0, 0
        for piece in _first_rows(table):
            slices = ((piece["ts"] - trace.start_ts) * (SLICES / duration)).astype(np.int64).clip(0, SLICES - 1)
            rows += np.bincount(slices, minlength=SLICES)
            seen, last = seen + len(piece), int(slices[-1])
        if seen >= ROWS_LOOKED_AT:
            rows[last:] += (len(table) - seen) / (SLICES - last)
    return rows


def _first_rows(table: Table) -> list[Table]:
    pieces: list[Table] = []
    for piece in table.pieces():
        pieces.append(piece)
        if sum(map(len, pieces)) >= ROWS_LOOKED_AT:
            break
    return pieces


def _end_of_share(trace: Trace, rows: Array, share: float) -> int:
    """Returns the time in ns after the start until when there is this share of the rows; at least 1, for a range is
    not empty."""
    before = np.append(0, np.cumsum(rows))
    if before[-1] == 0:
        before = np.arange(SLICES + 1.0)
    nth = int(np.searchsorted(before, before[-1] * share, "right")) - 1
    inside = (before[-1] * share - before[nth]) / max(before[min(nth + 1, SLICES)] - before[nth], 1)
    return max(int((trace.end_ts - trace.start_ts) * min((nth + inside) / SLICES, 1)), 1)
