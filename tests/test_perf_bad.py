"""Any bytes, with a dump of any bytes, give a valid trace or a FormatError; nothing else escapes, no count is
believed."""

import random
import struct
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from builders.jitdump import Function, Inlined, JitDump
from builders.perf_data import (
    AUXTRACE,
    CONTEXT_KERNEL,
    CONTEXT_USER,
    FEATURES,
    HEADER_FEATURE,
    ID_INDEX,
    KERNEL_MODE,
    MONOTONIC,
    MONOTONIC_RAW,
    SAMPLE,
    USER_MODE,
    X86_64_REGS,
    PerfData,
)  # fmt: skip
from conftest import cuts, examples, far_cuts
from hypothesis import given
from hypothesis import strategies as st
from jit_recordings import content
from support import load_checked
from test_perf_map import CODE, DUMP, EVERYTHING, KERNEL, LIB, LIB_PATH, LIB_SIZE, PID, START, SWITCHES, X, kernel_map

from traceferry.analysis.info.summary import summarize
from traceferry.common.errors import FormatError
from traceferry.files.output import Output
from traceferry.files.source import Source
from traceferry.importers import perf
from traceferry.importers.perf import spaces
from traceferry.model import Trace, TraceBuilder, laws
from traceferry.reading import ImportContext
from traceferry.registry import exporter_named, importer_named

quietly = examples(150)
PLACES = st.integers(0, 1 << 16)


# ---------------------------------------------------------------- recordings and dumps


def dump(order: str = "<") -> bytes:
    """Code that lies, moves and has inlined functions."""
    inlined = [Inlined(Function("inner", "/a.c"), (2, 1), [(4, 8)])]
    built = JitDump(byte_order=order, pid=PID, start=START).load("f", CODE, ts=START + 20)
    built.inline_tree_a(Function("outer", "/a.c"), [(0, "/a.c", 1, 0)], inlined).load("g", CODE + 64)
    built.debug_info(CODE + 128, [(CODE + 128, 3, 1, "/a.js"), (CODE + 132, 4, 1, "/a.js")]).load("h", CODE + 128)
    return built.move(CODE, CODE + 32, ts=START + 60).load("i", CODE + 60, ts=START + 70).bytes()


def every_record(
    order: str = "<", mode: str = "file", *, compressed: bool = False, clockid: int | None = MONOTONIC
) -> PerfData:
    """A short recording with what the map half reads, in all its states."""
    data = PerfData(order, mode, start=START)
    data.event(sample_type=EVERYTHING, freq=997, flags=SWITCHES, clockid=clockid)
    data.tracepoint("my:thing", 99, [("int n", "i"), ("char[] path", "loc")], "x", sample_type=EVERYTHING + "|RAW")
    data.feature(HOSTNAME="h", VERSION="6.1", CLOCK_DATA=(MONOTONIC, 10**18, START), CMDLINE=["perf", "record"])
    data.feature(BUILD_ID=[(-1, bytes(range(20)), LIB_PATH)])
    if compressed:
        data.begin_compressed()
    data.comm(PID, PID, "app", ts=0).mmap2(PID, PID, LIB, LIB_SIZE, 0, LIB_PATH, ts=0)
    kernel_map(data).mmap2(PID, PID, X, 4096, 0, f"/x/{DUMP}", ts=START + 10)
    data.sample(PID, PID, START + 30, CODE, [CONTEXT_USER, CODE, LIB + 9, 5]).finished_round()
    data.sample(PID, PID, START + 50, KERNEL, [CONTEXT_KERNEL, KERNEL + 4, CONTEXT_USER, CODE + 69, LIB])
    data.sample(PID, PID, START + 40, LIB, event=1, fields={"n": 5, "path": "/x"})
    data.fork(PID, 8, PID, PID, START + 41).comm(PID, 8, "worker", START + 42).sample(PID, 8, START + 65, CODE + 33)
    data.fork(9, 9, PID, PID, START + 43).comm(9, 9, "ls", START + 44, exec=True).sample(9, 9, START + 66, CODE + 129)
    data.switch(PID, PID, START + 45, out=True, preempt=True).switch(PID, PID, START + 48, out=False)
    data.ksymbol(KERNEL + 0x20, 32, "bpf", ts=START + 49).mmap2(PID, PID, LIB + 64, 64, 0, "//anon", ts=START + 50)
    data.lost(3, ts=START + 51).throttle(START + 52).exit(PID, 8, START + 80).sample(PID, PID, START + 90, CODE + 62)
    return data.end_compressed([40, 133, 400]) if compressed else data


