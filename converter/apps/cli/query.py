"""The command `query`: SQL over any recording."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from traceferry import registry
from traceferry.apps.cli import coach, options
from traceferry.apps.cli.command_parser import CommandParser, OneOutput
from traceferry.apps.cli.progress import loaded
from traceferry.common.errors import FormatError, UsageError
from traceferry.common.patterns import compiled_later
from traceferry.common.shown_text import shown

if TYPE_CHECKING:
    from traceferry.trace_processor.engine import Engine
    from traceferry.trace_processor.results import Rows
    from traceferry.trace_processor.session import Session

# Tables and views of the package that every session has begin so.
OWN = "traceferry_"
# Spaces, comments and empty statements.
BLANK = compiled_later(r"(?:\s|;|--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z))*", re.DOTALL)
# How a word begins that is SQL for certain, and no name of a file.
WRITTEN_SQL = compiled_later(r"\s*(?:select|with|include\s+perfetto|create\s+perfetto)\s", re.IGNORECASE)
# The importer that reads through trace_processor.
ENGINES = "perfetto"
# Options that choose a part of a recording, with their values where they are not given.
SELECTIONS: dict[str, object] = {"range": None, "thread": [], "min_duration": None, "max_events": None, "symbols": []}


def add_to(query: CommandParser) -> None:
    options.explain(
        query,
        "Runs SQL over a recording, in Perfetto's trace_processor: over what that reads itself, and over the Perfetto "
        "trace that any other recording is converted to. The last statement's rows are a table on a terminal, else "
        "CSV. Without SQL on a terminal, trace_processor's own shell opens.",
        examples=f"traceferry query {options.RECORDING.split()[-1]} 'SELECT * FROM traceferry_functions LIMIT 10'\n"
        "traceferry query trace.pftrace -f slow.sql -o slow.parquet\n"
        "traceferry query app.mlpd 'SELECT * FROM traceferry_allocations ORDER BY bytes DESC' --json",
    )
    query.input.add_argument(
        "words", nargs="+", metavar="RECORDING... [SQL]", help="recordings of one run, then the SQL"
    )
    options.add_recording_options(query)
    query.input.add_argument("-f", "--file", metavar="FILE.sql", help="read the SQL from a file; - is standard input")
    query.output.add_argument(
        "-o", "--output", action=OneOutput, metavar="OUT",
        help="write the rows to a file, by its suffix: .csv, .json, .jsonl or .parquet (needs traceferry[fleet])",
    )  # fmt: skip
    query.output.add_argument("--csv", action="store_true", help="print CSV, also on a terminal")
    query.output.add_argument("--json", action="store_true", help="print the rows of all statements as JSON")
    query.rare.add_argument("--time-limit", metavar="DUR", help="end with an error if the SQL takes longer: 30s")
    query.rare.add_argument(
        "--package", action="append", default=[], metavar="DIR[@NAME]", help="a folder with SQL modules to INCLUDE"
    )
    query.rare.add_argument(
        "--download", action="store_true",
        help="if there is none, let the package perfetto download the one that it names, and verify it",
    )  # fmt: skip
    coach.add_verbosity(query)


def run(arguments: argparse.Namespace) -> int:
    from traceferry.apps.cli import query_rows
    from traceferry.common.units import parse_duration
    from traceferry.trace_processor.engine import find_engine
    from traceferry.trace_processor.file_access import refuse_file_access, refuse_files_of
    from traceferry.trace_processor.protocol import messages
    from traceferry.trace_processor.session import Session

    arguments.inputs, sql = _inputs_and_sql(arguments)
    refuse_file_access(sql or "")
    for package in arguments.package:
        refuse_files_of(package)
    limit = parse_duration(arguments.time_limit) / 1e9 if arguments.time_limit else None
    write = query_rows.writer_for(arguments.output, as_json=arguments.json, as_csv=arguments.csv)
    engine = find_engine(arguments.trace_processor, arguments.download)
    messages()  # refuses where its packages are not installed, before anything is converted
    options.look_into_folders(arguments)
    with _trace_of(arguments) as path:
        if sql is None:
            return _open_shell(engine, path, arguments.package)
        with Session(engine, path, arguments.package, limit) as session:
            results = _results(session, sql, each=write.takes_all)
    write(results)
    return options.DONE


def _inputs_and_sql(arguments: argparse.Namespace) -> tuple[list[str], str | None]:
    """Returns the recordings, and the SQL; None asks for the engine's own shell."""
    words = list(arguments.words)
    if arguments.file is not None:
        if arguments.file == "-" and "-" in words:
            raise UsageError("standard input cannot be both, a recording and the SQL")
        return words, _text_of(arguments.file)
    *others, last = words
    if others and last.endswith(".sql"):
        raise UsageError(f"{last}: SQL is read from a file with -f {last}")
    for word in others:
        if WRITTEN_SQL.match(word) and not os.path.exists(word):
            raise UsageError(f"{shown(word)!r} is SQL, of which there is one word, behind the recordings")
    if others and last != "-" and not os.path.exists(last):
        return others, last
    if sys.stdin.isatty() and sys.stdout.isatty():
        return words, None
    raise UsageError("no SQL is given: behind the recordings, or with -f FILE.sql")


