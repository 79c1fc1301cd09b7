"""Text of perf script: samples of all events, with their stacks, as perf prints them by default or with -F."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceferry.files.source import Source
from traceferry.importers.perfscript.layout import described, sniffed
from traceferry.model import TraceBuilder
from traceferry.reading import ImportContext, OneByOne


def sniff(head: memoryview) -> bool:
    """Whether its first lines that are no comments are a sample and, if it has a stack, a frame."""
    return sniffed(head)


def read(sources: Sequence[Source]) -> OneByOne:
    return OneByOne(sources, _to_trace)


def _to_trace(source: Source, trace: TraceBuilder, context: ImportContext) -> None:
    from traceferry.importers.perfscript.map import to_trace

    to_trace(source, trace)


def dump(source: Source, offset: int) -> Iterator[str]:
    """Yields the samples from `offset` on, one per line: what perf says of each, and how many frames it has."""
    return described(source, offset)
