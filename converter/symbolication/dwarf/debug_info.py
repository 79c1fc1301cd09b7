"""Map: the units of debug information, and the functions that their entries describe, one by one. `columns.py` reads
all of a file together, and `bulk.py` those at many addresses; what these do not read is left to this.

- A function begins in a section of code. One of several ranges is a function for each range.
- It has the rows of its unit's line table; where there are none, the line of its declaration.
- An inlined call belongs to the function, or call, whose ranges hold its own; lexical blocks are looked through.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from traceferry.common.errors import FormatError
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.debug_links import NO_FILES, LinkedFiles, alt_link
from traceferry.symbolication.demangle import shown_path
from traceferry.symbolication.dwarf.forms import FUNCTION_EFFORT, Sections, sections_of
from traceferry.symbolication.dwarf.lines import LineTable, line_table_at
from traceferry.symbolication.dwarf.numbers import DW_UT_split_type, DW_UT_type
from traceferry.symbolication.dwarf.split import SplitUnits
from traceferry.symbolication.dwarf.units import CONTEXTS, Entry, Lost, Unit, Units
from traceferry.symbolication.interface import Function, Inline, line_number
from traceferry.symbolication.ranges import Ranges, holder, merged

MAX_INLINED = 128  # calls inlined into each other
MAX_ORIGINS = 16  # entries that refer to each other
MAX_CONTEXTS = 64  # namespaces and classes around a function
MAX_SIZE = 1 << 32
CALL_OPERATOR = "operator()"
INLINED = ("DW_TAG_inlined_subroutine",)
CLASSES = ("DW_TAG_structure_type", "DW_TAG_class_type")

# What is lost where a call has no name, as of GCC's -flto with -gsplit-dwarf, which refers to nothing.
NAMELESS_CALLS = "inlined calls have no name there, and are shown as their callers (GCC: -flto with -gsplit-dwarf)"

# DW_LANG_* of C, C++ (to 23) and Objective C++ (DWARF 5, section 7.12, and the published list of later codes).
QUALIFIED_LANGUAGES = frozenset((0x02, 0x04, 0x11, 0x19, 0x1A, 0x21, 0x2A, 0x2B, 0x3A))


def context_name(name: str) -> str:
    """Returns the name of a namespace or class as it stands in front of others."""
    return f"{{{name[1:-1]}}}" if name[0] == "<" and name[-1] == ">" else name


def lambda_name(number: int) -> str:
    """Returns what stands in front of names in the class of a lambda."""
    return f"{{lambda#{number}}}"


def debug_info(binary: Binary, lost: Lost, linked: LinkedFiles = NO_FILES) -> DebugInfo | None:
    """Returns None where there is none that can be read."""

    def shared_sections() -> Sections | None:
        shared = linked.alternative(binary)
        try:
            return sections_of(shared, sections.effort) if shared is not None and sections is not None else None
        except FormatError as error:
            lost(error)
            return None

    try:
        sections = sections_of(binary, open_shared=shared_sections)
    except FormatError as error:
        lost(error)
        return None
    if sections is None:
        return None
    split = SplitUnits(binary, linked, sections, lost)
    return DebugInfo(sections, merged(binary.code_ranges), split, lost, has_all=alt_link(binary) is None)


def is_code(text: Ranges, address: int) -> bool:
    return holder(text, address, address + 1) is not None


class Piece(NamedTuple):
    """One of the ranges of a function. entry: its DW_TAG_subprogram."""

    begin: int
    end: int
    entry: Entry


class DebugInfo:
    """The units of a file, and what their entries mean. text: its sections of code, those that adjoin as one;
    split: finds what completes units; lost: called for what is damaged or missing; has_all: whether nothing is in a
    file that several share."""

    def __init__(
        self, sections: Sections, text: Ranges, split: SplitUnits, lost: Lost, *, has_all: bool = True
    ) -> None:
        self._has_all = has_all
        self.sections = sections
        self.text = text
        self.split = split
        self.lost = lost
        self._tables: dict[Unit, LineTable] = {}
        self._lambdas: dict[tuple[Unit, int], dict[int, int]] = {}
        self.units_of = Units(sections, lost)

    @cached_property
    def units(self) -> list[Unit]:
        return self.units_of.found

    def functions(self) -> Iterator[Function]:
        """Yields functions in the order of the units and their entries."""
        for unit in self.units:
            yield from self.functions_of(unit)

    def functions_of(self, unit: Unit) -> Iterator[Function]:
        for piece in self.code_of(unit):
            function = self.function(piece)
            if function is not None:
                yield function

    def declared_lines(self, names: set[str]) -> dict[str, int]:
        """Returns the line of the declaration of each of these functions, by linkage name, where there is one. Goes
        through the units until all are found."""
        found: dict[str, int] = {}
        for unit in self.units:
            if len(found) == len(names):
                break
            try:
                whole = (self.split.unit_of(unit) if unit.split_name else unit) or unit
                for entry in whole.entries.values():
                    if entry.tag == "DW_TAG_subprogram" and (name := self.name_of(entry)) in names:
                        lines = (line_number(origin.number("DW_AT_decl_line")) for origin in self._origins(entry))
                        line = next(filter(None, lines), 0)
                        if line:
                            found.setdefault(name, line)
            except FormatError as error:
                self.lost(error)
        return found

    def code_of(self, unit: Unit) -> Iterator[Piece]:
        """Yields the pieces of code of the unit's functions: none of a declaration, or of what was not linked in."""
        if unit.kind in (DW_UT_type, DW_UT_split_type):
            return
        try:
            if unit.split_name:
                unit = self.split.unit_of(unit) or unit
        except FormatError as error:
            self.lost(error)
            return
        entries = unit.entries
        if unit.damage is not None:
            self.lost(unit.damage)
        for entry in entries.values():
            if entry.tag == "DW_TAG_subprogram":
                try:
                    ranges = entry.ranges()
                except FormatError as error:
                    self.lost(error)
                    continue
                for begin, end in ranges:
                    if begin < end < begin + MAX_SIZE and is_code(self.text, begin):
                        yield Piece(begin, end, entry)

    def function(self, piece: Piece) -> Function | None:
        """Returns the function of a piece of code, whose name is "" where it is in a file that is not here, or nowhere;
        None where what describes it is damaged."""
        try:
            name = self.name_of(piece.entry)
            self.sections.spend(FUNCTION_EFFORT)
            lines = self._lines_in(piece.entry, piece.begin, piece.end)
            calls = self._inlined_in(piece.entry, [(piece.begin, piece.end)], 1)
        except FormatError as error:
            self.lost(error)
            return None
        return Function(name, piece.begin, piece.end - piece.begin, lines, calls)

    def note_nameless_calls(self) -> None:
        """Reports them, unless the file that names them is not here, which is reported then."""
        if self._has_all or self.sections.shared is not None:
            self.lost(FormatError(NAMELESS_CALLS))

    # ------------------------------------------------ lines

    def _lines_in(self, entry: Entry, begin: int, end: int) -> list[tuple[int, str, int]]:
        """Returns a function's rows; those that say the same as the one before are left out."""
        table = self._lines_of(entry.unit)
        lines: list[tuple[int, str, int]] = []
        for address, file, line in table.rows(begin, end):
            source = table.file(file)
            if not lines or lines[-1][1:] != (source, line):
                lines.append((address, source, line))
        return lines or self.declared_at(entry, begin)

    def line_at(self, unit: Unit, address: int) -> tuple[str, int]:
        """Returns (source, line) of an address of a unit; ("", 0) where its lines do not say."""
        try:
            table = self._lines_of(unit)
            for _, file, line in table.rows(address, address + 1):
                return shown_path(table.file(file)), line_number(line)
        except FormatError as error:
            self.lost(error)
        return "", 0

    def declared_at(self, entry: Entry, begin: int) -> list[tuple[int, str, int]]:
        line = next((n for e in self._origins(entry) if (n := e.number("DW_AT_decl_line")) is not None), 0)
        for origin in self._origins(entry):
            number = origin.number("DW_AT_decl_file")
            if number is not None:
                source = self._lines_of(origin.unit).file(number)
                return [(begin, source, line)] if source and line else []
        return []

    def _lines_of(self, unit: Unit) -> LineTable:
        # The lines of a split unit are in the linked file.
        unit = unit.skeleton or unit
        if unit not in self._tables:
            self._tables[unit] = self._read_lines(unit)
        return self._tables[unit]

    def _read_lines(self, unit: Unit) -> LineTable:
        try:
            at = unit.root.number("DW_AT_stmt_list")
            if at is not None:
                table = line_table_at(unit.sections, at, unit.root.text("DW_AT_comp_dir"))
                if table.damage is not None:
                    self.lost(table.damage)
                return table
        except FormatError as error:
            self.lost(error)
        return LineTable(self.sections)

    # ------------------------------------------------ inlined calls

    def _inlined_in(self, entry: Entry, within: Ranges, depth: int) -> tuple[Inline, ...]:
        """Returns the calls inlined directly into the entry whose ranges lie in `within`, which are merged. What is
        inlined into the rest of a function that GCC split is inlined into the function."""
        found: list[Inline] = []
        for call in self._below(entry, INLINED) if depth <= MAX_INLINED else ():
            ranges = merged(r for r in call.ranges() if holder(within, *r))
            if ranges and self.is_rest_of(call, entry):
                found += self._inlined_in(call, ranges, depth + 1)
            elif ranges:
                self.sections.spend(FUNCTION_EFFORT)
                source = self._lines_of(call.unit).file(call.number("DW_AT_call_file"))
                line = call.number("DW_AT_call_line") or 0
                children = self._inlined_in(call, ranges, depth + 1)
                found.append(Inline(self.name_of(call), tuple(ranges), source, line, children))
        return tuple(found)

    def is_rest_of(self, call: Entry, entry: Entry) -> bool:
        """Whether a call is the rest of the function itself: GCC splits functions, to inline where they begin
        (-fpartial-inlining), and may then put both together again, as a call in the line and column that declare the
        function. Where it calls itself, that is elsewhere: in another line, or in the same one behind its name. What
        compilers make of one destructor, which call each other, has several names."""
        declared_by = (one for one in self._origins(call) if one.number("DW_AT_decl_line") is not None)
        declaration = next(declared_by, None)
        if declaration is None or self.instance_of(call) is not self.instance_of(entry):
            return False
        line = declaration.number("DW_AT_decl_line") or 0
        declared, called = declaration.number("DW_AT_decl_column"), call.number("DW_AT_call_column")
        is_same_column = not declared or not called or declared == called
        is_declared_here = line > 0 and call.number("DW_AT_call_line") == line and is_same_column
        name = self.name_of(call) if is_declared_here else ""
        return bool(name) and name == self.name_of(entry)

    def instance_of(self, entry: Entry) -> Entry:
        """Returns the function of which an entry is a call, or a copy with code of its own: its abstract instance
        (DWARF 5, section 3.3.8), not the declaration of that."""
        origins = list(self._origins(entry))
        return next((one for one in origins if one.refers("DW_AT_specification")), origins[-1])

    def _below(self, entry: Entry, tags: Sequence[str]) -> Iterator[Entry]:
        """Yields the entries of these kinds directly below an entry; lexical blocks are looked through."""
        pending = entry.children[::-1]
        while pending:
            self.sections.spend(1)
            child = pending.pop()
            if child.tag in tags:
                yield child
            elif child.tag == "DW_TAG_lexical_block":
                pending += child.children[::-1]

    # ------------------------------------------------ names

    def name_of(self, entry: Entry) -> str:
        """Returns the linkage name; else the name, in C++ with its namespaces and classes in front; "" if there is
        none."""
        for origin in self._origins(entry):
            name = origin.text("DW_AT_MIPS_linkage_name") or origin.text("DW_AT_linkage_name")
            if name:
                return name
        name = next((name for origin in self._origins(entry) if (name := origin.text("DW_AT_name"))), "")
        is_qualified = entry.unit.root.number("DW_AT_language") in QUALIFIED_LANGUAGES
        # GCC names what it splits off a function by the symbol.
        if not name or not is_qualified or name.startswith("_Z"):
            return name
        return self.qualified(entry, name)

    def qualified(self, entry: Entry, name: str) -> str:
        """Returns an entry's name with those of what is around its declaration in front."""
        qualified = "::".join([*reversed(list(self._contexts(entry))), name])
        self.sections.spend(len(qualified))
        return qualified

    def _contexts(self, entry: Entry) -> Iterator[str]:
        """Returns the names of what is around the entry, the innermost first; of unnamed ones nothing, but of a lambda
        its number."""
        around = self._context(entry)
        for _ in range(MAX_CONTEXTS):
            if around is None:
                return
            name = next((name for origin in self._origins(around) if (name := origin.text("DW_AT_name"))), "")
            if name:
                yield context_name(name)
            elif number := self._number_of_lambda(around):
                yield lambda_name(number)
            around = self._context(around)

    def _number_of_lambda(self, entry: Entry) -> int:
        """Returns which lambda of the entry around it an unnamed entry is, from 1; 0 if it is none: classes of lambdas
        have no name, and what can be called."""
        around, unit = self._context(entry), entry.unit
        place = unit, around.offset if around is not None else 0
        if place not in self._lambdas:
            classes = self._below(around, CLASSES) if around is not None else self._classes_of_file(unit)
            self._lambdas[place] = {
                one.offset: number for number, one in enumerate(filter(self._is_lambda, classes), 1)
            }
        return self._lambdas[place].get(entry.offset, 0)

    def _classes_of_file(self, unit: Unit) -> Iterator[Entry]:
        self.sections.spend(len(unit.entries))
        return (entry for entry in unit.entries.values() if entry.parent is None and entry.tag in CLASSES)

    def _is_lambda(self, entry: Entry) -> bool:
        self.sections.spend(1 + len(entry.children))
        return not entry.text("DW_AT_name") and any(
            child.text("DW_AT_name").startswith(CALL_OPERATOR) for child in entry.children
        )

    def _context(self, entry: Entry) -> Entry | None:
        """Returns what is around the declaration, not around the place where it is inlined."""
        for origin in reversed(list(self._origins(entry))):
            parent = origin.parent
            while parent is not None and parent.tag == "DW_TAG_lexical_block":
                self.sections.spend(1)
                parent = parent.parent
            if origin.tag != "DW_TAG_inlined_subroutine" and parent is not None and parent.tag in CONTEXTS:
                return parent
        return None

    def _origins(self, entry: Entry) -> Iterator[Entry]:
        """Yields the entry itself, then what it specifies or instantiates."""
        origin: Entry | None = entry
        for _ in range(MAX_ORIGINS):
            if origin is None:
                return
            yield origin
            is_specified = origin.refers("DW_AT_specification")
            origin = origin.reference("DW_AT_specification" if is_specified else "DW_AT_abstract_origin")
