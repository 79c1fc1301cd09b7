"""Decode: samples of perf record --off-cpu, which perf writes when it ends, one for all waits of a thread at one stack.

Source: perf's util/off_cpu.h (OFFCPU_EVENT, OFF_CPU_TIMESTAMP) and util/bpf_off_cpu.c. Until perf 6.15 they are samples
of what slept; since then they are raw data, and what stands before it is of whatever ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from traceferry.importers.perf.chains import Replacement, ragged, with_chains
from traceferry.importers.perf.fields import numbers_at
from traceferry.importers.perf.layout import CONTEXTS, AttrType
from traceferry.importers.perf.recording import Event, Problem, Samples
from traceferry.importers.perf.stream import Stream
from traceferry.model import Array

# PERF_COUNT_SW_BPF_OUTPUT
BPF_OUTPUT = 10
NAME = "offcpu-time"
# u32 pid, tid; u64 period; u64 nr; before nr addresses and u64 cgroup.
HEAD_SIZE, TAIL_SIZE = 24, 8


def is_off_cpu(event: Event) -> bool:
    """Whether perf record --off-cpu made it, which counts ns."""
    is_bpf = event.attr.type == AttrType.SOFTWARE and event.attr.config == BPF_OUTPUT
    return is_bpf and event.name.partition(":")[0] == NAME


def with_off_cpu(samples: Samples, stream: Stream, events: Sequence[Event], problems: list[Problem]) -> Samples:
    """Returns the samples; those of time off the processor with what their raw data says, at the end of the recording,
    when their processes have all their code. What is cut is left out."""
    of = [event.index for event in events if is_off_cpu(event)]
    off = np.isin(samples.event, of) if of else np.zeros(0, bool)
    if not off.any():
        return samples
    is_raw = off & (samples.raw_at >= 0)
    rows, n = _whole(samples, stream, np.flatnonzero(is_raw))
    n_cut = int(is_raw.sum()) - len(rows)
    if n_cut:
        cut = np.setdiff1d(np.flatnonzero(is_raw), rows)
        problems.append(Problem("bad_record", n_cut, int(samples.offset[cut].min()), "offcpu-time: raw data is cut"))
    if len(rows):
        samples = _filled(samples, stream, rows, n)
    keep = ~is_raw
    keep[rows] = True
    is_timeless = off & (samples.ts < 0)
    known = samples.ts[~is_timeless & (samples.ts >= 0)]
    if is_timeless.any() and len(known):
        samples = replace(samples, ts=np.where(is_timeless, known.max(), samples.ts))
    order = np.concatenate((np.flatnonzero(keep & ~is_timeless), np.flatnonzero(keep & is_timeless)))
    columns = (field.name for field in fields(Samples) if field.name != "chain")
    return replace(samples, **{name: getattr(samples, name)[order] for name in columns})


def _whole(samples: Samples, stream: Stream, rows: Array) -> tuple[Array, Array]:
    """Returns the rows of which all raw data is there, and how many addresses each has."""
    rows = rows[samples.raw_size[rows] >= HEAD_SIZE + TAIL_SIZE]
    data, order = np.frombuffer(stream.data, np.uint8), ">" if stream.big else "<"
    n = numbers_at(data, samples.raw_at[rows] + HEAD_SIZE - 8, order + "u8")
    space = (samples.raw_size[rows].astype(np.int64) - HEAD_SIZE - TAIL_SIZE) // 8
    is_whole = n <= space.astype(np.uint64)
    return rows[is_whole], n[is_whole].astype(np.int64)


def _filled(samples: Samples, stream: Stream, rows: Array, n: Array) -> Samples:
    data, order = np.frombuffer(stream.data, np.uint8), ">" if stream.big else "<"
    at = samples.raw_at[rows]
    of, nth = ragged(n)
    chain = numbers_at(data, at[of] + HEAD_SIZE + 8 * nth, order + "u8")
    start = np.cumsum(n) - n
    read = {
        "pid": numbers_at(data, at, order + "i4"),
        "tid": numbers_at(data, at + 4, order + "i4"),
        "period": np.minimum(numbers_at(data, at + 8, order + "u8"), np.uint64(1 << 62)).astype(np.int64),
        "cgroup": numbers_at(data, at + HEAD_SIZE + 8 * n, order + "u8"),
        "ip": _first_address(chain, of, len(rows)),
        "cpu": np.full(len(rows), -1, np.int32),
    }
    columns = {}
    for name, values in read.items():
        columns[name] = np.array(getattr(samples, name))
        columns[name][rows] = values
    return with_chains(replace(samples, **columns), [Replacement(rows, chain, start, n)])


def _first_address(chain: Array, of: Array, n_rows: int) -> Array:
    """uint64: of each row the first that is no context marker, 0 where there is none."""
    found = np.zeros(n_rows, np.uint64)
    is_address = ~np.isin(chain, np.array([number & (1 << 64) - 1 for number in CONTEXTS], np.uint64))
    found[of[is_address][::-1]] = chain[is_address][::-1]
    return found
