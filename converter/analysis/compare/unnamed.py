"""Functions that one side has alone since the other has no names: nobody can tell whether they are new or gone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceferry.analysis.compare.amounts import Key
from traceferry.analysis.totals.nameless import NAMELESS
from traceferry.model import Array

# A function is another one if what may be it has less than this part of it.
LEAST = 0.5


def may_be_unnamed(keys: Sequence[Key], base: Array, new: Array) -> Array:
    """bool: which rows one side has alone and may be functions of the other under an address, or under their names
    where they are addresses themselves. base, new: float64, at one level."""
    is_nameless = np.array([len(key) == 4 and NAMELESS.fullmatch(str(key[0])) is not None for key in keys], bool)
    found = np.zeros(len(keys), bool)
    if not is_nameless.any():
        return found
    of_base, of_new = (base > 0) & (new == 0), (new > 0) & (base == 0)
    for alone, own, others, of_others in ((of_base, base, of_new, new), (of_new, new, of_base, base)):
        hidden, all_others = of_others[others & is_nameless].sum(), of_others[others].sum()
        found |= alone & (np.where(is_nameless, all_others, hidden) >= LEAST * own)
    return found
