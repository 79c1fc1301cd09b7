"""Map: when threads ran, by their task states; in traces of ours also by the tracks that have these where no processor
is known."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from typing import Any, NamedTuple

import numpy as np

from traceferry.common.shown_text import encodable
from traceferry.importers.perfetto.decode import Tables
from traceferry.importers.perfetto.heaps import Span
from traceferry.model import PREEMPTED, RUNNABLE, RUNNING, UNKNOWN, WAITING, Array, TraceBuilder, rows_by_key

# Of task states those that say nothing: what a thread did before a switch that was lost has none.
UNSAID = frozenset(("", "?", "Unknown", "Created"))
# The kernel's letters of tasks that have ended; a state may have several of these.
DEAD = frozenset("XZx")
# Traces of ours have this letter where nothing is known, but for the threads that an attribute lists.
OWN_UNKNOWN = "T"
OWN_TRACK = "Scheduling"
OWN_STATES = {
    "Waiting": WAITING, "Running": RUNNING, "Preempted": PREEMPTED, "Runnable": RUNNABLE, "Unknown": UNKNOWN,
}  # fmt: skip
NOTHING: dict[str, Any] = {"state": UNKNOWN, "reason": -1, "waker": -1}
Rows = dict[str, Array]  # columns of SCHEDULING


class Scheduling(NamedTuple):
    """rows: of each thread; ends: when threads ended, of those of which that is known; tracks: which of the state
    tracks are in the rows."""

    rows: dict[int, Rows]
    ends: dict[int, int]
    tracks: Set[int]


def own_stopped(trace: TraceBuilder, said: str) -> set[int]:
    """Returns the numbers of the threads that a trace of ours says were stopped. What cannot be read is reported."""
    try:
        return {int(tid) for tid in json.loads(said or "[]")}
    except (ValueError, TypeError, RecursionError):
        trace.report.note("bad_rows", 1, where="stopped_threads", detail="stopped_threads: 1")
        return set()


class _TaskStates(NamedTuple):
    """Rows of all threads. columns: of SCHEDULING; until: how long what a row tells lasts."""

    utid: Array
    columns: Rows
    is_dead: Array
    until: Array


def read_scheduling(
    trace: TraceBuilder, tables: Tables, span: Span, tids: Mapping[int, int], stopped: set[int] | None
) -> Scheduling:
    """tids: the number of each thread; stopped: of a trace of ours, the numbers of threads that were stopped."""
    states = _task_states(trace, tables, span, tids, stopped)
    ts, is_dead = states.columns["ts"], states.is_dead
    found = Scheduling({}, {}, set())
    for number, unsorted in rows_by_key(states.utid).items():
        rows = unsorted[np.argsort(ts[unsorted], kind="stable")]
        # A thread ends where it dies for the last time: a zombie may be told to be dead, too.
        alive = np.flatnonzero(~is_dead[rows])
        rows = rows[: (int(alive[-1]) if len(alive) else -1) + 2]
        if is_dead[rows[-1]]:
            found.ends[number] = int(ts[rows[-1]])
        of_thread = {name: column[rows] for name, column in states.columns.items()}
        # Who does more after its death has not told all.
        again = np.flatnonzero(is_dead[rows[:-1]])
        of_thread["state"][again], of_thread["reason"][again] = UNKNOWN, -1
        found.rows[number] = _without_gaps(of_thread, states.until[rows], found.ends.get(number, span.end))
    return found if stopped is None else _with_own_tracks(tables, span, found)


def _task_states(
    trace: TraceBuilder, tables: Tables, span: Span, tids: Mapping[int, int], stopped: set[int] | None
) -> _TaskStates:
    answer = tables["states"]
    utid, letters = answer["utid"].numbers(), answer["state"].texts()
    known = {letter: nth for nth, letter in enumerate(dict.fromkeys(letters))}
    letter = np.array([known[one] for one in letters], np.int64)
    state = np.array([_state(one) for one in known], np.uint8)[letter]
    if stopped is not None and OWN_UNKNOWN in known:
        was_stopped = np.isin(utid, [one for one, tid in tids.items() if tid in stopped])
        state[(letter == known[OWN_UNKNOWN]) & ~was_stopped] = UNKNOWN
    reason = np.array([trace.strings.intern(encodable(one)) if one else -1 for one in known], np.int32)[letter]
    ts, dur = answer["ts"].numbers() + span.offset_ns, answer["dur"].numbers(-1)
    ts = np.clip(ts, span.start, span.end)
    columns = {
        "ts": ts, "state": state, "cpu": cpus(answer["cpu"].numbers(-1)),
        "waker": np.array([tids.get(one, -1) for one in answer["waker_utid"].numbers(-1).tolist()], np.int64),
        "reason": np.where(state == WAITING, reason, -1).astype(np.int32),
    }  # fmt: skip
    is_dead = np.array([not DEAD.isdisjoint(one) for one in known], bool)[letter]
    until = np.where(dur < 0, span.end, ts + np.minimum(np.maximum(dur, 0), span.end - ts))
    return _TaskStates(utid, columns, is_dead, until)


def _state(letter: str) -> int:
    """Returns the state of letters as the kernel writes them: R+ was preempted."""
    if letter in UNSAID:
        return UNKNOWN
    if letter == "Running":
        return RUNNING
    return PREEMPTED if letter == "R+" else RUNNABLE if letter == "R" else WAITING


def _without_gaps(rows: Rows, until: Array, last_ts: int) -> Rows:
    """Returns the rows, and between them such that say that the state is not known, up to last_ts. until: of the
    rows."""
    at = np.flatnonzero(until < np.append(rows["ts"][1:], last_ts))
    filled = {**NOTHING, "ts": until[at], "cpu": rows["cpu"][at]}
    return {name: np.insert(column, at + 1, filled[name]) for name, column in rows.items()}


def _with_own_tracks(tables: Tables, span: Span, found: Scheduling) -> Scheduling:
    """Returns also those of threads of which a state track says when they ran."""
    tracks, answer = tables["state_tracks"], tables["track_states"]
    values = answer["value"].texts()
    ts = np.clip(answer["ts"].numbers() + span.offset_ns, span.start, span.end)
    rows_of = rows_by_key(answer["track_id"].numbers(-1))
    taken = set[int]()
    columns = (tracks[name].numbers(-1).tolist() for name in ("id", "utid"))
    for track, utid, name in zip(*columns, tracks["name"].texts(), strict=True):
        if name != OWN_TRACK or utid < 0 or utid in found.rows or track not in rows_of:
            continue
        # The last one, without a value, is the thread's end.
        *rows, end = rows_of[track].tolist()
        states = [OWN_STATES.get(values[row], -1) for row in rows]
        if min(states, default=-1) < 0:
            continue
        taken.add(track)
        found.ends[utid] = int(ts[end])
        found.rows[utid] = {
            "ts": ts[rows], "state": np.array(states, np.uint8), "cpu": np.full(len(rows), -1, np.int32),
            "waker": np.full(len(rows), -1, np.int64), "reason": np.full(len(rows), -1, np.int32),
        }  # fmt: skip
    return found._replace(tracks=taken)


def unknown_after(rows: Rows, end: int) -> Rows:
    """Returns the rows before a time, from which on nothing is known."""
    kept = rows["ts"] < end
    last = {**NOTHING, "ts": end, "cpu": rows["cpu"][-1]}
    return {name: np.append(column[kept], last[name]).astype(column.dtype) for name, column in rows.items()}


def cpus(numbers: Array) -> Array:
    return np.clip(numbers, -1, (1 << 31) - 1).astype(np.int32)
