"""What the Firefox Profiler's formats make of samples, JIT code, markers and counters.

The recording is made by hand: a Node process with a main thread, a busy worker, a thread that hardly runs, one that
only compiles, and one that counts the bytes of code.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clients import firefox
from outputs import saved
from support import load_checked
from test_firefox import SHARED_TABLES, in_range, ns, paths_of
from test_gecko import rows

from traceferry.model import (
    CALLS,
    COUNTER_VALUES,
    LEAVE,
    PREEMPTED,
    RUNNING,
    SAMPLES,
    SCHEDULING,
    WAITING,
    Clock,
    Counter,
    Event,
    Input,
    MarkerField,
    MarkerType,
    Process,
    Table,
    Thread,
    ThreadData,
    Trace,
    TraceBuilder,
)
from traceferry.model.laws import check

START, MS, END = 10**12, 10**6, 40
HOT_JS = "// hot\nfunction hot(n) {\n  return inner(n) +\n    inner(n);\n}\nfunction inner(x) {\n  return x;\n}\n"
LOADED = MarkerType(
    "JIT code",
    "Code was loaded",
    (MarkerField("function", "Function", "text"), MarkerField("size", "Size", "bytes"),
     MarkerField("address", "Address", "hex"), MarkerField("took", "Took", "duration")),
    label="{function}",
    category="JIT",
)  # fmt: skip
TRACEPOINT = MarkerType(
    "sched:sched_wakeup",
    "A tracepoint whose fields are called as the viewer calls its own",
    (MarkerField("type", "type", "integer"), MarkerField("cause", "cause", "text"),
     MarkerField("type_", "type_", "text")),
    label="{type} {cause}",
    category="Scheduling",
)  # fmt: skip
SAME_NAME = MarkerType("JIT code", "Another producer's", (MarkerField("text", "Text", "text"),))

# Stacks of the main thread, one for each ms.
MAIN_STACKS = [
    "native",
    "interpreted",
    "optimised",
    "inlined",
    "inlined",
    "inlined twice",
    "osr",
    "elsewhere",
    "kernel",
]


class Recording:
    """names: of frames and stacks → their indices."""

    def __init__(self) -> None:
        self.trace = trace = TraceBuilder()
        self.names: dict[str, int] = {}
        trace.join_clock(Clock("monotonic"))
        trace.events = [Event("cpu-clock", "ns", MS)]
        trace.inputs.append(Input("perf.data", "perf", "6.1", "Linux perf"))
        self._tables()
        self._frames()
        self._stacks()
        process = Process(100, "node hot.js", START, START + END * MS)
        self.process = process
        process.threads = [
            self.thread(100, "code size", self._code_size(), sample_unit="bytes"),
            self.thread(100, "node", self._main(), is_main=True),
            self.thread(101, "worker", self._worker(), end=START + 30 * MS),
            self.thread(102, "hardly there", ThreadData(samples=self.samples([3], ["native"]))),
            self.thread(103, "compiler", ThreadData(markers={LOADED: self._loads()})),
        ]
        values = Table(COUNTER_VALUES, {"ts": START + np.array([5, 10, 20]) * MS, "value": [1000.0, 1500.0, 200.0]})
        process.counters = [Counter("JIT code", "bytes", "Live code", values, "lightblue")]
        trace.processes.append(process)

    def intern(self, table: str, **values: Any) -> int:
        """Texts become indices of strings."""
        strings = self.trace.strings
        row = {k: strings.intern(v) if isinstance(v, str) else v for k, v in values.items()}
        index: int = getattr(self.trace, table).intern(**row)
        return index

    def _tables(self) -> None:
        add, texts = self.intern, self.trace.texts
        self.hot_js = add("sources", path="/app/hot.js", text=texts.intern(HOT_JS))
        self.empty_js = add("sources", path="/app/empty.js", text=texts.intern(""))
        self.helper_js = add("sources", path="/app/helper.js", text=texts.intern("one\ntwo\nthree"))
        self.main_cc = add("sources", path="/src/main.cc")
        self.node = add("libs", name="node", debug_id="0" * 33, code_id="00", arch="x86_64")
        self.jit = add("libs", name="jit-100.dump", debug_id="4" * 33, arch="x86_64")
        self.kernel = add("libs", name="[kernel.kallsyms]", arch="x86_64")
        self.category = {
            name: add("categories", name=name, color=color)
            for name, color in (("JavaScript", "yellow"), ("Native", "blue"), ("Kernel", "red"),
                                ("Interpreter", "magenta"), ("Idle", "lightblue"))
        }  # fmt: skip
        self.tier = {
            name: add("tiers", name=name, family=family, color=color)
            for name, family, color in (
                ("Interpreter", "Interpreter", "magenta"), ("Turbofan", "Turbofan", "green"),
                ("Turbofan (OSR)", "Turbofan", "green"), ("Kernel", "Kernel", "brown"), ("Idle", "Idle", "purple"),
            )
        }  # fmt: skip
        self.func = {
            name: add("funcs", name=name, source=source, line=line, column=column, is_js=is_js)
            for name, source, line, column, is_js in (
                ("main", self.main_cc, 10, 0, False), ("hot", self.hot_js, 2, 13, True),
                ("inner", self.hot_js, 6, 15, True), ("helper", self.helper_js, 1, 1, True),
                ("empty", self.empty_js, 1, 1, True), ("do_syscall_64", -1, 0, 0, False),
            )
        }  # fmt: skip
        # Two code objects, one after the other at one place in memory; in the dump they lie apart.
        self.symbol = {
            name: add("symbols", lib=lib, name=name, address=address, size=size)
            for name, lib, address, size in (
                ("main", self.node, 0x1000, 0), ("JS:*hot", self.jit, 64, 32), ("JS:o*hot", self.jit, 96, 48),
                ("JS:*never", self.jit, 200, 8), ("do_syscall_64", self.kernel, 1 << 40, 64),
            )
        }  # fmt: skip
        for nth, (name, tier) in enumerate((("JS:*hot", "Turbofan"), ("JS:o*hot", "Turbofan (OSR)"))):
            code = add("code", func=self.func["hot"], symbol=self.symbol[name], tier=self.tier[tier], pid=100, size=32)
            starts = START + 20 * nth * MS
            ends = starts + 20 * MS
            self.trace.code_mappings.intern(code=code, address=0x7F00_0000_1000, start_ts=starts, end_ts=ends)

    def _frames(self) -> None:
        js, native = self.category["JavaScript"], self.category["Native"]
        turbofan = {"lib": self.jit, "symbol": self.symbol["JS:*hot"], "tier": self.tier["Turbofan"], "category": js}
        frames: dict[str, dict[str, Any]] = {
            "main": {"func": "main", "line": 12, "category": native, "lib": self.node, "address": 0x1010,
                     "symbol": self.symbol["main"]},
            "hot interpreted": {"func": "hot", "line": 3, "column": 5, "category": js,
                                "tier": self.tier["Interpreter"]},
            "hot": {"func": "hot", "line": 4, "address": 72, **turbofan},
            "hot, inner": {"func": "hot", "line": 3, "address": 80, **turbofan},
            "inner in hot": {"func": "inner", "line": 7, "address": 80, "inline_depth": 1, **turbofan},
            "helper in inner": {"func": "helper", "line": 2, "address": 80, "inline_depth": 2, **turbofan},
            "hot osr": {"func": "hot", "line": 3, "address": 100, **turbofan, "symbol": self.symbol["JS:o*hot"],
                        "tier": self.tier["Turbofan (OSR)"]},
            "hot elsewhere": {"func": "hot", "source": self.helper_js, "line": 3, "address": 74, **turbofan},
            "syscall": {"func": "do_syscall_64", "category": self.category["Kernel"], "lib": self.kernel,
                        "address": (1 << 40) + 4, "symbol": self.symbol["do_syscall_64"]},
            "empty": {"func": "empty", "line": 1, "category": js, "tier": self.tier["Kernel"]},
            "nothing known": {"func": "main"},
            "idle loop": {"func": "do_syscall_64", "category": self.category["Idle"]},
        }  # fmt: skip
        self.frame = {
            name: self.trace.frames.intern(**{**values, "func": self.func[values["func"]]})
            for name, values in frames.items()
        }

    def _stacks(self) -> None:
        paths = {
            "native": ["main"], "interpreted": ["main", "hot interpreted"], "optimised": ["main", "hot"],
            "inlined": ["main", "hot, inner", "inner in hot"],
            "inlined twice": ["main", "hot, inner", "inner in hot", "helper in inner"], "osr": ["main", "hot osr"],
            "elsewhere": ["main", "hot elsewhere"], "kernel": ["main", "hot interpreted", "syscall"],
            "empty": ["main", "empty"], "size of hot": ["hot"], "unknown": ["nothing known"], "idle": ["idle loop"],
        }  # fmt: skip
        self.stack: dict[str, int] = {"none": -1}
        for name, path in paths.items():
            stack = -1
            for frame in path:
                stack = self.trace.stacks.intern(prefix=stack, frame=self.frame[frame])
            self.stack[name] = stack

    # ---------------------------------------------------------------- threads

    def thread(self, tid: int, name: str, data: ThreadData, end: int = START + END * MS, **options: Any) -> Thread:
        options.setdefault("is_main", False)
        return Thread(tid, name, start_ts=START, end_ts=end, make=lambda _: data, **options)

    def samples(self, at_ms: list[int], stacks: list[str], **columns: Any) -> Table:
        ts = START + np.array(at_ms, np.int64) * MS
        return Table(SAMPLES, {"ts": ts, "stack": [self.stack[s] for s in stacks], **columns})

    def _code_size(self) -> ThreadData:
        return ThreadData(samples=self.samples([0, 20], ["size of hot", "osr"], weight=[32, 5 * 2**32]))

    def _main(self) -> ThreadData:
        n = len(MAIN_STACKS)
        weight, cpu_ns = np.full(n, 999), np.array([-1, *range(MS, MS + n - 3), 3_000_000_000, 0])
        ts = START + np.array([1, 2, 3, 4]) * MS
        tracepoints = {"ts": ts[:2], "type": [7, 8], "cause": ["a", ""], "type_": ["", "b"]}
        scheduling = {"ts": START + np.array([0, 9, 12, 13]) * MS, "state": [RUNNING, WAITING, PREEMPTED, RUNNING],
                      "cpu": [2, 2, -1, 3]}  # fmt: skip
        return ThreadData(
            samples=self.samples(list(range(n)), MAIN_STACKS, weight=weight, cpu_ns=cpu_ns),
            scheduling=Table(SCHEDULING, scheduling),
            markers={LOADED: self._loads(), TRACEPOINT: Table(TRACEPOINT.spec, tracepoints)},
        )

    def _loads(self) -> Table:
        columns = {
            "ts": START + np.array([1, 2, 3, 4]) * MS, "stack": [-1, self.stack["inlined"], -1, self.stack["native"]],
            "flow": [0, 77, 78, 77], "function": ["hot", "hot", 'inner "\u2028', ""], "size": [32, 48, 0, 2**40],
            "address": np.array([2**64 - 1, 0, 5, 6], np.uint64), "took": [1_500_000, 0, 1, 2],
        }  # fmt: skip
        return Table(LOADED.spec, columns)

    def _worker(self) -> ThreadData:
        stacks = ["optimised", "none", "empty", "unknown", "idle"]
        scheduling = {"ts": [START + 25 * MS], "state": [WAITING], "cpu": [1]}
        other = Table(SAME_NAME.spec, {"ts": [START], "dur": [5], "text": ["x"]})
        return ThreadData(
            samples=self.samples([2, 3, 4, 5, 6], stacks),
            scheduling=Table(SCHEDULING, scheduling),
            markers={SAME_NAME: other},
        )


@pytest.fixture
def recording() -> Recording:
    return Recording()


@pytest.fixture
def profile(recording: Recording, tmp_path: Path) -> dict[str, Any]:
    return exported(recording.trace, tmp_path)


def exported(trace: Trace, folder: Path, suffix: str = ".json") -> dict[str, Any]:
    return dict(json.loads(saved(trace, folder / f"out{suffix}").read_bytes()))


def thread_named(profile: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (thread for thread in profile["threads"] if thread["name"] == name)
    return dict(found)


def dropped(trace: Trace) -> str:
    return " ".join(i.detail for i in trace.report if i.kind in ("columns_dropped", "table_not_carried"))


# ---------------------------------------------------------------- structure


def test_the_recording_is_lawful(recording: Recording) -> None:
    assert check(recording.trace) == []


def test_tables_are_whole_and_indices_in_range(profile: dict[str, Any]) -> None:
    shared = profile["shared"]
    for table, columns in SHARED_TABLES.items():
        assert {len(shared[table][column]) for column in columns.split()} == {shared[table]["length"]}
    frames, categories = shared["frameTable"], profile["meta"]["categories"]
    for category, subcategory in zip(frames["category"], frames["subcategory"], strict=True):
        assert 0 <= subcategory < len(categories[category]["subcategories"])
    assert in_range(frames["nativeSymbol"], shared["nativeSymbols"]["length"])
    assert in_range(frames["originalLocation"], shared["sourceLocationTable"]["length"])
    assert in_range(shared["sourceLocationTable"]["source"], shared["sources"]["length"])
    for thread in profile["threads"]:
        assert in_range(thread["samples"]["stack"], shared["stackTable"]["length"])
        lengths = {len(v) for k, v in thread["samples"].items() if isinstance(v, list)}
        assert lengths == {thread["samples"]["length"]}


def test_names_that_are_missing_are_empty_texts(tmp_path: Path) -> None:
    """The format has no none for them."""
    trace = TraceBuilder()
    trace.join_clock(Clock("monotonic"))
    lib = trace.libs.intern()
    symbol = trace.symbols.intern(lib=lib, address=1)
    frame = trace.frames.intern(
        func=trace.funcs.intern(source=trace.sources.intern()), lib=lib, address=1, symbol=symbol
    )
    trace.stacks.intern(frame=frame)
    trace.tiers.intern()
    trace.categories.intern()
    shared = exported(trace, tmp_path)["shared"]
    for names in (shared["funcTable"]["name"], shared["sources"]["filename"], shared["nativeSymbols"]["name"],
                  shared["resourceTable"]["name"]):  # fmt: skip
        assert [shared["stringArray"][name] for name in names] == [""]


# ---------------------------------------------------------------- frames


def frames_by_name(recording: Recording, profile: dict[str, Any]) -> dict[str, dict[str, Any]]:
    table = {k: v for k, v in profile["shared"]["frameTable"].items() if k != "length"}
    return {name: {k: v[i] for k, v in table.items()} for name, i in recording.frame.items()}


def test_tiers_are_categories_and_their_varieties_subcategories(recording: Recording, profile: dict[str, Any]) -> None:
    categories = profile["meta"]["categories"]
    assert categories[0] == {"name": "Other", "color": "grey", "subcategories": ["Other"]}
    shown = {}
    for name, frame in frames_by_name(recording, profile).items():
        category = categories[frame["category"]]
        shown[name] = (category["name"], category["color"], category["subcategories"][frame["subcategory"]])
    assert shown == {
        "main": ("Native", "blue", "Other"),
        "hot interpreted": ("Interpreter", "magenta", "Other"),
        "hot": ("Turbofan", "green", "Other"),
        "hot, inner": ("Turbofan", "green", "Other"),
        "inner in hot": ("Turbofan", "green", "Other"),
        "helper in inner": ("Turbofan", "green", "Other"),
        "hot osr": ("Turbofan", "green", "Turbofan (OSR)"),
        "hot elsewhere": ("Turbofan", "green", "Other"),
        "syscall": ("Kernel", "red", "Other"),
        # Called as another category, but of another colour: its own.
        "empty": ("Kernel", "brown", "Other"),
        "nothing known": ("Other", "grey", "Other"),
        # The viewer takes "Idle" for the absence of work, whatever its colour.
        "idle loop": ("idle", "lightblue", "Other"),
    }
    assert [c["name"] for c in categories].count("Interpreter") == 1


def test_at_most_256_categories(tmp_path: Path) -> None:
    """Stacks keep theirs in a byte. The rest counts as "Other", and the report says so."""
    trace = TraceBuilder()
    trace.join_clock(Clock("monotonic"))
    for i in range(300):
        name = trace.strings.intern(f"tier {i}")
        tier = trace.tiers.intern(name=name, family=name, color=trace.strings.intern("blue"))
        trace.frames.intern(func=trace.funcs.intern(name=name), tier=tier)
    profile = exported(trace, tmp_path)
    assert len(profile["meta"]["categories"]) == 256
    assert profile["shared"]["frameTable"]["category"] == [*range(1, 256), *[0] * 45]
    assert [(i.kind, i.count) for i in trace.report if i.kind == "columns_dropped"] == [("columns_dropped", 45)]


def test_native_symbols_are_those_of_frames(recording: Recording, profile: dict[str, Any]) -> None:
    """An unknown size is null. What no frame refers to is left out, as is what does not fit into 31 bits."""
    shared = profile["shared"]
    symbols, strings = shared["nativeSymbols"], shared["stringArray"]
    columns = zip(*(symbols[c] for c in ("libIndex", "address", "name", "functionSize")), strict=True)
    assert [(profile["libs"][lib]["name"], address, strings[name], size) for lib, address, name, size in columns] == [
        ("node", 0x1000, "main", None), ("jit-100.dump", 64, "JS:*hot", 32), ("jit-100.dump", 96, "JS:o*hot", 48),
    ]  # fmt: skip
    of_frame = {
        name: strings[symbols["name"][frame["nativeSymbol"]]] if frame["nativeSymbol"] is not None else None
        for name, frame in frames_by_name(recording, profile).items()
    }
    assert of_frame["helper in inner"] == of_frame["hot"] == "JS:*hot"
    assert of_frame["hot osr"] == "JS:o*hot"
    assert of_frame["syscall"] is of_frame["hot interpreted"] is None


def test_inlined_frames_share_the_address(recording: Recording, profile: dict[str, Any]) -> None:
    frames = frames_by_name(recording, profile)
    chain = [frames[name] for name in ("hot, inner", "inner in hot", "helper in inner")]
    assert [frame["inlineDepth"] for frame in chain] == [0, 1, 2]
    assert {(frame["address"], frame["lib"], frame["nativeSymbol"]) for frame in chain} == {(80, recording.jit, 1)}
    assert [frame["line"] for frame in chain] == [3, 7, 2]


def test_addresses_beyond_31_bits_are_dropped_and_reported(recording: Recording, profile: dict[str, Any]) -> None:
    frame = frames_by_name(recording, profile)["syscall"]
    assert (frame["address"], frame["lib"]) == (-1, -1)
    assert "addresses beyond 2 GB" in dropped(recording.trace)


def test_lines_of_other_files_are_original_locations(recording: Recording, profile: dict[str, Any]) -> None:
    """The frame's own line would be taken for one of the function's file."""
    frame = frames_by_name(recording, profile)["hot elsewhere"]
    assert (frame["line"], frame["column"]) == (None, None)
    locations = profile["shared"]["sourceLocationTable"]
    at = frame["originalLocation"]
    assert [locations[c][at] for c in ("source", "line", "column")] == [recording.helper_js, 3, None]
    others = [f for name, f in frames_by_name(recording, profile).items() if name != "hot elsewhere"]
    assert all(f["originalLocation"] is None for f in others)


def test_functions(recording: Recording, profile: dict[str, Any]) -> None:
    table = profile["shared"]["funcTable"]
    assert table["isJS"] == [False, True, True, True, True, False]
    assert not any(table["relevantForJS"])
    hot = recording.func["hot"]
    assert [table[c][hot] for c in ("source", "lineNumber", "columnNumber")] == [recording.hot_js, 2, 13]
    resources = profile["shared"]["resourceTable"]["name"]
    names = {i: profile["shared"]["stringArray"][n] for i, n in enumerate(resources)}
    assert [names.get(r) for r in table["resource"]] == [
        "node", "jit-100.dump", "jit-100.dump", "jit-100.dump", None, "[kernel.kallsyms]",
    ]  # fmt: skip


def test_sources_have_their_text(profile: dict[str, Any]) -> None:
    """An empty text is a text."""
    shared = profile["shared"]
    assert shared["sources"]["content"] == [HOT_JS, "", "one\ntwo\nthree", None]
    assert HOT_JS not in shared["stringArray"]


# ---------------------------------------------------------------- samples


def test_samples_count_and_have_no_weights(recording: Recording, profile: dict[str, Any]) -> None:
    samples = thread_named(profile, "node")["samples"]
    assert samples["stack"] == [recording.stack[name] for name in MAIN_STACKS]
    assert [ns(t) for t in samples["time"]] == [i * MS for i in range(len(MAIN_STACKS))]
    assert (samples["weight"], samples["weightType"]) == (None, "samples")
    assert thread_named(profile, "worker")["samples"]["stack"][1] is None


def test_threads_of_sizes_weigh_bytes(profile: dict[str, Any]) -> None:
    samples = thread_named(profile, "code size")["samples"]
    assert (samples["weight"], samples["weightType"]) == ([32, 5 * 2**32], "bytes")


def test_cpu_time(profile: dict[str, Any]) -> None:
    """Where it is not known it is null, or not there at all."""
    samples = thread_named(profile, "node")["samples"]
    assert samples["threadCPUDelta"] == [None, *range(MS, MS + 6), 3_000_000_000, 0]
    assert "threadCPUDelta" not in thread_named(profile, "worker")["samples"]
    assert profile["meta"]["sampleUnits"] == {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"}


def test_meta_of_samples(profile: dict[str, Any]) -> None:
    """The last sample lasts for an interval: the range must hold it."""
    meta = profile["meta"]
    assert (meta["interval"], meta["profilingEndTime"]) == (1, END + 1)
    assert (meta["stackwalk"], meta["symbolicated"], meta["usesOnlyOneStackType"]) == (1, True, False)


def test_calls_beside_samples_keep_the_small_interval(recording: Recording, tmp_path: Path) -> None:
    frame, ts = recording.frame["main"], START + np.array([0, 5]) * MS
    calls = Table(CALLS, {"ts": ts, "frame": [frame, frame], "flags": [0, LEAVE]})
    recording.process.threads.append(recording.thread(200, "calls", ThreadData(calls=calls)))
    profile = exported(recording.trace, tmp_path)
    assert profile["meta"]["interval"] == 0.001
    paths = paths_of(profile)
    written = thread_named(profile, "calls")["samples"]
    assert [None if s is None else paths[s] for s in written["stack"]] == [("main",), ("main",), None]
    assert written["weightType"] == "tracing-ms"
    # What was there before keeps its indices.
    assert thread_named(profile, "node")["samples"]["stack"] == [recording.stack[name] for name in MAIN_STACKS]


def test_samples_of_a_thread_with_calls_are_another_thread(recording: Recording, tmp_path: Path) -> None:
    frame, ts = recording.frame["main"], START + np.array([0, 5]) * MS
    calls = Table(CALLS, {"ts": ts, "frame": [frame, frame], "flags": [0, LEAVE]})
    both = ThreadData(calls=calls, samples=recording.samples([1, 2], ["native", "native"]))
    recording.process.threads = [recording.thread(100, "both", both)]
    profile = exported(recording.trace, tmp_path)
    assert [thread["name"] for thread in profile["threads"]] == ["both", "both (samples)"]


def test_everything_else_is_carried(recording: Recording, profile: dict[str, Any]) -> None:
    assert profile["threads"]
    assert "table_not_carried" not in {issue.kind for issue in recording.trace.report}


# ---------------------------------------------------------------- threads


def test_sizes_are_the_last_thread_of_their_process(profile: dict[str, Any]) -> None:
    names = [thread["name"] for thread in profile["threads"]]
    assert names == ["node", "worker", "hardly there", "compiler", "code size"]


def test_busy_threads_are_shown_first(recording: Recording, tmp_path: Path) -> None:
    """As the viewer would choose, and the sizes, and the thread that has only markers."""
    cpu_ns = np.array([3 * MS])
    recording.process.threads[3] = recording.thread(
        102, "hardly there", ThreadData(samples=recording.samples([3], ["native"], cpu_ns=cpu_ns))
    )
    profile = exported(recording.trace, tmp_path)
    # The worker's five samples are a second's thousandth of the main thread's CPU time.
    assert profile["meta"]["initialVisibleThreads"] == [0, 3, 4]
    assert profile["meta"]["initialSelectedThreads"] == [0]


def test_a_busy_worker_is_shown(recording: Recording, tmp_path: Path) -> None:
    recording.process.threads[1] = recording.thread(
        100, "node", ThreadData(samples=recording.samples([1, 2], ["native", "native"])), is_main=True
    )
    at_ms = list(range(25))
    busy = ThreadData(samples=recording.samples(at_ms, ["native"] * len(at_ms)))
    recording.process.threads[2] = recording.thread(101, "worker", busy)
    profile = exported(recording.trace, tmp_path)
    # "hardly there": one sample of 25 is less than a twentieth.
    assert profile["meta"]["initialVisibleThreads"] == [0, 1, 3, 4]
    assert profile["meta"]["initialSelectedThreads"] == [1]


def test_without_samples_everything_is_shown(recording: Recording, tmp_path: Path) -> None:
    recording.trace.events = []
    recording.process.threads = [t for t in recording.process.threads if t.name in ("code size", "compiler")]
    profile = exported(recording.trace, tmp_path)
    assert profile["meta"]["initialVisibleThreads"] == [0, 1]
    assert "initialSelectedThreads" not in profile["meta"]


def test_samples_of_no_known_time_get_none_from_the_viewers_interval(recording: Recording, tmp_path: Path) -> None:
    recording.trace.events = []
    recording.process.threads = [
        recording.thread(1, "t", ThreadData(samples=recording.samples([1, 2], ["native"] * 2)))
    ]
    exported(recording.trace, tmp_path)
    (event,) = load_checked([str(tmp_path / "out.json")]).events
    assert (event.unit, event.interval_ns) == ("samples", 0)


def test_at_most_15_busy_threads_are_shown(recording: Recording, tmp_path: Path) -> None:
    data = ThreadData(samples=recording.samples([1], ["native"]))
    recording.process.threads = [recording.thread(i, f"t{i}", data) for i in range(40)]
    assert exported(recording.trace, tmp_path)["meta"]["initialVisibleThreads"] == list(range(15))


def test_a_process_of_counters_has_a_thread(recording: Recording, tmp_path: Path) -> None:
    recording.process.threads = []
    profile = exported(recording.trace, tmp_path)
    assert [(t["name"], t["isMainThread"]) for t in profile["threads"]] == [("node hot.js", True)]
    assert [c["mainThreadIndex"] for c in profile["counters"]] == [0]


def test_when_threads_end(profile: dict[str, Any]) -> None:
    """Null is: not before the recording."""
    ends = {thread["name"]: thread["unregisterTime"] for thread in profile["threads"]}
    assert ends == {"node": None, "worker": 30, "hardly there": None, "compiler": None, "code size": None}
    assert {thread["processShutdownTime"] for thread in profile["threads"]} == {None}


# ---------------------------------------------------------------- markers


def markers(thread: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """start, end and data of the markers of a name."""
    table = thread["markers"]
    columns = zip(table["startTime"], table["endTime"], table["name"], table["data"], strict=True)
    return [{"start": s, "end": e, "name": n, **d} for s, e, n, d in columns if d["type"] == name]


def test_marker_stacks_are_causes(recording: Recording, profile: dict[str, Any]) -> None:
    causes = [m.get("cause") for m in markers(thread_named(profile, "node"), "JIT code")]
    assert causes == [
        None, {"stack": recording.stack["inlined"], "time": 2, "tid": 100},
        None, {"stack": recording.stack["native"], "time": 4, "tid": 100},
    ]  # fmt: skip


def test_markers_have_categories_with_colors(profile: dict[str, Any]) -> None:
    categories, strings = profile["meta"]["categories"], profile["shared"]["stringArray"]
    found = {
        (strings[name], categories[category]["name"], categories[category]["color"])
        for thread in profile["threads"]
        for name, category in zip(thread["markers"]["name"], thread["markers"]["category"], strict=True)
    }
    assert {
        ("JIT code", "JIT", "purple"), ("sched:sched_wakeup", "Scheduling", "darkgrey"), ("JIT code", "Other", "grey"),
        ("Off CPU", "Scheduling", "darkgrey"),
    } <= found  # fmt: skip
    # The chart takes the colour from the data, as one of the few that graphs have.
    assert {m["color"] for m in markers(thread_named(profile, "node"), "JIT code")} == {"purple"}
    schemas = {schema["name"]: schema for schema in profile["meta"]["markerSchema"]}
    assert (schemas["JIT code"]["colorField"], "colorField" in schemas["JIT code 2"]) == ("color", False)


def test_what_weighs_bytes_is_not_among_the_threads(profile: dict[str, Any]) -> None:
    sizes = [t for t in profile["threads"] if t["samples"]["weightType"] == "bytes"]
    assert [(t["pid"], t["processName"], t["tid"]) for t in sizes] == [
        (f"{pid} sizes", f"{name}: sizes", thread["name"])
        for thread in sizes
        for pid, name in [(thread["pid"].split()[0], thread["processName"].removesuffix(": sizes"))]
    ]
    assert sizes
    assert not {t["pid"] for t in sizes} & {t["pid"] for t in profile["threads"] if t not in sizes}


def test_flows_that_join_markers(profile: dict[str, Any]) -> None:
    """Hidden, as a text's index; one that is alone is left out."""
    strings = profile["shared"]["stringArray"]
    flows = [m.get("flow") for m in markers(thread_named(profile, "node"), "JIT code")]
    assert [f if f is None else strings[f] for f in flows] == [None, "77", None, "77"]
    assert "78" not in strings
    (schema,) = (s for s in profile["meta"]["markerSchema"] if s["name"] == "JIT code")
    assert schema["fields"][-1] == {"key": "flow", "label": "Flow", "format": "flow-id", "hidden": True}


