"""Map: the callchains of samples become stacks of the trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceferry.importers.perf import stacks_kernel
from traceferry.importers.perf.frames import FramesOf, frames_of
from traceferry.importers.perf.layout import KERNEL_MODE, USER_MODE
from traceferry.importers.perf.natives import Natives
from traceferry.importers.perf.recording import Mmap, Samples
from traceferry.importers.perf.regions import NOTHING
from traceferry.importers.perf.spaces import FIRST_PROCESS, KERNEL_SPACE, OTHER_SPACE, Meanings, Memory, meanings_of
from traceferry.kernels import tables_kernel
from traceferry.kernels.tables import Interned
from traceferry.model import Array, Trace

MAX_FRAMES = 1024


def stacks_of(
    samples: Samples, memory: Memory, natives: Natives, maps: Sequence[Mmap], trace: Trace, offset_ns: int, where: str
) -> Array:
    """A row of the trace's stacks for each sample, -1 for none. where: the recording, for the report."""
    n = len(samples)
    if n == 0:
        return np.zeros(0, np.int32)
    process = _process_of(samples.pid, memory.pids)
    columns = (
        samples.chain,
        np.ascontiguousarray(samples.chain_start, np.int64),
        np.ascontiguousarray(samples.chain_n, np.int32),
        process,
        np.ascontiguousarray(samples.ip, np.uint64),
        _space_of_ip(samples.cpumode, process),
        np.ascontiguousarray(samples.ts + offset_ns, np.int64),
    )
    keys = _collect(columns)
    meanings = meanings_of(keys.spaces, keys.addresses, keys.first_ts, keys.last_ts, memory)
    frames = frames_of(meanings, maps, natives, trace, MAX_FRAMES)
    stack, used, n_cut = _compose(columns, keys, meanings, frames, trace)
    report = trace.report
    report.note("stack_cut", n_cut, where=where)
    report.note("code_unknown", int(used[meanings.kind == NOTHING].sum()), where=where)
    report.note("code_announced_late", int(used[meanings.is_late].sum()), where=where)
    report.note("mappings_left_out", meanings.n_left_out, where=where)
    return stack


def _process_of(pid: Array, pids: object) -> Array:
    """The space of each sample's process. pids: rising."""
    known = np.array(pids, np.int64)
    nth = np.searchsorted(known, np.ascontiguousarray(pid))
    return (nth + FIRST_PROCESS).astype(np.int32)


def _space_of_ip(cpumode: Array, process: Array) -> Array:
    mode = np.ascontiguousarray(cpumode)
    others = np.where(mode == KERNEL_MODE, np.int32(KERNEL_SPACE), np.int32(OTHER_SPACE))
    return np.where(mode == USER_MODE, process, others).astype(np.int32)


Columns = tuple[Array, Array, Array, Array, Array, Array, Array]


@dataclass(frozen=True)
class Keys:
    """Every address that samples ask for, once for each space, with the first and the last time; slots: their hash
    table."""

    spaces: Array
    addresses: Array
    first_ts: Array
    last_ts: Array
    slots: Array


def _collect(columns: Columns) -> Keys:
    n = len(columns[1])
    types = (np.int32, np.uint64, np.int64, np.int64)
    keys = Interned(tables_kernel.enter_addresses, 2, [np.empty(0, dtype) for dtype in types])
    keys.grow(0, max(1 << 14, 2 * int(columns[2].max()) + 2))
    state = np.zeros(2, np.int64)
    while True:
        spaces, addresses, first_ts, last_ts = keys.columns
        stacks_kernel.collect(*columns, state, spaces, addresses, first_ts, last_ts, keys.slots)
        n_keys = int(state[1])
        if state[0] == n:
            return Keys(spaces[:n_keys], addresses[:n_keys], first_ts[:n_keys], last_ts[:n_keys], keys.slots)
        keys.grow(n_keys, 4 * keys.size)


def _compose(
    columns: Columns, keys: Keys, meanings: Meanings, frames: FramesOf, trace: Trace
) -> tuple[Array, Array, int]:
    """(stack of each sample, how often each row of meanings was used, how many stacks were cut); adds the stacks to the
    trace."""
    first_version = np.searchsorted(meanings.key, np.arange(len(keys.spaces) + 1))
    used = np.zeros(len(meanings.key), np.int64)
    n, longest = len(columns[1]), int(columns[2].max()) + 1
    before = trace.stacks.table()
    stacks = Interned(tables_kernel.enter_pairs, 2, (before["prefix"], before["frame"]))
    stacks.grow(len(before), max(1 << 15, 2 * (len(before) + MAX_FRAMES)))
    state = np.array([0, len(before), 0], np.int64)
    path, stack = np.empty(longest + 1, np.int32), np.empty(n, np.int32)
    known = np.full(stacks_kernel.N_CACHED * (2 * len(path) + 2), -1, np.int32)
    while True:
        prefix, frame = stacks.columns
        stacks_kernel.compose(
            *columns, keys.spaces, keys.addresses, keys.slots, first_version, meanings.start, frames.first,
            frames.frames, used, MAX_FRAMES, state, path, known, prefix, frame, stacks.slots, stack,
        )  # fmt: skip
        n_stacks = int(state[1])
        if state[0] == n:
            break
        stacks.grow(n_stacks, 4 * stacks.size)
    prefix, frame = (column[len(before) : n_stacks].copy() for column in stacks.columns)
    trace.stacks.extend(prefix=prefix, frame=frame)
    return stack, used, int(state[2])
