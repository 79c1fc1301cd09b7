"""Durations as people write them: what is printed can be given to an option."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceferry.common.errors import UsageError
from traceferry.common.units import format_duration, parse_duration, parse_offset, parse_range

BORDERS = [
    (0, "0ns"), (1, "1ns"), (999, "999ns"), (1_000, "1us"), (1_234, "1.23us"), (999_400, "999us"), (999_499, "999us"),
    (999_500, "1ms"), (999_999, "1ms"), (1_000_000, "1ms"), (999_499_999, "999ms"), (999_500_000, "1s"),
    (10**9, "1s"), (31_622_776, "31.6ms"), (999_499_999_999, "999s"), (999_500_000_000, "999s"),
    (10**12, "1000s"), (4_683_743_612_465_315_850, "4683743612s"),
]  # fmt: skip


def test_three_digits_and_the_unit_that_suits() -> None:
    assert [format_duration(ns) for ns, _ in BORDERS] == [text for _, text in BORDERS]


@given(st.one_of(st.integers(0, 2**63 - 1), st.integers(0, 10**6), st.integers(1, 18).map(lambda n: 10**n - 1)))
def test_what_is_printed_can_be_read(ns: int) -> None:
    text = format_duration(ns)
    assert "e" not in text
    assert abs(parse_duration(text) - ns) <= ns / 200
    assert parse_range(f"{text},") == (parse_duration(text), None)


def test_notations() -> None:
    texts = ["20ms", "1.5s", " 40 ns ", "300us", "300µs", "2m", "7", ".5s", "1.s"]
    wanted = [20_000_000, 1_500_000_000, 40, 300_000, 300_000, 120_000_000_000, 7_000_000_000, 500_000_000, 10**9]
    assert [parse_duration(text) for text in texts] == wanted
    assert parse_range("1s,1.5s") == (10**9, 15 * 10**8)
    assert [parse_range(text) for text in (",3s", "3s,", ",")] == [(None, 3 * 10**9), (3 * 10**9, None), (None, None)]


def test_limits() -> None:
    longest = (1 << 63) - 1024
    assert parse_duration(f"{longest}ns") == longest
    assert parse_range("1s,1000000001ns") == (10**9, 10**9 + 1)
    with pytest.raises(UsageError, match="it is empty"):
        parse_range("1s,1s")
    with pytest.raises(UsageError, match="it ends before it starts"):
        parse_range("1s,999999999ns")
    with pytest.raises(UsageError, match="write START,END"):
        parse_range("1s")


def test_offsets_have_a_sign() -> None:
    texts = ["-1.5s", "+20ms", " 20ms ", " -1us", "0"]
    assert [parse_offset(text) for text in texts] == [-1_500_000_000, 20_000_000, 20_000_000, -1_000, 0]
    for text in ("--1s", "+-1s", "-", ""):
        with pytest.raises(UsageError, match="is not a valid duration"):
            parse_offset(text)


NOT_DURATIONS = ["", "s", "1h", "-1s", "1e3s", "1_0s", "٣s", "0x10", "nan", 400 * "9", "300000000000s", f"{1 << 63}ns"]


@pytest.mark.parametrize("text", NOT_DURATIONS)
def test_what_is_not_a_duration(text: str) -> None:
    with pytest.raises(UsageError, match="is not a valid duration"):
        parse_duration(text)
