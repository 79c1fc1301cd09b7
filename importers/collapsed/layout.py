"""Layout: what the lines of collapsed stacks are.

A line is `NAME;NAME;... NUMBER`, the outermost function first; names may hold spaces. Other lines are comments: with #
or // in front, as perf script's "# traced" and austin's "# mode: wall", or damaged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.common.patterns import compiled_later
from traceferry.files.known_texts import refuse_known
from traceferry.files.source import Source
from traceferry.importers.collapsed._lines import split_lines
from traceferry.model import Array

NUMBER = compiled_later(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
# Not of functions that are called by numbers, as those of programs without names are: main;function 15 1500.
TWO_NUMBERS = compiled_later(rb".*[^ ](?<![; ]function) \d+ \d+ *")
SAID_DIFFERENCE = (
    "each line has two numbers: this is the difference of two profiles, as difffolded.pl writes it; give both profiles "
    "themselves: traceferry compare BEFORE AFTER"
)
HEAD = 1 << 16
# So much text is split at a time.
PIECE = 1 << 23
# Of a head, so many lines at least, or all, are stacks.
STACKS_SEEN, PART_SEEN = 64, 0.6
MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be", b"\xef\xbb\xbf": "utf-8"}


class Lines(NamedTuple):
    """Lines that are no comments. offsets: int64, where they begin; numbers: float64, NaN of what is no stack; ends:
    int64, where each line's names end; begin, end: int64, of each name in the text."""

    offsets: Array
    numbers: Array
    ends: Array
    begin: Array
    end: Array


class Text(NamedTuple):
    """data: in UTF-8; encoding, begin: of the file, and where its text begins."""

    data: memoryview
    encoding: str
    begin: int

    def lines(self) -> Iterator[Lines]:
        """Yields the lines, so many at a time that memory stays bounded."""
        at = 0
        while at >= 0:
            at, line, numbers, names = split_lines(self.data, at, PIECE)
            for row in np.flatnonzero(numbers < 0).tolist():
                said = bytes(self.data[line[row, 1] : line[row, 2]])
                numbers[row] = float(said) if NUMBER.fullmatch(said) else np.nan
            numbers[np.diff(line[:, 3], prepend=0) == 0] = np.nan
            yield Lines(line[:, 0], numbers, *(np.ascontiguousarray(one) for one in (line[:, 3], *names.T)))

    def offset(self, at: int) -> int:
        """Returns where a byte of the text stands in the file."""
        if self.encoding == "utf-8":
            return self.begin + at
        return self.begin + len(bytes(self.data[:at]).decode("utf-8", "replace").encode(self.encoding))


def text_of(data: memoryview) -> Text:
    mark = bytes(data[:3])
    encoding, begin = next(
        ((name, len(known)) for known, name in MARKS.items() if mark.startswith(known)), ("utf-8", 0)
    )
    if encoding == "utf-8":
        return Text(data[begin:], encoding, begin)
    return Text(memoryview(bytes(data[begin:]).decode(encoding, "replace").encode()), encoding, begin)


def sniffed(head: memoryview) -> bool:
    """Whether most lines are stacks, and one of them has several functions. Of a text that is cut, the last line does
    not count."""
    text = text_of(head[:HEAD])
    begin = bytes(text.data)
    if b"\0" in begin or begin.decode("utf-8", "replace").count("\ufffd") > len(begin) / 100:
        return False
    lines = next(text.lines())
    n = len(lines.numbers) - (len(head) >= HEAD and b"\n" in begin and not begin.endswith(b"\n"))
    are_stacks = ~np.isnan(lines.numbers[: min(n, STACKS_SEEN)])
    sizes = np.diff(lines.ends, prepend=0)[: len(are_stacks)]
    return int(are_stacks.sum()) > PART_SEEN * len(are_stacks) and bool(np.any(are_stacks & (sizes > 1)))


def check(source: Source) -> None:
    """Raises FormatError for text of another known kind, and for what has no stack."""
    refuse_known(source)
    if _is_difference(source.data):
        raise FormatError(SAID_DIFFERENCE, 0, path=source.path)
    if not any(np.any(~np.isnan(lines.numbers)) for lines in text_of(source.data).lines()):
        raise FormatError("no line is a stack and a number, as in main;work 12", 0, path=source.path)


def _is_difference(data: memoryview) -> bool:
    """Whether each of the first lines has two numbers, as difffolded.pl of FlameGraph writes them."""
    begin = text_of(data[:HEAD]).data
    lines = [line for line in bytes(begin).splitlines()[:STACKS_SEEN] if line.strip() and not line.startswith(b"#")]
    return len(lines) > 1 and all(map(TWO_NUMBERS.fullmatch, lines[: -1 if len(data) > HEAD else None]))


def described(source: Source, offset: int) -> Iterator[str]:
    """Yields the lines from `offset` on: the number, and the functions."""
    text = text_of(source.data)
    for lines in text.lines():
        first = 0
        for at, number, stop in zip(lines.offsets.tolist(), lines.numbers.tolist(), lines.ends.tolist(), strict=True):
            where, begin, first = text.offset(at), first, stop
            if where >= offset:
                names = (
                    bytes(text.data[lines.begin[n] : lines.end[n]]).decode("utf-8", "replace")
                    for n in range(begin, stop)
                )
                said = "not a stack" if np.isnan(number) else f"{number:g} {' ; '.join(names)}"
                yield f"{where:#010x} {said}"
