"""Numbers of a comparison as text, the same in a terminal, in Markdown and in the reasons of a gate."""

from __future__ import annotations

import math

from traceferry.analysis.compare.amounts import Unit
from traceferry.analysis.compare.comparison import Compared, Comparison, Row
from traceferry.analysis.compare.level import Level
from traceferry.common.units import format_duration, format_size
from traceferry.model.sums import limited

MINUS = "-"
HEADS = ("change", "interval of 95 %", "difference", "base", "new", "verdict")


def amount(value: float, unit: Unit) -> str:
    if unit == "ns":
        return (MINUS if value < 0 else "") + format_duration(limited(round(abs(value))))
    if unit == "bytes":
        return (MINUS if value < 0 else "") + format_size(abs(value))
    if unit == "ratio":
        return f"{value:.3g}"
    return f"{value:.0f}" if abs(value - round(value)) < 1e-9 or abs(value) >= 1000 else f"{value:.1f}"


def percent(part: float) -> str:
    """+2.1%, with three significant digits from 100 % on."""
    value = 100 * part
    if abs(value) >= 1e6:
        return f"{value:+.1e}%"
    return f"{value:+.0f}%" if abs(value) >= 99.95 else f"{value:+.1f}%" if abs(value) >= 0.95 else f"{value:+.2f}%"


def change(row: Row) -> str:
    return "" if row.change is None else percent(row.change)


def interval(row: Row) -> str:
    if row.low is None or row.high is None:
        return "exact" if row.is_exact else ""
    return f"{percent(row.low)} to {percent(row.high)}"


def verdict(row: Row, n_runs: tuple[int, int]) -> str:
    if row.verdict == "same":
        return "same" if not row.within else f"same within {100 * row.within:.2g}%"
    if row.verdict != "unknown":
        return row.verdict
    if row.is_level_open:
        return "unknown: machine or function cannot be told apart"
    if row.may_be_unnamed:
        return "unknown: the other side may have it without a name"
    if row.may_be_hidden:
        return "unknown: its callees hide their callers on one side"
    word = "differs" if row.differs else "unknown"
    if row.runs is None:
        return f"{word}: record several runs" if min(n_runs) < 2 else word
    if row.runs > 1000:
        return f"{word}: more than 1000 runs each would do"
    return f"{word}: {max(row.runs, max(n_runs) + 1)} runs each would do"


def _value(value: float, row: Row, table: Compared, comparison: Comparison) -> str:
    """Samples as what they stand for, as time, where that is known."""
    unit, measure = table.amounts.unit_of(row.key), comparison.sides.measure
    if unit == "samples" and measure is not None:
        return amount(value * float(measure.per_sample.mean()), measure.unit)
    return amount(value, unit)


def base_and_new(row: Row, table: Compared, comparison: Comparison) -> tuple[str, str]:
    return _value(row.base, row, table, comparison), _value(row.new, row, table, comparison)


def cells(row: Row, table: Compared, comparison: Comparison) -> list[str]:
    """Returns what tables have in the columns HEADS."""
    difference = ("+" if row.difference > 0 else "") + _value(row.difference, row, table, comparison)
    return [
        change(row), interval(row), difference, *base_and_new(row, table, comparison), verdict(row, comparison.n_runs)
    ]  # fmt: skip


def shares(row: Row, table: Compared) -> str:
    """Returns the parts of the whole in base and new, "" where rows do not add up to it."""
    if table.whole is None or not all(table.whole):
        return ""
    return f"{100 * row.base / table.whole[0]:.2f}% → {100 * row.new / table.whole[1]:.2f}%"


def level(table: Compared, comparison: Comparison) -> str:
    """Returns a sentence on how runs of different length were brought to one level."""
    n_base = len(comparison.sides.base)
    before = "before that, a new run has {:.4g} times as much as a base run"
    if table.factors.method == "none":
        return "as recorded"
    if table.level is None:
        ratio = float(table.factors.of_run[n_base:].mean() / table.factors.of_run[:n_base].mean())
        return f"at the level of the whole: shares are compared; {before.format(ratio)}"
    ratio, low, high = table.level.ratio
    if table.is_level_open:
        return f"{_divided(table.level)}: {_why_open(table.level)} (--normalise none takes the machine to be the same)"
    return f"at the level of the typical function; {before.format(ratio)} ({low:.4g} to {high:.4g})"


def _why_open(level: Level) -> str:
    if level.refused is None:
        return "the other functions are too few or too small to tell a slower machine from a slower function"
    of_most, of_whole = (f"{math.exp(log):.3g} times as much" for log in level.refused)
    return f"most functions of both sides have {of_most}, and the whole {of_whole}: others may do their work now"


def _divided(level: Level) -> str:
    """Returns by what the new side's rows were divided."""
    by = level.ratio[0]
    return "as recorded" if by == 1 else f"divided by {by:.4g}, which is all that functions prove"


def tiers(comparison: Comparison) -> str:
    title = "functions that ended in another tier"
    return title if comparison.tiers_changed else f"{title}, as they may by chance"


def samples_model(comparison: Comparison) -> str:
    """Returns a sentence on how sure the intervals of samples are."""
    base, new = comparison.n_runs
    if min(base, new) > 1:
        alpha = comparison.options.alpha
        return (
            f"{base} + {new} runs: intervals hold 95 % of the time; of all that is called changed, at most "
            f"{100 * alpha:g} % is expected to be chance ({comparison.n_tests} tests)."
        )
    sides = "each side" if max(base, new) == 1 else "one side"
    return (
        f"One run on {sides}: differences are shown, and whether they are more than chance is unknown; only several "
        "runs on each side can tell."
    )
