"""Perfetto: samples, callstacks, scheduling, flows and sources of a trace that is built here by hand."""

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outputs import saved
from readers import perfetto
from support import report_of
from test_perfetto import STATS, unknown_fields

from traceferry.model import (
    COUNTER_VALUES,
    PREEMPTED,
    RUNNING,
    SAMPLES,
    SCHEDULING,
    WAITING,
    Clock,
    Event,
    MarkerField,
    MarkerType,
    Process,
    Table,
    Thread,
    ThreadData,
    Trace,
    TraceBuilder,
)
from traceferry.model import (
    Counter as CounterTrack,
)
from traceferry.model.laws import check

START, END = 10**15, 10**15 + 10**9
NODE, APP = 100, 200
REUSED = 0x7F00_0000_1000  # an address at which two code objects lay
BUILD_ID = "f1e2d3c4b5a69788796a5b4c3d2e1f00ff80fe7f"
COMPILED = MarkerType("Compiled", "code is made", (MarkerField("size", "Size", "bytes"),))
LOADED = MarkerType("Loaded", "code is loaded", ())
SOURCE = "function hot() {\n  return 1 // grüße\n}\n"
WIDE_SOURCE = "let arrow = '→' // 𝒳\n"


class Built:
    """A trace under construction: rows by name."""

    def __init__(self) -> None:
        self.trace = TraceBuilder()
        self.trace.clock = Clock("monotonic", 5)
        self.trace.events = [Event("cpu-clock", "ns", 1_000_000)]
        self.threads: dict[int, ThreadData] = {}
        self.shown: dict[int, str] = {}

    def text(self, value: str) -> int:
        return self.trace.strings.intern(value)

    def source(self, path: str, content: str | None = None) -> int:
        texts = self.trace.texts
        return self.trace.sources.intern(
            path=self.text(path), text=texts.intern(content) if content is not None else -1
        )

    def func(self, name: str, source: int = -1, line: int = 0) -> int:
        return self.trace.funcs.intern(name=self.text(name), source=source, line=line)

    def lib(self, name: str, code_id: str = "") -> int:
        return self.trace.libs.intern(name=self.text(name), code_id=self.text(code_id) if code_id else -1)

    def category(self, name: str) -> int:
        return self.trace.categories.intern(name=self.text(name))

    def tier(self, name: str, family: str) -> int:
        return self.trace.tiers.intern(name=self.text(name), family=self.text(family))

    def code(
        self, func: int, lib: int, tier: int, at: int, size: int, address: int | None, lies: tuple[int, int] = (0, -1)
    ) -> int:
        """at: in the dump; lies: from when to when it is at the address, after START."""
        trace = self.trace
        symbol = trace.symbols.intern(lib=lib, name=trace.funcs["name"][func].item(), address=at, size=size)
        code = trace.code.extend(func=[func], symbol=[symbol], tier=[tier], pid=[NODE], tid=[NODE], size=[size],
                                 loaded_at=[START])  # fmt: skip
        if address is not None:
            start, end = START + lies[0], START + lies[1] if lies[1] >= 0 else -1
            place = {"address": np.array([address], np.uint64), "start_ts": [start], "end_ts": [end]}
            trace.code_mappings.extend(code=[code], **place)
        return code

    def jitted(self, code: int, offset: int, *lines: tuple[int, int], category: int = -1) -> list[int]:
        """The frames at an offset: (function, line) from the outermost on."""
        trace = self.trace
        symbol = int(trace.code["symbol"][code])
        return [
            trace.frames.intern(
                func=func, category=category, tier=int(trace.code["tier"][code]), line=line, code=code, symbol=symbol,
                lib=int(trace.symbols["lib"][symbol]), address=int(trace.symbols["address"][symbol]) + offset,
                inline_depth=depth,
            )
            for depth, (func, line) in enumerate(lines)
        ]  # fmt: skip

    def stack(self, *frames: int) -> int:
        stack = -1
        for frame in frames:
            stack = self.trace.stacks.intern(prefix=stack, frame=frame)
        return stack

    def thread(self, process: Process, tid: int, name: str, data: ThreadData, unit: str = "") -> None:
        thread = Thread(tid, name, tid == process.pid, START, END, lambda _: data, sample_unit=unit)
        process.threads.append(thread)


