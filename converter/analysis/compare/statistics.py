"""Whether changes are more than noise. docs/compare.md justifies the choices.

With five runs on each side the smallest p-value of a permutation test is 2/252: over a thousand functions nothing could
ever be significant. Here each function's variance between runs is estimated together with those of the others, as limma
and edgeR do: it is drawn towards what functions of its size have, as far as the recording shows that they are alike.

Two models: `of_counts` for samples, quasi-Poisson (the variance is never below Poisson's); `of_amounts` for measured
times, bytes and numbers, normal on the logarithm. Both return an `Effects`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from traceferry.analysis.compare.factors import Factors, weighted_median
from traceferry.common.errors import UsageError
from traceferry.model import Array

# Functions with fewer samples in a run do not take part in estimating variances.
FEWEST = 5.0
# So many neighbours in size tell what variance is usual: a quarter of all, within these bounds.
NEIGHBOURS = (7, 25)
FEWEST_FOR_PRIOR = 10
CONFIDENCE = 0.95
# Degrees of freedom of the prior that are tried; those are possible whose likelihood is within 95 %, to one side.
PRIORS = np.geomspace(0.5, 100, 40)
AS_LIKELY = 1.645**2 / 2
# A variance that so few functions would have by chance is a function's own.
OWN_BEYOND = 0.05


ALL = slice(None)


@dataclass(frozen=True)
class CountsApart:
    """base, new: float64 [rows], the sums of the runs; scales: of both sides' runs together."""

    base: Array
    new: Array
    scales: tuple[float, float]
    dispersion: Array

    def is_of_both(self, fewest: float) -> Array:
        """bool: which rows both sides have, and together at least so many samples."""
        found: Array = (self.base > 0) & (self.new > 0) & (self.base + self.new >= fewest)
        return found

    def squares(self, levels: Array, rows: Array | slice = ALL, corrected: bool = True) -> Array:
        """float64 [rows, n], squared t values, if the new side has so many times as much of everything: the deviance
        between both sides, chi-squared with one degree of freedom where nothing changed. levels: the logarithms [rows
        or 1, n]; corrected: for tests, with half a sample less of difference, so that few samples are not significant
        too often."""
        base, new = self.base[rows, None], self.new[rows, None]
        whole = base + new
        part = self.scales[0] / (self.scales[0] + self.scales[1] * np.exp(levels))
        if corrected:
            difference = base - whole * part
            base = base - np.sign(difference) * np.minimum(np.abs(difference), 0.5)
            new = whole - base
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = [np.where(n > 0, n * np.log(n / (whole * p)), 0.0) for n, p in ((base, part), (new, 1 - part))]
        found: Array = np.maximum(2 * (logs[0] + logs[1]), 0.0) / self.dispersion[rows, None]
        return found


@dataclass(frozen=True)
class LogsApart:
    """change, error: as in Effects."""

    change: Array
    error: Array

    def is_of_both(self, _: float) -> Array:
        """bool: as of counts. A change is finite where both sides have something."""
        return np.isfinite(self.change)

    def squares(self, levels: Array, rows: Array | slice = ALL, corrected: bool = True) -> Array:
        """float64 [rows, n]: as those of counts."""
        found: Array = np.square((self.change[rows, None] - levels) / self.error[rows, None])
        return found


@dataclass(frozen=True)
class Effects:
    """The change of each row. base, new: float64, what a run has on average, at the level of the base; change: the
    logarithm of new / base; low, high: its interval of confidence; p: without correction for their number, nan where
    there is no test; variance: of the logarithm of one run's amount; error: the standard error of the change, apart
    from the level's; freedom: its degrees of freedom; is_level_open: bool, where the level is less sure than the
    change."""

    base: Array
    new: Array
    change: Array
    low: Array
    high: Array
    p: Array
    variance: Array
    error: Array
    freedom: Array
    distance: CountsApart | LogsApart
    is_level_open: Array

    @classmethod
    def of(
        cls, base: Array, new: Array, change: Array, variance: Array, error: Array, freedom: Array,
        distance: CountsApart | LogsApart,
    ) -> Effects:  # fmt: skip
        """Returns the effects, with their intervals and tests, as recorded."""
        reach, squares = reach_of(freedom) * error, distance.squares(np.zeros((1, 1)))[:, 0]
        return cls(
            base, new, change, change - reach, change + reach, p_of_squares(squares, freedom), variance, error, freedom,
            distance, np.zeros(len(base), bool),
        )  # fmt: skip

    def untested(self) -> Effects:
        """Returns the amounts alone, with nothing known of chance."""
        nothing = np.full(len(self.p), np.nan)
        return replace(self, p=nothing, low=nothing, high=nothing, variance=nothing)


def special() -> Any:
    """The module of scipy with the distributions' functions, a tenth of what scipy.stats costs to import. Raises
    UsageError where it is not installed."""
    try:
        return import_module("scipy.special")
    except ImportError:
        raise UsageError("compare needs scipy: pip install 'traceferry[compare]'") from None


