"""Decode: what describes code by its address, in front of the record that loads it.

Most compilers write a description directly in front of its load. LLVM's ORC writes those of all functions that it
compiled together, and then their loads; and threads that write at once may mix their records.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")

# Instead of an address, where the writer tells none: the next load.
NO_ADDRESS = 0


class Waiting(Generic[T]):
    """Descriptions that wait for the load of their code. Of several for one address the last one holds."""

    def __init__(self) -> None:
        self._by_address: dict[int, tuple[int, T]] = {}
        self._taken: dict[tuple[int, int], T] = {}

    def add(self, address: int, at: int, description: T) -> None:
        """Adds one. at: the offset of its record."""
        self._by_address.pop(address, None)
        self._by_address[address] = at, description
        self._taken.clear()

    def __len__(self) -> int:
        return len(self._by_address) + len(self._taken)

    def take(self, address: int, size: int) -> T | None:
        """Returns what describes the code that is loaded there; None where nothing does. Other names of one function
        are loads of the same code, one after the other, which share it."""
        known = self._by_address.pop(self._key_of(address, size), None)
        if known is None:
            return self._taken.get((address, size))
        self._taken[address, size] = known[1]
        return known[1]

    def take_last(self) -> T | None:
        """Returns what was added last."""
        return self._by_address.popitem()[1][1] if self._by_address else None

    def take_all(self) -> list[int]:
        """Returns the offsets of those that no load has taken."""
        left = [at for at, _ in self._by_address.values()]
        self._by_address.clear()
        self._taken.clear()
        return left

    def _key_of(self, address: int, size: int) -> int:
        if address in self._by_address:
            return address
        if NO_ADDRESS in self._by_address:
            return NO_ADDRESS
        only = next(iter(self._by_address)) if len(self._by_address) == 1 else address
        # A bit of the instruction set, or what is in front of a function, may be in one address and not in the other.
        return only if address < only < address + size else address
