"""Any bytes give a valid trace or a FormatError; nothing else escapes, nothing hangs, no count is believed."""

import random
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.jitdump import V8_FREED, Function, Inlined, JitDump
from conftest import cuts, examples
from hypothesis import given
from hypothesis import strategies as st
from jit_recordings import CODE_SIZE, content, dumps, read
from support import report_of

import traceferry
from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.importers import jitdump
from traceferry.importers.jitdump.inlines import MAX_DEPTH, Stack, TableB
from traceferry.model import Trace, laws
from traceferry.symbolication import code_sizes

CODE = 0x7F00_0000_1000
FILE = "/home/dev/long-enough/a.js"
SMALLEST = ("wasmtime/jit-9865.dump", "lli19mc/jit-13217.dump")
quietly = examples(150)


def checked(data: bytes) -> Trace | None:
    """The trace, or None for a FormatError."""
    try:
        trace = read(data)
    except FormatError:
        return None
    for reader in trace.code_readers:
        for code in list(reader.rows)[:20]:
            for offset in (0, 1, 7, int(trace.code["size"][code])):
                assert len(reader.frames_at(trace, code, offset)) > 0
            assert len(reader.bytes_of(code)) in (0, int(trace.code["size"][code]))
    assert laws.check(trace) == []
    return trace


def every_record(version: int = 1, byte_order: str = "<", *, v8: bool = False) -> JitDump:
    """A short dump with a record of each kind."""
    make = JitDump.v8 if v8 else JitDump
    dump = make(version=version, byte_order=byte_order)
    entries = [(CODE, 3, 7, FILE), (CODE + 4, 4, 2, FILE), (CODE + 8, 5, 1, FILE)]
    dump.source("/a.js", "text").tier(1, 5, "Fast").debug_info(CODE, entries, same_file_marker=not v8).unwinding()
    dump.load(f"JS:*f {FILE}:3:7", CODE).unknown()
    dump.debug_info(CODE + 64, [(CODE + 64, 1, 1, FILE)] * 3, freed=V8_FREED).load(f"JS:^g {FILE}:1:1", CODE + 64)
    tree = [Inlined(Function("g", "/b.js", 5), (2, 4), [(4, 8)], [Inlined(Function("h", "/a.js"), (6, 1), [(6, 2)])])]
    dump.inline_tree_a(Function("f", "/a.js", 1), [(0, "/a.js", 1, 0), (4, "/b.js", 6, 1)], tree).load("f", CODE + 8)
    dump.inline_stacks_b(CODE, {4: [("f", "/a.js", 1, 2)], 8: [("f", "/a.js", 1, 2), ("map", None, 0, 0)]})
    dump.load("g", CODE + 128, 24).inline_info_c(CODE + 256, [(2, 3, "g", "/b.js"), (1, 1, "f", "/a.js")])
    dump.inline_info_c_first_draft(CODE, CODE + 8, 1, "g", ("/a.js", 2, 3)).load("h", CODE + 256)
    return dump.move(CODE + 256, CODE + 60).source("/b.js", "more", nul_terminated_variant=True).close()


KINDS = [(1, "<", False), (2, ">", False), (1, "<", True), (2, ">", True)]
WHOLE = [every_record(version, order, v8=v8).bytes() for version, order, v8 in KINDS]

# ---------------------------------------------------------------- cut anywhere


def cut_anywhere(data: bytes, each: int = 11) -> int:
    """Code objects never get fewer as the file gets longer. Returns how many there are in the end."""
    before = 0
    for cut in cuts(len(data), each):
        trace = checked(data[:cut])
        assert (trace is None) == (cut < 40)
        if trace is not None:
            assert before <= len(trace.code)
            before = len(trace.code)
    return before


@pytest.mark.parametrize("nth", range(len(WHOLE)), ids=["1-little", "2-big", "1-little-v8", "2-big-v8"])
def test_built_dumps_cut_anywhere(nth: int) -> None:
    assert cut_anywhere(WHOLE[nth]) == 5


