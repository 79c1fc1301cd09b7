"""Unwinding rows: for each address of a module, how to find the caller's registers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from traceferry.kernels.tables import Growing
from traceferry.model import Array, distinct
from traceferry.unwinding.cfi_inlined import EXPRESSION, LENGTH_BITS, VAL_EXPRESSION

RULE_COLUMNS = {
    "cfa_kind": np.uint8,
    "cfa_register": np.uint8,
    "cfa_value": np.int64,
    "column": np.uint8,
    "signal": np.uint8,
}
ENTRY_COLUMNS = {"entry_register": np.uint8, "entry_kind": np.uint8, "entry_value": np.int64}


@dataclass(frozen=True)
class Rows:
    """pc: uint64, rising, link-time addresses; rule: int32, into the rule sets, -1 where there is none. A row holds
    from its address to the next row's."""

    pc: Array
    rule: Array


class RuleSets:
    """All rule sets that modules share, in columns (RULE_COLUMNS; entries first[i] to first[i + 1] of ENTRY_COLUMNS).

    Values of rules that are expressions are place << LENGTH_BITS | length in a pool of their bytes.
    """

    def __init__(self) -> None:
        self._columns = {name: Growing(np.zeros(0, t)) for name, t in (RULE_COLUMNS | ENTRY_COLUMNS).items()}
        self._first = Growing(np.zeros(1, np.int64))
        self._pool = Growing(np.zeros(0, np.uint8))
        self._places: dict[bytes, int] = {}

    def columns(self) -> tuple[Array, ...]:
        """Those of rules, `first`, those of entries, the pool; as they are now."""
        rules, entries = ([self._columns[name].values for name in names] for names in (RULE_COLUMNS, ENTRY_COLUMNS))
        return (*rules, self._first.values, *entries, self._pool.values)

    def add(self, rules: dict[str, Array], entries: dict[str, Array], first: Array, section: memoryview) -> int:
        """Appends rule sets whose expressions lie in `section`; returns the number of the first."""
        offset = len(self._first) - 1
        rules["cfa_value"] = self._pooled(rules["cfa_value"], rules["cfa_kind"] == EXPRESSION, section)
        is_expression = (entries["entry_kind"] == EXPRESSION) | (entries["entry_kind"] == VAL_EXPRESSION)
        entries["entry_value"] = self._pooled(entries["entry_value"], is_expression, section)
        self._first.extend(first[1:] + self._first.values[-1])
        for name, values in (rules | entries).items():
            self._columns[name].extend(values)
        return offset

    def _pooled(self, values: Array, is_expression: Array, section: memoryview) -> Array:
        pooled = values.copy()
        for nth in np.flatnonzero(is_expression).tolist():
            start, length = int(values[nth]) >> LENGTH_BITS, int(values[nth]) & ((1 << LENGTH_BITS) - 1)
            code = bytes(section[start : start + length])
            if code not in self._places:
                self._places[code] = len(self._pool) << LENGTH_BITS | length
                self._pool.extend(np.frombuffer(code, np.uint8))
            pooled[nth] = self._places[code]
        return pooled


def merged(parts: list[Rows]) -> Rows:
    """One table of several: where an earlier part has no rule, a later one answers."""
    if len(parts) == 1:
        return parts[0]
    pc = distinct(np.concatenate([part.pc for part in parts]))
    rule = np.full(len(pc), -1, np.int32)
    for part in reversed(parts):
        at = _at(part)(pc)
        rule = np.where(at >= 0, at, rule)
    changes = np.concatenate(([True], rule[1:] != rule[:-1])) if len(pc) else np.zeros(0, bool)
    return Rows(pc[changes], rule[changes])


def _at(rows: Rows) -> Callable[[Array], Array]:
    def rule_at(pc: Array) -> Array:
        nth = np.searchsorted(rows.pc, pc, side="right") - 1
        return np.where(nth >= 0, rows.rule[np.maximum(nth, 0)], -1) if len(rows.pc) else np.full(len(pc), -1)

    return rule_at
