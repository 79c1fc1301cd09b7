"""Profiles of the Firefox Profiler as inputs: versions, both containers, what is refused, what is kept of the rest."""

from __future__ import annotations

import json
import random
import struct
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import firefox_profiles as made
import numpy as np
import pytest
from conftest import REPO, cuts, examples
from firefox_profiles import loaded, path_of, profile, totals, written
from hypothesis import given
from hypothesis import strategies as st
from support import all_calls, calls_of, load_checked, report_of

import traceferry
from traceferry import FormatError, LoadOptions
from traceferry.files.json_text import JsonText, members_seen
from traceferry.files.source import Source
from traceferry.importers.firefox import map as firefox_map
from traceferry.importers.firefox.marker_groups import Cells
from traceferry.importers.firefox.samples import KeptRows, Rows
from traceferry.model import Trace
from traceferry.model.laws import check
from traceferry.registry import detect, importer_named

# ---------------------------------------------------------------- those of others


@pytest.mark.parametrize("entry", made.entries("firefox", "firefox-ladder", "gecko"), ids=lambda entry: entry["file"])
def test_counts_of_profiles_of_others(entry: dict[str, Any]) -> None:
    trace = load_checked(path_of(entry))
    contents = entry["contents"]
    tables = [
        table
        for _, thread in trace.threads
        for data in [thread.load(trace)]
        for table in (data.samples, *data.other_samples.values())
    ]
    assert len(trace.threads) == contents["threads"]
    assert sum(map(len, tables)) == contents["samples"]
    assert sum(int((table["stack"] >= 0).sum()) for table in tables) == contents["samples_with_stack"]
    weights = sum(int(table["weight"].sum()) for table in tables)
    assert weights == contents.get("weight_sum", contents["samples"])
    phases = contents.get("marker_phases", {})
    markers = sum(
        len(table)
        for _, thread in trace.threads
        for kind, table in thread.load(trace).markers.items()
        if kind.name != "Profiler paused"
    )
    unpaired = contents["markers"] - min(phases.get("2", 0), phases.get("3", 0)) if phases else markers
    assert unpaired <= markers <= contents["markers"]
    counters = [len(counter.values) for process in trace.processes for counter in process.counters]
    assert sum(counters) == contents.get("counter_values", sum(counters))


# Also as they were before the viewer wrote them. What processed3 was until version 35 has markers of other types.
LADDERS = {
    "mathic": ("firefox/mathic--profile.json.gz", "v53.json.gz", "v55.json.gz", "v56.json.gz", "v58.json.gz",
               "v60.json.gz", "v61.json.gz", "v64.json.gz", "v66.json.gz", "v68.json.gz", "v70.json.gz", "v70.jslb",
               "v71.json.gz", "v75.json.gz", "v75.jslb"),
    "processed3": ("v36.json.gz", "v41.json.gz", "v48.json.gz", "v55.json.gz", "v70.json.gz"),
    "argument-values": ("firefox/profiler--argument-values.json", "v70.json.gz", "v75.json.gz"),
    "recursion": ("gecko/speedscope--61-recursion.json", "v70.json.gz"),
}  # fmt: skip
TABLES = ("sources", "libs", "symbols", "categories", "tiers", "funcs", "frames", "stacks")


def of_ladder(name: str, version: str) -> Trace:
    file = version if "/" in version else f"firefox-ladder/{name}.{version}"
    return load_checked(path_of({"file": file if made.VIEWERS.exists() else ""}))


@pytest.mark.parametrize("name", LADDERS)
def test_one_profile_in_many_versions_has_one_total(name: str) -> None:
    traces = [of_ladder(name, version) for version in LADDERS[name]]
    expected = totals(traces[0])
    for version, trace in zip(LADDERS[name], traces, strict=True):
        assert totals(trace) == expected, version


def test_markers_of_the_oldest_ladder_are_all_that_differs() -> None:
    traces = [of_ladder("processed3", version) for version in ("firefox/profiler--processed-3.json", "v30.json.gz")]
    expected = totals(of_ladder("processed3", "v36.json.gz"))
    for trace in traces:
        found = totals(trace)
        assert found.keys() == expected.keys()
        for key, value in found.items():
            is_thread = isinstance(value, tuple)
            assert (value[0], value[2]) == (expected[key][0], expected[key][2]) if is_thread else value == expected[key]
            assert not is_thread or value[1].total() == expected[key][1].total()


def test_one_profile_in_many_versions_has_the_same_tables() -> None:
    """From version 60 on, when all that these have stands in the profile."""
    versions = [version for version in LADDERS["mathic"] if version.startswith(("v6", "v7"))]
    found = []
    for version in versions:
        trace = of_ladder("mathic", version)
        tables = {
            name: [getattr(trace, name)[column.name].tolist() for column in getattr(trace, name).spec.columns]
            for name in TABLES
        }
        found.append(tables | {"strings": [*trace.strings]})
    for version, tables in zip(versions, found, strict=True):
        assert tables == found[0], version


