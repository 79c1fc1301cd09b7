"""What the Firefox Profiler's formats make of allocations, heap snapshots, and of tables that come in pieces."""

import json
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clients import firefox
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from outputs import saved
from test_firefox import ns, paths_of
from test_gecko import rows

from traceferry.exporters import gecko as gecko_exporter
from traceferry.exporters.firefox import profile as firefox_exporter
from traceferry.files.output import Output
from traceferry.model import (
    ALLOCATIONS,
    CALLS,
    HEAP_OBJECTS,
    HEAP_ROOTS,
    LEAVE,
    SAMPLES,
    Clock,
    Event,
    HeapGraph,
    HeapSnapshot,
    MarkerType,
    Process,
    StreamedTable,
    Table,
    Thread,
    ThreadData,
    TraceBuilder,
)
from traceferry.model.laws import check
from traceferry.timeline.paths import CallPaths, SampleTimes

START, MS, END = 10**12, 10**6, 100
SUFFIXES = pytest.mark.parametrize("suffix", [".json", ".gecko.json"])
NOTE = MarkerType("Note", "Somewhere", ())


class Recording:
    """One process. Frames and stacks are named: a stack by its frames, root first, with a blank between them."""

    def __init__(self) -> None:
        self.trace = TraceBuilder()
        self.trace.join_clock(Clock("monotonic"))
        self.process = Process(7, "app.exe", START, START + END * MS)
        self.trace.processes.append(self.process)
        self._category = self.trace.categories.intern(name=self.text("Managed"), color=self.text("green"))

    def text(self, text: str) -> int:
        return self.trace.strings.intern(text)

    def frame(self, name: str) -> int:
        func = self.trace.funcs.intern(name=self.text(name))
        return self.trace.frames.intern(func=func, category=self._category)

    def stack(self, path: str) -> int:
        stack = -1
        for name in path.split():
            stack = self.trace.stacks.intern(prefix=stack, frame=self.frame(name))
        return stack

    def calls(self, stream: str) -> Table:
        """As "A B b a": a row each ms; "=" before one puts it at the time of the row before."""
        tokens = stream.split()
        steps = np.array([0 if token.startswith("=") else MS for token in tokens], np.int64)
        letters = [token.lstrip("=") for token in tokens]
        columns = {
            "ts": START + np.cumsum(steps),
            "frame": [self.frame(letter.upper()) for letter in letters],
            "flags": [0 if letter.isupper() else LEAVE for letter in letters],
        }
        return Table(CALLS, columns)

    def allocations(self, *allocated: tuple[int, int, str, int]) -> Table:
        """(ms, bytes, stack, object) of each; the leaf is the class."""
        ms, size, stack, number = zip(*allocated, strict=True)
        columns = {
            "ts": START + np.array(ms) * MS,
            "size": size,
            "class_name": [self.text(path.split()[-1]) for path in stack],
            "stack": [self.stack(path) for path in stack],
            "object": number,
        }
        return Table(ALLOCATIONS, columns)

    def samples(self, ms: list[int], stacks: list[str]) -> Table:
        return Table(SAMPLES, {"ts": START + np.array(ms) * MS, "stack": [self.stack(path) for path in stacks]})

    def thread(self, name: str, adding: bool = False, **tables: Any) -> Thread:
        """adding: while its pieces are made, more is added to the trace that it is loaded into."""
        tid = 70 + len(self.process.threads)

        def make(trace: TraceBuilder) -> ThreadData:
            if adding:
                self.trace = trace
            return ThreadData(**tables)

        thread = Thread(tid, name, tid == 70, START, START + END * MS, make, 1)
        self.process.threads.append(thread)
        return thread

    def profile(self, folder: Path, suffix: str = ".json") -> dict[str, Any]:
        assert check(self.trace) == []
        parsed: dict[str, Any] = json.loads(saved(self.trace, folder / f"out{suffix}").read_bytes())
        return parsed


@pytest.fixture
def recording() -> Recording:
    return Recording()


def in_pieces(table: Table, sizes: list[int]) -> StreamedTable:
    """The table cut into pieces of these sizes, then the rest."""

    def pieces() -> Iterator[Table]:
        cuts = [0, *np.minimum(np.cumsum(sizes, dtype=np.int64), len(table)).tolist(), len(table)]
        for begin, end in pairwise(cuts):
            if end > begin:
                yield table.take(slice(begin, end))

    return StreamedTable(table.spec, pieces)


def thread_named(profile: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (thread for thread in profile["threads"] if thread["name"] == name)
    return dict(found)


# ---------------------------------------------------------------- calls in pieces

STREAMS = st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.sampled_from([0, 0, 1, 60])), max_size=40)


