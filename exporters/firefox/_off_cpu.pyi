import numpy as np
from numpy.typing import NDArray

class OffCpu:
    ts: NDArray[np.int64]
    dur: NDArray[np.int64]
    state: NDArray[np.uint8]
    reason: NDArray[np.int32]
    cpu: NDArray[np.int64]
    moved: NDArray[np.int64]
    runnable: NDArray[np.int64]
    woken_at: NDArray[np.int64]
    waker: NDArray[np.int64]
    waker_stack: NDArray[np.int32]

def off_cpu_rows(
    ts: NDArray[np.int64],
    state: NDArray[np.uint8],
    cpu: NDArray[np.int32],
    reason: NDArray[np.int32],
    waker: NDArray[np.int64],
    waker_stack: NDArray[np.int32],
    end_ts: int,
) -> OffCpu: ...