def samples_of(*rows: tuple[int, int, int, int, int]) -> Table:
    """(time after START, stack, weight, cpu, cpu_ns)"""
    ts, stack, weight, cpu, cpu_ns = (list(column) for column in zip(*rows, strict=True))
    return Table(
        SAMPLES, {"ts": [START + t for t in ts], "stack": stack, "weight": weight, "cpu": cpu, "cpu_ns": cpu_ns}
    )


def scheduling_of(*rows: tuple[int, int, int]) -> Table:
    """(time after START, state, cpu)"""
    ts, state, cpu = (list(column) for column in zip(*rows, strict=True))
    return Table(SCHEDULING, {"ts": [START + t for t in ts], "state": state, "cpu": cpu})


def markers_of(marker_type: MarkerType, *rows: tuple[int, ...]) -> Table:
    """(time after START, dur, stack, flow, fields...)"""
    names = [column.name for column in marker_type.spec.columns]
    columns = {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    return Table(marker_type.spec, {**columns, "ts": [START + t for t in columns["ts"]]})


def everything() -> Trace:
    built = Built()
    trace = built.trace
    js, native, kernel = built.category("JavaScript"), built.category("Native"), built.category("Kernel")
    sparkplug, turbofan = built.tier("Sparkplug", "Sparkplug"), built.tier("Turbofan (OSR)", "Turbofan")
    ignition = built.tier("Ignition", "Interpreter")
    app_js, arrows = built.source("/src/app.js", SOURCE), built.source("/src/päth→.js", WIDE_SOURCE)
    built.source("/src/not-embedded.js")
    hot, inlined, deepest = built.func("hot", app_js, 1), built.func("inlined", app_js, 20), built.func("deepest")
    slow, main_func = built.func("slow", arrows, 7), built.func("main")
    dump, libc, kernel_lib = built.lib("jit-100.dump"), built.lib("libc.so.6", BUILD_ID), built.lib("[kernel.kallsyms]")
    baseline = built.code(hot, dump, sparkplug, 0x100, 0x100, REUSED, (0, 30))
    optimised = built.code(hot, dump, turbofan, 0x300, 0x80, REUSED, (30, -1))
    bytecode = built.code(slow, dump, ignition, 0x500, 0x40, None)

    def native_frame(name: str, lib: int, address: int, category: int, depth: int = 0, **more: int) -> int:
        return trace.frames.intern(
            func=built.func(name), category=category, lib=lib, address=address, inline_depth=depth, **more
        )

    start = native_frame("_start", libc, 0x1000, native)
    outer = native_frame("outer", libc, 0x2000, native, source=app_js, line=3)
    inner = native_frame("inner", libc, 0x2000, native, 1, source=arrows, line=4)
    # Another producer calls the same address by another name.
    alias = native_frame("alias", libc, 0x1000, native)
    syscall = native_frame("do_syscall_64", kernel_lib, 0x10, kernel)
    unknown = trace.frames.intern(func=built.func("0x1234"))
    without_address = trace.frames.intern(func=main_func, lib=libc, line=9, source=app_js)
    first = built.jitted(baseline, 0x20, (hot, 2), category=js)
    third = built.jitted(optimised, 0x20, (hot, 10), (inlined, 21), (deepest, 0), category=js)
    other_line = built.jitted(optimised, 0x20, (hot, 11), (inlined, 21), category=js)
    slowly = built.jitted(bytecode, 4, (slow, 8), category=js)

    stacks = [
        built.stack(start, *first),
        built.stack(start, *third),
        built.stack(start, *third, syscall),
        built.stack(alias, outer, inner, *slowly),
        built.stack(unknown, without_address, *other_line),
        built.stack(start, *third[:2]),
        -1,
    ]
    code_sizes = [built.stack(*first), built.stack(*third)]

    node, app = Process(NODE, "node", START, END), Process(APP, "app", START, END)
    trace.processes += [node, app]
    main = ThreadData(
        samples=samples_of(*((10 * i, stack, 1000 + i, i % 3 - 1, i - 1) for i, stack in enumerate(stacks * 3))),
        scheduling=scheduling_of(
            (0, RUNNING, 0), (100, PREEMPTED, 0), (200, RUNNING, 0), (300, WAITING, -1), (400, RUNNING, 1),
            (500, RUNNING, 0), (600, WAITING, 0),
        ),
        markers={
            COMPILED: markers_of(
                COMPILED, (5, 100, stacks[1], 7, 64), (50, 100, stacks[0], 0, 65), (60, 10, -1, 0, 66),
                (70, 80, -1, 8, 67), (200, 0, stacks[2], 9, 68),
            ),
        },
    )  # fmt: skip
    worker = ThreadData(
        samples=samples_of((3, stacks[3], 500, 1, -1), (95, stacks[1], 501, 1, -1), (95, stacks[2], 502, 0, -1)),
        scheduling=scheduling_of((100, RUNNING, 0), (200, WAITING, 0), (300, RUNNING, 0), (450, PREEMPTED, 0)),
        markers={LOADED: markers_of(LOADED, (110, 0, stacks[0], 7), (120, 0, -1, 8), (130, 0, -1, 7))},
    )
    elsewhere = ThreadData(
        samples=samples_of((40, stacks[0], 100, -1, -1), (41, stacks[4], 100, 2, 90)),
        scheduling=scheduling_of((0, RUNNING, -1), (10, WAITING, -1), (20, PREEMPTED, -1)),
    )
    sizes = ThreadData(samples=samples_of((0, code_sizes[0], 0x100, -1, -1), (0, code_sizes[1], 0x80, -1, -1)))
    built.thread(node, NODE, "main", main)
    built.thread(node, NODE + 1, "worker", worker)
    built.thread(node, NODE + 2, "Code size", sizes, "bytes")
    built.thread(app, APP, "main", elsewhere)
    values = Table(COUNTER_VALUES, {"ts": [START, START + 5], "value": [0.0, 4096.0]})
    node.counters.append(CounterTrack("JIT code", "bytes", "size of all code", values))
    node.counters.append(CounterTrack("objects", "things", "", values))
    assert check(trace) == []
    return trace


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, perfetto.Trace, Path]:
    trace = everything()
    path = saved(trace, tmp_path_factory.mktemp("perfetto") / "out.pftrace")
    return trace, perfetto.read(path), path


