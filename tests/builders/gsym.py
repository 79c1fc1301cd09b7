"""Writes GSYM files of both versions, byte for byte, with struct alone; and ELF files that hold them in a section.

file = GsymFile(version=1, order=">", address_size=2, base=0x4000)
file.function("main", 0x4010, 0x80, lines=[(0x4010, "src/a.c", 7)], inlines=[Call("f", [(0x4020, 0x4030)], ...)])
file.bytes()
"""

import builtins
import struct
from collections.abc import Sequence
from typing import NamedTuple, Self

MAGIC = 0x4753594D
LITTLE, BIG = "<", ">"
VERSIONS = (1, 2)
ADDRESS_SIZES = {1: "B", 2: "H", 4: "I", 8: "Q"}
END_OF_LIST, LINE_TABLE, INLINE_INFO, MERGED_FUNCTIONS, CALL_SITES = range(5)
INTERNAL, EXTERNAL = 1, 2
END_SEQUENCE, SET_FILE, ADVANCE_PC, ADVANCE_LINE, FIRST_SPECIAL = range(5)
STRINGS_SECTION, FILES_SECTION, INFOS_SECTION, UUID_SECTION = 3, 4, 5, 6
UUID_ROOM = 20

Row = tuple[int, str, int]
Ranges = Sequence[tuple[int, int]]


class Call(NamedTuple):
    """An inlined call: of `name`, made at file:line. ranges: (first address, end); file "" makes no frame."""

    name: str
    ranges: Ranges
    file: str = "src/a.c"
    line: int = 1
    children: Sequence["Call"] = ()


class Site(NamedTuple):
    """offset: of the return address, from the function's start."""

    offset: int
    callees: Sequence[str]
    flags: int = 0


class Body(NamedTuple):
    """A function info. extra: (type, bytes) of further data, in front of the others."""

    name: str
    start: int
    size: int
    lines: Sequence[Row] | None = None
    inlines: Sequence[Call] | None = None
    merged: Sequence["Body"] = ()
    sites: Sequence[Site] = ()
    extra: Sequence[tuple[int, bytes]] = ()


def uleb(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def sleb(value: int) -> bytes:
    encoded = bytearray()
    while not -0x40 <= value < 0x40:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value & 0x7F])


