"""The first line of a comparison, the same in text, Markdown, JSON and the page."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from traceferry.analysis.compare import figures
from traceferry.analysis.compare.amounts import TIME_OF_CALLS
from traceferry.analysis.compare.comparison import Compared, Comparison, Row
from traceferry.analysis.compare.events import WHOLES, unlike
from traceferry.analysis.compare.gate import Outcome
from traceferry.analysis.compare.level import ROUGH
from traceferry.analysis.compare.statistics import sides_of
from traceferry.symbolication.short_names import brief_name, short_name

# Rows that are named.
MOST_NAMED = 3
# Letters of a name, which is shortened beyond.
LONGEST_NAME = 80
# The part of all differences from which on a row is nearly all of them.
NEARLY_ALL = 0.9
# The part of all differences from which on that of a row may be why the whole changed.
WORTH_A_GUESS = 0.1
# The part of the whole from which on a difference is worth to be told of.
NOTICEABLE = 0.01
# Which table names functions: the first that has something to tell.
NAMING = ("self", "total", "allocated_bytes", "calls")
OF_TIMES = ("self", "total")
# What functions have more that others have less.
MOVED = "moved"
# Tables of functions on the CPU, of wholes, and of times that are no sums.
NOT_ELSEWHERE = (*NAMING, WHOLES, "event.p50", "event.p99", "event.max")
WORDS = {
    "failed": "a gate failed", "slower": "slower", "faster": "faster", "changed": "changed",
    "same": "no significant change", "identical": "identical", "unknown": "cannot tell",
}  # fmt: skip


def verdict_of(comparison: Comparison, outcomes: Sequence[Outcome] = ()) -> str:
    """Returns "failed" if a gate did; "identical" where all amounts are the same, run by run; "slower" or "faster" as
    the whole became or, where that is not known, as all that functions themselves have significantly more or less of
    and the whole may have; "changed" where these disagree, or only other amounts changed, as how long recordings
    lasted; "unknown" where a side has one run, or functions differ in all runs that may do so because the machine does;
    else "same"."""
    if any(outcome.status == "failed" for outcome in outcomes):
        return "failed"
    if comparison.is_identical:
        return "identical"
    main = {_word(row) for row in comparison.main_rows if row.is_changed}
    if main:
        return _joined(main | _words_of_waits(comparison))
    words = {word for table in comparison.tables for word in _words(table, comparison)}
    # That a recording lasted longer says little: the program may have waited for the machine.
    if words or comparison.whole.changed or comparison.tiers_changed:
        # Numbers, as of calls, say nothing against times.
        of_times = words - {"changed"}
        return _joined(of_times) if of_times else "changed"
    return "unknown" if min(comparison.n_runs) < 2 or _may_have_changed(comparison) else "same"


def _joined(words: Collection[str]) -> str:
    """Returns the word, if it is one of times, and "changed" for several."""
    return "changed" if len(words) > 1 or MOVED in words else next(iter(words))


def _words_of_waits(comparison: Comparison) -> set[str]:
    """Returns how time elsewhere, as off the CPU, changed, if by more than the whole."""
    of_whole = [_in_ns(row, comparison.whole, comparison) for row in comparison.main_rows if row.is_changed]
    return {_word(row) for table, row in _elsewhere(comparison) if _in_ns(row, table, comparison) > max(of_whole)}


def _word(row: Row) -> str:
    return row.verdict if row.verdict in ("slower", "faster") else "changed"


def _words(table: Compared, comparison: Comparison) -> set[str]:
    """Returns how the significant rows of a table changed; MOVED where that is not what the whole did. What functions
    have with their callees tells only where they themselves do not, and not what the whole did: as interrupts, of which
    a busy machine has more, or what is called from elsewhere."""
    if table.name == "total" and any(t.changed for t in comparison.tables_named("self")):
        return set()
    words = {_word(row) for row in table.changed}
    if table.name not in OF_TIMES or not words:
        return words
    if table.name == "total":
        return {MOVED}
    is_both = len({row.difference > 0 for row in table.changed}) > 1
    return {MOVED} if is_both or not _is_of_whole(table, comparison) else words


def _is_of_whole(table: Compared, comparison: Comparison) -> bool:
    """Whether the whole may have changed by as much as the significant rows did. If not, others made up for them: a
    part of a function that became one of its own, or what another function calls now."""
    whole, of_whole = _main_row(table, comparison), comparison.whole_of(table)
    if whole is None or whole.low is None or whole.high is None or of_whole is None or not of_whole[0]:
        return True
    differences = [row.difference for row in table.changed]
    # With callees functions hold each other.
    moved = sum(differences) if table.name == "self" else max(differences, key=abs)
    ratio = table.level.ratio[0] if table.level is not None else 1.0
    return whole.low <= ratio * (1 + moved / of_whole[0]) - 1 <= whole.high


def _main_row(table: Compared, comparison: Comparison) -> Row | None:
    """Returns the row of the whole to which the table's add up."""
    is_sampled = table.amounts.is_sampled or bool(comparison.sides.measured_unit)
    return next((row for row in comparison.main_rows if (row.name != TIME_OF_CALLS) == is_sampled), None)


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
        unknown = [row for row in comparison.main_rows if row.verdict == "unknown"]
        return "; ".join([word, *(_unknown(row, comparison) for row in unknown)])
    changed = ", ".join(_changed(comparison))
    line = f"{word}: {changed}" if changed else word
    is_of_times = comparison.whole.changed or any(t.changed for t in comparison.tables if t.name in OF_TIMES)
    whole = [row for row in comparison.main_rows if verdict == "changed" and is_of_times and not row.is_changed]
    return "; ".join([line, *(f"the whole: {_unknown(row, comparison)}" for row in whole)])


