"""The columns of the samples, by time."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from traceferry.files.source import release
from traceferry.importers.perf._records import SampleDecoder, SampleType
from traceferry.importers.perf.events import EventTable
from traceferry.importers.perf.fields import WINDOW
from traceferry.importers.perf.layout import ReadFormat
from traceferry.importers.perf.off_cpu import is_off_cpu
from traceferry.importers.perf.recording import Event, Problem, Samples
from traceferry.importers.perf.stream import Stream, has_payloads
from traceferry.model import Array

COLUMNS: dict[str, Any] = {
    "ts": np.int64, "pid": np.int32, "tid": np.int32, "event": np.int32, "cpu": np.int32, "period": np.int64,
    "addr": np.uint64, "ip": np.uint64, "cpumode": np.uint8, "chain_start": np.int64, "chain_n": np.int32,
    "offset": np.int64, "read_at": np.int64, "raw_at": np.int64, "raw_size": np.int32, "user_at": np.int64,
    "user_abi": np.uint8, "user_size": np.int32, "user_n": np.int32, "branch_at": np.int64, "branch_n": np.int32,
    "weight": np.uint64, "data_src": np.uint64, "phys_addr": np.uint64, "cgroup": np.uint64,
    "data_page_size": np.uint64, "code_page_size": np.uint64,
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
    "branch_at": (SampleType.BRANCH_STACK, -1),
    "branch_n": (SampleType.BRANCH_STACK, 0),
    "weight": (SampleType.WEIGHT | SampleType.WEIGHT_STRUCT, 0),
    "data_src": (SampleType.DATA_SRC, 0),
    "phys_addr": (SampleType.PHYS_ADDR, 0),
    "cgroup": (SampleType.CGROUP, 0),
    "data_page_size": (SampleType.DATA_PAGE_SIZE, 0),
    "code_page_size": (SampleType.CODE_PAGE_SIZE, 0),
}


def read_samples(stream: Stream, events: list[Event], table: EventTable, problems: list[Problem]) -> Samples:
    """Returns all readable samples. stream.sample_at holds their offsets afterwards."""
    absent = _absent_columns(events)
    n = len(stream.sample_at)
    columns = {name: np.empty(n, dtype) for name, dtype in COLUMNS.items() if name not in absent}
    columns["offset"] = stream.sample_at
    # Beside copies of stacks, chains would keep the copies' pages in memory.
    chain_from = _chain_from(stream) if "user_at" in absent else -1
    chain = np.empty(stream.sample_bytes // 8 if chain_from < 0 else 0, np.uint64)
    decoder = SampleDecoder(stream.data, stream.big, table, columns, chain, chain_from)
    _decode(decoder, stream)
    _note_problems(decoder, problems)
    if chain_from < 0:
        chain = _shrunk(chain, decoder.n_chain)
    else:
        chain = np.frombuffer(stream.data, np.uint64, (len(stream.data) - chain_from) // 8, chain_from)
    n = decoder.n_rows
    columns = {name: column[:n] for name, column in columns.items()}
    _sort_by_time(columns)
    columns |= {name: np.broadcast_to(np.array(value, COLUMNS[name]), n) for name, value in absent.items()}
    samples = Samples(**columns, chain=chain)
    _note_times(samples, events, problems)
    return samples


def _note_problems(decoder: SampleDecoder, problems: list[Problem]) -> None:
    if decoder.n_bad:
        detail = "samples too short for what their event says"
        problems.append(Problem("bad_record", decoder.n_bad, decoder.first_bad, detail))
    if decoder.n_no_event:
        detail = "records of no event"
        problems.append(Problem("unknown_event_id", decoder.n_no_event, decoder.first_no_event, detail))


def _absent_columns(events: list[Event]) -> dict[str, int]:
    """Returns, by name, the columns that no event has, with their only values. Values that are read without a group
    are the event's own."""
    absent = {
        name: value for name, (bit, value) in ABSENT.items() if not any(bit & event.sample_type for event in events)
    }
    if not any(event.can_tell_memory for event in events if event.sample_type & SampleType.DATA_SRC):
        absent["data_src"] = 0
    if not any(event.attr.read_format & ReadFormat.GROUP for event in events if event.sample_type & SampleType.READ):
        absent["read_at"] = -1
    return absent if len(events) > 1 else absent | {"event": 0}


def _chain_from(stream: Stream) -> int:
    """Returns the first offset where the machine would have a number, if all numbers of callchains are such; else -1.
    Records without payloads are multiples of 8 long, but not all that a pipe begins with are."""
    if stream.big != (sys.byteorder == "big"):
        return -1
    first = -np.frombuffer(stream.data, np.uint8).ctypes.data % 8
    at = stream.sample_at
    # Bits that all offsets have, and that any has.
    edges = (int(reduce(at)) & 7 for reduce in (np.bitwise_and.reduce, np.bitwise_or.reduce)) if len(at) else ()
    return first if all(edge == first for edge in edges) else -1


def _decode(decoder: SampleDecoder, stream: Stream) -> None:
    """Decodes all samples, long ones in windows."""
    offsets = stream.sample_at
    if not has_payloads(len(offsets), stream.sample_bytes):
        decoder.decode(0, len(offsets))
        return
    begin = 0
    while begin < len(offsets):
        # The decoder writes over the offsets.
        start = int(offsets[begin])
        end = begin + max(int(np.searchsorted(offsets[begin:], start + WINDOW)), 1)
        stop = int(offsets[end - 1])
        decoder.decode(begin, end)
        release(stream.data, start, stop)
        begin = end


def _shrunk(chain: Array, n: int) -> Array:
    """Returns the first n entries of the buffer, which has space for chains that fill the samples: the rest of it is
    freed where stacks or payloads do."""
    return chain[:n] if 2 * n >= len(chain) else chain[:n].copy()


def _sort_by_time(columns: dict[str, Array]) -> None:
    """Sorts each column into the memory of one before it, as much memory is slower to get than to fill."""
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


def _note_times(samples: Samples, events: list[Event], problems: list[Problem]) -> None:
    """Reports samples without time, which come first."""
    n = int(np.searchsorted(samples.ts, 0))
    if n == 0:
        return
    is_off = np.isin(samples.event[:n], [event.index for event in events if is_off_cpu(event)])
    for kind, of in (("time_unknown", ~is_off), ("off_cpu_no_times", is_off)):
        if of.any():
            problems.append(Problem(kind, int(of.sum()), int(samples.offset[:n][of].min())))
