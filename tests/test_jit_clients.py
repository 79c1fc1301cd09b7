"""The real recordings of JIT compilers in the viewers' own programs: profiler-cli, the independent reader, and
trace_processor, each against the Trace that was written.

Of the dumps alone and of the perf.data with their dumps, every thread, sample and function is compared.
"""

import json
import re
import struct
import subprocess
import sys
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from builders.perf_data import PerfData
from clients.firefox import ProfilerCli, available
from conftest import one_in
from jit_recordings import content, dumps, path_of
from outputs import saved
from readers import perfetto
from support import load_checked
from test_gecko import rows
from test_jitdump_captures import loads_in
from test_perf_captures import SAMPLES
from test_perfetto import STATS
from test_perfetto_samples import CALLSITES

from traceferry.model import (
    PREEMPTED,
    RUNNABLE,
    RUNNING,
    UNKNOWN,
    WAITING,
    Process,
    Table,
    Thread,
    ThreadData,
    Trace,
)

# Or long, and with samples, of which their perf.data has the same code.
LARGE = ("bigjit/", "bigfp/", "erl25/jit-", "node24-switch/jit-")


def marked(names: list[Any]) -> list[Any]:
    return [
        pytest.param(name, marks=pytest.mark.large) if isinstance(name, str) and name.startswith(LARGE) else name
        for name in names
    ]


PAIRS = marked([f"{folder}/perf.data" for folder in SAMPLES])
EXTENDED = dumps("samply-ext/")
# These have inlined functions, but nobody has samples with them: they get a sample in every EVERY bytes of code.
BY_HAND, EVERY = " sampled", 64
SAMPLED = [f"{name}{BY_HAND}" for name in EXTENDED if isinstance(name, str)]
recorded = pytest.mark.parametrize("name", [*marked(dumps()), *PAIRS, *SAMPLED])
# Of dumps that lie beside a perf.data, that has the code and its sizes, too: the viewers open those alone with the
# large ones.
ALONE = [
    pytest.param(name, marks=pytest.mark.large) if isinstance(name, str) and name.split("/")[0] in SAMPLES else name
    for name in marked(dumps())
]
opened = pytest.mark.parametrize("name", [*ALONE, *PAIRS, *SAMPLED])
extended = pytest.mark.parametrize("name", EXTENDED)
needs_client = pytest.mark.skipif(available() is not None, reason=str(available()))
TraceProcessor = Callable[[Path], Any]
Written = Callable[..., Path]


@cache
def _loaded(name: str, embed_sources: bool) -> Trace:
    if name.endswith(BY_HAND):
        return _sampled(path_of(name.removesuffix(BY_HAND)))
    return load_checked(path_of(name), embed_sources=path_of(name).parent if embed_sources else False)


def _sampled(dump: Path) -> Trace:
    alone = load_checked(dump)
    places, size = alone.code_mappings, alone.code["size"].tolist()
    (pid,) = set(alone.code["pid"].tolist())
    data = PerfData(start=alone.start_ts).event()
    for code, address, ts in zip(*(places[c].tolist() for c in ("code", "address", "start_ts")), strict=True):
        for offset in range(0, size[code], EVERY):
            data.sample(pid, pid, ts + 1, address + offset)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "perf.data"
        path.write_bytes(data.bytes())
        return load_checked([path, dump])


def loaded(name: str, embed_sources: bool = False) -> Trace:
    """The dumps of a perf.data lie beside it. The large ones are not kept."""
    return (_loaded.__wrapped__ if name.startswith(LARGE) else _loaded)(name, embed_sources)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The output of a recording with a suffix, as a file, which is written once."""
    folder = tmp_path_factory.mktemp("written")

    @cache
    def path_with(name: str, suffix: str, embed_sources: bool = False) -> Path:
        path = folder / f"{name.replace('/', '-')}{'-sources' * embed_sources}{suffix}"
        return saved(loaded(name, embed_sources), path)

    return path_with


# ---------------------------------------------------------------- what a trace says


class Paths:
    """The frames of a trace's stacks, the innermost first."""

    def __init__(self, trace: Trace) -> None:
        self._prefix, self._frame = (trace.stacks[column].tolist() for column in ("prefix", "frame"))
        self.func = trace.frames["func"].tolist()
        names = [trace.strings[name] for name in trace.funcs["name"].tolist()]
        self._names = [names[func] for func in self.func]
        self._names_of: dict[int, tuple[str, ...]] = {}

    def frames(self, stack: int) -> Iterator[int]:
        while stack >= 0:
            yield self._frame[stack]
            stack = self._prefix[stack]

    def funcs(self, stack: int) -> list[int]:
        return [self.func[frame] for frame in self.frames(stack)]

    def names(self, stack: int) -> tuple[str, ...]:
        if stack not in self._names_of:
            self._names_of[stack] = tuple(self._names[frame] for frame in self.frames(stack))
        return self._names_of[stack]


