"""What is in a recording: the answers of `traceferry info`, as JSON that scripts rely on and as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from converter.calls import TotalsBuilder, n_calls
from converter.durations import format_duration
from converter.model import Array, HeapSnapshot, Thread, ThreadData, Trace

TOP = 20


def summarize(trace: Trace, top: int = TOP, progress: Callable[[int], None] = lambda _: None) -> dict[str, Any]:
    """The interface of `info --json`: see FORMATS.md. Loads each thread once, one at a time.

    calls counts enters; a recursive function's total_ns counts its outermost activation only, and so do its
    total_samples.
    """
    totals = TotalsBuilder(trace.frames["func"], len(trace.funcs))
    samples = SampleTotals(trace)
    processes: list[dict[str, Any]] = []
    for process in trace.processes:
        threads: list[dict[str, Any]] = []
        for thread in process.threads:
            data = thread.load()
            totals.add(data.calls)
            if not thread.sample_unit:
                samples.add(data.samples["stack"])
            threads.append(_thread(thread, data))
            progress(thread.n_records)
        processes.append(
            {
                "pid": process.pid,
                "name": process.name,
                "threads": threads,
                "counters": [
                    {
                        "name": c.name,
                        "unit": c.unit,
                        "values": len(c.values),
                        "last": float(c.values["value"][-1]) if len(c.values) else None,
                    }
                    for c in process.counters
                ],
                "heap_snapshots": [_heap_snapshot(snapshot) for snapshot in process.heap_snapshots],
            }
        )
    return {
        "inputs": [
            {"path": i.path, "format": i.format, "version": i.version, "producer": i.producer} for i in trace.inputs
        ],
        "time": {
            "clock": trace.clock.kind if trace.clock else None,
            "duration_ns": trace.end_ts - trace.start_ts,
            "unix_start_ns": trace.unix_start_ns,
        },
        "processes": processes,
        "functions": {"total": len(trace.funcs), "top": _top(trace, totals, samples, top)},
        "code_objects": len(trace.code),
        "tiers": _tiers(trace),
        "sources": len(trace.sources),
        "issues": [issue.as_json() for issue in trace.report],
    }


def _thread(thread: Thread, data: ThreadData) -> dict[str, Any]:
    sizes = data.allocations["size"]
    return {
        "tid": thread.tid,
        "name": thread.name,
        "samples": len(data.samples),
        "sample_unit": thread.sample_unit or None,
        "calls": n_calls(data.calls),
        "markers": {marker_type.name: len(table) for marker_type, table in data.markers.items()},
        "allocations": {"count": int((sizes > 0).sum()), "bytes": int(sizes[sizes > 0].sum())},
    }


def _heap_snapshot(snapshot: HeapSnapshot) -> dict[str, Any]:
    graph = snapshot.load()
    return {
        "ts_ns": snapshot.start_ts,
        "objects": len(graph.objects),
        "bytes": int(graph.objects["size"].sum()),
        "references": len(graph.references),
        "roots": len(graph.roots),
    }


class SampleTotals:
    """Counts samples by function: those with it as the leaf, and those with it anywhere."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._of_stack = np.zeros(0, np.int64)

    def add(self, stack: Array) -> None:
        counts = np.bincount(stack[stack >= 0], minlength=len(self._of_stack))
        counts[: len(self._of_stack)] += self._of_stack
        self._of_stack = counts

    def by_func(self) -> tuple[Array, Array]:
        """(samples, total samples) of each func."""
        trace, n = self._trace, len(self._of_stack)
        n_funcs = len(trace.funcs)
        func = trace.frames["func"][trace.stacks["frame"][:n]]
        prefix = trace.stacks["prefix"][:n]
        own = np.bincount(func, self._of_stack, n_funcs)
        total = self._of_stack.copy()
        depth = _depths(prefix)
        order = np.argsort(-depth, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(depth[order])) + 1) if n else ():
            called = rows[prefix[rows] >= 0]
            np.add.at(total, prefix[called], total[called])
        outermost = np.where(_recurs(prefix, func), 0, total)
        return own.astype(np.int64), np.bincount(func, outermost, n_funcs).astype(np.int64)


def _depths(prefix: Array) -> Array:
    depth = np.zeros(len(prefix), np.int64)
    above = prefix
    while np.any(deeper := above >= 0):
        depth += deeper
        above = np.where(deeper, prefix[above], -1)
    return depth


def _recurs(prefix: Array, func: Array) -> Array:
    """Whether a stack's function is also further up in it."""
    found = np.zeros(len(prefix), bool)
    rows, above = np.arange(len(prefix)), prefix
    while len(rows := rows[above >= 0]):
        above = above[above >= 0]
        same = func[above] == func[rows]
        found[rows[same]] = True
        rows, above = rows[~same], prefix[above[~same]]
    return found


