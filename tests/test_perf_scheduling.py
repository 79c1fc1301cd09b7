"""perf: when threads ran, waited and could have run, from switches, wakes and what was lost."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from builders.perf_data import PerfData

from traceferry.analysis.info.summary import summarize
from traceferry.analysis.info.text import as_text
from traceferry.files.source import Source
from traceferry.model import PREEMPTED, RUNNABLE, RUNNING, UNKNOWN, WAITING, Table, Trace, TraceBuilder, laws
from traceferry.reading import ImportContext, LoadOptions
from traceferry.registry import importer_named
from traceferry.timeline.off_cpu import GUESSED, durations, off_cpu_event

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


@pytest.mark.parametrize("order", ["<", ">"], ids=["little", "big"])
def test_a_waker_that_has_no_number_any_more(order: str) -> None:
    """The last thread of a process, whose first one has called pthread_exit, wakes the parent after its own end."""
    recorded = Recorded(order).switch(10, IDLE, 0, A).switch(20, A, SLEEP, B)
    recorded.data.sample(PID, -1, START + 50, LIB, [LIB], event=2, fields={"pid": A, "common_pid": B})
    recorded.switch(60, B, DEAD, A)
    assert scheduling(recorded.read(), A)[2:] == [("woken", 50, "S", B), ("runs", 60)]


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


CPU_0_OF_2 = {
    "list": struct.pack("<HHh", 0, 1, 0),
    "mask of 4 bytes": struct.pack("<HHHI", 1, 1, 4, 1),
    "mask of 8 bytes": struct.pack("<HHH4xQ", 1, 1, 8, 1),
    "range": struct.pack("<HBBHH", 2, 0, 0, 0, 0),
}


def partial(recorded: Recorded, cpus: bytes = CPU_0_OF_2["list"]) -> Recorded:
    recorded.data.raw_record(74, payload=cpus).feature(NRCPUS=(2, 2))
    return recorded


@pytest.mark.parametrize("cpus", CPU_0_OF_2.values(), ids=CPU_0_OF_2)
def test_time_on_processors_that_were_not_recorded_is_unknown(cpus: bytes) -> None:
    """perf record -C 0: from 30 to 90 A may have run elsewhere. Law: on, runnable, blocked and unknown are all."""
    recorded = partial(Recorded(), cpus).switch(10, IDLE, 0, A).switch(30, A, SLEEP, B).switch(90, B, PREEMPT, A)
    trace = recorded.switch(95, A, GOES_ON, B).read()
    assert scheduling(trace, A) == [
        ("runs", 10), ("unknown", 30, "S"), ("runs", 90), ("unknown", 95, "R"),
    ]  # fmt: skip
    assert [issue.detail for issue in trace.report if issue.kind == "processors_left_out"] == ["processors 0 of 2"]


@pytest.mark.parametrize(("target", "between"), [
    # It has run here last, so nowhere else since it left; where it ran once it was woken, nothing tells.
    (0, [("waits", 30, "S"), ("unknown", 70, "S", B)]),
    (1, [("unknown", 30, "S"), ("unknown", 70, "S", B)]),
])  # fmt: skip
def test_a_wake_proves_a_wait_on_a_recorded_processor(target: int, between: list[tuple[Any, ...]]) -> None:
    recorded = partial(Recorded()).switch(10, IDLE, 0, A).switch(30, A, SLEEP, B)
    fields = {"pid": A, "target_cpu": target}
    recorded.data.sample(PID, B, START + 70, LIB + 64, [LIB + 64], event=2, fields=fields)
    assert scheduling(recorded.switch(90, B, PREEMPT, A).read(), A)[1:3] == between


@pytest.mark.parametrize("cpus", [
    struct.pack("<HHhh", 0, 2, 0, 1), struct.pack("<HHh", 0, 1, -1), struct.pack("<HBBHH", 2, 1, 0, 0, 0),
    struct.pack("<HBBHH", 2, 0, 0, 0, 1), struct.pack("<HHHI", 1, 1, 4, 3), struct.pack("<HHH", 1, 1, 5),
    struct.pack("<H", 9),
], ids=["list", "any", "range of any", "range", "mask", "mask of no size", "of a new type"])  # fmt: skip
def test_a_recording_of_all_processors(cpus: bytes) -> None:
    trace = partial(Recorded(), cpus).switch(10, IDLE, 0, A).switch(30, A, SLEEP, B).switch(90, B, PREEMPT, A).read()
    assert scheduling(trace, A)[-3:] == [("runs", 10), ("waits", 30, "S"), ("runs", 90)]


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


@pytest.mark.parametrize(("switches", "n_missing"), [
    # It leaves processor 1, of which the recording begins after it left 0.
    ([(10, A, SLEEP, IDLE, 0), (30, IDLE, 0, B, 1), (40, B, SLEEP, IDLE, 1), (50, A, SLEEP, IDLE, 1)], 0),
    ([(5, IDLE, 0, B, 1), (7, B, SLEEP, IDLE, 1), (10, A, SLEEP, IDLE, 0), (50, A, SLEEP, IDLE, 1)], 1),
    # It goes on on processor 1 after the recording of 0 ended.
    ([(10, IDLE, 0, A, 0), (50, IDLE, 0, A, 1)], 0),
    ([(10, IDLE, 0, A, 0), (50, IDLE, 0, A, 1), (60, B, SLEEP, IDLE, 0)], 1),
    # Damaged recordings have numbers for which there is no memory.
    ([(10, IDLE, 0, A, 0), (50, IDLE, 0, A, (1 << 31) - 2), (60, B, SLEEP, IDLE, 0)], 1),
])  # fmt: skip
def test_the_recorder_begins_and_ends_with_one_processor_after_the_other(
    switches: list[tuple[int, int, int, int, int]], n_missing: int
) -> None:
    """What it misses of its own thread then is no switch that the recording lacks."""
    recorded = Recorded()
    for switch in switches:
        recorded.switch(*switch)
    assert sum(issue.count for issue in recorded.read().report if issue.kind == "switch_missing") == n_missing


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


def test_a_child_that_executes_a_program_before_it_is_seen() -> None:
    """What its number did between the fork and the exec is of the same thread."""
    recorded = Recorded().switch(5, IDLE, 0, A)
    recorded.data.fork(20, 20, PID, A, START + 10)
    recorded.switch(30, A, SLEEP, 20)
    recorded.data.comm(20, 20, "ls", START + 40, exec=True)
    recorded.data.sample(20, 20, START + 50, LIB)
    trace = recorded.switch(60, B, SLEEP, A).read()
    assert scheduling(trace, 20) == [("woken", 10), ("runs", 30)]


def test_a_thread_did_not_run_while_its_processor_was_idle() -> None:
    """It leaves first, and nothing tells when it came."""
    recorded = Recorded().switch(5, IDLE, 0, B).switch(20, B, SLEEP, IDLE).wake(60, B, A).switch(70, A, SLEEP, IDLE)
    waits = [("waits", 5), ("runs", 60), ("waits", 70, "S")]
    assert scheduling(recorded.switch(90, IDLE, 0, B).read(), A)[-3:] == waits
    recorded = Recorded().switch(5, IDLE, 0, B).switch(20, B, SLEEP, IDLE).switch(70, A, SLEEP, IDLE)
    assert scheduling(recorded.switch(90, IDLE, 0, B).read(), A) == [("unknown", 5), ("waits", 70, "S")]


# ---------------------------------------------------------------- what the kernel has measured

DELAY = [("char comm[16]", "16s"), ("pid_t pid", "i"), ("u64 delay", "Q")]
RUN = [("char comm[16]", "16s"), ("pid_t pid", "i"), ("u64 runtime", "Q")]
MEASURED = ("sleep", "blocked", "iowait", "wait")
MS = 1_000_000


class Measured(Recorded):
    """Statistics of the scheduler alone, in ms: _sleep, _blocked, _iowait, _wait, _runtime are events 0 to 4."""

    def __init__(self) -> None:
        self.data = PerfData(start=START)
        for nth, name in enumerate((*MEASURED, "runtime")):
            self.data.tracepoint(
                f"sched:sched_stat_{name}",
                400 + nth,
                RUN if name == "runtime" else DELAY,
                "x",
                sample_type=TYPE + "|RAW",
                flags=FLAGS,
            )
        self.data.comm(PID, PID, "app", ts=0).mmap2(PID, PID, LIB, 0x1000, 0, "/nowhere/libx.so", ts=0)
        for tid in (A, B):
            self.data.comm(PID, tid, f"worker-{tid}", ts=0)

    def tell(self, name: str, ts: int, tid: int, amount: int, by: int) -> Measured:
        fields = {"pid": tid, "runtime" if name == "runtime" else "delay": amount * MS}
        nth = (*MEASURED, "runtime").index(name)
        self.data.sample(PID, by, START + ts * MS, LIB + by, [LIB + by], event=nth, fields=fields)
        return self


def in_ms(trace: Trace, tid: int) -> list[tuple[Any, ...]]:
    return [(what, at // MS, *more) for what, at, *more in scheduling(trace, tid)]


def test_measured_waits() -> None:
    told = Measured().tell("runtime", 1, B, 1, B).tell("blocked", 40, A, 30, B).tell("iowait", 40, A, 30, B)
    told.tell("wait", 45, A, 5, A).tell("sleep", 60, B, 4, A).tell("wait", 90, A, 20, A).tell("runtime", 99, B, 3, B)
    trace = told.read()
    waits = [("runs", 1), ("waits", 10, "D"), ("woken", 40, "D", B), ("runs", 45), ("preempted", 70, "R"), ("runs", 90)]
    assert in_ms(trace, A) == waits
    assert in_ms(trace, B) == [("runs", 1), ("waits", 56, "S"), ("woken", 60, "S", A), ("runs", 60)]


def test_a_thread_that_never_waited_where_others_did() -> None:
    trace = Measured().tell("blocked", 40, A, 30, B).tell("runtime", 50, B, 3, B).read()
    assert in_ms(trace, A)[-3:-1] == [("waits", 10, "D"), ("woken", 40, "D", B)]
    other = next(thread for _, thread in trace.threads if thread.tid == B)
    assert len(other.load(trace).scheduling) == 0


def test_measured_runs() -> None:
    """Between them a thread was off, and stood where the run before ended."""
    told = Measured().tell("runtime", 4, A, 3, A).tell("runtime", 8, A, 4, A).tell("runtime", 30, A, 2, B)
    trace = told.tell("runtime", 50, A, 10, A).tell("runtime", 60, B, 1, B).read()
    runs = [("runs", 1), ("waits", 8), ("runs", 28), ("waits", 30), ("runs", 40), ("waits", 50)]
    assert in_ms(trace, A) == runs
    assert [weight // MS for *_, weight in off_cpu(trace, A)][-3:] == [20, 10, 10]
    # The last but one was measured by another thread: its stack is not that of A.
    assert [name for _, name, _ in off_cpu(trace, A)][-3:] == ["libx.so+0x8", "[no stack at the switch]", "libx.so+0x8"]


def test_measured_runs_tell_when_a_thread_went_on() -> None:
    """Switches within the program's own threads do not."""
    recorded = Recorded()
    recorded.data.tracepoint("sched:sched_stat_runtime", 404, RUN, "x", sample_type=TYPE + "|RAW")
    recorded.switch(10 * MS, A, SLEEP, 99)
    fields = {"pid": A, "runtime": 2 * MS}
    recorded.data.sample(PID, A, START + 60 * MS, LIB, [LIB], event=4, fields=fields)
    trace = recorded.switch(60 * MS, A, DISK, 99).switch(70 * MS, B, SLEEP, 99).read()
    assert in_ms(trace, A)[-3:] == [("waits", 10, "S"), ("runs", 58), ("waits", 60, "D")]
    assert [event.unit for event in trace.events if "runtime" in event.name] == ["ns"]


