"""Call-frame information, expressions and steps from frame to frame, against plain Python and pyelftools."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from builders.cfi import RBX, RIP, RSP, EhFrame, advance, def_cfa, saved_at, sleb, uleb
from conftest import examples
from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st
from recordings import content

from traceferry.files.source import Source
from traceferry.symbolication.binary import Binary
from traceferry.unwinding._cfi import RuleSets
from traceferry.unwinding._unwinder import End, Unwinder
from traceferry.unwinding.machine import I386, X86_64, Machine, UserStacks
from traceferry.unwinding.modules import Module, Section, open_module
from traceferry.unwinding.spaces import AddressSpace

WORDS = 1 << 64
START, SIZE = 0x1000, 256
FACTOR = -8  # EhFrame's
KINDS = ("", "undefined", "same", "offset", "val_offset", "register", "expression", "val_expression", "register")
Value = int | bytes
Rules = dict[Any, tuple[Any, ...]]  # of "cfa" and of registers


def module(frame: EhFrame, machine: Machine = X86_64) -> Module:
    return Module("app", machine, False, (Section(memoryview(bytes(frame.data)), frame.address),))


def rows_of(app: Module) -> tuple[list[tuple[int, Rules | None]], int]:
    """(address, rules) of each row, and how many records cannot be read."""
    held = RuleSets()
    rows, problems = app.rows(held)
    sets, rules, pool = held.arrays

    def value(rule: Any) -> Value:
        if not KINDS[rule["kind"]].endswith("expression"):
            return int(rule["value"])
        place = int(rule["value"])
        return pool[place >> 16 : (place >> 16) + (place & 0xFFFF)].tobytes()

    def as_dict(number: int) -> Rules:
        cfa, mine = sets[number]["cfa"], rules[sets[number]["first"] :][: sets[number]["n"]]
        found: Rules = {int(rule["number"]): (KINDS[rule["kind"]], value(rule)) for rule in mine}
        register = (int(cfa["number"]),) if KINDS[cfa["kind"]] == "register" else ()
        return found | {"cfa": (KINDS[cfa["kind"]], *register, value(cfa))}

    decoded = [as_dict(rule) if rule >= 0 else None for rule in rows.rule.tolist()]
    return list(zip(rows.pc.tolist(), decoded, strict=True)), sum(problem.n_bad for problem in problems)


# ---------------------------------------------------------------- LEB128


def leb(data: bytes, signed: bool) -> int | None:
    """The number at the start, modulo 2^64; None if it does not end, or not within ten bytes."""
    value = 0
    for nth, byte in enumerate(data[:10]):
        value |= (byte & 0x7F) << 7 * nth
        if byte < 0x80:
            return (value - (signed and byte >> 6 & 1) * (1 << 7 * nth + 7)) % WORDS
    return None


@examples(200)
@given(st.lists(st.integers(0x80, 0xFF), max_size=11), st.integers(0, 0x7F), st.booleans())
def test_leb128(begin: list[int], end: int, signed: bool) -> None:
    """Of any length; as the offset of a CFA, which in its signed form is factored."""
    number = bytes([*begin, end])
    frame = EhFrame().fde(START, SIZE, bytes([0x13 if signed else 0x0E]) + number)
    found, n_bad = rows_of(module(frame))
    expected = leb(number, signed)
    assert n_bad == (expected is None)
    if expected is not None:
        assert found[0][1] is not None
        assert found[0][1]["cfa"][2] % WORDS == expected * (FACTOR if signed else 1) % WORDS


# ---------------------------------------------------------------- rows

REGISTERS, OFFSETS, FACTORED = (
    st.sampled_from([RBX, RIP, 12, 18]),
    st.integers(0, 1 << 40),
    st.integers(-(1 << 40), 1 << 40),
)
CODE = st.binary(max_size=6)
N_REGISTERS = X86_64.n_registers


def block(code: bytes) -> bytes:
    return uleb(len(code)) + code


# What an instruction is made of, and its bytes.
INSTRUCTIONS: dict[str, tuple[tuple[st.SearchStrategy[Any], ...], Callable[..., bytes]]] = {
    "nop": ((), lambda: b"\0"),
    "advance": (
        (st.integers(1, 300), st.booleans()),
        lambda n, is_short: advance(n) if is_short else b"\4" + struct.pack("<I", n) if n > 255 else b"\2" + bytes([n]),
    ),
    "def_cfa": ((REGISTERS, OFFSETS), lambda r, n: b"\x0c" + uleb(r) + uleb(n)),
    "def_cfa_sf": ((REGISTERS, FACTORED), lambda r, n: b"\x12" + uleb(r) + sleb(n)),
    "def_cfa_register": ((REGISTERS,), lambda r: b"\x0d" + uleb(r)),
    "def_cfa_offset": ((OFFSETS,), lambda n: b"\x0e" + uleb(n)),
    "def_cfa_offset_sf": ((FACTORED,), lambda n: b"\x13" + sleb(n)),
    "def_cfa_expression": ((CODE,), lambda code: b"\x0f" + block(code)),
    "offset": ((REGISTERS, OFFSETS), lambda r, n: bytes([0x80 | r]) + uleb(n)),
    "offset_extended": ((REGISTERS, OFFSETS), lambda r, n: b"\x05" + uleb(r) + uleb(n)),
    "offset_extended_sf": ((REGISTERS, FACTORED), lambda r, n: b"\x11" + uleb(r) + sleb(n)),
    "offset_negative": ((REGISTERS, OFFSETS), lambda r, n: b"\x2f" + uleb(r) + uleb(n)),
    "val_offset": ((REGISTERS, OFFSETS), lambda r, n: b"\x14" + uleb(r) + uleb(n)),
    "val_offset_sf": ((REGISTERS, FACTORED), lambda r, n: b"\x15" + uleb(r) + sleb(n)),
    "undefined": ((REGISTERS,), lambda r: b"\x07" + uleb(r)),
    "same": ((REGISTERS,), lambda r: b"\x08" + uleb(r)),
    "register": ((REGISTERS, REGISTERS), lambda r, other: b"\x09" + uleb(r) + uleb(other)),
    "expression": ((REGISTERS, CODE), lambda r, code: b"\x10" + uleb(r) + block(code)),
    "val_expression": ((REGISTERS, CODE), lambda r, code: b"\x16" + uleb(r) + block(code)),
    "restore": ((REGISTERS,), lambda r: bytes([0xC0 | r])),
    "restore_extended": ((REGISTERS,), lambda r: b"\x06" + uleb(r)),
    "remember": ((), lambda: b"\x0a"),
    "recall": ((), lambda: b"\x0b"),
    "args_size": ((OFFSETS,), lambda n: b"\x2e" + uleb(n)),
}
Instruction = tuple[str, tuple[Any, ...]]
OFTEN = ["advance"] * 8 + ["remember", "recall"] * 3
ANY_INSTRUCTION = st.sampled_from([*INSTRUCTIONS, *OFTEN]).flatmap(
    lambda name: st.tuples(st.just(name), st.tuples(*INSTRUCTIONS[name][0]))
)


def as_bytes(instructions: Sequence[Instruction]) -> bytes:
    return b"".join(INSTRUCTIONS[name][1](*parts) for name, parts in instructions)


def interpreted(instructions: Sequence[Instruction], initial: Rules) -> Iterator[tuple[int, Rules | None]]:
    """(address, rules) from START on, as DWARF's section 6.4.2 says; None where an instruction has no meaning."""
    pc, rules, remembered = START, dict(initial), []
    for name, parts in instructions:
        kind = name.partition("_extended")[0].removesuffix("_sf").removesuffix("_negative")
        if name == "advance":
            yield pc, dict(rules)
            pc += parts[0]
        elif name in ("def_cfa", "def_cfa_sf"):
            rules["cfa"] = ("register", parts[0], parts[1] * (FACTOR if name == "def_cfa_sf" else 1))
        elif name == "def_cfa_expression":
            rules["cfa"] = ("expression", parts[0])
        elif name.startswith("def_cfa"):
            if rules["cfa"][0] == "expression":
                yield pc, None
                return
            _, register, offset = rules["cfa"]
            by = parts[0] * (FACTOR if name.endswith("_sf") else 1)
            rules["cfa"] = ("register", parts[0], offset) if name == "def_cfa_register" else ("register", register, by)
        elif name == "remember":
            remembered.append(dict(rules))
        elif name == "recall":
            if not remembered:
                yield pc, None
                return
            rules = remembered.pop()
        elif parts and kind != "args_size" and parts[0] < N_REGISTERS:
            if kind == "restore":
                rules.pop(parts[0], None)
                rules |= {parts[0]: initial[parts[0]]} if parts[0] in initial else {}
            elif kind in ("offset", "val_offset"):
                rules[parts[0]] = (kind, parts[1] * (-FACTOR if name == "offset_negative" else FACTOR))
            elif kind == "register":
                rules[parts[0]] = (kind, min(parts[1], N_REGISTERS))
            else:
                rules[parts[0]] = (kind, parts[1] if len(parts) > 1 else 0)
    yield pc, rules


