"""Decode: a basic-mode log, 32-byte records, into columns for each thread."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traceferry.common.report import Problems
from traceferry.importers.xray.layout import (
    BASIC_ARGUMENT,
    BASIC_KINDS,
    BASIC_NORMAL,
    BASIC_SIZE,
    HEADER_SIZE,
    Function,
    Header,
    basic_record,
)
from traceferry.importers.xray.log import Aside, Log, Piece, ThreadLog, rows_of_arguments
from traceferry.model import Array, distinct

MAX_TICK = 2**63 - 1
NO_KIND = 255


def read_basic(data: memoryview, header: Header, name: str) -> Log:
    """Reads threads in the order of their first record. Before version 3 the pid is padding: garbage."""
    n_records, rest = divmod(len(data) - HEADER_SIZE, BASIC_SIZE)
    records = np.frombuffer(data, basic_record(header.order), n_records, HEADER_SIZE)
    normal = (records["record"] == BASIC_NORMAL) & (records["kind"] < BASIC_KINDS)
    normal &= (records["func"] >= 0) & (records["tsc"] <= MAX_TICK)
    argument = records["record"] == BASIC_ARGUMENT
    problems = Problems()
    bad = np.flatnonzero(~(normal | argument))
    if len(bad):
        problems.add("bad_record", len(bad), HEADER_SIZE + int(bad[0]) * BASIC_SIZE)
    if rest:
        problems.add("truncated", offset=len(data) - rest)
    elif not n_records:
        problems.add("log_empty", offset=len(data))

    tid = np.where(argument, records["argument_tid"], records["tid"]).astype(np.int64)
    if header.version >= 3:
        pid = np.where(argument, records["argument_pid"], records["pid"]).astype(np.int64)
        key = pid << 32 | tid
    else:
        key = tid
    usable = np.flatnonzero(normal | argument)
    keys, first, nth_key = np.unique(key[usable], return_index=True, return_inverse=True)
    ids = distinct(records["func"][normal])
    values = np.zeros(len(ids), np.int32)
    kind_values = np.arange(BASIC_KINDS, dtype=np.uint8)

    def assign(value_of_nth: Array, value_of_kind: Array) -> None:
        values[:] = value_of_nth
        kind_values[:] = value_of_kind

    threads: list[ThreadLog] = []
    by_thread = np.argsort(nth_key, kind="stable")
    rows_of = np.split(usable[by_thread], np.cumsum(np.bincount(nth_key, minlength=len(keys)))[:-1])
    for nth in np.argsort(first):
        rows = rows_of[nth]
        ticks = records["tsc"][rows][normal[rows]]
        if len(ticks) == 0:
            continue
        threads.append(
            ThreadLog(
                int(keys[nth] >> 32) if header.version >= 3 else None,
                int(keys[nth] & 0xFFFFFFFF),
                int(ticks.min()),
                int(ticks.max()),
                len(ticks),
                lambda rows=rows: _pieces(records[rows], ids, values, kind_values),  # type: ignore[misc]
            )
        )
    return Log(name, header, threads, [int(i) for i in ids], assign, [], problems)


def _pieces(records: Array, ids: Array, values: Array, kind_values: Array) -> Iterator[Piece]:
    is_argument = records["record"] == BASIC_ARGUMENT
    calls = records[~is_argument]
    ticks = calls["tsc"].astype(np.int64)
    kind = kind_values[calls["kind"]]
    value = values[np.searchsorted(ids, calls["func"])]
    arguments = np.flatnonzero(is_argument)
    rows_before = np.cumsum(~is_argument)[arguments]
    rows, has_entry = rows_of_arguments(kind, rows_before, NO_KIND, kind_values[[Function.ENTER, Function.ENTER_ARG]])
    cpu = calls["cpu"].astype(np.uint16)
    changes = np.flatnonzero(np.concatenate(([True], cpu[1:] != cpu[:-1])))
    values = records["argument"][arguments[has_entry]].astype(np.uint64)
    n_stray = int(len(arguments) - has_entry.sum())
    yield Piece(ticks, value, kind, rows, Aside(values, ticks[changes], cpu[changes], [], n_stray, 0))
