"""`traceferry query`: SQL over recordings, in trace_processor; the numbers are those of `info`."""

import base64
import json
import os
import re
import shlex
import stat
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import firefox_profiles as made
import pytest
from builders.xray import Basic
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from queries import FIXTURES, XRAY, Run, found, query, trace

import traceferry
from traceferry.analysis.info.summary import summarize
from traceferry.apps.cli import main
from traceferry.apps.cli.query import _statements
from traceferry.common.errors import FormatError, UsageError
from traceferry.importers.perfetto.slices import CALL_TRACKS
from traceferry.model import Trace
from traceferry.trace_processor import engine
from traceferry.trace_processor.engine import VARIABLE, find_engine

__all__ = ["found", "query", "trace"]

PERF = FIXTURES / "jit/php82/perf.data.zst"
HEAP = FIXTURES / "mono/mono-6.8/heap.mlpd.zst"

# ---------------------------------------------------------------- the numbers of `info`

COUNTS = ("calls", "self_ns", "total_ns", "samples", "total_samples")


MONO = FIXTURES / "mono/mono-6.8"
PROFILE = FIXTURES / "xray/clang-19/profile-c19-pie-pool.xray"
SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "captures"
RECORDINGS = [
    XRAY, PERF, PROFILE, MONO / "calls.mlpd.zst",
    MONO / "samples.mlpd.zst", MONO / "threads.mlpd.zst", SHARED / "perf-events/sched.data.zst",
    SHARED / "perf-events/multi.data.zst", SHARED / "viewers/firefox/ppvm--profile.json.gz",
    SHARED / "viewers/pprof/parca--testdata-fib.pb.gz",
    SHARED / "viewers/speedscope/speedscope--0.6.0-two-sampled.speedscope.json",
    SHARED / "viewers/collapsed/speedscope--stackcollapse-simple.txt",
    FIXTURES / "stacks/go-mutex.pb.gz", FIXTURES / "stacks/go-heap.pb.gz", FIXTURES / "stacks/node.heapprofile",
    SHARED / "viewers/cpuprofile/speedscope--65-simple.cpuprofile",
]  # fmt: skip


def functions_of_info(recording: Path) -> dict[str, list[int]]:
    """Functions of one name are one row here. A group of addresses has another name than each of them."""
    wanted: dict[str, list[int]] = {}
    trace = traceferry.load(recording)
    top = summarize(trace, top=1 << 30)["functions"]["top"]
    times = {} if any(row["calls"] for row in top) else times_of_samples(trace)
    for row in top:
        if "without a name)" not in row["name"]:
            counts = wanted.setdefault(row["name"], [0] * len(COUNTS))
            own = dict(zip(("self_ns", "total_ns"), times.get(row["name"], ()), strict=False))
            if own:
                counts[1:3] = 0, 0
            wanted[row["name"]] = [a + (row | own)[name] for a, name in zip(counts, COUNTS, strict=True)]
    return wanted


def times_of_samples(trace: Trace) -> dict[str, list[int]]:
    """What the samples of the first event weigh by function, in itself and with callees, where they weigh ns."""
    found: dict[str, list[int]] = {}
    for _, thread in trace.threads if trace.events and trace.events[0].unit == "ns" else ():
        data = thread.load(trace)
        stacks, frames = data.trace.stacks, data.trace.frames
        pairs = zip(data.samples["stack"].tolist(), data.samples["weight"].tolist(), strict=True)
        for stack, weight in pairs if not thread.sample_unit else ():
            path = []
            while stack >= 0:
                path.append(data.trace.func_name(int(frames["func"][stacks["frame"][stack]])))
                stack = int(stacks["prefix"][stack])
            for name in set(path):
                times = found.setdefault(name, [0, 0])
                times[0] += weight * (name == path[0])
                times[1] += weight
    return found


def compare_functions(query: Run, recording: Path) -> None:
    wanted = functions_of_info(recording)
    rows = query(recording, f"SELECT function, {', '.join(COUNTS)} FROM traceferry_functions")
    got = {row["function"]: [int(row[name]) for name in COUNTS] for row in rows}
    assert {name: got.get(name) for name in wanted} == wanted != {}


