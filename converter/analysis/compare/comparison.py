"""The comparison: of each row what it had, what it has, and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from traceferry.analysis.compare import chance, power, statistics
from traceferry.analysis.compare.amounts import DURATION, Amounts, LastTier, Sides, Unit
from traceferry.analysis.compare.disturbed import RunFacts, facts_of_runs
from traceferry.analysis.compare.events import WHOLES, Events
from traceferry.analysis.compare.factors import Factors, Method, factors_of
from traceferry.analysis.compare.level import Level, at_level, level_of
from traceferry.analysis.compare.matching import Renames
from traceferry.analysis.compare.missing import may_be_hidden, may_be_unnamed
from traceferry.analysis.compare.process_names import without_processes
from traceferry.analysis.compare.runs import Run
from traceferry.analysis.compare.statistics import reach_of, sides_of
from traceferry.common.errors import UsageError
from traceferry.common.shown_text import shown
from traceferry.model import Array

Key = tuple[Any, ...]
Verdict = Literal["slower", "faster", "more", "less", "new", "gone", "same", "unknown"]
CHANGED = frozenset({"slower", "faster", "more", "less", "new", "gone"})
# With fewer samples in all runs together there is no test.
FEWEST_SAMPLES = 10
# In a deterministic program nearly all exact amounts are the same in every run.
DETERMINISTIC = 0.9
# Of rates of sampling that are closer the samples of both sides miss as much.
ALIKE_RATES = 0.1
# Equal shares of wholes of different size differ by so much of themselves at most.
ROUNDING = 1e-12
# Ratios are numbers of this, where a measured amount is a number of its unit.
RESOLUTION = 1e-6


@dataclass(frozen=True)
class Options:
    """alpha: the false discovery rate up to which a change is significant; margin: changes within which rows are the
    same, as part of one; method: how runs are brought to one level; leaves_out_disturbed: compares without them;
    events: those that are compared however many there are."""

    alpha: float = 0.01
    margin: float = 0.05
    method: Method = "typical"
    leaves_out_disturbed: bool = False
    renames: Renames = field(default_factory=Renames)
    events: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Row:
    """base, new: of a run on average, at the level of the base; amounts: of each run as recorded, the base's first;
    change: as part of the base, None where the base has nothing; low, high: its interval of confidence of 95 %, None
    where all runs of each side agree or nothing is known; p, q: None without a test, q corrected for their number;
    within: of "same", how far it may differ; runs: of "unknown", how many runs on each side would do; is_level_open: of
    "unknown", that the other functions are too few or too small to tell a slower machine from a slower function; reach:
    of ratios, the interval of 95 % of the new side's own, None where nothing is known; may_be_unnamed: of "unknown",
    that one side has it alone, and the other as much that has no names; may_be_hidden: of "unknown", that one side has
    less with callees, and its callees hide as many callers."""

    key: Key
    base: float
    new: float
    amounts: tuple[float, ...]
    verdict: Verdict
    change: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    q: float | None = None
    within: float | None = None
    runs: int | None = None
    is_exact: bool = False
    is_level_open: bool = False
    reach: tuple[float, float] | None = None
    may_be_unnamed: bool = False
    may_be_hidden: bool = False

    @property
    def name(self) -> str:
        return str(self.key[0]) or "(anonymous)"

    @property
    def shown(self) -> str:
        """The name in one line, without what terminals and logs take for commands."""
        return shown(self.name)

    @property
    def place(self) -> str:
        """The file of a function and, if it has no name, its line."""
        if len(self.key) < 4 or not self.key[1]:
            return ""
        return f"{self.key[1]}:{self.key[2]}" if self.key[2] else str(self.key[1])

    @property
    def difference(self) -> float:
        return self.new - self.base

    @property
    def is_changed(self) -> bool:
        return self.verdict in CHANGED

    @property
    def differs(self) -> bool:
        """Whether all runs of each side agree, and both sides do not, which may be chance."""
        return self.is_exact and self.verdict == "unknown"


@dataclass(frozen=True)
class Compared:
    """A table: its rows by effect, those that changed first. whole: of base and new on average, at the level of the
    base, where the rows add up to it; level: of the new side, where functions tell it; is_level_open: whether they are
    too few or too small for that, so that rows are as recorded but for what is proven of it; hidden: the functions that
    may have what their callees hide on one side."""

    amounts: Amounts
    factors: Factors
    rows: tuple[Row, ...] = ()
    whole: tuple[float, float] | None = None
    level: Level | None = None
    is_level_open: bool = False
    hidden: frozenset[Key] = frozenset()

    @property
    def name(self) -> str:
        return self.amounts.name

    @property
    def changed(self) -> list[Row]:
        """The rows that are significant."""
        return [row for row in self.rows if row.is_changed]

    @property
    def different(self) -> list[Row]:
        """The rows that changed, then those that all runs of each side agree on."""
        return [row for row in self.rows if row.is_changed or row.differs]


# A table without rows, and by how much they changed.
_Measured = tuple[Compared, statistics.Effects]


@dataclass(frozen=True)
class Comparison:
    """tiers: functions that end in one tier in all runs of the base and in another in all of the new side;
    tiers_changed: whether so many of them are more than chance; notes: sentences on what is not compared, or differs in
    how it was recorded."""

    base: tuple[RunFacts, ...]
    new: tuple[RunFacts, ...]
    whole: Compared
    tables: tuple[Compared, ...]
    tiers: tuple[LastTier, ...]
    tiers_changed: bool
    options: Options
    sides: Sides
    events: Events

    @property
    def notes(self) -> tuple[str, ...]:
        return self.events.notes

    @property
    def is_identical(self) -> bool:
        """Whether each run of one side has exactly what the run at its place on the other has."""
        n_base, n_new = self.n_runs
        return n_base == n_new and all(
            np.array_equal(table.amounts.values[:, :n_base], table.amounts.values[:, n_base:])
            for table in (self.whole, *self.tables)
        )

    @property
    def sample_ns(self) -> float:
        """The time that a sample stands for on average, in ns; 0 where it is not known of all runs."""
        measure = self.sides.measure
        return float(measure.per_sample.mean()) if measure is not None and measure.unit == "ns" else 0.0

    @property
    def main_rows(self) -> list[Row]:
        """The rows of the whole that are of what was done: all but the duration, unless nothing else is known."""
        return [row for row in self.whole.rows if row.name != DURATION] or list(self.whole.rows)

    def share_of(self, table: Compared, row: Row) -> float | None:
        """Returns a row's part of the whole time or samples, in the side that has more of it; None where rows are not
        of these."""
        whole = self.whole_of(table) if table.amounts.is_shared or table.amounts.part_of else None
        if whole is None or not all(whole):
            return None
        return max(row.base / whole[0], row.new / whole[1])

    def whole_of(self, table: Compared) -> tuple[float, float] | None:
        """Returns what the rows of a table are parts of, in base and new; None where they do not add up, as
        percentiles."""
        amounts = table.amounts
        if (
            table is self.whole
            or amounts.model == "ratio"
            or table.name == WHOLES
            or table.name.partition(".")[2] in ("p50", "p99", "max")
        ):
            return None
        if amounts.part_of:
            same = (t for t in self.tables if t.name == amounts.part_of and t.amounts.unit == amounts.unit)
            return next((t.whole for t in same), None)
        return sum(row.base for row in table.rows), sum(row.new for row in table.rows)

    @property
    def n_tests(self) -> int:
        return sum(row.p is not None for table in self.tables for row in table.rows)

    @property
    def n_runs(self) -> tuple[int, int]:
        """Those that were compared."""
        return len(self.sides.base), len(self.sides.new)

    def tables_named(self, name: str) -> list[Compared]:
        return [table for table in (self.whole, *self.tables) if table.name == name]


def compare(base: Sequence[Run], new: Sequence[Run], options: Options | None = None) -> Comparison:
    """Raises UsageError where both sides have nothing of the same kind."""
    options = options or Options()
    base, new = without_processes(base, new), without_processes(new, base)
    sides = Sides(base, new, options.renames)
    facts = facts_of_runs(sides)
    if options.leaves_out_disturbed:
        kept = [
            [run for run, fact in zip(side, of_side, strict=True) if not fact.disturbed]
            for side, of_side in zip((base, new), facts, strict=True)
        ]
        if all(kept) and [len(s) for s in kept] != [len(base), len(new)]:
            sides = Sides(kept[0], kept[1], options.renames)
            facts = [tuple(replace(f, left_out=bool(f.disturbed)) for f in of_side) for of_side in facts]
    events = Events.of(sides, options.events)
    tables = [*sides.tables(), *events.tables()]
    if not tables:
        raise UsageError("nothing to compare: the recordings have no calls, samples, allocations, events or code")
    if not any(all(side.any() for side in sides_of(table.values, len(sides.base))) for table in tables):
        raise UsageError("nothing to compare: what one side has, as calls or samples, the other has none of")
    compared = _tested(_measured(tables, sides, options), len(sides.base), options)
    whole, tiers = _whole(sides, options), _tiers(sides, options.alpha)
    return Comparison(facts[0], facts[1], whole, compared, *tiers, options, sides, events)


def _whole(sides: Sides, options: Options) -> Compared:
    """Tested one by one, at the level of the recordings: a change of everything is a change here and nowhere else."""
    table, n_base = sides.whole(), len(sides.base)
    factors = Factors(np.ones(len(sides.runs)), "none")
    effects = statistics.of_amounts(table.values, n_base, factors, drawn=_drawn(table, sides))
    return _tested([(Compared(table, factors), effects)], n_base, options)[0]


def _drawn(table: Amounts, sides: Sides) -> Array | None:
    """Returns of how many samples each amount of the whole is. Where a sample is as much in all runs, what is missed
    between two of them is alike, and runs tell how much they vary."""
    rates = sides.sample_rates("samples")
    if sides.measure is None or np.ptp(np.log(rates)) <= ALIKE_RATES:
        return None
    n_samples = np.array([run.n_samples for run in sides.runs], np.float64)
    return np.array([n_samples * (key == (sides.measure.name,)) for key in table.keys])


def _tested(measured: Sequence[_Measured], n_base: int, options: Options) -> tuple[Compared, ...]:
    """Returns the tables with their rows; all tests are corrected together."""
    tests = [_tests(table.amounts, effects, n_base, options.alpha) for table, effects in measured]
    p, alone = (np.concatenate([getattr(each, name) for each in tests]) for name in ("p", "alone"))
    families = power.Families(p, alone, options.alpha)
    return tuple(
        _compared(*each, of_each, families, n_base, options) for each, of_each in zip(measured, tests, strict=True)
    )


def _tiers(sides: Sides, alpha: float) -> tuple[tuple[LastTier, ...], bool]:
    """Returns `tiers` as in Comparison. Chance is told by the functions whose runs of one side differ."""
    differ = sides.last_tiers()
    found = tuple(t for t in differ if not set(t.base) & set(t.new) and len(set(t.base)) == len(set(t.new)) == 1)
    n_base, n_new = len(sides.base), len(sides.new)
    if min(n_base, n_new) < 2:
        return found, False
    by_chance = (len(differ) - len(found) + 1) * chance.odds_of_hiding(n_base, n_new)
    return found, bool(found) and by_chance <= alpha * len(found)


# ---------------------------------------------------------------- levels


def _measured(tables: Sequence[Amounts], sides: Sides, options: Options) -> list[_Measured]:
    """Returns the tables without rows, and by how much their rows changed. Times, samples and cycles are at the level
    of their own self times; other amounts, ratios and events are as recorded, or, if so asked, shares of their
    whole."""
    n_base = len(sides.base)
    levels: dict[tuple[str, Unit], tuple[Factors, Level | None]] = {}
    found: list[_Measured] = []
    for table in tables:
        key = table.part_of or table.name, table.unit
        same = next(t for t in tables if (t.name, t.unit) == key)
        if table.is_time:
            if key not in levels:
                levels[key] = _level(same, sides, options)
            factors, level = levels[key]
        else:
            is_shared = table.is_sampled or table.model == "exact"
            method: Method = "whole" if options.method == "whole" and is_shared else "none"
            factors, level = _factors(same, same.values, sides, method), None
        compared, effects = Compared(table, factors), _effects(table, n_base, factors)
        if level is not None:
            of_run = factors.of_run * np.where(np.arange(len(sides.runs)) < n_base, 1.0, level.ratio[0])
            compared = Compared(table, Factors(of_run, "typical"), level=level, is_level_open=level.is_open)
            effects = at_level(effects, level, table.keys)
        if table.model == "samples" and not sides.are_even:
            effects = effects.untested()
        if table.part_of and table.is_sampled:
            whole = next(of for each, of in found if each.amounts is same)
            hidden = may_be_hidden(effects.base, effects.new, (whole.base.sum(), whole.new.sum()), sides.callerless)
            of_rows = frozenset(key for key, of in zip(table.keys, hidden.tolist(), strict=True) if of)
            compared = replace(compared, hidden=of_rows)
        found.append((compared, effects))
    return found


def _level(table: Amounts, sides: Sides, options: Options) -> tuple[Factors, Level | None]:
    """table: of self times."""
    n_base = len(sides.base)
    values = table.values if table.per_sample is None else table.values / table.per_sample.mean()
    factors = _factors(table, values, sides, options.method)
    if options.method != "typical":
        return factors, None
    # What the kernel does, it does as often as its clock interrupts: it takes as long as the others, whatever they do.
    kernel = sides.in_kernel()
    can_vote = np.array([key not in kernel for key in table.keys], bool)
    return factors, level_of(_effects(table, n_base, factors), table.keys, can_vote)


def _factors(table: Amounts, values: Array, sides: Sides, method: Method) -> Factors:
    """values: the table's, as numbers of samples where it is of these."""
    # Where runs have more samples of the same time, that is no change.
    rates = sides.sample_rates(table.unit)
    factors = factors_of(values / rates, len(sides.base), method, table.is_sampled)
    return Factors(factors.of_run * rates, factors.method)