def balanced(steps: list[tuple[bool, int, int]]) -> Table:
    """Steps (enter?, frame, ms since the row before); what is still open is left at the end."""
    ts, frames, flags, path = [START], [], [], []
    for enters, frame, ms in [*steps, *[(False, 0, 1)] * len(steps)]:
        if enters:
            path.append(frame)
        elif not path:
            continue
        frames.append(frame if enters else path.pop())
        flags.append(0 if enters else LEAVE)
        ts.append(ts[-1] + ms * MS)
    return Table(CALLS, {"ts": ts[1:], "frame": frames, "flags": flags})


@SUFFIXES
@examples(60)
@given(steps=STREAMS, sizes=st.lists(st.integers(1, 9), max_size=30))
def test_pieces_give_the_same_bytes(
    steps: list[tuple[bool, int, int]], sizes: list[int], suffix: str, tmp_path: Path
) -> None:
    calls = balanced(steps)
    outputs = []
    for table in (calls, in_pieces(calls, sizes)):
        recording = Recording()
        for name in "ABCD":
            recording.frame(name)
        recording.process.end_ts = max(recording.process.end_ts, *calls["ts"].tolist(), 0)
        made = recording.allocations((1, 8, "A Node", 1), (2, 24, "B String", -1), (3, -8, "A Node", 1), (4, 8, "B", 2))
        recording.thread("main", calls=table, allocations=made if table is calls else in_pieces(made, sizes))
        outputs.append(saved(recording.trace, tmp_path / f"out{suffix}").read_bytes())
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    ("stream", "wanted"),
    [
        ("A a", [(1, "A", 1), (2, "", 0)]),
        ("A B b a", [(1, "A", 1), (2, "A B", 1), (3, "A", 1), (4, "", 0)]),
        ("A =a", [(1, "A", 0), (1, "", 0)]),
        ("A =B b =a", [(1, "A B", 1), (2, "", 0)]),
        ("A =B =b =a", [(1, "A B", 0), (1, "", 0)]),
        ("A a =A a", [(1, "A", 1), (2, "A", 1), (3, "", 0)]),
        ("A a B b", [(1, "A", 1), (2, "", 0), (3, "B", 1), (4, "", 0)]),
    ],
)
@pytest.mark.parametrize(("size", "most"), [(1, 100), (2, 3), (3, 1), (100, 100)])
def test_states_of_calls(
    recording: Recording, stream: str, wanted: list[tuple[int, str, int]], size: int, most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """(ms, path, ms it is open) of each state that lasts, and of a call that takes no time. most: whose times are
    kept."""
    monkeypatch.setattr("traceferry.timeline.paths.MOST", most)
    calls, paths = in_pieces(recording.calls(stream), [size] * 9), CallPaths()
    samples = SampleTimes(lambda: paths.samples(calls))
    stacks = [stack for piece in samples.stacks() for stack in piece.tolist()]
    differences, durations = (
        [value for piece in pieces for value in piece.tolist()]
        for pieces in (samples.differences(), samples.durations())
    )
    times = list(zip(accumulate(differences), durations, strict=True))
    names = [recording.trace.func_name(int(func)) for func in recording.trace.frames["func"]]
    found = []
    for (ts, open_ns), stack in zip(times, stacks, strict=True):
        path: list[str] = []
        while stack >= 0:
            path.insert(0, names[paths.key[stack]])
            stack = int(paths.parent[stack])
        found.append(((ts - START) // MS, " ".join(path), open_ns // MS))
    assert found == wanted


def test_functions_may_be_named_while_pieces_are_made(recording: Recording, tmp_path: Path) -> None:
    """Frames and stacks that the trace has only then: what was written before stays right."""
    stream, late = recording.calls("A B b C c a"), Recording()
    early = late.stack("root early")

    def pieces() -> Iterator[Table]:
        late.stack("root late")
        for row in range(len(stream)):
            name = recording.trace.func_name(int(recording.trace.frames["func"][stream["frame"][row]]))
            yield stream.take(slice(row, row + 1)).replaced(frame=np.array([late.frame(name)], np.int32))
        late.stack("root late later")

    note = Table(NOTE.spec, {"ts": [START + MS], "stack": [early]})
    late.thread("main", adding=True, calls=StreamedTable(CALLS, pieces), markers={NOTE: note})
    profile = json.loads(saved(late.trace, tmp_path / "out.json").read_bytes())
    paths = paths_of(profile)
    main = thread_named(profile, "main")
    stacks = [None if stack is None else paths[stack] for stack in main["samples"]["stack"]]
    assert list(dict.fromkeys(stacks)) == [("A",), ("A", "B"), ("A", "C"), None]
    assert [paths[data["cause"]["stack"]] for data in main["markers"]["data"]] == [("root", "early")]
    assert ("root", "late", "later") in paths


class Nowhere:
    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        pass


@pytest.mark.parametrize("write", [firefox_exporter.write, gecko_exporter.write])
def test_memory_does_not_grow_with_the_calls(
    recording: Recording, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Peaks of a thread of ten pieces and of one of a hundred, both with more samples than times are kept of."""
    monkeypatch.setattr("traceferry.timeline.paths.MOST", 1 << 14)
    one = Table(CALLS, {"ts": np.zeros(1 << 12), "frame": np.zeros(1 << 12), "flags": np.arange(1 << 12) % 2})
    recording.frame("A")

    def peak(n_pieces: int) -> int:
        def pieces() -> Iterator[Table]:
            for nth in range(n_pieces):
                yield one.replaced(ts=START + (np.arange(len(one)) + nth * len(one)) * 100)

        recording.process.threads.clear()
        recording.thread("main", calls=StreamedTable(CALLS, pieces))
        tracemalloc.start()
        write(recording.trace, Output(Nowhere(), gzip=False), lambda _: None)
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return highest

    assert peak(100) < 1.1 * peak(10)


# ---------------------------------------------------------------- calls and samples


@SUFFIXES
def test_calls_and_samples_are_two_threads(recording: Recording, tmp_path: Path, suffix: str) -> None:
    samples = recording.samples([3, 5], ["run", "run wait"])
    recording.trace.events = [Event("cpu-clock", "count", MS)]
    recording.thread("worker", calls=recording.calls("A B b a"))
    recording.thread("other", calls=recording.calls("A a"), samples=samples)
    profile = recording.profile(tmp_path, suffix)
    _, other, sampled = profile["threads"]
    assert (other["name"], sampled["name"], other["tid"]) == ("other", "other (samples)", sampled["tid"])
    if suffix == ".json":
        paths = paths_of(profile)
        assert [paths[stack] for stack in sampled["samples"]["stack"]] == [("run",), ("run", "wait")]
        assert [table["samples"]["weightType"] for table in profile["threads"]] == ["tracing-ms"] * 2 + ["samples"]
        assert not sampled["isMainThread"]
    else:
        assert [sample["time"] for sample in rows(sampled["samples"])] == [3, 5]
    assert "table_not_carried" not in {issue.kind for issue in recording.trace.report}


# ---------------------------------------------------------------- allocations

ALLOCATED = (
    (1, 100, "main Node", 1),
    (2, 200, "main make Node", 2),
    (3, -100, "main Node", 1),
    (4, 50, "main make String", 3),
    (5, 7, "main String", -1),
    (6, -7, "main String", -1),
    (7, 30, "main String", -1),
)


def test_columns_of_allocations(recording: Recording, tmp_path: Path) -> None:
    recording.thread("main", allocations=in_pieces(recording.allocations(*ALLOCATED), [2, 3]))
    profile = recording.profile(tmp_path)
    main, paths = thread_named(profile, "main"), paths_of(profile)
    js, native = main["jsAllocations"], main["nativeAllocations"]
    made = [row for row in ALLOCATED if row[1] > 0]
    for table, wanted in ((js, made), (native, ALLOCATED)):
        assert [ns(time) // MS for time in table["time"]] == [ms for ms, *_ in wanted]
        assert table["weight"] == [size for _, size, *_ in wanted]
        assert [" ".join(paths[stack]) for stack in table["stack"]] == [path for *_, path, _ in wanted]
        assert table["weightType"] == "bytes"
        columns = [column for column in table.values() if isinstance(column, list)]
        assert {len(column) for column in columns} == {table["length"]} == {len(wanted)}
    assert js["className"] == ["Node", "Node", "String", "String", "String"]
    assert native["memoryAddress"][:4] == [1, 2, 1, 3]
    # Rows of unknown objects match no other row.
    assert len(set(native["memoryAddress"])) == len(ALLOCATED) - 1
    assert native["threadId"] == [main["tid"]] * len(ALLOCATED)


def test_a_thread_of_nothing_but_allocations(recording: Recording, tmp_path: Path) -> None:
    """It is shown, although other threads have samples, and its own samples are an empty table."""
    recording.trace.events = [Event("cpu-clock", "count", MS)]
    recording.thread("busy", samples=recording.samples([1, 2], ["run", "run"]))
    recording.thread("allocating", allocations=recording.allocations(*ALLOCATED))
    profile = recording.profile(tmp_path)
    samples = thread_named(profile, "allocating")["samples"]
    assert (samples["length"], samples["stack"], samples["time"]) == (0, [], [])
    assert profile["meta"]["initialVisibleThreads"] == [0, 1]


def test_threads_without_allocations_have_no_such_tables(recording: Recording, tmp_path: Path) -> None:
    recording.thread("main", calls=recording.calls("A a"))
    (main,) = recording.profile(tmp_path)["threads"]
    assert not {"jsAllocations", "nativeAllocations"} & main.keys()


def test_the_raw_format_has_allocations_as_markers(recording: Recording, tmp_path: Path) -> None:
    recording.thread("main", calls=recording.calls("A a"), allocations=recording.allocations(*ALLOCATED))
    (main,) = recording.profile(tmp_path, ".gecko.json")["threads"]
    markers = rows(main["markers"])
    of_kind = {
        kind: [m["data"] for m in markers if m["data"]["type"] == kind]
        for kind in ("JS allocation", "Native allocation")
    }
    assert [data["size"] for data in of_kind["JS allocation"]] == [row[1] for row in ALLOCATED if row[1] > 0]
    assert [data["size"] for data in of_kind["Native allocation"]] == [row[1] for row in ALLOCATED]
    assert all(data["stack"]["name"] == "SyncProfile" for data in of_kind["JS allocation"])


# ---------------------------------------------------------------- heap snapshots


def snapshot(recording: Recording) -> HeapSnapshot:
    """A Node of 100 bytes, alive by a static, holds a String of 50."""

    def load(_: TraceBuilder) -> HeapGraph:
        objects = {
            "object": [1, 2],
            "address": [0x1000, 0x2000],
            "class_name": [recording.text("Node"), recording.text("String")],
            "size": [100, 50],
        }
        roots = {"object": [0], "kind": [recording.text("static")]}
        return HeapGraph(
            Table(HEAP_OBJECTS, objects), np.array([0, 1, 1], np.int64), np.array([1], np.int32),
            Table(HEAP_ROOTS, roots),
        )  # fmt: skip

    return HeapSnapshot(START + 5 * MS, START + 6 * MS, load)


@SUFFIXES
def test_heap_snapshots_are_threads(recording: Recording, tmp_path: Path, suffix: str) -> None:
    """After the process's own; the classes' frames and categories are there."""
    recording.thread("main", calls=recording.calls("A a"))
    recording.process.heap_snapshots.append(snapshot(recording))
    profile = recording.profile(tmp_path, suffix)
    _, view = profile["threads"]
    if suffix == ".json":
        paths = paths_of(profile)
        assert view["samples"]["weightType"] == "bytes"
        by_path = dict(zip((paths[s] for s in view["samples"]["stack"]), view["samples"]["weight"], strict=True))
        assert {path[-2:]: n for path, n in by_path.items() if n} == {("[static]", "Node"): 100, ("Node", "String"): 50}
    else:
        assert len(rows(view["samples"])) >= 2
        names = {view["stringTable"][frame["location"]] for frame in rows(view["frameTable"])}
        assert {"[static]", "Node", "String"} <= names


# ---------------------------------------------------------------- the real client

needs_client = pytest.mark.skipif(firefox.available() is not None, reason=str(firefox.available()))
BY_STRATEGY = {
    "js-allocations": {"main Node": 100, "main make Node": 200, "main make String": 50, "main String": 37},
    "native-allocations": {"main Node": 100, "main make Node": 200, "main make String": 50, "main String": 37},
    "native-retained-allocations": {"main make Node": 200, "main make String": 50, "main String": 37},
    "native-deallocations-memory": {"main Node": -100},
    "native-deallocations-sites": {"main Node": -100, "main String": -7},
}


def self_bytes(node: dict[str, Any], path: tuple[str, ...] = ()) -> dict[str, int]:
    """Path → its own bytes, where it has any."""
    own = {" ".join(path): node["selfSamples"]} if path and node["selfSamples"] else {}
    for child in node.get("children", []):
        own |= self_bytes(child, (*path, child["name"]))
    return own


@needs_client
@SUFFIXES
def test_profiler_cli_counts_bytes(recording: Recording, tmp_path: Path, suffix: str) -> None:
    """By every strategy, for a thread with calls and for one without; unknown objects free nothing."""
    recording.thread("main", calls=recording.calls("A B b a"), allocations=recording.allocations(*ALLOCATED))
    recording.thread("silent", allocations=recording.allocations(*ALLOCATED))
    recording.profile(tmp_path, suffix)
    with firefox.ProfilerCli(tmp_path / f"out{suffix}") as cli:
        for strategy, wanted in BY_STRATEGY.items():
            assert self_bytes(cli.call_tree("t-0", strategy=strategy)) == wanted, strategy
            assert self_bytes(cli.call_tree("t-1", strategy=strategy)) == wanted, strategy
