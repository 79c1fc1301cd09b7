"""Properties of a processor that unwinding needs, and stacks that were recorded on it."""

from __future__ import annotations

from typing import NamedTuple

from traceferry.model import Array


class Machine(NamedTuple):
    """A processor. Registers are DWARF numbers, below n_registers. word_size: bytes; return_column: where call-frame
    information leaves the return address; link_register: holds the return address of a function without a frame, -1
    where calls push it; address_bits: of an address in user memory, the bits above may hold a signature.

    Sources: the System V psABIs for i386 and x86-64 (DWARF register number mapping), Arm's AADWARF64.
    """

    name: str
    word_size: int
    n_registers: int
    sp: int
    frame_pointer: int
    return_column: int
    link_register: int
    callee_saved: tuple[int, ...]
    address_bits: int

    @property
    def callee_saved_mask(self) -> int:
        return sum(1 << register for register in self.callee_saved)


X86_64 = Machine("x86-64", 8, 17, 7, 6, 16, -1, (3, 6, 12, 13, 14, 15), 64)
I386 = Machine("i386", 4, 9, 4, 5, 8, -1, (3, 5, 6, 7), 32)
# Registers 31 and 32 are sp and pc. Return addresses may be signed; their upper bits are no part of the address.
AARCH64 = Machine("AArch64", 8, 33, 31, 29, 30, 30, tuple(range(19, 30)), 48)


class UserStacks(NamedTuple):
    """Stacks of one machine. data: the bytes that hold their registers and dumps; register_of: int32, the DWARF number
    of each recorded register, -1 for one that is not followed. Columns, a row for each stack: registers_at, where its
    registers are, in words of 8 bytes; dump_at, dump_n: its bytes from the stack pointer on, those that are real
    (int64); flags (uint8, Flag); own: how many bytes of its own the innermost function has on the stack, as `OwnStack`
    tells, -1 is unknown (int32), None of all."""

    machine: Machine
    big: bool
    data: Array
    register_of: Array
    registers_at: Array
    dump_at: Array
    dump_n: Array
    flags: Array
    own: Array | None = None
