"""Fuzzes unwinding: call-frame information, registers and stack dumps of any bytes. Run by `make fuzz`.

An input is: a byte that chooses the machine, byte order and section (of DWARF, or SFrame); 8 bytes for each register;
512 bytes of stack; the rest is the section. Seeds are programs that the tests' builder makes.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from typing import Any

from common import ROOT, fuzz, imported, in_time, modules_of

sys.path.insert(0, str(ROOT / "tests"))

from builders.cfi import RIP, EhFrame, Function, Stack, program, saved_where, undefined
from builders.sframe import FP, MASK, FrameRow, SFrame

BASE = 0x10000
STACK_SIZE = 512
FUNCTIONS = [Function(0x1000, (), 0, True), Function(0x1100, (3, 12), 2, True), Function(0x1200, (13,), 3, False)]


def seeds() -> Iterator[tuple[str, bytes]]:
    frame = program(FUNCTIONS)
    frame.fde(0x1300, 256, saved_where(3, b"\x77\x10\x06") + b"\x0a\x44\x0e\x20\x44\x0b")
    stack = Stack(top=0x8000)
    for nth, function in enumerate(FUNCTIONS):
        stack.call(Function(BASE + function.start, function.saves, function.n_locals, function.has_frame_pointer), nth)
    registers, dump, _ = stack.sample()
    known = b"".join(struct.pack("<Q", registers.get(register, 0)) for register in range(RIP + 1))
    for machine, n_registers in enumerate((17, 9, 33)):
        recorded = known.ljust(8 * 33, b"\0")[: 8 * n_registers]
        yield f"program-{machine}", bytes([machine]) + recorded + dump.ljust(STACK_SIZE, b"\0") + frame.data
    signal = EhFrame().fde(0x1000, 256, undefined(RIP)).fde(0x1200, 256, b"", b"zRS")
    for version in (1, 2, 3):
        rows = [FrameRow(0), FrameRow(1, (16, -16)), FrameRow(4, (16, -16), FP)]
        frames = SFrame(version).function(0x1000, 256, rows).function(0x1200, 64, rows, info=MASK, block=16)
        frames = frames.function(0x1100, 256, [FrameRow(0, (51, -8, 0, 51, 0))], kind=1) if version == 3 else frames
        yield f"sframe-{version}", b"\x40" + known + dump.ljust(STACK_SIZE, b"\0") + frames.bytes()
    yield "signal", b"\0" + known + dump.ljust(STACK_SIZE, b"\0") + signal.data


def said(data: bytes) -> list[Any]:
    import numpy as np

    from traceferry.unwinding._unwinder import Unwinder
    from traceferry.unwinding.machine import AARCH64, I386, X86_64, UserStacks
    from traceferry.unwinding.modules import Module, Section
    from traceferry.unwinding.sframe import debug_frame_of
    from traceferry.unwinding.spaces import AddressSpace

    choice = data[0] if data else 0
    machine = (X86_64, I386, AARCH64)[choice % 3]
    big, is_debug, flags = bool(choice & 4), bool(choice & 8), choice >> 4 & 3
    recorded = 8 * machine.n_registers
    head = data[1 : 1 + recorded + STACK_SIZE].ljust(recorded + STACK_SIZE, b"\0")
    section = Section(memoryview(data[1 + recorded + STACK_SIZE :]), 0x8000, is_debug)
    if choice & 0x40:
        frames, n_bad = debug_frame_of(section.data, 0x4000, machine, big)
        section = Section(memoryview(frames), 0, is_debug=True, n_bad=n_bad)
    app = Module("app", machine, big, (section,), entry_point=0x1F00, plt=((0x1F80, 0x1FF0),))
    space = AddressSpace()
    space.map(BASE, BASE + 0x8000, BASE, 0)
    space.map(0, 0x100, 0, -1)
    stacks = UserStacks(
        machine, big, np.frombuffer(head, np.uint8), np.arange(machine.n_registers, dtype=np.int32),
        np.zeros(1, np.int64), np.array([recorded]), np.array([STACK_SIZE]), np.array([flags], np.uint8),
    )  # fmt: skip
    unwinder = Unwinder([app], stacks)
    chains = unwinder.unwind(np.zeros(1, np.int64), space)
    assert len(chains.pc) <= 2000
    return [chains.pc.tolist(), chains.how.tolist(), chains.end.tolist(), chains.module.tolist(), unwinder.problems]


if __name__ == "__main__":
    imported(modules_of("traceferry.unwinding"))
    fuzz("unwind", seeds, in_time(said))