def of_counts(amounts: Array, n_base: int, factors: Factors) -> Effects:
    """Samples. amounts: float64 [rows, runs], the base's runs first; with one run on each side, the Poisson model."""
    scale = factors.of_run
    halves, scales = sides_of(amounts, n_base), sides_of(scale, n_base)
    base, new = rates = [*map(_rates, halves, scales)]
    mean = _rates(amounts, scale) * np.mean(scale)
    inside = sum(map(_deviance, halves, rates, scales))
    d = amounts.shape[1] - 2
    if d > 0:
        excess = _excess(inside / d, mean, d)
        usual = 1.0 + excess * mean
        dispersion, freedom = _moderated(inside / d, usual, d, mean >= FEWEST)
        # Never below what is usual, nor below Poisson's: what varied little by chance would be significant.
        dispersion = np.maximum(dispersion, usual)
    else:
        dispersion, freedom = np.ones(len(amounts)), np.full(len(amounts), np.inf)
    sums = [side.sum(axis=1) for side in halves]
    distance = CountsApart(sums[0], sums[1], (float(scales[0].sum()), float(scales[1].sum())), dispersion)
    # Half a sample on each side, as is usual, keeps the interval finite where one side has none.
    counts = [np.maximum(side, 0.5) for side in sums]
    error = np.sqrt(dispersion * (1 / counts[0] + 1 / counts[1]))
    change = np.log(counts[1] / distance.scales[1]) - np.log(counts[0] / distance.scales[0])
    n_runs = amounts.shape[1]
    variance = np.square(error) * n_base * (n_runs - n_base) / n_runs
    return Effects.of(base, new, change, variance, error, freedom, distance)


def of_amounts(
    amounts: Array, n_base: int, factors: Factors, counts: Array | None = None, drawn: Array | None = None
) -> Effects:
    """Measured amounts. amounts: float64 [rows, runs], the base's runs first; counts: as these, how many things each is
    of; drawn: as these, of how many random samples each is a sum, 0 where it is none. Rows that one side's runs do not
    all have have no test, and neither has a comparison of one run with one."""
    level = amounts / factors.of_run
    base, new = map(_rates, sides_of(amounts, n_base), sides_of(factors.of_run, n_base))
    n_rows, n_runs = amounts.shape
    n_new, d = n_runs - n_base, n_runs - 2
    testable = np.all(level > 0, axis=1) & (d > 0)
    variance, error, freedom = (np.full(n_rows, np.nan) for _ in range(3))
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.log(new) - np.log(base)
    if np.any(testable):
        logs = np.log(level[testable])
        halves = sides_of(logs, n_base)
        centers = [side.mean(axis=1) for side in halves]
        raw = sum(np.square(side - of[:, None]).sum(axis=1) for side, of in zip(halves, centers, strict=True)) / d
        # What the same in every run is known up to the unit in which it was recorded.
        least = np.square(1 / np.maximum(amounts[testable].mean(axis=1), 1.0)) / 12
        raw = np.maximum(raw, least)
        usual = _usual(raw, logs.mean(axis=1), d)
        moderated, freedom[testable] = _moderated(raw, usual, d, np.ones(len(raw), bool))
        if counts is not None:
            moderated = np.maximum(moderated, _of_things(counts[testable], n_base))
        if drawn is not None:
            moderated = np.maximum(moderated, _of_drawing(drawn[testable], n_base))
        error[testable] = np.sqrt(moderated * (1 / n_base + 1 / n_new))
        change[testable], variance[testable] = centers[1] - centers[0], moderated
    return Effects.of(base, new, change, variance, error, freedom, LogsApart(change, error))


def adjusted(p: Array) -> Array:
    """The false discovery rates (Benjamini and Hochberg) at which each would be significant; nan stays."""
    found = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    n = len(order)
    rates = p[order] * n / np.arange(1, n + 1)
    found[order] = np.minimum(np.minimum.accumulate(rates[::-1])[::-1], 1.0)
    return found


# ---------------------------------------------------------------- variances


def sides_of(values: Array, n_base: int) -> tuple[Array, Array]:
    """Returns the base's runs, and those of the new side. values: with runs as the last dimension."""
    return values[..., :n_base], values[..., n_base:]


def _rates(counts: Array, scale: Array) -> Array:
    found: Array = counts.sum(axis=1) / scale.sum()
    return found