def test_marker_fields(profile: dict[str, Any]) -> None:
    first, *_ = markers(thread_named(profile, "node"), "JIT code")
    wanted = {"function": "hot", "size": 32, "address": "0xffffffffffffffff", "took": 1.5}
    assert {key: first[key] for key in wanted} == wanted


def test_fields_named_as_the_viewers_own(profile: dict[str, Any]) -> None:
    first, second = markers(thread_named(profile, "node"), "sched:sched_wakeup")
    (schema,) = (s for s in profile["meta"]["markerSchema"] if s["name"] == "sched:sched_wakeup")
    shown = [field for field in schema["fields"] if not field.get("hidden")]
    type_, cause, other = (field["key"] for field in shown)
    assert [field["label"] for field in shown] == ["type", "cause", "type_"]
    assert len({type_, cause, other, "type", "cause", "stack"}) == 6
    assert [(m[type_], m[cause], m[other]) for m in (first, second)] == [(7, "a", ""), (8, "", "b")]
    assert schema["tableLabel"] == f"{{marker.data.{type_}}} {{marker.data.{cause}}}"


def test_types_of_one_name_have_their_own_schemas(profile: dict[str, Any]) -> None:
    names = [schema["name"] for schema in profile["meta"]["markerSchema"]]
    assert len(set(names)) == len(names)
    (marker,) = markers(thread_named(profile, "worker"), "JIT code 2")
    assert marker["text"] == "x"
    assert profile["shared"]["stringArray"][marker["name"]] == "JIT code"


