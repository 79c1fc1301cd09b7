"""Map: samples at addresses that a perf-PID.map lists under several names. It has no times: code that was put where
other code had been names what ran there before, too."""

from __future__ import annotations

import numpy as np

from traceferry.common.report import Report
from traceferry.importers.perf.layout import USER_MODE
from traceferry.importers.perf.recording import Samples
from traceferry.importers.perf.regions import Regions, held
from traceferry.importers.perf.spaces import Listed, Memory
from traceferry.model import Array, rows_by_key
from traceferry.symbolication.jit_names import Name


def note_relisted(memory: Memory, samples: Samples, report: Report) -> None:
    """Reports for each program how many samples are in such code."""
    lists = memory.lists()
    if not lists:
        return
    rows_of = rows_by_key(memory.programs.of_samples)
    for number, listed in lists.items():
        rows = rows_of.get(number, np.zeros(0, np.int64))
        rows = rows[samples.cpumode[rows] == USER_MODE]
        addresses, n_samples = np.unique(samples.ip[rows], return_counts=True)
        program = memory.programs.all[number]
        addresses, n_samples = _chosen(memory.is_in_no_file(program, addresses), addresses, n_samples)
        is_several = _have_several_names(addresses, listed, memory.names)
        n = int(n_samples[is_several].sum())
        detail = f"{n} samples of {program.name or 'process'} {program.pid}"
        report.note("map_ambiguous", n, where=f"{program.pid} {number}", detail=detail)


def _chosen(of: Array, *columns: Array) -> tuple[Array, ...]:
    return tuple(column[of] for column in columns)


def _have_several_names(addresses: Array, listed: Regions, names: list[Listed]) -> Array:
    """bool: which of the addresses (uint64, rising) lines of different functions hold."""
    first, last = held(listed, addresses)
    several = np.zeros(len(addresses), bool)
    holding = np.flatnonzero(last > first)
    n = len(addresses) + 1
    depth = np.cumsum(np.bincount(first[holding], minlength=n) - np.bincount(last[holding], minlength=n))
    if depth.max() <= 1:
        return several
    numbers: dict[Name, int] = {}
    holder = np.full(len(addresses), -1)
    for row in holding.tolist():
        text, producer, _ = names[int(listed.owner[row])]
        assert producer is not None, "a list's names are its producer's"
        # The tiers of a function are one.
        name = producer.parse(text)._replace(tier=None, kind="", category="")
        number = numbers.setdefault(name, len(numbers))
        mine = slice(int(first[row]), int(last[row]))
        several[mine] |= (holder[mine] >= 0) & (holder[mine] != number)
        holder[mine] = number
    return several
