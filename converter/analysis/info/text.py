"""The answers of `traceferry info` as text: aligned columns, names last, no empty sections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import dropwhile
from typing import Any

from traceferry.analysis.info.costs import cost_words, costs_title
from traceferry.analysis.info.threads import counted, percent, threads_lines
from traceferry.analysis.totals.sites import without_wrappers
from traceferry.analysis.verdict import verdict_lines
from traceferry.common.issue_kinds import KINDS
from traceferry.common.patterns import compiled_later
from traceferry.common.report import n_times
from traceferry.common.shown_text import aligned, shown
from traceferry.common.units import format_amount, format_duration
from traceferry.symbolication.short_names import short_names

Json = dict[str, Any]
# The short forms of names.
Shorts = Mapping[str, str]
Column = tuple[str, Callable[[Json], str]]
CALLERS_SHOWN = 4
ADDRESSES_FROM = 1 << 32
# Functions of the kernel in which every thread leaves its processor.
SCHEDULER = compiled_later(r"_*(?:preempt_)?schedule(?:_\w+)?|io_schedule(?:_\w+)?|finish_task_switch.*")
KERNEL_SHOWN, USER_SHOWN = 2, 5
# Columns of events, and of ratios, in the table of functions.
EVENTS_SHOWN = 6


def as_text(
    summary: Json, names: Sequence[str] = (), *, top: int = 20, has_verdict: bool = True, has_issues: bool = True
) -> str:
    """Returns the text of what `summarize` returns. names: of all functions of the recording, among which the short
    forms of names must be unique; top: how many threads and counters are shown; has_issues: whether the whole report
    stands at the end."""
    shorts = dict(zip(names, short_names(names), strict=True))
    time = summary["time"]
    lines = [
        f"{i['path']}: " + ", ".join(part for part in (i["producer"], f"{i['format']} {i['version']}".rstrip()) if part)
        for i in summary["inputs"]
    ]
    lines.append(f"{format_duration(time['duration_ns'])} on the {time['clock']} clock")
    lines += ["", *verdict_lines(summary["verdict"])] if has_verdict else []
    for costs in summary["costs"]:
        lines += _costs(costs, shorts)
    unit = summary["functions"]["sample_unit"]
    lines += threads_lines(summary["processes"], top, unit)
    lines += _events(summary["events"], unit)
    lines += _functions(summary["functions"], shorts)
    lines += _scheduling(summary["scheduling"], shorts, top)
    of_tiers = [_number("bytes"), _number("objects"), _name("name", "tier")]
    lines += _table("jitted code by tier", of_tiers, summary["tiers"])
    lines += _allocations(summary["allocations"], shorts)
    for process in summary["processes"]:
        lines += _heap_snapshots(process["heap_snapshots"], shorts)
    for markers in summary["markers"]:
        lines += _markers(markers)
    lines += _table("intervals", [_number("count"), *LASTING, _name("type")], summary["intervals"])
    for process in summary["processes"]:
        lines += _counters([counter for counter in process["counters"] if counter["values"]], top)
    lines += _branches(summary["branches"], shorts)
    for accesses in summary["accesses"]:
        lines += _accesses(accesses, shorts)
    lines += _coverage(summary["coverage"])
    lines += _issues([issue for issue in summary["issues"] if has_issues or KINDS[issue["kind"]].is_told])
    return "\n".join(map(shown, lines))


# ---------------------------------------------------------------- tables


def _table(title: str, columns: Sequence[Column], rows: Sequence[Json]) -> list[str]:
    """Nothing if there are no rows; the last column, a name, is the only one that is not flush right."""
    if not rows:
        return []
    cells = [[head for head, _ in columns], *([show(row) for _, show in columns] for row in rows)]
    return ["", f"{title}:", *aligned(cells)]


def _number(key: str, head: str = "", show: Callable[[Any], str] = str) -> Column:
    return head or key.replace("_", " "), lambda row: show(row[key])


def _duration(key: str, head: str) -> Column:
    return _number(key, head, format_duration)


def _name(key: str, head: str = "") -> Column:
    return _number(key, head, lambda name: name or "unknown")


# ---------------------------------------------------------------- sections


def _costs(costs: Json, shorts: Shorts) -> list[str]:
    """Returns the largest costs in words: of the user's functions, with what they call outside of their code."""
    told = [cost_words(cost, costs, shorts) for cost in costs["largest"]]
    return ["", f"{costs_title(costs)}:", *(f"  {share:>6}  {''.join(words)}" for share, *words in told)]


