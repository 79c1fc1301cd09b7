"""Measures `traceferry query`: a million rows of five columns as CSV and as Parquet, and the whole command on a small
trace.

Run by `make bench`. Of the first two, processor time of this project alone, without the engine and without what pyarrow
needs to start; of the last, wall time. Medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import TRACEFERRY, Targets

RECORDING = Path(__file__).parents[1] / "fixtures" / "jit" / "php82" / "perf.data.zst"
ROWS = (
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999999) SELECT i AS id, "
    "i * 1000003 AS ts, i * 0.37 AS v, 'name ' || (i % 1000) AS name, CASE WHEN i % 3 THEN i END AS m FROM n"
)
# What the project promises, in seconds.
CSV_SECONDS, PARQUET_SECONDS, WALL_SECONDS = 0.6, 0.3, 0.6


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures traceferry query.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured (default: 3)")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        sys.exit("at least one round is needed")
    # As tests do it.
    if engine := os.environ.get("PERFETTO_TP_BIN"):
        os.environ["TRACEFERRY_TRACE_PROCESSOR"] = engine
    import pyarrow.parquet  # noqa: F401 - its start is not ours

    import traceferry
    from traceferry.common.errors import UsageError
    from traceferry.trace_processor.engine import find_engine

    try:
        find_engine()
    except UsageError as error:
        sys.exit(f"not measured: {error}")
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "x.pftrace"
        traceferry.convert(RECORDING, trace)
        times = {suffix: written(trace, suffix, arguments.rounds) for suffix in ("csv", "parquet")}
        wall = statistics.median(answered(trace) for _ in range(arguments.rounds))
        size = trace.stat().st_size
    print(f"\na million rows: CSV {times['csv']:.2f} s, Parquet {times['parquet']:.2f} s of the processor")
    print(f"query of a trace of {size / 1e6:.2f} MB: {wall:.2f} s; medians of {arguments.rounds}")
    print("\ntargets")
    targets = Targets()
    targets.check(f"CSV: at most {CSV_SECONDS} s", f"{times['csv']:.2f} s", times["csv"] <= CSV_SECONDS)
    parquet = times["parquet"]
    targets.check(f"Parquet: at most {PARQUET_SECONDS} s", f"{parquet:.2f} s", parquet <= PARQUET_SECONDS)
    targets.check(f"a small trace: at most {WALL_SECONDS} s", f"{wall:.2f} s", wall <= WALL_SECONDS)
    return targets.status()


def written(trace: Path, suffix: str, rounds: int) -> float:
    """Returns the processor time from the statement to the file, of this process alone."""
    from traceferry.apps.cli.query_rows import writer_for
    from traceferry.trace_processor.engine import find_engine
    from traceferry.trace_processor.session import Session

    write = writer_for(str(trace.with_suffix(f".{suffix}")), as_json=False, as_csv=False)
    times = []
    with Session(find_engine(), trace) as session:
        session.query("SELECT 1")
        for _ in range(rounds):
            begin = time.process_time()
            write([session.rows(ROWS)])
            times.append(time.process_time() - begin)
    return statistics.median(times)


def answered(trace: Path) -> float:
    begin = time.monotonic()
    command = [*TRACEFERRY, "query", str(trace), "SELECT count(*) FROM stack_sample", "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


if __name__ == "__main__":
    sys.exit(main())
