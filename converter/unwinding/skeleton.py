"""Skeletons of ELF files: their mapped segments and what unwinding needs, without code and data."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import NamedTuple

from traceferry.common.errors import FormatError
from traceferry.model import Array
from traceferry.symbolication.binary import PN_XNUM, Binary
from traceferry.symbolication.debug_links import DEBUG_LINK
from traceferry.symbolication.plt import PLT_SECTIONS
from traceferry.unwinding._cfi import FrameSection
from traceferry.unwinding.modules import MACHINES, eh_frame_of, section_of, sframe_of
from traceferry.unwinding.pruned import pruned

# The System V ABI, "Object Files": by the size of a word, what follows e_ident, and a section header.
HEADERS = {4: "HHIIIIIHHHHHH", 8: "HHIQQQIHHHHHH"}
SECTIONS = {4: "IIIIIIIIII", 8: "IIQQQQIIQQ"}
IDENT_SIZE = 16
# Fields of HEADERS.
PHOFF, SHOFF, PHENTSIZE, PHNUM, SHENTSIZE, SHNUM, SHSTRNDX = 4, 5, 8, 9, 10, 11, 12
KEPT = ("PT_LOAD", "PT_INTERP")
# Of a .gnu_debuglink: the name of a file, its end, a CRC.
MAX_LINK = 4096
SHT_PROGBITS, SHT_STRTAB, SHT_NOTE, SHT_NOBITS = 1, 3, 7, 8
NT_GNU_BUILD_ID = 3


class Skeleton(Binary):
    """A Binary of what `skeleton_of` made: its segments say where bytes of the original file were."""

    def code(self, address: int, size: int) -> bytes:
        return b""


class _Section(NamedTuple):
    """A section to write. size: that of its content, or more."""

    name: str
    type: int
    address: int
    content: bytes
    size: int


def skeleton_of(binary: Binary, with_frames: bool = True, used: Array | None = None) -> bytes:
    """Returns an ELF file with the header, loaded segments, build id, .gnu_debuglink, call-frame information
    (with_frames) and PLT addresses of this one. Offsets of segments are those in the original file. The same file gives
    the same bytes. used: uint64, link addresses of which the frames are enough; None: all. Raises FormatError if one
    of these cannot be read."""
    order, word = "<" if binary.little_endian else ">", binary.word_size
    form = order + HEADERS[word]
    header = list(struct.unpack_from(form, binary.data, IDENT_SIZE))
    n_header = IDENT_SIZE + struct.calcsize(form)
    places = [header[PHOFF] + nth * header[PHENTSIZE] for nth, _ in enumerate(binary.segments)]
    entries = zip(places, binary.segments, strict=True)
    kept = [bytes(binary.data[at : at + header[PHENTSIZE]]) for at, segment in entries if segment.type in KEPT]
    if len(kept) >= PN_XNUM:
        raise FormatError(f"{binary.name}: {len(kept)} loaded segments")
    sections = [_Section("", 0, 0, b"", 0), *_sections(binary, order, with_frames, used)]
    names = b"".join(section.name.encode() + b"\0" for section in sections) + b".shstrtab\0"
    sections.append(_Section(".shstrtab", SHT_STRTAB, 0, names, len(names)))
    data = bytearray(n_header) + b"".join(kept)
    table, name_at = b"", 0
    for section in sections:
        data += bytes(-len(data) % 8)
        place = (section.address, len(data), section.size)
        try:
            table += struct.pack(order + SECTIONS[word], name_at, section.type, 0, *place, 0, 0, 1, 0)
        except struct.error:
            raise FormatError(f"{binary.name}: {section.name} at {section.address:#x} is outside of memory") from None
        data += section.content
        name_at += len(section.name) + 1
    header[PHOFF], header[PHNUM] = n_header, len(kept)
    header[SHOFF], header[SHENTSIZE] = len(data), struct.calcsize(order + SECTIONS[word])
    header[SHNUM], header[SHSTRNDX] = len(sections), len(sections) - 1
    data[:IDENT_SIZE] = binary.data[:IDENT_SIZE]
    struct.pack_into(form, data, IDENT_SIZE, *header)
    return bytes(data + table)


def _sections(binary: Binary, order: str, with_frames: bool, used: Array | None) -> list[_Section]:
    """Returns the sections of a skeleton, without those that the file does not have."""
    sections = []
    if binary.build_id:
        build_id = bytes.fromhex(binary.build_id)
        note = struct.pack(order + "III", 4, len(build_id), NT_GNU_BUILD_ID) + b"GNU\0" + build_id
        sections.append(_Section(".note.gnu.build-id", SHT_NOTE, 0, note, len(note)))
    with suppress(FormatError):
        link = section_of(binary, DEBUG_LINK)
        if link is not None and len(link[0]) <= MAX_LINK:
            sections.append(_Section(DEBUG_LINK, SHT_PROGBITS, 0, bytes(link[0]), len(link[0])))
    frames = {".eh_frame": eh_frame_of(binary), ".debug_frame": section_of(binary, ".debug_frame")}
    machine = MACHINES.get(binary.machine)
    if not any(frames.values()) and machine is not None and (made := sframe_of(binary, machine)):
        frames[".debug_frame"] = made.data, made.address
    for name, found in frames.items():
        if found is not None and with_frames:
            content = _frames_of(binary, name, *found, used)
            sections.append(_Section(name, SHT_PROGBITS, found[1], content, len(content)))
    for name in PLT_SECTIONS:
        plt = binary.section_named(name)
        if plt is not None:
            sections.append(_Section(name, SHT_NOBITS, plt.address, b"", plt.size))
    return sections


def _frames_of(binary: Binary, name: str, data: memoryview, address: int, used: Array | None) -> bytes:
    machine = MACHINES.get(binary.machine)
    if machine is None or used is None:
        return bytes(data)
    big, is_debug = not binary.little_endian, name == ".debug_frame"
    section = FrameSection(data, address, is_debug, big, machine.word_size, machine.n_registers)
    return pruned(section, data, big, used)
