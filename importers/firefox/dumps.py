"""Layout: what is where in a profile, as text."""

from __future__ import annotations

from collections.abc import Iterator

from traceferry.common.shown_text import shown
from traceferry.files.source import Source
from traceferry.importers.firefox.document import Lazy, root_of

MAX_DEPTH = 4
SHORT = 80


def described(source: Source, offset: int) -> Iterator[str]:
    """Yields a line for each member from `offset` on: offset, size, path, and the text where it is short. Raises
    FormatError."""
    yield from _within(root_of(source), offset, 0)


def _within(lazy: Lazy, offset: int, depth: int) -> Iterator[str]:
    for member in lazy.members().values():
        yield from _lines(member, offset, depth)


def _lines(member: Lazy, offset: int, depth: int) -> Iterator[str]:
    if member.offset >= offset:
        text = bytes(member.text.data[member.at.begin : min(member.at.end, member.at.begin + SHORT)])
        short = text.decode("utf-8", "replace") if member.n_bytes <= SHORT else ""
        yield shown(f"{member.offset:#010x} {member.n_bytes:10} {member.name} {short}".rstrip())
    if depth == MAX_DEPTH or (member.at.end <= offset and member.slabs is None):
        return
    yield from _within(member, offset, depth + 1)
    elements = member.elements() or []
    if elements and elements[0].members():
        for element in elements:
            yield from _lines(element, offset, depth + 1)
