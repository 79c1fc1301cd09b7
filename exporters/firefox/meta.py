"""The profile-wide parts of the Firefox Profiler's formats: times, categories, what is shown first, counters."""

from __future__ import annotations

from collections import Counter as Counting
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from traceferry.analysis.totals.idle import IdleStacks
from traceferry.common.titles import title_of
from traceferry.exporters.counters import shown_counters
from traceferry.exporters.firefox.markers import graph_color
from traceferry.exporters.tiers import category_of_tiers
from traceferry.exporters.tracepoints import TRACEPOINTS, joined_tracepoints, shown_weights
from traceferry.model import (
    SAMPLES,
    Array,
    Counter,
    Event,
    Process,
    Table,
    Thread,
    ThreadData,
    Trace,
    TraceBuilder,
    distinct,
    sums,
)
from traceferry.model.categories import IDLE, IDLE_COLOR, KERNEL, KERNEL_IDLE

GECKO_VERSION = 36
PROCESSED_VERSION = 70
# Calls are exact: what is drawn of the last sample must not be seen.
CALLS_INTERVAL_MS = 0.001
DEFAULT_INTERVAL_MS = 1.0
# Tells readers of the profile who wrote it, beside what the recorder was.
MARK = "traceferry"
WRITER = {"label": MARK, "entries": [{"label": "writer", "format": "string", "value": "traceferry"}]}
# Stacks keep their category in a byte.
MAX_CATEGORIES = 256
# The viewer's default selection: the busiest threads down to a part of the busiest.
MAX_VISIBLE = 15
BUSY_FRACTION = 0.05
# The viewer draws a counter as if its first value were 0.
COUNTER_LEAD_NS = 1000


@dataclass
class Activity:
    """Counts of a thread's rows. idle: samples in which nothing was done; cpu_ns: CPU time of all samples, -1 is
    unknown; in_bytes: the samples weigh bytes;
    is_further: they are of another event than the trace's first; markers: rows that become markers, but those of
    `scheduling`; shows_counters: counters of the process are drawn below it."""

    samples: int = 0
    idle: int = 0
    cpu_ns: int = -1
    calls: int = 0
    allocations: int = 0
    markers: int = 0
    in_bytes: bool = False
    is_main: bool = False
    is_further: bool = False
    shows_counters: bool = False

    @classmethod
    def of(cls, process: Process, part: Part, idle: IdleStacks) -> Activity:
        thread, data = part.thread, part.data
        cpu_ns = data.samples["cpu_ns"]
        return cls(
            samples=int(np.count_nonzero(data.samples["stack"] >= 0)),
            idle=int(np.count_nonzero(idle.of(data.samples["stack"]))),
            cpu_ns=sums.total(cpu_ns[cpu_ns > 0]) if np.any(cpu_ns >= 0) else -1,
            calls=len(data.calls),
            allocations=len(data.allocations),
            markers=len(data.arguments) + len(data.states) + sum(len(table) for table in data.markers.values()),
            in_bytes=thread.sample_unit == "bytes",
            is_main=thread.is_main,
            is_further=part.is_further,
            shows_counters=thread.is_main and len(process.counters) > 0,
        )

    @property
    def is_empty(self) -> bool:
        """Whether the viewer has nothing to show of it but when it ran."""
        return not (self.samples or self.calls or self.allocations or self.markers or self.shows_counters)


def pids_of(trace: Trace) -> dict[int, str]:
    """Returns the number of each process, by its id(). The viewer shows what has one number as one process: of several,
    the later ones are 7.1 and 7.2, as in profiles of samply."""
    n_of_pid: Counting[int] = Counting()
    pids: dict[int, str] = {}
    for process in trace.processes:
        nth = n_of_pid[process.pid]
        pids[id(process)] = f"{process.pid}.{nth}" if nth else f"{process.pid}"
        n_of_pid[process.pid] += 1
    return pids


