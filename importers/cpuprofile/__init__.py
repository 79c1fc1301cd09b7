"""CPU profiles of V8: of Chrome's DevTools, of `node --cpu-prof`, of any version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceferry.files.json_text import JsonText, is_json, members_seen
from traceferry.files.source import Source
from traceferry.model import TraceBuilder
from traceferry.reading import ImportContext, OneByOne

NODES, HEAD, CALL_FRAME = "nodes", "head", "callFrame"
BESIDE = {"samples", "timeDeltas", "timestamps", "startTime", "endTime"}


def sniff(head: memoryview) -> bool:
    """Whether the outermost object has nodes, or their root, and what belongs to samples."""
    if not is_json(head):
        return False
    seen = members_seen(head)[0]
    members = set(seen)
    if {NODES, HEAD} & members and BESIDE & members:
        return True
    # The first heap profiles have nothing else.
    return HEAD in members and CALL_FRAME in members_seen(head, seen[HEAD])[0]


def read(sources: Sequence[Source]) -> OneByOne:
    return OneByOne(sources, _to_trace)


def _to_trace(source: Source, trace: TraceBuilder, context: ImportContext) -> None:
    from traceferry.importers.cpuprofile.map import to_trace

    to_trace(source, trace)


def dump(source: Source, offset: int) -> Iterator[str]:
    """Yields the members of the outermost object from `offset` on, with offset and size."""
    return JsonText(source.data, source.path).described(offset)
