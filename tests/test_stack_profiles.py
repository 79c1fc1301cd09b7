"""Collapsed stacks, speedscope, V8's CPU profiles and pprof as inputs."""

from __future__ import annotations

import gzip
import json
import marshal
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import stacks
from builders.dwarf import Dwarf, Symbol
from outputs import saved
from readers import perfetto
from support import for_each, load_checked, report_of
from test_pprof import functions_of, top

from traceferry.analysis.info.summary import summarize
from traceferry.analysis.info.text import as_text
from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.model import LEAVE, OPEN_AT_END, UNWOUND, Trace
from traceferry.native.nodes import NodeTable
from traceferry.registry import detect
from traceferry.timeline.stack_profiles import whole_amounts

Said = dict[str, dict[str, int]]


def loaded(tmp_path: Path, content: Any, name: str = "input", **options: Any) -> Trace:
    """Loads text, bytes or what becomes JSON."""
    data = (
        content
        if isinstance(content, bytes)
        else (content if isinstance(content, str) else json.dumps(content)).encode()
    )
    path = tmp_path / name
    path.write_bytes(data)
    return load_checked([str(path)], **options)


def stacks_of(trace: Trace, row: int = 0) -> Said:
    """Returns what each stack of each thread weighs: `process/thread: {"a;b:2": 3}`, with lines."""
    found: Said = {}
    for process, thread in trace.threads:
        data = thread.load(trace)
        table = data.samples if row == 0 else data.other_samples.get(row)
        mine: Counter[str] = Counter()
        for stack, weight in zip(table["stack"].tolist(), table["weight"].tolist(), strict=True) if table else ():
            mine[path_of(trace, stack)] += weight
        found[f"{process.name} {process.pid}/{thread.name} {thread.tid}"] = dict(mine)
    return found


def path_of(trace: Trace, stack: int) -> str:
    names: list[str] = []
    while stack >= 0:
        frame, stack = (int(trace.stacks[column][stack]) for column in ("frame", "prefix"))
        line = int(trace.frames["line"][frame])
        names.append(trace.func_name(int(trace.frames["func"][frame])) + (f":{line}" if line else ""))
    return ";".join(reversed(names))


def only(trace: Trace, row: int = 0) -> dict[str, int]:
    (found,) = stacks_of(trace, row).values()
    return found


def counts(trace: Trace) -> dict[str, int]:
    """Returns how many samples each stack of the only thread has."""
    ((_, thread),) = trace.threads
    return dict(Counter(path_of(trace, stack) for stack in thread.load(trace).samples["stack"].tolist()))


def kinds(trace: Trace) -> set[str]:
    return {issue.kind for issue in trace.report}


# ---------------------------------------------------------------- collapsed stacks

TEXTS: dict[str, tuple[str, dict[str, int]]] = {
    "plain": ("a;b 12\na;b 3\na 1\n", {"a;b": 15, "a": 1}),
    "spaces": ("a;operator new (std::nothrow);b c  7\n", {"a;operator new (std::nothrow);b c": 7}),
    "tab": ("a;b\t4\n", {"a;b": 4}),
    "comments": ("# traced 2\n// x\n\na;b 1\n", {"a;b": 1}),
    "parts": ("a;b 0.5\na;c 2\n", {"a;b": 5, "a;c": 20}),
    "crlf": ("a;b 1\r\na;c 2\r\n", {"a;b": 1, "a;c": 2}),
    "suffixes": ("a_[j];b_[i];c_[k] 2\n", {"a;b;c": 2}),
    "py-spy": ("<module> (w.py:8);fib (w.py:2) 3\n", {"<module>:8;fib:2": 3}),
    "rbspy": ("<main> - w.rb:8;fib - w.rb:2 3\n", {"<main>:8;fib:2": 3}),
    "long line": (";".join(["f" * 50] * 100) + " 2\n", {";".join(["f" * 50] * 100): 2}),
    "library": ("[libc.so.6];b 2\n", {"[libc.so.6];b": 2}),
    "empty names": ("a;;b 2\n", {"a;[unknown];b": 2}),
    "empty names at either end": ("a;b; 2\n;a;b 1\n", {"a;b": 3}),
    "tab behind names with spaces": ("a;operator new\t4\na\tb;c 3\n", {"a;operator new": 4, "a\tb;c": 3}),
    "exponents": ("a;b 1e3\na;c +2\n", {"a;b": 1000, "a;c": 2}),
    "long numbers": ("a;b 12345678901234567\n", {"a;b": 1 << 53}),
    "lambdas": (
        "a;f(int)::{lambda(char)#1}::operator()(char) const;<T as Fn>::call 2\n",
        {"a;f(int)::{lambda(char)#1}::operator()(char) const;<T as Fn>::call": 2},
    ),
    "no end of line": ("a;b 1\na;c 2", {"a;b": 1, "a;c": 2}),
    "blank lines": ("\n \t\r\na;b 1\n\n\n", {"a;b": 1}),
}


def test_amounts_that_are_too_large_are_a_loss(tmp_path: Path) -> None:
    largest, beyond = (1 << 53), (1 << 53) + 2
    assert "amounts_cut" not in kinds(loaded(tmp_path, f"a;b {largest}\na;c 2\n"))
    folded = loaded(tmp_path, f"a;b {beyond}\na;c 99999999999999999999\na;d 2\n")
    profile = stacks.speedscope()
    profile["profiles"][0] |= {"unit": "none", "weights": [beyond, *profile["profiles"][0]["weights"][1:]]}
    found = [folded, loaded(tmp_path, profile, "x.json")]
    assert [report_of(trace).get("amounts_cut") for trace in found] == [2, 1]
    assert folded.report.lossy