def _counters(counters: list[Json], top: int) -> list[str]:
    """Returns the lines of those counters that were recorded most often, in their order, without those that stayed 0,
    of which a runtime has many."""
    counted = [counter for counter in counters if counter["min"] or counter["max"]]
    kept = sorted(range(len(counted)), key=lambda nth: -counted[nth]["values"])[:top]
    shown = [counted[nth] for nth in sorted(kept)]
    rest = [f"  {len(counted) - len(shown)} more: --top {len(counted)} shows all"] if len(shown) < len(counted) else []
    rest += [f"  {len(counters) - len(counted)} more stayed 0"] if len(counted) < len(counters) else []
    totals = ["total"] if any(counter["total"] is not None for counter in shown) else []
    figures = [_figure(key) for key in (*totals, "last", "first", "min", "max")]
    name = ("counter", lambda row: f"{row['name']} ({row['unit']})" if row["unit"] not in ("", "ns") else row["name"])
    return _table("counters", [*figures, _number("values"), name], shown) + rest


def _figure(key: str) -> Column:
    def show(row: Json) -> str:
        value = row[key]
        if value is None:
            return ""
        if row["unit"] == "ns":
            return format_duration(round(value))
        return f"{value:.0f}" if value.is_integer() else f"{value:.6g}"

    return key, show


def _times_of_threads(threads: list[Json], top: int) -> list[str]:
    """Returns the lines of those that ran most, in their order, and what the others have together."""
    titles = {"on_ns": "on a CPU", "runnable_ns": "runnable", "blocked_ns": "blocked", "unknown_ns": "unknown"}
    titles = {key: title for key, title in titles.items() if any(thread[key] for thread in threads)}
    ranked = sorted(range(len(threads)), key=lambda nth: -threads[nth]["on_ns"])
    shown, rest = ([threads[nth] for nth in sorted(part)] for part in (ranked[:top], ranked[top:]))
    columns = [_duration(key, title) for key, title in titles.items()]
    lines = _table("time of threads", [*columns, ("thread", _thread)], shown)
    if rest:
        totals = {title: sum(thread[key] for thread in rest) for key, title in titles.items()}
        times = ", ".join(f"{format_duration(total)} {title}" for title, total in totals.items() if total)
        lines.append(f"  {counted(len(rest), 'more thread')}" + (f": {times}" if times else ""))
    return lines


def _scheduling(scheduling: Json | None, shorts: Shorts, top: int) -> list[str]:
    """Returns the lines of when threads ran and waited. top: how many threads are shown."""
    if scheduling is None:
        return []

    def where(row: Json) -> str:
        # What all switches have in common says nothing.
        stack = list(dropwhile(SCHEDULER.fullmatch, row["stack"])) or row["stack"]
        n_left_out = len(row["stack"]) - len(stack)
        n_kernel, n_machine = max(row["kernel_frames"] - n_left_out, 0), row["machine_frames"] - n_left_out
        kernel, user = stack[:n_kernel], stack[n_kernel:]
        # Of the libraries between the kernel and the program, the system call and what the program calls say most.
        if n_kernel + 2 < n_machine < len(stack):
            user = [user[0], *stack[n_machine - 1 :]]
        names = kernel[:KERNEL_SHOWN] + user[:USER_SHOWN]
        return " < ".join(shorts.get(name, name) for name in names) or "unknown"

    def waker(row: Json) -> str:
        return "" if row["waker_tid"] is None else f"{row['waker'] or 'thread'} {row['waker_tid']}"

    lines = _times_of_threads(scheduling["threads"], top)
    lines += _table(
        "longest waits",
        [
            _duration("duration_ns", "wait"),
            _duration("runnable_ns", "for a CPU"),
            _duration("start_ns", "at"),
            ("thread", lambda row: f"{row['thread']} {row['tid']}"),
            ("why", lambda row: str(row["why"])),
            ("woken by", waker),
            ("where", where),
        ],
        scheduling["longest"],
    )
    of_stacks = [_duration("duration_ns", "off CPU"), _number("count", "times"), _number("category"), ("where", where)]
    return lines + _table("stacks off the CPU", of_stacks, scheduling["stacks"])


