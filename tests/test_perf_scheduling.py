"""perf: when threads ran, waited and could have run, from switches, wakes and what was lost."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from builders.perf_data import PerfData
from recordings import SHARED
from support import load_checked

from traceferry.files.source import Source
from traceferry.model import PREEMPTED, RUNNABLE, RUNNING, UNKNOWN, WAITING, Table, Trace, TraceBuilder, laws
from traceferry.reading import ImportContext
from traceferry.registry import importer_named
from traceferry.timeline.off_cpu import durations

START = 100_000_000_000
A, B, IDLE = 8, 9, 0
PID = 7
LIB = 0x40_0000
TYPE = "IDENTIFIER|IP|TID|TIME|CALLCHAIN|CPU|PERIOD"
FLAGS = "disabled inherit mmap comm task sample_id_all mmap2 comm_exec context_switch"
WAKING = [("char comm[16]", "16s"), ("pid_t pid", "i"), ("int prio", "i"), ("int target_cpu", "i")]
STATES = '"%s", { 0x01, "S" }, { 0x02, "D" }, { 0x04, "T" }, { 0x10, "X" }, { 0x20, "Z" }, { 0x80, "I" }'
SLEEP, DISK, DEAD, GOES_ON, PREEMPT = 1, 2, 0x10, 0, 0x100
NAMES = {WAITING: "waits", RUNNING: "runs", PREEMPTED: "preempted", RUNNABLE: "woken", UNKNOWN: "unknown"}


class Recorded:
    """cpu-clock is event 0, sched_switch 1, sched_waking 2, context-switches 3."""

    def __init__(self, order: str = "<") -> None:
        self.data = PerfData(order, start=START).event(sample_type=TYPE, freq=997, flags=FLAGS)
        self.data.tracepoint(print_fmt=STATES, sample_type=TYPE + "|RAW")
        self.data.tracepoint("sched:sched_waking", 317, WAKING, "x", sample_type=TYPE + "|RAW")
        self.data.event("context-switches", config=3, sample_type=TYPE, period=1)
        self.data.comm(PID, PID, "app", ts=0).mmap2(PID, PID, LIB, 0x1000, 0, "/nowhere/libx.so", ts=0)
        for tid in (A, B):
            self.data.comm(PID, tid, f"worker-{tid}", ts=0)

    def switch(self, ts: int, prev: int, state: int, after: int, cpu: int = 0) -> Recorded:
        fields = {"prev_pid": prev, "prev_state": state, "next_pid": after}
        pid = PID if prev else 0
        self.data.sample(pid, prev, START + ts, LIB + prev, [LIB + prev], event=1, cpu=cpu, fields=fields)
        return self

    def wake(self, ts: int, waker: int, tid: int, flags: int = 0) -> Recorded:
        fields = {"pid": tid, "common_flags": flags}
        self.data.sample(PID, waker, START + ts, LIB + 64, [LIB + 64], event=2, fields=fields)
        return self

    def read(self) -> Trace:
        trace = TraceBuilder()
        importer_named("perf").module.read([Source("perf.data", memoryview(self.data.bytes()))]).add_to(
            trace, ImportContext()
        )
        trace.sort()
        assert laws.check(trace) == []
        return trace


def scheduling(trace: Trace, tid: int) -> list[tuple[Any, ...]]:
    """(state, when), and the reason, the waker, where they are known."""
    thread = next(thread for _, thread in trace.threads if thread.tid == tid)
    data = thread.load(trace)
    rows = data.scheduling
    assert sum(durations(rows, thread.end_ts)) == thread.end_ts - thread.start_ts
    found = []
    for ts, state, reason, waker in zip(
        *(rows[name].tolist() for name in ("ts", "state", "reason", "waker")), strict=True
    ):
        more = ([data.trace.strings[reason]] if reason >= 0 else []) + ([waker] if waker >= 0 else [])
        found.append((NAMES[state], ts - START, *more))
    return found


def off_cpu(trace: Trace, tid: int) -> list[tuple[str, str, int]]:
    """(category and function of the leaf, ns)"""
    thread = next(thread for _, thread in trace.threads if thread.tid == tid)
    data = thread.load(trace)
    row = next(nth for nth, event in enumerate(trace.events) if event.kind == "off-cpu")
    samples, known = (data.samples if row == 0 else data.other_samples.get(row, Table(data.samples.spec))), data.trace
    found = []
    for stack, weight in zip(samples["stack"].tolist(), samples["weight"].tolist(), strict=True):
        frame = int(known.stacks["frame"][stack])
        category = known.strings[int(known.categories["name"][known.frames["category"][frame]])]
        found.append((category, known.func_name(int(known.frames["func"][frame])), weight))
    return found


@pytest.mark.parametrize("order", ["<", ">"], ids=["little", "big"])
def test_a_wait_with_its_waker(order: str) -> None:
    recorded = Recorded(order).switch(10, IDLE, 0, A).switch(30, A, SLEEP, B).wake(70, B, A).switch(90, B, PREEMPT, A)
    trace = recorded.switch(100, A, DISK, IDLE).read()
    a = [("waits", 10 - 10), ("runs", 10), ("waits", 30, "S"), ("woken", 70, "S", B), ("runs", 90), ("waits", 100, "D")]
    assert scheduling(trace, A)[-5:] == a[-5:]
    assert scheduling(trace, B)[-2:] == [("runs", 30), ("preempted", 90, "R")]
    assert off_cpu(trace, A) == [("Sleeping", "libx.so+0x8", 40), ("Runnable", "libx.so+0x8", 20)]
    assert off_cpu(trace, B)[-1] == ("Preempted", "libx.so+0x9", 10)


def test_an_interrupt_is_no_waker() -> None:
    recorded = Recorded().switch(10, IDLE, 0, A).switch(20, A, SLEEP, B).wake(50, B, A, flags=0x08)
    assert scheduling(recorded.switch(60, B, SLEEP, A).read(), A)[2:] == [("woken", 50, "S"), ("runs", 60)]


def test_records_and_tracepoints_tell_of_one_switch() -> None:
    """The record comes a little later."""
    recorded = Recorded()
    recorded.data.switch(PID, A, START + 5, out=False)
    recorded.switch(10, A, SLEEP, B).data.switch(PID, A, START + 11, out=True)
    recorded.data.switch(PID, A, START + 40, out=False)
    found = scheduling(recorded.read(), A)
    assert found == [("runs", 5), ("waits", 10, "S"), ("runs", 40)]


def test_the_stack_is_of_the_counter_where_records_have_none() -> None:
    recorded = Recorded()
    recorded.data.switch(PID, A, START + 5, out=False)
    recorded.data.sample(PID, A, START + 10, LIB + 3, [LIB + 3], event=3).switch(PID, A, START + 11, out=True)
    recorded.data.switch(PID, A, START + 40, out=False).sample(PID, A, START + 41, LIB)
    trace = recorded.read()
    assert scheduling(trace, A) == [("runs", 5), ("waits", 11), ("runs", 40)]
    assert off_cpu(trace, A) == [("Blocked", "libx.so+0x3", 29)]


def test_records_alone_have_no_stacks() -> None:
    recorded = Recorded()
    for ts, out in ((5, False), (10, True), (40, False)):
        recorded.data.switch(PID, A, START + ts, out=out)
    trace = recorded.read()
    assert [event.kind for event in trace.events if event.kind == "off-cpu"] == []
    assert [row for row in scheduling(trace, A) if row[1] >= 10] == [("waits", 10), ("runs", 40)]


def test_a_thread_is_not_told_to_go_on() -> None:
    """The tracepoint in threads of the program alone: a wait ends with what shows that the thread ran."""
    recorded = Recorded().switch(10, A, SLEEP, 99)
    recorded.data.sample(PID, A, START + 50, LIB)
    recorded.switch(60, A, DISK, 99).switch(80, A, SLEEP, 99)
    trace = recorded.read()
    waits = [("waits", 10, "S"), ("runs", 50), ("waits", 60, "D"), ("waits", 80, "S")]
    assert [row for row in scheduling(trace, A) if row[1] >= 10] == waits
    assert [issue.count for issue in trace.report if issue.kind == "wait_ends_late"] == [2]
    thread = next(thread for _, thread in trace.threads if thread.tid == A)
    assert set(thread.load(trace).samples["cpu_ns"].tolist()) == {-1}


def test_a_processor_that_was_idle() -> None:
    """Not every kernel tells that the idle thread leaves: what is woken there runs at once."""
    recorded = (
        Recorded().switch(5, IDLE, 0, B, cpu=1).switch(10, A, SLEEP, IDLE).wake(40, B, A).switch(60, A, SLEEP, IDLE)
    )
    found = scheduling(recorded.switch(70, B, SLEEP, IDLE, cpu=1).read(), A)
    assert found[-4:] == [("waits", 10, "S"), ("woken", 40, "S", B), ("runs", 40), ("waits", 60, "S")]


def test_what_was_lost_is_unknown() -> None:
    """From the last record of the processor to the one that tells of the loss."""
    recorded = Recorded().switch(5, IDLE, 0, A).switch(10, A, SLEEP, B)
    recorded.data.sample(PID, B, START + 20, LIB).lost(3, ts=START + 30)
    trace = recorded.switch(50, B, SLEEP, A).read()
    unknown = [("waits", 10, "S"), ("unknown", 20, "S"), ("waits", 30, "S"), ("runs", 50)]
    assert scheduling(trace, A)[-4:] == unknown
    assert scheduling(trace, B)[-4:] == [("runs", 10), ("unknown", 20), ("runs", 30), ("waits", 50, "S")]
    assert [weight for *_, weight in off_cpu(trace, A)] == [10, 20]


def test_a_missing_switch_is_unknown() -> None:
    recorded = Recorded()
    for ts, out in ((5, False), (10, True), (40, True), (50, False)):
        recorded.data.switch(PID, A, START + ts, out=out)
    trace = recorded.read()
    assert scheduling(trace, A) == [("runs", 5), ("unknown", 10), ("waits", 40), ("runs", 50)]
    assert [issue.count for issue in trace.report if issue.kind == "switch_missing"] == [1]


def test_the_dead_do_not_wait() -> None:
    recorded = Recorded().switch(5, IDLE, 0, A).switch(10, A, DEAD, B).switch(50, B, SLEEP, IDLE)
    assert off_cpu(recorded.read(), A) == []


def test_numbers_of_another_namespace() -> None:
    """Tracepoints call threads as the first pid namespace does, samples as the recorder's."""
    recorded = Recorded()
    for ts, (own, there), state, after in (
        (10, (A, 1008), SLEEP, 1009),
        (40, (B, 1009), SLEEP, 1008),
        (50, (A, 1008), DISK, 1),
    ):
        fields = {"prev_pid": there, "common_pid": there, "prev_state": state, "next_pid": after}
        recorded.data.sample(PID, own, START + ts, LIB, [LIB], event=1, fields=fields)
    assert scheduling(recorded.read(), A)[-3:] == [("waits", 10, "S"), ("runs", 40), ("waits", 50, "D")]


