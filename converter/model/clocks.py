"""The clocks that times of a trace are on."""

from __future__ import annotations

from typing import Literal, NamedTuple

ClockKind = Literal["monotonic", "monotonic_raw", "realtime", "boot", "tai", "sched", "tsc"]


class Clock(NamedTuple):
    """kind: which clock the time stamps are on ("sched": the scheduler's own, close to monotonic; "tsc": a counter with
    an unspecified start).

    unix_zero_ns: the Unix time, in ns, at which the clock showed 0; None if unknown.
    """

    kind: ClockKind
    unix_zero_ns: int | None = None


class ClockPart(NamedTuple):
    """A part of a trace whose times are on one clock: what was added until the next part began. n_processes, n_code:
    how many processes and code objects there were before; clock: None is none; is_apart: it has no known relation to
    the trace's clock."""

    n_processes: int
    n_code: int
    clock: Clock | None
    is_apart: bool
