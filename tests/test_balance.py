"""Balanced calls and call paths, against models in plain Python that know the whole stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from traceferry.common.report import Report
from traceferry.model import (
    CALLS,
    ENTRY_LOST,
    LEAVE,
    OPEN_AT_END,
    OPEN_AT_START,
    TAIL,
    UNWOUND,
    StreamedTable,
    Table,
)
from traceferry.timeline._balance import MISSING_ENTER
from traceferry.timeline._calls import FUNC_SUMS, OpenCalls
from traceferry.timeline._paths import PathWalk, TimePacker, unpack_differences, unpack_durations
from traceferry.timeline.balance import Balancer, Raw, RecordedCalls, add_in_place
from traceferry.timeline.call_memory import CallMemory
from traceferry.timeline.paths import CallPaths, SampleTimes

N_KEYS = 4


@dataclass
class Row:
    ts: int
    key: int
    flags: int

    @property
    def frame(self) -> int:
        return self.key + 10


ROWS = st.lists(
    st.builds(Row, st.integers(0, 30), st.integers(0, N_KEYS - 1), st.sampled_from([0, 0, LEAVE, LEAVE, LEAVE | TAIL])),
    max_size=25,
)
SIZES = st.lists(st.integers(0, 9), max_size=8)
Calls = list[tuple[int, int, int]]


def innermost(stack: list[tuple[int, int]], key: int) -> int | None:
    """Where on a stack of (row, key) the innermost call of a key is."""
    return next((nth for nth in reversed(range(len(stack))) if stack[nth][1] == key), None)


def balanced(rows: list[Row], start_ts: int, lost: list[tuple[int, int, int]], end_ts: int) -> tuple[Calls, list[int]]:
    """The calls of a stream, and which row of them each row became, -1 for none. lost: row, key and flags of enters
    that belong before a row."""
    calls: Calls = []
    became: list[int] = []
    stack: list[tuple[int, int]] = []
    now = start_ts
    for nth, row in enumerate(rows):
        for _, key, flags in (missing for missing in lost if missing[0] == nth):
            now = now if row.flags & LEAVE else max(now, row.ts)
            calls.append((now, key + 10, flags))
            stack.append((-1, key))
        at = innermost(stack, row.key) if row.flags & LEAVE else len(stack)
        if at is None:
            became.append(-1)
            continue
        now = max(now, row.ts)
        for _, key in reversed(stack[at + 1 :]):
            calls.append((now, key + 10, LEAVE | UNWOUND))
        became.append(len(calls))
        calls.append((now, row.frame, row.flags))
        stack = stack[:at] if row.flags & LEAVE else [*stack, (nth, row.key)]
    calls += [(max(now, end_ts), key + 10, LEAVE | OPEN_AT_END) for _, key in reversed(stack)]
    return calls, became


def enters_left(rows: list[Row]) -> set[int]:
    """The rows that enter calls which a record of their own leaves."""
    stack: list[tuple[int, int]] = []
    found = set()
    for nth, row in enumerate(rows):
        if not row.flags & LEAVE:
            stack.append((nth, row.key))
        elif (at := innermost(stack, row.key)) is not None:
            found.add(stack[at][0])
            stack = stack[:at]
    return found


def lost_enters(rows: list[Row]) -> list[tuple[int, int, int]]:
    """Row, key and flags of the enters that leaves miss, in the order in which they are put in."""
    left, stack = enters_left(rows), list[tuple[int, int]]()
    from_start, inside = [], []
    for nth, row in enumerate(rows):
        if not row.flags & LEAVE:
            stack.append((nth, row.key))
        elif (at := innermost(stack, row.key)) is not None:
            stack = stack[:at]
        else:
            # It unwinds what is open inside of the innermost call that goes on.
            outer = max((depth for depth, (enter, _) in enumerate(stack) if enter in left), default=-1)
            unwound, stack = stack[outer + 1 :], stack[: outer + 1]
            if outer < 0:
                from_start.insert(0, (0, row.key, OPEN_AT_START))
            else:
                inside.append((unwound[0][0] if unwound else nth, row.key, ENTRY_LOST))
    return sorted(from_start + inside, key=lambda missing: missing[0])


def pieces(rows: list[Row], sizes: list[int]) -> Iterator[Raw]:
    """The rows in pieces of these sizes and one with the rest; every enter is marked, a piece's last also as row -1 of
    the next."""
    begin = 0
    for size in [*sizes, len(rows)]:
        part = rows[begin : begin + size]
        begin += len(part)
        marks = [nth for nth, row in enumerate(part) if not row.flags & LEAVE]
        yield Raw(
            np.array([row.ts for row in part], np.int64), np.array([row.key for row in part], np.int32),
            np.array([row.frame for row in part], np.int32), np.array([row.flags for row in part], np.uint8),
            np.array(marks, np.int64),
        )  # fmt: skip


def rows_of(*tables: Table) -> Calls:
    return [row for table in tables for row in zip(*(table[c].tolist() for c in ("ts", "frame", "flags")), strict=True)]


@examples(300)
@given(ROWS, SIZES, st.integers(0, 40), st.booleans())
def test_recorded_calls(rows: list[Row], sizes: list[int], end_ts: int, is_deep: bool) -> None:
    """is_deep: so many leaves without an enter come on so deep a stack that open calls are counted."""
    if is_deep:
        rows = [Row(0, N_KEYS + nth % 2, 0) for nth in range(300)] + [Row(0, N_KEYS + 2, LEAVE)] * 300 + rows
        sizes = [*sizes, 500]
    recorded = RecordedCalls(lambda: pieces(rows, sizes), 2 * len(rows), N_KEYS + 3, end_ts)
    found, marks = recorded.balanced(pieces(rows, sizes), Report(), "here", CallMemory())
    wanted, became = balanced(rows, rows[0].ts if rows else 0, lost_enters(rows), end_ts)
    assert rows_of(found) == wanted
    assert marks.tolist() == [nth for nth, row in zip(became, rows, strict=True) if not row.flags & LEAVE]


@examples(300)
@given(ROWS, SIZES, st.booleans())
def test_calls_without_lost_enters(rows: list[Row], sizes: list[int], in_place: bool) -> None:
    """Leaves without an enter are left out and counted."""
    balancer = Balancer(3)
    add = add_in_place if in_place else Balancer.add
    made = [add(balancer, raw, N_KEYS) for raw in pieces(rows, sizes)]
    made.append(balancer.close(40))
    wanted, became = balanced(rows, 3, [], 40)
    assert rows_of(*made) == wanted
    now, falls = 3, []
    for row in (row for row, nth in zip(rows, became, strict=True) if nth >= 0):
        falls += [now - row.ts] if row.ts < now else []
        now = max(now, row.ts)
    flags = [flags for _, _, flags in wanted]
    assert (balancer.n_written, balancer.n_orphans) == (len(wanted), became.count(-1))
    assert (balancer.n_unwound, balancer.depth) == (
        flags.count(LEAVE | UNWOUND), flags.count(LEAVE | OPEN_AT_END),
    )  # fmt: skip
    assert (balancer.n_backwards, balancer.max_backwards) == (len(falls), max(falls, default=0))


def in_parts(calls: Calls, sizes: list[int]) -> Iterator[Table]:
    """The calls in tables of these sizes and one with the rest."""
    begin = 0
    for size in [*sizes, len(calls)]:
        if part := calls[begin : begin + size]:
            ts, frame, flags = zip(*part, strict=True)
            yield Table(
                CALLS, {"ts": np.array(ts), "frame": np.array(frame, np.int32), "flags": np.array(flags, np.uint8)}
            )
        begin += len(part)


def paths_over_time(calls: Calls) -> list[tuple[int, tuple[int, ...]]]:
    """The stack after each row that changes it, with its time; those that do not last are left out, but for that of a
    call which begins and ends at once."""
    states, stack = list[tuple[int, tuple[int, ...], bool]](), tuple[int, ...]()
    for ts, frame, flags in calls:
        stack = stack[:-1] if flags & LEAVE else (*stack, frame)
        states.append((ts, stack, bool(flags & LEAVE)))
    following = [*states[1:], None][: len(states)]
    return [
        (ts, stack)
        for (ts, stack, leaves), after in zip(states, following, strict=True)
        if after is None or after[0] != ts or (after[2] and not leaves)
    ]


@examples(200)
@given(ROWS, SIZES, st.integers(1, 12))
def test_call_paths(rows: list[Row], sizes: list[int], longest: int) -> None:
    """Each path is interned once, prefixes first; samples repeat at the end of what lasts long; packed times are those
    of the samples."""
    calls, _ = balanced(rows, 0, [], 40)
    streamed = StreamedTable(CALLS, lambda: in_parts(calls, sizes))
    wanted = paths_over_time(calls)
    paths, expected = CallPaths(), []
    for nth, (ts, path) in enumerate(wanted):
        if nth and ts - wanted[nth - 1][0] > longest:
            expected.append((ts, wanted[nth - 1][1]))
        expected.append((ts, path))
    made = list(paths.samples(streamed, longest))
    samples = [(int(ts), int(path)) for piece in made for ts, path in zip(*piece, strict=True)]
    frames_of: dict[int, tuple[int, ...]] = {-1: ()}
    for nth, (prefix, frame) in enumerate(zip(paths.parent.tolist(), paths.key.tolist(), strict=True)):
        frames_of[nth] = (*frames_of[prefix], frame)
    assert [(ts, frames_of[path]) for ts, path in samples] == expected
    assert len(set(frames_of.values())) == len(frames_of)
    times = SampleTimes(lambda: paths.samples(streamed, longest))
    assert [path for piece in times.stacks() for path in piece.tolist()] == [path for _, path in samples]
    ends = [ts for ts, _ in samples[1:]] + [samples[-1][0]] if samples else []
    differences = [ns for piece in times.differences(7) for ns in piece.tolist()]
    assert list(accumulate(differences)) == [ts - 7 for ts, _ in samples]
    assert [ns for piece in times.durations() for ns in piece.tolist()] == [
        end - ts if path >= 0 else 0 for (ts, path), end in zip(samples, ends, strict=True)
    ]


def test_columns_that_do_not_fit() -> None:
    """Whatever Python code hands over: no read or write outside of arrays."""
    ts, index, flags = np.arange(4), np.zeros(4, np.int32), np.array([0, 0, 1, 1], np.uint8)
    short, negative, none = flags[:3], index - 1, np.zeros(0, np.int64)
    limits, leaves = np.array([1]), flags[::-1].copy()
    for misuse in (
        lambda: Balancer().add(Raw(ts, index, index, short), 1),
        lambda: Balancer().add(Raw(ts, negative, index, flags), 1),
        lambda: Balancer().add(Raw(ts, index + 1, index, flags), 1),
        lambda: Balancer(0).add_in_place(ts, index, index.copy(), short, 1),
        lambda: Balancer(0).add_in_place(ts, negative, index.copy(), leaves, 1),
        lambda: Balancer(0).add_in_place(ts, index, index.copy(), flags, 0),
        lambda: Balancer().add_in_place(ts, index, index.copy(), flags, 1),
        lambda: Balancer(notes_orphans=True, missing=np.zeros(1, MISSING_ENTER)),
        lambda: OpenCalls().within(ts, index, short, 0, 9),
        lambda: OpenCalls().lasting(ts, index, leaves, 0),
        lambda: OpenCalls().count_lasting(ts, flags, limits, none),
        lambda: OpenCalls().add_up(ts, index, flags, index[:0], np.zeros(1, FUNC_SUMS)),
        lambda: OpenCalls().add_up(ts, index, flags, index, np.zeros(0, FUNC_SUMS)),
        lambda: OpenCalls().add_up(ts, negative, flags, index, np.zeros(1, FUNC_SUMS)),
        lambda: PathWalk(CallPaths(), 9).add(ts, index, short),
        lambda: PathWalk(CallPaths(), 9).add(ts, index, leaves),
        lambda: CallPaths().append(index, index[:3]),
        lambda: TimePacker().add(ts, index[:3]),
        lambda: unpack_differences(np.full(2, 0xFFFF, np.uint16), limits),
        lambda: unpack_durations(np.full(2, 0xFFFF, np.uint16), limits),
    ):
        with pytest.raises(ValueError, match=r"balanced|lengths?|key|pass|start"):
            misuse()
