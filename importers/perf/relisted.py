"""Map: samples at addresses of which nothing tells which of several functions was there, since code was put where other
code had been: a perf-PID.map has no times, and samples without times can be of all that a jitdump ever had there."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from traceferry.importers.perf.layout import USER_MODE
from traceferry.importers.perf.recording import Samples
from traceferry.importers.perf.regions import Regions, held
from traceferry.importers.perf.spaces import Memory
from traceferry.model import Array, TraceBuilder, rows_by_key


def note_relisted(memory: Memory, samples: Samples, trace: TraceBuilder) -> None:
    """Reports for each program how many samples are in such code."""
    functions = trace.code["func"]
    of_kind: tuple[tuple[str, dict[int, Regions], Callable[[int], Hashable]], ...] = (
        ("map_ambiguous", memory.lists(), lambda owner: _listed(memory, owner)),
        ("code_ambiguous", memory.timeless_code(), lambda owner: int(functions[owner])),
    )
    if not any(regions for _, regions, _ in of_kind):
        return
    rows_of = rows_by_key(memory.programs.of_samples)
    for kind, of_program, function_of in of_kind:
        for number, regions in of_program.items():
            rows = rows_of.get(number, np.zeros(0, np.int64))
            rows = rows[samples.cpumode[rows] == USER_MODE]
            addresses, n_samples = np.unique(samples.ip[rows], return_counts=True)
            program = memory.programs.all[number]
            addresses, n_samples = _chosen(memory.is_in_no_file(program, addresses), addresses, n_samples)
            n = int(n_samples[_are_of_several(addresses, regions, function_of)].sum())
            detail = f"{n} samples of {program.name or 'process'} {program.pid}"
            trace.report.note(kind, n, where=f"{program.pid} {number}", detail=detail)


def _listed(memory: Memory, owner: int) -> Hashable:
    """Returns the function of a line of a list: its tiers are one."""
    text, producer, _ = memory.names[owner]
    assert producer is not None, "a list's names are its producer's"
    return producer.parse(text)._replace(tier=None, kind="", category="")


def _chosen(of: Array, *columns: Array) -> tuple[Array, ...]:
    return tuple(column[of] for column in columns)


def _are_of_several(addresses: Array, regions: Regions, function_of: Callable[[int], Hashable]) -> Array:
    """bool: which of the addresses (uint64, rising) regions of different functions hold. function_of: of an owner."""
    first, last = held(regions, addresses)
    several = np.zeros(len(addresses), bool)
    holding = np.flatnonzero(last > first)
    n = len(addresses) + 1
    depth = np.cumsum(np.bincount(first[holding], minlength=n) - np.bincount(last[holding], minlength=n))
    if depth.max() <= 1:
        return several
    numbers: dict[Hashable, int] = {}
    holder = np.full(len(addresses), -1)
    for row in holding.tolist():
        number = numbers.setdefault(function_of(int(regions.owner[row])), len(numbers))
        mine = slice(int(first[row]), int(last[row]))
        several[mine] |= (holder[mine] >= 0) & (holder[mine] != number)
        holder[mine] = number
    return several
