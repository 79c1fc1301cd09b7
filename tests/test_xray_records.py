"""Each record kind, in each version, in both byte orders: what was built is what is loaded."""

from collections.abc import Callable

import pytest
from builders.xray import Basic, Fdr
from support import calls_of, data_of, events_of, report_of, states_of

from traceferry.model import TAIL, Trace, laws

Load = Callable[..., Trace]
BOTH_ORDERS = pytest.mark.parametrize("big", [False, True], ids=["little", "big"])
FDR = pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
BASIC = pytest.mark.parametrize("version", [1, 2, 3])
FREQUENCY = 2_596_142_000
TSC = 3_540_734_399_501
WALL = 1_363_763_755_000


def ns(tick: int, frequency: int = FREQUENCY) -> int:
    return tick * 10**9 // frequency


@pytest.fixture
def one_thread(load: Load) -> Callable[[Fdr, list[bytes]], Trace]:
    """Thread 7 of process 5, on CPU 3 from TSC on, which is WALL on the monotonic clock."""

    def load_records(log: Fdr, records: list[bytes]) -> Trace:
        trace = load(log.buffer(7, 5, (1_363, 763_755), [log.new_cpu(3, TSC), *records]))
        assert laws.check(trace) == []
        return trace

    return load_records


One = Callable[[Fdr, list[bytes]], Trace]


def spans(trace: Trace, tid: int = 7, zero: int = WALL) -> list[tuple[str, int, int, int]]:
    """(name, start, end, depth), in ns from `zero` on."""
    return [(c.name, c.start - zero, c.end - zero, c.depth) for c in calls_of(trace, data_of(trace, tid))]


def since(tick: int, first: int = TSC) -> int:
    return ns(tick) - ns(first)


# ---------------------------------------------------------------- FDR: function records


@BOTH_ORDERS
@FDR
def test_enter_and_exit(one_thread: One, version: int, big: bool) -> None:
    log = Fdr(version, big, FREQUENCY)
    trace = one_thread(log, [log.enter(1, 0), log.enter(2, 77), log.exit(2, 1_000_003), log.exit(1, 2**31 - 1)])
    at = [TSC, TSC + 77, TSC + 77 + 1_000_003, TSC + 77 + 1_000_003 + 2**31 - 1]
    assert spans(trace) == [
        ("function 1", 0, since(at[3]), 0), ("function 2", since(at[1]), since(at[2]), 1),
    ]  # fmt: skip


@BOTH_ORDERS
@FDR
def test_tail_exit(one_thread: One, version: int, big: bool) -> None:
    log = Fdr(version, big, FREQUENCY)
    trace = one_thread(log, [log.enter(1, 0), log.tail_exit(1, 5), log.enter(2, 5), log.exit(2, 5)])
    assert [(c.name, c.depth, c.flags) for c in calls_of(trace, data_of(trace, 7))] == [
        ("function 1", 0, TAIL), ("function 2", 0, 0),
    ]  # fmt: skip


@BOTH_ORDERS
@FDR
@pytest.mark.parametrize("values", [[42], [0, 2**64 - 1], [1, 2, 3, 4]])
def test_arguments(one_thread: One, version: int, big: bool, values: list[int]) -> None:
    """Runtimes up to version 3 write a plain enter in front of them."""
    log = Fdr(version, big, FREQUENCY)
    enter = log.enter if version <= 3 else log.enter_arg
    arguments = [log.argument(value) for value in values]
    trace = one_thread(log, [log.enter(1, 0), enter(2, 1), *arguments, log.exit(2, 9), log.exit(1, 1)])
    assert [(c.name, c.args) for c in calls_of(trace, data_of(trace, 7))] == [
        ("function 1", ()), ("function 2", tuple(values)),
    ]  # fmt: skip


@BOTH_ORDERS
@FDR
def test_largest_function_id(one_thread: One, version: int, big: bool) -> None:
    log = Fdr(version, big, FREQUENCY)
    trace = one_thread(log, [log.enter(2**24 - 1, 0), log.exit(2**24 - 1, 1)])
    assert spans(trace)[0][0] == f"function {2**24 - 1}"
    assert trace.funcs["number"].tolist() == [2**24 - 1]


