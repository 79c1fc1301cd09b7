"""Many tracepoints, which a viewer shows as one event: a thread or a recording for each of hundreds is no view."""

from __future__ import annotations

from collections.abc import Sequence

from traceferry.model import Event, Table, ThreadData, Trace

# Of more tracepoints than these, the samples of all are one event in viewers.
MOST_TRACEPOINTS = 10
TRACEPOINTS = Event("tracepoints", "count", kind="tracepoint")


def joined_tracepoints(events: Sequence[Event]) -> frozenset[int]:
    """Returns the rows of the events that are shown as one; none where each is shown."""
    rows = [row for row, event in enumerate(events) if event.kind == "tracepoint" and event.leader < 0]
    return frozenset(rows) if len(rows) > MOST_TRACEPOINTS else frozenset()


def shown_weights(trace: Trace, data: ThreadData) -> list[tuple[Event, Table]]:
    """Returns the events beside the first and their samples, as viewers show them: those of many tracepoints together,
    with the first event's if that is one."""
    joined = joined_tracepoints(trace.events)
    found = [(trace.events[row], samples) for row, samples in data.other_samples.items() if row not in joined]
    parts = [data.samples] if 0 in joined and len(data.samples) else []
    parts += [samples for row, samples in data.other_samples.items() if row in joined and len(samples)]
    trace.report.note("tracepoints_joined", len(joined), where="events")
    return [*found, (TRACEPOINTS, parts[0].merged(*parts[1:]))] if parts else found
