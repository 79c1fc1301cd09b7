"""Where the debug information of a stripped ELF file is: FORMATS.md, "Where names are found", has the order."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from traceferry.common.errors import FormatError
from traceferry.common.report import Report
from traceferry.files.decompress import DEFAULT_LIMIT, Limit
from traceferry.files.named_files import open_named
from traceferry.files.source import Source
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.build_id import build_id_of, is_same_build
from traceferry.symbolication.choose import BUILD_IDS, ELF_MAGIC, MOST_NAMES, SPLIT_SUFFIXES, library_name
from traceferry.symbolication.debug_links import DebugLink, LinkedFiles, alt_link, debug_link, shared_id

if TYPE_CHECKING:
    from traceferry.symbolication.debuginfod import Debuginfod
    from traceferry.symbolication.elf import ElfSymbols
    from traceferry.symbolication.interface import Symbols

# This machine's file tree, and where distributions install debug files in it.
SYSTEM = os.sep
DEBUG_FOLDER = "/usr/lib/debug"
BESIDE = ".debug"
MIN_DIGITS = 4
IS_SHARED = (
    "dwz moved what several files have in common to {name}, which is missing: give it with --symbols FILE-OR-DIR, or "
    "install the package that has it"
)


class Wanted(NamedTuple):
    """The facts by which a file is known: build_id: in hex, "" is unknown; crc: of all its bytes, which counts then."""

    build_id: str
    crc: int | None = None


def path_of_build(folder: str, build_id: str) -> str:
    """Returns where a folder of debug files has that of a build: FOLDER/.build-id/ab/cdef.debug."""
    return os.path.join(folder, BUILD_IDS, build_id[:2], f"{build_id[2:]}.debug")


def build_id_caches(folders: Sequence[str]) -> list[Path]:
    """Returns the folders that may be build-id caches of perf's: the user's own, and those that the user gives."""
    return [Path.home() / ".debug", *map(Path, folders)]


def path_in_cache(cache: Path, build_id: str, name: str) -> str:
    """Returns where perf keeps a file of a build. name: "elf", "vdso"; "debug", which `perf record --debuginfod` has
    downloaded."""
    return str(cache / BUILD_IDS / build_id[:2] / build_id[2:] / name)


class DebugFiles:
    """Searches files with debug information, each once.

    roots: copies of the recorded machine's file tree, which come before this machine's; folders: the user's, which may
    have a folder .build-id; server: asked last, None if the user names none; given: files of the user's.
    """

    def __init__(
        self,
        report: Report,
        roots: Sequence[str] = (),
        folders: Sequence[str] = (),
        limit: Limit = DEFAULT_LIMIT,
        server: Debuginfod | None = None,
        given: Sequence[str] = (),
    ) -> None:
        self._report = report
        self._roots = [*roots, SYSTEM]
        self._folders = list(folders)
        self._limit = limit
        self._server = server
        self._given = given
        self._opened_split: dict[str, Binary | None] = {}
        # By the path of the binary that asked for it.
        self._of_another_build: dict[str, str] = {}

    @property
    def can_download(self) -> bool:
        """Whether the user names a server."""
        return self._server is not None

    def debug_file(self, binary: Binary, path: str, name: str) -> Binary | None:
        """Returns the file with the debug information of a binary that has none itself. path: of the binary, as
        recorded, which is none where the kernel made it in memory: servers are not asked for that; name: of the
        library, for the report."""
        link = debug_link(binary)
        places = self._places(binary.build_id, link, [path, binary.path])
        found = self._first(places, Wanted(binary.build_id, link.crc if link else None), binary.path)
        found = found or self._cached(binary)
        return found or (self.downloaded(binary.build_id, name) if os.path.isabs(path) else None)

    def of_another_build(self, binary: Binary) -> str:
        """Returns the path of a file where that with the debug information of a binary was searched, and which is of
        another build; "" if none was there."""
        return self._of_another_build.get(binary.path, "")

    def debug_symbols(self, binary: Binary, path: str, name: str) -> ElfSymbols | None:
        """Returns the symbols of the debug file of a binary, with what was moved out of that; None where none is here.
        path, name: as of `debug_file`."""
        from traceferry.symbolication.elf import ElfSymbols

        debug = self.debug_file(binary, path, name)
        return ElfSymbols(debug, self.beside(path, binary.path)) if debug is not None else None

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
        here, which the report then says."""
        link = alt_link(debug)
        if link is None:
            return None
        beside = os.path.join(os.path.dirname(os.path.realpath(debug.path)), link.path)
        rooted = [root.rstrip(os.sep) + link.path for root in self._roots if os.path.isabs(link.path)]
        name = os.path.basename(link.path)
        of_user = [place for place in self._given if os.path.basename(place) == name]
        of_user += [os.path.join(folder, name) for folder in self._folders]
        by_build = (path_of_build(folder, link.build_id) for folder in self._debug_folders())
        places = [beside, *rooted, *by_build, *of_user]
        found = self._first(iter(places), Wanted(link.build_id), debug.path)
        found = found or self.downloaded(link.build_id, name)
        if found is None:
            advice = IS_SHARED.format(name=name)
            self._note_missing(debug.name, link.path, f"with the build id {link.build_id}", advice)
        return found

    # ------------------------------------------------ split units

    def beside(self, *paths: str) -> LinkedFiles:
        """Returns what finds the files to which parts of the debug information of a binary were moved: they may be
        beside these paths, too."""
        return _Linked(self, paths)

    def package(self, paths: Sequence[str]) -> Binary | None:
        """Returns the .dwp file of a binary. paths: of the binary, and of what it was recorded as."""
        names = [name for path in paths for name in (f"{Path(path).name}.dwp", f"{library_name(Path(path).name)}.dwp")]
        places = [os.path.join(folder, name) for folder in self._parents(paths) for name in names]
        places += [place for name in names for place in self._split_by_name.get(name, ())]
        return next((found for place in dict.fromkeys(places) if (found := self._split_file(place)) is not None), None)

    def split_files(self, paths: Sequence[str], name: str, folder: str) -> Iterator[Binary]:
        """Yields .dwo files: where the compiler wrote it, beside the binary, in the user's folders."""
        compiled = os.path.join(folder, name)
        rooted = [root.rstrip(os.sep) + compiled for root in self._roots if os.path.isabs(compiled)]
        relative = [name] if not os.path.isabs(name) else []
        near = [
            os.path.join(parent, one)
            for parent in (*self._parents(paths), *self._folders)
            for one in (*relative, Path(name).name)
        ]
        for place in dict.fromkeys([*rooted, *near, *self._split_by_name.get(Path(name).name, ())]):
            found = self._split_file(place)
            if found is not None:
                yield found

    def note_missing_unit(self, library: str, name: str, split_id: str, others: Sequence[str]) -> None:
        what = f"with the id {split_id}; here of another build: {', '.join(others)}" if others else f"id {split_id}"
        self._note_missing(library, name, what)

    def _note_missing(self, library: str, name: str, what: str, advice: str | None = None) -> None:
        detail = f"{library}: {name} ({what})"
        self._report.note("debug_files_missing", where=f"{library}: {name}", detail=detail, advice=advice)

    def _parents(self, paths: Sequence[str]) -> list[str]:
        parents = [os.path.dirname(place) for path in paths for place in (path, os.path.realpath(path))]
        return list(dict.fromkeys(parent for parent in parents if os.path.isabs(parent)))

    @cached_property
    def _split_by_name(self) -> dict[str, list[str]]:
        """The user's .dwo and .dwp files by name; of those in folders, a limited number is looked at."""
        found: dict[str, list[str]] = {}
        walked = (
            os.path.join(parent, name)
            for folder in self._folders
            for parent, _, names in os.walk(folder)
            for name in sorted(names)
        )
        for place in chain(self._given, islice(walked, MOST_NAMES)):
            if place.endswith(SPLIT_SUFFIXES):
                found.setdefault(os.path.basename(place), []).append(place)
        return found

    def _split_file(self, place: str) -> Binary | None:
        """Returns a file that has no build id: its units have numbers, which are compared."""
        if place not in self._opened_split:
            source = open_named(place, self._report, is_right=is_elf, limit=self._limit)
            self._opened_split[place] = self._binary(source) if source is not None else None
        return self._opened_split[place]

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

    def _cached(self, binary: Binary) -> Binary | None:
        """Returns what perf keeps of a binary and that names more of it: its debug file; or a copy with symbols, as
        given to `perf buildid-cache --add`, or recorded before the binary was stripped."""
        if len(binary.build_id) < MIN_DIGITS:
            return None
        caches, names = build_id_caches(self._folders), ("debug", "elf")
        places = [path_in_cache(cache, binary.build_id, name) for cache in caches for name in names]
        own_size = _size_of(binary.path)
        for place in places:
            is_copy = _size_of(place) == own_size
            found = self._first([] if is_copy else [place], Wanted(binary.build_id), binary.path)
            if found is not None and _names_more(found, binary):
                return found
        return None

    def _first(self, places: Iterator[str] | Sequence[str], wanted: Wanted, asked_by: str) -> Binary | None:
        for place in dict.fromkeys(places):
            source = self._opened(place, wanted, asked_by)
            found = self._binary(source) if source is not None else None
            if found is not None:
                return found
        return None

    def _binary(self, source: Source) -> Binary | None:
        try:
            return Binary(source)
        except FormatError as error:
            place = source.path
            self._report.note("symbols_damaged", offset=error.offset, where=place, detail=f"{place}: {error.message}")
            return None

    def _opened(self, place: str, wanted: Wanted, asked_by: str) -> Source | None:
        """Returns the file if it is the wanted one, and not the one that asks."""
        if not os.path.exists(place) or (asked_by and os.path.realpath(place) == os.path.realpath(asked_by)):
            return None
        if wanted.build_id:

            def is_right(head: memoryview) -> bool:
                return is_same_build(build_id_of(head), wanted.build_id) or is_shared_as(place, head, wanted)

            found = open_named(place, self._report, is_right=is_right, limit=self._limit)
        else:
            source = open_named(place, self._report, beside=asked_by, limit=self._limit)
            found = source if source is not None and zlib.crc32(source.data) == wanted.crc else None
        if found is None:
            self._of_another_build.setdefault(asked_by, place)
        return found


