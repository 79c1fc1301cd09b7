"""SFrame as call-frame information: rows as its file has them, and as those of the same program's `.eh_frame`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard
from builders.sframe import FP, MASK, SIGNAL, FrameRow, SFrame
from conftest import REPO, cuts, examples
from hypothesis import given
from hypothesis import strategies as st
from support import load_checked, report_of
from test_cfi import rows_of

from traceferry.files.source import open_source
from traceferry.model import Trace
from traceferry.symbolication.binary import Binary
from traceferry.unwinding.machine import AARCH64, I386, X86_64, Machine
from traceferry.unwinding.modules import MACHINES, Module, Section, eh_frame_of, open_module, sframe_of
from traceferry.unwinding.sframe import debug_frame_of
from traceferry.unwinding.skeleton import skeleton_of

FOLDER = REPO / "fixtures" / "sframe"
START = 0x1000
VERSIONS = pytest.mark.parametrize("version", [1, 2, 3])
BOTH_ORDERS = pytest.mark.parametrize("big", [False, True], ids=["little", "big"])
RBP, RSP, RIP = 6, 7, 16
Rules = dict[Any, Any]
# A row as the tests write it: (CFA, return address, frame pointer).
Short = tuple[Any, Any, Any]


def told(data: bytes, machine: Machine = X86_64, big: bool = False, address: int = 0x4000) -> list[tuple[int, Any]]:
    """(address, (CFA, return address, frame pointer)) of each row; None where there is none."""
    frames, n_bad = debug_frame_of(memoryview(data), address, machine, big)
    module = Module("x", machine, big, (Section(memoryview(frames), 0, is_debug=True, n_bad=n_bad),))
    return [(pc, short(rules, machine)) for pc, rules in rows_of(module)[0]]


def n_bad_of(data: bytes) -> int:
    return debug_frame_of(memoryview(data), 0x4000, X86_64, False)[1]


def short(rules: Rules | None, machine: Machine) -> Short | None:
    if rules is None:
        return None
    found = [rules["cfa"], rules.get(machine.return_column), rules.get(machine.frame_pointer)]
    found = [None if rule == ("same", 0) else rule for rule in found]
    return found[0], found[1], found[2]


def at_cfa(offset: int) -> tuple[str, int]:
    return "offset", offset


def of(register: int, offset: int) -> tuple[str, int, int]:
    return "register", register, offset


# ---------------------------------------------------------------- built


@VERSIONS
@BOTH_ORDERS
def test_rows_of_x86_64(version: int, big: bool) -> None:
    """The return address is at a fixed place; a row without words is that of an outermost function."""
    rows = [FrameRow(0), FrameRow(1, (16, -16)), FrameRow(4, (16, -16), FP), FrameRow(0x5B, ())]
    frame = SFrame(version, big).function(START, 0x60, rows).function(0x2000, 8, [FrameRow(0, (300, -24), size=2)])
    assert told(frame.bytes(), big=big) == [
        (START, (of(RSP, 8), at_cfa(-8), None)),
        (START + 1, (of(RSP, 16), at_cfa(-8), at_cfa(-16))),
        (START + 4, (of(RBP, 16), at_cfa(-8), at_cfa(-16))),
        (START + 0x5B, (of(RSP, 0), ("undefined", 0), None)),
        (START + 0x60, None),
        (0x2000, (of(RSP, 300), at_cfa(-8), at_cfa(-24))),
        (0x2008, None),
    ]


@VERSIONS
@BOTH_ORDERS
def test_rows_of_aarch64(version: int, big: bool) -> None:
    """The return address is in its register until it is saved, together with the frame pointer."""
    rows = [FrameRow(0, (0,)), FrameRow(4, (32, -32, -24), size=1), FrameRow(8, (32, -32, -24), FP)]
    frame = SFrame(version, big, abi=1 if big else 2, fixed_ra=0).function(START, 0x20, rows)
    assert told(frame.bytes(), AARCH64, big) == [
        (START, (of(31, 0), None, None)),
        (START + 4, (of(31, 32), at_cfa(-32), at_cfa(-24))),
        (START + 8, (of(29, 32), at_cfa(-32), at_cfa(-24))),
        (START + 0x20, None),
    ]


@pytest.mark.parametrize("size", [1, 2, 4])
def test_sizes_of_starts_and_words(size: int) -> None:
    limit = 1 << 8 * size
    start, offset = min(limit - 1, 0x12345), limit // 2 - 8
    rows = [FrameRow(0), FrameRow(start, (offset,), size=size)]
    frame = SFrame().function(START, 0x20000, rows, start_size=size)
    assert told(frame.bytes())[1] == (START + start, (of(RSP, offset), at_cfa(-8), None))


def test_starts_from_the_section_and_behind_an_auxiliary_header() -> None:
    for pcrel in (False, True):
        frame = SFrame(2, pcrel=pcrel, auxiliary=bytes(12)).function(START, 4, [FrameRow(0)]).function(0x9000, 4, [])
        assert [pc for pc, _ in told(frame.bytes())] == [START, START + 4]


@pytest.mark.parametrize(("version", "block"), [(1, 16), (2, 16), (3, 16), (3, 8)])
def test_rows_of_each_block(version: int, block: int) -> None:
    """Stubs of a PLT: each has the same rows. Version 1 does not tell their size."""
    rows = [FrameRow(0), FrameRow(5, (16,))]
    frame = SFrame(version).function(START, 2 * block, rows, info=MASK, block=block)
    assert [pc - START for pc, _ in told(frame.bytes())] == [0, 5, block, block + 5, 2 * block]


FLEXIBLE: dict[str, tuple[list[int], Short]] = {
    # Control words: bit 0 of a register, bit 1 in memory, the register.
    "CFA of a register": ([10 << 3 | 1, 8], (of(10, 8), at_cfa(-8), None)),
    "CFA in memory": ([RBP << 3 | 3, -8], (("expression", b"\x76\x78\x06"), at_cfa(-8), None)),
    "return address elsewhere": ([RSP << 3 | 1, 16, RBP << 3 | 3, 8], (of(RSP, 16), ("expression", b"\x76\x08"), None)),
    "frame pointer at its own": (
        [RBP << 3 | 3, -8, 0, RBP << 3 | 3, 0],
        (("expression", b"\x76\x78\x06"), at_cfa(-8), ("expression", b"\x76\x00")),
    ),
    "frame pointer from the CFA": ([RSP << 3 | 1, 16, 0, 2, -16], (of(RSP, 16), at_cfa(-8), at_cfa(-16))),
    "frame pointer is a sum": (
        [RSP << 3 | 1, 16, 0, 12 << 3 | 1, 4], (of(RSP, 16), at_cfa(-8), ("val_expression", b"\x7c\x04"))
    ),
}  # fmt: skip


@pytest.mark.parametrize(("words", "expected"), FLEXIBLE.values(), ids=FLEXIBLE)
def test_flexible_rows(words: list[int], expected: Short) -> None:
    frame = SFrame().function(START, 0x20, [FrameRow(0, words, size=1)], kind=1)
    assert told(frame.bytes())[0] == (START, expected)


def test_frames_of_signals() -> None:
    """Their return address is not behind a call: the function's CIE says so."""
    frame = SFrame().function(START, 8, [FrameRow(0)], info=SIGNAL).function(0x2000, 8, [FrameRow(0)])
    frames, _ = debug_frame_of(memoryview(frame.bytes()), 0x4000, X86_64, False)
    assert [frames.count(b"\xff\xff\xff\xff\x03" + name) for name in (b"S\0", b"\0")] == [1, 1]