Converted = tuple[Trace, perfetto.Trace, Path]
Row = tuple[int, int, int, tuple[str, ...], int]


def names_of(trace: Trace, stack: int) -> tuple[str, ...]:
    """The innermost first."""
    names = []
    while stack >= 0:
        names.append(trace.func_name(int(trace.frames["func"][trace.stacks["frame"][stack]])))
        stack = int(trace.stacks["prefix"][stack])
    return tuple(names)


def samples_of_model(trace: Trace, unit: str) -> list[Row]:
    """(pid, tid, ts, names, weight)"""
    return sorted(
        (process.pid, 0 if unit else thread.tid, ts, names_of(trace, stack), weight)
        for process, thread in trace.threads
        if thread.sample_unit == unit
        for table in [thread.load(trace).samples]
        for ts, stack, weight in zip(*(table[name].tolist() for name in ("ts", "stack", "weight")), strict=True)
    )


def samples_read(read: perfetto.Trace, source: str) -> list[Row]:
    return sorted(
        (s.pid or 0, s.tid or 0, s.ts, tuple(map(str, s.names)), s.weight or 0)
        for s in read.samples
        if s.source == source
    )


# ---------------------------------------------------------------- the file


def test_no_reader_finds_an_error(converted: Converted) -> None:
    trace, read, path = converted
    assert read.errors == []
    assert {issue.kind for issue in trace.report} <= {"sources_hidden", "columns_dropped"}  # one has no stack
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="no package perfetto")
    parsed = protos.Trace.FromString(path.read_bytes())
    assert [field for packet in parsed.packet for field in unknown_fields(packet)] == []
    assert max(packet.ByteSize() for packet in parsed.packet) < 1 << 20


def test_the_same_trace_gives_the_same_bytes(converted: Converted, tmp_path: Path) -> None:
    assert saved(everything(), tmp_path / "again.pftrace").read_bytes() == converted[2].read_bytes()


