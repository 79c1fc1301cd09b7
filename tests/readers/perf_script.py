"""Reads what `perf script` prints, and the stacks of expected.json, into the same shape.

    comm pid/tid [cpu] seconds.micros: period event: text
    <tab> address symbol+0xoffset (dso)

perf leaves out pid/, [cpu] and the period as its options say; without call chains the one frame stands in the first
line. Addresses are relative to the dso wherever perf knows one (in a `jitted-PID-INDEX.so` of perf inject the code
begins at 0x80), times are cut to microseconds, Java names are demangled.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

UNKNOWN = "[unknown]"

# Comms have spaces and digits; a number before the last pid is the comm's.
_HEAD = re.compile(
    r"(?P<comm>\S.*?|)\s+(?:(?P<pid>-?\d+)/)?(?P<tid>-?\d+)\s+(?:\[(?P<cpu>\d+|-\d+)\]\s+)?"
    r"(?P<seconds>\d+)\.(?P<fraction>\d{6,9}):\s+(?:(?P<period>\d+)\s+)?(?P<event>\S+?):(?:\s+(?P<text>.*))?"
)
# Symbols have spaces and parentheses, dsos too; the offset is the last one in front of a parenthesis.
_FRAME = re.compile(
    r"\s*(?P<ip>[0-9a-f]+) (?:"
    r"(?P<unknown>\[unknown\]) \((?P<unknown_dso>.*)\)"
    r"|(?P<symbol>.*)\+0x(?P<offset>[0-9a-f]+) \((?P<dso>.*)\)"
    r"|(?P<bare>.*) \((?P<bare_dso>.*)\)"
    r")"
)


class Frame(NamedTuple):
    """A frame; `offset` is None where perf prints none. `ip` is "" in the stacks of expected.json."""

    ip: str
    symbol: str
    offset: int | None
    dso: str

    def plain(self) -> tuple[str, int | None, str]:
        """What both sources tell: symbol, offset and the dso's file name."""
        return self.symbol, self.offset, PurePosixPath(self.dso).name


@dataclass(slots=True)
class Sample:
    """`pid` is None where perf prints the tid alone, `cpu` where it knows none; `frames` begin with the leaf.

    `text` is a tracepoint's. `ns` has three digits more than `us` with `perf script --ns`.
    """

    comm: str
    pid: int | None
    tid: int
    us: int
    event: str
    frames: list[Frame] = field(default_factory=list)
    cpu: int | None = None
    period: int | None = None
    text: str = ""
    ns: int = 0


@dataclass(slots=True)
class ExpectedStack:
    """One of the stacks in expected.json: the sample's place in the order of time, and its frames.

    `kinds` says of each frame whether it is of the JIT (j), of the kernel (k) or of the user (u).
    """

    index: int
    pid: int
    tid: int
    us: int
    frames: list[Frame]
    kinds: list[str]


@lru_cache(100_000)
def frame_of(line: str) -> Frame | None:
    """The frame in a line, or in the rest of one."""
    found = _FRAME.fullmatch(line.rstrip())
    if not found:
        return None
    ip = found["ip"]
    if found["unknown"]:
        return Frame(ip, UNKNOWN, None, found["unknown_dso"])
    if found["offset"]:
        return Frame(ip, found["symbol"], int(found["offset"], 16), found["dso"])
    return Frame(ip, found["bare"], None, found["bare_dso"])


def samples(lines: Iterable[str]) -> Iterator[Sample]:
    """The samples of `perf script`, one after another; a line that is nothing raises ValueError.

    Sideband records (--show-mmap-events) must not be among them.
    """
    sample: Sample | None = None
    for number, line in enumerate(lines, start=1):
        line = line.rstrip("\n")
        if not line or line.startswith("#"):
            continue
        if line.startswith("\t"):
            frame = frame_of(line)
            if frame is None or sample is None:
                raise ValueError(f"line {number} is not a frame: {line!r}")
            sample.frames.append(frame)
            continue
        if sample is not None:
            yield sample
        sample = _sample(line)
        if sample is None:
            raise ValueError(f"line {number} is not a sample: {line!r}")
    if sample is not None:
        yield sample


def _sample(line: str) -> Sample | None:
    found = _HEAD.fullmatch(line.strip())
    if not found:
        return None
    text = found["text"] or ""
    frame = frame_of(text) if text else None
    return Sample(
        comm=found["comm"],
        pid=int(found["pid"]) if found["pid"] else None,
        tid=int(found["tid"]),
        us=int(found["seconds"]) * 1_000_000 + int(found["fraction"][:6]),
        event=found["event"],
        frames=[frame] if frame else [],
        cpu=int(found["cpu"]) if found["cpu"] and int(found["cpu"]) >= 0 else None,
        period=int(found["period"]) if found["period"] else None,
        text="" if frame else text.strip(),
        ns=int(found["seconds"]) * 1_000_000_000 + int(found["fraction"].ljust(9, "0")),
    )


def read(path: str | Path) -> list[Sample]:
    """All samples of a file that `perf script` wrote."""
    with open(path, encoding="utf-8", errors="surrogateescape") as lines:
        return list(samples(lines))


def expected_stacks(path: str | Path) -> list[ExpectedStack]:
    """The 50 stacks of an expected.json beside a perf.data (captures/EXPECTED.md)."""
    expected: dict[str, Any] = json.loads(Path(path).read_text())
    return [
        ExpectedStack(
            index=stack["index"],
            pid=stack["pid"],
            tid=stack["tid"],
            us=stack["us"],
            frames=[Frame("", symbol, offset, dso) for symbol, offset, dso, _ in stack["leaf_first"]],
            kinds=[kind for *_, kind in stack["leaf_first"]],
        )
        for stack in expected["stacks"]
    ]
