"""Recordings of the Mono log profiler against mprof-report, Mono's own reader: equal where it is right. Where it is not
(specs/mono-log.md, section 6), a test shows both numbers and says why ours is right."""

import re
import shutil
import subprocess
from collections import Counter
from functools import cache
from typing import Any

import pytest
from builders import mono as build
from builders.mono import Log
from mono_recordings import (
    Amount,
    Function,
    alive_of,
    allocated_of,
    content,
    functions_of,
    markers_of,
    names,
    report_of,
    spent_by,
    summary_of,
    threads_of,
    trace_of,
    values_of,
)
from readers import mprof
from readers.mprof import Allocated, Called

from converter.info import summarize
from converter.model import Trace
from converter.registry import Options, importer_named
from converter.select import select_range, select_threads
from converter.source import Source

PROGRAM = shutil.which("mprof-report")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="mprof-report is not installed (Debian: mono-utils)")

BROKEN = "broken/"
EVERYTHING = "mid/everything.mlpd"
CALLS = "tiny/mini_calls.mlpd"
MINI = "tiny/mini_all.mlpd"
UNRESOLVED = "unresolved class"
S, MS, US = 1_000_000_000, 1_000_000, 1_000

RECORDINGS = [name for name in names(".mlpd") if not isinstance(name, str) or not name.startswith(BROKEN)]
SMALL = [name for name in RECORDINGS if isinstance(name, str)]


def is_32_bit(name: str) -> bool:
    return name.endswith("_ptr4.mlpd")


RIGHT = [name for name in RECORDINGS if not isinstance(name, str) or not is_32_bit(name)]


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
    trace = Trace()
    source = Source("app.mlpd", memoryview(log.bytes()))
    importer_named("mono").module.read([source]).add_to(trace, Options())
    trace.sort()
    return trace


# ---------------------------------------------------------------- calls


def called_of(summary: dict[str, Any]) -> dict[str, Function]:
    return {name: function for name, function in functions_of(summary).items() if function.calls}


def assert_same_methods(theirs: dict[str, Called], mine: dict[str, Function]) -> None:
    """Enters, and own time in whole milliseconds: of methods with the same name it adds up what it has rounded."""
    assert {name: method.calls for name, method in theirs.items()} == {name: f.calls for name, f in mine.items()}
    for name, method in theirs.items():
        assert method.self_ms == pytest.approx(mine[name].self_ns / MS, abs=2), name


@pytest.mark.parametrize("name", RECORDINGS)
def test_methods(name: str) -> None:
    theirs, mine = mprof_of(name), called_of(summary_of(name))
    assert theirs.total_calls == sum(function.calls for function in mine.values())
    assert_same_methods(theirs.methods, mine)


# By name, as several methods have these; all are recursive: they, or what they call, call them again.
RECURSIVE = {
    EVERYTHING: {
        "(wrapper runtime-invoke) object:runtime_invoke_void (object,intptr,intptr,intptr)": (79, 64_713_517),
        "System.Linq.Expressions.Compiler.VariableBinder:Visit (System.Linq.Expressions.Expression)": (23, 17_604_443),
    },
    CALLS: {"(wrapper runtime-invoke) object:runtime_invoke_void (object,intptr,intptr,intptr)": (52, 38_949_902)},
    "large/hotcalls.mlpd": {"Program:Walk (Program/Node)": (0, 0)},
}


@pytest.mark.parametrize("name", RECORDINGS)
def test_total_times(name: str) -> None:
    """Equal for methods that do not recur; section 6, 8: of others it counts every level, we the outermost."""
    mine = called_of(summary_of(name))
    for method, theirs in mprof_of(name).methods.items():
        assert theirs.total_ms >= mine[method].total_ns / MS - 2, method
        if method not in recursive_methods(name):
            assert theirs.total_ms == pytest.approx(mine[method].total_ns / MS, abs=2), method


@cache
def recursive_methods(name: str) -> set[str]:
    """Those that are open twice at some time."""
    trace, found = trace_of(name), set()
    of_frame = [trace.func_name(int(func)) for func in trace.frames["func"]]
    for _, thread in trace.threads:
        is_open: Counter[int] = Counter()
        for piece in thread.load().calls.pieces():
            for frame, flags in zip(piece["frame"].tolist(), piece["flags"].tolist(), strict=True):
                is_open[frame] += -1 if flags & 1 else 1
                if is_open[frame] > 1:
                    found.add(of_frame[frame])
    return found