def test_off_cpu_is_markers(profile: dict[str, Any]) -> None:
    """Until the next change or the thread's end; running is no marker."""
    found = {
        name: [
            (m["start"], m["end"], m["state"], m.get("cpu")) for m in markers(thread_named(profile, name), "Scheduling")
        ]
        for name in ("node", "worker", "compiler")
    }
    assert found == {
        "node": [(9, 12, "blocked", 2), (12, 13, "preempted", None)],
        "worker": [(25, 30, "blocked", 1)],
        "compiler": [],
    }


# ---------------------------------------------------------------- counters


def test_counters(profile: dict[str, Any]) -> None:
    """The viewer takes the first value for 0 and draws no further than the last: the counter begins with one more, just
    before, and ends with its last once more."""
    (counter,) = profile["counters"]
    *times, end = [ns(t) for t in counter["samples"]["time"]]
    assert times == [5 * MS - 1000, 5 * MS, 10 * MS, 20 * MS]
    assert end == ns(profile["meta"]["profilingEndTime"] - profile["meta"]["interval"])
    assert counter["samples"]["count"] == [0, 1000, 500, -1300, 0]
    display = counter["display"]
    assert (display["unit"], display["graphType"]) == ("bytes", "line-accumulated")
    assert all(row["format"] == {"unit": "bytes"} for row in display["tooltipRows"])
    assert display["color"] == "teal"
    assert profile["threads"][counter["mainThreadIndex"]]["name"] == "node"