# ---------------------------------------------------------------- as text

LIBC, APP = 0x7F00_0000, 0x80_0000


def where_waits(*chain: int) -> list[str]:
    """The lines of `traceferry info` for a wait with this call chain, as far as they tell where it was."""
    recorded = Recorded()
    recorded.data.mmap2(PID, PID, LIBC, 0x1000, 0, "/usr/lib/libq.so", ts=0)
    recorded.data.mmap2(PID, PID, APP, 0x1000, 0, "/home/me/app", ts=0)
    fields = {"prev_pid": A, "prev_state": SLEEP, "next_pid": B}
    recorded.data.sample(PID, A, START + 10, chain[0], list(chain), event=1, cpu=0, fields=fields)
    trace = recorded.switch(90, B, SLEEP, A).read()
    lines = as_text(summarize(trace)).splitlines()
    return [line.split("  ")[-1] for line in lines if f"worker-{A}" in line and " sleeping " in line]


def test_waits_are_shown_by_what_the_program_called() -> None:
    libc = [LIBC + n for n in range(1, 9)]
    assert where_waits(*libc, APP + 1, APP + 2) == ["libq.so+0x1 < libq.so+0x7 < app+0x0 < app+0x1"]
    assert where_waits(*libc) == ["libq.so+0x1 < libq.so+0x1 < libq.so+0x2 < libq.so+0x3 < libq.so+0x4"]


