"""What the engine of many recordings costs over reading them one by one: run by `make bench-fleet`.

The recordings are copies of those in fixtures. One by one: as many processes as `aggregate` has workers, which share
them, call the function that workers call: what processors lose to each other is then in both. `aggregate`: the CPU time
of all its processes. Neither counts its start-up, which for `aggregate` is what a run over the smallest recording takes
with as many workers. Of each figure the median of all rounds counts. Memory is that of the client, in
whose process the scheduler runs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from common import CAPTURES, MB, ROOT, TRACEFERRY, WORK, Targets, decompressed

sys.path.insert(0, str(ROOT / "tests"))

# How often processes are looked at, and how often for new ones, which takes 10 ms of a processor that workers want.
LOOK_EVERY_S, SEARCH_EVERY = 0.25, 12
OVERHEAD = 1.10
SPEED_UP = 1.8
MEMORY_MB = 20
# Copies of each: some 35 s of CPU in all.
COPIES = 20
# With dumps beside it, or without.
LARGE = {"jit/bigfp/perf.data.zst": True, "mono/large/hotcalls.mlpd.zst": False}
REAL = ["jit/java17", "jit/php82", "mono/mono-6.8", "jit/wasmtime"]
ALONE = """
import sys, time
from traceferry.apps.fleet.inputs import find
from traceferry.apps.fleet.tables import COLUMNS
from traceferry.apps.fleet.tasks import Place, leaf
from traceferry.apps.fleet.work import Aggregation, Reading
found = find([sys.argv[1]])
work, place = Aggregation(Reading(), tuple(COLUMNS)), Place(sys.argv[2], (), found.labels)
recordings = found.recordings[int(sys.argv[3]) :: int(sys.argv[4])]
start, cpu_start = time.monotonic(), time.process_time()
for nth, recording in enumerate(recordings):
    leaf(work, place, str(nth), [recording])
