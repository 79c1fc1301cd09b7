"""Map: events other than calls, samples and allocations become markers of the threads on which they happened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from traceferry.heap.classes import UNKNOWN_CLASS
from traceferry.importers.mono.decode import Log
from traceferry.importers.mono.frames import Frames, has_code
from traceferry.importers.mono.identity import Known
from traceferry.importers.mono.layout import (
    CATCH,
    CLAUSE_KINDS,
    HANDLE_KINDS,
    HANDLES,
    HANDLES_CREATED,
    HELPER_KINDS,
    MONITOR_EVENTS,
    ROOT_SOURCES,
    SYNC_KINDS,
    THROWS,
    Event,
    Gc,
    Metadata,
    Monitor,
)
from traceferry.importers.mono.threads import NONE, ThreadLifetime, records_by_life
from traceferry.model import Array, MarkerField, MarkerType, Table, Trace


def _type(name: str, meaning: str, fields: str = "", **more: Any) -> MarkerType:
    """fields: `key format label` of each, between semicolons."""
    made: Any = (field.strip().split(" ", 2) for field in fields.split(";") if field)
    return MarkerType(name, meaning, tuple(MarkerField(key, label, kind) for key, kind, label in made), **more)


METADATA_EVENTS = {Event.NAME: "named", Event.LOAD: "loaded", Event.UNLOAD: "unloaded"}
# Their names come in events of their own.
NAMED_APART = (Metadata.DOMAIN, Metadata.THREAD)
OUTCOMES: dict[int, str] = {Monitor.DONE: "acquired", Monitor.FAIL: "failed"}
# Events whose `object` is of a class that their markers show.
ASKED = (*THROWS, Event.FINALIZE_OBJECT_START, *MONITOR_EVENTS, *HANDLES_CREATED, Event.CLAUSE)
# The records that markers begin with, when these end, and those columns that are not fields of the records.
Found = tuple[Array, Array, dict[str, Any]]


class Markers:
    """Makes the markers of each thread. end_ts: of the log, on the event clock."""

    def __init__(
        self, trace: Trace, log: Log, frames: Frames, known: Known, threads: Sequence[ThreadLifetime], end_ts: int,
        shift_ns: int,
    ) -> None:  # fmt: skip
        self._trace, self._log, self._frames, self._known = trace, log, frames, known
        self._end_ts, self._shift_ns = end_ts, shift_ns
        self._rows_of = records_by_life(log, threads)
        self._flow = _handle_flows(log)
        self._title_row = _title_rows(log)

    def of(self, life: ThreadLifetime) -> dict[MarkerType, Table]:
        records = self._log.records
        rows = records.in_time(self._rows_of.get(life, NONE))
        tables: dict[MarkerType, Table] = {}
        for find, kinds, marker_type in MARKERS:
            mine = rows[np.isin(records.kind[rows], kinds)]
            if len(mine):
                first, end_ts, columns = find(self, mine)
                if len(first):
                    tables[marker_type] = self._table(marker_type, first, end_ts, columns)
        return tables

    def _table(self, marker_type: MarkerType, rows: Array, end_ts: Array, columns: dict[str, Any]) -> Table:
        records = self._log.records
        ts = records.ts[rows]
        columns |= {"ts": ts + self._shift_ns, "dur": end_ts - ts}
        columns |= {"stack": self._known.stack[rows], "flow": self._flow[rows]}
        columns |= {f.key: records[f.key][rows] for f in marker_type.fields if f.key not in columns}
        return Table(marker_type.spec, columns).take(np.argsort(ts, kind="stable"))

    def _instants(self, rows: Array, **columns: Any) -> Found:
        return rows, self._log.records.ts[rows], columns

    def _between(self, first: Array, last: Array, **columns: Any) -> Found:
        return first, self._log.records.ts[last], columns

    # ------------------------------------------------------------ the collector

    def _pauses(self, rows: Array) -> Found:
        """Each from before the world is stopped to after it is started."""
        event, ts = self._log.records["event"][rows], self._log.records.ts[rows]
        first, last = _pairs(event == Gc.PRE_STOP_WORLD, event == Gc.POST_START_WORLD)
        stopped = np.append(np.flatnonzero(event == Gc.POST_STOP_WORLD), -1)
        stopped = np.maximum(stopped[np.searchsorted(stopped[:-1], last) - 1], first)
        return self._between(rows[first], rows[last], stopping=ts[stopped] - ts[first])

    def _collections(self, rows: Array) -> Found:
        event, generation = (self._log.records[name][rows] for name in ("event", "generation"))
        first, last = _pairs(event == Gc.START, event == Gc.END, generation)
        return self._between(rows[first], rows[last])

    def _phases(self, rows: Array) -> Found:
        event, generation = (self._log.records[name][rows] for name in ("event", "generation"))
        begins, ends = (np.isin(event, (of_mark, of_mark + 2)) for of_mark in (Gc.MARK_START, Gc.MARK_END))
        is_reclaim = event >= Gc.RECLAIM_START
        first, last = _pairs(begins, ends, is_reclaim)
        phase = np.where(is_reclaim[first], "reclaim", "mark")
        return self._between(rows[first], rows[last], phase=phase, generation=generation[last])

    def _intervals(self, rows: Array) -> Found:
        kind = self._log.records.kind[rows]
        begins = np.isin(kind, (Event.HEAP_START, Event.FINALIZE_START))
        first, last = _pairs(begins, ~begins)
        return self._between(rows[first], rows[last])

    def _finalized(self, rows: Array) -> Found:
        begins = self._log.records.kind[rows] == Event.FINALIZE_OBJECT_START
        first, last = _pairs(begins, ~begins, self._log.records["object"][rows])
        return self._between(rows[first], rows[last], class_name=self._classes(rows[first]))

    def _handles(self, rows: Array) -> Found:
        records = self._log.records
        created = np.isin(records.kind[rows], HANDLES_CREATED)
        event, class_name = np.where(created, "created", "destroyed"), np.where(created, self._classes(rows), "")
        kind = _words(HANDLE_KINDS, records["type"][rows])
        return self._instants(rows, event=event, kind=kind, class_name=class_name)

    def _roots(self, rows: Array) -> Found:
        records = self._log.records
        registered = records.kind[rows] == Event.ROOT_REGISTER
        event = np.where(registered, "registered", "given up")
        kind = np.where(registered, _words(ROOT_SOURCES, records["source"][rows]), "")
        address = records["start"][rows]
        return self._instants(rows, event=event, kind=kind, title=self._log.texts(rows), address=address)

    # ------------------------------------------------------------ locks and exceptions

    def _contentions(self, rows: Array) -> Found:
        """From the contention on an object to the next event of it on the thread."""
        records = self._log.records
        event, n = records["event"][rows], len(rows)
        contends, is_outcome = event == Monitor.CONTENTION, np.isin(event, list(OUTCOMES))
        first, last = _pairs(contends, np.ones(n, bool), records["object"][rows])
        contends[first], is_outcome[last] = False, False
        waiting, alone = np.flatnonzero(contends), np.flatnonzero(is_outcome)
        first = np.concatenate((first, alone, waiting))
        last = np.concatenate((last, alone, np.full(len(waiting), n)))
        order = np.argsort(last, kind="stable")
        first, last = first[order], last[order]
        outcome = [*_words(OUTCOMES, event[last[last < n]]), *["still waiting"] * len(waiting)]
        end_ts = np.append(records.ts[rows], self._end_ts)[last]
        return rows[first], end_ts, {"class_name": self._classes(rows[first]), "outcome": outcome}

    def _exceptions(self, rows: Array) -> Found:
        """Each until the next clause of its thread that catches it: from version 14 on clauses name the exception."""
        records = self._log.records
        is_clause = records.kind[rows] == Event.CLAUSE
        catches = is_clause & (records["type"][rows] == CATCH)
        key = records["object"][rows] if self._log.layout.events >= 14 else np.zeros(len(rows), np.int64)
        # Those not caught yet, by exception: as one, where clauses name none.
        thrown: dict[int, list[int]] = {}
        caught: list[tuple[int, int]] = []
        for nth in np.flatnonzero(catches | ~is_clause).tolist():
            same = thrown.setdefault(int(key[nth]), [])
            if not catches[nth]:
                same.append(nth)
            elif same:
                caught.append((same.pop(), nth))
        left = [nth for of_key in thrown.values() for nth in of_key]
        first, last = (rows[nth] for nth in np.array(caught, np.int64).reshape(-1, 2).T)
        caught_in = self._methods(last) + [""] * len(left)
        rows, ends = (np.concatenate((some, rows[sorted(left)])) for some in (first, last))
        return self._between(rows, ends, type_name=self._classes(rows), caught_in=caught_in)

    def _clauses(self, rows: Array) -> Found:
        records = self._log.records
        type_name = np.where(records["object"][rows] > 0, self._classes(rows), "")
        kind = _words(CLAUSE_KINDS, records["type"][rows])
        return self._instants(rows, kind=kind, method=self._methods(rows), type_name=type_name)

    # ------------------------------------------------------------ code and metadata

    def _jit(self, rows: Array) -> Found:
        is_code = has_code(self._log, rows)
        size, address = (np.where(is_code, self._log.records[name][rows], 0) for name in ("size", "code"))
        return self._instants(rows, method=self._log.texts(rows), size=size, address=address)

    def _helpers(self, rows: Array) -> Found:
        kind = self._log.records["type"][rows] - np.uint64(0 if self._log.layout.events >= 14 else 1)
        return self._instants(rows, kind=_words(HELPER_KINDS, kind), helper=self._log.texts(rows))

    def _metadata(self, rows: Array) -> Found:
        records, frames = self._log.records, self._frames
        title = np.array(self._log.texts(self._title_row[rows]), object)
        vtables = np.flatnonzero(records["what"][rows] == Metadata.VTABLE)
        classes = frames.classes.at(records["class"][rows[vtables]], records.ts[rows[vtables]])
        title[vtables] = [self._trace.strings[name] for name in frames.class_names(classes).tolist()]
        what = [Metadata(number).name.lower() for number in records["what"][rows].tolist()]
        event = [METADATA_EVENTS[Event(kind)] for kind in records.kind[rows].tolist()]
        return self._instants(rows, what=what, event=event, title=title)

    def _sync_points(self, rows: Array) -> Found:
        return self._instants(rows, kind=_words(SYNC_KINDS, self._log.records["kind"][rows]))

    # ------------------------------------------------------------ names

    def _classes(self, rows: Array) -> Array:
        names = self._known.class_name[rows].tolist()
        return np.array([self._trace.strings[name] or UNKNOWN_CLASS for name in names], object)

    def _methods(self, rows: Array) -> list[str]:
        records = self._log.records
        frames = self._frames.methods.at(records["method"][rows], records.ts[rows])
        return [self._trace.func_name(func) for func in self._trace.frames["func"][frames].tolist()]


# How markers are found, among which records, and of which type they are.
MARKERS: tuple[tuple[Callable[[Markers, Array], Found], tuple[int, ...], MarkerType], ...] = (
    (Markers._pauses, (Event.GC_EVENT,), _type(
        "GC pause", "The garbage collector stopped all threads, from before it asked them to until they ran again",
        "generation integer Generation; stopping duration Until all had stopped",
        label="generation {generation}", group_by=("generation",), category="GC")),
    (Markers._collections, (Event.GC_EVENT,), _type(
        "GC collection", "A garbage collection, from its start to its end",
        "generation integer Generation",
        label="generation {generation}", group_by=("generation",), category="GC")),
    (Markers._phases, (Event.GC_EVENT,), _type(
        "GC phase", "What the garbage collector did in a collection",
        "phase text Phase; generation integer Generation",
        label="{phase}", group_by=("phase",), category="GC")),
    (Markers._intervals, (Event.HEAP_START, Event.HEAP_END), _type(
        "Heap shot", "The profiler walked the heap", category="Memory")),
    (Markers._contentions, MONITOR_EVENTS, _type(
        "Lock contention", "A thread waited for a monitor that another one held",
        "class_name text Class; object hex Object; outcome text Outcome",
        label="{class_name} {object} {outcome}", group_by=("class_name", "object", "outcome"), category="Locks")),
    (Markers._exceptions, (*THROWS, Event.CLAUSE), _type(
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
    (Markers._metadata, tuple(METADATA_EVENTS), _type(
        "Metadata", "The runtime loaded, unloaded or named a class, image, assembly, domain, thread, context or vtable",
        "what text What; event text Event; title text Name; pointer hex Pointer",
        label="{what} {event}: {title}", group_by=("what", "event"), category="Loader")),
    (Markers._handles, HANDLES, _type(
        "GC handle", "A handle to an object was created or destroyed",
        "event text Event; kind text Kind; handle integer Handle; class_name text Class; object hex Object",
        label="{kind} handle {event}", group_by=("kind", "event"), category="GC")),
    (Markers._intervals, (Event.FINALIZE_START, Event.FINALIZE_END), _type(
        "Finalizers", "Objects were finalized, one after the other", category="GC")),
    (Markers._finalized, (Event.FINALIZE_OBJECT_START, Event.FINALIZE_OBJECT_END), _type(
        "Finalizer", "An object was finalized",
        "class_name text Class; object hex Object",
        label="{class_name}", group_by=("class_name",), category="GC")),
    (Markers._roots, (Event.ROOT_REGISTER, Event.ROOT_UNREGISTER), _type(
        "GC root", "A region of memory that keeps objects alive was registered or given up",
        "event text Event; kind text Kind; title text Name; size bytes Size; address hex Address",
        label="{kind} {event}", group_by=("event", "kind"), category="GC")),
    (Markers._sync_points, (Event.SYNC_POINT,), _type(
        "Sync point", "The profiler flushed its buffers: what follows in the file is later",
        "kind text Kind",
        label="{kind}", group_by=("kind",))),
)  # fmt: skip


def _pairs(opens: Array, closes: Array, *key: Array) -> tuple[Array, Array]:
    """(first, last): each event that opens something, and the next one of the same key if that closes it; in the order
    of the latter. opens, closes: masks of events by time."""
    mine = np.flatnonzero(opens | closes)
    order = mine[np.lexsort([column[mine] for column in key])] if key else mine
    first, last = order[:-1], order[1:]
    is_pair = np.logical_and.reduce([opens[first], closes[last], *(column[first] == column[last] for column in key)])
    by_last = np.argsort(last[is_pair])
    return first[is_pair][by_last], last[is_pair][by_last]


def _handle_flows(log: Log) -> Array:
    """For each record the number of its flow, which is from a handle's creation to its end; 0 is none."""
    records = log.records
    rows = records.in_time(records.of(*HANDLES))
    created = np.isin(records.kind[rows], HANDLES_CREATED)
    first, last = _pairs(created, ~created, records["type"][rows], records["handle"][rows])
    is_linked = created.copy()
    is_linked[last] = True
    number, flow = np.cumsum(is_linked), np.zeros(len(records), np.int64)
    flow[rows[created]] = number[created]
    flow[rows[last]] = number[first]
    return flow


