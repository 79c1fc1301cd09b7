"""The stacks that are unwound, and what unwinds them."""

from __future__ import annotations

from dataclasses import dataclass

from traceferry.model import Array
from traceferry.unwinding._unwinder import MAX_FRAMES, Chains, End, Flag, How, Unwinder
from traceferry.unwinding.machine import Machine

__all__ = ["MAX_FRAMES", "Chains", "End", "Flag", "How", "Unwinder", "UserStacks"]


@dataclass(frozen=True)
class UserStacks:
    """Stacks of one machine. data: the bytes that hold their registers and dumps; register_of: int32, the DWARF number
    of each recorded register, -1 for one that is not followed. Columns, a row for each stack: registers_at, where its
    registers are, in words of 8 bytes; dump_at, dump_n: its bytes from the stack pointer on, those that are real
    (int64); flags (uint8, Flag)."""

    machine: Machine
    big: bool
    data: Array
    register_of: Array
    registers_at: Array
    dump_at: Array
    dump_n: Array
    flags: Array
