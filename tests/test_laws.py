"""Each law of the model finds the trace that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from test_info import END, GC, Built, table_of

from traceferry.model import (
    BRANCHES,
    CALLS,
    COUNTER_VALUES,
    ENTRY_LOST,
    LEAVE,
    OPEN_AT_END,
    OPEN_AT_START,
    SAMPLES,
    UNWOUND,
    Counter,
    Table,
    Thread,
    ThreadData,
    laws,
)


def placed(*places: tuple[int, int, int, int, int]) -> Built:
    """Of (pid, address, size, start_ts, end_ts)."""
    trace = Built().thread()
    for pid, address, size, start_ts, end_ts in places:
        code = trace.code.extend(func=[0], pid=[pid], tid=[pid], size=[size], loaded_at=[start_ts])
        trace.code_mappings.extend(code=[code], address=[address], start_ts=[start_ts], end_ts=[end_ts])
    return trace


def with_calls(*flags: int) -> Built:
    trace = Built()
    rows = {"ts": range(len(flags)), "frame": [trace.main] * len(flags), "flags": flags}
    return trace.thread(calls=Table(CALLS, {name: list(column) for name, column in rows.items()}))


def with_marker(ts: int, dur: int) -> Built:
    return Built().thread(markers=table_of(GC, ts=[ts], dur=[dur], why=["full"]))


def with_counter(ts: int, value: float) -> Built:
    trace = Built().thread()
    trace.process.counters.append(Counter("heap", "", "", Table(COUNTER_VALUES, {"ts": [ts], "value": [value]})))
    return trace


def with_threads(*lives: tuple[int, int, int]) -> Built:
    trace = Built()
    for tid, start_ts, end_ts in lives:
        trace.process.threads.append(Thread(tid, "", False, start_ts, end_ts, lambda _: ThreadData()))
    return trace


def with_allocation(stack: int) -> Built:
    trace = Built()
    return trace.thread(allocations=trace.allocations((1, 8, "String", stack)))


def with_branch(start: int, begin: int, end: int, outcome: int = 0, cycles: int = 0) -> Built:
    """Stacks 1 and 2 are the bytes 16 and 32 of a library, 3 is one of another."""
    trace = Built()
    lib, other = (trace.libs.intern(name=trace.strings.intern(name)) for name in ("a.so", "b.so"))
    stacks = [-1] + [
        trace.stacks.intern(frame=trace.frames.intern(func=0, lib=of, address=address))
        for of, address in ((lib, 16), (lib, 32), (other, 48))
    ]
    places = {"start": stacks[start], "from": stacks[begin], "to": stacks[end]}
    row = {"ts": 1, **places, "outcome": outcome, "cycles": cycles}
    return trace.thread(branches=Table(BRANCHES, {name: [value] for name, value in row.items()}))


VALID: list[Callable[[], Built]] = [
    lambda: placed((1, 0x100, 16, 0, -1), (1, 0x110, 16, 0, -1), (2, 0x100, 16, 0, -1), (1, 0x108, 0, 5, -1)),
    lambda: placed((1, 0x100, 16, 0, 10), (1, 0x108, 16, 10, -1), (1, 0x100, 16, 5, 5)),
    lambda: with_calls(OPEN_AT_START, LEAVE | OPEN_AT_END),
    lambda: with_calls(ENTRY_LOST, LEAVE | UNWOUND),
    lambda: with_marker(END, 0),
    lambda: with_marker(0, END),
    lambda: with_counter(END, -1.5),
    lambda: with_threads((7, 0, 10), (7, 10, 20), (8, 5, 5)),
    lambda: with_allocation(0),
    lambda: with_branch(1, 2, 3, 2, 9),
    lambda: with_branch(2, 2, 0, 1),
    lambda: with_branch(0, 0, 1),
]

BROKEN: dict[str, tuple[Callable[[], Built], str]] = {
    "places overlap": (lambda: placed((1, 0x100, 16, 0, -1), (1, 0x10F, 16, 9, -1)), "two overlap at 0x10f"),
    "places hold one another": (lambda: placed((1, 0x100, 64, 0, 9), (1, 0x110, 8, 8, -1)), "two overlap at 0x110"),
    "a mapping ends early": (lambda: placed((1, 0x100, 16, 9, 8)), "code_mappings: one ends before it starts"),
    "leave's flag at an enter": (lambda: with_calls(UNWOUND, LEAVE), "a flag of leaves at an enter"),
    "enter's flag at a leave": (lambda: with_calls(0, LEAVE | OPEN_AT_START), "or of enters at a leave"),
    "unknown flag": (lambda: with_calls(64, LEAVE), "a flag of leaves at an enter"),
    "negative duration": (lambda: with_marker(5, -1), "a negative duration"),
    "end after the recording": (lambda: with_marker(5, END), "or one that ends after the recording"),
    "end beyond 64 bits": (lambda: with_marker(5, 2**63 - 1), "or one that ends after the recording"),
    "counter before the recording": (lambda: with_counter(-1, 0), "counter heap: a time stamp outside the recording"),
    "counter after the recording": (lambda: with_counter(END + 1, 0), "a time stamp outside the recording"),
    "counter that is not a number": (lambda: with_counter(1, float("nan")), "a value that is not a finite number"),
    "infinite counter": (lambda: with_counter(1, float("inf")), "a value that is not a finite number"),
    "thread ends early": (lambda: with_threads((7, 9, 8)), "thread 1/7 ends before it starts"),
    "equal thread numbers": (lambda: with_threads((7, 0, 9), (8, 0, 9), (7, 8, 20)), "two threads of this number"),
    "branch from nowhere to nowhere": (lambda: with_branch(0, 0, 0), "a branch from nowhere to nowhere"),
    "outcome of a branch": (lambda: with_branch(0, 1, 1, 3), "another outcome, or negative cycles"),
    "negative cycles": (lambda: with_branch(0, 1, 1, 1, -1), "another outcome, or negative cycles"),
    "run that ends nowhere": (lambda: with_branch(1, 0, 1), "ends in another library, or nowhere"),
    "run into another library": (lambda: with_branch(1, 3, 1), "ends in another library, or nowhere"),
    "run that goes back": (lambda: with_branch(2, 1, 1), "a run of code that ends before it begins"),
    "allocation without a stack": (lambda: with_allocation(-1), "an allocation without a stack"),
}


def test_what_obeys_the_laws() -> None:
    assert [laws.check(build()) for build in VALID] == [[]] * len(VALID)


@pytest.mark.parametrize(("build", "law"), BROKEN.values(), ids=BROKEN)
def test_what_breaks_a_law(build: Callable[[], Built], law: str) -> None:
    (broken,) = laws.check(build())
    assert law in broken


@pytest.mark.parametrize(("column", "value"), [("stack", 99), ("stack", -2), ("ts", -1), ("ts", END + 1)])
def test_indices_and_times(column: str, value: Any) -> None:
    columns = {"ts": [0], "stack": [0], column: [value]}
    (broken,) = laws.check(Built().thread(samples=Table(SAMPLES, columns)))
    assert broken.startswith("thread 1/1: samples")
