"""Builds call-frame information, and stacks that fit it: the right answer is known without unwinding. x86-64."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

RBX, RBP, RSP, RIP = 3, 6, 7, 16
CALLEE_SAVED = (3, 12, 13, 14, 15)  # besides rbp


def uleb(value: int) -> bytes:
    out = bytearray()
    while True:
        out.append(value & 0x7F | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(out)


def sleb(value: int) -> bytes:
    out = bytearray()
    while True:
        byte, value = value & 0x7F, value >> 7
        last = value == (-1 if byte & 0x40 else 0)
        out.append(byte if last else byte | 0x80)
        if last:
            return bytes(out)


def advance(n: int) -> bytes:
    return bytes([0x40 | n]) if n < 64 else b"\x03" + struct.pack("<H", n)


def def_cfa(register: int, offset: int) -> bytes:
    return b"\x0c" + uleb(register) + uleb(offset)


def def_cfa_offset(offset: int) -> bytes:
    return b"\x0e" + uleb(offset)


def saved_at(register: int, below_cfa: int) -> bytes:
    """In words below the CFA; the data alignment factor is -8."""
    return bytes([0x80 | register]) + uleb(below_cfa)


def undefined(register: int) -> bytes:
    return b"\x07" + uleb(register)


def cfa_is(expression: bytes) -> bytes:
    return b"\x0f" + uleb(len(expression)) + expression


def saved_where(register: int, expression: bytes) -> bytes:
    return b"\x10" + uleb(register) + uleb(len(expression)) + expression


INITIAL = def_cfa(RSP, 8) + saved_at(RIP, 1)


@dataclass
class EhFrame:
    """`.eh_frame` at an address. cie: augmentation and initial instructions."""

    address: int = 0x8000
    data: bytearray = field(default_factory=bytearray)
    _cie: dict[bytes, int] = field(default_factory=dict)

    def cie(self, augmentation: bytes = b"zR", code: bytes = INITIAL) -> int:
        """Where it is."""
        key = augmentation + b"\0" + code
        if key not in self._cie:
            self._cie[key] = len(self.data)
            body = b"\x01" + augmentation + b"\0" + uleb(1) + sleb(-8) + bytes([RIP])
            if augmentation.startswith(b"z"):
                body += uleb(1) + b"\x1b"  # pcrel, sdata4
            self._add(0, body + code)
        return self._cie[key]

    def fde(self, start: int, size: int, code: bytes, augmentation: bytes = b"zR", begun: bytes = INITIAL) -> EhFrame:
        """begun: the initial instructions of its CIE."""
        cie = self.cie(augmentation, begun)
        at = len(self.data) + 8
        place = struct.pack("<iI", start - (self.address + at), size)
        self._add(at - 4 - cie, place + uleb(0) + code)
        return self

    def _add(self, pointer: int, body: bytes) -> None:
        body += b"\0" * (-(4 + len(body)) % 8)
        self.data += struct.pack("<II", 4 + len(body), pointer) + body


@dataclass(frozen=True)
class Function:
    """start, of 256 bytes; saves: registers that its prologue pushes; n_locals: words; has_frame_pointer: it pushes rbp
    first and counts from it; body: where in it calls and samples are, behind the prologue."""

    start: int
    saves: tuple[int, ...]
    n_locals: int
    has_frame_pointer: bool
    body: int = 100

    def code(self) -> bytes:
        """One byte for each push, four for the locals."""
        out, pushed = b"", 1
        registers = (RBP, *self.saves) if self.has_frame_pointer else self.saves
        for register in registers:
            pushed += 1
            out += advance(1) + def_cfa_offset(8 * pushed) + saved_at(register, pushed)
            if register == RBP and self.has_frame_pointer:
                out += b"\x0d" + uleb(RBP)
                break
        if self.has_frame_pointer:
            out += b"".join(saved_at(register, 3 + nth) for nth, register in enumerate(self.saves))
            return out
        return out + advance(4) + def_cfa_offset(8 * (pushed + self.n_locals))


@dataclass
class Stack:
    """A stack that grows as functions call one another. registers: DWARF number → value."""

    top: int = 0x7FFF_0000_0000
    registers: dict[int, int] = field(default_factory=dict)
    words: list[int] = field(default_factory=list)
    pcs: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.registers = {register: 0x1111 * register for register in (*CALLEE_SAVED, RBP)}

    @property
    def sp(self) -> int:
        return self.top - 8 * len(self.words)

    def call(self, function: Function, seed: int) -> None:
        """Enters a function and runs to its body, with other values in the registers that it saved."""
        if self.pcs:
            self.words.append(self.pcs[-1])
        if function.has_frame_pointer:
            self.words.append(self.registers[RBP])
            self.registers[RBP] = self.sp
        for register in function.saves:
            self.words.append(self.registers[register])
            self.registers[register] = seed * 31 + register
        self.words += [seed] * function.n_locals
        self.pcs.append(function.start + function.body)

    def sample(self) -> tuple[dict[int, int], bytes, list[int]]:
        """Registers, the dump from the stack pointer on, and the frames' addresses, innermost first."""
        registers = {**self.registers, RSP: self.sp, RIP: self.pcs[-1]}
        return registers, b"".join(struct.pack("<Q", word) for word in reversed(self.words)), self.pcs[::-1]


def program(functions: Sequence[Function]) -> EhFrame:
    """The first one is where the stack begins: its return address is undefined."""
    frame = EhFrame()
    for nth, function in enumerate(functions):
        frame.fde(function.start, 256, (undefined(RIP) if nth == 0 else b"") + function.code())
    return frame
