"""Map: a Recording becomes processes, threads with samples, scheduling and markers, in the model's terms."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from traceferry.common.shown_text import encodable
from traceferry.files.source import Source, written_at
from traceferry.importers.perf._records import SampleType
from traceferry.importers.perf.accesses import cgroup_of, page_sizes, with_levels
from traceferry.importers.perf.chains import with_deferred
from traceferry.importers.perf.clocks import join_clock
from traceferry.importers.perf.copied_text import with_copied_text
from traceferry.importers.perf.counters import add_counts
from traceferry.importers.perf.dumps import NO_ROWS
from traceferry.importers.perf.inheritance import not_followed
from traceferry.importers.perf.layout import BRANCH_CALL_STACK
from traceferry.importers.perf.leaves import n_without_caller
from traceferry.importers.perf.map_files import MapFiles, map_files_apart, note_unused
from traceferry.importers.perf.markers import event_markers
from traceferry.importers.perf.natives import Natives
from traceferry.importers.perf.pairs import Intervals, intervals
from traceferry.importers.perf.parts import add_earlier_maps, is_part
from traceferry.importers.perf.programs import OUTSIDE, Life, Program, Programs, rows_of_lives
from traceferry.importers.perf.recording import Features, Recording
from traceferry.importers.perf.regions import BEGINNING, NEVER
from traceferry.importers.perf.relisted import note_relisted
from traceferry.importers.perf.scheduling import NO_STEPS, Switching
from traceferry.importers.perf.spaces import Memory
from traceferry.importers.perf.stacks import stacks_of
from traceferry.importers.perf.weights import Counted, count_events
from traceferry.model import (
    BRANCHES,
    RUNNING,
    SAMPLES,
    SCHEDULING,
    STATES,
    UNKNOWN,
    Array,
    Input,
    Process,
    Table,
    Thread,
    ThreadData,
    TraceBuilder,
    distinct,
    rows_by_key,
)
from traceferry.reading import ImportContext
from traceferry.timeline import off_cpu

if TYPE_CHECKING:
    from traceferry.importers.perf.branches import Branches
    from traceferry.importers.perf.thread_states import ThreadSwitches

IDLE_NAME = "swapper"
OUTSIDE_NAME = "outside the pid namespace"
NAMES_TRACK = "Thread name"
# What a thread without a name is called.
THREAD_NAME = "thread {}"
# Names of one thread that the report lists.
SHOWN_NAMES = 8
SHOWN_CPUS = 8
# What simpleperf says of itself that stands elsewhere in the trace.
NOT_KEPT = ("simpleperf_version", "event_type_info")


def to_trace(recordings: Sequence[tuple[Source, Recording]], trace: TraceBuilder, context: ImportContext) -> None:
    add_earlier_maps([recording for _, recording in recordings])
    known = _KnownThreads(trace)
    context, given = map_files_apart(context)
    counted = count_events([(source.name, recording) for source, recording in recordings], trace)
    # Recordings without times are put where the others begin.
    in_turn = sorted(zip(recordings, counted, strict=True), key=lambda of_one: not of_one[0][1].is_timed)
    for (source, recording), events in in_turn:
        known.begin_recording()
        _add_recording(source, recording, events, trace, context, given, known)
    for source, recording in recordings:
        if recording.counts is not None:
            # They are from the start on, which has no time.
            add_counts(trace, recording, recording.counts, trace.start_ts, source.name)
    note_unused(given, trace.report)


def _add_recording(
    source: Source,
    recording: Recording,
    events: Sequence[Counted],
    trace: TraceBuilder,
    context: ImportContext,
    given: Sequence[Source],
    known: _KnownThreads,
) -> None:
    """given: the map files that the user gives by themselves."""
    report, where = trace.report, source.name
    recording.maps, copied = with_copied_text(recording.maps, recording.tasks)
    for mapped in copied:
        report.note("text_copied", where=f"{where} {mapped.path} {mapped.pid}", detail=mapped.path)
    pairs = intervals(recording)
    for problem in (*recording.problems, *recording.not_read, *pairs.problems):
        shown = f"{where} {problem.detail}"
        report.note(problem.kind, problem.count, offset=problem.offset, where=shown, detail=problem.detail)
    offset_ns = join_clock(trace, recording, context.options.clock_offset_ns)
    _place_timeless(recording, trace.start_ts - offset_ns)
    recorded_at = source.answers.ask("written", report, lambda: written_at(source), unpacked=float)
    natives = Natives(trace, context, recording, source, recorded_at)
    programs = Programs(recording)
    map_files = MapFiles(source, recording, context, given, report, recorded_at)
    memory = Memory(recording, trace, natives, programs, offset_ns, map_files)
    samples = recording.samples
    if np.any(samples.user_at >= 0):
        # What unwinds takes longer to import than a small recording to convert.
        from traceferry.importers.perf.unwinding import unwound

        samples = unwound(trace, recording, memory, natives, context.options.keep_cut_stacks_apart, where)
    if np.any(samples.branch_n > 0):
        from traceferry.importers.perf.lbr import with_call_branches

        keep_apart = context.options.keep_cut_stacks_apart
        samples = with_call_branches(samples, recording, memory, keep_apart, report, where)
    if len(recording.deferred.n) or any("defer_callchain" in event.attr.flags for event in recording.events):
        samples = with_deferred(samples, recording.deferred, report, where)
    stack = stacks_of(samples, memory, natives, recording.maps, trace, offset_ns, where, is_part(recording.features))
    note_relisted(memory, samples, trace)
    if _call_graph(recording) == "fp" and not len(recording.deferred.n):
        main = next((counted.event_index for counted in events if counted.row == 0), -1)
        count = partial(n_without_caller, samples, main, stack, trace, natives.libraries)
        report.note("callers_missing", source.answers.ask("callers missing", report, count, unpacked=int), where=where)
    # Its fields lie where the callchains were read: no part of the file comes into memory again.
    switching = Switching(recording)
    # All of it was read; the threads come back to parts.
    source.release(0, len(source.data))
    if np.any(samples.data_src != 0):
        stack = with_levels(stack, recording, trace)
    branches: Branches | None = None
    if np.any(samples.branch_n > 0):
        from traceferry.importers.perf.branches import Branches

        branches = Branches(recording, memory, natives, trace, offset_ns)
    made = ThreadLoader(recording, events, NO_ROWS, NO_ROWS, stack, branches, offset_ns, pairs)
    _add_processes(trace, recording, memory, made, switching, known, where, guesses=context.options.guess_wait_stacks)
    map_files.note_others(programs.pids, memory.nameless)
    of_code = [process for process in trace.processes if any(thread.sample_unit for thread in process.threads)]
    report.note("code_of_other_process", sum(process.pid not in programs.pids for process in of_code), where=where)
    n_outside = int((recording.samples.pid == OUTSIDE).sum()) if programs.is_nested else 0
    report.note("outside_namespace", n_outside, where=where)
    report.note("throttled", recording.n_throttled, where=where)
    natives.note_problems()
    if any(library.symbols is not None for library in natives.libraries):
        from traceferry.importers.perf.libraries import MappedLibraries

        trace.library_readers.append(MappedLibraries(natives, memory, len(trace.libs)))
    described = attributes(recording)
    name = encodable(Path(source.path).name)
    trace.inputs.append(Input(name, "perf.data", recording.mode, described["recorder"]))
    trace.attributes |= described | recording.features.bpf_metadata | page_sizes(recording)


def _place_timeless(recording: Recording, start: int) -> None:
    """Samples without a time, which come first, stand where the others begin. start: of what is in the trace already,
    on the recording's clock."""
    samples = recording.samples
    if len(samples) and samples.ts[0] < 0:
        known = samples.ts[samples.ts >= 0]
        samples.ts = np.maximum(samples.ts, known[0] if len(known) else max(start, 0))