def _thread(row: Json) -> str:
    return f"{row['name']} {row['tid']}"


def _events(events: Json, unit: str) -> list[str]:
    """Returns the lines of the recorded events, where there are several. unit: of the first one's samples."""
    ratios = _table("ratios", [("ratio", _ratio), _name("name", "of all that was counted")], events["ratios"])
    if len(events["recorded"]) < 2:
        return ratios
    first, is_amount = events["recorded"][0], unit != "samples"

    def weight(event: Json) -> str:
        return format_amount(event["weight"], unit if event is first and is_amount else event["unit"])

    samples = ("samples", lambda event: "" if event is first and is_amount else str(event["samples"]))
    columns = [samples, ("weight", weight), ("event", _event_name)]
    return _table("events", columns, events["recorded"]) + ratios


def _event_name(event: Json) -> str:
    notes = [f"read with {event['leader']}"] if event["leader"] else []
    notes += ["scaled: counted for a part of the time"] if event["is_scaled"] else []
    return f"{event['name']} ({', '.join(notes)})" if notes else str(event["name"])


def _functions(functions: Json, shorts: Shorts) -> list[str]:
    """Returns the table of functions: only the columns that the recording has something for."""
    top, n_samples, whole_ns = functions["top"], functions["samples"], functions["self_ns"]
    columns: list[Column] = []
    of = []
    if any(row["calls"] for row in top):
        columns += [*_shared("self_ns", "self", whole_ns, format_duration)]
        columns += [*_shared("total_ns", "total", whole_ns, format_duration), _number("calls")]
        of.append(format_duration(whole_ns))
    if any(row["total_samples"] for row in top):
        unit = functions["sample_unit"]
        is_amount = unit != "samples"
        show, head = partial(format_amount, unit=unit), "itself" if is_amount else "samples"
        columns += [
            *_shared("samples", head, n_samples, show),
            *_shared("total_samples", "with callees", n_samples, show),
        ]
        of.append(show(n_samples) if is_amount else counted(n_samples, "sample"))
    columns += _weights(top)
    columns.append(("function", lambda row: _function(row, shorts)))
    title = counted(functions["total"], "function") + (f", of {' and '.join(of)}" if of else "")
    return _table(title, columns, top) or ["", title]


def _shared(key: str, head: str, whole: int, show: Callable[[Any], str] = str) -> tuple[Column, Column]:
    """Returns the columns of an amount and of its part of the whole."""
    return _number(key, head, show), ("%", lambda row: percent(row[key], whole))


def _weights(top: list[Json]) -> list[Column]:
    """Returns the columns of what functions have of each event themselves, and of the ratios of these."""
    if not top or "weights" not in top[0]:
        return []
    # What counts samples has its columns.
    of_weights = [_weight(nth, of) for nth, of in enumerate(top[0]["weights"]) if of["unit"] != "samples"]
    shown = [column for column in of_weights if any(column[1](row) for row in top)]
    return [*shown[:EVENTS_SHOWN], *(_ratio_column(nth, of) for nth, of in enumerate(top[0]["ratios"]))][
        : 2 * EVENTS_SHOWN
    ]


def _weight(nth: int, of: Json) -> Column:
    """Returns the column of an event; empty where a function has nothing of it."""

    def show(row: Json) -> str:
        amount = row["weights"][nth]["self"]
        return format_amount(amount, of["unit"]) if amount else ""

    return of["event"], show


