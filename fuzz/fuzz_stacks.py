"""Fuzzes the conversion of stacks with amounts: pprof, speedscope, cpuprofile, Hermes, collapsed text and that of
perf script and strace. Run by `make fuzz`.

The format is the one that detects the bytes, else the one that their checksum chooses. JSON inputs that begin with a
byte below 4 stand for a small file with other values at some places.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from common import ROOT, imported, modules_of, run

if TYPE_CHECKING:
    from traceferry.files.source import Source
    from traceferry.reading import Reading
    from traceferry.registry import ImporterModule

import sys
from dataclasses import replace

sys.path.insert(0, str(ROOT / "tests"))

from builders import stacks

NAMES = ("collapsed", "perfscript", "strace", "speedscope", "cpuprofile", "pprof", "hermes")
VALUES: tuple[Any, ...] = (
    None, -1, 0, 1, 2, 3, 255, 1 << 31, 1 << 63, 10**30, -(10**30), 0.5, -2.5, 1e300, "", "x", True, [], {}, [None],
    [0, 1], "O", "C", "bytes", "seconds", "none", "evented", "sampled", [[0, 1], [1]], {"frame": 1},
)  # fmt: skip


def bases() -> list[dict[str, Any]]:
    return [stacks.speedscope(), stacks.evented(), stacks.cpuprofile(), stacks.old_cpuprofile(), stacks.hermes()]


def changed(data: bytes) -> bytes:
    """The file that an input stands for: three bytes choose a place and a value, over and over."""
    root: Any = bases()[data[0]]
    places = list(_places(root))
    for at in range(1, min(len(data) - 2, 90), 3):
        holder, key = places[int.from_bytes(data[at : at + 2], "little") % len(places)]
        if isinstance(holder, dict) or key < len(holder):
            holder[key] = VALUES[data[at + 2] % len(VALUES)]
    return json.dumps(root).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key, one in list(value.items()) if isinstance(value, dict) else list(enumerate(value)):
        yield value, key
        if isinstance(one, (dict, list)):
            yield from _places(one)


class _All:
    """The importers as one."""

    def __init__(self) -> None:
        names = [f"traceferry.importers.{name}" for name in NAMES]
        modules = imported(module for name in names for module in modules_of(name))
        self._importers = [cast("ImporterModule", modules[name]) for name in names]

    def sniff(self, head: memoryview) -> bool:
        return any(one.sniff(head) for one in self._importers)

    def read(self, sources: Sequence[Source]) -> Reading:
        source = _made_of(sources[0])
        return self._of(source).read([source])

    def dump(self, source: Source, offset: int) -> Iterator[str]:
        source = _made_of(source)
        return self._of(source).dump(source, offset)

    def _of(self, source: Source) -> ImporterModule:
        chosen = self._importers[zlib.crc32(source.data) % len(NAMES)]
        return next((one for one in self._importers if one.sniff(source.data)), chosen)


def _made_of(source: Source) -> Source:
    data = bytes(source.data)
    return replace(source, data=memoryview(changed(data))) if data[:1] < b"\x05" and len(data) > 3 else source


def seeds() -> Iterator[tuple[str, bytes]]:
    for nth, base in enumerate(bases()):
        yield f"json-{nth}", json.dumps(base).encode()
        yield f"changes-{nth}", bytes([nth]) + bytes(range(60))
    yield "pprof", stacks.pprof()
    yield "collapsed", stacks.COLLAPSED.encode()
    yield "strace", stacks.STRACE.encode()
    yield "perfscript", stacks.PERF_SCRIPT.encode()
    yield "utf-16", b"\xff\xfe" + stacks.COLLAPSED.encode("utf-16-le")


if __name__ == "__main__":
    run("collapsed", seeds, lambda _: cast("ImporterModule", _All()))
