"""The headers of ELF files, against what pyelftools reads of them."""

import io
import struct
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.elf_headers import NAMES, SECTION_FIELDS, SEGMENT_FIELDS, ElfHeaders, Header


def small(bits: int, order: str) -> bytes:
    """A file of each class and byte order: one segment and one section, whose fields are their places."""
    word = bits // 8
    form = "HHIQQQIHHHHHH" if word == 8 else "HHIIIIIHHHHHH"
    own = 16 + struct.calcsize("<" + form)
    sizes = (56, 64) if word == 8 else (32, 40)
    ident = b"\x7fELF" + bytes((word // 4, 1 if order == "<" else 2, 1)) + bytes(9)
    header = struct.pack(order + form, 2, 62, 1, 0x1000, own, own + sizes[0], 0, own, sizes[0], 1, sizes[1], 1, 0)
    return ident + header + bytes(range(sizes[0])) + bytes(range(sizes[1]))


def said(header: Header, fields: tuple[str, ...]) -> dict[str, object]:
    """The fields, without those that have a name: pyelftools has names of more."""
    return {field: header[field] for field in fields if field not in NAMES}


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_field_is_where_pyelftools_has_it(bits: int, order: str) -> None:
    data = small(bits, order)
    theirs, ours = ELFFile(io.BytesIO(data)), ElfHeaders(memoryview(data))
    assert (ours.little_endian, ours.word_size) == (order == "<", bits // 8)
    for layout, at, fields, other in (
        (ours.section, ours.file["e_shoff"], SECTION_FIELDS, theirs.structs.Elf_Shdr),
        (ours.segment, ours.file["e_phoff"], SEGMENT_FIELDS[bits // 8], theirs.structs.Elf_Phdr),
    ):
        stream = io.BytesIO(data)
        stream.seek(at)
        assert said(layout.read(memoryview(data), at), fields) == said(other.parse_stream(stream), fields)
    assert (ours.file["e_type"], ours.file["e_machine"], ours.file["e_entry"]) == ("ET_EXEC", "EM_X86_64", 0x1000)


def test_sections_of_a_program_have_the_names_and_places_that_pyelftools_gives_them() -> None:
    data = Path(sys.executable).resolve().read_bytes()
    theirs = ELFFile(io.BytesIO(data))
    binary = Binary(Source("python", memoryview(data)))
    found = [(one.name, one.flags, one.address, one.offset, one.size, one.link) for one in binary.sections]
    fields = ("sh_flags", "sh_addr", "sh_offset", "sh_size", "sh_link")
    assert found == [(one.name, *(one.header[field] for field in fields)) for one in theirs.iter_sections()]
    assert [(s.address, s.offset, s.size) for s in binary.segments if s.type == "PT_LOAD"] == [
        (s["p_vaddr"], s["p_offset"], s["p_filesz"]) for s in theirs.iter_segments("PT_LOAD")
    ]


def test_a_number_without_a_name_is_its_text() -> None:
    data = bytearray(small(64, "<"))
    data[18:20] = (0xFFF0).to_bytes(2, "little")
    assert ElfHeaders(memoryview(bytes(data))).file["e_machine"] == str(0xFFF0)


@pytest.mark.parametrize("kept", [3, 4, 5, 6, 63, 64, 119])
def test_a_file_that_ends_in_its_headers_cannot_be_read(kept: int) -> None:
    with pytest.raises(FormatError, match="not a readable ELF file"):
        Binary(Source("cut", memoryview(small(64, "<")[:kept])))
