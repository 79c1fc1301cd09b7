"""Map: the times of a profile, in ms after a moment of its own, on the clock of the trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from traceferry.importers.firefox._stacks import rounded
from traceferry.model import Array, Clock, TraceBuilder

NS_OF_MS = 1_000_000
# ns: about 73 years. What is further away is no time.
FARTHEST_NS = 1 << 61
# Wall clocks of one machine may seem this much apart when a recording starts.
SAME_CLOCK_NS = 2_000_000_000
# Perfetto's exporter to this format writes ns.
WRITES_NS = "Perfetto"


class Times(NamedTuple):
    """base_ns: the profile's zero on the trace's clock; scale: ns of its unit; shift_ms: of the process in it."""

    base_ns: int = 0
    scale: float = NS_OF_MS
    shift_ms: float = 0.0

    def durations(self, values: Array) -> Array:
        """Returns ns, int64, of numbers of which none is NaN."""
        return rounded(np.ascontiguousarray(values, np.float64), self.scale, FARTHEST_NS)

    def on_clock(self, values: Array) -> Array:
        """Returns times on the trace's clock, int64, of numbers of which none is NaN."""
        found: Array = self.durations(values + self.shift_ms if self.shift_ms else values) + self.base_ns
        return found

    def one(self, value: Any) -> int | None:
        """Returns a time on the trace's clock; None: the value is none."""
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < FARTHEST_NS:
            return None
        return int(self.on_clock(np.array([value], np.float64))[0])


def join_clock(trace: TraceBuilder, meta: Mapping[str, Any]) -> Times:
    """Puts the profile on the trace's clock."""
    start_ms, monotonic = meta.get("startTime"), meta.get("startTimeAsClockMonotonicNanosecondsSinceBoot")
    unix_ns = None
    if isinstance(start_ms, (int, float)) and 0 < start_ms < FARTHEST_NS / NS_OF_MS:
        # In two parts: the product has more digits than a float.
        unix_ns = int(start_ms) * NS_OF_MS + round(start_ms % 1 * NS_OF_MS)
    scale = 1.0 if meta.get("product") == WRITES_NS else float(NS_OF_MS)
    if isinstance(monotonic, (int, float)) and not isinstance(monotonic, bool) and abs(monotonic) < FARTHEST_NS:
        zero = None if unix_ns is None else unix_ns - int(monotonic)
        shift = trace.join_clock(Clock("monotonic", zero), SAME_CLOCK_NS)
        return Times(int(monotonic) + shift, scale)
    shift = trace.join_clock(Clock("realtime", unix_ns))
    return Times(shift if abs(shift) < FARTHEST_NS else 0, scale)