def _ratio_column(nth: int, of: Json) -> Column:
    return of["name"], lambda row: _ratio(row["ratios"][nth])


def _ratio(ratio: Json) -> str:
    return "" if ratio["value"] is None else f"{ratio['value']:.3f}"


def _function(row: Json, shorts: Shorts) -> str:
    line = f":{row['line']}" if row["line"] else ""
    place = f"  {row['file']}{line}" if row["file"] else ""
    return f"{shorts.get(row['name'], row['name'])}{place}"


def _branches(branches: Json | None, shorts: Shorts) -> list[str]:
    """Returns the edges that were taken most, and the functions whose branches were mispredicted most."""
    if branches is None:
        return []
    figures = [_number("taken")]
    if branches["mispredicted"] is not None:
        shown = lambda share: "" if share is None else f"{100 * share:.1f}%"  # noqa: E731
        figures += [_number("mispredicted", show=_known), _number("mispredicted_share", "share", shown)]
    if branches["mean_cycles"] is not None:
        figures.append(_number("mean_cycles", "cycles", lambda cycles: "" if cycles is None else f"{cycles:.1f}"))
    edge = ("from -> to", lambda row: f"{_code_place(row['from'], shorts)} -> {_code_place(row['to'], shorts)}")
    function = ("function", lambda row: _with_tier(row["function"], row["tier"], shorts))
    edges = _table(f"{branches['taken']} branches taken, by edge", [*figures, edge], branches["edges"])
    return edges + _table("branches by function", [*figures, function], branches["functions"])


def _accesses(accesses: Json, shorts: Shorts) -> list[str]:
    """Returns the accesses to memory of one event: by level, and by function and level."""
    figures = [_number("samples")]
    if accesses["latency"] is not None:
        mean = lambda latency: "" if latency is None else f"{latency:.1f}"  # noqa: E731
        figures += [_number("latency", "cycles"), _number("mean_latency", "each", mean)]
    title = f"accesses to memory of {accesses['event']}"
    by_level = _table(f"{title}, by level", [*figures, _name("level")], accesses["levels"])
    place = (
        "function",
        lambda row: f"{shorts.get(row['function'], row['function'])}  {row['level'] or 'unknown'}",
    )
    return by_level + _table(f"{title}, by function and level", [*figures, place], accesses["functions"])


def _known(value: int | None) -> str:
    return "" if value is None else str(value)


def _code_place(place: Json, shorts: Shorts) -> str:
    """Returns a function with its line, or where no line is known with the address in it."""
    name = _with_tier(place["function"], place["tier"], shorts)
    if place["line"]:
        return f"{name} {(place['file'] or '').rpartition('/')[2]}:{place['line']}"
    return f"{name}+{place['offset']:#x}" if place["offset"] else name


def _with_tier(function: str | None, tier: str | None, shorts: Shorts) -> str:
    name = shorts.get(function, function) if function else "unknown"
    return f"{name} [{tier}]" if tier else name


def _allocations(allocations: Json, shorts: Shorts) -> list[str]:
    columns = [_number("bytes"), _number("count")]
    if allocations["freed_count"]:
        columns += [
            ("bytes left", lambda row: str(row["bytes"] - row["freed_bytes"])),
            ("left", lambda row: str(row["count"] - row["freed_count"])),
        ]
    whole = f"{allocations['bytes']} bytes in {allocations['count']} allocations"
    by_class = _table(f"{whole}, by class", [*columns, _name("name", "class")], allocations["classes"])
    return by_class + _table(
        "allocations by site", [*columns, ("site", lambda row: _site(row, shorts))], allocations["sites"]
    )


def _site(row: Json, shorts: Shorts) -> str:
    """Returns the innermost function and some of its callers."""
    methods = without_wrappers(row["stack"])
    names = [shorts.get(name, name) for name in methods[:CALLERS_SHOWN]]
    return " < ".join([*names, "..."] if len(methods) > len(names) else names) or "unknown"


