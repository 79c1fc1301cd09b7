"""Text of strace: system calls with their arguments, results and times, signals, exits, and with -k stacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from traceferry.files.source import Source
from traceferry.importers.strace.layout import described, sniffed
from traceferry.model import TraceBuilder
from traceferry.reading import Companion, ImportContext, MappedFile


def sniff(head: memoryview) -> bool:
    """Whether its first lines are system calls with times."""
    return sniffed(head)


class Logs(NamedTuple):
    """Logs of one run, as the files of -ff are."""

    sources: Sequence[Source]
    companions: Sequence[Companion] = ()
    counter: None = None
    span: None = None
    mapped: Sequence[MappedFile] = ()

    def add_to(self, trace: TraceBuilder, context: ImportContext) -> None:
        from traceferry.importers.strace.map import to_trace

        to_trace(self.sources, trace)


def read(sources: Sequence[Source]) -> Logs:
    return Logs(sources)


def dump(source: Source, offset: int) -> Iterator[str]:
    """Yields the lines from `offset` on: what was read of each."""
    return described(source, offset)