def test_what_is_reported_is_of_all_profiles_of_a_file(tmp_path: Path) -> None:
    profile = stacks.speedscope()
    for one, weights in zip(profile["profiles"], ([-1, 1 << 55, 1e300], [3]), strict=True):
        one |= {"unit": "none", "weights": weights}
    told = report_of(loaded(tmp_path, profile, "x.json"))
    assert {kind: told[kind] for kind in ("bad_rows", "below_zero", "amounts_cut", "times_made")} == {
        "bad_rows": 1, "below_zero": 1, "amounts_cut": 1, "times_made": 4,
    }  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("order", ["whole tenths cents", "cents tenths whole", "tenths whole", "whole whole"])
def test_texts_that_are_read_together_are_counted_in_the_same_parts(order: str, encoding: str, tmp_path: Path) -> None:
    """Their samples were two events, of which outputs of one number have one."""
    texts = {"whole": "a;b 300\na;c 7\n", "tenths": "a;b 300.5\n", "cents": "a 2.5e-1\na;b 3\n"}
    names = order.split()
    for nth, name in enumerate(names):
        (tmp_path / f"{nth}").write_bytes(texts[name].encode(encoding))
    trace = load_checked([str(tmp_path / f"{nth}") for nth in range(len(names))])
    assert len(trace.events) == 1
    assert trace.events[0].parts == (100 if "cents" in names else 10 if "tenths" in names else 1)
    written = saved(trace, tmp_path / "together.folded").read_text().splitlines()
    wanted = [f"{nth};{line}" for nth, name in enumerate(names) for line in sorted(texts[name].splitlines())]
    assert written == [line.replace("2.5e-1", "0.25") for line in wanted]


def test_collapsed_stacks_with_decimals_stay_what_they_are(tmp_path: Path) -> None:
    text = "a 0.25\na;b 3\na;c 1.5\na;d 12.05\n"
    trace = loaded(tmp_path, text)
    assert saved(trace, tmp_path / "again.folded").read_text() == re.sub("^", "input;", text, flags=re.M)[:-6]
    assert trace.end_ts - trace.start_ts == 16_800_000


@for_each("case", TEXTS)
def test_lines(case: tuple[str, dict[str, int]], tmp_path: Path) -> None:
    assert only(loaded(tmp_path, case[0])) == case[1]


@for_each("encoding", {name: name for name in ("utf-8-sig", "utf-16")})
def test_other_encodings(encoding: str, tmp_path: Path) -> None:
    assert only(loaded(tmp_path, "ä;b 12\n".encode(encoding))) == {"ä;b": 12}


def test_processes_and_threads_of_lines(tmp_path: Path) -> None:
    trace = loaded(tmp_path, stacks.COLLAPSED.replace("2.5", "2").replace("100,1,-20", "4"))
    assert stacks_of(trace) == {
        "input 1/input 1": {"main;operator new (std::nothrow);malloc": 12, "main;work;inlined;sys_read": 3},
        "python w.py 7/worker 42": {"fib:2": 2}, "process 12 12/T0:13 13": {"run:9": 4},
        "java 21/java 22": {"java/lang/Thread.run": 1},
    }  # fmt: skip
    depth = {
        path: trace.frames["inline_depth"][trace.stacks["frame"][n]]
        for n in range(len(trace.stacks))
        if (path := path_of(trace, n))
    }
    assert depth["main;work;inlined"] == 1


@pytest.mark.parametrize(("number", "tid"), [("06", 6), ("0x2A", 42), ("9" * 5000, 1)])
def test_numbers_of_threads(number: str, tid: int, tmp_path: Path) -> None:
    content = stacks.speedscope()
    content["profiles"] = [content["profiles"][0] | {"name": f'Thread {number} "x"'}]
    for trace in (loaded(tmp_path, content), loaded(tmp_path, f"thread ({number}): x;main;work 3\n")):
        ((_, thread),) = trace.threads
        assert (thread.tid, thread.name) == (tid, "x")


def test_a_thread_before_it_has_its_name_is_the_same_thread(tmp_path: Path) -> None:
    """As of py-spy: a thread's first samples are of the time before Python names it."""
    lines = "thread (6);start 1\nthread (6): Main;main 2\nthread (7);start 4\nthread (6): other;main 8\n"
    found = {name.partition("/")[2]: said for name, said in stacks_of(loaded(tmp_path, lines)).items()}
    assert found == {"Main 6": {"start": 1, "main": 2}, "thread (7) 7": {"start": 4}, "other 8": {"main": 8}}


def test_austins_times_are_microseconds(tmp_path: Path) -> None:
    lines = "P12;T0:13;/a/w.py:run:9 100,1,-20\nP12;T0:13;/a/w.py:run:9;/a/w.py:f:2 250,1,-20\n"
    trace = loaded(tmp_path, f"# austin: 3.6.0\n# interval: 100\n# mode: wall\n\n{lines}")
    assert only(trace) == {"run:9": 100_000, "run:9;f:2": 250_000}
    assert (trace.events[0].name, trace.sample_unit) == ("time (ns)", "ns")
    assert trace.end_ts - trace.start_ts == 350_000