# ---------------------------------------------------------------- the Gecko format


@pytest.fixture
def gecko(recording: Recording, tmp_path: Path) -> dict[str, Any]:
    return exported(recording.trace, tmp_path, ".gecko.json")


def gecko_stacks(thread: dict[str, Any]) -> list[tuple[str, ...]]:
    names = [thread["stringTable"][frame["location"]] for frame in rows(thread["frameTable"])]
    paths: list[tuple[str, ...]] = []
    for stack in rows(thread["stackTable"]):
        paths.append((*(paths[stack["prefix"]] if stack["prefix"] is not None else ()), names[stack["frame"]]))
    return paths


def test_gecko_locations(gecko: dict[str, Any]) -> None:
    """By its form the viewer knows a script; native code has its library."""
    (main, *_) = gecko["threads"]
    paths = gecko_stacks(main)
    found = [paths[sample["stack"]] for sample in rows(main["samples"])]
    hot, inner, helper = "hot (/app/hot.js:2:13)", "inner (/app/hot.js:6:15)", "helper (/app/helper.js:1:1)"
    native = "main (in node)"
    assert found == [
        (native,), (native, hot), (native, hot), *[(native, hot, inner)] * 2, (native, hot, inner, helper),
        (native, hot), (native, hot), (native, hot, "do_syscall_64 (in [kernel.kallsyms])"),
    ]  # fmt: skip