def weights_of(thread: Thread, samples: Table) -> Counter[int]:
    """Stack → what its samples weigh in the front-end: bytes, or each one 1."""
    found: Counter[int] = Counter()
    weights = samples["weight"].tolist() if thread.sample_unit == "bytes" else [1] * len(samples)
    for stack, weight in zip(samples["stack"].tolist(), weights, strict=True):
        if stack >= 0:
            found[stack] += weight
    return found


Sums = dict[Any, tuple[int, int]]


def sums(weights: Counter[int], keys_of: Callable[[int], list[Any]]) -> Sums:
    """Key → (self, total), of those that weigh something; keys_of: a stack's, the innermost first."""
    own: Counter[Any] = Counter()
    total: Counter[Any] = Counter()
    for stack, weight in weights.items():
        keys = keys_of(stack)
        if keys:
            own[keys[0]] += weight
            for key in set(keys):
                total[key] += weight
    return {key: (own[key], weight) for key, weight in total.items() if weight}


def shown_threads(trace: Trace) -> list[tuple[Process, Thread]]:
    """As the front-end shows them: sizes after the threads of their process."""
    return [(p, t) for p in trace.processes for t in sorted(p.threads, key=lambda t: t.sample_unit == "bytes")]


def n_markers(data: ThreadData) -> int:
    """Those of the recording, one for each state, and one whenever the thread is off the processors."""
    n_events = sum(map(len, (*data.markers.values(), data.states)))
    return n_events + int((data.scheduling["state"] != RUNNING).sum())


def numbers_of(trace: Trace) -> dict[int, str]:
    """By the id() of each process: 7, and where several have this number 7.1, 7.2..."""
    seen: Counter[int] = Counter()
    numbers: dict[int, str] = {}
    for process in trace.processes:
        numbers[id(process)] = f"{process.pid}.{seen[process.pid]}".removesuffix(".0")
        seen[process.pid] += 1
    return numbers


# ---------------------------------------------------------------- Firefox: the threads


MOST = 6  # threads of a recording whose functions are asked for: each answer takes the client a new process


@needs_client
@pytest.mark.parametrize("name", [*ALONE, *PAIRS])
def test_firefox_shows_every_thread(name: str, written: Written) -> None:
    """Its samples and markers; of the busiest, each function's own samples and all; of a thread of sizes its bytes."""
    trace = loaded(name)
    paths, path = Paths(trace), written(name, ".json")
    threads = json.loads(path.read_bytes())["threads"]
    weights: dict[str, Counter[int]] = {}
    numbers = numbers_of(trace)
    with ProfilerCli(path) as cli:
        for (process, thread), shown, in_file in zip(shown_threads(trace), cli.threads(), threads, strict=True):
            data = thread.load(trace)
            # What weighs bytes stands in a process of its own.
            number = numbers[id(process)]
            pid, tid = (f"{number} sizes", thread.name) if thread.sample_unit else (number, thread.tid)
            assert (shown["pid"], shown["tid"], shown["name"]) == (pid, tid, thread.name)
            assert shown["markerCount"] == n_markers(data)
            assert in_file["samples"]["length"] == len(data.samples)
            weights[shown["threadHandle"]] = weights_of(thread, data.samples)
        for handle in sorted(weights, key=lambda handle: -len(weights[handle]))[:MOST]:
            if weights[handle]:
                functions = functions_of(cli, handle)
                assert functions == sums(weights[handle], paths.funcs)
                assert sum(own for own, _ in functions.values()) == weights[handle].total()


