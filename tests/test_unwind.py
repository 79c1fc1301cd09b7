"""User stacks of built programs, whose right answer is known; and rules that real programs seldom have."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pytest
from builders.cfi import (
    CALLEE_SAVED,
    RBP,
    RBX,
    RIP,
    RSP,
    EhFrame,
    Function,
    Stack,
    cfa_is,
    def_cfa,
    program,
    saved_at,
    saved_where,
    sleb,
    uleb,
    undefined,
)
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from traceferry.unwinding._cfi import RuleSets
from traceferry.unwinding._unwinder import Chains, End, Flag, Unwinder
from traceferry.unwinding.machine import X86_64, UserStacks
from traceferry.unwinding.modules import Module, Problems, Section
from traceferry.unwinding.spaces import NO_MODULE, AddressSpace
from traceferry.unwinding.stack_ends import begins_thread, is_beginning, is_call_of_c, is_switch

BIAS = 0x5555_0000_0000
ORDER = (*CALLEE_SAVED, RBP, RSP, RIP)  # in which registers are recorded here


def module(frame: EhFrame, **more: object) -> Module:
    section = Section(memoryview(bytes(frame.data)), frame.address)
    return Module("app", X86_64, False, (section,), **more)  # type: ignore[arg-type]


def unwind(
    registers: dict[int, int], dump: bytes, app: Module, is_short: bool = False, bias: int = BIAS
) -> tuple[list[int], str, Unwinder]:
    """Addresses, how the stack ended, and who unwound it."""
    recorded = b"".join(struct.pack("<Q", registers.get(register, 0)) for register in ORDER)
    space = AddressSpace()
    space.map(bias, bias + 0x10000, bias, 0)
    stacks = UserStacks(
        X86_64, False, np.frombuffer(recorded + dump, np.uint8),
        np.array([register if register in registers else -1 for register in ORDER], np.int32),
        np.zeros(1, np.int64), np.array([len(recorded)]), np.array([len(dump)]),
        np.array([Flag.IS_SHORT_COPY * is_short], np.uint8),
    )  # fmt: skip
    unwinder = Unwinder([app], stacks)
    chains = unwinder.unwind(np.zeros(1, np.int64), space)
    return chains.pc.tolist(), end_of(chains), unwinder


def end_of(chains: Chains) -> str:
    return next(name for name, end in End.__members__.items() if end == chains.end[0])


FUNCTIONS = st.lists(
    st.tuples(st.lists(st.sampled_from(CALLEE_SAVED), unique=True), st.integers(0, 20), st.booleans()),
    min_size=1, max_size=6,
).map(lambda rows: [Function(0x1000 + 256 * n, tuple(s), w, fp) for n, (s, w, fp) in enumerate(rows)])  # fmt: skip


def called(functions: Sequence[Function], path: Sequence[int]) -> Stack:
    stack = Stack()
    for depth, nth in enumerate([0, *path]):
        function = functions[nth % len(functions)] if depth == 0 else functions[nth % max(len(functions) - 1, 1)]
        if depth and len(functions) > 1:
            function = functions[1 + nth % (len(functions) - 1)]
        elif depth:
            break
        placed = Function(
            BIAS + function.start, function.saves, function.n_locals, function.has_frame_pointer, function.body
        )
        stack.call(placed, seed=depth)
    return stack


@examples(100)
@given(FUNCTIONS, st.lists(st.integers(0, 5), max_size=30), st.data())
def test_stacks_of_any_program(functions: list[Function], path: list[int], data: st.DataObject) -> None:
    """Whole; and cut at any byte, the frames up to there."""
    app = module(program(functions))
    registers, dump, pcs = called(functions, path).sample()
    found, end, _ = unwind(registers, dump, app)
    assert (found, end) == (pcs, "COMPLETE")
    size = data.draw(st.integers(0, len(dump)))
    found, end, _ = unwind(registers, dump[:size], app)
    assert found == pcs[: len(found)]
    assert end == ("COMPLETE" if found == pcs else "TRUNCATED")


@examples(60)
@given(FUNCTIONS, st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), min_size=1, max_size=8))
def test_any_bytes_end_the_stack_or_not(functions: list[Function], changes: list[tuple[int, int]]) -> None:
    """Damaged call-frame information and dumps give some stack, whose first frame is the sample's own address."""
    frame = program(functions)
    registers, dump, pcs = called(functions, [1, 2, 3, 4]).sample()
    damaged = bytearray(dump)
    for at, value in changes:
        frame.data[at % len(frame.data)] = value
        if damaged:
            damaged[at % len(damaged)] = value
    found, _, _ = unwind(registers, bytes(damaged), module(frame))
    assert found[0] == pcs[0]


