"""Recordings of the Mono log profiler against mprof-report, Mono's own reader: equal where it is right. Where it
is not, a test shows both numbers and says why ours is right."""

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from builders import mono as build
from builders.mono import Log
from mono_recordings import (
    Amount,
    Function,
    alive_of,
    allocated_of,
    content,
    expected_of,
    functions_of,
    is_managed,
    markers_of,
    names,
    path_of,
    report_of,
    spent_by,
    summary_of,
    threads_of,
    trace_of,
    values_of,
)
from readers import mprof
from readers.mprof import Allocated, Called
from support import frame_names, lawful

from traceferry.apps.cli import main
from traceferry.files.source import Source
from traceferry.model import LEAVE, Trace, TraceBuilder
from traceferry.reading import ImportContext
from traceferry.registry import importer_named

PROGRAM = shutil.which("mprof-report")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="mprof-report is not installed (Debian: mono-utils)")

EVERYTHING = "mid/everything.mlpd"
CALLS = "tiny/mini_calls.mlpd"
MINI = "tiny/mini_all.mlpd"
HOT = "large/hotcalls.mlpd"
UNRESOLVED = "unresolved class"
S, MS, US = 1_000_000_000, 1_000_000, 1_000


def without(parameters: list[Any], pattern: str) -> list[Any]:
    """The recordings whose names do not match."""
    return [name for name in parameters if not (isinstance(name, str) and re.search(pattern, name))]


RECORDINGS = without(names(".mlpd"), "^broken/")
SMALL = [name for name in RECORDINGS if isinstance(name, str)] or RECORDINGS
# Of those of 32-bit programs it reads pointers wrongly.
RIGHT = without(RECORDINGS, "_ptr4")


def run(data: bytes, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(PROGRAM), "--verbose", mprof.REPORTS, *options, "-"]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(errors="replace"), "")


def printed(data: bytes, *options: str) -> mprof.Report:
    return mprof.parse(run(data, *options).stdout)


@cache
def mprof_of(name: str, *options: str) -> mprof.Report:
    return printed(content(name), *options)


def read(log: Log) -> Trace:
    trace = TraceBuilder()
    source = Source("app.mlpd", memoryview(log.bytes()))
    importer_named("mono").module.read([source]).add_to(trace, ImportContext())
    trace.sort()
    return lawful(trace)


# ---------------------------------------------------------------- calls


def called_of(summary: dict[str, Any]) -> dict[str, Function]:
    return {name: function for name, function in functions_of(summary).items() if function.calls}


def assert_same_methods(name: str, theirs: dict[str, Called], mine: dict[str, Function]) -> None:
    """Enters, and own time in whole milliseconds: each of several methods with the same name is rounded down."""
    n_methods = values_of(name, "JIT compilation", "method")
    assert {title: method.calls for title, method in theirs.items()} == {title: f.calls for title, f in mine.items()}
    for title, method in theirs.items():
        lost_ms = mine[title].self_ns / MS - method.self_ms
        assert 0 <= lost_ms <= n_methods[title], title


@pytest.mark.parametrize("name", RECORDINGS)
def test_methods(name: str) -> None:
    theirs, mine = mprof_of(name), called_of(summary_of(name))
    assert theirs.total_calls == sum(function.calls for function in mine.values())
    assert_same_methods(name, theirs.methods, mine)


@pytest.mark.parametrize("name", SMALL)
def test_total_times(name: str) -> None:
    """Equal for methods that are never open twice."""
    mine, recursive = called_of(summary_of(name)), recursive_methods(name)
    for method, theirs in mprof_of(name).methods.items():
        if method not in recursive:
            assert theirs.total_ms == pytest.approx(mine[method].total_ns / MS, abs=2), method


@cache
def recursive_methods(name: str) -> set[str]:
    """Those that are open twice at some time."""
    trace, found = trace_of(name), set()
    of_frame = frame_names(trace)
    for _, thread in trace.threads:
        n_open: Counter[str] = Counter()
        for piece in thread.load(trace).calls.pieces():
            for frame, flags in zip(piece["frame"].tolist(), piece["flags"].tolist(), strict=True):
                method = of_frame[frame]
                n_open[method] += -1 if flags & LEAVE else 1
                if n_open[method] > 1:
                    found.add(method)
    return found


