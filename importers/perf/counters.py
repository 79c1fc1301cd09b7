"""Map: what perf stat counted becomes counters of the program, of which no thread is recorded."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePath

import numpy as np

from traceferry.common.recorder import command_of
from traceferry.common.report import Report
from traceferry.common.shown_text import encodable
from traceferry.importers.perf.not_read import NOTHING_COUNTED
from traceferry.importers.perf.recording import Counts, Event, Recording
from traceferry.model import COUNTER_VALUES, Array, Counter, Process, Table, TraceBuilder, rows_by_key

WHOLE_MACHINE = "whole machine"
DOC = "counted by perf stat since the value before"
PER_THREAD = "--per-thread"
# With these, the command that perf runs says only how long it counts.
ATTACHING = ("-p", "-t")
# perf says the clock's ns in ms.
MILLISECONDS = "msec"


def add_counts(trace: TraceBuilder, recording: Recording, counts: Counts, offset_ns: int, where: str) -> None:
    """Adds a process with what was counted. offset_ns: from the recording's start to the trace's clock; where: the
    recording, for the report."""
    tid, name = _counted(recording, counts)
    process = Process(tid, name, offset_ns, offset_ns + int(counts.ts[-1]))
    process.counters += counters(recording, counts, offset_ns, trace.report, where)
    if not process.counters:
        trace.report.note("no_samples", where=where, detail=NOTHING_COUNTED)
        return
    trace.report.note("counts_only", where=where)
    trace.processes.append(process)


def _counted(recording: Recording, counts: Counts) -> tuple[int, str]:
    """Returns the number and the name of the program whose events were counted."""
    tid, name = counts.threads[0] if counts.threads else (-1, "")
    if tid < 0:
        return 0, WHOLE_MACHINE
    command = command_of(shlex.join(recording.features.cmdline))
    is_run = command is not None and not any(command.has(option) for option in ATTACHING)
    program = command.program[:1] if command is not None and is_run else ()
    return tid, encodable(name or next((PurePath(word).name for word in program), f"process {tid}"))


def counters(recording: Recording, counts: Counts, offset_ns: int, report: Report, where: str) -> Iterator[Counter]:
    """Yields a counter for each event, each followed by those of its processors (-A) or threads (--per-thread)."""
    since, is_counted = _since_the_round_before(counts)
    # perf writes the last counts once more, behind the last round.
    n_left = int(np.count_nonzero(since[counts.in_round == len(counts.ts)]))
    report.note("counts_after_end", n_left, where=where)
    is_counted &= counts.in_round < len(counts.ts)
    rows_of = rows_by_key(np.where(is_counted, counts.event, -1))
    ts = np.append(np.int64(0), counts.ts) + offset_ns
    for event in recording.events:
        rows = rows_of.get(event.index, np.zeros(0, np.int64))
        if not len(rows):
            report.note("event_never_ran", where=f"{where} {event.name}", detail=event.name)
            continue
        unit, scale = _unit(event, counts)
        for name, mine in ((event.name, rows), *_parts(event.name, rows, recording, counts)):
            values = np.bincount(counts.in_round[mine] + 1, since[mine] * scale, len(ts))
            table = Table(COUNTER_VALUES, {"ts": ts, "value": values})
            yield Counter(encodable(name), unit, DOC, table, adds_up=True)


def _parts(name: str, rows: Array, recording: Recording, counts: Counts) -> Iterator[tuple[str, Array]]:
    """Yields the processors or threads of an event that perf was asked to count apart: (name, the rows of `counts`)."""
    if counts.is_by_cpu and np.all(counts.cpu >= 0):
        for cpu, mine in rows_by_key(counts.cpu[rows]).items():
            yield f"{name}: CPU {cpu}", rows[mine]
    elif PER_THREAD in recording.features.cmdline:
        for thread, mine in rows_by_key(counts.thread[rows]).items():
            yield f"{name}: {_thread_name(counts.threads, thread)}", rows[mine]


def _thread_name(threads: Sequence[tuple[int, str]], nth: int) -> str:
    tid, name = threads[nth] if 0 <= nth < len(threads) else (nth, "")
    return f"{name} {tid}".strip()


def _unit(event: Event, counts: Counts) -> tuple[str, float]:
    """Returns the unit of an event's counter, and what a value is multiplied with to be in it."""
    unit, scale = next((counts.units[number] for number in event.ids if number in counts.units), ("", 1.0))
    return ("ns", 1.0) if unit == MILLISECONDS else (encodable(unit) or "count", scale)


def _since_the_round_before(counts: Counts) -> tuple[Array, Array]:
    """Returns what each value has counted since the one before of the same counter, float64, and whether it ran at all
    since then. Counters that shared the processor's with others are scaled to the whole time, as perf stat does it."""
    order = np.lexsort((counts.in_round, counts.thread, counts.cpu, counts.event))
    keys = (counts.event[order], counts.cpu[order], counts.thread[order])
    goes_on = np.zeros(len(order), bool)
    goes_on[1:] = np.logical_and.reduce([key[1:] == key[:-1] for key in keys])

    def since(column: Array) -> Array:
        ordered = column[order]
        before = np.where(goes_on, np.roll(ordered, 1), np.uint64(0))
        # One that counts from nothing again.
        grown = np.where(ordered >= before, ordered - before, ordered)
        found = np.empty(len(order))
        found[order] = grown
        return found

    value, enabled, running = since(counts.value), since(counts.enabled), since(counts.running)
    ran = running > 0
    share = np.divide(enabled, running, out=np.ones(len(order)), where=ran & (running < enabled))
    return np.where(ran, value * share, 0.0), ran
