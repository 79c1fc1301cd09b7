"""Decode: what perf stat record counted. It writes rounds: the values of all counters since the start, then the time.

Source: tools/lib/perf/include/perf/event.h (perf_record_stat, perf_record_stat_round, perf_record_stat_config).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from traceferry.importers.perf.events import EventTable
from traceferry.importers.perf.fields import Fields, numbers_at, until_nul
from traceferry.importers.perf.layout import (
    RECORD_HEADER_SIZE,
    STAT_CONFIG_AGGREGATION,
    UPDATE_SCALE,
    UPDATE_UNIT,
    RecordType,
)
from traceferry.importers.perf.recording import Counts, Problem
from traceferry.importers.perf.stream import Stream
from traceferry.model import Array, index_of

STAT_SIZE, ROUND_SIZE = 48, 24
LATEST = 1 << 62
LARGEST_SCALE = 1e100
AGGREGATION_NONE = 0  # of enum aggr_mode: -A; the other numbers have changed with perf's versions


@dataclass
class CountSetup:
    """The records of perf stat before its first counts.

    threads: (tid, name or ""), in the order of STAT's `thread`; units: (unit, what a value is multiplied with to be in
    it) of events, by their ids; is_by_cpu: the counts of each processor are to be shown apart.
    """

    threads: list[tuple[int, str]] = field(default_factory=list)
    units: dict[int, tuple[str, float]] = field(default_factory=dict)
    is_by_cpu: bool = False

    def read_update(self, update: int, number: int, fields: Fields) -> None:
        """Reads the rest of an EVENT_UPDATE: the unit, a string, or the scale, a double."""
        unit, scale = self.units.get(number, ("", 1.0))
        if update == UPDATE_UNIT:
            unit = until_nul(fields.bytes(fields.left))
        elif update == UPDATE_SCALE:
            (said,) = np.frombuffer(fields.bytes(8), fields.order + "f8").tolist()
            # A larger one is of no unit, and would make numbers that are not finite.
            scale = said if abs(said) < LARGEST_SCALE else 1.0
        self.units[number] = unit, scale

    def read_threads(self, fields: Fields) -> None:
        """THREAD_MAP: u64 nr; nr times u64 pid, char comm[16]. A pid of -1 stands for all."""
        for _ in range(min(fields.u64(), fields.left // 24)):
            (tid,) = fields.unpack("q")
            self.threads.append((tid, until_nul(fields.bytes(16))))

    def read_config(self, fields: Fields) -> None:
        """STAT_CONFIG: u64 nr; nr times u64 tag, value."""
        for _ in range(min(fields.u64(), fields.left // 16)):
            tag, value = fields.u64s(2)
            if tag == STAT_CONFIG_AGGREGATION:
                self.is_by_cpu = value == AGGREGATION_NONE


def read_counts(stream: Stream, table: EventTable, setup: CountSetup, problems: list[Problem]) -> Counts | None:
    """Returns the values of all rounds, None where there are none. Adds what cannot be read to the problems."""
    data, order = np.frombuffer(stream.data, np.uint8), ">" if stream.big else "<"

    def records(kind: RecordType, least: int) -> Array:
        at = stream.other_at[stream.other_type == kind]
        is_whole = numbers_at(data, at + 6, order + "u2") >= least
        if not is_whole.all():
            problems.append(Problem("bad_record", int((~is_whole).sum()), int(at[~is_whole][0]), f"{kind.name}: short"))
        whole: Array = at[is_whole]
        return whole

    round_at, at = records(RecordType.STAT_ROUND, ROUND_SIZE), records(RecordType.STAT, STAT_SIZE)
    begin = at + RECORD_HEADER_SIZE
    in_round = np.searchsorted(round_at, at)
    event = index_of(table.ids, numbers_at(data, begin, order + "u8"))
    event = np.where(event >= 0, table.id_events[event] if len(table.ids) else -1, -1)
    known = event >= 0
    if not known.all():
        detail = "counts of unknown events (STAT)"
        problems.append(Problem("records_not_read", int((~known).sum()), int(at[~known][0]), detail))
    if not len(round_at) or not known.any():
        return None
    begin = begin[known]
    cpu, thread = (numbers_at(data, begin + distance, order + "i4") for distance in (8, 12))
    value, enabled, running = (numbers_at(data, begin + distance, order + "u8") for distance in (16, 24, 32))
    ts = np.minimum(numbers_at(data, round_at + 16, order + "u8"), LATEST).astype(np.int64)
    ts = np.maximum.accumulate(ts)
    return Counts(
        ts, in_round[known], event[known].astype(np.int32), cpu, thread, value, enabled, running,
        setup.threads, setup.units, setup.is_by_cpu,
    )  # fmt: skip