def test_gecko_threads_have_only_their_own_stacks(gecko: dict[str, Any]) -> None:
    hardly = gecko["threads"][2]
    assert gecko_stacks(hardly) == [("main (in node)",)]
    assert hardly["stringTable"] == ["main (in node)"]


def test_gecko_categories_and_cpu_time(gecko: dict[str, Any], profile: dict[str, Any]) -> None:
    assert gecko["meta"]["categories"] == profile["meta"]["categories"]
    main, worker, *_ = gecko["threads"]
    assert [sample["threadCPUDelta"] for sample in rows(main["samples"])] == [
        None, *range(MS, MS + 6), 3_000_000_000, 0,
    ]  # fmt: skip
    assert "threadCPUDelta" not in worker["samples"]["schema"]
    assert gecko["meta"]["sampleUnits"]["threadCPUDelta"] == "ns"
    shown = {
        main["stringTable"][f["location"]]: gecko["meta"]["categories"][f["category"]]["subcategories"][
            f["subcategory"]
        ]
        for f in rows(main["frameTable"])
        if f["subcategory"]
    }
    assert shown == {"hot (/app/hot.js:2:13)": "Turbofan (OSR)"}


def test_gecko_marker_stacks(gecko: dict[str, Any]) -> None:
    main = gecko["threads"][0]
    paths = gecko_stacks(main)
    found = []
    for marker in rows(main["markers"]):
        inside = marker["data"].get("stack")
        if inside:
            ((sample),) = rows(inside["samples"])
            found.append((paths[sample["stack"]][-1], sample["time"]))
    assert found == [("inner (/app/hot.js:6:15)", 2), ("main (in node)", 4)]


