"""Map: what ran when. A process runs one program from its fork on, and another from each exec on; each has an address
space of its own. A number is used again once its process or thread has ended.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import PurePosixPath

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.importers.perf import _programs
from traceferry.importers.perf._records import SampleType
from traceferry.importers.perf.layout import USER_MODE
from traceferry.importers.perf.mappings import is_anonymous
from traceferry.importers.perf.recording import Comm, Exit, Fork, Mmap, Recording
from traceferry.importers.perf.regions import BEGINNING, NEVER
from traceferry.model import Array, distinct

# The idle task; and in a recording from within a pid namespace, all tasks outside of it.
OUTSIDE = 0
# What runtimes call the main threads of their programs: Node, Chromium.
_MAIN = compiled_later(r"(?:[\w-]+-)?[Mm]ain(?: ?[Tt]hread)?|Cr\w+Main")
_LIBRARY = compiled_later(r".*\.so(?:\.[\d.]+)?")


@dataclass(eq=False)
class Life:
    """A thread from its start to its end, within one program. start, end: ns on the recording's clock, BEGINNING and
    NEVER where they are not recorded; names: (from when, name), by time."""

    tid: int
    start: int
    end: int = NEVER
    names: list[tuple[int, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The last one, "" where none is recorded."""
        return self.names[-1][1] if self.names else ""


