"""Map: which region holds an address over time, where several regions of memory cover it in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from traceferry.model import Array

# Which layer names an address, where several hold it: a perf-PID.map, a file, what was loaded into memory (as recorded,
# and as a compiler's dump has it).
LISTED, MAPPED, LOADED, JITTED = range(4)
BEGINNING = -(1 << 62)
NEVER = 1 << 62
# Compilers run new code a moment before its record is written.
ANNOUNCED_LATE_NS = 1_000_000_000
# (region, address) pairs that are in memory at once, and that are looked at in all.
PAIRS_AT_ONCE = 1 << 22
MAX_PAIRS = 1 << 27


class Regions(NamedTuple):
    """Regions of one address space, in columns. begin, end: uint64, [begin, end) of memory; start, until: int64 ns;
    layer: int8. What lies there: kind: int8 and owner: int64, as `spaces` defines them; base: uint64, what is
    subtracted of an address (modulo 2^64) to have the offset in the owner."""

    begin: Array
    end: Array
    start: Array
    until: Array
    layer: Array
    kind: Array
    owner: Array
    base: Array

    def take(self, rows: Array) -> Regions:
        return Regions._make(column[rows] for column in self)


DTYPES = (np.uint64, np.uint64, np.int64, np.int64, np.int8, np.int8, np.int64, np.uint64)


def regions_of(rows: Sequence[tuple[int, ...]]) -> Regions:
    """rows: the columns' values, in their order."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in DTYPES)
    return Regions._make(np.array(column, dtype) for column, dtype in zip(columns, DTYPES, strict=True))


NO_REGIONS = regions_of(())


def joined(parts: Sequence[Regions]) -> Regions:
    return Regions._make(map(np.concatenate, zip(*parts, strict=True)))


class ResolvedIntervals(NamedTuple):
    """The meanings of addresses, a row for each change, by address and time: key: int64, the address's number; start:
    int64 ns, from when; region: int64, -1 is none; is_late: code whose load is recorded only after that."""

    key: Array
    start: Array
    region: Array
    is_late: Array


def ended_by(code: Regions, files: Regions, since: Array) -> Regions:
    """Returns the code objects, each until a file is mapped over a part of it. since: int64 ns, when the content of
    each of the files came there."""
    order = np.argsort(code.begin, kind="stable")
    begin, end = code.begin[order], code.end[order]
    if not len(order):
        return code
    # Objects between which no byte is free: what touches one of these is looked for among them.
    reach = np.maximum.accumulate(end)
    edges = np.append(np.flatnonzero(np.append(True, begin[1:] > reach[:-1])), len(order))
    first = edges[np.searchsorted(reach[edges[1:] - 1], files.begin, "right")]
    last = edges[np.searchsorted(begin[edges[:-1]], files.end)]
    until = code.until.copy()
    for nth in np.flatnonzero((first < last) & (since > code.start.min())).tolist():
        rows = order[first[nth] : last[nth]]
        is_over = (code.begin[rows] < files.end[nth]) & (files.begin[nth] < code.end[rows])
        over = rows[is_over & (code.start[rows] < since[nth])]
        until[over] = np.minimum(until[over], since[nth])
    return code._replace(until=until)


def held(regions: Regions, addresses: Array) -> tuple[Array, Array]:
    """Returns (first, last): the addresses that each region holds are addresses[first:last]. addresses: uint64,
    rising."""
    return np.searchsorted(addresses, regions.begin), np.searchsorted(addresses, regions.end)


def resolved_intervals(
    regions: Regions, addresses: Array, first_ts: Array, last_ts: Array, budget: int = MAX_PAIRS
) -> tuple[ResolvedIntervals, int]:
    """Returns (what each address stands for from first_ts to last_ts, how many addresses are left out): of the regions
    that hold an address at a time the highest layer's, and there the one that starts last. An address has one version
    at least.

    addresses: uint64, rising; first_ts, last_ts: int64. Once `budget` pairs of a region and an address were looked at,
    the other addresses stand for nothing.
    """
    regions_by_start = np.argsort(regions.start, kind="stable")
    ordered = regions.take(regions_by_start)
    first, last = held(ordered, addresses)
    last = np.maximum(first, last)
    depth = np.cumsum(
        np.bincount(first, minlength=len(addresses) + 1) - np.bincount(last, minlength=len(addresses) + 1)
    )
    pairs = np.cumsum(depth[: len(addresses)])
    within = int(np.searchsorted(pairs, budget, "right"))
    parts = [
        _of_part(ordered, first, last, slice(begin, end), first_ts, last_ts) for begin, end in _parts(pairs[:within])
    ]
    left_out = np.arange(within, len(addresses))
    parts.append(_single(left_out, np.full(len(left_out), -1)))
    joint = ResolvedIntervals._make(map(np.concatenate, zip(*parts, strict=True)))
    original = np.append(regions_by_start, -1)
    return ResolvedIntervals(joint.key, joint.start, original[joint.region], joint.is_late), len(left_out)