ONE = [FrameRow(0)]
DAMAGED: dict[str, tuple[bytes, int]] = {
    "nothing": (b"", 1),
    "other magic": (SFrame(magic=0xDEE3).bytes(), 1),
    "other byte order": (SFrame(big=True).bytes(), 1),
    "version of the future": (SFrame(version=4).bytes(), 1),
    "size of starts": (SFrame().function(START, 8, ONE, info=7).function(0x2000, 8, ONE).bytes(), 1),
    "kind of function": (SFrame().function(START, 8, ONE, kind=2).bytes(), 1),
    "rows that go back": (SFrame().function(START, 8, [FrameRow(4), FrameRow(2)]).bytes(), 1),
    "too many words": (SFrame().function(START, 8, [FrameRow(0, (8, -16, 3))]).bytes(), 1),
    "block of nothing": (SFrame().function(START, 32, ONE, info=MASK).bytes(), 1),
    "too many blocks": (SFrame().function(START, 1 << 31, ONE, info=MASK, block=1).bytes(), 1),
    "register that is none": (SFrame().function(START, 8, [FrameRow(0, (30 << 3 | 1, 8))], kind=1).bytes(), 1),
    "word that is missing": (SFrame().function(START, 8, [FrameRow(0, (57,))], kind=1).bytes(), 1),
}


@pytest.mark.parametrize(("data", "n_bad"), DAMAGED.values(), ids=DAMAGED)
def test_damaged(data: bytes, n_bad: int) -> None:
    """What cannot be read is counted; other functions have their rows."""
    assert n_bad_of(data) == n_bad