print(time.process_time() - cpu_start, time.monotonic() - start, len(recordings))
"""


@dataclass(frozen=True)
class Cost:
    """cpu: seconds, of all processes; wall: seconds; peak: bytes of the client."""

    cpu: float
    wall: float
    peak: int


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares the engine of many recordings with reading them one by one.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each runs (default: 3)")
    parser.add_argument("--small", default="100,10000", help="numbers of small recordings (default: 100,10000)")
    arguments = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    targets = Targets()
    with TemporaryDirectory(dir=WORK) as folder:
        print_rates(Path(folder))
        compare_with_one_by_one(targets, Path(folder), arguments.rounds)
        compare_memory(targets, Path(folder), [int(n) for n in arguments.small.split(",")])
    return targets.status()


def print_rates(folder: Path) -> None:
    """What a worker does in a second, with large recordings."""
    for name, alone in LARGE.items():
        packed = CAPTURES / name
        if not packed.exists():
            print(f"{name} is not there: its rate is left out")
            continue
        source = decompressed(packed, folder / name.replace("/", "-") / packed.stem)
        for dump in packed.parent.glob("jit-*.dump.zst") if alone else ():
            decompressed(dump, source.parent / dump.stem)
        (cpu, _), _ = one_by_one(str(source), folder / "alone", 1)
        size = source.stat().st_size / MB
        part = next((folder / "alone" / "0" / "_parts").iterdir()).stat().st_size / MB
        print(f"{name}: {size:.0f} MB in {cpu:.2f} s of CPU, {size / cpu:.0f} MB/s; a part of {part:.2f} MB")
        shutil.rmtree(folder / "alone")


def one_by_one(pattern: str, folder: Path, n_processes: int) -> tuple[tuple[float, float], int]:
    """((seconds of CPU, seconds), recordings)"""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ALONE, pattern, str(folder / str(nth)), str(nth), str(n_processes)],
            stdout=subprocess.PIPE, text=True, cwd=ROOT,
        )
        for nth in range(n_processes)
    ]  # fmt: skip
    words = [process.communicate()[0].split() for process in processes]
    if any(process.returncode for process in processes):
        sys.exit("a process that reads recordings one by one has failed")
    cpu, wall = sum(float(word[0]) for word in words), max(float(word[1]) for word in words)
    return (cpu, wall), sum(int(word[2]) for word in words)


def compare_with_one_by_one(targets: Targets, folder: Path, rounds: int) -> None:
    recordings = folder / "real"
    for name in REAL:
        for copy in range(COPIES):
            shutil.copytree(ROOT / "fixtures" / name, recordings / f"{copy}-{name.replace('/', '-')}")
    pattern = str(recordings / "*" / "*.[md][la]*.zst")
    smallest = str(recordings / "0-mono-mono-6.8" / "calls*")
    alone: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    engine: dict[int, list[Cost]] = {1: [], 2: []}
    start_up: dict[int, list[Cost]] = {1: [], 2: []}
    n = 0
    for _ in range(rounds):
        for workers in engine:
            figures, n = one_by_one(pattern, folder / "alone", workers)
            alone[workers].append(figures)
            engine[workers].append(aggregate(pattern, folder / "out", workers))
            start_up[workers].append(aggregate(smallest, folder / "out", workers))
    print(f"{n} recordings; without start-up:")
    ratios, plain, walls = [], {}, {}
    for workers in engine:
        cpu_alone, plain[workers] = map(statistics.median, zip(*alone[workers], strict=True))
        begun = medians(start_up[workers])
        cpu, walls[workers] = (whole - start for whole, start in zip(medians(engine[workers]), begun, strict=True))
        ratios.append(cpu / cpu_alone)
        print(f"one by one, {workers} at once: {cpu_alone:.1f} s of CPU, {plain[workers]:.1f} s")
        print(f"aggregate --workers {workers}: {cpu:.1f} s of CPU ({ratios[-1]:.3f}), {walls[workers]:.1f} s")
        print(f"  its start-up: {begun[0]:.1f} s of CPU, {begun[1]:.1f} s")
    worst = max(ratios)
    targets.check("CPU time of aggregate to that of one by one, at most", f"{worst:.3f}", worst <= OVERHEAD)
    faster = walls[1] / walls[2]
    print(f"two processes one by one are faster than one by {plain[1] / plain[2]:.2f}: what this machine gives")
    targets.check("two workers are faster than one by", f"{faster:.2f}", faster >= SPEED_UP)


def medians(costs: Sequence[Cost]) -> tuple[float, float]:
    """(seconds of CPU, seconds)"""
    return statistics.median(cost.cpu for cost in costs), statistics.median(cost.wall for cost in costs)


def compare_memory(targets: Targets, folder: Path, numbers: list[int]) -> None:
    from fleets import recordings

    peaks = []
    for n in numbers:
        inputs = folder / f"small-{n}"
        for name, data in recordings(n):
            (inputs / name).parent.mkdir(parents=True, exist_ok=True)
            (inputs / name).write_bytes(data)
        cost = aggregate(str(inputs / "{service}" / "{commit}" / "*"), folder / "out", 2)
        peaks.append(cost.peak)
        print(f"{n} small recordings: client and scheduler {cost.peak / MB:.0f} MB, {cost.cpu:.1f} s of CPU")
    grown = (peaks[-1] - peaks[0]) / MB
    targets.check("memory that client and scheduler grow by", f"{grown:.0f} MB", grown <= MEMORY_MB)


def aggregate(pattern: str, output: Path, workers: int) -> Cost:
    """Runs the command, and asks the system for what its processes have used, until it ends."""
    shutil.rmtree(output, ignore_errors=True)
    process = subprocess.Popen(
        [*TRACEFERRY, "aggregate", pattern, "-o", str(output), "--workers", str(workers), "--quiet"],
        env={**os.environ, "CI": "1"}, cwd=ROOT,
    )  # fmt: skip
    used: dict[int, float] = {}
    peak, n_looks, started = 0, 0, time.monotonic()
    client = psutil.Process(process.pid)
    known: list[psutil.Process] = []
    while process.poll() is None:
        with suppress(psutil.NoSuchProcess):
            if n_looks < SEARCH_EVERY or n_looks % SEARCH_EVERY == 0:
                known = client.children(recursive=True)
            peak = max(peak, client.memory_info().rss)
        for each in [client, *known]:
            with suppress(psutil.NoSuchProcess):
                times = each.cpu_times()
                used[each.pid] = times.user + times.system
        n_looks += 1
        with suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_EVERY_S)
    wall = time.monotonic() - started
    if process.returncode != 0:
        sys.exit(f"aggregate ended with {process.returncode}")
    return Cost(sum(used.values()), wall, peak)


if __name__ == "__main__":
    sys.exit(main())
