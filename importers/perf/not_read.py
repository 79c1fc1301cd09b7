"""Decode: names what a recording holds and nothing reads, so that the report says it.

Source: linux/perf_event.h; perf's util/off_cpu.h (OFFCPU_EVENT) and util/bpf_off_cpu.c: a sample's own process is that
of whatever ran, and what slept is in its raw data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

import numpy as np

from traceferry.importers.perf._records import SampleType
from traceferry.importers.perf.layout import AttrType, RecordType
from traceferry.importers.perf.recording import Event, Problem, Samples
from traceferry.importers.perf.stream import Stream

# PERF_COUNT_SW_BPF_OUTPUT
BPF_OUTPUT = 10
OFF_CPU_EVENT = "offcpu-time"

RECORDS = {
    RecordType.AUXTRACE: "hardware traces (AUXTRACE: Intel PT, Arm CoreSight or SPE, s390)",
    RecordType.STAT: "counts of perf stat (STAT)",
    RecordType.SCHEDSTAT_CPU: "statistics of perf sched stats (SCHEDSTAT_CPU)",
}
PARTS = {
    SampleType.REGS_INTR: "registers at the interrupt",
    SampleType.WEIGHT: "weights",
    SampleType.WEIGHT_STRUCT: "weights",
    SampleType.DATA_SRC: "sources of memory accesses",
    SampleType.TRANSACTION: "transactions",
    SampleType.PHYS_ADDR: "physical addresses",
    SampleType.CGROUP: "control groups",
    SampleType.DATA_PAGE_SIZE: "page sizes",
    SampleType.CODE_PAGE_SIZE: "page sizes",
    SampleType.AUX: "parts of hardware traces",
}


def without_off_cpu(samples: Samples, events: Sequence[Event], problems: list[Problem]) -> Samples:
    """Leaves out samples of perf record --off-cpu that have all they say in their raw data."""
    of = [event.index for event in events if _is_off_cpu(event)]
    is_off = np.isin(samples.event, of) & (samples.raw_at >= 0)
    if not of or not is_off.any():
        return samples
    problems.append(Problem("off_cpu_not_read", int(is_off.sum()), int(samples.offset[is_off][0])))
    columns = (field.name for field in fields(Samples) if field.name != "chain")
    return replace(samples, **{name: getattr(samples, name)[~is_off] for name in columns})


def _is_off_cpu(event: Event) -> bool:
    attr = event.attr
    is_bpf = attr.type == AttrType.SOFTWARE and attr.config == BPF_OUTPUT
    return is_bpf and event.name.partition(":")[0] == OFF_CPU_EVENT


def what_is_not_read(stream: Stream, events: Sequence[Event], samples: Samples) -> Iterator[Problem]:
    """Kinds of records, and parts of samples, with how many there are."""
    for kind, what in RECORDS.items():
        at = stream.other_at[stream.other_type == kind]
        if len(at):
            yield Problem("records_not_read", len(at), int(at[0]), what)
    counts = np.bincount(samples.event, minlength=len(events)).tolist()
    n_parts: dict[str, int] = {}
    for event, count in zip(events, counts, strict=True):
        for what in _parts(event):
            n_parts[what] = n_parts.get(what, 0) + count
    yield from (Problem("sample_parts_not_read", n, detail=what) for what, n in n_parts.items() if n)


def _parts(event: Event) -> set[str]:
    """Returns what the event's samples have and nothing reads."""
    parts = {what for bit, what in PARTS.items() if bit & event.sample_type}
    if not event.can_tell_memory:
        parts.discard(PARTS[SampleType.DATA_SRC])
    return parts