# ---------------------------------------------------------------- verdicts


def _effects(table: Amounts, n_base: int, factors: Factors) -> statistics.Effects:
    if table.is_sampled or table.model == "ratio":
        effect = _effects_of_weights(table, n_base, factors)
        few = table.counts.sum(axis=1) < FEWEST_SAMPLES
        return replace(effect, p=np.where(few, np.nan, effect.p))
    effect = statistics.of_amounts(table.values, n_base, factors, table.counts)
    if table.model == "exact" and factors.method == "whole":
        is_equal = np.isclose(effect.new, effect.base, rtol=ROUNDING, atol=0)
        return replace(effect, new=np.where(is_equal, effect.base, effect.new))
    return effect


def _effects_of_weights(table: Amounts, n_base: int, factors: Factors) -> statistics.Effects:
    """Samples are counts. What they weigh is as many counts as samples of equal weight would vary as much. Ratios are
    measured, with the noise of the samples of which they are."""
    if table.model == "ratio":
        effect = statistics.of_amounts(table.values / RESOLUTION, n_base, factors, table.counts)
        return replace(effect, base=effect.base * RESOLUTION, new=effect.new * RESOLUTION)
    if table.per_sample is None:
        return statistics.of_counts(table.values, n_base, factors)
    by_count = replace(factors, of_run=factors.of_run * table.rates)
    effect = statistics.of_counts(table.values / table.per_sample, n_base, by_count)
    usual = float(table.per_sample.mean())
    return replace(effect, base=effect.base * usual, new=effect.new * usual)


