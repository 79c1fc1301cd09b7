"""Reads what mprof-report prints, section by section.

Everything is as it prints it: microseconds, milliseconds, and numbers that are wrong in some
places. Classes and methods of one name are added up. Without `--verbose` it leaves out methods of less
than a millisecond, all but thirty classes of a heap shot, and all but a few counters. REPORTS adds the events;
`--debug` puts a line for each event before the report.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

REPORTS = (
    "--reports=header,jit,gc,sample,alloc,call,metadata,exception,monitor,thread,domain,context,heapshot,counters,stats"
)
_TITLES = (
    "Mono log profiler data", "JIT summary", "GC summary", "Statistical samples summary", "Allocation summary",
    "Method call summary", "Metadata summary", "Exception summary", "Monitor lock summary", "Thread summary",
    "Domain summary", "Context summary", "Heap shot summary", "Counters:", "Mlpd statistics", "Event details:",
)  # fmt: skip

_SAMPLED = re.compile(r"\s*(\d+) +[\d.]+ (.*)")
_ALLOCATED = re.compile(r" *(\d+) +(\d+) +(-?\d+) (.*)")
_SITE = re.compile(r"\t(\d+) (?:bytes|calls|throws|contentions) from:")
_SHOT = re.compile(
    r"\tHeap shot (\d+) at ([\d.]+) secs: size: (\d+), object count: (\d+), class count: (\d+), roots: (\d+)"
)
_GROWTH = re.compile(r" \(bytes: [+-]\d+, count: [+-]\d+\)$")
_LOCK = re.compile(r"\tLock object (\S+): (\d+) contentions")
_WAIT = re.compile(r"\t\t([\d.]+) secs total wait time, ([\d.]+) max")
_COLLECTIONS = re.compile(r"\tGen(\d) collections: (\d+), max time: (\d+)us, total time: (\d+)us")
_HANDLES = re.compile(r"\tGC handles (\w+): created: (\d+), destroyed: (\d+), max: (\d+)")
_EVENT = re.compile(r"\s+TYPE_\w+\s+TYPE_(\w+)\tcount\s+(\d+)\tmin\s+\d+\tmax\s+\d+\tbytes (\d+)")


class Allocated(NamedTuple):
    bytes: int
    objects: int


class Called(NamedTuple):
    """total_ms counts every level of a recursion."""

    total_ms: int
    self_ms: int
    calls: int


class Collections(NamedTuple):
    """Start to end, not the pause."""

    number: int
    max_us: int
    total_us: int


class Handles(NamedTuple):
    created: int
    destroyed: int
    most: int


class Waited(NamedTuple):
    contentions: int
    seconds: float
    longest: float


class Written(NamedTuple):
    """How many events of a kind there are, and how many bytes they have."""

    events: int
    bytes: int


class CounterValue(NamedTuple):
    """at: hours and so on since the start, with `--verbose` only."""

    at: str
    section: str
    name: str
    value: str


@dataclass
class HeapShot:
    seconds: float
    bytes: int
    objects: int
    roots: int
    classes: dict[str, Allocated] = field(default_factory=dict)


@dataclass
class Report:
    """`before`: lines in front of the report. `sites`: by the class, method or other row that they stand below."""

    before: list[str] = field(default_factory=list)
    header: dict[str, str] = field(default_factory=dict)
    jit: dict[str, int] = field(default_factory=dict)
    gc: dict[str, int] = field(default_factory=dict)
    collections: dict[int, Collections] = field(default_factory=dict)
    handles: dict[str, Handles] = field(default_factory=dict)
    samples: dict[str, int] = field(default_factory=dict)
    sampled: dict[str, int] = field(default_factory=dict)
    allocations: dict[str, Allocated] = field(default_factory=dict)
    methods: dict[str, Called] = field(default_factory=dict)
    metadata: dict[str, int] = field(default_factory=dict)
    exceptions: dict[str, int] = field(default_factory=dict)
    locks: dict[int, Waited] = field(default_factory=dict)
    monitors: dict[str, int] = field(default_factory=dict)
    threads: list[tuple[int, str]] = field(default_factory=list)
    domains: dict[int, str] = field(default_factory=dict)
    contexts: dict[int, int] = field(default_factory=dict)
    heap_shots: list[HeapShot] = field(default_factory=list)
    counters: list[CounterValue] = field(default_factory=list)
    events: dict[str, Written] = field(default_factory=dict)
    sites: dict[str, dict[tuple[str, ...], int]] = field(default_factory=dict)
    total_calls: int = 0
    total_allocated: Allocated | None = None


def parse(text: str) -> Report:
    """The report of one recording."""
    sections = _sections(text.splitlines())
    report = Report(before=sections[""])
    report.header = {key: value.strip() for key, value in _pairs(sections["Mono log profiler data"])}
    report.jit = _numbers(sections["JIT summary"])
    report.gc = _numbers(sections["GC summary"])
    report.metadata = _numbers(sections["Metadata summary"])
    report.exceptions = _numbers(sections["Exception summary"])
    report.monitors = _numbers(sections["Monitor lock summary"])
    _read_collections(report, sections["GC summary"])
    _read_samples(report, sections["Statistical samples summary"])
    report.allocations = _allocated(sections["Allocation summary"])
    _read_methods(report, sections["Method call summary"])
    _read_locks(report, sections["Monitor lock summary"])
    _read_names(report, sections)
    _read_heap_shots(report, sections["Heap shot summary"])
    report.counters = list(_counters(sections["Counters:"]))
    report.events = {
        match[1]: Written(int(match[2]), int(match[3]))
        for match in filter(None, map(_EVENT.fullmatch, sections["Event details:"]))
    }
    for title in ("Allocation summary", "Method call summary", "Exception summary", "Monitor lock summary"):
        _read_sites(report, sections[title])
    if match := re.search(r"^Total calls: (\d+)$", text, re.M):
        report.total_calls = int(match[1])
    if match := re.search(r"^Total memory allocated: (\d+) bytes in (\d+) objects$", text, re.M):
        report.total_allocated = Allocated(int(match[1]), int(match[2]))
    return report


def _sections(lines: Iterable[str]) -> dict[str, list[str]]:
    """Title → its lines; what comes before the first title is under ""."""
    sections: dict[str, list[str]] = defaultdict(list)
    title = ""
    for line in lines:
        if line in _TITLES:
            title = line
        elif line:
            sections[title].append(line)
    return sections


def _pairs(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The lines `<tab>key: value`."""
    for line in lines:
        key, colon, value = line.partition(": ")
        if colon and line.startswith("\t") and not line.startswith("\t\t"):
            yield key[1:], value


