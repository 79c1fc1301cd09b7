"""Threads: thread ids are reused, so a thread is identified by its id and lifetime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from traceferry.importers.mono.decode import MAX_TS, Log
from traceferry.importers.mono.layout import Event, Metadata
from traceferry.model import Array

NO_EVENT_TS = np.uint64(2**64 - 1)
# Samples of versions before 11 do not say of which thread they are.
UNKNOWN_TID = 0


@dataclass
class ThreadLifetime:
    """One thread. buffers: rows of its buffers; loaded, unloaded: int64 ns, None where the log does not say; is_only:
    no other one had its id."""

    tid: int
    number: int
    name: str = ""
    names: list[str] = field(default_factory=list)
    loaded_ts: int | None = None
    unloaded_ts: int | None = None
    start_ts: int = MAX_TS
    end_ts: int = 0
    buffers: list[int] = field(default_factory=list)
    is_only: bool = True

    def reach(self, ts: int) -> None:
        """Whether it was alive at that time."""
        ts = min(max(ts, 0), MAX_TS)
        self.start_ts, self.end_ts = min(self.start_ts, ts), max(self.end_ts, ts)


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
        number = int(np.searchsorted(self._boundaries.get(tid, NONE), ts, side="left"))
        return self._lives.setdefault((tid, number), self._new(tid, number))

    def number_of(self, tids: Array, ts: Array) -> Iterator[tuple[ThreadLifetime, Array]]:
        """The threads that had these ids (uint64) at these times (int64), each with its rows."""
        numbers = np.zeros(len(tids), np.int64)
        by_tid = np.argsort(tids, kind="stable")
        reused = np.array(list(self._boundaries), np.uint64)
        firsts, ends = (np.searchsorted(tids[by_tid], reused, side=side) for side in ("left", "right"))
        for boundaries, first, end in zip(self._boundaries.values(), firsts.tolist(), ends.tolist(), strict=True):
            rows = by_tid[first:end]
            numbers[rows] = np.searchsorted(boundaries, ts[rows], side="left")
        order = np.lexsort((numbers, tids))
        is_other = (tids[order][1:] != tids[order][:-1]) | (numbers[order][1:] != numbers[order][:-1])
        for rows in np.split(order, np.flatnonzero(is_other) + 1) if len(order) else ():
            key = int(tids[rows[0]]), int(numbers[rows[0]])
            life = self._lives.setdefault(key, self._new(*key))
            life.reach(int(ts[rows].min()))
            life.reach(int(ts[rows].max()))
            yield life, rows

    def __iter__(self) -> Iterator[ThreadLifetime]:
        return iter(sorted(self._lives.values(), key=lambda life: (life.start_ts, life.tid, life.number)))

    def _new(self, tid: int, number: int) -> ThreadLifetime:
        return ThreadLifetime(tid, number, is_only=tid not in self._boundaries)

    def _take_buffers(self, log: Log) -> None:
        timed, firsts, lasts = _spans(log)
        for life, rows in self.number_of(log.tids[timed], firsts):
            life.buffers = timed[rows].tolist()
            life.reach(int(firsts[rows].min()))
            life.reach(int(lasts[rows].max()))

    def _take_metadata(self, log: Log) -> None:
        records = log.records
        rows = np.concatenate([records.metadata(e, Metadata.THREAD) for e in (Event.LOAD, Event.UNLOAD, Event.NAME)])
        for row in rows[np.argsort(records.ts[rows], kind="stable")].tolist():
            ts = int(records.ts[row])
            life = self.at(int(records["pointer"][row]), ts)
            if records.kind[row] == Event.NAME:
                life.name = log.text(int(records["name"][row]))
                life.names += [life.name] if life.name not in life.names else []
            elif records.kind[row] == Event.LOAD:
                life.loaded_ts = ts if life.loaded_ts is None else life.loaded_ts
            else:
                life.unloaded_ts = ts
            if life.buffers == []:
                life.reach(ts)


NONE = np.empty(0, np.int64)


def records_by_life(log: Log, threads: Sequence[ThreadLifetime]) -> dict[int, Array]:
    """The rows of the records in each thread's buffers, rising, by `id` of the ThreadLifetime."""
    owner = np.full(len(log.buffers), -1, np.int64)
    for nth, life in enumerate(threads):
        owner[life.buffers] = nth
    of_row = owner[log.records.buffer]
    order = np.argsort(of_row, kind="stable")
    ends = np.searchsorted(of_row[order], np.arange(-1, len(threads)), side="right")
    return {id(life): order[ends[nth] : ends[nth + 1]] for nth, life in enumerate(threads)}


def _boundaries(log: Log) -> dict[int, Array]:
    """For each thread id the times at which one of its threads ended, and another one came later. Not those at which a
    buffer of that id goes on: a buffer is of one thread."""
    records = log.records
    rows = np.concatenate([records.metadata(event, Metadata.THREAD) for event in (Event.LOAD, Event.UNLOAD)])
    found: dict[int, list[int]] = {}
    unloaded: dict[int, int] = {}
    for row in rows[np.argsort(records.ts[rows], kind="stable")].tolist():
        tid, ts = int(records["pointer"][row]), int(records.ts[row])
        if records.kind[row] == Event.UNLOAD:
            unloaded[tid] = ts
        elif tid in unloaded:
            found.setdefault(tid, []).append(unloaded.pop(tid))
    timed, firsts, lasts = _spans(log)
    by_tid = np.argsort(log.tids[timed], kind="stable")
    tids = log.tids[timed][by_tid]
    kept: dict[int, Array] = {}
    for tid, times in found.items():
        ended = np.array(times, np.int64)
        rows = by_tid[slice(*(int(np.searchsorted(tids, np.uint64(tid), side=side)) for side in ("left", "right")))]
        n_begun, n_over = (np.searchsorted(np.sort(ts[rows]), ended, side="right") for ts in (firsts, lasts))
        if np.any(n_begun == n_over):
            kept[tid] = ended[n_begun == n_over]
    return kept


def _spans(log: Log) -> tuple[Array, Array, Array]:
    """(the buffers with events, the times of their first and of their last event, int64)."""
    timed = np.flatnonzero((log.stats["first_ts"] != NO_EVENT_TS) | (log.stats["last_ts"] > 0))
    firsts, lasts = (np.minimum(log.stats[name][timed], MAX_TS).astype(np.int64) for name in ("first_ts", "last_ts"))
    return timed, firsts, lasts
