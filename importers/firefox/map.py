"""Map: profiles become a Trace. Each thread is gone through once for what all share, and again when it is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from traceferry import model
from traceferry.common.shown_text import encodable
from traceferry.importers.firefox import allocations, markers, ours, samples
from traceferry.importers.firefox._stacks import counts_of
from traceferry.importers.firefox.attributes import WRITER, attributes_of, is_ours, producer_of
from traceferry.importers.firefox.categories import Categories
from traceferry.importers.firefox.columns import BadRows, text_of
from traceferry.importers.firefox.counters import TOTALS, read_counters, without_lead
from traceferry.importers.firefox.decode import SAMPLES, TABLES_OF_STACKS, Profile
from traceferry.importers.firefox.document import Part
from traceferry.importers.firefox.known_rows import FuncNames, RowMemo
from traceferry.importers.firefox.layout import UNUSED_OF_SAMPLES, UNUSED_OF_THREAD
from traceferry.importers.firefox.marker_groups import Group, KeptGroup, KeptMarkers
from traceferry.importers.firefox.marker_types import MarkerTypes
from traceferry.importers.firefox.names import Names
from traceferry.importers.firefox.survey import Survey, joined
from traceferry.importers.firefox.tables import (
    FRAME_COLUMNS,
    FUNC_COLUMNS,
    Addresses,
    Facts,
    LibRows,
    Stacks,
    add_tables,
    texts_of,
)
from traceferry.importers.firefox.threads import Numbers, is_main, number_of
from traceferry.importers.firefox.times import Times, join_clock
from traceferry.model import sums
from traceferry.native.distinct import distinct_with_places
from traceferry.reading import ImportContext
from traceferry.timeline.off_cpu import off_cpu_event, with_stacks
from traceferry.timeline.select import events_lasting, tables_within, values_within
from traceferry.timeline.stacks import StackTable

Members = dict[str, Any]
PAUSED = model.MarkerType(
    "Profiler paused",
    "The profiler took no samples",
    (model.MarkerField("reason", "Reason", "text"),),
    label="{reason}",
    group_by=("reason",),
)
# What our own profiles have beside the fields of markers.
OUR_COLOR = ("color",)
LEFT_OUT = ("comparison", "merged")
# Bytes of samples that are kept, so that their text is read once: of some ten million.
MOST_KEPT = 1 << 26


def to_trace(profiles: Sequence[Profile], trace: model.TraceBuilder, context: ImportContext) -> None:
    """Adds the profiles, each with its own processes. Raises UsageError for a symbol server that is none."""
    for profile in profiles:
        _Profile(trace, profile, context).add()


class _Profile:
    """The facts of all threads of a profile together."""

    def __init__(self, trace: model.TraceBuilder, profile: Profile, context: ImportContext) -> None:
        self.trace, self.profile, self.path = trace, profile, profile.source.path
        self.bad = BadRows()
        self.times = join_clock(trace, profile.meta)
        self.is_ours = is_ours(profile.meta)
        self.range = ours.range_of(profile.meta, self.times) if self.is_ours else None
        tiers = ours.tiers_of(profile.meta, self.bad) if self.is_ours else None
        self.categories = Categories(trace, profile.meta.get("categories"), tiers)
        # "symbolicated" does not tell: the viewer says so once it has tried, whatever it has found.
        names = Names(trace, context, profile.source)
        stacks = StackTable(trace)
        rows = RowMemo(trace.frames, *FRAME_COLUMNS), RowMemo(trace.funcs, *FUNC_COLUMNS)
        self.facts = Facts(
            trace, profile.version, profile.is_gecko, self.categories, self.bad, stacks, *rows, names, Addresses(),
            FuncNames(trace), LibRows(trace),
        )  # fmt: skip
        listed = list(zip(self.categories.names, self.categories.colors, strict=True))
        self.kinds = ours.kinds_of(profile.meta.get("markerSchema")) if self.is_ours else {}
        self.event_rows = self._own_events() if self.is_ours else []
        schemas = profile.meta.get("markerSchema")
        self.renamed = ours.types_of(schemas) if self.is_ours else {}
        schemas = ours.schemas_of(schemas, self.renamed) if self.renamed else schemas
        self.types = MarkerTypes(schemas, listed, OUR_COLOR if self.is_ours else ())
        self.shared_texts = texts_of(profile.shared)
        self.shared_stacks = self._shared_stacks()
        self.bounds = (0, 0)
        self.n_bytes_left = MOST_KEPT
        self.lost: dict[str, int] = {}
        self.n_objects = self.n_sorted = self.n_untimed = self.n_open = self.n_joined = self.n_cut = 0

    # ------------------------------------------------------------ all threads

    def add(self) -> None:
        """Adds the processes with their threads, and what the report says."""
        trace, profile = self.trace, self.profile
        version = "" if self.is_ours else _version(profile)
        trace.inputs.append(
            model.Input(encodable(profile.source.name), "firefox", version, encodable(producer_of(profile.meta)))
        )
        for key, value in attributes_of(profile.meta).items():
            trace.attributes.setdefault(key, encodable(value))
        surveys = [survey for nth in range(len(profile.threads)) if (survey := self._survey(nth)) is not None]
        surveys = self._with_calls(surveys)
        self.facts.stacks.publish()
        self._forget_weights(surveys)
        self.types.finish()
        self.counters = self._counters()
        self.bounds = self._bounds(surveys)
        self._add_processes(surveys)
        self.facts.names.finish()
        self._note()

    def _shared_stacks(self) -> Stacks | None:
        shared = self.profile.shared
        if "stackTable" not in shared:
            return None
        return add_tables(self.facts, shared, "shared", self.shared_texts, self.profile.parts[0].libs)

    def _own_events(self) -> list[int]:
        """Returns the row of each event of a profile of ours."""
        events, trace = ours.events_of(self.profile.meta), self.trace
        keys = {event.key: row for row, event in enumerate(trace.events)}
        for event in events:
            if event.key not in keys:
                keys[event.key] = len(trace.events)
                trace.events.append(event._replace(leader=-1))
        rows = [keys[event.key] for event in events]
        for row, event in zip(rows, events, strict=True):
            if 0 <= event.leader < len(rows) and rows[event.leader] < row:
                trace.events[row] = event._replace(leader=rows[event.leader])
        return rows

    def _forget_weights(self, surveys: Sequence[Survey]) -> None:
        """Makes the first event of a profile of ours count samples where the weights of some are not known."""
        row = self.event_rows[0] if self.event_rows else -1
        mine = [survey for survey in surveys if row >= 0 and survey.event == row and survey.first_sample is not None]
        if not all(survey.is_weighed for survey in mine):
            self.trace.events[row] = self.trace.events[row]._replace(unit=samples.SAMPLES_UNIT)

    def _times(self, part: Part) -> Times:
        return self.times._replace(shift_ms=part.shift_ms)

    def _texts(self, members: Members) -> list[str]:
        return self.shared_texts if "stringArray" in self.profile.shared else texts_of(members)

    def _survey(self, nth: int) -> Survey | None:
        """Takes in what all threads share; None: the thread is left out."""
        members, part = self.profile.thread(nth), self.profile.threads[nth].part
        path = self.profile.threads[nth].path
        if members.get("processType") in LEFT_OUT or members.get("name") in LEFT_OUT:
            self._lose("threads of comparisons", 1)
            return None
        texts = self._texts(members)
        stacks = self.shared_stacks
        if stacks is None or "stackTable" in members:
            libs = members.get("libs")
            libs = libs if isinstance(libs, list) else part.libs
            within = {**self.profile.shared, **members}
            stacks = add_tables(self.facts, within, path, texts, libs)
        rows = self._sample_rows(members, path, stacks, part)
        self._count_nameless(rows, stacks)
        found, allocated = self._marker_rows(members, path, texts, stacks, part)
        head = self._head(members)
        groups = self.types.groups(found, str(head.get("pid")), texts)
        self.types.survey(groups)
        for name in (*UNUSED_OF_THREAD, *(f"samples.{name}" for name in UNUSED_OF_SAMPLES)):
            self._lose(name.removeprefix("samples."), _n_values(members, name))
        self.n_sorted += rows.n_sorted
        self._lose("jsAllocations that are no nativeAllocations", allocated.n_unmatched if allocated is not None else 0)
        self.n_untimed += rows.n_lost + (allocated.n_left_out if allocated is not None else 0)
        self.n_open += found.n_open
        spans = [(int(one.ts[0]), int(one.ts[-1])) for one in (rows, allocated) if one is not None and len(one.ts)]
        spans += [of_markers] if (of_markers := found.span()) else []
        survey = Survey(
            nth, part, stacks, head, (min(a for a, _ in spans), max(b for _, b in spans)) if spans else None,
            int(rows.ts[0]) if len(rows.ts) else None, self.n_objects,
            len(rows.ts) + len(found.ts) + (len(allocated.ts) if allocated is not None else 0),
            rows.unit, hash((rows.ts.tobytes(), rows.stack.tobytes())) if self.is_ours else 0, rows.gaps,
            ours.weights_of(head[WRITER], len(rows.ts)) is not None,
        )  # fmt: skip
        self.n_objects += len(allocated.ts) if allocated is not None else 0
        survey = self._with_samples(survey, rows)
        if not self.is_ours and allocated is None:
            survey = self._with_markers(survey, found, self.types.kept(groups, texts))
        if survey.is_whole:
            self.profile.threads[nth].release()
        return survey

    def _head(self, members: Members) -> Members:
        """Returns the members of a thread that are no tables, with what our own profiles say of it."""
        head = {key: value for key, value in members.items() if not isinstance(value, (dict, list))}
        head["pausedRanges"] = members.get("pausedRanges")
        head[WRITER] = mark = self._mark(members)
        if isinstance(mark.get("pid"), str) and isinstance(mark.get("process"), str):
            head |= {"pid": mark["pid"], "processName": mark["process"], "tid": mark.get("tid")}
        return head

    def _with_samples(self, survey: Survey, rows: samples.Rows) -> Survey:
        """Returns it with its samples, as long as there is space for them."""
        kept = samples.KeptRows.of(rows)
        return survey._replace(kept=kept) if self._has_space(kept.n_bytes) else survey

    def _with_markers(self, survey: Survey, rows: markers.Rows, groups: list[KeptGroup] | None) -> Survey:
        """Returns it with its markers, which may be None, as long as there is space for them."""
        kept = KeptMarkers.of(rows.intervals(), groups) if groups is not None else None
        if kept is None or not self._has_space(kept.n_bytes):
            return survey
        return survey._replace(markers=kept, is_whole=survey.kept is not None)

    def _has_space(self, n_bytes: int) -> bool:
        """Whether so much more may be kept, which is kept then."""
        if n_bytes > self.n_bytes_left:
            return False
        self.n_bytes_left -= n_bytes
        return True

    def _count_nameless(self, rows: samples.Rows, stacks: Stacks) -> None:
        """Counts the samples in functions that stay addresses, by library."""
        names, known = self.facts.names, self.facts.known
        if not len(rows.ts):
            return
        # Behind the stacks of the table is none.
        count, weight = counts_of(rows.stack, rows.weight, len(stacks.sampled) - 1)
        weight = weight if rows.unit == samples.SAMPLES_UNIT else count
        used = np.flatnonzero(count)
        lib, weight = known.libs_of(self.facts.stacks.key[stacks.sampled[used]]), weight[used]
        libs, place = distinct_with_places(lib[lib >= 0])
        counts = sums.total_by(place, weight[lib >= 0], len(libs))
        for row, count in zip(libs.tolist(), counts.tolist(), strict=True):
            names.add_nameless(self.trace.strings[int(self.trace.libs["name"][row])], count)

    def _mark(self, members: Members) -> Members:
        return ours.mark_of(members) if self.is_ours else {}

    def _with_calls(self, surveys: Sequence[Survey]) -> list[Survey]:
        """Returns the threads with what their samples are. In profiles of ours, those that weigh times are calls."""
        gaps = [survey.gaps for survey in surveys]
        are_calls = [one is not None for one in gaps] if self.is_ours else samples.threads_of_calls(gaps)
        return [self._as_calls(one) if calls else one._replace(event=self._event(one))
                for one, calls in zip(surveys, are_calls, strict=True)]  # fmt: skip

    def _as_calls(self, survey: Survey) -> Survey:
        self.n_joined += 1
        first, end_ts = survey.first_sample, survey.gaps.end_ts if survey.gaps is not None else self.times.base_ns
        self.n_cut += self.range is not None and first is not None and first > self.range.start_ts
        start, end = survey.span or (end_ts, end_ts)
        return survey._replace(are_calls=True, span=(min(start, end_ts), max(end, end_ts)))

    def _event(self, survey: Survey) -> int:
        """Returns the row of the event that a thread's samples count, -1: they weigh bytes, or there are none."""
        if survey.unit in (ours.OF_EVENT, samples.SAMPLES_UNIT) and self.event_rows:
            number = ours.whole(survey.head[WRITER].get("event"), 0)
            return self.event_rows[number if 0 <= number < len(self.event_rows) else 0]
        if survey.first_sample is None or survey.unit == samples.BYTES:
            return -1
        # A profile of ours has an interval for the viewer, also where nothing tells one.
        interval = 0 if self.is_ours else samples.interval_ns(self.profile.meta)
        event = model.Event("samples", survey.unit, interval)
        keys = [one.key for one in self.trace.events]
        if event.key not in keys:
            self.trace.events.append(event)
            return len(keys)
        return keys.index(event.key)

    def _sample_rows(self, members: Members, path: str, stacks: Stacks, part: Part) -> samples.Rows:
        units = self.profile.meta.get("sampleUnits")
        unit = units.get("threadCPUDelta") if isinstance(units, dict) else None
        n = len(stacks.sampled) - 1
        rows = samples.read_rows(members, path, n, self._times(part), unit, self.bad)
        mark = self._mark(members)
        if rows.unit in (samples.BYTES, samples.NS) and mark.get("amount") is True:
            return rows._replace(unit=samples.SAMPLES_UNIT)
        if 0 < ours.whole(mark.get("event"), 0) < len(self.event_rows):
            return rows._replace(unit=ours.OF_EVENT)
        weight = ours.weights_of(mark, len(rows.ts)) if rows.unit == samples.SAMPLES_UNIT else None
        return rows if weight is None else rows._replace(weight=weight)

    def _marker_rows(
        self, members: Members, path: str, texts: list[str], stacks: Stacks, part: Part
    ) -> tuple[markers.Rows, allocations.Rows | None]:
        """Returns the markers and the allocations, which in Gecko profiles are markers."""
        n, times = len(stacks.sampled) - 1, self._times(part)
        rows = markers.read_markers(members, path, texts, n, times, self.bad)
        if self.renamed:
            rows = rows._replace(type=markers.Numbered.of([self.renamed.get(one, one) for one in rows.type.listed()]))
        if not markers.ALLOCATIONS.isdisjoint(rows.type.texts):
            return _without_allocations(rows), allocations.of_markers(rows)
        return rows, allocations.read_allocations(members, path, n, times, self.bad)

    def _bounds(self, surveys: Sequence[Survey]) -> tuple[int, int]:
        if self.range is not None:
            return self.range.start_ts, self.range.end_ts
        spans = [survey.span for survey in surveys if survey.span is not None]
        for _, counter in self.counters:
            ts = counter.values["ts"]
            spans += [(int(ts[0]), int(ts[-1]))] if len(ts) else []
        meta = self.profile.meta
        given = [self.times.one(meta.get(name)) for name in ("profilingStartTime", "profilingEndTime")]
        if self.is_ours and given[1] is not None:
            given[1] -= samples.interval_ns(meta)  # which the last sample lasts in the viewer
        if given[0] is not None and given[1] is not None and given[0] < given[1]:
            spans.append((given[0], given[1]))
        if not spans:
            return self.times.base_ns, self.times.base_ns
        return min(start for start, _ in spans), max(end for _, end in spans)

    def _counters(self) -> list[tuple[Any, model.Counter]]:
        found: list[tuple[Any, model.Counter]] = []
        for nth, (part, counter) in enumerate(self.profile.counters):
            if isinstance(counter, dict):
                totals = TOTALS if self.is_ours else ""
                made = read_counters(counter, f"counters[{nth}]", self._times(part), self.bad, totals)
                made = [self._own_counter(one) for one in made] if self.is_ours else made
                found += [(str(counter.get("pid")), one) for one in made if len(one.values)]
        return found

    def _own_counter(self, counter: model.Counter) -> model.Counter:
        counter = without_lead(counter, ours.end_of(self.profile.meta, self.times))
        if self.range is None:
            return counter
        return replace(counter, values=values_within(counter.values, self.range.start_ts, self.range.stop_ts))

    # ------------------------------------------------------------ processes

    def _add_processes(self, surveys: Sequence[Survey]) -> None:
        groups: dict[str, list[Survey]] = {}
        for survey in surveys:
            number = survey.number if survey.head.get("pid") is None else ""
            key = str(survey.head.get("pid")) if number == "" else f"{id(survey.part)} {survey.part.shift_ms}"
            groups.setdefault(key, []).append(survey)
        if self.is_ours:
            groups = {key: joined(mine) for key, mine in groups.items()}
            self._part_groups([survey for mine in groups.values() for survey in mine])
        pids = Numbers({process.pid for process in self.trace.processes})
        known = {number_of(mine[0].head.get("pid")) for mine in groups.values()}
        pids.taken |= {number for number in known if number is not None}
        for key, mine in groups.items():
            wanted = number_of(mine[0].head.get("pid"))
            pid = wanted if wanted is not None else pids.own(None)[0]
            process = self._process(mine, pid, "" if wanted is not None or mine[0].head.get("pid") is None else key)
            self._add_counters(process, [counter for of, counter in self.counters if of == key])
            self.counters = [one for one in self.counters if one[0] != key]
            self.trace.processes.append(process)
        if self.counters and groups:
            self._add_counters(self.trace.processes[-len(groups)], [counter for _, counter in self.counters])

    def _part_groups(self, threads: Sequence[Survey]) -> None:
        """Makes events that were sampled together events of their own, where somebody has left samples out since."""
        events, nothing = self.trace.events, hash((b"", b""))
        for thread in threads:
            digests = {one.event: one.digest for one in (*thread.sampled, thread)}
            for row in [row for row in digests if row > 0 and events[row].leader >= 0]:
                leader = events[row].leader
                if digests.get(leader, nothing if leader == 0 else digests[row]) != digests[row]:
                    events[row] = events[row]._replace(leader=-1)

    def _add_counters(self, process: model.Process, counters: Sequence[model.Counter]) -> None:
        for counter in counters:
            process.counters.append(counter)
            if len(counter.values):
                _reach(process, int(counter.values["ts"][0]), int(counter.values["ts"][-1]))

    def _process(self, mine: Sequence[Survey], pid: int, label: str) -> model.Process:
        """label: the number, where it is text."""
        heads = [survey.head for survey in sorted(mine, key=lambda survey: not self._is_main(survey))]
        name = next((found for head in heads if (found := text_of(head.get("processName")))), "")
        name = name or label or f"Process {pid}"
        start, end = self._lifetime(mine[0], heads[0], "processStartupTime", "processShutdownTime")
        process = model.Process(pid, name, start, end)
        ends: dict[int, int] = {}
        numbers = Numbers({number for head in heads if (number := number_of(head.get("tid"))) is not None})
        for survey in sorted(mine, key=lambda survey: self._thread_span(survey)[0]):
            start, end = self._thread_span(survey)
            wanted = number_of(survey.head.get("tid"))
            is_free = wanted is not None and ends.get(wanted, start) <= start
            tid = wanted if is_free and wanted is not None else numbers.own(None)[0]
            ends[tid] = end
            process.threads.append(self._thread(survey, tid, start, end))
            _reach(process, start, end)
            if survey.span is not None and self.range is None:
                _reach(process, *survey.span)
        return process

    def _is_main(self, survey: Survey) -> bool:
        return is_main(survey.head, self.profile.version, self.profile.is_gecko)

    def _thread(self, survey: Survey, tid: int, start: int, end: int) -> model.Thread:
        name, wanted = survey.head.get("name"), survey.head.get("tid")
        shown = text_of(name) or f"thread {tid}"
        if isinstance(wanted, str) and number_of(wanted) is None and not self.is_ours:
            shown = f"{shown} ({wanted})"
        return model.Thread(
            tid, shown, self._is_main(survey), start, end, partial(self._load, survey), survey.n_records,
            sample_unit="bytes" if survey.unit == samples.BYTES else "",
        )  # fmt: skip

    def _thread_span(self, survey: Survey) -> tuple[int, int]:
        return self._lifetime(survey, survey.head, "registerTime", "unregisterTime")

    def _lifetime(self, survey: Survey, head: Members, first: str, last: str) -> tuple[int, int]:
        times, (lowest, highest) = self._times(survey.part), self.bounds
        start, end = times.one(head.get(first)), times.one(head.get(last))
        start = lowest if start is None else min(max(start, lowest), highest)
        return start, highest if end is None else min(max(end, start), highest)

    # ------------------------------------------------------------ one thread

    def _load(self, survey: Survey, trace: model.TraceBuilder) -> model.ThreadData:
        data = self._whole(survey, trace)
        if self.range is None:
            return data
        return tables_within(data, self.range.start_ts, self.range.stop_ts, events_lasting(trace))

    def _whole(self, survey: Survey, trace: model.TraceBuilder) -> model.ThreadData:
        """Returns all that the profile has of a thread, also where the viewer has cut it to a range and it reaches
        beyond that."""
        data, stacks, path = model.ThreadData(), survey.stacks, self.profile.threads[survey.number].path
        for sampled in survey.sampled:
            part = self._whole(sampled, trace)
            data.samples = part.samples if len(part.samples) else data.samples
            data.other_samples |= part.other_samples
        members = {} if survey.is_whole else self._again(survey)
        texts = self._texts(members)
        rows = survey.kept.rows() if survey.kept else self._sample_rows(members, path, stacks, survey.part)
        if survey.are_calls:
            data.calls = samples.calls_of(trace, rows, stacks.sampled)
        elif survey.event > 0:
            data.other_samples[survey.event] = samples.table_of(rows, stacks.sampled)
        elif len(rows.ts):
            data.samples = samples.table_of(rows, stacks.sampled)
        if survey.markers is not None:
            data.markers = self._marker_tables(survey, survey.markers.intervals(), survey.markers.groups, texts)
        else:
            self._add_markers(survey, members, texts, trace, data)
        if (paused := self._paused(survey)) is not None:
            data.markers[PAUSED] = paused
        return data

    def _add_markers(
        self, survey: Survey, members: Members, texts: list[str], trace: model.TraceBuilder, data: model.ThreadData
    ) -> None:
        """Adds what the table of markers has, and the allocations, which may stand there or in tables of their own."""
        stacks, path = survey.stacks, self.profile.threads[survey.number].path
        found, allocated = self._marker_rows(members, path, texts, stacks, survey.part)
        if allocated is not None and len(allocated.ts):
            data.allocations = allocations.table_of(trace, allocated, stacks.called, survey.first_object)
        if self.kinds:
            found = self._own_markers(survey, found, texts, stacks, trace, data)
        groups = self.types.groups(found, str(survey.head.get("pid")), texts)
        data.markers = self._marker_tables(survey, found.intervals(), groups, texts)

    def _again(self, survey: Survey) -> Members:
        return self.profile.thread(survey.number, TABLES_OF_STACKS | SAMPLES if survey.kept else TABLES_OF_STACKS)

    def _own_markers(
        self, survey: Survey, rows: markers.Rows, texts: list[str], stacks: Stacks, trace: model.TraceBuilder,
        data: model.ThreadData,
    ) -> markers.Rows:  # fmt: skip
        """Takes arguments, states and scheduling out of the markers of a profile of ours; returns the others."""
        kinds, times, end_ts = self.kinds, self._times(survey.part), self._thread_span(survey)[1]
        is_state, is_off = (ours.of_kind(rows, kinds, kind) for kind in (ours.STATE, ours.OFF_CPU))
        if is_state.any():
            data.states = ours.states_of(trace, ours.chosen(rows, is_state), kinds, end_ts)
        running = ours.whole(survey.head[WRITER].get("running"), -1)
        since = min(max(times.base_ns + running, self.bounds[0]), self.bounds[1]) if running >= 0 else None
        if is_off.any() or since is not None:
            off = ours.chosen(rows, is_off)
            data.scheduling = ours.scheduling_of(trace, off, stacks.called[off.stack], kinds, since, end_ts)
            row = off_cpu_event(trace)
            waits = data.samples_of(row)
            if waits is not None and len(waits):
                data.scheduling = with_stacks(trace, data.scheduling, waits)
        is_call = ours.of_kind(rows, kinds, ours.CALL)
        if is_call.any():
            called = ours.chosen(rows, is_call)
            process = str(survey.head.get("pid"))
            flow = self.types.flow_numbers(called.type.listed()[0], called.data, process, texts)
            data.arguments, is_there = ours.arguments_of(trace, data.calls, called, flow, kinds, texts, times)
            is_call[np.flatnonzero(is_call)[~is_there]] = False
        return ours.chosen(rows, ~(is_state | is_off | is_call))

    def _marker_tables(
        self, survey: Survey, rows: markers.Intervals, groups: Sequence[Group | KeptGroup], texts: list[str]
    ) -> dict[model.MarkerType, model.Table]:
        end_ts = max(self._thread_span(survey)[1], survey.span[1] if survey.span else 0)
        end = np.where(rows.has_end, rows.end, np.maximum(end_ts, rows.ts))
        first = survey.first_sample if survey.first_sample is not None else self.bounds[1]
        ts = np.where(rows.has_start, rows.ts, np.minimum(first, end))
        stack, times = survey.stacks.called[rows.stack], self._times(survey.part)
        return self.types.tables(groups, ts, np.minimum(end, self.bounds[1]), stack, texts, times, self.bad)

    def _paused(self, survey: Survey) -> model.Table | None:
        """Returns the times at which the profiler was paused."""
        listed, times = survey.head.get("pausedRanges"), self._times(survey.part)
        ranges = [one for one in (listed if isinstance(listed, list) else []) if isinstance(one, dict)]
        if not ranges:
            return None
        lowest, highest = self.bounds
        rows: list[tuple[int, int, str]] = []
        for one in ranges:
            start, end = times.one(one.get("startTime")), times.one(one.get("endTime"))
            begin = lowest if start is None else min(max(start, lowest), highest)
            until = highest if end is None else min(max(end, begin), highest)
            reason = one.get("reason")
            rows.append((begin, until - begin, encodable(reason) if isinstance(reason, str) else ""))
        rows.sort()
        ts, dur, reason = zip(*rows, strict=True)
        return model.Table(PAUSED.spec, {"ts": ts, "dur": dur, "reason": np.array(reason, object)})

    # ------------------------------------------------------------ the report

    def _lose(self, what: str, n: int) -> None:
        if n:
            self.lost[what] = self.lost.get(what, 0) + n

    def _note(self) -> None:
        report, path = self.trace.report, self.path
        self.bad.note(report, path)
        for what, n in (self.lost | self.profile.unused | self.types.lost()).items():
            report.note("members_not_read", n, where=f"{path} {what}", detail=what)
        report.note("times_sorted", self.n_sorted, where=path)
        report.note("time_missing", self.n_untimed, where=path)
        report.note("markers_open", self.n_open, where=path)
        report.note("range_cut", self.n_cut, where=path)
        report.note("calls_joined", self.n_joined, where=path)
        n = self.types.n_other_categories
        report.note("members_not_read", n, where=f"{path} categories", detail="categories of single markers")


def _reach(process: model.Process, start_ts: int, end_ts: int) -> None:
    process.start_ts, process.end_ts = min(process.start_ts, start_ts), max(process.end_ts, end_ts)


def _without_allocations(rows: markers.Rows) -> markers.Rows:
    return ours.chosen(rows, ~rows.type.among(markers.ALLOCATIONS))


def _n_values(members: Members, name: str) -> int:
    """Returns how many values a member has, or a column of the samples: 0, as of a delay, is none."""
    *table, name = name.split(".")
    held = members.get(table[0]) if table else members
    value = held.get(name) if isinstance(held, dict) else None
    if isinstance(value, dict):
        return int(value["length"]) if isinstance(value.get("length"), int) else 1
    if isinstance(value, list):
        return sum(one is not None and one != 0 for one in value)
    if isinstance(value, np.ndarray):
        return int(np.count_nonzero((value == value) & (value != 0)))  # not NaN
    return int(value is not None)


def _version(profile: Profile) -> str:
    if profile.is_gecko:
        return f"Gecko {profile.meta.get('version')}"
    return f"processed {profile.version or 'without a version'}"
