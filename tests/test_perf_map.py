"""A perf.data in the model: clocks, events, stacks, what an address stands for and when, threads, what was lost.

The process is PID, with a library of 64 kB at LIB
that no machine has, and code of a JIT compiler at CODE. A stack reads `main > f > (inlined)`: its root first; code
without a symbol is `libx.so+0x10`.
"""

import platform
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import plt
from builders.cfi import RSP, EhFrame, def_cfa
from builders.dwarf import HIGH_PC, LOW_PC, NAME, SUBPROGRAM, Dwarf, Symbol, die
from builders.jitdump import Function, Inlined, JitDump
from builders.perf_data import (
    BOOTTIME,
    CONTEXT_HYPERVISOR,
    CONTEXT_KERNEL,
    CONTEXT_USER,
    CPU_CLOCK,
    CPU_CYCLES,
    DUMMY,
    HARDWARE,
    KERNEL_MODE,
    MMAP_DATA,
    MONOTONIC,
    MONOTONIC_RAW,
    PAGE_FAULTS,
    RAW,
    REALTIME,
    SOFTWARE,
    TASK_CLOCK,
    TRACEPOINT,
    X86_64_REGS,
    PerfData,
)  # fmt: skip
from support import data_of, events_of, frame_names, load_checked, report_of, thread_of

import traceferry
from traceferry.files.source import Source, open_source
from traceferry.importers.perf import kallsyms, natives
from traceferry.importers.perf.kallsyms import KernelSymbols
from traceferry.importers.perf.layout import RecordType
from traceferry.importers.perf.leaf_frames import of_answer
from traceferry.importers.perf.map_files import read_map_file
from traceferry.importers.perf.stacks import MAX_FRAMES, OF_OTHER_PART
from traceferry.importers.perf.unwinding import OF_FILE_WITH_DEBUG_INFORMATION, OF_FILE_WITHOUT
from traceferry.libraries import recorded_files, vdso
from traceferry.libraries.recorded_files import IS_OF_OTHER_BUILD
from traceferry.model import PREEMPTED, RUNNING, SAMPLES, SCHEDULING, WAITING, Clock, Trace, TraceBuilder, laws
from traceferry.reading import ImportContext, LoadOptions
from traceferry.registry import importer_named
from traceferry.symbolication.packages import OF_NO_SYMBOL

PID = 7
LIB, LIB_SIZE, LIB_PATH = 0x40_0000, 0x1_0000, "/nowhere/libx.so"
CODE = 0x7F00_0000_1000
DUMP = "jit-7.dump"
KERNEL = 0xFFFF_FFFF_8100_0000
MODULE = KERNEL + 0x4000_0000
TOP = (1 << 64) - 1
SECOND = 1_000_000_000
START = 100 * SECOND
EVERYTHING = "IDENTIFIER|IP|TID|TIME|CALLCHAIN|CPU|PERIOD"
CONTEXT_GUEST = -2048
NAMES_MISSING = ("names_missing", "names_partly_missing", "kernel_names_missing", "kernel_elsewhere")
CLOCK_TAI = 11


def recorded(order: str = "<", mode: str = "file", **options: Any) -> PerfData:
    """A recording that begins with its process and library."""
    data = PerfData(order, mode, start=START).event(**options)
    return data.comm(PID, PID, "app", ts=0).mmap2(PID, PID, LIB, LIB_SIZE, 0, LIB_PATH, ts=0)


def read(
    data: PerfData | bytes, *dumps: JitDump | bytes, path: str = "perf.data", context: ImportContext | None = None
) -> Trace:
    """Straight from memory, with dumps named jit-7.dump, or as their process is."""
    trace = TraceBuilder()
    context = context or ImportContext()
    given = data if isinstance(data, bytes) else data.bytes()
    recording = importer_named("perf").module.read([Source(path, memoryview(given))])
    sources = [
        Source(_dump_name(dump), memoryview(dump if isinstance(dump, bytes) else dump.bytes())) for dump in dumps
    ]
    if sources:
        of_dumps = importer_named("jitdump").module.read(sources)
        of_dumps.add_to(trace, context._replace(mapped=recording.mapped))
    recording.add_to(trace, context)
    trace.sort()
    assert laws.check(trace) == []
    return trace


def _dump_name(dump: JitDump | bytes) -> str:
    return DUMP if isinstance(dump, bytes) else f"jit-{dump.pid}.dump"


def jitdump(**options: Any) -> JitDump:
    return JitDump(pid=options.pop("pid", PID), start=options.pop("start", START), **options)


# ---------------------------------------------------------------- what a trace says of samples


def path_text(trace: Trace, stack: int) -> str:
    frames: list[str] = []
    while stack >= 0:
        frame = int(trace.stacks["frame"][stack])
        name = trace.func_name(int(trace.frames["func"][frame]))
        frames.append(f"({name})" if trace.frames["inline_depth"][frame] else name)
        stack = int(trace.stacks["prefix"][stack])
    return " > ".join(reversed(frames))


def stacks(trace: Trace, tid: int = PID) -> list[str]:
    """Of all threads of this number, one after the other."""
    threads = [thread.load(trace) for _, thread in trace.threads if thread.tid == tid and not thread.sample_unit]
    return [path_text(trace, stack) for thread in threads for stack in thread.samples["stack"].tolist()]


def stack(trace: Trace, tid: int = PID) -> str:
    """Of the thread's one sample."""
    (found,) = stacks(trace, tid)
    return found


def leaf(trace: Trace, column: str, tid: int = PID) -> int:
    """A column of the innermost frame of the thread's first sample."""
    return int(trace.frames[column][trace.stacks["frame"][data_of(trace, tid).samples["stack"][0]]])


def category(trace: Trace) -> str:
    return trace.strings[int(trace.categories["name"][leaf(trace, "category")])]


def reported(trace: Trace) -> dict[str, int]:
    """What the report says, but for addresses in no known code, callers that code without frame pointers lacks, files
    that were read, and names: the library and the kernel are on no machine."""
    left_out = ("code_unknown", "callers_missing", "files_read", "symbols_used", *NAMES_MISSING)
    return {kind: n for kind, n in report_of(trace).items() if kind not in left_out}


# ---------------------------------------------------------------- clocks

CLOCKS = {
    "monotonic": MONOTONIC, "monotonic_raw": MONOTONIC_RAW, "realtime": REALTIME, "boot": BOOTTIME, "tai": CLOCK_TAI,
    "sched": None,
}  # fmt: skip


@pytest.mark.parametrize(("kind", "clockid"), CLOCKS.items(), ids=CLOCKS)
def test_clocks(kind: str, clockid: int | None) -> None:
    trace = read(recorded(clockid=clockid).sample(PID, PID, 5 * SECOND))
    assert trace.clock == Clock(kind, 0 if kind == "realtime" else None)  # type: ignore[arg-type]
    assert data_of(trace, PID).samples["ts"].tolist() == [5 * SECOND]


def test_a_recording_of_simpleperf() -> None:
    """Android's: perf's records, features of its own from 128 on, records of its own from 32768 on."""
    said = ["simpleperf_version", "1.4", "event_type_info", "cpu-clock,1,0", "android_sdk_version", "34"]
    meta = b"".join(text.encode() + b"\0" for text in said)
    data = recorded().sample(PID, PID, 5 * SECOND).raw_record(32773, payload=b"\1\0\0\0\0\0\0\0")
    data.feature(SIMPLEPERF_META_INFO=meta, SIMPLEPERF_DEBUG_UNWIND=b"\0" * 4, SIMPLEPERF_FILE2=b"\3\0\0\0abc")
    trace = read(data)
    assert len(data_of(trace, PID).samples) == 1
    assert trace.inputs[0].producer == trace.attributes["recorder"] == "simpleperf 1.4"
    assert trace.attributes["simpleperf android_sdk_version"] == "34"
    assert not [key for key in trace.attributes if "event_type_info" in key]
    assert report_of(trace)["unknown_record"] == 1
    damaged = recorded().sample(PID, PID, SECOND).feature(SIMPLEPERF_META_INFO=b"key\0without an end")
    assert report_of(read(damaged))["bad_record"] == 1


def test_clock_data_tells_the_unix_time() -> None:
    data = recorded().sample(PID, PID, 5 * SECOND)
    trace = read(data.feature(CLOCK_DATA=(MONOTONIC, 1_795_000_000 * SECOND, 3 * SECOND)))
    assert trace.clock == Clock("monotonic", (1_795_000_000 - 3) * SECOND)


def with_code(
    clockid: int | None, late: int, mapped: int = START, *, apart: int = 0, **header: Any
) -> tuple[PerfData, JitDump]:
    """A dump that is mapped at `mapped`, and whose code is announced `late` ns after START and sampled 2 s after it;
    all its times are `apart` ns ahead of the recording's clock."""
    data = recorded(clockid=clockid).mmap2(PID, PID, 0x7E00_0000_0000, 4096, 0, f"/x/{DUMP}", ts=mapped)
    data.sample(PID, PID, START + 2 * SECOND, CODE)
    return data, jitdump(**header).load("f", CODE, ts=START + late + apart)


def moved(trace: Trace) -> int:
    return int(data_of(trace, PID).samples["ts"][0]) - START - 2 * SECOND


def test_one_clock_moves_nothing() -> None:
    trace = read(*with_code(MONOTONIC, 500))
    assert (stack(trace), reported(trace), moved(trace)) == ("f", {}, 0)


@pytest.mark.parametrize("apart", [0, 300_000, -5 * SECOND, 5 * SECOND])
def test_the_time_in_the_dumps_header_aligns_clocks(apart: int) -> None:
    """It is that of the mapping, however late code is compiled. Clocks that may be the same are left alone."""
    for late in (1_000_000, 1_900_000_000):
        trace = read(*with_code(None, late, apart=apart, timestamp=START + apart))
        assert moved(trace) == (apart if abs(apart) > 1_000_000 else 0)
        assert trace.clock == Clock("monotonic")
        assert reported(trace) == {"clock_aligned": 1}
        assert stack(trace) == "f"
        (issue,) = trace.report
        assert f"+{(late + apart - moved(trace)) / 1e6:.3f} ms" in issue.detail


@pytest.mark.parametrize("apart", [0, -5 * SECOND, 5 * SECOND])
@pytest.mark.parametrize("timestamp", [0, 1_795_194_426_078_856], ids=["no header time", "wall-clock time"])
def test_loads_and_samples_align_clocks_within_bounds(apart: int, timestamp: int) -> None:
    """The code is loaded after the mapping, and before its sample; if these are far apart, they tell too little."""
    trace = read(*with_code(MONOTONIC_RAW, 1_990_000_000, START + 1_960_000_000, apart=apart, timestamp=timestamp))
    assert moved(trace) == (apart - 10_000_000 if apart else 0)
    assert (stack(trace), reported(trace)) == ("f", {"clock_aligned": 1})
    trace = read(*with_code(MONOTONIC_RAW, 1_000_000_000, apart=apart, timestamp=timestamp))
    assert (moved(trace), reported(trace)["clock_differs"]) == (0, 1)


def test_the_user_says_how_far_clocks_are_apart() -> None:
    for clockid in (None, MONOTONIC):
        context = ImportContext(LoadOptions(clock_offset_ns=-5 * SECOND))
        trace = read(*with_code(clockid, SECOND, apart=-5 * SECOND), context=context)
        assert (moved(trace), stack(trace), reported(trace)) == (-5 * SECOND, "f", {"clock_aligned": 1})


def test_the_processors_counter_is_converted(tmp_path: Path) -> None:
    """A dump whose times are ticks, and a recording that tells how the kernel converts them."""
    data = recorded(clockid=None).sample(PID, PID, START, LIB)
    data.raw_record(RecordType.TIME_CONV, payload=struct.pack("<QQQ", 10, 2 << 10, 7 * SECOND))
    (tmp_path / "perf.data").write_bytes(data.bytes())
    (tmp_path / DUMP).write_bytes(jitdump(flags=1).load("f", CODE, ts=5).bytes())
    trace = load_checked([tmp_path / "perf.data", tmp_path / DUMP])
    assert trace.clock == Clock("sched")
    assert trace.code["loaded_at"].tolist() == [7 * SECOND + 10]
    assert "clock_unrelated" not in reported(trace)


def test_recordings_without_jitted_code_on_several_clocks() -> None:
    """Nothing is said of code, and the advice is not for the recording that has the clock."""
    sources = [
        Source(f"{clockid}.data", memoryview(recorded(clockid=clockid).sample(PID, PID, START, LIB).bytes()))
        for clockid in (None, MONOTONIC)
    ]
    trace = TraceBuilder()
    importer_named("perf").module.read(sources).add_to(trace, ImportContext())
    (issue,) = (issue for issue in trace.report if issue.kind.startswith("clock_"))
    assert (issue.kind, issue.detail) == ("clock_unrelated", "monotonic and sched")
    assert all(option in issue.advice for option in ("each of them", "-k CLOCK_MONOTONIC", "--clock-offset"))


def test_the_unix_time_moves_with_the_samples() -> None:
    data, dump = with_code(None, SECOND, apart=5 * SECOND, timestamp=START + 5 * SECOND)
    trace = read(data.feature(CLOCK_DATA=(MONOTONIC_RAW, 1_795_000_000 * SECOND, START)), dump)
    assert trace.clock is not None
    sample = int(data_of(trace, PID).samples["ts"][0])
    assert trace.clock.unix_zero_ns is not None
    assert trace.clock.unix_zero_ns + sample == (1_795_000_000 + 2) * SECOND


def test_maps_and_tasks_move_with_the_samples() -> None:
    data, dump = with_code(None, SECOND, apart=5 * SECOND, timestamp=START + 5 * SECOND)
    data.mmap2(PID, PID, 0x50_0000, 4096, 0, "/nowhere/liby.so", ts=START + 3 * SECOND)
    data.mmap2(PID, PID, 0x50_0000, 4096, 0, "/nowhere/libz.so", ts=START + 5 * SECOND)
    data.sample(PID, PID, START + 4 * SECOND, 0x50_0010).sample(PID, PID, START + 6 * SECOND, 0x50_0010)
    data.switch(PID, PID, START + 7 * SECOND, out=True)
    trace = read(data, dump)
    assert stacks(trace) == ["f", "liby.so+0x10", "libz.so+0x10"]
    assert data_of(trace, PID).scheduling["ts"].tolist()[-1:] == [START + 12 * SECOND]


@pytest.mark.parametrize("mapped", [0, None], ids=["mapped before the start", "not mapped"])
def test_clocks_that_nothing_joins(mapped: int | None) -> None:
    """Nothing is moved, and the report says how to record better."""
    data, dump = with_code(MONOTONIC_RAW, SECOND, 0 if mapped == 0 else START, timestamp=START)
    if mapped is None:
        data = recorded(clockid=MONOTONIC_RAW).sample(PID, PID, START + 2 * SECOND, CODE)
    trace = read(data, dump)
    assert reported(trace) == {"clock_differs": 1}
    (issue,) = (issue for issue in trace.report if issue.kind == "clock_differs")
    assert all(option in issue.advice for option in ("-k CLOCK_MONOTONIC", "--clock-offset"))
    assert START + 2 * SECOND in data_of(trace, PID).samples["ts"].tolist()


TIMELESS = "IP|TID|CALLCHAIN|PERIOD"


@pytest.mark.parametrize("clockid", [MONOTONIC, MONOTONIC_RAW, None])
def test_samples_without_times_are_of_what_was_last_at_their_address(clockid: int | None) -> None:
    """perf record --per-thread and --no-timestamp: no clock matters, and all of a dump may be meant."""
    data = recorded(sample_type=TIMELESS, clockid=clockid).mmap2(PID, PID, CODE, 4096, 0, "//anon")
    data.mmap2(PID, PID, X, 4096, 0, f"/x/{DUMP}")
    for place in (0, 64, 128, 192):
        data.sample(PID, PID, START, CODE + place)
    dump = jitdump().load("f", CODE, ts=START + 5).load("before", CODE + 64).load("g", CODE + 64)
    dump.load("h", CODE + 128, ts=START + 9 * SECOND, index=9).move(CODE + 128, CODE + 192, index=9)
    trace = read(data, dump)
    assert (stacks(trace), reported(trace)) == (["f", "g", "h", "h"], {"time_unknown": 4, "code_ambiguous": 1})
    assert (trace.start_ts, trace.end_ts) == (START + 5, dump.now)
    assert set(data_of(trace, PID).samples["ts"].tolist()) == {START + 5}


