"""Collapsed stacks: a line for each call path, its functions between semicolons, and a number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from traceferry.files.known_texts import known_text
from traceferry.files.source import Source
from traceferry.importers.collapsed.layout import described, sniffed
from traceferry.model import TraceBuilder
from traceferry.reading import Companion, ImportContext


def sniff(head: memoryview) -> bool:
    """Whether its first lines are stacks with numbers, and no text of another kind."""
    return sniffed(head) and not known_text(head)[0]


class Reading(NamedTuple):
    """Texts that are not gone through yet."""

    sources: Sequence[Source]
    companions: Sequence[Companion] = ()
    counter: None = None

    def add_to(self, trace: TraceBuilder, context: ImportContext) -> None:
        from traceferry.importers.collapsed.map import to_trace

        for source in self.sources:
            to_trace(source, trace)


def read(sources: Sequence[Source]) -> Reading:
    """Raises FormatError for other text."""
    from traceferry.importers.collapsed.layout import check

    for source in sources:
        check(source)
    return Reading(sources)


def dump(source: Source, offset: int) -> Iterator[str]:
    """Yields the lines from `offset` on: the number, and the functions."""
    return described(source, offset)
