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
    found, of_batch = [], _Texts(batch)
    for field, kinds, values in zip(schema, *batch.by_column(), strict=True):
        if str(field.type) == "int64":
            found.append(_numbers(values, kinds == INTEGER))
        elif str(field.type) == "double":
            found.append(_numbers(_reals(kinds, values, field.name), (kinds == FLOAT) | (kinds == INTEGER)))
        elif str(field.type) == "string":
            found.append(_taken(of_batch.texts, values, kinds == STRING))
        elif str(field.type) == "binary":
            found.append(_taken(of_batch.blobs, values, kinds == BLOB))
        else:
            found.append(_nulls(len(batch)))
    return found


def _reals(kinds: Array, values: Array, name: str) -> Array:
    """Returns float64 for a column of floats and integers."""
    numbers = values.view(np.float64)
    is_whole = kinds == INTEGER
    if is_whole.any():
        whole = values[is_whole]
        if whole.max() > EXACT or whole.min() < -EXACT:
            raise UsageError(
                f"column {name} has numbers, and integers too large to be exact among them: CAST it, or write .jsonl"
            )
        numbers = numbers.copy()
        numbers[is_whole] = whole
    return numbers


class _Texts:
    """All texts and blobs of a batch as Arrow has them."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    @cached_property
    def texts(self) -> Any:
        import pyarrow

        offsets, data = _cells.texts(self._batch.text)
        return pyarrow.StringArray.from_buffers(len(offsets) - 1, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data))

    @cached_property
    def blobs(self) -> Any:
        import pyarrow

        return pyarrow.array(self._batch.blobs, pyarrow.binary())


def _taken(held: Any, at: Array, is_there: Array) -> Any:
    """Returns those of the texts or blobs of a batch that a column has."""
    if len(held) == len(at) and is_there.all():
        return held  # the only column of this kind
    return held.take(_numbers(at, is_there))


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
