"""The real recordings with their jitdumps, against `perf script` after `perf inject --jit` (script.jit.txt).

Every frame of every sample is compared: of jitted code the name in the dump and the offset, of native code the library;
its symbols depend on what is installed. Our offsets are those of the call, perf's those of the return. What differs is
an improvement, and counted here by its name.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jit_recordings
import numpy as np
import pytest
from conftest import in_turn
from jit_recordings import path_of
from readers import perf_script
from readers.perf_script import UNKNOWN
from support import load_checked, report_of

import traceferry
from traceferry.files.output import Output
from traceferry.model import RUNNING, Trace
from traceferry.registry import EXPORTERS, exporter_named

# Samples, as `perf report --stats` counts them.
SAMPLES = {
    "bun-src": 1856, "erl25": 1221, "java17": 2371, "lli19mc": 1126, "node24": 15946, "node24-switch": 2739,
    "php82": 1156, "spidermonkey": 1591, "wasmtime": 1183, "bigjit": 5136, "bigfp": 1_024_357,
}  # fmt: skip
SCRIPTED = ["node24", "java17", "php82", "wasmtime"]
BIG = ("bigjit", "bigfp")
NAMES = [pytest.param(n, marks=pytest.mark.large) if n in BIG else n for n in SAMPLES]
scripted = pytest.mark.parametrize("name", SCRIPTED)


@cache
def _loaded(name: str) -> Trace:
    return load_checked(path_of(f"{name}/perf.data"))


def loaded(name: str) -> Trace:
    """Its dumps lie beside it. The large ones are not kept."""
    return load_checked(path_of(f"{name}/perf.data")) if name in BIG else _loaded(name)


# ---------------------------------------------------------------- our side


class Ours(NamedTuple):
    """A frame. jitted: code of a dump; raw: the name in the dump; offset: from the symbol's first byte; name: shown."""

    jitted: bool
    raw: str
    offset: int
    name: str
    lib: str
    category: str


@cache
def frames_of(name: str) -> list[Ours | None]:
    """Of the trace's frames; None for what is inlined."""
    trace = loaded(name)
    frames, symbols = trace.frames, trace.symbols

    def text(table: Any, row: int, column: str = "name") -> str:
        return trace.strings[int(table[column][row])] if row >= 0 else ""

    def ours(row: int) -> Ours | None:
        if frames["inline_depth"][row]:
            return None
        symbol, code = int(frames["symbol"][row]), int(frames["code"][row])
        offset = int(frames["address"][row]) - int(symbols["address"][symbol]) if symbol >= 0 else -1
        return Ours(
            code >= 0, text(symbols, symbol), offset, trace.func_name(int(frames["func"][row])),
            text(trace.libs, int(frames["lib"][row])), text(trace.categories, int(frames["category"][row])),
        )  # fmt: skip

    return [ours(row) for row in range(len(frames))]


def samples_of(trace: Trace) -> Iterator[tuple[int, int, int, int]]:
    """(ts, pid, tid, stack) of every sample, thread by thread."""
    for process, thread in trace.threads:
        if not thread.sample_unit:
            table = thread.load(trace).samples
            for ts, stack in zip(table["ts"].tolist(), table["stack"].tolist(), strict=True):
                yield ts, process.pid, thread.tid, stack


def path_of_stack(name: str, stack: int) -> list[Ours]:
    """Leaf first."""
    prefix, frame = columns(name)
    found = []
    while stack >= 0:
        ours = frames_of(name)[frame[stack]]
        found += [ours] if ours is not None else []
        stack = prefix[stack]
    return found


@cache
def columns(name: str) -> tuple[list[int], list[int]]:
    trace = loaded(name)
    return trace.stacks["prefix"].tolist(), trace.stacks["frame"].tolist()


# ---------------------------------------------------------------- perf's side


@cache
def scripts(name: str) -> list[perf_script.Sample]:
    lines = jit_recordings.content(f"{name}/script.jit.txt").decode("utf-8", "surrogateescape").splitlines()
    return list(perf_script.samples(lines))


def expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(jit_recordings.content(f"{name}/expected.json"))
    return found


@cache
def java_names(name: str) -> dict[str, list[str]]:
    """What perf demangled: its text → names in the dump."""
    found: dict[str, list[str]] = expected(name)["jitdump_names"]
    return found


def is_kernel(frame: perf_script.Frame) -> bool:
    return "[kernel" in frame.dso or (bool(frame.ip) and int(frame.ip, 16) >> 63 == 1)


