"""Code of JIT compilers as symbols: by address, also where code was moved or replaced."""

import numpy as np
import pytest
from builders.jitdump import Function, Inlined, JitDump
from jit_recordings import LONG, content, dumps, read, strings_of

from traceferry.model import Trace, TraceBuilder
from traceferry.symbolication.code_symbols import MAX_DEPTH, CodeSymbols
from traceferry.symbolication.interface import Frames, Inline

CODE = 0x1000
F, G, H = Function("f", "a.js"), Function("g", "b.js"), Function("h", "c.js")


def dump_of(*loads: tuple[str, int, int, int]) -> JitDump:
    """(name, address, size, time)"""
    dump = JitDump(start=0)
    for name, address, size, ts in loads:
        dump.load(name, address, size, ts=ts)
    return dump


def text_of(frames: Frames, index: int) -> str:
    return frames.texts[index] if index >= 0 else ""


def shown(found: Frames) -> list[str]:
    """For each address "innermost source:line < outer source:line"."""
    frames = [
        f"{text_of(found, name)} {text_of(found, source)}:{line}"
        for name, source, line in zip(found.name.tolist(), found.source.tolist(), found.line.tolist(), strict=True)
    ]
    return [" < ".join(frames[begin:end]) for begin, end in zip(found.first[:-1], found.first[1:], strict=True)]


def names_at(trace: Trace, *addresses: int, at_ts: int | None = None) -> list[str]:
    found = CodeSymbols(trace, at_ts).lookup(np.array(addresses, np.uint64))
    return [text.partition(" ")[0] for text in shown(found)]


# ---------------------------------------------------------------- frames


def inlined() -> Trace:
    """f, with g in two pieces, h inside the second, and bytes without a line at the start."""
    calls = [Inlined(G, (12, 0), [(4, 4), (12, 4)], [Inlined(H, (22, 0), [(14, 2)])])]
    lines = [(2, "a.js", 10, 0), (4, "b.js", 20, 0), (8, "a.js", 11, 0), (12, "b.js", 21, 0), (14, "c.js", 30, 0)]
    return read(JitDump().inline_tree_a(F, lines, calls).load("JS:*f a.js:1:1", CODE, 16).bytes())


OWN = "JS:*f a.js:1:1"
STACKS = {
    0: f"{OWN} a.js:0",
    2: f"{OWN} a.js:10",
    4: f"g b.js:20 < {OWN} a.js:12",
    8: f"{OWN} a.js:11",
    12: f"g b.js:21 < {OWN} a.js:12",
    14: f"h c.js:30 < g b.js:22 < {OWN} a.js:12",
}


def test_lines_and_inlined_functions() -> None:
    found = CodeSymbols(inlined()).lookup(np.array([CODE + at for at in (*STACKS, 16)] + [CODE - 1], np.uint64))
    assert shown(found) == [*STACKS.values(), "", ""]
    assert found.start.tolist() == [CODE] * len(STACKS) + [0, 0]
    assert found.size.tolist() == [16] * len(STACKS) + [0, 0]


def test_whole_functions() -> None:
    (function,) = CodeSymbols(inlined()).functions()
    inner = Inline("h", ((CODE + 14, CODE + 16),), "b.js", 22)
    assert (function.name, function.start, function.size) == (OWN, CODE, 16)
    assert function.inlines == (Inline("g", ((CODE + 4, CODE + 8), (CODE + 12, CODE + 16)), "a.js", 12, (inner,)),)
    assert function.lines == [
        (CODE, "a.js", 0), (CODE + 2, "a.js", 10), (CODE + 4, "b.js", 20), (CODE + 8, "a.js", 11),
        (CODE + 12, "b.js", 21), (CODE + 14, "c.js", 30),
    ]  # fmt: skip


def test_inlined_calls_are_cut_at_128() -> None:
    nodes: list[Inlined] = []
    for nth in range(200, 0, -1):
        nodes = [Inlined(Function(f"i{nth}", "a.js"), (nth, 0), [(0, 16)], nodes)]
    trace = read(JitDump().inline_tree_a(F, [(0, "a.js", 1, 0)], nodes).load("f", CODE, 16).bytes())
    (stack,) = shown(CodeSymbols(trace).lookup(np.array([CODE], np.uint64)))
    assert stack.count("<") == MAX_DEPTH - 1


def test_the_highest_addresses() -> None:
    trace = read(dump_of(("f", (1 << 64) - 16, 16, 0)).bytes())
    assert names_at(trace, (1 << 64) - 17, (1 << 64) - 16, (1 << 64) - 1) == ["", "f", "f"]


# ---------------------------------------------------------------- which code