def functions_of(cli: ProfilerCli, thread: str, strategy: str = "", merge: Sequence[int] = ()) -> Sums:
    """Function → (self, total), of those that weigh something. They have the trace's numbers."""
    return {
        function["functionIndex"]: (function["selfSamples"], function["totalSamples"])
        for function in cli.functions(thread, include_idle=True, strategy=strategy, merge=merge)
        if function["totalSamples"]
    }


def handle_of(shown: list[dict[str, Any]], trace: Trace, wanted: Thread) -> str:
    (handle,) = (
        row["threadHandle"] for (_, thread), row in zip(shown_threads(trace), shown, strict=True) if thread is wanted
    )
    return str(handle)


def busiest(trace: Trace) -> Thread:
    """The thread with the most samples; without sampling, the view of sizes."""
    sampled = [t for _, t in trace.threads if not t.sample_unit] if trace.sampling else [sizes(trace)]
    return max(sampled, key=lambda thread: len(thread.load(trace).samples))


def sizes(trace: Trace) -> Thread:
    (thread,) = (thread for _, thread in trace.threads if thread.sample_unit == "bytes")
    return thread


JAVASCRIPT = {"function", "wasm"}  # the kinds of code that are JavaScript where its compiler is of JavaScript
PART_NS = 500_000_000  # each merged function costs the client a walk over all stacks


@needs_client
@pytest.mark.parametrize("folder", ["bun-src", "node24", "spidermonkey"])
def test_firefox_shows_only_javascript(folder: str, tmp_path: Path) -> None:
    """The viewer's filter merges what is neither isJS nor relevantForJS: here by hand, of half a second."""
    trace = load_checked(path_of(f"{folder}/perf.data"), time_range=(PART_NS, 2 * PART_NS))
    is_js = trace.funcs["is_js"].tolist()
    kinds = {trace.strings[int(trace.funcs["kind"][func])] for func in trace.code["func"].tolist() if is_js[func]}
    assert "function" in kinds <= JAVASCRIPT
    paths, thread = Paths(trace), busiest(trace)
    weights = weights_of(thread, thread.load(trace).samples)
    path = saved(trace, tmp_path / "out.json")
    table = json.loads(path.read_bytes())["shared"]["funcTable"]
    used = {func for stack in weights for func in paths.funcs(stack)}
    others = [func for func in sorted(used) if not (table["isJS"][func] or table["relevantForJS"][func])]
    with ProfilerCli(path) as cli:
        found = functions_of(cli, handle_of(cli.threads(), trace, thread), merge=others)
    assert found == sums(weights, lambda stack: [func for func in paths.funcs(stack) if is_js[func]])
    assert len(found) > 5


# ---------------------------------------------------------------- Firefox: sources and inlined functions


Place = tuple[int, int]  # source and line


def lines_of(trace: Trace, thread: Thread) -> Sums:
    """Place → (self, total). The front-end puts a frame of which no line is known to its function's first one."""
    frames, funcs = trace.frames, trace.funcs.take(trace.frames["func"])
    own = funcs["source"]
    source = np.where((frames["source"] >= 0) & (frames["line"] > 0), frames["source"], own)
    line = np.where(frames["line"] > 0, frames["line"], funcs["line"])
    places = list(zip(source.tolist(), line.tolist(), strict=True))
    paths = Paths(trace)
    return sums(weights_of(thread, thread.load(trace).samples), lambda stack: [places[f] for f in paths.frames(stack)])


def check_annotations(cli: ProfilerCli, trace: Trace, thread: Thread) -> int:
    """Of every embedded source that a function of the thread is of, the annotated lines; how many sources."""
    handle, wanted = handle_of(cli.threads(), trace, thread), lines_of(trace, thread)
    cli.ask("thread", "select", thread=handle)
    text_of, source_of = trace.sources["text"].tolist(), trace.funcs["source"].tolist()
    functions = {source_of[func]: func for func in functions_of(cli, handle)}
    seen = [(source, func) for source, func in functions.items() if source >= 0 and text_of[source] >= 0]
    for source, func in seen:
        answer = cli.annotate(f"f-{func}")
        assert answer["warnings"] == []
        lines = answer["srcAnnotation"]["lines"]
        text = trace.texts[text_of[source]].split("\n")
        assert [line["sourceText"] for line in lines] == text
        assert [line["lineNumber"] for line in lines] == list(range(1, len(text) + 1))
        found = {n + 1: (line["selfSamples"], line["totalSamples"]) for n, line in enumerate(lines)}
        assert {line: numbers for line, numbers in found.items() if numbers[1]} == {
            line: numbers for (of, line), numbers in wanted.items() if of == source and 0 < line <= len(text)
        }
    return len(seen)


