"""Real Mono recordings against what an independent reader says of them (shared/captures/EXPECTED.md)."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import in_turn
from mono_recordings import (
    Amount,
    Function,
    Spent,
    alive_of,
    allocated_of,
    apart,
    content,
    expected_of,
    functions_of,
    is_managed,
    markers_of,
    n_markers,
    names,
    path_of,
    report_of,
    spent_by,
    stack_names,
    summary_of,
    threads_of,
    trace_of,
    values_of,
)

import traceferry
from traceferry.files.source import Source
from traceferry.heap.classes import UNKNOWN_CLASS
from traceferry.model import OPEN_AT_END, HeapGraph
from traceferry.registry import importer_named

RECORDINGS = names(".mlpd")
EXPECTED = [
    name.removesuffix(".expected.json") + ".mlpd" if isinstance(name, str) else name for name in names(".expected.json")
]
# Three quarters of a million events, of the kinds that the others have.
LONG = "mid/everything.mlpd"
BROKEN = names(".mlpd", "broken/")
UNDAMAGED = "tiny/mini_all.mlpd"
# One log written in the other data versions, and with pointers of four bytes: the one with which all are compared.
IN_32_BITS = "transcoded/v17_all_ptr4.mlpd"
VERSIONS = [
    *names(".mlpd", UNDAMAGED.removesuffix(".mlpd")), *names(".mlpd", "versions/"), *names(".mlpd", "transcoded/")
]  # fmt: skip
# What a thread writes for others: when a method was first seen, when another thread was sampled.
WRITERS = ("Profiler Writer", "Profiler Dumper")
NAMES_OF_THREADS_MISSING = ("thread 0x", "v01_all_seed")


WITHOUT_DESCRIPTIONS = [f"versions/v{version}_all.mlpd" for version in ("06", "08", "11")]


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_recording_obeys_the_laws(name: str) -> None:
    trace_of(name)


@pytest.mark.parametrize(("name", "suffix"), in_turn(RECORDINGS, [".json", ".gecko.json", ".pftrace"]))
def test_every_recording_becomes_every_output(name: str, suffix: str, tmp_path: Path) -> None:
    traceferry.save(apart(name), tmp_path / f"out{suffix}")
    assert (tmp_path / f"out{suffix}").stat().st_size > 1000


# ---------------------------------------------------------------- header and events, as `dump` prints them


class Dump(NamedTuple):
    """kinds: in the words of EXPECTED.md; moved: objects; by_thread: events in a thread's buffers."""

    n_buffers: int
    kinds: Counter[str]
    moved: int
    by_thread: Counter[int]


WORDS = {
    "ALLOC": "alloc", "ALLOC_BT": "alloc_bt", "GC_RESIZE": "gcresize", "GC_MOVE": "gcmove", "HANDLE_CREATED": "hcreate",
    "HANDLE_CREATED_BT": "hcreate_bt", "HANDLE_DESTROYED": "hfree", "HANDLE_DESTROYED_BT": "hfree_bt",
    "FINALIZE_START": "finstart", "FINALIZE_END": "finend", "FINALIZE_OBJECT_START": "finobj",
    "FINALIZE_OBJECT_END": "finobjend", "LEAVE": "method_leave", "ENTER": "method_enter",
    "EXC_LEAVE": "method_exc_leave", "JIT": "method_jit", "THROW": "throw", "THROW_BT": "throw_bt",
    "CLAUSE": "clause", "HEAP_START": "hstart", "HEAP_END": "hend", "HEAP_OBJECT": "hobj", "HEAP_ROOT": "hroots",
    "ROOT_REGISTER": "rootreg", "ROOT_UNREGISTER": "rootunreg", "HIT": "hit", "USYM": "usym", "UBIN": "ubin",
    "COUNTERS_DESC": "cdesc", "COUNTERS": "csample", "JITHELPER": "jithelper", "COVERAGE_ASSEMBLY": "cov",
    "COVERAGE_METHOD": "cov", "COVERAGE_STATEMENT": "cov", "COVERAGE_CLASS": "cov", "SYNC_POINT": "syncpt",
    "AOT_ID": "aotid",
}  # fmt: skip
# Of these, the first field tells which.
PARTS = {
    "GC_EVENT": {
        0: "gc_start", 5: "gc_end", 6: "gc_pre_stop", 7: "gc_post_stop", 8: "gc_pre_start", 9: "gc_post_start",
        10: "gc_pre_stop_locked", 11: "gc_post_start_unlocked",
    },
    "MONITOR": {1: "monitor_contention", 2: "monitor_done", 3: "monitor_fail"},
    "LOAD": {
        1: "class_load", 2: "image_load", 3: "assembly_load", 4: "domain_load", 5: "thread_load", 6: "context_load",
        7: "vtable_load",
    },
    "UNLOAD": {
        2: "image_unload", 3: "assembly_unload", 4: "domain_unload", 5: "thread_unload", 6: "context_unload",
    },
    "NAME": {4: "domain_name", 5: "thread_name"},
}  # fmt: skip
HEADER_FIELD = re.compile(r"(\w+)=('(?:[^'\\]|\\.)*'|\S+)")


