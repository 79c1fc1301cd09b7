"""Decode: a basic-mode log, 32-byte records, into columns for each thread."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

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
# How many open calls of a thread are recorded, and after how many records of it the recorder writes them and counts
# from 0 again: what its options max_stack_depth and thread_buffer_size are by default.
MAX_OPEN, BUFFER_RECORDS = 64, 1024
NO_KIND = 255
# By the kind of a record: what it adds to the open calls.
STEPS = np.zeros(BASIC_KINDS, np.int8)
STEPS[[Function.ENTER, Function.ENTER_ARG]] = 1
STEPS[[Function.EXIT, Function.TAIL_EXIT]] = -1


def read_basic(data: memoryview, header: Header, name: str) -> Log:
    """Reads threads in the order of their first record. Before version 3 the pid is padding: garbage."""
    n_records, rest = divmod(len(data) - HEADER_SIZE, BASIC_SIZE)
    records = np.frombuffer(data, basic_record(header.order), n_records, HEADER_SIZE)
    normal = (records["record"] == BASIC_NORMAL) & (records["kind"] < BASIC_KINDS)
    normal &= (records["func"] >= 0) & (records["tsc"] <= MAX_TICK)
    problems = Problems()
    bad = np.flatnonzero(~(normal | (records["record"] == BASIC_ARGUMENT)))
    if len(bad):
        problems.add("bad_record", len(bad), HEADER_SIZE + int(bad[0]) * BASIC_SIZE)
    if rest:
        problems.add("truncated", offset=len(data) - rest)
    elif not n_records:
        problems.add("log_empty", offset=len(data))

    ids = distinct(records["func"][normal])
    values = np.zeros(len(ids), np.int32)
    kind_values = np.arange(BASIC_KINDS, dtype=np.uint8)

    def assign(value_of_nth: Array, value_of_kind: Array) -> None:
        values[:] = value_of_nth
        kind_values[:] = value_of_kind

    def decoded(parts: list[Array]) -> Iterator[Piece]:
        for rows in parts:
            yield from _pieces(records[rows], ids, values, kind_values)

    found = _threads(records, normal, header, problems)
    threads: list[ThreadLog] = []
    for nth, thread in enumerate(found):
        ticks = records["tsc"][thread.rows][normal[thread.rows]]
        if len(ticks) == 0:
            continue
        before = _before_fork(records, normal, found, nth)
        if _n_open(records, normal, thread.rows) == MAX_OPEN:
            problems.add("calls_too_deep", detail=f"thread {thread.tid}")
        threads.append(
            ThreadLog(
                thread.pid,
                thread.tid,
                int(ticks.min()),
                int(ticks.max()),
                len(ticks),
                partial(decoded, [thread.rows]),
                partial(decoded, before) if before else None,
            )
        )
    return Log(name, header, threads, [int(i) for i in ids], assign, [], problems)


def _n_open(records: Array, normal: Array, rows: Array) -> int:
    """Returns how many calls of a thread were open at most, as the recorder counts them: one that an exception leaves
    stays open, and of one that had begun before the buffer the end does not count."""
    steps = np.zeros((-(-len(rows) // BUFFER_RECORDS), BUFFER_RECORDS), np.int16)
    steps.reshape(-1)[: len(rows)] = np.where(normal[rows], STEPS[records["kind"][rows] % BASIC_KINDS], 0)
    n_open = np.cumsum(steps, axis=1, out=steps)
    n_open -= np.minimum(np.minimum.accumulate(n_open, axis=1), 0)
    return int(n_open.max(initial=0))


class _Thread(NamedTuple):
    """pid: None where the version does not record it; rows: int64, of its records; last_before: the thread and the row
    of the record before its first in the file, None at the file's beginning."""

    pid: int | None
    tid: int
    rows: Array
    last_before: tuple[int, int] | None


