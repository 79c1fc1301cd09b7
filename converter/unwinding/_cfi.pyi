from typing import Any, Self

from numpy import int32, int64, uint64
from numpy.typing import NDArray
from typing_extensions import Buffer

class RuleSets:
    def __new__(cls) -> Self: ...
    @property
    def arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...

class FrameSection:
    def __new__(cls, data: Buffer, address: int, is_debug: bool, big: bool, word: int, n_registers: int) -> Self: ...
    @property
    def is_cut(self) -> bool: ...
    def records(self) -> tuple[NDArray[int64], NDArray[int64], NDArray[int64], NDArray[int64]]: ...
    def read_cies(self, at: NDArray[int64], start: NDArray[int64], end: NDArray[int64]) -> None: ...
    def ranges(
        self, start: NDArray[int64], end: NDArray[int64], cie_at: NDArray[int64]
    ) -> tuple[NDArray[uint64], NDArray[uint64], NDArray[int64], NDArray[int32]]: ...
    def rows(
        self,
        first: NDArray[uint64],
        last: NDArray[uint64],
        code: NDArray[int64],
        stop: NDArray[int64],
        cie: NDArray[int32],
        sets: RuleSets,
    ) -> tuple[NDArray[uint64], NDArray[int32], int]: ...
