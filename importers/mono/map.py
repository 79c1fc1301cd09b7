"""Map: logs become a Trace, in the model's terms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from traceferry.importers.mono.allocations import Allocations
from traceferry.importers.mono.counters import counters
from traceferry.importers.mono.coverage import add_coverage
from traceferry.importers.mono.decode import Log
from traceferry.importers.mono.frames import Frames, has_code
from traceferry.importers.mono.identity import Known, follow
from traceferry.importers.mono.layout import Event, Metadata
from traceferry.importers.mono.markers import Markers, questions
from traceferry.importers.mono.names import Names
from traceferry.importers.mono.samples import read_samples
from traceferry.importers.mono.shots import Shot, Shots, find_shots
from traceferry.importers.mono.threads import UNKNOWN_TID, ThreadLifetime, ThreadLifetimes
from traceferry.importers.mono.walks import CallCounts, call_pieces
from traceferry.model import (
    ALLOCATIONS,
    CALLS,
    SAMPLES,
    Array,
    Clock,
    HeapGraph,
    HeapSnapshot,
    Input,
    Process,
    Sampling,
    StreamedTable,
    Table,
    Thread,
    ThreadData,
    Trace,
)

MS = 1_000_000
# The header's wall time is cut to a second: logs of one machine may seem this much apart.
SAME_CLOCK_NS = 2_000_000_000
MAIN = "Main"
SAMPLE_OPTION = re.compile(r"\bsample(?P<mode>-real)?(?:=(?P<frequency>[0-9]{1,9}))?(?=,|$)")
DEFAULT_FREQUENCY = 100
NS = 1_000_000_000


def to_trace(logs: Sequence[Log], trace: Trace) -> None:
    """Adds the logs, each of a process of its own."""
    for log in logs:
        _note_problems(trace, log)
        _add_process(trace, log)


def _note_problems(trace: Trace, log: Log) -> None:
    by_kind: dict[str, list[int]] = {}
    details: dict[str, str] = {}
    for problem in log.problems:
        by_kind.setdefault(problem.kind, []).append(problem.offset)
        details.setdefault(problem.kind, problem.detail)
    for kind, offsets in by_kind.items():
        trace.report.note(kind, len(offsets), offset=min(offsets), where=log.source.path, detail=details[kind])


def _add_process(trace: Trace, log: Log) -> None:
    header = log.header
    version = f"{header.major}.{header.minor}, data version {header.data_version}"
    trace.inputs.append(Input(log.source.name, "mono", version, "Mono log profiler"))
    _describe(trace, log)
    _sampling(trace, log)
    lifetimes = ThreadLifetimes(log)
    span = _span(lifetimes)
    shift_ns = _join_clock(trace, log, span)
    frames = Frames(trace, log)
    add_coverage(trace, log)
    samples = read_samples(trace, log, frames, lifetimes, shift_ns)
    shots = find_shots(log, span[1])
    reader = Shots(trace, log, frames)
    asked_rows, asked_ts, asked_addresses = questions(log)
    threads = list(lifetimes)
    known = follow(trace, log, frames, threads, shots, reader, (asked_ts, asked_addresses))
    markers = Markers(trace, log, threads, frames, known, asked_rows, span, shift_ns)
    name = _program(log) or log.source.name.removesuffix(".mlpd")
    process = Process(_pid(trace, log), name, span[0] + shift_ns, span[1] + shift_ns)
    main = _main(lifetimes)
    for life in lifetimes:
        loader = _Loader(trace, log, frames, life, known, markers, samples.get(id(life)), span, shift_ns)
        process.threads.append(loader.thread(life is main, name))
    process.counters += counters(log, trace.report, span, shift_ns)
    for number, shot in enumerate(shots):
        load = partial(_graph, reader, known, number, shot)
        process.heap_snapshots.append(HeapSnapshot(shot.start_ts + shift_ns, shot.end_ts + shift_ns, load))
    trace.processes.append(process)
    _add_code(trace, log, frames, process.pid, shift_ns)
    _note_nameless(trace, log, frames)


def _graph(reader: Shots, known: Known, number: int, shot: Shot) -> HeapGraph:
    return reader.graph(shot, known.shot_numbers[number], known.shot_sites[number])


def _note_nameless(trace: Trace, log: Log, frames: Frames) -> None:
    """So far: threads that are gone through later may have more of them."""
    advice = "the log does not name these methods; its beginning may be missing"
    trace.report.note("function_without_name", frames.methods.n_unnamed, where=log.source.path, advice=advice)


# ---------------------------------------------------------------- time, process


def _span(lifetimes: ThreadLifetimes) -> tuple[int, int]:
    """The first and the last time of the log, on the event clock."""
    found = list(lifetimes)
    start = min((life.start_ts for life in found), default=0)
    return start, max((life.end_ts for life in found), default=start)


def _join_clock(trace: Trace, log: Log, span: tuple[int, int]) -> int:
    """Puts the log on the trace's clock; returns what its times are to be moved by, in ns."""
    header = log.header
    zero = None
    if header.start_unix_ms:
        clock_ns = span[0] if header.start_clock_ns is None else header.start_clock_ns
        zero = header.start_unix_ms * MS - clock_ns
    known = trace.clock
    if known is not None and known.unix_zero_ns is not None and zero is not None:
        is_same = known.kind == "monotonic" and abs(known.unix_zero_ns - zero) < SAME_CLOCK_NS
        zero = known.unix_zero_ns if is_same else zero
    return trace.join_clock(Clock("monotonic", zero))


def _pid(trace: Trace, log: Log) -> int:
    """A process of its own for each log."""
    taken = {process.pid for process in trace.processes}
    pid = log.header.pid
    if pid == 0:
        pid = 1
        trace.report.note("pid_unknown", where=log.source.path, advice="1 is used instead")
    while pid in taken:
        pid += 1
    return pid


