"""Damaged and incomplete logs: what survives, and what the report says of the rest."""

from collections.abc import Callable
from pathlib import Path

import pytest
from builders.xray import Basic, Fdr, _Log, elf_with_instr_map
from recordings import content, load_checked
from streams import NS, START, fdr, records_of, wall
from support import all_calls, calls_of, data_of, drawn, events_of, kinds, report_of

from traceferry.common.issue_kinds import KINDS
from traceferry.model import Trace, laws

Load = Callable[..., Trace]
BOTH_ORDERS = pytest.mark.parametrize("big", [False, True], ids=["little", "big"])
# What an ordinary log without symbols says too.
USUAL = {"no_symbols"}


def losses(trace: Trace) -> dict[str, int]:
    assert laws.check(trace) == []
    return {kind: count for kind, count in report_of(trace).items() if kind not in USUAL}


def offset_of(trace: Trace, kind: str) -> int | None:
    return next(issue.offset for issue in trace.report if issue.kind == kind)


def test_an_ordinary_log_has_none(load: Load) -> None:
    trace = load(fdr("A B b a", "A a"))
    assert losses(trace) == {}
    assert not trace.report.lossy


def test_every_kind_is_a_sentence() -> None:
    for kind in KINDS.values():
        assert kind.severity in ("info", "loss", "error")
        assert kind.title
        assert not kind.title.endswith(".")


# ---------------------------------------------------------------- files that end early


@BOTH_ORDERS
@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_file_ends_inside_a_record(load: Load, version: int, big: bool) -> None:
    log = fdr("A B b C c a", version=version, big=big, buffer_size=256)
    whole = log.bytes()
    end_of_records = whole.index(log.exit(1, 10)) + 8
    trace = load(whole[: end_of_records - 3])
    assert drawn(trace, data_of(trace, 1)) == "A 0-40 open-at-end\n.B 10-20\n.C 30-40"
    found = losses(trace)
    assert found.pop("pid_unknown", 1) == 1
    assert found == {"truncated": 1, "open_at_end": 1}
    assert trace.report.lossy


@BOTH_ORDERS
def test_file_ends_between_two_records(load: Load, big: bool) -> None:
    log = fdr("A B b a", big=big)
    trace = load(log.bytes()[:-8])
    assert losses(trace) == {"truncated": 1, "open_at_end": 1}
    assert len(all_calls(trace)[0]) == 2


def test_file_ends_in_the_second_buffer(load: Load) -> None:
    whole = fdr((1, "A a"), (2, "B b C c")).bytes()
    trace = load(whole[:-20])
    assert [[call.name for call in calls] for calls in all_calls(trace)] == [["function 1"], ["function 2"]]
    assert losses(trace)["truncated"] == 1


def test_basic_file_ends_inside_a_record(load: Load) -> None:
    whole = Basic().enter(1, 100, 7).enter(2, 200, 7).exit(2, 300, 7).exit(1, 400, 7).bytes()
    trace = load(whole[:-1])
    assert losses(trace) == {"truncated": 1, "open_at_end": 1}
    assert offset_of(trace, "truncated") == len(whole) - 32


@pytest.mark.parametrize("log", [Basic(), Fdr()], ids=["basic", "FDR"])
def test_log_without_records(load: Load, log: _Log) -> None:
    trace = load(log)
    assert losses(trace) == {"log_empty": 1}


@pytest.mark.parametrize(
    ("tid", "pid", "version", "found"),
    [(8, 7, 3, {"main_thread_missing": 1}), (7, 7, 3, {}), (8, 0, 3, {}), (8, 7, 2, {"pid_unknown": 1})],
    ids=["another thread", "the main thread", "no process id", "an old version"],
)
def test_basic_log_without_its_main_thread(load: Load, tid: int, pid: int, version: int, found: dict[str, int]) -> None:
    """Of a program that aborted, or that started basic mode itself, the main thread's records are not written."""
    assert losses(load(Basic(version).enter(1, 100, tid, pid).exit(1, 200, tid, pid))) == found


