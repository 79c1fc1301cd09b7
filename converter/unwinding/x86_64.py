"""Instructions of x86-64: how long each is, and which registers it may write, as far as %rsp and %rbp are concerned.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, appendix A.
"""

from __future__ import annotations

from typing import NamedTuple

RSP, RBP = 4, 5
PREFIXES = frozenset(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3")
OPERAND_SIZE = 0x66
# What `Instruction.opcode` is beyond that of one byte: 0F xx is TWO_BYTES + xx, all others are OTHERS.
TWO_BYTES, OTHERS = 0x0F00, 0x10000


class Instruction(NamedTuple):
    """rex: its prefix, 0 for none; mod, reg, rm: of the ModRM byte, -1 where there is none; displacement, immediate:
    signed; base: of an address in memory, the register, -1 for none or where another one is added."""

    size: int
    opcode: int
    rex: int
    mod: int
    reg: int
    rm: int
    base: int
    displacement: int
    immediate: int
    is_narrow: bool

    def writes(self, register: int) -> bool:
        """Whether it may write %rsp or %rbp, besides those that are meant to: push, pop, call, leave, ret."""
        opcode, low = self.opcode, self.opcode & 7
        is_rm, is_reg = self.mod == 3 and self.rm == register, self.mod >= 0 and self.reg == register
        if opcode >= OTHERS:
            # Vector instructions: their registers have the same numbers, and few write a general one.
            return False
        if opcode >= TWO_BYTES:
            second = opcode - TWO_BYTES
            by_opcode = 0xC8 <= second < 0xD0 and low | (self.rex & 1) << 3 == register
            return by_opcode or (is_reg and second in WRITES_REG_0F) or (is_rm and second in WRITES_RM_0F)
        if 0x90 <= opcode < 0x98 or 0xB0 <= opcode < 0xC0:
            return low | (self.rex & 1) << 3 == register
        return (is_reg and opcode in WRITES_REG) or (is_rm and opcode not in READS_RM and not self._only_compares())

    def _only_compares(self) -> bool:
        return (self.opcode in (0x80, 0x81, 0x83) and self.reg & 7 == 7) or (
            self.opcode in (0xF6, 0xF7) and self.reg & 7 not in (2, 3)
        )


# ---------------------------------------------------------------- tables

_ARITHMETIC = range(0, 0x40, 8)
# Opcodes of one byte: with a ModRM byte; how many bytes of an immediate value follow; those that do not exist, or that
# no compiler writes.
MODRM = frozenset((
    *(row + column for row in _ARITHMETIC for column in range(4)), 0x63, 0x69, 0x6B, 0x80, 0x81, 0x83,
    *range(0x84, 0x90), 0xC0, 0xC1, 0xC6, 0xC7, *range(0xD0, 0xD4), *range(0xD8, 0xE0), 0xF6, 0xF7, 0xFE, 0xFF,
))  # fmt: skip
IMMEDIATE = {
    **{row + 4: 1 for row in _ARITHMETIC}, **{row + 5: 4 for row in _ARITHMETIC},
    0x68: 4, 0x69: 4, 0x6A: 1, 0x6B: 1, 0x80: 1, 0x81: 4, 0x83: 1, 0xA8: 1, 0xA9: 4, 0xC0: 1, 0xC1: 1, 0xC2: 2,
    0xC6: 1, 0xC7: 4, 0xCD: 1, 0xE8: 4, 0xE9: 4, 0xEB: 1,
    **dict.fromkeys(range(0x70, 0x80), 1), **dict.fromkeys(range(0xB0, 0xB8), 1),
    **dict.fromkeys(range(0xB8, 0xC0), 4), **dict.fromkeys(range(0xE0, 0xE8), 1),
}  # fmt: skip
INVALID = frozenset((
    0x06, 0x07, 0x0E, 0x16, 0x17, 0x1E, 0x1F, 0x27, 0x2F, 0x37, 0x3F, 0x60, 0x61, 0x82, 0x9A, *range(0xA0, 0xA4), 0xC8,
    0xCA, 0xCB, 0xCE, 0xCF, 0xD4, 0xD5, 0xD6, 0xEA, 0xF1,
))  # fmt: skip
# Those that read the register of r/m, and those that write that of reg.
_LOADS = (*(row + column for row in range(0, 0x38, 8) for column in (2, 3)), 0x63, 0x69, 0x6B, 0x8A, 0x8B, 0x8D)
READS_RM = frozenset((*_LOADS, *range(0x38, 0x3C), 0x84, 0x85, 0x8E, *range(0xD8, 0xE0)))
WRITES_REG = frozenset((*_LOADS, 0x86, 0x87))
# The same behind 0F.
PLAIN_0F = frozenset((
    0x05, 0x06, 0x08, 0x09, 0x0B, *range(0x30, 0x36), 0x77, 0xA0, 0xA1, 0xA2, 0xA8, 0xA9, 0xAA, *range(0x80, 0x90),
    *range(0xC8, 0xD0),
))  # fmt: skip
IMMEDIATE_0F = {
    **dict.fromkeys((0x70, 0x71, 0x72, 0x73, 0xA4, 0xAC, 0xBA, 0xC2, 0xC4, 0xC5, 0xC6), 1),
    **dict.fromkeys(range(0x80, 0x90), 4),
}
WRITES_REG_0F = frozenset((
    0x02, 0x03, 0x2C, 0x2D, *range(0x40, 0x51), 0xAF, 0xB6, 0xB7, 0xB8, *range(0xBC, 0xC2), 0xC5, 0xD7,
))  # fmt: skip
WRITES_RM_0F = frozenset((
    0x00, 0x01, 0x7E, *range(0x90, 0xA0), 0xA4, 0xA5, 0xAB, 0xAC, 0xAD, 0xB0, 0xB1, 0xB3, 0xBA, 0xBB, 0xC0, 0xC1, 0xC7,
))  # fmt: skip


# ---------------------------------------------------------------- bytes


def instruction_at(code: bytes, at: int) -> Instruction | None:
    """Returns the instruction that begins there; None where it is not whole, or is none that is known."""
    try:
        return _read(code, at)
    except IndexError:
        return None


def _read(code: bytes, begin: int) -> Instruction | None:
    at, is_narrow = begin, False
    while code[at] in PREFIXES:
        is_narrow |= code[at] == OPERAND_SIZE
        at += 1
    rex = code[at] if code[at] & 0xF0 == 0x40 else 0
    at += rex != 0
    opcode = code[at]
    at += 1
    if opcode in (0xC4, 0xC5, 0x62):
        opcode, has_modrm, n_immediate, at = _vector(code, at, opcode)
    elif opcode == 0x0F:
        opcode, has_modrm, n_immediate, at = _of_two_bytes(code, at)
    elif opcode in INVALID:
        return None
    else:
        has_modrm, n_immediate = opcode in MODRM, IMMEDIATE.get(opcode, 0)
        if opcode in (0xF6, 0xF7) and code[at] & 0x30 == 0:
            n_immediate = 1 if opcode == 0xF6 else 4
        if 0xB8 <= opcode < 0xC0 and rex & 8:
            n_immediate = 8
        elif n_immediate == 4 and is_narrow and opcode not in (0xE8, 0xE9):
            n_immediate = 2
    mod = reg = rm = base = -1
    n_displacement = 0
    if has_modrm:
        mod, reg, rm = code[at] >> 6, code[at] >> 3 & 7 | (rex & 4) << 1, code[at] & 7
        at += 1
        base, n_displacement, at = _memory(code, at, mod, rm, rex) if mod < 3 else (-1, 0, at)
        rm |= (rex & 1) << 3
    displacement = _signed(code, at, n_displacement)
    immediate = _signed(code, at + n_displacement, n_immediate)
    end = at + n_displacement + n_immediate
    return Instruction(end - begin, opcode, rex, mod, reg, rm, base, displacement, immediate, is_narrow)


def _of_two_bytes(code: bytes, at: int) -> tuple[int, bool, int, int]:
    """Returns (opcode, whether it has a ModRM byte, bytes of its immediate value, where it goes on)."""
    second = code[at]
    if second in (0x38, 0x3A):
        return OTHERS, True, int(second == 0x3A), at + 2
    return TWO_BYTES + second, second not in PLAIN_0F, IMMEDIATE_0F.get(second, 0), at + 1


def _vector(code: bytes, at: int, prefix: int) -> tuple[int, bool, int, int]:
    """Returns the same of what begins with a VEX or an EVEX prefix."""
    n_payload = {0xC5: 1, 0xC4: 2, 0x62: 3}[prefix]
    table = code[at] & 7 if prefix != 0xC5 else 1
    opcode = code[at + n_payload]
    has_immediate = table == 3 or (table == 1 and opcode in (0x70, 0x71, 0x72, 0x73, 0xC2, 0xC4, 0xC5, 0xC6))
    return OTHERS, table != 1 or opcode != 0x77, int(has_immediate), at + n_payload + 1


def _memory(code: bytes, at: int, mod: int, rm: int, rex: int) -> tuple[int, int, int]:
    """Returns (the register that is its base, bytes of the displacement, where that begins) of an address."""
    base, n_displacement = rm | (rex & 1) << 3, (0, 1, 4)[mod]
    if rm == 4:
        scaled = code[at]
        at += 1
        is_alone = scaled >> 3 & 7 == 4 and not rex & 2
        base = scaled & 7 | (rex & 1) << 3 if is_alone else -1
        if scaled & 7 == 5 and mod == 0:
            return -1, 4, at
    elif rm == 5 and mod == 0:
        return -1, 4, at  # relative to the next instruction
    return base, n_displacement, at


def _signed(code: bytes, at: int, size: int) -> int:
    if at + size > len(code):
        raise IndexError
    return int.from_bytes(code[at : at + size], "little", signed=True)
