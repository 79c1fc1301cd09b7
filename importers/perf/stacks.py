"""Map: the callchains of samples become stacks of the trace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceferry.importers.perf._stacks import OfMode, StackComposer, collect
from traceferry.importers.perf.frames import frames_of
from traceferry.importers.perf.guests import GUEST_KERNEL, GUEST_USER
from traceferry.importers.perf.layout import KERNEL_MODE, USER_MODE
from traceferry.importers.perf.natives import Natives
from traceferry.importers.perf.recording import Mmap, Samples
from traceferry.importers.perf.regions import NOTHING
from traceferry.importers.perf.spaces import (
    FIRST_PROGRAM,
    GUEST_SPACE,
    KERNEL_SPACE,
    OTHER_SPACE,
    Memory,
    resolve_addresses,
)
from traceferry.model import Array, TraceBuilder, distinct
from traceferry.native.nodes import NodeTable
from traceferry.unwinding.endings import TRUNCATED

# Twice as many addresses as a record of perf has room for: what is beyond is inlined.
MAX_FRAMES = 16384
# PERF_RECORD_MISC_HYPERVISOR, _GUEST_KERNEL, _GUEST_USER: what is mapped there is not recorded. The kernel records no
# callchains of them either. Addresses in a guest's kernel may have names.
GUEST_KERNEL_MODE, GUEST_USER_MODE = 4, 5
N_MODES = 8
# A program runs code that it maps a moment before the kernel records that: fewer samples, or a smaller part of all, are
# no sign of a mapping without a record.
MOST_FEW, UNMAPPED_FROM = 10, 0.01
# perf reads what the program that it runs has mapped when it begins a part: of one that is gone then, nothing.
OF_OTHER_PART = (
    "this is a part of a recording, of perf record --switch-output, and what was mapped is in those before: give all "
    "parts to one command"
)
NAMELESS_MODES = {3: "[hypervisor]", GUEST_KERNEL_MODE: GUEST_KERNEL, GUEST_USER_MODE: GUEST_USER}


def stacks_of(
    samples: Samples,
    memory: Memory,
    natives: Natives,
    maps: Sequence[Mmap],
    trace: TraceBuilder,
    offset_ns: int,
    where: str,
    is_part: bool = False,
) -> Array:
    """Returns a row of the trace's stacks for each sample, -1 for none. where: the recording, for the report; is_part:
    whether perf wrote it in parts, of which this is one."""
    if len(samples) == 0:
        return np.zeros(0, np.int32)
    program = (memory.programs.of_samples + np.int32(FIRST_PROGRAM)).astype(np.int32, copy=False)
    mode = np.ascontiguousarray(samples.cpumode)
    ip = np.ascontiguousarray(samples.ip, np.uint64)
    for nth, name in NAMELESS_MODES.items():
        nameless = mode == nth
        if not nameless.any():
            continue
        if nth == GUEST_KERNEL_MODE:
            nameless = nameless & (ip >> np.uint64(63) == 0)
        if np.any(nameless):
            ip = np.where(nameless, memory.ending(name), ip)
    space_of_mode = np.full(N_MODES, OTHER_SPACE, np.int32)
    space_of_mode[USER_MODE], space_of_mode[KERNEL_MODE] = OfMode.OWN_SPACE, KERNEL_SPACE
    space_of_mode[[GUEST_KERNEL_MODE, GUEST_USER_MODE]] = GUEST_SPACE
    paths = collect(
        samples.chain,
        np.ascontiguousarray(samples.chain_start, np.int64),
        np.ascontiguousarray(samples.chain_n, np.int32),
        program,
        ip,
        mode,
        space_of_mode,
        np.ascontiguousarray(samples.ts + offset_ns if offset_ns else samples.ts, np.int64),
    )
    found = resolve_addresses(paths.spaces, paths.addresses, paths.first_ts, paths.last_ts, memory)
    first_frame, frames = frames_of(found, maps, natives, trace, MAX_FRAMES)
    first_version = np.searchsorted(found.key, np.arange(len(paths.spaces) + 1))
    is_unknown, is_late = (found.kind == NOTHING).view(np.uint8), found.is_late.view(np.uint8)
    may_be_cut = paths.longest * int(np.diff(first_frame).max(initial=0)) > MAX_FRAMES
    composer = StackComposer(
        first_version, found.start, first_frame, frames, is_unknown, is_late, MAX_FRAMES,
        _cut_frame(trace) if may_be_cut else -1,
    )  # fmt: skip
    n_before, stacks = len(trace.stacks), NodeTable()
    stacks.append(trace.stacks["prefix"], trace.stacks["frame"])
    stack = composer.compose(paths, stacks)
    trace.stacks.extend(prefix=stacks.parent[n_before:].copy(), frame=stacks.key[n_before:].copy())
    report = trace.report
    report.note("stack_cut", composer.n_cut, where=where)
    n_unmapped, fewest = 0, max(MOST_FEW, UNMAPPED_FROM * len(samples))
    # A sample that is at such an address itself has one at least.
    if composer.n_unknown >= fewest:
        unknown = frames[first_frame[:-1][found.kind == NOTHING]]
        n_unmapped = _n_unmapped(samples, trace.stacks["frame"], stack, unknown)
        n_unmapped = n_unmapped if n_unmapped >= fewest else 0
    report.note("code_unmapped", n_unmapped, where=where, advice=OF_OTHER_PART if is_part else None)
    report.note("code_unknown", composer.n_unknown - n_unmapped, where=where)
    report.note("code_announced_late", composer.n_late, where=where)
    report.note("mappings_left_out", found.n_left_out, where=where)
    return stack


def _n_unmapped(samples: Samples, frame_of: Array, stack: Array, unknown: Array) -> int:
    """Counts the samples of programs that are themselves at an address where nothing is mapped. frame_of: of each
    stack; unknown: the frames of such addresses."""
    if not len(unknown):
        return 0
    is_unknown = np.append(np.isin(frame_of, distinct(unknown)), False)
    return int(np.count_nonzero(is_unknown[stack[samples.cpumode == USER_MODE]]))


def _cut_frame(trace: TraceBuilder) -> int:
    func = trace.funcs.intern(name=trace.strings.intern(TRUNCATED), kind=trace.strings.intern("function"))
    return trace.frames.intern(func=func, category=trace.add_category("Other"))
