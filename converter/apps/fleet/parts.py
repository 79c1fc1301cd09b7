"""Intermediate results as streams of Arrow record batches: of each combination of labels its totals and its recordings,
sorted by labels, so that any number of parts are merged with one combination of each in memory."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from traceferry.analysis.totals.portable import Amounts, Key, Rows, Totals, Tree, merged
from traceferry.model import Array

Row = Mapping[str, Any]
RECORDINGS, FRAMES, NODES = "recordings", "frames", "nodes"
ROWS = [field.name for field in fields(Totals) if field.name != "tree"]


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
    return Share(shares[0].labels, merged([share.totals for share in shares]), tuple(rows))


def merged_parts(paths: Sequence[Path]) -> Iterator[Share]:
    """The shares of all parts together, by labels."""
    with ExitStack() as opened:
        streams = [opened.enter_context(open(path, "rb")) for path in paths]
        in_order = heapq.merge(*(_shares(stream) for stream in streams), key=lambda share: share.labels)
        for _, same in groupby(in_order, key=lambda share: share.labels):
            yield joined(list(same))


def write_part(path: Path, shares: Iterable[Share]) -> None:
    """shares: sorted by labels, each combination once."""
    import pyarrow as pa

    schema = pa.schema([("key", pa.binary()), ("amounts", pa.list_(pa.int64()))])
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with open(path, "wb") as file, pa.ipc.new_stream(file, schema, options=options) as out:
        for share in shares:
            for kind, keys, amounts, more in _pieces(share):
                head = {"labels": share.labels, "kind": kind, **more}
                n = amounts.shape[1]
                column = pa.ListArray.from_arrays(
                    pa.array(np.arange(len(amounts) + 1, dtype=np.int32) * n), pa.array(amounts.reshape(-1))
                )
                packed = pa.array([orjson.dumps(key) for key in keys] if keys is not None else [None] * len(amounts),
                                  pa.binary())  # fmt: skip
                batch = pa.record_batch([packed, column], schema=schema)
                out.write_batch(batch, custom_metadata={"head": orjson.dumps(head)})


Piece = tuple[str, Sequence[Any] | None, Array, dict[str, Any]]


def _pieces(share: Share) -> Iterator[Piece]:
    """(kind, keys, amounts, what else to say); the rows of the recordings come last, and end the share."""
    for name in ROWS:
        rows: Rows = getattr(share.totals, name)
        if rows.keys:
            yield name, rows.keys, rows.amounts, {}
    tree = share.totals.tree
    if len(tree.parent):
        yield FRAMES, tree.frames, np.zeros((len(tree.frames), 0), np.int64), {}
        columns = [tree.parent, tree.frame, *(tree.column(measure) for measure in tree.measures)]
        nodes = np.stack(columns, axis=1).astype(np.int64)
        yield NODES, None, nodes, {"measures": tree.measures}
    yield RECORDINGS, share.rows, np.zeros((len(share.rows), 0), np.int64), {}


def _shares(stream: Any) -> Iterator[Share]:
    import pyarrow as pa

    found: dict[str, Any] = {}
    frames: tuple[Key, ...] = ()
    reader = pa.ipc.open_stream(stream)
    for batch, metadata in reader.iter_batches_with_custom_metadata():
        head = orjson.loads(metadata["head"])
        kind, n = head["kind"], len(batch)
        values = batch.column(1).flatten().to_numpy(zero_copy_only=False)
        amounts = values.reshape(n, len(values) // n if n else 0)
        if kind == NODES:
            parent, frame = (amounts[:, i].astype(np.int32) for i in range(2))
            measures = tuple(tuple(key) for key in head["measures"])
            found["tree"] = Tree(frames, parent, frame, measures, Amounts.of_columns(amounts[:, 2:]))
            continue
        keys = [orjson.loads(key) for key in batch.column(0).to_pylist()]
        if kind == FRAMES:
            frames = tuple(tuple(key) for key in keys)
        elif kind == RECORDINGS:
            yield Share(tuple(head["labels"]), replace(Totals(), **found), tuple(keys))
            found = {}
        else:
            empty: Rows = getattr(Totals(), kind)
            found[kind] = Rows(empty.columns, tuple(tuple(key) for key in keys), amounts, empty.largest)
