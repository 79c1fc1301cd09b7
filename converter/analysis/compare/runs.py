"""The runs of both sides: each recording loaded once, and kept as totals."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from traceferry.analysis.totals.collect import Collected, collect
from traceferry.analysis.totals.details import Details, name_pattern
from traceferry.analysis.totals.idle import Busy
from traceferry.analysis.totals.portable import Totals, Tree, functions_of, portable, thread_names, tree_of
from traceferry.analysis.totals.ratios import counted_events
from traceferry.analysis.totals.rows import Key
from traceferry.analysis.totals.trees import ALLOCATED, SAMPLES, TIME, Series, Trees, measure_of, unit_of
from traceferry.common.errors import UsageError
from traceferry.common.shown_text import encodable
from traceferry.model import Event, Trace, sums

# Kinds of loss that take samples away.
LOST = ("lost_samples", "throttled", "truncated", "unfinalized")
# The category of the kernel's frames.
KERNEL = "Kernel"


class Recorded(NamedTuple):
    """An event of a run: how many samples it has, what they weigh together, and what one of them weighs, as far as they
    are drawn at random: so many times less than all together, as many samples of equal weight would vary as much."""

    event: Event
    samples: int
    weight: int
    per_sample: float


@dataclass(frozen=True)
class Run:
    """One recording. trees: of each thread name, empty where no output shows them, measures being (process, thread,
    what, unit); sample_ns: how much time a sample stands for, 0 is unknown; lost: how
    often samples were lost; in_kernel: the functions of the kernel; events: those that were recorded, where there are
    several; formats: of its inputs, none where they are not known; idle: the share of the samples in which nothing was
    done, and which are left out."""

    path: str
    totals: Totals
    trees: Tree
    duration_ns: int
    sampling: Event | None
    sample_ns: float
    lost: int
    in_kernel: frozenset[Key] = frozenset()
    events: tuple[Recorded, ...] = ()
    formats: frozenset[str] = frozenset()
    idle: float = 0.0

    @classmethod
    def of(cls, path: str, trace: Trace, with_trees: bool, progress: Callable[[int], None] = lambda _: None) -> Run:
        """Loads each thread once."""
        busy = Busy(trace)
        trace = busy.trace.opened()
        details, trees = Details(trace), Trees(trace, n_buckets=1) if with_trees else None
        collected = collect(trace, trees, progress, details)
        sampling = trace.sampling
        sample_ns = 0.0
        if sampling is not None:
            sample_ns = (
                details.sample_weight / max(collected.n_samples, 1) if sampling.unit == "ns" else sampling.interval_ns
            )
        threads = thread_names(trace)
        tree = Tree() if trees is None else tree_of(trace, trees, lambda series: _measure(trace, threads, series))
        collected.trees = None
        return cls(
            encodable(path),
            portable(collected),
            tree,
            sums.limited(trace.end_ts - trace.start_ts),
            sampling,
            float(sample_ns),
            sum(issue.count for issue in trace.report if issue.kind in LOST),
            functions_of(trace, KERNEL),
            _recorded(collected, details),
            frozenset(each.format for each in trace.inputs),
            busy.n_idle / busy.n_all if busy.n_all else 0.0,
        )

    @property
    def name(self) -> str:
        return os.path.basename(self.path)


def _recorded(collected: Collected, details: Details) -> tuple[Recorded, ...]:
    """Returns the events, where there are several, and what branches have."""
    found = []
    for row, squares in details.squares.items():
        samples, weight = collected.of_events[row]
        found.append(Recorded(collected.trace.events[row], samples, weight, squares / weight if weight else 0.0))
    # Branches that come with one sample are of one place: as many as there are samples are drawn at random.
    n = max(collected.n_samples, 1)
    found += [Recorded(event, amount, amount, amount / n) for event, amount in details.of_branches.items()]
    # Each event was counted.
    found += [Recorded(event, amount, amount, 0.0) for event, amount in counted_events(collected.trace)]
    return tuple(found)


def _measure(trace: Trace, threads: list[list[str]], series: Series) -> tuple[str, str, str, str] | None:
    """Returns what tells a thread's amounts apart: the thread's name without numbers, and what is counted. What the
    samples of the first event weigh is left out: they are counted."""
    of_events = (measure_of(event) for event in trace.events[1:])
    if series.thread < 0 or series.measure not in (TIME, SAMPLES, ALLOCATED, *of_events):
        return None
    process, thread = name_pattern(trace.processes[series.process].name), threads[series.process][series.thread]
    return process, thread, series.measure.name, unit_of(trace, series.measure)


def paths_of(given: Sequence[str]) -> list[str]:
    """Files, URLs, and files that patterns match, sorted. Raises UsageError for a pattern that matches none."""
    found: list[str] = []
    for text in given:
        if os.path.exists(text) or text == "-" or "://" in text:
            found.append(text)
        elif glob.has_magic(text):
            matches = sorted(glob.glob(text, recursive=True))
            if not matches:
                raise UsageError(f"{text}: no file has such a name")
            found += matches
        else:
            raise UsageError(f"{text}: no such file")
    real = {path if "://" in path else os.path.realpath(path): path for path in reversed(found)}
    return list(real.values())[::-1]
