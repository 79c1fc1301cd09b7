"""How user CPU time and memory grow with what a recording holds: sizes x, 4x and 16x, for each importer, each exporter,
`info` and each format of symbols.

    python benchmarks/growth.py [PART...] [--rounds N] [--jobs N...]

PART: only the runs whose case and output, as in "perf: threads, info", contain it. An exponent of 1 is proportional
growth, 2 is quadratic, from 4x to 16x. What a run with one element costs is subtracted, and UNSURE added to what is
left at 4x: so much is noise, or memory that the run with one element used and gave back. What is less than NOTICEABLE
at 16x has no exponent ("small"). Every run is repeated, and of each figure the median counts. What is above LIMIT may
be so because the machine was slower for a while: it is measured again, up to AGAIN times as often, and the median of
all counts. The exit status is 1 if an exponent stays above LIMIT, or no case contains PART. Of several numbers of
jobs, what takes none is measured with the first.

Each run is a child process of one that has the package loaded, and writes a real file. What is measured is in
growth_cases."""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from common import MB, WORK, note
from growth_cases import CASES, LEFT_OUT
from growth_cases.case import BESIDE, INPUT, OUTPUT, SEVERAL, Case, Run

import traceferry.apps.cli

LIMIT = 1.1
CPU_NOTICEABLE, CPU_UNSURE = 0.5, 0.03  # seconds
PEAK_NOTICEABLE, PEAK_UNSURE = 24 * MB, 3 * MB
FACTORS = (1, 4, 16)
AGAIN = 4
FOLDER = WORK / "growth"
WITH_JOBS = ("convert",)
ERRORS = WORK / "growth-stderr.txt"


class Cost(NamedTuple):
    """cpu: seconds; peak: bytes."""

    cpu: float
    peak: int


def child(run: Callable[[], object], given: Path = Path(os.devnull)) -> Cost:
    """What a run costs in a process of its own. It may return the exit status of the command."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 3
        try:
            os.dup2(os.open(given, os.O_RDONLY), 0)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(os.open(ERRORS, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            status = 2 if run() == 2 else 0
        except Exception:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit(f"a run failed: {os.waitstatus_to_exitcode(status)}\n{ERRORS.read_text(errors='replace')[-2000:]}")
    per_unit = 1 if sys.platform == "darwin" else 1024
    return Cost(usage.ru_utime, usage.ru_maxrss * per_unit)


def write(case: Case, n: int, folder: Path) -> None:
    """Makes the input of n elements, and what lies beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"input.{case.suffix}").write_bytes(case.make(n))
    for name, make in case.beside.items():
        (folder / name).write_bytes(make(n))
    for name, data in case.several(n) if case.several is not None else ():
        (folder / name).write_bytes(data)


def runs_of(case: Case, parts: list[str], numbers_of_jobs: list[int]) -> dict[str, list[str] | Run]:
    """Returns what is measured: each run that contains a part, with each number of jobs if it takes them."""
    found: dict[str, list[str] | Run] = {}
    for output, run in case.runs.items():
        if parts and not any(part in f"{case.name}, {output}" for part in parts):
            continue
        if numbers_of_jobs and isinstance(run, list) and run[0] in WITH_JOBS:
            found |= {f"{output} {jobs}": [*run, "--jobs", str(jobs)] for jobs in numbers_of_jobs}
        else:
            found[output] = run
    return found


def cost(case: Case, run: list[str] | Run, folder: Path) -> Cost:
    source, given = folder / f"input.{case.suffix}", folder / "standard input"
    if not isinstance(run, list):
        return child(lambda: run(source))
    single = {INPUT: source, BESIDE: folder} | {name: folder / name for name in case.beside}
    words: list[str] = []
    for word in run:
        if word == SEVERAL:
            words += sorted(str(path) for path in folder.glob("several-*"))
        else:
            words.append(str(single.get(word, word.replace(OUTPUT, str(folder / "output")))))
    return child(lambda: traceferry.apps.cli.main(words), given if given.exists() else Path(os.devnull))


