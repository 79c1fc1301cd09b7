"""What the compiled code makes of a jitdump's records and line tables is what a few lines of Python make of them."""

import struct
from collections import Counter

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from traceferry.importers.jitdump._records import LineEntries, loads, scan
from traceferry.symbolication.code_sizes import LineSizes, by_line

REACH = 1 << 30
BASE = 1 << 40
NAMES = [b"", b"\xff", b"a", b"/b.js", b"/b.jsx", b"\xff\xff"]
NEAR = st.integers(BASE - 100, BASE + 100)
EDGES = [BASE - REACH - 1, BASE - REACH, BASE + REACH, BASE + REACH + 1, 0, (1 << 64) - 1, BASE ^ 1 << 63]
NUMBERS = st.integers(0, 90) | st.sampled_from([(1 << 31) - 1, 1 << 31, (1 << 32) - 1])
ENTRIES = st.lists(st.tuples(NEAR | st.sampled_from(EDGES), NUMBERS, NUMBERS, st.sampled_from(NAMES)), max_size=6)
Row = tuple[int, int, int, bytes]


def entries_of(data: bytes, begin: int, end: int, count: int, order: str) -> list[Row]:
    rows: list[Row] = []
    at = begin
    while len(rows) < count and at + 16 < end:
        address, *numbers = struct.unpack_from(order + "QII", data, at)
        name, nul, _ = data[at + 16 : end].partition(b"\0")
        if abs(address - BASE) > REACH or not nul:
            break
        line, column = (number if number < 1 << 31 else 0 for number in numbers)
        rows.append((address - BASE, line, column, rows[-1][3] if rows and name == b"\xff" else name))
        at += 16 + len(name) + 1
    return rows


@examples(300)
@given(st.lists(st.tuples(ENTRIES, st.integers(0, 40), st.integers(0, 8)), max_size=5), st.sampled_from("<>"))
def test_line_entries(records: list[tuple[list[Row], int, int]], order: str) -> None:
    """Records that are cut, claim another number of entries, and point anywhere."""
    data, spans, counts = b"", [], []
    for entries, cut, count in records:
        begin = len(data)
        for address, line, column, name in entries:
            data += struct.pack(order + "QII", address, line, column) + name + b"\0"
        spans.append((begin, max(begin, len(data) - cut)))
        counts.append(min(count, (spans[-1][1] - begin) // 17))
    begins, ends = np.array(spans, np.int64).reshape(-1, 2).T.copy()
    bases = np.full(len(spans), BASE, np.uint64)
    read = LineEntries(memoryview(data), order == ">", begins, ends, np.array(counts, np.int64), bases, REACH)
    names = [data[at : at + size] for at, size in zip(read.run_at, read.run_size, strict=True)]
    columns = (read.offsets.tolist(), read.lines.tolist(), read.columns.tolist())
    rows = list(zip(*columns, [names[run] for run in read.runs], strict=True))
    for nth, (span, count) in enumerate(zip(spans, counts, strict=True)):
        found = rows[read.starts[nth] : read.stops[nth]]
        assert found == entries_of(data, *span, count, order)
        assert read.is_sorted[nth] == (found == sorted(found, key=lambda row: row[0]))


@examples(100)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=60), st.integers(-20, 8)), max_size=6),
    st.sampled_from("<>"),
)
def test_records_and_loads(records: list[tuple[int, bytes, int]], order: str) -> None:
    """Of any bytes; a size that is not the record's ends the walk."""
    data = b"".join(
        struct.pack(order + "IIQ", nth, max(16 + len(body) + (wrong if wrong > 4 else 0), 0), 5) + body
        for nth, body, wrong in records
    )
    wanted, at = [], 0
    while at + 16 <= len(data):
        record_id, size, ts = struct.unpack_from(order + "IIQ", data, at)
        if size < 16 or at + size > len(data):
            break
        wanted.append((record_id, at, size, ts))
        at += size
    columns = scan(memoryview(data), 0, order == ">", 100)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == wanted
    assert [len(column) for column in scan(memoryview(data), 0, order == ">", 2)] == [min(len(wanted), 2)] * 4
    begins, ends = columns[1], columns[1] + columns[2]
    fields = loads(memoryview(data), order == ">", begins, ends)
    assert list(zip(*(column.tolist() for column in fields), strict=True)) == [
        load_of(data[begin:end], begin, order) for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
    ]


