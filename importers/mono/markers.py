"""Map: events other than calls, samples and allocations become markers of the threads on which they happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
    HELPER_KINDS,
    MONITOR_EVENTS,
    ROOT_SOURCES,
    SYNC_KINDS,
    Event,
    Gc,
    Metadata,
    Monitor,
)
from traceferry.importers.mono.threads import NONE as NO_ROWS
from traceferry.importers.mono.threads import ThreadLifetime, records_by_life
from traceferry.model import Array, MarkerField, MarkerType, Table, Trace


def _type(name: str, meaning: str, fields: str = "", **more: Any) -> MarkerType:
    """fields: `key format label` of each, between semicolons."""
    made: Any = (field.strip().split(" ", 2) for field in fields.split(";") if field)
    return MarkerType(name, meaning, tuple(MarkerField(key, label, kind) for key, kind, label in made), **more)


PAUSE = _type(
    "GC pause", "The garbage collector stopped all threads, from before it asked them to until they ran again",
    "generation integer Generation; stopping duration Until all had stopped",
    label="generation {generation}", group_by=("generation",), category="GC",
)  # fmt: skip
COLLECTION = _type(
    "GC collection", "A garbage collection, from its start to its end",
    "generation integer Generation",
    label="generation {generation}", group_by=("generation",), category="GC",
)  # fmt: skip
PHASE = _type(
    "GC phase", "What the garbage collector did in a collection",
    "phase text Phase; generation integer Generation",
    label="{phase}", group_by=("phase",), category="GC",
)  # fmt: skip
CONTENTION = _type(
    "Lock contention", "A thread waited for a monitor that another one held",
    "class_name text Class; object hex Object; outcome text Outcome",
    label="{class_name} {object} {outcome}", group_by=("class_name", "object", "outcome"), category="Locks",
)  # fmt: skip
EXCEPTION = _type(
    "Exception", "An exception was thrown, and until when it was caught",
    "type_name text Type; caught_in text Caught in; object hex Object",
    label="{type_name}", group_by=("type_name",), category="Exceptions",
)  # fmt: skip
CLAUSE = _type(
    "Exception clause", "A clause that handles exceptions was run",
    "kind text Kind; method text Method; index integer Clause number; type_name text Type of the exception",
    label="{kind} in {method}", group_by=("kind",), category="Exceptions",
)  # fmt: skip
JIT = _type(
    "JIT compilation", "A method was compiled; from data version 11 on: was seen for the first time",
    "method text Method; size bytes Size; address hex Address",
    label="{method}", category="JIT", named_by="method",
)  # fmt: skip
HELPER = _type(
    "JIT helper", "The runtime generated code of its own",
    "kind text Kind; helper text Name; size bytes Size; address hex Address",
    label="{kind} {helper}", group_by=("kind",), category="JIT",
)  # fmt: skip
METADATA = _type(
    "Metadata", "The runtime loaded, unloaded or named a class, image, assembly, domain, thread, context or vtable",
    "what text What; event text Event; title text Name; pointer hex Pointer",
    label="{what} {event}: {title}", group_by=("what", "event"), category="Loader",
)  # fmt: skip
HANDLE = _type(
    "GC handle", "A handle to an object was created or destroyed",
    "event text Event; kind text Kind; handle integer Handle; class_name text Class; object hex Object",
    label="{kind} handle {event}", group_by=("kind", "event"), category="GC",
)  # fmt: skip
FINALIZERS = _type(
    "Finalizers", "Objects were finalized, one after the other",
    category="GC",
)  # fmt: skip
FINALIZER = _type(
    "Finalizer", "An object was finalized",
    "class_name text Class; object hex Object",
    label="{class_name}", group_by=("class_name",), category="GC",
)  # fmt: skip
ROOT = _type(
    "GC root", "A region of memory that keeps objects alive was registered or given up",
    "event text Event; kind text Kind; title text Name; size bytes Size; address hex Address",
    label="{kind} {event}", group_by=("event", "kind"), category="GC",
)  # fmt: skip
SHOT = _type(
    "Heap shot", "The profiler walked the heap",
    category="Memory",
)  # fmt: skip
SYNC = _type(
    "Sync point", "The profiler flushed its buffers: what follows in the file is later",
    "kind text Kind",
    label="{kind}", group_by=("kind",),
)  # fmt: skip
WHAT = {
    Metadata.CLASS: "class", Metadata.IMAGE: "image", Metadata.ASSEMBLY: "assembly", Metadata.DOMAIN: "domain",
    Metadata.THREAD: "thread", Metadata.CONTEXT: "context", Metadata.VTABLE: "vtable",
}  # fmt: skip
# Their names come in events of their own.
NAMED_APART = (Metadata.DOMAIN, Metadata.THREAD)
METADATA_EVENTS = {Event.NAME: "named", Event.LOAD: "loaded", Event.UNLOAD: "unloaded"}
OUTCOMES: dict[int, str] = {Monitor.DONE: "acquired", Monitor.FAIL: "failed"}
PHASES = {Gc.MARK_START: ("mark", Gc.MARK_END), Gc.RECLAIM_START: ("reclaim", Gc.RECLAIM_END)}

# Time, duration, stack, flow, then the fields.
Row = tuple[Any, ...]


# Events whose `object` is of a class that their markers show.
ASKED: tuple[tuple[int, ...], ...] = (
    (Event.THROW, Event.THROW_BT), (Event.FINALIZE_OBJECT_START,), MONITOR_EVENTS,
    (Event.HANDLE_CREATED, Event.HANDLE_CREATED_BT), (Event.CLAUSE,),
)  # fmt: skip


def questions(log: Log) -> tuple[Array, Array, Array]:
    """(rows of records, int64 ts, uint64 address) of the objects whose classes the markers show; by time."""
    records = log.records
    rows = np.concatenate([records.of(*kinds) for kinds in ASKED])
    order = np.argsort(records.ts[rows], kind="stable")
    rows = rows[order]
    return rows, records.ts[rows], records["object"][rows]


class Markers:
    """Makes the markers of each thread. asked_rows: of the records, those of which the object's class was asked."""

    def __init__(
        self, trace: Trace, log: Log, threads: Sequence[ThreadLifetime], frames: Frames, known: Known,
        asked_rows: Array, span: tuple[int, int], shift_ns: int,
    ) -> None:  # fmt: skip
        self._trace = trace
        self._log = log
        self._rows_of = records_by_life(log, threads)
        self._frames = frames
        self._known = known
        self._question_of = {row: i for i, row in enumerate(asked_rows.tolist())}
        self._span = span
        self._shift_ns = shift_ns
        self._flows = _handle_flows(log)
        self._titles = _titles(log)

    def of(self, life: ThreadLifetime) -> dict[MarkerType, Table]:
        records = self._log.records
        rows = self._rows_of.get(id(life), NO_ROWS)
        rows = rows[np.argsort(records.ts[rows], kind="stable")]
        kinds = records.kind[rows]
        stack_at = self._known.stack_at.get(id(life), {})
        makers: tuple[tuple[MarkerType, tuple[int, ...], Callable[[list[int], dict[int, int]], Iterator[Row]]], ...] = (
            (PAUSE, (Event.GC_EVENT,), self._pauses),
            (COLLECTION, (Event.GC_EVENT,), self._collections),
            (PHASE, (Event.GC_EVENT,), self._phases),
            (SHOT, (Event.HEAP_START, Event.HEAP_END), self._shots),
            (CONTENTION, MONITOR_EVENTS, self._contentions),
            (EXCEPTION, (Event.THROW, Event.THROW_BT, Event.CLAUSE), self._exceptions),
            (CLAUSE, (Event.CLAUSE,), self._clauses),
            (JIT, (Event.JIT,), self._jit),
            (HELPER, (Event.JITHELPER,), self._helpers),
            (METADATA, tuple(METADATA_EVENTS), self._metadata),
            (HANDLE, HANDLE_EVENTS, self._handles),
            (FINALIZERS, (Event.FINALIZE_START, Event.FINALIZE_END), self._finalizers),
            (FINALIZER, (Event.FINALIZE_OBJECT_START, Event.FINALIZE_OBJECT_END), self._finalized),
            (ROOT, (Event.ROOT_REGISTER, Event.ROOT_UNREGISTER), self._roots),
            (SYNC, (Event.SYNC_POINT,), self._sync_points),
        )
        tables: dict[MarkerType, Table] = {}
        for marker_type, wanted, make in makers:
            mine = rows[np.isin(kinds, [int(kind) for kind in wanted])].tolist()
            made = list(make(mine, stack_at)) if mine else []
            if made:
                tables[marker_type] = self._table(marker_type, made)
        return tables

    def _table(self, marker_type: MarkerType, rows: list[Row]) -> Table:
        names = ("ts", "dur", "stack", "flow", *(field.key for field in marker_type.fields))
        spec = marker_type.spec
        cells_of = dict(zip(names, zip(*rows, strict=True), strict=True))
        columns = {name: np.array(cells, spec[name].numpy_dtype) for name, cells in cells_of.items()}
        start = np.clip(columns["ts"], *self._span)
        end = np.clip(columns["ts"] + columns["dur"], start, self._span[1])
        columns |= {"ts": start + self._shift_ns, "dur": end - start}
        table = Table(spec, columns)
        return table.take(np.argsort(columns["ts"], kind="stable"))

    # ------------------------------------------------------------ the collector

    def _pauses(self, rows: list[int], _: dict[int, int]) -> Iterator[Row]:
        """Each from before the world is stopped to after it is started."""
        records = self._log.records
        begun: dict[int, int] = {}
        for row in rows:
            kind = int(records["event"][row])
            if kind == Gc.PRE_STOP_WORLD:
                begun = {kind: row}
            elif kind == Gc.POST_STOP_WORLD and begun:
                begun[kind] = row
            elif kind == Gc.POST_START_WORLD and begun:
                first = begun[Gc.PRE_STOP_WORLD]
                start = int(records.ts[first])
                stopped = int(records.ts[begun.get(Gc.POST_STOP_WORLD, first)])
                yield (
                    start,
                    int(records.ts[row]) - start,
                    -1,
                    0,
                    _signed(int(records["generation"][first])),
                    stopped - start,
                )
                begun = {}

    def _collections(self, rows: list[int], _: dict[int, int]) -> Iterator[Row]:
        records = self._log.records
        begun: dict[int, int] = {}
        for row in rows:
            kind, generation = int(records["event"][row]), _signed(int(records["generation"][row]))
            if kind == Gc.START:
                begun[generation] = int(records.ts[row])
            elif kind == Gc.END and generation in begun:
                start = begun.pop(generation)
                yield start, int(records.ts[row]) - start, -1, 0, generation

    def _phases(self, rows: list[int], _: dict[int, int]) -> Iterator[Row]:
        records = self._log.records
        begun: dict[int, tuple[str, int]] = {}
        for row in rows:
            kind, ts = int(records["event"][row]), int(records.ts[row])
            if kind in begun:
                phase, start = begun.pop(kind)
                yield start, ts - start, -1, 0, phase, _signed(int(records["generation"][row]))
            for first, (phase, last) in PHASES.items():
                if kind == first:
                    begun[last] = (phase, ts)

    def _shots(self, rows: list[int], _: dict[int, int]) -> Iterator[Row]:
        yield from self._intervals(rows, Event.HEAP_START)

    def _finalizers(self, rows: list[int], _: dict[int, int]) -> Iterator[Row]:
        yield from self._intervals(rows, Event.FINALIZE_START)

    def _intervals(self, rows: list[int], first: Event) -> Iterator[Row]:
        records = self._log.records
        start: int | None = None
        for row in rows:
            ts = int(records.ts[row])
            if records.kind[row] == first:
                start = ts
            elif start is not None:
                yield start, ts - start, -1, 0
                start = None

    def _finalized(self, rows: list[int], _: dict[int, int]) -> Iterator[Row]:
        records = self._log.records
        begun: dict[int, int] = {}
        for row in rows:
            address = int(records["object"][row])
            if records.kind[row] == Event.FINALIZE_OBJECT_START:
                begun[address] = row
            elif address in begun:
                first = begun.pop(address)
                start = int(records.ts[first])
                yield start, int(records.ts[row]) - start, -1, 0, self._class_of(first), address

    def _handles(self, rows: list[int], stack_at: dict[int, int]) -> Iterator[Row]:
        records = self._log.records
        for row in rows:
            kind, handle = int(records["type"][row]), int(records["handle"][row])
            created = records.kind[row] in (Event.HANDLE_CREATED, Event.HANDLE_CREATED_BT)
            event, class_name = ("created", self._class_of(row)) if created else ("destroyed", "")
            stack = stack_at.get(int(records.at[row]), -1)
            flow = self._flows.get(row, 0)
            cells = (event, _word(HANDLE_KINDS, kind), _signed(handle), class_name, int(records["object"][row]))
            yield int(records.ts[row]), 0, stack, flow, *cells

    def _roots(self, rows: list[int], _: dict[int, int]) -> Iterator[Row]:
        records = self._log.records
        for row in rows:
            ts, address = int(records.ts[row]), int(records["start"][row])
            if records.kind[row] == Event.ROOT_REGISTER:
                kind = _word(ROOT_SOURCES, int(records["source"][row]))
                yield ts, 0, -1, 0, "registered", kind, self._text(row), _signed(int(records["size"][row])), address
            else:
                yield ts, 0, -1, 0, "given up", "", "", 0, address

    # ------------------------------------------------------------ locks and exceptions

    def _contentions(self, rows: list[int], stack_at: dict[int, int]) -> Iterator[Row]:
        """From the contention on an object to the next event of it on the thread."""
        records = self._log.records
        waiting: dict[int, int] = {}
        for row in rows:
            ts, kind, address = int(records.ts[row]), int(records["event"][row]), int(records["object"][row])
            first = waiting.pop(address, None)
            if kind == Monitor.CONTENTION:
                if first is not None:
                    yield self._contention(first, int(records.ts[first]), "unknown", stack_at)
                waiting[address] = row
            elif first is not None:
                yield self._contention(first, ts, OUTCOMES.get(kind, "unknown"), stack_at)
            elif kind in OUTCOMES:
                yield self._contention(row, ts, OUTCOMES[kind], stack_at)
        for row in waiting.values():
            yield self._contention(row, self._span[1], "still waiting", stack_at)

    def _contention(self, row: int, end_ts: int, outcome: str, stack_at: dict[int, int]) -> Row:
        records = self._log.records
        ts = int(records.ts[row])
        stack = stack_at.get(int(records.at[row]), -1)
        return ts, end_ts - ts, stack, 0, self._class_of(row), int(records["object"][row]), outcome

    def _exceptions(self, rows: list[int], stack_at: dict[int, int]) -> Iterator[Row]:
        """Each until the next clause of its thread that catches it: from version 14 on clauses name the exception."""
        records = self._log.records
        names_object = self._log.layout.events >= 14
        # Those not caught yet, in their order, and the same by exception: as one, where clauses name none.
        thrown: dict[int, None] = {}
        of_object: dict[int, list[int]] = {}
        for row in rows:
            is_clause = records.kind[row] == Event.CLAUSE
            same = of_object.setdefault(int(records["object"][row]) if names_object else 0, [])
            if not is_clause:
                thrown[row] = None
                same.append(row)
            elif records["type"][row] == CATCH and same:
                caught = same.pop()
                del thrown[caught]
                yield self._exception(caught, int(records.ts[row]), self._method_of(row), stack_at)
        for row in thrown:
            yield self._exception(row, int(records.ts[row]), "", stack_at)

    def _exception(self, row: int, end_ts: int, caught_in: str, stack_at: dict[int, int]) -> Row:
        records = self._log.records
        ts = int(records.ts[row])
        stack = stack_at.get(int(records.at[row]), -1)
        return ts, end_ts - ts, stack, 0, self._class_of(row), caught_in, int(records["object"][row])

    def _clauses(self, rows: list[int], stack_at: dict[int, int]) -> Iterator[Row]:
        records = self._log.records
        for row in rows:
            kind = CLAUSE_KINDS.get(int(records["type"][row]), "unknown")
            stack = stack_at.get(int(records.at[row]), -1)
            class_name = self._class_of(row) if records["object"][row] else ""
            index = _signed(int(records["index"][row]))
            yield int(records.ts[row]), 0, stack, 0, kind, self._method_of(row), index, class_name

    # ------------------------------------------------------------ code and metadata

    def _jit(self, rows: list[int], _: dict[int, int]) -> Iterator[Row]:
        records = self._log.records
        is_code = has_code(self._log, np.array(rows))
        for row, is_known in zip(rows, is_code.tolist(), strict=True):
            size, address = (int(records["size"][row]), int(records["code"][row])) if is_known else (0, 0)
            yield int(records.ts[row]), 0, -1, 0, self._text(row), size, address

    def _helpers(self, rows: list[int], _: dict[int, int]) -> Iterator[Row]:
        records = self._log.records
        first = 0 if self._log.layout.events >= 14 else 1
        for row in rows:
            kind, size = _word(HELPER_KINDS, int(records["type"][row]) - first), _signed(int(records["size"][row]))
            yield int(records.ts[row]), 0, -1, 0, kind, self._text(row), size, int(records["address"][row])

    def _metadata(self, rows: list[int], _: dict[int, int]) -> Iterator[Row]:
        records = self._log.records
        for row in rows:
            what, pointer = int(records["what"][row]), int(records["pointer"][row])
            event = METADATA_EVENTS[Event(int(records.kind[row]))]
            title = self._text(row) or self._titles.get(row, "")
            if what == Metadata.VTABLE:
                title = self._class_name(int(records["class"][row]), int(records.ts[row]))
            yield int(records.ts[row]), 0, -1, 0, WHAT.get(Metadata(what), ""), event, title, pointer

    def _sync_points(self, rows: list[int], _: dict[int, int]) -> Iterator[Row]:
        records = self._log.records
        for row in rows:
            yield int(records.ts[row]), 0, -1, 0, _word(SYNC_KINDS, int(records["kind"][row]))

    # ------------------------------------------------------------ words

    def _text(self, row: int) -> str:
        at = int(self._log.records["name"][row])
        return self._log.text(at) if at else ""

    def _class_of(self, row: int) -> str:
        return self._trace.strings[self._known.class_of(self._question_of[row])] or UNKNOWN_CLASS

    def _class_name(self, pointer: int, ts: int) -> str:
        frame = self._frames.classes.at(np.array([pointer], np.uint64), np.array([ts], np.int64))
        return self._trace.strings[int(self._frames.class_names(frame)[0])]

    def _method_of(self, row: int) -> str:
        records = self._log.records
        frame = self._frames.methods.at(records["method"][row : row + 1], records.ts[row : row + 1])
        return self._trace.func_name(int(self._trace.frames["func"][frame[0]]))


