"""Measures the two costs of every output: numbers as JSON text and Perfetto's packets, beside copying the same bytes.

Run by `make bench`. One process, the calls of a real recording in memory, nothing is written to disk: nanoseconds of
CPU time for each value and for each event, the median of several, and the same for `memcpy` of what was written.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

from common import CAPTURES, WORK, decompressed

from traceferry import load
from traceferry.exporters.json._numbers import NumberText
from traceferry.exporters.perfetto.calls import Calls
from traceferry.exporters.perfetto.packets import PIECE, Packets
from traceferry.files.output import Output
from traceferry.model import Array, Thread, ThreadData

RECORDING = CAPTURES / "xray" / "logs" / "l100-fdr-c19-pie-bigmix.xray.zst"
ROWS = 1 << 16  # as many as exporters encode at once


class Sink:
    """Keeps nothing."""

    def write(self, data: bytes | bytearray | memoryview) -> int:
        return len(data)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures what writing numbers and packets costs, beside memcpy.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is written (default: 3)")
    rounds = parser.parse_args().rounds
    if not RECORDING.exists():
        sys.exit("no recording: set TRACEFERRY_SHARED to the folder that holds captures")
    WORK.mkdir(parents=True, exist_ok=True)
    trace = load(decompressed(RECORDING, WORK / RECORDING.stem))
    thread: Thread = max((t for p in trace.processes for t in p.threads), key=lambda t: t.n_records)
    data: ThreadData = thread.load(trace)
    calls = next(iter(data.calls.pieces()))
    ts, frame = calls["ts"], calls["frame"]
    print(f"\n{len(ts):,} events of {RECORDING.stem}; median of {rounds}")
    print(f"{'':26}{'ns each':>9}{'bytes':>8}{'memcpy ns':>11}")

    text = NumberText()

    def numbers(write: Callable[..., memoryview], column: Array) -> Callable[[], int]:
        return lambda: sum(len(write(column[at : at + ROWS])) for at in range(0, len(ts), ROWS))

    def packets() -> int:
        out = Output(Sink(), gzip=False)
        Calls(trace, Packets(out, 3, int(ts[0]))).write(ThreadData(calls=calls), 1, 0)
        return out.n_bytes

    for name, write in {
        "JSON: times as ms": numbers(text.millis, ts),
        "JSON: frames": numbers(text.ints, frame),
        "Perfetto: begins and ends": packets,
    }.items():
        n_bytes = write()
        taken, copied = median_of(rounds, write), median_of(rounds, lambda n=n_bytes: copy(n))  # type: ignore[misc]
        print(f"{name:26}{taken / len(ts):9.2f}{n_bytes / len(ts):8.1f}{copied / len(ts):11.2f}")


def copy(n_bytes: int) -> None:
    """So many bytes, a piece at a time, as an exporter hands them over."""
    source, target = bytes(PIECE), bytearray(PIECE)
    for _ in range(0, n_bytes, PIECE):
        target[:] = source


def median_of(rounds: int, run: Callable[[], object]) -> float:
    """ns of CPU time."""
    times = []
    for _ in range(rounds):
        begin = time.process_time_ns()
        run()
        times.append(time.process_time_ns() - begin)
    return statistics.median(times)


if __name__ == "__main__":
    main()
