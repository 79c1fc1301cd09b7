import numpy as np
from numpy.typing import NDArray

from traceferry.native.nodes import NodeTable

Numbers = NDArray[np.int64]

def fields(data: memoryview | bytes, begin: int, end: int) -> tuple[Numbers, int]: ...
def numbers(data: memoryview | bytes, begins: Numbers, ends: Numbers, wanted: Numbers) -> Numbers: ...
def parts(
    data: memoryview | bytes, begins: Numbers, ends: Numbers, wanted: int
) -> tuple[Numbers, Numbers, Numbers]: ...
def lists(
    data: memoryview | bytes, begins: Numbers, ends: Numbers, wanted: int
) -> tuple[Numbers, Numbers, NDArray[np.bool_]]: ...
def intern_stacks(
    table: NodeTable,
    rows: Numbers,
    ends: Numbers,
    frames: NDArray[np.int32],
    frame_ends: Numbers,
    cut: Numbers,
) -> NDArray[np.int32]: ...
