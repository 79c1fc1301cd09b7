"""Layout: what the lines of collapsed stacks are.

A line is `NAME;NAME;... NUMBER`, the outermost function first; names may hold spaces. Other lines are comments: with #
or // in front, as perf script's "# traced" and austin's "# mode: wall", or damaged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from traceferry.common.errors import FormatError
from traceferry.files.known_texts import refuse_known
from traceferry.files.source import Source

NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
COMMENTS = ("#", "//")
# austin's metrics of one line: time, whether the thread was idle, and memory.
AUSTIN = re.compile(r"# austin: \S+")
HEAD = 1 << 16
# Of a head, so many lines at least, or all, are stacks.
STACKS_SEEN, PART_SEEN = 64, 0.6
MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be", b"\xef\xbb\xbf": "utf-8"}


class Line(NamedTuple):
    """offset: in the text; names: the functions, none of a line that is no stack; number: its text."""

    offset: int
    names: list[str]
    number: str


def encoding_of(head: memoryview) -> tuple[str, int]:
    """Returns the encoding, and how many bytes tell it."""
    begin = bytes(head[:3])
    return next(((name, len(mark)) for mark, name in MARKS.items() if begin.startswith(mark)), ("utf-8", 0))


def split(line: str) -> tuple[str, str]:
    """Returns (the functions, the number) of a line; the number is "" if it is no stack. Of several numbers between
    commas, as austin has them, it is the first."""
    path, _, number = line.rstrip().rpartition(" ")
    if not path:
        path, _, number = line.rstrip().rpartition("\t")
    number = number.partition(",")[0]
    path = path.strip()
    return (path, number) if path and NUMBER.fullmatch(number) and not path.startswith(COMMENTS) else ("", "")


def sniffed(head: memoryview) -> bool:
    """Whether most lines are stacks, and one of them has several functions. Of a text that is cut, the last line does
    not count."""
    encoding, skipped = encoding_of(head)
    is_cut = len(head) >= HEAD
    text = bytes(head[skipped:HEAD]).decode(encoding, "replace")
    if "\0" in text or text.count("\ufffd") > len(text) / 100:
        return False
    lines = [line for line in text.splitlines()[: -1 if is_cut and "\n" in text else None] if line.strip()]
    lines = [line for line in lines if not line.lstrip().startswith(COMMENTS)][:STACKS_SEEN]
    stacks = [path for path, number in map(split, lines) if number]
    return len(stacks) > PART_SEEN * len(lines) and any(";" in path for path in stacks)


def check(source: Source) -> None:
    """Raises FormatError for text of another known kind, and for what has no stack."""
    refuse_known(source)
    if not any(line.names for line in lines_of(source.data)):
        raise FormatError("no line is a stack and a number, as in main;work 12", 0, path=source.path)


def lines_of(data: memoryview) -> Iterator[Line]:
    """Yields the lines that are no comments."""
    encoding, skipped = encoding_of(data)
    # UTF-8 is split as bytes, so that offsets are known.
    if encoding == "utf-8":
        at, whole = skipped, bytes(data[skipped:])
        for raw in whole.split(b"\n"):
            yield from _line(at, raw.decode("utf-8", "replace"))
            at += len(raw) + 1
        return
    at = skipped
    for text in bytes(data[skipped:]).decode(encoding, "replace").split("\n"):
        yield from _line(at, text)
        at += 2 * len(text) + 2


def _line(at: int, text: str) -> Iterator[Line]:
    path, number = split(text)
    if number:
        yield Line(at, path.split(";"), number)
    elif text.strip() and not text.lstrip().startswith(COMMENTS):
        yield Line(at, [], "")
