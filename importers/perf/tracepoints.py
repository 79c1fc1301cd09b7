"""TRACING_DATA: the formats of the kernel's tracepoints, and the fields of their samples by name."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from traceferry.common.shown_text import encodable
from traceferry.importers.perf.fields import CutError, Fields, until_nul

MAGIC = b"\x17\x08\x44tracing"
FieldKind = Literal["integer", "string", "bytes", "dynamic string", "dynamic bytes"]

FIELD = re.compile(r"\s*field:([^;]*);\s*offset:(\d+);\s*size:(\d+);(?:\s*signed:(\d+);)?")
NAME = re.compile(r"(\w+)\s*(?:\[([^\]]*)\])?\s*$")
# Of a declaration, in characters: in longer ones, which no kernel has, the search for NAME would be slow.
MAX_DECLARED = 256
MAX_DIGITS = 9
TEXT_TYPE = re.compile(r"\bchar\b")


@dataclass(frozen=True)
class Field:
    """size in bytes; relative: a dynamic field's place counts from its own end, not from the record's start."""

    name: str
    offset: int
    size: int
    signed: bool
    kind: FieldKind
    relative: bool = False


@dataclass(frozen=True)
class Format:
    """One tracepoint, as its `format` file describes it. fields: without those that all tracepoints have."""

    system: str
    name: str
    id: int
    fields: tuple[Field, ...]

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
    for line in text.split("\n"):
        if line.startswith("name:"):
            name = line[5:].strip()
        elif line.startswith("ID:") and (digits := line[3:].strip()).isdecimal() and len(digits) <= MAX_DIGITS:
            number = int(digits)
        elif line.startswith("print fmt:"):
            break
        elif match := FIELD.match(line):
            fields += _field(*match.groups())
    if not name or number is None:
        return None
    own = tuple(field for field in fields if not field.name.startswith("common_"))
    return Format(system, name, number, own)


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
    if dynamic:
        kind = "dynamic string" if is_text else "dynamic bytes"
    elif length is not None or int(size) not in (1, 2, 4, 8):
        kind = "string" if is_text else "bytes"
    else:
        kind = "integer"
    return [Field(name, int(offset), int(size), signed == "1", kind, "__rel_loc" in kind_of)]


def decode_fields(tracepoint: Format, raw: bytes, order: str) -> dict[str, int | str]:
    """Returns the tracepoint's own fields by name; without those that the bytes do not hold. Arrays of numbers are hex
    text."""
    byteorder: Literal["big", "little"] = "big" if order == ">" else "little"
    values: dict[str, int | str] = {}
    for field in tracepoint.fields:
        part = raw[field.offset : field.offset + field.size]
        if len(part) < field.size:
            continue
        if field.kind.startswith("dynamic"):
            found = _dynamic(field, raw, int.from_bytes(part[:4], byteorder))
            if found is None:
                continue
            part = found
        if field.kind == "integer":
            values[field.name] = int.from_bytes(part, byteorder, signed=field.signed)
        else:
            values[field.name] = encodable(until_nul(part)) if field.kind.endswith("string") else part.hex()
    return values


def _dynamic(field: Field, raw: bytes, place: int) -> bytes | None:
    """place: u16 offset, u16 size"""
    at, size = place & 0xFFFF, place >> 16
    if field.relative:
        at += field.offset + field.size
    return raw[at : at + size] if at + size <= len(raw) else None
