"""What a mistyped word was meant to be."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns "; did you mean X?" with the nearest of the known words, or "" if none is near."""
    import difflib

    lowered = {one.lower(): one for one in known}
    near = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    return f"; did you mean {lowered[near[0]]}?" if near else ""