KINDS: dict[str, Callable[[], PerfData]] = {
    "file": every_record,
    "big file": lambda: every_record(">"),
    "pipe": lambda: every_record(mode="pipe"),
    "big pipe": lambda: every_record(">", "pipe"),
    "compressed": lambda: every_record(compressed=True),
    "compressed pipe": lambda: every_record(">", "pipe", compressed=True),
    "another clock": lambda: every_record(clockid=MONOTONIC_RAW),
}
WHOLE = [make().bytes() for make in KINDS.values()]
DUMPS = [dump(), dump(">")]


def checked(data: bytes, code: bytes = DUMPS[0]) -> Trace | None:
    """The trace, or None for a FormatError."""
    try:
        reading = perf.read([Source("/nowhere/perf.data", memoryview(data))])
    except FormatError:
        return None
    assert all(isinstance(one.path, str) for one in reading.companions)
    trace = TraceBuilder()
    with suppress(FormatError):
        importer_named("jitdump").module.read([Source(DUMP, memoryview(code))]).add_to(trace, ImportContext())
    try:
        reading.add_to(trace, ImportContext())
    except FormatError:
        return None
    trace.sort()
    assert laws.check(trace) == []
    return trace


def n_samples(trace: Trace | None) -> int:
    threads = [thread for _, thread in trace.threads if not thread.sample_unit] if trace is not None else []
    return sum(len(thread.load(trace).samples) for thread in threads)


# ---------------------------------------------------------------- cuts


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_cut_anywhere(make: Callable[[], PerfData]) -> None:
    """What is in front of the cut is kept: samples never get fewer as the file gets longer."""
    data = make().bytes()
    before = 0
    for cut in cuts(len(data), 23):
        trace = checked(data[:cut])
        n = n_samples(trace)
        assert n >= before
        before = n
        assert trace is not None or cut < 700
    assert before == 5


@pytest.mark.parametrize("code", DUMPS, ids=["little", "big"])
def test_the_dump_cut_anywhere(code: bytes) -> None:
    """Code of which the record is whole is named."""
    before = 0
    for cut in cuts(len(code), 11):
        trace = checked(WHOLE[0], code[:cut])
        assert trace is not None
        assert before <= len(trace.code)
        before = len(trace.code)
        in_code = trace.frames["code"][trace.stacks["frame"]] >= 0
        assert np.any(in_code) or before == 0
    assert before == 4


@pytest.mark.parametrize("name", ["lli19mc", "wasmtime"])
def test_recordings_cut_anywhere(name: str) -> None:
    data, code = content(f"{name}/perf.data"), content(f"{name}/jit-{'13217' if name == 'lli19mc' else '9865'}.dump")
    before = 0
    for cut in [*cuts(600, 7), *far_cuts(len(data), 601)]:
        n = n_samples(checked(data[:cut], code))
        assert n >= before
        before = n
    assert before > 1000


# ---------------------------------------------------------------- damage at random


@quietly
@given(
    st.sampled_from(WHOLE), st.lists(st.tuples(PLACES, st.integers(0, 255)), min_size=1, max_size=8),
    st.sampled_from(DUMPS), st.lists(st.tuples(PLACES, st.integers(0, 255)), max_size=4),
)  # fmt: skip
def test_bytes_changed(data: bytes, changes: list[tuple[int, int]], code: bytes, others: list[tuple[int, int]]) -> None:
    checked(changed(data, changes), changed(code, others))