# ---------------------------------------------------------------- samples


def test_samples_read_again_are_the_same(converted: Converted) -> None:
    trace, read, _ = converted
    assert samples_read(read, "cpu-clock") == samples_of_model(trace, "")
    assert samples_read(read, "total_code_size") == samples_of_model(trace, "bytes")
    assert len({s.sequence for s in read.samples}) == 2


def test_what_samples_count(converted: Converted) -> None:
    _, read, _ = converted
    units = {name: unit for s in read.samples for name, (unit, _) in s.counters.items()}
    assert units == {"cpu-clock, ns": 1, "total code size, bytes": 4, "CPU time, ns": 1}
    main = [s for s in read.samples if s.tid == NODE]
    assert [s.counters.get("CPU time, ns") for s in main] == [None, *((1, i) for i in range(20))]


def test_processor_and_mode(converted: Converted) -> None:
    _, read, _ = converted
    worker = [(s.cpu, s.mode) for s in read.samples if s.tid == NODE + 1]
    assert worker == [(1, 1), (1, 1), (0, 2)]
    assert {(s.cpu, s.mode) for s in read.samples if s.source == "total_code_size"} == {(None, None)}
    main = [s.cpu for s in read.samples if s.tid == NODE]
    assert main == [None if i % 3 == 0 else i % 3 - 1 for i in range(21)]
    # Nothing says in which mode what had no stack was.
    assert all((s.mode is None) == (s.callstack is None) for s in read.samples if s.tid == NODE)


def frames_of(read: perfetto.Trace) -> dict[str, set[tuple[str, int, int, int]]]:
    """Function → (mapping, rel_pc, kind, line) of the outermost at each address."""
    found: dict[str, set[tuple[str, int, int, int]]] = defaultdict(set)
    for sample in read.samples:
        for frame in sample.callstack or ():
            mapping = frame.mapping[0] if frame.mapping else ""
            outermost = frame.lines[-1]
            found[str(outermost.function)].add((mapping, frame.rel_pc, frame.kind, outermost.line or 0))
    return found


def test_each_code_object_is_a_mapping(converted: Converted) -> None:
    """So code at an address that is used again stays apart."""
    _, read, _ = converted
    assert frames_of(read)["hot"] == {
        ("/JIT [Sparkplug] jit-100.dump-0", 0x20, 4, 2),
        ("/JIT [Turbofan (OSR)] jit-100.dump-1", 0x20, 4, 10),
        # Where two things are at one address, symbols would be mistaken.
        ("/JIT [Turbofan (OSR)] jit-100.dump-1 #2", 0x20, 4, 10),
        ("/JIT [Turbofan (OSR)] jit-100.dump-1 #3", 0x20, 4, 11),
    }
    assert frames_of(read)["slow"] == {("/JIT [Ignition] jit-100.dump-2", 4, 3, 8)}
    mappings = {f.mapping for s in read.samples for f in s.callstack or () if f.mapping}
    ranges = {name: (start, end) for name, _, start, end in mappings if "dump" in name}
    assert ranges["/JIT [Sparkplug] jit-100.dump-0"] == (REUSED, REUSED + 0x100)
    assert ranges["/JIT [Turbofan (OSR)] jit-100.dump-1"] == (REUSED, REUSED + 0x80)
    assert ranges["/JIT [Ignition] jit-100.dump-2"] == (0, 0)
    assert {build_id.hex() for name, build_id, _, _ in mappings if "libc" in name} == {BUILD_ID}


def test_native_and_kernel_frames(converted: Converted) -> None:
    _, read, _ = converted
    found = frames_of(read)
    assert found["_start"] == {("/libc.so.6", 0x1000, 1, 0)}
    assert found["alias"] == {("/libc.so.6 #2", 0x1000, 1, 0)}
    assert found["do_syscall_64"] == {("/[kernel.kallsyms]", 0x10, 2, 0)}
    assert found["0x1234"] == {("", 0, 0, 0)}
    assert found["main"] == {("", 0, 1, 9)}