def _numbers(lines: Iterable[str]) -> dict[str, int]:
    return {key: int(value) for key, value in _pairs(lines) if re.fullmatch(r"-?\d+", value)}


def _read_collections(report: Report, lines: Iterable[str]) -> None:
    for line in lines:
        if match := _COLLECTIONS.match(line):
            generation, *numbers = map(int, match.groups())
            report.collections[generation] = Collections(*numbers)
        elif match := _HANDLES.match(line):
            report.handles[match[1]] = Handles(*map(int, match.groups()[1:]))


def _read_samples(report: Report, lines: Iterable[str]) -> None:
    for line in lines:
        if match := re.match(r"\t(\w+) hits: +(\d+)", line):
            report.samples[match[1]] = int(match[2])
        elif match := _SAMPLED.fullmatch(line):
            name = match[2].split("    ")[0]
            report.sampled[name] = report.sampled.get(name, 0) + int(match[1])


def _allocated(lines: Iterable[str]) -> dict[str, Allocated]:
    """Class → bytes and objects; the growth since the shot before is left out."""
    found: dict[str, Allocated] = {}
    for match in filter(None, map(_ALLOCATED.fullmatch, lines)):
        name = _GROWTH.sub("", match[4])
        before = found.get(name, Allocated(0, 0))
        found[name] = Allocated(before.bytes + int(match[1]), before.objects + int(match[2]))
    return found


def _read_methods(report: Report, lines: Iterable[str]) -> None:
    for match in filter(None, map(_ALLOCATED.fullmatch, lines)):
        before = report.methods.get(match[4], Called(0, 0, 0))
        numbers = zip(before, map(int, match.groups()[:3]), strict=True)
        report.methods[match[4]] = Called(*(known + new for known, new in numbers))


def _read_locks(report: Report, lines: Iterable[str]) -> None:
    lock, contentions = 0, 0
    for line in lines:
        if match := _LOCK.match(line):
            lock, contentions = _pointer(match[1]), int(match[2])
        elif match := _WAIT.match(line):
            report.locks[lock] = Waited(contentions, float(match[1]), float(match[2]))


def _read_names(report: Report, sections: dict[str, list[str]]) -> None:
    """Threads, domains and contexts."""
    for line in sections["Thread summary"]:
        if match := re.match(r'\tThread: (\S+), name: "(.*)"', line):
            report.threads.append((_pointer(match[1]), match[2]))
    for line in sections["Domain summary"]:
        if match := re.match(r'\tDomain: (\S+), friendly name: "(.*)"', line):
            report.domains[_pointer(match[1])] = match[2]
    for line in sections["Context summary"]:
        if match := re.match(r"\tContext: (\S+), domain: (\S+)", line):
            report.contexts[_pointer(match[1])] = _pointer(match[2])


def _read_heap_shots(report: Report, lines: Iterable[str]) -> None:
    rows: list[list[str]] = []
    for line in lines:
        if match := _SHOT.match(line):
            report.heap_shots.append(HeapShot(float(match[2]), int(match[3]), int(match[4]), int(match[6])))
            rows.append([])
        elif rows:
            # A first column of spaces: references and roots stand behind tabs.
            rows[-1].append(line.removeprefix("\t") if not line.startswith("\t\t") else "")
    for shot, classes in zip(report.heap_shots, rows, strict=True):
        shot.classes = _allocated(classes)


def _counters(lines: Iterable[str]) -> Iterator[CounterValue]:
    at = section = ""
    for line in lines:
        name, colon, value = line.strip().rpartition(" : ")
        if colon:
            yield CounterValue(at, section, name.rstrip(), value)
        elif re.fullmatch(r"\t[\d:.]+:", line):
            at = line.strip(" \t:")
        elif line.endswith(":"):
            section = line.strip().removesuffix(":")


def _read_sites(report: Report, lines: Iterable[str]) -> None:
    """The backtraces of `--traces`, under the row before them: `<tab>N calls from:`, then a frame a line."""
    row, number = "", 0
    frames: list[str] = []

    def close() -> None:
        if frames:
            sites = report.sites.setdefault(row, {})
            sites[tuple(frames)] = sites.get(tuple(frames), 0) + number
            frames.clear()

    for line in lines:
        if line.startswith("\t\t") and number:
            frames.append(line.strip())
            continue
        close()
        if match := _SITE.fullmatch(line):
            number = int(match[1])
        else:
            number = 0
            row = match[4] if (match := _ALLOCATED.fullmatch(line)) else line.strip().partition(":")[0]
    close()


def _pointer(text: str) -> int:
    return 0 if text == "(nil)" else int(text, 16)
