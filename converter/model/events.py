"""What samples count."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.model.schema import Array
from traceferry.model.tables import Table

BYTES, NS = "bytes", "ns"
# How the names of events end whose samples are amounts of a unit: each sample that is counted is a byte, or a ns.
ENDINGS = {BYTES: " (bytes)", NS: " (ns)"}
# What samples are called that are counted in parts, as weights with decimals are.
PART_OF_A_SAMPLE = compiled_later(r"1/(10+) of a sample")
# What samples at intervals of wall time count.
WALL_CLOCK = "wall-clock"
EventKind = Literal[
    "clock",
    "hardware",
    "software",
    "cache",
    "raw",
    "tracepoint",
    "breakpoint",
    "pmu",
    "memory",
    "off-cpu",
    "branches",
    "other",
]


class Event(NamedTuple):
    """An event that samples count. name: as cpu-clock; unit: of `weight`, as "ns", "cycles" or "count", or "samples":
    a row stands for as many samples as its weight says, where a recorder joins equal ones; interval_ns:
    the usual time between two samples, 0 is unknown; kind: where it is counted; period: how many are counted between
    two samples, 0 is unknown, or chosen by the recorder; leader: the row of `Trace.events` whose samples these are too,
    each with a count of its own, as in a group of counters that are read together; -1 is none; is_scaled: counts were
    extrapolated from a part of the time."""

    name: str
    unit: str
    interval_ns: int = 0
    kind: EventKind = "other"
    period: int = 0
    leader: int = -1
    is_scaled: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        """Tells the events of a trace apart."""
        return self.name, self.unit, self.kind

    @property
    def sample_unit(self) -> str:
        """Returns what each sample that is counted is, as its name says: "bytes" of a heap, "ns" of a time that was
        measured, else "samples"."""
        if self.unit != "samples":
            return "samples"
        units = (unit for unit, ending in ENDINGS.items() if self.name == unit or self.name.endswith(ending))
        return next(units, "samples")

    @property
    def parts(self) -> int:
        """Returns how many of the samples that are counted are one of the recording's, as its name says: 10 of `1/10 of
        a sample`, else 1."""
        found = PART_OF_A_SAMPLE.fullmatch(self.name) if self.unit == "samples" else None
        return int(found[1]) if found else 1

    @property
    def plain_name(self) -> str:
        """Returns the name without the unit of its samples."""
        return self.name.removesuffix(ENDINGS.get(self.sample_unit, ""))

    def n_samples(self, rows: Table) -> Array:
        """Returns how many samples each row of a table of SAMPLES stands for: int64."""
        return rows["weight"] if self.unit == "samples" else np.ones(len(rows), np.int64)
