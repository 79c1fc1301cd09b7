"""The largest costs as data and in words, as `traceferry info` and pages say them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceferry.analysis.totals.collect import Collected
from traceferry.analysis.totals.costs import Cost, costs_of, is_without_name, library_of
from traceferry.analysis.totals.own_code import OwnCode
from traceferry.common.patterns import compiled_later
from traceferry.common.units import format_amount, format_duration
from traceferry.model import Array, TraceBuilder, sums
from traceferry.symbolication.short_names import brief_name
from traceferry.timeline.off_cpu import EVENT as OFF_CPU

Json = dict[str, Any]
# Less of the whole is no cost that anybody would name.
LEAST_COST = 0.01
# Less of a cost is no part of it that would explain it.
LEAST_PART = 0.1
# Letters of a name, which is shortened beyond.
LONGEST_NAME = 60
OUTSIDE = "outside of your code"
IDLE = "idle"
IN_MEMORY = "code in memory without names"
# As glibc calls its functions for itself, and Mono its ways to native code.
_FOR_ITSELF = compiled_later(r"__GI_+|\(wrapper managed-to-native\) ")


def costs_json(collected: Collected) -> list[Json]:
    """Returns the largest costs of samples, and of time off the processors, where the recording has them."""
    trace, of_samples = collected.samples.by_stack()
    of_waits = collected.waits.by_stack[:, 0]
    is_sampled = bool(trace.events) and trace.events[0].kind != OFF_CPU.kind
    own_code = collected.own_code
    found = [_json(trace, "samples", trace.sample_unit, of_samples, own_code)] if is_sampled or not trace.events else []
    found.append(_json(trace, OFF_CPU.name, "ns", of_waits, own_code))
    return [costs for costs in found if costs["largest"]]


def _json(trace: TraceBuilder, of: str, unit: str, of_stack: Array, own_code: OwnCode) -> Json:
    whole = sums.total(of_stack)
    costs = costs_of(trace, of_stack, own_code)
    busy = whole - sum(cost.amount for cost in costs if cost.is_idle)
    costs = [cost for cost in costs if cost.amount >= LEAST_COST * (whole if cost.is_idle else busy)]
    return {"of": of, "unit": unit, "whole": whole, "largest": [_cost(trace, cost) for cost in costs]}


def _cost(trace: TraceBuilder, cost: Cost) -> Json:
    func = cost.func
    is_group = cost.is_in_memory or (func >= 0 and is_without_name(trace, func))
    source = int(trace.funcs["source"][func]) if func >= 0 and not is_group else -1
    name = IN_MEMORY if cost.is_in_memory else _name(trace, func)
    return {
        "function": name, "is_group": is_group, "is_idle": cost.is_idle,
        "file": trace.strings[int(trace.sources["path"][source])] if source >= 0 else None,
        "line": int(trace.funcs["line"][func]) or None if source >= 0 else None,
        "amount": cost.amount, "self": cost.own,
        "callee": _name(trace, cost.callee), "callee_amount": cost.of_callee,
        "code_of": cost.maker or None, "code_of_amount": cost.of_maker,
    }  # fmt: skip


def _name(trace: TraceBuilder, func: int) -> str | None:
    if func < 0:
        return None
    if is_without_name(trace, func):
        return f"functions of {library_of(trace, func)} without names"
    return trace.func_name(func)


def costs_title(costs: Json) -> str:
    """Returns what the amounts are of."""
    if costs["of"] == OFF_CPU.name:
        return f"largest costs of {format_duration(costs['whole'])} off the CPU"
    if costs["unit"] != "samples":
        return f"largest costs of {format_amount(costs['whole'], costs['unit'])}"
    return f"largest costs of {costs['whole']:,} sample{'s' * (costs['whole'] != 1)}"


def cost_words(cost: Json, costs: Json, shorts: Mapping[str, str]) -> tuple[str, str, str, str, str]:
    """Returns a cost as five parts of a sentence: its share, the function or "", words between, another function or "",
    and the words behind it. shorts: short forms of names."""
    whole, amount, own = costs["whole"], cost["amount"], cost["self"]

    def share(part: int) -> str:
        return format_share(part, whole)

    if cost["is_idle"]:
        return share(amount), "", IDLE, "", ""
    waits = "waits, " if costs["of"] == OFF_CPU.name else ""
    is_in_memory = cost["function"] == IN_MEMORY
    name = _shown(cost["function"], shorts) if cost["function"] and not is_in_memory else ""
    line = f":{cost['line']}" if cost["line"] else ""
    place = f" {cost['file'].rpartition('/')[2]}{line}" if cost["file"] else ""
    before = place if name else IN_MEMORY if is_in_memory else OUTSIDE
    callee = _shown(cost["callee"], shorts) if cost["callee"] else ""
    behind = f" ({share(cost['callee_amount'])})" if callee else ""
    if not name and not is_in_memory:
        if not callee and cost["code_of"]:
            most = _part(cost["code_of_amount"], amount)
            before += f": {waits}{most} in {cost['code_of']} ({share(cost['code_of_amount'])})"
        return share(amount), "", before + f": {waits}most under " * bool(callee), callee, behind
    if not callee or own >= 0.9 * amount:
        itself = "" if own < 0.5 * amount or cost["is_group"] else " itself"
        return share(amount), name, before + itself, "", ""
    word = "themselves" if cost["is_group"] and name else "itself"
    itself = f"{share(own)} {word}" if own >= LEAST_PART * amount else ""
    if cost["callee_amount"] < LEAST_PART * (amount - own):
        # Most is in code that nobody could name, or in many functions.
        return share(amount), name, before + f": {itself}" * bool(itself), "", ""
    itself += ", " * bool(itself)
    between = f"{before}: {itself}{waits}{_part(cost['callee_amount'], amount - own)} in "
    return share(amount), name, between, callee, behind


def _part(one: int, of: int) -> str:
    return "most" if 2 * one >= of else "the largest part"


def _shown(name: str, shorts: Mapping[str, str]) -> str:
    name = shorts.get(name, name)
    name = name[found.end() :] if (found := _FOR_ITSELF.match(name)) else name
    return brief_name(name, LONGEST_NAME)


def format_share(part: int, whole: int) -> str:
    """Returns a percentage with three digits, as pages show it."""
    value = 100 * part / whole
    return f"{value:.{1 if value >= 10 else 2}f}%"