def changed(data: bytes, changes: list[tuple[int, int]]) -> bytes:
    damaged = bytearray(data)
    for at, value in changes:
        damaged[at % len(damaged)] = value
    return bytes(damaged)


@quietly
@given(st.sampled_from(WHOLE), st.lists(st.tuples(PLACES, st.integers(0, 7)), min_size=1, max_size=8))
def test_bits_flipped(data: bytes, flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(data)
    for at, bit in flips:
        damaged[at % len(damaged)] ^= 1 << bit
    checked(bytes(damaged))


LIVES: dict[str, tuple[Callable[[PerfData], PerfData], int, int]] = {
    "a number used again": (
        lambda data: data.exit(PID, 8, START + 20).fork(PID, 8, PID, PID, START + 30).comm(PID, 8, "x", START + 31),
        START + 30, START + 90,
    ),
    "an end before the start": (
        lambda data: data.fork(PID, 8, PID, PID, START + 60).comm(PID, 8, "x", START + 61).exit(PID, 8, START + 20),
        START + 60, START + 90,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LIVES)
def test_no_thread_ends_before_it_starts(name: str) -> None:
    add, start_ts, end_ts = LIVES[name]
    data = add(PerfData(start=START).event(freq=997).sample(PID, PID, START, CODE))
    trace = checked(data.sample(PID, PID, START + 90, CODE).bytes())
    assert trace is not None
    [thread] = [thread for _, thread in trace.threads if thread.tid == 8]
    assert (thread.start_ts, thread.end_ts) == (start_ts, end_ts)


@quietly
@given(st.sampled_from(WHOLE), PLACES, st.binary(min_size=1, max_size=40))
def test_bytes_inserted(data: bytes, at: int, what: bytes) -> None:
    at %= len(data)
    checked(data[:at] + what + data[at:])


@quietly
@given(st.sampled_from(WHOLE), PLACES, st.integers(1, 200))
def test_bytes_removed(data: bytes, at: int, n: int) -> None:
    at %= len(data)
    checked(data[:at] + data[at + n :])


@quietly
@given(
    st.sampled_from(WHOLE),
    PLACES,
    st.sampled_from([0, 1, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]),
)
def test_words_at_their_limits(data: bytes, at: int, value: int) -> None:
    at = 8 * (at % (len(data) // 8 - 1))
    checked(data[:at] + struct.pack("<Q", value) + data[at + 8 :])


@quietly
@given(st.sampled_from([b"PERFILE2", b"2ELIFREP"]), st.binary(max_size=300))
def test_any_bytes_behind_the_magic(magic: bytes, rest: bytes) -> None:
    checked(magic + rest)


NUMBERS = st.one_of(
    st.integers(0, 9), st.integers(0, (1 << 64) - 1),
    st.sampled_from([LIB, LIB + LIB_SIZE, CODE, CODE + 4, KERNEL, START]),
    st.sampled_from([1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]),
)  # fmt: skip
PIDS = st.sampled_from([-1, 0, 1, PID, 8, 9, (1 << 31) - 1, -(1 << 31)])
RECORDS = st.lists(st.tuples(st.integers(0, 10), PIDS, PIDS, NUMBERS, NUMBERS, NUMBERS), max_size=20)


def add_any(data: PerfData, kind: int, pid: int, other: int, a: int, b: int, c: int) -> None:
    paths = [
        "/lib/a.so",
        "//anon",
        f"/x/{DUMP}",
        "/x/jitted-7-0.so",
        "",
        "[vdso]",
        "[kernel.kallsyms]_text",
        "/a\ud7ff",
    ]
    path = paths[(a ^ b) % len(paths)]
    modes = [0, 1, 2, 3, 4, 5, 7]
    match kind:
        case 0 | 1:
            data.sample(pid, other, a, b, [b, c, CONTEXT_USER, a, b], mode=modes[a % 7], period=c)
        case 2:
            data.sample(pid, other, a, b, [], mode=modes[c % 7], event=1, raw=struct.pack("<QQ", b, c)[: c % 17])
        case 3:
            data.mmap2(pid, other, a, b, c, path, ts=c)
        case 4:
            data.mmap(pid, other, a, b, c, path, misc=KERNEL_MODE if b & 1 else USER_MODE, ts=b)
        case 5:
            data.comm(pid, other, path, a, exec=bool(b & 1))
        case 6:
            data.fork(pid, other, other, pid, a, own_ts=b)
        case 7:
            data.exit(pid, other, a, own_ts=b)
        case 8:
            data.switch(pid, other, a, out=bool(b & 1), preempt=bool(c & 1))
        case 9:
            data.ksymbol(a, b & 0xFFFFFFFF, path, unregister=bool(c & 1), ts=c)
        case _:
            data.lost(a).lost_samples(b).throttle(c)


@quietly
@given(RECORDS, st.sampled_from(["<", ">"]), st.sampled_from([MONOTONIC, MONOTONIC_RAW, None]))
def test_records_of_any_content(records: list[Any], order: str, clockid: int | None) -> None:
    """Records in any order with any numbers in them."""
    data = PerfData(order, start=START).event(sample_type=EVERYTHING, freq=997, flags=SWITCHES, clockid=clockid)
    data.tracepoint("my:thing", 99, [("int n", "i"), ("char[] path", "loc")], "x", sample_type=EVERYTHING + "|RAW")
    for record in records:
        add_any(data, *record)
    assert checked(data.bytes()) is not None


@pytest.mark.parametrize("name", ["lli19mc", "wasmtime"])
def test_recordings_with_random_damage(name: str) -> None:
    rng = random.Random(20261121)
    data = content(f"{name}/perf.data")
    for _ in range(8):
        damaged = bytearray(data)
        for _ in range(rng.choice([1, 3, 30])):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        checked(bytes(damaged))


class Nowhere:
    def write(self, data: bytes | memoryview) -> None:
        pass


def exported(trace: Trace) -> None:
    """By all exporters: a page holds what those that are not named here write."""
    for name in ("html", "gecko"):
        out = Output(Nowhere(), gzip=False)
        exporter_named(name).writer()(trace, out, lambda _: None)
        out.finish()


@pytest.mark.parametrize("seed", range(4))
def test_damaged_recordings_are_written_all_the_same(seed: int) -> None:
    """What laws.check lets through, an exporter writes."""
    rng = random.Random(seed)
    for data in WHOLE:
        trace = checked(changed(data, [(rng.randrange(len(data)), rng.randrange(256)) for _ in range(3)]))
        if trace is not None:
            exported(trace)


@examples(40)
@given(RECORDS)
def test_any_records_are_written(records: list[Any]) -> None:
    data = PerfData(start=START).event(sample_type=EVERYTHING, freq=997, flags=SWITCHES)
    data.tracepoint("my:thing", 99, [("int n", "i"), ("char[] path", "loc")], "x", sample_type=EVERYTHING + "|RAW")
    for record in records:
        add_any(data, *record)
    trace = checked(data.bytes())
    assert trace is not None
    exported(trace)


def test_records_are_printed_whatever_they_are() -> None:
    """`traceferry dump`."""
    rng = random.Random(5)
    for data in WHOLE:
        for n in (0, 1, 5, 30):
            damaged = changed(data, [(16 + rng.randrange(len(data) - 16), rng.randrange(256)) for _ in range(n)])
            try:
                lines = list(perf.dump(Source("perf.data", memoryview(damaged)), 0))
            except FormatError:
                continue
            assert all(isinstance(line, str) for line in lines)


# ---------------------------------------------------------------- counts that cannot be

MANY, MOST = 1 << 60, (1 << 64) - 1


def test_more_lost_events_than_a_number_holds() -> None:
    """Counts are saturated: JSON is written with 64 bits."""
    trace = checked(PerfData(start=START).event().lost(MOST).lost(MOST).lost(MOST).bytes())
    assert trace is not None
    (lost,) = (issue for issue in trace.report if issue.kind == "lost_samples")
    assert lost.count == (1 << 63) - 1
    orjson.dumps([lost.as_json(), summarize(trace)])


def sample_of(*words: int, sample_type: str = "IP|TID|TIME|CALLCHAIN|PERIOD") -> bytes:
    """ip, tid, time, period; then words as they are."""
    start = [LIB, PID << 32 | PID, START, 1]
    data = PerfData().event(sample_type=sample_type).sample(PID, PID, START) if "CALL" in sample_type else PerfData()
    data = data if data.events else data.event(sample_type=sample_type)
    numbers = [number & MOST for number in (*start, *words)]
    return data.raw_record(SAMPLE, USER_MODE, struct.pack(f"<{len(numbers)}Q", *numbers)).bytes()


def with_feature(name: str, payload: bytes) -> bytes:
    return every_record().feature(**{name: payload}).bytes()


def header_word(at: int, value: int) -> bytes:
    data = bytearray(WHOLE[0])
    struct.pack_into("<Q", data, at, value)
    return bytes(data)


def deep_inlines() -> tuple[bytes, bytes]:
    """3000 functions inlined into each other, at each of 4000 return addresses."""
    stack = [(f"f{nth % 50}", "/a.c", nth, 0) for nth in range(3000)]
    code = JitDump(pid=PID, start=START).inline_stacks_b(CODE, {0: stack}).load("f", CODE).bytes()
    data = PerfData(start=START).event()
    for _ in range(4):
        data.sample(PID, PID, ip=CODE, chain=[CONTEXT_USER, *[CODE + 8] * 4000])
    return data.bytes(), code


HUGE: dict[str, Callable[[], bytes | tuple[bytes, bytes]]] = {
    "callchain": lambda: sample_of(MANY, 5),
    "callchain of all bytes": lambda: sample_of(MOST >> 3, 5),
    "raw": lambda: sample_of((1 << 32) - 1, 5, sample_type="IP|TID|TIME|PERIOD|RAW"),
    "branches": lambda: sample_of(MANY, 5, sample_type="IP|TID|TIME|PERIOD|BRANCH_STACK"),
    "user stack": lambda: sample_of(1 << 63, 5, sample_type="IP|TID|TIME|PERIOD|STACK_USER"),
    "registers": lambda: PerfData().event(regs_user=X86_64_REGS).sample(PID, PID, regs=[1]).bytes(),
    "size of an attr": lambda: header_word(16, MOST),
    "attrs": lambda: header_word(32, MANY),
    "attrs at the end": lambda: header_word(24, MOST - 7),
    "data at the end": lambda: header_word(40, MOST - 7),
    "data": lambda: header_word(48, MANY),
    "all features": lambda: header_word(72, MOST),
    "ids": lambda: WHOLE[0].replace(struct.pack("<QQ", 104, 16), struct.pack("<QQ", 104, MANY)),
    "events": lambda: with_feature("EVENT_DESC", struct.pack("<II", (1 << 32) - 1, 128) + bytes(400)),
    "attr of an event": lambda: with_feature("EVENT_DESC", struct.pack("<II", 2, (1 << 32) - 1) + bytes(400)),
    "arguments": lambda: with_feature("CMDLINE", struct.pack("<I", (1 << 32) - 1)),
    "pmus": lambda: with_feature("PMU_MAPPINGS", struct.pack("<I", (1 << 32) - 1)),
    "groups": lambda: with_feature("GROUP_DESC", struct.pack("<I", (1 << 32) - 1)),
    "a string": lambda: with_feature("HOSTNAME", struct.pack("<I", (1 << 32) - 1) + b"host"),
    "tracing data": lambda: with_feature(
        "TRACING_DATA", b"\x17\x08\x44tracing0.6\0\0\x08" + struct.pack("<I", 4096) + b"header_page\0" + b"\xff" * 8),
    "build ids of no size": lambda: with_feature("BUILD_ID", bytes(64)),
    "ids of an index": lambda: every_record().raw_record(ID_INDEX, 0, struct.pack("<Q", MANY)).bytes(),
    "auxtrace": lambda: every_record().raw_record(AUXTRACE, 0, struct.pack("<3Q4I", MOST, 0, 0, 0, 0, 0, 0)).bytes(),
    "a feature in a pipe": lambda: every_record(mode="pipe").raw_record(
        HEADER_FEATURE, 0, struct.pack("<QI", FEATURES["CMDLINE"], (1 << 32) - 1)).bytes(),
    "records of no size": lambda: every_record().raw_record(SAMPLE, 2, b"", 0).append(bytes(4096)).bytes(),
    "a mapping of all memory": lambda: every_record().mmap2(PID, PID, 0, MOST, MOST, "/a.so", ts=0).bytes(),
    "inlined functions": deep_inlines,
}  # fmt: skip


@pytest.mark.parametrize("make", HUGE.values(), ids=HUGE)
def test_huge_counts_do_not_allocate(make: Callable[[], bytes | tuple[bytes, bytes]]) -> None:
    made = make()
    tracemalloc.start()
    try:
        checked(*(made if isinstance(made, tuple) else (made,)))
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_many_mappings_over_many_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each address looks at each mapping that holds it: a limit is reported, not taken for damage."""
    monkeypatch.setattr(spaces, "MAX_PAIRS", 1 << 18)
    data = PerfData(start=START).event()
    for nth in range(300):
        data.mmap2(PID, PID, LIB, LIB_SIZE, 0, f"/lib/{nth}.so", ts=START + nth)
    for nth in range(8):
        chain = range(LIB + 1000 * nth, LIB + 1000 * (nth + 1))
        data.sample(PID, PID, START + 5000 + nth, LIB, [CONTEXT_USER, *chain])
    trace = checked(data.bytes())
    assert trace is not None
    kinds = {issue.kind for issue in trace.report}
    assert "mappings_left_out" in kinds
    assert "bad_record" not in kinds


def test_a_circle_of_forks() -> None:
    data = PerfData(start=START).event().mmap2(PID, PID, LIB, LIB_SIZE, 0, LIB_PATH, ts=0)
    for pid in range(10, 200):
        data.fork(pid, pid, 10 + (pid - 9) % 190, pid)
        data.sample(pid, pid, ip=LIB)
    assert checked(data.bytes()) is not None


def test_a_map_file_of_any_bytes(tmp_path: Path) -> None:
    (tmp_path / f"perf-{PID}.map").write_bytes(bytes(range(256)) * 8 + b"\n-1 -1 x\n" + b"f" * 300 + b" 1 x\n")
    (tmp_path / "perf.data").write_bytes(WHOLE[0])
    load_checked(tmp_path / "perf.data")


def test_many_stacks() -> None:
    """More keys and stacks than there is room for at first."""
    data = PerfData(start=START).event().mmap2(PID, PID, LIB, LIB_SIZE, 0, LIB_PATH, ts=0)
    for nth in range(48):
        chain = [LIB + nth, *range(LIB + 1000 * nth, LIB + 1000 * nth + 1000)]
        data.sample(PID, PID, ip=LIB, chain=[CONTEXT_USER, *chain]).sample(PID, PID, chain=[CONTEXT_USER, *chain[::-1]])
    trace = checked(data.bytes())
    assert trace is not None
    assert len(trace.stacks) > 1 << 15
