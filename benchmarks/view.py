"""Compares the time until `traceferry view` answers with the time that `traceferry convert` takes, on a small log.

Run by `make bench`. Both run in turn; what is compared are medians of wall time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from urllib.parse import unquote, urlsplit

from common import TRACEFERRY, Targets

FIXTURES = Path(__file__).parents[1] / "fixtures" / "xray" / "clang-19"
INPUTS = [str(FIXTURES / "fdr-c19-pie-pool-tsc.xray"), "--symbols", str(FIXTURES / "pool-pie.zst")]
# What the project promises: seconds more than a conversion, until the trace begins to arrive.
SECONDS_MORE = 0.6


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares the start of traceferry view with traceferry convert.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each command runs (default: 3)")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        sys.exit("at least one round is needed")
    with tempfile.TemporaryDirectory() as folder:
        pairs = [(converted(Path(folder)), shown(Path(folder))) for _ in range(arguments.rounds)]
    convert, view = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"\nconvert {convert:.2f} s, view until its first answer {view:.2f} s; median of {arguments.rounds}")
    print("\ntargets")
    more = view - convert
    targets = Targets()
    targets.check(f"view: at most {SECONDS_MORE} s more than convert", f"{more:.2f} s", more <= SECONDS_MORE)
    return targets.status()


def converted(folder: Path) -> float:
    begin = time.monotonic()
    output = str(folder / "out.json.gz")
    subprocess.run([*TRACEFERRY, "convert", *INPUTS, "-o", output, "--quiet"], check=True)
    return time.monotonic() - begin


def shown(folder: Path) -> float:
    environment = os.environ | {"XDG_CACHE_HOME": str(folder)}
    begin = time.monotonic()
    command = [*TRACEFERRY, "view", *INPUTS, "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        trace = unquote(urlsplit(address).path.split("/")[2])
        with urllib.request.urlopen(trace) as answer:
            answer.read(1)
        taken = time.monotonic() - begin
        process.terminate()
    return taken


if __name__ == "__main__":
    sys.exit(main())
