"""Samples in Chrome's trace format: the profiles of Hermes, the JavaScript engine of React Native."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceferry.files.json_text import JsonText, is_json, members_seen
from traceferry.files.source import Source
from traceferry.model import TraceBuilder
from traceferry.reading import ImportContext, OneByOne

MEMBERS = {"samples", "stackFrames"}


def sniff(head: memoryview) -> bool:
    """Whether the outermost object has samples and a tree of frames."""
    return is_json(head) and set(members_seen(head)[0]) >= MEMBERS


def read(sources: Sequence[Source]) -> OneByOne:
    return OneByOne(sources, _to_trace)


def _to_trace(source: Source, trace: TraceBuilder, context: ImportContext) -> None:
    from traceferry.importers.hermes.map import to_trace

    to_trace(source, trace)


def dump(source: Source, offset: int) -> Iterator[str]:
    """Yields the members of the outermost object from `offset` on, with offset and size."""
    return JsonText(source.data, source.path).described(offset)