@pytest.mark.parametrize(
    ("name", "method"),
    [
        (CALLS, "Mini:Fib (int)"),
        (EVERYTHING, "System.Linq.Expressions.Compiler.VariableBinder:Visit (System.Linq.Expressions.Expression)"),
        pytest.param(HOT, "HotCalls:Walk (int,int)", marks=pytest.mark.large),
    ],
)
def test_it_counts_every_level_of_a_recursion(name: str, method: str) -> None:
    """Section 6, 8. While a method runs that calls itself, time passes once: of `hotcalls` it reports 310 seconds,
    where two threads ran for 28 seconds each. The outermost activation is what a caller waits for."""
    theirs, mine = mprof_of(name).methods[method], called_of(summary_of(name))[method]
    calling = [thread for thread, data in threads_of(name) if len(data.calls)]
    ran_ns = sum(thread.end_ts - thread.start_ts for thread in calling)
    assert theirs.calls == mine.calls
    assert theirs.total_ms > mine.total_ns / MS + 2
    assert mine.self_ns <= mine.total_ns <= ran_ns


# ---------------------------------------------------------------- allocations and heap shots


def without_names(found: Mapping[str, Allocated | Amount]) -> Amount:
    return Amount(sum(one[0] for one in found.values()), sum(one[1] for one in found.values()))


# Of recordings in which a vtable's address is used again: see below.
MISNAMED = "System.Runtime.Serialization.Formatters.Binary.ObjectMap"


def assert_same_classes(theirs: dict[str, Allocated], mine: dict[str, Amount]) -> None:
    """What it could not resolve has a class here: so there are as many bytes and objects in all, and none of a class
    are fewer."""
    known = {name: amount for name, amount in theirs.items() if not name.startswith(UNRESOLVED) and name != MISNAMED}
    assert without_names(theirs) == without_names(mine)
    assert known.keys() <= mine.keys()
    if known.keys() == theirs.keys() == mine.keys():
        assert known == mine
    for name, amount in known.items():
        assert amount.bytes <= mine[name].bytes, name
        assert amount.objects <= mine[name].objects, name


@pytest.mark.parametrize("name", SMALL)
def test_allocations(name: str) -> None:
    theirs, mine = mprof_of(name), allocated_of(summary_of(name))
    assert (theirs.total_allocated or (0, 0)) == without_names(mine)
    assert_same_classes(theirs.allocations, mine)


@pytest.mark.parametrize("name", SMALL)
def test_heap_shots(name: str) -> None:
    mine = summary_of(name)["processes"][0]["heap_snapshots"]
    theirs = mprof_of(name).heap_shots
    assert [(shot.bytes, shot.objects) for shot in theirs] == [(shot["bytes"], shot["objects"]) for shot in mine]
    for shot, found in zip(theirs, mine, strict=True):
        assert_same_classes(shot.classes, alive_of(found))


ROOTS = {
    # recording: roots of each shot as it counts them, and as they are
    EVERYTHING: ([3848, 2312, 6821, 2290, 2260], [3848, 2312, 2315, 2290, 2260]),
    "mid/heapshot_2gc.mlpd": ([522, 1050, 1052, 1052, 1115], [522, 525, 526, 526, 589]),
}


@pytest.mark.parametrize("name", without(SMALL, "|".join(ROOTS)))
def test_roots_of_heap_shots(name: str) -> None:
    """It counts them if it is to show traces."""
    shots = summary_of(name)["processes"][0]["heap_snapshots"]
    assert [shot.roots for shot in mprof_of(name, "--traces").heap_shots] == [shot["roots"] for shot in shots]


@pytest.mark.parametrize("name", ROOTS)
def test_it_counts_roots_of_collections_before_a_shot(name: str) -> None:
    """A collection without a heap shot lists its roots, too; it takes them for the next shot's. What holds objects in a
    shot stands between the shot's start and end."""
    shots = summary_of(name)["processes"][0]["heap_snapshots"]
    theirs = [shot.roots for shot in mprof_of(name, "--traces").heap_shots]
    assert (theirs, [shot["roots"] for shot in shots]) == ROOTS[name]


