"""The headers of an ELF file, as pyelftools describes them: without its `ELFFile`, whose module imports all that reads
debug information, which takes half as long as a small recording."""

from __future__ import annotations

from typing import Any

from elftools.common.exceptions import ELFError

MAGIC = b"\x7fELF"
# EI_CLASS in bits, EI_DATA: whether it is little-endian (gABI, chapter 4).
CLASSES = {b"\x01": 32, b"\x02": 64}
ORDERS = {b"\x01": True, b"\x02": False}


class ElfHeaders:
    """Raises ELFError, and what a file raises for a place that is no place in it.

    stream: the file; structs: pyelftools' layouts of its headers; header: the first of them, by name of the member.
    """

    def __init__(self, stream: Any) -> None:
        from elftools.elf.structs import ELFStructs

        self.stream = stream
        stream.seek(0)
        magic, kind, order = stream.read(4), stream.read(1), stream.read(1)
        if magic != MAGIC:
            raise ELFError("Magic number does not match")
        if kind not in CLASSES:
            raise ELFError(f"Invalid EI_CLASS {kind!r}")
        if order not in ORDERS:
            raise ELFError(f"Invalid EI_DATA {order!r}")
        self.little_endian, self.word_size = ORDERS[order], CLASSES[kind] // 8
        self.structs = ELFStructs(little_endian=self.little_endian, elfclass=CLASSES[kind])
        self.structs.create_basic_structs()
        self.header = self.parsed(self.structs.Elf_Ehdr, 0)
        osabi = self.header["e_ident"]["EI_OSABI"]
        self.structs.create_advanced_structs(self.header["e_type"], self.header["e_machine"], osabi)

    def parsed(self, layout: Any, at: int) -> Any:
        """Returns what stands at a place of the file, by name of the member."""
        from elftools.common.utils import struct_parse

        return struct_parse(layout, self.stream, at)
