"""Call-frame information: a section's CIEs and FDEs become rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceferry.model import Array, distinct
from traceferry.unwinding._cfi import FrameSection, RuleSets
from traceferry.unwinding.machine import Machine

# Bytes of instructions of an FDE; the longest seen has some hundred.
MAX_CODE_SIZE = 1 << 16


@dataclass(frozen=True)
class Section:
    """A section of call-frame information. data: its bytes; address: of the first one, as the linker wrote it;
    is_debug: `.debug_frame`, not `.eh_frame`."""

    data: memoryview
    address: int
    is_debug: bool = False


@dataclass(frozen=True)
class Rows:
    """A table of rule sets by address. pc: uint64, rising, link-time addresses; rule: int32, into the rule sets, -1
    where there is none. A row holds from its address to the next row's."""

    pc: Array
    rule: Array


@dataclass(frozen=True)
class Problems:
    """The damage of a section. n_bad: records that cannot be read; is_cut: a record's length was wrong, and the rest of
    the section is not read."""

    n_bad: int
    is_cut: bool


def rows_of(section: Section, machine: Machine, big: bool, rules: RuleSets) -> tuple[Rows, Problems]:
    """Returns the rows of a section, by link-time address, and what was damaged. Their rule sets go to `rules`. Any
    bytes give rows."""
    frames = FrameSection(section.data, section.address, section.is_debug, big, machine.word_size, machine.n_registers)
    at, start, end, cie_at = frames.records()
    is_cie = cie_at < 0
    frames.read_cies(at[is_cie], start[is_cie], end[is_cie])
    start, stop, cie_at = start[~is_cie], end[~is_cie], cie_at[~is_cie]
    first, size, code, cie = frames.ranges(start, stop, cie_at)
    is_sound = (code >= 0) & (stop - code <= MAX_CODE_SIZE)
    # Code that the linker discarded has an address of 0, or a size of 0.
    kept = np.flatnonzero(is_sound & (size > 0) & (first > 0) & (first + size > first))
    kept = kept[np.argsort(first[kept], kind="stable")]
    first, last = first[kept], first[kept] + size[kept]
    # Of FDEs that overlap, the one that starts later holds: that is what a binary search finds.
    last[:-1] = np.minimum(last[:-1], first[1:])
    is_held = last > first
    kept, first, last = kept[is_held], first[is_held], last[is_held]
    pc, rule, n_unreadable = frames.rows(first, last, code[kept], stop[kept], cie[kept], rules)
    return Rows(pc, rule), Problems(int((~is_sound).sum()) + n_unreadable, frames.is_cut)


def merged(parts: list[Rows]) -> Rows:
    """Returns one table of several: where an earlier part has no rule, a later one answers."""
    if len(parts) == 1:
        return parts[0]
    pc = distinct(np.concatenate([np.zeros(0, np.uint64), *(part.pc for part in parts)]))
    rule = np.full(len(pc), -1, np.int32)
    for part in reversed(parts):
        # Before its first row a part has no rule.
        found = np.append(np.int32(-1), part.rule)[np.searchsorted(part.pc, pc, side="right")]
        rule = np.where(found >= 0, found, rule)
    changes = np.diff(rule, prepend=-1) != 0
    return Rows(pc[changes], rule[changes])
