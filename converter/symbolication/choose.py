"""Matches symbol files to libraries: formats are detected by the first bytes, files matched by build id, then by
name."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from traceferry.common.errors import FormatError, UsageError
from traceferry.common.report import Report
from traceferry.files.source import Source, open_regular
from traceferry.symbolication.build_id import DEBUG_ID_DIGITS, is_same_build

if TYPE_CHECKING:
    from traceferry.symbolication.binary import Binary
    from traceferry.symbolication.debug_links import LinkedFiles
    from traceferry.symbolication.interface import Symbols

ELF_MAGIC = b"\x7fELF"
# GSYM_MAGIC 0x4753594d in either byte order.
GSYM_MAGICS = (b"MYSG", b"GSYM")
BREAKPAD_MAGIC = b"MODULE "
MAGICS = (ELF_MAGIC, *GSYM_MAGICS, BREAKPAD_MAGIC)
# More than the longest takes.
LONGEST_MAGIC = 32
# Folders of debug files have such a folder, with files by build id.
BUILD_IDS = ".build-id"
# What the report tells of a file that has no names of its own, as it has a debug file.
ADDRESSES_OF = "addresses of"
# In a folder of symbols: those that are recognised, and all others.
MOST_FILES, MOST_NAMES = 1 << 12, 1 << 17
# What the tools that write symbols put behind the name of the library.
SUFFIXES = (".gsym", ".sym", ".debug", ".dbg")
# ELF files that complete others, and name no library themselves.
SPLIT_SUFFIXES = (".dwo", ".dwp")


class Identified(Protocol):
    """The facts by which symbols are chosen: a Symbols, or what is known of its file. name: of the file, without
    folders; build_id: in lower-case hex, "" is unknown."""

    @property
    def path(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def build_id(self) -> str: ...


Chosen = TypeVar("Chosen", bound=Identified)


def open_symbols(source: Source, linked: LinkedFiles | None = None) -> Symbols:
    """Raises FormatError for a file that is none of these, or a header that cannot be read. linked:
    finds the files to which parts of its debug information were moved."""
    head = bytes(source.data[:LONGEST_MAGIC])
    if head.startswith(ELF_MAGIC):
        from traceferry.symbolication.binary import Binary
        from traceferry.symbolication.debug_links import NO_FILES
        from traceferry.symbolication.elf import ElfSymbols

        return ElfSymbols(Binary(source), linked or NO_FILES)
    if head.startswith(GSYM_MAGICS):
        from traceferry.symbolication.gsym.reader import Gsym

        return Gsym(source)
    if head.startswith(BREAKPAD_MAGIC):
        from traceferry.symbolication.breakpad.reader import Breakpad

        return Breakpad(source)
    from traceferry.symbolication.other_objects import OtherObject, is_other_object

    if is_other_object(head):
        return OtherObject(source)
    raise FormatError("not a readable ELF, GSYM, Breakpad, Mach-O, PE or PDB file", 0, path=source.path)


def symbol_files(paths: Iterable[str]) -> list[str]:
    """Returns files of symbols. A folder means the files in it and in its folders that are recognised as symbols, in
    the order of their names, its own first. Raises UsageError if it has more than MOST_FILES."""
    files: list[str] = []
    for path in paths:
        files += files_in_folder(path) if Path(path).is_dir() else [path]
    return files


def files_in_folder(folder: str) -> list[str]:
    """See `symbol_files`. What is in a folder .build-id is left out: it is looked up by build id."""
    files: list[str] = []
    n_looked_at = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != BUILD_IDS)
        n_looked_at += len(names)
        named = (Path(parent, name) for name in sorted(names) if not name.endswith(SPLIT_SUFFIXES))
        files += [str(path) for path in named if _begins_as_symbols(path)]
        if len(files) > MOST_FILES or n_looked_at > MOST_NAMES:
            raise UsageError(
                f"{folder}: it holds too many files to look for symbols in all; name a folder inside of it"
            )
    return files


def _begins_as_symbols(file: Path) -> bool:
    from traceferry.symbolication.other_objects import is_other_object

    try:
        with open_regular(str(file)) as opened:
            head = opened.read(LONGEST_MAGIC)
    except OSError:
        return False
    return head.startswith(MAGICS) or is_other_object(head)


def completes_others(binary: Binary) -> bool:
    """Whether the file has debug information of others alone: split units, or what `dwz` found in several."""
    names = {section.name for section in binary.sections}
    if not names.isdisjoint((".debug_info.dwo", ".zdebug_info.dwo")):
        return True
    return ".debug_info" in names and names.isdisjoint((".text", ".symtab", ".dynsym"))


class SymbolIndex(Generic[Chosen]):
    """Files of symbols, in the user's order, by build id and by name."""

    def __init__(self, symbols: Iterable[Chosen]) -> None:
        self._by_build: dict[str, list[Chosen]] = {}
        self._by_name: dict[str, list[Chosen]] = {}
        for one in symbols:
            self._by_build.setdefault(_build_key(one.build_id), []).append(one)
            self._by_name.setdefault(library_name(one.name), []).append(one)

    def of_build(self, build_id: str) -> list[Chosen]:
        found = self._by_build.get(_build_key(build_id), ())
        return [one for one in found if is_same_build(one.build_id, build_id)]

    def named(self, name: str) -> list[Chosen]:
        """Returns all files of that name, without folders."""
        return [one for one in self._by_name.get(library_name(name), ()) if one.name == name]

    def ending(self, suffix: str) -> list[Chosen]:
        """Returns all files whose names end so."""
        return [one for of_name in self._by_name.values() for one in of_name if one.name.endswith(suffix)]

    def matching(self, build_id: str, name: str) -> Chosen | None:
        """Returns the first of that build; where it or the library has no build id, the first of that name.

        build_id: of the library, in hex, "" is unknown; name: of its file, without folders.
        Raises FormatError, with both ids, if only files of other builds have that name.
        """
        of_build = self.of_build(build_id)
        if of_build:
            return of_build[0]
        named = self._by_name.get(library_name(name), ())
        undecided = next((one for one in named if not (one.build_id and build_id)), None)
        if undecided is None and named:
            raise refused_build(named[0], build_id, name)
        return undecided


def _build_key(build_id: str) -> str:
    """Returns what is equal for the ids of one build."""
    return build_id[:DEBUG_ID_DIGITS].ljust(DEBUG_ID_DIGITS, "0") if build_id else ""


def note_use(report: Report, library: str, symbols: Symbols, binary: Binary | None) -> None:
    """Reports what gave a library's functions their names, and the damage met so far. binary: the file with its
    code."""
    report.note("symbols_used", where=symbols.path, detail=f"{library}: {symbols.gives} of {symbols.path}")
    if binary is not None and binary.path != symbols.path:
        report.note("symbols_used", where=binary.path, detail=f"{library}: {ADDRESSES_OF} {binary.path}")
    if symbols.problems:
        offset, what = symbols.problems[0]
        detail = f"{symbols.name}: {what}"
        report.note("symbols_damaged", len(symbols.problems), offset=offset, where=symbols.path, detail=detail)


def refused_build(symbols: Identified, build_id: str, name: str) -> FormatError:
    """Returns the error for symbols of another build than the library's."""
    here = symbols.build_id or "unknown"
    message = f"as symbols of {name}: its build id is {here}, not {build_id or 'unknown'}"
    return FormatError(message, path=symbols.path)


def library_name(name: str) -> str:
    """Returns the library's name for a file of symbols: libc.so.6 for libc.so.6.debug."""
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name
