import numpy as np
from numpy.typing import NDArray

def placed(
    ts: NDArray[np.int64],
    dur: NDArray[np.int64],
    track: NDArray[np.int64],
    depth: NDArray[np.int64],
    offset: int,
    first_ts: int,
    last_ts: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]: ...
def extent(
    ts: NDArray[np.int64], end: NDArray[np.int64], rows: NDArray[np.int64], first: int, last: int
) -> tuple[int, int]: ...
def nested(
    ts: NDArray[np.int64],
    end: NDArray[np.int64],
    frame: NDArray[np.int32],
    of_enter: NDArray[np.uint8],
    of_leave: NDArray[np.uint8],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8]]: ...