class Pair(NamedTuple):
    """exact: the address itself, not a return address."""

    ours: Ours
    perf: perf_script.Frame
    exact: bool


def pairs(name: str) -> Iterator[tuple[perf_script.Sample, list[Ours], list[Pair] | None]]:
    """Every sample's frames; None where perf prints another number of them."""
    by_thread: dict[int, list[tuple[int, int]]] = {}
    for ts, _, tid, stack in samples_of(loaded(name)):
        by_thread.setdefault(tid, []).append((ts, stack))
    at: Counter[int] = Counter()
    for sample in scripts(name):
        ts, stack = by_thread[sample.tid][at[sample.tid]]
        at[sample.tid] += 1
        assert ts // 1000 == sample.us
        ours = path_of_stack(name, stack)
        perfs = [frame for frame in sample.frames if int(frame.ip, 16)]
        exact = [n == 0 or (is_kernel(perfs[n - 1]) and not is_kernel(f)) for n, f in enumerate(perfs)]
        same_number = len(ours) == len(perfs)
        yield sample, ours, [Pair(*pair) for pair in zip(ours, perfs, exact, strict=True)] if same_number else None
    assert {tid: len(found) for tid, found in by_thread.items() if found} == dict(at)


def verdict(pair: Pair, java: Iterable[str]) -> str:
    ours, perf, exact = pair
    dso = perf.dso.rpartition("/")[2]
    if "jitted-" in perf.dso and ours.jitted:
        name = "same" if ours.raw == perf.symbol else "java name" if perf.symbol in java else "another name"
        return name if ours.offset == (perf.offset or 0) - (not exact) else f"{name}, another offset"
    if ours.jitted and perf.symbol == UNKNOWN and UNKNOWN in perf.dso:
        return "announced late"
    if ours.jitted or "jitted-" in perf.dso:
        return "jitted for one only"
    if UNKNOWN in perf.dso:
        return {UNKNOWN: "unknown", "[code in //anon]": "anonymous"}.get(ours.name, "unknown to perf only")
    if ours.lib != dso:
        return "another library"
    return "library" if perf.symbol != UNKNOWN else "library, where perf has no symbol"


VERDICTS = {
    "node24": {"library": 185_059, "same": 136_263, "unknown": 35, "anonymous": 1},
    "java17": {"library": 23_068, "same": 6118, "java name": 4638, "unknown": 19, "announced late": 8,
               "library, where perf has no symbol": 6},
    "php82": {"library": 729, "same": 312, "unknown": 765, "library, where perf has no symbol": 280},
    "wasmtime": {"library": 1410, "same": 4831, "unknown": 1538, "library, where perf has no symbol": 8},
}  # fmt: skip
# Samples of which perf prints no frames at all; ours have their leaf.
WITHOUT_FRAMES = {"php82": 3}


@scripted
def test_every_frame_of_every_sample(name: str) -> None:
    path_of(f"{name}/script.jit.txt")
    java = java_names(name) if name == "java17" else {}
    found: Counter[str] = Counter()
    without = 0
    for sample, ours, frames in pairs(name):
        if frames is None:
            assert sample.frames == []
            assert ours
            without += 1
            continue
        found.update(verdict(pair, java) for pair in frames)
    assert (dict(found), without) == (VERDICTS[name], WITHOUT_FRAMES.get(name, 0))


def test_java_names_are_written_as_perf_does() -> None:
    """Hot.collatz(long) for LHot;collatz(J)J; the symbol keeps the dump's. perf puts the brackets of an array to
    the type behind it, and no dot before a constructor."""
    java = java_names("java17")
    seen, misplaced = set(), set()
    for _, _, frames in pairs("java17"):
        for ours, perf, _ in frames or ():
            if perf.symbol in java and ours.jitted:
                assert ours.name.replace("[]", "").replace(".<", "<") == perf.symbol.replace("[]", "")
                assert ours.raw in java[perf.symbol]
                seen.add(perf.symbol)
                misplaced |= {ours.raw} if ours.name != perf.symbol else set()
    assert seen == set(java)
    assert misplaced
    assert all("[" in raw or ";<" in raw for raw in misplaced)


def test_java_code_that_runs_before_it_is_announced() -> None:
    """perf calls it unknown; the report counts it."""
    assert report_of(loaded("java17"))["code_announced_late"] == 8


