"""Profiles of the Firefox Profiler: processed ones of every version up to 75, as JSON and JSLB, and Gecko's, versions 3
to 36, also in the DevTools' wrapper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from traceferry.files.json_text import is_json, members_seen
from traceferry.files.source import Source
from traceferry.importers.firefox.magic import JSLB_MAGIC

if TYPE_CHECKING:
    from traceferry.importers.firefox.decode import Profile
    from traceferry.model import TraceBuilder
    from traceferry.reading import Companion, ImportContext, MappedFile

MEMBERS = {"meta", "threads"}
WRAPPED, OLD, VERSION = "profile", "profileJSON", "preprocessedProfileVersion"


def sniff(head: memoryview) -> bool:
    """Whether the outermost object has the members of a profile. Of text that ends too early, one of them is enough."""
    if bytes(head[: len(JSLB_MAGIC)]) == JSLB_MAGIC:
        return True
    if not is_json(head):
        return False
    seen, is_whole = members_seen(head)
    if OLD in seen or _holds(seen, is_whole):
        return True
    if WRAPPED in seen:
        return _holds(*members_seen(head, seen[WRAPPED]))
    return "meta" in seen and VERSION in members_seen(head, seen["meta"])[0]


def _holds(seen: dict[str, int], is_whole: bool) -> bool:
    return set(seen) >= MEMBERS or (not is_whole and bool(MEMBERS & set(seen)))


class Reading(NamedTuple):
    """Profiles, their threads not parsed yet. companions: a profile refers to no other recording."""

    profiles: Sequence[Profile]
    companions: Sequence[Companion] = ()
    counter: None = None
    span: None = None
    mapped: Sequence[MappedFile] = ()

    def add_to(self, trace: TraceBuilder, context: ImportContext) -> None:
        from traceferry.importers.firefox.map import to_trace

        to_trace(self.profiles, trace, context)


def read(sources: Sequence[Source]) -> Reading:
    """Raises FormatError for what is no profile, or one of an unknown version."""
    from traceferry.importers.firefox.decode import read_profile

    return Reading([read_profile(source) for source in sources])


def dump(source: Source, offset: int) -> Iterator[str]:
    """Yields the members from `offset` on, one per line, with offset and size: of the profile, of its threads, and of
    their tables."""
    from traceferry.importers.firefox.dumps import described

    return described(source, offset)
