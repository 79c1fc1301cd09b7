"""The answers of `traceferry info` as Markdown, for an issue or a comment on a pull request: what the recording is
worth, what costs most, and the longest lists, within a limit of bytes.

Nothing of a recording is markup here: names are code spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from traceferry.analysis.info.costs import cost_words, costs_title
from traceferry.analysis.info.text import CALLERS_SHOWN
from traceferry.analysis.info.threads import counted, percent, programs_of
from traceferry.analysis.totals.sites import without_wrappers
from traceferry.common.markdown import code, table
from traceferry.common.shown_text import shown, typed
from traceferry.common.units import format_duration, format_size
from traceferry.symbolication.short_names import short_names

Json = dict[str, Any]
# A comment on GitHub has at most 65,536 letters.
MOST_BYTES = 60_000
THREADS_SHOWN, WAITS_SHOWN = 5, 5
# Room for the sentence on what is left out.
SPARE_BYTES = 200


def as_markdown(summary: Json, names: Sequence[str] = (), *, has_verdict: bool = True, limit: int = MOST_BYTES) -> str:
    """Returns the Markdown of what `summarize` returns. names: of all functions of the recording, among which the short
    forms of names must be unique; limit: bytes of UTF-8, of which sections that do not fit are left out and named."""
    shorts = dict(zip(names, short_names(names), strict=True))
    verdict = ["", *_verdict(summary["verdict"])] if has_verdict else []
    head = "\n".join([_title(summary), *verdict])
    text, used, left_out = [_cut(head, limit)], len(head.encode()) + SPARE_BYTES, []
    for title, lines in _sections(summary, shorts):
        block = "\n".join(["", f"#### {title}", "", *lines])
        size = len(block.encode()) + 1
        if used + size > limit:
            left_out.append(title)
            continue
        text.append(block)
        used += size
    if left_out:
        are = "table is" if len(left_out) == 1 else "tables are"
        text += ["", f"{len(left_out)} {are} left out, since this would be too long: `traceferry info` prints all."]
    return "\n".join(text)


def _cut(text: str, limit: int) -> str:
    return text.encode()[:limit].decode(errors="ignore")


def _title(summary: Json) -> str:
    name = summary["title"] or next((each["path"] for each in summary["inputs"]), "recording")
    files = ", ".join(code(each["path"]) for each in summary["inputs"][:3])
    return f"### {code(name)}\n\n{files}: {format_duration(summary['time']['duration_ns'])}"


def _verdict(verdict: Json) -> Iterator[str]:
    yield f"**{_sentence(verdict['headline'])}**"
    for each in verdict["advice"]:
        command = typed(each["command"])
        yield f"- {_sentence(each['text'])}{f': {code(command, len(command))}' if command else ''}"
    if verdict["more"]:
        yield f"- {counted(verdict['more'], 'more issue')}: `traceferry info --verbose` tells them"


def _sentence(text: str) -> str:
    """Returns text that may have names of the recording in it: what would be a mark of Markdown or HTML is none, nor is
    anything a link."""
    plain = "".join(f"&#{ord(letter)};" if letter in "\\`*_{}[]<>#+!|~&@" else letter for letter in shown(text))
    return plain.replace("://", ":&#47;/").replace("www.", "www&#46;")


def _sections(summary: Json, shorts: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    for costs in summary["costs"]:
        yield costs_title(costs).capitalize(), _costs(costs, shorts)
    yield from _functions(summary["functions"], shorts)
    yield from _allocations(summary["allocations"], shorts)
    for process in summary["processes"]:
        yield from _heap(process["heap_snapshots"])
    yield from _waits(summary["scheduling"], shorts)
    yield from _threads(summary["processes"])
    lost = [issue for issue in summary["issues"] if issue["severity"] != "info"]
    if lost:
        yield "Lost or cut", [f"- {issue['count']:,}: {_sentence(issue['title'])}" for issue in lost]


def _costs(costs: Json, shorts: Mapping[str, str]) -> list[str]:
    lines = []
    for cost in costs["largest"]:
        share, name, between, callee, behind = cost_words(cost, costs, shorts)
        of = f"{code(name)}{_sentence(between)}" if name else _sentence(between)
        lines.append(f"1. **{share}** {of}{code(callee) if callee else ''}{behind}")
    return lines


def _functions(functions: Json, shorts: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    top, n_samples, whole_ns = functions["top"], functions["samples"], functions["self_ns"]
    columns: list[tuple[str, str, int]] = []
    if any(row["total_samples"] for row in top):
        columns += [("samples", "self", n_samples), ("total_samples", "with callees", n_samples)]
    if any(row["calls"] for row in top):
        columns += [("self_ns", "self time", whole_ns), ("total_ns", "with callees", whole_ns)]
    if not columns:
        return
    has_calls = any(row["calls"] for row in top)
    head = [*(head for _, head, _ in columns), *(["calls"] if has_calls else []), "function"]
    rows = [
        [*(percent(row[key], whole) for key, _, whole in columns), *([f"{row['calls']:,}"] if has_calls else []),
         _function(row, shorts)]
        for row in top
    ]  # fmt: skip
    yield counted(functions["total"], "function").capitalize(), table(head, rows)


def _function(row: Json, shorts: Mapping[str, str]) -> str:
    line = f":{row['line']}" if row["line"] else ""
    place = f" {code(row['file'].rpartition('/')[2] + line)}" if row["file"] else ""
    return code(shorts.get(row["name"], row["name"])) + place


def _allocations(allocations: Json, shorts: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    if not allocations["count"]:
        return
    title = f"{format_size(allocations['bytes'])} allocated in {counted(allocations['count'], 'allocation')}"
    rows = [[format_size(row["bytes"]), f"{row['count']:,}", code(row["name"])] for row in allocations["classes"]]
    yield title, table(["bytes", "objects", "class"], rows)
    rows = [
        [format_size(row["bytes"]), f"{row['count']:,}", code(_calls(row["stack"], shorts))]
        for row in allocations["sites"]
    ]
    yield "Allocations by site", table(["bytes", "objects", "site"], rows)


def _calls(stack: list[str], shorts: Mapping[str, str]) -> str:
    """Returns the innermost functions of a stack, without what a runtime puts between methods."""
    methods = without_wrappers(stack)
    names = [shorts.get(name, name) for name in methods[:CALLERS_SHOWN]]
    return " < ".join([*names, "…"] if len(methods) > CALLERS_SHOWN else names) or "unknown"


def _heap(shots: list[Json]) -> Iterator[tuple[str, list[str]]]:
    """Yields what is live at the last heap shot, with what grew since the one before."""
    if not shots:
        return
    grown = {row["name"]: row["bytes_after"] - row["bytes_before"] for row in shots[-1]["growth"] or ()}
    rows = [
        [format_size(row["bytes"]), f"{row['objects']:,}", _grown(grown.get(row["name"], 0)), code(row["name"])]
        for row in shots[-1]["classes"]
    ]
    title = f"Heap shot {len(shots)}: {format_size(shots[-1]['bytes'])} live"
    yield title, table(["bytes", "objects", "growth", "class"], rows)


def _grown(n_bytes: int) -> str:
    return "" if n_bytes == 0 else f"{'+' if n_bytes > 0 else '−'}{format_size(abs(n_bytes))}"


def _waits(scheduling: Json | None, shorts: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    if scheduling is None:
        return
    rows = [
        [format_duration(row["duration_ns"]), str(row["why"]),
         code(f"{row['thread']} {row['tid']}: {_calls(_of_program(row), shorts)}")]
        for row in scheduling["longest"][:WAITS_SHOWN]
    ]  # fmt: skip
    if rows:
        yield "Longest waits", table(["wait", "why", "where"], rows)


def _of_program(row: Json) -> list[str]:
    """Returns the functions of a wait, the innermost first, without those of the kernel, where there are others."""
    stack: list[str] = row["stack"]
    return stack[row["kernel_frames"] :] or stack


def _threads(processes: list[Json]) -> Iterator[tuple[str, list[str]]]:
    threads = [(process, thread) for process in processes for thread in process["threads"]]
    whole = {key: sum(thread[key] for _, thread in threads) for key in ("samples", "calls")}
    columns = [key for key in whole if whole[key]]
    if len(threads) < 2 or not columns:
        return
    programs = programs_of(processes) if len(threads) > THREADS_SHOWN else []
    if programs:
        rows = [
            [*(percent(each[key], whole[key]) for key in columns), f"{each['processes']:,}", code(each["name"])]
            for each in programs[:THREADS_SHOWN]
        ]
        yield counted(len(programs), "program").capitalize(), table([*columns, "processes", "program"], rows)
    ranked = sorted(threads, key=lambda pair: [-pair[1][key] for key in columns])[:THREADS_SHOWN]
    rows = [
        [*(percent(thread[key], whole[key]) for key in columns),
         code(f"{thread['name']} {thread['tid']} of {process['name']}")]
        for process, thread in ranked
    ]  # fmt: skip
    yield counted(len(threads), "thread").capitalize(), table([*columns, "thread"], rows)
