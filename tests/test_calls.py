"""Enters and leaves become calls: tail exits, exceptions, lost entries, wrapped rings, clocks that run backwards.

The streams are in the notation of tests/streams.py; the pictures are those of support.drawn.
"""

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from builders.xray import Fdr
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from streams import NS, START, STEP, fdr, number_of, records_of, wall
from support import all_calls, calls_of, data_of, drawn, report_of, thread_of

from traceferry.analysis.info.summary import summarize
from traceferry.importers.xray import fdr as fdr_pieces
from traceferry.model import ENTRY_LOST, LEAVE, OPEN_AT_START, TAIL, Trace, laws
from traceferry.timeline import balance
from traceferry.timeline.select import select_lasting, select_range

Load = Callable[..., Trace]

CASES = {
    "nothing nested": ("A a B b", "A 0-10\nB 20-30"),
    "nested": ("A B b a", "A 0-30\n.B 10-20"),
    "recursion": ("A A a a", "A 0-30\n.A 10-20"),
    # A tail call leaves the caller's frame before it enters its own.
    "tail exit": ("A ~a B ~b C c", "A 0-10 tail\nB 20-30 tail\nC 40-50"),
    "tail exit below another call": ("A B ~b C c a", "A 0-50\n.B 10-20 tail\n.C 30-40"),
    # An exception leaves no records for the frames that it goes through.
    "exception": ("A B C a", "A 0-30\n.B 10-30 unwound\n..C 20-30 unwound"),
    "exception caught in the middle": ("A B C b a", "A 0-40\n.B 10-30\n..C 20-30 unwound"),
    "destructor while unwinding": ("A B C D d a", "A 0-50\n.B 10-50 unwound\n..C 20-50 unwound\n...D 30-40"),
    "recursion is closed from the inside": ("A A B a a", "A 0-40\n.A 10-30\n..B 20-30 unwound"),
    "tail exit through an exception": ("A B ~a", "A 0-20 tail\n.B 10-20 unwound"),
    "thread exit": ("A B C", "A 0-20 open-at-end\n.B 10-20 open-at-end\n..C 20-20 open-at-end"),
    # A leave without its entry was open since the thread's start.
    "orphan": ("a", "A 0-0 open-at-start"),
    "orphan, then calls": ("a B b", "A 0-0 open-at-start\nB 10-20"),
    "orphan after calls": ("B b a", "A 0-20 open-at-start\n.B 0-10"),
    "orphans nest, the last one outermost": (
        "B b a c", "C 0-30 open-at-start\n.A 0-20 open-at-start\n..B 0-10",
    ),
    "orphan by tail exit": ("B b ~a", "A 0-20 tail open-at-start\n.B 0-10"),
    "the same function twice": ("B b a a", "A 0-30 open-at-start\n.A 0-20 open-at-start\n..B 0-10"),
    # While a frame is open that is left by a record of its own, the orphan lies inside it.
    "entry lost inside its caller": ("A B b c a", "A 0-40\n.B 10-20\n.C 20-30 entry-lost"),
    "entry lost, nothing before": ("A c a", "A 0-20\n.C 0-10 entry-lost"),
    "two entries lost": ("A 100 c d a", "A 0-130\n.C 0-110 entry-lost\n.D 110-120 entry-lost"),
    # A frame that is never left does not outlive the orphan: the orphan unwinds it.
    "orphan unwinds what is never left": ("A c", "C 0-10 open-at-start\n.A 0-10 unwound"),
    "orphan below unwound frames": (
        "A B C d a", "A 0-40\n.D 10-30 entry-lost\n..B 10-30 unwound\n...C 20-30 unwound",
    ),
    # Time stamps that fall are raised.
    "clock backwards": ("A B ! b a", "A 0-15\n.B 10-10"),
}  # fmt: skip


