"""Runs of different length or speed are brought to one level before functions are compared.

Within a side, the factor of a run is how many times as much as usual its typical function has: the mean, over
functions, of the ratio to their mean over the side's runs, what is far from the median counting as less far. (It is
DESeq's size factor but for the mean: a median is often one function's own ratio, which then seems not to vary.) How
much more of everything one side has than the other is another question: `level` answers it, with how sure that is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from traceferry.model import Array

Method = Literal["typical", "whole", "none"]
METHODS: tuple[Method, ...] = ("typical", "whole", "none")
# Below so many samples in a run a ratio says little.
FEWEST = 5
# So many functions are needed to say how long a run was.
FEWEST_FUNCTIONS = 5
# In a mean no function weighs more than this part of all, in a median this.
MOST_OF_MEAN, MOST_OF_MEDIAN = 0.1, 0.2
# Beyond so many standard deviations a function is no further from the median.
FAR = 2.0
# The standard error up to which samples say how long a run was.
EXACT = 0.02


@dataclass(frozen=True)
class Factors:
    """of_run: float64, by which the amounts of each run are divided; method: how they were found. With "typical" the
    geometric mean of each side is 1: what both sides differ by is the level."""

    of_run: Array
    method: Method


def factors_of(amounts: Array, n_base: int, method: Method, is_sampled: bool) -> Factors:
    """amounts: float64 [rows, runs], the base's runs first. With "whole", the base's geometric mean is 1."""
    if method == "typical":
        found = _typical(amounts, n_base, is_sampled, _center)
        if found is None:
            return Factors(np.ones(amounts.shape[1]), "typical")
        logs, variance, of_chance = found
        # What chance alone makes of factors is not taken for a run's speed (James and Stein).
        return Factors(np.exp(logs * max(variance - of_chance, 0.0) / max(variance, 1e-300)), "typical")
    whole = amounts.sum(axis=0)
    if method == "whole" and np.all(whole > 0):
        logs = np.log(whole)
        return Factors(np.exp(logs - logs[:n_base].mean()), "whole")
    return Factors(np.ones(amounts.shape[1]), "none")


def lengths_of(amounts: Array, n_base: int, is_sampled: bool) -> Array:
    """float64: how long each run was, the geometric mean of its side being 1: by its typical function or, where that is
    not known well, by its whole."""
    found = _typical(amounts, n_base, is_sampled, weighted_median)
    if found is not None and (not is_sampled or found[2] <= EXACT**2):
        lengths: Array = np.exp(found[0])
        return lengths
    whole = amounts.sum(axis=0)
    if not np.all(whole > 0):
        return np.ones(amounts.shape[1])
    logs = np.log(whole)
    of_whole: Array = np.exp(np.concatenate([side - side.mean() for side in (logs[:n_base], logs[n_base:])]))
    return of_whole


def _typical(
    amounts: Array, n_base: int, is_sampled: bool, center_of: Callable[[Array, Array], float]
) -> tuple[Array, float, float] | None:
    """(the logarithms of the factors, their variance within a side, how much of it is chance). center_of: the middle of
    values with weights."""
    usable = np.all(amounts > 0, axis=1)
    if is_sampled:
        usable &= amounts.mean(axis=1) >= FEWEST
    used = amounts[usable]
    if len(used) < FEWEST_FUNCTIONS:
        return None
    size = used.mean(axis=1)
    weight = limited(np.sqrt(size), MOST_OF_MEAN)
    logs = np.log(used)
    found = np.zeros(amounts.shape[1])
    noise = np.zeros(len(used))
    freedom = amounts.shape[1] - 2
    for side in (slice(None, n_base), slice(n_base, None)):
        ratios = logs[:, side] - logs[:, side].mean(axis=1, keepdims=True)
        centers = np.array([center_of(column, weight) for column in ratios.T])
        found[side] = centers - centers.mean()
        noise += np.square(ratios - found[side]).sum(axis=1) / max(freedom, 1)
    of_each = np.maximum(noise, 1 / size) if is_sampled else noise
    of_chance = float((weight**2 * of_each).sum() / weight.sum() ** 2)
    return found, float(np.square(found).sum()) / max(freedom, 1), of_chance


def _center(values: Array, weight: Array) -> float:
    """The mean of values, those far from the median being taken for less far (winsorised)."""
    middle = weighted_median(values, weight)
    reach = FAR * 1.4826 * weighted_median(np.abs(values - middle), weight)
    return float(np.average(np.clip(values, middle - reach, middle + reach), weights=weight))


def limited(weight: Array, part: float = MOST_OF_MEDIAN) -> Array:
    """Weights of which none is more than this part of all, where there are enough."""
    for _ in range(20):
        weight = np.minimum(weight, weight.sum() * part)
    return weight


def weighted_median(values: Array, weight: Array) -> float:
    """The value below and above which the weights are equal; between two, their mean."""
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weight[order])
    half = sums[-1] / 2
    low = int(np.searchsorted(sums, half * (1 - 1e-12)))
    high = int(np.searchsorted(sums, half * (1 + 1e-12)))
    high = min(high, len(values) - 1)
    return float(values[order[low]] + values[order[high]]) / 2
