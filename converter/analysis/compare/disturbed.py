"""The runs that were compared: how much each has in all, and which of them something has disturbed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceferry.analysis.compare.amounts import Sides
from traceferry.analysis.compare.factors import factors_of, lengths_of
from traceferry.model import Array

# A run that is so much longer or shorter than the others of its side, and by so many times their spread, is disturbed.
DISTURBED_BY = 0.1
DISTURBED_SPREADS = 5.0
FEWEST_TO_JUDGE_A_RUN = 4


@dataclass(frozen=True)
class RunFacts:
    """One run, as the JSON has it: factor: how much it has in all, as recorded, compared to the base's usual run;
    disturbed: why, "" if it is not."""

    path: str
    duration_ns: int
    factor: float
    lost: int
    disturbed: str
    left_out: bool = False


def facts_of_runs(sides: Sides) -> list[tuple[RunFacts, ...]]:
    """Returns the facts of the base's runs, and of those of the new side."""
    tables = [table for table in sides.tables() if table.name == "self"]
    n_base = len(sides.base)
    factors = lengths = np.ones(len(sides.runs))
    if tables:
        # The table with most in it says how long a run was.
        main = max(tables, key=lambda table: (table.unit == "samples", float(table.values.sum())))
        values = main.values / sides.sample_rates(main.unit)
        factors = factors_of(values, n_base, "whole", False).of_run
        lengths = lengths_of(values, n_base, main.is_sampled)
    lost = np.array([run.lost for run in sides.runs])
    found = []
    for side, of_side in ((sides.base, slice(n_base)), (sides.new, slice(n_base, None))):
        reasons = _disturbances(lengths[of_side], lost[of_side])
        facts = zip(side, factors[of_side].tolist(), reasons, strict=True)
        found.append(
            tuple(RunFacts(run.path, run.duration_ns, factor, run.lost, reason) for run, factor, reason in facts)
        )
    return found


def _disturbances(lengths: Array, lost: Array) -> list[str]:
    """Why each run of a side is disturbed, "" if it is not. Where half of the runs or more are far from the others, the
    side has no usual length."""
    far = [_distance(nth, lengths) for nth in range(len(lengths))]
    if 2 * np.count_nonzero(far) >= len(far):
        far = [""] * len(far)
    return [_loss(nth, lost) or far[nth] for nth in range(len(lost))]


def _loss(nth: int, lost: Array) -> str:
    """Returns that a run lost samples, if most others did not."""
    n_others = np.count_nonzero(np.delete(lost, nth))
    is_disturbed = lost[nth] and n_others * 2 <= len(lost) - 1 and len(lost) > 1
    return f"lost samples, {int(lost[nth])} times" if is_disturbed else ""


def _distance(nth: int, lengths: Array) -> str:
    """Returns how much longer or shorter a run is than the others, if it is far from them."""
    if len(lengths) < FEWEST_TO_JUDGE_A_RUN:
        return ""
    others = np.log(np.delete(lengths, nth))
    middle = float(np.median(others))
    spread = 1.4826 * float(np.median(np.abs(others - middle)))
    off = float(np.log(lengths[nth])) - middle
    if abs(off) <= max(DISTURBED_BY, DISTURBED_SPREADS * spread):
        return ""
    word = "more" if off > 0 else "less"
    return f"its functions take {abs(np.expm1(off)):.0%} {word} time than those of other runs"
