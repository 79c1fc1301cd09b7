"""Compiled modules of perf's map half, against plain NumPy and Python."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from traceferry.importers.perf import _programs
from traceferry.importers.perf._thread_states import Letter, scheduling_columns, seen_running, states, steps_by_thread
from traceferry.model import PREEMPTED, RUNNABLE, RUNNING, UNKNOWN, WAITING, distinct_and_places
from traceferry.native.distinct import (
    at_places,
    distinct_pairs,
    distinct_with_places,
    edges_of_places,
    rows_of_places,
)

IN, OUT = 0, 1
NEVER = (1 << 63) - 1
LETTERS = [0, Letter.COULD_RUN, Letter.HAS_ENDED, 0]
many = examples(200)
TIMES = st.lists(st.integers(0, 20), max_size=8).map(sorted)


@many
@given(st.lists(st.integers(-3, 3) | st.integers(-(1 << 63), (1 << 63) - 1), max_size=40), st.integers(1, 60))
def test_distinct_values(values: list[int], n_times: int) -> None:
    """Also more of them than there is memory for at first."""
    column = np.array(values * n_times + list(range(20 * n_times)), np.int64)
    found, place = distinct_with_places(column)
    wanted, inverse = np.unique(column, return_inverse=True)
    assert found.tolist() == wanted.tolist()
    assert place.tolist() == inverse.tolist()
    small = np.clip(column, -(1 << 31), (1 << 31) - 1).astype(np.int32)
    assert [part.tolist() for part in distinct_with_places(small)] == [
        part.tolist() for part in np.unique(small, return_inverse=True)
    ]


@many
@given(st.sampled_from([np.uint64, np.int64, np.int32]), st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=20))
def test_distinct_values_of_any_kind(dtype: type[np.number[Any]], values: list[int]) -> None:
    column = np.array(values * 2, np.int64).astype(dtype)
    found, places = distinct_and_places(column)
    wanted, inverse = np.unique(column, return_inverse=True)
    assert (found.dtype, found.tolist(), places.tolist()) == (column.dtype, wanted.tolist(), inverse.tolist())


@many
@given(st.lists(st.tuples(*2 * [st.integers(0, 3) | st.integers(0, (1 << 31) - 1)])), st.booleans())
def test_distinct_pairs(pairs: list[tuple[int, int]], are_sorted: bool) -> None:
    rows = np.array(sorted(pairs) if are_sorted else pairs, np.int32).reshape(-1, 2)
    major, minor, place = distinct_pairs(*(np.ascontiguousarray(column) for column in rows.T))
    assert list(zip(major.tolist(), minor.tolist(), strict=True)) == sorted(set(pairs))
    assert np.array_equal(np.stack((major, minor), axis=1)[place], rows)


def test_distinct_pairs_are_not_negative() -> None:
    one, negative = np.array([1], np.int32), np.array([-1], np.int32)
    for columns in ((one, negative), (negative, one)):
        with pytest.raises(ValueError, match="a negative number"):
            distinct_pairs(*columns)
    with pytest.raises(ValueError, match="columns of different lengths"):
        distinct_pairs(one, one[:0])


@many
@given(st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=1), st.data())
def test_values_at_places(values: list[int], data: st.DataObject) -> None:
    """Also those that are counted from the end."""
    n = len(values)
    places = data.draw(st.lists(st.integers(-n, n - 1)))
    column = np.array(values, np.int32)
    assert at_places(column, np.array(places, np.int32)).tolist() == [values[place] for place in places]
    for outside in (n, -n - 1):
        with pytest.raises(IndexError, match=f"of {n}"):
            at_places(column, np.array([*places, outside], np.int32))


@many
@given(st.lists(st.integers(0, 5), max_size=40))
def test_rows_of_places(places: list[int]) -> None:
    """Also of places without rows."""
    rows, ends = rows_of_places(np.array(places, np.int32), 7)
    assert rows.tolist() == np.argsort(places, kind="stable").tolist()
    assert ends.tolist() == np.cumsum(np.bincount(np.array(places, np.int64), minlength=7)).tolist()
    for outside in (-1, 7):
        with pytest.raises(ValueError, match="a place that there is not"):
            rows_of_places(np.array([*places, outside], np.int32), 7)


@many
@given(st.lists(st.integers(0, 5), max_size=40))
def test_edges_of_places(places: list[int]) -> None:
    """Also of places without rows."""
    found = edges_of_places(np.array(places, np.int32), 7)
    rows = [[row for row, of in enumerate(places) if of == place] or [-1] for place in range(7)]
    assert [edge.tolist() for edge in found] == [[one[0] for one in rows], [one[-1] for one in rows]]
    for outside in (-1, 7):
        with pytest.raises(ValueError, match="a place that there is not"):
            edges_of_places(np.array([*places, outside], np.int32), 7)


@st.composite
def processes(draw: st.DrawFn) -> dict[int, list[int]]:
    """The starts of each process's programs."""
    starts = st.lists(st.integers(-2, 20), min_size=1, max_size=4).map(sorted)
    return dict(sorted(draw(st.dictionaries(st.integers(-1, 9), starts, min_size=1, max_size=4)).items()))


