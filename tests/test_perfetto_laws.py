"""Our own Perfetto traces come back as they were written, but for what FORMATS.md lists."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clients.firefox import ProfilerCli
from conftest import REPO, one_in, shared
from support import load_checked
from test_firefox_laws import contents, recordings
from test_jit_clients import needs_client
from test_perfetto_traces import TOTALS, WITH_WHOLE_PROFILE, as_the_engine_reads

import traceferry
from traceferry.apps.cli import main
from traceferry.importers.perfetto.slices import INSTANT
from traceferry.model import RUNNING, Thread, Trace
from traceferry.model.categories import OFF_CPU_COLORS
from traceferry.trace_processor.engine import VARIABLE, find_engine
from traceferry.trace_processor.session import Session


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips where there is no trace_processor."""
    named = os.environ.get("PERFETTO_TP_BIN") or shutil.which("trace_processor_shell")
    pytest.importorskip("perfetto", reason="the package perfetto is not installed")
    if not named:
        pytest.skip("no trace_processor_shell in PATH; set PERFETTO_TP_BIN")
    monkeypatch.setenv(VARIABLE, named)


@pytest.mark.parametrize("path", recordings())
def test_our_own_traces_come_back(path: Path, tmp_path: Path) -> None:
    trace = load_checked(path)
    traceferry.save(trace, tmp_path / "again.pftrace")
    has_long = any(thread.tid > LONGEST for _, thread in trace.threads)
    again = named(contents(load_checked(tmp_path / "again.pftrace"), 0, frame_of), has_long)
    before = named(contents(trace, 0, frame_of), has_long)
    pids = Counter(process.pid for process in trace.processes)
    # Of processes with one number all but one get another; sizes of allocations come back as views of the process.
    kept = {key for key in before if len(key) == 3 and pids[key[0]] == 1}
    assert {key for key in kept if key[1]} == {key for key in again if len(key) == 3 and key[1]} - renumbered(
        pids, again
    )
    followers = {event.name for event in trace.events if event.leader >= 0}
    for key in kept & set(again):
        for what, value in shown(before[key], followers).items():
            if what not in EXEMPT and (what not in SCHEDULED or knows_processors(trace)):
                assert shown(again[key], followers)[what] == value, (key, what)
    for key in {key for key in before if len(key) == 2} & set(again):
        ts, values = zip(*before[key]["values"], strict=True)
        assert [ts for ts, _ in again[key]["values"]] == [*ts]
        assert [value for _, value in again[key]["values"]] == pytest.approx(values)


def frame_of(trace: Trace, frame: int) -> tuple[Any, ...]:
    """The function; where there is an address, how deep it is inlined, its tier, and whether it is the kernel's."""
    row = {column.name: int(trace.frames[column.name][frame]) for column in trace.frames.spec.columns}
    tier, category = row["tier"], row["category"]
    columns = (trace.tiers[name] for name in ("name", "family", "color"))
    tiers = [trace.strings[int(column[tier])] for column in columns] if tier >= 0 else []
    # Off the processors, code of the kernel has the category of why.
    names = ("Kernel", *OFF_CPU_COLORS)
    is_kernel = category >= 0 and trace.strings[int(trace.categories["name"][category])] in names
    placed = (row["inline_depth"], *tiers, is_kernel) if row["address"] >= 0 and row["lib"] >= 0 else ()
    return trace.func_name(row["func"]), *placed


# Perfetto's numbers of threads are int32; longer ones are others there, which names tell.
LONGEST = (1 << 31) - 1


def named(found: dict[Any, Any], has_long: bool) -> dict[Any, Any]:
    """The same without the numbers of threads, where some are too long."""
    if not has_long:
        return found
    return {(key[0], key[1] != "", key[2]) if len(key) == 3 else key: value for key, value in found.items()}


# When threads began and ended is not written.
EXEMPT = {"life"}
# Without processors, what threads did is a state, and what they waited for is not written.
SCHEDULED = {"scheduling", "states"}