def _recorder(features: Features) -> str:
    version = features.simpleperf.get("simpleperf_version")
    return f"perf {features.version}".strip() if version is None else f"simpleperf {version}".strip()


def attributes(recording: Recording) -> dict[str, str]:
    """Returns the recorder's description of the machine and of itself."""
    features = recording.features
    found = {
        "recorder": _recorder(features),
        "command": shlex.join(features.cmdline),
        "hostname": features.hostname,
        "os_release": features.os_release,
        "arch": features.arch,
        "cpu": features.cpudesc,
        "cpus": str(features.n_cpus_online or ""),
        "memory_bytes": str(features.total_mem or ""),
        "events": ", ".join(event.name for event in recording.events),
        "call_graph": _call_graph(recording),
        **{f"simpleperf {key}": value for key, value in features.simpleperf.items() if key not in NOT_KEPT},
    }
    return {key: value for key, value in found.items() if value}


def _call_graph(recording: Recording) -> str:
    """Returns how stacks were recorded, as the option of perf record calls it: dwarf, lbr, fp, or none."""
    recorded = [event for event in recording.events if not event.is_dummy]
    if any(event.sample_type & SampleType.STACK_USER for event in recorded):
        return "dwarf"
    if any(event.attr.branch_sample_type & BRANCH_CALL_STACK for event in recorded):
        return "lbr"
    if any(event.sample_type & SampleType.CALLCHAIN for event in recorded):
        return "fp"
    return "none" if recorded else ""