@dataclass(frozen=True)
class _Tests:
    """The tests of a table. p: nan without a test; hidden: how many rows are expected to look as each does by chance, 0
    where none can; runs: how many runs tell what one side has alone from chance, nan of what both have; alone: bool,
    what one side has alone."""

    p: Array
    hidden: Array
    runs: Array
    alone: Array


def _tests(table: Amounts, effect: statistics.Effects, n_base: int, alpha: float) -> _Tests:
    """A side with one run decides nothing: that run may be the odd one."""
    n_new = table.values.shape[1] - n_base
    p = effect.p
    one_sided: Array = np.logical_not(table.values[:, :n_base].any(axis=1) & table.values[:, n_base:].any(axis=1))
    if min(n_base, n_new) < 2:
        nothing = np.full(len(p), np.nan)
        return _Tests(nothing, np.zeros(len(p)), nothing, one_sided)
    hidden, n_alike = chance.presence(table.counts, n_base)
    runs = np.where(one_sided, chance.runs_for_presence(n_alike, alpha), np.nan)
    if table.is_sampled:
        return _Tests(p, hidden, runs, one_sided)
    # What is the same in all runs of a side has no variance of its own.
    agreement = chance.Agreement(table.values, table.counts, n_base)
    agreed = np.where(table.counts[:, 0] == table.counts[:, -1], 0.0, agreement.p(n_base, n_new))
    constant = chance.is_constant(table.counts, n_base)
    p = np.where(constant, np.maximum(p, agreed), p)
    of_counts = statistics.of_counts(table.counts, n_base, Factors(np.ones(n_base + n_new), "none"))
    p = np.where(one_sided, np.where(constant, agreed, of_counts.p), p)
    if table.model == "exact":
        constant = chance.is_constant(table.values, n_base)
        is_equal = effect.base == effect.new
        p = np.where(constant, np.where(is_equal, 1.0, agreement.p(n_base, n_new)), p)
        hidden = np.where(constant & ~is_equal, agreement.n_hidden(n_base, n_new), hidden)
    return _Tests(p, hidden, runs, one_sided)


