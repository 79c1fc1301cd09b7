"""Slices within each other, packets, and members of JSON: the kernels equal what a few lines of Python say."""

import json
import re
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pytest
from builders.stacks import varint
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from traceferry.importers.perfetto._members import EventNumbers, has_number_apart, places_of, places_of_thread
from traceferry.importers.perfetto._packets import threads_at, whole_until
from traceferry.importers.perfetto._slices import extent, nested, placed

FIRST, LAST = 5, 40
# track, depth, time, duration
INTS = st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 4), st.integers(0, 50), st.integers(-1, 30)), max_size=40)


ENDS = 0x80


def column(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


@given(INTS, st.integers(-20, 20))
def test_a_slice_is_within_the_trace_and_the_one_that_it_is_in(
    rows: list[tuple[int, int, int, int]], offset: int
) -> None:
    begin = [min(max(ts + offset, FIRST), LAST) for *_, ts, _ in rows]
    end = [LAST if row[3] < 0 else min(ts + row[3], LAST) for ts, row in zip(begin, rows, strict=True)]
    n_moved = 0
    for nth, (track, depth, *_) in enumerate(rows):
        # Of the rows in front, back to the last one on the track that is less deep.
        outer = next((i for i in reversed(range(nth)) if rows[i][0] == track and rows[i][1] < depth), None)
        if track >= 0 and outer is not None and end[nth] > end[outer]:
            end[nth], n_moved = end[outer], n_moved + 1
    track, depth, ts, dur = (column([row[i] for row in rows]) for i in range(4))
    begins, ends, found = placed(ts, dur, track, depth, offset, FIRST, LAST)
    assert found == n_moved
    assert begins.tolist() == begin
    assert ends.tolist() == [max(ts, one) for ts, one in zip(begin, end, strict=True)]


def calls_of(slices: Sequence[Sequence[int]]) -> list[tuple[int, int, bool]]:
    """Returns time, slice and whether it ends there of each call; slices: begin, end."""
    n = len(slices)
    begin, end = (column([one[i] for one in slices]) for i in (0, 1))
    number, flag = np.arange(n, dtype=np.int32), np.arange(n, dtype=np.uint8)
    ts, frame, flags = nested(begin, end, number, flag, flag | np.uint8(ENDS))
    assert (flags % ENDS).tolist() == frame.tolist()
    return list(zip(ts.tolist(), frame.tolist(), (flags >= ENDS).tolist(), strict=True))


@given(st.data())
def test_begins_and_ends_as_they_follow_each_other(data: st.DataObject) -> None:
    expected: list[tuple[int, int, bool]] = []
    slices: list[list[int]] = []
    opened: list[int] = []
    ts = 0
    for enters in data.draw(st.lists(st.booleans(), max_size=40)):
        ts += data.draw(st.integers(1, 3))  # at one time, what ends and begins could be in another order
        if enters:
            opened.append(len(slices))
            slices.append([ts, -1])
            expected.append((ts, opened[-1], False))
        elif opened:
            slices[opened[-1]][1] = ts
            expected.append((ts, opened.pop(), True))
    for row in reversed(opened):
        slices[row][1] = ts + 1
        expected.append((ts + 1, row, True))
    assert calls_of(slices) == expected


TOGETHER = {
    "one ends as the next begins": ([(0, 5), (5, 9)], [(0, 0, False), (5, 0, True), (5, 1, False), (9, 1, True)]),
    "both of one begin and end": ([(0, 5), (0, 5)], [(0, 0, False), (0, 1, False), (5, 1, True), (5, 0, True)]),
}


@pytest.mark.parametrize(("slices", "expected"), TOGETHER.values(), ids=TOGETHER)
def test_at_one_time(slices: list[tuple[int, int]], expected: list[tuple[int, int, bool]]) -> None:
    assert calls_of(slices) == expected


@pytest.mark.parametrize("slices", [[(0, 5), (3, 9)], [(5, 4)]], ids=["overlapping", "ends in front of its begin"])
def test_what_is_not_nested_is_refused(slices: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="without being nested"):
        calls_of(slices)


def test_columns_of_different_lengths() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        nested(column([1]), column([]), *(np.zeros(1, dtype) for dtype in (np.int32, np.uint8, np.uint8)))
    with pytest.raises(ValueError, match="different lengths"):
        extent(column([1]), column([]), column([0]), FIRST, LAST)
    with pytest.raises(ValueError, match="different lengths"):
        placed(*(column([1]),) * 3, column([]), 0, FIRST, LAST)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=9), st.lists(st.integers(0, 8), max_size=9))
def test_the_extent_of_slices(slices: list[tuple[int, int]], rows: list[int]) -> None:
    chosen = [row for row in rows if row < len(slices)]
    begin, end = (column([one[i] for one in slices]) for i in (0, 1))
    wanted = (min([LAST, *(slices[i][0] for i in chosen)]), max([FIRST, *(slices[i][1] for i in chosen)]))
    assert extent(begin, end, column(chosen), LAST, FIRST) == wanted
    with pytest.raises(ValueError, match="no row"):
        extent(begin, end, column([len(slices)]), LAST, FIRST)


# ---------------------------------------------------------------- packets

