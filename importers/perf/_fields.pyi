from typing import Any

import numpy as np
from numpy.typing import NDArray

def numbers(data: memoryview | NDArray[Any], at: NDArray[np.int64], size: int, big: bool) -> NDArray[Any]: ...
def fields(
    data: memoryview | NDArray[Any],
    at: NDArray[np.int64],
    offsets: NDArray[np.int64],
    sizes: NDArray[np.int64],
    big: bool,
) -> NDArray[np.uint64]: ...
def deferred(chain: NDArray[np.uint64], start: NDArray[np.int64], length: NDArray[np.int32]) -> NDArray[np.int64]: ...
