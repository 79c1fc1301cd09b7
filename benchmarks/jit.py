"""Compares `traceferry convert` with `perf inject --jit` and `perf script` on large recordings of jitted code.

Run by `make bench`. How it measures: common.py. The recordings are captures/jit/bigjit and captures/jit/bigfp.

perf finds a jitdump only at the path that the recording names, and writes a shared object for each code object into
the same folder: the dumps are linked to there while it runs, and what it wrote is counted and removed.
"""

from __future__ import annotations

import argparse
import mmap
import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from common import (
    CAPTURES,
    MB,
    OUTPUTS,
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

# What the project promises: CPU time as a part of perf's, and peak memory against the size of the inputs.
CPU = {"bigjit": 1 / 15, "bigfp": 1 / 25}
MEMORY_FACTOR, MEMORY_MORE = 1.5, 300 * MB
MEMORY_OF_DUMP = 300 * MB

INJECT, BOTH = "perf inject --jit", "perf inject + script"
# perf keeps copies of what it read in a cache; this one is removed afterwards.
CACHE = WORK / "perf-cache"


class CannotRunError(Exception):
    """Why a comparison is not possible here."""


class Jitted:
    """The shared objects that perf writes beside the dumps."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = sorted(set(folders))
        self.before = set(self._all())
        self.since = time.time_ns()
        self.count = self.size = 0

    def _all(self) -> Iterator[Path]:
        for folder in self.folders:
            with os.scandir(folder) as entries:
                yield from (folder / e.name for e in entries if re.fullmatch(r"jitted-\d+-\d+\.so", e.name))

    def tidy(self) -> None:
        """Counts what was written since the last time, and removes what was not there before the benchmark."""
        self.count = self.size = 0
        for path in self._all():
            status = path.stat()
            if status.st_mtime_ns >= self.since:
                self.count += 1
                self.size += status.st_size
            if path not in self.before:
                path.unlink()
        shutil.rmtree(CACHE, ignore_errors=True)
        self.since = time.time_ns()


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares traceferry with perf on large recordings of jitted code.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each command runs (default: 3)")
    parser.add_argument("--no-peer", action="store_true", help="only traceferry: no ratios to perf")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        sys.exit("at least one round is needed")
    WORK.mkdir(parents=True, exist_ok=True)
    targets = Targets()
    for name in ("bigjit", "bigfp"):
        try:
            compare(targets, name, arguments.rounds, with_peer=not arguments.no_peer)
        except CannotRunError as reason:
            print(f"\n{name}: skipped: {reason}")
    return targets.status()


def compare(targets: Targets, name: str, rounds: int, with_peer: bool) -> None:
    """bigjit: a jitdump alone against `perf inject`; bigfp: samples with their dumps, against perf's way to text."""
    recording, *dumps = unpacked(name)
    source, peer = (dumps[0], INJECT) if name == "bigjit" else (recording, BOTH)
    inputs = sum(path.stat().st_size for path in (dumps if name == "bigjit" else [recording, *dumps]))
    print(f"\n{name}: {source.name}, {inputs / MB:.0f} MB in all; median of {rounds}")
    commands = {label: convert(source, suffix) for label, suffix in OUTPUTS.items()}
    with ExitStack() as stack:
        jitted = None
        if with_peer:
            try:
                jitted = Jitted([stack.enter_context(at_recorded_path(recording, dump)) for dump in dumps])
                commands = {peer: perf(peer, recording, jitted), **commands}
            except CannotRunError as reason:
                print(f"no comparison with perf: {reason}")
        measured = in_turn(commands, rounds)
    print_table(measured, peer, inputs / MB, "MB")
    if jitted:
        print(f"\n{INJECT} also writes {jitted.count:,} shared objects, {jitted.size / MB:.0f} MB, beside the dumps")
    check(targets, measured, peer, inputs, CPU[name])


def unpacked(name: str) -> list[Path]:
    """The perf.data, then its jitdumps."""
    folder = CAPTURES / "jit" / name
    packed = sorted(folder.glob("perf.data*")) + sorted(folder.glob("jit-*.dump*"))
    if len(packed) < 2:
        raise CannotRunError(f"{folder} is missing: set TRACEFERRY_SHARED to the folder that holds captures/jit")
    return [p if p.suffix != ".zst" else decompressed(p, WORK / name / p.stem) for p in packed]


def perf(label: str, recording: Path, jitted: Jitted) -> Command:
    """`perf inject`; with `perf script` after it where the label says so, both accounted as one."""
    program = shutil.which("perf")
    if not program:
        raise CannotRunError("perf is not installed (apt install linux-perf)")
    injected, text = WORK / "injected.data", WORK / "perf-script.txt"
    cached = [program, "--buildid-dir", str(CACHE)]
    inject = [*cached, "inject", "--jit", "-i", str(recording), "-o", str(injected)]
    if label == INJECT:
        return Command(inject, injected, tidy=jitted.tidy)
    script = [*cached, "script", "-i", str(injected)]

    def tidy() -> None:
        injected.unlink()
        jitted.tidy()

    return Command(["sh", "-c", f"{shlex.join(inject)} && {shlex.join(script)}"], text, printed=True, tidy=tidy)


@contextmanager
def at_recorded_path(recording: Path, dump: Path) -> Iterator[Path]:
    """Makes the dump be found where the recording says that it was, and gives that folder."""
    recorded = recorded_path(recording, dump.name)
    made: list[Path] = []
    try:
        if recorded.exists():
            if recorded.stat().st_size != dump.stat().st_size:
                raise CannotRunError(f"another file lies at {recorded}, where the recording says that its dump is")
        else:
            missing = [folder for folder in recorded.parents if not folder.exists()]
            try:
                for folder in reversed(missing):
                    folder.mkdir()
                    made.append(folder)
                recorded.symlink_to(dump)
                made.append(recorded)
            except OSError as error:
                raise CannotRunError(f"{recorded}, where perf looks for the dump, cannot be made: {error}") from None
        if not os.access(recorded.parent, os.W_OK):
            raise CannotRunError(f"{recorded.parent}, where perf writes, is not writable")
        yield recorded.parent
    finally:
        for path in reversed(made):
            path.unlink() if path.is_symlink() else path.rmdir()


def recorded_path(recording: Path, name: str) -> Path:
    """What the recording's MMAP2 event of the dump says; perf looks nowhere else."""
    with open(recording, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found = re.search(rb"/[^\0]{0,4000}/" + re.escape(name.encode()) + rb"\0", data)
        if not found:
            raise CannotRunError(f"{recording.name} does not say where {name} was")
        return Path(os.fsdecode(found.group()[:-1]))


def check(targets: Targets, measured: dict[str, Run], peer: str, inputs: int, part: float) -> None:
    print("\ntargets")
    for label in OUTPUTS:
        run = measured[label]
        if peer in measured and label != "Firefox .json.gz":
            targets.check(
                f"{label}: CPU at most 1/{1 / part:.0f} of {peer}'s",
                ratio(run.cpu, measured[peer].cpu),
                run.cpu <= part * measured[peer].cpu,
            )
    if peer == INJECT:
        # Of a dump nothing stays in memory but what its records say.
        most, what = MEMORY_OF_DUMP, f"{MEMORY_OF_DUMP / MB:.0f} MB"
    else:
        most = MEMORY_FACTOR * inputs + MEMORY_MORE
        what = f"{MEMORY_FACTOR} times the input and {MEMORY_MORE / MB:.0f} MB ({most / MB:.0f} MB)"
    for label in OUTPUTS:
        peak = measured[label].peak
        targets.check(f"{label}: peak memory at most {what}", f"{peak / MB:.0f} MB", peak <= most)


if __name__ == "__main__":
    sys.exit(main())