def test_it_takes_objects_for_those_of_a_class_that_was_unloaded() -> None:
    """Section 5. A new domain's vtable lies where another one lay, and its record comes after the first objects: it
    takes four of 24 bytes for maps, which have 96. Here the time decides which vtable lay there."""
    theirs = mprof_of(EVERYTHING).allocations[MISNAMED]
    mine = allocated_of(summary_of(EVERYTHING))[MISNAMED]
    assert theirs == Allocated(30 * 96 + 4 * 24, 34)
    assert mine == Amount(30 * 96, 30)


UNNAMED = {
    # recording: (bytes, objects) of allocations that it gives no class
    EVERYTHING: Allocated(196_464, 3_584),
    MINI: Allocated(99_432, 2_109),
    CALLS: Allocated(151_040, 2_301),
    "versions/v17_all_ptr4.mlpd": Allocated(247_776, 3_179),
}


@pytest.mark.parametrize("name", UNNAMED)
def test_it_finds_no_class_for_objects_in_front_of_their_vtable(name: str) -> None:
    """Section 6, 2. The record that defines a vtable can be in a later buffer, of another thread; it reads the file
    once. Here all definitions are known before the first use is resolved."""
    assert mprof_of(name).allocations[f"{UNRESOLVED} (nil)"] == UNNAMED[name]
    assert not [title for title in allocated_of(summary_of(name)) if title.startswith("[")]


def test_it_does_not_cut_pointers_to_32_bits() -> None:
    """Section 6, 5. Differences of pointers of four bytes wrap around at 32 bits; it reads 0xffffffff... and finds
    neither class nor thread. The log is one of the 64-bit program, cut to 32 bits: the classes must be the same."""
    name = "versions/v17_all_ptr4.mlpd"
    theirs = mprof_of(name)
    assert sum(title.startswith(UNRESOLVED) for title in theirs.allocations) == 98
    assert f"{UNRESOLVED} 0xffffffffd8008ad8" in theirs.allocations
    assert sum(not title for _, title in theirs.threads) > sum(not title for _, title in mprof_of(MINI).threads)
    assert allocated_of(summary_of(name)) == allocated_of(summary_of(MINI))


ROOT_WORDS = {
    "stack": "stack", "finalizer": "finalizer queue", "handle": "handle", "other": "other", "misc": "miscellaneous",
}  # fmt: skip


def roots_printed(name: str) -> Counter[str]:
    text = run(content(name), "--debug").stdout
    return Counter(re.findall(r"^object \S+ is a (\w+) root$", text, re.M))


def roots_of(name: str) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for shot in summary_of(name)["processes"][0]["heap_snapshots"]:
        kinds.update({row["kind"]: row["count"] for row in shot["root_kinds"]})
    return kinds


def test_kinds_of_roots() -> None:
    """In data version 14."""
    name = "versions/v14_all.mlpd"
    assert roots_of(name) == {ROOT_WORDS[word]: n for word, n in roots_printed(name).items()}


@pytest.mark.parametrize("version", ["v04", "v06", "v08", "v11", "v13"])
def test_it_numbers_kinds_of_roots_as_version_14_does(version: str) -> None:
    """Section 6, 4. Until data version 13 the kinds are numbered from 0 on, in 14 each has a bit: it reads the
    finalizer queue's 1 as a stack, the handles' 2 as the finalizer queue, and knows neither 0 nor 3. It is the same
    heap."""
    name = f"versions/{version}_all.mlpd"
    mine, theirs = roots_of(name), roots_printed(name)
    assert mine == roots_of("versions/v14_all.mlpd")
    assert theirs == {
        "stack": mine["finalizer queue"], "finalizer": mine["handle"], "handle": mine["miscellaneous"],
        "unknown": mine["stack"] + mine["other"],
    }  # fmt: skip


# ---------------------------------------------------------------- the collector


