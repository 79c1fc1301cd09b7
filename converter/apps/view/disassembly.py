"""Machine code as text, through capstone. Bytes that are not instructions are shown as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from traceferry.common.errors import UsageError
from traceferry.common.patterns import compiled_later


@dataclass(frozen=True)
class Machine:
    """arch, mode: names of capstone's constants; syntax: of the text; branches: the mnemonics of which the last operand
    is a target; relative: where that operand counts from the instruction itself."""

    arch: str
    mode: tuple[str, ...]
    syntax: str
    branches: re.Pattern[str]
    relative: bool = False


X86_BRANCHES = compiled_later(r"(?:bnd |notrack |lock )*(?:call|j[a-z]+|loop[a-z]*|xbegin)")
CONDITIONS = "eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|al"
ARM_BRANCHES = compiled_later(rf"(?:b|bl|blx)(?:\.?(?:{CONDITIONS}))?(?:\.w)?|cbn?z|tbn?z")
Z_BRANCHES = compiled_later(r"brasl?|brct[gh]?|j[a-z]*|larl|c[a-z]*j[a-z]*")
RISCV_BRANCHES = compiled_later(r"c\.j|c\.jal|c\.b(?:eqz|nez)|jal|j|b(?:eq|ne|lt|ge|gt|le)u?z?")

# By the processor's name as the model has it.
MACHINES = {
    "x86": Machine("X86", ("MODE_32",), "Intel", X86_BRANCHES),
    "x86_64": Machine("X86", ("MODE_64",), "Intel", X86_BRANCHES),
    "arm64": Machine("ARM64", ("MODE_ARM",), "ARM", ARM_BRANCHES),
    "arm": Machine("ARM", ("MODE_ARM",), "ARM", ARM_BRANCHES),
    "thumb": Machine("ARM", ("MODE_THUMB",), "ARM", ARM_BRANCHES),
    "riscv32": Machine("RISCV", ("MODE_RISCV32", "MODE_RISCVC"), "RISC-V", RISCV_BRANCHES, relative=True),
    "riscv64": Machine("RISCV", ("MODE_RISCV64", "MODE_RISCVC"), "RISC-V", RISCV_BRANCHES, relative=True),
    "s390x": Machine("SYSZ", ("MODE_BIG_ENDIAN",), "z/Architecture", Z_BRANCHES),
}
# The last operand of an instruction, if it is a number.
TARGET = compiled_later(r"(?:^|, )#?(-?(?:0x[0-9a-f]+|\d+))$")
# An address that a register gets: jitted code calls it from there.
LOADED = compiled_later(r"movabs")


class Instruction(NamedTuple):
    """offset: from the first byte; text: mnemonic and operands."""

    offset: int
    size: int
    text: str


# The name of what lies at an absolute address, "" where nothing is known.
Names = Callable[[Sequence[int]], dict[int, str]]


def disassemble(code: bytes | memoryview, arch: str, address: int, names: Names) -> list[Instruction]:
    """Returns the instructions. address: of the first byte; names: asked once, with all addresses that the code refers
    to.

    Raises UsageError where the processor is not supported, or capstone is not installed.
    """
    machine = MACHINES.get(arch)
    if machine is None:
        known = ", ".join(MACHINES)
        raise UsageError(f"code of the processor {arch or 'unknown'} cannot be disassembled; supported: {known}")
    decoded = list(_capstone(arch).disasm_lite(bytes(code), address))
    targets = [_target(machine, at, mnemonic, operands) for at, _, mnemonic, operands in decoded]
    named = names(sorted({target for target in targets if target is not None}))
    return [
        Instruction(at - address, size, _text(mnemonic, operands, target, named))
        for (at, size, mnemonic, operands), target in zip(decoded, targets, strict=True)
    ]


@cache
def _capstone(arch: str) -> Any:
    """Returns a decoder, whose disasm_lite yields (address, size, mnemonic, operands)."""
    try:
        import capstone
    except ImportError:
        raise UsageError("disassembly needs the package capstone: pip install capstone") from None
    machine = MACHINES[arch]
    mode = sum(getattr(capstone, f"CS_{name}") for name in machine.mode)
    decoder = capstone.Cs(getattr(capstone, f"CS_ARCH_{machine.arch}"), mode)
    decoder.skipdata = True
    return decoder


def _target(machine: Machine, at: int, mnemonic: str, operands: str) -> int | None:
    """Returns the absolute address that an instruction names."""
    is_branch = machine.branches.fullmatch(mnemonic) is not None
    if not is_branch and not LOADED.fullmatch(mnemonic):
        return None
    found = TARGET.search(operands)
    if found is None:
        return None
    value = int(found[1], 0)
    return (at + value if machine.relative and is_branch else value) % (1 << 64)


def _text(mnemonic: str, operands: str, target: int | None, named: dict[int, str]) -> str:
    name = named.get(target, "") if target is not None else ""
    if name and LOADED.fullmatch(mnemonic):
        return f"{mnemonic} {operands}  ; {name}"
    if name:
        operands = TARGET.sub(lambda match: match[0].replace(match[1], name).replace("#", ""), operands)
    return f"{mnemonic} {operands}".rstrip()
