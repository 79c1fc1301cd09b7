"""Answers as Arrow's arrays, for Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from traceferry.common.errors import UsageError
from traceferry.model import Array
from traceferry.trace_processor import _cells
from traceferry.trace_processor.results import BLOB, FLOAT, INTEGER, NULL, STRING, Batch, Rows

KINDS = {INTEGER: "integers", FLOAT: "numbers", STRING: "texts", BLOB: "blobs"}
# Above, not every integer is a float64.
EXACT = 1 << 53


def use_arrow() -> None:
    """Raises UsageError where pyarrow is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise UsageError("Parquet needs pyarrow: pip install 'traceferry[fleet]'") from None


def schema_of(names: Sequence[str], rows: Rows) -> Any:
    """Returns the columns' types: of one kind, or float64 for integers and floats. Raises UsageError for others."""
    import pyarrow

    types = {
        (): pyarrow.null(), (INTEGER,): pyarrow.int64(), (FLOAT,): pyarrow.float64(),
        (INTEGER, FLOAT): pyarrow.float64(), (STRING,): pyarrow.string(), (BLOB,): pyarrow.binary(),
    }  # fmt: skip
    fields = []
    for name, seen in zip(names, rows.kinds, strict=True):
        kinds = tuple(sorted(seen - {NULL}))
        if kinds not in types:
            held = " and ".join(KINDS[kind] for kind in kinds)
            raise UsageError(f"column {name} has {held}, and one of Parquet has one type: CAST it, or write .jsonl")
        fields.append(pyarrow.field(name, types[kinds]))
    return pyarrow.schema(fields)


def arrays_of(batch: Batch, schema: Any) -> list[Any]:
    """Returns an array for each column. Raises UsageError for an integer that its column's float64 cannot hold."""
    columns, found = _Columns(batch), []
    for nth, field in enumerate(schema):
        if str(field.type) == "int64":
            found.append(_numbers(*columns.of(nth, INTEGER)))
        elif str(field.type) == "double":
            found.append(_numbers(*_reals(columns, nth, field.name)))
        elif str(field.type) == "string":
            found.append(columns.taken(nth, STRING, columns.texts))
        elif str(field.type) == "binary":
            found.append(columns.taken(nth, BLOB, columns.blobs))
        else:
            found.append(_nulls(len(batch)))
    return found


def _reals(columns: _Columns, nth: int, name: str) -> tuple[Array, Array]:
    """Returns (float64, bool: where there is one) of a column of floats and integers."""
    values, is_there = columns.of(nth, FLOAT)
    numbers = values.view(np.float64)
    whole, is_whole = columns.of(nth, INTEGER)
    if is_whole.any():
        if whole.max() > EXACT or whole.min() < -EXACT:
            raise UsageError(
                f"column {name} has numbers, and integers too large to be exact among them: CAST it, or write .jsonl"
            )
        numbers[is_whole] = whole[is_whole]
    return numbers, is_there | is_whole


class _Columns:
    """The values of a batch by columns."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._values = {INTEGER: batch.integers, FLOAT: batch.floats.view(np.int64)}

    def of(self, nth: int, kind: int) -> tuple[Array, Array]:
        """Returns (int64, bool: where there is one): INTEGER's values, and the bits of FLOAT's."""
        return self._column(nth, kind, self._values[kind])

    def taken(self, nth: int, kind: int, values: Any) -> Any:
        """Returns the column's part of Arrow's values, which are all of this kind in the batch."""
        at, is_there = self._column(nth, kind, np.arange(len(values)))
        if len(values) == len(at) and is_there.all():
            return values  # the only column of this kind
        return values.take(_numbers(at, is_there))

    @cached_property
    def texts(self) -> Any:
        import pyarrow

        offsets, data = _cells.texts(self._batch.text)
        return pyarrow.StringArray.from_buffers(len(offsets) - 1, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data))

    @cached_property
    def blobs(self) -> Any:
        import pyarrow

        return pyarrow.array(self._batch.blobs, pyarrow.binary())

    def _column(self, nth: int, kind: int, values: Array) -> tuple[Array, Array]:
        batch = self._batch
        return _cells.column(batch.kinds, batch.places, batch.n_columns, nth, kind, values)


def _numbers(data: Array, is_there: Array) -> Any:
    """Returns an array of numbers, null where there is none. Made of buffers: pyarrow.array imports pandas, if it is
    installed, to see whether the values are its."""
    import pyarrow

    valid = None if is_there.all() else pyarrow.py_buffer(np.packbits(is_there, bitorder="little"))
    kind = pyarrow.from_numpy_dtype(data.dtype)
    return pyarrow.Array.from_buffers(kind, len(data), [valid, pyarrow.py_buffer(data)])


def _nulls(n: int) -> Any:
    import pyarrow

    return pyarrow.nulls(n)
