from typing import final

from numpy import uint32, uint64
from numpy.typing import NDArray

@final
class LineRows:
    is_read: bool
    version: int
    n_spent: int
    def __init__(self, data: memoryview, at: int, big: bool) -> None: ...
    def name(self, number: int, of_folder: bool) -> tuple[int, int, int] | None: ...
    def at(
        self, begins: NDArray[uint64], ends: NDArray[uint64], addresses: NDArray[uint64]
    ) -> tuple[NDArray[uint32], NDArray[uint32], NDArray[uint32]]: ...
