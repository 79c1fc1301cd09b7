"""The contents of a recording: the answers of `traceferry info`, as JSON that scripts rely on. FORMATS.md describes
it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from traceferry.analysis.info.accesses import accesses_json
from traceferry.analysis.info.branches import branches_json
from traceferry.analysis.info.costs import costs_json
from traceferry.analysis.info.waits import waits_json
from traceferry.analysis.totals.collect import Collected, collect
from traceferry.analysis.totals.nameless import group_name, grouped_addresses
from traceferry.analysis.totals.ratios import counted_events, ratios_of
from traceferry.analysis.totals.rows import Rows
from traceferry.analysis.totals.sites import allocators
from traceferry.analysis.totals.sums_of_trace import (
    AMOUNT_NAMES,
    BYTES,
    COUNT,
    MARKERS,
    AllocationTotals,
    code_by_tier,
    ranked,
    total_amounts,
)  # fmt: skip
from traceferry.analysis.verdict import verdict_of
from traceferry.common.errors import UsageError
from traceferry.common.titles import title_of
from traceferry.heap.class_names import UNKNOWN_CLASS
from traceferry.heap.classes import ClassGrowth, LiveSite, growth, live_sites
from traceferry.model import (
    Array,
    Counter,
    Event,
    HeapGraph,
    MarkerType,
    Process,
    Table,
    Trace,
    TraceBuilder,
    distinct,
    sums,
)

TOP = 20
Json = dict[str, Any]

# By which columns functions are ranked, the largest first; ties go by the columns of "self", then by name.
SORTS = {
    "self": ("self_ns", "samples", "total_samples"),
    "total": ("total_ns", "total_samples"),
    "calls": ("calls",),
    "samples": ("samples", "total_samples"),
}


def summarize(
    trace: Trace,
    top: int = TOP,
    progress: Callable[[int], None] = lambda _: None,
    sort: str = "self",
    inputs: Sequence[str] = (),
) -> Json:
    """The interface of `info --json`. Loads each thread and each heap snapshot once, one at a time, and goes through
    the pieces of their tables once.

    top: the length of every ranked list; sort: how functions are ranked, a key of SORTS or the name of an event;
    inputs: the files as the user named them, for commands. calls counts enters; a recursive function's total_ns counts
    its outermost activation only, and so do its total_samples.
    Raises UsageError where no event has that name.
    """
    events = [event.name for event in trace.events]
    if sort not in (*SORTS, *events):
        raise UsageError(f"cannot sort by {sort!r}: {', '.join([*SORTS, *events])}")
    return summary_of(collect(trace, progress=progress), top, sort, inputs)


def summary_of(collected: Collected, top: int = TOP, sort: str = "self", inputs: Sequence[str] = ()) -> Json:
    """Returns what `summarize` returns, of what was added up before. Loads each heap snapshot once."""
    trace = collected.trace
    processes = [
        {
            "pid": process.pid,
            "name": process.name,
            "cgroup": process.cgroup or None,
            "namespaces": process.namespaces or None,
            **counts._asdict(),
            "counters": [_counter(counter) for counter in process.counters],
            "heap_snapshots": _heap_snapshots(trace, process, top),
        }
        for process, counts in zip(trace.processes, collected.processes, strict=True)
    ]
    # The process 0 is that of processors without work.
    amounts = [
        (
            process["name"],
            sum(t["samples"] + t["calls"] + t["allocations"]["count"] for t in process["threads"] if process["pid"]),
        )
        for process in processes
    ]
    summary = {
        "title": title_of(amounts),
        "inputs": [
            {"path": i.path, "format": i.format, "version": i.version, "producer": i.producer} for i in trace.inputs
        ],
        "time": {
            "clock": trace.clock.kind if trace.clock else None,
            "duration_ns": sums.limited(trace.end_ts - trace.start_ts),
            "unix_start_ns": None if trace.unix_start_ns is None else sums.limited(trace.unix_start_ns),
        },
        "costs": costs_json(collected),
        "processes": processes,
        "events": _events(collected),
        "functions": {
            "total": _n_functions(trace),
            "samples": collected.n_samples,
            "sample_unit": trace.sample_unit,
            "self_ns": sums.total(collected.calls_by_func()[2]),
            "top": functions_json(collected, top, sort),
        },
        "allocations": _allocations(trace, collected.allocations, top),
        "markers": [_markers(kind, groups, top) for kind, groups in collected.markers.by_type().items()],
        "intervals": _intervals(collected.markers.lasting(), top),
        "coverage": _coverage(trace, top),
        "scheduling": waits_json(trace, collected.waits, top),
        "branches": branches_json(trace, collected.branches, top),
        "accesses": [accesses_json(trace, row, totals, top) for row, totals in collected.accesses.items()],
        "code_objects": len(trace.code),
        "tiers": _tiers(trace),
        "sources": len(trace.sources),
    }
    sums.note_saturated(trace.report, summary, where="info")
    verdict = verdict_of(trace, collected.samples, inputs)
    return {"verdict": verdict.as_json(), **summary, "issues": [issue.as_json() for issue in trace.report]}


def _n_functions(trace: Trace) -> int:
    """Returns how many functions run, or were compiled: of several names of one, the others have no frames."""
    funcs = distinct(np.concatenate((trace.frames["func"], trace.code["func"])))
    return int(np.count_nonzero(funcs >= 0))


def functions_json(collected: Collected, top: int, sort: str) -> list[Json]:
    """Returns those that were called or sampled, in the same order on every run. Addresses of a library that nothing
    names are one."""
    trace, group = collected.trace, grouped_addresses(collected.trace)
    columns, weights = collected.by_func(group), collected.weights_by_func(group)
    ranked_by = [columns[name] for name in (*SORTS.get(sort, ()), *SORTS["self"])]
    ranked_by = [*(column for row in _rows_named(trace, sort) for column in weights.get(row, ())), *ranked_by]
    is_seen = (columns["calls"] > 0) | (columns["total_samples"] > 0)
    for _, total in weights.values():
        is_seen |= total > 0
    order = ranked(np.flatnonzero(is_seen), ranked_by, trace.func_name, top)
    n_in_group = _group_sizes(collected, group)
    return [
        _function(trace, func, n_in_group.get(func, 1))
        | {name: int(c[func]) for name, c in columns.items()}
        | _weights(trace, {row: (int(own[func]), int(total[func])) for row, (own, total) in weights.items()})
        for func in order
    ]


def _rows_named(trace: Trace, name: str) -> list[int]:
    return [row for row, event in enumerate(trace.events) if event.name == name]


def _weights(trace: Trace, weights: dict[int, tuple[int, int]]) -> Json:
    """Returns what a function has of each event, itself and with what it calls, and the ratios of what it has itself;
    nothing where only one event was recorded."""
    if not weights:
        return {}
    own = {row: amount for row, (amount, _) in weights.items()}
    return {
        "weights": [
            {"event": trace.events[row].name, "unit": trace.events[row].unit, "self": amount, "total": total}
            for row, (amount, total) in weights.items()
        ],
        "ratios": _ratios(trace.events, own),
    }


def _ratios(events: Sequence[Event], amounts: dict[int, int]) -> list[Json]:
    return [{"name": ratio.name, "value": ratio.of(amounts)} for ratio in ratios_of(events)]


def _events(collected: Collected) -> Json:
    """Returns the events, with their samples and weights in all threads together, and the ratios of these."""
    trace = collected.trace
    shown = ("name", "unit", "kind", "interval_ns", "period", "is_scaled")
    recorded = [
        {key: getattr(event, key) for key in shown}
        | {"leader": trace.events[event.leader].name if event.leader >= 0 else None}
        | {"samples": amounts.samples, "weight": amounts.weight}
        for event, amounts in zip(trace.events, collected.of_events, strict=True)
    ]
    weights = {row: amounts.weight for row, amounts in enumerate(collected.of_events)}
    counted = counted_events(trace)
    return {
        "recorded": recorded,
        "ratios": _ratios(trace.events, weights)
        + _ratios([event for event, _ in counted], {row: amount for row, (_, amount) in enumerate(counted)}),
    }


def _group_sizes(collected: Collected, group: Array) -> dict[int, int]:
    """Returns how many functions of each group have samples, by its func; of groups of several."""
    alone = np.arange(len(group), dtype=np.int32)
    if np.array_equal(group, alone):
        return {}
    _, samples = collected.samples.by_func(alone)
    sizes = np.bincount(group[samples > 0], minlength=len(group))
    return {func: int(sizes[func]) for func in np.flatnonzero(sizes > 1).tolist()}


def _function(trace: Trace, func: int, n_in_group: int) -> Json:
    source = int(trace.funcs["source"][func])
    return {
        "name": group_name(trace.func_name(func), n_in_group),
        "file": trace.strings[int(trace.sources["path"][source])] if source >= 0 else None,
        "line": int(trace.funcs["line"][func]) or None,
    }


def _tiers(trace: Trace) -> list[Json]:
    """Code objects and their bytes by tier, the largest first."""
    tiers = code_by_tier(trace)
    named = [(name, n, n_bytes) for (name,), (n, n_bytes) in zip(tiers.keys, tiers.amounts.tolist(), strict=True)]
    ranked = sorted(named, key=lambda tier: (-tier[2], tier[0]))
    return [{"name": name, "objects": n, "bytes": n_bytes} for name, n, n_bytes in ranked]


def _counter(counter: Counter) -> Json:
    # Of amounts, the first one's time says only when they begin.
    values = counter.values["value"][int(counter.adds_up) :].astype(np.float64)
    known = (values[0], values[-1], values.min(), values.max()) if len(values) else ()
    figures = zip_longest(("first", "last", "min", "max"), map(float, known))
    total = float(values.sum()) if counter.adds_up else None
    return {"name": counter.name, "unit": counter.unit, "values": len(values), **dict(figures), "total": total}


# ---------------------------------------------------------------- memory


def _allocations(trace: TraceBuilder, totals: AllocationTotals, top: int) -> Json:
    """Row 0 of the amounts has no class, or no site."""
    by_class, by_site = totals.by_class, totals.by_site(trace)
    row_of_caller = np.append(np.int64(0), allocators(trace)[: len(by_site) - 1] + 1)
    by_site = np.stack([sums.total_by(row_of_caller, column, len(by_site)) for column in by_site.T], axis=1)
    has_class, has_site = (np.flatnonzero(amounts.any(axis=1)) for amounts in (by_class, by_site))
    classes = ranked(has_class, (by_class[:, BYTES],), lambda row: trace.strings[row - 1], top)
    sites = ranked(has_site, (by_site[:, BYTES], by_site[:, COUNT]), lambda row: row, top)
    return {
        **_amounts(total_amounts(by_class)),
        "classes": [{"name": trace.strings[row - 1] or UNKNOWN_CLASS, **_amounts(by_class[row])} for row in classes],
        "sites": [{"stack": _stack_names(trace, row - 1), **_amounts(by_site[row])} for row in sites],
    }


def _live_sites(trace: Trace, graph: HeapGraph) -> list[LiveSite]:
    """Returns the sites of the objects of a snapshot, those of one caller and class together, those with the most bytes
    first."""
    callers = allocators(trace)
    found: dict[tuple[int, str], LiveSite] = {}
    for of in live_sites(trace, graph):
        key = int(callers[of.stack]) if of.stack >= 0 else of.stack, of.class_name
        known = found.get(key, LiveSite(*key, 0, 0))
        found[key] = LiveSite(*key, known.objects + of.objects, known.bytes + of.bytes)
    return sorted(found.values(), key=lambda of: -of.bytes)


def _amounts(row: Array) -> Json:
    return dict(zip(AMOUNT_NAMES, row.tolist(), strict=True))


def _stack_names(trace: TraceBuilder, stack: int) -> list[str]:
    """The functions of a stack, the innermost first; empty if it is -1."""
    prefix, frame, func = trace.stacks["prefix"], trace.stacks["frame"], trace.frames["func"]
    names = []
    while stack >= 0:
        names.append(trace.func_name(int(func[frame[stack]])))
        stack = int(prefix[stack])
    return names


def _heap_snapshots(trace: TraceBuilder, process: Process, top: int) -> list[Json]:
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
                        "stack": _stack_names(trace, of.stack),
                        "objects": of.objects,
                        "bytes": of.bytes,
                    }
                    for of in _live_sites(trace, graph)[:top]
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


# ---------------------------------------------------------------- markers and coverage


def _markers(marker_type: MarkerType, groups: Rows, top: int) -> Json:
    """One type: its groups by their total time, then by their number."""
    columns, n = groups.columns, len(MARKERS.columns)
    found = zip(groups.keys, groups.amounts.tolist(), strict=True)
    ranked = sorted(found, key=lambda group: (-group[1][1], -group[1][0], group[0]))
    return {
        "type": marker_type.name,
        "group_by": list(marker_type.group_by),
        "groups": len(groups.keys),
        "top": [
            {
                "by": dict(zip(marker_type.group_by, values, strict=True)),
                **dict(zip(columns[:n], amounts[:n], strict=True)),
                "sums": dict(zip(columns[n:], amounts[n:], strict=True)),
            }
            for values, amounts in ranked[:top]
        ],
    }


def _intervals(lasting: Rows, top: int) -> list[Json]:
    """The types of markers that last, by their total time."""
    found = zip(lasting.keys, lasting.amounts.tolist(), strict=True)
    ranked = sorted(found, key=lambda one: (-one[1][1], -one[1][0], one[0]))
    return [{"type": name, **dict(zip(lasting.columns, amounts, strict=True))} for (name,), amounts in ranked[:top]]


def _coverage(trace: Trace, top: int) -> Json | None:
    """Statements, and how many of them ran: in all, and by assembly, class and method, those with most left first."""
    table = trace.coverage
    if not len(table):
        return None
    return {
        **_covered(table),
        "assemblies": _covered_by(trace, table, ("assembly",), len(table)),
        "classes": _covered_by(trace, table, ("assembly", "class_name"), top),
        "methods": _covered_by(trace, table, ("assembly", "class_name", "method", "path"), top),
    }


def _covered(table: Table) -> Json:
    return {"statements": sums.total(table["statements"]), "covered": sums.total(table["covered"])}


COVERAGE_NAMES = {"assembly": "assembly", "class_name": "class", "method": "method", "path": "file"}


def _covered_by(trace: Trace, table: Table, keys: tuple[str, ...], most: int) -> list[Json]:
    values, group = np.unique(np.stack([table[key] for key in keys], axis=1), axis=0, return_inverse=True)
    statements, covered = (
        sums.total_by(group.reshape(-1), table[name], len(values)) for name in ("statements", "covered")
    )
    names = [[trace.strings[index] or None for index in row] for row in values.tolist()]
    order = ranked(
        np.arange(len(values)),
        (statements - covered, statements),
        lambda row: [name or "" for name in names[row]],
        most,
    )
    return [
        {
            **dict(zip((COVERAGE_NAMES[key] for key in keys), names[row], strict=True)),
            "statements": int(statements[row]),
            "covered": int(covered[row]),
        }
        for row in order
    ]
