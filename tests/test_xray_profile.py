"""XRay's profiling mode: the call trees of a profile, as calls that stand for many."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders.xray import Fdr, Profile, elf_with_instr_map
from clients import clang
from conftest import REPO, cuts
from recordings import loaded
from support import calls_of, data_of, load_checked, report_of

import traceferry
from traceferry.analysis.totals.collect import collect
from traceferry.apps.cli import main
from traceferry.apps.fleet.merge import merged_trace
from traceferry.common.errors import FormatError, UsageError
from traceferry.files.source import open_source
from traceferry.model import LEAVE, OPEN_AT_END, Trace
from traceferry.registry import importer_named

Load = Callable[..., Trace]
Paths = Counter[tuple[str, ...]]
BOTH_ORDERS = pytest.mark.parametrize("big", [False, True], ids=["little", "big"])
WORK = [((1,), 1, 1000), ((3, 1), 2, 300), ((2, 1), 7, 400), ((3, 2, 1), 14, 350)]


def counted(trace: Trace) -> Paths:
    """How many calls each path of names has, all threads together."""
    found: Paths = Counter()
    opened = trace.opened()
    for _, thread in trace.threads:
        data = thread.load(opened)
        counts, path = data.calls.counts(), list[str]()
        for row, (frame, flags) in enumerate(zip(data.calls["frame"], data.calls["flags"], strict=True)):
            if flags & LEAVE:
                path.pop()
                continue
            path.append(opened.func_name(int(opened.frames["func"][frame])))
            found[tuple(path)] += 1 if counts is None else int(counts[row])
    return found


def by_name(trace: Trace) -> dict[str, tuple[int, int, int]]:
    """(calls, own time, time with callees) of each function."""
    collected = collect(trace)
    columns = (collected.by_func()[name].tolist() for name in ("calls", "self_ns", "total_ns"))
    return {collected.trace.func_name(func): each for func, each in enumerate(zip(*columns, strict=True))}


# ---------------------------------------------------------------- built


@BOTH_ORDERS
def test_paths_counts_and_times(load: Load, big: bool) -> None:
    """A call path is one call; its callees come in the order of their first calls, which the file reverses."""
    trace = load(Profile(big, pid=5).block(5, WORK).block(6, [((9,), 3, 60)]))
    data = data_of(trace, 5)
    spans = [(c.name, c.start, c.end, c.depth) for c in calls_of(trace, data)]
    assert spans == [
        ("function 1", 0, 1000, 0), ("function 2", 0, 400, 1), ("function 3", 0, 350, 2), ("function 3", 400, 700, 1),
    ]  # fmt: skip
    entered = data.calls["flags"] & LEAVE == 0
    assert data.calls.counts()[entered].tolist() == [1, 7, 14, 2]  # type: ignore[index]
    assert data.arguments["value"].tolist() == [1, 7, 14, 2]
    assert by_name(trace) == {
        "function 1": (1, 300, 1000), "function 2": (7, 50, 400), "function 3": (16, 650, 650),
        "function 9": (3, 60, 60),
    }  # fmt: skip
    [process] = trace.processes
    assert [(t.tid, t.is_main, t.end_ts) for t in process.threads] == [(5, True, 1000), (6, False, 60)]
    assert report_of(trace) == {"calls_summed": 5, "no_symbols": 4, "ticks_unscaled": 1}


def test_blocks_of_one_thread_and_roots_of_one_function_are_one(load: Load) -> None:
    """A function called by none that is instrumented has a record for each call; a thread's number is used again."""
    roots = [((1,), 1, 10), ((2, 1), 1, 4), ((1,), 1, 20), ((2, 1), 3, 6), ((4,), 1, 1)]
    trace = load(Profile(pid=1).block(1, roots).block(1, [((1,), 5, 100)]))
    assert counted(trace) == {("function 1",): 7, ("function 1", "function 2"): 4, ("function 4",): 1}
    assert by_name(trace)["function 1"] == (7, 120, 130)


def test_calls_that_have_not_ended(load: Load) -> None:
    """They count as none in the file. What is still on the stack was called once more than what ended, here once."""
    trace = load(Profile(pid=1).block(1, [((1,), 0, 0), ((2, 1), 0, 0), ((3, 2, 1), 9, 90)]))
    data = data_of(trace, 1)
    assert [(c.name, c.end) for c in calls_of(trace, data)] == [(f"function {n}", 90) for n in (1, 2, 3)]
    assert [int(flags) & OPEN_AT_END for flags in data.calls["flags"]] == [0, 0, 0, 0, OPEN_AT_END, OPEN_AT_END]
    assert by_name(trace) == {"function 1": (1, 0, 90), "function 2": (1, 0, 90), "function 3": (9, 90, 90)}
    assert report_of(trace)["open_at_end"] == 2


def test_times_that_an_exception_left_wrong(load: Load) -> None:
    trace = load(Profile(pid=1).block(1, [((1,), 1, -70), ((2, 1), 1, 10), ((3, 2, 1), 1, 80)]))
    assert by_name(trace) == {"function 1": (1, 0, 80), "function 2": (1, 0, 80), "function 3": (1, 80, 80)}
    found = report_of(trace)
    assert (found["ticks_negative"], found["callees_longer"]) == (1, 2)