# ---------------------------------------------------------------- guessed stacks


def guessing(recorded: Recorded, guess: bool) -> Trace:
    trace = TraceBuilder()
    context = ImportContext(LoadOptions(guess_wait_stacks=guess))
    source = Source("perf.data", memoryview(recorded.data.bytes()))
    importer_named("perf").module.read([source]).add_to(trace, context)
    trace.sort()
    assert laws.check(trace) == []
    return trace


def test_guessed_stacks_stand_apart_and_are_counted() -> None:
    recorded = Recorded()
    recorded.data.switch(PID, A, START + 5, out=False)
    for ts, at in ((7, 1), (9, 2)):
        recorded.data.sample(PID, A, START + ts, LIB + at, [LIB + at, LIB + 0x21])
    recorded.data.switch(PID, A, START + 10, out=True).switch(PID, A, START + 40, out=False)
    recorded.data.switch(PID, A, START + 50, out=True).switch(PID, B, START + 60, out=True)
    assert off_cpu_event(guessing(recorded, False)) == -1
    trace = guessing(recorded, True)
    assert off_cpu(trace, A) == [("Blocked", "libx.so+0x2", 30), ("Blocked", "libx.so+0x2", 10)]
    assert {issue.kind: issue.count for issue in trace.report}["stacks_guessed"] == 2
    thread = next(thread for _, thread in trace.threads if thread.tid == A)
    data = thread.load(trace)
    row = off_cpu_event(trace)
    known, stack = data.trace, int(data.other_samples[row]["stack"][0])
    names = []
    while stack >= 0:
        names.append(known.func_name(int(known.frames["func"][known.stacks["frame"][stack]])))
        stack = int(known.stacks["prefix"][stack])
    assert names == ["libx.so+0x2", "libx.so+0x20", GUESSED]


