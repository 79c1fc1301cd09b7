"""Call-frame information of the functions that a recording has: the records of others are zeros, which readers pass
over and which take no room when they are compressed. What stays is where it was: its pointers are relative to that."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from traceferry.model import Array
from traceferry.unwinding._cfi import FrameSection, RuleSets

WORD = 4
LONG = 0xFFFF_FFFF  # the length of a record is in the next 8 bytes


def pruned(section: FrameSection, data: memoryview, big: bool, used: Array) -> bytes:
    """Returns a section with the records that hold at addresses (uint64, as linked), and the CIEs of these; whole if it
    is damaged: what is said of that stays the same."""
    _, _, n_bad = section.rows(RuleSets())
    if n_bad or section.is_cut:
        return bytes(data)
    stops, cies = (set(column.tolist()) for column in section.records_at(np.ascontiguousarray(used, np.uint64)))
    kept = bytearray(len(data))
    is_aligned = True
    for begin, end in _records(data, big):
        if end in stops or begin in cies:
            kept[begin:end] = data[begin:end]
        # Zeros are passed over four at a time.
        is_aligned = is_aligned and (end - begin) % WORD == 0
    return bytes(kept) if is_aligned else bytes(data)


def _records(data: memoryview, big: bool) -> Iterator[tuple[int, int]]:
    """Yields where records begin and end, of a section whose lengths are sound."""
    word, long = (struct.Struct(f"{'>' if big else '<'}{code}") for code in "IQ")
    at = 0
    while at + WORD <= len(data):
        (length,) = word.unpack_from(data, at)
        end = at + WORD + length
        if length == LONG:
            end = at + WORD + long.size + long.unpack_from(data, at + WORD)[0]
        if length:
            yield at, end
        at = end