@examples(200)
@given(st.lists(ANY_INSTRUCTION, max_size=40), st.booleans())
def test_rows_of_any_instructions(instructions: list[Instruction], is_sound: bool) -> None:
    if is_sound:
        instructions = [one for one in instructions if one[0] not in ("recall", "def_cfa_expression")]
        instructions += [
            ("remember", ()),
            ("advance", (1, True)),
            *instructions,
            ("recall", ()),
            ("advance", (2, True)),
        ]
    frame = EhFrame().fde(START, SIZE, as_bytes(instructions))
    found, n_bad = rows_of(module(frame))
    expected = dict(interpreted(instructions, {"cfa": ("register", RSP, 8), RIP: ("offset", FACTOR)}))
    assert n_bad == any(rules is None and pc < START + SIZE for pc, rules in expected.items())
    for pc in range(START, START + SIZE):
        wanted = expected[max(at for at in expected if at <= pc)]
        if wanted is not None and wanted["cfa"][0] == "register" and wanted["cfa"][1] >= N_REGISTERS:
            wanted = None
        rules = next((rules for at, rules in reversed(found) if at <= pc), None)
        assert rules == wanted, hex(pc)
    assert found == [] or found[-1] == (START + SIZE, None) or found[-1][1] is None


BEFORE_THE_CFA = {
    "an offset, then an expression": (b"\x0e\0\x0f\4\x57\6\x23\x38", ("expression", b"\x57\6\x23\x38")),
    "an offset, then a register": (b"\x0e\x10\x0d\7", ("register", RSP, 16)),
    "a register, then an offset": (b"\x0d\7\x0e\x18", ("register", RSP, 24)),
    "an offset alone": (b"\x0e\x10", None),
}