def nested(n: int) -> list[int]:
    """+1 enters a call, -1 leaves one."""
    return [1] * n + [-1] * n


# Calls of one thread; whether the recorder may have left some out.
DEPTHS = {
    "as many as it records": (nested(64), True),
    "one less": (nested(63), False),
    "one more, as with a larger max_stack_depth": (nested(65), False),
    "each left by an exception": ([1] * 64, True),
    "behind ends of calls that began before": ([-1] * 3 + nested(64), True),
    "one is open from a buffer before, which counts no more": ([1, *nested(1) * 512, *nested(64), -1], True),
    "in all, in two buffers": ([1, *nested(1) * 512, *nested(63), -1], False),
}


@pytest.mark.parametrize(("steps", "is_lost"), DEPTHS.values(), ids=DEPTHS)
def test_basic_mode_leaves_out_what_is_called_in_deep_calls(load: Load, steps: list[int], is_lost: bool) -> None:
    """By default of a thread with 64 open calls (max_stack_depth), counted from each buffer of 1,024 records on."""
    log = Basic()
    for nth, step in enumerate(steps):
        (log.enter if step > 0 else log.exit)(1, 100 + nth, 7)
    assert losses(load(log)).get("calls_too_deep", 0) == is_lost


@pytest.mark.parametrize(("name", "lost"), [("main", 1), ("domain", 0)])
def test_main_that_is_not_instrumented_is_not_missing(tmp_path: Path, name: str, lost: int) -> None:
    program = tmp_path / "app"
    program.write_bytes(elf_with_instr_map([("work", 0x2000, [(0, 0x2000)]), (name, 0x2040, [(0, 0x2040)])], pie=False))
    (tmp_path / "b.xray").write_bytes(Basic().enter(1, 100, 8, 7).exit(1, 200, 8, 7).bytes())
    trace = load_checked(tmp_path / "b.xray", symbols=program)
    assert report_of(trace).get("main_thread_missing", 0) == lost


# ---------------------------------------------------------------- buffers


@BOTH_ORDERS
@pytest.mark.parametrize("n_typed", [1, 2, 5])
def test_typed_events_cut_their_buffers(load: Load, n_typed: int, big: bool) -> None:
    """Section 3: the extents lack 16 bytes for each. The partial record is the end, the next buffer is whole."""
    log = Fdr(frequency=NS, big=big)
    calls = [log.enter(1, 10), log.exit(1, 10)] * 7
    typed = [log.typed(n, b"12345", delta=1) for n in range(n_typed)]
    log.buffer(1, 1, records=[log.new_cpu(0, START), *typed, *calls, log.custom(b"12345678")], cut_extents=True)
    log.buffer(1, 1, records=[log.new_cpu(0, START + 1000), log.enter(2, 0), log.exit(2, 10)])
    trace = load(log)
    data = data_of(trace, 1)
    assert len(events_of(data)["Typed event"]) == n_typed
    names = [call.name for call in calls_of(trace, data)]
    assert names[-1] == "function 2"
    assert 2 <= names.count("function 1") <= 7
    assert losses(trace).keys() & {"cut_record", "maybe_cut"}
    assert trace.report.lossy


def test_a_cut_event_keeps_what_is_there(load: Load) -> None:
    log = Fdr(frequency=NS)
    event = log.custom(b"0123456789", delta=1)
    log.buffer(1, 1, records=[log.new_cpu(0, START), log.enter(1, 0), event[:-4]])
    log.buffer(1, 1, records=[log.new_cpu(0, START + 100), log.exit(1, 0)])
    trace = load(log)
    ((row,),) = events_of(data_of(trace, 1)).values()
    assert (row["data"], row["size"]) == ("012345", 10)
    assert losses(trace) == {"cut_record": 1}
    assert "typed events" in next(i.advice for i in trace.report if i.kind == "cut_record")


