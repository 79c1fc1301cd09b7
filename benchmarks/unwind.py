"""Compares unwinding with `perf script` on a recording of `perf record --call-graph dwarf`.

Run by `make bench`. How it measures: common.py. The program is captures/unwind/programs/big.c, which this builds and
records once: 40,000 samples with 8 KB of stack each, 338 MB. All is measured on three times as much, too, of which
the start of the process is a third as large a part.
"""

from __future__ import annotations

import argparse
import shutil
import struct
import subprocess
import sys
from pathlib import Path

from common import CAPTURES, MB, WORK, Command, Targets, convert, in_turn, print_table, ratio

PROGRAMS = CAPTURES / "unwind" / "programs"
FOLDER = WORK / "unwind"
SECONDS = 40
ADDED, WHOLE = 1 / 8, 1 / 4  # of perf script's CPU time
MEMORY_MORE = 100 * MB
# The conversion as it was before stacks were unwound.
WITHOUT = """
import sys
from traceferry.apps.cli import main
from traceferry.importers.perf import unwinding
unwinding.unwound = lambda trace, recording, *_: recording.samples
sys.exit(main(sys.argv[1:]))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares unwinding of recorded stacks with perf script.")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    missing = next((tool for tool in ("perf", "gcc") if shutil.which(tool) is None), None)
    if missing is not None or not PROGRAMS.is_dir():
        sys.exit(f"unwinding is not measured: {missing or PROGRAMS.parent.name} is missing")
    recording = FOLDER / "big.data"
    if not recording.exists():
        record(recording)
    threefold = FOLDER / "big3.data"
    if not threefold.exists():
        repeat(recording, threefold, 3)
    without = convert(recording, "json")
    without.arguments[:3] = [sys.executable, "-c", WITHOUT]
    peer, times = "perf script --no-inline", ", 3 times"
    commands = {
        peer: printed_by_perf(recording),
        "without unwinding": without,
        "Firefox .json": convert(recording, "json"),
        "Perfetto": convert(recording, "pftrace"),
        peer + times: printed_by_perf(threefold),
        f"Firefox .json{times}": convert(threefold, "json"),
        f"Perfetto{times}": convert(threefold, "pftrace"),
    }
    measured = in_turn(commands, arguments.rounds)
    print_table(measured, peer, recording.stat().st_size / MB, "MB")
    perf, json = measured[peer].cpu, measured["Firefox .json"]
    added = json.cpu - measured["without unwinding"].cpu
    targets = Targets()
    targets.check(f"unwinding adds at most {ratio(ADDED, 1)} of perf script", ratio(added, perf), added <= ADDED * perf)
    for name, of in (("Firefox .json", ""), ("Perfetto", ""), ("Firefox .json", times), ("Perfetto", times)):
        cpu, whole = measured[name + of].cpu, measured[peer + of].cpu
        targets.check(f"{name}{of}: at most {ratio(WHOLE, 1)} of perf script", ratio(cpu, whole), cpu <= WHOLE * whole)
    more = json.peak - measured["without unwinding"].peak
    targets.check(f"at most {MEMORY_MORE // MB} MB more memory", f"{more / MB:.0f} MB", more <= MEMORY_MORE)
    return targets.status()


def printed_by_perf(recording: Path) -> Command:
    return Command(["perf", "script", "--no-inline", "-i", str(recording)], WORK / "script.txt", printed=True)


def record(recording: Path) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    options = ["-O2", "-fomit-frame-pointer", "-Wl,--build-id"]
    library = ["gcc", *options, "-fPIC", "-shared", "-Wl,-z,lazy", "-o", "libmix.so", str(PROGRAMS / "libmix.c")]
    program = ["gcc", *options, "-o", "big", str(PROGRAMS / "big.c"), "-L.", "-lmix", "-Wl,-rpath,$ORIGIN"]
    perf = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "999", "-k", "CLOCK_MONOTONIC"]
    perf += ["--call-graph", "dwarf,8192", "-o", str(recording), "./big", str(SECONDS)]
    for command in (library, program, perf):
        subprocess.run(command, cwd=FOLDER, check=True, stdout=subprocess.DEVNULL)


def repeat(recording: Path, target: Path, times: int) -> None:
    """Writes the recording with its records several times. Behind them: {u64 offset, size} of each feature, then these.

    Nothing is held in memory: a child's peak begins with its parent's.
    """
    with recording.open("rb") as source, target.open("wb") as out:
        head = source.read(104)
        at, size = struct.unpack_from("<QQ", head, 40)
        n_features = int.from_bytes(head[72:104], "little").bit_count()
        more = (times - 1) * size
        out.write(head[:48] + struct.pack("<Q", size + more) + head[56:] + source.read(at - len(head)))
        for _ in range(times):
            source.seek(at)
            left = size
            while left:
                left -= out.write(source.read(min(left, 1 << 20)))
        sections = struct.unpack(f"<{2 * n_features}Q", source.read(16 * n_features))
        out.write(struct.pack(f"<{len(sections)}Q", *(v + more * (nth % 2 == 0) for nth, v in enumerate(sections))))
        out.write(source.read())


if __name__ == "__main__":
    sys.exit(main())
