"""Many small recordings, nearly all different, of four formats: for tests of what takes thousands."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from builders.mono import VERSIONS, Log
from builders.perf_data import PerfData
from streams import fdr
from test_builders_mono import everything, named
from test_jitdump_bad import every_record

SERVICES, COMMITS = ("batch", "search", "web"), ("c1", "c2")
START, LIB = 1_000_000_000, 0x7F00_0000_0000


def xray(rng: random.Random) -> bytes:
    """Balanced calls of a few functions in one to three threads."""

    def stream() -> str:
        words: list[str] = []
        opened: list[str] = []
        for _ in range(rng.randrange(4, 120)):
            if opened and rng.random() < 0.5:
                words.append(opened.pop().lower())
            else:
                opened.append(rng.choice("ABCDEFGH"))
                words.append(opened[-1])
            words.append(str(rng.randrange(1000)))
        return " ".join(words + [letter.lower() for letter in reversed(opened)])

    return fdr(*(stream() for _ in range(rng.randrange(1, 4)))).bytes()


def perf(rng: random.Random) -> bytes:
    """Samples of some threads in a library without symbols, some of them lost."""
    data = PerfData(start=START).event(freq=1000).comm(7, 7, "server", ts=START)
    data.mmap2(7, 7, LIB, 0x10000, 0, "/usr/lib/libserver.so", ts=START)
    for nth in range(rng.randrange(1, 60)):
        chain = [LIB + 16 * rng.randrange(40) for _ in range(rng.randrange(1, 6))]
        data.sample(7, 7 + rng.randrange(3), START + 1000 * nth, chain[0], chain, period=1_000_000)
    return data.lost(rng.randrange(3), ts=START + 100_000).bytes()


def mono(rng: random.Random) -> bytes:
    """Every event of a version."""
    return everything(named(Log(rng.choice(VERSIONS), 8)))[0].bytes()


def jitdump(rng: random.Random) -> bytes:
    """A record of each kind."""
    return every_record(rng.choice((1, 2)), rng.choice("<>")).bytes()


KINDS: list[tuple[Callable[[random.Random], bytes], str]] = [
    (xray, "xray"), (xray, "xray"), (perf, "perf.data"), (perf, "perf.data"), (mono, "mlpd"), (jitdump, "dump"),
]  # fmt: skip


def recordings(n: int, damaged: int = 0) -> Iterator[tuple[str, bytes]]:
    """(name, content) of n recordings: SERVICE/COMMIT/hostN.SUFFIX. damaged: one in so many is cut inside its header,
    0 is none; it then ends with .bad and the suffix."""
    rng = random.Random(17)
    for nth in range(n):
        make, suffix = KINDS[nth % len(KINDS)]
        data = make(rng)
        folder = f"{rng.choice(SERVICES)}/{rng.choice(COMMITS)}"
        if damaged and nth % damaged == damaged - 1:
            yield f"{folder}/host{nth}.bad.{suffix}", data[:7]
        else:
            yield f"{folder}/host{nth}.{suffix}", data
