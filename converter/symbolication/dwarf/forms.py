"""Layout and decode: the forms that attributes take (DWARF 5, section 7.5.6), and the sections they point into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from traceferry.common.errors import FormatError
from traceferry.symbolication.binary import Binary

# How much work each byte of the sections may make: what real files need is less than 1. More is needed only where
# many entries refer to the same bytes.
EFFORT = 8
# What a function and a row of a line table count for: they need that many times the memory of what they are read from.
FUNCTION_EFFORT = 16
ROW_EFFORT = 4
MAX_LEB = 10  # bytes: 64 bits
MAX_NAME = 1 << 16
TEXT_PIECE = 64

Order = Literal["little", "big"]
Skip = Callable[[int], int]


# ---------------------------------------------------------------- layout


class Form(NamedTuple):
    """size: bytes, or how to find out: "address" and "offset" depend on the unit; meaning: what the value is."""

    size: int | str
    meaning: str


# By meaning the codes of the forms, DW_FORM_*, with their sizes.
SIZES: dict[str, dict[int, int | str]] = {
    "address": {0x01: "address"},  # addr
    # data2, data4, data8, data1, sdata, udata, sec_offset; implicit_const: the abbreviation holds it
    "number": {0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0D: "sleb", 0x0F: "uleb", 0x17: "offset", 0x21: 0},
    "text": {0x08: "string"},
    "debug_str": {0x0E: "offset"},  # strp
    "debug_line_str": {0x1F: "offset"},  # line_strp
    "reference": {0x10: "ref_addr"},
    "unit reference": {0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x15: "uleb"},  # ref1 to ref8, ref_udata
    # strx, strx1 to strx4, GNU_str_index
    "string index": {0x1A: "uleb", 0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4, 0x1F02: "uleb"},
    # addrx, addrx1 to addrx4, GNU_addr_index
    "address index": {0x1B: "uleb", 0x29: 1, 0x2A: 2, 0x2B: 3, 0x2C: 4, 0x1F01: "uleb"},
    "range index": {0x23: "uleb"},  # rnglistx
    "other": {
        **{0x03: "block 2", 0x04: "block 4", 0x09: "block", 0x0A: "block 1", 0x18: "block"},  # 0x18: exprloc
        **{0x0C: 1, 0x16: "indirect", 0x19: 0},  # flag, indirect, flag_present
        **{0x1E: 16, 0x20: 8, 0x22: "uleb"},  # data16, ref_sig8, loclistx
    },
    # Of the file that several share: ref_sup4, ref_sup8, GNU_ref_alt; strp_sup, GNU_strp_alt
    "shared reference": {0x1C: 4, 0x24: 8, 0x1F20: "offset"},
    "shared text": {0x1D: "offset", 0x1F21: "offset"},
}
FORMS = {form: Form(size, meaning) for meaning, sizes in SIZES.items() for form, size in sizes.items()}
IMPLICIT_CONST = 0x21

SECTIONS = ("info", "abbrev", "line", "ranges", "rnglists", "addr", "str_offsets", "str", "line_str")


# ---------------------------------------------------------------- decode


@dataclass(frozen=True, slots=True)
class Section:
    """name: as .debug_info; bytes: of the section, decompressed, none where a file has no such section."""

    name: str
    bytes: memoryview

    def __len__(self) -> int:
        return len(self.bytes)


class Effort:
    """The work that may still be done: of all files together that hold the debug information of one."""

    def __init__(self) -> None:
        self._left = 0

    def add(self, n_bytes: int) -> None:
        """Allows for what that many bytes need."""
        self._left += EFFORT * n_bytes

    def spend(self, amount: int) -> None:
        """Counts work against what undamaged files of this size can need. Raises FormatError when it is used up."""
        self._left -= amount
        if self._left < 0:
            raise FormatError("the debug information refers to the same bytes too often", None, ".debug_info")


class Sections:
    """held: by the names of SECTIONS; texts: debug_str and debug_line_str, whose texts are decoded once; effort: what
    `spend` may still count; open_shared: opens the sections of the file that several share, None where it is not
    here."""

    def __init__(
        self,
        order: Order,
        held: dict[str, Section],
        effort: Effort,
        open_shared: Callable[[], Sections | None] = lambda: None,
    ) -> None:
        self.order = order
        self.held = held
        self.info, self.abbrev, self.line = held["info"], held["abbrev"], held["line"]
        self.ranges, self.rnglists, self.addr = held["ranges"], held["rnglists"], held["addr"]
        self.str_offsets = held["str_offsets"]
        self.texts = {"debug_str": held["str"], "debug_line_str": held["line_str"]}
        self.effort, self.spend = effort, effort.spend
        self._open_shared = open_shared
        self._decoded: dict[tuple[str, int], str] = {}

    @cached_property
    def shared(self) -> Sections | None:
        """The sections of the file to which `dwz` moved what several files have in common."""
        return self._open_shared()

    def text(self, section: str, offset: int) -> str:
        """Returns the zero-terminated text at `offset` of debug_str or debug_line_str."""
        key = (section, offset)
        if key not in self._decoded:
            self.spend(1)
            text, end = text_at(self.texts[section], offset)
            self.spend(end - offset)
            self._decoded[key] = text
        return self._decoded[key]


def sections_of(
    binary: Binary, effort: Effort | None = None, open_shared: Callable[[], Sections | None] = lambda: None
) -> Sections | None:
    """Returns None where there is no debug information. Raises FormatError if a section cannot be read. effort: that of
    the file that this one belongs to."""
    if not binary.section_named(".debug_info") and not binary.section_named(".zdebug_info"):
        return None
    held = {name: section_of(binary, name) for name in SECTIONS}
    effort = Effort() if effort is None else effort
    # .debug_str_offsets does not count.
    effort.add(sum(map(len, held.values())) - len(held["str_offsets"]))
    return Sections("little" if binary.little_endian else "big", held, effort, open_shared)


def section_of(binary: Binary, name: str) -> Section:
    """Returns a section's bytes, not copied, unless it is compressed. name: without .debug_."""
    section = binary.section_named(f".debug_{name}") or binary.section_named(f".zdebug_{name}")
    return Section(f".debug_{name}", binary.content(section) if section is not None else memoryview(b""))


