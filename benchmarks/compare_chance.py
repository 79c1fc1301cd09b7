"""How often `compare` names something where nothing changed, with one run and more on each side; and whether as many
runs as it asks for would do.

    make compare-study STUDY='--simulated 0 --redrawn 0 --live 0 --trials 0'

Simulated are programs with functions that run now and then, in samples and in calls. Split are real recordings of one
program, node's with all that a compiler does differently from run to run: each trial takes some for the base and others
for the new side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from traceferry.analysis.compare.comparison import Comparison, Row, compare
from traceferry.analysis.compare.gate import evaluate, parse
from traceferry.analysis.compare.runs import Run
from traceferry.analysis.totals.portable import Totals, Tree
from traceferry.model import Array

SHAPES = ((1, 1), (1, 2), (1, 5), (2, 2), (3, 3), (5, 5), (8, 8))
GATES = ("self > 5%", "time > 5%")
FUNCTIONS = 600
SPREAD = 0.03
Draw = Callable[[], Run]


def split(runs: Sequence[Run], n_trials: int) -> dict[str, Any]:
    """Of each shape, in how many parts of the trials something was named."""
    rng = np.random.default_rng(3)
    found = {}
    for shape in SHAPES:
        comparisons = []
        for _ in range(n_trials if sum(shape) <= len(runs) else 0):
            chosen = [runs[i] for i in rng.choice(len(runs), sum(shape), replace=False)]
            comparisons.append(compare(chosen[: shape[0]], chosen[shape[0] :]))
        found[f"{shape[0]} + {shape[1]}"] = _judged(comparisons)
    return found


def rare(n_trials: int) -> dict[str, Any]:
    """Of each program and shape."""
    rng = np.random.default_rng(4)
    found = {}
    for name, draw in programs(rng).items():
        found[name] = {
            f"{n} + {m}": _judged(
                [compare([draw() for _ in range(n)], [draw() for _ in range(m)]) for _ in range(n_trials)]
            )
            for n, m in SHAPES
        }
    return found


def _judged(comparisons: Sequence[Comparison]) -> str:
    if not comparisons:
        return "too few recordings"
    n = len(comparisons)
    functions = sum(any(table.changed for table in c.tables) or c.tiers_changed for c in comparisons)
    wholes = sum(bool(c.whole.changed) for c in comparisons)
    text = f"{100 * functions / n:.1f} %, the whole {100 * wholes / n:.1f} %"
    for gate in GATES:
        status = [evaluate(parse(gate), c).status for c in comparisons]
        failed, undecided = (100 * status.count(word) / n for word in ("failed", "undecided"))
        text += f"; {gate}: {failed:.1f} % fail, {undecided:.0f} % not decided"
    return text


# ---------------------------------------------------------------- simulated programs


def programs(rng: np.random.Generator) -> dict[str, Draw]:
    """Of FUNCTIONS functions: a quarter has less than a sample in a run, two thirds less than ten; of those that are
    called a third is called now and then, or each is called as often in every run but one of fifty, or all but one."""
    share = np.exp(2.2 * rng.standard_normal(FUNCTIONS))
    share *= 20_000 / share.sum()
    ns = np.rint(np.exp(6 + rng.standard_normal(FUNCTIONS)))
    often = np.maximum(1.0, np.rint(np.exp(4 + 2.5 * rng.standard_normal(FUNCTIONS))))
    nth = np.arange(FUNCTIONS)
    now_and_then = np.array([0.1, 0.5, 1, 2, 4])[nth // 3 % 5]

    def speed() -> Array:
        return np.exp(SPREAD * rng.standard_normal(FUNCTIONS))

    return {
        "rare functions, samples": lambda: sampled(rng.poisson(share * speed())),
        "one function of twenty in every second run": lambda: sampled(
            rng.poisson(share * speed() * np.where(nth % 20, 1, 2 * (rng.random(FUNCTIONS) < 0.5)))
        ),
        "a third called now and then": lambda: called(
            np.where(nth % 3, often, rng.poisson(now_and_then)), ns * speed()
        ),
        "one of fifty called at random": lambda: called(np.where(nth % 50, often, rng.poisson(often)), ns * speed()),
        "all called at random": lambda: called(rng.poisson(share / 10), ns * speed()),
        "one function called 100 or 110 times": lambda: called(
            np.where(nth == 7, 100 + 10 * (rng.random() < 0.5), often), ns * speed()
        ),
    }


def sampled(counts: Array) -> Run:
    zeros = np.zeros(len(counts), np.int64)
    return _run(np.stack([zeros, zeros, zeros, counts, counts], axis=1), int(counts.sum()) * 10**6, 1e6)


def called(counts: Array, ns: Array) -> Run:
    took, zeros = np.rint(counts * ns), np.zeros(len(counts))
    return _run(np.stack([counts, took, took, zeros, zeros], axis=1), int(took.sum()), 0.0)


def _run(amounts: Array, duration_ns: int, sample_ns: float) -> Run:
    seen = np.flatnonzero(amounts.any(axis=1))
    keys = [(f"f{nth}", "", 0, "") for nth in seen.tolist()]
    functions = Totals().functions.of(keys, amounts[seen].astype(np.int64))
    return Run("simulated", replace(Totals(), functions=functions), Tree(), duration_ns, None, sample_ns, 0)


# ---------------------------------------------------------------- runs that would do


def asked_for(n_trials: int, functions: int = 120, most: int = 40) -> dict[str, str]:
    """Of rows that are unknown: how often the change that they seem to have is found in as many runs as are asked for,
    where it is real. Rows for which more than `most` are asked for are left out."""
    rng = np.random.default_rng(5)
    found = {}
    for unit in ("samples", "times"):
        for n in (2, 3, 5):
            hits: list[bool] = []
            asked: list[int] = []
            while len(hits) < n_trials:
                mean = np.exp(4.5 + 1.2 * rng.standard_normal(functions))
                spread = SPREAD * 2 ** rng.uniform(-1, 1, functions)

                def side(
                    n_runs: int, factor: Array, mean: Array = mean, spread: Array = spread, unit: str = unit
                ) -> list[Run]:
                    speeds = np.exp(spread[:, None] * rng.standard_normal((functions, n_runs)))
                    amounts = (mean * factor)[:, None] * speeds
                    if unit == "samples":
                        return [sampled(column) for column in rng.poisson(amounts).T]
                    return [called(np.ones(functions), 1e5 * column) for column in amounts.T]

                same = np.ones(functions)
                first = compare(side(n, same), side(n, same))
                rows = [row for row in first.tables_named("self")[0].rows if row.runs and n < row.runs <= most]
                for which in rng.permutation(len(rows))[:4].tolist():
                    row = rows[which]
                    factor = same.copy()
                    factor[int(row.name[1:])] = _factor(row, first.options.margin)
                    again = compare(side(row.runs or n, same), side(row.runs or n, factor))
                    table = again.tables_named("self")[0]
                    hits.append(next(r for r in table.rows if r.name == row.name).is_changed)
                    asked.append(row.runs or n)
            found[f"{unit}, {n} + {n}"] = f"{100 * np.mean(hits):.0f} % at {np.median(asked):.0f} runs (median)"
    return found


def _factor(row: Row, margin: float) -> float:
    """The change that the row's runs are to show."""
    log = np.log1p(row.change or 0.0)
    return float(np.exp(max(abs(log), np.log1p(margin)) * (1 if log >= 0 else -1)))