def _unknown(row: Row, comparison: Comparison) -> str:
    figure = ", ".join(filter(None, (figures.change(row), figures.interval(row))))
    return f"{row.shown} {figure}: {figures.verdict(row, comparison.n_runs)}"


def _changed(comparison: Comparison) -> list[str]:
    """Returns what changed: the whole, then the rows of the first table that has any, and the time elsewhere, as off
    the CPU, that changed by more; last, how long the recording lasted, which is why nothing is slower."""
    main = [row for row in comparison.main_rows if row.is_changed]
    others = [row for row in comparison.whole.changed if row not in main]
    found, lasted = ([_said(row, comparison.whole, comparison) for row in rows] for rows in (main, others))
    tables = sorted(comparison.tables, key=_rank)
    changed, rows = next(((table, rows) for table in tables if (rows := _telling(table, comparison))), (None, []))
    if changed is None:
        return [*found, *(_causes(tables[0], comparison) if tables and main else ()), *lasted]
    named = _named(rows, changed, comparison)
    if changed.name == "total" and not (main and _is_of_whole(changed, comparison)):
        named[0] = f"with callees {named[0]}"
    largest = max(_in_ns(row, changed, comparison) for row in rows)
    waits = [
        f"{table.name} of {_said(row, table, comparison)}"
        for table, row in _elsewhere(comparison)
        if table is not changed and _in_ns(row, table, comparison) > largest
    ]
    return [*found, *named, *_made_up_for(changed, comparison), *waits, *lasted]


def _telling(table: Compared, comparison: Comparison) -> list[Row]:
    """Returns the significant rows: of functions with callees, where the whole changed, without those that hold nearly
    all of it."""
    if table.name != "total" or not any(row.is_changed for row in comparison.main_rows):
        return table.changed
    return [row for row in table.changed if (comparison.share_of(table, row) or 0) < NEARLY_ALL]


def _causes(table: Compared, comparison: Comparison) -> list[str]:
    """Returns why the whole changed, where no row is significant: all functions, nearly all of it in one, or what one
    side has alone and so few runs do not prove to be new or gone."""
    (whole, *_) = (row for row in comparison.main_rows if row.is_changed)
    of_all = [] if table.is_level_open else _of_all(table)
    differences = sum(abs(row.difference) for row in table.rows)
    if not differences:
        return of_all
    nearly_all = [row for row in table.rows if abs(row.difference) >= NEARLY_ALL * differences]
    nearly_all = nearly_all or _outstanding(table.rows)
    if nearly_all:
        # Nothing else tells of the machine: as recorded, the whole changed by what one function did.
        return [*of_all, *(f"nearly all of it in {_brief(row)}" for row in nearly_all)]
    alone = [row for row in table.rows if not (row.base and row.new) and row.difference * whole.difference > 0]
    alone = sorted(alone, key=lambda row: (-abs(row.difference), str(row.key)))[:MOST_NAMED]
    large = [_said(row, table, comparison) for row in alone if abs(row.difference) >= WORTH_A_GUESS * differences]
    return [*of_all, *([f"perhaps {' and '.join(large)}"] if large else [])]


