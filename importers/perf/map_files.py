"""Map: perf-PID.map files, in which processes list the code that they compiled."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from traceferry.common.report import Report
from traceferry.files.answers import Blob, checked
from traceferry.files.named_files import open_named, read_named
from traceferry.files.source import Source, paths_beside
from traceferry.importers.perf.ahead import Image, images_of, is_of_image, map_names, signature_of
from traceferry.importers.perf.recording import Recording
from traceferry.model import Array, containing_interval
from traceferry.reading import ImportContext
from traceferry.symbolication.jit_names.dotnet import AHEAD

# A line takes some 100 bytes.
MAX_SIZE = 256 << 20
NAME = re.compile(r"perf-(\d+)\.map")
# Programs write there, whatever TMPDIR says.
FOLDER = "/tmp"
# How many files of other processes are looked at, and how large they may be.
MAX_OTHERS = 16
MAX_OTHER_SIZE = 16 << 20


@dataclass(frozen=True)
class MapFile:
    """written_ns: the Unix time at which it was last written."""

    path: str
    text: str
    written_ns: int


class MapFiles:
    """Looks for perf-PID.map beside a recording, in the user's folders and trees, and where it was written if this is
    that machine."""

    def __init__(self, source: Source, recording: Recording, context: ImportContext, report: Report) -> None:
        hostname = recording.features.hostname
        self._source = source
        self._folders = context.folders
        self._trees = [f"{root.rstrip(os.sep)}{FOLDER}" for root in context.sysroots]
        self._is_this_machine = bool(hostname) and hostname == platform.node()
        self._own = [FOLDER] if self._is_this_machine else []
        self._sysroots = context.sysroots
        self._report = report
        self._answers = source.answers

    def of(self, pid: int) -> MapFile | None:
        """Returns the file of a process."""
        return self._answers.ask(f"map {pid}", self._report, lambda: self._find(f"perf-{pid}.map"), _packed, _unpacked)

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

    def _find(self, name: str) -> MapFile | None:
        places = list(paths_beside([self._source], self._folders, name))
        places += [(f"{folder}/{name}", folder) for folder in self._trees]
        places += [(f"{folder}/{name}", "") for folder in self._own]
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

    def note_others(self, pids: Iterable[int], nameless: Mapping[int, Array]) -> None:
        """Tells of files of other numbers that list addresses for which no name was found. nameless: these (uint64) of
        each process. In a container, processes have numbers of their own."""
        self._answers.ask("other maps", self._report, lambda: self._note_others(pids, nameless))

    def _note_others(self, pids: Iterable[int], nameless: Mapping[int, Array]) -> None:
        known = {f"perf-{pid}.map" for pid in pids}
        for path, beside in self._others(known) if nameless else ():
            text = read_named(path, Report(), at_most=MAX_OTHER_SIZE, beside=beside)
            lines = list(read_map_file(text or ""))
            n_listed = {pid: _n_inside(lines, addresses) for pid, addresses in nameless.items()}
            pid = max(n_listed, key=lambda pid: (n_listed[pid], -pid))
            if n_listed[pid]:
                detail = f"{Path(path).name} lists {n_listed[pid]} addresses of process {pid}: perf-{pid}.map"
                self._report.note("map_of_other_number", n_listed[pid], where=path, detail=detail)

    def _others(self, known: set[str]) -> list[tuple[str, str]]:
        """Returns (path, what the user has named there)."""
        folders = [
            (str(Path(path).parent), beside) for path, beside in paths_beside([self._source], self._folders, "-")
        ]
        folders += [(folder, folder) for folder in self._trees]
        found: list[tuple[str, str]] = []
        for folder, beside in dict.fromkeys(folders):
            try:
                names = sorted(name for name in os.listdir(folder) if NAME.fullmatch(name) and name not in known)
            except OSError:
                continue
            found += [(f"{folder}/{name}", beside) for name in names]
        return found[:MAX_OTHERS]


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
