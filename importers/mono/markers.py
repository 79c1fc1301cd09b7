"""Map: events other than calls, samples and allocations become markers of the threads on which they happened."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from traceferry.heap.class_names import UNKNOWN_CLASS
from traceferry.importers.mono import layout
from traceferry.importers.mono.decode import Log
from traceferry.importers.mono.frames import Frames, has_code
from traceferry.importers.mono.identity import UNKNOWN, Known
from traceferry.importers.mono.layout import Event, Gc, Metadata, Monitor
from traceferry.importers.mono.threads import NONE, ThreadLifetime, pairs, records_by_life
from traceferry.model import Array, MarkerField, MarkerType, Table, TraceBuilder, distinct


def _type(name: str, meaning: str, fields: str = "", **more: Any) -> MarkerType:
    """fields: `key format label` of each, between semicolons."""
    made: Any = (field.strip().split(" ", 2) for field in fields.split(";") if field)
    return MarkerType(name, meaning, tuple(MarkerField(key, label, kind) for key, kind, label in made), **more)


METADATA_EVENTS = (Event.NAME, Event.LOAD, Event.UNLOAD)
# Their names come in events of their own.
NAMED_APART = (Metadata.DOMAIN, Metadata.THREAD)
OUTCOMES = {Monitor.DONE: "acquired", Monitor.FAIL: "failed"}
HAPPENED = {
    Event.NAME: "named", Event.LOAD: "loaded", Event.UNLOAD: "unloaded",
    Event.ROOT_REGISTER: "registered", Event.ROOT_UNREGISTER: "given up",
    **dict.fromkeys(layout.HANDLES, "destroyed"), **dict.fromkeys(layout.HANDLES_CREATED, "created"),
}  # fmt: skip
BEGINS = (Event.HEAP_START, Event.FINALIZE_START, Event.FINALIZE_OBJECT_START)
# Events whose `object` is of a class that their markers show.
ASKED = (*layout.THROWS, Event.FINALIZE_OBJECT_START, *layout.MONITOR_EVENTS, *layout.HANDLES_CREATED, Event.CLAUSE)
# The records that markers begin with, and those that they end with, which are the same for instants; and those columns
# that are neither fields of the former nor named after them.
Found = tuple[Array, Array, dict[str, Any]]


class Markers:
    """Makes the markers of each thread. end_ts: of the log, on the event clock."""

    def __init__(
        self, trace: TraceBuilder, log: Log, frames: Frames, known: Known, threads: Sequence[ThreadLifetime],
        end_ts: int, shift_ns: int,
    ) -> None:  # fmt: skip
        self._trace, self._log, self._frames, self._known = trace, log, frames, known
        self._records, self._end_ts, self._shift_ns = log.records, end_ts, shift_ns
        self._rows_of = records_by_life(log, threads)
        self._flow = _handle_flows(log)
        self._title_row = _title_rows(log)

    def in_trace(self, trace: TraceBuilder) -> Markers:
        """Returns the same for a trace that continues the one of these."""
        other = copy(self)
        other._trace, other._frames = trace, self._frames.of(trace)
        return other

    def of(self, life: ThreadLifetime) -> dict[MarkerType, Table]:
        rows = self._records.in_time(self._rows_of.get(life, NONE))
        kind = self._records.kind[rows]
        # A thread mostly has few of them.
        present = set(distinct(kind).tolist())
        tables: dict[MarkerType, Table] = {}
        for find, kinds, marker_type in MARKERS:
            mine = rows[np.isin(kind, kinds)] if not present.isdisjoint(kinds) else NONE
            if len(mine) and len((found := find(self, mine))[0]):
                tables[marker_type] = self._table(marker_type, *found)
        return tables

    def _table(self, marker_type: MarkerType, rows: Array, last: Array, columns: dict[str, Any]) -> Table:
        ts = self._records.ts[rows]
        columns.setdefault("dur", self._records.ts[last] - ts)
        columns |= {"ts": ts + self._shift_ns, "stack": self._known.stack[rows], "flow": self._flow[rows]}
        columns |= {f.key: self._column(f.key, rows) for f in marker_type.fields if f.key not in columns}
        return Table(marker_type.spec, columns).take(np.argsort(ts, kind="stable"))

    def _column(self, key: str, rows: Array) -> Array:
        if key == "event":
            return _words(HAPPENED, self._records.kind[rows])
        return self._classes(rows) if key in ("class_name", "type_name") else self._records[key][rows]

    # ------------------------------------------------------------ the collector

    def _pauses(self, rows: Array) -> Found:
        """Finds pauses, each from before the world is stopped to after it is started."""
        event, ts = self._records["event"][rows], self._records.ts
        first, last = pairs(rows, event == Gc.PRE_STOP_WORLD, event == Gc.POST_START_WORLD)
        stopped = np.append(ts[rows[event == Gc.POST_STOP_WORLD]], 0)
        latest = stopped[np.searchsorted(stopped[:-1], ts[last], side="right") - 1]
        return first, last, {"stopping": np.maximum(latest - ts[first], 0)}

    def _collections(self, rows: Array) -> Found:
        event, generation = (self._records[name][rows] for name in ("event", "generation"))
        return *pairs(rows, event == Gc.START, event == Gc.END, generation), {}

    def _phases(self, rows: Array) -> Found:
        event, generation = self._records["event"], self._records["generation"]
        begins, ends = (np.isin(event[rows], (of_mark, of_mark + 2)) for of_mark in (Gc.MARK_START, Gc.MARK_END))
        first, last = pairs(rows, begins, ends, event[rows] >= Gc.RECLAIM_START)
        phase = np.where(event[first] >= Gc.RECLAIM_START, "reclaim", "mark")
        return first, last, {"phase": phase, "generation": generation[last]}

    def _intervals(self, rows: Array) -> Found:
        begins = np.isin(self._records.kind[rows], BEGINS)
        return *pairs(rows, begins, ~begins, self._records["object"][rows]), {}

    def _handles(self, rows: Array) -> Found:
        created = np.isin(self._records.kind[rows], layout.HANDLES_CREATED)
        kind = _words(layout.HANDLE_KINDS, self._records["type"][rows])
        return rows, rows, {"kind": kind, "class_name": np.where(created, self._classes(rows), "")}

    def _roots(self, rows: Array) -> Found:
        registered = self._records.kind[rows] == Event.ROOT_REGISTER
        kind = np.where(registered, _words(layout.ROOT_SOURCES, self._records["source"][rows]), "")
        return rows, rows, {"kind": kind, "title": self._log.texts(rows), "address": self._records["start"][rows]}

    # ------------------------------------------------------------ locks and exceptions

    def n_without_class(self) -> int:
        """Counts the exceptions that were thrown, and the contentions of locks, whose class the log does not tell."""
        records = self._records
        rows = records.of(*layout.THROWS, *layout.MONITOR_EVENTS)
        is_lock = np.isin(records.kind[rows], layout.MONITOR_EVENTS)
        begins = rows[~is_lock | (records["event"][rows] == Monitor.CONTENTION)]
        return int((self._known.class_name[begins] == UNKNOWN).sum())

    def _contentions(self, rows: Array) -> Found:
        """Finds contentions, from the contention on an object to the next event of it on the thread, or the end of the
        log."""
        event, ts = self._records["event"], self._records.ts
        contends, is_outcome = event[rows] == Monitor.CONTENTION, np.isin(event[rows], list(OUTCOMES))
        first, last = pairs(rows, contends, np.ones(len(rows), bool), self._records["object"][rows])
        waiting, alone = rows[contends & ~np.isin(rows, first)], rows[is_outcome & ~np.isin(rows, last)]
        first, last = np.concatenate((first, alone, waiting)), np.concatenate((last, alone, waiting))
        outcome = _words(OUTCOMES, event[last])
        outcome[len(last) - len(waiting) :] = "still waiting"
        dur = np.where(outcome == "still waiting", self._end_ts, ts[last]) - ts[first]
        return first, last, {"outcome": outcome, "dur": dur}

    def _exceptions(self, rows: Array) -> Found:
        """Finds exceptions, each until the next clause of its thread that catches it: from version 14 on clauses name
        the exception."""
        is_thrown = np.isin(self._records.kind[rows], layout.THROWS)
        mine = is_thrown | (self._records["type"][rows] == layout.CATCH)
        rows, is_thrown = rows[mine], is_thrown[mine]
        # Without a name they are as one.
        exception = self._records["object"][rows] if self._log.layout.events >= 14 else np.zeros(len(rows), np.int64)
        thrown: defaultdict[int, list[int]] = defaultdict(list)
        catch_of: dict[int, int] = {}
        for row, key, throws in zip(rows.tolist(), exception.tolist(), is_thrown.tolist(), strict=True):
            if throws:
                thrown[key].append(row)
            elif thrown[key]:
                catch_of[thrown[key].pop()] = row
        caught, catches = (np.array(list(of), np.int64) for of in (catch_of, catch_of.values()))
        left = rows[is_thrown & ~np.isin(rows, caught)]
        caught_in = self._methods(catches) + [""] * len(left)
        return np.append(caught, left), np.append(catches, left), {"caught_in": caught_in}

    def _clauses(self, rows: Array) -> Found:
        type_name = np.where(self._records["object"][rows] > 0, self._classes(rows), "")
        kind = _words(layout.CLAUSE_KINDS, self._records["type"][rows])
        return rows, rows, {"kind": kind, "method": self._methods(rows), "type_name": type_name}

    # ------------------------------------------------------------ code and metadata

    def _jit(self, rows: Array) -> Found:
        is_code = has_code(self._log, rows)
        size, address = (np.where(is_code, self._records[name][rows], 0) for name in ("size", "code"))
        return rows, rows, {"method": self._log.texts(rows), "size": size, "address": address}

    def _helpers(self, rows: Array) -> Found:
        kind = self._records["type"][rows] - np.uint64(0 if self._log.layout.events >= 14 else 1)
        return rows, rows, {"kind": _words(layout.HELPER_KINDS, kind), "helper": self._log.texts(rows)}

    def _metadata(self, rows: Array) -> Found:
        records, frames = self._records, self._frames
        title = np.array(self._log.texts(self._title_row[rows]), object)
        vtables = records["what"][rows] == Metadata.VTABLE
        classes = frames.classes.at(records["class"][rows[vtables]], records.ts[rows[vtables]])
        title[vtables] = self._strings(frames.class_names(classes))
        what = [Metadata(number).name.lower() for number in records["what"][rows].tolist()]
        return rows, rows, {"what": what, "title": title}

    def _sync_points(self, rows: Array) -> Found:
        return rows, rows, {"kind": _words(layout.SYNC_KINDS, self._records["kind"][rows])}

    # ------------------------------------------------------------ names

    def _strings(self, numbers: Array, unknown: str = "") -> Array:
        return np.array([self._trace.strings[number] or unknown for number in numbers.tolist()], object)

    def _classes(self, rows: Array) -> Array:
        return self._strings(self._known.class_name[rows], UNKNOWN_CLASS)

    def _methods(self, rows: Array) -> list[str]:
        frames = self._frames.methods.at(self._records["method"][rows], self._records.ts[rows])
        return [self._trace.func_name(func) for func in self._trace.frames["func"][frames].tolist()]


# How markers are found, among which records, and of which type they are.
MARKERS: tuple[tuple[Callable[[Markers, Array], Found], tuple[int, ...], MarkerType], ...] = (
    (Markers._pauses, (Event.GC_EVENT,), _type(
        "GC pause", "The garbage collector stopped all threads, from before it asked them to until they ran again",
        "generation integer Generation; stopping duration Until all had stopped",
        label="generation {generation}", group_by=("generation",), category="GC")),
    (Markers._collections, (Event.GC_EVENT,), _type(
        "GC collection", "A garbage collection, from its start to its end", "generation integer Generation",
        label="generation {generation}", group_by=("generation",), category="GC")),
    (Markers._phases, (Event.GC_EVENT,), _type(
        "GC phase", "What the garbage collector did in a collection", "phase text Phase; generation integer Generation",
        label="{phase}", group_by=("phase",), category="GC")),
    (Markers._intervals, (Event.HEAP_START, Event.HEAP_END), _type(
        "Heap shot", "The profiler walked the heap", category="Memory")),
    (Markers._contentions, layout.MONITOR_EVENTS, _type(
        "Lock contention", "A thread waited for a monitor that another one held",
        "class_name text Class; object hex Object; outcome text Outcome",
        label="{class_name} {object} {outcome}", group_by=("class_name", "object", "outcome"), category="Locks")),
    (Markers._exceptions, (*layout.THROWS, Event.CLAUSE), _type(
        "Exception", "An exception was thrown, and until when it was caught",
        "type_name text Type; caught_in text Caught in; object hex Object",
        label="{type_name}", group_by=("type_name",), category="Exceptions")),
    (Markers._clauses, (Event.CLAUSE,), _type(
        "Exception clause", "A clause that handles exceptions was run",
        "kind text Kind; method text Method; index integer Clause number; type_name text Type of the exception",
        label="{kind} in {method}", group_by=("kind",), category="Exceptions")),
    (Markers._jit, (Event.JIT,), _type(
        "JIT compilation", "A method was compiled; from data version 11 on: was seen for the first time",
        "method text Method; size bytes Size; address hex Address",
        label="{method}", category="JIT", named_by="method")),
    (Markers._helpers, (Event.JITHELPER,), _type(
        "JIT helper", "The runtime generated code of its own",
        "kind text Kind; helper text Name; size bytes Size; address hex Address",
        label="{kind} {helper}", group_by=("kind",), category="JIT")),
    (Markers._metadata, METADATA_EVENTS, _type(
        "Metadata", "The runtime loaded, unloaded or named a class, image, assembly, domain, thread, context or vtable",
        "what text What; event text Event; title text Name; pointer hex Pointer",
        label="{what} {event}: {title}", group_by=("what", "event"), category="Loader")),
    (Markers._handles, layout.HANDLES, _type(
        "GC handle", "A handle to an object was created or destroyed",
        "event text Event; kind text Kind; handle integer Handle; class_name text Class; object hex Object",
        label="{kind} handle {event}", group_by=("kind", "event"), category="GC")),
    (Markers._intervals, (Event.FINALIZE_START, Event.FINALIZE_END), _type(
        "Finalizers", "Objects were finalized, one after the other", category="GC")),
    (Markers._intervals, (Event.FINALIZE_OBJECT_START, Event.FINALIZE_OBJECT_END), _type(
        "Finalizer", "An object was finalized", "class_name text Class; object hex Object",
        label="{class_name}", group_by=("class_name",), category="GC")),
    (Markers._roots, (Event.ROOT_REGISTER, Event.ROOT_UNREGISTER), _type(
        "GC root", "A region of memory that keeps objects alive was registered or given up",
        "event text Event; kind text Kind; title text Name; size bytes Size; address hex Address",
        label="{kind} {event}", group_by=("event", "kind"), category="GC")),
    (Markers._sync_points, (Event.SYNC_POINT,), _type(
        "Sync point", "The profiler flushed its buffers: what follows in the file is later", "kind text Kind",
        label="{kind}", group_by=("kind",))),
)  # fmt: skip


def _handle_flows(log: Log) -> Array:
    """Returns the number of each record's flow, which is from a handle's creation to its end; 0 is none."""
    records, flow = log.records, np.zeros(len(log.records), np.int64)
    rows = records.in_time(records.of(*layout.HANDLES))
    if not len(rows):
        return flow
    created = np.isin(records.kind[rows], layout.HANDLES_CREATED)
    first, last = pairs(rows, created, ~created, records["type"][rows], records["handle"][rows])
    numbered = rows[created | np.isin(rows, last)]
    flow[numbered] = np.arange(1, len(numbered) + 1)
    flow[last] = flow[first]
    return flow


def _title_rows(log: Log) -> Array:
    """Returns for each record the one with its name. That is another one for metadata without a text: the latest with a
    name until then, else the next before it is unloaded."""
    records, title_row = log.records, np.arange(len(log.records))
    rows = records.of(*METADATA_EVENTS)
    rows = records.in_time(rows[np.isin(records["what"][rows], NAMED_APART)])
    rows = rows[np.lexsort((records["pointer"][rows], records["what"][rows]))]
    what, pointer, is_named = records["what"][rows], records["pointer"][rows], records["name"][rows] > 0
    begins = (what[1:] != what[:-1]) | (pointer[1:] != pointer[:-1]) | (records.kind[rows[:-1]] == Event.UNLOAD)
    life, place = np.append(0, np.cumsum(begins)), np.arange(len(rows))
    latest = np.maximum.accumulate(np.where(is_named, place, 0))
    following = np.minimum.accumulate(np.where(is_named, place, len(rows) - 1)[::-1])[::-1]
    for other in (following, latest):
        place = np.where(is_named[other] & (life[other] == life[: len(rows)]), other, place)
    title_row[rows] = rows[place]
    return title_row


def _words(words: Sequence[str] | Mapping[Any, str], numbers: Array) -> Array:
    named = words if isinstance(words, Mapping) else dict(enumerate(words))
    return np.array([named.get(number, "unknown") for number in numbers.tolist()], object)
