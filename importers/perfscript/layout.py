"""Layout: what the lines of perf script are.

Source: tools/perf/builtin-script.c and tools/perf/util/evsel_fprintf.c of Linux 6.12.

A sample is a line, then a line for each frame, the innermost first, and an empty line:

    node  4435/4437  [001] 11222.526559:    1001001 cpu-clock:pppH:
    <tab>    7f00c2a1 Function::inlined(int) (inlined)
    <tab>    7f00c2a1 Function::call(int)+0x11 (/usr/lib/libwork.so)
      work.cc:12

simpleperf (report_sample.py) puts a tab behind the command and the address, and blanks in front of it:

    Gecko<tab>25122 [007] 115539.936601:<tab><tab>1000000 task-clock:u:
            b3cea6c4<tab>Lock::unlock() (/system/lib/libc.so)

Without callchains the only frame stands behind the event, as do the fields of a tracepoint. Which parts there are, the
option -F says; the command and the thread always have to be there. Lines of a frame's source are those of -F +srcline.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from traceferry.common.patterns import compiled_later
from traceferry.files.source import Source

HEAD = 1 << 16
MOST_WARNINGS = 16
MICROSECONDS = 6  # digits
# So much text is read at a time, if a sample ends within it.
PIECE = 1 << 23
# Longer lines are none of perf's: what is not known to end soon is not looked through over and over.
LONGEST = 1 << 16
# comm is a thread's name: the kernel has 15 bytes for it.
_THREAD = rb"\s{0,64}(?P<comm>\S.{0,63}?|)\s{1,64}(?:(?P<pid>-?\d{1,10})/\s*)?(?P<tid>-?\d{1,10})"
# What stands behind the time of records that are no samples, with --show-mmap-events and the like.
RECORD = b"PERF_RECORD_"
# 146 years in ns: what is later is not a time of a recording.
LATEST = 1 << 62
_EVENT = rb"(?:(?P<period>\d{1,19})\s+)?(?P<event>(?!" + RECORD + rb")[^\s(]+?):"
SAMPLE = compiled_later(
    _THREAD + rb"\s+(?:\[(?P<cpu>-?\d{1,5})\]\s+)?(?:[a-zA-Z.#][\w.#]{2,5}\s+)?"
    rb"(?P<seconds>\d{1,10})\.(?P<fraction>\d{1,9}):\s*(?:" + _EVENT + rb"(?=\s|$))?\s*(?P<rest>.*)"
)
# As with -F comm,tid,ip,sym. No fields follow, so that it is not taken for other text.
UNTIMED = compiled_later(_THREAD + rb"(?:\s+\[(?P<cpu>\d{1,5})\])?(?:\s+" + _EVENT + rb")?\s*")
# Of a line that does not begin with a tab.
SPACED_FRAME = compiled_later(rb" {1,32}[0-9a-f]{1,16}\t")
ADDRESS = compiled_later(rb"[0-9a-f]{1,16}")
# What perf writes in the place of a file for a function that is inlined into that of the next line.
INLINED = "inlined"
SOURCE = compiled_later(rb"\s+(?P<path>\S.*):(?P<line>\d{1,9})(?: \(discriminator \d+\))?\s*")
# Modifiers behind the name of an event, which is no tracepoint's then.
MODIFIERS = compiled_later(r"[^:]+:[ukhGHpPSDIWeb]+")


class FrameLine(NamedTuple):
    """The line of a frame. address: hexadecimal; name: without the offset; file: b"" is unknown."""

    address: bytes
    name: bytes
    file: bytes


def is_frame(line: bytes) -> bool:
    """Whether a line behind a sample is that of a frame."""
    return line.startswith(b"\t") or SPACED_FRAME.match(line) is not None


def frame_of(line: bytes) -> FrameLine | None:
    """Returns what the line of a frame says; None: it is another line."""
    stripped = line.strip()
    address, _, text = stripped.partition(b" ")
    if b"\t" in address:
        address, _, text = stripped.partition(b"\t")
    if ADDRESS.fullmatch(address) is None or not text:
        return None
    name, file = _with_file(text)
    return FrameLine(address, _without_offset(name), _without_offset(file))


def _with_file(text: bytes) -> tuple[bytes, bytes]:
    """Returns the name and the file in parentheses behind it. Names have parentheses, too, and paths have, as those of
    deleted files. -F ip,sym leaves out the files."""
    if not text.endswith(b")"):
        return text, b""
    at = text.find(b" (/")
    at = at if at >= 0 else text.rfind(b" ([")
    if at < 0:
        at = text.rfind(b" (")
        if b" " in text[at + 1 :] or b"(" in text[at + 2 :]:
            return text, b""
    return (text[:at], text[at + 2 : -1]) if at >= 0 else (text, b"")


def _without_offset(text: bytes) -> bytes:
    plain, _, offset = text.rpartition(b"+0x")
    return plain if plain and ADDRESS.fullmatch(offset) else text


class Header(NamedTuple):
    """The line of a sample. pid, cpu, ts, period: -1 is unknown; event: "" is unknown; rest: what follows it."""

    comm: str
    pid: int
    tid: int
    cpu: int
    ts: int
    period: int
    event: str
    rest: bytes


def header_of(line: bytes) -> Header | None:
    """Returns what the line of a sample says; None: it is another line."""
    found = (SAMPLE.fullmatch(line) or UNTIMED.fullmatch(line)) if len(line) <= LONGEST else None
    if found is None:
        return None
    said = found.groupdict()
    fraction = said.get("fraction", b"")
    # simpleperf has written its microseconds without zeros in front.
    fraction = fraction.rjust(MICROSECONDS, b"0") if b"\t" in line[: found.end("tid")] else fraction
    ts = int(said["seconds"]) * 10**9 + int(fraction.ljust(9, b"0")) if "seconds" in said else -1
    if ts > LATEST:
        return None
    return Header(
        said["comm"].decode("utf-8", "replace"), _number(said["pid"]), int(said["tid"]), _number(said["cpu"]), ts,
        _number(said["period"]), (said["event"] or b"").decode("utf-8", "replace"), said.get("rest", b""),
    )  # fmt: skip


def has_frame(header: Header) -> bool:
    """Whether a frame stands behind the event: what stands there may be fields of a tracepoint, too."""
    frame = frame_of(header.rest)
    return frame is not None and frame.file != b""


def _number(digits: bytes | None) -> int:
    return int(digits) if digits is not None else -1


def is_tracepoint(event: str) -> bool:
    return ":" in event and "/" not in event and MODIFIERS.fullmatch(event) is None


def pieces(data: memoryview) -> Iterator[tuple[int, bytes]]:
    """Yields the offset and the text of whole samples, so many at a time that memory stays bounded."""
    at = 0
    while at < len(data):
        text = bytes(data[at : at + PIECE])
        if at + len(text) < len(data):
            end = text.rfind(b"\n\n") + 2
            end = end if end > 1 else text.rfind(b"\n") + 1
            text = text[:end] if end else text
        yield at, text
        at += len(text)


def sniffed(head: memoryview) -> bool:
    """Whether a sample is among its first lines, behind comments of --header and warnings."""
    lines = [line for line in bytes(head[:HEAD]).splitlines() if line.strip() and not line.startswith(b"#")]
    return any(_is_sample(*pair) for pair in pairwise([*lines[: MOST_WARNINGS + 2], b""]))


def _is_sample(line: bytes, following: bytes) -> bool:
    header = header_of(line) if b"\0" not in line else None
    if header is None:
        return False
    if is_frame(following):
        return frame_of(following) is not None
    return has_frame(header) or _is_next(header, following)


def _is_next(header: Header, line: bytes) -> bool:
    """Whether another sample of an event follows: tracepoints without stacks."""
    following = header_of(line)
    return bool(header.event) and header.ts >= 0 and following is not None and bool(following.event)


def described(source: Source, offset: int) -> Iterator[str]:
    """Yields the samples from `offset` on."""
    shown, n_frames = "", 0
    for begin, text in pieces(source.data):
        at = begin
        for line in text.split(b"\n"):
            if is_frame(line):
                n_frames += 1
            elif header := header_of(line):
                if shown:
                    yield f"{shown} frames={n_frames}"
                words = (f"{name}={value!r}" for name, value in header._asdict().items() if name != "rest")
                shown = f"{at:#010x} {' '.join(words)}" if at >= offset else ""
                n_frames = int(has_frame(header))
            at += len(line) + 1
    if shown:
        yield f"{shown} frames={n_frames}"
