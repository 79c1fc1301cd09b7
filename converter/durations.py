"""Durations as people write them: 1.5s, 20ms, 300us, 40ns."""

from __future__ import annotations

import re

from traceferry.errors import UsageError

UNITS_NS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}


def parse_duration(text: str) -> int:
    """ "20ms" → 20_000_000 ns; a number without a unit is in seconds. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|µs|ms|s|m)?\s*", text)
    if match is None:
        raise UsageError(f"{text!r} is no duration: write a number and ns, us, ms, s or m, as 1.5s or 20us")
    return round(float(match[1]) * UNITS_NS[match[2] or "s"])


def parse_offset(text: str) -> int:
    """ "-1.5s" → -1_500_000_000 ns: a duration with or without a sign. Raises UsageError."""
    sign = text.strip()[:1]
    return -parse_duration(text.strip()[1:]) if sign == "-" else parse_duration(text.strip().removeprefix("+"))


def parse_range(text: str) -> tuple[int | None, int | None]:
    """ "START,END" in durations after the start of the recording; either may be empty. Raises UsageError."""
    start, comma, end = text.partition(",")
    if not comma:
        raise UsageError(f"{text!r} is no range: write START,END, as 1s,1.5s or 200ms,")
    begins = parse_duration(start) if start.strip() else None
    ends = parse_duration(end) if end.strip() else None
    if begins is not None and ends is not None and ends < begins:
        raise UsageError(f"{text!r} is no range: it ends before it starts")
    return begins, ends


def format_duration(ns: int) -> str:
    """Three digits and the unit that suits: 1.23ms."""
    for unit in ("s", "ms", "us"):
        if ns >= UNITS_NS[unit]:
            return f"{ns / UNITS_NS[unit]:.3g}{unit}" if ns < 1000 * UNITS_NS[unit] else f"{ns // UNITS_NS[unit]}{unit}"
    return f"{ns}ns"