@pytest.mark.parametrize("case", BEFORE_THE_CFA)
def test_a_cfa_that_is_begun_by_halves(case: str) -> None:
    """The first is how wasmtime starts a fiber: `.cfi_startproc simple` gives no CFA."""
    instructions, cfa = BEFORE_THE_CFA[case]
    found, n_bad = rows_of(module(EhFrame().fde(START, SIZE, instructions, begun=b"")))
    assert n_bad == 0
    assert (found[0][1]["cfa"] if found and found[0][1] else None) == cfa


def test_rows_of_a_binary_are_those_of_pyelftools() -> None:
    data = content("19/pool-pie")
    found, _ = rows_of(open_module(Binary(Source("pool-pie", memoryview(data)))))
    entries = ELFFile(io.BytesIO(data)).get_dwarf_info().EH_CFI_entries()
    n_compared = 0
    for entry in (entry for entry in entries if isinstance(entry, FDE)):
        for row in entry.get_decoded().table:
            rules = dict(next(rules for at, rules in reversed(found) if at <= row["pc"]) or {})
            cfa = row["cfa"]
            expected = ("expression", bytes(cfa.expr)) if cfa.expr is not None else ("register", cfa.reg, cfa.offset)
            assert rules.pop("cfa") == expected
            kinds = {r: rule for r, rule in row.items() if isinstance(r, int) and r < N_REGISTERS}
            assert {r: value for r, (kind, value) in rules.items() if kind == "offset"} == {
                r: rule.arg for r, rule in kinds.items() if rule.type == "OFFSET"
            }
            assert rules.keys() == kinds.keys()
            n_compared += 1
    assert n_compared > 100


