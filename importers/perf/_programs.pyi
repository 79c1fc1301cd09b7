import numpy as np
from numpy.typing import NDArray

def numbers(
    pid: NDArray[np.int32],
    ts: NDArray[np.int64],
    pids: NDArray[np.int64],
    first: NDArray[np.int64],
    starts: NDArray[np.int64],
) -> NDArray[np.int32]: ...
