"""Map: the clock of a recording, and its relation to the clock of the dumps.

Where the two differ and no wall-clock time relates them, the relation follows from events that both files have: a dump
is mapped and its header written at one time, and code is loaded after that and before it is sampled.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from traceferry.importers.perf.dumps import NO_ROWS, Key, code_by_dump, dump_name
from traceferry.importers.perf.layout import USER_MODE
from traceferry.importers.perf.recording import Event, Exit, Mmap, Recording
from traceferry.model import Array, Clock, ClockKind, TraceBuilder, containing_interval, rows_by_key

# clockid_t of <time.h>; what perf takes without -k is the scheduler's own.
CLOCKS: dict[int, ClockKind] = {0: "realtime", 1: "monotonic", 4: "monotonic_raw", 7: "boot", 11: "tai"}
SCHED_CLOCK: ClockKind = "sched"
# Clocks that may be the same, and differ by less by the dump's header, are not moved.
SAME_CLOCK_NS = 1_000_000
# Bounds that are further apart than this do not align clocks.
MAX_DOUBT_NS = 100_000_000
# A dump's first record may be a little older than its header: one compiler writes it late. And code may be sampled
# before its record is written.
SLACK_NS = 1_000_000_000
NO_PID = -(1 << 31)
# What can be done about recordings of which nothing but their samples could align the clocks.
ONE_CLOCK = "record each of them with perf record -k CLOCK_MONOTONIC, or give their difference with --clock-offset"


def join_clock(trace: TraceBuilder, recording: Recording, given_ns: int | None) -> int:
    """Returns the offset from the recording's clock to the trace's, in ns. given_ns: the user's value."""
    kind = clock_of(recording.events[0])
    data = recording.features.clock_data
    unix_zero = 0 if kind == "realtime" else data[1] - data[2] if data is not None else None
    clock = trace.clock
    if clock is None or (given_ns is None and clock.kind == kind):
        return trace.join_clock(Clock(kind, unix_zero)) + (given_ns or 0)
    if given_ns is None and unix_zero is not None and clock.unix_zero_ns is not None:
        return trace.join_clock(Clock(kind, unix_zero))
    if not recording.is_timed:
        return 0
    offset_ns, reason = (given_ns, "given by --clock-offset") if given_ns is not None else find_offset(trace, recording)
    if offset_ns is None:
        if len(trace.code):
            trace.report.note("clock_differs", detail=f"{kind} and {clock.kind}: {reason}")
        else:
            trace.report.note("clock_unrelated", where=kind, detail=f"{kind} and {clock.kind}", advice=ONE_CLOCK)
            trace.begin_apart(Clock(kind, unix_zero))
        return 0
    detail = f"samples on {kind} were moved by {offset_ns} ns to {clock.kind}, {reason}"
    trace.report.note("clock_aligned", detail=detail)
    if unix_zero is not None and clock.unix_zero_ns is None:
        trace.clock = Clock(clock.kind, unix_zero - offset_ns)
    return offset_ns


def ended_at(recording: Recording, written_at: float) -> float:
    """Returns when the last record was made, in seconds since 1970; written_at, which is when the file was last written
    to, where the recording does not tell it."""
    data = recording.features.clock_data
    if data is None or not recording.is_timed:
        return written_at
    _, wall, clock = data
    columns = recording.samples.ts, recording.switches.ts, [task.ts for task in recording.tasks]
    last = max((int(np.max(ts)) for ts in columns if len(ts)), default=clock)
    # No damaged time says that the recording went on after it was written.
    return max(wall / 1e9, min((wall + last - clock) / 1e9, written_at))


def clock_of(event: Event) -> ClockKind:
    return CLOCKS.get(event.attr.clockid, SCHED_CLOCK) if event.use_clockid else SCHED_CLOCK


class Dump(NamedTuple):
    """A dump that the recording maps. opened: the time in its header, None if that clock is unknown; loaded: [n] int64
    times of its loads, rising; low: the loads are at least so far ahead of the recording's clock, None if unknown. All
    but the mapping on the dump's clock, in ns."""

    mapped: Mmap
    opened: int | None
    loaded: Array
    low: int | None

    @property
    def high(self) -> int:
        """Returns the highest offset at which the first load follows the mapping."""
        return int(self.loaded[0]) - self.mapped.ts


