"""A trace is saved to the same bytes however it was used before: in any order of formats, again, after it was read."""

import hashlib
import random
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Barrier
from typing import Any

import fleets
import pytest
from conftest import REPO, SHARED, or_skipped
from hypothesis import given
from hypothesis import strategies as st
from support import for_each

import traceferry
from traceferry import LoadOptions
from traceferry.analysis.info.summary import summarize
from traceferry.apps.view.conversion import Conversion
from traceferry.apps.view.viewers import FIREFOX, PERFETTO
from traceferry.common.report import Report
from traceferry.model import StreamedTable, Trace, TraceBuilder
from traceferry.timeline.select import select_range

FORMATS = (".json", ".gecko.json", ".pftrace", ".html")
ORDERS = (FORMATS, FORMATS[::-1], (".pftrace", ".json", ".html", ".gecko.json"))
FIXTURES = REPO / "fixtures"
CAPTURES = sorted(
    path
    for pattern in ("xray/**/*.xray*", "mono/**/*.mlpd*", "jit/**/perf.data*", "jit/**/*.dump*", "unwind/*/perf.data*")
    for path in (SHARED / "captures").glob(pattern)
    if path.is_file() and path.suffix in (".xray", ".mlpd", ".data", ".dump", ".zst") and ".expected" not in path.name
)


def saved(trace: Trace, folder: Path, suffix: str) -> str:
    traceferry.save(trace, folder / f"out{suffix}")
    return hashlib.sha256((folder / f"out{suffix}").read_bytes()).hexdigest()


def used(trace: Trace) -> Trace:
    """As `info` and `view` use it: all is loaded, the last thread first, and the code of JIT compilers looked up."""
    opened = trace.opened()
    for _, thread in reversed(trace.threads):
        for table in thread.load(opened).tables():
            for _ in table.pieces():
                pass
    for process in trace.processes:
        for snapshot in process.heap_snapshots:
            snapshot.load(opened)
    for reader in trace.code_readers:
        for code in reversed(reader.rows[:50]):
            for offset in reader.boundaries(code)[:5]:
                reader.frames_at(opened, code, offset)
    summarize(trace)
    return trace


def content(trace: Trace) -> list[Any]:
    """Of all of its tables."""
    tables = [[column.tolist() for column in table.columns.values()] for table in trace.global_tables()]
    return [list(trace.strings), list(trace.texts), *tables, [issue.as_json() for issue in trace.report]]


def check(load: Callable[[], Trace], folder: Path, again: int = 2) -> None:
    """Saves in three orders, after everything was loaded, and from two threads at once."""
    wanted = {suffix: saved(load(), folder, suffix) for suffix in FORMATS}
    trace = load()
    before = content(trace)
    for order in ORDERS:
        for nth, suffix in enumerate(order * again):
            assert saved(trace, folder, suffix) == wanted[suffix], (order, nth)
    used(trace)
    # The report alone has more: what was found since.
    assert content(trace)[:-1] == before[:-1]
    assert {suffix: saved(used(trace), folder, suffix) for suffix in FORMATS} == wanted
    assert at_once(load(), folder) == [wanted, wanted]


def at_once(trace: Trace, folder: Path) -> list[dict[str, str]]:
    """What two threads save, in different orders, each in a folder of its own; threads of the interpreter take turns
    as often as they can."""
    begin = Barrier(2)

    def run(nth: int) -> dict[str, str]:
        mine = folder / f"thread {nth}"
        mine.mkdir(exist_ok=True)
        begin.wait()
        return dict(sorted((suffix, saved(used(trace), mine, suffix)) for suffix in FORMATS[:: 1 - 2 * nth]))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(run, range(2)))
    finally:
        sys.setswitchinterval(interval)


BUILT: Mapping[str, Callable[[random.Random], bytes]] = {
    "xray": fleets.xray, "mono": fleets.mono, "perf": fleets.perf, "jitdump": fleets.jitdump,
}  # fmt: skip


@for_each("built", BUILT)
def test_traces_of_every_format(built: Callable[[random.Random], bytes], tmp_path: Path) -> None:
    (tmp_path / "recording").write_bytes(built(random.Random(7)))
    check(lambda: traceferry.load(tmp_path / "recording"), tmp_path)


REAL: Mapping[str, LoadOptions] = {
    "mono/mono-6.8/heap.mlpd.zst": LoadOptions(),
    "xray/clang-19/fdr-c19-pie-events.xray": LoadOptions(min_duration_ns=1000),
    "jit/py313/jit-26854.dump.zst": LoadOptions(embed_sources=True),
    "jit/wasmtime/perf.data.zst": LoadOptions(time_range=(1_000_000, 200_000_000)),
}  # fmt: skip


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.large) if "perf" in n else n for n in REAL])
def test_recordings(name: str, tmp_path: Path) -> None:
    """With sources that are read again, and parts of a trace."""
    check(lambda: traceferry.load(FIXTURES / name, options=REAL[name]), tmp_path, again=1)


@pytest.mark.large
@pytest.mark.parametrize("path", or_skipped(pytest.param(path, id=str(path.relative_to(SHARED))) for path in CAPTURES))
def test_captures(path: Path, tmp_path: Path) -> None:
    check(lambda: traceferry.load(path), tmp_path, again=1)


