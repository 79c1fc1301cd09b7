"""Perfetto traces, and what else Perfetto's trace_processor reads: Chrome JSON, systrace, Fuchsia, ART. trace_processor
reads them; its tables become a Trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from traceferry.files.source import Source
from traceferry.importers.perfetto.layout import is_other_trace, is_perfetto_trace, packets
from traceferry.model import TraceBuilder
from traceferry.reading import Companion, ImportContext, MappedFile


def sniff(head: memoryview) -> bool:
    """Whether it begins as a Perfetto trace, or as another format that only trace_processor reads."""
    return is_perfetto_trace(head) or is_other_trace(head)


class Reading(NamedTuple):
    """Traces that are not loaded yet."""

    sources: Sequence[Source]
    companions: Sequence[Companion] = ()
    counter: None = None
    span: None = None
    mapped: Sequence[MappedFile] = ()

    def add_to(self, trace: TraceBuilder, context: ImportContext) -> None:
        """Raises UsageError without trace_processor, FormatError for what it cannot read."""
        from traceferry.importers.perfetto.decode import read_tables
        from traceferry.importers.perfetto.map import to_trace

        for source in self.sources:
            to_trace(source, read_tables(source, context.options.trace_processor), trace)


def read(sources: Sequence[Source]) -> Reading:
    return Reading(sources)


def dump(source: Source, offset: int) -> Iterator[str]:
    """Yields the packets of a Perfetto trace from `offset` on, one per line; of other formats nothing is known here."""
    return packets(source.data, offset)