@pytest.mark.parametrize("name", SMALLEST)
def test_recordings_cut_anywhere(name: str) -> None:
    assert cut_anywhere(content(name)) > 2


@pytest.mark.parametrize("name", ["php82/jit-7884.dump", "py313/jit-26854.dump", "samply-ext/ext-A-little-s101.dump"])
def test_longer_recordings_cut_at_many_places(name: str) -> None:
    data = content(name)
    assert cut_anywhere(data[:40_000], 331) > 5


def test_cut_dumps_as_text() -> None:
    for data in WHOLE:
        for cut in cuts(len(data), 5, 40):
            lines = list(jitdump.dump(Source("jit-1.dump", memoryview(data[:cut])), 0))
            assert lines[0].startswith("0x00000000 header")


# ---------------------------------------------------------------- damage at random

PLACES = st.integers(0, 1 << 16)


@quietly
@given(st.sampled_from(WHOLE), st.lists(st.tuples(PLACES, st.integers(0, 255)), min_size=1, max_size=8))
def test_bytes_changed(dump: bytes, changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(dump)
    for at, value in changes:
        damaged[at % len(damaged)] = value
    checked(bytes(damaged))


@quietly
@given(st.sampled_from(WHOLE), st.lists(st.tuples(PLACES, st.integers(0, 7)), min_size=1, max_size=8))
def test_bits_flipped_behind_the_header(dump: bytes, flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(dump)
    for at, bit in flips:
        damaged[40 + at % (len(damaged) - 40)] ^= 1 << bit
    assert checked(bytes(damaged)) is not None


SPECIAL = [0, 1, 2, 2**31 - 1, 2**31, 2**32 - 1, 2**60, 2**63 - 1, 2**63, 2**64 - 64, 2**64 - 1, CODE, CODE + 2**30]


@quietly
@given(
    st.sampled_from(WHOLE),
    st.lists(st.tuples(PLACES, st.sampled_from(SPECIAL), st.sampled_from("IQ")), min_size=1, max_size=3),
)
def test_numbers_changed(dump: bytes, changes: list[tuple[int, int, str]]) -> None:
    """To those at the borders."""
    damaged, order = bytearray(dump), "<" if dump[:4] == b"DTiJ" else ">"
    for at, value, size in changes:
        field = struct.pack(order + size, value & (2**32 - 1 if size == "I" else 2**64 - 1))
        begin = 40 + at % (len(damaged) - 48)
        damaged[begin : begin + len(field)] = field
    assert checked(bytes(damaged)) is not None


@quietly
@given(st.sampled_from(WHOLE), PLACES, st.binary(min_size=1, max_size=40))
def test_bytes_inserted(dump: bytes, at: int, what: bytes) -> None:
    at %= len(dump)
    checked(dump[:at] + what + dump[at:])


@quietly
@given(st.sampled_from(WHOLE), PLACES, st.integers(1, 200))
def test_bytes_removed(dump: bytes, at: int, n: int) -> None:
    at %= len(dump)
    checked(dump[:at] + dump[at + n :])


@quietly
@given(st.sampled_from(WHOLE), st.binary(max_size=300))
def test_any_bytes_behind_a_good_header(dump: bytes, rest: bytes) -> None:
    assert checked(dump[:40] + rest) is not None


@quietly
@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    checked(data)


IDS = [*range(7), 827346259, 827346260, 827346261, 2**32 - 1]


@quietly
@given(st.sampled_from("<>"), st.lists(st.tuples(st.sampled_from(IDS), st.binary(max_size=120)), max_size=12))
def test_records_of_any_content(order: str, records: list[tuple[int, bytes]]) -> None:
    dump = JitDump(byte_order=order)
    for record_id, payload in records:
        dump.raw(record_id, payload)
    trace = checked(dump.load("f", CODE).bytes())
    assert trace is not None
    assert len(trace.code) >= 1


U32 = st.one_of(st.integers(0, 5), st.sampled_from([2**31 - 1, 2**31, 2**32 - 1]), st.integers(0, 2**32 - 1))
INDEX = st.integers(0, 2)


def rows(*columns: st.SearchStrategy[int]) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.tuples(*columns), max_size=8)


@quietly
@given(
    st.lists(st.tuples(INDEX, INDEX, U32, U32, U32), min_size=1, max_size=5),
    rows(INDEX, INDEX, INDEX, U32, U32), rows(U32, U32), rows(U32, INDEX, U32, U32), st.integers(2, 3),
)  # fmt: skip
def test_any_rows_of_variant_a(functions: list, calls: list, ranges: list, lines: list, n: int) -> None:  # type: ignore[type-arg]
    """Lists that are whole, with any numbers in them."""
    names = ["f", "g", "h"][:n]
    trace = checked(JitDump().debug_info2_a(names, names, functions, calls, ranges, lines).load("f", CODE, 64).bytes())
    assert trace is not None
    assert len(trace.code) == 1


CALLERS = st.one_of(st.integers(-1, 5), st.sampled_from([-(2**31), 2**31 - 1]))


@quietly
@given(
    rows(U32, INDEX),
    st.lists(st.tuples(CALLERS, INDEX, st.integers(-2, 3), U32, U32, U32, U32), max_size=6),
    st.lists(st.text(alphabet="ab\u00e9", max_size=3), max_size=4),
)
def test_any_rows_of_variant_b(offsets: list, positions: list, strings: list[str]) -> None:  # type: ignore[type-arg]
    trace = checked(JitDump().debug_info2_b(CODE, offsets, positions, strings).load("f", CODE, 64).bytes())
    assert trace is not None
    assert len(trace.code) == 1


U64 = st.one_of(st.integers(CODE - 64, CODE + 64), st.sampled_from(SPECIAL), st.integers(0, 2**64 - 1))
ENTRIES = st.lists(
    st.tuples(U64, U32, U32, st.sampled_from([b"", b"\xff", b"/a.c", FILE.encode(), V8_FREED])), max_size=6
)


@quietly
@given(st.booleans(), U64, ENTRIES, st.sampled_from([b"", V8_FREED]), st.integers(0, 80), st.sampled_from("*^"))
def test_any_entries(v8: bool, address: int, entries: list, freed: bytes, size: int, tier: str) -> None:  # type: ignore[type-arg]
    """Addresses anywhere: also where the sum of address and offset does not fit. Two tables, of which one may be left
    out as one of bytecode."""
    dump = JitDump(pad1=0xDEADBEEF if v8 else 0)
    for marker in (tier, "*"):
        dump.debug_info(address, entries, freed=freed).load(f"JS:{marker}f {FILE}:3:7", address, size)
    trace = checked(dump.bytes())
    assert trace is not None
    if v8 and tier == "^":
        (frame,) = trace.code_readers[0].frames_at(trace, 0, size // 2)
        assert (trace.frames["line"][frame], trace.frames["column"][frame]) == (0, 0)


LOADS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20), st.integers(0, 30), st.booleans()), max_size=25)


