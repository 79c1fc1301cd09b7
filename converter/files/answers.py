"""Questions to the machine while a recording is read, and answers: found here, kept for a pack, or of a pack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from traceferry.common.errors import FormatError
from traceferry.common.issue_kinds import KINDS
from traceferry.common.report import Note, Report

Found = TypeVar("Found")
# What an answer of a pack that somebody else made can raise where it is not as it was written.
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)
MAX_COUNT = 1 << 63


class Blob(NamedTuple):
    """Bytes in an answer, which become a member of the pack. name: what the member is called after."""

    name: str
    data: bytes | memoryview


class Answers:
    """Answers by asking this machine. is_kept: whether a pack answers, and this machine is not asked; keeps: whether
    the answers go into a pack; keeps_whole: and all functions of libraries, not only those that are used."""

    is_kept = False
    keeps = False
    keeps_whole = False

    def knows(self, key: str) -> bool:
        """Whether a pack has the answer."""
        return False

    def of(self, path: str) -> Answers:
        """Returns the answers to what is asked for one of several inputs."""
        return self

    def ask(
        self,
        key: str,
        report: Report,
        find: Callable[[], Found],
        packed: Callable[[Found], Any] = lambda found: found,
        unpacked: Callable[[Any], Found] = lambda value: value,
    ) -> Found:
        """Returns what `find` does, or the pack's answer; then the report gets what `find` noted.

        key: of the question, distinct for each input; packed: makes of the answer what JSON takes, and Blobs: called
        once everything is read; unpacked: the opposite, with memoryviews for Blobs. Raises FormatError for an answer
        that is damaged.
        """
        return find()


# Nobody's pack.
MACHINE = Answers()


@dataclass
class Keeping(Answers):
    """Keeps the answers of this machine. asked: by key, what was noted and what makes the answer; inputs: the sources
    that ask."""

    asked: dict[str, tuple[list[Note], Callable[[], Any]]] = field(default_factory=dict)
    path: str = ""
    keeps_whole: bool = False
    inputs: list[Any] = field(default_factory=list)
    keeps = True

    def of(self, path: str) -> Keeping:
        return Keeping(self.asked, path, self.keeps_whole)

    def ask(
        self,
        key: str,
        report: Report,
        find: Callable[[], Found],
        packed: Callable[[Found], Any] = lambda found: found,
        unpacked: Callable[[Any], Found] = lambda value: value,
    ) -> Found:
        with report.recorded() as notes:
            found = find()
        self.asked[_key(self.path, key)] = (notes, lambda: packed(found))
        return found


@dataclass(frozen=True)
class Kept(Answers):
    """Gives the answers of a pack. file: its path, for errors; values: by key, [notes, answer], in which
    {"member": NAME} stands for bytes; members: these, by name."""

    file: str
    values: Mapping[str, Any]
    members: Mapping[str, memoryview]
    path: str = ""
    is_kept = True

    def of(self, path: str) -> Kept:
        return Kept(self.file, self.values, self.members, path)

    def knows(self, key: str) -> bool:
        return _key(self.path, key) in self.values

    def ask(
        self,
        key: str,
        report: Report,
        find: Callable[[], Found],
        packed: Callable[[Found], Any] = lambda found: found,
        unpacked: Callable[[Any], Found] = lambda value: value,
    ) -> Found:
        if not self.knows(key):
            return find()
        try:
            notes, value = self.values[_key(self.path, key)]
            found = unpacked(self.with_members(value))
            for kind, count, offset, where, detail, advice in notes:
                _check_note(kind, count, offset, (where, detail, *([advice] if advice is not None else [])))
                report.note(kind, count, offset=offset, where=where, detail=detail, advice=advice)
        except MALFORMED:
            raise FormatError(f"damaged pack: the answer {key!r}", path=self.file) from None
        return found

    def with_members(self, value: Any) -> Any:
        """Returns an answer with the bytes of the members that it names. Raises KeyError if one is not there."""
        if isinstance(value, dict):
            if value.keys() == {"member"}:
                return self.members[value["member"]]
            return {key: self.with_members(one) for key, one in value.items()}
        return [self.with_members(one) for one in value] if isinstance(value, list) else value


def checked(value: Any, kind: type[Found]) -> Found:
    """Returns a part of an answer. Raises TypeError if it is of another kind."""
    if type(value) is not kind:
        raise TypeError(f"{kind.__name__} was expected")
    return value


def _check_note(kind: Any, count: Any, offset: Any, texts: tuple[Any, ...]) -> None:
    numbers = [checked(number, int) for number in (count, *([offset] if offset is not None else []))]
    if kind not in KINDS or not all(0 <= number < MAX_COUNT for number in numbers):
        raise ValueError(kind)
    for text in texts:
        checked(text, str)


def _key(path: str, key: str) -> str:
    return f"{path}: {key}" if path else key