def _outstanding(rows: Sequence[Row]) -> list[Row]:
    """Returns the row whose difference is nearly what those of all come to, none other being a third of it: the others
    make up for each other."""
    first, *others = sorted(rows, key=lambda row: (-abs(row.difference), str(row.key)))
    part = first.difference / (sum(row.difference for row in rows) or np.inf)
    is_alone = not others or 3 * abs(others[0].difference) <= abs(first.difference)
    return [first] if is_alone and NEARLY_ALL <= part <= 1 / NEARLY_ALL else []


def _made_up_for(table: Compared, comparison: Comparison) -> list[str]:
    """Returns the largest function that is on one side alone and may have what the significant ones lack, or that which
    they have more of."""
    if table.name != "self" or _is_of_whole(table, comparison):
        return []
    moved = sum(row.difference for row in table.changed)
    rows = [row for row in table.rows if not row.is_changed and not (row.base and row.new)]
    rows = [row for row in rows if row.difference * moved < 0 and abs(row.difference) >= abs(moved) / 2]
    largest = sorted(rows, key=lambda row: (-abs(row.difference), str(row.key)))[:1]
    return [f"perhaps {_said(row, table, comparison)}" for row in largest]


def _elsewhere(comparison: Comparison) -> list[tuple[Compared, Row]]:
    """Returns the largest significant change of a time that is not of functions on the CPU, nothing without any: of
    what waits in the kernel, that of the function that called it."""
    kernel = comparison.sides.in_kernel()
    tables = [table for table in comparison.tables if table.amounts.unit == "ns" and table.name not in NOT_ELSEWHERE]
    rows = [(table, row) for table in tables for row in table.changed if row.key not in kernel]
    return sorted(rows, key=lambda of: (-abs(of[1].difference), of[0].name, str(of[1].key)))[:1]


def _in_ns(row: Row, table: Compared, comparison: Comparison) -> float:
    unit = table.amounts.unit_of(row.key)
    return abs(row.difference) * (comparison.sample_ns if unit == "samples" else unit == "ns")


def _named(rows: Sequence[Row], table: Compared, comparison: Comparison) -> list[str]:
    """Returns the first rows, and before them what their differences leave out: that of all functions, as of a slower
    machine."""
    of_all = [f"{text}, and beyond that" for text in _of_all(table) if rows]
    return [*of_all, *(_said(row, table, comparison) for row in rows[:MOST_NAMED])]


def _of_all(table: Compared) -> list[str]:
    """Returns what all functions have, where that is more or less than before."""
    ratio = table.level.ratio[0] if table.level is not None else 1.0
    return [f"all functions {ratio:.3g} times as much"] if abs(np.log(ratio)) > ROUGH else []


def _may_have_changed(comparison: Comparison) -> list[tuple[Compared, Row]]:
    """Returns the rows, of the first table that has any, in which all runs of one side have more than all of the other,
    where too few other functions tell whether the machine did that; the largest differences first."""
    if min(comparison.n_runs) < 2:
        return []
    # What functions have with callees adds up to more than the whole, which is that of what they have themselves.
    wholes = {table.amounts.unit: max(table.whole) for table in comparison.tables if table.whole is not None}
    for table in sorted(comparison.tables, key=_rank):
        least = NOTICEABLE * wholes.get(table.amounts.unit, np.inf)
        rows = [row for row in table.rows if row.is_level_open and abs(row.difference) >= least]
        if table.name == "total":
            # The whole is tested by itself.
            rows = [row for row in rows if (comparison.share_of(table, row) or 0) < NEARLY_ALL]
        if found := [(table, row) for row in rows if _is_apart(row, table, comparison)]:
            return sorted(found, key=lambda one: (-abs(one[1].difference), str(one[1].key)))
    return []


def _is_apart(row: Row, table: Compared, comparison: Comparison) -> bool:
    """Whether it differs in all runs and, where samples of one side stand for more, by more than one of these."""
    rates = comparison.sides.sample_rates(table.amounts.unit)
    base, new = sides_of(np.array(row.amounts) / rates, comparison.n_runs[0])
    gap = max(new.min() - base.max(), base.min() - new.max())
    return bool(gap > (1 / rates.min() if np.ptp(rates) else 0.0))


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
