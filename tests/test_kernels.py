"""Every compiled kernel does what its .py file does, and believes no length.

The kernels are called as the converter calls them: while it loads and saves logs, each call is repeated with the same
arguments in the interpreted twin.
"""

import ast
import importlib
import runpy
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from inspect import signature
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from builders.jitdump import JitDump
from builders.mono import Log
from builders.perf_data import PerfData
from builders.xray import Fdr
from conftest import PACKAGES, REPO, examples, module_of, path_of
from hypothesis import given
from hypothesis import strategies as st
from outputs import BUILT
from recordings import content
from streams import NS, fdr
from support import Unprinted, lawful
from test_bad_input import WHOLE
from test_builders_mono import everything as every_event
from test_calls import STREAMS

import traceferry
from traceferry.analysis.compare.trees import DiffTree, Measured
from traceferry.analysis.info.summary import summarize
from traceferry.analysis.totals.collect import collect
from traceferry.analysis.totals.trees import Trees
from traceferry.files.output import Output
from traceferry.files.source import Source
from traceferry.reading import ImportContext, LoadOptions
from traceferry.registry import EXPORTERS, importer_named
from traceferry.timeline.balance import count_lasting
from traceferry.timeline.select import select_lasting, select_range
from traceferry.timeline.ticks import MAX_FREQUENCY, TickRate

KERNELS = sorted(module_of(path) for folder in PACKAGES.values() for path in (REPO / folder).rglob("*_kernel.py"))
Arguments = tuple[Any, ...]
quietly = examples(20)


def interpreted(name: str) -> ModuleType:
    path = path_of(name)
    loader = SourceFileLoader(f"interpreted_{name.rpartition('.')[2]}", str(path))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def is_compiled(module: ModuleType) -> bool:
    return not str(module.__file__).endswith(".py")


def kernels_of(module: ModuleType) -> list[str]:
    """Not the C functions in it, which are Python functions where nothing is compiled."""
    nodes = ast.parse(path_of(module.__name__).read_text(encoding="utf-8")).body
    return [node.name for node in nodes if isinstance(node, ast.FunctionDef) and not node.decorator_list]


def copied(arguments: Arguments) -> Arguments:
    """With copies of arrays, also of those in tuples."""
    return tuple(
        a.copy() if isinstance(a, np.ndarray) else bytearray(a) if isinstance(a, bytearray)
        else copied(a) if type(a) is tuple else a for a in arguments
    )  # fmt: skip


def content_of(arguments: Arguments) -> list[Any]:
    return [
        bytes(a) if isinstance(a, (np.ndarray, bytearray)) else content_of(a) if type(a) is tuple else None
        for a in arguments
    ]


def outcome(kernel: Callable[..., Any], arguments: Arguments) -> Any:
    try:
        return kernel(*arguments)
    except ValueError as error:
        return f"ValueError: {error}"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Unprinted:
    """(module, kernel, arguments before, result, arrays after) of every call of a kernel during the test."""
    seen = Unprinted()

    def watch(module: ModuleType, name: str) -> None:
        kernel = getattr(module, name)

        def watched(*arguments: Any) -> Any:
            before = copied(arguments)
            result = kernel(*arguments)
            seen.append((module.__name__, name, before, result, content_of(arguments)))
            return result

        monkeypatch.setattr(module, name, watched)

    for module_name in KERNELS:
        module = importlib.import_module(module_name)
        for name in kernels_of(module):
            watch(module, name)
    return seen


class Nowhere:
    def write(self, data: bytes | memoryview) -> None:
        pass


def use_everything(log: bytes) -> None:
    """Every kernel of this importer is called if the log holds anything."""
    use_trace({"xray": log})


USER = (1 << 64) - 512  # PERF_CONTEXT_USER


def use_jit_recording() -> None:
    """Samples in jitted code with lines, scheduling, and markers with stacks."""
    dump = JitDump(pid=7).debug_info(0x1000, [(0x1000, 3, 1, "a.js"), (0x1008, 4, 1, "a.js")])
    dump.load("JS:*f a.js:1:1", 0x1000, 16, ts=20)
    recording = PerfData().event("cpu-clock", type=1, config=0, sample_type="IP|TID|TIME|CPU|PERIOD|CALLCHAIN")
    recording.comm(7, 7, "app", 10).switch(7, 7, 20, out=False)
    recording.sample(7, 7, 30, 0x1004, [USER, 0x1004, 0x1009], cpu=0, period=9)
    recording.switch(7, 7, 40, out=True)
    use_trace({"jitdump": dump.bytes(), "perf": recording.bytes()})


def mono_log(version: int) -> bytes:
    """Every event; methods without a name; two with one pointer; a stack of its own; a damaged time."""
    log = every_event(Log(version))[0].buffer(tid=0x7F30)
    log.jit(0x900, "A:f ()").enter(0x900).enter(0x901).alloc(0x2000, 0x9000, 24).leave(0x901).leave(0x902).leave(0x900)
    log.jit(0x900, "B:g ()").enter(0x900).alloc(0x2999, 0x9100, 24)
    return log.enter(0x900, ts=1 << 63).alloc(0x2999, 0x9200, 24).bytes()


