from numpy import int32, int64
from numpy.typing import NDArray

def tally(index: NDArray[int32], size: NDArray[int64], totals: NDArray[int64]) -> None: ...
