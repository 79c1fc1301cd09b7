"""Where the debug information of a stripped ELF file is: FORMATS.md, "Where names are found", has the order."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from traceferry.common.errors import FormatError
from traceferry.common.report import Report
from traceferry.files.decompress import DEFAULT_LIMIT, Limit
from traceferry.files.named_files import open_named
from traceferry.files.source import Source
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.build_id import build_id_of, is_same_build
from traceferry.symbolication.choose import BUILD_IDS
from traceferry.symbolication.debug_links import DebugLink, alt_link, debug_link

if TYPE_CHECKING:
    from traceferry.symbolication.debuginfod import Debuginfod

# This machine's file tree, and where distributions install debug files in it.
SYSTEM = os.sep
DEBUG_FOLDER = "/usr/lib/debug"
BESIDE = ".debug"
MIN_DIGITS = 4


class Wanted(NamedTuple):
    """The facts by which a file is known: build_id: in hex, "" is unknown; crc: of all its bytes, which counts then."""

    build_id: str
    crc: int | None = None


def path_of_build(folder: str, build_id: str) -> str:
    """Returns where a folder of debug files has that of a build: FOLDER/.build-id/ab/cdef.debug."""
    return os.path.join(folder, BUILD_IDS, build_id[:2], f"{build_id[2:]}.debug")


class DebugFiles:
    """Searches files with debug information, each once.

    roots: copies of the recorded machine's file tree, which come before this machine's; folders: the user's, which may
    have a folder .build-id; server: asked last, None if the user names none.
    """

    def __init__(
        self,
        report: Report,
        roots: Sequence[str] = (),
        folders: Sequence[str] = (),
        limit: Limit = DEFAULT_LIMIT,
        server: Debuginfod | None = None,
    ) -> None:
        self._report = report
        self._roots = [*roots, SYSTEM]
        self._folders = list(folders)
        self._limit = limit
        self._server = server

    @property
    def can_download(self) -> bool:
        """Whether the user names a server."""
        return self._server is not None

    def debug_file(self, binary: Binary, path: str, name: str) -> Binary | None:
        """Returns the file with the debug information of a binary that has none itself. path: of the binary, as
        recorded; name: of the library, for the report."""
        link = debug_link(binary)
        places = self._places(binary.build_id, link, [path, binary.path])
        found = self._first(places, Wanted(binary.build_id, link.crc if link else None), binary.path)
        return found or self.downloaded(binary.build_id, name)

    def downloaded(self, build_id: str, name: str) -> Binary | None:
        """Returns a debug file from the user's servers."""
        path = self._server.find(build_id, "debuginfo", name) if self._server is not None and build_id else ""
        return self._first([path] if path else [], Wanted(build_id), "")

    def executable(self, build_id: str, name: str) -> Source | None:
        """Returns a library that is not here from the user's servers."""
        path = self._server.find(build_id, "executable", name) if self._server is not None and build_id else ""
        return self._opened(path, Wanted(build_id), "") if path else None

    def alternative(self, debug: Binary) -> Binary | None:
        """Returns the file to which `dwz` moved what several debug files share; None where it names none, or none is
        here."""
        link = alt_link(debug)
        if link is None:
            return None
        beside = os.path.join(os.path.dirname(os.path.realpath(debug.path)), link.path)
        rooted = [root.rstrip(os.sep) + link.path for root in self._roots if os.path.isabs(link.path)]
        places = [beside, *rooted, *(path_of_build(folder, link.build_id) for folder in self._debug_folders())]
        found = self._first(iter(places), Wanted(link.build_id), debug.path)
        return found or self.downloaded(link.build_id, Path(link.path).name)

    # ------------------------------------------------ places

    def _debug_folders(self) -> list[str]:
        return [*self._folders, *(root.rstrip(os.sep) + DEBUG_FOLDER for root in self._roots)]

    def _places(self, build_id: str, link: DebugLink | None, paths: Sequence[str]) -> Iterator[str]:
        """Yields paths, as GDB has them: by build id, then by name beside the binary and at its path in the folders of
        debug files. The path of a file that links lead to counts as well as the recorded one."""
        if len(build_id) >= MIN_DIGITS:
            yield from (path_of_build(folder, build_id) for folder in self._debug_folders())
        if link is None:
            return
        parents = [os.path.dirname(path) for path in paths if os.path.isabs(path)]
        for parent in dict.fromkeys([*parents, *map(os.path.realpath, parents)]):
            for root in self._roots:
                rooted = root.rstrip(os.sep)
                for folder in (rooted + parent, f"{rooted}{parent}/{BESIDE}", f"{rooted}{DEBUG_FOLDER}{parent}"):
                    yield os.path.join(folder, link.name)

    def _first(self, places: Iterator[str] | Sequence[str], wanted: Wanted, asked_by: str) -> Binary | None:
        for place in dict.fromkeys(places):
            source = self._opened(place, wanted, asked_by)
            if source is None:
                continue
            try:
                return Binary(source)
            except FormatError as error:
                self._report.note(
                    "symbols_damaged", offset=error.offset, where=place, detail=f"{place}: {error.message}"
                )
        return None

    def _opened(self, place: str, wanted: Wanted, asked_by: str) -> Source | None:
        """Returns the file if it is the wanted one, and not the one that asks."""
        if not os.path.exists(place) or (asked_by and os.path.realpath(place) == os.path.realpath(asked_by)):
            return None
        if wanted.build_id:
            return open_named(
                place, self._report, limit=self._limit,
                is_right=lambda head: is_same_build(build_id_of(head), wanted.build_id),
            )  # fmt: skip
        source = open_named(place, self._report, beside=asked_by, limit=self._limit)
        return source if source is not None and zlib.crc32(source.data) == wanted.crc else None