def test_paths_that_the_recorder_cut(load: Load) -> None:
    """It ran out of memory for ids: callers are missing, or the whole path."""
    trace = load(Profile(pid=1).block(1, [((1,), 1, 100), ((3, 2), 4, 30), ((), 1, 5)]))
    assert counted(trace) == {("function 1",): 1, ("function 2",): 0, ("function 2", "function 3"): 4}
    assert report_of(trace)["path_cut"] == 2


def test_frequency(load: Load) -> None:
    profile = Profile(pid=1).block(1, WORK)
    assert report_of(load(profile))["ticks_unscaled"] == 1
    for trace in (
        load(profile, cycle_frequency=2_000_000_000),
        load(profile, Fdr(frequency=2_000_000_000).buffer(7, 7)),
    ):
        assert by_name(trace)["function 2"] == (7, 25, 200)
        assert "ticks_unscaled" not in report_of(trace)
    for wrong in (0, -1, 10**10):
        with pytest.raises(UsageError, match="Hz"):
            load(profile, cycle_frequency=wrong)


def test_an_emulated_log_does_not_tell_the_frequency(load: Load) -> None:
    """The log's ticks are Unix time, those of the profile are of the processor's counter."""
    profile, log = Profile(pid=1).block(1, WORK), Fdr(frequency=10**9)
    log.buffer(7, 7, records=[log.new_cpu(0, 1_700_000_000 * 10**9), log.enter(8, 0), log.exit(8, 50)])
    trace = load(log, profile)
    assert by_name(trace)["function 2"] == (7, 50, 400)
    assert report_of(trace)["ticks_unscaled"] == 1
    trace = load(log, profile, cycle_frequency=2_000_000_000)
    assert (by_name(trace)["function 2"], by_name(trace)["function 8"]) == ((7, 25, 200), (1, 50, 50))
    assert "ticks_unscaled" not in report_of(trace)


def test_an_emulated_counter_has_nanoseconds(tmp_path: Path) -> None:
    program = tmp_path / "app"
    sleds = [(f"f{n}", 0x2000 + 64 * n, [(0, 0x2000 + 64 * n)]) for n in range(3)]
    program.write_bytes(elf_with_instr_map(sleds, machine="aarch64"))
    (tmp_path / "p.xray").write_bytes(Profile(pid=1).block(1, WORK).bytes())
    trace = load_checked(tmp_path / "p.xray", symbols=program)
    assert set(by_name(trace)) == {"f0", "f1", "f2"}
    assert set(report_of(trace)) == {"calls_summed", "symbols_used"}


@BOTH_ORDERS
def test_other_versions_and_short_files(load: Load, big: bool) -> None:
    whole = Profile(big).bytes()
    assert len(load(whole).processes) == 1
    with pytest.raises(FormatError, match="version 0x20180425") as raised:
        load(Profile(big, version=0x20180425))
    assert raised.value.offset == 8
    with pytest.raises(FormatError, match="31 bytes are too few"):
        load(whole[:31])


@BOTH_ORDERS
def test_cut_anywhere(load: Load, big: bool) -> None:
    """What is whole before the cut is kept."""
    whole = Profile(big, pid=5).block(5, WORK).block(6, [((9,), 3, 60)]).bytes()
    before = 0
    for cut in cuts(len(whole), 3, 32):
        trace = load(whole[:cut])
        n = sum(counted(trace).values())
        assert n >= before
        before = n
        assert ("truncated" in report_of(trace)) == (cut not in _ends(whole, big))
    assert before == 27


def _ends(data: bytes, big: bool) -> set[int]:
    ends, at = {32}, 32
    while at < len(data):
        at += int.from_bytes(data[at : at + 4], "big" if big else "little")
        ends.add(at)
    return ends


def test_damaged_sizes(load: Load) -> None:
    """Of a block that is smaller than its header nothing is read; one that ends inside a record has those before."""
    first = Profile(pid=1).block(1, WORK, size=3)
    assert report_of(load(first))["truncated"] == 1
    trace = load(Profile(pid=1).block(1, [((1,), 1, 5), ((2, 1), 1, 3)], size=16 + 24 + 8))
    assert counted(trace) == {("function 1",): 1}
    assert report_of(trace)["bad_record"] == 1


def test_huge_numbers(load: Load) -> None:
    most = 2**64 - 1
    trace = load(Profile(pid=1).block(1, [((-1,), most, 2**63 - 1), ((2, -1), most, 2**63 - 1)] * 2))
    assert trace.end_ts == 1 << 62
    assert sum(counted(trace).values()) == 2 * (1 << 62)


def test_dump(tmp_path: Path) -> None:
    path = tmp_path / "p.xray"
    path.write_bytes(Profile(pid=5, written=77).block(6, [((2, 1), 3, 40)]).bytes() + b"rest")
    assert [*importer_named("xray").module.dump(open_source(str(path)), 0)] == [
        "0x00000000  XRayProfilingFileHeader version=0x20180424 little-endian written=77 pid=5",
        "0x00000020  Block size=44 number=0 tid=6",
        "0x00000030  Path 2 < 1 calls=3 ticks=40",
        "0x0000004c  no block: 4 bytes",
    ]