# ---------------------------------------------------------------- expressions

SP, RETURN_AT = 0x7000, 0x40
DUMP = bytes(range(1, 129)) * 2
LITERALS = st.integers(0, WORDS - 1) | st.integers(0, 40) | st.sampled_from([SP, SP + 8, SP + 255, WORDS - 1, 1 << 31])
PLAIN = [0x06, 0x12, 0x13, 0x14, 0x16, 0x17, *range(0x19, 0x23), *range(0x24, 0x28), *range(0x29, 0x2F), 0x96]
OPERATIONS = st.lists(
    st.tuples(st.sampled_from(PLAIN), st.just(0))
    | st.tuples(st.just("push"), LITERALS)
    | st.tuples(st.just("breg"), st.integers(-64, 64))
    | st.tuples(st.just("pick"), st.integers(0, 4))
    | st.tuples(st.just("plus_uconst"), st.integers(0, 1 << 20))
    | st.tuples(st.just("deref_size"), st.sampled_from([1, 2, 3, 4, 8])),
    max_size=10,
)


class NoValueError(Exception):
    pass


def evaluated(operations: Sequence[tuple[Any, int]], cfa: int, size: int) -> int:
    """The top of the stack as DWARF's section 2.5 says, for words of so many bytes."""
    bits, stack = 8 * size, [cfa]

    def signed(value: int) -> int:
        return value - (1 << bits) if value >> (bits - 1) else value

    def load(address: int, n: int) -> int:
        if not SP <= address <= SP + len(DUMP) - n or n not in (1, 2, 4, 8):
            raise NoValueError
        return int.from_bytes(DUMP[address - SP : address - SP + n], "little")

    def divided(a: int, b: int) -> int:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    unary: dict[int, Callable[[int], int]] = {
        0x06: lambda a: load(a, size), 0x19: lambda a: abs(signed(a)), 0x1F: lambda a: -a, 0x20: lambda a: ~a,
    }  # fmt: skip
    binary: dict[int, Callable[[int, int], int]] = {
        0x1A: lambda a, b: a & b, 0x1B: lambda a, b: divided(signed(a), signed(b)), 0x1C: lambda a, b: a - b,
        0x1D: lambda a, b: a % b, 0x1E: lambda a, b: a * b, 0x21: lambda a, b: a | b, 0x22: lambda a, b: a + b,
        0x24: lambda a, b: a << min(b, 64), 0x25: lambda a, b: a >> min(b, 64),
        0x26: lambda a, b: signed(a) >> min(b, 64),
        0x27: lambda a, b: a ^ b, 0x29: lambda a, b: a == b, 0x2A: lambda a, b: signed(a) >= signed(b),
        0x2B: lambda a, b: signed(a) > signed(b), 0x2C: lambda a, b: signed(a) <= signed(b),
        0x2D: lambda a, b: signed(a) < signed(b), 0x2E: lambda a, b: a != b,
    }  # fmt: skip
    try:
        for op, value in operations:
            if op == "push":
                stack.append(value)
            elif op == "breg":
                stack.append(SP + value)
            elif op == "plus_uconst":
                stack.append(stack.pop() + value)
            elif op == "deref_size":
                stack.append(load(stack.pop(), value))
            elif op == "pick" or op in (0x12, 0x14):
                stack.append(stack[-1 - {0x12: 0, 0x14: 1}.get(op, value)])
            elif op == 0x13:
                stack.pop()
            elif op == 0x16:
                stack[-2:] = [stack[-1], stack[-2]]
            elif op == 0x17:
                stack[-3:] = [stack[-1], stack[-3], stack[-2]]
            elif op in unary:
                stack.append(unary[op](stack.pop()))
            elif op in binary:
                b = stack.pop()
                stack.append(binary[op](stack.pop(), b))
            stack[-1:] = [int(value) % (1 << bits) for value in stack[-1:]]
        return stack[-1]
    except (IndexError, ZeroDivisionError):
        raise NoValueError from None


