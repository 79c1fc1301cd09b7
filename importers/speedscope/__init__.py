"""Speedscope's own files: profiles of samples and of events, several in a file, of every version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from traceferry.files.json_text import JsonText, is_json, members_seen
from traceferry.files.source import Source
from traceferry.model import TraceBuilder
from traceferry.reading import Companion, ImportContext

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


class Reading(NamedTuple):
    """Files whose outermost object is parsed when it is mapped."""

    sources: Sequence[Source]
    companions: Sequence[Companion] = ()
    counter: None = None

    def add_to(self, trace: TraceBuilder, context: ImportContext) -> None:
        """Raises FormatError for what is no such file."""
        from traceferry.importers.speedscope.map import to_trace

        for source in self.sources:
            to_trace(source, trace)


def read(sources: Sequence[Source]) -> Reading:
    return Reading(sources)


def dump(source: Source, offset: int) -> Iterator[str]:
    """Yields the members of the outermost object from `offset` on, with offset and size."""
    text = JsonText(source.data, source.path)
    for name, at in text.members(text.root()).items():
        if at.begin >= offset:
            yield f"{at.begin:#010x} size={at.end - at.begin} {name}"