class GsymFile:
    """A file that grows. alignment: of the function infos; deltas: the lines that special opcodes reach; strings_at:
    where the string table is, if it is to be left out here."""

    def __init__(
        self,
        version: int = 1,
        order: str = LITTLE,
        address_size: int = 4,
        base: int = 0x1000,
        uuid: builtins.bytes = b"\x01\x23\x45\x67",
        alignment: int = 4,
        deltas: tuple[int, int] = (-4, 10),
    ) -> None:
        self.version, self.order, self.address_size = version, order, address_size
        self.base, self.uuid, self.alignment, self.deltas = base, uuid, alignment, deltas
        self.strings = bytearray(1)
        self.strings_at: int | None = None
        self._offsets: dict[str, int] = {"": 0}
        self._files: dict[str, int] = {"": 0}
        self._functions: list[Body] = []

    @property
    def word(self) -> str:
        """Of string offsets."""
        return "I" if self.version == 1 else "Q"

    def string(self, text: str) -> int:
        if text not in self._offsets:
            self._offsets[text] = len(self.strings)
            self.strings += text.encode() + b"\0"
        return self._offsets[text]

    def string_at(self, text: str, offset: int) -> None:
        """Wherever this text is to stand, there will be what lies at that offset."""
        self._offsets[text] = offset

    def file(self, path: str) -> int:
        return self._files.setdefault(path, len(self._files))

    def function(
        self,
        name: str,
        start: int,
        size: int,
        lines: Sequence[Row] | None = None,
        inlines: Sequence[Call] | None = None,
        merged: Sequence[Body] = (),
        sites: Sequence[Site] = (),
        extra: Sequence[tuple[int, builtins.bytes]] = (),
    ) -> Self:
        """In the order of their addresses. lines: rising addresses; inlines: what is inlined into the function."""
        self._functions.append(Body(name, start, size, lines, inlines, merged, sites, extra))
        return self

    def bytes(self) -> builtins.bytes:
        infos = bytearray()
        places = []
        for function in self._functions:
            infos += bytes(-len(infos) % self.alignment)
            places.append(len(infos))
            infos += self._info(function)
        addresses = self._pack(
            f"{len(places)}{ADDRESS_SIZES[self.address_size]}", *(f.start - self.base for f in self._functions)
        )
        files = self._pack("I", len(self._files)) + b"".join(self._file_entry(path) for path in self._files)
        whole = self._version_1 if self.version == 1 else self._version_2
        return whole(addresses, places, files, builtins.bytes(infos))

    # ------------------------------------------------------------ the two versions

    def _version_1(
        self, addresses: builtins.bytes, places: list[int], files: builtins.bytes, infos: builtins.bytes
    ) -> builtins.bytes:
        before = 48 + len(addresses)
        before += -before % 4 + 4 * len(places) + len(files)
        strings = builtins.bytes(self.strings) if self.strings_at is None else b""
        strings_at = before if self.strings_at is None else self.strings_at
        begin = before + len(strings)
        begin += -begin % self.alignment
        header = self._pack(
            "IHBBQIII20s", MAGIC, 1, self.address_size, len(self.uuid), self.base, len(places), strings_at,
            len(self.strings), self.uuid,
        )  # fmt: skip
        head = header + addresses
        head += bytes(-len(head) % 4) + self._pack(f"{len(places)}I", *(begin + at for at in places)) + files + strings
        return head + bytes(begin - len(head)) + infos

    def _version_2(
        self, addresses: builtins.bytes, places: list[int], files: builtins.bytes, infos: builtins.bytes
    ) -> builtins.bytes:
        """Sections in an order of their own, with one of a type that nobody knows."""
        header = self._pack("IHBBQI", MAGIC, 2, self.address_size, 0, self.base, len(places))
        sections = {
            UUID_SECTION: self.uuid,
            1: addresses,
            99: b"?",
            2: self._pack(f"{len(places)}Q", *places),
            FILES_SECTION: files,
            STRINGS_SECTION: builtins.bytes(self.strings) if self.strings_at is None else b"",
            INFOS_SECTION: infos,
        }
        at = len(header) + 20 * (len(sections) + 1)
        table, contents = b"", b""
        for type_, content in sections.items():
            place, size = at + len(contents), len(content)
            if type_ == STRINGS_SECTION and self.strings_at is not None:
                place, size = self.strings_at, len(self.strings)
            table += self._pack("IQQ", type_, place, size)
            contents += content
        return header + table + self._pack("IQQ", 0, 0, 0) + contents

    def _file_entry(self, path: str) -> builtins.bytes:
        directory, _, name = path.rpartition("/")
        return self._pack("2" + self.word, self.string(directory), self.string(name))

    # ------------------------------------------------------------ function infos

    def _info(self, body: Body) -> builtins.bytes:
        data = list(body.extra)
        if body.lines is not None:
            data.append((LINE_TABLE, self.line_table(body.start, body.lines)))
        if body.inlines is not None:
            root = Call(body.name, [(body.start, body.start + max(body.size, 1))], "", 0, body.inlines)
            data.append((INLINE_INFO, self.inline_tree(root, body.start)))
        if body.merged:
            infos = [self._info(merged) for merged in body.merged]
            sized = b"".join(self._pack("I", len(info)) + info for info in infos)
            data.append((MERGED_FUNCTIONS, self._pack("I", len(infos)) + sized))
        if body.sites:
            data.append((CALL_SITES, self._pack("I", len(body.sites)) + b"".join(map(self._site, body.sites))))
        parts = b"".join(self._pack("II", type_, len(content)) + content for type_, content in data)
        return self._pack("I" + self.word, body.size, self.string(body.name)) + parts + self._pack("II", 0, 0)

    def line_table(self, start: int, rows: Sequence[Row]) -> builtins.bytes:
        """With special opcodes wherever they reach."""
        low, high = self.deltas
        now, line, file = start, rows[0][2] if rows else 0, 1
        encoded = sleb(low) + sleb(high) + uleb(line)
        for address, path, new_line in rows:
            if self.file(path) != file:
                file = self.file(path)
                encoded += bytes([SET_FILE]) + uleb(file)
            special = FIRST_SPECIAL + (new_line - line - low) + (high - low + 1) * (address - now)
            if low <= new_line - line <= high and special <= 255:
                encoded += bytes([special])
            else:
                encoded += bytes([ADVANCE_LINE]) + sleb(new_line - line) + bytes([ADVANCE_PC]) + uleb(address - now)
            now, line = address, new_line
        return encoded + bytes([END_SEQUENCE])

    def inline_tree(self, call: Call, base: int) -> builtins.bytes:
        encoded = uleb(len(call.ranges)) + b"".join(
            uleb(begin - base) + uleb(end - begin) for begin, end in call.ranges
        )
        encoded += bytes([bool(call.children)]) + self._pack(self.word, self.string(call.name))
        encoded += uleb(self.file(call.file)) + uleb(call.line)
        if call.children:
            encoded += b"".join(self.inline_tree(child, call.ranges[0][0]) for child in call.children) + b"\0"
        return encoded

    def _site(self, site: Site) -> builtins.bytes:
        callees = [self.string(callee) for callee in site.callees]
        return self._pack(f"QBI{len(callees)}{self.word}", site.offset, site.flags, len(callees), *callees)

    def _pack(self, form: str, *values: object) -> builtins.bytes:
        return struct.pack(self.order + form, *values)


# ---------------------------------------------------------------- ELF files


class ElfPart(NamedTuple):
    name: str
    type: int
    content: bytes


SHT_PROGBITS, SHT_STRTAB, SHT_NOBITS = 1, 3, 8


def elf(*parts: ElfPart, order: str = LITTLE, bits: int = 64) -> bytes:
    """An ELF file with these sections, of which nothing is loaded. The first lies at ELF_CONTENT."""
    names = b"\0"
    offsets, places = [], []
    contents = b""
    for part in (*parts, ElfPart(".shstrtab", SHT_STRTAB, b"")):
        offsets.append(len(names))
        places.append(ELF_CONTENT + len(contents))
        names += part.name.encode() + b"\0"
        contents += b"" if part.type == SHT_NOBITS else part.content
    header, section = ("HHIQQQI6H", "IIQQQQIIQQ") if bits == 64 else ("HHIIIII6H", "10I")
    sizes = (64, 64) if bits == 64 else (52, 40)
    rows = [(0,) * 10]
    every = (*parts, ElfPart(".shstrtab", SHT_STRTAB, names))
    for name, place, part in zip(offsets, places, every, strict=True):
        rows.append((name, part.type, 0, 0, place, len(part.content), 0, 0, 1, 0))
    contents += names
    ident = b"\x7fELF" + bytes([bits // 32, 1 if order == LITTLE else 2, 1]) + bytes(9)
    fields = (3, 62, 1, 0, 0, ELF_CONTENT + len(contents), 0, sizes[0], 0, 0, sizes[1], len(rows), len(rows) - 1)
    head = ident + struct.pack(order + header, *fields)
    return head.ljust(ELF_CONTENT, b"\0") + contents + b"".join(struct.pack(order + section, *row) for row in rows)


ELF_CONTENT = 64
