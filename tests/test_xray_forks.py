"""Logs of processes that forked: each record once, in the process that made it."""

from collections.abc import Callable

import pytest
from builders.xray import Basic, Fdr
from streams import NS, START, records_of, wall
from support import all_calls, calls_of, data_of, drawn, report_of

from traceferry.common.issue_kinds import KINDS
from traceferry.model import Trace, laws

Load = Callable[..., Trace]
EITHER_WAY = pytest.mark.parametrize("step", [1, -1], ids=["as given", "the last first"])
# What logs of forks without symbols say too.
USUAL = {"no_symbols", "duplicate_buffer", "open_at_end"}
# A thread until it forks. What it goes on with begins with the time until then, which differs between processes.
FORKS = "A B "


def log_of(*buffers: tuple[int, int, str]) -> Fdr:
    """A log with a buffer for each (tid, pid, stream). Those of children, and a thread's second one, begin later."""
    log = Fdr(frequency=NS)
    for nth, (tid, pid, stream) in enumerate(buffers):
        start = START + 10_000 * (2 * (pid != 1) + sum(tid == earlier for earlier, *_ in buffers[:nth]))
        log.buffer(tid, pid, wall(start), records_of(log, stream, start)[0])
    return log


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


# ---------------------------------------------------------------- FDR mode: who is the parent


@EITHER_WAY
@pytest.mark.parametrize(
    ("parent", "child", "calls"),
    [
        ("500 C c b a", "100 D d D d D d", ("ABC", "DDD")),
        ("", "100 D d", ("AB", "D")),
        ("900 C c", "100 D d D d", ("ABC", "DD")),
        ("900 C c b a", "100 D d b a", ("ABC", "ABD")),
    ],
    ids=["returns", "only waits", "ends last", "ends last, both return"],
)
def test_the_parent_is_guessed_by_its_last_records(
    load: Load, parent: str, child: str, calls: tuple[str, str], step: int
) -> None:
    """The buffer of both names the parent. The report tells of the guess, and of the child's number."""
    trace = load(*[log_of((1, 1, FORKS + parent)), log_of((1, 1, FORKS + child))][::step])
    assert called(trace) == {(1, 1): calls[0], (2, 2): calls[1]}
    assert told(trace) == {"fork_guessed": 1, "fork_pid_unknown": 1}
    assert [issue.detail for issue in trace.report if issue.kind == "fork_guessed"] == ["process 1 is app.xray"]
    assert KINDS["fork_guessed"].is_told
    assert KINDS["fork_pid_unknown"].is_told


@EITHER_WAY
@pytest.mark.parametrize(
    "buffer", [(3, 1, "E 2000 e"), (1, 1, "E e")], ids=["of another thread", "that the thread began later"]
)
def test_the_parent_is_known_by_another_buffer_of_its_own(load: Load, buffer: tuple[int, int, str], step: int) -> None:
    parent, child = log_of((1, 1, FORKS + "500 C c"), buffer), log_of((1, 1, FORKS + "900 D d b a"))
    trace = load(*[parent, child][::step])
    assert called(trace)[4 if buffer[0] == 3 else 2, 4 if buffer[0] == 3 else 2] == "ABD"
    assert told(trace) == {"fork_pid_unknown": 1}


@EITHER_WAY
def test_a_child_is_known_by_a_buffer_that_it_began(load: Load, step: int) -> None:
    parent, child = log_of((1, 1, FORKS + "500 C c")), log_of((1, 1, FORKS + "900 D d b a"), (5, 4, "E e"))
    trace = load(*[parent, child][::step])
    assert called(trace) == {(1, 1): "ABC", (4, 4): "ABD", (4, 5): "E"}
    assert told(trace) == {}


@EITHER_WAY
def test_several_children(load: Load, step: int) -> None:
    """They fork at the same place: their records are alike, the parent's are not."""
    children = [log_of((1, 1, FORKS + f"{wait} D d D d")) for wait in (100, 200, 300)]
    trace = load(*[log_of((1, 1, FORKS + "50 C 900 c b a")), *children][::step])
    assert called(trace) == {(1, 1): "ABC", (2, 2): "DD", (3, 3): "DD", (4, 4): "DD"}
    assert told(trace) == {"fork_guessed": 1, "fork_pid_unknown": 3}


@EITHER_WAY
def test_a_child_of_a_child(load: Load, step: int) -> None:
    """Its log holds the buffers of both. The child only waits for it."""
    parent = log_of((1, 1, FORKS + "500 C c b a"))
    child = log_of((1, 1, FORKS + "100 D d"), (5, 4, "E e"))
    grandchild = log_of((1, 1, FORKS + "100 D d 50 F f"), (5, 4, "E e"))
    trace = load(*[parent, child, grandchild][::step])
    assert called(trace) == {(1, 1): "ABC", (4, 4): "D", (4, 5): "E", (6, 6): "F"}
    assert told(trace) == {"fork_guessed": 1, "fork_pid_unknown": 1}