def test_austins_memory_is_bytes(tmp_path: Path) -> None:
    lines = "P12;T0:13;/a/w.py:run:9 4096\nP12;T0:13 -1777664\nP12;T0:13;/a/w.py:run:9;/a/w.py:f:2 8192\n"
    trace = loaded(tmp_path, f"# austin: 3.7.0\n# interval: 2000\n# mode: memory\n# memory: 246\n\n{lines}")
    assert only(trace) == {"run:9": 4096, "run:9;f:2": 8192}
    assert trace.events[0].name == "memory (bytes)"
    assert kinds(trace) == {"times_made", "members_not_read"}


def test_threads_of_pythons_profiling_sampling(tmp_path: Path) -> None:
    """Recorded with Python 3.15.2: the first name of each stack is the thread's number."""
    trace = loaded(tmp_path, "tid:20635;app.py:main:23;app.py:inner:6 922\ntid:20640;app.py:main:23 5\n")
    assert [(t.tid, t.name) for t in trace.processes[0].threads] == [(20635, "tid:20635"), (20640, "tid:20640")]
    assert {trace.func_name(n) for n in range(len(trace.funcs))} == {"main", "inner"}


def test_damaged_lines_are_counted(tmp_path: Path) -> None:
    trace = loaded(tmp_path, "a;b 1\na;c 1\nnothing\na;b -3\n")
    assert [(i.count, i.offset) for i in trace.report if i.kind == "bad_rows"] == [(1, 12)]
    assert [i.count for i in trace.report if i.kind == "below_zero"] == [1]


def test_offsets_of_damaged_lines_of_other_encodings(tmp_path: Path) -> None:
    trace = loaded(tmp_path, "ä;b 1\na;c 1\nnothing\n".encode("utf-16"))
    assert [(i.count, i.offset) for i in trace.report if i.kind == "bad_rows"] == [(1, 2 + 2 * 12)]


REFUSED: dict[str, tuple[str | bytes, str]] = {
    "svg": ('<?xml version="1.0"?>\n<svg width="1">', "picture"),
    "callgrind": ("# callgrind format\nevents: Ir\nfn=main\n1 2\n", "callgrind"),
    "profiling.sampling, binary": ("HCAT\1\0\0\0\3\x0f\2\0", "replay FILE --gecko"),
    "profiling.sampling, JSON lines": ('{"type":"meta","v":0,"run_id":"4e","mode":"wall"}\n', "no stacks"),
    "profiling.sampling, page": (
        '<!doctype html>\n<html lang="en">\n<title>Tachyon Profiler - Flamegraph Report</title>',
        "--gecko or --collapsed",
    ),
    "pstats": (marshal.dumps({("/a/w.py", 3, "fib"): (1, 1, 0.5, 0.5, {})}), "has no stacks"),
    "pprof's text": ("heap profile: 1: 2 [3: 4] @ heap/1048576\n", "before profile.proto"),
    "heap snapshot": ('{"snapshot": {}, "nodes": [], "strings": []}', "heap snapshot"),
    "speedscope without frames": ('{"$schema": "https://www.speedscope.app/x", "profiles": []}', "missing"),
    "no nodes": ('{"nodes": [], "samples": []}', "no nodes"),
    "prose": ("Dear reader\nthis is 12\nnot; a profile", "unrecognised"),
}


@for_each("case", REFUSED)
def test_refusals(case: tuple[str | bytes, str], tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=case[1]):
        loaded(tmp_path, case[0])


DETECTED: dict[str, tuple[Any, str]] = {
    "speedscope": (stacks.speedscope(), "speedscope"),
    "speedscope without schema": ({"shared": {"frames": []}, "profiles": []}, "speedscope"),
    "cpuprofile": (stacks.cpuprofile(), "cpuprofile"),
    "hermes": (stacks.hermes(), "hermes"),
    "sampled heap": ({"head": {}, "samples": []}, "cpuprofile"),
    "firefox": ({"threads": [], "meta": {}, "shared": {"frames": []}, "profiles": []}, "firefox"),
    "chrome": ({"traceEvents": [], "nodes": [], "samples": []}, "perfetto"),
    "chrome's list": ([{"ph": "X"}], "perfetto"),
    "ftrace": (b"# tracer: nop\n#\na-1 [000] 1.0: x 5\n", "perfetto"),
    "perf script": (stacks.PERF_SCRIPT.encode(), "perfscript"),
    "bracket first": (b"[libc.so];main 5\n", "collapsed"),
    "pprof": (stacks.pprof(), "pprof"),
    "perfetto": (bytes.fromhex("0a0440015001"), "perfetto"),
}


@for_each("case", DETECTED)
def test_detection(case: tuple[Any, str]) -> None:
    data = case[0] if isinstance(case[0], bytes) else json.dumps(case[0]).encode()
    assert detect(Source("x", memoryview(data))).name == case[1]


# ---------------------------------------------------------------- speedscope


def test_sampled_profiles_are_threads(tmp_path: Path) -> None:
    trace = loaded(tmp_path, stacks.speedscope(), "w.speedscope.json")
    # The sample of twice the weight is two.
    assert stacks_of(trace) == {
        "w 1/MainThread 12": {"main:1": 1, "main:1;fib:4": 1, "main:1;fib:4;fib:4": 2},
        "process 7 7/worker 42": {"main:1": 1},
    }
    assert trace.threads[0][1].load(trace).samples["ts"].tolist() == [0, 10**7, 2 * 10**7]
    assert (trace.events[0].unit, trace.events[0].interval_ns, trace.inputs[0].producer) == (
        "samples",
        10**7,
        "py-spy@0.4.0",
    )


