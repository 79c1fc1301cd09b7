"""What the engine of many recordings costs over reading them one by one: run by `make bench-fleet`.

The recordings are copies of those in fixtures. One by one: a process reads them all with the function that workers
call. `aggregate`: the CPU time of all its processes. Neither counts its start-up, which for `aggregate` is what a run
over the smallest recording takes. Memory is that of the client, in whose process the scheduler runs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from common import CAPTURES, MB, ROOT, TRACEFERRY, WORK, decompressed, verdict

sys.path.insert(0, str(ROOT / "tests"))

OVERHEAD = 1.10
SPEED_UP = 1.8
MEMORY_MB = 20
# Copies of each: some 60 s of CPU in all.
COPIES = 40
# With dumps beside it, or without.
LARGE = {"jit/bigfp/perf.data.zst": True, "mono/large/hotcalls.mlpd.zst": False}
REAL = ["jit/java17", "jit/php82", "mono/mono-6.8", "jit/wasmtime"]
ALONE = """
import sys, time
from traceferry.fleet.inputs import find
from traceferry.fleet.tables import COLUMNS
from traceferry.fleet.tasks import Place, leaf
from traceferry.fleet.work import Aggregation, Reading
found = find([sys.argv[1]])
work, place = Aggregation(Reading(), tuple(COLUMNS)), Place(sys.argv[2], (), found.labels)
start = time.process_time()
for nth, recording in enumerate(found.recordings):
    leaf(work, place, str(nth), [recording])
print(time.process_time() - start, len(found.recordings))
"""


@dataclass(frozen=True)
class Cost:
    """cpu: of all processes; wall: from the first recording's start, without that of the cluster; peak: bytes of the
    client."""

    cpu: float
    wall: float
    peak: int


def main() -> None:
    parser = argparse.ArgumentParser(description="Compares the engine of many recordings with reading them one by one.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each runs (default: 3)")
    parser.add_argument("--small", default="100,10000", help="numbers of small recordings (default: 100,10000)")
    arguments = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    met = True
    with TemporaryDirectory(dir=WORK) as folder:
        print_rates(Path(folder))
        met &= compare_with_one_by_one(Path(folder), arguments.rounds)
        met &= compare_memory(Path(folder), [int(n) for n in arguments.small.split(",")])
    sys.exit(not met)


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
        command = [sys.executable, "-c", ALONE, str(source), str(folder / "alone")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        cpu, size = float(done.stdout.split()[0]), source.stat().st_size / MB
        part = next((folder / "alone" / "_parts").iterdir()).stat().st_size / MB
        print(f"{name}: {size:.0f} MB in {cpu:.2f} s of CPU, {size / cpu:.0f} MB/s; a part of {part:.2f} MB")
        shutil.rmtree(folder / "alone")


def compare_with_one_by_one(folder: Path, rounds: int) -> bool:
    recordings = folder / "real"
    for name in REAL:
        for copy in range(COPIES):
            shutil.copytree(ROOT / "fixtures" / name, recordings / f"{copy}-{name.replace('/', '-')}")
    pattern = str(recordings / "*" / "*.[md][la]*.zst")
    smallest = str(recordings / "0-mono-mono-6.8" / "calls*")
    alone: list[float] = []
    engine: dict[int, list[Cost]] = {1: [], 2: []}
    start_up: list[float] = []
    n = 0
    for _ in range(rounds):
        done = subprocess.run(
            [sys.executable, "-c", ALONE, pattern, str(folder / "alone")], capture_output=True, text=True, check=True
        )
        cpu, n = float(done.stdout.split()[0]), int(done.stdout.split()[1])
        alone.append(cpu)
        for workers, costs in engine.items():
            costs.append(aggregate(pattern, folder / "out", workers))
        start_up.append(aggregate(smallest, folder / "out", 2).cpu)
    single, begun = sorted(alone)[rounds // 2], sorted(start_up)[rounds // 2]
    ratios = {
        workers: (sorted(cost.cpu for cost in costs)[rounds // 2] - begun) / single for workers, costs in engine.items()
    }
    walls = {workers: sorted(cost.wall for cost in costs)[rounds // 2] for workers, costs in engine.items()}
    print(f"{n} recordings, one by one: {single:.1f} s of CPU, {n / single:.1f} recordings/s of CPU")
    print(f"start-up of aggregate with two workers: {begun:.1f} s of CPU")
    for workers, value in ratios.items():
        print(f"aggregate --workers {workers}: {value * single:.1f} s of CPU more, {walls[workers]:.1f} s")
    met = verdict("CPU time of aggregate to that of one by one", f"{ratios[2]:.3f}", ratios[2] <= OVERHEAD)
    faster = walls[1] / walls[2]
    return verdict("two workers are faster than one by", f"{faster:.2f}", faster >= SPEED_UP) and met


def compare_memory(folder: Path, numbers: list[int]) -> bool:
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
    return verdict("memory that client and scheduler grow by", f"{grown:.0f} MB", grown <= MEMORY_MB)


def aggregate(pattern: str, output: Path, workers: int) -> Cost:
    """Runs the command, and asks the system for what its processes have used, until it ends."""
    shutil.rmtree(output, ignore_errors=True)
    process = subprocess.Popen(
        [*TRACEFERRY, "aggregate", pattern, "-o", str(output), "--workers", str(workers), "--quiet"],
        env={**os.environ, "CI": "1"}, cwd=ROOT,
    )  # fmt: skip
    used: dict[int, float] = {}
    peak, begun, ended = 0, 0.0, time.monotonic()
    client = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            for each in [client, *client.children(recursive=True)]:
                times = each.cpu_times()
                used[each.pid] = times.user + times.system
            peak = max(peak, client.memory_info().rss)
        except psutil.NoSuchProcess:
            pass
        if not begun and (output / "_parts").exists():
            begun = time.monotonic()
        ended = time.monotonic()
        time.sleep(0.05)
    if process.returncode != 0:
        sys.exit(f"aggregate ended with {process.returncode}")
    return Cost(sum(used.values()), ended - begun, peak)


if __name__ == "__main__":
    main()