LEAF, CALLER = Function(0x1100, (), 0, False), Function(0x1000, (), 0, False)


def one_call(leaf_code: bytes, augmentation: bytes = b"zR") -> Module:
    frame = EhFrame().fde(0x1000, 256, undefined(RIP)).fde(0x1100, 256, leaf_code, augmentation)
    return module(frame)


def test_a_realigned_stack() -> None:
    """gcc: the CFA is stored below rbp, and registers are saved relative to rbp."""
    code = cfa_is(b"\x76" + sleb(-8) + b"\x06") + saved_where(RBP, b"\x76" + sleb(0)) + saved_at(RIP, 1)
    sp = 0x7FFF_0000_0000
    words = [0, sp + 64, 0x77, 0, 0, 0, 0, BIAS + 0x1064]  # rbp is sp + 16: there the saved one, below it the CFA
    registers = {RSP: sp, RBP: sp + 16, RIP: BIAS + 0x1164}
    found, end, _ = unwind(registers, struct.pack("<8Q", *words), one_call(code))
    assert (found, end) == ([BIAS + 0x1164, BIAS + 0x1064], "COMPLETE")


def test_a_register_of_which_the_slot_was_popped_keeps_its_value() -> None:
    """The rule says that rbx is below the stack pointer: the epilogue has popped it already."""
    caller = def_cfa(RBX, 16) + saved_at(RIP, 1)
    frame = EhFrame().fde(0x1000, 256, caller).fde(0x1100, 256, saved_at(RBX, 2)).fde(0x1200, 256, undefined(RIP))
    sp = 0x7FFF_0000_0000
    registers = {RSP: sp, RBX: sp + 16, RIP: BIAS + 0x1164}
    found, end, _ = unwind(registers, struct.pack("<4Q", BIAS + 0x1064, 0, 0, BIAS + 0x1264), module(frame))
    assert (found, end) == ([BIAS + 0x1164, BIAS + 0x1064, BIAS + 0x1264], "COMPLETE")


def test_a_register_that_is_not_known_ends_the_stack() -> None:
    """rax is not kept across calls; in the first frame a register that was not recorded is not 0."""
    app = one_call(def_cfa(RBX, 16))
    assert unwind({RSP: 0x7000, RIP: BIAS + 0x1164}, bytes(64), app)[1] == "LOST_REGISTER"


@pytest.mark.parametrize(
    ("words", "is_short", "end"),
    [
        ([0], False, "COMPLETE"),  # a return address of 0
        ([], False, "TRUNCATED"),
        ([], True, "NOT_COPIED"),
        ([0x1234], False, "BAD_ADDRESS"),
        # argc, argv: the function is at the entry point of a process, and has unwind information all the same.
        ([2, 0x7FF0, 0x7FF8, 0, 0], False, "COMPLETE"),
        ([2, 0x7FF0, 0x7FF8, 1, 0], False, "BAD_ADDRESS"),
        ([2, 0x6FF0, 0x7FF8, 0, 0], False, "BAD_ADDRESS"),
        ([2, 0x7FF0, 0x7FF8], False, "BAD_ADDRESS"),
    ],
)
def test_ends(words: list[int], is_short: bool, end: str) -> None:
    found = unwind({RSP: 0x7000, RIP: BIAS + 0x1164}, struct.pack(f"<{len(words)}Q", *words), one_call(b""), is_short)
    assert found[:2] == ([BIAS + 0x1164], end)


