"""What the benchmarks share: running commands in turn, what the kernel accounts to them, and tables with ratios.

Every command is a process of its own that writes a real file. CPU time, wall time and peak memory are the process's and
its children's. Commands run in turn, round after round, after one round to warm up; the median of each is printed.

The recordings are too large for the repository: captures/ below TRACEFERRY_SHARED (default: ../shared), as .zst.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CAPTURES = Path(os.environ.get("TRACEFERRY_SHARED", ROOT.parent / "shared")) / "captures"
WORK = ROOT / "build" / "bench"
TRACEFERRY = [sys.executable, "-m", "traceferry"]
# Installed modules are compiled; those of the working tree are so once, whatever the environment says.
OUTPUTS = {"Perfetto": "pftrace", "Firefox .json": "json", "Firefox .json.gz": "json.gz"}
MB = 1_000_000
# Byte code is warm: Python writes what the round to warm up has compiled, whatever the shell says.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True)
class Command:
    """output: the file that it makes; printed: it prints that instead; tidy: removes what else it made; given: a file
    for its standard input."""

    arguments: list[str]
    output: Path | None = None
    printed: bool = False
    tidy: Callable[[], None] = lambda: None
    given: Path = Path(os.devnull)


@dataclass(frozen=True)
class Run:
    """cpu: user and system seconds; peak: bytes of resident memory; size: bytes of the output."""

    cpu: float
    wall: float
    peak: int
    size: int


def measure(command: Command) -> Run:
    """Runs the command to its end. Its exit status must be 0 or 1 (1: written, and the input had losses)."""
    start = time.perf_counter()
    target = command.output if command.printed and command.output else Path(os.devnull)
    with open(WORK / "stderr.txt", "wb") as errors, open(target, "wb") as printed, open(command.given, "rb") as given:
        child = subprocess.Popen(
            command.arguments, stdin=given, stdout=printed, stderr=errors, cwd=ROOT, env=ENVIRONMENT
        )
        _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    said = (WORK / "stderr.txt").read_text(errors="replace").strip()
    is_done = child.returncode in (0, 1) and "Traceback (" not in said
    if not is_done or (command.output and not command.output.exists()):
        sys.exit(f"{' '.join(command.arguments)}: exit status {child.returncode}\n{said[-2000:]}")
    size = command.output.stat().st_size if command.output else 0
    if command.output:
        command.output.unlink()
    command.tidy()
    per_unit = 1 if sys.platform == "darwin" else 1024
    return Run(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * per_unit, size)


def in_turn(commands: Mapping[str, Command], rounds: int) -> dict[str, Run]:
    """A B C A B C: what disturbs the machine for a while disturbs all alike. Returns the medians."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for number in range(-1, rounds):
        for name, command in commands.items():
            note(f"round {number + 1} of {rounds}: {name}" if number >= 0 else f"warm-up: {name}")
            run = measure(command)
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


def convert(source: Path, suffix: str, *options: str) -> Command:
    out = WORK / f"traceferry.{suffix}"
    return Command([*TRACEFERRY, "convert", str(source), *options, "-o", str(out), "--quiet"], out)


def decompressed(packed: Path, cached: Path) -> Path:
    """The recording, decompressed once into the cache."""
    if not cached.exists():
        import zstandard

        cached.parent.mkdir(parents=True, exist_ok=True)
        part = cached.with_name(cached.name + ".part")
        with open(packed, "rb") as source, open(part, "wb") as target:
            zstandard.ZstdDecompressor().copy_stream(source, target)
        part.rename(cached)
    return cached


def unpacked(packed: Path, folder: Path) -> Path:
    """The recording, decompressed once into the folder, with the dumps that lie beside samples."""
    beside = packed.parent.glob("*.dump.zst") if packed.name == "perf.data.zst" else ()
    for companion in beside:
        decompressed(companion, folder / companion.stem)
    return decompressed(packed, folder / packed.stem)


# ---------------------------------------------------------------- what is printed


def note(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:60}\r", end="", file=sys.stderr, flush=True)


def print_table(measured: Mapping[str, Run], peer: str | None, amount: float, unit: str) -> None:
    """amount: what the input holds, in `unit`s; shown for each second of CPU time."""
    width = max(18, *(len(name) + 2 for name in measured), len(peer or "") + 13)
    print(f"\n{'':{width}}{'CPU s':>9}{'wall s':>9}{'peak MB':>9}{unit + '/s':>13}{'output MB':>11}")
    for name, run in measured.items():
        print(
            f"{name:{width}}{run.cpu:9.2f}{run.wall:9.2f}{run.peak / MB:9.0f}"
            f"{amount / run.cpu:13.2f}{run.size / MB:11.1f}"
        )
    if peer not in measured:
        return
    theirs = measured[peer]
    print(f"\n{'as part of ' + peer:{width}}{'CPU':>9}{'wall':>9}{'memory':>9}{'':13}{'output':>11}")
    for name, run in measured.items():
        if run is not theirs:
            print(
                f"{name:{width}}{ratio(run.cpu, theirs.cpu):>9}{ratio(run.wall, theirs.wall):>9}"
                f"{ratio(run.peak, theirs.peak):>9}{'':13}{ratio(run.size, theirs.size):>11}"
            )


def ratio(ours: float, theirs: float) -> str:
    return f"1/{theirs / ours:.1f}" if ours < theirs else f"{ours / theirs:.2f}x"


class Targets:
    """The verdicts of a benchmark on what the project promises. `status` is what its command exits with."""

    def __init__(self) -> None:
        self.n_met = self.n_missed = 0

    def check(self, what: str, value: str, met: bool) -> None:
        """Prints whether a target is met."""
        self.n_met, self.n_missed = self.n_met + met, self.n_missed + (not met)
        print(f"  {'met' if met else 'NOT MET':8} {what}: {value}")

    def status(self) -> int:
        """0 if every target that was measured is met, 1 if one is missed, or none could be measured."""
        if self.n_missed:
            print(f"\n{self.n_missed} of {self.n_met + self.n_missed} targets are not met")
        elif not self.n_met:
            print("\nno target was measured")
        return int(self.n_missed > 0 or self.n_met == 0)
