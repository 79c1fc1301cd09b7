"""How many runs would show a change, with as many tests as there are."""

from __future__ import annotations

import numpy as np

from traceferry.analysis.compare.statistics import adjusted, special
from traceferry.model import Array

POWER = 0.9
MOST_RUNS = 1_000_000


class Family:
    """Tests that are corrected together. p: nan of rows that have no test; alpha: the false discovery rate."""

    def __init__(self, p: Array, alpha: float) -> None:
        self._p = np.sort(p[~np.isnan(p)])
        self._q = adjusted(self._p)
        self._alpha, self._n_rows = alpha, len(p)

    def rates(self, p: Array) -> Array:
        """The false discovery rates of some of the tests; nan stays."""
        found = np.full(len(p), np.nan)
        known = ~np.isnan(p)
        found[known] = self._q[np.searchsorted(self._p, p[known], "right") - 1]
        return found

    @property
    def threshold(self) -> float:
        """The p-value at which one more would be significant: Benjamini's and Hochberg's bound for the next rank."""
        n_tests = len(self._p) or max(self._n_rows, 1)
        return self._alpha * min(int(np.count_nonzero(self._q <= self._alpha)) + 1, n_tests) / n_tests


class Families:
    """Tests of all rows, corrected together, and of those that both sides have once more by themselves: where hundreds
    of functions are surely new, one percent of all that changed would be several of the others. alone: bool, which rows
    one side has alone."""

    def __init__(self, p: Array, alone: Array, alpha: float) -> None:
        self._all, self._common = Family(p, alpha), Family(p[~alone], alpha)

    def rates(self, p: Array, alone: Array) -> Array:
        """The false discovery rates of some of the tests; nan stays."""
        found = self._all.rates(p)
        found[~alone] = np.maximum(found[~alone], self._common.rates(p[~alone]))
        return found

    def thresholds(self, alone: Array) -> Array:
        """float64: the p-value at which one more row of the kind would be significant."""
        of_all = self._all.threshold
        return np.where(alone, of_all, min(of_all, self._common.threshold))


def runs_needed(change: Array, variance: Array, freedom: Array, d: int, threshold: Array | float) -> Array:
    """float64: how many runs on each side would show such a change in nine of ten comparisons, from 2 to MOST_RUNS; nan
    where that is not known. variance: of the logarithm of a run's amount, known with so many degrees of freedom, of
    which d are from the runs; threshold: the p-value that is significant."""
    prior = np.maximum(freedom - d, 0.0)
    known = np.isfinite(change) & np.isfinite(variance) & np.isfinite(freedom) & (change != 0)
    low, high = np.full(len(change), 1.0), np.full(len(change), float(MOST_RUNS))
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = np.abs(change) / np.sqrt(2 * variance)
    # low does not do, high does or is the most.
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        with np.errstate(invalid="ignore"):
            does = errors * np.sqrt(middle) >= _distance_needed(prior + 2 * middle - 2, threshold, freedom)
        step = high - low > 1
        high, low = np.where(step & does, middle, high), np.where(step & ~does, middle, low)
    return np.where(known, high, np.nan)


def _distance_needed(freedom: Array, threshold: Array | float, known_with: Array) -> Array:
    """Returns by how many standard errors something has to change for a t test to find it with a probability of POWER:
    the noncentrality of Student's distribution, by Johnson's and Welch's approximation, to 0.002 of the power.
    known_with: the degrees of freedom of the variance by which standard errors are told: it may be larger than was
    found."""
    freedom = np.maximum(freedom, 1.0)
    bound = -special().stdtrit(freedom, threshold / 2)
    sure = float(special().ndtri(POWER))
    spread = np.sqrt(1 + np.square(bound) / (2 * freedom))
    found = bound * (1 - 1 / (4 * freedom)) + sure * spread
    relative = spread / found
    found *= np.exp(sure * (np.hypot(relative, np.sqrt(1 / (2 * known_with))) - relative))
    return found  # type: ignore[no-any-return]
