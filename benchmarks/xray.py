"""Compares `traceferry convert` with `llvm-xray convert` on a large XRay recording: run by `make bench`.

How it measures: common.py. The recordings are in captures/xray.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

from common import (
    CAPTURES,
    MB,
    OUTPUTS,
    ROOT,
    TRACEFERRY,
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

FIXTURES = ROOT / "fixtures" / "xray" / "clang-19"

LARGE, SMALL = "l100-fdr-c19-pie-bigmix.xray", "small5m-fdr-c19-pie-bigmix.xray"
BINARY = CAPTURES / "xray" / "bin19" / "bigmix-pie"
SYMBOLS = ("--symbols", str(BINARY))
PEER = "llvm-xray"

# What the project promises for the large recording, and for a small one against starting Python with NumPy.
PERFETTO_CPU = 1 / 60
FIREFOX_CPU = 1 / 50
PEAK_MB = 700
START_UP = 2.0


# ---------------------------------------------------------------- what is measured


def main() -> int:
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
    commands = {name: convert(large, suffix, *SYMBOLS) for name, suffix in OUTPUTS.items()}
    if peer:
        out = WORK / "llvm-xray.json"
        options = ["-f", "trace_event", "-symbolize", f"-instr_map={BINARY}", "-o", str(out), str(large)]
        commands = {PEER: Command([peer, "convert", *options], out), **commands}
    measured = in_turn(commands, arguments.rounds)
    print_table(measured, PEER, n_large / 1e6, "M records")
    of_small = in_turn({name: convert(small, suffix, *SYMBOLS) for name, suffix in OUTPUTS.items()}, arguments.rounds)
    print(f"\n{small.name}: {n_small:,} function records, {small.stat().st_size / MB:.1f} MB")
    print_table(of_small, None, n_small / 1e6, "M records")
    targets = Targets()
    check(targets, measured, of_small, large.stat().st_size / small.stat().st_size)
    check_start_up(targets, arguments.rounds)
    return targets.status()


def find_peer() -> str:
    for name in ("llvm-xray-19", "llvm-xray"):
        if found := shutil.which(name):
            return found
    sys.exit("llvm-xray is not installed (apt install llvm-19); without it: benchmarks/xray.py --no-peer")


def unpacked(name: str) -> Path:
    packed = CAPTURES / "xray" / "logs" / f"{name}.zst"
    if not packed.exists() or not BINARY.exists():
        sys.exit(
            f"{packed if not packed.exists() else BINARY} is missing: set TRACEFERRY_SHARED to the folder that "
            "holds captures/xray (how to record one: fixtures/xray/README.md)"
        )
    return decompressed(packed, WORK / name)


def n_records(log: Path) -> int:
    """Function records, half of them enters: what `traceferry info` counts as calls, twice."""
    answer = subprocess.run([*TRACEFERRY, "info", "--json", str(log)], capture_output=True, cwd=ROOT, check=False)
    if answer.returncode not in (0, 1):
        sys.exit(answer.stderr.decode(errors="replace"))
    processes = json.loads(answer.stdout)["processes"]
    return sum(2 * int(thread["calls"]) for process in processes for thread in process["threads"])


def check(targets: Targets, large: dict[str, Run], small: dict[str, Run], growth_of_log: float) -> None:
    print("\ntargets")
    peer = large.get(PEER)
    for name, share in (("Perfetto", PERFETTO_CPU), ("Firefox .json", FIREFOX_CPU)):
        if peer is not None:
            targets.check(
                f"{name}: CPU at most 1/{1 / share:.0f} of {PEER}'s",
                ratio(large[name].cpu, peer.cpu),
                large[name].cpu <= share * peer.cpu,
            )
    for name in OUTPUTS:
        peak = large[name].peak
        targets.check(f"{name}: peak memory at most {PEAK_MB} MB", f"{peak / MB:.0f} MB", peak <= PEAK_MB * MB)
        growth = peak / small[name].peak
        targets.check(
            f"{name}: memory grows no faster than the log ({growth_of_log:.1f}x)",
            f"{growth:.1f}x",
            growth <= growth_of_log,
        )


def check_start_up(targets: Targets, rounds: int) -> None:
    """A small recording against starting Python and importing NumPy, which everything here needs."""
    log, binary = FIXTURES / "fdr-c19-pie-pool.xray", FIXTURES / "pool-pie.zst"
    commands = {"python, import numpy": Command([sys.executable, "-c", "import numpy"])}
    for symbols in (False, True):
        for suffix in ("json", "pftrace"):
            out = WORK / f"small.{suffix}"
            options = ["--symbols", str(binary)] if symbols else []
            command = [*TRACEFERRY, "convert", str(log), *options, "-o", str(out), "--quiet"]
            commands[f".{suffix}{' with symbols' if symbols else ''}"] = Command(command, out)
    measured = in_turn(commands, max(rounds, 3) * 7)
    base = measured["python, import numpy"]
    print(f"\nstart-up: {log.name}, {log.stat().st_size / 1000:.0f} kB\n{'':22}{'CPU ms':>9}{'wall ms':>9}{'ratio':>8}")
    for name, run in measured.items():
        print(f"{name:22}{run.cpu * 1e3:9.0f}{run.wall * 1e3:9.0f}{run.cpu / base.cpu:8.2f}")
    print()
    for name in (".json", ".pftrace"):
        times = measured[name].cpu / base.cpu
        targets.check(f"small recording to {name}: at most {START_UP:.0f}x", f"{times:.2f}x", times <= START_UP)


if __name__ == "__main__":
    sys.exit(main())
