from typing import Any

import numpy as np
from numpy.typing import NDArray

def numbers(data: memoryview | NDArray[Any], at: NDArray[np.int64], size: int, big: bool) -> NDArray[Any]: ...
def read_raw(
    data: memoryview | NDArray[Any],
    at: NDArray[np.int64],
    size: NDArray[np.int32],
    rows: NDArray[np.int64],
    offset: int,
    big: bool,
    found: NDArray[Any],
) -> None: ...
def deferred(chain: NDArray[np.uint64], start: NDArray[np.int64], length: NDArray[np.int32]) -> NDArray[np.int64]: ...