@quietly
@given(LOADS)
def test_no_two_places_overlap(events: list[tuple[int, int, int, bool]]) -> None:
    """At no time, wherever code is loaded and moved to; what is alive at the end is what a simple model keeps."""
    dump = JitDump()
    alive: dict[int, tuple[int, int]] = {}
    n, old = 0, 0
    for nth, (address, size, _, is_move) in enumerate(sorted(events, key=lambda event: event[2])):
        if is_move and alive:
            old = sorted(alive)[address % len(alive)]
            begin, size = alive.pop(old)
            dump.move(begin, 1000 + address, index=old, size=size, ts=nth)
            code = old
        else:
            dump.load("f", 1000 + address, size, index=n, ts=nth)
            code, n = n, n + 1
        for other, (begin, length) in list(alive.items()):
            if size and length and begin < 1000 + address + size and 1000 + address < begin + length:
                del alive[other]
        alive[code] = (1000 + address, size)
    trace = checked(dump.bytes())
    assert trace is not None
    places = trace.code_mappings
    now = np_alive(trace)
    assert now == {code: begin for code, (begin, _) in alive.items()}
    assert all(end < 0 or end >= start for start, end in zip(places["start_ts"], places["end_ts"], strict=True))


def np_alive(trace: Trace) -> dict[int, int]:
    places = trace.code_mappings
    rows = zip(places["code"].tolist(), places["address"].tolist(), places["end_ts"].tolist(), strict=True)
    return {code: address for code, address, end in rows if end < 0}


