"""Reads a data set that `aggregate` wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from traceferry.analysis.totals.portable import Amounts, Totals, Tree
from traceferry.analysis.totals.rows import Key, Rows
from traceferry.apps.fleet import storage
from traceferry.apps.fleet.forest import MEASURES
from traceferry.apps.fleet.tables import COLUMNS, FACTS, FUNCTION, GROUP, NO_SITE, RECORDINGS, VERSION
from traceferry.apps.fleet.work import DONE
from traceferry.common.errors import FormatError
from traceferry.model import Array


@dataclass(frozen=True)
class Combination:
    """The recordings of one combination of labels. totals: as of one recording, `tree` being a forest; recordings: rows
    of the table of those that were read."""

    labels: dict[str, str]
    totals: Totals
    recordings: Sequence[dict[str, Any]]

    @property
    def name(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.labels.items())


def is_data_set(url: str) -> bool:
    """Whether a folder has the tables."""
    return any(name.endswith(".parquet") for name in storage.names_in(storage.joined(url, RECORDINGS)))


def failures(url: str) -> list[tuple[str, str, str]]:
    """(recording, status, reason) of those that could not be read."""
    columns = ["recording", "status", "reason"]
    found = []
    for name in storage.names_in(storage.joined(url, RECORDINGS)):
        rows = _keys(table_of(url, RECORDINGS, name, columns), columns)
        found += [(recording, status, reason) for recording, status, reason in rows if status != DONE]
    return found


def combinations(url: str) -> Iterator[Combination]:
    """Yields the combinations of labels of each file of the data set. Raises FormatError if it is of another
    version."""
    for name in storage.names_in(storage.joined(url, RECORDINGS)):
        tables = {table: table_of(url, table, name) for table in COLUMNS}
        labels = orjson.loads(tables["functions"].schema.metadata[FACTS.encode()])["labels"]
        recordings: dict[Key, list[dict[str, Any]]] = {}
        for row in tables[RECORDINGS].to_pylist():
            if row["status"] == DONE:
                recordings.setdefault(tuple(row[label] for label in labels), []).append(row)
        split = {table: _split(tables[table], labels) for table in COLUMNS if table != RECORDINGS}
        for values in sorted(recordings):
            parts = {table: of.get(values, tables[table].slice(0, 0)) for table, of in split.items()}
            yield Combination(dict(zip(labels, values, strict=True)), _totals(parts), recordings[values])


def table_of(url: str, table: str, name: str, columns: Sequence[str] | None = None) -> Any:
    """Returns a file of a table, with its facts as metadata. columns: those that are decoded; None: all. Raises
    FormatError if it is not there, or of another version."""
    import pyarrow
    from pyarrow import parquet

    path = storage.joined(storage.joined(url, table), name)
    try:
        # Arrow's own threads could outlive the interpreter, which then aborts.
        file = parquet.ParquetFile(pyarrow.BufferReader(storage.read(path)), pre_buffer=False)
        found = file.read(columns, use_threads=False)
        facts = orjson.loads(found.schema.metadata[FACTS.encode()])
    except (FileNotFoundError, pyarrow.ArrowInvalid, KeyError, TypeError):
        raise FormatError("not a table of a data set that `aggregate` wrote", path=path) from None
    if facts["version"] != VERSION:
        message = f"the data set has version {facts['version']}, this program reads {VERSION}"
        raise FormatError(message, path=path)
    return found


def _split(table: Any, labels: Sequence[str]) -> dict[Key, Any]:
    """The rows of each combination, which lie together."""
    if not labels:
        return {(): table}
    columns = [table.column(label).to_pylist() for label in labels]
    values = list(zip(*columns, strict=True))
    starts = [row for row in range(len(values)) if row == 0 or values[row] != values[row - 1]]
    ends = [*starts[1:], len(values)] if values else []
    return {values[start]: table.slice(start, end - start) for start, end in zip(starts, ends, strict=True)}


# ---------------------------------------------------------------- totals


def _totals(parts: dict[str, Any]) -> Totals:
    none = Totals()
    sites = _rows(none.sites, parts["allocations"], [*FUNCTION, "class"])
    return Totals(
        functions=_rows(none.functions, parts["functions"], FUNCTION),
        classes=_rows(none.classes, parts["allocations"], ["class"]),
        markers=_marker_groups(none.markers, parts["marker_groups"]),
        marker_sums=_marker_sums(none.marker_sums, parts["marker_groups"]),
        tiers=_rows(none.tiers, parts["tiers"], ["tier"]),
        tree=_forest(parts["stacks"]),
        sites=sites.of_pairs(pair for pair in zip(sites.keys, sites.amounts, strict=True) if pair[0][:4] != NO_SITE),
        events=_rows(none.events, parts["markers"], ["marker"]),
        durations=_durations(none.durations, parts["markers"]),
        code=_rows(none.code, parts["code"], [*FUNCTION, "tier"]),
        retained=_rows(none.retained, parts["heap"], ["class"]),
        threads=_rows(none.threads, parts["threads"], ["process", "thread"]),
        recorded=_rows(none.recorded, parts["events"], [*GROUP, "kind"]),
        weights=_weights(none, parts["functions"], parts["events"]),
        losses=_rows(none.losses, parts["losses"], ["loss"]),
        colors=_rows(none.colors, parts["colors"], ["of", "name", "family", "color"]),
    )


def _ints(table: Any, name: str) -> Array:
    found: Array = table.column(name).to_numpy()
    return found.astype(np.int64)


def _keys(table: Any, names: Sequence[str]) -> list[Key]:
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def _rows(kind: Rows, table: Any, names: Any) -> Rows:
    """Rows that the names tell apart; other columns of the table are added up over."""
    return kind.of(_keys(table, list(names)), np.stack([_ints(table, name) for name in kind.columns], axis=1))


def _weights(none: Totals, functions: Any, events: Any) -> Rows:
    """Returns what functions have of each event. As many samples as make the weight, if all of an event weigh the same:
    those of functions are known of the main event only."""
    names = ["event", "unit"]
    sums_of = none.recorded.of(
        _keys(events, names), np.stack([_ints(events, c) for c in none.recorded.columns], axis=1)
    )
    kinds = {(event, unit): kind for event, unit, kind in _keys(events, [*names, "kind"])}
    per_sample = {key: weight / max(n, 1) for key, (n, weight) in zip(sums_of.keys, sums_of.amounts, strict=True)}
    keys = _keys(functions, [*FUNCTION, *names])
    weights = np.stack([_ints(functions, name) for name in ("weight", "total_weight")], axis=1)
    used = [nth for nth, key in enumerate(keys) if key[4:] in kinds and weights[nth, 1]]
    scale = np.array([max(per_sample[keys[nth][4:]], 1e-300) for nth in used])
    amounts = weights[used].reshape(-1, 2)
    counts = np.ceil(amounts / scale[:, None]).astype(np.int64)
    return none.weights.of([(*keys[nth], kinds[keys[nth][4:]]) for nth in used], np.hstack([counts, amounts]))


def _marker_groups(kind: Rows, table: Any) -> Rows:
    rows = _rows(kind, table, ["marker", "values"])
    return kind.of([(name, *orjson.loads(values)) for name, values in rows.keys], rows.amounts)


def _marker_sums(kind: Rows, table: Any) -> Rows:
    return kind.of_pairs(
        ((name, *orjson.loads(values), field), amount)
        for name, values, n_bytes in _keys(table, ["marker", "values", "bytes"])
        for field, amount in orjson.loads(n_bytes).items()
    )


def _durations(kind: Rows, table: Any) -> Rows:
    return kind.of_pairs(
        ((name, bucket), count)
        for name, buckets, counts in _keys(table, ["marker", "bucket", "bucket_count"])
        for bucket, count in zip(buckets, counts, strict=True)
    )


def _forest(table: Any) -> Tree:
    if not len(table):
        return Tree()
    groups = _keys(table, list(GROUP))
    frames = _keys(table, [*FUNCTION, "category", "tier", "inlined"])
    place: dict[Key, int] = {}
    roots = [place.setdefault(group, len(place)) for group in groups]
    n = len(place)
    names: dict[Key, int] = {}
    frame = [names.setdefault(key, len(names)) for key in frames]
    parent = [
        root if above is None else above + n
        for root, above in zip(roots, table.column("parent").to_pylist(), strict=True)
    ]
    own = np.zeros((n + len(frames), len(MEASURES)), np.int64)
    for nth, name in enumerate(MEASURES):
        own[n:, nth] = _ints(table, name)
    return Tree.of(
        [*place, *names],
        np.array([-1] * n + parent, np.int32),
        np.array([*range(n), *(n + f for f in frame)], np.int32),
        [(name,) for name in MEASURES],
        Amounts.of_columns(own),
    )
