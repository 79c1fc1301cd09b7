"""Collapsed stacks: a line for each call path, its functions between semicolons, and a number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from traceferry.files.known_texts import known_text
from traceferry.files.source import Source
from traceferry.importers.collapsed.layout import check, described, sniffed
from traceferry.model import TraceBuilder
from traceferry.reading import ImportContext, OneByOne


def sniff(head: memoryview) -> bool:
    """Whether its first lines are stacks with numbers, and no text of another kind."""
    return sniffed(head) and not known_text(head)[0]


def read(sources: Sequence[Source]) -> OneByOne:
    """Raises FormatError for other text."""
    for source in sources:
        check(source)
    return OneByOne(sources, partial(_to_trace, parts=_parts_of(sources) if len(sources) > 1 else 1))


def _parts_of(sources: Sequence[Source]) -> int:
    from traceferry.importers.collapsed.map import parts_of

    return parts_of(sources)


def _to_trace(source: Source, trace: TraceBuilder, context: ImportContext, parts: int) -> None:
    from traceferry.importers.collapsed.map import to_trace

    to_trace(source, trace, parts)


def dump(source: Source, offset: int) -> Iterator[str]:
    """Yields the lines from `offset` on: the number, and the functions."""
    return described(source, offset)