@BOTH_ORDERS
@pytest.mark.parametrize("extents", [2**63, 2**64 - 1, 10**6, 2**31])
def test_extents_that_are_too_large(load: Load, extents: int, big: bool) -> None:
    """Another buffer begins before their end: that one is kept."""
    log = Fdr(frequency=NS, big=big)
    log.buffer(1, 1, records=[log.new_cpu(0, START), log.enter(1, 0), log.exit(1, 9)], extents=extents)
    log.buffer(2, 1, records=[log.new_cpu(0, START), log.enter(2, 0), log.exit(2, 9)])
    trace = load(log)
    assert [[call.name for call in calls] for calls in all_calls(trace)] == [["function 1"], ["function 2"]]
    assert laws.check(trace) == []


@BOTH_ORDERS
def test_bytes_between_buffers(load: Load, big: bool) -> None:
    """They are skipped up to the next buffer; the report says where they begin."""
    log = Fdr(frequency=NS, big=big)
    log.buffer(1, 1, records=[log.new_cpu(0, START), log.enter(1, 0), log.exit(1, 9)])
    at = len(log.bytes())
    log.append(b"\x00" * 100)
    log.buffer(2, 1, records=[log.new_cpu(0, START), log.enter(2, 0), log.exit(2, 9)])
    trace = load(log)
    assert len(trace.threads) == 2
    assert losses(trace) == {"bad_buffer": 1}
    assert offset_of(trace, "bad_buffer") == at


@pytest.mark.parametrize("bad", [b"\xff" * 16, b"\x15" + bytes(15), bytes([7 << 1]) + bytes(15)])
def test_unknown_record(load: Load, bad: bytes) -> None:
    """It ends its buffer; later buffers are kept."""
    log = Fdr(frequency=NS)
    records = [log.new_cpu(0, START), log.enter(1, 0), log.exit(1, 9)]
    log.buffer(1, 1, records=[*records, bad, log.enter(3, 0)])
    log.buffer(2, 1, records=records)
    trace = load(log)
    assert [[call.name for call in calls] for calls in all_calls(trace)] == [["function 1"]] * 2
    assert losses(trace) == {"bad_record": 1}
    assert log.bytes()[offset_of(trace, "bad_record") or 0 :].startswith(bad)


def test_event_of_negative_size(load: Load) -> None:
    log = Fdr(frequency=NS)
    log.buffer(1, 1, records=[log.new_cpu(0, START), log.enter(1, 0), log.custom(b"", size=-5), log.exit(1, 9)])
    trace = load(log)
    assert losses(trace) == {"bad_record": 1, "open_at_end": 1}


def test_stale_tail_of_version_1(load: Load) -> None:
    """Behind EndOfBuffer stands what an older buffer left: it looks like records and is none."""
    log = Fdr(1, frequency=NS, buffer_size=1024)
    stale = log.enter(9, 1) + log.exit(9, 1)
    log.buffer(1, records=[log.new_cpu(0, START), log.enter(1, 0), log.exit(1, 9)], stale=stale)
    trace = load(log)
    assert [call.name for call in all_calls(trace)[0]] == ["function 1"]
    assert losses(trace) == {"pid_unknown": 1}


def test_buffer_without_a_thread(load: Load) -> None:
    log = Fdr(frequency=NS)
    log.buffer(1, 1, records=[log.new_cpu(0, START), log.enter(1, 0), log.exit(1, 9)])
    log.buffer(2, 1, records=[log.new_cpu(0, START), log.enter(2, 0), log.exit(2, 9)], omit=["new_buffer"])
    trace = load(log)
    assert len(trace.threads) == 1
    assert losses(trace).keys() & {"empty_buffer", "bad_buffer"}


def test_stray_argument(load: Load) -> None:
    log = Fdr(frequency=NS)
    records = [log.argument(1), log.enter_arg(1, 0), log.argument(2), log.exit(1, 9), log.argument(3)]
    trace = load(log.buffer(1, 1, records=[log.new_cpu(0, START), *records]))
    assert [call.args for call in all_calls(trace)[0]] == [(2,)]
    assert losses(trace) == {"stray_argument": 2}


