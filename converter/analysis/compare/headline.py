"""The first line of a comparison, the same in text, Markdown, JSON and the page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceferry.analysis.compare import figures
from traceferry.analysis.compare.comparison import Compared, Comparison, Row
from traceferry.analysis.compare.events import unlike
from traceferry.analysis.compare.gate import Outcome
from traceferry.analysis.compare.level import ROUGH
from traceferry.symbolication.short_names import brief_name, short_name

# Rows that are named.
MOST_NAMED = 3
# Letters of a name, which is shortened beyond.
LONGEST_NAME = 80
# The part of all differences from which on a row is nearly all of them.
NEARLY_ALL = 0.9
# The part of the whole from which on a difference is worth to be told of.
NOTICEABLE = 0.01
# Which table names functions: the first that has something to tell.
NAMING = ("self", "total", "allocated_bytes", "calls")
WORDS = {
    "failed": "a gate failed", "slower": "slower", "faster": "faster", "changed": "changed",
    "same": "no significant change", "identical": "identical", "unknown": "cannot tell",
}  # fmt: skip


def verdict_of(comparison: Comparison, outcomes: Sequence[Outcome] = ()) -> str:
    """Returns "failed" if a gate did; "identical" where all amounts are the same, run by run; "unknown" where a side
    has one run, or functions differ in all runs that may do so because the machine does; else "slower", "faster",
    "changed" or "same", by what is significant of times."""
    if any(outcome.status == "failed" for outcome in outcomes):
        return "failed"
    if comparison.is_identical:
        return "identical"
    words = {row.verdict for table in (comparison.whole, *comparison.tables) for row in table.changed}
    if "slower" in words or "faster" in words:
        return "changed" if {"slower", "faster"} <= words else "slower" if "slower" in words else "faster"
    if words or comparison.tiers_changed:
        return "changed"
    return "unknown" if min(comparison.n_runs) < 2 or _may_have_changed(comparison) else "same"


def headline(comparison: Comparison, outcomes: Sequence[Outcome] = ()) -> str:
    """Returns the verdict in a line, with the largest changes, and why inputs are unlike."""
    notes = "".join(f"; unlike inputs: {note}" for note in unlike(comparison.sides))
    return _headline(comparison, outcomes) + notes


def _headline(comparison: Comparison, outcomes: Sequence[Outcome]) -> str:
    verdict = verdict_of(comparison, outcomes)
    word = WORDS[verdict]
    if verdict == "failed":
        return f"{word}: {', '.join(outcome.gate.text for outcome in outcomes if outcome.status == 'failed')}"
    if verdict == "identical":
        return f"{word}: both sides have the same calls, samples, times and sizes"
    if verdict == "unknown" and min(comparison.n_runs) > 1:
        named = ", ".join(_said(row, table, comparison) for table, row in _may_have_changed(comparison)[:MOST_NAMED])
        return f"{word}: {named}; or the machine: --normalise none takes it to be the same"
    if verdict == "unknown":
        sides = "each side" if max(comparison.n_runs) == 1 else "one side"
        largest = _largest(comparison)
        rest = f"; the largest differences are: {', '.join(largest)}" if largest else ""
        return f"{word}: one run on {sides}{rest}"
    if verdict == "same":
        unknown = [row for row in comparison.whole.rows if row.verdict == "unknown"]
        return "; ".join([word, *(_unknown(row, comparison) for row in unknown)])
    changed = _changed(comparison)
    return f"{word}: {', '.join(changed)}" if changed else word


def _unknown(row: Row, comparison: Comparison) -> str:
    figure = ", ".join(filter(None, (figures.change(row), figures.interval(row))))
    return f"{row.shown} {figure}: {figures.verdict(row, comparison.n_runs)}"


def _changed(comparison: Comparison) -> list[str]:
    """Returns what changed: the whole, then the rows of the first table that has any."""
    found = [_said(row, comparison.whole, comparison) for row in comparison.whole.changed]
    tables = sorted(comparison.tables, key=_rank)
    changed = next((table for table in tables if table.changed), None)
    if changed is not None:
        return [*found, *_named(changed.changed, changed, comparison)]
    # Nothing else tells of the machine: as recorded, the whole changed by what one function did.
    rows = tables[0].rows if tables else ()
    all_of_them = sum(abs(row.difference) for row in rows)
    nearly_all = [row for row in rows if all_of_them and abs(row.difference) >= NEARLY_ALL * all_of_them]
    return [*found, *(f"nearly all of it in {_brief(row)}" for row in nearly_all)]


def _named(rows: Sequence[Row], table: Compared, comparison: Comparison) -> list[str]:
    """Returns the first rows, and before them what their differences leave out: that of all functions, as of a slower
    machine."""
    ratio = table.level.ratio[0] if table.level is not None else 1.0
    is_told = rows and abs(np.log(ratio)) > ROUGH
    of_all = [f"all functions {ratio:.3g} times as much, and beyond that"] if is_told else []
    return [*of_all, *(_said(row, table, comparison) for row in rows[:MOST_NAMED])]


def _may_have_changed(comparison: Comparison) -> list[tuple[Compared, Row]]:
    """Returns the rows, of the first table that has any, in which all runs of one side have more than all of the other,
    where too few other functions tell whether the machine did that; the largest differences first."""
    n_base = comparison.n_runs[0]
    if min(comparison.n_runs) < 2:
        return []
    # What functions have with callees adds up to more than the whole, which is that of what they have themselves.
    wholes = {table.amounts.unit: max(table.whole) for table in comparison.tables if table.whole is not None}
    for table in sorted(comparison.tables, key=_rank):
        least = NOTICEABLE * wholes.get(table.amounts.unit, np.inf)
        rows = [row for row in table.rows if row.is_level_open and abs(row.difference) >= least]
        if found := [(table, row) for row in rows if _is_apart(row, n_base)]:
            return sorted(found, key=lambda one: (-abs(one[1].difference), str(one[1].key)))
    return []


def _is_apart(row: Row, n_base: int) -> bool:
    base, new = row.amounts[:n_base], row.amounts[n_base:]
    return max(base) < min(new) or max(new) < min(base)


def _largest(comparison: Comparison) -> list[str]:
    tables = [table for table in sorted(comparison.tables, key=_rank) if any(row.difference for row in table.rows)]
    rows = sorted(tables[0].rows, key=lambda row: (-abs(row.difference), str(row.key))) if tables else []
    return _named([row for row in rows if row.difference], tables[0], comparison) if tables else []


def _rank(table: Compared) -> int:
    return NAMING.index(table.name) if table.name in NAMING else len(NAMING)


def _said(row: Row, table: Compared, comparison: Comparison) -> str:
    change, _, difference, base, new, _ = figures.cells(row, table, comparison)
    figure = f"{change}, " if change else ""
    return f"{_brief(row)} {difference} ({figure}{base} to {new})"


def _brief(row: Row) -> str:
    return brief_name(short_name(row.shown), LONGEST_NAME)
