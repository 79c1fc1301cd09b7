"""The tables of a data set, and their Parquet files. FORMATS.md describes each column; VERSION counts their changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from traceferry.analysis.totals.portable import Totals, depths
from traceferry.analysis.totals.rows import Rows
from traceferry.apps.fleet.forest import MEASURES, functions_of, roots_of
from traceferry.apps.fleet.parts import Share
from traceferry.model import Array

VERSION = 1
ROWS_AT_ONCE = 1 << 16
TEXT, COUNT, WHOLE = "string", "int64", "int32"
GROUP = {"process": TEXT, "thread": TEXT, "event": TEXT, "unit": TEXT}
FUNCTION = {"function": TEXT, "file": TEXT, "line": WHOLE, "kind": TEXT}
SELF_NAMES = {"time_ns": "self_ns"}
# The columns after the labels, with their types as Arrow has them.
COLUMNS: dict[str, dict[str, str]] = {
    "functions": {
        **GROUP, **FUNCTION, "tier": TEXT, "calls": COUNT, "self_ns": COUNT, "total_ns": COUNT, "samples": COUNT,
        "total_samples": COUNT, "weight": COUNT, "total_weight": COUNT, "allocated_bytes": COUNT,
        "total_allocated_bytes": COUNT, "allocated_objects": COUNT, "freed_bytes": COUNT,
    },
    "stacks": {
        "node": COUNT, "parent": COUNT, "depth": WHOLE, **GROUP, **FUNCTION, "category": TEXT, "tier": TEXT,
        "inlined": "bool", **dict.fromkeys(MEASURES, COUNT),
    },
    "markers": {
        "marker": TEXT, "count": COUNT, "total_ns": COUNT, "longest_ns": COUNT, "bucket": "list<int32>",
        "bucket_count": "list<int64>",
    },
    "marker_groups": {
        "marker": TEXT, "values": TEXT, "count": COUNT, "total_ns": COUNT, "longest_ns": COUNT, "bytes": TEXT,
    },
    "allocations": {
        "class": TEXT, **FUNCTION, "count": COUNT, "bytes": COUNT, "freed_count": COUNT, "freed_bytes": COUNT,
    },
    "heap": {"class": TEXT, "objects": COUNT, "bytes": COUNT, "retained_bytes": COUNT},
    "code": {**FUNCTION, "tier": TEXT, "objects": COUNT, "bytes": COUNT, "samples": COUNT, "loaded_ns": COUNT},
    "tiers": {"tier": TEXT, "objects": COUNT, "bytes": COUNT},
    "threads": {
        "process": TEXT, "thread": TEXT, "threads": COUNT, "samples": COUNT, "calls": COUNT, "allocated_bytes": COUNT,
        "waiting_ns": COUNT, "preempted_ns": COUNT,
    },
    "events": {**GROUP, "kind": TEXT, "samples": COUNT, "weight": COUNT},
    "losses": {"loss": TEXT, "count": COUNT},
    "colors": {"of": TEXT, "name": TEXT, "family": TEXT, "color": TEXT, "recordings": COUNT},
    "recordings": {
        "recording": TEXT, "size": COUNT, "hash": TEXT, "time_ns": COUNT, "seconds": "float64", "format": TEXT,
        "producer": TEXT, "event": TEXT, "unit": TEXT, "interval_ns": COUNT, "samples": COUNT, "idle_samples": COUNT,
        "sample_weight": COUNT, "events": TEXT, "losses": TEXT, "status": TEXT, "reason": TEXT,
    },
}  # fmt: skip
RECORDINGS = "recordings"
# The table whose file is written last: where it is, the others of its number are whole.
LAST = RECORDINGS
# How `allocations` has what has no known site: without a function.
NO_SITE = ("", "", 0, "")
FACTS = "traceferry"  # in the files' metadata

Values = Mapping[str, Sequence[Any] | Array]


def file_name(number: int) -> str:
    return f"part-{number:05d}.parquet"


def schema_of(table: str, labels: Sequence[str], key: str = "") -> Any:
    """The Arrow schema. key: of the content, into the metadata."""
    import pyarrow as pa

    types = {TEXT: pa.string(), COUNT: pa.int64(), WHOLE: pa.int32(), "bool": pa.bool_(), "float64": pa.float64(),
             "list<int32>": pa.list_(pa.int32()), "list<int64>": pa.list_(pa.int64())}  # fmt: skip
    columns = [(name, pa.string()) for name in labels] + [(name, types[of]) for name, of in COLUMNS[table].items()]
    facts = orjson.dumps({"table": table, "version": VERSION, "labels": list(labels), "key": key})
    return pa.schema(columns, metadata={FACTS: facts})


def write_tables(
    folder: Path, shares: Iterable[Share], by: Sequence[str], labels: Sequence[str], key: str, wanted: Sequence[str]
) -> dict[str, Path]:
    """A file for each wanted table. by: names of the shares' labels; labels: of the recordings'."""
    paths = {table: folder / f"{table}.parquet" for table in wanted}
    with ExitStack() as opened:
        files = {
            table: opened.enter_context(
                closing(_File(path, schema_of(table, labels if table == RECORDINGS else by, key)))
            )
            for table, path in paths.items()
        }
        for share in shares:
            of_share = dict(zip(by, share.labels, strict=True))
            for table, file in files.items():
                file.add(rows_of(table, share, labels), {} if table == RECORDINGS else of_share)
    return paths


class _File:
    """Collects rows until there are enough for a row group."""

    def __init__(self, path: Path, schema: Any) -> None:
        from pyarrow import parquet

        self._schema = schema
        self._pending: list[Any] = []
        self._n_pending = 0
        self._writer = parquet.ParquetWriter(str(path), schema, compression="zstd")

    def add(self, values: Values, of_all: Mapping[str, str]) -> None:
        """of_all: the labels that all rows have."""
        import pyarrow as pa

        n = len(next(iter(values.values())))
        columns = {**values, **{name: pa.repeat(label, n) for name, label in of_all.items()}}
        self._pending.append(pa.Table.from_pydict(columns, schema=self._schema))
        self._n_pending += n
        if self._n_pending >= ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._n_pending:
            whole = pa.concat_tables(self._pending).combine_chunks()
            self._writer.write_table(whole, row_group_size=len(whole))
        self._pending, self._n_pending = [], 0

    def close(self) -> None:
        self._flush()
        self._writer.close()


# ---------------------------------------------------------------- the rows of each table


def rows_of(table: str, share: Share, labels: Sequence[str]) -> Values:
    """The columns of a table, without those of `by`."""
    if table == RECORDINGS:
        return {name: [row[name] for row in share.rows] for name in (*labels, *COLUMNS[RECORDINGS])}
    if table in ROWS_OF:
        return ROWS_OF[table](share.totals)
    source: Rows = getattr(share.totals, {"heap": "retained", "events": "recorded"}.get(table, table))
    keys = [name for name in COLUMNS[table] if name not in source.columns]
    return _columns(keys, source.keys) | _amounts(source)


def _columns(names: Sequence[str], keys: Iterable[Sequence[Any]]) -> dict[str, Sequence[Any]]:
    columns = list(zip(*keys, strict=True)) or [()] * len(names)
    return dict(zip(names, columns, strict=True))


def _amounts(rows: Rows) -> dict[str, Array]:
    return dict(zip(rows.columns, rows.amounts.reshape(-1, len(rows.columns)).T, strict=True))


def _functions(totals: Totals) -> Values:
    keys, self_, total = functions_of(totals.tree)
    amounts: dict[str, Array] = {}
    for nth, name in enumerate(MEASURES):
        amounts[SELF_NAMES.get(name, name)] = self_[:, nth]
        amounts["total_ns" if name == "time_ns" else f"total_{name}"] = total[:, nth]
    return _columns([*GROUP, *FUNCTION, "tier"], keys) | amounts


def _stacks(totals: Totals) -> Values:
    """Nodes of functions, numbered without the roots; a root's children have no parent."""
    forest = totals.tree
    is_root = forest.parent < 0
    number = np.cumsum(~is_root) - 1
    nodes = np.flatnonzero(~is_root)
    above = forest.parent[nodes]
    below_root = is_root[above]
    parents = [None if top else p for top, p in zip(below_root.tolist(), number[above].tolist(), strict=True)]
    groups = [forest.frames[f] for f in forest.frame[roots_of(forest)[nodes]].tolist()]
    functions = [forest.frames[f] for f in forest.frame[nodes].tolist()]
    names = [*GROUP, *FUNCTION, "category", "tier", "inlined"]
    keys = ((*g, *f[:6], bool(f[6])) for g, f in zip(groups, functions, strict=True))
    return {
        "node": number[nodes], "parent": parents, "depth": depths(forest.parent)[nodes] - 1,
        **_columns(names, keys), **{name: forest.column((name,))[nodes] for name in MEASURES},
    }  # fmt: skip