def _text_of(path: str) -> str:
    if path == "-":
        return sys.stdin.read()
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


@contextmanager
def _trace_of(arguments: argparse.Namespace) -> Iterator[str]:
    """Yields a file that the engine reads: the input itself, or what it is converted to."""
    from traceferry.api import save
    from traceferry.apps.view.cache import cache_folder

    with cache_folder() as folder, _named_as_given(arguments, folder / "input"):
        advice = None
        may_be_read = arguments.format in (None, ENGINES)
        if len(arguments.inputs) == 1 and may_be_read and not os.path.isdir(arguments.inputs[0]):
            is_read, advice = _is_read_by_engine(arguments)
            if is_read:
                with _advised(advice):
                    yield os.path.abspath(arguments.inputs[0])
                return
        path = str(folder / "recording.pftrace")
        with loaded(arguments, arguments.quiet) as (trace, progress):
            save(trace, path, progress=progress)
        coach.tell_losses(arguments, trace.report)
        yield path


@contextmanager
def _named_as_given(arguments: argparse.Namespace, copy: Path) -> Iterator[None]:
    """Copies the only input to a file, if it is a pipe: it is looked at before it is read, and the engine reads files.
    Errors name what was given."""
    from traceferry.files.source import await_bytes, opened

    given = arguments.inputs[0]
    if len(arguments.inputs) > 1 or (given != "-" and (not os.path.exists(given) or not _is_pipe(given))):
        yield
        return
    with open(copy, "wb") as file:
        if given == "-":
            await_bytes(sys.stdin.buffer)
            shutil.copyfileobj(sys.stdin.buffer, file)
        else:
            with opened(given) as pipe:
                shutil.copyfileobj(pipe, file)
        if not file.tell():
            raise FormatError("the file is empty", 0, path=given)
    arguments.inputs = [str(copy)]
    try:
        yield
    except FormatError as error:
        error.path, error.message = given, error.message.replace(str(copy), given)
        raise


def _is_pipe(path: str) -> bool:
    mode = os.stat(path).st_mode
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextmanager
def _advised(advice: FormatError | None) -> Iterator[None]:
    """Says what a file is, and what to give instead, where the engine cannot read it either."""
    try:
        yield
    except FormatError:
        if advice is None:
            raise
        raise advice from None


def _is_read_by_engine(arguments: argparse.Namespace) -> tuple[bool, FormatError | None]:
    """Returns whether the only input is a trace that trace_processor reads, of which no part is chosen; and what to say
    if it does not. Raises UsageError where a part is to be chosen of what traceferry does not read, FormatError for
    JSON and pages that are no traces: trace_processor takes any for an empty one."""
    from traceferry.files.decompress import limit_of
    from traceferry.files.json_text import is_json, is_page
    from traceferry.files.known_files import known_file
    from traceferry.files.pack import inputs_of
    from traceferry.files.source import open_source

    if os.path.isfile(arguments.inputs[0]) and not os.path.getsize(arguments.inputs[0]):
        return True, None  # an empty trace, on which SQL can be tried
    source = inputs_of(open_source(arguments.inputs[0], limit_of(arguments.decompress_limit)))[0]
    chosen = [option for option, unset in SELECTIONS.items() if getattr(arguments, option) != unset]
    try:
        name = arguments.format or registry.detect(source).name
        return name == ENGINES and not chosen, None
    except FormatError as error:
        if chosen:
            name = chosen[0].replace("_", "-")
            raise UsageError(f"--{name} is for recordings that traceferry reads itself; use SQL's WHERE") from None
        head = source.data[: registry.HEAD_SIZE]
        if is_json(head) or is_page(head):
            raise
        return True, error if known_file(source.data, source.path) else None


def _results(session: Session, sql: str, each: bool) -> list[Rows]:
    """Returns the rows of all statements, or the last one's only."""
    if OWN in sql.lower():
        session.include_own()
    parts = list(_statements(sql))
    if not parts:
        raise UsageError("the SQL has no statement")
    return [session.rows(part) for part in (parts if each else [sql])]


def _statements(sql: str) -> Iterator[str]:
    """Yields the statements that are more than a comment, each with as many line breaks before it as there are in the
    text: errors name lines."""
    import sqlite3

    start = 0
    for at, character in enumerate(sql):
        if character == ";" and sqlite3.complete_statement(sql[start : at + 1]):
            if BLANK.fullmatch(sql, start, at + 1) is None:
                yield "\n" * sql.count("\n", 0, start) + sql[start : at + 1]
            start = at + 1
    if BLANK.fullmatch(sql, start) is None:
        yield "\n" * sql.count("\n", 0, start) + sql[start:]


def _open_shell(engine: Engine, path: str, packages: Sequence[str]) -> int:
    import subprocess

    from traceferry.trace_processor.session import package_options

    done = subprocess.run([engine.path, *package_options(packages), path], check=False)
    if done.returncode:
        raise UsageError(shown(f"{engine.path} ended with status {done.returncode}"))
    return options.DONE
