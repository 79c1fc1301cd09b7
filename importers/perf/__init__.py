"""perf.data of Linux perf: files, pipes and directories, compressed or not, in either byte order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.importers.perf.magic import MAGIC, MAGIC_BIG
from traceferry.model import TraceBuilder
from traceferry.reading import Companion, ImportContext, MappedFile

if TYPE_CHECKING:
    from traceferry.importers.perf.recording import Recording
    from traceferry.model import ClockKind
    from traceferry.timeline.ticks import Counter


def sniff(head: memoryview) -> bool:
    """Returns whether it begins with the magic, in either byte order."""
    return bytes(head[:8]) in (MAGIC, MAGIC_BIG)


class Reading:
    """Decoded recordings, each with its input."""

    def __init__(self, recordings: Sequence[tuple[Source, Recording]]) -> None:
        self.recordings = recordings

    @property
    def companions(self) -> Sequence[Companion]:
        """Returns the jitdumps that the recorded processes mapped."""
        ended = self._ended if self._clocks == {"monotonic"} else None
        files = dict.fromkeys((mapped.path, mapped.file) for mapped in self.mapped)
        return [Companion(path, "jitdump", ended, nth) for path, nth in files]

    @cached_property
    def mapped(self) -> Sequence[MappedFile]:
        from traceferry.importers.perf.dumps import mapped_dumps

        return mapped_dumps([recording for _, recording in self.recordings])

    @property
    def span(self) -> tuple[int, int] | None:
        """Returns when the first event and the last sample were recorded, in ns of CLOCK_MONOTONIC; None where they are
        on another clock. The scheduler's, which counts from the start of the machine, too, is taken for it where perf
        was attached: then nothing tells how far it is from that of the dumps."""
        found = self._timed
        is_attached = all(mapped.ts == 0 for mapped in self.mapped)
        if not found or not self._clocks <= {"monotonic", *(["sched"] if is_attached else [])}:
            return None
        begins, ends = zip(*((int(each.samples.ts[0]), int(each.samples.ts[-1])) for each in found), strict=True)
        return min((*begins, *_told(found))), max(ends)

    @property
    def _timed(self) -> list[Recording]:
        """Returns the recordings that have samples, with times."""
        return [recording for _, recording in self.recordings if len(recording.samples) and recording.is_timed]

    @property
    def _ended(self) -> int | None:
        """Returns the last time that the recordings tell; None where one of them tells none."""
        every = [recording for _, recording in self.recordings]
        if not all(recording.is_timed for recording in every):
            return None
        sampled = (int(recording.samples.ts[-1]) for recording in self._timed)
        return max((*sampled, *_told(every)), default=None)

    @property
    def _clocks(self) -> set[ClockKind]:
        from traceferry.importers.perf.clocks import clock_of

        return {clock_of(recording.events[0]) for _, recording in self.recordings}

    @property
    def counter(self) -> Counter | None:
        """TIME_CONV of a recording on the scheduler's clock, to which it converts."""
        plain = (recording for _, recording in self.recordings if not recording.events[0].use_clockid)
        return next((recording.counter for recording in plain if recording.counter is not None), None)

    def add_to(self, trace: TraceBuilder, context: ImportContext) -> None:
        from traceferry.importers.perf.map import to_trace

        to_trace(self.recordings, trace, context)


def _told(recordings: Sequence[Recording]) -> Iterator[int]:
    """Yields when processes began, ended, and mapped files."""
    return (one.ts for each in recordings for one in (*each.maps, *each.tasks) if one.ts > 0)


def read(sources: Sequence[Source]) -> Reading:
    """Decodes the recordings. Raises FormatError where there is no header, or no event is described."""
    return Reading([(source, _read(source)) for source in sources])


def _read(source: Source) -> Recording:
    from traceferry.importers.perf import decode

    try:
        parts = [(f"data.{nth}", part) for nth, part in enumerate(source.parts)]
        return decode.read(source.data, parts, source.limit)
    except FormatError as error:
        error.path = source.path
        raise


def dump(source: Source, offset: int) -> Iterator[str]:
    """Yields the records from `offset` on, one per line."""
    from traceferry.importers.perf.records import records

    yield from records(source.data, offset, limit=source.limit)
