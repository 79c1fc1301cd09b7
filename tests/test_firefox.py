"""The Firefox Profiler's processed format, version 70."""

import gzip
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.xray import Fdr
from clients import firefox
from outputs import NAMES, inputs_named, saved, trace_named
from streams import NS, START
from support import Call, calls_of, events_of, report_of, states_of

import traceferry
from traceferry.analysis.info.summary import summarize
from traceferry.exporters.counters import MANY, shown_counters
from traceferry.exporters.firefox.tables import Stacks
from traceferry.model import COUNTER_VALUES, LEAVE, Counter, Process, Table, ThreadData, Trace, TraceBuilder

Load = Callable[..., Trace]
EVERY = pytest.mark.parametrize("name", NAMES)

SHARED_TABLES = {
    "stackTable": "frame prefixOffset",
    "frameTable": "address lib inlineDepth category subcategory func nativeSymbol innerWindowID line column "
    "originalLocation",
    "funcTable": "name isJS relevantForJS resource source lineNumber columnNumber originalLocation",
    "resourceTable": "name host type",
    "nativeSymbols": "libIndex address name functionSize",
    "sources": "id filename startLine startColumn sourceMapURL content",
    "sourceLocationTable": "source line column",
}
THREAD_TABLES = {"samples": "stack time weight", "markers": "data name startTime endTime phase category"}
THREAD_KEYS = {
    "name", "pid", "tid", "isMainThread", "processType", "processStartupTime", "processShutdownTime",
    "registerTime", "unregisterTime", "pausedRanges",
}  # fmt: skip
COLORS = {
    "transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown", "magenta", "red",
    "lightred", "darkgrey", "grey",
}  # fmt: skip
SURFACES = {
    "marker-chart", "marker-table", "timeline-overview", "timeline-memory", "timeline-ipc",
    "timeline-fileio",
}  # fmt: skip
FIELD_FORMATS = {
    "url", "file-path", "sanitized-string", "string", "unique-string", "duration", "time", "seconds",
    "milliseconds", "microseconds", "nanoseconds", "bytes", "percentage", "integer", "decimal",
    "hexadecimal", "pid", "tid", "list",
}  # fmt: skip


@pytest.fixture
def both(load: Load, tmp_path: Path) -> Callable[[str], tuple[Trace, dict[str, Any]]]:
    """(the trace, its profile)"""

    def convert(name: str) -> tuple[Trace, dict[str, Any]]:
        trace = trace_named(name, load)
        return trace, json.loads(saved(trace, tmp_path / "out.json").read_bytes())

    return convert


Both = Callable[[str], tuple[Trace, dict[str, Any]]]


def ns(ms: float) -> int:
    return round(ms * 1e6)


def times_of(samples: dict[str, Any]) -> list[int]:
    """ns from the beginning to each sample of calls, whose times are differences."""
    return list(accumulate(map(ns, samples["timeDeltas"]))) if samples["length"] else []


def in_range(column: list[Any], size: int, null: int | None = None) -> bool:
    return all(value == null if value is None or value == null else 0 <= value < size for value in column)


# ---------------------------------------------------------------- structure


@EVERY
def test_tables_are_whole(both: Both, name: str) -> None:
    """Every required column, all of the table's length."""
    _, profile = both(name)
    tables = [(profile["shared"][table], columns) for table, columns in SHARED_TABLES.items()]
    for thread in profile["threads"]:
        assert thread.keys() >= THREAD_KEYS
        assert isinstance(thread["pid"], str)
        tables += [(thread[table], columns) for table, columns in THREAD_TABLES.items()]
    for table, columns in tables:
        for column in columns.split():
            if column == "weight" and table[column] is None:
                continue
            # Calls have differences of times.
            found = table["timeDeltas"] if column == "time" and "timeDeltas" in table else table[column]
            assert len(found) == table["length"], column
    strings = profile["shared"]["stringArray"]
    assert len(set(strings)) == len(strings)