# ---------------------------------------------------------------- processes and threads


def _add_processes(
    trace: TraceBuilder,
    recording: Recording,
    memory: Memory,
    of_all: ThreadLoader,
    switching: Switching,
    known: _KnownThreads,
    where: str,
    guesses: bool,
) -> None:
    """Adds a process for each program, with its threads. of_all: a loader with what all threads share; where: the
    recording, for the report; guesses: whether waits without stacks have those of the samples before."""
    offset_ns, programs = of_all.offset_ns, memory.programs
    samples, switches = recording.samples, recording.switches
    first_ts, last_ts = _bounds(trace, recording, offset_ns)
    rows = _by_thread(programs.of_samples, samples.tid)
    switch_rows = _by_thread(programs.numbers(switches.pid, switches.ts), switches.tid)
    tids = [set(program.lives) for program in programs.all]
    for number, tid in (*rows, *switch_rows):
        tids[number].add(tid)
    lacking = not_followed(recording)
    off_cpu_row = _off_cpu_event(trace, switching, of_all.stack, guesses)
    spans = _spans(programs, tids)
    n_missing = n_guessed = 0
    processes = _known_processes(trace, recording, programs, known, offset_ns)
    seen = {number for number, _ in (*rows, *switch_rows)}
    begun: int | None = None
    for program, following in zip(programs.all, [*programs.all[1:], None], strict=False):
        if program.number not in seen and following is not None and _is_part_of(program, following):
            begun = program.start if following.exec_name is not None else None
            continue
        threads = []
        for life, part, switched in _lives(program, sorted(tids[program.number]), rows, switch_rows, recording):
            is_recorded = len(part) + len(switched) > 0
            if not is_recorded and (not life.names or (lacking.is_all and life.tid in lacking.tids)):
                continue
            is_first = begun is not None and life.start == program.start
            start = max(begun if begun is not None and is_first else life.start, first_ts) + offset_ns
            end = max(min(life.end, last_ts) + offset_ns, start)
            of_start = program.start if is_first else life.start
            begin, until = spans[life.tid, of_start]
            if is_first and begun is not None:
                # What the number did since the fork is of this thread, too.
                begin = min(begin, spans.get((life.tid, begun), (begin, until))[0])
            steps = switching.steps(life.tid, begin, until) if life.tid != OUTSIDE else NO_STEPS
            loader = replace(of_all, rows=part, switch_rows=switched)
            start, end = loader.reach(start, end, steps.ts)
            if len(steps.ts):
                from traceferry.importers.perf.thread_states import ThreadSwitches

                is_new = life.start != BEGINNING and (
                    program.exec_name is None or is_first or life.start > program.start
                )
                thread_switches = ThreadSwitches(
                    switching, steps, switching.wakes(life.tid, begin, until), start - offset_ns, end - offset_ns,
                    part, is_new, of_all.stack, guesses,
                )  # fmt: skip
                n_missing += thread_switches.n_missing
                n_guessed += thread_switches.n_guessed
                loader = replace(loader, switches=thread_switches, off_cpu_row=off_cpu_row)
            loader = _with_names(trace, replace(loader, end_ts=end), life, start, end, where)
            name = life.name or _default_thread_name(program, life.tid, programs)
            thread = Thread(life.tid, name, life.tid == program.pid, start, end, loader, loader.n_records)
            thread.former_names = loader.former_names
            threads.append(thread)
        begun = None
        if not threads:
            continue
        process = processes.get(program.number)
        name = program.name or _default_name(program, programs)
        start, end = min(thread.start_ts for thread in threads), max(thread.end_ts for thread in threads)
        if process is None or any(known.is_recorded(process, thread) for thread in threads):
            process = Process(program.pid, name, start, end)
            trace.processes.append(process)
        process.name = encodable(name)
        process.cgroup = process.cgroup or cgroup_of(recording, programs.of_samples, program.number)
        process.namespaces = process.namespaces or recording.namespaces.get(program.pid, "")
        if program.number in seen:
            process.files = tuple(sorted({*process.files, *memory.files_of(program)}))
        process.start_ts, process.end_ts = min(process.start_ts, start), max(process.end_ts, end)
        for thread in threads:
            known.add(process, thread)
    trace.report.note("switch_missing" if switching.tells_returns else "wait_ends_late", n_missing, where=where)
    events = ", ".join(event.name for event in lacking.events)
    trace.report.note("threads_not_recorded", len(lacking.tids), where=where, detail="" if lacking.is_all else events)
    trace.report.note("stacks_guessed", n_guessed, where=where)
    trace.report.note("switches_left_out", switching.n_left_out, where=where)
    is_filtered = bool(switching.filter and switching.tids)
    trace.report.note("switches_filtered", is_filtered, where=where, detail=f"--filter '{switching.filter}'")
    some = ", ".join(map(str, sorted(recording.cpus)[:SHOWN_CPUS])) + ", ..." * (len(recording.cpus) > SHOWN_CPUS)
    detail = f"processors {some} of {recording.features.n_cpus_online}"
    trace.report.note("processors_left_out", switching.is_partial and bool(switching.tids), where=where, detail=detail)


