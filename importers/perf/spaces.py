"""Map: the meanings of the addresses of each program over time."""

from __future__ import annotations

import os
from collections.abc import Sequence, Set
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from traceferry.common.issue_kinds import STUBS_APART
from traceferry.importers.perf.clocks import clock_of
from traceferry.importers.perf.dumps import NO_ROWS, Key, code_by_dump, dump_name, dumps_by_program
from traceferry.importers.perf.map_files import MapFile, MapFiles, read_map_file
from traceferry.importers.perf.mappings import TOP, content_of, files_held, memory_without_files
from traceferry.importers.perf.natives import Natives, is_kernel
from traceferry.importers.perf.programs import OUTSIDE, Program, Programs
from traceferry.importers.perf.recording import JITTED_OBJECT, Mmap, Recording
from traceferry.importers.perf.regions import (
    BEGINNING,
    JITTED,
    LISTED,
    LOADED,
    MAPPED,
    MAX_PAIRS,
    NEVER,
    NO_REGIONS,
    NOTHING,
    Regions,
    ended_by,
    held,
    joined,
    regions_of,
    resolved_intervals,
)
from traceferry.libraries import vdso
from traceferry.libraries.recorded_files import DELETED
from traceferry.model import Array, TraceBuilder, containing_interval, distinct, index_of, rows_by_key
from traceferry.symbolication.jit_names import Producer, producer_of

KERNEL_SPACE = 0
OTHER_SPACE = 1  # hypervisors and the like; and where stacks end that are cut, from FIRST_ENDING on
GUEST_SPACE = 2  # guests, and such ends
FIRST_PROGRAM = 3
FIRST_ENDING = 1 << 63
MAX_ENDINGS = 1 << 20
# How the mappings of a guest's kernel are called, which lie at the addresses of the host's.
GUEST = "[guest."

# What an address can stand for, besides NOTHING: a byte of a mapped file (owner: its number in Natives.libraries), of
# the kernel or one of its modules (the mapping's order), a name (the number in AddressResolution.names), code of a
# compiler (the row of the trace's code).
OF_FILE, OF_KERNEL, OF_NAME, OF_CODE = range(NOTHING + 1, NOTHING + 5)

# A clock may be set while a program runs, and files have times of a coarser one.
CLOCK_STEPS_NS = 1_000_000_000
# How many programs' mappings are kept for their children.
MAX_KNOWN = 64
# Forks of forks: what is beyond is damage, or a circle.
MAX_ANCESTORS = 64
# A file that memfd_create made, which has no path: a program runs from it by fexecve, or a compiler writes to it.
MEMORY_FILE = "/memfd:"
OF_MEMORY_FILE = (
    "a program that runs from memory: record again with perf record --buildid-mmap, and give a copy of it, --symbols "
    "FILE; code of a runtime: let it write the names of its code from the start of the program, docs/record has the "
    "options"
)
# Of a program with a jitdump. Seen with Bun 1.4.5: a run of one second had no record of the function that was compiled
# last, which is where a short program spends its time; one of two seconds had it. Why is unclear. V8 writes 4 KB at a
# time: a Node 24 or Chromium that a signal ends has not written the rest.
NOT_IN_DUMP = (
    "its jitdump has no record of this code: what the runtime had not written when the program ended is lost (Bun: let "
    "the program run a few seconds longer; Node: end it by process.exit(), a signal kills it before it writes the "
    f"rest; .NET: {STUBS_APART}); stubs and trampolines of some runtimes have none"
)
# x86's KERNEL_IMAGE_SIZE, the largest.
KERNEL_SIZE = 1 << 30


class Listed(NamedTuple):
    """A name as it stands in a perf-PID.map; producer: who wrote that, None for a name that is to be shown as it is."""

    text: str
    producer: Producer | None
    category: str = "Kernel"


class AddressResolution(NamedTuple):
    """The meanings of the keys of samples, a row for each version, by key and time: key: int64; start: int64 ns, from
    when; is_late: recorded only after that; kind, owner: see OF_FILE; offset: uint64, in the owner. rank: the row's
    place by address space and address. libraries: (first rank, n): from this rank on the first n libraries are known.
    names: of OF_NAME. n_left_out: keys over which too much is mapped."""

    key: Array
    start: Array
    is_late: Array
    kind: Array
    owner: Array
    offset: Array
    rank: Array
    libraries: Sequence[tuple[int, int]]
    names: Sequence[Listed]
    n_left_out: int


