"""Outputs: a file is written under a temporary name and renamed when complete; compressed if its suffix says so."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from traceferry.common.errors import UsageError
from traceferry.common.patterns import compiled_later

BUFFER = 1 << 18
MOST_JOBS = 8
# Of the output's name, in that of the file which is written first: names have 255 bytes at most.
NAME_PART = 40
# The process's own descriptors: what they lead to may be a file, which must not be replaced.
STREAM = compiled_later(r"/dev/(stdout|stderr|fd/(\d{1,9}))")
STREAMS = {"stdout": 1, "stderr": 2}
# Modes of files, before the process's mask.
ANYBODY, EXECUTABLE = 0o666, 0o111
OPEN_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)


def default_jobs() -> int:
    """Returns the processors that this process may use, at most 8."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, MOST_JOBS)


class Sink(Protocol):
    def write(self, data: bytes | bytearray | memoryview, /) -> Any: ...


class TooLargeError(Exception):
    """More bytes than asked for. size: how many there would be."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class Nowhere:
    """Takes bytes and keeps none."""

    def write(self, data: bytes | bytearray | memoryview) -> None: ...


class Output:
    """Takes pieces of bytes. n_bytes: how many came in, before compression; n_written: how many went out. most: of
    these, as many as reach the sink; jobs: threads that compress, and that whoever writes may have beside itself: 1
    where nothing is compressed."""

    def __init__(self, sink: Sink, gzip: bool, most: int = sys.maxsize, jobs: int = 1) -> None:
        self.n_bytes = 0
        self.n_written = 0
        self.jobs = jobs if gzip else 1
        self._sink = sink
        self._most = most
        self._gzip: Any = None
        # Small pieces, of which sinks keep none: memory that grows piece by piece is got anew each time.
        self._buffer = bytearray(BUFFER)
        self._n_pending = 0
        if gzip:
            from traceferry.files.compress import Gzip

            self._gzip = Gzip(jobs)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        n = len(data)
        self.n_bytes += n
        end = self._n_pending + n
        if end > BUFFER or n >= BUFFER // 4:
            self._flush()
            end = n
        if n >= BUFFER // 4:
            self._emit(data)
        else:
            self._buffer[end - n : end] = data
            self._n_pending = end

    def _flush(self) -> None:
        if self._n_pending:
            self._emit(memoryview(self._buffer)[: self._n_pending])
        self._n_pending = 0

    def _emit(self, data: bytes | bytearray | memoryview) -> None:
        if self._gzip is not None:
            data = self._gzip.compress(data)
        if len(data):
            self._pass_on(data)

    def _pass_on(self, data: bytes | bytearray | memoryview) -> None:
        self.n_written += len(data)
        if self.n_written <= self._most:
            self._sink.write(data)

    def finish(self) -> None:
        """Ends the output. Raises TooLargeError if it has more bytes than it may."""
        self._flush()
        if self._gzip is not None:
            self._pass_on(self._gzip.flush())
        if self.n_written > self._most:
            raise TooLargeError(self.n_written)

    def close(self) -> None:
        """Ends what works for it, also where it is not complete."""
        if self._gzip is not None:
            self._gzip.close()


@contextmanager
def open_output(path: str, mode: int = ANYBODY, most: int = sys.maxsize, jobs: int = 1) -> Iterator[Output]:
    """Opens the output at `path`, or standard output for "-". A failure inside leaves a file as it was.

    What exists and is not a regular file, such as a FIFO or a device, is written to; a link is followed; a file is
    replaced once the output is complete, and keeps its mode. mode: who may read and write the file at most; most: bytes
    of a file, as many as it may have; jobs: threads that compress it, which does not change its bytes.

    Raises UsageError if the path cannot be written, TooLargeError if there are more bytes. Exceptions from the body
    propagate.
    """
    if path == "-":
        sink = _Stream(sys.stdout.buffer)
        out = Output(sink, gzip=False)
        yield out
        out.finish()
        sink.flush()
        return
    with _descriptor_of(path, mode) as handle:
        out = Output(_Descriptor(handle, path), is_compressed(path), most, jobs)
        try:
            yield out
            out.finish()
        finally:
            out.close()


def is_compressed(path: str) -> bool:
    return path.endswith(".gz")


def is_replaced(path: str) -> bool:
    """Whether an output at the path is a file that is there when it is complete, not what is written to at once."""
    is_file = os.path.isfile(path) or not os.path.exists(path)
    return path != "-" and STREAM.fullmatch(path) is None and is_file


def beside(path: str, suffix: str) -> str:
    """Returns the default path of an output: beside the input, also where that is a folder."""
    if os.path.isdir(path):
        path = path.rstrip(os.sep + (os.altsep or "")) or path
        if os.path.basename(path) in ("", os.curdir, os.pardir):
            path = os.path.realpath(path)
    return path + suffix


def check_distinct(outputs: Sequence[str], inputs: Sequence[str]) -> None:
    """Raises UsageError if a file that is to be written is an input, or another output."""
    taken = {os.path.realpath(path): path for path in inputs if path != "-"}
    for path in outputs:
        if path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
            continue
        real = os.path.realpath(path)
        if real in taken:
            raise UsageError(f"{path}: cannot be written: it is the same file as {taken[real]}")
        taken[real] = path


@contextmanager
def _descriptor_of(path: str, mode: int) -> Iterator[int]:
    stream = STREAM.fullmatch(path)
    if is_replaced(path):
        with _replacement_of(path, mode) as handle:
            yield handle
        return
    if stream is None and os.path.isdir(path):
        raise UsageError(f"{path}: cannot be written: it is a folder")
    with _refusals(path):
        if stream is not None:
            handle = os.dup(STREAMS.get(stream[1]) or int(stream[2]))
        else:
            handle = os.open(path, os.O_WRONLY | OPEN_FLAGS)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def _replacement_of(path: str, most: int) -> Iterator[int]:
    """A new file that takes the place of the one at the end of the path's links."""
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:NAME_PART]}.{os.urandom(4).hex()}.part")
    with _refusals(path):
        before = os.stat(target) if os.path.exists(target) else None
        mode = most if before is None else before.st_mode & (most | EXECUTABLE)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OPEN_FLAGS, mode)
    is_open, is_whole = True, False
    try:
        yield handle
        if before is not None:
            _keep_owner_and_mode(handle, before, mode)
        with _refusals(path):
            is_open = False
            os.close(handle)
            os.replace(temporary, target)
        is_whole = True
    finally:
        if is_open:
            os.close(handle)
        if not is_whole:
            temporary.unlink(missing_ok=True)


