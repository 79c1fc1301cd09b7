import numpy as np
from numpy.typing import NDArray

def split_lines(
    data: memoryview | bytes, begin: int, most: int
) -> tuple[int, NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]: ...
