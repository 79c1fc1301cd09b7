from numpy import int64
from numpy.typing import NDArray

def scale(ticks: NDArray[int64], num: int, den: int, offset: int, out: NDArray[int64]) -> None: ...
