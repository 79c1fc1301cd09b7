import numpy as np
from numpy.typing import NDArray

def entries(data: NDArray[np.uint8], at: NDArray[np.int64], n: NDArray[np.int32], big: bool) -> NDArray[np.uint64]: ...
def count_known(data: NDArray[np.uint8], at: NDArray[np.int64], n: NDArray[np.int32], big: bool) -> int: ...
def addresses(
    data: NDArray[np.uint8],
    at: NDArray[np.int64],
    n: NDArray[np.int32],
    space: NDArray[np.int32],
    kernel_from: int,
    kernel_space: int,
    big: bool,
) -> tuple[NDArray[np.int32], NDArray[np.uint64]]: ...
