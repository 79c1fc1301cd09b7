import numpy as np
from numpy.typing import NDArray

from traceferry.native.nodes import NodeTable

def fields(data: memoryview | bytes, begin: int, end: int) -> tuple[NDArray[np.int64], int]: ...
def numbers(
    data: memoryview | bytes, begins: NDArray[np.int64], ends: NDArray[np.int64], wanted: NDArray[np.int64]
) -> NDArray[np.int64]: ...
def parts(
    data: memoryview | bytes, begins: NDArray[np.int64], ends: NDArray[np.int64], wanted: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
def lists(
    data: memoryview | bytes, begins: NDArray[np.int64], ends: NDArray[np.int64], wanted: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]: ...
def intern_stacks(
    table: NodeTable,
    rows: NDArray[np.int64],
    ends: NDArray[np.int64],
    frames: NDArray[np.int32],
    frame_ends: NDArray[np.int64],
    cut: NDArray[np.int64],
) -> NDArray[np.int32]: ...
