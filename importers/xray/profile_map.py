"""Map: profiles become a Trace. Each call path is one call, as long as all its calls together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traceferry.common.shown_text import encodable
from traceferry.files.source import Source
from traceferry.importers.xray.functions import Object, intern_frames, resolve
from traceferry.importers.xray.log_names import program_name
from traceferry.importers.xray.profile import CallTree, Profile
from traceferry.model import (
    ARGUMENTS,
    OPEN_AT_END,
    Array,
    Clock,
    Input,
    Process,
    Table,
    Thread,
    ThreadData,
    TraceBuilder,
)
from traceferry.symbolication.demangle import demangler_for
from traceferry.timeline.summed_calls import LARGEST_NS, summed_calls
from traceferry.timeline.ticks import NS, TickRate

# Where the runtime's counter is a clock of ns: it reads CLOCK_REALTIME there (compiler-rt/lib/xray/xray_tsc.h).
CLOCKED = {"arm", "arm64", "mips", "mips64", "riscv64", "loongarch64"}
# As the views of SQL know it, which add it up.
SUMMED_CALLS = "summed calls"


def add_profile(
    trace: TraceBuilder, source: Source, profile: Profile, objects: Sequence[Object], frequency: int | None
) -> None:
    """Adds a profile to the trace. objects: its binaries; frequency: of the counter in Hz, None is unknown."""
    profile.problems.note(trace.report, profile.name)
    demangle = demangler_for(source.answers, trace.report)
    functions = resolve(profile.function_ids, objects, demangle)
    demangle.note_kept(trace.report, profile.name)
    nameless = [function for function in functions if not function.name]
    unknown = sum(function.object is None for function in nameless)
    trace.report.note("no_symbols", unknown, where=profile.name)
    trace.report.note("function_without_name", len(nameless) - unknown, where=profile.name)
    frames = np.array(intern_frames(trace, functions), np.int32)
    if frequency is None and not any(one.binary.arch in CLOCKED for one in objects):
        trace.report.note("ticks_unscaled", where=profile.name)
    if trace.clock is None:
        trace.join_clock(Clock("tsc"))
    program = next((one.binary.name for one in objects if one.number == 0), "") or program_name(source.name)
    trace.inputs.append(Input(encodable(Path(source.path).name), "xray", "profiling", "LLVM XRay"))
    _add_process(trace, profile, frames, TickRate(frequency or NS), program)


def _add_process(trace: TraceBuilder, profile: Profile, frames: Array, rate: TickRate, program: str) -> None:
    pid = profile.header.pid
    process = next((one for one in trace.processes if one.pid == pid), None)
    if process is None:
        process = Process(pid, program, trace.start_ts, trace.start_ts)
        trace.processes.append(process)
    trace.report.note("calls_summed", sum(len(tree.parent) for tree in profile.trees), where=profile.name)
    for tree in profile.trees:
        is_main = tree.tid == pid and not any(thread.is_main for thread in process.threads)
        times = _times(tree, rate)
        where = f"{profile.name}:{pid}:{tree.tid}"
        trace.report.note("open_at_end", int(times.is_open.sum()), where=where)
        trace.report.note("callees_longer", times.n_raised, where=where)
        start = process.start_ts
        process.threads.append(
            Thread(
                tree.tid,
                process.name if is_main else f"thread {tree.tid}",
                is_main,
                start,
                min(start + times.total_ns, LARGEST_NS),
                ThreadLoader(tree, times, frames, start),
                2 * len(tree.parent),
            )
        )
    process.end_ts = max((thread.end_ts for thread in process.threads), default=process.end_ts)


@dataclass(frozen=True)
class Times:
    """own_ns: int64, of each call path without its callees; is_open: those of which no call had ended; n_raised: how
    many others were shorter than their callees together; total_ns: of the thread."""

    own_ns: Array
    is_open: Array
    n_raised: int
    total_ns: int


def _times(tree: CallTree, rate: TickRate) -> Times:
    """Returns the times of a tree. A call path is at least as long as those that it calls."""
    total: list[int] = rate.to_ns_within(tree.ticks, 0, LARGEST_NS).tolist()
    calls, parent = tree.calls.tolist(), tree.parent.tolist()
    callees, own, n_raised = [0] * (len(total) + 1), [0] * len(total), 0
    for node in range(len(total) - 1, -1, -1):
        n_raised += calls[node] > 0 and total[node] < callees[node]
        total[node] = min(max(total[node], callees[node]), LARGEST_NS)
        own[node] = max(total[node] - callees[node], 0)
        callees[parent[node]] += total[node]
    return Times(np.array(own, np.int64), tree.calls == 0, n_raised, min(callees[-1], LARGEST_NS))


@dataclass(frozen=True)
class ThreadLoader:
    """Makes a thread's tables again at every call. frames: of the profile's functions; start: ns."""

    tree: CallTree
    times: Times
    frames: Array
    start: int

    def __call__(self, trace: TraceBuilder) -> ThreadData:
        tree, is_open = self.tree, self.times.is_open
        # What has not ended was called once: a path is at most once on a stack.
        counts = np.where(is_open, 1, np.maximum(tree.calls, 0))
        flags = np.where(is_open, OPEN_AT_END, 0).astype(np.uint8)
        calls = summed_calls(tree.parent, self.frames[tree.function], self.times.own_ns, counts, flags)
        if self.start:
            calls["ts"][:] = np.minimum(calls["ts"] + self.start, LARGEST_NS)
        return ThreadData(calls=calls, arguments=_arguments(trace, calls.counts()))


def _arguments(trace: TraceBuilder, counts: Array) -> Table:
    """Returns ARGUMENTS: of each call path, how many calls it stands for."""
    rows = np.flatnonzero(counts)
    if not len(rows):
        return Table(ARGUMENTS)
    key, form = (trace.strings.intern(text) for text in (SUMMED_CALLS, "integer"))
    named = {"key": np.full(len(rows), key, np.int32), "format": np.full(len(rows), form, np.int32)}
    return Table(ARGUMENTS, {"call": rows, "value": counts[rows].astype(np.uint64), **named})