def _markers(totals: Totals) -> Values:
    buckets: dict[str, list[tuple[int, int]]] = {}
    for (name, bucket), (count,) in zip(totals.durations.keys, totals.durations.amounts.tolist(), strict=True):
        buckets.setdefault(name, []).append((bucket, count))
    events = totals.events
    of = [sorted(buckets.get(name, ())) for (name,) in events.keys]
    return {
        "marker": [name for (name,) in events.keys],
        **_amounts(events),
        "bucket": [[bucket for bucket, _ in pairs] for pairs in of],
        "bucket_count": [[count for _, count in pairs] for pairs in of],
    }


def _marker_groups(totals: Totals) -> Values:
    n_bytes: dict[tuple[Any, ...], dict[str, int]] = {}
    for key, (amount,) in zip(totals.marker_sums.keys, totals.marker_sums.amounts.tolist(), strict=True):
        n_bytes.setdefault(key[:-1], {})[key[-1]] = amount
    markers = totals.markers
    return {
        "marker": [key[0] for key in markers.keys],
        "values": [_json(key[1:]) for key in markers.keys],
        **_amounts(markers),
        "bytes": [_json(n_bytes.get(key, {})) for key in markers.keys],
    }


def _json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _allocations(totals: Totals) -> Values:
    """Returns amounts by class and site. What has no known site is the difference to the class's amounts."""
    sites, classes = totals.sites, totals.classes
    rows = {
        key: np.array(amounts)
        for key, amounts in zip(sites.keys, sites.amounts.tolist(), strict=True)
        if key[:4] != NO_SITE
    }
    left = {key[0]: np.array(amounts) for key, amounts in zip(classes.keys, classes.amounts.tolist(), strict=True)}
    for key, amounts in rows.items():
        if key[4] in left:
            left[key[4]] -= np.minimum(amounts, left[key[4]])
    for name, amounts in left.items():
        if amounts.any():
            rows[(*NO_SITE, name)] = amounts
    keys = sorted(rows, key=lambda key: (key[4], key[:4]))
    table = np.array([rows[key] for key in keys], np.int64).reshape(-1, len(sites.columns))
    return _columns(["class", *FUNCTION], ((key[4], *key[:4]) for key in keys)) | {
        name: table[:, nth] for nth, name in enumerate(sites.columns)
    }


# The tables that are more than the keys and amounts of one kind of totals.
ROWS_OF: dict[str, Callable[[Totals], Values]] = {
    "functions": _functions, "stacks": _stacks, "markers": _markers, "marker_groups": _marker_groups,
    "allocations": _allocations,
}  # fmt: skip