def _deviance(counts: Array, rate: Array, scale: Array) -> Array:
    """Returns the deviance of Poisson counts from their means, summed over the runs."""
    mean = rate[:, None] * scale[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(counts > 0, counts * np.log(counts / mean), 0.0)
    found: Array = 2 * (logs - (counts - mean)).sum(axis=1)
    return np.maximum(found, 0.0)


def _excess(dispersion: Array, mean: Array, d: int) -> float:
    """Returns by how much the variance grows with the square of the mean: that of the speed of functions from run to
    run. At it, half of the dispersions are above what is usual."""
    used = mean >= FEWEST
    if not np.any(used):
        return 0.0
    dispersion, mean = np.maximum(dispersion[used], 1e-12), mean[used]
    # Small functions vary as samples do, whatever the excess.
    weight = mean / (mean + 100.0)
    middle = np.log(special().chdtri(d, 0.5) / d)

    def above(excess: float) -> bool:
        return weighted_median(np.log(dispersion / (1 + excess * mean)), weight) > float(middle)

    low, high = 1e-9, 10.0
    if not above(low):
        return 0.0
    for _ in range(60):
        center = float(np.sqrt(low * high))
        low, high = (center, high) if above(center) else (low, center)
    return high


def _of_things(counts: Array, n_base: int) -> Array:
    """The variance of the logarithm of counts: Poisson's, where runs of a side differ. What is called now and then
    varies more than what is called as often in each run and takes as much time."""
    varies = sum(np.ptp(side, axis=1) for side in sides_of(counts, n_base)) > 0
    return np.where(varies, 1 / np.maximum(counts.mean(axis=1), 0.5), 0.0)


def _of_drawing(samples: Array, n_base: int) -> Array:
    """The variance of the logarithm of a run's amount with which both sides together vary as sums of so many random
    samples do."""
    sides = sides_of(samples, n_base)
    of_change = sum(1 / np.maximum(side.sum(axis=1), 1.0) for side in sides)
    found: Array = of_change / sum(1 / side.shape[1] for side in sides)
    return np.where(samples.any(axis=1), found, 0.0)


def _usual(variance: Array, size: Array, d: int) -> Array:
    """Returns the variance that functions of each size have: the median of neighbours in size."""
    unbias = d / special().chdtri(d, 0.5)
    order = np.argsort(size, kind="stable")
    logs = np.log(variance[order])
    # One run more than two says little of a function, but something of many.
    n_near = min(int(np.clip(len(variance) // 4, *NEIGHBOURS)) * max(4 - d, 1), len(variance))
    found = np.empty(len(variance))
    for nth, row in enumerate(order.tolist()):
        start = max(0, min(nth - n_near // 2, len(logs) - n_near))
        found[row] = np.median(logs[start : start + n_near])
    usual: Array = np.exp(found) * unbias
    return usual


def _moderated(variance: Array, usual: Array, d: int, used: Array) -> tuple[Array, Array]:
    """(variances drawn towards what is usual, their degrees of freedom): the empirical Bayes of Smyth (2004), with the
    variances as of F distribution. What varies far more than is usual keeps its own variance (Phipson et al. 2016)."""
    if np.count_nonzero(used) < FEWEST_FOR_PRIOR:
        return variance, np.full(len(variance), float(d))
    prior, scale = _prior(variance[used] / usual[used], d)
    usual = usual * scale
    moderated = (prior * usual + d * variance) / (prior + d)
    is_own = variance > usual * float(special().fdtri(d, prior, 1 - OWN_BEYOND))
    return np.where(is_own, variance, moderated), np.where(is_own, float(d), prior + d)


def _prior(ratio: Array, d: int) -> tuple[float, float]:
    """(degrees of freedom of the prior, by how much its variance is above the usual one) of variances as part of the
    usual ones, by maximum likelihood with the median held. Moments of logarithms, as limma has them, say nothing with
    one or two degrees of freedom. Of all priors that are as likely as chance allows, the one that trusts least."""
    middle = max(float(np.median(ratio)), 1e-300)
    scale = middle / special().fdtri(d, PRIORS, 0.5)
    x = ratio[:, None] / scale
    likelihood = (-(d / 2) * np.log(scale * PRIORS / d) - (d + PRIORS) / 2 * np.log1p(d / PRIORS * x)).sum(
        axis=0
    ) - len(ratio) * special().betaln(d / 2, PRIORS / 2)
    nth = int(np.flatnonzero(likelihood >= likelihood.max() - AS_LIKELY)[0])
    return float(PRIORS[nth]), float(scale[nth])


def p_of_squares(ratio: Array, freedom: Array) -> Array:
    """Returns the p of a squared t; with infinite freedom, of a squared normal value."""
    finite = np.where(np.isinf(freedom), 1.0, freedom)
    found: Array = np.where(np.isinf(freedom), special().chdtrc(1, ratio), special().fdtrc(1, finite, ratio))
    return found


def reach_of(freedom: Array) -> Array:
    """Returns how many standard errors the interval reaches to each side."""
    finite = np.where(np.isinf(freedom), 1.0, freedom)
    part = (1 + CONFIDENCE) / 2
    found: Array = np.where(np.isinf(freedom), special().ndtri(part), special().stdtrit(finite, part))
    return found