@pytest.mark.parametrize("name", [*SMALLEST, "php82/jit-7884.dump", "samply-ext/ext-mixed-little-s104.dump"])
def test_recordings_with_random_damage(name: str) -> None:
    rng = random.Random(20261121)
    data = content(name)
    for _ in range(30 if len(data) < 100_000 else 5):
        damaged = bytearray(data)
        for _ in range(rng.choice([1, 3, 30])):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        checked(bytes(damaged))


# ---------------------------------------------------------------- outputs


def huge_numbers() -> bytes:
    """Times, addresses, sizes and thread ids at their borders."""
    dump = JitDump(pid=2**32 - 1)
    for nth, ts in enumerate((0, 1, 2**62, 2**63, 2**64 - 1)):
        dump.load(f"f{nth}", 2**64 - 32 * nth - 32, 16, ts=ts, tid=2**32 - 1 - nth, index=2**64 - 1)
    return dump.bytes()


def huge_sizes() -> bytes:
    """Code of 2 GB, of which the file has nothing."""
    data = bytearray()
    order = "<"
    for nth in range(5):
        dump = JitDump().load(f"f{nth}", CODE + (nth << 32), 1)
        record = bytearray(dump.bytes()[40:])
        record[40:48] = struct.pack(order + "Q", 2**31 - 1)
        data += record
    return JitDump().bytes() + bytes(data)


BORDERS: dict[str, Callable[[], bytes]] = {"numbers": huge_numbers, "sizes": huge_sizes}


@pytest.mark.parametrize("suffix", [".json", ".gecko.json", ".pftrace"])
@pytest.mark.parametrize("case", BORDERS)
def test_numbers_at_their_borders_are_written(case: str, suffix: str, tmp_path: Path) -> None:
    trace = checked(BORDERS[case]())
    assert trace is not None
    assert len(trace.code) == 5
    traceferry.save(trace, tmp_path / f"out{suffix}")


@pytest.mark.parametrize("suffix", [".json", ".gecko.json", ".pftrace"])
def test_damaged_dumps_are_written_all_the_same(tmp_path: Path, suffix: str) -> None:
    """What laws.check lets through, an exporter writes."""
    rng = random.Random(7)
    for dump in WHOLE * 5:
        damaged = bytearray(dump)
        for _ in range(3):
            damaged[40 + rng.randrange(len(damaged) - 40)] = rng.randrange(256)
        trace = checked(bytes(damaged))
        assert trace is not None
        traceferry.save(trace, tmp_path / f"out{suffix}")


# ---------------------------------------------------------------- counts that cannot be

