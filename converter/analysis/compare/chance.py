"""How often chance alone makes runs agree: in a function that only one side's runs have, in a number that is the same
in all runs of a side.

A model of the amounts cannot know it. What is in every second run, as what a timer, a collector or a compiler does, is
in both runs of one side and in neither of the other's in one of eight comparisons of 2 + 2, however much it is. But how
many rows are of that kind is seen in the recordings: for each arrangement of runs that hides it there are others that
show it, runs of one side that differ. So it is known how many rows are expected to hide it, and of those that look new,
gone or changed these are the false ones. That many runs of a side have the same small number is chance, too, where
things are counted.
"""

from __future__ import annotations

import numpy as np

from traceferry.analysis.compare.statistics import adjusted, special
from traceferry.model import Array

# Where no row at all varies within a side, one in so many programs hides one that does.
HIDES_ONE = 1 / 12
# With more runs than these nothing is promised.
MOST_RUNS = 64


def is_constant(values: Array, n_base: int) -> Array:
    """bool: which rows are the same in all runs of each side."""
    found: Array = (np.ptp(values[:, :n_base], axis=1) == 0) & (np.ptp(values[:, n_base:], axis=1) == 0)
    return found


def rates(expected: Array) -> Array:
    """False discovery rates of rows that look changed, by how many like each of them are expected to be chance."""
    return adjusted(expected / max(len(expected), 1))


# ---------------------------------------------------------------- the same in all runs of a side


class Agreement:
    """Rows whose runs agree within each side. values, counts: float64 [rows, runs], the base's runs first, how much and
    of how many things a run has; one run's counts stand for a side's."""

    def __init__(self, values: Array, counts: Array, n_base: int) -> None:
        self._base, self._new = counts[:, 0], counts[:, -1]
        varies = ~(is_constant(values, n_base) & is_constant(counts, n_base))
        n_values = 1 + np.count_nonzero(np.diff(np.sort(values, axis=1), axis=1), axis=1)
        # How many rows vary within a side, and how many of these take two values.
        self._n_varied = int(np.count_nonzero(varies))
        self._n_of_two = int(np.count_nonzero(varies & (n_values == 2)))

    def p(self, n_base: int, n_new: int) -> Array:
        """The probability that things which are counted agree by chance in so many runs, by the part of rows that
        vary."""
        part = (self._n_varied + 1) / (len(self._base) + 1)
        found: Array = np.minimum(part * _of_counts(self._base, self._new, n_base, n_new), 1.0)
        return found

    def n_hidden(self, n_base: int, n_new: int) -> float:
        """Returns how many rows that take one of two values by chance are expected to look changed."""
        return (self._n_of_two + (1 if self._n_varied else HIDES_ONE)) * odds_of_hiding(n_base, n_new)

    def runs_needed(self, threshold: Array | float, alpha: float) -> Array:
        """float64: with how many runs on each side the rows would be significant, if further runs are as these; nan
        where MOST_RUNS do not do."""
        found = np.full(len(self._base), np.nan)
        for n in range(MOST_RUNS, 1, -1):
            if self.n_hidden(n, n) <= alpha:
                found[self.p(n, n) <= threshold] = n
        return found


def odds_of_hiding(n_base: int, n_new: int) -> float:
    """Returns how many of the ways in which so many runs can have one of two values follow the sides, for each other
    one."""
    hidden = (2 if n_base == n_new else 1) / float(special().binom(n_base + n_new, n_base))
    return hidden / (1 - hidden)


def _of_counts(base: Array, new: Array, n_base: int, n_new: int) -> Array:
    """The probability that Poisson counts of one rate agree within both sides, and differ as much between them."""
    log = _log_agreement(base, n_base) + _log_agreement(new, n_new)
    sums = base * n_base, new * n_new
    part = n_base / (n_base + n_new)
    # The binomial distribution's sums from both ends.
    below = np.where(sums[1] > 0, special().betainc(np.maximum(sums[1], 0.5), sums[0] + 1, 1 - part), 1.0)
    above = np.where(sums[0] > 0, special().betainc(np.maximum(sums[0], 0.5), sums[1] + 1, part), 1.0)
    found: Array = np.exp(log) * np.minimum(2 * np.minimum(below, above), 1.0)
    return found


def _log_agreement(count: Array, n: int) -> Array:
    """The logarithm of the probability that Poisson counts of n runs agree, given their sum: a multinomial one."""
    gammaln = special().gammaln
    found: Array = gammaln(n * count + 1) - n * gammaln(count + 1) - n * count * np.log(n)
    return found


# ---------------------------------------------------------------- on one side only


def presence(counts: Array, n_base: int) -> tuple[Array, Array]:
    """(float64: how many rows are expected to be, by chance, in as many runs of one side only; float64: how many rows
    are as large and in some runs of a side only), 0 of rows that both sides have. counts: of things, [rows, runs]."""
    is_there = counts > 0
    n_there = is_there.sum(axis=1)
    sides = is_there[:, :n_base], is_there[:, n_base:]
    is_mixed = np.any([side.any(axis=1) & ~side.all(axis=1) for side in sides], axis=0)
    one_sided = (n_there > 0) & ~(sides[0].any(axis=1) & sides[1].any(axis=1))
    binom, n_runs = special().binom, counts.shape[1]
    ways = binom(n_runs, n_there)
    hiding = binom(n_base, n_there) + binom(n_runs - n_base, n_there)
    size = counts.sum(axis=1) / np.maximum(n_there, 1)
    # Large functions do not come and go as small ones do.
    mixed = np.sort(size[is_mixed])
    n_alike = np.where(one_sided, 1 + len(mixed) - np.searchsorted(mixed, size / 2), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.where(hiding < ways, hiding / (ways - hiding), np.inf)
        expected = np.where(one_sided, n_alike * odds, 0.0)
    return expected, n_alike


def runs_for_presence(n_alike: Array, alpha: float) -> Array:
    """float64: in how many runs of one side, and in none of as many of the other, rows have to be; nan as above."""
    found = np.full(len(n_alike), np.nan)
    for n in range(MOST_RUNS, 1, -1):
        found[n_alike * odds_of_hiding(n, n) <= alpha] = n
    return found
