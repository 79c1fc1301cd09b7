"""Durations and frequencies in the notation of users: 1.5s, 20ms, 300us, 40ns; 2.1GHz."""

from __future__ import annotations

import re

from traceferry.common.errors import UsageError

UNITS_NS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}
LONGEST_NS = 1 << 63
HZ = {"hz": 1, "khz": 1_000, "mhz": 1_000_000, "ghz": 1_000_000_000}
SIZES = ("B", "kB", "MB", "GB", "TB")


def parse_duration(text: str) -> int:
    """Returns ns of a duration: "20ms" → 20_000_000; a number without a unit is in seconds. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|µs|ms|s|m)?\s*", text, re.ASCII)
    if match is None:
        raise UsageError(f"{text!r} is not a valid duration: write a number and ns, us, ms, s or m, as 1.5s or 20us")
    ns = float(match[1]) * UNITS_NS[match[2] or "s"]
    if ns >= LONGEST_NS:
        raise UsageError(f"{text!r} is not a valid duration: it is longer than 292 years")
    return round(ns)


def parse_frequency(text: str) -> int:
    """Returns Hz: "2.1GHz" → 2_100_000_000; a number without a unit is Hz. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmg]?hz)?\s*", text, re.ASCII | re.IGNORECASE)
    if match is None:
        raise UsageError(f"{text!r} is not a valid frequency: write a number and Hz, kHz, MHz or GHz, as 2.1GHz")
    from decimal import Decimal  # few conversions are told a frequency

    return round(Decimal(match[1]) * HZ[(match[2] or "Hz").lower()])


def parse_offset(text: str) -> int:
    """Returns ns: "-1.5s" → -1_500_000_000, a duration with or without a sign. Raises UsageError."""
    sign = text.strip()[:1]
    return -parse_duration(text.strip()[1:]) if sign == "-" else parse_duration(text.strip().removeprefix("+"))


def parse_range(text: str) -> tuple[int | None, int | None]:
    """Returns the ns of "START,END", durations after the start of the recording; the end is not in the range, and
    either may be missing. Raises UsageError."""
    start, comma, end = text.partition(",")
    if not comma:
        raise UsageError(f"{text!r} is not a valid range: write START,END, as 1s,1.5s or 200ms,")
    begins = parse_duration(start) if start.strip() else None
    ends = parse_duration(end) if end.strip() else None
    if begins is not None and ends is not None and ends < begins:
        raise UsageError(f"{text!r} is not a valid range: it ends before it starts")
    if begins is not None and ends == begins:
        raise UsageError(f"{text!r} is not a valid range: it is empty, since its end does not belong to it")
    return begins, ends


def format_duration(ns: int) -> str:
    """Returns three significant digits and the unit that suits: 1.23ms. From 1000 s on, whole seconds. `parse_duration`
    reads all of them."""
    if ns < UNITS_NS["us"]:
        return f"{ns}ns"
    for unit in ("us", "ms", "s"):
        text = f"{ns / UNITS_NS[unit]:.3g}"
        # 999.6us has three digits as 1ms, not as 1e+03us.
        if float(text) < 1000:
            return f"{text}{unit}"
    return f"{ns // UNITS_NS['s']}s"


def format_amount(value: int, unit: str) -> str:
    """Returns an amount of a unit, "ns" and "bytes" with a larger one; of other units the number."""
    formats = {"ns": format_duration, "bytes": format_size}
    return formats.get(unit, str)(value)


def format_size(n_bytes: float) -> str:
    """Returns 3.95 MB: three digits, in powers of 1000."""
    size, step = n_bytes, 0
    while size >= 999.5 and step < len(SIZES) - 1:
        size, step = size / 1000, step + 1
    return f"{size:.0f} {SIZES[step]}" if step == 0 else f"{size:.3g} {SIZES[step]}"
