"""Writes the rows of `query`: an aligned table, CSV, JSON, JSON lines, Parquet."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from traceferry.common.errors import UsageError
from traceferry.common.shown_text import aligned, shown, without_unshowable
from traceferry.files.output import Output, open_output

if TYPE_CHECKING:
    from traceferry.trace_processor.results import Batch, Rows

MOST_ROWS = 1000
# Of a cell in a table of several columns: a longer one would push the others off the screen.
MOST_WIDE = 100
ROWS_AT_ONCE = 1 << 14


WriteRows = Callable[[Sequence["Rows"], Output], None]


class Writer(NamedTuple):
    """takes_all: the rows of all statements are written, not the last one's only."""

    path: str
    write: WriteRows
    takes_all: bool = False

    def __call__(self, results: Sequence[Rows]) -> None:
        with open_output(self.path) as out:
            self.write(results, out)


def writer_for(path: str | None, *, as_json: bool, as_csv: bool) -> Writer:
    """Returns what writes the rows: by the output's suffix; on standard output by the options, else a table for a
    terminal and CSV for others. Raises UsageError."""
    if path is None or path == "-":
        if as_json and as_csv:
            raise UsageError("--json and --csv are two ways to print the rows: give one")
        write: WriteRows = _write_json if as_json else _write_csv
        if sys.stdout.isatty():
            write = _for_eyes(write) if as_json or as_csv else _write_table
        return Writer("-", write, takes_all=as_json)
    if as_json or as_csv:
        raise UsageError("--json and --csv are for standard output; -o chooses by its suffix")
    plain = path.removesuffix(".gz")
    by_suffix = next((write for suffix, write in BY_SUFFIX.items() if plain.endswith(suffix)), None)
    if by_suffix is None:
        raise UsageError(f"{path}: rows are not written with this suffix; known: {', '.join(BY_SUFFIX)}")
    if by_suffix is _write_parquet and path != plain:
        raise UsageError(f"{path}: Parquet is compressed by itself, and not read as .gz")
    return Writer(path, by_suffix, takes_all=by_suffix is _write_json)


def _for_eyes(write: WriteRows) -> WriteRows:
    """Lets nothing through that a terminal would take for a command."""

    def write_shown(results: Sequence[Rows], out: Output) -> None:
        passed = Output(_Shown(out), gzip=False)
        write(results, passed)
        passed.finish()

    return write_shown


class _Shown:
    """Escapes what cannot be seen, as JSON does; pieces end where they may, so that a character may be in two."""

    def __init__(self, out: Output) -> None:
        self._out, self._left = out, b""

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        data = self._left + bytes(data)
        end = data.rfind(b"\n") + 1
        self._left = data[end:]
        text = data[:end].decode("utf-8", "replace")
        lines = (without_unshowable(line, lambda character: json.dumps(character)[1:-1]) for line in text.split("\n"))
        self._out.write("\n".join(lines).encode())


# ---------------------------------------------------------------- rows of Python's values


def _values(rows: Rows) -> Iterator[tuple[Any, ...]]:
    """Yields the rows; blobs are base64."""
    from traceferry.trace_processor.results import columns_of

    for batch in rows.batches():
        columns = [_printable(column.values()) for column in columns_of(rows.names, [batch], len(batch))]
        yield from zip(*columns, strict=True)


def _printable(values: list[Any]) -> list[Any]:
    return [base64.b64encode(v).decode() if isinstance(v, bytes) else v for v in values]


def _chunks(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    left = iter(rows)
    while chunk := list(islice(left, ROWS_AT_ONCE)):
        yield chunk


def _distinct(names: Sequence[str]) -> list[str]:
    """Returns names of which no two are equal: the second `a` is `a_1`."""
    taken, found = set(names), dict.fromkeys(names[:1])
    number: dict[str, int] = {}
    for name in names[1:]:
        one = name
        while one in found or (one is not name and one in taken):
            number[name] = number.get(name, 0) + 1
            one = f"{name}_{number[name]}"
        found[one] = None
    return list(found)


def _write_table(results: Sequence[Rows], out: Output) -> None:
    if not results or not results[-1].names:
        return
    rows = results[-1]
    cells = [[shown(name) for name in rows.names]]
    cells += [list(map(_cell, row)) for row in islice(_values(rows), MOST_ROWS)]
    n_cut = 0
    for row in cells if len(rows.names) > 1 else ():
        for nth, cell in enumerate(row):
            if len(cell) > MOST_WIDE:
                row[nth] = cell[: MOST_WIDE - 1] + "…"
                n_cut += 1
    lines = aligned(cells)
    if n_cut:
        lines.append(f"cells of more than {MOST_WIDE} characters are cut ({n_cut}): --csv or -o OUT has all")
    if rows.n_rows > MOST_ROWS:
        lines.append(f"and {rows.n_rows - MOST_ROWS} rows more: --csv or -o OUT has all")
    out.write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))


