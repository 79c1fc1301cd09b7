"""Decode: runs the queries, and keeps their answers as columns."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.common.patterns import compiled_later
from traceferry.files.source import Source
from traceferry.importers.perfetto import queries
from traceferry.importers.perfetto.chrome_json import (
    Cut,
    cut_of,
    has_mark,
    old_phases,
    other_numbers,
    whole_profiles,
    write_copy,
)
from traceferry.model import Array
from traceferry.trace_processor.engine import find_engine
from traceferry.trace_processor.results import Answer
from traceferry.trace_processor.session import Session, SqlError


@dataclass
class Tables:
    """version: of trace_processor; answers: by the names of `queries.ALL`; missing: those of which this version lacks a
    table; refused: why it did not run others; left_out: (name, rows) of the tables that are not read; numbers: what the
    numbers of processes and threads stand for that trace_processor got in place of others; cut: where text ends too
    early, None: nowhere."""

    version: str
    answers: dict[str, Answer] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    left_out: list[tuple[str, int]] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)
    cut: Cut | None = None

    def __getitem__(self, name: str) -> Answer:
        return self.answers.get(name, EMPTY)


EMPTY = Answer(())
SPARSE = 1 << 16
# What SQLite says of a statement that was written for a newer version.
LACKS = compiled_later(r"no such (?:table|column|function|module)|has no column", re.IGNORECASE)


def dense(numbers: Array, n_rows: int) -> Array:
    """Returns the ids with -1 for those that no table of n_rows has: ids of trace_processor are dense, and arrays have
    their sizes."""
    is_known = (numbers >= 0) & (numbers < 4 * n_rows + SPARSE)
    return numbers if is_known.all() else np.where(is_known, numbers, -1)


def read_tables(source: Source, trace_processor: str | None) -> Tables:
    """Loads a trace and asks for all of it. Raises UsageError without trace_processor, FormatError for what it cannot
    read."""
    engine = find_engine(trace_processor)
    numbers, cut = other_numbers(source.data), cut_of(source.data)
    with _file_of(source, numbers, cut) as path:
        try:
            with Session(engine, path) as session:
                tables = _ask(session, engine.version)
        except FormatError as error:
            raise FormatError(error.message, path=source.path) from None
    tables.numbers, tables.cut = numbers, cut
    return tables


def _ask(session: Session, version: str) -> Tables:
    tables = Tables(version)
    _answer(session, tables, "slice_columns", queries.SLICE_COLUMNS)
    said = tables["slice_columns"]
    # Where the question is not understood, all of them.
    columns = [name for name in queries.OPTIONAL_COLUMNS if said[name].numbers().all()]
    for name, sql in {"slices": queries.slices(columns), **queries.ALL}.items():
        _answer(session, tables, name, sql)
    with suppress(SqlError):
        tables.answers["first_logs"] = session.query(queries.FIRST_LOGS)
    for name in queries.LEFT_OUT:
        try:
            (n,) = session.query(f"SELECT count(*) AS n FROM {name}")["n"].numbers().tolist()
        except SqlError:
            continue
        if n:
            tables.left_out.append((name, n))
    return tables


def _answer(session: Session, tables: Tables, name: str, sql: str) -> None:
    """Asks, and keeps the answer, or what is wrong with the question."""
    try:
        tables.answers[name] = session.query(sql)
    except SqlError as error:
        why = error.lines[-1] if error.lines else ""
        if LACKS.search(why):
            tables.missing.append(name)
        else:
            tables.refused.append(f"{name}: {why}")


@contextmanager
def _file_of(source: Source, numbers: dict[int, int], cut: Cut | None) -> Iterator[str]:
    """Yields a file with the source's bytes, but for what trace_processor does not take as it is (chrome_json.py): the
    input's own where it is one, and not compressed."""
    profiles, phases = whole_profiles(source.data, numbers), old_phases(source.data)
    closing = cut.closing if cut is not None else b""
    is_copied = any(map(len, (numbers, profiles, phases, closing))) or has_mark(source.data)
    try:
        is_plain = os.path.getsize(source.path) == len(source.data) and not is_copied
    except OSError:
        is_plain = False
    if is_plain:
        yield os.path.abspath(source.path)
        return
    with TemporaryDirectory(prefix="traceferry-") as folder:
        path = os.path.join(folder, "trace")
        with open(path, "wb") as file:
            if is_copied:
                data = source.data[: cut.end] if cut is not None else source.data
                write_copy(data, numbers, profiles, phases, file)
                file.write(closing)
            else:
                file.write(source.data)
        yield path
