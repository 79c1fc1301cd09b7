"""Map: logs become a Trace, in the model's terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from traceferry import model
from traceferry.common.shown_text import encodable
from traceferry.importers.mono.allocations import Allocations
from traceferry.importers.mono.counters import add_coverage, counters
from traceferry.importers.mono.decode import Log
from traceferry.importers.mono.frames import Frames
from traceferry.importers.mono.identity import follow
from traceferry.importers.mono.layout import Event, Metadata
from traceferry.importers.mono.markers import ASKED, Markers
from traceferry.importers.mono.samples import describe_sampling, read_samples
from traceferry.importers.mono.shots import Shots, find_shots
from traceferry.importers.mono.threads import UNKNOWN_TID, ThreadLifetime, ThreadLifetimes
from traceferry.importers.mono.walks import call_pieces

MS = 1_000_000
# The header's wall time is cut to a second: logs of one machine may seem this much apart.
SAME_CLOCK_NS = 2_000_000_000
MAIN = "Main"


def to_trace(logs: Sequence[Log], trace: model.TraceBuilder) -> None:
    """Adds the logs, each of a process of its own."""
    for log in logs:
        for kind in dict.fromkeys(problem.kind for problem in log.problems):
            mine = [problem for problem in log.problems if problem.kind == kind]
            first = min(problem.offset for problem in mine)
            trace.report.note(kind, len(mine), offset=first, where=log.source.path, detail=mine[0].detail)
        _describe(trace, log)
        describe_sampling(trace, log)
        process = _Process(trace, log)
        trace.processes.append(process.mapped())
        process.note_nameless(trace)
        n_unknown = 0 if log.stats["alloc"].any() else process.markers.n_without_class()
        trace.report.note("classes_unknown", n_unknown, where=log.source.path)


class _Process:
    """The facts of all threads of a log together. span: its first and last time on the event clock; shift_ns: what that
    is moved by, onto the trace's."""

    def __init__(self, trace: model.TraceBuilder, log: Log) -> None:
        self.trace, self.log = trace, log
        lifetimes = ThreadLifetimes(log)
        start_ts = min((life.start_ts for life in lifetimes), default=0)
        self.span = start_ts, max((life.end_ts for life in lifetimes), default=start_ts)
        self.shift_ns = _join_clock(trace, log, start_ts)
        self.frames = Frames(trace, log)
        add_coverage(trace, log)
        self.samples = read_samples(trace, log, self.frames, lifetimes, self.shift_ns)
        self.shots = find_shots(log, self.span[1])
        self.reader = Shots(trace, log, self.frames)
        self.threads = list(lifetimes)
        asked = log.records.in_time(log.records.of(*ASKED))
        self.known = follow(trace, log, self.frames, self.threads, self.shots, self.reader, asked)
        self.markers = Markers(trace, log, self.frames, self.known, self.threads, self.span[1], self.shift_ns)

    def mapped(self) -> model.Process:
        trace, log, shift_ns = self.trace, self.log, self.shift_ns
        name = _program(log) or log.source.name.removesuffix(".mlpd")
        process = model.Process(_pid(trace, log), name, self.span[0] + shift_ns, self.span[1] + shift_ns)
        known = [life for life in self.threads if life.tid != UNKNOWN_TID]
        main = next((life for life in known if MAIN in life.names), known[0] if known else None)
        process.threads += [
            self._thread(life, name if life is main else f"thread {life.tid:#x}", life is main) for life in self.threads
        ]
        process.counters += counters(trace, log, self.span, shift_ns)
        for shot, found in zip(self.shots, self.known.shots, strict=True):
            load = partial(self.reader.graph, shot, found, self.known.pairs)
            process.heap_snapshots.append(model.HeapSnapshot(shot.start_ts + shift_ns, shot.end_ts + shift_ns, load))
        rows = self.frames.code
        trace.code.extend(
            func=trace.frames["func"][self.frames.code_frames],
            pid=np.full(len(rows), process.pid, np.int64),
            tid=log.tids[log.records.buffer[rows]].astype(np.int64),
            size=log.records["size"][rows].astype(np.int64),
            loaded_at=log.records.ts[rows] + shift_ns,
        )
        return process

    def note_nameless(self, trace: model.TraceBuilder) -> None:
        """So far: threads that are gone through later may have more of them."""
        advice = "the log does not name these methods; its beginning may be missing"
        n_unnamed, where = self.frames.of(trace).methods.n_unnamed, self.log.source.path
        trace.report.note("function_without_name", n_unnamed, where=where, advice=advice)

    # ------------------------------------------------------------ threads

    def _thread(self, life: ThreadLifetime, name: str, is_main: bool) -> model.Thread:
        """name: for one that the log does not name."""
        if life.tid == UNKNOWN_TID:
            name = "samples of all threads"
        elif life.names and life.names[-1]:
            name = life.names[-1]
        n_records = self._count(life, "events") + len(self.samples.get(life, ()))
        tid = int(np.uint64(life.tid).astype(np.int64))
        start_ts, end_ts = life.start_ts + self.shift_ns, life.end_ts + self.shift_ns
        return model.Thread(tid, name, is_main, start_ts, end_ts, partial(self._load, life), n_records)

    def _load(self, life: ThreadLifetime, trace: model.TraceBuilder) -> model.ThreadData:
        data, known = model.ThreadData(), self.known
        if n_enters := self._count(life, "enter"):
            # Calls that are open at the end last until the thread's, or where that is not known, the log's.
            end_ts = life.end_ts if life.is_unloaded else self.span[1]
            pieces = partial(self._call_pieces, trace, life, end_ts)
            totals = partial(self._call_totals, trace, life, end_ts)
            data.calls = model.StreamedTable(model.CALLS, pieces, 2 * n_enters, totals)
        if life in self.samples:
            data.samples = self.samples[life]
        if self._count(life, "alloc"):
            made = Allocations(
                known.made[life], known.pairs.in_trace(trace), known.died, known.step_ts, self.span, self.shift_ns
            )
            data.allocations = model.StreamedTable(model.ALLOCATIONS, made.pieces, made.n_rows, made.totals)
        data.markers = self.markers.in_trace(trace).of(life)
        return data

    def _count(self, life: ThreadLifetime, what: str) -> int:
        return int(self.log.stats[what][life.buffers].sum()) if life.buffers else 0

    def _call_pieces(self, trace: model.TraceBuilder, life: ThreadLifetime, end_ts: int) -> Iterator[model.Table]:
        losses, buffers = dict[str, int](), self.log.buffers[life.buffers]
        span = life.start_ts, end_ts
        yield from call_pieces(self.log, buffers, self.frames.of(trace).methods, span, self.shift_ns, losses)
        self._note(trace, life, losses)

    def _call_totals(self, trace: model.TraceBuilder, life: ThreadLifetime, end_ts: int) -> model.Array | None:
        summed = self.log.call_sums.closed(life.tid, end_ts) if life.is_only else None
        frames = self.frames.of(trace).methods.lasting(summed.methods) if summed else None
        totals = summed.by_func(trace.frames["func"][frames]) if summed and frames is not None else None
        if summed and totals is not None:
            self._note(trace, life, summed.losses)
        return totals

    def _note(self, trace: model.TraceBuilder, life: ThreadLifetime, losses: dict[str, int]) -> None:
        for kind, n in losses.items():
            trace.report.note(kind, n, where=f"{self.log.source.path} {life.tid} {life.number}")
        self.note_nameless(trace)


