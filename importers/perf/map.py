"""Map: a Recording becomes processes, threads with samples, scheduling and markers, in the model's terms."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traceferry.importers.perf.chains import with_deferred
from traceferry.importers.perf.clocks import join_clock
from traceferry.importers.perf.dumps import NO_ROWS, code_by_dump, dumps_by_process
from traceferry.importers.perf.layout import AttrType
from traceferry.importers.perf.markers import event_markers
from traceferry.importers.perf.natives import Natives
from traceferry.importers.perf.recording import Comm, Event, Exit, Fork, Recording, Samples
from traceferry.importers.perf.spaces import Memory
from traceferry.importers.perf.stacks import stacks_of
from traceferry.io.companions import places_beside
from traceferry.io.named_files import read_named
from traceferry.io.source import Source
from traceferry.model import (
    PREEMPTED,
    RUNNING,
    SAMPLES,
    SCHEDULING,
    WAITING,
    Array,
    Input,
    Process,
    Sampling,
    Table,
    Thread,
    ThreadData,
    Trace,
    distinct,
)
from traceferry.registry import Options
from traceferry.shown_text import encodable

# PERF_TYPE_SOFTWARE's cpu-clock and task-clock count ns.
CLOCK_EVENTS = (0, 1)
DUMMY_EVENT = 9
# A line of a perf-PID.map takes some 100 bytes.
MAX_MAP_FILE = 256 << 20


def to_trace(recordings: Sequence[tuple[Source, Recording]], trace: Trace, options: Options) -> None:
    known = _KnownThreads(trace)
    for source, recording in recordings:
        _Mapper(source, recording, trace, options, known).run()


class _Mapper:
    def __init__(
        self, source: Source, recording: Recording, trace: Trace, options: Options, known: _KnownThreads
    ) -> None:
        self._known = known
        self._source = source
        self._recording = recording
        self._trace = trace
        self._options = options

    def run(self) -> None:
        trace, recording = self._trace, self._recording
        for problem in recording.problems:
            trace.report.note(
                problem.kind, problem.count, offset=problem.offset, where=f"{self._source.name} {problem.detail}",
                detail=problem.detail,
            )  # fmt: skip
        _place_timeless(recording)
        features = recording.features
        main = sampling_event(recording)
        offset_ns = join_clock(trace, recording, self._options.clock_offset_ns)
        if main is not None:
            trace.sampling = sampling_of(main)
        natives = Natives(trace, self._options, recording)
        names = _Names(recording)
        memory = Memory(recording, trace, natives, names.pids, offset_ns, self._map_file)
        samples = self._unwound(memory, natives)
        samples = with_deferred(samples, recording.deferred, trace.report, self._source.name)
        stack = stacks_of(samples, memory, natives, recording.maps, trace, offset_ns, self._source.name)
        _add_processes(trace, recording, names, main, stack, offset_ns, self._known)
        self._note_losses(memory)
        natives.note_problems()
        self._keep_libraries(natives, memory)
        producer = f"perf {features.version}".strip()
        trace.inputs.append(Input(encodable(Path(self._source.path).name), "perf.data", recording.mode, producer))
        trace.attributes |= attributes(recording)

    def _unwound(self, memory: Memory, natives: Natives) -> Samples:
        recording = self._recording
        if not np.any(recording.samples.user_at >= 0):
            return recording.samples
        # What unwinds takes longer to import than a small recording to convert.
        from traceferry.importers.perf.unwinding import unwound

        keep_apart = self._options.keep_cut_stacks_apart
        return unwound(self._trace, recording, memory, natives, keep_apart, self._source.name)

    def _keep_libraries(self, natives: Natives, memory: Memory) -> None:
        if any(library.symbols is not None for library in natives.libraries):
            from traceferry.importers.perf.libraries import MappedLibraries

            self._trace.library_readers.append(MappedLibraries(natives, memory))

    def _map_file(self, pid: int) -> str:
        """perf-PID.map: beside the recording, with the symbols, or where it was written if this is that machine."""
        name = f"perf-{pid}.map"
        places = list(places_beside([self._source], self._options.folders, name))
        if self._recording.features.hostname and self._recording.features.hostname == platform.node():
            places.append((f"/tmp/{name}", ""))
        for path, beside in places:
            text = read_named(path, self._trace.report, at_most=MAX_MAP_FILE, beside=beside)
            if text is not None:
                return text
        return ""

    def _note_losses(self, memory: Memory) -> None:
        recording, report = self._recording, self._trace.report
        where = self._source.name
        of_code = [p for p in self._trace.processes if any(thread.sample_unit for thread in p.threads)]
        n_strangers = sum(process.pid not in memory.pids for process in of_code)
        report.note("code_of_other_process", n_strangers, where=where)
        report.note("throttled", recording.n_throttled, where=where)


def _place_timeless(recording: Recording) -> None:
    """Samples without a time, which come first, stand where the others begin."""
    samples = recording.samples
    if len(samples) and samples.ts[0] < 0:
        known = samples.ts[samples.ts >= 0]
        samples.ts = np.maximum(samples.ts, known[0] if len(known) else 0)


def sampling_event(recording: Recording) -> Event | None:
    """The first event that has samples, unless a later one of them is a clock."""
    counts = np.bincount(recording.samples.event, minlength=len(recording.events)).tolist()
    sampled = [event for event, count in zip(recording.events, counts, strict=False) if count and not _is_dummy(event)]
    return next((event for event in sampled if _is_clock(event)), sampled[0] if sampled else None)


def _is_clock(event: Event) -> bool:
    return event.attr.type == AttrType.SOFTWARE and event.attr.config in CLOCK_EVENTS


def _is_dummy(event: Event) -> bool:
    return event.attr.type == AttrType.SOFTWARE and event.attr.config == DUMMY_EVENT


def sampling_of(event: Event) -> Sampling:
    unit = "ns" if _is_clock(event) else "cycles" if "cycles" in event.name else "count"
    if event.is_freq:
        interval = 1_000_000_000 // max(event.attr.sample_period, 1)
    else:
        interval = event.attr.sample_period if _is_clock(event) else 0
    return Sampling(event.name, unit, interval)


def attributes(recording: Recording) -> dict[str, str]:
    """The recorder's description of the machine and of itself."""
    features = recording.features
    found = {
        "recorder": f"perf {features.version}".strip(),
        "command": " ".join(features.cmdline),
        "hostname": features.hostname,
        "os_release": features.os_release,
        "arch": features.arch,
        "cpu": features.cpudesc,
        "cpus": str(features.n_cpus_online or ""),
        "memory_bytes": str(features.total_mem or ""),
        "events": ", ".join(event.name for event in recording.events),
    }
    return {key: value for key, value in found.items() if value}


