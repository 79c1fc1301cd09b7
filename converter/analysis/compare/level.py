"""How much more of everything the new side has, and how surely that is known: was the machine slower, or a function?

Each function votes on the level by its own ratio of new to base, as sharply as its noise allows; with a probability of
CHANGED it has changed and says nothing. So each has one vote, however much of the whole it has: what takes 99 % of the
time is outvoted by a dozen small functions that agree, and where these are too few or too small, several levels stay
possible. Before the votes the level is as likely where one function is as where another is; that, times the votes, is
its distribution. Each function is compared to the level of the others, averaged over that distribution, so that it
cannot explain away its own change.

What only one side has tells nothing of the machine: it is code that came, went or got another name. So functions vote
that both sides have, and often enough: of those with a few samples, the ones that both sides have by chance have about
as many on each, whatever the level.

A level has to explain the whole. Where a helper is no longer inlined, all that call it have less themselves and agree
on it, and no machine was faster: the whole did not become less. So levels do not count that are far outside of what the
whole changed by, and those that are a little outside if what one side has alone makes up for it. Where most of the
distribution is of these, nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from traceferry.analysis.compare.amounts import Key
from traceferry.analysis.compare.factors import limited, weighted_median
from traceferry.analysis.compare.statistics import CONFIDENCE, Effects, p_of_squares, reach_of, special
from traceferry.model import Array, distinct

# How probable it is that a function changed, before anything is known: more than is usual, so that it takes six that
# agree to say of one that it is the one that changed.
CHANGED = 0.2
# The level is looked for up to twice and half of what the median says, and where functions are, up to four times that.
# Where nothing is known of it, it is not farther than twice and half from the median and from "as recorded"; farther
# away it is so much less likely, before the votes: there most of the time would have to be of functions that changed
# as the machine did, the other way round.
NEAR, FAR, FAR_AWAY = np.log(2), np.log(4), 0.01
# What has ten times as much on one side as on the other may have taken over the work of others, as what is new has. If
# it is half of what others lack, or more, that is no level.
TAKEN_OVER, MADE_UP = 10.0, 0.5
# With fewer samples on both sides together a function has no vote. With so many, it is rarely missing on one of them.
FEWEST_TO_VOTE = 10
# More functions than these do not make the level more exact.
MOST_VOTES = 1000
# At so many places the distribution of the level is computed, besides those around the most exact votes.
PLACES, PLACES_OF_MIDDLE = 161, 81
PLACES_OF_VOTE = np.array([-8, -4, -3, -2.5, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 8])
# Before the votes, the level is around each function as widely as so many of its standard errors.
AROUND = 4.0
MOST_EXACT = 24
# The parts at which a distribution is kept, closer together where they are small: these decide what is significant.
TAIL = (1e-6, 1e-5, 1e-4, 1e-3, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.4)
PARTS = np.array([*TAIL, 0.5, *(1 - part for part in reversed(TAIL))])
# A level that may be off by more than this is not what amounts are divided by, but what is proven of it: the end of its
# interval of confidence that is nearer to "as recorded", nothing where the interval holds that. Where that is so for
# most of what functions have, all are divided by what is proven whichever function is left out: else what a function
# has with a callee, whose own vote is in its level, could be less than what the callee has.
ROUGH = np.log(1.1)
# The median of a squared normal value.
MEDIAN_OF_SQUARE = 0.4549


@dataclass(frozen=True)
class Level:
    """Logarithms of new / base. quantiles: float64 [votes + 1, PARTS], of the level by all votes but that of the row,
    in the last row by all; none_right: float64 [votes + 1], how probable it is that all these functions changed, so
    that nothing is known; places: the row of each function that votes; widest: the levels that are possible then;
    refused: the level that has most votes, and the change of the whole that it does not explain; is_open: whether the
    level is rough for half of all that functions have, or more."""

    quantiles: Array
    none_right: Array
    places: dict[Key, int]
    widest: tuple[float, float] = (-NEAR, NEAR)
    refused: tuple[float, float] | None = None
    is_open: bool = True

    @property
    def n_votes(self) -> int:
        return len(self.places)

    @property
    def ratio(self) -> tuple[float, float, float]:
        """Returns how many times as much as the base the new side has: what counts of it, and the interval of
        confidence."""
        levels = of_rows(self, [()])
        return tuple(float(np.exp(x[0])) for x in (levels.middle, levels.low, levels.high))  # type: ignore[return-value]


@dataclass(frozen=True)
class RowLevels:
    """The level of each row by the other functions. middle: what is taken for it, by which amounts are divided;
    low, high: the interval of confidence, infinite where nothing is known; steps: float64 [rows, PARTS + 1], equal in
    weight to the parts between PARTS; none_right: as in Level."""

    middle: Array
    low: Array
    high: Array
    steps: Array
    none_right: Array


def level_of(effects: Effects, keys: Sequence[Key], can_vote: Array) -> Level:
    """can_vote: bool, which rows vote if they have a test and both sides have them."""
    is_known = np.isfinite(effects.error) & np.isfinite(effects.change)
    rows = np.flatnonzero(can_vote & is_known & effects.distance.is_of_both(FEWEST_TO_VOTE))
    rows = rows[np.argsort(effects.error[rows], kind="stable")[:MOST_VOTES]]
    if not len(rows):
        return Level(np.zeros((1, len(PARTS))), np.ones(1), {})
    center, votes, places, before = _votes(effects, rows)
    near = (places >= center - NEAR) & (places <= center + NEAR)
    # By how much each function's vote can be outvoted: by nothing, where it has too few samples to say anything.
    against = votes[:, near].min(axis=1) - votes.max(axis=1)
    none_right = np.exp(np.append(against.sum() - against, against.sum()))
    of_all = votes.sum(axis=0)
    sums = np.concatenate([of_all - votes, of_all[None, :]])
    whole = _whole_of(effects)
    widest = _widest(center)
    before = np.where((places < widest[0]) | (places > widest[1]), FAR_AWAY, 1.0) * before
    density = np.exp(sums - sums.max(axis=1, keepdims=True)) * before
    # What most of the votes are for, and does not explain the whole, is no level: these functions changed.
    unexplained = density[:, ~_explain(places, effects, whole)].sum(axis=1)
    is_refused = unexplained > density.sum(axis=1) / 2
    none_right = np.where(is_refused, 1.0, none_right)
    of_key = {keys[row]: nth for nth, row in enumerate(rows.tolist())}
    level = Level(_quantiles(density, places), none_right, of_key, widest)
    level = replace(level, is_open=_is_open(level, keys, effects.base + effects.new))
    if not is_refused[-1]:
        return level
    best = float(places[np.argmax(of_all)])
    return replace(level, widest=_widest(whole), refused=(best, whole))


def _is_open(level: Level, keys: Sequence[Key], amounts: Array) -> bool:
    of = of_rows(level, keys)
    rough = (of.high - of.low) / 2 > ROUGH
    return bool(2 * amounts[rough].sum() >= amounts.sum())


def at_level(effects: Effects, level: Level, keys: Sequence[Key]) -> Effects:
    """The effects at the level of the other functions, with its uncertainty in intervals and p-values."""
    of = of_rows(level, keys)
    weight = np.diff(PARTS, prepend=0, append=1)
    # Of the two tails apart: otherwise what is exact would be significant wherever the level may be.
    tails = p_of_squares(effects.distance.squares(of.steps), effects.freedom[:, None]) / 2
    is_above = effects.change[:, None] > of.steps
    sides = [(np.where(of_side, tails, 1 - tails) * weight).sum(axis=1) for of_side in (is_above, ~is_above)]
    p = np.minimum(2 * np.minimum(*sides), 1.0)
    # Where all others changed: at the possible level at which this one changed least.
    nearest = np.clip(effects.change, *level.widest)[:, None]
    p_of_none = p_of_squares(effects.distance.squares(nearest), effects.freedom[:, None])[:, 0]
    p = np.where(np.isnan(effects.p), np.nan, of.none_right * p_of_none + (1 - of.none_right) * p)
    change, reach = effects.change - of.middle, reach_of(effects.freedom) * effects.error
    # What is proven without any one function may be outside of what the others tell: the interval reaches to it.
    up = np.maximum(np.minimum(of.high, level.widest[1]) - of.middle, 0.0)
    down = np.maximum(of.middle - np.maximum(of.low, level.widest[0]), 0.0)
    # A change from nothing is infinite.
    with np.errstate(invalid="ignore"):
        low, high = change - np.hypot(reach, up), change + np.hypot(reach, down)
    return replace(
        effects,
        new=effects.new / np.exp(of.middle),
        change=change,
        low=low,
        high=high,
        p=p,
        is_level_open=np.maximum(up, down) > reach,
    )


def of_rows(level: Level, keys: Sequence[Key]) -> RowLevels:
    quantiles, none_right = level.quantiles, level.none_right
    outside = (1 - CONFIDENCE) / 2
    # Of what is known the smaller part may be outside, the more probable it is that nothing is known.
    part = (outside - none_right / 2) / np.maximum(1 - none_right, 1e-300)
    known = part > 0
    low, high = np.full(len(part), -np.inf), np.full(len(part), np.inf)
    for row in np.flatnonzero(known).tolist():
        low[row], high[row] = np.interp([part[row], 1 - part[row]], PARTS, quantiles[row])
    proven = np.clip(0.0, low, high)
    median = quantiles[:, np.searchsorted(PARTS, 0.5)]
    if level.is_open:
        middle = np.full(len(proven), proven[np.argmin(np.abs(proven))])
    else:
        middle = np.where((high - low) / 2 <= ROUGH, median, proven)
    steps = np.concatenate([quantiles[:, :1], (quantiles[:, 1:] + quantiles[:, :-1]) / 2, quantiles[:, -1:]], axis=1)
    rows = np.array([level.places.get(key, len(quantiles) - 1) for key in keys], np.int64)
    return RowLevels(middle[rows], low[rows], high[rows], steps[rows], none_right[rows])


# ---------------------------------------------------------------- the distribution


def _votes(effects: Effects, rows: Array) -> tuple[float, Array, Array, Array]:
    """(the median of the functions, the logarithms of votes [rows, places], the places: levels, ascending; how likely
    each is before the votes)"""
    change, error, freedom = effects.change[rows], effects.error[rows], effects.freedom[rows]
    weight = limited(1 / error)
    center = weighted_median(change, weight)
    # What functions disagree by beyond their noise, as from another layout of the code, is noise of each.
    squares = effects.distance.squares(np.full((1, 1), center), rows, False)[:, 0]
    spread = max(weighted_median(squares, weight) / MEDIAN_OF_SQUARE, 1.0)
    error = error * np.sqrt(spread)

    def votes_at(places: Array) -> Array:
        of_noise = effects.distance.squares(places[None, :], rows, False) / spread
        found: Array = np.log((1 - CHANGED) * _heights(of_noise, freedom[:, None]) + CHANGED)
        return found

    low = min(center - NEAR, max(float(change.min()), center - FAR))
    high = max(center + NEAR, min(float(change.max()), center + FAR))
    exact = slice(None, MOST_EXACT)
    places = np.concatenate(
        [np.linspace(low, high, PLACES), (change[exact, None] + PLACES_OF_VOTE * error[exact, None]).ravel()]
    )
    places = distinct(places[(places >= low) & (places <= high)])
    votes = votes_at(places)
    best = places[int(np.argmax(votes.sum(axis=0)))]
    around = best + np.linspace(-10, 10, PLACES_OF_MIDDLE) / np.sqrt(np.square(1 / error).sum())
    around = np.setdiff1d(around[(around >= low) & (around <= high)], places)
    order = np.argsort(joined := np.concatenate([places, around]), kind="stable")
    places = joined[order]
    return center, np.concatenate([votes, votes_at(around)], axis=1)[:, order], places, _before(places, change, error)


def _whole_of(effects: Effects) -> float:
    """The change of the whole, as recorded."""
    return float(np.log(effects.new.sum()) - np.log(effects.base.sum()))


def _explain(levels: Array, effects: Effects, whole: float) -> Array:
    """bool: which levels explain by how much the whole changed, and do not need that other work made up for them: those
    between none and the whole's, those that are farther away by up to a tenth and, unless functions that came or went
    may have what the others lack, by up to twice."""
    outside = np.maximum(np.maximum(min(whole, 0.0) - levels, levels - max(whole, 0.0)), 0.0)
    base, new = effects.base, effects.new
    came, went = new > TAKEN_OVER * base, base > TAKEN_OVER * new
    stayed = ~(came | went)
    # What the others lack on the side on which they have less, at each level, and what that side has instead.
    lacking = -np.expm1(-np.abs(levels)) * np.where(levels < 0, base[stayed].sum(), new[stayed].sum())
    instead = np.where(levels < 0, new[came].sum(), base[went].sum())
    found: Array = outside <= np.where(instead >= MADE_UP * lacking, ROUGH, NEAR)
    return found


def _widest(center: float) -> tuple[float, float]:
    return min(0.0, center) - NEAR, max(0.0, center) + NEAR


def _before(places: Array, change: Array, error: Array) -> Array:
    """float64, of each place: how likely the level is closer to it than to others, before the votes."""
    edges = np.concatenate([places[:1], (places[1:] + places[:-1]) / 2, places[-1:]])
    below = special().ndtr((edges[None, :] - change[:, None]) / (AROUND * error[:, None]))
    found: Array = np.diff(below, axis=1).mean(axis=0)
    return found


def _heights(squares: Array, freedom: Array) -> Array:
    """Student's density as part of its height; with infinite freedom, the normal one's."""
    finite = np.where(np.isinf(freedom), 1.0, freedom)
    with np.errstate(under="ignore"):
        return np.where(np.isinf(freedom), np.exp(-squares / 2), np.power(1 + squares / finite, -(finite + 1) / 2))


def _quantiles(density: Array, places: Array) -> Array:
    """float64 [rows, PARTS] of distributions over the places. density: of each row, [rows, places]."""
    cumulated = np.cumsum(density, axis=1)
    found = np.empty((len(density), len(PARTS)))
    for row, of_row in enumerate(cumulated / cumulated[:, -1:]):
        found[row] = places[np.minimum(np.searchsorted(of_row, PARTS), len(places) - 1)]
    return found