def find_offset(trace: TraceBuilder, recording: Recording) -> tuple[int | None, str]:
    """Returns (ns from the recording's clock to the trace's, None where they are not known; why, for the report)."""
    dumps = list(_mapped_dumps(trace, recording))
    if not dumps:
        return None, "no dump is mapped while the recorder runs"
    low = max((dump.low for dump in dumps if dump.low is not None), default=None)
    high = min(dump.high for dump in dumps)
    for dump in dumps:
        opened = _by_header(dump, recording)
        if opened is not None:
            name = Path(dump.mapped.path).name
            return opened, f"by the time in the header of {name}{_bounds(low, high, opened)}"
    if low is None or high - low > MAX_DOUBT_NS:
        between = "" if low is None else f", and at least {_ms(low)}"
        return None, f"the loads of the dump show only that the clocks are at most {_ms(high)} apart{between}"
    # Code that is sampled before its record is written makes the lower bound too large.
    low = min(low, high)
    offset = 0 if low <= 0 <= high else low
    return offset, f"by the first load and the first samples of loaded code{_bounds(low, high, offset)}"


def _by_header(dump: Dump, recording: Recording) -> int | None:
    """Returns the offset by the header of a dump, which is written as the dump is mapped. Its time counts where it
    suits the loads and the samples: some compilers write the wall-clock time instead."""
    if dump.opened is None:
        return None
    offset = dump.opened - dump.mapped.ts
    span = max((int(recording.samples.ts[-1]) if len(recording.samples) else 0) - dump.mapped.ts, 0)
    low = dump.high - span if dump.low is None else dump.low
    if not low - SLACK_NS <= offset <= dump.high + SLACK_NS:
        return None
    return 0 if abs(offset) <= SAME_CLOCK_NS and low - SLACK_NS <= 0 <= dump.high + SLACK_NS else offset


def _bounds(low: int | None, high: int, offset: int) -> str:
    """Returns by how much the offset can be wrong, as far as loads and samples tell."""
    before = f"-{_ms(max(offset - low, 0))} to " if low is not None else ""
    return f"; loads and samples allow {before}+{_ms(max(high - offset, 0))}"


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.3f} ms"


# ---------------------------------------------------------------- evidence from both files


def _mapped_dumps(trace: TraceBuilder, recording: Recording) -> Iterator[Dump]:
    """Yields the dumps that were mapped while the recorder ran, and loaded code."""
    code_of = code_by_dump(trace)
    evidence = _Evidence(trace, recording)
    seen: set[Key] = set()
    for mapped in recording.maps:
        key = dump_name(mapped), mapped.pid
        if mapped.ts == 0 or key in seen or key not in code_of:
            continue
        seen.add(key)
        code = code_of[key]
        loaded = np.sort(trace.code["loaded_at"][code])
        low = evidence.lower_bound(key, int(loaded[-1]))
        yield Dump(mapped, trace.code_reader(int(code[0])).opened_ts, loaded, low)


class _Evidence:
    """Code is loaded before it is sampled, and before its process ends."""

    def __init__(self, trace: TraceBuilder, recording: Recording) -> None:
        code, samples = trace.code_mappings["code"], recording.samples
        self._mappings, self._size = trace.code_mappings, trace.code["size"][code]
        self._of_dump = code_by_dump(trace, code)
        self._samples = samples
        self._sampled = rows_by_key(np.where((samples.cpumode == USER_MODE) & (samples.ts > 0), samples.pid, NO_PID))
        self._first_exit: dict[int, int] = {}
        for task in recording.tasks:
            if isinstance(task, Exit) and task.pid == task.tid:
                self._first_exit[task.pid] = min(task.ts, self._first_exit.get(task.pid, task.ts))

    def lower_bound(self, dump: Key, last_load: int) -> int | None:
        _, pid = dump
        mappings, rows = self._mappings, self._of_dump.get(dump, NO_ROWS)
        begin, start, size = _only_mappings(mappings["address"][rows], mappings["start_ts"][rows], self._size[rows])
        mine = self._sampled.get(pid, NO_ROWS)
        ip = self._samples.ip[mine]
        nth = containing_interval(begin, size, ip)
        inside = nth >= 0
        ahead = (start[nth[inside]] - self._samples.ts[mine][inside]).tolist()
        ahead += [last_load - self._first_exit[pid]] if pid in self._first_exit else []
        return max(ahead, default=None)


def _only_mappings(address: Array, start: Array, size: Array) -> tuple[Array, Array, Array]:
    """Returns (address, start, size), by address, of the mappings at whose addresses no other ever lies."""
    order = np.argsort(address, kind="stable")
    begin, start = address[order], start[order]
    length = size[order].astype(np.uint64)
    end = begin + length
    alone = length > 0
    alone[1:] &= begin[1:] >= np.maximum.accumulate(end)[:-1]
    alone[:-1] &= end[:-1] <= begin[1:]
    return begin[alone], start[alone], length[alone]
