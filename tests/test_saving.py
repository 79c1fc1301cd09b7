"""A trace is saved to the same bytes however it was used before: in any order of formats, again, after it was read."""

import hashlib
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import fleets
import pytest
from conftest import REPO, SHARED
from support import for_each

import traceferry
from traceferry import LoadOptions
from traceferry.analysis.info.summary import summarize
from traceferry.apps.view.conversion import Conversion
from traceferry.apps.view.viewers import FIREFOX, PERFETTO
from traceferry.common.report import Report
from traceferry.model import Trace
from traceferry.timeline.select import select_range
from traceferry.timeline.stacks import StackTable

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
    for _, thread in reversed(trace.threads):
        data = thread.load()
        for table in data.tables():
            for _ in table.pieces():
                pass
    for process in trace.processes:
        for snapshot in process.heap_snapshots:
            snapshot.load()
    for reader in trace.code_readers:
        for code in reversed(reader.rows[:50]):
            for offset in reader.boundaries(code)[:5]:
                reader.frames_at(code, offset)
    summarize(trace)
    return trace


def check(load: Callable[[], Trace], folder: Path, again: int = 2) -> None:
    wanted = {suffix: saved(load(), folder, suffix) for suffix in FORMATS}
    for order in ORDERS:
        trace = load()
        for nth, suffix in enumerate(order * again):
            assert saved(trace, folder, suffix) == wanted[suffix], (order, nth)
    trace = used(load())
    assert {suffix: saved(used(trace), folder, suffix) for suffix in FORMATS} == wanted


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
@pytest.mark.parametrize("path", CAPTURES or [None], ids=lambda path: path and str(path.relative_to(SHARED)))
def test_captures(path: Path | None, tmp_path: Path) -> None:
    if path is None:
        pytest.skip("no captures here: ../shared")
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
            used(shown.trace or Trace())


def test_what_was_loaded_before_stays_valid(tmp_path: Path) -> None:
    """The rows to which it refers are there again after a save, which adds others."""
    trace = traceferry.load(FIXTURES / "mono/mono-6.8/heap.mlpd.zst")
    n_strings = len(trace.strings)

    def names() -> list[list[str]]:
        return [
            [trace.func_name(int(trace.frames["func"][frame])) for frame in trace.stacks["frame"][stacks].tolist()]
            for stacks in held
        ]

    held = [data.allocations["stack"] for _, thread in trace.threads if len((data := thread.load()).allocations)]
    before, sizes = names(), {table.spec.name: len(table) for table in trace.global_tables()}
    assert len(held) > 1
    for suffix in FORMATS:
        saved(trace, tmp_path, suffix)
        assert {table.spec.name: len(table) for table in trace.global_tables()} == sizes
        assert names() == before
    assert trace.strings.intern(trace.strings[n_strings - 1]) == n_strings - 1


def test_a_part_of_a_trace_shares_what_was_loaded(tmp_path: Path) -> None:
    trace = traceferry.load(FIXTURES / "mono/mono-6.8/calls.mlpd.zst")
    part = select_range(trace, trace.start_ts, trace.end_ts)
    alone = saved(part, tmp_path, ".json")
    saved(trace, tmp_path, ".pftrace")
    assert saved(part, tmp_path, ".json") == alone


def test_tables_go_back_and_return() -> None:
    """Also where they grow in between, and what follows them."""
    trace = Trace()

    def add(*names: str) -> list[int]:
        return [trace.frames.intern(func=trace.funcs.intern(name=trace.strings.intern(name))) for name in names]

    add("a", "b")
    stacks = StackTable(trace)
    trace.stacks.intern(frame=0)
    trace.mark_loaded()
    assert add("b", "c", "d") == [1, 2, 3]
    trace.frames.extend(func=[3, 3])
    trace.stacks.intern(prefix=0, frame=3)
    stacks.refresh()
    for _ in range(2):
        with trace.as_loaded():
            assert (list(trace.strings), len(trace.frames), len(trace.stacks)) == (["a", "b"], 2, 1)
            assert add("x", "c") == [2, 3]
            trace.stacks.intern(prefix=0, frame=2)
            stacks.refresh()
            assert stacks.key.tolist() == [0, 2]
        assert list(trace.strings) == ["a", "b", "c", "d"]
        assert trace.frames["func"].tolist() == [0, 1, 2, 3, 3, 3]
        assert add("b", "c", "d") == [1, 2, 3]
        stacks.refresh()
        assert stacks.key.tolist() == trace.stacks["frame"].tolist() == [0, 3]
    with suppress(KeyError), trace.as_loaded():
        add("y")
        raise KeyError
    assert list(trace.strings) == ["a", "b", "c", "d"]


def test_a_report_keeps_what_is_noted_in_between() -> None:
    report = Report()
    report.note("truncated", where="loaded")
    mark = report.mark()
    report.note("truncated", where="before")
    report.note("lost_samples", where="before")
    with report.as_at(mark):
        assert [(issue.kind, issue.count) for issue in report] == [("truncated", 1)]
        report.note("truncated", 5, where="in between")
        report.note("lost_samples", 0, where="before")
    assert [(issue.kind, issue.count) for issue in report] == [("truncated", 7)]