def test_lines_of_inlined_functions(converted: Converted) -> None:
    _, read, _ = converted
    lines = {
        tuple((line.function, line.file, line.line) for line in frame.lines)
        for sample in read.samples
        for frame in sample.callstack or ()
        if len(frame.lines) > 1
    }
    assert lines == {
        (("deepest", None, None), ("inlined", "/src/app.js", 21), ("hot", "/src/app.js", 10)),
        (("inlined", "/src/app.js", 21), ("hot", "/src/app.js", 10)),
        (("inlined", "/src/app.js", 21), ("hot", "/src/app.js", 11)),
        (("inner", "/src/päth→.js", 4), ("outer", "/src/app.js", 3)),
    }


def test_many_stacks_in_many_pieces(tmp_path: Path) -> None:
    """Numbers of one, two and three bytes; callstacks that together are longer than a piece."""
    built = Built()
    process = Process(1, "app", START, END)
    built.trace.processes.append(process)
    lib = built.lib("lib")
    frames = [built.trace.frames.intern(func=built.func(f"f{i}"), lib=lib, address=i) for i in range(20_000)]
    stacks = [built.stack(frame) for frame in frames]
    deep = [built.stack(*frames[-500 - nth :][:500]) for nth in range(200)]
    rows = [(i, stack, 1, -1, -1) for i, stack in enumerate([*stacks, *deep])]
    built.thread(process, 1, "main", ThreadData(samples=samples_of(*rows)))
    read = perfetto.read(saved(built.trace, tmp_path / "out.pftrace"))
    assert read.errors == []
    assert samples_read(read, "cpu-clock") == samples_of_model(built.trace, "")


def sampled_deep(depth: int) -> Trace:
    """A sample of a stack of each depth."""
    built = Built()
    process = Process(NODE, "node", START, END)
    built.trace.processes.append(process)
    frames = [built.trace.frames.intern(func=built.func(f"f{nth}")) for nth in range(depth)]
    stacks, stack = [], -1
    for frame in frames:
        stack = built.trace.stacks.intern(prefix=stack, frame=frame)
        stacks.append(stack)
    rows = [(at, stack, 1, -1, -1) for at, stack in enumerate(stacks)]
    built.thread(process, NODE, "main", ThreadData(samples=samples_of(*rows)))
    return built.trace


def test_deep_stacks_lose_the_frames_in_their_middle(tmp_path: Path) -> None:
    """A callstack lists all of its frames: without a limit the file would grow with the square of the depth."""
    trace = sampled_deep(3000)
    names = [f"f{depth}" for depth in range(3000)]
    path = saved(trace, tmp_path / "out.pftrace")
    read = perfetto.read(path)
    assert read.errors == []
    for depth, sample in enumerate(sorted(read.samples, key=lambda s: s.ts), start=1):
        cut = [*names[:384], "[frames left out]", *names[depth - 127 : depth]]
        assert perfetto.names_of(sample.callstack)[::-1] == (names[:depth] if depth <= 512 else cut)
    assert report_of(trace) == {"callstack_cut": 3000 - 512}
    assert path.stat().st_size < 3000 * 512 * 4


def test_frames_and_stacks_that_come_while_threads_are_loaded(tmp_path: Path) -> None:
    built = Built()
    process = Process(1, "app", START, END)
    built.trace.processes.append(process)
    lib = built.lib("lib")

    def load(trace: TraceBuilder, number: int) -> ThreadData:
        built.trace = trace
        outer = built.trace.frames.intern(func=built.func("shared"), lib=lib, address=1)
        inner = built.trace.frames.intern(func=built.func(f"own{number}"), lib=lib, address=1, inline_depth=1)
        return ThreadData(samples=samples_of((1, built.stack(outer, inner), 1, -1, -1)))

    for number in (1, 2):
        process.threads.append(Thread(number, "", number == 1, START, END, lambda trace, n=number: load(trace, n)))
    read = perfetto.read(saved(built.trace, tmp_path / "out.pftrace"))
    assert read.errors == []
    assert sorted(tuple(map(str, s.names)) for s in read.samples) == [("own1", "shared"), ("own2", "shared")]


# ---------------------------------------------------------------- scheduling, markers, counters, sources


