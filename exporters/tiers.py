"""The categories of code that runs in JIT tiers: viewers show the tier in their place, or neither of the two."""

from __future__ import annotations

import numpy as np

from traceferry.model import Array, Trace


def category_of_tiers(trace: Trace) -> Array:
    """Returns the category that most frames of each tier have, -1 is none."""
    frames, n_tiers, width = trace.frames, len(trace.tiers), len(trace.categories) + 1
    has_tier = frames["tier"] >= 0
    pairs = frames["tier"][has_tier].astype(np.int64) * width + frames["category"][has_tier] + 1
    counts = np.bincount(pairs, minlength=n_tiers * width).reshape(n_tiers, width)
    of: Array = counts.argmax(axis=1) - 1
    return of
