"""LLVM XRay: logs of flight data recorder (FDR) mode versions 1 to 5 and basic mode versions 1 to 3, and profiles of
profiling mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from traceferry.common.errors import FormatError, UsageError
from traceferry.files.source import Source
from traceferry.importers.xray.magic import TYPE_FDR, is_profile, may_be_log

if TYPE_CHECKING:
    from traceferry.common.report import Report
    from traceferry.importers.xray.functions import Object
    from traceferry.importers.xray.layout import Header
    from traceferry.importers.xray.log import Log, Recorded
    from traceferry.importers.xray.profile import Profile, ProfileHeader
    from traceferry.importers.xray.programs import Programs
    from traceferry.model import TraceBuilder
    from traceferry.reading import Companion, ImportContext, MappedFile

HEADER_OF_PROFILE = "XRayProfilingFileHeader"


def sniff(head: memoryview) -> bool:
    """Whether the bytes may be a log or a profile. Logs have no magic number: version and type must be valid, and the
    first record must be one."""
    if is_profile(head):
        return True
    if not may_be_log(head):
        return False
    # Most files are something else: what reads headers and records is not needed for them.
    from traceferry.importers.xray.layout import read_header
    from traceferry.importers.xray.records import first_record_is_plausible

    header = read_header(head)
    return header is not None and first_record_is_plausible(head, header)


class Reading(NamedTuple):
    """Decoded logs and profiles, each of its source. companions: these refer to no other file."""

    sources: Sequence[Source]
    files: Sequence[Log | Profile]
    companions: Sequence[Companion] = ()
    counter: None = None
    span: None = None
    mapped: Sequence[MappedFile] = ()

    def add_to(self, trace: TraceBuilder, context: ImportContext) -> None:
        """Raises FormatError for a binary that does not match."""
        from traceferry.importers.xray.functions import keep_objects
        from traceferry.importers.xray.log import Log
        from traceferry.importers.xray.map import add_logs
        from traceferry.timeline.ticks import MAX_FREQUENCY

        frequency = context.options.cycle_frequency
        if frequency is not None and not 0 < frequency <= MAX_FREQUENCY:
            raise UsageError(f"a counter that ticks at {frequency} Hz: it must be 1 to {MAX_FREQUENCY}")
        objects = self._objects(context, trace.report)
        files = list(zip(self.sources, self.files, objects, strict=True))
        logs = [(source, file, of_file) for source, file, of_file in files if isinstance(file, Log)]
        if logs:
            # What runs in one recording has one counter, which profiles read also where logs emulate it.
            of_logs = add_logs(logs, trace, frequency)
            frequency = of_logs if frequency is None else frequency
        for source, file, of_file in files:
            if not isinstance(file, Log):
                from traceferry.importers.xray.profile_map import add_profile

                add_profile(trace, source, file, of_file, frequency)
        keep_objects(trace, [one for of_file in objects for one in of_file])

    def _objects(self, context: ImportContext, report: Report) -> list[list[Object]]:
        """Returns the binaries of each file: of a pack, those that it holds."""
        from traceferry.importers.xray.packed import packed_objects, unpacked_objects

        found = _Binaries(self.sources, self.files, context, report)
        objects = [
            source.answers.ask("program", report, partial(found.of, nth), packed_objects, unpacked_objects)
            for nth, source in enumerate(self.sources)
        ]
        self.sources[0].answers.ask("unused symbols", report, found.note_unused)
        return objects


class _Binaries:
    """Finds the binaries of files. What reads ELF files takes longer to import than a small log to convert."""

    def __init__(
        self, sources: Sequence[Source], files: Sequence[Recorded], context: ImportContext, report: Report
    ) -> None:
        self._sources, self._files = sources, files
        self._context = context
        self._report = report
        self._found: list[Object] = []
        self._asked: dict[str, Object] = {}

    @cached_property
    def _programs(self) -> Programs:
        from traceferry.importers.xray.programs import Programs

        return Programs(self._context, self._report)

    def of(self, nth: int) -> list[Object]:
        """Returns the binaries of a file, which keep what is asked of them where that goes into a pack."""
        from traceferry.importers.xray.log_names import places_of_program

        source, file = self._sources[nth], self._files[nth]
        places = places_of_program(source, self._context.options.search_working_folder)
        if not self._context.symbols and not places:
            return []
        objects = self._programs.objects_of(source, file, places)
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
    """Decodes the files of one recording. Raises FormatError for an invalid header."""
    from traceferry.importers.xray.basic import read_basic
    from traceferry.importers.xray.fdr import scan_fdr, to_log
    from traceferry.importers.xray.forks import separate

    headers = {i: _header(source) for i, source in enumerate(sources) if not is_profile(source.data)}
    fdr = {
        i: scan_fdr(sources[i].data, header, sources[i].path)
        for i, header in headers.items()
        if header.type == TYPE_FDR
    }
    separate(list(fdr.values()))

    def file_of(i: int, source: Source) -> Log | Profile:
        if i in fdr:
            return to_log(fdr[i])
        if i in headers:
            return read_basic(source.data, headers[i], source.path)
        from traceferry.importers.xray.profile import read_profile

        return read_profile(source.data, _profile_header(source), source.path)

    return Reading(sources, [file_of(i, source) for i, source in enumerate(sources)])


def dump(source: Source, offset: int) -> Iterator[str]:
    """Yields the records from `offset` on, one per line, in file order."""
    from traceferry.importers.xray.layout import HEADER_SIZE
    from traceferry.importers.xray.profile import describe_profile_header, profile_records
    from traceferry.importers.xray.records import describe_header, records

    if is_profile(source.data):
        of_profile = _profile_header(source)
        if offset < HEADER_SIZE:
            yield describe_profile_header(of_profile)
        yield from profile_records(source.data, of_profile, offset)
        return
    header = _header(source)
    if offset < HEADER_SIZE:
        yield describe_header(header)
    yield from records(source.data, header, offset)


def _header(source: Source) -> Header:
    from traceferry.importers.xray.layout import HEADER_SIZE, read_header

    header = read_header(source.data)
    if header is not None:
        return header
    if len(source.data) < HEADER_SIZE:
        message = f"{len(source.data)} bytes are too few for an XRay header"
    else:
        version, kind = (int.from_bytes(source.data[at : at + 2], "little") for at in (0, 2))
        message = f"not a supported XRay log: version {version}, type {kind} "
        message += "(supported: FDR versions 1 to 5, basic versions 1 to 3, profiles)"
    raise FormatError(message, 0, "XRayFileHeader", path=source.path)


def _profile_header(source: Source) -> ProfileHeader:
    from traceferry.importers.xray.profile import VERSION, read_profile_header

    header = read_profile_header(source.data)
    if header is None:
        message = f"{len(source.data)} bytes are too few for the header of an XRay profile"
        raise FormatError(message, 0, HEADER_OF_PROFILE, path=source.path)
    if header.version != VERSION:
        message = f"not a supported XRay profile: version {header.version:#x} (supported: {VERSION:#x})"
        raise FormatError(message, 8, HEADER_OF_PROFILE, path=source.path)
    return header