@dataclass(eq=False)
class Program:
    """number: its place in Programs.all; start, until: as of a life; parent: the program of which this began as a copy,
    at `start`; exec_name: the name that an exec gave it, None where it began otherwise; replaced: what called it;
    file: the name of the file that it executes, "" where that is not known; lives: of its threads by number, each by
    time."""

    pid: int
    start: int
    parent: Program | None = None
    exec_name: str | None = None
    replaced: Program | None = None
    file: str = ""
    until: int = NEVER
    number: int = -1
    lives: dict[int, list[Life]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name as the exec has it, else as the main thread is called, or its file where that name says only that it
        is the main thread; "" where none is known."""
        main = self.lives.get(self.pid)
        name = self.exec_name or (main[-1].name if main else "")
        return self.file or name if _MAIN.fullmatch(name) else name

    def lives_of(self, tid: int) -> Sequence[Life]:
        """Returns the lives of a thread's number, one at least."""
        return self.lives.setdefault(tid, [Life(tid, self.start)])


class Programs:
    """The programs of a recording. all: by process and time; pids: of every process that a record names, rising;
    is_nested: whether the recorder ran in a pid namespace, and the process OUTSIDE is many."""

    def __init__(self, recording: Recording) -> None:
        self._of_pid: dict[int, list[Program]] = {}
        self.is_nested = _is_nested(recording)
        # Old recorders give times to samples, forks and exits alone: all else comes first.
        event = recording.events[0]
        self._is_timed = "sample_id_all" in event.attr.flags and bool(event.sample_type & SampleType.TIME)
        for task in recording.tasks:
            if task.pid == OUTSIDE:
                continue
            if isinstance(task, Comm):
                self._name(task)
            elif isinstance(task, Fork):
                self._fork(task)
            else:
                self._exit(task)
        for columns in (recording.samples, recording.switches):
            for pid in distinct(columns.pid).tolist() if len(columns) else ():
                self._latest(pid)
        self.pids = sorted(self._of_pid)
        self.all = [program for pid in self.pids for program in self._of_pid[pid]]
        files = _files(recording.maps)
        for number, program in enumerate(self.all):
            program.number = number
            if program.exec_name is None:
                program.file = files.get(program.pid) or (program.parent.file if program.parent is not None else "")
        self._samples = recording.samples
        self._pids = np.array(self.pids, np.int64)
        self._first = np.cumsum([0, *(len(self._of_pid[pid]) for pid in self.pids)])

    def at(self, pid: int, ts: int) -> Program | None:
        """Returns what the process ran at a time on the recording's clock; before its first program began, that one."""
        programs = self._of_pid.get(pid, ())
        nth = bisect_right(programs, ts, key=lambda program: program.start) - 1
        return programs[max(nth, 0)] if programs else None

    def has_ended(self, pid: int) -> bool:
        """Whether all threads of the last process of this number ended while it was recorded."""
        lives = self._of_pid[pid][-1].lives if pid in self._of_pid else {}
        return bool(lives) and all(of_thread[-1].end < NEVER for of_thread in lives.values())

    def numbers(self, pid: Array, ts: Array) -> Array:
        """Returns what `at` finds for many, all of which have a program: int32 places in `all`."""
        starts = np.array([program.start for program in self.all], np.int64)
        columns = np.ascontiguousarray(pid, np.int32), np.ascontiguousarray(ts, np.int64)
        return _programs.numbers(*columns, self._pids, self._first, starts)

    @cached_property
    def of_samples(self) -> Array:
        """Returns what `numbers` finds for each sample of the recording."""
        return self.numbers(self._samples.pid, self._samples.ts)

    def ancestors(self, program: Program, at_most: int) -> Iterator[tuple[Program, int]]:
        """Yields (program, until when its memory is that of the given one, too), from the given one on."""
        until = NEVER
        for _ in range(at_most):
            yield program, until
            if program.parent is None:
                return
            until = min(until, program.start)
            program = program.parent

    # ------------------------------------------------------------ one record

    def _latest(self, pid: int) -> Program:
        programs = self._of_pid.setdefault(pid, [])
        if not programs:
            programs.append(Program(pid, BEGINNING))
        return programs[-1]

    def _begin(self, program: Program) -> None:
        """Begins a program. What the process ran before ends, with all its threads."""
        programs = self._of_pid.setdefault(program.pid, [])
        for before in programs[-1:]:
            before.until = program.start
            for lives in before.lives.values():
                lives[-1].end = min(lives[-1].end, program.start)
        programs.append(program)

    def _name(self, task: Comm) -> None:
        if task.is_exec:
            before = self._of_pid.get(task.pid, ())
            self._begin(Program(task.pid, task.ts, exec_name=task.name, replaced=before[-1] if before else None))
        program = self._latest(task.pid)
        if task.tid not in program.lives:
            program.lives[task.tid] = [Life(task.tid, program.start)]
        program.lives[task.tid][-1].names.append((task.ts, task.name))

    def _fork(self, task: Fork) -> None:
        """Begins a process or, within one, a thread."""
        # Recorders before 4.20 do not mark what they found running, but it has no time either.
        if task.is_synthesised or (self._is_timed and task.ts == 0):
            self._latest(task.pid).lives_of(task.tid)
            return
        parent = self._latest(task.ppid) if task.ppid != OUTSIDE else None
        lives = parent.lives.get(task.ptid) if parent is not None else None
        life = Life(task.tid, task.ts, names=[(task.ts, lives[-1].name)] if lives and lives[-1].name else [])
        if task.pid != task.ppid and (self._is_timed or task.pid not in self._of_pid):
            self._begin(Program(task.pid, task.ts, parent))
        of_thread = self._latest(task.pid).lives.setdefault(task.tid, [])
        if of_thread and of_thread[-1].start == BEGINNING and of_thread[-1].end == NEVER:
            # The recorder has found the new thread before the kernel's record of it came.
            of_thread[-1].start = task.ts
            return
        for before in of_thread[-1:]:
            before.end = min(before.end, task.ts)
        of_thread.append(life)

    def _exit(self, task: Exit) -> None:
        self._latest(task.pid).lives_of(task.tid)[-1].end = task.ts


def _is_nested(recording: Recording) -> bool:
    """The idle task has no name, maps nothing, and runs nothing but the kernel."""
    samples = recording.samples
    if np.any((samples.pid == OUTSIDE) & (samples.cpumode == USER_MODE)):
        return True
    return any(one.pid == OUTSIDE and one.ts > 0 for of_kind in (recording.tasks, recording.maps) for one in of_kind)


def rows_of_lives(lives: Sequence[Life], ts: Array) -> Iterator[tuple[Life, slice]]:
    """Yields which records of a thread's number belong to which of its lives, those before the first to that. ts: of
    the records, rising."""
    edges = [0, *np.searchsorted(ts, [life.start for life in lives[1:]]).tolist(), len(ts)]
    yield from zip(lives, (slice(begin, end) for begin, end in pairwise(edges)), strict=True)


def _files(maps: Sequence[Mmap]) -> dict[int, str]:
    """Returns the name of the file that each process executes: of the first that it has mapped and that is no
    library."""
    found: dict[int, str] = {}
    for mapped in maps:
        if mapped.is_exec and mapped.pid not in found and mapped.path.startswith("/") and not is_anonymous(mapped):
            name = PurePosixPath(mapped.path).name
            if not _LIBRARY.fullmatch(name):
                found[mapped.pid] = name
    return found
