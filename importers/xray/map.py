"""Map: logs become a Trace, in the model's terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from traceferry.common.shown_text import encodable
from traceferry.files.source import Source
from traceferry.importers.xray.functions import Object, has_main, intern_frames, resolve
from traceferry.importers.xray.layout import Function
from traceferry.importers.xray.log import Aside, Event, Log, Piece, ThreadLog
from traceferry.importers.xray.log_names import program_name
from traceferry.importers.xray.magic import TYPE_BASIC
from traceferry.model import (
    ARGUMENTS,
    LEAVE,
    STATES,
    TAIL,
    Array,
    Clock,
    Input,
    MarkerField,
    MarkerType,
    Process,
    Table,
    Thread,
    ThreadData,
    TraceBuilder,
    distinct,
)
from traceferry.symbolication.demangle import Demangler, demangler_for
from traceferry.timeline.balance import Raw, RecordedCalls
from traceferry.timeline.call_memory import CallMemory
from traceferry.timeline.ticks import MAX_FREQUENCY, NS, TickRate, measured_frequency, offset_to_wall

FLAGS_OF_KIND = np.zeros(len(Function), np.uint8)
FLAGS_OF_KIND[Function.EXIT] = LEAVE
FLAGS_OF_KIND[Function.TAIL_EXIT] = LEAVE | TAIL

CUSTOM = MarkerType(
    "Custom event",
    "An event that the program recorded with __xray_customevent",
    (MarkerField("data", "Data", "text"), MarkerField("size", "Size", "bytes")),
    label="{data}",
)
TYPED = MarkerType(
    "Typed event",
    "An event that the program recorded with __xray_typedevent",
    (
        MarkerField("event_type", "Type", "integer"),
        MarkerField("data", "Data", "text"),
        MarkerField("size", "Size", "bytes"),
    ),
    label="{event_type}: {data}",
)

# An emulated time-stamp counter is the Unix time in ns: no counter of 1 GHz runs for 15 years.
EMULATED_TSC_FROM = 500_000_000 * NS
# Two files of one machine have the same counter; their wall times then differ by less than this.
SAME_MACHINE_NS = 50_000_000
MAX_TS = 1 << 62


def add_logs(
    files: Sequence[tuple[Source, Log, Sequence[Object]]], trace: TraceBuilder, frequency: int | None
) -> int | None:
    """Adds the logs, each with its binaries, to the trace. frequency: of the counter, if the user knows better than the
    headers. Returns that of the first log's counter; None where all logs emulate one."""
    sources, logs, objects_of_logs = zip(*files, strict=True)
    for log in logs:
        log.problems.note(trace.report, log.name)
    for source, log, of_log in zip(sources, logs, objects_of_logs, strict=True):
        demangle = demangler_for(source.answers, trace.report)
        _assign_frames(trace, log, of_log, demangle)
        _note_main_threads(trace, log, of_log, demangle)
    rates = _clock(trace, logs, frequency)
    for source, log, rate, of_log in zip(sources, logs, rates, objects_of_logs, strict=True):
        program = next((o.binary.name for o in of_log if o.number == 0), "")
        mode, version = log.header.mode, log.header.version
        trace.inputs.append(Input(encodable(Path(source.path).name), "xray", f"{mode} {version}", "LLVM XRay"))
        _add_processes(trace, log, rate, program or program_name(source.name))
    _describe(trace, logs)
    counters = (rate.frequency for log, rate in zip(logs, rates, strict=True) if _has_counter(log))
    return next(counters, None)


def _assign_frames(trace: TraceBuilder, log: Log, objects: Sequence[Object], demangle: Demangler) -> None:
    functions = resolve(log.function_ids, objects, demangle)
    demangle.note_kept(trace.report, log.name)
    log.assign(np.array(intern_frames(trace, functions), np.int32), FLAGS_OF_KIND)
    nameless = [f for f in functions if not f.name]
    unknown = sum(f.object is None for f in nameless)
    trace.report.note("no_symbols", unknown, where=log.name)
    trace.report.note("function_without_name", len(nameless) - unknown, where=log.name)


def _note_main_threads(trace: TraceBuilder, log: Log, objects: Sequence[Object], demangle: Demangler) -> None:
    """Notes processes of which basic mode has written other threads only. A main thread that calls nothing instrumented
    has no records either: then main is not in the program's map."""
    if log.header.type != TYPE_BASIC:
        return
    with_main = {thread.pid for thread in log.threads if thread.tid == thread.pid}
    without = {thread.pid for thread in log.threads if thread.pid} - with_main
    program = next((one for one in objects if one.number == 0), None)
    if not without or (program is not None and not has_main(program, demangle)):
        return
    trace.report.note("main_thread_missing", len(without), where=log.name, detail=", ".join(map(str, sorted(without))))


# ---------------------------------------------------------------- time