def test_samples_of_which_perf_prints_nothing() -> None:
    """Their callchain holds no address, or none that perf believes; the sampled address itself is in PHP."""
    leaves = [ours[0].lib for sample, ours, frames in pairs("php82") if frames is None]
    assert leaves == ["php8.2"] * 3


@scripted
def test_the_report_has_nothing_else(name: str) -> None:
    wanted = {
        "node24": {
            "code_unknown": 35,
            "code_unrecorded": 1,
            "line_bias": None,
            "file_name_repaired": None,
            "bytecode_lines": None,
            "thread_renamed": 1,
        },
        "java17": {"code_unknown": 19, "code_announced_late": 8},
        "php82": {"code_unknown": None},
        "wasmtime": {"code_unknown": 1538},
    }
    found = report_of(loaded(name))
    # A library of the same name is here, of another build than the one that was recorded, or not.
    found.pop("build_id_differs", None)
    found.pop("callers_missing", None)
    found.pop("files_read", None)
    found.pop("symbols_used", None)
    # The programs and their libraries are on the machine that recorded, and so is its kernel.
    # Elsewhere the files beside the recordings name them.
    elsewhere = ("symbols_by_offset", "files_unverified")
    for kind in ("names_missing", "names_partly_missing", "kernel_names_missing", "kernel_elsewhere", *elsewhere):
        found.pop(kind, None)
    assert found.keys() == wanted[name].keys()
    assert all(n is None or found[kind] == n for kind, n in wanted[name].items())


@scripted
def test_threads_and_their_samples(name: str) -> None:
    """expected.json: how many samples, and how many have jitted code at the leaf or anywhere."""
    given = expected(name)
    trace = loaded(name)
    found: dict[tuple[int, int], list[int]] = {}
    late = Counter(
        s.tid for s, _, frames in pairs(name) if any(verdict(p, ()) == "announced late" for p in frames or ())
    )
    for _, pid, tid, stack in samples_of(trace):
        path = path_of_stack(name, stack)
        row = found.setdefault((pid, tid), [0, 0, 0])
        row[0] += 1
        row[1] += path[0].jitted
        row[2] += any(frame.jitted for frame in path)
    for thread in given["threads"]:
        row = found.pop((thread["pid"], thread["tid"]))
        assert row[0] == thread["samples"]
        assert 0 <= row[1] - thread["jit_leaf"] <= late[thread["tid"]]
        assert 0 <= row[2] - thread["with_jit_frame"] <= late[thread["tid"]]
        (named,) = (t.name for p, t in trace.threads if (p.pid, t.tid) == (thread["pid"], thread["tid"]))
        assert named == list(thread["comms"])[-1]
    assert not found
    assert sum(thread["samples"] for thread in given["threads"]) == given["samples"]


@scripted
def test_the_fifty_stacks(name: str) -> None:
    """Of expected.json, which says of each frame whether it is of the JIT, the kernel or the user."""
    stacks = perf_script.expected_stacks(path_of(f"{name}/expected.json"))
    java = java_names(name)
    ordered = sorted(samples_of(loaded(name)), key=lambda sample: sample[0])
    categories = {"k": {"Kernel"}, "u": {"Native", "Runtime", "System library", "Other"}}
    assert len(stacks) == 50
    for stack in stacks:
        near = [row for row in ordered[max(0, stack.index - 8) : stack.index + 9] if row[0] // 1000 == stack.us]
        (row,) = (row for row in near if (row[1], row[2]) == (stack.pid, stack.tid))
        path = path_of_stack(name, row[3])
        if not stack.frames:
            continue
        known = [(f, k) for f, k in zip(stack.frames, stack.kinds, strict=True)]
        for n, (ours, (perf, kind)) in enumerate(zip(path, known, strict=False)):
            exact = n == 0 or (known[n - 1][1] == "k" and kind != "k")
            if kind == "j":
                assert verdict(Pair(ours, perf, exact), java) in ("same", "java name")
            else:
                assert ours.category in categories[kind] or ours.jitted
                assert ours.lib == perf.dso or UNKNOWN in perf.dso


# ---------------------------------------------------------------- every recording


class Nowhere:
    def __init__(self) -> None:
        self.n = 0

    def write(self, data: bytes | memoryview) -> None:
        self.n += len(data)


@pytest.mark.parametrize("name", NAMES)
def test_every_recording(name: str) -> None:
    """It obeys the laws and holds perf's number of samples."""
    trace = loaded(name)
    n_samples = sum(len(t.load(trace).samples) for _, t in trace.threads if not t.sample_unit)
    assert n_samples == SAMPLES[name]
    assert {issue.kind for issue in trace.report if issue.severity != "info"} <= {"names_missing"}


OUTPUTS = [exporter.name for exporter in EXPORTERS]


@pytest.mark.parametrize(("name", "output"), in_turn(NAMES, OUTPUTS))
def test_every_exporter_writes_every_recording(name: str, output: str) -> None:
    sink = Nowhere()
    out = Output(sink, gzip=False)
    exporter_named(output).writer()(loaded(name).opened(), out, lambda _: None)
    out.finish()
    assert sink.n > 0


JITTED_LEAVES = {  # samples with a leaf in a dump, at least
    "bun-src": 900, "erl25": 800, "lli19mc": 850, "node24-switch": 1500, "spidermonkey": 280, "bigjit": 100,
    "bigfp": 500_000,
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n in NAMES if not isinstance(n, str) or n in JITTED_LEAVES])
def test_samples_meet_the_dump(name: str) -> None:
    """Where no script tells what perf says."""
    trace = loaded(name)
    stacks = np.array([stack for *_, stack in samples_of(trace)])
    leaves = trace.frames["code"][trace.stacks["frame"][stacks[stacks >= 0]]]
    assert np.count_nonzero(leaves >= 0) >= JITTED_LEAVES[name]


