"""Budgets: short calls are summed in place, and totals of each function and thread stay those of the recording.

What must stay is worked out here call by call, from pairs of enters and leaves.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import REPO
from hypothesis import given
from hypothesis import strategies as st
from support import lawful, load_checked
from test_select import Row, call_rows, calls_table, data_of, in_pieces, partners, rows_of, trace_of

import traceferry
from traceferry.common.errors import UsageError
from traceferry.model import ARGUMENTS, LEAVE, OPEN_AT_END, Table, ThreadData, Trace
from traceferry.timeline import short_calls
from traceferry.timeline.balance import CallTotals
from traceferry.timeline.short_calls import ALL_RANKS, Summing, events_of, shortest_of, summing_to

FIXTURES = REPO / "fixtures"
LOG = FIXTURES / "xray" / "clang-19" / "fdr-c19-pie-pool-tsc.xray"
RECORDINGS = [path for suffix in ("xray", "mlpd") for path in sorted(FIXTURES.glob(f"*/*/*.{suffix}"))]
Path_ = tuple[int, ...]


def summed(trace: Trace, limit: int) -> Trace:
    return Summing(trace, events_of(trace), limit, 0).summed()


def by_path(rows: list[Row], counts: list[int] | None = None) -> tuple[Counter[Path_], Counter[Path_]]:
    """ns and calls of each path."""
    ns, calls, path = Counter[Path_](), Counter[Path_](), list[int]()
    for row, ((ts, frame, flags), other) in enumerate(zip(rows, partners(rows), strict=True)):
        if flags & LEAVE:
            ns[tuple(path)] += ts - rows[other][0]
            path.pop()
        else:
            path.append(frame)
            calls[tuple(path)] += counts[row] if counts else 1
    return ns, calls


def long_ones(rows: list[Row], shortest: int) -> list[Row]:
    return [row for row, other in zip(rows, partners(rows), strict=True) if abs(rows[other][0] - row[0]) >= shortest]


def n_by_hand(rows: list[Row], shortest: int) -> int:
    """Long calls, and the distinct paths of short ones between each two rows of long ones."""
    n, gap, path = 0, set[Path_](), list[int]()
    for row, other in zip(rows, partners(rows), strict=True):
        is_long = abs(rows[other][0] - row[0]) >= shortest
        leaves = row[2] & LEAVE
        if not leaves:
            path.append(row[1])
            n += is_long or tuple(path) not in gap
            gap.add(tuple(path))
        if is_long:
            gap = set()
        if leaves:
            path.pop()
    return n


LIMITS = st.sampled_from([1, 2, 3, 5, 6, 9, 10, 12, 15, ALL_RANKS])


@given(call_rows(), LIMITS, st.integers(1, 9))
def test_paths_keep_their_time_and_calls(rows: list[Row], limit: int, size: int) -> None:
    shortest = shortest_of(limit) if limit < ALL_RANKS else 1 << 62
    trace = trace_of(ThreadData(calls=in_pieces(calls_table(rows), size)))
    lawful(made := summed(trace, limit))
    calls = data_of(made).calls
    counts = calls.counts()
    left = rows_of(calls)
    assert by_path(left, None if counts is None else counts.tolist()) == by_path(rows)
    assert set(long_ones(rows, shortest)) <= set(left)
    assert len(left) // 2 == n_by_hand(rows, shortest)
    whole = trace_of(ThreadData(calls=calls_table(rows)))
    assert rows_of(data_of(summed(whole, limit)).calls) == left, "the same rows from one piece"


@given(call_rows(), st.integers(0, 12))
def test_the_limit_that_is_chosen(rows: list[Row], most: int) -> None:
    trace = trace_of(ThreadData(calls=in_pieces(calls_table(rows), 4)))
    summing = summing_to(trace, most, events_of(trace))
    n = sum(1 for _ in rows_of(data_of(summing.summed()).calls)) // 2
    assert n == summing.n_left
    assert n <= most or (summing.is_least and n == len(by_path(rows)[0]))


def test_ranks_that_are_not_kept_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no room for them, the trace is the same."""
    kept = load_checked(LOG, max_events=300)
    monkeypatch.setattr(short_calls, "MOST_KEPT", 0)
    found = load_checked(LOG, max_events=300)
    for (_, one), (_, other) in zip(kept.threads, found.threads, strict=True):
        assert rows_of(one.load(kept).calls) == rows_of(other.load(found).calls)


def totals(trace: Trace) -> Iterator[tuple[int, list[list[int]]]]:
    for _, thread in trace.threads:
        data = thread.load(trace)
        assert data.trace is not None
        found = CallTotals(data.trace.frames, data.trace.funcs)
        n = found.add(data.calls)
        yield n, [column.tolist() for column in found.by_func()]


