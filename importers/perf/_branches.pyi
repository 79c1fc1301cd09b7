from typing import Any, Self, final

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

@final
class Places:
    def __new__(
        cls,
        spaces: NDArray[np.int32],
        addresses: NDArray[np.uint64],
        first_version: NDArray[np.int64],
        start: NDArray[np.int64],
        stack: NDArray[np.int32],
        lib: NDArray[np.int32],
        address: NDArray[np.int64],
        kernel_from: int,
        kernel_space: int,
    ) -> Self: ...
    def table(
        self,
        data: NDArray[np.uint8],
        at: NDArray[np.int64],
        n: NDArray[np.int32],
        big: bool,
        ts: NDArray[np.int64],
        space: NDArray[np.int32],
        is_any: NDArray[np.uint8],
    ) -> list[NDArray[Any]]: ...