def expression(operations: Sequence[tuple[Any, int]], machine: Machine) -> bytes:
    encodings: dict[Any, Callable[[int], bytes]] = {
        "push": lambda value: b"\x0e" + struct.pack("<Q", value),
        "breg": lambda n: bytes([0x70 + machine.sp]) + sleb(n),
        "pick": lambda n: bytes([0x15, n]),
        "plus_uconst": lambda n: b"\x23" + uleb(n),
        "deref_size": lambda n: bytes([0x94, n]),
    }
    return b"".join(encodings[op](n) if isinstance(op, str) else bytes([op]) for op, n in operations)


def unwind(app: Module, registers: dict[int, int], dump: bytes) -> tuple[list[int], End]:
    """What is at addresses is the module itself: its link addresses are those of the process."""
    recorded = b"".join(struct.pack("<Q", value) for value in registers.values())
    stacks = UserStacks(
        app.machine, False, np.frombuffer(recorded + dump, np.uint8), np.array(list(registers), np.int32),
        np.zeros(1, np.int64), np.array([len(recorded)]), np.array([len(dump)]), np.zeros(1, np.uint8),
    )  # fmt: skip
    space = AddressSpace()
    space.map(0, WORDS, 0, 0)
    chains = Unwinder([app], stacks).unwind(np.zeros(1, np.int64), space)
    return chains.pc.tolist(), End(int(chains.end[0]))


@examples(60)
@given(st.lists(LITERALS, min_size=3, max_size=5), OPERATIONS, st.integers(0, 3), st.sampled_from([X86_64, I386]))
def test_any_expression(values: list[int], some: list[tuple[Any, int]], shown: int, machine: Machine) -> None:
    """Some operations, then each: one of the values on the stack is the return address; at its bottom lies the CFA, 8
    bytes above the stack pointer."""
    pc, sp, word = machine.n_registers - 1, machine.sp, machine.word_size
    for last in PLAIN:
        operations = [*(("push", value) for value in values), *some, (last, 0), ("pick", shown)]
        code = b"\x16" + uleb(pc) + block(expression(operations, machine))
        frame = EhFrame().fde(START, SIZE, def_cfa(sp, 8) + code)
        frame.data[frame.data.index(b"\x78" + bytes([RIP])) + 1] = pc  # the CIE's return column
        found, _ = unwind(module(frame, machine), {sp: SP, pc: START + 8}, DUMP)
        try:
            wanted = evaluated(operations, SP + 8, word)
        except NoValueError:
            wanted = 0
        assert found[:2] == [START + 8, wanted][: 1 + (0 < wanted < WORDS)]


# ---------------------------------------------------------------- steps

