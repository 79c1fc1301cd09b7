"""The binaries of a log: those that the user gives, those of the user's folders that fit, and else the program that the
log is named after."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from traceferry.common.errors import FormatError
from traceferry.common.report import Report
from traceferry.files.named_files import open_named
from traceferry.files.source import Source, written_at
from traceferry.importers.xray.functions import Object, misfit, numbered, refuse_unused
from traceferry.importers.xray.instr_map import SECTION, function_addresses
from traceferry.importers.xray.layout import OBJECT_SHIFT
from traceferry.importers.xray.log import Recorded
from traceferry.importers.xray.log_names import Place, names_of_program
from traceferry.reading import ImportContext
from traceferry.symbolication.choose import SymbolIndex, completes_others, open_symbols
from traceferry.symbolication.debug_files import stripped_binary
from traceferry.symbolication.elf import ElfSymbols
from traceferry.symbolication.interface import Symbols

if TYPE_CHECKING:
    from traceferry.symbolication.binary import Binary


class Programs:
    """The user's binaries and symbols, and those that logs are named after.

    Files that the user names must fit: FormatError is raised for those that do not. What of a folder does not fit is
    left out, and reported.
    """

    def __init__(self, context: ImportContext, report: Report) -> None:
        self._context = context
        self._report = report
        self._left_out: dict[str, str] = {}
        self._debug_files = context.debug_files(report)
        named = (self._open(one) for one in context.symbols if one.path not in context.in_folders)
        # What completes the debug information of others is found by these.
        given = [one for one in named if not (isinstance(one, ElfSymbols) and completes_others(one.binary))]
        found = [one for source in context.symbols if source.path in context.in_folders for one in self._read(source)]
        self._own = [one for one in given if isinstance(one, ElfSymbols) and not one.binary.is_debug_file]
        self._others = [one for one in given if one not in self._own]
        self._of_folders = [one for one in found if isinstance(one, ElfSymbols) and _is_instrumented(one.binary)]
        self._more_others = [one for one in found if not isinstance(one, ElfSymbols) or one.binary.is_debug_file]
        self._files = SymbolIndex([*self._others, *self._more_others])
        self._named: dict[str, Symbols] = {}

    def _open(self, source: Source) -> Symbols:
        return open_symbols(source, self._debug_files.beside())

    def _read(self, source: Source) -> Iterator[Symbols]:
        try:
            yield self._open(source)
        except FormatError as error:
            self._left_out[source.path] = error.message

    def objects_of(self, source: Source, log: Recorded, places: Sequence[Place]) -> list[Object]:
        """Returns the binaries of a log. places: of the program that it is named after. Raises FormatError for those
        that the user names and that do not fit."""
        programs = list(self._own)
        if not any(one.binary.is_executable for one in programs):
            programs += self._executable_of_folders(source, log)
        if not any(not one.binary.is_executable for one in programs):
            programs += self._shared_objects_of_folders(log, programs)
        has_objects = any(number >> OBJECT_SHIFT for number in log.function_ids)
        has_program = any(one.binary.is_executable for one in programs) or (programs and not has_objects)
        found = [] if has_program else self._named_after(source, log, places)
        numbers = [0] * len(found) + numbered([one.binary for one in programs])
        return [
            Object(number, one.binary, self._symbols_of(one), function_addresses(one.binary))
            for number, one in sorted(zip(numbers, [*found, *programs], strict=True), key=lambda pair: pair[0])
        ]

    def note_unused(self, objects: Sequence[Object]) -> None:
        """Raises FormatError for symbols that the user names and no log needs; reports those of folders."""
        refuse_unused(self._others, [one.binary for one in objects], [one.symbols for one in objects])
        used = {path for one in objects for path in (one.symbols.path, one.binary.path)}
        for other in self._more_others:
            self._left_out.setdefault(other.path, "of no binary of the log")
        for path, why in self._left_out.items():
            if path not in used:
                self._report.note("symbols_unused", where=path, detail=f"{path}: {why}")

    # ------------------------------------------------------------ symbols

    def _symbols_of(self, program: ElfSymbols) -> Symbols:
        """Returns what names the functions of a binary: the user's files, its own debug information, or that of its
        debug file."""
        path = program.path
        if path not in self._named:
            self._named[path] = self._given_for(program) or self._debug_symbols(program) or program
        return self._named[path]

    def _given_for(self, program: ElfSymbols) -> Symbols | None:
        try:
            return self._files.matching(program.build_id, program.name)
        except FormatError as error:
            if error.path not in self._context.in_folders:
                raise
            self._left_out[error.path] = error.message
            return None

    def _debug_symbols(self, program: ElfSymbols) -> Symbols | None:
        binary = stripped_binary(program)
        path = os.path.abspath(program.path)
        return self._debug_files.debug_symbols(binary, path, program.name) if binary is not None else None

    # ------------------------------------------------------------ folders

    def _executable_of_folders(self, source: Source, log: Recorded) -> list[ElfSymbols]:
        """Returns the executable that the log is named after, or else the only one that fits."""
        names = [*names_of_program(source.name)]
        executables = [one for one in self._of_folders if one.binary.is_executable or one.name in names]
        fitting = []
        for one in executables:
            why = misfit(log.function_ids, [_alone(one)])
            if why:
                self._left_out[one.path] = why
            else:
                fitting.append(one)
        chosen = [one for one in fitting if one.name in names] or fitting
        for one in fitting:
            why = "several executables fit the log" if len(chosen) > 1 else f"the log is of {chosen[0].path}"
            self._left_out[one.path] = why
        return chosen if len(chosen) == 1 else []

    def _shared_objects_of_folders(self, log: Recorded, programs: Sequence[ElfSymbols]) -> list[ElfSymbols]:
        """Returns shared objects, whose numbers are known only if the log has as many as there are."""
        shared = [one for one in self._of_folders if not one.binary.is_executable and one not in programs]
        n_objects = max((number >> OBJECT_SHIFT for number in log.function_ids), default=0)
        n_wanted = n_objects or int(not programs)
        objects = [Object(nth, one.binary, one, function_addresses(one.binary)) for nth, one in enumerate(shared, 1)]
        why = f"the log has {n_wanted} shared objects, the folders {len(shared)}: give those of the log in load order"
        if len(shared) == n_wanted:
            why = misfit(log.function_ids, objects)
        self._left_out |= {one.path: why for one in shared if why}
        return shared if not why else []

    # ------------------------------------------------------------ the log's name

    def _named_after(self, source: Source, log: Recorded, places: Sequence[Place]) -> list[ElfSymbols]:
        """Returns the program that the log is named after, if it is not newer than the log and has an instrumentation
        map with all its functions."""
        refused: dict[str, str] = {}
        if not log.function_ids:
            return []
        for path, beside in places:
            program, why = self._program_at(path, beside, source, log)
            if program is not None:
                self._report.note("program_unverified", where=path, detail=path)
                return [program]
            if why:
                refused[path] = why
        for path, why in refused.items():
            self._report.note("program_unused", where=path, detail=f"{path}: {why}")
        return []

    def _program_at(self, path: str, beside: str, source: Source, log: Recorded) -> tuple[ElfSymbols | None, str]:
        """Returns (the program, why a file that is there is not used)"""
        if os.stat(path).st_mtime > written_at(source):
            return None, "newer than the log"
        file = open_named(path, self._report, beside=beside, limit=self._context.limit)
        if file is None:
            return None, ""
        try:
            opened = self._open(file)
            if not isinstance(opened, ElfSymbols):
                return None, "not an executable"
            why = misfit(log.function_ids, [_alone(opened)])
        except FormatError as error:
            return None, error.message.removeprefix("as symbols: ")
        return (None, why) if why else (opened, "")


def _alone(program: ElfSymbols) -> Object:
    return Object(0, program.binary, program, function_addresses(program.binary))


def _is_instrumented(binary: Binary) -> bool:
    """Whether it is linked, with an instrumentation map that can be read."""
    try:
        if binary.is_debug_file or not binary.segments or binary.section(SECTION) is None:
            return False
        return bool(function_addresses(binary))
    except FormatError:
        return False
