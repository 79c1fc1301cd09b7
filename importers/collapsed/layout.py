"""Layout: what the lines of collapsed stacks are, and how text begins that is something else.

A line is `NAME;NAME;... NUMBER`, the outermost function first; names may hold spaces. Other lines are comments: with #
or // in front, as perf script's "# traced" and austin's "# mode: wall", or damaged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from traceferry.common.errors import FormatError
from traceferry.files.source import Source

NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
COMMENTS = ("#", "//")
# austin's metrics of one line: time, whether the thread was idle, and memory.
AUSTIN = re.compile(r"# austin: \S+")
HEAD = 1 << 16
# Of a head, so many lines at least, or all, are stacks.
STACKS_SEEN, PART_SEEN = 64, 0.6
MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be", b"\xef\xbb\xbf": "utf-8"}
# What else is a profile: how it begins, and what is said of it. CPython's profiling.sampling: as 3.15 writes
# them (Lib/profiling/sampling, Modules/_remote_debugging/binary_io.h); pstats is marshalled: a dictionary whose first
# key is a tuple of three.
OTHERS = (
    (re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!DOCTYPE svg[^>]*>\s*)?(?:<!--.{0,2000}?-->\s*)*<svg", re.S),
        "a picture (SVG), as of flamegraph.pl: give the collapsed stacks or the recording that it was made of"),
    (re.compile(
        rb"(?:#[^\n]*\n|\n)*[^\n;]{1,64}? +-?\d+(?:/\d+)? +(?:\[\d{1,5}\] +)?(?:\S+ +)?\d+\.\d+: +[^\n]*\n"
        rb"\s+[0-9a-f]+ "),
        "text of perf script: give the perf.data itself, or what stackcollapse-perf.pl makes of the text"),
    (re.compile(rb"# callgrind format|(?:version|creator|cmd|events|positions): [^\n]*\n(?:[a-z]+: ?[^\n]*\n)*\s*fn="),
        "a profile of callgrind, which is not read"),
    (re.compile(rb"HCAT|TACH"),
        "a binary profile of Python's profiling.sampling: give what python -m profiling.sampling replay FILE --gecko "
        "-o FILE.json makes of it"),
    (re.compile(rb"[{\xfb][)\xa9]\x03"),
        "a profile for Python's pstats, which has no stacks: record with python -m profiling.sampling run --gecko or "
        "--collapsed (Python 3.15), py-spy or perf"),
    (re.compile(rb"\{\"type\":\"meta\",\"v\":\d+,\"run_id\""),
        "a profile of Python's profiling.sampling as JSON lines, which has no stacks: record with --gecko or "
        "--collapsed"),
    (re.compile(rb"<!doctype html>[^\0]{1,300}?<title>Tachyon Profiler"),
        "a page of Python's profiling.sampling: record with --gecko or --collapsed, or with --binary, of which replay "
        "makes all"),
)  # fmt: skip


class Line(NamedTuple):
    """offset: in the text; names: the functions, none of a line that is no stack; number: its text."""

    offset: int
    names: list[str]
    number: str


def other_kind(head: memoryview) -> str:
    """Returns what is said of text that begins as another known kind, else ""."""
    begin = bytes(head[:HEAD])
    return next((said for pattern, said in OTHERS if pattern.match(begin)), "")


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
    if said := other_kind(source.data):
        raise FormatError(f"this is {said}", 0, path=source.path)
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