@VERSIONS
def test_cut_anywhere(version: int) -> None:
    """Functions whose rows are whole stay."""
    frame = SFrame(version)
    for nth in range(4):
        frame.function(START + 32 * nth, 16, [FrameRow(0), FrameRow(1, (16, -16))])
    whole, before = frame.bytes(), 0
    for cut in cuts(len(whole), 1, 0):
        n = len(told(whole[:cut]))
        assert n >= before
        assert (n_bad_of(whole[:cut]) > 0) == (cut < len(whole))
        before = n
    assert before == 4 * 3


@examples(300)
@given(st.sampled_from([1, 2, 3]), st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=8))
def test_any_bytes(version: int, changes: Sequence[tuple[int, int]]) -> None:
    frame = SFrame(version).function(START, 16, [FrameRow(0), FrameRow(1, (16, -16))]).function(0x2000, 99, ONE)
    data = bytearray(frame.bytes())
    for at, byte in changes:
        data[at % len(data)] = byte
    for machine in (X86_64, I386, AARCH64):
        told(bytes(data), machine)


# ---------------------------------------------------------------- recorded


def unpacked(tmp_path: Path, version: str, *, without: Sequence[bytes] = ()) -> Path:
    """The program of a version of binutils. without: names of sections that are taken away."""
    data = bytearray(zstandard.decompress((FOLDER / version / "stacks.zst").read_bytes()))
    for name in without:
        # Its name is another one, and no program header points there.
        assert name in data
        data = data.replace(name + b"\0", b".none" + name[5:] + b"\0")
        data = data.replace((0x6474E550).to_bytes(4, "little"), bytes(4)) if name == b".eh_frame" else data
    path = tmp_path / "stacks"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("version", ["binutils-2.40", "binutils-2.47"])
def test_the_same_as_eh_frame(tmp_path: Path, version: str) -> None:
    """At each address for which both tell something: but for the stubs of .plt.got, whose CFA binutils 2.47 has 8 too
    high (so prints readelf --sframe), and which are not asked, as all of a PLT. Only .eh_frame has what was assembled
    before: _start, and with version 1 functions that align their stack."""
    binary = Binary(open_source(str(unpacked(tmp_path, version))))
    machine = MACHINES[binary.machine]
    frames, own = eh_frame_of(binary), sframe_of(binary, machine)
    assert frames is not None
    assert own is not None
    assert own.n_bad == 0
    tables = []
    for section in (Section(*frames), own):
        rows, n_bad = rows_of(Module("x", machine, False, (section,)))
        assert n_bad == 0
        tables.append(([pc for pc, _ in rows], [short(rules, machine) for _, rules in rows]))
    stubs = open_module(binary).plt
    compared = 0
    for pc in sorted({pc for table in tables for pc in table[0]}):
        both = [rules[bisect_right(pcs, pc) - 1] if pc >= pcs[0] else None for pcs, rules in tables]
        if None in both or any(start <= pc < end for start, end in stubs):
            continue
        assert both[0] == both[1], hex(pc)
        compared += 1
    assert compared > 20


def stacks_of(trace: Trace) -> list[list[str]]:
    opened, found = trace.opened(), []
    for _, thread in trace.threads:
        for row in thread.load(opened).samples["stack"].tolist():
            names = list[str]()
            while row >= 0:
                names.append(opened.func_name(int(opened.frames["func"][opened.stacks["frame"][row]])))
                row = int(opened.stacks["prefix"][row])
            found.append(names)
    return found


def test_stacks_of_a_program_without_eh_frame(tmp_path: Path) -> None:
    """They are those that .eh_frame gives. Without both, there is no caller."""
    recording = FOLDER / "binutils-2.47" / "perf.data.zst"
    found = {}
    for name, without in (("both", ()), ("sframe", (b".eh_frame",)), ("none", (b".eh_frame", b".sframe"))):
        program = unpacked(tmp_path, "binutils-2.47", without=without)
        trace = load_checked(recording, symbols=program)
        found[name] = stacks_of(trace)
        assert name != "none" or "unwinding_no_information" in report_of(trace)
    assert found["sframe"] == found["both"] != found["none"]
    deep = [stack[stack.index("aligned") + 1 :] for stack in found["both"] if "aligned" in stack]
    assert {tuple(stack[:21]) for stack in deep} == {(*["recurse"] * 20, "main")}


def test_skeletons_keep_it(tmp_path: Path) -> None:
    """A pack has the rows as .debug_frame."""
    binary = Binary(open_source(str(unpacked(tmp_path, "binutils-2.47", without=[b".eh_frame"]))))
    path = tmp_path / "skeleton"
    path.write_bytes(skeleton_of(binary))
    modules = [open_module(binary), open_module(Binary(open_source(str(path))))]
    assert rows_of(modules[0]) == rows_of(modules[1])