@many
@given(processes(), st.data())
def test_programs(of_pid: dict[int, list[int]], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(st.sampled_from(list(of_pid)), st.integers(-5, 25)), max_size=12))
    pid, ts = (np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), ("i4", "i8"), strict=True)) if (
        rows
    ) else (np.zeros(0, "i4"), np.zeros(0, "i8"))  # fmt: skip
    first = np.cumsum([0, *(len(starts) for starts in of_pid.values())])
    flat = np.array([start for starts in of_pid.values() for start in starts], np.int64)
    found = _programs.numbers(pid, ts, np.array(list(of_pid), np.int64), first, flat)
    begin = dict(zip(of_pid, first.tolist(), strict=False))
    assert found.tolist() == [begin[p] + max(bisect_right(of_pid[p], t) - 1, 0) for p, t in rows]


def test_a_process_without_a_program() -> None:
    one = np.array([3], np.int64)
    with pytest.raises(ValueError, match="a process that there is not"):
        _programs.numbers(np.array([4], np.int32), one, one, np.array([0, 1]), one)


@many
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 255)), max_size=12), st.data())
def test_steps_by_thread(switches: list[tuple[int, int, int]], data: st.DataObject) -> None:
    """Each switch is a step of the thread that left and one of the next, also where these are the same."""
    ts = data.draw(st.lists(st.integers(0, 99), min_size=len(switches), max_size=20).map(sorted))
    rows = sorted(data.draw(st.permutations(range(len(ts))))[: len(switches)])
    places = np.array([thread for before, after, _ in switches for thread in (before, after)], np.int32)
    letters = np.array([letter for _, _, letter in switches], np.uint8)
    ends, *columns = steps_by_thread(places, 4, np.array(ts, np.int64), np.array(rows, np.int64), letters)
    steps = [
        (thread, (ts[row], what, row, letter if what == OUT else 0))
        for (before, after, letter), row in zip(switches, rows, strict=True)
        for thread, what in ((before, OUT), (after, IN))
    ]
    wanted = [[step for thread, step in steps if thread == one] for one in range(4)]
    found = list(zip(*(column.tolist() for column in columns), strict=True))
    assert [found[begin:end] for begin, end in pairwise([0, *ends.tolist()])] == wanted


@pytest.mark.parametrize(
    ("places", "row", "letters"),
    [([0, 1], 1, [0]), ([0, 1], -1, [0]), ([0, 2], 0, [0]), ([0], 0, [0]), ([0, 1], 0, [])],
)
def test_steps_that_are_not_there(places: list[int], row: int, letters: list[int]) -> None:
    with pytest.raises(ValueError, match="steps_by_thread"):
        steps_by_thread(
            np.array(places, np.int32), 2, np.zeros(1, np.int64), np.array([row]), np.array(letters, np.uint8)
        )


@many
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 99), st.integers(-1, 3)), min_size=1), st.data())
def test_samples_that_say_that_their_thread_ran(samples: list[tuple[int, int, int]], data: st.DataObject) -> None:
    """Also where one value stands for the column of events."""
    rows = data.draw(st.lists(st.integers(0, len(samples) - 1)))
    event, ts, cpu = (
        np.array(column, kind) for column, kind in zip(zip(*samples, strict=True), ("i4", "i8", "i4"), strict=True)
    )
    if data.draw(st.booleans()):
        event = np.broadcast_to(event[:1], len(ts))
    tells_nothing = np.array([0, 1, 0], np.uint8)
    found = seen_running(np.array(rows, np.int64), event, tells_nothing, ts, cpu)
    wanted = [row for row in rows if event[row] != 1]
    assert [column.tolist() for column in found] == [ts[wanted].tolist(), cpu[wanted].tolist()]


@pytest.mark.parametrize(("row", "event", "n"), [(1, 0, 1), (-1, 0, 1), (0, 1, 1), (0, -1, 1), (0, 0, 2)])
def test_samples_that_are_not_there(row: int, event: int, n: int) -> None:
    with pytest.raises(ValueError, match="seen_running"):
        seen_running(
            np.array([row]), np.array([event], np.int32), np.zeros(1, np.uint8), np.zeros(n, np.int64),
            np.zeros(1, np.int32),
        )  # fmt: skip


Step = tuple[int, int, int, int]  # ts, what, letter, cpu


