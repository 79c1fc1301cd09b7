"""Build ids: of a file, and as the viewers want them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Protocol

from traceferry.common.errors import FormatError

NT_GNU_BUILD_ID = 3
HEADER_BYTES = 64
# A debug id holds 16 bytes of a build id, perf records 20.
DEBUG_ID_DIGITS, RECORDED_DIGITS = 32, 40
# Types of program headers (PT_) and of sections (SHT_).
NOTES = PT_NOTE, SHT_NOTE = 4, 7
CODE = PT_LOAD, SHT_PROGBITS = 1, 1
# The largest page of a processor that Linux runs on.
PAGE = 1 << 16
# The smallest one, in which linkers place segments.
MAPPED_PAGE = 1 << 12
# By EI_CLASS e_phoff, e_shoff, e_phentsize, e_phnum, e_shentsize, e_shnum of the ELF header; then type, offset and size
# of a program header, and of a section header.
LAYOUTS = {
    b"\x01": ("28xII6xHHHH", "II8xI", "4xI8xII"),
    b"\x02": ("32xQQ6xHHHH", "I4xQ16xQ", "4xI16xQQ"),
}
# Type, offset, address and size in memory of a program header.
IN_MEMORY = {b"\x01": "III8xI", b"\x02": "I4xQQ16xQ"}


class Bytes(Protocol):
    """A memoryview, or what reads parts of a file elsewhere as they are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> memoryview | bytes: ...


def build_id_of(data: Bytes) -> str:
    """Returns the build id of an ELF file in hex; "" if it has none. Only headers and notes are read, which costs far
    less than a library that reads all of the file: most files of a recording are not those of this machine."""
    return next((found for part in _notes_of(data) if (found := build_id_in(part, _order(data)))), "")


def _notes_of(data: Bytes) -> Iterator[bytes]:
    """Yields segments and sections of notes."""
    # Notes of an undamaged file do not overlap: no more bytes of them are read than the file has. What `perf inject`
    # writes has notes in sections only.
    left = [len(data), len(data)]
    try:
        for table, begin, size in _parts(data, NOTES):
            size = min(size, left[table])
            left[table] -= size
            yield bytes(data[begin : begin + size])
    except FormatError:
        pass


def kernel_notes_of(data: Bytes) -> list[tuple[int, bytes]]:
    """Returns the notes of an ELF file that are Linux's own, with their types: a vdso tells the version of its kernel,
    and what else that was built as."""
    notes = (note for part in _notes_of(data) for note in _notes_in(part, _order(data)))
    return sorted({(kind, content) for name, kind, content in notes if name == b"Linux"})


def _parts(data: Bytes, types: tuple[int, int]) -> Iterator[tuple[int, int, int]]:
    """Yields (0, offset, size) of the segments of the first type, then (1, offset, size) of the sections of the second.
    Raises FormatError where headers are missing."""
    header = bytes(data[:HEADER_BYTES])
    if header[:4] != b"\x7fELF" or header[4:5] not in LAYOUTS:
        return
    in_header, *in_entries = LAYOUTS[header[4:5]]
    begins = _unpacked(data, in_header, header, 0)
    for table in (0, 1):
        begin, (step, n) = begins[table], begins[2 + 2 * table : 4 + 2 * table]
        entries = data[begin : begin + n * step]
        for nth in range(n):
            kind, offset, size = _unpacked(data, in_entries[table], entries, nth * step)
            if kind == types[table]:
                yield table, offset, size


def _order(data: Bytes) -> str:
    return "<" if bytes(data[5:6]) == b"\x01" else ">"


def _unpacked(file: Bytes, form: str, data: memoryview | bytes, at: int) -> tuple[int, ...]:
    try:
        return struct.unpack_from(_order(file) + form, data, at)
    except struct.error as error:
        raise FormatError(f"not a readable ELF file: {error}", at, "ELF") from None


def has_code_at(data: memoryview, begin: int, end: int) -> bool:
    """Whether the code of an ELF file, or what follows it for unwinding, lies exactly there in the file."""
    try:
        parts = list(_parts(data, CODE))
    except FormatError:
        return False
    return any(at == begin for _, at, _ in parts) and any(at + size == end for _, at, size in parts)


