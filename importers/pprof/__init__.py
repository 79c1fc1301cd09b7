"""Profiles of pprof: profile.proto, as Go's runtime/pprof and many others write it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from traceferry.files.source import Source
from traceferry.importers.pprof.layout import is_old, is_profile
from traceferry.model import TraceBuilder
from traceferry.reading import Companion, ImportContext


def sniff(head: memoryview) -> bool:
    """Whether it begins with fields of a profile, or is one of an older format, which is refused by name."""
    return is_profile(head) or is_old(head)


class Reading(NamedTuple):
    """Profiles that are not gone through yet."""

    sources: Sequence[Source]
    companions: Sequence[Companion] = ()
    counter: None = None

    def add_to(self, trace: TraceBuilder, context: ImportContext) -> None:
        """Raises FormatError for what is no profile."""
        from traceferry.importers.pprof.map import to_trace

        for source in self.sources:
            to_trace(source, trace, context)


def read(sources: Sequence[Source]) -> Reading:
    return Reading(sources)


def dump(source: Source, offset: int) -> Iterator[str]:
    """Yields the fields from `offset` on, one per line."""
    from traceferry.importers.pprof.layout import described

    return described(source, offset)
