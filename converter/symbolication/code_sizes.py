"""The tree of code sizes: what code objects weigh, by function, inlined functions and lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from traceferry.model import SAMPLES, Array, CodeReader, Process, Table, Thread, ThreadData, TraceBuilder, sums

MAX_INLINED_FRAMES = 1 << 20  # of one input


class Weights(NamedTuple):
    """Samples that weigh bytes: ts int64 ns; stack int32, a row of the trace's stacks; n_bytes int64."""

    ts: Array
    stack: Array
    n_bytes: Array


class LineSizes(NamedTuple):
    """The bytes of code objects by line. base, file, line (int32): the distinct lines, in the order in which they come;
    record, key (int32), n_bytes (int64): each object and line that are together, once."""

    base: Array
    file: Array
    line: Array
    record: Array
    key: Array
    n_bytes: Array


def by_line(
    begins: Array, ends: Array, size: Array, bases: Array, offsets: Array, files: Array, lines: Array
) -> LineSizes:
    """Shares the bytes of code objects among the lines of their tables. The i-th has size[i] bytes; rows begins[i] to
    ends[i] of offsets (rising within an object), files and lines are its line table, before whose first row the file is
    -1 and the line 0. bases: what lines are told apart by besides file and line: the function."""
    counts = ends - begins + 1
    record = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    last = np.cumsum(counts) - 1
    first = last - counts + 1
    row = np.arange(len(record)) + (begins - 1 - first)[record]
    row[first] = -1
    start = np.minimum(np.append(offsets, 0)[row], size[record])
    start[first] = 0
    until = np.append(start[1:], 0)
    until[last] = size
    n_bytes = until - np.maximum(start, 0)
    is_there = n_bytes > 0
    record, row = record[is_there], row[is_there]
    base, file, line = bases[record], np.append(files, -1)[row], np.append(lines, 0)[row]
    _, of_file = _numbered(base, file)
    of_line, key = _numbered(of_file, line)
    of_pair, pair = _numbered(record, key)
    n_bytes = sums.total_by(pair, n_bytes[is_there], len(of_pair))
    return LineSizes(base[of_line], file[of_line], line[of_line], record[of_pair], key[of_pair], n_bytes)


def _numbered(one: Array, other: Array) -> tuple[Array, Array]:
    """Numbers pairs of integers of 32 bits in the order in which they come. Returns where each number is first, and the
    number of each pair."""
    pairs = one.astype(np.int64) << 32 | other.astype(np.int64) & 0xFFFF_FFFF
    order = np.argsort(pairs, kind="stable")
    is_new = np.diff(pairs[order], prepend=~pairs[order[:1]]) != 0
    first = order[is_new]
    by_place = np.argsort(first)
    number = np.empty(len(first), np.int32)
    number[by_place] = np.arange(len(first), dtype=np.int32)
    numbers = np.empty(len(pairs), np.int32)
    numbers[order] = number[np.cumsum(is_new) - 1]
    return first[by_place], numbers


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