# The columns of `AddressResolution`.
DTYPES = (np.int64, np.int64, np.bool_, np.int8, np.int64, np.uint64)


def resolve_addresses(
    spaces: Array, addresses: Array, first_ts: Array, last_ts: Array, memory: Memory
) -> AddressResolution:
    """spaces: int32, addresses: uint64: the keys; first_ts, last_ts: int64 ns, when each is asked for."""
    order = np.lexsort((addresses, spaces))
    bounds = np.searchsorted(spaces[order], np.arange(FIRST_PROGRAM + len(memory.programs.all) + 1)).tolist()
    parts: list[tuple[Array, ...]] = [tuple(np.zeros(0, dtype) for dtype in DTYPES)]
    libraries = [(0, 0)]
    n_rows = 0
    n_left_out, budget = 0, MAX_PAIRS
    for space, (begin, end) in enumerate(pairwise(bounds)):
        keys = order[begin:end]
        if len(keys) == 0:
            continue
        asked = addresses[keys]
        regions = memory.regions(space, asked)
        libraries.append((n_rows, len(memory.natives.libraries)))
        versions, n_without = resolved_intervals(regions, asked, first_ts[keys], last_ts[keys], budget)
        n_left_out += n_without
        n_rows += len(versions.key)
        first, last = held(regions, asked)
        budget = max(budget - int(np.maximum(last - first, 0).sum()), 0)
        known = versions.region >= 0
        of = regions.take(versions.region[known])
        kind, owner = np.zeros(len(known), np.int8), np.zeros(len(known), np.int64)
        offset = np.zeros(len(known), np.uint64)
        kind[known], owner[known] = of.kind, of.owner
        offset[known] = np.where(of.kind == OF_NAME, np.uint64(0), asked[versions.key[known]] - of.base)
        parts.append((keys[versions.key], versions.start, versions.is_late, kind, owner, offset))
        nothing = np.flatnonzero(kind == NOTHING)
        memory.note_nameless(space, asked[versions.key[nothing]])
        of_memory = memory.memory_names(space, asked[versions.key[nothing]])
        kind[nothing[of_memory >= 0]], owner[nothing[of_memory >= 0]] = OF_NAME, of_memory[of_memory >= 0]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    by_key = np.argsort(columns[0], kind="stable")
    key, start, is_late, kind, owner, offset = (column[by_key] for column in columns)
    return AddressResolution(
        key, start, is_late, kind, owner, offset, by_key, libraries, memory.names, n_left_out
    )  # fmt: skip


class _Mapped(NamedTuple):
    """files: over time, and since when (int64 ns) the content of each is there; objects: what `perf inject --jit` made
    of code objects, mapped over the memory where they are. file_maps, object_maps: the mapping of each."""

    files: Regions
    file_maps: Sequence[Mmap]
    since: Array
    objects: Regions
    object_maps: Sequence[Mmap]


