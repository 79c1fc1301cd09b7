from typing import Self, final

from numpy import int32, int64
from numpy.typing import NDArray

@final
class NodeTable:
    def __new__(
        cls, parent: NDArray[int32], key: NDArray[int32], slots: NDArray[int32], count: NDArray[int64]
    ) -> Self: ...
