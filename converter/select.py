"""A part of a trace: a range of time, or only the calls that last. The trace itself is not changed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from converter.calls import keep_rows, lasting
from converter.laws import pairs
from converter.model import LEAVE, OPEN_AT_END, OPEN_AT_START, Array, Process, Table, Thread, ThreadData, Trace

Change = Callable[[ThreadData], ThreadData]


def select_range(trace: Trace, start_ts: int, end_ts: int) -> Trace:
    """What lies in [start_ts, end_ts], ns on the trace's clock: calls that reach into the range are cut to it."""
    start_ts, end_ts = max(start_ts, trace.start_ts), min(end_ts, trace.end_ts)
    selected = _changed(trace, lambda data: _cut(data, start_ts, end_ts))
    selected.bounds = (start_ts, max(start_ts, end_ts))
    for process in selected.processes:
        process.start_ts, process.end_ts = _clamp(process.start_ts, process.end_ts, start_ts, end_ts)
        for thread in process.threads:
            thread.start_ts, thread.end_ts = _clamp(thread.start_ts, thread.end_ts, start_ts, end_ts)
        for counter in process.counters:
            ts = counter.values["ts"]
            counter.values = counter.values.take((ts >= start_ts) & (ts <= end_ts))
        process.heap_snapshots = [s for s in process.heap_snapshots if start_ts <= s.start_ts and s.end_ts <= end_ts]
    return selected


def select_lasting(trace: Trace, min_ns: int) -> Trace:
    """Without the calls shorter than min_ns; their time counts for their callers. Events stay."""
    return _changed(trace, lambda data: keep_rows(data, lasting(data.calls, min_ns)))


def _changed(trace: Trace, change: Change) -> Trace:
    selected = copy.copy(trace)
    selected.processes = [_changed_process(process, change) for process in trace.processes]
    return selected


def _changed_process(process: Process, change: Change) -> Process:
    return replace(
        process,
        threads=[_changed_thread(thread, change) for thread in process.threads],
        counters=[replace(counter) for counter in process.counters],
    )


def _changed_thread(thread: Thread, change: Change) -> Thread:
    load = thread.load
    return replace(thread, load=lambda: change(load()))


def _clamp(start: int, end: int, low: int, high: int) -> tuple[int, int]:
    return min(max(start, low), high), min(max(end, low), high)


def _cut(data: ThreadData, start_ts: int, end_ts: int) -> ThreadData:
    cut = keep_rows(data, _overlapping(data.calls, start_ts, end_ts))
    ts, flags = cut.calls["ts"], cut.calls["flags"].copy()
    leaves = (flags & LEAVE) != 0
    flags[~leaves & (ts < start_ts)] |= OPEN_AT_START
    flags[leaves & (ts > end_ts)] |= OPEN_AT_END
    cut.calls = cut.calls.replaced(ts=np.clip(ts, start_ts, end_ts), flags=flags)
    cut.samples = _within(data.samples, start_ts, end_ts)
    cut.allocations = _within(data.allocations, start_ts, end_ts)
    cut.states = _states_within(data.states, data.states["track"], start_ts, end_ts)
    cut.scheduling = _states_within(data.scheduling, np.zeros(len(data.scheduling), np.int32), start_ts, end_ts)
    cut.markers = {kind: _markers_within(table, start_ts, end_ts) for kind, table in data.markers.items()}
    return cut


def _overlapping(calls: Table, start_ts: int, end_ts: int) -> Array:
    """A mask over the rows: the calls of which some part lies in the range."""
    keep = np.zeros(len(calls), bool)
    if len(calls):
        enter, leave = pairs((calls["flags"] & LEAVE) != 0)
        inside = (calls["ts"][enter] <= end_ts) & (calls["ts"][leave] >= start_ts)
        keep[enter[inside]] = True
        keep[leave[inside]] = True
    return keep


def _within(table: Table, start_ts: int, end_ts: int) -> Table:
    return table.take((table["ts"] >= start_ts) & (table["ts"] <= end_ts))


def _markers_within(table: Table, start_ts: int, end_ts: int) -> Table:
    begins, ends = table["ts"], table["ts"] + table["dur"]
    cut = table.take((begins <= end_ts) & (ends >= start_ts))
    begins, ends = np.maximum(cut["ts"], start_ts), np.minimum(cut["ts"] + cut["dur"], end_ts)
    return cut.replaced(ts=begins, dur=ends - begins)


def _states_within(states: Table, tracks: Array, start_ts: int, end_ts: int) -> Table:
    """The states that begin in the range, and of each track (int, one for each row) the one that holds then."""
    ts = states["ts"]
    keep = (ts > start_ts) & (ts <= end_ts)
    before = np.flatnonzero(ts <= start_ts)
    last_of_track = {int(track): row for track, row in zip(tracks[before], before, strict=True)}
    keep[list(last_of_track.values())] = True
    cut = states.take(keep)
    return cut.replaced(ts=np.maximum(cut["ts"], start_ts))
