"""Measures `make demo` from nothing: in a clone of this folder, where all is installed and compiled first.

Run by `make bench`. Needs what `make demo` needs: the Python package index, and a C compiler, which the index has, too.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from common import ROOT, WORK, Command, Targets, measure
from speed import MARKERS, markers, parse_seconds, slower

# Seconds of CPU time that the project promises, those of `speed`.
CPU = 60.0
# What `make demo` makes, one after another.
STEPS = {
    "environment": ".venv/.tools", "packages": ".venv/.installed", "compiled modules": ".venv/.kernels", "demo": "demo"
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures `make demo` from nothing.")
    parser.add_argument("--rounds", type=int, default=3, help="how often all is made (default: 3)")
    arguments = parser.parse_args()
    if not MARKERS.exists():
        sys.exit("no profiles to tell the machine's speed by: set TRACEFERRY_SHARED to the folder that holds captures")
    WORK.mkdir(parents=True, exist_ok=True)
    text = markers()
    rounds = [costs(text) for _ in range(arguments.rounds)]
    print(f"\n`make demo` from nothing; median of {arguments.rounds}\n{'':20}{'CPU s':>8}{'promised s':>12}")
    for step in STEPS:
        here, promised = (statistics.median(column) for column in zip(*(each[step] for each in rounds), strict=True))
        print(f"{step:20}{here:8.2f}{promised:12.2f}")
    whole = statistics.median(sum(promised for _, promised in each.values()) for each in rounds)
    print("\ntargets")
    targets = Targets()
    targets.check(f"make demo: at most {CPU:.0f} s of CPU time", f"{whole:.1f} s", whole <= CPU)
    return targets.status()


def costs(text: Path) -> dict[str, tuple[float, float]]:
    """Returns what each step takes in a new clone: seconds of CPU time here, and where they were promised."""
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        subprocess.run(["git", "clone", "--quiet", str(ROOT), folder], check=True)
        found = {}
        for step, target in STEPS.items():
            cpu = measure(Command(["make", "-C", folder, target])).cpu
            found[step] = cpu, cpu / slower(parse_seconds(text))
    return found


if __name__ == "__main__":
    sys.exit(main())
