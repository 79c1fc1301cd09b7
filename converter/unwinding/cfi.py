"""Call-frame information: a section's CIEs and FDEs become rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceferry.model import Array, distinct
from traceferry.unwinding._cfi import FrameSection, RuleSets
from traceferry.unwinding.machine import Machine


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
    pc, rule, n_bad = frames.rows(rules)
    return Rows(pc, rule), Problems(n_bad, frames.is_cut)


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
