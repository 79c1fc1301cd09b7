"""Perfetto traces as inputs, through trace_processor: its tables and the model agree."""

import json
import os
import re
import shutil
import struct
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from conftest import load_checked, one_in, or_skipped
from recordings import SHARED
from support import extract
from test_perf_scheduling import LIB, PID, SLEEP, A, B, Recorded
from test_perf_scheduling import START as SCHED_START
from test_perfetto_samples import END as BUILT_END
from test_perfetto_samples import START as BUILT_START
from test_perfetto_samples import Built, scheduling_of

import traceferry
from traceferry.analysis.info.summary import summarize
from traceferry.apps.cli import main
from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.importers import perfetto
from traceferry.importers.perfetto.chrome_json import merged_threads, other_numbers
from traceferry.importers.perfetto.states import LOG, WAIT
from traceferry.model import (
    COUNTER_VALUES,
    LEAVE,
    OPEN_AT_END,
    PREEMPTED,
    RUNNING,
    UNKNOWN,
    WAITING,
    Process,
    Table,
    Thread,
    ThreadData,
    Trace,
    TraceBuilder,
)
from traceferry.model import Counter as Counted
from traceferry.model.laws import check, pairs
from traceferry.reading import LoadOptions
from traceferry.timeline.off_cpu import Durations, durations
from traceferry.trace_processor.engine import VARIABLE, find_engine
from traceferry.trace_processor.session import Session

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
OURS = [
    "xray/clang-19/fdr-c19-pie-pool-tsc.xray",
    "jit/php82/perf.data.zst",
    "mono/mono-6.8/heap.mlpd.zst",
]
VIEWERS = SHARED / "captures" / "viewers"
# It has an event CpuProfile, which the engine takes for an instant.
WITH_WHOLE_PROFILE = "test.chrome-unchunked.json"
# The last one has nothing that trace_processor reads: see test_hermes.py.
NO_TRACES = ("dhat.json.gz", "graphviz.perf.gz", "simple-with-samples.json")


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips where there is no trace_processor."""
    named = os.environ.get("PERFETTO_TP_BIN") or shutil.which("trace_processor_shell")
    pytest.importorskip("perfetto", reason="the package perfetto is not installed")
    if not named:
        pytest.skip("no trace_processor_shell in PATH; set PERFETTO_TP_BIN")
    monkeypatch.setenv(VARIABLE, named)


OLD_PHASE = re.compile(rb'("ph"\s*:\s*)"([SF])"')
# The tracks of threads that clang -ftime-trace makes up for its totals, which are no calls.
TOTALS = "SELECT track_id FROM slice WHERE name GLOB 'Total *' AND extract_arg(arg_set_id, 'args.avg ms') IS NOT NULL"
# Of a thread, the first of these that has slices has its calls: of its own two, that with more.
CALL_TRACKS = f"""SELECT id FROM (
  SELECT t.id, row_number() OVER (
    PARTITION BY utid ORDER BY type = 'thread_funcgraph', type = 'art_method_tracing', n DESC, type
  ) AS nth FROM thread_track t JOIN (SELECT track_id, count(*) AS n FROM slice GROUP BY 1) ON track_id = t.id
  WHERE type IN ('thread_execution', 'art_method_tracing', 'thread_funcgraph')
  OR (type = 'thread_track_event' AND extract_arg(source_arg_set_id, 'is_root_in_scope'))
) WHERE nth = 1 AND id NOT IN ({TOTALS})"""
# What the model has, and the question that trace_processor answers with the same number.
QUESTIONS = {
    "slices": "SELECT count(*) AS n FROM slice",
    "flows": "SELECT count(*) AS n FROM (SELECT slice_out AS id FROM flow UNION SELECT slice_in FROM flow) "
    "JOIN slice USING (id)",
    "samples": "SELECT count(*) AS n FROM stack_sample",
    "values of counters": "SELECT count(*) AS n FROM counter c JOIN counter_track t ON t.id = c.track_id "
    "WHERE abs(value) < 1e308 AND t.type != 'stack_sample_session_counter'",
    "time of calls": f"SELECT sum(dur) AS n FROM slice WHERE track_id IN ({CALL_TRACKS}) AND dur > 0",
    "scheduling": "SELECT count(*) AS n FROM (SELECT *, lag(state) OVER (PARTITION BY utid ORDER BY ts, id) AS before "
    "FROM thread_state WHERE utid != 0 AND ts IS NOT NULL) JOIN thread t USING (utid) "
    "WHERE coalesce(state, '') NOT IN ('', 'Unknown', 'Created') AND NOT coalesce(t.is_idle, 0) "
    "AND NOT (state IN ('X', 'Z') AND coalesce(before, '') IN ('X', 'Z'))",
    "time on processors": "SELECT sum(iif(dur < 0, trace_end() - ts, dur)) AS n FROM thread_state s "
    "JOIN thread t USING (utid) WHERE state = 'Running' AND utid != 0 AND NOT coalesce(t.is_idle, 0)",
    "states": "SELECT count(*) AS n FROM state WHERE value != ''",
    "log": "SELECT count(*) AS n FROM android_logs",
    "objects": "SELECT count(*) AS n FROM heap_graph_object",
    "bytes of objects": "SELECT sum(self_size) AS n FROM heap_graph_object",
    "references": "SELECT count(*) AS n FROM heap_graph_reference WHERE owned_id IS NOT NULL",
    "roots": "SELECT count(*) AS n FROM heap_graph_object WHERE root_type IS NOT NULL",
    "allocated": "SELECT sum(size) AS n FROM heap_profile_allocation WHERE size > 0",
    "scripts": "SELECT count(DISTINCT name || source) AS n FROM __intrinsic_v8_js_script WHERE source IS NOT NULL",
}


def amounts_of(trace: Trace) -> Counter[str]:
    found: Counter[str] = Counter()
    for process, thread in trace.threads:
        data = thread.load(trace)
        if thread.sample_unit:
            found["allocated"] += int(data.samples["weight"].sum()) * thread.name.startswith("allocated memory")
            found["samples"] += 0 if " memory of " in thread.name else len(data.samples)
            continue
        leaves = (data.calls["flags"] & LEAVE) != 0
        logs = data.markers.get(LOG, [])
        found["log"] += len(logs)
        found["slices"] += int((~leaves).sum()) + sum(map(len, data.markers.values())) - len(logs)
        found["flows"] += sum(np.count_nonzero(table["flow"]) for table in (data.arguments, *data.markers.values()))
        found["samples"] += len(data.allocations)
        for row, samples in {0: data.samples, **data.other_samples}.items():
            event = trace.events[row].plain_name if row < len(trace.events) else ""
            is_heap = " memory of " in event or " objects of " in event
            found["allocated"] += int(samples["weight"].sum()) * event.startswith("allocated memory of ")
            found["samples"] += 0 if is_heap or process.name.endswith("_file") else len(samples)
        enters, ends = pairs(leaves)
        is_ended = data.calls["flags"][ends] & OPEN_AT_END == 0
        found["time of calls"] += int((data.calls["ts"][ends] - data.calls["ts"][enters])[is_ended].sum())
        found["scheduling"] += int((data.scheduling["state"] != UNKNOWN).sum())
        found["time on processors"] += running_ns(data.scheduling, trace.end_ts)
        is_wait = [trace.strings[int(track)] == WAIT for track in data.states["track"]]
        found["states"] += int(((data.states["value"] >= 0) & ~np.array(is_wait, bool)).sum())
    for process in trace.processes:
        found["values of counters"] += sum(len(counter.values) for counter in process.counters)
        for snapshot in process.heap_snapshots:
            graph = snapshot.load(trace.opened())
            found["objects"] += len(graph.objects)
            found["bytes of objects"] += int(graph.objects["size"].sum())
            found["references"] += len(graph.references)
            found["roots"] += len(graph.roots)
    found["scripts"] = int((trace.sources["text"] >= 0).sum())
    return found


def running_ns(scheduling: Table, end_ts: int) -> int:
    """How long a thread ran: each of its rows lasts until the next, or to the end."""
    lasts = np.diff(scheduling["ts"], append=end_ts)
    return int(lasts[scheduling["state"] == RUNNING].sum())


def as_the_engine_reads(path: Path, folder: Path) -> Path:
    """A trace of Chrome in which events that last have the phases that the engine knows."""
    if path.suffix != ".json" or not OLD_PHASE.search(text := path.read_bytes()):
        return path
    copy = folder / "known_phases.json"
    copy.write_bytes(OLD_PHASE.sub(lambda found: found[1] + (b'"b"' if found[2] == b"S" else b'"e"'), text))
    return copy


def compare(path: Path, folder: Path) -> None:
    """Some of the files are also read without the engine."""
    trace = traceferry.load(path, options=LoadOptions(format="perfetto"))
    assert check(trace) == []
    found = amounts_of(trace)
    with Session(find_engine(), as_the_engine_reads(path, folder)) as session:
        asked = {name: int(session.query(sql)["n"].numbers()[0]) for name, sql in QUESTIONS.items()}
    if path.name.endswith(WITH_WHOLE_PROFILE):
        asked["samples"], asked["slices"] = 20, asked["slices"] - 1
    assert {name: found[name] for name in QUESTIONS} == asked, path.parent.name


@pytest.mark.parametrize("recording", OURS)
def test_traces_of_ours(recording: str, tmp_path: Path) -> None:
    compare(traceferry_trace(FIXTURES / recording, tmp_path), tmp_path)


def traceferry_trace(recording: Path, folder: Path) -> Path:
    traceferry.convert(recording, folder / "x.pftrace")
    return folder / "x.pftrace"


@pytest.mark.parametrize("kind", ["perfetto", "chrome-json", "other"])
def test_traces_of_others(kind: str, tmp_path: Path) -> None:
    if not VIEWERS.exists():
        pytest.skip(f"{VIEWERS} is absent")
    paths = sorted(path for path in (VIEWERS / kind).iterdir() if not path.name.endswith(NO_TRACES))
    assert paths
    for path in paths:
        compare(path, tmp_path)


LARGE = 250_000  # bytes; their conversions take seconds
# Fields that are nested have others' names when they come back.
NESTED = ("lighthouse--blocking-time-trace.json.gz", "lighthouse--traces-cutoff-load-m83.trace.json")
# Of states of a thread that overlap, times are cut.
OVERLAPPING = {"systing--trace.pb": {"scheduling", "time on processors"}}


def foreign() -> list[Any]:
    """One in two runs each time, the others with those marked large: each takes the engine three times."""
    kinds = ("perfetto", "chrome-json", "other") if VIEWERS.exists() else ()
    paths = [path for kind in kinds for path in sorted((VIEWERS / kind).iterdir())]
    cases = [
        pytest.param(path, id=path.name, marks=[pytest.mark.large] if path.stat().st_size > LARGE else [])
        for path in paths
        if not path.name.endswith(NO_TRACES)
    ]
    return one_in(2, cases)


@pytest.mark.parametrize("path", or_skipped(foreign()))
def test_traces_of_others_come_back_as_they_were_written(path: Path, tmp_path: Path) -> None:
    def written_again(trace: Trace, name: str) -> Path:
        (tmp_path / name).mkdir()
        traceferry.save(trace, tmp_path / name / "again.pftrace")
        return tmp_path / name / "again.pftrace"

    first = traceferry.load(path)
    second = traceferry.load(written_again(first, "1"))
    amounts, expected = amounts_of(second), amounts_of(first)
    left_out = OVERLAPPING.get(path.name, set())
    assert {k: amounts[k] for k in expected.keys() - left_out} == {k: expected[k] for k in expected.keys() - left_out}
    again = written_again(second, "2")
    third = written_again(traceferry.load(again), "3")
    assert path.name in NESTED or third.read_bytes() == again.read_bytes()


def test_who_ran_on_a_processor_is_who_did(tmp_path: Path) -> None:
    """Though the trace has tracks of processors, whose numbers are those of threads, too."""
    path = VIEWERS / "perfetto" / "systing--trace.pb"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    trace = traceferry.load(path)
    tids = [thread.tid for process, thread in trace.threads if process.name != "CPUs"]
    assert not {thread.tid for process, thread in trace.threads if process.name == "CPUs"} & {*tids}
    traceferry.save(trace, tmp_path / "x.pftrace")
    asked = (
        "SELECT t.name AS name, tid, pid, count(*) AS n FROM sched "
        "JOIN thread t USING (utid) JOIN process USING (upid) WHERE utid != 0 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
    )
    found = []
    for one in (path, tmp_path / "x.pftrace"):
        with Session(find_engine(), one) as session:
            answer = session.query(asked)
        numbers = (answer[name].numbers().tolist() for name in ("tid", "pid", "n"))
        found.append([*zip(answer["name"].texts(), *numbers, strict=True)])
    assert found[0] == found[1] != []


CASES = 12
REST = [pytest.param(nth, marks=pytest.mark.large) for nth in range(1, CASES)]


@pytest.mark.parametrize("nth", [0, *REST])
def test_cases_of_perfettos_own_tests(nth: int, tmp_path: Path) -> None:
    """Every case whose trace is not empty, which those of SQL alone have."""
    archive = VIEWERS / "perfetto-difftests" / "difftests.tar.gz"
    if not archive.exists():
        pytest.skip(f"{archive} is absent")
    extract(archive, tmp_path)
    paths = sorted(path for path in tmp_path.glob("*/trace*") if path.stat().st_size)
    for path in (path for path in paths[nth::CASES] if "unknown_trace_type" not in path.parent.name):
        compare(path, tmp_path)


def test_calls_come_back_with_their_time(tmp_path: Path) -> None:
    """What `info` says of a recording, it says of the Perfetto trace of it."""
    path = FIXTURES / OURS[0]
    before = summarize(traceferry.load(path), top=1 << 20)["functions"]["top"]
    after = summarize(traceferry.load(traceferry_trace(path, tmp_path)), top=1 << 20)["functions"]["top"]
    names = ("calls", "self_ns", "total_ns")
    assert {f["name"]: [f[n] for n in names] for f in after} == {f["name"]: [f[n] for n in names] for f in before}


def test_sources_and_views_come_back(tmp_path: Path) -> None:
    """Functions have their files and lines, threads their numbers and names, views of sizes are views."""
    path = FIXTURES / OURS[1]
    before, after = traceferry.load(path), traceferry.load(traceferry_trace(path, tmp_path))
    sizes = [
        Counter({thread.name: int(thread.load(trace).samples["weight"].sum()) for _, thread in trace.threads})
        for trace in (before, after)
    ]
    assert sizes[0]["code size"] > 0
    assert sizes[1] == sizes[0]
    assert [event.unit for event in after.events] == [event.unit for event in before.events]


def test_lines_come_back(tmp_path: Path) -> None:
    path, program = FIXTURES / OURS[0], tmp_path / "pool-pie"
    program.write_bytes(zstandard.ZstdDecompressor().decompress((path.parent / "pool-pie.zst").read_bytes()))
    traceferry.convert(path, tmp_path / "x.pftrace", symbols=[program])

    def functions_of(trace: Trace) -> set[tuple[Any, ...]]:
        top = summarize(trace, top=1 << 20)["functions"]["top"]
        return {tuple(f[name] for name in ("name", "file", "line", "calls", "self_ns", "total_ns")) for f in top}

    before = functions_of(traceferry.load(path, symbols=[program]))
    assert any(line for _, _, line, *_ in before)
    assert functions_of(traceferry.load(tmp_path / "x.pftrace")) == before


def test_categories_and_the_interval_come_back(tmp_path: Path) -> None:
    def leaves_of(trace: Trace) -> Counter[Any]:
        found: Counter[Any] = Counter()
        for _, thread in trace.threads:
            stacks = thread.load(trace).samples["stack"] if not thread.sample_unit else np.zeros(0, np.int32)
            for frame in trace.stacks["frame"][stacks[stacks >= 0]].tolist():
                func, category = (int(trace.frames[name][frame]) for name in ("func", "category"))
                is_js = bool(trace.funcs["is_js"][func])
                name = trace.strings[int(trace.categories["name"][category])] if category >= 0 else ""
                # Without an address nothing tells, nor does the name of a file what its folder did.
                has_place = trace.frames["address"][frame] >= 0 and not trace.func_name(func).startswith("ffi.so")
                found[trace.func_name(func), is_js, name if has_place else ""] += 1
        return found

    path = FIXTURES / OURS[1]
    before, after = traceferry.load(path), traceferry.load(traceferry_trace(path, tmp_path))
    expected = leaves_of(before)
    assert {name for *_, name in expected} >= {"Kernel", "Runtime", "System library", "PHP"}
    assert leaves_of(after) == expected
    assert after.events[0].interval_ns == before.events[0].interval_ns > 0


def test_samples_come_back(tmp_path: Path) -> None:
    path = FIXTURES / OURS[1]

    def samples_of(trace: Trace) -> Counter[str]:
        top = summarize(trace, top=1 << 20)["functions"]["top"]
        return Counter({f["name"]: f["samples"] for f in top if f["samples"] and "without a name" not in f["name"]})

    after = samples_of(traceferry.load(traceferry_trace(path, tmp_path)))
    assert {name: n for name, n in samples_of(traceferry.load(path)).items() if after[name] != n} == {}


CHROME = {
    "traceEvents": [
        {"name": "process_name", "ph": "M", "pid": 7, "tid": 8, "args": {"name": "app"}},
        {"name": "thread_name", "ph": "M", "pid": 7, "tid": 8, "args": {"name": "worker"}},
        {"name": "outer", "cat": "c", "ph": "X", "ts": 10, "dur": 100, "pid": 7, "tid": 8, "args": {"n": 5, "s": "x"}},
        {"name": "inner", "cat": "c", "ph": "X", "ts": 20, "dur": 30, "pid": 7, "tid": 8},
        {"name": "tick", "ph": "i", "ts": 25, "pid": 7, "tid": 8, "s": "t"},
        {"name": "load", "ph": "b", "cat": "net", "id": 1, "ts": 5, "pid": 7, "tid": 8},
        {"name": "load", "ph": "e", "cat": "net", "id": 1, "ts": 95, "pid": 7, "tid": 8},
        {"name": "memory", "ph": "C", "ts": 30, "pid": 7, "args": {"bytes": 12}},
    ]
}


@pytest.mark.parametrize("value", [CHROME, CHROME["traceEvents"]], ids=["object", "list"])
def test_chrome_json(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "chrome.json"
    path.write_text(json.dumps(value))
    trace = traceferry.load(path)
    assert check(trace) == []
    assert [i.format for i in trace.inputs] == ["perfetto"]
    ((process, thread),) = [(p, t) for p, t in trace.threads if t.name == "worker"]
    assert (process.pid, process.name, thread.tid) == (7, "app", 8)
    data = thread.load(trace)
    names = [trace.func_name(int(f)) for f in trace.frames["func"][data.calls["frame"]]]
    assert names == ["outer", "inner", "inner", "outer"]
    assert np.diff(data.calls["ts"]).tolist() == [10_000, 30_000, 60_000]
    keys = [trace.strings[int(key)] for key in data.arguments["key"]]
    assert {key.split(".")[-1] for key in keys} == {"n", "s"}
    held = {kind.name: table for _, t in trace.threads for kind, table in t.load(trace).markers.items()}
    marked = sorted(
        (name, int(dur)) for table in held.values() for name, dur in zip(table["name"], table["dur"], strict=True)
    )
    assert marked == [("load", 90_000), ("tick", 0)]
    counters = [(c.name, c.values["value"].tolist()) for p in trace.processes for c in p.counters]
    assert [(name.split()[0], values) for name, values in counters] == [("memory", [12.0])]


CUTS = {
    "in an event of a list": ("[", b'", "pid"', True),
    "between two of a list": ("[", b", {", False),
    "behind the comma": ("[", b"{", False),
    "in an event of an object": ("{", b'", "pid"', True),
    "between two of an object": ("{", b", {", True),
    "behind the events": ("{", b'"a"', True),
}


@pytest.mark.parametrize("is_marked", [False, True])
@pytest.mark.parametrize(("kind", "before", "is_cut"), CUTS.values(), ids=CUTS)
def test_text_that_ends_too_early(kind: str, before: bytes, is_cut: bool, is_marked: bool, tmp_path: Path) -> None:
    """What is whole is read. A list of events may end without its bracket, and nothing is missing then."""
    events = [{"name": f"f{nth}", "pid": 7, "tid": 7, "ph": "X", "ts": 10 * nth, "dur": 5} for nth in range(3)]
    text = json.dumps(events if kind == "[" else {"traceEvents": events, "metadata": {"a": 1}}).encode()
    cut = text[: text.rindex(before)]
    (tmp_path / "x.json").write_bytes(b"\xef\xbb\xbf" * is_marked + cut)
    trace = load_checked(tmp_path / "x.json")
    n_calls = sum(len(thread.load(trace).calls) // 2 for _, thread in trace.threads)
    assert n_calls == min(cut.count(b"}"), 3)
    told = [issue.offset for issue in trace.report if issue.kind == "truncated"]
    assert bool(told) == is_cut
    if before == b'", "pid"':
        assert cut[told[0] - 3 * is_marked :].startswith(b'{"name": "f2')


def test_values_of_counters_that_are_no_numbers_are_told(tmp_path: Path) -> None:
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="no package perfetto")
    made = protos.Trace()
    track = made.packet.add(trusted_packet_sequence_id=1, timestamp=1000).track_descriptor
    track.uuid, track.name = 5, "load"
    track.counter.SetInParent()
    for nth, value in enumerate([1.5, float("nan"), float("inf"), 2.0]):
        event = made.packet.add(trusted_packet_sequence_id=1, timestamp=2000 + nth).track_event
        event.type, event.track_uuid, event.double_counter_value = 4, 5, value
    (tmp_path / "x.pftrace").write_bytes(made.SerializeToString())
    trace = load_checked(tmp_path / "x.pftrace")
    assert [counter.values["value"].tolist() for p in trace.processes for counter in p.counters] == [[1.5, 2.0]]
    told = [(issue.detail, issue.count) for issue in trace.report if issue.kind == "values_not_finite"]
    assert told == [("load (2 of 4)", 2)]


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")], ids=["short", "long"])
def test_phases_of_old_of_events_that_last(separators: tuple[str, str], tmp_path: Path) -> None:
    """They are in each other, or overlap and have numbers of their own. Texts that look like phases stay."""
    common = {"pid": 7, "tid": 7, "cat": "c", "args": {"x": "S"}}
    told = [("S", "a", 1, 1), ("S", "b", 1, 2), ("S", "c", 2, 3), ("F", "b", 1, 5), ("F", "a", 1, 8), ("F", "c", 2, 9)]
    events = [common | {"ph": phase, "name": name, "id": number, "ts": ts} for phase, name, number, ts in told]
    (tmp_path / "x.json").write_text(json.dumps(events, separators=separators))
    trace = load_checked(tmp_path / "x.json")
    held = [table for _, thread in trace.threads for table in thread.load(trace).markers.values()]
    rows = [row for table in held for row in zip(table["name"], table["dur"].tolist(), table["args.x"], strict=True)]
    assert sorted(rows) == [("a", 7000, "S"), ("b", 3000, "S"), ("c", 6000, "S")]


def test_totals_of_clang_are_no_calls(tmp_path: Path) -> None:
    """Each is an event of a thread that clang makes up; a function that is called so, and has callers, is one."""
    total = {"ph": "X", "pid": 7, "ts": 0, "args": {"count": 2, "avg ms": 1}}
    call = {"ph": "X", "pid": 7, "tid": 7, "ts": 1, "dur": 50}
    events = [
        {"ph": "M", "name": "thread_name", "pid": 7, "tid": 7, "args": {"name": "clang"}},
        call | {"name": "Source", "args": {"detail": "a.h"}}, call | {"name": "Total work", "ts": 9, "dur": 5},
        total | {"tid": 8, "dur": 50, "name": "Total Source"}, total | {"tid": 9, "dur": 5, "name": "Total work"},
    ]  # fmt: skip
    (tmp_path / "x.json").write_text(json.dumps({"traceEvents": events, "beginningOfTime": 1}))
    trace = load_checked(tmp_path / "x.json")
    summary = summarize(trace)
    assert [(thread.name, len(thread.load(trace).calls)) for _, thread in trace.threads] == [("clang", 4)]
    assert {row["name"]: row["calls"] for row in summary["functions"]["top"]} == {"Source": 1, "Total work": 1}
    ((kind, rows),) = [(row["type"], row["top"]) for row in summary["markers"]]
    assert (kind, sorted(row["by"]["name"] for row in rows)) == ("totals", ["Total Source", "Total work"])


def test_linkage_names_of_slices_are_shown_as_people_write_them(tmp_path: Path) -> None:
    begun = {"ph": "X", "pid": 1, "tid": 1, "dur": 5}
    (tmp_path / "x.json").write_text(json.dumps([{"name": "_ZN3foo3barEi", "ts": 1} | begun]))
    trace = load_checked(tmp_path / "x.json")
    assert [trace.func_name(func) for func in trace.frames["func"].tolist()] == ["foo::bar(int)"]


def art_trace(calls: list[tuple[int, int, int, int]]) -> bytes:
    """A trace of ART, version 2. calls: thread, method, 0 for enter and 1 for leave, µs."""
    text = "*version\n2\nclock=wall\nelapsed-time-usec=900\nvm=art\npid=70\n*threads\n70\tmain\n75\tworker\n*methods\n"
    text += "".join(f"{number * 4:#x}\ta.B\tm{number}\t()V\tB.java\n" for number in range(4)) + "*end\n"
    head = struct.pack("<4sHHQ", b"SLOW", 2, 32, 1_000_000).ljust(32, b"\0")
    return text.encode() + head + b"".join(struct.pack("<HII", tid, m * 4 + kind, at) for tid, m, kind, at in calls)


def test_methods_of_java_are_calls_of_one_process(tmp_path: Path) -> None:
    """The recorder names no process: its threads would be one each, and calls no call tree."""
    path = tmp_path / "app.trace"
    path.write_bytes(
        art_trace([(70, 1, 0, 0), (70, 2, 0, 10), (75, 3, 0, 20), (70, 2, 1, 40), (75, 3, 1, 50), (70, 1, 1, 90)])
    )
    trace = load_checked(path)
    (process,) = trace.processes
    assert (process.pid, process.name) == (70, "app")
    assert [(thread.tid, thread.name, thread.is_main) for thread in process.threads] == [
        (70, "main", True),
        (75, "worker", False),
    ]
    data = process.threads[0].load(trace)
    names = [trace.func_name(int(func)) for func in trace.frames["func"][data.calls["frame"]]]
    assert names == ["a.B.m1: ()V", "a.B.m2: ()V", "a.B.m2: ()V", "a.B.m1: ()V"]
    assert np.diff(data.calls["ts"]).tolist() == [10_000, 30_000, 50_000]
    assert not any(map(len, data.markers.values()))
    compare(path, tmp_path)


def test_what_is_of_no_process_is_no_threads(tmp_path: Path) -> None:
    """Threads of which no process is known do not get what belongs to processors."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2

    recorded = perfetto_trace_pb2.Trace()
    packet = recorded.packet.add(trusted_packet_sequence_id=1)
    packet.ftrace_events.cpu = 0
    add = packet.ftrace_events.event.add
    switch = add(timestamp=1000, pid=12).sched_switch
    switch.prev_comm, switch.prev_pid, switch.next_comm, switch.next_pid = "app", 12, "b", 13
    begin = add(timestamp=2000, pid=12).irq_handler_entry
    begin.irq, begin.name = 1, "disk"
    add(timestamp=3000, pid=12).irq_handler_exit.irq = 1
    (tmp_path / "x.pftrace").write_bytes(recorded.SerializeToString())
    trace = load_checked(tmp_path / "x.pftrace")
    marked = {(p.name, t.name): sum(map(len, t.load(trace).markers.values())) for p, t in trace.threads}
    assert {key: n for key, n in marked.items() if n} == {("CPUs", "CPU 0"): 1}
    assert {name for name, _ in marked} >= {"app", "b"}


