"""Map: where unwound stacks end. Call-frame information is the same for every function: that nobody calls one, or that
its callers are on another stack, its name alone tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from traceferry.libraries.library import Library
from traceferry.model import Array
from traceferry.symbolication.demangle import Demangler
from traceferry.unwinding._unwinder import Chains, End, How
from traceferry.unwinding.spaces import NO_MODULE, AddressSpace
from traceferry.unwinding.stack_ends import is_beginning, is_switch

# What an address is in: _BEGINNING, a function that nobody calls; from _SWITCH on, one that left its callers' stack.
_NEITHER, _BEGINNING, _SWITCH = -1, 0, 1
# Ends behind which is no memory of this stack.
_WRONG = (End.NO_CFI, End.BAD_ADDRESS, End.BAD_CFA, End.LOST_REGISTER)


class UnwoundStacks(NamedTuple):
    """Callchains, as `Chains` has them. switch: int32, which of `StackEnds.switches` each ended in, -1 for none."""

    first: Array
    pc: Array
    how: Array
    end: Array
    module: Array
    switch: Array

    def has_guessed_leaf(self) -> Array:
        """Returns whether each chain goes from its first frame to the caller by the frame pointer, or ends there, which
        is for want of anything better."""
        n_frames = np.diff(self.first)
        after = np.append(self.how, How.BY_IP)[np.minimum(self.first[:-1] + 1, len(self.how))]
        found: Array = np.where(n_frames == 1, self.end == End.NO_CFI, after == How.BY_FRAME_POINTER)
        return found & (n_frames > 0)

    def take(self, chosen: Array) -> UnwoundStacks:
        """Returns those chains. chosen: bool."""
        n_frames = np.diff(self.first)
        is_mine = np.repeat(chosen, n_frames)
        first = np.append(0, np.cumsum(n_frames[chosen]))
        return UnwoundStacks(
            first, self.pc[is_mine], self.how[is_mine], self.end[chosen], self.module[chosen], self.switch[chosen]
        )


class StackEnds:
    """Ends stacks at functions that have no callers on them. libraries: by module; switches: the names of functions
    that left their callers' stacks."""

    def __init__(self, libraries: Sequence[Library | None], demangle: Demangler) -> None:
        self.switches: list[str] = []
        self._libraries = libraries
        self._demangle = demangle
        # By module and link address.
        self._known: dict[tuple[int, int], int] = {}

    def ended(self, chains: Chains, space: AddressSpace) -> UnwoundStacks:
        """Returns the stacks of one address space. Where unwinding has gone wrong behind such a function, the stack
        ends there: a frame behind it is what the memory has held before."""
        first, end = chains.first, chains.end.copy()
        n_frames = np.diff(first)
        last = np.full(len(end), _NEITHER, np.int32)
        before = last.copy()
        outer, inner = np.flatnonzero(n_frames > 1), np.flatnonzero((n_frames > 2) & np.isin(end, _WRONG))
        kinds = self._kinds(chains.pc[np.concatenate((first[1:][outer] - 1, first[1:][inner] - 2))], space)
        last[outer], before[inner] = kinds[: len(outer)], kinds[len(outer) :]
        is_behind = (last == _NEITHER) & (before != _NEITHER)
        kind = np.where(is_behind, before, last)
        end[kind != _NEITHER] = End.COMPLETE
        keep = np.ones(len(chains.pc), bool)
        keep[first[1:][is_behind] - 1] = False
        first = first - np.concatenate(([0], np.cumsum(is_behind)))
        return UnwoundStacks(
            first, chains.pc[keep], chains.how[keep], end, chains.module, np.where(kind >= _SWITCH, kind - _SWITCH, -1)
        )

    def _kinds(self, pc: Array, space: AddressSpace) -> Array:
        """Returns in what return addresses (uint64) are: int32."""
        start, until, bias, module = space.columns()
        called, which = np.unique(pc - np.uint64(1), return_inverse=True)
        at = np.searchsorted(start, called, "right") - 1
        is_mapped = (at >= 0) & (called < np.append(until, np.uint64(0))[at])
        numbers = np.where(is_mapped, np.append(module, NO_MODULE)[at], NO_MODULE)
        linked = called - np.append(bias, np.uint64(0))[at]
        found = np.full(len(called), _NEITHER, np.int32)
        for number in np.unique(numbers).tolist():
            mine = np.flatnonzero(numbers == number)
            library = self._libraries[number] if number >= 0 else None
            if library is not None and library.binary is not None and library.symbols is not None:
                found[mine] = self._kinds_in(number, library, linked[mine])
        return found[which]

    def _kinds_in(self, number: int, library: Library, linked: Array) -> list[int]:
        base = library.binary.base if library.binary is not None else 0
        unknown = [address for address in linked.tolist() if (number, address) not in self._known]
        names = library.function_names(np.array(unknown, np.uint64) - np.uint64(base), self._demangle)
        self._known.update({(number, address): self._kind(name) for address, name in zip(unknown, names, strict=True)})
        return [self._known[number, address] for address in linked.tolist()]

    def _kind(self, name: str) -> int:
        if is_beginning(name):
            return _BEGINNING
        if not is_switch(name):
            return _NEITHER
        shown = name.removesuffix(".abi0")
        if shown not in self.switches:
            self.switches.append(shown)
        return _SWITCH + self.switches.index(shown)