@pytest.mark.parametrize(("stream", "picture"), CASES.values(), ids=CASES)
def test_calls(load: Load, stream: str, picture: str) -> None:
    trace = load(fdr(stream))
    assert laws.check(trace) == []
    found = drawn(trace, data_of(trace, 1)).splitlines()
    order = ("open-at-start", "entry-lost", "tail", "unwound", "open-at-end")
    words = [sorted(line.split(" ")[2:], key=order.index) for line in dedent(picture).splitlines()]
    heads = [line.split(" ")[:2] for line in dedent(picture).splitlines()]
    assert found == [" ".join([*head, *rest]) for head, rest in zip(heads, words, strict=True)]


REPORTS = {
    "A B b a": {},
    "A ~a B b": {},
    "A B C a": {"unwound": 2},
    "A B": {"open_at_end": 2},
    "b A a c": {"entry_missing": 2},
    "A c a": {"entry_lost": 1},
    "A B ! b a": {"clock_backwards": 1},
}


@pytest.mark.parametrize(("stream", "report"), REPORTS.items(), ids=REPORTS)
def test_report(load: Load, stream: str, report: dict[str, int]) -> None:
    trace = load(fdr(stream))
    expected = {"no_symbols": len(set(stream.lower()) & set("abcdefgh")), **report}
    assert report_of(trace) == expected


def test_loading_a_thread_twice_counts_losses_once(load: Load) -> None:
    trace = load(fdr("A B C a b"))
    assert report_of(trace) == report_of(trace)


def test_open_calls_reach_to_the_end_of_the_recording(load: Load) -> None:
    """Not only of their thread."""
    trace = load(fdr("A", "B 1000 b"))
    assert drawn(trace, data_of(trace, 1)) == "A 0-1010 open-at-end"


def test_orphans_start_with_their_thread(load: Load) -> None:
    """Not with the recording."""
    log = fdr("A 500 a")
    log.buffer(2, pid=1, records=records_of(log, "B b c", START + 100)[0])
    trace = load(log)
    assert drawn(trace, data_of(trace, 2)) == "C 100-120 open-at-start\n.B 100-110"


def test_buffers_out_of_file_order(load: Load) -> None:
    log = fdr()
    first, middle = records_of(log, "A B", START)
    second, end = records_of(log, "b C", middle)
    third, _ = records_of(log, "c a", end)
    for records in (third, first, second):
        log.buffer(1, pid=1, records=records)
    trace = load(log)
    assert drawn(trace, data_of(trace, 1)) == "A 0-50\n.B 10-20\n.C 30-40"


def test_wrapped_ring(load: Load) -> None:
    """The newest buffer took the place of the oldest: what it held is lost."""
    log = fdr()
    times = [START + nth * 1000 for nth in range(4)]
    streams = ["A B", "C c D", "d b", "E e a"]
    in_file = [3, 1, 2]
    for nth in in_file:
        log.buffer(1, pid=1, records=records_of(log, streams[nth], times[nth])[0])
    trace = load(log)
    assert drawn(trace, data_of(trace, 1)).splitlines() == [
        "A 0-2020 open-at-start", ".B 0-1010 open-at-start", "..C 0-10", "..D 20-1000", ".E 2000-2010",
    ]  # fmt: skip
    assert report_of(trace)["entry_missing"] == 2
    assert any("buffer_max" in issue.advice for issue in trace.report)


def test_arguments_stay_with_their_calls(load: Load) -> None:
    """Also where enters are added in front of them and leaves between."""
    log = Fdr(frequency=NS)
    records = [
        log.new_cpu(0, START),
        log.enter_arg(1, 0), log.argument(11), log.argument(12),
        log.enter(2, 10), log.enter_arg(3, 10), log.argument(13), log.exit(1, 10),
        log.exit(4, 10), log.enter_arg(5, 10), log.argument(15), log.exit(5, 10),
    ]  # fmt: skip
    trace = load(log.buffer(1, pid=1, records=records))
    assert drawn(trace, data_of(trace, 1)).splitlines() == [
        "D 0-40 open-at-start", ".A(11, 12) 0-30", "..B 10-30 unwound", "...C(13) 20-30 unwound", "E(15) 50-60",
    ]  # fmt: skip
    assert data_of(trace, 1).arguments["position"].tolist() == [0, 1, 0, 0]