class Memory:
    """The address spaces of a recording: KERNEL_SPACE, OTHER_SPACE, GUEST_SPACE, and from FIRST_PROGRAM on one for
    each of the programs. offset_ns: from the recording's clock onto the trace's; nameless: of each process without a
    perf-PID.map the addresses (uint64) in memory without a file for which nothing was found."""

    def __init__(
        self, recording: Recording, trace: TraceBuilder, natives: Natives, programs: Programs, offset_ns: int,
        map_files: MapFiles,
    ) -> None:  # fmt: skip
        self.programs = programs
        self.names: list[Listed] = []
        self._recording = recording
        self._trace = trace
        self.natives = natives
        self.offset_ns = offset_ns
        is_one_clock = trace.clock is None or trace.clock.kind == clock_of(recording.events[0])
        # Else what is loaded into a file's memory may seem to be older than the mapping.
        self._is_in_order = is_one_clock and recording.is_timed
        self._ending_at: dict[str, int] = {}
        self._memory_at: dict[str, int] = {}
        self._map_files = map_files
        # By process, and by program.
        self._own_lists: dict[int, tuple[MapFile | None, MapFile | None]] = {}
        self._lists: dict[int, list[tuple[MapFile, int]]] = {}
        self._list_regions: dict[tuple[str, int], Regions] = {}
        self.nameless: dict[int, Array] = {}
        self._dumps_of = dumps_by_program(recording, programs, code_by_dump(trace).keys())
        self._code_mappings: dict[int, Array] = {}
        self._known_mapped: dict[tuple[int, int], _Mapped] = {}
        self._own_files: dict[int, frozenset[str]] = {}
        self._maps_by_program: dict[int, list[Mmap]] = {}
        for mapped in recording.maps:
            is_code = mapped.is_exec and not dump_name(mapped) and not mapped.path.startswith(GUEST)
            program = programs.at(mapped.pid, mapped.ts) if is_code else None
            if program is not None and program.pid != OUTSIDE:
                self._maps_by_program.setdefault(program.number, []).append(mapped)

    def regions(self, space: int, addresses: Array) -> Regions:
        """Returns the regions of a space, of which any that holds one of the addresses (uint64, rising) is there."""
        if space == OTHER_SPACE:
            return self._endings()
        if space == GUEST_SPACE:
            return joined([self._endings(), self._guests(addresses)])
        if space == KERNEL_SPACE:
            return self._kernel(addresses)
        program = self.programs.all[space - FIRST_PROGRAM]
        code = self._code_of(program)
        mapped = self._mapped(program)
        files = self._named(mapped.files, mapped.file_maps, program, addresses)
        if not code:
            # They are not needed where the dump is.
            code = [self._named(mapped.objects, mapped.object_maps, program, addresses)]
        if self._is_in_order:
            code = [ended_by(part, files, mapped.since) for part in code]
        return joined([self._replaced(program, addresses), files, self._listed(program), *code])

    def ending(self, name: str) -> int:
        """Returns the address in OTHER_SPACE and GUEST_SPACE that stands for this name, where a cut stack ends."""
        return self._ending_at.setdefault(name, FIRST_ENDING + len(self._ending_at))

    def note_nameless(self, space: int, addresses: Array) -> None:
        """Addresses (uint64) of a space for which nothing was found."""
        if space < FIRST_PROGRAM or not len(addresses):
            return
        program = self.programs.all[space - FIRST_PROGRAM]
        inside = addresses[self.is_in_no_file(program, addresses)]
        if not self._lists_of(program) and len(inside):
            known = self.nameless.get(program.pid, inside[:0])
            self.nameless[program.pid] = distinct(np.concatenate((known, inside)))

    def memory_names(self, space: int, addresses: Array) -> Array:
        """Returns for addresses (uint64) of a space for which nothing was found the number in `names` that tells in
        which memory of no file they are, -1 where that is not known: int64. Code is there that no record describes."""
        found = np.full(len(addresses), -1, np.int64)
        if space < FIRST_PROGRAM or not len(addresses):
            return found
        program = self.programs.all[space - FIRST_PROGRAM]
        for mapped in self._maps_of(program)[0]:
            if content_of(mapped):
                continue
            begin, end = np.uint64(mapped.start), np.uint64(_end(mapped.start, mapped.length))
            is_inside = (addresses >= begin) & (addresses < end)
            if is_inside.any():
                found[is_inside] = self._number_of_memory(mapped.path.removesuffix(DELETED))
        for number in distinct(found[found >= 0]).tolist():
            n = int((found == number).sum())
            detail = f"{self.names[number].text}: {n} addresses of {program.name or program.pid}"
            of_memory = OF_MEMORY_FILE if MEMORY_FILE in self.names[number].text else None
            advice = NOT_IN_DUMP if len(self.code_mappings_of(program)) else of_memory
            where = f"{program.number} {number}"
            self._trace.report.note("code_unrecorded", n, where=where, detail=detail, advice=advice)
        return found

    def _number_of_memory(self, path: str) -> int:
        number = self._memory_at.get(path)
        if number is None:
            number = self._memory_at[path] = len(self.names)
            self.names.append(Listed(f"[code in {path}]", None, "JIT"))
        return number

    def _endings(self) -> Regions:
        first = len(self.names)
        self.names += [Listed(name, None, "Other") for name in self._ending_at]
        return regions_of([
            (address, address + 1, BEGINNING, NEVER, LISTED, OF_NAME, first + nth, 0)
            for nth, address in enumerate(self._ending_at.values())
        ])  # fmt: skip

    def _guests(self, addresses: Array) -> Regions:
        """Returns what is known of addresses (uint64) in guests: functions of the kernel by its list of symbols. What
        is mapped there is not recorded."""
        first, asked = len(self.names), addresses[addresses - np.uint64(FIRST_ENDING) >= np.uint64(MAX_ENDINGS)]
        self.names += [Listed(name, None) for name in self.natives.guest_names(asked)]
        return regions_of([
            (address, _end(address, 1), BEGINNING, NEVER, LISTED, OF_NAME, first + nth, 0)
            for nth, address in enumerate(asked.tolist())
        ])  # fmt: skip

    # ------------------------------------------------------------ what is mapped

    def _kernel(self, addresses: Array) -> Regions:
        mapped = [one for one in self._recording.maps if one.pid == -1 and not one.path.startswith(GUEST)]
        regions = regions_of([
            (one.start, self._kernel_end(one, mapped), BEGINNING, NEVER, MAPPED, OF_KERNEL, one.order, one.start)
            for one in mapped
        ])  # fmt: skip
        for nth in _holding(regions, addresses):
            self.natives.library_of(mapped[nth])
        gone: dict[int, int] = {}
        programs: list[tuple[int, ...]] = []
        for symbol in reversed(self._recording.ksymbols):
            ts = symbol.ts + self.offset_ns
            if symbol.unregister:
                gone[symbol.address] = ts
                continue
            until, end = gone.get(symbol.address, NEVER), _end(symbol.address, symbol.length)
            programs.append((symbol.address, end, ts, until, LOADED, OF_NAME, len(self.names), 0))
            self.names.append(Listed(symbol.name, None))
        return joined([regions, regions_of(programs)])

    def _kernel_end(self, mapped: Mmap, others: Sequence[Mmap]) -> int:
        """perf maps the kernel up to its _etext. Behind it lies what runs once, which stacks begin with: start_kernel.
        As in perf, the kernel reaches to the next mapping; and, unlike there, not farther than any kernel does."""
        end = _end(mapped.start, mapped.length)
        if not is_kernel(mapped):
            return end
        behind = (one.start for one in others if one.start >= end)
        return max(end, min(*behind, TOP, mapped.start + KERNEL_SIZE))

    def _mapped(self, program: Program) -> _Mapped:
        """Returns what a program has mapped. The children of a process that map nothing of their own have the same
        until they end."""
        maps, key = self._maps_of(program)
        found = self._known_mapped.get(key)
        if found is None:
            if len(self._known_mapped) >= MAX_KNOWN:
                self._known_mapped.clear()
            found = self._known_mapped[key] = self._mapped_of(maps, self.programs.all[key[0]].start == BEGINNING)
        return found

    def _mapped_of(self, maps: Sequence[Mmap], is_first: bool) -> _Mapped:
        """is_first: whether the memory was there before the recording."""
        is_object = [JITTED_OBJECT.fullmatch(one.path.rpartition("/")[2]) is not None for one in maps]
        objects = [one for one, put in zip(maps, is_object, strict=True) if put]
        # A process that forks passes all of its mappings on: these are as many as mappings and processes multiplied.
        maps = [one for one, put in zip(maps, is_object, strict=True) if not put]
        held_by = files_held(maps, is_first)
        files = regions_of([
            (one.begin, one.end, self._traced(one.start), self._traced(one.until), MAPPED, NOTHING, 0,
             maps[one.nth].start - maps[one.nth].pgoff & TOP)
            for one in held_by
        ])  # fmt: skip
        code = regions_of([
            (one.start, _end(one.start, one.length), self._traced(one.ts), NEVER, LOADED, NOTHING, 0,
             one.start - one.pgoff & TOP)
            for one in objects
        ])  # fmt: skip
        since = np.array([one.since for one in held_by], np.int64) + self.offset_ns
        return _Mapped(files, [maps[one.nth] for one in held_by], since, code, objects)

    def _named(self, regions: Regions, maps: Sequence[Mmap], program: Program, addresses: Array) -> Regions:
        """Returns the regions while the program runs; those that hold an address with their libraries."""
        until = np.minimum(regions.until, self._traced(program.until))
        regions = regions._replace(until=until, kind=regions.kind.copy(), owner=regions.owner.copy())
        for nth in _holding(regions, addresses):
            library = self.natives.library_of(maps[nth])
            regions.kind[nth], regions.owner[nth] = OF_FILE, library.number
        return regions

    def _replaced(self, program: Program, addresses: Array) -> Regions:
        """Returns what was mapped when an exec began the program, until the program itself maps something: samples of
        that time may be of the system call, whose caller is in memory that is gone. The kernel maps the vdso last."""
        caller, maps = program.replaced, self._maps_by_program.get(program.number, ())
        if caller is None or not maps:
            return NO_REGIONS
        last = next((nth for nth, one in enumerate(maps) if one.path == vdso.PATH), 0)
        until = maps[last : last + 2][-1].ts
        mapped = self._mapped(caller)
        regions = self._named(mapped.files, mapped.file_maps, caller, addresses)
        begun = self._traced(program.start)
        is_there = (regions.start < begun) & (regions.until >= begun)
        kept = regions.take(np.flatnonzero(is_there))
        start, end = np.full_like(kept.start, begun), np.full_like(kept.until, self._traced(until))
        return kept._replace(start=start, until=end)

    def _traced(self, ts: int) -> int:
        """Returns a time of the recording on the trace's clock."""
        return ts + self.offset_ns if BEGINNING < ts < NEVER else ts

    def _listed(self, program: Program) -> Regions:
        """Returns the regions that a perf-PID.map lists, its own and those of the programs of which it began as a copy.
        What it lists itself comes first."""
        owners = [owner for owner, _ in self.programs.ancestors(program, MAX_ANCESTORS)]
        listed = [regions for owner in reversed(owners) for regions in self._listed_by(owner)]
        return joined(listed) if listed else NO_REGIONS

    def _listed_by(self, program: Program) -> list[Regions]:
        """Returns what a program can have listed: a file that is older is of another process with its number. Compilers
        write the same names there as into a jitdump."""
        lists = self._lists_of(program)
        # Of thousands of short programs, hardly one has a list.
        begun = self._unix_ns(program.start) if lists else None
        return [self._regions_of_list(file, layer) for file, layer in lists if not self._is_stale(file, program, begun)]

    def _lists_of(self, program: Program) -> Sequence[tuple[MapFile, int]]:
        """Returns the lists of a program's code, each with its layer: those of its process's number, or one that the
        user gives and that has lines in this program's memory. What the process ran before an exec has another."""
        lists = self._lists.get(program.number)
        if lists is None:
            pid = program.pid
            if pid not in self._own_lists:
                own = self._map_files.of(pid, self.programs.has_ended(pid))
                self._own_lists[pid] = own, self._map_files.compiled_ahead(pid)
            own, ahead = self._own_lists[pid]
            own = own or self._map_files.given_for(pid, program.number, partial(self._n_listed, program))
            lists = [(file, layer) for file, layer in ((own, LISTED), (ahead, LOADED)) if file is not None]
            self._lists[program.number] = lists
        return lists

    def lists(self) -> dict[int, Regions]:
        """Returns what lists tell of the programs that were asked for and have no dump, by the program's number."""
        found: dict[int, Regions] = {}
        for number in list(self._lists):
            program = self.programs.all[number]
            listed = self._listed(program)
            if len(listed.begin) and not len(self.code_mappings_of(program)):
                found[number] = listed
        return found

    def _n_listed(self, program: Program, file: MapFile) -> int:
        """Counts the lines of a perf-PID.map in memory of a program that is no file's."""
        return int(self.is_in_no_file(program, file.begins).sum())

    def is_in_no_file(self, program: Program, addresses: Array) -> Array:
        """bool: which of the addresses (uint64) are in memory of a program that is no file's."""
        begin, end = memory_without_files(self._maps_of(program)[0]).T
        return containing_interval(begin, end - begin, addresses) >= 0

    def _regions_of_list(self, file: MapFile, layer: int) -> Regions:
        known = self._list_regions.get((file.path, layer))
        if known is None:
            lines = list(read_map_file(file.text))
            producer = producer_of([name for _, _, name in lines])
            first = len(self.names)
            self.names += [Listed(name, producer) for _, _, name in lines]
            known = self._list_regions[file.path, layer] = regions_of([
                (begin, _end(begin, size), BEGINNING, NEVER, layer, OF_NAME, first + nth, 0)
                for nth, (begin, size, _) in enumerate(lines)
            ])  # fmt: skip
        return known

    def _is_stale(self, file: MapFile, program: Program, begun: int | None) -> bool:
        """begun: Unix time, None where that is not known."""
        if begun is None or file.written_ns >= begun - CLOCK_STEPS_NS:
            return False
        detail = f"{file.path}: written {(begun - file.written_ns) / 1e9:.0f} s before {program.name or 'it'} began"
        self._trace.report.note("map_stale", where=f"{file.path} {program.number}", detail=detail)
        return True

    def _unix_ns(self, ts: int) -> int | None:
        """Returns the Unix time of one of the recording's, None where that is not known."""
        zero = self._trace.clock.unix_zero_ns if self._trace.clock is not None else None
        return self._traced(ts) + zero if zero is not None and BEGINNING < ts < NEVER else None

    def mapping_at(self, pid: int, ts: int, address: int) -> Mmap | None:
        """Returns what holds an address at a time on the trace's clock. What is mapped first was there before."""
        program = self.programs.at(pid, ts - self.offset_ns)
        maps, _ = self._maps_of(program) if program is not None else ((), None)
        holding = [one for one in maps if one.start <= address < one.start + one.length]
        begun = [one for one in holding if one.ts + self.offset_ns <= ts]
        if begun:
            return begun[-1]
        return holding[0] if holding else None

    def _maps_of(self, program: Program) -> tuple[list[Mmap], tuple[int, int]]:
        """Returns (mappings by time: a fork's child begins with its parent's; what stands for them: the last program
        that mapped any of them, and how many of these)"""
        parts = [
            (owner, [one for one in self._maps_by_program.get(owner.number, ()) if one.ts <= until])
            for owner, until in self.programs.ancestors(program, MAX_ANCESTORS)
        ]
        key = next(((owner.number, len(part)) for owner, part in parts if part), (program.number, 0))
        return [mapped for _, part in reversed(parts) for mapped in part], key

    def files_of(self, program: Program) -> Set[str]:
        """Returns the names of the files whose code was mapped while a program ran, also by those of which it is a
        copy."""
        found: set[str] = set()
        for owner, _ in self.programs.ancestors(program, MAX_ANCESTORS):
            if owner.number not in self._own_files:
                maps = self._maps_by_program.get(owner.number, ())
                self._own_files[owner.number] = frozenset(os.path.basename(one.path) for one in maps)
            found |= self._own_files[owner.number]
        return found

    # ------------------------------------------------------------ what was compiled

    def code_mappings_of(self, program: Program) -> Array:
        """Returns rows of the trace's code mappings: of the dumps that the program mapped, and of those of its process
        that none did, the code that was loaded while it ran; where samples have no times, by time."""
        found = self._code_mappings.get(program.number)
        if found is None:
            by_dump, by_program = self._mappings_by_owner
            parts = [by_dump.get(key, NO_ROWS) for key in self._dumps_of.get(program.number, ())]
            found = np.sort(np.concatenate([*parts, by_program.get(program.number, NO_ROWS)]))
            if not self._recording.is_timed:
                found = found[np.argsort(self._trace.code_mappings["start_ts"][found], kind="stable")]
            self._code_mappings[program.number] = found
        return found

    def code_times(self, rows: Array) -> tuple[Array, Array]:
        """Returns from when on and until when these rows of the trace's code mappings are there, int64 on the trace's
        clock: where samples have no times, always."""
        if not self._recording.is_timed:
            return np.full(len(rows), BEGINNING), np.full(len(rows), NEVER)
        start, until = (self._trace.code_mappings[name][rows] for name in ("start_ts", "end_ts"))
        return start, np.where(until >= 0, until, NEVER)

    def timeless_code(self) -> dict[int, Regions]:
        """Returns the code of the dumps of each sampled program, by its number, where samples have no times: of several
        objects at one address the last one counts."""
        if self._recording.is_timed or not len(self._trace.code_mappings):
            return {}
        numbers = distinct(self.programs.of_samples).tolist()
        return {number: joined([NO_REGIONS, *self._code_of(self.programs.all[number])]) for number in numbers}

    def _code_of(self, program: Program) -> list[Regions]:
        """Returns the code of the dumps of a program. A fork's child has the code that its parent compiled; its own
        counts first where nothing has times."""
        owners = reversed(list(self.programs.ancestors(program, MAX_ANCESTORS)))
        loaded = [(owner, self.code_mappings_of(owner), forked) for owner, forked in owners]
        return [self._jitted(program, owner, rows, forked) for owner, rows, forked in loaded if len(rows)]

    @cached_property
    def _mappings_by_owner(self) -> tuple[dict[Key, Array], dict[int, Array]]:
        """Returns rows of the trace's code mappings that have a size: by dump; and by program, of dumps that none
        maps."""
        trace = self._trace
        code = trace.code_mappings["code"]
        if len(code) == 0:
            return {}, {}
        mapped = {key for keys in self._dumps_of.values() for key in keys}
        sized = np.flatnonzero(trace.code["size"][code] > 0)
        rows = code_by_dump(trace, code[sized])
        by_dump = {key: sized[of_dump] for key, of_dump in rows.items()}
        free = np.sort(np.concatenate([NO_ROWS, *(of for key, of in by_dump.items() if key not in mapped)]))
        pid = trace.code["pid"][code[free]]
        is_recorded = index_of(np.array(self.programs.pids, np.int64), pid) >= 0
        free, pid = free[is_recorded], pid[is_recorded]
        numbers = self.programs.numbers(pid, trace.code_mappings["start_ts"][free] - self.offset_ns)
        return by_dump, {number: free[mine] for number, mine in rows_by_key(numbers).items()}

    def _jitted(self, program: Program, owner: Program, rows: Array, forked: int) -> Regions:
        """rows: of the code that is loaded in the memory of the owner; forked: when the program's memory began as a
        copy of that, NEVER for its own. What either loads into memory that both share, as PHP's, is there for both."""
        mappings = self._trace.code_mappings.take(rows)
        begin, (start, until) = mappings["address"], self.code_times(rows)
        size = self._trace.code["size"][mappings["code"]].astype(np.uint64)
        end = np.where(begin + size < begin, np.uint64(TOP), begin + size)
        keep = np.ones(len(rows), bool)
        if forked < NEVER:
            zero = self.offset_ns
            is_shared = self._is_shared(owner, begin)
            keep = is_shared | (start <= forked + zero) & (forked + zero < until)
            until = np.where(is_shared, until, NEVER)
        until = np.minimum(until, self._traced(program.until))
        n = len(rows)
        layer, kind = np.full(n, JITTED, np.int8), np.full(n, OF_CODE, np.int8)
        owners = mappings["code"].astype(np.int64)
        return Regions(begin, end, start, until, layer, kind, owners, begin).take(np.flatnonzero(keep))

    def _is_shared(self, program: Program, addresses: Array) -> Array:
        """bool: which of the addresses (uint64) are in executable memory that a program shares with its forks."""
        shared = [one for one in self._maps_of(program)[0] if one.is_shared]
        begin, end = memory_without_files(shared).T
        return containing_interval(begin, end - begin, addresses) >= 0


def _holding(regions: Regions, addresses: Array) -> list[int]:
    first, last = held(regions, addresses)
    return np.flatnonzero(last > first).tolist()


def _end(begin: int, size: int) -> int:
    """Memory ends at 2^64."""
    return min(begin + size, TOP)
