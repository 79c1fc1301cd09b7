from collections.abc import Callable
from typing import final

from numpy import int64, uint64
from numpy.typing import NDArray

@final
class LineRows:
    is_read: bool
    version: int
    n_spent: int
    def __init__(self, data: memoryview, at: int, big: bool) -> None: ...
    def name(self, number: int, of_folder: bool) -> tuple[int, int, int] | None: ...
    def find(
        self,
        rows: NDArray[int64],
        begins: NDArray[uint64],
        ends: NDArray[uint64],
        addresses: NDArray[uint64],
        files: NDArray[uint64],
        lines: NDArray[uint64],
        discriminators: NDArray[uint64],
    ) -> None: ...
    def number_files(
        self,
        rows: NDArray[int64],
        files: NDArray[uint64],
        sources: NDArray[int64],
        number_of: Callable[[int], int],
    ) -> None: ...