@EVERY
def test_indices_are_in_range(both: Both, name: str) -> None:
    """The clients do not check; a negative prefixOffset would hang them."""
    _, profile = both(name)
    shared, libs = profile["shared"], len(profile["libs"])
    stacks, frames, funcs = shared["stackTable"], shared["frameTable"], shared["funcTable"]
    n_strings, n_sources = len(shared["stringArray"]), shared["sources"]["length"]
    categories = profile["meta"]["categories"]
    assert all(0 <= offset <= i for i, offset in enumerate(stacks["prefixOffset"]))
    for column, size, null in (
        (stacks["frame"], frames["length"], None),
        (frames["func"], funcs["length"], None),
        (frames["lib"], libs, -1),
        (funcs["name"], n_strings, None),
        (funcs["resource"], shared["resourceTable"]["length"], -1),
        (shared["resourceTable"]["name"], n_strings, None),
        (shared["nativeSymbols"]["libIndex"], libs, None),
        (shared["nativeSymbols"]["name"], n_strings, None),
        (shared["sources"]["filename"], n_strings, None),
    ):
        assert in_range(column, size, null)
        assert null == -1 or None not in column
    assert in_range(frames["category"], len(categories))
    assert in_range(frames["nativeSymbol"], shared["nativeSymbols"]["length"])
    assert in_range(funcs["source"], n_sources)
    assert all(-1 <= address < 2**31 for address in frames["address"])
    assert all(line is None or line >= 1 for line in (*frames["line"], *funcs["lineNumber"]))
    for thread in profile["threads"]:
        assert in_range(thread["samples"]["stack"], stacks["length"])
        assert in_range(thread["markers"]["name"], n_strings)
        assert in_range(thread["markers"]["category"], len(categories))


@EVERY
def test_meta(both: Both, name: str) -> None:
    trace, profile = both(name)
    meta = profile["meta"]
    wanted = {
        "version": 36, "preprocessedProfileVersion": 70, "processType": 0, "symbolicated": True,
        "usesOnlyOneStackType": True, "keepProfileThreadOrder": True, "profilingStartTime": 0,
    }  # fmt: skip
    assert {key: meta[key] for key in wanted} == wanted
    # A sample at the end itself must be inside, and an end of 0 counts as none.
    assert ns(meta["profilingEndTime"]) == trace.end_ts - trace.start_ts + ns(meta["interval"])
    assert meta["initialVisibleThreads"] == list(range(len(profile["threads"])))
    assert 0 < meta["interval"] <= 0.001
    assert meta["startTime"] == (trace.unix_start_ns or 0) / 1e6
    assert meta["product"]
    if trace.clock and trace.clock.kind == "monotonic":
        assert meta["startTimeAsClockMonotonicNanosecondsSinceBoot"] == trace.start_ts
    first, *others = meta["categories"]
    assert first == {"name": "Other", "color": "grey", "subcategories": ["Other"]}
    assert all(c["color"] in COLORS and c["subcategories"][0] == "Other" for c in others)
    assert len(meta["categories"]) <= 256


@EVERY
def test_threads_in_order(both: Both, name: str) -> None:
    trace, profile = both(name)
    if not trace.threads:
        assert len(profile["threads"]) == 1
        return
    wanted = [(str(p.pid), t.tid, t.name, t.is_main, p.name) for p, t in trace.threads]
    keys = ("pid", "tid", "name", "isMainThread", "processName")
    assert [tuple(thread[key] for key in keys) for thread in profile["threads"]] == wanted
    starts = [ns(thread["registerTime"]) for thread in profile["threads"]]
    assert starts == [thread.start_ts - trace.start_ts for _, thread in trace.threads]


# ---------------------------------------------------------------- samples


