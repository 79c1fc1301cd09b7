"""Tables of a trace for data frames: the numbers are those of `info --json`, whoever reads them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import REPO
from hypothesis import given
from hypothesis import strategies as st
from pages import HOSTILE, named

import traceferry
from traceferry.analysis.info.summary import summarize
from traceferry.data_tables import ARROW_MISSING, BATCH, DataColumn, DataTable
from traceferry.loaded_trace import LoadedTrace
from traceferry.model import CALLS, LEAVE, SAMPLES, Event, Table, Thread, ThreadData
from traceferry.timeline.whole_calls import WholeCalls

FIXTURES = REPO / "fixtures"
RECORDINGS = {
    "java": ("jit/java17/perf.data.zst", ()),
    "pool": ("xray/clang-19/fdr-c19-pie-pool-tsc.xray", ("xray/clang-19/pool-pie.zst",)),
    "leak": ("mono/mono-6.8/heap.mlpd.zst", ()),
    "workers": ("mono/mono-6.8/threads.mlpd.zst", ()),
}


@pytest.fixture(scope="module", params=RECORDINGS)
def trace(request: pytest.FixtureRequest) -> LoadedTrace:
    recording, symbols = RECORDINGS[request.param]
    return traceferry.load(FIXTURES / recording, symbols=[FIXTURES / name for name in symbols])


@pytest.fixture(scope="module")
def info(trace: LoadedTrace) -> dict[str, Any]:
    return summarize(trace, top=1 << 30)


def rows(table: DataTable) -> list[dict[str, Any]]:
    """The rows by NumPy alone."""
    return [dict(zip(batch, values, strict=True)) for batch in table for values in zip(*batch.values(), strict=True)]


def threads_of(info: dict[str, Any]) -> list[dict[str, Any]]:
    return [thread for process in info["processes"] for thread in process["threads"]]


COUNTS = ("calls", "total_ns", "self_ns", "samples", "total_samples")


def test_functions_are_those_of_info(trace: LoadedTrace, info: dict[str, Any]) -> None:
    wanted = [
        (row["name"], row["file"], row["line"], *(row[name] for name in COUNTS)) for row in info["functions"]["top"]
    ]
    got = [tuple(row[name] for name in ("function", "file", "line", *COUNTS)) for row in rows(trace.functions())]
    assert got == wanted


def test_samples_are_as_many_as_in_info_by_thread_and_function(trace: LoadedTrace, info: dict[str, Any]) -> None:
    first = trace.events[0].name if trace.events else None
    by_thread: Counter[int] = Counter()
    by_function: Counter[str] = Counter()
    for row in rows(trace.samples()):
        if row["event"] == first:
            by_thread[row["tid"]] += row["samples"]
            by_function[row["function"]] += row["samples"]
    assert by_thread == {t["tid"]: t["samples"] for t in threads_of(info) if t["samples"]}
    of_info = {row["name"]: row["samples"] for row in info["functions"]["top"]}
    once = [name for name, n in Counter(row["name"] for row in info["functions"]["top"]).items() if n == 1]
    assert {n: of_info[n] for n in once if n in by_function} == {n: by_function[n] for n in once if n in by_function}
    assert not of_info or sum(by_function.values()) == sum(row["samples"] for row in info["functions"]["top"])


def test_calls_add_up_to_those_of_info(trace: LoadedTrace, info: dict[str, Any]) -> None:
    calls, own = Counter[str](), Counter[str]()
    for row in rows(trace.calls()):
        calls[row["function"]] += row["calls"]
        own[row["function"]] += row["self_ns"]
    wanted_calls, wanted_own = Counter[str](), Counter[str]()
    for row in info["functions"]["top"]:
        if row["calls"]:
            wanted_calls[row["name"]] += row["calls"]
            wanted_own[row["name"]] += row["self_ns"]
    assert (calls, own) == (wanted_calls, wanted_own)


def test_markers_are_as_many_as_in_info(trace: LoadedTrace, info: dict[str, Any]) -> None:
    wanted: Counter[str] = Counter()
    for thread in threads_of(info):
        wanted.update(thread["markers"])
    assert Counter(row["type"] for row in rows(trace.markers())) == +wanted
    for name in wanted:
        typed = rows(trace.markers(name))
        assert len(typed) == wanted[name]
        assert all("fields" not in row for row in typed)


def test_fields_are_the_columns_of_their_type() -> None:
    leak = traceferry.load(FIXTURES / RECORDINGS["leak"][0])
    pauses = rows(leak.markers("GC pause"))
    as_json = [json.loads(row["fields"]) for row in rows(leak.markers()) if row["type"] == "GC pause"]
    assert [row["generation"] for row in pauses] == [fields["generation"] for fields in as_json]
    with pytest.raises(KeyError, match=r"no markers 'GC'; there are .*GC pause"):
        leak.markers("GC")


def test_a_stack_begins_with_the_outermost_function_and_ends_with_the_one_that_ran() -> None:
    java = traceferry.load(FIXTURES / RECORDINGS["java"][0])
    for row in rows(java.samples(stacks=True)):
        assert row["stack"][-1:] == [row["function"]] or row["function"] is None
    assert any(row["stack"][0] == "start_thread" and len(row["stack"]) > 5 for row in rows(java.samples(stacks=True)))


@pytest.mark.parametrize("table", ["functions", "samples", "calls", "markers"])
def test_every_reader_gets_the_same(trace: LoadedTrace, table: str) -> None:
    pytest.importorskip("arro3.core", reason="tables of Arrow need arro3-core (pip install 'traceferry[tables]')")
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    made = trace.samples(stacks=True) if table == "samples" else getattr(trace, table)()
    wanted = rows(made)
    assert pyarrow.table(made).to_pylist() == wanted
    assert polars.DataFrame(made).to_dicts() == wanted
    assert pyarrow.schema(made).names == [column.name for column in made.columns]


def test_pandas_needs_no_arrow(trace: LoadedTrace) -> None:
    pytest.importorskip("pandas")
    for table in (trace.functions(), trace.samples(), trace.calls(), trace.markers()):
        frame = table.to_pandas()
        assert list(frame.columns) == [column.name for column in table.columns]
        got = frame.astype(object).where(frame.notna(), None).to_dict("records")
        assert got == rows(table)


def test_events_are_columns_of_functions_also_where_names_are_taken() -> None:
    trace = named("f")
    trace.events += [Event("samples", "count"), Event("cache-misses", "count"), Event("cache-misses", "bytes")]
    table = Table(SAMPLES, {"ts": [20], "stack": [0], "weight": [7]})
    for process in trace.processes:
        process.threads[0].make = lambda _: ThreadData(samples=table, other_samples={1: table, 2: table})
    functions = LoadedTrace(trace.done()).functions()
    names = [column.name for column in functions.columns]
    weights = ["samples_2", "samples_total", "cache-misses", "cache-misses_total", "cache-misses_2"]
    assert names[-6:] == [*weights, "cache-misses_total_2"]
    assert [rows(functions)[0][name] for name in names[-6:]] == [7] * 6


# ---------------------------------------------------------------- in batches


def test_one_thread_is_loaded_at_a_time() -> None:
    alive = 0

    class Held(ThreadData):
        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def load(_: object) -> ThreadData:
        nonlocal alive
        assert alive == 0
        alive += 1
        return Held()

    trace = named("f")
    for nth in range(3):
        trace.processes[0].threads.append(Thread(nth, "t", False, 0, 1, load))
    assert len(rows(LoadedTrace(trace.done()).calls())) == 2
    assert alive == 0


def test_batches_are_limited_and_made_when_they_are_read() -> None:
    made = []

    def batches() -> Any:
        for nth in range(2):
            made.append(nth)
            yield {"n": np.arange(BATCH + 1)}

    table = DataTable([DataColumn("n", "int64", "a number")], batches)
    read = iter(table)
    assert len(next(read)["n"]) == BATCH
    assert made == [0]
    assert [len(batch["n"]) for batch in read] == [1, BATCH, 1]
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("arro3.core", reason="tables of Arrow need arro3-core (pip install 'traceferry[tables]')")
    made.clear()
    reader = arrow.RecordBatchReader.from_stream(table)
    assert made == []
    assert reader.read_next_batch().num_rows == BATCH
    assert made == [0]


def naive(ts: list[int], frame: list[int], flags: list[int]) -> list[tuple[int, int, int, int, int]]:
    """(begin, length, own time, depth, frame) of each call, in the order of their beginnings."""
    stack: list[list[int]] = []
    found = []
    for nth, (at, which, flag) in enumerate(zip(ts, frame, flags, strict=True)):
        if stack and nth:
            stack[-1][2] += at - ts[nth - 1]
        if flag & LEAVE:
            begin, order, own = stack.pop()
            found.append((order, (begin, at - begin, own, len(stack), which)))
        else:
            stack.append([at, nth, 0])
    return [row for _, row in sorted(found)]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=40), st.lists(st.integers(1, 8), max_size=20))
def test_calls_are_paired_whatever_the_pieces(steps: list[tuple[bool, int]], sizes: list[int]) -> None:
    ts, frame, flags, open_calls, at = [], [], [], [], 0
    for is_leave, passed in [*steps, *[(True, 3)] * len(steps)]:
        at += passed
        if is_leave and not open_calls:
            continue
        ts.append(at)
        frame.append(open_calls.pop() if is_leave else len(ts))
        flags.append(LEAVE if is_leave else 0)
        if not is_leave:
            open_calls.append(frame[-1])
    whole = Table(CALLS, {"ts": ts, "frame": frame, "flags": flags})
    pieces, start = [], 0
    for size in [*sizes, len(ts)]:
        pieces.append(whole.take(slice(start, start + size)))
        start += size
    calls, got = WholeCalls(), []
    for piece in (each for each in pieces if len(each)):
        columns = calls.add(piece)
        got += zip(*(columns[name].tolist() for name in ("ts", "dur", "self_ns", "depth", "frame")), strict=True)
    assert sorted(got) == sorted(naive(ts, frame, flags))


# ---------------------------------------------------------------- as it is shown


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)


SHOWN = {"table", "caption", "tbody", "thead", "tr", "th", "td", "br", "p"}


def test_what_notebooks_show_is_escaped_and_short() -> None:
    trace = LoadedTrace(named(HOSTILE * 100).done())
    for shown in (trace, trace.functions(), trace.samples(stacks=True), trace.calls(), trace.markers()):
        html = shown._repr_html_()
        assert Tags(html).tags <= SHOWN
        assert len(html) < 16_000
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u2028\u202e]", html + repr(shown))


def test_a_trace_says_what_it_holds(trace: LoadedTrace) -> None:
    assert re.fullmatch(r"<Trace of .+: \d+ threads, \d+\.\d{3} s>", repr(trace))
    assert trace.inputs[0].path in trace._repr_html_()


def test_a_trace_of_many_threads_is_shown_in_few_lines() -> None:
    trace = named("f")
    for nth in range(10_000):
        trace.processes[0].threads.append(Thread(nth, f"worker {nth}", False, 0, 1, lambda _: ThreadData()))
    assert len(LoadedTrace(trace.done())._repr_html_()) < 16_000


def test_without_the_extra_the_message_names_it() -> None:
    script = (
        "import sys; sys.modules['arro3'] = sys.modules['arro3.core'] = None\n"
        "from traceferry.data_tables import *\n"
        "DataTable([DataColumn('n', 'int64', '')], lambda: iter(())).__arrow_c_stream__()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr.strip().splitlines()[-1] == f"ImportError: {ARROW_MISSING}"
    assert "traceferry[tables]" in ARROW_MISSING


# ---------------------------------------------------------------- the documentation

EXAMPLES = re.findall(r"```python\n(.*?)```", (REPO / "docs" / "notebooks.md").read_text(), re.S)


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "polars", "pyarrow", "duckdb", "arro3.core"):
        pytest.importorskip(name)
    folder = FIXTURES / "jit" / "java17"
    monkeypatch.chdir(tmp_path)
    for path in folder.iterdir():
        (tmp_path / path.name.replace("perf.data.zst", "perf.data")).symlink_to(path)
    assert len(EXAMPLES) >= 6
    done = subprocess.run([sys.executable, "-c", "\n".join(EXAMPLES)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "JIT code" in done.stdout
