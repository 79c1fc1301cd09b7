"""Compiled modules: whatever they are given, what they make obeys the laws; and how they are written.

`make sanitize` runs these with modules that check every index.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from builders.jitdump import JitDump
from builders.mono import Log
from builders.perf_data import PerfData
from conftest import PACKAGES, REPO, examples
from hypothesis import given
from hypothesis import strategies as st
from outputs import BUILT
from recordings import content
from streams import NS, fdr
from support import lawful
from test_bad_input import WHOLE
from test_builders_mono import everything as every_event
from test_calls import STREAMS

from traceferry.analysis.info.summary import summarize
from traceferry.files.output import Output
from traceferry.files.source import Source
from traceferry.model import TraceBuilder
from traceferry.reading import ImportContext, LoadOptions
from traceferry.registry import EXPORTERS, importer_named
from traceferry.timeline.balance import count_lasting
from traceferry.timeline.select import select_lasting, select_range
from traceferry.timeline.ticks import MAX_FREQUENCY, TickRate

COMPILED = sorted(path for folder in PACKAGES.values() for path in (REPO / folder).rglob("*.pyx"))
DECLARED = [*COMPILED, *sorted(path for folder in PACKAGES.values() for path in (REPO / folder).rglob("*.pxd"))]
USER = (1 << 64) - 512  # PERF_CONTEXT_USER
quietly = examples(20)


class Nowhere:
    def write(self, data: bytes | memoryview) -> None:
        pass


def use(inputs: dict[str, bytes], options: LoadOptions | None = None) -> None:
    """Everything that is done with a recording: it is read, added up, narrowed and written."""
    trace = TraceBuilder()
    for name, data in inputs.items():
        source = Source(f"app.{name}", memoryview(data))
        importer_named(name).module.read([source]).add_to(trace, ImportContext(options or LoadOptions()))
    trace.sort()
    summarize(lawful(trace))
    # A page holds what the others write.
    for exporter in (exporter for exporter in EXPORTERS if exporter.name != "html"):
        exporter.writer()(trace, Output(Nowhere(), gzip=False), lambda _: None)
    summarize(select_lasting(trace, 15))
    summarize(select_range(trace, trace.start_ts + 15, trace.end_ts - 15))
    for _, thread in trace.threads:
        count_lasting(thread.load(trace).calls, np.array([5, 15], np.int64), 1 << 20)


@quietly
@given(STREAMS, st.booleans())
def test_streams(streams: list[str], big: bool) -> None:
    use({"xray": fdr(*streams, big=big).bytes()})


@quietly
@given(st.sampled_from(WHOLE), st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=6))
def test_damaged_logs(log: bytes, changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(log)
    for at, value in changes:
        damaged[32 + at % (len(damaged) - 32)] = value
    use({"xray": bytes(damaged)})


@pytest.mark.parametrize("log", BUILT)
def test_built_logs(log: str) -> None:
    use({"xray": BUILT[log]().bytes()})


@pytest.mark.parametrize("log", ["fdr-c19-pie-except", "fdr-c19-pie-events", "fdr-c19-pie-pool-ring"])
def test_recordings(log: str) -> None:
    use({"xray": content(f"{log}.xray")})


def test_samples_in_jitted_code() -> None:
    """Samples in jitted code with lines, scheduling, and markers with stacks."""
    dump = JitDump(pid=7).debug_info(0x1000, [(0x1000, 3, 1, "a.js"), (0x1008, 4, 1, "a.js")])
    dump.load("JS:*f a.js:1:1", 0x1000, 16, ts=20)
    recording = PerfData().event("cpu-clock", type=1, config=0, sample_type="IP|TID|TIME|CPU|PERIOD|CALLCHAIN")
    recording.comm(7, 7, "app", 10).switch(7, 7, 20, out=False)
    recording.sample(7, 7, 30, 0x1004, [USER, 0x1004, 0x1009], cpu=0, period=9)
    recording.switch(7, 7, 40, out=True)
    use({"jitdump": dump.bytes(), "perf": recording.bytes()})


@pytest.mark.parametrize("adds_calls", [False, True])
@pytest.mark.parametrize("version", [1, 4, 6, 12, 13, 14, 15, 17])
def test_mono_logs(version: int, adds_calls: bool) -> None:
    """Every event; methods without a name; two with one pointer; a stack of its own; a damaged time."""
    log = every_event(Log(version))[0].buffer(tid=0x7F30)
    log.jit(0x900, "A:f ()").enter(0x900).enter(0x901).alloc(0x2000, 0x9000, 24).leave(0x901).leave(0x902).leave(0x900)
    log.jit(0x900, "B:g ()").enter(0x900).alloc(0x2999, 0x9100, 24)
    data = log.enter(0x900, ts=1 << 63).alloc(0x2999, 0x9200, 24).bytes()
    use({"mono": data}, LoadOptions(adds_calls=adds_calls))
    assert list(importer_named("mono").module.dump(Source("app.mlpd", memoryview(data)), 0))


# ---------------------------------------------------------------- ticks


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


# ---------------------------------------------------------------- how they are written


@pytest.mark.parametrize("path", COMPILED, ids=lambda path: path.stem)
def test_each_has_types(path: Path) -> None:
    """stubtest holds them to the module, in `make lint`."""
    assert path.with_suffix(".pyi").exists()


@pytest.mark.parametrize("path", DECLARED, ids=lambda path: path.name)
def test_no_function_takes_more_than_ten_arguments(path: Path) -> None:
    heads = re.findall(r"^ *(?:cdef|cpdef|def) [^\n=]*?(\w+)\(([^)]*)\)[^\n]*:$", path.read_text(), re.MULTILINE)
    many = {name: n for name, text in heads if (n := len(arguments(text))) > 10}
    assert many == {}


def arguments(text: str) -> list[str]:
    """int64_t[:, ::1] out, bint big → both; `self` does not count."""
    without_shapes = re.sub(r"\[[^]]*\]", "", text.replace("\n", " "))
    return [each for each in without_shapes.split(",") if each.strip() not in ("", "self", "cls")]