@needs_client
@extended
def test_firefox_annotates_embedded_sources_with_bytes(name: str, written: Written) -> None:
    """Without a network; where a file was embedded twice, each text has its own code."""
    trace = loaded(name)
    with ProfilerCli(written(name, ".json")) as cli:
        assert check_annotations(cli, trace, sizes(trace)) >= 5


@needs_client
@pytest.mark.parametrize("name", ["bun-src/perf.data", "bun-src/jit-10873-10871.dump"])
def test_firefox_annotates_sources_beside_the_dump(name: str, written: Written) -> None:
    """Bun's, which are embedded where the user asks for it: with samples, or bytes where there are none."""
    trace = loaded(name, embed_sources=True)
    with ProfilerCli(written(name, ".json", embed_sources=True)) as cli:
        assert check_annotations(cli, trace, busiest(trace)) >= (1 if trace.sampling else 3)


@needs_client
@pytest.mark.parametrize("name", [*EXTENDED, *SAMPLED])
def test_firefox_shows_inlined_functions_as_children(name: str, written: Written) -> None:
    """The whole tree, of bytes and of samples: each call path with its own and all. That a frame is inlined shows only
    in samples: the front-end wants a native symbol for it, and the frames of a tree of bytes have none."""
    trace = loaded(name)
    paths, thread = Paths(trace), busiest(trace)
    depth = trace.frames["inline_depth"].tolist()
    weights = weights_of(thread, thread.load(trace).samples)
    inlined: dict[tuple[int, ...], set[bool]] = defaultdict(set)

    def call_paths(stack: int) -> list[tuple[int, ...]]:
        frames = list(paths.frames(stack))[::-1]
        found = [tuple(paths.func[frame] for frame in frames[:n]) for n in range(1, len(frames) + 1)]
        for path, frame in zip(found, frames, strict=True):
            inlined[path].add(depth[frame] > 0)
        return found[::-1]

    wanted, found = sums(weights, call_paths), dict[Any, tuple[int, int]]()

    def walk(node: dict[str, Any], path: tuple[int, ...]) -> None:
        for child in node.get("children", ()):
            below = (*path, child["functionIndex"])
            found[below] = child["selfSamples"], child["totalSamples"]
            walk(child, below)

    only_inlined = max(
        (path for path in wanted if inlined[path] == {True}), key=lambda path: (len(path), wanted[path], path)
    )
    with ProfilerCli(written(name, ".json")) as cli:
        handle = handle_of(cli.threads(), trace, thread)
        walk(cli.call_tree(handle, include_idle=True, most=100_000), ())
        heaviest = cli.samples(handle, include_idle=True, prefix=only_inlined)["heaviestStack"]["frames"]
    assert found == wanted
    funcs = tuple(frame["funcIndex"] for frame in heaviest)
    assert funcs[: len(only_inlined)] == only_inlined
    assert len(funcs) >= 3
    assert [bool(frame.get("inlineStatus")) for frame in heaviest] == [
        bool(trace.sampling) and any(inlined[funcs[:n]]) for n in range(1, len(funcs) + 1)
    ]


# ---------------------------------------------------------------- Firefox: the file


class Header:
    """Of a dump, as its specification has it."""

    def __init__(self, data: bytes) -> None:
        order = "<" if data[:4] == b"DTiJ" else ">"
        self.machine, _, pid, ts = struct.unpack_from(order + "IIIQ", data, 12)
        self._identity = b"JITD" + struct.pack("<IQ", pid, ts)

    @property
    def ids(self) -> tuple[str, str]:
        """(breakpadId, codeId) by samply's convention: a GUID in Microsoft's order, without age."""
        guid = uuid.UUID(bytes_le=self._identity)
        return f"{guid.hex.upper()}0", (self._identity + struct.pack("<I", self.machine)).hex()


def dumps_of(name: str, libs: list[dict[str, Any]]) -> dict[int, str]:
    """Number of the library → its dump."""
    folder = name.split("/")[0]
    return {nth: f"{folder}/{lib['name']}" for nth, lib in enumerate(libs) if lib["name"].endswith(".dump")}