def use_mono_log(version: int) -> None:
    log = mono_log(version)
    use_trace({"mono": log})
    trace = traceferry.TraceBuilder()
    importer_named("mono").module.read([Source("app.mlpd", memoryview(log))]).add_to(
        trace, ImportContext(LoadOptions(adds_calls=True))
    )
    summarize(trace)
    assert list(importer_named("mono").module.dump(Source("app.mlpd", memoryview(log)), 0))


def use_trace(inputs: dict[str, bytes]) -> None:
    trace = traceferry.TraceBuilder()
    for name, data in inputs.items():
        importer_named(name).module.read([Source(f"app.{name}", memoryview(data))]).add_to(trace, ImportContext())
    trace.sort()
    summarize(lawful(trace))
    trees = Trees(trace)
    collect(trace, trees)
    own = trees.own(lambda _: True)
    trees.total(own)
    measured = Measured("", "", "", "", np.flatnonzero(own).astype(np.int32), own[own > 0] / 2, own[own > 0] / 3)
    DiffTree((("f",),), trees.nodes.parent, trees.nodes.key, (measured,)).largest(1)
    # A page holds what the others write.
    for exporter in (exporter for exporter in EXPORTERS if exporter.name != "html"):
        exporter.writer()(trace, Output(Nowhere(), gzip=False), lambda _: None)
    summarize(select_lasting(trace, 15))
    summarize(select_range(trace, trace.start_ts + 15, trace.end_ts - 15))
    for _, thread in trace.threads:
        count_lasting(thread.load(trace).calls, np.array([5, 15], np.int64), 1 << 20)


TWINS = {name: interpreted(name) for name in KERNELS}
COMPILED = [name for name in KERNELS if is_compiled(importlib.import_module(name))]
needs_compiled = pytest.mark.skipif(
    not COMPILED, reason="no kernel is compiled here: python setup.py build_ext --inplace"
)
Calls = list[tuple[str, str, Arguments, Any, list[Any]]]


def same_interpreted(calls: Calls) -> None:
    for module, name, before, result, after in calls:
        arguments = copied(before)
        assert getattr(TWINS[module], name)(*arguments) == result, name
        assert content_of(arguments) == after, name
    calls.clear()


@needs_compiled
def test_all_are_compiled_or_none() -> None:
    assert COMPILED == KERNELS


def test_every_kernel_is_called(calls: Calls) -> None:
    """Else the tests below prove nothing about it."""
    use_everything(NOT_NANOSECONDS)
    for log in BUILT.values():
        use_everything(log().bytes())
    use_jit_recording()
    use_mono_log(17)
    called = {(module, name) for module, name, *_ in calls}
    assert called == {(m, n) for m in KERNELS for n in kernels_of(importlib.import_module(m))}


def _not_nanoseconds() -> bytes:
    log = Fdr(frequency=2_596_142_000)
    records = [log.new_cpu(0, 10**12), log.enter(1, 0), log.exit(3, 9), log.exit(1, 2**31), log.exit(2, 1)]
    return log.buffer(1, 1, (1000, 0), records).bytes()


NOT_NANOSECONDS = _not_nanoseconds()


@needs_compiled
@quietly
@given(STREAMS, st.booleans())
def test_streams(calls: Calls, streams: list[str], big: bool) -> None:
    use_everything(fdr(*streams, big=big).bytes())
    same_interpreted(calls)


