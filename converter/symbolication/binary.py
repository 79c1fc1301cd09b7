"""An ELF binary: its headers, and what they say where to find.

Addresses are as the linker wrote them (`address`), or relative to the lowest loaded segment.
"""

from __future__ import annotations

import struct
from functools import cached_property
from typing import NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.files.decompress import decompress_stream
from traceferry.files.source import Source
from traceferry.model import Array
from traceferry.symbolication.build_id import build_id_of, debug_id_of
from traceferry.symbolication.elf_headers import ElfHeaders, Header, Layout

MAX_SECTION_NAME = 256
# What a section may be decompressed to: so many times its size, or FREE bytes. Those of real files become 14 times as
# large at most.
MAX_RATIO = 64
FREE = 4 << 20
ZLIB, ZSTD = 1, 2


class Segment(NamedTuple):
    """type: PT_*; size: in the file."""

    type: str
    flags: int
    offset: int
    address: int
    size: int


class SectionHeader(NamedTuple):
    """type: SHT_*; flags: SHF_*; offset, size: in the file; link: the number of another section, as the type says."""

    name: str
    type: str
    flags: int
    address: int
    offset: int
    size: int
    link: int


class Binary:
    """An ELF executable or shared object, or its debug file.

    Raises FormatError if the bytes are not an ELF file.

    word_size: in bytes; machine: the processor, EM_*; arch: as viewers name it, "unknown" for others; entry_point: an
    address, 0 for none.
    """

    def __init__(self, source: Source) -> None:
        self.path = source.path
        self.name = source.name
        self.data = source.data
        try:
            self._elf = ElfHeaders(source.data)
        except ValueError as error:
            raise self._unreadable(str(error)) from None
        self._first = self._elf.file
        self.little_endian = self._elf.little_endian
        self.word_size = self._elf.word_size
        self.machine = str(self._first["e_machine"])
        self.entry_point = int(self._first["e_entry"])
        self.arch = ARCHITECTURES.get((self.machine, self.word_size), "unknown")
        self.segments = self._segments()
        self.is_executable = self._first["e_type"] == "ET_EXEC" or any(s.type == "PT_INTERP" for s in self.segments)
        self._loaded = [segment for segment in self.segments if segment.type == "PT_LOAD"]
        self.base = min((segment.address for segment in self._loaded), default=0)

    def _headers(self, n: int, table: str, layout: Layout) -> list[Header]:
        """Returns the first n headers of a table, "sh" of sections or "ph" of segments. Raises FormatError."""
        begin, step = self._first[f"e_{table}off"], self._first[f"e_{table}entsize"]
        if begin > 0 and step < layout.size:
            raise self._unreadable(f"Too small e_{table}entsize: {step}")
        if n > len(self.data) // layout.size:
            raise self._unreadable(f"it has no room for {n} headers")
        try:
            return [layout.read(self.data, begin + nth * step) for nth in range(n)]
        except ValueError as error:
            raise self._unreadable(str(error)) from None

    def _section_headers(self, n: int) -> list[Header]:
        return self._headers(n, "sh", self._elf.section)

    def _segments(self) -> list[Segment]:
        n = self._first["e_phnum"]
        n = self._section_headers(1)[0]["sh_info"] if n == PN_XNUM else n
        headers = self._headers(n, "ph", self._elf.segment)
        return [Segment(h["p_type"], h["p_flags"], h["p_offset"], h["p_vaddr"], h["p_filesz"]) for h in headers]

    @property
    def is_debug_file(self) -> bool:
        """Whether its code is in another file, as after objcopy --only-keep-debug."""
        return any(section.name == ".text" and section.type == "SHT_NOBITS" for section in self.sections)

    @cached_property
    def sections(self) -> list[SectionHeader]:
        """The sections by number; none where a header is damaged."""
        try:
            return self.section_headers
        except FormatError:
            return []

    @cached_property
    def section_headers(self) -> list[SectionHeader]:
        """The same. Raises FormatError where a header is damaged."""
        n = self._n_sections()
        headers = self._section_headers(n)
        texts = memoryview(b"")
        if headers:
            number = self._first["e_shstrndx"]
            number = headers[0]["sh_link"] if number == SHN_XINDEX else number
            if number >= len(headers):
                raise self._unreadable(f"the names of its {n} sections would be in section {number}")
            texts = self._bytes(headers[number]["sh_offset"], headers[number]["sh_size"])
        fields = ("sh_flags", "sh_addr", "sh_offset", "sh_size", "sh_link")
        return [
            SectionHeader(_name_at(texts, header["sh_name"]), header["sh_type"], *(header[field] for field in fields))
            for header in headers
        ]

    def _n_sections(self) -> int:
        """Returns what the first section tells where they are too many for the header (gABI, chapter 4)."""
        if self._first["e_shoff"] == 0:
            return 0
        return int(self._first["e_shnum"] or self._section_headers(1)[0]["sh_size"])

    @cached_property
    def _by_name(self) -> dict[str, SectionHeader]:
        """The sections by name; of several with one name, the last."""
        return {section.name: section for section in self.section_headers}

    @property
    def code_sections(self) -> list[int]:
        """The numbers of those that can be executed."""
        return [nth for nth, section in enumerate(self.sections) if section.flags & SHF_EXECINSTR]

    @property
    def code_ranges(self) -> list[tuple[int, int]]:
        """(address, end) of the sections that are loaded and can be executed."""
        wanted = SHF_ALLOC | SHF_EXECINSTR
        loaded = (section for section in self.sections if section.flags & wanted == wanted)
        return [(section.address, section.address + section.size) for section in loaded]

    def section_named(self, name: str) -> SectionHeader | None:
        """Raises FormatError where a header is damaged."""
        return self._by_name.get(name)

    def section(self, name: str) -> tuple[int, memoryview] | None:
        """Returns (address, bytes) of a section, or None. Raises FormatError if it cannot be read."""
        section = self.section_named(name)
        return None if section is None else (section.address, self.content(section))

    def content(self, section: SectionHeader) -> memoryview:
        """Returns its bytes, decompressed if they are compressed. Raises FormatError if it ends beyond the file, is
        damaged, or would hold more than a section of this size may."""
        if section.type == "SHT_NOBITS":
            return memoryview(b"")
        if section.offset + section.size > len(self.data):
            raise self._unreadable(f"{section.name} ends beyond the file")
        packed = self._bytes(section.offset, section.size)
        described = self._compression(section, packed)
        if described is None:
            return packed
        kind, size, begin = described
        self._check_size(size, section)
        return memoryview(self._decompressed(section, kind, packed[begin:], size))

    def _bytes(self, offset: int, size: int) -> memoryview:
        return self.data[offset : offset + size]

    def _compression(self, section: SectionHeader, packed: memoryview) -> tuple[int, int, int] | None:
        """Returns (ELFCOMPRESS_*, the decompressed size, where the compressed bytes begin); None of a section that is
        not compressed. .zdebug sections begin with "ZLIB" and a u64 in big endian, others with an Elf*_Chdr."""
        if section.flags & SHF_COMPRESSED:
            order, form = "<" if self.little_endian else ">", "I4xQQ" if self.word_size == 8 else "III"
            if len(packed) < struct.calcsize(order + form):
                raise self._unreadable(f"{section.name} ends inside of its compression header")
            kind, size, _ = struct.unpack_from(order + form, packed)
            return int(kind), int(size), struct.calcsize(order + form)
        if not section.name.startswith(".zdebug"):
            return None
        if bytes(packed[:4]) != b"ZLIB":
            raise self._unreadable(f"{section.name} does not begin with ZLIB")
        return ZLIB, int.from_bytes(packed[4:12], "big"), 12

    def _check_size(self, size: int, section: SectionHeader) -> None:
        if size > max(FREE, MAX_RATIO * min(section.size, len(self.data))):
            raise self._unreadable(f"{section.name} declares {size} bytes, too many for {section.size} compressed ones")

    def _decompressed(self, section: SectionHeader, kind: int, packed: memoryview, size: int) -> bytes:
        if kind == ZSTD:
            unpacked = bytearray()
            damage = decompress_stream([bytes(packed)] if len(packed) else [], unpacked, size + 1).damage
            found = bytes(unpacked)
        elif kind == ZLIB:
            from isal import igzip_lib, isal_zlib

            isal_error: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]  # its stub declares an instance
            found, damage = b"", ""
            try:
                found = isal_zlib.decompressobj().decompress(packed, size + 1)
            except isal_error as error:
                damage = str(error)
        else:
            raise self._unreadable(f"{section.name} is compressed in a way that is not known: {kind}")
        if damage or len(found) != size:
            why = damage or f"it holds {len(found)} bytes, not the {size} that it declares"
            raise self._unreadable(f"{section.name}: {why}")
        return found

    def relative_relocations(self, begin: int, end: int) -> dict[int, int]:
        """Returns address → addend of the R_*_RELATIVE relocations that lie in [begin, end)."""
        found = self._relative_relocations
        found = found[(found["offset"] >= begin) & (found["offset"] < end)]
        return dict(zip(found["offset"].tolist(), found["addend"].tolist(), strict=True))

    def relocations_to(self, address: int) -> list[int]:
        """Returns where R_*_RELATIVE relocations with this addend lie."""
        found = self._relative_relocations
        places: list[int] = found["offset"][found["addend"] == address].tolist()
        return places

    @cached_property
    def _relative_relocations(self) -> Array:
        """The R_*_RELATIVE relocations. Raises FormatError where a header is damaged."""
        word, mask = f"{'<' if self.little_endian else '>'}u{self.word_size}", 0xFFFF_FFFF
        entry = np.dtype([(name, word) for name in ("offset", "info", "addend")])
        relative = RELATIVE_RELOCATIONS.get(self.machine)
        if relative is None:
            return np.zeros(0, entry)
        tables = [self.content(section) for section in self.section_headers if section.type == "SHT_RELA"]
        parts = [np.frombuffer(data, entry, len(data) // entry.itemsize) for data in tables or [self._dynamic_rela]]
        found = np.concatenate(parts)
        kind = found["info"] & np.array(mask if self.word_size == 8 else 0xFF, found["info"].dtype)
        chosen: Array = found[kind == relative]
        return chosen

    @cached_property
    def _dynamic_rela(self) -> memoryview:
        """The table of relocations that the dynamic segment names, which files without sections have, too."""
        word = f"{'<' if self.little_endian else '>'}u{self.word_size}"
        for segment in self.segments:
            if segment.type == "PT_DYNAMIC":
                data = self._bytes(segment.offset, segment.size)
                pairs = np.frombuffer(data, word, len(data) // self.word_size // 2 * 2).reshape(-1, 2).tolist()
                said = dict(reversed(pairs))
                return memoryview(self.code(said.get(DT_RELA, 0) - self.base, said.get(DT_RELASZ, 0)))
        return memoryview(b"")

    def relative(self, offset: int) -> int | None:
        """Returns where a byte of the file is loaded, relative to the lowest loaded segment; None where it is not."""
        for segment in self._loaded:
            if segment.offset <= offset < segment.offset + segment.size:
                return segment.address + offset - segment.offset - self.base
        return None

    def code(self, address: int, size: int) -> bytes:
        """Returns the bytes at an address relative to the lowest loaded segment, as far as the file has them."""
        at = address + self.base
        for segment in self._loaded:
            begin = at - segment.address
            if 0 <= begin < segment.size:
                return bytes(self.data[segment.offset + begin : segment.offset + min(begin + size, segment.size)])
        return b""

    @cached_property
    def build_id(self) -> str:
        """The build id in hex, "" where there is none."""
        return build_id_of(self.data)

    @cached_property
    def debug_id(self) -> str:
        """Breakpad's form of the build id: 33 hex digits; without a build id, of a hash of the code."""
        return debug_id_of(self.build_id or self._hash_of_code(), big_endian=not self.little_endian)

    def _hash_of_code(self) -> str:
        """Returns Breakpad's hash: the first page of .text in pieces of 16 bytes, combined by XOR."""
        try:
            text = self.section(".text")
        except FormatError:
            text = None
        hashed = bytearray(16)
        for nth, byte in enumerate(text[1][:HASHED_BYTES] if text is not None else b""):
            hashed[nth % 16] ^= byte
        return hashed.hex()

    def _unreadable(self, reason: str) -> FormatError:
        unreadable = FormatError(f"not a readable ELF file: {reason}", 0, "ELF")
        unreadable.path = self.path
        return unreadable


def _name_at(texts: memoryview, at: int) -> str:
    """Returns the name of a section; "" where there is none."""
    text = bytes(texts[at : at + MAX_SECTION_NAME])
    return text[: max(text.find(b"\0"), 0)].decode("utf-8", "replace")


SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 0x2, 0x4, 0x800
DT_RELA, DT_RELASZ = 7, 8
# The number of segments is then in the header of section 0.
PN_XNUM = SHN_XINDEX = 0xFFFF
# What Breakpad hashes where a file has no build id.
HASHED_BYTES = 4096

# (e_machine, bytes of a word) → name.
ARCHITECTURES = {
    ("EM_386", 4): "x86",
    ("EM_X86_64", 8): "x86_64",
    ("EM_AARCH64", 8): "arm64",
    ("EM_ARM", 4): "arm",
    ("EM_PPC", 4): "ppc",
    ("EM_PPC64", 8): "ppc64",
    ("EM_MIPS", 4): "mips",
    ("EM_MIPS", 8): "mips64",
    ("EM_RISCV", 4): "riscv32",
    ("EM_RISCV", 8): "riscv64",
}

# r_info_type of R_<machine>_RELATIVE, from the processors' ABI supplements.
RELATIVE_RELOCATIONS = {
    "EM_X86_64": 8,
    "EM_AARCH64": 1027,
    "EM_PPC64": 22,
    "EM_S390": 12,
    "EM_ARM": 23,
    "EM_386": 8,
    "EM_QDSP6": 35,  # Hexagon
    "EM_RISCV": 3,
    "EM_LOONGARCH": 3,
}
