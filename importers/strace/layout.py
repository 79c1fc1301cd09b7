"""Layout: what the lines of strace are.

Source: strace(1) and src/strace.c of strace 6.1: options -f, -t, -tt, -ttt, -r, -T, -k, -Y, -i, -n.

    9786  1795850162.115469 openat(AT_FDCWD, "/etc/ld.so.cache", O_RDONLY) = 3 <0.000044>
    9786  1795850162.115513 read(3,  <unfinished ...>
    9787  1795850162.115602 --- SIGCHLD {si_signo=SIGCHLD, si_pid=9786} ---
    9786  1795850162.115640 <... read resumed>"", 4096) = 0 <0.000120>
    9786  1795850162.115700 +++ exited with 0 +++

Without -o the thread is written as [pid  9786], and not before there are several; with -Y it is followed by its name,
9786<bash>. Times are seconds since 1970, or of the day, or with -r since the line before. Behind a call, -k writes its
stack, the innermost frame first:

     > /usr/lib/x86_64-linux-gnu/libc.so.6(__read+0x14) [0xf7834]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Literal, NamedTuple

from traceferry.common.patterns import compiled_later
from traceferry.files.source import Source

HEAD, FIRST_LINES = 1 << 16, 16
# So much text is read at a time.
PIECE = 1 << 23
# Longer lines are cut by strace itself, unless somebody asks for all of each string.
LONGEST = 1 << 20
NS_OF_S = 10**9
NS_OF_DAY = 24 * 3600 * NS_OF_S
_THREAD = (
    rb"(?:\[pid +(?P<pid>\d{1,10})(?:<(?P<comm>[^>]{0,64})>)?\] +|(?P<tid>\d{1,10})(?:<(?P<name>[^>]{0,64})>)? +)?"
)
_TIME = (
    rb"(?:(?P<day>\d\d:\d\d:\d\d)|(?P<seconds>\d{1,12})(?=\.))(?:\.(?P<fraction>\d{1,9}))?"
    rb"(?: \(\+ {0,16}\d{1,12}\.\d{1,9}\))? "
)
# -n: the number of the call; -i: where the instruction is.
_PLACE = rb"(?:\[[ \d?]{4,8}\] )?(?:\[[0-9a-f?]{8,16}\] )?"
LINE = compiled_later(rb" {0,16}" + _THREAD + rb" {0,16}" + _TIME + _PLACE + rb"(?P<rest>.*)")
# Of the number of a thread, or a time.
BEGINNINGS = tuple(b"[0123456789"[at : at + 1] for at in range(11))
_RESULT = rb"\s{1,256}= (?P<result>.*?)(?: <(?P<lasted>\d{1,9}\.\d{1,9})>)?"
CALL = compiled_later(rb"(?P<name>[a-z_]\w{0,63})\((?P<arguments>.*)\)" + _RESULT)
UNFINISHED = compiled_later(rb"(?P<name>[a-z_]\w{0,63})\((?P<arguments>.*?),? {0,2}<unfinished \.\.\.>")
RESUMED = compiled_later(rb"<\.\.\. (?P<name>[a-z_]\w{0,63}) resumed>,? ?(?P<arguments>.*)\)" + _RESULT)
# Of a call that ended with its thread.
NEVER_RESUMED = compiled_later(
    rb"<\.\.\. (?P<name>[a-z_]\w{0,63}) resumed>(?P<arguments>.*?) ?<unfinished \.\.\.>\)\s{1,256}= (?P<result>\?)"
)
SIGNAL = compiled_later(rb"--- (?P<name>SIG\w{1,32}) (?P<arguments>.*) ---|--- (?P<stop>stopped by SIG\w{1,32}) ---")
EXIT = compiled_later(rb"\+\+\+ (?P<arguments>(?:exited with|killed by|superseded by) .{0,64}) \+\+\+")
_FRAME = compiled_later(rb" > (?P<file>[^(]{0,4096})(?:\((?P<name>.{0,4096}?)(?:\+0x[0-9a-f]+)?\))? \[0x[0-9a-f]+\]")

# Also in the middle of a line, whose rest is the next one.
ATTACHED = compiled_later(rb"(?P<before>.*?)strace: Process (?P<pid>\d{1,10}) attached", re.DOTALL)

Kind = Literal["call", "unfinished", "resumed", "signal", "exit"]


class Line(NamedTuple):
    """A line. tid: -1 is unknown; comm: of the thread, "" is unknown; ts: ns, since 1970, midnight or the line before;
    is_of_day, is_relative: which; name: of the call or signal; lasted: ns, -1 is unknown."""

    tid: int
    comm: str
    ts: int
    is_of_day: bool
    is_relative: bool
    kind: Kind
    name: str
    arguments: str
    result: str = ""
    lasted: int = -1


# By how the text behind the time begins; of the rest, the call that is unfinished ends so, whatever its text is.
_KINDS: dict[bytes, tuple[tuple[Kind, re.Pattern[bytes]], ...]] = {
    b"<": (("resumed", NEVER_RESUMED), ("resumed", RESUMED)), b"-": (("signal", SIGNAL),), b"+": (("exit", EXIT),),
}  # fmt: skip
_CALLS: tuple[tuple[Kind, re.Pattern[bytes]], ...] = (("call", CALL),)
_UNFINISHED: tuple[tuple[Kind, re.Pattern[bytes]], ...] = (("unfinished", UNFINISHED),)
# Seconds since the line before are few: -r prints them with blanks in front.
MOST_RELATIVE = 10**8


def line_of(text: bytes) -> Line | None:
    """Returns what a line says; None: nothing known, or it has no time."""
    found = LINE.fullmatch(text) if len(text) <= LONGEST else None
    if found is None:
        return None
    rest = found["rest"]
    kinds = _KINDS.get(rest[:1]) or (_UNFINISHED if rest.endswith(b"<unfinished ...>") else _CALLS)
    kind, said = next(((kind, match) for kind, pattern in kinds if (match := pattern.fullmatch(rest))), (None, None))
    if kind is None or said is None:
        return None
    parts = said.groupdict()
    fraction = int((found["fraction"] or b"0").ljust(9, b"0"))
    seconds = _of_day(found["day"]) if found["day"] else int(found["seconds"])
    return Line(
        int(found["pid"] or found["tid"] or -1), _text(found["comm"] or found["name"]), seconds * NS_OF_S + fraction,
        found["day"] is not None, found["day"] is None and seconds < MOST_RELATIVE, kind,
        _text(parts.get("name") or parts.get("stop")), _text(parts.get("arguments")), _text(parts.get("result")),
        _ns(parts.get("lasted")),
    )  # fmt: skip


def frame_of(text: bytes) -> tuple[str, str] | None:
    """Returns the file and the function, "" is unknown, of a line of a stack; None: it is another line."""
    found = _FRAME.fullmatch(text)
    return (_text(found["file"]), _text(found["name"])) if found is not None else None


def _of_day(text: bytes) -> int:
    hours, minutes, seconds = map(int, text.split(b":"))
    return 3600 * hours + 60 * minutes + seconds


def _ns(seconds: bytes | None) -> int:
    if seconds is None:
        return -1
    whole, _, fraction = seconds.partition(b".")
    return int(whole) * NS_OF_S + int(fraction.ljust(9, b"0"))


def _text(text: bytes | None) -> str:
    return (text or b"").decode("utf-8", "replace")


def lines(data: memoryview) -> Iterator[tuple[int, bytes]]:
    """Yields the offset and the text of each line."""
    at, rest = 0, b""
    while at < len(data):
        text = rest + bytes(data[at : at + PIECE])
        begin, at = at - len(rest), at + PIECE
        *whole, rest = text.split(b"\n")
        for line in whole:
            yield begin, line.rstrip(b"\r")
            begin += len(line) + 1
    if rest:
        yield len(data) - len(rest), rest.rstrip(b"\r")


def sniffed(head: memoryview) -> bool:
    """Whether one of the first lines is one with a time: output of the program may stand in front."""
    return any(
        # Most files are something else: the patterns are not needed for those.
        text.lstrip()[:1] in BEGINNINGS and line_of(text) is not None
        for _, text in islice(lines(head[:HEAD]), FIRST_LINES)
    )


def described(source: Source, offset: int) -> Iterator[str]:
    for at, text in lines(source.data):
        line = line_of(text)
        if at >= offset and line is not None:
            yield f"{at:#010x} " + " ".join(f"{name}={value!r}" for name, value in line._asdict().items())
