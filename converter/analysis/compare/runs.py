"""The runs of both sides: each recording loaded once, and kept as totals."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from traceferry.analysis.totals.collect import Collected, collect
from traceferry.analysis.totals.details import Details, name_pattern
from traceferry.analysis.totals.idle import Busy
from traceferry.analysis.totals.nameless import NAMELESS
from traceferry.analysis.totals.portable import Totals, Tree, functions_of, portable, thread_names, tree_of
from traceferry.analysis.totals.ratios import counted_events
from traceferry.analysis.totals.rows import Key
from traceferry.analysis.totals.series import ALLOCATED, SAMPLES, TIME, Series, measure_of, unit_of
from traceferry.analysis.totals.trees import Trees
from traceferry.common.errors import UsageError
from traceferry.common.patterns import compiled_later
from traceferry.common.shown_text import encodable
from traceferry.model import Event, Trace, sums

# Kinds of loss that take samples away.
LOST_SAMPLES = "lost_samples"
LOST = (LOST_SAMPLES, "throttled", "truncated", "unfinalized")
CALLERS_MISSING = "callers_missing"
# Kinds that say that a profile has no times of its own.
MADE = ("times_made", "calls_summed", "merged_times")
# The category of the kernel's frames.
KERNEL = "Kernel"
# Kinds of events that count work, unless it is cycles: a sample stands for a number of them, for no time.
OF_WORK = ("hardware", "software", "cache", "raw", "tracepoint", "breakpoint", "pmu", "memory")
# As cycles:u, cpu_core/cycles/, ref-cycles, and not stalled-cycles-frontend.
CYCLES = compiled_later(r"(^|[/-])cycles([:/]|$)")


def is_time(name: str, unit: str) -> bool:
    """Whether a slower machine has more of an event: time, and cycles where it waits for memory; it does no more
    work."""
    return unit in ("ns", "cycles") or CYCLES.search(name) is not None


def counts_work(event: Event) -> bool:
    return event.kind in OF_WORK and not is_time(event.name, event.unit)


def time_of_sample(event: Event, weight: int, n_samples: int) -> float:
    """Returns for how much time each of so many samples of this weight stands, in ns; 0 where that is not known."""
    if event.unit == "ns":
        return weight / max(n_samples, 1)
    return 0.0 if counts_work(event) else float(event.interval_ns)


class Recorded(NamedTuple):
    """An event of a run: how many samples it has, what they weigh together, and what one of them weighs, as far as they
    are drawn at random: so many times less than all together, as many samples of equal weight would vary as much.
    is_sum: nobody knows of how many samples the amounts are sums, as of objects that pprof's profile of a heap has."""

    event: Event
    samples: int
    weight: int
    per_sample: float
    is_sum: bool = False


@dataclass(frozen=True)
class Run:
    """One recording. trees: of each thread name, empty where no output shows them, measures being (process, thread,
    what, unit); sample_ns: how much time a sample stands for, 0 is unknown; lost: how
    often samples were lost; in_kernel: the functions of the kernel; events: those that were recorded, where there are
    several; formats: of its inputs, none where they are not known; idle: the share of the samples in which nothing was
    done, and which are left out; sample_weight: what samples weigh together, 0 where they are no counts of work;
    is_timed: whether the duration is the recording's, and not made for a profile without times; callerless: in how many
    samples the innermost function hides its caller, as it has no frame pointer."""

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
    sample_weight: int = 0
    is_timed: bool = True
    callerless: int = 0

    @classmethod
    def of(cls, path: str, trace: Trace, with_trees: bool, progress: Callable[[int], None] = lambda _: None) -> Run:
        """Loads each thread once."""
        busy = Busy(trace)
        trace = busy.trace.opened()
        details, trees = Details(trace), Trees(trace, n_buckets=1) if with_trees else None
        collected = collect(trace, trees, progress, details)
        sampling = trace.sampling
        weight = details.sample_weight
        sample_ns = 0.0 if sampling is None else time_of_sample(sampling, weight, collected.n_samples)
        is_timed = all(issue.kind not in MADE for issue in trace.report)
        threads = thread_names(trace)
        tree = Tree() if trees is None else tree_of(trace, trees, lambda series: _measure(trace, threads, series))
        return cls(
            encodable(path),
            portable(collected, with_tree=False),
            tree,
            sums.limited(trace.end_ts - trace.start_ts),
            sampling,
            sample_ns,
            sum(issue.count for issue in trace.report if issue.kind in LOST),
            functions_of(trace, KERNEL),
            _recorded(collected, details, is_timed),
            frozenset(each.format for each in trace.inputs),
            busy.n_idle / busy.n_all if busy.n_all else 0.0,
            weight if sampling is not None and counts_work(sampling) else 0,
            is_timed,
            sum(issue.count for issue in trace.report if issue.kind == CALLERS_MISSING),
        )

    @property
    def parts(self) -> int:
        """Returns how many of the samples that are counted are one of those of the recording."""
        return self.sampling.parts if self.sampling is not None else 1

    @property
    def n_samples(self) -> float:
        return float(self.totals.functions.amounts.reshape(-1, 5)[:, 3].sum()) / self.parts

    @property
    def losses(self) -> dict[str, int]:
        """Returns how often the recording lost something, by kind."""
        losses = self.totals.losses
        return {kind: int(count) for (kind,), (count,) in zip(losses.keys, losses.amounts.tolist(), strict=True)}

    @cached_property
    def nameless(self) -> float:
        """The share of the samples, or of the time of calls, of functions that nothing names."""
        functions = self.totals.functions
        amounts = functions.amounts.reshape(-1, 5)
        of_each = amounts[:, 3] if amounts[:, 3].any() else amounts[:, 2]
        without = np.array([NAMELESS.fullmatch(key[0]) is not None for key in functions.keys], bool)
        return float(of_each[without].sum() / max(of_each.sum(), 1))

    @property
    def name(self) -> str:
        return os.path.basename(self.path)


def is_sum(event: Event, leader: Event | None, is_timed: bool) -> bool:
    """Whether the amounts of an event are sums of unknown numbers of samples: those of a profile without times, unless
    its rows say how many samples they are, or are one each, as those of counters are. leader: of its group."""
    counted = leader or event
    is_counted = counted.unit == counted.sample_unit == "samples"
    return not is_timed and not is_counted and event.kind not in OF_WORK


def _recorded(collected: Collected, details: Details, is_timed: bool) -> tuple[Recorded, ...]:
    """Returns the events, where there are several, and what branches have."""
    found, events = [], collected.trace.events
    for row, squares in details.squares.items():
        samples, weight = collected.of_events[row]
        event = events[row]
        leader = events[event.leader] if event.leader >= 0 else None
        per_sample = squares / weight if weight else 0.0
        found.append(Recorded(event, samples, weight, per_sample, is_sum(event, leader, is_timed)))
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
