"""Each record of a jitdump, and each quirk of its producers, in versions 1 and 2 and in both byte orders.

Code lies at CODE and is 16 bytes long if nothing
else is said; a frame reads `function@file:line:column`, a stack begins with the outermost function.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders.jitdump import (
    ARCH_TIMESTAMP,
    BARE_EH_FRAME_HDR,
    GARBAGE,
    STEP,
    TIER,
    V8_BIAS,
    V8_EPOCH_US,
    V8_FREED,
    V8_PAD1,
    Function,
    Inlined,
    JitDump,
)
from jit_recordings import (
    CODE_SIZE,
    code_sizes,
    func_text,
    live_bytes,
    loads_of,
    places_of,
    stack_text,
    strings_of,
    symbol_text,
    text_of,
    tier_text,
)
from jit_recordings import read as read_dumps
from support import for_each, load_checked, report_of, thread_of

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.importers import jitdump
from traceferry.importers.jitdump.inlines import parse_b
from traceferry.importers.jitdump.layout import structs
from traceferry.model import Trace, TraceBuilder, laws
from traceferry.reading import ImportContext

CODE = 0x7F00_0000_1000
PID = 1000
START = 1_000_000_000
NAME = "JS:*f /home/dev/a.js:3:7"
FILE = "/home/dev/long-enough/a.js"

New = Callable[..., JitDump]


def begins(version: int, byte_order: str) -> New:
    """Begins a dump; `v8` one as Node writes it."""

    def begin(*, v8: bool = False, **options: Any) -> JitDump:
        make = JitDump.v8 if v8 else JitDump
        return make(version=version, byte_order=byte_order, **options)

    return begin


every_layout = for_each(
    "new", {f"version {version}, {order}": begins(version, order) for version in (1, 2) for order in "<>"}
)


def read(*dumps: JitDump, reported: dict[str, int] | None = None) -> Trace:
    """The trace, which obeys the laws; reported: all that its report says."""
    trace = read_dumps(*(dump.bytes() for dump in dumps))
    assert laws.check(trace) == []
    assert report_of(trace) == (reported or {})
    return trace


def stacks(trace: Trace, *offsets: int, code: int = 0) -> list[str]:
    return [stack_text(trace, code, offset) for offset in offsets]


def dumped(dump: JitDump, offset: int = 0) -> list[str]:
    return list(jitdump.dump(Source("jit-1.dump", memoryview(dump.bytes())), offset))


# ---------------------------------------------------------------- the file's header


@every_layout
def test_the_header_clock_is_not_that_of_the_records(new: New) -> None:
    for timestamp in (0, V8_EPOCH_US, START + 10**9):
        trace = read(new(timestamp=timestamp).load("f", CODE, ts=START).load("g", CODE + 64, ts=START + 5))
        assert trace.clock is not None
        assert (trace.clock.kind, trace.start_ts, trace.end_ts) == ("monotonic", START, START + 5)
        assert trace.code["loaded_at"].tolist() == [START, START + 5]


@pytest.mark.parametrize(("flags", "kind"), [
    (ARCH_TIMESTAMP, "tsc"),
    (0x2F31722F6D760103, "monotonic"),  # what was in memory, of LLVM's ORC
])  # fmt: skip
@every_layout
def test_a_processor_counter_is_a_clock_of_its_own(new: New, flags: int, kind: str) -> None:
    trace = read(new(flags=flags).load("f", CODE))
    assert trace.clock is not None
    assert trace.clock.kind == kind


@pytest.mark.parametrize("header_bytes", [40, 41, 48, 100])
@every_layout
def test_records_begin_where_the_header_says(new: New, header_bytes: int) -> None:
    assert len(read(new(header_bytes=header_bytes).load("f", CODE)).code) == 1


@pytest.mark.parametrize("pad1", [0, V8_PAD1, 0xFFFF_FFFF, 12345])
@every_layout
def test_the_padding_of_the_header_is_anything(new: New, pad1: int) -> None:
    assert len(read(new(pad1=pad1, elf_mach=0).load("f", CODE)).code) == 1


def test_headers_that_are_none() -> None:
    for data in (b"", b"JiTD", JitDump().bytes()[:39], JitDump(version=3).bytes(), JitDump(version=0).bytes()):
        with pytest.raises(FormatError, match="not a supported jitdump"):
            read_dumps(data)
        assert not jitdump.sniff(memoryview(data))
    with pytest.raises(FormatError):
        read_dumps(b"\0" * 40)
    small = bytearray(JitDump().bytes())
    small[8] = 39
    assert not jitdump.sniff(memoryview(bytes(small)))


@every_layout
def test_a_dump_is_recognized_and_its_producer_and_version_are_kept(new: New) -> None:
    dump = new().load(NAME, CODE)
    assert jitdump.sniff(memoryview(dump.bytes()))
    (seen,) = read(dump).inputs
    assert (seen.path, seen.format, seen.producer) == ("jit-1.dump", "jitdump", "V8")
    assert seen.version in ("1", "2")


@every_layout
def test_a_header_alone_is_an_empty_recording(new: New) -> None:
    trace = read(new())
    assert len(trace.code) == 0
    assert [thread.name for _, thread in trace.threads] == []


@pytest.mark.parametrize(("elf_mach", "arch"), [(62, "x86_64"), (183, "arm64"), (22, "s390x"), (0, ""), (9999, "")])
@every_layout
def test_the_library_is_one_that_samply_serves(new: New, elf_mach: int, arch: str) -> None:
    """debugId: the bytes JITD, pid, time stamp as a Microsoft GUID, and the age 0."""
    trace = read(new(pid=0x0102_0304, timestamp=0x1122_3344_5566_7788, elf_mach=elf_mach).load("f", CODE))
    (name, debug_id, code_id, seen) = (strings_of(trace, "libs", c, 0) for c in ("name", "debug_id", "code_id", "arch"))
    assert (name, seen) == ("jit-1.dump", arch)
    assert debug_id == "4454494A" + "0304" + "0102" + "8877665544332211" + "0"
    assert code_id == ("4a495444" + "04030201" + "8877665544332211" + elf_mach.to_bytes(4, "little").hex())


# ---------------------------------------------------------------- CODE_LOAD


@every_layout
def test_a_load(new: New) -> None:
    trace = read(new(pid=5).load(NAME, CODE, code=b"\x55\x48\xc3", tid=7, index=9, ts=START))
    row = {c: trace.code[c][0].item() for c in ("pid", "tid", "size", "loaded_at")}
    assert row == {"pid": 5, "tid": 7, "size": 3, "loaded_at": START}
    assert (func_text(trace, 0), symbol_text(trace, 0)) == ("f@/home/dev/a.js:3:7", NAME)
    assert tier_text(trace, 0) == "Turbofan green"
    assert places_of(trace, 0) == [(CODE, START, -1)]
    assert bytes(trace.code_readers[0].bytes_of(0)) == b"\x55\x48\xc3"


@every_layout
def test_the_bytes_stay_in_the_file(new: New) -> None:
    """bytes_at is where they lie, for disassembly later."""
    dump = new().load("f", CODE, code=b"first").load("g", CODE + 64, code=b"second").load("empty", CODE + 128, code=b"")
    trace = read(dump)
    at, size = trace.code["bytes_at"].tolist(), trace.code["size"].tolist()
    assert [dump.bytes()[a : a + n] for a, n in zip(at, size, strict=True)] == [b"first", b"second", b""]


@every_layout
def test_the_code_is_the_end_of_its_record(new: New) -> None:
    """perf counts from the record's end; only what lies between name and code can be padding."""
    trace = read(new().load(b"f\0\0\0", CODE, code=b"code"))
    assert bytes(trace.code_readers[0].bytes_of(0)) == b"code"
    assert symbol_text(trace, 0) == "f"


@pytest.mark.parametrize("length", range(1, 10))
@every_layout
def test_records_at_any_alignment(new: New, length: int) -> None:
    dump = new().load("f" * length, CODE, code=b"c" * (length + 1)).debug_info(CODE + 64, [(CODE + 64, 4, 2, "/a.c")])
    trace = read(dump.load("g", CODE + 64))
    assert symbol_text(trace, 0) == "f" * length
    assert stacks(trace, 0, code=1) == ["g@/a.c:4:2"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("ünïcödé", "ünïcödé"), ("名前.メソッド", "名前.メソッド"), ("x" * 5000, "x" * 5000), (b"a\xffb", "a\ufffdb"),
        (b"", "(anonymous)"), ("two words", "two words"),
    ],
)  # fmt: skip
@every_layout
def test_names(new: New, given: str | bytes, name: str) -> None:
    trace = read(new().load(given, CODE))
    assert trace.func_name(int(trace.code["func"][0])) == name


@every_layout
def test_code_indices_may_repeat_and_jump(new: New) -> None:
    trace = read(new().load("f", CODE, index=7).load("g", CODE + 64, index=7).load("h", CODE + 128, index=2**64 - 1))
    assert [symbol_text(trace, code) for code in range(3)] == ["f", "g", "h"]


@every_layout
def test_equal_names_are_one_function_and_several_code_objects(new: New) -> None:
    trace = read(new().load(NAME, CODE).load(NAME, CODE + 64).load(NAME.replace("*", "^"), CODE + 128))
    assert len(set(trace.code["func"].tolist())) == 1
    assert [tier_text(trace, code) for code in range(3)] == ["Turbofan green", "Turbofan green", "Baseline blue"]


@every_layout
def test_addresses_in_the_library_follow_each_other(new: New) -> None:
    """In the order of the records, as samply has them, wherever the code lies."""
    trace = read(new().load("f", CODE, 16).load("g", CODE - 4096, 5).load("h", CODE + 4096, 1))
    assert trace.symbols["address"].tolist() == [0, 16, 21]
    assert trace.symbols["size"].tolist() == [16, 5, 1]
    (frame,) = trace.code_readers[0].frames_at(trace, 1, 3)
    assert trace.frames["address"][frame] == 19
    assert (trace.frames["code"][frame], trace.frames["symbol"][frame], trace.frames["lib"][frame]) == (1, 1, 0)


@every_layout
def test_addresses_up_to_the_last(new: New) -> None:
    top = 2**64 - 16
    trace = read(new().debug_info(top, [(top + 4, 2, 0, "/a.c")]).load("f", top).load("g", 0))
    assert [places_of(trace, code)[0][0] for code in range(2)] == [top, 0]
    assert stacks(trace, 5) == ["f@/a.c:2"]


@every_layout
def test_a_thread_number_that_no_kernel_gives_is_the_main_thread(new: New) -> None:
    """BEAM writes what pthread_self returns."""
    trace = read(new().load("m:f/1", CODE, tid=0xF7A1_B2C3))
    assert [thread.tid for _, thread in trace.threads if thread.name != CODE_SIZE] == [PID]


@every_layout
def test_a_load_whose_size_is_wrong_keeps_its_name(new: New) -> None:
    dump = new().load("f", CODE, 64)
    data = dump.bytes()
    # The code size is the fifth field: 40 of the header, 16 of the record, and three fields.
    order = "little" if data[:4] == b"DTiJ" else "big"
    at = 40 + 16 + 8 + 8 + 8
    for size in (65 + 2, 1000, 2**31 - 1):
        trace = read_dumps(data[:at] + size.to_bytes(8, order) + data[at + 8 :])
        assert laws.check(trace) == []
        assert (symbol_text(trace, 0)[:1], int(trace.code["bytes_at"][0])) == ("f", -1)
        assert bytes(trace.code_readers[0].bytes_of(0)) == b""
    for size in (2**31, 2**63, 2**64 - 1):
        trace = read_dumps(data[:at] + size.to_bytes(8, order) + data[at + 8 :])
        assert laws.check(trace) == []
        assert (len(trace.code), report_of(trace)) == (0, {"bad_record": 1})


@every_layout
def test_records_that_are_too_short_for_their_fields(new: New) -> None:
    dump = new().load("f", CODE)
    for record_id in (0, 1, 2, TIER, 827346261):
        dump.raw(record_id, b"\1" * 7)
    trace = read(dump.load("g", CODE + 64), reported={"bad_record": 5})
    assert [symbol_text(trace, code) for code in range(2)] == ["f", "g"]


# ---------------------------------------------------------------- where code lies, and when


@every_layout
def test_loads_live_until_something_replaces_them(new: New) -> None:
    """A later load ends whatever it overlaps, as a whole, from its time on."""
    dump = new()
    dump.load("a", CODE, 16, ts=START).load("b", CODE + 16, 16, ts=START + 1).load("c", CODE + 32, 16, ts=START + 2)
    trace = read(dump.load("d", CODE + 24, 10, ts=START + 9))
    assert [places_of(trace, code) for code in range(4)] == [
        [(CODE, START, -1)],
        [(CODE + 16, START + 1, START + 9)],
        [(CODE + 32, START + 2, START + 9)],
        [(CODE + 24, START + 9, -1)],
    ]


@every_layout
def test_neighbours_end_nothing(new: New) -> None:
    trace = read(new().load("a", CODE, 16).load("b", CODE + 16, 16).load("c", CODE - 16, 16))
    assert trace.code_mappings["end_ts"].tolist() == [-1, -1, -1]


