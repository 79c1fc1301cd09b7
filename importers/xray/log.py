"""The decoded form of both modes of XRay logs: a log has threads, a thread decodes into columns on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from traceferry.common.report import Problems
from traceferry.importers.xray.layout import Header
from traceferry.model import Array


class Recorded(Protocol):
    """A file of any mode, as far as its binaries are concerned."""

    @property
    def function_ids(self) -> list[int]: ...


@dataclass
class Event:
    """A custom or typed event. event_type is None for custom events; row: the number of function records before it;
    payload may be cut."""

    event_type: int | None
    ticks: int
    row: int
    payload: bytes
    size: int


class Aside(NamedTuple):
    """The other records of a piece than functions.

    arguments uint64; cpu_ticks int64, cpu uint16 (changes); events in the order of the file; n_stray_arguments:
    arguments without an entry before them; n_times_guessed: events without a usable time.
    """

    arguments: Array
    cpu_ticks: Array
    cpu: Array
    events: Sequence[Event]
    n_stray_arguments: int
    n_times_guessed: int


class Piece(NamedTuple):
    """Some records of one thread, in ticks.

    ticks int64, value int32 and kind uint8 (what `Log.assign` gave the function's id and the record's kind), valid
    only until the next piece; argument_row int64: the entry of each argument, rising; -1 is the last row of the piece
    before.
    """

    ticks: Array
    value: Array
    kind: Array
    argument_row: Array
    aside: Aside


@dataclass
class ThreadLog:
    """pid: None where the version does not record it; n_rows: function records; pieces decodes again at every call, as
    before_fork does: where a fork began the thread, what its parent's thread had recorded by then."""

    pid: int | None
    tid: int
    min_tick: int
    max_tick: int
    n_rows: int
    pieces: Callable[[], Iterator[Piece]]
    before_fork: Callable[[], Iterator[Piece]] | None = None


@dataclass
class Log:
    """One file. name: identifies it in the report.

    function_ids: distinct, in the order of their first appearance; assign: takes what the columns hold for each of
    them (int32), and for each kind of function record (uint8); wall_pairs: (tick, CLOCK_MONOTONIC ns) that belong
    together.
    """

    name: str
    header: Header
    threads: list[ThreadLog]
    function_ids: list[int]
    assign: Callable[[Array, Array], None]
    wall_pairs: list[tuple[int, int]] = field(default_factory=list)
    problems: Problems = field(default_factory=Problems)


def rows_of_arguments(kind: Array, row_after: Array, before: int, enters: Array) -> tuple[Array, Array]:
    """Returns the rows of the entries that arguments belong to, and a mask of the arguments that have one.

    row_after: for each argument, the number of function records before it; its entry is the last of them. before: the
    kind of the record before the first, in the place of row -1; enters: the kinds that enter a function.
    """
    row = row_after - 1
    if len(row) == 0:
        return row, np.zeros(0, bool)
    kinds = np.append(kind, np.uint8(before))[row]
    has_entry = np.isin(kinds, enters)
    return row[has_entry], has_entry
