"""Source files that a recording names, in a copy of the folder where the program was built."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from urllib.parse import unquote, urlsplit

from traceferry.common.report import Report
from traceferry.files.named_files import is_inside, read_named

MAX_TEXT = 64 << 20


def local_path(path: str) -> str:
    """Returns the path of a path or a file URL; "" if it is neither."""
    try:
        return unquote(urlsplit(path).path) if path.startswith("file://") else path
    except ValueError:  # no host is written like that
        return ""


def real_file(path: str) -> str:
    """Returns where a path leads, all links resolved; "" where that is no file."""
    try:
        real = os.path.realpath(path)
        return real if os.path.isfile(real) else ""
    except (OSError, ValueError):  # not a path
        return ""


def text_in_roots(path: str, roots: Sequence[str]) -> tuple[str, str] | None:
    """Returns the file and its text: the file at its path; then the one at the end of its path, the longest first.

    roots: folders, absolute and without links, in one of which it must be.
    """
    for candidate in _candidates(local_path(path), roots):
        real = real_file(candidate)
        root = next((root for root in roots if real and is_inside(real, root)), None)
        text = read_named(real, Report(), at_most=MAX_TEXT, beside=root) if root is not None else None
        if text is not None:
            return real, text
    return None


def _candidates(path: str, roots: Sequence[str]) -> Iterator[str]:
    if os.path.isabs(path):
        yield path
    pure = PureWindowsPath(path) if "\\" in path else PurePosixPath(path)
    parts = [part for part in pure.parts if part not in (pure.anchor, "..")]
    for nth in range(len(parts)):
        yield from (os.path.join(root, *parts[nth:]) for root in roots)