@pytest.mark.parametrize("n_of_system", [1, 5])
def test_a_thread_whose_program_keeps_its_track_apart(n_of_system: int, tmp_path: Path) -> None:
    """As Chrome does. What the system says of the thread has a track beside it: the one with more slices has calls."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2

    recorded = perfetto_trace_pb2.Trace()
    track = recorded.packet.add(trusted_packet_sequence_id=1).track_descriptor
    track.uuid, track.disallow_merging_with_system_tracks = 5, True
    track.thread.pid, track.thread.tid, track.thread.thread_name = 70, 71, "CrRendererMain"
    inner = recorded.packet.add(trusted_packet_sequence_id=1).track_descriptor
    inner.uuid, inner.parent_uuid, inner.name = 6, 5, "Timers"
    for ts, uuid, kind, name in [
        (1000, 5, 1, "RunTask"), (2000, 5, 1, "v8.run"), (2500, 6, 1, "timer"), (3000, 6, 2, ""), (4000, 5, 2, ""),
        (9000, 5, 2, ""),
    ]:  # fmt: skip
        event = recorded.packet.add(trusted_packet_sequence_id=1, timestamp=ts).track_event
        event.track_uuid, event.type, event.name = uuid, kind, name
    for nth in range(n_of_system):
        packet = recorded.packet.add(trusted_packet_sequence_id=2)
        packet.ftrace_events.cpu = 0
        for ts, text in ((1000, f"B|70|system {nth}"), (1500, "E|70")):
            packet.ftrace_events.event.add(timestamp=ts + 1000 * nth, pid=71).print.buf = text
    path = tmp_path / "x.pftrace"
    path.write_bytes(recorded.SerializeToString())
    trace = load_checked(path)
    (data,) = [thread.load(trace) for _, thread in trace.threads if thread.tid == 71]
    calls = [trace.func_name(int(func)) for func in trace.frames["func"][data.calls["frame"]]]
    own = ["RunTask", "v8.run", "v8.run", "RunTask"]
    of_system = [f"system {nth // 2}" for nth in range(2 * n_of_system)]
    assert calls == (own if n_of_system == 1 else of_system)
    n_markers = {kind.name: len(table) for kind, table in data.markers.items()}
    assert n_markers.pop("Timers") == 1
    assert list(n_markers.values()) == [1 if n_of_system == 1 else 2]
    compare(path, tmp_path)


def test_packets_that_the_engine_skips_are_a_loss(tmp_path: Path) -> None:
    """They refer to what their sequence has lost. It calls that a notice."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2

    recorded = perfetto_trace_pb2.Trace()
    track = recorded.packet.add(trusted_packet_sequence_id=1).track_descriptor
    track.uuid, track.thread.pid, track.thread.tid = 5, 70, 71
    for sequence, flags, name in ((1, 1, "kept"), (9, 2, "skipped")):
        packet = recorded.packet.add(trusted_packet_sequence_id=sequence, timestamp=1000, sequence_flags=flags)
        packet.track_event.track_uuid, packet.track_event.type, packet.track_event.name = 5, 3, name
    (tmp_path / "x.pftrace").write_bytes(recorded.SerializeToString())
    (issue,) = (issue for issue in load_checked(tmp_path / "x.pftrace").report if issue.severity == "loss")
    assert (issue.kind, issue.count) == ("engine_reported", 1)
    assert issue.detail == "packet_skipped_seq_needs_incremental_state_invalid (9)"  # the sequence