@pytest.mark.parametrize(
    ("interrupted_sp", "is_short", "end"),
    [
        (0x7020, False, "COMPLETE"),
        (0x7040, False, "TRUNCATED"),  # the handler ran on the same stack, of which more should have been copied
        (0x7038, True, "NOT_COPIED"),
        (0x7400, True, "ELSEWHERE"),  # the stack that was copied ends before
        (0x7400, False, "TRUNCATED"),
        (0xC000, False, "ELSEWHERE"),  # no signal has a frame as large
        (0x6000, False, "ELSEWHERE"),
    ],
)
def test_what_a_signal_interrupted_on_this_stack_or_another(interrupted_sp: int, is_short: bool, end: str) -> None:
    """The frame of the signal has the stack pointer and the program counter of what it interrupted, which has 24 bytes
    of local variables."""
    frame = EhFrame().fde(0x1100, 256, cfa_is(b"\x77\0\x06") + saved_where(RIP, b"\x77\x08"), b"zRS")
    frame.fde(0x1200, 256, def_cfa(RSP, 32)).fde(0x1300, 256, undefined(RIP))
    words = [interrupted_sp, BIAS + 0x1264, *[BIAS + 0x1364] * 6]
    registers = {RSP: 0x7000, RIP: BIAS + 0x1164}
    found, ended, _ = unwind(registers, struct.pack("<8Q", *words), module(frame), is_short)
    assert (found[:2], ended) == ([BIAS + 0x1164, BIAS + 0x1264], end)


@pytest.mark.parametrize(("register", "end"), [(RSP, "NOT_COPIED"), (RBX, "ELSEWHERE")])
def test_how_far_a_stack_may_reach(register: int, end: str) -> None:
    """What is relative to the stack pointer is on the same stack, and be it 16 MB away; another register may point to
    another one."""
    registers = {RSP: 0x7000, RBX: 0x7000, RIP: BIAS + 0x1164}
    found = unwind(registers, bytes(64), one_call(def_cfa(register, 16 << 20)), is_short=True)
    assert found[:2] == ([BIAS + 0x1164], end)


def test_a_circle_ends() -> None:
    """A CFA that does not rise."""
    app = one_call(def_cfa(RBX, 8))
    registers = {RSP: 0x7000, RBX: 0x7000, RIP: BIAS + 0x1164}
    assert unwind(registers, struct.pack("<2Q", BIAS + 0x1165, 0), app)[1] == "BAD_CFA"


def test_an_expression_that_does_not_end() -> None:
    app = one_call(cfa_is(b"\x2f" + struct.pack("<h", -3)))
    assert unwind({RSP: 0x7000, RIP: BIAS + 0x1164}, bytes(64), app)[1] == "BAD_CFA"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (b"\x38", 8),  # lit8
        (b"\x08\x10\x35\x1c", 11),  # const1u 16, lit5, minus
        (b"\x09\xff\x32\x22", 1),  # const1s -1, lit2, plus
        (b"\x34\x33\x24", 32),  # lit4, lit3, shl
        (b"\x09\xf0\x32\x26\x1f", 4),  # const1s -16, lit2, shra, neg
        (b"\x31\x32\x2d\x35\x24", 32),  # lit1 < lit2, lit5, shl
        (b"\x30\x28\x01\x00\x38", 8),  # lit0, bra 1: not taken; lit8
        (b"\x31\x28\x01\x00\x37\x38", 8),  # lit1, bra 1: taken, over lit7; lit8
        (b"\x09\xf8\x32\x1b\x1f", 4),  # const1s -8, lit2, div, neg
        (b"\x31\x32\x33\x17\x1c\x22", 2),  # lit1, lit2, lit3, rot: 3, 1, 2; minus, plus
    ],
)
def test_expressions(expression: bytes, value: int) -> None:
    """The CFA is the stack pointer and the value: the return address lies there."""
    sp = 0x7000
    dump = bytearray(64)
    dump[value : value + 8] = struct.pack("<Q", BIAS + 0x1064)
    code = cfa_is(b"\x77" + sleb(8) + expression + b"\x22")  # breg7 + 8
    found, end, _ = unwind({RSP: sp, RIP: BIAS + 0x1164}, bytes(dump), one_call(code))
    assert (found, end) == ([BIAS + 0x1164, BIAS + 0x1064], "COMPLETE")


