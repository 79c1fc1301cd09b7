"""Recordings of the Mono log profiler (.mlpd): data versions 1 to 17, header versions 0.1 to 3.0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from traceferry.files.source import Source
from traceferry.importers.mono.magic import MAGIC
from traceferry.model import TraceBuilder
from traceferry.reading import Companion, ImportContext, MappedFile


def sniff(head: memoryview) -> bool:
    return bytes(head[: len(MAGIC)]) == MAGIC


class Reading(NamedTuple):
    """Logs with valid headers. companions: a log refers to no other file."""

    sources: Sequence[Source]
    companions: Sequence[Companion] = ()
    counter: None = None
    span: None = None
    mapped: Sequence[MappedFile] = ()

    def add_to(self, trace: TraceBuilder, context: ImportContext) -> None:
        from traceferry.importers.mono.decode import read_log
        from traceferry.importers.mono.map import to_trace

        to_trace([read_log(source, context.options.adds_calls) for source in self.sources], trace)


def read(sources: Sequence[Source]) -> Reading:
    """Raises FormatError for an invalid header or an unknown version."""
    from traceferry.importers.mono.decode import header_of

    for source in sources:
        header_of(source)
    return Reading(sources)


def dump(source: Source, offset: int) -> Iterator[str]:
    """Yields the events from `offset` on, one per line, in file order."""
    from traceferry.importers.mono.records import described

    return described(source, offset)