@recorded
def test_firefox_files_follow_samply(name: str, written: Written) -> None:
    """So that its server finds the machine code: one library for each dump; in it every code object that is used lies
    where all that was loaded before it ends."""
    trace = loaded(name)
    profile = json.loads(written(name, ".json").read_bytes())
    shared, libs = profile["shared"], profile["libs"]
    given = dumps_of(name, libs)
    assert len(given) == sum(i.format == "jitdump" for i in trace.inputs)
    symbols = shared["nativeSymbols"]
    columns = zip(*(symbols[c] for c in ("libIndex", "address", "name", "functionSize")), strict=True)
    found: dict[int, list[tuple[int, str, int | None]]] = defaultdict(list)
    for lib, address, symbol, size in columns:
        found[lib].append((address, shared["stringArray"][symbol], size))
    n_used = 0
    for lib, dump in given.items():
        data = content(dump)
        assert (libs[lib]["breakpadId"], libs[lib]["codeId"]) == Header(data).ids
        every, end = Counter[tuple[int, str, int | None]](), 0
        for load in loads_in(data)[1]:
            every[end, load.name, len(load.code) or None] += 1
            end += len(load.code)
        assert Counter(found[lib]) <= every
        n_used += len(found[lib])
    assert n_used == len((set(trace.frames["code"].tolist()) - {-1}) | set(shown_by_start(trace).values()))


def shown_by_start(trace: Trace) -> dict[int, int]:
    """Frame → code object, of the frames that tell no place and have nothing inlined into them: Firefox shows them at
    the start of the first code object of their function and tier."""
    frames, code = trace.frames, trace.code
    first: dict[tuple[int, int], int] = {}
    for row, key in enumerate(zip(code["func"].tolist(), code["tier"].tolist(), strict=True)):
        first.setdefault(key, row)
    depths, stacks = frames["inline_depth"].tolist(), trace.stacks["frame"].tolist()
    paths = zip(stacks, trace.stacks["prefix"].tolist(), strict=True)
    outer = {stacks[prefix] for frame, prefix in paths if depths[frame] and prefix >= 0}
    rows = zip(*(frames[c].tolist() for c in ("func", "tier", "address")), strict=True)
    found = {
        frame: first.get((func, tier), -1)
        for frame, (func, tier, address) in enumerate(rows)
        if address < 0 and depths[frame] == 0 and frame not in outer
    }
    return {frame: row for frame, row in found.items() if row >= 0 and code["symbol"][row] >= 0}


@recorded
def test_firefox_frames_of_jitted_code(name: str, written: Written) -> None:
    """Their addresses lie in their symbols; inlined ones stand on those that they are inlined into, at one address."""
    trace = loaded(name)
    profile = json.loads(written(name, ".json").read_bytes())
    frames, stacks, symbols = (profile["shared"][table] for table in ("frameTable", "stackTable", "nativeSymbols"))
    given = dumps_of(name, profile["libs"])
    in_code = [frame for frame, lib in enumerate(frames["lib"]) if lib in given]
    assert len(in_code) == int((trace.frames["code"] >= 0).sum()) + len(shown_by_start(trace))
    assert in_code or not trace.sampling
    for frame in in_code:
        symbol, address = frames["nativeSymbol"][frame], frames["address"][frame]
        assert symbols["libIndex"][symbol] == frames["lib"][frame]
        assert 0 <= address - symbols["address"][symbol] < (symbols["functionSize"][symbol] or 1)
    same = list(zip(*(frames[column] for column in ("address", "lib", "nativeSymbol")), strict=True))
    depth = frames["inlineDepth"]
    for stack, (frame, prefix) in enumerate(zip(stacks["frame"], stacks["prefixOffset"], strict=True)):
        if depth[frame]:
            below = stacks["frame"][stack - prefix]
            assert prefix
            assert (depth[below], same[below]) == (depth[frame] - 1, same[frame])
    assert max(depth[frame] for frame in in_code) >= 2 if name.endswith(BY_HAND) else True


# ---------------------------------------------------------------- Gecko