def shown(content: dict[str, Any], followers: set[str]) -> dict[str, Any]:
    """What a trace has of a thread: of the events of a group the first; calls that last no time are instants; a state
    that nothing follows has an end; what is freed is in the process's views."""
    states = {track: [row for row in rows if row[1] is not None] for track, rows in content["states"].items()}
    samples = {key: n for key, n in content["samples"].items() if key[0] not in followers}
    markers = {key: n for key, n in content["markers"].items() if key[0] != INSTANT}
    made = [row for row in content["allocations"] if row[1] > 0]
    return content | {"states": states, "samples": samples, "markers": markers, "allocations": made}


def renumbered(pids: Counter[int], again: dict[Any, Any]) -> set[Any]:
    return {key for key in again if len(key) == 3 and pids[key[0]] != 1}


def knows_processors(trace: Trace) -> bool:
    tables = (thread.load(trace).scheduling for _, thread in trace.threads)
    return all(np.all(table["cpu"][table["state"] == RUNNING] >= 0) for table in tables)


# ---------------------------------------------------------------- others' traces in Firefox

# Markers of profiles that are no slices of the trace.
NO_SLICES = {"Call", "Scheduling", "Log"}
LASTS = "iif(slice.dur < 0, trace_end() - slice.ts, slice.dur)"
SLICES_IN_CALLS = f"thread_track.type = 'thread_execution' AND {LASTS} != 0 AND thread_track.id NOT IN ({TOTALS})"
COUNTED = f"""
SELECT slice.name AS name, count(*) AS n FROM slice LEFT JOIN thread_track ON thread_track.id = slice.track_id
WHERE thread_track.id IS NULL OR NOT ({SLICES_IN_CALLS}) GROUP BY 1"""
ASKED = f"""
SELECT (SELECT count(*) FROM stack_sample WHERE callsite_id IS NOT NULL) AS samples, (
  SELECT coalesce(sum({LASTS}), 0) FROM slice
  JOIN thread_track ON thread_track.id = slice.track_id WHERE {SLICES_IN_CALLS} AND depth = 0
) AS ns"""


@pytest.mark.parametrize("nth", one_in(2, range(2)))
@pytest.mark.parametrize("kind", ["perfetto", "chrome-json"])
def test_traces_of_others_in_firefox(kind: str, nth: int, tmp_path: Path) -> None:
    """Samples, the time of calls, and markers by name are those that trace_processor has. Of every second file."""
    # Of samples in Chrome's format trace_processor reads nothing, nor of a profile that is one event.
    left_out = ("with-samples.json", WITH_WHOLE_PROFILE)
    paths = [one for one in shared(f"captures/viewers/{kind}").iterdir() if not one.name.endswith(left_out)]
    assert paths
    for path in sorted(paths)[nth::2]:
        traceferry.convert(path, tmp_path / "x.json")
        profile = json.loads((tmp_path / "x.json").read_text())
        found, n_samples, tracing_ms = Counter[str](), 0, 0.0
        for thread in profile["threads"]:
            strings, samples = thread.get("stringArray") or profile["shared"]["stringArray"], thread["samples"]
            if samples["weightType"] == "tracing-ms":
                tracing_ms += sum(samples["weight"])
            else:
                n_samples += sum(stack is not None for stack in samples["stack"])
            slices = (data or {} for data in thread["markers"]["data"] if (data or {}).get("type") not in NO_SLICES)
            found.update(text(data.get("name", ""), strings) for data in slices)
        with Session(find_engine(), as_the_engine_reads(path, tmp_path)) as session:
            answer, names = session.query(ASKED), session.query(COUNTED)
        assert (path.name, n_samples) == (path.name, answer["samples"].numbers()[0])
        assert tracing_ms == pytest.approx(answer["ns"].numbers()[0] / 1e6, abs=1e-3)
        counts = dict(zip(names["name"].texts(), names["n"].numbers().tolist(), strict=True))
        assert (path.name, sum(found.values())) == (path.name, sum(counts.values()))
        assert {name: n for name, n in counts.items() if name} == {name: found[name] for name in counts if name}


