"""Map: a CPU profile of V8 becomes one thread.

The format is `Profiler.Profile` of Chrome's DevTools protocol: nodes of a call tree, the node of each sample, and the
µs between samples. Until Chrome 57 nodes were nested below `head`, and times stood in `timestamps`; heap profiles still
are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson

from traceferry.common.errors import FormatError
from traceferry.common.shown_text import encodable
from traceferry.files.json_text import JsonText, Range
from traceferry.files.known_texts import refuse_known
from traceferry.files.source import Source
from traceferry.importers.cpuprofile.nodes import HIT_COUNT, MOST, SELF_SIZE, Nodes, whole
from traceferry.model import WALL_CLOCK, Array, Clock, Event, Input, ThreadData, TraceBuilder, sums
from traceferry.timeline.stack_profiles import UNTIMED_NS, StackProfile, as_samples, samples_of, spread
from traceferry.timeline.stacks import StackTable

NS_OF_US, US = 1000, 10**6
NOTHING_LIVE = (
    "a sampled heap has objects that were live at its end, and none was sampled: "
    "node --heap-prof-interval 16384 samples smaller ones, too"
)
# What may be long is not parsed with the rest.
COLUMNS = ("samples", "timeDeltas", "timestamps")
NO_NUMBERS = np.empty(0, np.int64)


def to_trace(source: Source, trace: TraceBuilder) -> None:
    """Adds the samples. Raises FormatError where there are no nodes."""
    text = JsonText(source.data, source.path)
    outermost = text.root()
    members = text.members(outermost) if text.is_object(outermost) else {}
    if "snapshot" in members:
        refuse_known(source)
    said = {key: text.parsed(at) for key, at in members.items() if key not in (*COLUMNS, "nodes")}
    nodes = Nodes(text, members["nodes"]) if "nodes" in members else _nested(said.get("head"), source)
    if not len(nodes):
        raise FormatError("the profile has no nodes", 0, path=source.path)
    of = Input(source.name, "cpuprofile", "", "V8")
    columns = [
        whole(text.numbers(members[key]) if key in members and not nodes.has(SELF_SIZE) else NO_NUMBERS)
        for key in COLUMNS
    ]
    if len(columns[0]):
        profile = StackProfile(trace, of, Clock("monotonic"))
        data, end = _samples(profile, nodes, said, *columns)
    else:
        profile = StackProfile(trace, of)
        data, end = _amounts(profile, nodes, text.rows(members.get("samples", Range(0, 0)), "nodeId").numbers[:, 0])
    ts = next((table["ts"] for table in (data.samples, *data.other_samples.values()) if len(table)), NO_NUMBERS)
    process = profile.process(0, source.name, None, int(ts[0]) if len(ts) else end, end)
    profile.add_thread(process, _text(said.get("title")) or "V8", None, data, len(ts))
    profile.note_empty(NOTHING_LIVE if nodes.has(SELF_SIZE) else "")
    trace.report.note("bad_rows", nodes.n_bad, where=f"{source.path} nodes", detail="nodes or samples")


def _amounts(profile: StackProfile, nodes: Nodes, sampled: Array) -> tuple[ThreadData, int]:
    """Returns (what each node says that it took, without a time; the end). sampled: float64, the node of each sampled
    object of a heap."""
    nodes.add_stacks(profile)
    if nodes.has(SELF_SIZE):
        row = nodes.rows_of(whole(sampled, -1))
        size = np.maximum(nodes.column(SELF_SIZE), 0)
        # Without the objects, those of a node are one.
        n_objects = np.bincount(row[row >= 0], minlength=len(nodes)) if len(row) else (size > 0).astype(np.int64)
        event = as_samples("bytes", "bytes")
        allocated = profile.add_event(event)
        amounts = {allocated: size, profile.add_event(Event("objects", "count", leader=allocated)): n_objects}
        unit = "bytes"
    else:
        unit = "samples"
        amounts = {profile.add_event(Event("samples", "samples")): np.maximum(nodes.column(HIT_COUNT), 0)}
    stack = nodes.stack[:-1]
    order = np.argsort(StackTable(profile.trace).places()[stack], kind="stable")
    amounts = {event: amount[order] for event, amount in amounts.items()}
    ts, end = spread(next(iter(amounts.values())), unit, 0)
    profile.trace.report.note("times_made", len(ts), where=profile.path)
    return samples_of(profile.trace.events, ts, stack[order], amounts), end


def _samples(
    profile: StackProfile, nodes: Nodes, said: dict[str, Any], samples: Array, deltas: Array, stamps: Array
) -> tuple[ThreadData, int]:
    """Returns (the samples; the end)."""
    report, path = profile.trace.report, profile.path
    is_timed = len(stamps) > 0 or len(deltas) > 0
    begin, passed = _us(said.get("startTime")), _passed(said)
    us = stamps if len(stamps) else begin + (np.cumsum(deltas) if is_timed else _even(len(samples), passed))
    n = min(len(us), len(samples))
    report.note("times_made", 0 if is_timed else n, where=path)
    report.note("bad_rows", len(samples) - n, where=path, detail="samples without a time")
    n_falling = int(np.count_nonzero(us[1:n] < us[: n - 1]))
    report.note("times_sorted", n_falling, where=path)
    samples, us = samples[:n], us[:n]
    if n_falling:
        order = np.argsort(us, kind="stable")
        samples, us = samples[order], us[order]
    ts = np.clip(us, -MOST, MOST) * NS_OF_US + profile.offset_ns
    last = _us(said.get("endTime")) * NS_OF_US if not len(stamps) else 0
    end = max(last + profile.offset_ns, int(ts[-1]) + 1 if n else 0)
    lasts = _durations(ts, end)
    nodes.add_stacks(profile)
    stack = nodes.of_samples(samples)
    if not is_timed and not passed:
        event = profile.add_event(Event("samples", "samples"))
        return samples_of(profile.trace.events, ts, stack, {event: np.ones(n, np.int64)}), end
    event = profile.add_event(Event(WALL_CLOCK, "ns", sums.total(lasts) // max(n, 1), "clock"))
    return samples_of(profile.trace.events, ts, stack, {event: lasts}), end


def _passed(said: dict[str, Any]) -> int:
    """Returns the µs from the start to the end, 0 if the file does not tell; until Chrome 57 these were in seconds."""
    start, end = (said.get(key) for key in ("startTime", "endTime"))
    if not isinstance(start, (int, float)) or not isinstance(end, (int, float)):
        return 0
    return max(_us((end - start) * (US if "head" in said else 1)), 0)


def _even(n: int, passed: int) -> Array:
    """Returns, int64 µs, the times of n samples that have none, as DevTools make them: evenly over what passed, or 1 ms
    each."""
    each = passed / n if passed else UNTIMED_NS / NS_OF_US
    return (np.arange(n) * each).astype(np.int64)


def _durations(ts: Array, end: int) -> Array:
    """Returns, int64 ns, for how long each sample stands: until the next one, as in Chrome's DevTools; the last one for
    as long as the others on average, a single one until the end. Where the machine is busy, gaps are up to a hundred
    times V8's interval. ts: rising."""
    if len(ts) < 2:
        return end - ts
    gaps = np.diff(ts)
    # Two samples of the same µs are two.
    lasts: Array = np.maximum(np.append(gaps, int(gaps.mean())), 1)
    return lasts


def _nested(head: Any, source: Source) -> Nodes:
    """Returns nodes that are within each other, as a list with the numbers of those below them, which the first heap
    profiles do not have. The oldest files have what is called in the node itself, and count from 1."""
    found: list[dict[str, Any]] = [head] if isinstance(head, dict) else []
    for node in found:
        found += (child for child in _list(node.get("children")) if isinstance(child, dict))
    if not all("id" in node for node in found):
        for number, node in enumerate(found):
            node["id"] = number
    for node in found:
        node["children"] = [child["id"] for child in _list(node.get("children")) if isinstance(child, dict)]
        if not isinstance(node.get("callFrame"), dict):
            node["callFrame"] = node | {key: _us(node.get(key)) - 1 for key in ("lineNumber", "columnNumber")}
            del node["callFrame"]["children"]
    text = JsonText(memoryview(orjson.dumps(found)), source.path)
    return Nodes(text, text.root())


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _us(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) and abs(value) < MOST else 0


def _text(value: Any) -> str:
    return encodable(value) if isinstance(value, str) else ""
