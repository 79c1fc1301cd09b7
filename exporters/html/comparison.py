"""The page of a comparison: a differential flame graph, the tables of what changed, and the runs side by side.

It is made of the same modules as the page of a recording, and as that one makes no request to anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import orjson

from traceferry.analysis.compare import figures
from traceferry.analysis.compare.amounts import Key
from traceferry.analysis.compare.as_json import as_json
from traceferry.analysis.compare.comparison import Comparison
from traceferry.analysis.compare.trees import SMALLER, DiffTree, Measured, diff_tree
from traceferry.exporters.html.embed import first_that_fits
from traceferry.exporters.html.page import write_document
from traceferry.files.output import Output
from traceferry.symbolication.short_names import short_names

SCRIPTS = (
    "bytes.js", "format.js", "dom.js", "colors.js", "paths.js", "state.js", "table.js", "flame.js", "compare_tree.js",
    "compare_tables.js", "compare_main.js",
)  # fmt: skip
# Call paths and rows of each table, from much to little, until the data has at most so many characters.
STEPS = ((20_000, 500), (10_000, 300), (5_000, 200), (2_000, 100), (500, 50), (100, 20))
MOST_DATA = 400_000
# Of a call path with its amounts, compressed.
BYTES_PER_NODE = 10.0
LONGEST_NAME = 1000
Json = dict[str, Any]


def write_comparison(comparison: Comparison, out: Output) -> None:
    tree, found = diff_tree(comparison), as_json(comparison)

    def made(step: tuple[int, int]) -> bytes:
        n_nodes, n_rows = step
        return orjson.dumps(_shaped(comparison, found, tree.largest(n_nodes), n_rows))

    def estimated(step: tuple[int, int]) -> float:
        return BYTES_PER_NODE * min(step[0], len(tree.parent))

    _, data = first_that_fits(STEPS, made, estimated, MOST_DATA)
    write_document(out, SCRIPTS, {"data-0": data})


def _shaped(comparison: Comparison, found: Json, tree: DiffTree, n_rows: int) -> Json:
    tables = [
        table
        | {"rows": table["rows"][:n_rows], "n_rows": len(table["rows"]), "level": figures.level(compared, comparison)}
        for table, compared in zip(
            [found["whole"], *found["tables"]], [comparison.whole, *comparison.tables], strict=True
        )
    ]
    if comparison.is_identical:
        # Of a single run nothing is known but that: here it is enough.
        tables = [table | {"rows": [row | {"verdict": "same"} for row in table["rows"]]} for table in tables]
    model = [] if comparison.is_identical else [figures.samples_model(comparison)]
    return {
        "made_by": f"traceferry {version('traceferry')}",
        "model": " ".join([*model, *(f"Note: {note}." for note in comparison.notes)]),
        **{key: found[key] for key in ("verdict", "headline", "base", "new", "tiers", "sample_ns")},
        "tables": tables,
        "graph": _graph(comparison, tree),
        "graph_level": _graph_level(comparison),
        "joined": tree.n_joined,
        "frames": {
            "name": [frame[0][:LONGEST_NAME] for frame in tree.frames],
            "short": _short_forms([frame[0] for frame in tree.frames]),
            "place": [_position(frame) for frame in tree.frames],
            "verdicts": _verdicts(comparison, tree),
        },
        "nodes": {"parent": tree.parent.tolist(), "frame": tree.frame.tolist()},
        "measured": [_measured(measured) for measured in tree.measured],
    }


def _graph(comparison: Comparison, tree: DiffTree) -> str:
    """Returns the change of the graph's first weight as a whole, which is not that of the recordings where runs were
    brought to one level; "" without a graph."""
    if not tree.measured:
        return ""
    first = tree.measured[0]
    shown = [each for each in tree.measured if (each.name, each.unit) == (first.name, first.unit)]
    sides = [each.base for each in shown], [each.new for each in shown]
    base, new = (float(sum(column.sum() for column in side)) for side in sides)
    if comparison.is_identical or base <= 0:
        return ""
    of = first.unit if (first.name, first.unit) == ("samples", "bytes") else first.name
    return f"{figures.percent(new / base - 1)} of {of}"


def _graph_level(comparison: Comparison) -> str:
    """Returns how the runs of the graph were brought to one level, "" where nothing was."""
    if comparison.is_identical:
        return ""
    table = next((table for table in comparison.tables if table.name == "self"), None)
    return figures.level(table, comparison) if table is not None else ""


def _short_forms(names: Sequence[str]) -> list[str]:
    """Returns the short form of each name, "" where that is the name itself."""
    shorts = zip(names, short_names(names), strict=True)
    return [short[:LONGEST_NAME] if short != name else "" for name, short in shorts]


def _verdicts(comparison: Comparison, tree: DiffTree) -> list[list[str]]:
    """Returns what changed of each frame's function, as "self time slower"."""
    found: dict[Key, list[str]] = {}
    for table in comparison.tables:
        for row in table.changed if table.name in ("self", "total") else ():
            found.setdefault(row.key, []).append(f"{table.amounts.title} {row.verdict}")
    return [[] if frame == SMALLER else found.get(frame[:4], []) for frame in tree.frames]


def _position(frame: tuple[Any, ...]) -> str:
    file, line = frame[1], frame[2]
    return f"{file}:{line}" if file and line else str(file)


def _measured(measured: Measured) -> Json:
    return {
        **{key: getattr(measured, key) for key in ("process", "thread", "name", "unit")},
        "node": measured.node.tolist(),
        "base": [round(x, 4) for x in measured.base.tolist()],
        "new": [round(x, 4) for x in measured.new.tolist()],
    }
