"""Calls of Mono logs that are added up while they are read: as if they had been gone through one by one."""

from dataclasses import dataclass
from random import Random

import pytest
from builders.mono import MAIN, Log
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from support import report_of
from test_mono_records import START

from traceferry.analysis.info.summary import summarize
from traceferry.files.source import Source
from traceferry.importers import mono as importer
from traceferry.model import StreamedTable, Trace, TraceBuilder
from traceferry.reading import ImportContext, LoadOptions
from traceferry.timeline import running
from traceferry.timeline.balance import CallTotals

METHODS = [0x500 + 16 * nth for nth in range(6)]
OTHER = 0x7F20
LATE = 1 << 62


def loaded(log: Log, adds_calls: bool) -> Trace:
    trace = TraceBuilder()
    context = ImportContext(LoadOptions(adds_calls=adds_calls))
    importer.read([Source("app0.mlpd", memoryview(log.bytes()))]).add_to(trace, context)
    trace.sort()
    return trace


def totals_known(trace: Trace) -> list[bool]:
    """For each thread with calls."""
    calls = [thread.load(trace).calls for _, thread in trace.threads]
    return [table.totals() is not None for table in calls if isinstance(table, StreamedTable)]


def random_log(random: Random) -> Log:
    """Leaves of anything, times that fall, threads whose ids are used again, methods that share a name, or get another
    one, and those without one."""
    log = Log(random.choice((4, 12, 13, 17)), random.choice((4, 8))).buffer(MAIN)
    for nth, method in enumerate(random.sample(METHODS, 5)):
        log.jit(method, f"A:m{nth // random.choice((1, 1, 2))} ()")
    ts, stack = START, list[int]()
    for _ in range(random.randrange(300)):
        ts += random.choice((0, 1, 90, 90, 20_000, 3_000_000, -50))
        what = random.random()
        if what < 0.5:
            stack.append(random.choice(METHODS))
            log.enter(stack[-1], ts=ts)
        elif what < 0.9 and stack:
            log.leave(stack.pop(), ts=ts)
        elif what < 0.94:
            log.exc_leave(random.choice(METHODS), ts=ts)
        elif what < 0.98:
            log.buffer(random.choice((MAIN, OTHER)))
        elif what < 0.985:
            log.jit(random.choice(METHODS), "B:other ()", ts=ts)
        elif log.supports("thread load"):
            log.thread_unload(OTHER, ts=ts).thread(OTHER, ts=ts)
    return log


def test_sums_are_those_of_the_calls() -> None:
    random, n_known = Random(12), 0
    for _ in range(60):
        log = random_log(random)
        trace, whole = loaded(log, adds_calls=True), loaded(log, adds_calls=False)
        assert summarize(trace) == summarize(whole)
        assert summarize(trace) == summarize(whole), "a second time"
        n_known += sum(totals_known(trace))
    assert n_known > 30


def test_methods_of_one_name_that_call_each_other_count_once() -> None:
    log = Log().buffer().jit(METHODS[0], "A:f ()").jit(METHODS[1], "A:f ()")
    for nth, (what, method) in enumerate(
        ((log.enter, 0), (log.enter, 1), (log.leave, 1), (log.leave, 0), (log.enter, 1))
    ):
        what(METHODS[method], ts=START + 10 * nth)
    log.leave(METHODS[1], ts=START + 100)
    trace = loaded(log, adds_calls=True)
    assert totals_known(trace) == [True]
    top = summarize(trace)["functions"]["top"]
    assert [(f["calls"], f["total_ns"], f["self_ns"]) for f in top] == [(3, 90, 90)]