def _off_cpu_event(trace: TraceBuilder, switching: Switching, stack: Array, guesses: bool) -> int:
    """Adds the event that counts time off the processors, where switches tell of it with stacks; returns its row. Of
    switches without stacks the scheduling says all."""
    if not switching.tids or not (switching.tells_stacks(stack) or (guesses and bool(np.any(stack >= 0)))):
        return -1
    row = next((row for row, event in enumerate(trace.events) if event.key == off_cpu.EVENT.key), len(trace.events))
    if row == len(trace.events):
        trace.events.append(off_cpu.EVENT)
    return row


def _spans(programs: Programs, tids: Sequence[set[int]]) -> dict[tuple[int, int], tuple[int, int]]:
    """Returns by the number and the start of a thread's life the time within which the number means this life."""
    starts: dict[int, set[int]] = {}
    for program in programs.all:
        for tid in tids[program.number]:
            starts.setdefault(tid, set()).update(life.start for life in program.lives_of(tid))
    spans: dict[tuple[int, int], tuple[int, int]] = {}
    for tid, found in starts.items():
        ordered = sorted(found)
        edges = [-NEVER, *ordered[1:], NEVER]
        spans |= {(tid, start): edge for start, edge in zip(ordered, pairwise(edges), strict=True)}
    return spans


