"""Compares traceferry with `mprof-report` on large recordings of the Mono log profiler.

Run by `make bench`. How it measures: common.py. The recordings are captures/mono/large/hotcalls, of calls, and one of
allocations, which is made once with the mono that is installed. `mprof-report` prints a page; traceferry's outputs
hold every call and every allocation, and only its `info` is a page, too. Its memory is measured on a recording of 2 GB
of allocations, too, which takes some ten minutes to make.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from common import (
    CAPTURES,
    MB,
    OUTPUTS,
    TRACEFERRY,
    WORK,
    Command,
    Run,
    Targets,
    convert,
    decompressed,
    in_turn,
    note,
    print_table,
    ratio,
)

# The project's targets: CPU time as a multiple of mprof-report's, and peak memory.
INFO = "info"
CPU = {
    "calls": {INFO: 1, "Perfetto": 3, "Firefox .json": 5, "Firefox .json.gz": 4},
    "allocations": {INFO: 3, "Perfetto": 5, "Firefox .json": 15, "Firefox .json.gz": 5},
}
MEMORY = 400 * MB
# Of `info` for any number of allocations, and for each object that is left at the end.
INFO_MEMORY, MEMORY_PER_OBJECT = 200 * MB, 4

PEER = "mprof-report"
PROGRAM = "AllocStorm"
# So many rounds of the program make 240 MB, and 2 GB.
ROUNDS_OF_PROGRAM, MANY_ROUNDS = 600_000, 5_300_000
ALLOCATIONS = "log:nodefaults,alloc,gc,gcmove"


class CannotRunError(Exception):
    """Why a recording or a comparison is not possible here."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares traceferry with mprof-report on large Mono recordings.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each command runs (default: 3)")
    parser.add_argument("--no-peer", action="store_true", help="only traceferry: no ratios to mprof-report")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        sys.exit("at least one round is needed")
    WORK.mkdir(parents=True, exist_ok=True)
    targets = Targets()
    recordings: dict[str, Callable[[], Path]] = {"calls": calls, "allocations": allocations}
    for what, recording in recordings.items():
        try:
            source = recording()
        except CannotRunError as reason:
            print(f"\n{what}: skipped: {reason}")
            continue
        measured = compare(what, source, arguments.rounds, with_peer=not arguments.no_peer)
        check(targets, what, measured)
    try:
        check_memory(targets, allocations(MANY_ROUNDS), arguments.rounds)
    except CannotRunError as reason:
        print(f"\nmany allocations: skipped: {reason}")
    return targets.status()


def calls() -> Path:
    packed = CAPTURES / "mono" / "large" / "hotcalls.mlpd.zst"
    if not packed.exists():
        raise CannotRunError(f"{packed} is missing: set TRACEFERRY_SHARED to the folder that holds captures/mono")
    return decompressed(packed, WORK / "mono" / packed.stem)


def allocations(rounds: int = ROUNDS_OF_PROGRAM) -> Path:
    """Recorded once. rounds: of the program."""
    made = WORK / "mono" / (f"{PROGRAM}.mlpd" if rounds == ROUNDS_OF_PROGRAM else f"{PROGRAM}-{rounds}.mlpd")
    if not made.exists():
        note(f"recording {rounds} rounds of {PROGRAM}")
        record(made, rounds)
    return made


def record(target: Path, rounds: int) -> None:
    text = CAPTURES / "mono" / "progs" / f"{PROGRAM}.cs"
    compiler, runtime = shutil.which("mcs"), shutil.which("mono")
    if not text.exists():
        raise CannotRunError(f"{text} is missing: set TRACEFERRY_SHARED to the folder that holds captures/mono")
    if not compiler or not runtime:
        raise CannotRunError("mono and mcs are not installed (apt install mono-runtime mono-mcs mono-utils)")
    target.parent.mkdir(parents=True, exist_ok=True)
    program, part = target.with_suffix(".exe"), target.with_name(target.name + ".part")
    subprocess.run([compiler, f"-out:{program}", text], check=True, capture_output=True)
    command = [runtime, f"--profile={ALLOCATIONS},output={part}", program, str(rounds)]
    subprocess.run(command, check=True, capture_output=True)
    if not part.exists():
        raise CannotRunError("mono has no log profiler (apt install libmono-profiler)")
    part.rename(target)


def compare(what: str, source: Path, rounds: int, with_peer: bool) -> dict[str, Run]:
    size = source.stat().st_size
    print(f"\n{what}: {source.name}, {size / MB:.0f} MB; median of {rounds}")
    page = WORK / "page.txt"
    commands = {INFO: Command([*TRACEFERRY, "info", str(source)], page, printed=True)}
    commands |= {label: convert(source, suffix) for label, suffix in OUTPUTS.items()}
    program = shutil.which(PEER)
    if with_peer and program:
        commands = {PEER: Command([program, str(source)], page, printed=True), **commands}
    elif with_peer:
        print(f"no comparison: {PEER} is not installed (apt install mono-utils)")
    measured = in_turn(commands, rounds)
    print_table(measured, PEER, size / MB, "MB")
    return measured


def check_memory(targets: Targets, source: Path, rounds: int) -> None:
    size, info = source.stat().st_size, [*TRACEFERRY, "info", "--json", str(source)]
    print(f"\nmany allocations: {source.name}, {size / MB:.0f} MB; median of {rounds}")
    run = in_turn({INFO: Command(info, WORK / "info.json", printed=True)}, rounds)
    print_table(run, None, size / MB, "MB")
    of = json.loads(subprocess.run(info, check=True, capture_output=True).stdout)["allocations"]
    left = of["count"] - of["freed_count"]
    most, peak = INFO_MEMORY + MEMORY_PER_OBJECT * left, run[INFO].peak
    print("\ntargets")
    what = f"{INFO}: peak memory at most {INFO_MEMORY / MB:.0f} MB, and {MEMORY_PER_OBJECT} bytes for each object left"
    targets.check(what, f"{peak / MB:.0f} of {most / MB:.0f} MB", peak <= most)


def check(targets: Targets, recording: str, measured: dict[str, Run]) -> None:
    print("\ntargets")
    for label, most in CPU[recording].items():
        if PEER in measured:
            ours, theirs = measured[label].cpu, measured[PEER].cpu
            targets.check(f"{label}: CPU at most {most} times {PEER}'s", ratio(ours, theirs), ours <= most * theirs)
    for label in (INFO, *OUTPUTS):
        peak = measured[label].peak
        what = f"{label}: peak memory at most {MEMORY / MB:.0f} MB"
        targets.check(what, f"{peak / MB:.0f} MB", peak <= MEMORY)


if __name__ == "__main__":
    sys.exit(main())