def test_a_child_without_times() -> None:
    """It has its parent's code, and its own where both have some."""
    data = recorded(sample_type=TIMELESS).fork(CHILD, CHILD, PID, PID)
    data.sample(CHILD, CHILD, START, CODE).sample(CHILD, CHILD, START, CODE + 64).sample(PID, PID, START, CODE)
    of_child = jitdump(pid=CHILD).load("of the child", CODE, ts=START + 10)
    trace = read(data, jitdump().load("f", CODE, ts=START + 20).load("g", CODE + 64), of_child)
    assert (stacks(trace, CHILD), stack(trace)) == (["of the child", "g"], "f")


def test_a_recording_without_times_beside_one_with() -> None:
    """It is put where the other begins, whichever is named first."""
    samples = [recorded(sample_type=kinds).sample(PID, PID, 5 * SECOND, LIB) for kinds in (TIMELESS, EVERYTHING)]
    trace = TraceBuilder()
    sources = [Source(f"{nth}.data", memoryview(data.bytes())) for nth, data in enumerate(samples)]
    importer_named("perf").module.read(sources).add_to(trace, ImportContext())
    assert (trace.start_ts, trace.end_ts) == (5 * SECOND, 5 * SECOND)


# ---------------------------------------------------------------- events


CYCLES = {"type": HARDWARE, "config": CPU_CYCLES}
SAMPLINGS = {
    "997 Hz": ({"freq": 997}, ("cpu-clock", "ns", 1_003_009)),
    "each 4 ms": ({"period": 4_000_000}, ("cpu-clock", "ns", 4_000_000)),
    "task clock": ({"name": "task-clock:u", "config": TASK_CLOCK, "freq": 1000}, ("task-clock:u", "ns", 1_000_000)),
    "cycles": (CYCLES | {"name": "cycles:P", "freq": 4000}, ("cycles:P", "cycles", 250_000)),
    "each 10000 cycles": (CYCLES | {"name": "cycles", "period": 10_000}, ("cycles", "cycles", 0)),
    "faults": ({"name": "page-faults", "config": PAGE_FAULTS, "period": 1}, ("page-faults", "count", 0)),
}  # fmt: skip


@pytest.mark.parametrize(("event", "wanted"), SAMPLINGS.values(), ids=SAMPLINGS)
def test_what_samples_count(event: dict[str, Any], wanted: tuple[str, str, int]) -> None:
    trace = read(recorded(**event).sample(PID, PID, period=1234))
    assert trace.sampling is not None
    assert (trace.sampling.name, trace.sampling.unit, trace.sampling.interval_ns) == wanted
    assert data_of(trace, PID).samples["weight"].tolist() == [1234]


MAIN = {
    "the first": (["cycles", "faults"], "cycles"),
    "a clock": (["cycles", "clock"], "clock"),
    "the first clock": (["cycles", "clock", "task"], "clock"),
    "no dummy": (["dummy", "faults"], "faults"),
    "one that has samples": (["silent", "faults"], "faults"),
    "a clock that has samples": (["cycles", "silent"], "cycles"),
}
EVENTS: dict[str, tuple[int, int]] = {
    "cycles": (HARDWARE, CPU_CYCLES), "faults": (SOFTWARE, PAGE_FAULTS), "clock": (SOFTWARE, CPU_CLOCK),
    "task": (SOFTWARE, TASK_CLOCK), "dummy": (SOFTWARE, DUMMY), "silent": (SOFTWARE, CPU_CLOCK),
}  # fmt: skip


@pytest.mark.parametrize(("names", "wanted"), MAIN.values(), ids=MAIN)
def test_the_sampling_event(names: list[str], wanted: str) -> None:
    """The first, unless a later one is a clock; the others are events of the trace with samples of their own."""
    data = PerfData()
    for name in names:
        data.event(name, *EVENTS[name], sample_type=EVERYTHING, freq=1000)
    for nth, name in enumerate(names):
        if name not in ("silent", "dummy"):
            data.sample(PID, PID, START + nth, LIB, event=nth)
    trace = read(data)
    assert trace.sampling is not None
    assert trace.sampling.name == wanted
    loaded = data_of(trace, PID)
    assert loaded.samples["ts"].tolist() == [START + names.index(wanted)]
    others = {trace.events[row].name: table["ts"].tolist() for row, table in loaded.other_samples.items()}
    assert others == {n: [START + names.index(n)] for n in names if n not in (wanted, "silent", "dummy")}


# samples of each event in the file's order, "#" is a tracepoint; the one that is first in the trace
BUSIEST = {
    "a tracepoint that hardly occurs": ({"#mmap": 1, "#futex": 9, "#sleep": 4}, "#futex"),
    "one that occurs half as often": ({"#enter": 4, "#exit": 8}, "#enter"),
    "two that are equal": ({"#kfree": 1, "#enter": 8, "#exit": 8}, "#enter"),
    "beside one with periods": ({"#switch": 9, "cycles": 1}, "cycles"),
    "beside a clock": ({"#switch": 9, "faults": 2, "clock": 1}, "clock"),
}


@pytest.mark.parametrize(("counts", "wanted"), BUSIEST.values(), ids=BUSIEST)
def test_a_tracepoint_is_first_where_it_occurs_often_and_nothing_else_is_sampled(
    counts: dict[str, int], wanted: str
) -> None:
    """`perf record -e 'syscalls:*'` writes hundreds of them, in the order of their names."""
    data = PerfData()
    for nth, name in enumerate(counts):
        data.event(name, *EVENTS.get(name, (TRACEPOINT, nth)), sample_type=EVERYTHING, period=1)
    for nth, n in enumerate(counts.values()):
        for at in range(n):
            data.sample(PID, PID, START + 10 * nth + at, LIB, event=nth)
    trace = read(data)
    assert trace.events[0].name == wanted
    assert len(data_of(trace, PID).samples) == counts[wanted]
    kinds = [event.kind for event in trace.events]
    assert kinds == sorted(kinds, key=lambda kind: (kind != "clock", kind == "tracepoint"))


def test_other_events_have_weights() -> None:
    data = recorded(sample_type=EVERYTHING, freq=1000)
    data.event("page-faults", SOFTWARE, PAGE_FAULTS, sample_type=EVERYTHING, period=3)
    data.sample(PID, PID, START + 10, LIB).sample(PID, PID, START + 20, LIB + 4, event=1, period=3, cpu=1)
    trace = read(data)
    event = trace.events[1]
    assert (event.name, event.unit, event.kind, event.period) == ("page-faults", "count", "software", 3)
    samples = data_of(trace, PID).other_samples[1]
    assert path_text(trace, samples["stack"][0]) == "libx.so+0x4"
    assert (samples["ts"][0], samples["weight"][0], samples["cpu"][0]) == (START + 20, 3, 1)
    assert not events_of(data_of(trace, PID))


# (times in read_format, what the second sample reads of leader and member: value, then enabled and running), weights
TIMES = "TOTAL_TIME_ENABLED|TOTAL_TIME_RUNNING"
GROUPS = {
    "values": ("", (30, 70), {"leader": [10, 20], "member": [50, 20]}),
    "a counter that was reset": ("", (4, 60), {"leader": [10, 4], "member": [50, 10]}),
    "all the time": (TIMES, (30, 70, 200, 200), {"leader": [10, 20], "member": [50, 20]}),
    "half of the time": (TIMES, (30, 70, 200, 150), {"leader": [10, 40], "member": [50, 40]}),
}  # fmt: skip