def number_at(data: Section, at: int, size: int, order: Order) -> int:
    if not 0 <= at <= len(data) - size:
        raise FormatError(f"a number of {size} bytes lies beyond the end", at, data.name)
    return int.from_bytes(data.bytes[at : at + size], order)


def text_at(data: Section, at: int) -> tuple[str, int]:
    """Returns (the text, where the next byte is). Raises FormatError if it has no end."""
    size = TEXT_PIECE
    while 0 <= at < len(data):
        piece = bytes(data.bytes[at : at + size])
        end = piece.find(0)
        if end >= 0:
            return piece[:end].decode("utf-8", "replace"), at + end + 1
        if len(piece) < size or size >= MAX_NAME:
            break
        size *= 4
    raise FormatError("a text has no end", at, data.name)


def uleb_at(data: Section, at: int) -> tuple[int, int]:
    """Returns (the ULEB128 number, where the next byte is)."""
    view = data.bytes
    if 0 <= at < len(view) and view[at] < 0x80:
        return view[at], at + 1
    value = shift = 0
    for byte_at in range(at, min(at + MAX_LEB, len(view))):
        byte = view[byte_at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, byte_at + 1
        shift += 7
    raise FormatError("a LEB128 number has no end", at, data.name)


def sleb_at(data: Section, at: int) -> tuple[int, int]:
    """Returns (the SLEB128 number, where the next byte is)."""
    value, end = uleb_at(data, at)
    bits = 7 * (end - at)
    return value - (1 << bits) if value >> (bits - 1) else value, end


@dataclass(frozen=True)
class Coding:
    """The coding of a unit's values: of `data`, with addresses and offsets of so many bytes."""

    data: Section
    order: Order
    version: int
    address_size: int
    offset_size: int

    def value_at(self, form: int, at: int, constant: int = 0) -> tuple[str, Any, int]:
        """Returns (meaning, the value as it stands there, where the next byte is). constant: what the abbreviation
        holds."""
        kind, meaning = form_of(form, at, self.data)
        if form == IMPLICIT_CONST:
            return "number", constant, at
        size = self._fixed(kind)
        if size is not None:
            return meaning, number_at(self.data, at, size, self.order), at + size
        if kind == "uleb":
            return meaning, *uleb_at(self.data, at)
        if kind == "sleb":
            return meaning, *sleb_at(self.data, at)
        if kind == "string":
            return meaning, *text_at(self.data, at)
        if kind == "indirect":
            inner, at = uleb_at(self.data, at)
            if form_of(inner, at, self.data).size == "indirect":
                raise FormatError("an indirect form is itself indirect", at, self.data.name)
            return self.value_at(inner, at)
        return meaning, None, self._after_block(str(kind), at)

    def skipping(self, form: int, at: int, abbrev: Section) -> int | Skip:
        """Returns the size of a value of this form, or what finds the byte behind it. at: where the form stands in
        `abbrev`."""
        size = form_of(form, at, abbrev).size
        fixed = self._fixed(size)
        if fixed is not None:
            return fixed
        if size in ("uleb", "sleb"):
            return self._after_leb
        if size == "string":
            return lambda begin: text_at(self.data, begin)[1]
        if size == "indirect":
            return lambda begin: self.value_at(form, begin)[2]
        return lambda begin: self._after_block(str(size), begin)

    def _fixed(self, size: int | str) -> int | None:
        if isinstance(size, int):
            return size
        if size == "address" or (size == "ref_addr" and self.version <= 2):
            return self.address_size
        return self.offset_size if size in ("offset", "ref_addr") else None

    def _after_leb(self, at: int) -> int:
        data = self.data.bytes
        if at < len(data) and data[at] < 0x80:
            return at + 1
        return uleb_at(self.data, at)[1]

    def _after_block(self, size: str, at: int) -> int:
        if size == "block":
            length, at = uleb_at(self.data, at)
        else:
            width = int(size.removeprefix("block "))
            length = number_at(self.data, at, width, self.order)
            at += width
        if length > len(self.data) - at:
            raise FormatError("a block ends beyond the section", at, self.data.name)
        return at + length


def form_of(form: int, at: int, data: Section) -> Form:
    if form not in FORMS:
        raise FormatError(f"the form {form:#x} is unknown", at, data.name)
    return FORMS[form]
