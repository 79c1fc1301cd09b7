"""Any bytes of a Mono log give a valid trace or a FormatError; nothing else escapes, nothing hangs, no count is
believed, and the report says what was lost and where."""

import gzip
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import mono
from builders.mono import BUFFER_HEADER_BYTES, MAIN, Counter, Log, sleb, uleb
from conftest import cuts, examples
from hypothesis import given
from hypothesis import strategies as st
from support import calls_of, data_of, load_checked, report_of, thread_of
from test_builders_mono import everything, named

from traceferry.analysis.info.summary import summarize
from traceferry.common.errors import FormatError
from traceferry.files.output import Output
from traceferry.files.source import Source
from traceferry.importers import mono as importer
from traceferry.model import Trace, TraceBuilder, laws
from traceferry.reading import ImportContext
from traceferry.registry import exporter_named

OTHER = 0x7F20
RUN, WORK, TEXT = 0x500, 0x600, 0x2000
PLACES = st.integers(0, 1 << 16)
quietly = examples(150)


# ---------------------------------------------------------------- logs


def every_event(version: int, pointer_size: int = 8, *, hybrid: bool = False) -> bytes:
    """Every event that the version has, in two buffers of two threads."""
    log, _ = everything(named(Log(version, pointer_size, hybrid=hybrid)).buffer(OTHER))
    return log.bytes()


LAYOUTS = {
    **{f"v{version}": (version, 8, False) for version in (1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 13, 14, 15, 16, 17)},
    "v13 with short pointers": (13, 4, False),
    "v17 with short pointers": (17, 4, False),
    "v15 hybrid": (15, 8, True),
}
WHOLE = {name: every_event(version, size, hybrid=hybrid) for name, (version, size, hybrid) in LAYOUTS.items()}
LOGS = st.sampled_from(list(WHOLE.values()))


def read(data: bytes) -> Trace:
    trace = TraceBuilder()
    importer.read([Source("app.mlpd", memoryview(data))]).add_to(trace, ImportContext())
    trace.sort()
    assert laws.check(trace) == []
    return trace


def checked(data: bytes) -> Trace | None:
    """The trace, or None for a FormatError, which says where."""
    try:
        return read(data)
    except FormatError as caught:
        error = caught
    assert error.offset is not None
    assert 0 <= error.offset <= len(data)
    return None


def header_size(data: bytes) -> int:
    return data.index(b"\x01LPM")


def lines_of(data: bytes) -> list[str]:
    return list(importer.dump(Source("app.mlpd", memoryview(data)), 0))


def whole_events(data: bytes) -> list[str]:
    """What is printed of them."""
    return [line for line in lines_of(data) if line.split(" ")[1] not in ("header", "buffer", "!")]


def issues_of(data: bytes) -> dict[str, tuple[int, int | None, str]]:
    """Kind → (count, offset, detail)"""
    trace = read(data)
    return {i.kind: (i.count, i.offset, i.detail) for i in trace.report if i.severity == "error"}


# ---------------------------------------------------------------- headers

HEADERS: dict[str, tuple[Callable[[bytearray], None], str, int]] = {
    "no magic number": (lambda data: data.__setitem__(0, 2), "the magic number", 0),
    "header version 4": (lambda data: data.__setitem__(4, 4), "header version 4.0 is not supported", 4),
    "data version 0": (lambda data: data.__setitem__(6, 0), "data version 0 is not supported", 6),
    "data version 18": (lambda data: data.__setitem__(6, 18), "data version 18 is not supported", 6),
    "data version 255": (lambda data: data.__setitem__(6, 255), "data version 255 is not supported", 6),
    "pointers of 3 bytes": (lambda data: data.__setitem__(7, 3), "pointers of 3 bytes are not supported", 7),
    "pointers of 0 bytes": (lambda data: data.__setitem__(7, 0), "pointers of 0 bytes are not supported", 7),
}


@pytest.mark.parametrize("what", HEADERS)
def test_a_header_that_is_none(what: str) -> None:
    damage, message, offset = HEADERS[what]
    data = bytearray(WHOLE["v17"])
    damage(data)
    with pytest.raises(FormatError, match=message) as error:
        read(bytes(data))
    assert error.value.offset == offset


@pytest.mark.parametrize("length", [-1, -(1 << 31), 10_000, (1 << 31) - 1])
def test_a_text_of_the_header_that_ends_outside_the_file(length: int) -> None:
    data = bytearray(Log().buffer().gc_resize(1).bytes())
    data[38:42] = length.to_bytes(4, "little", signed=True)
    with pytest.raises(FormatError, match="the file ends inside its header"):
        read(bytes(data))


