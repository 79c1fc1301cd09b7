"""Where an export goes: written beside its place and renamed when whole, compressed if its name says so."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from traceferry.errors import UsageError

GZIP_LEVEL = 1
BUFFER = 1 << 18


class Sink(Protocol):
    def write(self, data: bytes | bytearray | memoryview, /) -> Any: ...


class Output:
    """Takes pieces of bytes. n_bytes: how many came in, before compression."""

    def __init__(self, sink: Sink, gzip: bool) -> None:
        self.n_bytes = 0
        self._sink = sink
        self._gzip: Any = None
        self._pending = bytearray()
        if gzip:
            from isal import isal_zlib

            # The header that zlib writes has neither a time nor a name: the same input, the same bytes.
            self._gzip = isal_zlib.compressobj(GZIP_LEVEL, wbits=31)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.n_bytes += len(data)
        if len(data) < BUFFER // 4:
            self._pending += data
            if len(self._pending) < BUFFER:
                return
            data, self._pending = self._pending, bytearray()
        elif self._pending:
            self._emit(self._pending)
            self._pending = bytearray()
        self._emit(data)

    def _emit(self, data: bytes | bytearray | memoryview) -> None:
        if self._gzip is not None:
            data = self._gzip.compress(data)
        self._sink.write(data)

    def finish(self) -> None:
        self._emit(self._pending)
        self._pending = bytearray()
        if self._gzip is not None:
            self._sink.write(self._gzip.flush())


@contextmanager
def open_output(path: str) -> Iterator[Output]:
    """The output at `path`, or standard output for "-". A failure inside leaves nothing behind.

    Raises UsageError if the place cannot be written.
    """
    if path == "-":
        yield from _standard_output()
        return
    target = Path(path)
    try:
        if target.is_dir():
            raise UsageError(f"{path}: cannot be written: it is a folder")
        temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with open(handle, "wb", buffering=0) as file:
            out = Output(_Whole(file), gzip=path.endswith(".gz"))
            yield out
            out.finish()
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _standard_output() -> Iterator[Output]:
    out = Output(sys.stdout.buffer, gzip=False)
    try:
        yield out
        out.finish()
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"standard output cannot be written: {error.strerror}") from None


class _Whole:
    """An unbuffered file may take less than it is given."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: bytes | bytearray | memoryview) -> None:
        view = memoryview(data)
        while len(view):
            view = view[self._file.write(view) :]
