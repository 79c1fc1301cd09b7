"""Map: sample types become events, samples threads by their labels; libraries name what has no function."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.files.source import Source
from traceferry.importers.pprof import layout
from traceferry.importers.pprof._messages import intern_stacks
from traceferry.importers.pprof.decode import Line, Location, Profile, Samples, cuts, read_profile
from traceferry.libraries.library import Library, answers_of
from traceferry.libraries.recorded_files import Recorded
from traceferry.libraries.search import Libraries
from traceferry.model import Array, Clock, Event, Input, TraceBuilder, rows_by_key
from traceferry.model.categories import RUNTIME, category_of_file
from traceferry.model.tables import index_of
from traceferry.native.nodes import NodeTable
from traceferry.reading import ImportContext
from traceferry.symbolication.build_id import debug_id_of
from traceferry.timeline.stack_profiles import MOST, Place, StackProfile, as_samples, samples_of, spread
from traceferry.timeline.stacks import StackTable

# Units as writers of pprof's files call them, without an s at the end (internal/measurement of pprof): (unit of an
# event, how many of these it is).
UNITS = {
    **dict.fromkeys(("count", "sample", "object", ""), ("count", 1)),
    **dict.fromkeys(("nanosecond", "ns"), ("ns", 1)),
    **dict.fromkeys(("microsecond", "us", "\u00b5s", "\u03bcs", "usec"), ("ns", 10**3)),
    **dict.fromkeys(("millisecond", "ms", "msec"), ("ns", 10**6)),
    **dict.fromkeys(("second", "s", "sec"), ("ns", 10**9)),
    **dict.fromkeys(("byte", "b"), ("bytes", 1)), **dict.fromkeys(("kilobyte", "kbyte", "kb"), ("bytes", 1 << 10)),
    **dict.fromkeys(("megabyte", "mbyte", "mb"), ("bytes", 1 << 20)),
    **dict.fromkeys(("gigabyte", "gbyte", "gb"), ("bytes", 1 << 30)),
}  # fmt: skip
PROCESS, PID = ("process", "process_name", "comm"), ("pid", "process id", "process_id")
THREAD, TID = ("thread", "thread name", "thread_name"), ("tid", "thread id", "thread_id", "os_thread_id")
# What the amounts tell: the size of each object of a sample of a heap.
OF_AMOUNTS = {"bytes"}
NUMBERED = compiled_later(r"(.*) \((\d{1,15})\)")
# Of a location that says nothing of its function.
NO_LINE = Line("", "", 0, 0, 0)
# Threads that labels make; those of further ones are left out.
MOST_LABELLED = 256
GO_RUNTIME = compiled_later(
    r"(?:internal/)?runtime[./].*|_rt0_\w+|gcWriteBarrier|aeshashbody|memeqbody|cmpbody|indexbytebody"
)


class Owner(NamedTuple):
    """The owner of samples, as labels tell: numbers and names, -1 and "" are unknown; is_whole: of our own profiles, a
    process as a whole, as that of sizes."""

    process: str = ""
    pid: int = -1
    thread: str = ""
    tid: int = -1
    is_whole: bool = False


class _Owners:
    """The owners of samples, by the first of each. known: each once; make: see `_Mapping._owner`."""

    def __init__(self, make: Callable[[list[list[int]], int], Owner]) -> None:
        self._make = make
        self._lists = NodeTable()
        self._numbers: dict[Owner, int] = {}
        # By the numbers of lists of labels.
        self._of_list: dict[int, int] = {}

    @property
    def known(self) -> list[Owner]:
        return [*self._numbers]

    def of(self, piece: Samples) -> Array:
        """Returns int64: of each sample the number of its owner."""
        samples = np.ascontiguousarray(piece.labels[:, 0])
        ends = np.searchsorted(samples, np.arange(len(piece.ends)), side="right")
        words = np.ascontiguousarray(piece.labels[:, 1:]).view(np.int32)
        found = self._lists.intern_lists(words.ravel(), ends * words.shape[1])
        numbers, firsts, nth = np.unique(found, return_index=True, return_inverse=True)
        for at in np.argsort(firsts).tolist():
            number, row = int(numbers[at]), int(firsts[at])
            if number not in self._of_list:
                labels = piece.labels[ends[row - 1] if row else 0 : ends[row], 1:]
                owner = self._make(labels.tolist(), len(self._numbers))
                self._of_list[number] = self._numbers.setdefault(owner, len(self._numbers))
        return np.array([self._of_list[number] for number in numbers.tolist()], np.int64)[nth]


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
        self.n_bad = self.n_below = 0
        self._frames: dict[int, list[int]] = {}
        self._libs: dict[int, int] = {}

    def add(self) -> None:
        held, trace = self.held, self.trace
        start = self.time_ns + self.profile.offset_ns
        for key, value in (("comment", "\n".join(held.comments)), ("doc_url", held.text(held.number(layout.DOC_URL)))):
            if value:
                trace.attributes.setdefault(key, value)
        self._name_locations()
        length = min(max(held.number(layout.DURATION_NS), 0), 1 << 60)
        samples = _of_threads(self._samples())
        order, rows, steps = self._events(samples)
        place = StackTable(trace).places()
        for owner, (stack, table) in samples.items():
            in_order = np.argsort(place[stack], kind="stable")
            stack, table = stack[in_order], table[in_order]
            amounts: dict[int, Array] = {}
            for nth, row, step in zip(order, rows, steps, strict=True):
                amounts[row] = amounts.get(row, 0) + table[:, nth] // step
            ts, end = spread(table[:, order[0]], _unit_of(held.types[order[0]][1])[0], start, length)
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
        self.profile.note_empty()
        report, path = self.trace.report, self.source.path
        if self.libraries is not None:
            self.libraries.note_problems()
        report.note("below_zero", self.n_below, where=path, detail=f"{path}: samples")
        report.note("times_made", len(self.held.samples[0]), where=path)
        report.note("bad_rows", self.n_bad + self.held.unknown, where=path, detail=f"{path}: samples or their parts")
        for what, n in self.lost.items():
            report.note("members_not_read", n, where=f"{path} {what}", detail=what)
        if self.held.stopped >= 0:
            report.note("truncated", where=path, offset=self.held.stopped, detail=f"{path}: the rest is no field")

    # ------------------------------------------------------------ what is counted

    def _events(self, samples: dict[Owner, tuple[Array, Array]]) -> tuple[list[int], list[int], list[int]]:
        """Returns the sample types, the main one first, the event of each, and what its amounts are divided by. The
        main one is what pprof shows, or of times that are sampled how many samples that were."""
        held = self.held
        units = [_unit_of(unit) for _, unit in held.types]
        wanted = held.text(held.number(layout.DEFAULT_TYPE))
        default = next((nth for nth, (name, _) in enumerate(held.types) if wanted and name == wanted), len(units) - 1)
        unit, scale = _unit_of(held.period_type[1])
        is_timed = unit == "ns"
        is_counted = is_timed and default > 0 and (units[default - 1][0], units[default][0]) == ("count", "ns")
        main = default - 1 if is_counted else default
        period = min(max(held.number(layout.PERIOD), 0), MOST // scale) * scale
        order = [main, *(nth for nth in range(len(units)) if nth != main)]
        row_of: dict[int, int] = {}
        steps = [1] * len(order)
        for nth in order:
            (name, _), (unit, _) = held.types[nth], units[nth]
            if nth == main and unit != "count":
                is_sampled = is_timed and unit == "ns" and self._are_multiples(samples, nth, period)
                event = Event(name, "samples", period, "clock") if is_sampled else as_samples(name, unit)
                steps[0] = period if is_sampled else 1
                row_of[nth] = self.profile.add_event(event)
                continue
            leader = row_of.get(nth - 1, -1) if unit != "count" and nth and units[nth - 1][0] == "count" else -1
            leader = leader if leader < 0 or self.trace.events[leader].leader < 0 else -1
            event = Event(name or "samples", "samples" if nth == main and unit == "count" else unit, leader=leader)
            event = event._replace(kind="clock" if unit == "ns" else "other")
            if nth == main and is_timed:
                event = event._replace(interval_ns=period)
            row_of[nth] = self.profile.add_event(event)
        return order, [row_of[nth] for nth in order], steps

    def _are_multiples(self, samples: dict[Owner, tuple[Array, Array]], nth: int, period: int) -> bool:
        """Whether all amounts of a sample type are multiples of the time between two samples."""
        return period > 0 and all(not np.any(values[:, nth] % period) for _, values in samples.values())

    def _samples(self) -> dict[Owner, tuple[Array, Array]]:
        """Returns the samples of each owner: stacks, int32, and values, int64, in the units of the events."""
        held = self.held
        scale = np.array([_unit_of(unit)[1] for _, unit in held.types])
        stacks = StackTable(self.trace)
        located = self._frames_by_location()
        owners = _Owners(self._owner)
        parts: list[tuple[Array, Array, Array]] = []
        for piece in held.pieces():
            self.n_below += int(np.count_nonzero(np.any(piece.values < 0, axis=1)))
            self.n_bad += int(np.count_nonzero(piece.are_bad | np.any(piece.values > MOST, axis=1)))
            values = np.clip(piece.values, 0, MOST // scale) * scale
            stack = intern_stacks(stacks, self._rows_of(piece.locations), piece.ends, *located)
            parts.append((stack, values, owners.of(piece)))
        stacks.publish()
        if not parts:
            return {}
        stack, values, owner = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return {owners.known[nth]: (stack[rows], values[rows]) for nth, rows in rows_by_key(owner).items()}

    def _owner(self, labels: list[list[int]], n_known: int) -> Owner:
        """labels: (key, text, number) of each."""
        texts, numbers = dict[str, str](), dict[str, int]()
        for of_key, text, number in labels:
            key = self.held.text(of_key)
            if text:
                texts[key] = self.held.text(text)
            else:
                numbers[key] = number
        process, thread = (next((texts.pop(k) for k in keys if k in texts), "") for keys in (PROCESS, THREAD))
        pid, tid = (next((n for k in keys if (n := numbers.pop(k, -1)) >= 0), -1) for keys in (PID, TID))
        is_whole = False
        if ours := NUMBERED.fullmatch(process):
            process, pid, is_whole = ours[1], int(ours[2]), not thread and not texts
        if ours := NUMBERED.fullmatch(thread):
            thread, tid = ours[1], int(ours[2])
        for key in (key for key in numbers if key not in OF_AMOUNTS):
            self.lost[f"labels {key}"] += 1
        if texts and n_known >= MOST_LABELLED:
            for key in texts:
                self.lost[f"labels {key}"] += 1
            texts = {}
        further = ", ".join(f"{key}={value}" for key, value in sorted(texts.items()))
        return Owner(process, pid, f"{thread} {further}".strip(), tid, is_whole)

    # ------------------------------------------------------------ where it was

    def _frames_by_location(self) -> tuple[Array, Array, Array]:
        """Returns, of the locations in the order of their numbers: (int32: their frames, the outermost of each first;
        int64: where each location's end; int64: how many stay where samples are cut, -1: all)."""
        cut, why = cuts(self.held)
        self.lost |= {why: 1} if why else {}
        frames = np.array([frame for number in self._numbers for frame in self._frames[number]], np.int32)
        ends = np.cumsum([len(self._frames[number]) for number in self._numbers], dtype=np.int64)
        return frames, ends, np.array([cut.get(number, -1) for number in self._numbers], np.int64)

    def _rows_of(self, numbers: Array) -> Array:
        """Returns int64: which of the locations these are; -1 is none."""
        row = index_of(np.array(self._numbers, np.int64), numbers)
        self.n_bad += int(np.count_nonzero(row < 0))
        return row

    def _name_locations(self) -> None:
        """Enters the frames of all locations, those of which libraries know the functions, too."""
        unknown: dict[int, list[int]] = defaultdict(list)
        for number, location in self.held.locations.items():
            if not location.has_names and location.mapping in self.held.mappings:
                unknown[location.mapping].append(number)
            self._frames[number] = self._rows(location)
        self._numbers = sorted(self._frames)
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
        for number, location, (frames, _) in zip(numbers, locations, answers_of(found), strict=True):
            if frames:
                places = zip_longest(frames, location.lines if len(frames) == len(location.lines) else ())
                self._frames[number] = [
                    self._row(location, _placed(Place(name, path, line, depth=depth), told))
                    for depth, ((name, path, line), told) in enumerate(places)
                ]

    def _rows(self, location: Location) -> list[int]:
        unnamed = self._unnamed(location)
        return [
            self._row(location, Place(one.name or unnamed, one.path, one.line, one.column, one.first_line, depth=n))
            for n, one in enumerate(location.lines or [NO_LINE])
        ]

    def _unnamed(self, location: Location) -> str:
        """Returns what stands for a function without a name."""
        if location.lines and not location.address:
            return "[unknown]"
        of = self.held.mappings.get(location.mapping)
        name = of.path.rpartition("/")[2] if of is not None else ""
        return f"{name}+{self._offset(location):#x}" if name else f"{location.address & (1 << 64) - 1:#x}"

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


def _of_threads(samples: dict[Owner, tuple[Array, Array]]) -> dict[Owner, tuple[Array, Array]]:
    """Returns the samples with those of a whole process at its first thread, if it has any. Of each process, threads
    whose numbers are known come first, so that no other has these."""
    of_process: dict[tuple[str, int], list[Owner]] = defaultdict(list)
    for owner in samples:
        of_process[owner[:2]].append(owner)
    found: dict[Owner, tuple[Array, Array]] = {}
    for owners in of_process.values():
        first, *others = sorted(owners, key=lambda owner: (owner.is_whole, owner.tid < 0))
        found[first] = samples[first]
        for owner in others:
            if owner.is_whole:
                (stack, values), (more, more_values) = found[first], samples[owner]
                found[first] = np.concatenate((stack, more)), np.concatenate((values, more_values))
            else:
                found[owner] = samples[owner]
    return found


def _placed(place: Place, told: Line | None) -> Place:
    """Returns a function with the place that the profile tells, if its library tells none."""
    return place if told is None or place.path else place._replace(path=told.path, line=told.line, column=told.column)


def _unit_of(unit: str) -> tuple[str, int]:
    """Returns (the unit of an event, how many of these it is)."""
    name = unit.strip().lower()
    return UNITS.get(name) or UNITS.get(name.removesuffix("s")) or (unit, 1)


def _hex(text: str) -> str:
    """Returns a build id that is one: Go's own are no hex."""
    return text.lower() if len(text) % 2 == 0 and re.fullmatch("[0-9a-fA-F]{8,80}", text) else ""