@pytest.mark.parametrize("path", RECORDINGS, ids=[path.name for path in RECORDINGS])
@pytest.mark.parametrize("most", [0, 20, 300])
def test_totals_of_recordings(path: Path, most: int) -> None:
    whole, part = load_checked(path), load_checked(path, max_events=most)
    assert list(totals(part)) == list(totals(whole))
    if events_of(part).n > most:
        assert "budget_exceeded" in {issue.kind for issue in part.report}


def test_what_is_not_summed_is_as_it_was() -> None:
    """Two calls of 3 ns become one of 6; what comes later begins when it did."""
    rows = [(0, 0, 0), (10, 1, 0), (13, 1, LEAVE), (20, 1, 0), (23, 1, LEAVE), (40, 2, 0), (42, 2, LEAVE | OPEN_AT_END)]
    trace = trace_of(ThreadData(calls=calls_table([*rows, (100, 0, LEAVE)])))
    calls = data_of(summed(trace, 8)).calls
    assert rows_of(calls) == [(0, 0, 0), (10, 1, 0), (16, 1, LEAVE), *rows[5:], (100, 0, LEAVE)]
    assert calls.counts().tolist() == [1, 2, 0, 1, 0, 0]  # type: ignore[union-attr]


def test_arguments_of_calls_that_stay_and_numbers_of_those_that_do_not() -> None:
    rows = [(0, 0, 0), (10, 1, 0), (13, 1, LEAVE), (20, 1, 0), (23, 1, LEAVE), (40, 2, 0), (42, 2, LEAVE)]
    arguments = Table(ARGUMENTS, {"call": [0, 1, 3, 5], "value": np.array([7, 8, 9, 10], np.uint64), "key": [-1] * 4,
                                  "text": [-1] * 4, "format": [-1] * 4})  # fmt: skip
    trace = trace_of(ThreadData(calls=calls_table([*rows, (100, 0, LEAVE)]), arguments=arguments))
    made = lawful(summed(trace, 8))
    data = data_of(made)
    assert data.trace is not None
    found = zip(*(data.arguments[name].tolist() for name in ("call", "value", "key")), strict=True)
    assert [(call, value, data.trace.strings[key] if key >= 0 else "") for call, value, key in found] == [
        (0, 7, ""), (1, 2, "summed calls"), (3, 10, ""),
    ]  # fmt: skip
    assert {i.kind: i.count for i in made.report}["arguments_summed"] == 2


# A page without any call has 0.952 of the size.
@pytest.mark.parametrize(
    ("suffix", "share"), [(".json", 0.95), (".json.gz", 0.95), (".pftrace", 0.95), (".html", 0.97)]
)
def test_outputs_of_a_size(tmp_path: Path, suffix: str, share: float) -> None:
    recording, whole, part = LOG, tmp_path / f"whole{suffix}", tmp_path / f"part{suffix}"
    trace = traceferry.load(recording)
    traceferry.save(trace, whole)
    most = int(whole.stat().st_size * share)
    traceferry.save(trace, part, max_size=most)
    assert part.stat().st_size <= most
    assert "short_calls_summed" in {issue.kind for issue in trace.report}
    again = tmp_path / f"again{suffix}"
    traceferry.save(traceferry.load(recording), again, max_size=most)
    assert again.read_bytes() == part.read_bytes()


def test_an_output_that_fits_is_as_it_is(tmp_path: Path) -> None:
    trace = traceferry.load(LOG)
    traceferry.save(trace, tmp_path / "whole.json")
    traceferry.save(trace, tmp_path / "part.json", max_size=1 << 30)
    assert (tmp_path / "part.json").read_bytes() == (tmp_path / "whole.json").read_bytes()


def test_a_size_that_is_too_small(tmp_path: Path) -> None:
    trace = traceferry.load(LOG)
    traceferry.save(trace, tmp_path / "part.json", max_size=100)
    (issue,) = (issue for issue in trace.report if issue.kind == "size_exceeded")
    assert issue.detail.endswith(" instead of 100 B")
    assert not trace.report.lossy
    assert (tmp_path / "part.json").stat().st_size > 100


def test_standard_output_gets_the_same(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "traceferry", "convert", str(LOG), "--max-size", "20K"]
    printed = subprocess.run([*command, "--to", "firefox", "-o", "-"], check=True, capture_output=True).stdout
    subprocess.run([*command, "-o", str(tmp_path / "out.json")], check=True, capture_output=True)
    assert (tmp_path / "out.json").read_bytes() == printed


@pytest.mark.parametrize("text", ["", "M", "1.5M", "-3", "2T", "²K"])
def test_numbers_of_events_that_are_none(text: str) -> None:
    from traceferry.apps.cli import options

    with pytest.raises((UsageError, options.argparse.ArgumentTypeError), match="not a number of events"):
        options.count(text)


def test_numbers_of_events() -> None:
    from traceferry.apps.cli import options

    assert [options.count(text) for text in ("0", "12", "500k", "2M", "1G")] == [0, 12, 500_000, 2_000_000, 10**9]
