"""How well `compare` tells a slower machine from a slower function, where the truth is known: simulated samples.

    make compare-study STUDY='--chance 0 --redrawn 0 --live 0 --trials 0'

One function has a share of all samples and changes between both sides, or does not; the others share the rest,
unevenly, and do not change. The machine of the new side is slower or faster as a whole; besides, each run differs from
the others of its side by some 3 %, and each function from run to run by 2 %. Samples are drawn from that; or amounts
are times, which vary by 1 to 4 %, more in one function than in another. All else is `compare` itself, gates included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from traceferry.analysis.compare.comparison import FEWEST_SAMPLES, compare
from traceferry.analysis.compare.gate import evaluate, parse
from traceferry.analysis.compare.runs import Run
from traceferry.analysis.totals.portable import Totals, Tree
from traceferry.model import Array

SHARES = (0.1, 0.5, 0.9, 0.995)
# What cells may be, and is drawn where a table does not say it.
DIMENSIONS: dict[str, Sequence[Any]] = {
    "functions": (1, 2, 3, 5, 8, 15, 60, 400, 3000), "share": SHARES, "effect": (-0.5, 0.0, 0.2, 0.5, 1.0),
    "machine": (0.8, 1.0, 1.25), "runs": (2, 3, 5, 8), "samples": (1_000, 10_000, 100_000), "unit": ("samples",),
    "company": (0.0,), "new": (0.0,),
}  # fmt: skip
# Rows, columns, and what differs from DIMENSIONS.
TABLES: Sequence[tuple[str, str, dict[str, Sequence[Any]]]] = (
    ("functions", "share", {}),
    ("effect", "machine", {}),
    ("runs", "samples", {}),
    ("runs", "functions", {"unit": ("ns",), "functions": (3, 5, 8, 15, 60, 400)}),
    ("company", "functions", {"company": (0.1, 0.2, 0.4), "functions": (15, 60, 400), "share": SHARES[:3]}),
    ("new", "functions", {"new": (1.0, 3.0, 10.0), "functions": (15, 60), "share": SHARES[:3]}),
)
SPREAD_OF_RUNS, SPREAD_OF_FUNCTIONS = 0.03, 0.02
FEW = 2.0
GATE = parse("self > 5%")


@dataclass(frozen=True)
class Cell:
    """functions: how many; share: of the one that changes; machine: how many times as slow the new side's is; samples:
    of a run of the base; company: what part of the others change as that one does; new: how many times as many
    functions the new side has besides, each with FEW samples in a run."""

    functions: int
    share: float
    effect: float
    machine: float
    runs: int
    samples: int
    unit: str
    company: float
    new: float

    @property
    def changes(self) -> Array:
        """Of each function, the largest first."""
        n_changed = 1 + round(self.company * (self.functions - 1))
        return np.where(np.arange(self.functions) < n_changed, self.effect, 0.0)

    @property
    def is_possible(self) -> bool:
        """One function has all there is; the largest of a few has more than a tenth; and most of many need samples."""
        if self.functions == 1:
            return self.share == SHARES[-1]
        return self.share * self.functions >= 1 and self.samples >= 3 * self.functions


@dataclass
class Score:
    """Of trials: held: intervals that hold the truth, of n_intervals; the same of the function that changes or does not
    (own); named: functions called changed; wrongly: of these, those that did not; of_named: what part of the named
    these are, summed over the trials: the mean is the false discovery rate; found: trials in which the function that
    changed is named; passed: trials in which the gate passed a function that takes 20 % longer, or more."""

    trials: int = 0
    changed: int = 0
    slower: int = 0
    n_intervals: int = 0
    held: int = 0
    n_own: int = 0
    own_held: int = 0
    named: int = 0
    wrongly: int = 0
    trials_wrong: int = 0
    of_named: float = 0.0
    found: int = 0
    passed: int = 0

    def add(self, other: Score) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def drawn(cell: Cell, rng: np.random.Generator) -> Array:
    """float64 [functions, runs], the base's runs first; those that are new are the last functions."""
    share = np.ones(1)
    if cell.functions > 1:
        others = np.exp(1.5 * rng.standard_normal(cell.functions - 1))
        share = np.append(cell.share, others * (1 - cell.share) / others.sum())
    n_runs = 2 * cell.runs
    mean = np.outer(cell.samples * share, np.exp(SPREAD_OF_RUNS * rng.standard_normal(n_runs)))
    spread = SPREAD_OF_FUNCTIONS * (2 ** rng.uniform(-1, 1, (cell.functions, 1)) if cell.unit == "ns" else 1.0)
    mean *= np.exp(spread * rng.standard_normal(mean.shape))
    mean[:, cell.runs :] *= cell.machine * (1 + cell.changes[:, None])
    if cell.new:
        few = np.zeros((round(cell.new * cell.functions), n_runs))
        few[:, cell.runs :] = FEW
        mean = np.concatenate([mean, few])
    return np.rint(mean * 1e6) if cell.unit == "ns" else rng.poisson(mean).astype(np.float64)