def _program(log: Log) -> str:
    """The first domain that gets a name has that of the executable."""
    rows = log.records.metadata(Event.NAME, Metadata.DOMAIN)
    named = rows[np.argsort(log.records.ts[rows], kind="stable")][:1].tolist()
    return log.text(int(log.records["name"][named[0]])) if named else ""


def _main(lifetimes: ThreadLifetimes) -> ThreadLifetime | None:
    found = [life for life in lifetimes if life.tid != UNKNOWN_TID]
    return next((life for life in found if MAIN in life.names), found[0] if found else None)


def _describe(trace: Trace, log: Log) -> None:
    header = log.header
    words = {
        "recorder": f"Mono log profiler, data version {header.data_version}",
        "profiler_arguments": header.arguments,
        "architecture": header.architecture,
        "system": header.system,
        "timer_overhead_ns": str(header.timer_overhead_ns),
        "pointer_size": str(header.pointer_size),
    }
    for row in log.records.of(Event.AOT_ID).tolist():
        words["aot_id"] = log.text(int(log.records["text"][row]))
    trace.attributes.update({key: word for key, word in words.items() if word})


def _sampling(trace: Trace, log: Log) -> None:
    """What the option string says of samples: sample=N or sample-real=N, N a second."""
    option = SAMPLE_OPTION.search(log.header.arguments)
    if trace.sampling is None and log.stats["hits"].any():
        mode, frequency = (option["mode"], option["frequency"]) if option else (None, None)
        event = "wall-clock" if mode else "cpu-clock" if option else "samples"
        interval_ns = NS // max(int(frequency or DEFAULT_FREQUENCY), 1) if option else 0
        trace.sampling = Sampling(event, "count", interval_ns)


def _add_code(trace: Trace, log: Log, frames: Frames, pid: int, shift_ns: int) -> None:
    rows = frames.jitted
    is_code = has_code(log, rows)
    rows, func = rows[is_code], trace.frames["func"][frames.jitted_frames[is_code]]
    trace.code.extend(
        func=func,
        pid=np.full(len(rows), pid, np.int64),
        tid=log.tids[log.records.buffer[rows]].astype(np.int64),
        size=log.records["size"][rows].astype(np.int64),
        loaded_at=log.records.ts[rows] + shift_ns,
    )


# ---------------------------------------------------------------- threads


@dataclass(frozen=True)
class _Loader:
    """Makes a thread's tables again at every call."""

    trace: Trace
    log: Log
    frames: Frames
    life: ThreadLifetime
    known: Known
    markers: Markers
    samples: Table | None
    span: tuple[int, int]
    shift_ns: int

    def thread(self, is_main: bool, process_name: str) -> Thread:
        life = self.life
        name = life.name or (process_name if is_main else f"thread {life.tid:#x}")
        if life.tid == UNKNOWN_TID:
            name = "samples of all threads"
        n_records = self._count("events") + (len(self.samples) if self.samples is not None else 0)
        start, end = life.start_ts + self.shift_ns, life.end_ts + self.shift_ns
        return Thread(_signed(life.tid), name, is_main, start, end, self, n_records)

    def __call__(self) -> ThreadData:
        return ThreadData(
            calls=self._calls(),
            samples=self.samples if self.samples is not None else Table(SAMPLES),
            allocations=self._allocations(),
            markers=self.markers.of(self.life),
        )

    def _count(self, what: str) -> int:
        return int(self.log.stats[what][self.life.buffers].sum()) if self.life.buffers else 0

    def _calls(self) -> Table:
        n = self._count("enter")
        return StreamedTable(CALLS, self._call_pieces, 2 * n, self._call_totals) if n else Table(CALLS)

    def _call_pieces(self) -> Iterator[Table]:
        counts = CallCounts()
        yield from call_pieces(*self._of_calls, self.shift_ns, counts)
        self._note(counts)

    def _call_totals(self) -> Array | None:
        log, _, methods, (_, end_ts) = self._of_calls
        summed = log.call_sums.closed(self.life.tid, end_ts) if self.life.is_only else None
        frames = methods.lasting(summed.methods) if summed is not None else None
        totals = summed.by_func(self.trace.frames["func"][frames]) if summed and frames is not None else None
        if summed is not None and totals is not None:
            counts = summed.counts
            self._note(CallCounts(counts["ignored"], counts["unwound"], counts["backwards"], counts["depth"]))
        return totals

    @property
    def _of_calls(self) -> tuple[Log, Array, Names, tuple[int, int]]:
        """Calls that are open at the end last until the thread's, or where that is not known, the log's."""
        life = self.life
        end = life.end_ts if life.unloaded_ts is not None else self.span[1]
        return self.log, self.log.buffers[life.buffers].ravel(), self.frames.methods, (life.start_ts, end)

    def _note(self, counts: CallCounts) -> None:
        where = f"{self.log.source.path} {self.life.tid} {self.life.number}"
        report = self.trace.report
        report.note("leave_without_enter", counts.ignored, where=where)
        report.note("unwound", counts.unwound, where=where)
        report.note("clock_backwards", counts.backwards, where=where)
        report.note("open_at_end", counts.open_at_end, where=where)
        _note_nameless(self.trace, self.log, self.frames)

    def _allocations(self) -> Table:
        if not self._count("alloc"):
            return Table(ALLOCATIONS)
        known = self.known
        made = Allocations(known.made[id(self.life)], known.died, known.step_ts, self.span, self.shift_ns)
        return StreamedTable(ALLOCATIONS, made.pieces, made.n_rows, made.totals)


def _signed(tid: int) -> int:
    return tid - (1 << 64) if tid >= 1 << 63 else tid
