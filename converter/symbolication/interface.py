"""The interface of every source of symbols: look-ups of many addresses at once, and its functions, whole, for a writer.

Addresses are as the linker wrote them. Names are linkage names: `demangle` converts them to C++.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from traceferry.common.report import Report
from traceferry.model import Array, distinct_and_places

if TYPE_CHECKING:
    from traceferry.symbolication.binary import Binary


class Frames(NamedTuple):
    """The frames at each of n addresses.

    first: int64 [n + 1]: the frames of the i-th address are first[i]:first[i + 1], the innermost first; none where
    nothing is found. For each frame name, source: int32, indices of texts, -1 is unknown; line: int32, 0 is unknown:
    for the innermost the line that runs, for the others the line of their call. start, size: uint64 [n]: of the
    function that holds the address, 0 where there is none. discriminator: for each frame int32, which of several
    straight runs of code of the same line, as LLVM counts them (DWARF's state machine, and DW_AT_GNU_discriminator of
    calls), 0 is the first; None where nothing tells.
    """

    first: Array
    name: Array
    source: Array
    line: Array
    start: Array
    size: Array
    texts: Sequence[str]
    discriminator: Array | None = None

    @property
    def discriminators(self) -> Array:
        return self.discriminator if self.discriminator is not None else np.zeros(len(self.name), np.int32)


class Inline(NamedTuple):
    """A call that was inlined: of which function, where, by which line. ranges: (first address, end); children: what is
    inlined into it."""

    name: str
    ranges: tuple[tuple[int, int], ...]
    call_source: str
    call_line: int
    children: tuple[Inline, ...] = ()


class Function(NamedTuple):
    """One function. lines: (address, source, line), rising addresses, each until the next; a line of 0 is known to have
    none. size 0 is unknown."""

    name: str
    start: int
    size: int
    lines: Sequence[tuple[int, str, int]] = ()
    inlines: Sequence[Inline] = ()


class Symbols(Protocol):
    """A file, or a recording, that names addresses."""

    @property
    def path(self) -> str: ...

    @property
    def name(self) -> str:
        """The file's name, without folders."""

    @property
    def base(self) -> int:
        """The lowest address that is loaded."""

    @property
    def build_id(self) -> str:
        """The build id in lower-case hex; "" is unknown."""

    @property
    def gives(self) -> str:
        """The kind of symbols, in words."""

    @property
    def problems(self) -> Sequence[tuple[int, str]]:
        """The damage: (offset in the file, what is damaged there) of what was looked at so far."""

    def lookup(self, addresses: Array) -> Frames:
        """Returns the frames at addresses (uint64, in any order). Never raises: damaged parts have no frames."""

    def functions(self) -> Iterator[Function]:
        """Yields functions by address; equal addresses in the file's order."""


class FoundSymbols(NamedTuple):
    """Symbols that were found for a library. binary: its headers, segments and call-frame information; debug: the file
    with its debug information, if that is apart; stripped: the binary without debug information whose symbols these
    are: its debug file may name more; None where they are not available."""

    symbols: Symbols
    binary: Binary | None = None
    debug: Binary | None = None
    stripped: Binary | None = None


# What finds the symbols of a library by its build id (lower-case hex, "" is unknown) and file name (without folders);
# what is lost goes to the report. None: there are none. Raises FormatError if only those of other builds have the name;
# OSError if storage fails.
FindSymbols = Callable[[str, str, Report], FoundSymbols | None]


def line_number(number: int | None) -> int:
    """Returns 0, unknown, for what damaged debug information makes too large."""
    return number if number is not None and 0 <= number < 1 << 31 else 0


# ---------------------------------------------------------------- look-ups of many from look-ups of one


class Answer(NamedTuple):
    """The frames at one address. start, size: of the function that holds it, 0 is unknown; frames: (name, source,
    line), the innermost first; line: below 2^31."""

    start: int
    size: int
    frames: Sequence[tuple[str, str, int]]


NOTHING = Answer(0, 0, ())

Lookup = Callable[[Array], Frames]