def _cell(value: Any) -> str:
    return "" if value is None else shown(str(value))


def _write_csv(results: Sequence[Rows], out: Output) -> None:
    if not results or not results[-1].names:
        return
    import numpy as np

    from traceferry.trace_processor import _csv

    rows = results[-1]
    none, text = np.zeros(0), "".join(f"{name}\0" for name in rows.names).encode("utf-8", "replace")
    head = np.full(len(rows.names), 4, np.uint8)
    out.write(_csv.rows(len(head), head, none.astype(np.int64), none, np.frombuffer(text, np.uint8), []))
    for batch in rows.batches():
        blobs = [base64.b64encode(blob) for blob in batch.blobs]
        out.write(_csv.rows(batch.n_columns, batch.kinds, batch.integers, batch.floats, batch.text, blobs))


def _write_json(results: Sequence[Rows], out: Output) -> None:
    import orjson

    out.write(b"[")
    for nth, rows in enumerate(results):
        out.write(b'%s{"columns":%s,"rows":[' % (b"," if nth else b"", orjson.dumps(rows.names)))
        for n_chunks, chunk in enumerate(_chunks(_values(rows))):
            out.write(b"," if n_chunks else b"")
            out.write(orjson.dumps(chunk)[1:-1])
        out.write(b"]}")
    out.write(b"]\n")


def _write_json_lines(results: Sequence[Rows], out: Output) -> None:
    import orjson

    names = _distinct(results[-1].names) if results else []
    for row in _values(results[-1]) if results else ():
        out.write(orjson.dumps(dict(zip(names, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE))


# ---------------------------------------------------------------- Parquet


def _write_parquet(results: Sequence[Rows], out: Output) -> None:
    from traceferry.trace_processor.arrow import arrays_of, schema_of, use_arrow
    from traceferry.trace_processor.results import joined

    use_arrow()
    import pyarrow
    import pyarrow.parquet

    rows = results[-1] if results else None
    if rows is None or not rows.names:
        raise UsageError("the last statement has no columns, which Parquet cannot hold")
    schema = schema_of(_distinct(rows.names), rows)
    names_of: dict[Any, list[str]] = {}
    for field in schema:
        names_of.setdefault(field.type, []).append(field.name)
    # Texts repeat. Integers seldom do, but are near each other: differences take a quarter of the space. Times and ids,
    # which readers look for by range, are integers.
    texts, integers = names_of.get(pyarrow.string(), []), names_of.get(pyarrow.int64(), [])
    differences = dict.fromkeys(integers, "DELTA_BINARY_PACKED")
    options = {"use_dictionary": texts, "column_encoding": differences, "write_statistics": integers or False}
    with pyarrow.parquet.ParquetWriter(_File(out), schema, **options) as writer:
        for group in _groups(rows.batches()):
            writer.write_table(pyarrow.Table.from_arrays(arrays_of(joined(group), schema), schema=schema))


def _groups(batches: Iterable[Batch]) -> Iterator[list[Batch]]:
    """Yields what is written as one group of rows."""
    group: list[Batch] = []
    for batch in batches:
        group.append(batch)
        if sum(map(len, group)) >= ROWS_OF_GROUP:
            yield group
            group = []
    if group:
        yield group


ROWS_OF_GROUP = 1 << 18


class _File:
    """An output as what pyarrow takes for a file."""

    closed = False

    def __init__(self, out: Output) -> None:
        self._out = out

    def write(self, data: Any) -> int:
        self._out.write(memoryview(data))
        return len(data)

    def tell(self) -> int:
        return self._out.n_bytes

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


BY_SUFFIX = {".csv": _write_csv, ".json": _write_json, ".jsonl": _write_json_lines, ".parquet": _write_parquet}