def _clock(trace: TraceBuilder, logs: Sequence[Log], known: int | None) -> list[TickRate]:
    """Puts the trace on the logs' clock, and says how each log's ticks get there. known: the counter's frequency.

    Emulated ticks are Unix time. Others are moved to CLOCK_MONOTONIC by the wall times in the file: files of one
    machine by the same amount, so that they stay in step to the tick. Without wall times they stay a counter.
    """
    rates: list[TickRate] = []
    anchors: list[TickRate] = []
    for log in logs:
        # Emulated ticks are ns, whatever the counter of the machine does.
        frequency = NS if _is_emulated(log) else _frequency(trace, log, known)
        if not log.threads:
            rates.append(TickRate(frequency))
        elif _is_emulated(log):
            rates.append(TickRate(frequency, trace.join_clock(Clock("realtime", 0))))
        elif log.wall_pairs and _is_plausible(log, anchored := _anchored(log, frequency, anchors)):
            anchors.append(anchored)
            rates.append(TickRate(frequency, anchored.offset_ns + trace.join_clock(Clock("monotonic"))))
        else:
            rates.append(TickRate(frequency, trace.join_clock(Clock("tsc"))))
    if trace.clock is None:
        trace.join_clock(Clock("tsc"))
    return rates


def _anchored(log: Log, frequency: int, anchors: Sequence[TickRate]) -> TickRate:
    """Returns how ticks get onto the wall clock: as those of another file of the same machine, if there is one."""
    offset = offset_to_wall(log.wall_pairs, frequency)
    same = (a for a in anchors if a.frequency == frequency and abs(a.offset_ns - offset) < SAME_MACHINE_NS)
    return next(same, TickRate(frequency, offset))


def _is_plausible(log: Log, rate: TickRate) -> bool:
    """Whether the rate may be right: damaged wall times would put the recording before the clock's zero, or beyond what
    int64 holds."""
    low = min(rate.tick_to_ns(thread.min_tick) for thread in log.threads)
    high = max(rate.tick_to_ns(thread.max_tick) for thread in log.threads)
    return low >= 0 and high < MAX_TS


def _is_emulated(log: Log) -> bool:
    ticks = [thread.min_tick for thread in log.threads]
    return bool(ticks) and log.header.cycle_frequency == NS and min(ticks) >= EMULATED_TSC_FROM


def _has_counter(log: Log) -> bool:
    """Whether the log's frequency is that of a counter. Without records, 1 GHz is as likely emulated."""
    return log.header.cycle_frequency != NS or (bool(log.threads) and not _is_emulated(log))


def _frequency(trace: TraceBuilder, log: Log, known: int | None) -> int:
    claimed = log.header.cycle_frequency if known is None else known
    last = max((thread.max_tick for thread in log.threads), default=0)
    if not 0 < claimed <= MAX_FREQUENCY or last * NS // claimed >= MAX_TS:
        trace.report.note("clock_frequency_unusable", where=log.name, detail=f"{claimed} Hz")
        return NS
    measured = measured_frequency(log.wall_pairs, claimed) if known is None else None
    if measured is None or last * NS // measured >= MAX_TS:
        return claimed
    trace.report.note("clock_calibrated", where=log.name, detail=f"{claimed} Hz in the header, {measured} Hz measured")
    return measured


# ---------------------------------------------------------------- processes and threads


def _add_processes(trace: TraceBuilder, log: Log, rate: TickRate, program: str) -> None:
    if any(thread.pid is None for thread in log.threads):
        trace.report.note("pid_unknown", where=log.name)
    stand_in = min((thread.tid for thread in log.threads), default=0)
    processes = {process.pid: process for process in trace.processes}
    # A process can have several logs, and a log several processes: each part ends with its own last record.
    last_tick: dict[int | None, int] = {}
    for thread in log.threads:
        last_tick[thread.pid] = max(last_tick.get(thread.pid, 0), thread.max_tick)
    for thread in log.threads:
        pid = stand_in if thread.pid is None else thread.pid
        start, end = rate.tick_to_ns(thread.min_tick), rate.tick_to_ns(thread.max_tick)
        end_ts = rate.tick_to_ns(last_tick[thread.pid])
        process = processes.get(pid)
        if process is None:
            process = processes[pid] = Process(pid, program, start, end)
            trace.processes.append(process)
        process.start_ts, process.end_ts = min(process.start_ts, start), max(process.end_ts, end_ts)
        is_main = thread.tid == pid and not any(t.is_main for t in process.threads)
        where = f"{log.name}:{pid}:{thread.tid}"
        process.threads.append(
            Thread(
                thread.tid,
                process.name if is_main else f"thread {thread.tid}",
                is_main,
                start,
                end,
                ThreadLoader(thread, rate, end_ts, where),
                thread.n_rows,
            )
        )


