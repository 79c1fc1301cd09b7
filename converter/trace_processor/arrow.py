"""Answers as Arrow's arrays, for Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from traceferry.common.errors import UsageError
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
    place, n = batch.places(), batch.n_columns
    texts, blobs = _texts(batch), None
    found = []
    for nth, field in enumerate(schema):
        kinds, at = batch.kinds[nth::n], place[nth::n]
        if str(field.type) == "int64":
            found.append(_numbers(kinds, {INTEGER: batch.integers}, at, np.int64))
        elif str(field.type) == "double":
            whole = batch.integers[at[kinds == INTEGER]]
            if len(whole) and (whole.max() > EXACT or whole.min() < -EXACT):
                raise UsageError(
                    f"column {field.name} has numbers, and integers too large to be exact among them: CAST it, or "
                    "write .jsonl"
                )
            found.append(_numbers(kinds, {INTEGER: batch.integers, FLOAT: batch.floats}, at, np.float64))
        elif str(field.type) == "string":
            found.append(_taken(texts, at, kinds == STRING))
        elif str(field.type) == "binary":
            blobs = blobs or _blobs(batch)
            found.append(_taken(blobs, at, kinds == BLOB))
        else:
            found.append(_nulls(len(kinds)))
    return found


def _numbers(kinds: Any, values: dict[int, Any], at: Any, dtype: Any) -> Any:
    import pyarrow

    found, is_null = np.zeros(len(kinds), dtype), np.ones(len(kinds), bool)
    for kind, held in values.items():
        is_kind = kinds == kind
        found[is_kind] = held[at[is_kind]]
        is_null &= ~is_kind
    return pyarrow.array(found, mask=is_null if is_null.any() else None)


def _texts(batch: Batch) -> Any:
    """Returns all texts of a batch, in their order; the zeros behind them are left out."""
    import pyarrow

    ends = np.flatnonzero(batch.text == 0)
    offsets = np.concatenate([[0], ends - np.arange(len(ends))]).astype(np.int32)
    data = batch.text[batch.text != 0]
    return pyarrow.StringArray.from_buffers(len(ends), pyarrow.py_buffer(offsets), pyarrow.py_buffer(data))


def _blobs(batch: Batch) -> Any:
    import pyarrow

    return pyarrow.array(batch.blobs, pyarrow.binary())


def _taken(values: Any, at: Any, is_there: Any) -> Any:
    import pyarrow

    return values.take(pyarrow.array(at, mask=None if is_there.all() else ~is_there))


def _nulls(n: int) -> Any:
    import pyarrow

    return pyarrow.nulls(n)
