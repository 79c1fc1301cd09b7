"""What the end of a run says about tests that were skipped, and which cases run each time."""

from types import SimpleNamespace
from typing import Any

import pytest
from conftest import NEITHER, NO_SHARED, in_turn, one_in, skipped


def test_skipped_tests_are_counted_by_reason() -> None:
    def report(nodeid: str, reason: str) -> Any:
        return SimpleNamespace(nodeid=nodeid, longrepr=("tests/test_x.py", 1, f"Skipped: {reason}"))

    reports = [
        report("test_x.py::test_a[1]", "perf is not installed"),
        report("test_x.py::test_a[2]", "perf is not installed"),
        report("test_x.py::test_b", f"a.mlpd: {NO_SHARED}"),
        report("test_x.py::test_c", f"b.mlpd: {NEITHER.format('fixtures/mono')}"),
        report("test_y.py", "chromium is not installed"),
    ]
    assert skipped(reports) == {
        "perf is not installed": 2, NO_SHARED: 2, "all of test_y.py: chromium is not installed": 1,
    }  # fmt: skip


def each_time(cases: list[Any]) -> list[Any]:
    return [case.values for case in cases if not case.marks]


def test_one_case_in_several_runs_each_time() -> None:
    large, skip = (pytest.param(mark.name, marks=mark) for mark in (pytest.mark.large, pytest.mark.skip(reason="gone")))
    cases = [large, "a", "b", skip, "c", "d"]
    assert each_time(one_in(2, cases)) == [("a",), ("c",)]
    assert each_time(one_in(2, cases, first=1)) == [("b",), ("d",)]
    assert [mark.name for case in one_in(2, cases) for mark in case.marks] == ["large", "large", "skip", "large"]


def test_each_case_is_in_turn_with_each_other() -> None:
    pairs = in_turn(["a", "b", "c", "d"], [1, 2, 3])
    assert each_time(pairs) == [("a", 1), ("b", 2), ("c", 3), ("d", 1)]
    assert len({pair.values for pair in pairs}) == len(pairs) == 12