def states_by_time(trace: Trace, data: Any) -> list[tuple[int, tuple[str, ...]]]:
    """(since the start, call path) after each change that lasts."""
    names = [trace.func_name(int(func)) for func in trace.frames["func"]]
    path: list[str] = []
    states: list[tuple[int, tuple[str, ...]]] = []
    rows = zip(*(data.calls[c].tolist() for c in ("ts", "frame", "flags")), strict=True)
    for ts, frame, flags in rows:
        if flags & LEAVE:
            path.pop()
        else:
            path.append(names[frame])
        if states and states[-1][0] == ts - trace.start_ts:
            states.pop()
        states.append((ts - trace.start_ts, tuple(path)))
    return states


def paths_of(profile: dict[str, Any]) -> list[tuple[str, ...]]:
    shared = profile["shared"]
    strings, funcs = shared["stringArray"], shared["funcTable"]["name"]
    names = [strings[funcs[func]] for func in shared["frameTable"]["func"]]
    paths: list[tuple[str, ...]] = []
    stacks = shared["stackTable"]
    for i, (frame, offset) in enumerate(zip(stacks["frame"], stacks["prefixOffset"], strict=True)):
        paths.append((*(paths[i - offset] if offset else ()), names[frame]))
    return paths


@EVERY
def test_samples_are_the_calls(both: Both, name: str) -> None:
    """A sample at each change with the full path, null where no call is open: the stack chart is exact."""
    trace, profile = both(name)
    paths = paths_of(profile)
    for (_, thread), written in zip(trace.threads, profile["threads"], strict=False):
        samples = written["samples"]
        assert samples["weightType"] == "tracing-ms"
        times = times_of(samples)
        assert times == sorted(times)
        lasting: list[tuple[int, tuple[str, ...]]] = []
        for time, stack in zip(times, samples["stack"], strict=True):
            if lasting and lasting[-1][0] == time:
                lasting.pop()
            lasting.append((time, () if stack is None else paths[stack]))
        assert lasting == states_by_time(trace, thread.load(trace))
        # The viewer draws a sample until the next one: the thread ends with a null sample.
        assert samples["stack"][-1:] in ([None], [])


@EVERY
def test_every_function_called_is_seen(both: Both, name: str) -> None:
    """Also one that takes no time at all."""
    trace, profile = both(name)
    paths = paths_of(profile)
    for (_, thread), written in zip(trace.threads, profile["threads"], strict=False):
        seen = {paths[stack][-1] for stack in written["samples"]["stack"] if stack is not None}
        calls = calls_of(trace, thread.load(trace))
        leaves = {c.name for c, after in with_next(calls) if after is None or after.depth <= c.depth}
        assert seen >= leaves


def with_next(calls: list[Call]) -> list[tuple[Call, Call | None]]:
    return list(zip(calls, [*calls[1:], None], strict=True))


@EVERY
def test_weights_are_self_times(both: Both, name: str) -> None:
    """Each until the next sample, none without a stack; summed by function exactly what info says."""
    trace, profile = both(name)
    paths = paths_of(profile)
    self_ns: dict[str, int] = defaultdict(int)
    for thread in profile["threads"]:
        samples = thread["samples"]
        times = times_of(samples)
        for i, stack in enumerate(samples["stack"]):
            weight = ns(samples["weight"][i])
            until = times[i + 1] if i + 1 < len(times) else times[i]
            assert weight == (0 if stack is None else until - times[i])
            if stack is not None:
                self_ns[paths[stack][-1]] += weight
    wanted = {row["name"]: row["self_ns"] for row in summarize(trace, top=10**6)["functions"]["top"]}
    assert {n: t for n, t in self_ns.items() if t} == {n: t for n, t in wanted.items() if t}


# ---------------------------------------------------------------- markers


@EVERY
def test_marker_schemas(both: Both, name: str) -> None:
    """Every marker has the schema of its type, every field is declared."""
    _, profile = both(name)
    schemas = {schema["name"]: schema for schema in profile["meta"]["markerSchema"]}
    assert len(schemas) == len(profile["meta"]["markerSchema"])
    for schema in schemas.values():
        assert set(schema["display"]) <= SURFACES
        assert all(field["format"] in FIELD_FORMATS and field["label"] for field in schema["fields"])
    for thread in profile["threads"]:
        for data in thread["markers"]["data"]:
            fields = {field["key"] for field in schemas[data["type"]]["fields"]}
            assert data.keys() - {"type"} <= fields