def beyond(monkeypatch: pytest.MonkeyPatch) -> dict[str, Log]:
    monkeypatch.setattr(running, "MOST_SLOTS", 64)
    monkeypatch.setattr(running, "MOST_THREADS", 16)
    deep, late, many = (Log().buffer() for _ in range(3))
    for nth in range(running.DEEPEST + 1):
        deep.enter(METHODS[0], ts=START + nth)
    late.enter(METHODS[0], ts=START).leave(METHODS[0], ts=LATE + 1)
    for nth in range(running.MOST_SLOTS + 1):
        many.enter(0x500 + 8 * nth, ts=START + 2 * nth).leave(0x500 + 8 * nth, ts=START + 2 * nth + 1)
    threads = Log()
    for nth in range(running.MOST_THREADS + 1):
        threads.buffer(MAIN + 16 * nth).enter(METHODS[0], ts=START).leave(METHODS[0], ts=START + nth)
    renamed = Log().buffer().jit(METHODS[0], "A:f ()", ts=START).enter(METHODS[0], ts=START)
    renamed.jit(METHODS[0], "B:g ()", ts=START + 5).enter(METHODS[0], ts=START + 9)
    alike = Log().buffer().jit(METHODS[0], "A:f ()").jit(METHODS[1], "A:f ()")
    for nth in range(200):
        alike.enter(METHODS[nth & 1], ts=START + 2 * nth).leave(METHODS[nth & 1], ts=START + 2 * nth + 1)
    return {"deep": deep, "late": late, "many": many, "threads": threads, "renamed": renamed, "alike": alike}


@pytest.mark.parametrize("what", ["deep", "late", "many", "threads", "renamed", "alike"])
def test_what_is_not_added_up_is_gone_through(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = beyond(monkeypatch)[what]
    trace = loaded(log, adds_calls=True)
    assert False in totals_known(trace)
    whole = loaded(log, adds_calls=False)
    assert summarize(trace) == summarize(whole)
    assert report_of(trace) == report_of(whole)


def test_only_who_asks_gets_sums() -> None:
    log = Log().buffer().enter(METHODS[0], ts=START).leave(METHODS[0], ts=START + 5)
    whole = loaded(log, adds_calls=False)
    assert totals_known(whole) == [False]
    _, thread = whole.threads[0]
    assert CallTotals(whole.frames, whole.funcs).add(thread.load(whole).calls) == 1


@dataclass
class Sums:
    enters: int = 0
    total_ns: int = 0
    self_ns: int = 0


def added_up(events: list[tuple[bool, int, int]], end_ts: int) -> dict[int, Sums]:
    """The sums of one thread's methods. events: whether it enters, the method's number, the time."""
    sums = dict[int, Sums]()
    stack: list[list[int]] = []  # method, when it was entered, ns in callees
    now = 0

    def leave() -> None:
        method, entered, in_callees = stack.pop()
        sums[method].self_ns += now - entered - in_callees
        if all(method != outer for outer, *_ in stack):
            sums[method].total_ns += now - entered
        if stack:
            stack[-1][2] += now - entered

    for enters, method, ts in events:
        if enters:
            now = max(now, ts)
            sums.setdefault(method, Sums()).enters += 1
            stack.append([method, now, 0])
        elif any(method == open_method for open_method, *_ in stack):
            now = max(now, ts)
            while stack[-1][0] != method:
                leave()
            leave()
    now = max(now, end_ts)
    while stack:
        leave()
    return sums


@examples(150)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(-40, 3000)), max_size=60))
def test_sums_of_a_thread(steps: list[tuple[bool, int, int]]) -> None:
    """steps: whether it enters, the method's number, the time since the event before."""
    log, ts = Log().buffer(), START
    for nth in range(3):
        log.jit(METHODS[nth], f"A:m{nth} ()", ts=START)
    events = []
    for enters, method, dur in [(True, 0, 0), *steps]:
        ts = max(ts + dur, START)
        events.append((enters, method, ts))
        (log.enter if enters else log.leave)(METHODS[method], ts=ts)
    trace = loaded(log, adds_calls=True)
    ((_, thread),) = trace.threads
    totals = thread.load(trace).calls.totals()
    assert totals is not None
    found = {trace.func_name(func): Sums(*numbers) for func, *numbers in totals.tolist()}
    shift = thread.start_ts - START
    wanted = added_up([(enters, method, ts + shift) for enters, method, ts in events], thread.end_ts)
    assert found == {f"A:m{method} ()": sums for method, sums in wanted.items()}