# ---------------------------------------------------------------- processes and threads


class _Names:
    """Who there was: names of threads, and when they began and ended."""

    def __init__(self, recording: Recording) -> None:
        self.of_thread: dict[tuple[int, int], str] = {}
        self.of_program: dict[int, str] = {}  # by pid, where one was started
        self.started: dict[tuple[int, int], int] = {}
        self.ended: dict[tuple[int, int], int] = {}
        pids = {int(pid) for pid in distinct(recording.samples.pid)} if len(recording.samples) else set()
        pids |= {int(pid) for pid in distinct(recording.switches.pid)} if len(recording.switches) else set()
        for task in recording.tasks:
            thread = (task.pid, task.tid)
            pids.add(task.pid)
            if isinstance(task, Comm):
                self.of_thread[thread] = task.name
                if task.is_exec:
                    self.of_program[task.pid] = task.name
            elif isinstance(task, Fork):
                self.started[thread] = task.ts
                # Of a number that is used again; it has not ended then.
                self.ended.pop(thread, None)
                parent = self.of_thread.get((task.ppid, task.ptid))
                if parent is not None:
                    self.of_thread[thread] = parent
            elif isinstance(task, Exit):
                self.ended[thread] = task.ts
        self.pids = sorted(pids)


def _add_processes(
    trace: Trace,
    recording: Recording,
    names: _Names,
    main: Event | None,
    stack: Array,
    offset_ns: int,
    known: _KnownThreads,
) -> None:
    samples, switches = recording.samples, recording.switches
    times = [int(column.ts[nth]) for column in (samples, switches) if len(column) for nth in (0, -1)]
    times += [task.ts for task in recording.tasks if task.ts > 0]
    times = [ts for ts in times if ts > 0] or [trace.start_ts - offset_ns]
    first_ts, last_ts = min(times), max(times)
    rows = _by_thread(samples.pid, samples.tid)
    switch_rows = _by_thread(switches.pid, switches.tid)
    threads = sorted({*rows, *switch_rows, *names.of_thread})
    _renumber_processes(trace, recording, known)
    processes = {process.pid: process for process in trace.processes}
    for pid, tid in threads:
        process = processes.get(pid)
        name = names.of_program.get(pid) or names.of_thread.get((pid, pid)) or _default_name(pid)
        start = max(names.started.get((pid, tid), first_ts), first_ts) + offset_ns
        end = max(min(names.ended.get((pid, tid), last_ts), last_ts) + offset_ns, start)
        mine, switched = rows.get((pid, tid), NO_ROWS), switch_rows.get((pid, tid), NO_ROWS)
        loader = ThreadLoader(trace, recording, main, mine, switched, stack, offset_ns)
        start, end = loader.reach(start, end)
        if process is None or known.is_recorded(process, tid, start, end):
            process = Process(pid, name, start, end)
            trace.processes.append(process)
        processes[pid] = process
        process.name = encodable(name)
        process.start_ts, process.end_ts = min(process.start_ts, start), max(process.end_ts, end)
        thread_name = names.of_thread.get((pid, tid)) or f"thread {tid}"
        known.add(process, Thread(tid, thread_name, tid == pid, start, end, loader, loader.n_records))