@pytest.mark.parametrize(("times", "second", "wanted"), GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("order", "<>", ids=["little", "big"])
def test_members_of_a_group_count_what_was_added(
    times: str, second: tuple[int, ...], wanted: dict[str, list[int]], order: str
) -> None:
    """{leader,member}:S: the leader's samples hold the values of both."""
    read_format = "|".join(filter(None, (times, "ID|GROUP")))
    data = PerfData(order)
    for name in ("leader", "member"):
        config = CPU_CYCLES if name == "leader" else PAGE_FAULTS
        kind = HARDWARE if name == "leader" else SOFTWARE
        data.event(name, kind, config, sample_type=EVERYTHING + "|READ", read_format=read_format, period=10)
    for ts, (one, other, *clocks) in ((START, (10, 50, 100, 100)), (START + 1, second)):
        values = (one, data.events[0].ids[0], other, data.events[1].ids[0])
        data.sample(PID, PID, ts, LIB, read=(2, *(clocks if times else ()), *values))
    trace = read(data)
    loaded = data_of(trace, PID)
    assert [event.leader for event in trace.events] == [-1, 0]
    assert [event.is_scaled for event in trace.events] == [second[2:] == (200, 150)] * 2
    assert loaded.samples["weight"].tolist() == wanted["leader"]
    assert loaded.other_samples[1]["weight"].tolist() == wanted["member"]


def test_a_tracepoint_leads_the_members_of_its_group() -> None:
    data = PerfData()
    data.event("#switch", TRACEPOINT, 7, sample_type=EVERYTHING + "|READ", read_format="ID|GROUP", period=1)
    data.event("faults", *EVENTS["faults"], sample_type=EVERYTHING + "|READ", read_format="ID|GROUP", period=1)
    data.sample(PID, PID, START, LIB, read=(2, 1, data.events[0].ids[0], 5, data.events[1].ids[0]))
    assert [(event.name, event.leader) for event in read(data).events] == [("#switch", -1), ("faults", 0)]


def test_other_events_with_addresses_are_markers_too() -> None:
    data = recorded(sample_type=EVERYTHING + "|ADDR", freq=1000)
    data.event("page-faults", SOFTWARE, PAGE_FAULTS, sample_type=EVERYTHING + "|ADDR", period=1)
    data.sample(PID, PID, START + 10, LIB).sample(PID, PID, START + 20, LIB + 4, event=1, addr=1 << 63, period=3, cpu=1)
    trace = read(data)
    assert stacks(trace) == ["libx.so+0x0"]
    ((name, (fault,)),) = events_of(data_of(trace, PID)).items()
    assert (name, path_text(trace, fault.pop("stack"))) == ("page-faults", "libx.so+0x4")
    assert fault == {"ts": START + 20, "dur": 0, "flow": 0, "period": 3, "addr": 1 << 63, "cpu": 1}


def test_addresses_of_the_main_event_are_markers_where_there_are_any() -> None:
    """perf record -d -e page-faults; a clock that is recorded with -d has none."""
    data = PerfData().event("faults", SOFTWARE, PAGE_FAULTS, sample_type="IP|TID|TIME|ADDR", period=1)
    data.sample(PID, PID, START, LIB, addr=0).sample(PID, PID, START + 10, LIB, addr=0x7000)
    thread = data_of(read(data), PID)
    assert [(row["addr"], "cpu" in row) for row in events_of(thread)["faults"]] == [(0, False), (0x7000, False)]
    assert len(thread.samples) == 2
    data = PerfData().event("cycles", HARDWARE, 0, sample_type="IP|TID|TIME|ADDR", freq=1000)
    thread = data_of(read(data.sample(PID, PID, START, LIB, addr=0x7000)), PID)
    assert [row["addr"] for row in events_of(thread)["cycles"]] == [0x7000]
    data = PerfData().event("clock", SOFTWARE, 0, sample_type="IP|TID|TIME|ADDR", freq=1000)
    assert data_of(read(data.sample(PID, PID, START, LIB, addr=0)), PID).markers == {}


def test_two_events_of_one_name() -> None:
    data = PerfData().event(sample_type=EVERYTHING, freq=1000)
    for _ in range(2):
        data.event("faults", SOFTWARE, PAGE_FAULTS, sample_type=EVERYTHING, period=1)
    data.sample(PID, PID, START).sample(PID, PID, event=1).sample(PID, PID, event=2).sample(PID, PID, event=2)
    trace = read(data)
    assert [event.name for event in trace.events[1:]] == ["faults #1", "faults #2"]
    assert [len(table) for table in data_of(trace, PID).other_samples.values()] == [1, 2]


@pytest.mark.parametrize("order", "<>", ids=["little", "big"])
def test_tracepoints_have_their_fields(order: str) -> None:
    data = PerfData(order).event(sample_type=EVERYTHING, freq=1000).sample(PID, PID, START)
    fields = [("pid_t pid", "i"), ("u64 bits", "Q"), ("unsigned int small", "I"), ("char name[16]", "16s"),
              ("char[] path", "loc"), ("int cpu", "i"), ("u64 ts", "Q")]  # fmt: skip
    data.tracepoint("my:thing", 99, fields, "x", sample_type=EVERYTHING + "|RAW")
    values = {"pid": -5, "bits": 1 << 63, "small": (1 << 32) - 1, "name": "a", "path": "/é", "cpu": 3, "ts": 9}
    data.sample(PID, PID, START + 1, LIB, event=1, cpu=1, fields=values)
    loaded = data_of(read(data), PID)
    ((name, (row,)),) = events_of(loaded).items()
    assert name == "my:thing"
    assert {key: row[key] for key in ("pid", "bits", "small", "name", "path")} == {
        "pid": -5, "bits": 1 << 63, "small": (1 << 32) - 1, "name": "a", "path": "/é",
    }  # fmt: skip
    assert (row["ts"], row["cpu"], row["_ts"], row["_cpu"]) == (START + 1, 1, 9, 3)
    (marker,) = loaded.markers
    assert marker.label == "pid={pid}, bits={bits}, small={small}"


def test_only_markers() -> None:
    """perf record -e sched:sched_switch: the first event samples, whatever it is."""
    data = PerfData().tracepoint().sample(PID, PID, START, LIB, fields={"prev_pid": 3})
    trace = read(data)
    assert trace.sampling is not None
    assert (trace.sampling.name, trace.sampling.unit) == ("sched:sched_switch", "count")
    assert len(data_of(trace, PID).samples) == 1


# ---------------------------------------------------------------- callchains

USER, IN_KERNEL, HYPERVISOR = CONTEXT_USER, CONTEXT_KERNEL, CONTEXT_HYPERVISOR
KALLSYMS = "[kernel.kallsyms]"
A, B, C = LIB + 0x10, LIB + 0x20, LIB + 0x30
K, L = KERNEL + 0x10, KERNEL + 0x20
CHAINS = {
    "the leaf is exact, callers are before their return addresses":
        ([USER, A, B, C], "libx.so+0x2f > libx.so+0x1f > libx.so+0x10"),
    "kernel, then user":
        ([IN_KERNEL, K, L, USER, A, B], f"libx.so+0x1f > libx.so+0x10 > {KALLSYMS}+0x1f > {KALLSYMS}+0x10"),
    "kernel only": ([IN_KERNEL, K], "[kernel.kallsyms]+0x10"),
    "user after an empty kernel part": ([IN_KERNEL, USER, A, B], "libx.so+0x1f > libx.so+0x10"),
    "kernel addresses in the user's part are not the kernel's": ([USER, A, K], "[unknown] > libx.so+0x10"),
    "user addresses in the kernel's part are not the user's": ([IN_KERNEL, K, A], "[unknown] > [kernel.kallsyms]+0x10"),
    "a guest": ([CONTEXT_GUEST, A, B], "[guest user] > [guest user]"),
    "a hypervisor": ([HYPERVISOR, K], "[unknown]"),
    "a marker of the future": ([-4095, A], "[unknown]"),
    "a guest below its host": (
        [CONTEXT_GUEST, A, IN_KERNEL, K, USER, B], f"libx.so+0x20 > {KALLSYMS}+0x10 > [guest user]"),
    "zeros are nothing": ([USER, A, 0, B, 0], "libx.so+0x1f > libx.so+0x10"),
    "a zero leaf": ([USER, 0, A], "libx.so+0x10"),
    "address 1 returns to 0": ([USER, A, 1], "[unknown] > libx.so+0x10"),
    "the last byte before the markers": ([USER, A, -4096], "[unknown] > libx.so+0x10"),
    "recursion": ([USER, A, B, B, B], "libx.so+0x1f > libx.so+0x1f > libx.so+0x1f > libx.so+0x10"),
    "unknown addresses are one frame": ([USER, 0x10, 0x20], "[unknown] > [unknown]"),
}  # fmt: skip


def kernel_map(data: PerfData) -> PerfData:
    path = "[kernel.kallsyms]_text"
    return data.mmap(-1, 0, KERNEL, 0x100_0000, KERNEL, path, misc=KERNEL_MODE, ts=0)


@pytest.mark.parametrize(("chain", "wanted"), CHAINS.values(), ids=CHAINS)
def test_callchains(chain: list[int], wanted: str) -> None:
    trace = read(kernel_map(recorded()).sample(PID, PID, START, A, chain))
    assert stack(trace) == wanted
    assert report_of(trace).get("code_unknown", 0) == wanted.count("[unknown]")


@pytest.mark.parametrize(
    ("n", "mode", "n_known", "wanted"),
    [
        (10, "user", 0, {"code_unmapped": 10}),
        (9, "user", 0, {"code_unknown": 9}),
        (10, "user", 991, {"code_unknown": 10}),
        (10, "kernel", 0, {"code_unknown": 10}),
    ],
    ids=["enough", "few", "a small part", "of the kernel"],
)
def test_samples_where_nothing_is_mapped(n: int, mode: str, n_known: int, wanted: dict[str, int]) -> None:
    data = recorded()
    for nth in range(n + n_known):
        data.sample(PID, PID, START + nth, ip=A if nth >= n else 0x9000, mode="user" if nth >= n else mode)
    found = report_of(read(data))
    assert {kind: count for kind, count in found.items() if kind.startswith("code_")} == wanted


NOT_CALLED = {
    "x86-64, by name": ("x86-64 bfd", "__restore_rt", b"", "__restore_rt"),
    "x86-64, of makecontext": ("x86-64 bfd", "__start_context", b"", "__start_context"),
    "x86-64": ("x86-64 bfd", "", b"\x48\xc7\xc0\x0f\0\0\0\x0f\x05", "libx.so+0x1820"),
    "x86-64, __start_context": ("x86-64 bfd", "", b"\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff", "libx.so+0x1820"),
    "i386": ("i386 bfd", "", b"\xb8\xad\0\0\0\xcd\x80", "libx.so+0x1820"),
    "AArch64": ("AArch64 bfd", "", b"\x68\x11\x80\xd2\x01\0\0\xd4", "libx.so+0x1820"),
    "of Go": ("x86-64 bfd", "runtime.systemstack_switch.abi0", b"", "runtime.systemstack_switch.abi0"),
    "another function": ("x86-64 bfd", "other", b"", "libx.so+0x181f"),
    "other code": ("x86-64 bfd", "", b"\x48\xc7\xc0\x10\0\0\0\x0f\x05", "libx.so+0x181f"),
}


@pytest.mark.parametrize(("layout", "symbol", "code", "wanted"), NOT_CALLED.values(), ids=NOT_CALLED)
def test_what_nobody_calls_is_returned_to_at_its_first_byte(layout: str, symbol: str, code: bytes, wanted: str) -> None:
    """The frame of a signal: for a return address in any other function, the call is before it."""
    symbols = [plt.Symbol(symbol, 0x1820, 9, ".text")] if symbol else []
    file = bytearray(plt.elf(plt.layouts()[layout], symbols))
    file[0x1820 : 0x1820 + len(code)] = code
    data = recorded().sample(PID, PID, START, LIB + 0x1830, [USER, LIB + 0x1830, LIB + 0x1820, LIB + 0x1838])
    trace = read(data, context=ImportContext(symbols=[Source("libx.so", memoryview(bytes(file)))]))
    assert stack(trace) == f"libx.so+0x1837 > {wanted} > libx.so+0x1830"


def test_unknown_addresses_share_one_frame() -> None:
    trace = read(recorded().sample(PID, PID, START, 0x10, [USER, 0x10, 0x20, 0x30]))
    func = [trace.func_name(func) for func in trace.frames["func"].tolist()]
    assert func.count("[unknown]") == 1


@pytest.mark.parametrize(("mode", "wanted"), [
    ("user", "libx.so+0x10"), ("kernel", "[unknown]"), ("guest", "[guest user]"), ("guest_kernel", "[guest kernel]"),
    ("hypervisor", "[hypervisor]"),
])  # fmt: skip
def test_samples_without_callchains_have_a_leaf(mode: str, wanted: str) -> None:
    data = recorded(sample_type="IP|TID|TIME|PERIOD").sample(PID, PID, START, A, mode=mode)
    assert stack(read(data)) == wanted


@pytest.mark.parametrize("chain", [[], [USER], [USER, 0], [IN_KERNEL, USER]], ids=str)
def test_an_empty_callchain_has_the_leaf(chain: list[int]) -> None:
    """A chain that holds no address, though perf prints no frames then."""
    data = recorded().raw_record(9, 2, struct.pack(
        f"<QiiQQQ{len(chain)}Q", A, PID, PID, START, 1, len(chain), *(address % 2**64 for address in chain)
    ))  # fmt: skip
    assert stack(read(data)) == "libx.so+0x10"


def test_no_address_at_all() -> None:
    """For example, a tracepoint without an IP."""
    trace = read(recorded(sample_type="TID|TIME|PERIOD").sample(PID, PID, START))
    assert data_of(trace, PID).samples["stack"].tolist() == [-1]


def test_the_deepest_stack_that_a_record_has_room_for_is_whole() -> None:
    trace = read(recorded().sample(PID, PID, START, LIB, [USER, *range(LIB, LIB + 8000)]))
    frames = stack(trace).split(" > ")
    # The leaf is exact, so the second frame's byte is the leaf's again.
    assert (len(frames), frames[0]) == (8000, "libx.so+0x1f3e")
    assert frames[-3:] == ["libx.so+0x1", "libx.so+0x0", "libx.so+0x0"]
    assert reported(trace) == {}


def test_a_stack_that_inlined_functions_make_too_deep_is_cut_at_the_root() -> None:
    """It stands under a frame that says so. A call site is kept with all that is inlined there, or not at all."""
    inner = Inlined(Function("inner", "a.c"), (1, 1), [(0, 16)], [Inlined(Function("core", "a.c"), (2, 2), [(0, 16)])])
    dump = jitdump().inline_tree_a(Function("outer", "a.c"), [(0, "a.c", 3, 0)], [inner]).load("f", CODE, ts=START)
    data = recorded().sample(PID, PID, START + 9, LIB, [USER, LIB, LIB, *[CODE + 8] * 6000])
    trace = read(data, dump)
    frames = stack(trace).split(" > ")
    assert len(frames) == 1 + 2 + 3 * ((MAX_FRAMES - 2) // 3)
    assert frames[:5] == ["(truncated stack)", "outer", "(inner)", "(core)", "outer"]
    assert reported(trace) == {"stack_cut": 1}


def test_recordings_with_user_stacks() -> None:
    """perf record --call-graph dwarf: joined with the kernel's part; a stack that is cut stands under the reason."""
    flags = "disabled inherit mmap comm task sample_id_all mmap2 exclude_callchain_user"
    data = recorded(flags=flags, regs_user=X86_64_REGS, stack_user=64)
    registers, memory = [0] * X86_64_REGS.bit_count(), bytes(64)
    registers[7:9] = [0x7000, A]  # the stack pointer and the instruction
    data.sample(PID, PID, START, A, [], regs=registers, stack=memory)
    kernel_map(data).sample(PID, PID, START + 1, K, [IN_KERNEL, K, L], mode="kernel", regs=registers, stack=memory)
    data.sample(PID, PID, START + 2, A, [])
    trace = read(data)
    cut = "(no unwind information: libx.so) > libx.so+0x10"
    kernel = "[kernel.kallsyms]+0x1f > [kernel.kallsyms]+0x10"
    assert stacks(trace) == [cut, f"{cut} > {kernel}", "libx.so+0x10"]
    assert reported(trace) == {"unwinding_no_information": 2}
    mixed = read(data, context=ImportContext(LoadOptions(keep_cut_stacks_apart=False)))
    assert stacks(mixed) == ["libx.so+0x10", f"libx.so+0x10 > {kernel}", "libx.so+0x10"]


# What the kernel reports of memory with code that has unwind information, after it was loaded.
REPORTED_AGAIN: dict[str, Callable[[PerfData], PerfData]] = {
    "nothing": lambda d: d,
    "merged with its neighbour": lambda d: d.mmap2(PID, PID, CODE - 4096, 0x2000, 0, "//anon", ts=START + 20),
    "written to": lambda d: d.mmap2(PID, PID, CODE, 4096, 0, "//anon", 3, misc=MMAP_DATA | 2, ts=START + 20),
    "of a new thread": lambda d: d.fork(PID, 9, PID, PID, START + 20),
}


@pytest.mark.parametrize("steps", REPORTED_AGAIN.values(), ids=REPORTED_AGAIN)
def test_stacks_through_code_in_memory_that_is_reported_again(steps: Callable[[PerfData], PerfData]) -> None:
    flags = "disabled inherit mmap comm task sample_id_all mmap2 mmap_data exclude_callchain_user"
    data = recorded(flags=flags, regs_user=X86_64_REGS, stack_user=64).feature(ARCH="x86_64")
    steps(data.mmap2(PID, PID, CODE, 4096, 0, "//anon", ts=START))
    registers = [0] * X86_64_REGS.bit_count()
    registers[7:9] = [0x7000, CODE + 4]  # the stack pointer and the instruction
    data.sample(PID, PID, START + 30, CODE + 4, [], regs=registers, stack=A.to_bytes(8, "little") + bytes(56))
    frame = EhFrame(64).fde(0, 64, b"")  # behind the code; the return address is what the stack pointer points to
    dump = jitdump().unwinding(bytes(frame.data), ts=START + 10).load("f", CODE, 64, ts=START + 10)
    assert stacks(read(data, dump)) == ["(no unwind information: libx.so) > libx.so+0xf > f"]


LEAVES: dict[str, tuple[str, int, str, int]] = {
    # the code of f, where in it the sample is; its stack, n of callers_missing. %rbp points to the frame of f's caller,
    # but where f has made its own
    "a leaf": ("90 90 c3", 1, "libx.so+0xf > libx.so+0xef > f", 0),
    "a leaf with locals": ("4883ec08 90 4883c408 c3", 4, "libx.so+0xf > [code in //anon] > f", 0),
    "before its frame": ("55 4889e5 90 5d c3", 0, "libx.so+0xf > libx.so+0xef > f", 0),
    "in its frame": ("55 4889e5 90 5d c3", 4, "libx.so+0xf > f", 0),
    "others jump into it": ("90 90 ffe0", 1, "libx.so+0xf > f", 1),
    "no code": ("", 1, "libx.so+0xf > f", 0),
}  # fmt: skip


@pytest.mark.parametrize("case", LEAVES)
def test_callers_of_functions_that_make_no_frame_in_copied_stacks(case: str) -> None:
    """Without call-frame information, their instructions tell where the return address is."""
    text, at, wanted, n_missing = LEAVES[case]
    data = recorded(regs_user=X86_64_REGS, stack_user=64).feature(ARCH="x86_64")
    data.mmap2(PID, PID, CODE, 4096, 0, "//anon", ts=START)
    registers = [0] * X86_64_REGS.bit_count()
    registers[6:9] = [0x7010, 0x7000, CODE + at]
    words = struct.pack("<4Q", LIB + 0xF0, CODE + 0x800, 0, A)
    data.sample(PID, PID, START + 30, CODE + at, [], regs=registers, stack=words + bytes(32))
    code = bytes.fromhex(text.replace(" ", ""))
    dump = jitdump().load("f", CODE, code=code or bytes(16), ts=START + 10)
    trace = read(data, dump)
    (found,) = stacks(trace)
    assert found.removeprefix("(no unwind information: libx.so) > ") == wanted
    assert report_of(trace).get("callers_missing", 0) == n_missing


@pytest.mark.parametrize("answer", [None, [], [0, 0], ["0"], [-3], [1 << 40], [True]])
def test_damaged_answers_of_packs_about_stacks(answer: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        of_answer(1, answer)


def test_stacks_without_times_through_jitted_code() -> None:
    """Of which the call-frame information may be meant, whenever it was loaded."""
    data = recorded(sample_type=TIMELESS, regs_user=X86_64_REGS, stack_user=64).feature(ARCH="x86_64")
    registers = [0] * X86_64_REGS.bit_count()
    registers[7:9] = [0x7000, CODE + 4]
    data.sample(PID, PID, START, CODE + 4, [], regs=registers, stack=A.to_bytes(8, "little") + bytes(56))
    dump = jitdump().load("first", CODE + 64).unwinding(bytes(EhFrame(64).fde(0, 64, b"").data)).load("f", CODE, 64)
    assert stacks(read(data, dump)) == ["(no unwind information: libx.so) > libx.so+0xf > f"]


OF_CGO = "(callers on another stack: runtime.asmcgocall) > runtime.asmcgocall.abi0 > jitted"


@pytest.mark.parametrize(
    ("name", "has_address_behind", "wanted", "losses"),
    [
        ("runtime.goexit.abi0", False, "runtime.goexit.abi0 > jitted", {}),
        ("runtime.goexit.abi0", True, "runtime.goexit.abi0 > jitted", {}),
        ("makecontext", False, "makecontext > jitted", {}),
        ("make_fcontext", True, "make_fcontext > jitted", {}),
        ("runtime.asmcgocall.abi0", False, OF_CGO, {"unwinding_other_stack": 1}),
        ("runtime.asmcgocall.abi0", True, OF_CGO, {"unwinding_other_stack": 1}),
        ("f", False, "(no unwind information: libx.so) > f > jitted", {"unwinding_no_information": 1}),
        ("f", True, "(no unwind information: libx.so) > libx.so+0x1840 > f > jitted",
         {"unwinding_no_information": 1, "unwinding_guessed": 1}),
    ],
)  # fmt: skip
def test_a_stack_ends_in_a_function_without_callers_on_it(
    name: str, has_address_behind: bool, wanted: str, losses: dict[str, int]
) -> None:
    """In a goroutine's, a context's, a fiber's first one, or where Go calls C: whatever the memory behind holds."""
    data = recorded(regs_user=X86_64_REGS, stack_user=64).feature(ARCH="x86_64")
    data.mmap2(PID, PID, CODE, 4096, 0, "//anon", ts=START)
    registers = [0] * X86_64_REGS.bit_count()
    registers[6:9] = [0x7008 * has_address_behind, 0x7000, CODE + 4]  # the frame pointer, the stack's, the instruction
    memory = struct.pack("<8Q", LIB + 0x1829, 0x7FFF, LIB + 0x1841, 0, 0, 0, 0, 0)
    data.sample(PID, PID, START + 30, CODE + 4, [], regs=registers, stack=memory)
    frame = EhFrame(64).fde(0, 64, b"")
    dump = jitdump().unwinding(bytes(frame.data), ts=START + 10).load("jitted", CODE, 64, ts=START + 10)
    file = plt.elf(plt.layouts()["x86-64 bfd"], [plt.Symbol(name, 0x1820, 16, ".text")])
    trace = read(data, dump, context=ImportContext(symbols=[Source("libx.so", memoryview(file))]))
    assert stacks(trace) == [wanted]
    assert {kind: n for kind, n in report_of(trace).items() if kind.startswith("unwinding")} == losses


@pytest.mark.parametrize(("encoding", "wanted"), [(0x0C, "libx.so+0xf > f"), (0x1B, "f")])
def test_stacks_through_code_that_was_compiled_together(encoding: int, wanted: str) -> None:
    """LLVM's ORC writes their call-frame information once, behind a header that has its address."""
    data = recorded(regs_user=X86_64_REGS, stack_user=64).feature(ARCH="x86_64")
    data.mmap2(PID, PID, CODE, 4096, 0, "//anon", ts=START)
    for nth, code in enumerate((CODE, CODE + 64)):
        registers = [0] * X86_64_REGS.bit_count()
        registers[7:9] = [0x7000, code + 4]
        data.sample(PID, PID, START + 30 + nth, code + 4, [], regs=registers, stack=A.to_bytes(8, "little") + bytes(56))
    frame_at = CODE + 0x1000
    frame = EhFrame(frame_at).fde(CODE, 64, b"").fde(CODE + 64, 64, b"")
    dump = jitdump().unwinding(
        bytes(frame.data), struct.pack("<BBBBQ", 1, encoding, 0xFF, 0xFF, frame_at), header_first=True, ts=START + 10
    )
    dump.load("f", CODE, 64, ts=START + 10).load("f", CODE + 64, 64, ts=START + 10)
    found = [stack.rpartition(" (")[2].partition(") > ")[2] for stack in stacks(read(data, dump))]
    assert found == [wanted] * 2


@pytest.mark.parametrize("is_described", [True, False])
def test_what_helps_where_a_file_has_no_unwind_information(is_described: bool) -> None:
    """Whoever compiled it with debug information is not told to do so."""
    described = Dwarf().unit(die(SUBPROGRAM, {NAME: "g", LOW_PC: 0x1800, HIGH_PC: 8}), low_pc=0x1800, high_pc=8)
    file = plt.elf(plt.layouts()["x86-64 bfd"], [WORK], described.sections if is_described else {})
    data = recorded(regs_user=X86_64_REGS, stack_user=64).feature(ARCH="x86_64")
    registers = [0] * X86_64_REGS.bit_count()
    registers[7:9] = [0x7000, LIB + 0x1824]
    data.sample(PID, PID, START, LIB + 0x1824, [], regs=registers, stack=bytes(64))
    trace = read(data, context=ImportContext(symbols=[Source("libx.so", memoryview(file))]))
    (issue,) = (issue for issue in trace.report if issue.kind == "unwinding_no_information")
    assert issue.advice == (OF_FILE_WITH_DEBUG_INFORMATION if is_described else OF_FILE_WITHOUT)


@pytest.mark.parametrize(("n_copied", "kind"), [(64, "unwinding_truncated"), (56, "unwinding_not_copied")])
def test_callers_behind_the_copy_of_a_stack(n_copied: int, kind: str) -> None:
    """Of a function with large local variables. Where less is there than was asked for, the kernel met memory that is
    not."""
    data = recorded(regs_user=X86_64_REGS, stack_user=64).feature(ARCH="x86_64")
    data.mmap2(PID, PID, CODE, 4096, 0, "//anon", ts=START)
    registers = [0] * X86_64_REGS.bit_count()
    registers[7:9] = [0x7000, CODE + 4]
    data.sample(PID, PID, START + 30, CODE + 4, [], regs=registers, stack=bytes(64), stack_used=n_copied)
    frame = EhFrame(64).fde(0, 64, def_cfa(RSP, 65536))
    dump = jitdump().unwinding(bytes(frame.data), ts=START + 10).load("f", CODE, 64, ts=START + 10)
    trace = read(data, dump)
    assert stacks(trace) == ["(truncated stack) > f"]
    assert reported(trace) == {kind: 1}


@pytest.mark.parametrize("suffix", [".json", ".gecko.json", ".pftrace"])
def test_nothing_of_a_stack_reaches_an_output(suffix: str, tmp_path: Path) -> None:
    """Stacks hold environment variables and arguments."""
    secret = b"TOKEN=hunter2-is-no-password"
    data = recorded(regs_user=X86_64_REGS, stack_user=4096)
    words = struct.pack("<4Q", 0x7010, 0x7020, A + 4, int.from_bytes(secret[:8], "little"))
    registers = [0x1234] * X86_64_REGS.bit_count()
    registers[6:9] = [0x7008, 0x7000, A]
    data.sample(PID, PID, START, A, [], regs=registers, stack=(words + secret * 100).ljust(4096, b"\0"))
    (tmp_path / "perf.data").write_bytes(data.bytes())
    trace = load_checked(tmp_path / "perf.data")
    traceferry.save(trace, tmp_path / f"out{suffix}")
    told = "".join(issue.as_text() for issue in trace.report).encode()
    told += "\n".join(importer_named("perf").module.dump(Source("perf.data", memoryview(data.bytes())), 0)).encode()
    for written in ((tmp_path / f"out{suffix}").read_bytes(), told):
        for part in (secret[:8], secret[-8:], secret[:8].hex().encode(), secret[:8][::-1].hex().encode()):
            assert part not in written


DEFERRED = (1 << 64) - 640  # PERF_CONTEXT_USER_DEFERRED


def test_callchains_that_are_recorded_later() -> None:
    """Several samples wait for one record of their thread; another thread's record with the cookie is not theirs."""
    data = kernel_map(recorded())
    data.sample(PID, PID, START, K, [IN_KERNEL, K, DEFERRED, 5], mode="kernel")
    data.sample(PID, PID, START + 1, A, [DEFERRED, 5])
    data.callchain_deferred(PID, PID + 1, 5, [LIB], START + 2)
    data.callchain_deferred(PID, PID, 5, [A, B], START + 3)
    data.sample(PID, PID, START + 4, A, [DEFERRED, 6])
    data.callchain_deferred(PID, PID, 6, [A], START + 5, n=1 << 60)
    trace = read(data)
    user = "libx.so+0x1f > libx.so+0x10"
    assert stacks(trace) == [f"{user} > [kernel.kallsyms]+0x10", user, "libx.so+0x10"]
    assert reported(trace) == {"deferred_missing": 1, "bad_record": 1}


def test_user_stacks_of_other_processors() -> None:
    data = recorded(regs_user=3, stack_user=64).feature(ARCH="riscv64")
    data.sample(PID, PID, START, A, [], regs=[0, 0], stack=bytes(64))
    trace = read(data)
    assert stacks(trace) == ["libx.so+0x10"]
    assert reported(trace) == {"unwinding_not_done": 1}


# ---------------------------------------------------------------- what is mapped

FRAME = 0x10_0010
Steps = Callable[[PerfData], PerfData]


def maps(*paths: str, prot: int = 5) -> Steps:
    """Each path's mapping takes the place of the one before it."""

    def add(data: PerfData) -> PerfData:
        for nth, path in enumerate(paths):
            data.mmap2(PID, PID, 0x10_0000, 0x1000, 0x3000, path, prot, ts=START + 100 * (nth + 1))
        return data

    return add


MAPPED = {
    "a file's offset, not the mapping's": (maps("/lib/a.so"), ["a.so+0x3010"] * 4),
    "a later mapping": (maps("/lib/a.so", "/lib/b.so"), ["a.so+0x3010"] * 2 + ["b.so+0x3010"] * 2),
    "and a third": (maps("/lib/a.so", "/lib/b.so", "/lib/c.so"),
                    ["a.so+0x3010"] * 2 + ["b.so+0x3010", "c.so+0x3010"]),
    "anonymous memory": (maps("//anon"), ["[code in //anon]"] * 4),
    "a named one": (maps("[anon:v8]"), ["[code in [anon:v8]]"] * 4),
    "memfd": (maps("/memfd:doublemapper (deleted)"), ["[code in /memfd:doublemapper]"] * 4),
    "the stack": (maps("[stack]"), ["[code in [stack]]"] * 4),
    "anonymous memory instead of a file": (
        maps("/lib/a.so", "//anon"), ["a.so+0x3010"] * 2 + ["[code in //anon]"] * 2),
    "a deleted file": (maps("/lib/a.so (deleted)"), ["a.so (deleted)+0x3010"] * 4),
    "the vdso": (maps("[vdso]"), ["[vdso]+0x3010"] * 4),
    "data": (maps("/lib/data.bin", prot=3), ["[unknown]"] * 4),
    "the same again": (maps("/lib/a.so", "/lib/a.so"), ["a.so+0x3010"] * 4),
}  # fmt: skip


@pytest.mark.parametrize(("steps", "wanted"), MAPPED.values(), ids=MAPPED)
def test_mappings(steps: Steps, wanted: list[str]) -> None:
    """Samples before the first mapping, and after each. perf lists what it finds at its own time, so what is mapped
    first was there before."""
    data = steps(recorded())
    for ts in (50, 150, 250, 350):
        data.sample(PID, PID, START + ts, FRAME)
    assert stacks(read(data)) == wanted


def test_mappings_have_ends() -> None:
    data = recorded()
    for nth, at in enumerate((LIB - 1, LIB, LIB + LIB_SIZE - 1, LIB + LIB_SIZE)):
        data.sample(PID, PID, START + nth, at)
    assert stacks(read(data)) == ["[unknown]", "libx.so+0x0", "libx.so+0xffff", "[unknown]"]


def test_a_mapping_inside_another() -> None:
    """What it leaves of the older one stays."""
    data = recorded().mmap2(PID, PID, LIB + 0x1000, 0x1000, 0, "/lib/new.so", ts=START)
    for nth, at in enumerate((LIB + 0xFFF, LIB + 0x1000, LIB + 0x1FFF, LIB + 0x2000)):
        data.sample(PID, PID, START + 1 + nth, at)
    assert stacks(read(data)) == ["libx.so+0xfff", "new.so+0x0", "new.so+0xfff", "libx.so+0x2000"]


def test_text_in_huge_pages() -> None:
    """The program's code stays that of its file, and the report says so."""
    data = recorded().mmap2(PID, PID, 0x1F_0000, 0x80_0000, 0x3000, "/bin/app", ts=START)
    data.mmap2(PID, PID, 0x20_0000, 0x40_0000, 0, "//anon", 7, ts=START + 1)
    data.mmap2(PID, PID, 0x20_0000, 0x40_0000, 0, "//anon", ts=START + 2)
    trace = read(data.sample(PID, PID, START + 3, 0x20_0010))
    assert stack(trace) == "app+0x13010"
    assert [issue.details for issue in trace.report if issue.kind == "text_copied"] == [("/bin/app",)]


def test_mmap_of_old_perfs() -> None:
    data = recorded().mmap(PID, PID, 0x10_0000, 0x1000, 0, "/lib/old.so", ts=0).sample(PID, PID, START, 0x10_0004)
    assert stack(read(data)) == "old.so+0x4"


def test_processes_have_their_own_maps() -> None:
    data = recorded().sample(8, 8, START, A).sample(PID, PID, START, A)
    trace = read(data)
    assert (stack(trace, 8), stack(trace)) == ("[unknown]", "libx.so+0x10")


CHILD = 8
X = 0x20_0000


def mapped_x(data: PerfData, pid: int, ts: int, path: str) -> PerfData:
    return data.mmap2(pid, pid, X, 0x1000, 0, path, ts=START + ts)


FORKS: dict[str, tuple[Steps, str]] = {
    "the parent's maps": (lambda d: d.fork(CHILD, CHILD, PID, PID, START + 10), "libx.so+0x10"),
    "not what the parent maps later": (
        lambda d: mapped_x(d.fork(CHILD, CHILD, PID, PID, START + 10), PID, 20, "/lib/x.so"), "[unknown]"),
    "a grandchild": (
        lambda d: d.fork(6, 6, PID, PID, START + 10).fork(CHILD, CHILD, 6, 6, START + 20), "libx.so+0x10"),
    "a new program has none of them": (
        lambda d: d.fork(CHILD, CHILD, PID, PID, START + 10).comm(CHILD, CHILD, "ls", START + 20, exec=True),
        "[unknown]"),
    "a new name alone is no new program": (
        lambda d: d.fork(CHILD, CHILD, PID, PID, START + 10).comm(CHILD, CHILD, "pool", START + 20), "libx.so+0x10"),
    "nor is the parent's new program the child's": (
        lambda d: d.fork(CHILD, CHILD, PID, PID, START + 10).comm(PID, PID, "ls", START + 20, exec=True),
        "libx.so+0x10"),
    "what the parent lost before": (
        lambda d: d.comm(PID, PID, "new", START + 5, exec=True).fork(CHILD, CHILD, PID, PID, START + 10), "[unknown]"),
    "what another program before left to its parent": (
        lambda d: d.fork(6, 6, PID, PID, START + 10).comm(6, 6, "new", START + 15, exec=True)
        .fork(CHILD, CHILD, 6, 6, START + 20), "[unknown]"),
    "a thread is no process": (lambda d: d.fork(PID, CHILD, PID, PID, START + 10), "libx.so+0x10"),
    "its own parent": (lambda d: d.fork(CHILD, CHILD, 9, 9, START).fork(9, 9, CHILD, CHILD, START + 1), "[unknown]"),
}  # fmt: skip


@pytest.mark.parametrize(("steps", "wanted"), FORKS.values(), ids=FORKS)
def test_forks_and_new_programs(steps: Steps, wanted: str) -> None:
    data = steps(recorded())
    at = X if "/lib/x.so" in data.bytes().decode("latin1") else A
    pid = PID if steps is FORKS["a thread is no process"][0] else CHILD
    assert stack(read(data.sample(pid, CHILD, START + 100, at)), CHILD) == wanted


def test_a_new_program_maps_anew() -> None:
    """Until it does, the system call that executes it runs, whose caller the memory before had."""
    data = recorded().sample(PID, PID, START + 5, A)
    data.comm(PID, PID, "new", START + 10, exec=True).sample(PID, PID, START + 15, A)
    data.mmap2(PID, PID, LIB, 0x1000, 0, "/lib/new.so", ts=START + 20).sample(PID, PID, START + 25, A)
    trace = read(data)
    assert stacks(trace) == ["libx.so+0x10", "libx.so+0x10", "new.so+0x10"]


# ---------------------------------------------------------------- jitted code


def at_times(data: PerfData, address: int, *times: int) -> PerfData:
    for ts in times:
        data.sample(PID, PID, START + ts, address)
    return data


LATER = 5 * SECOND  # than what counts as announced a moment later
JITTED: dict[str, tuple[Callable[[JitDump], JitDump], list[str]]] = {
    # at CODE + 4, sampled at 0, 50, 150, 250 and 350 after LATER; code is at CODE from 100 on, something else at 200
    "loaded": (lambda d: d.load("f", CODE, ts=START + LATER + 100), ["node+0x4"] * 2 + ["f"] * 3),
    "moved away": (
        lambda d: d.load("f", CODE, ts=START + LATER + 100).move(CODE, CODE + 64, ts=START + LATER + 200),
        ["node+0x4"] * 2 + ["f"] + ["node+0x4"] * 2),
    "moved here": (
        lambda d: d.load("f", CODE + 64, ts=START + LATER + 100).move(CODE + 64, CODE, ts=START + LATER + 200),
        ["node+0x4"] * 3 + ["f"] * 2),
    "replaced": (
        lambda d: d.load("f", CODE, ts=START + LATER + 100).load("g", CODE, ts=START + LATER + 200),
        ["node+0x4"] * 2 + ["f"] + ["g"] * 2),
    "evicted by code beside it": (
        lambda d: d.load("f", CODE, ts=START + LATER + 100).load("g", CODE + 8, ts=START + LATER + 200),
        ["node+0x4"] * 2 + ["f"] + ["node+0x4"] * 2),
    "overlapped by a move": (
        lambda d: d.load("f", CODE, ts=START + LATER + 100).load("g", CODE + 64, ts=START + LATER + 150)
        .move(CODE + 64, CODE + 8, ts=START + LATER + 200),
        ["node+0x4"] * 2 + ["f"] + ["node+0x4"] * 2),
    "closed": (
        lambda d: d.load("f", CODE, ts=START + LATER + 100).close(ts=START + LATER + 200),
        ["node+0x4"] * 2 + ["f"] * 3),
    "of no size": (
        lambda d: d.load("f", CODE, ts=START + LATER + 100).load("g", CODE + 4, 0, ts=START + LATER + 200),
        ["node+0x4"] * 2 + ["f"] * 3),
    "written late": (
        lambda d: d.load("g", CODE, ts=START + LATER + 200).load("f", CODE, ts=START + LATER + 100),
        ["node+0x4"] * 2 + ["f"] + ["g"] * 2),
}  # fmt: skip


@pytest.mark.parametrize(("steps", "wanted"), JITTED.values(), ids=JITTED)
def test_jitted_code(steps: Callable[[JitDump], JitDump], wanted: list[str]) -> None:
    """The dump wins over a file's mapping; without code there, the mapping holds again. To map the file over itself
    changes nothing."""
    data = recorded().mmap2(PID, PID, CODE, 4096, 0, "/bin/node", ts=START)
    data.mmap2(PID, PID, CODE, 64, 0, "/bin/node", ts=START + LATER + 120)
    at_times(data, CODE + 4, LATER, LATER + 50, LATER + 150, LATER + 250, LATER + 350)
    assert stacks(read(data, steps(jitdump()))) == wanted


# What becomes of code at CODE, loaded at 100, by what is mapped at 200.
MAPPED_OVER = {
    "the kernel merges neighbours": ((CODE - 4096, 0x4000, "//anon"), "f"),
    "the kernel splits": ((CODE, 64, "//anon"), "f"),
    "huge pages": ((CODE - 4096, 0x4000, "/anon_hugepage (deleted)"), "f"),
    "a plugin": ((CODE - 4096, 0x4000, "/lib/plugin.so"), "plugin.so+0x1004"),
    "a plugin in front of it": ((CODE - 4096, 4096, "/lib/plugin.so"), "f"),
    "a plugin behind it": ((CODE + 256, 4096, "/lib/plugin.so"), "f"),
    "a plugin over its end": ((CODE + 32, 4096, "/lib/plugin.so"), "[code in //anon]"),
}


@pytest.mark.parametrize("case", MAPPED_OVER)
def test_what_is_mapped_over_jitted_code(case: str) -> None:
    (start, length, path), wanted = MAPPED_OVER[case]
    data = recorded().mmap2(PID, PID, CODE, 4096, CODE, "//anon", ts=START)
    data.mmap2(PID, PID, start, length, 0, path, ts=START + 200)
    dump = jitdump().load("f", CODE, 64, ts=START + 100)
    assert stacks(read(at_times(data, CODE + 4, 150, 250), dump)) == ["f", wanted]


def test_what_is_mapped_over_jitted_code_on_another_clock() -> None:
    """Which of the two came first is not known then."""
    data = recorded(clockid=None).mmap2(PID, PID, CODE, 4096, 0, "/bin/node", ts=START + 200)
    assert stacks(read(at_times(data, CODE + 4, 250), jitdump().load("f", CODE, 64, ts=START + 100))) == ["f"]


def test_what_perf_inject_made_of_code_that_lies_in_merged_memory() -> None:
    data = recorded().mmap2(PID, PID, CODE, 4096, CODE, "//anon", ts=START)
    data.mmap2(PID, PID, CODE, 64, 0x80, "/x/jitted-7-0.so", ts=START + 10)
    data.mmap2(PID, PID, CODE - 4096, 0x4000, CODE - 4096, "//anon", ts=START + 20)
    data.mmap2(PID, PID, CODE - 4096, 0x4000, 0, "/lib/plugin.so", ts=START + 30)
    assert stacks(read(at_times(data, CODE + 4, 15, 25, 35))) == ["jitted-7-0.so+0x84"] * 2 + ["plugin.so+0x1004"]


def test_memory_of_a_file_that_is_gone() -> None:
    """What is mapped over a plugin, wholly or in part, and the plugin again."""
    data = mapped_x(recorded(), PID, 10, "/lib/a.so").mmap2(PID, PID, X + 0x400, 0x400, 0, "//anon", ts=START + 20)
    mapped_x(data, PID, 40, "/lib/b.so")
    mapped_x(data, PID, 60, "/lib/a.so")
    for ts in (15, 25, 45, 65):
        data.sample(PID, PID, START + ts, X + 0x10).sample(PID, PID, START + ts, X + 0x410)
    assert stacks(read(data)) == [
        "a.so+0x10", "a.so+0x410", "a.so+0x10", "[code in //anon]",
        "b.so+0x10", "b.so+0x410", "a.so+0x10", "a.so+0x410",
    ]  # fmt: skip


@pytest.mark.parametrize(("early", "wanted"), [(1, "f"), (SECOND - 1, "f"), (SECOND + 1, "[unknown]")])
def test_code_announced_late(early: int, wanted: str) -> None:
    """Compilers run new code a moment before they write its record. Not where something else is there."""
    dump = jitdump().load("f", CODE, ts=START + LATER)
    trace = read(at_times(recorded(), CODE, LATER - early), dump)
    assert stack(trace) == wanted
    assert reported(trace) == ({"code_announced_late": 1} if wanted == "f" else {})


def test_generated_code_without_a_record_is_shown_by_its_memory() -> None:
    """A runtime that was not asked for names; the report counts the addresses, and tells whose."""
    data = recorded().comm(PID, PID, "app", START).mmap2(PID, PID, CODE, 4096, 0, "//anon", ts=START)
    data.mmap2(PID, PID, CODE + 0x10000, 4096, 0, "/memfd:doublemapper (deleted)", ts=START)
    for address in (CODE, CODE, CODE + 8, CODE + 0x10010, CODE + 0x20000):
        data.sample(PID, PID, START + LATER, address)
    trace = read(data)
    in_memory, in_memfd = "[code in //anon]", "[code in /memfd:doublemapper]"
    assert stacks(trace) == [in_memory, in_memory, in_memory, in_memfd, "[unknown]"]
    frame = frame_names(trace).index(in_memory)
    assert trace.strings[int(trace.categories["name"][trace.frames["category"][frame]])] == "JIT"
    (issue,) = (issue for issue in trace.report if issue.kind == "code_unrecorded")
    assert (issue.count, set(issue.details)) == (
        3,
        {f"{in_memory}: 2 addresses of app", f"{in_memfd}: 1 addresses of app"},
    )


def test_anonymous_memory_is_nothing_else() -> None:
    data = recorded().mmap2(PID, PID, CODE, 4096, 0, "//anon", ts=START)
    trace = read(at_times(data, CODE, LATER - 1, LATER), jitdump().load("f", CODE, ts=START + LATER))
    assert stacks(trace) == ["f", "f"]


def test_code_moved_away_is_not_announced_late_for_what_was_there() -> None:
    dump = jitdump().load("f", CODE, ts=START + 100).load("g", CODE, ts=START + 200)
    assert stacks(read(at_times(recorded(), CODE, 150, 250), dump)) == ["f", "g"]


def test_frames_of_jitted_code() -> None:
    """Function, place, code object, symbol and the address in the dump's library; return addresses one byte before."""
    dump = jitdump().load("pad", CODE, 100)
    dump.debug_info(CODE + 256, [(CODE + 256, 3, 1, "/a.js"), (CODE + 264, 4, 2, "/a.js")]).load("f", CODE + 256)
    trace = read(recorded().sample(PID, PID, START + SECOND, CODE + 264, [USER, CODE + 264, CODE + 264]), dump)
    assert stack(trace) == "f > f"
    top = int(data_of(trace, PID).samples["stack"][0])
    rows = [int(trace.stacks["frame"][row]) for row in (top, trace.stacks["prefix"][top])]
    columns = ("line", "column", "address", "code", "inline_depth")
    assert [tuple(int(trace.frames[c][row]) for c in columns) for row in rows] == [(4, 2, 108, 1, 0), (3, 1, 107, 1, 0)]
    symbol = int(trace.frames["symbol"][rows[0]])
    assert (trace.strings[int(trace.symbols["name"][symbol])], int(trace.symbols["address"][symbol])) == ("f", 100)
    assert trace.strings[int(trace.libs["name"][trace.frames["lib"][rows[0]]])] == DUMP
    assert category(trace) == "JIT"


def test_inlined_functions() -> None:
    inlined = [Inlined(Function("inner", "a.c"), (7, 1), [(4, 8)])]
    dump = jitdump().inline_tree_a(Function("outer", "a.c"), [(0, "a.c", 3, 0), (4, "a.c", 9, 0)], inlined)
    dump.load("f", CODE)
    data = recorded().sample(PID, PID, START + SECOND, CODE + 5, [USER, CODE + 5, CODE + 4])
    assert stack(read(data, dump)) == "outer > outer > (inner)"


def test_two_processes_with_a_dump_each() -> None:
    data = recorded().sample(PID, PID, START + SECOND, CODE).sample(8, 8, START + SECOND, CODE)
    trace = read(data, jitdump().load("f", CODE), jitdump(pid=8).load("g", CODE))
    assert (stack(trace), stack(trace, 8)) == ("f", "g")
    assert sorted(process.pid for process in trace.processes) == [PID, 8]


def test_a_dump_of_another_process_names_nothing() -> None:
    data = recorded().sample(PID, PID, START + SECOND, CODE)
    trace = read(data, jitdump(pid=99).load("f", CODE))
    assert stack(trace) == "[unknown]"
    assert sorted(process.pid for process in trace.processes) == [PID, 99]
    assert reported(trace) == {"code_of_other_process": 1}


def test_a_dump_of_a_container() -> None:
    """There the process has another number: the one that mapped the dump is meant, and it is one process."""
    data = recorded().mmap2(PID, PID, X, 4096, 0, "/tmp/jit-1.dump", ts=START)
    data.sample(PID, PID, START + SECOND, CODE).sample(1, 11, START + SECOND, CODE)
    trace = read(data, jitdump(pid=1).load("f", CODE, ts=START + 5))
    assert (stack(trace), stack(trace, 11)) == ("f", "[unknown]")
    assert sorted(process.pid for process in trace.processes) == [1, PID]
    (process,) = (process for process in trace.processes if process.pid == PID)
    assert [(thread.tid, thread.name) for thread in process.threads if not thread.sample_unit] == [(PID, "app")]
    assert (len(data_of(trace, PID).markers), len(process.counters)) == (1, 1)


def test_a_dump_that_a_thread_mapped() -> None:
    """Bun calls its dumps jit-TID-PID.dump; the mapping identifies the process."""
    data = recorded().mmap2(PID, 9, X, 4096, 0, "/tmp/jit-9-7.dump", ts=START).sample(PID, PID, START + SECOND, CODE)
    trace = TraceBuilder()
    dump = jitdump().load("f", CODE, tid=9).bytes()
    importer_named("jitdump").module.read([Source("jit-9-7.dump", memoryview(dump))]).add_to(trace, ImportContext())
    importer_named("perf").module.read([Source("perf.data", memoryview(data.bytes()))]).add_to(trace, ImportContext())
    assert laws.check(trace) == []
    assert stack(trace) == "f"


def test_a_child_runs_the_code_that_its_parent_compiled() -> None:
    """Up to the fork, as its maps: what the parent compiles or replaces later is not the child's."""
    dump = jitdump().load("f", CODE, ts=START + 5).load("g", CODE, ts=START + 20)
    data = recorded().fork(CHILD, CHILD, PID, PID, START + 10).sample(CHILD, CHILD, START + 15, CODE)
    data.sample(CHILD, CHILD, START + 25, CODE)
    assert stacks(read(data, dump), CHILD) == ["f", "f"]


@pytest.mark.parametrize(("flags", "wanted"), [(1, ["f", "of the parent"]), (2, ["f", "[code in /dev/zero]"])])
def test_what_is_compiled_into_memory_that_forks_share(flags: int, wanted: list[str]) -> None:
    """PHP's: what any of them compiles, before or after the fork, all of them run."""
    dump = jitdump().load("f", CODE, ts=START + 5).load("of the parent", CODE + 64, ts=START + 20)
    dump.load("of the child", CODE + 128, ts=START + 21, pid=CHILD, tid=CHILD)
    data = recorded().mmap2(PID, PID, CODE, 4096, 0, "/dev/zero (deleted)", ts=START + 1, flags=flags)
    data.mmap2(PID, PID, X, 4096, 0, f"/tmp/{DUMP}", ts=START + 2).fork(CHILD, CHILD, PID, PID, START + 10)
    data.sample(CHILD, CHILD, START + 25, CODE).sample(CHILD, CHILD, START + 26, CODE + 64)
    data.sample(PID, PID, START + 27, CODE + 128)
    trace = read(data, dump)
    assert (stacks(trace, CHILD), stack(trace)) == (wanted, "of the child")
    threads = [(process.pid, thread.tid) for process, thread in trace.threads if not thread.sample_unit]
    assert sorted(threads) == [(PID, PID), (CHILD, CHILD)]


INHERITED: dict[str, tuple[Steps, str]] = {
    "a new program": (lambda d: d.comm(CHILD, CHILD, "ls", START + 12, exec=True), "[unknown]"),
    "a file that it maps": (lambda d: d.mmap2(CHILD, CHILD, CODE, 4096, 0, "/lib/x.so", ts=START + 12), "x.so+0x0"),
    "memory that it maps": (lambda d: d.mmap2(CHILD, CHILD, CODE, 4096, 0, "//anon", ts=START + 12), "f"),
}  # fmt: skip


@pytest.mark.parametrize(("steps", "wanted"), INHERITED.values(), ids=INHERITED)
def test_what_becomes_of_inherited_code(steps: Steps, wanted: str) -> None:
    dump = jitdump().load("f", CODE, ts=START + 5)
    data = recorded().fork(CHILD, CHILD, PID, PID, START + 10)
    assert stack(read(steps(data).sample(CHILD, CHILD, START + 15, CODE), dump), CHILD) == wanted


def test_a_new_program_runs_no_code_of_the_one_before() -> None:
    data = recorded().comm(PID, PID, "new", START + 10, exec=True)
    data.sample(PID, PID, START + 5, CODE).sample(PID, PID, START + 15, CODE)
    assert stacks(read(data, jitdump().load("f", CODE, ts=START + 1))) == ["f", "[unknown]"]


# ---------------------------------------------------------------- jitted-*.so and perf-PID.map


def test_what_perf_inject_made_of_the_dump_is_not_needed_beside_it() -> None:
    def data() -> PerfData:
        mapped = recorded().mmap2(PID, PID, CODE, 4096, 0x80, "/x/jitted-7-0.so", ts=START + 10)
        return mapped.sample(PID, PID, START + SECOND, CODE + 0x4).sample(PID, PID, START + SECOND, CODE + 0x40)

    assert stacks(read(data())) == ["jitted-7-0.so+0x84", "jitted-7-0.so+0xc0"]
    assert stacks(read(data(), jitdump().load("f", CODE, ts=START + 10))) == ["f", "[unknown]"]


def test_perf_map_files(tmp_path: Path) -> None:
    """Below the dump and the files; beside the recording."""
    (tmp_path / "perf-7.map").write_text(
        f"{LIB:x} 10 a stale map's\n{CODE:x} 100 listed code\n0x{CODE + 0x200:x} 0x8 with 0x\nnonsense\n10 0 empty\n"
    )
    data = recorded()
    for at in (LIB + 0xF, LIB + 0x10, CODE, CODE + 0x20, CODE + 0x200, CODE + 0x208):
        data.sample(PID, PID, ip=at)
    dump = jitdump().load("f", CODE)
    trace = read(data, dump, path=str(tmp_path / "perf.data"))
    wanted = ["libx.so+0xf", "libx.so+0x10", "f", "listed code", "with 0x", "[unknown]"]
    assert stacks(trace) == wanted
    assert stacks(read(data, dump)) == ["libx.so+0xf", "libx.so+0x10", "f"] + ["[unknown]"] * 3
    in_folder = ImportContext(folders=[str(tmp_path)])
    assert stacks(read(data, dump, context=in_folder)) == wanted


def test_a_map_of_coreclr_has_methods_and_tiers(tmp_path: Path) -> None:
    """What `DOTNET_PerfMapEnabled=1` and `DOTNET_PerfMapShowOptimizationTiers=1` write: compiled again, a method is the
    same function."""
    (tmp_path / "perf-7.map").write_text(
        f"00{CODE:x} 10 instance int32 [App] App.Program::Work(int32)[QuickJitted]\n"
        f"00{CODE + 0x10:x} 10 instance int32 [App] App.Program::Work(int32)[OptimizedTier1]\n"
        f"00{CODE + 0x20:x} 10 stub<1> GenerateLookupStub<GenerateLookupStub>\n"
    )
    data = recorded()
    for at in (CODE, CODE + 0x10, CODE + 0x20):
        data.sample(PID, PID, ip=at)
    trace = read(data, path=str(tmp_path / "perf.data"))
    assert stacks(trace) == ["App.Program.Work(int32)"] * 2 + ["GenerateLookupStub<GenerateLookupStub>"]
    names = [trace.strings[name] for name in trace.funcs["name"].tolist()]
    assert names.count("App.Program.Work(int32)") == 1
    tiers = [trace.strings[trace.tiers["name"][tier]] for tier in trace.frames["tier"].tolist() if tier >= 0]
    assert tiers == ["QuickJitted", "OptimizedTier1"]


def test_mangled_names_of_compiled_code_are_demangled(tmp_path: Path) -> None:
    """LLVM and Cranelift compile C++ and Rust in memory, too."""
    (tmp_path / "perf-7.map").write_text(
        f"{CODE:x} 10 _ZN3geo5scaleEd\n{CODE + 0x10:x} 10 _RNvC3app4main\n{CODE + 0x20:x} 10 f\n"
    )
    data = recorded()
    for at in (CODE, CODE + 0x10, CODE + 0x20):
        data.sample(PID, PID, ip=at)
    assert stacks(read(data, path=str(tmp_path / "perf.data"))) == ["geo::scale(double)", "app::main", "f"]
    dump = jitdump().load("_ZN3app3run17h0123456789abcdefE", CODE)
    assert stacks(read(data, dump)) == ["app::run", "[unknown]", "[unknown]"]


def test_lines_of_perf_map_files() -> None:
    text = (
        "10 4 f\n20 4 g h  i\n0x30 0x4 hex\nxyz 4 bad\n40 4\n50 0 none\n-60 4 minus\n70 4 \n\n10000000000000000 4 far\n"
    )
    assert list(read_map_file(text)) == [(0x10, 4, "f"), (0x20, 4, "g h  i"), (0x30, 4, "hex")]
    odd = "a\u2028b\x85c\x1cd\x0be\x0cf"
    assert list(read_map_file(f"10 4 {odd}\n20 4 g\n")) == [(0x10, 4, odd), (0x20, 4, "g")]


# ---------------------------------------------------------------- the kernel


@pytest.fixture
def running_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A kernel of this machine, called vm1: its build id."""
    build_id = bytes(range(20))
    note = struct.pack("<III", 4, 4, 6) + b"Xen\0abcd" + struct.pack("<III", 4, 20, 3) + b"GNU\0" + build_id
    (tmp_path / "notes").write_bytes(note)
    (tmp_path / "kallsyms").write_text(
        f"{KERNEL:x} T _text\n{KERNEL + 0x10:x} t do_work\n{KERNEL + 0x18:x} d data\n{KERNEL + 0x20:x} t other\t[mod]\n"
        f"0000000000000000 A hidden\n{KERNEL + 0x40:x} W weak\n"
        f"{MODULE + 0x20:x} t of_mod\t[mod]\n{MODULE + 0x1010:x} t of_two\t[two_words]\n"
        f"{MODULE + 0x1030:x} t end\t[two_words]\n"
        f"{KERNEL + 0x100_0000:x} T _etext\n{KERNEL + 0x110_0000:x} T _sinittext\n"
        f"{KERNEL + 0x110_0010:x} T start_kernel\n{KERNEL + 0x120_0000:x} T _einittext\n"
    )
    monkeypatch.setattr(kallsyms, "KERNEL_NOTES", tmp_path / "notes")
    monkeypatch.setattr(kallsyms, "KALLSYMS", tmp_path / "kallsyms")
    monkeypatch.setattr(natives.platform, "node", lambda: "vm1")
    return build_id


def in_kernel(build_id: bytes, hostname: str, *addresses: int) -> PerfData:
    data = kernel_map(recorded()).feature(HOSTNAME=hostname, BUILD_ID=[(-1, build_id, "[kernel.kallsyms]")])
    for at in addresses:
        data.sample(PID, PID, ip=at, mode="kernel")
    return data


def test_kernel_symbols_of_this_kernel(running_kernel: bytes) -> None:
    data = in_kernel(running_kernel, "vm1", KERNEL + 0x14, KERNEL + 0x2F, KERNEL + 0x44, KERNEL - 1)
    trace = read(data)
    assert stacks(trace) == ["do_work", "do_work", "weak", "[unknown]"]
    assert category(trace) == "Kernel"
    assert (leaf(trace, "address"), int(trace.symbols["address"][leaf(trace, "symbol")])) == (0x14, 0x10)


@pytest.mark.parametrize(("hostname", "other"), [("vm2", False), ("vm1", True), ("", False)])
def test_another_kernel_has_no_symbols(running_kernel: bytes, hostname: str, other: bool) -> None:
    data = in_kernel(bytes(20) if other else running_kernel, hostname, KERNEL + 0x14)
    assert stack(read(data)) == "[kernel.kallsyms]+0x14"


def test_the_build_id_of_the_kernel_in_its_mapping(running_kernel: bytes) -> None:
    """perf record --buildid-mmap writes no BUILD_ID feature."""
    for build_id, wanted in ((running_kernel, "do_work"), (bytes(20), "[kernel.kallsyms]+0x14")):
        data = recorded().feature(HOSTNAME="vm1")
        data.mmap2(-1, 0, KERNEL, 0x100_0000, KERNEL, f"{KALLSYMS}_text", 0, build_id, misc=KERNEL_MODE, ts=0)
        assert stack(read(data.sample(PID, PID, ip=KERNEL + 0x14, mode="kernel"))) == wanted


def test_what_runs_once_lies_behind_the_mapping(running_kernel: bytes) -> None:
    """perf maps the kernel up to _etext; stacks of idle processors begin in start_kernel. Between is data."""
    at = [KERNEL + offset for offset in (0x110_0014, 0x100_0014, 0x120_0014)]
    data = in_kernel(running_kernel, "vm1", *at)
    data.mmap(-1, 0, MODULE, 0x1000, 0, "[mod]", misc=KERNEL_MODE, ts=0).sample(
        PID, PID, ip=MODULE + 0x24, mode="kernel"
    )
    names = ["start_kernel", f"{KALLSYMS}+0x1000014", f"{KALLSYMS}+0x1200014", "of_mod"]
    assert stacks(read(data)) == names


KERNEL_CASES = {
    "named": ("vm1", True, None, {}),
    "another build": ("vm1", False, None, {"kernel_elsewhere": 1}),
    "another machine": ("vm2", True, None, {"kernel_elsewhere": 1}),
    "no build id": ("vm1", None, None, {"kernel_names_missing": 1}),
    "hidden": ("vm1", True, b"0000000000000000 T _text\n", {"kernel_names_missing": 1}),
}


@pytest.mark.parametrize("case", KERNEL_CASES)
def test_why_the_kernel_has_no_names(running_kernel: bytes, case: str) -> None:
    hostname, is_this, text, wanted = KERNEL_CASES[case]
    if text is not None:
        kallsyms.KALLSYMS.write_bytes(text)
    build_id = {True: running_kernel, False: bytes(20), None: None}[is_this]
    data = recorded().feature(HOSTNAME=hostname)
    data.mmap2(-1, 0, KERNEL, 0x100_0000, KERNEL, f"{KALLSYMS}_text", 0, build_id, misc=KERNEL_MODE, ts=0)
    trace = read(data.sample(PID, PID, ip=KERNEL + 0x14, mode="kernel"))
    assert {kind: n for kind, n in report_of(trace).items() if kind in NAMES_MISSING} == wanted
    assert trace.report.lossy is ("kernel_names_missing" in wanted)


DEBUG_LINK = {".gnu_debuglink": b"libx.debug\0\0" + bytes(4)}
WORK = plt.Symbol("work", 0x1820, 8, ".text")
FILES: dict[str, tuple[bytes, dict[str, str]]] = {
    "none": (b"", {"names_missing": "libx.so (2 of 2 addresses): no build id is recorded"}),
    "with symbols": (plt.elf(plt.layouts()["x86-64 bfd"], [WORK, plt.Symbol("more", 0x1828, 8, ".text")]), {}),
    "with some": (
        plt.elf(plt.layouts()["x86-64 bfd"], [WORK], DEBUG_LINK),
        {"names_partly_missing": "libx.so (1 of 2 addresses); its debug file is called libx.debug"},
    ),
    "stripped": (
        plt.elf(plt.layouts()["x86-64 bfd"], [], DEBUG_LINK),
        {"names_partly_missing": "libx.so (2 of 2 addresses); its debug file is called libx.debug"},
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_files_without_names_are_reported(case: str, tmp_path: Path) -> None:
    """A file without a recorded build id is taken from the user's tree alone."""
    file, wanted = FILES[case]
    (tmp_path / "nowhere").mkdir()
    if file:
        (tmp_path / LIB_PATH[1:]).write_bytes(file)
    data = recorded().sample(PID, PID, START, LIB + 0x1824, [USER, LIB + 0x1824, LIB + 0x182D])
    trace = read(data, context=ImportContext(sysroots=[str(tmp_path)]))
    found = {issue.kind: issue.detail for issue in trace.report if issue.kind in NAMES_MISSING}
    assert found == wanted
    assert trace.report.lossy is ("names_missing" in wanted)
    of_build = PerfData(start=START).event().mmap2(PID, PID, LIB, LIB_SIZE, 0, LIB_PATH, build_id=bytes(20), ts=0)
    (issue,) = (i for i in read(of_build.sample(PID, PID, START, LIB + 4)).report if i.kind == "names_missing")
    assert issue.detail == "libx.so (1 of 1 addresses): the file was not found"
    assert all(option in issue.advice for option in ("--symbols", "--sysroot DIR", "--debuginfod"))


@pytest.mark.parametrize(("symbols", "sections", "has_symbols"), [
    ([WORK], {}, True), ([WORK], DEBUG_LINK, False), ([], {}, False),
])  # fmt: skip
def test_what_names_code_without_a_name_in_a_file_that_was_not_stripped(
    symbols: list[plt.Symbol], sections: dict[str, bytes], has_symbols: bool, tmp_path: Path
) -> None:
    """Nothing does; the other two have lost names."""
    (tmp_path / "nowhere").mkdir()
    (tmp_path / LIB_PATH[1:]).write_bytes(plt.elf(plt.layouts()["x86-64 bfd"], symbols, sections))
    data = recorded().sample(PID, PID, START, LIB + 0x1830, [USER, LIB + 0x1830, LIB + 0x1825])
    trace = read(data, context=ImportContext(sysroots=[str(tmp_path)]))
    (issue,) = (issue for issue in trace.report if issue.kind == "names_partly_missing")
    assert (issue.advice == OF_NO_SYMBOL) is has_symbols


def test_who_stripped_a_file_and_left_some_symbols_is_told(tmp_path: Path) -> None:
    """Bun's program has a symbol table of a few functions."""
    path = "/nowhere/node_modules/bun/bin/bun.exe"
    (tmp_path / path[1:]).parent.mkdir(parents=True)
    (tmp_path / path[1:]).write_bytes(plt.elf(plt.layouts()["x86-64 bfd"], [WORK]))
    data = PerfData(start=START).event().mmap2(PID, PID, LIB, LIB_SIZE, 0, path, ts=0)
    for at in range(0x1830, 0x1830 + 64, 2):
        data.sample(PID, PID, START, LIB + at)
    issues = read(data, context=ImportContext(sysroots=[str(tmp_path)])).report
    assert OF_NO_SYMBOL not in {issue.advice for issue in issues}


VDSO = 0x7FFF_0000_0000


@pytest.mark.parametrize(("of_kernel", "start", "options", "release", "wanted"), [
    ("this", VDSO, {}, "6.1", "__vdso_time"),
    ("another", VDSO, {}, "6.1", "[vdso]+0x1004"),
    ("this", 0xF7F0_0000, {}, "6.1", "[vdso]+0x1004"),
    ("unknown", VDSO, {}, "6.1", "__vdso_time"),
    ("unknown", VDSO, {"sysroots": ["/"]}, "6.1", "__vdso_time"),
    ("unknown", VDSO, {"sysroots": ["/"]}, "6.2", "[vdso]+0x1004"),
], ids=["this kernel", "another", "32 bits", "unknown", "--sysroot /", "another release"])  # fmt: skip
def test_the_kernel_vouches_for_a_vdso_without_a_build_id(
    running_kernel: bytes, monkeypatch: pytest.MonkeyPatch, of_kernel: str, start: int, options: dict[str, Any],
    release: str, wanted: str,
) -> None:  # fmt: skip
    image = Dwarf().elf([Symbol("__vdso_time", 0x1000, 16)])
    monkeypatch.setattr(vdso, "own_vdso", lambda: image)
    for module in (natives, recorded_files):
        monkeypatch.setattr(module, "build_id_of", lambda data: "ab" * 20 if bytes(data) == image else "")
    monkeypatch.setattr(natives.platform, "release", lambda: "6.1")
    build_id = {"this": running_kernel, "another": bytes(20), "unknown": None}[of_kernel]
    data = recorded().feature(HOSTNAME="vm1", OSRELEASE=release)
    data.mmap2(-1, 0, KERNEL, 0x100_0000, KERNEL, f"{KALLSYMS}_text", 0, build_id, misc=KERNEL_MODE, ts=0)
    data.mmap2(PID, PID, start, 0x2000, 0, "[vdso]", ts=0).sample(PID, PID, ip=start + 0x1004)
    trace = read(data, context=ImportContext(**options))
    assert stack(trace) == wanted
    unverified = [issue.detail for issue in trace.report if issue.kind == "files_unverified"]
    assert unverified == (
        ["[kernel.kallsyms] 6.1"] if of_kernel == "unknown" and not options and wanted != "[vdso]+0x1004" else []
    )


def test_hidden_kernel_symbols() -> None:
    """Without the right to see them all addresses are 0."""
    for text in (b"0000000000000000 T _text\n0000000000000000 t f\n", b"", b"\n", b"no symbols", b"1 T"):
        assert KernelSymbols(text).lookup("", np.array([KERNEL, 0, TOP], np.uint64)) == [(0, "")] * 3


def test_padding_in_front_of_a_function_of_the_kernel_has_its_name() -> None:
    symbols = KernelSymbols(b"ffffffff81000000 T f\nffffffff81000010 t __pfx_g\nffffffff81000020 t g\n")
    found = symbols.lookup("", np.array([0xFFFFFFFF8100000F, 0xFFFFFFFF8100001F, 0xFFFFFFFF81000020], np.uint64))
    assert [name for _, name in found] == ["f", "g", "g"]


def test_the_kernel_at_another_address(running_kernel: bytes) -> None:
    """It lies elsewhere after each start; the recording has the address of one symbol. Modules are not found then."""
    data = recorded().feature(HOSTNAME="vm1", BUILD_ID=[(-1, running_kernel, "[kernel.kallsyms]")])
    moved_to = KERNEL + 0x20_0000
    data.mmap(-1, 0, moved_to, 0x100_0000, moved_to, "[kernel.kallsyms]_text", misc=KERNEL_MODE, ts=0)
    data.mmap(-1, 0, MODULE, 0x1000, 0, "[mod]", misc=KERNEL_MODE, ts=0)
    for at in (moved_to + 0x14, MODULE + 0x24):
        data.sample(PID, PID, ip=at, mode="kernel")
    assert stacks(read(data)) == ["do_work", "[mod]+0x24"]


def test_symbols_of_modules(running_kernel: bytes) -> None:
    paths = ("[mod]", "/lib/modules/6.1.0/kernel/net/two-words.ko.xz", "[other]")
    data = in_kernel(running_kernel, "vm1", KERNEL + 0x14)
    for nth, path in enumerate(paths):
        data.mmap(-1, 0, MODULE + 0x1000 * nth, 0x1000, 0, path, misc=KERNEL_MODE, ts=0)
        data.sample(PID, PID, START + nth, MODULE + 0x1000 * nth + 0x24, mode="kernel")
    trace = read(data.sample(PID, PID, START + 9, MODULE + 0x1F, mode="kernel"))
    assert sorted(stacks(trace)) == ["[mod]+0x1f", "[other]+0x24", "do_work", "of_mod", "of_two"]
    assert category(trace) == "Kernel"


def test_mappings_that_end_beyond_memory(tmp_path: Path) -> None:
    """Page offsets and lengths near 2^64, with symbols of each kind, are no crash."""
    module = f"MODULE Linux x86_64 {'0' * 33} libx.so\nFUNC 10 20 0 f\n"
    (tmp_path / "libx.so.sym").write_text(module)
    for start, length, pgoff in ((LIB, 0x1000, TOP - 4), (TOP - 0x1000, 0x1000, TOP), (LIB, TOP, 1 << 63)):
        data = PerfData(start=START).event().mmap2(PID, PID, start, length, pgoff, LIB_PATH, ts=0)
        data.sample(PID, PID, START, start + 0x14).sample(PID, PID, START + 1, start)
        for symbols in ([], [open_source(str(tmp_path / "libx.so.sym"))]):
            trace = read(data, context=ImportContext(symbols=symbols))
            assert all(text.startswith("libx.so+") for text in stacks(trace)[1:])


def test_code_that_the_kernel_compiled() -> None:
    data = kernel_map(recorded()).ksymbol(KERNEL + 0x100, 0x20, "bpf_prog_1", ts=START)
    data.sample(PID, PID, START + 1, KERNEL + 0x11F, mode="kernel")
    data.sample(PID, PID, START + 2, KERNEL + 0x120, mode="kernel")
    data.ksymbol(KERNEL + 0x100, 0x20, "bpf_prog_1", unregister=True, ts=START + 3)
    data.sample(PID, PID, START + 4, KERNEL + 0x110, mode="kernel")
    data.ksymbol(KERNEL + 0x108, 0x20, "bpf_prog_2", ts=START + 5).sample(
        PID, PID, START + 6, KERNEL + 0x110, mode="kernel"
    )
    text = "[kernel.kallsyms]"
    assert stacks(read(data)) == ["bpf_prog_1", f"{text}+0x120", f"{text}+0x110", "bpf_prog_2"]


def test_modules_of_the_kernel() -> None:
    data = kernel_map(recorded()).mmap(-1, 0, KERNEL + 0x4000_0000, 0x1000, 0, "[nf_tables]", misc=KERNEL_MODE, ts=0)
    trace = read(data.sample(PID, PID, START, KERNEL + 0x4000_0010, mode="kernel"))
    assert (stack(trace), category(trace)) == ("[nf_tables]+0x10", "Kernel")


# ---------------------------------------------------------------- native code with symbols

PROGRAM = """
static inline __attribute__((always_inline)) int deep(int x) { return x * 31 + (x >> 3); }
static inline __attribute__((always_inline)) int inner(volatile int *p) { *p += 1; return deep(*p); }
__attribute__((noinline)) int outer(volatile int *p) { int s = *p;
  for (int i = 0; i < *p; i++)
    s += inner(p);
  return s; }
int main(int argc, char **argv) { volatile int n = argc; return outer(&n); }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc here to make a program with inlined functions")
    folder = tmp_path_factory.mktemp("program")
    (folder / "tiny.c").write_text(PROGRAM)
    command = [compiler, "-g", "-O2", "-Wl,--build-id=sha1", "-o", folder / "tiny", folder / "tiny.c"]
    subprocess.run(command, check=True, cwd=folder)
    return folder / "tiny"


class Elf:
    """A program as pyelftools sees it: where `outer` lies in the file, and its build id."""

    def __init__(self, path: Path) -> None:
        from elftools.elf.elffile import ELFFile

        with path.open("rb") as file:
            elf = ELFFile(file)
            (symbol,) = elf.get_section_by_name(".symtab").get_symbol_by_name("outer")
            (text,) = (s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD" and s["p_flags"] & 1)
            notes = elf.get_section_by_name(".note.gnu.build-id").iter_notes()
            self.build_id = bytes.fromhex(next(iter(notes))["n_desc"])
            self.pgoff, self.length = text["p_offset"], text["p_memsz"]
            self.at = symbol["st_value"] - text["p_vaddr"] + text["p_offset"]
            self.address, self.size = symbol["st_value"], symbol["st_size"]


def running(program: Path, path: str, build_id: bytes | None) -> PerfData:
    """A sample in every byte of `outer`, loaded somewhere."""
    elf = Elf(program)
    data = recorded().mmap2(PID, PID, 0x5500_0000, elf.length, elf.pgoff, path, build_id=build_id, ts=0)
    for nth in range(elf.size):
        data.sample(PID, PID, START + 1 + nth, 0x5500_0000 + elf.at - elf.pgoff + nth)
    return data


OF_LEAF = "xor %eax, %eax; nop; ret"
OF_CALLER = "push %rbp; mov %rsp, %rbp; nop; call leaf; pop %rbp; ret"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the instructions of x86-64")
@pytest.mark.parametrize(("code", "n_missing"), [(OF_LEAF, 3), (OF_CALLER, 1)], ids=["no frame", "a frame"])
def test_callers_of_functions_without_a_frame(code: str, n_missing: int, tmp_path: Path) -> None:
    """A function that makes a frame has none before its second instruction has run; of the first byte of a function
    nothing is known."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc here")
    assembly = f'asm(".globl outer; .type outer, @function; outer: {code}; .size outer, . - outer");'
    (tmp_path / "tiny.c").write_text(f"{assembly} void leaf(void) {{}} int main(void) {{ return 0; }}")
    subprocess.run([compiler, "-Wl,--build-id=sha1", "-o", tmp_path / "tiny", tmp_path / "tiny.c"], check=True)
    trace = read(running(tmp_path / "tiny", str(tmp_path / "tiny"), Elf(tmp_path / "tiny").build_id))
    assert report_of(trace).get("callers_missing") == n_missing


def test_symbols_of_the_file_that_was_recorded(program: Path) -> None:
    """Its build id is that of the file at the recorded path."""
    elf = Elf(program)
    trace = read(running(program, str(program), elf.build_id))
    seen = stacks(trace)
    assert set(seen) == {"outer", "outer > (inner)", "outer > (inner) > (deep)"}
    assert reported(trace) == {}
    lines: dict[str, set[int]] = {}
    for row in data_of(trace, PID).samples["stack"].tolist():
        while row >= 0:
            frame = int(trace.stacks["frame"][row])
            lines.setdefault(trace.func_name(int(trace.frames["func"][frame])), set()).add(
                int(trace.frames["line"][frame])
            )
            assert int(trace.frames["address"][frame]) >= elf.address
            row = int(trace.stacks["prefix"][row])
    assert lines["deep"] - {0} == {2}
    assert lines["inner"] - {0} <= {2, 3}
    assert 6 in lines["outer"]
    symbol = leaf(trace, "symbol")
    assert (trace.strings[int(trace.symbols["name"][symbol])], int(trace.symbols["address"][symbol])) == (
        "outer",
        elf.address,
    )
    lib = int(trace.symbols["lib"][symbol])
    assert trace.strings[int(trace.libs["code_id"][lib])] == elf.build_id.hex()
    source = int(trace.funcs["source"][leaf(trace, "func")])
    assert trace.strings[int(trace.sources["path"][source])].endswith("/tiny.c")


def test_a_program_that_runs_from_memory_is_known_by_its_build_id(program: Path) -> None:
    """fexecve of memfd_create: with --buildid-mmap; without a build id, it is memory that a JIT compiler may fill."""
    path = "/memfd:tiny (deleted)"
    context = context_with(program)
    named = {
        id_: set(stacks(read(running(program, path, id_), context=context))) for id_ in (Elf(program).build_id, None)
    }
    assert named[None] == {"[code in /memfd:tiny]"}
    assert "outer > (inner) > (deep)" in named[Elf(program).build_id]


def context_with(*files: Path) -> ImportContext:
    return ImportContext(symbols=[open_source(str(file)) for file in files])


def test_a_file_of_another_build_is_refused(program: Path) -> None:
    """At its place and from the user; functions are shown by address."""
    data = running(program, str(program), bytes(20))
    for context in (ImportContext(), context_with(program)):
        trace = read(data, context=context)
        assert all(text.startswith("tiny+0x") for text in stacks(trace))
        assert reported(trace) == {"build_id_differs": 1}
        (issue,) = (issue for issue in trace.report if issue.kind == "build_id_differs")
        assert Elf(program).build_id.hex() in issue.detail
        (missing,) = (
            issue.detail for issue in trace.report if issue.kind == "names_missing" and "tiny" in issue.detail
        )
        assert missing.endswith(f": {IS_OF_OTHER_BUILD}")


def test_a_file_that_the_user_names(program: Path, tmp_path: Path) -> None:
    """By its build id whatever its name; without a recorded build id by its name."""
    elf, copy = Elf(program), tmp_path / "other-name"
    shutil.copy(program, copy)
    by_id = read(running(program, "/gone/tiny", elf.build_id), context=context_with(copy))
    by_name = read(running(program, "/gone/tiny", None), context=context_with(program))
    unnamed = read(running(program, "/gone/tiny", None), context=context_with(copy))
    assert "outer > (inner)" in stacks(by_id)
    assert "outer > (inner)" in stacks(by_name)
    assert all(text.startswith("tiny+0x") for text in stacks(unnamed))
    assert reported(by_id) == reported(by_name) == reported(unnamed) == {}


def test_a_file_of_that_name_does_not_hide_the_right_one(program: Path, tmp_path: Path) -> None:
    """The user's file is of another build, the recorded path's is not: nothing is amiss."""
    other = tmp_path / "tiny"
    (tmp_path / "tiny.c").write_text(PROGRAM.replace("31", "37"))
    compiler = shutil.which("gcc")
    assert compiler
    subprocess.run([compiler, "-g", "-O2", "-Wl,--build-id=sha1", "-o", other, tmp_path / "tiny.c"], check=True)
    trace = read(running(program, str(program), Elf(program).build_id), context=context_with(other))
    assert "outer > (inner)" in stacks(trace)
    assert reported(trace) == {}


def test_a_path_without_a_build_id_is_not_opened(program: Path) -> None:
    """It could be any version of the file."""
    assert all(text.startswith("tiny+0x") for text in stacks(read(running(program, str(program), None))))


def test_build_ids_of_the_header(program: Path) -> None:
    """The feature BUILD_ID, where the mapping itself tells none."""
    data = running(program, str(program), None).feature(BUILD_ID=[(-1, Elf(program).build_id, str(program))])
    assert "outer > (inner)" in stacks(read(data))


def test_symbols_that_are_no_elf_files(tmp_path: Path) -> None:
    (tmp_path / "libx.so").write_bytes(b"\x7fELF and nothing else")
    trace = read(recorded().sample(PID, PID, START, A), context=context_with(tmp_path / "libx.so"))
    assert stack(trace) == "libx.so+0x10"


# ---------------------------------------------------------------- processes and threads


def lives(trace: Trace) -> list[tuple[int, int, str, bool, int, int]]:
    return [
        (process.pid, t.tid, t.name, t.is_main, t.start_ts - START, t.end_ts - START) for process, t in trace.threads
    ]


def test_names_and_lifetimes() -> None:
    data = PerfData(start=START).event().comm(7, 7, "early", ts=0).sample(7, 7, START + 10)
    data.fork(7, 8, 7, 7, START + 20).comm(7, 8, "worker", START + 25).fork(7, 9, 7, 7, START + 30)
    data.exit(7, 8, START + 50).comm(7, 7, "late", START + 60).exit(7, 9, START + 70)
    data.fork(30, 30, 7, 7, START + 75).comm(30, 30, "child", START + 80, exec=True).exit(30, 30, START + 90)
    data.sample(7, 7, START + 100).exit(7, 7, START + 110)
    trace = read(data)
    assert lives(trace) == [
        (7, 7, "late", True, 10, 110), (7, 8, "worker", False, 20, 50), (7, 9, "early", False, 30, 70),
        (30, 30, "child", True, 75, 90),
    ]  # fmt: skip
    assert [(p.pid, p.name) for p in trace.processes] == [(7, "late"), (30, "child")]


def test_threads_that_nobody_named() -> None:
    trace = read(PerfData(start=START).event().sample(7, 8, START).sample(0, 0, START + 1, mode="kernel"))
    assert [(p.pid, p.name) for p in trace.processes] == [(0, "swapper"), (7, "process 7")]
    assert [thread.name for _, thread in trace.threads] == ["swapper", "thread 8"]


def test_samples_after_the_exit_are_kept() -> None:
    """Records of two buffers may say so."""
    data = PerfData(start=START).event().exit(7, 7, START + 10).sample(7, 7, START + 20)
    assert lives(read(data)) == [(7, 7, "thread 7", True, 10, 20)]


def test_a_compiling_thread_is_one_thread() -> None:
    """The dump's markers and the recording's samples, of the main thread and of another."""
    data = recorded().sample(PID, PID, START + 50).comm(PID, 8, "C2", ts=0).sample(PID, 8, START + 60)
    dump = jitdump().load("f", CODE, ts=START + 10).load("g", CODE + 64, tid=8, ts=START + 90)
    trace = read(data, dump)
    assert [(t.tid, t.name) for _, t in trace.threads if not t.sample_unit] == [(PID, "app"), (8, "C2")]
    assert [process.name for process in trace.processes] == ["app"]
    for tid, name in ((PID, "f"), (8, "g")):
        loaded = data_of(trace, tid)
        assert len(loaded.samples) == 1
        ((kind, (row,)),) = events_of(loaded).items()
        assert (kind, row["function"]) == ("JIT code", name)
    assert lives(trace)[0][-2:] == (10, 60)


def test_recordings_of_one_thread_go_together() -> None:
    """Two recordings, one after the other: none hides the other."""
    trace = TraceBuilder()
    sources = [Source(f"{ts}.data", memoryview(recorded().sample(PID, PID, START + ts, A).bytes())) for ts in (100, 50)]
    importer_named("perf").module.read(sources).add_to(trace, ImportContext())
    trace.sort()
    assert laws.check(trace) == []
    found = [ts for _, thread in trace.threads if thread.tid == PID for ts in thread.load(trace).samples["ts"].tolist()]
    assert sorted(found) == [START + 50, START + 100]


def test_provenance() -> None:
    data = recorded(freq=997).sample(PID, PID, START)
    data.feature(VERSION="6.1.192", HOSTNAME="vm9", OSRELEASE="6.18", ARCH="x86_64", CMDLINE=["perf", "record", "x"])
    trace = read(data.feature(CPUDESC="A CPU", NRCPUS=(4, 2), TOTAL_MEM=1024))
    assert trace.attributes == {
        "recorder": "perf 6.1.192", "command": "perf record x", "hostname": "vm9", "os_release": "6.18",
        "arch": "x86_64", "cpu": "A CPU", "cpus": "2", "memory_bytes": "1048576", "events": "cpu-clock",
        "call_graph": "fp",
    }  # fmt: skip
    assert [(i.path, i.format, i.version, i.producer) for i in trace.inputs] == [
        ("perf.data", "perf.data", "file", "perf 6.1.192")
    ]


# ---------------------------------------------------------------- scheduling

SWITCHES = "disabled inherit mmap comm task sample_id_all mmap2 comm_exec context_switch"


def switched(*switches: tuple[int, str], samples: Sequence[int] = ()) -> Trace:
    """Switches: (ts, in, out or preempted)."""
    data = recorded(sample_type="IP|TID|TIME|CPU|PERIOD", flags=SWITCHES)
    for ts, what in switches:
        data.switch(PID, PID, START + ts, out=what != "in", preempt=what == "preempted", cpu=1)
    for ts in samples:
        data.sample(PID, PID, START + ts, A)
    return read(data)


def test_switches_are_states() -> None:
    table = data_of(switched((10, "in"), (20, "out"), (30, "in"), (40, "preempted")), PID).scheduling
    assert table.spec is SCHEDULING
    assert table["state"].tolist() == [RUNNING, WAITING, RUNNING, PREEMPTED]
    assert (table["ts"] - START).tolist() == [10, 20, 30, 40]
    assert table["cpu"].tolist() == [1, 1, 1, 1]


CPU_TIMES = {
    "nothing tells": ([], [10, 20], [-1, -1]),
    "always on": ([(5, "in")], [10, 20, 25], [-1, 10, 5]),
    "off in between": ([(5, "in"), (12, "out"), (17, "in")], [10, 20], [-1, 5]),
    "twice": ([(5, "in"), (12, "out"), (14, "in"), (15, "preempted"), (18, "in")], [10, 20], [-1, 5]),
    "on before the first switch": ([(15, "out"), (18, "in")], [5, 10, 20], [-1, 5, 7]),
    "a switch is missing before the first": ([(15, "in")], [5, 10, 20], [-1, 5, -1]),
    "a switch is missing at the end": ([(5, "in"), (12, "out")], [10, 20, 30], [-1, -1, 10]),
    "off to the end": ([(5, "in"), (12, "out")], [8, 10], [-1, 2]),
    "at the moment of a switch": ([(5, "in"), (10, "out"), (20, "in")], [10, 20], [-1, 0]),
}


@pytest.mark.parametrize(("switches", "samples", "wanted"), CPU_TIMES.values(), ids=CPU_TIMES)
def test_cpu_time_between_samples(switches: list[tuple[int, str]], samples: list[int], wanted: list[int]) -> None:
    assert data_of(switched(*switches, samples=samples), PID).samples["cpu_ns"].tolist() == wanted


def test_switches_of_a_whole_machine() -> None:
    """SWITCH_CPU_WIDE says who; threads that were never sampled have states too."""
    data = recorded(sample_type="IP|TID|TIME|CPU|PERIOD|IDENTIFIER", flags=SWITCHES)
    data.switch_cpu_wide(PID, PID, 20, 21, START + 10, out=True).switch_cpu_wide(
        20, 21, PID, PID, START + 10, out=False
    )
    trace = read(data)
    assert data_of(trace, PID).scheduling["state"].tolist() == [WAITING]
    assert data_of(trace, 21).scheduling["state"].tolist() == [RUNNING]
    assert len(data_of(trace, 21).samples) == 0


def test_processors() -> None:
    trace = read(recorded(sample_type=EVERYTHING).sample(PID, PID, START, A, cpu=1))
    assert data_of(trace, PID).samples["cpu"].tolist() == [1]
    assert data_of(read(recorded().sample(PID, PID, START, A)), PID).samples["cpu"].tolist() == [-1]


# ---------------------------------------------------------------- what was lost

LOSSES: dict[str, tuple[Callable[[PerfData], PerfData], dict[str, int]]] = {
    "records": (lambda d: d.lost(5).lost(7), {"lost_samples": 12}),
    "samples": (lambda d: d.lost_samples(3), {"lost_samples": 3}),
    "records, and perf's sum of the samples among them": (
        lambda d: d.lost(5).lost(2).lost_samples(6, ts=0),
        {"lost_samples": 7},
    ),
    "perf's sum alone": (lambda d: d.lost(1).lost_samples(6, ts=0), {"lost_samples": 6}),
    "records, and samples of the processor's own buffer": (
        lambda d: d.lost(5).lost_samples(6).lost_samples(4, ts=0),
        {"lost_samples": 11},
    ),
    "samples that a filter left out": (
        lambda d: d.lost_samples(3, filtered=True).lost_samples(4),
        {"samples_filtered": 3, "lost_samples": 4},
    ),
    "hardware traces": (lambda d: d.auxtrace(bytes(24)).auxtrace(bytes(8)), {"traces_not_decoded": 2}),
    "throttled": (lambda d: d.throttle().throttle(on=False).throttle().throttle(on=False), {"throttled": 2}),
    "nothing": (lambda d: d, {}),
}


@pytest.mark.parametrize(("steps", "wanted"), LOSSES.values(), ids=LOSSES)
def test_losses(steps: Callable[[PerfData], PerfData], wanted: dict[str, int]) -> None:
    assert reported(read(steps(recorded(sample_type=EVERYTHING)).sample(PID, PID, START))) == wanted


LBR = 1 << 11
NOT_READ: dict[str, tuple[str, dict[str, Any], dict[str, int]]] = {
    "stacks of the processor": ("BRANCH_STACK", {"branch_sample_type": LBR}, {}),
    "branches": ("BRANCH_STACK", {"branch_sample_type": 8}, {}),
    "a group's counters": ("READ", {"read_format": "ID|GROUP"}, {}),
    "its own counter": ("READ", {"read_format": "ID"}, {}),
    "transactions": ("TRANSACTION|REGS_INTR", {"type": RAW}, {"sample_parts_not_read": 2}),
    "a memory access of an event that has none": ("DATA_SRC", {"type": SOFTWARE}, {}),
}


@pytest.mark.parametrize(("parts", "event", "wanted"), NOT_READ.values(), ids=NOT_READ)
def test_what_is_not_read_is_named(parts: str, event: dict[str, Any], wanted: dict[str, int]) -> None:
    read_values = [0] if event.get("read_format") == "ID|GROUP" else [1, 101] if parts == "READ" else []
    data = recorded(sample_type=f"{EVERYTHING}|{parts}", **event).sample(
        PID, PID, START, A, [USER, A], read=read_values, branches=[(A, B, 0)]
    )
    assert reported(read(data)) == wanted


NO_TIME = (1 << 64) - (1 << 32)


def slept(order: str, tid: int, period: int, *chain: int) -> bytes:
    numbers = [number % (1 << 64) for number in chain]
    return struct.pack(f"{order}IIQQ{len(chain)}QQ", PID, tid, period, len(chain), *numbers, 1)


@pytest.mark.parametrize("order", "<>", ids=["little", "big"])
@pytest.mark.parametrize("is_raw", [True, False], ids=["raw", "plain"])
def test_samples_of_time_off_the_processor(order: str, is_raw: bool) -> None:
    """perf 6.16 writes them as raw data of whatever ran, which is nobody; perf before as samples of what slept."""
    more = "|RAW" if is_raw else ""
    data = PerfData(order, start=START).event(sample_type=EVERYTHING)
    data.event("offcpu-time", SOFTWARE, 10, sample_type=f"{EVERYTHING}{more}")
    data.comm(PID, PID, "app", ts=START).mmap2(PID, PID, LIB, LIB_SIZE, 0, LIB_PATH, ts=START + 5)
    data.sample(PID, PID, START + 10, A)
    if is_raw:
        raw = slept(order, PID, 500, USER, A, B)
        data.sample(0, 0, NO_TIME, event=1, chain=[], raw=raw)
        data.sample(0, 0, NO_TIME + 1, event=1, chain=[], raw=raw[:-16]).sample(0, 0, NO_TIME, event=1, raw=b"x" * 20)
    else:
        data.sample(PID, PID, NO_TIME, A, [USER, A, B], event=1, period=500)
    trace = read(data)
    assert reported(trace) == {"off_cpu_no_times": 3, "bad_record": 2} if is_raw else {"off_cpu_no_times": 1}
    assert [(event.name, event.unit, event.kind) for event in trace.events[1:]] == [("offcpu-time", "ns", "off-cpu")]
    ((_, thread),) = trace.threads
    (table,) = thread.load(trace).other_samples.values()
    assert (thread.tid, table["weight"].tolist(), table["ts"].tolist()) == (PID, [500], [START + 10])
    depth, stack = 0, int(table["stack"][0])
    while stack >= 0:
        depth, stack = depth + 1, int(thread.load(trace).trace.stacks["prefix"][stack])
    assert depth == 2


# ---------------------------------------------------------------- every kind of file


def story(order: str = "<", mode: str = "file", compressed: bool = False) -> PerfData:
    data = PerfData(order, mode, start=START).event(sample_type=EVERYTHING, freq=997)
    if compressed:
        data.begin_compressed()
    data.comm(PID, PID, "app", ts=0).mmap2(PID, PID, LIB, LIB_SIZE, 0, LIB_PATH, ts=0)
    kernel_map(data).mmap2(PID, PID, X, 4096, 0, f"/x/{DUMP}", ts=START)
    data.sample(PID, PID, START + 200, CODE, [USER, CODE, A]).sample(PID, PID, START + 300, K, [IN_KERNEL, K, USER, A])
    data.sample(PID, PID, START + 100, A)
    return data.end_compressed([50, 131]) if compressed else data


TOLD = ["libx.so+0x10", "libx.so+0xf > f", "libx.so+0x10 > [kernel.kallsyms]+0x10"]


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "compressed"])
@pytest.mark.parametrize("mode", ["file", "pipe"])
@pytest.mark.parametrize("order", "<>", ids=["little", "big"])
def test_every_kind_of_file(order: str, mode: str, compressed: bool) -> None:
    """The order in the file is that of the buffers: samples are sorted."""
    trace = read(story(order, mode, compressed), jitdump(byte_order=order).load("f", CODE, ts=START + 50))
    assert stacks(trace) == TOLD
    assert reported(trace) == {}
    assert (data_of(trace, PID).samples["ts"] - START).tolist() == [100, 200, 300]
    assert trace.inputs[-1].version == mode


