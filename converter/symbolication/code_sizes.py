"""The tree of code sizes: what code objects weigh, by function, inlined functions and lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from traceferry.model import SAMPLES, Array, CodeReader, Process, Table, Thread, ThreadData, TraceBuilder

MAX_INLINED_FRAMES = 1 << 20  # of one input


class Weights(NamedTuple):
    """Samples that weigh bytes: ts int64 ns; stack int32, a row of the trace's stacks; n_bytes int64."""

    ts: Array
    stack: Array
    n_bytes: Array


def by_stretch(trace: TraceBuilder, reader: CodeReader, codes: Iterable[int], where: str) -> Weights:
    """Returns weights of each stretch of these code objects between two changes of its frames, at the time of the load.
    Beyond MAX_INLINED_FRAMES the function alone. where: the input, for the report."""
    ts: list[int] = []
    stacks: list[int] = []
    sizes: list[int] = []
    size, loaded_at = trace.code["size"], trace.code["loaded_at"]
    n_frames = n_left_out = 0
    for code in codes:
        end = int(size[code])
        if end == 0:
            continue
        is_left_out = False
        for begin, until in pairwise([*reader.boundaries(code), end]):
            is_left_out = n_frames >= MAX_INLINED_FRAMES
            stack = -1
            for frame in (reader.function_of(trace, code),) if is_left_out else reader.lines_at(trace, code, begin):
                stack = trace.stacks.intern(prefix=stack, frame=frame)
                n_frames += 1
            ts.append(int(loaded_at[code]))
            stacks.append(stack)
            sizes.append((end if is_left_out else until) - begin)
            if is_left_out:
                break
        n_left_out += is_left_out
    trace.report.note("sizes_simplified", n_left_out, where=where)
    return Weights(np.array(ts, np.int64), np.array(stacks, np.int32), np.array(sizes, np.int64))


def view_of(parts: Sequence[Weights], process: Process, tid: int, name: str) -> Thread:
    """Returns a thread of the process whose samples weigh bytes."""
    ts, stack, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    samples = Table(SAMPLES, {"ts": ts, "stack": stack, "weight": weight})
    if np.any(ts[1:] < ts[:-1]):
        samples = samples.take(np.argsort(ts, kind="stable"))
    return Thread(
        tid, name, False, process.start_ts, process.end_ts, lambda _: ThreadData(samples=samples), len(samples),
        sample_unit="bytes",
    )  # fmt: skip