def test_the_first_event_that_the_engine_could_not_read_is_named(tmp_path: Path) -> None:
    events = [{"ph": "X", "ts": 1, "dur": 4, "pid": 1, "tid": 1, "name": "f"}, {"ts": 1, "pid": 1, "name": "g: h"}]
    (tmp_path / "trace.json").write_text(json.dumps(events))
    (issue,) = load_checked(tmp_path / "trace.json").report
    assert (issue.kind, issue.count) == ("engine_reported", 1)
    assert issue.detail == 'json_tokenizer_failure ({"ts": 1, "pid": 1, "name": "g: h"})'


MAIN, ZERO = {"ph": "X", "pid": 7, "tid": 7}, {"ph": "X", "pid": 7, "tid": 0}


@pytest.mark.parametrize(
    ("events", "are_merged"),
    [
        ([ZERO, MAIN], True),
        ([MAIN, ZERO | {"args": {"tid": 5, "at": {"pid": 1}}}], True),
        ([ZERO | {"name": 'a "tid": 3 }{'}, MAIN], True),
        ([MAIN | {"ph": "B"}, *[ZERO | {"ph": "M", "name": "thread_name"}] * 3], False),
        ([ZERO, MAIN | {"ph": "M", "name": "thread_name"}], False),
        ([ZERO, MAIN | {"pid": 8}], False),
        ([ZERO | {"pid": 0}, MAIN], False),
        ([ZERO, MAIN | {"tid": 70}], False),
        ([{"ph": "X", "pid": 7, "args": {"tid": 0}}, MAIN], False),
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), None], ids=["short", "long", "indented"])
def test_threads_that_the_engine_takes_for_one(
    separators: tuple[str, str] | None, events: list[dict[str, Any]], are_merged: bool
) -> None:
    """It reads 0 as the number of the process."""
    made = [{"name": "f", "ts": nth, "dur": 1} | event for nth, event in enumerate(events)]
    text = json.dumps({"traceEvents": made}, separators=separators, indent=None if separators else 1)
    assert merged_threads(memoryview(text.encode())) == [7] * are_merged


