from collections.abc import Sequence
from enum import IntFlag
from typing import Self, final

from numpy import int32, int64, uint8, uint64
from numpy.typing import NDArray

from traceferry.unwinding.machine import UserStacks
from traceferry.unwinding.modules import Module, Problems
from traceferry.unwinding.spaces import AddressSpace

MAX_FRAMES: int

class End(IntFlag):
    COMPLETE = 0
    TRUNCATED = 1
    ELSEWHERE = 2
    NO_CFI = 3
    BAD_ADDRESS = 4
    BAD_CFA = 5
    LOST_REGISTER = 6
    LIMIT = 7

class How(IntFlag):
    BY_IP = 0
    BY_CFI = 1
    BY_SIGNAL = 2
    BY_PLT = 3
    BY_FRAME_POINTER = 4

class Flag(IntFlag):
    IS_KERNEL_MODE = 1
    IS_WHOLE_STACK = 2

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
