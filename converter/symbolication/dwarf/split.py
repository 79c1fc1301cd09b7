"""Map: skeleton units, which are in the linked file, to the units that complete them: in .dwo files, or in a .dwp
package of these (DWARF 5, sections 7.3.2 and 7.3.5; "DebugFission" and "DebugFissionDWP" in GCC's wiki for version 4).

A split unit is read through the pieces of its file's sections that belong to it, as if these were sections; addresses,
and before DWARF 5 ranges, are in the linked file.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.debug_links import LinkedFiles
from traceferry.symbolication.dwarf.forms import FUNCTION_EFFORT, Effort, Order, Section, Sections, number_at
from traceferry.symbolication.dwarf.units import Lost, Unit, Units

# ---------------------------------------------------------------- layout

# DW_SECT_*: the columns of a package's index by version, 2 is GNU's.
GNU = 2
COLUMNS = {
    GNU: {1: "info", 3: "abbrev", 4: "line", 6: "str_offsets"},
    5: {1: "info", 3: "abbrev", 4: "line", 6: "str_offsets", 8: "rnglists"},
}
HEADER_SIZE = 16
# Not in the index: all units of a package have one.
WHOLE = "str"
SPLIT_SECTIONS = ("info", "abbrev", "line", "str_offsets", "rnglists", WHOLE)
INDEX = "cu_index"

Pieces = dict[str, tuple[int, int]]


class Package:
    """The index of a package. Raises FormatError where it is damaged."""

    def __init__(self, held: dict[str, Section], index: Section, order: Order, effort: Effort) -> None:
        self.held = held
        # GNU's is a u32; version 5 is a u16, and zeros.
        version = number_at(index, 0, 4, order)
        if version != GNU:
            version = number_at(index, 0, 2, order)
        if version not in COLUMNS:
            raise FormatError(f"version {version} of the index is not supported", 0, index.name)
        n_columns, n_units, n_slots = (number_at(index, at, 4, order) for at in (4, 8, 12))
        size = HEADER_SIZE + 12 * n_slots + 4 * n_columns * (1 + 2 * n_units)
        if size > len(index):
            raise FormatError(f"{n_units} units do not fit into the index", 0, index.name)
        effort.spend(n_slots)
        word = "<" if order == "little" else ">"
        at = HEADER_SIZE
        self._ids = np.frombuffer(index.bytes, f"{word}u8", n_slots, at)
        self._rows = np.frombuffer(index.bytes, f"{word}u4", n_slots, at + 8 * n_slots)
        tables = np.frombuffer(index.bytes, f"{word}u4", n_columns * (1 + 2 * n_units), at + 12 * n_slots)
        self._columns = [COLUMNS[version].get(number, "") for number in tables[:n_columns].tolist()]
        self._begins, self._sizes = tables[n_columns:].reshape(2, n_units, n_columns)

    @cached_property
    def _row_of(self) -> dict[int, int]:
        is_used = self._rows > 0
        return dict(zip(self._ids[is_used].tolist(), (self._rows[is_used] - 1).tolist(), strict=True))

    def pieces_of(self, split_id: int) -> Pieces | None:
        """Returns (begin, end) in each section of one unit."""
        row = self._row_of.get(split_id)
        if row is None or row >= len(self._begins):
            return None
        begins, sizes = self._begins[row].tolist(), self._sizes[row].tolist()
        columns = zip(self._columns, begins, sizes, strict=True)
        return {name: (begin, begin + size) for name, begin, size in columns if name}


# ---------------------------------------------------------------- map


class _File(NamedTuple):
    """held: sections by name; unit_at: where in .debug_info.dwo the unit of a number is."""

    held: dict[str, Section]
    unit_at: dict[int | None, int]


class SplitUnits:
    """Finds the units that complete skeletons. sections: of the linked file, which has these; lost: called for what is
    damaged."""

    def __init__(self, binary: Binary, linked: LinkedFiles, sections: Sections, lost: Lost) -> None:
        self._binary = binary
        self._linked = linked
        self._sections = sections
        self._effort = sections.effort
        self._lost = lost
        self._found: dict[Unit, Unit | None] = {}
        self._files: dict[str, list[_File]] = {}

    def unit_of(self, skeleton: Unit) -> Unit | None:
        """Returns the unit that has a skeleton's number; None where none is here."""
        if skeleton not in self._found:
            self._found[skeleton] = self._find(skeleton)
        return self._found[skeleton]

    def _find(self, skeleton: Unit) -> Unit | None:
        split_id, name = skeleton.split_id, skeleton.split_name
        if split_id is None:
            return None
        try:
            if self._package is not None:
                pieces = self._package.pieces_of(split_id)
                if pieces is not None:
                    unit = self._unit(cut(self._package.held, pieces), 0, skeleton)
                    if unit.split_id == split_id:
                        return unit
            folder = skeleton.root.text("DW_AT_comp_dir")
        except FormatError as error:
            self._lost(error)
            return None
        others: list[str] = []
        for binary in self._linked.split_files(self._binary, name, folder):
            for file in self._files_in(binary):
                at = file.unit_at.get(split_id)
                if at is not None:
                    return self._unit(file.held, at, skeleton)
            others.append(binary.path)
        if not self._linked.note_missing(self._binary, name, f"{split_id:016x}", others):
            self._lost(FormatError(f"the debug information of a unit is in another file, {name}", skeleton.offset))
        return None

    def _unit(self, held: dict[str, Section], at: int, skeleton: Unit) -> Unit:
        """Returns the unit at an offset. Several skeletons may name it, and each reads it."""
        unit = Unit(self._units_of(held, skeleton), at)
        self._effort.spend(FUNCTION_EFFORT + unit.end - unit.offset)
        return unit

    def _units_of(self, held: dict[str, Section], skeleton: Unit | None) -> Units:
        of_linked = self._sections.held
        return Units(Sections(self._sections.order, {**of_linked, **held}, self._effort), self._lost, skeleton)

    def _files_in(self, binary: Binary) -> list[_File]:
        """Returns the units that a .dwo file has: where those of types are apart, as if they were several files."""
        if binary.path not in self._files:
            files = self._files[binary.path] = []
            try:
                for held in split_sections(binary):
                    self._effort.add(sum(map(len, held.values())))
                    units = self._units_of(held, None).found
                    files.append(_File(held, {unit.split_id: unit.offset for unit in reversed(units)}))
            except FormatError as error:
                self._lost(error)
        return self._files[binary.path]

    @cached_property
    def _package(self) -> Package | None:
        binary = self._linked.package(self._binary)
        if binary is None:
            return None
        try:
            held = next(split_sections(binary), None)
            index = binary.section(f".debug_{INDEX}")
            if held is None or index is None:
                return None
            self._effort.add(sum(map(len, held.values())) + len(index[1]))
            return Package(held, Section(f".debug_{INDEX}", index[1]), self._sections.order, self._effort)
        except FormatError as error:
            self._lost(error)
            return None