A_ROWS = (["/a.js"], ["f"], [(0, 0, 1, 0, 0)], [(0, 1, 0, 2, 0)], [(0, 4)], [(0, 0, 2, 0)])
A_FIELDS = (
    "file_count", "file_list_size", "function_names_count", "function_names_list_size", "function_count",
    "inline_call_record_count", "range_count", "line_record_count",
)  # fmt: skip
HUGE: dict[str, Callable[[JitDump], JitDump]] = {
    "2^60 entries": lambda d: d.debug_info(CODE, [(CODE, 1, 0, "/a.c")], count=2**60),
    "2^64 - 1 entries": lambda d: d.debug_info(CODE, [], count=2**64 - 1),
    "entries in many records": lambda d: d.append(JitDump().debug_info(CODE, [], count=2**40).bytes()[40:] * 500),
    "C: 2^60 entries": lambda d: d.inline_info_c(CODE, [(1, 1, "f", "/a.js")], count=2**60),
    "B: 2^61 offsets": lambda d: d.debug_info2_b(CODE, [], [], [], counts=(2**61, 0, 0)),
    "B: 2^60 positions": lambda d: d.debug_info2_b(CODE, [], [], [], counts=(0, 2**60, 0)),
    "B: 2^32 strings": lambda d: d.debug_info2_b(CODE, [], [], ["f"], counts=(0, 0, 2**32)),
    "B: 2^64 - 1 strings": lambda d: d.debug_info2_b(CODE, [], [], ["f"], counts=(0, 0, 2**64 - 1)),
    "B: offsets that wrap around": lambda d: d.debug_info2_b(CODE, [], [], ["f"], counts=(2**61 + 1, 0, 1)),
    "code of 2^63 bytes": lambda d: d.raw(0, struct.pack("<IIQQQQ", 1, 1, CODE, CODE, 2**63, 0) + b"f\0"),
    "code of 2 GB": lambda d: d.raw(0, struct.pack("<IIQQQQ", 1, 1, CODE, CODE, 2**31 - 1, 0) + b"f\0"),
    "a source of 4 GB": lambda d: d.raw(827346261, struct.pack("<II", 2**32 - 1, 2**32 - 1) + b"/a.c\0text"),
    "a record of 4 GB": lambda d: d.raw(2, b"\0" * 16, size=2**32 - 1),
    **{f"A: {name}": lambda d, name=name: d.debug_info2_a(*A_ROWS, **{name: 2**32 - 1}) for name in A_FIELDS},  # type: ignore[misc]
}  # fmt: skip


@pytest.mark.parametrize("case", HUGE)
def test_huge_counts_do_not_allocate(case: str) -> None:
    dump = JitDump()
    HUGE[case](dump)
    data = dump.load("f", CODE).bytes()
    tracemalloc.start()
    try:
        assert checked(data) is not None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50_000_000


def chain_of_callers() -> bytes:
    """Every position a stack of its own, as deep as they go."""
    positions = [(nth - 1, 0, 1, 0, 0, nth + 1, 1) for nth in range(5000)]
    return JitDump().debug_info2_b(CODE, [(nth, nth) for nth in range(5000)], positions, ["f", "/a.js"]).bytes()


def deep_tree() -> bytes:
    calls, ranges = [(depth, 1, 0, 2, 0) for depth in range(5000)], [(0, 1 << 20)] * 5000
    return JitDump().debug_info2_a(["/a.js"], ["f"], [(0, 0, 1, 0, 0)], calls, ranges, [(0, 0, 2, 0)]).bytes()


@pytest.mark.parametrize("make", [chain_of_callers, deep_tree])
def test_deep_stacks_do_not_multiply(make: Callable[[], bytes]) -> None:
    data = JitDump().bytes() + make()[40:] + JitDump().load("f", CODE, 16).bytes()[40:]
    tracemalloc.start()
    try:
        assert checked(data) is not None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50_000_000