def _threads(records: Array, normal: Array, header: Header, problems: Problems) -> list[_Thread]:
    """Returns threads in the order of their first record, each record once."""
    argument = records["record"] == BASIC_ARGUMENT
    key = np.where(argument, records["argument_tid"], records["tid"]).astype(np.int64)
    if header.version >= 3:
        key |= np.where(argument, records["argument_pid"], records["pid"]).astype(np.int64) << 32
    usable = np.flatnonzero(normal | argument)
    keys, first, nth_key = np.unique(key[usable], return_index=True, return_inverse=True)
    by_thread = np.argsort(nth_key, kind="stable")
    rows_of = np.split(usable[by_thread], np.cumsum(np.bincount(nth_key, minlength=len(keys)))[:-1])
    order = np.argsort(first)
    place = np.argsort(order)
    threads = []
    for nth in order.tolist():
        before = int(first[nth]) - 1
        threads.append(
            _Thread(
                int(keys[nth] >> 32) if header.version >= 3 else None,
                int(keys[nth] & 0xFFFFFFFF),
                _without_copies(records, normal, rows_of[nth], problems),
                (int(place[nth_key[before]]), int(usable[before])) if before >= 0 else None,
            )
        )
    return threads


# ---------------------------------------------------------------- forks


def _without_copies(records: Array, normal: Array, rows: Array, problems: Problems) -> Array:
    """Returns the rows of a thread without those that a forked child has written again: at its end it writes its
    buffer, which begins with what its parent had not written by the fork.

    A copy begins where the time falls, or where a record repeats the one that is before it elsewhere in the file.
    """
    is_call = normal[rows]
    calls = rows[is_call]
    ticks = records["tsc"][calls]
    begins = np.flatnonzero((ticks[1:] < ticks[:-1]) | ((ticks[1:] == ticks[:-1]) & (calls[1:] > calls[:-1] + 1))) + 1
    if not len(begins):
        return rows
    is_kept = np.ones(len(calls), bool)
    kept, kept_ticks = calls.copy(), ticks.copy()  # the first n_kept are valid
    n_kept = int(begins[0])
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(calls)], strict=True):
        at = int(np.searchsorted(kept_ticks[:n_kept], ticks[begin]))
        n_copied = _n_same(records, kept[at:n_kept], calls[begin:end])
        if n_copied:
            problems.add("duplicate_buffer", 1, HEADER_SIZE + int(calls[begin]) * BASIC_SIZE)
        is_kept[begin : begin + n_copied] = False
        n_new = end - begin - n_copied
        for column, of_calls in ((kept, calls), (kept_ticks, ticks)):
            column[n_kept : n_kept + n_new] = of_calls[begin + n_copied : end]
        n_kept += n_new
    # An argument goes with the call before it.
    call_of = np.cumsum(is_call) - 1
    return rows[np.where(call_of >= 0, is_kept[np.maximum(call_of, 0)], True)]


def _n_same(records: Array, earlier: Array, later: Array) -> int:
    """Returns how many of the later rows repeat the earlier ones from their first on."""
    n = min(len(earlier), len(later))
    first, second = records[earlier[:n]], records[later[:n]]
    same = np.ones(n, bool)
    for name in ("tsc", "func", "kind", "cpu"):
        same &= first[name] == second[name]
    return n if same.all() else int(same.argmin())


def _before_fork(records: Array, normal: Array, threads: list[_Thread], nth: int) -> list[Array]:
    """Returns the rows that a process's first thread goes on from: those of its parent's thread up to the fork, before
    them those that this goes on from. Empty where it is no forked child.

    What a child writes first is the end of its copy of its parent's thread.
    """
    parts: list[Array] = []
    thread = threads[nth]
    while thread.pid == thread.tid and thread.last_before is not None:
        parent, row = threads[thread.last_before[0]], thread.last_before[1]
        forked = records["tsc"][row if normal[row] else row - 1]
        if parent.pid == thread.pid or forked > records["tsc"][thread.rows[0]]:
            break
        calls = parent.rows[normal[parent.rows]]
        parts.append(calls[records["tsc"][calls] <= forked])
        thread = parent
    return parts[::-1]


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
