"""How the work is divided: files of the data set, each made from a tree of parts whose leaves hold recordings.

Which recordings share a file depends on the recordings alone, so that the files are the same whatever the size of the
leaves. Leaves end where the names of recordings say, so that a new recording changes one leaf only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from traceferry.apps.fleet.inputs import Found, Recording

# In a file, unless one combination of labels has more.
RECORDINGS_PER_FILE = 256
# Parts that become one at once.
FAN_IN = 16
# A leaf has at most so many times the usual number of recordings.
LONGEST_LEAF = 3
KEY_DIGITS = 32


@dataclass(frozen=True)
class Node:
    """A part. recordings: of a leaf; children: of any other; key: equal for equal content."""

    key: str
    recordings: Sequence[Recording] = ()
    children: Sequence[Node] = field(default_factory=tuple)


@dataclass(frozen=True)
class Shard:
    """One file of each table. key: equal for equal content; parts: what it is made of, at most FAN_IN."""

    number: int
    key: str
    parts: Sequence[Node]


def key_of(*words: object) -> str:
    """Returns what is equal for equal words: texts, also of file names that are not UTF-8, numbers, lists of those."""
    text = json.dumps(words, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_DIGITS]


def plan(found: Found, by: Sequence[str], description: str, leaf_size: int) -> Iterator[Shard]:
    """leaf_size: recordings in a leaf, about."""
    for number, recordings in enumerate(_files(found, by)):
        leaves = [leaf_of(each, by, found.labels, description) for each in _leaves(recordings, leaf_size)]
        nodes: list[Node] = leaves
        while len(nodes) > FAN_IN:
            groups = [nodes[at : at + FAN_IN] for at in range(0, len(nodes), FAN_IN)]
            nodes = [Node(key_of("merged", [n.key for n in group]), (), tuple(group)) for group in groups]
        # Independent of how the recordings are divided into leaves.
        key = key_of("file", number, description, by, [_identity(each, found.labels) for each in recordings])
        yield Shard(number, key, tuple(nodes))


def leaf_of(recordings: Sequence[Recording], by: Sequence[str], labels: Sequence[str], description: str) -> Node:
    return Node(key_of("leaf", description, by, [_identity(each, labels) for each in recordings]), tuple(recordings))


def _identity(recording: Recording, labels: Sequence[str]) -> list[object]:
    return [recording.urls, recording.identity, dict(zip(labels, recording.labels, strict=True))]


def _files(found: Found, by: Sequence[str]) -> Iterator[list[Recording]]:
    """The recordings of each file, sorted by the labels that are kept apart. A combination of those is in one file."""
    places = [found.labels.index(name) for name in by]

    def combination(recording: Recording) -> tuple[str, ...]:
        return tuple(recording.labels[place] for place in places)

    in_order = sorted(found.recordings, key=lambda each: (combination(each), each.key, each.labels))
    pending: list[Recording] = []
    for _, group in groupby(in_order, key=combination):
        recordings = list(group)
        if pending and len(pending) + len(recordings) > RECORDINGS_PER_FILE:
            yield pending
            pending = []
        pending += recordings
    if pending:
        yield pending


def _leaves(recordings: Sequence[Recording], leaf_size: int) -> Iterator[list[Recording]]:
    """Yields the recordings of each leaf. All labels of a recording are in one leaf, which adds it up once."""
    pending: list[Recording] = []
    for key, of_one in groupby(recordings, key=lambda each: each.key):
        pending += of_one
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        if int.from_bytes(digest[:8], "little") % leaf_size == 0 or len(pending) >= LONGEST_LEAF * leaf_size:
            yield pending
            pending = []
    if pending:
        yield pending
