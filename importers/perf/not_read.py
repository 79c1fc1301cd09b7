"""Decode: names what a recording holds and nothing reads, so that the report says it.

Source: linux/perf_event.h.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traceferry.importers.perf._records import SampleType
from traceferry.importers.perf.fields import numbers_at
from traceferry.importers.perf.layout import RecordType
from traceferry.importers.perf.recording import Counts, Event, Problem, Samples
from traceferry.importers.perf.stream import Stream
from traceferry.model import distinct

NOTHING_COUNTED = "perf stat counted nothing: the machine may not count these events, or they did not occur"
# In a COMM, behind u32 pid, tid; what perf calls itself between fork and exec.
NAME_AT, BEFORE_EXEC = 16, b"perf-exec\0"
SWITCHES = {RecordType.SWITCH, RecordType.SWITCH_CPU_WIDE}

# PERF_AUXTRACE_*, by the type in AUXTRACE_INFO.
TRACES = ("", "Intel PT", "Intel BTS", "Arm CoreSight", "Arm SPE", "s390 CPU-MF", "HiSilicon PTT", "Power dispatch log")
RECORDS = {
    RecordType.SCHEDSTAT_CPU: "statistics of perf sched stats (SCHEDSTAT_CPU)",
    RecordType.SCHEDSTAT_DOMAIN: "statistics of perf sched stats (SCHEDSTAT_DOMAIN)",
}
PARTS = {
    SampleType.REGS_INTR: "registers at the interrupt",
    SampleType.TRANSACTION: "transactions",
    SampleType.AUX: "parts of hardware traces",
}


def what_is_not_read(
    stream: Stream, events: Sequence[Event], samples: Samples, counts: Counts | None
) -> Iterator[Problem]:
    """Kinds of records, and parts of samples, with how many there are."""
    yield from _traces(stream)
    if counts is None:
        yield from _why_no_samples(stream, events, samples)
    for kind, what in RECORDS.items():
        at = stream.other_at[stream.other_type == kind]
        if len(at):
            yield Problem("records_not_read", len(at), int(at[0]), what)
    n_parts: dict[str, int] = {}
    for event, count in zip(events, samples.n_of_events(len(events)), strict=True):
        for what in _parts(event):
            n_parts[what] = n_parts.get(what, 0) + count
    yield from (Problem("sample_parts_not_read", n, detail=what) for what, n in n_parts.items() if n)


def _traces(stream: Stream) -> Iterator[Problem]:
    """Names the hardware's traces, with how many bytes they have. AUXTRACE_INFO is u32 type, AUXTRACE u64 size, ..."""
    order = ">" if stream.big else "<"
    data = np.frombuffer(stream.data, np.uint8)
    at = {kind: stream.other_at[stream.other_type == kind] for kind in (RecordType.AUXTRACE_INFO, RecordType.AUXTRACE)}
    at = {kind: of[numbers_at(data, of + 6, order + "u2") >= 16] for kind, of in at.items()}
    infos, traces = at.values()
    if not len(traces):
        return
    kinds = numbers_at(data, infos + 8, order + "u4").tolist()
    names = [TRACES[kind] if kind < len(TRACES) else f"type {kind}" for kind in dict.fromkeys(kinds)]
    size = sum(numbers_at(data, traces + 8, order + "u8").tolist())
    of = ", ".join(filter(None, names)) or "of an unknown kind"
    yield Problem("traces_not_decoded", len(traces), int(traces[0]), f"{of} (AUXTRACE): {size} bytes")


def was_not_started(stream: Stream) -> bool:
    """Whether the program could not be executed: the process that perf began for it kept the name from before. Then
    perf ends without finishing the file."""
    names = stream.other_at[stream.other_type == RecordType.COMM] + NAME_AT
    data = stream.data
    return (
        bool(len(names))
        and not len(stream.sample_at)
        and all(data[at : at + len(BEFORE_EXEC)] == BEFORE_EXEC for at in names.tolist())
    )


def _why_no_samples(stream: Stream, events: Sequence[Event], samples: Samples) -> Iterator[Problem]:
    """Says why a recording shows nothing, unless it has context switches."""
    types = set(distinct(stream.other_type).tolist())
    if len(samples) or types & SWITCHES:
        return
    if types & {RecordType.STAT, RecordType.STAT_ROUND, RecordType.STAT_CONFIG}:
        why = NOTHING_COUNTED
    elif types & {RecordType.SCHEDSTAT_CPU, RecordType.SCHEDSTAT_DOMAIN}:
        why = "perf sched stats record writes statistics, not samples: perf sched record writes samples"
    elif RecordType.AUXTRACE in types:
        why = "it has a hardware trace only, which perf script --itrace decodes"
    elif all(event.is_dummy for event in events):
        why = "its event is dummy, which counts nothing: perf record -e cpu-clock works everywhere"
    elif was_not_started(stream):
        why = "perf could not start the program: its name may be wrong, or it may not be executable"
    elif len(stream.sample_at):
        why = "none of its samples can be read"
    else:
        why = f"{events[0].name} did not occur, or nothing ran, while it was recorded"
    yield Problem("no_samples", 1, detail=why)


def _parts(event: Event) -> set[str]:
    """Returns what the event's samples have and nothing reads."""
    return {what for bit, what in PARTS.items() if bit & event.sample_type}
