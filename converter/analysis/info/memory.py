"""What `traceferry info` says of memory: allocations by class and site, heap snapshots and their growth."""

from __future__ import annotations

from typing import Any

import numpy as np

from traceferry.analysis.totals.sums_of_trace import (
    AMOUNT_NAMES,
    BYTES,
    COUNT,
    AllocationTotals,
    ranked,
    total_amounts,
)
from traceferry.heap.classes import UNKNOWN_CLASS, ClassGrowth, growth, live_sites
from traceferry.model import Array, HeapGraph, Process, Table, TraceBuilder, sums

Json = dict[str, Any]


def allocations(trace: TraceBuilder, totals: AllocationTotals, top: int) -> Json:
    """Row 0 of the amounts has no class, or no site."""
    by_class, by_site = totals.by_class, totals.by_site(trace)
    classes = ranked(np.flatnonzero(by_class.any(axis=1)), (by_class[:, BYTES],), lambda row: trace.strings[row - 1])
    sites = ranked(np.flatnonzero(by_site.any(axis=1)), (by_site[:, BYTES], by_site[:, COUNT]), lambda row: row)
    return {
        **_amounts(total_amounts(by_class)),
        "classes": [
            {"name": trace.strings[row - 1] or UNKNOWN_CLASS, **_amounts(by_class[row])} for row in classes[:top]
        ],
        "sites": [{"stack": stack_names(trace, row - 1), **_amounts(by_site[row])} for row in sites[:top]],
    }


def _amounts(row: Array) -> Json:
    return dict(zip(AMOUNT_NAMES, row.tolist(), strict=True))


def stack_names(trace: TraceBuilder, stack: int) -> list[str]:
    """The functions of a stack, the innermost first; empty if it is -1."""
    prefix, frame, func = trace.stacks["prefix"], trace.stacks["frame"], trace.frames["func"]
    names = []
    while stack >= 0:
        names.append(trace.func_name(int(func[frame[stack]])))
        stack = int(prefix[stack])
    return names


def heap_snapshots(trace: TraceBuilder, process: Process, top: int) -> list[Json]:
    """Returns each snapshot. The graphs of two are in memory at one time: one, and the one before."""
    found: list[Json] = []
    before: HeapGraph | None = None
    for snapshot in process.heap_snapshots:
        graph = snapshot.load(trace)
        found.append(
            {
                "ts_ns": snapshot.start_ts,
                "at_ns": sums.limited(snapshot.start_ts - trace.start_ts),
                "objects": len(graph.objects),
                "bytes": sums.total(graph.objects["size"]),
                "references": len(graph.references),
                "roots": len(graph.roots),
                "root_kinds": _root_kinds(trace, graph.roots),
                "classes": _classes(growth(trace, graph, graph), top),
                "growth": None if before is None else _growth(growth(trace, before, graph), top),
                "sites": [
                    {
                        "name": of.class_name,
                        "stack": stack_names(trace, of.stack),
                        "objects": of.objects,
                        "bytes": of.bytes,
                    }
                    for of in live_sites(trace, graph)[:top]
                ],
            }
        )
        before = graph
    return found


def _classes(rows: list[ClassGrowth], top: int) -> list[Json]:
    alive = sorted(rows, key=lambda row: (-row.bytes_after, row.class_name))
    return [{"name": row.class_name, "objects": row.objects_after, "bytes": row.bytes_after} for row in alive[:top]]


def _growth(rows: list[ClassGrowth], top: int) -> list[Json]:
    changed = [row for row in rows if row.objects or row.bytes]
    return [{"name": row.class_name, **dict(zip(row._fields[1:], row[1:], strict=True))} for row in changed[:top]]


def _root_kinds(trace: TraceBuilder, roots: Table) -> list[Json]:
    """Returns how many roots there are of each kind, the most first."""
    kinds, counts = np.unique(roots["kind"], return_counts=True)
    named = [(trace.strings[kind] or None, n) for kind, n in zip(kinds.tolist(), counts.tolist(), strict=True)]
    return [{"kind": kind, "count": n} for kind, n in sorted(named, key=lambda item: (-item[1], item[0] or ""))]