def _bounds(trace: TraceBuilder, recording: Recording, offset_ns: int) -> tuple[int, int]:
    """Returns the first and the last time that a recording tells, on its own clock."""
    times = [
        int(column.ts[nth]) for column in (recording.samples, recording.switches) if len(column) for nth in (0, -1)
    ]
    times += [task.ts for task in recording.tasks if task.ts > 0]
    times = [ts for ts in times if ts > 0] or [trace.start_ts - offset_ns]
    return min(times), max(times)


def _is_part_of(program: Program, following: Program) -> bool:
    """Whether a program in which nothing was seen is no more than the beginning of the next one: a fork's child that
    executes another program; or what the recorder found running when the kernel had told of its fork already."""
    if following.pid != program.pid or program.exec_name is not None:
        return False
    main = program.lives_of(program.pid)[-1]
    return following.exec_name is not None or (program.start == BEGINNING and main.end == program.until)


def _lives(
    program: Program,
    tids: Sequence[int],
    rows: dict[tuple[int, int], Array],
    switch_rows: dict[tuple[int, int], Array],
    recording: Recording,
) -> Iterator[tuple[Life, Array, Array]]:
    """Yields the program's threads, with the rows of their samples and switches."""
    for tid in tids:
        key = program.number, tid
        lives = program.lives_of(tid)
        mine, switched = rows.get(key, NO_ROWS), switch_rows.get(key, NO_ROWS)
        if len(lives) == 1:
            yield lives[0], mine, switched
            continue
        parts = zip(
            rows_of_lives(lives, recording.samples.ts[mine]), rows_of_lives(lives, recording.switches.ts[switched]),
            strict=True,
        )  # fmt: skip
        yield from ((life, mine[part], switched[of_switches]) for (life, part), (_, of_switches) in parts)


def _with_names(
    trace: TraceBuilder, loader: ThreadLoader, life: Life, start: int, end: int, where: str
) -> ThreadLoader:
    """Tells the names of a thread that was sampled under another one than its last as its states."""
    names = [life.names[0], *(now for before, now in pairwise(life.names) if before[1] != now[1])] if life.names else []
    if all(name == life.name for _, name in names):
        return loader
    ts = loader.recording.samples.ts[loader.rows]
    of_sample = np.searchsorted([since for since, _ in names[1:]], ts, "right")
    if all(names[nth][1] == life.name for nth in distinct(of_sample).tolist()):
        return loader
    shown = ", ".join(name for _, name in names[:SHOWN_NAMES]) + ", ..." * (len(names) > SHOWN_NAMES)
    detail = f"thread {life.tid}: {shown}"
    trace.report.note("thread_renamed", len(names) - 1, where=f"{where} {life.tid} {life.start}", detail=detail)
    since = np.minimum(np.maximum([at + loader.offset_ns for at, _ in names], start), end)
    # Of several from before the start the last one counts.
    last = np.append(since[1:] > since[:-1], True)
    since[np.argmax(last)] = start
    intern = trace.strings.intern
    values = np.array([intern(name) for _, name in names], np.int32)[last]
    columns = {"ts": since[last], "track": np.full(len(values), intern(NAMES_TRACK), np.int32), "value": values}
    return replace(loader, states=Table(STATES, columns), former_names=tuple(encodable(name) for _, name in names[:-1]))


