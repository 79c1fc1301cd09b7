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

    def reach(self, first_ts: Array, last_ts: Array) -> None:
        """It was alive at these times."""
        self.start_ts, self.end_ts = min(self.start_ts, int(first_ts.min())), max(self.end_ts, int(last_ts.max()))


class ThreadLifetimes:
    """The threads of a log, in the order of their start.

    What lies between the unloading of a thread and the next loading of its id belongs to the thread that is loaded
    then; after its last unloading a thread may go on.
    """

    def __init__(self, log: Log) -> None:
        self._boundaries = _boundaries(log)
        self._lives: dict[tuple[int, int], ThreadLifetime] = {}
        timed, first_ts, last_ts = _spans(log)
        for life, nth in self.by_life(log.tids[timed], first_ts):
            life.buffers = timed[nth].tolist()
            life.reach(first_ts[nth], last_ts[nth])
        records = log.records
        rows = records.in_time(records.metadata(Metadata.THREAD, Event.LOAD, Event.UNLOAD, Event.NAME))
        for life, nth in self.by_life(records["pointer"][rows], records.ts[rows]):
            kind, ts = records.kind[rows[nth]], records.ts[rows[nth]]
            life.names = log.texts(rows[nth[kind == Event.NAME]])
            life.is_unloaded = bool(np.any(kind == Event.UNLOAD))
            if not life.buffers:
                life.reach(ts, ts)

    def by_life(self, tids: Array, ts: Array) -> Iterator[tuple[ThreadLifetime, Array]]:
        """Yields the threads that had these ids (uint64) at these times (int64), each with its rows; they may be
        new."""
        for tid, of_tid in rows_by_key(tids).items():
            numbers = np.searchsorted(self._boundaries.get(tid, NONE), ts[of_tid])
            for number, nth in rows_by_key(numbers).items():
                life = ThreadLifetime(tid, number, tid not in self._boundaries)
                yield self._lives.setdefault((tid, number), life), of_tid[nth]

    def __iter__(self) -> Iterator[ThreadLifetime]:
        return iter(sorted(self._lives.values(), key=lambda life: (life.start_ts, life.tid, life.number)))


def pairs(rows: Array, opens: Array, closes: Array, *key: Array) -> tuple[Array, Array]:
    """Returns (first, last): each event that opens something, and the next one of the same key if that closes it; in
    the order of the latter. rows: of events by time; opens, closes: masks of them."""
    mine = np.flatnonzero(opens | closes)
    order = mine[np.lexsort([column[mine] for column in key])] if key else mine
    first, last = order[:-1], order[1:]
    is_pair = np.logical_and.reduce([opens[first], closes[last], *(column[first] == column[last] for column in key)])
    by_last = np.argsort(last[is_pair])
    return rows[first[is_pair][by_last]], rows[last[is_pair][by_last]]


def records_by_life(log: Log, threads: Sequence[ThreadLifetime]) -> dict[ThreadLifetime, Array]:
    """Returns the rows of the records in each thread's buffers, rising."""
    owner = np.full(len(log.buffers), -1, np.int64)
    for nth, life in enumerate(threads):
        owner[life.buffers] = nth
    return {threads[nth]: rows for nth, rows in rows_by_key(owner[log.records.buffer]).items() if nth >= 0}


def _boundaries(log: Log) -> dict[int, Array]:
    """Returns for each thread id the times at which one of its threads ended, and another one came later. Not those at
    which a buffer of that id goes on: a buffer is of one thread."""
    records, boundaries = log.records, dict[int, Array]()
    rows = records.in_time(records.metadata(Metadata.THREAD, Event.LOAD, Event.UNLOAD))
    unloads, tid = records.kind[rows] == Event.UNLOAD, records["pointer"]
    ended, _ = pairs(rows, unloads, ~unloads, tid[rows])
    timed, *spans = _spans(log)
    rows_of = rows_by_key(log.tids[timed])
    for key, nth in rows_by_key(tid[ended]).items():
        ts, mine = records.ts[ended[nth]], rows_of.get(key, NONE)
        n_begun, n_over = (np.searchsorted(np.sort(of[mine]), ts, side="right") for of in spans)
        if np.any(n_begun == n_over):
            boundaries[key] = ts[n_begun == n_over]
    return boundaries


def _spans(log: Log) -> tuple[Array, Array, Array]:
    """Returns (the buffers with events, the times of their first and of their last event, int64)."""
    timed = np.flatnonzero((log.stats["first_ts"] != NEVER) | (log.stats["last_ts"] > 0))
    return timed, times(log.stats["first_ts"][timed]), times(log.stats["last_ts"][timed])