def write_threads(
    trace: TraceBuilder,
    progress: Callable[[int], None],
    write: Callable[[Process, Part], None],
) -> list[tuple[Process, Activity]]:
    """Writes all threads, one after the other; returns the process of each one that is written, and its counts."""
    written: list[tuple[Process, Activity]] = []
    idle = IdleStacks(trace)
    for process, thread in _threads_of(trace):
        data = thread.load(trace)
        progress(thread.n_records // 2)
        for part in _parts(trace, thread, data):
            written.append((process, Activity.of(process, part, idle)))
            write(process, part)
        trace.report.note("table_not_carried", len(data.branches), where=f"{id(thread)}", detail="branches")
        # Peak memory is one thread: this one goes before the next comes.
        del data, part
        progress(thread.n_records - thread.n_records // 2)
    return written


def _threads_of(trace: TraceBuilder) -> list[tuple[Process, Thread]]:
    """Returns all threads in the order of the tracks: a process's, those that count bytes last, with a view of each
    heap snapshot. A process that has only counters gets a thread to show them at."""
    threads = []
    for process in trace.processes:
        own = process.threads + _heap_views(trace, process)
        if not own and process.counters:
            own = [Thread(process.pid, process.name, True, process.start_ts, process.end_ts, lambda _: ThreadData())]
        threads += [(process, thread) for thread in sorted(own, key=lambda t: t.sample_unit == "bytes")]
    return threads


def _heap_views(trace: TraceBuilder, process: Process) -> list[Thread]:
    if not process.heap_snapshots:
        return []
    from traceferry.heap.views import views_of

    return views_of(trace, process)


class Part(NamedTuple):
    """A thread of the profile. is_further: it has the samples of another event than the trace's first; mark: what
    readers of our own profiles need, but the format does not tell."""

    thread: Thread
    data: ThreadData
    is_further: bool
    mark: dict[str, Any]


def _parts(trace: Trace, thread: Thread, data: ThreadData) -> list[Part]:
    """Returns the threads that are written of one: calls are samples in these formats, so that what has calls and
    samples is two threads, and so are samples of several events."""
    shown = _shown_events(trace)
    others = [
        Part(
            _named(thread, _title(thread, event), event.unit),
            ThreadData(samples=samples),
            True,
            {"event": shown.index(event)},
        )
        for event, samples in shown_weights(trace, data)
    ]
    weight, running = _weight_mark(trace, data), _running_mark(trace, data)
    if len(data.samples) and not thread.sample_unit and trace.sample_unit != "samples":
        # They weigh bytes, as views of sizes do, or ns, as calls do.
        weight |= {"amount": True}
    if not (len(data.calls) and len(data.samples)):
        return [Part(thread, data, False, weight | running), *others]
    sampled = _named(thread, f"{thread.name} (samples)", thread.sample_unit)
    called = replace(data, samples=Table(SAMPLES))
    samples = Part(sampled, ThreadData(samples=data.samples), False, {"event": 0} | weight)
    return [Part(thread, called, False, running), samples, *others]


def _shown_events(trace: Trace) -> list[Event]:
    """Returns the events of the trace, and behind them the one that stands for many tracepoints."""
    return [*trace.events, TRACEPOINTS] if joined_tracepoints(trace.events) else [*trace.events]


def _weight_mark(trace: Trace, data: ThreadData) -> dict[str, Any]:
    """Returns what the samples of the first event weigh, which the viewer counts: one number where all weigh the same,
    each one's where they are times."""
    weight = data.samples["weight"]
    if trace.sampling is None or trace.sampling.unit == "samples" or not len(weight):
        return {}
    if np.all(weight == weight[0]):
        return {"weight": int(weight[0])}
    return {"weights": weight.tolist()} if trace.sampling.unit == "ns" else {}


def _running_mark(trace: Trace, data: ThreadData) -> dict[str, Any]:
    """Returns the ns from which on a thread ran where no marker says otherwise."""
    table = data.scheduling
    return {"running": int(table["ts"][0]) - trace.start_ts} if len(table) else {}


def _named(thread: Thread, name: str, unit: str) -> Thread:
    return replace(thread, name=name, is_main=False, sample_unit=unit)


def _title(thread: Thread, event: Event) -> str:
    """Returns the name of the thread that shows a thread's samples of an event."""
    if event.kind == "off-cpu":
        return f"{thread.name} (off-CPU)"
    return f"{thread.name}: {event.name}" + " (scaled)" * event.is_scaled


def product_of(written: Sequence[tuple[Process, Activity]]) -> str:
    """Returns what the viewer shows as the profile's name. written: of each thread its process, and its counts."""
    amounts = ((p.name, 0 if a.is_further else a.samples - a.idle + a.calls + a.allocations) for p, a in written)
    return title_of(amounts) or "traceferry"


def meta(
    trace: Trace, activities: Sequence[Activity], categories: Categories, schemas: list[dict[str, Any]], product: str
) -> dict[str, Any]:
    interval = _interval_ms(trace, activities)
    duration = trace.end_ts - trace.start_ts
    values: dict[str, Any] = {
        "version": GECKO_VERSION,
        "preprocessedProfileVersion": PROCESSED_VERSION,
        "interval": interval,
        "startTime": (trace.unix_start_ns or 0) / 1e6,
        "profilingStartTime": 0,
        # Samples at the end itself would be outside, and what runs until the end would not be drawn.
        "profilingEndTime": round(duration / 1e6 + interval, 6),
        "processType": 0,
        "product": product,
        "importedFrom": ", ".join(dict.fromkeys(f"{i.producer} {i.version}".strip() for i in trace.inputs)),
        "stackwalk": int(any(a.samples for a in activities)),
        "symbolicated": True,
        "symbolicationNotSupported": True,
        "sourceCodeIsNotOnSearchfox": True,
        # Without it the viewer offers to show only JavaScript, or only native code.
        "usesOnlyOneStackType": not trace.funcs["is_js"].any(),
        "keepProfileThreadOrder": True,
        **_shown_first(trace, activities),
        "categories": categories.list,
        "markerSchema": schemas,
        "extra": [{"label": "Recording", "entries": _entries(trace)}, WRITER],
        MARK: {
            "events": [event._asdict() for event in _shown_events(trace)],
            "tiers": categories.tiers(),
            # The viewer cuts a profile to a range of time, and moves its beginning and its end.
            "end": duration,
        },
    }
    if any(a.cpu_ns >= 0 for a in activities):
        values["sampleUnits"] = {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"}
    if trace.clock is not None and trace.clock.kind == "monotonic":
        values["startTimeAsClockMonotonicNanosecondsSinceBoot"] = trace.start_ts
    return values


def _interval_ms(trace: Trace, activities: Sequence[Activity]) -> float:
    """Returns how long the last sample of a thread lasts."""
    if any(a.calls for a in activities) or not any(a.samples and not a.in_bytes for a in activities):
        return CALLS_INTERVAL_MS
    return trace.sampling.interval_ns / 1e6 if trace.sampling and trace.sampling.interval_ns else DEFAULT_INTERVAL_MS


def _shown_first(trace: Trace, activities: Sequence[Activity]) -> dict[str, list[int]]:
    """Returns what is visible and selected: everything that is not empty, unless there are samples: then the busy
    threads, all calls, allocations and sizes, and those threads without samples that have markers worth a look. Samples
    of further events can be chosen in the menu of tracks."""
    numbers = [i for i, a in enumerate(activities) if not a.is_further] or range(len(activities))
    interval = max(trace.sampling.interval_ns, 1) if trace.sampling else 1
    scores = [
        0 if a.in_bytes or a.is_further else a.cpu_ns if a.cpu_ns >= 0 else (a.samples - a.idle) * interval
        for a in activities
    ]
    busiest = max(scores, default=0)
    if not busiest:
        held = [i for i in numbers if not activities[i].is_empty]
        visible = {"initialVisibleThreads": held or list(numbers) or [0]}
        most = max((a.allocations for a in activities), default=0)
        selected = [i for i in numbers if activities[i].allocations == most][:1]
        return visible | {"initialSelectedThreads": selected} if most else visible
    exact = {i for i in numbers if activities[i].calls or activities[i].allocations}
    silent = [i for i in numbers if activities[i].markers and not activities[i].samples and i not in exact]
    most_markers = max((activities[i].markers for i in silent), default=0)
    shown = _most([i for i in numbers if scores[i] >= busiest * BUSY_FRACTION], scores)
    shown |= exact
    shown |= _most([i for i in numbers if activities[i].in_bytes], [a.samples for a in activities])
    shown |= _most(
        [i for i in silent if activities[i].is_main or activities[i].markers >= most_markers * BUSY_FRACTION],
        [a.markers for a in activities],
    )
    return {"initialVisibleThreads": sorted(shown), "initialSelectedThreads": [_selected_first(activities, scores)]}


def _selected_first(activities: Sequence[Activity], scores: Sequence[int]) -> int:
    """Returns the thread with the most calls, which are exact; else the busiest one. Recorders that signal all threads
    sample those that wait, too: the main thread goes before one that is less than twice as busy."""
    calls = [a.calls for a in activities]
    if any(calls):
        return calls.index(max(calls))
    busiest = max(scores)
    nearly = (i for i, a in enumerate(activities) if a.is_main and 2 * scores[i] > busiest)
    return next(nearly, scores.index(busiest))


def _most(threads: list[int], scores: Sequence[int]) -> set[int]:
    return set(sorted(threads, key=lambda i: -scores[i])[:MAX_VISIBLE])


def _entries(trace: Trace) -> list[dict[str, str]]:
    clock = trace.clock.kind if trace.clock else "unknown"
    entries = {"inputs": ", ".join(i.path for i in trace.inputs), "clock": clock}
    if trace.sampling:
        entries["samples count"] = trace.sampling.name
    entries |= trace.attributes
    return [{"label": label, "format": "string", "value": value} for label, value in entries.items() if value]


# ---------------------------------------------------------------- categories


class Categories:
    """The profile's categories, at most 256: "Other", which must be the first and grey; the trace's; then one for each
    family of tiers, with its variants as subcategories. `list`: as the format has them."""

    def __init__(self, trace: Trace) -> None:
        self.list: list[dict[str, Any]] = []
        self._index: dict[tuple[str, str], int] = {}
        self._dropped: set[tuple[str, str]] = set()
        self._idle, self._n_frames = np.zeros(0, np.int64), 0
        self._trace = trace
        self._entry("Other", "grey")
        self.update()

    def of_markers(self, name: str, color: str) -> int:
        return self._entry(name, color)

    def update(self) -> None:
        """Takes what the trace has by now; what was there before keeps its indices."""
        trace = self._trace
        categories, tiers = trace.categories, trace.tiers
        # Index -1, none, finds the last element: "Other".
        columns = ([trace.strings[text] for text in categories[column].tolist()] for column in ("name", "color"))
        named = list(zip(*columns, strict=True))
        of_category = [
            (self._entry(*of), 0) if parent < 0 else self._variety(self._entry(*named[parent]), of[0])
            for of, parent in zip(named, categories["parent"].tolist(), strict=True)
        ]
        self._of_category = np.array([*(category for category, _ in of_category), 0], np.int32)
        self._variety_of_category = np.array([*(variety for _, variety in of_category), 0], np.int32)
        of_tier = [
            self._tier(*(trace.strings[index] for index in row))
            for row in zip(*(tiers[column].tolist() for column in ("name", "family", "color")), strict=True)
        ]
        self._is_kernel = np.array([*(name == KERNEL for name, _ in named), False], bool)
        self._find_idle()
        self._of_tier = np.array([*(category for category, _ in of_tier), 0], np.int32)
        self._variety_of_tier = np.array([*(variety for _, variety in of_tier), 0], np.int32)
        trace.report.note("columns_dropped", len(self._dropped), where="categories", detail="categories beyond 256")

    def _find_idle(self) -> None:
        """Finds what the kernel executes on processors without work, among the frames that are new."""
        trace, n_known = self._trace, self._n_frames
        self._n_frames = len(trace.frames)
        func, category = (trace.frames[name][n_known:] for name in ("func", "category"))
        of_kernel = distinct(func[self._is_kernel[category]])
        idle = [one for one in of_kernel.tolist() if KERNEL_IDLE.fullmatch(trace.func_name(one))]
        if idle:
            self._idle = np.append(self._idle, idle)
            self._entry(IDLE, IDLE_COLOR)

    def of_frames(self, frames: Table) -> tuple[Array, Array]:
        """(category, subcategory) of each frame: the tier is more specific than the category, and what the kernel does
        without work is none for the viewer."""
        tier, category = frames["tier"], frames["category"]
        found = np.where(tier >= 0, self._of_tier[tier], self._of_category[category])
        variety = np.where(tier >= 0, self._variety_of_tier[tier], self._variety_of_category[category])
        is_idle = self._is_kernel[category] & np.isin(frames["func"], self._idle)
        if is_idle.any():
            found, variety = np.where(is_idle, self._entry(IDLE, IDLE_COLOR), found), np.where(is_idle, 0, variety)
        return found, variety

    def tiers(self) -> list[list[int]]:
        """Returns, of each tier, its category and subcategory, and those that most of its frames would have without it:
        the format does not tell tiers and categories apart. Categories are as of the last `update`."""
        of = category_of_tiers(self._trace)
        places = zip(self._of_tier[:-1].tolist(), self._variety_of_tier[:-1].tolist(), strict=True)
        categories = zip(self._of_category[of].tolist(), self._variety_of_category[of].tolist(), strict=True)
        # One that is beyond the limit is "Other".
        found = {place: [*place, *category] for place, category in zip(places, categories, strict=True) if place[0]}
        return [*found.values()]

    def _tier(self, name: str, family: str, color: str) -> tuple[int, int]:
        category = self._entry(family or name, color)
        return (category, 0) if name == (family or name) else self._variety(category, name)

    def _variety(self, category: int, name: str) -> tuple[int, int]:
        """Returns (category, subcategory) of a part of a category; "Other" has none of ours."""
        varieties = self.list[category]["subcategories"]
        if category == 0:
            return 0, 0
        if name not in varieties:
            varieties.append(name)
        return category, varieties.index(name)

    def _entry(self, name: str, color: str) -> int:
        # The viewer takes a category of this name for the absence of work, whatever colour it has.
        key = ("idle" if name == IDLE and color != IDLE_COLOR else name or "Other", color or "grey")
        if key not in self._index:
            if len(self.list) == MAX_CATEGORIES:
                self._dropped.add(key)
                return 0
            self._index[key] = len(self.list)
            self.list.append({"name": key[0], "color": key[1], "subcategories": ["Other"]})
        return self._index[key]


# ---------------------------------------------------------------- libraries, counters


def libs(trace: Trace) -> list[dict[str, Any]]:
    columns = ([trace.strings[i] for i in trace.libs[c].tolist()] for c in ("arch", "name", "debug_id", "code_id"))
    return [
        {
            "arch": arch,
            **dict.fromkeys(("name", "path", "debugName", "debugPath"), name),
            "breakpadId": debug_id,
            "codeId": code_id or None,
        }
        for arch, name, debug_id, code_id in zip(*columns, strict=True)
    ]


def counters(trace: Trace, processes: Sequence[Process], pids: dict[int, str]) -> list[dict[str, Any]]:
    """Returns the counters of all processes. processes: of each thread that is written; pids: as `pids_of` has them."""
    first_thread: dict[int, int] = {}
    for i, process in enumerate(processes):
        first_thread.setdefault(id(process), i)
    return [
        _counter(trace, pids[id(process)], counter, first_thread[id(process)])
        for process in trace.processes
        for counter in shown_counters(trace, process)
    ]


def _counter(trace: Trace, pid: str, counter: Counter, thread: int) -> dict[str, Any]:
    ts, columns = _amounts(counter) if counter.adds_up else _differences(trace, counter)
    return {
        "name": counter.name,
        "category": "Other",
        "description": counter.doc,
        "pid": pid,
        "mainThreadIndex": thread,
        "samples": {"time": ((ts - trace.start_ts) / 1e6).tolist(), **columns, "length": len(ts)},
        "display": {
            "graphType": "line-rate" if counter.adds_up else "line-accumulated",
            "unit": counter.unit,
            "color": graph_color(counter.color),
            "markerSchemaLocation": None,
            "sortWeight": 0,
            "label": counter.name,
            "tooltipRows": _amount_rows(counter) if counter.adds_up else _value_rows(counter),
        },
    }


Columns = dict[str, list[float]]


def _amounts(counter: Counter) -> tuple[Array, Columns]:
    return counter.values["ts"], {"count": counter.values["value"].astype(np.float64).tolist()}


def _differences(trace: Trace, counter: Counter) -> tuple[Array, Columns]:
    """Returns when a counter changed, and by how much; and what it was then, which differences do not tell in a part of
    the profile."""
    ts, value = counter.values["ts"], counter.values["value"]
    lead = np.maximum(ts[:1] - COUNTER_LEAD_NS, trace.start_ts)
    # A counter keeps its last value, but the graph ends at it.
    ts, value = (
        np.concatenate((lead, ts, np.maximum(ts[-1:], trace.end_ts))),
        np.concatenate((np.zeros(len(lead)), value, value[-1:])),
    )
    return ts, {"count": np.diff(value, prepend=0).tolist(), "number": value.tolist()}


def _value_rows(counter: Counter) -> list[dict[str, Any]]:
    return [
        _tooltip_row("accumulated", counter, counter.name),
        _tooltip_row("count-range", counter, "range in what is shown"),
    ]


def _amount_rows(counter: Counter) -> list[dict[str, Any]]:
    unit = f" ({counter.unit})" if counter.unit not in ("count", "bytes") else ""
    return [
        _tooltip_row("count", counter, f"{counter.name}{unit}, since the value before"),
        _tooltip_row("committed-range-total", counter, "in what is shown"),
        _tooltip_row("selection-total", counter, "in the selection") | {"requiresPreviewSelection": True},
    ]


def _tooltip_row(source: str, counter: Counter, label: str) -> dict[str, Any]:
    number = {"unit": "bytes" if counter.unit == "bytes" else "number"}
    return {"type": "value", "source": source, "format": number, "label": label}
