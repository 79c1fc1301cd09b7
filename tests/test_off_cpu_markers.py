"""Rows of scheduling become markers of time off the processors: the kernel against a few lines of Python."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from traceferry.exporters.firefox._off_cpu import off_cpu_rows
from traceferry.exporters.json._numbers import ABSENT
from traceferry.model import RUNNABLE, RUNNING, WAITING

Row = tuple[int, int, int, int, int, int]  # ts, state, cpu, reason, waker, waker_stack
KINDS = "i8", "u1", "i4", "i4", "i8", "i4"
SMALL = st.integers(-1, 2)
ROWS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4), SMALL, SMALL, SMALL, SMALL), max_size=9).map(sorted)


def expected(rows: list[Row], end_ts: int) -> list[tuple[int, ...]]:
    found, nth = [], 0
    while nth < len(rows):
        first = rows[nth]
        if first[1] != RUNNING:
            nth += first[1] == WAITING and nth + 1 < len(rows) and rows[nth + 1][1] == RUNNABLE
            last, then = rows[nth], rows[nth + 1] if nth + 1 < len(rows) else None
            end = then[0] if then else max(end_ts, rows[-1][0])
            has_moved = then is not None and then[1] == RUNNING and then[2] not in (-1, first[2])
            found.append((
                first[0], end - first[0], first[1], first[3],
                first[2] if first[2] >= 0 else ABSENT,
                then[2] if then is not None and has_moved else ABSENT,
                (end - last[0] if last[1] == RUNNABLE else 0) or ABSENT,
                last[0], last[4], last[5],
            ))  # fmt: skip
        nth += 1
    return found


@examples(200)
@given(ROWS, st.integers(0, 40))
def test_times_off_the_processors(rows: list[Row], end_ts: int) -> None:
    columns = [np.array([row[nth] for row in rows], kind) for nth, kind in enumerate(KINDS)]
    off = off_cpu_rows(*columns, end_ts)
    parts = (
        off.ts, off.dur, off.state, off.reason, off.cpu, off.moved, off.runnable, off.woken_at, off.waker,
        off.waker_stack,
    )  # fmt: skip
    assert list(zip(*(part.tolist() for part in parts), strict=True)) == expected(rows, end_ts)


def test_columns_of_several_lengths() -> None:
    columns = [np.zeros(1 + (kind == "u1"), kind) for kind in KINDS]
    with pytest.raises(ValueError, match="several lengths"):
        off_cpu_rows(*columns, 0)
