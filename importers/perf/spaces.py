"""Map: what the addresses of each process stand for, and from when to when."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from pathlib import Path

import numpy as np

from traceferry.importers.perf.natives import Natives
from traceferry.importers.perf.recording import DUMP, JITTED_OBJECT, Comm, Fork, Mmap, Recording
from traceferry.jit.names import producer_of
from traceferry.model import Array, CodeReader, Trace

KERNEL_SPACE = 0
OTHER_SPACE = 1  # guests and hypervisors
FIRST_PROCESS = 2

# Which layer names an address, where several hold it.
MAPPED, LISTED, JITTED = range(3)
BEGINNING = -(1 << 62)
NEVER = 1 << 62
# Compilers run new code a moment before its record is written.
ANNOUNCED_LATE_NS = 1_000_000_000
# Addresses and the regions over them, all in all: what is beyond is damage.
MAX_PAIRS = 1 << 22
# Forks of forks: what is beyond is damage, or a circle.
MAX_ANCESTORS = 64

ANONYMOUS = re.compile(r"//anon|\[anon:.*|/memfd:.*|\[heap\]|\[stack.*|/dev/zero.*|/SYSV.*")

Frames = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Region:
    """Addresses [begin, end) that stand for something from `start` to `until`; frames: of an address in it, None for
    memory without a name; prepare: told of all that will be asked for, where that is quicker."""

    begin: int
    end: int
    start: int
    until: int
    layer: int
    frames: Callable[[int], Frames] | None
    prepare: Callable[[Array], None] | None = None


@dataclass
class Version:
    """What an address stands for from a time on. is_late: code that is announced only after that time."""

    start: int
    frames: Frames | None
    is_late: bool = False


@dataclass
class Spaces:
    """pids: of the processes, whose spaces count from FIRST_PROCESS; offset_ns: onto the trace's clock."""

    recording: Recording
    trace: Trace
    natives: Natives
    pids: Sequence[int]
    offset_ns: int
    map_files: Callable[[int], str]
    too_many: int = field(default=0, init=False)

    def versions(self, spaces: Array, addresses: Array, first: Array, last: Array) -> Iterator[list[Version]]:
        """For each key what it stands for, by time, from the first to the last time it is asked for; never empty."""
        order = np.lexsort((addresses, spaces))
        bounds = np.searchsorted(spaces[order], np.arange(FIRST_PROCESS + len(self.pids) + 1))
        found: list[list[Version]] = [[]] * len(order)
        for space, (begin, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
            keys = order[begin:end]
            if len(keys):
                of_space = self._of_space(space, addresses[keys], first[keys], last[keys])
                for key, versions in zip(keys.tolist(), of_space, strict=True):
                    found[key] = versions
        yield from found

    def _of_space(self, space: int, addresses: Array, first: Array, last: Array) -> Iterator[list[Version]]:
        """addresses: rising."""
        candidates: list[list[Region]] = [[] for _ in range(len(addresses))]
        for region, begin, end in self._regions_over(space, addresses):
            self._n_pairs += end - begin
            if self._n_pairs > MAX_PAIRS:
                self.too_many += 1
                continue
            for nth in range(begin, end):
                candidates[nth].append(region)
        columns = (addresses.tolist(), first.tolist(), last.tolist())
        for regions, address, first_ts, last_ts in zip(candidates, *columns, strict=True):
            yield timeline(regions, address, first_ts, last_ts)

    def _regions_over(self, space: int, addresses: Array) -> Iterator[tuple[Region, int, int]]:
        """The regions that hold any of the addresses, with the first and last of these."""
        if space == OTHER_SPACE:
            return
        regions = self._kernel() if space == KERNEL_SPACE else self._mapped(self.pids[space - FIRST_PROCESS])
        values: list[int] = addresses.tolist()
        for region in regions:
            first, last = bisect_left(values, region.begin), bisect_left(values, region.end)
            if last > first:
                if region.prepare is not None:
                    region.prepare(addresses[first:last])
                yield region, first, last
        if space != KERNEL_SPACE:
            yield from self._jitted(self.pids[space - FIRST_PROCESS], addresses)

    # ------------------------------------------------------------ what is mapped

    def _kernel(self) -> Iterator[Region]:
        for mapped in self.recording.maps:
            if mapped.pid == -1:
                yield self._region(mapped, BEGINNING, NEVER)
        gone: dict[int, int] = {}
        for symbol in reversed(self.recording.ksymbols):
            ts = symbol.ts + self.offset_ns
            if symbol.unregister:
                gone[symbol.address] = ts
            else:
                frames, end = self.natives.of_kernel(symbol.name), symbol.address + symbol.length
                until = gone.get(symbol.address, NEVER)
                yield Region(symbol.address, end, ts, until, LISTED, lambda _, frames=frames: frames)  # type: ignore[misc]

    def _mapped(self, pid: int) -> Iterator[Region]:
        jitted = any(len(rows) for _, rows, _ in self._code_of(pid))
        for mapped, until in self._maps_of(pid):
            if not (jitted and JITTED_OBJECT.fullmatch(Path(mapped.path).name)):
                yield self._region(mapped, mapped.ts + self.offset_ns, until)
        yield from self._listed(read_map_file(self.map_files(pid)))

    def _listed(self, lines: Iterable[tuple[int, int, str]]) -> Iterator[Region]:
        """Of a perf-PID.map: compilers write the same names there as into a jitdump."""
        listed = list(lines)
        producer = producer_of([name for _, _, name in listed])
        for begin, size, text in listed:

            def frames(_: int, text: str = text) -> Frames:
                return self.natives.jitted(producer.parse(text))

            yield Region(begin, begin + size, BEGINNING, NEVER, LISTED, frames)

    def _region(self, mapped: Mmap, start: int, until: int) -> Region:
        end, natives = mapped.start + mapped.length, self.natives
        if ANONYMOUS.fullmatch(mapped.path):
            return Region(mapped.start, end, start, until, MAPPED, None)
        frames, prepare = partial(natives.of_map, mapped), partial(natives.prepare, mapped)
        return Region(mapped.start, end, start, until, MAPPED, frames, prepare)

    def _maps_of(self, pid: int) -> Iterator[tuple[Mmap, int]]:
        """(mapping, until when): a fork's child begins with its parent's; a new program ends all before."""
        for owner, forked in reversed(self._ancestors(pid)):
            for mapped in self._maps_by_pid.get(owner, ()):
                until = self._next_program(owner, mapped.ts)
                if mapped.ts <= forked < until or owner == pid:
                    until = self._next_program(pid, mapped.ts)
                    yield mapped, NEVER if until >= NEVER else until + self.offset_ns

    def _ancestors(self, pid: int) -> list[tuple[int, int]]:
        """(process, until when its memory is that of pid, too), from the process itself on."""
        chain = {pid: NEVER}
        child, until = pid, NEVER
        while (fork := self._forks.get(child)) is not None and fork.ppid not in chain and len(chain) < MAX_ANCESTORS:
            if child != pid and self._next_program(child, fork.ts) <= until:
                break
            child, until = fork.ppid, min(fork.ts, until)
            chain[child] = until
        return list(chain.items())

    def _next_program(self, pid: int, ts: int) -> int:
        execs = self._execs.get(pid, ())
        nth = bisect_right(execs, ts)
        return execs[nth] if nth < len(execs) else NEVER

    def __post_init__(self) -> None:
        self._n_pairs = 0
        self._places: dict[int, Array] = {}
        self._maps_by_pid: dict[int, list[Mmap]] = {}
        self._dumps_of: dict[int, set[str]] = {}
        for mapped in self.recording.maps:
            name = Path(mapped.path).name
            if DUMP.fullmatch(name):
                self._dumps_of.setdefault(mapped.pid, set()).add(name)
            elif mapped.is_exec:
                self._maps_by_pid.setdefault(mapped.pid, []).append(mapped)
        self._execs: dict[int, list[int]] = {}
        for task in self.recording.tasks:
            if isinstance(task, Comm) and task.is_exec and task.pid == task.tid:
                self._execs.setdefault(task.pid, []).append(task.ts)
        self._forks = {
            task.pid: task for task in self.recording.tasks if isinstance(task, Fork) and task.pid != task.ppid
        }

    # ------------------------------------------------------------ what was compiled

    def _code_of(self, pid: int) -> Iterator[tuple[int, Array, int]]:
        """(owner, rows of the trace's places, until when): a fork's child has the code that its parent compiled."""
        for owner, forked in self._ancestors(pid):
            yield owner, self._places_of(owner), forked

    def _places_of(self, pid: int) -> Array:
        """Rows of the trace's places: of the dumps that the process mapped, and those of its number that none did."""
        found = self._places.get(pid)
        if found is None:
            found = self._places[pid] = self._find_places_of(pid)
        return found

    def _find_places_of(self, pid: int) -> Array:
        trace = self.trace
        code = trace.places["code"]
        if len(code) == 0 or not (pid in self._dumps_of or np.any(trace.code["pid"] == pid)):
            return np.zeros(0, np.int64)
        mapped = {name for names in self._dumps_of.values() for name in names}
        lib_names = [trace.strings[name] for name in trace.libs["name"].tolist()]
        lib = trace.symbols["lib"][trace.code["symbol"][code]]
        own = np.array([name in self._dumps_of.get(pid, ()) for name in lib_names], bool)
        free = np.array([name not in mapped for name in lib_names], bool)
        is_mine = own[lib] | (free[lib] & (trace.code["pid"][code] == pid))
        return np.flatnonzero(is_mine & (trace.code["size"][code] > 0))

    def _jitted(self, pid: int, addresses: Array) -> Iterator[tuple[Region, int, int]]:
        for owner, rows, forked in self._code_of(pid):
            if len(rows):
                yield from self._jitted_by(owner, rows, forked, pid, addresses)

    def _jitted_by(
        self, owner: int, rows: Array, forked: int, pid: int, addresses: Array
    ) -> Iterator[tuple[Region, int, int]]:
        trace, zero = self.trace, self.offset_ns
        places = trace.places.table().take(rows)
        size = trace.code["size"][places["code"]]
        end = places["address"] + size.astype(np.uint64)
        first, last = np.searchsorted(addresses, places["address"]), np.searchsorted(addresses, end)
        for nth in np.flatnonzero(last > first).tolist():
            code, begin = int(places["code"][nth]), int(places["address"][nth])
            start, until = int(places["start_ts"][nth]), int(places["end_ts"][nth])
            until = until if until >= 0 else NEVER
            if owner != pid:
                if not start - zero <= forked < min(until - zero, self._next_program(owner, start - zero)):
                    continue
                until = NEVER
            replaced = self._next_program(pid, start - zero)
            until = until if replaced >= NEVER else min(until, replaced + zero)
            reader = self._reader(code)
            region = Region(
                begin, int(end[nth]), start, until, JITTED,
                lambda a, reader=reader, code=code, begin=begin: reader.frames_at(code, a - begin),  # type: ignore[misc]
            )  # fmt: skip
            yield region, int(first[nth]), int(last[nth])

    def _reader(self, code: int) -> CodeReader:
        return next(reader for reader in self.trace.code_readers if code in reader.rows)


def timeline(regions: Sequence[Region], address: int, first_ts: int = BEGINNING, last_ts: int = NEVER) -> list[Version]:
    """What an address stands for: of the regions that hold it at a time the highest layer's, and there the latest. Only
    what it stands for from first_ts to last_ts is looked up."""
    if not regions:
        return [Version(BEGINNING, None)]
    if len(regions) == 1 and regions[0].layer != JITTED and regions[0].until == NEVER:
        return [Version(BEGINNING, _frames(regions[0], address))]
    stretches = list(_stretches(sorted(regions, key=lambda region: region.start)))
    ends = [start for start, _, _ in stretches[1:]] + [NEVER + 1]
    versions: list[Version] = []
    for (start, region, is_late), end in zip(stretches, ends, strict=True):
        if end <= first_ts or start > last_ts:
            continue
        frames = _frames(region, address)
        if not versions or frames != versions[-1].frames or is_late != versions[-1].is_late:
            versions.append(Version(start, frames, is_late))
    return versions


def _stretches(ordered: Sequence[Region]) -> Iterator[tuple[int, Region | None, bool]]:
    """(from when, which region, whether its code is announced only later). ordered: by their start."""
    # What is mapped first was there before: perf lists what it finds at its own time.
    before = ordered[0] if ordered[0].layer != JITTED else None
    begun = BEGINNING
    yield begun, before, False
    for point, region in _best_by_time(ordered):
        nothing = before is None or before.frames is None
        if nothing and region is not None and region.layer == JITTED and region.start == point:
            # A moment before code is announced, nothing else being there, it is that code.
            yield max(point - ANNOUNCED_LATE_NS, begun), region, True
        if region is not before:
            yield point, region, False
        before, begun = region, point


def _best_by_time(ordered: Sequence[Region]) -> Iterator[tuple[int, Region | None]]:
    """When regions begin or end, which one holds from then on. ordered: by their start: of one layer the last does."""
    points = sorted({point for region in ordered for point in (region.start, region.until) if point < NEVER})
    holding: list[tuple[int, int]] = []  # a heap of (-layer, -place); what has ended goes when it comes to the top
    nth = 0
    for point in points:
        while nth < len(ordered) and ordered[nth].start <= point:
            heappush(holding, (-ordered[nth].layer, -nth))
            nth += 1
        while holding and ordered[-holding[0][1]].until <= point:
            heappop(holding)
        yield point, ordered[-holding[0][1]] if holding else None


def _frames(region: Region | None, address: int) -> Frames | None:
    return region.frames(address) if region is not None and region.frames is not None else None


def read_map_file(text: str) -> Iterator[tuple[int, int, str]]:
    """(address, size, name) of each line of a perf-PID.map: hex, hex, and the rest of the line."""
    for line in text.splitlines():
        words = line.split(" ", 2)
        try:
            begin, size = int(words[0], 16), int(words[1], 16)
        except (ValueError, IndexError):
            continue
        if len(words) == 3 and words[2] and 0 <= begin < 1 << 64 and 0 < size < 1 << 32:
            yield begin, size, words[2]