def hostile_chain(n: int, n_offsets: int, size: int = 1 << 20) -> bytes:
    """Code of a size that the file does not hold, which at each offset has a stack of its own."""
    chain = [(nth - 1, 0, 1, 0, 0, nth + 1, 1) for nth in range(n)]
    dump = JitDump().debug_info2_b(CODE, [(nth, nth % n) for nth in range(n_offsets)], chain, ["f", "/a.js"])
    return dump.raw(0, struct.pack("<IIQQQQ", 1, 1, CODE, CODE, size, 0) + b"f\0").bytes()


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The depth of every stack of variant B that is made: what takes the time."""
    depths: list[int] = []
    stack_at = TableB.stack_at

    def watched(self: TableB, offset: int) -> Stack:
        stack = stack_at(self, offset)
        depths.append(len(stack))
        return stack

    monkeypatch.setattr(TableB, "stack_at", watched)
    return depths


def test_a_hostile_chain_takes_no_more_than_its_depth(looked_up: list[int]) -> None:
    """72 KB of which each of 2000 positions is called by the one before: as text, it would be two million frames. Each
    offset is looked up once, 128 deep (and once for the function's name)."""
    data = hostile_chain(2000, 2000)
    assert len(data) < 75_000
    trace = read(data)
    assert laws.check(trace) == []
    assert (len(looked_up), max(looked_up)) == (2001, MAX_DEPTH)
    assert len(trace.frames) <= sum(looked_up) + 1 <= 2000 * MAX_DEPTH
    assert report_of(trace) == {"inlines_cut": 1}
    assert shown_bytes(trace) == 1 << 20


def shown_bytes(trace: Trace) -> int:
    """In the tree of code sizes."""
    return sum(int(t.load(trace).samples["weight"].sum()) for _, t in trace.threads if t.name == CODE_SIZE)


def test_a_hostile_chain_takes_no_more_memory_than_its_frames() -> None:
    tracemalloc.start()
    try:
        trace = read(hostile_chain(300, 300))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1000 * len(trace.frames) < 60_000_000


@pytest.mark.parametrize(("n", "n_offsets"), [(2000, 2000), (500, 20_000)])
def test_the_tree_of_code_sizes_ends_inside_a_code_object(
    monkeypatch: pytest.MonkeyPatch, looked_up: list[int], n: int, n_offsets: int
) -> None:
    """One code object alone may have more stacks than the tree holds; what is left counts for its function."""
    monkeypatch.setattr(code_sizes, "MAX_INLINED_FRAMES", 1 << 13)
    trace = read(hostile_chain(n, n_offsets))
    assert laws.check(trace) == []
    assert sum(looked_up) <= (1 << 13) + 2 * MAX_DEPTH
    assert max(len(trace.frames), len(trace.stacks)) <= (1 << 13) + 2 * MAX_DEPTH
    assert report_of(trace) == {"sizes_simplified": 1, "inlines_cut": 1}
    assert shown_bytes(trace) == 1 << 20


def test_the_tree_of_code_sizes_holds_a_million_frames() -> None:
    """Of what real recordings need, nothing is left out."""
    assert code_sizes.MAX_INLINED_FRAMES == 1 << 20
    for name in dumps("samply-ext/"):
        assert "sizes_simplified" not in report_of(read(content(name)))


def test_a_header_longer_than_its_file() -> None:
    trace = checked(JitDump().bytes()[:8] + struct.pack("<I", 2**32 - 1) + JitDump().load("f", CODE).bytes()[12:])
    assert trace is not None
    assert [issue.kind for issue in trace.report] == ["dump_unfinished"]


def test_names_without_an_end() -> None:
    """A megabyte without a NUL, and a megabyte of spaces in a name of V8's."""
    load = struct.pack("<IIQQQQ", 1, 1, CODE, CODE, 0, 0) + b"x" * (1 << 20)
    assert checked(JitDump().raw(0, load).bytes()) is not None
    dump = JitDump.v8().debug_info(CODE, [(CODE, 1, 1, FILE)] * 3, freed=V8_FREED)
    assert checked(dump.load("JS:*f" + " " * (1 << 20) + f"{FILE}:1:1", CODE).bytes()) is not None
    assert checked(JitDump().debug_info(CODE, [], count=5).append(b"").load("f", CODE).bytes()) is not None
