from typing import Self

from numpy import dtype, int32, uint64, void
from numpy.typing import NDArray

THREAD_STATE: dtype[void]
OPEN_CALL: dtype[void]
METHOD_SUMS: dtype[void]
SPAN: dtype[void]

class RunningSums:
    def __new__(cls, thread_of: NDArray[int32], n_threads: int, deepest: int, n_slots: int, n_spans: int) -> Self: ...
    def losses(self, thread: int) -> dict[str, int]: ...
    def closed(self, thread: int, end_ts: int) -> tuple[NDArray[uint64], NDArray[void], NDArray[void]]: ...