@pytest.mark.parametrize("version", mono.VERSIONS)
def test_a_header_alone(version: int) -> None:
    trace = read(Log(version).bytes())
    assert trace.threads == []
    assert summarize(trace)["processes"][0]["threads"] == []


# ---------------------------------------------------------------- cuts


@pytest.mark.parametrize("name", WHOLE)
def test_cut_anywhere_whole_events_are_kept(name: str) -> None:
    """And none is changed."""
    data = WHOLE[name]
    events = whole_events(data)
    starts = [int(line.split(" ")[0]) for line in lines_of(data)]
    ends = [next((start for start in starts if start > int(line.split(" ")[0])), len(data)) for line in events]
    for cut in cuts(len(data), 7):
        if cut < header_size(data):
            with pytest.raises(FormatError, match="ends inside its header"):
                lines_of(data[:cut])
        else:
            assert whole_events(data[:cut]) == events[: sum(end <= cut for end in ends)]


@pytest.mark.parametrize("name", ["v1", "v10", "v13", "v15", "v17", "v17 with short pointers"])
def test_cut_anywhere_the_laws_hold(name: str) -> None:
    """And the cut is all that the report complains of."""
    data = WHOLE[name]
    for cut in cuts(len(data), 29):
        assert (checked(data[:cut]) is None) == (cut < header_size(data))
        if cut >= header_size(data):
            assert set(issues_of(data[:cut])) <= {"truncated"}


def test_where_a_cut_log_ends() -> None:
    """The offset is that of the buffer that is cut; a log that ends between two buffers is whole."""
    data = Log().buffer().enter(RUN).leave(RUN).buffer().enter(RUN).leave(RUN).bytes()
    first = header_size(data)
    second = data.index(b"\x01LPM", first + 1)
    assert issues_of(data) == issues_of(data[:second]) == {}
    for cut in range(first + 1, len(data)):
        buffer = first if cut < second else second
        inside = "inside the header of a buffer" if cut < buffer + BUFFER_HEADER_BYTES else ""
        assert issues_of(data[:cut]) == ({} if cut == second else {"truncated": (1, buffer, inside)})