def _heap_snapshots(snapshots: list[Json], shorts: Shorts) -> list[str]:
    columns = [_duration("at_ns", "at"), *map(_number, ("bytes", "objects", "references", "roots"))]
    kinds: Column = (
        "kinds of roots",
        lambda row: ", ".join(f"{kind['count']} {kind['kind'] or 'unknown'}" for kind in row["root_kinds"]),
    )
    lines = _table("heap shots", [*columns, kinds], snapshots)
    for nth, snapshot in enumerate(snapshots, start=1):
        if snapshot["growth"] is not None:
            lines += _growth(f"growth from heap shot {nth - 1} to {nth}, by class", snapshot["growth"])
    if snapshots:
        alive = [_number("bytes"), _number("objects")]
        title = f"heap shot {len(snapshots)}"
        lines += _table(f"{title}, by class", [*alive, _name("name", "class")], snapshots[-1]["classes"])
        site: Column = ("class and site", lambda row: f"{row['name']}  {_site(row, shorts)}")
        lines += _table(f"{title}, by allocation site", [*alive, site], snapshots[-1]["sites"])
    return lines


def _growth(title: str, rows: list[Json]) -> list[str]:
    columns: list[Column] = [
        ("bytes", lambda row: f"{row['bytes_after'] - row['bytes_before']:+}"),
        ("objects", lambda row: f"{row['objects_after'] - row['objects_before']:+}"),
        _number("bytes_after", "to bytes"),
        _number("objects_after", "to objects"),
        _name("name", "class"),
    ]
    return _table(title, columns, rows)


LASTING: list[Column] = [
    _duration("total_ns", "total"),
    _duration("longest_ns", "longest"),
    ("average", lambda row: format_duration(row["total_ns"] // row["count"])),
]


def _markers(markers: Json) -> list[str]:
    columns = [_number("count")]
    if any(row["total_ns"] for row in markers["top"]):
        columns += LASTING
    columns += [_sum(key) for key in markers["top"][0]["sums"]] if markers["top"] else []
    by = ", ".join(key.replace("_", " ") for key in markers["group_by"])
    columns.append((by, lambda row: ", ".join(_group_value(value) for value in row["by"].values())))
    return _table(f"{markers['type']}, by {by}" if by else markers["type"], columns, markers["top"])


def _group_value(value: Any) -> str:
    """A number as large as an address is one."""
    return hex(value) if isinstance(value, int) and value >= ADDRESSES_FROM else str(value) or "unknown"


def _sum(key: str) -> Column:
    return key.replace("_", " "), lambda row: str(row["sums"][key])


def _coverage(coverage: Json | None) -> list[str]:
    if coverage is None:
        return []
    figures: list[Column] = [("covered", _percent), _number("covered", "ran"), _number("statements", "of statements")]
    lines = ["", f"code coverage: {_percent(coverage)}, {coverage['covered']} of {coverage['statements']} statements"]
    lines += _table("coverage by assembly", [*figures, _name("assembly")], coverage["assemblies"])
    lines += _table("coverage by class, most left first", [*figures, _name("class")], coverage["classes"])
    method: Column = ("method", lambda row: f"{row['class'] or 'unknown'}:{row['method'] or 'unknown'}")
    return lines + _table("coverage by method, most left first", [*figures, method], coverage["methods"])


def _percent(row: Json) -> str:
    return f"{100 * row['covered'] / row['statements']:.1f}%" if row["statements"] else "none"


def _issues(issues: list[Json]) -> list[str]:
    lines = [""] if issues else []
    for issue in issues:
        detail = f": {issue['detail']}" if issue["detail"] else ""
        place = f", first at offset {issue['offset']}" if issue["offset"] is not None else ""
        counted_as = f"{issue['kind']}, {n_times(issue['count'])}{place}"
        lines.append(f"{issue['severity']}: {issue['title']}{detail} [{counted_as}]")
        if issue["advice"]:
            lines.append(f"    {issue['advice']}")
    return lines