def covers_code(data: memoryview, begin: int, end: int) -> bool:
    """Whether what an ELF file loads includes these of its bytes, which the kernel maps in whole pages. The first
    segment of a program without a fixed address it maps as large as the whole program, whatever the file has there."""
    try:
        parts, image = list(_parts(data, CODE)), _image(data)
    except FormatError:
        return False
    if begin == image[0] and 0 <= end - begin - image[1] < PAGE:
        return True
    return any(
        kind == 0 and at // PAGE * PAGE <= begin and end <= -(-(at + size) // PAGE) * PAGE for kind, at, size in parts
    )


def _image(data: memoryview) -> tuple[int, int]:
    """Returns where in an ELF file the first segment begins that is loaded, in whole pages of 4 KB, and how many bytes
    all of them have in memory; (-1, 0) where none is loaded. Raises FormatError where headers are missing."""
    header = bytes(data[:HEADER_BYTES])
    if header[:4] != b"\x7fELF" or header[4:5] not in LAYOUTS:
        return -1, 0
    begin, _, step, n, *_ = _unpacked(data, LAYOUTS[header[4:5]][0], header, 0)
    entries = data[begin : begin + n * step]
    segments = [_unpacked(data, IN_MEMORY[header[4:5]], entries, nth * step) for nth in range(n)]
    loaded = [(offset, address, size) for kind, offset, address, size in segments if kind == CODE[0]]
    if not loaded:
        return -1, 0
    offset, address, _ = loaded[0]
    return offset & -MAPPED_PAGE, loaded[-1][1] + loaded[-1][2] - (address & -MAPPED_PAGE)


def build_id_in(notes: bytes, byte_order: str) -> str:
    """Returns the build id among some ELF notes, in hex; "" if there is none."""
    wanted = b"GNU", NT_GNU_BUILD_ID
    return next((content.hex() for *note, content in _notes_in(notes, byte_order) if tuple(note) == wanted), "")


def _notes_in(notes: bytes, byte_order: str) -> Iterator[tuple[bytes, int, bytes]]:
    """Yields (who wrote it, type, content) of ELF notes."""
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from(byte_order + "III", notes, at)
        begin = at + 12 + (name_size + 3 & ~3)
        yield notes[at + 12 : at + 12 + name_size].rstrip(b"\0"), kind, notes[begin : begin + size]
        at = begin + (size + 3 & ~3)


def debug_id_of(build_id: str, big_endian: bool = False) -> str:
    """Breakpad's form of a build id in hex: its first 16 bytes as a Microsoft GUID, whose numbers are in the byte order
    of the file that it is of, and an age of 0."""
    raw = bytes.fromhex(build_id)[:16].ljust(16, b"\0")
    return (raw if big_endian else _guid(raw)).hex().upper() + "0"


def build_id_of_debug_id(debug_id: str) -> str:
    """Returns the first 16 bytes of the build id, in lower-case hex; "" where the id is too short to be one, or all
    zeros."""
    digits = debug_id[:DEBUG_ID_DIGITS]
    return _guid(bytes.fromhex(digits)).hex() if len(digits) == DEBUG_ID_DIGITS and int(digits, 16) else ""


def _guid(raw: bytes) -> bytes:
    """Returns the bytes of a GUID of Microsoft, which has its first three numbers the other way round; or back."""
    return raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]


def is_same_build(one: str, other: str) -> bool:
    """Whether two build ids in hex are of one file. An id from a debug id has the first 16 bytes only; perf records at
    most 20, and rounds their number up to a multiple of 4; each is filled up with zeros."""
    if not (one and other):
        return False
    is_from_debug_id = DEBUG_ID_DIGITS in (len(one), len(other))
    if is_from_debug_id and debug_id_of(one) == debug_id_of(other):
        return True
    is_cut = min(len(one), len(other)) <= RECORDED_DIGITS
    return one == other or (is_cut and _recorded(one) == _recorded(other))


def _recorded(build_id: str) -> str:
    return build_id[:RECORDED_DIGITS].ljust(RECORDED_DIGITS, "0")