def dump_lines(name: str) -> Iterator[str]:
    source = Source(path_of(name).name, memoryview(content(name)))
    return importer_named("mono").module.dump(source, 0)


def header_of(name: str) -> dict[str, Any]:
    return {key: ast.literal_eval(value) for key, value in HEADER_FIELD.findall(next(dump_lines(name)))}


def dump_of(name: str) -> Dump:
    _, *lines = dump_lines(name)
    kinds: Counter[str] = Counter()
    by_thread: Counter[int] = Counter()
    n_buffers = moved = thread = 0
    for line in lines:
        event = line.split(" ", 2)[1]
        if event == "buffer":
            n_buffers += 1
            thread = int(re.search(r"thread=(\w+)", line)[1], 16)  # type: ignore[index]
            continue
        kinds[WORDS[event] if event in WORDS else PARTS[event][first_field(line)]] += 1
        by_thread[thread] += 1
        moved += n_items(line) // 2 if event == "GC_MOVE" else 0
    return Dump(n_buffers, kinds, moved, by_thread)


def first_field(line: str) -> int:
    match = re.search(r" ts=\d+ \w+=(\w+)", line)
    return int(match[1], 16) if match else 0


def n_items(line: str) -> int:
    items = line[line.index("[") + 1 : -1]
    shown, _, more = items.partition(" and ")
    return len(shown.split()) + int(more.removesuffix(" more") or 0)


HEADER_NAMES = {
    "size": "header_bytes", "arguments": "args", "architecture": "arch", "system": "os",
    **{name: name for name in (
        "major", "minor", "data_version", "pointer_size", "start_unix_ms", "start_clock_ns", "timer_overhead_ns",
        "pid", "port",
    )},
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_header(name: str) -> None:
    """Before major 1 there are no arguments, architecture and system."""
    wanted, header = expected_of(name)["header"], header_of(name)
    assert {key: header[key] or None for key in HEADER_NAMES} == {
        key: wanted[word] or None for key, word in HEADER_NAMES.items()
    }


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.large) if name == LONG else name for name in EXPECTED]
)
def test_every_event_is_read(name: str) -> None:
    wanted, dump = expected_of(name), dump_of(name)
    assert wanted["damage"] == []
    assert dump.kinds == wanted["events"]["by_kind"]
    assert dump.n_buffers == wanted["events"]["buffers"]
    assert dump.moved == wanted["gc"]["moved_objects"]
    of_tid: Counter[int] = Counter()
    for thread in wanted["threads"]:
        of_tid[int(thread["tid"], 16)] += thread["own_events"]
    assert dump.by_thread == of_tid


@pytest.mark.parametrize("name", EXPECTED)
def test_span(name: str) -> None:
    time = expected_of(name)["time"]
    assert (trace_of(name).start_ts, trace_of(name).end_ts) == (time["first_ns"], time["last_ns"])


@pytest.mark.parametrize("name", EXPECTED)
def test_nothing_is_lost(name: str) -> None:
    """Definitions that come after their uses are found; only leaves without an enter are noted, and a missing pid."""
    calls = expected_of(name)["calls"] or {"ignored": 0, "closed_above": 0, "open_at_end": 0}
    wanted = {
        "leave_without_enter": calls["ignored"],
        "unwound": calls["closed_above"],
        "open_at_end": calls["open_at_end"],
        "reference_dangles": sum(shot["dangling_references"] for shot in expected_of(name)["heap_snapshots"]),
        "pid_unknown": int(expected_of(name)["header"]["pid"] == 0),
        "counter_unknown": undescribed_values(name),
    }
    told = ("waits_sampled", "classes_unknown")
    noted = {kind: count for kind, count in report_of(name).items() if kind not in told}
    assert noted == {kind: count for kind, count in wanted.items() if count}
    unnamed = [f for f in functions_of(summary_of(name)) if f.startswith(("[method", "[class"))]
    assert unnamed == []


