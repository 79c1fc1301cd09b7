"""A comparison as text: what changed, ranked by effect, with intervals; then what is not known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from traceferry.analysis.compare import figures
from traceferry.analysis.compare.comparison import Compared, Comparison, Row
from traceferry.analysis.compare.disturbed import RunFacts
from traceferry.analysis.compare.events import WHOLES
from traceferry.analysis.compare.gate import Outcome
from traceferry.analysis.compare.headline import headline
from traceferry.common.shown_text import aligned, shown
from traceferry.common.units import format_duration

# Rows with less of the whole are not worth a line when nothing is known of them.
WORTH = 0.01


def as_text(comparison: Comparison, top: int, outcomes: Sequence[Outcome] = ()) -> str:
    lines = [headline(comparison, outcomes), "", *_side("base", comparison.base), *_side("new", comparison.new)]
    notes = [f"note: {note}" for note in comparison.notes]
    if comparison.is_identical:
        # Rows would say of each function that it is what it was.
        return "\n".join([*map(shown, [*lines, *notes]), *_gates(outcomes)])
    lines += [figures.samples_model(comparison), *notes]
    lines += _table(comparison, comparison.whole, list(comparison.whole.rows))
    for table in comparison.tables:
        lines += _section(comparison, table, top)
    lines += _tiers(comparison, top)
    return "\n".join([*map(shown, lines), *_gates(outcomes)])


def _gates(outcomes: Sequence[Outcome]) -> list[str]:
    return ["", *(outcome.as_text() for outcome in outcomes)] if outcomes else []


def _side(name: str, runs: Sequence[RunFacts]) -> list[str]:
    lines = [f"{name}: {len(runs)} run{'s' if len(runs) > 1 else ''}"]
    for run in runs:
        left_out = ", left out" if run.left_out else ""
        disturbed = f"  disturbed: {run.disturbed}{left_out}" if run.disturbed else ""
        lines.append(
            f"  {format_duration(run.duration_ns):>7}  {run.factor:6.3f} times the base  {run.path}{disturbed}"
        )
    return lines


def _section(comparison: Comparison, table: Compared, top: int) -> list[str]:
    if table.name == WHOLES:
        return _table(comparison, table, list(table.rows))
    different = table.different
    heavy = [
        row
        for row in table.rows
        if row.verdict == "unknown" and not row.differs and (comparison.share_of(table, row) or 0) >= WORTH
    ]
    shown = [*different[:top], *heavy[: max(top - len(different), 0)]]
    others = Counter(row.verdict for row in table.rows if not row.is_changed)
    others.subtract(row.verdict for row in shown if not row.is_changed)
    n_left_out = sum(row.is_changed for row in different[top:])
    rest = [f"{n_left_out} more that changed"] if n_left_out else []
    rest += [f"{n} {word}" for word, n in sorted(others.items()) if n]
    lines = _table(comparison, table, shown)
    if not lines:
        return ["", f"{table.amounts.title}: {', '.join(rest)}"]
    return [*lines, *([f"  (and {', '.join(rest)})"] if rest else [])]


def _table(comparison: Comparison, table: Compared, rows: Sequence[Row]) -> list[str]:
    """Nothing without rows; the name comes last and is the only column that is not flush right."""
    if not rows:
        return []
    cells = [["change", "interval of 95%", "difference", "base", "new", "share", "verdict", table.amounts.title]]
    for row in rows:
        place = f"  {row.place}" if row.place else ""
        *amounts, verdict = figures.cells(row, table, comparison)
        cells.append([*amounts, figures.shares(row, table), verdict, row.shown + place])
    kept = [i for i in range(len(cells[0])) if any(line[i] for line in cells[1:])]
    title = f"{table.amounts.title}, {figures.level(table, comparison)}:"
    return ["", title, *aligned([[line[i] for i in kept] for line in cells])]


def _tiers(comparison: Comparison, top: int) -> list[str]:
    if not comparison.tiers:
        return []
    lines = ["", f"{figures.tiers(comparison)}:"]
    for last in comparison.tiers[:top]:
        place = f"  {last.function[1]}" if last.function[1] else ""
        lines.append(f"  {last.base[0]} → {last.new[0]}  {last.function[0]}{place}")
    if len(comparison.tiers) > top:
        lines.append(f"  ({len(comparison.tiers) - top} more)")
    return lines