@pytest.mark.parametrize("suffix", [".json", ".gecko.json", ".pftrace"])
def test_the_same_bytes_twice(suffix: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"{nth}{suffix}" for nth in range(2)]
    for path in paths:
        traceferry.convert(path_of("php82/perf.data"), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


# ---------------------------------------------------------------- context switches, on another clock

# The Unix time at which CLOCK_MONOTONIC was 0, as the CLOCK_DATA of other recordings of the same boot have it.
MONOTONIC_ZERO = 1_795_193_626_950_866_000
# And of CLOCK_MONOTONIC_RAW, as its own CLOCK_DATA has it.
RAW_ZERO = 1_795_193_627_198_942_802


def test_another_clock_is_aligned() -> None:
    """Within 50 ms of the truth; reported."""
    trace = loaded("node24-switch")
    assert trace.clock is not None
    assert trace.clock.kind == "monotonic"
    assert trace.clock.unix_zero_ns is not None
    assert abs(trace.clock.unix_zero_ns - MONOTONIC_ZERO) < 50_000_000
    first = min(ts for ts, *_ in samples_of(trace))
    assert abs(first - 913_819_537_171 - (RAW_ZERO - MONOTONIC_ZERO)) < 50_000_000
    (issue,) = (issue for issue in trace.report if issue.kind == "clock_aligned")
    assert "monotonic_raw" in issue.detail
    assert "clock_differs" not in report_of(trace)


@pytest.mark.parametrize("name", ["node24", "java17", "php82", "wasmtime", "bun-src", "erl25", "spidermonkey"])
def test_the_unix_time(name: str) -> None:
    """Of one boot: all within a millisecond."""
    trace = loaded(name)
    assert trace.clock is not None
    assert trace.clock.unix_zero_ns is not None
    assert abs(trace.clock.unix_zero_ns - MONOTONIC_ZERO) < 1_000_000


def test_context_switches() -> None:
    """2425, as `perf report --stats` counts them; no thread ran longer than time went by."""
    trace = loaded("node24-switch")
    n = 0
    for _, thread in trace.threads:
        if thread.sample_unit:
            continue
        data = thread.load(trace)
        n += len(data.scheduling)
        cpu, ts = data.samples["cpu_ns"][1:], data.samples["ts"]
        assert (cpu <= np.diff(ts)).all()
        assert (cpu >= -1).all()
        state = data.scheduling["state"]
        # In and out alternate but for what the kernel left out.
        assert np.count_nonzero((state[1:] == RUNNING) == (state[:-1] == RUNNING)) <= 2
    # Each thread has a row for what it did before its first switch.
    assert n == 2425 + 10


def test_cpu_time_adds_up() -> None:
    """The main thread's CPU time is close to what its samples say: each is 1/997 s of it."""
    trace = loaded("node24-switch")
    (data,) = (t.load(trace) for p, t in trace.threads if t.tid == p.pid)
    cpu_ns = int(data.samples["cpu_ns"][1:].sum())
    assert 0.9 < cpu_ns / (len(data.samples) * 1e9 / 997) < 1.1
