"""Map: the allocations of a thread, with the frees derived from tracking the objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traceferry.importers.mono.decode import Log
from traceferry.importers.mono.frames import Frames, leaves
from traceferry.importers.mono.identity import END_OF_LOG, Known, Numbers
from traceferry.importers.mono.layout import Event
from traceferry.importers.mono.threads import Life
from traceferry.importers.mono.walks import StackTable, site_pieces
from traceferry.model import ALLOCATIONS, Table, Trace

COLUMNS = tuple(column.name for column in ALLOCATIONS.columns)


@dataclass(frozen=True)
class Allocations:
    """The allocations of one thread. span: the first and last time of the log, on the event clock."""

    trace: Trace
    log: Log
    frames: Frames
    life: Life
    known: Known
    span: tuple[int, int]
    shift_ns: int

    @property
    def n_rows(self) -> int:
        n = int(self.log.stats["alloc"][self.life.buffers].sum()) if self.life.buffers else 0
        ranges = self._numbers.ranges(0, n) if n else ()
        return n + sum(int(np.count_nonzero(self.known.died[first:after] >= 0)) for first, after in ranges)

    @property
    def _numbers(self) -> Numbers:
        return self.known.numbers[id(self.life)]

    def pieces(self) -> Iterator[Table]:
        """ALLOCATIONS, by time: a free has the time of the collection in which the object died."""
        stacks = StackTable(self.trace)
        row = 0
        waiting = _Waiting()
        now = self.span[0] + self.shift_ns
        for sites in site_pieces(self.log, self.log.buffers[self.life.buffers].ravel(), self.frames.methods, stacks):
            sites = sites.take(np.flatnonzero((sites.kind == Event.ALLOC) | (sites.kind == Event.ALLOC_BT)))
            n = len(sites.ts)
            if n == 0:
                continue
            ts = np.maximum.accumulate(np.maximum(np.clip(sites.ts, *self.span) + self.shift_ns, now))
            now = int(ts[-1])
            classes = self.frames.types.at(sites.a, sites.ts)
            numbers = self._numbers.of(row, n)
            row += n
            columns = {
                "ts": ts,
                "size": sites.c.astype(np.int64),
                "class_name": self.frames.class_names(classes),
                "stack": leaves(self.trace, sites.stack, classes),
                "object": numbers,
            }
            allocated = Table(ALLOCATIONS, columns)
            waiting.add(self._frees(allocated))
            yield _by_time(_joined([allocated, *waiting.until(now)]))
        if left := waiting.until(END_OF_LOG):
            yield _by_time(_joined(left))

    def _frees(self, allocated: Table) -> Table:
        died = self.known.died[allocated["object"]]
        dead = np.flatnonzero(died >= 0)
        freed = allocated.take(dead)
        ts = np.maximum(np.clip(self.known.step_ts[died[dead]], *self.span) + self.shift_ns, freed["ts"])
        return freed.replaced(ts=ts, size=-freed["size"])


class _Waiting:
    """Frees that are later than what was yielded, by their time: a collection frees many objects at once."""

    def __init__(self) -> None:
        self._at: dict[int, list[Table]] = {}

    def add(self, frees: Table) -> None:
        order = np.argsort(frees["ts"], kind="stable")
        ts = frees["ts"][order]
        for rows in np.split(order, np.flatnonzero(np.diff(ts)) + 1) if len(order) else []:
            self._at.setdefault(int(frees["ts"][rows[0]]), []).append(frees.take(rows))

    def until(self, ts: int) -> list[Table]:
        """Those of up to this time, which wait no longer."""
        due = sorted(time for time in self._at if time <= ts)
        return [table for time in due for table in self._at.pop(time)]


def _joined(parts: Sequence[Table]) -> Table:
    return Table(ALLOCATIONS, {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS})


def _by_time(table: Table) -> Table:
    """What is allocated comes before what is freed at the same time."""
    ts = table["ts"]
    if np.all(ts[1:] >= ts[:-1]):
        return table
    return table.take(np.argsort(ts, kind="stable"))
