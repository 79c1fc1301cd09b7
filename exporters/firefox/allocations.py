"""Allocations as the Firefox Profiler's formats have them: jsAllocations with the class of what was allocated,
nativeAllocations with frees as well, so that the viewer can tell what is retained.

Both are written from all allocations of a thread: the viewer chooses between them in one menu. Each column is written
from the table's pieces, which are made again for it. Facts: src/types/profile.ts, and src/types/gecko-profile.ts for
the raw format, where allocations are markers of two known types.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from traceferry.exporters.firefox.markers import INSTANT, Backtraces, StringTable
from traceferry.exporters.firefox.tables import Stacks
from traceferry.exporters.json.objects import MISSING
from traceferry.exporters.json.stream import Counted, JsonWriter
from traceferry.model import Array, Table, Thread, Trace

# What Gecko says of JavaScript's objects beside their class; the viewer shows none of it.
TYPE_NAME, COARSE_TYPE, IN_NURSERY = "", "", False


def write_allocations(json: JsonWriter, trace: Trace, thread: Thread, allocations: Table, stacks: Stacks) -> None:
    """Writes the members jsAllocations and nativeAllocations of a thread, if it has any."""
    if len(allocations):
        _write_js_allocations(json, trace, allocations, stacks)
        _write_native_allocations(json, trace, thread, allocations, stacks)


def _write_js_allocations(json: JsonWriter, trace: Trace, allocations: Table, stacks: Stacks) -> None:
    times = Counted(ts - trace.start_ts for ts in _made_column(allocations, "ts"))
    with json.object("jsAllocations"):
        json.millis("time", times)
        json.texts("className", _made_column(allocations, "class_name"), trace.strings)
        json.repeated("typeName", TYPE_NAME, times.n)
        json.repeated("coarseType", COARSE_TYPE, times.n)
        json.longs("weight", _made_column(allocations, "size"))
        json.member("weightType", "bytes")
        json.repeated("inNursery", IN_NURSERY, times.n)
        json.ints("stack", (stacks.of_column(stack) for stack in _made_column(allocations, "stack")))
        json.member("length", times.n)


def _write_native_allocations(
    json: JsonWriter, trace: Trace, thread: Thread, allocations: Table, stacks: Stacks
) -> None:
    times = Counted(piece["ts"] - trace.start_ts for piece in allocations.pieces())
    with json.object("nativeAllocations"):
        json.millis("time", times)
        json.longs("weight", (piece["size"] for piece in allocations.pieces()))
        json.member("weightType", "bytes")
        json.ints("stack", (stacks.of_column(piece["stack"]) for piece in allocations.pieces()))
        json.longs("memoryAddress", _identities(allocations))
        json.repeated("threadId", thread.tid, times.n)
        json.member("length", times.n)


def allocation_rows(
    trace: Trace, thread: Thread, allocations: Table, strings: StringTable, backtraces: Backtraces
) -> Iterator[list[Any]]:
    """Yields the same as rows of the raw format's markers, of which the viewer makes the two tables."""
    kinds = {
        "JS allocation": _js_payloads(trace, allocations),
        "Native allocation": _native_payloads(thread, allocations),
    }
    for kind, payloads in kinds.items():
        for piece, rows in payloads:
            name = strings.intern(kind)
            at_ms = ((piece["ts"] - trace.start_ts) / 1e6).tolist()
            causes = backtraces.of(piece["stack"], piece["ts"])
            for time, row, cause in zip(at_ms, rows, causes.each(), strict=True):
                known = {} if cause is MISSING else {causes.key: cause}
                yield [name, time, None, INSTANT, 0, {"type": kind, **row, **known}]


def _js_payloads(trace: Trace, allocations: Table) -> Iterator[tuple[Table, Iterator[dict[str, Any]]]]:
    constant = {"typeName": TYPE_NAME, "coarseType": COARSE_TYPE, "inNursery": IN_NURSERY}
    for made in _made(allocations):
        columns = zip(_class_names(trace, made["class_name"]), made["size"].tolist(), strict=True)
        yield made, ({"className": name, "size": size, **constant} for name, size in columns)


def _native_payloads(thread: Thread, allocations: Table) -> Iterator[tuple[Table, Iterator[dict[str, Any]]]]:
    for piece, identity in zip(allocations.pieces(), _identities(allocations), strict=True):
        columns = zip(piece["size"].tolist(), identity.tolist(), strict=True)
        yield piece, ({"size": size, "memoryAddress": i, "threadId": thread.tid} for size, i in columns)


def _made(allocations: Table) -> Iterator[Table]:
    """Yields the rows that allocate, in pieces."""
    for piece in allocations.pieces():
        allocates = piece["size"] > 0
        yield piece if allocates.all() else piece.take(allocates)


def _made_column(allocations: Table, name: str) -> Iterator[Array]:
    """Yields a column of the rows that allocate, in pieces."""
    for piece in allocations.pieces():
        rows, column = np.flatnonzero(piece["size"] > 0), piece[name]
        yield column if len(rows) == len(column) else column.take(rows)


def _class_names(trace: Trace, class_name: Array) -> Iterator[str]:
    used, place = np.unique(class_name, return_inverse=True)
    return map([trace.strings[name] for name in used.tolist()].__getitem__, place.tolist())


def _identities(allocations: Table) -> Iterator[Array]:
    """Yields what the viewer matches frees with. A row of an unknown object gets a number that no other row has."""
    first = 0
    for piece in allocations.pieces():
        identity = piece["object"]
        if identity.min(initial=0) < 0:
            identity = np.where(identity < 0, -1 - np.arange(first, first + len(piece)), identity)
        yield identity
        first += len(piece)
