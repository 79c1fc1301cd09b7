"""A comparison as Markdown, for the summary of a job: the largest changes first, within a limit of bytes.

Nothing of a recording is markup here: names are code spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceferry.analysis.compare import figures
from traceferry.analysis.compare.comparison import Compared, Comparison, Row
from traceferry.analysis.compare.gate import Outcome
from traceferry.analysis.compare.headline import WORDS, headline, verdict_of
from traceferry.common.issue_kinds import KINDS
from traceferry.common.markdown import code
from traceferry.common.report import n_times

MOST_BYTES = 64_000
COLUMNS = f"{' | '.join(figures.HEADS)} |\n|---|{'---:|' * (len(figures.HEADS) - 1)}---|"


def as_markdown(comparison: Comparison, outcomes: Sequence[Outcome] = (), limit: int = MOST_BYTES) -> str:
    """limit: bytes of UTF-8. Rows that do not fit are counted in the last line."""
    head = "\n".join(_head(comparison, outcomes))
    blocks = list(_blocks(comparison))
    n_rows = sum(len(rows) for _, rows in blocks)
    # Room for the sentence on what is left out.
    used, text, n_shown = len(head.encode()) + 200, [head], 0
    for title, rows in blocks:
        lines = [title]
        used += len(title.encode()) + 1
        for row in rows:
            used += len(row.encode()) + 1
            if used > limit:
                break
            lines.append(row)
        if len(lines) > 1:
            text.append("\n".join(lines))
            n_shown += len(lines) - 1
        if used > limit:
            break
    if n_shown < n_rows:
        text.append(f"\n{n_rows - n_shown} more rows are left out here: they are in the text, the page and the JSON.")
    return _cut("\n".join(text) + "\n", limit)


def _cut(text: str, limit: int) -> str:
    data = text.encode()
    return text if len(data) <= limit else data[:limit].decode(errors="ignore")


def _head(comparison: Comparison, outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield f"## {WORDS[verdict_of(comparison, outcomes)].capitalize()}"
    yield ""
    text = headline(comparison, outcomes)
    yield code(text, len(text))
    if not comparison.is_identical:
        yield ""
        yield figures.samples_model(comparison)
    for note in comparison.notes:
        yield ""
        yield f"Note: {code(note, len(note))}"
    for outcome in outcomes:
        word = {"passed": "passed", "failed": "**failed**", "undecided": "**not decided**"}[outcome.status]
        yield ""
        yield f"{code(outcome.gate.text)}: {word}"
        for line in outcome.lines:
            yield f"- {code(line)}"
    disturbed = [run for run in (*comparison.base, *comparison.new) if run.disturbed]
    for run in disturbed:
        yield ""
        yield f"Disturbed: {code(run.path)}, {run.disturbed}" + (" (left out)" if run.left_out else "")
    yield from _losses(comparison)
    if comparison.is_identical:
        return
    yield ""
    yield f"| whole | {COLUMNS}"
    for row in comparison.whole.rows:
        yield _row(row, comparison.whole, comparison)


def _losses(comparison: Comparison) -> Iterator[str]:
    """Yields lines on what the recordings lost, by kind: how often in all runs of each side."""
    counts: dict[str, list[int]] = {}
    for nth, runs in enumerate((comparison.sides.base, comparison.sides.new)):
        for run in runs:
            for (kind,), (count,) in zip(run.totals.losses.keys, run.totals.losses.amounts.tolist(), strict=True):
                counts.setdefault(kind, [0, 0])[nth] += count
    for kind, (base, new) in sorted(counts.items()):
        yield ""
        yield f"{KINDS[kind].severity.capitalize()}: {KINDS[kind].title} (base: {n_times(base)}, new: {n_times(new)})"


def _blocks(comparison: Comparison) -> Iterator[tuple[str, list[str]]]:
    """Each table with rows that changed: its head, and its rows."""
    for table in comparison.tables:
        if table.different:
            head = f"\n### {table.amounts.title.capitalize()}\n\n{figures.level(table, comparison).capitalize()}\n\n"
            yield f"{head}| | {COLUMNS}", [_row(row, table, comparison) for row in table.different]
    if comparison.tiers:
        head = f"\n### {figures.tiers(comparison).capitalize()}\n\n| | base | new |\n|---|---|---|"
        yield head, [f"| {code(t.function[0])} | {code(t.base[0])} | {code(t.new[0])} |" for t in comparison.tiers]


def _row(row: Row, table: Compared, comparison: Comparison) -> str:
    place = f" {code(row.place)}" if row.place else ""
    return f"| {' | '.join([code(row.name) + place, *figures.cells(row, table, comparison)])} |"
