"""Speedscope's own files: profiles of samples and of events, several in a file, of every version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceferry.files.json_text import JsonText, is_json, members_seen
from traceferry.files.source import Source
from traceferry.model import TraceBuilder
from traceferry.reading import ImportContext, OneByOne

SCHEMA = b"speedscope"
SEEN = 200


def sniff(head: memoryview) -> bool:
    """Whether the outermost object refers to the format's schema, or has the members of such a file."""
    if not is_json(head):
        return False
    seen, _ = members_seen(head)
    schema = bytes(head[seen["$schema"] : seen["$schema"] + SEEN]).partition(b",")[0] if "$schema" in seen else b""
    return SCHEMA in schema or ("shared" in seen and not {"meta", "threads"} & set(seen) and _has_profile(head, seen))


def _has_profile(head: memoryview, seen: dict[str, int]) -> bool:
    return bool({"profiles", "profile"} & set(seen)) and "frames" in members_seen(head, seen["shared"])[0]


def read(sources: Sequence[Source]) -> OneByOne:
    return OneByOne(sources, _to_trace)


def _to_trace(source: Source, trace: TraceBuilder, context: ImportContext) -> None:
    from traceferry.importers.speedscope.map import to_trace

    to_trace(source, trace)


def dump(source: Source, offset: int) -> Iterator[str]:
    """Yields the members of the outermost object from `offset` on, with offset and size."""
    return JsonText(source.data, source.path).described(offset)