N_FUNCTIONS = 4
SLOTS = st.integers(-3, 6)
RULES = st.dictionaries(
    st.sampled_from([RBX, RBX, 12, RSP, 0]),
    st.tuples(st.sampled_from(["offset", "val_offset"]), SLOTS)
    | st.tuples(st.sampled_from(["undefined", "same"]), st.just(0))
    | st.tuples(st.just("register"), st.sampled_from([0, RBX, 12, RSP])),
    max_size=4,
)
FUNCTIONS = st.lists(
    st.tuples(st.sampled_from([RSP, RBX]), st.integers(1, 3), RULES), min_size=N_FUNCTIONS, max_size=N_FUNCTIONS
)
RETURNS_TO = st.integers(0, N_FUNCTIONS - 1).map(lambda n: START + SIZE * n + 9)
DUMPS = st.lists(RETURNS_TO | RETURNS_TO | st.sampled_from([0, *range(SP, SP + 200, 8)]), min_size=4, max_size=24)


def encoded(rules: Rules) -> bytes:
    names = {"offset": b"\x11", "val_offset": b"\x15", "undefined": b"\7", "same": b"\x08", "register": b"\x09"}
    operands = {"offset": sleb, "val_offset": sleb, "register": uleb}
    return b"".join(names[kind] + uleb(r) + operands.get(kind, lambda _: b"")(n) for r, (kind, n) in rules.items())


def walked(
    functions: Sequence[tuple[int, int, Rules]], registers: dict[int, int], dump: Sequence[int]
) -> tuple[list[int], End]:
    """Frame by frame: the CFA, then each register that has a rule; the return address lies below the CFA."""
    pcs, pc, known, is_first = [], registers[RIP], {r: v for r, v in registers.items() if r != RIP}, True
    low, sp = registers[RSP], registers[RSP]

    def load(address: int) -> int | None:
        data = struct.pack(f"<{len(dump)}Q", *dump)
        at = address - low
        return struct.unpack_from("<Q", data, at)[0] if 0 <= at <= len(data) - 8 else None

    while True:
        if len(pcs) >= len(dump) + 2:
            return pcs, End.BAD_CFA
        pcs.append(pc)
        at = pc if is_first else pc - 1
        if not 0 <= at - START < SIZE * N_FUNCTIONS:
            return pcs, End.NO_CFI
        base, n_words, rules = functions[(at - START) // SIZE]
        if base not in known:
            return pcs, End.LOST_REGISTER
        cfa = known[base] + 8 * n_words
        caller = {r: v for r, v in known.items() if r in X86_64.callee_saved} | {RSP: cfa}
        for r, (kind, n) in sorted(rules.items()):
            value = known.get(r if kind == "same" else n)
            if kind == "offset":
                slot = cfa + FACTOR * n
                value = known.get(r) if 0 < sp - slot < 4096 else load(slot)
            elif kind == "val_offset":
                value = cfa + FACTOR * n
            elif kind == "undefined":
                value = None
            caller.pop(r, None)
            caller |= {r: value} if value is not None else {}
        returns_to = load(cfa - 8)
        if returns_to is None:
            return pcs, End.ELSEWHERE if cfa - 8 < low else End.TRUNCATED
        if returns_to == 0:
            return pcs, End.COMPLETE
        cfa = caller.get(RSP, cfa)
        if cfa < sp or (cfa == sp and not is_first):
            return pcs, End.BAD_CFA
        pc, sp, known, is_first = returns_to, cfa, caller, False


@examples(300)
@given(FUNCTIONS, DUMPS, st.lists(st.integers(0, 8).map(lambda n: SP + 8 * n), min_size=3, max_size=3))
def test_any_steps(functions: list[tuple[int, int, Rules]], dump: list[int], values: list[int]) -> None:
    frame = EhFrame()
    for nth, (base, n_words, rules) in enumerate(functions):
        frame.fde(START + SIZE * nth, SIZE, def_cfa(base, 8 * n_words) + saved_at(RIP, 1) + encoded(rules))
    registers = {RSP: SP, RIP: START + 7, **dict(zip((RBX, 12, 0), values, strict=True))}
    found = unwind(module(frame), registers, struct.pack(f"<{len(dump)}Q", *dump))
    assert found == walked(functions, registers, dump)
