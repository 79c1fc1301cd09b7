"""Profiles of pprof: profile.proto, as Go's runtime/pprof and many others write it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceferry.files.source import Source
from traceferry.importers.pprof.layout import is_old, is_profile
from traceferry.model import TraceBuilder
from traceferry.reading import ImportContext, OneByOne


def sniff(head: memoryview) -> bool:
    """Whether it begins with fields of a profile, or is one of an older format, which is refused by name."""
    return is_profile(head) or is_old(head)


def read(sources: Sequence[Source]) -> OneByOne:
    return OneByOne(sources, _to_trace)


def _to_trace(source: Source, trace: TraceBuilder, context: ImportContext) -> None:
    from traceferry.importers.pprof.map import to_trace

    to_trace(source, trace, context)


def dump(source: Source, offset: int) -> Iterator[str]:
    """Yields the fields from `offset` on, one per line."""
    from traceferry.importers.pprof.layout import described

    return described(source, offset)