def _is_exact(table: Amounts, n_base: int) -> Array:
    """Returns which rows of exact amounts are the same in every run of a side. Where most are not, none counts as such:
    then equal runs are chance."""
    found = chance.is_constant(table.values, n_base)
    is_usual = table.model == "exact" and found.mean() >= DETERMINISTIC
    return found if is_usual else np.zeros(len(found), bool)


def _compared(
    compared: Compared,
    effects: statistics.Effects,
    tests: _Tests,
    families: power.Families,
    n_base: int,
    options: Options,
) -> Compared:
    """Returns the table with its rows. tests: of the families, those of this table."""
    table, effect = compared.amounts, replace(effects, p=tests.p)
    n_runs = table.values.shape[1]
    if n_runs == 2:
        # How much runs differ is not known at all.
        unknown = np.full(len(tests.p), np.nan)
        effect = replace(effect, low=unknown, high=unknown, freedom=unknown)
    exact = _is_exact(table, n_base)
    with np.errstate(invalid="ignore"):
        wanted = np.fmax(np.abs(effect.change), float(np.log1p(options.margin)))
    thresholds = families.thresholds(tests.alone)
    needed = power.runs_needed(wanted, effect.variance, effect.freedom, n_runs - 2, thresholds)
    if exact.any():
        agreement = chance.Agreement(table.values, table.counts, n_base)
        needed = np.where(exact, agreement.runs_needed(thresholds, options.alpha), needed)
    needed = np.where(exact, needed, np.fmax(needed, tests.runs))
    # The false discovery rates by the tests, and by what chance is expected to hide.
    q = families.rates(tests.p, tests.alone)
    for_hiding = np.flatnonzero((q <= options.alpha) & (tests.hidden > 0))
    q[for_hiding] = np.maximum(q[for_hiding], chance.rates(tests.hidden[for_hiding]))
    unnamed = may_be_unnamed(table.keys, effect.base, effect.new)
    hidden = np.array([key in compared.hidden for key in table.keys], bool)
    q, needed = (np.where(unnamed | hidden, np.nan, column) for column in (q, needed))
    low, high = (np.where(hidden, np.nan, column) for column in (effect.low, effect.high))
    effect = replace(effect, low=low, high=high, is_level_open=effect.is_level_open & ~hidden)
    rows = [
        _row(table, nth, effect, q, bool(exact[nth]), needed[nth], n_base, options) for nth in range(len(table.keys))
    ]
    rows = [
        replace(row, may_be_unnamed=of_names, may_be_hidden=of_callers) if of_names or of_callers else row
        for row, of_names, of_callers in zip(rows, unnamed.tolist(), hidden.tolist(), strict=True)
    ]
    rows.sort(key=lambda row: (not row.is_changed, not row.differs, -abs(row.difference), str(row.key)))
    whole = (float(effect.base.sum()), float(effect.new.sum())) if table.is_shared else None
    return replace(compared, rows=tuple(rows), whole=whole)


