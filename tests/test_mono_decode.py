"""Events of Mono logs against a decoder in plain Python: any numbers, in encodings of any length, cut anywhere."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from builders.mono import Log
from conftest import examples
from hypothesis import given, reject
from hypothesis import strategies as st

from traceferry.files.source import Source
from traceferry.importers.mono import decode
from traceferry.importers.mono._cursor import BUFFER, DAMAGE, STEP, Cursor
from traceferry.importers.mono._log import CallReader, EventReader, SiteReader
from traceferry.importers.mono.events import Layout, program_of
from traceferry.importers.mono.layout import Event
from traceferry.model import Array
from traceferry.native.nodes import NodeTable
from traceferry.timeline.method_table import MethodTable
from traceferry.timeline.running import RunningTotals

MASK, LATEST, UNKNOWN = (1 << 64) - 1, 1 << 62, 0x0B
CALLS = (Event.ENTER, Event.LEAVE, Event.EXC_LEAVE)
KNOWN = frozenset(int(event) for event in Event)
TID, TIME, POINTER, OBJECT, METHOD = 7, 1000, 0x5000, 0x600, 0x7000


class DamagedError(Exception):
    """Says what is wrong in the words of DAMAGE."""


@dataclass
class Plain:
    """Decodes a buffer of data version 17. events: offset, time, first byte and values of each; damage: its words and
    the offset of the damaged event."""

    data: bytes
    at: int = 0
    ts: int = TIME
    method: int = METHOD
    events: list[tuple[int, int, int, list[int]]] = field(default_factory=list)
    damage: tuple[str, int] | None = None

    def decode(self) -> "Plain":
        while self.at < len(self.data) and self.damage is None:
            begin, ts, method = self.at, self.ts, self.method
            try:
                kind = self.byte()
                self.ts = self.ts + self.leb() & MASK
                self.events.append((begin, self.ts, kind, self.values(kind)))
            except DamagedError as error:
                self.ts, self.method, self.damage = ts, method, (str(error), begin)
        return self

    def values(self, kind: int) -> list[int]:
        match kind:
            case Event.ENTER | Event.LEAVE | Event.EXC_LEAVE:
                return [self.next_method()]
            case Event.ALLOC | Event.ALLOC_BT:
                pointer, place = POINTER + self.leb(signed=True) & MASK, (OBJECT + self.leb(signed=True) << 3) & MASK
                values = [pointer, place, self.size()]
                return values + [self.next_method() for _ in range(self.count() if kind == Event.ALLOC_BT else 0)]
            case Event.GC_MOVE:
                return [(OBJECT + self.leb(signed=True) << 3) & MASK for _ in range(self.count())]
            case Event.SYNC_POINT:
                return [self.byte()]
            case Event.HEAP_START:
                return []
        if kind in KNOWN:
            reject()  # an event that this does not decode, where another was cut or began with a wrong byte
        raise DamagedError("an unknown event")

    def next_method(self) -> int:
        self.method = self.method + self.leb(signed=True) & MASK
        return self.method

    def byte(self) -> int:
        if self.at == len(self.data):
            raise DamagedError("the event is truncated")
        self.at += 1
        return self.data[self.at - 1]

    def leb(self, signed: bool = False) -> int:
        value = 0
        for nth in range(10):
            byte = self.byte()
            value |= (byte & 0x7F) << 7 * nth
            if byte < 0x80:
                return (value - (byte & 0x40 and 2 << 7 * nth + 6)) & MASK if signed else value & MASK
        raise DamagedError("a number of more than ten bytes")

    def size(self) -> int:
        value = self.leb()
        return value & 0xFFFFFFFF if value >> 63 else value

    def count(self) -> int:
        if (n := self.size()) > len(self.data) - self.at:
            raise DamagedError("a count larger than the buffer")
        return n


SMALL = st.integers(0, 0x7F).map(lambda value: bytes([value]))
# As writers never would, too: with zeros in front, longer than 64 bits, without an end.
ANY_LENGTH = st.builds(
    lambda head, last: bytes(byte | 0x80 for byte in head) + bytes([last]), st.binary(max_size=10), st.integers(0, 0x7F)
)
NUMBER = st.one_of(SMALL, st.binary(max_size=3).map(lambda head: bytes(b | 0x80 for b in head) + b"\x11"), ANY_LENGTH)
ROUTINE = st.sampled_from([b"\x00", b"\x08", b"\x78", b"\x90\x10", b"\xf0\x6f"])  # methods that come again


def _event(*kinds: int, parts: list[st.SearchStrategy[bytes]]) -> st.SearchStrategy[bytes]:
    return st.builds(lambda kind, *rest: bytes([kind, *b"".join(rest)]), st.sampled_from(kinds), *parts)


def _listed(kind: int, *parts: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    numbers = st.lists(st.one_of(ROUTINE, NUMBER), max_size=9)
    return st.builds(
        lambda head, of: bytes([kind, *head, len(of), *b"".join(of)]), st.tuples(*parts).map(b"".join), numbers
    )


EVENTS = st.one_of(
    _event(*CALLS, parts=[SMALL, ROUTINE]),
    _event(*CALLS, parts=[NUMBER, NUMBER]),
    _event(Event.ALLOC, parts=[NUMBER] * 4),
    _listed(Event.ALLOC_BT, SMALL, SMALL, SMALL, SMALL),
    _listed(Event.ALLOC_BT, *[NUMBER] * 4),
    _listed(Event.GC_MOVE, NUMBER),
    _event(Event.ALLOC_BT, Event.GC_MOVE, parts=[NUMBER] * 5),
    _event(Event.SYNC_POINT, parts=[SMALL, SMALL]),
    _event(Event.HEAP_START, parts=[NUMBER]),
)
# Often enough of them that short calls are read eight bytes at a time, and backtraces found again.
CONTENTS = st.builds(
    lambda events, last, cut: b"".join([*events, *events, last])[: -cut or None],
    st.lists(EVENTS, max_size=30), st.sampled_from([b"", bytes([UNKNOWN, 0])]), st.integers(0, 12),
)  # fmt: skip


def sources(data: bytes) -> tuple[Source, Array]:
    log = Log(17).buffer(TID, time_base=TIME, ptr_base=POINTER, obj_base=OBJECT, method_base=METHOD).raw(data)
    source = Source("app.mlpd", memoryview(log.bytes()))
    return source, decode.find_buffers(source, decode.header_of(source).size)[1]


PROGRAM = program_of(Layout(17, 17, 8))


@examples(100)
@given(CONTENTS, st.sampled_from([0, 40]))
def test_events_are_those_of_plain_python(data: bytes, most: int) -> None:
    wanted = Plain(data).decode()
    source, buffers = sources(data)
    stats = np.zeros(len(buffers), decode.STATS)
    pieces = decode.read(source, buffers, PROGRAM, np.zeros(256, np.int32), stats, most=most)
    found = [
        (int(piece.at[row]), int(piece.ts[row]), int(piece.kind[row]), piece.values(row).tolist())
        for piece in pieces for row in range(len(piece))
    ]  # fmt: skip
    begin = len(source.data) - len(data)
    assert found == [(begin + at, min(ts, LATEST), kind, values) for at, ts, kind, values in wanted.events]
    if data:
        damage = (DAMAGE[int(stats["bad"][0])], int(stats["bad_at"][0]) - begin) if stats["bad"][0] else None
        assert damage == wanted.damage


@examples(100)
@given(CONTENTS)
def test_events_are_counted_as_plain_python_counts(data: bytes) -> None:
    wanted = Plain(data).decode()
    source, _ = sources(data)
    log = decode.read_log(source, adds_calls=True)
    for name, kinds in decode.COUNTED.items():
        assert int(log.stats[name].sum()) == sum(kind in kinds for _, _, kind, _ in wanted.events)
    assert int(log.stats["events"].sum()) == len(wanted.events)
    if wanted.events:
        times = [ts for _, ts, _, _ in wanted.events]
        assert (int(log.stats["first_ts"][0]), int(log.stats["last_ts"][0])) == (min(times), max(times))


def table() -> MethodTable:
    none = np.empty(0, np.uint64)
    return MethodTable(none, none.astype(np.int64), none.astype(np.int32), lambda pointer: pointer & 0xFFFF)


@examples(100)
@given(CONTENTS, st.integers(1, 50), st.sampled_from([1 << 62, 1 << 20]))
def test_calls_are_those_of_plain_python(data: bytes, room: int, max_ts: int) -> None:
    wanted, known, n_ignored = [], set[int](), 0
    for _, ts, kind, values in Plain(data).decode().events:
        if kind in CALLS:
            known |= set(values) if kind == Event.ENTER else set()
            n_ignored += values[0] not in known
            flags = {Event.ENTER: 0, Event.LEAVE: 1, Event.EXC_LEAVE: 5}[Event(kind)]
            wanted += [(min(ts, max_ts) + 3, values[0] & 0xFFFF, flags)] if values[0] in known else []
    source, buffers = sources(data)
    log = decode.read_log(source)
    reader = CallReader(PROGRAM.cursor(source.data, log.buffers), methods := table(), 3, max_ts)
    found, is_done = [], False
    ts, key, frame, flags = (np.empty(room, dtype) for dtype in ("i8", "i4", "i4", "u1"))
    while not is_done:
        n, is_done = reader.read(len(buffers), ts, key, frame, flags)
        assert np.array_equal(methods.frames[key[:n]], frame[:n])
        found += list(zip(ts[:n].tolist(), frame[:n].tolist(), flags[:n].tolist(), strict=True))
    assert (found, reader.n_ignored) == (wanted, n_ignored)


@examples(100)
@given(CONTENTS)
def test_stacks_of_allocations_are_those_of_plain_python(data: bytes) -> None:
    """Its own backtrace, or else the calls that are open."""
    open_calls: list[int] = []
    wanted = []
    for _, ts, kind, values in Plain(data).decode().events:
        if kind == Event.ENTER:
            open_calls += values
        elif kind in CALLS and values[0] in open_calls:
            while open_calls.pop() != values[0]:
                pass
        elif kind in (Event.ALLOC, Event.ALLOC_BT):
            stack = [method & 0xFFFF for method in values[3:] or open_calls]
            size = values[2] - (values[2] >> 63 << 64)
            wanted.append((min(ts, LATEST), values[1], size, stack, values[0] & 0xFFFF))
    source, _ = sources(data)
    log = decode.read_log(source)
    methods, types = table(), table()
    reader = SiteReader(PROGRAM.cursor(source.data, log.buffers, 64), methods, types, np.zeros(256, np.uint8), 1 << 10)
    stacks, pairs = NodeTable(), NodeTable()
    stacks.reserve(1 << 12)
    while not reader.read(len(log.buffers), stacks, pairs):
        pass
    ts, address, size, pair, *_ = reader.found()

    def stack_of(node: int) -> list[int]:
        return [] if node < 0 else [*stack_of(int(stacks.parent[node])), int(stacks.key[node])]

    found = [
        (*row, stack_of(int(pairs.parent[p])), int(types.frames[pairs.key[p]]))
        for *row, p in zip(ts.tolist(), address.tolist(), size.tolist(), pair.tolist(), strict=True)
    ]
    assert found == wanted


# ---------------------------------------------------------------- arrays that do not fit

DATA = memoryview(bytes(64))
ONE = np.array([(0, 64, 0, 0, 0, 0)], BUFFER)
FAILS = PROGRAM.steps[-1:].copy()
REFUSED: dict[str, Callable[[], object]] = {
    "a buffer outside the file": lambda: PROGRAM.cursor(DATA[:63], ONE),
    "a buffer that ends before it begins": lambda: PROGRAM.cursor(DATA, np.array([(9, 8, 0, 0, 0, 0)], BUFFER)),
    "no steps": lambda: Cursor(DATA, ONE, np.empty(0, STEP), PROGRAM.starts, 0),
    "steps without an end": lambda: Cursor(DATA, ONE, PROGRAM.steps[:-1], PROGRAM.starts, 0),
    "steps beyond the array": lambda: Cursor(DATA, ONE, FAILS, PROGRAM.starts, 0),
    "starts that are too few": lambda: Cursor(DATA, ONE, PROGRAM.steps, PROGRAM.starts[1:], 0),
    "a number of lists that is no power of two": lambda: PROGRAM.cursor(DATA, ONE, 3),
    "columns that stats do not have": lambda: EventReader(
        PROGRAM.cursor(DATA, ONE), np.full(256, 13, np.int32), np.zeros((1, 13), np.uint64), RunningTotals(NO_TIDS).sums
    ),
    "too few columns": lambda: EventReader(
        PROGRAM.cursor(DATA, ONE), np.zeros(255, np.int32), np.zeros((1, 13), np.uint64), RunningTotals(NO_TIDS).sums
    ),
    "stats of other buffers": lambda: EventReader(
        PROGRAM.cursor(DATA, ONE), np.zeros(256, np.int32), np.zeros((2, 13), np.uint64), RunningTotals(NO_TIDS).sums
    ),
    "buffers that are not there": lambda: CallReader(PROGRAM.cursor(DATA, ONE), table(), 0, 0).read(2, *columns(9)),
    "columns of different lengths": lambda: CallReader(PROGRAM.cursor(DATA, ONE), table(), 0, 0).read(
        1, *columns(9)[:3], columns(8)[3]
    ),
    "too few flags": lambda: SiteReader(PROGRAM.cursor(DATA, ONE), table(), table(), np.zeros(255, np.uint8), 9),
}
NO_TIDS = np.empty(0, np.uint64)


def columns(n: int) -> tuple[Array, ...]:
    return np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.uint8)


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_arrays_that_do_not_fit_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"Cursor|Reader|Table|Lists"):
        make()
