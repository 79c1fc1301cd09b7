"""Measures conversions with several jobs, and with a budget of events, on large recordings of calls.

Run by `make bench`. How it measures: common.py. Wall time tells something only on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import sys

from common import MB, WORK, Targets, convert, in_turn, print_table, ratio
from picture import RECORDINGS

NAMES = ("l100", "hotcalls")
JOBS = (1, 2, 4)
BUDGET = "--max-events=500K"
# What the project promises of two jobs against one, of memory for each more, and of a budget against no budget.
CPU, WALL = 1.1, 0.6
MORE_MB = 10
BUDGET_CPU = 1.5


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures conversions with 1, 2 and 4 jobs, and with a budget.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each command runs (default: 3)")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        sys.exit("at least one round is needed")
    WORK.mkdir(parents=True, exist_ok=True)
    targets = Targets()
    for name in NAMES:
        source = RECORDINGS[name].path()
        if source is None:
            print(f"\n{name}: skipped: the recording is not there: set TRACEFERRY_SHARED")
            continue
        commands = {f".json.gz, --jobs {n}": convert(source, "json.gz", "--jobs", str(n)) for n in JOBS}
        commands[BUDGET] = convert(source, "json.gz", BUDGET, "--jobs", "1")
        runs = in_turn(commands, arguments.rounds)
        one, two, four = (runs[f".json.gz, --jobs {n}"] for n in JOBS)
        print(f"\n{name}: {source.name}; median of {arguments.rounds}")
        print_table(runs, ".json.gz, --jobs 1", source.stat().st_size / MB, "MB")
        print("\ntargets")
        targets.check(
            f"{name}: 2 jobs, CPU at most {CPU} times one's", ratio(two.cpu, one.cpu), two.cpu <= CPU * one.cpu
        )
        targets.check(
            f"{name}: 2 jobs, wall time at most {WALL} of one's",
            f"{two.wall / one.wall:.2f}",
            two.wall <= WALL * one.wall,
        )
        more = (four.peak - one.peak) / MB
        targets.check(
            f"{name}: memory for each more job at most {MORE_MB} MB", f"{more / 3:.1f} MB", more <= 3 * MORE_MB
        )
        budget = runs[BUDGET].cpu
        what = f"{name}: {BUDGET}, CPU at most {BUDGET_CPU} times a whole conversion's"
        targets.check(what, ratio(budget, one.cpu), budget <= BUDGET_CPU * one.cpu)
    return targets.status()


if __name__ == "__main__":
    sys.exit(main())