def look_up_nothing(addresses: Array) -> Frames:
    numbers, zeros = np.zeros(0, np.int32), np.zeros(len(addresses), np.uint64)
    return Frames(np.zeros(len(addresses) + 1, np.int64), numbers, numbers, numbers, zeros, zeros, [])


def look_up(addresses: Array, answer_of: Callable[[int], Answer]) -> Frames:
    """Returns the frames at addresses (uint64, in any order)."""
    distinct, which = distinct_and_places(np.asarray(addresses, np.uint64))
    return taken(frames_of([answer_of(address) for address in distinct.tolist()]), which)


def frames_of(answers: Sequence[Answer]) -> Frames:
    """Returns the frames of one address for each answer."""
    texts: dict[str, int] = {"": -1}
    rows = [_row(texts, *frame) for answer in answers for frame in answer.frames]
    name, source, line = np.ascontiguousarray(np.array(rows, np.int32).reshape(-1, 3).T)
    first = np.cumsum([0, *(len(answer.frames) for answer in answers)])
    del texts[""]
    start, size = (np.array([answer[nth] for answer in answers], np.uint64) for nth in (0, 1))
    return Frames(first, name, source, line, start, size, list(texts))


def taken(found: Frames, which: Array) -> Frames:
    """Returns the frames of len(which) addresses; which: int64, for each of them its row in `found`."""
    n_frames = np.diff(found.first)[which]
    first = np.concatenate(([0], np.cumsum(n_frames)))
    at = np.arange(first[-1]) + np.repeat(found.first[which] - first[:-1], n_frames)
    return Frames(
        first, found.name[at], found.source[at], found.line[at], found.start[which], found.size[which], found.texts,
        found.discriminators[at],
    )  # fmt: skip


def without_nameless_calls(found: Frames) -> Frames:
    """Returns the frames without those of inlined calls that have no name: where one stands is in the line of its
    caller, of which it then is a part."""
    is_kept = found.name >= 0
    if is_kept.all():
        return found
    n_frames = np.diff(found.first)
    is_kept[found.first[1:][n_frames > 0] - 1] = True
    n_before = np.concatenate(([0], np.cumsum(is_kept)))
    name, source, line, discriminator = (
        column[is_kept] for column in (found.name, found.source, found.line, found.discriminators)
    )
    return found._replace(first=n_before[found.first], name=name, source=source, line=line, discriminator=discriminator)


def look_up_apart(addresses: Array, which: Array, by: Lookup, others_by: Lookup) -> Frames:
    """Returns the frames at addresses (uint64, in any order): those that `which` (bool) names are looked up by one, the
    others by the other."""
    if not which.any():
        return others_by(addresses)
    if which.all():
        return by(addresses)
    both = joined([others_by(addresses[~which]), by(addresses[which])])
    n_others = len(addresses) - int(np.count_nonzero(which))
    return taken(both, np.where(which, n_others + np.cumsum(which) - 1, np.cumsum(~which) - 1))


def joined(parts: Sequence[Frames]) -> Frames:
    """Returns the frames of the addresses of all parts, of which there is one at least, in turn."""
    n_texts = np.cumsum([0, *(len(part.texts) for part in parts[:-1])]).tolist()
    n_frames = np.cumsum([0, *(part.first[-1] for part in parts[:-1])]).tolist()
    name, source = (
        np.concatenate([np.where(of < 0, of, of + np.int32(n)) for of, n in zip(numbers, n_texts, strict=True)])
        for numbers in ([part.name for part in parts], [part.source for part in parts])
    )
    firsts = [part.first[1:] + n for part, n in zip(parts, n_frames, strict=True)]
    line, start, size, discriminator = (
        np.concatenate([getattr(part, column) for part in parts])
        for column in ("line", "start", "size", "discriminators")
    )
    texts = [text for part in parts for text in part.texts]
    return Frames(np.concatenate(([0], *firsts)), name, source, line, start, size, texts, discriminator)


def _row(texts: dict[str, int], name: str, source: str, line: int) -> tuple[int, int, int]:
    return texts.setdefault(name, len(texts) - 1), texts.setdefault(source, len(texts) - 1), line
