"""Files that a recording names. Anyone may have written the recording, or have put a file where it points: only regular
files of limited size are read, not those of procfs, sysfs or devices, and only those whose owner is trusted."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Callable
from typing import BinaryIO

from traceferry.common.errors import FormatError
from traceferry.common.report import Report
from traceferry.files.decompress import DEFAULT_LIMIT, Limit, decompress, is_compressed
from traceferry.files.source import RefusedError, Source, mapped, open_regular, source_of

NEVER = ("/proc", "/sys", "/dev")
# What is decompressed before it is known whether a file is the right one: the headers and notes of an ELF file.
HEAD_SIZE = 1 << 20
MAX_SIZE = 8 << 30
# Why a file is refused that is read where the user names it.
IS_ANOTHERS = "is neither you nor root"


def open_named(
    path: str,
    report: Report,
    *,
    beside: str = "",
    is_right: Callable[[memoryview], bool] | None = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Source | None:
    """The file at a path that a recording names, decompressed; None if there is none, or it must not be read.

    The report lists opened files as `files_read`, rejected ones as `file_refused`.

    beside: an input or folder of the user's, in or beside which the path is: what its owner owns is trusted, too.
    is_right: asked with the beginning of the file, before more of it is decompressed; the content is what counts then,
    whatever its owner.
    """
    file = _open(path, report, MAX_SIZE, None if is_right is not None else beside)
    if file is None:
        return None
    try:
        with file:
            raw = mapped(file)
        if is_right is not None and not is_right(_head(raw)):
            return None
        return source_of(path, raw, limit)
    except (FormatError, OSError, ValueError):
        return None


def read_named(path: str, report: Report, *, at_most: int, beside: str = "") -> str | None:
    """Returns the text of a file of at most so many bytes, opened by `open_named`; what is not UTF-8 is replaced."""
    file = _open(path, report, at_most, beside)
    if file is None:
        return None
    with file:
        return file.read(at_most).decode("utf-8", "replace")


def is_empty(path: str) -> bool:
    """Whether there is a regular file of no bytes."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == 0


def is_inside(path: str, folder: str) -> bool:
    """Whether the path is the folder or inside it. Both absolute."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _open(path: str, report: Report, at_most: int, beside: str | None) -> BinaryIO | None:
    """Opens the file. beside: None where the owner does not matter."""
    try:
        file = _checked(path, at_most, beside)
    except (RefusedError, PermissionError) as error:
        report.note("file_refused", where=path, detail=f"{path}: {error.strerror or error}")
        return None
    except (OSError, ValueError):  # not there, or not a path
        return None
    report.note("files_read", where=path, detail=path)
    return file


def _checked(path: str, at_most: int, beside: str | None) -> BinaryIO:
    if os.name == "nt" and path.replace("\\", "/").startswith("//"):
        raise RefusedError("it is on another machine")
    real = os.path.realpath(path)
    if os.path.isdir(real):
        raise FileNotFoundError
    if os.path.exists(real) and any(is_inside(p, never) for p in (os.path.abspath(path), real) for never in NEVER):
        raise RefusedError(f"files in {', '.join(NEVER)} are not read")
    file = open_regular(real)
    try:
        status = os.fstat(file.fileno())
        if status.st_size > at_most:
            raise RefusedError(f"its {status.st_size} bytes are more than the {at_most} that are read")
        if beside is not None:
            _check_owners({status.st_uid, os.lstat(path).st_uid}, beside)
    except BaseException:
        file.close()
        raise
    return file


def _check_owners(owners: set[int], beside: str) -> None:
    """perf has the same rule. owners: of the file, and of the link that leads to it."""
    trusted = {0, getattr(os, "geteuid", lambda: 0)()}
    called_by = os.environ.get("SUDO_UID", "")
    if called_by.isdecimal():
        trusted.add(int(called_by))
    if not owners <= trusted and not (beside and owners == {os.stat(beside).st_uid}):
        raise RefusedError(f"its owner, user {max(owners - trusted)}, {IS_ANOTHERS}")


def _head(raw: bytes | mmap.mmap) -> memoryview:
    data = memoryview(raw)
    if not is_compressed(data[:4]):
        return data
    head = bytearray()
    decompress(raw, head, HEAD_SIZE)
    return memoryview(head)