# ---------------------------------------------------------------- whatever is recorded

TOKENS = st.sampled_from([*"ABCD", *"abcd", "~a", "~b", "!", "7", "0"])
STREAMS = st.lists(st.lists(TOKENS, max_size=40).map(" ".join), min_size=1, max_size=4)


@examples(200)
@given(STREAMS, st.sampled_from([1, 2, 3, 5]), st.booleans())
def test_any_stream_gives_balanced_calls(load: Load, streams: list[str], version: int, big: bool) -> None:
    trace = load(fdr(*streams, version=version, big=big))
    assert laws.check(trace) == []
    found = [len(calls) for calls in all_calls(trace)]
    tokens = [[token for token in stream.split() if token.strip("~").isalpha()] for stream in streams]
    # A call for each enter, and one for each leave that found none.
    flags = [thread.load(trace).calls["flags"] for _, thread in trace.threads]
    orphans = sum(int(np.count_nonzero(f & (OPEN_AT_START | ENTRY_LOST))) for f in flags)
    enters = sum(token.isupper() for stream in tokens for token in stream)
    assert sum(found) == enters + orphans
    assert orphans == sum(n_orphans(stream) for stream in tokens)
    # Every record is there, in its order.
    for thread, stream in zip(sorted(trace.threads, key=lambda t: t[1].tid), with_records(tokens), strict=True):
        assert recorded(trace, thread[1].load(trace)) == stream


def with_records(streams: list[list[str]]) -> list[list[str]]:
    return [stream for stream in streams if stream]


def n_orphans(stream: list[str]) -> int:
    """Leaves of a function that is not open, each after the frames above the left one are gone."""
    stack: list[str] = []
    orphans = 0
    for token in stream:
        if token.isupper():
            stack.append(token.lower())
        elif token.strip("~") in stack:
            while stack.pop() != token.strip("~"):
                pass
        else:
            orphans += 1
    return orphans


def recorded(trace: Trace, data: Any) -> list[str]:
    """The rows that stand for a record, in the notation."""
    names = [trace.func_name(int(func)) for func in trace.frames["func"]]
    out = []
    for frame, flags in zip(data.calls["frame"].tolist(), data.calls["flags"].tolist(), strict=True):
        letter = chr(ord("A") + int(names[frame].removeprefix("function ")) - 1)
        if not flags & ~(LEAVE | TAIL):
            out.append("~" * bool(flags & TAIL) + (letter.lower() if flags & LEAVE else letter))
    return out


@examples(60)
@given(STREAMS, st.integers(-5, 500), st.integers(0, 500), st.integers(0, 60))
def test_any_part_of_a_trace_obeys_the_laws(
    load: Load, streams: list[str], start: int, length: int, shortest: int
) -> None:
    trace = load(fdr(*streams))
    part = select_range(trace, trace.start_ts + start, trace.start_ts + start + length)
    assert laws.check(part) == []
    lasting = select_lasting(trace, shortest)
    assert laws.check(lasting) == []
    kept = sorted(c.name for calls in all_calls(lasting) for c in calls)
    assert kept == sorted(c.name for calls in all_calls(trace) for c in calls if c.end - c.start >= shortest)


@examples(100)
@given(STREAMS)
def test_totals_are_the_sums_of_the_calls(load: Load, streams: list[str]) -> None:
    trace = load(fdr(*streams))
    total: dict[str, int] = {}
    self_ns: dict[str, int] = {}
    n: dict[str, int] = {}
    for calls in all_calls(trace):
        stack: list[Any] = []
        for call in calls:
            del stack[call.depth :]
            n[call.name] = n.get(call.name, 0) + 1
            if call.name not in [c.name for c in stack]:
                total[call.name] = total.get(call.name, 0) + call.end - call.start
            self_ns[call.name] = self_ns.get(call.name, 0) + call.end - call.start
            if stack:
                self_ns[stack[-1].name] -= call.end - call.start
            stack.append(call)
    top = summarize(trace, top=100)["functions"]["top"]
    assert {row["name"]: (row["calls"], row["total_ns"], row["self_ns"]) for row in top} == {
        name: (n[name], total.get(name, 0), self_ns[name]) for name in n
    }


