"""Decode: the units of .debug_info (DWARF 5, section 7.5) as entries with their attributes, and range lists (2.17.3).

Only entries that name or hold code become objects; all others are skipped. Everything raises FormatError, with the
offset in its section, where the bytes are invalid.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from traceferry.common.errors import FormatError
from traceferry.symbolication.dwarf import numbers
from traceferry.symbolication.dwarf.forms import (
    IMPLICIT_CONST,
    Coding,
    Order,
    Section,
    Sections,
    Skip,
    number_at,
    sleb_at,
    uleb_at,
)
from traceferry.symbolication.dwarf.numbers import (
    TAGS,
    DW_UT_compile,
    DW_UT_skeleton,
    DW_UT_split_compile,
    DW_UT_split_type,
    DW_UT_type,
)
from traceferry.symbolication.ranges import Ranges

# ---------------------------------------------------------------- layout


Lost = Callable[[FormatError], None]

CONTEXTS = tuple(f"DW_TAG_{name}" for name in ("namespace", "structure_type", "union_type", "class_type", "subprogram"))
# The entries that are kept.
PARTIAL = "DW_TAG_partial_unit"
KEPT = {TAGS[tag]: tag for tag in (*CONTEXTS, "DW_TAG_inlined_subroutine", "DW_TAG_lexical_block", PARTIAL)}
# The attributes that are read.
ATTRIBUTES: dict[str, int] = {
    name: numbers.ATTRIBUTES[name]
    for name in (
        *("DW_AT_name", "DW_AT_linkage_name", "DW_AT_MIPS_linkage_name", "DW_AT_language", "DW_AT_comp_dir"),
        *("DW_AT_low_pc", "DW_AT_high_pc", "DW_AT_ranges", "DW_AT_rnglists_base"),
        *("DW_AT_decl_file", "DW_AT_decl_line", "DW_AT_call_file", "DW_AT_call_line", "DW_AT_stmt_list"),
        *("DW_AT_decl_column", "DW_AT_call_column"),
        *("DW_AT_abstract_origin", "DW_AT_specification", "DW_AT_dwo_name", "DW_AT_GNU_dwo_name"),
        *("DW_AT_str_offsets_base", "DW_AT_addr_base", "DW_AT_GNU_addr_base", "DW_AT_GNU_ranges_base"),
        "DW_AT_GNU_dwo_id",
    )
}
READ = frozenset(ATTRIBUTES.values())

# The operands of DW_RLE_*: x: the index of an address; a: an address; u: a ULEB128 number.
RANGE_OPERANDS = ("", "x", "xx", "xu", "uu", "a", "aa", "au")
END_OF_LIST, OFFSET_PAIR = 0, 4


# ---------------------------------------------------------------- abbreviations

Attributes = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """An abbreviation. tag: "" of entries that are not kept; attributes: (name, form, constant); steps: what
    leads from the first attribute to behind the last: a number of bytes, or what finds the next byte."""

    tag: str
    has_children: bool
    attributes: Attributes
    steps: tuple[int | Skip, ...]


def shapes_at(sections: Sections, at: int, coding: Coding) -> dict[int, Shape]:
    """Returns code → abbreviation of the table at `at` in .debug_abbrev; of equal codes the first."""
    shapes: dict[int, Shape] = {}
    for code, shape in _shapes_from(sections, at, coding):
        shapes.setdefault(code, shape)
    return shapes


def shape_of(sections: Sections, at: int, coding: Coding, code: int) -> Shape | None:
    """Returns one abbreviation of the table at `at`; that of a unit's first entry mostly is the first."""
    return next((shape for one, shape in _shapes_from(sections, at, coding) if one == code), None)


def _shapes_from(sections: Sections, at: int, coding: Coding) -> Iterator[tuple[int, Shape]]:
    abbrev = sections.abbrev
    while True:
        code, at = uleb_at(abbrev, at)
        if code == 0:
            return
        tag, at = uleb_at(abbrev, at)
        has_children = number_at(abbrev, at, 1, "little") != 0
        attributes, at = _attributes_at(abbrev, at + 1)
        sections.spend(1 + len(attributes))
        yield code, Shape(KEPT.get(tag, ""), has_children, attributes, _steps(attributes, coding, at, abbrev))


def _attributes_at(abbrev: Section, at: int) -> tuple[Attributes, int]:
    attributes: list[tuple[int, int, int]] = []
    while True:
        name, at = uleb_at(abbrev, at)
        form, at = uleb_at(abbrev, at)
        constant, at = sleb_at(abbrev, at) if form == IMPLICIT_CONST else (0, at)
        if name == form == 0:
            return tuple(attributes), at
        attributes.append((name, form, constant))


