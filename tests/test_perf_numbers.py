"""Numbers at many places, and callchains that wait for what is recorded later, against NumPy and Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceferry.importers.perf import _fields
from traceferry.importers.perf.fields import numbers_at
from traceferry.importers.perf.tracepoints import Field, decode_field, decode_integers

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
    st.lists(st.tuples(st.sampled_from([1, 2, 4, 8]), st.booleans(), st.integers(0, 40)), min_size=1, max_size=4),
    st.sampled_from("<>"), st.lists(st.integers(0, len(DATA) - 48), max_size=20), st.integers(0, 60),
)  # fmt: skip
def test_integers_of_tracepoints(
    declared: list[tuple[int, bool, int]], order: str, places: list[int], shortest: int
) -> None:
    fields = [Field(f"f{nth}", at, size, signed, "integer", False) for nth, (size, signed, at) in enumerate(declared)]
    at, sizes = np.array(places, np.int64), np.array([48, shortest] * len(places), np.int64)[: len(places)]
    together = decode_integers(fields, DATA, at, sizes, order)
    apart = [decode_field(field, DATA, at, sizes, order) for field in fields]
    assert [(column.dtype, column.tolist()) for column in together] == [(one.dtype, one.tolist()) for one in apart]


@pytest.mark.parametrize(("at", "offset", "size"), [(-1, 0, 1), (299, 1, 1), (290, 3, 8), (0, -1, 1), (0, 0, 3)])
def test_fields_that_are_not_there(at: int, offset: int, size: int) -> None:
    with pytest.raises(ValueError, match="fields"):
        _fields.fields(DATA, np.array([at]), np.array([offset]), np.array([size]), False)


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