def test_without_call_frame_information_the_frame_pointer_is_taken() -> None:
    frame = EhFrame().fde(0x1000, 256, undefined(RIP))
    registers = {RSP: 0x7000, RBP: 0x7010, RIP: BIAS + 0x3000}
    words = struct.pack("<4Q", 1, 2, 0x7FFF, BIAS + 0x1064)
    found, end, _ = unwind(registers, words, module(frame))
    assert (found, end) == ([BIAS + 0x3000, BIAS + 0x1064], "COMPLETE")
    assert unwind({**registers, RBP: 0x7011}, words, module(frame))[1] == "NO_CFI"


@pytest.mark.parametrize(("saved", "end"), [(0, "COMPLETE"), (8, "NO_CFI")])
def test_a_frame_that_has_saved_no_frame_pointer_is_the_outermost(saved: int, end: str) -> None:
    """As runtime.goexit in stripped programs of Go; the 0 of a register may be anything."""
    frame = EhFrame().fde(0x1000, 256, undefined(RIP))
    registers = {RSP: 0x7000, RBP: 0x7010, RIP: BIAS + 0x3000}
    words = struct.pack("<6Q", 1, 2, saved, BIAS + 0x3064, 0, 0)
    found, ended, _ = unwind(registers, words, module(frame))
    assert (found, ended) == ([BIAS + 0x3000, BIAS + 0x3064], end)
    assert unwind({**registers, RBP: 0}, words, module(frame))[1] == "NO_CFI"


@pytest.mark.parametrize(
    ("saved", "is_short", "end"),
    [
        (0x7030, False, "TRUNCATED"),
        (0x7028, False, "TRUNCATED"),  # the return address is behind the copy
        (0x7030, True, "NOT_COPIED"),
        (0x7031, False, "NO_CFI"),  # no address of a word
        (0x6000, False, "NO_CFI"),
        (0x7FFF_FFFF_0000, False, "NO_CFI"),  # farther than a stack is long
    ],
)
def test_a_frame_pointer_behind_the_copy_of_the_stack(saved: int, is_short: bool, end: str) -> None:
    """Of code without call-frame information that keeps frame pointers, as V8's, Chromium's and Deno's."""
    frame = EhFrame().fde(0x1000, 256, undefined(RIP))
    registers = {RSP: 0x7000, RBP: 0x7010, RIP: BIAS + 0x3000}
    words = struct.pack("<6Q", 1, 2, saved, BIAS + 0x3064, 0, 0)
    assert unwind(registers, words, module(frame), is_short)[:2] == ([BIAS + 0x3000, BIAS + 0x3064], end)
    # The register of the sample itself may be anything.
    assert unwind({**registers, RBP: saved}, words, module(frame), is_short)[1] == "NO_CFI"


@pytest.mark.parametrize(
    ("name", "rbp", "end"),
    [
        ("ld-musl-x86_64.so.1", 0, "COMPLETE"),
        ("libc.so", 0, "COMPLETE"),
        ("libc.so", 0x7000, "NO_CFI"),
        ("libc.so.6", 0, "NO_CFI"),
    ],
)
def test_a_thread_of_musl_begins_with_a_frame_pointer_of_0(name: str, rbp: int, end: str) -> None:
    """musl has no call-frame information of its own code; elsewhere the register may be anything."""
    app = module(EhFrame().fde(0x1100, 256, b""))._replace(name=name)
    words = struct.pack("<2Q", BIAS + 0x1064, 0)
    found, ended, _ = unwind({RSP: 0x7000, RBP: rbp, RIP: BIAS + 0x1164}, words, app)
    assert (found, ended) == ([BIAS + 0x1164, BIAS + 0x1064], end)


def test_the_entry_point_is_the_end() -> None:
    """The dynamic linker's _start has no call-frame information."""
    app = module(EhFrame().fde(0x1000, 256, b""), entry_point=0x3000)
    assert unwind({RSP: 0x7000, RIP: BIAS + 0x3002}, bytes(8), app)[:2] == ([BIAS + 0x3002], "COMPLETE")