def text(value: Any, strings: list[str]) -> str:
    return strings[value] if isinstance(value, int) else value


@needs_client
@pytest.mark.parametrize(
    ("name", "asked", "scale"),
    [
        ("perfetto/systing--trace.pb", """SELECT pid, tid, count(*) AS n FROM stack_sample s
JOIN stack_sample_task_context x ON x.id = s.task_context_id JOIN thread USING (utid) JOIN process USING (upid)
WHERE callsite_id IS NOT NULL GROUP BY utid""", 1),
        ("chrome-json/lighthouse--blocking-time-trace.json.gz", f"""SELECT pid, tid, sum({LASTS}) AS n FROM slice
JOIN thread_track ON thread_track.id = slice.track_id JOIN thread USING (utid) JOIN process USING (upid)
WHERE {SLICES_IN_CALLS} AND depth = 0 GROUP BY utid""", 1e-6),
    ],
)  # fmt: skip
def test_profiler_cli_has_what_trace_processor_has(name: str, asked: str, scale: float, tmp_path: Path) -> None:
    """Samples, and the time of calls in ms, of the threads that have most."""
    path = shared("captures/viewers") / name
    traceferry.convert(path, tmp_path / "x.json")
    with Session(find_engine(), path) as session:
        answer = session.query(asked)
    numbers = zip(*(answer[name].numbers().tolist() for name in ("pid", "tid")), strict=True)
    wanted = dict(zip(numbers, (answer["n"].numbers() * scale).tolist(), strict=True))
    most = sorted(wanted, key=wanted.__getitem__)[-3:]
    found = {}
    with ProfilerCli(tmp_path / "x.json") as cli:
        handles = {(int(thread["pid"]), int(thread["tid"])): thread["threadHandle"] for thread in cli.threads()}
        for key in most:
            found[key] = cli.call_tree(handles[key], include_idle=True)["totalSamples"]
    assert found == {key: pytest.approx(wanted[key], abs=1e-3) for key in most}


# ---------------------------------------------------------------- beside other recordings


def test_a_recording_in_three_formats_is_on_one_clock(tmp_path: Path) -> None:
    recording = REPO / "fixtures" / "jit" / "wasmtime" / "perf.data.zst"
    paths = [recording, tmp_path / "x.pftrace", tmp_path / "x.json.gz"]
    for path in paths[1:]:
        traceferry.convert(recording, path)
    trace = load_checked(paths)
    found = [
        sorted(ts for thread in process.threads for ts in samples_of(trace, thread)) for process in trace.processes
    ]
    n = len(found) // 3
    assert n
    perf, perfetto, firefox = found[:n], found[n : 2 * n], found[2 * n :]
    assert perf == perfetto
    for ours, theirs in zip(perf, firefox, strict=True):
        assert np.abs(np.array(ours) - np.array(theirs)).max(initial=0) <= 1000


def samples_of(trace: Trace, thread: Thread) -> list[int]:
    ts: list[int] = thread.load(trace).samples["ts"].tolist() if not thread.sample_unit else []
    return ts


def test_commands_take_traces_beside_other_recordings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording, trace = REPO / "fixtures" / "jit" / "wasmtime" / "perf.data.zst", tmp_path / "x.pftrace"
    traceferry.convert(recording, trace)

    def printed(*words: object) -> tuple[int, str]:
        status = main([str(word) for word in words])
        return status, capsys.readouterr().out

    assert printed("check", trace)[0] == 0
    assert printed("convert", trace, "-o", tmp_path / "x.html", "--quiet")[0] in (0, 1)
    assert (tmp_path / "x.html").stat().st_size > 10_000
    compared = json.loads(printed("compare", recording, trace, "--json")[1])
    rows = compared["tables"][0]["rows"]
    assert rows
    assert [row for row in rows if row["base"] != row["new"]] == []
    printed("aggregate", recording, trace, "-o", tmp_path / "both", "--quiet")
    assert any(tmp_path.glob("both*"))
