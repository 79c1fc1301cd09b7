"""Map: branch stacks of calls (perf record --call-graph lbr) become the user's part of callchains.

Source: perf's util/machine.c, resolve_lbr_callchain_sample: the kernel's part of a chain is followed by the branches,
each of which is a call that has not returned. The first address is that of the sample, and not, as there, the entry of
the function that was called last, which is the same function without the line.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traceferry.common.report import Report
from traceferry.importers.perf.branches import entries_of, has_call_branches
from traceferry.importers.perf.chains import GUEST, USER, Replacement, before_user, chains_of, joined, with_chains
from traceferry.importers.perf.layout import USER_MODE
from traceferry.importers.perf.recording import Recording, Samples
from traceferry.importers.perf.spaces import Memory
from traceferry.model import Array
from traceferry.unwinding.endings import TRUNCATED

# Samples whose branches are in memory at once.
AT_ONCE = 1 << 15
# Processors record so many branches; where the recording does not tell, the most that a sample has is taken for it.
USUAL_DEPTHS = (4, 8, 16, 32, 64)


def with_call_branches(
    samples: Samples, recording: Recording, memory: Memory, keep_apart: bool, report: Report, where: str
) -> Samples:
    """Returns the samples with callchains of calls that the processor recorded. keep_apart: stacks that may have had
    more callers than it can record are put under a frame that says so; where: the recording, for the report."""
    of_calls = np.array([has_call_branches(event) for event in recording.events])
    chosen = np.flatnonzero(of_calls[samples.event] & (samples.branch_n > 0))
    if not len(chosen):
        return samples
    most = recording.features.max_branches or int(samples.branch_n[chosen].max())
    is_full = (samples.branch_n[chosen] >= most) & (recording.features.max_branches > 0 or most in USUAL_DEPTHS)
    replacements = []
    n_full = 0
    for begin in range(0, len(chosen), AT_ONCE):
        rows, full = chosen[begin : begin + AT_ONCE], is_full[begin : begin + AT_ONCE]
        for mine, replacement in _replacements(samples, recording, rows):
            n_full += int(full[mine].sum())
            ending = memory.ending(TRUNCATED) if keep_apart and full[mine].any() else 0
            replacements.append(_under(replacement, full[mine], ending))
    report.note("lbr_full", n_full, where=where, detail=f"{most} calls")
    return with_chains(samples, replacements)


def _replacements(samples: Samples, recording: Recording, rows: Array) -> Iterator[tuple[Array, Replacement]]:
    """Yields (which of the rows, their chains): those that have a user's part, which the branches stand for."""
    kernel, n_kernel, n_user = before_user(samples, rows)
    # perf record -j stack records no chains.
    has_none = (samples.chain_n[rows] == 0) & (samples.cpumode[rows] == USER_MODE)
    has_user = (n_user > 0) | has_none
    mine = np.flatnonzero(has_user)
    if not len(mine):
        return
    kernel = kernel[np.repeat(has_user, n_kernel)]
    entries = entries_of(recording, rows[mine])
    latest = entries.end[entries.nth == 0]
    leaf = np.where(n_user[mine] > 1, _first_of_user(samples, rows[mine], n_kernel[mine]), latest)
    leaf = np.where(has_none[mine], samples.ip[rows[mine]], leaf)
    heads = np.stack((np.full_like(leaf, USER), leaf), axis=1).ravel()
    # What is not behind a marker counts as an address to which a call returns, one byte behind the call.
    calls = entries.begin + np.uint64(1)
    n_calls = samples.branch_n[rows[mine]].astype(np.int64)
    chain, first = joined((kernel, n_kernel[mine]), (heads, np.full(len(mine), 2)), (calls, n_calls))
    yield mine, Replacement(rows[mine], chain, first[:-1], np.diff(first))


def _first_of_user(samples: Samples, rows: Array, n_kernel: Array) -> Array:
    """Returns the address behind the marker of the user's part, or any number where there is none."""
    recorded, n = np.append(chains_of(samples, rows), np.uint64(0)), samples.chain_n[rows].astype(np.int64)
    at = np.cumsum(n) - n + n_kernel + 1
    found: Array = recorded[np.minimum(at, len(recorded) - 1)]
    return found


def _under(chains: Replacement, full: Array, ending: int) -> Replacement:
    """Returns the chains with an address at the end of those that are full."""
    if not ending:
        return chains
    n_more = 2 * full.astype(np.int64)
    more = np.tile(np.array([GUEST, ending], np.uint64), int(full.sum()))
    chain, first = joined((chains.chain, chains.n), (more, n_more))
    return Replacement(chains.rows, chain, first[:-1], np.diff(first))
