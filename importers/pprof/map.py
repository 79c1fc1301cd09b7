"""Map: sample types become events, samples threads by their labels; libraries name what has no function."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import partial
from typing import NamedTuple

import numpy as np

from traceferry.files.source import Source
from traceferry.importers.pprof import layout
from traceferry.importers.pprof._messages import sample
from traceferry.importers.pprof.decode import Location, Profile, dropped, kept, read_profile
from traceferry.importers.pprof.layout import message
from traceferry.libraries.library import Library
from traceferry.libraries.recorded_files import Recorded
from traceferry.libraries.search import Libraries
from traceferry.model import Array, Clock, Event, Input, TraceBuilder
from traceferry.model.categories import RUNTIME, category_of_file
from traceferry.reading import ImportContext
from traceferry.symbolication.build_id import debug_id_of
from traceferry.timeline.stack_profiles import MOST, Place, StackProfile, samples_of, spread, tree_order

# unit of pprof: (unit of an event, how many of these it is).
UNITS = {
    "count": ("count", 1), "nanoseconds": ("ns", 1), "microseconds": ("ns", 10**3), "milliseconds": ("ns", 10**6),
    "seconds": ("ns", 10**9), "bytes": ("bytes", 1), "kilobytes": ("bytes", 1024), "megabytes": ("bytes", 1 << 20),
}  # fmt: skip
PROCESS, PID = ("process", "process_name", "comm"), ("pid", "process id", "process_id")
THREAD, TID = ("thread", "thread name", "thread_name"), ("tid", "thread id", "thread_id", "os_thread_id")
NUMBERED = re.compile(r"(.*) \((\d{1,15})\)")
# Threads that labels make; those of further ones are left out.
MOST_LABELLED = 256
GO_RUNTIME = re.compile(
    r"(?:internal/)?runtime[./].*|_rt0_\w+|gcWriteBarrier|aeshashbody|memeqbody|cmpbody|indexbytebody"
)


class Owner(NamedTuple):
    """The owner of samples, as labels tell: numbers and names, -1 and "" are unknown."""

    process: str = ""
    pid: int = -1
    thread: str = ""
    tid: int = -1


def to_trace(source: Source, trace: TraceBuilder, context: ImportContext) -> None:
    """Adds the profile. Raises FormatError for another format."""
    _Mapping(source, trace, context).add()


class _Mapping:
    def __init__(self, source: Source, trace: TraceBuilder, context: ImportContext) -> None:
        self.source, self.trace = source, trace
        self.held: Profile = read_profile(source)
        self.time_ns = min(max(self.held.number(layout.TIME_NS), 0), 1 << 61)
        clock = Clock("realtime", 0) if self.time_ns else None
        self.profile = StackProfile(trace, Input(source.name, "pprof", "", ""), clock)
        self.find = partial(Libraries, trace, context, source)
        self.libraries: Libraries | None = None
        self.lost: dict[str, int] = defaultdict(int)
        self.n_bad = 0
        self._frames: dict[int, list[int]] = {}
        self._stacks: dict[tuple[int, int], int] = {}
        self._libs: dict[int, int] = {}

    def add(self) -> None:
        held, trace = self.held, self.trace
        start = self.time_ns + self.profile.offset_ns
        for key, value in (("comment", "\n".join(held.comments)), ("doc_url", held.text(held.number(layout.DOC_URL)))):
            if value:
                trace.attributes.setdefault(key, value)
        order, rows = self._events()
        self._name_locations()
        length = min(max(held.number(layout.DURATION_NS), 0), 1 << 60)
        for owner, (stacks, values) in self._samples().items():
            stack, table = np.array(stacks, np.int32), np.array(values, np.int64).reshape(len(values), -1)
            in_order = tree_order(trace.stacks["prefix"], stack)
            stack, table = stack[in_order], table[in_order]
            amounts: dict[int, Array] = {}
            for nth, row in zip(order, rows, strict=True):
                amounts[row] = amounts.get(row, 0) + table[:, nth]
            ts, end = spread(table[:, order[0]], start, length)
            name = owner.process or self._program()
            process = self.profile.process(owner[:2], name, owner.pid if owner.pid >= 0 else None, start, end)
            data = samples_of(trace.events, ts, stack, amounts)
            thread = owner.thread or process.name
            self.profile.add_thread(process, thread, owner.tid if owner.tid >= 0 else None, data, len(ts) * len(rows))
        self._note()

    def _program(self) -> str:
        first = next((one.path for one in self.held.mappings.values() if one.path), "")
        return first.rpartition("/")[2] or self.source.name

    def _note(self) -> None:
        report, path = self.trace.report, self.source.path
        if self.libraries is not None:
            self.libraries.note_problems()
        report.note("times_made", len(self.held.samples), where=path)
        report.note("bad_rows", self.n_bad + self.held.unknown, where=path, detail=f"{path}: samples or their parts")
        for what, n in self.lost.items():
            report.note("members_not_read", n, where=f"{path} {what}", detail=what)
        if self.held.stopped >= 0:
            report.note("truncated", where=path, offset=self.held.stopped, detail=f"{path}: the rest is no field")

    # ------------------------------------------------------------ what is counted

    def _events(self) -> tuple[list[int], list[int]]:
        """Returns the sample types, the main one first, and the event of each. The main one is what pprof shows, or
        how often that was, where this is counted, too."""
        held = self.held
        units = [UNITS.get(unit, (unit or "count", 1)) for _, unit in held.types]
        wanted = held.text(held.number(layout.DEFAULT_TYPE))
        default = next((nth for nth, (name, _) in enumerate(held.types) if wanted and name == wanted), len(units) - 1)
        main = default - 1 if default > 0 and units[default][0] != "count" == units[default - 1][0] else default
        is_timed = UNITS.get(held.period_type[1], ("", 0))[0] == "ns"
        period = min(max(held.number(layout.PERIOD), 0), MOST)
        order = [main, *(nth for nth in range(len(units)) if nth != main)]
        row_of: dict[int, int] = {}
        for nth in order:
            (name, _), (unit, _) = held.types[nth], units[nth]
            leader = row_of.get(nth - 1, -1) if unit != "count" and nth and units[nth - 1][0] == "count" else -1
            leader = leader if leader < 0 or self.trace.events[leader].leader < 0 else -1
            event = Event(name or "samples", "samples" if nth == main and unit == "count" else unit, leader=leader)
            event = event._replace(kind="clock" if unit == "ns" else "other")
            if nth == main and is_timed:
                event = event._replace(interval_ns=period)
            row_of[nth] = self.profile.add_event(event)
        return order, [row_of[nth] for nth in order]

    def _samples(self) -> dict[Owner, tuple[list[int], list[list[int]]]]:
        """Returns the samples of each owner: stacks and values, in the units of the events."""
        held, n_types = self.held, len(self.held.types)
        scale = [UNITS.get(unit, ("", 1))[1] for _, unit in held.types]
        cut, why = dropped(held)
        self.lost |= {why: 1} if why else {}
        found: dict[Owner, tuple[list[int], list[list[int]]]] = {}
        owners: dict[tuple[bytes, ...], Owner] = {}
        is_scaled = any(one != 1 for one in scale)
        for begin, end in held.samples:
            locations, values, labels, is_whole = sample(held.data, begin, end)
            if len(values) != n_types or not is_whole or any(not 0 <= value <= MOST for value in values):
                self.n_bad += 1
                values = [min(max(value, 0), MOST) for value in [*values, *[0] * n_types][:n_types]]
            if is_scaled:
                values = [min(value * one, MOST) for value, one in zip(values, scale, strict=True)]
            key = tuple(bytes(held.data[at:to]) for at, to in labels) if labels else ()
            if key not in owners:
                owners[key] = self._owner(key, len({*owners.values()}))
            stacks, table = found.setdefault(owners[key], ([], []))
            stacks.append(self._stack(locations, cut))
            table.append(values)
        return found

    def _owner(self, labels: tuple[bytes, ...], n_known: int) -> Owner:
        texts, numbers = dict[str, str](), dict[str, int]()
        for label in labels:
            one = message(memoryview(label), 0, len(label))
            key = self.held.text(one.number(1))
            if one.number(2):
                texts[key] = self.held.text(one.number(2))
            else:
                numbers[key] = one.number(3)
        process, thread = (next((texts.pop(k) for k in keys if k in texts), "") for keys in (PROCESS, THREAD))
        pid, tid = (next((n for k in keys if (n := numbers.pop(k, -1)) >= 0), -1) for keys in (PID, TID))
        if ours := NUMBERED.fullmatch(process):
            process, pid = ours[1], int(ours[2])
        if ours := NUMBERED.fullmatch(thread):
            thread, tid = ours[1], int(ours[2])
        for key in numbers:
            self.lost[f"labels {key}"] += 1
        if texts and n_known >= MOST_LABELLED:
            for key in texts:
                self.lost[f"labels {key}"] += 1
            texts = {}
        further = ", ".join(f"{key}={value}" for key, value in sorted(texts.items()))
        return Owner(process, pid, f"{thread} {further}".strip(), tid)

    # ------------------------------------------------------------ where it was

    def _stack(self, locations: list[int], cut: dict[int, int]) -> int:
        stay = -1
        if cut:
            locations, stay = kept(locations, cut)
        stack, known = -1, self._stacks
        for nth in range(len(locations) - 1, -1, -1):
            frames = self._frames.get(locations[nth])
            if frames is None:
                self.n_bad += 1
                continue
            for frame in frames if nth or stay < 0 else frames[:stay]:
                found = known.get((stack, frame))
                if found is None:
                    found = known[stack, frame] = self.trace.stacks.intern(prefix=stack, frame=frame)
                stack = found
        return stack

    def _name_locations(self) -> None:
        """Enters the frames of all locations, those of which libraries know the functions, too."""
        unknown: dict[int, list[int]] = defaultdict(list)
        for number, location in self.held.locations.items():
            if not location.lines and location.mapping in self.held.mappings:
                unknown[location.mapping].append(number)
            self._frames[number] = self._rows(location)
        for mapping, numbers in unknown.items():
            self._ask(mapping, numbers)

    def _ask(self, mapping: int, numbers: list[int]) -> None:
        of = self.held.mappings[mapping]
        if not of.path:
            return
        self.libraries = self.libraries or self.find()
        library: Library = self.libraries.library(Recorded(of.path.replace("\0", ""), _hex(of.build_id)))
        library.row = self._lib(mapping)
        locations = [self.held.locations[number] for number in numbers]
        offsets = np.array([max(self._offset(one), 0) for one in locations], np.uint64)
        _, found = library.found_at(offsets, self.libraries.demangle)
        for number, location, (frames, _) in zip(numbers, locations, found, strict=True):
            if frames:
                self._frames[number] = [
                    self._row(location, Place(name, path, line, depth=depth))
                    for depth, (name, path, line) in enumerate(frames)
                ]

    def _rows(self, location: Location) -> list[int]:
        if not location.lines:
            of = self.held.mappings.get(location.mapping)
            name = of.path.rpartition("/")[2] if of is not None else ""
            address = self._offset(location) if name else location.address & (1 << 64) - 1
            return [self._row(location, Place(f"{name}+{address:#x}" if name else f"{address:#x}"))]
        return [
            self._row(location, Place(one.name or "[unknown]", one.path, one.line, one.column, one.first_line, depth=n))
            for n, one in enumerate(location.lines)
        ]

    def _row(self, location: Location, place: Place) -> int:
        lib = self._lib(location.mapping)
        address = self._offset(location) if lib >= 0 else -1
        category = RUNTIME if place.path.endswith((".go", ".s")) and GO_RUNTIME.fullmatch(place.name) else ""
        if not place.path and lib >= 0:
            category = category_of_file(self.held.mappings[location.mapping].path)
        return self.profile.frames.row(place._replace(lib=lib, address=address, category=category))

    def _offset(self, location: Location) -> int:
        of = self.held.mappings.get(location.mapping)
        offset = location.address - of.start + of.offset if of is not None and location.address else -1
        return offset if 0 <= offset <= MOST else -1

    def _lib(self, mapping: int) -> int:
        if mapping not in self._libs:
            of, intern = self.held.mappings.get(mapping), self.trace.strings.intern
            self._libs[mapping] = -1
            if of is not None and of.path:
                build_id = _hex(of.build_id)
                self._libs[mapping] = self.trace.libs.intern(
                    name=intern(of.path.rpartition("/")[2] or of.path),
                    debug_id=intern(debug_id_of(build_id)) if build_id else -1,
                    code_id=intern(of.build_id) if of.build_id else -1,
                )
        return self._libs[mapping]


def _hex(text: str) -> str:
    """Returns a build id that is one: Go's own are no hex."""
    return text.lower() if len(text) % 2 == 0 and re.fullmatch("[0-9a-fA-F]{8,80}", text) else ""
