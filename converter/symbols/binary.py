"""An ELF binary: its sections through pyelftools, its debug information through symbolic where that is installed.

Addresses are as the linker wrote them (`address`), or relative to the lowest loaded segment (what symbolic takes).
"""

from __future__ import annotations

import io
import mmap
from functools import cached_property
from typing import Any, NamedTuple

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection

from traceferry.errors import FormatError
from traceferry.io.source import Source
from traceferry.symbols.build_id import build_id_of, debug_id_of

# pyelftools lets all of these escape on damaged files, besides its own error.
ELF_DAMAGE = (
    ELFError,
    ValueError,
    LookupError,
    AttributeError,
    TypeError,
    ArithmeticError,
    AssertionError,
    MemoryError,
    OSError,
)


def stream_of(data: memoryview) -> Any:
    """A file that pyelftools reads these bytes from, without a copy of them."""
    owner = owner_of(data)
    return owner if isinstance(owner, mmap.mmap) else io.BytesIO(owner)


def owner_of(data: memoryview) -> bytes | mmap.mmap:
    """What holds these bytes and no others: a copy, if nothing does."""
    if isinstance(data.obj, (bytes, mmap.mmap)) and len(data.obj) == len(data):
        return data.obj
    return bytes(data)


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
    """

    def __init__(self, source: Source) -> None:
        self.path = source.path
        self.name = source.name
        self.data = source.data
        try:
            self.elf = ELFFile(stream_of(source.data))
            # Headers alone: pyelftools reads a section of each type, and a dynamic segment, through when it makes it.
            headers = [self.elf._get_segment_header(nth) for nth in range(self.elf.num_segments())]
            self.segments = [
                Segment(h["p_type"], h["p_flags"], h["p_offset"], h["p_vaddr"], h["p_filesz"]) for h in headers
            ]
            self.is_executable = self.elf["e_type"] == "ET_EXEC" or any(s.type == "PT_INTERP" for s in self.segments)
            self._loaded = [segment for segment in self.segments if segment.type == "PT_LOAD"]
            self.base = min((segment.address for segment in self._loaded), default=0)
        except ELF_DAMAGE as error:
            raise self._unreadable(error) from None

    @property
    def little_endian(self) -> bool:
        return bool(self.elf.little_endian)

    @property
    def machine(self) -> str:
        """EM_*."""
        return str(self.elf["e_machine"])

    @property
    def is_debug_file(self) -> bool:
        """Whether its code is in another file, as after objcopy --only-keep-debug."""
        return any(section.name == ".text" and section.type == "SHT_NOBITS" for section in self.sections)

    @cached_property
    def sections(self) -> list[SectionHeader]:
        """By number; none where a header is damaged."""
        try:
            return self._section_headers
        except ELF_DAMAGE:
            return []

    @cached_property
    def _section_headers(self) -> list[SectionHeader]:
        """Raises ELF_DAMAGE."""
        fields = ("sh_flags", "sh_addr", "sh_offset", "sh_size", "sh_link")
        headers = (self.elf._get_section_header(nth) for nth in range(self.elf.num_sections()))
        return [
            SectionHeader(
                self.elf._get_section_name(header), str(header["sh_type"]), *(header[field] for field in fields)
            )
            for header in headers
        ]

    @cached_property
    def _section_numbers(self) -> dict[str, int]:
        """Of several sections of one name, the last."""
        return {section.name: nth for nth, section in enumerate(self._section_headers)}

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

    @property
    def word_size(self) -> int:
        return int(self.elf.elfclass) // 8

    def section_named(self, name: str) -> Any:
        """As pyelftools has it, whose own look-up by name reads some sections through; None. Raises ELF_DAMAGE."""
        nth = self._section_numbers.get(name)
        return self.elf.get_section(nth) if nth is not None else None

    def section(self, name: str) -> tuple[int, bytes] | None:
        """(address, bytes) of a section, or None."""
        try:
            section = self.section_named(name)
            return None if section is None else (int(section["sh_addr"]), section.data())
        except ELF_DAMAGE as error:
            raise self._unreadable(error) from None

    def relative_relocations(self, begin: int, end: int) -> dict[int, int]:
        """Address → addend of the R_*_RELATIVE relocations that lie in [begin, end)."""
        relative = RELATIVE_RELOCATIONS.get(self.elf["e_machine"])
        addends: dict[int, int] = {}
        try:
            for section in self.elf.iter_sections():
                if not isinstance(section, RelocationSection) or not section.is_RELA():
                    continue
                for relocation in section.iter_relocations():
                    at = relocation["r_offset"]
                    if begin <= at < end and relocation["r_info_type"] == relative:
                        addends[at] = int(relocation["r_addend"])
        except ELF_DAMAGE as error:
            raise self._unreadable(error) from None
        return addends

    def relative(self, offset: int) -> int | None:
        """Where a byte of the file is loaded, relative to the lowest loaded segment; None where it is not."""
        for segment in self._loaded:
            if segment.offset <= offset < segment.offset + segment.size:
                return segment.address + offset - segment.offset - self.base
        return None

    def code(self, address: int, size: int) -> bytes:
        """The bytes at an address relative to the lowest loaded segment, as far as the file has them."""
        at = address + self.base
        for segment in self._loaded:
            begin = at - segment.address
            if 0 <= begin < segment.size:
                return bytes(self.data[segment.offset + begin : segment.offset + min(begin + size, segment.size)])
        return b""

    @cached_property
    def symcache(self) -> Any:
        """What symbolic makes of the symbols and the debug information, None where these are unreadable. Its addresses
        are relative to the lowest loaded segment, and have 32 bits. Raises ImportError where it is not installed."""
        from symbolic import Archive
        from symbolic._lowlevel import ffi
        from symbolic.exceptions import SymbolicError

        # Nothing is copied; what symbolic makes is its own.
        data = ffi.from_buffer("uint8_t[]", owner_of(self.data))
        try:
            archive = Archive.from_bytes(data)
            first = next(iter(archive.iter_objects()), None)
            return first.make_symcache() if first is not None else None
        except SymbolicError:
            return None

    @cached_property
    def build_id(self) -> str:
        """In hex, "" where there is none."""
        return build_id_of(self.data)

    @cached_property
    def debug_id(self) -> str:
        """Breakpad's form of the build id: 33 hex digits; without a build id, of a hash of the code."""
        return debug_id_of(self.build_id or self._hash_of_code(), big_endian=not self.little_endian)

    def _hash_of_code(self) -> str:
        """As Breakpad makes it: the first page of .text in pieces of 16 bytes, combined by XOR."""
        try:
            text = self.section(".text")
        except FormatError:
            text = None
        hashed = bytearray(16)
        for nth, byte in enumerate(text[1][:HASHED_BYTES] if text is not None else b""):
            hashed[nth % 16] ^= byte
        return hashed.hex()

    @property
    def arch(self) -> str:
        """The processor as viewers name it; "unknown" for others."""
        return ARCHITECTURES.get((self.elf["e_machine"], self.word_size), "unknown")

    def _unreadable(self, error: Exception) -> FormatError:
        unreadable = FormatError(f"not a readable ELF file: {error or type(error).__name__}", 0, "ELF")
        unreadable.path = self.path
        return unreadable


SHF_ALLOC, SHF_EXECINSTR = 0x2, 0x4
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