def test_a_view_shows_what_convert_writes(tmp_path: Path) -> None:
    """In whichever viewer it is shown first, and after functions were looked up."""
    path = FIXTURES / "jit/py313/jit-26854.dump.zst"
    traceferry.convert(path, tmp_path / "out.json.gz")
    traceferry.convert(path, tmp_path / "out.pftrace")
    for viewers in ((FIREFOX, PERFETTO), (PERFETTO, FIREFOX)):
        folder = tmp_path / viewers[0].name
        folder.mkdir()
        shown = Conversion("title", used(traceferry.load(path)), folder)
        for viewer in viewers:
            made = shown.file_for(viewer)
            assert made.read_bytes() == (tmp_path / made.name.replace("trace", "out", 1)).read_bytes()
            used(shown.trace or TraceBuilder())


def test_what_was_loaded_before_stays_valid(tmp_path: Path) -> None:
    """Also while the trace is saved, and read by others."""
    trace = traceferry.load(FIXTURES / "mono/mono-6.8/heap.mlpd.zst")
    data = [thread.load(trace) for _, thread in trace.threads]

    def names() -> list[list[str]]:
        stacks = [(of.trace, of.allocations["stack"]) for of in data]
        return [
            [of.func_name(int(of.frames["func"][frame])) for frame in of.stacks["frame"][rows].tolist()]
            for of, rows in stacks
        ]

    before = names()
    assert sum(map(bool, before)) > 1
    for suffix in FORMATS:
        saved(trace, tmp_path, suffix)
        assert names() == before
    assert names() == before


def test_a_part_of_a_trace_shares_what_was_loaded(tmp_path: Path) -> None:
    trace = traceferry.load(FIXTURES / "mono/mono-6.8/calls.mlpd.zst")
    part = select_range(trace, trace.start_ts, trace.end_ts)
    alone = saved(part, tmp_path, ".json")
    saved(trace, tmp_path, ".pftrace")
    assert saved(part, tmp_path, ".json") == alone


# ---------------------------------------------------------------- what is read-only, and its continuation


@cache
def real_trace() -> Trace:
    return traceferry.load(FIXTURES / "mono/mono-6.8/heap.mlpd.zst")


WRITES: Mapping[str, Callable[[Any], Any]] = {
    "an attribute": lambda trace: setattr(trace, "clock", None),
    "a new attribute": lambda trace: setattr(trace, "other", 1),
    "a process": lambda trace: trace.processes.append(None),
    "a process's attribute": lambda trace: setattr(trace.processes[0], "name", "x"),
    "a process's thread": lambda trace: trace.processes[0].threads.append(None),
    "a thread's attribute": lambda trace: setattr(trace.threads[0][1], "start_ts", 0),
    "a string": lambda trace: trace.strings.intern("a text that it does not have"),
    "a row": lambda trace: trace.funcs.intern(name=0, line=12345),
    "rows": lambda trace: trace.stacks.extend(prefix=[-1], frame=[0]),
    "provenance": lambda trace: trace.attributes.update(a="b"),
    "a reader": lambda trace: trace.code_readers.append(None),
}  # fmt: skip


@for_each("write", WRITES)
def test_writing_is_an_error(write: Callable[[Any], Any]) -> None:
    for trace in (real_trace(), select_range(real_trace(), 0, 1 << 62)):
        before = content(trace)
        with pytest.raises((TypeError, AttributeError)):
            write(trace)
        assert content(trace) == before


def test_arrays_are_not_writeable() -> None:
    trace = real_trace()
    data = [thread.load(trace) for _, thread in trace.threads]
    tables = [*trace.global_tables(), *(c.values for p in trace.processes for c in p.counters)]
    tables += [table for of in data for table in of.tables() if not isinstance(table, StreamedTable)]
    assert not [table.spec.name for table in tables for column in table.columns.values() if column.flags.writeable]
    with pytest.raises(ValueError, match="read-only"):
        trace.stacks["frame"][0] = 1


Row = tuple[int, int]
ROWS = st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 3)), max_size=12)


@given(ROWS, ROWS, ROWS)
def test_tables_intern_as_a_dictionary_does(first: list[Row], second: list[Row], third: list[Row]) -> None:
    """And so does a continuation, of one or of another continuation, which does not change what it continues."""
    trace = TraceBuilder()
    known: dict[Row, int] = {}
    sealed: list[tuple[Trace, list[Row], list[str]]] = []
    for rows in (first, second, third):
        for prefix, frame in rows:
            row = known.setdefault((prefix, frame), len(known))
            assert trace.stacks.intern(prefix=prefix, frame=frame) == row
            assert trace.strings.intern(f"{prefix} {frame}") == row
        assert trace.stacks.intern_all(len(rows), prefix=[p for p, _ in rows], frame=[f for _, f in rows]) == [
            known[row] for row in rows
        ]
        found = list(zip(trace.stacks["prefix"].tolist(), trace.stacks["frame"].tolist(), strict=True))
        assert found == list(known)
        sealed.append((trace.done(), found, list(trace.strings)))
        trace = sealed[-1][0].opened()
    for before, stacks, strings in sealed:
        assert list(zip(before.stacks["prefix"].tolist(), before.stacks["frame"].tolist(), strict=True)) == stacks
        assert list(before.strings) == strings


def test_what_is_noted_in_a_continuation() -> None:
    """It begins with what was noted until the trace was loaded; what it notes is noted in the trace's report, too."""
    report = Report()
    report.note("truncated", where="loaded")
    report.seal()
    report.note("truncated", where="before")
    report.note("lost_samples", where="before")
    other = Report(report)
    assert [(issue.kind, issue.count) for issue in other] == [("truncated", 1)]
    other.note("truncated", 5, where="in between")
    other.note("lost_samples", 0, where="before")
    assert [(issue.kind, issue.count) for issue in other] == [("truncated", 6)]
    assert [(issue.kind, issue.count) for issue in report] == [("truncated", 7)]
