"""Map: what perf prints becomes samples of threads, by events, and markers of tracepoints."""

from __future__ import annotations

import re
from array import array
from typing import NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.common.shown_text import encodable
from traceferry.files.source import Source
from traceferry.importers.perfscript.frames import FrameLines
from traceferry.importers.perfscript.layout import (
    LATEST,
    RECORD,
    Header,
    has_frame,
    header_of,
    is_frame,
    is_tracepoint,
    pieces,
)
from traceferry.model import (
    SAMPLES,
    Array,
    Clock,
    Event,
    EventKind,
    Input,
    MarkerField,
    MarkerType,
    Table,
    ThreadData,
    TraceBuilder,
    rows_by_key,
)
from traceferry.timeline.stack_profiles import UNTIMED_NS, StackProfile
from traceferry.timeline.stacks import StackTable

CLOCKS = ("cpu-clock", "task-clock")
# perf list, by what counts them.
HARDWARE = ("cycles", "instructions", "cache-", "branch", "bus-cycles", "ref-cycles", "stalled-cycles")
SOFTWARE = (
    "page-faults", "minor-faults", "major-faults", "context-switches", "cpu-migrations", "alignment-faults",
    "emulation-faults", "cgroup-switches", "bpf-output", "dummy",
)  # fmt: skip
# Of the times of lines, which perf sorts, none is below the one before it; of differences, about every second is.
MOST_FALLING = 0.1
# The order of events in a trace: samples of a clock say where time goes.
RANKS = {"clock": 0, "tracepoint": 2}
SOURCE_INDENT = b"  "
MOST_PERIOD = (1 << 53) - 1
FIELDS = MarkerField("fields", "Fields", "text"), MarkerField("cpu", "CPU", "integer")


class Owner(NamedTuple):
    """A thread. pid: -1 is unknown."""

    pid: int
    tid: int


class _Samples:
    """The columns of all samples, and what was left out. owner, event: numbers of what is in `owners` and `events`;
    comm: rows of the trace's strings; fields: text; stack: int32, -1 is none, in parts; n_unknown: lines that are
    nothing known, as a warning of perf; n_records: those of other records; n_words: samples with more than is read, as
    the address of an access. first_ts: of the first line, -1 for none; between: the times of the records since the
    sample before, added up."""

    def __init__(self, profile: StackProfile) -> None:
        self.ts, self.between, self.period = array("q"), array("q"), array("q")
        self.owner, self.event, self.cpu, self.comm = (array("i") for _ in range(4))
        self.fields: list[str] = []
        self.stack = [np.empty(0, np.int32)]
        self.owners: dict[Owner, int] = {}
        self.events: dict[str, int] = {}
        self.n_unknown = self.n_records = self.n_words = 0
        self.first_ts, self._passed = -1, 0
        self._strings = profile.trace.strings
        self.frames, self._stacks = FrameLines(profile), StackTable(profile.trace)

    def add(self, text: bytes) -> None:
        """Adds the samples of a text, which are whole."""
        frames = self.frames
        numbers, begins, last = array("q"), array("q"), b""
        for line in text.split(b"\n"):
            if begins and is_frame(line):
                last = line
                numbers.append(frames[line])
            elif not line or line.isspace() or line.startswith(b"#"):
                pass
            elif (header := header_of(line)) is not None:
                self.first_ts = header.ts if not self.ts and not self.n_records else self.first_ts
                if header.rest.startswith(RECORD):
                    self.n_records += 1
                    self._passed = min(self._passed + header.ts, LATEST)
                    continue
                begins.append(len(numbers))
                last = header.rest.rstrip()
                if has_frame(header):
                    numbers.append(frames[last])
                    self._add(header, b"")
                else:
                    self._add(header, last)
                    last = b""
            elif last and line.startswith(SOURCE_INDENT):
                numbers[-1] = frames[last.partition(b"\n")[0] + b"\n" + line]
            else:
                self.n_unknown += 1
        if begins:
            ends = np.append(np.array(begins, np.int64)[1:], len(numbers))
            self.stack.append(self._stacks.intern_lists(frames.rows(np.array(numbers, np.int64), ends), ends))

    def _add(self, header: Header, fields: bytes) -> None:
        self.ts.append(header.ts)
        self.between.append(self._passed)
        self._passed = 0
        self.period.append(min(header.period, MOST_PERIOD))
        self.owner.append(self.owners.setdefault(Owner(header.pid, header.tid), len(self.owners)))
        self.event.append(self.events.setdefault(header.event, len(self.events)))
        self.cpu.append(header.cpu)
        self.comm.append(self._strings.intern(encodable(header.comm)))
        self.fields.append(encodable(fields.decode("utf-8", "replace")))
        self.n_words += bool(fields) and not is_tracepoint(header.event)

    def publish(self) -> None:
        self._stacks.publish()


