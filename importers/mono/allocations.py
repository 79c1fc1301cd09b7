"""Map: the allocations of a thread, with the frees that following the objects has shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from converter.model import ALLOCATIONS, Table, Trace
from importers.mono.decode import Log
from importers.mono.frames import Frames, leaves
from importers.mono.identity import Known, Numbers
from importers.mono.layout import Event
from importers.mono.threads import Life
from importers.mono.walks import StackTable, site_pieces

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
        return n + int(np.count_nonzero(self.known.died_ts[self._numbers.of(0, n)] >= 0)) if n else 0

    @property
    def _numbers(self) -> Numbers:
        return self.known.numbers[id(self.life)]

    def pieces(self) -> Iterator[Table]:
        """ALLOCATIONS, by time: a free stands at the collection in which the object died."""
        stacks = StackTable(self.trace)
        row = 0
        waiting = Table(ALLOCATIONS)
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
            waiting = _joined(waiting, self._frees(allocated))
            due = waiting["ts"] <= now
            yield _by_time(_joined(allocated, waiting.take(due)))
            waiting = waiting.take(~due)
        if len(waiting):
            yield _by_time(waiting)

    def _frees(self, allocated: Table) -> Table:
        died = self.known.died_ts[allocated["object"]]
        dead = np.flatnonzero(died >= 0)
        freed = allocated.take(dead)
        ts = np.maximum(np.clip(died[dead], *self.span) + self.shift_ns, freed["ts"])
        return freed.replaced(ts=ts, size=-freed["size"])


def _joined(one: Table, other: Table) -> Table:
    return Table(ALLOCATIONS, {name: np.concatenate((one[name], other[name])) for name in COLUMNS})


def _by_time(table: Table) -> Table:
    """What is allocated comes before what is freed at the same time."""
    ts = table["ts"]
    if np.all(ts[1:] >= ts[:-1]):
        return table
    return table.take(np.argsort(ts, kind="stable"))
