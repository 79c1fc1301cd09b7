from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

@final
class EdgeTable:
    def __new__(cls, *arguments: Any) -> Self: ...
    @property
    def keys(self) -> NDArray[np.int32]: ...
    @property
    def amounts(self) -> NDArray[np.int64]: ...
    def add(
        self,
        start: NDArray[np.int32],
        begin: NDArray[np.int32],
        end: NDArray[np.int32],
        outcome: NDArray[np.uint8],
        cycles: NDArray[np.int64],
    ) -> None: ...
