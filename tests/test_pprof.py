"""pprof profiles and collapsed stacks: their numbers are those of info."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from builders.xray import Basic
from conftest import REPO
from outputs import saved
from support import load_checked, report_of
from test_foreign_content import weighted
from test_perfetto_heap import START, Built, thread

from traceferry import exporters
from traceferry.analysis.info.summary import summarize
from traceferry.model import COUNTER_VALUES, SAMPLES, Event, Table, ThreadData, Trace
from traceferry.model import Counter as CounterTrack

JAVA = REPO / "fixtures" / "jit" / "java17" / "perf.data.zst"
XRAY = REPO / "fixtures" / "xray" / "clang-19" / "fdr-c19-pie-pool.xray"
ROW = re.compile(r"\s*(\d+)(?:ns)?\s+\S+%\s+\S+%\s+(\d+)(?:ns)?\s+\S+%\s+(.*?)(?: \(inline\))?$")


@pytest.fixture(scope="module", params=[JAVA, XRAY], ids=["samples", "calls"])
def trace(request: pytest.FixtureRequest) -> Trace:
    return load_checked([str(request.param)])


def top(path: Path, *options: str) -> dict[str, tuple[int, int]]:
    """Returns what `pprof -top` has of each function: (flat, cum)."""
    go = shutil.which("go") or pytest.skip("go is not installed")
    words = [go, "tool", "pprof", "-top", "-nodecount=1000000", "-nodefraction=0", *options, str(path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    if "no such tool" in done.stderr:
        pytest.skip("go has no tool pprof")
    assert done.returncode == 0, done.stderr
    rows = (found for line in done.stdout.splitlines() if (found := ROW.fullmatch(line)))
    functions: dict[str, tuple[int, int]] = {}
    for found in rows:
        flat, cum = functions.get(found[3], (0, 0))
        functions[found[3]] = flat + int(found[1]), cum + int(found[2])
    return functions


def functions_of(trace: Trace, are_unique: bool = True) -> dict[str, tuple[int, int]]:
    """Returns what info has of each function: of those whose name is the only one of its kind; else of the names."""
    told = summarize(trace, top=10**6)["functions"]["top"]
    names = Counter(row["name"] for row in told)
    has_calls = any(row.get("total_ns") for row in told)
    flat, cum = ("self_ns", "total_ns") if has_calls else ("samples", "total_samples")
    if are_unique:
        told = [row for row in told if names[row["name"]] == 1]
    found: dict[str, tuple[int, int]] = {}
    for row in told:
        own, total = found.get(row["name"], (0, 0))
        found[row["name"]] = own + row[flat], total + row[cum]
    return found


def test_pprof_top_is_info(trace: Trace, tmp_path: Path) -> None:
    found = top(saved(trace, tmp_path / "x.pb.gz"), "-unit=ns")
    wanted = {name: amounts for name, amounts in functions_of(trace).items() if amounts[1]}
    assert {name: found.get(name) for name in wanted} == wanted
    all_own = (flat for flat, _ in functions_of(trace, are_unique=False).values())
    assert sum(flat for flat, _ in found.values()) == sum(all_own)


def test_pprof_shows_names_as_they_are(tmp_path: Path) -> None:
    lines = {"<m::A as m::Work>::work": 5, "<m::B as m::Work>::work": 3, "ns::f(int)": 2, "<module>": 1}
    (tmp_path / "x.folded").write_text("".join(f"main;{name} {n}\n" for name, n in lines.items()))
    found = top(saved(load_checked(tmp_path / "x.folded"), tmp_path / "x.pb.gz"))
    assert {name: flat for name, (flat, _) in found.items() if flat} == lines


def test_collapsed_stacks_add_up_to_info(trace: Trace, tmp_path: Path) -> None:
    own: Counter[str] = Counter()
    for line in saved(trace, tmp_path / "x.folded").read_text().splitlines():
        path, number = line.rsplit(" ", 1)
        own[path.rsplit(";", 1)[1]] += int(number)
    wanted = {name: flat for name, (flat, _) in functions_of(trace).items() if flat and ";" not in name}
    assert wanted
    assert {name: own[name] for name in wanted} == wanted


# ---------------------------------------------------------------- what is in a file, read here


def fields_of(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            assert tag & 7 == 2
            size = varint()
            yield tag >> 3, data[at : at + size]
            at += size


def numbers_of(data: bytes) -> list[int]:
    each = re.findall(rb"[\x80-\xff]*[\x00-\x7f]", data, re.DOTALL)
    return [value for _, value in fields_of(b"".join(b"\x08" + one for one in each))]


def read_profile(path: Path) -> tuple[list[tuple[str, str]], list[tuple[list[str], list[int], dict[str, str]]]]:
    """Returns (types of samples with their units, samples: functions, values, labels)."""
    data = gzip.decompress(path.read_bytes())
    fields = list(fields_of(data))
    texts = [value.decode() for field, value in fields if field == 6]
    types = [tuple(texts[number] for _, number in fields_of(value)) for field, value in fields if field == 1]
    names = {}
    for field, value in fields:
        if field == 5:
            function = dict(fields_of(value))
            names[function[1]] = texts[function[2]]
    samples = []
    for field, value in fields:
        if field == 2:
            parts = list(fields_of(value))
            labels = [dict(fields_of(part)) for number, part in parts if number == 3]
            of = dict(parts)
            stack = [names[location] for location in numbers_of(of[1])]
            samples.append((stack, numbers_of(of[2]), {texts[one[1]]: texts[one[2]] for one in labels}))
    return types, samples  # type: ignore[return-value]


def test_rows_that_stand_for_several_samples(tmp_path: Path) -> None:
    types, samples = read_profile(saved(weighted(7, 1).trace, tmp_path / "x.pb.gz"))
    assert types == [("samples", "count")]
    labels = {"process": "app 1 (1)", "thread": "main (1)"}
    assert samples == [(["a", "main"], [7], labels), (["b", "main"], [1], labels)]


def test_each_event_is_a_type(tmp_path: Path) -> None:
    built = Built()
    built.trace.events = [Event("cpu-clock", "ns", 10**6, "clock"), Event("cache-misses", "count", kind="hardware")]
    one, other = built.stack("f;g"), built.stack("f;g", "h")
    samples = Table(SAMPLES, {"ts": [START, START + 1], "stack": [one, other], "weight": [5, 6]})
    misses = Table(SAMPLES, {"ts": [START], "stack": [other], "weight": [100]})
    thread(built.process(), ThreadData(samples=samples, other_samples={1: misses}))
    types, found = read_profile(saved(built.trace, tmp_path / "x.pb.gz"))
    assert types == [("samples", "count"), ("cpu-clock", "nanoseconds"), ("cache-misses", "count")]
    assert [(stack, values) for stack, values, _ in found] == [(["f;g"], [1, 5, 0]), (["h", "f;g"], [1, 6, 100])]
    assert saved(built.trace, tmp_path / "x.folded").read_text() == "app 1;f:g 1\napp 1;f:g;h 1\n"


def test_a_recording_of_nothing(tmp_path: Path) -> None:
    built = Built()
    built.process()
    assert read_profile(saved(built.trace, tmp_path / "x.pb.gz")) == ([("samples", "count")], [])
    assert saved(built.trace, tmp_path / "x.folded").read_text() == ""
    assert {issue.kind for issue in load_checked(tmp_path / "x.pb.gz").report} == {"no_samples"}


def recursive(folder: Path, n_deep: int, n_funcs: int = 1) -> Trace:
    """One function that calls others, which call each other without an order, each call 1 us after the one before."""
    log, rng = Basic(frequency=1_000_000_000).enter(1, 0, tid=7), Random(1)
    for nth in range(n_deep):
        log.enter(2 + rng.randrange(n_funcs) if nth < n_deep - 1 else 99, 1000 * (nth + 1), tid=7)
    (folder / "deep.xray").write_bytes(log.bytes())
    return load_checked([str(folder / "deep.xray")])


def test_deep_stacks_are_whole_where_all_together_are_not_too_much(tmp_path: Path) -> None:
    trace = recursive(tmp_path, 1500)
    lines = saved(trace, tmp_path / "x.folded").read_text().splitlines()
    assert max(line.count(";") for line in lines) == 1500
    assert "callstack_cut" not in report_of(trace)


def test_deep_stacks_lose_their_middle_where_all_together_are_too_much(tmp_path: Path) -> None:
    trace = recursive(tmp_path, 3000)
    rows = [line.rpartition(" ") for line in saved(trace, tmp_path / "x.folded").read_text().splitlines()]
    assert report_of(trace)["callstack_cut"] == 3001 - 512
    # Each call lasts 1 us by itself, but for the last, which ends with the recording.
    assert sum(int(amount) for _, _, amount in rows) == 3_000_000
    deepest = max((path for path, _, _ in rows), key=lambda path: path.count(";")).split(";")[1:]
    assert deepest[:384] == ["function 1", *["function 2"] * 383]
    assert deepest[384] == "[frames left out]"
    assert deepest[385:] == ["function 2"] * 127
    # Those that are equal are one: the 2,488 that end in the function that calls itself.
    assert len(rows) == 512 + 1


def test_deep_stacks_that_differ_keep_fewer_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporters.amounts, "MOST_FUNCTIONS", 10_000)
    lines = saved(recursive(tmp_path, 700, n_funcs=7), tmp_path / "x.folded").read_text().splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == 700_000
    assert {line.count(";") for line in lines if "[frames left out]" in line} == {32}
    assert max(line.count(";") for line in lines) == 512


@pytest.mark.parametrize("name", ["x.folded", "x.pb.gz", "x.afdo.txt", "x.gecko.json"])
def test_an_output_that_holds_nothing_is_told(name: str, tmp_path: Path) -> None:
    """That the recording is good says nothing of what there is of it in the output."""
    built = Built()
    process = built.process()
    values = Table(COUNTER_VALUES, {"ts": [START], "value": [1.0]})
    process.counters.append(CounterTrack("size", "bytes", "", values))
    saved(built.trace, tmp_path / "x.json")
    assert [issue for issue in built.trace.report if issue.kind == "output_empty"] == []
    saved(built.trace, tmp_path / name)
    (issue,) = [issue for issue in built.trace.report if issue.kind == "output_empty"]
    assert "-o X.json.gz" in issue.advice
