"""Decode: the units of .debug_info (DWARF 5, section 7.5) as entries with their attributes, and range lists (2.17.3).

Only entries that name or hold code become objects; all others are skipped. Everything raises FormatError, with the
offset in its section, where the bytes are invalid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from traceferry.common.errors import FormatError
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
from traceferry.symbolication.ranges import Ranges

# ---------------------------------------------------------------- layout


class TAG:
    """DW_TAG_* of the entries that are kept."""

    CLASS_TYPE = 0x02
    LEXICAL_BLOCK = 0x0B
    STRUCTURE_TYPE = 0x13
    UNION_TYPE = 0x17
    INLINED_SUBROUTINE = 0x1D
    SUBPROGRAM = 0x2E
    NAMESPACE = 0x39


CONTEXTS = (TAG.NAMESPACE, TAG.STRUCTURE_TYPE, TAG.UNION_TYPE, TAG.CLASS_TYPE, TAG.SUBPROGRAM)
KEPT = frozenset(code for name, code in vars(TAG).items() if name.isupper())


class AT:
    """DW_AT_* of the attributes that are read."""

    NAME = 0x03
    STMT_LIST = 0x10
    LOW_PC = 0x11
    HIGH_PC = 0x12
    LANGUAGE = 0x13
    COMP_DIR = 0x1B
    ABSTRACT_ORIGIN = 0x31
    DECL_FILE = 0x3A
    DECL_LINE = 0x3B
    SPECIFICATION = 0x47
    RANGES = 0x55
    CALL_FILE = 0x58
    CALL_LINE = 0x59
    LINKAGE_NAME = 0x6E
    STR_OFFSETS_BASE = 0x72
    ADDR_BASE = 0x73
    RNGLISTS_BASE = 0x74
    DWO_NAME = 0x76
    MIPS_LINKAGE_NAME = 0x2007
    GNU_DWO_NAME = 0x2130
    GNU_ADDR_BASE = 0x2133


ATTRIBUTES = frozenset(code for name, code in vars(AT).items() if name.isupper())


class UT:
    """DW_UT_*"""

    COMPILE = 0x01
    TYPE = 0x02
    SKELETON = 0x04
    SPLIT_COMPILE = 0x05
    SPLIT_TYPE = 0x06


# The operands of DW_RLE_*: x: the index of an address; a: an address; u: a ULEB128 number.
RANGE_OPERANDS = ("", "x", "xx", "xu", "uu", "a", "aa", "au")
END_OF_LIST, OFFSET_PAIR = 0, 4


# ---------------------------------------------------------------- abbreviations

Attributes = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """An abbreviation. attributes: (name, form, constant); steps: what leads from the first attribute to behind the
    last: a number of bytes, or what finds the next byte."""

    tag: int
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
        yield code, Shape(tag, has_children, attributes, _steps(attributes, coding, at, abbrev))


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
    def tag(self) -> int:
        return self.shape.tag

    def number(self, name: int) -> int | None:
        meaning, value = self._value(name)
        return int(value) if meaning == "number" else None

    def text(self, name: int) -> str:
        meaning, value = self._value(name)
        return self.unit.text(meaning, value)

    def address(self, name: int) -> int | None:
        meaning, value = self._value(name)
        return self.unit.address(meaning, value)

    def reference(self, name: int) -> int | None:
        """Returns where in .debug_info the entry is that the attribute refers to."""
        meaning, value = self._value(name)
        if meaning == "unit reference":
            return self.unit.offset + int(value)
        return int(value) if meaning == "reference" else None

    def ranges(self) -> Ranges:
        """Returns the (first address, end) of its code; [] where it has none."""
        low = self.address(AT.LOW_PC)
        if self._value(AT.HIGH_PC)[0] and low is not None:
            high = self.address(AT.HIGH_PC)
            length = self.number(AT.HIGH_PC) or 0
            return [(low, low + length if high is None else high)]
        meaning, value = self._value(AT.RANGES)
        return self.unit.ranges(meaning, value)

    def _value(self, name: int) -> tuple[str, Any]:
        if self._values is None:
            self._values = {}
            # Entries of no bytes may have many attributes that take none.
            self.unit.sections.spend(len(self.shape.attributes))
            at = self.at
            for attribute, form, constant in self.shape.attributes:
                meaning, value, at = self.unit.coding.value_at(form, at, constant)
                if attribute in ATTRIBUTES:
                    self._values.setdefault(attribute, (meaning, value))
        return self._values.get(name, ("", None))


# ---------------------------------------------------------------- units


class Unit:
    """A unit of .debug_info, from `offset` to `end`; at: of its first entry; kind: DW_UT_*, 1 before DWARF 5.

    tables: the abbreviations that units share, by offset and sizes; damage: why `entries` are not all."""

    def __init__(self, sections: Sections, offset: int, tables: dict[tuple[int, ...], dict[int, Shape]]) -> None:
        info, order = sections.info, sections.order
        self.sections = sections
        self.offset = offset
        self.damage: FormatError | None = None
        self._tables = tables
        length, at, offset_size = length_at(info, offset, order)
        self.end = at + length
        version = number_at(info, at, 2, order)
        if not 2 <= version <= 5:
            raise FormatError(f"DWARF version {version} is not supported", at, "unit header")
        at += 2
        if version >= 5:
            self.kind, address_size = number_at(info, at, 1, order), number_at(info, at + 1, 1, order)
            self._abbrev = number_at(info, at + 2, offset_size, order)
            at += 2 + offset_size + (8 + offset_size if self.kind in (UT.TYPE, UT.SPLIT_TYPE) else 0)
            at += 8 if self.kind in (UT.SKELETON, UT.SPLIT_COMPILE) else 0
        else:
            self.kind = UT.COMPILE
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
            if shape.tag in KEPT:
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

    def text(self, meaning: str, value: Any) -> str:
        """Returns the text of a value of this meaning; "" if it is not a text."""
        if meaning == "string index":
            size = self.coding.offset_size
            base = self.root.number(AT.STR_OFFSETS_BASE)
            at = (2 * size if base is None else base) + value * size
            meaning, value = "debug_str", number_at(self.sections.str_offsets, at, size, self.coding.order)
        if meaning in self.sections.texts:
            return self.sections.text(meaning, value)
        return str(value) if meaning == "text" else ""

    def address(self, meaning: str, value: Any) -> int | None:
        if meaning == "address index":
            size = self.coding.address_size
            at = self._base(AT.ADDR_BASE, AT.GNU_ADDR_BASE) + value * size
            return number_at(self.sections.addr, at, size, self.coding.order)
        return int(value) if meaning == "address" else None

    def _base(self, *names: int) -> int:
        return next((base for name in names if (base := self.root.number(name)) is not None), 0)

    # ------------------------------------------------ ranges

    def ranges(self, meaning: str, value: Any) -> Ranges:
        """Returns the ranges of the list that a value of DW_AT_ranges means."""
        if meaning == "range index":
            base, size = self._base(AT.RNGLISTS_BASE), self.coding.offset_size
            value = base + number_at(self.sections.rnglists, base + value * size, size, self.coding.order)
        elif meaning != "number":
            return []
        found = list(self._rnglist(value) if self.coding.version >= 5 else self._range_list(value))
        self.sections.spend(len(found))
        return found

    @cached_property
    def _low(self) -> int:
        return self.root.address(AT.LOW_PC) or 0

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
        return (self.address("address index", number) or 0) if kind == "x" else number, at


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


def units_of(sections: Sections) -> Iterator[Unit]:
    """Yields the units in order. Raises FormatError at an invalid header, after which no unit can be found."""
    tables: dict[tuple[int, ...], dict[int, Shape]] = {}
    at = 0
    while at < len(sections.info):
        unit = Unit(sections, at, tables)
        yield unit
        at = unit.end
