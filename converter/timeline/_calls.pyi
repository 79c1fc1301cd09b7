from typing import final

from numpy import dtype, int32, int64, uint8, void
from numpy.typing import NDArray

FUNC_SUMS: dtype[void]

_Columns = tuple[NDArray[int64], NDArray[int32], NDArray[uint8], NDArray[int64]]

@final
class OpenCalls:
    def check_closed(self) -> None: ...
    def add_up(
        self,
        ts: NDArray[int64],
        frame: NDArray[int32],
        flags: NDArray[uint8],
        func_of_frame: NDArray[int32],
        sums: NDArray[void],
    ) -> None: ...
    def count_lasting(
        self, ts: NDArray[int64], flags: NDArray[uint8], limits: NDArray[int64], counts: NDArray[int64]
    ) -> None: ...
    def within(
        self, ts: NDArray[int64], frame: NDArray[int32], flags: NDArray[uint8], start_ts: int, stop_ts: int
    ) -> _Columns: ...
    def lasting(self, ts: NDArray[int64], frame: NDArray[int32], flags: NDArray[uint8], min_ns: int) -> _Columns: ...