def test_a_range_has_its_part_of_the_waits() -> None:
    recorded = Recorded().switch(5, IDLE, 0, A).switch(10, A, SLEEP, B).switch(50, B, SLEEP, A).switch(90, A, SLEEP, B)
    from traceferry.timeline.select import select_range

    part = select_range(recorded.read(), START + 20, START + 30)
    assert off_cpu(part, A) == [("Sleeping", "libx.so+0x8", 10)]


# ---------------------------------------------------------------- perf itself

ROW = re.compile(r"\s*(\d+\.\d+) \[(\d+)\]\s+(.*?)\[(\d+)(?:/\d+)?\]\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)")
PROGRAM = """
import os, threading, time
def work(n):
    for _ in range(n):
        sum(range(20000)); time.sleep(0.0005)
threads = [threading.Thread(target=work, args=(20,)) for _ in range(3)]
[one.start() for one in threads]
[one.join() for one in threads]
"""


@pytest.mark.skipif(shutil.which("perf") is None or os.name != "posix" or os.getuid() != 0, reason="perf, as root")
def test_waits_are_those_of_timehist(tmp_path: Path) -> None:
    """Between two switches that both tell of, perf sched timehist has the same times, to its microsecond."""
    data = tmp_path / "perf.data"
    command = ["perf", "record", "-q", "-a", "-m", "2M", "-k", "CLOCK_MONOTONIC", "-o", str(data)]
    command += ["-e", "sched:sched_switch,sched:sched_waking", "--", "taskset", "1", "python3", "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode or not data.exists():
        pytest.skip(f"perf records no tracepoints here: {done.stderr[:100]}")
    printed = subprocess.run(
        ["perf", "sched", "timehist", "-i", str(data)], capture_output=True, text=True, timeout=60, check=False
    ).stdout
    theirs = {(int(m[4]), m[1]): (float(m[5]), float(m[7])) for line in printed.splitlines() if (m := ROW.match(line))}
    n_same = n_other = 0
    trace = load_checked(data)
    for _, thread in trace.threads:
        rows = thread.load(trace).scheduling
        ts, state = rows["ts"].tolist(), rows["state"].tolist()
        left = went_on = None
        for at, what in zip(ts, state, strict=True):
            if what == RUNNING:
                went_on = at
            elif what in (WAITING, PREEMPTED) and went_on is not None:
                found = theirs.get((thread.tid, f"{at // 1000 / 1e6:.6f}"))
                if left is not None and found is not None:
                    same = (
                        abs((went_on - left) / 1e6 - found[0]) < 0.0021
                        and abs((at - went_on) / 1e6 - found[1]) < 0.0021
                    )
                    n_same, n_other = n_same + same, n_other + (not same)
                left, went_on = at, None
    # timehist takes a switch that the kernel does not tell of, of the idle thread, for none.
    assert n_same > 2 * n_other


def test_the_capture_has_all_its_waits() -> None:
    folder = SHARED / "captures" / "perf-events"
    if not folder.exists():
        pytest.skip("the captures are not here")
    trace = load_checked(folder / "sched.data.zst")
    left_out = [issue.count for issue in trace.report if issue.kind == "switches_left_out"]
    assert left_out == [473]
    for _, thread in trace.threads:
        rows = thread.load(trace).scheduling
        assert sum(durations(rows, thread.end_ts)) == thread.end_ts - thread.start_ts