# ---------------------------------------------------------------- threads


def number_of(tid: int) -> int:
    return tid & (1 << 64) - 1


@pytest.mark.parametrize("name", EXPECTED)
def test_threads(name: str) -> None:
    """One for each lifetime of an id. Samples of versions before 11 name no thread: they are a thread of their own."""
    wanted = {
        (int(thread["tid"], 16), thread["last_ns"], thread["name"]): (
            thread["enter"], thread["open_at_end"], thread["allocations"], thread["allocated_bytes"],
            thread["samples"], thread["exceptions"], thread["clauses"], *thread["monitor"].values(),
        )
        for thread in expected_of(name)["threads"] if thread["name"] not in WRITERS
    }  # fmt: skip
    mine = {}
    for thread, data in threads_of(name):
        if thread.tid == 0 or is_writer(name, number_of(thread.tid)):
            continue
        allocated = data.allocations["size"][data.allocations["size"] > 0]
        outcomes = Counter(
            outcome
            for marker_type, table in data.markers.items() if marker_type.name == "Lock contention"
            for outcome in table["outcome"].tolist()
        )  # fmt: skip
        key = number_of(thread.tid), thread.end_ts, name_of(thread.name)
        mine[key] = (
            len(data.calls) // 2, int(np.count_nonzero(data.calls["flags"] & OPEN_AT_END)), len(allocated),
            int(allocated.sum()), len(data.samples), n_markers(data, "Exception"), n_markers(data, "Exception clause"),
            outcomes.total(), outcomes["acquired"], outcomes["failed"],
        )  # fmt: skip
    assert mine == {key: counts for key, counts in wanted.items() if not is_writer(name, key[0])}


def name_of(title: str) -> str | None:
    """None for the title of a thread without a name."""
    return None if title.startswith(NAMES_OF_THREADS_MISSING) else title


def is_writer(name: str, tid: int) -> bool:
    """Whether it writes what it has seen for others: such events have their own times, which a reader that asks what a
    thread did leaves out."""
    own = {int(thread["tid"], 16): thread for thread in expected_of(name)["threads"]}[tid]
    return own["name"] in WRITERS or n_jitted(name, tid) > 0


def n_jitted(name: str, tid: int) -> int:
    return sum(len(table) for thread, table in markers_of(name, "JIT compilation") if number_of(thread.tid) == tid)


@pytest.mark.parametrize("name", EXPECTED)
def test_starts_of_threads(name: str) -> None:
    """Those that write for others cover also what they write."""
    mine = {(number_of(thread.tid), thread.end_ts): thread for thread, _ in threads_of(name)}
    for wanted in expected_of(name)["threads"]:
        tid = int(wanted["tid"], 16)
        if is_writer(name, tid):
            (thread,) = (thread for (number, _), thread in mine.items() if number == tid)
            assert thread.start_ts <= wanted["first_ns"] <= wanted["last_ns"] <= thread.end_ts
        else:
            assert mine[tid, wanted["last_ns"]].start_ts == wanted["first_ns"]


@pytest.mark.parametrize("name", EXPECTED)
def test_names_and_lifetimes_of_threads(name: str) -> None:
    """Data versions before 11 have names only."""
    wanted: dict[str, set[tuple[int, Any]]] = {"loaded": set(), "unloaded": set(), "named": set()}
    for thread in expected_of(name)["threads"]:
        tid = int(thread["tid"], 16)
        wanted["named"] |= {(tid, one) for one in thread["names"]}
        for event in ("loaded", "unloaded"):
            wanted[event] |= {(tid, thread[f"{event}_ns"])} - {(tid, None)}
    mine: dict[str, set[tuple[int, Any]]] = {event: set() for event in wanted}
    for _, table in markers_of(name, "Metadata"):
        columns = (table[key].tolist() for key in ("what", "event", "title", "pointer", "ts"))
        for what, event, title, pointer, ts in zip(*columns, strict=True):
            if what == "thread":
                mine[event].add((pointer, title if event == "named" else ts))
    assert mine == wanted


