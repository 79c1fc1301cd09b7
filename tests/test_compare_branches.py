"""Branches in comparisons and in data sets: what functions have of them, by recordings of two builds."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from builders.perf_data import BRANCH_ANY, BRANCH_USER, HARDWARE, PerfData
from support import load_checked

from traceferry.analysis.compare.comparison import compare
from traceferry.analysis.compare.gate import evaluate, parse
from traceferry.analysis.compare.runs import Run
from traceferry.apps.cli import main

APP, LIB = 0x40_1000, 0x7F00_0000_0000
N_SAMPLES, N_BRANCHES, FASTEST = 300, 16, 5


def recording(path: Path, mispredicted: float, seed: int, has_flags: bool = True) -> Path:
    """Samples of branches at 16 places of a program, of which such a part is mispredicted, and of a library."""
    chance = random.Random(seed)
    data = PerfData().event(
        "cycles", HARDWARE, 0, sample_type="IDENTIFIER|IP|TID|TIME|PERIOD|BRANCH_STACK", period=1000,
        branch_sample_type=BRANCH_USER | BRANCH_ANY,
    )  # fmt: skip
    data.comm(7, 7, "app", ts=0).mmap2(7, 7, APP, 1 << 16, 0, "/nowhere/app")
    data.mmap2(7, 7, LIB, 1 << 16, 0, "/nowhere/libx.so")
    for nth in range(N_SAMPLES):
        base, rate = (APP, mispredicted) if nth % 2 else (LIB, 0.05)
        flags = [data.branch_flags(chance.random() < rate, FASTEST + k) for k in range(N_BRANCHES)]
        flags = flags if has_flags else [0] * N_BRANCHES
        branches = [(base + 16 * k + 8, base + 16 * k, flag) for k, flag in enumerate(flags)]
        data.sample(7, 7, ip=base, branches=branches)
    path.write_bytes(data.bytes())
    return path


def runs(folder: Path, rate: float, seed: int, has_flags: bool = True) -> list[Run]:
    paths = [recording(folder / f"{seed + nth}.data", rate, seed + nth, has_flags) for nth in range(3)]
    return [Run.of(path.name, load_checked(path), False) for path in paths]


def test_functions_that_mispredict_more(tmp_path: Path) -> None:
    """The table of mispredictions and their rate tell the program, and not the library; nothing else has changed."""
    result = compare(runs(tmp_path, 0.05, 1), runs(tmp_path, 0.4, 11))
    changed = {
        (table.name, row.name.split("+")[0]) for table in result.tables for row in table.changed if "(" not in row.name
    }
    assert changed == {
        ("events", "mispredicted-branches"), ("mispredicted-branches", "app"), ("mispredicted-branches rate", "app"),
    }  # fmt: skip
    whole = {row.name: (row.base, row.new) for table in result.tables_named("events") for row in table.rows}
    n = N_SAMPLES * N_BRANCHES
    cycles = N_SAMPLES * sum(range(FASTEST, FASTEST + N_BRANCHES))
    assert (whole["taken-branches"], whole["branch-cycles"]) == ((n, n), (cycles, cycles))
    gates = {
        "mispredicted-branches > 50%": "failed", "mispredicted-branches('app+0x8') > 50%": "failed",
        "mispredicted-branches('libx.so+0x8') > 400%": "passed",
    }  # fmt: skip
    assert {text: evaluate(parse(text), result).status for text in gates} == gates


def test_branches_without_outcomes_are_counted(tmp_path: Path) -> None:
    """Processors that record neither outcomes nor cycles: there is no table of them."""
    result = compare(runs(tmp_path, 0.0, 1, False), runs(tmp_path, 0.0, 11, False))
    names = {table.name for table in result.tables}
    assert "taken-branches" in names
    assert not names & {"mispredicted-branches", "branch-cycles", "mispredicted-branches rate"}


def test_branches_in_a_data_set(tmp_path: Path) -> None:
    """aggregate: a row of `events` for each of what branches have."""
    pq = pytest.importorskip("pyarrow.parquet")
    path = recording(tmp_path / "perf.data", 0.25, 3)
    assert main(["aggregate", str(path), "-o", str(tmp_path / "set"), "--quiet"]) == 0
    found = [
        row for file in (tmp_path / "set" / "events").rglob("*.parquet") for row in pq.read_table(file).to_pylist()
    ]
    n = N_SAMPLES * N_BRANCHES
    weights = {row["event"]: row["weight"] for row in found if row["kind"] == "branches"}
    assert weights.keys() == {"taken-branches", "mispredicted-branches", "branch-cycles"}
    assert weights["taken-branches"] == n
    assert n / 10 < weights["mispredicted-branches"] < n / 5