def test_parts_of_it_keep_their_counts(load: Load) -> None:
    """Narrowed by duration: what stays stands for as many calls as before."""
    trace = load(Profile(pid=1).block(1, WORK), min_duration_ns=350)
    assert counted(trace) == {
        ("function 1",): 1, ("function 1", "function 2"): 7, ("function 1", "function 2", "function 3"): 14,
    }  # fmt: skip


def test_viewers_and_merged_profiles_have_the_counts(load: Load, tmp_path: Path) -> None:
    trace = load(Profile(pid=1).block(1, WORK))
    traceferry.save(trace, tmp_path / "p.json")
    profile = json.loads((tmp_path / "p.json").read_bytes())
    [schema] = [one for one in profile["meta"]["markerSchema"] if one["name"] == "Calls"]
    assert schema["tableLabel"] == "{marker.data.function}: {marker.data.summed calls}"
    [markers] = [thread["markers"] for thread in profile["threads"]]
    assert [(one["function"], one["summed calls"]) for one in markers["data"]] == [
        ("function 1", 1), ("function 2", 7), ("function 3", 14), ("function 3", 2),
    ]  # fmt: skip
    (tmp_path / "p.xray").write_bytes(Profile(pid=1).block(1, WORK).bytes())
    assert main(["aggregate", str(tmp_path / "p.xray"), "-o", str(tmp_path / "tables")]) == 0
    merged = merged_trace(str(tmp_path / "tables"), "merged")
    assert sorted(counted(merged).values()) == [1, 2, 7, 14]
    assert by_name(merged)["function 3"] == (16, 650, 650)


# ---------------------------------------------------------------- recorded


@pytest.mark.parametrize("program", ["pool", "recurse", "except"])
def test_calls_as_in_the_log_of_the_same_program(program: str) -> None:
    """FDR mode recorded each call: each path was called as often as the profile says."""
    logged, profiled = (counted(loaded(f"{mode}-c19-pie-{program}.xray")) for mode in ("fdr", "profile"))
    assert profiled == logged
    assert sum(profiled.values()) == {"pool": 688, "recurse": 190, "except": 170}[program]


SPINNING = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>
#include <thread>
#define NOINLINE __attribute__((noinline))
static double now() { timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
NOINLINE double spin(double ns) { double begin = now(), end = begin; while (end - begin < ns) end = now(); return end; }
NOINLINE int leaf(int n) { asm volatile(""); return n + 1; }
NOINLINE int tail(int n) { asm volatile(""); return leaf(n); }
NOINLINE int walk(int n) { return n < 2 ? leaf(n) : walk(n - 1) + walk(n - 2); }
NOINLINE void work(int n) { spin(20e6); for (int i = 0; i < n; i++) tail(walk(i % 9)); }
int main() {
  double begin = now(); unsigned long long ticks = __rdtsc();
  std::thread other(work, 30); work(50); other.join();
  printf("%.0f\n", (__rdtsc() - ticks) / (now() - begin) * 1e9);
}
"""


@pytest.mark.skipif(not clang.with_xray(), reason=clang.WHY_NOT)
def test_recorded_now(tmp_path: Path) -> None:
    """The same program in both modes: equal calls, and times that are those of the program."""
    (tmp_path / "app.cpp").write_text(SPINNING)
    session = REPO / "fixtures" / "xray" / "programs" / "session.cpp"
    subprocess.run(
        [clang.with_xray(), "-O2", "-g", "-fxray-instrument", "-fxray-instruction-threshold=1",
         "-fxray-modes=xray-fdr,xray-profiling", "app.cpp", session, "-o", "app", "-lpthread"],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    options = {"xray-fdr": "func_duration_threshold_us=0 buffer_size=1048576 buffer_max=10",
               "xray-profiling": "per_thread_allocator_max=1048576"}  # fmt: skip
    found: dict[str, Any] = {}
    for mode, wanted in options.items():
        folder = tmp_path / mode
        folder.mkdir()
        environment = {"XS_MODE": mode, "XS_OPTS": wanted, "PATH": "/usr/bin:/bin"}
        ran = subprocess.run([tmp_path / "app"], cwd=folder, env=environment, capture_output=True, text=True)
        [log] = folder.iterdir()
        hz = int(ran.stdout) if mode == "xray-profiling" else None
        found[mode] = load_checked(log, symbols=tmp_path / "app", cycle_frequency=hz)
    logged, profiled = (counted(found[mode]) for mode in options)
    assert profiled == logged
    assert sum(profiled.values()) > 1000
    times = by_name(found["xray-profiling"])
    # Two threads spin for 20 ms each; both are interrupted by others, never short.
    assert 40e6 <= times["spin(double)"][1] * 1.01 < 400e6
    assert times["main"][2] >= times["spin(double)"][1] / 2