# ---------------------------------------------------------------- versions of one made here


def test_a_profile_in_versions_and_containers_has_one_total(tmp_path: Path) -> None:
    expected = totals(loaded(profile(), tmp_path))
    for version in (58, 60, 66, 70):
        assert totals(loaded(made.as_shared(profile(), version), tmp_path)) == expected
    newest = made.as_75(profile())
    assert totals(loaded(newest, tmp_path)) == expected
    assert totals(loaded(made.as_jslb(newest), tmp_path, "p.jslb")) == expected
    assert report_of(loaded(newest, tmp_path)) == report_of(loaded(profile(), tmp_path))


def test_what_a_profile_says_is_in_the_trace(tmp_path: Path) -> None:
    trace = loaded(profile(), tmp_path)
    ((process, thread),) = trace.threads
    data = thread.load(trace)
    assert (process.pid, process.name, thread.tid, thread.name, thread.is_main) == (7, "demo", 7, "thread 0", True)
    assert trace.clock is not None
    assert (trace.clock.kind, trace.clock.unix_zero_ns) == ("realtime", 1_600_000_000_000_500_000)
    assert [(e.name, e.unit, e.interval_ns) for e in trace.events] == [("samples", "samples", 1_000_000)]
    assert data.samples["ts"].tolist() == [0, 1_000_000, 2_500_000, 4_000_000]
    assert data.samples["weight"].tolist() == [1, 3, 1, 1]
    assert data.samples["cpu_ns"].tolist() == [-1, 500_000, 10_000, -1]
    paths = [made.func_path(trace, stack) for stack in data.samples["stack"].tolist()]
    assert paths == [("main", "inner", "work"), ("main",), (), ("main", "inner")]
    names = [trace.func_name(func) for func in trace.frames["func"].tolist()]
    columns = ("line", "address", "inline_depth")
    rows = {name: {c: int(trace.frames[c][row]) for c in columns} for row, name in enumerate(names)}
    assert rows == {
        "main": {"line": 2, "address": 16, "inline_depth": 0}, "inner": {"line": 9, "address": 16, "inline_depth": 1},
        "work": {"line": 0, "address": -1, "inline_depth": 0},
    }  # fmt: skip
    categories = trace.frames["category"].tolist()
    assert [trace.strings[int(trace.categories["name"][c])] for c in categories] == ["Other", "Other", "JavaScript"]
    assert [trace.strings[int(n)] for n in trace.tiers["name"]] == ["Ion"]
    assert [process.counters[0].values["value"].tolist(), process.counters[0].unit] == [[100, 60], "bytes"]


def test_markers_are_paired_by_name_last_in_first_out(tmp_path: Path) -> None:
    trace = loaded(profile(), tmp_path)
    data = trace.threads[0][1].load(trace)
    of = {kind.name: table for kind, table in data.markers.items()}
    assert of["Load"]["url"].tolist() == ["http://x/"]
    assert (of["Load"]["ts"].tolist(), of["Load"]["dur"].tolist()) == ([1_000_000], [2_000_000])
    assert (of["Load"]["took"].tolist(), of["Load"]["size"].tolist()) == ([1_500_000], [10])
    assert made.func_path(trace, int(of["Load"]["stack"][0])) == ("main", "inner")
    # The second begin is the first that ends; the other lasts until the end of the thread.
    assert of["Wait"]["ts"].tolist() == [1_000_000, 2_000_000]
    assert of["Wait"]["dur"].tolist() == [3_000_000, 2_000_000]
    assert of["Wait"]["n"].tolist() == [1, 3]
    assert of["Wait"]["why"].tolist() == ["x", '{"a":[1]}']
    assert of["Marker"]["marker_name"].tolist() == ["Text"]
    assert report_of(trace) == {"markers_open": 1}


def exact(times: list[float], stacks: list[int | None], weights: list[float]) -> dict[str, Any]:
    given = profile()
    samples = {"stack": stacks, "time": times, "weight": weights, "weightType": "tracing-ms", "length": len(times)}
    given["threads"][0]["samples"] = samples
    return given


def test_exact_samples_become_calls(tmp_path: Path) -> None:
    trace = loaded(exact([0, 1, 3, 4, 6], [0, 2, 0, None, 1], [1, 2, 1, 2, 0.5]), tmp_path)
    (calls,) = all_calls(trace)
    assert [(call.name, call.start, call.end - call.start) for call in calls] == [
        ("main", 0, 4_000_000), ("inner", 1_000_000, 2_000_000), ("work", 1_000_000, 2_000_000),
        ("main", 6_000_000, 500_000), ("inner", 6_000_000, 500_000),
    ]  # fmt: skip
    assert report_of(trace)["calls_joined"] == 1