def test_gzip_without_its_end(tmp_path: Path) -> None:
    """As in the log of a killed program: whole events are kept."""
    log = Log().buffer()
    for nth in range(5000):
        log.enter(RUN + 16 * (nth * 7919 % 4096)).leave(RUN + 16 * (nth * 7919 % 4096))
    compressor = zlib.compressobj(wbits=31)
    packed = compressor.compress(log.bytes()) + compressor.flush(zlib.Z_SYNC_FLUSH)
    for data, n_calls in ((packed, 5000), (packed[: len(packed) // 2], 100)):
        (tmp_path / "app.mlpd").write_bytes(data)
        trace = load_checked(tmp_path / "app.mlpd")
        assert len(calls_of(trace, data_of(trace, MAIN))) >= n_calls
        assert report_of(trace)["compression_damaged"] == 1
    (tmp_path / "app.mlpd").write_bytes(gzip.compress(log.bytes()))
    assert "compression_damaged" not in report_of(load_checked(tmp_path / "app.mlpd"))


# ---------------------------------------------------------------- buffers


def three_buffers(**damage: Any) -> tuple[bytes, list[int]]:
    """A log of which the second buffer is damaged; and where its buffers begin. The second has four events, the others
    have two."""
    log = Log().buffer(1).enter(RUN).leave(RUN).buffer(2, **damage)
    starts = [len(Log().bytes()), len(log.bytes()) - BUFFER_HEADER_BYTES]
    log.enter(RUN).enter(WORK).leave(WORK).leave(RUN)
    starts.append(len(log.bytes()))
    return log.buffer(3).enter(RUN).leave(RUN).bytes(), starts


def calls_by_thread(data: bytes) -> dict[int, int]:
    trace = read(data)
    return {thread.tid: len(thread.load(trace).calls) // 2 for _, thread in trace.threads}


def test_a_buffer_that_is_none_is_skipped() -> None:
    data, (_, second, _) = three_buffers(magic=0x4D504C02)
    assert calls_by_thread(data) == {1: 1, 3: 1}
    assert issues_of(data) == {"bad_buffer": (1, second, "")}


@pytest.mark.parametrize("length", [1000, 100_000, (1 << 31) - 1, -1, -(1 << 31)])
def test_a_length_that_leads_nowhere_ends_at_the_next_buffer(length: int) -> None:
    data, (_, second, _) = three_buffers(length=length)
    assert calls_by_thread(data) == {1: 1, 2: 2, 3: 1}
    assert issues_of(data) == {"extents_repaired": (1, second, "")}


@pytest.mark.parametrize("length", [1000, (1 << 31) - 1, -1])
def test_a_length_of_the_last_buffer_that_leads_nowhere(length: int) -> None:
    """What there is of it is read."""
    log = Log().buffer(1).enter(RUN).leave(RUN).buffer(2, length=length)
    start = len(log.bytes()) - BUFFER_HEADER_BYTES
    data = log.enter(RUN).leave(RUN).bytes()
    assert calls_by_thread(data) == {1: 1, 2: 1}
    assert issues_of(data) == {"truncated": (1, start, "")}


def test_a_length_that_is_too_small() -> None:
    """The events that it leaves out are no buffer."""
    whole, (_, second, _) = three_buffers()
    third_event = int(whole_events(whole)[4].split(" ")[0])
    data, _ = three_buffers(length=third_event - second - BUFFER_HEADER_BYTES)
    assert calls_by_thread(data) == {1: 1, 2: 2, 3: 1}
    assert issues_of(data) == {"bad_buffer": (1, third_event, "")}


def test_a_length_that_ends_in_an_event() -> None:
    whole, (_, second, _) = three_buffers()
    second_event = int(whole_events(whole)[3].split(" ")[0])
    data, _ = three_buffers(length=second_event + 1 - second - BUFFER_HEADER_BYTES)
    assert issues_of(data) == {
        "bad_buffer": (1, second_event + 1, ""), "bad_record": (1, second_event, "the event is truncated"),
    }  # fmt: skip
    assert calls_by_thread(data) == {1: 1, 2: 1, 3: 1}


@pytest.mark.parametrize("junk", [b"\0", b"junk", b"\x01LP", bytes(5000)])
def test_junk_between_buffers(junk: bytes) -> None:
    first, second = Log().buffer(1).enter(RUN).leave(RUN), Log().buffer(2).enter(RUN).leave(RUN)
    head, tail = first.bytes(), second.bytes()[len(Log().bytes()) :]
    assert calls_by_thread(head + junk + tail) == {1: 1, 2: 1}
    assert issues_of(head + junk + tail) == {"bad_buffer": (1, len(head), "")}


def test_another_log_behind_the_log() -> None:
    """Its buffers are read, its header is not one."""
    data = Log().buffer(1).enter(RUN).leave(RUN).bytes()
    assert issues_of(data + data) == {"bad_buffer": (1, len(data), "")}
    assert calls_by_thread(data + data) == {1: 2}


# ---------------------------------------------------------------- events

ENDLESS = b"\x80" * 11
# The bytes of an event after its first good bytes; the event's place is that of the first.
BAD_EVENTS = {
    "an unknown type": (b"\x0b\x01", "an unknown event"),
    "an unknown kind of allocation": (b"\x20\x01", "an unknown event"),
    "an unknown kind of collection": (b"\xc1\x01", "an unknown event"),
    "metadata of an unknown kind": (b"\x22\x01\x08\x01", "an unknown event"),
    "an unknown method event": (b"\x53\x01\x01", "an unknown event"),
    "coverage, which version 17 has not": (b"\x09\x01", "an unknown event"),
    "an endless time": (b"\x23" + ENDLESS, "a number of more than ten bytes"),
    "an endless method": (b"\x23\x01" + ENDLESS, "a number of more than ten bytes"),
    "an endless size": (b"\x00\x01\x01\x01" + ENDLESS, "a number of more than ten bytes"),
    "a count of moves": (b"\x31\x01" + uleb(1 << 31), "a count larger than the buffer"),
    "a negative count of moves": (b"\x31\x01" + uleb((1 << 64) - 1), "a count larger than the buffer"),
    "a count of frames": (b"\x10\x01\x01\x01\x01" + uleb(1 << 40), "a count larger than the buffer"),
    "a count of references": (b"\x26\x01\x01\x01\x01\x00" + uleb(1000), "a count larger than the buffer"),
    "a count of roots": (b"\x36\x01" + uleb(1000), "a count larger than the buffer"),
    "a count of addresses": (b"\x07\x01\x01" + uleb(1 << 40), "a count larger than the buffer"),
    "a count of counters": (b"\x37\x01" + uleb(1000), "a count larger than the buffer"),
    "a counter of an unknown type": (b"\x47\x01\x01\x08\x01\x00", "a value of unknown type"),
    "a text without an end": (b"\x02\x01\x05\x01Main", "the event is truncated"),
    "a double that is cut off": (b"\x47\x01\x01\x05\x01\x02\x03", "the event is truncated"),
}


@pytest.mark.parametrize("what", BAD_EVENTS)
@pytest.mark.parametrize("place", ["middle", "end"])
def test_a_bad_event_ends_its_buffer_only(what: str, place: str) -> None:
    event, reason = BAD_EVENTS[what]
    log = Log().buffer(1).enter(RUN).leave(RUN)
    at = len(log.bytes())
    log.raw(event)
    if place == "middle":
        log.buffer(2).enter(RUN).leave(RUN)
    data = log.bytes()
    assert issues_of(data) == {"bad_record": (1, at, reason)}
    assert calls_by_thread(data) == ({1: 1, 2: 1} if place == "middle" else {1: 1})
    assert f"{at} ! {reason}; the rest of the buffer is skipped" in lines_of(data)


@pytest.mark.parametrize("version", mono.VERSIONS)
@pytest.mark.parametrize("first_byte", [0x0B, 0x0F, 0xFF, 0xC1, 0x12, 0x03, 0x24, 0x07 + 0xF0, 0x28])
def test_no_version_has_these_events(version: int, first_byte: int) -> None:
    log = Log(version).buffer(1).enter(RUN).leave(RUN)
    at = len(log.bytes())
    assert issues_of(log.raw(bytes([first_byte]) + bytes(40)).bytes()) == {"bad_record": (1, at, "an unknown event")}


def test_several_bad_events_are_counted() -> None:
    log = Log()
    for _ in range(5):
        log.buffer().enter(RUN).leave(RUN).raw(b"\x0b\x01")
    first = len(Log().buffer().enter(RUN).leave(RUN).bytes())
    assert issues_of(log.bytes()) == {"bad_record": (5, first, "an unknown event")}
    assert calls_by_thread(log.bytes()) == {MAIN: 5}


def test_a_hybrid_log_with_a_bad_event() -> None:
    """It is still told from a plain version 15."""
    log = Log(15, hybrid=True).buffer().class_(TEXT, "App.Node").alloc(TEXT, 0x10000, 32).heap_start()
    log.roots_by_kind([(0x10000, 1, 0)]).heap_object(0x10000, TEXT, 32).heap_end().buffer(OTHER).raw(b"\x0b\x01")
    trace = read(log.bytes())
    assert summarize(trace)["allocations"]["classes"][0]["name"] == "App.Node"


# ---------------------------------------------------------------- damage at random


def changed(data: bytes, changes: list[tuple[int, int]]) -> bytes:
    damaged = bytearray(data)
    for at, value in changes:
        damaged[at % len(damaged)] = value
    return bytes(damaged)


CHANGES = st.lists(st.tuples(PLACES, st.integers(0, 255)), min_size=1, max_size=8)


@quietly
@given(LOGS, CHANGES)
def test_bytes_changed(data: bytes, changes: list[tuple[int, int]]) -> None:
    checked(changed(data, changes))


@quietly
@given(LOGS, st.lists(st.tuples(PLACES, st.integers(0, 7)), min_size=1, max_size=8))
def test_bits_flipped_behind_the_header(data: bytes, flips: list[tuple[int, int]]) -> None:
    damaged, start = bytearray(data), header_size(data)
    for at, bit in flips:
        damaged[start + at % (len(data) - start)] ^= 1 << bit
    read(bytes(damaged))


@quietly
@given(LOGS, PLACES, st.binary(min_size=1, max_size=40))
def test_bytes_inserted(data: bytes, at: int, what: bytes) -> None:
    at %= len(data)
    checked(data[:at] + what + data[at:])


@quietly
@given(LOGS, PLACES, st.integers(1, 200))
def test_bytes_removed(data: bytes, at: int, n: int) -> None:
    at %= len(data)
    checked(data[:at] + data[at + n :])


LIMITS = [0, 1, (1 << 31) - 1, 1 << 31, (1 << 62) + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]


@quietly
@given(LOGS, st.integers(0, 1), st.integers(0, 5), st.sampled_from(LIMITS))
def test_bases_of_a_buffer_at_their_limits(data: bytes, nth: int, field: int, value: int) -> None:
    """Time, pointer, object, thread, method."""
    buffer = data.index(b"\x01LPM", header_size(data) + nth)
    at = buffer + 8 * field
    read(data[: at + 8] + value.to_bytes(8, "little") + data[at + 16 :] if field else data)


@quietly
@given(st.sampled_from(sorted(LAYOUTS)), st.binary(max_size=300))
def test_any_bytes_behind_a_good_header(name: str, rest: bytes) -> None:
    data = WHOLE[name]
    read(data[: header_size(data)] + rest)


@quietly
@given(st.sampled_from(sorted(LAYOUTS)), st.lists(st.binary(max_size=120), min_size=1, max_size=4))
def test_buffers_of_any_bytes(name: str, bodies: list[bytes]) -> None:
    version, size, hybrid = LAYOUTS[name]
    log = Log(version, size, hybrid=hybrid)
    for nth, body in enumerate(bodies):
        log.buffer(nth % 2 + 1).raw(body)
    read(log.bytes())


NUMBERS = st.one_of(
    st.integers(0, 5), st.sampled_from([0x500, 0x2000, 0x10000, *LIMITS]), st.integers(0, (1 << 64) - 1)
)
TIMES = st.one_of(st.integers(0, 50), st.sampled_from(LIMITS))
ROWS = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 3), TIMES, NUMBERS, NUMBERS, NUMBERS), max_size=25)


def add_any(log: Log, kind: int, tid: int, ts: int, a: int, b: int, c: int) -> None:
    log.buffer(tid, time_base=0)
    small = c % (1 << 32)
    events: list[Callable[[], Any]] = [
        lambda: log.enter(a, ts=ts),
        lambda: log.leave(a, ts=ts),
        lambda: log.exc_leave(b, ts=ts),
        lambda: log.jit(a, "f", b, c % (1 << 31), ts=ts),
        lambda: log.class_(a, "C", b, ts=ts).vtable(b, a, ts=ts),
        lambda: log.alloc(a, b, small, ts=ts),
        lambda: log.alloc(a, b, small, [a, b], ts=ts),
        lambda: log.gc_event(c % 12 if c % 12 not in (1, 2, 3, 4) else 0, b % 256, ts=ts),
        lambda: log.gc_move([(a, b), (b, c)], ts=ts),
        lambda: log.gc_resize(c, ts=ts),
        lambda: log.heap_start(ts=ts),
        lambda: log.heap_object(a, b, small, [(8, a), (16, c)], ts=ts),
        lambda: log.heap_end(ts=ts),
        lambda: log.roots_by_address([(a, b), (c, a)], ts=ts),
        lambda: log.root_register(a, b, c % 256, b, "r", ts=ts),
        lambda: log.root_unregister(a, ts=ts),
        lambda: log.sample(tid, [a, b], [a, c], ts=ts),
        lambda: log.throw(a, ts=ts).clause(c % 5, b, 0, a, ts=ts),
        lambda: log.monitor(c % 256, a, [b], ts=ts),
        lambda: log.thread(tid, ts=ts).thread_name(tid, "T", ts=ts).thread_unload(tid, ts=ts),
        lambda: log.counters_desc([Counter(3, "A", a % 6)], ts=ts).counters({3: 0.5 if a % 6 == 5 else b}, ts=ts),
    ]
    events[kind]()


@quietly
@given(ROWS, st.sampled_from([4, 8]))
def test_events_of_any_content(rows: list[Any], pointer_size: int) -> None:
    """In any order, with any numbers in them."""
    log = Log(17, pointer_size)
    for row in rows:
        add_any(log, *row)
    read(log.bytes())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", WHOLE)
def test_lines_of_damaged_logs(name: str, seed: int) -> None:
    rng = random.Random(seed)
    data = WHOLE[name]
    start = header_size(data)
    damaged = changed(data, [(rng.randrange(start, len(data)), rng.randrange(256)) for _ in range(3)])
    assert lines_of(damaged)[0].startswith("0 header ")


# ---------------------------------------------------------------- outputs


class Nowhere:
    def write(self, data: bytes | memoryview) -> None:
        pass


def exported(trace: Trace) -> None:
    """By all exporters: a page holds what those that are not named here write."""
    for name in ("html", "gecko"):
        out = Output(Nowhere(), gzip=False)
        exporter_named(name).writer()(trace, out, lambda _: None)
        out.finish()


@pytest.mark.parametrize("name", WHOLE)
def test_damaged_logs_are_written_all_the_same(name: str) -> None:
    """What laws.check lets through, an exporter writes, and `info` adds up."""
    rng = random.Random(7)
    for _ in range(3):
        data = WHOLE[name]
        trace = checked(changed(data, [(rng.randrange(len(data)), rng.randrange(256)) for _ in range(3)]))
        if trace is not None:
            exported(trace)
            summarize(trace)


@examples(60)
@given(ROWS)
def test_any_events_are_written(rows: list[Any]) -> None:
    log = Log()
    for row in rows:
        add_any(log, *row)
    trace = read(log.bytes())
    exported(trace)
    summarize(trace)


@pytest.mark.parametrize("ts", LIMITS)
def test_times_at_their_limits(ts: int) -> None:
    """Times that no clock reaches are lowered to one, with everything that happened then."""
    log = named(Log()).buffer(OTHER).enter(RUN, ts=ts).alloc(TEXT, 0x10000, 32, ts=ts).throw(0x10000, ts=ts)
    trace = read(log.sample(OTHER, [0x1234], [RUN], ts=ts).gc_resize(1, ts=ts).leave(RUN, ts=ts).bytes())
    assert [call.name for call in calls_of(trace, data_of(trace, OTHER))] == ["App:Run ()"]
    assert thread_of(trace, OTHER).end_ts == min(ts, 1 << 62)
    exported(trace)


# ---------------------------------------------------------------- much of everything


ENTER_ANOTHER = b"\x23\x01" + sleb(16)
LEAVE_THE_SAME = b"\x13\x01\x00"


def test_deep_calls_with_leaves_of_nothing_that_is_open() -> None:
    """A leave is looked for among the open calls: not in all of them, again and again."""
    n = 100_000
    log = Log().buffer(method_base=0x1000).raw(b"\x23\x01\x00" * n + b"\x13\x01\x10")
    trace = read(log.raw(LEAVE_THE_SAME * (10 * n)).throw(0x10000).bytes())
    assert len(data_of(trace, MAIN).calls) == 2 * n
    report = report_of(trace)
    assert (report["leave_without_enter"], report["open_at_end"]) == (10 * n + 1, n)


def test_deep_calls_that_are_left_in_the_wrong_order() -> None:
    """The outermost first: one leave closes all."""
    n = 50_000
    log = Log().buffer(method_base=0x1000).raw(ENTER_ANOTHER * n + b"\x13\x01" + sleb(-16 * (n - 1)))
    trace = read(log.raw(b"\x13\x01\x10" * (n - 1)).bytes())
    report = report_of(trace)
    assert (report["unwound"], report["leave_without_enter"]) == (n - 1, n - 1)


@pytest.mark.parametrize("n", [20_000, pytest.param(1_000_000, marks=pytest.mark.large)])
def test_methods_that_nothing_names(n: int) -> None:
    trace = read(Log().buffer(method_base=0x1000).raw((ENTER_ANOTHER + LEAVE_THE_SAME) * n).bytes())
    assert len(data_of(trace, MAIN).calls) == 2 * n
    assert report_of(trace)["function_without_name"] == n


@pytest.mark.parametrize("n", [20_000, 300_000])
def test_a_list_of_counters_without_names(n: int) -> None:
    """No text in it has an end: it is looked for once."""
    log = Log().buffer().raw(b"\x37\x01" + uleb(n // 7) + b"\x01" * n).buffer(OTHER).enter(RUN).leave(RUN)
    assert issues_of(log.bytes())["bad_record"][2] == "the event is truncated"


def test_many_buffers_with_wrong_lengths() -> None:
    log = Log()
    for _ in range(3000):
        log.buffer(length=(1 << 31) - 1).enter(RUN).leave(RUN)
    assert len(data_of(read(log.bytes()), MAIN).calls) == 6000
    assert issues_of(log.bytes())["extents_repaired"][0] == 2999


def test_many_threads_with_one_event_each() -> None:
    log = Log()
    for tid in range(1, 1001):
        log.buffer(tid).gc_resize(tid)
    assert len(read(log.bytes()).threads) == 1000


def test_a_file_of_beginnings_of_buffers() -> None:
    """Each may be one, none is."""
    data = Log().bytes() + b"\x01LPM" * 30_000
    trace = read(data)
    assert trace.threads == [] or all(len(thread.load(trace).calls) == 0 for _, thread in trace.threads)
