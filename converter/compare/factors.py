"""Runs of different length or speed are brought to one level before functions are compared.

The factor of a run is how many times as much as usual its typical function has: the median, over functions, of the
ratio to the geometric mean of all runs (as DESeq's size factors). A function that changed does not move the median, so
that it does not make all others look changed, as shares of the whole would.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from traceferry.model import Array

Method = Literal["typical", "whole", "none"]
METHODS: tuple[Method, ...] = ("typical", "whole", "none")
# Below so many samples a ratio says little.
FEWEST = 5
# Functions with this share of the whole, or more, weigh the same.
LARGE_SHARE = 0.05
# So many functions of equal weight are needed for a median that a changed one does not move.
FEWEST_REFERENCES = 4.0


@dataclass(frozen=True)
class Factors:
    """of_run: float64, how many times as much as usual each run has, the geometric mean of the base's being 1; method:
    how it was found; error: the standard error of the logarithm of one factor by chance alone, where samples tell."""

    of_run: Array
    method: Method
    error: float = 0.0


def factors_of(amounts: Array, n_base: int, method: Method, is_sampled: bool) -> Factors:
    """amounts: float64 [rows, runs], the base's runs first. Where too few functions have enough in every run,
    the amounts are compared as recorded."""
    if method == "typical":
        found = _typical(amounts, is_sampled)
        if found is not None:
            return Factors(_relative(found[0], n_base), "typical", found[1])
        method = "whole" if is_sampled else "none"
    whole = amounts.sum(axis=0)
    if method == "whole" and np.all(whole > 0):
        return Factors(_relative(np.log(whole), n_base), "whole")
    return Factors(np.ones(amounts.shape[1]), "none")


def _typical(amounts: Array, is_sampled: bool) -> tuple[Array, float] | None:
    """(the logarithms of the factors, their standard error)"""
    usable = np.all(amounts > 0, axis=1)
    if is_sampled:
        usable &= amounts.mean(axis=1) >= FEWEST
    used = amounts[usable]
    if not len(used):
        return None
    share = (used / amounts.sum(axis=0)).mean(axis=1)
    weight = np.minimum(share, LARGE_SHARE)
    references = float(weight.sum() ** 2 / (weight**2).sum())
    if references < FEWEST_REFERENCES:
        return None
    logs = np.log(used)
    ratios = logs - logs.mean(axis=1, keepdims=True)
    found = np.array([weighted_median(column, weight) for column in ratios.T])
    # A median of normal values varies by pi / 2 times as much as their mean.
    variance = np.pi / 2 * float((weight**2 / used.mean(axis=1)).sum() / weight.sum() ** 2)
    return found, float(np.sqrt(variance)) if is_sampled else 0.0


def weighted_median(values: Array, weight: Array) -> float:
    """The value below and above which the weights are equal; between two, their mean."""
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weight[order])
    half = sums[-1] / 2
    low = int(np.searchsorted(sums, half * (1 - 1e-12)))
    high = int(np.searchsorted(sums, half * (1 + 1e-12)))
    high = min(high, len(values) - 1)
    return float(values[order[low]] + values[order[high]]) / 2


def _relative(logs: Array, n_base: int) -> Array:
    found: Array = np.exp(logs - logs[:n_base].mean())
    return found
