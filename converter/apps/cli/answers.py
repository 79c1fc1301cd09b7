"""The questions of `info` about call paths, lines and instructions, and their answers as text, Markdown and JSON."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from traceferry.apps.cli.command_parser import CommandParser
from traceferry.common.errors import UsageError
from traceferry.common.markdown import code, table
from traceferry.common.shown_text import aligned, shown
from traceferry.common.units import format_amount

if TYPE_CHECKING:
    from traceferry.analysis.info.questions import Paths
    from traceferry.model import Trace

Json = dict[str, Any]
# An answer has so many rows for each of --top.
ROWS_FOR_EACH = 3
OF_FUNCTIONS = ("callers", "callees", "lines", "asm")


def add_to(info: CommandParser) -> None:
    info.output.add_argument("--tree", action="store_true", help="print the call tree instead")
    for name, what in (
        ("callers", "who calls a function, and them"), ("callees", "what a function calls, and they"),
        ("lines", "the lines of a function"), ("asm", "the instructions of a function"),
    ):  # fmt: skip
        info.output.add_argument(f"--{name}", metavar="FUNC", help=f"print {what} instead: its name, or a part of it")
    info.output.add_argument("--markdown", action="store_true", help="print Markdown, for an issue or a pull request")


def asked(arguments: argparse.Namespace) -> list[str]:
    """Returns the names of the questions."""
    return [name for name in ("tree", *OF_FUNCTIONS) if getattr(arguments, name)]


def answers(arguments: argparse.Namespace, trace: Trace, progress: Callable[[int], None]) -> list[Json]:
    """Returns an answer for each question. Raises UsageError where a function is unknown, or has no code."""
    from traceferry.analysis.info import questions

    paths, most = questions.Paths(trace, progress), ROWS_FOR_EACH * arguments.top
    found = []
    for name in asked(arguments):
        given = getattr(arguments, name)
        if name == "tree":
            answer = questions.tree(paths, most)
        elif name == "asm":
            answer = _instructions(paths, given, most)
        else:
            answer = {"callers": questions.callers, "callees": questions.callees, "lines": questions.lines}[name](
                paths, given, most
            )
        found.append({"question": name, **answer})
    return found


def as_text(answers: Iterable[Json]) -> str:
    return "\n\n".join(map(_text_of, answers))


def as_markdown(answers: Iterable[Json]) -> str:
    return "\n\n".join(map(_markdown_of, answers))


def _text_of(answer: Json) -> str:
    head, rows = _cells(answer)
    lines = [f"{answer['title']}, of {_whole(answer)}:", *aligned([head, *rows])]
    if answer["left_out"]:
        lines.append(f"  {answer['left_out']:,} smaller ones are left out: --top shows more")
    return "\n".join(map(shown, lines))


def _markdown_of(answer: Json) -> str:
    head, rows = _cells(answer)
    lines = [f"### {code(answer['title'])}", "", f"of {_whole(answer)}", ""]
    return "\n".join([*lines, *table(head, ([*row[:-1], code(row[-1])] for row in rows))])


def _cells(answer: Json) -> tuple[list[str], list[list[str]]]:
    whole, unit = answer["whole"], answer["unit"]
    amounts = [name for name in ("total", "self") if any(name in row for row in answer["rows"])]
    head = [word for name in amounts for word in (name, "%")]
    rows = [
        [*(cell for name in amounts for cell in _figures(row.get(name, 0), whole, unit)), _label(answer, row)]
        for row in answer["rows"]
    ]
    return [*head, {"lines": "line", "asm": "instruction"}.get(answer["question"], "function")], rows


def _figures(amount: int, whole: int, unit: str) -> tuple[str, str]:
    return (_amount(amount, unit), f"{100 * amount / whole:.1f}%" if whole else "") if amount else ("", "")


def _whole(answer: Json) -> str:
    from traceferry.analysis.info.threads import counted

    if answer["unit"] == "samples":
        return counted(answer["whole"], "sample")
    return _amount(answer["whole"], answer["unit"])


def _amount(amount: int, unit: str) -> str:
    return f"{amount:,}" if unit == "samples" else format_amount(amount, unit)


def _label(answer: Json, row: Json) -> str:
    if answer["question"] == "lines":
        place = f"{(row['file'] or 'unknown').rpartition('/')[2]}:{row['line'] or '?'}"
        return str(place) if row["text"] is None else f"{place}  {row['text']}"
    if answer["question"] == "asm":
        return f"{int(row['address']):#x}  {row['text']}"
    return f"{'  ' * row['depth']}{row['short']}"


def _instructions(paths: Paths, text: str, most: int) -> Json:
    """Returns the instructions of a function with the samples at each, around those that have most."""
    import numpy as np

    from traceferry.apps.view.code import TraceCode

    trace, of_stack = paths.samples.by_stack()
    wanted = np.array(sorted(paths.functions_called(text)))
    frame = trace.stacks["frame"][: len(of_stack)]
    frames = trace.frames
    mine = np.flatnonzero((of_stack > 0) & np.isin(frames["func"][frame], wanted))
    mine = mine[(frames["lib"][frame[mine]] >= 0) & (frames["address"][frame[mine]] >= 0)]
    if not len(mine):
        raise UsageError(f"{text}: no sample ends in it at a known address")
    by_symbol: dict[tuple[int, int], dict[int, int]] = {}
    for stack in mine.tolist():
        row = int(frame[stack])
        at, symbol = int(frames["address"][row]), int(frames["symbol"][row])
        start = int(trace.symbols["address"][symbol]) if symbol >= 0 else at
        counts = by_symbol.setdefault((int(frames["lib"][row]), start), {})
        counts[at] = counts.get(at, 0) + int(of_stack[stack])
    (lib, start), counts = max(by_symbol.items(), key=lambda item: (sum(item[1].values()), item[0]))
    listing = TraceCode(trace).listing(lib, start, 0, to_end=True)
    rows = [
        {"address": listing.start + each.offset, "self": counts.get(listing.start + each.offset, 0), "text": each.text}
        for each in listing.instructions
    ]
    kept = _around_most(rows, most)
    whole = int(of_stack.sum())
    return {"title": f"instructions of {text}", "unit": "samples", "whole": whole, "rows": kept,
            "left_out": len(rows) - len(kept)}  # fmt: skip


def _around_most(rows: list[Json], most: int) -> list[Json]:
    """Returns so many rows that follow each other, with as many samples as there can be."""
    if len(rows) <= most:
        return rows
    best, at, found = -1, 0, sum(row["self"] for row in rows[:most])
    for begin in range(len(rows) - most + 1):
        if begin:
            found += rows[begin + most - 1]["self"] - rows[begin - 1]["self"]
        if found > best:
            best, at = found, begin
    return rows[at : at + most]