class _KnownThreads:
    """The threads of the trace, by process and number: those of which only dumps have told, and the others."""

    def __init__(self, trace: TraceBuilder) -> None:
        self._of_dumps: dict[tuple[int, int], list[Thread]] = {}
        self._recorded: dict[tuple[int, int], list[Thread]] = {}
        # By earlier recordings than the one that is added.
        self._earlier: dict[tuple[int, int], list[Thread]] = {}
        # When each recording tells of a thread, by its identity: a dump may tell of more.
        self._spans: dict[int, list[tuple[int, int]]] = {}
        for process, thread in trace.threads:
            if not thread.sample_unit:
                self._of_dumps.setdefault((id(process), thread.tid), []).append(thread)

    def begin_recording(self) -> None:
        self._earlier = {key: list(threads) for key, threads in self._recorded.items()}

    def has(self, process: Process) -> bool:
        """Whether a recording has told of it, not only dumps."""
        return any((id(process), thread.tid) in self._recorded for thread in process.threads)

    def is_recorded(self, process: Process, thread: Thread) -> bool:
        """Returns whether it was recorded by another recording of the same time: each has its own process then."""
        recorded = self._recorded.get((id(process), thread.tid), ())
        spans = (span for one in recorded for span in self._spans[id(one)])
        return any(start <= thread.end_ts and thread.start_ts <= end for start, end in spans)

    def add(self, process: Process, thread: Thread) -> None:
        """Adds a thread. One of which a dump tells too, or an earlier recording that ended before, as one of those that
        perf record --switch-output writes, is one thread with the tables of both."""
        span = thread.start_ts, thread.end_ts
        goes_on = self._earlier.get((id(process), thread.tid))
        if goes_on and _may_be_one(goes_on[-1], thread):
            self._spans[id(goes_on[-1])].append(span)
            _continue(goes_on[-1], thread)
            return
        of_dumps = self._of_dumps.get((id(process), thread.tid))
        known = of_dumps.pop(0) if of_dumps else thread
        self._spans[id(known)] = [span]
        self._recorded.setdefault((id(process), thread.tid), []).append(known)
        if known is thread:
            process.threads.append(thread)
            return
        of_dump, of_samples = known.make, thread.make
        known.name, known.is_main = thread.name, thread.is_main
        known.start_ts, known.end_ts = min(known.start_ts, thread.start_ts), max(known.end_ts, thread.end_ts)
        known.n_records += thread.n_records
        known.make = lambda trace: of_samples(trace).with_markers_of(of_dump(trace))


def _may_be_one(known: Thread, thread: Thread) -> bool:
    return known.name == thread.name or _is_nameless(known) or _is_nameless(thread)


def _is_nameless(thread: Thread) -> bool:
    return thread.name == THREAD_NAME.format(thread.tid)


def _continue(known: Thread, thread: Thread) -> None:
    """Adds to a thread what another recording has of it."""
    before, after = known.make, thread.make
    known.name = thread.name if _is_nameless(known) else known.name
    known.start_ts, known.end_ts = min(known.start_ts, thread.start_ts), max(known.end_ts, thread.end_ts)
    known.n_records += thread.n_records
    known.make = lambda trace: before(trace).merged(after(trace))


def _default_name(program: Program, programs: Programs) -> str:
    if program.pid == OUTSIDE:
        return OUTSIDE_NAME if programs.is_nested else IDLE_NAME
    return f"process {program.pid}"


def _default_thread_name(program: Program, tid: int, programs: Programs) -> str:
    return _default_name(program, programs) if program.pid == tid == OUTSIDE else THREAD_NAME.format(tid)


def _known_processes(
    trace: TraceBuilder, recording: Recording, programs: Programs, known: _KnownThreads, offset_ns: int
) -> dict[int, Process]:
    """Returns the processes of the trace that dumps or earlier recordings have told of, by the number of the
    program."""
    found: dict[int, Process] = {}
    for process in trace.processes:
        start, end = process.start_ts - offset_ns, process.end_ts - offset_ns
        program = programs.at(process.pid, start)
        # Another recording's process goes on in this one, unless the number was used again.
        if program is not None and (not known.has(process) or (program.start <= end and start < program.until)):
            found[program.number] = process
    return found


def _by_thread(program: Array, tid: Array) -> dict[tuple[int, int], Array]:
    """Returns the rows of each number of a program and a thread, in their order."""
    # -1 is a thread, too.
    key = np.array(program, np.int64)
    key <<= 32
    key += tid
    key += 1 << 31
    return {(number >> 32, (number & 0xFFFFFFFF) - (1 << 31)): rows for number, rows in rows_by_key(key).items()}