def test_what_is_recorded_is_not_guessed() -> None:
    recorded = Recorded().switch(10, IDLE, 0, A)
    recorded.data.sample(PID, A, START + 12, LIB + 2, [LIB + 2])
    trace = guessing(recorded.switch(30, A, SLEEP, B).switch(50, B, SLEEP, A), True)
    assert ("Sleeping", "libx.so+0x8", 20) in off_cpu(trace, A)
    assert "stacks_guessed" not in {issue.kind for issue in trace.report}


FILTERED = "perf record -e cpu-clock,sched:sched_switch --filter"


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ([*FILTERED.split(), "prev_state > 0"], "--filter 'prev_state > 0'"),
        (["perf", "record", "-e", "sched:*", "--filter=prev_pid == 8", "--filter", "a > 1"],
         "--filter 'prev_pid == 8 && a > 1'"),
        (["perf", "record", "-e", "sched:sched_switch", "-e", "syscalls:sys_enter_write", "--filter", "count > 9"], ""),
        (["perf", "record", "-e", "sched:sched_switch"], ""),
    ],
)  # fmt: skip
def test_the_filter_of_switches(command: list[str], wanted: str) -> None:
    recorded = Recorded().switch(10, B, SLEEP, A)
    recorded.data.feature(CMDLINE=command)
    filtered = [issue for issue in recorded.read().report if issue.kind == "switches_filtered"]
    assert [issue.detail for issue in filtered] == ([wanted] if wanted else [])


def test_switches_that_a_filter_left_tell_of_waits_alone() -> None:
    """What A did from 10 to 90, and B once it was woken, is not recorded."""
    recorded = Recorded().switch(10, B, SLEEP, A).wake(60, A, B).switch(90, A, SLEEP, IDLE)
    recorded.data.feature(CMDLINE=[*FILTERED.split(), "prev_state > 0"]).sample(PID, B, START + 99, LIB)
    trace = recorded.read()
    assert [state[:2] for state in scheduling(trace, A)] == [("unknown", 10), ("waits", 90)]
    assert [state[:2] for state in scheduling(trace, B)] == [("waits", 10), ("unknown", 60)]


def test_records_tell_of_the_switches_that_a_filter_left_out() -> None:
    recorded = Recorded()
    recorded.data.feature(CMDLINE=[*FILTERED.split(), "prev_state > 0"]).switch(PID, A, START + 5, out=False)
    recorded.switch(10, A, SLEEP, B).data.switch(PID, A, START + 11, out=True).switch(PID, A, START + 40, out=False)
    trace = recorded.read()
    assert scheduling(trace, A) == [("runs", 5), ("waits", 10, "S"), ("runs", 40)]
    assert not [issue for issue in trace.report if issue.kind == "switches_filtered"]


@pytest.mark.parametrize(
    ("top", "tids", "rest"), [(2, [A, B], []), (1, [B], ["1 more thread: 20ns on a CPU, 40ns blocked"])]
)
def test_the_times_of_so_many_threads_are_printed(top: int, tids: list[int], rest: list[str]) -> None:
    recorded = Recorded().switch(20, A, SLEEP, B).switch(60, B, SLEEP, A)
    recorded.data.sample(PID, A, START, LIB, cpu=0)
    recorded.data.sample(PID, B, START + 60, LIB, cpu=0)
    lines = as_text(summarize(recorded.read()), top=top).splitlines()
    begin = lines.index("time of threads:")
    table = lines[begin + 2 : lines.index("", begin)]
    assert [int(line.split()[-1]) for line in table if "worker" in line] == tids
    assert [line.strip() for line in table if "worker" not in line] == rest
