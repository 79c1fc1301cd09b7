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
from traceferry.importers.perf.spaces import (
    FIRST_PROGRAM,
    KERNEL_SPACE,
    OTHER_SPACE,
    AddressResolution,
    Memory,
    resolve_addresses,
)
from traceferry.kernels import tables_kernel
from traceferry.kernels.tables import Interned
from traceferry.model import Array, Trace

MAX_FRAMES = 1024


def stacks_of(
    samples: Samples, memory: Memory, natives: Natives, maps: Sequence[Mmap], trace: Trace, offset_ns: int, where: str
) -> Array:
    """A row of the trace's stacks for each sample, -1 for none. where: the recording, for the report."""
    if len(samples) == 0:
        return np.zeros(0, np.int32)
    space = (FIRST_PROGRAM + memory.programs.of_samples).astype(np.int32)
    paths, keys = _collect(samples, space, offset_ns)
    resolution = resolve_addresses(keys.spaces, keys.addresses, keys.first_ts, keys.last_ts, memory)
    frames = frames_of(resolution, maps, natives, trace, MAX_FRAMES)
    stack, counts = _compose(paths, len(keys.spaces), resolution, frames, trace)
    report = trace.report
    report.note("stack_cut", counts.cut, where=where)
    report.note("code_unknown", counts.unknown, where=where)
    report.note("code_announced_late", counts.late, where=where)
    report.note("mappings_left_out", resolution.n_left_out, where=where)
    return stack


def _space_of_ip(cpumode: Array, program: Array) -> Array:
    mode = np.ascontiguousarray(cpumode)
    others = np.where(mode == KERNEL_MODE, np.int32(KERNEL_SPACE), np.int32(OTHER_SPACE))
    return np.where(mode == USER_MODE, program, others).astype(np.int32)


@dataclass(frozen=True)
class Keys:
    """Every address that samples ask for, once for each space, with the first and the last time."""

    spaces: Array
    addresses: Array
    first_ts: Array
    last_ts: Array


@dataclass(frozen=True)
class Paths:
    """The keys of each sample, as `stacks_kernel.collect` shares them between samples of a thread. longest: how many a
    sample has at most."""

    thread: Array
    ts: Array
    n_shared: Array
    n_own: Array
    own: Array
    longest: int


@dataclass(frozen=True)
class Counts:
    """How many samples were cut; how many of their addresses stand for nothing, or for code that is announced later."""

    cut: int
    unknown: int
    late: int


def _collect(samples: Samples, program: Array, offset_ns: int) -> tuple[Paths, Keys]:
    n = len(samples)
    length = np.ascontiguousarray(samples.chain_n, np.int32)
    longest = int(length.max()) + 1
    thread = np.ascontiguousarray(samples.tid, np.int32)
    ts = np.ascontiguousarray(samples.ts + offset_ns, np.int64)
    columns = (
        samples.chain,
        np.ascontiguousarray(samples.chain_start, np.int64),
        length,
        program,
        np.ascontiguousarray(samples.ip, np.uint64),
        _space_of_ip(samples.cpumode, program),
        thread,
        ts,
    )
    n_shared, n_own = np.empty(n, np.int32), np.empty(n, np.int32)
    own = np.empty(int(length.sum(dtype=np.int64)) + n, np.int32)
    types = (np.int32, np.uint64, np.int64, np.int64)
    keys = Interned(tables_kernel.enter_addresses, 2, [np.empty(0, dtype) for dtype in types])
    keys.grow(0, max(1 << 14, 2 * longest))
    state, latest = np.zeros(3, np.int64), np.zeros(stacks_kernel.LATEST_SHAPE, np.int64)
    words = np.zeros((stacks_kernel.WORDS_SHAPE[0], longest, stacks_kernel.WORDS_SHAPE[1]), np.int32)
    while True:
        spaces, addresses, first_ts, last_ts = keys.columns
        stacks_kernel.collect(
            *columns, state, latest, words, spaces, addresses, first_ts, last_ts, keys.slots, n_shared, n_own, own
        )
        _, n_all, n_keys = state.tolist()
        if state[0] == n:
            found = Keys(*(column[:n_keys] for column in keys.columns))
            return Paths(thread, ts, n_shared, n_own, own[:n_all], longest), found
        keys.grow(n_keys, 4 * keys.size)


def single_frames(first_version: Array, frames: FramesOf, flags: Array) -> Array:
    """int32 [n_keys, 2]: the frame and flags of keys that always stand for one frame; -1 and 0 for others."""
    version = first_version[:-1]
    is_single = (np.diff(first_version) == 1) & (np.diff(frames.first)[version] == 1)
    found = np.empty((len(version), 2), np.int32)
    found[:, 0], found[:, 1] = -1, 0
    found[is_single, 0] = frames.frames[frames.first[version[is_single]]]
    found[is_single, 1] = flags[version[is_single]]
    return found


def _compose(
    paths: Paths, n_keys: int, resolution: AddressResolution, frames: FramesOf, trace: Trace
) -> tuple[Array, Counts]:
    """The stack of each sample; adds the stacks to the trace."""
    first_version = np.searchsorted(resolution.key, np.arange(n_keys + 1))
    before = trace.stacks.table()
    stacks = Interned(tables_kernel.enter_pairs, 2, (before["prefix"], before["frame"]))
    stacks.grow(len(before), max(1 << 15, 2 * (len(before) + MAX_FRAMES)))
    state = np.array([0, 0, len(before), 0, 0, 0], np.int64)
    n_threads, n_columns = stacks_kernel.PATH_SHAPE
    path = np.zeros((n_threads, paths.longest, n_columns), np.int32)
    until = np.zeros((n_threads, paths.longest), np.int64)
    n_composed = np.zeros(n_threads, np.int32)
    stack = np.empty(len(paths.ts), np.int32)
    is_unknown, is_late = (resolution.kind == NOTHING).view(np.uint8), resolution.is_late.view(np.uint8)
    single = single_frames(first_version, frames, is_unknown | is_late << 1)
    while True:
        prefix, frame = stacks.columns
        stacks_kernel.compose(
            paths.thread, paths.ts, paths.n_shared, paths.n_own, paths.own, single, first_version, resolution.start,
            frames.first, frames.frames, is_unknown, is_late, MAX_FRAMES, state, path, until, n_composed, prefix, frame,
            stacks.slots, stack,
        )  # fmt: skip
        at, _, n_stacks, *counts = state.tolist()
        if at == len(stack):
            break
        stacks.grow(n_stacks, 4 * stacks.size)
    prefix, frame = (column[len(before) : n_stacks].copy() for column in stacks.columns)
    trace.stacks.extend(prefix=prefix, frame=frame)
    return stack, Counts(*counts)
