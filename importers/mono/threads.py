"""Threads: thread ids are reused, so a thread is identified by its id and lifetime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from traceferry.importers.mono.decode import MAX_TS, NEVER, Log, times
from traceferry.importers.mono.layout import Event, Metadata
from traceferry.model import Array, rows_by_key

# Samples of versions before 11 do not say of which thread they are.
UNKNOWN_TID = 0
NONE = np.empty(0, np.int64)


@dataclass(eq=False)
class ThreadLifetime:
    """One thread. number: of those of one id; is_only: no other one had its id; names: that it had, the last one
    counts; buffers: rows of its buffers; start_ts, end_ts: int64 ns on the event clock; is_unloaded: the log says when
    it ended."""

    tid: int
    number: int
    is_only: bool
    names: list[str] = field(default_factory=list)
    buffers: list[int] = field(default_factory=list)
    start_ts: int = MAX_TS
    end_ts: int = 0
    is_unloaded: bool = False

    @property
    def name(self) -> str:
        return self.names[-1] if self.names else ""

    def reach(self, first_ts: int, last_ts: int) -> None:
        """It was alive at these times."""
        self.start_ts, self.end_ts = min(self.start_ts, first_ts), max(self.end_ts, last_ts)


class ThreadLifetimes:
    """The threads of a log, in the order of their start.

    What lies between the unloading of a thread and the next loading of its id belongs to the thread that is loaded
    then; after its last unloading a thread may go on.
    """

    def __init__(self, log: Log) -> None:
        self._boundaries = _boundaries(log)
        self._lives: dict[tuple[int, int], ThreadLifetime] = {}
        self._take_buffers(log)
        self._take_metadata(log)

    def at(self, tid: int, ts: int) -> ThreadLifetime:
        """The thread that had this id then; it may be new."""
        return self._life(tid, int(np.searchsorted(self._boundaries.get(tid, NONE), ts)))

    def by_life(self, tids: Array, ts: Array) -> Iterator[tuple[ThreadLifetime, Array]]:
        """The threads that had these ids (uint64) at these times (int64), each with its rows."""
        for tid, of_tid in rows_by_key(tids).items():
            numbers = np.searchsorted(self._boundaries.get(tid, NONE), ts[of_tid])
            for number, nth in rows_by_key(numbers).items():
                life, rows = self._life(tid, number), of_tid[nth]
                life.reach(int(ts[rows].min()), int(ts[rows].max()))
                yield life, rows

    def __iter__(self) -> Iterator[ThreadLifetime]:
        return iter(sorted(self._lives.values(), key=lambda life: (life.start_ts, life.tid, life.number)))

    def _life(self, tid: int, number: int) -> ThreadLifetime:
        return self._lives.setdefault((tid, number), ThreadLifetime(tid, number, tid not in self._boundaries))

    def _take_buffers(self, log: Log) -> None:
        timed, firsts, lasts = _spans(log)
        for life, rows in self.by_life(log.tids[timed], firsts):
            life.buffers = timed[rows].tolist()
            life.reach(life.start_ts, int(lasts[rows].max()))

    def _take_metadata(self, log: Log) -> None:
        records = log.records
        rows = records.metadata(Metadata.THREAD, Event.LOAD, Event.UNLOAD, Event.NAME)
        for row in records.in_time(rows).tolist():
            ts = int(records.ts[row])
            life = self.at(int(records["pointer"][row]), ts)
            if records.kind[row] == Event.NAME:
                life.names.append(log.text(int(records["name"][row])))
            life.is_unloaded |= bool(records.kind[row] == Event.UNLOAD)
            if not life.buffers:
                life.reach(ts, ts)


def records_by_life(log: Log, threads: Sequence[ThreadLifetime]) -> dict[ThreadLifetime, Array]:
    """The rows of the records in each thread's buffers, rising."""
    owner = np.full(len(log.buffers), -1, np.int64)
    for nth, life in enumerate(threads):
        owner[life.buffers] = nth
    return {threads[nth]: rows for nth, rows in rows_by_key(owner[log.records.buffer]).items() if nth >= 0}


def _boundaries(log: Log) -> dict[int, Array]:
    """For each thread id the times at which one of its threads ended, and another one came later. Not those at which a
    buffer of that id goes on: a buffer is of one thread."""
    records = log.records
    found: dict[int, list[int]] = {}
    unloaded: dict[int, int] = {}
    for row in records.in_time(records.metadata(Metadata.THREAD, Event.LOAD, Event.UNLOAD)).tolist():
        tid, ts = int(records["pointer"][row]), int(records.ts[row])
        if records.kind[row] == Event.UNLOAD:
            unloaded[tid] = ts
        elif tid in unloaded:
            found.setdefault(tid, []).append(unloaded.pop(tid))
    timed, firsts, lasts = _spans(log)
    rows_of = rows_by_key(log.tids[timed])
    kept: dict[int, Array] = {}
    for tid, ended in found.items():
        rows = rows_of.get(tid, NONE)
        n_begun, n_over = (np.searchsorted(np.sort(ts[rows]), ended, side="right") for ts in (firsts, lasts))
        if np.any(n_begun == n_over):
            kept[tid] = np.array(ended, np.int64)[n_begun == n_over]
    return kept


def _spans(log: Log) -> tuple[Array, Array, Array]:
    """(the buffers with events, the times of their first and of their last event, int64)."""
    timed = np.flatnonzero((log.stats["first_ts"] != NEVER) | (log.stats["last_ts"] > 0))
    return timed, times(log.stats["first_ts"][timed]), times(log.stats["last_ts"][timed])
