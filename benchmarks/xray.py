"""Compares `traceferry convert` with `llvm-xray convert` on a large XRay recording: run by `make bench`.

Every command is a process of its own that writes a real file. CPU time, wall time and peak memory are what the kernel
accounts to it. Commands run in turn, round after round, after one round to warm up; the median of each is printed.

The recordings are too large for the repository: captures/xray below TRACEFERRY_SHARED (default: ../shared), as .zst.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CAPTURES = Path(os.environ.get("TRACEFERRY_SHARED", ROOT.parent / "shared")) / "captures" / "xray"
WORK = ROOT / "build" / "bench"
TRACEFERRY = [sys.executable, "-m", "converter.cli"]
FIXTURES = ROOT / "fixtures" / "xray" / "clang-19"

LARGE, SMALL = "l100-fdr-c19-pie-bigmix.xray", "small5m-fdr-c19-pie-bigmix.xray"
BINARY = CAPTURES / "bin19" / "bigmix-pie"
OUTPUTS = {"Perfetto": "pftrace", "Firefox .json": "json", "Firefox .json.gz": "json.gz"}
PEER = "llvm-xray"
MB = 1_000_000

# What the project promises for the large recording, and for a small one against starting Python with NumPy.
PERFETTO_CPU = 1 / 40
FIREFOX_CPU = 1 / 12
PEAK_MB = 700
START_UP = 2.0


# What to run, and the file that it makes.
Command = tuple[list[str], Path | None]


@dataclass(frozen=True)
class Run:
    """cpu: user and system seconds; peak: bytes of resident memory; size: bytes of the output."""

    cpu: float
    wall: float
    peak: int
    size: int


def measure(command: list[str], output: Path | None = None) -> Run:
    """Runs the command to its end. Its exit status must be 0 or 1 (1: written, and the input had losses)."""
    start = time.perf_counter()
    with open(WORK / "stderr.txt", "wb") as errors:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, cwd=ROOT)
        _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1) or (output and not output.exists()):
        said = (WORK / "stderr.txt").read_text(errors="replace").strip()
        sys.exit(f"{' '.join(command)}: exit status {child.returncode}\n{said[-2000:]}")
    size = output.stat().st_size if output else 0
    if output:
        output.unlink()
    per_unit = 1 if sys.platform == "darwin" else 1024
    return Run(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * per_unit, size)


def in_turn(commands: Mapping[str, Command], rounds: int) -> dict[str, Run]:
    """A B C A B C: what disturbs the machine for a while disturbs all alike. Returns the medians."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for number in range(-1, rounds):
        for name, (command, output) in commands.items():
            note(f"round {number + 1} of {rounds}: {name}" if number >= 0 else f"warm-up: {name}")
            run = measure(command, output)
            if number >= 0:
                runs[name].append(run)
    note("")
    return {
        name: Run(
            statistics.median(r.cpu for r in of),
            statistics.median(r.wall for r in of),
            int(statistics.median(r.peak for r in of)),
            of[-1].size,
        )
        for name, of in runs.items()
    }


def note(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:60}\r", end="", file=sys.stderr, flush=True)


# ---------------------------------------------------------------- what is measured


def main() -> None:
    parser = argparse.ArgumentParser(description="Compares traceferry with llvm-xray on a large XRay recording.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each command runs (default: 3)")
    parser.add_argument("--no-peer", action="store_true", help="only traceferry: no ratios to llvm-xray")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        sys.exit("at least one round is needed")
    WORK.mkdir(parents=True, exist_ok=True)
    peer = None if arguments.no_peer else find_peer()
    large, small = unpacked(LARGE), unpacked(SMALL)
    n_large, n_small = n_records(large), n_records(small)
    print(
        f"{large.name}: {n_large:,} function records, {large.stat().st_size / MB:.0f} MB; median of {arguments.rounds}"
    )
    commands = {name: convert(large, suffix) for name, suffix in OUTPUTS.items()}
    if peer:
        out = WORK / "llvm-xray.json"
        options = ["-f", "trace_event", "-symbolize", f"-instr_map={BINARY}", "-o", str(out), str(large)]
        commands = {PEER: ([peer, "convert", *options], out), **commands}
    measured = in_turn(commands, arguments.rounds)
    print_table(measured, n_large)
    of_small = in_turn({name: convert(small, suffix) for name, suffix in OUTPUTS.items()}, arguments.rounds)
    print(f"\n{small.name}: {n_small:,} function records, {small.stat().st_size / MB:.1f} MB")
    print_table(of_small, n_small)
    met = targets(measured, of_small, large.stat().st_size / small.stat().st_size)
    met &= start_up(arguments.rounds)
    if not met:
        print("\nnot every target is met")


def find_peer() -> str:
    for name in ("llvm-xray-19", "llvm-xray"):
        if found := shutil.which(name):
            return found
    sys.exit("llvm-xray is not installed (apt install llvm-19); without it: benchmarks/xray.py --no-peer")