def test_gecko_reports_what_it_drops(recording: Recording, gecko: dict[str, Any]) -> None:
    assert gecko["threads"]
    said = {issue.kind: issue.count for issue in recording.trace.report}
    # Only the sizes had weights.
    assert said["weights_dropped"] == 1
    said_dropped = dropped(recording.trace)
    assert said["columns_dropped"] > 0
    assert said_dropped


def test_gecko_drops_no_weights_of_samples(recording: Recording, tmp_path: Path) -> None:
    recording.process.threads = [t for t in recording.process.threads if t.sample_unit != "bytes"]
    exported(recording.trace, tmp_path, ".gecko.json")
    assert "weights_dropped" not in {issue.kind for issue in recording.trace.report}


# ---------------------------------------------------------------- the real client

needs_client = pytest.mark.skipif(firefox.available() is not None, reason=str(firefox.available()))
Cli = firefox.ProfilerCli


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(Recording().trace, tmp_path_factory.mktemp("client") / "out.json")


@pytest.fixture(scope="module")
def cli(out: Path) -> Iterator[Cli]:
    with firefox.ProfilerCli(out) as client:
        yield client


def handle_of(cli: Cli, name: str) -> str:
    (handle,) = (t["threadHandle"] for t in cli.threads() if t["name"] == name)
    return str(handle)


