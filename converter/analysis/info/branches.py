"""The branches of a recording, as `traceferry info` shows them: the edges that were taken most, and functions."""

from __future__ import annotations

from typing import Any

from traceferry.analysis.totals.branches import AMOUNTS, BranchTotals, EdgeGroups, amounts_of, by_function, by_place
from traceferry.model import Array, Trace, sums

Json = dict[str, Any]


def branches_json(trace: Trace, totals: BranchTotals, top: int) -> Json | None:
    """Returns the sums of all branches, the edges by how often they were taken, and the functions by how many of their
    branches were mispredicted; None where none was recorded."""
    edges = totals.edges()
    if not len(edges):
        return None
    whole = _amounts(amounts_of(edges).sum(axis=0))
    return {
        **whole,
        "edges": _edges(trace, by_place(trace, edges), top),
        "functions": _functions(trace, by_function(trace, edges), top),
    }


def _amounts(row: Array) -> Json:
    """Figures of one row of AMOUNTS. A rate and a mean are None where nothing tells."""
    named = dict(zip(AMOUNTS, row.tolist(), strict=True))
    known = named["mispredicted"] + named["predicted"]
    return {
        "taken": sums.limited(named["taken"]),
        "mispredicted": sums.limited(named["mispredicted"]) if known else None,
        "mispredicted_share": named["mispredicted"] / known if known else None,
        "mean_cycles": named["cycles"] / named["timed"] if named["timed"] else None,
    }


def _edges(trace: Trace, groups: EdgeGroups, top: int) -> list[Json]:
    texts = {frame: _place(trace, frame) for frame in set(groups.keys.reshape(-1).tolist())}
    rows = zip(groups.keys.tolist(), groups.amounts, strict=True)
    ranked = sorted(rows, key=lambda row: (-row[1][0], *(_order(texts[frame]) for frame in row[0])))
    return [{**_amounts(amounts), "from": texts[begin], "to": texts[end]} for (begin, end), amounts in ranked[:top]]


def _functions(trace: Trace, groups: EdgeGroups, top: int) -> list[Json]:
    rows = [
        ({"function": trace.func_name(func) if func >= 0 else None, "tier": _tier(trace, code)}, code, amounts)
        for (func, code), amounts in zip(groups.keys.tolist(), groups.amounts, strict=True)
    ]
    rows.sort(key=lambda row: (-row[2][1], -row[2][0], row[0]["function"] or "", row[1]))
    return [{**_amounts(amounts), **named} for named, _, amounts in rows[:top]]


def _place(trace: Trace, frame: int) -> Json:
    if frame < 0:
        return {"function": None, "file": None, "line": None, "offset": None, "tier": None}
    func, source = int(trace.frames["func"][frame]), int(trace.frames["source"][frame])
    source = source if source >= 0 else int(trace.funcs["source"][func])
    return {
        "function": trace.func_name(func),
        "file": trace.strings[int(trace.sources["path"][source])] if source >= 0 else None,
        "line": int(trace.frames["line"][frame]) or None,
        "offset": _offset(trace, frame),
        "tier": _tier(trace, int(trace.frames["code"][frame])),
    }


def _offset(trace: Trace, frame: int) -> int | None:
    """Returns how many bytes behind the beginning of its machine code the address is."""
    symbol, address = int(trace.frames["symbol"][frame]), int(trace.frames["address"][frame])
    return address - int(trace.symbols["address"][symbol]) if symbol >= 0 and address >= 0 else None


def _tier(trace: Trace, code: int) -> str | None:
    tier = int(trace.code["tier"][code]) if code >= 0 else -1
    return trace.strings[int(trace.tiers["name"][tier])] if tier >= 0 else None


def _order(place: Json) -> tuple[str, str, int, int, str]:
    return place["function"] or "", place["file"] or "", place["line"] or 0, place["offset"] or 0, place["tier"] or ""
