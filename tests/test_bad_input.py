"""Any bytes give a valid trace or a FormatError; nothing else escapes, nothing hangs, no count is believed."""

import random
import resource
from pathlib import Path

import pytest
from builders.xray import Basic, Fdr
from conftest import cuts, examples, far_cuts
from hypothesis import given
from hypothesis import strategies as st
from outputs import BUILT
from recordings import content, names
from streams import NS, START, fdr
from support import all_calls, load_checked

import traceferry
from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.model import Trace, TraceBuilder, laws
from traceferry.reading import ImportContext
from traceferry.registry import importer_named

SMALL = names(r"(?!small5m|l100).*\.xray")
quietly = examples(150)


def checked(data: bytes) -> Trace | None:
    """The trace, or None for a FormatError. Straight from memory: writing thousands of files takes longer."""
    trace = TraceBuilder()
    try:
        importer_named("xray").module.read([Source("bad.xray", memoryview(data))]).add_to(trace, ImportContext())
    except FormatError:
        return None
    trace.sort()
    assert laws.check(trace) == []
    return trace


def chosen(data: bytes) -> list[int]:
    """Lengths all around the first records, the rest evenly."""
    return [*cuts(min(len(data), 600), 7), *far_cuts(len(data), 601)]


@pytest.mark.parametrize("name", SMALL)
def test_recordings_cut_anywhere(name: str) -> None:
    """What is in front of the cut is kept: calls never get fewer as the file gets longer."""
    data = content(name)
    for cut in chosen(data):
        trace = checked(data[:cut])
        assert (trace is None) == (cut < 32)


@pytest.mark.parametrize("big", [False, True], ids=["little", "big"])
@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_built_logs_cut_anywhere(version: int, big: bool) -> None:
    log = every_record(version, big)
    before = 0
    for cut in cuts(len(log), 5, 32):
        trace = checked(log[:cut])
        assert trace is not None
        n = sum(len(calls) for calls in all_calls(trace))
        assert n >= before
        before = n
    assert before > 0


def every_record(version: int, big: bool) -> bytes:
    """A short log with a record of each kind, in two buffers."""
    log = Fdr(version, big, NS, buffer_size=320)
    records = [
        log.new_cpu(1, START), log.enter(1, 5), log.enter_arg(2, 5), log.argument(7), log.tsc_wrap(START + 50),
        log.custom(b"event", tsc=START + 55, delta=5), log.typed(3, b"typed", tsc=START + 60, delta=5),
        log.tail_exit(2, 5), log.exit(1, 5),
    ]  # fmt: skip
    log.buffer(1, 1, (1000, 0), records)
    return log.buffer(2, 1, (1000, 0), records[:5]).bytes()


def basic_log(version: int, big: bool) -> bytes:
    log = Basic(version, big, NS).enter(1, START, 7).enter_arg(2, START + 5, 7).argument(2, 7, 0, 9)
    return log.exit(2, START + 9, 7).exit(1, START + 10, 7).enter(1, START, 8).bytes()


def test_basic_logs_cut_anywhere() -> None:
    for version in (1, 2, 3):
        log = basic_log(version, version == 2)
        assert all(checked(log[:cut]) is not None for cut in range(32, len(log) + 1))
        assert all(checked(log[:cut]) is None for cut in range(32))


# ---------------------------------------------------------------- damage at random

WHOLE = [every_record(v, b) for v in (1, 2, 3, 4, 5) for b in (False, True)]
WHOLE += [basic_log(v, b) for v in (1, 2, 3) for b in (False, True)]
WHOLE += [BUILT[name]().bytes() for name in ("gaps", "not_balanced", "arguments_and_events", "two_processes")]
PLACES = st.integers(0, 1 << 16)