def _parts(pairs: Array) -> Iterator[tuple[int, int]]:
    """Ranges of addresses with about PAIRS_AT_ONCE pairs each. pairs: of each address and all before it."""
    begin = 0
    while begin < len(pairs):
        before = int(pairs[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(pairs, before + PAIRS_AT_ONCE, "right")), begin + 1)
        yield begin, end
        begin = end


def _single(key: Array, region: Array) -> ResolvedIntervals:
    return ResolvedIntervals(key, np.full(len(key), BEGINNING), region, np.zeros(len(key), bool))


def _of_part(
    regions: Regions, first: Array, last: Array, part: slice, first_ts: Array, last_ts: Array
) -> ResolvedIntervals:
    """Returns what some of the addresses stand for. Most stand for one thing while they are asked for; the others are
    looked at one by one. regions: by their start."""
    n = part.stop - part.start
    first, last = first.clip(part.start, part.stop) - part.start, last.clip(part.start, part.stop) - part.start
    count = last - first
    region = np.repeat(np.arange(len(count)), count)
    key = np.arange(len(region)) - np.repeat(np.cumsum(count) - count - first, count)
    order = np.argsort(key, kind="stable")
    region, key = region[order], key[order]
    layer = regions.layer[region].astype(np.int64)
    start, until, is_code = regions.start[region], regions.until[region], layer == JITTED
    from_ts, to_ts = first_ts[part][key], last_ts[part][key]
    changes = (from_ts < start) & (start <= to_ts + is_code * ANNOUNCED_LATE_NS)
    changes |= (from_ts < until) & (until <= to_ts) | (until <= start)
    is_changing = np.zeros(n, bool)
    is_changing[key[changes]] = True
    rank = np.where((start <= from_ts) & (from_ts < until), layer * len(count) + region, -1)
    best = np.full(n, -1)
    begins = np.flatnonzero(np.diff(key, prepend=-1))
    if len(begins):
        holder = np.maximum.reduceat(rank, begins)
        best[key[begins]] = np.where(holder >= 0, holder % max(len(count), 1), -1)
    steady = np.flatnonzero(~is_changing)
    versions = [_single(steady, best[steady])]
    if len(steady) < n:
        ends = np.append(begins[1:], len(key))
        at = dict(zip(key[begins].tolist(), zip(begins.tolist(), ends.tolist(), strict=True), strict=True))
        changing = np.flatnonzero(is_changing).tolist()
        asked = zip(changing, first_ts[part][is_changing].tolist(), last_ts[part][is_changing].tolist(), strict=True)
        rows = [row for nth, a, b in asked for row in _timeline(regions, region[slice(*at[nth])].tolist(), nth, a, b)]
        versions.append(ResolvedIntervals._make(map(np.array, zip(*rows, strict=True))))
    joint = ResolvedIntervals._make(map(np.concatenate, zip(*versions, strict=True)))
    order = np.argsort(joint.key, kind="stable")
    return ResolvedIntervals(
        joint.key[order] + part.start, joint.start[order], joint.region[order], joint.is_late[order]
    )


def _timeline(
    regions: Regions, rows: Sequence[int], key: int, first_ts: int, last_ts: int
) -> Iterator[tuple[int, int, int, bool]]:
    """Yields (key, start, region, is_late) of one address. rows: the regions that hold it, by their start."""
    columns = (regions.start, regions.until, regions.layer, regions.kind)
    spans = list(zip(rows, *(column[rows].tolist() for column in columns), strict=True))
    stretches = list(_stretches(spans))
    ends = [start for start, _, _ in stretches[1:]] + [NEVER + 1]
    for (start, region, is_late), end in zip(stretches, ends, strict=True):
        if end > first_ts and start <= last_ts:
            yield key, start, region, is_late


Span = tuple[int, int, int, int, int]  # region, start, until, layer, kind
NOTHING = 0  # a kind: memory without a name


def _stretches(spans: Sequence[Span]) -> Iterator[tuple[int, int, bool]]:
    """Yields (from when, which region, whether its code is announced only later). spans: by their start."""
    before: Span | None = None
    begun = BEGINNING
    yield begun, -1, False
    for point, span in _best_by_time(spans):
        nothing = before is None or before[4] == NOTHING
        if nothing and span is not None and span[3] == JITTED and span[1] == point:
            # A moment before code is announced, nothing else being there, it is that code.
            yield max(point - ANNOUNCED_LATE_NS, begun), span[0], True
        if span is not before:
            yield point, -1 if span is None else span[0], False
        before, begun = span, point


def _best_by_time(spans: Sequence[Span]) -> Iterator[tuple[int, Span | None]]:
    """Yields which region holds from each time on at which one begins or ends."""
    points = sorted({point for _, start, until, *_ in spans for point in (start, until) if point < NEVER})
    holding: list[tuple[int, int]] = []  # a heap of (-layer, -place); what has ended goes when it comes to the top
    nth = 0
    for point in points:
        while nth < len(spans) and spans[nth][1] <= point:
            heappush(holding, (-spans[nth][3], -nth))
            nth += 1
        while holding and spans[-holding[0][1]][2] <= point:
            heappop(holding)
        yield point, spans[-holding[0][1]] if holding else None