def split_sections(binary: Binary) -> Iterator[dict[str, Section]]:
    """Yields the sections of a .dwo or .dwp file by name, once for each .debug_info.dwo: that of a type unit may be
    another. Raises FormatError where one cannot be read."""
    named = {name: section for name in SPLIT_SECTIONS if (section := _of_split(binary, name)) is not None}
    nothing = {name: Section(f".debug_{name}.dwo", memoryview(b"")) for name in SPLIT_SECTIONS}
    for header in binary.section_headers:
        if header.name in (".debug_info.dwo", ".zdebug_info.dwo"):
            yield {**nothing, **named, "info": Section(".debug_info.dwo", binary.content(header))}


def _of_split(binary: Binary, name: str) -> Section | None:
    header = binary.section_named(f".debug_{name}.dwo") or binary.section_named(f".zdebug_{name}.dwo")
    return Section(f".debug_{name}.dwo", binary.content(header)) if header is not None else None


def cut(held: dict[str, Section], pieces: Pieces) -> dict[str, Section]:
    """Returns the pieces of sections as if they were sections. Raises FormatError where one ends beyond its section."""
    found = {name: Section(section.name, section.bytes[:0]) for name, section in held.items()}
    found[WHOLE] = held[WHOLE]
    for name, (begin, end) in pieces.items():
        if end > len(held[name]):
            raise FormatError("a unit's piece ends beyond the section", begin, held[name].name)
        found[name] = Section(held[name].name, held[name].bytes[begin:end])
    return found