# ---------------------------------------------------------------- calls, allocations, samples


@pytest.mark.parametrize("name", EXPECTED)
def test_calls(name: str) -> None:
    """The largest by number and by own time: enters, own and total time to the nanosecond."""
    wanted = expected_of(name)["calls"] or {"enter": 0, "distinct_names": 0, "top_by_enter": [], "top_by_self": []}
    functions = functions_of(summary_of(name))
    called = {title: f for title, f in functions.items() if f.calls}
    assert sum(f.calls for f in called.values()) == wanted["enter"]
    assert len(called) == wanted["distinct_names"]
    for row in (*wanted["top_by_enter"], *wanted["top_by_self"]):
        samples = called[row["name"]].samples
        assert called[row["name"]] == Function(row["enter"], row["total_ns"], row["self_ns"], samples), row["name"]


@pytest.mark.parametrize("name", EXPECTED)
def test_allocations(name: str) -> None:
    wanted, allocations = expected_of(name)["allocations"], summary_of(name)["allocations"]
    assert (allocations["count"], allocations["bytes"]) == (wanted["count"], wanted["bytes"])
    classes = allocated_of(summary_of(name))
    assert len(classes) == wanted["classes"]
    top = {row["cls"]: Amount(row["bytes"], row["count"]) for row in wanted["top_by_bytes"]}
    assert list(classes.items())[: len(top)] == list(top.items())


@pytest.mark.parametrize("name", EXPECTED)
def test_backtraces_of_allocations(name: str) -> None:
    """Where calls were recorded there are no backtraces, and the stack is that of the calls. Of the trace itself, as
    `info` leaves the runtime's wrappers out."""
    wanted, trace = expected_of(name)["allocations"], trace_of(name)
    if expected_of(name)["calls"]:
        assert wanted["with_backtrace"] == 0
        return
    prefix, frame = trace.stacks["prefix"].tolist(), trace.stacks["frame"]
    depth: list[int] = []
    for caller in prefix:
        depth.append(1 if caller < 0 else depth[caller] + 1)
    allocated = [data.allocations for _, data in threads_of(name)]
    size, of_class = (np.concatenate([table[key] for table in allocated]) for key in ("size", "stack"))
    # The leaf is a frame of the class.
    site = np.array(prefix)[of_class[size > 0]]
    assert int((site >= 0).sum()) == wanted["with_backtrace"]
    assert sum(depth[one] for one in site[site >= 0].tolist()) == wanted["backtrace_frames"]
    leaves: Counter[str] = Counter()
    for one, n_bytes in zip(site.tolist(), size[size > 0].tolist(), strict=True):
        if one >= 0:
            leaves[trace.func_name(int(trace.frames["func"][frame[one]]))] += n_bytes
    assert {row["name"]: leaves[row["name"]] for row in wanted["top_leaf_methods_by_bytes"]} == {
        row["name"]: row["bytes"] for row in wanted["top_leaf_methods_by_bytes"]
    }


@pytest.mark.parametrize("name", EXPECTED)
def test_samples(name: str) -> None:
    """Data versions 4 and 5 have no managed frames: there, methods are found by their code's address."""
    wanted, trace = expected_of(name)["samples"], trace_of(name)
    stacks = [data.samples["stack"] for _, data in threads_of(name)]
    assert sum(map(len, stacks)) == wanted["total"]
    managed = sum(int(np.count_nonzero(is_managed(trace, stack))) for stack in stacks)
    if expected_of(name)["header"]["data_version"] in (4, 5):
        assert managed > wanted["with_managed_frames"] == 0
    else:
        assert managed == wanted["with_managed_frames"]
    functions = functions_of(summary_of(name))
    for row in wanted["top_leaf_methods"]:
        assert functions[row["name"]].samples == row["samples"], row["name"]
    unattributed = [len(data.samples) for thread, data in threads_of(name) if thread.tid == 0]
    assert sum(unattributed) == wanted["unattributed"]


# ---------------------------------------------------------------- the runtime


def undescribed_values(name: str) -> int:
    """The transcoder kept values of counters in sections that a version does not have yet, not what describes them."""
    if name not in WITHOUT_DESCRIPTIONS:
        return 0
    described, of_all = (sum(c["values"] for c in expected_of(n)["counters"]) for n in (name, "versions/v13_all.mlpd"))
    return of_all - described