def test_weights_that_are_no_times_to_the_next_sample_stay_samples(tmp_path: Path) -> None:
    trace = loaded(exact([0, 1, 3, 4], [0, 2, 0, 1], [7, 1, 1, 2]), tmp_path)
    data = trace.threads[0][1].load(trace)
    assert not len(data.calls)
    assert trace.events[0].unit == "ns"
    assert data.samples["weight"].tolist() == [7_000_000, 1_000_000, 1_000_000, 2_000_000]


@pytest.mark.parametrize(
    ("times", "weights", "is_calls"),
    [([0, 1, 2], [1, 1, 1], True), ([0, 1, 3], [1, 1, 1], False), ([0], [1], False)],
    ids=["exact", "not exact", "one sample"],
)
def test_a_thread_of_few_samples_is_what_the_profile_is(
    times: list[float], weights: list[float], is_calls: bool, tmp_path: Path
) -> None:
    given = exact(times, [0] * len(times), weights)
    short = exact([5], [2], [4])["threads"][0] | {"tid": 8}
    trace = loaded(given | {"threads": [*given["threads"], short]}, tmp_path)
    data = [thread.load(trace) for _, thread in trace.threads]
    assert [len(one.calls) > 0 for one in data] == [is_calls] * 2
    assert [len(one.samples) for one in data] == [0 if is_calls else n for n in (len(times), 1)]


