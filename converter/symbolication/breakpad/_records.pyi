from typing import final

from numpy import int64, uint8, uint64
from numpy.typing import NDArray

@final
class Records:
    files: NDArray[uint64]
    origins: NDArray[uint64]
    functions: NDArray[uint64]
    publics: NDArray[uint64]
    lines: NDArray[uint64]
    inlines: NDArray[uint64]
    ranges: NDArray[uint64]
    damaged: NDArray[int64]
    def __new__(cls, text: NDArray[uint8]) -> Records: ...
