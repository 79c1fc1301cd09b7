"""The sampled accesses to memory, as `traceferry info` shows them: by level, and by function and level."""

from __future__ import annotations

from typing import Any

from traceferry.analysis.totals.accesses import AccessTotals, latency_event
from traceferry.model import Trace, sums

Json = dict[str, Any]
Amounts = tuple[int, int, int]


def accesses_json(trace: Trace, row: int, totals: AccessTotals, top: int) -> Json:
    """Returns an event's samples by level, and by function and level, those that took the longest first; latency is
    null where the recording has none."""
    has_latency = latency_event(trace, row) is not None
    found = totals.by_level()
    amounts = list(zip(found.samples.tolist(), found.latency.tolist(), found.timed.tolist(), strict=True))
    by_level: dict[str, Amounts] = {}
    by_function: dict[tuple[str, str], Amounts] = {}
    for func, level, amount in zip(found.func.tolist(), found.level, amounts, strict=True):
        by_level[level] = _plus(by_level.get(level), amount)
        key = trace.func_name(func), level
        by_function[key] = _plus(by_function.get(key), amount)
    whole = _amounts(_plus(None, *amounts), has_latency)
    functions = sorted(by_function.items(), key=lambda item: _order(item[1], item[0]))
    return {
        "event": trace.events[row].name,
        **whole,
        "levels": [
            {"level": level or None, **_amounts(of, has_latency)}
            for level, of in sorted(by_level.items(), key=lambda item: _order(item[1], item[0]))
        ],
        "functions": [
            {"function": function, "level": level or None, **_amounts(of, has_latency)}
            for (function, level), of in functions[:top]
        ],
    }


def _plus(*parts: Amounts | None) -> Amounts:
    known = [part for part in parts if part is not None]
    samples, latency, timed = (sums.limited(sum(column)) for column in zip((0, 0, 0), *known, strict=True))
    return samples, latency, timed


def _order(amounts: Amounts, name: Any) -> tuple[int, int, Any]:
    return -amounts[1], -amounts[0], name


def _amounts(amounts: Amounts, has_latency: bool) -> Json:
    samples, latency, timed = amounts
    return {
        "samples": samples,
        "latency": latency if has_latency else None,
        "mean_latency": latency / timed if has_latency and timed else None,
    }