def test_threads_take_turns_on_a_processor(converted: Converted) -> None:
    _, read, _ = converted
    assert [(run.tid, run.cpu, run.ts - START, run.dur, run.end_state) for run in read.runs] == [
        (NODE, 0, 0, 100, 2), (NODE + 1, 0, 100, 100, 4), (NODE, 0, 200, 100, 4), (NODE + 1, 0, 300, 150, 2),
        (NODE, 1, 400, 99, 2), (NODE, 0, 500, 100, 4),
    ]  # fmt: skip


def test_without_processors_scheduling_is_a_state(converted: Converted) -> None:
    _, read, _ = converted
    states = [(s.tid, s.ts - START, s.value) for s in read.states if read.tracks[s.track].name == "Scheduling"]
    assert states == [(APP, 0, "Running"), (APP, 10, "Waiting"), (APP, 20, "Preempted"), (APP, END - START, "")]


def test_a_thread_that_has_only_states_has_an_event(tmp_path: Path, trace_processor: Callable[[Path], Any]) -> None:
    """The viewer lists threads with slices, samples or scheduling, and fails at the states of another."""
    built = Built()
    process = Process(1, "app", START, END)
    built.trace.processes.append(process)
    data = ThreadData(scheduling=scheduling_of((0, RUNNING, -1), (10, WAITING, -1)))
    process.threads.append(Thread(2, "idler", False, START, END, lambda _: data))
    path = saved(built.trace, tmp_path / "out.pftrace")
    read = perfetto.read(path)
    assert [(i.name, i.ts, i.tid) for i in read.instants] == [("first record", START, 2)]
    with trace_processor(path) as processor:
        listed = "SELECT utid FROM _thread_available_info_summary"
        with_states = "SELECT extract_arg(dimension_arg_set_id, 'utid') FROM track WHERE type GLOB '*state*'"
        processor.query("INCLUDE PERFETTO MODULE viz.summary.threads")
        (row,) = processor.query(f"SELECT ({with_states}) IN ({listed}) AS n")
        assert row.n == 1


def test_a_thread_number_that_is_used_again(tmp_path: Path) -> None:
    """The first thread is taken off its processor at its end, or the second could not start."""
    built = Built()
    process = Process(1, "app", START, END)
    built.trace.processes.append(process)
    for start, end in ((0, 50), (60, 100)):
        data = ThreadData(scheduling=scheduling_of((start, RUNNING, 0)))
        process.threads.append(Thread(1, "again", True, START + start, START + end, lambda _, data=data: data))
    read = perfetto.read(saved(built.trace, tmp_path / "out.pftrace"))
    assert read.errors == []
    assert [(run.ts - START, run.dur) for run in read.runs] == [(0, 50), (60, 40)]


def test_of_threads_of_one_number_scheduling_is_a_state(tmp_path: Path) -> None:
    """As in two containers: TraceProcessor would not know which of them ran."""
    built = Built()
    for pid in (1, 2):
        process = Process(pid, "app", START, END)
        built.trace.processes.append(process)
        built.thread(process, 3, "worker", ThreadData(scheduling=scheduling_of((pid, RUNNING, 0))))
    read = perfetto.read(saved(built.trace, tmp_path / "out.pftrace"))
    assert read.runs == []
    assert [(s.pid, s.ts - START, s.value) for s in read.states if s.value] == [(1, 1, "Running"), (2, 2, "Running")]


def test_rows_that_do_two_things_at_one_time(tmp_path: Path) -> None:
    """The last one holds; who runs elsewhere from one nanosecond to the next stays where it was."""
    built = Built()
    process = Process(1, "app", START, END)
    built.trace.processes.append(process)
    rows = scheduling_of(
        (5, WAITING, 0), (5, RUNNING, 0), (9, WAITING, 0), (9, RUNNING, 3), (10, RUNNING, 4), (12, RUNNING, 5),
        (20, PREEMPTED, 5), (20, WAITING, 5),
    )  # fmt: skip
    built.thread(process, 1, "main", ThreadData(scheduling=rows))
    read = perfetto.read(saved(built.trace, tmp_path / "out.pftrace"))
    assert read.errors == []
    assert [(run.cpu, run.ts - START, run.dur, run.end_state) for run in read.runs] == [
        (0, 5, 3, 2), (3, 9, 2, 2), (5, 12, 8, 4),
    ]  # fmt: skip