@every_layout
def test_the_same_address_again_and_again(new: New) -> None:
    dump = new()
    for nth in range(5):
        dump.load(f"f{nth}", CODE, 16 - nth, ts=START + nth)
    trace = read(dump)
    assert [places_of(trace, code)[0][1:] for code in range(5)] == [
        *((START + nth, START + nth + 1) for nth in range(4)), (START + 4, -1),
    ]  # fmt: skip


@every_layout
def test_code_of_no_size_ends_nothing_and_nothing_ends_it(new: New) -> None:
    trace = read(new().load("a", CODE, 16).load("nothing", CODE + 4, 0).load("b", CODE, 16))
    assert trace.code_mappings["end_ts"].tolist() == [START + 3 * STEP, -1, -1]


@every_layout
def test_time_stamps_that_run_backwards(new: New) -> None:
    """JavaScriptCore's queue writes some records late: their times count, not their order."""
    trace = read(new().load("late", CODE, 16, ts=START + 500).load("early", CODE, 16, ts=START + 124))
    assert places_of(trace, 0) == [(CODE, START + 500, -1)]
    assert places_of(trace, 1) == [(CODE, START + 124, START + 500)]
    assert [row["function"] for row in loads_of(trace, PID)] == ["early", "late"]


@every_layout
def test_loads_of_one_time_go_by_their_order(new: New) -> None:
    trace = read(new().load("first", CODE, ts=START).load("second", CODE, ts=START))
    assert places_of(trace, 1) == [(CODE, START, -1)]
    assert places_of(trace, 0) == [(CODE, START, START)]


