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
def nested(
    ts: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]: ...
