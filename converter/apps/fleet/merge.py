"""One trace of a data set: a process for each combination of labels, a thread for each measure of each thread's name.

Nothing in it has a time of its own. Time in calls is shown as calls: each call path is one, as long as all its calls
together, so that the time axis is a flame graph. Of samples and allocations, each call path is one sample, which weighs
what it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count

import numpy as np

from traceferry.analysis.totals._trees import add_to_ancestors
from traceferry.analysis.totals.portable import Tree
from traceferry.analysis.totals.rows import Key
from traceferry.apps.fleet.dataset import Combination, combinations
from traceferry.apps.fleet.forest import MEASURES, Group, nodes_by_root
from traceferry.common.shown_text import encodable
from traceferry.model import (
    SAMPLES,
    Array,
    Clock,
    Event,
    Process,
    Table,
    Thread,
    ThreadData,
    Trace,
    TraceBuilder,
    sums,
)
from traceferry.timeline.summed_calls import LARGEST_NS, summed_calls

SAMPLE_NS = 1_000_000
COLOR = "blue"
FRAME_LENGTH = 7
# In the order in which they are shown; others follow.
UNITS = ("ns", "samples", "bytes")
# (family, color) of categories and tiers, by ("category" or "tier", name).
Colors = Mapping[tuple[str, str], tuple[str, str]]


def merged_trace(url: str, name: str) -> Trace:
    """The trace of a data set. Times of calls are calls as long as all of that call path together; what else a thread
    has are views, whose samples weigh it. name: of what was merged, for the viewers. Raises FormatError for a data set
    of another version."""
    trace = TraceBuilder()
    trace.join_clock(Clock("monotonic"))
    # Processes and threads share one range of numbers, in which each has its own.
    numbers = count(1)
    for combination in combinations(url):
        _add(trace, combination, numbers)
    trace.attributes["merged from"] = encodable(name)
    trace.report.note("merged_times", len(trace.processes))
    return trace.done()


def _add(trace: TraceBuilder, combination: Combination, numbers: Iterator[int]) -> None:
    name = combination.name or "all recordings"
    forest = combination.totals.tree
    n = len(combination.recordings)
    process = Process(next(numbers), f"{name} ({n} recording{'s' if n != 1 else ''})", 0, 0)
    trace.processes.append(process)
    if not len(forest.parent):
        return
    frames, stacks = _tables(trace, forest, _colors(combination))
    columns = {name: forest.column((name,)) for name in MEASURES}
    shown: list[tuple[int, int, Group, str, str, _Nodes]] = []
    for group, inside in nodes_by_root(forest):
        own = {name: column[inside] for name, column in columns.items()}
        nodes = _Nodes(inside, forest.parent[inside], frames[inside], stacks[inside], own)
        for measure, unit in _measures(own, group):
            rank = UNITS.index(unit) if unit in UNITS else len(UNITS)
            shown.append((rank, -sums.total(own[measure]), group, measure, unit, nodes))
    # What has most comes first.
    for *_, group, measure, unit, nodes in sorted(shown, key=lambda row: row[:3]):
        is_main = not process.threads
        process.threads.append(_thread(next(numbers), group, measure, unit, nodes, is_main))
    process.end_ts = max((thread.end_ts for thread in process.threads), default=0)


def _colors(combination: Combination) -> Colors:
    """Returns how most of the recordings show each category and tier."""
    rows = combination.totals.colors
    ranked = sorted(zip(rows.amounts[:, 0].tolist(), rows.keys, strict=True))
    return {(of, name): (family, color) for _, (of, name, family, color) in ranked}


def _tables(trace: TraceBuilder, forest: Tree, colors: Colors) -> tuple[Array, Array]:
    """(the trace's frame, its stack) of each node; -1 of roots."""
    strings = trace.strings

    def frame_of(key: Key) -> int:
        if len(key) != FRAME_LENGTH:
            return -1
        name, file, line, kind, category, tier, _ = key
        source = trace.sources.intern(path=strings.intern(file)) if file else -1
        func = trace.funcs.intern(
            name=strings.intern(name), source=source, line=line, kind=strings.intern(kind) if kind else -1
        )
        return trace.frames.intern(
            func=func,
            category=trace.add_category(category, colors.get(("category", category), ("", COLOR))[1])
            if category
            else -1,
            tier=trace.tiers.intern(
                name=strings.intern(tier),
                family=strings.intern(colors.get(("tier", tier), (tier, ""))[0]),
                color=strings.intern(colors.get(("tier", tier), ("", COLOR))[1]),
            )
            if tier
            else -1,
        )

    frame = np.array([frame_of(key) for key in forest.frames], np.int32)[forest.frame]
    stack = np.full(len(frame), -1, np.int32)
    first, is_node = len(trace.stacks), forest.parent >= 0
    stack[is_node] = first + np.arange(np.count_nonzero(is_node))
    trace.stacks.extend(prefix=stack[forest.parent[is_node]], frame=frame[is_node])
    return frame, stack


def _measures(own: Mapping[str, Array], group: Group) -> Iterator[tuple[str, str]]:
    """(measure, unit) of the threads of a group. Samples whose weight is time are shown by that."""
    has = {name: bool(column.any()) for name, column in own.items()}
    unit = group[3]
    if has["time_ns"]:
        yield "time_ns", "ns"
    if has["weight"] and (unit in ("ns", "bytes") or not has["samples"]):
        yield "weight", unit
    elif has["samples"]:
        yield "samples", Event(group[2], unit).sample_unit
    if has["allocated_bytes"]:
        yield "allocated_bytes", "bytes"


@dataclass(frozen=True)
class _Nodes:
    """A group's nodes, rising, without its root. inside, parent: numbers in the forest; frame, stack: of the trace;
    own: what each node has itself, by measure."""

    inside: Array
    parent: Array
    frame: Array
    stack: Array
    own: dict[str, Array]


def _thread(tid: int, group: Group, measure: str, unit: str, nodes: _Nodes, is_main: bool) -> Thread:
    own, name = nodes.own[measure], _name(group, measure)
    if measure == "time_ns":
        end = min(sums.total(own), LARGEST_NS)
        return Thread(tid, name, is_main, 0, end, lambda _: ThreadData(calls=_calls(nodes)), 2 * len(own))
    rows = np.flatnonzero(own)
    n = len(rows)
    ts = np.arange(n, dtype=np.int64) * SAMPLE_NS
    samples = Table(SAMPLES, {"ts": ts, "stack": nodes.stack[rows], "weight": own[rows]})
    return Thread(tid, name, False, 0, n * SAMPLE_NS, lambda _: ThreadData(samples=samples), n, sample_unit=unit)


def _name(group: Group, measure: str) -> str:
    process, thread, event, unit = group
    names = [process, thread] if thread and thread != process else [process]
    of = f"samples of {event}" if event else "samples"
    if Event(event, unit).sample_unit != "samples":
        of = Event(event, unit).plain_name
    what = {"samples": of, "weight": event or "samples"}
    words = what.get(measure) or {"time_ns": "calls", "allocated_bytes": "allocations"}[measure]
    return f"{' / '.join(name for name in names if name) or 'thread'}: {words}"


def _calls(nodes: _Nodes) -> Table:
    """Each call path as one call, as long as all it has, of which its own time comes after that of its callees."""
    place = np.searchsorted(nodes.inside, nodes.parent)
    # What is directly below the root has no parent among the nodes.
    parent = np.where(nodes.inside[place] == nodes.parent, place, -1).astype(np.int32)
    total: Array = np.minimum(nodes.own["time_ns"], LARGEST_NS)
    add_to_ancestors(parent, total)
    kept = np.flatnonzero(total)
    parent = np.append(np.cumsum(total > 0) - 1, -1)[parent[kept]]
    own, counts = (nodes.own[name][kept] for name in ("time_ns", "calls"))
    return summed_calls(parent, nodes.frame[kept], own, counts, np.zeros(len(kept), np.uint8))
