"""Measures profiles of the Firefox Profiler as inputs, beside profiler-cli and an empty Python.

Run by `make bench`. The inputs repeat the threads of two profiles below captures/viewers; each copy has another
outermost function, so that its stacks are its own. CPU time and memory are those of processes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

from common import MB, ROOT, TRACEFERRY, WORK, Command, Run, Targets, convert, in_turn, measure
from speed import FIREFOX, PARSE_SECONDS, apart, markers, parse_seconds, repeated, slower

sys.path.insert(0, str(ROOT / "tests"))
from clients import firefox

SAMPLES = FIREFOX / "bough--profile.json.gz"
EMPTY = [sys.executable, "-c", "import numpy, orjson"]
# What the project promises, in seconds of CPU time, parts of a peer's, and bytes of memory for each of text. The
# seconds are those of `speed`.
INFO_SECONDS, PART_OF_LOAD, MARKER_SECONDS, TIMES_TEXT = 0.45, 1.0, 1.0, 8


def load_seconds(path: Path) -> float:
    """Returns the CPU time that profiler-cli needs until it answers."""
    with firefox.ProfilerCli(path) as session:
        process = session.process_id
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures profiles of the Firefox Profiler as inputs.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each command runs (default: 3)")
    rounds = parser.parse_args().rounds
    if not FIREFOX.exists():
        sys.exit("no profiles: set TRACEFERRY_SHARED to the folder that holds captures")
    WORK.mkdir(parents=True, exist_ok=True)
    medium, _ = apart(repeated, SAMPLES, 39, WORK / "medium.json")
    large, n_text = apart(repeated, SAMPLES, 268, WORK / "large.json")
    marked = markers()
    commands = {
        "python": Command(EMPTY),
        "info, 437 k samples": Command([*TRACEFERRY, "info", str(medium)]),
        "3.0 M samples → Perfetto": convert(large, "pftrace"),
        "321 k markers → Firefox": convert(marked, "json"),
    }
    runs: dict[str, Run] = in_turn(commands, rounds)
    for name, run in runs.items():
        print(f"{name:28}{run.cpu:8.2f} s of CPU{run.peak / MB:8.0f} MB")
    targets = Targets()
    empty = runs["python"]
    parse = parse_seconds(marked)
    where = f"where orjson takes {PARSE_SECONDS} s of the markers, here {parse:.2f} s"
    cpu = runs["info, 437 k samples"].cpu - empty.cpu
    what = f"info less an empty Python: at most {INFO_SECONDS} s {where}"
    targets.check(what, f"{cpu:.2f} s", cpu <= INFO_SECONDS * slower(parse))
    run = runs["3.0 M samples → Perfetto"]
    if reason := firefox.available():
        print(f"  not compared with profiler-cli: {reason}")
    else:
        # In turn, as the machine may be another one a minute later.
        loads = [(measure(convert(large, "pftrace")).cpu, load_seconds(large)) for _ in range(rounds)]
        part = statistics.median(ours / load for ours, load in loads)
        shown = f"{part:.2f} ({statistics.median(load for _, load in loads):.2f} s)"
        targets.check(f"3.0 M samples: at most {PART_OF_LOAD} of profiler-cli load", shown, part <= PART_OF_LOAD)
    smallest = measure(convert(SAMPLES, "pftrace")).peak
    times = (run.peak - smallest - large.stat().st_size) / n_text
    targets.check(
        f"memory beside the file and a small one's: at most {TIMES_TEXT} times the text of a thread and of all stacks",
        f"{times:.0f}", times <= TIMES_TEXT,
    )  # fmt: skip
    cpu = runs["321 k markers → Firefox"].cpu
    targets.check(f"markers: at most {MARKER_SECONDS} s {where}", f"{cpu:.2f} s", cpu <= MARKER_SECONDS * slower(parse))
    return targets.status()


if __name__ == "__main__":
    sys.exit(main())
