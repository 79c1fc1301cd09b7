"""jitdump: what JIT compilers tell perf about their code; versions 1 and 2, with samply's extensions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from traceferry.files.source import Source
from traceferry.importers.jitdump.magic import BEGINS

if TYPE_CHECKING:
    from traceferry.importers.jitdump.decode import Dump
    from traceferry.model import TraceBuilder
    from traceferry.reading import Companion, ImportContext, MappedFile


def sniff(head: memoryview) -> bool:
    if bytes(head[:4]) not in BEGINS:
        return False
    from traceferry.importers.jitdump.layout import read_header

    return read_header(head) is not None


class Reading(NamedTuple):
    """Decoded dumps. companions: the source files that a dump names are none, since people share what is converted."""

    dumps: Sequence[Dump]
    companions: Sequence[Companion] = ()
    counter: None = None
    span: None = None
    mapped: Sequence[MappedFile] = ()

    def add_to(self, trace: TraceBuilder, context: ImportContext) -> None:
        from traceferry.importers.jitdump.map import to_trace

        to_trace(self.dumps, trace, context)


def read(sources: Sequence[Source]) -> Reading:
    """Decodes the dumps of one recording. Raises FormatError for an invalid header."""
    from traceferry.importers.jitdump.decode import read_dump

    return Reading([read_dump(source) for source in sources])


def began_at(source: Source) -> int | None:
    """Returns the time of the first record, in ns; None where there is none, or times are a processor's counter. The
    header's is on a clock of the writer's choice."""
    from traceferry.importers.jitdump.layout import read_header, structs

    header = read_header(source.data)
    if header is None or header.has_ticks:
        return None
    record, at = structs(header.byte_order).record, header.total_size
    return int(record.unpack_from(source.data, at)[2]) if at + record.size <= len(source.data) else None


def was_called(source: Source, name: str) -> bool:
    """Returns whether a file can have had this name when it was recorded: it has the number of its process."""
    from traceferry.importers.jitdump.layout import may_be_called, read_header

    header = read_header(source.data)
    return header is not None and may_be_called(header, name)


def dump(source: Source, offset: int) -> Iterator[str]:
    """Yields the records from `offset` on, one per line."""
    from traceferry.importers.jitdump.records import records

    yield from records(source, offset)
