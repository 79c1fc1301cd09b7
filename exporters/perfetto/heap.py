"""Heap snapshots, as heap graphs.

A dump is a number of packets on a sequence of its own, of one process and one time.

All objects of a snapshot are alive, also those that no recorded root leads to; the viewer shows only what a root leads
to. So of these objects as few as possible become roots of type UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count

import numpy as np

from traceferry.exporters.perfetto import fields as pb
from traceferry.exporters.perfetto._heap import write_heap_objects
from traceferry.exporters.perfetto._packets import OutputBuffer, varint
from traceferry.exporters.perfetto.packets import Packets, in_pieces
from traceferry.heap._dominators import reach
from traceferry.model import Array, HeapGraph, HeapSnapshot, Process, Trace, TraceBuilder, distinct

ROOT_PIECE = 1 << 14  # objects in a message
NO_CLASS = "(unknown class)"

# All others are ROOT_VM_INTERNAL.
ROOT_TYPES = {
    "stack": pb.HeapGraphRootType.ROOT_JAVA_FRAME,
    "finalizer queue": pb.HeapGraphRootType.ROOT_FINALIZING,
    "debugger": pb.HeapGraphRootType.ROOT_DEBUGGER,
    "ephemeron": pb.HeapGraphRootType.ROOT_REFERENCE_CLEANUP,
    **dict.fromkeys(("static", "thread static", "context static"), pb.HeapGraphRootType.ROOT_STICKY_CLASS),
    **dict.fromkeys(("GC handle", "handle", "toggle reference", "external"), pb.HeapGraphRootType.ROOT_JNI_GLOBAL),
    **dict.fromkeys(("threading", "thread pool"), pb.HeapGraphRootType.ROOT_THREAD_OBJECT),
}


def write_snapshot(trace: TraceBuilder, process: Process, snapshot: HeapSnapshot, packets: Packets) -> None:
    """Writes a dump at the snapshot's start. Its objects are in memory only in here."""
    graph = snapshot.load(trace)
    where = f"{process.pid} {snapshot.start_ts}"
    trace.report.note("root_names_dropped", int(np.count_nonzero(graph.roots["name"] >= 0)), where=where)
    unknown = _without_root(graph)
    trace.report.note("root_unknown", len(unknown), where=where)
    sequence, index = packets.sequence(), count()

    def write_part(fields: bytes | memoryview, continued: int | None = 1) -> None:
        head = pb.HeapGraph(pid=process.pid, continued=continued, index=next(index))
        packets.write_at(snapshot.start_ts, sequence, heap_graph=b"".join((head, fields)))

    classes, type_of_object = _numbered(graph.objects["class_name"])
    # The types are in a part, also where there are none.
    for types in list(in_pieces(_types(trace, classes))) or [[]]:
        write_part(b"".join(types))
    type_ids = type_of_object + np.int32(1)
    write_heap_objects(OutputBuffer(write_part), type_ids, graph.objects["size"], graph.offsets, graph.references)
    for roots in in_pieces(list(_roots(trace, graph, unknown))):
        write_part(b"".join(roots))
    write_part(b"", continued=None)


def _types(trace: Trace, classes: Array) -> list[bytes]:
    names = [trace.strings[name] if name >= 0 else NO_CLASS for name in classes.tolist()]
    # Only of arrays trace_processor takes references without a field's name.
    kind = pb.HeapGraphTypeKind.KIND_ARRAY
    return [
        pb.HeapGraph(types=pb.HeapGraphType(id=iid, class_name=name, kind=kind))
        for iid, name in enumerate(names, start=1)
    ]


def _roots(trace: Trace, graph: HeapGraph, unknown: Array) -> Iterator[bytes]:
    kinds = graph.roots["kind"]
    for kind in distinct(kinds).tolist():
        root_type = ROOT_TYPES.get(trace.strings[kind], pb.HeapGraphRootType.ROOT_VM_INTERNAL)
        yield from _roots_of(root_type, graph.roots["object"][kinds == kind])
    yield from _roots_of(pb.HeapGraphRootType.ROOT_UNKNOWN, unknown)


def _roots_of(root_type: int, objects: Array) -> Iterator[bytes]:
    ids = [varint(row + 1) for row in objects.tolist()]
    for at in range(0, len(ids), ROOT_PIECE):
        piece = b"".join(ids[at : at + ROOT_PIECE])
        yield pb.HeapGraph(roots=pb.HeapGraphRoot(object_ids=piece, root_type=root_type))


def _without_root(graph: HeapGraph) -> Array:
    """Rows of as few objects as lead to all that no root leads to.

    Of the objects from which a first search begins, none leads to a later one. So a second one, which takes them
    backwards, begins only from those that no other leads to.
    """
    search = partial(reach, graph.offsets, graph.references)
    from_roots = np.zeros(len(graph.objects), np.int32)
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
