"""Heap snapshots, as heap graphs.

Field numbers: protos/third_party/android/art/heap_graph.proto, an extension of TracePacket. A dump is a number of
packets on a sequence of its own, of one process and one time.

All objects of a snapshot are alive, also those that no recorded root leads to; the viewer shows only what a root leads
to. So of these objects as few as possible become roots of type UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from functools import partial

import numpy as np

from traceferry.exporters.perfetto import heap_kernel
from traceferry.exporters.perfetto.packets import Packet, Packets, filled, in_pieces
from traceferry.exporters.perfetto.proto import integer, message, text, varints
from traceferry.heap._dominators import reach
from traceferry.model import Array, HeapGraph, HeapSnapshot, Process, Trace, distinct

ROOT_PIECE = 1 << 14  # objects in a message
NO_CLASS = "(unknown class)"
# HeapGraphType.Kind of all types. Only of arrays trace_processor takes references without a field's name.
ARRAY = 4


class Graph(IntEnum):
    """com.android.art.tracing.HeapGraph"""

    PID = 1
    CONTINUED = 5
    INDEX = 6
    ROOTS = 7
    TYPES = 9


class RootType(IntEnum):
    """com.android.art.tracing.HeapGraphRoot.Type"""

    UNKNOWN = 0
    JNI_GLOBAL = 1
    JAVA_FRAME = 3
    STICKY_CLASS = 5
    THREAD_OBJECT = 8
    FINALIZING = 10
    DEBUGGER = 11
    REFERENCE_CLEANUP = 12
    VM_INTERNAL = 13


ROOT_TYPES = {
    "stack": RootType.JAVA_FRAME,
    "finalizer queue": RootType.FINALIZING,
    "static": RootType.STICKY_CLASS,
    "thread static": RootType.STICKY_CLASS,
    "context static": RootType.STICKY_CLASS,
    "GC handle": RootType.JNI_GLOBAL,
    "handle": RootType.JNI_GLOBAL,
    "toggle reference": RootType.JNI_GLOBAL,
    "external": RootType.JNI_GLOBAL,
    "threading": RootType.THREAD_OBJECT,
    "thread pool": RootType.THREAD_OBJECT,
    "debugger": RootType.DEBUGGER,
    "ephemeron": RootType.REFERENCE_CLEANUP,
    "JIT": RootType.VM_INTERNAL,
    "domain": RootType.VM_INTERNAL,
    "reflection": RootType.VM_INTERNAL,
    "marshal": RootType.VM_INTERNAL,
    "other": RootType.VM_INTERNAL,
    "miscellaneous": RootType.VM_INTERNAL,
}


def write_snapshot(trace: Trace, process: Process, snapshot: HeapSnapshot, packets: Packets) -> None:
    """A dump at the snapshot's start. Its objects are in memory only in here."""
    graph = snapshot.load()
    where = f"{process.pid} {snapshot.start_ts}"
    trace.report.note("root_names_dropped", int(np.count_nonzero(graph.roots["name"] >= 0)), where=where)
    unknown = _without_root(graph)
    trace.report.note("root_unknown", len(unknown), where=where)
    sequence = packets.sequence()
    index = 0
    for index, part in enumerate(_parts(trace, graph, unknown)):
        fields = (integer(Graph.PID, process.pid), integer(Graph.CONTINUED, 1), integer(Graph.INDEX, index))
        packets.write_at(snapshot.start_ts, message(Packet.HEAP_GRAPH, *fields, *part), sequence=sequence)
    last = (integer(Graph.PID, process.pid), integer(Graph.INDEX, index + 1))
    packets.write_at(snapshot.start_ts, message(Packet.HEAP_GRAPH, *last), sequence=sequence)


def _parts(trace: Trace, graph: HeapGraph, unknown: Array) -> Iterator[list[bytes]]:
    """Fields of the graph, as many as a packet takes. The first part has the types, so there is one. unknown: the rows
    of objects that get a root of an unknown kind."""
    classes, type_of_object = _numbered(graph.objects["class_name"])
    names = [trace.strings[name] if name >= 0 else NO_CLASS for name in classes.tolist()]
    types = [
        message(Graph.TYPES, integer(1, type_id), text(3, name), integer(7, ARRAY))  # id, class_name, kind
        for type_id, name in enumerate(names, start=1)
    ]
    yield from in_pieces(types) if types else [[]]
    for objects in _objects(graph, type_of_object + np.int32(1)):
        yield [objects]
    yield from in_pieces(list(_roots(trace, graph, unknown)))


def _objects(graph: HeapGraph, type_ids: Array) -> Iterator[bytes]:
    kernel = partial(heap_kernel.heap_objects, type_ids, graph.objects["size"], graph.offsets, graph.references)
    return (bytes(piece) for piece, _ in filled(kernel, len(type_ids)))


def _roots(trace: Trace, graph: HeapGraph, unknown: Array) -> Iterator[bytes]:
    kinds = graph.roots["kind"]
    for kind in distinct(kinds).tolist():
        root_type = ROOT_TYPES.get(trace.strings[kind], RootType.VM_INTERNAL)
        yield from _roots_of(root_type, graph.roots["object"][kinds == kind])
    yield from _roots_of(RootType.UNKNOWN, unknown)


def _roots_of(root_type: RootType, objects: Array) -> Iterator[bytes]:
    ids = varints(objects.astype(np.int64) + 1)
    for at in range(0, len(ids), ROOT_PIECE):
        yield message(Graph.ROOTS, message(1, *ids[at : at + ROOT_PIECE]), integer(2, root_type))


def _without_root(graph: HeapGraph) -> Array:
    """Rows of as few objects as lead to all that no root leads to.

    Of the objects from which a first search begins, none leads to a later one. So a second one, which takes them
    backwards, begins only from those that no other leads to.
    """
    search = partial(reach, graph.offsets, graph.references)
    from_roots = np.zeros(len(graph.objects), np.uint8)
    search(graph.roots["object"], from_roots)
    begun = search(np.flatnonzero(from_roots == 0).astype(np.int32), from_roots.copy())
    return np.sort(search(begun[::-1].copy(), from_roots))


def _numbered(values: Array) -> tuple[Array, Array]:
    """(distinct values, rising; for each value which of them it is). values: small, from -1 on. Sorting them would take
    many times as long."""
    occurs = np.zeros(int(values.max(initial=-1)) + 2, bool)
    occurs[values + 1] = True
    numbers = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(occurs) - 1, numbers[values + 1]