@recorded
def test_gecko_has_every_sample(name: str, written: Written) -> None:
    trace = loaded(name)
    profile = json.loads(written(name, ".gecko.json").read_bytes())
    numbers = numbers_of(trace)
    for (process, thread), in_file in zip(shown_threads(trace), profile["threads"], strict=True):
        data = thread.load(trace)
        assert (str(in_file["pid"]), in_file["tid"]) == (numbers[id(process)], thread.tid)
        assert len(rows(in_file["markers"])) == n_markers(data)
        n_stacks = Counter(sample["stack"] is not None for sample in rows(in_file["samples"]))
        assert n_stacks == Counter((data.samples["stack"] >= 0).tolist())


@needs_client
@pytest.mark.parametrize("name", one_in(3, PAIRS))
def test_gecko_is_loaded(name: str, written: Written) -> None:
    """Without weights: sizes count their rows."""
    trace = loaded(name)
    with ProfilerCli(written(name, ".gecko.json")) as cli:
        shown = cli.threads()
        markers = [thread["markerCount"] for thread in shown]
        assert markers == [n_markers(thread.load(trace)) for _, thread in shown_threads(trace)]
        thread = busiest(trace)
        tree = cli.call_tree(handle_of(shown, trace, thread), include_idle=True)
        assert tree["totalSamples"] == int((thread.load(trace).samples["stack"] >= 0).sum())


# ---------------------------------------------------------------- Perfetto: the independent reader

CODE_SIZE = "total_code_size"
Sample = tuple[int, int, int, int, tuple[str, ...]]


def source_of(trace: Trace, thread: Thread) -> str:
    """What Perfetto calls the samples."""
    return CODE_SIZE if thread.sample_unit == "bytes" else trace.sampling.name if trace.sampling else ""


def samples_of(trace: Trace) -> dict[str, Counter[Sample]]:
    """Source → (pid, tid, ts, weight, names)."""
    paths = Paths(trace)
    found: dict[str, Counter[Sample]] = defaultdict(Counter)
    for process, thread in trace.threads:
        table = thread.load(trace).samples
        columns = (table[column].tolist() for column in ("ts", "weight", "stack"))
        found[source_of(trace, thread)].update(
            (process.pid, 0 if thread.sample_unit else thread.tid, ts, weight, paths.names(stack))
            for ts, weight, stack in zip(*columns, strict=True)
        )
    return {source: samples for source, samples in found.items() if samples}


def texts_of(trace: Trace) -> list[tuple[str, str]]:
    """Of the embedded sources, path and text."""
    table = trace.sources
    columns = zip(table["path"].tolist(), table["text"].tolist(), strict=True)
    return sorted((trace.strings[path], trace.texts[text]) for path, text in columns if text >= 0)


def recorded_pids(trace: Trace, shown: Iterable[tuple[int, str | None]]) -> dict[int, int]:
    """Number of a process, as Perfetto has it → as it was recorded. Of several programs of one process all but the
    first have another number, and the recorded one in their names. shown: (number, name) of each."""
    own = {process.pid for process in trace.processes}
    pids = {pid: pid if pid in own else int((name or "").rpartition("(")[2].rstrip(")")) for pid, name in shown if pid}
    assert Counter(pids.values()) == Counter(process.pid for process in trace.processes if process.pid)
    return pids


def last_values(trace: Trace) -> Counter[tuple[int, str, float]]:
    """(pid, counter, value)"""
    counters = ((p.pid, c.name, float(c.values["value"][-1])) for p in trace.processes for c in p.counters)
    return Counter(counters)


@opened
def test_perfetto_is_read_to_the_same_samples(name: str, written: Written) -> None:
    """Every one's functions, the innermost first and inlined ones among them; sizes too."""
    trace = loaded(name)
    read = perfetto.read(written(name, ".pftrace"))
    assert read.errors == []
    found: dict[str, Counter[Sample]] = defaultdict(Counter)
    pids = recorded_pids(trace, ((process.pid, process.name) for process in read.processes.values()))
    for s in read.samples:
        pid, tid = pids.get(s.pid or 0, 0), s.tid or 0
        tid = pid if tid == s.pid else tid
        found[s.source or ""][pid, tid, s.ts, s.weight or 0, tuple(n or "" for n in s.names)] += 1
    assert found == samples_of(trace)
    assert sorted((script.name, script.source) for script in read.scripts) == texts_of(trace)
    assert Counter((pids[c.pid or 0], c.name, c.values[-1][1]) for c in read.counters.values()) == last_values(trace)
    # A thread that has only states has this event, so that the viewer lists it.
    instants = [instant for instant in read.instants if instant.name != "first record"]
    assert len(read.slices) + len(instants) == sum(
        map(len, (table for _, thread in trace.threads for table in thread.load(trace).markers.values()))
    )
    threads = [read.threads[t.uuid] for t in read.tracks.values() if t.uuid in read.threads]
    names = {t.name or f"thread {t.tid}" for t in threads}
    # Behind the name of one with another number stands the recorded one.
    assert {re.sub(r" \(\d+\)$", "", name) for name in names} == {
        thread.name for _, thread in trace.threads if not thread.sample_unit
    }


