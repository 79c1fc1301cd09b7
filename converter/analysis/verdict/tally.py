"""Counts the samples of each stack while the threads of a trace are loaded for something else."""

from __future__ import annotations

from dataclasses import replace

from traceferry.analysis.totals.sums_of_trace import Ran, SampleTotals, process_of
from traceferry.model import Thread, ThreadData, Trace, TraceBuilder


class Tally:
    """Counts the samples of a trace's first event, of each thread when it is first loaded by the first who loads any.

    Parameters
    ----------
    trace : Trace
        What will be saved, or gone through in another way.

    Attributes
    ----------
    trace : Trace
        The same trace, whose threads are counted: to be saved in place of the other.
    """

    def __init__(self, trace: Trace) -> None:
        self._samples: SampleTotals | None = None
        self._into: TraceBuilder | None = None
        self._seen: set[int] = set()
        processes = [
            replace(process, threads=[self._counted(thread, process_of(trace, process)) for thread in process.threads])
            for process in trace.processes
        ]
        self.trace = Trace(trace, processes=processes)

    @property
    def samples(self) -> SampleTotals:
        """Returns the samples of each stack, as far as threads were loaded."""
        return self._samples if self._samples is not None else SampleTotals(self.trace.opened())

    def _counted(self, thread: Thread, ran: Ran | None) -> Thread:
        def make(into: TraceBuilder) -> ThreadData:
            data = thread.make(into)
            if not thread.sample_unit:
                self._add(thread, data, into, ran)
            return data

        return replace(thread, make=make)

    def _add(self, thread: Thread, data: ThreadData, into: TraceBuilder, ran: Ran | None) -> None:
        """Rows of stacks mean the same in one continuation of the trace only."""
        if self._samples is None:
            self._samples, self._into = SampleTotals(into), into
        if into is self._into and id(thread) not in self._seen:
            self._seen.add(id(thread))
            self._samples.add_table(into.sampling, data.samples, ran)
