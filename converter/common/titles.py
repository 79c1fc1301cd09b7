"""What a recording is called: after the programs that did most in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

# Programs with less of what was recorded are not named, unless all have as little.
LEAST = 0.01
MOST_NAMED = 3


def title_of(amounts: Iterable[tuple[str, int]]) -> str:
    """Returns the names of programs, those with most first: "cc1plus, as and 12 more"; "" where none has a name.
    amounts: of each process the name, and how much of what was recorded it has."""
    of_program = Counter[str]()
    for name, amount in amounts:
        if name:
            of_program[name] += amount
    ranked = sorted(of_program.items(), key=lambda item: -item[1])
    least = LEAST * sum(of_program.values())
    named = [name for name, amount in ranked if amount >= least][:MOST_NAMED]
    more = f" and {len(ranked) - len(named)} more" if len(ranked) > len(named) else ""
    return ", ".join(named) + more