# ---------------------------------------------------------------- Perfetto: trace_processor

LEAVES = """
SELECT sample.source AS source, process.pid AS pid, coalesce(thread.tid, 0) AS tid, sample.callsite_id AS callsite,
  count(*) AS n
FROM stack_sample AS sample JOIN stack_sample_task_context AS task ON task.id = sample.task_context_id
LEFT JOIN thread ON thread.utid = task.utid JOIN process ON process.upid = coalesce(task.upid, thread.upid)
GROUP BY 1, 2, 3, 4
"""
LAST_VALUES = """
SELECT process.pid AS pid, track.name AS name, value, max(ts) FROM counter
JOIN process_counter_track AS track ON track.id = counter.track_id JOIN process USING (upid) GROUP BY track.id
"""


@opened
def test_trace_processor_has_the_same_samples(name: str, written: Written, trace_processor: TraceProcessor) -> None:
    """Of each thread, how many have which function at the leaf. And sources, counters, markers and their flows."""
    trace = loaded(name)
    paths = Paths(trace)
    wanted: Counter[tuple[str, int, int, str]] = Counter()
    flows: Counter[int] = Counter()
    n_rows = 0
    for process, thread in trace.threads:
        data = thread.load(trace)
        for stack, n in Counter(data.samples["stack"].tolist()).items():
            if stack >= 0:
                tid = 0 if thread.sample_unit else thread.tid
                wanted[source_of(trace, thread), process.pid, tid, paths.names(stack)[0]] += n
        for table in data.markers.values():
            flows.update(table["flow"].tolist())
            n_rows += len(table)
    with trace_processor(written(name, ".pftrace")) as processor:
        assert [(row.name, row.value) for row in processor.query(STATS)] == []
        symbols: dict[int, str] = {}
        for row in processor.query("SELECT symbol_set_id AS id, name FROM stack_profile_symbol ORDER BY id"):
            symbols.setdefault(row.id, row.name)
        leaf = {row.id: symbols.get(row.symbols, row.name) for row in processor.query(CALLSITES)}
        found: Counter[tuple[str, int, int, str]] = Counter()
        pids = recorded_pids(trace, ((row.pid, row.name) for row in processor.query("SELECT pid, name FROM process")))
        for row in processor.query(LEAVES):
            pid = pids.get(row.pid, 0)
            found[row.source, pid, pid if row.tid == row.pid else row.tid, leaf[row.callsite]] += row.n
        assert found == wanted
        scripts = processor.query("INCLUDE PERFETTO MODULE v8.jit; SELECT name, source FROM v8_js_script")
        assert sorted((row.name, row.source) for row in scripts) == texts_of(trace)
        counters = Counter((pids[row.pid], row.name, row.value) for row in processor.query(LAST_VALUES))
        assert counters == last_values(trace)
        slices = "SELECT count(*) FROM slice WHERE name != 'first record'"
        (row,) = processor.query(f"SELECT ({slices}) AS slices, (SELECT count(*) FROM flow) AS flows")
        assert row.slices == n_rows
        # From each marker to the next one of its function.
        assert row.flows == sum(n - 1 for flow, n in flows.items() if flow)


# ---------------------------------------------------------------- scheduling

STATE_NAMES = {WAITING: "Waiting", RUNNING: "Running", PREEMPTED: "Preempted", RUNNABLE: "Runnable", UNKNOWN: "Unknown"}
SWITCHES = "disabled inherit mmap comm task sample_id_all mmap2 comm_exec context_switch"


