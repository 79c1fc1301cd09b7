"""The stubs of an ELF file's procedure linkage table: which function each of them jumps to.

A stub jumps through a slot of the global offset table, and a relocation fills that slot: the stub has the name of the
relocation's symbol. This reads the instructions instead of counting entries, because linkers (bfd, gold, lld, mold) and
options (-z now, -z ibtplt, -z force-bti) differ in headers, sizes and order. Sources: the psABIs of x86-64, i386 and
AArch64; binutils, bfd/elfxx-x86.c (_bfd_x86_elf_get_synthetic_symtab); lld, ELF/Arch.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from traceferry.model import Array, index_of
from traceferry.symbolication.binary import SHF_ALLOC, Binary, SectionHeader

PLT_SECTIONS = (".plt", ".plt.sec", ".plt.got", ".iplt")


class _Machine(NamedTuple):
    """jump_slot, glob_dat, irelative: R_<machine>_*. most_bytes: of a stub."""

    jump_slot: int
    glob_dat: int
    irelative: int
    most_bytes: int


MACHINES = {
    "EM_X86_64": _Machine(7, 6, 37, 32),
    "EM_386": _Machine(7, 6, 42, 32),
    "EM_AARCH64": _Machine(1026, 1025, 1032, 24),
}
# The bytes in front of an operand of 4 bytes: `jmp *slot(%rip)`, or on i386 `jmp *slot`; `jmp *slot(%ebx)`;
# `mov slot(%rip), %r11` (lld -z retpolineplt); `push number`, with which a lazy stub tells the dynamic linker which
# relocation it wants.
JUMP, JUMP_BY_EBX, MOVE, PUSH = b"\xff\x25", b"\xff\xa3", b"\x4c\x8b\x1d", b"\x68"
# `adrp x16, page`, `ldr x17, [x16, #offset]` and `bti c`: (bits that are the same in all, their values).
ADRP_X16, LDR_X17, BTI_C = (0x9F00001F, 0x90000010), (0xFFC003FF, 0xF9400211), (0xFFFFFFFF, 0xD503245F)


class Relocations(NamedTuple):
    """The relocations that fill slots, by the slot's address: slot, resolver: uint64 (resolver: that of an indirect
    function, 0 for others); table: int8, the number of the symbol's table among those given; symbol: int64, its number
    there."""

    slot: Array
    resolver: Array
    table: Array
    symbol: Array


class Stubs(NamedTuple):
    """Stubs by address. start, end: uint64; the others say what a stub jumps to, as in `Relocations`."""

    start: Array
    end: Array
    resolver: Array
    table: Array
    symbol: Array


def stubs_of(binary: Binary, tables: tuple[str, ...]) -> Stubs:
    """Returns the stubs whose function is known, in the sections of PLT_SECTIONS; none for a processor that is not in
    MACHINES. tables: names of the symbol tables that relocations can refer to. Damaged parts have no stubs."""
    machine, sections = MACHINES.get(binary.machine), plt_sections(binary)
    if machine is None or not sections:
        return _no_stubs()
    relocations, lazy = _relocations(binary, machine, tables)
    parts = [_no_stubs()]
    for section in sections:
        code = np.frombuffer(binary.data[section.offset : section.offset + section.size], np.uint8)
        begin, row = _jumps(binary, section, code, relocations, lazy)
        begin, first = np.unique(begin, return_index=True)
        row = row[first]
        start = begin.astype(np.uint64) + np.uint64(section.address)
        end = np.minimum(np.append(begin[1:], len(code)), begin + machine.most_bytes).astype(np.uint64)
        parts.append(Stubs(start, end + np.uint64(section.address), *(column[row] for column in relocations[1:])))
    stubs = Stubs._make(map(np.concatenate, zip(*parts, strict=True)))
    order = np.argsort(stubs.start, kind="stable")
    return Stubs._make(column[order] for column in stubs)


def plt_sections(binary: Binary) -> list[SectionHeader]:
    """Returns the sections that hold stubs: outside of these is none."""
    return [one for one in binary.sections if one.name in PLT_SECTIONS and one.type != "SHT_NOBITS"]


def may_be_stubs(binary: Binary, addresses: Array) -> bool:
    """Returns whether one of the addresses (uint64) is in a section that holds stubs."""
    sections = ((np.uint64(one.address), np.uint64(one.size)) for one in plt_sections(binary))
    return any(bool(np.any(addresses - begin < size)) for begin, size in sections)


def _no_stubs() -> Stubs:
    nothing = np.zeros(0, np.uint64)
    return Stubs(nothing, nothing, nothing, np.zeros(0, np.int8), np.zeros(0, np.int64))


# ---------------------------------------------------------------- relocations


def _relocations(binary: Binary, machine: _Machine, tables: tuple[str, ...]) -> tuple[Relocations, Array]:
    """Returns those that fill slots, by slot; and for the relocations of .rela.plt or .rel.plt, in their order, the row
    of each."""
    slots, resolvers, kinds, symbols, in_plt = [], [], [], [], []
    for section in binary.sections:
        if section.type not in ("SHT_RELA", "SHT_REL") or not section.flags & SHF_ALLOC:
            continue
        entries = _entries(binary, section)
        shift, mask = (32, 0xFFFF_FFFF) if binary.word_size == 8 else (8, 0xFF)
        kind = entries["info"] & np.uint64(mask)
        is_filled = np.isin(kind, (machine.jump_slot, machine.glob_dat, machine.irelative))
        entries, kind = entries[is_filled], kind[is_filled]
        is_indirect = kind == machine.irelative
        table = next((nth for nth, name in enumerate(tables) if _name_of(binary, section.link) == name), -1)
        slots.append(entries["offset"])
        resolvers.append(np.where(is_indirect, _addends(binary, entries, section.type == "SHT_RELA"), np.uint64(0)))
        kinds.append(np.where(is_indirect, -1, table).astype(np.int8))
        symbols.append((entries["info"] >> np.uint64(shift)).astype(np.int64))
        in_plt.append(np.full(len(entries), section.name in (".rela.plt", ".rel.plt")))
    if not slots:
        return Relocations(*_no_stubs()[1:]), np.zeros(0, np.int64)
    columns = [np.concatenate(parts) for parts in (slots, resolvers, kinds, symbols)]
    order = np.argsort(columns[0], kind="stable")
    row = np.empty(len(order), np.int64)
    row[order] = np.arange(len(order))
    return Relocations._make(column[order] for column in columns), row[np.concatenate(in_plt)]


def _entries(binary: Binary, section: SectionHeader) -> Array:
    """Returns Elf*_Rel or Elf*_Rela: offset, info, addend, each a uint64."""
    word = ("<" if binary.little_endian else ">") + f"u{binary.word_size}"
    names = ("offset", "info", "addend")[: 3 if section.type == "SHT_RELA" else 2]
    entry = np.dtype([(name, word) for name in names])
    data = binary.data[section.offset : section.offset + section.size]
    found = np.frombuffer(data, entry, len(data) // entry.itemsize)
    return found.astype([(name, np.uint64) for name in names])


def _addends(binary: Binary, entries: Array, is_rela: bool) -> Array:
    """Returns addends; where the entries have none, they are in the slots."""
    if is_rela:
        addends: Array = entries["addend"]
        return addends
    words = [binary.code(slot - binary.base, binary.word_size) for slot in entries["offset"].tolist()]
    order: Literal["little", "big"] = "little" if binary.little_endian else "big"
    return np.array([int.from_bytes(word, order) for word in words], np.uint64)


def _name_of(binary: Binary, number: int) -> str:
    return binary.sections[number].name if number < len(binary.sections) else ""


# ---------------------------------------------------------------- instructions


def _jumps(
    binary: Binary, section: SectionHeader, code: Array, relocations: Relocations, lazy: Array
) -> tuple[Array, Array]:
    """Returns where in the section stubs begin, and the row of the relocation that each is for, int64. A stub can be
    there more than once: the first counts."""
    if binary.machine == "EM_AARCH64":
        return _rows_of_slots(*_slots_of_aarch64(section, code), relocations)
    at, operand = _operands(code, JUMP)
    if binary.machine == "EM_X86_64":
        other_at, other = _operands(code, MOVE)
        base = section.address
        slots = np.concatenate((at + operand + 6, other_at + other + 7)).astype(np.uint64) + np.uint64(base)
        size = 1
    else:
        other_at, other = _operands(code, JUMP_BY_EBX)
        base = next((one.address for name in (".got.plt", ".got") for one in binary.sections if one.name == name), 0)
        slots = np.concatenate((operand.astype(np.uint64), other.astype(np.uint64) + np.uint64(base)))
        slots &= np.uint64(0xFFFF_FFFF)
        size = 8  # the operand of `push` is an offset in bytes
    begin, row = _rows_of_slots(np.concatenate((at, other_at)), slots, relocations)
    pushed_at, number = _operands(code, PUSH)
    is_known = (number >= 0) & (number % size == 0) & (number // size < len(lazy)) & (section.name == ".plt")
    pushed_at, number = pushed_at[is_known], number[is_known] // size
    begin, row = np.concatenate((begin, pushed_at)), np.concatenate((row, lazy[number]))
    # Stubs have 16 bytes, or 32; in .plt.got 8, which begin with the jump.
    return np.where(begin % 8 == 0, begin, begin & ~15), row


def _operands(code: Array, opcode: bytes) -> tuple[Array, Array]:
    """Returns where the opcode is, and the signed number of 4 bytes behind it, int64."""
    n = len(code) - len(opcode) - 3
    if n <= 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    is_there = np.ones(n, bool)
    for nth, byte in enumerate(opcode):
        is_there &= code[nth : nth + n] == byte
    at = np.flatnonzero(is_there)
    operand = code[at[:, None] + np.arange(len(opcode), len(opcode) + 4)]
    return at, operand.view("<i4")[:, 0].astype(np.int64)


def _slots_of_aarch64(section: SectionHeader, code: Array) -> tuple[Array, Array]:
    """Returns where stubs begin, int64, and the addresses of their slots, uint64. Instructions are little-endian in
    every file."""
    words = code[: len(code) // 4 * 4].view("<u4").astype(np.int64)
    is_adrp, is_ldr, is_bti = (words & mask == value for mask, value in (ADRP_X16, LDR_X17, BTI_C))
    nth = np.flatnonzero(is_adrp[:-1] & is_ldr[1:])
    page = (words[nth] >> 5 & 0x7FFFF) << 2 | words[nth] >> 29 & 3
    page = np.where(page >> 20, page - (1 << 21), page) << 12
    offset = (words[nth + 1] >> 10 & 0xFFF) << 3
    here = np.uint64(section.address) + (4 * nth).astype(np.uint64)
    slot = (here & ~np.uint64(0xFFF)) + (page + offset).astype(np.uint64)
    has_bti = (nth > 0) & is_bti[nth - 1]
    return 4 * (nth - has_bti), slot


def _rows_of_slots(at: Array, slot: Array, relocations: Relocations) -> tuple[Array, Array]:
    """Returns, of those jumps whose slot a relocation fills, where they are and the relocation's row."""
    row = index_of(relocations.slot, slot)
    return at[row >= 0], row[row >= 0]
