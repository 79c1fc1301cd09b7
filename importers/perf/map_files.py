"""Map: perf-PID.map files, in which processes list the code that they compiled."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.common.report import Report
from traceferry.files.answers import Blob, checked
from traceferry.files.named_files import open_named, read_named
from traceferry.files.source import Source, paths_beside, written_at
from traceferry.importers.perf.ahead import Image, images_of, is_of_image, map_names, signature_of
from traceferry.importers.perf.recording import Recording
from traceferry.model import Array, containing_interval
from traceferry.reading import ImportContext
from traceferry.symbolication.jit_names.dotnet import AHEAD

# A line takes some 100 bytes.
MAX_SIZE = 256 << 20
NAME = compiled_later(r"perf-(\d+)\.map")
# Programs write there, whatever TMPDIR says.
FOLDER = "/tmp"
# How many files of other processes are looked at, and how large they may be.
MAX_OTHERS = 16
MAX_OTHER_SIZE = 16 << 20
# By so many seconds clocks may have been set while a program was recorded.
STEPS = 60.0


@dataclass(frozen=True)
class MapFile:
    """written_ns: the Unix time at which it was last written."""

    path: str
    text: str
    written_ns: int

    @cached_property
    def begins(self) -> Array:
        """uint64: where the code of each line begins."""
        return np.array([begin for begin, _, _ in read_map_file(self.text)], np.uint64)


class MapFiles:
    """Looks for perf-PID.map beside a recording, in the user's folders and trees, and where it was written if this is
    that machine. given: files that the user gives by themselves; recorded_at: when the recording ended, in seconds
    since 1970."""

    def __init__(
        self, source: Source, recording: Recording, context: ImportContext, given: Sequence[Source], report: Report,
        recorded_at: float,
    ) -> None:  # fmt: skip
        ts = recording.samples.ts
        self._begun_at = recorded_at - (int(ts[-1]) - int(ts[0])) / 1e9 - STEPS if len(ts) else recorded_at
        self._given = [(one.name, file) for one in given if (file := _of_source(one, report)) is not None]
        hostname = recording.features.hostname
        self._source = source
        self._folders = context.folders
        self._trees = [f"{root.rstrip(os.sep)}{FOLDER}" for root in context.sysroots]
        self._is_this_machine = bool(hostname) and hostname == platform.node()
        self._own = [FOLDER] if self._is_this_machine else []
        self._recorded_at = recorded_at
        self._sysroots = context.sysroots
        self._report = report
        self._answers = source.answers

    def of(self, pid: int, has_ended: bool = False) -> MapFile | None:
        """Returns the file of a process. has_ended: while it was recorded."""
        name = f"perf-{pid}.map"
        return self._answers.ask(f"map {pid}", self._report, lambda: self._find(name, has_ended), _packed, _unpacked)

    def given_for(self, pid: int, program: int, lists_code: Callable[[MapFile], int]) -> MapFile | None:
        """Returns the file that the user gives with most lines of the code of one of a process's programs, of whatever
        number; None where none has any. program: its number; lists_code: counts the lines of a file in memory of the
        program that is no file's. In a container, processes have numbers of their own."""
        if not self._given and not self._answers.is_kept:
            return None
        return self._answers.ask(
            f"given map {pid} {program}", self._report, lambda: self._best_given(lists_code), _packed, _unpacked
        )

    def _best_given(self, lists_code: Callable[[MapFile], int]) -> MapFile | None:
        found = max((file for _, file in self._given), key=lists_code, default=None)
        return self._used(found) if found is not None and lists_code(found) else None

    def compiled_ahead(self, pid: int) -> MapFile | None:
        """Returns the functions of images that CoreCLR loaded into a process, as lines of its own file would have
        them; None where it does not tell of images."""
        return self._answers.ask(
            f"perfinfo {pid}", self._report, lambda: self._find_compiled_ahead(pid), _packed, _unpacked
        )

    def _find_compiled_ahead(self, pid: int) -> MapFile | None:
        told = self._find(f"perfinfo-{pid}.map")
        if told is None:
            return None
        lines: list[str] = []
        for image in images_of(told.text):
            listed = read_map_file(self._map_of_image(image) or "")
            lines += [f"{image.address + offset:x} {size:x} {name}{AHEAD}" for offset, size, name in listed]
        return MapFile(told.path, "\n".join(lines), told.written_ns)

    def _map_of_image(self, image: Image) -> str | None:
        """Returns the text that names the functions of an image: beside the recording, in the user's folders, or beside
        the image. One of another build is refused; where the image is not there, its name tells, unless the image's
        number is in it."""
        beside = list(dict.fromkeys([*(f"{root.rstrip(os.sep)}{image.path}" for root in self._sysroots), image.path]))
        own = beside if self._is_this_machine else beside[:-1]
        for name in map_names(image):
            places = list(paths_beside([self._source], self._folders, name))
            places += [(f"{os.path.dirname(path)}/{name}", path) for path in own]
            for path, folder in places:
                text = read_named(path, self._report, at_most=MAX_SIZE, beside=folder if os.path.exists(folder) else "")
                if text is None:
                    continue
                opened = next(filter(None, (open_named(path, self._report) for path in own)), None)
                if opened is not None and not is_of_image(signature_of(text), bytes(opened.data)):
                    detail = f"{image.path}: {path} is of another build"
                    self._report.note("build_id_differs", where=path, detail=detail)
                    continue
                if opened is None and name.endswith(".r2rmap"):
                    self._report.note("files_unverified", where=path, detail=path)
                return text
        return None

    def _find(self, name: str, has_ended: bool = False) -> MapFile | None:
        given = next((file for other, file in self._given if other == name), None)
        if given is not None:
            return self._used(given)
        places = list(paths_beside([self._source], self._folders, name))
        places += [(f"{folder}/{name}", folder) for folder in self._trees]
        own = [f"{folder}/{name}" for folder in self._own]
        later = [path for path in own if has_ended and _written_at(path) > self._recorded_at + STEPS]
        for path in later:
            self._report.note("map_stale", where=path, detail=f"{path}: written after the recording")
        places += [(path, "") for path in own if path not in later]
        for path, beside in places:
            found = self._read(path, beside)
            if found is not None:
                return found
        return None

    def _read(self, path: str, beside: str) -> MapFile | None:
        text = read_named(path, self._report, at_most=MAX_SIZE, beside=beside)
        try:
            return MapFile(path, text, os.stat(path).st_mtime_ns) if text is not None else None
        except OSError:
            return None

    def _used(self, file: MapFile) -> MapFile:
        """Reports that a file which the user gives is used, and returns it."""
        self._report.note("files_read", where=file.path, detail=file.path)
        return file

    def note_others(self, pids: Iterable[int], nameless: Mapping[int, Array]) -> None:
        """Tells of files of other numbers that list addresses for which no name was found. nameless: these (uint64) of
        each process. In a container, processes have numbers of their own."""
        self._answers.ask("other maps", self._report, lambda: self._note_others(pids, nameless))

    def _note_others(self, pids: Iterable[int], nameless: Mapping[int, Array]) -> None:
        known = {f"perf-{pid}.map" for pid in pids}
        most: dict[int, tuple[int, str]] = {}
        for path, beside in self._others(known) if nameless else ():
            text = read_named(path, Report(), at_most=MAX_OTHER_SIZE, beside=beside)
            lines = list(read_map_file(text or ""))
            for pid, addresses in nameless.items():
                n = _n_inside(lines, addresses)
                if n > most.get(pid, (0, ""))[0]:
                    most[pid] = n, path
        for pid, (n, path) in most.items():
            detail = f"{Path(path).name} lists {n} addresses of process {pid}"
            self._report.note("map_of_other_number", n, where=path, detail=detail)

    def _others(self, known: set[str]) -> list[tuple[str, str]]:
        """Returns (path, what the user has named there), where programs write them only what is of the recording's
        time."""
        folders = [
            (str(Path(path).parent), beside) for path, beside in paths_beside([self._source], self._folders, "-")
        ]
        folders += [(folder, folder) for folder in self._trees]
        folders += [(folder, "") for folder in self._own]
        found: list[tuple[str, str]] = []
        for folder, beside in dict.fromkeys(folders):
            names = sorted(name for name in _names_in(folder) if NAME.fullmatch(name) and name not in known)
            given = {file.path for _, file in self._given}
            paths = [path for name in names if (path := f"{folder}/{name}") not in given]
            found += [(path, beside) for path in paths if beside or _written_at(path) >= self._begun_at]
        return found[:MAX_OTHERS]