def test_zero_length_event(load: Load) -> None:
    """Legal for the recorder, though llvm-xray refuses the whole file."""
    log = Fdr(frequency=NS)
    records = [log.enter(1, 0), log.custom(b"", delta=1), log.typed(4, b"", delta=1), log.exit(1, 1)]
    trace = load(log.buffer(1, 1, records=[log.new_cpu(0, START), *records]))
    rows = [row for rows in events_of(data_of(trace, 1)).values() for row in rows]
    assert [(row["data"], row["size"]) for row in rows] == [("", 0), ("", 0)]
    assert losses(trace) == {"maybe_cut": 1}


@pytest.mark.parametrize("version", [3, 4])
def test_event_whose_time_was_never_stored(load: Load, version: int) -> None:
    """Section 3: a pointer bug leaves garbage in its place. The record before it tells where it belongs."""
    log = Fdr(version, frequency=NS)
    event = log.custom(b"when?", tsc=0xAAAA_AAAA_AAAA_AAAA)
    records = [log.new_cpu(0, START), log.enter(1, 10), event, log.exit(1, 10)]
    trace = load(log.buffer(1, 1, records=records))
    ((row,),) = events_of(data_of(trace, 1)).values()
    assert row["ts"] == calls_of(trace, data_of(trace, 1))[0].start
    assert losses(trace) == {"event_time_guessed": 1}


# ---------------------------------------------------------------- several files


def forked() -> tuple[_Log, _Log]:
    """The child's file begins with the buffer that it inherited."""
    parent, child = fdr(), fdr()
    inherited = records_of(parent, "A B b a", START)[0]
    parent.buffer(1, 1, wall(START), inherited)
    child.buffer(1, 1, wall(START), inherited)
    parent.buffer(1, 1, wall(START + 1000), records_of(parent, "C c", START + 1000)[0])
    child.buffer(2, 2, wall(START + 2000), records_of(child, "D d", START + 2000)[0])
    return parent, child


@pytest.mark.parametrize("order", [1, -1], ids=["parent first", "child first"])
def test_buffers_that_a_forked_child_inherited(load: Load, order: int) -> None:
    trace = load(*forked()[::order])
    assert len(trace.threads) == 2
    found = {(p.pid, t.tid): [c.name for c in calls_of(trace, t.load(trace))] for p, t in trace.threads}
    assert found == {(1, 1): ["function 1", "function 2", "function 3"], (2, 2): ["function 4"]}
    assert losses(trace) == {"duplicate_buffer": 1}


def test_either_file_alone_is_whole(load: Load) -> None:
    for log in forked():
        assert losses(load(log)) == {}


def test_files_of_one_machine_are_on_one_clock(load: Load) -> None:
    trace = load(*forked())
    starts = {t.tid: t.start_ts - trace.start_ts for _, t in trace.threads}
    assert starts == {1: 0, 2: 2000}


def test_open_calls_end_with_their_process(load: Load) -> None:
    """Not with the last log: the same job was recorded twice."""
    first = Basic(frequency=NS).enter(1, 100, 7, 7).exit(2, 120, 8, 7).enter(3, 150, 11, 11)
    second = Basic(frequency=NS).enter(1, 10**9, 7, 9).exit(2, 10**9 + 20, 8, 9)
    trace = load(first, second)
    ends = {(p.pid, t.tid): [c.end for c in calls_of(trace, t.load(trace))] for p, t in trace.threads}
    assert ends == {(7, 7): [120], (7, 8): [120], (11, 11): [150], (9, 7): [10**9 + 20], (9, 8): [10**9 + 20]}
    assert {p.pid: p.end_ts for p in trace.processes} == {7: 120, 11: 150, 9: 10**9 + 20}