def runs_of(amounts: Array, unit: str) -> list[Run]:
    """Runs with these samples, or these times, of functions called 0, 1, 2..., a sample standing for 1 ms."""
    runs = []
    for column in amounts.T.astype(np.int64):
        seen = np.flatnonzero(column)
        rows = np.zeros((len(seen), 5), np.int64)
        rows[:, Totals().functions.columns.index("self_ns" if unit == "ns" else "samples")] = column[seen]
        functions = Totals().functions.of([(str(f), "", 0, "") for f in seen.tolist()], rows)
        runs.append(Run("simulated", replace(Totals(), functions=functions), Tree(), 10**9, None, 1e6, 0))
    return runs


def score_of(cell: Cell, amounts: Array) -> Score:
    runs, changes = runs_of(amounts, cell.unit), cell.changes
    found = compare(runs[: cell.runs], runs[cell.runs :])
    score = Score(trials=1, changed=int(cell.effect != 0), slower=int(cell.effect >= 0.2))
    table = found.tables_named("self")[0]
    for row in table.rows:
        if int(row.name) >= cell.functions:
            continue
        is_own = row.name == "0"
        truth = float(changes[int(row.name)])
        if row.low is not None and row.high is not None and sum(row.amounts) >= FEWEST_SAMPLES:
            held = row.low <= truth <= row.high
            score.n_intervals += 1
            score.held += held
            score.n_own += is_own
            score.own_held += is_own and held
        if row.is_changed:
            score.named += 1
            score.wrongly += truth == 0
            score.found += is_own
    score.trials_wrong = int(score.wrongly > 0)
    score.of_named = score.wrongly / max(score.named, 1)
    score.passed = int(cell.effect >= 0.2 and evaluate(GATE, found).status == "passed")
    return score


def cells(rng: np.random.Generator, given: dict[str, Sequence[Any]]) -> Iterator[Cell]:
    """Possible cells, drawn."""
    choices = {**DIMENSIONS, **given}
    for _ in range(1000):
        cell = Cell(**{name: values[int(rng.integers(len(values)))] for name, values in choices.items()})
        if cell.is_possible:
            yield cell


def table(rows: str, columns: str, of: dict[str, Sequence[Any]], n_trials: int, seed: int) -> dict[Any, Score]:
    """A score for each cell of two dimensions: n_trials trials, all else drawn. None where nothing is possible."""
    rng = np.random.default_rng(seed)
    choices = {**DIMENSIONS, **of}
    scores: dict[Any, Score] = {}
    for row in choices[rows]:
        for column in choices[columns]:
            source = cells(rng, {**choices, rows: [row], columns: [column]})
            score = Score()
            for _ in range(n_trials):
                cell = next(source, None)
                if cell is None:
                    break
                score.add(score_of(cell, drawn(cell, rng)))
            if score.trials:
                scores[row, column] = score
    return scores


def part(n: float, of: int) -> str:
    return f"{100 * n / of:.1f}" if of else "-"


def shown(score: Score) -> str:
    return " | ".join(
        [
            str(score.trials), part(score.held, score.n_intervals), part(score.own_held, score.n_own),
            part(score.found, score.changed), f"{score.wrongly} of {score.named}", part(score.of_named, score.trials),
            f"{score.passed} of {score.slower}",
        ]
    )  # fmt: skip


HEAD = "trials | intervals hold, % | its own | found, % | named wrongly | false discovery rate, % | passed wrongly"


def summary(scores: Sequence[Score]) -> str:
    """Of all cells together, and of the one whose intervals hold least often."""
    whole = Score()
    for score in scores:
        whole.add(score)
    least = min((s for s in scores if s.n_intervals), key=lambda s: s.held / s.n_intervals)
    return f"{shown(whole)} | {part(least.held, least.n_intervals)}"


def simulated(n_trials: int, show: Callable[[str], None] = print) -> dict[str, Any]:
    found: dict[str, Any] = {}
    summaries = []
    for nth, (rows, columns, given) in enumerate(TABLES):
        words = ", ".join(f"{name} {', '.join(map(str, values))}" for name, values in given.items()) or "samples"
        show(f"\n{words}:\n\n| {rows} | {columns} | {HEAD} |\n|{'---:|' * 9}")
        scores = table(rows, columns, given, n_trials, 100 + nth)
        for (row, column), score in scores.items():
            show(f"| {row} | {column} | {shown(score)} |")
            found[f"{words}: {rows} {row}, {columns} {column}"] = vars(score)
        summaries.append(f"| {rows} and {columns}, {words} | {summary(list(scores.values()))} |")
    show(f"\n| | {HEAD} | least of a cell |\n|---|{'---:|' * 8}")
    show("\n".join(summaries))
    return found
