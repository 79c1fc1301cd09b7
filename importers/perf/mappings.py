"""Map: which mapping holds memory, and until when: what is mapped later cuts or replaces what it overlaps."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from traceferry.importers.perf.recording import Mmap
from traceferry.importers.perf.regions import BEGINNING, NEVER
from traceferry.model import Array
from traceferry.model.categories import is_memory

TOP = (1 << 64) - 1

# What memory is: of a file, with what is subtracted of an address to have the byte's offset; None is of no file.
Content = tuple[str, str, int] | None


class Held(NamedTuple):
    """Memory [begin, end) that holds a mapping from start to until, ns on the recording's clock. nth: of the mapping;
    since: when its content came there, which is before `start` where a file was mapped over itself."""

    begin: int
    end: int
    start: int
    until: int
    since: int
    nth: int
    content: Content


def files_held(maps: Sequence[Mmap], is_first: bool) -> list[Held]:
    """Returns the files in memory over time, by mapping. maps: of one address space, by time; is_first: whether it was
    there before the recording. Then what is mapped first was there before: perf lists what it finds at its own time.

    A mapping over the same content is what the kernel reports when the protection of pages changes, or when it merges
    neighbours.
    """
    begins: list[int] = []
    now: list[Held] = []  # what is mapped, by address
    ended: list[Held] = []
    for nth, mapped in enumerate(maps):
        begin, end, ts = mapped.start, min(mapped.start + mapped.length, TOP), mapped.ts
        first = bisect_right(begins, begin) - 1
        if first < 0 or now[first].end <= begin:
            first += 1
        last = max(bisect_left(begins, end), first)
        under, content = now[first:last], content_of(mapped)
        is_same = bool(under) and all(one.content == content for one in under)
        if begin >= end or (is_same and under[0].begin <= begin and under[-1].end >= end and len(under) == 1):
            continue
        since = min(one.since for one in under) if is_same else ts
        new = [Held(begin, end, ts if under or not is_first else BEGINNING, NEVER, since, nth, content)]
        if under and under[0].begin < begin:
            new.insert(0, under[0]._replace(end=begin))
        if under and under[-1].end > end:
            new.append(under[-1]._replace(begin=end))
        ended += [
            one._replace(begin=max(one.begin, begin), end=min(one.end, end), until=ts) for one in under if one.content
        ]
        now[first:last] = new
        begins[first:last] = [one.begin for one in new]
    return sorted((one for one in (*ended, *now) if one.content), key=lambda one: (one.nth, one.begin, one.start))


def is_anonymous(mapped: Mmap) -> bool:
    """Whether it is memory of no file. What has a build id is one, wherever it is: programs run from memfd, too."""
    return not mapped.build_id and is_memory(mapped.path)


def content_of(mapped: Mmap) -> Content:
    if is_anonymous(mapped):
        return None
    return mapped.path, mapped.build_id, (mapped.start - mapped.pgoff) & TOP


def memory_without_files(maps: Sequence[Mmap]) -> Array:
    """Returns where memory of no file is mapped at any time: uint64 [n, 2], [begin, end), rising and apart."""
    ranges = sorted((one.start, min(one.start + one.length, TOP)) for one in maps if not content_of(one))
    apart: list[tuple[int, int]] = []
    for begin, end in ranges:
        if apart and begin <= apart[-1][1]:
            apart[-1] = apart[-1][0], max(end, apart[-1][1])
        else:
            apart.append((begin, end))
    return np.array(apart, np.uint64).reshape(-1, 2)
