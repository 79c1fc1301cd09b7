"""Modules: files (or pieces of JIT code) that have code, their call-frame information, and the rows made of it."""

from __future__ import annotations

import struct
from pathlib import PurePath
from typing import NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.common.patterns import compiled_later
from traceferry.model import Array, distinct
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.plt import PLT_SECTIONS
from traceferry.unwinding._cfi import FrameSection, RuleSets
from traceferry.unwinding.machine import AARCH64, I386, X86_64, Machine
from traceferry.unwinding.sframe import debug_frame_of

MACHINES = {"EM_X86_64": X86_64, "EM_386": I386, "EM_AARCH64": AARCH64}
PAGE = 4096
# The C library of Alpine and of programs that musl-gcc builds, under the names that distributions give it. It has no
# call-frame information of its own code.
MUSL = compiled_later(r"ld-musl-\S+\.so\.1|libc\.musl-\S+\.so\.1|libc\.so")
# Call-frame information of JIT code is given this address: code at 0 would be what the linker discarded.
JIT_ADDRESS = 1 << 32


class Section(NamedTuple):
    """A section of call-frame information. data: its bytes; address: of the first one, as the linker wrote it;
    is_debug: `.debug_frame`, not `.eh_frame`; n_bad: functions that are missing in it, since what it was made of has
    them damaged."""

    data: memoryview
    address: int
    is_debug: bool = False
    n_bad: int = 0


class Rows(NamedTuple):
    """A table of rule sets by address. pc: uint64, rising, link-time addresses; rule: int32, into the rule sets, -1
    where there is none. A row holds from its address to the next row's."""

    pc: Array
    rule: Array


class Problems(NamedTuple):
    """The damage of a section. n_bad: records that cannot be read; is_cut: a record's length was wrong, and the rest of
    the section is not read."""

    n_bad: int
    is_cut: bool


class Module(NamedTuple):
    """Code with its unwind information. sections: the first that knows an address answers; segments: (offset in the
    file, link address, size in the file) of what is loaded executable; entry_point: link address, 0 for none; plt:
    [start, end) link addresses of PLT sections."""

    name: str
    machine: Machine
    big: bool
    sections: tuple[Section, ...]
    segments: tuple[tuple[int, int, int], ...] = ()
    entry_point: int = 0
    plt: tuple[tuple[int, int], ...] = ()

    @property
    def is_musl(self) -> bool:
        return MUSL.fullmatch(PurePath(self.name).name) is not None

    def bias(self, start: int, file_offset: int) -> int | None:
        """Returns how much higher addresses are than link addresses, where the byte at file_offset is mapped at start;
        None if no executable segment has that byte's page."""
        for offset, address, size in self.segments:
            if offset // PAGE * PAGE <= file_offset < -(-(offset + size) // PAGE) * PAGE:
                return start - (file_offset - offset + address)
        return None

    def frames_of(self, section: Section) -> FrameSection:
        machine = self.machine
        return FrameSection(
            section.data, section.address, section.is_debug, self.big, machine.word_size, machine.n_registers
        )

    def rows(self, rules: RuleSets) -> tuple[Rows, list[Problems]]:
        """Returns rows by link address, and what was damaged in each section. Their rule sets go to `rules`. Any bytes
        give rows."""
        parts: list[Rows] = []
        problems: list[Problems] = []
        for section in self.sections:
            frames = self.frames_of(section)
            pc, rule, n_bad = frames.rows(rules)
            parts.append(Rows(pc, rule))
            problems.append(Problems(n_bad + section.n_bad, frames.is_cut))
        return merged(parts), problems


def merged(parts: list[Rows]) -> Rows:
    """Returns one table of several: where an earlier part has no rule, a later one answers."""
    if len(parts) == 1:
        return parts[0]
    pc = distinct(np.concatenate([np.zeros(0, np.uint64), *(part.pc for part in parts)]))
    rule = np.full(len(pc), -1, np.int32)
    for part in reversed(parts):
        # Before its first row a part has no rule.
        found = np.append(np.int32(-1), part.rule)[np.searchsorted(part.pc, pc, side="right")]
        rule = np.where(found >= 0, found, rule)
    changes = np.diff(rule, prepend=-1) != 0
    return Rows(pc[changes], rule[changes])


def open_module(binary: Binary, debug: Binary | None = None) -> Module:
    """Returns the module of an ELF file. debug: the file with its debug information, if that is apart. Raises
    FormatError."""
    machine = MACHINES.get(binary.machine)
    if machine is None:
        raise FormatError(f"{binary.name}: stacks in code for {binary.machine} cannot be unwound")
    sections = [Section(*found) for found in (eh_frame_of(binary),) if found]
    sections += [
        Section(*found, is_debug=True)
        for file in (binary, debug)
        if file is not None and (found := section_of(file, ".debug_frame"))
    ]
    if not sections and (made := sframe_of(binary, machine)):
        sections.append(made)
    places = (binary.section_named(name) for name in PLT_SECTIONS)
    plt = tuple((place.address, place.address + place.size) for place in places if place is not None)
    loaded = (s for s in binary.segments if s.type == "PT_LOAD" and s.flags & 1)
    executable = tuple((s.offset, s.address, s.size) for s in loaded)
    big = not binary.little_endian
    return Module(binary.name, machine, big, tuple(sections), executable, binary.entry_point, plt)


def jit_module(name: str, eh_frame: memoryview, machine: Machine, big: bool) -> Module:
    """Returns a module of a JIT compiler's code with the call-frame information of its jitdump, which counts as placed
    at JIT_ADDRESS."""
    return Module(name, machine, big, (Section(eh_frame, JIT_ADDRESS),))


def section_of(binary: Binary, name: str) -> tuple[memoryview, int] | None:
    """Returns a section's bytes and address, None if it is missing or empty. Raises FormatError if it is damaged."""
    section = binary.section_named(name)
    content = binary.content(section) if section is not None else memoryview(b"")
    return (content, section.address) if section is not None and len(content) else None


def sframe_of(binary: Binary, machine: Machine) -> Section | None:
    """Returns what `.sframe` tells, as `.debug_frame`; None if there is none. It is less than the other sections have,
    of the same addresses, and used where they are missing. Raises FormatError."""
    found = section_of(binary, ".sframe")
    if found is None:
        return None
    data, n_bad = debug_frame_of(*found, machine, not binary.little_endian)
    return Section(memoryview(data), 0, is_debug=True, n_bad=n_bad)


def eh_frame_of(binary: Binary) -> tuple[memoryview, int] | None:
    """Returns the bytes and the address of `.eh_frame`: of its section, else, in a file without section headers, from
    where `.eh_frame_hdr` points to the end of the segment. None if there is neither."""
    found = section_of(binary, ".eh_frame")
    if found is not None:
        return found
    header = next((segment for segment in binary.segments if segment.type == "PT_GNU_EH_FRAME"), None)
    # u8 version 1, u8 encoding of the pointer: 0x1b is relative to its place, 4 bytes, signed.
    begin = bytes(binary.data[header.offset : header.offset + 8]) if header is not None else b""
    if header is None or begin[:2] != b"\x01\x1b" or len(begin) < 8:
        return None
    (distance,) = struct.unpack_from("<i" if binary.little_endian else ">i", begin, 4)
    frame = header.address + 4 + distance
    for segment in binary.segments:
        if segment.type == "PT_LOAD" and segment.address <= frame < segment.address + segment.size:
            offset = segment.offset + frame - segment.address
            return binary.data[offset : segment.offset + segment.size], frame
    return None