@dataclass(frozen=True)
class ThreadLoader:
    """Makes a thread's tables again at every call."""

    log: ThreadLog
    rate: TickRate
    end_ts: int
    where: str

    def __call__(self, trace: TraceBuilder) -> ThreadData:
        asides: list[Aside] = []
        before_fork = self.log.before_fork
        recorded = RecordedCalls(
            lambda: map(self._raw, self.log.pieces()),
            self.log.n_rows,
            len(trace.frames),
            self.end_ts,
            None if before_fork is None else lambda: map(self._raw, before_fork()),
        )
        memory = trace.kept(CallMemory, CallMemory)
        calls, rows = recorded.balanced(self._first(asides), trace.report, self.where, memory)
        arguments, cpu_ticks, cpu, events, n_stray, n_guessed = zip(*asides, strict=True)
        trace.report.note("stray_argument", sum(n_stray), where=self.where)
        trace.report.note("event_time_guessed", sum(n_guessed), where=self.where)
        start_ts = self.rate.tick_to_ns(self.log.min_tick)
        cpu_ts = self.rate.to_ns_within(np.concatenate(cpu_ticks), start_ts, self.end_ts)
        return ThreadData(
            calls=calls,
            arguments=_arguments(rows, np.concatenate(arguments)),
            states=_cpu_states(trace, cpu_ts, np.concatenate(cpu)),
            markers=_markers(list(chain(*events)), self.rate, start_ts, self.end_ts),
        )

    def _first(self, asides: list[Aside]) -> Iterator[Raw]:
        """Yields the first pass, and keeps what is beside the functions."""
        for piece in self.log.pieces():
            asides.append(piece.aside)
            yield self._raw(piece)

    def _raw(self, piece: Piece) -> Raw:
        """An id has one frame, by which a leave finds its enter."""
        return Raw(self.rate.to_ns(piece.ticks), piece.value, piece.value, piece.kind, piece.argument_row)


def _arguments(rows: Array, values: Array) -> Table:
    """Returns ARGUMENTS. Rows repeat where a call has several arguments; the position counts within the call."""
    if len(rows) == 0:
        return Table(ARGUMENTS)
    nth = np.arange(len(rows))
    first = np.concatenate(([True], rows[1:] != rows[:-1]))
    position = nth - np.maximum.accumulate(np.where(first, nth, 0))
    return Table(ARGUMENTS, {"call": rows, "position": position, "value": values})


def _cpu_states(trace: TraceBuilder, ts: Array, cpu: Array) -> Table:
    """Returns states of the CPU on which the thread ran. Time stamps that fall are raised, as those of calls."""
    changes = np.flatnonzero(np.concatenate(([True], cpu[1:] != cpu[:-1]))) if len(cpu) else np.zeros(0, np.int64)
    ts, cpu = np.maximum.accumulate(ts)[changes], cpu[changes]
    track = trace.strings.intern("CPU")
    names = {int(n): trace.strings.intern(f"CPU {n}") for n in distinct(cpu)}
    return Table(
        STATES,
        {
            "ts": ts,
            "track": np.full(len(ts), track, np.int32),
            "value": np.array([names[n] for n in cpu.tolist()], np.int32),
        },
    )


def _markers(events: list[Event], rate: TickRate, start_ts: int, end_ts: int) -> dict[MarkerType, Table]:
    markers: dict[MarkerType, Table] = {}
    for marker_type in (CUSTOM, TYPED):
        is_typed = marker_type is TYPED
        chosen = sorted((e for e in events if (e.event_type is not None) == is_typed), key=lambda e: e.ticks)
        if not chosen:
            continue
        ticks = np.array([e.ticks for e in chosen], np.int64)
        columns = {
            "ts": rate.to_ns_within(ticks, start_ts, end_ts),
            "data": np.array([payload_text(e.payload) for e in chosen], object),
            "size": np.array([e.size for e in chosen], np.int64),
        }
        if is_typed:
            columns["event_type"] = np.array([e.event_type for e in chosen], np.int64)
        markers[marker_type] = Table(marker_type.spec, columns)
    return markers


def payload_text(payload: bytes) -> str:
    """Returns the payload as text where it is printable UTF-8, else as hex."""
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError:
        return payload.hex()
    printable = all(c.isprintable() or c in "\t\n\r" for c in text)
    return text if printable else payload.hex()


def _describe(trace: TraceBuilder, logs: Sequence[Log]) -> None:
    first = logs[0].header
    trace.attributes["recorder"] = f"LLVM XRay, {first.mode} mode, version {first.version}"
    trace.attributes["cycle_frequency_hz"] = str(first.cycle_frequency)
    trace.attributes["tsc_is_constant"] = str(first.constant_tsc).lower()
    trace.attributes["tsc_is_nonstop"] = str(first.nonstop_tsc).lower()