@dataclass(frozen=True)
class ThreadLoader:
    """Makes a thread's tables again at every call. events: what samples count; rows, switch_rows: of the recording's
    samples and switches; end_ts: of the thread; states: the names it had, former_names: those before the last."""

    recording: Recording
    events: Sequence[Counted]
    rows: Array
    switch_rows: Array
    stack: Array
    branches: Branches | None
    offset_ns: int
    pairs: Intervals
    end_ts: int = 0
    states: Table = field(default_factory=lambda: Table(STATES))
    switches: ThreadSwitches | None = None
    off_cpu_row: int = -1
    former_names: tuple[str, ...] = ()

    @property
    def n_records(self) -> int:
        return len(self.rows) + len(self.switch_rows)

    def reach(self, start: int, end: int, switched: Array) -> tuple[int, int]:
        """Returns the time from start to end, widened to the thread's own records. switched: when it left its
        processors and got them."""
        edges = [int(switched[nth]) for nth in (0, -1) if len(switched)]
        for of, rows in ((self.recording.samples, self.rows), (self.recording.switches, self.switch_rows)):
            edges += [int(of.ts[rows[nth]]) for nth in (0, -1) if len(rows)]
        return min([start, *(ts + self.offset_ns for ts in edges)]), max([end, *(ts + self.offset_ns for ts in edges)])

    def __call__(self, trace: TraceBuilder) -> ThreadData:
        scheduling = self.switches.table(trace, self.offset_ns) if self.switches is not None else Table(SCHEDULING)
        is_exact = self.switches is not None and self.switches.switching.tells_returns
        ran = scheduling if is_exact else scheduling.take(slice(0))
        event = self.recording.samples.event[self.rows]
        samples = {
            counted.row: self._samples(counted, self.rows[np.flatnonzero(event == counted.event_index)], ran)
            for counted in self.events
        }
        if self.switches is not None and self.off_cpu_row >= 0:
            samples[self.off_cpu_row] = off_cpu.off_cpu_samples(trace, scheduling, self.switches.end + self.offset_ns)
        main = next((counted.event_index for counted in self.events if counted.row == 0), -1)
        return ThreadData(
            samples=samples.pop(0, Table(SAMPLES)),
            other_samples={row: table for row, table in sorted(samples.items()) if len(table)},
            branches=self.branches.table(self.rows) if self.branches is not None else Table(BRANCHES),
            states=self.states,
            scheduling=scheduling,
            markers=event_markers(self.recording, main, self.rows, self.stack, self.offset_ns, self.pairs, self.end_ts),
        )

    def _samples(self, counted: Counted, mine: Array, scheduling: Table) -> Table:
        """Returns the samples of these rows, which an event counts."""
        samples = self.recording.samples
        ts = samples.ts[mine] + self.offset_ns
        return Table(
            SAMPLES,
            {
                "ts": ts,
                "stack": self.stack[mine],
                "weight": counted.weights(self.recording, mine),
                "cpu": samples.cpu[mine],
                "cpu_ns": _cpu_time(ts, scheduling) if counted.row == 0 else np.full(len(ts), -1, np.int64),
            },
        )


def _cpu_time(ts: Array, scheduling: Table) -> Array:
    """Returns how long the thread ran since its sample before; -1 for the first, and where nothing tells."""
    if len(scheduling) == 0 or len(ts) == 0:
        return np.full(len(ts), -1, np.int64)
    ran, unknown = (_time_in(ts, scheduling, state) for state in (RUNNING, UNKNOWN))
    return np.concatenate(([-1], np.where(np.diff(unknown) == 0, np.maximum(np.diff(ran), 0), -1)))


def _time_in(ts: Array, scheduling: Table, state: int) -> Array:
    """Returns how long the thread had been in a state at these times, of its first row's time on."""
    change, is_in = scheduling["ts"], scheduling["state"] == state
    total = np.concatenate(([0], np.cumsum(np.diff(change) * is_in[:-1])))
    nth = np.maximum(np.searchsorted(change, ts, "right") - 1, 0)
    found: Array = total[nth] + np.maximum(ts - change[nth], 0) * is_in[nth]
    return found
