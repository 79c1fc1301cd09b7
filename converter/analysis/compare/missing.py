"""What one side has alone, or more of, since names or callers are missing on the other: nobody can tell whether it
changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceferry.analysis.compare.amounts import Key
from traceferry.analysis.totals.nameless import NAMELESS
from traceferry.model import Array

# What is missing for so much more of one side is told of.
MISSING = 0.05
# A function is another one, or has changed, if what is missing explains less than this part of it.
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


def may_be_hidden(base: Array, new: Array, wholes: tuple[float, float], callerless: tuple[float, float]) -> Array:
    """bool: which functions have less with callees on the side of which more callers are missing, and may have what
    their callees hide there. base, new: float64, with callees; wholes: of all functions; callerless: the parts of the
    samples whose caller is missing, in base and new."""
    more = callerless[0] - callerless[1]
    if abs(more) < MISSING:
        return np.zeros(len(base), bool)
    less, other, whole = (base, new, wholes[0]) if more > 0 else (new, base, wholes[1])
    hidden = np.minimum(abs(more) * whole, whole - less)
    found: Array = (other > less) & (hidden >= LEAST * (other - less))
    return found
