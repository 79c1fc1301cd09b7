"""The errors that callers may have to catch: any other exception is a bug."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class TraceferryError(Exception):
    """The base class of all deliberate errors of this project."""


class UsageError(TraceferryError):
    """The request cannot be carried out: a missing input, an unknown format, an output that cannot be written.

    Parameters
    ----------
    message : str
        One sentence.
    lines : sequence of str, default ()
        Shown below the message, as they stand: a place in an expression.
    """

    def __init__(self, message: str, lines: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.lines = tuple(lines)


class ExhaustedError(UsageError):
    """The memory that this process may use is not enough, or what is read refers to itself too deeply."""


@contextmanager
def within_limits() -> Iterator[None]:
    """Raises ExhaustedError where what is done inside ends for want of memory, or of depth of calls."""
    try:
        yield
    except MemoryError:
        raise ExhaustedError(
            "memory ran out: this needs more than the process may use; --range, --thread, or --decompress-limit for a "
            "compressed input, make do with less"
        ) from None
    except RecursionError:
        raise ExhaustedError("what is read is nested more deeply than this process can follow") from None


class FormatError(TraceferryError):
    """The bytes cannot be read at all: an unreadable header, an unsupported version, symbols of another program.

    Parameters
    ----------
    message : str
        One sentence.
    offset : int, optional
        Where in the decompressed input, in bytes.
    record : str, default ""
        The record that was being read, in the terms of the format's specification.
    path : str, default ""
        The file's name.

    Attributes
    ----------
    excerpt : bytes
        Up to 32 bytes around the offset, where `load` raises the error.
    excerpt_at : int
        The offset of the first of them, in bytes.
    """

    def __init__(self, message: str, offset: int | None = None, record: str = "", *, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.record = record
        self.path = path
        self.excerpt = b""
        self.excerpt_at = 0

    def __str__(self) -> str:
        place = f" at offset {self.offset}" if self.offset is not None else ""
        record = f" ({self.record})" if self.record else ""
        name = f"{self.path}: " if self.path else ""
        return f"{name}{self.message}{place}{record}"

    def hex_lines(self) -> list[str]:
        """Returns the excerpt as hex, 16 bytes a line, the offset in front."""
        return [
            f"{self.excerpt_at + i:#010x}  {self.excerpt[i : i + 16].hex(' ')}" for i in range(0, len(self.excerpt), 16)
        ]


class OtherContentError(FormatError):
    """The bytes are known to be something else than a recording: nothing says that they are damaged."""