def _steps(attributes: Attributes, coding: Coding, at: int, abbrev: Section) -> tuple[int | Skip, ...]:
    steps: list[int | Skip] = []
    for _, form, _ in attributes:
        step = coding.skipping(form, at, abbrev)
        last = steps[-1] if steps else None
        if isinstance(step, int) and isinstance(last, int):
            steps[-1] = last + step
        else:
            steps.append(step)
    return tuple(steps)


# ---------------------------------------------------------------- entries


@dataclass(slots=True)
class Entry:
    """A debugging information entry. offset: in .debug_info; at: of its first attribute; parent, children: the kept
    ones directly above and below, None where what is above is of another kind."""

    unit: Unit
    offset: int
    at: int
    shape: Shape
    parent: Entry | None
    children: list[Entry] = field(default_factory=list)
    _values: dict[int, tuple[str, Any]] | None = None

    @property
    def tag(self) -> str:
        return self.shape.tag

    def number(self, name: str) -> int | None:
        meaning, value = self._value(name)
        return int(value) if meaning == "number" else None

    def text(self, name: str) -> str:
        """Returns the text of an attribute; "" if it is not a text."""
        unit = self.unit
        meaning, value = self._value(name)
        if meaning == "string index":
            size = unit.coding.offset_size
            at = unit.str_offsets_base + value * size
            meaning, value = "debug_str", number_at(unit.sections.str_offsets, at, size, unit.coding.order)
        if meaning == "shared text":
            shared = unit.sections.shared
            return shared.text("debug_str", value) if shared is not None else ""
        if meaning in unit.sections.texts:
            return unit.sections.text(meaning, value)
        return str(value) if meaning == "text" else ""

    def address(self, name: str) -> int | None:
        meaning, value = self._value(name)
        if meaning == "address index":
            return self.unit.address_of(value)
        return int(value) if meaning == "address" else None

    def refers(self, name: str) -> bool:
        """Whether the entry has this attribute, and it refers to another entry."""
        return self._value(name)[0].endswith("reference")

    def reference(self, name: str) -> Entry | None:
        """Returns the entry that the attribute refers to; None where it is not here."""
        meaning, value = self._value(name)
        units = self.unit.units
        if meaning == "unit reference":
            return units.entry_at(self.unit.offset + int(value))
        if meaning == "shared reference":
            return units.shared.entry_at(int(value)) if units.shared is not None else None
        return units.entry_at(int(value)) if meaning == "reference" else None

    def ranges(self) -> Ranges:
        """Returns the (first address, end) of its code; [] where it has none."""
        low = self.address("DW_AT_low_pc")
        if self._value("DW_AT_high_pc")[0] and low is not None:
            high = self.address("DW_AT_high_pc")
            length = self.number("DW_AT_high_pc") or 0
            return [(low, low + length if high is None else high)]
        meaning, value = self._value("DW_AT_ranges")
        return self.unit.ranges(meaning, value)

    def _value(self, name: str) -> tuple[str, Any]:
        if self._values is None:
            self._values = {}
            # Entries of no bytes may have many attributes that take none.
            self.unit.sections.spend(len(self.shape.attributes))
            at = self.at
            for attribute, form, constant in self.shape.attributes:
                meaning, value, at = self.unit.coding.value_at(form, at, constant)
                if attribute in READ:
                    self._values.setdefault(attribute, (meaning, value))
        return self._values.get(ATTRIBUTES[name], ("", None))


# ---------------------------------------------------------------- units