def _tiers(trace: Trace) -> list[dict[str, Any]]:
    """Code objects and their bytes by tier, the largest first."""
    tier, size = trace.code["tier"], trace.code["size"]
    names = [*(trace.strings[name] for name in trace.tiers["name"].tolist()), "none"]
    by_name: dict[str, tuple[int, int]] = {}
    for row in np.unique(tier).tolist():
        mine = tier == row
        n, n_bytes = by_name.get(names[row], (0, 0))
        by_name[names[row]] = n + int(mine.sum()), n_bytes + int(size[mine].sum())
    ranked = sorted(by_name.items(), key=lambda item: (-item[1][1], item[0]))
    return [{"name": name, "objects": n, "bytes": n_bytes} for name, (n, n_bytes) in ranked]


def _top(trace: Trace, builder: TotalsBuilder, counts: SampleTotals, top: int) -> list[dict[str, Any]]:
    """By self time, then samples, then name: the same order on every run."""
    t = builder.totals
    samples, total_samples = counts.by_func()
    seen = np.flatnonzero((t.n_calls > 0) | (total_samples > 0))
    order = sorted(
        seen.tolist(),
        key=lambda f: (-int(t.self_ns[f]), -int(samples[f]), -int(total_samples[f]), trace.func_name(f), f),
    )
    rows = []
    for func in order[:top]:
        source = int(trace.funcs["source"][func])
        rows.append(
            {
                "name": trace.func_name(func),
                "file": trace.strings[int(trace.sources["path"][source])] if source >= 0 else None,
                "line": int(trace.funcs["line"][func]) or None,
                "calls": int(t.n_calls[func]),
                "total_ns": int(t.total_ns[func]),
                "self_ns": int(t.self_ns[func]),
                "samples": int(samples[func]),
                "total_samples": int(total_samples[func]),
            }
        )
    return rows


def as_text(summary: dict[str, Any]) -> str:
    """For people. Losses come last, where the eye rests."""
    time = summary["time"]
    lines = [f"{i['path']}: {i['producer']}, {i['format']} {i['version']}" for i in summary["inputs"]]
    lines.append(f"{format_duration(time['duration_ns'])} on the {time['clock']} clock")
    for process in summary["processes"]:
        lines += ["", f"process {process['pid']} {process['name']}"]
        for thread in process["threads"]:
            if thread["sample_unit"]:
                continue
            counts = {"calls": thread["calls"], "samples": thread["samples"], **thread["markers"]}
            held = ", ".join(f"{n} {what}" for what, n in counts.items() if n)
            lines.append(f"  thread {thread['tid']:<8} {thread['name']:24} {held}")
        lines += [f"  counter {c['name']}: {c['values']} values" for c in process["counters"]]
    lines += _code_as_text(summary["tiers"])
    lines += _functions_as_text(summary["functions"])
    if summary["issues"]:
        lines.append("")
    for issue in summary["issues"]:
        detail = f": {issue['detail']}" if issue["detail"] else ""
        place = f", first at offset {issue['offset']}" if issue["offset"] is not None else ""
        lines.append(f"{issue['severity']}: {issue['title']}{detail} [{issue['kind']}, {issue['count']} times{place}]")
        if issue["advice"]:
            lines.append(f"    {issue['advice']}")
    return "\n".join(lines)


def _code_as_text(tiers: list[dict[str, Any]]) -> list[str]:
    if not tiers:
        return []
    rows = [f"  {tier['bytes']:>12} {tier['objects']:>10}  {tier['name']}" for tier in tiers]
    return ["", "jitted code by tier:", f"  {'bytes':>12} {'objects':>10}  tier", *rows]


def _functions_as_text(functions: dict[str, Any]) -> list[str]:
    """Only the columns that the recording has something for."""
    top = functions["top"]
    lines = ["", f"{functions['total']} functions" + ("; most time of their own:" if top else "")]
    columns: list[tuple[str, int, Callable[[dict[str, Any]], str]]] = []
    if any(row["calls"] for row in top):
        columns += [
            ("self", 9, lambda row: format_duration(row["self_ns"])),
            ("total", 9, lambda row: format_duration(row["total_ns"])),
            ("calls", 10, lambda row: str(row["calls"])),
        ]
    if any(row["total_samples"] for row in top):
        columns += [
            ("samples", 9, lambda row: str(row["samples"])),
            ("with callees", 12, lambda row: str(row["total_samples"])),
        ]
    if top:
        lines.append(" " + "".join(f" {title:>{width}}" for title, width, _ in columns) + "  function")
    for row in top:
        line = f":{row['line']}" if row["line"] else ""
        place = f"  {row['file']}{line}" if row["file"] else ""
        lines.append(" " + "".join(f" {show(row):>{width}}" for _, width, show in columns) + f"  {row['name']}{place}")
    return lines