def expected(
    steps: list[Step], seen: list[int], wakes: list[int], idle: list[int] | None, end: int, tells_returns: bool
) -> list[tuple[int, int, int]]:
    """(ts, state, cpu), each step by itself."""
    rows = []
    for nth, (ts, what, letter, cpu) in enumerate(steps):
        next_ts, next_what, next_cpu = (
            (*steps[nth + 1][:2], steps[nth + 1][3]) if nth + 1 < len(steps) else (end, 2, -1)
        )
        if what == IN:
            rows.append((ts, RUNNING, cpu))
            last = [t for t in seen if t < next_ts][-1:]
            rows += [(max([ts, *last]), UNKNOWN, cpu)] if next_what == IN else []
            continue
        ended = LETTERS[letter] & Letter.HAS_ENDED
        back = next((t for t in seen if t > ts), NEVER)
        woken = next((t for t in wakes if t >= ts), NEVER)
        is_back = next_what != IN and not ended and (back < next_ts or (back == next_ts and next_what == 2))
        is_missing = next_what == OUT and not ended
        if is_missing and idle is not None and max(woken, idle[nth]) <= next_ts:
            back, is_back, is_missing = max(woken, idle[nth]), True, False
        state = PREEMPTED if LETTERS[letter] & Letter.COULD_RUN else WAITING
        if tells_returns and (is_missing or (is_back and next_what != OUT)):
            state = UNKNOWN
        rows.append((ts, state, cpu))
        if state == WAITING and not ended and woken <= (back if is_back else next_ts):
            rows.append((woken, RUNNABLE, cpu))
        if is_back:
            rows.append((back, RUNNING, next_cpu if next_what == OUT else 7))
    return rows


@many
@given(
    st.lists(st.tuples(st.integers(0, 20), st.sampled_from([IN, OUT]), st.integers(0, 3), st.integers(0, 2)),
             min_size=1, max_size=8).map(sorted),
    TIMES, TIMES, st.booleans(), st.integers(20, 25), st.booleans(),
)  # fmt: skip
def test_states(
    steps: list[Step], seen: list[int], wakes: list[int], has_idle: bool, end: int, tells_returns: bool
) -> None:
    ts, what, letter, cpu = (
        np.array(column, kind) for column, kind in zip(zip(*steps, strict=True), ("i8", "u1", "u1", "i4"), strict=True)
    )
    idle = [t + 1 if nth % 2 else NEVER for nth, t in enumerate(ts.tolist())] if has_idle else None
    of_seen = np.array(seen, np.int64), np.full(len(seen), 7, np.int32)
    since = None if idle is None else np.array(idle)
    left = np.where(what == OUT, np.arange(len(ts)) + 100, -1).astype(np.int32)
    woken = np.array(wakes, np.int64), np.arange(len(wakes), dtype=np.int32) + 200, None
    rows = states(
        (ts, what, letter, cpu, left), np.array(LETTERS, np.uint8), of_seen, woken, since, end, tells_returns
    )  # fmt: skip
    found = [column.tolist() for column in rows.columns]
    assert list(zip(*found[:3], strict=True)) == expected(steps, seen, wakes, idle, end, tells_returns)
    assert sorted(found[0]) == found[0]
    assert all(wakes[row - 200] == at for at, row in zip(found[0], found[5], strict=True) if row >= 0)
    assert all(letter[row - 100] == why for why, row in zip(found[3], found[4], strict=True) if row >= 0)


N_SAMPLES = 4
SAMPLE = st.integers(-1, N_SAMPLES - 1)


@many
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4), st.integers(0, 2), SAMPLE, SAMPLE), max_size=9))
def test_columns_of_scheduling(rows: list[tuple[int, int, int, int, int]]) -> None:
    """What no row has is left out."""
    kinds = "i8", "u1", "u1", "i4", "i4"
    columns = [np.array([row[nth] for row in rows], kind) for nth, kind in enumerate(kinds)]
    ts, state, letter, left, wake = columns
    cpu = np.arange(len(rows), dtype=np.int32)
    reasons, stacks, wakers = ([-1, 70, 71], [5, -1, 7, 8], [11, 12, -1, 14])
    found = scheduling_columns(
        (ts, state, cpu, letter, left, wake), 1000, *(np.array(one, np.int32) for one in (reasons, stacks, wakers))
    )
    assert found["ts"].tolist() == [row[0] + 1000 for row in rows]
    assert (found["state"].tolist(), found["cpu"].tolist()) == (state.tolist(), cpu.tolist())
    assert found["reason"].tolist() == [-1 if row[1] == RUNNING else reasons[row[2]] for row in rows]
    for name, of, place in (("stack", stacks, 3), ("waker", wakers, 4), ("waker_stack", stacks, 4)):
        wanted = [of[row[place]] if row[place] >= 0 else -1 for row in rows]
        assert found[name].tolist() == wanted if any(row[place] >= 0 for row in rows) else name not in found


@pytest.mark.parametrize("place", [3, 4, 5])
def test_columns_of_what_there_is_not(place: int) -> None:
    rows = [np.zeros(1, kind) for kind in ("i8", "u1", "i4", "u1", "i4", "i4")]
    rows[place] += 3
    with pytest.raises(ValueError, match="that there is not"):
        scheduling_columns(rows, 0, *np.zeros((3, 3), np.int32))