class Unit:
    """A unit of .debug_info, from `offset` to `end`; at: of its first entry; kind: DW_UT_*, 1 before DWARF 5; units:
    all of the section.

    skeleton: the unit of the linked file that this one, of a file of its own, completes, None of others; damage: why
    `entries` are not all."""

    def __init__(self, units: Units, offset: int) -> None:
        sections = units.sections
        info, order = sections.info, sections.order
        self.units = units
        self.sections = sections
        self.skeleton = units.skeleton
        self.offset = offset
        self.damage: FormatError | None = None
        self._tables = units.tables
        self._split_id: int | None = None
        length, at, offset_size = length_at(info, offset, order)
        self.end = at + length
        version = number_at(info, at, 2, order)
        if not 2 <= version <= 5:
            raise FormatError(f"DWARF version {version} is not supported", at, "unit header")
        at += 2
        if version >= 5:
            self.kind, address_size = number_at(info, at, 1, order), number_at(info, at + 1, 1, order)
            self._abbrev = number_at(info, at + 2, offset_size, order)
            at += 2 + offset_size + (8 + offset_size if self.kind in (DW_UT_type, DW_UT_split_type) else 0)
            if self.kind in (DW_UT_skeleton, DW_UT_split_compile):
                self._split_id = number_at(info, at, 8, order)
                at += 8
        else:
            self.kind = DW_UT_compile
            self._abbrev = number_at(info, at, offset_size, order)
            address_size = number_at(info, at + offset_size, 1, order)
            at += offset_size + 1
        if address_size not in (2, 4, 8):
            raise FormatError(f"addresses of {address_size} bytes", offset, "unit header")
        self.at = at
        self.coding = Coding(info, order, version, address_size, offset_size)

    @cached_property
    def entries(self) -> dict[int, Entry]:
        """Maps offset → kept entry, in the order of the file; those in front of the damage where there is some."""
        entries: dict[int, Entry] = {}
        try:
            self._walk(entries)
        except FormatError as error:
            self.damage = error
        return entries

    def _walk(self, entries: dict[int, Entry]) -> None:
        section, end, shapes = self.coding.data, self.end, self._shapes
        data = section.bytes
        above: list[Entry | None] = []
        parent: Entry | None = None
        at = self.at
        while at < end:
            offset = at
            code, at = (data[at], at + 1) if data[at] < 0x80 else uleb_at(section, at)
            if code == 0:
                if not above:
                    break
                parent = above.pop()
                continue
            shape = shapes.get(code)
            if shape is None:
                raise undeclared(code, offset)
            entry = None
            if shape.tag:
                entry = entries[offset] = Entry(self, offset, at, shape, parent)
                if parent is not None:
                    parent.children.append(entry)
            for step in shape.steps:
                at = at + step if isinstance(step, int) else step(at)
            if shape.has_children:
                above.append(parent)
                parent = entry

    @cached_property
    def root(self) -> Entry:
        code, at = uleb_at(self.coding.data, self.at)
        known = self._tables.get(self._table_key)
        shape = shape_of(self.sections, self._abbrev, self.coding, code) if known is None else known.get(code)
        if shape is None:
            raise undeclared(code, self.at)
        return Entry(self, self.at, at, shape, None)

    @cached_property
    def _shapes(self) -> dict[int, Shape]:
        key = self._table_key
        if key not in self._tables:
            self._tables[key] = shapes_at(self.sections, self._abbrev, self.coding)
        return self._tables[key]

    @property
    def _table_key(self) -> tuple[int, ...]:
        return self._abbrev, self.coding.version, self.coding.address_size, self.coding.offset_size

    @property
    def is_partial(self) -> bool:
        """Whether it only holds what others refer to: no code."""
        return self.root.tag == PARTIAL

    @property
    def split_id(self) -> int | None:
        """The number that a skeleton and the unit that completes it have in common; None of other units."""
        return self.root.number("DW_AT_GNU_dwo_id") if self._split_id is None else self._split_id

    @property
    def split_name(self) -> str:
        """The file of the unit that completes this one; "" of one that is whole."""
        return self.root.text("DW_AT_dwo_name") or self.root.text("DW_AT_GNU_dwo_name")

    @property
    def str_offsets_base(self) -> int:
        base = self.root.number("DW_AT_str_offsets_base")
        if base is not None:
            return base
        return 2 * self.coding.offset_size if self.coding.version >= 5 else 0

    def address_of(self, index: int) -> int:
        """Returns an address of .debug_addr."""
        size = self.coding.address_size
        base = (self.skeleton or self)._base("DW_AT_addr_base", "DW_AT_GNU_addr_base")
        return number_at(self.sections.addr, base + index * size, size, self.coding.order)

    @property
    def bases(self) -> tuple[int, int, int]:
        """Returns what the unit that completes this one counts from: (lowest address, place of addresses, that of
        ranges)."""
        return self._low, self._base("DW_AT_addr_base", "DW_AT_GNU_addr_base"), self._base("DW_AT_GNU_ranges_base")

    def _base(self, *names: str) -> int:
        return next((base for name in names if (base := self.root.number(name)) is not None), 0)

    # ------------------------------------------------ ranges

    def ranges(self, meaning: str, value: Any) -> Ranges:
        """Returns the ranges of the list that a value of DW_AT_ranges means."""
        if meaning == "range index":
            size = self.coding.offset_size
            # The only list of lists of a split unit stands behind its header.
            behind_header = 12 + 2 * (size - 4) if self.skeleton is not None else 0
            base = self._base("DW_AT_rnglists_base") or behind_header
            value = base + number_at(self.sections.rnglists, base + value * size, size, self.coding.order)
        elif meaning != "number":
            return []
        elif self.skeleton is not None and self.coding.version < 5:
            value += self.skeleton._base("DW_AT_GNU_ranges_base")
        found = list(self._rnglist(value) if self.coding.version >= 5 else self._range_list(value))
        self.sections.spend(len(found))
        return found

    @cached_property
    def _low(self) -> int:
        return (self.skeleton or self).root.address("DW_AT_low_pc") or 0

    def _range_list(self, at: int) -> Iterator[tuple[int, int]]:
        """Yields ranges of .debug_ranges: pairs relative to a base; the largest address says that a new base
        follows."""
        data, size, order = self.sections.ranges, self.coding.address_size, self.coding.order
        base, largest = self._low, (1 << 8 * size) - 1
        while True:
            self.sections.spend(1)
            begin, end = number_at(data, at, size, order), number_at(data, at + size, size, order)
            at += 2 * size
            if begin == end == 0:
                return
            if begin == largest:
                base = end
            else:
                yield base + begin, base + end

    def _rnglist(self, at: int) -> Iterator[tuple[int, int]]:
        """Yields ranges of .debug_rnglists (DWARF 5, section 7.25)."""
        data, base = self.sections.rnglists, self._low
        while True:
            self.sections.spend(1)
            kind = number_at(data, at, 1, self.coding.order)
            if kind >= len(RANGE_OPERANDS):
                raise FormatError(f"the kind {kind} is unknown", at, ".debug_rnglists")
            at += 1
            numbers = []
            for operand in RANGE_OPERANDS[kind]:
                number, at = self._operand(operand, at)
                numbers.append(number)
            if kind == END_OF_LIST:
                return
            if len(numbers) == 1:
                base = numbers[0]
            elif kind == OFFSET_PAIR:
                yield base + numbers[0], base + numbers[1]
            else:
                has_length = RANGE_OPERANDS[kind][1] == "u"
                yield numbers[0], numbers[1] + (numbers[0] if has_length else 0)

    def _operand(self, kind: str, at: int) -> tuple[int, int]:
        """Returns (an operand of .debug_rnglists, where the next byte is)."""
        data, size = self.sections.rnglists, self.coding.address_size
        if kind == "a":
            return number_at(data, at, size, self.coding.order), at + size
        number, at = uleb_at(data, at)
        return self.address_of(number) if kind == "x" else number, at