def test_a_recorder_that_was_killed() -> None:
    trace = read(story().bytes(finalized=False), jitdump().load("f", CODE, ts=START + 50))
    assert stacks(trace) == TOLD
    assert reported(trace) == {"unfinalized": 1}


def test_a_program_that_could_not_be_started() -> None:
    """perf ends then without finishing the file: nobody killed it."""
    data = PerfData(start=START).event().comm(PID, PID, "perf-exec")
    assert reported(read(data.bytes(finalized=False))) == {"no_samples": 1}


def records_of(data: PerfData) -> bytes:
    """What stands between the header and the features."""
    whole = data.bytes()
    at, size = struct.unpack_from("<QQ", whole, 40)
    return whole[at : at + size]


def test_a_folder_of_one_file_for_each_thread(tmp_path: Path) -> None:
    """perf record --threads: the header's file and data.0, data.1... of records alone."""
    folder = tmp_path / "perf.data"
    folder.mkdir()
    main = PerfData(start=START).event(sample_type=EVERYTHING, freq=997).feature(DIR_FORMAT=1)
    main.comm(PID, PID, "app", ts=0).mmap2(PID, PID, LIB, LIB_SIZE, 0, LIB_PATH, ts=0)
    parts = [PerfData(start=START).event(sample_type=EVERYTHING, freq=997) for _ in range(11)]
    for nth, part in enumerate(parts):
        part.sample(PID, PID, START + 100 - nth, LIB + nth)
        (folder / f"data.{nth}").write_bytes(records_of(part))
    (folder / "data").write_bytes(main.bytes())
    trace = load_checked(folder)
    assert stacks(trace) == [f"libx.so+{nth:#x}" for nth in range(10, -1, -1)]
    assert trace.inputs[-1].version == "directory"
    assert reported(trace) == {}


