"""What a case is, and what is measured of most of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

START = 1_000_000_000
CODE, KERNEL = 0x7F00_0000_0000, 0xFFFF_FFFF_8000_0000
INPUT, OUTPUT, SEVERAL, BESIDE = "INPUT", "OUTPUT", "SEVERAL", "BESIDE"
Run = Callable[[Path], object]


class Case(NamedTuple):
    """make: the input of n elements; beside: further files that are made of n, and several: files whose number is n;
    runs: what is measured of it, arguments of the command, in which INPUT, OUTPUT and names of files beside are
    replaced, SEVERAL by all files of `several`, BESIDE by the folder of all; or a function."""

    name: str
    suffix: str
    x: int
    make: Callable[[int], bytes]
    runs: Mapping[str, list[str] | Run]
    beside: Mapping[str, Callable[[int], bytes]] = {}
    several: Callable[[int], Iterator[tuple[str, bytes]]] | None = None


def converted(*options: str) -> dict[str, list[str] | Run]:
    """By every exporter, and summarised. The page: without what the other exporters write into it."""
    alone = ["--without", "firefox", "--without", "perfetto"]
    outputs: dict[str, list[str]] = {"json.gz": [], "gecko.json": [], "pftrace": [], "html": alone}
    runs: dict[str, list[str] | Run] = {
        suffix: ["convert", INPUT, *options, *more, "-o", f"{OUTPUT}.{suffix}", "--quiet"]
        for suffix, more in outputs.items()
    }
    return runs | {"info": ["info", INPUT, *options]}


CONVERTED = converted()
TO_GSYM: dict[str, list[str] | Run] = {
    "gsym": ["symbols", INPUT, "-o", f"{OUTPUT}.gsym"],
    "look-ups": ["symbols", INPUT, "--lookup", "-"],
}
