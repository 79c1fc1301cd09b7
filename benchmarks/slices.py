"""Measures Perfetto traces as inputs: a million slices, without arguments and with two for each tenth, become the
project's model.

Run by `make bench`. "Ours" is the processor time of this project's process, "both" adds the engine's, which answers the
queries; the peer is the engine that loads the same trace and answers nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import ENVIRONMENT, MB, WORK, Targets

from traceferry.common.errors import UsageError
from traceferry.trace_processor.engine import find_engine

N_SLICES, N_THREADS, N_NAMES = 1_000_000, 8, 2_000
SEED, STEP_NS, MOST_DEEP = 7, 500, 24
# What the project promises: seconds for ours, and for both as a multiple of the engine's load.
OURS_SECONDS, BOTH_TIMES = 0.5, 1.35
# From the bytes to every thread of the model, in a process that has its modules.
READ = """
import os, sys
import traceferry, traceferry.importers.perfetto.map, traceferry.trace_processor.session
from traceferry.trace_processor.protocol import messages
messages()
begin = os.times()
trace = traceferry.load(sys.argv[1])
for process in trace.processes:
    for thread in process.threads:
        thread.load(trace)
end = os.times()
print(end.user + end.system - begin.user - begin.system)
print(end.children_user + end.children_system - begin.children_user - begin.children_system)
"""


class Times(NamedTuple):
    """Seconds of the processor."""

    ours: float
    engine: float


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures Perfetto traces as inputs.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured (default: 3)")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        sys.exit("at least one round is needed")
    if engine := os.environ.get("PERFETTO_TP_BIN"):  # as tests do it
        ENVIRONMENT["TRACEFERRY_TRACE_PROCESSOR"] = os.environ["TRACEFERRY_TRACE_PROCESSOR"] = engine
    try:
        program = find_engine().path
    except UsageError as error:
        sys.exit(f"not measured: {error}")
    WORK.mkdir(parents=True, exist_ok=True)
    targets = Targets()
    for name, every in (("no arguments", 0), ("two arguments for each tenth", 10)):
        trace = WORK / f"slices-{every}.pftrace"
        if not trace.exists():
            trace.write_bytes(trace_of_slices(every))
        read, loaded = [], []
        for _ in range(arguments.rounds):
            read.append(times_of(trace))
            loaded.append(load_of(program, trace))
        ours, load = statistics.median(one.ours for one in read), statistics.median(loaded)
        both = statistics.median(one.ours + one.engine for one in read)
        print(f"\n{N_SLICES:,} slices, {name}, {trace.stat().st_size / MB:.0f} MB")
        print(f"ours {ours:.2f} s, both {both:.2f} s, the engine's load {load:.2f} s: {both / load:.2f} times")
        if not every:
            targets.check(f"ours: at most {OURS_SECONDS} s", f"{ours:.2f} s", ours <= OURS_SECONDS)
            text = f"{both / load:.2f} times"
            targets.check(f"both: at most {BOTH_TIMES} times the engine's load", text, both <= BOTH_TIMES * load)
    print("\ntargets")
    return targets.status()


def times_of(trace: Path) -> Times:
    command = [sys.executable, "-c", READ, str(trace)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=ENVIRONMENT, text=True)
    return Times(*map(float, answer.stdout.split()))


def load_of(engine: str, trace: Path) -> float:
    before = os.times()
    subprocess.run(
        [engine, "query", str(trace), "SELECT 1"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


# ---------------------------------------------------------------- the trace: perfetto/trace/trace_packet.proto


def trace_of_slices(every: int) -> bytes:
    """Returns a trace with slices of threads, nested by chance; each `every`th has two arguments."""
    chance, packets = np.random.default_rng(SEED), [described(thread) for thread in range(N_THREADS)]
    names = [b"function_%d" % (number * 7919 % 100_003) for number in range(N_NAMES)]
    depth, ts, left, n = [0] * N_THREADS, 1_000_000_000, N_SLICES, 0
    while left or any(depth):
        for thread, (turn, name) in enumerate(zip(chance.random(N_THREADS), chance.zipf(1.3, N_THREADS), strict=True)):
            ts += STEP_NS
            if left and (depth[thread] == 0 or (turn < 0.5 and depth[thread] < MOST_DEEP)):
                said = annotations(n) if every and n % every == 0 else b""
                packets.append(event(ts, thread, 1, text(23, names[int(name) % N_NAMES]) + said))
                depth[thread], left, n = depth[thread] + 1, left - 1, n + 1
            elif depth[thread]:
                packets.append(event(ts, thread, 2, b""))
                depth[thread] -= 1
    return b"".join(packets)


def described(thread: int) -> bytes:
    of_thread = number(1, 100) + number(2, 101 + thread) + text(5, b"worker %d" % thread)
    return text(1, number(10, 1) + text(60, number(1, 10 + thread) + text(4, of_thread)))


def event(ts: int, thread: int, kind: int, rest: bytes) -> bytes:
    return text(1, number(8, ts) + number(10, 1) + text(11, number(9, kind) + number(11, 10 + thread) + rest))


def annotations(n: int) -> bytes:
    rows, address = text(10, b"rows") + number(4, n % 1000), text(10, b"name") + text(6, b"table %d" % (n % 97))
    return text(4, rows) + text(4, address)


def number(field: int, value: int) -> bytes:
    return leb(field << 3) + leb(value)


def text(field: int, value: bytes) -> bytes:
    return leb(field << 3 | 2) + leb(len(value)) + value


def leb(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


if __name__ == "__main__":
    sys.exit(main())