class _KnownThreads:
    """The threads of the trace, by process and number: those of which only dumps have told, and the others."""

    def __init__(self, trace: Trace) -> None:
        self._of_dumps: dict[tuple[int, int], list[Thread]] = {}
        self._recorded: dict[tuple[int, int], list[Thread]] = {}
        for process, thread in trace.threads:
            if not thread.sample_unit:
                self._of_dumps.setdefault((id(process), thread.tid), []).append(thread)

    def renumber(self, process: Process, thread: Thread, tid: int) -> None:
        of_dumps = self._of_dumps.get((id(process), thread.tid), [])
        if any(one is thread for one in of_dumps):
            of_dumps[:] = [one for one in of_dumps if one is not thread]
            self._of_dumps.setdefault((id(process), tid), []).append(thread)
        thread.tid = tid

    def is_recorded(self, process: Process, tid: int, start: int, end: int) -> bool:
        """By another recording of the same time: each has its own process then."""
        recorded = self._recorded.get((id(process), tid), ())
        return any(thread.start_ts <= end and start <= thread.end_ts for thread in recorded)

    def add(self, process: Process, thread: Thread) -> None:
        """A thread of which a dump tells too is one thread with the tables of both."""
        of_dumps = self._of_dumps.get((id(process), thread.tid))
        known = of_dumps.pop(0) if of_dumps else thread
        self._recorded.setdefault((id(process), thread.tid), []).append(known)
        if known is thread:
            process.threads.append(thread)
            return
        of_dump, of_samples = known.load, thread.load
        known.name, known.is_main = thread.name, thread.is_main
        known.start_ts, known.end_ts = min(known.start_ts, thread.start_ts), max(known.end_ts, thread.end_ts)
        known.n_records += thread.n_records
        known.load = lambda: of_samples().with_markers_of(of_dump())


def _default_name(pid: int) -> str:
    return "kernel" if pid == 0 else f"process {pid}"