# ---------------------------------------------------------------- what the header and single records say


def _describe(trace: model.TraceBuilder, log: Log) -> None:
    header = log.header
    version = f"{header.major}.{header.minor}, data version {header.data_version}"
    trace.inputs.append(model.Input(encodable(log.source.name), "mono", version, "Mono log profiler"))
    words = {
        "recorder": f"Mono log profiler, data version {header.data_version}",
        "profiler_arguments": header.arguments,
        "architecture": header.architecture,
        "system": header.system,
        "timer_overhead_ns": str(header.timer_overhead_ns),
        "pointer_size": str(header.pointer_size),
        "aot_id": "".join(log.texts(log.records.of(Event.AOT_ID)[-1:], "text")),
    }
    trace.attributes.update({key: word for key, word in words.items() if word})


def _join_clock(trace: model.TraceBuilder, log: Log, start_ts: int) -> int:
    """Puts the log on the trace's clock; returns what its times are to be moved by, in ns."""
    header, zero = log.header, None
    if header.start_unix_ms:
        zero = header.start_unix_ms * MS - (start_ts if header.start_clock_ns is None else header.start_clock_ns)
    return trace.join_clock(model.Clock("monotonic", zero), SAME_CLOCK_NS)


def _pid(trace: model.TraceBuilder, log: Log) -> int:
    """Returns the process id: each log is a process of its own."""
    pid, taken = log.header.pid or 1, {process.pid for process in trace.processes}
    if not log.header.pid:
        trace.report.note("pid_unknown", where=log.source.path, advice="1 is used instead")
    while pid in taken:
        pid += 1
    return pid


def _program(log: Log) -> str:
    """Returns the executable's name, which the first domain that is named has."""
    rows = log.records.in_time(log.records.metadata(Metadata.DOMAIN, Event.NAME))
    return "".join(log.texts(rows[:1]))