def map_files_apart(context: ImportContext) -> tuple[ImportContext, list[Source]]:
    """Returns the context without the map files that the user gives by themselves, and these."""
    given = [source for source in context.symbols if NAME.fullmatch(source.name)]
    return context._replace(symbols=[one for one in context.symbols if not NAME.fullmatch(one.name)]), given


def note_unused(given: Sequence[Source], report: Report) -> None:
    """Reports those of the map files that the user gives of which no recording has code."""
    used = report.places("files_read")
    for source in given:
        if source.path not in used and source.path not in report.places("file_refused"):
            detail = f"{source.path}: nothing that it lists is in the memory of a recorded process"
            report.note("symbols_unused", where=source.path, detail=detail)


def _of_source(source: Source, report: Report) -> MapFile | None:
    if len(source.data) > MAX_SIZE:
        detail = f"{source.path}: its {len(source.data)} bytes are more than the {MAX_SIZE} that are read"
        report.note("file_refused", where=source.path, detail=detail)
        return None
    return MapFile(source.path, bytes(source.data).decode("utf-8", "replace"), int(written_at(source) * 1e9))


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _written_at(path: str) -> float:
    """Returns when a file was last written to, in seconds since 1970; 0 where that is not known."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _packed(found: MapFile | None) -> Any:
    if found is None:
        return None
    text = found.text.encode("utf-8", "replace")
    return {"path": found.path, "written_ns": found.written_ns, "text": Blob(Path(found.path).name, text)}


def _unpacked(value: Any) -> MapFile | None:
    if value is None:
        return None
    text = bytes(checked(value["text"], memoryview)).decode("utf-8", "replace")
    return MapFile(checked(value["path"], str), text, checked(value["written_ns"], int))


def read_map_file(text: str) -> Iterator[tuple[int, int, str]]:
    """Yields (address, size, name) of each line of a perf-PID.map: hex, hex, and the rest of the line. Only a line feed
    ends it: names can have U+2028, U+0085 or 0x1c."""
    for line in text.split("\n"):
        words = line.split(" ", 2)
        try:
            begin, size = int(words[0], 16), int(words[1], 16)
        except (ValueError, IndexError):
            continue
        if len(words) == 3 and words[2] and 0 <= begin < 1 << 64 and 0 < size < 1 << 32:
            yield begin, size, words[2]


def _n_inside(lines: list[tuple[int, int, str]], addresses: Array) -> int:
    """Returns how many of the addresses (uint64) the lines list."""
    begin, size = np.array([(begin, size) for begin, size, _ in lines], np.uint64).reshape(-1, 2).T
    order = np.argsort(begin, kind="stable")
    return int((containing_interval(begin[order], size[order], addresses) >= 0).sum())
