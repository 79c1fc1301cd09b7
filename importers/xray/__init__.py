"""LLVM XRay logs: flight data recorder (FDR) mode versions 1 to 5 and basic mode versions 1 to 3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.importers.xray.layout import HEADER_SIZE, TYPE_FDR, Header, read_header
from traceferry.model import TraceBuilder
from traceferry.reading import Companion, ImportContext

if TYPE_CHECKING:
    from traceferry.importers.xray.log import Log
    from traceferry.symbolication.interface import Symbols


def sniff(head: memoryview) -> bool:
    """Whether the bytes may be a log. There is no magic: version and type must be valid, and the first record must be
    one."""
    from traceferry.importers.xray.records import first_record_is_plausible

    header = read_header(head)
    return header is not None and first_record_is_plausible(head, header)


@dataclass(frozen=True)
class Reading:
    """Decoded logs. companions: an XRay log refers to no other file."""

    sources: Sequence[Source]
    logs: Sequence[Log]
    companions: Sequence[Companion] = ()
    counter: None = None

    def add_to(self, trace: TraceBuilder, context: ImportContext) -> None:
        """Raises FormatError for a binary that does not match."""
        from traceferry.importers.xray.map import to_trace

        to_trace(self.sources, self.logs, _open_symbols(context.symbols), trace)


def read(sources: Sequence[Source]) -> Reading:
    """Decodes the logs, which are files of one recording. Raises FormatError for an invalid header."""
    from traceferry.importers.xray.basic import read_basic
    from traceferry.importers.xray.fdr import scan_fdr, to_log
    from traceferry.importers.xray.forks import separate

    headers = [_header(source) for source in sources]
    fdr = {i: scan_fdr(source.data, headers[i]) for i, source in enumerate(sources) if headers[i].type == TYPE_FDR}
    separate(list(fdr.values()))
    logs = [
        to_log(fdr[i], source.path) if i in fdr else read_basic(source.data, headers[i], source.path)
        for i, source in enumerate(sources)
    ]
    return Reading(sources, logs)


def _open_symbols(sources: Sequence[Source]) -> list[Symbols]:
    if not sources:
        return []
    # What reads ELF files takes longer to import than a small log to convert.
    from traceferry.symbolication.choose import open_symbols

    return [open_symbols(source) for source in sources]


def dump(source: Source, offset: int) -> Iterator[str]:
    """Yields the records from `offset` on, one per line, in file order."""
    from traceferry.importers.xray.records import describe_header, records

    header = _header(source)
    if offset < HEADER_SIZE:
        yield describe_header(header)
    yield from records(source.data, header, offset)


def _header(source: Source) -> Header:
    header = read_header(source.data)
    if header is not None:
        return header
    if len(source.data) < HEADER_SIZE:
        message = f"{len(source.data)} bytes are too few for an XRay header"
    else:
        version, kind = (int.from_bytes(source.data[at : at + 2], "little") for at in (0, 2))
        message = f"not a supported XRay log: version {version}, type {kind} "
        message += "(supported: FDR versions 1 to 5, basic versions 1 to 3)"
    raise FormatError(message, 0, "XRayFileHeader", path=source.path)