def test_calls_that_the_recorder_did_not_see_end(query: Run, tmp_path: Path) -> None:
    """They last until what is around them ends, or the trace."""
    path = tmp_path / "open.json"
    common = {"pid": 7, "tid": 7}
    events = [("B", "loop", 0, {}), ("B", "task", 10, {}), ("X", "run", 20, {"dur": 5}), ("B", "wait", 40, {})]
    events += [("X", "other", 95, {"dur": 5, "tid": 8})]
    path.write_text(json.dumps([{"ph": ph, "name": name, "ts": ts} | common | more for ph, name, ts, more in events]))
    compare_functions(query, path)
    (row,) = query(path, "SELECT total_ns FROM traceferry_functions WHERE function = 'loop'")
    assert row == {"total_ns": "100000"}


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.name)
def test_functions_are_those_of_info(query: Run, recording: Path) -> None:
    if not recording.exists():
        pytest.skip(f"{recording} is absent")
    compare_functions(query, recording)


@pytest.mark.parametrize("name", ["x.json.gz", "x.pftrace"])
def test_functions_of_converted_files(query: Run, tmp_path: Path, name: str) -> None:
    """A profile of the Firefox Profiler, and a trace that trace_processor reads itself."""
    traceferry.convert(PERF, tmp_path / name)
    compare_functions(query, tmp_path / name)


@pytest.mark.parametrize("name", ["sched.data.zst", "multi.data.zst", "group.data.zst", "io.data.zst", "php82"])
def test_events_are_those_of_info(query: Run, name: str) -> None:
    recording = PERF if name == "php82" else SHARED / "perf-events" / name
    if not recording.exists():
        pytest.skip(f"{recording} is absent")
    recorded = summarize(traceferry.load(recording))["events"]["recorded"]
    rows = query(recording, "SELECT * FROM traceferry_events")
    got = {row["event"]: (row["unit"], int(row["samples"]), int(row["weight"])) for row in rows}
    assert {event["name"]: got.get(event["name"]) for event in recorded} == {
        event["name"]: (event["unit"], event["samples"], event["weight"]) for event in recorded
    }


def test_lines_add_up_to_functions(query: Run) -> None:
    lines = query(PERF, "SELECT function, sum(samples) AS n FROM traceferry_lines WHERE event = 'cpu-clock' GROUP BY 1")
    functions = query(PERF, "SELECT function, samples AS n FROM traceferry_functions WHERE samples > 0")
    assert {row["function"]: row["n"] for row in lines} == {row["function"]: row["n"] for row in functions} != {}
    located = query(PERF, "SELECT file, line FROM traceferry_lines WHERE file LIKE '%.php' AND line > 0")
    assert located != []


@pytest.mark.parametrize("recording", [PERF, PROFILE], ids=str)
def test_threads_are_those_of_info(query: Run, recording: Path) -> None:
    summary = summarize(traceferry.load(recording))
    wanted = {(p["pid"], t["tid"]): (t["samples"], t["calls"]) for p in summary["processes"] for t in p["threads"]}
    rows = query(recording, "SELECT * FROM traceferry_threads WHERE samples > 0 OR calls > 0")
    got = {(int(row["pid"]), int(row["tid"])): (int(row["samples"]), int(row["calls"])) for row in rows}
    assert got == {key: counts for key, counts in wanted.items() if any(counts)} != {}


def test_allocations_are_those_of_info(query: Run) -> None:
    summary = summarize(traceferry.load(HEAP), top=1 << 30)
    names = ("count", "bytes", "freed_count", "freed_bytes")
    wanted = {row["name"]: [row[name] for name in names] for row in summary["allocations"]["classes"]}
    rows = query(HEAP, "SELECT * FROM traceferry_allocations")
    assert {row["class"]: [int(row[name]) for name in names] for row in rows} == wanted != {}


def test_allocations_without_a_class_are_of_their_function(query: Run, tmp_path: Path) -> None:
    """As Firefox records them: main allocates 2000 bytes, inner (inlined into main) 1000, which are freed."""
    given = made.profile()
    given["threads"][0]["nativeAllocations"] = {
        "time": [1, 2, 3], "weight": [1000, 2000, -1000], "weightType": "bytes", "stack": [1, 0, 1],
        "memoryAddress": [1, 2, 1], "threadId": [7] * 3, "length": 3,
    }  # fmt: skip
    path = made.written(given, tmp_path / "p.json")
    allocations = summarize(traceferry.load(path))["allocations"]
    assert [(row["stack"], row["bytes"]) for row in allocations["sites"]] == [
        (["main"], 2000),
        (["inner", "main"], 1000),
    ]
    rows = query(path, "SELECT * FROM traceferry_allocations")
    assert [(row["class"], int(row["bytes"]), int(row["freed_bytes"])) for row in rows] == [
        ("[unknown class]", 3000, 1000)
    ]
    traceferry.convert(path, tmp_path / "p.pftrace")
    again = summarize(traceferry.load(tmp_path / "p.pftrace"))["allocations"]
    assert [row["stack"] for row in again["sites"]] == [["main"], ["inner", "main"]]
    assert [row["name"] for row in again["classes"]] == ["[unknown class]"]


