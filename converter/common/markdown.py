"""Markdown in which nothing of a recording is markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from traceferry.common.shown_text import shown

LONGEST_NAME = 200


def code(text: str, longest: int = LONGEST_NAME) -> str:
    """A code span that shows the text and nothing else: no markup, no end of the table's cell or line."""
    plain = shown(text)
    if len(plain) > longest:
        plain = plain[: longest - 1] + "…"
    most = max((len(run) for run in re.findall(r"`+", plain)), default=0)
    fence = "`" * (most + 1)
    pad = " " if plain[:1] in ("`", " ", "") or plain[-1:] in ("`", " ", "") else ""
    return f"{fence}{pad}{plain}{pad}{fence}".replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Returns the lines of a table; its last column is text, the others are numbers. Cells: Markdown."""
    of = [f"| {' | '.join(head)} |", f"|{'---:|' * (len(head) - 1)}---|"]
    return [*of, *(f"| {' | '.join(row)} |" for row in rows)]