# ---------------------------------------------------------------- what could take for ever


def test_deep_stack_with_many_orphans(load: Load) -> None:
    """Searching the whole stack for each orphan would take 10^10 steps."""
    depth = 100_000
    log = Fdr(frequency=NS)
    enters, exits = log.enter(1, 1) * depth, log.exit(1, 1) * depth
    orphans = log.exit(2, 1) * depth
    trace = load(log.buffer(1, pid=1, records=[log.new_cpu(0, START), enters, orphans, exits]))
    flags = data_of(trace, 1).calls["flags"]
    assert len(flags) == 4 * depth
    assert np.count_nonzero(flags & ENTRY_LOST) == depth
    assert laws.check(trace) == []


def test_deep_stack_unwound_again_and_again(load: Load) -> None:
    log = Fdr(frequency=NS)
    once = log.enter(1, 1) + log.enter(2, 1) * 1000 + log.exit(1, 1)
    trace = load(log.buffer(1, pid=1, records=[log.new_cpu(0, START), once * 200]))
    assert len(data_of(trace, 1).calls) == 2 * 1001 * 200
    assert laws.check(trace) == []


def test_orphans_of_many_functions_over_open_frames(load: Load) -> None:
    log = Fdr(frequency=NS)
    enters = b"".join(log.enter(n, 1) for n in range(1, 20_001))
    orphans = b"".join(log.exit(n, 1) for n in range(20_001, 40_001))
    trace = load(log.buffer(1, pid=1, records=[log.new_cpu(0, START), enters, orphans]))
    assert laws.check(trace) == []
    assert report_of(trace)["entry_missing"] == 20_000


def test_a_step_is_what_the_notation_says(load: Load) -> None:
    trace = load(fdr("A a"))
    thread = thread_of(trace, 1)
    assert thread.end_ts - thread.start_ts == STEP
    assert calls_of(trace, thread.load(trace))[0].end == thread.end_ts


# ---------------------------------------------------------------- pieces


def with_arguments(stream: str) -> Fdr:
    """A log of a stream in which every enter has an argument, which counts them."""
    log = Fdr(frequency=NS)
    records, _ = records_of(log, stream, START)
    letters = [token for token in stream.split() if token.strip("~").isalpha()]
    for nth, letter in reversed(list(enumerate(letters))):
        at = [i for i, record in enumerate(records) if len(record) == 8][nth]
        if letter.isupper():
            records[at : at + 1] = [log.enter_arg(number_of(letter), STEP), log.argument(nth)]
    return log.buffer(1, pid=1, walltime=wall(START), records=records)


@examples(60)
@given(STREAMS, st.integers(1, 5), st.booleans())
def test_long_threads_are_balanced_anew_for_each_reader(
    load: Load, monkeypatch: pytest.MonkeyPatch, streams: list[str], size: int, has_arguments: bool
) -> None:
    """Calls, the rows of arguments and the report are the same, whether calls are kept or made in pieces of any size,
    orphans and their callers in different ones."""
    log = with_arguments(streams[0]) if has_arguments else fdr(*streams)

    def loaded() -> tuple[Any, ...]:
        trace = load(log)
        data = [thread.load(trace) for _, thread in trace.threads]
        columns = [[d.calls[name].tolist() for name in ("ts", "frame", "flags")] for d in data]
        lengths = [len(d.calls) for d in data]
        return columns, lengths, [d.arguments["call"].tolist() for d in data], report_of(trace)

    kept = loaded()
    with monkeypatch.context() as patch:
        patch.setattr(balance, "KEPT_ROWS", 0)
        patch.setattr(fdr_pieces, "SCRATCH", size)
        assert loaded() == kept