@pytest.mark.parametrize(("returns_to", "end"), [(0x2000, "COMPLETE"), (0x2001, "BAD_CFA"), (0x1FFF, "NO_CFI")])
def test_a_stack_that_makecontext_made_begins_where_nobody_calls(returns_to: int, end: str) -> None:
    """The first function of a context returns to the first byte of __start_context, in front of which no call is, and
    whose call-frame information is that of any function."""
    frame = EhFrame().fde(0x1100, 256, b"").fde(0x2000, 256, def_cfa(RSP, 0))
    words = struct.pack("<3Q", BIAS + returns_to, 1, 2)
    found, ended, _ = unwind({RSP: 0x7000, RIP: BIAS + 0x1164}, words, module(frame))
    assert (found, ended) == ([BIAS + 0x1164, BIAS + returns_to], end)


BEGINNING, OF_THREAD, SWITCH, CALL_OF_C = "a beginning", "of a thread", "a switch", "a call of C"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("runtime.goexit", [BEGINNING, OF_THREAD]),
        ("runtime.goexit.abi0", [BEGINNING, OF_THREAD]),
        ("runtime.goexit0", []),
        ("makecontext@@GLIBC_2.1", [BEGINNING, OF_THREAD]),
        ("__start_context", [BEGINNING, OF_THREAD]),
        ("bthread_make_fcontext", [BEGINNING, OF_THREAD]),
        ("jump_fcontext", []),
        ("main", [OF_THREAD]),
        ("main.main", []),
        ("clone3", [OF_THREAD]),
        ("__libc_start_call_main", [OF_THREAD]),
        ("runtime.mstart0", [OF_THREAD]),
        ("runtime.asmcgocall_no_g.abi0", [SWITCH, CALL_OF_C]),
        ("runtime.asmcgocall", [SWITCH, CALL_OF_C]),
        ("runtime.systemstack_switch.abi0", [SWITCH]),
        ("runtime.morestack_noctxt", [SWITCH]),
        ("__morestack", [SWITCH]),
        ("runtime.cgocall", [CALL_OF_C]),
        ("runtime.cgocallbackg", []),
        ("main._Cfunc_c_outer.abi0", [CALL_OF_C]),
        ("_cgo_1cc41780d18a_Cfunc_c_heavy", []),
    ],
)
def test_functions_without_callers_on_their_stack(name: str, wanted: list[str]) -> None:
    """By their names."""
    of_kind = {BEGINNING: is_beginning, OF_THREAD: begins_thread, SWITCH: is_switch, CALL_OF_C: is_call_of_c}
    assert [kind for kind, is_so in of_kind.items() if is_so(name)] == wanted


def test_the_first_frame_may_be_in_a_plt() -> None:
    app = module(EhFrame().fde(0x1000, 256, undefined(RIP)), plt=((0x3000, 0x3100),))
    found, end, _ = unwind({RSP: 0x7000, RIP: BIAS + 0x3010}, struct.pack("<Q", BIAS + 0x1064), app)
    assert (found, end) == ([BIAS + 0x3010, BIAS + 0x1064], "COMPLETE")


@pytest.mark.parametrize("size", range(0, 64, 3))
def test_a_section_cut_anywhere(size: int) -> None:
    """What is whole is used; the rest is counted."""
    frame = EhFrame().fde(0x1000, 256, undefined(RIP)).fde(0x1100, 256, b"")
    ends = [0]
    while ends[-1] < len(frame.data):
        ends.append(ends[-1] + 4 + struct.unpack_from("<I", frame.data, ends[-1])[0])
    frame.data = frame.data[:size]
    _, end, unwinder = unwind({RSP: 0x7000, RIP: BIAS + 0x1164}, bytes(64), module(frame))
    assert end == ("NO_CFI" if size < ends[-1] else "BAD_ADDRESS")
    assert unwinder.problems[0][0].is_cut == (size not in ends)


