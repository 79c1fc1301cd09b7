"""Perfetto: calls in pieces, allocations, heap snapshots and numbers of threads of traces that are built here."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from copy import copy
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import REPO, examples
from hypothesis import given
from hypothesis import strategies as st
from outputs import saved
from readers import perfetto
from test_perfetto import STATS

from traceferry.exporters.perfetto.threads import renumbered
from traceferry.exporters.perfetto.trace import write
from traceferry.files.output import Output
from traceferry.model import (
    ALLOCATIONS,
    ARGUMENTS,
    CALLS,
    HEAP_OBJECTS,
    HEAP_ROOTS,
    LEAVE,
    SAMPLES,
    Clock,
    HeapGraph,
    HeapSnapshot,
    Process,
    StreamedTable,
    Table,
    Thread,
    ThreadData,
    Trace,
    TraceBuilder,
)

START, END = 10**15, 10**15 + 10**9
POINTER = 0x7F22_3344_5566  # a thread's number, as pthread_self() gives it
Processor = Callable[[Path], Any]


class Built:
    """A trace under construction."""

    def __init__(self) -> None:
        self.trace = TraceBuilder()
        self.trace.clock = Clock("monotonic", 5)

    def text(self, value: str) -> int:
        return self.trace.strings.intern(value)

    def frame(self, name: str) -> int:
        category = self.trace.categories.intern(name=self.text(f"kind of {name[:1]}"))
        func = self.trace.funcs.intern(name=self.text(name))
        return self.trace.frames.intern(func=func, category=category)

    def stack(self, *names: str) -> int:
        stack = -1
        for name in names:
            stack = self.trace.stacks.intern(prefix=stack, frame=self.frame(name))
        return stack

    def process(self, pid: int = 1) -> Process:
        self.trace.processes.append(Process(pid, f"app {pid}", START, END))
        return self.trace.processes[-1]

    def calls(self, drawn: str, start: int) -> Table:
        """drawn: "A B b a" enters A and B and leaves them, a microsecond each."""
        words = drawn.split()
        return Table(
            CALLS,
            {
                "ts": START + (start + np.arange(len(words))) * 1000,
                "frame": [self.frame(word.upper()) for word in words],
                "flags": [LEAVE * word.islower() for word in words],
            },
        )


def thread(
    process: Process, data: ThreadData, tid: int = 1, name: str = "main", *, adding: Built | None = None
) -> Thread:
    """adding: adds to the trace that the thread is loaded into, while its pieces are made."""

    def make(trace: TraceBuilder) -> ThreadData:
        if adding is not None:
            adding.trace = trace
        return data

    process.threads.append(Thread(tid, name, not process.threads, START, END, make))
    return process.threads[-1]


def read_back(trace: Trace, folder: Path) -> perfetto.Trace:
    read = perfetto.read(saved(trace, folder / "out.pftrace"))
    assert read.errors == []
    return read


# ---------------------------------------------------------------- calls in pieces


def slices_of(read: perfetto.Trace) -> list[tuple[Any, ...]]:
    return [(s.name, s.ts, s.dur, s.depth, s.categories, tuple(s.args.values())) for s in read.slices]


PIECES = ("A B", "b B C", "c b a D", "E e d")


def streamed(built: Built, pieces: tuple[str, ...], made: list[str]) -> StreamedTable:
    """Frames are added to the trace when their piece is made."""

    def make() -> Iterator[Table]:
        row = 0
        for piece in pieces:
            made.append(piece)
            yield built.calls(piece, row)
            row += len(piece.split())

    return StreamedTable(CALLS, make)


def test_calls_in_pieces_are_those_in_one(tmp_path: Path) -> None:
    """Depth and time go on, names come when they are needed; each piece is made once, and none is joined."""
    pieces, whole = Built(), Built()
    made: list[str] = []
    table = streamed(pieces, PIECES, made)
    thread(pieces.process(), ThreadData(calls=table), adding=pieces)
    thread(whole.process(), ThreadData(calls=whole.calls(" ".join(PIECES), 0)))
    assert slices_of(read_back(pieces.trace, tmp_path)) == slices_of(read_back(whole.trace, tmp_path))
    assert made == list(PIECES)
    assert "columns" not in vars(table)


def test_each_name_is_written_once(tmp_path: Path) -> None:
    built = Built()
    thread(built.process(), ThreadData(calls=streamed(built, PIECES * 3, [])), adding=built)
    data = saved(built.trace, tmp_path / "out.pftrace").read_bytes()
    assert [data.count(b"\x12\x01" + name) for name in (b"A", b"B", b"C", b"D", b"E")] == [1] * 5


def test_arguments_stay_with_their_calls_in_pieces(tmp_path: Path) -> None:
    built = Built()
    arguments = Table(ARGUMENTS, {"call": [0, 3, 3, 9], "position": [0, 0, 1, 0], "value": [10, 30, 31, 90]})
    thread(built.process(), ThreadData(calls=streamed(built, PIECES, []), arguments=arguments), adding=built)
    found = [(s.name, list(s.args.values())) for s in read_back(built.trace, tmp_path).slices if s.args]
    assert found == [("A", [10]), ("B", [30, 31]), ("E", [90])]


def test_depth_is_cut_across_pieces(tmp_path: Path) -> None:
    built = Built()
    deep = ("A " * 300, "A " * 300, "a " * 600)
    thread(built.process(), ThreadData(calls=streamed(built, deep, [])), adding=built)
    assert len(read_back(built.trace, tmp_path).slices) == 512
    assert {issue.kind: issue.count for issue in built.trace.report} == {"depth_cut": 88}


# ---------------------------------------------------------------- numbers of threads


@pytest.mark.parametrize(
    ("recorded", "numbers", "names"),
    [
        ([7, 8], [7, 8], ["t", "t"]),
        ([7, 8, 7, 7], [7, 8, 2, 3], ["t", "t", "t (7)", "t (7)"]),
        ([POINTER, POINTER + 1], [1, 2], ["t", "t"]),
        ([POINTER, 1, 3], [2, 1, 3], ["t", "t", "t"]),
        ([(1 << 32) - 1, 1 << 32, -5], [(1 << 32) - 1, 2, 3], ["t", "t", "t (-5)"]),
        ([2, POINTER, 3, POINTER], [2, 4, 3, 5], ["t", "t", "t", "t"]),
    ],
    ids=["own", "used again", "pointers", "the process's is taken", "longest", "next free ones"],
)
def test_threads_have_numbers_of_their_own(recorded: list[int], numbers: list[int], names: list[str]) -> None:
    built = Built()
    process = built.process(1)
    for tid in recorded:
        thread(process, ThreadData(), tid, "t")
    changed = renumbered(built.trace)
    assert [(t.tid, t.name) for _, t in changed.threads] == list(zip(numbers, names, strict=True))
    assert [t.tid for _, t in built.trace.threads] == recorded


def test_a_name_made_of_the_recorded_number_is_made_of_the_new_one() -> None:
    built = Built()
    thread(built.process(), ThreadData(), POINTER, f"thread {POINTER:#x}")
    assert [(t.tid, t.name) for _, t in renumbered(built.trace).threads] == [(1, "thread 1")]


@pytest.mark.parametrize(
    ("pid", "tid", "name", "expected"),
    [
        (0, 8, "CPU 8", (1, "CPU 8")),
        (0, 8, "of nobody", (1, "of nobody (8)")),
        (0, 9, "CPU 9", (9, "CPU 9")),
        (0, 0, "Critical Path", (1, "Critical Path")),
        (0, 0, "swapper", (0, "swapper")),
        (0, 0, "swapper/0", (0, "swapper/0")),
        (1, 8, "of another container", (8, "of another container")),
        (1, 0, "numbered from 0", (0, "numbered from 0")),
    ],
)
def test_numbers_of_process_0(pid: int, tid: int, name: str, expected: tuple[int, str]) -> None:
    """trace_processor calls thread 0 swapper, and takes the last thread of a number for the one that ran."""
    built = Built()
    thread(built.process(7), ThreadData(), 8, "worker")
    thread(built.process(pid), ThreadData(), tid, name)
    assert [(t.tid, t.name) for _, t in renumbered(built.trace).threads] == [(8, "worker"), expected]


def test_trace_processor_keeps_threads_of_one_number_apart(tmp_path: Path, trace_processor: Processor) -> None:
    """Slices and samples."""
    built = Built()
    process = built.process(100)
    for nth, tid in enumerate((POINTER, 7, 7, POINTER, POINTER + (1 << 32))):
        calls = built.calls("A a", 10 * nth)
        allocations = allocations_of((nth, 8, built.stack("A", "Node"), nth))
        thread(process, ThreadData(calls=calls, allocations=allocations), tid, f"t{nth}")
    with trace_processor(saved(built.trace, tmp_path / "out.pftrace")) as processor:
        slices = processor.query(
            "SELECT thread.name AS name, count(*) AS n FROM slice JOIN thread_track ON track_id = thread_track.id "
            "JOIN thread USING (utid) GROUP BY utid"
        )
        assert [row.n for row in slices] == [1] * 5
        samples = processor.query(
            "SELECT thread.name AS name, thread.upid AS upid FROM stack_sample s JOIN stack_sample_task_context c "
            "ON s.task_context_id = c.id JOIN thread USING (utid) ORDER BY s.ts"
        )
        assert [(row.name.split()[0], row.upid) for row in samples] == [(f"t{n}", 1) for n in range(5)]


# ---------------------------------------------------------------- allocations


def allocations_of(*rows: tuple[int, int, int, int]) -> Table:
    """(time after START, size, stack, object)"""
    ts, size, stack, number = (list(column) for column in zip(*rows, strict=True))
    columns = {"ts": [START + t for t in ts], "size": size, "stack": stack, "object": number}
    return Table(ALLOCATIONS, columns | {"class_name": [0] * len(ts)})


def with_allocations() -> tuple[Built, list[tuple[int, int, list[Table]]]]:
    """(a trace, (pid, tid, pieces) of each thread)"""
    built = Built()
    node, text = built.stack("Main", "Make", "Node"), built.stack("Main", "String")
    other = built.stack("Other", "Node")
    pieces = [
        (10, 1, [allocations_of((1, 24, node, 0), (2, 40, text, 1)), allocations_of((3, 24, node, 2))]),
        (10, 2, [allocations_of((2, 300_000_000_000, text, 3), (5, -300_000_000_000, text, 3), (9, -24, node, 0))]),
        (20, 1, [allocations_of((4, 8, other, 0), (5, 8, node, 1), (6, -8, other, 0))]),
    ]
    processes = {pid: built.process(pid) for pid in (10, 20)}
    for pid, tid, of_thread in pieces:
        table = StreamedTable(ALLOCATIONS, of_thread.__iter__)
        thread(processes[pid], ThreadData(allocations=table), tid)
    return built, pieces


def path_of(trace: Trace, stack: int) -> tuple[str, ...]:
    """The names, the innermost first."""
    names: list[str] = []
    while stack >= 0:
        names.append(trace.func_name(int(trace.frames["func"][trace.stacks["frame"][stack]])))
        stack = int(trace.stacks["prefix"][stack])
    return tuple(names)


Totals = dict[tuple[int, tuple[str, ...]], list[int]]


def totals_of(trace: Trace, pieces: list[tuple[int, int, list[Table]]]) -> Totals:
    """(pid, path) → bytes allocated, freed; objects allocated, freed"""
    totals: Totals = defaultdict(lambda: [0, 0, 0, 0])
    for pid, _, tables in pieces:
        for table in tables:
            for size, stack in zip(table["size"].tolist(), table["stack"].tolist(), strict=True):
                one = totals[pid, path_of(trace, stack)]
                one[size < 0] += abs(size)
                one[2 + (size < 0)] += 1
    return dict(totals)


def test_allocations_are_samples_of_bytes(tmp_path: Path) -> None:
    built, pieces = with_allocations()
    trace, read = built.trace, read_back(built.trace, tmp_path)
    assert [(s.pid, s.tid, s.ts, tuple(s.names), s.counters) for s in read.samples] == sorted(
        (
            (pid, tid, ts, path_of(trace, stack), {"allocations, bytes": (4, size)})
            for pid, tid, tables in pieces
            for table in tables
            for ts, size, stack in zip(*(table[name].tolist() for name in ("ts", "size", "stack")), strict=True)
            if size > 0
        ),
        key=lambda row: row[2],
    )
    assert {s.source for s in read.samples} == {"allocations"}
    # One recording for the viewer, of two processes.
    assert len({s.sequence for s in read.samples}) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("code size", "total_code_size"), ("code size of jit-1.dump", "total_code_size"),
        ("Heap shot 1", "total_heap_shot_1"), ("", "total"),
    ],
)  # fmt: skip
def test_views_of_sizes_are_called_what_they_are(tmp_path: Path, name: str, source: str) -> None:
    built = Built()
    samples = Table(SAMPLES, {"ts": [START], "stack": [built.stack("Node")], "weight": [8]})
    thread(built.process(), ThreadData(samples=samples), 2, name).sample_unit = "bytes"
    read = read_back(built.trace, tmp_path)
    counter = f"{source.replace('_', ' ')}, bytes"
    assert [(s.source, s.tid, s.counters) for s in read.samples] == [(source, None, {counter: (4, 8)})]
    # A view, not a thread.
    assert not read.threads


def test_heap_profiles_are_the_totals(tmp_path: Path) -> None:
    built, pieces = with_allocations()
    trace, read = built.trace, read_back(built.trace, tmp_path)
    found = {
        (profile.pid, tuple(s.names)): [s.allocated, s.freed, s.count, s.freed_count]
        for profile in read.heap_profiles
        for s in profile.samples
    }
    assert found == totals_of(trace, pieces)
    assert [(p.pid, p.heap, p.start_ts, p.ts) for p in read.heap_profiles] == [
        (10, "allocations", START, END), (20, "allocations", START, END),
    ]  # fmt: skip


def test_more_freed_than_allocated_leaves_nothing(tmp_path: Path) -> None:
    """As in a part of a recording."""
    built = Built()
    stack = built.stack("Main", "Node")
    thread(built.process(), ThreadData(allocations=allocations_of((1, -24, stack, 0), (2, 8, stack, 1))))
    (profile,) = read_back(built.trace, tmp_path).heap_profiles
    assert [(s.allocated, s.freed, s.count, s.freed_count) for s in profile.samples] == [(8, 8, 1, 1)]


def test_without_allocations_there_is_no_profile(tmp_path: Path) -> None:
    built = Built()
    thread(built.process(), ThreadData(calls=built.calls("A a", 0)))
    read = read_back(built.trace, tmp_path)
    assert (read.heap_profiles, read.heap_graphs, read.samples) == ([], [], [])


def test_stacks_that_come_with_a_later_piece(tmp_path: Path) -> None:
    built = Built()

    def make() -> Iterator[Table]:
        for nth in range(5):
            yield allocations_of((nth, 10 + nth, built.stack("Main", *"ABCDE"[: nth + 1]), nth))

    thread(built.process(), ThreadData(allocations=StreamedTable(ALLOCATIONS, make)), adding=built)
    (profile,) = read_back(built.trace, tmp_path).heap_profiles
    assert {("".join(str(name) for name in s.names), s.allocated) for s in profile.samples} == {
        ("AMain", 10), ("BAMain", 11), ("CBAMain", 12), ("DCBAMain", 13), ("EDCBAMain", 14),
    }  # fmt: skip


def test_trace_processor_knows_what_was_freed(tmp_path: Path, trace_processor: Processor) -> None:
    built, pieces = with_allocations()
    trace = built.trace
    with trace_processor(saved(trace, tmp_path / "out.pftrace")) as processor:
        assert [(row.name, row.value) for row in processor.query(STATS)] == []
        rows = processor.query(
            "INCLUDE PERFETTO MODULE android.memory.heap_profile.callstacks; "
            "SELECT pid, heap_name, sum(max(size, 0)) AS made, -sum(min(size, 0)) AS freed, sum(max(count, 0)) AS n, "
            "-sum(min(count, 0)) AS n_freed, stack_profile_frame.name AS leaf FROM heap_profile_allocation h "
            "JOIN process USING (upid) JOIN stack_profile_callsite c ON c.id = callsite_id "
            "JOIN stack_profile_frame ON frame_id = stack_profile_frame.id GROUP BY upid, callsite_id"
        )
        wanted = totals_of(trace, pieces)
        assert Counter((r.pid, r.leaf, r.made, r.freed, r.n, r.n_freed) for r in rows) == Counter(
            (pid, path[0], *row[:2], *row[2:]) for (pid, path), row in wanted.items()
        )


# ---------------------------------------------------------------- heap snapshots


def graph_of(built: Built, sizes: list[int], references: list[list[int]], roots: list[tuple[int, str]]) -> HeapGraph:
    """Object i is of class "Class i % 3"."""
    objects = Table(
        HEAP_OBJECTS,
        {"class_name": [built.text(f"Class{i % 3}") for i in range(len(sizes))], "size": sizes},
    )
    kinds = [built.text(kind) for _, kind in roots]
    return HeapGraph(
        objects,
        np.cumsum([0, *(len(one) for one in references)]).astype(np.int64),
        np.array([one for of_object in references for one in of_object], np.int32),
        Table(HEAP_ROOTS, {"object": [row for row, _ in roots], "kind": kinds}),
    )


def random_graph(built: Built, n: int, seed: int) -> HeapGraph:
    random = np.random.default_rng(seed)
    counts = random.integers(0, 5, n)
    counts[n // 2] = 200_000  # more than a packet takes usually
    kinds = [built.text(kind) for kind in (*documented_roots(), "of another recorder")]
    classes = [built.text(f"Class{i}") for i in range(200)] + [-1]
    return HeapGraph(
        Table(
            HEAP_OBJECTS,
            {
                "class_name": random.choice(np.array(classes, np.int32), n),
                "size": random.choice(np.array([0, 16, 127, 128, 1 << 20, 1 << 40]), n),
            },
        ),
        np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        random.integers(0, n, int(counts.sum())).astype(np.int32),
        Table(
            HEAP_ROOTS,
            {"object": random.integers(0, n, n // 50), "kind": random.choice(np.array(kinds, np.int32), n // 50)},
        ),
    )


def with_heap(*graphs: Callable[[Built], HeapGraph]) -> tuple[Trace, list[HeapGraph]]:
    built = Built()
    process = built.process()
    made = [graph(built) for graph in graphs]
    process.heap_snapshots = [
        HeapSnapshot(START + 1000 * nth, START + 1000 * nth + 500, lambda _, graph=graph: copy(graph))  # type: ignore[misc]
        for nth, graph in enumerate(made)
    ]
    return built.trace, made


def references_of(graph: HeapGraph) -> list[list[int]]:
    return [graph.references[a:b].tolist() for a, b in pairwise(graph.offsets.tolist())]


def classes_of(trace: Trace, graph: HeapGraph) -> list[str]:
    return [trace.strings[name] or "(unknown class)" for name in graph.objects["class_name"].tolist()]


def recorded_roots(trace: Trace, graph: HeapGraph) -> Counter[tuple[int, int]]:
    kinds = [trace.strings[kind] for kind in graph.roots["kind"].tolist()]
    rows = graph.roots["object"].tolist()
    types = documented_roots()
    return Counter((types.get(kind, ROOT_NUMBERS["VM_INTERNAL"]), row) for kind, row in zip(kinds, rows, strict=True))


# HeapGraphRoot.Type of heap_graph.proto.
UNKNOWN_ROOT = 0
ROOT_NUMBERS = {
    "JNI_GLOBAL": 1, "JAVA_FRAME": 3, "STICKY_CLASS": 5, "THREAD_OBJECT": 8, "FINALIZING": 10, "DEBUGGER": 11,
    "REFERENCE_CLEANUP": 12, "VM_INTERNAL": 13,
}  # fmt: skip


@cache
def documented_roots() -> dict[str, int]:
    """What FORMATS.md says: kind of root → number of its type."""
    text = (REPO / "FORMATS.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| kinds of roots |"))
    groups = (group.split(": ") for group in row.strip("| ").split(" | ")[1].split("; "))
    found = {kind: ROOT_NUMBERS[name] for kinds, name in groups for kind in kinds.split(", ")}
    assert found.pop("others") == ROOT_NUMBERS["VM_INTERNAL"]
    assert len(found) >= 10
    return found


def test_heap_graphs_are_the_snapshots(tmp_path: Path) -> None:
    """Objects, classes, sizes, references and roots, of many packets."""
    trace, graphs = with_heap(lambda b: random_graph(b, 40_000, 1), lambda b: random_graph(b, 5, 2))
    read = read_back(trace, tmp_path)
    assert [(g.pid, g.ts) for g in read.heap_graphs] == [(1, START), (1, START + 1000)]
    assert read.heap_graphs[0].packets > 3
    for graph, found in zip(graphs, read.heap_graphs, strict=True):
        wanted = zip(classes_of(trace, graph), graph.objects["size"].tolist(), references_of(graph), strict=True)
        assert [
            (one.type, one.size, [number - 1 for number in one.references]) for _, one in sorted(found.objects.items())
        ] == list(wanted)
        assert Counter((t, n - 1) for t, n in found.roots if t != UNKNOWN_ROOT) == recorded_roots(trace, graph)


@pytest.mark.parametrize(
    ("references", "roots", "unknown"),
    [
        ([[1], [2], []], [0], []),
        ([[1], [2], []], [1], [0]),
        ([[1], [2], []], [], [0]),
        ([[1], [2], [0]], [], [0]),
        ([[], [0, 1], []], [], [1, 2]),
        ([[1], [0], [3], [2]], [], [0, 2]),
        ([[0], [0], [1, 1]], [], [2]),
        ([[0]], [], [0]),
        ([[1], [0], [1]], [], [2]),
        ([[1], [0], [3, 0], [2]], [], [2]),
        ([], [], []),
    ],
    ids=[
        "all reached", "one above", "no roots", "a circle", "none refers to itself", "two circles", "a chain to itself",
        "alone with itself", "a circle below one", "a circle below another", "nothing",
    ],
)  # fmt: skip
def test_what_no_recorded_root_keeps_alive(
    tmp_path: Path, references: list[list[int]], roots: list[int], unknown: list[int]
) -> None:
    trace, _ = with_heap(lambda b: graph_of(b, [8] * len(references), references, [(row, "static") for row in roots]))
    (graph,) = read_back(trace, tmp_path).heap_graphs
    assert [number - 1 for kind, number in graph.roots if kind == UNKNOWN_ROOT] == unknown


GRAPHS = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.lists(st.lists(st.integers(0, n - 1), max_size=4), min_size=n, max_size=n),
        st.lists(st.integers(0, n - 1), max_size=3),
    )
)


@examples(300)
@given(GRAPHS)
def test_roots_lead_to_everything_and_none_is_needless(graph: tuple[list[list[int]], list[int]]) -> None:
    references, roots = graph
    trace, _ = with_heap(lambda b: graph_of(b, [8] * len(references), references, [(row, "static") for row in roots]))
    chunks: list[bytes] = []

    class Sink:
        def write(self, data: bytes | bytearray | memoryview, /) -> None:
            chunks.append(bytes(data))

    out = Output(Sink(), gzip=False)
    write(trace, out, lambda _: None)
    out.finish()
    (found,) = perfetto.parse(b"".join(chunks)).heap_graphs
    unknown = [number - 1 for kind, number in found.roots if kind == UNKNOWN_ROOT]
    everything = set(range(len(references)))
    assert reached(references, roots + unknown) == everything
    assert all(reached(references, roots + [r for r in unknown if r != one]) != everything for one in unknown)


def reached(references: list[list[int]], starts: list[int]) -> set[int]:
    seen, queue = set(starts), list(starts)
    for one in queue:
        new = set(references[one]) - seen
        seen |= new
        queue += new
    return seen


def test_trace_processor_knows_the_heap(tmp_path: Path, trace_processor: Processor) -> None:
    """Its tables, and the trees that the viewer's flame graphs show."""
    trace, graphs = with_heap(
        lambda b: graph_of(b, [16, 32, 64, 128, 256], [[1, 2], [2], [], [4], [3]], [(0, "static"), (1, "stack")]),
        lambda b: random_graph(b, 500, 3),
    )
    path = saved(trace, tmp_path / "out.pftrace")
    read = perfetto.read(path)
    with trace_processor(path) as processor:
        assert [(row.name, row.value) for row in processor.query(STATS)] == []
        for graph, found in zip(graphs, read.heap_graphs, strict=True):
            n, size = len(graph.objects), int(graph.objects["size"].sum())
            of_graph = f"FROM heap_graph_object o WHERE graph_sample_ts = {found.ts}"
            (row,) = processor.query(
                f"SELECT count(*) AS n, sum(self_size) AS size, sum(reachable) AS alive, count(root_type) AS roots "
                f"{of_graph}"
            )
            assert (row.n, row.size, row.alive, row.roots) == (n, size, n, len({one for _, one in found.roots}))
            classes = processor.query(
                "SELECT c.name AS name, count(*) AS n FROM heap_graph_object o JOIN heap_graph_class c "
                f"ON type_id = c.id WHERE graph_sample_ts = {found.ts} GROUP BY c.name"
            )
            assert {row.name: row.n for row in classes} == Counter(classes_of(trace, graph))
            (row,) = processor.query(
                "SELECT count(*) AS n, count(r.owned_id) AS n_known FROM heap_graph_reference r JOIN heap_graph_object "
                f"o ON r.owner_id = o.id WHERE graph_sample_ts = {found.ts}"
            )
            assert row.n == row.n_known == len(graph.references)
            for tree in ("class_tree", "dominator_class_tree"):
                (row,) = processor.query(
                    f"INCLUDE PERFETTO MODULE android.memory.heap_graph.{tree}; SELECT sum(self_size) AS size, "
                    f"sum(self_count) AS n FROM _heap_graph_{tree} WHERE graph_sample_ts = {found.ts}"
                )
                assert (row.size, row.n) == (size, n), tree
        roots = processor.query(
            f"SELECT root_type AS root FROM heap_graph_object WHERE graph_sample_ts = {START} ORDER BY id"
        )
        assert Counter(row.root for row in roots) == {
            None: 2, "ROOT_STICKY_CLASS": 1, "ROOT_JAVA_FRAME": 1, "ROOT_UNKNOWN": 1,
        }  # fmt: skip


