"""A path or standard input becomes a Source: bytes in memory or mapped, decompressed."""

from __future__ import annotations

import io
import mmap
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from traceferry.common.errors import ExhaustedError, FormatError, UsageError
from traceferry.common.report import Report
from traceferry.common.shown_text import shown
from traceferry.files.answers import MACHINE, Answers
from traceferry.files.decompress import DEFAULT_LIMIT, Limit, decompress, is_compressed, without_compression

# Linux 5.14; the module mmap does not name it.
MADV_POPULATE_READ = 22 if sys.platform == "linux" else None
# How long nothing is said of a FIFO without a writer.
SILENT_SECONDS = 1.0
# `perf record --threads` writes such folders.
FOLDER_MAIN = "data"
# A FIFO without a writer would be waited for, and a terminal become the process's own. Windows has neither.
OPEN_FLAGS = os.O_RDONLY
for _name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"):
    OPEN_FLAGS |= getattr(os, _name, 0)


class RefusedError(OSError):
    """The file is not one that is read: a FIFO, a device, a socket or a folder, or see `named_files`."""


@dataclass(frozen=True)
class Source:
    """One input.

    path: as the user named it ("-" for standard input); data: the bytes, read-only, decompressed; damage: what is wrong
    with the compression, or ""; limited: how far it was decompressed if a limit was reached, or ""; parts: where the
    input is a folder, its numbered files: data.0...; limit: for what is compressed inside; bring: copies the file of a
    name, if there is one, from where the input comes from to where it is, None where these are the same; answers: to
    what is asked about the machine on which it was made.
    """

    path: str
    data: memoryview = field(repr=False)
    damage: str = ""
    limited: str = ""
    parts: tuple[memoryview, ...] = field(default=(), repr=False)
    limit: Limit = DEFAULT_LIMIT
    bring: Callable[[str], None] | None = field(default=None, repr=False, compare=False)
    answers: Answers = field(default=MACHINE, repr=False, compare=False)

    def prefetch(self, start: int = 0, end: int | None = None) -> None:
        """Announces that these bytes are read next. A mapped file's pages then come at once instead of one by one."""
        _advise(self.data, MADV_POPULATE_READ, start, len(self.data) if end is None else end)

    def release(self, start: int, end: int) -> None:
        """See the function `release`."""
        release(self.data, start, end)

    @property
    def name(self) -> str:
        """The file's name without folders and without the suffix of a compression."""
        return without_compression(Path(self.path).name)

    @property
    def place(self) -> str:
        """The path, absolute and without links, without the suffix of a compression; of a pack, whose paths are those
        of another machine, as it was named there."""
        return without_compression(self.path if self.answers.is_kept else os.path.realpath(self.path))

    def note_losses(self, report: Report) -> None:
        """Reports the part of the compressed data that is not in `data`."""
        if self.damage:
            report.note("compression_damaged", where=self.path, detail=f"{self.path}: {self.damage}")
        if self.limited:
            report.note("decompress_limited", where=self.path, detail=f"{self.path}: {self.limited}")


def release(data: memoryview, start: int, end: int) -> None:
    """Announces that these bytes are not needed for now: a mapped file's go out of this process's memory, and come
    back when they are read again. data: of a source, or of anything else, which stays as it is."""
    _advise(data, getattr(mmap, "MADV_DONTNEED", None), start, end)


def _advise(data: memoryview, advice: int | None, start: int, end: int) -> None:
    mapped = data.obj
    if not isinstance(mapped, mmap.mmap) or len(mapped) != len(data) or advice is None or end <= start:
        return
    start -= start % mmap.PAGESIZE
    # An older system does not know the advice, and does without it.
    with suppress(OSError):
        mapped.madvise(advice, start, end - start)


