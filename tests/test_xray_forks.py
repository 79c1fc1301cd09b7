"""Logs of processes that forked: each record once, in the process that made it."""

from collections.abc import Callable

import pytest
from builders.xray import Basic
from streams import NS
from support import all_calls, calls_of, data_of, drawn, report_of

from traceferry.model import Trace, laws

Load = Callable[..., Trace]
# What logs of forks without symbols say too.
USUAL = {"no_symbols", "duplicate_buffer", "open_at_end"}


def called(trace: Trace) -> dict[tuple[int, int], str]:
    """The calls of each thread as letters, by pid and tid."""
    assert laws.check(trace) == []
    return {
        (process.pid, thread.tid): "".join(
            chr(64 + int(c.name.split()[1])) for c in calls_of(trace, thread.load(trace))
        )
        for process, thread in trace.threads
    }


def told(trace: Trace) -> dict[str, int]:
    return {kind: count for kind, count in report_of(trace).items() if kind not in USUAL}


# ---------------------------------------------------------------- basic mode


def basic(*chunks: tuple[int, str, int]) -> Basic:
    """A log of (pid, stream, first time): what follows in the file, each record 10 ns after the one before."""
    log = Basic(frequency=NS)
    for pid, stream, start in chunks:
        now = start
        for letter in stream.split():
            record = log.enter if letter.isupper() else log.exit
            record(ord(letter.upper()) - 64, now, pid, pid)
            now += 10
    return log


COPY = (1, "A B", 100)


@pytest.mark.parametrize(
    ("chunks", "calls"),
    [
        ([COPY, (2, "C c", 200), COPY, (1, "b a", 300)], {(1, 1): "AB", (2, 2): "C"}),
        ([COPY, (1, "D d", 150), COPY, (2, "C c", 200), (1, "b a", 300)], {(1, 1): "ABD", (2, 2): "C"}),
        ([COPY, (2, "C", 200), COPY, (2, "C", 200), (3, "E e", 220), COPY, (2, "C c", 200)],
         {(1, 1): "AB", (2, 2): "C", (3, 3): "E"}),
        ([(1, "A", 100), (2, "C c", 200), (1, "A a", 100)], {(1, 1): "A", (2, 2): "C"}),
        ([(1, "A", 100), (1, "B", 150), (2, "C c", 200), (1, "B b a", 150)], {(1, 1): "AB", (2, 2): "C"}),
    ],
    ids=["child first", "parent first", "a child of a child", "one record", "a part was written before"],
)  # fmt: skip
def test_what_children_write_again_is_read_once(
    load: Load, chunks: list[tuple[int, str, int]], calls: dict[tuple[int, int], str]
) -> None:
    trace = load(basic(*chunks))
    assert called(trace) == calls
    assert told(trace) == {}
    assert "duplicate_buffer" in report_of(trace)


def test_arguments_are_written_again_with_their_calls(load: Load) -> None:
    log = Basic(frequency=NS)
    for _ in range(2):
        log.enter_arg(1, 100, 1, 1).argument(1, 1, 1, 77).enter(2, 110, 1, 1)
        log.enter(3, 120, 2, 2).exit(3, 130, 2, 2)
    trace = load(log.exit(2, 140, 1, 1).exit(1, 150, 1, 1))
    assert drawn(trace, data_of(trace, 1)) == "A(77) 0-50\n.B 10-40"
    assert told(trace) == {}


def test_records_of_one_time_are_no_copies(load: Load) -> None:
    """Some counters stand still for longer than a call takes."""
    log = Basic(frequency=NS)
    for _ in range(3):
        log.enter(1, 100, 1, 1).exit(1, 100, 1, 1)
    trace = load(log)
    assert called(trace) == {(1, 1): "AAA"}
    assert report_of(trace).keys() == {"no_symbols"}


def test_times_that_fall_are_no_copies(load: Load) -> None:
    """The counters of processors may differ."""
    trace = load(basic((1, "A B", 100), (1, "b C c", 105), (1, "a", 200)))
    assert called(trace) == {(1, 1): "ABC"}
    assert told(trace) == {"clock_backwards": 1}


@pytest.mark.parametrize(
    ("chunks", "lost"),
    [
        ([COPY, (2, "C c b a", 200), COPY, (1, "b a", 300)], {}),
        ([COPY, (2, "C", 200), (3, "E e c b a", 220), COPY, (2, "C c b a", 200), COPY, (1, "b a", 300)], {}),
        ([(2, "C c b a", 200), (1, "A B b a", 100)], {"entry_missing": 2}),
    ],
    ids=["a child", "a child of a child", "nothing of the parent"],
)
def test_calls_that_were_open_at_a_fork_in_basic_mode(
    load: Load, chunks: list[tuple[int, str, int]], lost: dict[str, int]
) -> None:
    trace = load(basic(*chunks))
    assert len(all_calls(trace)) == len({pid for pid, *_ in chunks})
    assert told(trace) == lost
