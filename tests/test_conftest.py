"""What the end of a run says about tests that were skipped."""

from types import SimpleNamespace
from typing import Any

from conftest import NEITHER, NO_SHARED, skipped


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
