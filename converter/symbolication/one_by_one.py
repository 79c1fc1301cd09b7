"""Look-ups in sources of symbols that take one address at a time: each distinct address is looked up once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from traceferry.model import Array
from traceferry.symbolication.interface import Frames


class Answer(NamedTuple):
    """The frames at one address. start, size: of the function that holds it, 0 is unknown; frames: (name, source,
    line), the innermost first; line: below 2^31."""

    start: int
    size: int
    frames: Sequence[tuple[str, str, int]]


NOTHING = Answer(0, 0, ())

Lookup = Callable[[Array], Frames]


def look_up_nothing(addresses: Array) -> Frames:
    return look_up(addresses, lambda _: NOTHING)


def look_up(addresses: Array, answer_of: Callable[[int], Answer]) -> Frames:
    """Returns the frames at addresses (uint64, in any order)."""
    distinct, which = np.unique(np.asarray(addresses, np.uint64), return_inverse=True)
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
        first, found.name[at], found.source[at], found.line[at], found.start[which], found.size[which], found.texts
    )


def look_up_apart(addresses: Array, which: Array, by: Lookup, others_by: Lookup) -> Frames:
    """Returns the frames at addresses (uint64, in any order): those that `which` (bool) names are looked up by one, the
    others by the other."""
    if not which.any():
        return others_by(addresses)
    if which.all():
        return by(addresses)
    found, others = by(addresses[which]), others_by(addresses[~which])
    name, source = (
        np.concatenate((one, np.where(other < 0, other, other + np.int32(len(others.texts)))))
        for one, other in ((others.name, found.name), (others.source, found.source))
    )
    first = np.concatenate((others.first, found.first[1:] + others.first[-1]))
    line, start, size = (
        np.concatenate(columns)
        for columns in ((others.line, found.line), (others.start, found.start), (others.size, found.size))
    )
    both = Frames(first, name, source, line, start, size, [*others.texts, *found.texts])
    return taken(both, np.where(which, len(others.start) + np.cumsum(which) - 1, np.cumsum(~which) - 1))


def _row(texts: dict[str, int], name: str, source: str, line: int) -> tuple[int, int, int]:
    return texts.setdefault(name, len(texts) - 1), texts.setdefault(source, len(texts) - 1), line
