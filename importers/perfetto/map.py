"""Map: the tables of trace_processor become a Trace."""

from __future__ import annotations

import re
from itertools import count

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.common.shown_text import encodable
from traceferry.files.source import Source
from traceferry.importers.perfetto._packets import whole_until
from traceferry.importers.perfetto._slices import extent
from traceferry.importers.perfetto.decode import Tables
from traceferry.importers.perfetto.heaps import (
    Span,
    add_measures,
    add_profiles_without_times,
    add_views,
    heap_profiles,
    snapshots,
    view_of,
)
from traceferry.importers.perfetto.layout import is_perfetto_trace
from traceferry.importers.perfetto.metadata import attributes_of, clock_of, metadata, producer
from traceferry.importers.perfetto.scheduling import cpus, own_stopped, read_scheduling, unknown_after
from traceferry.importers.perfetto.slices import (
    CALL_TRACKS,
    INSTANT,
    Calls,
    Kinds,
    arguments_by_set,
    flows_by_slice,
    read_slices,
    tracks_of_totals,
)
from traceferry.importers.perfetto.stacks import add_stacks, own_tiers
from traceferry.importers.perfetto.states import LOG, read_logs, read_states
from traceferry.importers.perfetto.v8 import beside_others, profiles_of, threads_profiled
from traceferry.model import (
    ALLOCATIONS,
    COUNTER_VALUES,
    SAMPLES,
    SCHEDULING,
    STATES,
    Array,
    Counter,
    Event,
    Input,
    Process,
    Table,
    Thread,
    ThreadData,
    TraceBuilder,
    distinct,
    rows_by_key,
)
from traceferry.native.distinct import distinct_with_places
from traceferry.timeline import off_cpu

# The number of what belongs to no thread, which no thread has; further places have smaller ones.
NOBODY = -1
TRACE_NAME, CPUS_NAME, GPUS_NAME = "Trace", "CPUs", "GPUs"
TOTALS = "totals"
UNITS = {"ns": "ns", "cycles": "cycles", "instructions": "count", "bytes": "bytes", "samples": "samples"}
# Sessions of our own traces that are views of sizes; samples that are of no thread.
OWN_VIEW, NO_SESSION = "total_", -(1 << 40)
# Those of our allocations, and what stands for their events. The leaf of a stack is the class of what was allocated, or
# the function that allocated.
OWN_ALLOCATIONS = {"allocations": -1, "native allocations": -2}
ALLOCATED, OF_FUNCTIONS = OWN_ALLOCATIONS.values()
# What our traces say of JIT tiers, which have no place in a trace.
OWN_TIERS = "tiers"
# And of threads that were stopped, whose state is that of what is unknown.
OWN_STOPPED = "stopped_threads"
MOST_DIGITS = 18
# The thread that says what V8's profiler has sampled of another one.
V8_PROFILER = "v8:ProfEvntProc"
# The event of a profile during which its thread has another one.
PROFILE_BESIDE = "samples of another profile"
# A recorder that knows threads but no process, since there is one; how its file begins tells the number.
ONE_PROGRAM, PROGRAM_NUMBER, MOST_HEADER = "art_method", compiled_later(rb"^pid=(\d{1,10})$", re.MULTILINE), 4096
MOST_NUMBER = (1 << 31) - 1
# Of what the engine says of the first error of a kind, in characters.
MOST_CONCERNED = 100
CUMULATIVE = "linux.perf"  # its weights are what the counter of the processor stood at


def to_trace(source: Source, tables: Tables, trace: TraceBuilder) -> None:
    """Adds what the tables hold."""
    _Mapping(source, tables, trace).add()


