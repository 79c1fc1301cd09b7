"""The headers of an ELF file, as the System V ABI lays them out (gABI, chapters 4 and 5)."""

from __future__ import annotations

import struct
from typing import Any

MAGIC = b"\x7fELF"
# EI_CLASS: bytes of a word; EI_DATA: the order of bytes.
CLASSES = {1: 4, 2: 8}
ORDERS = {1: "<", 2: ">"}

FILE_FIELDS = (
    "e_type", "e_machine", "e_version", "e_entry", "e_phoff", "e_shoff", "e_flags", "e_ehsize", "e_phentsize",
    "e_phnum", "e_shentsize", "e_shnum", "e_shstrndx",
)  # fmt: skip
SECTION_FIELDS = (
    "sh_name", "sh_type", "sh_flags", "sh_addr", "sh_offset", "sh_size", "sh_link", "sh_info", "sh_addralign",
    "sh_entsize",
)  # fmt: skip
# The flags of segments stand where words of 8 bytes need no padding.
SEGMENT_FIELDS = {
    4: ("p_type", "p_offset", "p_vaddr", "p_paddr", "p_filesz", "p_memsz", "p_flags", "p_align"),
    8: ("p_type", "p_flags", "p_offset", "p_vaddr", "p_paddr", "p_filesz", "p_memsz", "p_align"),
}
# By bytes of a word: of the file behind e_ident, of a section and of a segment.
FORMATS = {4: ("16xHHIIIIIHHHHHH", "10I", "8I"), 8: ("16xHHIQQQIHHHHHH", "IIQQQQIIQQ", "IIQQQQQQ")}

FILE_TYPES = {2: "ET_EXEC"}
SEGMENT_TYPES = {1: "PT_LOAD", 2: "PT_DYNAMIC", 3: "PT_INTERP", 0x6474E550: "PT_GNU_EH_FRAME"}
SECTION_TYPES = {3: "SHT_STRTAB", 4: "SHT_RELA", 8: "SHT_NOBITS", 9: "SHT_REL"}
MACHINES = {
    3: "EM_386", 8: "EM_MIPS", 20: "EM_PPC", 21: "EM_PPC64", 22: "EM_S390", 40: "EM_ARM", 62: "EM_X86_64",
    164: "EM_QDSP6", 183: "EM_AARCH64", 243: "EM_RISCV", 258: "EM_LOONGARCH",
}  # fmt: skip
# By the field that holds it, what a number is called.
NAMES = {"e_type": FILE_TYPES, "e_machine": MACHINES, "sh_type": SECTION_TYPES, "p_type": SEGMENT_TYPES}

# A field by its name: a number, or the name of one, as ET_EXEC; of those without a name here their number as a text.
Header = dict[str, Any]


class Layout:
    """The places of the fields of a header."""

    def __init__(self, order: str, form: str, fields: tuple[str, ...]) -> None:
        self._struct = struct.Struct(order + form)
        self._fields = fields
        self.size = self._struct.size

    def read(self, data: memoryview, at: int) -> Header:
        """Returns the header at a place of the file. Raises ValueError if the file does not hold it."""
        if not 0 <= at <= len(data) - self.size:
            raise ValueError(f"it ends inside of a header of {self.size} bytes at {at:#x}")
        header: Header = dict(zip(self._fields, self._struct.unpack_from(data, at), strict=True))
        for field in NAMES.keys() & header.keys():
            header[field] = NAMES[field].get(header[field], str(header[field]))
        return header


class ElfHeaders:
    """Raises ValueError where the file's own header is damaged.

    file: that header; section, segment: layouts of the others; word_size: in bytes.
    """

    def __init__(self, data: memoryview) -> None:
        kind, order = bytes(data[4:5]), bytes(data[5:6])
        if bytes(data[:4]) != MAGIC:
            raise ValueError("Magic number does not match")
        if not kind or kind[0] not in CLASSES:
            raise ValueError(f"Invalid EI_CLASS {kind!r}")
        if not order or order[0] not in ORDERS:
            raise ValueError(f"Invalid EI_DATA {order!r}")
        self.word_size = CLASSES[kind[0]]
        self.little_endian = ORDERS[order[0]] == "<"
        forms = FORMATS[self.word_size]
        fields = FILE_FIELDS, SECTION_FIELDS, SEGMENT_FIELDS[self.word_size]
        layouts = [Layout(ORDERS[order[0]], form, of) for form, of in zip(forms, fields, strict=True)]
        own, self.section, self.segment = layouts
        self.file = own.read(data, 0)
