"""Map: the callchains of samples become stacks of the trace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceferry.importers.perf._stacks import Paths, StackComposer, collect
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
from traceferry.model import Array, TraceBuilder

MAX_FRAMES = 1024


def stacks_of(
    samples: Samples,
    memory: Memory,
    natives: Natives,
    maps: Sequence[Mmap],
    trace: TraceBuilder,
    offset_ns: int,
    where: str,
) -> Array:
    """Returns a row of the trace's stacks for each sample, -1 for none. where: the recording, for the report."""
    if len(samples) == 0:
        return np.zeros(0, np.int32)
    space = (FIRST_PROGRAM + memory.programs.of_samples).astype(np.int32)
    paths = _collect(samples, space, offset_ns)
    resolution = resolve_addresses(paths.spaces, paths.addresses, paths.first_ts, paths.last_ts, memory)
    frames = frames_of(resolution, maps, natives, trace, MAX_FRAMES)
    composer = _composer(len(paths.spaces), resolution, frames)
    before = trace.stacks
    stack = composer.compose(paths, before["prefix"], before["frame"])
    trace.stacks.extend(prefix=composer.prefix[len(before) :].copy(), frame=composer.frame[len(before) :].copy())
    report = trace.report
    report.note("stack_cut", composer.n_cut, where=where)
    report.note("code_unknown", composer.n_unknown, where=where)
    report.note("code_announced_late", composer.n_late, where=where)
    report.note("mappings_left_out", resolution.n_left_out, where=where)
    return stack


def _space_of_ip(cpumode: Array, program: Array) -> Array:
    mode = np.ascontiguousarray(cpumode)
    others = np.where(mode == KERNEL_MODE, np.int32(KERNEL_SPACE), np.int32(OTHER_SPACE))
    return np.where(mode == USER_MODE, program, others).astype(np.int32)


def _collect(samples: Samples, program: Array, offset_ns: int) -> Paths:
    return collect(
        samples.chain,
        np.ascontiguousarray(samples.chain_start, np.int64),
        np.ascontiguousarray(samples.chain_n, np.int32),
        program,
        np.ascontiguousarray(samples.ip, np.uint64),
        _space_of_ip(samples.cpumode, program),
        np.ascontiguousarray(samples.tid, np.int32),
        np.ascontiguousarray(samples.ts + offset_ns, np.int64),
    )


def _composer(n_keys: int, resolution: AddressResolution, frames: FramesOf) -> StackComposer:
    first_version = np.searchsorted(resolution.key, np.arange(n_keys + 1))
    is_unknown, is_late = (resolution.kind == NOTHING).view(np.uint8), resolution.is_late.view(np.uint8)
    return StackComposer(
        first_version, resolution.start, frames.first, frames.frames, is_unknown, is_late, MAX_FRAMES
    )  # fmt: skip
