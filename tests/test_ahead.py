"""What is made ahead is the same, whoever makes it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from traceferry.common.ahead import AT_ONCE, made_ahead

BEYOND = AT_ONCE + 5


@pytest.mark.parametrize("n", [0, 1, AT_ONCE, AT_ONCE + 1, BEYOND])
def test_items_are_the_same(n: int) -> None:
    assert list(made_ahead(iter(range(n)))) == list(range(n))
    assert list(made_ahead(made_ahead(iter(range(n))))) == list(range(n))


def test_few_items_need_no_thread() -> None:
    makers = list[threading.Thread]()

    def items(n: int) -> Iterator[int]:
        for nth in range(n):
            makers.append(threading.current_thread())
            yield nth

    assert len(list(made_ahead(items(AT_ONCE)))) == AT_ONCE
    assert set(makers) == {threading.current_thread()}
    list(made_ahead(items(BEYOND)))
    assert len(set(makers)) == 2


def test_one_is_made_while_the_one_before_is_used() -> None:
    is_used = threading.Event()

    def items() -> Iterator[int]:
        yield from range(BEYOND - 1)
        assert is_used.wait(10)  # of the last but one, by who uses it
        yield BEYOND - 1

    for item in made_ahead(items()):
        if item == BEYOND - 2:
            is_used.set()


def test_what_goes_wrong_reaches_who_uses_it() -> None:
    def items() -> Iterator[int]:
        yield from range(BEYOND)
        raise ValueError("damage")

    used = list[int]()
    with pytest.raises(ValueError, match="damage"):
        used.extend(made_ahead(items()))
    ahead = made_ahead(items())
    found = [item for _, item in zip(range(BEYOND), ahead, strict=False)]
    assert found == list(range(BEYOND))


def test_who_stops_leaves_no_thread() -> None:
    ahead = made_ahead(iter(range(100)))
    for _ in range(BEYOND):
        next(ahead)
    before = threading.active_count()
    ahead.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before - 1