@needs_client
def test_client_samples(cli: Cli) -> None:
    """Idle samples are those without a stack: a category called "Idle" would lose more."""
    counts = {t["name"]: cli.call_tree(t["threadHandle"])["totalSamples"] for t in cli.threads()}
    assert counts == {"node": 9, "worker": 4, "hardly there": 1, "compiler": 0, "code size": 32 + 5 * 2**32}
    assert cli.samples(handle_of(cli, "code size"))["weightType"] == "bytes"


@needs_client
def test_client_functions(cli: Cli) -> None:
    totals = {f["name"].split("!")[-1]: f["totalSamples"] for f in cli.functions(handle_of(cli, "node"))}
    assert totals == {"main": 9, "hot": 8, "inner": 3, "helper": 1, "do_syscall_64": 1}


@needs_client
def test_client_bytes_by_function(cli: Cli) -> None:
    totals = {f["name"].split("!")[-1]: f["selfSamples"] for f in cli.functions(handle_of(cli, "code size"))}
    assert totals == {"hot": 32 + 5 * 2**32, "main": 0}


@needs_client
def test_client_only_javascript(cli: Cli, out: Path) -> None:
    """The viewer's JavaScript filter merges what is neither isJS nor relevantForJS: here by hand."""
    table = json.loads(out.read_bytes())["shared"]["funcTable"]
    others = [i for i in range(table["length"]) if not (table["isJS"][i] or table["relevantForJS"][i])]
    functions = cli.functions(handle_of(cli, "node"), merge=others)
    totals = {f["name"].split("!")[-1]: (f["selfSamples"], f["totalSamples"]) for f in functions}
    assert totals == {"hot": (5, 8), "inner": (2, 3), "helper": (1, 1)}


