"""Recordings of the Mono log profiler (.mlpd): data versions 1 to 17, header versions 0.1 to 3.0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traceferry.importers.mono.layout import MAGIC
from traceferry.io.source import Source
from traceferry.model import Trace
from traceferry.registry import Companion, Options

if TYPE_CHECKING:
    from traceferry.importers.mono.decode import Log


def sniff(head: memoryview) -> bool:
    return bytes(head[: len(MAGIC)]) == MAGIC


@dataclass(frozen=True)
class Reading:
    """Decoded logs. companions: a log refers to no other file."""

    logs: Sequence[Log]
    companions: Sequence[Companion] = ()
    counter: None = None

    def add_to(self, trace: Trace, options: Options) -> None:
        from traceferry.importers.mono.map import to_trace

        to_trace(self.logs, trace)


def read(sources: Sequence[Source]) -> Reading:
    """Reads the logs once. Raises FormatError for an invalid header or an unknown version."""
    from traceferry.importers.mono.decode import read_log

    return Reading([read_log(source) for source in sources])


def dump(source: Source, offset: int) -> Iterator[str]:
    """The events from `offset` on, one per line, in file order."""
    from traceferry.importers.mono.records import describe_header, events

    if offset < 4:
        yield describe_header(source)
    yield from events(source, offset)
