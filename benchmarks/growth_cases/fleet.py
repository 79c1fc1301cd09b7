"""Many recordings: what a worker adds up of one, the tables, one profile of a data set, and the comparison of two. All
in one process, as a worker and the command do it; Dask itself is measured by `fleet.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from builders.xray import Fdr

import traceferry.apps.cli
from growth_cases.case import Case, Run
from growth_cases.perf import perf_thread_names
from growth_cases.xray import xray_depth, xray_functions
from traceferry.apps.fleet.inputs import Recording


def many(n: int) -> Iterator[tuple[str, bytes]]:
    """Small recordings."""
    for k in range(n):
        log = Fdr()
        log.buffer(7, 7, (1_363, 0), [log.new_cpu(0, 1000), log.enter(1 + k % 99, 0), log.exit(1 + k % 99, 50)])
        yield f"several-{k}.xray", log.bytes()


def recordings(source: Path) -> list[Recording]:
    """Each with a label of its own: those beside the input, or it."""
    paths = sorted(source.parent.glob("several-*")) or [source]
    return [Recording((str(path),), (path.stem,), path.stat().st_size, path.name, path.name) for path in paths]


def add_up(source: Path) -> None:
    from traceferry.apps.fleet.tables import COLUMNS
    from traceferry.apps.fleet.work import Aggregation, Reading, result_of

    for recording in recordings(source):
        row = result_of(Aggregation(Reading(), tuple(COLUMNS)), recording, ("label",)).row
        if row["status"] != "done":
            raise RuntimeError(row["reason"])


@contextmanager
def data_set(source: Path) -> Iterator[Path]:
    """The tables, a row of labels for each recording. A task reads as many recordings as at most in a run."""
    from traceferry.apps.fleet.run import MOST_IN_LEAF
    from traceferry.apps.fleet.tables import COLUMNS
    from traceferry.apps.fleet.tasks import Place, finish, leaf
    from traceferry.apps.fleet.work import Aggregation, Reading

    given = recordings(source)
    with TemporaryDirectory(dir=source.parent.parent) as folder:
        place, work = Place(folder, ("label",), ("label",)), Aggregation(Reading(), tuple(COLUMNS))
        tasks = [given[begin : begin + MOST_IN_LEAF] for begin in range(0, len(given), MOST_IN_LEAF)]
        done = [leaf(work, place, f"part-{nth}", task) for nth, task in enumerate(tasks)]
        if n_failed := sum(each.n_failed for each in done):
            raise RuntimeError(f"{n_failed} recordings failed")
        finish(work, place, 0, "file", [each.part for each in done])
        yield Path(folder)


def write_tables(source: Path) -> None:
    with data_set(source):
        pass


def merge(source: Path) -> None:
    from traceferry.apps.fleet.merge import merged_trace

    with data_set(source) as folder:
        traceferry.save(merged_trace(str(folder), "recordings"), folder / "all.pftrace")


def compare(source: Path) -> int:
    with data_set(source) as folder:
        return traceferry.apps.cli.main(["compare", str(folder), str(folder), "-o", str(folder / "d.html"), "--quiet"])


RUNS: Mapping[str, list[str] | Run] = {"totals": add_up, "tables": write_tables, "merged": merge, "compared": compare}
CASES = [
    Case("fleet: thread names", "data", 100, perf_thread_names, RUNS),
    Case("fleet: depth", "xray", 1_000, xray_depth, RUNS),
    Case("fleet: functions", "xray", 2_000, xray_functions, RUNS),
    Case("fleet: recordings", "xray", 25, lambda n: b"", RUNS, several=many),
]
