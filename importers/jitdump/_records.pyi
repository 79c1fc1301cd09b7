from numpy import int32, int64, uint8, uint32, uint64
from numpy.typing import NDArray

def scan(
    data: memoryview, start: int, big: bool, most: int
) -> tuple[NDArray[uint32], NDArray[int64], NDArray[uint32], NDArray[uint64]]: ...
def loads(
    data: memoryview, big: bool, begins: NDArray[int64], ends: NDArray[int64]
) -> tuple[
    NDArray[int64], NDArray[int64], NDArray[uint64], NDArray[uint64], NDArray[uint64], NDArray[int64], NDArray[int64]
]: ...

class LineEntries:
    starts: NDArray[int64]
    stops: NDArray[int64]
    is_sorted: NDArray[uint8]
    offsets: NDArray[int32]
    lines: NDArray[int32]
    columns: NDArray[int32]
    runs: NDArray[int32]
    run_at: NDArray[int64]
    run_size: NDArray[int32]
    def __init__(
        self,
        data: memoryview,
        big: bool,
        begins: NDArray[int64],
        ends: NDArray[int64],
        counts: NDArray[int64],
        bases: NDArray[uint64],
        reach: int,
    ) -> None: ...