def test_versions_may_differ(load: Load) -> None:
    trace = load(fdr("A a"), Basic(frequency=NS).enter(1, START, 9, 8).exit(1, START + 5, 9, 8))
    assert laws.check(trace) == []
    assert sorted(t.tid for _, t in trace.threads) == [1, 9]
    assert "clock_unrelated" in kinds(trace.report)


# ---------------------------------------------------------------- the clock


def calibration(frequency_of_header: int, seconds: float = 10.0, real: int = 2_000_000_000) -> Fdr:
    """Two buffers, that far apart by their wall times; the counter really ticks at `real` Hz."""
    log = Fdr(frequency=frequency_of_header)
    for at in (0.0, seconds):
        tick = 10**12 + int(at * real)
        records = [log.new_cpu(0, tick), log.enter(1, 0), log.exit(1, real // 1000)]
        log.buffer(1, 1, (1000 + int(at), round(at % 1 * 10**6)), records)
    return log


CALIBRATED = {
    "right": (2_000_000_000, 10.0, False),
    "half a percent off": (2_010_000_000, 10.0, False),
    "two percent off": (2_040_000_000, 10.0, True),
    "maximum instead of base clock": (3_500_000_000, 10.0, True),
    "ten times too slow": (200_000_000, 10.0, True),
    "too close together to tell": (2_040_000_000, 0.002, False),
}


@pytest.mark.parametrize(("frequency", "seconds", "is_measured"), CALIBRATED.values(), ids=CALIBRATED)
def test_calibration(load: Load, frequency: int, seconds: float, is_measured: bool) -> None:
    trace = load(calibration(frequency, seconds))
    assert losses(trace) == ({"clock_calibrated": 1} if is_measured else {})
    first, _ = all_calls(trace)[0]
    used = 2_000_000_000 if is_measured else frequency
    assert first.end - first.start == pytest.approx(2_000_000 * 10**9 / used, abs=2)
    if is_measured:
        (detail,) = (issue.detail for issue in trace.report if issue.kind == "clock_calibrated")
        assert str(frequency) in detail
        assert "2000000000" in detail


@pytest.mark.parametrize("frequency", [0, 2**64 - 1, 2**40])
def test_unusable_frequency(load: Load, frequency: int) -> None:
    """Ticks are taken for nanoseconds. Detection is strict, so the format is named."""
    log = Fdr(frequency=frequency)
    records = [log.new_cpu(0, START), log.enter(1, 0), log.exit(1, 50)]
    trace = load(log.buffer(1, 1, records=records), format="xray")
    assert losses(trace) == {"clock_frequency_unusable": 1}
    assert drawn(trace, data_of(trace, 1)) == "A 0-50"
    assert trace.report.lossy


@pytest.mark.parametrize("tick", [2**63 - 1, 2**64 - 1, 2**62, 0])
def test_ticks_at_the_limits(load: Load, tick: int) -> None:
    log = Fdr(frequency=1000)
    records = [log.new_cpu(0, tick), log.enter(1, 2**32 - 1), log.exit(1, 2**32 - 1)]
    trace = load(log.buffer(1, 1, records=records), format="xray")
    assert laws.check(trace) == []
    assert len(all_calls(trace)[0]) == 1


# ---------------------------------------------------------------- compressed inputs


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_damaged_compression(load: Load, suffix: str) -> None:
    """What comes before the damage counts."""
    import gzip

    import zstandard

    log = content("fdr-c19-pie-pool.xray")
    packed = gzip.compress(log) if suffix == "gz" else zstandard.compress(log)
    trace = load(packed[: len(packed) * 3 // 4], name=f"app.xray.{suffix}") if suffix == "gz" else None
    if trace is None:
        # A zstd frame of one block gives nothing before its end; two frames give the first.
        packed = zstandard.compress(log[:6000]) + zstandard.compress(log[6000:])
        trace = load(packed[:-9], name="app.xray.zst")
    assert laws.check(trace) == []
    assert "compression_damaged" in kinds(trace.report)
    assert sum(map(len, all_calls(trace))) > 100
