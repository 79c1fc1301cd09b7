from typing import Any, final

from numpy import int64, uint8
from numpy.typing import NDArray

@final
class Records:
    files: NDArray[Any]
    origins: NDArray[Any]
    functions: NDArray[Any]
    publics: NDArray[Any]
    lines: NDArray[Any]
    inlines: NDArray[Any]
    ranges: NDArray[Any]
    damaged: NDArray[int64]
    def __new__(cls, text: NDArray[uint8]) -> Records: ...