def _renumber_processes(trace: Trace, recording: Recording, known: _KnownThreads) -> None:
    """In a container a dump calls its process by another number: it is the one that mapped the dump."""
    mapped = dumps_by_process(recording)
    if not mapped:
        return
    code_of, pid_of_code = code_by_dump(trace), trace.code["pid"]
    first: dict[int, int] = {}
    for nth, process in enumerate(trace.processes):
        first.setdefault(process.pid, nth)
    found: list[tuple[int, Process]] = []
    for pid, names in mapped.items():
        pids = {one for name in names for one in pid_of_code[code_of.get(name, NO_ROWS)].tolist()}
        places = [first[one] for one in pids if one in first]
        found += [(pid, trace.processes[min(places)])] if places else []
    for pid, process in found:
        for thread in process.threads:
            if thread.is_main:
                known.renumber(process, thread, pid)
        process.pid = pid


def _by_thread(pid: Array, tid: Array) -> dict[tuple[int, int], Array]:
    """The rows of each thread, in their order."""
    if len(pid) == 0:
        return {}
    key = np.ascontiguousarray(pid).astype(np.int64) << 32 | np.ascontiguousarray(tid).astype(np.uint32)
    threads = distinct(key)
    number = np.searchsorted(threads, key).astype(np.uint16 if len(threads) < 1 << 16 else np.int32)
    order = np.argsort(number, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(number))[:-1])
    names = zip((threads >> 32).tolist(), (threads & 0xFFFFFFFF).astype(np.uint32).view(np.int32).tolist(), strict=True)
    return dict(zip(names, parts, strict=True))


@dataclass(frozen=True)
class ThreadLoader:
    """Makes a thread's tables again at every call. rows, switch_rows: of the recording's samples and switches."""

    trace: Trace
    recording: Recording
    main: Event | None
    rows: Array
    switch_rows: Array
    stack: Array
    offset_ns: int

    @property
    def n_records(self) -> int:
        return len(self.rows) + len(self.switch_rows)

    def reach(self, start: int, end: int) -> tuple[int, int]:
        """The time from start to end, widened to the thread's own records."""
        for ts in (self.recording.samples.ts[self.rows], self.recording.switches.ts[self.switch_rows]):
            if len(ts):
                start, end = min(start, int(ts.min()) + self.offset_ns), max(end, int(ts.max()) + self.offset_ns)
        return start, end

    def __call__(self) -> ThreadData:
        scheduling = self._scheduling()
        return ThreadData(
            samples=self._samples(scheduling),
            scheduling=scheduling,
            markers=event_markers(self.recording, self.main, self.rows, self.stack, self.offset_ns),
        )

    def _samples(self, scheduling: Table) -> Table:
        samples = self.recording.samples
        mine = self.rows[samples.event[self.rows] == self.main.index] if self.main is not None else self.rows[:0]
        ts = samples.ts[mine] + self.offset_ns
        return Table(
            SAMPLES,
            {
                "ts": ts,
                "stack": self.stack[mine],
                "weight": np.maximum(samples.period[mine], 1),
                "cpu": samples.cpu[mine],
                "cpu_ns": _cpu_time(ts, scheduling),
            },
        )

    def _scheduling(self) -> Table:
        switches = self.recording.switches
        out, preempted = switches.out[self.switch_rows], switches.preempt[self.switch_rows]
        state = np.where(out, np.where(preempted, PREEMPTED, WAITING), RUNNING)
        return Table(
            SCHEDULING,
            {
                "ts": switches.ts[self.switch_rows] + self.offset_ns,
                "state": state,
                "cpu": switches.cpu[self.switch_rows],
            },
        )


def _cpu_time(ts: Array, scheduling: Table) -> Array:
    """How long the thread ran since its sample before; -1 for the first, and where nothing tells."""
    if len(scheduling) == 0 or len(ts) == 0:
        return np.full(len(ts), -1, np.int64)
    change, running = scheduling["ts"], scheduling["state"] == RUNNING
    ran = np.concatenate(([0], np.cumsum(np.diff(change) * running[:-1])))
    nth = np.searchsorted(change, ts, "right") - 1
    # Before its first switch, the thread did what that switch ended.
    inside = np.maximum(nth, 0)
    before = np.where(running[0], 0, ts - change[0])
    total = np.where(nth >= 0, ran[inside] + (ts - change[inside]) * running[inside], before)
    return np.concatenate(([-1], np.maximum(np.diff(total), 0)))