@BOTH_ORDERS
@FDR
def test_ids_of_shared_objects(one_thread: One, version: int, big: bool) -> None:
    """LLVM 20 and later: object << 24 | function."""
    log = Fdr(version, big, FREQUENCY)
    last = 0xF << 24 | 9
    trace = one_thread(log, [log.enter(1, 0), log.enter(last, 1), log.exit(last, 1), log.exit(1, 1)])
    assert [name for name, *_ in spans(trace)] == ["function 1", "function 9 of object 15"]


# ---------------------------------------------------------------- FDR: time and place


@BOTH_ORDERS
@FDR
def test_new_cpu_is_a_new_base(one_thread: One, version: int, big: bool) -> None:
    log = Fdr(version, big, FREQUENCY)
    later = TSC + 10**12
    trace = one_thread(
        log, [log.enter(1, 11), log.exit(1, 1), log.new_cpu(65535, later), log.enter(2, 0), log.exit(2, 13)]
    )
    assert spans(trace) == [
        ("function 1", since(TSC + 11), since(TSC + 12), 0),
        ("function 2", since(later), since(later + 13), 0),
    ]
    assert [(ts - WALL, *rest) for ts, *rest in states_of(trace, data_of(trace, 7))] == [
        (since(TSC + 11), "CPU", "CPU 3"), (since(later), "CPU", "CPU 65535"),
    ]  # fmt: skip


@BOTH_ORDERS
@FDR
def test_tsc_wrap_is_a_new_base(one_thread: One, version: int, big: bool) -> None:
    log = Fdr(version, big, FREQUENCY)
    later = TSC + 2**33 + 5
    trace = one_thread(log, [log.enter(1, 0), log.tsc_wrap(later), log.exit(1, 3)])
    assert spans(trace) == [("function 1", 0, since(later + 3), 0)]


@BOTH_ORDERS
@FDR
def test_delta_of_32_bits(one_thread: One, version: int, big: bool) -> None:
    """Deltas are unsigned, though the recorder keeps them below 2^31."""
    log = Fdr(version, big, FREQUENCY)
    trace = one_thread(log, [log.enter(1, 0), log.exit(1, 2**32 - 1)])
    assert spans(trace) == [("function 1", 0, since(TSC + 2**32 - 1), 0)]


@BOTH_ORDERS
@FDR
def test_walltime_is_the_monotonic_clock(one_thread: One, version: int, big: bool) -> None:
    log = Fdr(version, big, FREQUENCY)
    trace = one_thread(log, [log.enter(1, 0), log.exit(1, 1)])
    assert trace.clock is not None
    assert trace.clock.kind == "monotonic"
    assert trace.start_ts == 1_363_763_755_000
    assert trace.unix_start_ns is None


@BOTH_ORDERS
@FDR
def test_emulated_tsc_is_unix_time(load: Load, version: int, big: bool) -> None:
    log = Fdr(version, big, 10**9)
    now = 1_795_194_990_297_147_281
    trace = load(log.buffer(7, 5, (1_363, 0), [log.new_cpu(0, now), log.enter(1, 0), log.exit(1, 5)]))
    assert trace.clock is not None
    assert trace.clock.kind == "realtime"
    assert (trace.start_ts, trace.end_ts, trace.unix_start_ns) == (now, now + 5, now)


@BOTH_ORDERS
@FDR
def test_pid_and_tid(one_thread: One, version: int, big: bool) -> None:
    """Before version 3 no pid is recorded: the smallest tid stands for it."""
    log = Fdr(version, big, FREQUENCY)
    trace = one_thread(log, [log.enter(1, 0), log.exit(1, 1)])
    ((process, thread),) = trace.threads
    assert (process.pid, thread.tid) == (5 if version >= 3 else 7, 7)
    assert ("pid_unknown" in report_of(trace)) == (version < 3)