def _row(
    table: Amounts, nth: int, effect: statistics.Effects, q: Array, is_exact: bool, needed: float, n_base: int,
    options: Options,
) -> Row:  # fmt: skip
    def at(column: Array) -> float | None:
        value = float(column[nth])
        return value if np.isfinite(value) else None

    base, new, values = float(effect.base[nth]), float(effect.new[nth]), table.values[nth]
    p, rate, within, runs, is_open = at(effect.p), at(q), None, None, False
    n_new = len(values) - n_base
    change = low = high = None
    if base > 0:
        is_tested = p is not None and new > 0 and not is_exact
        change = float(np.expm1(effect.change[nth])) if is_tested else new / base - 1
        if not is_exact:
            low, high = (None if log is None else float(np.expm1(log)) for log in (at(effect.low), at(effect.high)))
    has_several = 1 < n_base < len(values) - 1 and not is_exact
    verdict: Verdict = "unknown"
    if is_exact and base == new:
        verdict, within, p, rate = "same", 0.0, None, None
    elif rate is not None and rate <= options.alpha:
        unit = table.unit_of(table.keys[nth])
        verdict = _plain(base, new, unit == "ns" or (unit == "samples" and table.is_time))
    elif has_several and low is not None and high is not None and max(-low, high) <= options.margin:
        verdict, within = "same", max(-low, high)
    elif has_several and effect.is_level_open[nth]:
        is_open = True
    elif np.isfinite(needed):
        runs = int(needed)
    return Row(
        table.keys[nth], base, new, tuple(values.tolist()), verdict, change, low, high, p, rate, within, runs, is_exact,
        is_open, _own_reach(effect, nth, n_new) if table.model == "ratio" and has_several else None,
    )  # fmt: skip


def _own_reach(effect: statistics.Effects, nth: int, n_new: int) -> tuple[float, float] | None:
    """Returns the interval of confidence of what the new side has, by how much runs vary."""
    if not np.isfinite(effect.variance[nth]):
        return None
    reach = float(reach_of(effect.freedom[nth : nth + 1])[0]) * float(np.sqrt(effect.variance[nth] / n_new))
    new = float(effect.new[nth])
    return new * float(np.exp(-reach)), new * float(np.exp(reach))


def _plain(base: float, new: float, is_time: bool) -> Verdict:
    if base == new:
        return "same"
    if base == 0:
        return "new"
    if new == 0:
        return "gone"
    if is_time:
        return "slower" if new > base else "faster"
    return "more" if new > base else "less"