NEW_PLACE = CODE + 0x10000
MOVES: dict[str, tuple[Callable[[JitDump], object], list[list[tuple[int, int]]], dict[str, int]]] = {
    # (address, end) of f and of g, which lie at CODE and CODE + 64, with indices 0 and 1; the move is at START + 9.
    "index and address": (
        lambda d: d.move(CODE, NEW_PLACE, ts=START + 9), [[(CODE, 9), (NEW_PLACE, -1)], [(CODE + 64, -1)]], {},
    ),
    "by address, an unknown index": (
        lambda d: d.move(CODE, NEW_PLACE, index=77, ts=START + 9),
        [[(CODE, 9), (NEW_PLACE, -1)], [(CODE + 64, -1)]], {},
    ),
    "by address, another's index": (
        lambda d: d.move(CODE + 64, NEW_PLACE, index=0, ts=START + 9),
        [[(CODE, -1)], [(CODE + 64, 9), (NEW_PLACE, -1)]], {},
    ),
    "unknown": (
        lambda d: d.move(CODE + 4096, NEW_PLACE, index=77, ts=START + 9),
        [[(CODE, -1)], [(CODE + 64, -1)]], {"moved_unknown": 1},
    ),
    "from where it is no longer": (
        lambda d: d.move(CODE, NEW_PLACE, ts=START + 9).move(CODE, NEW_PLACE + 64, index=0, ts=START + 10),
        [[(CODE, 9), (NEW_PLACE, -1)], [(CODE + 64, -1)]], {"moved_unknown": 1},
    ),
    "twice": (
        lambda d: d.move(CODE, NEW_PLACE, ts=START + 9).move(NEW_PLACE, NEW_PLACE + 64, ts=START + 10),
        [[(CODE, 9), (NEW_PLACE, 10), (NEW_PLACE + 64, -1)], [(CODE + 64, -1)]], {},
    ),
    "there and back": (
        lambda d: d.move(CODE, NEW_PLACE, ts=START + 9).move(NEW_PLACE, CODE, ts=START + 10),
        [[(CODE, 9), (NEW_PLACE, 10), (CODE, -1)], [(CODE + 64, -1)]], {},
    ),
    "onto another": (
        lambda d: d.move(CODE, CODE + 60, ts=START + 9), [[(CODE, 9), (CODE + 60, -1)], [(CODE + 64, 9)]], {},
    ),
    "onto itself": (
        lambda d: d.move(CODE, CODE + 8, ts=START + 9), [[(CODE, 9), (CODE + 8, -1)], [(CODE + 64, -1)]], {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MOVES)
@every_layout
def test_moves(new: New, case: str) -> None:
    move, wanted, reported = MOVES[case]
    dump = new().load("f", CODE, ts=START).load("g", CODE + 64, ts=START)
    move(dump)
    trace = read(dump, reported=reported)
    seen = [[(a, to - START if to >= 0 else -1) for a, _, to in places_of(trace, code)] for code in range(2)]
    assert seen == wanted


@every_layout
def test_lines_move_with_their_code(new: New) -> None:
    dump = new().debug_info(CODE, [(CODE, 1, 0, "/a.c"), (CODE + 8, 2, 0, "/a.c")]).load("f", CODE)
    assert stacks(read(dump.move(CODE, NEW_PLACE)), 0, 8) == ["f@/a.c:1", "f@/a.c:2"]


@every_layout
def test_close_ends_the_loads_and_not_the_code(new: New) -> None:
    trace = read(new().load("f", CODE).close().close())
    assert trace.code_mappings["end_ts"].tolist() == [-1]


@every_layout
def test_live_code_is_counted_in_all_and_for_each_tier(new: New) -> None:
    dump = new(v8=True).load("JS:~f /a.js:1:1", CODE, 10, ts=START)
    dump.load("JS:*f /a.js:1:1", CODE + 64, 100, ts=START + 1)
    dump.load("Builtin:X", CODE, 1000, ts=START + 2).move(CODE + 64, NEW_PLACE, ts=START + 3)
    assert live_bytes(read(dump)) == {
        "JIT code": [(START, 10), (START + 1, 110), (START + 2, 1000), (START + 3, 1100)],
        "JIT code: Builtin": [(START + 2, 1000)],
        "JIT code: Interpreter": [(START, 10), (START + 2, 0)],
        "JIT code: Turbofan": [(START + 1, 100), (START + 2, 0), (START + 3, 100)],
    }


@every_layout
def test_varieties_of_a_tier_are_counted_together(new: New) -> None:
    """Their family's name is the counter's; the tiers themselves stay apart."""
    dump = new(v8=True)
    for nth, marker in enumerate(["+", "+'", "o+", "*", "*'", "o*", "^"]):
        dump.load(f"JS:{marker}f /a.js:1:1", CODE + 64 * nth, 1 << nth, ts=START + nth)
    trace = read(dump)
    assert live_bytes(trace) == {
        "JIT code": [(START + nth, (2 << nth) - 1) for nth in range(7)],
        "JIT code: Baseline": [(START + 6, 64)],
        "JIT code: Maglev": [(START, 1), (START + 1, 3), (START + 2, 7)],
        "JIT code: Turbofan": [(START + 3, 8), (START + 4, 24), (START + 5, 56)],
    }
    assert len({tier_text(trace, code) for code in range(7)}) == 7


@every_layout
def test_a_recorded_tier_is_a_family_of_its_own(new: New) -> None:
    dump = new().tier(1, 5, "Fast").load("f", CODE, 10, ts=START).tier(2, 6, "Fast").load("g", CODE + 64, 5, ts=START)
    assert live_bytes(read(dump.load("h", CODE + 128, 1, ts=START + 1))) == {
        "JIT code": [(START, 15), (START + 1, 16)], "JIT code: Fast": [(START, 15)],
    }  # fmt: skip


# ---------------------------------------------------------------- DEBUG_INFO

Entries = list[tuple[int, int, int, str]]
LINES: dict[str, tuple[Entries, dict[int, str]]] = {
    # (offset, line, column, file) and the frames at offsets
    "an entry holds until the next": (
        [(0, 1, 5, "/a.c"), (4, 2, 0, "/a.c")], {0: "f@/a.c:1:5", 3: "f@/a.c:1:5", 4: "f@/a.c:2", 15: "f@/a.c:2"},
    ),
    "before the first there is no line": ([(4, 2, 1, "/a.c")], {3: "f@/a.c", 4: "f@/a.c:2:1"}),
    "several files": ([(0, 1, 1, "/a.c"), (4, 9, 1, "/b.h")], {0: "f@/a.c:1:1", 4: "f@/b.h:9:1"}),
    "the last of one address holds": (
        [(0, 1, 1, "/a.c"), (0, 2, 2, "/b.h"), (4, 3, 3, "/a.c"), (4, 4, 4, "/c.h")],
        {0: "f@/b.h:2:2", 4: "f@/c.h:4:4"},
    ),
    "addresses in disorder": (
        [(8, 3, 0, "/a.c"), (0, 1, 0, "/a.c"), (4, 2, 0, "/a.c"), (0, 7, 0, "/a.c")],
        {0: "f@/a.c:7", 4: "f@/a.c:2", 8: "f@/a.c:3"},
    ),
    "before the code, as BEAM writes": (
        [(-0x32, 0, 0, ""), (0, 5, 0, "/m.erl"), (16, 9, 0, "/m.erl")], {0: "f@/m.erl:5", 15: "f@/m.erl:5"},
    ),
    "the last before the code holds at its start": ([(-8, 5, 0, "/a.c"), (-4, 6, 0, "/a.c")], {0: "f@/a.c:6"}),
    "behind the code": ([(0, 1, 0, "/a.c"), (16, 2, 0, "/a.c"), (40, 3, 0, "/a.c")], {15: "f@/a.c:1"}),
    "line 0 is no line": ([(0, 0, 0, "/a.c"), (4, 2, 0, "/a.c")], {0: "f@/a.c", 4: "f@/a.c:2"}),
    "a line without a file": ([(0, 3, 0, "")], {0: "f@:3"}),
    "columns": ([(0, 1, 0, "/a.c"), (4, 1, 1, "/a.c"), (8, 1, 900, "/a.c")],
                {0: "f@/a.c:1", 4: "f@/a.c:1:1", 8: "f@/a.c:1:900"}),
    "numbers that do not fit are unknown": ([(0, 2**31, 2**32 - 1, "/a.c"), (4, 2**31 - 1, 1, "/a.c")],
                                            {0: "f@/a.c", 4: "f@/a.c:2147483647:1"}),
    "URLs and names that are no paths": (
        [(0, 1, 1, "file:///a b/c.js"), (2, 2, 1, "node:fs"), (4, 3, 1, "my-eval-source.js"), (6, 4, 1, "<unknown>"),
         (8, 5, 1, "self-hosted")],
        {0: "f@file:///a b/c.js:1:1", 2: "f@node:fs:2:1", 4: "f@my-eval-source.js:3:1", 6: "f@<unknown>:4:1",
         8: "f@self-hosted:5:1"},
    ),
    "file names in UTF-8": ([(0, 1, 0, "/größe/計算.ts")], {0: "f@/größe/計算.ts:1"}),
    "a file that is called like its prefix": ([(0, 1, 0, "/a"), (4, 2, 0, "/a.c"), (8, 3, 0, "/a")],
                                              {0: "f@/a:1", 4: "f@/a.c:2", 8: "f@/a:3"}),
    "none": ([], {0: "f"}),
}  # fmt: skip


@pytest.mark.parametrize("case", LINES)
@pytest.mark.parametrize("same_file_marker", [False, True], ids=["repeated", "same-file"])
@every_layout
def test_lines(new: New, case: str, same_file_marker: bool) -> None:
    entries, wanted = LINES[case]
    placed = [(CODE + offset, line, column, file) for offset, line, column, file in entries]
    trace = read(new().debug_info(CODE, placed, same_file_marker=same_file_marker).load("f", CODE))
    assert {offset: stack_text(trace, 0, offset) for offset in wanted} == wanted


@every_layout
def test_the_same_file_is_that_of_the_entry_before_in_this_record(new: New) -> None:
    """Not of the record before: there is nothing to repeat, and the bytes are taken for a name."""
    dump = new().debug_info(CODE, [(CODE, 1, 0, "/a.c")]).load("f", CODE)
    trace = read(dump.debug_info(CODE + 64, [(CODE + 64, 2, 0, b"\xff")]).load("g", CODE + 64))
    assert stacks(trace, 0, code=1) == ["g@\\xff:2"]


@pytest.mark.parametrize("padding", range(8))
@every_layout
def test_padding_behind_the_entries(new: New, padding: int) -> None:
    dump = new().debug_info(CODE, [(CODE, 4, 2, "/a.c")], padding=padding).load("f", CODE)
    assert stacks(read(dump), 0) == ["f@/a.c:4:2"]


@every_layout
def test_a_line_table_belongs_to_the_next_load(new: New) -> None:
    """Whatever stands between, and only to that one."""
    entries = [(CODE, 4, 2, "/a.c")]
    dump = new().debug_info(CODE, entries).unwinding().unknown().source("/x", "").load("f", CODE).load("g", CODE + 64)
    trace = read(dump, reported={"unknown_record": 1})
    assert stacks(trace, 0) == ["f@/a.c:4:2"]
    assert stacks(trace, 0, code=1) == ["g"]


@every_layout
def test_the_last_of_two_line_tables_holds(new: New) -> None:
    dump = new().debug_info(CODE, [(CODE, 1, 0, "/a.c")]).debug_info(CODE, [(CODE, 2, 0, "/b.c")]).load("f", CODE)
    assert stacks(read(dump), 0) == ["f@/b.c:2"]


BATCHES: dict[str, tuple[list[str], str, list[str], int]] = {
    # tables in front of the loads, by the code that they are of; loads; lines of the loads; how many tables are lost
    "in the order of their loads": (["f", "g"], "fg", ["f@/f.c:1", "g@/g.c:1"], 0),
    "in another order": (["f", "g"], "gf", ["g@/g.c:1", "f@/f.c:1"], 0),
    "the first load without one": (["g"], "fg", ["f", "g@/g.c:1"], 0),
    "the last load without one": (["f"], "fg", ["f@/f.c:1", "g"], 0),
    "one of code that is not loaded": (["f", "g"], "f", ["f@/f.c:1"], 1),
    "two names of one function": (["f", "f"], "ff", ["f@/f.c:1", "f@/f.c:1"], 0),
    "the next load where there is no address": (["0"], "fg", ["f@/0.c:1", "g"], 0),
    "behind the beginning": (["t"], "fg", ["f@/t.c:1", "g"], 0),
}  # fmt: skip
PLACES = {"f": CODE, "g": CODE + 64, "0": 0, "t": CODE + 1}


@pytest.mark.parametrize("case", BATCHES)
@every_layout
def test_line_tables_in_front_of_several_loads(new: New, case: str) -> None:
    """As LLVM's ORC writes them: each is of the load that has its address."""
    tables, loads, wanted, n_lost = BATCHES[case]
    dump = new()
    for name in tables:
        dump.debug_info(PLACES[name], [(PLACES[name] or CODE, 1, 0, f"/{name}.c")])
    for name in loads:
        dump.load(name, PLACES[name])
    trace = read(dump, reported={"lines_without_code": n_lost} if n_lost else {})
    assert [stack_text(trace, code, 1) for code in range(len(loads))] == wanted


@every_layout
def test_line_tables_and_loads_of_threads_that_write_at_once(new: New) -> None:
    dump = new().debug_info(CODE, [(CODE, 1, 0, "/f.c")]).debug_info(CODE + 64, [(CODE + 64, 1, 0, "/g.c")])
    dump.load("g", CODE + 64).debug_info(CODE + 128, [(CODE + 128, 1, 0, "/h.c")]).load("f", CODE)
    trace = read(dump.load("h", CODE + 128))
    assert [stack_text(trace, code, 0) for code in range(3)] == ["g@/g.c:1", "f@/f.c:1", "h@/h.c:1"]


@every_layout
def test_inlined_functions_in_front_of_several_loads(new: New) -> None:
    dump = new().inline_stacks_b(CODE, {0: [("f", "/f.js", 1, 1)]})
    dump.inline_stacks_b(CODE + 64, {0: [("g", "/g.js", 2, 1)]})
    dump.inline_info_c(CODE + 128, [(3, 1, "h", "/h.js")]).load("g", CODE + 64).load("h", CODE + 128).load("f", CODE)
    trace = read(dump)
    assert [stack_text(trace, code, 0) for code in range(3)] == ["g@/g.js:2:1", "h@/h.js:3:1", "f@/f.js:1:1"]


@every_layout
def test_a_function_without_a_file_in_its_name_takes_that_of_its_lines(new: New) -> None:
    trace = read(new().debug_info(CODE, [(CODE, 0, 0, ""), (CODE, 4, 2, "/a.c")]).load("f", CODE))
    assert func_text(trace, 0) == "f@/a.c:0:0"


@every_layout
def test_more_entries_than_there_are_bytes(new: New) -> None:
    """What is whole counts, and the report says that there should be more."""
    for count in (3, 2**31, 2**60, 2**64 - 1):
        entries = [(CODE, 1, 0, "/a.c"), (CODE + 4, 2, 0, "/a.c")]
        trace = read(new().debug_info(CODE, entries, count=count).load("f", CODE), reported={"line_table_dropped": 1})
        assert stacks(trace, 0, 4) == ["f@/a.c:1", "f@/a.c:2"]


@every_layout
def test_fewer_entries_than_there_are_bytes(new: New) -> None:
    entries = [(CODE, 1, 0, "/a.c"), (CODE + 4, 2, 0, "/a.c")]
    assert stacks(read(new().debug_info(CODE, entries, count=1).load("f", CODE)), 0, 4) == ["f@/a.c:1"] * 2


@every_layout
def test_an_entry_far_from_its_code_ends_the_table(new: New) -> None:
    entries = [(CODE, 1, 0, "/a.c"), (CODE + 2**40, 2, 0, "/a.c"), (CODE + 4, 3, 0, "/a.c")]
    trace = read(new().debug_info(CODE, entries).load("f", CODE), reported={"line_table_dropped": 1})
    assert stacks(trace, 8) == ["f@/a.c:1"]


@every_layout
def test_where_eh_frame_stands_does_not_matter(new: New) -> None:
    """All producers write it in front of its header, the specification says behind."""
    for options in ({}, {"header_first": True}, {"mapped_size": 4096}, {"pad_to": 1}):
        dump = new().debug_info(CODE, [(CODE, 1, 0, "/a.c")])
        dump.unwinding(b"\x14" * 76, BARE_EH_FRAME_HDR, **options).load("f", CODE)
        assert stacks(read(dump), 0) == ["f@/a.c:1"]


# ---------------------------------------------------------------- what V8 and LLVM do to their lines

B = V8_BIAS
BIASED: dict[str, tuple[bool, list[list[int]], bool]] = {
    # V8's padding word in the header; for each load the offsets of its entries as written; is there a bias?
    "V8, all at the start": (True, [[B, B + 4], [B]], True),
    "V8, one behind the code's end": (True, [[B, B + 15]], True),
    "V8, not at the start": (True, [[B + 4], [B + 8]], True),
    "V8, but one entry below": (True, [[B, B + 4], [B - 1]], False),
    "LLVM, and some behind the code": (False, [[B, B + 4], [B + 15]], True),
    "in one record only, as JavaScriptCore's": (False, [[0, 4], [B, B + 4]], False),
    "long code whose first lines are late": (False, [[B, B + 4]], False),
    "behind the code, but not all": (False, [[0, B], [B, B + 15]], False),
    "before the code": (False, [[-4, 4], [B + 15]], False),
    "no entries": (True, [[], []], False),
    "some without entries": (True, [[], [B]], True),
}  # fmt: skip


@pytest.mark.parametrize("case", BIASED)
@every_layout
def test_lines_that_are_40_hex_too_far(new: New, case: str) -> None:
    """Detected for a whole file, corrected and reported; and not where a file only looks a little like it."""
    is_v8, records, is_biased = BIASED[case]
    dump = new(pad1=V8_PAD1 if is_v8 else 0)
    size = 0x100 if case.startswith("long") else 16
    for nth, offsets in enumerate(records):
        at = CODE + 0x1000 * nth
        entries = [(at + offset, 10 + row, 0, FILE) for row, offset in enumerate(offsets)]
        dump.debug_info(at, entries).load(f"f{nth}", at, size)
    trace = read(dump, reported={"line_bias": sum(map(bool, records))} if is_biased else {})
    shift = B if is_biased else 0
    for nth, offsets in enumerate(records):
        for row, offset in enumerate(offsets):
            if 0 <= offset - shift < size:
                assert stacks(trace, offset - shift, code=nth) == [f"f{nth}@{FILE}:{10 + row}"]


@every_layout
def test_a_dump_of_v8_from_the_builder(new: New) -> None:
    dump = new(v8=True).debug_info(CODE, [(CODE, 3, 7, FILE), (CODE + 9, 4, 1, FILE)]).unwinding()
    trace = read(dump.load(f"JS:*f {FILE}:3:7", CODE), reported={"line_bias": 1})
    assert stacks(trace, 0, 8, 9) == [f"f@{FILE}:3:7", f"f@{FILE}:3:7", f"f@{FILE}:4:1"]


NAMES = {
    "a function": f"JS:*f {FILE}:3:7",
    "without a function": f"JS:~ {FILE}:3:7",
    "a function of two words": f"JS:*get len {FILE}:3:7",
    "a file with spaces": "JS:*f /home/dev/my own files/a b.js:3:7",
    "a script": f"Script:~ {FILE}:1:1",
    "a URL": "JS:*f file:///home/dev/sample/a.js:3:7",
    "UTF-8": "JS:*ünïcödé /home/dev/größe/計算/a.js:6:17",
}
FILES = {"a file with spaces": "/home/dev/my own files/a b.js", "a URL": "file:///home/dev/sample/a.js",
         "UTF-8": "/home/dev/größe/計算/a.js"}  # fmt: skip


@pytest.mark.parametrize("case", NAMES)
@pytest.mark.parametrize(
    "freed",
    [V8_FREED, bytes(16), b"\0" * 8 + b"\xff" * 8, b"\x01" * 16, b"\xff" * 16, b"\0" + b"x" * 15, b"x" * 15 + b"\0"],
    ids=["real", "zeros", "half zeros", "ones", "no utf-8", "first", "last"],
)  # fmt: skip
@every_layout
def test_file_names_that_v8_freed(new: New, case: str, freed: bytes) -> None:
    """The first 16 bytes are the allocator's, NULs among them: the name of the next load says what stood there."""
    file = FILES.get(case, FILE)
    entries = [(CODE, 3, 7, file), (CODE + 4, 4, 2, file), (CODE + 9, 5, 1, file)]
    trace = read(
        new(v8=True).debug_info(CODE, entries, freed=freed).load(NAMES[case], CODE),
        reported={"line_bias": 1, "file_name_repaired": 1},
    )
    assert [text.partition("@")[2] for text in stacks(trace, 0, 4, 9)] == [f"{file}:3:7", f"{file}:4:2", f"{file}:5:1"]
    # No trace of the wrong name is left.
    assert {trace.strings[path] for path in trace.sources["path"].tolist()} == {file}


@every_layout
def test_damaged_names_beside_good_ones(new: New) -> None:
    """Each record for itself; the good ones stay as they are."""
    dump = new(v8=True)
    for nth in range(6):
        at = CODE + 64 * nth
        entries = [(at + 4 * row, 10 * nth + row, 1, FILE) for row in range(nth + 1)]
        dump.debug_info(at, entries, freed=V8_FREED if nth % 2 else b"").load(f"JS:*f{nth} {FILE}:3:7", at, 64)
    trace = read(dump, reported={"line_bias": 6, "file_name_repaired": 3})
    lines = trace.code_readers[0].dump.lines  # type: ignore[attr-defined]
    assert (lines.stops - lines.starts).tolist() == [1, 2, 3, 4, 5, 6]
    # What is read again lies behind the others.
    assert sorted(range(6), key=lines.starts.tolist().__getitem__) == [0, 2, 4, 1, 3, 5]
    for nth in range(6):
        for row in range(nth + 1):
            line = f":{10 * nth + row}:1" if nth or row else ""
            assert stacks(trace, 4 * row, code=nth) == [f"f{nth}@{FILE}{line}"]


@every_layout
def test_names_that_cannot_be_repaired_lose_their_table_only(new: New) -> None:
    entries = [(CODE, 3, 7, FILE), (CODE + 4, 4, 2, FILE)]
    dump = new(v8=True).debug_info(CODE, entries, freed=V8_FREED).load("Builtin:X", CODE)
    dump.debug_info(CODE + 64, [(CODE + 64, 1, 1, FILE)]).load(f"JS:*g {FILE}:1:1", CODE + 64)
    trace = read_dumps(dump.bytes())
    assert laws.check(trace) == []
    assert report_of(trace) == {"line_bias": 1, "line_table_dropped": 1}
    assert (symbol_text(trace, 0), stacks(trace, 0)) == ("Builtin:X", ["X"])
    assert stacks(trace, 0, code=1) == [f"g@{FILE}:1:1"]


@pytest.mark.parametrize("freed", [V8_FREED, b"\x01" * 16], ids=["with NULs", "without"])
@pytest.mark.parametrize("n", [1, 2, 20])
@pytest.mark.parametrize(("name", "file"), [("Builtin:X", ""), ("JS:*X /other.js:1:1", "/other.js")])
@every_layout
def test_overwritten_names_are_never_shown(new: New, freed: bytes, n: int, name: str, file: str) -> None:
    """Not even if the table can be read as if its names were whole."""
    dump = new(v8=True).debug_info(CODE, [(CODE, 3, 7, FILE)] * n, freed=freed).load(name, CODE)
    trace = read(dump, reported={"line_table_dropped": 1})
    assert stacks(trace, 0) == [f"X@{file}" if file else "X"]
    assert [trace.strings[path] for path in trace.sources["path"].tolist()] == ([file] if file else [])


@pytest.mark.parametrize(
    "file", ["/größe/計算/名前.js", "/home/dev/x.js", "名前のとても長いファイル.js", "~", "/a b.js"]
)
@every_layout
def test_good_names_are_not_repaired(new: New, file: str) -> None:
    """A character may end in the middle of the sixteenth byte."""
    dump = new(v8=True).debug_info(CODE, [(CODE, 3, 7, file)]).load("JS:*f /other.js:3:7", CODE)
    trace = read(dump, reported={"line_bias": 1})
    assert stacks(trace, 0) == [f"f@{file}:3:7"]


# ---------------------------------------------------------------- V8's baseline code: tables of its bytecode

# Of one function: as `node --print-bytecode` has its bytecode, whose machine code is longer.
BYTECODE = [(0, 3, 7), (4, 4, 2), (11, 4, 9), (23, 5, 1), (32, 6, 3), *((32 + nth, 7, nth) for nth in range(1, 9))]
BYTECODE_LINES = [(CODE + offset, line, column, FILE) for offset, line, column in BYTECODE]
MACHINE_CODE = 396


@every_layout
def test_baseline_code_has_no_lines(new: New) -> None:
    """V8 writes the table of its bytecode. The function keeps its place, the report says what happened."""
    dump = new(v8=True).debug_info(CODE, BYTECODE_LINES).load(f"JS:^f {FILE}:3:7", CODE, MACHINE_CODE)
    trace = read(dump, reported={"bytecode_lines": 1})
    (issue,) = trace.report
    assert (issue.severity, issue.offset) == ("info", 40 + 16 + 16)
    assert func_text(trace, 0) == f"f@{FILE}:3:7"
    assert set(stacks(trace, *range(MACHINE_CODE))) == {f"f@{FILE}"}
    assert code_sizes(trace) == {f"f@{FILE}": MACHINE_CODE}
    (row,) = loads_of(trace, PID)
    assert (row["function"], row["tier"], row["file"], row["line"]) == ("f", "Baseline", FILE, 3)


NOT_BYTECODE = {
    "Turbofan": (True, "JS:*f"), "Turbofan with its context": (True, "JS:*'f"), "Maglev": (True, "JS:+f"),
    "OSR": (True, "JS:o+f"), "interpreted": (True, "JS:~f"), "without a marker": (True, "JS:f"),
    "a builtin": (True, "Builtin:JS:^f"), "another producer": (False, "JS:^f"),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_BYTECODE)
@every_layout
def test_other_tables_keep_their_lines(new: New, case: str) -> None:
    """The same table of another tier, and the same name in a dump that is not V8's own."""
    is_v8, name = NOT_BYTECODE[case]
    dump = new(v8=is_v8).debug_info(CODE, BYTECODE_LINES).load(f"{name} {FILE}:3:7", CODE, MACHINE_CODE)
    trace = read(dump, reported={"line_bias": 1} if is_v8 else {})
    wanted = [f"@{FILE}:{line}:{column}" for _, line, column in BYTECODE]
    seen = stacks(trace, *(offset for offset, *_ in BYTECODE))
    assert [text[text.rindex("@") :] for text in seen] == wanted


@pytest.mark.parametrize("pad1", [0, 0xDEAD_BEEE, 0xEFBE_ADDE, 0xFFFF_FFFF])
@every_layout
def test_only_v8_s_padding_tells_its_dumps(new: New, pad1: int) -> None:
    dump = new(pad1=pad1).debug_info(CODE, BYTECODE_LINES).load(f"JS:^f {FILE}:3:7", CODE, MACHINE_CODE)
    assert stacks(read(dump), 0, 11) == [f"f@{FILE}:3:7", f"f@{FILE}:4:9"]


@pytest.mark.parametrize("nth", [1, 2, 7, 8])
@every_layout
def test_a_table_of_bytecode_tells_the_file(new: New, nth: int) -> None:
    """Where the load's name does not: the first that is named among the first eight entries."""
    entries = [(CODE + row, 1, 1, FILE if row >= nth - 1 else "") for row in range(12)]
    dump = new(v8=True).debug_info(CODE, entries).load("JS:^f :1:18", CODE, MACHINE_CODE)
    trace = read(dump, reported={"bytecode_lines": 1})
    assert func_text(trace, 0) == f"f@{FILE}:1:18"
    assert set(stacks(trace, 0, 9, MACHINE_CODE - 1)) == {f"f@{FILE}"}


@every_layout
def test_no_more_of_a_table_of_bytecode_is_read_than_tells_the_file(new: New) -> None:
    entries = [(CODE + row, 1, 1, FILE if row >= 8 else "") for row in range(12)]
    dump = new(v8=True).debug_info(CODE, entries).load("JS:^f :1:18", CODE, MACHINE_CODE)
    trace = read(dump, reported={"bytecode_lines": 1})
    lines = trace.code_readers[0].dump.lines  # type: ignore[attr-defined]
    assert (func_text(trace, 0), len(lines.offsets)) == ("f@:1:18", 8)


@pytest.mark.parametrize("freed", [V8_FREED, bytes(16), b"\x01" * 16, b"\xff" * 16])
@pytest.mark.parametrize("n", [1, 2, 8, 9, 13])
@every_layout
def test_damaged_names_in_tables_of_bytecode(new: New, freed: bytes, n: int) -> None:
    """Are repaired all the same, so that no wrong name is left; a good table beside them keeps its lines."""
    dump = new(v8=True).debug_info(CODE, BYTECODE_LINES[:n], freed=freed).load(f"JS:^f {FILE}:3:7", CODE, MACHINE_CODE)
    at = CODE + 0x1000
    dump.debug_info(at, [(at, 8, 2, "/g.js"), (at + 5, 9, 4, "/g.js")]).load("JS:*g /g.js:8:2", at)
    is_read_as_empty = n == 1 and not any(freed)
    repaired = {} if is_read_as_empty else {"file_name_repaired": 1}
    trace = read(dump, reported={"bytecode_lines": 1, "line_bias": 1, **repaired})
    lines = trace.code_readers[0].dump.lines  # type: ignore[attr-defined]
    assert lines.first_files == ["" if is_read_as_empty else FILE, "/g.js"]
    assert func_text(trace, 0) == f"f@{FILE}:3:7"
    assert set(stacks(trace, *range(0, MACHINE_CODE, 3))) == {f"f@{FILE}"}
    assert stacks(trace, 4, 5, code=1) == ["g@/g.js:8:2", "g@/g.js:9:4"]
    assert {trace.strings[path] for path in trace.sources["path"].tolist()} == {FILE, "/g.js"}


DAMAGED_BYTECODE: dict[str, Callable[[JitDump], object]] = {
    "fewer entries than it says": lambda d: d.debug_info(CODE, BYTECODE_LINES[:3], count=5),
    "an entry far away": lambda d: d.debug_info(CODE, [(CODE + 2**40, 1, 1, FILE)]),
    "names that cannot be repaired": lambda d: d.debug_info(CODE, [(CODE, 1, 1, "/other" + FILE)] * 2, freed=V8_FREED),
}


@pytest.mark.parametrize("case", DAMAGED_BYTECODE)
@every_layout
def test_a_damaged_table_of_bytecode_is_no_loss(new: New, case: str) -> None:
    """Nothing but the file would have been taken from it, and the name tells that."""
    dump = new(v8=True)
    DAMAGED_BYTECODE[case](dump)
    trace = read(dump.load(f"JS:^f {FILE}:3:7", CODE, MACHINE_CODE), reported={"bytecode_lines": 1})
    assert func_text(trace, 0) == f"f@{FILE}:3:7"
    assert set(stacks(trace, 0, 5, 300)) == {f"f@{FILE}"}


@every_layout
def test_an_empty_table_of_bytecode_is_none(new: New) -> None:
    dump = new(v8=True).debug_info(CODE, []).load(f"JS:^f {FILE}:3:7", CODE, MACHINE_CODE)
    assert stacks(read(dump), 0) == [f"f@{FILE}"]


@every_layout
def test_tables_of_bytecode_do_not_hide_the_others_bias(new: New) -> None:
    """Whether tables point too far is asked of those that stay, and only they are counted."""
    dump = new(pad1=V8_PAD1).debug_info(CODE, [(CODE + 1, 1, 1, FILE)]).load(f"JS:^f {FILE}:3:7", CODE, MACHINE_CODE)
    at = CODE + 0x1000
    dump.debug_info(at, [(at + B, 8, 2, FILE)]).load(f"JS:*g {FILE}:8:2", at)
    trace = read(dump, reported={"bytecode_lines": 1, "line_bias": 1})
    assert stacks(trace, 0, code=1) == [f"g@{FILE}:8:2"]


@every_layout
def test_inline_records_of_baseline_code_stay(new: New) -> None:
    """Only DEBUG_INFO counts bytes of bytecode."""
    dump = new(v8=True).debug_info(CODE, BYTECODE_LINES).inline_tree_a(OUTER, [(0, "/a.js", 2, 0)])
    trace = read(dump.load("JS:^f /a.js:1:1", CODE, MACHINE_CODE), reported={"bytecode_lines": 1})
    assert stacks(trace, 300) == ["f@/a.js:2:1"]


# ---------------------------------------------------------------- unknown records, and the end of the file


@every_layout
def test_unknown_records_are_counted_and_skipped(new: New) -> None:
    dump = new().load("f", CODE).unknown().unknown(record_id=6).unknown(b"", record_id=2**32 - 1).load("g", CODE + 64)
    assert len(read(dump, reported={"unknown_record": 3}).code) == 2


@every_layout
def test_a_partial_last_record(new: New) -> None:
    """A producer that was killed: everything before it counts."""
    whole = new().load("f", CODE).load("g", CODE + 64)
    data = whole.bytes()
    last = len(data) - (16 + 40 + 2 + 16)
    for cut in range(last + 1, len(data)):
        trace = read_dumps(data[:cut])
        assert [symbol_text(trace, code) for code in range(len(trace.code))] == ["f"]
        (issue,) = trace.report
        assert (issue.kind, issue.count, issue.offset) == ("dump_unfinished", 1, last)
    assert list(read_dumps(data[:last]).report) == []


@pytest.mark.parametrize("size", [0, 1, 15, 2**32 - 1])
@every_layout
def test_a_record_whose_size_cannot_be_is_skipped(new: New, size: int) -> None:
    dump = new().load("f", CODE).raw(99, b"abc", size=size).load("g", CODE + 64)
    trace = read(dump, reported={"dump_damaged": 1})
    assert [symbol_text(trace, code) for code in range(2)] == ["f", "g"]
    (issue,) = trace.report
    assert (issue.offset, issue.detail) == (40 + 16 + 40 + 2 + 16, "19 bytes")


def torn(whole: JitDump, begin: int, end: int) -> bytes:
    """A dump in which these bytes stand behind it again, and then its end: so a forked child writes its copy of what
    its parent has not written yet, from the middle of a record on. begin, end: from the end, negative."""
    data = whole.bytes()
    return data + data[begin:end] + data[end:]


@every_layout
def test_what_forked_children_write_again_is_skipped_up_to_a_whole_load(new: New) -> None:
    """With what describes that load, which stands in front of it."""
    dump = new().load("f", CODE, 8).debug_info(CODE + 64, [(CODE + 64, 7, 2, "/a.c")])
    dump.unwinding(b"frames").load("g", CODE + 64, 8).load("h", CODE + 128, 8)
    described = len(dump.bytes()) - 40 - (16 + 40 + 2 + 8)
    trace = read_dumps(torn(dump, -described - 4, -1))
    assert laws.check(trace) == []
    assert [symbol_text(trace, code) for code in range(len(trace.code))] == ["f", "g", "h", "g", "h"]
    assert [stack_text(trace, code, 0) for code in (1, 3)] == ["g@/a.c:7:2"] * 2
    (issue,) = trace.report
    assert (issue.kind, issue.count, issue.offset, issue.detail) == ("dump_damaged", 1, len(dump.bytes()), "4 bytes")


NO_LOADS: dict[str, Callable[[JitDump], bytes]] = {
    "of another process": lambda d: d.load("g", CODE, pid=PID + 1).bytes()[40:],
    "longer than the file": lambda d: d.load("g", CODE).bytes()[40:-1],
    "whose name goes on into its code": lambda d: d.load("g", CODE).bytes()[40:].replace(b"g\0", b"gg"),
    "without a name": lambda d: d.load("", CODE).bytes()[40:],
    "another record": lambda d: d.move(CODE, CODE + 64, size=8).bytes()[40:],
    "its own numbers in machine code": lambda d: PID.to_bytes(4, "little") * 64,
}


@pytest.mark.parametrize("make", NO_LOADS.values(), ids=NO_LOADS)
def test_what_looks_like_a_load_behind_damage_is_none(make: Callable[[JitDump], bytes]) -> None:
    """Then nothing follows: the dump ends there."""
    data = JitDump(pid=PID).load("f", CODE).bytes() + b"\xff" * 20 + make(JitDump(pid=PID))
    trace = read_dumps(data)
    assert [symbol_text(trace, code) for code in range(len(trace.code))] == ["f"]
    assert report_of(trace) == {"dump_unfinished": 1}


@every_layout
def test_what_waits_for_a_load_that_never_comes_is_dropped(new: New) -> None:
    dump = new().load("f", CODE).debug_info(CODE, [(CODE, 1, 0, "/a.c")]).tier(1, 5, "Fast").inline_info_c(CODE, [])
    assert stacks(read(dump, reported={"lines_without_code": 1}), 0) == ["f"]


# ---------------------------------------------------------------- TIER

COLORS = {
    0: "transparent", 1: "lightblue", 2: "red", 3: "lightred", 4: "orange", 5: "blue", 6: "green", 7: "purple",
    8: "yellow", 9: "brown", 10: "magenta", 11: "green", 12: "grey", 13: "darkgrey",
    14: "grey", 2**32 - 1: "grey",  # no colour
}  # fmt: skip


@pytest.mark.parametrize("index", COLORS)
@every_layout
def test_colors_are_the_profiler_s(new: New, index: int) -> None:
    assert tier_text(read(new().tier(1, index, "Fast").load("f", CODE)), 0) == f"Fast {COLORS[index]}"


V8_NAME = "JS:*f /a.js:1:1"
TIERS: dict[str, tuple[Callable[[JitDump], object], list[str]]] = {
    "of the next load": (lambda d: d.tier(1, 5, "Fast").load("f", CODE).load("g", CODE + 64), ["Fast blue", ""]),
    "the last of several": (lambda d: d.tier(1, 5, "A").tier(2, 6, "B").load("f", CODE), ["B green"]),
    "whatever lies between": (
        lambda d: d.tier(1, 5, "A").debug_info(CODE, []).unwinding().source("/x", "").load("f", CODE), ["A blue"],
    ),
    "wins over the name": (lambda d: d.tier(1, 5, "Fast").load(V8_NAME, CODE), ["Fast blue"]),
    "from the name": (lambda d: d.load(V8_NAME, CODE), ["Turbofan green"]),
    "from the name, with the colour of a defined tier": (
        lambda d: d.tier(7, 2, "Turbofan").load("JS:~f /a.js:1:1", CODE).load(V8_NAME, CODE + 64),
        ["Turbofan red", "Turbofan red"],
    ),
    "a colour that is defined later": (
        lambda d: d.load(V8_NAME, CODE).tier(7, 2, "Turbofan").load("f", CODE + 64), ["Turbofan red", "Turbofan red"],
    ),
    "a number defined again": (
        lambda d: d.tier(1, 5, "Old").load("f", CODE).tier(1, 6, "New").load("g", CODE + 64),
        ["Old blue", "New green"],
    ),
    "without a name": (lambda d: d.tier(3, 5, "").load("f", CODE), ["tier 3 blue"]),
    "UTF-8": (lambda d: d.tier(3, 5, "größer").load("f", CODE), ["größer blue"]),
    "no valid UTF-8": (lambda d: d.tier(3, 5, b"a\xff").load("f", CODE), ["a\ufffd blue"]),
    "a long name is no variant B": (lambda d: d.tier(3, 5, "x" * 60).load("f", CODE), ["x" * 60 + " blue"]),
    "each load its own": (
        lambda d: d.tier(3, 5, "A").load("f", CODE).tier(3, 5, "B").load("g", CODE + 64), ["A blue", "B blue"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TIERS)
@every_layout
def test_tiers(new: New, case: str) -> None:
    make, wanted = TIERS[case]
    dump = new()
    make(dump)
    trace = read(dump)
    assert [tier_text(trace, code) for code in range(len(trace.code))] == wanted
    for code, tier in enumerate(trace.code["tier"].tolist()):
        (frame,) = trace.code_readers[0].frames_at(trace, code, 0)
        assert trace.frames["tier"][frame] == tier


# ---------------------------------------------------------------- EMBEDDED_SOURCE_FILE

LINE_1 = [(CODE, 1, 0, "/a.c")]
SOURCES: dict[str, tuple[Callable[[JitDump], object], list[str | None], dict[str, int]]] = {
    # what each load of /a.c shows
    "before the load": (lambda d: d.source("/a.c", "text").debug_info(CODE, LINE_1).load("f", CODE), ["text"], {}),
    "between": (lambda d: d.debug_info(CODE, LINE_1).source("/a.c", "text").load("f", CODE), ["text"], {}),
    "after the load": (lambda d: d.debug_info(CODE, LINE_1).load("f", CODE).source("/a.c", "text"), ["text"], {}),
    "the other layout": (
        lambda d: d.source("/a.c", "text", nul_terminated_variant=True).debug_info(CODE, LINE_1).load("f", CODE),
        ["text"], {},
    ),
    "another file": (lambda d: d.source("/b.c", "text").debug_info(CODE, LINE_1).load("f", CODE), [None], {}),
    "an empty text is a text": (lambda d: d.source("/a.c", "").debug_info(CODE, LINE_1).load("f", CODE), [""], {}),
    "an empty text in the other layout": (
        lambda d: d.source("/a.c", "", nul_terminated_variant=True).debug_info(CODE, LINE_1).load("f", CODE),
        [""], {},
    ),
    "replaced": (
        lambda d: d.source("/a.c", "old").debug_info(CODE, LINE_1).load("f", CODE)
        .source("/a.c", "new").debug_info(CODE, LINE_1).load("f", CODE),
        ["old", "new"], {"source_replaced": 1},
    ),
    "replaced before any load": (
        lambda d: d.source("/a.c", "old").source("/a.c", "new").debug_info(CODE, LINE_1).load("f", CODE),
        ["new"], {"source_replaced": 1},
    ),
    "the first after the load, of two": (
        lambda d: d.debug_info(CODE, LINE_1).load("f", CODE).source("/a.c", "old").source("/a.c", "new"),
        ["old"], {"source_replaced": 1},
    ),
    "replaced by an empty text": (
        lambda d: d.source("/a.c", "old").source("/a.c", "").debug_info(CODE, LINE_1).load("f", CODE),
        [""], {"source_replaced": 1},
    ),
    "the same once more": (
        lambda d: d.source("/a.c", "text").source("/a.c", "text").debug_info(CODE, LINE_1).load("f", CODE),
        ["text"], {},
    ),
    "UTF-8": (lambda d: d.source("/a.c", "größe\n計算").debug_info(CODE, LINE_1).load("f", CODE), ["größe\n計算"], {}),
    "no valid UTF-8": (lambda d: d.source("/a.c", b"a\xff").debug_info(CODE, LINE_1).load("f", CODE), ["a\ufffd"], {}),
    "NULs in the text": (lambda d: d.source("/a.c", "a\0b\0").debug_info(CODE, LINE_1).load("f", CODE), ["a\0b\0"], {}),
    "no path": (
        lambda d: d.source("", "text").debug_info(CODE, LINE_1).load("f", CODE), [None], {"bad_record": 1},
    ),
    "no NUL": (
        lambda d: d.raw(827346261, b"/a.c without an end").debug_info(CODE, LINE_1).load("f", CODE),
        [None], {"bad_record": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SOURCES)
@every_layout
def test_embedded_sources(new: New, case: str) -> None:
    make, wanted, reported = SOURCES[case]
    dump = new()
    make(dump)
    trace = read(dump, reported=reported)
    frames = [trace.code_readers[0].frames_at(trace, code, 0)[0] for code in range(len(trace.code))]
    assert [text_of(trace, frame) for frame in frames] == wanted


@pytest.mark.parametrize("length", range(8))
@every_layout
def test_sources_of_any_length(new: New, length: int) -> None:
    trace = read(new().source("/a.c"[: 1 + length % 4], "x" * length).load("f", CODE))
    assert [trace.texts[text] for text in trace.sources["text"].tolist()] == ["x" * length]


@every_layout
def test_bytecode_and_ir_are_sources_of_their_own(new: New) -> None:
    """Even if no line points into them."""
    trace = read(new().source("/f.iongraph.json", "{}").source("/f.bytecode", "LdaZero").load("f", CODE))
    assert {
        trace.strings[path]: trace.texts[text]
        for path, text in zip(trace.sources["path"].tolist(), trace.sources["text"].tolist(), strict=True)
    } == {"/f.iongraph.json": "{}", "/f.bytecode": "LdaZero"}


# ---------------------------------------------------------------- --embed-sources


def texts_in(trace: Trace) -> dict[str, str]:
    """Base name of a source → its text."""
    paths, texts = trace.sources["path"].tolist(), trace.sources["text"].tolist()
    return {Path(trace.strings[p]).name: trace.texts[t] for p, t in zip(paths, texts, strict=True) if t >= 0}


def dump_beside_sources(folder: Path) -> Path:
    """Of four files: one beside the dump, one at its path, one at its URL, one nowhere; and one that is embedded."""
    other = folder / "other dir"
    other.mkdir()
    (folder / "beside.c").write_text("beside\n")
    (folder / "embedded.c").write_text("from disk\n")
    (other / "path.c").write_text("at its path\n")
    (other / "url.js").write_text("at its URL: größe\n")
    files = ["/nowhere/beside.c", str(other / "path.c"), (other / "url.js").as_uri(), "/nowhere/x.c", "embedded.c"]
    entries = [(CODE + nth, nth + 1, 0, file) for nth, file in enumerate(files)]
    dump = JitDump().source("embedded.c", "from the dump\n").debug_info(CODE, entries).load("f", CODE)
    path = folder / "jit-1000.dump"
    path.write_bytes(dump.bytes())
    return path


def test_files_are_read_only_when_asked(tmp_path: Path) -> None:
    trace = load_checked(dump_beside_sources(tmp_path))
    assert texts_in(trace) == {"embedded.c": "from the dump\n"}


def test_files_beside_the_dump_and_at_their_paths(tmp_path: Path) -> None:
    trace = load_checked(dump_beside_sources(tmp_path), embed_sources=tmp_path)
    assert texts_in(trace) == {
        "embedded.c": "from the dump\n", "beside.c": "beside\n", "path.c": "at its path\n",
        "url.js": "at its URL: größe\n",
    }  # fmt: skip


def test_names_that_are_no_files(tmp_path: Path) -> None:
    """Folders, devices, names with NULs or longer than any path."""
    files = [str(tmp_path), "/dev/zero", "node:fs", "<unknown>", "file://", "file:///%00", "x" * 5000, "[::1]", "//[a"]
    entries = [(CODE + nth, 1, 0, file) for nth, file in enumerate([*files, "file://[oops/x"])]
    path = tmp_path / "jit-1.dump"
    path.write_bytes(JitDump().debug_info(CODE, entries).load("f", CODE).bytes())
    assert texts_in(load_checked(path, embed_sources="/")) == {}


# ---------------------------------------------------------------- DEBUG_INFO2, variant A

OUTER = Function("f", "/a.js", 1, 0)
INNER = Function("g", "/b.js", 10, 4)
LEAF = Function("h", "/c.js", 20, 0)
TREES: dict[str, tuple[list[tuple[int, str, int, int]], list[Inlined], dict[int, str]]] = {
    # line records, inlined calls, and the stacks at offsets
    "lines only": (
        [(0, "/a.js", 1, 0), (8, "/a.js", 2, 5)], [], {0: "f@/a.js:1:1", 7: "f@/a.js:1:1", 8: "f@/a.js:2:6"},
    ),
    "columns count from 0": ([(0, "/a.js", 2, 0), (4, "/a.js", 2, 9)], [], {0: "f@/a.js:2:1", 4: "f@/a.js:2:10"}),
    "line 0 is unknown, and its column": ([(0, "/a.js", 0, 5)], [], {0: "f@/a.js"}),
    "before the first line": ([(8, "/a.js", 2, 0)], [], {7: "f@/a.js", 8: "f@/a.js:2:1"}),
    "no lines": ([], [], {0: "f@/a.js"}),
    "lines in disorder": ([(8, "/a.js", 2, 0), (0, "/a.js", 1, 0)], [], {0: "f@/a.js:1:1", 8: "f@/a.js:2:1"}),
    "the last of one offset": ([(0, "/a.js", 1, 0), (0, "/a.js", 2, 0)], [], {0: "f@/a.js:2:1"}),
    "an inlined call": (
        [(0, "/a.js", 1, 0), (4, "/b.js", 11, 2), (8, "/a.js", 3, 0)],
        [Inlined(INNER, (2, 6), [(4, 4)])],
        {3: "f@/a.js:1:1", 4: "f@/a.js:2:7 > g@/b.js:11:3", 7: "f@/a.js:2:7 > g@/b.js:11:3", 8: "f@/a.js:3:1"},
    ),
    "a call line of 0": ([(0, "/b.js", 11, 2)], [Inlined(INNER, (0, 6), [(0, 4)])], {0: "f@/a.js > g@/b.js:11:3"}),
    "nested": (
        [(0, "/c.js", 21, 0)],
        [Inlined(INNER, (2, 0), [(0, 12)], [Inlined(LEAF, (12, 1), [(4, 4)])])],
        {0: "f@/a.js:2:1 > g@/c.js:21:1", 4: "f@/a.js:2:1 > g@/b.js:12:2 > h@/c.js:21:1",
         8: "f@/a.js:2:1 > g@/c.js:21:1", 12: "f@/c.js:21:1"},
    ),
    "several ranges": (
        [(0, "/a.js", 1, 0)],
        [Inlined(INNER, (2, 0), [(8, 2), (0, 2), (4, 2)])],
        {0: "f@/a.js:2:1 > g@/a.js:1:1", 2: "f@/a.js:1:1", 5: "f@/a.js:2:1 > g@/a.js:1:1", 6: "f@/a.js:1:1",
         9: "f@/a.js:2:1 > g@/a.js:1:1", 10: "f@/a.js:1:1"},
    ),
    "siblings in any order of addresses": (
        [(0, "/a.js", 1, 0)],
        [Inlined(LEAF, (3, 0), [(8, 4)]), Inlined(INNER, (2, 0), [(0, 4)])],
        {0: "f@/a.js:2:1 > g@/a.js:1:1", 4: "f@/a.js:1:1", 8: "f@/a.js:3:1 > h@/a.js:1:1"},
    ),
    "the same function twice": (
        [(0, "/b.js", 11, 0)],
        [Inlined(INNER, (2, 0), [(0, 4)]), Inlined(INNER, (3, 0), [(4, 4)])],
        {0: "f@/a.js:2:1 > g@/b.js:11:1", 4: "f@/a.js:3:1 > g@/b.js:11:1"},
    ),
    "recursion": (
        [(0, "/a.js", 5, 0)],
        [Inlined(OUTER, (2, 0), [(0, 8)], [Inlined(OUTER, (2, 0), [(0, 4)])])],
        {0: "f@/a.js:2:1 > f@/a.js:2:1 > f@/a.js:5:1", 4: "f@/a.js:2:1 > f@/a.js:5:1"},
    ),
    "a range of no size": ([(0, "/a.js", 1, 0)], [Inlined(INNER, (2, 0), [(4, 0)])], {4: "f@/a.js:1:1"}),
    "a call without ranges": ([(0, "/a.js", 1, 0)], [Inlined(INNER, (2, 0), [])], {0: "f@/a.js:1:1"}),
    "a range beyond the code": (
        [(0, "/a.js", 1, 0)], [Inlined(INNER, (2, 0), [(8, 1000)])], {15: "f@/a.js:2:1 > g@/a.js:1:1"},
    ),
    "a line of another file than its function's": (
        [(0, "/macro.js", 7, 0)], [Inlined(INNER, (2, 0), [(4, 4)])],
        {0: "f@/macro.js:7:1", 4: "f@/a.js:2:1 > g@/macro.js:7:1"},
    ),
    "a builtin, whose file is empty": (
        [(0, "", 0, 0)], [Inlined(Function("Array.map", "", 0, 0), (2, 0), [(0, 8)])], {0: "f@/a.js:2:1 > Array.map"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TREES)
@every_layout
def test_variant_a(new: New, case: str) -> None:
    lines, inlined, wanted = TREES[case]
    trace = read(new().inline_tree_a(OUTER, lines, inlined).load("f", CODE))
    assert {offset: stack_text(trace, 0, offset) for offset in wanted} == wanted


@pytest.mark.parametrize("nth", range(3))
@every_layout
def test_inlined_frames_share_their_address(new: New, nth: int) -> None:
    """A, B and C: one code object, one symbol, one address, and depths from 0."""
    dump = new().load("before", CODE - 64, 10)
    places = [("f", "/a.js", 1, 1), ("g", "/b.js", 2, 2), ("h", "/c.js", 3, 3)]
    if nth == 0:
        tree = [Inlined(INNER, (1, 0), [(0, 8)], [Inlined(LEAF, (2, 1), [(0, 8)])])]
        dump.inline_tree_a(OUTER, [(0, "/c.js", 3, 2)], tree)
    elif nth == 1:
        dump.inline_stacks_b(CODE, {0: places})
    else:
        dump.inline_info_c(CODE, [(line, column, name, file) for name, file, line, column in reversed(places)])
    trace = read(dump.tier(1, 5, "Fast").load("f", CODE))
    frames = trace.code_readers[0].frames_at(trace, 1, 5)
    columns = ("address", "symbol", "lib", "code", "tier", "inline_depth")
    assert {c: trace.frames[c][list(frames)].tolist() for c in columns} == {
        "address": [15] * 3, "symbol": [1] * 3, "lib": [0] * 3, "code": [1] * 3, "tier": [0] * 3,
        "inline_depth": [0, 1, 2],
    }  # fmt: skip
    assert stack_text(trace, 1, 5) == "f@/a.js:1:1 > g@/b.js:2:2 > h@/c.js:3:3"


@every_layout
def test_functions_of_variant_a_begin_somewhere(new: New) -> None:
    """And say whether they belong into the JavaScript-only view, whatever the load's name says."""
    tree = [Inlined(Function("g", "/b.js", 10, 4, flags=1), (2, 0), [(0, 4)])]
    trace = read(new().inline_tree_a(Function("f", "/a.js", 3, 0, flags=6), [], tree).load(V8_NAME, CODE))
    funcs = [int(trace.frames["func"][frame]) for frame in trace.code_readers[0].frames_at(trace, 0, 0)]
    assert [(trace.func_name(f), *(int(trace.funcs[c][f]) for c in ("line", "column", "is_js"))) for f in funcs] == [
        ("f", 3, 1, 0), ("g", 10, 5, 1),
    ]  # fmt: skip


@every_layout
def test_other_flags_are_kept_and_shown(new: New) -> None:
    dump = new().inline_tree_a(Function("f", "/a.js", 3, 0, flags=0x8000_0007), [])
    assert "flags 0x80000007" in dumped(dump)[1]


@every_layout
def test_debug_info_names_the_frames_and_the_load_the_code_object(new: New) -> None:
    trace = read(new().inline_tree_a(Function("outer", "/x.js", 8, 1), [(0, "/x.js", 9, 0)]).load(V8_NAME, CODE))
    assert (func_text(trace, 0), symbol_text(trace, 0)) == ("outer@/x.js:8:2", V8_NAME)
    assert stacks(trace, 0) == ["outer@/x.js:9:1"]
    assert tier_text(trace, 0) == "Turbofan green"


@every_layout
def test_variant_a_belongs_to_the_next_load(new: New) -> None:
    dump = new().inline_tree_a(OUTER, [(0, "/a.js", 2, 0)]).unknown().source("/x", "").unwinding().tier(1, 1, "T")
    dump.move(1, 2).close().load("f", CODE).load("g", CODE + 64)
    trace = read(dump, reported={"unknown_record": 1, "moved_unknown": 1})
    assert [stack_text(trace, code, 0) for code in range(2)] == ["f@/a.js:2:1", "g"]


V1 = [(CODE, 77, 0, "/v1.c")]
WINS: dict[str, tuple[Callable[[JitDump], object], str]] = {
    "A after a plain one": (
        lambda d: d.debug_info(CODE, V1).inline_tree_a(OUTER, [(0, "/a.js", 2, 0)]), "f@/a.js:2:1",
    ),
    "A before a plain one": (
        lambda d: d.inline_tree_a(OUTER, [(0, "/a.js", 2, 0)]).debug_info(CODE, V1), "f@/a.js:2:1",
    ),
    "B": (lambda d: d.inline_stacks_b(CODE, {0: [("f", "/a.js", 2, 1)]}).debug_info(CODE, V1), "f@/a.js:2:1"),
    "C": (lambda d: d.inline_info_c(CODE, [(2, 1, "f", "/a.js")]).debug_info(CODE, V1), "f@/a.js:2:1"),
    "A over C": (
        lambda d: d.inline_tree_a(OUTER, [(0, "/a.js", 2, 0)]).inline_info_c(CODE, [(9, 1, "x", "/c")]), "f@/a.js:2:1",
    ),
    "the last of two": (
        lambda d: d.inline_tree_a(OUTER, [(0, "/a.js", 1, 0)]).inline_tree_a(OUTER, [(0, "/a.js", 2, 0)]),
        "f@/a.js:2:1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WINS)
@every_layout
def test_which_debug_info_wins(new: New, case: str) -> None:
    make, wanted = WINS[case]
    dump = new()
    make(dump)
    assert stacks(read(dump.load("f", CODE)), 0) == [wanted]


@every_layout
def test_debug_info2_is_not_biased(new: New) -> None:
    """Offsets are relative: where V8's plain tables are corrected, these stay."""
    dump = new(v8=True).debug_info(CODE, [(CODE, 1, 1, FILE)]).load(f"JS:*a {FILE}:1:1", CODE)
    dump.inline_tree_a(OUTER, [(8, "/a.js", 2, 0)]).load("JS:*f /a.js:1:1", CODE + 64)
    trace = read(dump, reported={"line_bias": 1})
    assert stacks(trace, 7, 8, code=1) == ["f@/a.js", "f@/a.js:2:1"]


# ---------------------------------------------------------------- variant B

STACKS_B: dict[str, tuple[dict[int, list[tuple[str, str | None, int, int]]], dict[int, str]]] = {
    "one frame": ({0: [("f", "/a.js", 2, 7)]}, {0: "f@/a.js:2:7", 15: "f@/a.js:2:7"}),
    "columns count from 1": (
        {0: [("f", "/a.js", 2, 1)], 4: [("f", "/a.js", 2, 0)]}, {0: "f@/a.js:2:1", 4: "f@/a.js:2"},
    ),
    "no file": ({0: [("f", "/a.js", 2, 1), ("Array.map", None, 0, 0)]}, {0: "f@/a.js:2:1 > Array.map"}),
    "until the next offset": (
        {0: [("f", "/a.js", 1, 1)], 4: [("f", "/a.js", 2, 1), ("g", "/b.js", 3, 3)], 8: [("f", "/a.js", 3, 1)]},
        {3: "f@/a.js:1:1", 4: "f@/a.js:2:1 > g@/b.js:3:3", 7: "f@/a.js:2:1 > g@/b.js:3:3", 8: "f@/a.js:3:1"},
    ),
    "before the first offset": ({4: [("f", "/a.js", 2, 1)]}, {3: "f@/a.js", 4: "f@/a.js:2:1"}),
    "offsets in disorder": (
        {8: [("f", "/a.js", 2, 1)], 0: [("f", "/a.js", 1, 1)]}, {0: "f@/a.js:1:1", 8: "f@/a.js:2:1"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STACKS_B)
@every_layout
def test_variant_b(new: New, case: str) -> None:
    given, wanted = STACKS_B[case]
    trace = read(new().inline_stacks_b(CODE, given).load("f", CODE))
    assert {offset: stack_text(trace, 0, offset) for offset in wanted} == wanted


@every_layout
def test_where_functions_of_variant_b_begin(new: New) -> None:
    dump = new().debug_info2_b(CODE, [(0, 1)], [(-1, 0, 1, 5, 6, 7, 8), (0, 2, -1, 0, 0, 0, 0)], ["f", "/a.js", "g"])
    trace = read(dump.load("f", CODE))
    assert func_text(trace, 0) == "f@/a.js:5:6"
    assert stacks(trace, 0) == ["f@/a.js:7:8 > g"]


@every_layout
def test_callers_of_variant_b_may_stand_behind(new: New) -> None:
    positions = [(1, 2, 1, 0, 0, 3, 3), (-1, 0, 1, 0, 0, 2, 2)]
    trace = read(new().debug_info2_b(CODE, [(0, 0)], positions, ["f", "/a.js", "g"]).load("f", CODE))
    assert stacks(trace, 0) == ["f@/a.js:2:2 > g@/a.js:3:3"]


CYCLES = {
    "of itself": ([0], "g@/a.js:1:1"),
    "of two": ([1, 0], "g@/a.js:2:1 > g@/a.js:1:1"),
    "of three": ([1, 2, 0], "g@/a.js:3:1 > g@/a.js:2:1 > g@/a.js:1:1"),
    "not at the beginning": ([1, 2, 1], "g@/a.js:3:1 > g@/a.js:2:1 > g@/a.js:1:1"),
}


@pytest.mark.parametrize("case", CYCLES)
@every_layout
def test_callers_of_variant_b_in_a_circle(new: New, case: str) -> None:
    callers, wanted = CYCLES[case]
    positions = [(caller, 0, 1, 0, 0, nth + 1, 1) for nth, caller in enumerate(callers)]
    dump = new().debug_info2_b(CODE, [(0, 0)], positions, ["g", "/a.js"]).load("f", CODE)
    assert stacks(read(dump, reported={"inline_cycle": 1}), 0) == [wanted]


@pytest.mark.parametrize("padding", [0, 1, 3, 8])
@every_layout
def test_zeros_behind_the_strings_of_variant_b(new: New, padding: int) -> None:
    dump = new().debug_info2_b(CODE, [(0, 0)], [(-1, 0, 1, 0, 0, 2, 3)], ["f", "/a.js"], padding=padding)
    assert stacks(read(dump.load("f", CODE)), 0) == ["f@/a.js:2:3"]


@every_layout
def test_an_empty_string_of_variant_b(new: New) -> None:
    dump = new().debug_info2_b(CODE, [(0, 0)], [(-1, 0, 1, 0, 0, 2, 3)], ["f", ""])
    assert stacks(read(dump.load("f", CODE)), 0) == ["f@:2:3"]


@every_layout
def test_a_variant_b_that_says_nothing(new: New) -> None:
    """32 bytes of header and no lists; it is no TIER, and the plain lines stay."""
    trace = read(new().debug_info(CODE, V1).debug_info2_b(CODE, [], [], []).load("f", CODE))
    assert (stacks(trace, 0), tier_text(trace, 0)) == (["f@/v1.c:77"], "")


NOT_B: dict[str, Callable[[JitDump], object]] = {
    "a count that does not fit": lambda d: d.debug_info2_b(CODE, [], [], ["f"], counts=(1 << 40, 0, 1)),
    "more strings": lambda d: d.debug_info2_b(CODE, [], [], ["f"], counts=(0, 0, 2)),
    "fewer strings": lambda d: d.debug_info2_b(CODE, [], [], ["f", "g"], counts=(0, 0, 1)),
    "something behind": lambda d: d.raw(TIER, JitDump().debug_info2_b(1, [], [], ["f"]).bytes()[56:] + b"\1"),
}


@pytest.mark.parametrize("case", NOT_B)
@every_layout
def test_what_is_no_variant_b_is_a_tier(new: New, case: str) -> None:
    dump = new()
    NOT_B[case](dump)
    assert tier_text(read(dump.load("f", CODE)), 0) != ""


# ---------------------------------------------------------------- variant C

F, G = (2, 7, "f", "/a.js"), (3, 4, "g", "/b.js")
STACKS_C: dict[str, tuple[list[tuple[int, list[tuple[int, int, str, str]]]], dict[int, str]]] = {
    # (offset, stack, innermost first)
    "one frame": ([(0, [F])], {0: "f@/a.js:2:7", 15: "f@/a.js:2:7"}),
    "the innermost stands first": ([(0, [G, F])], {0: "f@/a.js:2:7 > g@/b.js:3:4"}),
    "until the next record": ([(0, [F]), (8, [G, F])], {7: "f@/a.js:2:7", 8: "f@/a.js:2:7 > g@/b.js:3:4"}),
    "records in disorder": ([(8, [G, F]), (0, [F])], {7: "f@/a.js:2:7", 8: "f@/a.js:2:7 > g@/b.js:3:4"}),
    "no entries say nothing": ([(0, [F]), (8, [])], {7: "f@/a.js:2:7", 8: "f@/a.js:2:7"}),
    "before the first": ([(8, [F])], {7: "f@/a.js", 8: "f@/a.js:2:7"}),
    "before the code": ([(-8, [F])], {0: "f@/a.js:2:7"}),
}


@pytest.mark.parametrize("case", STACKS_C)
@pytest.mark.parametrize("padding", [0, 5])
@every_layout
def test_variant_c(new: New, case: str, padding: int) -> None:
    records, wanted = STACKS_C[case]
    dump = new()
    for offset, stack in records:
        dump.inline_info_c(CODE + offset, stack, padding=padding)
    trace = read(dump.load("f", CODE))
    assert {offset: stack_text(trace, 0, offset) for offset in wanted} == wanted


@every_layout
def test_variant_c_moves_with_its_code(new: New) -> None:
    """Its addresses refer to where the code was loaded."""
    trace = read(new().inline_info_c(CODE + 8, [G, F]).load("f", CODE).move(CODE, NEW_PLACE))
    assert stacks(trace, 8) == ["f@/a.js:2:7 > g@/b.js:3:4"]


@every_layout
def test_records_of_variant_c_belong_to_one_load(new: New) -> None:
    dump = new().inline_info_c(CODE, [F]).load("f", CODE).load("h", CODE + 64)
    assert stacks(read(dump), 0, code=1) == ["h"]


NOT_C: dict[str, Callable[[JitDump], object]] = {
    "the first draft": lambda d: d.inline_info_c_first_draft(CODE, CODE + 8, 1, "g", ("/a.js", 2, 3)),
    "more entries than bytes": lambda d: d.inline_info_c(CODE, [F], count=2),
    "2^60 entries": lambda d: d.inline_info_c(CODE, [F], count=2**60),
    "fewer entries": lambda d: d.inline_info_c(CODE, [F, G], count=1),
    "too short": lambda d: d.raw(5, b"\0" * 15),
    "no end of a name": lambda d: d.raw(5, JitDump().inline_info_c(1, [F]).bytes()[56:-1]),
}


@pytest.mark.parametrize("case", NOT_C)
@every_layout
def test_what_does_not_parse_exactly_is_unknown(new: New, case: str) -> None:
    dump = new()
    NOT_C[case](dump)
    assert stacks(read(dump.load("f", CODE), reported={"unknown_record": 1}), 0) == ["f"]


# ---------------------------------------------------------------- damaged A and B lose their table and nothing else

ROWS_A: dict[str, Any] = {
    "files": ["/a.js"], "names": ["f"], "functions": [(0, 0, 1, 0, 0)], "inline_calls": [(0, 1, 0, 2, 0)],
    "ranges": [(0, 4)], "lines": [(0, 0, 2, 0)],
}  # fmt: skip
BAD_A: dict[str, dict[str, Any]] = {
    **{f"{name} too large": {name: 2**32 - 1} for name in (
        "file_count", "file_list_size", "function_names_count", "function_names_list_size", "function_count",
        "inline_call_record_count", "range_count", "line_record_count",
    )},
    "one line record too many": {"line_record_count": 2},
    "no function": {"function_count": 0},
    "more names than there are": {"function_names_count": 9},
    "a function of an unknown name": {"functions": [(1, 0, 1, 0, 0)]},
    "a function of an unknown file": {"functions": [(0, 1, 1, 0, 0)]},
    "a call of an unknown function": {"inline_calls": [(0, 1, 1, 2, 0)]},
    "a line of an unknown file": {"lines": [(0, 7, 2, 0)]},
    "a first depth above 0": {"inline_calls": [(1, 1, 0, 2, 0)]},
    "a depth that jumps": {"inline_calls": [(0, 1, 0, 2, 0), (2, 0, 0, 2, 0)]},
    "a huge depth": {"inline_calls": [(2**32 - 1, 1, 0, 2, 0)]},
    "more ranges than there are": {"inline_calls": [(0, 2, 0, 2, 0)]},
    "a huge number of ranges": {"inline_calls": [(0, 2**32 - 1, 0, 2, 0)]},
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_A)
@every_layout
def test_a_damaged_variant_a(new: New, case: str) -> None:
    dump = new().source("/v1.c", "text").tier(1, 5, "Fast").debug_info(CODE, V1)
    dump.debug_info2_a(**{**ROWS_A, **BAD_A[case]}).load("f", CODE).debug_info(CODE + 64, V1).load("g", CODE + 64)
    trace = read_dumps(dump.bytes())
    assert laws.check(trace) == []
    assert report_of(trace)["line_table_dropped"] >= 1
    assert stacks(trace, 0) == ["f@/v1.c:77"]
    assert [tier_text(trace, code) for code in range(2)] == ["Fast blue", ""]


@every_layout
def test_a_variant_a_shorter_than_its_header(new: New) -> None:
    for size in (0, 1, 31):
        trace = read(new().raw(827346259, b"\1" * size).load("f", CODE), reported={"line_table_dropped": 1})
        assert stacks(trace, 0) == ["f"]


@pytest.mark.parametrize("n", [126, 127, 128, 1000])
@every_layout
def test_inlined_calls_of_variant_a_are_followed_128_deep(new: New, n: int) -> None:
    """The outermost 128 are shown, and the place where it runs."""
    rows = {
        "functions": [(0, 0, 1, 0, 0)],
        "inline_calls": [(depth, 1, 0, depth + 2, 0) for depth in range(n)], "ranges": [(0, 16)] * n,
        "lines": [(0, 0, 7777, 0)],
    }  # fmt: skip
    dump = new().debug_info2_a(**{**ROWS_A, **rows}).load("f", CODE)
    trace = read(dump, reported={"inlines_cut": 1} if n > 126 else {})
    kept = min(n, 128)
    calls = [f"f@/a.js:{depth + 2}:1" for depth in range(kept)]
    assert stacks(trace, 0, 15) == [" > ".join([*calls, "f@/a.js:7777:1"])] * 2
    depths = [int(trace.frames["inline_depth"][frame]) for frame in trace.code_readers[0].frames_at(trace, 0, 0)]
    assert depths == list(range(kept + 1))


STRINGS = ["f", "/a.js"]
BAD_B: dict[str, tuple[list[tuple[int, int]], list[tuple[int, int, int, int, int, int, int]]]] = {
    "an offset of an unknown position": ([(0, 1)], [(-1, 0, 1, 0, 0, 2, 3)]),
    "a position of an unknown function": ([(0, 0)], [(-1, 2, 1, 0, 0, 2, 3)]),
    "a position of an unknown file": ([(0, 0)], [(-1, 0, 2, 0, 0, 2, 3)]),
    "an unknown caller": ([(0, 0)], [(1, 0, 1, 0, 0, 2, 3)]),
    "an unknown caller, far away": ([(0, 0)], [(2**31 - 1, 0, 1, 0, 0, 2, 3)]),
}


@pytest.mark.parametrize("case", BAD_B)
@every_layout
def test_a_damaged_variant_b(new: New, case: str) -> None:
    offsets, positions = BAD_B[case]
    dump = new().tier(1, 5, "Fast").debug_info(CODE, V1).debug_info2_b(CODE, offsets, positions, STRINGS)
    trace = read(dump.load("f", CODE), reported={"line_table_dropped": 1})
    assert (stacks(trace, 0), tier_text(trace, 0)) == (["f@/v1.c:77"], "Fast blue")


def chain_b(n: int) -> list[tuple[int, int, int, int, int, int, int]]:
    """Positions of which each is called by the one before; its line is its number from 1."""
    return [(nth - 1, 0, 1, 0, 0, nth + 1, 1) for nth in range(n)]


@pytest.mark.parametrize("n", [127, 128, 129, 5000])
@every_layout
def test_a_long_chain_of_callers_is_cut(new: New, n: int) -> None:
    """Variants B and C: the innermost 128 are kept, which is where the program runs."""
    b = new().debug_info2_b(CODE, [(0, n - 1)], chain_b(n), STRINGS).load("f", CODE)
    c = new().inline_info_c(CODE, [(line, 1, "f", "/a.js") for line in range(n, 0, -1)]).load("f", CODE)
    for dump in (b, c):
        trace = read(dump, reported={"inlines_cut": 1} if n >= 128 else {})
        wanted = [f"f@/a.js:{line}:1" for line in range(max(n - 127, 1), n + 1)]
        assert stacks(trace, 0, 15) == [" > ".join(wanted)] * 2


@every_layout
def test_cut_stacks_are_counted_for_each_code_object(new: New) -> None:
    """However many bytes are looked up."""
    dump = new()
    for nth in range(3):
        at, depth = CODE + 64 * nth, 200 if nth else 5
        dump.debug_info2_b(at, [(0, depth - 1), (8, depth - 2)], chain_b(depth), STRINGS).load("f", at)
    trace = read(dump, reported={"inlines_cut": 2})
    (issue,) = trace.report
    for code in range(3):
        stacks(trace, *range(16), code=code)
    assert report_of(trace) == {"inlines_cut": 2}
    assert issue.severity == "loss"
    # Where the first of them was loaded.
    assert issue.offset == trace.code_readers[0].dump.loads[1].at  # type: ignore[attr-defined]


@every_layout
def test_the_inlined_functions_of_a_chain(new: New) -> None:
    """Those that any offset shows, however deep: not the outermost, not what no offset leads to."""
    names = [f"f{nth}" for nth in range(2000)]
    positions = [(nth - 1, nth, -1, 0, 0, 1, 1) for nth in range(2000)]
    table = parse_b(payload_of(JitDump().debug_info2_b(CODE, [(0, 1500), (4, 9)], positions, names)), structs("<"))
    assert table is not None
    assert table.functions() == names[1:1501]


def payload_of(dump: JitDump) -> memoryview:
    """Of the only record."""
    return memoryview(dump.bytes())[40 + 16 :]


# ---------------------------------------------------------------- what a dump shows without samples


@every_layout
def test_the_marker_of_a_load(new: New) -> None:
    dump = new(v8=True).inline_tree_a(
        Function("f", "/a.js", 3, 6, flags=1), [], [Inlined(INNER, (2, 0), [(0, 4)]), Inlined(LEAF, (3, 0), [(4, 4)])]
    )
    (row,) = loads_of(read(dump.load(V8_NAME, CODE, 16, ts=START)), PID)
    assert row == {
        "ts": START, "dur": 0, "stack": -1, "flow": 0, "function": "f", "tier": "Turbofan", "kind": "function",
        "size": 16, "address": CODE, "file": "/a.js", "line": 3, "inlined": "g, h",
    }  # fmt: skip


@every_layout
def test_markers_stand_on_the_compiling_threads(new: New) -> None:
    dump = new(pid=5).load("a", CODE, tid=5).load("b", CODE + 64, tid=7).load("c", CODE + 128, tid=5)
    trace = read(dump)
    assert [(t.tid, t.name, t.is_main) for _, t in trace.threads if t.name != CODE_SIZE] == [
        (5, trace.processes[0].name, True), (7, "JIT compiler 7", False),
    ]  # fmt: skip
    assert [[row["function"] for row in loads_of(trace, tid)] for tid in (5, 7)] == [["a", "c"], ["b"]]
    assert (thread_of(trace, 5).start_ts, thread_of(trace, 5).end_ts) == (START + STEP, START + 3 * STEP)


@every_layout
def test_markers_can_be_made_again(new: New) -> None:
    trace = read(new().load("a", CODE).load("b", CODE + 64))
    assert loads_of(trace, PID) == loads_of(trace, PID)


@every_layout
def test_functions_of_several_tiers_are_linked(new: New) -> None:
    """And only those: the same tier again is no new tier."""
    dump = new(v8=True)
    names = ["~f /a.js:1:1", "~g /a.js:2:1", "*f /a.js:1:1", "~g /a.js:2:1", "~f /b.js:1:1", "^f /a.js:1:1"]
    for nth, name in enumerate(names):
        dump.load("JS:" + name, CODE + 64 * nth, tid=PID + nth % 2)
    trace = read(dump)
    rows = sorted((row for tid in (PID, PID + 1) for row in loads_of(trace, tid)), key=lambda row: row["ts"])
    flows = [row["flow"] for row in rows]
    assert flows[0] == flows[2] == flows[5] > 0
    assert flows[1] == flows[3] == flows[4] == 0


@every_layout
def test_many_inlined_functions_in_one_marker(new: New) -> None:
    tree = [Inlined(Function(f"g{nth}", "/b.js"), (2, 0), [(nth, 1)]) for nth in range(40)]
    (row,) = loads_of(read(new().inline_tree_a(OUTER, [], tree).load("f", CODE, 64)), PID)
    assert row["inlined"].startswith("g0, g1, ")
    assert row["inlined"].endswith(", g31, and 8 more")


SIZES: dict[str, tuple[Callable[[JitDump], object], dict[str, int]]] = {
    "no lines": (lambda d: d.load("f", CODE, 16), {"f": 16}),
    "no code": (lambda d: d.load("f", CODE, 0).load("g", CODE + 64, 1), {"g": 1}),
    "lines": (
        lambda d: d.debug_info(CODE, [(CODE, 1, 0, "/a.c"), (CODE + 4, 2, 0, "/a.c"), (CODE + 10, 1, 0, "/a.c")])
        .load("f", CODE, 16),
        {"f@/a.c:1": 10, "f@/a.c:2": 6},
    ),
    "before the first line": (
        lambda d: d.debug_info(CODE, [(CODE + 6, 2, 0, "/a.c")]).load("f", CODE, 16), {"f@/a.c": 6, "f@/a.c:2": 10},
    ),
    "columns are one line": (
        lambda d: d.debug_info(CODE, [(CODE, 1, 1, "/a.c"), (CODE + 4, 1, 9, "/a.c")]).load("f", CODE, 16),
        {"f@/a.c:1": 16},
    ),
    "several of one address": (
        lambda d: d.debug_info(CODE, [(CODE, 1, 0, "/a.c"), (CODE, 2, 0, "/a.c"), (CODE + 9, 3, 0, "/a.c")])
        .load("f", CODE, 16),
        {"f@/a.c:2": 9, "f@/a.c:3": 7},
    ),
    "before and behind the code": (
        lambda d: d.debug_info(CODE, [(CODE - 8, 1, 0, "/a.c"), (CODE + 4, 2, 0, "/a.c"), (CODE + 16, 3, 0, "/a.c"),
                                      (CODE + 99, 4, 0, "/a.c")]).load("f", CODE, 16),
        {"f@/a.c:1": 4, "f@/a.c:2": 12},
    ),
    "files": (
        lambda d: d.debug_info(CODE, [(CODE, 1, 0, "/a.c"), (CODE + 4, 1, 0, "/b.h")]).load("f", CODE, 16),
        {"f@/a.c:1": 4, "f@/b.h:1": 12},
    ),
    "the same function again": (
        lambda d: d.debug_info(CODE, LINE_1).load("f", CODE, 16).debug_info(CODE, LINE_1).load("f", CODE, 5),
        {"f@/a.c:1": 21},
    ),
    "inlined functions, as A says": (
        lambda d: d.inline_tree_a(
            OUTER, [(0, "/a.js", 1, 0), (4, "/b.js", 11, 0), (8, "/c.js", 21, 0), (12, "/a.js", 2, 0)],
            [Inlined(INNER, (2, 6), [(4, 8)], [Inlined(LEAF, (12, 0), [(8, 4)])])],
        ).load("f", CODE, 20),
        {"f@/a.js:1:1": 4, "f@/a.js:2:7 > g@/b.js:11:1": 4, "f@/a.js:2:7 > g@/b.js:12:1 > h@/c.js:21:1": 4,
         "f@/a.js:2:1": 8},
    ),
    "inlined functions, as B says": (
        lambda d: d.inline_stacks_b(CODE, {4: [("f", "/a.js", 1, 1)], 8: [("f", "/a.js", 2, 1), ("g", "/b.js", 3, 1)]})
        .load("f", CODE, 20),
        {"f@/a.js": 4, "f@/a.js:1:1": 4, "f@/a.js:2:1 > g@/b.js:3:1": 12},
    ),
    "inlined functions, as C says": (
        lambda d: d.inline_info_c(CODE, [F]).inline_info_c(CODE + 8, [G, F]).load("f", CODE, 20),
        {"f@/a.js:2:7": 8, "f@/a.js:2:7 > g@/b.js:3:4": 12},
    ),
    "beyond the code": (
        lambda d: d.inline_tree_a(OUTER, [(0, "/a.js", 1, 0), (99, "/a.js", 2, 0)], [Inlined(INNER, (5, 0), [(8, 99)])])
        .load("f", CODE, 16),
        {"f@/a.js:1:1": 8, "f@/a.js:5:1 > g@/a.js:1:1": 8},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SIZES)
@every_layout
def test_code_sizes(new: New, case: str) -> None:
    """A thread whose samples weigh bytes: function, inlined functions, lines."""
    make, wanted = SIZES[case]
    dump = new()
    make(dump)
    trace = read(dump)
    assert code_sizes(trace) == wanted
    assert sum(wanted.values()) == int(trace.code["size"].sum())
    ((_, thread),) = [pair for pair in trace.threads if pair[1].name == CODE_SIZE]
    assert thread.sample_unit == "bytes"


@every_layout
def test_code_sizes_of_tiers_are_apart(new: New) -> None:
    """The same function and line in two tiers are two frames, each weighed when it was loaded."""
    dump = new(v8=True).load("JS:~f /a.js:1:1", CODE, 10, ts=START).load("JS:*f /a.js:1:1", CODE + 64, 30, ts=START + 5)
    trace = read(dump)
    (thread,) = [thread for _, thread in trace.threads if thread.name == CODE_SIZE]
    samples = thread.load(trace).samples
    rows = trace.frames["tier"][trace.stacks["frame"][samples["stack"]]]
    tiers = [strings_of(trace, "tiers", "name", row) for row in rows.tolist()]
    assert list(zip(samples["ts"].tolist(), tiers, samples["weight"].tolist(), strict=True)) == [
        (START, "Interpreter", 10), (START + 5, "Turbofan", 30),
    ]  # fmt: skip


STRETCHES = ["f@/a.js:1 > i@/a.js:1", "f@/a.js:2 > i@/a.js:2", "g@/b.js:3 > i@/b.js:3", "g@/b.js:4 > i@/b.js:4"]


@pytest.mark.parametrize(
    ("limit", "n_whole", "rest", "n_simplified"),
    [
        # Each of the two code objects has two stretches of 8 bytes, each stretch two frames.
        (0, 0, {"f@/a.js": 16, "g@/b.js": 16}, 2),
        (1, 1, {"f@/a.js": 8, "g@/b.js": 16}, 2),
        (2, 1, {"f@/a.js": 8, "g@/b.js": 16}, 2),
        (4, 2, {"g@/b.js": 16}, 1),
        (5, 3, {"g@/b.js": 8}, 1),
        (7, 4, {}, 0),
    ],
)
@every_layout
def test_the_tree_of_code_sizes_has_a_limit(
    new: New, monkeypatch: pytest.MonkeyPatch, limit: int, n_whole: int, rest: dict[str, int], n_simplified: int
) -> None:
    """What lies beyond it counts for the function itself, without a line: also the rest of a code object. Plain line
    tables are not concerned, nor are the frames of samples."""
    monkeypatch.setattr("traceferry.symbolication.code_sizes.MAX_INLINED_FRAMES", limit)
    dump = new()
    for nth, (name, file) in enumerate([("f", "/a.js"), ("g", "/b.js")]):
        places = {8 * half: [(who, file, 2 * nth + half + 1, 0) for who in (name, "i")] for half in range(2)}
        dump.inline_stacks_b(CODE + 64 * nth, places).load(name, CODE + 64 * nth, 16)
    dump.debug_info(CODE + 128, [(CODE + 128, 1, 1, "/c.js")]).load("h", CODE + 128, 16)
    trace = read(dump, reported={"sizes_simplified": n_simplified} if n_simplified else {})
    assert code_sizes(trace) == dict.fromkeys(STRETCHES[:n_whole], 8) | rest | {"h@/c.js:1": 16}
    assert [stack for code in range(2) for stack in stacks(trace, 0, 8, code=code)] == STRETCHES


@every_layout
def test_more_lines_than_the_first_tables_hold(new: New) -> None:
    """The kernel stops when its tables are full, and goes on in larger ones."""
    dump = new()
    for nth in range(12):
        at = CODE + 0x1000 * nth
        dump.debug_info(at, [(at + row, 1000 * nth + row + 1, 0, f"/{nth}.c") for row in range(1000)])
        dump.load(f"f{nth}", at, 1001)
    sizes = code_sizes(read(dump))
    assert len(sizes) == 12_000
    assert all(sizes[f"f{nth}@/{nth}.c:{1000 * nth + 1000}"] == 2 for nth in range(12))
    assert sum(sizes.values()) == 12 * 1001


# ---------------------------------------------------------------- several dumps


@every_layout
def test_dumps_of_several_processes(new: New) -> None:
    """The same addresses in two processes do not disturb each other."""
    one = new(pid=5, timestamp=1).source("/a.c", "one").debug_info(CODE, LINE_1).load("f", CODE, 16, ts=START)
    two = new(pid=6, timestamp=2).source("/a.c", "two").debug_info(CODE, LINE_1).load("g", CODE, 32, ts=START + 9)
    trace = read(one, two)
    assert [process.pid for process in trace.processes] == [5, 6]
    assert [places_of(trace, code) for code in range(2)] == [[(CODE, START, -1)], [(CODE, START + 9, -1)]]
    assert [stack_text(trace, code, 0) for code in range(2)] == ["f@/a.c:1", "g@/a.c:1"]
    frames = [reader.frames_at(trace, code, 0)[0] for code, reader in enumerate(trace.code_readers)]
    assert [text_of(trace, frame) for frame in frames] == ["one", "two"]
    assert len(trace.libs) == 2
    tids = [thread.tid for _, thread in trace.threads]
    assert len(set(tids)) == len(tids) == 4


@every_layout
def test_a_fork_writes_to_the_dump_of_its_parent(new: New) -> None:
    """As PHP's do: what it loads is told by its own process."""
    trace = read(
        new(pid=5).load("f", CODE, tid=5).load("g", CODE + 64, pid=6, tid=6).load("h", CODE + 128, pid=0, tid=5)
    )
    found = [(process.pid, thread.tid, thread.is_main) for process, thread in trace.threads if not thread.sample_unit]
    assert found == [(5, 5, True), (6, 6, True)]
    (markers,) = next(thread for process, thread in trace.threads if process.pid == 6).load(trace).markers.values()
    assert markers["function"].tolist() == ["g"]


def test_many_dumps_of_one_process_and_thread() -> None:
    """Their markers are joined by time in one thread; each has a view of its own."""
    n = 1200
    dumps = [JitDump(pid=5).load(f"f{k}", CODE, ts=START + (k * 7) % n).bytes() for k in range(n)]
    sources = [Source(f"jit-{k}.dump", memoryview(data)) for k, data in enumerate(dumps)]
    trace = TraceBuilder()
    jitdump.read(sources).add_to(trace, ImportContext())
    (process,) = trace.processes
    compiling, *views = process.threads
    (markers,) = compiling.load(trace).markers.values()
    assert markers["function"].tolist() == [f"f{k}" for k in sorted(range(n), key=lambda k: (k * 7) % n)]
    assert len({view.tid for view in views}) == len({view.name for view in views}) == n


# ---------------------------------------------------------------- traceferry dump


@every_layout
def test_records_as_text(new: New) -> None:
    dump = new(pid=5, timestamp=9, elf_mach=62).debug_info(CODE, [(CODE, 3, 7, "/a.js")] * 2, same_file_marker=True)
    dump.unwinding().tier(1, 5, "Fast").source("/a.js", "text").source("/b.js", "more", nul_terminated_variant=True)
    dump.inline_tree_a(OUTER, [(0, "/a.js", 2, 0)]).inline_stacks_b(CODE, {0: [("f", "/a.js", 2, 1)] * 2})
    dump.inline_info_c(CODE, [F]).load("f", CODE, 16, index=4).move(CODE, NEW_PLACE).unknown().close()
    lines = dumped(dump)
    words = [line.split(" ", 2)[2] for line in lines]
    assert "pid 5, timestamp 9" in lines[0]
    assert words[1:] == [
        f"DEBUG_INFO code_addr {CODE:#x} nr_entry 2: {CODE:#x} /a.js:3:7, {CODE:#x} same file:3:7",
        "UNWINDING_INFO unwinding_size 20 eh_frame_hdr_size 20 mapped_size 0",
        "TIER 1 color 5 Fast",
        "EMBEDDED_SOURCE_FILE 4 bytes: /a.js",
        "EMBEDDED_SOURCE_FILE 4 bytes: /b.js",
        "DEBUG_INFO2 (A) 1 lines, functions: f /a.js:1:1 flags 0x0",
        f"DEBUG_INFO2 (B) code_addr {CODE:#x} 1 offsets, 2 positions, 2 strings: f",
        f"INLINE_INFO (C) code_addr {CODE:#x} f /a.js:2:7",
        f"LOAD 5/5 vma {CODE:#x} code_addr {CODE:#x} code_size 16 code_index 4 f",
        f"MOVE 5/5 vma {NEW_PLACE:#x} old {CODE:#x} new {NEW_PLACE:#x} code_size 16 code_index 4",
        "record 99 of 3 bytes, unknown",
        "CLOSE",
    ]
    first = int(lines[5].split()[0], 16)
    assert dumped(dump, first) == lines[5:]


@every_layout
def test_damaged_records_as_text(new: New) -> None:
    dump = new()
    for record_id in (0, 1, 2, 4, 5, 827346259, TIER, 827346261):
        dump.raw(record_id, bytes([GARBAGE]) * 7)
    lines = dumped(dump.append(b"\1\2\3"))
    assert [("damaged" in line or "draft" in line) for line in lines[1:-1]] == [True] * 8
    assert lines[-1].endswith("3 bytes of an incomplete record")
    lines = dumped(dump.load("f", CODE))
    assert lines[-2].split(" ", 1)[1] == "3 damaged bytes"
    assert lines[-1].endswith(" f")
