"""Answers as Arrow's arrays, for Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from traceferry.common.errors import UsageError
from traceferry.model import Array
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
    found, values = [], _Cells(batch)
    kinds_of = np.ascontiguousarray(batch.kinds.reshape(-1, batch.n_columns).T)
    for nth, (field, kinds) in enumerate(zip(schema, kinds_of, strict=True)):
        if str(field.type) == "int64":
            found.append(_numbers(values.integers[nth :: batch.n_columns], kinds == INTEGER))
        elif str(field.type) == "double":
            is_whole = kinds == INTEGER
            numbers = values.floats[nth :: batch.n_columns]
            if is_whole.any():
                whole = values.integers[nth :: batch.n_columns]
                if whole.max() > EXACT or whole.min() < -EXACT:
                    raise UsageError(
                        f"column {field.name} has numbers, and integers too large to be exact among them: CAST it, or "
                        "write .jsonl"
                    )
                numbers = np.where(is_whole, whole, numbers)
            found.append(_numbers(numbers, (kinds == FLOAT) | is_whole))
        elif str(field.type) == "string":
            found.append(_taken(values.texts, values.places(STRING)[nth :: batch.n_columns], kinds == STRING))
        elif str(field.type) == "binary":
            found.append(_taken(values.blobs, values.places(BLOB)[nth :: batch.n_columns], kinds == BLOB))
        else:
            found.append(_nulls(len(kinds)))
    return found


class _Cells:
    """The values of a batch, each in the place of its cell: a column is every n-th of them."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    @cached_property
    def integers(self) -> Array:
        return self._spread(INTEGER, self._batch.integers)

    @cached_property
    def floats(self) -> Array:
        return self._spread(FLOAT, self._batch.floats)

    @cached_property
    def texts(self) -> Any:
        """All texts, in their order; the zeros behind them are left out."""
        import pyarrow

        ends = np.flatnonzero(self._batch.text == 0)
        offsets = np.zeros(len(ends) + 1, np.int32)
        offsets[1:] = ends - np.arange(len(ends))
        data = self._batch.text.tobytes().translate(None, b"\0")
        return pyarrow.StringArray.from_buffers(len(ends), pyarrow.py_buffer(offsets), pyarrow.py_buffer(data))

    @cached_property
    def blobs(self) -> Any:
        import pyarrow

        return pyarrow.array(self._batch.blobs, pyarrow.binary())

    def places(self, kind: int) -> Array:
        """int32: which of the values of this kind each cell has."""
        n = {STRING: lambda: len(self.texts), BLOB: lambda: len(self.blobs)}[kind]()
        return self._spread(kind, np.arange(n, dtype=np.int32))

    def _spread(self, kind: int, values: Array) -> Array:
        """Returns the values of a kind in the places of their cells, and zeros."""
        found = np.zeros(len(self._batch.kinds), values.dtype)
        found[self._batch.kinds == kind] = values
        return found


def _numbers(values: Array, is_there: Array) -> Any:
    """Returns an array of numbers, null where there is none. Made of buffers: pyarrow.array imports pandas, if it is
    installed, to see whether the values are its."""
    import pyarrow

    data = np.ascontiguousarray(values)
    valid = None if is_there.all() else pyarrow.py_buffer(np.packbits(is_there, bitorder="little"))
    kind = pyarrow.from_numpy_dtype(data.dtype)
    return pyarrow.Array.from_buffers(kind, len(data), [valid, pyarrow.py_buffer(data)])


def _taken(values: Any, at: Array, is_there: Array) -> Any:
    if len(values) == len(at) and is_there.all():
        return values  # the only column of this kind
    return values.take(_numbers(at, is_there))


def _nulls(n: int) -> Any:
    import pyarrow

    return pyarrow.nulls(n)
