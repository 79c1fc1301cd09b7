"""Time off the processors: why a thread did not run, and samples of where it stood then."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from traceferry.model import (
    PREEMPTED,
    RUNNABLE,
    RUNNING,
    SAMPLES,
    UNKNOWN,
    WAITING,
    Array,
    Event,
    Table,
    Trace,
    TraceBuilder,
    distinct,
)
from traceferry.model.categories import BLOCKED, DISK, PREEMPTION, RUNNABILITY, SLEEPING
from traceferry.native.distinct import at_places, distinct_with_places

EVENT = Event("off-CPU", "ns", kind="off-cpu")
# The function of which samples are where the recording has no stack of the switch.
NO_STACK = "[no stack at the switch]"
# The function below which the stacks of other samples stand, where the recording has none of the switch.
GUESSED = "(guessed: the sample before)"
# The kernel's letters for states of tasks (fs/proc/array.c), as the end of "the thread was ...".
REASONS = {
    "R": "preempted", "R+": "preempted", "S": "sleeping", "D": "sleeping for a device",
    "T": "stopped", "t": "traced", "X": "dead", "Z": "a zombie", "P": "parked", "I": "idle",
}  # fmt: skip
ENDED = ("X", "Z")
# How far the times of a wait in two tables of a file may be apart.
ROUNDED_NS = 1
_OF_STATE = {PREEMPTED: PREEMPTION, RUNNABLE: RUNNABILITY}
_OF_REASON = {"S": SLEEPING, "I": SLEEPING, "D": DISK}
_WORDS = {PREEMPTED: "preempted", RUNNABLE: "woken, waits for a CPU", UNKNOWN: "unknown", RUNNING: "on a CPU"}


class Durations(NamedTuple):
    """Holds the ns that one thread ran, could have run, and waited: together its lifetime within the recording."""

    on: int
    runnable: int
    blocked: int
    unknown: int


def until_next(states: Table, end_ts: int) -> Array:
    """int64: how long the state of each row lasts, in ns: that of the last one until the thread's end. states: of one
    track, or SCHEDULING."""
    ts = states["ts"]
    if not len(ts):
        return ts
    lasts = np.empty(len(ts), np.int64)
    np.subtract(ts[1:], ts[:-1], out=lasts[:-1])
    lasts[-1] = max(end_ts - int(ts[-1]), 0)
    return lasts


def durations(scheduling: Table, end_ts: int) -> Durations:
    """Returns how long the thread ran, could have run, waited, and what is unknown."""
    lasts, state = until_next(scheduling, end_ts), scheduling["state"]
    on, blocked, unknown = (int(lasts[state == one].sum()) for one in (RUNNING, WAITING, UNKNOWN))
    return Durations(on, int(lasts.sum()) - on - blocked - unknown, blocked, unknown)


def why(state: int, reason: str) -> str:
    """Returns a text for a row of `scheduling`."""
    return REASONS.get(reason.partition("|")[0], "blocked") if state == WAITING else _WORDS[state]


def category_name(state: int, reason: str) -> str:
    """Returns the category of time that a thread spends off the processors."""
    return _OF_STATE.get(state) or _OF_REASON.get(reason[:1], BLOCKED)


def off_cpu_samples(trace: TraceBuilder, scheduling: Table, end_ts: int) -> Table:
    """Returns a sample for each time off the processors: when it began, how long it lasted in ns, and the stack of the
    switch. Its leaf is a frame of the same function in a category that tells why."""
    lasts, state = until_next(scheduling, end_ts), scheduling["state"]
    rows = np.flatnonzero((state != RUNNING) & (state != UNKNOWN) & (lasts > 0))
    reason = scheduling["reason"][rows]
    ended = [nth for nth in distinct(reason).tolist() if trace.strings[nth] in ENDED]
    if ended:
        rows = rows[~np.isin(reason, ended)]
    ts, cpu, stack, reason = (scheduling[name].take(rows) for name in ("ts", "cpu", "stack", "reason"))
    columns = {"ts": ts, "weight": lasts.take(rows), "cpu": cpu}
    return Table(SAMPLES, columns | {"stack": off_cpu_stacks(trace, stack, state.take(rows), reason)})


def off_cpu_stacks(trace: TraceBuilder, stack: Array, state: Array, reason: Array) -> Array:
    """int32: the stacks of these rows of `scheduling` with the leaves in categories that tell why."""
    if len(stack) == 0:
        return np.zeros(0, np.int32)
    # What the stack and the reason begin with is -1: none.
    key = stack.astype(np.int64)
    key += 1
    key <<= 24
    key += reason
    key += 1
    key <<= 8
    key += state
    keys, nth = distinct_with_places(key)
    strings, prefix, frame = trace.strings, trace.stacks["prefix"], trace.stacks["frame"]
    frames = trace.frames.columns
    found = np.empty(len(keys), np.int32)
    for place, one in enumerate(keys.tolist()):
        of, letters = (one >> 32) - 1, strings[(one >> 8 & 0xFFFFFF) - 1]
        category = trace.add_category(category_name(one & 0xFF, letters))
        if of < 0:
            func = trace.funcs.intern(name=strings.intern(NO_STACK), kind=strings.intern("function"))
            found[place] = trace.stacks.intern(frame=trace.frames.intern(func=func, category=category))
            continue
        leaf = {name: column[frame[of]].item() for name, column in frames.items()}
        found[place] = trace.stacks.intern(
            prefix=int(prefix[of]), frame=trace.frames.intern(**leaf | {"category": category})
        )
    return at_places(found, nth)


def guessed(trace: TraceBuilder, stack: Array) -> Array:
    """int32: these stacks below the function GUESSED, which says that they are of the samples before. -1 stays -1."""
    func = trace.funcs.intern(name=trace.strings.intern(GUESSED), kind=trace.strings.intern("function"))
    root = trace.stacks.intern(frame=trace.frames.intern(func=func, category=trace.add_category(BLOCKED)))
    prefix, frame = trace.stacks["prefix"], trace.stacks["frame"]
    found = {-1: root}
    keys, nth = distinct_with_places(stack.astype(np.int64))
    for key in keys.tolist():
        at, missing = key, []
        while at not in found:
            missing.append(at)
            at = int(prefix[at])
        for one in reversed(missing):
            found[one] = trace.stacks.intern(prefix=found[int(prefix[one])], frame=int(frame[one]))
    return np.array([found[key] if key >= 0 else -1 for key in keys.tolist()], np.int32)[nth]


def with_stacks(trace: TraceBuilder, scheduling: Table, off: Table) -> Table:
    """Returns SCHEDULING with the stacks of the samples of time off the processors, of which each row has one."""
    order = np.argsort(off["ts"], kind="stable")
    ts, stack = off["ts"][order], off["stack"][order]
    frame = trace.stacks["frame"][np.maximum(stack, 0)]
    none = {row for row, name in enumerate(trace.funcs["name"].tolist()) if trace.strings[name] == NO_STACK}
    known = (stack >= 0) & ~np.isin(trace.frames["func"][frame], list(none))
    ts, stack = ts[known], stack[known]
    wanted = scheduling["ts"]
    # Times of markers and of samples are rounded apart from each other.
    nth = np.minimum(np.searchsorted(ts, wanted - ROUNDED_NS), max(len(ts) - 1, 0))
    is_off = (scheduling["state"] != RUNNING) & (scheduling["state"] != UNKNOWN)
    if len(ts):
        is_off &= np.abs(ts[nth] - wanted) <= ROUNDED_NS
        found = np.where(is_off, stack[nth], -1).astype(np.int32)
        return scheduling.replaced(stack=found)
    return scheduling


def off_cpu_event(trace: Trace) -> int:
    """Returns the row of the event that counts time off the processors, -1 if there is none."""
    return next((row for row, event in enumerate(trace.events) if event.kind == "off-cpu"), -1)
