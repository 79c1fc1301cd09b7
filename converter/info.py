"""What is in a recording: the answers of `traceferry info`, as JSON that scripts rely on and as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from converter.calls import TotalsBuilder, n_calls
from converter.durations import format_duration
from converter.model import Thread, ThreadData, Trace

TOP = 20


def summarize(trace: Trace, top: int = TOP, progress: Callable[[int], None] = lambda _: None) -> dict[str, Any]:
    """The interface of `info --json`: see FORMATS.md. Loads each thread once, one at a time.

    calls counts enters; a recursive function's total_ns counts its outermost activation only.
    """
    totals = TotalsBuilder(trace.frames["func"], len(trace.funcs))
    samples = np.zeros(len(trace.funcs), np.int64)
    processes: list[dict[str, Any]] = []
    for process in trace.processes:
        threads: list[dict[str, Any]] = []
        for thread in process.threads:
            data = thread.load()
            totals.add(data.calls)
            samples += _leaf_samples(trace, data)
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
                "heap_snapshots": [
                    {
                        "ts_ns": s.ts,
                        "objects": len(s.object_ids),
                        "bytes": int(s.object_sizes.sum()),
                        "references": len(s.references),
                        "roots": len(s.roots),
                    }
                    for s in process.heap_snapshots
                ],
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
        "sources": len(trace.sources),
        "issues": [issue.as_json() for issue in trace.report],
    }


def _thread(thread: Thread, data: ThreadData) -> dict[str, Any]:
    sizes = data.allocations["size"]
    return {
        "tid": thread.tid,
        "name": thread.name,
        "samples": len(data.samples),
        "calls": n_calls(data.calls),
        "markers": {marker_type.name: len(table) for marker_type, table in data.markers.items()},
        "allocations": {"count": int((sizes > 0).sum()), "bytes": int(sizes[sizes > 0].sum())},
    }


def _leaf_samples(trace: Trace, data: ThreadData) -> Any:
    stack = data.samples["stack"]
    leaves = trace.frames["func"][trace.stacks["frame"][stack[stack >= 0]]]
    return np.bincount(leaves, minlength=len(trace.funcs))


def _top(trace: Trace, builder: TotalsBuilder, samples: Any, top: int) -> list[dict[str, Any]]:
    """By self time, then samples, then name: the same order on every run."""
    t = builder.totals
    seen = np.flatnonzero((t.n_calls > 0) | (samples > 0))
    order = sorted(seen.tolist(), key=lambda f: (-int(t.self_ns[f]), -int(samples[f]), trace.func_name(f), f))
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
            counts = {"calls": thread["calls"], "samples": thread["samples"], **thread["markers"]}
            held = ", ".join(f"{n} {what}" for what, n in counts.items() if n)
            lines.append(f"  thread {thread['tid']:<8} {thread['name']:24} {held}")
        lines += [f"  counter {c['name']}: {c['values']} values" for c in process["counters"]]
    functions = summary["functions"]
    lines += ["", f"{functions['total']} functions; most time of their own:"]
    if functions["top"]:
        lines.append(f"  {'self':>9} {'total':>9} {'calls':>10}  function")
    for row in functions["top"]:
        place = f"  {row['file']}:{row['line'] or 0}" if row["file"] else ""
        lines.append(
            f"  {format_duration(row['self_ns']):>9} {format_duration(row['total_ns']):>9} {row['calls']:>10}"
            f"  {row['name']}{place}"
        )
    if summary["issues"]:
        lines.append("")
    for issue in summary["issues"]:
        detail = f": {issue['detail']}" if issue["detail"] else ""
        place = f", first at offset {issue['offset']}" if issue["offset"] is not None else ""
        lines.append(f"{issue['severity']}: {issue['title']}{detail} [{issue['kind']}, {issue['count']} times{place}]")
        if issue["advice"]:
            lines.append(f"    {issue['advice']}")
    return "\n".join(lines)