def _keep_owner_and_mode(handle: int, before: os.stat_result, mode: int) -> None:
    """Gives a file its owner, as far as the system has owners, and this user may give files away."""
    if hasattr(os, "fchown") and hasattr(os, "fchmod"):
        with suppress(OSError):
            os.fchown(handle, before.st_uid, before.st_gid)
        with suppress(OSError):
            os.fchmod(handle, mode)


@contextmanager
def _refusals(path: str, passing: tuple[type[OSError], ...] = ()) -> Iterator[None]:
    """Raises UsageError where the system refuses to write, but for errors that are passed on."""
    try:
        yield
    except passing:
        raise
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from None


class _Descriptor:
    """Writes whole pieces; a descriptor may take less at once."""

    def __init__(self, handle: int, path: str) -> None:
        self._handle = handle
        self._path = path

    def write(self, data: bytes | bytearray | memoryview) -> None:
        view = memoryview(data)
        with _refusals(self._path):
            while len(view):
                view = view[os.write(self._handle, view) :]


class _Stream:
    """Standard output. That nobody reads it any more is for the command to handle."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: bytes | bytearray | memoryview) -> None:
        with _refusals("standard output", (BrokenPipeError,)):
            self._stream.write(data)

    def flush(self) -> None:
        with _refusals("standard output", (BrokenPipeError,)):
            self._stream.flush()