@pytest.mark.parametrize("name", EXPECTED)
def test_exceptions(name: str) -> None:
    """The type is that of the object's allocation, also after the collector has moved it."""
    wanted = expected_of(name)["exceptions"]
    types = {
        "unknown" if title == UNKNOWN_CLASS else title: n
        for title, n in values_of(name, "Exception", "type_name").items()
    }
    assert types == wanted["by_class"]
    assert sum(types.values()) == wanted["thrown"]
    assert values_of(name, "Exception clause", "kind") == wanted["clauses"]


@pytest.mark.parametrize("name", EXPECTED)
def test_garbage_collections(name: str) -> None:
    wanted = expected_of(name)["gc"]
    collections = spent_by(name, "GC collection", "generation")
    assert collections == {int(generation): Spent(*row.values()) for generation, row in wanted["collections"].items()}
    pauses = spent_by(name, "GC pause", "generation")
    stops = wanted["world_stops"]
    assert {str(generation): spent.times for generation, spent in pauses.items()} == stops["by_generation"]
    assert sum(spent.total_ns for spent in pauses.values()) == stops["total_ns"]
    assert max((spent.max_ns for spent in pauses.values()), default=0) == stops["max_ns"]


@pytest.mark.parametrize("name", EXPECTED)
def test_size_of_the_heap(name: str) -> None:
    wanted = expected_of(name)["gc"]["resizes"]
    (process,) = trace_of(name).processes
    values = [value for c in process.counters if c.name == "managed heap" for value in c.values["value"].tolist()]
    assert len(values) == wanted["count"]
    assert (values[-1:] or [None], max(values, default=None)) == ([wanted["last"]], wanted["max"])


@pytest.mark.parametrize("name", EXPECTED)
def test_code(name: str) -> None:
    """Methods that a sample saw first have garbage for code; mprof-report counts it."""
    wanted, summary = expected_of(name)["jit"], summary_of(name)
    assert values_of(name, "JIT compilation", "method").total() == wanted["methods"]
    assert summary["code_objects"] == wanted["methods_with_code"]
    assert sum(tier["bytes"] for tier in summary["tiers"]) == wanted["code_bytes"]
    helpers = [table["size"] for _, table in markers_of(name, "JIT helper")]
    assert sum(map(len, helpers)) == wanted["helpers"]
    assert sum(int(sizes.sum()) for sizes in helpers) == wanted["helper_bytes"]


SCALES = {"time": 100}


@pytest.mark.parametrize("name", EXPECTED)
def test_counters(name: str) -> None:
    """In nanoseconds where the log counts in units of 100 of them; one without a value in the log is left out."""
    (process,) = summary_of(name)["processes"]
    mine = [
        (counter["name"], counter["values"], counter["first"], counter["last"])
        for counter in process["counters"] if counter["name"] != "managed heap"
    ]  # fmt: skip
    assert mine == [
        (
            f"{row['section_name'] or row['section']}: {row['name']}", row["values"],
            *(row[key] * SCALES.get(row["unit"], 1) for key in ("first", "last")),
        )
        for row in expected_of(name)["counters"]
    ]  # fmt: skip


# ---------------------------------------------------------------- heap shots


@pytest.mark.parametrize("name", EXPECTED)
def test_heap_shots(name: str) -> None:
    wanted = expected_of(name)["heap_snapshots"]
    (process,) = trace_of(name).processes
    assert [(s.start_ts, s.end_ts) for s in process.heap_snapshots] == [(s["start_ns"], s["end_ns"]) for s in wanted]
    for shot, mine in zip(wanted, summary_of(name)["processes"][0]["heap_snapshots"], strict=True):
        assert (mine["objects"], mine["bytes"]) == (shot["objects"], shot["bytes"])
        assert mine["references"] == shot["references"] - shot["dangling_references"]
        assert mine["roots"] == shot["roots"]
        assert len(mine["classes"]) == shot["classes"]
        top = [(row["cls"], Amount(row["bytes"], row["objects"])) for row in shot["top_classes"]]
        assert list(alive_of(mine).items())[: len(top)] == top
    held = [len(np.unique(snapshot.load(trace_of(name)).roots["object"])) for snapshot in process.heap_snapshots]
    assert held == [shot["distinct_root_objects"] for shot in wanted]