def _title_rows(log: Log) -> Array:
    """For each record the one with its name. That is another one for metadata without a text: the latest with a name
    until then, else the next before it is unloaded."""
    records, title_row = log.records, np.arange(len(log.records))
    rows = records.of(*METADATA_EVENTS)
    rows = records.in_time(rows[np.isin(records["what"][rows], NAMED_APART)])
    what, pointer = (records[name][rows] for name in ("what", "pointer"))
    order = np.lexsort((pointer, what))
    rows, what, pointer = rows[order], what[order], pointer[order]
    named, place = np.flatnonzero(records["name"][rows]), np.arange(len(rows))
    if len(named):
        begins = (np.diff(what) != 0) | (np.diff(pointer) != 0) | (records.kind[rows[:-1]] == Event.UNLOAD)
        life = np.append(0, np.cumsum(begins))
        latest = named[np.maximum(np.searchsorted(named, place, side="right") - 1, 0)]
        following = named[np.minimum(np.searchsorted(named, place), len(named) - 1)]
        place = np.where(life[following] == life, following, place)
        title_row[rows] = rows[np.where(life[latest] == life, latest, place)]
    return title_row


def _words(words: Sequence[str] | dict[int, str], numbers: Array) -> Array:
    named = words if isinstance(words, dict) else dict(enumerate(words))
    return np.array([named.get(number, "unknown") for number in numbers.tolist()], object)
