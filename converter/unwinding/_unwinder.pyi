from collections.abc import Sequence
from enum import IntFlag
from typing import Self, final

from numpy import int32, int64, uint8, uint64
from numpy.typing import NDArray

from traceferry.unwinding.machine import UserStacks
from traceferry.unwinding.modules import Module, Problems
from traceferry.unwinding.spaces import AddressSpace

class End(IntFlag):
    COMPLETE = 0
    TRUNCATED = 1
    NOT_COPIED = 2
    ELSEWHERE = 3
    NO_CFI = 4
    BAD_ADDRESS = 5
    BAD_CFA = 6
    LOST_REGISTER = 7

class How(IntFlag):
    BY_IP = 0
    BY_CFI = 1
    BY_SIGNAL = 2
    BY_PLT = 3
    BY_FRAME_POINTER = 4
    BY_OWN_STACK = 5

class Flag(IntFlag):
    IS_KERNEL_MODE = 1
    IS_SHORT_COPY = 2

@final
class Chains:
    @property
    def first(self) -> NDArray[int64]: ...
    @property
    def pc(self) -> NDArray[uint64]: ...
    @property
    def how(self) -> NDArray[uint8]: ...
    @property
    def end(self) -> NDArray[uint8]: ...
    @property
    def module(self) -> NDArray[int32]: ...

@final
class Unwinder:
    def __new__(cls, modules: Sequence[Module | None], stacks: UserStacks) -> Self: ...
    @property
    def problems(self) -> dict[int, list[Problems]]: ...
    def unwind(self, rows: NDArray[int64], space: AddressSpace) -> Chains: ...
