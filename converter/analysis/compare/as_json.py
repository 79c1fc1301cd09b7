"""The comparison as JSON that scripts rely on: FORMATS.md describes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from traceferry.analysis.compare.comparison import Compared, Comparison, Row
from traceferry.analysis.compare.disturbed import RunFacts
from traceferry.analysis.compare.gate import Outcome
from traceferry.analysis.compare.headline import headline, verdict_of

VERSION = 1
Json = dict[str, Any]
# What is said of a row, and how Row calls it where that differs.
ROW_NAMES = (
    "verdict", "base", "new", "change", "low", "high", "p", "q", "exact", "within", "runs_needed", "level_open",
    "may_be_unnamed", "may_be_hidden", "amounts",
)  # fmt: skip
ROW = {"exact": "is_exact", "runs_needed": "runs", "level_open": "is_level_open"}


def as_json(comparison: Comparison, outcomes: Sequence[Outcome] = ()) -> Json:
    options = comparison.options
    return {
        "version": VERSION,
        "verdict": verdict_of(comparison, outcomes),
        "headline": headline(comparison, outcomes),
        "options": {"alpha": options.alpha, "margin": options.margin, "normalise": options.method},
        "base": [_run(run) for run in comparison.base],
        "new": [_run(run) for run in comparison.new],
        "tests": comparison.n_tests,
        "sample_ns": comparison.sample_ns or None,
        "notes": list(comparison.notes),
        "whole": _table(comparison.whole),
        "tables": [_table(table) for table in comparison.tables],
        "tiers": [
            {
                "function": _key(last.function),
                "base": list(last.base),
                "new": list(last.new),
                "significant": comparison.tiers_changed,
            }
            for last in comparison.tiers
        ],
        "gates": [
            {"expression": outcome.gate.text, "status": outcome.status, "reasons": list(outcome.lines)}
            for outcome in outcomes
        ],
    }


def _run(run: RunFacts) -> Json:
    return asdict(run) | {"disturbed": run.disturbed or None}


def _table(table: Compared) -> Json:
    return {
        "metric": table.name,
        "title": table.amounts.title,
        "unit": table.amounts.unit,
        "model": table.amounts.model,
        "normalised": table.factors.method,
        "factors": table.factors.of_run.tolist(),
        "level": _level(table),
        "rows": [_row(row) | _other_unit(row, table) for row in table.rows],
    }


def _level(table: Compared) -> Json | None:
    """Returns how many times as much as the base the new side has, by the functions that tell it; null where none
    do."""
    if table.level is None:
        return None
    ratio, *interval = table.level.ratio
    low, high = (bound if 0 < bound < float("inf") else None for bound in interval)
    return {
        "ratio": ratio, "low": low, "high": high, "functions": table.level.n_votes, "open": table.is_level_open
    }  # fmt: skip


def _row(row: Row) -> Json:
    return _key(row.key) | {name: getattr(row, ROW.get(name, name)) for name in ROW_NAMES}


def _other_unit(row: Row, table: Compared) -> Json:
    """Returns the unit of a row that is not of the table's."""
    unit = table.amounts.unit_of(row.key)
    return {} if unit == table.amounts.unit else {"unit": unit}


def _key(key: tuple[Any, ...]) -> Json:
    if len(key) < 4:
        return {"name": key[0]}
    name, file, line, kind = key
    return {"name": name, "file": file or None, "line": line or None, "kind": kind}
