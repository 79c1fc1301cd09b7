"""Decode: lines become the calls, signals and exits of threads, with the times and results that other lines have."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

from traceferry.common.patterns import compiled_later
from traceferry.files.source import Source
from traceferry.importers.strace.layout import ATTACHED, NS_OF_DAY, Line, frame_of, line_of, lines

# Calls that make threads and processes; the flag of those that make threads.
FORKS = ("clone", "clone3", "fork", "vfork")
OF_THREADS = "CLONE_THREAD"
# The thread of lines without a number: of a file of -ff, whose name has it, or where there was only one.
UNNUMBERED = -1
OF_FILE = compiled_later(r".*\.(\d{1,10})", re.DOTALL)
# Times of the day fall by more than this at midnight; by less where lines of several threads are out of turn.
BACK_NS = NS_OF_DAY // 2


@dataclass
class Rows:
    """The rows of a thread, as columns. comm: its name, "" is unknown; kind: "call", "signal" or "exit"; dur: ns,
    -1 is unknown; texts: name, arguments and result of each row; frames: lines of its stack, the innermost first."""

    comm: str = ""
    kind: list[str] = field(default_factory=list)
    ts: array[int] = field(default_factory=lambda: array("q"))
    dur: array[int] = field(default_factory=lambda: array("q"))
    texts: list[tuple[str, str, str]] = field(default_factory=list)
    frames: list[list[bytes]] = field(default_factory=list)
    # Rows, -1 is none: of the call that is unfinished, and of what the last line was about.
    unfinished: int = -1
    last: int = -1

    def add(self, ts: int, line: Line) -> None:
        if line.kind == "resumed" and self.unfinished >= 0:
            self._resume(ts, line)
            return
        self.last = len(self.ts)
        if line.kind == "unfinished":
            self.unfinished = self.last
        self.kind.append("call" if line.kind in ("unfinished", "resumed") else line.kind)
        self.ts.append(ts)
        self.dur.append(line.lasted)
        self.texts.append((line.name, line.arguments, line.result))
        self.frames.append([])

    def _resume(self, ts: int, line: Line) -> None:
        """Ends the unfinished call, of which the line has the rest."""
        self.last, self.unfinished = self.unfinished, -1
        name, arguments, _ = self.texts[self.last]
        self.dur[self.last] = line.lasted if line.lasted >= 0 else max(ts - self.ts[self.last], 0)
        self.texts[self.last] = name, ", ".join(filter(None, (arguments, line.arguments))), line.result

    def end(self) -> None:
        """A call that nothing ended lasts as long as the thread is known."""
        if self.unfinished >= 0:
            self.dur[self.unfinished] = max(self.ts) - self.ts[self.unfinished]


class _Times:
    """Times of lines, that rise over midnight, and from line to line where those are relative."""

    def __init__(self) -> None:
        self._last = self._days = 0

    def of(self, line: Line) -> int:
        if line.is_relative:
            self._last += line.ts
            return self._last
        if line.is_of_day and line.ts + BACK_NS < self._last:
            self._days += NS_OF_DAY
        self._last = line.ts
        return line.ts + self._days


class Log:
    """The files of one run. rows: by thread; parents: by thread, which one made it, and whether as a thread of
    its own process; is_dated: whether all times are since 1970; n_unknown: how many lines are nothing known."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self.rows: dict[int, Rows] = {}
        self.parents: dict[int, tuple[int, bool]] = {}
        self.is_dated = True
        self.n_unknown = 0
        self._attached: set[int] = set()
        self._living: set[int] = set()
        for source in sources:
            self._add_file(source)
        for rows in self.rows.values():
            rows.end()

    def process_of(self, tid: int) -> int:
        """Returns the number of a thread's process."""
        seen: set[int] = set()
        while tid not in seen and tid in self.parents and self.parents[tid][1]:
            seen.add(tid)
            tid = self.parents[tid][0]
        return tid

    def _add_file(self, source: Source) -> None:
        of_file = OF_FILE.fullmatch(source.name)
        unnumbered = int(of_file[1]) if of_file is not None else UNNUMBERED
        times = _Times()
        current: Rows | None = None
        begun = b""
        for _, text in lines(source.data):
            text = begun + text
            begun = b""
            line = line_of(text)
            if line is not None:
                tid = self._numbered(line.tid) if line.tid >= 0 else self._unnumbered(unnumbered)
                current = self.rows.setdefault(tid, Rows())
                self._add(tid, current, times.of(line), line)
            elif current is not None and frame_of(text) is not None:
                current.frames[current.last].append(text)
            elif (attached := ATTACHED.fullmatch(text)) is not None:
                self._attached.add(int(attached["pid"]))
                begun = attached["before"]
            elif text.strip() and not text.startswith(b"strace: "):
                self.n_unknown += 1

    def _add(self, tid: int, rows: Rows, ts: int, line: Line) -> None:
        self.is_dated &= not (line.is_of_day or line.is_relative)
        rows.comm = line.comm or rows.comm
        rows.add(ts, line)
        if line.kind == "exit":
            self._living.discard(tid)
        else:
            self._living.add(tid)
        name, arguments, result = rows.texts[rows.last]
        child = result.partition(" ")[0].partition("<")[0]
        if name in FORKS and child.isdecimal() and int(child):
            self.parents.setdefault(int(child), (tid, OF_THREADS in arguments))

    # strace numbers lines only while it follows several threads.

    def _unnumbered(self, of_file: int) -> int:
        """Returns the thread of a line without a number. of_file: the file's."""
        return next(iter(self._living)) if of_file == UNNUMBERED and len(self._living) == 1 else of_file

    def _numbered(self, tid: int) -> int:
        """Returns a thread's number. Of the first one that strace followed, lines without a number came before."""
        is_first = tid not in self.rows and tid not in self._attached and tid not in self.parents
        if is_first and UNNUMBERED in self.rows:
            self.rows = {(tid if one == UNNUMBERED else one): rows for one, rows in self.rows.items()}
            self._living = {tid if one == UNNUMBERED else one for one in self._living}
            self.parents = {
                child: (tid if parent == UNNUMBERED else parent, is_thread)
                for child, (parent, is_thread) in self.parents.items()
            }
        return tid
