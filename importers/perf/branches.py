"""The branches that a processor recorded with samples: the entries of branch stacks, as columns.

Source: linux/perf_event.h, struct perf_branch_entry and PERF_SAMPLE_BRANCH_*. An entry is u64 from, to and flags, which
are laid out as C lays out bit fields: mispred, predicted, in_tx, abort, 16 bits of cycles. The latest branch is first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceferry.importers.perf.chains import ragged
from traceferry.importers.perf.fields import numbers_at
from traceferry.importers.perf.recording import Recording
from traceferry.model import Array

ENTRY_SIZE = 24


@dataclass(frozen=True)
class Entries:
    """Columns of branches. of: int64, which of the asked samples; nth: int64, 0 is the latest of a sample; begin, end:
    uint64 addresses of the branch and of its target; mispredicted, predicted: bool, neither where it is not recorded;
    cycles: int64 since the branch before, 0 is unknown."""

    of: Array
    nth: Array
    begin: Array
    end: Array
    mispredicted: Array
    predicted: Array
    cycles: Array


def entries_of(recording: Recording, rows: Array) -> Entries:
    """Returns the branches of these samples."""
    samples, order = recording.samples, recording.order
    data = np.frombuffer(recording.stream, np.uint8)
    of, nth = ragged(samples.branch_n[rows].astype(np.int64))
    at = samples.branch_at[rows][of] + ENTRY_SIZE * nth
    begin, end, flags = (numbers_at(data, at + 8 * place, order + "u8") for place in range(3))
    return Entries(of, nth, begin, end, *_flags(flags, order == ">"))


def _flags(flags: Array, big: bool) -> tuple[Array, Array, Array]:
    """Returns (mispredicted, predicted, cycles). Compilers of big-endian machines begin with the highest bit."""
    mispredicted, predicted, cycles = (63, 62, 44) if big else (0, 1, 4)
    bits = [(flags >> np.uint64(bit)) & np.uint64(1) != 0 for bit in (mispredicted, predicted)]
    return bits[0], bits[1], (flags >> np.uint64(cycles) & np.uint64(0xFFFF)).astype(np.int64)