def test_threads_and_processes_of_py_spy_are_no_functions(tmp_path: Path) -> None:
    """--threads and --subprocesses put them in front of the functions; a thread has its name there, once it has one."""
    names = ["main", "fib", "thread (12)", "thread (12): Main; Thread", 'process 7:"python w.py"']
    content = stacks.speedscope()
    content["shared"] = {"frames": [{"name": name} for name in names]}
    samples = {"samples": [[2, 0], [3, 0, 1], [4, 3, 0]], "weights": [1, 1, 1]}
    content["profiles"] = [content["profiles"][0] | samples | {"name": 'Thread 12 ""'}]
    trace = loaded(tmp_path, content)
    assert (list(stacks_of(trace).values()), trace.threads[0][1].name) == ([{"main": 2, "main;fib": 1}], "Main; Thread")
    content["exporter"] = "another"
    assert "thread (12);main" in only(loaded(tmp_path, content))


def test_uneven_times_are_weights(tmp_path: Path) -> None:
    content = stacks.speedscope()
    content["profiles"] = content["profiles"][:1]
    content["profiles"][0] |= {"unit": "milliseconds", "weights": [1.5, 0.7, 4]}
    trace = loaded(tmp_path, content)
    assert (trace.events[0].name, trace.sample_unit) == ("time (ns)", "ns")
    assert sorted(only(trace).values()) == [700_000, 1_500_000, 4_000_000]


def test_events_with_times_are_calls(tmp_path: Path) -> None:
    trace = loaded(tmp_path, stacks.evented())
    calls = trace.threads[0][1].load(trace).calls
    assert (calls["ts"] / 1e6).tolist() == [1, 2, 4, 4, 4.5, 6]
    assert [trace.func_name(trace.frames["func"][frame]) for frame in calls["frame"]] == ["a", "b", "b", "b", "b", "a"]


def test_events_out_of_turn(tmp_path: Path) -> None:
    rows = [("O", 0, 1), ("O", 1, 2), ("C", 0, 3), ("C", 1, 4), ("O", 1, 5)]
    trace = loaded(tmp_path, stacks.evented(events=rows))
    flags = trace.threads[0][1].load(trace).calls["flags"].tolist()
    assert flags == [0, 0, LEAVE | UNWOUND, LEAVE, 0, LEAVE | OPEN_AT_END]
    assert "bad_rows" in kinds(trace)


def test_events_of_amounts_are_samples(tmp_path: Path) -> None:
    trace = loaded(tmp_path, stacks.evented("none"))
    assert only(trace) == {"a": 25, "a;b": 25}
    assert trace.events[0].name == "1/10 of a sample"
    whole = loaded(tmp_path, stacks.evented("bytes", [("O", 0, 0), ("O", 1, 2), ("C", 1, 5), ("C", 0, 6)]))
    assert (only(whole), whole.events[0].name) == ({"a": 3, "a;b": 3}, "bytes")


def test_the_first_files_have_one_profile(tmp_path: Path) -> None:
    old = stacks.evented("none", [("O", 0, 0), ("C", 0, 2)])
    old = {"$schema": stacks.URL, "shared": old["shared"], "profile": old["profiles"][0]}
    assert only(loaded(tmp_path, old)) == {"a": 2}


# ---------------------------------------------------------------- CPU profiles of V8


def test_samples_have_the_lines_of_ticks(tmp_path: Path) -> None:
    trace = loaded(tmp_path, stacks.cpuprofile())
    assert counts(trace) == {"outer:9": 1, "outer:9;inner:13": 2, "outer:9;inner:15": 1, "(program):17": 1}
    samples = trace.threads[0][1].load(trace).samples
    assert samples["ts"].tolist() == [2_000_000, 3_000_000, 4_000_000, 5_000_000, 6_000_000]
    assert (trace.clock.kind if trace.clock else "", trace.events[0].interval_ns) == ("monotonic", 10**6)


def test_parents_instead_of_children(tmp_path: Path) -> None:
    content = stacks.cpuprofile()
    for one in content["nodes"]:
        parent = next((other["id"] for other in content["nodes"] if one["id"] in other["children"]), None)
        one |= {"parent": parent} if parent else {}
    for one in content["nodes"]:
        one.pop("children")
    assert "outer:9;inner:13" in only(loaded(tmp_path, content))


DELTAS = {
    # Microseconds before each of the five samples, and the ns for which each stands.
    "uneven": ([500, 1000, 9000, 400, 600], [1_000_000, 9_000_000, 400_000, 600_000, 2_750_000]),
    "of one microsecond": ([0, 1000, 0, 1000, 1000], [1_000_000, 1, 1_000_000, 1_000_000, 750_000]),
    "out of order": ([5000, 1000, -500, 1000, 2000], [500_000, 500_000, 500_000, 2_000_000, 875_000]),
}