@EVERY
def test_marker_times(both: Both, name: str) -> None:
    """Phase 0 has a start only, phase 1 both; all within the recording."""
    trace, profile = both(name)
    length = trace.end_ts - trace.start_ts
    for thread in profile["threads"]:
        markers = thread["markers"]
        for start, end, phase in zip(markers["startTime"], markers["endTime"], markers["phase"], strict=True):
            assert phase in (0, 1)
            assert 0 <= ns(start) <= length
            assert (end is None) == (phase == 0)
            assert end is None or ns(start) <= ns(end) <= length


def markers_of_type(profile: dict[str, Any], thread: int, wanted: str) -> list[tuple[int, int | None, dict[str, Any]]]:
    """(start, end, data) in ns since the start."""
    markers = profile["threads"][thread]["markers"]
    columns = zip(markers["startTime"], markers["endTime"], markers["data"], strict=True)
    return [(ns(s), None if e is None else ns(e), d) for s, e, d in columns if d["type"] == wanted]


@EVERY
def test_calls_with_arguments_are_markers(both: Both, name: str) -> None:
    trace, profile = both(name)
    for nth, (_, thread) in enumerate(trace.threads):
        calls = [call for call in calls_of(trace, thread.load(trace)) if call.args]
        found = markers_of_type(profile, nth, "Call")
        assert [(start, end) for start, end, _ in found] == [
            (call.start - trace.start_ts, call.end - trace.start_ts) for call in calls
        ]
        for call, (_, _, data) in zip(calls, found, strict=True):
            assert data["function"] == call.name
            shown = [data[f"arg{i}"] for i in range(len(data) - 2)]
            # The sixteenth field holds all that follow.
            assert [int(value, 0) for value in ", ".join(shown).split(", ")] == list(call.args)
            assert len(shown) == min(len(call.args), 16)


@EVERY
def test_events_are_markers(both: Both, name: str) -> None:
    trace, profile = both(name)
    for nth, (_, thread) in enumerate(trace.threads):
        for kind in ("Custom event", "Typed event"):
            rows = events_of(thread.load(trace)).get(kind, [])
            found = markers_of_type(profile, nth, kind)
            assert [(start, d.get("type"), d["data"], d["size"]) for start, _, d in found] == [
                (row["ts"] - trace.start_ts, kind, row["data"], row["size"]) for row in rows
            ]


def test_the_type_of_typed_events_is_kept(both: Both) -> None:
    """Its field must not take the place of the marker's own type, by which the viewer finds the schema."""
    _, profile = both("arguments_and_events")
    (schema,) = (s for s in profile["meta"]["markerSchema"] if s["name"] == "Typed event")
    ((_, _, data),) = markers_of_type(profile, 0, "Typed event")
    assert len({field["key"] for field in schema["fields"]}) == len(schema["fields"])
    keys = [field["key"] for field in schema["fields"] if field["label"] == "Type"]
    assert [data[key] for key in keys] == [9]


@EVERY
def test_cpus_are_a_marker_track(both: Both, name: str) -> None:
    """One after the other without gaps, to the end."""
    trace, profile = both(name)
    for nth, (_, thread) in enumerate(trace.threads):
        states = states_of(trace, thread.load(trace))
        found = markers_of_type(profile, nth, "CPU")
        assert [(start, data["value"]) for start, _, data in found] == [
            (ts - trace.start_ts, value) for ts, _, value in states
        ]
        if found and any(end is not None for _, end, _ in found):
            ends = [end for _, end, _ in found]
            assert ends[:-1] == [start for start, _, _ in found[1:]]


# ---------------------------------------------------------------- names, lines, colours