def test_markers_keep_stacks_and_flows(converted: Converted) -> None:
    trace, read, _ = converted
    intervals = {(s.ts - START, s.dur, s.args["size_bytes"], s.flows, tuple(perfetto.names_of(s.callstack)))
                 for s in read.slices}  # fmt: skip
    compiled = trace.threads[0][1].load(trace).markers[COMPILED]
    rows = zip(*(compiled[name].tolist() for name in ("ts", "dur", "size", "flow", "stack")), strict=True)
    assert intervals == {
        (ts - START, dur, size, (flow,) if flow else (), names_of(trace, stack)) for ts, dur, size, flow, stack in rows
    }
    instants = [(i.ts - START, i.flows, len(i.callstack or ())) for i in read.instants]
    assert instants == [(110, (7,), 2), (120, (8,), 0), (130, (7,), 0)]


def test_counters_have_units(converted: Converted) -> None:
    _, read, _ = converted
    units = {counter.name: (counter.unit, counter.unit_name) for counter in read.counters.values()}
    assert units == {"JIT code": (3, None), "objects": (0, "things")}


def test_sources_are_embedded(converted: Converted) -> None:
    _, read, _ = converted
    assert [(s.pid, s.name, s.source) for s in read.scripts] == [
        (NODE, "/src/app.js", SOURCE),
        (NODE, "/src/päth→.js", WIDE_SOURCE),
    ]


def test_samples_without_a_stack_are_told_of(tmp_path: Path) -> None:
    """TraceProcessor leaves them out."""
    built = Built()
    process = Process(1, "app", START, END)
    built.trace.processes.append(process)
    stack = built.stack(built.trace.frames.intern(func=built.func("f")))
    for number, stacks in ((1, [stack, -1, -1]), (2, [stack])):
        rows = [(at, one, 1, -1, -1) for at, one in enumerate(stacks)]
        built.thread(process, number, "", ThreadData(samples=samples_of(*rows)))
    for _ in range(2):
        saved(built.trace, tmp_path / "out.pftrace")
        assert report_of(built.trace) == {"columns_dropped": 2}


def test_columns_are_lost_and_said_to_be(tmp_path: Path) -> None:
    built = Built()
    built.trace.frames.intern(func=built.func("f"), line=1, column=2)
    saved(built.trace, tmp_path / "out.pftrace")
    assert [(issue.kind, issue.count) for issue in built.trace.report] == [("columns_dropped", 1)]


# ---------------------------------------------------------------- trace_processor

FRAMES = """
INCLUDE PERFETTO MODULE callstacks.stack_profile;
SELECT sample.ts AS ts, coalesce(thread.tid, 0) AS tid, sample.callsite_id AS callsite FROM stack_sample AS sample
JOIN stack_sample_task_context AS task ON task.id = sample.task_context_id LEFT JOIN thread USING (utid)
WHERE sample.source = '{source}'
"""
CALLSITES = """
SELECT callsite.id AS id, callsite.parent_id AS parent, frame.name AS name, frame.type AS type, mapping.name AS mapping,
  frame.symbol_set_id AS symbols, mapping.build_id AS build_id
FROM stack_profile_callsite AS callsite JOIN stack_profile_frame AS frame ON frame.id = callsite.frame_id
JOIN stack_profile_mapping AS mapping ON mapping.id = frame.mapping
"""


