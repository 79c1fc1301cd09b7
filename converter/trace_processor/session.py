"""A trace that the engine has loaded: statements go in, columns come out.

The engine is a child process that is spoken to over its standard input and output (`server stdio`): no port is opened,
SQL may not open files, and at the end of its input it ends, also when this process is killed. Requests and answers are
TraceProcessorRpc messages, each a field 1 of TraceProcessorRpcStream: perfetto's trace_processor.proto.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType

from traceferry.common.errors import FormatError, UsageError
from traceferry.trace_processor.engine import Engine
from traceferry.trace_processor.protocol import messages, parsed
from traceferry.trace_processor.results import Answer, Rows

FRAME_TAG = 0x0A
PR_SET_PDEATHSIG = 1  # linux/prctl.h
ENDS_WITHIN_S = 5.0
# Of what the engine has said before it ended.
SHOWN_BYTES = 4096
NO_ANSWER = "its answer is no TraceProcessorRpc"
PACKAGE = "traceferry"
MODULES = ("functions", "threads", "markers", "allocations")


class SqlError(UsageError):
    """A statement that the engine refuses; lines: its words, with the place."""


class Session:
    """A trace in the engine; used with `with`.

    Raises FormatError where the engine cannot read the file, or ends.

    Parameters
    ----------
    engine : Engine
        As found.
    path : path
        The trace.
    packages : sequence of str, default ()
        Folders with SQL modules, each DIR or DIR@NAME.
    time_limit : float, optional
        Seconds that all statements may take together, without loading the trace; then UsageError is raised.
    """

    def __init__(
        self, engine: Engine, path: str | Path, packages: Sequence[str] = (), time_limit: float | None = None
    ) -> None:
        self._engine, self._path = engine, str(path)
        self._limit, self._is_late = time_limit, False
        self._timer: threading.Timer | None = None
        self._said = TemporaryFile()  # noqa: SIM115 - close() closes it
        self._child = subprocess.Popen(
            [engine.path, "server", "stdio", *package_options(packages), self._path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, preexec_fn=_end_with_parent(),
        )  # fmt: skip

    def __enter__(self) -> Session:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the engine, which has nothing to keep: by itself it would give back all memory piece by piece."""
        if self._timer is not None:
            self._timer.cancel()
        self._child.kill()
        for pipe in (self._child.stdin, self._child.stdout):
            assert pipe is not None
            with suppress(OSError):  # the engine has gone before it had read all
                pipe.close()
        self._child.wait()
        self._said.close()

    def query(self, sql: str) -> Answer:
        """Runs statements, which end with `;`, and returns the answer of the last one. Raises SqlError."""
        rows = self.rows(sql)
        try:
            return rows.answer()
        except FormatError as error:
            raise self._ended(error.message) from None

    def rows(self, sql: str) -> Rows:
        """Runs statements like `query`; the rows of the last one may be more than fit into memory."""
        if self._limit is not None and self._timer is None:
            self._answer("SELECT 1")  # comes when the trace is loaded
            self._timer = threading.Timer(self._limit, self._end_late)
            self._timer.start()
        return self._answer(sql)

    def _end_late(self) -> None:
        self._is_late = True
        self._child.kill()

    def _answer(self, sql: str) -> Rows:
        stream = messages()["TraceProcessorRpcStream"]()
        request = stream.msg.add()
        request.request = request.TPM_QUERY_STREAMING
        request.query_args.sql_query = sql
        self._write(stream.SerializeToString())
        rows = Rows()
        while True:
            data = self._read_frame()
            try:
                answer = parsed("TraceProcessorRpc", data)
            except FormatError as error:
                raise self._ended(error.message) from None
            if answer.HasField("fatal_error") or answer.HasField("invalid_request"):
                raise self._ended(answer.fatal_error or "the request is unknown to this version")
            result = answer.query_result
            if result.column_names and not rows.names:
                rows = Rows([name.decode("utf-8", "replace") for name in result.column_names])
            if result.error:
                raise SqlError("the statement cannot be run", _lines(result.error))
            try:
                for batch in result.batch:
                    rows.add(batch, len(data))
            except FormatError as error:
                raise self._ended(error.message) from None
            if any(batch.is_last_batch for batch in result.batch):
                return rows

    def include_own(self) -> None:
        """Makes the views of the package `traceferry` known."""
        self.query("".join(f"INCLUDE PERFETTO MODULE {PACKAGE}.{module};\n" for module in MODULES))

    def _write(self, data: bytes) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(data)
            self._child.stdin.flush()
        except OSError:
            raise self._ended() from None

    def _read_frame(self) -> bytes:
        """Reads the tag of field 1, a varint length, and the message."""
        if self._read(1)[0] != FRAME_TAG:
            raise self._ended(NO_ANSWER)
        length = shift = 0
        while True:
            byte = self._read(1)[0]
            length |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return self._read(length)

    def _read(self, n: int) -> bytes:
        assert self._child.stdout is not None
        data = self._child.stdout.read(n)
        if len(data) < n:
            raise self._ended()
        return data

    def _ended(self, why: str = "") -> FormatError | UsageError:
        """Returns what to raise after the engine has ended, or said what cannot be understood."""
        if self._is_late:
            return UsageError(f"the SQL took longer than {self._limit:g} s, and was ended")
        if not why:
            try:
                status = self._child.wait(ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                status = 0
            why = (
                f"it ended by signal {-status}"
                if status < 0
                else self._last_words() or f"it ended with status {status}"
            )
        return FormatError(f"trace_processor {self._engine.version}: {why}", path=self._path)

    def _last_words(self) -> str:
        self._said.seek(0, 2)
        self._said.seek(max(self._said.tell() - SHOWN_BYTES, 0))
        lines = self._said.read().decode("utf-8", "replace").replace("\r", "\n").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def package_options(packages: Sequence[str]) -> list[str]:
    """Returns the engine's options for SQL packages: that of traceferry and these, each DIR or DIR@NAME."""
    own = f"{resources.files('traceferry.trace_processor') / 'sql' / PACKAGE}@{PACKAGE}"
    return [word for package in (own, *packages) for word in ("--add-sql-package", package)]


def _end_with_parent() -> Callable[[], None] | None:
    """Returns what makes a new process end when this one is killed; None where only the end of its input does: an
    engine that is busy with a statement does not look at that."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _lines(error: bytes) -> list[str]:
    return error.decode("utf-8", "replace").rstrip().split("\n")
