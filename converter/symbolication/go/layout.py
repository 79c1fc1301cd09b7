"""Layout: the tables of functions in programs of Go's own compiler, which stay in a program that is stripped.

They begin with a header, whose number says the layout: since Go 1.2, 1.16, 1.18 or 1.20. From 1.16 on the header has
offsets of parts: names, files of packages, names of files, tables by address, functions. Before, all offsets are of the
whole. A function says where its name and its tables are: values (file, line, inlined call) by address, as differences.

The calls that are inlined into a function are an array of their own, in another section. Up to 1.17 a function has
its address; since 1.18 an offset, from an address that is in the description of the module. That is found by what must
be in it, since what stands between differs with each release: see `Module`.

Sources: Go's src/internal/abi/symtab.go, src/runtime/symtab.go, symtabinl.go and runtime2.go of releases 1.12 to 1.27,
src/debug/gosym/pclntab.go; "Go 1.2 Runtime Symbol Information" (golang.org/s/go12symtab).
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from traceferry.common.errors import FormatError
from traceferry.symbolication.binary import Binary

# The last byte of the magic number 0xFFFFFFxx → the first release with this layout.
MAGICS = {0xFB: 2, 0xFA: 16, 0xF0: 18, 0xF1: 20}
SECTIONS = (".gopclntab", ".data.rel.ro.gopclntab")
# Names of sections that only programs of Go have begin so: where linkers put the tables into sections of other names.
OF_GO = (".go.", ".note.go.")
HEADER_SIZE = 8
# Of the tables by address: those of files and lines have fields of their own, this one is in an array.
INLINED_INDEX = 2
# Which of the other data of a function are the calls that are inlined into it.
INLINED_DATA = {2: 4, 16: 3, 18: 3, 20: 3}
# Bytes of an entry of these: parent, kind, file, line, name, address; since 1.20 kind, name, address, first line.
INLINED_SIZE = {2: 20, 16: 20, 18: 20, 20: 16}
# Words of a module's description: where its parts begin, each with two more words: how many there are.
MODULE_PARTS = {1: "names_at", 4: "units_at", 7: "files_at", 10: "pcs_at", 13: "functions_at"}
MIN_PC, TEXT, REST, MODULE_WORDS = 20, 22, 24, 64
MOST_MODULES = 64


class Header(NamedTuple):
    """since: the release, 1.since; quantum: bytes of the smallest instruction; word: bytes of an address; n_functions;
    text: where the code begins, 0 where the header does not say. Where parts begin in the tables, 0 where there
    are no parts; index_at: where functions are by address."""

    since: int
    quantum: int
    word: int
    n_functions: int
    text: int
    names_at: int
    units_at: int
    files_at: int
    pcs_at: int
    functions_at: int
    index_at: int

    @property
    def index_entry(self) -> int:
        """Bytes of an entry of the index: an address and an offset."""
        return 8 if self.since >= 18 else 2 * self.word

    @property
    def inlined_size(self) -> int:
        return INLINED_SIZE[self.since]


class Tables(NamedTuple):
    """address: as linked; data: from there on, to the end of the section or the segment."""

    address: int
    data: bytes
    header: Header


def find_tables(binary: Binary) -> Tables | None:
    """Returns the tables, None where the file has none. Raises FormatError where a section with their name has
    others."""
    for name in SECTIONS:
        section = binary.section(name)
        if section is not None and len(section[1]):
            address, data = section
            data = memoryview(_relocated(binary, address, bytes(data)))
            return Tables(address, bytes(data), header_of(data, binary.little_endian))
    if binary.sections and not any(section.name.startswith(OF_GO) for section in binary.sections):
        return None
    for address, data in _candidates(binary):
        try:
            header_of(data, binary.little_endian)
        except FormatError:
            continue
        relocated = _relocated(binary, address, bytes(data))
        return Tables(address, relocated, header_of(memoryview(relocated), binary.little_endian))
    return None


def _candidates(binary: Binary) -> Iterator[tuple[int, memoryview]]:
    """Yields (address, bytes to the end of the segment) where a header may be."""
    magic = rb"[\xf0\xf1\xfa\xfb]\xff\xff\xff" if binary.little_endian else rb"\xff\xff\xff[\xf0\xf1\xfa\xfb]"
    wanted = re.compile(magic + rb"\0\0[\1\2\4][\4\x08]")
    for segment in binary.segments:
        if segment.type == "PT_LOAD":
            data = binary.data[segment.offset : segment.offset + segment.size]
            for found in wanted.finditer(data):
                yield segment.address + found.start(), data[found.start() :]


def _relocated(binary: Binary, address: int, data: bytes) -> bytes:
    """Returns the bytes with the addresses that the loader writes into them."""
    addends = binary.relative_relocations(address, address + len(data))
    if not addends:
        return data
    written, word = bytearray(data), binary.word_size
    order = "little" if binary.little_endian else "big"
    for place, addend in addends.items():
        at = place - address
        written[at : at + word] = (addend % (1 << 8 * word)).to_bytes(word, order)  # type: ignore[arg-type]
    return bytes(written[: len(data)])


def header_of(data: memoryview, little_endian: bool) -> Header:
    """Raises FormatError if there is none, or its parts lie outside."""
    order = "<" if little_endian else ">"
    if len(data) < HEADER_SIZE:
        raise damaged("it ends inside its header")
    magic, zeros, quantum, word = struct.unpack_from(f"{order}IHBB", data)
    since = MAGICS.get(magic & 0xFF) if magic >> 8 == 0xFFFFFF else None
    if since is None or zeros or quantum not in (1, 2, 4) or word not in (4, 8):
        raise damaged("it has another layout than those of Go 1.2 to 1.27")
    n_words = {2: 1, 16: 7}.get(since, 8)
    if len(data) < HEADER_SIZE + n_words * word:
        raise damaged("it ends inside its header")
    words = struct.unpack_from(f"{order}{n_words}{'Q' if word == 8 else 'I'}", data, HEADER_SIZE)
    if since == 2:
        index_at, parts, text = HEADER_SIZE + word, (0, 0, 0, 0, 0), 0
    else:
        index_at, parts, text = words[-1], words[-5:], words[2] if since >= 18 else 0
    header = Header(since, quantum, word, words[0], text, *parts, index_at)
    if max(parts) > len(data) or (header.n_functions + 1) * header.index_entry > len(data) - index_at:
        raise damaged(f"it has no room for {header.n_functions} functions")
    return header


# ---------------------------------------------------------------- what is said of a module


class Module(NamedTuple):
    """text: where its code begins; words: in some of which addresses are that are wanted, too."""

    text: int
    words: tuple[int, ...]


def find_module(binary: Binary, tables: Tables, first: int) -> Module | None:
    """Returns what the file says of the module with these tables, of Go 1.18 or later: a pointer to their header, which
    pointers to their parts follow. first: of the first function, from the beginning of the code."""
    header, size = tables.header, MODULE_WORDS * binary.word_size
    for address in _pointers_to(binary, tables.address):
        data = binary.code(address - binary.base, size)
        words = _words(binary, _relocated(binary, address, data.ljust(size, b"\0")))
        parts = (words[at] - tables.address == getattr(header, part) for at, part in MODULE_PARTS.items())
        if all(parts) and words[MIN_PC] == words[TEXT] + first:
            return Module(words[TEXT], words[REST:])
    return None


def _pointers_to(binary: Binary, address: int) -> Iterator[int]:
    """Yields where in the loaded file the address is, or is written by the loader."""
    yield from binary.relocations_to(address)
    word = binary.word_size
    wanted = address.to_bytes(word, "little" if binary.little_endian else "big")
    content = _searchable(binary.data)
    n_found = 0
    for segment in binary.segments:
        end = segment.offset + segment.size
        at = content.find(wanted, segment.offset, end) if segment.type == "PT_LOAD" else -1
        while at >= 0 and n_found < MOST_MODULES:
            place = segment.address + at - segment.offset
            if place % word == 0:
                n_found += 1
                yield place
            at = content.find(wanted, at + 1, end)


def _searchable(data: memoryview) -> bytes | mmap.mmap:
    """Returns what holds these bytes and no others, in which others can be looked for: a copy, if nothing does."""
    if isinstance(data.obj, (bytes, mmap.mmap)) and len(data.obj) == len(data):
        return data.obj
    return bytes(data)


def _words(binary: Binary, data: bytes) -> tuple[int, ...]:
    word = binary.word_size
    order = "<" if binary.little_endian else ">"
    return struct.unpack(f"{order}{len(data) // word}{'Q' if word == 8 else 'I'}", data)


def damaged(reason: str) -> FormatError:
    return FormatError(f"{SECTIONS[0]}: {reason}", 0, "ELF")