def test_trace_processor_expands_the_same_samples(converted: Converted, trace_processor: Callable[[Path], Any]) -> None:
    trace, _, path = converted
    with trace_processor(path) as processor:
        callsites = {row.id: row for row in processor.query(CALLSITES)}
        symbols: dict[int, list[str]] = defaultdict(list)
        for row in processor.query("SELECT symbol_set_id AS id, name FROM stack_profile_symbol ORDER BY id"):
            symbols[row.id].append(row.name)

        def names(callsite: int | None) -> tuple[str, ...]:
            found: list[str] = []
            while callsite is not None:
                row = callsites[callsite]
                found += symbols[row.symbols] if row.symbols is not None else [row.name]
                callsite = row.parent
            return tuple(found)

        for source, unit in (("cpu-clock", ""), ("total_code_size", "bytes")):
            rows = list(processor.query(FRAMES.format(source=source)))
            # The view leaves out samples without a stack.
            wanted = Counter((tid, ts, names) for _, tid, ts, names, _ in samples_of_model(trace, unit) if names)
            assert Counter((row.tid, row.ts, names(row.callsite)) for row in rows) == wanted
        assert {row.mapping for row in callsites.values()} >= {"/libc.so.6", "/JIT [Sparkplug] jit-100.dump-0"}
        assert {row.build_id for row in callsites.values() if row.mapping == "/libc.so.6"} == {BUILD_ID}
        sessions = list(processor.query("SELECT source, timebase_unit AS unit FROM stack_sample_session"))
        assert {(row.source, row.unit) for row in sessions} == {("cpu-clock", "ns"), ("total_code_size", "bytes")}
        assert len(sessions) == 2
        weights = "FROM stack_sample_counter AS counter JOIN stack_sample_counter_track AS track"
        (row,) = processor.query(
            f"SELECT sum(value) AS total {weights} ON track.id = counter.track_id WHERE is_timebase"
        )
        wanted_rows = samples_of_model(trace, "") + samples_of_model(trace, "bytes")
        assert row.total == sum(weight for *_, names, weight in wanted_rows if names)
        assert [(row.name, row.value) for row in processor.query(STATS)] == []


def test_trace_processor_knows_who_ran(converted: Converted, trace_processor: Callable[[Path], Any]) -> None:
    _, read, path = converted
    states = {2: "R", 4: "S"}
    with trace_processor(path) as processor:
        query = "SELECT ts, dur, ucpu, tid, end_state FROM sched_slice JOIN thread USING (utid) ORDER BY ts"
        found = [(row.tid, row.ucpu, row.ts, row.dur, row.end_state) for row in processor.query(query)]
        assert found == [(run.tid, run.cpu, run.ts, run.dur, states[run.end_state or 0]) for run in read.runs]
        query = "SELECT state, count(*) AS n FROM thread_state JOIN thread USING (utid) WHERE dur > 0 GROUP BY state"
        assert {row.state for row in processor.query(query)} == {"Running", "R", "S"}
        names = {(row.tid, row.pid, row.name) for row in processor.query(
            "SELECT tid, pid, thread.name AS name FROM thread JOIN process USING (upid) WHERE tid != 0")}  # fmt: skip
        assert names == {(t.tid, t.pid, t.name) for t in read.threads.values()}
        assert [(row.name, row.value) for row in processor.query(STATS)] == []


def test_trace_processor_links_markers_and_holds_sources(
    converted: Converted, trace_processor: Callable[[Path], Any]
) -> None:
    _, read, path = converted
    with trace_processor(path) as processor:
        slices = [(row.ts, row.dur, row.name) for row in processor.query("SELECT ts, dur, name FROM slice")]
        wanted = [(s.ts, s.dur, s.name) for s in read.slices] + [(i.ts, 0, i.name) for i in read.instants]
        assert Counter(slices) == Counter(wanted)
        flows = processor.query(
            "SELECT o.ts AS begins, i.ts AS ends FROM flow JOIN slice AS o ON o.id = slice_out "
            "JOIN slice AS i ON i.id = slice_in"
        )
        assert {(row.begins - START, row.ends - START) for row in flows} == {(5, 110), (110, 130), (70, 120)}
        (row,) = processor.query("SELECT count(*) AS n FROM __intrinsic_track_event_callstacks")
        assert row.n == sum(bool(event.callstack) for event in (*read.slices, *read.instants))
        scripts = processor.query("INCLUDE PERFETTO MODULE v8.jit; SELECT name, source FROM v8_js_script")
        assert [(row.name, row.source) for row in scripts] == [(s.name, s.source) for s in read.scripts]
        counters = processor.query("SELECT name, unit FROM process_counter_track")
        assert ("JIT code", "bytes") in {(row.name, row.unit) for row in counters}
        assert [(row.name, row.value) for row in processor.query(STATS)] == []
