"""The libraries of an input: where what names them is, which of it was used, and what could not be found."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.common.report import Report
from traceferry.files.answers import MACHINE, checked
from traceferry.files.named_files import open_named
from traceferry.files.source import Source, paths_beside
from traceferry.libraries import vdso
from traceferry.libraries.library import Library
from traceferry.libraries.recorded_files import (
    DELETED,
    IS_OF_OTHER_BUILD,
    OF_BUILD,
    Recorded,
    RecordedFiles,
    RecordedTimes,
)
from traceferry.model import Array, TraceBuilder, category_of_file
from traceferry.reading import ImportContext
from traceferry.symbolication.build_id import debug_id_of, is_same_build
from traceferry.symbolication.choose import BUILD_IDS
from traceferry.symbolication.debug_files import DebugFiles, stripped_binary
from traceferry.symbolication.debug_links import debug_link
from traceferry.symbolication.demangle import demangler_for
from traceferry.symbolication.interface import FoundSymbols
from traceferry.symbolication.packages import OF_NO_SYMBOL, advice_for, elsewhere

if TYPE_CHECKING:
    from traceferry.symbolication.binary import Binary
    from traceferry.symbolication.choose import SymbolIndex
    from traceferry.symbolication.interface import Frames, Symbols

One = TypeVar("One")

# How many addresses without a name it takes to look for the package of a library's debug file.
MANY_NAMELESS = 10


OF_ANOTHER_BUILD = "{path} is the debug file of another build: give that of this one: --symbols FILE"


def two_of(kind: type[One]) -> Callable[[Any], tuple[One, One]]:
    """Returns what checks an answer of two values."""

    def unpacked(value: Any) -> tuple[One, One]:
        first, second = (checked(one, kind) for one in value)
        return first, second

    return unpacked


def _names_elsewhere(library: Library, debug_files: DebugFiles) -> tuple[str, str]:
    """Returns (the name of a library's debug file, what gives it to the user), "" where they are not known."""
    assert library.symbols is not None
    refused = debug_files.of_another_build(library.binary) if library.binary is not None else ""
    if refused and library.debug is None:
        return os.path.basename(refused), OF_ANOTHER_BUILD.format(path=shlex.quote(refused))
    link = debug_link(library.binary) if library.binary is not None and library.debug is None else None
    if link is None and not elsewhere(library.path) and _has_symbols(library, library.symbols):
        return "", OF_NO_SYMBOL
    is_wanted = library.n_nameless >= MANY_NAMELESS and library.debug is None
    return link.name if link is not None else "", _advice(library) if is_wanted else ""


def _has_symbols(library: Library, symbols: Symbols) -> bool:
    """Whether a library's own file, as it was linked, names functions."""
    from traceferry.symbolication.elf import DEBUG_INFORMATION, SYMBOL_TABLE

    return library.debug is None and symbols.gives in (DEBUG_INFORMATION, SYMBOL_TABLE)


def _advice(library: Library) -> str:
    """Returns what gives names to a library whose file is here: at its path, or, if that is not where it was found, for
    what the path alone tells."""
    assert library.symbols is not None
    path, found = library.path, library.symbols.path
    if not os.path.isabs(path):
        return ""
    is_here = os.path.realpath(path) == os.path.realpath(found) or BUILD_IDS in Path(found).parts
    return advice_for(path) if is_here and os.path.exists(path) else elsewhere(path)


def _is_program(symbols: Symbols) -> bool:
    """Whether it is a program or a library itself, and not a file made to name its functions."""
    from traceferry.symbolication.elf import ElfSymbols
    from traceferry.symbolication.other_objects import OtherObject

    if isinstance(symbols, OtherObject):
        return not symbols.has_lines
    return isinstance(symbols, ElfSymbols) and not symbols.binary.is_debug_file


class Libraries:
    """The libraries of an input, each once. beside: the input's file, beside which symbols may be; times: see
    RecordedFiles; keeps_frames: whether a pack has the call-frame information of all of them, to unwind stacks."""

    def __init__(
        self,
        trace: TraceBuilder,
        context: ImportContext,
        beside: Source | None = None,
        times: RecordedTimes | None = None,
        keeps_frames: bool = False,
    ) -> None:
        self.libraries: list[Library] = []
        self._n_entered = 0
        self._trace = trace
        self._beside = [beside] if beside is not None else []
        self._sources = context.symbols
        self._find_symbols = context.find_symbols
        self._limit = context.limit
        self._sysroots = context.sysroots
        self._folders = context.folders
        self._library_of: dict[tuple[str, str], Library] = {}
        self._debug_files = context.debug_files(trace.report)
        self.answers = self._answers = beside.answers if beside is not None else MACHINE
        self.demangle = demangler_for(self._answers, trace.report)
        self._keeps_frames = keeps_frames
        self._files = RecordedFiles(trace.report, context.sysroots, context.folders, context.limit, times)

    def library(self, recorded: Recorded) -> Library:
        """Returns the library, with what names it, if that is here."""
        path, build_id = recorded.path, recorded.build_id
        library = self._library_of.get((path, build_id))
        if library is None:
            category = recorded.category or category_of_file(path)
            library = Library(len(self.libraries), Path(path).name, build_id, None, None, category=category)
            library.path, library.inode = path, recorded.inode
            library.keeps, library.is_jitted_object = self._answers.keeps, recorded.is_jitted_object
            self._library_of[path, build_id] = library
            self.libraries.append(library)
            if path == vdso.PATH or not path.startswith("["):
                self._find(recorded, library)
        return library

    def enter(self, n: int) -> None:
        """Gives the first n libraries their rows in the trace."""
        intern = self._trace.strings.intern
        for library in self.libraries[self._n_entered : n]:
            if library.row < 0:
                library.row = self._trace.libs.intern(
                    name=intern(library.name),
                    debug_id=intern(debug_id_of(library.build_id)) if library.build_id else -1,
                    code_id=intern(library.build_id) if library.build_id else -1,
                    arch=intern(library.binary.arch) if library.binary is not None else -1,
                )
        self._n_entered = max(self._n_entered, n)

    def note_problems(self) -> None:
        """Reports the problems of symbols, once everything was looked up."""
        from traceferry.symbolication.choose import note_use

        self.demangle.note_kept(self._trace.report, "libraries")
        for library in self.libraries:
            symbols = library.symbols
            if symbols is not None:
                note_use(self._trace.report, library.name, symbols, library.binary)
                by_offset = int(library.binary is None and library.is_by_offset)
                self._trace.report.note("symbols_by_offset", by_offset, where=symbols.path, detail=symbols.name)
            if library.n_nameless and not library.is_jitted_object:
                self._note_nameless(library)

    def _note_nameless(self, library: Library) -> None:
        report, name, n = self._trace.report, library.name, library.n_nameless
        where = f"{name} {library.number}"
        counts = f"{name} ({n} of {library.n_asked} addresses)"
        if library.symbols is None and library.differs:
            report.note("names_missing", n, where=where, detail=f"{counts}: {IS_OF_OTHER_BUILD}", advice=OF_BUILD)
            return
        if library.symbols is None:
            ask = partial(self._files.why_unnamed, library.path, library.build_id, library.inode)
            why, advice = self._answers.ask(f"why unnamed {where}", report, ask, unpacked=two_of(str))
            detail = f"{counts}: {why or 'no build id is recorded'}"
            report.note("names_missing", n, where=where, detail=detail, advice=advice or None)
            return
        link, advice = self._answers.ask(
            f"names of {where}", report, partial(_names_elsewhere, library, self._debug_files), unpacked=two_of(str)
        )
        apart = f"; its debug file is called {link}" if link else ""
        report.note("names_partly_missing", n, where=where, detail=f"{counts}{apart}", advice=advice or None)

    def _find(self, recorded: Recorded, library: Library) -> None:
        """Finds what names the file's code, and the file: in the pack, if the recording is of one."""
        key = f"library {recorded.path} {library.build_id}"
        self._answers.ask(
            key,
            self._trace.report,
            partial(self._find_here, recorded, library),
            lambda _: self._packed(library),
            partial(self._find_in_pack, recorded, library),
        )

    def _packed(self, library: Library) -> Any:
        """Returns a library as a pack holds it: what the recording needs of it."""
        from traceferry.unwinding.packed import Used, packed_binary, packed_symbols

        symbols, binary = library.symbols, library.binary
        value: dict[str, Any] = {"name": library.name, "build_id": library.build_id, "differs": library.differs}
        value |= {"n_asked": library.n_asked, "symbols": None, "binary": None, "debug": None}
        if symbols is not None:
            base = np.uint64(symbols.base)

            def lookup(addresses: Array) -> Frames:
                found = library.file.lookup(addresses - base)
                return found._replace(start=np.where(np.diff(found.first) > 0, found.start + base, found.start))

            asked = [addresses + base for addresses in library.asked]
            big = binary is not None and not binary.little_endian
            frames = self._keeps_frames or library.n_nameless > 0
            value["symbols"] = packed_symbols(Used(symbols, lookup, asked, self._answers.keeps_whole), big)
            value["is_stripped"] = stripped_binary(symbols) is not None
            used = None if self._answers.keeps_whole else library.addresses_with_frames()
            value["binary"] = packed_binary(binary, sorted(library.not_called), frames, used)
            value["debug"] = packed_binary(library.debug, (), frames, used)
        return value

    def _find_in_pack(self, recorded: Recorded, library: Library, value: Any) -> None:
        """Takes what a pack has of a library. Symbols of the user's come first, and what the pack lacks is searched
        where the user says."""
        from traceferry.unwinding.packed import PackedSymbols, unpacked_binary

        library.differs = checked(value["differs"], str)
        has_symbols = bool(self._sources) or self._find_symbols is not None
        has_more = bool(has_symbols or self._folders or self._sysroots or self._debug_files.can_download)
        if value["symbols"] is None:
            if has_more:
                self._find_here(recorded, library)
            return
        given, _ = self._given_for(library.name, library.build_id) if has_symbols else (None, "")
        library.symbols = given.symbols if given is not None else PackedSymbols(value["symbols"])
        library.binary, library.debug = unpacked_binary(value["binary"]), unpacked_binary(value["debug"])
        if given is not None:
            binary, debug = self._binaries_of(given, None)
            library.binary, library.debug = binary or library.binary, debug or library.debug
            self._find_debug_file(library, recorded.path, given.stripped or stripped_binary(given.symbols))
        elif has_more and checked(value["is_stripped"], bool):
            self._find_debug_file(library, recorded.path, library.binary)

    def _find_here(self, recorded: Recorded, library: Library) -> None:
        """Finds what names the file's code, and the file, on this machine. The user's files come first, then what
        can be found; where no build id is recorded, after that of the recorded path, if a JIT compiler's code is in
        it."""
        path, name, build_id = recorded.path, library.name.removesuffix(DELETED), library.build_id
        is_jitted = not build_id and library.is_jitted_object
        source, differs = self._files.jitted_object(recorded) if is_jitted else self._files.local(path, build_id)
        opened = self._opened(source, recorded=path) if source is not None else None
        own = FoundSymbols(opened) if opened is not None else None
        given, refusal = self._given_for(name, build_id)
        if given is None and (own is None or build_id) and not is_jitted:
            given, other = self._symbols_beside(name, build_id)
            refusal = refusal or other
        found = (given or own) if build_id else (own or given)
        if found is None and not is_jitted:
            source = self._debug_files.executable(build_id, name) if build_id else self._files.unverified(recorded)
            opened = self._opened(source, recorded=path) if source is not None else None
            found = FoundSymbols(opened) if opened is not None else None
        if found is None and (refusal or differs):
            library.differs = refusal or differs
            self._trace.report.note("build_id_differs", where=name, detail=f"{name}: {library.differs}")
        if found is not None:
            library.symbols = found.symbols
            self._tell_path(found.symbols, path)
            library.binary, library.debug = self._binaries_of(found, own)
            self._find_debug_file(library, path, found.stripped or stripped_binary(found.symbols))

    def _tell_path(self, symbols: Symbols, path: str) -> None:
        """Lets split debug information of the user's file also be beside the recorded path: app.dwp, for app.debug."""
        from traceferry.symbolication.elf import ElfSymbols

        if isinstance(symbols, ElfSymbols):
            symbols.linked = self._debug_files.beside(path, symbols.path)

    def _find_debug_file(self, library: Library, path: str, stripped: Binary | None) -> None:
        """Finds the debug information of a binary that has none itself, and that nothing else names."""
        named = self._debug_files.debug_symbols(stripped, path, library.name) if stripped is not None else None
        if named is not None:
            library.symbols, library.debug = named, named.binary

    def _given_for(self, name: str, build_id: str) -> tuple[FoundSymbols | None, str]:
        """Returns (symbols for a library: the user's, else those that can be found; why those of its name are
        refused)"""
        refusals: list[str] = []
        for find in (self._among_given, self._find_symbols):
            try:
                found = find(build_id, name, self._trace.report) if find is not None else None
            except FormatError as error:
                refusals.append(error.message)
            else:
                if found is not None:
                    return found, ""
        return None, next(iter(refusals), "")

    def _among_given(self, build_id: str, name: str, _: Report) -> FoundSymbols | None:
        symbols = self._given.matching(build_id, name) if self._given else None
        return FoundSymbols(symbols) if symbols is not None else None

    def _symbols_beside(self, name: str, build_id: str) -> tuple[FoundSymbols | None, str]:
        """Returns (what the GSYM file beside the recording has that is called as the library is; why it is refused).
        Where no build id is recorded, its name tells."""
        for path, beside in paths_beside(self._beside, (), f"{name}.gsym"):
            source = open_named(path, self._trace.report, beside=beside, limit=self._limit)
            symbols = self._opened(source) if source is not None else None
            if symbols is None:
                continue
            if build_id and not is_same_build(symbols.build_id, build_id):
                return None, f"recorded {build_id}, beside the recording {symbols.build_id or 'one without a build id'}"
            if not build_id:
                self._trace.report.note("files_unverified", where=path, detail=path)
            return FoundSymbols(symbols), ""
        return None, ""

    def _binaries_of(self, found: FoundSymbols, own: FoundSymbols | None) -> tuple[Binary | None, Binary | None]:
        """Returns the ELF file of what was found, itself or another of that build; and that with its debug information,
        if it is apart."""
        from traceferry.symbolication.elf import ElfSymbols

        of_build = self._given.of_build(found.symbols.build_id) if self._given else []
        opened = [one.symbols for one in (found, own) if one is not None] + of_build
        files = [one.binary for one in opened if isinstance(one, ElfSymbols)]
        return (
            found.binary or next((binary for binary in files if not binary.is_debug_file), None),
            found.debug or next((binary for binary in files if binary.is_debug_file), None),
        )

    @cached_property
    def _given(self) -> SymbolIndex[Symbols] | None:
        """Returns what the user gives; files made of binaries before the binaries themselves."""
        opened = [one for source in self._sources if (one := self._opened(source, "symbols_unused")) is not None]
        if not opened:
            return None
        from traceferry.symbolication.choose import SymbolIndex

        return SymbolIndex(sorted(opened, key=_is_program))

    def _opened(self, source: Source, kind: str = "", recorded: str = "") -> Symbols | None:
        """Returns None for a file that cannot be read, which is reported as of this kind. recorded: the path of the
        library, if it is known: parts of its debug information may be beside that, too."""
        from traceferry.symbolication.choose import open_symbols

        try:
            return open_symbols(source, self._debug_files.beside(*([recorded] if recorded else [])))
        except FormatError as error:
            if kind:
                self._trace.report.note(kind, where=source.path, detail=f"{source.path}: {error.message}")
            return None