@quietly
@given(st.sampled_from(WHOLE), st.lists(st.tuples(PLACES, st.integers(0, 255)), min_size=1, max_size=8))
def test_bytes_changed(log: bytes, changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(log)
    for at, value in changes:
        damaged[at % len(damaged)] = value
    checked(bytes(damaged))


@quietly
@given(st.sampled_from(WHOLE), st.lists(st.tuples(PLACES, st.integers(0, 7)), min_size=1, max_size=8))
def test_bits_flipped_behind_the_header(log: bytes, flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(log)
    for at, bit in flips:
        damaged[32 + at % (len(damaged) - 32)] ^= 1 << bit
    assert checked(bytes(damaged)) is not None


@quietly
@given(st.sampled_from(WHOLE), PLACES, st.binary(min_size=1, max_size=40))
def test_bytes_inserted(log: bytes, at: int, what: bytes) -> None:
    at %= len(log)
    checked(log[:at] + what + log[at:])


@quietly
@given(st.sampled_from(WHOLE), PLACES, st.integers(1, 200))
def test_bytes_removed(log: bytes, at: int, n: int) -> None:
    at %= len(log)
    checked(log[:at] + log[at + n :])


@quietly
@given(st.sampled_from(WHOLE), st.binary(max_size=300))
def test_any_bytes_behind_a_good_header(log: bytes, rest: bytes) -> None:
    assert checked(log[:32] + rest) is not None


@quietly
@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    checked(data)


@quietly
@given(
    st.sampled_from([1, 2, 3, 4, 5]), st.booleans(),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1)), max_size=40),
)  # fmt: skip
def test_records_of_any_content(version: int, big: bool, records: list[tuple[int, int, int]]) -> None:
    """Records in any order with any numbers in them."""
    log = Fdr(version, big, 2_596_142_000, buffer_size=4096)
    makers = [
        lambda a, b: log.enter(a & 0xFFFFFFF, b), lambda a, b: log.exit(a & 7, b), lambda a, b: log.enter(a & 7, b),
        lambda a, b: log.tail_exit(a & 7, b), lambda a, b: log.enter_arg(a & 7, b), lambda a, b: log.argument(a),
        lambda a, b: log.new_cpu(b & 0xFFFF, a), lambda a, b: log.tsc_wrap(a),
        lambda a, b: log.custom(b"x" * (b & 7), tsc=a, delta=(b & 0x7FFFFFFF) - 2**30),
        lambda a, b: log.typed(b & 0xFFFF, b"y" * (b & 7), tsc=a, delta=(b & 0x7FFFFFFF) - 2**30),
        lambda a, b: log.new_buffer(b & 3), lambda a, b: log.pid(b & 3), lambda a, b: log.walltime(a >> 1, b >> 1),
    ]  # fmt: skip
    body = [makers[kind](a, b) for kind, a, b in records]
    assert checked(log.buffer(1, 1, (1000, 0), body).bytes()) is not None


@quietly
@given(st.sampled_from([1, 2, 3]), st.booleans(), st.binary(max_size=320), st.sampled_from([0, 1, 2**40, NS]))
def test_basic_records_of_any_content(version: int, big: bool, rest: bytes, frequency: int) -> None:
    assert checked(Basic(version, big, frequency).append(rest).bytes()) is not None


@pytest.mark.parametrize("name", ["fdr-c19-pie-typed.xray", "fdr-c19-pie-except.xray", "basic-c19-pie-recurse.xray"])
def test_recordings_with_random_damage(name: str) -> None:
    rng = random.Random(20261120)
    data = content(name)
    for _ in range(150):
        damaged = bytearray(data)
        for _ in range(rng.choice([1, 3, 30])):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        checked(bytes(damaged))


@pytest.mark.parametrize("suffix", [".json", ".gecko.json", ".pftrace"])
def test_damaged_logs_are_written_all_the_same(tmp_path: Path, suffix: str) -> None:
    """What laws.check lets through, an exporter writes."""
    rng = random.Random(7)
    for log in WHOLE:
        damaged = bytearray(log)
        for _ in range(3):
            damaged[32 + rng.randrange(len(damaged) - 32)] = rng.randrange(256)
        trace = checked(bytes(damaged))
        assert trace is not None
        traceferry.save(trace, tmp_path / f"out{suffix}")


# ---------------------------------------------------------------- counts that cannot be


@pytest.fixture
def little_memory() -> object:
    """1 GB more than is in use: a count that is believed fails at once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


HUGE = {
    "extents 2^63": lambda log: log.extents(2**63),
    "extents 2^64 - 1": lambda log: log.extents(2**64 - 1),
    "event of 2 GB": lambda log: log.buffer(1, 1, (1, 0), [log.custom(b"", size=2**31 - 1)]) and b"",
    "typed event of 2 GB": lambda log: log.buffer(1, 1, (1, 0), [log.typed(1, b"", size=2**31 - 1)]) and b"",
    "event of -1 bytes": lambda log: log.buffer(1, 1, (1, 0), [log.custom(b"", size=-1)]) and b"",
    "many empty buffers": lambda log: log.extents(0) * 20_000,
}  # fmt: skip


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")
@pytest.mark.parametrize("make", HUGE.values(), ids=HUGE)
def test_huge_counts_do_not_allocate(little_memory: None, make: object) -> None:
    log = Fdr(frequency=NS)
    log.append(make(log))  # type: ignore[operator]
    assert checked(log.bytes()) is not None


@pytest.mark.parametrize("size", [0, 1, 31, 2**63, 2**64 - 1])
def test_buffer_size_of_version_1(little_memory: None, size: int) -> None:
    log = bytearray(fdr("A a", version=1, buffer_size=256).bytes())
    log[16:24] = size.to_bytes(8, "little")
    assert checked(bytes(log)) is not None


@pytest.mark.parametrize("pack", ["gzip", "zstd"])
def test_a_bomb_is_no_recording(tmp_path: Path, pack: str) -> None:
    """Compressed nothing behind a header is read as far as it goes."""
    import gzip

    import zstandard

    data = fdr("A a").bytes() + bytes(1 << 20)
    path = tmp_path / "bomb.xray"
    path.write_bytes(gzip.compress(data) if pack == "gzip" else zstandard.compress(data))
    trace = load_checked(path)
    assert len(all_calls(trace)[0]) == 1
