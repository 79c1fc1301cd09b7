from typing import final

from numpy import int32, int64, uint8
from numpy.typing import NDArray

@final
class CallRanks:
    def add(self, ts: NDArray[int64], flags: NDArray[uint8]) -> None: ...
    def done(self) -> NDArray[uint8]: ...
    @property
    def of_calls(self) -> NDArray[int64]: ...

@final
class SummedCounts:
    def __new__(cls, limits: NDArray[uint8]) -> SummedCounts: ...
    def add(self, frame: NDArray[int32], flags: NDArray[uint8], ranks: NDArray[uint8]) -> None: ...
    @property
    def of_limits(self) -> NDArray[int64]: ...

@final
class ShortCallsSummed:
    def __new__(cls, limit: int) -> ShortCallsSummed: ...
    def add(
        self,
        ts: NDArray[int64],
        frame: NDArray[int32],
        flags: NDArray[uint8],
        counts: NDArray[int64],
        ranks: NDArray[uint8],
    ) -> None: ...
    def done(self) -> tuple[NDArray[int64], NDArray[int32], NDArray[uint8], NDArray[int64], NDArray[int64]]: ...
