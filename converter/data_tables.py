"""Tables for data frames: columns in batches, handed on through the Arrow PyCapsule interface or as NumPy arrays.

https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from traceferry.common.shown_text import shown
from traceferry.model import Array

# The most rows that a batch has.
BATCH = 65_536
# How many rows of a table, and characters of a text, are shown.
SHOWN_ROWS = 10
SHOWN_TEXT = 80
ARROW_MISSING = "tables of Arrow are made with arro3-core: pip install 'traceferry[tables]'"

Kind = Literal["text", "texts", "int64", "uint64", "int32", "float64", "bool"]
# For each column an array; of texts and of what can be unknown (None), one of objects.
Batch = dict[str, Array]


class DataColumn(NamedTuple):
    """kind: text is UTF-8, texts a list of them; doc: what it is, with its unit; nullable: None is unknown."""

    name: str
    kind: Kind
    doc: str
    nullable: bool = False


class DataTable:
    """A table that is made when it is read, batch by batch, and again each time.

    What takes Arrow data takes it: ``pyarrow.table(t)``, ``polars.DataFrame(t)``, ``duckdb.sql("... FROM t")``. A loop
    over it and ``to_pandas`` need no Arrow. One thread of the trace is in memory at a time.

    Parameters
    ----------
    columns : sequence of DataColumn
        Their names, types and what they are.
    batches : callable
        Makes the rows, at every call.
    """

    def __init__(self, columns: Sequence[DataColumn], batches: Callable[[], Iterator[Batch]]) -> None:
        self.columns = tuple(columns)
        self._batches = batches

    def __iter__(self) -> Iterator[Batch]:
        """Yields dictionaries of NumPy arrays, of 1 to 65,536 rows each."""
        for batch in self._batches():
            n_rows = len(next(iter(batch.values())))
            for start in range(0, n_rows, BATCH):
                yield {name: values[start : start + BATCH] for name, values in batch.items()}

    def to_pandas(self) -> Any:
        """Makes a data frame of all rows, without Arrow.

        Returns
        -------
        pandas.DataFrame
            Integers that can be unknown are nullable (Int64).

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas

        parts: dict[str, list[Array]] = {column.name: [] for column in self.columns}
        for batch in self:
            for name, values in batch.items():
                parts[name].append(values)
        return pandas.DataFrame({c.name: _for_pandas(pandas, c, parts[c.name]) for c in self.columns})

    def __arrow_c_schema__(self) -> object:
        return _schema(_arrow(), self.columns).__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        arrow = _arrow()
        schema = _schema(arrow, self.columns)
        batches = (_record_batch(arrow, schema, self.columns, batch) for batch in self)
        return arrow.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<DataTable: {', '.join(column.name for column in self.columns)}>"

    def _repr_html_(self) -> str:
        """Returns the first rows as HTML."""
        rows = self._first(SHOWN_ROWS + 1)
        head = "".join(f'<th title="{escaped(c.doc)}">{escaped(shown_cell(c.name))}</th>' for c in self.columns)
        body = "".join(f"<tr>{''.join(f'<td>{escaped(text)}</td>' for text in row)}</tr>" for row in rows[:SHOWN_ROWS])
        more = f"<p>the first {SHOWN_ROWS} rows</p>" if len(rows) > SHOWN_ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def _first(self, n: int) -> list[list[str]]:
        rows: list[list[str]] = []
        for batch in self:
            columns = [batch[column.name][: n - len(rows)] for column in self.columns]
            rows += [[shown_cell(value) for value in row] for row in zip(*columns, strict=True)]
            if len(rows) == n:
                break
        return rows


def escaped(text: str) -> str:
    """Returns a text as HTML has it."""
    from html import escape  # with a table of 2,200 characters, which only notebooks need

    return escape(text)


def shown_cell(value: object) -> str:
    """Returns a value as a text of at most 80 characters, none of which is a control character. Of a list, the last
    are shown."""
    if isinstance(value, list):
        value = " ← ".join([*map(str, reversed(value[-4:])), *["..."] * (len(value) > 4)])
    text = "" if value is None else shown(str(value)[: 2 * SHOWN_TEXT])
    return text if len(text) <= SHOWN_TEXT else text[: SHOWN_TEXT - 3] + "..."


def objects(values: Sequence[Any]) -> Array:
    """Returns an array of objects, also where these are lists."""
    made = np.empty(len(values), object)
    made[:] = values
    return made


def _for_pandas(pandas: Any, column: DataColumn, parts: list[Array]) -> Any:
    is_object = column.nullable or column.kind in ("text", "texts")
    values = np.concatenate(parts) if parts else np.empty(0, object if is_object else column.kind)
    if column.nullable and column.kind in ("int64", "int32", "uint64"):
        return pandas.array(values, dtype=column.kind.replace("i", "I", 1).replace("u", "U", 1))
    return values


def _arrow() -> Any:
    try:
        import arro3.core
    except ImportError as error:
        raise ImportError(ARROW_MISSING) from error
    return arro3.core


def _schema(arrow: Any, columns: Sequence[DataColumn]) -> Any:
    kinds = {
        "text": arrow.DataType.utf8(), "texts": arrow.DataType.list(arrow.Field("item", arrow.DataType.utf8())),
        "bool": arrow.DataType.bool(), "float64": arrow.DataType.float64(),
        "int64": arrow.DataType.int64(), "uint64": arrow.DataType.uint64(), "int32": arrow.DataType.int32(),
    }  # fmt: skip
    return arrow.Schema(
        [arrow.Field(c.name, kinds[c.kind], nullable=c.nullable, metadata={"doc": c.doc}) for c in columns]
    )


def _record_batch(arrow: Any, schema: Any, columns: Sequence[DataColumn], batch: Batch) -> Any:
    arrays = [_array(arrow, schema.field(column.name), column, batch[column.name]) for column in columns]
    return arrow.RecordBatch.from_arrays(arrays, schema=schema)


def _array(arrow: Any, field: Any, column: DataColumn, values: Array) -> Any:
    if column.kind == "texts":
        lengths = np.array([0, *map(len, values)], np.int32)
        texts = arrow.Array([text for part in values for text in part], arrow.DataType.utf8())
        return arrow.list_array(arrow.Array.from_numpy(np.cumsum(lengths, dtype=np.int32)), texts, type=field)
    if values.dtype == object:
        return arrow.Array(values.tolist(), field)
    return arrow.Array.from_numpy(np.ascontiguousarray(values, column.kind))
