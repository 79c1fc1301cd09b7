"""Layout: values in a file that are parsed when they are asked for, in JSON text and in JSLB alike."""

from __future__ import annotations

from typing import Any, NamedTuple

from traceferry.common.errors import FormatError
from traceferry.files.json_text import JsonText, Range
from traceferry.files.source import Source
from traceferry.importers.firefox.jslb import Slabs
from traceferry.importers.firefox.layout import SLAB
from traceferry.importers.firefox.magic import JSLB_MAGIC

Members = dict[str, Any]


class Lazy(NamedTuple):
    """A value in a text. name: its path from the outermost one, as threads[2].samples; slabs: what it may refer to."""

    text: JsonText
    at: Range
    name: str = ""
    slabs: Slabs | None = None

    @property
    def offset(self) -> int:
        return self.at.begin

    @property
    def n_bytes(self) -> int:
        return self.at.end - self.at.begin

    def value(self) -> Any:
        """Parses it. Raises FormatError."""
        value = self.text.parsed(self.at)
        return value if self.slabs is None else self.slabs.resolved(value)

    def tables(self, left_out: frozenset[bytes] = frozenset()) -> Any:
        """Parses it; columns of numbers are arrays, and members left out, of which there are the keys with quotes, may
        be None. Raises FormatError."""
        return self.text.tables(self.at, left_out) if self.slabs is None else self.value()

    def members(self) -> dict[str, Lazy]:
        """Returns the members of an object; of another value, none."""
        held = self._followed()
        if not held.text.is_object(held.at):
            return {}
        prefix = f"{self.name}." if self.name else ""
        found = held.text.members(held.at)
        return {key: Lazy(held.text, at, prefix + key, self.slabs) for key, at in found.items()}

    def elements(self) -> list[Lazy] | None:
        """Returns the elements of a list; None: it is none."""
        held = self._followed()
        if not held.text.is_list(held.at):
            return None
        found = held.text.elements(held.at)
        return [Lazy(held.text, at, f"{self.name}[{nth}]", self.slabs) for nth, at in enumerate(found)]

    @property
    def is_list(self) -> bool:
        held = self._followed()
        return held.text.is_list(held.at)

    def embedded(self) -> Lazy | None:
        """Returns the JSON text that a string holds, as old profiles have it; None: it is no string."""
        if bytes(self.text.data[self.at.begin : self.at.begin + 1]) != b'"':
            return None
        text = JsonText(memoryview(str(self.value()).encode("utf-8", "replace")), self.text.path)
        try:
            return Lazy(text, text.root(), self.name)
        except FormatError as error:
            raise self.error(f"{self.name}: {error.message}") from None

    def error(self, message: str) -> FormatError:
        return FormatError(message, self.offset, self.name, path=self.text.path)

    def _followed(self) -> Lazy:
        """Returns the slab that this value stands for, else itself."""
        if self.slabs is None or not self.text.is_object(self.at):
            return self
        members = self.text.members(self.at)
        if list(members) != [SLAB]:
            return self
        text, at = self.slabs.text(self.text.parsed(members[SLAB]))
        # White space may stand before it.
        return Lazy(text, at, self.name, self.slabs)


class Part(NamedTuple):
    """A process of a Gecko profile, or the whole of a processed one. meta: of it; libs: of it; shift_ms: to be added to
    its times."""

    meta: Members
    libs: list[Any]
    shift_ms: float = 0.0


def root_of(source: Source) -> Lazy:
    """Returns the outermost value of a file. Raises FormatError for damaged text or slabs."""
    if bytes(source.data[: len(JSLB_MAGIC)]) == JSLB_MAGIC:
        slabs = Slabs(source.data, source.path)
        return Lazy(*slabs.text(slabs.root), "", slabs)
    text = JsonText(source.data, source.path)
    return Lazy(text, text.root())