def annotated(cli: Cli, name: str, thread: str) -> dict[int, tuple[int, int, str]]:
    """Line → (self samples, all samples, its text), of the lines that have samples."""
    cli.ask("thread", "select", thread=handle_of(cli, thread))
    functions = cli.functions(handle_of(cli, thread))
    (handle,) = (f["functionHandle"] for f in functions if f["name"].split("!")[-1] == name)
    answer = cli.annotate(str(handle))
    assert answer["warnings"] == []
    lines = answer["srcAnnotation"]["lines"]
    return {
        line["lineNumber"]: (line["selfSamples"], line["totalSamples"], line["sourceText"])
        for line in lines
        if line["totalSamples"]
    }


@needs_client
def test_client_annotates_embedded_source(cli: Cli) -> None:
    """Without a network. A line counts for every function of the file."""
    assert annotated(cli, "hot", "node") == {
        3: (2, 6, "  return inner(n) +"),
        4: (1, 1, "    inner(n);"),
        7: (2, 3, "  return x;"),
    }


@needs_client
def test_client_counts_lines_in_other_files(cli: Cli) -> None:
    """Line 3 is hot's, by way of its original location; line 2 the inlined helper's own."""
    assert annotated(cli, "helper", "node") == {2: (1, 1, "two"), 3: (1, 1, "three")}


@needs_client
def test_client_empty_source(cli: Cli) -> None:
    assert annotated(cli, "empty", "worker") == {1: (1, 1, "")}


@needs_client
def test_client_marker_stacks_and_labels(cli: Cli) -> None:
    found = cli.markers(handle_of(cli, "node"))
    assert len(found) == 4 + 2 + 2
    with_stack = [m for m in found if m.get("hasStack")]
    assert len(with_stack) == 2
    text = cli.text("marker", "stack", with_stack[0]["handle"])
    assert [name in text for name in ("main", "hot", "inner", "helper")] == [True, True, True, False]
    assert {m["label"] for m in found if m["markerType"] == "sched:sched_wakeup"} == {"7 a", "8 "}


@needs_client
def test_client_counter(cli: Cli) -> None:
    (counter,) = cli.run("counter", "list")["counters"]
    text = cli.text("counter", "info", counter["counterHandle"])
    assert all(value in text for value in ("1,500B", "200B"))


@needs_client
@pytest.mark.parametrize("suffix", [".gecko.json", ".gecko.json.gz"])
def test_client_loads_gecko(recording: Recording, tmp_path: Path, suffix: str) -> None:
    with firefox.ProfilerCli(saved(recording.trace, tmp_path / f"out{suffix}")) as cli:
        counts = {t["name"]: cli.call_tree(t["threadHandle"])["totalSamples"] for t in cli.threads()}
        assert counts == {"GeckoMain": 9, "worker": 4, "hardly there": 1, "compiler": 0, "code size": 2}
        found = cli.markers(handle_of(cli, "GeckoMain"))
        assert [m.get("hasStack") for m in found].count(True) == 2


def test_saving_twice_changes_nothing(recording: Recording, tmp_path: Path) -> None:
    first = saved(recording.trace, tmp_path / "a.json").read_bytes()
    assert saved(recording.trace, tmp_path / "b.json").read_bytes() == first
