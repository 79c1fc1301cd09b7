"""Modules: files (or pieces of JIT code) that have code, and the call-frame information for it."""

from __future__ import annotations

import io
from dataclasses import dataclass, field

import numpy as np
from elftools.elf.elffile import ELFFile

from traceferry.errors import FormatError
from traceferry.symbols.binary import ELF_DAMAGE
from traceferry.unwind.cfi import Problems, Section, rows_of
from traceferry.unwind.machine import AARCH64, I386, X86_64, Machine
from traceferry.unwind.rows import Rows, RuleSets, merged

PLT_SECTIONS = (".plt", ".plt.sec", ".plt.got", ".iplt")
MACHINES = {"EM_X86_64": X86_64, "EM_386": I386, "EM_AARCH64": AARCH64}
PAGE = 4096
# JIT code is given this address in its call-frame information: 0 would be that of code which the linker discarded.
JIT_ADDRESS = 1 << 32


@dataclass(frozen=True)
class Module:
    """sections: call-frame information, the first that knows an address answers; segments: (offset in the file, link
    address, size in the file) of what is loaded executable; entry_point: link address, 0 for none; plt: [start, end)
    link addresses of PLT sections; has_cfi: whether there is any call-frame information."""

    name: str
    machine: Machine
    big: bool
    sections: tuple[Section, ...]
    segments: tuple[tuple[int, int, int], ...] = ()
    entry_point: int = 0
    plt: tuple[tuple[int, int], ...] = ()
    is_jit: bool = field(default=False)

    def bias(self, start: int, file_offset: int) -> int | None:
        """What addresses have more than link addresses, where the byte at file_offset is mapped at start; None if no
        executable segment has that byte's page."""
        for offset, address, size in self.segments:
            if offset // PAGE * PAGE <= file_offset < -(-(offset + size) // PAGE) * PAGE:
                return start - (file_offset - offset + address)
        return None

    def rows(self, rules: RuleSets) -> tuple[Rows, list[Problems]]:
        """Rows by link address, and what was damaged."""
        parts, problems = [], []
        for section in self.sections:
            rows, problem = rows_of(section, self.machine, self.big, rules)
            parts.append(rows)
            problems.append(problem)
        return merged(parts) if parts else Rows(np.zeros(0, np.uint64), np.zeros(0, np.int32)), problems


def open_module(name: str, data: memoryview, debug: memoryview | None = None) -> Module:
    """An ELF file; debug: the file with its debug information, if that is apart. Raises FormatError."""
    try:
        elf = ELFFile(_View(data))
        machine = MACHINES.get(elf["e_machine"])
        if machine is None:
            raise FormatError(f"{name}: stacks in code for {elf['e_machine']} cannot be unwound")
        sections = [Section(*found) for found in (_eh_frame(elf, data),) if found]
        sections += [
            Section(*found, is_debug=True)
            for file, bytes_ in ((elf, data), (ELFFile(_View(debug)), debug) if debug else (None, data))
            if file is not None and (found := _section(file, bytes_, ".debug_frame"))
        ]
        plt = [
            (int(section["sh_addr"]), int(section["sh_addr"]) + int(section["sh_size"]))
            for section in (elf.get_section_by_name(plt_name) for plt_name in PLT_SECTIONS)
            if section is not None
        ]
        segments = tuple(
            (int(segment["p_offset"]), int(segment["p_vaddr"]), int(segment["p_filesz"]))
            for segment in elf.iter_segments()
            if segment["p_type"] == "PT_LOAD" and segment["p_flags"] & 1
        )
        return Module(
            name, machine, not elf.little_endian, tuple(sections), segments, int(elf["e_entry"]), tuple(plt)
        )
    except ELF_DAMAGE as error:
        raise FormatError(f"{name}: the ELF file is damaged: {error}") from None


def jit_module(name: str, blob: memoryview, eh_frame_size: int, code_size: int, machine: Machine, big: bool) -> Module:
    """Code of a JIT compiler with the call-frame information of its jitdump: `.eh_frame` counts as placed behind the
    code, at a multiple of 8. Link addresses begin at JIT_ADDRESS."""
    section = Section(blob[:eh_frame_size], JIT_ADDRESS + -(-code_size // 8) * 8)
    return Module(name, machine, big, (section,), is_jit=True)


class _View(io.RawIOBase):
    """A file over a memoryview, which is not copied."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = max(0, offset + (0, self._at, len(self._data))[whence])
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        end = len(self._data) if size is None or size < 0 else self._at + size
        piece = bytes(self._data[self._at : end])
        self._at += len(piece)
        return piece


def _section(elf: ELFFile, data: memoryview, name: str) -> tuple[memoryview, int] | None:
    section = elf.get_section_by_name(name)
    if section is None or section["sh_type"] == "SHT_NOBITS" or not section["sh_size"]:
        return None
    if section.compressed:
        return memoryview(section.data()), int(section["sh_addr"])
    return data[section["sh_offset"] : section["sh_offset"] + section["sh_size"]], int(section["sh_addr"])


def _eh_frame(elf: ELFFile, data: memoryview) -> tuple[memoryview, int] | None:
    """By its section, else, in a file without section headers, from where `.eh_frame_hdr` points to the end of the
    segment."""
    found = _section(elf, data, ".eh_frame")
    if found is not None:
        return found
    header = next((s for s in elf.iter_segments() if s["p_type"] == "PT_GNU_EH_FRAME"), None)
    if header is None:
        return None
    at, address = int(header["p_offset"]), int(header["p_vaddr"])
    # u8 version 1, u8 encoding of the pointer: 0x1b is relative to its place, 4 bytes, signed.
    if bytes(data[at : at + 2]) != b"\x01\x1b":
        return None
    order = "little" if elf.little_endian else "big"
    frame = address + 4 + int.from_bytes(data[at + 4 : at + 8], order, signed=True)  # type: ignore[arg-type]
    for segment in elf.iter_segments():
        begin, size = int(segment["p_vaddr"]), int(segment["p_filesz"])
        if segment["p_type"] == "PT_LOAD" and begin <= frame < begin + size:
            offset = int(segment["p_offset"]) + frame - begin
            return data[offset : int(segment["p_offset"]) + size], frame
    return None