@pytest.mark.parametrize(("us", "wanted"), DELTAS.values(), ids=DELTAS)
def test_a_sample_stands_until_the_next(us: list[int], wanted: list[int], tmp_path: Path) -> None:
    """And the last one as long as the others on average: of the first, nobody knows how long it had gone on."""
    trace = loaded(tmp_path, stacks.cpuprofile() | {"timeDeltas": us}, "x.cpuprofile")
    ((_, thread),) = trace.threads
    assert thread.load(trace).samples["weight"].tolist() == wanted
    (event,) = trace.events
    assert (event.name, event.unit, event.interval_ns) == ("wall-clock", "ns", sum(wanted) // 5)


def test_how_long_samples_stand_is_in_both_viewers_files(tmp_path: Path) -> None:
    us, wanted = DELTAS["uneven"]
    trace = loaded(tmp_path, stacks.cpuprofile() | {"timeDeltas": us}, "x.cpuprofile")
    again = load_checked([str(saved(trace, tmp_path / "x.json"))])
    assert (again.events, only(again)) == (trace.events, only(trace))
    samples = perfetto.read(saved(trace, tmp_path / "x.pftrace")).samples
    assert [one.counters["wall-clock, ns"][1] for one in samples] == wanted


def test_samples_that_a_viewer_left_out_leave_the_others_their_mean(tmp_path: Path) -> None:
    trace = loaded(tmp_path, stacks.cpuprofile() | {"timeDeltas": DELTAS["uneven"][0]}, "x.cpuprofile")
    held = json.loads(saved(trace, tmp_path / "x.json").read_text())
    held["threads"][0]["samples"] |= {"stack": [0, 1], "time": [0, 1], "length": 2}
    (event,) = loaded(tmp_path, held).events
    assert (event.unit, event.interval_ns) == ("samples", 2_750_000)


def test_a_single_sample_stands_until_the_end(tmp_path: Path) -> None:
    trace = loaded(tmp_path, stacks.cpuprofile() | {"samples": [2], "timeDeltas": [1000]})
    assert only(trace) == {"outer:9": 5_000_000}


def test_samples_without_times_are_spread_over_the_profile(tmp_path: Path) -> None:
    for absent in ({}, {"timeDeltas": []}):
        content = {key: value for key, value in stacks.cpuprofile().items() if key != "timeDeltas"} | absent
        trace = loaded(tmp_path, content)
        samples = trace.threads[0][1].load(trace).samples
        assert samples["ts"].tolist() == [1_000_000, 2_200_000, 3_400_000, 4_600_000, 5_800_000]
        assert (set(samples["weight"].tolist()), trace.events[0].unit) == ({1_200_000}, "ns")
        assert kinds(trace) == {"times_made"}


def test_samples_of_which_nothing_tells_the_time_are_counted(tmp_path: Path) -> None:
    content = {key: stacks.cpuprofile()[key] for key in ("nodes", "samples")} | {"startTime": 1000}
    trace = loaded(tmp_path, content)
    assert (trace.events[0].name, trace.events[0].unit, kinds(trace)) == ("samples", "samples", {"times_made"})
    assert np.diff(trace.threads[0][1].load(trace).samples["ts"]).tolist() == [10**6] * 4
    assert sum(only(trace).values()) == 5


def test_samples_of_old_files_without_times(tmp_path: Path) -> None:
    """Whose start and end are in seconds."""
    content = {key: value for key, value in stacks.old_cpuprofile().items() if key != "timestamps"}
    trace = loaded(tmp_path, content)
    assert set(only(trace).values()) == {50_000_000}


def test_nested_nodes_of_old_files(tmp_path: Path) -> None:
    assert counts(loaded(tmp_path, stacks.old_cpuprofile())) == {"(anonymous):2": 1, "(anonymous):2;inner:5": 1}


def test_sampled_heaps(tmp_path: Path) -> None:
    content = stacks.old_cpuprofile()
    heap = {"head": content["head"], "samples": []}
    heap["head"]["children"][0]["selfSize"] = 4096
    trace = loaded(tmp_path, heap, "x.heapprofile")
    assert {path: n for path, n in only(trace).items() if n} == {"(anonymous):2": 4096}
    ((_, thread),) = trace.threads
    assert [(event.name, event.unit, event.leader) for event in trace.events] == [
        ("bytes", "samples", -1), ("objects", "count", 0),
    ]  # fmt: skip
    assert thread.load(trace).other_samples[1]["weight"].tolist() == [1]


def test_why_a_sampled_heap_is_empty(tmp_path: Path) -> None:
    head = {"callFrame": {"functionName": "(root)", "url": ""}, "selfSize": 0, "id": 1, "children": []}
    (issue,) = (one for one in loaded(tmp_path, {"head": head, "samples": []}, "x.heapprofile").report
                if one.kind == "no_samples")  # fmt: skip
    assert issue.detail.startswith("a sampled heap has objects that were live at its end")


def test_objects_of_sampled_heaps_and_nodes_without_numbers(tmp_path: Path) -> None:
    frame = {"functionName": "f", "url": "w.js", "lineNumber": 3, "columnNumber": 0}
    leaf = {"callFrame": frame, "selfSize": 48, "id": 2, "children": []}
    root = {"callFrame": frame | {"functionName": "(root)", "url": ""}, "selfSize": 0, "id": 1, "children": [leaf]}
    objects = [{"size": 24, "nodeId": 2, "ordinal": 1}] * 2
    heap = loaded(tmp_path, {"head": root, "samples": objects}, "x.heapprofile")
    assert (only(heap), only(heap, 1)) == ({"f:4": 48}, {"f:4": 2})
    leaf.pop("id"), root.pop("id")
    trace = loaded(tmp_path, {"head": root}, "y.heapprofile")
    assert (only(trace), only(trace, 1), kinds(trace)) == ({"f:4": 48}, {"f:4": 1}, {"times_made"})


def test_nodes_that_call_themselves(tmp_path: Path) -> None:
    content = stacks.cpuprofile()
    content["nodes"][2]["children"] = [2]
    content["nodes"][0]["children"] = [4]
    assert "bad_rows" in kinds(loaded(tmp_path, content))


def test_nodes_that_are_all_in_a_circle(tmp_path: Path) -> None:
    frame = {"functionName": "f", "url": "", "lineNumber": 0, "columnNumber": 0}
    nodes = [{"id": 1, "callFrame": frame, "children": [1]}]
    trace = loaded(tmp_path, {"nodes": nodes, "samples": [1], "timeDeltas": [5], "startTime": 0, "endTime": 9})
    assert (counts(trace), "bad_rows" in kinds(trace)) == ({"": 1}, True)


def test_node_records_what_is_read(tmp_path: Path) -> None:
    node = shutil.which("node") or pytest.skip("node is not installed")
    (tmp_path / "w.js").write_text(
        "const end = Date.now() + 150; function busy() { while (Date.now() < end); }\nbusy()\n"
    )
    words = [
        node,
        "--cpu-prof",
        "--cpu-prof-dir",
        str(tmp_path),
        "--cpu-prof-name",
        "x.cpuprofile",
        str(tmp_path / "w.js"),
    ]
    subprocess.run(words, check=True, timeout=60)
    trace = load_checked([str(tmp_path / "x.cpuprofile")])
    held = json.loads((tmp_path / "x.cpuprofile").read_text())
    assert sum(counts(trace).values()) == len(held["samples"])
    assert any(path.endswith("busy:1") for path in only(trace))


# ---------------------------------------------------------------- pprof


def test_sample_types_labels_and_inlined_lines(tmp_path: Path) -> None:
    trace = loaded(tmp_path, gzip.compress(stacks.pprof()), "x.pb.gz")
    assert [(e.name, e.unit, e.leader, e.interval_ns) for e in trace.events] == [
        ("samples", "samples", -1, 10**7), ("cpu", "ns", 0, 0),
    ]  # fmt: skip
    assert stacks_of(trace) == {
        "app 1/worker=a b;c 1": {"main.main:7;work:9;inlined:3": 2},
        "app 1/app 2": {"main.main:7;work:9;inlined:3;app+0x2000": 1},
    }
    assert sum(sum(of.values()) for of in stacks_of(trace, 1).values()) == 30_000_000
    assert (trace.unix_start_ns, trace.end_ts - trace.start_ts) == (1_700_000_000 * 10**9, 10**9)
    lib = trace.libs["code_id"][0]
    assert trace.strings[int(lib)] == "ab" * 20


@pytest.mark.parametrize("gives_symbols", [False, True])
def test_lines_without_a_function_are_named_by_the_library(gives_symbols: bool, tmp_path: Path) -> None:
    """As go tool pprof -proto writes gperftools' profiles: with file and line, but no name."""
    (tmp_path / "h").write_bytes(Dwarf(5).elf([Symbol("_ZN2ns4leakEv", 0x1000, 16)]))
    made = stacks.Pprof((("samples", "count"),))
    program = made.mapping("h")
    leak, other = (made.location(("", "h.cpp", 6), mapping=program, address=at) for at in (0x401004, 0x402000))
    bare = made.location(("", "h.cpp", 7))
    for location, n in ((leak, 3), (other, 2), (bare, 1)):
        made.sample([location], [n])
    trace = loaded(tmp_path, made.data(), symbols=str(tmp_path / "h") if gives_symbols else ())
    name = "ns::leak()" if gives_symbols else "h+0x1004"
    assert only(trace) == {f"{name}:6": 3, "h+0x2000:6": 2, "[unknown]:7": 1}
    paths = {trace.strings[int(path)] for path in trace.sources["path"]}
    assert paths == {"h.cpp"}


@pytest.mark.parametrize(
    ("process", "samples", "sizes"),
    [
        ("app (7)", {"app 7/main 7": {"f": 1}, "app 7/worker 9": {"f": 2}}, {"app 7/main 7": {"f": 64}}),
        (
            "app",
            {"app 1/main 7": {"f": 1}, "app 1/worker 9": {"f": 2}, "app 1/app 10": {}},
            {"app 1/app 10": {"f": 64}},
        ),
    ],
    ids=["ours", "another's"],
)
def test_sizes_of_a_process_are_no_thread(process: str, samples: Said, sizes: Said, tmp_path: Path) -> None:
    """In a profile of ours, whose names have numbers, these are at the process's first thread; in another's, the thread
    is not known, and has the number of none that is. Here they come first."""
    made = stacks.Pprof((("code_size", "bytes"), ("samples", "count")))
    leaf = [made.location(("f", "", 0))]
    made.sample(leaf, [64, 0], process=process)
    made.sample(leaf, [0, 1], process=process, thread="main (7)")
    made.sample(leaf, [0, 2], process=process, thread="worker (9)")
    trace = loaded(tmp_path, made.data())
    assert [event.name for event in trace.events] == ["samples", "code_size"]
    assert stacks_of(trace) == samples
    assert {owner: found for owner, found in stacks_of(trace, 1).items() if found} == sizes


HEAP = (("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes"))


def test_the_main_type_is_what_pprof_shows(tmp_path: Path) -> None:
    made = stacks.Pprof(HEAP)
    made.sample([made.location(("f", "", 0))], [4, 400, 1, 100])
    default = loaded(tmp_path, made.data((14, made.text("alloc_space"))))
    assert [(e.name, e.unit, e.leader) for e in default.events] == [
        ("alloc_space (bytes)", "samples", -1), ("alloc_objects", "count", -1), ("inuse_objects", "count", -1),
        ("inuse_space", "bytes", 2),
    ]  # fmt: skip
    assert [only(default, row) for row in range(4)] == [{"f": 400}, {"f": 4}, {"f": 1}, {"f": 100}]
    assert loaded(tmp_path, made.data()).events[0].name == "inuse_space (bytes)"


def sampled_by_speedscope(unit: str) -> dict[str, Any]:
    rows = {"type": "sampled", "name": "x", "unit": unit, "startValue": 0, "endValue": 250}
    samples = {"samples": [[0], *[[0, 1]] * 24], "weights": [10] * 25}
    return stacks.speedscope(exporter="x", profiles=[rows | samples])


FEW: dict[str, tuple[bytes | dict[str, Any], str]] = {
    "x.pb": (stacks.pprof(), "only 3 samples: shares may be off by 58 percentage points"),
    "x.cpuprofile": (stacks.cpuprofile(), "only 5 samples of wall-clock: shares may be off by 45 percentage points"),
    "time.json": (sampled_by_speedscope("milliseconds"), "only 25 samples: shares may be off by 20 percentage points"),
    # What it counts is not known, and may be all that there was.
    "counts.json": (sampled_by_speedscope("none"), "good recording: 250 samples, 1 thread, 241ms"),
    "x.folded": (b"a;b 24\na 1\n", "good recording: 25 samples, 1 thread, 25ms"),
}


@pytest.mark.parametrize("name", FEW)
def test_few_samples_of_time_are_told_of_in_every_format(name: str, tmp_path: Path) -> None:
    content, headline = FEW[name]
    assert summarize(loaded(tmp_path, content, name))["verdict"]["headline"] == headline


def test_a_heap_is_shown_in_bytes(tmp_path: Path) -> None:
    """Everywhere, and after a way through each viewer's format: what the objects have, not how many they are."""
    made = stacks.Pprof(HEAP)
    made.sample([made.location(("large", "", 0))], [1, 3_000_000, 1, 3_000_000])
    made.sample([made.location(("small", "", 0))], [1000, 1_000_000, 1000, 1_000_000])
    trace = loaded(tmp_path, made.data())
    summary = summarize(trace)
    assert summary["verdict"]["headline"] == "good recording: 4 MB of inuse_space, 1 thread, 2ms"
    assert (summary["functions"]["sample_unit"], summary["costs"][0]["unit"]) == ("bytes", "bytes")
    text = as_text(summary)
    assert "largest costs of 4 MB:\n   75.0%  large itself" in text
    assert re.search(r"bytes +% +thread\n +4 MB", text)
    assert re.search(r"\n +3 MB +75.0% +3 MB +75.0% .* large", text)
    path = saved(trace, tmp_path / "out.json")
    profile = json.loads(path.read_bytes())
    assert profile["threads"][0]["samples"]["weightType"] == "bytes"
    again = load_checked(path)
    assert again.events == trace.events
    assert [only(again, row) for row in range(4)] == [only(trace, row) for row in range(4)]
    samples = perfetto.read(saved(trace, tmp_path / "out.pftrace")).samples
    assert [one.counters["inuse space, bytes"] for one in samples if "inuse space, bytes" in one.counters] == [
        (4, 3_000_000), (4, 1_000_000),  # UNIT_BYTES
    ]  # fmt: skip


def test_frames_that_are_dropped(tmp_path: Path) -> None:
    made = stacks.Pprof()
    main, new, malloc = (made.location((name, "", 0)) for name in ("main", "operator new(int)", "malloc"))
    made.sample([malloc, new, main], [1, 1])
    assert only(loaded(tmp_path, made.data((7, made.text("operator new|malloc"))))) == {"main": 1}
    unsafe = loaded(tmp_path, made.data((7, made.text("(a*)*b"))))
    assert (only(unsafe), "members_not_read" in kinds(unsafe)) == ({"main;operator new(int);malloc": 1}, True)


def test_differences_and_missing_parts_are_counted(tmp_path: Path) -> None:
    made = stacks.Pprof()
    made.sample([made.location(("f", "", 0)), 99], [-1, 5])
    trace = loaded(tmp_path, made.data())
    assert [(i.kind, i.count) for i in trace.report if i.kind != "times_made"] == [("bad_rows", 1), ("below_zero", 1)]
    cut = loaded(tmp_path, made.data() + b"\x0a")
    assert "truncated" in kinds(cut)


GO = """package main
import ("os"; "runtime/pprof"; "time"; "runtime")
var keep [][]byte
//go:noinline
func busy(until time.Time) { for time.Now().Before(until) {} }
//go:noinline
func fill() { for i := 0; i < 500; i++ { keep = append(keep, make([]byte, 4096)) } }
func main() {
	runtime.MemProfileRate = 1
	c, _ := os.Create("cpu.pb.gz"); pprof.StartCPUProfile(c)
	busy(time.Now().Add(200 * time.Millisecond)); fill(); pprof.StopCPUProfile(); c.Close()
	h, _ := os.Create("heap.pb.gz"); pprof.WriteHeapProfile(h); h.Close()
}
"""


def test_go_says_of_its_profiles_what_info_says(tmp_path: Path) -> None:
    go = shutil.which("go") or pytest.skip("go is not installed")
    (tmp_path / "main.go").write_text(GO)
    subprocess.run([go, "build", "-o", "app", "main.go"], check=True, cwd=tmp_path, timeout=300)
    subprocess.run([tmp_path / "app"], check=True, cwd=tmp_path, timeout=60)
    for name, options in (("cpu", ["-sample_index=samples"]), ("heap", ["-sample_index=inuse_space", "-unit=B"])):
        trace = load_checked([str(tmp_path / f"{name}.pb.gz")])
        shown = top(tmp_path / f"{name}.pb.gz", *options)
        told = {key: amounts for key, amounts in functions_of(trace).items() if amounts[1]}
        assert {key: told.get(key) for key in shown} == shown
        again = saved(trace, tmp_path / f"{name}-again.pb.gz")
        assert top(again, *(options if name == "heap" else ["-sample_index=samples"])) == shown


UNITS = {"μs": 1000, "µs": 1000, "us": 1000, "ms": 10**6, "milliseconds": 10**6, "s": 10**9, "nanosecond": 1}


@for_each("unit", {unit: unit for unit in UNITS})
def test_units_of_times(unit: str, tmp_path: Path) -> None:
    made = stacks.Pprof((("wall", unit),))
    made.sample([made.location(("f", "", 0))], [3])
    made.sample([made.location(("g", "", 0))], [2])
    trace = loaded(tmp_path, made.data())
    assert (only(trace), trace.events[0].name) == ({"f": 3 * UNITS[unit], "g": 2 * UNITS[unit]}, "wall (ns)")
    assert trace.end_ts - trace.start_ts == 5 * UNITS[unit]


def test_times_of_a_known_period_are_samples(tmp_path: Path) -> None:
    made = stacks.Pprof((("cpu", "nanoseconds"),))
    made.period("cpu", "nanoseconds", 10**7)
    made.sample([made.location(("f", "", 0))], [3 * 10**7])
    trace = loaded(tmp_path, made.data())
    assert (only(trace), trace.events[0].name, trace.events[0].interval_ns) == ({"f": 3}, "cpu", 10**7)


def test_measured_times_stay_what_they_are(tmp_path: Path) -> None:
    """In each format that is written, and read again: whatever they are multiples of."""
    made = stacks.Pprof((("delay", "nanoseconds"),))
    for name, ns in (("f", 5_000_004), ("g", 1_000_000_008)):
        made.sample([made.location((name, "", 0))], [ns])
    trace = loaded(tmp_path, made.data())
    assert as_text(summarize(trace)).count("1.01s of delay") == 1
    for suffix in ("json", "pb.gz"):
        again = load_checked([str(saved(trace, tmp_path / f"again.{suffix}"))])
        assert (sorted(only(again).values()), again.sample_unit) == ([5_000_004, 1_000_000_008], "ns")
    assert sorted(saved(trace, tmp_path / "x.folded").read_text().split())[:2] == ["1000000008", "5000004"]


def test_a_profile_of_sizes_alone_is_counted_in_bytes(tmp_path: Path) -> None:
    made = stacks.Pprof((("space", "kb"),))
    made.sample([made.location(("f", "", 0))], [3])
    trace = loaded(tmp_path, made.data())
    assert (only(trace), trace.events[0].name) == ({"f": 3072}, "space (bytes)")


EMPTY: dict[str, Any] = {
    "pprof": stacks.Pprof().data(), "pprof without types": stacks.Pprof(()).data((10, 5)),
    "collapsed": "main;a 0\nmain;b 0\n",
    "cpuprofile": stacks.cpuprofile() | {"samples": [], "timeDeltas": [], "nodes": stacks.cpuprofile()["nodes"][:1]},
    "speedscope": stacks.speedscope() | {"profiles": [stacks.evented()["profiles"][0] | {"events": []}]},
}  # fmt: skip


@for_each("content", EMPTY)
def test_what_holds_nothing_is_no_good_recording(content: Any, tmp_path: Path) -> None:
    assert "no_samples" in kinds(loaded(tmp_path, content))


# ---------------------------------------------------------------- shared parts


def test_the_order_of_a_flame_graph() -> None:
    table = NodeTable()
    table.append(np.array([-1, 0, -1, 0, 1], np.int32), np.arange(5, dtype=np.int32))  # a, a;b, c, a;d, a;b;e
    assert table.places().tolist() == [0, 1, 4, 3, 2, -1]


def test_amounts_with_decimals() -> None:
    made = [whole_amounts(np.array(amounts)) for amounts in ([1.0, -2, np.nan], [0.25])]
    assert [(whole.tolist(), scale) for whole, scale in made] == [
        ([1, 0, 0], 1), ([25], 100),
    ]  # fmt: skip
    whole, scale = whole_amounts(np.array([2.5, 1e20]), 100)
    assert (whole.tolist(), scale) == ([250, 1 << 53], 100)


def test_the_difference_of_two_profiles_is_refused(tmp_path: Path) -> None:
    """difffolded.pl writes two numbers a line, of which the first was taken for a part of a name."""
    path = tmp_path / "diff.folded"
    path.write_text("a;b;c 5 7\na;b 2 3\n\na;d 0 4\n")
    with pytest.raises(FormatError, match="traceferry compare BEFORE AFTER") as refused:
        load_checked(path)
    assert refused.value.offset == 0
    path.write_text("a;b;call 5 7\na;b 2\na;d 4\n")
    assert [thread.n_records for _, thread in load_checked(path).threads] == [3]


def test_functions_that_are_called_by_numbers_are_no_difference(tmp_path: Path) -> None:
    """As convert writes those of a program without names."""
    path = tmp_path / "stripped.folded"
    path.write_text("app;function 15 1500\napp;function 15;function 1 20\n")
    trace = load_checked(path)
    assert {"function 15", "function 1"} <= {trace.func_name(func) for func in range(len(trace.funcs))}