class _Mapping:
    def __init__(self, source: Source, tables: Tables, trace: TraceBuilder) -> None:
        self.source, self.tables, self.trace = source, tables, trace
        bounds = tables["bounds"]
        start, end = (bounds[name].numbers().tolist() or [0] for name in ("start_ts", "end_ts"))
        self.offset_ns = trace.join_clock(clock_of(tables))
        self.start = int(start[0]) + self.offset_ns
        self.end = max(int(end[0]) + self.offset_ns, self.start)
        self.is_ours = producer(tables) == "traceferry"
        self.slices, self.n_moved = read_slices(tables, self.offset_ns, self.start, self.end)
        self.arguments, self.flows = arguments_by_set(tables), flows_by_slice(tables)
        self.span = Span(self.offset_ns, self.start, self.end)
        self.processes: dict[int, Process] = {}
        self.members: dict[int, Thread] = {}
        self.main: dict[int, int] = {}
        self.profilers: dict[int, list[int]] = {}
        self.upid_of: dict[int, int] = {}
        # Threads by the numbers of process and thread that the file has.
        self.by_number: dict[tuple[int, int], int] = {}
        # Threads of which the trace says nothing but, perhaps, what they did.
        self.unsaid: list[tuple[Process, int]] = []
        # What belongs to no thread, by (process, number).
        self.places = {(TRACE_NAME, 0): NOBODY}
        self.outside: dict[str, Process] = {}
        self.is_one_program = ("trace_type", ONE_PROGRAM) in metadata(tables)
        self.program: Process | None = None

    def add(self) -> None:
        trace, tables = self.trace, self.tables
        trace.inputs.append(
            Input(encodable(self.source.name), "perfetto", f"trace_processor {tables.version}", producer(tables))
        )
        attributes = attributes_of(tables, self.is_ours)
        tiers = own_tiers(trace, attributes.pop(OWN_TIERS, "")) if self.is_ours else None
        self.stopped = own_stopped(trace, attributes.pop(OWN_STOPPED, "")) if self.is_ours else None
        for name, value in attributes.items():
            trace.attributes.setdefault(name, value)
        self.stacks = add_stacks(trace, tables, tiers)
        self.stack_of_slice = self._stack_of_slice()
        scripts = (tables["scripts"][name].texts() for name in ("name", "source"))
        for path, text in zip(*scripts, strict=True):
            trace.sources.intern(path=trace.strings.intern(encodable(path)), text=trace.texts.intern(encodable(text)))
        self._add_threads()
        self._add_slices()
        self._add_counters()
        self._add_heaps()
        self._note()

    def _stack_of_slice(self) -> dict[int, int]:
        answer = self.tables["callstacks"]
        callsite = answer["callsite_id"].numbers(-1)
        stack = self.stacks[np.where((callsite >= 0) & (callsite < len(self.stacks)), callsite, -1)]
        return dict(zip(answer["slice_id"].numbers().tolist(), stack.tolist(), strict=True))

    def _add_heaps(self) -> None:
        trace, tables = self.trace, self.tables
        for upid, found in snapshots(trace, tables, self.span).items():
            process = self._process(upid)
            process.heap_snapshots += found
            process.start_ts = min(process.start_ts, found[0].start_ts)
            process.end_ts = max(process.end_ts, *(snapshot.end_ts for snapshot in found))
        for upid in dict.fromkeys(tables["heap_profiles"]["upid"].numbers(-1).tolist()):
            process = self._process(upid)
            for heap in heap_profiles(tables, upid):
                at = self.span.of(heap.ts)
                if self.is_ours:
                    add_views(heap.measures, self.stacks, at, process)
                else:
                    add_measures(trace, heap.name, heap.measures, self.stacks, at, process)
        add_profiles_without_times(trace, tables, self.stacks, self.start)

    # ------------------------------------------------------------ processes and threads

    def _add_threads(self) -> None:
        answer, pids = self.tables["processes"], dict[int, int]()
        columns = (answer[name].numbers(-1).tolist() for name in ("upid", "pid", "start_ts", "end_ts"))
        for upid, pid, start, end, name in zip(*columns, answer["name"].texts(), strict=True):
            number, said = self._number(pid)
            pids[upid] = said
            shown = encodable(name) or f"process {said}"
            shown = shown if number == said or not name else f"{shown} ({said})"
            self.processes[upid] = Process(number, shown, *self._span(start, end))
        answer = self.tables["threads"]
        names = ("utid", "tid", "upid", "is_main_thread", "start_ts", "end_ts")
        columns = (answer[name].numbers(-1).tolist() for name in names)
        self.loaders = {utid: _Loader(self, utid) for utid in (*answer["utid"].numbers().tolist(), NOBODY)}
        for utid, tid, upid, is_main, start, end, name in zip(*columns, answer["name"].texts(), strict=True):
            process = self.processes.get(upid)
            # A main thread without a name has that of its process, as in Perfetto's viewer.
            of_process = process.name if process and is_main == 1 else ""
            own, said = self._number(tid)
            shown = encodable(name) or of_process or f"thread {said}"
            if process is None:
                process = self._process_without_name(utid, own, shown, self._span(start, end))
            number = _free_number(process, own)
            shown = shown if number == said or (not name and str(said) in shown) else f"{shown} ({said})"
            is_first = is_main == 1 or (process.pid == number and process is self.program)
            thread = Thread(number, shown, is_first, *self._span(start, end), self.loaders[utid])
            process.threads.append(thread)
            self.members[utid], self.upid_of[utid] = thread, upid
            self.by_number.setdefault((pids.get(upid, -1), said), utid)
            if name == V8_PROFILER:
                self.profilers.setdefault(upid, []).append(utid)
            if upid in self.processes and (is_main == 1 or upid not in self.main):
                self.main[upid] = utid
            if not name and start < 0 and end < 0:
                self.unsaid.append((process, utid))

    def _number(self, number: int) -> tuple[int, int]:
        """Returns (the number of a process or thread, as the model has them; what the trace says, if that is none)."""
        said = self.tables.numbers.get(number, max(number, 0))
        return said if 0 <= said <= MOST_NUMBER else number, said

    def _process_without_name(self, utid: int, tid: int, name: str, span: tuple[int, int]) -> Process:
        """Returns that of a thread without one: one of its own, but for the threads of a recorder of one program."""
        if not self.is_one_program:
            return self.processes.setdefault(-utid - 1, Process(tid, name, *span))
        if self.program is None:
            found = PROGRAM_NUMBER.search(bytes(self.source.data[:MOST_HEADER]))
            number = min(int(found[1]), MOST_NUMBER) if found else 0
            shown = encodable(self.source.name.split(".")[0]) or TRACE_NAME
            self.program = self.processes[-utid - 1] = Process(number, shown, self.start, self.end)
        return self.program

    def _span(self, start: int, end: int) -> tuple[int, int]:
        begin = self.start if start < 0 else min(max(start + self.offset_ns, self.start), self.end)
        return begin, self.end if end < 0 else min(max(end + self.offset_ns, begin), self.end)

    # ------------------------------------------------------------ what threads hold

    def _add_slices(self) -> None:
        slices, tracks = self.slices, self.tables["tracks"]
        calls, titles, utid_of = {}, {}, {}
        columns = (tracks[name].numbers(-1).tolist() for name in ("id", "utid", "upid", "cpu", "gpu"))
        texts = (tracks[name].texts() for name in ("name", "type"))
        numbers, place = distinct_with_places(slices.track)
        n_slices = dict(zip(numbers.tolist(), np.bincount(place, minlength=len(numbers)).tolist(), strict=True))
        facts = [fact for fact in zip(*columns, *texts, strict=True) if fact[0] in n_slices]
        totals = tracks_of_totals(slices, self.arguments)
        call_track: dict[int, tuple[int, int, str]] = {}
        for track, utid, *_, kind in facts:
            if kind in CALL_TRACKS:
                found = CALL_TRACKS[kind], -n_slices[track], kind
                call_track[utid] = min(call_track.get(utid, found), found)
        for track, utid, upid, cpu, gpu, name, kind in facts:
            calls[track] = utid in call_track and kind == call_track[utid][-1]
            kind = INSTANT if calls[track] else kind
            titles[track] = (name if name and kind != INSTANT else kind, kind)
            owner = self._owner(utid, upid)
            if track in totals:
                calls[track], titles[track] = False, (TOTALS, TOTALS)
                owner = self._owner(NOBODY, self.upid_of.get(utid, -1))
            if owner == NOBODY and (cpu >= 0 or gpu >= 0):
                owner = self._place(CPUS_NAME, cpu) if cpu >= 0 else self._place(GPUS_NAME, 0)
                # The thread's name says which processor it is.
                titles[track] = (name.removesuffix(f" Cpu {cpu}") or kind, kind)
            utid_of[track] = owner
        size = int(slices.track.max(initial=0)) + 1
        is_call_track, owner_of = np.zeros(size, bool), np.full(size, -1, np.int64)
        for number, is_call in calls.items():
            if 0 <= number < size:
                is_call_track[number], owner_of[number] = is_call and utid_of[number] >= 0, utid_of[number]
        is_call = is_call_track[slices.track] & (slices.end > slices.ts)
        marked = {one: titles.get(one, ("", "")) for one in distinct(slices.track[~is_call]).tolist()}
        self.calls = Calls(self.trace, slices, np.flatnonzero(is_call), self.arguments, self.flows, self.is_ours)
        self.kinds = Kinds(slices, self.arguments, marked, self.is_ours)
        for utid, rows in rows_by_key(owner_of[slices.track]).items():
            loader = self.loaders.get(utid, self.loaders[NOBODY])
            chosen = is_call[rows]
            loader.call_rows, loader.marker_rows = rows[chosen], rows[~chosen]
        self._add_samples()
        self._add_scheduling()
        left_out = self.scheduling.tracks
        for owner, states in read_states(self.trace, self.tables, self.span, self._owner, left_out).items():
            self.loaders.get(owner, self.loaders[NOBODY]).states = states
        for owner, logs in read_logs(self.tables, self.span, self._owner).items():
            self.loaders[owner].logs = logs
        self._add_processes()

    def _owner(self, utid: int, upid: int) -> int:
        """Returns the thread that has what belongs to a thread or a process."""
        return utid if utid in self.members else self.main.get(upid, NOBODY)

    def _place(self, process: str, number: int) -> int:
        """Returns what stands for a thread in a process that the recording does not have."""
        if (process, number) not in self.places:
            key = self.places[process, number] = NOBODY - len(self.places)
            self.loaders[key] = _Loader(self, key)
        return self.places[process, number]

    def _add_samples(self) -> None:
        answer, sessions = self.tables["samples"], self.tables["sessions"]
        utid, session = answer["utid"].numbers(-1), answer["session"].numbers(-1)
        upid = answer["upid"].numbers(-1)
        if not len(utid):
            return
        ids = sessions["id"].numbers().tolist()
        sources, units = (sessions[name].texts() for name in ("source", "timebase_unit"))
        callsite = answer["callsite"].numbers(-1)
        profile = profiles_of(self.tables, callsite, answer["is_of_v8"].numbers(0))
        utid = self._profiled(utid, profile)
        owner = np.where(utid >= 0, utid, [self.main.get(number, NOBODY) for number in upid.tolist()])
        owner = np.where(np.isin(owner, list(self.members)), owner, NOBODY)
        weight, cpu = np.nan_to_num(answer["weight"].reals(), nan=1.0), answer["cpu"].numbers(-1)
        for number, name in zip(ids, sources, strict=True):
            if name == CUMULATIVE:
                mine = np.flatnonzero(session == number)
                weight[mine] = _increments(weight[mine], cpu[mine])
        views = {
            number: name.removeprefix(OWN_VIEW).replace("_", " ")
            for number, name, unit in zip(ids, sources, units, strict=True)
            if self.is_ours and name.startswith(OWN_VIEW) and unit == "bytes"
        }
        allocations = {
            number: OWN_ALLOCATIONS[name] for number, name, unit in zip(ids, sources, units, strict=True)
            if self.is_ours and unit == "bytes" and name in OWN_ALLOCATIONS
        }  # fmt: skip
        events = {
            number: (name, unit)
            for number, name, unit in zip(ids, sources, units, strict=True)
            if number not in views and number not in allocations
        }
        if beside := beside_others(answer["ts"].numbers(), profile, utid):
            # Two sessions that the trace does not have: of these profiles, and of V8's others.
            others, of_beside = (max(ids, default=0) + nth for nth in (1, 2))
            session = np.where(np.isin(profile, list(beside)), of_beside, np.where(profile >= 0, others, session))
            events |= {others: ("samples", "samples"), of_beside: (PROFILE_BESIDE, "samples")}
            self.trace.report.note("profiles_beside", len(beside), where=self.source.name)
        rows = self._events(session, events)
        stack = self.stacks[np.where((callsite >= 0) & (callsite < len(self.stacks)), callsite, -1)]
        columns = {
            "ts": np.clip(answer["ts"].numbers() + self.offset_ns, self.start, self.end),
            "stack": stack,
            "weight": np.clip(weight, 0, 2.0**62).astype(np.int64),
            "cpu": cpus(cpu),
            "cpu_ns": np.clip(np.nan_to_num(answer["cpu_ns"].reals(), nan=-1), -1, 2.0**62).astype(np.int64),
        }
        for number, name in views.items():
            self._add_view(name, np.where(session == number, upid, NO_SESSION), columns)
        owner = np.where(np.isin(session, list(views)), NO_SESSION, owner)
        event = np.array([allocations.get(number, rows.get(number, 0)) for number in session.tolist()], np.int64)
        for thread, mine in rows_by_key(owner).items():
            if thread == NO_SESSION:
                continue
            for row, part in rows_by_key(event[mine]).items():
                found = {name: column[mine[part]] for name, column in columns.items()}
                if row in (ALLOCATED, OF_FUNCTIONS):
                    loader = self.loaders[thread]
                    loader.allocations = loader.allocations.merged(self._allocated(found, row == ALLOCATED))
                else:
                    self.loaders[thread].samples[row] = found

    def _add_view(self, name: str, process: Array, columns: dict[str, Array]) -> None:
        """Adds threads with sizes. process: of each sample, NO_SESSION where it is not of this view."""
        for number, mine in rows_by_key(process).items():
            if number != NO_SESSION:
                view = Table(SAMPLES, {key: column[mine] for key, column in columns.items() if "cpu" not in key})
                self._process(number).threads.append(view_of(name, "bytes", view, self._process(number)))

    def _allocated(self, samples: dict[str, Array], are_classed: bool) -> Table:
        """Returns ALLOCATIONS of samples that weigh them. are_classed: the leaf of each stack is the object's class."""
        trace = self.trace
        has_stack = samples["stack"] >= 0
        ts, stack, size = (samples[name][has_stack] for name in ("ts", "stack", "weight"))
        class_name = trace.funcs["name"][trace.frames["func"][trace.stacks["frame"][stack]]]
        if not are_classed:
            class_name = np.full(len(stack), -1, np.int32)
        return Table(ALLOCATIONS, {"ts": ts, "size": size, "class_name": class_name, "stack": stack})

    def _profiled(self, utid: Array, profile: Array) -> Array:
        """Returns the threads (int64) of samples: those of V8's profiler are of the thread that it samples. Where the
        trace does not tell, that is the main thread of a process with one profiler. profile: of each sample, -1 is
        none."""
        profiles = [number for number in distinct(profile).tolist() if number >= 0]
        known = threads_profiled(self.source, self.tables, profiles) if profiles else {}
        owners = {number: self.by_number[thread] for number, thread in known.items() if thread in self.by_number}
        for number in profiles:
            if number in owners:
                utid = self._moved(utid, profile == number, owners[number])
        is_left = ~np.isin(profile, list(owners))
        for upid, (profiler, *others) in self.profilers.items():
            main = self.main.get(upid, NOBODY)
            if not others and main in self.members and self.members[main].is_main:
                utid = self._moved(utid, is_left & (utid == profiler), main)
        return utid

    def _moved(self, utid: Array, is_moved: Array, owner: int) -> Array:
        """Returns the threads of samples, of which some are of another one."""
        n = int(np.count_nonzero(is_moved & (utid != owner)))
        self.trace.report.note("samples_of_profiler", n, where=f"{owner}", detail=self.members[owner].name)
        return np.where(is_moved, owner, utid)

    def _events(self, session: Array, facts: dict[int, tuple[str, str]]) -> dict[int, int]:
        """Returns the event of each session; clocks come first, then what has most samples, time off the processors
        last. facts: (source, unit) of the sessions."""
        counts = {number: int((session == number).sum()) for number in facts}
        rows: dict[int, int] = {}
        keys = [event.key for event in self.trace.events]
        events = {number: self._event(*facts[number]) for number in facts}
        places = ("clock", "other", off_cpu.EVENT.kind)
        main = self.trace.attributes.get("sampled_event") if self.is_ours else None

        def order(one: int) -> tuple[int, bool, int, int]:
            return places.index(events[one].kind), events[one].name != main, -counts[one], one

        for number in sorted(facts, key=order):
            event = events[number]
            if event.key not in keys:
                keys.append(event.key)
                self.trace.events.append(event)
            rows[number] = keys.index(event.key)
        return rows

    def _event(self, name: str, unit: str) -> Event:
        if self.is_ours and (name, unit) == (off_cpu.EVENT.name, off_cpu.EVENT.unit):
            return off_cpu.EVENT
        amount = Event(encodable(name), "samples")
        if self.is_ours and unit != "samples" and amount.sample_unit == unit:
            return amount
        said = self.trace.attributes if self.is_ours else {}
        interval = said.get("sampling_interval_ns", "") if name == said.get("sampled_event") else ""
        return Event(
            encodable(name) or "samples", UNITS.get(unit, "count"), kind="clock" if unit == "ns" else "other",
            interval_ns=int(interval) if interval.isdecimal() and len(interval) < MOST_DIGITS else 0,
        )  # fmt: skip

    def _add_scheduling(self) -> None:
        tids = {utid: thread.tid for utid, thread in self.members.items()}
        self.scheduling = read_scheduling(self.trace, self.tables, self.span, tids, self.stopped)
        for utid, rows in self.scheduling.rows.items():
            if utid in self.loaders:
                self.loaders[utid].scheduling = rows
        for utid, end in self.scheduling.ends.items():
            if utid in self.members:
                self.members[utid].end_ts = min(self.members[utid].end_ts, end)

    def _add_processes(self) -> None:
        """Adds the processes to the trace, with those of processors and of tracks that belong to nobody."""
        recorded = {thread.tid for thread in self.members.values()}
        free = count(max(recorded, default=0) + 1)
        for (name, place), key in sorted(self.places.items()):
            loader = self.loaders[key]
            if loader.n_records:
                # Who wakes others is known by its number.
                number = place if place not in recorded else next(free)
                process = self.outside.setdefault(name, Process(0, name, self.start, self.end))
                shown = f"CPU {place}" if name == CPUS_NAME else name
                is_first = not process.threads
                process.threads.append(Thread(number, shown, is_first, self.start, self.end, loader, loader.n_records))
        for utid, thread in self.members.items():
            thread.n_records = self.loaders[utid].n_records
            first, last = self.loaders[utid].span()
            thread.start_ts, thread.end_ts = min(thread.start_ts, first), max(thread.end_ts, last)
            end = self.scheduling.ends.get(utid, thread.end_ts)
            if thread.end_ts > end:
                self.loaders[utid].scheduling = unknown_after(self.loaders[utid].scheduling, end)
        for process in self.processes.values():
            process.start_ts = min([process.start_ts, *(thread.start_ts for thread in process.threads)])
            process.end_ts = max([process.end_ts, *(thread.end_ts for thread in process.threads)])
        for process, utid in self.unsaid:
            # The engine makes a main thread for each process.
            if not self.loaders[utid].n_records and len(process.threads) > 1:
                process.threads.remove(self.members[utid])
        for process in self.processes.values():
            if process.threads and not any(thread.is_main for thread in process.threads):
                process.threads[0].is_main = True
        kept = (process for upid, process in self.processes.items() if not self._is_idle(upid, process))
        self.trace.processes += [*kept, *self.outside.values()]

    def _is_idle(self, upid: int, process: Process) -> bool:
        """Returns whether a process is that of idle processors, which recorders name and which does nothing."""
        has_nothing = not any(thread.n_records for thread in process.threads)
        of_tables = (
            self.tables[name]["upid"].numbers(-1) for name in ("counter_tracks", "heap_graphs", "heap_profiles")
        )
        return process.pid == 0 and has_nothing and not any(np.any(column == upid) for column in of_tables)

    def _add_counters(self) -> None:
        answer, tracks = self.tables["counters"], self.tables["counter_tracks"]
        ts, value, of = answer["ts"].numbers(), answer["value"].reals(), answer["track_id"].numbers(-1)
        rows_of = rows_by_key(of)
        columns = (tracks[name].numbers(-1).tolist() for name in ("id", "upid", "utid", "cpu"))
        texts = (tracks[name].texts() for name in ("name", "unit", "description"))
        for track, upid, utid, cpu, name, unit, doc in zip(*columns, *texts, strict=True):
            rows = rows_of.get(track, np.zeros(0, np.int64))
            n_rows, rows = len(rows), rows[np.isfinite(value[rows])]
            rows = rows[np.argsort(ts[rows], kind="stable")]
            process = self.processes.get(upid) if upid >= 0 else self._process_of(utid)
            whose = f"{self.members[utid].name}: " if utid in self.members else f"CPU {cpu}: " if cpu >= 0 else ""
            if process is None:
                process = self._outside(CPUS_NAME if cpu >= 0 else TRACE_NAME)
            at, amount = np.clip(ts[rows] + self.offset_ns, self.start, self.end), value[rows]
            if self.is_ours and unit == "s":
                unit, amount = "ns", np.rint(amount * 1e9)
            values = Table(COUNTER_VALUES, {"ts": at, "value": amount})
            counter = Counter(encodable(whose + name), encodable(unit) or "count", encodable(doc), values)
            process.counters.append(counter)
            detail = f"{counter.name} ({n_rows - len(rows)} of {n_rows})"
            where = f"{self.source.name} {track}"
            self.trace.report.note("values_not_finite", n_rows - len(rows), where=where, detail=detail)

    def _process(self, upid: int) -> Process:
        """Returns a process; what belongs to none of the recorded ones belongs to one of its own."""
        return self.processes.get(upid) or self._outside(TRACE_NAME)

    def _outside(self, name: str) -> Process:
        if name not in self.outside:
            self.outside[name] = Process(0, name, self.start, self.end)
            self.trace.processes.append(self.outside[name])
        return self.outside[name]

    def _process_of(self, utid: int) -> Process | None:
        return next((p for p in self.processes.values() if any(t is self.members.get(utid) for t in p.threads)), None)

    def _note(self) -> None:
        report, where, tables = self.trace.report, self.source.name, self.tables
        if is_perfetto_trace(self.source.data[:MOST_HEADER]):
            whole = whole_until(self.source.data)
            is_cut = whole < len(self.source.data)
            report.note("truncated", is_cut, where=where, offset=whole, detail=f"{where}: the last packet")
        if tables.cut is not None:
            report.note("truncated", where=where, offset=tables.cut.at, detail=f"{where}: the last event")
        report.note("numbers_replaced", len(tables.numbers), where=where)
        report.note("slices_cut", self.n_moved, where=where)
        if tables.missing:
            report.note("engine_too_old", len(tables.missing), where=where, detail=", ".join(tables.missing))
        for why in tables.refused:
            report.note("engine_refused", where=f"{where} {why}", detail=why)
        for name, n in tables.left_out:
            report.note("tables_left_out", n, where=f"{where} {name}", detail=f"{name} ({n} rows)")
        stats, logs = tables["stats"], tables["first_logs"]
        concerned: dict[str, list[str]] = {}
        for name, value in zip(logs["name"].texts(), logs["value"].texts(), strict=True):
            concerned.setdefault(name, []).append(value)
        # The command that the report names prints the descriptions, which are sentences.
        for name, n in zip(stats["name"].texts(), stats["n"].numbers().tolist(), strict=True):
            first = " ".join(", ".join(concerned.get(name, ())).split())[:MOST_CONCERNED]
            detail = encodable(f"{name} ({first})" if first else name)
            report.note("engine_reported", n, where=f"{where} {name}", detail=detail)