HANDLE_EVENTS = (
    Event.HANDLE_CREATED, Event.HANDLE_CREATED_BT, Event.HANDLE_DESTROYED, Event.HANDLE_DESTROYED_BT,
)  # fmt: skip


def _titles(log: Log) -> dict[int, str]:
    """For rows of metadata without a text the name of what they are about: its latest one until then, else the next one
    before it is unloaded."""
    records = log.records
    rows = np.concatenate([records.metadata(event, what) for event in METADATA_EVENTS for what in NAMED_APART])
    titles: dict[int, str] = {}
    names: dict[tuple[int, int], str] = {}
    nameless: dict[tuple[int, int], list[int]] = {}
    for row in rows[np.argsort(records.ts[rows], kind="stable")].tolist():
        key = int(records["what"][row]), int(records["pointer"][row])
        at = int(records["name"][row])
        if at:
            names[key] = log.text(at)
            titles.update(dict.fromkeys(nameless.pop(key, ()), names[key]))
        elif key in names:
            titles[row] = names[key]
        else:
            nameless.setdefault(key, []).append(row)
        if records.kind[row] == Event.UNLOAD:
            names.pop(key, None)
            nameless.pop(key, None)
    return titles


def _handle_flows(log: Log) -> dict[int, int]:
    """For the rows of the events of handles the number of the flow: from a handle's creation to its end."""
    records = log.records
    rows = records.of(*HANDLE_EVENTS)
    flows: dict[int, int] = {}
    living: dict[tuple[int, int], int] = {}
    for row in rows[np.argsort(records.ts[rows], kind="stable")].tolist():
        handle = int(records["type"][row]), int(records["handle"][row])
        if records.kind[row] in (Event.HANDLE_CREATED, Event.HANDLE_CREATED_BT):
            living[handle] = flows[row] = len(flows) + 1
        elif handle in living:
            flows[row] = living.pop(handle)
    return flows


def _word(words: tuple[str, ...], number: int) -> str:
    return words[number] if 0 <= number < len(words) else "unknown"


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
