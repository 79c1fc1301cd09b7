"""LLVM XRay logs: flight data recorder (FDR) mode versions 1 to 5 and basic mode versions 1 to 3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.importers.xray.layout import HEADER_SIZE, TYPE_FDR, Header, read_header
from traceferry.importers.xray.log_names import places_of_program
from traceferry.model import TraceBuilder
from traceferry.reading import Companion, ImportContext

if TYPE_CHECKING:
    from traceferry.common.report import Report
    from traceferry.importers.xray.functions import Object
    from traceferry.importers.xray.log import Log
    from traceferry.importers.xray.programs import Programs


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

        to_trace(self.sources, self.logs, self._objects(context, trace.report), trace)

    def _objects(self, context: ImportContext, report: Report) -> list[list[Object]]:
        """Returns the binaries of each log: of a pack, those that it holds."""
        from traceferry.importers.xray.packed import packed_objects, unpacked_objects

        found = _Binaries(self.sources, self.logs, context, report)
        objects = [
            source.answers.ask("program", report, partial(found.of, nth), packed_objects, unpacked_objects)
            for nth, source in enumerate(self.sources)
        ]
        self.sources[0].answers.ask("unused symbols", report, found.note_unused)
        return objects


class _Binaries:
    """Finds the binaries of logs. What reads ELF files takes longer to import than a small log to convert."""

    def __init__(self, sources: Sequence[Source], logs: Sequence[Log], context: ImportContext, report: Report) -> None:
        self._sources, self._logs = sources, logs
        self._context = context
        self._report = report
        self._found: list[Object] = []
        self._asked: dict[str, Object] = {}

    @cached_property
    def _programs(self) -> Programs:
        from traceferry.importers.xray.programs import Programs

        return Programs(self._context, self._report)

    def of(self, nth: int) -> list[Object]:
        """Returns the binaries of a log, which keep what is asked of them where that goes into a pack."""
        source, log = self._sources[nth], self._logs[nth]
        places = places_of_program(source, self._context.options.search_working_folder)
        if not self._context.symbols and not places:
            return []
        objects = self._programs.objects_of(source, log, places)
        self._found += objects
        if not source.answers.keeps:
            return objects
        from traceferry.importers.xray.packed import asked

        return [
            self._asked.setdefault(f"{one.number} {one.binary.path}", asked(one, source.answers.keeps_whole))
            for one in objects
        ]

    def note_unused(self) -> None:
        if self._found or self._context.symbols:
            self._programs.note_unused(self._found)


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
