"""The traces that the tests of the exporters convert: real recordings, and built logs for what those lack."""

from collections.abc import Callable
from pathlib import Path

from builders.xray import Fdr
from recordings import binaries_of, loaded, path_of
from streams import NS, START, fdr

import traceferry
from traceferry.model import Trace

RECORDINGS = [
    "fdr-c19-pie-pool.xray", "fdr-c19-pie-pool-ring.xray", "fdr-c19-pie-recurse.xray",
    "fdr-c19-pie-except.xray", "fdr-c19-pie-events.xray", "fdr-c19-pie-typed.xray", "fdr-c22-dso.xray",
    "basic-c19-pie-pool.xray", "basic-c19-pie-typed.xray", "fdr-c19-pie-pool-tsc.v1-be.xray",
]  # fmt: skip


def no_records() -> Fdr:
    return fdr()


def gaps() -> Fdr:
    return fdr("A 100 a 500 B b 20 C D d c", "200 A a")


def not_balanced() -> Fdr:
    """Unwound, open at start, lost, open at end."""
    return fdr("b A B C a A c a D E", "A b")


def no_duration() -> Fdr:
    """Calls of 0 ns, alone and inside others, and a tick at which everything happens."""
    log = Fdr(frequency=NS)
    at_once = [log.enter(1, 10), log.enter(2, 0), log.exit(2, 0), log.enter(3, 0), log.exit(3, 0), log.exit(1, 0)]
    inside = [log.enter(1, 10), log.enter(2, 5), log.exit(2, 0), log.exit(1, 5)]
    return log.buffer(1, pid=1, records=[log.new_cpu(0, START), *at_once, *inside, *at_once])


def arguments_and_events() -> Fdr:
    log = Fdr(frequency=NS)
    pointer = 0xFFFF_FFFF_FFFF_FFF0
    records = [
        log.new_cpu(3, START), log.enter_arg(1, 0), log.argument(7), log.argument(pointer), log.argument(2**53 + 1),
        log.custom("grüße \"{}\" \\ \n".encode(), delta=5), log.custom(b"\x00\xff", delta=5), log.custom(b"", delta=5),
        log.typed(9, b"t", delta=5), log.new_cpu(4, START + 100), log.enter(2, 0), log.exit(2, 10), log.exit(1, 10),
    ]  # fmt: skip
    return log.buffer(1, pid=1, records=records)


def many_arguments() -> Fdr:
    """More than a viewer shows."""
    log = Fdr(frequency=NS)
    arguments = [log.argument(n) for n in range(40)]
    return log.buffer(1, pid=1, records=[log.new_cpu(0, START), log.enter_arg(1, 0), *arguments, log.exit(1, 9)])


def deep() -> Fdr:
    """Deeper than trace_processor keeps."""
    return fdr(" ".join(["A"] * 600 + ["a"] * 600))


def two_processes() -> Fdr:
    log = fdr("A a", "A B b a")
    log.buffer(5, pid=5, records=[log.new_cpu(0, START), log.enter(1, 0), log.exit(1, 70)])
    return log


BUILT = {f.__name__: f for f in (
    no_records, gaps, not_balanced, no_duration, arguments_and_events, many_arguments, deep, two_processes,
)}  # fmt: skip
NAMES = [*BUILT, *RECORDINGS]


def trace_named(name: str, load: Callable[..., Trace]) -> Trace:
    """load: the fixture of that name."""
    return load(BUILT[name]()) if name in BUILT else loaded(name)


def inputs_named(name: str, folder: Path) -> tuple[Path, list[Path]]:
    """(log, programs)"""
    if name not in BUILT:
        return path_of(name), binaries_of(name)
    log = folder / f"{name}.xray"
    log.write_bytes(BUILT[name]().bytes())
    return log, []


def saved(trace: Trace, path: Path) -> Path:
    traceferry.save(trace, path)
    return path