def stripped_binary(symbols: Symbols) -> Binary | None:
    """Returns the binary whose symbols these are, if it has no debug information: its debug file may name more."""
    from traceferry.symbolication.elf import ElfSymbols

    if not isinstance(symbols, ElfSymbols) or symbols.has_lines or symbols.binary.is_debug_file:
        return None
    return symbols.binary


def _names_more(one: Binary, other: Binary) -> bool:
    """Whether a file of the same build has more symbols or lines than another."""
    names = (".symtab", ".debug_info", ".zdebug_info")
    sizes = [[section.size for section in file.sections if section.name in names] for file in (one, other)]
    return sum(sizes[0]) > sum(sizes[1])


def _size_of(path: str) -> int:
    """Returns the bytes of a file, 0 where none is there."""
    try:
        return os.path.getsize(path)
    except (OSError, ValueError):
        return 0


def is_elf(head: memoryview) -> bool:
    return bytes(head[:4]) == ELF_MAGIC


def is_shared_as(place: str, head: memoryview, wanted: Wanted) -> bool:
    """Whether it is the file to which `dwz --dwarf-5` moved what several have in common: it has no build id."""
    try:
        return shared_id(Binary(Source(place, head))) == wanted.build_id
    except FormatError:
        return False


class _Linked(NamedTuple):
    """A LinkedFiles of one binary. paths: of it, and of what it was recorded as."""

    files: DebugFiles
    paths: tuple[str, ...]

    def alternative(self, debug: Binary) -> Binary | None:
        return self.files.alternative(debug)

    def package(self, debug: Binary) -> Binary | None:
        return self.files.package(self._paths(debug))

    def split_files(self, debug: Binary, name: str, folder: str) -> Iterator[Binary]:
        return self.files.split_files(self._paths(debug), name, folder)

    def note_missing(self, debug: Binary, name: str, split_id: str, others: Sequence[str]) -> bool:
        self.files.note_missing_unit(debug.name, name, split_id, others)
        return True

    def _paths(self, debug: Binary) -> list[str]:
        return [*self.paths, os.path.abspath(debug.path)]