@pytest.mark.parametrize("name", RECORDINGS)
def test_garbage_collections(name: str) -> None:
    theirs = mprof_of(name)
    mine = spent_by(name, "GC collection", "generation")
    assert {generation: tuple(found) for generation, found in theirs.collections.items()} == {
        generation: (spent.times, spent.max_ns // US, spent.total_ns // US) for generation, spent in mine.items()
    }
    counters = {counter["name"]: counter for counter in summary_of(name)["processes"][0]["counters"]}
    heap = counters.get("managed heap", {"values": 0, "max": 0})
    assert (theirs.gc["GC resizes"], theirs.gc["Max heap size"]) == (heap["values"], heap["max"])


HANDLES = {"weak": "weak", "weaktrack": "weak, tracks resurrection", "normal": "normal", "pinned": "pinned"}


@pytest.mark.parametrize("name", RIGHT)
def test_handles(name: str) -> None:
    """Of the kinds that it shows."""
    mine: Counter[tuple[str, str]] = Counter()
    for _, table in markers_of(name, "GC handle"):
        mine.update(zip(table["kind"].tolist(), table["event"].tolist(), strict=True))
    for kind, handles in mprof_of(name).handles.items():
        created, destroyed = mine[HANDLES[kind], "created"], mine[HANDLES[kind], "destroyed"]
        assert (handles.created, handles.destroyed) == (created, destroyed), kind


@pytest.mark.parametrize("name", [EVERYTHING, MINI, "tiny/heapshot.mlpd"])
def test_its_collections_are_not_the_pauses(name: str) -> None:
    """Section 6, 9. Threads stand still from before the world is stopped until it runs again: stopping it, and a heap
    shot, take longer than the collection."""
    theirs = sum(found.total_us for found in mprof_of(name).collections.values())
    pauses = spent_by(name, "GC pause", "generation")
    collections = spent_by(name, "GC collection", "generation")
    assert sum(spent.total_ns for spent in collections.values()) // US - theirs in (0, 1)
    assert sum(spent.total_ns for spent in pauses.values()) // US > 50 * theirs


# ---------------------------------------------------------------- exceptions, locks, code, threads


@pytest.mark.parametrize("name", RECORDINGS)
def test_exceptions(name: str) -> None:
    theirs, clauses = mprof_of(name).exceptions, values_of(name, "Exception clause", "kind")
    assert theirs["Throws"] == values_of(name, "Exception", "type_name").total()
    assert {kind: theirs.get(f"Executed {kind} clauses", 0) for kind in ("catch", "filter", "finally", "fault")} == {
        kind: clauses[kind] for kind in ("catch", "filter", "finally", "fault")
    }


def locks_of(name: str) -> dict[int, tuple[int, float, float]]:
    return {
        lock: (spent.times, round(spent.total_ns / S, 6), round(spent.max_ns / S, 6))
        for lock, spent in spent_by(name, "Lock contention", "object").items()
    }


@pytest.mark.parametrize("name", without(RIGHT, "v13_all"))
def test_locks(name: str) -> None:
    """Contentions, and for each object how long threads waited for it."""
    theirs, outcomes = mprof_of(name).monitors, values_of(name, "Lock contention", "outcome")
    assert theirs.get("Lock contentions", 0) == outcomes.total()
    assert theirs.get("Lock acquired", 0) == outcomes["acquired"]
    assert theirs.get("Lock failures", 0) == outcomes["failed"]
    waited = {lock: tuple(found) for lock, found in mprof_of(name).locks.items() if found.contentions}
    assert waited == {lock: pytest.approx(found, abs=2e-6) for lock, found in locks_of(name).items()}


def test_it_reads_no_locks_of_data_version_13() -> None:
    """Section 6, 3. It never reads the number of the event there. The same log in versions 11 and 14 has five."""
    mine = {version: locks_of(f"versions/{version}_all.mlpd") for version in ("v11", "v13", "v14")}
    assert mprof_of("versions/v13_all.mlpd").monitors["Lock contentions"] == 0
    assert [found[0] for found in mine["v13"].values()] == [5]
    assert mine["v11"] == mine["v13"] == mine["v14"]


GARBAGE = {
    # recording: (methods, bytes of code) as it counts them, and as they are
    "mid/exceptions.mlpd": ((3_055, 172_846_239), (2_931, 1_761_201)),
    "mid/monitor.mlpd": ((3_063, -1_762_782_573), (2_979, 2_063_132)),
    "mid/threads_sample.mlpd": ((2_972, -1_995_173_550), (2_889, 1_349_319)),
    "tiny/only_counter.mlpd": ((3_116, -1_605_063_983), (3_084, 1_319_482)),
}


def code_of(name: str) -> tuple[int, int]:
    summary = summary_of(name)
    return summary["code_objects"], sum(tier["bytes"] for tier in summary["tiers"])


@pytest.mark.parametrize("name", without(RIGHT, "|".join(GARBAGE)))
def test_code(name: str) -> None:
    """A method of the old versions has an address and no bytes: one that it counts and we do not."""
    theirs, (methods, size) = mprof_of(name).jit, code_of(name)
    helpers = [table["size"] for _, table in markers_of(name, "JIT helper")]
    assert theirs["Generated code size"] == size
    assert theirs["Compiled methods"] - methods in (0, 1)
    assert theirs["JIT helpers"] == sum(map(len, helpers))
    assert theirs["JIT helpers code size"] == sum(int(sizes.sum()) for sizes in helpers)


@pytest.mark.parametrize("name", GARBAGE)
def test_it_counts_garbage_as_code(name: str) -> None:
    """Section 9. The records of methods that a backtrace has seen first hold what lay in memory for address and
    size; it adds that up, in 32 bits. No method has 16 MiB, and no code lies in the first page."""
    jit = mprof_of(name).jit
    assert ((jit["Compiled methods"], jit["Generated code size"]), code_of(name)) == GARBAGE[name]


@pytest.mark.parametrize("name", RIGHT)
def test_threads(name: str) -> None:
    """It has one for each id, by its last name; an id that is used again is another thread here."""
    theirs = dict(mprof_of(name).threads)
    mine: dict[int, list[tuple[int, str]]] = {}
    for thread, _ in threads_of(name):
        if thread.tid:
            mine.setdefault(thread.tid & (1 << 64) - 1, []).append((thread.start_ts, thread.name))
    for tid, title in theirs.items():
        if title:
            assert title in {known for _, known in mine[tid]}
    assert {tid for tid, title in theirs.items() if title} <= mine.keys() <= theirs.keys()


@pytest.mark.parametrize("name", RECORDINGS)
def test_images_and_assemblies(name: str) -> None:
    loaded = values_loaded(name)
    theirs = mprof_of(name).metadata
    assert theirs.get("Loaded images", 0) == loaded["image"]
    assert theirs.get("Loaded assemblies", 0) == loaded["assembly"]


def values_loaded(name: str) -> Counter[str]:
    return Counter(
        what
        for _, table in markers_of(name, "Metadata")
        for what, event in zip(table["what"].tolist(), table["event"].tolist(), strict=True)
        if event == "loaded"
    )


# ---------------------------------------------------------------- counters, samples


SECTIONS = {"interp": "interpreter"}
HEAP = {"managed heap"}


@pytest.mark.parametrize("name", SMALL)
def test_counters(name: str) -> None:
    """The last values. It prints times of one type in milliseconds, and those of another as they stand in the log, in
    units of 100 ns."""
    mine = {counter["name"]: counter for counter in summary_of(name)["processes"][0]["counters"]}
    theirs: dict[str, str] = {}
    for counter in mprof_of(name).counters:
        own = f"{counter.section}: {counter.name}"
        theirs[own if own in mine else f"{section_of(counter.section)}: {counter.name}"] = counter.value
    assert theirs.keys() == mine.keys() - HEAP
    for title, text in theirs.items():
        in_ns = MS if text.endswith("ms") else 100
        scale = in_ns if mine[title]["unit"] == "ns" else 1
        assert mine[title]["last"] == pytest.approx(float(text.removesuffix("ms")) * scale, abs=US), title


def section_of(title: str) -> str:
    word = title.removeprefix("Mono ").lower()
    return SECTIONS.get(word, word)


def test_it_adds_up_what_is_no_difference() -> None:
    """Section 6, 6. A performance counter's values are whole values each time, unlike all other counters'."""
    items = build.Counter(1, "Items", build.LONG, section=build.PERF_SECTION, section_name="Pool")
    log = Log(17).buffer(tid=7).counters_desc([items])
    for value in (10, 10, 12):
        log.counters({1: value})
    assert [counter.value for counter in printed(log.bytes()).counters][:3] == ["10", "20", "32"]
    (counter,) = read(log).processes[0].counters
    assert counter.values["value"].tolist() == [10, 10, 12]


@pytest.mark.parametrize("name", SMALL)
def test_samples(name: str) -> None:
    theirs, mine = mprof_of(name).samples, sum(len(data.samples) for _, data in threads_of(name))
    assert theirs.get("Unmanaged", 0) + theirs.get("Managed", 0) == mine


def test_it_takes_a_sample_in_native_code_for_one_without_methods() -> None:
    """Sections 6, 12 and 9. It looks at the leaf's address only. Every sample of `everything` was taken in native code,
    and 103 of them tell which methods had called it."""
    trace = trace_of(EVERYTHING)
    stacks = [data.samples["stack"] for _, data in threads_of(EVERYTHING)]
    assert mprof_of(EVERYTHING).samples["Managed"] == 0
    assert sum(int(is_managed(trace, stack).sum()) for stack in stacks) == 103


# ---------------------------------------------------------------- small logs that show its other faults


def test_it_skips_a_field_that_is_not_there() -> None:
    """Section 6, 1. From data version 16 on an image has a module version id when it is loaded, not when it is
    unloaded: it skips what follows up to the next zero byte. Here that costs three of four collections."""
    log = Log(17).buffer(tid=7).image(0x1000, "plugin.dll", "mvid").image_unload(0x1000, "plugin.dll")
    for _ in range(4):
        log.gc_event(build.GC_START, 1).gc_event(build.GC_END, 1)
    done = run(log.bytes())
    assert done.returncode == 0
    theirs = mprof.parse(done.stdout).collections
    trace = read(log)
    (collections,) = (
        table
        for _, thread in trace.threads
        for kind, table in thread.load(trace).markers.items() if kind.name == "GC collection"
    )  # fmt: skip
    assert len(collections) == 4
    assert theirs.get(1, mprof.Collections(0, 0, 0)).number < 4


def test_it_shifts_the_highest_byte_by_54_bits() -> None:
    """Section 6, 7. Fields of eight bytes in headers, as a thread's id."""
    tid = 0x0100_0000_0000_7F10
    log = Log(17).buffer(tid=tid).thread(tid).thread_name(tid, "worker")
    assert printed(log.bytes()).threads == [(1 << 54 | 0x7F10, "worker")]
    assert [thread.tid for _, thread in read(log).threads] == [tid]


def test_it_calls_domains_threads() -> None:
    """Section 6, 10. In its list of events."""
    log = Log(17).buffer(tid=7).domain(0).domain(0x5)
    assert "loaded thread 0x5 at" in run(log.bytes(), "--debug").stdout
    trace = read(log)
    ((_, thread),) = trace.threads
    (table,) = thread.load(trace).markers.values()
    assert [(what, event) for what, event in zip(table["what"], table["event"], strict=True)] == [
        ("domain", "loaded")
    ] * 2


SILENT = {
    # recording: its exit status; allocations in its report, and in ours
    "broken/bad_event.mlpd": (1, 0, 7944),
    "broken/huge_len.mlpd": (0, 7877, 7944),
    "broken/mid_buf.mlpd": (0, 7877, 7877),
}


@pytest.mark.parametrize("name", SILENT)
def test_it_stops_at_damage_and_says_nothing(name: str) -> None:
    """Section 6, 11. An unknown event costs the whole report; what is cut off, or comes after a wrong length, is
    missing without a word. Here the damage is reported, and what comes after it is read."""
    done = run(content(name))
    total = mprof.parse(done.stdout).total_allocated
    mine = summary_of(name)["allocations"]["count"]
    assert (done.returncode, total.objects if total else 0, mine) == SILENT[name]
    assert report_of(name).keys() & {"bad_record", "extents_repaired", "truncated"}


# ---------------------------------------------------------------- questions about a part


def information(capsys: pytest.CaptureFixture[str], name: str, *options: str) -> dict[str, Any]:
    assert main(["info", "--json", "--top", "100000", *options, str(path_of(name))]) == 0
    return dict(json.loads(capsys.readouterr().out))


def zero_of(name: str) -> int:
    """Its seconds count from the time base of the first buffer; `--range` counts from the first event."""
    header = expected_of(name)["header"]["header_bytes"]
    time_base = int.from_bytes(content(name)[header + 8 : header + 16], "little")
    return time_base - trace_of(name).start_ts


@pytest.mark.parametrize(("start", "end"), [(0.1, 0.3), (0.3, 0.5), (0.05, 0.37), (0, 1)])
def test_a_range_of_time(start: float, end: float, capsys: pytest.CaptureFixture[str]) -> None:
    """Enters in the range, allocations by class, throws and contentions. We also show calls that reach into it."""
    zero = zero_of(EVERYTHING)
    theirs = mprof_of(EVERYTHING, f"--time={start}-{end}")
    first, last = zero + round(start * S), zero + round(end * S)
    mine = information(capsys, EVERYTHING, "--range", f"{first}ns,{last}ns")
    assert theirs.total_allocated == without_names(allocated_of(mine))
    assert_same_classes(theirs.allocations, allocated_of(mine))
    counts = {marker["type"]: sum(group["count"] for group in marker["top"]) for marker in mine["markers"]}
    assert theirs.exceptions["Throws"] == counts.get("Exception", 0)
    assert theirs.monitors.get("Lock contentions", 0) == counts.get("Lock contention", 0)
    trace = trace_of(EVERYTHING)
    entered = sum(
        int(np.count_nonzero(((calls["flags"] & LEAVE) == 0) & (calls["ts"] >= trace.start_ts + first)
                             & (calls["ts"] <= trace.start_ts + last)))
        for calls in (data.calls for _, data in threads_of(EVERYTHING))
    )  # fmt: skip
    assert theirs.total_calls == entered
    assert sum(function.calls for function in called_of(mine).values()) >= entered


MAIN_THREAD = "0x7f3ab4287bc0"


def test_one_thread(capsys: pytest.CaptureFixture[str]) -> None:
    theirs = mprof_of(EVERYTHING, f"--thread={MAIN_THREAD}")
    mine = information(capsys, EVERYTHING, "--thread", MAIN_THREAD)
    assert [thread["tid"] for process in mine["processes"] for thread in process["threads"]] == [int(MAIN_THREAD, 16)]
    assert_same_methods(EVERYTHING, theirs.methods, called_of(mine))
    counts = {marker["type"]: sum(group["count"] for group in marker["top"]) for marker in mine["markers"]}
    assert theirs.exceptions["Throws"] == counts["Exception"]
    assert theirs.monitors["Lock contentions"] == counts["Lock contention"]


def test_it_shows_one_thread_the_allocations_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    """And all collections. What the thread's own buffers hold is less."""
    theirs = mprof_of(EVERYTHING, f"--thread={MAIN_THREAD}")
    mine = information(capsys, EVERYTHING, "--thread", MAIN_THREAD)["allocations"]
    assert theirs.total_allocated == mprof_of(EVERYTHING).total_allocated
    assert theirs.collections == mprof_of(EVERYTHING).collections
    (wanted,) = (thread for thread in expected_of(EVERYTHING)["threads"] if thread["tid"] == MAIN_THREAD)
    assert (mine["count"], mine["bytes"]) == (wanted["allocations"], wanted["allocated_bytes"])


def test_it_counts_what_lies_outside_the_range() -> None:
    """Collections are not cut to it, and handles that end in it were never created: there are 2**64 - 11 of them."""
    theirs = mprof_of(EVERYTHING, "--time=0.3-0.5")
    assert sum(found.number for found in theirs.collections.values()) == 9
    assert theirs.handles["weaktrack"].most == (1 << 64) - 11