FOLLOWED = [
    name
    for name in EXPECTED
    if not isinstance(name, str)
    or (expected_of(name)["gc"]["moved_objects"] and expected_of(name)["allocations"]["count"])
]


class Lived(NamedTuple):
    """An object of the allocations. until: None: it lived on."""

    class_name: int
    since: int
    until: int | None


@cache
def lives_of(name: str) -> dict[int, Lived]:
    lives: dict[int, Lived] = {}
    frees: dict[int, int] = {}
    for _, data in threads_of(name):
        columns = (data.allocations[key].tolist() for key in ("object", "class_name", "ts", "size"))
        for number, class_name, ts, size in zip(*columns, strict=True):
            if size > 0:
                assert number not in lives
                lives[number] = Lived(class_name, ts, None)
            else:
                assert number not in frees
                frees[number] = ts
    return {number: life._replace(until=frees.get(number)) for number, life in lives.items()}


@pytest.mark.parametrize("name", FOLLOWED)
def test_objects_keep_their_identity(name: str) -> None:
    """Through all moves: what a shot lists was allocated, as of that class, and has not died; what had been allocated
    by then and is not listed has died by the end of the shot."""
    lives = lives_of(name)
    (process,) = trace_of(name).processes
    for snapshot in process.heap_snapshots:
        objects = snapshot.load(trace_of(name)).objects
        listed = dict(zip(objects["object"].tolist(), objects["class_name"].tolist(), strict=True))
        assert len(listed) == len(objects)
        assert {number: lives[number].class_name for number in listed} == listed
        alive = {
            number
            for number, life in lives.items()
            if life.since <= snapshot.start_ts and (life.until is None or life.until > snapshot.end_ts)
        }
        assert alive == listed.keys()


# ---------------------------------------------------------------- one log in several data versions


class Allocated(NamedTuple):
    """until: None: it lived on."""

    since: int
    size: int
    class_name: str
    stack: tuple[str, ...]
    until: int | None


@cache
def allocated_objects(name: str) -> dict[int, Allocated]:
    """By the object's number."""
    trace, lives = trace_of(name), lives_of(name)
    found = {}
    for _, data in threads_of(name):
        made = data.allocations.take(data.allocations["size"] > 0)
        stacks = stack_names(trace, made["stack"].tolist())
        for number, size, stack in zip(made["object"].tolist(), made["size"].tolist(), stacks, strict=True):
            class_name, since, until = lives[number]
            found[number] = Allocated(since, size, trace.strings[class_name], stack, until)
    return found


@pytest.mark.parametrize("name", VERSIONS)
def test_every_version_gives_the_same_allocations(name: str) -> None:
    """With stacks, and when they are freed."""
    assert Counter(allocated_objects(name).values()) == Counter(allocated_objects(IN_32_BITS).values())


def graphs(name: str) -> list[HeapGraph]:
    (process,) = trace_of(name).processes
    return [snapshot.load(trace_of(name)) for snapshot in process.heap_snapshots]


def objects_in(name: str, graph: HeapGraph) -> list[tuple[Allocated, str, int, tuple[str, ...]]]:
    """(its allocation, class, size, where it was allocated)"""
    trace, allocated = trace_of(name), allocated_objects(name)
    columns = (graph.objects[key].tolist() for key in ("object", "class_name", "size"))
    sites = stack_names(trace, graph.objects["site"].tolist())
    return [
        (allocated[number], trace.strings[class_name], size, site)
        for number, class_name, size, site in zip(*columns, sites, strict=True)
    ]


@pytest.mark.parametrize("name", VERSIONS)
def test_every_version_gives_the_same_heap_shots(name: str) -> None:
    """Objects with their allocations, references and, from data version 3 on, what holds them."""
    has_roots = expected_of(name)["header"]["data_version"] >= 3
    for mine, original in zip(graphs(name), graphs(IN_32_BITS), strict=True):
        addresses = original.objects["address"].tolist()
        assert objects_in(name, mine) == objects_in(IN_32_BITS, original)
        assert [address % (1 << 32) for address in mine.objects["address"].tolist()] == addresses
        assert mine.offsets.tolist() == original.offsets.tolist()
        assert mine.references.tolist() == original.references.tolist()
        assert mine.roots["object"].tolist() == (original.roots["object"].tolist() if has_roots else [])