def test_functions_have_lines_and_libraries(both: Both) -> None:
    _, profile = both("fdr-c22-dso.xray")
    shared = profile["shared"]
    strings, funcs, frames = shared["stringArray"], shared["funcTable"], shared["frameTable"]
    assert {lib["name"] for lib in profile["libs"]} == {"dso_main", "libdso.so"}
    for lib in profile["libs"]:
        assert len(lib["breakpadId"]) >= 33 or not lib["codeId"]
        assert "/" not in lib["path"]
    for func, lib in zip(frames["func"], frames["lib"], strict=True):
        assert strings[shared["resourceTable"]["name"][funcs["resource"][func]]] == profile["libs"][lib]["name"]
        assert strings[shared["sources"]["filename"][funcs["source"][func]]].endswith(".cpp")
        assert funcs["lineNumber"][func] > 0
    categories = [profile["meta"]["categories"][c]["name"] for c in frames["category"]]
    by_lib = {profile["libs"][lib]["name"]: category for lib, category in zip(frames["lib"], categories, strict=True)}
    assert by_lib["libdso.so"] == "libdso.so"
    assert by_lib["dso_main"] != "libdso.so"


def test_categories_tell_the_program_from_the_library(both: Both) -> None:
    _, profile = both("fdr-c19-pie-pool.xray")
    shared = profile["shared"]
    categories = profile["meta"]["categories"]
    used = {
        shared["stringArray"][shared["funcTable"]["name"][func]]: categories[category]["name"]
        for func, category in zip(shared["frameTable"]["func"], shared["frameTable"]["category"], strict=True)
    }
    assert used["geo::dot(geo::Vec const&, geo::Vec const&)"] not in ("Other", "C++ library")
    in_std = {category for name, category in used.items() if name.startswith("std::")}
    assert in_std <= {"C++ library"}
    assert len({c["color"] for c in categories}) >= 3


def test_exact_times_of_a_long_recording(load: Load, tmp_path: Path) -> None:
    """A day in, to the ns: JSON's numbers have 53 bits."""
    log = Fdr(frequency=NS)
    day = 86_400 * NS
    records = [log.new_cpu(0, START), log.enter(1, 0), log.tsc_wrap(START + day), log.exit(1, 1)]
    trace = load(log.buffer(1, records=records))
    profile = json.loads(saved(trace, tmp_path / "day.json").read_bytes())
    assert times_of(profile["threads"][0]["samples"])[-1] == trace.end_ts - trace.start_ts == day + 1


# ---------------------------------------------------------------- the same bytes


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".gecko.json", ".gecko.json.gz", ".pftrace", ".pftrace.gz"])
def test_the_same_input_gives_the_same_bytes(suffix: str, tmp_path: Path) -> None:
    """In two processes, from two folders, with other hashes of strings."""
    outputs = []
    for seed in "12":
        folder = tmp_path / seed
        folder.mkdir()
        log, programs = inputs_named("fdr-c19-pie-events.xray", folder)
        out = folder / f"out{suffix}"
        command = [sys.executable, "-m", "traceferry", "convert", str(log), "-o", str(out), "--quiet"]
        for program in programs:
            command += ["--symbols", str(program)]
        repo = Path(traceferry.__file__).parents[1]
        done = subprocess.run(command, check=False, cwd=repo, env={"PYTHONHASHSEED": seed, "PATH": ""})
        assert done.returncode == 0
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("suffix", [".json", ".gecko.json", ".pftrace"])
def test_gz_holds_the_same_and_saving_twice_changes_nothing(suffix: str, load: Load, tmp_path: Path) -> None:
    trace = trace_named("arguments_and_events", load)
    plain = saved(trace, tmp_path / f"a{suffix}").read_bytes()
    assert gzip.decompress(saved(trace, tmp_path / f"a{suffix}.gz").read_bytes()) == plain
    assert saved(trace, tmp_path / f"b{suffix}").read_bytes() == plain