def test_tables_are_made_anew() -> None:
    """Exporters load threads as often as they like."""
    trace = read(story(), jitdump().load("f", CODE, ts=START + 50))
    thread = thread_of(trace, PID)
    first, second = thread.load(trace), thread.load(trace)
    assert first.samples.spec is SAMPLES
    assert all(np.array_equal(first.samples[c.name], second.samples[c.name]) for c in SAMPLES.columns)


def test_a_recording_without_samples() -> None:
    trace = read(recorded())
    assert [(p.pid, p.name) for p in trace.processes] == [(PID, "app")]
    assert trace.sampling is None


# ---------------------------------------------------------------- recordings that follow each other

SLICES: dict[str, tuple[list[PerfData], list[tuple[str, int, list[int]]]]] = {
    "of one thread": (
        [recorded().sample(PID, PID, START, A), recorded().sample(PID, PID, START + 50, B)],
        [("app", PID, [START, START + 50])],
    ),
    "the later one first": (
        [recorded().sample(PID, PID, START + 50, A), recorded().sample(PID, PID, START, B)],
        [("app", PID, [START, START + 50])],
    ),
    "whose second does not tell the thread's name": (
        [recorded().comm(PID, 8, "w", ts=0).sample(PID, 8, START, A), recorded().sample(PID, 8, START + 50, B)],
        [("w", 8, [START, START + 50])],
    ),
    "of one time: of other processors, or events": (
        [recorded().sample(PID, PID, START, A).sample(PID, PID, START + 60, A),
         recorded().sample(PID, PID, START + 50, B)],
        [("app", PID, [START, START + 60]), ("app", PID, [START + 50])],
    ),
    "of two threads with one number": (
        [recorded().comm(PID, 8, "w", ts=0).sample(PID, 8, START, A),
         recorded().comm(PID, 8, "x", ts=0).sample(PID, 8, START + 50, B)],
        [("w", 8, [START]), ("x", 8, [START + 50])],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("recordings", "wanted"), SLICES.values(), ids=SLICES)
def test_slices_of_one_recording(recordings: list[PerfData], wanted: list[tuple[str, int, list[int]]]) -> None:
    """As perf record --switch-output writes them."""
    trace = TraceBuilder()
    sources = [Source(f"perf.data.{nth}", memoryview(data.bytes())) for nth, data in enumerate(recordings)]
    importer_named("perf").module.read(sources).add_to(trace, ImportContext())
    trace.sort()
    assert laws.check(trace) == []
    threads = [(thread.name, thread.tid, thread.load(trace).samples["ts"].tolist()) for _, thread in trace.threads]
    assert [each for each in threads if each[2]] == wanted


@pytest.mark.parametrize(("options", "wanted"), [
    (["--switch-output=1s"], {}),
    ([], {"code_unmapped": 12}),  # two recordings, of which nothing tells that they are parts of one
])  # fmt: skip
def test_a_slice_of_a_program_that_is_gone(options: list[str], wanted: dict[str, int]) -> None:
    """perf read no mappings of it when it began the last slice: the one before tells them, but those from before an
    exec."""
    command = ["perf", "record", *options, "app"]
    first = PerfData(start=START).event().comm(PID, PID, "sh", ts=0).mmap2(PID, PID, LIB, LIB_SIZE, 0, "/bin/sh", ts=0)
    first.comm(PID, PID, "app", exec=True, ts=START + 1).mmap2(PID, PID, LIB, LIB_SIZE, 0, LIB_PATH, ts=START + 2)
    last = PerfData(start=START + 100).event().comm(PID, PID, "app", ts=0)
    first.sample(PID, PID, START + 3, A)
    for nth in range(12):
        last.sample(PID, PID, START + 100 + nth, A)
    given = [(nth, data.feature(CMDLINE=command).bytes()) for nth, data in enumerate((last, first))]
    trace = TraceBuilder()
    sources = [Source(f"perf.data.{nth}", memoryview(data)) for nth, data in given]
    importer_named("perf").module.read(sources).add_to(trace, ImportContext())
    trace.sort()
    assert {kind: n for kind, n in reported(trace).items() if kind == "code_unmapped"} == wanted
    assert stacks(trace).count("libx.so+0x10") == (1 if wanted else 13)


def test_a_slice_alone_is_told_as_one() -> None:
    data = PerfData(start=START).event().comm(PID, PID, "app", ts=0)
    data.feature(CMDLINE=["perf", "record", "--switch-output", "app"])
    for nth in range(12):
        data.sample(PID, PID, START + nth, A)
    (issue,) = (issue for issue in read(data).report if issue.kind == "code_unmapped")
    assert issue.advice == OF_OTHER_PART


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (0, 2, 1)])
def test_slices_of_a_process_that_compiles_all_the_time(order: tuple[int, ...], tmp_path: Path) -> None:
    """Its dump tells of each of its threads long after the first slice: they are one process."""
    dump = jitdump().load("f", CODE, ts=START + 5).load("g", CODE + 64, ts=START + 200)
    (tmp_path / DUMP).write_bytes(dump.load("h", CODE + 128, tid=8, ts=START + 6).load("i", CODE, tid=8).bytes())
    for nth in range(3):
        data = recorded(clockid=MONOTONIC).comm(PID, 8, "w", ts=0)
        data.sample(PID, PID, START + 50 * nth, A).sample(PID, 8, START + 50 * nth + 10, CODE + 128)
        (tmp_path / f"perf.data.{nth}").write_bytes(data.bytes())
    trace = load_checked([tmp_path / DUMP, *(tmp_path / f"perf.data.{nth}" for nth in order)])
    (process,) = trace.processes
    found = [(thread.name, thread.load(trace)) for thread in process.threads if not thread.sample_unit]
    assert [(name, data.samples["ts"].tolist(), sum(map(len, data.markers.values()))) for name, data in found] == [
        ("app", [START, START + 50, START + 100], 2),
        ("w", [START + 10, START + 60, START + 110], 2),
    ]