@BOTH_ORDERS
@FDR
def test_several_buffers_of_several_threads(load: Load, version: int, big: bool) -> None:
    log = Fdr(version, big, FREQUENCY)
    for nth in range(3):
        for tid in (7, 8):
            records = [log.new_cpu(tid, TSC + 1000 * nth), log.enter(tid, 0), log.exit(tid, 100)]
            log.buffer(tid, 7, (1_363, 0), records)
    trace = load(log)
    assert laws.check(trace) == []
    for tid in (7, 8):
        assert spans(trace, tid, trace.start_ts) == [
            (f"function {tid}", since(TSC + 1000 * n), since(TSC + 1000 * n + 100), 0) for n in range(3)
        ]


@BOTH_ORDERS
@pytest.mark.parametrize("version", [1, 2])
def test_buffers_without_new_cpu_go_on_with_the_last_time(load: Load, version: int, big: bool) -> None:
    """Section 3: later buffers of a thread may lack it in runtimes of versions 1 and 2."""
    log = Fdr(version, big, FREQUENCY)
    log.buffer(7, 0, (1_363, 0), [log.new_cpu(3, TSC), log.enter(1, 0)])
    log.buffer(7, 0, (1_363, 0), [log.exit(1, 50), log.enter(2, 1), log.exit(2, 1)])
    trace = load(log)
    assert spans(trace, 7, trace.start_ts) == [
        ("function 1", 0, since(TSC + 50), 0), ("function 2", since(TSC + 51), since(TSC + 52), 0),
    ]  # fmt: skip


# ---------------------------------------------------------------- FDR: events

PAYLOADS = [b"x", b"event #0", "grüße".encode(), b"a\tb\n", bytes(range(48)), b"\xff" * 1000, b'{"rpc":0}']
SHOWN = ["x", "event #0", "grüße", "a\tb\n", bytes(range(48)).hex(), "ff" * 1000, '{"rpc":0}']


@BOTH_ORDERS
@FDR
@pytest.mark.parametrize(("payload", "shown"), list(zip(PAYLOADS, SHOWN, strict=True)), ids=range(len(PAYLOADS)))
def test_custom_event(one_thread: One, version: int, big: bool, payload: bytes, shown: str) -> None:
    """Text where it is printable UTF-8, else hex; in version 5 the delta moves the base on, before it does not."""
    log = Fdr(version, big, FREQUENCY)
    event = log.custom(payload, tsc=TSC + 30, delta=20, cpu=3)
    trace = one_thread(log, [log.enter(1, 10), event, log.exit(1, 40)])
    ((row,),) = events_of(data_of(trace, 7)).values()
    assert (row["ts"] - WALL, row["dur"], row["data"], row["size"]) == (since(TSC + 30), 0, shown, len(payload))
    end = TSC + 10 + 20 + 40 if version >= 5 else TSC + 10 + 40
    assert spans(trace) == [("function 1", since(TSC + 10), since(end), 0)]


@BOTH_ORDERS
@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("event_type", [0, 1, 65535])
def test_typed_event(one_thread: One, version: int, big: bool, event_type: int) -> None:
    log = Fdr(version, big, FREQUENCY)
    event = log.typed(event_type, b"payload", tsc=TSC + 30, delta=20)
    trace = one_thread(log, [log.enter(1, 10), event, log.exit(1, 40)])
    ((marker_type, (row,)),) = events_of(data_of(trace, 7)).items()
    assert marker_type == "Typed event"
    assert row["ts"] - WALL == since(TSC + 30)
    assert (event_type, "payload", 7) == tuple(v for k, v in row.items() if k not in ("ts", "dur", "stack", "flow"))


@BOTH_ORDERS
@FDR
def test_records_at_odd_offsets(one_thread: One, version: int, big: bool) -> None:
    """Payloads are not padded."""
    log = Fdr(version, big, FREQUENCY)
    records = [log.enter(1, 0)]
    for size in range(1, 9):
        records += [log.custom(b"o" * size, tsc=TSC + size, delta=1), log.enter(2, 0), log.exit(2, 0)]
    trace = one_thread(log, [*records, log.exit(1, 100)])
    data = data_of(trace, 7)
    (rows,) = events_of(data).values()
    assert [row["data"] for row in rows] == ["o" * size for size in range(1, 9)]
    assert len(calls_of(trace, data)) == 9


