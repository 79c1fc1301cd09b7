"""Builds 64-bit ELF files with debug information (DWARF 2 to 5) from nothing but `struct`. Numbers are the standard's.

Entries are trees of `die`; attributes take the form that belongs to them, or (form, value).
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

# Tags.
LEXICAL_BLOCK, COMPILE_UNIT, STRUCTURE, INLINED = 0x0B, 0x11, 0x13, 0x1D
SUBPROGRAM, VARIABLE, NAMESPACE = 0x2E, 0x34, 0x39
# Attributes.
NAME, STMT_LIST, LOW_PC, HIGH_PC, LANGUAGE, COMP_DIR, ORIGIN = 0x03, 0x10, 0x11, 0x12, 0x13, 0x1B, 0x31
DECL_FILE, DECL_LINE, SPECIFICATION, RANGES, CALL_FILE, CALL_LINE = 0x3A, 0x3B, 0x47, 0x55, 0x58, 0x59
LINKAGE_NAME, STR_OFFSETS_BASE, ADDR_BASE, RNGLISTS_BASE, DWO_NAME = 0x6E, 0x72, 0x73, 0x74, 0x76
GNU_DWO_NAME, GNU_DWO_ID, GNU_RANGES_BASE, GNU_ADDR_BASE = 0x2130, 0x2131, 0x2132, 0x2133
# Forms.
ADDR, BLOCK2, DATA4, STRING, DATA1, SDATA, STRP, UDATA, REF_ADDR, REF4 = 1, 3, 6, 8, 0x0B, 0x0D, 0x0E, 0x0F, 0x10, 0x13
INDIRECT, SEC_OFFSET, FLAG_PRESENT, STRX, ADDRX, LINE_STRP, IMPLICIT_CONST, RNGLISTX = (
    0x16, 0x17, 0x19, 0x1A, 0x1B, 0x1F, 0x21, 0x23,
)  # fmt: skip
# strx1 to strx4, addrx1 to addrx4.
DATA8, STRP_SUP, REF_SUP4, GNU_REF_ALT, GNU_STRP_ALT = 0x07, 0x1D, 0x1C, 0x1F20, 0x1F21
INDEX_BYTES = {0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4, 0x29: 1, 0x2A: 2, 0x2B: 3, 0x2C: 4}
FORMS = {
    NAME: STRING, COMP_DIR: STRING, LINKAGE_NAME: STRING, DWO_NAME: STRING, LOW_PC: ADDR, HIGH_PC: UDATA,
    ORIGIN: REF4, SPECIFICATION: REF4, STMT_LIST: SEC_OFFSET, RANGES: SEC_OFFSET, STR_OFFSETS_BASE: SEC_OFFSET,
    ADDR_BASE: SEC_OFFSET, RNGLISTS_BASE: SEC_OFFSET, GNU_DWO_NAME: STRING, GNU_DWO_ID: DATA8,
    GNU_RANGES_BASE: SEC_OFFSET, GNU_ADDR_BASE: SEC_OFFSET,
}  # fmt: skip
SKELETON, SPLIT = 4, 5  # kinds of units
# Languages.
C_PLUS_PLUS_14, RUST, HASKELL = 0x21, 0x1C, 0x18

FUNC, OBJECT = 2, 1
TEXT = 0x1000, 0x1000

Row = tuple[int, int, int]


class Die(NamedTuple):
    tag: int
    attributes: Mapping[int, Any]
    children: tuple["Die", ...]
    label: str


class Symbol(NamedTuple):
    name: str
    address: int
    size: int
    kind: int = FUNC
    section: int = 1
    bind: int = 1


def die(tag: int, attributes: Mapping[int, Any] | None = None, *children: Die, label: str = "") -> Die:
    """label: what attributes that refer to this entry have as their value."""
    return Die(tag, attributes or {}, children, label)


def uleb(value: int) -> bytes:
    data = b""
    while value >= 0x80:
        data, value = data + bytes([value & 0x7F | 0x80]), value >> 7
    return data + bytes([value])


def sleb(value: int) -> bytes:
    data = b""
    while not -64 <= value < 64:
        data, value = data + bytes([value & 0x7F | 0x80]), value >> 7
    return data + bytes([value & 0x7F])


class Dwarf:
    """wide: offsets have eight bytes."""

    def __init__(self, version: int = 5, *, big: bool = False, wide: bool = False) -> None:
        self.version, self.order = version, ">" if big else "<"
        self.offset = "Q" if wide else "I"
        self.sections: dict[str, bytes] = {}
        self._references: list[tuple[int, str, str, int]] = []
        self._labels: dict[str, int] = {}

    def pack(self, form: str, *values: Any) -> bytes:
        return struct.pack(self.order + form, *values)

    def add(self, section: str, data: bytes) -> int:
        """Appends to a section; returns where the data begins."""
        at = len(self.sections.setdefault(section, b""))
        self.sections[section] += data
        return at

    def sized(self, data: bytes) -> bytes:
        """With its unit_length in front."""
        return (b"\xff" * 4 if self.offset == "Q" else b"") + self.pack(self.offset, len(data)) + data

    # ------------------------------------------------ .debug_info

    def unit(self, *dies: Die, kind: int = 1, split_id: int = 0, **attributes: Any) -> Self:
        """attributes: of the compile unit, by the names in this module, in small letters; split_id: of a skeleton or
        split unit of DWARF 5."""
        root = die(COMPILE_UNIT, {globals()[name.upper()]: value for name, value in attributes.items()}, *dies)
        abbrev_at = len(self.sections.get(".debug_abbrev", b""))
        address_size = b"\x08"
        abbrev = self.pack(self.offset, abbrev_at)
        head = self.pack("H", self.version)
        head += bytes([kind]) + address_size + abbrev if self.version >= 5 else abbrev + address_size
        head += self.pack("Q", split_id) if kind in (SKELETON, SPLIT) else b""
        start = len(self.sections.setdefault(".debug_info", b""))
        first = start + (12 if self.offset == "Q" else 4) + len(head)
        abbrevs: list[bytes] = []
        body = self._entry(root, abbrevs, first, start)
        self.add(".debug_abbrev", b"".join(uleb(n + 1) + a for n, a in enumerate(abbrevs)) + b"\0")
        self.add(".debug_info", self.sized(head + body))
        return self

    def _entry(self, entry: Die, abbrevs: list[bytes], at: int, unit: int) -> bytes:
        if entry.label:
            self._labels[entry.label] = at
        abbrev = uleb(entry.tag) + bytes([bool(entry.children)])
        values = b""
        code = len(abbrevs) + 1
        for name, given in entry.attributes.items():
            form, value = given if isinstance(given, tuple) else (FORMS.get(name, UDATA), given)
            abbrev += uleb(name) + uleb(form) + (sleb(value) if form == IMPLICIT_CONST else b"")
            if isinstance(value, str) and form in (REF4, REF_ADDR):
                width, base = ("I", unit) if form == REF4 else (self.offset, 0)
                self._references.append((at + len(uleb(code)) + len(values), value, width, base))
                value = 0
            values += self._value(form, value)
        abbrevs.append(abbrev + b"\0\0")
        data = uleb(code) + values
        for child in entry.children:
            data += self._entry(child, abbrevs, at + len(data), unit)
        return data + (b"\0" if entry.children else b"")

    def _value(self, form: int, value: Any) -> bytes:
        if form in (STRING, SDATA, FLAG_PRESENT, IMPLICIT_CONST, BLOCK2):
            return {
                STRING: lambda: value.encode() + b"\0",
                SDATA: lambda: sleb(value),
                BLOCK2: lambda: self.pack("H", len(value)) + value,
            }.get(form, bytes)()
        if form == INDIRECT:
            return uleb(value[0]) + self._value(*value)
        fixed = {ADDR: "Q", DATA1: "B", DATA4: "I", DATA8: "Q", REF4: "I", REF_SUP4: "I"} | dict.fromkeys(
            (STRP, LINE_STRP, SEC_OFFSET, REF_ADDR, STRP_SUP, GNU_REF_ALT, GNU_STRP_ALT), self.offset
        )
        if form in INDEX_BYTES:
            return value.to_bytes(INDEX_BYTES[form], "big" if self.order == ">" else "little")
        return self.pack(fixed[form], value) if form in fixed else uleb(value)

    # ------------------------------------------------ .debug_line

    def lines(
        self,
        *sequences: Sequence[Row],
        folders: Iterable[str] = ("/src",),
        files: Iterable[tuple[str, int]] = (("a.cc", 0), ("b.h", 0)),
        program: bytes = b"",
        end: int = 0x100,
    ) -> int:
        """A program whose sequences are rows (address, file, line) up to `end` behind the first; files: (name, folder).
        Special opcodes have lines from -3 to 8. Returns its offset."""
        opcodes = program + b"".join(self._sequence(rows, end) for rows in sequences)
        tail = self.pack("B", 1) + (b"\1" if self.version >= 4 else b"") + self.pack("BbBB", 1, -3, 12, 13)
        tail += bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
        if self.version >= 5:
            names = [(name.encode() + b"\0", uleb(folder)) for name, folder in files]
            tail += b"\1" + uleb(1) + uleb(STRING) + uleb(len(list(folders)))
            tail += b"".join(folder.encode() + b"\0" for folder in folders)
            tail += b"\2" + uleb(1) + uleb(STRING) + uleb(2) + uleb(UDATA)
            tail += uleb(len(names)) + b"".join(name + folder for name, folder in names)
        else:
            tail += b"".join(folder.encode() + b"\0" for folder in folders) + b"\0"
            tail += b"".join(name.encode() + b"\0" + uleb(folder) + b"\0\0" for name, folder in files) + b"\0"
        head = self.pack("H", self.version) + (b"\x08\x00" if self.version >= 5 else b"")
        return self.add(".debug_line", self.sized(head + self.pack(self.offset, len(tail)) + tail + opcodes))

    def _sequence(self, rows: Sequence[Row], end: int) -> bytes:
        address, line = rows[0][0], 1
        data = b"\0\x09\x02" + self.pack("Q", address)
        for row_address, row_file, row_line in rows:
            data += b"\x02" + uleb(row_address - address) + b"\x03" + sleb(row_line - line)
            data += b"\x04" + uleb(row_file) + b"\x01"
            address, line = row_address, row_line
        return data + b"\x02" + uleb(rows[0][0] + end - address) + b"\0\x01\x01"

    # ------------------------------------------------ ranges

    def ranges(self, *ranges: tuple[int, int]) -> int:
        """The offset of a list."""
        if self.version < 5:
            return self.add(".debug_ranges", b"".join(self.pack("QQ", *r) for r in (*ranges, (0, 0))))
        pairs = b"".join(b"\x06" + self.pack("QQ", *r) for r in ranges)
        return self.add(".debug_rnglists", pairs + b"\0")

    # ------------------------------------------------ the file

    def elf(
        self,
        symbols: Iterable[Symbol] = (),
        text: tuple[int, int] = TEXT,
        suffix: str = "",
        plain: Mapping[str, bytes] | None = None,
    ) -> bytes:
        """symbols: of .symtab; text: address and size of .text; suffix: of the sections' names; plain: sections whose
        names have none."""
        info = bytearray(self.sections.get(".debug_info", b""))
        for at, label, width, base in self._references:
            struct.pack_into(self.order + width, info, at, self._labels[label] - base)
        sections = {**self.sections, **({".debug_info": bytes(info)} if info else {})}
        sections = {
            name + (suffix if name.startswith(".debug_") else ""): data for name, data in sections.items()
        } | dict(plain or {})
        return elf(self.order, text, sections, symbols)


def elf(order: str, text: tuple[int, int], sections: Mapping[str, bytes], symbols: Iterable[Symbol]) -> bytes:
    """A shared object with .text, which has no bytes, the sections, a symbol table, and one PT_LOAD at 0."""
    strings = b"\0"
    table = bytes(24)
    for symbol in symbols:
        table += struct.pack(
            order + "IBBHQQ",
            *(len(strings), symbol.bind << 4 | symbol.kind, 0, symbol.section, symbol.address, symbol.size),
        )
        strings += symbol.name.encode() + b"\0"
    progbits, symtab, strtab, note, nobits = 1, 2, 3, 7, 8
    rows = [(".text", nobits, 6, *text, b"", 0, 0)]
    for name, data in sections.items():
        rows.append((name, note if name.startswith(".note") else progbits, 0, 0, len(data), data, 0, 0))
    rows.append((".symtab", symtab, 0, 0, len(table), table, len(rows) + 2, 24))
    rows.append((".strtab", strtab, 0, 0, len(strings), strings, 0, 0))
    names = b"\0" + b"".join(row[0].encode() + b"\0" for row in rows) + b".shstrtab\0"
    rows.append((".shstrtab", strtab, 0, 0, len(names), names, 0, 0))
    body = bytearray(64 + 56)
    headers = bytearray(64)
    for name, kind, flags, address, size, data, link, entry_size in rows:
        at = names.index(b"\0" + name.encode() + b"\0") + 1
        headers += struct.pack(order + "IIQQQQIIQQ", at, kind, flags, address, len(body), size, link, 0, 1, entry_size)
        body += data
    machine, dyn = 62 if order == "<" else 22, 3
    ident = b"\x7fELF" + bytes([2, 1 if order == "<" else 2, 1]) + bytes(9)
    body[:64] = ident + struct.pack(
        order + "HHIQQQIHHHHHH", dyn, machine, 1, 0, 64, len(body), 0, 64, 56, 1, 64, len(rows) + 1, len(rows)
    )
    body[64:120] = struct.pack(order + "IIQQQQQQ", 1, 5, 0, 0, 0, text[0] + text[1], text[0] + text[1], 1)
    return bytes(body + headers)