# ---------------------------------------------------------------- the reader sees what is wrong


def framed(packet: bytes) -> bytes:
    n = len(packet)
    return bytes((0x0A, n & 127 | 128, n >> 7 & 127 | 128, n >> 14 & 127 | 128, n >> 21)) + packet


@pytest.mark.parametrize(
    ("tag", "nth", "error"),
    [
        (b"\xaa\x02", 0, "heapprofd_missing_packet"),
        (b"\xc2\x03", 0, "heap_graph_missing_packet"),
        (b"\xc2\x03", -1, "a heap graph has no end"),
    ],
    ids=["profile", "first of a graph", "last of a graph"],
)
def test_a_packet_that_is_missing(tmp_path: Path, tag: bytes, nth: int, error: str) -> None:
    built, _ = with_allocations()
    trace = built.trace
    graph = graph_of(built, [8, 8], [[1], [0]], [(0, "static")])
    trace.processes[0].heap_snapshots = [HeapSnapshot(START, END, lambda _: graph)]
    data = saved(trace, tmp_path / "out.pftrace").read_bytes()
    packets = list(perfetto._packets(data))
    del packets[[n for n, packet in enumerate(packets) if tag in packet][nth]]
    assert any(error in found for found in perfetto.parse(b"".join(map(framed, packets))).errors)
