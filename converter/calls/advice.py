"""What to leave out of a recording that is too large for a viewer."""

from __future__ import annotations

import numpy as np

from traceferry.calls.balance import count_lasting
from traceferry.durations import format_duration
from traceferry.model import Trace

CANDIDATES_NS = [round(10 ** (n / 2)) for n in range(2, 21)]  # 10 ns to 10 s
MARGIN = 0.9
# Of each thread: enough to advise, and little beside what was written.
ROWS_LOOKED_AT = 1 << 22


def what_would_fit(trace: Trace, size: int, limit: int) -> str:
    """The options that bring an output of `size` bytes below `limit`, in words. Loads each thread again."""
    share = limit * MARGIN / size
    end = format_duration(int((trace.end_ts - trace.start_ts) * share))
    by_range = f"--range 0,{end} would fit"
    limits = np.array([0, *CANDIDATES_NS], np.int64)
    counts = (count_lasting(thread.load().calls, limits, ROWS_LOOKED_AT) for _, thread in trace.threads)
    total, *kept = sum(counts, 0 * limits).tolist()
    fitting = [limit for limit, n in zip(CANDIDATES_NS, kept, strict=True) if n <= total * share]
    if not fitting or total == 0:
        return by_range
    return f"--min-duration {format_duration(fitting[0])} or {by_range}"