def test_instructions_that_are_unknown_end_the_rows_and_are_counted() -> None:
    app = one_call(b"\x44\x3f")  # advance 4, then an opcode that nobody defines
    _, end, unwinder = unwind({RSP: 0x7000, RIP: BIAS + 0x1164}, bytes(64), app)
    assert end == "NO_CFI"
    assert unwinder.problems[0] == [Problems(1, False)]


@pytest.mark.parametrize("initial", [b"\x81" + b"\x80" * 9 + b"\0" + b"\x78\x10", b"\1\x78\x10" + b"\0" * 300])
def test_a_cie_that_bytes_could_make_slow_is_not_used(initial: bytes) -> None:
    """A number of eleven bytes; instructions that each FDE would run again. The FDE is counted."""
    cie = b"\0\0\0\0\1\0" + initial
    fde = struct.pack("<IQQ", len(cie) + 8, 0x1100, 256)
    data = b"".join(struct.pack("<I", len(record)) + record for record in (cie, fde))
    app = Module("app", X86_64, False, (Section(memoryview(data), 0x8000),))
    _, end, unwinder = unwind({RSP: 0x7000, RIP: BIAS + 0x1164}, bytes(64), app)
    assert (end, unwinder.problems[0]) == ("NO_CFI", [Problems(1, False)])


def test_reserved_pointer_encodings_are_unreadable() -> None:
    """Of the low half of DW_EH_PE_*, 5 to 8 and 13 to 15 are reserved."""
    readable = set()
    for encoding in range(256):
        cie = b"\0\0\0\0\1zR\0\1\x78\x10\1" + bytes([encoding])
        fde = struct.pack("<I", len(cie) + 8) + bytes(40)
        data = b"".join(struct.pack("<I", len(record)) + record for record in (cie, fde))
        problems = Module("app", X86_64, False, (Section(memoryview(data), 0x8000),)).rows(RuleSets())[1]
        readable |= {encoding & 0x0F} - {encoding & 0x0F for problem in problems if problem.n_bad}
    assert readable == {0, 1, 2, 3, 4, 9, 10, 11, 12}