NUMBERS = st.integers(0, (1 << 64) - 1).map(varint)
FIELDS = st.one_of(
    st.binary(max_size=300).map(lambda packet: b"\x0a" + varint(len(packet)) + packet),
    NUMBERS.map(lambda number: b"\x10" + number),
    st.binary(min_size=8, max_size=8).map(lambda number: b"\x19" + number),
    st.binary(min_size=4, max_size=4).map(lambda number: b"\x25" + number),
)


@examples(300)
@given(st.lists(FIELDS), st.integers(0, 1000))
def test_packets_are_whole_up_to_a_cut(fields: list[bytes], cut: int) -> None:
    ends = [0, *accumulate(map(len, fields))]
    assert whole_until(b"".join(fields)[:cut]) == max(end for end in ends if end <= cut)


@pytest.mark.parametrize("rest", ["0b", "0c", "0e", "0f", "0aff", "0a" + "ff" * 11, "0a" + "ff" * 9 + "7f"])
def test_what_is_no_packet_is_not_whole(rest: str) -> None:
    assert whole_until(b"\x0a\x01a" + bytes.fromhex(rest) + b"ab") == 3


# ---------------------------------------------------------------- threads of JSON

WORDS = st.sampled_from(
    [b'"tid"', b"tid", b'"', b"t", b"i", b"d", b":", b" ", b"\n", b"0", b"1", b"10", b"{", b'"tid":']
)


@examples(300)
@given(st.lists(WORDS, max_size=60).map(b"".join), st.sampled_from([0, 1, 10]), st.integers(0, 8))
def test_members_that_number_a_thread(data: bytes, tid: int, n_most: int) -> None:
    places = re.finditer(rb'(?="tid"[ \t\r\n]*:[ \t\r\n]*([0-9]{1,18}))', data)
    expected = [one.start() for one in places if int(one[1]) == tid]
    assert places_of_thread(data, tid, n_most).tolist() == expected[:n_most]


NUMBERS = st.sampled_from([b'"tid":', b'"pid" : ', b'"', b"pid", b":", b"7", b"123456789", b"0123456789", b"-", b"1e9"])


@given(st.text("ab", max_size=40).map(str.encode), st.text("ab", min_size=1, max_size=4).map(str.encode))
def test_where_a_word_stands(data: bytes, word: bytes) -> None:
    assert places_of(data, word) == [at for at in range(len(data)) if data.startswith(word, at)]


@examples(300)
@given(st.lists(NUMBERS, max_size=30).map(b"".join))
def test_whether_a_number_is_apart(data: bytes) -> None:
    said = re.finditer(rb'(?="[tp]id"[ \t\r\n]*:[ \t\r\n]*([-+.eE0-9]+))', data)
    assert has_number_apart(data) == any(not re.fullmatch(rb"[0-9]{1,9}", one[1]) for one in said)


INTEGERS = st.integers(-(10**18), 10**18)
VALUES = st.one_of(INTEGERS, st.text(max_size=3), st.sampled_from([{"tid": 1}, [{"pid": 2}], '"tid": 3', "\\", 1.5]))
EVENTS = st.lists(st.dictionaries(st.sampled_from(["pid", "tid", "name", "args", "id"]), VALUES), max_size=8)


@examples(200)
@given(EVENTS, st.integers(1, 3), st.sampled_from([None, 1]))
def test_numbers_of_events(events: list[dict[str, object]], n_most: int, indent: int | None) -> None:
    """Those of the events, not those of what is in them."""
    data = json.dumps(events, indent=indent).encode()
    numbers, found = EventNumbers(data + b', "tid": 5', 0), []
    while len((piece := numbers.more(n_most))[0]):
        assert len(piece[0]) <= n_most
        found += [(json.loads(data[begin:end]), value) for begin, end, value in zip(*map(list, piece), strict=True)]
    said = [event[key] for event in events for key in event if key in ("pid", "tid")]
    wanted = [one for one in said if isinstance(one, (int, float))]
    is_short = [isinstance(one, int) and abs(one) < 10**17 for one in wanted]
    assert [one for one, _ in found] == wanted
    assert all(one == value for (one, value), short in zip(found, is_short, strict=True) if short)
    assert all(value == -(1 << 63) for one, value in found if isinstance(one, float))


@pytest.mark.parametrize("field", [44, 60], ids=["thread_descriptor", "track_descriptor"])
def test_the_thread_of_a_packets_sequence(field: int) -> None:
    def message(number: int, content: bytes) -> bytes:
        return varint(number << 3 | 2) + varint(len(content)) + content

    def packet(sequence: int, content: bytes) -> bytes:
        return message(1, content + varint(10 << 3) + varint(sequence))

    def thread(pid: int, tid: int) -> bytes:
        numbers = b"\x08" + varint(pid) + b"\x10" + varint(tid)
        return message(44, numbers) if field == 44 else message(60, b"\x08\x05" + message(4, numbers))

    asks = message(11, b"?")
    data = b"".join([
        packet(1, asks), packet(1, thread(7, 300)), packet(2, thread(7, 8)), packet(1, asks), packet(2, asks),
        packet(1, thread(7, 9)), packet(1, asks),
    ])  # fmt: skip
    places = column([at for at in range(len(data)) if data[at : at + 1] == b"?"])
    wanted = [None, (7, 300), (7, 8), (7, 9)]
    assert threads_at(data, places) == wanted
    assert threads_at(data + b"\xff", np.append(places, len(data))) == [*wanted, None]
    for end in range(len(data)):
        assert all(one in (None, said) for one, said in zip(threads_at(data[:end], places), wanted, strict=True))
