"""LLVM XRay logs: flight data recorder (FDR) mode versions 1 to 5 and basic mode versions 1 to 3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from converter.errors import FormatError
from converter.model import Trace
from converter.source import Source
from importers.xray.layout import HEADER_SIZE, TYPE_FDR, Header, read_header

if TYPE_CHECKING:
    from converter.symbols import Binary


def sniff(head: memoryview) -> bool:
    """There is no magic: version and type must make sense, and the first record must be one."""
    from importers.xray.records import first_record_is_plausible

    header = read_header(head)
    return header is not None and first_record_is_plausible(head, header)


def load(sources: Sequence[Source], trace: Trace, symbols: Sequence[Source]) -> None:
    """Adds the logs (the files of one recording) to the trace. symbols: the instrumented binaries.

    Raises FormatError for a header that is none, and for a binary that does not fit.
    """
    from importers.xray.basic import read_basic
    from importers.xray.fdr import scan_fdr, to_log
    from importers.xray.forks import separate
    from importers.xray.map import to_trace

    binaries = _open_binaries(symbols)
    headers = [_header(source) for source in sources]
    fdr = {i: scan_fdr(source.data, headers[i]) for i, source in enumerate(sources) if headers[i].type == TYPE_FDR}
    separate(list(fdr.values()))
    logs = [
        to_log(fdr[i], source.path) if i in fdr else read_basic(source.data, headers[i], source.path)
        for i, source in enumerate(sources)
    ]
    to_trace(sources, logs, binaries, trace)


def _open_binaries(symbols: Sequence[Source]) -> list[Binary]:
    if not symbols:
        return []
    # What reads ELF files takes longer to import than a small log to convert.
    from converter.symbols import Binary

    return [Binary(source) for source in symbols]


def dump(source: Source, offset: int) -> Iterator[str]:
    """The records from `offset` on, a line each, as they stand in the file."""
    from importers.xray.records import describe_header, records

    header = _header(source)
    if offset < HEADER_SIZE:
        yield describe_header(header)
    yield from records(source.data, header, offset)


def _header(source: Source) -> Header:
    header = read_header(source.data)
    if header is not None:
        return header
    if len(source.data) < HEADER_SIZE:
        error = FormatError(f"{len(source.data)} bytes are too few for an XRay header", 0, "XRayFileHeader")
    else:
        version, kind = (int.from_bytes(source.data[at : at + 2], "little") for at in (0, 2))
        error = FormatError(
            f"no XRay log that is known: version {version}, type {kind} "
            "(read are FDR versions 1 to 5 and basic versions 1 to 3)",
            0,
            "XRayFileHeader",
        )
    error.path = source.path
    raise error
