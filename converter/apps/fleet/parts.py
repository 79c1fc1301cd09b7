"""Intermediate results as compressed streams: of each combination of labels its totals and its recordings, sorted by
labels, so that any number of parts are merged with one combination of each in memory.

A combination is a line of JSON with all texts, and after it the arrays of numbers as NumPy's files have them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from io import BufferedReader
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson
from numpy.lib.format import read_array, write_array

from traceferry.analysis.totals.portable import Amounts, Totals, Tree
from traceferry.analysis.totals.rows import Key, Rows

Row = Mapping[str, Any]
ROWS = [field.name for field in fields(Totals) if field.name != "tree"]
COMPRESSION = "zstd"


@dataclass(frozen=True)
class Share:
    """The sum of the recordings of one combination of labels. rows: of the recordings, by name."""

    labels: tuple[str, ...]
    totals: Totals
    rows: tuple[Row, ...]


def joined(shares: Sequence[Share]) -> Share:
    """Adds up those of equal labels, in any order."""
    if len(shares) == 1:
        return shares[0]
    rows = sorted((row for share in shares for row in share.rows), key=lambda row: str(row["recording"]))
    return Share(shares[0].labels, Totals().merged(*(share.totals for share in shares)), tuple(rows))


def merged_parts(paths: Sequence[Path]) -> Iterator[Share]:
    """The shares of all parts together, by labels."""
    import pyarrow as pa

    with ExitStack() as opened:
        # Arrow opens no name that is not UTF-8.
        files = [opened.enter_context(path.open("rb")) for path in paths]
        shares = (_shares(BufferedReader(pa.CompressedInputStream(file, COMPRESSION))) for file in files)
        in_order = heapq.merge(*shares, key=lambda share: share.labels)
        for _, same in groupby(in_order, key=lambda share: share.labels):
            yield joined(list(same))


def write_part(path: Path, shares: Iterable[Share]) -> None:
    """shares: sorted by labels, each combination once."""
    import pyarrow as pa

    with path.open("wb") as file, pa.CompressedOutputStream(file, COMPRESSION) as out:
        for share in shares:
            rows: dict[str, Rows] = {name: getattr(share.totals, name) for name in ROWS}
            tree, keys = share.totals.tree, {name: each.keys for name, each in rows.items()}
            head = [share.labels, share.rows, keys, tree.frames, tree.measures]
            out.write(orjson.dumps(head, option=orjson.OPT_APPEND_NEWLINE))
            of_tree = tree.parent, tree.frame, tree.own.node, tree.own.measure, tree.own.value
            for array in (*(each.amounts for each in rows.values()), *of_tree):
                write_array(out, array, allow_pickle=False)


def _shares(stream: BufferedReader) -> Iterator[Share]:
    while line := stream.readline():
        labels, recordings, keys, frames, measures = orjson.loads(line)
        rows = {
            name: replace(getattr(Totals(), name), keys=_tuples(keys[name]), amounts=read_array(stream))
            for name in ROWS
        }
        parent, frame, *own = (read_array(stream) for _ in range(5))
        tree = Tree(_tuples(frames), parent, frame, _tuples(measures), Amounts(*own))
        yield Share(tuple(labels), Totals(**rows, tree=tree), tuple(recordings))


def _tuples(keys: Sequence[Sequence[Any]]) -> tuple[Key, ...]:
    return tuple(map(tuple, keys))
