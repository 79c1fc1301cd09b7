"""Work in a thread of its own, one step ahead of who uses it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

# Of few items, a thread costs more than it saves.
AT_ONCE = 2


def made_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yields the items: each is made by another thread while the one before it is used, but for the first ones. What
    makes them must not share with their user what either of them changes."""

    def following() -> list[T]:
        return list(islice(items, 1))

    yield from islice(items, AT_ONCE)
    made = following()
    if not made:
        return
    from concurrent.futures import ThreadPoolExecutor  # small recordings have few items

    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as pool:
        while made:
            coming = pool.submit(following)
            yield from made
            made = coming.result()
