"""Compares traceferry with `llvm-gsymutil` on look-ups in a GSYM file: a million random addresses, with inlined frames.

Run by `make bench`. How it measures: common.py. Both read the addresses from standard input and print every frame.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
from pathlib import Path

from common import CAPTURES, MB, TRACEFERRY, WORK, Command, Targets, decompressed, in_turn, print_table, ratio

PACKED = CAPTURES / "gsym" / "python3.11.debug.g19.gsym.zst"
PEERS = ("llvm-gsymutil-19", "llvm-gsymutil")
N_ADDRESSES = 1_000_000
# What the project promises: CPU time as a part of llvm-gsymutil's.
CPU = 1 / 4


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares traceferry with llvm-gsymutil on look-ups in a GSYM file.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each command runs (default: 3)")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        sys.exit("at least one round is needed")
    if not PACKED.exists():
        sys.exit(f"{PACKED} is missing: set TRACEFERRY_SHARED to the folder that holds captures/gsym")
    WORK.mkdir(parents=True, exist_ok=True)
    symbols = decompressed(PACKED, WORK / "gsym" / PACKED.stem)
    asked, answers = addresses(symbols), WORK / "frames.txt"
    words = [*TRACEFERRY, "symbols", str(symbols), "--lookup", "-"]
    ours = {"look-ups": words, "look-ups, --json": [*words, "--json"]}
    commands = {name: Command(command, answers, printed=True, given=asked) for name, command in ours.items()}
    peer = next((name for name in PEERS if shutil.which(name)), None)
    if peer:
        theirs = Command([peer, "--addresses-from-stdin"], answers, printed=True, given=asked)
        commands = {peer: theirs, **commands}
    else:
        print("no comparison: llvm-gsymutil is not installed (apt install llvm-19)")
    size = symbols.stat().st_size / MB
    print(f"\n{symbols.name}, {size:.1f} MB, {N_ADDRESSES} addresses; median of {arguments.rounds}")
    measured = in_turn(commands, arguments.rounds)
    print_table(measured, peer, N_ADDRESSES / 1e6, "M addresses")
    targets = Targets()
    if peer:
        print("\ntargets")
        for name in ours:
            mine, other = measured[name].cpu, measured[peer].cpu
            targets.check(f"{name}: CPU at most {ratio(CPU, 1)} of {peer}'s", ratio(mine, other), mine <= CPU * other)
    return targets.status()


def addresses(symbols: Path) -> Path:
    """Random ones between the first function and the end of the last, a line each, as llvm-gsymutil reads them."""
    from traceferry.files.source import open_source
    from traceferry.symbolication.gsym.reader import Gsym

    functions = list(Gsym(open_source(str(symbols))).functions())
    low, high = functions[0].start, functions[-1].start + functions[-1].size
    chosen = random.Random(19)
    asked = WORK / "addresses.txt"
    asked.write_text("".join(f"{chosen.randrange(low, high):#x} {symbols}\n" for _ in range(N_ADDRESSES)))
    return asked


if __name__ == "__main__":
    sys.exit(main())