@needs_compiled
@quietly
@given(st.sampled_from(WHOLE), st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=6))
def test_damaged_logs(calls: Calls, log: bytes, changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(log)
    for at, value in changes:
        damaged[32 + at % (len(damaged) - 32)] = value
    use_everything(bytes(damaged))
    same_interpreted(calls)


@needs_compiled
def test_heaps_and_symbols(calls: Calls) -> None:
    same_interpreted(calls)


@needs_compiled
@pytest.mark.parametrize("version", [1, 4, 6, 12, 13, 14, 15, 17])
def test_mono_logs(calls: Calls, version: int) -> None:
    use_mono_log(version)
    same_interpreted(calls)


@needs_compiled
@pytest.mark.parametrize("log", ["fdr-c19-pie-except", "fdr-c19-pie-events", "fdr-c19-pie-pool-ring"])
def test_recordings(calls: Calls, log: str) -> None:
    use_everything(content(f"{log}.xray"))
    same_interpreted(calls)


@quietly
@given(
    st.lists(st.integers(0, 2**62), min_size=1, max_size=50),
    st.sampled_from([1, 7, 999_999_999, 1_000_000_001, 2_596_142_000, 9_000_000_000]),
)
def test_ticks_to_nanoseconds_are_exact(ticks: list[int], frequency: int) -> None:
    fitting = [t for t in ticks if t * NS // frequency < 2**62] or [0]
    converted = TickRate(frequency, 5).to_ns(np.array(fitting, np.int64))
    assert converted.tolist() == [t * NS // frequency + 5 for t in fitting]


@given(
    st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=20), st.integers(1, MAX_FREQUENCY),
    st.integers(-(2**61), 2**61), st.lists(st.integers(0, 2**61), min_size=2, max_size=2),
)  # fmt: skip
def test_ticks_of_damaged_records_stay_within_the_recording(
    ticks: list[int], frequency: int, offset: int, bounds: list[int]
) -> None:
    """Any tick, also one whose time does not fit into 64 bits."""
    start, end = sorted(bounds)
    found = TickRate(frequency, offset).to_ns_within(np.array(ticks, np.int64), start, end)
    assert found.tolist() == [min(max(t * NS // frequency + offset, start), end) for t in ticks]


# ---------------------------------------------------------------- bounds


def shortened(arguments: Arguments) -> Iterator[Arguments]:
    """Each array in turn: empty, half, one element less."""
    for at, argument in enumerate(arguments):
        if isinstance(argument, (np.ndarray, bytearray)) and len(argument):
            for size in {0, len(argument) // 2, len(argument) - 1}:
                changed = list(copied(arguments))
                changed[at] = changed[at][:size]
                yield tuple(changed)
        elif type(argument) is tuple:
            for short in shortened(argument):
                yield (*copied(arguments[:at]), short, *copied(arguments[at + 1 :]))


def sizes_of(arguments: Arguments) -> tuple[Any, ...]:
    return tuple(
        sizes_of(a) if type(a) is tuple else len(a)
        for a in arguments
        if isinstance(a, (np.ndarray, bytearray)) or type(a) is tuple
    )


def few_of_each_size(calls: Calls) -> Iterator[tuple[str, str, Arguments]]:
    """Of the calls of a kernel with arrays of the same sizes, two."""
    seen: Counter[tuple[str, str, tuple[Any, ...]]] = Counter()
    for module, name, before, _, _ in list(calls):
        sizes = sizes_of(before)
        seen[module, name, sizes] += 1
        if seen[module, name, sizes] <= 2:
            yield module, name, before


def test_arrays_that_are_too_short_raise_value_error(calls: Calls) -> None:
    """Interpreted, an index beyond an array's end would raise IndexError; compiled it would be another's memory. So
    both must raise ValueError for the same lengths, and do the same where the length is enough."""
    use_everything(NOT_NANOSECONDS)
    for name in ("not_balanced", "arguments_and_events", "gaps"):
        use_everything(BUILT[name]().bytes())
    use_mono_log(17)
    refused: dict[tuple[str, str], int] = {}
    beyond: set[str] = set()
    for module, name, before in few_of_each_size(calls):
        for arguments in shortened(before):
            twin = copied(arguments)
            try:
                wanted = outcome(getattr(TWINS[module], name), twin)
            except IndexError:
                short = next(i for i, (x, y) in enumerate(zip(before, arguments, strict=True)) if differ(x, y))
                beyond.add(f"{module}.{name}: {list(signature(getattr(TWINS[module], name)).parameters)[short]}")
                continue
            refused[module, name] = refused.get((module, name), 0) + str(wanted).startswith("ValueError")
            if module in COMPILED:
                assert outcome(watched_kernel(module, name), arguments) == wanted, name
                if not str(wanted).startswith("ValueError"):
                    assert content_of(arguments) == content_of(twin), name
    assert sorted(beyond) == []
    assert [kernel for kernel, n in refused.items() if n == 0] == []


def differ(one: Any, other: Any) -> bool:
    return sizes_of((one,)) != sizes_of((other,))


def watched_kernel(module: str, name: str) -> Callable[..., Any]:
    """The kernel behind the function that watches it."""
    closure = getattr(sys.modules[module], name).__closure__
    return next(cell.cell_contents for cell in closure if callable(cell.cell_contents))


def test_types_of_kernels() -> None:
    """mypy reads them in files that are made from the kernels."""
    stubs = runpy.run_path(str(REPO / "kernel_stubs.py"))
    typed: Callable[[str], str] = stubs["stub_of"]
    assert {path.stem for path in stubs["kernels"]()} >= {name.rpartition(".")[2] for name in KERNELS}
    lines = typed(
        "N = cython.declare(cython.int, 1)\n"
        'SLOTS = {"pos": N}\n'
        "@c_inline\n@cython.returns((cython.ulonglong, cython.bint))\ndef pair(p: cython.longlong): pass\n"
        "def kernel(a: cython.const[cython.uchar][::1], b: cython.int[:, ::1], c: tuple) -> None: pass\n"
        "def place(a: cython.double):\n    return a, 1\n"
    ).splitlines()
    assert [line for line in lines if line.startswith(("N:", "SLOTS", "def"))] == [
        "N: int",
        "SLOTS: dict[str, int]",
        "def pair(p: int) -> tuple[int, bool]:",
        "def kernel(a: Buffer | NDArray[Any], b: NDArray[Any], c: tuple[Any, ...]) -> None:",
        "def place(a: float) -> tuple[int, int]:",
    ]
    with pytest.raises(ValueError, match="has no type"):
        typed("def kernel(a): pass\n")