class _Loader:
    """Makes the tables of a thread at every call."""

    def __init__(self, mapping: _Mapping, utid: int) -> None:
        self._mapping, self.utid = mapping, utid
        self.call_rows = self.marker_rows = np.zeros(0, np.int64)
        self.samples: dict[int, dict[str, Array]] = {}
        self.scheduling: dict[str, Array] = {}
        self.allocations = Table(ALLOCATIONS)
        self.states, self.logs = Table(STATES), Table(LOG.spec)

    @property
    def n_records(self) -> int:
        n_samples = sum(len(columns["ts"]) for columns in self.samples.values())
        n_others = len(self.scheduling.get("ts", ())) + sum(map(len, (self.allocations, self.states, self.logs)))
        return len(self.call_rows) + len(self.marker_rows) + n_samples + n_others

    def span(self) -> tuple[int, int]:
        """Returns the first and the last time of all that it has: those of the trace, swapped, where it has nothing."""
        mapping = self._mapping
        first, last = mapping.end, mapping.start
        for rows in (self.call_rows, self.marker_rows):
            first, last = extent(mapping.slices.ts, mapping.slices.end, rows, first, last)
        others = (table.columns for table in (self.allocations, self.states, self.logs))
        times = [columns["ts"] for columns in (*self.samples.values(), self.scheduling, *others) if "ts" in columns]
        for ts in (column for column in times if len(column)):
            first, last = min(first, int(ts.min())), max(last, int(ts.max()))
        return first, last

    def __call__(self, trace: TraceBuilder) -> ThreadData:
        mapping = self._mapping
        calls, arguments = mapping.calls.tables(self.call_rows)
        samples = {row: Table(SAMPLES, columns) for row, columns in sorted(self.samples.items())}
        data = ThreadData(
            calls=calls,
            arguments=arguments,
            samples=samples.pop(0, Table(SAMPLES)),
            other_samples=samples,
            scheduling=Table(SCHEDULING, self.scheduling) if self.scheduling else Table(SCHEDULING),
            allocations=Table(ALLOCATIONS, dict(self.allocations.columns)),
            states=Table(STATES, {column.name: self.states[column.name] for column in STATES.columns}),
            markers=mapping.kinds.tables(self.marker_rows, mapping.flows, mapping.stack_of_slice),
        )
        off = self.samples.get(off_cpu.off_cpu_event(trace))
        if off is not None and len(data.scheduling):
            data.scheduling = off_cpu.with_stacks(trace, data.scheduling, Table(SAMPLES, off))
        if len(self.logs):
            data.markers[LOG] = self.logs
        return data


def _free_number(process: Process, tid: int) -> int:
    """Returns the thread's number, or where another thread of the process has it, one that none has."""
    taken = {thread.tid for thread in process.threads}
    return tid if tid not in taken else max(taken) + 1


def _increments(values: Array, cpu: Array) -> Array:
    """Returns what each value has more than the one before it on its processor; the first one has nothing. A recorder
    that does not read the counter says 0 each time: then each weighs 1."""
    found = np.zeros(len(values))
    for rows in rows_by_key(cpu).values():
        found[rows[1:]] = np.maximum(np.diff(values[rows]), 0)
    return found if found.any() else np.ones(len(values))
