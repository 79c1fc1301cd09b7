"""Measures profiles of the Firefox Profiler as inputs, beside profiler-cli and an empty Python.

Run by `make bench`. The inputs repeat the threads of two profiles below captures/viewers; each copy has another
outermost function, so that its stacks are its own. CPU time and memory are those of processes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from common import CAPTURES, MB, ROOT, TRACEFERRY, WORK, Command, Run, Targets, convert, in_turn, measure

sys.path.insert(0, str(ROOT / "tests"))
from clients import firefox

FIREFOX = CAPTURES / "viewers" / "firefox"
SAMPLES, MARKERS = FIREFOX / "bough--profile.json.gz", FIREFOX / "mathic--profile.json.gz"
EMPTY = [sys.executable, "-c", "import numpy, orjson"]
# The seconds that orjson needs of a text: the shortest of several.
PARSE = """
import sys, time
import orjson
text, seconds = open(sys.argv[1], "rb").read(), []
for _ in range(7):
    value, start = None, time.process_time()
    value = orjson.loads(text)
    seconds.append(time.process_time() - start)
print(min(seconds))
"""
# What the project promises, in seconds of CPU time, parts of a peer's, and bytes of memory for each of text. The
# seconds are those of a machine on which orjson takes PARSE_SECONDS for the markers; a slower one has as many more.
INFO_SECONDS, PART_OF_LOAD, MARKER_SECONDS, TIMES_TEXT = 0.45, 1.0, 1.0, 8
PARSE_SECONDS = 0.16


def text_of(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def repeated(source: Path, times: int, target: Path) -> tuple[Path, int]:
    """Returns a profile with its threads so often, and the bytes of the largest thread and of what is shared: the
    stacks of each thread among it, as the trace has all of them, and as today's versions of the format share them."""
    profile = json.loads(gzip.decompress(source.read_bytes()))
    threads: list[dict[str, Any]] = []
    for nth in range(times):
        for thread in profile["threads"]:
            stacks, n_frames = thread["stackTable"], thread["frameTable"]["length"]
            frame = [
                nth % n_frames if prefix is None else frame
                for frame, prefix in zip(stacks["frame"], stacks["prefix"], strict=True)
            ]
            threads.append(thread | {"tid": str(1000 + len(threads)), "stackTable": stacks | {"frame": frame}})
    texts = [text_of(thread) for thread in threads]
    rest = text_of(profile | {"threads": []})
    target.write_text(rest.replace('"threads":[]', f'"threads":[{",".join(texts)}]'))
    n_stacks = sum(len(text_of(thread["stackTable"])) for thread in threads)
    return target, len(rest) + max(map(len, texts)) + n_stacks


def parse_seconds(path: Path) -> float:
    """Returns the CPU time that orjson needs for a text."""
    command = [sys.executable, "-c", PARSE, str(path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


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
    # In another process, as what this one has needed counts for those that it starts.
    with ProcessPoolExecutor(1, get_context("spawn")) as other:
        medium, _ = other.submit(repeated, SAMPLES, 39, WORK / "medium.json").result()
        large, n_text = other.submit(repeated, SAMPLES, 268, WORK / "large.json").result()
        marked, _ = other.submit(repeated, MARKERS, 76, WORK / "markers.json").result()
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
    slower = max(parse / PARSE_SECONDS, 1.0)
    where = f"where orjson takes {PARSE_SECONDS} s of the markers, here {parse:.2f} s"
    cpu = runs["info, 437 k samples"].cpu - empty.cpu
    what = f"info less an empty Python: at most {INFO_SECONDS} s {where}"
    targets.check(what, f"{cpu:.2f} s", cpu <= INFO_SECONDS * slower)
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
    targets.check(f"markers: at most {MARKER_SECONDS} s {where}", f"{cpu:.2f} s", cpu <= MARKER_SECONDS * slower)
    return targets.status()


if __name__ == "__main__":
    sys.exit(main())