def switches_of(trace: Trace) -> Counter[tuple[int, int, int]]:
    """(tid, ts, state)"""
    tables = [(thread.tid, thread.load(trace).scheduling) for _, thread in trace.threads]
    return Counter(
        (tid, ts, state)
        for tid, table in tables
        for ts, state in zip(table["ts"].tolist(), table["state"].tolist(), strict=True)
    )


def test_switches_without_processors_are_states(tmp_path: Path, trace_processor: TraceProcessor) -> None:
    """node24-switch was recorded without them."""
    trace = loaded("node24-switch/perf.data")
    path = saved(trace, tmp_path / "out.pftrace")
    read = perfetto.read(path)
    wanted = Counter({(tid, ts, STATE_NAMES[state]): n for (tid, ts, state), n in switches_of(trace).items()})
    # Each of ten threads has a row for what it did before its first switch.
    assert wanted.total() == 2425 + 10
    of_threads = [state for state in read.states if read.tracks[state.track].name == "Scheduling"]
    assert {read.tracks[state.track].name for state in read.states} == {"Scheduling", "Thread name"}
    assert Counter((state.tid, state.ts, state.value) for state in of_threads if state.value) == wanted
    assert read.runs == []
    with trace_processor(path) as processor:
        # Without a value is the end of each thread's last state.
        states = "SELECT count(*) FROM __intrinsic_state AS state JOIN track ON track.id = track_id"
        states += " WHERE value != '' AND track.name = 'Scheduling'"
        (row,) = processor.query(f"SELECT ({states}) AS n, (SELECT count(*) FROM sched_slice) AS runs")
        assert (row.n, row.runs) == (2425 + 10, 0)


def built(folder: Path) -> Path:
    """Two threads that take turns on two processors."""
    data = PerfData(start=10**9).event(sample_type="IP|TID|TIME|CPU|PERIOD", flags=SWITCHES)
    data.comm(7, 7, "app", ts=0).comm(7, 8, "worker", ts=0)
    for turn in range(20):
        ts, tid, cpu = 10**9 + turn * 1000, 7 + turn % 2, turn // 2 % 2
        data.switch(7, tid, ts, out=False, cpu=cpu)
        data.sample(7, tid, ts + 100, 0x1000, cpu=cpu)
        data.switch(7, tid, ts + 900, out=True, preempt=turn % 3 == 0, cpu=cpu)
    (folder / "perf.data").write_bytes(data.bytes())
    return folder / "perf.data"


def live(folder: Path) -> Path:
    """Threads that work and sleep, recorded here and now."""
    program = (
        "import threading, time\n"
        "def work():\n"
        "    for _ in range(50): sum(range(20000)); time.sleep(0.001)\n"
        "threads = [threading.Thread(target=work) for _ in range(3)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
    )
    path = folder / "perf.data"
    what = ["-e", "cpu-clock:u", "-k", "CLOCK_MONOTONIC", "--switch-events", "--sample-cpu", "-o", str(path)]
    try:
        done = subprocess.run(
            ["perf", "record", *what, "--", sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"perf cannot record here: {error}")
    if done.returncode:
        pytest.skip(f"perf cannot record here: {done.stderr.strip()[-200:]}")
    return path


@pytest.mark.parametrize("make", [built, live])
def test_switches_with_processors_are_runs(
    make: Callable[[Path], Path], tmp_path: Path, trace_processor: TraceProcessor
) -> None:
    """Each time that a thread is put on a processor is a slice there, until it is taken off."""
    trace = load_checked(make(tmp_path))
    path = saved(trace, tmp_path / "out.pftrace")
    read = perfetto.read(path)
    assert read.errors == []
    assert read.states == []
    starts = Counter((tid, ts) for tid, ts, state in switches_of(trace) if state == RUNNING)
    assert len(starts) >= 20
    assert Counter((run.tid, run.ts) for run in read.runs) == starts
    with trace_processor(path) as processor:
        assert [(row.name, row.value) for row in processor.query(STATS)] == []
        query = "SELECT tid, ts, ucpu, dur FROM sched_slice JOIN thread USING (utid)"
        runs = {(row.tid, row.ts, row.ucpu, row.dur) for row in processor.query(query)}
        assert runs == {(run.tid, run.ts, run.cpu, -1 if run.dur is None else run.dur) for run in read.runs}
        states = {row.state for row in processor.query("SELECT DISTINCT state FROM thread_state")}
        assert {"Running", "S"} <= states