@BOTH_ORDERS
@FDR
def test_events_without_calls(one_thread: One, version: int, big: bool) -> None:
    """A thread that only records events is a thread."""
    log = Fdr(version, big, FREQUENCY)
    trace = one_thread(log, [log.custom(b"alone", tsc=TSC + 5, delta=5)])
    ((row,),) = events_of(data_of(trace, 7)).values()
    assert row["data"] == "alone"


# ---------------------------------------------------------------- basic mode


@BOTH_ORDERS
@BASIC
def test_basic_calls(load: Load, version: int, big: bool) -> None:
    """Threads write chunks; before version 3 the pid's place is garbage."""
    log = Basic(version, big, FREQUENCY)
    for tid in (7, 8):
        log.enter(1, TSC, tid, 5, 2).enter(2, TSC + 77, tid, 5, 2)
        log.exit(2, TSC + 1_000_003, tid, 5, 2).exit(1, TSC + 2**34, tid, 5, 2)
    trace = load(log)
    assert laws.check(trace) == []
    assert [(p.pid, t.tid) for p, t in trace.threads] == [(5 if version == 3 else 7, tid) for tid in (7, 8)]
    for tid in (7, 8):
        assert spans(trace, tid, ns(TSC)) == [
            ("function 1", 0, since(TSC + 2**34), 0), ("function 2", since(TSC + 77), since(TSC + 1_000_003), 1),
        ]  # fmt: skip


@BOTH_ORDERS
@pytest.mark.parametrize("version", [2, 3])
def test_basic_tail_exit(load: Load, version: int, big: bool) -> None:
    log = Basic(version, big, FREQUENCY).enter(1, TSC, 7).tail_exit(1, TSC + 5, 7)
    log.enter(2, TSC + 9, 7).exit(2, TSC + 9, 7)
    trace = load(log)
    assert [(c.name, c.depth, c.flags) for c in calls_of(trace, data_of(trace, 7))] == [
        ("function 1", 0, TAIL), ("function 2", 0, 0),
    ]  # fmt: skip


@BOTH_ORDERS
@BASIC
def test_basic_arguments(load: Load, version: int, big: bool) -> None:
    """An argument belongs to its own thread's last entry."""
    log = Basic(version, big, FREQUENCY)
    log.enter_arg(1, TSC, 7, 5).enter_arg(2, TSC, 8, 5).argument(1, 7, 5, 2**64 - 1).argument(2, 8, 5, 3)
    log.exit(1, TSC + 9, 7, 5).exit(2, TSC + 9, 8, 5)
    trace = load(log)
    assert laws.check(trace) == []
    assert [calls_of(trace, data_of(trace, tid))[0].args for tid in (7, 8)] == [(2**64 - 1,), (3,)]


@BOTH_ORDERS
@BASIC
def test_basic_cpus(load: Load, version: int, big: bool) -> None:
    """Each record has its CPU; a state begins where it changes."""
    log = Basic(version, big, FREQUENCY)
    for nth, cpu in enumerate((1, 1, 255, 1)):
        (log.exit if nth % 2 else log.enter)(1, TSC + 1000 * nth, 7, 5, cpu)
    trace = load(log)
    assert [(ts - trace.start_ts, value) for ts, _, value in states_of(trace, data_of(trace, 7))] == [
        (0, "CPU 1"), (since(TSC + 2000), "CPU 255"), (since(TSC + 3000), "CPU 1"),
    ]  # fmt: skip


@BOTH_ORDERS
@BASIC
def test_basic_header(load: Load, version: int, big: bool) -> None:
    """Flag bits beyond the two are garbage there."""
    trace = load(Basic(version, big, FREQUENCY).enter(1, TSC, 7).exit(1, TSC + 1, 7))
    assert trace.inputs[0].version == f"basic {version}"
    assert trace.attributes["tsc_is_constant"] == trace.attributes["tsc_is_nonstop"] == "true"
    assert trace.clock is not None
    assert trace.clock.kind == "tsc"