def exponent(small: float, large: float, noticeable: float, unsure: float) -> float:
    """Of the growth from 4x to 16x; NaN where the larger is too little to tell."""
    if large < noticeable:
        return math.nan
    return math.log(large / (max(small, 0) + unsure)) / math.log(FACTORS[2] / FACTORS[1])


def shown(value: float) -> str:
    return "small" if math.isnan(value) else f"{value:.2f}"


class Growth(NamedTuple):
    """sizes: the costs at x, 4x, 16x; times, peaks: the exponents of CPU time and memory."""

    sizes: list[Cost]
    times: float
    peaks: float

    @property
    def is_above(self) -> bool:
        return self.times > LIMIT or self.peaks > LIMIT


def measured(case: Case, run: list[str] | Run, folders: list[Path], rounds: int) -> Growth:
    """Returns the growth of the medians of all rounds."""
    costs: list[list[Cost]] = []
    while True:
        costs += [[cost(case, run, folder) for folder in folders] for _ in range(rounds)]
        growth = growth_of(
            *(
                Cost(statistics.median(each.cpu for each in of), int(statistics.median(each.peak for each in of)))
                for of in zip(*costs, strict=True)
            )
        )
        if not growth.is_above or len(costs) == AGAIN * rounds:
            return growth
        note(f"{case.name}: above {LIMIT}, measured again")


def growth_of_case(
    case: Case, runs: dict[str, list[str] | Run], folder: Path, rounds: int
) -> Iterator[tuple[str, Growth]]:
    """Yields the growth of each run, of inputs that are made in an empty folder."""
    numbers = (1, *(factor * case.x for factor in FACTORS))
    folders = [folder / str(n) for n in numbers]
    # Made in a child, too: a process begins with its parent's memory.
    for n, of_size in zip(numbers, folders, strict=True):
        child(partial(write, case, n, of_size))
    for output, run in runs.items():
        note(f"{case.name}: {output}")
        growth = measured(case, run, folders, rounds)
        note("")
        yield output, growth


def growth_of(base: Cost, *sizes: Cost) -> Growth:
    """base: with one element."""
    times = exponent(*(size.cpu - base.cpu for size in sizes[1:]), CPU_NOTICEABLE, CPU_UNSURE)
    peaks = exponent(*(float(size.peak - base.peak) for size in sizes[1:]), PEAK_NOTICEABLE, PEAK_UNSURE)
    return Growth(list(sizes), times, peaks)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", help="only cases and outputs that contain it")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured at least (default: 3)")
    parser.add_argument("--jobs", type=int, nargs="+", default=[], help="of commands that take it (default: theirs)")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        sys.exit("at least one round is needed")
    if any(jobs < 1 for jobs in arguments.jobs):
        sys.exit("at least one job is needed")
    FOLDER.mkdir(parents=True, exist_ok=True)
    above, n_measured, began = [], 0, time.monotonic()
    print(f"{'':30}{'output':>15}{'CPU s at x, 4x, 16x':>24}{'exponent':>10}{'peak MB':>20}{'exponent':>10}")
    for case in CASES:
        runs = runs_of(case, arguments.part, arguments.jobs)
        if not runs:
            continue
        with tempfile.TemporaryDirectory(dir=FOLDER) as of_case:
            for output, growth in growth_of_case(case, runs, Path(of_case), arguments.rounds):
                sizes, times, peaks = growth
                n_measured += 1
                seconds = " ".join(f"{size.cpu:6.2f}" for size in sizes)
                memory = " ".join(f"{size.peak / MB:5.0f}" for size in sizes)
                exponents = f"{shown(times):>10}{memory:>20}{shown(peaks):>10}"
                print(f"{case.name:30}{output:>15}{seconds:>24}{exponents}", flush=True)
                if growth.is_above:
                    above.append(f"{case.name}, {output}: exponents {shown(times)} and {shown(peaks)}, limit {LIMIT}")
    for reason in LEFT_OUT:
        print(f"left out: {reason}")
    print(f"{time.monotonic() - began:.0f} s")
    nothing = f"no exponent above {LIMIT}" if n_measured else f"no case has {' or '.join(arguments.part)}"
    print("\n".join(above) or nothing)
    return int(bool(above) or not n_measured)


if __name__ == "__main__":
    sys.exit(main())