def test_markers_are_those_of_info(query: Run) -> None:
    summary = summarize(traceferry.load(HEAP))
    wanted: dict[str, int] = {}
    for markers in (t["markers"] for p in summary["processes"] for t in p["threads"]):
        wanted = {name: wanted.get(name, 0) + markers.get(name, 0) for name in {*wanted, *markers}}
    rows = query(HEAP, "SELECT type, sum(count) AS n FROM traceferry_markers GROUP BY type")
    got = {row["type"]: int(row["n"]) for row in rows}
    assert {name: n for name, n in wanted.items() if n}.items() <= got.items()


SQL_PAGE = Path(__file__).resolve().parent.parent / "docs" / "sql.md"
NAMED = {
    "perf.data": str(PERF), "app.xray --symbols app": f"{XRAY} --symbols {XRAY.parent / 'pool-pie.zst'}",
    "app.mlpd": str(HEAP),
}  # fmt: skip


def documented_answer(query: Run, recording: str) -> list[dict[str, str]]:
    """The rows that a query of docs/sql.md gives for a recording of ours."""
    lines = SQL_PAGE.read_text("utf-8").split("\n")
    (line,) = (line for line in lines if line.startswith(f"traceferry query {recording} "))
    rows: list[dict[str, str]] = query(*shlex.split(line.replace(recording, NAMED[recording], 1))[2:])
    assert len(rows) > 1
    return rows


def test_the_documented_query_of_samples(query: Run) -> None:
    of_name = {name: counts[COUNTS.index("samples")] for name, counts in functions_of_info(PERF).items()}
    rows = {row["function"]: int(row["samples"]) for row in documented_answer(query, "perf.data")}
    # A group of addresses without a name is one row of `info`.
    named = {name: n for name, n in rows.items() if name in of_name}
    assert len(named) > 5
    assert named == {name: of_name[name] for name in named}
    assert min(rows.values()) >= max(n for name, n in of_name.items() if name not in rows)


def test_the_documented_query_of_calls(query: Run) -> None:
    symbols = [str(XRAY.parent / "pool-pie.zst")]
    top = summarize(traceferry.load(XRAY, symbols=symbols), top=1 << 30)["functions"]["top"]
    rows = documented_answer(query, "app.xray --symbols app")
    wanted = [(row["name"], row["calls"], row["self_ns"]) for row in top[: len(rows)]]
    assert [(row["function"], int(row["calls"]), int(row["self_ns"])) for row in rows] == wanted


def test_the_documented_query_of_allocations(query: Run) -> None:
    classes = summarize(traceferry.load(HEAP), top=1 << 30)["allocations"]["classes"]
    live = {row["name"]: row["bytes"] - row["freed_bytes"] for row in classes}
    rows = documented_answer(query, "app.mlpd")
    assert [int(row["live"]) for row in rows] == sorted(live.values(), reverse=True)[: len(rows)]
    assert all(live[row["class"]] == int(row["live"]) for row in rows)


# ---------------------------------------------------------------- what it writes

VALUES = (
    "SELECT 1 AS a, NULL AS b, 1.5 AS c, 'x,\"y\"' AS d, x'00ff' AS e "
    "UNION ALL SELECT 9007199254740993, 'z', 2, '', x''"
)
TEXTS = ["SELECT 1", "SELECT ';'", "-- a;\nSELECT 2", 'SELECT "a;b" /* ; */', "\n"]


def test_values_are_exact(query: Run, trace: Path) -> None:
    blob = base64.b64encode(b"\0\xff").decode()
    assert query(trace, VALUES) == [
        {"a": "1", "b": "", "c": "1.5", "d": 'x,"y"', "e": blob},
        {"a": "9007199254740993", "b": "z", "c": "2", "d": "", "e": ""},
    ]


