"""Map: what a trace says of itself: its attributes, who wrote it, its clock."""

from __future__ import annotations

from collections.abc import Iterator

from traceferry.common.shown_text import encodable
from traceferry.importers.perfetto.decode import Tables
from traceferry.model import Clock, ClockKind

# BuiltinClock of clock_snapshot.proto.
REALTIME, MONOTONIC, MONOTONIC_RAW, BOOTTIME = 1, 3, 5, 6
CLOCKS: dict[int, ClockKind] = {REALTIME: "realtime", MONOTONIC: "monotonic", MONOTONIC_RAW: "monotonic_raw"}
OF_TRACE = "trace_attribute."


def metadata(tables: Tables) -> Iterator[tuple[str, str]]:
    """Yields the names and values of the trace's metadata."""
    answer = tables["metadata"]
    for name, value in zip(answer["name"].texts(), answer["value"].values(), strict=True):
        if value is not None:
            yield name, encodable(str(value))


def attributes_of(tables: Tables, is_ours: bool) -> dict[str, str]:
    """Returns the trace's metadata: of a trace of ours the attributes of the recording, without what trace_processor
    says of the file, as its size."""
    said = [(name, value) for name, value in metadata(tables) if value and (name.startswith(OF_TRACE) or not is_ours)]
    return {name.removeprefix(OF_TRACE): value for name, value in said}


def producer(tables: Tables) -> str:
    known = dict(metadata(tables))
    return (
        known.get("trace_attribute.converted_by")
        or known.get("tracing_started_by")
        or known.get("trace_type", "unknown")
    )


def clock_of(tables: Tables) -> Clock:
    """Returns the clock of the trace's times; Unix times by the first snapshot that has both."""
    number = next(
        (int(value) for name, value in metadata(tables) if name == "trace_time_clock_id" and value.isdigit()), 0
    )
    answer = tables["clocks"]
    columns = (answer[name].numbers(-1).tolist() for name in ("clock_id", "ts", "clock_value"))
    unix = next(
        (value - ts for clock, ts, value in zip(*columns, strict=True) if clock == REALTIME and value > 0), None
    )
    if number == REALTIME:
        return Clock("realtime", 0)
    return Clock(CLOCKS.get(number, "boot"), unix)