def open_source(path: str, limit: Limit = DEFAULT_LIMIT) -> Source:
    """Maps the file at `path`, or reads standard input for "-".

    A recording can also be a folder: its file `data`, with data.0 and so on as parts. limit: of what is compressed.

    Raises UsageError if it cannot be read, FormatError if it is empty or its compression is damaged at the start.
    """
    try:
        if path == "-":
            with told_while_waiting("standard input"):
                await_bytes(sys.stdin.buffer)
            return source_of(path, sys.stdin.buffer.read(), limit)
        if is_recording_folder(Path(path)):
            numbered = sorted(Path(path).glob(f"{FOLDER_MAIN}.[0-9]*"), key=lambda p: (len(p.name), p.name))
            files = [Path(path) / FOLDER_MAIN, *numbered]
            data, *parts = (memoryview(_mapped_regular(str(file))) for file in files)
            return Source(path, data, parts=tuple(parts), limit=limit)
        with opened(path) as file:
            return source_of(path, mapped(file), limit)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"{path}: cannot be read: {reason}") from None


def written_at(source: Source) -> float:
    """Returns when the input was last written to, in seconds since 1970: now for what is no file."""
    try:
        return os.stat(source.path).st_mtime
    except OSError:
        return time.time()


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """Opens the file. Of a FIFO or a device there is something to read, or its end; until there is, a warning says that
    it is waited for."""
    with ExitStack() as kept:
        if stat.S_ISREG(os.stat(path).st_mode):
            file = kept.enter_context(open(path, "rb"))
        else:
            with told_while_waiting(path):
                file = kept.enter_context(open(path, "rb"))  # a FIFO's writer is waited for
                await_bytes(file)
        yield file


def await_bytes(file: BinaryIO) -> None:
    """Waits until the first byte is there, or the end. Nothing is taken away."""
    if isinstance(file, io.BufferedReader) and not file.seekable():
        file.peek(1)


@contextmanager
def told_while_waiting(name: str) -> Iterator[None]:
    """Logs a warning if what is inside takes a while. name: of what is waited for."""
    import logging

    said = f"traceferry: waiting for {shown(name)}: nothing has been written to it yet"
    timer = threading.Timer(SILENT_SECONDS, logging.getLogger("traceferry").warning, [said])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def paths_beside(sources: Iterable[Source], folders: Sequence[str], name: str) -> Iterator[tuple[str, str]]:
    """Yields (path, what the user has named there) of a file that belongs to recordings: beside these, then in the
    folders of symbols."""
    for source in sources:
        if source.path != "-" and not source.answers.is_kept:
            if source.bring is not None:
                source.bring(name)
            yield str(Path(source.path).parent / name), source.path
    for folder in folders:
        yield str(Path(folder) / name), folder


def is_recording_folder(path: Path) -> bool:
    """Whether `perf record --threads` wrote it."""
    return os.path.isfile(path / FOLDER_MAIN)


def source_of(path: str, raw: bytes | mmap.mmap, limit: Limit) -> Source:
    """Returns the file's bytes, decompressed. Raises FormatError if there are none."""
    if len(raw) == 0:
        raise FormatError("the file is empty", 0, path=path)
    if not is_compressed(memoryview(raw)[:4]):
        return Source(path, memoryview(raw), limit=limit)
    data = bytearray()
    try:
        outcome = decompress(raw, data, limit.of(len(raw)))
    except MemoryError:
        n, data = len(data), bytearray()
        advice = f"--decompress-limit {max(n >> 22, 1)}M reads no more than a quarter of that"
        raise ExhaustedError(f"{path}: memory ran out when {n} bytes were decompressed; {advice}") from None
    if not data:
        reason = outcome.damage or outcome.limited or "it is empty"
        raise FormatError(f"the compression holds no data: {reason}", 0, path=path)
    return Source(path, memoryview(data).toreadonly(), outcome.damage, outcome.limited, limit=limit)


def mapped(file: BinaryIO) -> bytes | mmap.mmap:
    """A pipe cannot be mapped, nor can an empty file."""
    if file.seekable() and file.seek(0, os.SEEK_END):
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return file.read()


def open_regular(path: str) -> BinaryIO:
    """Raises RefusedError for anything else, without opening it: a FIFO could wait, a device act."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise RefusedError("it is not a regular file")
    file = open(os.open(path, OPEN_FLAGS), "rb")  # noqa: SIM115 - for the caller to close
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # replaced in between
        file.close()
        raise RefusedError("it is not a regular file")
    return file


def _mapped_regular(path: str) -> bytes | mmap.mmap:
    with open_regular(path) as file:
        return mapped(file)
