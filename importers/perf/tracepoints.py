"""TRACING_DATA: the formats of the kernel's tracepoints, and the fields of their samples by name."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.common.shown_text import encodable
from traceferry.importers.perf.fields import CutError, Fields, numbers_at, until_nul
from traceferry.model import Array, rows_by_key

MAGIC = b"\x17\x08\x44tracing"
FieldKind = Literal["integer", "string", "bytes", "numbers", "dynamic string", "dynamic bytes", "dynamic numbers"]

FIELD = compiled_later(r"\s*field:([^;]*);\s*offset:(\d+);\s*size:(\d+);(?:\s*signed:(\d+);)?")
NAME = compiled_later(r"(\w+)\s*(?:\[([^\]]*)\])?\s*$")
# Of a declaration, in characters: in longer ones, which no kernel has, the search for NAME would be slow.
MAX_DECLARED = 256
MAX_DIGITS = 9
PIECE = 1 << 24  # bytes of text that are compared at once
# In print fmt, of a field that is a set: {0x0001, "S"}.
FLAG = compiled_later(r'\{ *(0x[0-9a-f]{1,8}|0|[1-9]\d{0,8})(?:UL)?, *"([^"]{1,8})" *\}')
TEXT_TYPE = compiled_later(r"\bchar\b")
# The bytes of each number of an array, by its type; those of single bytes are mostly addresses and keys.
NUMBER_TYPE = compiled_later(r"\b(?:(__)?[us](16|32|64)|short|int|unsigned|long)\b")
WIDTHS = {"short": 2, "int": 4, "unsigned": 4, "long": 8}


class Field(NamedTuple):
    """size in bytes; relative: a dynamic field's place counts from its own end, not from the record's start; width: of
    each number of an array, in bytes."""

    name: str
    offset: int
    size: int
    signed: bool
    kind: FieldKind
    relative: bool = False
    width: int = 0


class Format(NamedTuple):
    """One tracepoint, as its `format` file describes it. fields: without those that all tracepoints have; flags: names
    of numbers, as its text for people has them."""

    system: str
    name: str
    id: int
    fields: tuple[Field, ...]
    flags: tuple[tuple[int, str], ...] = ()

    @property
    def full_name(self) -> str:
        return f"{self.system}:{self.name}"


def read_formats(fields: Fields, wanted: Collection[int], formats: dict[int, Format]) -> None:
    """Adds the formats of the tracepoints with these ids (attr.config). Raises CutError if data is missing.

    magic, version, u8 big-endian, u8 size of long, u32 page size; header_page and header_event, each with NUL, u64 size
    and text; u32 n and so many (u64 size, format of ftrace); u32 n systems: name with NUL, u32 n, and so many formats.
    The rest is unrelated to formats.
    """
    if fields.bytes(len(MAGIC)) != MAGIC:
        raise CutError("the magic of tracing data is missing")
    fields.line()
    big, _ = fields.unpack("BB")
    fields.order = ">" if big else "<"
    fields.u32()
    for _ in ("header_page", "header_event"):
        fields.line()
        fields.bytes(fields.u64())
    for _ in range(fields.u32()):
        _add(formats, "ftrace", fields.bytes(fields.u64()), wanted)
    for _ in range(fields.u32()):
        system = fields.line()
        for _ in range(fields.u32()):
            _add(formats, system, fields.bytes(fields.u64()), wanted)


def _add(formats: dict[int, Format], system: str, text: bytes, wanted: Collection[int]) -> None:
    found = parse_format(system, text.decode("utf-8", "replace"))
    if found is not None and found.id in wanted:
        formats[found.id] = found


def parse_format(system: str, text: str) -> Format | None:
    """Parses the text of a `format` file: "name: ", "ID: " and a line for each field. None without name or ID."""
    name, number = "", None
    fields: list[Field] = []
    flags: tuple[tuple[int, str], ...] = ()
    for line in text.split("\n"):
        if line.startswith("name:"):
            name = line[5:].strip()
        elif line.startswith("ID:") and (digits := line[3:].strip()).isdecimal() and len(digits) <= MAX_DIGITS:
            number = int(digits)
        elif line.startswith("print fmt:"):
            flags = tuple((int(number, 0), letter) for number, letter in FLAG.findall(line))
            break
        elif match := FIELD.match(line):
            fields += _field(*match.groups())
    if not name or number is None:
        return None
    # A damaged text may name two fields alike.
    own = {field.name: field for field in fields if not field.name.startswith("common_")}
    return Format(system, name, number, tuple(own.values()), flags)


def _field(declared: str, offset: str, size: str, signed: str | None) -> list[Field]:
    """Returns the field of a declaration in C, as "char prev_comm[16]" or "__data_loc char[] name"."""
    match = NAME.search(declared) if len(declared) <= MAX_DECLARED else None
    if match is None or max(len(offset), len(size)) > MAX_DIGITS:
        return []
    name, length = match.groups()
    kind_of = declared[: match.start()]
    is_text = TEXT_TYPE.search(kind_of) is not None
    dynamic = "__data_loc" in kind_of or "__rel_loc" in kind_of
    kind: FieldKind
    width = 0
    if length is None and not dynamic and int(size) in (1, 2, 4, 8):
        kind = "integer"
    elif is_text:
        kind = "dynamic string" if dynamic else "string"
    elif width := _width(kind_of, length, 0 if dynamic else int(size)):
        kind = "dynamic numbers" if dynamic else "numbers"
    else:
        kind = "dynamic bytes" if dynamic else "bytes"
    return [Field(name, int(offset), int(size), signed == "1", kind, "__rel_loc" in kind_of, width)]


def _width(kind_of: str, length: str | None, size: int) -> int:
    """Returns the bytes of each number of an array, 0: it is one of bytes, or of something else. length: as it is
    declared; size: of all, 0 is not known."""
    types = [match[2] or match[0] for match in NUMBER_TYPE.finditer(kind_of)]
    if not types:
        return 0
    if size and length is not None and length.isdecimal() and len(length) <= MAX_DIGITS and int(length):
        width, rest = divmod(size, int(length))
        return width if not rest and width in (2, 4, 8) else 0
    return max(int(one) // 8 if one.isdecimal() else WIDTHS[one] for one in types)


def decode_field(field: Field, data: memoryview | Array, at: Array, size: Array, order: str) -> Array:
    """Returns a field of many records: integers as int64, as uint64 where they are so; text as str objects, of which
    equal ones are one; arrays as text: numbers in hex, signed ones in decimal, bytes as their hex text.
    0 and "" where a record is too short for it. data: uint8; at, size: of each record's raw data; order: ">" or "<"."""
    is_whole = size >= field.offset + field.size
    is_number = field.kind == "integer"
    found = np.zeros(len(at), np.int64 if field.signed or field.size < 8 else np.uint64) if is_number else None
    if found is None:
        found = np.full(len(at), "", object)
    rows = slice(None) if bool(is_whole.all()) else np.flatnonzero(is_whole)
    here = at[rows] + field.offset
    if is_number:
        found[rows] = numbers_at(data, here, f"{order}{'i' if field.signed else 'u'}{field.size}")
    elif field.kind.startswith("dynamic"):
        place = numbers_at(data, here, order + "u4").astype(np.int64) if field.size == 4 else np.zeros(len(here), int)
        start, length = place & 0xFFFF, place >> 16
        if field.relative:
            start += field.offset + field.size
        length[start + length > size[rows]] = 0
        found[rows] = _texts(field, data, at[rows] + start, length, order)
    else:
        found[rows] = _texts(field, data, here, np.full(len(here), field.size, np.int64), order)
    return found


def _texts(field: Field, data: memoryview | Array, at: Array, length: Array, order: str) -> Array:
    """Returns texts of some lengths, each distinct one made once."""
    found = np.full(len(at), "", object)
    for size, rows in rows_by_key(length).items():
        if size <= 0:
            continue
        for begin in range(0, len(rows), max(PIECE // size, 1)):
            piece = rows[begin : begin + max(PIECE // size, 1)]
            letters = np.ndarray((len(data) - size + 1,), f"S{size}", data, strides=(1,))[at[piece]]
            # NumPy leaves out NULs at the end.
            values, nth = np.unique(letters, return_inverse=True)
            shown = [_shown(field, value.ljust(size, b"\0"), order) for value in values.tolist()]
            found[piece] = np.array(shown, object)[nth]
    return found


def _shown(field: Field, value: bytes, order: str) -> str:
    if field.kind.endswith("string"):
        return encodable(until_nul(value))
    if not field.width or len(value) % field.width:
        return value.hex()
    numbers = np.frombuffer(value, f"{order}{'i' if field.signed else 'u'}{field.width}").tolist()
    return ", ".join(str(number) if field.signed else f"{number:#x}" for number in numbers)