LARGE = 140563198204800  # of pthread_self()
NAMED = {"ph": "M", "name": "thread_name", "args": {"name": "C"}}


@pytest.mark.parametrize(
    ("events", "threads"),
    [
        (
            [MAIN | {"tid": LARGE}, MAIN | {"tid": LARGE + 256}, MAIN],
            {f"thread {LARGE}", f"thread {LARGE + 256}", "main"},
        ),
        ([MAIN | {"tid": LARGE}, {"pid": 7, "tid": LARGE} | NAMED, MAIN], {f"C ({LARGE})", "main"}),
        ([MAIN | {"tid": -5}, MAIN | {"tid": 3 << 30}, MAIN], {"thread -5", f"thread {3 << 30}", "main"}),
        ([MAIN | {"tid": 1e15}, MAIN | {"tid": 1 << 90}, MAIN], {f"thread {10**15}", f"thread {1 << 90}", "main"}),
        ([MAIN | {"pid": LARGE}, MAIN | {"pid": LARGE + 1}], {"thread 7"}),
        ([MAIN | {"pid": LARGE, "tid": LARGE}], {f"process {LARGE}"}),
        ([ZERO, MAIN], {"thread 0", "main"}),
        ([MAIN | {"args": {"tid": LARGE}}, MAIN], {"main"}),
        ([MAIN | {"tid": 7.0}, MAIN], {"main"}),
    ],
)
@pytest.mark.parametrize("is_list", [False, True], ids=["object", "list"])
def test_threads_and_processes_are_told_apart(
    events: list[dict[str, Any]], threads: set[str], is_list: bool, tmp_path: Path
) -> None:
    """The engine reads numbers of 32 bits, others as 0."""
    made = [{"name": "f", "ts": 20 * nth, "dur": 10} | event for nth, event in enumerate(events)]
    made += [{"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "main"}}] * any(e is MAIN for e in events)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(made if is_list else {"before": {"tid": -1}, "traceEvents": made, "metadata": {"a": 1}}))
    trace = load_checked(path)
    names = {thread.name: len(thread.load(trace).calls) for _, thread in trace.threads}
    n_calls = sum(event["ph"] == "X" for event in events)
    assert {name for name, n in names.items() if n} == threads
    assert sum(len(thread.load(trace).calls) for _, thread in trace.threads) == 2 * n_calls


@pytest.mark.parametrize("damage", [slice(None, -40), slice(None, 60), slice(0, 1)])
def test_numbers_of_damaged_text(damage: slice) -> None:
    text = json.dumps({"traceEvents": [MAIN | {"tid": LARGE, "name": 'a "tid": \\'}] * 3}).encode()[damage]
    assert set(other_numbers(memoryview(text))) <= {1}


def test_a_byte_order_mark_is_not_for_the_engine(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([MAIN | {"ts": 1, "dur": 2, "name": "f"}]), "utf-8-sig")
    assert sum(len(thread.load(trace).calls) for trace in [load_checked(path)] for _, thread in trace.threads) == 2


class Profiled:
    """A trace in Chrome's format, of process 7, in which V8's profiler has sampled threads."""

    def __init__(self, names: dict[int, str]) -> None:
        self.events: list[dict[str, Any]] = [
            {"ph": "M", "name": "thread_name", "pid": 7, "tid": tid, "ts": 0, "args": {"name": name}}
            for tid, name in names.items()
            if name
        ]
        self.events.append({"ph": "X", "name": "RunTask", "pid": 7, "tid": 7, "ts": 1, "dur": 80})

    def profile(self, number: int, thread: int, profiler: int, begin: int = 5, n: int = 3) -> None:
        """Of n samples, of which the second one is idle."""
        calls = [("(root)", "", 1), ("f", "a.js", 2), ("(idle)", "", 3)]
        nodes = [
            {"id": n, "callFrame": {"functionName": name, "url": url, "scriptId": n}} | ({"parent": 1} if n > 1 else {})
            for name, url, n in calls
        ]
        common = {"ph": "P", "id": hex(number), "pid": 7, "cat": "disabled-by-default-v8.cpu_profiler"}
        start = common | {"name": "Profile", "tid": thread, "ts": begin, "args": {"data": {"startTime": begin}}}
        samples = [2, 3, *[2] * n][:n]
        data = {"cpuProfile": {"nodes": nodes, "samples": samples}, "timeDeltas": [10] * n}
        self.events += [
            start,
            common | {"name": "ProfileChunk", "tid": profiler, "ts": begin + 90, "args": {"data": data}},
        ]

    def load(self, folder: Path) -> Trace:
        (folder / "trace.json").write_text(json.dumps({"traceEvents": self.events}))
        return load_checked(folder / "trace.json")


def n_samples(trace: Trace) -> dict[int, list[int]]:
    """Of each thread that has some: of the first event, and of others."""
    loaded = {thread.tid: thread.load(trace) for _, thread in trace.threads}
    found = {tid: [len(data.samples), *map(len, data.other_samples.values())] for tid, data in loaded.items()}
    return {tid: numbers for tid, numbers in found.items() if any(numbers)}


@pytest.mark.parametrize("profiler", ["v8:ProfEvntProc", ""], ids=["Chrome", "Node"])
def test_what_v8_s_profilers_have_sampled_is_of_those_threads(profiler: str, tmp_path: Path) -> None:
    """Which the event that begins a profile tells."""
    made = Profiled({7: "CrRendererMain", 8: "DedicatedWorker", 9: profiler, 10: profiler})
    made.profile(1, thread=7, profiler=9)
    made.profile(2, thread=8, profiler=10, n=5)
    trace = made.load(tmp_path)
    assert n_samples(trace) == {7: [3], 8: [5]}
    assert {issue.kind: issue.count for issue in trace.report} == {"samples_of_profiler": 8}
    (costs,) = summarize(trace)["costs"]
    assert [(cost["amount"], cost["is_idle"]) for cost in costs["largest"]] == [(6, False), (2, True)]


@pytest.mark.parametrize(
    ("begin", "wanted"), [(20, {7: [5, 3]}), (900, {7: [8]})], ids=["at the same time", "one after the other"]
)
def test_two_profiles_of_one_thread(begin: int, wanted: dict[int, list[int]], tmp_path: Path) -> None:
    """As of node --cpu-prof with a trace of V8's profiler: what is sampled twice is no twice as much time."""
    made = Profiled({7: "JavaScriptMainThread"})
    made.profile(1, thread=7, profiler=9, n=5)
    made.profile(2, thread=7, profiler=10, begin=begin)
    trace = made.load(tmp_path)
    assert n_samples(trace) == wanted
    assert ("profiles_beside" in {issue.kind for issue in trace.report}) == (len(wanted[7]) > 1)


WHOLE = {
    "nodes": [
        {"id": 1, "callFrame": {"functionName": "(root)", "url": "", "scriptId": "0"}, "children": [2, 3]},
        {"id": 2, "callFrame": {"functionName": "f", "url": "a.js", "scriptId": "1"}},
        {"id": 3, "callFrame": {"functionName": "(idle)", "url": "", "scriptId": "0"}},
    ],
    "startTime": 5, "endTime": 50, "samples": [2, 3, 2], "timeDeltas": [10, 20, 20],
}  # fmt: skip


@pytest.mark.parametrize("is_first", [False, True], ids=["the name last", "the name first"])
@pytest.mark.parametrize("tid", [7, LARGE])
def test_an_event_that_has_a_whole_profile_of_v8(tid: int, is_first: bool, tmp_path: Path) -> None:
    """As webpack's ProfilingPlugin writes it, and Chrome before version 58."""
    made = Profiled({7: "main"})
    name, rest = {"name": "CpuProfile"}, {"args": {"data": {"cpuProfile": WHOLE}}}
    event = (name | rest if is_first else rest | name) | {"ph": "I", "pid": 7, "tid": tid, "ts": 50, "id": 1}
    made.events.insert(1, event)
    made.profile(1, thread=7, profiler=9, begin=900, n=5)
    trace = made.load(tmp_path)
    assert sorted(n_samples(trace).values()) == ([[8]] if tid == 7 else [[3], [5]])
    assert {marker.name for _, thread in trace.threads for marker in thread.load(trace).markers} == set()


@pytest.mark.parametrize(
    "profile", [{}, {"nodes": []}, WHOLE | {"startTime": "x"}, WHOLE | {"samples": 1}, [WHOLE]], ids=str
)
def test_whole_profiles_that_are_none_stay_as_they_are(profile: Any, tmp_path: Path) -> None:
    made = Profiled({7: "main"})
    made.events.append(
        {"name": "CpuProfile", "ph": "I", "pid": 7, "tid": 7, "ts": 50, "args": {"data": {"cpuProfile": profile}}}
    )
    assert n_samples(made.load(tmp_path)) == {}


def test_profiles_of_v8_in_a_perfetto_trace(tmp_path: Path) -> None:
    """As Chrome writes it, whose sequences are of a thread each."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2

    recorded = perfetto_trace_pb2.Trace()
    threads = {1: 7, 2: 8, 3: 9, 4: 10}
    for sequence, tid in threads.items():
        packet = recorded.packet.add(trusted_packet_sequence_id=sequence, sequence_flags=1, timestamp=1)
        packet.trace_packet_defaults.track_event_defaults.track_uuid = tid
        track = recorded.packet.add(trusted_packet_sequence_id=sequence, sequence_flags=2, timestamp=1).track_descriptor
        track.uuid, track.thread.pid, track.thread.tid = tid, 7, tid
        track.thread.thread_name = "v8:ProfEvntProc" if tid > 8 else "CrRendererMain" if tid == 7 else "Worker"
    node = {"id": 1, "callFrame": {"functionName": "f", "scriptId": 1}}
    for number, sequence, data in [
        (1, 1, {"startTime": 5}), (2, 2, {"startTime": 6}),
        (1, 3, {"cpuProfile": {"nodes": [node], "samples": [1] * 3}, "timeDeltas": [10] * 3}),
        (2, 4, {"cpuProfile": {"nodes": [node], "samples": [1] * 4}, "timeDeltas": [10] * 4}),
    ]:  # fmt: skip
        packet = recorded.packet.add(trusted_packet_sequence_id=sequence, sequence_flags=2, timestamp=9)
        packet.interned_data.debug_annotation_names.add(iid=1, name="data")
        packet.track_event.legacy_event.phase, packet.track_event.legacy_event.unscoped_id = ord("P"), number
        packet.track_event.debug_annotations.add(name_iid=1, legacy_json_value=json.dumps(data, separators=(",", ":")))
    clocks = recorded.packet.add(trusted_packet_sequence_id=1, timestamp=1).clock_snapshot.clocks
    for number in (3, 6):
        clocks.add(clock_id=number, timestamp=1)
    packets = sorted(recorded.packet, key=lambda packet: not packet.HasField("clock_snapshot"))
    path = tmp_path / "x.pftrace"
    path.write_bytes(perfetto_trace_pb2.Trace(packet=packets).SerializeToString())
    assert n_samples(load_checked(path)) == {7: [3], 8: [4]}


def test_a_profile_of_nobody_is_of_the_main_thread(tmp_path: Path) -> None:
    """The event that begins it names a thread of which the trace knows nothing else."""
    made = Profiled({7: "CrRendererMain", 9: "v8:ProfEvntProc"})
    made.profile(1, thread=77, profiler=9)
    assert n_samples(made.load(tmp_path)) == {7: [3]}


def test_waits_come_back(tmp_path: Path) -> None:
    """With their stacks; a clock stays the first event, though more samples are of time off the processors."""
    recorded = Recorded()
    recorded.data.sample(PID, A, SCHED_START + 2, LIB + 1, [LIB + 1])
    for at in range(10, 60, 10):
        recorded.switch(at, A, SLEEP, B).switch(at + 5, B, SLEEP, A)
    (tmp_path / "perf.data").write_bytes(recorded.switch(70, A, SLEEP, B).data.bytes())
    trace = traceferry.load(tmp_path / "perf.data")
    traceferry.save(trace, tmp_path / "x.pftrace")
    again = traceferry.load(tmp_path / "x.pftrace")
    names = [event.name for event in trace.events]
    assert (names[0], names[-1]) == ("cpu-clock", "off-CPU")
    assert {event.name: event.kind for event in again.events}["off-CPU"] == "off-cpu"
    assert (again.events[0].name, again.events[-1].name) == ("cpu-clock", "off-CPU")
    waits, wanted = (summarize(one)["scheduling"]["longest"] for one in (again, trace))
    columns = ("start_ns", "tid", "why", "stack")
    got, expected = ([[row[c] for c in columns] for row in rows if row["stack"]] for rows in (waits, wanted))
    assert got == expected != []


RUN_AND_WAIT = ((0, RUNNING, 0), (10, WAITING, 0))


@pytest.mark.parametrize(
    ("rows", "reason", "end", "expected"),
    [
        ((*RUN_AND_WAIT, (40, RUNNING, 0)), "S", 90, Durations(60, 0, 30, 0)),
        ((*RUN_AND_WAIT, (40, RUNNING, 0)), "T", 90, Durations(60, 0, 30, 0)),
        (((0, RUNNING, 0), (10, UNKNOWN, 0), (40, PREEMPTED, 0)), "", 90, Durations(10, 50, 0, 30)),
        (RUN_AND_WAIT, "X", 10, Durations(10, 0, 0, 0)),
        (RUN_AND_WAIT, "", 90, Durations(10, 0, 80, 0)),
        (((0, RUNNING, 0),), "", 50, Durations(50, 0, 0, 0)),
        (((0, RUNNING, -1), (10, WAITING, -1), (30, UNKNOWN, -1)), "", 90, Durations(10, 0, 20, 60)),
    ],
    ids=["a wait", "stopped", "unknown", "dead", "waits at its end", "runs at its end", "no processors"],
)
def test_what_a_thread_did_comes_back(
    rows: tuple[tuple[int, int, int], ...], reason: str, end: int, expected: Durations, tmp_path: Path
) -> None:
    built = Built()
    process = Process(1, "app", BUILT_START, BUILT_END)
    process.counters.append(Counted("size", "bytes", "", Table(COUNTER_VALUES, {"ts": [BUILT_END], "value": [1.0]})))
    built.trace.processes.append(process)
    rows_of = scheduling_of(*rows)
    why = np.where(rows_of["state"] == WAITING, built.text(reason) if reason else -1, -1).astype(np.int32)
    data = ThreadData(scheduling=rows_of.replaced(reason=why))
    process.threads.append(Thread(1, "main", True, BUILT_START, BUILT_START + end, lambda _: data))
    traceferry.save(built.trace, tmp_path / "x.pftrace")
    ((_, thread),) = load_checked(tmp_path / "x.pftrace").threads
    assert durations(thread.load(TraceBuilder()).scheduling, thread.end_ts) == expected


def test_what_is_no_trace() -> None:
    heads = [b"", b"\x0a", b"\x0a\x05hello", b"\x0a\x02\x00\x00", b'{"a": 1}', b"[1, 2]", b"# other", b"\x7fELF"]
    assert [head for head in heads[2:] if perfetto.sniff(memoryview(head))] == []
    assert perfetto.sniff(memoryview(b"\x0a\x02\x40\x05"))


def test_damaged_traces(tmp_path: Path) -> None:
    """With bytes changed: a valid trace, or an error that says where. Cut: the report tells at which packet."""
    data = traceferry_trace(FIXTURES / OURS[0], tmp_path).read_bytes()
    path = tmp_path / "damaged.pftrace"
    for at in [*range(1, len(data), len(data) // 12), len(data) - 1]:
        path.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        with suppress(FormatError):
            assert check(traceferry.load(path)) == []
        path.write_bytes(data[:at])
        with suppress(FormatError):
            trace = load_checked(path)
            packets = perfetto.dump(Source("x", memoryview(data[:at])), 0)
            cut = [int(line.split()[0], 16) for line in packets if " cut: " in line or "not a packet" in line]
            assert [one.offset for one in trace.report if one.kind == "truncated"] == cut


def test_dump_lists_packets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = traceferry_trace(FIXTURES / OURS[0], tmp_path)
    assert main(["dump", str(path), "--limit", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("0x") and " size=" in line for line in lines)