def test_threads_of_many_samples_tell_by_themselves(tmp_path: Path) -> None:
    n = 200
    given = exact([*range(n)], [0, 1] * (n // 2), [1] * n)
    other = exact([*range(n)], [0, 1] * (n // 2), [0.25] * n)["threads"][0] | {"tid": 8}
    trace = loaded(given | {"threads": [*given["threads"], other]}, tmp_path)
    assert [len(thread.load(trace).calls) > 0 for _, thread in trace.threads] == [True, False]


def test_deltas_are_rounded_before_they_are_summed(tmp_path: Path) -> None:
    given = profile()
    samples = given["threads"][0]["samples"]
    del samples["time"]
    samples["timeDeltas"] = [0.1] * 4
    trace = loaded(given, tmp_path)
    assert trace.threads[0][1].load(trace).samples["ts"].tolist() == [100_000, 200_000, 300_000, 400_000]


def test_allocations_have_classes_objects_and_stacks(tmp_path: Path) -> None:
    given = profile()
    native = {"time": [1, 2, 3], "weight": [16, 32, -16], "weightType": "bytes", "stack": [0, None, 1],
              "memoryAddress": [4096, 8192, 4096], "threadId": [7] * 3, "length": 3}  # fmt: skip
    script = {"time": [1], "className": ["Array"], "typeName": [""], "coarseType": [""], "weight": [16],
              "weightType": "bytes", "inNursery": [False], "stack": [0], "length": 1}  # fmt: skip
    given["threads"][0] |= {"nativeAllocations": native, "jsAllocations": script}
    trace = loaded(given, tmp_path).opened()
    table = trace.threads[0][1].load(trace).allocations
    assert table["size"].tolist() == [16, 32, -16]
    assert table["object"].tolist() == [0, 1, 0]
    assert [trace.strings[name] for name in table["class_name"].tolist()] == ["Array", "", "Array"]
    paths = [made.func_path(trace, stack) for stack in table["stack"].tolist()]
    assert paths == [("main", "Array"), ("[unknown class]",), ("main", "Array")]


def test_objects_of_scripts_that_are_no_native_allocations_are_told_of(tmp_path: Path) -> None:
    given = profile()
    native = {"time": [1], "weight": [16], "weightType": "bytes", "stack": [0], "length": 1}
    script = {"time": [1, 2, 3], "className": ["Array", "Object", "Map"], "weight": [16, 8, 9], "weightType": "bytes",
              "stack": [0, 0, 1], "length": 3}  # fmt: skip
    given["threads"][0] |= {"nativeAllocations": native, "jsAllocations": script}
    trace = loaded(given, tmp_path)
    assert trace.threads[0][1].load(trace).allocations["size"].tolist() == [16]
    told = [(issue.count, issue.detail) for issue in trace.report if "jsAllocations" in issue.detail]
    assert told == [(2, "jsAllocations that are no nativeAllocations")]


def test_a_gecko_profile_and_its_wrapper(tmp_path: Path) -> None:
    trace = loaded(made.gecko(), tmp_path)
    data = trace.threads[0][1].load(trace)
    paths = [made.func_path(trace, stack) for stack in data.samples["stack"].tolist()]
    assert paths == [("(root)", "xul+0x334", "f"), ("(root)", "xul+0x334"), ()]
    # A caller has the address of its call, which is before the one to which it returns.
    assert sorted(trace.frames["address"][trace.frames["lib"] >= 0].tolist()) == [0x333, 0x334]
    (of,) = data.markers.values()
    assert (of["ts"].tolist(), of["dur"].tolist(), of["marker_name"].tolist()) == ([1_000_000], [1_000_000], ["Wait"])
    assert made.func_path(trace, int(of["stack"][0])) == ("(root)", "xul+0x334")
    wrapped = loaded({"label": "a", "profile": made.gecko(), "version": 2}, tmp_path)
    assert totals(wrapped) == totals(trace)


@pytest.mark.parametrize(("delays", "told"), [((0, 0), []), ((0, 4), [1]), ((2, 4), [2])])
def test_event_delays_are_told_where_there_are_any(delays: tuple[int, int], told: list[int], tmp_path: Path) -> None:
    given = made.gecko()
    given["threads"][0]["samples"]["data"] = [[2, 1, delays[0]], [1, 2, delays[1]]]
    report = loaded(given, tmp_path).report
    assert [issue.count for issue in report if issue.kind == "members_not_read"] == told


def test_processes_of_a_gecko_profile_are_on_one_clock(tmp_path: Path) -> None:
    given = made.gecko()
    inner = made.gecko()
    inner["meta"]["startTime"] += 250
    inner["threads"][0] |= {"pid": 10, "tid": 10}
    given["processes"] = [inner]
    trace = loaded(given, tmp_path)
    assert [p.pid for p in trace.processes] == [9, 10]
    firsts = [int(t.load(trace).samples["ts"][0]) for _, t in trace.threads]
    assert firsts == [1_000_000, 251_000_000]


# ---------------------------------------------------------------- numbers, clocks, several inputs


def test_ids_that_are_no_numbers_or_taken_get_others(tmp_path: Path) -> None:
    given = profile(n_threads=4)
    for one, (pid, tid) in zip(given["threads"], [("7", 7), ("7.1", "7.1"), ("7", 7), ("x", "y")], strict=True):
        one |= {"pid": pid, "tid": tid}
    trace = loaded(given, tmp_path)
    assert [(p.pid, t.tid, t.name) for p, t in trace.threads] == [
        (7, 7, "thread 0"), (7, 8, "thread 2"), (7, 7, "thread 1"), (8, 1, "thread 3 (y)"),
    ]  # fmt: skip


def test_two_profiles_on_the_monotonic_clock_are_one_trace(tmp_path: Path) -> None:
    first = profile(startTimeAsClockMonotonicNanosecondsSinceBoot=5_000_000_000)
    second = profile(startTimeAsClockMonotonicNanosecondsSinceBoot=5_010_000_000)
    second["threads"][0]["pid"] = "8"
    paths = [written(first, tmp_path / "a.json"), written(second, tmp_path / "b.json")]
    trace = load_checked(paths)
    assert [int(t.load(trace).samples["ts"][0]) for _, t in trace.threads] == [5_000_000_000, 5_010_000_000]
    assert trace.clock is not None
    assert trace.clock.kind == "monotonic"


# ---------------------------------------------------------------- names


@pytest.fixture
def server() -> Iterator[tuple[str, list[Any]]]:
    """A symbol server that names every address f_ADDRESS, and what it was asked."""
    asked: list[Any] = []

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            jobs = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["jobs"]
            asked.extend(jobs)
            results = [
                {"stacks": [[{"frame": n, "function": f"f_{at:x}", "function_offset": "0x0", "file": "a.c", "line": 3,
                              "inlines": [{"function": "leaf"}, {"function": "middle"}]}
                             for n, (_, at) in enumerate(job["stacks"][0])]], "found_modules": {}}
                for job in jobs
            ]  # fmt: skip
            body = json.dumps({"results": results}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answers) as listening:
        serving = Thread(target=listening.serve_forever, daemon=True)
        serving.start()
        yield f"http://127.0.0.1:{listening.server_port}/token/", asked
        listening.shutdown()


def unnamed() -> dict[str, Any]:
    """main and inner are addresses, and nothing is inlined."""
    given = profile(symbolicated=False)
    one = given["threads"][0]
    one["stringArray"][0], one["stringArray"][2] = "0x10", "0x20"
    one["frameTable"] |= {"inlineDepth": [0, 0, 0], "address": [16, 32, -1], "nativeSymbol": [None] * 3}
    return given


@pytest.mark.parametrize("said", [False, True, None])
def test_addresses_without_a_name_are_told(said: bool | None, tmp_path: Path) -> None:
    """The viewer says that a profile is symbolicated once it has tried, whether it has found anything or not."""
    given = unnamed()
    given["meta"]["symbolicated"] = said
    trace = loaded(given, tmp_path)
    (issue,) = (issue for issue in trace.report if issue.kind == "not_symbolicated")
    assert (issue.count, issue.details) == (4, ("demo: 4 samples",))
    names = {trace.func_name(row) for row in range(len(trace.funcs))}
    assert {"demo+0x10", "demo+0x20", "work"} <= names


def test_a_symbol_server_names_addresses(tmp_path: Path, server: tuple[str, list[Any]]) -> None:
    url, asked = server
    trace = loaded(unnamed(), tmp_path, symbol_server=url)
    data = trace.threads[0][1].load(trace)
    assert asked == [{"memoryMap": [["demo", "0" * 32 + "A"]], "stacks": [[[0, 16], [0, 32]]]}]
    assert made.func_path(trace, int(data.samples["stack"][1])) == ("f_10", "middle", "leaf")
    assert "not_symbolicated" not in report_of(trace)
    assert sorted(set(trace.frames["inline_depth"].tolist())) == [0, 1, 2]


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    found = report_of(loaded(unnamed(), tmp_path, symbol_server="http://127.0.0.1:9"))
    assert found["symbol_server_failed"] == 1
    with pytest.raises(traceferry.UsageError, match="not the address of a symbol server"):
        loaded(unnamed(), tmp_path, symbol_server="file:///etc/passwd")


def test_the_recorded_answer_of_a_server_names_a_profile_of_samply(monkeypatch: pytest.MonkeyPatch) -> None:
    from traceferry.importers.firefox.symbol_server import SymbolServer

    path = path_of({"file": "firefox/profiler--unsymbolicated.json.gz" if made.VIEWERS.exists() else ""})
    recorded = made.parsed(made.VIEWERS / "symbols" / "profiler--profiler-edit-symbol-server-response.json")
    of = {
        (frame["module"], int(frame["module_offset"], 16)): frame
        for result in recorded["results"]
        for frame in result["stacks"][0]
    }

    def answer(_: SymbolServer, body: bytes) -> Any:
        jobs = json.loads(body)["jobs"]
        stacks = [[of.get((job["memoryMap"][0][0], at), {}) for _, at in job["stacks"][0]] for job in jobs]
        return {"results": [{"stacks": [stack]} for stack in stacks]}

    monkeypatch.setattr(SymbolServer, "_post", answer)
    trace = load_checked(path, symbol_server="http://127.0.0.1:1")
    names = {trace.func_name(func) for func in trace.frames["func"].tolist()}
    assert names >= {frame["function"] for frame in of.values()}
    assert "not_symbolicated" not in report_of(trace)


def test_samplys_file_of_names_beside_a_profile(tmp_path: Path) -> None:
    sidecar = {
        "string_table": ["demo", "outer", "inlined", "b.c"],
        "data": [{
            "debug_name": "demo", "debug_id": "0" * 32 + "A", "code_id": None, "known_addresses": [[16, 0]],
            "symbol_table": [{"rva": 8, "size": 12, "symbol": 1, "frames": [
                {"function": 2, "file": 3, "line": 7}, {"function": 1, "file": 3, "line": 9}]}],
        }],
    }  # fmt: skip
    (tmp_path / "p.json.syms.json").write_text(json.dumps(sidecar))
    trace = loaded(unnamed(), tmp_path)
    data = trace.threads[0][1].load(trace)
    assert made.func_path(trace, int(data.samples["stack"][1])) == ("outer", "inlined")
    assert report_of(trace)["not_symbolicated"] == 1  # the sample in 0x20


# ---------------------------------------------------------------- what is refused


def broken(**members: Any) -> dict[str, Any]:
    given = profile()
    for name, value in members.items():
        given["threads"][0][name] = value
    return given


REFUSED: dict[str, tuple[Any, str, str]] = {
    "newer": (profile(77), "written for version 77 of the Firefox Profiler; this reads up to 75",
              "meta.preprocessedProfileVersion"),
    "newer gecko": (made.gecko(37), "written for version 37", "meta.version"),
    "older gecko": (made.gecko(2), "before version 3", "meta.version"),
    "Cleopatra": ({"profileJSON": {}}, "before version 3", "profileJSON"),
    "no threads": ({"meta": {"preprocessedProfileVersion": 49}}, "threads is missing", "threads"),
    "threads no list": ({"meta": {}, "threads": {}}, "threads is no list", "threads"),
    "no stacks": (broken(stackTable=None), r"threads\[0\].stackTable", "threads"),
    "stacks no lists": (broken(stackTable={"frame": 3, "prefix": 4}), r"threads\[0\].stackTable.frame is no list", ""),
    "lengths": (broken(stackTable={"frame": [0, 1, 2], "prefix": [None, 0]}),
                r"threads\[0\].stackTable.prefix has 2 values, another column 3", "threads"),
    "cut": (json.dumps(profile()).encode()[:-20], "ends too early .line 1, column", ""),
    "nested": (b'{"meta": {}, "threads": ' + b"[" * 200, "nested more than 128 levels", ""),
    "behind": (json.dumps(profile()).encode() + b"x", "behind the end", ""),
    "slabs": (made.packed_slabs([(10, b"{}")], 0, 2), "version 2 of JSLB", "JSLB"),
    "many slabs": (made.MAGIC + b"\1\0\0\0\xff\xff\xff\xff\0\0\0\0", "more than the file has room for", "JSLB"),
    "slab type": (made.packed_slabs([(11, b"{}")], 0), "slab 0: type 11", "slab 0"),
    "slab size": (made.packed_slabs([(10, b"{}"), (7, b"abc")], 0), "slab 1: its length, 3", "slab 1"),
    "slab cycle": (made.packed_slabs([(10, b'{"meta":{"$s":1},"threads":[]}'), (10, b'[{"$s":1}]')], 0),
                   "slab 1 refers to itself", "slab 1"),
    "slab behind": (made.MAGIC + struct.pack("<6I", 1, 1, 0, 10, 32, 99), "slab 0: it ends at 131, outside", "slab 0"),
    "slab between": (made.MAGIC + struct.pack("<6I", 1, 1, 0, 10, 33, 2) + b" {}  ", "slab 0: it begins at 33", "slab"),
    "slab depth": (made.packed_slabs(
        [(10, b'{"meta":{"$s":1},"threads":[]}')]
        + [(10, b'[{"$s":%d}]' % (nth + 2)) for nth in range(70)] + [(10, b"[]")], 0),
        "nested more than 64 levels", "slab"),
    "slab outside": (made.packed_slabs([(10, b'{"meta":{"$s":9},"threads":[]}')], 0), "no slab 9", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused(name: str, tmp_path: Path) -> None:
    content, message, record = REFUSED[name]
    with pytest.raises(FormatError, match=message) as error:
        loaded(content, tmp_path, format="firefox")
    assert error.value.offset is not None
    assert error.value.path.endswith("p.json")
    assert record in error.value.record


def test_rows_that_cannot_be_used_are_left_out_and_told(tmp_path: Path) -> None:
    given = profile(n_threads=2)
    one = given["threads"][0]
    one["samples"]["stack"] = [99, 0, None]
    one["stackTable"]["prefix"] = [2, 0, "x"]
    one["frameTable"]["func"][0] = -7
    given["threads"][1]["stackTable"] = None
    found = {issue.kind: issue for issue in loaded(given, tmp_path).report}
    places = ("stackTable.prefix", "samples.stack", "frameTable.func")
    assert all(any(place in detail for detail in found["bad_rows"].details) for place in places)


def test_a_column_without_values_is_none(tmp_path: Path) -> None:
    """As the viewer leaves them where it reads formats of others."""
    given = profile()
    given["threads"][0]["frameTable"]["inlineDepth"] = []
    given["threads"][0]["samples"]["eventDelay"] = []
    trace = loaded(given, tmp_path)
    assert not [issue for issue in trace.report if issue.kind in ("bad_rows", "members_not_read")]
    assert trace.frames["inline_depth"].tolist() == [0] * len(trace.frames)


@pytest.mark.parametrize(("weight", "left_out"), [([16, 0, 8], 0), ([16, None, 8], 1), ([], 3)])
def test_allocations_of_no_bytes_are_no_loss(weight: list[Any], left_out: int, tmp_path: Path) -> None:
    given = profile()
    table = {"time": [0, 1, 2], "weight": weight, "weightType": "bytes", "stack": [0, 1, 2], "length": 3}
    given["threads"][0]["nativeAllocations"] = table
    trace = loaded(given, tmp_path)
    assert sum(issue.count for issue in trace.report if issue.kind == "time_missing") == left_out
    found = trace.threads[0][1].load(trace).allocations["size"].tolist()
    assert found == [size for size in weight if size]


def test_lone_surrogates_and_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    given = profile()
    given["threads"][0]["stringArray"][0] = "SURROGATE"
    given["threads"][0]["stringArray"][1] = "BYTES"
    text = json.dumps(given).encode().replace(b"SURROGATE", rb"a\ud800b").replace(b"BYTES", b"c\xffd")
    trace = loaded(text, tmp_path)
    assert {trace.func_name(row) for row in range(len(trace.funcs))} >= {"a?b", "c�d"} - {"a?b"}


def test_json_of_others_is_not_taken_for_a_profile(tmp_path: Path) -> None:
    assert detect(Source("x.json", memoryview(b'{"traceEvents": []}'))).name == "perfetto"
    for content in ({"a": {"meta": 1, "threads": 2}}, [1, 2], {}):
        path = written(content, tmp_path / "x.json")
        with pytest.raises(FormatError, match="unrecognised input format"):
            load_checked(path)
    with pytest.raises(FormatError, match="JSON text with the members rows, samples"):
        load_checked(written({"rows": [], "samples": []}, tmp_path / "x.json"))


def test_members_in_any_order_are_found(tmp_path: Path) -> None:
    given = profile()
    text = json.dumps({"threads": given["threads"], "x": '"meta"{[', "libs": given["libs"], "meta": given["meta"]})
    source = Source("p.json", memoryview(text.encode()))
    assert detect(source).name == "firefox"
    assert list(members_seen(source.data)[0]) == ["threads", "x", "libs", "meta"]


LEAVES = st.none() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(VALUES, st.sampled_from([None, 1]))
@examples(200)
def test_where_values_are_is_where_a_parser_finds_them(value: Any, indent: int | None) -> None:
    text = JsonText(memoryview(json.dumps({"a": value, "b": [value, 1]}, indent=indent).encode()))
    members = text.members(text.root())
    assert text.parsed(members["a"]) == value
    assert [text.parsed(one) for one in text.elements(members["b"])] == [value, 1]


# ---------------------------------------------------------------- damage


def tried(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    try:
        trace = traceferry.load(path, options=LoadOptions(format="firefox"))
    except FormatError:
        return
    assert check(trace) == []


def small() -> dict[str, bytes]:
    return {
        "json": json.dumps(profile(n_threads=2)).encode(), "jslb": made.as_jslb(made.as_75(profile())),
        "gecko": json.dumps(made.gecko()).encode(),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["json", "jslb", "gecko"])
def test_cut_profiles_are_read_or_refused(name: str, tmp_path: Path) -> None:
    content = small()[name]
    for size in cuts(len(content), 97, 1):
        tried(content[:size], tmp_path / "p")


@pytest.mark.parametrize("name", ["json", "jslb", "gecko"])
def test_profiles_with_another_byte_are_read_or_refused(name: str, tmp_path: Path) -> None:
    content, chosen = bytearray(small()[name]), random.Random(31)
    for _ in range(150):
        at = chosen.randrange(len(content))
        before, content[at] = content[at], chosen.choice(b'09-"[]{},e.x\0\xff')
        tried(bytes(content), tmp_path / "p")
        content[at] = before


# ---------------------------------------------------------------- commands


def test_dump_tells_where_members_are(tmp_path: Path) -> None:
    content = json.dumps(profile()).encode()
    lines = list(importer_named("firefox").module.dump(Source("p", memoryview(content)), 0))
    at = content.index(b'["main"')
    assert any(line.startswith(f"{at:#010x}") and "threads[0].stringArray" in line for line in lines)


def names_of(trace: Trace) -> Counter[str]:
    return Counter(trace.func_name(row) for row in range(len(trace.funcs)))


INT64 = st.integers(-(1 << 62), (1 << 62) - 1)
NUMBERS = st.one_of(
    st.integers(-1, 3), st.just(1), st.integers(-(1 << 15), 1 << 15), st.integers(-(1 << 31), 1 << 31), INT64
)


@given(st.lists(st.tuples(INT64, NUMBERS, NUMBERS, NUMBERS), max_size=6))
@examples(300)
def test_samples_that_are_kept_are_the_same(rows: list[tuple[int, ...]]) -> None:
    ts, stack, weight, cpu_ns = np.array(rows, np.int64).reshape(-1, 4).T
    before = Rows(np.sort(ts), stack, weight, "samples", cpu_ns, 1, 2)
    after = KeptRows.of(before).rows()
    assert [np.asarray(one).tolist() for one in after] == [np.asarray(one).tolist() for one in before]
    assert {one.dtype for one in after if isinstance(one, np.ndarray)} == {np.dtype(np.int64)}


CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(), INT64, st.floats(allow_nan=False), st.sampled_from([0.0, -0.0]), st.text(),
    st.just({}),
)  # fmt: skip


@given(
    st.lists(CELLS, min_size=1, max_size=5) | st.lists(INT64, min_size=1) | st.lists(st.text() | st.none(), min_size=1)
)
@examples(300)
def test_values_of_markers_that_are_kept_are_the_same(values: list[Any]) -> None:
    kept = Cells.of(values)
    assert kept is None or list(map(repr, kept.listed(len(values)))) == list(map(repr, values))
    assert kept is not None or set(map(type, values)) not in ({float}, {str}, {str, type(None)})


def test_windows_of_markers_are_not_read_and_reported(tmp_path: Path) -> None:
    given = profile()
    given["threads"][0]["markers"]["data"][0] |= {"innerWindowID": 7}
    told = {issue.detail: issue.count for issue in loaded(given, tmp_path).report if issue.kind == "members_not_read"}
    assert told["fields innerWindowID"] == 1


def test_samples_that_are_not_kept_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = profile(n_threads=3)
    del given["threads"][1]["markers"]
    path = written(given, tmp_path / "profile.json")
    kept = contents(load_checked(path))
    monkeypatch.setattr(firefox_map, "MOST_KEPT", 0)
    assert contents(load_checked(path)) == kept


@pytest.mark.parametrize("suffix", [".json", ".pftrace", ".html", ".gecko.json"])
def test_profiles_are_converted(suffix: str, tmp_path: Path) -> None:
    source, target = written(profile(n_threads=2), tmp_path / "p.json"), tmp_path / f"out{suffix}"
    traceferry.convert(source, target)
    assert target.stat().st_size > 1000


# ---------------------------------------------------------------- back again


def written_again(trace: Trace, folder: Path) -> Trace:
    """The trace of the profile that is written of another; the input's name is the same."""
    folder.mkdir()
    traceferry.save(trace, folder / "again.json")
    return load_checked(folder / "again.json")


@pytest.mark.parametrize("entry", made.entries("firefox", "gecko"), ids=lambda entry: entry["file"])
def test_profiles_of_others_come_back_as_they_were_written(entry: dict[str, Any], tmp_path: Path) -> None:
    first = load_checked(path_of(entry))
    second = written_again(first, tmp_path / "2")
    third = written_again(second, tmp_path / "3")
    written_again(third, tmp_path / "4")
    assert totals(second) == totals(first)
    assert (tmp_path / "4" / "again.json").read_bytes() == (tmp_path / "3" / "again.json").read_bytes()


RECORDINGS = ["jit/php82/perf.data.zst", "jit/wasmtime/perf.data.zst", "jit/java17/perf.data.zst",
              "xray/clang-19/basic-c19-pie-recurse.xray", "xray/clang-19/fdr-c19-pie-pool-tsc.xray"]  # fmt: skip


@pytest.mark.parametrize("suffix", ["json", "jslb"])
@pytest.mark.parametrize("name", RECORDINGS)
def test_our_own_profiles_come_back_from_both_containers(name: str, suffix: str, tmp_path: Path) -> None:
    trace = load_checked(REPO / "fixtures" / name)
    traceferry.save(trace, tmp_path / f"again.{suffix}")
    assert contents(load_checked(tmp_path / f"again.{suffix}")) == contents(trace)


def with_call_markers(**arguments: Any) -> dict[str, Any]:
    """A profile of ours in which markers give a call these arguments."""
    root = profile(60, 3, importedFrom="traceferry")
    call = [{"key": "function", "format": "string"}, {"key": "arg0", "format": "string"},
            {"key": "size", "format": "bytes", "traceferry": "bytes"}]  # fmt: skip
    root["meta"] |= {
        "extra": [{"label": "traceferry", "entries": [{"label": "version", "value": "1"}]}],
        "markerSchema": [{"name": "Call", "display": [], "fields": call, "traceferry": {"kind": "call"}}],
    }
    thread = root["threads"][0]
    thread["samples"] |= {"time": [0, 1, 2, 3], "weight": [1, 1, 1, 1], "weightType": "tracing-ms"}
    thread["markers"] |= {"startTime": [0, 1], "endTime": [1, 2], "phase": [1, 1], "name": [0, 0], "category": [0, 0],
                          "data": [{"type": "Call", "function": "main", **arguments}] * 2, "length": 2}  # fmt: skip
    return root


def test_a_call_marker_without_arguments_has_none(tmp_path: Path) -> None:
    trace = loaded(with_call_markers(), tmp_path)
    assert [len(one.load(trace).arguments) for _, one in trace.threads] == [0] * len(trace.threads)


@pytest.mark.parametrize(("size", "shown"), [(4, [("bytes", 4, "")]), ({"stack": 1}, [("", 0, "{'stack': 1}")])])
def test_an_argument_that_is_no_number_of_its_format_is_text(size: Any, shown: list[Any], tmp_path: Path) -> None:
    trace = loaded(with_call_markers(size=size), tmp_path)
    data = next(one.load(trace) for _, one in trace.threads)
    strings = [*(data.trace.strings[row] for row in range(len(data.trace.strings))), ""]
    columns = (data.arguments[name].tolist() for name in ("format", "value", "text"))
    found = [(strings[form], value, strings[text]) for form, value, text in zip(*columns, strict=True)]
    assert found == shown


def contents(trace: Trace) -> dict[Any, Any]:
    """By thread: lifetime, samples by call path, time in functions, allocations."""
    found: dict[Any, Any] = {}
    for process, thread in trace.threads:
        data = thread.load(trace)
        samples: Counter[Any] = Counter()
        for table in (data.samples, *data.other_samples.values()):
            columns = (table[column].tolist() for column in ("stack", "cpu_ns"))
            for stack, cpu in zip(*columns, strict=True):
                samples[made.func_path(data.trace, stack), cpu] += 1
        times: Counter[str] = Counter()
        for call in calls_of(data.trace, data):
            times[call.name] += call.end - call.start
        number = "" if thread.sample_unit else thread.tid
        life = thread.start_ts - trace.start_ts, thread.end_ts - trace.start_ts
        found[process.pid, number, thread.name] = (life, samples, +times, len(data.allocations))
    return found
