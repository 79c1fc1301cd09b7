"""Numbers at many places, and callchains that wait for what is recorded later, against NumPy and Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceferry.importers.perf import _fields
from traceferry.importers.perf.fields import numbers_at
from traceferry.importers.perf.tracepoints import Field, decode_field

DATA = np.random.default_rng(5).integers(0, 256, 300, np.uint8)
DEFERRED = (1 << 64) - 640


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from("iu"), st.sampled_from("<>"), st.data())
def test_numbers(size: int, kind: str, order: str, data: st.DataObject) -> None:
    at = data.draw(st.lists(st.integers(0, len(DATA) - size), max_size=50))
    wanted = [int.from_bytes(DATA[p : p + size], "little" if order == "<" else "big", signed=kind == "i") for p in at]
    found = numbers_at(DATA, np.array(at, np.int64), f"{order}{kind}{size}")
    assert found.tolist() == wanted
    assert found.dtype == np.dtype(f"{kind}{size}")


@pytest.mark.parametrize(("at", "size"), [(-1, 1), (300, 1), (293, 8), (0, 3)])
def test_numbers_that_are_not_there(at: int, size: int) -> None:
    with pytest.raises(ValueError, match="numbers"):
        _fields.numbers(DATA, np.array([0, at]), size, False)


@given(
    st.sampled_from([1, 2, 4, 8]), st.sampled_from("<>"), st.integers(0, 40),
    st.lists(st.tuples(st.integers(0, len(DATA) - 48), st.sampled_from([-1, 0, 20, 48])), min_size=1, max_size=30),
    st.data(),
)  # fmt: skip
def test_numbers_in_raw_data(
    size: int, order: str, offset: int, raw: list[tuple[int, int]], data: st.DataObject
) -> None:
    """As a tracepoint's fields are read one by one: 0 where the raw data is too short."""
    rows = np.array(data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=20)), np.int64)
    at, sizes = (np.array(column, kind) for column, kind in zip(zip(*raw, strict=True), ("i8", "i4"), strict=True))
    found = np.empty(len(rows), f"u{size}")
    _fields.read_raw(DATA, at, sizes, rows, offset, order == ">", found)
    wanted = decode_field(Field("f", offset, size, False, "integer"), DATA, at[rows], sizes[rows], order)
    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("row", "at", "offset", "n"),
    [(1, 0, 0, 1), (-1, 0, 0, 1), (0, 299, 0, 1), (0, -2, 1, 1), (0, 0, -1, 1), (0, 0, 0, 2)],
)
def test_raw_data_that_is_not_there(row: int, at: int, offset: int, n: int) -> None:
    with pytest.raises(ValueError, match="read_raw"):
        _fields.read_raw(
            DATA, np.array([at]), np.array([48], np.int32), np.array([row]), offset, False, np.empty(n, np.uint16)
        )


@given(st.lists(st.lists(st.sampled_from([DEFERRED, 1, 2]), max_size=4)))
def test_callchains_that_wait(chains: list[list[int]]) -> None:
    n = [len(chain) for chain in chains]
    start = np.cumsum([0, *n])[:-1].astype(np.int64)
    joined = np.array([value for chain in chains for value in chain], np.uint64)
    found = _fields.deferred(joined, start, np.array(n, np.int32)).tolist()
    assert found == [row for row, chain in enumerate(chains) if chain[-2:-1] == [DEFERRED]]


@pytest.mark.parametrize(("start", "n"), [(-1, 1), (2, 2), (0, -1), (0, 4)])
def test_callchains_outside_the_data(start: int, n: int) -> None:
    with pytest.raises(ValueError, match="deferred"):
        _fields.deferred(np.zeros(3, np.uint64), np.array([start]), np.array([n], np.int32))
