"""The columns of the samples, by time."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from traceferry.files.source import release
from traceferry.importers.perf import perf_kernel
from traceferry.importers.perf.events import EventTable
from traceferry.importers.perf.layout import SampleType
from traceferry.importers.perf.recording import Event, Problem, Samples
from traceferry.importers.perf.stream import WINDOW, Stream, has_payloads
from traceferry.model import Array

FOUND = perf_kernel.FOUND_SLOTS
LAST = 1 << 62
# In the order of the kernel's parameters.
COLUMNS: dict[str, Any] = {
    "ts": np.int64, "pid": np.int32, "tid": np.int32, "event": np.int32, "cpu": np.int32, "period": np.int64,
    "addr": np.uint64, "ip": np.uint64, "cpumode": np.uint8, "chain_start": np.int64, "chain_n": np.int32,
    "offset": np.int64, "raw_at": np.int64, "raw_size": np.int32, "user_at": np.int64, "user_abi": np.uint8,
    "user_size": np.int32, "user_n": np.int32,
}  # fmt: skip
# What the column holds where no event has this bit. All events are the first where there is only one.
ABSENT: dict[str, tuple[SampleType, int]] = {
    "cpu": (SampleType.CPU, -1),
    "addr": (SampleType.ADDR, 0),
    "raw_at": (SampleType.RAW, -1),
    "raw_size": (SampleType.RAW, -1),
    "user_at": (SampleType.STACK_USER, -1),
    "user_abi": (SampleType.STACK_USER, 0),
    "user_size": (SampleType.STACK_USER, 0),
    "user_n": (SampleType.STACK_USER, 0),
}


def read_samples(stream: Stream, events: list[Event], table: EventTable, problems: list[Problem]) -> Samples:
    """All readable samples. stream.sample_at holds their offsets afterwards."""
    absent = _absent_columns(events)
    buffers = {
        name: stream.sample_at if name == "offset" else np.empty(0 if name in absent else len(stream.sample_at), dtype)
        for name, dtype in COLUMNS.items()
    }
    # Beside copies of stacks, chains would keep the copies' pages in memory.
    chain_from = _chain_from(stream) if "user_at" in absent else -1
    chain = np.empty(stream.sample_bytes // 8 if chain_from < 0 else 0, np.uint64)
    found = _decode(stream, table, buffers, chain, chain_from)
    if chain_from < 0:
        chain = _shrunk(chain, int(found[FOUND["n_chain"]]))
    else:
        chain = np.frombuffer(stream.data, np.uint64, (len(stream.data) - chain_from) // 8, chain_from)
    problems += problems_of(found, "samples too short for what their event says")
    n = int(found[FOUND["n_rows"]])
    columns = {name: buffers[name][:n] for name in COLUMNS if name not in absent}
    _sort_by_time(columns)
    columns |= {name: np.broadcast_to(np.array(value, COLUMNS[name]), n) for name, value in absent.items()}
    samples = Samples(**columns, chain=chain)
    _note_times(samples, problems)
    return samples


def problems_of(found: Array, detail: str) -> list[Problem]:
    """The problems that the kernel found."""
    problems = []
    if found[FOUND["n_bad"]]:
        problems.append(Problem("bad_record", int(found[FOUND["n_bad"]]), int(found[FOUND["first_bad"]]), detail))
    if found[FOUND["n_no_event"]]:
        n, at = int(found[FOUND["n_no_event"]]), int(found[FOUND["first_no_event"]])
        problems.append(Problem("unknown_event_id", n, at, "records of no event"))
    return problems


def _absent_columns(events: list[Event]) -> dict[str, int]:
    """Name → its only value."""
    absent = {
        name: value for name, (bit, value) in ABSENT.items() if not any(bit in event.sample_type for event in events)
    }
    return absent if len(events) > 1 else absent | {"event": 0}


def _chain_from(stream: Stream) -> int:
    """The first offset where the machine would have a number, if all numbers of callchains are such; else -1. Records
    without payloads are multiples of 8 long, but not all that a pipe begins with are."""
    if stream.big != (sys.byteorder == "big"):
        return -1
    first = -np.frombuffer(stream.data, np.uint8).ctypes.data % 8
    return -1 if bool(((stream.sample_at - first) & 7).any()) else first


def _decode(stream: Stream, table: EventTable, buffers: dict[str, Array], chain: Array, chain_from: int) -> Array:
    """Fills the buffers, long samples in windows. Returns what the kernel found in all of them."""
    fields, found = np.zeros(perf_kernel.FIELDS_SIZE, np.uint64), np.zeros(len(FOUND), np.int64)
    n_rows, n_chain, n_bad, n_no_event = (FOUND[name] for name in ("n_rows", "n_chain", "n_bad", "n_no_event"))
    offsets = stream.sample_at
    is_long = has_payloads(len(offsets), stream.sample_bytes)
    begin = 0
    while begin < len(offsets):
        until = int(offsets[begin]) + WINDOW if is_long else LAST
        end = begin + max(int(np.searchsorted(offsets[begin:], until)), 1)
        first_row, first_chain = int(found[n_rows]), int(found[n_chain])
        here = np.zeros(len(FOUND), np.int64)
        # The kernel may write over the offsets.
        start, stop = int(offsets[begin]), int(offsets[end - 1])
        perf_kernel.samples(
            stream.data, stream.big, offsets[begin:end], table.layouts, table.id_at, table.ids, table.id_events,
            chain_from, fields, here, chain[first_chain:],
            *(column[first_row : first_row + end - begin] for column in buffers.values()),
        )  # fmt: skip
        buffers["chain_start"][first_row : first_row + here[n_rows]] += first_chain
        for n, first in ((n_bad, "first_bad"), (n_no_event, "first_no_event")):
            if here[n] and not found[n]:
                found[FOUND[first]] = here[FOUND[first]]
        found[[n_rows, n_chain, n_bad, n_no_event]] += here[[n_rows, n_chain, n_bad, n_no_event]]
        if is_long:
            release(stream.data, start, stop)
        begin = end
    return found


def _shrunk(chain: Array, n: int) -> Array:
    """The buffer would hold chains that fill the samples: the rest of it is freed where stacks or payloads do."""
    return chain[:n] if 2 * n >= len(chain) else chain[:n].copy()


def _sort_by_time(columns: dict[str, Array]) -> None:
    """Each column into the memory of one before it, as much memory is slower to get than to fill."""
    ts = columns["ts"]
    if bool((ts[1:] >= ts[:-1]).all()):
        return
    order = np.argsort(ts, kind="stable")
    spare: dict[int, Array] = {}
    for name, column in columns.items():
        raw = column.view(f"u{column.itemsize}")
        out = spare.get(column.itemsize)
        out = np.empty_like(raw) if out is None else out
        np.take(raw, order, out=out, mode="clip")
        spare[column.itemsize] = raw
        columns[name] = out.view(column.dtype)


def _note_times(samples: Samples, problems: list[Problem]) -> None:
    """Those without time come first."""
    n = int(np.searchsorted(samples.ts, 0))
    if n:
        problems.append(Problem("time_unknown", n, int(samples.offset[:n].min())))