@pytest.mark.parametrize("name", VERSIONS)
def test_every_version_gives_the_same_markers(name: str) -> None:
    """Collections, locks with the class of their object, exceptions with their type and who caught them, and handles,
    to the nanosecond; handles came with header 0.2."""
    keys = {
        "GC pause": ("ts", "dur", "generation"),
        "GC collection": ("ts", "dur", "generation"),
        "Lock contention": ("ts", "dur", "class_name", "outcome"),
        "Exception": ("ts", "dur", "type_name", "caught_in"),
        "Exception clause": ("ts", "kind", "method", "index"),
        "Heap shot": ("ts", "dur"),
        "JIT compilation": ("ts", "method"),
    }
    header = expected_of(name)["header"]
    if (header["major"], header["minor"]) >= (0, 2):
        keys["GC handle"] = ("ts", "event", "kind", "handle")
    for marker_type, fields in keys.items():
        assert rows_of(name, marker_type, fields) == rows_of(IN_32_BITS, marker_type, fields), marker_type


def rows_of(name: str, marker_type: str, fields: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return sorted(
        row
        for _, table in markers_of(name, marker_type)
        for row in zip(*(table[field].tolist() for field in fields), strict=True)
    )


WITH_SAMPLES = [n for n in VERSIONS if not isinstance(n, str) or expected_of(n)["samples"]["managed_frames"]]


@pytest.mark.parametrize("name", WITH_SAMPLES)
def test_every_version_gives_the_same_samples(name: str) -> None:
    """Before data version 13 their times are in steps of 10 us."""
    step = 10_000 if expected_of(name)["header"]["data_version"] < 13 else 1
    assert stacks_sampled(name, step) == stacks_sampled(IN_32_BITS, step)


def stacks_sampled(name: str, step: int) -> list[tuple[int, tuple[str, ...]]]:
    """(time in steps from the recording's origin, managed stack, the outermost method first)"""
    trace, found = trace_of(name), []
    for _, data in threads_of(name):
        stacks = data.samples["stack"]
        managed = is_managed(trace, stacks)
        times, names_of = data.samples["ts"][managed] // step, stack_names(trace, stacks[managed].tolist())
        found += zip(times.tolist(), names_of, strict=True)
    return sorted(found)


# ---------------------------------------------------------------- broken recordings


def first_damage(name: str) -> int:
    """Where it begins to differ from the recording that it was made of."""
    mine, original = (np.frombuffer(content(n), np.uint8) for n in (name, UNDAMAGED))
    n = min(len(mine), len(original))
    different = np.flatnonzero(mine[:n] != original[:n])
    return int(different[0]) if len(different) else n


@cache
def events_by_buffer(name: str) -> dict[int, list[str]]:
    """Offset of the buffer → lines of its events."""
    found: dict[int, list[str]] = defaultdict(list)
    buffer = 0
    for line in islice(dump_lines(name), 1, None):
        offset, word, _ = line.split(" ", 2)
        if word == "buffer":
            buffer = int(offset)
        elif word != "!":
            found[buffer].append(line)
    return found


DAMAGES = {
    "broken/bad_event.mlpd": {"bad_record": 1},
    "broken/huge_len.mlpd": {"extents_repaired": 1},
    "broken/mid_buf.mlpd": {"truncated": 1},
}


@pytest.mark.parametrize("name", BROKEN)
def test_damage_costs_events_of_one_buffer_only(name: str) -> None:
    """What stands before the damage is kept, also in the buffer itself; of what follows, every buffer that is there."""
    damage, n_bytes = first_damage(name), len(content(name))
    mine, original = (dict(events_by_buffer(each)) for each in (name, UNDAMAGED))
    damaged = max(offset for offset in original if offset <= damage)
    kept = mine.pop(damaged, [])
    whole = original.pop(damaged)
    assert mine == {offset: lines for offset, lines in original.items() if offset < n_bytes}
    assert kept == whole[: len(kept)]
    before = [line for line in whole if int(line.split(" ", 1)[0]) < damage]
    assert len(kept) >= len(before) - 1
    report = {issue.kind: issue.count for issue in trace_of(name).report}
    assert {kind: report[kind] for kind in DAMAGES[name]} == DAMAGES[name]