# ---------------------------------------------------------------- helpers


def length_at(data: Section, at: int, order: Order) -> tuple[int, int, int]:
    """Returns (unit_length, where it begins to count, the size of offsets): 64-bit DWARF has 12 bytes for it."""
    length, begin, size = number_at(data, at, 4, order), at + 4, 4
    if length == 0xFFFFFFFF:
        length, begin, size = number_at(data, begin, 8, order), begin + 8, 8
    if length > len(data) - begin:
        raise FormatError("a unit ends beyond the section", at, "unit header")
    return length, begin, size


def undeclared(code: int, at: int) -> FormatError:
    return FormatError(f"the abbreviation {code} is not declared", at, ".debug_info")


class Units:
    """The units of one .debug_info. lost: called for what is damaged; skeleton: of the unit of a split file.

    tables: the abbreviations that units share, by offset and sizes."""

    def __init__(self, sections: Sections, lost: Lost = lambda error: None, skeleton: Unit | None = None) -> None:
        self.sections = sections
        self.skeleton = skeleton
        self.tables: dict[tuple[int, ...], dict[int, Shape]] = {}
        self._lost = lost

    def walk(self) -> Iterator[Unit]:
        """Yields the units in order. Raises FormatError at an invalid header, after which no unit can be found."""
        at = 0
        while at < len(self.sections.info):
            unit = Unit(self, at)
            yield unit
            at = unit.end

    @cached_property
    def found(self) -> list[Unit]:
        """The units up to the first invalid header."""
        units: list[Unit] = []
        try:
            for unit in self.walk():
                units.append(unit)
        except FormatError as error:
            self._lost(error)
        return units

    @cached_property
    def shared(self) -> Units | None:
        """The units of the file that several share."""
        sections = self.sections.shared
        return Units(sections, self._lost) if sections is not None else None

    @cached_property
    def _offsets(self) -> list[int]:
        return [unit.offset for unit in self.found]

    def entry_at(self, offset: int) -> Entry | None:
        nth = bisect_right(self._offsets, offset) - 1
        return self.found[nth].entries.get(offset) if nth >= 0 else None
