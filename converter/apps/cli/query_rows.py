"""Writes the rows of `query`: an aligned table, CSV, JSON, JSON lines, Parquet."""

from __future__ import annotations

import base64
import csv
import io
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from traceferry.common.errors import UsageError
from traceferry.common.shown_text import aligned, shown
from traceferry.files.output import Output, open_output

if TYPE_CHECKING:
    from traceferry.trace_processor.results import Answer

MOST_ROWS = 1000
ROWS_AT_ONCE = 1 << 14


class Writer(NamedTuple):
    """takes_all: the answers of all statements are written, not the last one's only."""

    path: str
    write: Callable[[Sequence[Answer], Output], None]
    takes_all: bool = False

    def __call__(self, answers: Sequence[Answer]) -> None:
        with open_output(self.path) as out:
            self.write(answers, out)


def writer_for(path: str | None, *, as_json: bool, as_csv: bool) -> Writer:
    """Returns what writes the rows: by the output's suffix; on standard output by the options, else a table for a
    terminal and CSV for others. Raises UsageError."""
    if path is None or path == "-":
        if as_json:
            return Writer("-", _write_json, takes_all=True)
        return Writer("-", _write_csv if as_csv or not sys.stdout.isatty() else _write_table)
    if as_json or as_csv:
        raise UsageError("--json and --csv are for standard output; -o chooses by its suffix")
    plain = path.removesuffix(".gz")
    by_suffix = next((write for suffix, write in BY_SUFFIX.items() if plain.endswith(suffix)), None)
    if by_suffix is None:
        raise UsageError(f"{path}: rows are not written with this suffix; known: {', '.join(BY_SUFFIX)}")
    return Writer(path, by_suffix, takes_all=by_suffix is _write_json)


def _last(answers: Sequence[Answer]) -> list[tuple[str, list[Any]]]:
    """Returns the columns of the last answer, (name, values); blobs are base64."""
    if not answers:
        return []
    return [(column.name, _printable(column.values())) for column in answers[-1].columns]


def _printable(values: list[Any]) -> list[Any]:
    return [base64.b64encode(v).decode() if isinstance(v, bytes) else v for v in values]


def _rows(columns: Sequence[tuple[str, list[Any]]]) -> Iterable[tuple[Any, ...]]:
    return zip(*(values for _, values in columns), strict=True)


def _write_table(answers: Sequence[Answer], out: Output) -> None:
    columns = _last(answers)
    if not columns:
        return
    n_rows = len(columns[0][1])
    cells = [[name for name, _ in columns], *(map(_cell, row) for row in islice(_rows(columns), MOST_ROWS))]
    lines = [line.strip("\n") for line in aligned([list(row) for row in cells])]
    if n_rows > MOST_ROWS:
        lines.append(f"and {n_rows - MOST_ROWS} rows more: --csv or -o OUT has all")
    out.write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))


def _cell(value: Any) -> str:
    return "" if value is None else shown(str(value))


def _write_csv(answers: Sequence[Answer], out: Output) -> None:
    columns = _last(answers)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    if columns:
        rows.writerow([name for name, _ in columns])
    left = iter(_rows(columns))
    while True:
        before = text.tell()
        rows.writerows(islice(left, ROWS_AT_ONCE))
        if text.tell() == before:
            break
        out.write(text.getvalue().encode("utf-8", "replace"))
        text.seek(0)
        text.truncate()
    out.write(text.getvalue().encode("utf-8", "replace"))


def _write_json(answers: Sequence[Answer], out: Output) -> None:
    import orjson

    results = []
    for answer in answers:
        columns = _last([answer])
        results.append({"columns": [name for name, _ in columns], "rows": list(_rows(columns))})
    out.write(orjson.dumps(results, option=orjson.OPT_APPEND_NEWLINE))


def _write_json_lines(answers: Sequence[Answer], out: Output) -> None:
    import orjson

    columns = _last(answers)
    names = [name for name, _ in columns]
    for row in _rows(columns):
        out.write(orjson.dumps(dict(zip(names, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE))


def _write_parquet(answers: Sequence[Answer], out: Output) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UsageError("Parquet needs pyarrow: pip install 'traceferry[fleet]'") from None
    columns = answers[-1].columns if answers else ()
    try:
        table = pyarrow.table({column.name: column.values() for column in columns})
    except pyarrow.ArrowException as error:
        raise UsageError(f"a column holds values of several types, which Parquet cannot: {error}") from None
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink)
    out.write(sink.getvalue())


BY_SUFFIX = {".csv": _write_csv, ".json": _write_json, ".jsonl": _write_json_lines, ".parquet": _write_parquet}