def unpacked(name: str) -> Path:
    """The recording, decompressed once into the cache."""
    cached = WORK / name
    if not cached.exists():
        packed = CAPTURES / "logs" / f"{name}.zst"
        if not packed.exists() or not BINARY.exists():
            sys.exit(
                f"{packed if not packed.exists() else BINARY} is missing: set TRACEFERRY_SHARED to the folder that "
                "holds captures/xray (how to record one: fixtures/xray/README.md)"
            )
        import zstandard

        part = cached.with_suffix(".part")
        with open(packed, "rb") as source, open(part, "wb") as target:
            zstandard.ZstdDecompressor().copy_stream(source, target)
        part.rename(cached)
    return cached


def n_records(log: Path) -> int:
    """Function records, half of them enters: what `traceferry info` counts as calls, twice."""
    answer = subprocess.run(
        [*TRACEFERRY, "info", "--json", str(log)], capture_output=True, cwd=ROOT, check=False
    )
    if answer.returncode not in (0, 1):
        sys.exit(answer.stderr.decode(errors="replace"))
    processes = json.loads(answer.stdout)["processes"]
    return sum(2 * int(thread["calls"]) for process in processes for thread in process["threads"])


def convert(log: Path, suffix: str) -> Command:
    out = WORK / f"traceferry.{suffix}"
    return [*TRACEFERRY, "convert", str(log), "--symbols", str(BINARY), "-o", str(out), "--quiet"], out


# ---------------------------------------------------------------- what is printed


def print_table(measured: dict[str, Run], records: int) -> None:
    print(f"\n{'':18}{'CPU s':>9}{'wall s':>9}{'peak MB':>9}{'M records/s':>13}{'output MB':>11}")
    for name, run in measured.items():
        rate = records / run.cpu / 1e6
        print(f"{name:18}{run.cpu:9.2f}{run.wall:9.2f}{run.peak / MB:9.0f}{rate:13.2f}{run.size / MB:11.1f}")
    peer = measured.get(PEER)
    if peer is None:
        return
    print(f"\n{'as part of ' + PEER:18}{'CPU':>9}{'wall':>9}{'memory':>9}{'':13}{'output':>11}")
    for name, run in measured.items():
        if run is not peer:
            print(
                f"{name:18}{ratio(run.cpu, peer.cpu):>9}{ratio(run.wall, peer.wall):>9}"
                f"{ratio(run.peak, peer.peak):>9}{'':13}{ratio(run.size, peer.size):>11}"
            )


def ratio(ours: float, theirs: float) -> str:
    return f"1/{theirs / ours:.1f}" if ours < theirs else f"{ours / theirs:.2f}x"


def targets(large: dict[str, Run], small: dict[str, Run], growth_of_log: float) -> bool:
    print("\ntargets")
    peer = large.get(PEER)
    met = True
    for name, share in (("Perfetto", PERFETTO_CPU), ("Firefox .json", FIREFOX_CPU)):
        if peer is not None:
            met &= verdict(
                f"{name}: CPU at most 1/{1 / share:.0f} of {PEER}'s",
                ratio(large[name].cpu, peer.cpu),
                large[name].cpu <= share * peer.cpu,
            )
    for name in OUTPUTS:
        peak = large[name].peak
        met &= verdict(f"{name}: peak memory at most {PEAK_MB} MB", f"{peak / MB:.0f} MB", peak <= PEAK_MB * MB)
        growth = peak / small[name].peak
        met &= verdict(
            f"{name}: memory grows no faster than the log ({growth_of_log:.1f}x)",
            f"{growth:.1f}x",
            growth <= growth_of_log,
        )
    return met


def start_up(rounds: int) -> bool:
    """A small recording against starting Python and importing NumPy, which everything here needs."""
    log, binary = FIXTURES / "fdr-c19-pie-pool.xray", FIXTURES / "pool-pie.zst"
    commands: dict[str, Command] = {"python, import numpy": ([sys.executable, "-c", "import numpy"], None)}
    for symbols in (False, True):
        for suffix in ("json", "pftrace"):
            out = WORK / f"small.{suffix}"
            options = ["--symbols", str(binary)] if symbols else []
            command = [*TRACEFERRY, "convert", str(log), *options, "-o", str(out), "--quiet"]
            commands[f".{suffix}{' with symbols' if symbols else ''}"] = (command, out)
    measured = in_turn(commands, max(rounds, 3) * 7)
    base = measured["python, import numpy"]
    print(f"\nstart-up: {log.name}, {log.stat().st_size / 1000:.0f} kB\n{'':22}{'CPU ms':>9}{'wall ms':>9}{'ratio':>8}")
    for name, run in measured.items():
        print(f"{name:22}{run.cpu * 1e3:9.0f}{run.wall * 1e3:9.0f}{run.cpu / base.cpu:8.2f}")
    print()
    met = True
    for name in (".json", ".pftrace"):
        times = measured[name].cpu / base.cpu
        met &= verdict(f"small recording to {name}: at most {START_UP:.0f}x", f"{times:.2f}x", times <= START_UP)
    return met


def verdict(what: str, value: str, met: bool) -> bool:
    print(f"  {'met' if met else 'NOT MET':8} {what}: {value}")
    return met


if __name__ == "__main__":
    main()
