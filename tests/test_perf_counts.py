"""What perf stat record counted: counters of the program, with the numbers that `perf stat report` prints."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from builders.perf_data import SOFTWARE, PerfData
from outputs import saved
from readers import perfetto
from support import load_checked
from test_perf_map import LIB, PID, START, read, recorded, reported

from traceferry.analysis.compare.comparison import compare
from traceferry.analysis.compare.gate import evaluate, parse
from traceferry.analysis.compare.runs import Run
from traceferry.analysis.info.summary import summarize
from traceferry.analysis.info.text import as_text
from traceferry.model import Trace

CYCLES, SWITCHES = 11, 12
MACHINE = -1
ORDERS = pytest.mark.parametrize("order", "<>", ids=["little", "big"])


def counting(*threads: tuple[int, str], order: str = "<", mode: str = "file", **config: int) -> PerfData:
    """perf stat that counts cycles and context switches; by default of process 7."""
    told: dict[str, Any] = {"sample_type": "IDENTIFIER", "clockid": None, "flags": "disabled inherit"}
    data = PerfData(order, mode).event("cycles", 0, 0, ids=[CYCLES], **told)
    data.event("context-switches", SOFTWARE, 3, ids=[SWITCHES], **told)
    return data.thread_map(*threads or [(7, "app")]).stat_config(**{"aggregation": 1, "interval": 100} | config)


def counted(trace: Trace) -> dict[str, list[float]]:
    """By the name of a counter, what it counted in each round."""
    (process,) = trace.processes
    return {counter.name: counter.values["value"].tolist()[1:] for counter in process.counters}


def two_rounds(data: PerfData) -> PerfData:
    data.stat(CYCLES, 1000).stat(SWITCHES, 3).stat_round(100)
    return data.stat(CYCLES, 1500, 200, 200).stat(SWITCHES, 3, 200, 200).stat_round(250, last=True)


# ---------------------------------------------------------------- what is read


@ORDERS
@pytest.mark.parametrize("mode", ["file", "pipe"])
def test_values_are_what_was_counted_since_the_round_before(order: str, mode: str) -> None:
    trace = read(two_rounds(counting(order=order, mode=mode)))
    (process,) = trace.processes
    assert counted(trace) == {"cycles": [1000, 500], "context-switches": [3, 0]}
    assert [counter.values["ts"].tolist() for counter in process.counters] == [[0, 100, 250]] * 2
    assert (process.pid, process.name, process.threads) == (7, "app", [])
    assert reported(trace) == {"counts_only": 1}


def test_threads_and_processors_are_summed() -> None:
    data = counting((7, "app"), (8, ""))
    for cpu in (0, 1):
        data.stat(CYCLES, 10, cpu=cpu, thread=0).stat(CYCLES, 5, cpu=cpu, thread=1)
    assert counted(read(data.stat(SWITCHES, 1).stat_round(9))) == {"cycles": [30], "context-switches": [1]}


def test_processors_that_were_asked_for_apart_stand_below_their_sum() -> None:
    data = counting((-1, ""), aggregation=0)
    data.stat(CYCLES, 10, cpu=0).stat(CYCLES, 5, cpu=3).stat(SWITCHES, 1, cpu=0).stat_round(9)
    assert counted(read(data)) == {
        "cycles": [15], "cycles: CPU 0": [10], "cycles: CPU 3": [5],
        "context-switches": [1], "context-switches: CPU 0": [1],
    }  # fmt: skip


def test_counts_of_all_processors_are_not_of_one() -> None:
    data = counting(aggregation=0).stat(CYCLES, 10).stat(SWITCHES, 1).stat_round(9)
    assert counted(read(data)) == {"cycles": [10], "context-switches": [1]}


def test_threads_that_were_asked_for_apart_stand_below_their_sum() -> None:
    data = counting((7, "app"), (8, "worker"))
    data.feature(CMDLINE=["perf", "stat", "record", "--per-thread", "-p", "7"])
    data.stat(CYCLES, 10, thread=0).stat(CYCLES, 5, thread=1).stat(SWITCHES, 2, thread=1).stat_round(9)
    assert counted(read(data)) == {
        "cycles": [15], "cycles: app 7": [10], "cycles: worker 8": [5],
        "context-switches": [2], "context-switches: worker 8": [2],
    }  # fmt: skip


@pytest.mark.parametrize(("threads", "command", "process"), [
    ([(7, "app")], [], (7, "app")),
    ([(7, "")], ["-I", "100", "./bin/app", "-p"], (7, "app")),
    ([(7, "")], ["-p", "7", "sleep", "1"], (7, "process 7")),
    ([(7, "")], ["--tid=7", "sleep", "1"], (7, "process 7")),
    ([(7, "")], [], (7, "process 7")),
    ([(MACHINE, "")], ["-a", "sleep", "1"], (0, "whole machine")),
    ([], [], (0, "whole machine")),
])  # fmt: skip
def test_the_program_that_was_counted(
    threads: list[tuple[int, str]], command: list[str], process: tuple[int, str]
) -> None:
    data = counting(*threads or [(MACHINE, "")])
    if command:
        data.feature(CMDLINE=["perf", "stat", "record", *command])
    (found,) = read(two_rounds(data)).processes
    assert (found.pid, found.name) == process


@pytest.mark.parametrize(
    ("enabled", "running", "value"), [(100, 100, 60), (100, 25, 240), (100, 0, None), (0, 0, None)]
)
def test_a_counter_that_shared_its_place_is_scaled(enabled: int, running: int, value: float | None) -> None:
    trace = read(counting().stat(CYCLES, 60, enabled, running).stat(SWITCHES, 1).stat_round(9))
    expected = {"cycles": [value]} if value is not None else {}
    assert counted(trace) == expected | {"context-switches": [1]}
    assert reported(trace) == {"counts_only": 1} | ({"event_never_ran": 1} if value is None else {})


def test_scaling_is_of_each_round() -> None:
    data = counting().stat(SWITCHES, 1).stat(CYCLES, 60, 100, 25).stat_round(9)
    assert counted(read(data.stat(CYCLES, 70, 200, 125).stat_round(18)))["cycles"] == [240, 10]


def test_a_counter_that_begins_again_counts_from_nothing() -> None:
    data = counting().stat(CYCLES, 60).stat(SWITCHES, 1).stat_round(9).stat(CYCLES, 50, 200, 200).stat_round(18)
    assert counted(read(data))["cycles"] == [60, 50]


@ORDERS
@pytest.mark.parametrize(("unit", "scale", "shown"), [
    ("msec", 1e-6, ("ns", 4e6)), ("Joules", 0.25, ("Joules", 1e6)), ("", 0.5, ("count", 2e6)),
    ("MiB", float("nan"), ("MiB", 4e6)), ("MiB", -1e300, ("MiB", 4e6)),
])  # fmt: skip
def test_units(order: str, unit: str, scale: float, shown: tuple[str, float]) -> None:
    data = counting(order=order).stat_unit(CYCLES, unit, scale).stat(CYCLES, 4_000_000).stat_round(9)
    trace = read(data)
    (counter,) = trace.processes[0].counters
    assert (counter.unit, *counted(trace)["cycles"]) == shown


def test_what_was_counted_after_the_last_round_is_named() -> None:
    again = two_rounds(counting()).stat(CYCLES, 1500, 200, 200)
    assert reported(read(again)) == {"counts_only": 1}
    more = two_rounds(counting()).stat(CYCLES, 1501, 300, 300)
    assert reported(read(more)) == {"counts_only": 1, "counts_after_end": 1}
    assert counted(read(more))["cycles"] == [1000, 500]


def test_nothing_that_was_counted_is_told() -> None:
    """As where a virtual machine does not count cycles: perf says <not counted>."""
    trace = read(counting().stat(CYCLES, 0, 100, 0).stat(SWITCHES, 5, 0, 0).stat_round(9))
    assert (reported(trace), trace.processes) == ({"event_never_ran": 2, "no_samples": 1}, [])


def test_the_start_has_no_date() -> None:
    """perf stat reads no clock for CLOCK_DATA: it would have begun in 1970."""
    trace = read(two_rounds(counting().feature(CLOCK_DATA=(0, 0, 0))))
    assert summarize(trace)["time"] == {"clock": "sched", "duration_ns": 250, "unix_start_ns": None}


def test_counts_without_a_round_are_none() -> None:
    trace = read(counting().stat(CYCLES, 60))
    assert reported(trace) == {"no_samples": 1}
    assert not trace.processes


def test_damage() -> None:
    unknown = two_rounds(counting().stat(99, 1))
    assert reported(read(unknown)) == {"counts_only": 1, "records_not_read": 1}
    short = two_rounds(counting()).raw_record(76, 0, bytes(24)).raw_record(77, 0, bytes(8))
    assert reported(read(short)) == {"counts_only": 1, "bad_record": 2}
    late = two_rounds(counting()).stat(CYCLES, 2000, 300, 300).stat_round((1 << 64) - 1).stat_round(5)
    assert counted(read(late))["cycles"] == [1000, 500, 500, 0]
    no_thread = counting().stat(CYCLES, 5, thread=9).stat_round(5)
    assert counted(read(no_thread))["cycles"] == [5]


def test_samples_beside_counts(tmp_path: Path) -> None:
    """Nothing tells when the counts begin: they stand where the samples begin."""
    (tmp_path / "samples.data").write_bytes(recorded().sample(PID, PID, START + 5, LIB).bytes())
    (tmp_path / "stat.data").write_bytes(two_rounds(counting((8, "other"))).bytes())
    trace = load_checked([tmp_path / "stat.data", tmp_path / "samples.data"])
    (counts,) = (process for process in trace.processes if process.counters)
    (samples,) = (process for process in trace.processes if process.threads)
    assert (samples.start_ts, counts.start_ts, counts.end_ts) == (trace.start_ts, trace.start_ts, trace.start_ts + 250)
    assert summarize(trace)["verdict"]["kind"] != "counts_only"


# ---------------------------------------------------------------- what is shown


def test_info_has_totals() -> None:
    summary = summarize(read(two_rounds(counting())))
    cycles, _ = summary["processes"][0]["counters"]
    assert cycles == {
        "name": "cycles", "unit": "count", "values": 2,
        "first": 1000, "last": 500, "min": 500, "max": 1000, "total": 1500,
    }  # fmt: skip
    text = as_text(summary)
    assert "no threads of process app 7" in text
    assert re.search(r"total +last +first +min +max +values +counter\n +1500 +500 +1000 +500 +1000 +2 +cycles", text)


def test_the_verdict_says_what_it_is_and_how_to_get_samples() -> None:
    data = counting().feature(CMDLINE=["perf", "stat", "record", "-I", "100", "-e", "cycles", "./app"])
    verdict = summarize(read(two_rounds(data)))["verdict"]
    assert (verdict["kind"], verdict["severity"]) == ("counts_only", "info")
    assert verdict["headline"] == "2 counters of perf stat, and no samples: no functions, and no stacks"
    assert verdict["advice"][0]["command"] == "perf record -e cycles -g ./app"


def test_firefox_draws_a_rate_and_has_it_back(tmp_path: Path) -> None:
    trace = read(two_rounds(counting()))
    path = saved(trace, tmp_path / "out.json")
    cycles, _ = json.loads(path.read_bytes())["counters"]
    assert cycles["samples"] == {"time": [0, 0.0001, 0.00025], "count": [0, 1000, 500], "length": 3}
    assert cycles["display"]["graphType"] == "line-rate"
    again = load_checked(path)
    assert counted(again) == counted(trace)
    assert [row["total"] for row in summarize(again)["processes"][0]["counters"]] == [1500, 3]


def test_perfetto_has_each_amount_over_its_time(tmp_path: Path) -> None:
    counters = perfetto.read(saved(read(two_rounds(counting())), tmp_path / "a.pftrace")).counters.values()
    values = {counter.name: [tuple(value) for value in counter.values] for counter in counters}
    assert values == {"cycles": [(0, 1000), (100, 500), (250, 0)], "context-switches": [(0, 3), (100, 0), (250, 0)]}


# ---------------------------------------------------------------- perf itself


REPORTED = re.compile(r"^ +(?P<time>[\d.]+) +(?P<count>[\d.,]+) (?:msec)? +(?P<name>[\w-]+)")


@pytest.mark.skipif(shutil.which("perf") is None or os.name != "posix", reason="perf is not installed")
def test_the_numbers_are_those_of_perf_stat_report(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    program = "import time\nfor _ in range(6):\n    sum(range(300_000)); time.sleep(0.02)"
    command = ["perf", "stat", "record", "-I", "40", "-e", "task-clock:u,context-switches,page-faults", "-o", path]
    done = subprocess.run([*command, sys.executable, "-c", program], capture_output=True, check=False)
    if done.returncode or not path.exists():
        pytest.skip(f"perf stat record: {done.stderr.decode()[-200:]}")
    report = subprocess.run(["perf", "stat", "report", "-i", path], capture_output=True, text=True, check=True)
    expected: dict[str, list[float]] = {}
    times = []
    for line in report.stderr.splitlines() + report.stdout.splitlines():
        if (found := REPORTED.match(line)) is not None:
            expected.setdefault(found["name"], []).append(float(found["count"].replace(",", "")))
            times.append(round(float(found["time"]) * 1e9))
    trace = load_checked(path)
    (process,) = trace.processes
    assert process.name == Path(sys.executable).name
    shown = counted(trace)
    assert shown["page-faults"] == expected["page-faults"]
    assert shown["context-switches"] == expected["context-switches"]
    assert sorted({*process.counters[0].values["ts"].tolist()[1:]}) == sorted({*times})


# ---------------------------------------------------------------- what is compared


def ipc_of(instructions: int, cycles: int = 1000) -> PerfData:
    told: dict[str, Any] = {"sample_type": "IDENTIFIER", "clockid": None, "flags": "disabled inherit"}
    data = PerfData().event("cycles", 0, 0, ids=[CYCLES], **told).event("instructions", 0, 1, ids=[SWITCHES], **told)
    data.thread_map((7, "app")).stat_config(aggregation=0)
    for cpu in (0, 1):
        data.stat(CYCLES, cycles // 2, cpu=cpu).stat(SWITCHES, instructions // 2, cpu=cpu)
    return data.stat_round(100, last=True)


def test_info_has_ratios_of_what_was_counted() -> None:
    summary = summarize(read(ipc_of(2500)))
    assert summary["events"]["ratios"] == [{"name": "instructions per cycle", "value": 2.5}]
    assert re.search(r"ratios:\n +ratio +of all that was counted\n +2.500 +instructions per cycle", as_text(summary))


def test_counts_of_several_runs_are_compared_and_have_gates(tmp_path: Path) -> None:
    """The sum of the processors, and ratios; each side has runs that differ by chance."""
    sides = {}
    for side, instructions in (("base", (2500, 2510, 2490)), ("new", (2000, 2010, 1990))):
        for nth, each in enumerate(instructions):
            (tmp_path / f"{side}{nth}.data").write_bytes(ipc_of(each).bytes())
        sides[side] = sorted(map(str, tmp_path.glob(f"{side}*.data")))
    runs = [[Run.of(path, load_checked(path), with_trees=False) for path in side] for side in sides.values()]
    comparison = compare(*runs)
    (counted,) = comparison.tables_named("events")
    assert {(row.name, row.base, row.new, row.verdict) for row in counted.rows} == {
        ("cycles", 1000, 1000, "same"), ("instructions", 2500, 2000, "less"),
    }  # fmt: skip
    (ratio,) = comparison.tables_named("instructions per cycle")
    assert [(round(row.base, 6), round(row.new, 6)) for row in ratio.rows] == [(2.5, 2.0)]
    gates = {"ipc < 2.2": "failed", "ipc < 1.5": "passed", "events('instructions') < -10%": "failed",
             "events('cycles') > 1%": "passed"}  # fmt: skip
    assert {gate: evaluate(parse(gate), comparison).status for gate in gates} == gates