def load_of(record: bytes, at: int, order: str) -> tuple[int, int, int, int, int, int, int]:
    if len(record) < 56:
        return 0, 0, 0, 0, 0, -1, -1
    pid, tid, _, address, size, index = struct.unpack_from(order + "IIQQQQ", record, 16)
    end = len(record) - (size if size <= len(record) - 56 else 0)
    name = record[56:end].partition(b"\0")[0]
    return pid, tid, address, size, index, len(name), at + end if size <= len(record) - 56 else -1


ROWS = st.lists(st.tuples(st.integers(-3, 40), st.integers(-1, 2), st.integers(0, 3)), max_size=8)


@examples(200)
@given(st.lists(st.tuples(ROWS.map(sorted), st.integers(0, 30), st.integers(0, 2)), max_size=6))
def test_bytes_of_code_by_line(objects: list[tuple[list[tuple[int, int, int]], int, int]]) -> None:
    found = line_sizes(objects)
    lines = list(zip(found.base.tolist(), found.file.tolist(), found.line.tolist(), strict=True))
    assert len(set(lines)) == len(lines)
    shared = [(record, lines[key]) for record, key in zip(found.record.tolist(), found.key.tolist(), strict=True)]
    wanted: Counter[tuple[int, tuple[int, int, int]]] = Counter()
    for nth, (rows, size, base) in enumerate(objects):
        for byte in range(size):
            file, line = next(((f, n) for offset, f, n in reversed(rows) if offset <= byte), (-1, 0))
            wanted[nth, (base, file, line)] += 1
    assert dict(zip(shared, found.n_bytes.tolist(), strict=True)) == wanted
    assert len(set(shared)) == len(shared)


def line_sizes(objects: list[tuple[list[tuple[int, int, int]], int, int]]) -> LineSizes:
    counts = np.array([len(rows) for rows, _, _ in objects], np.int64)
    ends = np.cumsum(counts)
    begins = ends - counts
    table = np.array([row for rows, _, _ in objects for row in rows], np.int32).reshape(-1, 3)
    sizes = np.array([size for _, size, _ in objects], np.int64)
    bases = np.array([base for _, _, base in objects], np.int32)
    return by_line(begins, ends, sizes, bases, *(np.ascontiguousarray(column) for column in table.T))


def test_more_lines_than_the_table_has_at_first() -> None:
    rows = [(nth, 0, nth) for nth in range(9000)]
    found = line_sizes([(rows[:3000], 9000, 0), (rows, 9001, 0), (rows, 9001, 1)])
    assert len(found.line) == 18_000
    assert found.n_bytes[found.record == 1].tolist() == [1] * 8999 + [2]


def test_arrays_that_do_not_fit_raise_value_error() -> None:
    data, none, one = memoryview(bytes(40)), np.zeros(0, np.int64), np.zeros(1, np.int64)
    base = np.zeros(1, np.uint64)
    with pytest.raises(ValueError, match="invalid start"):
        scan(data, -1, False, 1)
    for begins, ends in ((one, none), (one - 1, one), (one + 1, one), (one, one + 41)):
        with pytest.raises(ValueError, match="record"):
            loads(data, False, begins, ends)
        with pytest.raises(ValueError, match="record"):
            LineEntries(data, False, begins, ends, one, base, REACH)
    for counts, bases, reach in ((none, base, 1), (one, base[:0], 1), (one, base, 1 << 31), (one + 3, base, 1)):
        with pytest.raises(ValueError, match="LineEntries"):
            LineEntries(data, False, one, one + 40, counts, bases, reach)
