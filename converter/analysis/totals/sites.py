"""Who allocated: the innermost function of a stack that is not a runtime's own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceferry.analysis.totals.trees import nearest_kept
from traceferry.model import Array, Trace

# How managed runtimes name what they put between methods, of which allocations take one or another by chance: a reader
# looks for the method. Not all formats keep categories.
WRAPPER = "(wrapper "


def allocators(trace: Trace) -> Array:
    """Returns for each stack who allocated, by its row, without wrappers. The stack itself where there is nobody
    else."""
    names = trace.strings.of(trace.funcs["name"])
    is_wrapper = np.array([*(name.startswith(WRAPPER) for name in names), False], bool)
    stacks = np.arange(len(trace.stacks))
    of_stack = is_wrapper[trace.frames["func"][trace.stacks["frame"]]]
    kept = nearest_kept(trace.stacks["prefix"].astype(np.int64), ~of_stack)
    return np.where(kept < 0, stacks, kept)


def without_wrappers(names: Sequence[str]) -> Sequence[str]:
    """Returns the functions of a stack that are no wrappers; all where there is nothing else."""
    return [name for name in names if not name.startswith(WRAPPER)] or names