@pytest.mark.parametrize(("n_loops", "n_frames"), [(0, 64 // 8 + 2), (50, 6)])
def test_a_stack_has_as_many_frames_and_steps_as_its_bytes_can_need(n_loops: int, n_frames: int) -> None:
    """Each frame calls itself again, and evaluates expressions that count down before they say so."""
    countdown = bytes([0x08, n_loops]) + b"\x31\x1c\x12\x28" + struct.pack("<h", -6)  # lit1 minus dup bra
    return_address = (countdown if n_loops else b"") + b"\x0e" + struct.pack("<Q", BIAS + 0x1164)
    code = cfa_is(b"\x77" + sleb(8)) + b"\x16" + uleb(RIP) + uleb(len(return_address)) + return_address
    found, end, _ = unwind({RSP: 0x7000, RIP: BIAS + 0x1164}, bytes(64), one_call(code))
    assert (len(found), end) == (n_frames, "BAD_CFA")


def pieces(space: AddressSpace) -> list[tuple[int, int, int, int]]:
    """Start, end, bias, module of each."""
    return list(zip(*(column.tolist() for column in space.columns()), strict=True))


def test_mappings_cut_what_they_overlap() -> None:
    space = AddressSpace()
    space.map(0x1000, 0x9000, 0, 1)
    space.map(0x3000, 0x4000, 0x100, 2)
    space.unmap(0x6000, 0x7000)
    child = space.copy()
    space.map_anonymous(0, 0x10000)
    assert pieces(child) == [
        (0x1000, 0x3000, 0, 1), (0x3000, 0x4000, 0x100, 2), (0x4000, 0x6000, 0, 1), (0x7000, 0x9000, 0, 1),
    ]  # fmt: skip
    assert {module_ for *_, module_ in pieces(space)} == {NO_MODULE}
    assert (pieces(space)[0][0], pieces(space)[-1][1]) == (0, 0x10000)


def test_memory_ends_at_2_to_the_64() -> None:
    space = AddressSpace()
    space.map((1 << 64) - 0x1000, (1 << 64) + 0x1000, 0, 1)
    space.unmap((1 << 64) - 0x800, 1 << 70)
    assert [column.tolist() for column in space.columns()[:2]] == [[(1 << 64) - 0x1000], [(1 << 64) - 0x800]]


CODE_MODULE = 5
# What is mapped over code at 0x2000 to 0x2100 in memory from 0x2000 to 0x3000, and whether the code is still there.
OVER_CODE = {
    "merged with a neighbour": (lambda s: s.map_anonymous(0x1000, 0x3000), True),
    "cut in two": (lambda s: s.map_anonymous(0x2000, 0x2080), True),
    "written to": (lambda s: s.unmap_anonymous(0x1000, 0x3000), True),
    "written to and executable again": (lambda s: (s.unmap_anonymous(0, 0x9000), s.map_anonymous(0, 0x9000)), True),
    "a file": (lambda s: s.map(0x1000, 0x3000, 0, 1), False),
    "a file's data": (lambda s: s.unmap(0x1000, 0x3000), False),
    "a file, then memory": (lambda s: (s.map(0x1000, 0x3000, 0, 1), s.map_anonymous(0x1000, 0x3000)), False),
    "replaced": (lambda s: s.unload(0x2000, 0x2100), False),
}


@pytest.mark.parametrize("case", OVER_CODE)
def test_what_ends_code_in_memory(case: str) -> None:
    change, is_left = OVER_CODE[case]
    space = AddressSpace()
    space.map_anonymous(0x2000, 0x3000)
    space.load(0x2000, 0x2100, 7, CODE_MODULE)
    change(space)
    assert any(module_ == CODE_MODULE for *_, module_ in pieces(space)) == is_left


def test_code_in_a_files_memory() -> None:
    """A runtime's own functions that its dump lists. What changes the protection of the pages does not end them."""
    space = AddressSpace()
    space.map(0x1000, 0x9000, 0x100, 1)
    space.load(0x2000, 0x2100, 7, CODE_MODULE)
    before = pieces(space)
    space.unmap(0x1000, 0x9000, 0x100, 1)
    space.map(0x2000, 0x4000, 0x100, 1)
    assert pieces(space) == before
    space.map(0x1000, 0x9000, 0x200, 1)
    assert pieces(space) == [(0x1000, 0x9000, 0x200, 1)]


CHANGES = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 40), st.integers(-5, 9), st.integers(0, 3)), max_size=40
)
FORK, UNMAP, WRITE, ANONYMOUS, UNLOAD = range(-5, 0)
FIRST_CODE = 6  # a module number


@examples(100)
@given(CHANGES)
def test_any_changes_of_processes_that_fork(changes: list[tuple[int, int, int, int]]) -> None:
    """Against one module for each byte. At a fork, child and parent change apart. Files have a bias that grows, so that
    none is mapped over itself."""
    spaces: list[tuple[AddressSpace, dict[int, int]]] = [(AddressSpace(), {})]
    for nth, (start, size, change, of) in enumerate(changes):
        space, held = spaces[of % len(spaces)]
        end, memory = start + size, range(start, start + size)
        if change == FORK:
            spaces.append((space.copy(), dict(held)))
        elif change == UNMAP:
            space.unmap(start, end)
            [held.pop(at, None) for at in memory]
        elif change == WRITE:
            space.unmap_anonymous(start, end)
            [held.pop(at) for at in memory if 0 <= held.get(at, NO_MODULE) < FIRST_CODE]
        elif change == ANONYMOUS:
            space.map_anonymous(start, end)
            held.update((at, NO_MODULE) for at in memory if held.get(at, 0) < FIRST_CODE)
        elif change == UNLOAD:
            space.unload(start, end)
            held.update(dict.fromkeys(memory, NO_MODULE))
        elif change < FIRST_CODE:
            space.map(start, end, nth + 1, change)
            held.update(dict.fromkeys(memory, change))
        else:
            space.load(start, end, nth + 1, change)
            held.update(dict.fromkeys(memory, change))
        for each, of_each in spaces:
            found = pieces(each)
            assert found == sorted(found)
            told = [(at, m) for begin, stop, _, m in found for at in range(begin, stop)]
            assert told == sorted(of_each.items())
