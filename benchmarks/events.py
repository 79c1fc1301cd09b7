"""Compares `traceferry convert` with `perf script` on large recordings of switches, of two events, and of branches.

    python benchmarks/events.py [PART...] [--rounds N] [--samples N]

Run by `make bench`. How it measures: common.py. The recordings are made of captures/perf-events by repetition
(repeated.py), the one with branches of a recording that tests/builders makes, as few processors record them. Where
PERFETTO_TP_BIN names a trace_processor_shell, Perfetto's own reader of perf.data is measured, too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from common import (
    CAPTURES,
    MB,
    OUTPUTS,
    ROOT,
    WORK,
    Command,
    Run,
    Targets,
    convert,
    decompressed,
    in_turn,
    print_table,
    ratio,
)
from repeated import Seed, write_repeated

sys.path.insert(0, str(ROOT / "tests"))
from builders.perf_data import BRANCH_ANY, BRANCH_USER, HARDWARE, PerfData

# What the project promises: CPU time as a part of perf's, of two events as times that of one, and peak memory against
# the size of the input.
CPU, TWO_EVENTS = 1 / 10, 2.0
# A page holds a file for each viewer: its CPU time as times that of both. It alone shows which branches there were.
PAGE, PAGE_OF_BRANCHES = 1.25, 2.0
# Of each part. Fewer are hardly more than the start of a process.
SAMPLES = {"sched": 3_000_000, "two": 500_000, "branches": 1_000_000}
MEMORY_FACTOR, MEMORY_MORE = 1.5, 300 * MB
CODE, N_BRANCHES = 0x401000, 32

PERF, READER = "perf script", "trace_processor"
FOLDER = WORK / "events"


def seed_of(name: str) -> Seed:
    packed = CAPTURES / "perf-events" / f"{name}.data.zst"
    if not packed.exists():
        sys.exit(f"{packed} is missing: set TRACEFERRY_SHARED to the folder that holds captures")
    return Seed(decompressed(packed, FOLDER / f"{name}.data").read_bytes())


def branches() -> Seed:
    """1,000 samples with the latest branches, among 200 places."""
    data = PerfData().event(
        "branches", HARDWARE, 4, sample_type="IDENTIFIER|IP|TID|TIME|PERIOD|BRANCH_STACK", period=1000,
        branch_sample_type=BRANCH_USER | BRANCH_ANY,
    )  # fmt: skip
    data.comm(7, 7, "app", ts=0).mmap2(7, 7, CODE, 1 << 16, 0, "/bin/app")
    for k in range(1000):
        at = [CODE + 16 * ((7 * k + 13 * i) % 200) for i in range(N_BRANCHES + 1)]
        found = [(at[i + 1] + 8, at[i], data.branch_flags(i % 9 == 0, 5 + i)) for i in range(N_BRANCHES)]
        data.sample(7, 7, ip=at[0], branches=found)
    return Seed(data.bytes())


def made(name: str, n_samples: int, seed: Callable[[], Seed], twins: bool = False) -> Path:
    """Returns the recording, which is made once."""
    path = FOLDER / f"{name}-{n_samples}.data"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        write_repeated(seed(), n_samples, part, twins)
        part.rename(path)
    return path


def peers(source: Path, *options: str) -> dict[str, Command]:
    found: dict[str, Command] = {}
    # What is asked of perf script alone, Perfetto reads past.
    perf, reader = shutil.which("perf"), os.environ.get("PERFETTO_TP_BIN") if not options else None
    if perf:
        cache = ["--buildid-dir", str(WORK / "perf-cache")]
        words = [perf, *cache, "script", *options, "-i", str(source)]
        found[PERF] = Command(words, WORK / "perf-script.txt", printed=True)
    else:
        print("no comparison with perf: it is not installed (apt install linux-perf)")
    if reader:
        words = [reader, "query", str(source), "select count(*) from perf_sample"]
        found[READER] = Command(words, WORK / "trace-processor.txt", printed=True)
    return found


def compare(
    targets: Targets, what: str, source: Path, n_samples: int, rounds: int, *options: str, page: float = PAGE
) -> None:
    size = source.stat().st_size
    print(f"\n{what}: {n_samples:,} samples, {size / MB:.0f} MB; median of {rounds}")
    outputs = OUTPUTS | {"page": "html"}
    commands = peers(source, *options) | {label: convert(source, suffix) for label, suffix in outputs.items()}
    measured = in_turn(commands, rounds)
    print_table(measured, PERF, n_samples / 1e6, "M samples")
    print("\ntargets")
    for label in ("Perfetto", "Firefox .json"):
        cpu = measured[label].cpu
        if PERF in measured:
            theirs = measured[PERF].cpu
            targets.check(f"{label}: CPU at most 1/{1 / CPU:.0f} of {PERF}'s", ratio(cpu, theirs), cpu <= CPU * theirs)
        if READER in measured:
            theirs = measured[READER].cpu
            targets.check(f"{label}: CPU at most that of {READER}", ratio(cpu, theirs), cpu <= theirs)
    both = measured["Perfetto"].cpu + measured["Firefox .json.gz"].cpu
    times = measured["page"].cpu / both
    targets.check(f"page: CPU at most {page} times that of its two files", f"{times:.2f}x", times <= page)
    check_memory(targets, measured, size)


def check_memory(targets: Targets, measured: dict[str, Run], size: int) -> None:
    most = MEMORY_FACTOR * size + MEMORY_MORE
    for label in OUTPUTS:
        what = f"peak memory at most {MEMORY_FACTOR} times the input and {MEMORY_MORE / MB:.0f} MB ({most / MB:.0f} MB)"
        targets.check(f"{label}: {what}", f"{measured[label].peak / MB:.0f} MB", measured[label].peak <= most)


def compare_two_events(targets: Targets, n_samples: int, rounds: int) -> None:
    """The same samples of one event, and of two."""
    one = made("one", n_samples, lambda: seed_of("multi"))
    two = made("two", n_samples, lambda: seed_of("multi"), twins=True)
    print(f"\ntwo events: {n_samples:,} samples of one, and of two each; median of {rounds}")
    commands = {
        f"{label}, {source.stem[:3]}": convert(source, suffix)
        for label, suffix in OUTPUTS.items()
        for source in (one, two)
    }
    measured = in_turn(commands, rounds)
    print_table(measured, None, n_samples / 1e6, "M samples")
    print("\ntargets")
    for label in OUTPUTS:
        of_one, of_two = measured[f"{label}, one"].cpu, measured[f"{label}, two"].cpu
        what = f"{label}: CPU of two events at most {TWO_EVENTS:.0f} times that of one"
        targets.check(what, f"{of_two / of_one:.2f}x", of_two <= TWO_EVENTS * of_one)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares traceferry with perf on large recordings of several events.")
    parser.add_argument("part", nargs="*", help="only these: sched, two, branches")
    parser.add_argument("--rounds", type=int, default=3, help="how often each command runs (default: 3)")
    shown = ", ".join(f"{name} {n:,}" for name, n in SAMPLES.items())
    parser.add_argument("--samples", type=int, help=f"of each recording (default: {shown})")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or (arguments.samples is not None and arguments.samples < 1):
        sys.exit("at least one round and one sample are needed")
    WORK.mkdir(parents=True, exist_ok=True)
    targets, rounds = Targets(), arguments.rounds
    of = {name: arguments.samples or n for name, n in SAMPLES.items()}
    if wanted("sched", arguments.part):
        n = of["sched"]
        compare(targets, "switches and wakes", made("sched", n, lambda: seed_of("sched")), n, rounds)
    if wanted("two", arguments.part):
        compare_two_events(targets, of["two"], rounds)
    if wanted("branches", arguments.part):
        n = of["branches"]
        recording = made("branches", n, branches)
        compare(targets, "branches", recording, n, rounds, "-F", "+brstack", page=PAGE_OF_BRANCHES)
    return targets.status()


def wanted(name: str, parts: Sequence[str]) -> bool:
    return not parts or name in parts


if __name__ == "__main__":
    sys.exit(main())