@EITHER_WAY
def test_a_child_that_forks_before_it_begins_a_buffer(load: Load, step: int) -> None:
    """Nothing but the order of their numbers tells whose what both have is."""
    parent = log_of((1, 1, FORKS + "500 C c b a"))
    child = log_of((1, 1, FORKS + "100 D d 900 D d"), (4, 4, "E e"))
    grandchild = log_of((1, 1, FORKS + "100 D d 50 F f"), (5, 5, "F f"))
    trace = load(*[parent, child, grandchild][::step])
    assert called(trace) == {(1, 1): "ABC", (4, 4): "DDE", (5, 5): "FF"}
    assert told(trace) == {}


@EITHER_WAY
def test_unnamed_processes_that_forked_one_another(load: Load, step: int) -> None:
    parent = log_of((1, 1, FORKS + "2000 C c b a"))
    child, grandchild = (log_of((1, 1, FORKS + "100 D d " + rest)) for rest in ("900 D d", "50 F f"))
    trace = load(*[parent, child, grandchild][::step])
    assert sorted(called(trace).values()) == ["ABC", "DD", "F"]
    assert told(trace) == {"fork_guessed": 2, "fork_pid_unknown": 2}


@EITHER_WAY
def test_children_of_a_parent_without_a_log(load: Load, step: int) -> None:
    """It was killed. What both hold is its own, what follows is theirs."""
    one, other = (log_of((1, 1, FORKS + f"{pid}00 D d"), (pid, pid, "E e")) for pid in (4, 5))
    trace = load(*[one, other][::step])
    assert called(trace) == {(1, 1): "AB", (4, 4): "DE", (5, 5): "DE"}
    assert told(trace) == {}


def test_programs_that_have_nothing_in_common_are_no_forks(load: Load) -> None:
    """In containers they have the same numbers."""
    log = Fdr(frequency=NS).buffer(1, 1, wall(START), records_of(Fdr(), "C c", START + 700)[0])
    assert told(load(log_of((1, 1, "A a")), log)) == {}


def test_logs_that_are_the_same_leave_nothing_to_guess(load: Load) -> None:
    trace = load(log_of((1, 1, FORKS)), log_of((1, 1, FORKS)))
    assert (called(trace), told(trace)) == ({(1, 1): "AB"}, {})


def test_a_buffer_that_a_log_holds_twice(load: Load) -> None:
    """The longer one is read."""
    log, longer = log_of((1, 1, "A B b")), log_of((1, 1, "A B b a"))
    trace = load(log.append(longer.bytes()[32:]))
    assert (called(trace), told(trace)) == ({(1, 1): "AB"}, {})
    assert report_of(trace)["duplicate_buffer"] == 1
    assert "open_at_end" not in report_of(trace)


# ---------------------------------------------------------------- calls that were open at the fork


@pytest.mark.parametrize(
    ("rest", "picture", "lost"),
    [
        ("900 D d b a", "A 900-940 open-at-start\n.B 900-930 open-at-start\n..D 910-920", 0),
        ("900 D d a", "A 900-930 open-at-start\n.D 910-920", 0),
        ("900 D d c a", "A 900-940 open-at-start\n.C 900-930 open-at-start\n..D 910-920", 2),
    ],
    ids=["left", "left by an exception", "others"],
)
def test_calls_that_were_open_at_the_fork_are_not_lost(load: Load, rest: str, picture: str, lost: int) -> None:
    """Their entries are the parent's records."""
    parent = log_of((1, 1, FORKS + "2000 E e b a"), (1, 1, "F f"))
    trace = load(parent, log_of((1, 1, FORKS + rest)))
    child = data_of(trace, 2)
    assert [(c.name, c.depth) for c in calls_of(trace, child)] == [
        (f"function {ord(line.lstrip('.')[0]) - 64}", line.count(".")) for line in picture.splitlines()
    ]
    assert report_of(trace).get("entry_missing", 0) == lost


def test_a_child_goes_on_in_another_buffer(load: Load) -> None:
    """What was open is also in buffers that the parent's thread had filled before."""
    filled = (1, 1, "A C c"), (1, 1, "B ")
    trace = load(log_of(filled[0], (1, 1, "B 2000 b a")), log_of(filled[0], (1, 1, "B 900 D d b"), (2, 2, "a")))
    assert called(trace) == {(1, 1): "ACB", (2, 2): "ABD"}
    assert told(trace) == {}


def test_a_child_is_on_its_parents_clock(load: Load) -> None:
    """The wall time of the buffer that both have is its only one."""
    trace = load(log_of((1, 1, FORKS + "500 C c b a")), log_of((1, 1, FORKS + "100 D d D d")))
    starts = {thread.tid: thread.start_ts - trace.start_ts for _, thread in trace.threads}
    assert starts == {1: 0, 2: 120}


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