def test_outputs_by_suffix(query: Run, trace: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    rows = [{"id": 0, "name": "a"}, {"id": 1, "name": None}]
    sql = "SELECT 0 AS id, 'a' AS name UNION ALL SELECT 1, NULL"
    for suffix in (".csv", ".json", ".jsonl", ".parquet"):
        query(trace, sql, "-o", tmp_path / f"x{suffix}")
    assert (tmp_path / "x.csv").read_text() == "id,name\n0,a\n1,\n"
    assert json.loads((tmp_path / "x.json").read_text()) == [{"columns": ["id", "name"], "rows": [[0, "a"], [1, None]]}]
    assert [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()] == rows
    assert parquet.read_table(tmp_path / "x.parquet").to_pylist() == rows
    assert "known: .csv" in query(trace, sql, "-o", tmp_path / "x.txt", status=2)


def test_json_has_all_statements(found: str, trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "CREATE PERFETTO TABLE t AS SELECT ';' AS a; -- a comment;\nSELECT a FROM t; SELECT 2 AS b"
    assert main(["query", "--quiet", str(trace), sql, "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert [result["rows"] for result in results][-2:] == [[[";"]], [[2]]]


def test_sql_from_a_file_and_modules(query: Run, trace: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "one.sql").write_text("CREATE PERFETTO VIEW mine_one AS SELECT 41 + 1 AS answer;")
    (tmp_path / "q.sql").write_text("INCLUDE PERFETTO MODULE mine.one;\nINCLUDE PERFETTO MODULE slices.with_context;\n"
                                    "SELECT answer FROM mine_one")  # fmt: skip
    assert query(trace, "-f", tmp_path / "q.sql", "--package", tmp_path / "mine") == [{"answer": "42"}]


def test_an_error_names_its_place(query: Run, trace: Path) -> None:
    error = query(trace, "SELECT 1;\nSELECT frm x", status=2)
    assert "line 2 col 8" in error
    assert "^" in error
    assert "no such column: frm" in error


@examples(300)
@given(
    st.lists(st.sampled_from(["SELECT 1", "SELECT ';'", "-- a;\nSELECT 2", 'SELECT "a;b" /* ; */', "\n"]), max_size=6)
)
def test_statements(parts: list[str]) -> None:
    """A semicolon in a text or a comment ends none; each statement stands in its own line."""
    sql = ";".join(parts)
    found = list(_statements(sql))
    assert re.sub(r"[\s;]", "", "".join(found)) == re.sub(r"[\s;]", "", sql)
    lines = sql.split("\n")
    for statement in found:
        body = statement.lstrip("\n")
        assert not body.strip() or body.split("\n")[0] in lines[len(statement) - len(body)] + body


# ---------------------------------------------------------------- what is refused


def test_what_trace_processor_cannot_read(query: Run, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("not a trace")
    assert "trace_processor v" in query(tmp_path / "x.txt", "SELECT 1", status=2)
    assert "cannot be read" in query(tmp_path / "absent", "SELECT 1", status=2)
    assert "--range is for recordings" in query(tmp_path / "x.txt", "SELECT 1", "--range", "0,1s", status=2)


def test_a_part_of_a_trace(query: Run, trace: Path) -> None:
    """A part is chosen by reading the trace, and writing it again."""
    sql = "SELECT count(*) AS n FROM slice"
    (whole,), (part,) = query(trace, sql), query(trace, sql, "--range", "0,1ms")
    assert 0 < int(part["n"]) < int(whole["n"])


def test_the_sql_stands_anywhere(query: Run, trace: Path) -> None:
    wanted = [{"a": "1"}]
    assert query("--range", "0,1s", trace, "SELECT 1 AS a") == wanted
    assert query(trace, "--range", "0,1s", "SELECT 1 AS a") == wanted
    assert query(trace, "SELECT 1 AS a", "--range", "0,1s") == wanted


def test_no_sql(query: Run, trace: Path) -> None:
    assert "no SQL is given" in query(trace, status=2)


def test_sql_in_another_place(query: Run, trace: Path) -> None:
    assert "'SELECT 1' is SQL" in query("SELECT 1", trace, status=2)
    assert "'SELECT 1' is SQL" in query(trace, "SELECT 1", "SELECT 2", status=2)
    assert "read from a file with -f slow.sql" in query(trace, "slow.sql", status=2)
    assert "both, a recording and the SQL" in query("-", "-f", "-", status=2)


@pytest.mark.skipif(os.name == "nt", reason="FIFOs")
@pytest.mark.parametrize(("named", "is_trace"), [("-", True), ("-", False), ("fifo", False)])
def test_pipes_are_read_once(found: str, trace: Path, tmp_path: Path, named: str, is_trace: bool) -> None:
    """Both what the engine reads and what is converted: looking at the first bytes takes them away."""
    recording = trace if is_trace else tmp_path / "x.folded"
    if not is_trace:
        recording.write_text("a;b 3\na;c 4\n")
    path = "-" if named == "-" else str(tmp_path / "pipe")
    command = [sys.executable, "-m", "traceferry", "query", "--quiet", path, "SELECT count(*) > 0 AS a FROM thread"]
    if named == "-":
        done = subprocess.run(command, input=recording.read_bytes(), capture_output=True, check=True)
    else:
        os.mkfifo(path)
        with subprocess.Popen(["cp", recording, path]):
            done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert done.stdout == b"a\n1\n"


def test_errors_of_pipes_name_them(found: str) -> None:
    command = [sys.executable, "-m", "traceferry", "query", "--quiet", "-", "SELECT 1"]
    done = subprocess.run(command, input=b"no trace", capture_output=True, text=False)
    assert done.returncode == 2
    assert done.stderr.startswith(b"traceferry: -: trace_processor v")
    assert b"(path: -)" in done.stderr


def test_a_folder_with_one_recording(query: Run, trace: Path) -> None:
    sql = "SELECT count(*) AS n FROM slice"
    assert query(trace.parent, sql) == query(trace, sql)


NO_TRACES = {
    "JSON": (b'{"a": [1]}', "the members a"),
    "DHAT": (b'{"dhatFileVersion": 2, "mode": "heap", "pps": [], "ftbl": []}', "DHAT"),
    "a page": (b"<!doctype html>\n<html><body></body></html>", "a page"),
    "JFR": (b"FLR\0" + bytes(64), "Java Flight Recorder"),
}


@pytest.mark.parametrize(("data", "said"), NO_TRACES.values(), ids=NO_TRACES)
def test_what_is_known_to_be_no_trace(query: Run, tmp_path: Path, data: bytes, said: str) -> None:
    """The engine takes any JSON and any page for a trace without events, and says nothing of others."""
    (tmp_path / "x").write_bytes(data)
    assert said in query(tmp_path / "x", "SELECT 1", status=2)


def program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


ENGINES: dict[str, tuple[str, str]] = {
    "another program": ("echo hello", "names no version"),
    "too old": ("echo Perfetto v57.1", "v57.1 is too old"),
}


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
@pytest.mark.parametrize(("text", "message"), ENGINES.values(), ids=ENGINES)
def test_programs_that_are_not_the_engine(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_engine(program(tmp_path / "tp", text))


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
def test_where_the_engine_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The option, then the environment, then PATH; nothing is downloaded without being asked for."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(engine, "_cached", lambda: None)
    monkeypatch.setattr(engine, "_downloaded", lambda: pytest.fail("downloaded"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(UsageError, match="--download"):
        find_engine()
    (tmp_path / "bin").mkdir()
    on_path = program(tmp_path / "bin" / "trace_processor_shell", "echo Perfetto v58.0")
    assert find_engine()[:2] == (on_path, "v58.0")
    named = program(tmp_path / "named", "echo Perfetto v58.1")
    monkeypatch.setenv(VARIABLE, named)
    assert find_engine().version == "v58.1"
    assert find_engine(program(tmp_path / "given", "echo Perfetto v60.0")).version == "v60.0"
    with pytest.raises(UsageError, match="cannot be run"):
        find_engine(str(tmp_path / "absent"))


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_engine_that_ends_by_a_signal(tmp_path: Path) -> None:
    from traceferry.trace_processor.session import Session

    pytest.importorskip("perfetto", reason="the package perfetto is not installed")
    dies = find_engine(
        program(tmp_path / "tp", 'if [ "$1" = --version ]; then echo Perfetto v58.2; else kill -9 $$; fi')
    )
    with Session(dies, tmp_path / "x") as session, pytest.raises(FormatError, match="signal 9"):
        session.query("SELECT 1")


def test_nothing_is_left_running(found: str, trace: Path) -> None:
    from traceferry.trace_processor.session import Session

    session = Session(find_engine(), trace)
    child: Any = session._child
    with session:
        session.query("SELECT 1")
        assert child.poll() is None
    assert child.poll() is not None


def test_tracks_of_calls_are_those_of_the_importer() -> None:
    """In their order: a thread has the calls of the first rank that it has."""
    text = (files("traceferry.trace_processor") / "sql/traceferry/tracks.sql").read_text()
    assert re.findall(r"WHEN '(\w+)' THEN (\d)", text) == [(kind, str(rank)) for kind, rank in CALL_TRACKS.items()]


def test_calls_deeper_than_the_engine_keeps_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = Basic().enter(1, 0, tid=7)
    for nth in range(599):
        log.enter(2, nth + 1, tid=7)
    (tmp_path / "deep.xray").write_bytes(log.bytes())
    assert main(["convert", str(tmp_path / "deep.xray"), "-o", str(tmp_path / "deep.pftrace")]) == 0
    assert "[depth_cut, 88 times]" in capsys.readouterr().err
