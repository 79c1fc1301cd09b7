"""The data of the page: the sections of `info`, call trees over time, sources with the weight of each line.

Columns are lists of numbers; web/recording.js reads them. Small call paths are joined and the detail of
time is reduced until the data fits; sums stay exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from traceferry.analysis.info.summary import summary_of
from traceferry.analysis.totals._trees import inclusive_by_row
from traceferry.analysis.totals.collect import Collected, collect
from traceferry.analysis.totals.ratios import ratios_of
from traceferry.analysis.totals.series import (
    ALLOCATED,
    CALLS,
    FREED,
    SAMPLES,
    TIME,
    Measure,
    Series,
    coarser,
    measure_of,
    renumbered,
    unit_of,
)
from traceferry.analysis.totals.trees import Trees
from traceferry.analysis.totals.waits import Wait
from traceferry.exporters.firefox.tables import lib_of_func
from traceferry.exporters.html.call_paths import Json, Kept, columns, nodes_of
from traceferry.exporters.html.estimate import Estimate
from traceferry.exporters.html.machine_code import MachineCode
from traceferry.exporters.tracepoints import MOST_TRACEPOINTS, joined_tracepoints
from traceferry.exporters.tracepoints import TRACEPOINTS as TRACEPOINTS_EVENT
from traceferry.heap.views import views_of
from traceferry.model import Array, Trace, TraceBuilder, distinct, sums
from traceferry.model.categories import KERNEL
from traceferry.symbolication.short_names import ShortForms, short_names
from traceferry.timeline.off_cpu import why

LONGEST_NAME = 1000
LONGEST_LIST = 500
LONGEST_PATH = 24
# Of events, in the order in which their weights are offered.
KINDS = (
    "clock", "hardware", "cache", "raw", "pmu", "memory", "software", "breakpoint", "other", "off-cpu", "tracepoint",
)  # fmt: skip
SMALLER = "(smaller call paths)"
# The samples of all tracepoints.
TRACEPOINTS = measure_of(TRACEPOINTS_EVENT)
LIVE = Measure("bytes not freed", "bytes", is_timed=False)


@dataclass(frozen=True)
class Detail:
    """The amount of detail that the page shows of a recording. nodes: call paths; buckets: parts of the time; rows: of
    each ranked table; counters: of each process; source_bytes: of the texts of sources."""

    nodes: int
    buckets: int
    rows: int
    counters: int
    source_bytes: int


def _detail(nodes: int, buckets: int) -> Detail:
    part = nodes / MOST_NODES
    return Detail(nodes, buckets, max(int(200 * part**0.5), 20), int(10_000 * part), int(2_000_000 * part))


MOST_NODES = 40_000
# Parts of the time of samples, and of calls, which have amounts in every part that they last.
MOST_PARTS, MOST_PARTS_OF_CALLS = 8192, 1024
# Of the heatmap, in which a column is a second or another power of ten of it.
FEWEST_COLUMNS = 20
# Fewer bytes than any amount with its place needs, compressed.
LEAST_BYTES_OF_AMOUNT = 0.4
# From much to little.
DETAILS = tuple(
    _detail(nodes, buckets)
    for nodes, buckets in (
        (MOST_NODES, MOST_PARTS), (MOST_NODES, 4096), (MOST_NODES, 2048), (MOST_NODES, 1024), (MOST_NODES, 512),
        (MOST_NODES, 256), (25_000, 256), (25_000, 128), (15_000, 128), (10_000, 128), (7_000, 64),
        (5_000, 64), (3_000, 64), (2_000, 32), (1_000, 32), (500, 32), (200, 32), (50, 32),
    )
)  # fmt: skip


class TimeParts(NamedTuple):
    """n: how many parts of time there are; width_ns: their length; column_ns: a round time, 2^m times as long."""

    n: int
    width_ns: int
    column_ns: int


def time_parts(trace: Trace) -> TimeParts:
    """Returns the finest parts of the recording's time that a page can show, of which columns of a heatmap are made."""
    duration = max(sums.limited(trace.end_ts - trace.start_ts), 1)
    most = MOST_PARTS if trace.events else MOST_PARTS_OF_CALLS
    column = 10 ** max(len(str(duration // FEWEST_COLUMNS)) - 1, 0)
    width = column
    while width % 2 == 0 and 2 * (duration // width + 1) <= most:
        width //= 2
    return TimeParts(duration // width + 1, width, column)


class Names(NamedTuple):
    """Names threads and processes by their numbers."""

    threads: dict[int, str]
    processes: dict[int, str]


class PageData:
    """The sums of a trace that a page shows. is_served: by a server that has the texts of more sources, and the
    instructions."""

    def __init__(
        self, trace: Trace, collected: Collected, trees: Trees, column_ns: int, is_served: bool = False
    ) -> None:
        self._trace = trace
        self._column_ns = column_ns
        self._collected = collected
        self._trees = trees
        self._info = _shortened(summary_of(collected, LONGEST_LIST))
        self._lines = _Lines(trace, collected, trees, is_served)
        self._n_tracepoints = _join_tracepoints(trace, trees)
        names = Names({t.tid: t.name for _, t in trace.threads}, {p.pid: p.name for p in trace.processes})
        self._waits = [_wait(trace, wait, names) for wait in collected.waits.longest]
        self._short_forms = ShortForms()

    @classmethod
    def of(cls, trace: TraceBuilder, progress: Callable[[int], None], is_served: bool = False) -> PageData:
        n_parts, width_ns, column_ns = time_parts(trace)
        trees = Trees(trace, n_parts, width_ns=width_ns)
        collected = collect(trace, trees, progress)
        page = cls(trace, collected, trees, column_ns, is_served)
        for nth, process in enumerate(trace.processes):
            for view in views_of(trace, process) if process.heap_snapshots else ():
                trees.add_view(nth, view, view.load(trace))
        _add_live(trees)
        return page

    def limit(self, n_bytes: int) -> None:
        """Makes the parts of time longer until what they have can be in so many bytes, compressed, at all."""
        self._trees.coarsen_to(int(n_bytes / LEAST_BYTES_OF_AMOUNT))

    def estimated(self, detail: Detail) -> float:
        """Returns about how many bytes what the page embeds with that much detail has, compressed."""
        return self._estimate.bytes_of(detail.nodes, detail.buckets)

    @cached_property
    def _estimate(self) -> Estimate:
        return Estimate(self._trees, self._ranked, self._names, MOST_NODES)

    def shaped(self, detail: Detail) -> Json:
        """Returns what the page embeds, with that much detail."""
        trees = self._trees
        n_buckets, width_ns, halvings = trees.coarser(detail.buckets)
        kept, measures, facts = Kept(trees, self._ranked, detail.nodes), self._measures(), self._facts()
        self.note_narrowed(detail)
        info = self._info | {
            "processes": self._processes,
            "issues": _shortened([issue.as_json() for issue in self._trace.report]),
        }
        return {
            "info": _cut(info, dict.fromkeys(RANKED, detail.rows) | {"counters": detail.counters}),
            "time": {"buckets": n_buckets, "width_ns": width_ns, "column_ns": max(self._column_ns, width_ns)},
            **self._names(kept),
            "nodes": nodes_of(kept),
            "measures": [_measure(self._trace, m, facts) for m in measures],
            "ratios": self._ratios(measures),
            "tracepoints": self._n_tracepoints,
            "waits": {"n": self._collected.waits.n, "longest": self._waits[: detail.rows]},
            "series": [
                {"measure": measures[s.measure], "process": s.process, "thread": s.thread, **columns(s)}
                for s in renumbered(coarser([s for s in trees.series if s.measure in measures], halvings), kept.node)
            ],
            "joined": kept.n_joined,
            "sources": self._lines.sources(detail.source_bytes, measures),
        }

    def code(self, detail: Detail) -> Json:
        """Returns where the machine code of the functions is that a page with that much detail shows."""
        kept = Kept(self._trees, self._ranked, detail.nodes)
        funcs = distinct(self._trees.keys.rows[kept.keys][:, 0])
        return MachineCode(self._trace, self._trees).shown(funcs, self._measures())

    @cached_property
    def _processes(self) -> list[Json]:
        """The processes of `info`, with what the page shows of heap shots: growth is between any two."""
        shown = ("at_ns", "bytes", "objects", "classes")
        return [
            process | {"heap_snapshots": [{key: shot[key] for key in shown} for shot in process["heap_snapshots"]]}
            for process in self._info["processes"]
        ]

    def note_narrowed(self, detail: Detail) -> None:
        """Reports what a page with that much detail does not show, and of no other."""
        n_counters = sum(max(len(process["counters"]) - detail.counters, 0) for process in self._info["processes"])
        report = self._trace.report
        report.note("page_narrowed", max(len(self._ranked) - detail.nodes, 0), where="page")
        report.note("page_counters_cut", n_counters, where="page")
        report.note("tracepoints_joined", self._n_tracepoints, where="events")

    @cached_property
    def _ranked(self) -> Array:
        """The call paths that have anything, those with the largest part of any measure first."""
        trees = self._trees
        share = np.zeros(trees.nodes.n)
        for measure, own in trees.own_by_measure():
            if measure != FREED:
                share = np.maximum(share, trees.total(own) / max(sums.total(own), 1))
        rank = np.lexsort((np.arange(len(share)), -share))
        return rank[share[rank] > 0]

    @cached_property
    def _lib_of_func(self) -> Array:
        return lib_of_func(self._trace.frames, len(self._trace.funcs))

    def _measures(self) -> dict[Measure, int]:
        """Numbers the measures that have anything: calls and samples, then events, the clock first."""
        found = dict.fromkeys(s.measure for s in self._trees.series if len(s.node) and s.measure != FREED)
        facts = self._facts()
        is_main = 0 in joined_tracepoints(self._trace.events)

        def rank(measure: Measure) -> tuple[int, int, int]:
            if measure == TRACEPOINTS and is_main:
                return -1, 0, 0
            if measure not in facts:
                return (0 if measure in (TIME, CALLS, SAMPLES) else 2), 0, 0
            kind, n_samples = facts[measure]["kind"], facts[measure]["samples"]
            return 1, KINDS.index(kind), -n_samples if kind == "tracepoint" and measure != TRACEPOINTS else 0

        return {measure: nth for nth, measure in enumerate(sorted(found, key=rank))}

    def _facts(self) -> dict[Measure, Json]:
        """Returns what is known of the measures of events: kind, number of samples, whether each event is one."""
        found: dict[Measure, Json] = {}
        n_tracepoints = 0
        for event, amounts in zip(self._trace.events, self._collected.of_events, strict=True):
            is_exact = event.kind == "off-cpu" or event.period == 1
            found[measure_of(event)] = {"kind": event.kind, "samples": amounts.samples, "exact": is_exact}
            n_tracepoints += amounts.samples if event.kind == "tracepoint" else 0
        return found | {TRACEPOINTS: {"kind": "tracepoint", "samples": n_tracepoints, "exact": False}}

    def _ratios(self, measures: dict[Measure, int]) -> list[Json]:
        """Returns what is divided by what, by the numbers of measures."""
        found = []
        for ratio in ratios_of(self._trace.events):
            above, below = (measure_of(self._trace.events[row]) for row in (ratio.numerator, ratio.denominator))
            if above in measures and below in measures:
                numbers = {"numerator": measures[above], "denominator": measures[below]}
                found.append({"name": ratio.name, "factor": ratio.factor, **numbers})
        return found

    def _names(self, kept: Kept) -> Json:
        """Returns the frames and functions in use and what they refer to; the last frame is that of joined paths."""
        trace, rows = self._trace, self._trees.keys.rows[kept.keys]
        used, func = np.unique(rows[:, 0], return_inverse=True)
        funcs = trace.funcs
        sources, libs = funcs["source"][used], self._lib_of_func[used]
        files, file = np.unique(sources[sources >= 0], return_inverse=True)
        file_of = np.full(len(used), -1, np.int64)
        file_of[sources >= 0] = file
        strings = trace.strings
        names = trace.func_names(used)
        shorts = zip(names, short_names(names, self._short_forms), strict=True)
        return {
            "funcs": {
                "name": [*map(_short, names), SMALLER],
                # "" is the name itself.
                "short": [*(_short(short) if short != name else "" for name, short in shorts), ""],
                "file": [*file_of.tolist(), -1],
                "line": [*funcs["line"][used].tolist(), 0],
                "lib": [*libs.tolist(), -1],
            },
            "files": [_short(strings[n]) for n in trace.sources["path"][files].tolist()],
            "libs": [_short(strings[n]) for n in trace.libs["name"].tolist()],
            "frames": {
                "func": [*func.reshape(-1).tolist(), len(used)],
                "category": [*rows[:, 1].tolist(), -1],
                "tier": [*rows[:, 2].tolist(), -1],
                "inlined": [*rows[:, 3].tolist(), 0],
                # As the constants of own_code: 1 is the user's own.
                "own": [*self._collected.own_code.of(rows).tolist(), 0],
            },
            "categories": _named(trace, trace.categories, ("name", "color")),
            "tiers": _named(trace, trace.tiers, ("name", "family", "color")),
        }


def _add_live(trees: Trees) -> None:
    """Adds what was allocated and not freed, by process."""
    for process in dict.fromkeys(s.process for s in trees.series if s.measure == FREED and len(s.node)):
        allocated, freed = (
            trees.own(lambda s, m=measure, p=process: s.measure == m and s.process == p)  # type: ignore[misc]
            for measure in (ALLOCATED, FREED)
        )
        live = Series(process, -1, LIVE)
        n = len(allocated)
        live.set(np.zeros(n, np.int32), np.arange(n, dtype=np.int32), np.maximum(allocated - freed, 0))
        trees.series.append(live)


def _measure(trace: Trace, measure: Measure, facts: dict[Measure, Json]) -> Json:
    unit = unit_of(trace, measure)
    return {"name": measure.name, "unit": unit, "timed": measure.is_timed, **facts.get(measure, {})}


def _join_tracepoints(trace: Trace, trees: Trees) -> int:
    """Makes one measure of all tracepoints, where there are many, beside those that have most. Returns how many they
    are."""
    rows = sorted(joined_tracepoints(trace.events))
    if not rows:
        return 0
    of = {measure_of(trace.events[row]): row for row in rows}
    # Of the first event there is no weight, if each sample of it is one.
    of |= {SAMPLES: 0} if 0 in rows else {}
    sizes: dict[Measure, int] = dict.fromkeys(of, 0)
    joined: dict[tuple[int, int], list[Series]] = {}
    for series in trees.series:
        if series.measure in of:
            sizes[series.measure] += sums.total(series.amount)
            joined.setdefault((series.process, series.thread), []).append(series)
    shown = sorted(sizes, key=lambda measure: -sizes[measure])[:MOST_TRACEPOINTS]
    trees.series = [s for s in trees.series if s.measure not in of or s.measure in (SAMPLES, *shown)]
    for (process, thread), parts in joined.items():
        whole = Series(process, thread, TRACEPOINTS)
        whole.set(*(np.concatenate(c) for c in zip(*((s.bucket, s.node, s.amount) for s in parts), strict=True)))
        trees.series.append(whole)
    return len(rows)


def _wait(trace: Trace, wait: Wait, names: Names) -> Json:
    waker = "" if wait.waker < 0 else f"{names.threads.get(wait.waker) or 'thread'} {wait.waker}"
    return {
        "ns": wait.duration_ns, "runnable_ns": wait.runnable_ns, "at_ns": wait.ts - trace.start_ts,
        "why": why(wait.state, trace.strings[wait.reason]),
        "thread": _short(f"{names.threads.get(wait.tid) or 'thread'} {wait.tid}"),
        "process": _short(f"{names.processes.get(wait.pid) or 'process'} {wait.pid}"),
        "waker": _short(waker), "stack": _path(trace, wait.stack), "waker_stack": _path(trace, wait.waker_stack),
    }  # fmt: skip


def _path(trace: Trace, stack: int) -> list[str]:
    """Returns names of functions, the innermost first: of the program, or of the kernel where there are no others."""
    names: list[str] = []
    of_kernel: list[str] = []
    while stack >= 0 and len(names) < LONGEST_PATH:
        frame = int(trace.stacks["frame"][stack])
        category = int(trace.frames["category"][frame])
        is_kernel = category >= 0 and trace.strings[int(trace.categories["name"][category])] == KERNEL
        name = _short(short_names([trace.func_name(int(trace.frames["func"][frame]))])[0])
        (of_kernel if is_kernel else names).append(name)
        stack = int(trace.stacks["prefix"][stack])
    return names or of_kernel[:LONGEST_PATH]


def _named(trace: Trace, table: Any, columns: tuple[str, ...]) -> list[Json]:
    rows = zip(*(table[column].tolist() for column in columns), strict=True)
    return [{column: trace.strings[i] for column, i in zip(columns, row, strict=True)} for row in rows]


# ---------------------------------------------------------------- sources


class _Lines:
    """The amounts of the lines of sources with text, by measure: of themselves, and with what they call. has_others:
    also of those without."""

    def __init__(self, trace: Trace, collected: Collected, trees: Trees, has_others: bool) -> None:
        self._trace = trace
        self._is_shown = np.full(len(trace.sources), True) if has_others else trace.sources["text"] >= 0
        self._heat: dict[int, dict[Measure, list[list[int]]]] = {}
        frames, funcs = trace.frames, trace.funcs
        if not self._is_shown.any():
            return
        source = np.where(frames["source"] >= 0, frames["source"], funcs["source"][frames["func"]])
        positions, of_frame = _positions(source, frames["line"])
        for measure, of_stack in trees.of_stack.items():
            self._add(
                measure, positions, *_sums_by_position(trace, of_frame.astype(np.int32), of_stack, len(positions))
            )
        by_func = collected.by_func()
        if by_func["calls"].any():
            positions, of_func = _positions(funcs["source"], funcs["line"])
            self._add(
                TIME,
                positions,
                *(sums.total_by(of_func, by_func[key], len(positions)) for key in ("self_ns", "total_ns")),
            )

    def _add(self, measure: Measure, positions: Array, own: Array, total: Array) -> None:
        source, line = positions.T
        shown = np.flatnonzero((total > 0) & (line > 0) & (source >= 0) & self._is_shown[source])
        for row in shown.tolist():
            heat = self._heat.setdefault(int(source[row]), {}).setdefault(measure, [])
            heat.append([int(line[row]), int(own[row]), int(total[row])])

    @cached_property
    def _hottest(self) -> list[int]:
        """The sources that are listed."""

        def heat_of(source: int) -> int:
            return max(sum(int(row[1]) for row in rows) for rows in self._heat[source].values())

        return sorted(self._heat, key=lambda s: (-heat_of(s), s))[:LONGEST_LIST]

    def sources(self, most_bytes: int, measures: dict[Measure, int]) -> list[Json]:
        """Returns the sources, the hottest first; without text where there is no room for it. measures: the numbers of
        those shown."""
        found, left = [], most_bytes
        for source in self._hottest:
            row = int(self._trace.sources["text"][source])
            text = self._trace.texts[row] if row >= 0 else ""
            fits = row >= 0 and len(text) <= left
            left -= len(text) if fits else 0
            path = self._trace.strings[int(self._trace.sources["path"][source])]
            heat = [[measures[m], rows] for m, rows in self._heat[source].items() if m in measures]
            found.append({"path": _short(path), "text": text if fits else None, "heat": heat})
        return found


def _positions(source: Array, line: Array) -> tuple[Array, Array]:
    """Returns the distinct (source, line), and which of them each row is."""
    positions, index = np.unique(np.stack((source, line), axis=1).reshape(-1, 2), axis=0, return_inverse=True)
    return positions, index.reshape(-1)


def _sums_by_position(trace: Trace, of_frame: Array, of_stack: Array, n_positions: int) -> tuple[Array, Array]:
    """Returns sums of stacks by position: as the leaf, and anywhere in the stack, once for each stack."""
    n = len(of_stack)
    position = of_frame[trace.stacks["frame"][:n]]
    own = sums.total_by(position, of_stack, n_positions)
    prefix = np.ascontiguousarray(trace.stacks["prefix"][:n])
    return own, inclusive_by_row(prefix, position, position, of_stack, n_positions)


# ---------------------------------------------------------------- sizes


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_NAME else text[:LONGEST_NAME] + "…"


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return _short(value)
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shortened(item) for item in value]
    return value


# The ranked lists of `info`, with those inside them; lists of processes and threads stay whole.
RANKED = ("top", "classes", "sites", "growth", "methods", "assemblies")


def _cut(value: Any, most: dict[str, int]) -> Any:
    """Returns the value with shorter lists. most: elements of the lists of that name."""
    if isinstance(value, dict):
        return {k: _cut(v[: most[k]] if k in most and isinstance(v, list) else v, most) for k, v in value.items()}
    if isinstance(value, list):
        return [_cut(item, most) for item in value]
    return value
