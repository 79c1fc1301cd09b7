"""Outputs of a size that the user asks for: short calls are summed until it is small enough."""

from __future__ import annotations

import sys
from collections.abc import Callable

from traceferry.common.units import format_size
from traceferry.files.output import Nowhere, Output, TooLargeError, is_compressed, is_replaced, open_output
from traceferry.model import Trace, TraceBuilder
from traceferry.timeline.short_calls import Summing, events_of, summing_to

Write = Callable[[TraceBuilder, Output, Callable[[int], None]], None]

# Of the events that would fit if all took as many bytes: names and tables take some, too.
SHARE = 0.9
# So often the trace is made smaller; then all calls are summed.
MOST_TRIES = 6


def save_within(
    trace: Trace, path: str, write: Write, progress: Callable[[int], None], most_bytes: int, jobs: int
) -> int:
    """Writes the trace in at most so many bytes, if summing short calls makes it so small; else with all calls summed.
    Returns how many bytes the exporter gave. Each try writes all; the number of events follows from the size of the
    one before, so the same trace gives the same bytes."""
    summing: Summing | None = None
    for nth in range(MOST_TRIES + 1):
        made = trace if summing is None else summing.summed()
        most = sys.maxsize if summing is not None and summing.is_least else most_bytes
        try:
            out = _written(made, path, write, progress if nth == 0 else lambda _: None, most, jobs)
            break
        except TooLargeError as error:
            events = summing.events if summing else events_of(trace)
            n_events = summing.n_left + events.n_others if summing else events.n
            wanted = int(n_events * most_bytes / error.size * SHARE) if nth < MOST_TRIES - 1 else 0
            summing = summing_to(trace, wanted, events)
    if summing is not None:
        summing.note_calls()
    detail = f"{format_size(out.n_written)} instead of {format_size(most_bytes)}"
    trace.report.note("size_exceeded", out.n_written > most_bytes, detail=detail)
    return out.n_bytes


def _written(trace: Trace, path: str, write: Write, progress: Callable[[int], None], most: int, jobs: int) -> Output:
    """Returns what was written. Raises TooLargeError if it would be more than `most` bytes; then nothing is."""
    if most < sys.maxsize and not is_replaced(path):
        counted = Output(Nowhere(), is_compressed(path), most, jobs)
        write(TraceBuilder(trace), counted, progress)
        counted.finish()
    with open_output(path, most=most, jobs=jobs) as out:
        write(TraceBuilder(trace), out, progress)
    return out
