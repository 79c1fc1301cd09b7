"""Perfetto's own test cases: `query` prints the answers that they expect, in CSV, of those that this engine answers."""

import csv
import io
import subprocess
from pathlib import Path

import pytest
from queries import found
from support import extract

from traceferry.apps.cli import main

__all__ = ["found"]

CAPTURES = Path(__file__).resolve().parent.parent.parent / "shared" / "captures"
CASES = 12
REST = [pytest.param(nth, marks=pytest.mark.large) for nth in range(1, CASES)]


@pytest.mark.parametrize("nth", [0, *REST])
def test_perfettos_own_cases(found: str, nth: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = CAPTURES / "viewers" / "perfetto-difftests" / "difftests.tar.gz"
    if not archive.exists():
        pytest.skip(f"{archive} is absent")
    extract(archive, tmp_path)
    cases = sorted(path.parent for path in tmp_path.glob("*/trace*"))
    wrong = [case.name for case in cases[nth::CASES] if not is_answered(case, capsys) and is_answered_by(found, case)]
    assert wrong == []


def is_answered(case: Path, capsys: pytest.CaptureFixture[str]) -> bool:
    """Whether `query` gives the rows that the case expects."""
    (trace,) = case.glob("trace*")
    capsys.readouterr()
    # traceferry reads strace's text itself.
    by_engine = ["--from", "perfetto"] if trace.suffix == ".strace" else []
    status = main(["query", "--quiet", *by_engine, str(trace), "-f", str(case / "query.sql")])
    got = capsys.readouterr().out
    expected = rows_of((case / "expected.csv").read_text())
    if case.name.startswith("syntax.PerfettoMultiStatement."):
        # The engine prints the rows of each statement, CSV has the last one's only.
        expected = expected[-len(rows_of(got)) :]
    return status == 0 and same(rows_of(got), expected)


def rows_of(text: str) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(text, newline="")) if row]


def same(got: list[list[str]], expected: list[list[str]]) -> bool:
    if not expected:
        return True  # the case is one of statements without rows
    if len(got) != len(expected):
        return False
    return all(map(is_same_row, got, expected))


def is_same_row(got: list[str], expected: list[str]) -> bool:
    if len(got) == len(expected):
        return all(map(is_same, got, expected))
    return is_same(",".join(got), ",".join(expected))


def is_same(got: str, expected: str) -> bool:
    """The engine prints six decimals, NULL by its name, and does not double quotes inside of texts."""
    got, expected = got.replace('"', ""), expected.replace('"', "")
    if got == ("" if expected == "[NULL]" else expected):
        return True
    try:
        return "." in expected and f"{float(got):f}" == expected
    except ValueError:
        return False


def is_answered_by(engine: str, case: Path) -> bool:
    """Whether the engine alone answers as expected: its version may not, or lack what its build left out."""
    (trace,) = case.glob("trace*")
    command = [engine, "query", "-f", str(case / "query.sql"), str(trace)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, errors="replace")
    expected = rows_of((case / "expected.csv").read_text())
    return done.returncode == 0 and rows_of(done.stdout) == expected