REUSED = {
    "the same place": ((("f", CODE, 16, 10), ("g", CODE, 16, 20)), ["g", "g"]),
    "a part of it": ((("f", CODE, 16, 10), ("g", CODE + 8, 8, 20)), ["", "g"]),
    "by something larger": ((("f", CODE + 8, 8, 10), ("g", CODE, 32, 20)), ["g", "g"]),
    "twice, the second elsewhere": ((("f", CODE, 16, 10), ("g", CODE + 8, 8, 20), ("h", CODE + 12, 8, 30)), ["", ""]),
    "not at all": ((("f", CODE, 8, 10), ("g", CODE + 8, 8, 20)), ["f", "g"]),
    "the same at the same time": ((("f", CODE, 16, 10), ("g", CODE, 16, 10)), ["g", "g"]),
    "by code of no size": ((("f", CODE, 16, 10), ("g", CODE, 0, 20)), ["f", "f"]),
}


@pytest.mark.parametrize("case", REUSED)
def test_addresses_that_are_used_again(case: str) -> None:
    """What lies on other code's addresses ends all of it."""
    loads, wanted = REUSED[case]
    assert names_at(read(dump_of(*loads).bytes()), CODE, CODE + 8) == wanted


TIMES = {9: "", 10: "f", 19: "f", 20: "g", 29: "g", 30: "h", 1000: "h"}


@pytest.mark.parametrize("at_ts", TIMES)
def test_the_code_of_a_time(at_ts: int) -> None:
    trace = read(dump_of(("f", CODE, 16, 10), ("g", CODE, 16, 20), ("h", CODE + 8, 16, 30)).bytes())
    assert names_at(trace, CODE + 8, at_ts=at_ts) == [TIMES[at_ts]]


def test_code_that_moves() -> None:
    trace = read(dump_of(("f", CODE, 16, 10)).move(CODE, CODE + 64, ts=20).bytes())
    assert names_at(trace, CODE, CODE + 64) == ["f", "f"]
    assert names_at(trace, CODE, CODE + 64, at_ts=15) == ["f", ""]
    assert names_at(trace, CODE, CODE + 64, at_ts=25) == ["", "f"]


def test_of_several_processes_the_last() -> None:
    loads = [JitDump(pid=pid, start=0).load(name, CODE, 16, ts=ts) for pid, name, ts in ((1, "f", 20), (2, "g", 10))]
    trace = read(*(dump.bytes() for dump in loads))
    assert names_at(trace, CODE) == ["f"]
    assert names_at(trace, CODE, at_ts=30) == ["f"]
    assert CodeSymbols(trace).build_id


def last_by_trying(places: list[tuple[int, int]]) -> list[bool]:
    return [
        not any(begin < other_end and other < end for other, other_end in places[nth + 1 :])
        for nth, (begin, end) in enumerate(places)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_what_nothing_later_overlaps(seed: int) -> None:
    random = np.random.default_rng(seed)
    begin, size = random.integers(0, 300, 60), random.integers(1, 20, 60)
    loads = [(f"f{nth}", CODE + int(b), int(s), nth) for nth, (b, s) in enumerate(zip(begin, size, strict=True))]
    kept = last_by_trying([(address, address + length) for _, address, length, _ in loads])
    functions = CodeSymbols(read(dump_of(*loads).bytes())).functions()
    assert {f.name for f in functions} == {load[0] for load, is_kept in zip(loads, kept, strict=True) if is_kept}


# ---------------------------------------------------------------- the recording


def test_the_library_of_the_code() -> None:
    trace = read(dump_of(("f", CODE + 32, 16, 10), ("g", CODE, 16, 20)).bytes())
    symbols = CodeSymbols(trace)
    lib = int(trace.symbols["lib"][0])
    assert (symbols.name, symbols.base) == ("jit-1.dump", CODE)
    assert symbols.build_id == strings_of(trace, "libs", "code_id", lib)
    assert [function.start for function in symbols.functions()] == [CODE, CODE + 32]


def test_code_of_two_recordings_has_no_build_id() -> None:
    both = [JitDump(pid=pid).load("f", CODE * pid, 16).bytes() for pid in (1, 2)]
    symbols = CodeSymbols(read(*both))
    assert (symbols.build_id, symbols.name) == ("", "")
    assert len(list(symbols.functions())) == 2


def test_no_code() -> None:
    symbols = CodeSymbols(TraceBuilder())
    found = symbols.lookup(np.array([1, 2], np.uint64))
    assert (found.first.tolist(), symbols.base, symbols.build_id, list(symbols.functions())) == ([0, 0, 0], 0, "", [])


@pytest.mark.parametrize("dump", dumps(large=LONG))
def test_real_dumps(dump: str) -> None:
    """The first, middle and last byte of every code object that lies there at the end have its frames."""
    trace = read(content(dump))
    symbols = CodeSymbols(trace)
    last = trace.code_mappings.take(trace.code_mappings["end_ts"] < 0)
    size = trace.code["size"][last["code"]]
    last, size = last.take(size > 0), size[size > 0].astype(np.uint64)
    for offset in (np.uint64(0), size // np.uint64(2), size - np.uint64(1)):
        found = symbols.lookup(last["address"] + offset)
        assert (found.start == last["address"]).all()
        assert (found.size == size).all()
        outermost = found.name[found.first[1:] - 1].tolist()
        names = [strings_of(trace, "symbols", "name", row) for row in trace.code["symbol"][last["code"]].tolist()]
        assert [text_of(found, index) for index in outermost] == names