@pytest.mark.parametrize("suffix", [".json", ".gecko.json", ".pftrace"])
def test_nothing_tells_the_machine(suffix: str, tmp_path: Path) -> None:
    log, programs = inputs_named("fdr-c19-pie-events.xray", tmp_path)
    out = tmp_path / f"out{suffix}"
    traceferry.convert(log, out, symbols=programs)
    text = out.read_bytes()
    assert str(tmp_path).encode() not in text
    assert str(log.parent).encode() not in text
    assert str(programs[0].parent).encode() not in text


# ---------------------------------------------------------------- the real client

WITH_CLIENT = ["gaps", "not_balanced", "arguments_and_events", "no_records", "fdr-c19-pie-events.xray",
               "fdr-c19-pie-except.xray", "fdr-c22-dso.xray"]  # fmt: skip
needs_client = pytest.mark.skipif(firefox.available() is not None, reason=str(firefox.available()))


@needs_client
@pytest.mark.parametrize("suffix", [".json", ".gecko.json.gz"])
@pytest.mark.parametrize("name", WITH_CLIENT)
def test_profiler_cli_loads_and_walks(load: Load, tmp_path: Path, name: str, suffix: str) -> None:
    """Every thread's samples, functions and markers; the totals of the call tree are the time in calls."""
    trace = trace_named(name, load)
    out = saved(trace, tmp_path / f"out{suffix}")
    is_gecko = "gecko" in suffix
    with firefox.ProfilerCli(out) as cli:
        threads = cli.threads()
        assert len(threads) == max(len(trace.threads), 1)
        for handle, (process, thread) in zip(threads, trace.threads, strict=False):
            data = thread.load(trace)
            assert (str(handle["pid"]), str(handle["tid"])) == (str(process.pid), str(thread.tid))
            # A raw profile's main thread is known by this name, and shown by its process's.
            assert handle["name"] == ("GeckoMain" if is_gecko and thread.is_main else thread.name)
            n_markers = sum(len(rows) for rows in events_of(data).values()) + len(data.states)
            n_markers += sum(bool(call.args) for call in calls_of(trace, data))
            assert len(cli.markers(handle["threadHandle"])) == handle["markerCount"] == n_markers
            samples = cli.samples(handle["threadHandle"])
            if is_gecko:
                continue
            assert samples["weightType"] == "tracing-ms"
            in_calls = sum(c.end - c.start for c in calls_of(trace, data) if c.depth == 0)
            tree = cli.call_tree(handle["threadHandle"])
            assert tree["totalSamples"] == pytest.approx(in_calls / 1e6, abs=1e-6 * max(len(data.calls), 1))
            totals = {row["name"]: row["selfSamples"] for row in cli.functions(handle["threadHandle"])}
            assert totals.keys() <= {call.name for call in calls_of(trace, data)}
            assert sum(totals.values()) == pytest.approx(in_calls / 1e6, abs=1e-6 * max(len(data.calls), 1))


def test_of_many_counters_those_that_never_change_are_left_out() -> None:
    trace = TraceBuilder()
    values = {"same": [5, 5, 5], "falls": [5, 4, 4], "grows": [0, 0, 1]}
    counters = [
        Counter(f"{name} {nth}", "count", "", Table(COUNTER_VALUES, {"ts": [1, 2, 3], "value": values[name]}))
        for name in values
        for nth in range(11)
    ]
    assert shown_counters(trace, Process(7, "app", 0, 9, counters=counters[:MANY])) == counters[:MANY]
    assert shown_counters(trace, Process(7, "app", 0, 9, counters=counters)) == counters[11:]
    assert report_of(trace) == {"counters_dropped": 11}


def test_stacks_that_are_added_while_calls_are_written_keep_their_frames() -> None:
    """Samples of threads that are made after the first calls: several times, each time some more."""
    trace = TraceBuilder()
    stacks = Stacks(trace)
    list(stacks.of_calls(ThreadData().calls, 1))
    for n in (2, 5, 9):
        added = [trace.stacks.intern(prefix=-1, frame=frame) for frame in range(n)]
        here = stacks.of_column(np.array([*added, -1], np.int32)).tolist()
        assert [*stacks.frame[here[:-1]].tolist(), here[-1]] == [*range(n), -1]