def to_trace(source: Source, trace: TraceBuilder) -> None:
    """Adds the samples of a text. Raises FormatError where it has none."""
    profile = StackProfile(trace, Input(source.name, "perfscript", "", "perf"))
    samples = _Samples(profile)
    for _, text in pieces(source.data):
        samples.add(text)
    samples.publish()
    if not samples.ts:
        raise FormatError("no line is a sample as perf script prints it", 0, path=source.path)
    ts, between = np.array(samples.ts), np.array(samples.between)
    is_untimed = bool((ts < 0).any())
    are_differences = not is_untimed and _are_differences(samples.first_ts, ts, between)
    ts = np.cumsum(ts + between) if are_differences else ts
    ts = np.arange(len(ts)) * UNTIMED_NS if is_untimed else ts + trace.join_clock(Clock("monotonic"))
    _add_threads(profile, samples, ts, source.name)
    report, path = trace.report, source.path
    report.note("names_not_in_text", samples.frames.n_nameless, where=path)
    report.note("times_made", len(ts) * is_untimed, where=path)
    report.note("differences_added", len(ts) * are_differences, where=path)
    for what, n in (
        ("lines of no sample", samples.n_unknown), ("records beside samples", samples.n_records),
        ("words behind the events of samples", samples.n_words),
    ):  # fmt: skip
        report.note("members_not_read", n, where=f"{path} {what}", detail=what, advice="the perf.data itself has more")


def _are_differences(first: int, ts: Array, between: Array) -> bool:
    """Whether times are those of --deltatime, each since the line before. first: of the first line, where that is 0;
    ts, between: int64, ns, as in `_Samples`."""
    elapsed = ts.sum(dtype=float) + between.sum(dtype=float)
    return first == 0 and elapsed < LATEST and int((np.diff(ts) < 0).sum()) > MOST_FALLING * len(ts)


def _add_threads(profile: StackProfile, samples: _Samples, ts: Array, name: str) -> None:
    """ts: int64, of the samples; name: of the process where the text does not tell processes."""
    event, period, comm = np.array(samples.event), np.array(samples.period), np.array(samples.comm)
    events = _add_events(profile, samples.events, event, period)
    order = np.argsort(ts, kind="stable")
    by_owner = {nth: order[rows] for nth, rows in rows_by_key(np.array(samples.owner)[order]).items()}
    columns = {
        "ts": ts, "stack": np.concatenate(samples.stack), "weight": np.maximum(period, 1),
        "cpu": np.array(samples.cpu, np.int32), "fields": np.array(samples.fields, object),
    }  # fmt: skip
    owners = list(samples.owners)
    # A thread may change its name: it is what it was called last.
    names = {owner: profile.trace.strings[comm[by_owner[nth][-1]]] for nth, owner in enumerate(owners)}
    for nth in sorted(by_owner, key=lambda nth: (owners[nth].pid, owners[nth].tid != owners[nth].pid, owners[nth].tid)):
        owner, rows = owners[nth], by_owner[nth]
        pid = owner.pid if owner.pid >= 0 else None
        shown = names.get(Owner(owner.pid, owner.pid), names[owner]) if pid is not None else name
        process = profile.process(pid, shown, pid, int(ts[rows[0]]), int(ts[rows[-1]]) + 1)
        data = _thread_data(events, event[rows], {name: column[rows] for name, column in columns.items()})
        profile.add_thread(process, names[owner], owner.tid if owner.tid >= 0 else None, data, len(rows))
    for process in profile.processes.values():
        for thread in process.threads:
            thread.start_ts, thread.end_ts = process.start_ts, process.end_ts


def _add_events(profile: StackProfile, names: dict[str, int], event: Array, period: Array) -> list[tuple[int, Event]]:
    """Returns the row and the event of each event in the text. event: of each sample, a number of `names`."""
    found = [_event_of(name, period[event == nth]) for name, nth in names.items()]
    ordered = sorted(found, key=lambda event: RANKS.get(event.kind, 1))
    rows = {event.key: profile.add_event(event) for event in ordered}
    return [(rows[event.key], event) for event in found]


def _event_of(name: str, period: Array) -> Event:
    """period: of its samples, -1 is unknown."""
    plain = re.split("[:/]", name)[0]
    kind: EventKind = (
        "clock" if plain in CLOCKS
        else "tracepoint" if is_tracepoint(name)
        else "hardware" if plain.startswith(HARDWARE)
        else "software" if plain in SOFTWARE
        else "other"
    )  # fmt: skip
    if kind != "tracepoint" and not (period >= 0).any():
        return Event(name or "samples", "samples", kind=kind)
    usual = int(np.median(period))
    unit = "ns" if kind == "clock" else "cycles" if "cycles" in plain else "count"
    return Event(name or "samples", unit, usual if kind == "clock" else 0, kind)


def _thread_data(events: list[tuple[int, Event]], event: Array, columns: dict[str, Array]) -> ThreadData:
    """event: the number of each row's event; columns: of the rows, rising by time."""
    data = ThreadData()
    for nth, rows in rows_by_key(event).items():
        row, of = events[nth]
        mine = {name: column[rows] for name, column in columns.items()}
        fields = mine.pop("fields")
        table = Table(SAMPLES, mine)
        if row == 0:
            data.samples = table
        else:
            data.other_samples[row] = table
        if of.kind == "tracepoint":
            kind = MarkerType(of.name, "An event that perf recorded", FIELDS, "{fields}")
            said = {"ts": mine["ts"], "stack": mine["stack"], "fields": fields, "cpu": mine["cpu"]}
            data.markers[kind] = Table(kind.spec, said)
    return data
